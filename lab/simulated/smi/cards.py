# Copyright: (c) 2026, gpufleet.host contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A recorded GPU in a real slot, with what it was told to suffer from."""

from __future__ import annotations

from typing import Any, Mapping, NamedTuple

from .recorded import Row, rows
from .slots import Slot
from .troubles import Troubles

_LINK = "pci/pci_gpu_link_info/"

# What the A800 says otherwise.  Name, PCI id and link count: pci.ids and public reports; all else is what an
# A100-SXM4-80GB says, of which it is a cut (telegraf's recording of driver 535.54.03).
_A800 = {
    "product_name": "NVIDIA A800-SXM4-80GB",
    "product_architecture": "Ampere",
    "vbios_version": "92.00.36.00.02",
    "board_part_number": "692-2G506-0212-002",
    "gpu_part_number": "20F3-895-A1",
    "inforom_version/img_version": "G506.0212.00.01",
    "inforom_version/oem_object": "2.0",
    "inforom_version/ecc_object": "6.16",
    "c2c_mode": "N/A",
    "pci/pci_device_id": "0x20F310DE",
    "pci/pci_sub_system_id": "0x147F10DE",
    _LINK + "pcie_gen/max_device_link_gen": "4",
    "pci/atomic_caps_outbound": "N/A",
    "fb_memory_usage/total": "81920 MiB",
    "fb_memory_usage/reserved": "869 MiB",
    "fb_memory_usage/free": "81051 MiB",
    "remapped_rows/row_remapper_histogram/row_remapper_histogram_max": "640 bank(s)",
    "temperature/gpu_temp": "27 C",
    "temperature/gpu_temp_tlimit": "N/A",
    "temperature/gpu_temp_max_tlimit_threshold": "92 C",
    "temperature/gpu_temp_slow_tlimit_threshold": "89 C",
    "temperature/gpu_temp_max_gpu_tlimit_threshold": "85 C",
    "temperature/memory_temp": "44 C",
    "temperature/gpu_temp_max_mem_tlimit_threshold": "95 C",
    "gpu_power_readings/average_power_draw": "67.03 W",
    "gpu_power_readings/instant_power_draw": "67.03 W",
    "gpu_power_readings/current_power_limit": "400.00 W",
    "gpu_power_readings/requested_power_limit": "400.00 W",
    "gpu_power_readings/default_power_limit": "400.00 W",
    "gpu_power_readings/min_power_limit": "100.00 W",
    "gpu_power_readings/max_power_limit": "400.00 W",
    "max_clocks/graphics_clock": "1410 MHz",
    "max_clocks/sm_clock": "1410 MHz",
    "max_clocks/mem_clock": "1593 MHz",
    "max_clocks/video_clock": "1290 MHz",
    "max_customer_boost_clocks/graphics_clock": "1410 MHz",
    "fabric/state": "N/A",
    "fabric/status": "N/A",
    "fabric/cliqueId": "N/A",
    "fabric/clusterUuid": "N/A",
}
# What an operation on a GPU in error gives instead of a reading.
_READINGS = (
    "performance_state",
    "clocks_event_reasons/",
    "fb_memory_usage/used",
    "fb_memory_usage/free",
    "utilization/",
    "ecc_errors/volatile/",
    "temperature/gpu_temp",
    "temperature/memory_temp",
    "gpu_power_readings/average_power_draw",
    "gpu_power_readings/instant_power_draw",
    "clocks/",
)
_RECOVERY = {"ERR!": "Reset", "GPU requires reset": "Reset", "GPU is lost": "Reboot"}


class Model(NamedTuple):
    changes: Mapping[str, str]
    compute_cap: str
    links: int
    link_rate: str
    has_margins: bool


H100 = Model({}, "9.0", 18, "26.562 GB/s", has_margins=True)
MODELS = {"A800-SXM4-80GB": Model(_A800, "8.0", 8, "25 GB/s", has_margins=False)}


class Card(NamedTuple):
    """What nvidia-smi knows of one GPU; ``links``: whether each NVLink is active."""

    slot: Slot
    model: Model
    rows: list[Row]
    links: list[bool]
    link_errors: int = 0
    is_fallen: bool = False

    def value(self, path: str) -> str:
        return next(row.value for row in self.rows if row.path == path)


def cards(slots: list[Slot], troubles: Troubles) -> list[Card]:
    """The GPUs that nvidia-smi lists, in its order."""
    wrong = [troubles.of(index) for index in range(len(slots))]
    return [
        card(index, slot, wrong[index]) for index, slot in enumerate(slots) if wrong[index].get("lost") != "missing"
    ]


