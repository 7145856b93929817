# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What nvidia-smi prints for people: its table, its list (-L) and its columns over time (dmon).

The banner of the table names versions of the driver and of CUDA.  They are kept apart as ``banner_…`` and no
verdict goes by them: R610 gave them other names, and in a container the CUDA version is that of another library.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Dict, List, Mapping, Optional, Tuple, Union

from .nvidia_gpu import numbered
from .nvidia_values import ABSENT, EccCounts, Gpu, Log, MigDevice, Number, Word
from .nvidia_words import (
    address,
    clean,
    complaints_of,
    lost_gpus,
    mebibytes,
    mode,
    no_value,
    number,
    real,
    silence,
    version,
    word,
)

_BANNER = (
    ("smi_version", re.compile(r"NVIDIA-SMI\s+(\S{1,30})")),
    ("banner_driver_version", re.compile(r"\b(?:Driver|KMD) Version:\s*(\S{1,30})")),
    ("banner_cuda_version", re.compile(r"\bCUDA (?:UMD )?Version:\s*(\S{1,30})")),
)
_TITLE = re.compile(r"\s*(\d{1,3})\s+(\S.*?)\s+(\S+)\s*")
# Up to R304 the number had a dot behind it (some pages print it as "0\\."), and there was no persistence mode.
_OLD_TITLE = re.compile(r"\s*(\d{1,3})\\?\.\s+(\S.*?)(\s*)")
# A GPU that is part of a chip (Jetson) has no address.
_BUS = re.compile(r"\s*(\S+:\S+|N/A)\s+(\S+)\s*")
_GAUGES = re.compile(r"\s*(\S+)\s+(\S+(?: C)?)\s+(\S+)\s+(\S+)\s*/\s*(\S+)\s*")
_MEMORY = re.compile(r"(?:\s*\d{1,3}%)?\s*(\S+)\s*/\s*(\S+)\s*")
_TWO = re.compile(r"\s*(\S+)\s+(\S+)\s*")
_LOAD = re.compile(r"\s*(\S+)\s+(\S.*?)\s*")
_MIG = re.compile(r"\s*(\d{1,3})\s+(\d{1,4})\s+(\d{1,4})\s+(\d{1,4})\s*")
_PROCESS = re.compile(r"\|\s+(\d{1,3})(?:\\?\.)?\s+(?:\S{1,8}\s+\S{1,8}\s+)?\d{1,10}\s+(?:[CGM+]{1,5}\s|\S)")
_NO_PROCESS = re.compile(r"\|\s+(\d{1,3})(?:\\?\.)?\s+(?:ERROR: )?(Not Supported)\s")
# The third column of a title: persistence, or on Windows the model of the driver.
_DRIVER_MODELS = ("WDDM", "TCC", "MCDM")
_LISTED = re.compile(r"\s*GPU\s+(\d{1,3}):\s*(\S.{0,120}?)\s*\(UUID:\s*([^()]{1,80})\)\s*")
_LISTED_MIG = re.compile(r"\s*MIG\s+(\S{1,40})\s+Device\s+(\d{1,3}):\s*\(UUID:\s*([^()]{1,120})\)\s*")


@dataclass(frozen=True)
class Table:
    """The default table.  Names of GPUs may be cut off there (``NVIDIA GeForce RTX 2080 ...``)."""

    log: Log
    smi_version: Word = ABSENT
    banner_driver_version: Word = ABSENT
    banner_cuda_version: Word = ABSENT


@dataclass(frozen=True)
class Monitor:
    """What dmon prints: columns, their units, and a row a GPU and second; a dash is not applicable."""

    columns: Tuple[str, ...]
    units: Tuple[str, ...]
    rows: Tuple[Mapping[str, Union[float, Word]], ...]


def parse_nvidia_smi_table(text: str) -> Table:
    """The table of ``nvidia-smi`` without any option, or some lines of it."""
    text = clean(text)
    complaints = complaints_of(text)
    found = {name: pattern.search(text) for name, pattern in _BANNER}
    gpus, migs, processes = _rows(text)
    made = tuple(
        Gpu(
            **values,
            mig_devices=tuple(migs.get(place, ())),
            processes=processes.get(place, ABSENT if "Processes" not in text and "processes" not in text else 0),
        )
        for place, values in gpus.items()
    )
    log = Log("table", gpus=made, complaints=complaints, lost=lost_gpus(complaints))
    banner = {name: version(match.group(1)) for name, match in found.items() if match}
    return Table(replace(numbered(log, True, False), gpus=made), **banner)


def parse_gpu_list(text: str) -> Log:
    """``nvidia-smi -L``: GPUs, and below each its MIG devices."""
    text = clean(text)
    gpus: List[Gpu] = []
    for line in text.split("\n"):
        found, part = _LISTED.fullmatch(line), _LISTED_MIG.fullmatch(line)
        if found:
            gpus.append(Gpu(index=int(found.group(1)), name=word(found.group(2)), uuid=word(found.group(3))))
        elif part and gpus:
            device = MigDevice(int(part.group(2)), profile=part.group(1), uuid=word(part.group(3)))
            gpus[-1] = replace(gpus[-1], mig_devices=(*gpus[-1].mig_devices, device))
    complaints = complaints_of(text)
    log = numbered(Log("list", complaints=complaints, lost=lost_gpus(complaints)), True, False)
    return replace(log, gpus=tuple(gpus))


