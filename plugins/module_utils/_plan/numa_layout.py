# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which CPUs and memory nodes each slice gets: from what the host shows, never from a rule of thumb.

A node's slice has the node's CPUs without the housekeeping ones; the GPUs of a node divide its whole
cores.  Memory comes from the node itself, or from the nearest nodes that have any.  A GPU whose node
the firmware does not name gets no slice until the operator names it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, FrozenSet, List, Mapping, Optional, Sequence, Tuple, Union

from .._engine.cpuset import format_cpulist, parse_cpulist
from .._engine.values import Finding, Unknown
from .cpu_shares import cores_within, first_cores, share, split_cores, union
from .numa_limits import LIMITS, limits

SOURCE = "sysfs-bus-pci numa_node, sysfs-devices-node (kernel Documentation/ABI)"

# systemd's dashes are a hierarchy (systemd.slice(5)): gpufleet.slice > gpufleet-node0 > gpufleet-node0-gpu0.
TOP = "gpufleet.slice"
NO_GPU = "numa_slices.no-gpu"


@dataclass(frozen=True)
class Slice:
    """One slice: its unit's name, whose it is, and what it confines to.  ``limits`` are unit properties."""

    name: str
    node: int
    cpus: FrozenSet[int]
    mems: FrozenSet[int]
    limits: Mapping[str, str] = field(default_factory=dict)
    gpu: Optional[int] = None
    address: str = ""


@dataclass(frozen=True)
class Layout:
    """All slices (a node before its GPUs), the CPUs kept for the system, and what stands in the way."""

    slices: Tuple[Slice, ...] = ()
    housekeeping: FrozenSet[int] = frozenset()
    findings: Tuple[Finding, ...] = ()

    @property
    def is_decided(self) -> bool:
        """False when the facts or the wants do not allow a division: then nothing is to be touched."""
        return not any(f.level == "block" or f.id in ("numa_slices.unseen", NO_GPU) for f in self.findings)

    @property
    def has_gpus(self) -> bool:
        return not any(finding.id == NO_GPU for finding in self.findings)


def node_slice(node: int) -> str:
    return "gpufleet-node%d.slice" % node


def gpu_slice(node: int, gpu: int) -> str:
    return "gpufleet-node%d-gpu%d.slice" % (node, gpu)


def layout(want: Mapping[str, Any], have: Mapping[str, Any]) -> Layout:
    """The division of the host; the same facts always give the same one."""
    nodes, cores, gpus = have["nodes"], have["cores"], have["gpus"]
    unseen = [_unseen(name, value) for name, value in _needed(have) if isinstance(value, Unknown)]
    if unseen:
        return Layout(findings=tuple(unseen))
    if not gpus and not want.get("gpus"):
        return Layout(findings=(_no_gpu(want),))
    online: FrozenSet[int] = have["online"]
    cpus_of = {node.id: node.cpus & online for node in nodes if node.cpus & online}
    housekeeping, findings = _housekeeping(want, cpus_of, cores, online)
    if any(finding.level == "block" for finding in findings):
        return Layout((), housekeeping, tuple(findings))
    overrides = {row["index"]: row for row in want.get("gpus") or []}
    findings += [
        bad(
            "gpus", index, "the index of a GPU of this host: %s" % (format_cpulist(range(len(gpus))) or "there is none")
        )
        for index in sorted(overrides)
        if index >= len(gpus)
    ]
    slices: List[Slice] = []
    placed, problems = _place(overrides, gpus, cpus_of)
    for node in sorted(cpus_of):
        free = cpus_of[node] - housekeeping
        if free or placed.get(node):
            made, trouble = _divide(want, nodes, node, free, cores_within(cores, free), placed.get(node, []), overrides)
            slices += made
            problems += trouble
    findings += problems
    if any(finding.level == "block" for finding in findings):
        # Half a division is none.
        slices = []
    return Layout(tuple(slices), housekeeping, tuple(findings))


