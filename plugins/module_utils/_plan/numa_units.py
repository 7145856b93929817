# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a slice is to systemd: its files, its properties, whose lines override them, and its control group."""

from __future__ import annotations

from typing import Any, Iterable, List, Mapping, Tuple

from .._engine.cpuset import parse_cpulist
from .numa_texts import MARK

UNIT_FOLDER = "/etc/systemd/system"
TARGET_DROP_IN = UNIT_FOLDER + "/slices.target.d/50-gpufleet.conf"
GPU_RUN = "/usr/local/bin/gpu-run"
MAP_FILE = "/etc/gpufleet/gpu-map.json"

# Everything that systemd starts by itself lies below one of these (systemd.special(7)).
SYSTEM_UNITS = ("system.slice", "user.slice", "init.scope")

# Property of the unit -> file of its control group (systemd.resource-control(5)).
KERNEL_FILE = {
    "AllowedCPUs": "cpuset.cpus",
    "AllowedMemoryNodes": "cpuset.mems",
    "MemoryMax": "memory.max",
    "CPUWeight": "cpu.weight",
    "TasksMax": "pids.max",
}
CGROUP_FOLDER = "/sys/fs/cgroup"

SOURCE = "systemd.slice(5), systemd.resource-control(5)"


def unit_file(name: str) -> str:
    return "%s/%s" % (UNIT_FOLDER, name)


def confine_file(unit: str) -> str:
    return "%s/%s.d/50-gpufleet-housekeeping.conf" % (UNIT_FOLDER, unit)


def group_folder(name: str) -> str:
    """The control group of a slice of ours: dashes are a hierarchy (systemd.slice(5))."""
    words = name[: -len(".slice")].split("-")
    return "/".join([CGROUP_FOLDER] + ["-".join(words[: count + 1]) + ".slice" for count in range(len(words))])


def overrides_of(unit: str, have: Mapping[str, Any], keys: Iterable[str]) -> List[Tuple[str, int, str]]:
    """Lines of others' drop-ins that set one of the properties: file, line number, line."""
    rows: List[Tuple[str, int, str]] = []
    for path, text in have["drop_ins"].get(unit, {}).items():
        if isinstance(text, str) and MARK not in text:
            for number, line in enumerate(text.splitlines(), 1):
                if line.partition("=")[0].strip() in keys:
                    rows.append((path, number, line.strip()))
    return rows


def same(key: str, wanted: str, live: str) -> bool:
    """Whether two spellings of a property mean the same ("0-1 3" and "0,1,3")."""
    if key not in ("AllowedCPUs", "AllowedMemoryNodes"):
        return word(wanted) == word(live)
    try:
        return parse_cpulist(wanted) == parse_cpulist(live)
    except ValueError:
        return False


def word(value: str) -> str:
    """One word for "no value" in all its spellings."""
    return "infinity" if value in ("[not set]", "18446744073709551615") else value


def is_active(name: str, have: Mapping[str, Any]) -> bool:
    return bool(have["units"].get(name, {}).get("ActiveState") == "active")


def is_stale(name: str, keys: Mapping[str, str], have: Mapping[str, Any]) -> bool:
    unit = have["units"].get(name, {})
    if unit.get("NeedDaemonReload") == "yes":
        return True
    if overrides_of(name, have, keys):
        return False
    return any(not same(key, value, unit.get(key, "")) for key, value in keys.items())
