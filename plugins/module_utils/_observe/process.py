# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Processes: where one may run and allocate, from /proc/PID/status."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Dict, Optional

from .._engine.host import Host
from .._engine.values import Text, Unknown
from .cpu import Ids, ids_of, mask_of
from .tool_text import clean

# "/proc/1/status:", as grep puts it in front.
_PATH = re.compile(r"\s{0,40}/proc/[^\s:]{1,40}/status:")


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
        key, colon, value = _PATH.sub("", line).partition(":")
        if colon:
            rows.setdefault(key.strip(), value.strip())
    return Status(rows.get("Name", ""), _allowed(rows, "Cpus_allowed"), _allowed(rows, "Mems_allowed"))


def status(host: Host, pid: int) -> Optional[Status]:
    """The status of a process; None when it has ended."""
    text = host.read("/proc/%d/status" % pid)
    return None if text is None else parse_proc_status(text)


def _allowed(rows: Dict[str, str], name: str) -> Ids:
    # A process is always allowed at least one CPU and one node, so an empty list says nothing.
    listed, mask = rows.get(name + "_list"), rows.get(name)
    if listed:
        return ids_of(listed)
    return (mask_of(mask) if mask and listed is None else frozenset()) or Unknown("the status has no such row")
