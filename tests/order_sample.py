# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A delivery as it was ordered in inventories/example/orders/h100.yml, and changes to it by path."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

from ansible_collections.gpufleet.host.plugins.plugin_utils import fleet_report as fleet
from ansible_collections.gpufleet.host.plugins.plugin_utils.order import Order, read_order
from ansible_collections.gpufleet.host.plugins.plugin_utils.order_lot import Seen
from tests import fleet_sample

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "inventories/example/orders/h100.yml"
GPU_BUSES = ("19", "3b", "4c", "5d", "9b", "bb", "cb", "db")
NIC_BUSES = ("18", "3a", "4b", "5c", "9a", "ba", "ca", "da")
HOSTILE = "<script>flag('part')</script>"


def example() -> Order:
    return read_order(EXAMPLE.read_text(encoding="utf-8"), str(EXAMPLE))


def hardware(number: int = 1) -> dict[str, Any]:
    """The hardware facts of host gpu-a0N; every serial number is its own."""
    return {
        "gpus": [_gpu(number, at, bus) for at, bus in enumerate(GPU_BUSES)],
        "nvlink": {"switches": 4, "pairs": _mesh("NV18")},
        "cpus": [{"socket": at, "model": "Intel(R) Xeon(R) Platinum 8480+", "cores": 56} for at in range(2)],
        "dimms": [_dimm(number, at) for at in range(32)],
        "nvme": [_boot(number, at) for at in range(2)] + [_drive(number, at) for at in range(2, 10)],
        "nics": [_hca(at, bus) for at, bus in enumerate(NIC_BUSES)]
        + [
            _port("0000:29:00.%d" % at, "15b3:101d", "ens7f%dnp%d" % (at, at), "22.39.1002 (MT_0000000359)", 100)
            for at in range(2)
        ]
        + [_port("0000:05:00.%d" % at, "8086:1563", "eno%d" % (at + 1), "3.60 0x80001e1a", 10) for at in range(2)],
        "psus": [{"name": "PSU%d" % (at + 1), "present": True, "ok": True, "capacity_w": 3000} for at in range(6)],
        "bios": {"vendor": "American Megatrends International, LLC.", "version": "2.1", "date": "11/20/2023"},
        "bmc": {"firmware": "01.03.18"},
        "system": {"manufacturer": "Supermicro", "product": "SYS-821GE-TNHR", "serial": "A521893X41008%02d" % number},
    }


def _gpu(number: int, at: int, bus: str) -> dict[str, Any]:
    return {
        "address": "0000:%s:00.0" % bus,
        "name": "NVIDIA H100 80GB HBM3",
        "pci_id": "10de:2330",
        "subsystem_id": "10de:16c1",
        "model": "NVIDIA H100 80GB HBM3",
        "memory_mib": 81559,
        "nvlink_active": 18,
        "nvlink_expected": 18,
        "serial": "16509230%02d%03d" % (number, at),
        "vbios": "96.00.89.00.01",
        "uuid": "GPU-%08x-0000-4000-8000-%012x" % (number, at),
        "width": 16,
        "max_width": 16,
        "gen": 1,
        "max_gen": 5,
        "numa_node": at // 4,
    }


def _mesh(kind: str) -> list[dict[str, str]]:
    addresses = ["0000:%s:00.0" % bus for bus in GPU_BUSES]
    return [{"a": a, "b": b, "type": kind} for at, a in enumerate(addresses) for b in addresses[at + 1 :]]


