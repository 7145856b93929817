# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Refusing wanted slices that no host could have, before any host is asked."""

from __future__ import annotations

import re
from typing import Any, Dict, FrozenSet, Mapping, Set

from .._engine.cpuset import format_cpulist, parse_cpulist
from .._engine.units import parse_size
from .._engine.values import BadWant

_LIST = "a list of %s such as 0-3,8"
_SIZE = "a size such as 400G (1M or more), a percentage of the slice's memory nodes (1% to 100%), or infinity"
_SMALLEST_BYTES = 1024 * 1024
_HIGHEST_INDEX = 4095
_NUMBER = re.compile(r"\d{1,9}", re.ASCII)
_HEX = {"vendor": r"[0-9a-f]{4}", "device": r"[0-9a-f]{4}", "class": r"[0-9a-f]{2,6}"}


def check_want(want: Mapping[str, Any]) -> None:
    """Raise BadWant for what no host could satisfy."""
    _check_match(want.get("gpu_match") or [])
    _at_least(want, "housekeeping_cores_per_node", 0, "0 or a number of whole cores")
    kept: FrozenSet[int] = frozenset()
    if want.get("housekeeping_cpus"):
        kept = _ids("housekeeping_cpus", want["housekeeping_cpus"], "CPUs")
    if want.get("confine_system") and not kept and not want["housekeeping_cores_per_node"]:
        raise BadWant("confine_system", True, "false without housekeeping CPUs: the system would have none to run on")
    _check_limits("", want)
    _check_gpus(want.get("gpus") or [], kept)
    seen: Set[int] = set()
    for place, row in enumerate(want.get("nodes") or []):
        _check_number("nodes[%d].id" % place, row["id"], seen)
        _check_limits("nodes[%d]." % place, row)


def _check_gpus(rows: Any, kept: FrozenSet[int]) -> None:
    seen: Set[int] = set()
    owner: Dict[int, str] = dict.fromkeys(kept, "housekeeping_cpus")
    for place, row in enumerate(rows):
        name = "gpus[%d]." % place
        _check_number(name + "index", row["index"], seen)
        _at_least(row, "node", 0, "the number of a NUMA node", name)
        if row.get("memory_nodes") is not None:
            _ids(name + "memory_nodes", row["memory_nodes"], "nodes")
        cpus = _ids(name + "cpus", row["cpus"], "CPUs") if row.get("cpus") is not None else frozenset()
        twice = sorted(cpus & set(owner))
        if twice:
            allowed = "CPUs of its own: %s are given to %s already" % (format_cpulist(twice), owner[twice[0]])
            raise BadWant(name + "cpus", row["cpus"], allowed)
        owner.update((cpu, name + "cpus") for cpu in cpus)
        _check_limits(name, row)


def _check_number(name: str, value: int, seen: Set[int]) -> None:
    if not 0 <= value <= _HIGHEST_INDEX:
        raise BadWant(name, value, "0 to %d" % _HIGHEST_INDEX)
    if value in seen:
        raise BadWant(name, value, "each number once")
    seen.add(value)


def _check_match(rows: Any) -> None:
    for place, row in enumerate(rows):
        name = "gpu_match[%d]" % place
        if not any(row.get(key) for key in _HEX):
            raise BadWant(name, dict(row), "at least one of vendor, device and class")
        for key, pattern in _HEX.items():
            word = str(row[key]).lower() if row.get(key) else ""
            if word and not re.fullmatch("(0x)?" + pattern, word, re.ASCII):
                raise BadWant("%s.%s" % (name, key), row[key], "hexadecimal digits as lspci -nn shows them")


def _check_limits(name: str, row: Mapping[str, Any]) -> None:
    if row.get("memory_max"):
        _check_size(name + "memory_max", str(row["memory_max"]))
    weight = row.get("cpu_weight")
    if weight and not (_NUMBER.fullmatch(str(weight)) and 1 <= int(weight) <= 10000):
        raise BadWant(name + "cpu_weight", weight, "1 to 10000 (100 is what a slice has by itself)")
    tasks = row.get("tasks_max")
    if tasks and tasks != "infinity" and not (_NUMBER.fullmatch(str(tasks)) and int(tasks) > 0):
        raise BadWant(name + "tasks_max", tasks, "a number of tasks from 1, or infinity")


def _check_size(name: str, value: str) -> None:
    if value == "infinity":
        return
    share = re.fullmatch(r"(\d{1,3})%", value, re.ASCII)
    if share:
        if not 1 <= int(share.group(1)) <= 100:
            raise BadWant(name, value, _SIZE)
        return
    try:
        size = parse_size(value)
    except ValueError as error:
        raise BadWant(name, value, _SIZE) from error
    if size < _SMALLEST_BYTES:
        raise BadWant(name, value, _SIZE)


def _ids(name: str, value: Any, what: str) -> FrozenSet[int]:
    try:
        ids = parse_cpulist(str(value))
    except ValueError as error:
        raise BadWant(name, value, "%s: %s" % (_LIST % what, error)) from error
    if not ids:
        raise BadWant(name, value, "%s; an empty one confines to nothing" % (_LIST % what))
    return ids


def _at_least(row: Mapping[str, Any], key: str, low: int, allowed: str, name: str = "") -> None:
    if row.get(key) is not None and row[key] < low:
        raise BadWant(name + key, row[key], allowed)
