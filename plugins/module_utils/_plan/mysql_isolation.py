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
from .mysql_group import WHY, group_steps, kernel_size, moved_steps, process_steps, step_id
from .mysql_wall import (
    DIRECTIVES,
    LIMIT_ROWS,
    LIST_FILES,
    SIZE_FILES,
    drop_in_path,
    ids,
    render,
    wall_of,
)

SOURCE = walls.SOURCE

# A server with a large buffer pool writes for minutes before it is down.
_RESTART_DEADLINE_S = 960.0


def plan(want: Mapping[str, Any], have: Mapping[str, Any]) -> List[Step]:
    """The steps for each unit of which a wall is wanted; none unless the policy is to isolate, with cgroup v2."""
    if have["hierarchy"] != "unified" or isinstance(have["servers"], Unknown):
        return []
    steps: List[Step] = []
    for server in have["servers"]:
        if walls.is_managed(want, server) and not isinstance(server["drop_in"], Unknown):
            steps += _plan_server(server, wall_of(want, have, server), have)
    return steps


def _plan_server(server: Mapping[str, Any], wall: Mapping[str, Any], have: Mapping[str, Any]) -> List[Step]:
    text = render(wall)
    not_ours = frozenset(walls.foreign_keys(wall, server))
    files = [_drop_in(server, text)] if server["drop_in"] != text else []
    values = group_steps(server, wall, have, not_ours) + (moved_steps(server) if text else [])
    restart = _restart(server, wall, not_ours)
    values += [] if restart else process_steps(server, wall, not_ours)
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
        step_id(server, "drop-in"),
        "file",
        path,
        server["drop_in"],
        text,
        WHY["drop-in"],
        "systemd.unit(5)",
        needs="reload",
    )


def _reload(server: Mapping[str, Any], requires: Tuple[str, ...]) -> Step:
    target, argv = "systemd's view of " + server["unit"], ("systemctl", "daemon-reload")
    undo = Step(
        "undo." + step_id(server, "reload"), "run", target, "new", "as its files say", WHY["reload"], SOURCE, argv=argv
    )
    return Step(
        step_id(server, "reload"), "run", target, "as it was read", "as its files say", WHY["reload"], SOURCE, "reload",
        argv=argv, undo=undo, requires=requires,
    )  # fmt: skip


def _restart_step(server: Mapping[str, Any], rows: List[Tuple[str, str, str]], before: Tuple[str, ...]) -> Step:
    unit = server["unit"]
    now = ", ".join("%s %s" % (row, value) for row, value, _wanted in rows)
    then = ", ".join("%s %s" % (row, wanted) for row, _value, wanted in rows)
    argv = ("systemctl", "restart", unit)
    undo = Step(
        "undo." + step_id(server, "restart"), "run", unit, then, now, WHY["restart"], "systemd.exec(5)", "restart",
        "disruptive", argv, deadline_s=_RESTART_DEADLINE_S,
    )  # fmt: skip
    return Step(
        step_id(server, "restart"), "run", unit, now, then, WHY["restart"], "systemd.exec(5)", "restart", "disruptive",
        argv, deadline_s=_RESTART_DEADLINE_S, undo=undo, requires=before,
    )  # fmt: skip


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
