# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``nvidia-smi -q`` as text: whole logs from R304 on, some of its displays (-d), and pieces pasted into a report."""

from __future__ import annotations

import re
from typing import Dict, List, Optional, Sequence, Set, Tuple

from .nvidia_fields import TEXT
from .nvidia_gpu import MOST_GPUS, Section, gpu_of, numbered
from .nvidia_values import ABSENT, Gpu, Log
from .nvidia_words import clean, complaints_of, is_complaint, lost_gpus, number, silence, version, word

_LOG = re.compile(r"^[ \t]*=+[ \t]*NVSMI LOG[ \t]*=+[ \t]*$", re.MULTILINE)
_GPU = re.compile(r"\s*GPU\s+([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])\b[\s:]*(.*)")
# Anything else, as a prompt or what another program says, is left out.
_LABEL = re.compile(r"(?!nvidia-smi)[A-Za-z][A-Za-z0-9 .()/_-]{0,80}")
_SELECTED = re.compile(r"nvidia-smi\b.{0,200}\s(-i|--id)\b")
_MACHINE = ("timestamp", "driver version", "cuda version", "kmd version", "cuda umd version", "attached gpus")
# The last block of a whole section, under its names over time.
_LAST = {"processes", "compute processes"}
_LICENSED = "vgpu software licensed product/"


class _Reader:
    """Lines as rows: a line belongs to the nearest one above it that is less indented.

    A report that lost its indentation (``is_flat``) has only the last line without a colon to go by.
    """

    def __init__(self, is_flat: bool) -> None:
        self.rows: Dict[str, str] = {}
        self.sections: List[Section] = []
        self.blocks: List[Set[str]] = []
        self.loose = Section(is_flat=is_flat)
        self._is_flat = is_flat
        self._above: List[Tuple[int, str]] = []

    def line(self, line: str) -> None:
        header = _GPU.fullmatch(line)
        if header:
            self._start(header.group(1), header.group(2).strip())
            return
        label, colon, cell = line.strip().partition(":")
        if not _LABEL.fullmatch(label):
            return
        key = " ".join(label.lower().split())
        names = self._names(len(line) - len(line.lstrip()), key, not colon)
        if not names and self.sections:
            self.blocks[-1].add(key)
        if key.endswith(" specification"):
            # R610 says which temperatures are limits set by the maker.
            key = key[: -len(" specification")]
        self._put([*names, key], cell.strip() if colon else None)

    def _start(self, address: str, rest: str) -> None:
        self.sections.append(Section({"gpu": address}, is_flat=self._is_flat))
        self.blocks.append(set())
        self._above = []
        if rest and silence(rest) is not None:
            self.sections[-1].rows["product name"] = rest

    def _names(self, indent: int, key: str, is_block: bool) -> List[str]:
        if self._is_flat:
            names = [name for _indent, name in self._above]
            self._above = [(0, key)] if is_block else self._above
            return [] if is_block else names
        while self._above and self._above[-1][0] >= indent:
            self._above.pop()
        names = [name for _indent, name in self._above]
        self._above.append((indent, key))
        return names

    def _put(self, path: Sequence[str], cell: Optional[str]) -> None:
        section = self.sections[-1] if self.sections else self.loose
        if path[0] == "mig device":
            if len(path) == 1:
                section.migs.append({})
            elif section.migs and cell is not None:
                section.migs[-1].setdefault("/".join(path[1:]), cell)
        elif cell is None:
            return
        elif not self.sections and path[-1] in _MACHINE:
            self.rows.setdefault(path[-1], cell)
        else:
            section.processes += path[-1] == "process id"
            section.rows.setdefault("/".join(path), cell)
            if self._is_flat:
                section.rows.setdefault(path[-1], cell)


def parse_nvidia_smi_text(text: str, is_selected: bool = False) -> Log:
    """The log of ``nvidia-smi -q``; of several in a row (-l) the one that tells most, the last of equals.

    ``is_selected``: it was asked for some of the GPUs only (-i), as a command line pasted along also tells.
    """
    text = clean(text)
    begin = _LOG.search(text)
    before = text[: begin.start()] if begin else ""
    is_selected = is_selected or _SELECTED.search(before) is not None
    complaints = complaints_of(text)
    logs = [_log(part, complaints, is_selected) for part in _LOG.split(text[len(before) :])]
    return max(reversed(logs), key=lambda log: (len(log.gpus), log.driver_version != ABSENT))


def _log(text: str, complaints: Tuple[str, ...], is_selected: bool) -> Log:
    lines = [line.expandtabs() for line in text.split("\n") if line.strip()]
    lines = [line for line in lines if line[0].isspace() or not is_complaint(line)]
    reader = _Reader(is_flat=_is_flat(lines))
    for line in lines:
        reader.line(line)
    rows = reader.rows
    gpus = tuple(gpu_of(section, TEXT) for section in reader.sections[:MOST_GPUS]) or _loose(reader.loose)
    return numbered(
        Log(
            "text",
            driver_version=version(rows.get("kmd version", rows.get("driver version", ""))),
            cuda_version=version(rows.get("cuda umd version", rows.get("cuda version", ""))),
            attached_gpus=number(rows["attached gpus"]) if "attached gpus" in rows else ABSENT,
            gpus=gpus,
            complaints=complaints,
            lost=lost_gpus(complaints),
            timestamp=word(rows.get("timestamp", "")),
        ),
        _has_end(reader.blocks),
        is_selected,
    )


def _is_flat(lines: Sequence[str]) -> bool:
    return any(":" not in line for line in lines) and not any(line[0].isspace() for line in lines)


def _loose(section: Section) -> Tuple[Gpu, ...]:
    """A piece without the line that names the GPU; nothing when it has no row of a GPU."""
    rows = section.rows
    if "license status" in rows and "gpu uuid" not in rows:
        # The two lines of a vGPU licence, pasted without their heading.
        for name in ("product name", "license status"):
            rows.setdefault(_LICENSED + name, rows.pop(name, ""))
    gpu = gpu_of(section, TEXT)
    return () if gpu == Gpu() else (gpu,)


def _has_end(blocks: Sequence[Set[str]]) -> bool:
    """Whether the last section is whole: up to its processes, or with -d all blocks that the first one has."""
    if not blocks:
        return True
    if "product name" in blocks[-1]:
        return bool(_LAST & blocks[-1])
    return blocks[0] <= blocks[-1] and bool(blocks[-1])
