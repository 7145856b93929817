# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What all tables share: rows that name their source, columns that say what a row may hold, rows of operators.

A row is a NamedTuple with at least ``source`` and ``unverified``: the fields for which no public source was
found (a part of a field is named with a dot, ``nvlink.links``).  What is unverified may be said; nothing may
fail on it.  :func:`is_verified` is the question a judge asks before it goes above ``info``.
"""

from __future__ import annotations

import re
from typing import Any, Dict, List, Mapping, NamedTuple, Sequence, Tuple

from .._engine.values import BadWant

_VERSION = re.compile(r"\d{1,6}(?:\.\d{1,6}){0,4}", re.ASCII)
_NUMBERS = re.compile(r"\d{1,9}", re.ASCII)
_PCI_ID = re.compile(r"[0-9a-f]{4}:[0-9a-f]{4}")
_DATE = re.compile(r"\d{4}-(?:0[1-9]|1[0-2])(?:-(?:0[1-9]|[12]\d|3[01]))?", re.ASCII)
_SAMPLE = re.compile(r"\bF(\d{6,})\b", re.ASCII)


class Column(NamedTuple):
    """What a field may hold: for the rows of operators, and for the page in docs/.

    ``kind`` is text, int, number, flag, version, date, pci_id, pattern, or row (of ``inner``); with a final ``s`` a list of
    them.
    """

    kind: str
    about: str
    required: bool = False
    low: float = 0
    high: float = 0
    choices: Tuple[Any, ...] = ()
    inner: Any = None


class Table(NamedTuple):
    """A table as a whole.  ``key`` are the fields by which two rows are about one thing."""

    name: str
    title: str
    row: Any
    columns: Mapping[str, Column]
    key: Tuple[str, ...]
    rows: Tuple[Any, ...]
    sources: Mapping[str, str]


SOURCE = Column("text", "where the figures come from")
NOTE = Column("text", "what else is known")
UNVERIFIED = Column("texts", "fields without a public source: shown, never a reason to fail")


def is_verified(row: Any, field: str) -> bool:
    """Whether a field of a row (``memory_mib``, ``nvlink.links``) has a public source."""
    return field not in row.unverified and field.split(".")[0] not in row.unverified


def expand(source: str, sources: Mapping[str, str]) -> str:
    """A row's source with its short keys written out."""
    text = re.sub(r"\w+", lambda word: sources.get(word.group(), word.group()), source, flags=re.ASCII)
    return _SAMPLE.sub(r"public sample \1", text)


def version_of(text: Any) -> Tuple[int, ...]:
    """``535.54.03-1+cuda12`` as (535, 54, 3); empty when it does not begin with a number."""
    found = _VERSION.match(text.strip()) if isinstance(text, str) else None
    return tuple(int(part) for part in _NUMBERS.findall(found.group())) if found else ()


def same(one: Tuple[int, ...], other: Tuple[int, ...]) -> bool:
    """Whether two versions are one: 12.2 is 12.2.0."""
    return _trimmed(one) == _trimmed(other)


def _trimmed(version: Tuple[int, ...]) -> Tuple[int, ...]:
    while version and not version[-1]:
        version = version[:-1]
    return version


def minor_of(text: Any) -> str:
    """``12.2.140`` as ``12.2``; empty when there is no minor number."""
    version = version_of(text)
    return "%d.%d" % version[:2] if len(version) > 1 else ""


# Rows of operators


def merged(table: Table, given: Any, place: str) -> Tuple[Any, ...]:
    """The rows of a table with those that an operator adds or changes.

    A row with the key of a built-in one changes the fields that it names; what an operator gives counts as verified.

    :param given: a list of mappings, in the schema of the table.
    :param place: the variable that holds them, for messages.
    :raises BadWant: for a misspelt key, a wrong type or unit, a missing or doubled key.
    """
    if not isinstance(given, (list, tuple)):
        raise BadWant(place, given, "a list of rows")
    rows = {key_of(table, row): row for row in table.rows}
    seen: Dict[Any, str] = {}
    for number, entry in enumerate(given):
        here = "%s[%d]" % (place, number)
        row = _row(table, entry, here, rows)
        key = key_of(table, row)
        if key in seen:
            raise BadWant(here, entry, "one row for each %s: %s is the same one" % (" and ".join(table.key), seen[key]))
        seen[key] = here
        rows[key] = row
    return tuple(rows.values())


def key_of(table: Table, row: Any) -> Tuple[str, ...]:
    return tuple(str(getattr(row, name)).lower() for name in table.key)


