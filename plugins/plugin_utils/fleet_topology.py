# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host's topology as drawings: one SVG a NUMA node, so that they flow on a phone as on a desk.

All words in them are escaped here; all colours come from the page's style sheet.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from markupsafe import Markup, escape

from .fleet_report import natural, unknown_reason, visible

WIDTH = 340
PAD = 14
CELL, GAP = 9, 2
PER_ROW = (WIDTH - 2 * PAD + GAP) // (CELL + GAP)
ROW_H, DISK_H = 38, 17
# As the dashes of .l-used and .l-free in the style sheet.
LANE, LANE_GAP = 5.75, 2.25
# A hostile host may claim any number of anything.
MAX_CPUS, MAX_DEVICES, MAX_NODES, MAX_CLUSTERS = 1024, 64, 64, 64

KINDS = {"gpu": "GPU", "nic": "NIC", "nvme": "NVMe", "storage": "Disk", "other": "PCI"}
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
# Transfer rate of each generation (PCI Express base specification).
GENERATIONS = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6}


@dataclass(frozen=True)
class Cluster:
    """CPUs of one node that belong together: a slice, the system's, or those of nobody."""

    name: str
    kind: str
    cpus: Tuple[int, ...]


@dataclass(frozen=True)
class Note:
    """What stands out about a link: ``narrow`` needs a look, ``limit`` is how it was built."""

    kind: str
    text: str


@dataclass(frozen=True)
class Node:
    """What is drawn of one NUMA node."""

    title: str
    socket: Optional[int]
    memory_mib: Optional[int]
    has_cpus: bool
    clusters: Tuple[Cluster, ...] = ()
    devices: Tuple[Mapping[str, Any], ...] = ()
    disks: Tuple[Mapping[str, Any], ...] = ()
    distances: str = ""
    is_place: bool = True
    uid: str = ""
    peer_memory_mib: int = 0
    disks_of: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)


def sockets(facts: Mapping[str, Any], areas: Mapping[str, Any], uid: str) -> List[Tuple[str, List[Markup]]]:
    """The drawings of a host: its sockets, each with those of its nodes; empty when nothing is known."""
    groups: Dict[str, List[Markup]] = {}
    for node in nodes(facts, areas, uid):
        name = "Elsewhere" if not node.is_place else "Socket unknown"
        if node.is_place and node.socket is not None:
            name = "Socket %d" % node.socket
        groups.setdefault(name, []).append(draw(node))
    return sorted(groups.items(), key=lambda item: (not item[0].startswith("Socket"), natural(item[0])))


def nodes(facts: Mapping[str, Any], areas: Mapping[str, Any], uid: str) -> List[Node]:
    """The NUMA nodes of a host with what hangs on each, and what hangs on none that is known."""
    devices = [row for row in _rows(facts.get("pci")) if isinstance(row.get("address"), str)]
    disks = _rows(facts.get("disks"))
    addresses = {device["address"] for device in devices}
    disks_of = {a: [d for d in disks if d.get("pci") == a] for a in addresses}
    loose = [disk for disk in disks if not any(disk.get("pci") == address for address in addresses)]
    slices = slices_of(areas)
    rows = [row for row in _rows(facts.get("numa_nodes")) if _int(row.get("id")) is not None][:MAX_NODES]
    known = {_int(row.get("id")) for row in rows}
    most = max([_int(row.get("memory_mib")) or 0 for row in rows] or [0])
    found = []
    for row in rows:
        number = _int(row.get("id"))
        cpus = cpu_list(row.get("cpus"))
        distances = row.get("distances")
        found.append(
            Node(
                title="NUMA node %s" % number,
                socket=_int(row.get("socket")),
                memory_mib=_int(row.get("memory_mib")),
                has_cpus=bool(cpus),
                clusters=tuple(clusters(cpus, slices)),
                devices=tuple(_ordered([d for d in devices if _int(d.get("numa_node")) == number])),
                disks=tuple(disk for disk in loose if _int(disk.get("numa_node")) == number),
                distances=" ".join(str(_int(d)) for d in distances) if isinstance(distances, list) else "",
                uid="%s-n%s" % (uid, number),
                peer_memory_mib=most,
                disks_of=disks_of,
            )
        )
    lost = [device for device in devices if _int(device.get("numa_node")) not in known]
    loose = [disk for disk in loose if _int(disk.get("numa_node")) not in known]
    if lost or loose:
        found.append(
            Node(
                title="No known node" if rows else "Devices",
                socket=None,
                memory_mib=None,
                has_cpus=False,
                devices=tuple(_ordered(lost)),
                disks=tuple(loose),
                is_place=False,
                uid="%s-lost" % uid,
                disks_of=disks_of,
            )
        )
    return found


