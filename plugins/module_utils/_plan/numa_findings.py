# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is judged about slices: what keeps them from holding, who else sets them, who runs where."""

from __future__ import annotations

from typing import Any, List, Mapping

from .._engine.cpuset import format_cpulist
from .._engine.values import Finding, Unknown, nothing_wanted
from .numa_layout import Layout, Slice, layout
from .numa_slices import confined_units, unwanted, wanted_slices
from .numa_texts import kubelet_lines, properties, slurm_lines
from .numa_units import SOURCE, overrides_of, same

CGROUP_SOURCE = "kernel Documentation/admin-guide/cgroup-v2.rst"


def judge(want: Mapping[str, Any], have: Mapping[str, Any]) -> List[Finding]:
    """All findings: of the host, of its topology, of what is to go, and of each slice."""
    if want.get("state") is None:
        return [nothing_wanted("numa_slices", "numa_slices"), *_topology(have)]
    found = wanted_slices(want, have)
    findings = [*_host(have, want["state"] == "present" and found.has_gpus), *found.findings]
    if want["state"] == "present":
        findings += _topology(have)
        findings += _managers(have, layout(want, have))
    if found.is_decided:
        findings += [_in_use(name) for name in unwanted(found, have) if _is_populated(name, have)]
    for one in found.slices:
        findings += _slice(one, have)
    for name in confined_units(want, have):
        findings += _foreign_lines(name, {"AllowedCPUs": format_cpulist(found.housekeeping)}, have)
    return findings


def _host(have: Mapping[str, Any], is_wanted: bool) -> List[Finding]:
    """A host on which slices would be ignored, or cannot be seen; what is not there needs nothing to be absent."""
    hierarchy, controllers, units = have["hierarchy"], have["controllers"], have["units"]
    if isinstance(hierarchy, Unknown):
        return [_unseen("control groups", hierarchy)]
    if hierarchy != "unified":
        return [_not_unified(hierarchy)] if is_wanted or have["ours"] else []
    findings: List[Finding] = []
    if isinstance(controllers, Unknown):
        findings.append(_unseen("controllers", controllers))
    elif is_wanted and "cpuset" not in controllers:
        findings.append(_no_cpuset(controllers))
    if isinstance(units, Unknown):
        findings.append(_unseen("units", units))
    elif is_wanted and units and not any("AllowedCPUs" in unit for unit in units.values()):
        findings.append(_old_systemd())
    return findings


def _topology(have: Mapping[str, Any]) -> List[Finding]:
    """Facts that change what the slices can be, and that an operator may not know."""
    findings: List[Finding] = []
    nodes = [] if isinstance(have["nodes"], Unknown) else have["nodes"]
    bare = [
        node.id for node in nodes if node.cpus and not isinstance(node.memory_mib, Unknown) and node.memory_mib == 0
    ]
    findings += [_memoryless(node) for node in bare]
    if have["offline"]:
        findings.append(_offline(format_cpulist(have["offline"])))
    for gpu in [] if isinstance(have["gpus"], Unknown) else have["gpus"]:
        cpus = next((node.cpus for node in nodes if node.id == gpu.numa_node), None)
        if cpus and gpu.local_cpus and cpus != gpu.local_cpus:
            findings.append(_local_differs(gpu, format_cpulist(cpus)))
    return findings


def _managers(have: Mapping[str, Any], found: Layout) -> List[Finding]:
    """Hosts on which another manager hands out the CPUs: the division as lines for it, nothing is written."""
    findings: List[Finding] = []
    for name in have["managers"] if found.is_decided else ():
        lines = slurm_lines(found, have) if name.startswith("slurmd") else kubelet_lines(found)
        where = "gres.conf" if name.startswith("slurmd") else "the KubeletConfiguration"
        findings.append(
            Finding(
                "numa_slices.managed-host", "info", name, lines, "%s is on this host" % name,
                "it hands out the CPUs of this host itself, and slices of ours would take them from under it: "
                "nothing is written",
                "put these lines into %s:\n%s" % (where, lines),
                "https://slurm.schedmd.com/gres.conf.html; Kubernetes documentation, Reserve Compute Resources",
            )
        )  # fmt: skip
    return findings


def _slice(one: Slice, have: Mapping[str, Any]) -> List[Finding]:
    """Others' drop-ins, a control group that is narrower than asked, and processes that are elsewhere."""
    units = {} if isinstance(have["units"], Unknown) else have["units"]
    unit, group = units.get(one.name, {}), have["groups"].get(one.name)
    findings: List[Finding] = []
    findings += _foreign_lines(one.name, properties(one), have)
    if group is None or unit.get("ActiveState") != "active" or unit.get("NeedDaemonReload") == "yes":
        return findings
    rows = (
        ("CPUs", "cpuset.cpus", one.cpus, group.cpus, group.effective_cpus),
        ("memory nodes", "cpuset.mems", one.mems, group.mems, group.effective_mems),
    )
    for what, file, wanted, asked, effective in rows:
        if isinstance(effective, Unknown):
            findings.append(_unseen("effective %s of %s" % (what, one.name), effective))
        elif asked == wanted and effective != wanted:
            findings.append(_narrowed(one, what, file, format_cpulist(wanted), format_cpulist(effective)))
    for pid, status in have["processes"].get(one.name, ()):
        for what, allowed, wanted in (
            ("CPUs", status.cpus_allowed, one.cpus),
            ("memory nodes", status.mems_allowed, one.mems),
        ):
            if (
                isinstance(allowed, frozenset)
                and group.cpus == one.cpus
                and group.mems == one.mems
                and allowed - wanted
            ):
                findings.append(_escaped(one, pid, status.name, what, format_cpulist(wanted), format_cpulist(allowed)))
    return findings


