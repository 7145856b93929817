# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a host is and is made of, in a few short rows; what is not known is left out."""

from __future__ import annotations

from collections import Counter
from typing import Any, Iterable, List, Mapping, Optional, Sequence, Tuple

from .fleet_hardware import Device, hardware, memory_words, rows_of, size_words, text
from .fleet_links import number

Rows = List[Tuple[str, str]]


def fact_rows(facts: Mapping[str, Any], devices: Sequence[Device]) -> Rows:
    """Names and words of all that is known."""
    os_facts, cpu = _mapping(facts, "os"), _mapping(facts, "cpu")
    counts = [
        _many(known, one)
        for known, one in ((number(cpu.get(key)), key[:-1]) for key in ("sockets", "cores", "threads"))
        if known is not None
    ]
    kind = text(facts.get("virtualization"))
    rows = [
        ("Machine", _machine(facts)),
        ("System", text(os_facts.get("pretty_name"))),
        ("Kernel", text(facts.get("kernel"))),
        ("CPU", text(cpu.get("model"))),
        ("Cores", ", ".join(counts)),
        ("CPUs offline", text(cpu.get("offline"))),
        ("Memory", _memory(facts)),
        ("GPUs", _gpus(facts, devices)),
        ("NICs", _counted(device.model for device in devices if device.kind == "nic")),
        ("NVMe", _nvme(devices)),
        ("Power", _power(facts)),
        ("Firmware", _firmware(facts)),
        ("Virtual machine", kind if kind != "none" else ""),
    ]
    return [(name, words) for name, words in rows if words]


def _machine(facts: Mapping[str, Any]) -> str:
    system = _mapping(hardware(facts), "system")
    serial = text(system.get("serial"))
    words = [text(system.get("manufacturer")), text(system.get("product")), "(%s)" % serial if serial else ""]
    return " ".join(word for word in words if word)


def _memory(facts: Mapping[str, Any]) -> str:
    """What the nodes have, and the modules where somebody looked at them."""
    nodes = rows_of(facts.get("numa_nodes"))
    sizes = [number(row.get("memory_mib")) for row in nodes]
    words = [memory_words(sum(size for size in sizes if size is not None))] if sizes and None not in sizes else []
    dimms = [row for row in rows_of(hardware(facts).get("dimms")) if number(row.get("size_mib"))]
    if dimms:
        words.append(_counted(_dimm(row) for row in dimms))
    return ": ".join(words)


def _dimm(row: Mapping[str, Any]) -> str:
    size, rate = number(row.get("size_mib")) or 0, number(row.get("configured_mts"))
    words = ["%g GiB" % (size / 1024), text(row.get("type")), "at %d MT/s" % rate if rate else ""]
    return " ".join(word for word in words if word)


def _gpus(facts: Mapping[str, Any], devices: Sequence[Device]) -> str:
    gpus = [device.model for device in devices if device.kind == "gpu"]
    looked = bool(devices) or isinstance(hardware(facts).get("gpus"), list)
    return _counted(gpus) if gpus else "none" if looked else ""


def _nvme(devices: Sequence[Device]) -> str:
    return _counted(device.amount or size_words(None) for device in devices if device.kind == "nvme")


def _power(facts: Mapping[str, Any]) -> str:
    """How many supplies work; a bay without one counts as none."""
    there = [row for row in rows_of(hardware(facts).get("psus")) if row.get("present") is not False]
    if not there:
        return ""
    bad, unknown = (sum(row.get("ok") is state for row in there) for state in (False, None))
    words = _counted("%d W" % watt if watt else "supply" for watt in (number(row.get("capacity_w")) for row in there))
    words += ", %d not ok" % bad if bad else ""
    return words + (", %d unknown" % unknown if unknown else "")


def _firmware(facts: Mapping[str, Any]) -> str:
    bios, bmc = _mapping(hardware(facts), "bios"), _mapping(hardware(facts), "bmc")
    date = text(bios.get("date"))
    words = " ".join(word for word in (text(bios.get("version")), "(%s)" % date if date else "") if word)
    parts = ["BIOS " + words if words else "", "BMC " + text(bmc.get("firmware")) if text(bmc.get("firmware")) else ""]
    return ", ".join(part for part in parts if part)


def _mapping(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value: Optional[Any] = data.get(key)
    return value if isinstance(value, Mapping) else {}


def _counted(words: Iterable[str]) -> str:
    """Equal ones together: ``8 × ConnectX-7, 1 × E810``."""
    found = Counter(words).most_common()
    shown = ["%d × %s" % (count, word) if word else "%d" % count for word, count in found[:4]]
    return ", ".join(shown + (["and others"] if len(found) > 4 else []))


def _many(count: int, one: str) -> str:
    return "%d %s%s" % (count, one, "" if count == 1 else "s")
