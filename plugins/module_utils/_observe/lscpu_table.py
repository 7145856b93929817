# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The table with a row for each CPU: ``lscpu -e``, ``lscpu -p`` and ``lscpu -e -J``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Dict, FrozenSet, Iterable, List, Mapping, Optional, Set, Tuple, Union

from .._engine.values import Unknown
from .lscpu_labels import NO, YES

_HEADER = re.compile(r"\s*(?:#\s*)?CPU[ \t,]+[A-Za-z0-9:,% -]*(?:NODE|SOCKET|CORE|ONLINE|Node|Socket|Core)\b")
_NUMBER = re.compile(r"[0-9]{1,5}")
_MOST_ROWS = 10_000

Row = Dict[str, str]


@dataclass(frozen=True)
class Table:
    """What the rows say together.  A figure that is not the same for all of them is unknown."""

    cpus: FrozenSet[int]
    online: FrozenSet[int]
    tells_offline: bool
    nodes: Dict[int, FrozenSet[int]]
    sockets: Optional[int]
    cores_per_socket: Optional[int]
    threads_per_core: Optional[int]


def table_of(data: Any, rows: Iterable[str]) -> Union[Table, Unknown]:
    """The table of a JSON value, or of the lines of a text; Unknown when there is none."""
    listed = data.get("cpus") if isinstance(data, Mapping) else None
    found = list(_json_rows(listed)) if isinstance(listed, list) else _text_rows(rows)
    cells = [row for row in found if _NUMBER.fullmatch(row.get("cpu", ""))][:_MOST_ROWS]
    return _table(cells) if cells else Unknown("no table of CPUs")


def _json_rows(listed: List[Any]) -> Iterable[Row]:
    for item in listed:
        if isinstance(item, Mapping):
            yield {str(key).lower(): "-" if value is None else str(value).lower() for key, value in item.items()}


def _text_rows(rows: Iterable[str]) -> List[Row]:
    """Rows of the first table: of blanks below a heading, or of commas below a comment that names them."""
    names: List[str] = []
    comma = False
    found: List[Row] = []
    for line in rows:
        if _HEADER.match(line):
            if found:
                break
            comma = "," in line
            names = [word.strip().lower() for word in _split(line.lstrip(" #"), comma)]
        elif names:
            words = [word.strip() for word in _split(line, comma)]
            if _NUMBER.fullmatch(words[0] if words else ""):
                found.append(dict(zip(names, words)))
            elif found and line.strip():
                break
    return found


def _split(line: str, comma: bool) -> List[str]:
    return line.strip().split(",") if comma else line.split()


def _table(rows: List[Row]) -> Table:
    online = [row for row in rows if _is_online(row)]
    nodes: Dict[int, Set[int]] = {}
    for row in online:
        if _NUMBER.fullmatch(row.get("node", "")):
            nodes.setdefault(int(row["node"]), set()).add(int(row["cpu"]))
    sockets = _distinct(online, ("socket",))
    cores = _distinct(online, ("socket", "core"))
    return Table(
        cpus=frozenset(int(row["cpu"]) for row in rows),
        online=frozenset(int(row["cpu"]) for row in online),
        tells_offline="online" in rows[0],
        nodes={node: frozenset(cpus) for node, cpus in nodes.items()},
        sockets=len(sockets) or None,
        cores_per_socket=_even(len(cores), len(sockets)),
        threads_per_core=_even(len(online), len(cores)),
    )


def _is_online(row: Row) -> bool:
    word = row.get("online", "").lower()
    if word in YES or word in NO:
        return word in YES
    # An offline CPU has no place: its columns hold a dash.
    return row.get("core", "") not in ("-", "")


def _distinct(rows: List[Row], names: Tuple[str, ...]) -> Set[Tuple[str, ...]]:
    if not all(_NUMBER.fullmatch(row.get(name, "")) for row in rows for name in names):
        return set()
    return {tuple(row[name] for name in names) for row in rows}


def _even(many: int, parts: int) -> Optional[int]:
    return many // parts if parts and many and many % parts == 0 else None