def _rows(value: Any) -> List[Mapping[str, Any]]:
    return [row for row in value if isinstance(row, Mapping)] if isinstance(value, list) else []


def _int(value: Any) -> Optional[int]:
    """A number that is known, not a truth value, and not -1, which is sysfs for "not known"."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53 else None


def _number(value: Any) -> Optional[float]:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < 1e6 else None


def _ordered(devices: List[Mapping[str, Any]]) -> List[Mapping[str, Any]]:
    order = list(KINDS)
    return sorted(
        devices,
        key=lambda d: (order.index(d["kind"]) if d.get("kind") in order else 9, str(d["address"])),
    )


def cpu_list(text: Any) -> List[int]:
    """The CPUs of a kernel list such as ``0-3,8``, at most as many as can be drawn."""
    found: List[int] = []
    for part in (text if isinstance(text, str) else "").split(","):
        match = re.fullmatch(r"\s*([0-9]{1,6})(?:-([0-9]{1,6}))?\s*", part)
        if match:
            first, last = int(match[1]), int(match[2] or match[1])
            found += range(first, min(last, first + MAX_CPUS) + 1)
    return sorted(set(found))[:MAX_CPUS]


def as_ranges(cpus: Sequence[int]) -> str:
    """The reverse of :func:`cpu_list`."""
    parts: List[List[int]] = []
    for cpu in cpus:
        if parts and cpu == parts[-1][1] + 1:
            parts[-1][1] = cpu
        else:
            parts.append([cpu, cpu])
    return ",".join("%d" % a if a == b else "%d-%d" % (a, b) for a, b in parts)


def slices_of(areas: Mapping[str, Any]) -> List[Tuple[str, str, List[int]]]:
    """Name, kind (slice or system) and CPUs of what the area numa_slices observed last."""
    area = areas.get("numa_slices")
    observed = (area.get("after") or area.get("before")) if isinstance(area, Mapping) else None
    if not isinstance(observed, Mapping):
        return []
    found = [("system", "system", cpu_list(observed.get("housekeeping_cpus")))]
    found += [("gpu%s" % row.get("index"), "slice", cpu_list(row.get("cpus"))) for row in _rows(observed.get("gpus"))]
    return [row for row in found if row[2]][:MAX_CLUSTERS]


def clusters(cpus: Sequence[int], slices: Sequence[Tuple[str, str, List[int]]]) -> List[Cluster]:
    """The CPUs of a node by who has them; a CPU of two slices is drawn with the first."""
    left = list(cpus)
    found = []
    for name, kind, members in slices:
        mine = tuple(cpu for cpu in left if cpu in set(members))
        if mine:
            found.append(Cluster(name, kind, mine))
            left = [cpu for cpu in left if cpu not in mine]
    if left:
        found.append(Cluster("free" if found else "CPUs", "free", tuple(left)))
    return found


# --- links


def link_note(kind: str, link: Mapping[str, Any]) -> Optional[Note]:
    """What stands out about a link's width.  Its speed does not: idle links slow down by design."""
    width, card, slot = (_int(link.get(key)) or None for key in ("width", "max_width", "slot_width"))
    if width is None:
        return None
    if card and slot and width < min(card, slot):
        return Note("narrow", "runs x%d: card x%d, slot x%d" % (width, card, slot))
    if card and not slot and width < card:
        return Note("narrow", "runs x%d, the card has x%d" % (width, card))
    if card and slot and slot < card:
        return Note("narrow", "x%d card in a x%d slot" % (card, slot))
    if card and slot and card < slot and kind == "gpu":
        return Note("limit", "x%d card in a x%d slot" % (card, slot))
    return None