def bad(variable: str, given: Any, allowed: str) -> Finding:
    """A wanted value that this host cannot have; nothing is changed."""
    name = "numa_slices_" + variable
    return Finding(
        "numa_slices.impossible", "block", name, allowed, given, "this host cannot do what is asked",
        "set %s to what is allowed here; gpu-run --show and numactl -H show the host" % name, SOURCE,
    )  # fmt: skip


def _needed(have: Mapping[str, Any]) -> List[Tuple[str, Any]]:
    nodes = have["nodes"]
    rows = [("NUMA nodes", nodes), ("online CPUs", have["online"]), ("cores", have["cores"]), ("GPUs", have["gpus"])]
    if not isinstance(nodes, Unknown):
        rows += [("CPUs of node %d" % node.id, node.cpus) for node in nodes]
        rows += [("memory of node %d" % node.id, node.memory_mib) for node in nodes]
    return rows


def _housekeeping(
    want: Mapping[str, Any],
    cpus_of: Mapping[int, FrozenSet[int]],
    cores: Sequence[FrozenSet[int]],
    online: FrozenSet[int],
) -> Tuple[FrozenSet[int], List[Finding]]:
    """The CPUs named by the operator, or the first whole cores of each node."""
    named = want.get("housekeeping_cpus")
    if named:
        wanted = parse_cpulist(named)
        return wanted, _list_problems("housekeeping_cpus", wanted, online, cores)
    count = want["housekeeping_cores_per_node"]
    kept: FrozenSet[int] = frozenset()
    for node, cpus in sorted(cpus_of.items()):
        own = cores_within(cores, cpus)
        if count and count >= len(own):
            allowed = "0 to %d: node %d has %d cores" % (max(len(own) - 1, 0), node, len(own))
            return kept, [bad("housekeeping_cores_per_node", count, allowed)]
        kept |= first_cores(own, count)
    return kept, []


def _list_problems(
    variable: str, cpus: FrozenSet[int], allowed: FrozenSet[int], cores: Sequence[FrozenSet[int]]
) -> List[Finding]:
    """CPUs that are not to be had, or that are half a core."""
    if cpus - allowed:
        text = "CPUs of %s; %s is not there" % (format_cpulist(allowed) or "none", format_cpulist(cpus - allowed))
        return [bad(variable, format_cpulist(cpus), text)]
    halves = [core for core in split_cores(cores, cpus) if core <= allowed]
    if halves:
        text = "whole cores, such as %s: the threads of a core stay together" % format_cpulist(union(halves) | cpus)
        return [bad(variable, format_cpulist(cpus), text)]
    return []


def _place(
    overrides: Mapping[int, Mapping[str, Any]], gpus: Sequence[Any], cpus_of: Mapping[int, FrozenSet[int]]
) -> Tuple[Dict[int, List[Tuple[int, str]]], List[Finding]]:
    """The GPUs of each node, by the operator's word or the firmware's."""
    placed: Dict[int, List[Tuple[int, str]]] = {}
    findings: List[Finding] = []
    for index, gpu in enumerate(gpus):
        row = overrides.get(index, {})
        node: Union[int, Unknown] = row["node"] if row.get("node") is not None else gpu.numa_node
        if row.get("slice") is False:
            continue
        if row.get("node") is not None and row["node"] not in cpus_of:
            allowed = "a node with CPUs: %s" % format_cpulist(cpus_of)
            findings.append(bad("gpus[index=%d].node" % index, row["node"], allowed))
        elif isinstance(node, Unknown) or node not in cpus_of:
            findings.append(_homeless(index, gpu.address, node))
        else:
            placed.setdefault(node, []).append((index, gpu.address))
    return placed, findings


