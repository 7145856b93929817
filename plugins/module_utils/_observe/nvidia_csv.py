# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``nvidia-smi --query-gpu=… --format=csv`` with or without header and units, and ``nvidia-smi --version``."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from .nvidia_fields import CSV, PLACES
from .nvidia_gpu import MOST_GPUS, Section, gpu_of, numbered
from .nvidia_values import ABSENT, Gpu, Log, Word
from .nvidia_words import clean, complaints_of, is_complaint, lost_gpus, number, version, word

# Columns of one word; all others have a dot or an underscore in their name.
_PLAIN = {"timestamp", "count", "name", "serial", "uuid", "index", "pstate", "hostname"}
_COLUMN = re.compile(r"([a-z][A-Za-z0-9_]{0,60}(?:\.[A-Za-z0-9_]{1,60}){0,5})(?:\s*\[([^\[\]]{1,12})\])?", re.ASCII)
_FIELDS = {column for places in PLACES[CSV].values() for column in places} | _PLAIN
# Tables whose rows are processes or pages, not GPUs.
_NO_GPU_ROWS = {"pid", "retired_pages.address"}
# Cells that can be told without a header.
_SHAPES = (
    ("uuid", re.compile(r"GPU-[0-9a-fA-F-]{8,40}")),
    ("pci.bus_id", re.compile(r"[0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]")),
    ("pstate", re.compile(r"P\d{1,2}")),
    ("name", re.compile(r"(NVIDIA|Tesla|Quadro|GeForce|GRID|TITAN|Graphics Device)\b.*")),
)
# What names the GPU of a row.
_KEYS = ("index", "pci.bus_id", "gpu_bus_id", "uuid", "gpu_uuid")
_ASKED = re.compile(r"--query-gpu[= ]\s{0,4}[\"']?([\w.,]{1,8000})", re.ASCII)
_PROMPT = re.compile(
    r"(?:`{3}|~{3}).{0,40}|(?:\(\w{1,40}\) ?)?\[?[\w.-]{1,40}@[\w.-]{1,80}[^,;]{0,120}[$#%>\]](?: .{0,400})?|[$#%>](?: .{0,400})?"
)
_VERSIONS = {
    "nvidia-smi version": "smi",
    "nvml version": "nvml",
    "kmd version": "driver",
    "driver version": "driver",
    "cuda umd version": "cuda",
    "cuda version": "cuda",
}


@dataclass(frozen=True)
class Query:
    """A table of --query-gpu.  ``rows`` are the cells as they are written, by the name of the column without unit."""

    columns: Tuple[str, ...]
    units: Tuple[str, ...]
    rows: Tuple[Mapping[str, str], ...]
    log: Log


@dataclass(frozen=True)
class Versions:
    """``nvidia-smi --version``: of the program, of NVML (two numbers), of the driver, and the CUDA it offers."""

    smi: Word = ABSENT
    nvml: Word = ABSENT
    driver: Word = ABSENT
    cuda: Word = ABSENT


def parse_query_gpu(text: str, columns: str = "") -> Query:
    """The answer to --query-gpu.  ``columns`` are those that were asked for, where the output has no header; a command
    line that was pasted along tells them as well."""
    text = clean(text)
    complaints = complaints_of(text)
    lines = [line for line in text.split("\n") if line.strip() and not is_complaint(line) and not _is_shell(line)]
    tables, left_out = _tables(lines, columns or _asked(text))
    columns_of = [*zip(tables[0].names, tables[0].units)]
    for table in tables[1:]:
        columns_of += [pair for pair in zip(table.names, table.units) if pair[0] not in dict(columns_of)]
    return Query(
        tuple(name for name, _unit in columns_of),
        tuple(unit for _name, unit in columns_of),
        tuple(row for table in tables for row in table.rows),
        _log(tables, (*complaints, *left_out)),
    )


def parse_nvidia_smi_version(text: str) -> Versions:
    """``nvidia-smi --version``; R610 writes a sentence where the version of the driver was."""
    found: Dict[str, Word] = {}
    for line in clean(text).split("\n"):
        label, _colon, cell = line.partition(":")
        name = _VERSIONS.get(" ".join(label.lower().split()))
        said = version(cell) if name else ABSENT
        if name and (isinstance(said, str) or name not in found):
            found[name] = said
    return Versions(**found)


@dataclass
class _Table:
    """Rows below one header; a text has several where several commands were pasted."""

    names: Tuple[str, ...]
    units: Tuple[str, ...]
    rows: List[Mapping[str, str]] = field(default_factory=list)


def _tables(lines: Sequence[str], asked: str) -> Tuple[List[_Table], List[str]]:
    """The tables, and what is to say of lines that are none of their rows."""
    separator = _separator(lines)
    found: List[_Table] = []
    if not any(_is_header(line, separator) for line in lines):
        known = _columns(_split(asked, ","))[0] if asked else ()
        fits = bool(known) and all(len(_split(line, separator)) <= len(known) for line in lines)
        names = known if fits else _guessed(lines, separator)
        found.append(_Table(names, ("",) * len(names)))
    left_out: List[str] = []
    for place, line in enumerate(lines):
        cells = _split(line, separator)
        if _is_header(line, separator):
            names, units = _columns(cells)
            if not found or found[-1].names != names:
                found.append(_Table(names, units))
        elif found:
            left_out += _put(found[-1], cells, place == len(lines) - 1)
    return found or [_Table((), ())], left_out


