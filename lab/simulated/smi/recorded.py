# Copyright: (c) 2026, gpufleet.host contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The recordings in ``recorded/``, and how a value is called in each of the outputs."""

from __future__ import annotations

import functools
import os
from typing import Mapping, NamedTuple

_FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "recorded")

DRIVER = "590.48.01"
CUDA = "13.1"
# In the XML these are written without the 0x of the text.
HEX = {
    f"pci/pci_{name}" for name in ("bus", "device", "domain", "base_class", "sub_class", "device_id", "sub_system_id")
}


class Row(NamedTuple):
    """A value: its element in the XML and its line in the text (both as paths), what was recorded.

    ``shown`` is the element where the card is one that calls it otherwise.
    """

    path: str
    label: str
    value: str
    shown: str


@functools.lru_cache(maxsize=None)
def rows() -> list[Row]:
    with open(os.path.join(_FOLDER, "h100-590.txt"), encoding="utf-8") as file:
        lines = [line.rstrip("\n").replace("·", " ") for line in file if not line.startswith("#")]
    parts = (line.split(" | ") for line in lines)
    return [Row(path, label.lstrip("-"), value if value != "-" else "", path) for path, label, value in parts]


def columns() -> dict[str, str]:
    """Of --query-gpu: column, with its unit, -> recorded cell."""
    with open(os.path.join(_FOLDER, "h100-590.csv"), encoding="utf-8") as file:
        head, cells = (line.rstrip("\n").split(", ") for line in file)
    return dict(zip(head, cells))


# Column of --query-gpu -> element of the XML, of what may differ from card to card or be troubled.
COLUMNS: Mapping[str, str] = {
    "name": "product_name",
    "serial": "serial",
    "uuid": "uuid",
    "pci.bus_id": "pci/pci_bus_id",
    "pci.domain": "pci/pci_domain",
    "pci.bus": "pci/pci_bus",
    "pci.device": "pci/pci_device",
    "pci.device_id": "pci/pci_device_id",
    "pci.sub_device_id": "pci/pci_sub_system_id",
    "pcie.link.gen.current": "pci/pci_gpu_link_info/pcie_gen/current_link_gen",
    "pcie.link.gen.gpucurrent": "pci/pci_gpu_link_info/pcie_gen/device_current_link_gen",
    "pcie.link.gen.max": "pci/pci_gpu_link_info/pcie_gen/max_link_gen",
    "pcie.link.gen.gpumax": "pci/pci_gpu_link_info/pcie_gen/max_device_link_gen",
    "pcie.link.gen.hostmax": "pci/pci_gpu_link_info/pcie_gen/max_host_link_gen",
    "pcie.link.width.current": "pci/pci_gpu_link_info/link_widths/current_link_width",
    "pcie.link.width.max": "pci/pci_gpu_link_info/link_widths/max_link_width",
    "vbios_version": "vbios_version",
    "inforom.img": "inforom_version/img_version",
    "inforom.oem": "inforom_version/oem_object",
    "inforom.ecc": "inforom_version/ecc_object",
    "gpu_recovery_action": "gpu_recovery_action",
    "pstate": "performance_state",
    "clocks_event_reasons.gpu_idle": "clocks_event_reasons/clocks_event_reason_gpu_idle",
    "clocks_event_reasons.hw_slowdown": "clocks_event_reasons/clocks_event_reason_hw_slowdown",
    "memory.total": "fb_memory_usage/total",
    "memory.reserved": "fb_memory_usage/reserved",
    "memory.used": "fb_memory_usage/used",
    "memory.free": "fb_memory_usage/free",
    "utilization.gpu": "utilization/gpu_util",
    "utilization.memory": "utilization/memory_util",
    "ecc.mode.current": "ecc_mode/current_ecc",
    "ecc.mode.pending": "ecc_mode/pending_ecc",
    "ecc.errors.corrected.volatile.total": "ecc_errors/volatile/dram_correctable",
    "ecc.errors.corrected.aggregate.total": "ecc_errors/aggregate/dram_correctable",
    "ecc.errors.uncorrected.volatile.device_memory": "ecc_errors/volatile/dram_uncorrectable",
    "ecc.errors.uncorrected.volatile.dram": "ecc_errors/volatile/dram_uncorrectable",
    "ecc.errors.uncorrected.volatile.total": "ecc_errors/volatile/dram_uncorrectable",
    "ecc.errors.uncorrected.aggregate.device_memory": "ecc_errors/aggregate/dram_uncorrectable",
    "ecc.errors.uncorrected.aggregate.dram": "ecc_errors/aggregate/dram_uncorrectable",
    "ecc.errors.uncorrected.aggregate.total": "ecc_errors/aggregate/dram_uncorrectable",
    "temperature.gpu": "temperature/gpu_temp",
    "temperature.gpu.tlimit": "temperature/gpu_temp_tlimit",
    "temperature.memory": "temperature/memory_temp",
    "power.draw": "gpu_power_readings/average_power_draw",
    "power.draw.average": "gpu_power_readings/average_power_draw",
    "power.draw.instant": "gpu_power_readings/instant_power_draw",
    "power.limit": "gpu_power_readings/current_power_limit",
    "enforced.power.limit": "gpu_power_readings/current_power_limit",
    "power.default_limit": "gpu_power_readings/default_power_limit",
    "power.min_limit": "gpu_power_readings/min_power_limit",
    "power.max_limit": "gpu_power_readings/max_power_limit",
    "clocks.current.graphics": "clocks/graphics_clock",
    "clocks.current.sm": "clocks/sm_clock",
    "clocks.current.memory": "clocks/mem_clock",
    "clocks.current.video": "clocks/video_clock",
    "clocks.max.graphics": "max_clocks/graphics_clock",
    "clocks.max.sm": "max_clocks/sm_clock",
    "clocks.max.memory": "max_clocks/mem_clock",
    "fabric.state": "fabric/state",
    "fabric.status": "fabric/status",
    "platform.module_id": "platformInfo/module_id",
}
# The other names that nvidia-smi takes for a column.
ALIASES: Mapping[str, str] = {
    "gpu_name": "name",
    "gpu_serial": "serial",
    "gpu_uuid": "uuid",
    "gpu_bus_id": "pci.bus_id",
    "ecc.mode": "ecc.mode.current",
    "clocks.gr": "clocks.current.graphics",
    "clocks.sm": "clocks.current.sm",
    "clocks.mem": "clocks.current.memory",
}
