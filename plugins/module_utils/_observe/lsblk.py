# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What lsblk(8) prints, in each of its forms: JSON, pairs, list, raw and tree."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Tuple

from .columns import Column, cells, columns_of, is_end, raw_cells, unescape, without_tree
from .cut_json import json_object
from .tool_text import clean, without_labels

# MAJ:MIN is MAJ_MIN, and USE% is USE_PCT, with --shell.
_PAIR = re.compile(r'([A-Z][A-Z0-9:%_-]{0,60})="((?:[^"\\]|\\.)*)"')
_HEADER = re.compile(r"^\s*[A-Z][A-Z0-9:%_-]*(\s+[A-Z][A-Z0-9:%_-]*)*\s*$")
# Columns that name a device; the first of them that a listing has is its name.
_NAMES = ("name", "kname", "path")
_COMPLAINT = re.compile(r"^(?:\S+ )?\S*lsblk: ")
# Columns that are never empty, and what a cell of theirs looks like: what has none is no row of this table.
_ALWAYS = {
    "maj:min": re.compile(r"\d+:\d+", re.ASCII),
    "type": re.compile(r"[a-z][a-z0-9_+-]*"),
    "size": re.compile(r"\d+([.,]\d+)?[BKMGTPE]?", re.ASCII),
}
_ONE_NAME = re.compile(r"\S+")
_KERNEL_NAME = re.compile(
    r"/dev/|(?:sd|hd|vd|xvd|nvme|md|dm-|loop|sr|fd|zram|ram|nbd|rbd|drbd|mmcblk|mpath|dasd|pmem|nvd|bcache|zd|st)[a-z0-9]"
)
# Cells that hold several values have one below the other.
_STACKED = ("mountpoints", "fsroots")
# Columns that always have one word: where only the last is another, words count and not where they stand.
_ONE_WORD = (*_NAMES, "maj:min", "rm", "size", "ro", "type", "rota")
# A name that was blacked out moves what stands behind it: a mount point is known by itself.
_TARGETS = ("mountpoints", "mountpoint")
_SHIFTED = re.compile(r"(\S+)\s+(/.*|\[SWAP\])")

Found = List[Tuple[int, Dict[str, str]]]


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
    text = clean(without_labels(text, _HEADER))
    rows = text.splitlines()
    complaints = tuple(row.strip() for row in rows if _COMPLAINT.match(row))
    columns: List[str] = []
    found: Found = []
    data, is_cut = json_object(text, "blockdevices")
    if is_cut:
        complaints += ("the end of the output is missing",)
    if data is not None:
        _walk(data.get("blockdevices"), 0, found)
    elif any(_PAIR.match(row.strip()) for row in rows):
        found = [(0, _pairs(row)) for row in rows if _PAIR.match(row.strip())]
    else:
        columns, found = _tables([row for row in rows if not _COMPLAINT.match(row)])
    return _listing(columns, found, complaints)


def _walk(nodes: Any, depth: int, found: Found) -> None:
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
    return {_column_name(key.lower()): unescape(value) for key, value in _PAIR.findall(line)}


def _column_name(key: str) -> str:
    return "maj:min" if key == "maj_min" else re.sub(r"_pct$", "%", key).replace("_", "-")


def _tables(rows: List[str]) -> Tuple[List[str], Found]:
    """The rows of each table of a text, from its heading to the next prompt."""
    names: Dict[str, None] = {}
    found: Found = []
    columns: List[Column] = []
    for row in rows:
        if _is_header(row):
            columns = columns_of(row)
            names.update(dict.fromkeys(column.name for column in columns))
        elif is_end(row):
            columns = []
        elif columns and row.strip():
            _add_row(row, columns, found)
    return list(names), found


def _is_header(row: str) -> bool:
    return _HEADER.match(row) is not None and any(name.upper() in row.split() for name in _NAMES)


