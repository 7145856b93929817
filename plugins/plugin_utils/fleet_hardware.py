# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The devices of a host as they are drawn: what the kernel, the tools and the findings say of each, joined.

Any of the three may be missing.  A report from a lone ``nvidia-smi -q -x`` has GPUs that no PCI row
knows; an older report has PCI rows that no tool spoke about.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from . import fleet_links as links
from .fleet_links import Mark, Verdict, number

KINDS = {"gpu": "GPU", "nic": "NIC", "nvme": "NVMe", "storage": "Storage", "other": "PCI"}
# Vendors by PCI id, for the devices that stand in GPU servers (pci.ids).
VENDORS = {
    "1002": "AMD",
    "1022": "AMD",
    "10de": "NVIDIA",
    "1000": "Broadcom",
    "1344": "Micron",
    "144d": "Samsung",
    "14e4": "Broadcom",
    "15b3": "Mellanox",
    "15b7": "SanDisk",
    "1af4": "virtio",
    "1b36": "QEMU",
    "1b96": "WD",
    "1bb1": "Seagate",
    "1c5c": "SK hynix",
    "1e0f": "Kioxia",
    "8086": "Intel",
}
# Linux drivers/net/ethernet/mellanox/mlx5/core/main.c, mlx5_core_pci_table; the odd ones are virtual functions.
MELLANOX = {
    "1013": "ConnectX-4",
    "1014": "ConnectX-4 VF",
    "1015": "ConnectX-4 Lx",
    "1016": "ConnectX-4 Lx VF",
    "1017": "ConnectX-5",
    "1018": "ConnectX-5 VF",
    "1019": "ConnectX-5 Ex",
    "101a": "ConnectX-5 Ex VF",
    "101b": "ConnectX-6",
    "101c": "ConnectX-6 VF",
    "101d": "ConnectX-6 Dx",
    "101e": "ConnectX VF",
    "101f": "ConnectX-6 Lx",
    "1021": "ConnectX-7",
    "1023": "ConnectX-8",
    "a2d2": "BlueField",
    "a2d6": "BlueField-2",
    "a2dc": "BlueField-3",
    "a2df": "BlueField-4",
}
UNSEEN = Verdict("unknown")
# Given to a virtual machine: gpu-run and numa_slices do not count these GPUs.
PASSED_THROUGH = ("vfio-pci", "pci-stub", "xen-pciback")
# A hostile host may claim any number of anything.
MAX_ROWS, MAX_NOTED = 512, 64


@dataclass(frozen=True)
class Device:
    """One device: what it is called, what it is, where it hangs, and how its link is judged."""

    kind: str
    label: str
    address: str
    model: str = ""
    amount: str = ""
    driver: str = ""
    node: Optional[int] = None
    path: Tuple[str, ...] = ()
    link: str = "link unknown"
    lanes: Tuple[int, int] = (0, 0)
    verdict: Verdict = UNSEEN
    about: Tuple[Mark, ...] = ()
    marks: Tuple[Mark, ...] = ()
    disks: Tuple[str, ...] = ()
    nvlink: Tuple[Optional[int], Optional[int]] = (None, None)
    nvlink_verdict: Verdict = UNSEEN

    @property
    def worst(self) -> Verdict:
        """The card as a whole: the worst that was found about it, of whatever kind, or whether its link was seen."""
        states = [self.verdict.state, *(mark.state for mark in self.marks)]
        # Without a finding, links that a GPU may not even have say nothing.
        states += [self.nvlink_verdict.state] if self.nvlink_verdict.notes else []
        return Verdict(max((state for state in states if state in links.ORDER), key=links.ORDER.index))

    @property
    def port(self) -> str:
        """The root port that it hangs on without any switch."""
        return self.path[0] if len(self.path) == 1 else ""

    @property
    def switch(self) -> str:
        """The switch nearest to it: between root port and device are its upstream and its downstream port."""
        return self.path[-2] if len(self.path) >= 3 else ""


def devices(facts: Mapping[str, Any], judged: links.Judgements) -> List[Device]:
    """All devices, GPUs first, then by address."""
    seen = hardware(facts)
    told = {kind: _by_address(seen.get(key)) for key, kind in (("gpus", "gpu"), ("nics", "nic"), ("nvme", "nvme"))}
    rows = {links.address_of(row.get("address")): row for row in rows_of(facts.get("pci"))}
    for kind, seen_by in told.items():
        for address in seen_by:
            rows.setdefault(address, {"address": address, "kind": kind})
    order = list(KINDS)
    kinds = {address: row["kind"] if row.get("kind") in order else "other" for address, row in rows.items() if address}
    addresses = sorted(kinds, key=lambda address: (order.index(kinds[address]), address))[:MAX_ROWS]
    counted = [a for a in addresses if kinds[a] == "gpu" and rows[a].get("driver") not in PASSED_THROUGH]
    disks: Dict[str, List[Mapping[str, Any]]] = {}
    for disk in rows_of(facts.get("disks")):
        disks.setdefault(links.address_of(disk.get("pci")), []).append(disk)
    found = []
    for address in addresses:
        label = "GPU %d" % counted.index(address) if address in counted else KINDS[kinds[address]]
        row, tool = rows[address], told.get(kinds[address], {}).get(address, {})
        found.append(_device(kinds[address], label, address, row, tool, disks.get(address, []), judged))
    return found


