# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The area numa_slices: joins the host's topology and its slices with how they should be."""

from __future__ import annotations

import inspect
from typing import Any, Dict, List, Mapping, Sequence

from .._engine.engine import Area
from .._engine.host import Host
from .._engine.values import Unknown
from .._observe import cgroup, cpu, numa, pci, process, unit
from .._plan import numa_findings, numa_layout, numa_slices, numa_texts, numa_units, numa_want
from .._programs import gpu_run

# Managers that hand out the CPUs of a host themselves; k3s and rke2 carry their kubelet inside.
MANAGERS = (
    "kubelet.service", "k3s.service", "k3s-agent.service", "rke2-server.service", "rke2-agent.service", "slurmd.service",
)  # fmt: skip
PROPERTIES = (
    "LoadState", "ActiveState", "FragmentPath", "DropInPaths", "NeedDaemonReload", "ControlGroup",
    *numa_units.KERNEL_FILE,
)  # fmt: skip
# Isolated (no PYTHONPATH, nothing from the working directory) and without site: it runs as root, and starts sooner.
SHEBANG = "#!/usr/bin/python3 -IS\n"
# A GPU that is given to a virtual machine is none of this host's CUDA devices.
PASSED_THROUGH = ("vfio-pci", "pci-stub", "xen-pciback")

_LIMITS: Dict[str, Any] = {
    "memory_max": {"type": "str"},
    "cpu_weight": {"type": "str"},
    "tasks_max": {"type": "str"},
}
SPEC: Dict[str, Any] = {
    "state": {"type": "str", "choices": ["present", "absent"]},
    "gpu_match": {
        "type": "list",
        "elements": "dict",
        "default": [dict(row) for row in pci.NVIDIA_GPUS],
        "options": {"vendor": {"type": "str"}, "device": {"type": "str"}, "class": {"type": "str"}},
    },
    "housekeeping_cores_per_node": {"type": "int", "default": 1},
    "housekeeping_cpus": {"type": "str"},
    "confine_system": {"type": "bool", "default": False},
    **_LIMITS,
    "gpus": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "index": {"type": "int", "required": True},
            "node": {"type": "int"},
            "cpus": {"type": "str"},
            "memory_nodes": {"type": "str"},
            "slice": {"type": "bool", "default": True},
            **_LIMITS,
        },
    },
    "nodes": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {"id": {"type": "int", "required": True}, **_LIMITS},
    },
}


def observe(host: Host, want: Mapping[str, Any]) -> Dict[str, Any]:
    """The topology; then the slices that follow from it, or were there before: file, unit, group, processes."""
    have = _topology(host, want)
    have["program"] = SHEBANG + inspect.getsource(gpu_run)
    have["ours"] = _ours(host)
    have.update(units={}, files={}, groups={}, drop_ins={}, processes={}, managers=[])
    asked = unit.show(host, [*_names(want, have), "slices.target", *MANAGERS], PROPERTIES)
    have["units"] = asked if isinstance(asked, Unknown) else {k: v for k, v in asked.items() if k not in MANAGERS}
    if not isinstance(asked, Unknown):
        have["managers"] = [name for name in MANAGERS if asked.get(name, {}).get("LoadState") == "loaded"]
    found = numa_slices.wanted_slices(want, have)
    have["files"] = {path: host.read(path) for path in numa_slices.wanted_files(want, have, found)}
    for name, about in {} if isinstance(have["units"], Unknown) else have["units"].items():
        _see_unit(host, name, about, have)
    return have


def _topology(host: Host, want: Mapping[str, Any]) -> Dict[str, Any]:
    cpus = cpu.observe(host)
    gpus = pci.observe_gpus(host, want["gpu_match"] or [])
    if not isinstance(gpus, Unknown):
        gpus = [gpu for gpu in gpus if gpu.driver not in PASSED_THROUGH]
    return {
        "hierarchy": cgroup.hierarchy(host),
        "controllers": cgroup.controllers(host),
        "online": cpus.online,
        "offline": () if isinstance(cpus.offline, Unknown) else cpus.offline,
        "cores": cpus.cores,
        "package_of": cpus.package_of,
        "nodes": numa.observe(host),
        "gpus": gpus,
        "minors": {} if isinstance(gpus, Unknown) else _minors(host, gpus),
    }


def _minors(host: Host, gpus: Sequence[pci.Device]) -> Dict[str, Any]:
    folder = "/proc/driver/nvidia/gpus/%s/information"
    return {gpu.address: pci.parse_minor(host.read(folder % gpu.address)) for gpu in gpus if gpu.driver == "nvidia"}


def _ours(host: Host) -> List[str]:
    """Slices whose unit file bears our mark."""
    names = [name for name in host.listdir(numa_units.UNIT_FOLDER) if name.startswith("gpufleet-node")]
    texts = {name: host.read(numa_units.unit_file(name)) for name in names if name.endswith(".slice")}
    return [name for name, text in texts.items() if isinstance(text, str) and numa_texts.MARK in text]


def _names(want: Mapping[str, Any], have: Mapping[str, Any]) -> List[str]:
    wanted = [one.name for one in numa_slices.wanted_slices(want, have).slices]
    return sorted({*wanted, *have["ours"], *numa_units.SYSTEM_UNITS, numa_layout.TOP})


def _see_unit(host: Host, name: str, about: Mapping[str, str], have: Dict[str, Any]) -> None:
    have["drop_ins"][name] = {path: host.read(path) for path in about.get("DropInPaths", "").split()}
    group = cgroup.group(host, about.get("ControlGroup", ""))
    if group is None or not name.endswith((".slice", ".scope")):
        return
    have["groups"][name] = group
    if name.startswith("gpufleet-") and group.is_populated:
        seen = ((pid, process.status(host, pid)) for pid in cgroup.some_processes(host, group.path))
        have["processes"][name] = [(pid, status) for pid, status in seen if status is not None]


AREA = Area(
    name="numa_slices",
    role="numa_slices",
    spec=SPEC,
    check_want=numa_want.check_want,
    observe=observe,
    plan=numa_slices.plan,
    judge=numa_findings.judge,
    adopt=numa_slices.adopt,
)