def _put(table: _Table, cells: Sequence[str], is_last: bool) -> List[str]:
    """A row with fewer cells than columns is one that was cut off where the text ends, and no row before that."""
    said = (len(cells), len(table.names))
    if len(cells) > len(table.names) or (len(cells) < len(table.names) and not is_last):
        return ["a row of %d cells for %d columns was left out" % said]
    table.rows.append({name: cell for name, cell in zip(table.names, cells) if name})
    return ["a row is cut off after %d of %d cells" % said] if len(cells) < len(table.names) else []


def _log(tables: Sequence[_Table], complaints: Tuple[str, ...]) -> Log:
    sections = _sections(tables)
    gpus = tuple(gpu for gpu in (gpu_of(Section(row), CSV) for row in sections[:MOST_GPUS]) if gpu != Gpu())
    first = sections[0] if sections else {}
    counts = number(first["count"]) if "count" in first else ABSENT
    log = Log(
        "csv",
        driver_version=version(first.get("kmd_version", first.get("driver_version", ""))),
        attached_gpus=counts,
        complaints=complaints,
        lost=lost_gpus(complaints),
        timestamp=word(first.get("timestamp", "")),
    )
    # The index is a column of its own, or it is not known.
    return replace(numbered(replace(log, gpus=gpus), True, False), gpus=gpus)


def _sections(tables: Sequence[_Table]) -> List[Dict[str, str]]:
    """The rows of each GPU as one: it comes again with -l, where the last row counts, and in a further table."""
    found: List[Dict[str, str]] = []
    named: Dict[Tuple[str, str], Dict[str, str]] = {}
    for table in tables:
        rows = [{name.lower(): cell for name, cell in row.items()} for row in table.rows]
        rows = [row for row in rows if not _NO_GPU_ROWS & set(row)]
        has_names = any(key in row for row in rows for key in _KEYS)
        before = len(found)
        if before and rows and not has_names and len(rows) != before:
            continue  # of which GPUs they are is not told
        for place, row in enumerate(rows):
            known = _known(named, row) if has_names else found[place] if before else None
            if known is None:
                found.append(row)
            else:
                known.update(row)
            named.update({(key, row[key]): row if known is None else known for key in _KEYS if row.get(key)})
    return found


def _known(named: Mapping[Tuple[str, str], Dict[str, str]], row: Mapping[str, str]) -> Optional[Dict[str, str]]:
    """The GPU that a row is about: nothing that names it may contradict."""
    told = [(key, row[key]) for key in _KEYS if row.get(key)]
    same = (named[name] for name in told if name in named)
    return next((one for one in same if all((one.get(key) or cell) == cell for key, cell in told)), None)


def _asked(text: str) -> str:
    """The columns that a command line in the text asks for, when there is one such line."""
    found = set(_ASKED.findall(text))
    return found.pop() if len(found) == 1 else ""


def _is_shell(line: str) -> bool:
    """What stands around a pasted output: the command, the prompt after it, the fence of a report."""
    return _ASKED.search(line) is not None or "--format=" in line or _PROMPT.fullmatch(line.strip()) is not None


def _separator(lines: Sequence[str]) -> str:
    """A comma; a semicolon or a tab where a spreadsheet saved it."""
    first = lines[0] if lines else ""
    return max((",", ";", "\t"), key=lambda sign: (first.count(sign), sign == ","))


def _split(line: str, separator: str) -> List[str]:
    return [cell.strip().strip('"').strip() for cell in line.split(separator)]


def _is_header(line: str, separator: str) -> bool:
    """Names of columns only, of which one is known, compound, or has its unit behind it."""
    found = [_COLUMN.fullmatch(cell) for cell in _split(line, separator)]
    names = [one.group(1) for one in found if one]
    if len(names) < len(found):
        return False
    has_unit = any(one.group(2) for one in found if one)
    return has_unit or any("_" in name or "." in name or name in _FIELDS for name in names)


def _columns(cells: Sequence[str]) -> Tuple[Tuple[str, ...], Tuple[str, ...]]:
    found: List[Optional[re.Match[str]]] = [_COLUMN.fullmatch(cell) for cell in cells]
    names = tuple(one.group(1) if one else cell for one, cell in zip(found, cells))
    return names, tuple((one.group(2) or "") if one else "" for one in found)


def _guessed(lines: Sequence[str], separator: str) -> Tuple[str, ...]:
    """Names for the columns whose cells can be nothing else; empty for the others."""
    rows = [_split(line, separator) for line in lines]
    names = [""] * max((len(row) for row in rows), default=0)
    for place in range(len(names)):
        cells = [row[place] for row in rows if place < len(row)]
        shape = next((name for name, shape in _SHAPES if all(shape.fullmatch(cell) for cell in cells)), "")
        if place == 0 and cells == [str(count) for count in range(len(cells))]:
            shape = "index"
        names[place] = shape if shape not in names else ""
    return tuple(names)
