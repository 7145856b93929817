# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The area mysql_isolation: joins what is read of database units with what is decided about them."""

from __future__ import annotations

import re
from typing import Any, Dict, List, Mapping, Sequence, Union

from .._engine.cpuset import format_cpulist
from .._engine.engine import Area
from .._engine.host import Host
from .._engine.values import Unknown
from .._observe import block, cgroup, cpu, device_nodes, mysql, numa, oom, pci, service
from .._plan import mysql_adopt, mysql_findings, mysql_isolation, mysql_want
from .._plan.mysql_wall import drop_in_path

_WALL: Dict[str, Any] = {
    "cpus": {"type": "str"},
    "memory_nodes": {"type": "str"},
    "memory_high": {"type": "str"},
    "memory_max": {"type": "str"},
    "io_limits": {
        "type": "list",
        "elements": "dict",
        "options": {
            "device": {"type": "str", "required": True},
            "read_bandwidth": {"type": "str"},
            "write_bandwidth": {"type": "str"},
            "read_iops": {"type": "int"},
            "write_iops": {"type": "int"},
        },
    },
    "io_weight": {"type": "str"},
    "device_policy": {"type": "str", "choices": ["closed", "strict", "auto", ""]},
    "device_allow": {"type": "list", "elements": "str"},
    "oom_score_adjust": {"type": "str"},
    "limit_nofile": {"type": "str"},
    "limit_memlock": {"type": "str"},
}

SPEC: Dict[str, Any] = dict(
    _WALL,
    policy={"type": "str", "choices": ["isolate", "refuse", "report"], "default": "isolate"},
    units={"type": "list", "elements": "str", "default": []},
    overrides={
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": dict({"unit": {"type": "str", "required": True}}, **_WALL),
    },
    gpu_match={
        "type": "list",
        "elements": "dict",
        "default": [{"vendor": "10de", "class": "0302"}, {"vendor": "10de", "class": "0300"}],
        "options": {"vendor": {"type": "str"}, "device": {"type": "str"}, "class": {"type": "str"}},
    },
    io_limits=dict(_WALL["io_limits"], default=[]),
    device_allow=dict(_WALL["device_allow"], default=[]),
)

# The slices of GPUs (numa_slices); systemd.slice(5): a dash is a level of the hierarchy.
_GPU_SLICE = re.compile(r"gpufleet-(?:node\d{1,4}-)?gpu\d{1,4}\.slice", re.ASCII)
_SLICE_FOLDER = "/etc/systemd/system"


def observe(host: Host, want: Mapping[str, Any]) -> Dict[str, Any]:
    """The databases of this host, and what their walls depend on; little is read where there is none."""
    named = [*(want["units"] or []), *[row["unit"] for row in want["overrides"] or []]]
    found = mysql.find(host, named)
    have: Dict[str, Any] = {"servers": found, "gpus": [], "hierarchy": "unified", "devices": {}, "slices": {}}
    have.update(cpus=Unknown("not looked at"), nodes=[], memory_total=Unknown("not looked at"))
    have.update(oom_kills=[], weightless_disks=[], missing_units=_missing(named, found))
    if isinstance(found, Unknown) or not found:
        return have
    have["hierarchy"] = cgroup.hierarchy(host)
    have["gpus"] = _gpus(host, want) if want["policy"] != "isolate" else []
    have["devices"] = {path: service.device_number(host, path) for path in _device_paths(want)}
    have.update(_places(host))
    have["memory_total"] = service.memory_total(host.read("/proc/meminfo"))
    have["servers"] = [_server(host, block_, want) for block_ in found]
    have["oom_kills"] = _oom_kills(host)
    if any(_has_weight(want, server) for server in have["servers"]):
        have["weightless_disks"] = _weightless(host)
    return have


def _missing(named: Sequence[str], found: Union[List[Dict[str, str]], Unknown]) -> List[str]:
    if isinstance(found, Unknown):
        return []
    known = {name for shown in found for name in [shown["Id"], *shown.get("Names", "").split()]}
    return [name for name in named if name not in known]


