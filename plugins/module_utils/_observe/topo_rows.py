# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The matrices that ``nvidia-smi topo`` prints, from whatever was made of them on the way here.

Cells are split by tabs, but pasted reports have blanks of any number instead, headers of old drivers have
nothing between the names (``GPU0GPU1``), terminals wrap lines, and terminals or people cut them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

# Columns behind the connections, in the order of the newest driver.
AFFINITY = ("CPU Affinity", "NUMA Affinity", "GPU NUMA ID")
# Stands for the name of a column when nothing tells it.
NAMELESS = "column "

_AFFINITY = tuple(re.compile(name.replace(" ", r"\s{0,3}"), re.IGNORECASE) for name in AFFINITY)
# GPU0, NIC0, or an RDMA device by its own name: mlx5_0, bnxt_re0, rocep4s0f0, ibp3s0.
_NAME = re.compile(r"[A-Za-z][\w.-]{0,60}", re.ASCII)
_FIRST = re.compile(r"\s*([A-Za-z][\w.-]{0,60})(?=\s|$)", re.ASCII)
_GPU = re.compile(r"GPU\d{1,3}", re.ASCII)
_NUMBERED = re.compile(r"(?:GPU|NIC)\d{1,3}|(?:mlx|bnxt_re|roce|ib|hfi|efa|irdma|rdma)\w{1,40}", re.ASCII)
# In a header without blanks, where a name ends: a digit before the beginning of another.
_GLUED = re.compile(r"(?<=\d)(?=GPU\d|NIC\d|mlx\d|bnxt_|roce|ibp|hfi|efa_|irdma|rdmap)", re.ASCII)
_WORD = re.compile(
    r"(?:X|NV\d{1,3}|SYS|SOC|NODE|PHB|PXB|PIX|PSB|C2C|OK|CNS|GNS|TNS|NS|DR|U|N/A|ERR!?|Unknown)",
    re.ASCII | re.IGNORECASE,
)
# What is left when a line was put together again behind a wrap: NODENODE, NODEPIX, NV18NV18.
_JOINED = re.compile(r"(?:NV\d{1,2}|SYS|SOC|NODE|PHB|PXB|PIX|PSB|X){2,16}", re.ASCII)
_PIECE = re.compile(r"NV\d{1,2}|SYS|SOC|NODE|PHB|PXB|PIX|PSB|X", re.ASCII)
_LIST = re.compile(r"\d[\d,-]{0,2000}|N/A", re.ASCII)
_PART = re.compile(
    "|".join(
        (
            "(?:%s)" % _WORD.pattern,
            r"\d{1,5}(?:[,-]\d{1,5}){0,400}|N/A",
            _NUMBERED.pattern,
            "CPU",
            "NUMA",
            "GPU",
            "Affinity",
            "ID",
        )
    ),
    re.ASCII,
)
_LEGEND = re.compile(r"\s{0,200}(?:NIC\s{1,3})?Legend", re.IGNORECASE)
# Longer than any row of 16 GPUs and 64 NICs.
_LONGEST = 4000
# No terminal is as narrow.
_NARROWEST = 40
_FIRST_GPU = re.compile(r"^\s*GPU0", re.ASCII)
# No matrix has as many rows.
_MOST_ROWS = 512


@dataclass(frozen=True)
class Matrix:
    """``cells`` by row and column; ``tails`` are the AFFINITY cells of a row, None for a column not there."""

    columns: Tuple[str, ...]
    cells: Mapping[str, Mapping[str, str]]
    tails: Mapping[str, Tuple[Optional[str], ...]]
    has_affinity: bool


@dataclass(frozen=True)
class _Header:
    """``starts`` are the places of the AFFINITY columns in the line."""

    names: Tuple[str, ...] = ()
    starts: Tuple[Optional[int], ...] = (None, None, None)

    @property
    def has_affinity(self) -> bool:
        return any(start is not None for start in self.starts)


@dataclass(frozen=True)
class _Row:
    name: str
    words: Tuple[str, ...]
    # What stands behind the connections, and its place in the line.
    rest: str
    place: int


