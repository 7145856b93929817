# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the kernel's PCI code writes into its log: memory windows that found no place, and errors of links (AER)."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Dict, Sequence, Tuple

from .kernel_lines import Entry

_ADDRESS = r"([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])"
# "BAR 1: no space for [mem size 0x...]" up to kernel 6.8, "BAR 1 [mem size 0x...]: can't assign; no space" since.
_BAR = re.compile(
    _ADDRESS + r": (VF )?BAR (\d{1,2})(?:: (no space for|failed to assign|assigned)(?: \[(\w{1,4})|)|"
    r" \[(\w{1,4})[^\]]{0,80}\]: (can't assign|failed to assign|assigned))"
)
# "BAR1 is 0M @ 0x0 (PCI:0000:01:00.0)" is the driver's view of the same.
_NVRM_BAR = re.compile(r"BAR(\d) is 0M @ 0x0 \(PCI:" + _ADDRESS + r"\)")
_NO_MMIO = re.compile(_ADDRESS + r": (?:SR-IOV: )?not enough MMIO resources")
_AER = re.compile(
    _ADDRESS + r": (?:AER: )?PCIe Bus Error: severity=(Corrected|Correctable|Uncorrected|Uncorrectable)"
    r"(?: \((Fatal|Non-Fatal)\))?, type=([A-Za-z ]{1,40})"
)
# Told by the port for another function, when the details were held back as too many.
_AER_FROM = re.compile(
    r"AER: (?:Multiple )?(Corrected|Correctable|Uncorrected|Uncorrectable)(?: \((Fatal|Non-Fatal)\))? error"
    r"(?: message)? received(?::| from)? " + _ADDRESS
)


@dataclass(frozen=True)
class BarFailure:
    """A memory window (``kind`` mem) or I/O window (io) that the firmware left no room for; ``is_virtual``: of the
    virtual functions of a device only."""

    address: str
    index: int
    kind: str
    is_virtual: bool
    text: str


@dataclass(frozen=True)
class AerErrors:
    """Errors of one kind that a function reported.  ``severity`` is corrected, non-fatal or fatal; ``layer`` the
    kernel's word (Physical Layer), empty where only their arrival was logged."""

    address: str
    severity: str
    layer: str
    count: int
    first: str
    last: str


@dataclass(frozen=True)
class PciTrouble:
    bars: Tuple[BarFailure, ...]
    without_sriov_room: Tuple[str, ...]
    aer: Tuple[AerErrors, ...]


def is_of_pci(message: str) -> bool:
    return "BAR" in message or "PCIe Bus Error" in message or "AER:" in message or "not enough MMIO" in message


def read_pci(ours: Sequence[Entry]) -> PciTrouble:
    """What is left in the end: a window that found its place at a second try is no failure."""
    bars: Dict[Tuple[str, int, bool], BarFailure] = {}
    without_room: Dict[str, None] = {}
    errors: Dict[Tuple[str, str, str], AerErrors] = {}
    arrivals: Dict[Tuple[str, str, str], AerErrors] = {}
    for entry in ours:
        said = " ".join(entry.message.split())
        _add_bar(bars, said)
        without_room.update((found, None) for found in _NO_MMIO.findall(said))
        for address, severity, fatal, layer in _AER.findall(said):
            _count(errors, (address, _severity(severity, fatal), layer.strip()), entry.time)
        for severity, fatal, address in _AER_FROM.findall(said):
            _count(arrivals, (address, _severity(severity, fatal), ""), entry.time)
    told = {(error.address, error.severity) for error in errors.values()}
    extra = [error for error in arrivals.values() if (error.address, error.severity) not in told]
    return PciTrouble(tuple(bars.values()), tuple(without_room), (*errors.values(), *extra))


def _add_bar(bars: Dict[Tuple[str, int, bool], BarFailure], said: str) -> None:
    for found in _BAR.finditer(said):
        address, virtual, index, old_word, old_kind, new_kind, new_word = found.groups()
        # Before kernel 6.9 windows of virtual functions were BAR 7 to 12.
        key = (address, int(index), bool(virtual) or 7 <= int(index) <= 12)
        if (old_word or new_word) == "assigned":
            bars.pop(key, None)
        else:
            bars[key] = BarFailure(*key[:2], old_kind or new_kind or "", key[2], said[:300])
    for number, address in _NVRM_BAR.findall(said):
        bars.setdefault((address, int(number), False), BarFailure(address, int(number), "mem", False, said[:300]))


def _severity(word: str, fatal: str) -> str:
    if word.startswith("Correct"):
        return "corrected"
    return "fatal" if fatal == "Fatal" else "non-fatal"


def _count(errors: Dict[Tuple[str, str, str], AerErrors], key: Tuple[str, str, str], time: str) -> None:
    known = errors.get(key, AerErrors(*key, 0, time, time))
    errors[key] = replace(known, count=known.count + 1, last=time)