def _server(host: Host, shown: Mapping[str, str], want: Mapping[str, Any]) -> Dict[str, Any]:
    unit, group = shown["Id"], shown.get("ControlGroup", "")
    is_active = shown.get("ActiveState") in ("active", "reloading", "deactivating")
    pid = int(shown["MainPID"]) if re.fullmatch(r"[1-9]\d{0,9}", shown.get("MainPID", ""), re.ASCII) else 0
    limits = service.limits(host, group) if is_active else None
    path = drop_in_path(unit)
    others = service.drop_ins_after(shown.get("DropInPaths", "").split(), path)
    server: Dict[str, Any] = {
        "unit": unit,
        "active": is_active,
        "state": shown.get("ActiveState", ""),
        "pid": pid,
        "control_group": group,
        "shown": dict(shown),
        "needs_reload": shown.get("NeedDaemonReload") == "yes",
        "drop_in": host.read(path),
        "foreign": service.assignments(host, others),
        "group": limits,
        "io_max": service.parse_io_max(limits.get("io.max")) if isinstance(limits, dict) else {},
        "held_bytes": service.held_bytes(host, group) if is_active else None,
        "parent_cpus": service.effective(host, group.rsplit("/", 1)[0], "cpuset.cpus.effective") if is_active else "",
        "parent_memory_nodes": service.effective(host, group.rsplit("/", 1)[0], "cpuset.mems.effective")
        if is_active
        else "",
        "reach": _reach(host, shown, group) if is_active and isinstance(limits, dict) else None,
        "process_group": service.group_of(host.read("/proc/%d/cgroup" % pid)) if is_active and pid else None,
        "oom_score_adj": _word(host.read("/proc/%d/oom_score_adj" % pid)) if is_active and pid else None,
        "process_limits": service.parse_limits(host.read("/proc/%d/limits" % pid)) if is_active and pid else {},
    }
    server.update(_database(host, shown, is_active, pid))
    return server


def _database(host: Host, shown: Mapping[str, str], is_active: bool, pid: int) -> Dict[str, Any]:
    """Who the server is, what it says of itself now, and what it will be started with."""
    argv = mysql.argv_of(shown)
    program = mysql.program_of(host, pid, argv)
    guess = "mariadb" if "mariadb" in program else ""
    live: Union[Dict[str, str], Unknown, None] = None
    flavour, version = guess, ""
    if is_active:
        early = mysql.read_config(host, shown["Id"], argv, guess or "mariadb", "")
        live = mysql.read_variables(host, guess, early)
    if isinstance(live, dict):
        flavour, version = mysql.parse_version("%s %s" % (live.get("version", ""), live.get("version_comment", "")))
    if not version:
        flavour, version = mysql.version_of_program(host, program)
    config = mysql.read_config(host, shown["Id"], argv, flavour or guess, version)
    return {
        "flavour": flavour or guess,
        "version": version,
        "live": live,
        "config": {
            name: [setting.value, setting.place] for name, setting in config.settings.items() if name in mysql.VARIABLES
        },
        "config_unread": list(config.unread),
        "pool_failures": _pool_failures(host, shown),
    }


def _reach(host: Host, shown: Mapping[str, str], group: str) -> Union[Dict[str, str], Unknown, None]:
    """Only behind a policy that should deny: nothing of a GPU is opened on a host without a wall."""
    if shown.get("DevicePolicy") not in ("closed", "strict"):
        return None
    return device_nodes.reach(host, group, [*device_nodes.gpu_nodes(host), device_nodes.CONTROL_NODE])