def card(index: int, slot: Slot, wrong: Mapping[str, Any]) -> Card:
    model = MODELS.get(wrong.get("model", ""), H100)
    plain = {row.path: row.value for row in rows()}
    values = {**plain, **model.changes, **_identity(index, slot)}
    values.update(_link(values, slot))
    values.update(_troubled(values, wrong))
    links = [number not in wrong.get("inactive_links", ()) for number in range(model.links)]
    shown = [_named(row, model)._replace(value=values[row.path]) for row in rows()]
    return Card(slot, model, shown, links, wrong.get("nvlink_errors", 0), wrong.get("lost") == "fallen")


def bus_id(slot: Slot) -> str:
    """As NVIDIA writes it: eight digits of domain, capital letters."""
    return "0000" + slot.address.upper()


def _identity(index: int, slot: Slot) -> dict[str, str]:
    """Numbers that no two GPUs share; from the address, so that they stay the same."""
    domain, bus, rest = slot.address.split(":")
    number = int(domain + bus, 16)
    return {
        "serial": f"165{number:010d}",
        "uuid": f"GPU-1ab00000-0000-4000-8000-{number:012x}",
        "pdi": f"0x{number:016x}",
        "minor_number": str(index),
        "board_id": f"0x{(int(bus, 16) << 8) + int(rest[:2], 16):x}",
        "platformInfo/module_id": str(index + 1),
        "pci/pci_domain": f"0x{domain.upper()}",
        "pci/pci_bus": f"0x{bus.upper()}",
        "pci/pci_device": f"0x{rest[:2].upper()}",
        "pci/pci_bus_id": bus_id(slot),
        "pci/replay_counter": "0",
    }


def _link(values: Mapping[str, str], slot: Slot) -> dict[str, str]:
    """The card can do what was recorded; the slot is what the kernel says."""
    card_gen = int(values[_LINK + "pcie_gen/max_device_link_gen"])
    found: dict[str, str] = {}
    if slot.max_gen is not None:
        found[_LINK + "pcie_gen/max_host_link_gen"] = str(slot.max_gen)
        found[_LINK + "pcie_gen/max_link_gen"] = str(min(card_gen, slot.max_gen))
    if slot.gen is not None:
        found[_LINK + "pcie_gen/current_link_gen"] = str(min(card_gen, slot.gen))
        found[_LINK + "pcie_gen/device_current_link_gen"] = str(min(card_gen, slot.gen))
    if slot.width is not None:
        found[_LINK + "link_widths/current_link_width"] = f"{slot.width}x"
    return found


def _troubled(values: Mapping[str, str], wrong: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    if "name" in wrong:
        found["product_name"] = wrong["name"]
    if "width" in wrong:
        found[_LINK + "link_widths/current_link_width"] = f"{wrong['width']}x"
    if "gen" in wrong:
        found[_LINK + "pcie_gen/current_link_gen"] = str(wrong["gen"])
        found[_LINK + "pcie_gen/device_current_link_gen"] = str(wrong["gen"])
    if "fabric" in wrong:
        # A fabric that is not done has no status yet; GB200 without one was seen with Success.
        found["fabric/state"] = wrong["fabric"]
        found["fabric/status"] = "Success" if wrong["fabric"] == "Not Supported" else "N/A"
    if "uncorrectable" in wrong:
        for kind in ("volatile", "aggregate"):
            found[f"ecc_errors/{kind}/dram_uncorrectable"] = str(wrong["uncorrectable"])
    if wrong.get("ecc") == "off":
        found.update({path: "N/A" for path in values if path.startswith("ecc_errors/") and values[path].isdigit()})
        found["ecc_mode/current_ecc"] = "Disabled"
    if "ecc" in wrong:
        found["ecc_mode/pending_ecc"] = "Disabled"
    if "error" in wrong:
        found.update({path: wrong["error"] for path in values if _is_reading(path)})
        found["gpu_recovery_action"] = _RECOVERY.get(wrong["error"], "None")
    return found


def _is_reading(path: str) -> bool:
    return any(path == place or (place.endswith("/") and path.startswith(place)) for place in _READINGS)


def _named(row: Row, model: Model) -> Row:
    """Cards before Hopper have absolute limits of temperature under names of their own, not margins."""
    if model.has_margins or "_tlimit_" not in row.path:
        return row
    return row._replace(shown=row.path.replace("_tlimit_", "_"), label=row.label.replace(" T.Limit", ""))