def _foreign_lines(name: str, wanted: Mapping[str, str], have: Mapping[str, Any]) -> List[Finding]:
    unit = {} if isinstance(have["units"], Unknown) else have["units"].get(name, {})
    findings: List[Finding] = []
    for path, number, line in overrides_of(name, have, wanted):
        key = line.partition("=")[0].strip()
        wins = not same(key, wanted[key], unit.get(key, ""))
        findings.append(_foreign(name, "%s:%d" % (path, number), line, wins))
    return findings


def _is_populated(name: str, have: Mapping[str, Any]) -> bool:
    group = have["groups"].get(name)
    return group is not None and group.is_populated is not False


def _not_unified(hierarchy: str) -> Finding:
    return Finding(
        "numa_slices.cgroup-v1", "block", "/sys/fs/cgroup", "unified (cgroup v2)", "%s (cgroup v1)" % hierarchy,
        "systemd takes AllowedCPUs= and AllowedMemoryNodes= there without a word and does not apply them",
        "boot with systemd.unified_cgroup_hierarchy=1 on the kernel command line (role kernel)", SOURCE,
    )  # fmt: skip


def _no_cpuset(controllers: Any) -> Finding:
    return Finding(
        "numa_slices.no-cpuset-controller", "block", "/sys/fs/cgroup/cgroup.controllers", "cpuset", " ".join(controllers),
        "without this controller the kernel confines nobody to CPUs or memory nodes",
        "take cgroup_disable=cpuset off the kernel command line, and see that no v1 cpuset is mounted", CGROUP_SOURCE,
    )  # fmt: skip


def _old_systemd() -> Finding:
    return Finding(
        "numa_slices.old-systemd", "block", "systemd", "244 or newer, or one with AllowedCPUs=", "no such property",
        "this systemd does not know AllowedCPUs=, so the slices would not confine", "update systemd", SOURCE,
    )  # fmt: skip


def _memoryless(node: int) -> Finding:
    return Finding(
        "numa_slices.node-without-memory", "warn", "node %d" % node, "memory of its own", "none",
        "its CPUs work on the memory of another node, at a distance; the slices use the nearest that has any",
        "populate the memory channels of this node, or choose fewer nodes per socket (NPS, SNC) in the firmware", SOURCE,
    )  # fmt: skip


def _offline(cpus: str) -> Finding:
    return Finding(
        "numa_slices.offline-cpus", "info", "CPUs %s" % cpus, "online", "offline",
        "they are in no slice; once they come online the division changes",
        "echo 1 > /sys/devices/system/cpu/cpuN/online, if they are meant to be used", SOURCE,
    )  # fmt: skip


def _local_differs(gpu: Any, cpus: str) -> Finding:
    return Finding(
        "numa_slices.local-cpus-differ", "warn", gpu.address, cpus, format_cpulist(gpu.local_cpus),
        "the CPUs that the kernel calls local to the GPU are not those of its node; the slice goes by the node",
        "see numa_node and local_cpulist in /sys/bus/pci/devices/%s, and the firmware's release notes" % gpu.address, SOURCE,
    )  # fmt: skip


def _in_use(name: str) -> Finding:
    return Finding(
        "numa_slices.unwanted-in-use", "block", name, "empty", "something runs in it",
        "the slice is not wanted any more, but a running job is neither stopped nor let loose on other CPUs",
        "see it with systemd-cgls -u %s; run again when it has ended" % name, SOURCE,
    )  # fmt: skip


def _foreign(name: str, place: str, line: str, wins: bool) -> Finding:
    return Finding(
        "numa_slices.foreign-drop-in", "fail" if wins else "warn", place, "one owner of %s" % name, line,
        "this drop-in is read after our unit file and %s" % ("overrides it" if wins else "sets the same value again"),
        "systemctl revert %s takes all drop-ins away; or remove the line, then systemctl daemon-reload" % name, SOURCE,
    )  # fmt: skip


def _narrowed(one: Slice, what: str, file: str, wanted: str, effective: str) -> Finding:
    return Finding(
        "numa_slices.effective-differs", "fail", one.name, "%s %s" % (what, wanted), effective,
        "the slice asks for the right %s, and a group above it or the kernel grants others" % what,
        "compare %s and %s.effective from /sys/fs/cgroup down to the slice, and look for cpuset partitions" % (file, file),
        CGROUP_SOURCE,
    )  # fmt: skip


def _escaped(one: Slice, pid: int, name: str, what: str, wanted: str, allowed: str) -> Finding:
    return Finding(
        "numa_slices.process-not-confined", "fail", "process %d (%s) in %s" % (pid, name, one.name),
        "%s %s" % (what, wanted), allowed, "the process is in the slice's group, and the kernel allows it more",
        "grep allowed_list /proc/%d/status; start the job anew with gpu-run" % pid, "proc(5)",
    )  # fmt: skip


def _unseen(what: str, reason: Unknown) -> Finding:
    return Finding(
        "numa_slices.unseen", "warn", what, "to be readable", reason,
        "the %s cannot be seen, so nobody can say that the slices hold" % what,
        "ls /sys/fs/cgroup; systemctl status", SOURCE,
    )  # fmt: skip
