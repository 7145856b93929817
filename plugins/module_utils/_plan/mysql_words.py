# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The wording of the findings on walls: what is wrong, where, why, and what to type next."""

from __future__ import annotations

from typing import Any, List, Mapping, Optional, Tuple

from .._engine.cpuset import format_cpulist
from .._engine.units import format_size, format_size_for_people
from .._engine.values import Finding, Unknown
from . import mysql_memory as memory_
from .mysql_memory import Memory
from .mysql_wall import SOURCE, gpu_cpus

_ROLE = "mysql_isolation_"
_WEIGHT_SOURCE = "cgroup-v2 document (io.cost.qos: the implementation of io.weight, disabled by default)"


def beside_gpu(names: str, gpus: List[str], is_refused: bool) -> Finding:
    return Finding(
        "mysql_isolation.beside-gpu", "block" if is_refused else "warn", names,
        "no database on a host with GPUs", "%d GPUs: %s" % (len(gpus), ", ".join(gpus)),
        "the database and the jobs compete for memory, memory bandwidth and disks of one host",
        "move the database to a host of its own, or set mysql_isolation_policy: isolate to wall it",
        "docs/areas/mysql_isolation.md",
    )  # fmt: skip


def cgroup_v1(hierarchy: str) -> Finding:
    return Finding(
        "mysql_isolation.cgroup-v1", "block", "/sys/fs/cgroup", "cgroup v2 (unified)", hierarchy,
        "AllowedCPUs=, AllowedMemoryNodes= and MemoryHigh= do nothing on cgroup v1, without any error",
        "boot with systemd.unified_cgroup_hierarchy=1 on the kernel command line (role kernel)", SOURCE,
    )  # fmt: skip


def pools_above_memory(units: str, total: int, needed: int) -> Finding:
    return Finding(
        "mysql_isolation.pools-above-memory", "fail", units,
        "buffer pools within %s" % format_size_for_people(total), format_size_for_people(needed),
        "the buffer pools of all servers together are larger than the host's memory",
        "lower innodb_buffer_pool_size in the servers' option files", memory_.SOURCE,
    )  # fmt: skip


def oom_killed(kill: Mapping[str, Any]) -> Finding:
    return Finding(
        "mysql_isolation.oom-killed", "warn", "%s (process %d)" % (kill["name"], kill["pid"]), "no kill for memory",
        kill["text"], "the kernel killed a database for want of memory: its pool and its connections do not fit",
        "compare innodb_buffer_pool_size and max_connections with %smemory_max; journalctl -k -g 'Killed process'"
        % _ROLE, "kernel log",
    )  # fmt: skip


def foreign_owner(unit: str, key: str, place: Tuple[str, int, str]) -> Finding:
    return Finding(
        "mysql_isolation.foreign-owner", "fail", "%s %s" % (unit, key), "one owner", "%s:%d: %s" % place,
        "this drop-in is read after ours and sets the same, so it wins",
        "remove the line and run systemctl daemon-reload, or leave %s%s out" % (_ROLE, key), "systemd.unit(5)",
    )  # fmt: skip


def old_systemd(unit: str, directive: str) -> Finding:
    return Finding(
        "mysql_isolation.systemd-too-old", "block", unit, "a systemd that knows %s=" % directive, "no such property",
        "it came with systemd 244; an older one ignores the line with a warning in its log",
        "upgrade the host's release, or leave the option out", SOURCE, ("mysql_isolation.%s." % unit,),
    )  # fmt: skip


def no_such_unit(unit: str) -> Finding:
    return Finding(
        "mysql_isolation.no-such-unit", "warn", unit, "a unit of this host", "not found",
        "it is named in %sunits or %soverrides, and systemd knows no such unit" % (_ROLE, _ROLE),
        "systemctl list-unit-files '*sql*' '*maria*'; correct the name", SOURCE,
    )  # fmt: skip


def server_down(unit: str, state: str) -> Finding:
    return Finding(
        "mysql_isolation.server-down", "info", unit, "a running server", state,
        "the wall is in place for its next start; only a running unit has a control group to look at",
        "systemctl status " + unit, SOURCE,
    )  # fmt: skip


