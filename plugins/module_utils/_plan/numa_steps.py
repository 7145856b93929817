# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps on slices beside their files: start, stop, values of control groups, the proof, and undoing in order."""

from __future__ import annotations

from typing import Any, Iterable, List, Mapping, Sequence, Tuple

from .._engine.cpuset import format_cpulist
from .._engine.values import Step
from .numa_layout import Layout, Slice
from .numa_texts import properties
from .numa_units import (
    CGROUP_FOLDER,
    GPU_RUN,
    KERNEL_FILE,
    SOURCE,
    group_folder,
    is_active,
    is_stale,
    overrides_of,
    same,
)

# $1 is a slice, $2 its cgroup.events (without the file the slice is not active, and stopping it does nothing).
STOP_IF_EMPTY = (
    'if grep -qs "^populated 1" "$2"; then echo "something runs in $1: systemd-cgls -u $1" >&2; exit 1; fi; '
    'exec systemctl stop -- "$1"'
)
# $1 is a list of CPUs, $2 a file that is there only while the cpuset controller is on.
WRITE_IF_THERE = 'test ! -e "$2" || echo "$1" > "$2"'
WIDEN_WHY = (
    "systemd narrows a list of CPUs when it reads it, but does not widen it again when the setting is gone "
    "(https://github.com/systemd/systemd/issues/43846)"
)


def anchor(name: str, target: str, argv: Tuple[str, ...], why: str) -> Step:
    why = "does nothing now; " + why
    undo = Step("undo." + name, "run", target, None, None, why, SOURCE, argv=argv, deadline_s=120.0)
    return Step(name, "run", target, None, None, why, SOURCE, argv=("true",), undo=undo)


def start_slice(name: str, have: Mapping[str, Any]) -> Step:
    before = have["units"].get(name, {}).get("ActiveState") or "unknown"
    why = "an active slice shows in its control group that it confines, before any job is in it"
    undo = Step(
        "undo.numa_slices.%s.start" % name, "run", name, "active", "inactive when nothing runs in it",
        "only an empty slice is stopped: an undo never kills a running job", SOURCE,
        argv=("sh", "-c", STOP_IF_EMPTY, "sh", name, group_folder(name) + "/cgroup.events"),
    )  # fmt: skip
    argv = ("systemctl", "start", "--", name)
    return Step("numa_slices.%s.start" % name, "run", name, before, "active", why, SOURCE, argv=argv, undo=undo)


def stop_slice(name: str) -> Step:
    argv = ("systemctl", "start", "--", name)
    undo = Step("undo.numa_slices.%s.stop" % name, "run", name, "inactive", "active", "as it was", SOURCE, argv=argv)
    why = "the slice is not wanted any more and is empty"
    argv = ("systemctl", "stop", "--", name)
    return Step("numa_slices.%s.stop" % name, "run", name, "active", "inactive", why, SOURCE, argv=argv, undo=undo)


def value_steps(one: Slice, have: Mapping[str, Any]) -> List[Step]:
    """Values that were written over systemd's: its properties are right, the control group is not."""
    group = have["groups"].get(one.name)
    if group is None or not is_active(one.name, have) or is_stale(one.name, properties(one), have):
        return []
    steps: List[Step] = []
    for key, value in properties(one).items():
        wanted, live = _kernel_word(key, value), group.values.get(KERNEL_FILE[key])
        if isinstance(live, str) and not _same_in_kernel(key, wanted, live):
            if overrides_of(one.name, have, [key]):
                continue
            path = "%s/%s" % (group.path, KERNEL_FILE[key])
            why = "someone wrote over what systemd had set, and systemd does not look again by itself"
            name = "numa_slices.%s.%s" % (one.name, KERNEL_FILE[key])
            steps.append(Step(name, "value", path, live.strip() or "\n", wanted, why, "cgroup-v2 document"))
    return steps


def confine_values(units: Sequence[str], cpus: Iterable[int], have: Mapping[str, Any]) -> List[Step]:
    """The lists of CPUs of system.slice and the like, where they are not what they should be."""
    steps: List[Step] = []
    wanted = format_cpulist(cpus)
    for unit in units:
        group = have["groups"].get(unit)
        live = group.values.get("cpuset.cpus") if group is not None else None
        if not isinstance(live, str) or overrides_of(unit, have, ["AllowedCPUs"]) or same("AllowedCPUs", wanted, live):
            continue
        path = "%s/%s/cpuset.cpus" % (CGROUP_FOLDER, unit)
        before = live.strip() or format_cpulist(have["online"])
        name = "numa_slices.%s.cpuset.cpus" % unit
        steps.append(Step(name, "value", path, before, wanted, WIDEN_WHY, SOURCE))
    return steps


def proof(found: Layout) -> Step:
    """The last step: a process in each slice, and what the kernel allows it.  A slice that does not hold undoes all."""
    why = "starts a process in each slice and reads its Cpus_allowed_list and Mems_allowed_list"
    undo = Step(
        "undo.numa_slices.proof", "run", "gpufleet slices", None, None, "it left nothing behind", SOURCE, argv=("true",)
    )
    return Step(
        "numa_slices.proof", "run", "gpufleet slices", "not proved", "proved by a process in each", why, "proc(5)",
        argv=(GPU_RUN, "--verify", *[one.name for one in found.slices]), deadline_s=30.0 + 10.0 * len(found.slices),
        undo=undo,
    )  # fmt: skip


def _kernel_word(key: str, value: str) -> str:
    return "max" if value == "infinity" else value


def _same_in_kernel(key: str, wanted: str, live: str) -> bool:
    return same(key, wanted, live) if key in ("AllowedCPUs", "AllowedMemoryNodes") else wanted == live.strip()
