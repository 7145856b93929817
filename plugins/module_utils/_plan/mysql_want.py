# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Refusing walls that no host could have, before any host is asked."""

from __future__ import annotations

import re
from typing import Any, List, Mapping

from .._engine.cpuset import parse_cpulist
from .._engine.units import format_size, parse_size
from .._engine.values import BadWant
from .mysql_wall import AUTO, IO_LIMITS

_SMALLEST_WALL_BYTES = 64 * 1024**2


def check_want(want: Mapping[str, Any]) -> None:
    """Refuse what no host could satisfy."""
    _check_wall("", want)
    seen = set()
    for index, row in enumerate(want.get("overrides") or []):
        place = "overrides[%d]." % index
        if row["unit"] in seen:
            raise BadWant(place + "unit", row["unit"], "each unit once")
        seen.add(row["unit"])
        _check_unit(place + "unit", row["unit"])
        _check_wall(place, row)
        merged = {key: row[key] if row.get(key) is not None else want.get(key) for key in ("memory_high", "memory_max")}
        _check_order(place, merged)
    for index, unit in enumerate(want.get("units") or []):
        _check_unit("units[%d]" % index, unit)
    for index, row in enumerate(want.get("gpu_match") or []):
        if not any(row.get(key) for key in ("vendor", "device", "class")):
            raise BadWant("gpu_match[%d]" % index, dict(row), "at least one of vendor, device and class")


def _check_unit(place: str, unit: Any) -> None:
    if not re.fullmatch(r"[A-Za-z0-9:_.\\@-]+\.service", str(unit)):
        raise BadWant(place, unit, "the name of a service, such as mysqld@shard1.service")


def _check_wall(place: str, row: Mapping[str, Any]) -> None:
    for key in ("cpus", "memory_nodes"):
        if row.get(key) and row[key] != AUTO:
            _check_list(place + key, row[key])
    for key in ("memory_high", "memory_max", "limit_memlock"):
        _check_size(place + key, row.get(key), _SMALLEST_WALL_BYTES if key != "limit_memlock" else 0)
    _check_order(place, row)
    _check_range(place + "io_weight", row.get("io_weight"), 1, 10000)
    _check_range(place + "oom_score_adjust", row.get("oom_score_adjust"), -1000, 1000)
    _check_range(place + "limit_nofile", row.get("limit_nofile"), 1024, 1073741816)
    for index, entry in enumerate(row.get("device_allow") or []):
        _check_device_allow("%sdevice_allow[%d]" % (place, index), entry)
    _check_io_limits(place + "io_limits", row.get("io_limits") or [])


def _check_list(place: str, text: str) -> None:
    try:
        is_empty = not parse_cpulist(text)
    except ValueError as error:
        raise BadWant(place, text, "auto, nothing, or a list such as 0-3,8 (%s)" % error) from None
    if is_empty:
        raise BadWant(place, text, "auto, nothing, or a list such as 0-3,8")


def _check_size(place: str, value: Any, smallest: int) -> None:
    if value in (None, "", "infinity"):
        return
    try:
        size = parse_size(value)
    except ValueError as error:
        raise BadWant(place, value, "a size such as 8g, infinity, or nothing (%s)" % error) from None
    if size < smallest:
        raise BadWant(place, value, "%s or more: no server starts below" % format_size(smallest))


def _check_order(place: str, row: Mapping[str, Any]) -> None:
    high, most = row.get("memory_high"), row.get("memory_max")
    if high in (None, "", "infinity") or most in (None, "", "infinity"):
        return
    if parse_size(high) > parse_size(most):
        raise BadWant(place + "memory_high", high, "at most memory_max (%s), else it never slows anything" % most)


def _check_range(place: str, value: Any, low: int, high: int) -> None:
    if value in (None, ""):
        return
    if not re.fullmatch(r"-?\d{1,10}", str(value), re.ASCII) or not low <= int(value) <= high:
        raise BadWant(place, value, "%d to %d, or nothing" % (low, high))


def _check_device_allow(place: str, entry: str) -> None:
    if not re.fullmatch(r"(/dev/[\w./:-]+|(char|block)-[\w/*-]+)( [rwm]{1,3})?", entry):
        raise BadWant(place, entry, "a node or a group of /proc/devices, and its access, such as /dev/hwrng r")
    if re.search(r"nvidia|/dev/dri|drm|^(char|block)-\*", entry):
        raise BadWant(place, entry, "no device of a GPU: to keep them out of reach is what the wall is for")


def _check_io_limits(place: str, rows: List[Mapping[str, Any]]) -> None:
    seen = set()
    for index, row in enumerate(rows):
        here = "%s[%d]" % (place, index)
        if not re.fullmatch(r"/dev/[\w./:+@-]+", row["device"]):
            raise BadWant(here + ".device", row["device"], "the path of a block device, such as /dev/disk/by-id/…")
        if re.fullmatch(r"/dev/(sd[a-z]+|nvme\d+n\d+|vd[a-z]+)(p?\d+)?", row["device"]):
            raise BadWant(here + ".device", row["device"], "a stable name below /dev/disk, since kernel names move")
        if row["device"] in seen:
            raise BadWant(here + ".device", row["device"], "each device once")
        seen.add(row["device"])
        if not any(row.get(option) for option in IO_LIMITS):
            raise BadWant(here, dict(row), "at least one of " + ", ".join(IO_LIMITS))
        for option in ("read_bandwidth", "write_bandwidth"):
            _check_size("%s.%s" % (here, option), row.get(option), 1)
        for option in ("read_iops", "write_iops"):
            _check_range("%s.%s" % (here, option), row.get(option), 1, 2**32 - 1)