def matrices(lines: Sequence[str]) -> Iterator[Matrix]:
    """The matrices of a text, one after another.  One whose header is missing is told by its rows."""
    header = _Header()
    rows: List[str] = []
    for line in [*_unwrapped([line[:_LONGEST] for line in lines]), "Legend"]:
        found = _header(line, is_more=bool(header.names) and not rows)
        if found and header.names and not rows:
            header = _joined(header, found)
        elif found or _LEGEND.match(line):
            matrix = _matrix(header, rows)
            if matrix:
                yield matrix
            header, rows = found or _Header(), []
        elif len(rows) > _MOST_ROWS:
            continue
        elif _is_row(line):
            rows.append(line)
        elif rows and _goes_on(line):
            rows[-1] += ("\t" if "\t" in rows[-1] else "  ") + line.strip()


def _unwrapped(lines: Sequence[str]) -> List[str]:
    """A terminal cuts at its width, also within a word: what follows a line of that width goes on without a blank."""
    width = max(map(len, lines), default=0)
    found: List[str] = []
    is_full = False
    for line in lines:
        if is_full and _goes_on_within(found[-1], line, len(line) == width) and len(found[-1]) < _LONGEST:
            found[-1] += line
        else:
            found.append(line)
        is_full = len(line) == width >= _NARROWEST and (_is_row(found[-1]) or _FIRST_GPU.search(found[-1]) is not None)
    return found


def _goes_on_within(before: str, line: str, is_full: bool) -> bool:
    """Whether a line is of words of the matrix, the first perhaps begun in the line before, the last not ended."""
    words = line.split()
    if not words or _is_row(line):
        return False
    is_begun = before[-1:].strip() and line[:1].strip()
    words[0] = before.split()[-1] + words[0] if is_begun else words[0]
    return all(_PART.fullmatch(word) for word in (words[:-1] if is_full and len(words) > 1 else words))


def _header(line: str, is_more: bool) -> Optional[_Header]:
    """A line of names and columns on affinity, and of nothing else; ``is_more`` of a header that was wrapped."""
    found = [pattern.search(line) for pattern in _AFFINITY]
    starts = tuple(match.start() if match else None for match in found)
    first = min((start for start in starts if start is not None), default=len(line))
    words = _GLUED.sub(" ", line[:first]).split()
    has_affinity = first < len(line)
    if is_more:
        is_header = bool(words or has_affinity) and all(_NUMBERED.fullmatch(word) for word in words)
    else:
        # One GPU alone may be a row that was cut; a header has its columns on affinity beside it.
        is_header = bool(words) and _GPU.fullmatch(words[0]) is not None and (has_affinity or len(words) > 1)
        is_header = is_header and all(_NAME.fullmatch(word) and re.search(r"\d", word) for word in words)
        is_header = is_header and not any(_WORD.fullmatch(word) for word in words)
    return _Header(tuple(words), starts) if is_header else None


def _joined(header: _Header, more: _Header) -> _Header:
    """Behind a wrap nothing stands below its header any more: only the order counts."""
    moved = [None if start is None else start + _LONGEST for start in more.starts]
    starts = tuple(one if one is not None else other for one, other in zip(header.starts, moved))
    return _Header(header.names + more.names, starts)


def _is_row(line: str) -> bool:
    name = _FIRST.match(line)
    if not name or not re.search(r"\d", name.group(1)) or _WORD.fullmatch(name.group(1)):
        return False
    rest = line[name.end() :].split(None, 1)
    return bool(rest) and (_WORD.fullmatch(rest[0]) or _JOINED.fullmatch(rest[0])) is not None


def _goes_on(line: str) -> bool:
    """The rest of a wrapped row: words of connections, perhaps lists of CPUs."""
    words = line.split()
    return bool(words) and all(_WORD.fullmatch(word) or _LIST.fullmatch(word) for word in words)


