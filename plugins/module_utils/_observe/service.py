# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A running service: its control group's own limits, what is effective, its process, its drop-ins.

``cgroup`` reads groups for placing CPUs; here the limits themselves are read as the kernel writes
them, since they are also what is written back.
"""

from __future__ import annotations

import re
from typing import Dict, List, Mapping, Optional, Sequence, Tuple, Union

from .._engine.host import Host
from .._engine.values import Text, Unknown, lines
from .cgroup import CGROUP_FOLDER

LIMIT_FILES = ("cpuset.cpus", "cpuset.mems", "memory.high", "memory.max", "io.max", "io.weight")

# Memory that cannot be given back to others by dropping page cache (cgroup-v2 document, memory.stat).
_HELD = ("anon", "shmem", "kernel_stack", "pagetables", "slab_unreclaimable")


def limits(host: Host, control_group: str) -> Union[Dict[str, Text], Unknown]:
    """The group's own files; a file is None when its controller is off for the group."""
    path = CGROUP_FOLDER + control_group
    if not control_group.startswith("/") or not host.exists(path + "/cgroup.procs"):
        return Unknown("the control group %s cannot be seen" % (control_group or "of the unit"))
    found: Dict[str, Text] = {name: host.read(path + "/" + name) for name in LIMIT_FILES}
    return {name: text.strip() if isinstance(text, str) else text for name, text in found.items()}


def effective(host: Host, control_group: str, name: str) -> Union[str, Unknown]:
    """``cpuset.cpus.effective`` or ``cpuset.mems.effective``, of the nearest group that has it."""
    parts = control_group.strip("/").split("/")
    for length in range(len(parts), -1, -1):
        text = host.read("/".join([CGROUP_FOLDER, *parts[:length], name]))
        if isinstance(text, str):
            return text.strip()
    return Unknown("%s cannot be seen for %s" % (name, control_group))


def held_bytes(host: Host, control_group: str) -> Union[int, Unknown]:
    """Memory of the group that the kernel cannot take back without killing."""
    rows = parse_flat(host.read(CGROUP_FOLDER + control_group + "/memory.stat"))
    if "anon" not in rows:
        return Unknown("memory.stat cannot be seen for %s" % control_group)
    return sum(rows.get(name, 0) for name in _HELD)


def oom_kills(host: Host, control_group: str) -> Union[int, Unknown]:
    """Processes of the group that were killed for memory since the unit started."""
    rows = parse_flat(host.read(CGROUP_FOLDER + control_group + "/memory.events"))
    return rows.get("oom_kill", Unknown("memory.events cannot be seen for %s" % control_group))


def parse_flat(text: Text) -> Dict[str, int]:
    """``key value`` rows, as memory.stat and memory.events have them."""
    found = [re.match(r"(\w+) (\d{1,20})\Z", line.strip(), re.ASCII) for line in lines(text)]
    return {row.group(1): int(row.group(2)) for row in found if row}


def parse_io_max(text: Text) -> Dict[str, Dict[str, Optional[int]]]:
    """``254:0 rbps=max wbps=1000 riops=max wiops=max`` by device number; None is no limit."""
    found: Dict[str, Dict[str, Optional[int]]] = {}
    for line in lines(text):
        words = line.split()
        if words and re.match(r"\d{1,5}:\d{1,8}\Z", words[0], re.ASCII):
            pairs = [word.partition("=") for word in words[1:]]
            found[words[0]] = {
                key: int(value) if re.match(r"\d{1,20}\Z", value, re.ASCII) else None for key, _sign, value in pairs
            }
    return found


def parse_limits(text: Text) -> Dict[str, Tuple[str, str]]:
    """Soft and hard limit by name, from ``/proc/PID/limits``."""
    found: Dict[str, Tuple[str, str]] = {}
    for line in lines(text):
        row = re.match(r"(Max [a-z ]{1,40}?)\s{2,80}(\S+)\s{1,80}(\S+)", line)
        if row:
            found[row.group(1)] = (row.group(2), row.group(3))
    return found


