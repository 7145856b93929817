# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The wall around a database: what each unit should have on this host, and the drop-in that says so.

A wall is a dictionary of normalised values, None for what is not managed:

* ``cpus`` and ``memory_nodes`` as kernel lists, away from the GPUs' slices when they are derived;
* ``memory_high`` and ``memory_max`` in bytes (or ``infinity``), ``io_limits`` and ``io_weight``;
* ``device_policy`` and ``device_allow``;
* ``oom_score_adjust``, ``limit_nofile`` and ``limit_memlock``, which belong to the process.
"""

from __future__ import annotations

from typing import Any, Dict, FrozenSet, List, Mapping, Optional, Tuple, Union

from .._engine.cpuset import format_cpulist, parse_cpulist
from .._engine.units import parse_size
from .._engine.values import Unknown

SOURCE = "systemd.resource-control(5)"
KEYS = (
    "cpus",
    "memory_nodes",
    "memory_high",
    "memory_max",
    "io_limits",
    "io_weight",
    "device_policy",
    "device_allow",
    "oom_score_adjust",
    "limit_nofile",
    "limit_memlock",
)
AUTO = "auto"

# Option of one io_limits entry: the unit's directive, and the word of io.max.
IO_LIMITS: Dict[str, Tuple[str, str]] = {
    "read_bandwidth": ("IOReadBandwidthMax", "rbps"),
    "write_bandwidth": ("IOWriteBandwidthMax", "wbps"),
    "read_iops": ("IOReadIOPSMax", "riops"),
    "write_iops": ("IOWriteIOPSMax", "wiops"),
}
# Where each key shows: files of the control group, rows of /proc/PID/limits.
LIST_FILES = {"cpus": "cpuset.cpus", "memory_nodes": "cpuset.mems"}
PARENT = {"cpus": "parent_cpus", "memory_nodes": "parent_memory_nodes"}
SIZE_FILES = {"memory_high": "memory.high", "memory_max": "memory.max"}
LIMIT_ROWS = {"limit_nofile": "Max open files", "limit_memlock": "Max locked memory"}
# Directive of each key, to find who else sets it.
DIRECTIVES: Dict[str, Tuple[str, ...]] = {
    "cpus": ("AllowedCPUs",),
    "memory_nodes": ("AllowedMemoryNodes",),
    "memory_high": ("MemoryHigh",),
    "memory_max": ("MemoryMax",),
    "io_limits": tuple(directive for directive, _word in IO_LIMITS.values()),
    "io_weight": ("IOWeight",),
    "device_policy": ("DevicePolicy",),
    "device_allow": ("DeviceAllow",),
    "oom_score_adjust": ("OOMScoreAdjust",),
    "limit_nofile": ("LimitNOFILE",),
    "limit_memlock": ("LimitMEMLOCK",),
}

_HEAD = "# Managed by gpufleet.host.mysql_isolation: changes made here are put back."


def drop_in_path(unit: str) -> str:
    return "/etc/systemd/system/%s.d/50-gpufleet.conf" % unit


def wall_of(want: Mapping[str, Any], have: Mapping[str, Any], server: Mapping[str, Any]) -> Dict[str, Any]:
    """What one unit should have, with its own values over the common ones."""
    given = _given(want, server)
    cpus, nodes = derive(have, server)
    return {
        "cpus": cpus if given["cpus"] == AUTO else (given["cpus"] or None),
        "memory_nodes": nodes if given["memory_nodes"] == AUTO else (given["memory_nodes"] or None),
        "memory_high": size_of(given["memory_high"]),
        "memory_max": size_of(given["memory_max"]),
        "io_limits": [_io_limit(row) for row in given["io_limits"] or []],
        "io_weight": number_of(given["io_weight"]),
        "device_policy": given["device_policy"] or None,
        "device_allow": list(given["device_allow"] or []),
        "oom_score_adjust": number_of(given["oom_score_adjust"]),
        "limit_nofile": number_of(given["limit_nofile"]),
        "limit_memlock": size_of(given["limit_memlock"]),
    }


def is_asked(want: Mapping[str, Any]) -> bool:
    """Whether anything is wanted of databases: a wall, or none beside GPUs."""
    return want["policy"] != "isolate" or any(_is_set(want.get(key)) for key in (*KEYS, "units", "overrides"))


def _is_set(value: Any) -> bool:
    return value not in (None, "", [])


def is_managed(want: Mapping[str, Any], server: Mapping[str, Any]) -> bool:
    """Whether any wall of the unit is asked for; else its files and its group are left as they are."""
    return want["policy"] == "isolate" and any(map(_is_set, _given(want, server).values()))


def _given(want: Mapping[str, Any], server: Mapping[str, Any]) -> Dict[str, Any]:
    names = [server["unit"], *server["shown"].get("Names", "").split()]
    own: Mapping[str, Any] = next((row for row in want.get("overrides") or [] if row["unit"] in names), {})
    return {key: own[key] if own.get(key) is not None else want.get(key) for key in KEYS}


def derive(have: Mapping[str, Any], server: Mapping[str, Any]) -> Tuple[Optional[str], Optional[str]]:
    """CPUs and memory nodes away from the GPUs' slices; None where there is nothing to keep away from.

    A node that no GPU slice touches is taken whole, with its memory.  Where every node has GPUs the
    database gets the CPUs that are left, and the nodes of these CPUs.
    """
    taken, taken_nodes = gpu_cpus(have), gpu_nodes(have)
    online = ids(have.get("cpus"))
    if not taken or not online:
        return None, None
    left = (online - taken) & (ids(server.get("parent_cpus")) or online)
    nodes = {node["id"]: ids(node["cpus"]) for node in have.get("nodes") or [] if node["has_memory"]}
    free = {node for node, cpus in nodes.items() if node not in taken_nodes and not cpus & taken}
    near = left & frozenset().union(*[nodes[node] for node in free])
    if near:
        return format_cpulist(near), format_cpulist(free)
    holders = {node for node, cpus in nodes.items() if cpus & left}
    return format_cpulist(left) or None, format_cpulist(holders) if holders and len(holders) < len(nodes) else None


def gpu_cpus(have: Mapping[str, Any]) -> FrozenSet[int]:
    return frozenset().union(*[ids(one["cpus"]) for one in (have.get("slices") or {}).values()])


def gpu_nodes(have: Mapping[str, Any]) -> FrozenSet[int]:
    return frozenset().union(*[ids(one["memory_nodes"]) for one in (have.get("slices") or {}).values()])


def ids(text: Any) -> FrozenSet[int]:
    """A list as a set; empty for what is missing, unknown or no list."""
    try:
        return parse_cpulist(text) if isinstance(text, str) else frozenset()
    except ValueError:
        return frozenset()


def size_of(value: Any) -> Union[int, str, None]:
    """Bytes, ``infinity``, or None for what is not managed."""
    if value in (None, ""):
        return None
    return "infinity" if value == "infinity" else parse_size(value)


def number_of(value: Any) -> Optional[int]:
    """A number, or None for what is not managed.  Roles can pass an empty text, but no null."""
    return None if value in (None, "") else int(value)


def render(wall: Mapping[str, Any]) -> Optional[str]:
    """The drop-in, or None when nothing is managed.

    Lists are emptied first: systemd adds AllowedCPUs= and IO*Max= of several files together.
    """
    rows: List[str] = []
    for key, directive in (("cpus", "AllowedCPUs"), ("memory_nodes", "AllowedMemoryNodes")):
        if wall[key]:
            rows += [directive + "=", "%s=%s" % (directive, wall[key])]
    rows += [
        "%s=%s" % (DIRECTIVES[key][0], wall[key]) for key in ("memory_high", "memory_max") if wall[key] is not None
    ]
    rows += ["%s=" % directive for directive in DIRECTIVES["io_limits"] if wall["io_limits"]]
    for limit in wall["io_limits"]:
        pairs = [(directive, limit[word]) for directive, word in IO_LIMITS.values() if limit[word] is not None]
        rows += ["%s=%s %d" % (directive, limit["device"], figure) for directive, figure in pairs]
    for key in ("io_weight", "device_policy", "oom_score_adjust", "limit_nofile", "limit_memlock"):
        if wall[key] is not None:
            rows.append("%s=%s" % (DIRECTIVES[key][0], wall[key]))
    rows += ["DeviceAllow=%s" % entry for entry in wall["device_allow"]]
    return "\n".join([_HEAD, "[Service]", *rows, ""]) if rows else None


def managed_by(text: Any) -> FrozenSet[str]:
    """The keys that a drop-in of ours manages."""
    names = {line.partition("=")[0].strip() for line in (text.splitlines() if isinstance(text, str) else [])}
    return frozenset(key for key, directives in DIRECTIVES.items() if names & set(directives))


def io_line(number: str, limit: Mapping[str, Any]) -> str:
    """A limit as io.max takes and shows it."""
    words = [word for _directive, word in IO_LIMITS.values()]
    return " ".join([number] + ["%s=%s" % (word, "max" if limit.get(word) is None else limit[word]) for word in words])


def foreign_keys(wall: Mapping[str, Any], server: Mapping[str, Any]) -> Dict[str, Tuple[str, int, str]]:
    """Managed keys that a drop-in read after ours sets too: where, and to what."""
    found: Dict[str, Tuple[str, int, str]] = {}
    for path, number, directive, value in server.get("foreign") or []:
        for key, directives in DIRECTIVES.items():
            if directive in directives and wall[key] not in (None, []):
                found[key] = (path, number, "%s=%s" % (directive, value))
    return found


def is_known(value: Any) -> bool:
    return value is not None and not isinstance(value, Unknown)


def _io_limit(row: Mapping[str, Any]) -> Dict[str, Any]:
    limit: Dict[str, Any] = {"device": row["device"]}
    for option, (_directive, word) in IO_LIMITS.items():
        limit[word] = size_of(row.get(option))
    return limit
