# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Out-of-memory kills in a kernel log, and servers that could not map their buffer pool."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Dict, List, Optional

# One line a kill, through the ages: "Killed process 19445 (mysqld) total-vm:973984kB, anon-rss:83580kB,
# file-rss:0kB" (to 4.x), "Out of memory: Killed process 812, UID 27, (mysqld) …" (RHEL 6 and 7), "Memory
# cgroup out of memory: Killed process 4711 (mariadbd) …, shmem-rss:0kB, UID:105 pgtables:… oom_score_adj:0".
_KILL = re.compile(
    r"Kill(ed)? process (\d+)(?:, UID (\d+),?)? \(((?:[^()]|\([^()]{0,40}\)){0,64})\)(.*)", re.IGNORECASE
)
# "Kill process N (x) score S or sacrifice child" announces one; so do "score S or a child" and a bare line of 2.6.
_ANNOUNCES = re.compile(r"score \d+|sacrifice child", re.IGNORECASE)
# "Task in /a/b killed as a result of limit of /a" (to 4.x): the group of the process, and the one that was full.
_TASK = re.compile(r"Task in (\S+) killed as a result of limit of (\S+)")
_SCOPE = re.compile(r"(memory cgroup )?out of memory", re.IGNORECASE)
_SIZE = {
    "total_vm_kib": re.compile(r"total-vm:(\d+)kB"),
    "anon_rss_kib": re.compile(r"anon-rss:(\d+)kB"),
    "file_rss_kib": re.compile(r"file-rss:(\d+)kB"),
    "shmem_rss_kib": re.compile(r"shmem-rss:(\d+)kB"),
}
# "oom-kill:constraint=CONSTRAINT_MEMCG,…,task_memcg=/system.slice/mariadb.service,task=mariadbd,pid=4711,uid=105"
_SUMMARY = "oom-kill:constraint="

# "InnoDB: mmap(137428992 bytes) failed; errno 12" and "Cannot allocate 137428992 bytes of memory" after it
_MMAP = re.compile(r"mmap\((\d+) bytes\) failed; errno (\d+)")
_POOL = re.compile(r"Cannot allocate (?:the )?memory for the buffer pool", re.IGNORECASE)


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


@dataclass
class _Told:
    """What the lines before a kill say of it."""

    pid: int = -1
    name: str = ""
    is_cgroup: Optional[bool] = None
    cgroup: str = ""


def parse_oom(text: str) -> List[OomKill]:
    """The kills of a kernel log, in order.  A kill that is logged in two lines is one; an announcement alone counts."""
    kills: List[OomKill] = []
    told, announced = _Told(), _Told()
    for line in text.splitlines():
        kill = _KILL.search(line)
        if kill and _is_announcement(kill):
            pid = _int(kill.group(2))
            kills += _unfinished(announced, pid)
            announced = _Told(pid, kill.group(4), _is_cgroup(line, told, pid), told.cgroup)
        elif kill:
            # What is announced of one process may befall its child.
            kills.append(_killed(line, kill, announced if announced.pid != -1 else told))
            told, announced = _Told(), _Told()
        else:
            told = _prelude(line) or told
    return kills + _unfinished(announced, -1)


def _is_announcement(kill: re.Match[str]) -> bool:
    return kill.group(1) is None or ("-rss:" not in kill.group(5) and _ANNOUNCES.search(kill.group(5)) is not None)


def _prelude(line: str) -> Optional[_Told]:
    _before, is_summary, rest = line.partition(_SUMMARY)
    said: Dict[str, str] = {}
    for field in rest.split(","):
        key, _equals, value = field.partition("=")
        said.setdefault(key, value)
    pid = re.match(r"\d+", said.get("pid", ""))
    if is_summary and pid and "task" in said:
        limited = rest.split(",", 1)[0] == "CONSTRAINT_MEMCG"
        return _Told(_int(pid.group()), said["task"], limited, said.get("task_memcg", ""))
    task = _TASK.search(line)
    return _Told(-1, "", True, task.group(1)) if task else None


def _is_cgroup(line: str, told: _Told, pid: int) -> Optional[bool]:
    scope = _SCOPE.search(line)
    if scope:
        return scope.group(1) is not None
    # An announcement names the reason for whichever process is killed then, its child too.
    return told.is_cgroup if told.name or told.pid in (-1, pid) else None


def _killed(line: str, kill: re.Match[str], told: _Told) -> OomKill:
    pid = _int(kill.group(2))
    sizes = {name: _size(pattern, kill.group(5)) for name, pattern in _SIZE.items()}
    cgroup = told.cgroup if told.pid in (-1, pid) else ""
    return OomKill(pid, kill.group(4), is_cgroup=_is_cgroup(line, told, pid), cgroup=cgroup, **sizes)


def _unfinished(announced: _Told, next_pid: int) -> List[OomKill]:
    if announced.pid in (-1, next_pid):
        return []
    return [OomKill(announced.pid, announced.name, is_cgroup=announced.is_cgroup, cgroup=announced.cgroup)]


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