def link_notes(facts: Mapping[str, Any]) -> List[str]:
    """The devices whose link needs a look, each in a sentence."""
    devices = [row for row in _rows(facts.get("pci")) if isinstance(row.get("address"), str)]
    notes = [(device, link_note(str(device.get("kind")), _link(device))) for device in devices[:MAX_DEVICES]]
    return [
        "%s %s: %s" % (_kind(device), device["address"], note.text)
        for device, note in notes
        if note and note.kind == "narrow"
    ]


def link_words(link: Mapping[str, Any]) -> str:
    """Width and speed of a link."""
    width, speed = _int(link.get("width")) or None, _number(link.get("speed_gts"))
    if width is None and speed is None:
        return "link unknown"
    words = ["x%d" % width if width else "width unknown"]
    if speed is None:
        words.append("speed unknown")
    else:
        generation = GENERATIONS.get(speed)
        words.append("%g GT/s" % speed + (" (Gen%d)" % generation if generation else ""))
        most = [n for n in (_number(link.get("max_speed_gts")), _number(link.get("slot_speed_gts"))) if n]
        if most and speed < min(most):
            words.append("of %g" % min(most))
    return " · ".join(words[:2]) + (" " + words[2] if len(words) > 2 else "")


def size_words(size: Any) -> str:
    """A disk's size as its label has it."""
    number = _int(size)
    if number is None:
        return "size unknown"
    for unit, factor in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6)):
        if number >= factor:
            return "%.3g %s" % (number / factor, unit)
    return "%d B" % number


def memory_words(mib: Optional[int]) -> str:
    if mib is None:
        return "memory unknown"
    if mib == 0:
        return "no memory"
    return "%.0f GiB" % (mib / 1024) if mib >= 10240 else "%d MiB" % mib


def disk_words(disk: Mapping[str, Any]) -> str:
    """A disk in a line: name, size, array, mounts."""
    words = [str(disk.get("name") or "disk"), size_words(disk.get("size_bytes"))]
    holders, mounts = (_words(disk.get(key)) for key in ("holders", "mounts"))
    if holders:
        words.append("→ " + " ".join(holders))
    if mounts:
        words.append("→ " + " ".join(mounts))
    return " ".join(words)


def _words(value: Any) -> List[str]:
    return [str(item) for item in value] if isinstance(value, list) else []


# --- drawing


def _clip(text: str, limit: int) -> str:
    text = visible(" ".join(text.split()))
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _write(x: float, y: float, text: str, css: str = "", end: bool = False) -> str:
    anchor = ' text-anchor="end"' if end else ""
    return '<text x="%g" y="%g" class="%s"%s>%s</text>' % (x, y, css, anchor, escape(visible(text)))


def draw(node: Node) -> Markup:
    """The drawing of a node, with a title and a description in words for those who cannot see it."""
    parts: List[str] = []
    y = _draw_head(node, parts)
    y = _draw_cpus(node, parts, y)
    y = _draw_memory(node, parts, y)
    y = _draw_devices(node, parts, y)
    height = y + 8
    name = "%s-t %s-d" % (node.uid, node.uid)
    head = (
        '<svg class="node" role="img" aria-labelledby="%s" viewBox="0 0 %d %d" width="%d" height="%d">'
        '<title id="%s-t">%s</title><desc id="%s-d">%s</desc>'
        '<rect class="box" x="0.75" y="0.75" width="%g" height="%g" rx="8"/>'
    ) % (
        escape(name), WIDTH, height, WIDTH, height, escape(node.uid), escape(visible(node.title)),
        escape(node.uid), escape(visible(describe(node))), WIDTH - 1.5, height - 1.5,
    )  # fmt: skip
    return Markup(head + "".join(parts) + "</svg>")


