# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sysctls: one file that sets them at boot, and the live value of each, read back from /proc.

The file goes first, so that nothing that re-reads sysctl.d in between undoes the live values.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Dict, List, Mapping, Optional

from .._engine.values import BadWant, Finding, Step, Unknown
from .._tables.sysctls import TWIN, dotted, key_path, module_of
from .kernel_common import HEAD, file_steps, knob, not_possible, overridden, unseen

FILE = "/etc/sysctl.d/90-gpufleet-kernel.conf"
SOURCE = "sysctl.d(5), kernel Documentation/admin-guide/sysctl"
NUMA = "kernel/numa_balancing"
# 1 balances, 2 moves cold pages to slow memory (kernel Documentation/admin-guide/sysctl/kernel.rst).
NUMA_CHOICES = ("0", "1", "2")

_NAME = re.compile(r"(?!-)[\w:@-]+(\.[\w:@-]+)*(/[\w:@-]+(\.[\w:@-]+)*)*\Z")
_WHY = {
    NUMA: "page migration by faults disturbs jobs whose processes and memory are bound to a node",
    "vm/swappiness": "swapping out a data loader stalls the GPU it feeds",
    "vm/dirty_bytes": "a share of terabytes is more dirty data than a disk can write while a job waits",
    "vm/dirty_background_bytes": "writeback that starts early keeps checkpoints from stalling",
}


def check_want(want: Mapping[str, Any]) -> None:
    seen: Dict[str, str] = {}
    for name, value in (want.get("sysctls") or {}).items():
        place = "sysctls[%s]" % name
        path = key_path(str(name))
        if not _NAME.match(path):
            raise BadWant(place, name, "one sysctl as vm.swappiness or net.ipv4.conf.eth0/1.rp_filter, no pattern")
        if isinstance(value, bool) or not isinstance(value, (int, str)):
            raise BadWant(place, value, "a number or a text, such as 1 or 0 for a switch")
        if (
            not str(value).split()
            or re.search(r"[^\S \t]", str(value))
            or not "".join(str(value).split()).isprintable()
        ):
            raise BadWant(place, value, "one line of printable text that is not empty")
        if path in seen:
            raise BadWant(place, name, "each sysctl once; %s is the same one" % seen[path])
        seen[path] = str(name)
    for path in seen:
        if TWIN.get(path) in seen:
            raise BadWant(
                "sysctls[%s]" % seen[path], seen[TWIN[path]], "only one of %s and %s: the kernel zeroes the other"
                % (dotted(path), dotted(TWIN[path])),
            )  # fmt: skip
    balancing = knob(want, "numa_balancing")
    if balancing is not None and balancing not in NUMA_CHOICES:
        raise BadWant("numa_balancing", want["numa_balancing"], "one of " + ", ".join(NUMA_CHOICES))
    if balancing is not None and NUMA in seen:
        raise BadWant("sysctls[%s]" % seen[NUMA], want["sysctls"][seen[NUMA]], "numa_balancing alone sets it")


def wanted(want: Mapping[str, Any]) -> Dict[str, str]:
    """Wanted values by path, blanks made one."""
    values = {key_path(str(name)): " ".join(str(value).split()) for name, value in (want.get("sysctls") or {}).items()}
    balancing = knob(want, "numa_balancing")
    if balancing is not None:
        values[NUMA] = balancing
    return values


def is_managed(want: Mapping[str, Any]) -> bool:
    return want.get("sysctls") is not None or knob(want, "numa_balancing") is not None


def render(want: Mapping[str, Any], have: Mapping[str, Any]) -> Optional[str]:
    """The sysctl.d file, None when it would be empty."""
    rows = [
        "%s = %s\n" % (dotted(path), value)
        for path, value in sorted(wanted(want).items())
        if not _moot(path, value, have)
    ]
    return HEAD + "".join(rows) if rows else None


def plan(want: Mapping[str, Any], have: Mapping[str, Any]) -> List[Step]:
    if not is_managed(want):
        return []
    why = "values written to /proc/sys are lost at the next boot"
    steps = file_steps("kernel.sysctl.file", FILE, have, render(want, have), why, SOURCE)
    for path, value in sorted(wanted(want).items()):
        live = have["sysctl"]["live"][path]["value"]
        if isinstance(live, str) and live.split() != value.split():
            steps.append(_live_step(path, live, value, have))
    return steps