def loose_disks(facts: Mapping[str, Any], found: Sequence[Device]) -> List[Mapping[str, Any]]:
    """Disks that hang on no device that is drawn, those of an ``nvme list`` without addresses too."""
    addresses = {device.address for device in found}
    disks = [disk for disk in rows_of(facts.get("disks")) if links.address_of(disk.get("pci")) not in addresses]
    # A drive may be named by its controller: nvme0 has the disk nvme0n1.
    names = {_controller(text(disk.get("name"))) for disk in rows_of(facts.get("disks"))}
    others = [row for row in rows_of(hardware(facts).get("nvme")) if not links.address_of(row.get("address"))]
    return disks + [row for row in others if _controller(text(row.get("name"))) not in names]


def _controller(name: str) -> str:
    """``nvme0`` of ``nvme0n1``."""
    return re.sub("^(nvme[0-9]+)n[0-9]+$", r"\1", name)


def link_notes(found: Sequence[Device], judged: links.Judgements) -> List[str]:
    """The devices whose link needs a look, each in a sentence; none where findings tell them."""
    odd = [] if judged.is_judged else [device for device in found[:MAX_NOTED] if device.verdict.state == "drifted"]
    return ["%s %s: %s" % (device.label, device.address, device.verdict.notes[0].words) for device in odd]


def hardware(facts: Mapping[str, Any]) -> Mapping[str, Any]:
    seen = facts.get("hardware")
    return seen if isinstance(seen, Mapping) else {}


def rows_of(value: Any) -> List[Mapping[str, Any]]:
    return [row for row in value if isinstance(row, Mapping)][:MAX_ROWS] if isinstance(value, list) else []


def text(value: Any) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""


def _by_address(value: Any) -> Dict[str, Mapping[str, Any]]:
    rows = {links.address_of(row.get("address")): row for row in rows_of(value)}
    return {address: row for address, row in rows.items() if address}


def _device(
    kind: str,
    label: str,
    address: str,
    row: Mapping[str, Any],
    tool: Mapping[str, Any],
    disks: Sequence[Mapping[str, Any]],
    judged: links.Judgements,
) -> Device:
    link = links.link_of(row, tool if kind == "gpu" else {})
    node = number(row.get("numa_node"))
    path = row.get("path")
    known: Dict[str, Any] = {
        "driver": text(row.get("driver")),
        "node": number(tool.get("numa_node")) if node is None else node,
        "path": tuple(links.address_of(step) for step in path) if isinstance(path, list) else (),
        "link": links.words(link),
        "lanes": links.lanes(link),
        "verdict": links.verdict(kind, address, link, judged),
        "disks": tuple(disk_words(disk) for disk in disks[:8]),
        "model": _model_by_id(row, tool),
    }
    names = [address, text(tool.get("name")), *(text(disk.get("name")) for disk in disks)]
    # nvidia-smi's number of a GPU, a NIC's interfaces, the controller of a drive: findings may call it so.
    names += [label] if label not in KINDS.values() else []
    names += [text(item) for item in tool["netdevs"]] if isinstance(tool.get("netdevs"), list) else []
    names += [_controller(name) for name in names if _controller(name) != name]
    known.update(_AS.get(kind, _as_other)(label, address, tool, disks, judged, known))
    return Device(**{"kind": kind, "label": label, "address": address, "marks": _marks(names, judged), **known})


def _marks(names: Sequence[str], judged: links.Judgements) -> Tuple[Mark, ...]:
    return links.other_marks(list(dict.fromkeys(names)), judged)


def _model_by_id(row: Mapping[str, Any], tool: Mapping[str, Any]) -> str:
    vendor, device = text(row.get("vendor_id")), text(row.get("device_id"))
    if not vendor and ":" in text(tool.get("pci_id")):
        vendor, _colon, device = text(tool.get("pci_id")).partition(":")
    if vendor == "15b3" and device in MELLANOX:
        return MELLANOX[device]
    return " ".join(word for word in (VENDORS.get(vendor, vendor), device) if word)