def _dimm(number: int, at: int) -> dict[str, Any]:
    return {
        "locator": "P%d-DIMM%s%d" % (at // 16 + 1, "ABCDEFGH"[at % 16 // 2], at % 2 + 1),
        "size_mib": 65536,
        "type": "DDR5",
        "rated_mts": 4800,
        "configured_mts": 4400,
        "manufacturer": "Samsung",
        "part": "M321R8GA0BB0-CQKZJ",
        "serial": "80CE0123%02d%04d" % (number, at),
    }


def _boot(number: int, at: int) -> dict[str, Any]:
    return {
        "name": "nvme%dn1" % at,
        "model": "SAMSUNG MZ1L2960HCJR-00A07",
        "serial": "S665NE0T%02d%04d" % (number, at),
        "firmware": "GDC7302Q",
        "size_bytes": 960197124096,
        "address": "0000:01:00.%d" % at,
    }


def _drive(number: int, at: int) -> dict[str, Any]:
    return {
        "name": "nvme%dn1" % at,
        "model": "SAMSUNG MZQL23T8HCLS-00A07",
        "serial": "S64HNE0T%02d%04d" % (number, at),
        "firmware": "GDC5602Q",
        "size_bytes": 3840755982336,
        "address": "0000:6%x:00.0" % at,
    }


def _hca(at: int, bus: str) -> dict[str, Any]:
    return {
        "address": "0000:%s:00.0" % bus,
        "pci_id": "15b3:1021",
        "name": "mlx5_%d" % at,
        "netdevs": ["ibp%ds0" % int(bus, 16)],
        "firmware": "28.39.2048 (MT_0000000838)",
        "rate_gbps": 400,
        "link_layer": "InfiniBand",
        "state": "ACTIVE",
        "ports": 1,
    }


def _port(address: str, pci_id: str, name: str, firmware: str, rate: int) -> dict[str, Any]:
    return {
        "address": address,
        "pci_id": pci_id,
        "name": name,
        "netdevs": [name],
        "firmware": firmware,
        "rate_gbps": rate,
        "link_layer": "Ethernet",
        "state": "up",
        "ports": 1,
    }


def larger_drives(facts: dict[str, Any]) -> dict[str, Any]:
    """What gpu-a08 was ordered with."""
    for row in facts["nvme"][2:]:
        row.update(model="SAMSUNG MZQL27T6HBLA-00A07", size_bytes=7681501126656)
    return facts


# --- changes


_STEP = re.compile(r"\.?([a-z_]+)|\[(\d+|\*)\]")


def changed(facts: Any, changes: dict[str, Any]) -> Any:
    """The facts with some values replaced by path: ``gpus[*].memory_mib``; a value of "!gone" removes."""
    facts = copy.deepcopy(facts)
    for path, value in changes.items():
        steps = [name or (int(at) if at != "*" else "*") for name, at in _STEP.findall(path)]
        _change(facts, steps, value)
    return facts


def _change(at: Any, steps: list[Any], value: Any) -> None:
    step, rest = steps[0], steps[1:]
    places = range(len(at)) if step == "*" else [step]
    for place in reversed(list(places)):
        if rest:
            _change(at[place], rest, value)
        elif value == "!gone":
            del at[place]
        elif isinstance(at, list) and place == len(at):
            at.append(copy.deepcopy(value))
        else:
            at[place] = copy.deepcopy(value)


# --- reports


def report(name: str, facts: Any, findings: list[dict[str, Any]] | None = None) -> fleet.Document:
    """The report of a host with these hardware facts."""
    document = fleet.new_document(name, fleet_sample.RUN, fleet_sample.TAKEN)
    document["host_facts"] = {"hostname": name, "hardware": facts}
    if findings:
        document["areas"]["platform"] = {
            "state": "blocked", "steps": [], "findings": findings, "before": {}, "after": {},
        }  # fmt: skip
    made = fleet.normalise(document)
    assert made is not None
    return made


def lot() -> list[Seen]:
    """All eight hosts as they were ordered."""
    seen = []
    for number in range(1, 9):
        facts = larger_drives(hardware(number)) if number == 8 else hardware(number)
        name = "gpu-a%02d.example.com" % number
        seen.append(Seen(name, report(name, facts)))
    return seen


NARROW = {
    "id": "platform.link-width",
    "level": "fail",
    "subject": "0000:3b:00.0",
    "expected": "x16",
    "observed": "x8",
    "why": "card and slot can do x16, and width never drops to save power",
    "fix": "reseat the card, look at riser and bifurcation",
    "source": "PCI Express Base Specification",
}