def _row(table: Table, entry: Any, place: str, rows: Mapping[Any, Any]) -> Any:
    values = _values(table.columns, entry, place)
    for name in table.key:
        # A part of the key that has a default can be left out.
        if name not in values and table.columns[name].required:
            raise BadWant("%s.%s" % (place, name), None, _allowed(table.columns[name]))
    defaults = _defaults(table.row, table.columns)
    key = tuple(str(values.get(name, defaults.get(name))).lower() for name in table.key)
    values.setdefault("source", "set by the operator in %s" % place.split("[")[0])
    built_in = rows.get(key)
    if built_in is not None:
        left = tuple(name for name in built_in.unverified if name.split(".")[0] not in values)
        values.setdefault("unverified", left)
        return built_in._replace(**values)
    return _complete(table.row, table.columns, values, place)


def _values(columns: Mapping[str, Column], entry: Any, place: str) -> Dict[str, Any]:
    if not isinstance(entry, Mapping):
        raise BadWant(place, entry, "a mapping with the keys %s" % ", ".join(columns))
    values: Dict[str, Any] = {}
    for name, value in entry.items():
        if name not in columns:
            raise BadWant(place, name, "the keys %s%s" % (", ".join(columns), _meant(name, columns)))
        if value is not None:
            values[name] = _value(columns[name], value, "%s.%s" % (place, name))
    return values


def _meant(name: Any, columns: Mapping[str, Column]) -> str:
    import difflib

    near = difflib.get_close_matches(str(name), list(columns), 1, 0.5)
    return " (%s?)" % near[0] if near else ""


def _complete(row: Any, columns: Mapping[str, Column], values: Dict[str, Any], place: str) -> Any:
    for name, column in columns.items():
        if column.required and name not in values:
            raise BadWant("%s.%s" % (place, name), None, _allowed(column))
    return row(**dict(_defaults(row, columns), **values))


def _defaults(row: Any, columns: Mapping[str, Column]) -> Dict[str, Any]:
    found: Dict[str, Any] = {}
    for name, column in columns.items():
        if not column.required:
            found[name] = row._field_defaults.get(name, () if column.kind.endswith("s") else None)
    return found


def _value(column: Column, value: Any, place: str) -> Any:
    kind = column.kind
    if kind.endswith("s"):
        if not isinstance(value, (list, tuple)):
            raise BadWant(place, value, "a list: %s each" % _allowed(column))
        one = column._replace(kind=kind[:-1])
        return tuple(_value(one, item, "%s[%d]" % (place, number)) for number, item in enumerate(value))
    if kind == "row":
        row, columns = column.inner
        return _complete(row, columns, _values(columns, value, place), place)
    if kind == "pci_id" and isinstance(value, str):
        value = value.lower()
    if not _fits(column, value):
        raise BadWant(place, value, _allowed(column))
    return value


def _fits(column: Column, value: Any) -> bool:
    kind = column.kind
    if kind == "flag":
        return isinstance(value, bool)
    if column.choices:
        return type(value) is type(column.choices[0]) and value in column.choices
    if kind in ("int", "number"):
        right = isinstance(value, int) or (kind == "number" and isinstance(value, float))
        return right and not isinstance(value, bool) and column.low <= value <= column.high
    if not isinstance(value, str):
        return False
    if kind == "pattern":
        return _is_pattern(value)
    shape = {"version": _VERSION, "date": _DATE, "pci_id": _PCI_ID}.get(kind)
    return shape.fullmatch(value) is not None if shape else bool(value.strip())


def _is_pattern(text: str) -> bool:
    try:
        re.compile(text)
    except (re.error, RecursionError, OverflowError):
        return False
    return bool(text)


_SHAPES = {
    "pattern": "a regular expression",
    "text": "a text",
    "flag": "true or false",
    "version": 'a version in quotes, such as "12.4"',
    "date": 'a date in quotes, "2028-06" or "2028-06-30"',
    "pci_id": 'a PCI id in quotes, such as "10de:2330"',
    "row": "a mapping",
}


def _allowed(column: Column) -> str:
    kind = column.kind[:-1] if column.kind.endswith("s") else column.kind
    if column.choices:
        shape = "one of %s" % ", ".join(str(choice) for choice in column.choices)
    elif kind in ("int", "number"):
        shape = "a %snumber from %g to %g" % ("whole " if kind == "int" else "", column.low, column.high)
    else:
        shape = _SHAPES[kind]
    return "%s (%s)" % (shape, column.about)


def rows_of_page(table: Table) -> List[Sequence[Any]]:
    """The rows of a table field by field, in the order of its columns."""
    return [[getattr(row, name) for name in table.columns] for row in table.rows]
