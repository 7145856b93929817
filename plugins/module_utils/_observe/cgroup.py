# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Control groups: which hierarchy the host has, and what holds for a unit's group right now."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Dict, List, Optional, Tuple, Union

from .._engine.host import Host
from .._engine.values import Text, Unknown, lines
from .cpu import Ids, ids_of

CGROUP_FOLDER = "/sys/fs/cgroup"

_FILES = ("cpuset.cpus", "cpuset.mems", "memory.max", "cpu.weight", "pids.max")

# Folders below a slice are looked into this deep, and no more than this many, for processes.
_DEPTH, _GROUPS, _PROCESSES = 3, 64, 4


@dataclass(frozen=True)
class Group:
    """A control group (cgroup-v2 document): what is set on it and what is effective.

    ``cpus`` and ``mems`` are what was written, the effective ones what the kernel made of it below the
    groups above.  ``is_populated`` is whether a process is in it or below.  ``values`` are the files as
    they read, None for one that is not there since its controller is off.
    """

    path: str
    cpus: Ids
    mems: Ids
    effective_cpus: Ids
    effective_mems: Ids
    is_populated: Union[bool, Unknown]
    values: Dict[str, Text]


def hierarchy(host: Host) -> Union[str, Unknown]:
    """``unified`` (cgroup v2), ``hybrid`` or ``legacy`` (controllers are on v1), or Unknown."""
    if host.exists(CGROUP_FOLDER + "/cgroup.controllers"):
        return "unified"
    if host.exists(CGROUP_FOLDER + "/unified"):
        return "hybrid"
    if host.exists(CGROUP_FOLDER + "/systemd") or host.exists(CGROUP_FOLDER + "/cpuset"):
        return "legacy"
    return Unknown("%s cannot be seen" % CGROUP_FOLDER)


def controllers(host: Host) -> Union[Tuple[str, ...], Unknown]:
    """The controllers that the kernel offers at the top."""
    text = host.read(CGROUP_FOLDER + "/cgroup.controllers")
    return tuple(text.split()) if isinstance(text, str) else Unknown("cgroup.controllers cannot be seen")


def group(host: Host, control_group: str) -> Optional[Group]:
    """What holds for one group; None when it does not exist."""
    path = CGROUP_FOLDER + control_group
    if not control_group.startswith("/") or not host.exists(path + "/cgroup.events"):
        return None
    values = {name: host.read(path + "/" + name) for name in _FILES}
    return Group(
        path,
        ids_of(values["cpuset.cpus"]),
        ids_of(values["cpuset.mems"]),
        ids_of(host.read(path + "/cpuset.cpus.effective")),
        ids_of(host.read(path + "/cpuset.mems.effective")),
        parse_events(host.read(path + "/cgroup.events")),
        values,
    )


def parse_events(text: Text) -> Union[bool, Unknown]:
    """``cgroup.events``: whether a process is in the group or below it."""
    for line in lines(text):
        words = line.split()
        if len(words) == 2 and words[0] == "populated" and words[1] in ("0", "1"):
            return words[1] == "1"
    return text if isinstance(text, Unknown) else Unknown("cgroup.events does not say whether it is populated")


def some_processes(host: Host, path: str) -> List[int]:
    """A few processes of a group and of the groups below, nearest first."""
    todo = [(path, 0)]
    found: List[int] = []
    looked_at = 0
    while todo and len(found) < _PROCESSES and looked_at < _GROUPS:
        here, depth = todo.pop(0)
        looked_at += 1
        words = [line.strip() for line in lines(host.read(here + "/cgroup.procs"))]
        found += [int(word) for word in words if re.fullmatch(r"[1-9]\d{0,9}", word, re.ASCII)]
        if depth < _DEPTH:
            todo += [
                (here + "/" + name, depth + 1)
                for name in host.listdir(here)
                if re.search(r"\.(slice|scope|service)$", name)
            ]
    return found[:_PROCESSES]