def group_of(text: Text) -> Optional[str]:
    """The control group (v2) of a process, from ``/proc/PID/cgroup``."""
    return next((line[3:].strip() for line in lines(text) if line.startswith("0::/")), None)


def assignments(host: Host, paths: Sequence[str]) -> List[Tuple[str, int, str, str]]:
    """``Key=value`` lines of unit files, as (path, line, key, value)."""
    return [(path, *row) for path in paths for row in parse_unit_file(host.read(path))]


def parse_unit_file(text: Text) -> List[Tuple[int, str, str]]:
    """The ``Key=value`` lines of a unit file or drop-in: line number, key, value."""
    found: List[Tuple[int, str, str]] = []
    for number, line in _joined(lines(text)):
        row = re.match(r"\s*([A-Z][A-Za-z0-9]*)\s*=\s*(.*?)\s*\Z", line)
        if row:
            found.append((number, row.group(1), row.group(2)))
    return found


def _joined(rows: Sequence[str]) -> List[Tuple[int, str]]:
    """Lines that end in a backslash with those behind them; a comment between them is left out (systemd.syntax(7))."""
    found: List[Tuple[int, str]] = []
    goes_on = False
    for number, row in enumerate(rows, 1):
        if row.lstrip()[:1] in ("#", ";"):
            continue
        text = row.rstrip()
        bare = text[:-1] if text.endswith("\\") else text
        if goes_on:
            first, before = found.pop()
            found.append((first, before.rstrip() + " " + bare.strip()))
        else:
            found.append((number, bare))
        goes_on = text.endswith("\\")
    return found


def drop_ins_after(paths: Sequence[str], ours: str) -> List[str]:
    """Drop-ins that systemd reads after ours: by name, wherever they lie (systemd.unit(5))."""
    name_of_ours = ours.rsplit("/", 1)[-1]
    return [path for path in paths if path != ours and path.rsplit("/", 1)[-1] > name_of_ours]


def device_number(host: Host, path: str) -> Text:
    """``major:minor`` of the whole disk behind a device path, links followed; None when it is not there.

    systemd limits the whole disk when a partition is named, and so does this.
    """
    for _hop in range(10):
        target = host.readlink(path)
        if path in host.unseen:
            return Unknown(host.unseen[path])
        if target is None:
            break
        path = target if target.startswith("/") else _join(path.rsplit("/", 1)[0], target)
    name = path.rsplit("/", 1)[-1]
    place = host.readlink("/sys/class/block/" + name)
    if place and "/" in place.strip("/") and host.exists("/sys/class/block/%s/partition" % name):
        name = place.rstrip("/").split("/")[-2]
    number = host.read("/sys/class/block/%s/dev" % name)
    return number.strip() if isinstance(number, str) else number


def memory_total(text: Text) -> Union[int, Unknown]:
    """Bytes of MemTotal in ``/proc/meminfo``."""
    for line in lines(text):
        row = re.match(r"MemTotal:\s+(\d{1,15}) kB", line, re.ASCII)
        if row:
            return int(row.group(1)) * 1024
    return text if isinstance(text, Unknown) else Unknown("no MemTotal in /proc/meminfo")


def without_weight(schedulers: Mapping[str, str], numbers: Mapping[str, str], cost_qos: Text) -> List[str]:
    """Disks on which io.weight does nothing: neither bfq nor an enabled io.cost (cgroup-v2, io.cost.qos)."""
    enabled = {line.split()[0] for line in lines(cost_qos) if "enable=1" in line.split()}
    return sorted(name for name, active in schedulers.items() if active != "bfq" and numbers.get(name) not in enabled)


def _join(folder: str, target: str) -> str:
    parts = folder.strip("/").split("/")
    for part in target.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return "/" + "/".join(parts)
