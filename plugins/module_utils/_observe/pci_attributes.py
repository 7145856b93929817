# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The attributes of a PCI function in sysfs that are small texts of their own: BARs, error counters, uevent."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Dict, List, Mapping, Tuple, Union

from .._engine.values import Text, Unknown, lines
from .cpu import Number

# linux/include/linux/ioport.h
_IO, _MEMORY, _PREFETCH, _MEMORY_64, _DISABLED, _UNSET = 0x100, 0x200, 0x2000, 0x100000, 0x10000000, 0x20000000
_RESOURCE = re.compile(r"0x([0-9a-f]{1,16}) 0x([0-9a-f]{1,16}) 0x([0-9a-f]{1,16})", re.ASCII)
_BARS = 6
_COUNTER = re.compile(r"([A-Za-z_]{1,40})\s+(\d{1,20})", re.ASCII)
_TOTAL = "TOTAL_"


@dataclass(frozen=True)
class Bar:
    """A base address register.  Without an address the firmware or the kernel found no space for it."""

    index: int
    size_bytes: Number
    is_memory: bool
    is_64bit: bool
    is_prefetchable: bool
    has_address: bool


@dataclass(frozen=True)
class ErrorCounts:
    """What Advanced Error Reporting counted since boot.  ``counts`` holds only what is not zero, by its own name."""

    correctable: Number
    nonfatal: Number
    fatal: Number
    counts: Mapping[str, int] = field(default_factory=dict)


def parse_resource(text: Text) -> Union[Tuple[Bar, ...], Unknown]:
    """``resource``: start, end and flags a line, the first six being the BARs."""
    if not isinstance(text, str):
        return text if isinstance(text, Unknown) else Unknown("no resource file")
    bars: List[Bar] = []
    for index, line in enumerate(lines(text)[:_BARS]):
        found = _RESOURCE.fullmatch(line.strip().lower())
        if not found:
            return Unknown("line %d of resource is %r" % (index + 1, line[:60]))
        start, end, flags = (int(word, 16) for word in found.groups())
        if end > start or flags & (_IO | _MEMORY):
            bars.append(_bar(index, start, end, flags))
    return tuple(bars)


def parse_aer_counters(text: Text) -> Union[Dict[str, int], Unknown]:
    """``aer_dev_correctable``, ``aer_dev_nonfatal`` or ``aer_dev_fatal``: a name and a number a line."""
    if not isinstance(text, str):
        return text if isinstance(text, Unknown) else Unknown("not applicable: the kernel counts no such errors here")
    found = [_COUNTER.fullmatch(line.strip()) for line in lines(text)]
    counts = {match.group(1): int(match.group(2)) for match in found if match}
    return counts or Unknown("no counters")


def parse_uevent(text: Text) -> Dict[str, str]:
    """``uevent``: KEY=value a line; empty when there is none."""
    pairs = (line.partition("=") for line in lines(text))
    return {key: value.strip() for key, equals, value in pairs if equals and key}


def error_counts(correctable: Text, nonfatal: Text, fatal: Text) -> ErrorCounts:
    """The three files of a function in one value."""
    groups = [parse_aer_counters(text) for text in (correctable, nonfatal, fatal)]
    counts = {
        "%s %s" % (kind, name): number
        for kind, group in zip(("correctable", "nonfatal", "fatal"), groups)
        if isinstance(group, dict)
        for name, number in group.items()
        if number and not name.startswith(_TOTAL)
    }
    totals = [_total(group) for group in groups]
    return ErrorCounts(totals[0], totals[1], totals[2], counts)


def _bar(index: int, start: int, end: int, flags: int) -> Bar:
    # Only an I/O port region may begin at 0 on a machine.
    placed = not flags & (_UNSET | _DISABLED) and (start > 0 or bool(flags & _IO))
    size: Number = end - start + 1 if end > start else Unknown("no address was given to it")
    return Bar(index, size, bool(flags & _MEMORY), bool(flags & _MEMORY_64), bool(flags & _PREFETCH), placed)


def _total(group: Union[Dict[str, int], Unknown]) -> Number:
    if isinstance(group, Unknown):
        return group
    totals = [number for name, number in group.items() if name.startswith(_TOTAL)]
    return totals[0] if totals else sum(group.values())