def judge(want: Mapping[str, Any], have: Mapping[str, Any]) -> List[Finding]:
    if not is_managed(want):
        return []
    findings: List[Finding] = []
    if isinstance(have["files"][FILE], Unknown):
        findings.append(unseen(FILE, have["files"][FILE], "ls -l /etc/sysctl.d", SOURCE))
    for path, value in sorted(wanted(want).items()):
        live = have["sysctl"]["live"][path]
        if isinstance(live["value"], Unknown):
            findings.append(unseen(dotted(path), live["value"], "sysctl %s" % dotted(path), SOURCE))
        elif live["value"] is None:
            findings.append(_missing(path, value, live["near"], have))
        findings += _overrides(path, value, have)
    return findings


def adopt(have: Mapping[str, Any]) -> Dict[str, Any]:
    live = {path: " ".join(row["value"].split()) for path, row in have["sysctl"]["live"].items() if _shown(row)}
    found: Dict[str, Any] = {}
    if have["sysctl"]["names"]:
        found["sysctls"] = {name: live[path] for path, name in have["sysctl"]["names"].items() if path in live}
    if NUMA in live and NUMA not in have["sysctl"]["names"]:
        found["numa_balancing"] = live[NUMA]
    return found


def _shown(row: Mapping[str, Any]) -> bool:
    return isinstance(row["value"], str)


def _moot(path: str, value: str, have: Mapping[str, Any]) -> bool:
    """A kernel built without NUMA balancing does what 0 asks for, and a line for it only fails at boot."""
    return path == NUMA and value == "0" and have["sysctl"]["live"][path]["value"] is None


def _live_step(path: str, live: str, value: str, have: Mapping[str, Any]) -> Step:
    why = _WHY.get(path, "the live value is not the wanted one")
    step = Step("kernel.sysctl." + dotted(path), "value", "/proc/sys/" + path, live, value, why, SOURCE)
    twin = have["sysctl"]["live"].get(TWIN.get(path, ""), {}).get("value")
    if live.strip() != "0" or not isinstance(twin, str) or twin.strip() == "0":
        return step
    # The kernel takes no 0 here: the way back is to give the twin its value again, which zeroes this one.
    undo = replace(step, id="undo." + step.id, target="/proc/sys/" + TWIN[path], before="0", after=twin.strip())
    return replace(step, undo=undo)


def _missing(path: str, value: str, near: List[str], have: Mapping[str, Any]) -> Finding:
    if _moot(path, value, have):
        return Finding(
            "kernel.not-offered", "info", dotted(path), value, "not built into this kernel",
            "a kernel without NUMA balancing moves no pages, which is what 0 asks for", "nothing to do", SOURCE,
        )  # fmt: skip
    import difflib

    names = [dotted(name) for name in difflib.get_close_matches(path, near, 3, 0.6)]
    fix = "correct the name" + (": did you mean %s?" % " or ".join(names) if names else "; sysctl -a lists all names")
    module = module_of(path)
    if module:
        fix = "load the module %s first (name it in /etc/modules-load.d), or leave this one out" % module
    why = "the kernel offers no such sysctl, so it could not hold after a boot either"
    return not_possible(
        "kernel.sysctl-unknown", dotted(path), value, "no /proc/sys/%s" % path, why, fix + " (kernel_sysctls)", SOURCE
    )


def _overrides(path: str, value: str, have: Mapping[str, Any]) -> List[Finding]:
    later = have["sysctl"]["later"].get(path)
    if later is not None and (later.value is None or later.value.split() != value.split()):
        why = "systemd-sysctl reads this file after %s, so it wins at the next boot" % FILE
        says = "it to nothing (a line with - takes it out)" if later.value is None else later.value
        return [overridden(dotted(path), value, later.file, later.number, says, why, "kernel_sysctls", SOURCE)]
    procps = have["sysctl"]["procps"].get(path)
    if procps is not None and procps.value is not None and procps.value.split() != value.split():
        why = "`sysctl --system` and `sysctl -p` read this file last; the next boot does not"
        return [
            overridden(dotted(path), value, procps.file, procps.number, procps.value, why, "kernel_sysctls", SOURCE)
        ]
    return []
