# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Out-of-memory kills in a kernel log, and servers that could not map their buffer pool."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import List, Optional

# One line a kill, through the ages: "Killed process 19445 (mysqld) total-vm:973984kB, anon-rss:83580kB,
# file-rss:0kB" (to 4.x), "Out of memory: Killed process 812, UID 27, (mysqld) …" (RHEL 6 and 7), "Memory
# cgroup out of memory: Killed process 4711 (mariadbd) …, shmem-rss:0kB, UID:105 pgtables:… oom_score_adj:0".
_KILL = re.compile(r"Kill(?:ed)? process (\d+)(?:, UID (\d+),)? \(([^)]*)\)(.*)", re.IGNORECASE)
_CGROUP = re.compile(r"Memory cgroup out of memory", re.IGNORECASE)
_SIZE = {
    "total_vm_kib": re.compile(r"total-vm:(\d+)kB"),
    "anon_rss_kib": re.compile(r"anon-rss:(\d+)kB"),
    "file_rss_kib": re.compile(r"file-rss:(\d+)kB"),
    "shmem_rss_kib": re.compile(r"shmem-rss:(\d+)kB"),
}
# "oom-kill:constraint=CONSTRAINT_MEMCG,…,task_memcg=/system.slice/mariadb.service,task=mariadbd,pid=4711,uid=105"
_SUMMARY = re.compile(r"oom-kill:constraint=(\w+).*?(?:,task_memcg=([^,]*))?,task=([^,]*),pid=(\d+)")

# "InnoDB: mmap(137428992 bytes) failed; errno 12" and "Cannot allocate 137428992 bytes of memory" after it
_MMAP = re.compile(r"mmap\((\d+) bytes\) failed; errno (\d+)")
_POOL = re.compile(r"Cannot allocate memory for the buffer pool", re.IGNORECASE)


@dataclass(frozen=True)
class OomKill:
    """One process that the kernel killed for want of memory; None is what the log does not say."""

    pid: int
    name: str
    anon_rss_kib: Optional[int] = None
    file_rss_kib: Optional[int] = None
    shmem_rss_kib: Optional[int] = None
    total_vm_kib: Optional[int] = None
    is_cgroup: Optional[bool] = None
    cgroup: str = ""


@dataclass(frozen=True)
class PoolFailure:
    """A buffer pool that could not be mapped at start."""

    size_bytes: Optional[int]
    errno: Optional[int]


def parse_oom(text: str) -> List[OomKill]:
    """The kills of a kernel log, in order.  A kill that is logged in two lines is one."""
    kills: List[OomKill] = []
    cgroup, limited_by_cgroup, summary_pid = "", None, -1
    for line in text.splitlines():
        summary = _SUMMARY.search(line)
        if summary:
            limited_by_cgroup = summary.group(1) == "CONSTRAINT_MEMCG"
            cgroup, summary_pid = summary.group(2) or "", _int(summary.group(4))
            continue
        kill = _KILL.search(line)
        # "Kill process N (x) score S or sacrifice child" only announces it.
        if not kill or "sacrifice child" in line:
            continue
        pid = _int(kill.group(1))
        sizes = {name: _size(pattern, kill.group(4)) for name, pattern in _SIZE.items()}
        is_same = pid == summary_pid
        is_cgroup = True if _CGROUP.search(line) else (limited_by_cgroup if is_same else None)
        kills.append(OomKill(pid, kill.group(3), is_cgroup=is_cgroup, cgroup=cgroup if is_same else "", **sizes))
    return kills


def parse_pool_failures(text: str) -> List[PoolFailure]:
    """Buffer pools that could not be mapped, from a server's error log."""
    found: List[PoolFailure] = []
    for line in text.splitlines():
        failed = _MMAP.search(line)
        if failed:
            found.append(PoolFailure(_int(failed.group(1)), _int(failed.group(2))))
        elif _POOL.search(line) and not found:
            found.append(PoolFailure(None, None))
    return found


def _size(pattern: re.Pattern[str], text: str) -> Optional[int]:
    found = pattern.search(text)
    return _int(found.group(1)) if found else None


def _int(digits: str) -> int:
    # Longer digit strings than any figure of the kernel are junk; int() itself gives up on very long ones.
    return int(digits[:20])
