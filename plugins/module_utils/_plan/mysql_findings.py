# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is judged on a database beside GPU jobs: its memory against its wall, its settings, its neighbours."""

from __future__ import annotations

import re
from typing import Any, Dict, List, Mapping, Union

from .._engine.cpuset import format_cpulist
from .._engine.values import Finding, Unknown, as_unknown, nothing_wanted
from . import mysql_memory as memory_
from . import mysql_wall as walls
from . import mysql_words as words
from .mysql_memory import DEDICATED, POOL, Memory, memory_of
from .mysql_settings import judge_settings, next_values
from .mysql_wall import foreign_keys, ids, wall_of


def judge(want: Mapping[str, Any], have: Mapping[str, Any]) -> List[Finding]:
    """All findings, the host's first, then each server's."""
    servers = have["servers"]
    unasked = [] if walls.is_asked(want) else [nothing_wanted("mysql_isolation", "mysql_isolation")]
    if unasked and (isinstance(servers, Unknown) or not servers):
        return unasked
    if isinstance(servers, Unknown):
        return [words.unseen("units", "whether a database is here", servers, "systemctl list-units 'm*sql*' 'maria*'")]
    findings = [*unasked, *[words.no_such_unit(unit) for unit in have["missing_units"]]]
    if not servers:
        return [*findings, words.no_database()]
    findings += _judge_policy(want, have)
    if any(walls.is_managed(want, server) for server in servers):
        findings += _judge_hierarchy(have)
    findings += _judge_host(have)
    for server in servers:
        wall = wall_of(want, have, server) if want["policy"] == "isolate" else {}
        findings += _judge_server(want, have, server, wall)
    return findings


def memories(server: Mapping[str, Any], have: Mapping[str, Any]) -> List[Union[Memory, Unknown]]:
    """The server's memory now (when it runs), and as its files will have it at the next start."""
    found: List[Union[Memory, Unknown]] = []
    if server["active"]:
        live = server["live"]
        found.append(
            memory_of(live, "now, over its socket") if isinstance(live, dict) else as_unknown(live, "not asked")
        )
    values = next_values(server)
    place = server["config"].get(POOL, ["", "default"])[1]
    if memory_.is_on(values, DEDICATED) and POOL not in server["config"]:
        total = have["memory_total"]
        if isinstance(total, Unknown):
            return [*found, total]
        values, place = dict(values, **{POOL: str(memory_.dedicated_pool(total))}), DEDICATED
    found.append(memory_of(values, "at its next start, %s" % place))
    return found


def _judge_policy(want: Mapping[str, Any], have: Mapping[str, Any]) -> List[Finding]:
    if want["policy"] == "isolate":
        return []
    gpus, names = have["gpus"], ", ".join(server["unit"] for server in have["servers"])
    if isinstance(gpus, Unknown):
        return [words.unseen("PCI bus", "whether this host has a GPU", gpus, "lspci -nn")]
    if not gpus:
        return []
    return [words.beside_gpu(names, gpus, want["policy"] == "refuse")]


def _judge_hierarchy(have: Mapping[str, Any]) -> List[Finding]:
    hierarchy = have["hierarchy"]
    if isinstance(hierarchy, Unknown):
        return [words.unseen("/sys/fs/cgroup", "what holds for the units", hierarchy, "stat -fc %T /sys/fs/cgroup")]
    if hierarchy == "unified":
        return []
    return [words.cgroup_v1(hierarchy)]


def _judge_host(have: Mapping[str, Any]) -> List[Finding]:
    findings: List[Finding] = []
    total = have["memory_total"]
    needed = [m.floor for s in have["servers"] for m in memories(s, have)[-1:] if isinstance(m, Memory)]
    if not isinstance(total, Unknown) and sum(needed) > total:
        units = ", ".join(server["unit"] for server in have["servers"])
        findings.append(words.pools_above_memory(units, total, sum(needed)))
    return findings + [words.oom_killed(kill) for kill in have["oom_kills"]]


def _judge_server(
    want: Mapping[str, Any], have: Mapping[str, Any], server: Mapping[str, Any], wall: Mapping[str, Any]
) -> List[Finding]:
    findings = judge_settings(server, have, wall)
    for failure in server["pool_failures"]:
        findings.append(words.pool_failure(server, failure))
    if not wall:
        return findings
    findings += _judge_unit(server, wall) if walls.is_managed(want, server) else []
    findings += _judge_memory(server, have, wall)
    findings += _judge_places(want, have, server, wall)
    findings += _judge_io(have, server, wall)
    findings += _judge_devices(server, wall)
    foreign = sorted(foreign_keys(wall, server).items())
    return findings + [words.foreign_owner(server["unit"], key, place) for key, place in foreign]