def _matrix(header: _Header, lines: Sequence[str]) -> Optional[Matrix]:
    # Without columns on affinity the header may have been cut, and tells no limit.
    limit = len(header.names) if header.has_affinity else _LONGEST
    rows = {row.name: row for row in (_row(line, limit) for line in lines)}
    if not rows:
        return None
    columns = header.names if _fits(header.names, rows) else _columns_by_rows(rows, header.names)
    cells = {name: dict(zip(columns, row.words)) for name, row in rows.items() if name in columns}
    # A row that is shorter than the header was cut, and so were its columns on affinity.
    tails = {name: _tail(row, header) for name, row in rows.items() if len(row.words) == len(columns)}
    return Matrix(columns, cells, tails, header.has_affinity)


def _row(line: str, limit: int) -> _Row:
    name = _FIRST.match(line)
    if not name:
        return _Row("", (), "", 0)
    words: List[str] = []
    place = name.end()
    for found in re.finditer(r"\S+", line[name.end() :]):
        said = found.group().upper()
        # N/A is a cell on affinity unless connections are missing before those.
        is_word = _WORD.fullmatch(said) and not (limit == _LONGEST and said == "N/A")
        pieces = [said] if is_word else _PIECE.findall(said) if _JOINED.fullmatch(said) else []
        if not pieces or len(words) + len(pieces) > limit:
            break
        words += pieces
        place = name.end() + found.end()
    return _Row(name.group(1), tuple(words), line[place:], place)


def _fits(names: Sequence[str], rows: Mapping[str, _Row]) -> bool:
    """Whether each row has its X below its own name."""
    if not names or len(set(names)) < len(names) or any(len(row.words) > len(names) for row in rows.values()):
        return False
    return all(names[row.words.index("X")] == row.name for row in rows.values() if "X" in row.words)


def _columns_by_rows(rows: Mapping[str, _Row], named: Sequence[str]) -> Tuple[str, ...]:
    """Names of the columns when the header is missing, cut or unreadable: X stands in a row's own column."""
    width = max(len(row.words) for row in rows.values())
    columns = ["%s%d" % (NAMELESS, place + 1) for place in range(width)]
    for row in rows.values():
        if "X" in row.words:
            columns[row.words.index("X")] = row.name
    for place, name in enumerate(named[:width]):
        if columns[place].startswith(NAMELESS) and name not in columns:
            columns[place] = name
    return tuple(columns)


def _tail(row: _Row, header: _Header) -> Tuple[Optional[str], ...]:
    """The AFFINITY cells; an empty one is an empty text."""
    there = [number for number, start in enumerate(header.starts) if start is not None]
    starts = [start for start in header.starts if start is not None]
    words = _tabbed(row.rest, len(there)) if "\t" in row.rest else _spaced(row, starts)
    cells: List[Optional[str]] = [None] * len(AFFINITY)
    for number, word in zip(there, words):
        cells[number] = word
    return tuple(cells)


def _tabbed(rest: str, count: int) -> List[str]:
    """As many cells as columns are theirs, however many tabs stand between; GPU NUMA ID has one more before it."""
    cells = [cell.strip() for cell in rest.split("\t")[1:]]
    filled = [cell for cell in cells if cell]
    if len(filled) >= count:
        return filled[:count]
    place = next((number for number in range(len(cells) - 1, -1, -1) if cells[number]), 0)
    # GPU NUMA ID is never empty; what stands before its place is not it, and the row was cut.
    last = [cells[place]] if filled and count == len(AFFINITY) and place >= count - 1 else []
    cells = cells[:place] if last else cells
    return [*(cells + [""] * count)[: count - len(last)], *last]


def _spaced(row: _Row, starts: Sequence[int]) -> List[str]:
    """As many words as columns stand in their order; fewer stand below the header they belong to."""
    found = [(match.group(), row.place + match.start()) for match in re.finditer(r"\S+", row.rest)]
    if len(found) >= len(starts):
        return [word for word, _place in found[: len(starts)]]
    cells: Dict[int, str] = {}
    if found and len(starts) == len(AFFINITY) and found[-1][0].upper() == "N/A":
        # GPU NUMA ID is never empty, and empty cells before it draw it to the left.
        cells[len(starts) - 1] = found.pop()[0]
    for word, place in found:
        cells.setdefault(min(range(len(starts)), key=lambda number: abs(starts[number] - place)), word)
    return [cells.get(number, "") for number in range(len(starts))]