def _places(host: Host) -> Dict[str, Any]:
    online = cpu.ids_of(host.read(cpu.CPU_FOLDER + "/online"))
    nodes = numa.observe(host)
    slices: Dict[str, Any] = {}
    for name in host.listdir(_SLICE_FOLDER):
        if _GPU_SLICE.fullmatch(name):
            rows = {
                key: value
                for _p, _n, key, value in service.assignments(host, ["%s/%s" % (_SLICE_FOLDER, name)])
                if value
            }
            slices[name] = {"cpus": rows.get("AllowedCPUs", ""), "memory_nodes": rows.get("AllowedMemoryNodes", "")}
    return {
        "cpus": online if isinstance(online, Unknown) else format_cpulist(online),
        "nodes": [] if isinstance(nodes, Unknown) else [_node(node) for node in nodes],
        "slices": slices,
    }


def _node(node: numa.Node) -> Dict[str, Any]:
    cpus = "" if isinstance(node.cpus, Unknown) else format_cpulist(node.cpus)
    return {"id": node.id, "cpus": cpus, "has_memory": node.has_memory}


def _gpus(host: Host, want: Mapping[str, Any]) -> Union[List[str], Unknown]:
    found = pci.observe_gpus(host, want["gpu_match"])
    return found if isinstance(found, Unknown) else [device.address for device in found]


def _device_paths(want: Mapping[str, Any]) -> Sequence[str]:
    rows = [want, *(want["overrides"] or [])]
    return sorted({limit["device"] for row in rows for limit in row.get("io_limits") or []})


def _oom_kills(host: Host) -> List[Dict[str, Any]]:
    """Databases that the kernel killed since boot; its log is only asked for when its counter says so."""
    count = service.parse_flat(host.read("/proc/vmstat")).get("oom_kill")
    if not count:
        return []
    text = host.run(["dmesg"]).text()
    kills = [] if isinstance(text, Unknown) else oom.parse_oom(text)
    return [
        {"name": kill.name, "pid": kill.pid, "text": _kill_text(kill)}
        for kill in kills
        if kill.name.startswith(("mysqld", "mariadbd"))
    ]


def _kill_text(kill: oom.OomKill) -> str:
    if kill.anon_rss_kib is None:
        return "killed for want of memory"
    return "killed with %s kB of its own memory" % kill.anon_rss_kib


def _pool_failures(host: Host, shown: Mapping[str, str]) -> List[str]:
    """Why a server that failed did so, from its own log."""
    if shown.get("ActiveState") != "failed":
        return []
    text = host.run(["journalctl", "-u", shown["Id"], "-n", "200", "-o", "cat", "--no-pager"]).text()
    failures = [] if isinstance(text, Unknown) else oom.parse_pool_failures(text)
    return ["mmap of %s bytes failed" % failure.size_bytes for failure in failures[:1]]


def _has_weight(want: Mapping[str, Any], server: Mapping[str, Any]) -> bool:
    wanted = [row.get("io_weight") for row in [want, *(want["overrides"] or [])]]
    return any(weight not in (None, "") for weight in wanted) or server["shown"].get("IOWeight", "").isdigit()


def _weightless(host: Host) -> List[str]:
    names = block.disk_names(host)
    schedulers: Dict[str, str] = {}
    numbers: Dict[str, str] = {}
    for name in [] if isinstance(names, Unknown) else names:
        found = block.parse_scheduler(host.read("/sys/block/%s/queue/scheduler" % name))
        if not isinstance(found, Unknown) and re.match(r"(nvme|sd|vd|xvd)", name):
            schedulers[name] = found.active
            numbers[name] = _word(host.read("/sys/block/%s/dev" % name)) or ""
    return service.without_weight(schedulers, numbers, host.read("/sys/fs/cgroup/io.cost.qos"))


def _word(text: Any) -> Any:
    return text.strip() if isinstance(text, str) else text


AREA = Area(
    name="mysql_isolation",
    role="mysql_isolation",
    spec=SPEC,
    check_want=mysql_want.check_want,
    observe=observe,
    plan=mysql_isolation.plan,
    judge=mysql_findings.judge,
    adopt=mysql_adopt.adopt,
    # The database is kept out of the slices of GPUs.
    follows=("numa_slices",),
)
