# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Databases beside GPU jobs: a drop-in on the real unit, and the same limits live in its control group.

systemd applies all resource limits and the device filter to a running unit on daemon-reload (seen
with systemd 252), so only limits of the process itself (LimitNOFILE, LimitMEMLOCK) need a restart.
Two things it leaves behind are written to the control group directly: a cpuset or an io.max that no
file wants any more while a neighbour keeps the controller on, and what was changed there by hand.
"""

from __future__ import annotations

from typing import Any, FrozenSet, List, Mapping, Optional, Tuple

from .._engine.values import Step, Unknown
from . import mysql_wall as walls
from .mysql_wall import (
    DIRECTIVES,
    LIMIT_ROWS,
    LIST_FILES,
    PARENT,
    SIZE_FILES,
    drop_in_path,
    ids,
    is_known,
    render,
    wall_of,
)

PAGE_BYTES = 4096
CGROUP = "/sys/fs/cgroup"
SOURCE = walls.SOURCE

# A server with a large buffer pool writes for minutes before it is down.
_RESTART_DEADLINE_S = 960.0

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
    "restart": "limits of a process are set when it starts",
}


def plan(want: Mapping[str, Any], have: Mapping[str, Any]) -> List[Step]:
    """The steps for each unit; none unless the policy is to isolate on a host with cgroup v2."""
    if want["policy"] != "isolate" or have["hierarchy"] != "unified" or isinstance(have["servers"], Unknown):
        return []
    steps: List[Step] = []
    for server in have["servers"]:
        if not isinstance(server["drop_in"], Unknown):
            steps += _plan_server(server, wall_of(want, have, server), have)
    return steps


def _plan_server(server: Mapping[str, Any], wall: Mapping[str, Any], have: Mapping[str, Any]) -> List[Step]:
    text = render(wall)
    not_ours = frozenset(walls.foreign_keys(wall, server))
    files = [_drop_in(server, text)] if server["drop_in"] != text else []
    values = _group_steps(server, wall, have, not_ours)
    restart = _restart(server, wall, not_ours)
    values += [] if restart else _process_steps(server, wall, not_ours)
    steps = [*values, *files]
    if files or needs_reload(server, wall, have, not_ours):
        steps.append(_reload(server, tuple(step.id for step in files)))
    if restart:
        before = tuple(step.id for step in steps if step.id.endswith((".drop-in", ".reload")))
        steps.append(_restart_step(server, restart, before))
    return steps


def needs_reload(
    server: Mapping[str, Any], wall: Mapping[str, Any], have: Mapping[str, Any], not_ours: FrozenSet[str]
) -> bool:
    """Whether systemd's own view, or what only systemd can set, differs from the wall."""
    if server["needs_reload"]:
        return True
    shown = server["shown"]
    differs = {
        "cpus": wall["cpus"] is not None and ids(shown.get("AllowedCPUs")) != ids(wall["cpus"]),
        "memory_nodes": wall["memory_nodes"] is not None
        and ids(shown.get("AllowedMemoryNodes")) != ids(wall["memory_nodes"]),
        "device_policy": wall["device_policy"] is not None and _device_drift(server, wall),
        "device_allow": any(not _is_allowed(entry, shown.get("DeviceAllow", "")) for entry in wall["device_allow"]),
        "io_weight": wall["io_weight"] is not None and shown.get("IOWeight") != str(wall["io_weight"]),
        "oom_score_adjust": wall["oom_score_adjust"] is not None
        and shown.get("OOMScoreAdjust") != str(wall["oom_score_adjust"]),
    }
    for key in (*SIZE_FILES, *LIMIT_ROWS):
        differs[key] = wall[key] is not None and not _same_size(shown.get(DIRECTIVES[key][0], ""), wall[key])
    if any(is_different for key, is_different in differs.items() if key not in not_ours):
        return True
    return _is_controller_off(server, wall, have, not_ours)


def _is_controller_off(
    server: Mapping[str, Any], wall: Mapping[str, Any], have: Mapping[str, Any], not_ours: FrozenSet[str]
) -> bool:
    group = server["group"]
    if not isinstance(group, dict):
        return False
    names = {**LIST_FILES, **SIZE_FILES, "io_weight": "io.weight"}
    wanted = [name for key, name in names.items() if wall[key] is not None and key not in not_ours]
    if "io_limits" not in not_ours and any(have["devices"].get(limit["device"]) for limit in wall["io_limits"]):
        wanted.append("io.max")
    return any(group.get(name) is None for name in wanted)


def _device_drift(server: Mapping[str, Any], wall: Mapping[str, Any]) -> bool:
    if server["shown"].get("DevicePolicy") != wall["device_policy"]:
        return True
    reach = server["reach"]
    return isinstance(reach, dict) and wall["device_policy"] != "auto" and "reachable" in reach.values()


