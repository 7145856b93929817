# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host of any topology, with a systemd that keeps slices as the real one was seen to (252, cgroup v2).

What systemd has read of a unit lies below /run/fake: a reload reads the files anew and writes the control
groups, and (as issue 43846 of systemd tells) it does not widen a list of CPUs that was taken away.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any, Iterable, Mapping, Sequence

from fakes import FakeHost, Program

from ansible_collections.gpufleet.host.plugins.module_utils._engine.cpuset import format_cpulist, parse_cpulist
from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import Result
from ansible_collections.gpufleet.host.plugins.module_utils._plan import numa_steps
from ansible_collections.gpufleet.host.plugins.module_utils._plan.numa_units import GPU_RUN, KERNEL_FILE, MAP_FILE

LOADED = "/run/fake/"
UNITS = "/etc/systemd/system/"
CGROUP = "/sys/fs/cgroup"
ALWAYS = ("system.slice", "user.slice", "init.scope", "slices.target")

# The lab's host: two sockets with two cores of two threads, GPU 3 behind a slot without a node.
LAB: Mapping[str, Any] = {
    "nodes": {0: {"cpus": "0-3", "memory_mib": 1500}, 1: {"cpus": "4-7", "memory_mib": 1500}},
    "threads": 2,
    "gpus": [0, 0, 1, -1],
}


class SliceHost(FakeHost):
    def commands(self) -> dict[str, Program]:
        programs: dict[str, Program] = {"systemctl": self.systemctl, "true": lambda argv, stdin: Result(0, "", "")}
        programs["sh"] = self.sh
        if self.exists(GPU_RUN):
            programs["gpu-run"] = self.gpu_run
        return programs

    def kernel(self, path: str, text: str) -> str:
        self.settle()
        return text.strip() + "\n"

    def set_value(self, path: str, text: str) -> None:
        super().set_value(path, text)
        self.settle()

    # What systemd does.
    def systemctl(self, argv: Sequence[str], _stdin: str) -> Result:
        words = [word for word in argv[1:] if word != "--"]
        if words[0] == "show":
            return Result(0, "\n".join(self.shown(name) for name in words[3:]), "")
        if words[0] == "daemon-reload":
            for name in self.loaded():
                self.load(name)
        elif words[0] == "start":
            for name in words[1:]:
                self.start(name)
        elif words[0] == "stop":
            for name in words[1:]:
                self.stop(name)
        return Result(0, "", "")

    def gpu_run(self, argv: Sequence[str], _stdin: str) -> Result:
        rows = json.loads(str(self.read(MAP_FILE)))
        for row in [*rows["gpus"], *rows["nodes"]]:
            cpus = str(self.read(self.folder(str(row["slice"])) + "/cpuset.cpus.effective")).strip()
            if row["slice"] in argv[2:] and cpus != row["cpus"]:
                return Result(1, "", "%s is not confined" % row["slice"])
        return Result(0, "", "")

    def sh(self, argv: Sequence[str], _stdin: str) -> Result:
        _sh, _c, script, _name, first, second = argv
        if script == numa_steps.STOP_IF_EMPTY:
            if "populated 1" in str(self.read(second)):
                return Result(1, "", "something runs in it")
            self.stop(first)
        elif script == numa_steps.WRITE_IF_THERE and self.exists(second):
            self.set_value(second, first)
        return Result(0, "", "")

    def loaded(self) -> list[str]:
        return [name for name in self.listdir(LOADED.rstrip("/")) if "." in name]

    def start(self, name: str) -> None:
        for parent in self.parents(name):
            if not self.exists(LOADED + parent):
                self.load(parent)
        self.load(name)

    def stop(self, name: str) -> None:
        for other in self.loaded():
            if other == name or name in self.parents(other):
                os.unlink(self.root + LOADED + other)
        shutil.rmtree(self.root + self.folder(name), ignore_errors=True)

    def load(self, name: str) -> None:
        was = str(self.read(LOADED + name) or "")
        self.put(LOADED + name, self.on_disk(name))
        if name.endswith(".target"):
            return
        values, old = self.properties(self.on_disk(name)), self.properties(was)
        if not self.exists(self.folder(name)):
            self.put(self.folder(name) + "/cgroup.events", "populated 0\nfrozen 0\n")
            self.put(self.folder(name) + "/cgroup.procs", "")
        for key, file in KERNEL_FILE.items():
            if key in values:
                self.put("%s/%s" % (self.folder(name), file), values[key].replace("infinity", "max") + "\n")
            elif key in old and key not in ("AllowedCPUs", "AllowedMemoryNodes"):
                self.put("%s/%s" % (self.folder(name), file), "max\n")
        self.settle()

    def settle(self) -> None:
        """The kernel's part: what is effective is what is asked within what the group above has."""
        for name in sorted(self.loaded(), key=lambda name: name.count("-")):
            if name.endswith(".target"):
                continue
            folder = self.folder(name)
            for file, top in (("cpuset.cpus", "/sys/devices/system/cpu/online"), ("cpuset.mems", "/fake-mems")):
                above = self.read(os.path.dirname(folder) + "/" + file + ".effective") or self.read(top)
                limit = parse_cpulist(str(above))
                asked = parse_cpulist(str(self.read(folder + "/" + file) or "")) or limit
                self.put(folder + "/" + file + ".effective", format_cpulist(asked & limit or limit) + "\n")

    def on_disk(self, name: str) -> str:
        drop_ins = [self.read(path) for path in self.drop_ins(name)]
        return "\n".join(text for text in [self.read(UNITS + name), *drop_ins] if isinstance(text, str))

    def drop_ins(self, name: str) -> list[str]:
        folders = [UNITS + name + ".d", "/run/systemd/system.control/" + name + ".d"]
        return [folder + "/" + file for folder in folders for file in self.listdir(folder) if file.endswith(".conf")]

    def properties(self, text: str) -> dict[str, str]:
        rows = (line.partition("=") for line in text.splitlines())
        return {key: value for key, equals, value in rows if equals and key in KERNEL_FILE}

    def shown(self, name: str) -> str:
        is_active = self.exists(LOADED + name)
        text = str(self.read(LOADED + name)) if is_active else self.on_disk(name)
        is_loaded = name.endswith((".slice", ".scope", ".target")) or bool(text)
        rows = {"Id": name, "Names": name, "LoadState": "loaded" if is_loaded else "not-found"}
        rows["ActiveState"] = "active" if is_active else "inactive"
        rows["FragmentPath"] = UNITS + name if self.exists(UNITS + name) else ""
        rows["DropInPaths"] = " ".join(self.drop_ins(name))
        rows["NeedDaemonReload"] = "yes" if is_active and text != self.on_disk(name) else "no"
        rows["ControlGroup"] = self.folder(name)[len(CGROUP) :] if is_active and not name.endswith(".target") else ""
        if not name.endswith((".target", ".service")):
            rows.update({"AllowedCPUs": "", "AllowedMemoryNodes": "", "MemoryMax": "infinity"})
            rows.update({"CPUWeight": "[not set]", "TasksMax": "infinity"})
            values = self.properties(text)
            rows.update({key: value.replace(",", " ") if "Allowed" in key else value for key, value in values.items()})
        return "".join("%s=%s\n" % row for row in rows.items())

    def parents(self, name: str) -> list[str]:
        words = name[: -len(".slice")].split("-") if name.endswith(".slice") else [""]
        return ["-".join(words[:count]) + ".slice" for count in range(1, len(words))]

    def folder(self, name: str) -> str:
        return "/".join([CGROUP, *self.parents(name), name])


