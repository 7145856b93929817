# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where everything in a host is: sockets, NUMA nodes with their CPUs and memory, switches and devices.

A model without any markup: templates/topology.html.j2 draws it, in parts that flow on a phone as on a desk.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from .fleet_hardware import (
    Device,
    disk_words,
    hardware,
    loose_disks,
    memory_words,
    rows_of,
    text,
)
from .fleet_links import number
from .fleet_report import natural

# Sockets with so few devices a node stand side by side.
FEW = 4
# A hostile host may claim any number of anything.
MAX_CPUS, MAX_DEVICES, MAX_NODES, MAX_CLUSTERS = 1024, 64, 64, 64


@dataclass(frozen=True)
class Cluster:
    """CPUs of one node that belong together: a slice, the system's, those of nobody, or nobody knows whose."""

    name: str
    kind: str
    cpus: Tuple[int, ...]
    colour: int = 0

    @property
    def ranges(self) -> str:
        return as_ranges(self.cpus)


@dataclass(frozen=True)
class Branch:
    """Devices below one PCIe switch; those that hang on root ports, or nobody knows where, have none."""

    switch: str
    root: str
    devices: Tuple[Device, ...]


@dataclass(frozen=True)
class Node:
    """What is drawn of one NUMA node.  ``is_place`` is False for what has no known node."""

    title: str
    socket: Optional[int] = None
    is_place: bool = True
    cpu_words: str = ""
    memory: str = ""
    share: Optional[float] = None
    distances: str = ""
    clusters: Tuple[Cluster, ...] = ()
    branches: Tuple[Branch, ...] = ()
    disks: Tuple[str, ...] = ()
    left_out: int = 0


@dataclass(frozen=True)
class Socket:
    title: str
    about: str
    nodes: Tuple[Node, ...]


@dataclass(frozen=True)
class Slices:
    """Who has which CPUs, as the area numa_slices saw it last.  ``rest`` has those that no row names."""

    rows: Tuple[Tuple[str, str, Tuple[int, ...]], ...] = ()
    rest: str = "none"


def sockets(facts: Mapping[str, Any], areas: Mapping[str, Any], found: Sequence[Device]) -> List[Socket]:
    """The parts of a host, each with its nodes and of the devices found; empty when nothing is known."""
    groups: Dict[str, List[Node]] = {}
    for node in nodes(facts, areas, found):
        name = "Place not known" if not node.is_place else "Socket unknown"
        if node.is_place and node.socket is not None:
            name = "Socket %d" % node.socket
        groups.setdefault(name, []).append(node)
    about = _processors(facts)
    ordered = sorted(groups.items(), key=lambda item: (not item[0].startswith("Socket"), natural(item[0])))
    return [Socket(name, about.get(name, ""), tuple(own)) for name, own in ordered]


def are_small(found: Sequence[Socket]) -> bool:
    """Whether sockets fit beside one another."""
    return all(sum(len(branch.devices) for branch in node.branches) <= FEW for one in found for node in one.nodes)


def nodes(facts: Mapping[str, Any], areas: Mapping[str, Any], found: Sequence[Device]) -> List[Node]:
    """The NUMA nodes of a host with what hangs on each, and what hangs on none that is known."""
    loose = loose_disks(facts, found)
    rows = [row for row in rows_of(facts.get("numa_nodes")) if number(row.get("id")) is not None][:MAX_NODES]
    slices = slices_of(areas)
    known = {number(row.get("id")) for row in rows}
    most = max([number(row.get("memory_mib")) or 0 for row in rows] or [0])
    made = []
    for row in rows:
        own = [device for device in found if device.node == number(row.get("id"))]
        own_disks = [disk for disk in loose if number(disk.get("numa_node")) == number(row.get("id"))]
        made.append(_node(row, slices, own, own_disks, most))
    lost = [device for device in found if device.node not in known]
    lost_disks = [disk for disk in loose if number(disk.get("numa_node")) not in known]
    if lost or lost_disks:
        title = "No known NUMA node" if rows else "Devices"
        made.append(Node(title=title, is_place=False, **_hangs(lost, lost_disks)))
    return made


def _node(
    row: Mapping[str, Any], slices: Slices, own: Sequence[Device], disks: Sequence[Mapping[str, Any]], most: int
) -> Node:
    cpus, memory, distances = cpu_list(row.get("cpus")), number(row.get("memory_mib")), row.get("distances")
    words = "%d CPUs" % len(cpus) if cpus else "no CPUs" if isinstance(row.get("cpus"), str) else "CPUs unknown"
    return Node(
        title="NUMA node %s" % number(row.get("id")),
        socket=number(row.get("socket")),
        cpu_words=words,
        memory=memory_words(memory),
        share=None if memory is None else memory / most if most else 0.0,
        distances=" ".join(str(number(d)) for d in distances[:MAX_NODES]) if isinstance(distances, list) else "",
        clusters=tuple(clusters(cpus, slices, "node%s" % number(row.get("id")))),
        **_hangs(own, disks),
    )


def _hangs(own: Sequence[Device], disks: Sequence[Mapping[str, Any]]) -> Dict[str, Any]:
    shown = own[:MAX_DEVICES]
    return {
        "branches": tuple(branches(shown)),
        "disks": tuple(disk_words(disk) for disk in disks[:MAX_DEVICES]),
        "left_out": len(own) - len(shown) + max(0, len(disks) - MAX_DEVICES),
    }


