# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The long forms of ipmitool(1): one row a property, as ``sensor get``, ``sdr get``, ``sel get`` and -v print them."""

from __future__ import annotations

import re
from typing import Dict, Iterator, List, NamedTuple, Sequence, Tuple

_SENSOR, _EVENT = "sensor id", "sel record id"
_NAMED = re.compile(r"(.*?)\s{0,40}\((?:0x)?([0-9a-f]{1,4})h?\)", re.IGNORECASE)
_TOLERANCE = re.compile(r"\(\+/-[^)]{0,20}\)\s*")
_BARE_BITS = re.compile(r"(?:0x)?[0-9a-f]{1,4}h?", re.IGNORECASE)
_SHORT = {
    "lower non-critical": "lnc", "lower critical": "lcr", "lower non-recoverable": "lnr",
    "upper non-critical": "unc", "upper critical": "ucr", "upper non-recoverable": "unr",
}  # fmt: skip


class Reading(NamedTuple):
    """What the short tables give in one row."""

    name: str
    id: str
    status: str
    entity: str
    reading: str


class Record(NamedTuple):
    number: str
    when: str
    sensor: str
    event: str
    direction: str


def readings(rows: Sequence[str]) -> Iterator[Reading]:
    """The sensors; of a discrete one the states that are asserted stand in square brackets below their row."""
    for values, states in _blocks(rows, _SENSOR):
        named = _NAMED.fullmatch(values[_SENSOR])
        reading = _TOLERANCE.sub("", values.get("sensor reading", ""))
        is_bare = next((kind for kind in values if kind.startswith("sensor type")), "").endswith("(discrete)")
        if states or (is_bare and _BARE_BITS.fullmatch(reading)):
            reading = ", ".join(states)
        is_read = "sensor reading" in values or "states asserted" in values
        status = values.get("status", "ok" if is_read else "ns").lower()
        yield Reading(
            named.group(1) if named else values[_SENSOR],
            "%02xh" % int(named.group(2), 16) if named else "",
            _SHORT.get(status, status),
            values.get("entity id", "").partition(" ")[0],
            reading,
        )


def records(rows: Sequence[str]) -> Iterator[Record]:
    """The events of the log."""
    for values, _states in _blocks(rows, _EVENT):
        number = values.get("sensor number", "")
        yield Record(
            values[_EVENT].lstrip("0") or "0",
            values.get("timestamp", ""),
            values.get("sensor type", "") + (" #0x%s" % number if number else ""),
            values.get("description", ""),
            values.get("event direction", "").partition(" ")[0].lower(),
        )


def _blocks(rows: Sequence[str], first: str) -> Iterator[Tuple[Dict[str, str], List[str]]]:
    values: Dict[str, str] = {}
    states: List[str] = []
    last = ""
    for row in filter(str.strip, rows):
        key, colon, value = row.partition(":")
        key, value = key.strip(" \t>#").lower(), value.strip()
        if colon and key == first:
            if values:
                yield values, states
            values, states = {first: value}, []
        elif colon and values:
            values.setdefault(key, value)
        elif last == "states asserted" and re.fullmatch(r"\s*\[.{1,80}\]\s*", row):
            states.append(row.strip(" []\t"))
            continue
        last = key if colon else ""
    if values:
        yield values, states