def make(root: Path, machine: Mapping[str, Any] | None = None) -> SliceHost:
    """A host of this topology (LAB when not given), as sysfs shows it; nothing of ours is on it yet."""
    machine = LAB if machine is None else machine
    host = SliceHost(root)
    nodes: Mapping[int, Any] = machine["nodes"]
    offline = parse_cpulist(machine.get("offline", ""))
    every = frozenset().union(*(parse_cpulist(node["cpus"]) for node in nodes.values()))
    online = every - offline
    cpu = "/sys/devices/system/cpu/"
    for file, cpus in (("online", online), ("offline", offline), ("possible", every)):
        host.put(cpu + file, format_cpulist(cpus) + "\n")
    for core in machine.get("cores") or _cores(nodes, machine.get("threads", 1)):
        threads = parse_cpulist(core) & online
        for number in threads:
            host.put("%scpu%d/topology/thread_siblings_list" % (cpu, number), format_cpulist(threads) + "\n")
            node = next(key for key, value in nodes.items() if number in parse_cpulist(value["cpus"]))
            host.put("%scpu%d/topology/physical_package_id" % (cpu, number), "%d\n" % nodes[node].get("socket", node))
    for number, node in nodes.items():
        folder = "/sys/devices/system/node/node%d/" % number
        far = node.get("distances") or [10 if other == number else 21 for other in nodes]
        host.put(folder + "cpulist", format_cpulist(parse_cpulist(node["cpus"]) & online) + "\n")
        host.put(folder + "meminfo", "Node %d MemTotal: %d kB\n" % (number, node["memory_mib"] * 1024))
        host.put(folder + "distance", " ".join(str(value) for value in far) + "\n")
    for index, place in enumerate(machine.get("gpus", [])):
        _add_gpu(host, index, place, nodes, online)
    host.put("/fake-mems", format_cpulist(key for key, value in nodes.items() if value["memory_mib"]) + "\n")
    Path(host.root + "/sys/bus/pci/devices").mkdir(parents=True, exist_ok=True)
    _set_up_systemd(host, machine)
    return host


def _cores(nodes: Mapping[int, Any], threads: int) -> Iterable[str]:
    for node in nodes.values():
        cpus = sorted(parse_cpulist(node["cpus"]))
        for start in range(0, len(cpus), threads):
            yield format_cpulist(cpus[start : start + threads])


def _add_gpu(host: SliceHost, index: int, place: Any, nodes: Mapping[int, Any], online: frozenset[int]) -> None:
    about = place if isinstance(place, dict) else {"node": place}
    address = about.get("address", "0000:%02x:00.0" % (0x21 + 16 * index))
    local = parse_cpulist(nodes[about["node"]]["cpus"]) & online if about["node"] in nodes else online
    values = {"vendor": "0x10de", "device": "0x2330", "class": "0x030200", "numa_node": str(about["node"])}
    values["local_cpulist"] = about.get("local_cpulist", format_cpulist(local))
    for name, value in values.items():
        host.put("/sys/bus/pci/devices/%s/%s" % (address, name), value + "\n")
    if "driver" in about:
        os.symlink(
            "../../bus/pci/drivers/" + about["driver"], "%s/sys/bus/pci/devices/%s/driver" % (host.root, address)
        )


def _set_up_systemd(host: SliceHost, machine: Mapping[str, Any]) -> None:
    if machine.get("hierarchy") == "hybrid":
        host.put(CGROUP + "/unified/cgroup.procs", "")
    elif machine.get("hierarchy") == "legacy":
        host.put(CGROUP + "/cpuset/cpuset.cpus", "")
    else:
        host.put(CGROUP + "/cgroup.controllers", machine.get("controllers", "cpuset cpu io memory pids") + "\n")
    for name in machine.get("services", []):
        host.put(UNITS + name, "[Service]\nExecStart=/bin/true\n")
    for name in ALWAYS:
        host.load(name)
