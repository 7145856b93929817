# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Processes: where one may run and allocate, from /proc/PID/status."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, Optional

from .._engine.host import Host
from .._engine.values import Text, Unknown
from .cpu import Ids, ids_of
from .tool_text import clean


@dataclass(frozen=True)
class Status:
    """Of one process: its name, and the CPUs and memory nodes that it is allowed."""

    name: str
    cpus_allowed: Ids
    mems_allowed: Ids


def parse_proc_status(text: Text) -> Status:
    """``/proc/PID/status``; a row that is missing or no list is unknown, never "all"."""
    rows: Dict[str, str] = {}
    for line in clean(text).splitlines() if isinstance(text, str) else []:
        key, colon, value = line.partition(":")
        if colon:
            rows.setdefault(key.strip(), value.strip())
    return Status(rows.get("Name", ""), _list(rows.get("Cpus_allowed_list")), _list(rows.get("Mems_allowed_list")))


def status(host: Host, pid: int) -> Optional[Status]:
    """The status of a process; None when it has ended."""
    text = host.read("/proc/%d/status" % pid)
    return None if text is None else parse_proc_status(text)


def _list(value: Optional[str]) -> Ids:
    # A process is always allowed at least one CPU and one node, so an empty list says nothing.
    return ids_of(value) if value else Unknown("the status has no such row")
