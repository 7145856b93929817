# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What nvidia-smi says of a machine and of each GPU, in one shape for every form of its output.

``Log`` and ``Gpu`` come from ``nvidia_xml`` (-q -x), ``nvidia_text`` (-q), ``nvidia_csv`` (--query-gpu)
and ``nvidia_table`` (the default table, -L).  A field that a form or a version does not have is
``Unknown``; its reason starts with what kind of silence it is:

* ``not there``       the output has no such row
* ``not applicable``  N/A, Not Supported, deprecated: this card or driver has no such thing
* ``error``           ERR!, Unknown Error, GPU requires reset, GPU is lost: the card did not answer
* ``not permitted``   Insufficient Permissions
* ``not understood``  a word that is none of the above, quoted
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Dict, Mapping, Tuple, Union

from .._engine.values import Unknown

Number = Union[int, Unknown]
Real = Union[float, Unknown]
Word = Union[str, Unknown]
Flag = Union[bool, Unknown]

ABSENT = Unknown("not there")

# Why clocks are held down, under the names of the newest versions without their prefix
# (nvidia-smi manual, "Clocks Event Reasons"; called "Clocks Throttle Reasons" before R535).
EVENT_REASONS = (
    "gpu_idle",
    "applications_clocks",
    "sw_power_cap",
    "hw_slowdown",
    "hw_thermal_slowdown",
    "hw_power_brake",
    "sync_boost",
    "sw_thermal_slowdown",
    "display_clocks",
)
FABRIC_HEALTH = (
    "summary",
    "bandwidth",
    "route_recovery_in_progress",
    "route_unhealthy",
    "access_timeout_recovery",
    "incorrect_configuration",
    "partition_assigned",
)


def _absent_reasons() -> Dict[str, Flag]:
    return dict.fromkeys(EVENT_REASONS, ABSENT)


def _absent_health() -> Dict[str, Word]:
    return dict.fromkeys(FABRIC_HEALTH, ABSENT)


@dataclass(frozen=True)
class EccCounts:
    """Errors counted.  Old cards count single and double bits: those are ``correctable``, ``uncorrectable``.

    ``correctable`` and ``uncorrectable`` are the sums of what is known of SRAM and DRAM.
    """

    correctable: Number = ABSENT
    uncorrectable: Number = ABSENT
    sram_correctable: Number = ABSENT
    sram_uncorrectable: Number = ABSENT
    dram_correctable: Number = ABSENT
    dram_uncorrectable: Number = ABSENT


@dataclass(frozen=True)
class MigDevice:
    """A part of a GPU in MIG mode.  ``profile`` and ``uuid`` are told by -L only, memory by the others."""

    index: Number = ABSENT
    gpu_instance: Number = ABSENT
    compute_instance: Number = ABSENT
    memory_total_mib: Number = ABSENT
    profile: Word = ABSENT
    uuid: Word = ABSENT