def parse_dmon(text: str) -> Monitor:
    """``nvidia-smi dmon``; the two header lines come again from time to time."""
    heads: List[List[str]] = []
    rows: List[Mapping[str, Union[float, Word]]] = []
    for line in clean(text).split("\n"):
        if line.lstrip().startswith("#"):
            heads.append(line.lstrip().lstrip("#").split())
        elif heads and len(line.split()) == len(heads[0]):
            rows.append({name: _gauge(cell) for name, cell in zip(heads[0], line.split())})
    columns = tuple(heads[0]) if heads else ()
    units = tuple(heads[1]) if len(heads) > 1 and len(heads[1]) == len(columns) else ("",) * len(columns)
    return Monitor(columns, units, tuple(rows))


def _gauge(cell: str) -> Union[float, Word]:
    """A number, or the word that stands there (a date, a time)."""
    said = real(cell)
    return said if isinstance(said, float) or silence(cell) is not None else cell


def _rows(text: str) -> Tuple[Dict[int, Dict[str, Any]], Dict[int, List[MigDevice]], Dict[int, Number]]:
    gpus: Dict[int, Dict[str, Any]] = {}
    migs: Dict[int, List[MigDevice]] = {}
    processes: Dict[int, Number] = {}
    last: Optional[int] = None
    for line in text.split("\n"):
        cells = line.strip().strip("|").split("|") if line.strip().startswith("|") else []
        title = (_OLD_TITLE.fullmatch(cells[0]) or _TITLE.fullmatch(cells[0])) if len(cells) == 3 else None
        part = _MIG.fullmatch(cells[0]) if len(cells) == 4 else None
        if title and _BUS.fullmatch(cells[1]):
            last = int(title.group(1))
            gpus[last] = _title(title, cells)
        elif len(cells) == 3 and last is not None:
            gpus[last].update(_below(cells))
        elif part:
            memory = _MEMORY.fullmatch(cells[1])
            total = mebibytes(memory.group(2)) if memory else ABSENT
            numbers = [int(digits) for digits in part.groups()]
            migs.setdefault(numbers[0], []).append(MigDevice(numbers[3], numbers[1], numbers[2], total))
        elif len(cells) == 1:
            _count(line.strip(), processes)
    return gpus, migs, processes


def _title(title: re.Match[str], cells: List[str]) -> Dict[str, Any]:
    bus = _BUS.fullmatch(cells[1])
    said = title.group(3)
    values: Dict[str, Any] = {
        "index": int(title.group(1)),
        "name": word(title.group(2)),
        "driver_model" if said in _DRIVER_MODELS else "persistence_mode": mode(said) if said.strip() else ABSENT,
        "address": address(bus.group(1)) if bus else ABSENT,
        "display_active": mode(bus.group(2)) if bus else ABSENT,
    }
    return {**values, **_ecc(cells[2].strip())}


def _ecc(cell: str) -> Dict[str, Any]:
    """A count where ECC is on; Off, N/A, or On where each MIG device counts for itself.  Old tables count twice."""
    two = _TWO.fullmatch(cell)
    single, cell = two.groups() if two else ("", cell)
    count = number(cell)
    if isinstance(count, int):
        correctable = number(single) if single else ABSENT
        return {"ecc_mode": "Enabled", "ecc_volatile": EccCounts(correctable=correctable, uncorrectable=count)}
    said = mode(cell)
    return {"ecc_mode": said, "ecc_volatile": EccCounts(uncorrectable=ABSENT if isinstance(said, str) else said)}


def _below(cells: List[str]) -> Dict[str, Any]:
    """The second line of a GPU, and the third, which has its MIG mode only."""
    gauges, memory, load = _GAUGES.fullmatch(cells[0]), _MEMORY.fullmatch(cells[1]), _LOAD.fullmatch(cells[2])
    values: Dict[str, Any] = {}
    if gauges:
        fan, temperature, state, draw, limit = gauges.groups()
        values.update(
            fan_percent=number(fan),
            temperature_c=number(temperature),
            pstate=word(state),
            power_draw_w=real(draw),
            power_limit_w=real(limit),
        )
    if memory:
        values.update(memory_used_mib=mebibytes(memory.group(1)), memory_total_mib=mebibytes(memory.group(2)))
    elif gauges:
        values.update(memory_used_mib=no_value(cells[1]), memory_total_mib=no_value(cells[1]))
    if (gauges or memory) and load:
        values.update(utilization_gpu_percent=number(load.group(1)), compute_mode=word(load.group(2)))
    if not cells[0].strip() and not cells[1].strip() and cells[2].strip():
        values["mig_mode"] = mode(cells[2].strip().rstrip("*"))
    return values


def _count(line: str, processes: Dict[int, Number]) -> None:
    found, silent = _PROCESS.match(line), _NO_PROCESS.match(line)
    if silent:
        processes[int(silent.group(1))] = number(silent.group(2))
    elif found:
        place = int(found.group(1))
        so_far = processes.get(place, 0)
        processes[place] = so_far + 1 if isinstance(so_far, int) else 1