def describe(node: Node) -> str:
    """The drawing in words."""
    words = ["%s: CPUs %s" % (c.name, as_ranges(c.cpus)) for c in node.clusters]
    if node.is_place:
        words.append(memory_words(node.memory_mib))
    for device in node.devices[:MAX_DEVICES]:
        link = _link(device)
        note = link_note(str(device.get("kind")), link)
        words.append(
            "%s %s, %s%s" % (_kind(device), device["address"], link_words(link), ", " + note.text if note else "")
        )
        words += [disk_words(disk) for disk in node.disks_of.get(device["address"], ())]
    words += [disk_words(disk) for disk in node.disks]
    return "; ".join(words[:200])


def _link(device: Mapping[str, Any]) -> Mapping[str, Any]:
    link = device.get("link")
    return link if isinstance(link, Mapping) and unknown_reason(link) is None else {}


def _kind(device: Mapping[str, Any]) -> str:
    return KINDS.get(str(device.get("kind")), "PCI")


def _draw_head(node: Node, parts: List[str]) -> int:
    parts.append(_write(PAD, 23, node.title, "t-head"))
    if node.is_place:
        count = sum(len(cluster.cpus) for cluster in node.clusters)
        parts.append(_write(WIDTH - PAD, 23, "%d CPUs" % count if node.has_cpus else "no CPUs", "t-soft", end=True))
    return 34