def below_pool(server: Mapping[str, Any], key: str, size: int, need: Memory) -> Finding:
    return Finding(
        "mysql_isolation.wall-below-pool", "block", "%s %s%s" % (server["unit"], _ROLE, key),
        "%s or more" % format_size(_up(need.floor)), format_size(size),
        "the buffer pool takes %s (%s), 10 %% more with its control structures: inside this wall the server is %s"
        % (format_size_for_people(need.pool), need.place, "killed" if key == "memory_max" else "throttled for good"),
        "set %s%s: %s or more (%s with all %d connections), or lower innodb_buffer_pool_size"
        % (_ROLE, key, format_size(_up(need.floor)), format_size(_up(need.peak)), need.connections),
        memory_.SOURCE, ("mysql_isolation.%s." % server["unit"],),
    )  # fmt: skip


def below_peak(server: Mapping[str, Any], key: str, size: int, need: Memory) -> Finding:
    return Finding(
        "mysql_isolation.wall-below-peak", "warn", "%s %s%s" % (server["unit"], _ROLE, key),
        "%s or more" % format_size(_up(need.peak)), format_size(size),
        "with all %d connections in use the server may take %s (pool %s, shared %s, %s a connection; %s)"
        % (need.connections, format_size_for_people(need.peak), format_size_for_people(need.pool),
           format_size_for_people(need.shared), format_size_for_people(need.per_connection), need.place),
        "raise %s%s, or lower max_connections or the buffers of a connection" % (_ROLE, key), memory_.SOURCE,
    )  # fmt: skip


def below_held(server: Mapping[str, Any], size: int, held: int) -> Finding:
    return Finding(
        "mysql_isolation.wall-below-use", "block", "%s %smemory_max" % (server["unit"], _ROLE),
        "%s or more" % format_size(_up(held)), format_size(size),
        "the running server holds %s that cannot be given back: the kernel would kill it as soon as the wall is set"
        % format_size_for_people(held),
        "raise %smemory_max, or lower innodb_buffer_pool_size and restart the server first" % _ROLE,
        "cgroup-v2 document (memory.max)", ("mysql_isolation.%s." % server["unit"],),
    )  # fmt: skip


def no_wall(server: Mapping[str, Any], need: Memory) -> Finding:
    return Finding(
        "mysql_isolation.no-memory-wall", "info", server["unit"], "a memory wall", "none is wanted",
        "the server may take %s with all %d connections, and nothing keeps it from taking more"
        % (format_size_for_people(need.peak), need.connections),
        "set %smemory_max: %s or more, and %smemory_high below it" % (_ROLE, format_size(_up(need.peak)), _ROLE),
        memory_.SOURCE,
    )  # fmt: skip


def not_asked(server: Mapping[str, Any]) -> Finding:
    return Finding(
        "mysql_isolation.server-not-asked", "warn", server["unit"], "its variables over the unix socket", server["live"],
        "the buffer pool of the running server is not known, so the wall cannot be called large enough",
        "try: mariadb --protocol=socket -e 'SHOW GLOBAL VARIABLES'; if it is refused, let root in over the socket "
        "(unix_socket or auth_socket), or put a login into /root/.my.cnf",
        memory_.SOURCE,
    )  # fmt: skip


def unread(server: Mapping[str, Any], place: str) -> Finding:
    return Finding(
        "mysql_isolation.option-file-unread", "warn", server["unit"], "readable option files", Unknown(place),
        "what the server will be started with is not known",
        "namei -l the file: it has to be there, and it and its folders root's and writable by nobody else", memory_.SOURCE,
    )  # fmt: skip


def beyond_host(server: Mapping[str, Any], key: str, wanted: str, there: str) -> Finding:
    return Finding(
        "mysql_isolation.beyond-host", "block", "%s %s%s" % (server["unit"], _ROLE, key), "within " + there, wanted,
        "the host does not have all of them", "set %s%s to a list within %s" % (_ROLE, key, there), SOURCE,
        ("mysql_isolation.%s." % server["unit"],),
    )  # fmt: skip


def parent_narrower(server: Mapping[str, Any], key: str, wanted: str, parent: str) -> Finding:
    return Finding(
        "mysql_isolation.parent-narrower", "fail", "%s %s%s" % (server["unit"], _ROLE, key), wanted,
        "its slice has %s" % parent,
        "a unit never gets more than the slice above it, so only what both have is effective",
        "set %s%s to a list within %s, or widen the slice (systemctl show -p AllowedCPUs,AllowedMemoryNodes system.slice)"
        % (_ROLE, key, parent), SOURCE,
    )  # fmt: skip