def _as_gpu(
    label: str, address: str, tool: Mapping[str, Any], disks: Any, judged: links.Judgements, known: Mapping[str, Any]
) -> Dict[str, Any]:
    name, catalogue = _short(text(tool.get("name"))), _short(text(tool.get("model")))
    active, expected = number(tool.get("nvlink_active")), number(tool.get("nvlink_expected"))
    nvlink = links.nvlink_verdict(address, active, judged)
    about = []
    if name and catalogue and name.lower() != catalogue.lower():
        about.append(Mark("info", "its PCI id says %s" % catalogue))
    said, matters = nvlink_words(active, expected), links.nvlink_matters(address, judged)
    if expected or active or matters:
        about.append(Mark(nvlink.state, links.clip(" · ".join(word for word in [said, *matters] if word))))
    memory = number(tool.get("memory_mib"))
    return {
        "model": name or catalogue or known["model"],
        "amount": memory_words(memory) if memory else "",
        "about": tuple(about),
        "nvlink": (active, expected),
        "nvlink_verdict": nvlink,
    }


def _as_nic(
    label: str, address: str, tool: Mapping[str, Any], disks: Any, judged: links.Judgements, known: Mapping[str, Any]
) -> Dict[str, Any]:
    name, speed = text(tool.get("name")), links.rate(tool.get("rate_gbps"))
    netdevs = [text(item) for item in tool["netdevs"]] if isinstance(tool.get("netdevs"), list) else []
    ports, state = number(tool.get("ports")) or 0, text(tool.get("state"))
    words = [*(item for item in netdevs if item and item != name), text(tool.get("link_layer"))]
    words += ["%d ports" % ports] if ports > 1 else []
    words += [state] if state else ["state unknown"] if tool else []
    about = [Mark(_port_icon(state), " · ".join(word for word in words if word))] if any(words) else []
    return {
        "label": "%s %s" % (label, name) if name else label,
        "amount": "%g Gb/s" % speed if speed else "",
        "about": tuple(about),
    }


def _port_icon(state: str) -> str:
    """Up and down are what a port is, not whether it should be: findings judge that."""
    if not state:
        return "unknown"
    return "up" if re.search(r"\b(active|up|linkup|link_up)\b", state.lower()) else "down"


def _as_nvme(
    label: str, address: str, tool: Mapping[str, Any], disks: Any, judged: links.Judgements, known: Mapping[str, Any]
) -> Dict[str, Any]:
    rows = list(disks) or ([tool] if tool else [])
    models = [text(row.get("model")) for row in [*rows, tool]]
    found: Dict[str, Any] = {"model": next((model for model in models if model), known["model"])}
    if len(rows) == 1:
        name, size = text(rows[0].get("name")), number(rows[0].get("size_bytes"))
        uses = uses_words(rows[0])
        found.update(label="%s %s" % (label, name) if name else label, disks=(uses,) if uses else ())
        found["amount"] = size_words(size) if size is not None else ""
    return found


def _as_other(
    label: str, address: str, tool: Mapping[str, Any], disks: Any, judged: links.Judgements, known: Mapping[str, Any]
) -> Dict[str, Any]:
    return {}


_AS = {"gpu": _as_gpu, "nic": _as_nic, "nvme": _as_nvme}


def _short(name: str) -> str:
    return name[len("NVIDIA ") :] if name.startswith("NVIDIA ") else name


# --- in words


def nvlink_words(active: Optional[int], expected: Optional[int]) -> str:
    """How many NVLinks of a GPU are up."""
    if active is None:
        return "NVLink unknown" if expected else ""
    if expected:
        return "NVLink %d of %d" % (active, expected)
    return "%d NVLinks" % active if active else "no NVLink"


def size_words(size: Any) -> str:
    """A disk's size as its label has it."""
    count = number(size)
    if count is None:
        return "size unknown"
    for unit, factor in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6)):
        if count >= factor:
            return "%.3g %s" % (count / factor, unit)
    return "%d B" % count


def memory_words(mib: Optional[int]) -> str:
    if mib is None:
        return "memory unknown"
    if mib == 0:
        return "no memory"
    return "%.0f GiB" % (mib / 1024) if mib >= 10240 else "%d MiB" % mib


def uses_words(disk: Mapping[str, Any]) -> str:
    """What a disk is used for: the array above it, where it is mounted."""
    parts = [
        " ".join(str(item) for item in disk[key]) for key in ("holders", "mounts") if isinstance(disk.get(key), list)
    ]
    return links.clip(" ".join("→ " + part for part in parts if part), 80)


def disk_words(disk: Mapping[str, Any]) -> str:
    """A disk in a line: name, size, array, mounts."""
    words = [text(disk.get("name")) or "disk", size_words(disk.get("size_bytes")), uses_words(disk)]
    return links.clip(" ".join(word for word in words if word), 120)
