# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Firmware settings of ConnectX and BlueField as ``mlxconfig query`` (or mstconfig) prints them.

With ``-e`` there are three columns: default, current and next boot; without it one, which is what the next boot gets.
What ``set`` prints has the value that it writes in a column of its own.  ``-j`` writes JSON into a file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Match, Optional, Sequence, Tuple

from .._engine.values import Unknown
from .tool_text import Number, Word, clean, find_json, no_value, output_lines, said, whole

# Capitals, but for EXP_ROM_UEFI_x86_ENABLE; no name is without an underscore ("MST modules:" is none).
_ROW = re.compile(
    r"(\*)?\s*(?:RO\s+)?((?=[A-Z0-9a-z]{0,40}_)[A-Z_](?:[A-Z0-9_]|[a-z](?![a-z])){1,63}(?:\[[0-9.]{1,12}\])?)"
    r"\s+(\S.{0,300})"
)
_COLUMNS = ("Default", "Current", "Next Boot")
_NEW = "New"
# After it has been written, the new value is what the next boot gets.
_SET = ("before", "Next Boot")
_KEYS = ("default_value", "current_value", "next_value")
_DEVICE = re.compile(r"Device #([0-9]{1,4}):")
_FACTS = ("Device type", "Name", "Device")
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
    data = find_json(clean(text))
    if isinstance(data, Mapping):
        return _from_json(data)
    reader = _Reader()
    for line in output_lines(text):
        if line.strip():
            reader.read(line.strip()[:400])
    devices = (_query(facts, found) for facts, found in zip(reader.about, reader.rows))
    return Answer(tuple(devices), tuple(reader.complaints))


class _Reader:
    def __init__(self) -> None:
        self.about: List[Dict[str, str]] = []
        self.rows: List[List[Parameter]] = []
        self.complaints: List[str] = []
        self._columns: Sequence[str] = ()
        self._written: List[Parameter] = []

    def read(self, line: str) -> None:
        head = re.match(r"Configurations:(.{0,200})", line)
        row, fact = _ROW.fullmatch(line), _ABOUT.fullmatch(line[:300])
        if line.startswith(("-E-", "-W-", "-I-")):
            self.complaints.append(line[:300])
        elif _DEVICE.match(line) or (not self.about and (head or row or fact)):
            self.about.append({})
            self.rows.append([])
            self._columns, self._written = (), []
        if head:
            self._columns = [name for name in (*_COLUMNS, _NEW) if name.lower() in head.group(1).lower()]
        elif row and self.about:
            self._add(row)
        elif fact and self.about:
            self.about[-1].setdefault(fact.group(1), fact.group(2) or "")
        elif line.startswith("Applying... Done") and self._written:
            self.rows[-1] = self._written

    def _add(self, row: Match[str]) -> None:
        mark, name, values = row.groups()
        self.rows[-1].append(_parameter(name, values, self._columns, bool(mark)))
        if _NEW in self._columns:
            self._written.append(_parameter(name, values, _SET, False))


def number_of(value: Word) -> Number:
    """The number in ``ENABLED(1)``, or a plain one."""
    if isinstance(value, Unknown):
        return value
    found = re.fullmatch(r".{0,80}\((0x[0-9a-fA-F]{1,16}|[0-9]{1,20})\)", value)
    return whole(found.group(1) if found else value)


def _parameter(name: str, text: str, columns: Sequence[str], is_marked: bool) -> Parameter:
    values = re.split(r"\s{2,}|\t", text.strip())
    values = values if len(values) == len(columns) or len(columns) < 2 else text.split()
    if not columns or len(columns) != len(values):
        # An excerpt without its heading: three values are all columns, one is the next boot's.
        columns = {1: _COLUMNS[2:], 3: _COLUMNS}.get(len(values), ())
    found = dict(zip(columns, values))
    default, current, next_boot = (_value(found.get(column)) for column in _COLUMNS)
    return Parameter(name, default, current, next_boot, is_marked)


def _from_json(data: Mapping[str, Any]) -> Answer:
    """A device for each ``Device #1``, with its settings by name."""
    devices: List[Query] = []
    for device in data.values():
        settings = device.get("tlv_configuration") if isinstance(device, Mapping) else None
        if isinstance(settings, Mapping):
            facts = {key: str(device.get(key.lower().replace(" ", "_")) or "")[:200] for key in _FACTS}
            devices.append(_query(facts, [_of_json(name, row) for name, row in settings.items()]))
    return Answer(tuple(devices), ())


def _of_json(name: str, row: Any) -> Parameter:
    row = row if isinstance(row, Mapping) else {}
    default, current, next_boot = (_value(_json_value(row[key]) if key in row else None) for key in _KEYS)
    return Parameter(str(name)[:80], default, current, next_boot, row.get("modified") is True)


def _json_value(value: Any) -> str:
    return str(value)[:300] if isinstance(value, (str, int, float)) else "N/A"


def _value(word: Optional[str]) -> Word:
    if word is None:
        return Unknown("not printed")
    if word.count("(") != word.count(")"):
        return Unknown(f"cut off: {word[:80]}")
    return no_value(word) if word.upper() in ("N/A", "-") else word


def _query(about: Dict[str, str], rows: List[Parameter]) -> Query:
    device = about.get("Device") or about.get("PCI device")
    return Query(said(about.get("Device type")), said(about.get("Name")), said(device), tuple(rows))
