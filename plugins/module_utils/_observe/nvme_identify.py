# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What an NVMe controller says of itself: ``nvme id-ctrl``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Dict, Mapping, Union

from .._engine.values import Text, Unknown, lines
from .cpu import Number
from .nvme_list import Figure, Word, figure, json_object, plain

_ROW = re.compile(r"([a-z][a-z0-9_]{1,15})\s*:\s*(.*)")


@dataclass(frozen=True)
class Identity:
    """``version`` is that of the NVMe base specification; a temperature limit or a capacity of 0 is not told."""

    vendor_id: Word
    model: Word
    serial: Word
    firmware: Word
    controller_id: Number
    version: Word
    namespaces: Number
    capacity_bytes: Number
    unallocated_bytes: Number
    warning_temp_k: Figure
    critical_temp_k: Figure


def parse_id_ctrl(text: Text) -> Union[Identity, Unknown]:
    """Plain, with -H, or -o json; of several controllers the first."""
    if not isinstance(text, str):
        return text if isinstance(text, Unknown) else Unknown("nvme was not run")
    text = plain(text)
    found = json_object(text)
    said = _rows(text) if found is None else found
    if isinstance(said, Unknown):
        return said
    if "mn" not in said or "sn" not in said:
        return Unknown("no identity of a controller: %r" % text.strip()[:80])
    vendor, version = _count(said, "vid"), _count(said, "ver")
    return Identity(
        vendor if isinstance(vendor, Unknown) else "%04x" % vendor,
        _word(said, "mn"),
        _word(said, "sn"),
        _word(said, "fr"),
        _count(said, "cntlid"),
        # A byte each: major, minor and tertiary number (base specification, VS property).
        version if isinstance(version, Unknown) else "%d.%d" % (version >> 16, version >> 8 & 255),
        _count(said, "nn"),
        _told(_count(said, "tnvmcap")),
        _count(said, "unvmcap"),
        _told(_kelvin(said, "wctemp")),
        _told(_kelvin(said, "cctemp")),
    )


def _rows(text: str) -> Dict[str, Any]:
    found: Dict[str, Any] = {}
    for line in lines(text):
        row = _ROW.match(line.strip(" \t>#"))
        if row:
            found.setdefault(row.group(1), row.group(2).strip())
    return found


def _word(said: Mapping[str, Any], key: str) -> Word:
    value = said.get(key)
    return value.strip() if isinstance(value, str) and value.strip() else Unknown("nvme does not tell")


def _count(said: Mapping[str, Any], key: str) -> Number:
    number = figure(said.get(key))
    return number if isinstance(number, Unknown) else int(number)


def _kelvin(said: Mapping[str, Any], key: str) -> Figure:
    """``343``, or in later versions ``70 °C (343 K)``."""
    value = said.get(key)
    found = re.search(r"\((\d{1,4}) ?K", value, re.ASCII) if isinstance(value, str) else None
    return float(found.group(1)) if found else figure(value)


def _told(value: Any) -> Any:
    return Unknown("the controller does not tell") if value == 0 else value
