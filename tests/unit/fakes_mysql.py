# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A GPU host with a MariaDB, and a systemd that treats its unit as systemd 252 on cgroup v2 was seen to.

What systemd has read lies in /run/fake/loaded.  A reload reads drop-ins by name, adds lists together, writes
limits and the device filter to the running unit, turns the cpuset and io controllers off when nobody needs
them, and leaves a list that nobody wants any more in the group when a neighbour keeps the controller on.
"""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any, Sequence

from fakes import FakeHost, Program

from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import Result
from ansible_collections.gpufleet.host.plugins.module_utils._observe.service import parse_io_max

UNIT = "mariadb.service"
GROUP = "/sys/fs/cgroup/system.slice/mariadb.service"
DROP_IN = "/etc/systemd/system/mariadb.service.d/50-gpufleet.conf"
DISK = "/dev/disk/by-id/virtio-DATA"
OTHER_DISK = "/dev/disk/by-id/nvme-SCRATCH"
PID = 525
LOADED = "/run/fake/loaded"
NEIGHBOUR = "/run/fake/neighbour"
VARIABLES = {
    "version": "10.11.6-MariaDB-0+deb12u1",
    "version_comment": "Debian 12",
    "innodb_buffer_pool_size": "134217728",
    "innodb_log_buffer_size": "16777216",
    "innodb_io_capacity": "200",
    "innodb_flush_method": "O_DIRECT",
    "key_buffer_size": "134217728",
    "aria_pagecache_buffer_size": "134217728",
    "query_cache_size": "1048576",
    "max_connections": "151",
    "sort_buffer_size": "2097152",
    "join_buffer_size": "262144",
    "read_buffer_size": "131072",
    "read_rnd_buffer_size": "262144",
    "thread_stack": "299008",
    "binlog_cache_size": "32768",
    "net_buffer_length": "16384",
}
_EMPTY = {
    "AllowedCPUs": "", "AllowedMemoryNodes": "", "MemoryHigh": "infinity", "MemoryMax": "infinity",
    "IOWeight": "[not set]", "DevicePolicy": "auto", "DeviceAllow": "", "OOMScoreAdjust": "0",
    "LimitNOFILE": "32768", "LimitMEMLOCK": "524288",
}  # fmt: skip
_IO = {"IOReadBandwidthMax": "rbps", "IOWriteBandwidthMax": "wbps", "IOReadIOPSMax": "riops", "IOWriteIOPSMax": "wiops"}


class DatabaseHost(FakeHost):
    def commands(self) -> dict[str, Program]:
        programs: dict[str, Program] = {"systemctl": self.systemctl, "sh": self.sh, "dmesg": self.dmesg}
        if self.exists("/run/fake/variables"):
            programs["mariadb"] = self.client
        programs["mariadbd"] = lambda argv, stdin: Result(0, "mariadbd  Ver 10.11.6-MariaDB-0+deb12u1 for Linux\n", "")
        programs["journalctl"] = lambda argv, stdin: Result(0, self.text("/run/fake/journal"), "")
        return programs

    def text(self, path: str) -> str:
        text = self.read(path)
        return text if isinstance(text, str) else ""

    def state(self) -> dict[str, str]:
        return dict(json.loads(self.text(LOADED)))

    def set_value(self, path: str, text: str) -> None:
        super().set_value(path, text)
        if path.endswith("/cgroup.procs") and path not in self.ignore:
            self.put("/proc/%d/cgroup" % PID, "0::%s\n" % path[len("/sys/fs/cgroup") : -len("/cgroup.procs")])

    def kernel(self, path: str, text: str) -> str:
        name = path.rsplit("/", 1)[-1]
        if name in ("cpuset.cpus", "cpuset.mems") and not text.strip():
            # Seen on Linux 6.1: a group with processes cannot be given an empty list.
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        if name == "io.max":
            rows = parse_io_max(self.text(path))
            rows.update(parse_io_max(text))
            return self.io_text(rows)
        return text.strip() + "\n"

    def io_text(self, rows: Any) -> str:
        kept = {number: row for number, row in rows.items() if any(value is not None for value in row.values())}
        words = [
            number + "".join(" %s=%s" % (key, "max" if value is None else value) for key, value in row.items())
            for number, row in kept.items()
        ]
        return "".join(row + "\n" for row in words)

    # What systemd does.
    def systemctl(self, argv: Sequence[str], _stdin: str) -> Result:
        if argv[1] == "show":
            return Result(0, self.shown(), "")
        if argv[1] == "daemon-reload":
            self.reload()
            return Result(0, "", "")
        if argv[1] == "restart":
            self.start()
            return Result(0, "", "")
        return Result(1, "", "Unknown verb %s" % argv[1])

    def drop_ins(self) -> list[str]:
        folders = ["/etc/systemd/system/mariadb.service.d/", "/run/systemd/system.control/mariadb.service.d/"]
        paths = [folder + name for folder in folders for name in self.listdir(folder) if name.endswith(".conf")]
        return sorted(paths, key=lambda path: path.rsplit("/", 1)[-1])

    def reload(self) -> None:
        found = dict(_EMPTY)
        for path in self.drop_ins():
            for line in self.text(path).splitlines():
                key, sign, value = line.partition("=")
                if not sign or line.startswith("#"):
                    continue
                adds = key in _IO or key in ("AllowedCPUs", "AllowedMemoryNodes", "DeviceAllow")
                before = found.get(key, "") if adds and value else ""
                glue = "\n" if key in _IO or key == "DeviceAllow" else " "
                found[key] = glue.join(word for word in (before, value) if word)
        found["read"] = json.dumps([[path, self.text(path)] for path in self.drop_ins()])
        self.put(LOADED, json.dumps(found, sort_keys=True))
        if self.is_active():
            self.realize(found)

    def realize(self, found: dict[str, str]) -> None:
        for key, name in (("AllowedCPUs", "cpuset.cpus"), ("AllowedMemoryNodes", "cpuset.mems")):
            needed = found["AllowedCPUs"] or found["AllowedMemoryNodes"] or self.exists(NEIGHBOUR)
            self.controller(name, bool(needed), found[key], "")
        for key, name in (("MemoryHigh", "memory.high"), ("MemoryMax", "memory.max")):
            size = found[key]
            if GROUP + "/" + name not in self.ignore + self.refuse:
                self.put(GROUP + "/" + name, ("max" if size == "infinity" else str(int(size) // 4096 * 4096)) + "\n")
        rows: dict[str, dict[str, int | None]] = {}
        for key, word in _IO.items():
            for line in found.get(key, "").splitlines():
                path, figure = line.split()
                number = {DISK: "254:0", OTHER_DISK: "259:1"}.get(path)
                if number:
                    empty: dict[str, int | None] = dict.fromkeys(_IO.values())
                    rows.setdefault(number, empty)[word] = int(figure)
        weight = found["IOWeight"]
        needed = bool(rows) or weight != "[not set]" or self.exists(NEIGHBOUR)
        self.controller("io.max", needed, self.io_text({**parse_io_max(self.text(GROUP + "/io.max")), **rows}), "")
        self.controller("io.weight", needed, "default " + (weight if weight.isdigit() else "100"), "")
        self.put("/run/fake/filter", found["DevicePolicy"])

    def controller(self, name: str, needed: bool, text: str, empty: str) -> None:
        path = GROUP + "/" + name
        if not needed:
            if self.exists(path):
                os.unlink(self.root + path)
        elif text.strip() or not self.exists(path):
            self.put(path, (text.strip() or empty) + "\n")

    def start(self) -> None:
        found = self.state()
        self.put("/run/fake/active", "")
        limits = {"Max open files": found["LimitNOFILE"], "Max locked memory": found["LimitMEMLOCK"]}
        rows = "".join("%-25s %-20s %-20s units\n" % (name, value, value) for name, value in limits.items())
        self.put("/proc/%d/limits" % PID, rows)
        self.put("/proc/%d/oom_score_adj" % PID, found["OOMScoreAdjust"] + "\n")
        link = Path(self.root + "/proc/%d/exe" % PID)
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.is_symlink():
            link.symlink_to("/usr/sbin/mariadbd")
        self.put("/proc/%d/cgroup" % PID, "0::/system.slice/mariadb.service\n")
        for name, text in (("cgroup.procs", "%d\n" % PID), ("memory.stat", "anon 100000000\nfile 5\nshmem 1000\n")):
            self.put(GROUP + "/" + name, text)
        self.realize(found)

    def is_active(self) -> bool:
        return self.exists("/run/fake/active")

    def shown(self) -> str:
        found = self.state()
        read = found.pop("read", "[]")
        now = json.dumps([[path, self.text(path)] for path in self.drop_ins()])
        state = self.text("/run/fake/state") or ("active" if self.is_active() else "inactive")
        found.update(
            Id=UNIT, Names="mariadb.service mysql.service mysqld.service", LoadState="loaded", ActiveState=state,
            MainPID=str(PID if self.is_active() else 0), NeedDaemonReload="no" if read == now else "yes",
            ControlGroup="/system.slice/mariadb.service" if self.is_active() else "",
            DropInPaths=" ".join(path for path, _text in json.loads(read)),
            ExecStart="{ path=/bin/sh ; argv[]=/bin/sh -c set -f; exec /usr/sbin/mariadbd $MYSQLD_OPTS ; x }",
        )  # fmt: skip
        for key in _IO:
            found.pop(key, None)
        rows = [
            "%s=%s" % (key, line)
            for key, value in found.items()
            for line in (value.splitlines() if key == "DeviceAllow" and value else [value])
        ]
        # An alias that was asked for too gives the same unit once more.
        return "\n".join(rows) + "\n\n" + "\n".join(rows) + "\n"

    def client(self, argv: Sequence[str], _stdin: str) -> Result:
        if not self.is_active():
            return Result(1, "", "ERROR 2002 (HY000): Can't connect to local server through socket")
        return Result(0, self.text("/run/fake/variables"), "")

    def dmesg(self, _argv: Sequence[str], _stdin: str) -> Result:
        return Result(0, self.text("/run/fake/dmesg"), "")

    def sh(self, argv: Sequence[str], _stdin: str) -> Result:
        """The probe of device_nodes: a shell in the group that opens nodes."""
        is_closed = self.text("/run/fake/filter") in ("closed", "strict")
        rows = []
        for node in argv[5:]:
            reason = "No such device or address" if "nvidia" in node else ""
            reason = "Operation not permitted" if is_closed else reason
            rows.append("sh: 1: cannot open %s: %s" % (node, reason) if reason else "opened " + node)
        return Result(0, "\n".join(rows) + "\n", "")


def make(root: Path) -> DatabaseHost:
    """Two nodes of four CPUs, GPUs at both, a MariaDB that runs without any wall."""
    host = DatabaseHost(root)
    host.put("/usr/lib/systemd/system/mariadb.service", "[Service]\nExecStart=/usr/sbin/mariadbd\n")
    host.put("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory pids\n")
    host.put("/sys/fs/cgroup/cpuset.cpus.effective", "0-7\n")
    host.put("/sys/fs/cgroup/cpuset.mems.effective", "0-1\n")
    host.put("/sys/devices/system/cpu/online", "0-7\n")
    for node, cpus in ((0, "0-3"), (1, "4-7")):
        host.put("/sys/devices/system/node/node%d/cpulist" % node, cpus + "\n")
        meminfo = "Node %d MemTotal:        8388608 kB\n" % node
        host.put("/sys/devices/system/node/node%d/meminfo" % node, meminfo)
        host.put("/sys/devices/system/node/node%d/distance" % node, "10 20\n")
    host.put("/proc/meminfo", "MemTotal:       16777216 kB\nMemFree: 1 kB\n")
    host.put("/proc/vmstat", "nr_free_pages 1\noom_kill 0\n")
    for name in ("nvidia0", "nvidiactl", "kmsg", "null"):
        host.put("/dev/" + name, "")
    for number, name, path in (("254:0", "vda", DISK), ("259:1", "nvme0n1", OTHER_DISK)):
        host.put("/sys/class/block/%s/dev" % name, number + "\n")
        host.put("/sys/block/%s/dev" % name, number + "\n")
        host.put("/sys/block/%s/queue/scheduler" % name, "[none] mq-deadline\n")
        link = Path(str(root) + path)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to("../../" + name)
    for address, vendor in (("0000:21:00.0", "0x10de"), ("0000:61:00.0", "0x8086")):
        folder = "/sys/bus/pci/devices/%s/" % address
        for name, value in (("vendor", vendor), ("device", "0x2330"), ("class", "0x030200")):
            host.put(folder + name, value + "\n")
    host.put("/etc/mysql/my.cnf", "[client-server]\nsocket = /run/mysqld/mysqld.sock\n!includedir /etc/mysql/conf.d\n")
    host.put("/run/fake/variables", "".join("%s\t%s\n" % pair for pair in VARIABLES.items()))
    host.reload()
    host.start()
    return host


def add_slices(host: FakeHost, gpus: dict[str, tuple[str, str]]) -> None:
    """Slices as the role numa_slices writes them: unit name -> CPUs and memory nodes."""
    for name, (cpus, nodes) in gpus.items():
        text = "[Slice]\nAllowedCPUs=%s\nAllowedMemoryNodes=%s\n" % (cpus, nodes)
        host.put("/etc/systemd/system/" + name, text)
