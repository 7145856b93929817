# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NUMA nodes: their processors, memory and distances, from sysfs or a recorded numactl."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Dict, List, Optional, Tuple, Union

from .._engine.host import Host
from .._engine.values import Text, Unknown, lines
from .cpu import Ids, Number, ids_of, recorded_lscpu
from .tool_text import clean, without_labels

NODE_FOLDER = "/sys/devices/system/node"

_CPUS_ROW = re.compile(r"node (\d{1,5}) cpus:\s*(.*)", re.ASCII)
_FIRST_ROW = re.compile(r"\s*available: \d+ nodes")
_SIZE_ROW = re.compile(r"node (\d{1,5}) size:\s*(\d{1,15}) MB", re.ASCII)
_DISTANCE_ROW = re.compile(r"\s*(\d{1,5}):((?:\s+\d{1,5})+)\s*", re.ASCII)
_WRAPPED_ROW = re.compile(r"\s*\d+(\s+\d+)*\s*", re.ASCII)
# Of a thousand nodes with a thousand CPUs each.
_MOST_LINES = 20_000
_MEM_TOTAL = re.compile(r"Node \d+ MemTotal:\s*(\d{1,15}) kB", re.ASCII)


@dataclass(frozen=True)
class Node:
    """One node.  No CPUs or no memory is a fact (empty, 0); what cannot be seen is Unknown."""

    id: int
    cpus: Ids
    memory_mib: Number
    distances: Tuple[int, ...]

    @property
    def has_memory(self) -> bool:
        return not isinstance(self.memory_mib, Unknown) and self.memory_mib > 0


def parse_numactl(text: Text) -> List[Node]:
    """The nodes of ``numactl --hardware``; wrapped lists of CPUs are joined, never fails."""
    cpus: Dict[int, List[str]] = {}
    sizes: Dict[int, int] = {}
    distances: Dict[int, Tuple[int, ...]] = {}
    wraps: Optional[int] = None
    begun = False
    for line in clean(without_labels(text, _FIRST_ROW)).splitlines()[:_MOST_LINES] if isinstance(text, str) else []:
        # Another machine's output begins; its nodes have the same numbers.
        if begun and _FIRST_ROW.match(line):
            break
        begun = begun or bool(cpus or sizes)
        row = _CPUS_ROW.fullmatch(line.strip())
        if row:
            wraps = int(row.group(1))
            cpus[wraps] = [row.group(2)]
            continue
        if wraps is not None and _WRAPPED_ROW.fullmatch(line):
            cpus[wraps].append(line)
            continue
        wraps = None
        size, distance = _SIZE_ROW.fullmatch(line.strip()), _DISTANCE_ROW.fullmatch(line)
        if size:
            sizes[int(size.group(1))] = int(size.group(2))
        elif distance:
            distances[int(distance.group(1))] = tuple(int(word) for word in distance.group(2).split())
    return [
        Node(
            node,
            ids_of(" ".join(cpus[node])) if node in cpus else Unknown("numactl has no row of its CPUs"),
            sizes.get(node, Unknown("numactl has no row of its size")),
            distances.get(node, ()),
        )
        for node in sorted(set(cpus) | set(sizes))
    ]


def parse_node_meminfo(text: Text) -> Number:
    """MiB of ``/sys/devices/system/node/nodeN/meminfo``; 0 for a node without memory."""
    for line in lines(text):
        found = _MEM_TOTAL.match(line)
        if found:
            return int(found.group(1)) // 1024
    return text if isinstance(text, Unknown) else Unknown("no MemTotal")


def observe(host: Host) -> Union[List[Node], Unknown]:
    """The nodes of a host; Unknown when neither sysfs nor a recorded command tells them."""
    ids = sorted(int(name[4:]) for name in host.listdir(NODE_FOLDER) if re.fullmatch(r"node\d{1,5}", name, re.ASCII))
    if not ids:
        return Unknown("no %s (a kernel without NUMA)" % NODE_FOLDER) if host.is_live else _recorded(host)
    return [_node(host, node) for node in ids]


def _node(host: Host, node: int) -> Node:
    folder = "%s/node%d/" % (NODE_FOLDER, node)
    distance = host.read(folder + "distance")
    words = distance.split() if isinstance(distance, str) else []
    return Node(
        node,
        ids_of(host.read(folder + "cpulist")),
        parse_node_meminfo(host.read(folder + "meminfo")),
        tuple(int(word) for word in words) if all(re.fullmatch("[0-9]{1,5}", word) for word in words) else (),
    )


def _recorded(host: Host) -> Union[List[Node], Unknown]:
    for argv in (["numactl", "-H"], ["numactl", "--hardware"]):
        nodes = parse_numactl(host.run(argv).text())
        if nodes:
            return nodes
    said = recorded_lscpu(host)
    if not said.node_cpus:
        return Unknown("neither %s nor numactl nor lscpu was captured" % NODE_FOLDER)
    unseen = Unknown("lscpu does not tell the memory of a node")
    return [Node(node, cpus, unseen, ()) for node, cpus in sorted(said.node_cpus.items())]