def branches(own: Sequence[Device]) -> List[Branch]:
    """Devices by the switch above them, those with GPUs first; what has none comes last."""
    groups: Dict[str, List[Device]] = {}
    for device in own:
        groups.setdefault(device.switch, []).append(device)
    direct = groups.pop("", [])
    below = [Branch(switch, found[0].path[0], tuple(found)) for switch, found in groups.items()]
    return below + ([Branch("", "", tuple(direct))] if direct else [])


def _processors(facts: Mapping[str, Any]) -> Dict[str, str]:
    """The processor in each socket, where it is known."""
    rows = rows_of(hardware(facts).get("cpus"))
    found = {}
    for place, row in zip(_places([row.get("socket") for row in rows]), rows, strict=True):
        cores = number(row.get("cores"))
        words = [text(row.get("model")), "%d cores" % cores if cores else ""]
        if place is not None:
            found["Socket %d" % place] = " · ".join(word for word in words if word)
    return found


def _places(names: Sequence[Any]) -> List[Optional[int]]:
    """Numbers of sockets as the kernel has them: firmware calls them CPU1 and CPU2, or P0 and P1."""
    matches = [re.search(r"([0-9]{1,3})\D*$", text(name)) for name in names]
    labels = [int(match[1]) if match else None for match in matches]
    least = min([label for label in labels if label is not None] or [0])
    return [
        number(name) if number(name) is not None else label if label is None else label - least
        for name, label in zip(names, labels, strict=True)
    ]


# --- CPUs


def cpu_list(words: Any) -> List[int]:
    """The CPUs of a list such as ``0-3,8`` or ``0-14:2``, at most as many as can be drawn."""
    found: List[int] = []
    for part in (words if isinstance(words, str) else "").split(","):
        match = re.fullmatch(r"\s*([0-9]{1,6})(?:-([0-9]{1,6})(?::([0-9]{1,4}))?)?\s*", part)
        if match:
            first, last, step = int(match[1]), int(match[2] or match[1]), max(int(match[3] or 1), 1)
            found += range(first, min(last, first + MAX_CPUS * step) + 1, step)
    return sorted(set(found))[:MAX_CPUS]


def as_ranges(cpus: Sequence[int]) -> str:
    """The reverse of :func:`cpu_list`.  Every second CPU, as on some Intel hosts, is ``0-14:2`` (taskset(1))."""
    parts: List[str] = []
    at = 0
    while at < len(cpus):
        step = cpus[at + 1] - cpus[at] if at + 1 < len(cpus) else 1
        end = at
        while end + 1 < len(cpus) and cpus[end + 1] - cpus[end] == step:
            end += 1
        # Two or three CPUs apart are easier read as they are.
        if step > 1 and end - at < 3:
            end = at
        if end == at:
            parts.append("%d" % cpus[at])
        else:
            parts.append("%d-%d" % (cpus[at], cpus[end]) + (":%d" % step if step > 1 else ""))
        at = end + 1
    return ",".join(parts)


def slices_of(areas: Mapping[str, Any]) -> Slices:
    """Who has which CPUs.

    The area names the CPUs of GPUs' slices and those that no slice has at all, so what is left over
    belongs to the slice of its node.  Where it could not see the latter, nobody knows.
    """
    area = areas.get("numa_slices")
    observed = (area.get("after") or area.get("before")) if isinstance(area, Mapping) else None
    if not isinstance(observed, Mapping):
        return Slices()
    rows = [("system", "system", tuple(cpu_list(observed.get("housekeeping_cpus"))))]
    gpus = [row for row in rows_of(observed.get("gpus")) if row.get("slice") is not False]
    rows += [("gpu%s" % row.get("index"), "slice", tuple(cpu_list(row.get("cpus")))) for row in gpus]
    rows = [row for row in rows if row[2]][:MAX_CLUSTERS]
    is_there = observed.get("state") == "present"
    if is_there:
        return Slices(tuple(rows), "node" if isinstance(observed.get("housekeeping_cpus"), str) else "unknown")
    return Slices(tuple(rows), "free" if rows else "none")


def clusters(cpus: Sequence[int], slices: Slices, node: str) -> List[Cluster]:
    """The CPUs of a node by who has them; a CPU of two slices is drawn with the first."""
    left = list(cpus)
    found: List[Cluster] = []
    for name, kind, members in slices.rows:
        mine = tuple(sorted(set(left) & set(members)))
        if mine:
            colour = sum(cluster.kind == "slice" for cluster in found)
            found.append(Cluster(name, kind, mine, colour))
            left = sorted(set(left) - set(mine))
    if left:
        colour = sum(cluster.kind == "slice" for cluster in found)
        found.append(_rest(slices.rest, node, tuple(left), colour))
    return found


def _rest(rest: str, node: str, cpus: Tuple[int, ...], colour: int) -> Cluster:
    if rest == "node":
        return Cluster(node, "slice", cpus, colour)
    if rest == "unknown":
        return Cluster("whose is unknown", "unknown", cpus)
    return Cluster("free" if rest == "free" else "CPUs", "free", cpus)
