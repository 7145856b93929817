# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What lsblk(8) prints, in each of its forms: JSON, pairs, list and tree."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Tuple

_PAIR = re.compile(r'([A-Z][A-Z0-9:%-]*)="((?:[^"\\]|\\.)*)"')
_TREE = re.compile(r"^[\s│├└─|`-]*")
_HEADER = re.compile(r"^\s*[A-Z][A-Z0-9:%-]*(\s+[A-Z][A-Z0-9:%-]*)+\s*$")
_COMPLAINT = re.compile(r"^\S*lsblk: ")


@dataclass(frozen=True)
class Device:
    """A row.  ``values`` has lower-case column names and texts; an empty cell is not there."""

    name: str
    parents: Tuple[str, ...]
    values: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Listing:
    """The devices, each once even when it is drawn below several parents, and lsblk's complaints."""

    columns: Tuple[str, ...]
    devices: Tuple[Device, ...]
    rows: int
    complaints: Tuple[str, ...] = ()


def parse_lsblk(text: str) -> Listing:
    """Any output of lsblk, with error lines mixed in or alone."""
    complaints = tuple(line.strip() for line in text.splitlines() if _COMPLAINT.match(line))
    columns: List[str] = []
    found: List[Tuple[int, Dict[str, str]]] = []
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        data = None
    if isinstance(data, Mapping):
        _walk(data.get("blockdevices"), 0, found)
    elif _PAIR.search(text):
        found = [(0, _pairs(line)) for line in text.splitlines() if _PAIR.search(line)]
    else:
        columns, found = _table([line for line in text.splitlines() if not _COMPLAINT.match(line)])
    return _listing(columns, found, complaints)


def _walk(nodes: Any, depth: int, found: List[Tuple[int, Dict[str, str]]]) -> None:
    for node in nodes if isinstance(nodes, list) and depth < 100 else []:
        if isinstance(node, Mapping):
            found.append((depth, {str(key).lower(): _text(node[key]) for key in node if key != "children"}))
            _walk(node.get("children"), depth + 1, found)


def _text(value: Any) -> str:
    """Versions differ in whether numbers and booleans are quoted."""
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, list):
        return "\n".join(_text(item) for item in value if item is not None)
    return "" if value is None else str(value)


def _pairs(line: str) -> Dict[str, str]:
    return {key.lower(): value for key, value in _PAIR.findall(line)}


def _table(rows: List[str]) -> Tuple[List[str], List[Tuple[int, Dict[str, str]]]]:
    headers = [index for index, row in enumerate(rows) if _HEADER.match(row)]
    if not headers:
        return [], []
    columns = [(match.group().lower(), match.start(), match.end()) for match in re.finditer(r"\S+", rows[headers[0]])]
    found: List[Tuple[int, Dict[str, str]]] = []
    for row in rows[headers[0] + 1 :]:
        tree = _TREE.match(row)
        drawn = tree.end() if tree else 0
        if row[drawn:].strip():
            found.append((drawn // 2, _cells(row, drawn, columns)))
    return [name for name, _left, _right in columns], found


def _cells(row: str, drawn: int, columns: List[Tuple[str, int, int]]) -> Dict[str, str]:
    """Cells stand below their header, from its left or to its right edge; names and mount points hold spaces."""
    cells: Dict[str, str] = {}
    first_end = columns[1][1] if len(columns) > 1 else len(row)
    for match in re.finditer(r"\S+", row[drawn:]):
        start, end = match.start() + drawn, match.end() + drawn
        column = _column(start, end, columns, first_end)
        cells[column] = "%s %s" % (cells[column], match.group()) if column in cells else match.group()
    return cells


def _column(start: int, end: int, columns: List[Tuple[str, int, int]], first_end: int) -> str:
    if (end < first_end and start < columns[0][2]) or end <= columns[0][2]:
        return columns[0][0]
    exact = [name for name, left, right in columns if start == left or end == right]
    overlapping = [name for name, left, right in columns if start < right and end > left]
    before = [name for name, left, _right in columns if left <= start]
    return (exact or overlapping or before or [columns[0][0]])[-1 if not exact and not overlapping else 0]


def _listing(header: List[str], found: List[Tuple[int, Dict[str, str]]], complaints: Tuple[str, ...]) -> Listing:
    columns: Dict[str, None] = dict.fromkeys(header)
    devices: Dict[str, Tuple[List[str], Dict[str, str]]] = {}
    trail: List[Tuple[int, str]] = []
    for depth, values in found:
        columns.update(dict.fromkeys(values))
        # lsblk before 2.27 writes the kernel's name behind: "vg-lv (dm-0)".
        name = values.get("name", "").split(" (")[0]
        trail = [(level, above) for level, above in trail if level < depth]
        parent: Optional[str] = trail[-1][1] if trail else values.get("pkname") or None
        if name:
            parents, _values = devices.setdefault(name, ([], {k: v for k, v in values.items() if v}))
            if parent and parent not in parents:
                parents.append(parent)
            trail.append((depth, name))
    rows = tuple(Device(name, tuple(parents), values) for name, (parents, values) in devices.items())
    return Listing(tuple(columns), rows, len(found), complaints)