def _judge_unit(server: Mapping[str, Any], wall: Mapping[str, Any]) -> List[Finding]:
    unit, path = server["unit"], walls.drop_in_path(server["unit"])
    if isinstance(server["drop_in"], Unknown):
        return [words.unseen(path, "the drop-in", server["drop_in"], "ls -l " + path)]
    if isinstance(server["group"], Unknown):
        return [words.unseen(unit, "what holds for the running unit", server["group"], "systemd-cgls -u " + unit)]
    findings = [
        words.old_systemd(unit, directive)
        for key, directive in (("cpus", "AllowedCPUs"), ("memory_nodes", "AllowedMemoryNodes"))
        if wall[key] is not None and directive not in server["shown"]
    ]
    return findings if server["active"] else [*findings, words.server_down(unit, server["state"])]


def _judge_memory(server: Mapping[str, Any], have: Mapping[str, Any], wall: Mapping[str, Any]) -> List[Finding]:
    findings: List[Finding] = []
    found = memories(server, have)
    bounds = {key: wall[key] for key in ("memory_high", "memory_max") if isinstance(wall[key], int)}
    known = [one for one in found if isinstance(one, Memory)]
    if bounds and isinstance(server["live"], Unknown):
        findings.append(words.not_asked(server))
    findings += [words.unseen(server["unit"], "its memory", one, "mariadb -e 'SHOW GLOBAL VARIABLES'") for one in found[1:]
                 if bounds and isinstance(one, Unknown)]  # fmt: skip
    findings += [words.unread(server, place) for place in server["config_unread"] if bounds]
    if known and not bounds:
        findings.append(words.no_wall(server, max(known, key=lambda one: one.peak)))
    most = max(known, key=lambda one: one.floor, default=None)
    below = [key for key, size in bounds.items() if most and size < most.floor]
    findings += [words.below_pool(server, key, bounds[key], most) for key in below if most]
    peak = max(known, key=lambda one: one.peak, default=None)
    tightest = min(bounds, key=lambda key: bounds[key], default="")
    if peak and tightest and not below and bounds[tightest] < peak.peak:
        findings.append(words.below_peak(server, tightest, bounds[tightest], peak))
    held = server["held_bytes"]
    if isinstance(held, int) and bounds.get("memory_max", held) < held:
        findings.append(words.below_held(server, bounds["memory_max"], held))
    return findings


def _judge_places(
    want: Mapping[str, Any], have: Mapping[str, Any], server: Mapping[str, Any], wall: Mapping[str, Any]
) -> List[Finding]:
    findings: List[Finding] = []
    all_nodes = frozenset(node["id"] for node in have["nodes"] or [] if node["has_memory"])
    for key, there, parent, taken in (
        ("cpus", ids(have["cpus"]), ids(server["parent_cpus"]), walls.gpu_cpus(have)),
        ("memory_nodes", all_nodes, ids(server["parent_memory_nodes"]), walls.gpu_nodes(have)),
    ):
        wanted = ids(wall[key])
        if wanted and there and not wanted <= there:
            findings.append(words.beyond_host(server, key, wall[key], format_cpulist(there)))
        elif wanted and parent and not wanted <= parent:
            findings.append(words.parent_narrower(server, key, wall[key], format_cpulist(parent)))
        elif wanted & taken:
            findings.append(words.shared(server, key, format_cpulist(wanted & taken)))
        elif key == "memory_nodes" and not wanted and taken:
            findings.append(words.shared(server, key, format_cpulist(taken)))
    if want["cpus"] == walls.AUTO and wall["cpus"] is None:
        findings.append(words.underived(server, have))
    return findings


def _judge_io(have: Mapping[str, Any], server: Mapping[str, Any], wall: Mapping[str, Any]) -> List[Finding]:
    findings: List[Finding] = []
    numbers: Dict[str, str] = {}
    for limit in wall["io_limits"]:
        path, number = limit["device"], have["devices"].get(limit["device"])
        if not isinstance(number, str):
            findings.append(words.no_device(server, path, number))
        elif number in numbers:
            findings.append(words.device_twice(server, path, numbers[number]))
        else:
            numbers[number] = path
    weight = wall["io_weight"] if wall["io_weight"] is not None else server["shown"].get("IOWeight", "")
    if re.match(r"\d+\Z", str(weight), re.ASCII) and have["weightless_disks"]:
        findings.append(words.weightless(server, weight, have["weightless_disks"]))
    return findings


def _judge_devices(server: Mapping[str, Any], wall: Mapping[str, Any]) -> List[Finding]:
    if wall["device_policy"] not in ("closed", "strict") or not isinstance(server["reach"], Unknown):
        return []
    command = "bpftool cgroup show /sys/fs/cgroup%s" % server["control_group"]
    return [words.unseen(server["unit"], "whether its processes can open a GPU", server["reach"], command)]
