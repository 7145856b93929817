# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is written straight to a running unit: the files of its control group, and its process."""

from __future__ import annotations

from typing import Any, FrozenSet, List, Mapping, Optional

from .._engine.values import Step
from . import mysql_wall as walls
from .mysql_wall import LIST_FILES, PARENT, SIZE_FILES, SOURCE, ids, is_known

PAGE_BYTES = 4096
CGROUP = "/sys/fs/cgroup"
WHY = {
    "drop-in": "limits that are only set live are gone when the server restarts",
    "reload": "systemd applies a changed drop-in to the running unit when it reads its files again",
    "cpuset.cpus": "the server's threads must not run on the CPUs that feed the GPUs",
    "cpuset.mems": "the server's memory must not fill the nodes that GPU jobs allocate on; the kernel moves what is there",
    "memory.high": "above this the server is slowed and its cache reclaimed, before it takes memory from GPU jobs",
    "memory.max": "the last wall: above it the server is killed, not the GPU job",
    "io.max": "limits hold with every scheduler, also with none",
    "io.weight": "the share of a disk that is contended, where bfq or io.cost is on",
    "oom_score_adj": "who is killed first when the host runs out of memory",
    "cgroup.procs": "limits of a control group hold for the processes in it only",
    "restart": "limits of a process are set when it starts",
}


def group_steps(
    server: Mapping[str, Any], wall: Mapping[str, Any], have: Mapping[str, Any], not_ours: FrozenSet[str]
) -> List[Step]:
    """Files of the control group that exist and differ, or that hold what only our old drop-in wanted."""
    group = server["group"]
    if not isinstance(group, dict):
        return []
    old = walls.managed_by(server["drop_in"])
    steps: List[Step] = []
    for key, name in LIST_FILES.items():
        now = group.get(name)
        if not is_known(now) or key in not_ours:
            continue
        # A populated group cannot be given an empty list (ENOSPC): all that the group above has is the same.
        all_of_it = server[PARENT[key]] if isinstance(server[PARENT[key]], str) else ""
        if wall[key] is not None and ids(now) != ids(wall[key]) and (now or all_of_it):
            steps.append(_value(server, name, now or all_of_it, wall[key]))
        elif wall[key] is None and key in old and now and all_of_it and ids(now) != ids(all_of_it):
            steps.append(_value(server, name, now, all_of_it, undo=_undo_by_reload(server, name)))
    for key, name in SIZE_FILES.items():
        now = group.get(name)
        if is_known(now) and wall[key] is not None and key not in not_ours and now != kernel_size(wall[key]):
            steps.append(_value(server, name, now, kernel_size(wall[key])))
    if wall["io_weight"] is not None and "io_weight" not in not_ours and is_known(group.get("io.weight")):
        rows, row = str(group["io.weight"]).splitlines(), "default %d" % wall["io_weight"]
        steps += [_value(server, "io.weight", rows[0], row)] if rows and row not in rows else []
    return steps + ([] if "io_limits" in not_ours else _io_steps(server, wall, have, "io_limits" in old))


def _io_steps(
    server: Mapping[str, Any], wall: Mapping[str, Any], have: Mapping[str, Any], was_ours: bool
) -> List[Step]:
    now, has_file = server["io_max"], is_known(server["group"].get("io.max"))
    if not has_file:
        return []
    steps: List[Step] = []
    wanted = {have["devices"].get(limit["device"]): limit for limit in wall["io_limits"]}
    for number, limit in wanted.items():
        before, after = walls.io_line(str(number), now.get(number, {})), walls.io_line(str(number), limit)
        if number and before != after:
            steps.append(_value(server, "io.max", before, after, "io.max.%s" % number))
    for number in now:
        if was_ours and number not in wanted:
            before, after = walls.io_line(number, now[number]), walls.io_line(number, {})
            undo = _undo_by_reload(server, "io.max.%s" % number)
            steps.append(_value(server, "io.max", before, after, "io.max.%s" % number, undo))
    return steps


def process_steps(server: Mapping[str, Any], wall: Mapping[str, Any], not_ours: FrozenSet[str]) -> List[Step]:
    now, wanted = server["oom_score_adj"], wall["oom_score_adjust"]
    if wanted is None or not is_known(now) or "oom_score_adjust" in not_ours or now == str(wanted):
        return []
    return [
        Step(
            step_id(server, "oom_score_adj"), "value", "/proc/%d/oom_score_adj" % server["pid"], now, str(wanted),
            WHY["oom_score_adj"], "proc(5)",
        )
    ]  # fmt: skip


def moved_steps(server: Mapping[str, Any]) -> List[Step]:
    """A server that was moved out of its unit's group is behind no wall at all.

    Never moved out again by an undo: its number may be another process's by then.
    """
    now = server["process_group"]
    if now is None or now == server["control_group"] or not isinstance(server["group"], dict):
        return []
    undo = _undo_by_reload(server, "process")
    return [_value(server, "cgroup.procs", now, str(server["pid"]), "process", undo)]


def _value(
    server: Mapping[str, Any], name: str, before: Any, after: Any, label: str = "", undo: Optional[Step] = None
) -> Step:
    target = "%s%s/%s" % (CGROUP, server["control_group"], name)
    return Step(
        step_id(server, label or name), "value", target, before, after, WHY[name], "cgroup-v2 document", undo=undo
    )


def _undo_by_reload(server: Mapping[str, Any], label: str) -> Step:
    """For what is cleared: the file may be gone after it (controller off), and systemd sets it again."""
    argv = ("systemctl", "daemon-reload")
    return Step(
        "undo." + step_id(server, label), "run", label, "", "as its files say", WHY["reload"], SOURCE, argv=argv
    )


def kernel_size(size: Any) -> str:
    """A size as memory.max shows it: whole pages, or max."""
    return "max" if size == "infinity" else str(size // PAGE_BYTES * PAGE_BYTES)


def step_id(server: Mapping[str, Any], name: str) -> str:
    return "mysql_isolation.%s.%s" % (server["unit"], name)