@dataclass(frozen=True)
class Gpu:
    """A GPU.

    ``address`` is written as sysfs does (``0000:19:00.0``); ids are ``vendor:device`` (``10de:2330``).
    Modes are ``Enabled`` or ``Disabled``.  ``pcie_width`` is a number of lanes, ``pcie_gen`` a generation.
    Cards tell their temperature limits as degrees (``shutdown_c``), or from Hopper and Ada on as margins
    (``shutdown_margin_c``, signed) to the one in ``margin_c``, the degrees left.
    ``power_limit_w`` is the one in force; ``power_requested_limit_w`` what somebody asked for.
    ``event_reasons`` has all of EVENT_REASONS, ``fabric_health`` all of FABRIC_HEALTH.
    """

    # What it is
    address: Word = ABSENT
    index: Number = ABSENT
    minor_number: Number = ABSENT
    name: Word = ABSENT
    brand: Word = ABSENT
    architecture: Word = ABSENT
    uuid: Word = ABSENT
    serial: Word = ABSENT
    vbios: Word = ABSENT
    part_number: Word = ABSENT
    board_part_number: Word = ABSENT
    module_id: Word = ABSENT
    pci_id: Word = ABSENT
    subsystem_id: Word = ABSENT
    compute_capability: Word = ABSENT
    gsp_firmware_version: Word = ABSENT
    # Memory
    memory_total_mib: Number = ABSENT
    memory_reserved_mib: Number = ABSENT
    memory_used_mib: Number = ABSENT
    bar1_total_mib: Number = ABSENT
    # PCIe
    pcie_gen: Number = ABSENT
    pcie_gen_max: Number = ABSENT
    pcie_gen_device_max: Number = ABSENT
    pcie_gen_host_max: Number = ABSENT
    pcie_width: Number = ABSENT
    pcie_width_max: Number = ABSENT
    pcie_replays: Number = ABSENT
    pcie_replay_rollovers: Number = ABSENT
    pcie_tx_kb_s: Number = ABSENT
    pcie_rx_kb_s: Number = ABSENT
    # Modes
    persistence_mode: Word = ABSENT
    addressing_mode: Word = ABSENT
    mig_mode: Word = ABSENT
    mig_mode_pending: Word = ABSENT
    ecc_mode: Word = ABSENT
    ecc_mode_pending: Word = ABSENT
    compute_mode: Word = ABSENT
    display_active: Word = ABSENT
    driver_model: Word = ABSENT
    c2c_mode: Word = ABSENT
    virtualization_mode: Word = ABSENT
    host_vgpu_mode: Word = ABSENT
    vgpu_license_product: Word = ABSENT
    vgpu_license_status: Word = ABSENT
    vgpu_license_expiry: Word = ABSENT
    # Health
    ecc_volatile: EccCounts = EccCounts()
    ecc_aggregate: EccCounts = EccCounts()
    sram_threshold_exceeded: Flag = ABSENT
    channel_repair_pending: Flag = ABSENT
    tpc_repair_pending: Flag = ABSENT
    unrepairable_memory: Flag = ABSENT
    remapped_correctable: Number = ABSENT
    remapped_uncorrectable: Number = ABSENT
    remapped_pending: Flag = ABSENT
    remapped_failure: Flag = ABSENT
    retired_single_bit: Number = ABSENT
    retired_double_bit: Number = ABSENT
    retired_pending: Flag = ABSENT
    recovery_action: Word = ABSENT
    reset_required: Flag = ABSENT
    drain_and_reset_recommended: Flag = ABSENT
    event_reasons: Mapping[str, Flag] = field(default_factory=_absent_reasons)
    # Temperature
    temperature_c: Number = ABSENT
    memory_temperature_c: Number = ABSENT
    shutdown_c: Number = ABSENT
    slowdown_c: Number = ABSENT
    max_operating_c: Number = ABSENT
    memory_max_operating_c: Number = ABSENT
    margin_c: Number = ABSENT
    shutdown_margin_c: Number = ABSENT
    slowdown_margin_c: Number = ABSENT
    max_operating_margin_c: Number = ABSENT
    memory_max_operating_margin_c: Number = ABSENT
    fan_percent: Number = ABSENT
    # Power
    power_draw_w: Real = ABSENT
    power_limit_w: Real = ABSENT
    power_requested_limit_w: Real = ABSENT
    power_default_limit_w: Real = ABSENT
    power_min_limit_w: Real = ABSENT
    power_max_limit_w: Real = ABSENT
    module_power_draw_w: Real = ABSENT
    module_power_limit_w: Real = ABSENT
    # Clocks and load
    pstate: Word = ABSENT
    clock_graphics_mhz: Number = ABSENT
    clock_sm_mhz: Number = ABSENT
    clock_memory_mhz: Number = ABSENT
    clock_graphics_max_mhz: Number = ABSENT
    clock_sm_max_mhz: Number = ABSENT
    clock_memory_max_mhz: Number = ABSENT
    utilization_gpu_percent: Number = ABSENT
    utilization_memory_percent: Number = ABSENT
    processes: Number = ABSENT
    # Fabric
    fabric_state: Word = ABSENT
    fabric_status: Word = ABSENT
    fabric_clique: Word = ABSENT
    fabric_cluster_uuid: Word = ABSENT
    fabric_health: Mapping[str, Word] = field(default_factory=_absent_health)
    mig_devices: Tuple[MigDevice, ...] = ()

    def errors(self) -> Dict[str, str]:
        """The fields for which the card gave an error instead of a value, with its words.

        Those of a group have its name before theirs: ``ecc_volatile.sram_correctable``.
        """
        found: Dict[str, str] = {}
        for about in fields(self):
            value: Any = getattr(self, about.name)
            inner = vars(value) if isinstance(value, EccCounts) else value if isinstance(value, Mapping) else {}
            cells = {about.name: value, **{"%s.%s" % (about.name, name): cell for name, cell in inner.items()}}
            found.update(
                (name, cell.reason)
                for name, cell in cells.items()
                if isinstance(cell, Unknown) and cell.reason.startswith("error")
            )
        return found


@dataclass(frozen=True)
class LostGpu:
    """A GPU that nvidia-smi only complains about: it is on the bus, and does not answer."""

    address: Word
    index: Number
    reason: str


@dataclass(frozen=True)
class Log:
    """One output of nvidia-smi.

    ``source`` is xml, text, csv, table or list.  ``attached_gpus`` is what the output itself counts.
    ``is_complete``: as many GPUs are told as are attached and the output has its end; Unknown where the
    form does not say.  ``complaints`` are the lines that are no part of the form; ``lost`` are the GPUs that
    such a line is about.  ``schema`` is the DTD that XML names; nothing goes by it.
    """

    source: str
    driver_version: Word = ABSENT
    cuda_version: Word = ABSENT
    attached_gpus: Number = ABSENT
    gpus: Tuple[Gpu, ...] = ()
    is_complete: Flag = ABSENT
    complaints: Tuple[str, ...] = ()
    lost: Tuple[LostGpu, ...] = ()
    timestamp: Word = ABSENT
    schema: Word = ABSENT
