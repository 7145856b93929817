# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``nvidia-smi --query-gpu=… --format=csv`` with or without header and units, and ``nvidia-smi --version``."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
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
    """The answer to --query-gpu.  ``columns`` are those that were asked for, where the output has no header."""
    text = clean(text)
    complaints = complaints_of(text)
    lines = [line for line in text.split("\n") if line.strip() and not is_complaint(line)]
    separator = _separator(lines)
    header = next((place for place, line in enumerate(lines) if _is_header(line, separator)), None)
    if header is not None:
        names, units = _columns(_split(lines[header], separator))
        lines = [line for line in lines[header + 1 :] if not _is_header(line, separator)]
    else:
        names, units = _columns(_split(columns, ",")) if columns else (_guessed(lines, separator), ())
    rows: List[Mapping[str, str]] = []
    for line in lines:
        cells = _split(line, separator)
        if len(cells) > len(names):
            complaints = (*complaints, "a row of %d cells for %d columns was left out" % (len(cells), len(names)))
            continue
        if len(cells) < len(names):
            complaints = (*complaints, "a row is cut off after %d of %d cells" % (len(cells), len(names)))
        rows.append({name: cell for name, cell in zip(names, cells) if name})
    return Query(names, units or ("",) * len(names), tuple(rows), _log(rows, complaints))


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


def _log(rows: Sequence[Mapping[str, str]], complaints: Tuple[str, ...]) -> Log:
    low = [{name.lower(): cell for name, cell in row.items()} for row in rows]
    sections: Dict[Tuple[str, str], Dict[str, str]] = {}
    for place, row in enumerate(low):
        # With -l each GPU comes again: the last row counts.
        which = (row.get("index", ""), row.get("pci.bus_id", "") or row.get("gpu_bus_id", ""))
        sections[which if any(which) else ("row", str(place))] = row
    found = (gpu_of(Section(row), CSV) for row in list(sections.values())[:MOST_GPUS] if not _NO_GPU_ROWS & set(row))
    gpus = tuple(gpu for gpu in found if gpu != Gpu())
    first = low[0] if low else {}
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
