# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Firmware settings of ConnectX and BlueField as ``mlxconfig query`` (or mstconfig) prints them.

With ``-e`` there are three columns: default, current and next boot; without it one, which is what the next boot gets.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Dict, List, Optional, Sequence, Tuple

from .._engine.values import Unknown
from .tool_text import Number, Word, clean, no_value, said, whole

_ROW = re.compile(r"(\*)?\s*(?:RO\s+)?([A-Z][A-Z0-9_]{1,63}(?:\[[0-9.]{1,12}\])?)\s+(\S.{0,300})")
_COLUMNS = ("Default", "Current", "Next Boot")
_DEVICE = re.compile(r"Device #([0-9]{1,4}):")
_ABOUT = re.compile(r"(Device type|Device|Name|Description|PCI device):\s*(\S.{0,200})?")


@dataclass(frozen=True)
class Parameter:
    """``is_marked`` is the star: the next value differs from the default or the current one."""

    name: str
    default: Word
    current: Word
    next_boot: Word
    is_marked: bool

    @property
    def waits(self) -> bool:
        """Changed but not active: a reboot or mlxfwreset is pending."""
        return isinstance(self.current, str) and isinstance(self.next_boot, str) and self.current != self.next_boot


@dataclass(frozen=True)
class Query:
    """The settings of one device."""

    device_type: Word
    name: Word
    device: Word
    parameters: Tuple[Parameter, ...]

    def value(self, name: str) -> Word:
        """What the next boot gets."""
        found = [parameter.next_boot for parameter in self.parameters if parameter.name == name]
        return found[0] if found else Unknown("no such parameter")


@dataclass(frozen=True)
class Answer:
    devices: Tuple[Query, ...]
    complaints: Tuple[str, ...]


def parse_mlxconfig(text: str) -> Answer:
    """One query for each device; rows without any heading (an excerpt) are one device as well."""
    about: List[Dict[str, str]] = []
    rows: List[List[Parameter]] = []
    complaints: List[str] = []
    columns: Sequence[str] = ()
    for line in clean(text).splitlines():
        head = re.match(r"\s*Configurations:(.{0,200})", line)
        row, fact = _ROW.fullmatch(line.strip()[:400]), _ABOUT.fullmatch(line.strip()[:300])
        if not line.strip():
            continue
        if line.strip().startswith(("-E-", "-W-", "-I-")):
            complaints.append(line.strip()[:300])
        elif _DEVICE.match(line.strip()) or (not about and (head or row or fact)):
            about.append({})
            rows.append([])
        if head:
            columns = [name for name in _COLUMNS if name.lower() in head.group(1).lower()]
        elif row and about:
            rows[-1].append(_parameter(row.group(2), row.group(3), columns, bool(row.group(1))))
        elif fact and about:
            about[-1].setdefault(fact.group(1), fact.group(2) or "")
    devices = (_query(facts, found) for facts, found in zip(about, rows))
    return Answer(tuple(devices), tuple(complaints))


def number_of(value: Word) -> Number:
    """The number in ``ENABLED(1)``, or a plain one."""
    if isinstance(value, Unknown):
        return value
    found = re.fullmatch(r".{0,80}\((0x[0-9a-fA-F]{1,16}|[0-9]{1,20})\)", value)
    return whole(found.group(1) if found else value)


def _parameter(name: str, text: str, columns: Sequence[str], is_marked: bool) -> Parameter:
    values = re.split(r"\s{2,}|\t", text.strip())
    values = values if len(values) > 1 or len(columns) < 2 else text.split()
    if not columns or len(columns) != len(values):
        # An excerpt without its heading: three values are all columns, one is the next boot's.
        columns = {1: _COLUMNS[2:], 3: _COLUMNS}.get(len(values), ())
    found = dict(zip(columns, values))
    default, current, next_boot = (_value(found.get(column)) for column in _COLUMNS)
    return Parameter(name, default, current, next_boot, is_marked)


def _value(word: Optional[str]) -> Word:
    if word is None:
        return Unknown("not printed")
    return no_value(word) if word.upper() in ("N/A", "-") else word


def _query(about: Dict[str, str], rows: List[Parameter]) -> Query:
    device = about.get("Device") or about.get("PCI device")
    return Query(said(about.get("Device type")), said(about.get("Name")), said(device), tuple(rows))