def _add_row(row: str, columns: List[Column], found: Found) -> None:
    depth, values = _row(row, columns)
    if values and found and all(key in _STACKED for key in values):
        for key, value in values.items():
            found[-1][1][key] = "\n".join(filter(None, [found[-1][1].get(key), value]))
    elif _is_device(values, depth, columns):
        found.append((depth, {**{column.name: "" for column in columns}, **values}))


def _is_device(values: Mapping[str, str], depth: int, columns: List[Column]) -> bool:
    always = [key for key in _ALWAYS if _has(columns, key)]
    if not _ONE_NAME.fullmatch(_name(values)) or not all(_ALWAYS[key].fullmatch(values.get(key, "")) for key in always):
        return False
    # Below a table without such columns a lone word may be anything.
    return bool(always) or len(values) > 1 or depth > 0 or _KERNEL_NAME.match(_name(values)) is not None


def _row(row: str, columns: List[Column]) -> Tuple[int, Dict[str, str]]:
    raw = raw_cells(row, columns)
    if raw is not None:
        return 0, raw
    depth, plain = without_tree(row, columns, _NAMES)
    counted = _counted(plain, columns)
    if counted:
        return (_depth_without_blanks(counted) if _lost_blanks(plain, columns) else depth), counted
    values = cells(plain, columns)
    last = list(values)[-1] if values else ""
    shifted = _SHIFTED.fullmatch(values.get(last, ""))
    target = next((name for name in _TARGETS if _has(columns, name)), "")
    if target and shifted and last not in (*_NAMES, *_TARGETS, "label", "partlabel", "model"):
        values[last], values[target] = shifted.groups()
    return depth, values


def _counted(plain: str, columns: List[Column]) -> Dict[str, str]:
    """The cells by the order of their words; empty where that does not tell them."""
    names = [column.name for column in columns]
    if len(names) < 3 or not all(name in _ONE_WORD for name in names[:-1]) or names[-1] not in (*_ONE_WORD, *_TARGETS):
        return {}
    words = re.sub(r"\s+(?=\(dm-\d+\)\s)", "\0", plain.strip()).split(None, len(names) - 1)
    words = [word.replace("\0", " ") for word in words]
    return dict(zip(names, words)) if len(words) >= len(names) - (names[-1] in _TARGETS) else {}


def _lost_blanks(plain: str, columns: List[Column]) -> bool:
    """Whether the blanks between cells were joined to one each, as web pages do it: a name runs over its column."""
    text = plain.strip()
    start = len(plain) - len(plain.lstrip())
    return "  " not in text and start + len(text.split(" ")[0]) > columns[1].left


def _depth_without_blanks(values: Mapping[str, str]) -> int:
    """With the blanks went what was below what; a partition is below the disk before it."""
    return 1 if values.get("type") == "part" else 0


def _has(columns: List[Column], name: str) -> bool:
    return any(column.name == name for column in columns)


def _name(values: Mapping[str, str]) -> str:
    # lsblk before 2.27 writes the kernel's name behind: "vg-lv (dm-0)".
    return next((values[key] for key in _NAMES if values.get(key)), "").split(" (")[0]


def _listing(header: List[str], found: List[Tuple[int, Dict[str, str]]], complaints: Tuple[str, ...]) -> Listing:
    columns: Dict[str, None] = dict.fromkeys(header)
    devices: Dict[str, Tuple[List[str], Dict[str, str]]] = {}
    trail: List[Tuple[int, str]] = []
    for depth, values in found:
        columns.update(dict.fromkeys(values))
        name = _name(values)
        trail = [(level, above) for level, above in trail if level < depth]
        parent: Optional[str] = trail[-1][1] if trail else values.get("pkname") or None
        if name:
            parents, known = devices.setdefault(name, ([], {}))
            # An empty cell says that there is nothing; another listing may tell what this one has no column for.
            known.update({key: value for key, value in values.items() if key not in known})
            if parent and parent not in parents:
                parents.append(parent)
            trail.append((depth, name))
    rows = tuple(
        Device(name, tuple(parents), {key: value for key, value in values.items() if value})
        for name, (parents, values) in devices.items()
    )
    return Listing(tuple(columns), rows, len(found), complaints)