def _divide(
    want: Mapping[str, Any],
    nodes: Sequence[Any],
    node: int,
    free: FrozenSet[int],
    cores: Sequence[FrozenSet[int]],
    gpus: Sequence[Tuple[int, str]],
    overrides: Mapping[int, Mapping[str, Any]],
) -> Tuple[List[Slice], List[Finding]]:
    """The slice of a node and those of its GPUs."""
    findings: List[Finding] = []
    given = {
        index: parse_cpulist(overrides[index]["cpus"]) for index, _a in gpus if overrides.get(index, {}).get("cpus")
    }
    for index, cpus in sorted(given.items()):
        findings += _list_problems("gpus[index=%d].cpus" % index, cpus, free, cores)
    if findings:
        return [], findings
    taken = union(given.values())
    left = [core for core in cores if not core & taken]
    others = [index for index, _address in gpus if index not in given]
    if len(others) > len(left):
        text = "at least one whole core for each GPU: node %d has %d free for %d GPUs" % (node, len(left), len(others))
        variable = "housekeeping_cpus" if want.get("housekeeping_cpus") else "housekeeping_cores_per_node"
        return [], [bad(variable, want[variable], text)]
    given.update(zip(others, share(left, len(others))))
    local = _memory_nodes(nodes, node)
    mems = {index: _wanted_mems(overrides.get(index, {}), local) for index, _address in gpus}
    usable = frozenset(other.id for other in nodes if other.has_memory)
    for index in sorted(mems):
        if mems[index] - usable:
            variable = "gpus[index=%d].memory_nodes" % index
            findings.append(
                bad(variable, format_cpulist(mems[index]), "nodes with memory: %s" % format_cpulist(usable))
            )
    every = local.union(*mems.values())
    rows = {row["id"]: row for row in want.get("nodes") or []}
    slices = [Slice(node_slice(node), node, free, every, limits(rows.get(node, {}), nodes, every))]
    for index, address in gpus:
        knobs = {name: _first(overrides.get(index, {}).get(name), want.get(name)) for name in LIMITS}
        bounds = limits(knobs, nodes, mems[index])
        slices.append(Slice(gpu_slice(node, index), node, given[index], mems[index], bounds, index, address))
    return slices, findings


def _memory_nodes(nodes: Sequence[Any], node_id: int) -> FrozenSet[int]:
    """The node itself if it has memory, else the nearest that have (by the firmware's distances)."""
    here = next(node for node in nodes if node.id == node_id)
    if here.has_memory:
        return frozenset([node_id])
    # A row of distances lists the online nodes in ascending order (drivers/base/node.c).
    rows = [(far, node.id) for far, node in zip(here.distances, nodes) if node.has_memory and node.cpus]
    rows = rows or [(0, node.id) for node in nodes if node.has_memory]
    return frozenset(node for far, node in rows if far == min(rows)[0])


def _wanted_mems(row: Mapping[str, Any], local: FrozenSet[int]) -> FrozenSet[int]:
    return parse_cpulist(row["memory_nodes"]) if row.get("memory_nodes") else local


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None and value != ""), None)


def _no_gpu(want: Mapping[str, Any]) -> Finding:
    rows = [" ".join("%s %s" % pair for pair in row.items() if pair[1]) for row in want.get("gpu_match") or []]
    return Finding(
        NO_GPU, "info", "GPUs", "a PCI function with " + " or ".join(rows) if rows else "none: numa_slices_gpu_match is empty",
        "none", "without a GPU there is nothing to divide the host for: slices are neither made nor taken away",
        "lspci -nn; name other cards in numa_slices_gpu_match, or leave the host out with gpufleet_skip_areas", SOURCE,
    )  # fmt: skip


def _homeless(index: int, address: str, node: Union[int, Unknown]) -> Finding:
    observed = node if isinstance(node, Unknown) else Unknown("its node %d has no online CPU" % node)
    return Finding(
        "numa_slices.gpu-node-unknown", "warn", "GPU %d (%s)" % (index, address), "the NUMA node of its slot", observed,
        "without it nobody can say which CPUs and memory are near, so this GPU gets no slice and no guess",
        "find the slot's socket in the board's manual and set numa_slices_gpus: [{index: %d, node: N}], "
        "or accept it with [{index: %d, slice: false}]" % (index, index), SOURCE,
    )  # fmt: skip


def _unseen(what: str, reason: Unknown) -> Finding:
    return Finding(
        "numa_slices.unseen", "warn", what, "to be readable", reason,
        "the %s cannot be seen, so no slice can be derived or judged" % what,
        "lscpu; numactl -H; ls /sys/devices/system/node /sys/bus/pci/devices", SOURCE,
    )  # fmt: skip