def shared(server: Mapping[str, Any], key: str, shared: str) -> Finding:
    is_cpu = key == "cpus"
    return Finding(
        "mysql_isolation.shares-%s" % key.replace("_", "-"), "warn" if is_cpu else "info", server["unit"],
        "apart from the GPUs' slices", "%s %s" % ("CPUs" if is_cpu else "memory nodes", shared),
        "the database and a GPU's slice use the same %s" % ("CPUs" if is_cpu else "memory nodes: each node has GPUs"),
        "set %s%s to a list without them" % (_ROLE, key) if is_cpu
        else "bound it with %smemory_max; set %smemory_nodes to choose the node it takes from" % (_ROLE, _ROLE),
        SOURCE,
    )  # fmt: skip


def underived(server: Mapping[str, Any], have: Mapping[str, Any]) -> Finding:
    taken = gpu_cpus(have)
    return Finding(
        "mysql_isolation.cpus-not-derived", "fail" if taken else "info", server["unit"], "CPUs outside of the GPUs' slices",
        "the slices take %s" % format_cpulist(taken) if taken else "no slice of a GPU on this host",
        "the slices leave no CPU for the system" if taken else "there is nothing to keep away from, so CPUs are not managed",
        "keep housekeeping CPUs in numa_slices, or set %scpus" % _ROLE if taken
        else "run the role numa_slices first, or set %scpus to a list" % _ROLE,
        SOURCE,
    )  # fmt: skip


def no_device(server: Mapping[str, Any], path: str, number: Optional[Unknown]) -> Finding:
    return Finding(
        "mysql_isolation.no-such-device", "fail", "%s %s" % (server["unit"], path), "a block device", "not there" if number is None else number,
        "systemd leaves a limit out, without an error, when its device is not there",
        "ls -l /dev/disk/by-id; correct %sio_limits" % _ROLE, SOURCE,
    )  # fmt: skip


def device_twice(server: Mapping[str, Any], path: str, other: str) -> Finding:
    return Finding(
        "mysql_isolation.device-twice", "block", "%s %s" % (server["unit"], path), "each disk once", "same as " + other,
        "the kernel keeps one set of limits a disk, so the later entry replaces the earlier one",
        "put all limits of the disk into one entry of %sio_limits" % _ROLE, SOURCE,
        ("mysql_isolation.%s." % server["unit"],),
    )  # fmt: skip


def weightless(server: Mapping[str, Any], weight: Any, disks: List[str]) -> Finding:
    return Finding(
        "mysql_isolation.io-weight-without-effect", "warn", server["unit"], "bfq or io.cost on the disk",
        "IOWeight=%s, neither on %s" % (weight, ", ".join(disks)),
        "io.weight is done by bfq or by io.cost (off by default); with scheduler none the weight does nothing",
        "set %sio_limits for the disk (they hold with every scheduler), or turn on io.cost" % _ROLE, _WEIGHT_SOURCE,
    )  # fmt: skip


def pool_failure(server: Mapping[str, Any], text: str) -> Finding:
    return Finding(
        "mysql_isolation.pool-not-mapped", "fail", server["unit"], "a buffer pool in memory", text,
        "InnoDB could not get its buffer pool: it is larger than the memory that is free or allowed",
        "lower innodb_buffer_pool_size, or raise %smemory_max; then systemctl start %s" % (_ROLE, server["unit"]),
        memory_.SOURCE,
    )  # fmt: skip


def no_database() -> Finding:
    return Finding(
        "mysql_isolation.no-database", "info", "units", "nothing to wall", "no MySQL, MariaDB or Percona unit",
        "there is nothing to do", "name a unit with another name in %sunits" % _ROLE, SOURCE,
    )  # fmt: skip


def unseen(subject: str, what: str, reason: Unknown, fix: str) -> Finding:
    return Finding(
        "mysql_isolation.unseen", "warn", subject, "to be seen", reason,
        "%s cannot be seen, so it can neither be called right nor wrong" % what, fix, SOURCE,
    )  # fmt: skip


def _up(size: int) -> int:
    """Rounded up to whole MiB, to read and to type."""
    return -(-size // 1024**2) * 1024**2