def _draw_cpus(node: Node, parts: List[str], y: int) -> int:
    number = 0
    for cluster in node.clusters:
        css = {"system": "c-system", "free": "c-free"}.get(cluster.kind, "c-slice%d" % (number % 6))
        number += cluster.kind == "slice"
        parts.append(_write(PAD, y + 10, _clip(cluster.name, 28), "t-name"))
        parts.append(_write(WIDTH - PAD, y + 10, _clip(as_ranges(cluster.cpus), 34), "t-mono", end=True))
        y += 16
        path = _cells(len(cluster.cpus), y, hollow=cluster.kind != "slice")
        title = "%s: CPUs %s" % (cluster.name, as_ranges(cluster.cpus))
        parts.append('<path class="%s" d="%s"><title>%s</title></path>' % (css, path, escape(visible(title))))
        y += ((len(cluster.cpus) + PER_ROW - 1) // PER_ROW) * (CELL + GAP) + 8
    return y


def _cells(count: int, y: int, hollow: bool) -> str:
    """A path of so many cells in rows: squares where they are hollow, else lines that a dash cuts.

    Those of a slice are filled and others hollow, so that they differ without any colour.
    """
    rows = [(row, min(PER_ROW, count - row * PER_ROW)) for row in range((count + PER_ROW - 1) // PER_ROW)]
    pitch = CELL + GAP
    if hollow:
        square = "h8v8h-8z"
        return "".join(
            "M%g %g%s" % (PAD + 0.5, y + row * pitch + 0.5, ("m%d 0" % pitch).join([square] * many))
            for row, many in rows
        )
    return "".join("M%d %gh%d" % (PAD, y + row * pitch + CELL / 2, many * pitch - GAP) for row, many in rows)


def _draw_memory(node: Node, parts: List[str], y: int) -> int:
    if not node.is_place:
        return y
    inner = WIDTH - 2 * PAD
    known = node.memory_mib is not None
    parts.append(_write(PAD, y + 10, "memory", "t-name"))
    words = memory_words(node.memory_mib) + (" · distances " + node.distances if node.distances else "")
    parts.append(_write(WIDTH - PAD, y + 10, _clip(words, 40), "t-mono", end=True))
    css = "m-rail" if known else "m-rail m-unknown"
    parts.append('<rect class="%s" x="%d" y="%d" width="%d" height="6" rx="3"/>' % (css, PAD, y + 16, inner))
    if node.memory_mib and node.peer_memory_mib:
        share = inner * node.memory_mib / node.peer_memory_mib
        parts.append(
            '<rect class="m-fill" x="%d" y="%d" width="%g" height="6" rx="3"/>' % (PAD, y + 16, round(share, 1))
        )
    return y + 32


def _draw_devices(node: Node, parts: List[str], y: int) -> int:
    top, trunk, last = y - 2, PAD + 3.5, y
    wires: List[str] = []
    for device in node.devices[:MAX_DEVICES]:
        link = _link(device)
        width = _int(link.get("width")) or 0
        thick = {16: 5, 8: 3, 4: 2}.get(width, 1.25)
        last = y + ROW_H // 2
        css = "wire" if width else "wire w-unknown"
        wires.append('<path class="%s" stroke-width="%g" d="M%g %dH%d"/>' % (css, thick, trunk, last, PAD + 18))
        y = _draw_device(device, link, node, parts, y)
    for disk in node.disks[:MAX_DEVICES]:
        last = y + DISK_H // 2
        wires.append('<path class="wire" stroke-width="1.25" d="M%g %dH%d"/>' % (trunk, last, PAD + 18))
        parts.append(_write(PAD + 24, y + 12, _clip(disk_words(disk), 46), "t-mono"))
        y += DISK_H
    if wires:
        parts.append('<path class="trunk" d="M%g %dV%d"/>' % (trunk, top, last))
        parts.append("".join(wires))
    hidden = len(node.devices) - MAX_DEVICES
    if hidden > 0:
        parts.append(_write(PAD + 24, y + 12, "and %d more devices" % hidden, "t-soft"))
        y += DISK_H
    return y


def _draw_device(device: Mapping[str, Any], link: Mapping[str, Any], node: Node, parts: List[str], y: int) -> int:
    note = link_note(str(device.get("kind")), link)
    disks = list(node.disks_of.get(device["address"], ()))[:8]
    height = ROW_H + (14 if note else 0) + DISK_H * len(disks)
    left, right = PAD + 18, WIDTH - PAD
    css = "dev" + (" dev-" + note.kind if note else "") + (" dev-gpu" if device.get("kind") == "gpu" else "")
    parts.append(
        '<rect class="%s" x="%d" y="%d" width="%d" height="%d" rx="5"/>' % (css, left, y, right - left, height)
    )
    vendor = str(device.get("vendor_id") or "")
    name = "%s %s" % (VENDORS.get(vendor, vendor), device.get("device_id") or "")
    if isinstance(device.get("driver"), str):
        name += " · " + device["driver"]
    parts.append(_write(left + 9, y + 15, _kind(device), "t-kind"))
    parts.append(_write(left + 52, y + 15, _clip(str(device["address"]), 15), "t-mono"))
    parts.append(_write(right - 9, y + 15, _clip(name, 21), "t-soft", end=True))
    parts.append(_lanes(link, left + 9, y + 22))
    parts.append(_write(left + 108, y + 30, _clip(link_words(link), 30), "t-mono"))
    y += ROW_H
    if note:
        parts.append('<use href="#i-%s" x="%d" y="%d" width="12" height="12"/>' % (note.kind, left + 9, y - 1))
        parts.append(_write(left + 26, y + 9, _clip(note.text, 44), "t-note"))
        y += 14
    for disk in disks:
        parts.append(_write(left + 9, y + 10, _clip(disk_words(disk), 44), "t-mono"))
        y += DISK_H
    return y + 6


def _lanes(link: Mapping[str, Any], x: int, y: int) -> str:
    """Lanes as ticks: tall those in use, low those that card or slot would have besides."""
    width = min(_int(link.get("width")) or 0, 16)
    most = min(max(_int(link.get(key)) or 0 for key in ("width", "max_width", "slot_width")), 16)
    parts = []
    if width:
        parts.append('<path class="l-used" d="M%d %dh%g"/>' % (x, y + 4, width * LANE - LANE_GAP))
    if most > width:
        start, length = x + width * LANE, (most - width) * LANE - LANE_GAP
        parts.append('<path class="l-free" d="M%g %dh%g"/>' % (start, y + 4, length))
    return "".join(parts)
