# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tables whose cells stand below their heading, as lsblk(8) and findmnt(8) print them."""

from __future__ import annotations

import re
from typing import Dict, List, NamedTuple, Optional, Tuple

from .tool_text import is_prompt

# The lines with which a tree is drawn, by the Unicode and by the ASCII set, and those that join trees (lsblk -M).
_TREE = re.compile(r"[\s│├└─┌┬┈▶|`-]*")

# Prompts that end otherwise: of SUSE ("user@host:~>"), of zsh ("host%", "➜  ~").
_OTHER_PROMPT = re.compile(r"\s{0,8}(?:[\w.-]{1,40}@[\w.-]{1,64}:\S{0,80}>(?:\s|$)|[\w.@-]{1,64}% \S|[➜❯] )")
_ESCAPED = re.compile(r"((?:\\x[0-9a-fA-F]{2})+)")


class Column(NamedTuple):
    """A column by its heading, in lower case, and where that starts and ends."""

    name: str
    left: int
    right: int


def is_end(row: str) -> bool:
    """Whether a row ends a table: a fence, or a prompt with the next command."""
    return is_prompt(row) or _OTHER_PROMPT.match(row) is not None


def columns_of(header: str) -> List[Column]:
    return [Column(match.group().lower(), match.start(), match.end()) for match in re.finditer(r"\S+", header)]


def cells(row: str, columns: List[Column]) -> Dict[str, str]:
    """The cells of a row by column.  One starts at the left or ends at the right edge of its heading, and may hold spaces."""
    spans: Dict[str, List[int]] = {}
    first_end = columns[1].left if len(columns) > 1 else len(row)
    for match in re.finditer(r"\S+", row):
        name = _column(match.start(), match.end(), columns, first_end)
        spans.setdefault(name, [match.start(), 0])[1] = match.end()
    return {name: row[start:end] for name, (start, end) in spans.items()}


def raw_cells(row: str, columns: List[Column]) -> Optional[Dict[str, str]]:
    """The cells of a row of a raw list, None when it is none: one blank between two, nothing where one is empty."""
    fields = row.split(" ")
    gaps = {right.left - left.right for left, right in zip(columns, columns[1:])}
    if gaps != {1} or len(fields) != len(columns) or _TREE.match(row).end():  # type: ignore[union-attr]
        return None
    return {column.name: unescape(value) for column, value in zip(columns, fields) if value}


def unescape(value: str) -> str:
    """Pairs and raw lists write the bytes that could break them as ``\\x20``."""
    return _ESCAPED.sub(lambda found: bytes.fromhex(found.group().replace("\\x", "")).decode("utf-8", "replace"), value)


def without_tree(row: str, columns: List[Column], names: Tuple[str, ...]) -> Tuple[int, str]:
    """How deep the tree in the column of a name stands, and the row with blanks in place of its drawing."""
    left = next((column.left for column in columns if column.name in names), 0)
    # A table that was indented as a whole starts with blanks, which are as good as a drawing.
    left = 0 if left == columns[0].left else left
    drawn = _TREE.match(row, left)
    end = drawn.end() if drawn else left
    return (end - left) // 2, row[:left] + " " * (end - left) + row[end:]


def _column(start: int, end: int, columns: List[Column], first_end: int) -> str:
    first = columns[0]
    if (end < first_end and start < first.right) or end <= first.right:
        return first.name
    exact = [name for name, left, right in columns if left == start or right == end]
    overlapping = [name for name, left, right in columns if start < right and end > left]
    before = [name for name, left, _right in columns if left <= start]
    return (exact or overlapping or before[-1:] or [first.name])[0]
