# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The small files of the slices, and the lines that a Kubernetes or Slurm host is given instead."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Mapping, Sequence

from .._engine.cpuset import format_cpulist
from .numa_layout import Layout, Slice

MARK = "# Managed by gpufleet.host.numa_slices: changes made here are put back."


def slice_unit(one: Slice) -> str:
    """A slice's unit file (systemd.slice(5), systemd.resource-control(5))."""
    owner = "NUMA node %d" % one.node if one.gpu is None else "GPU %d (%s)" % (one.gpu, one.address)
    rows = [MARK, "[Unit]", "Description=CPUs and memory of %s" % owner, "", "[Slice]"]
    rows += ["%s=%s" % pair for pair in properties(one).items()]
    return "\n".join([*rows, ""])


def properties(one: Slice) -> Dict[str, str]:
    """The unit properties that confine a slice."""
    confined = {"AllowedCPUs": format_cpulist(one.cpus), "AllowedMemoryNodes": format_cpulist(one.mems)}
    confined.update(one.limits)
    return confined


def target_drop_in(slices: Sequence[Slice]) -> str:
    """Starts the slices at boot, so that they can be seen to hold before any job does."""
    return "\n".join([MARK, "[Unit]", *["Wants=%s" % one.name for one in slices], ""])


def confine_drop_in(unit: str, housekeeping: Sequence[int]) -> str:
    section = "[Scope]" if unit.endswith(".scope") else "[Slice]"
    return "\n".join([MARK, section, "AllowedCPUs=%s" % format_cpulist(housekeeping), ""])


def gpu_map(found: Layout, gpus: Sequence[Any]) -> str:
    """What gpu-run reads: each GPU by its index in PCI order, each node, and the slice to start in."""
    by_gpu = {one.gpu: one for one in found.slices if one.gpu is not None}
    rows: List[Dict[str, Any]] = []
    for index, gpu in enumerate(gpus):
        row: Dict[str, Any] = {"index": index, "address": gpu.address, "node": None, "slice": None}
        if index in by_gpu:
            row.update(_map_row(by_gpu[index]))
        rows.append(row)
    nodes = [_map_row(one) for one in found.slices if one.gpu is None]
    about = {"about": MARK[2:], "format": 1, "gpus": rows, "nodes": nodes}
    about["housekeeping"] = format_cpulist(found.housekeeping)
    return json.dumps(about, indent=2, sort_keys=True) + "\n"


def kubelet_lines(found: Layout) -> str:
    """KubeletConfiguration that keeps the housekeeping CPUs and aligns CPUs, memory and GPUs by node.

    Kubernetes documentation, "Reserve Compute Resources" and "Control Topology Management Policies":
    reservedSystemCPUs needs the static CPU manager to keep pods away from them.
    """
    return "\n".join(
        [
            'reservedSystemCPUs: "%s"' % format_cpulist(found.housekeeping),
            "cpuManagerPolicy: static",
            "topologyManagerPolicy: single-numa-node",
        ]
    )


def slurm_lines(found: Layout, have: Mapping[str, Any]) -> str:
    """Lines of gres.conf: Slurm counts cores, not CPUs, socket by socket (gres.conf(5), "Cores")."""
    number_of = _slurm_numbers(have)
    rows = [
        "# CPUs for the system: CpuSpecList=%s on the node's line in slurm.conf" % format_cpulist(found.housekeeping)
    ]
    for one in found.slices:
        if one.gpu is None:
            continue
        cores = format_cpulist({number_of[cpu] for cpu in one.cpus if cpu in number_of})
        minor = have["minors"].get(one.address)
        file = "/dev/nvidia%d" % minor if minor is not None else "/dev/nvidia?"
        note = "" if minor is not None else ", device minor not known: see /proc/driver/nvidia/gpus"
        rows.append("Name=gpu File=%s Cores=%s  # GPU %d at %s%s" % (file, cores, one.gpu, one.address, note))
    return "\n".join(rows)


def _slurm_numbers(have: Mapping[str, Any]) -> Dict[int, int]:
    """Slurm's number of the core of each CPU: cores in order of their socket, then of their first thread."""
    package_of: Mapping[int, int] = have["package_of"]
    ordered = sorted(have["cores"], key=lambda core: (package_of.get(min(core), 0), min(core)))
    return {cpu: number for number, core in enumerate(ordered) for cpu in core}


def _map_row(one: Slice) -> Dict[str, Any]:
    return {
        "node": one.node,
        "slice": one.name,
        "cpus": format_cpulist(one.cpus),
        "memory_nodes": format_cpulist(one.mems),
        "memory_max": one.limits.get("MemoryMax"),
    }