def _group_steps(
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


def _process_steps(server: Mapping[str, Any], wall: Mapping[str, Any], not_ours: FrozenSet[str]) -> List[Step]:
    now, wanted = server["oom_score_adj"], wall["oom_score_adjust"]
    if wanted is None or not is_known(now) or "oom_score_adjust" in not_ours or now == str(wanted):
        return []
    return [
        Step(
            _id(server, "oom_score_adj"), "value", "/proc/%d/oom_score_adj" % server["pid"], now, str(wanted),
            WHY["oom_score_adj"], "proc(5)",
        )
    ]  # fmt: skip


def _restart(
    server: Mapping[str, Any], wall: Mapping[str, Any], not_ours: FrozenSet[str]
) -> List[Tuple[str, str, str]]:
    """Limits of the running process that differ: name, now, wanted."""
    rows = server["process_limits"] if isinstance(server["process_limits"], dict) else {}
    found: List[Tuple[str, str, str]] = []
    for key, row in LIMIT_ROWS.items():
        if wall[key] is None or key in not_ours or row not in rows:
            continue
        wanted = "unlimited" if wall[key] == "infinity" else str(wall[key])
        if tuple(rows[row]) != (wanted, wanted):
            found.append((row, "%s:%s" % tuple(rows[row]), wanted))
    return found


def _drop_in(server: Mapping[str, Any], text: Optional[str]) -> Step:
    path = drop_in_path(server["unit"])
    return Step(
        _id(server, "drop-in"), "file", path, server["drop_in"], text, WHY["drop-in"], "systemd.unit(5)", needs="reload"
    )


def _reload(server: Mapping[str, Any], requires: Tuple[str, ...]) -> Step:
    target, argv = "systemd's view of " + server["unit"], ("systemctl", "daemon-reload")
    undo = Step(
        "undo." + _id(server, "reload"), "run", target, "new", "as its files say", WHY["reload"], SOURCE, argv=argv
    )
    return Step(
        _id(server, "reload"), "run", target, "as it was read", "as its files say", WHY["reload"], SOURCE, "reload",
        argv=argv, undo=undo, requires=requires,
    )  # fmt: skip


def _value(
    server: Mapping[str, Any], name: str, before: Any, after: Any, label: str = "", undo: Optional[Step] = None
) -> Step:
    target = "%s%s/%s" % (CGROUP, server["control_group"], name)
    return Step(_id(server, label or name), "value", target, before, after, WHY[name], "cgroup-v2 document", undo=undo)


def _undo_by_reload(server: Mapping[str, Any], label: str) -> Step:
    """For what is cleared: the file may be gone after it (controller off), and systemd sets it again."""
    argv = ("systemctl", "daemon-reload")
    return Step("undo." + _id(server, label), "run", label, "", "as its files say", WHY["reload"], SOURCE, argv=argv)


def _restart_step(server: Mapping[str, Any], rows: List[Tuple[str, str, str]], before: Tuple[str, ...]) -> Step:
    unit = server["unit"]
    now = ", ".join("%s %s" % (row, value) for row, value, _wanted in rows)
    then = ", ".join("%s %s" % (row, wanted) for row, _value, wanted in rows)
    argv = ("systemctl", "restart", unit)
    undo = Step(
        "undo." + _id(server, "restart"), "run", unit, then, now, WHY["restart"], "systemd.exec(5)", "restart",
        "disruptive", argv, deadline_s=_RESTART_DEADLINE_S,
    )  # fmt: skip
    return Step(
        _id(server, "restart"), "run", unit, now, then, WHY["restart"], "systemd.exec(5)", "restart", "disruptive",
        argv, deadline_s=_RESTART_DEADLINE_S, undo=undo, requires=before,
    )  # fmt: skip


def kernel_size(size: Any) -> str:
    """A size as memory.max shows it: whole pages, or max."""
    return "max" if size == "infinity" else str(size // PAGE_BYTES * PAGE_BYTES)


def _same_size(shown: str, wanted: Any) -> bool:
    if wanted == "infinity":
        return shown in ("infinity", "18446744073709551615")
    return shown in (str(wanted), kernel_size(wanted))


def _is_allowed(entry: str, shown: str) -> bool:
    node, _space, access = entry.strip().partition(" ")
    for row in shown.splitlines():
        name, _space, given = row.strip().partition(" ")
        if name == node and set(access.strip() or "rwm") <= set(given):
            return True
    return False


def _id(server: Mapping[str, Any], name: str) -> str:
    return "mysql_isolation.%s.%s" % (server["unit"], name)
