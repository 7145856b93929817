# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The entries of the SMBIOS tables as dmidecode(8) prints them, from version 2.2 on."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from .._engine.values import Text, Unknown, lines
from .cpu import Number
from .tool_text import clean

BIOS, SYSTEM, BOARD, CHASSIS, PROCESSOR, SLOT, ARRAY, MODULE, SUPPLY = 0, 1, 2, 3, 4, 9, 16, 17, 39
_TYPES_BY_TITLE = {
    "BIOS Information": BIOS,
    "System Information": SYSTEM,
    "Base Board Information": BOARD,
    "Chassis Information": CHASSIS,
    "Processor Information": PROCESSOR,
    "System Slot Information": SLOT,
    "Physical Memory Array": ARRAY,
    "Memory Device": MODULE,
    "System Power Supply": SUPPLY,
}
_HANDLE = re.compile(r"\s*Handle (0x[0-9A-Fa-f]{1,8})(?:, DMI type (\d{1,3}))?", re.ASCII)
# What a mail, a note or a log puts before each row: ``> `` or ``dmidecode: ``.
_QUOTED = re.compile(r"((?:\S.{0,60}?)?[>:|]\s{0,8})Handle 0x[0-9A-Fa-f]{1,8}\b")
_TYPE = re.compile(r"\s*DMI type (\d{1,3})\b", re.ASCII)


@dataclass(frozen=True)
class Structure:
    """One table entry: its handle, type number and title, its rows, and the lists below rows."""

    handle: str
    type: Number
    title: str
    values: Mapping[str, str]
    lists: Mapping[str, Tuple[str, ...]]


def parse_structures(text: Text) -> Tuple[Structure, ...]:
    """The entries of the tables, each once though several runs are joined."""
    found: Dict[Tuple[str, str], Structure] = {}
    rows = _unquoted(lines(clean(text))) if isinstance(text, str) else []
    for number, block in enumerate(_blocks(rows)):
        structure = _structure(block)
        if structure is not None:
            key = structure.handle or "#%d" % number
            # Handles are unique, but for the tables of some boards: there the content tells two entries apart.
            found.setdefault((key, "%s %s" % (structure.values, structure.lists)), structure)
    return tuple(found.values())


def _unquoted(rows: List[str]) -> List[str]:
    quoted = next((found.group(1) for found in map(_QUOTED.match, rows) if found), None)
    if quoted is None:
        return rows
    return [row[len(quoted) :] if row.startswith(quoted) else "" if row == quoted.rstrip() else row for row in rows]


def _blocks(rows: Sequence[str]) -> Iterator[List[str]]:
    """Entries begin with their handle; where those were cut out, with a title of an entry that we know."""
    block: List[str] = []
    has_handles = any(_HANDLE.match(row) for row in rows)
    for row in rows:
        begins = _HANDLE.match(row) if has_handles else row.strip() in _TYPES_BY_TITLE
        if begins:
            yield block
            block = []
        elif has_handles and row.startswith(("# dmidecode", "Getting SMBIOS", "SMBIOS ")):
            yield block
            block = []
            continue
        block.append(row)
    yield block


def _structure(block: Sequence[str]) -> Optional[Structure]:
    if not block:
        return None
    handle = _HANDLE.match(block[0])
    rows = [row.expandtabs(8) for row in (block[1:] if handle else block) if row.strip()]
    number: Optional[str] = handle.group(2) if handle else None
    if rows and number is None:
        # dmidecode 2.2 has the type on a row of its own.
        own = _TYPE.match(rows[0])
        number, rows = (own.group(1), rows[1:]) if own else (None, rows)
    if not rows:
        return None
    title = rows[0].strip()
    by_title = _TYPES_BY_TITLE.get(title)
    if number is None and by_title is None:
        return None
    kind: Number = int(number) if number is not None else by_title if by_title is not None else Unknown("no type")
    values, lists = _rows(rows[1:])
    return Structure(handle.group(1) if handle else "", kind, title, values, lists)


def _rows(rows: Sequence[str]) -> Tuple[Dict[str, str], Dict[str, Tuple[str, ...]]]:
    """Rows are ``Key: value``; what is indented deeper than the first belongs to the list of the row above.

    Where the indents were lost, that is what has no colon and follows a row without a value.
    """
    values: Dict[str, str] = {}
    lists: Dict[str, List[str]] = {}
    depth = len(rows[0]) - len(rows[0].lstrip()) if rows else 0
    key = ""
    for row in rows:
        if len(row) - len(row.lstrip()) > depth and key:
            lists.setdefault(key, []).append(row.strip())
            continue
        name, colon, value = row.strip().partition(":")
        if colon:
            key = name.strip()
            values.setdefault(key, value.strip())
        elif row.strip() and values.get(key) == "":
            lists.setdefault(key, []).append(row.strip())
    return values, {name: tuple(items) for name, items in lists.items()}
