# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the kernel log since boot says about GPUs, their links, the IOMMU and module signatures."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import List, Optional, Sequence, Tuple, Union

from .._engine.host import Host, Result
from .._engine.values import Text, Unknown
from .kernel_lines import Entry, entries, span
from .kernel_nvrm import Nvrm, is_ours, read_nvrm
from .kernel_pci import PciTrouble, is_of_pci, read_pci
from .nvidia_values import Flag, Word
from .nvidia_words import plain

DEADLINE_S = 15.0
# The newest lines of a boot.  A host that logged more has a flood; what its beginning said is seen elsewhere as well.
MOST_LINES = 50_000

# A log of dmesg that begins later lost its beginning.
_BOOT_S = 5.0

_JOURNAL = ["journalctl", "-k", "-b", "-o", "short-iso", "--no-pager", "-n", str(MOST_LINES)]
# What captures may hold instead.
_SPELLINGS = (
    ["journalctl", "-k", "-b", "-o", "short-iso", "--no-pager"],
    ["journalctl", "-k", "-b", "--no-pager"],
    ["journalctl", "-k", "--no-pager"],
    ["journalctl", "-k", "-b"],
    ["journalctl", "-k"],
    ["journalctl", "--dmesg", "--no-pager"],
    ["dmesg", "-T"],
    ["dmesg", "--ctime"],
    ["dmesg", "-x"],
)
_FILES = ("/var/log/dmesg", "/var/log/kern.log")

_REJECTED = re.compile(
    r"Loading of (?:unsigned module|module with unavailable key) is rejected|Key was rejected by service|"
    r"unsigned module loading is restricted|Required key not available",
    re.IGNORECASE,
)
_TAINT = re.compile(r"([\w-]{1,60}): module verification failed", re.ASCII)
_DOMAIN = re.compile(r"iommu: Default domain type: (\w{1,20})", re.ASCII)
_SECURE_BOOT = re.compile(
    r"(?:secureboot: |UEFI )?Secure boot (enabled|disabled|is enabled|is disabled)", re.IGNORECASE
)
_LOCKED = re.compile(r"Kernel is locked down from ([^;]{1,80})")


@dataclass(frozen=True)
class KernelLog:
    """``rejected`` are the kernel's words on modules that it did not load, ``unsigned`` modules that it loaded
    without a valid signature.  ``is_cut``: the beginning of the boot is missing."""

    nvrm: Nvrm
    pci: PciTrouble
    rejected: Tuple[str, ...]
    unsigned: Tuple[str, ...]
    iommu_domain: Word
    secure_boot: Flag
    locked_down_by: Word
    first: str
    last: str
    is_cut: bool


def observe(host: Host) -> Union[KernelLog, Unknown]:
    """From the journal, or from dmesg where there is none: one bounded run."""
    result = host.run(_JOURNAL, DEADLINE_S)
    if _is_empty(result) and "hung" not in result.unknown:
        result = _otherwise(host, result)
    if result.unknown:
        return Unknown(result.unknown)
    return parse_kernel_log(result.stdout if result.stdout.strip() else result.stderr)


def parse_kernel_log(text: Text) -> Union[KernelLog, Unknown]:
    """The output of ``journalctl -k`` or ``dmesg``, or a part of it."""
    if not isinstance(text, str):
        return text if isinstance(text, Unknown) else Unknown("not there")
    complaint = _complaint(text)
    if complaint is not None:
        return complaint
    if "\x1b" in text or "\r" in text:
        text = plain(text)
    ours: List[Entry] = []
    of_pci: List[Entry] = []
    others: List[Entry] = []
    for entry in entries(text, _is_wanted):
        if is_ours(entry.message):
            ours.append(entry)
        if is_of_pci(entry.message):
            of_pci.append(entry)
        if _is_of_boot(entry.message):
            others.append(entry)
    first, last = span(text)
    said = [entry.message for entry in others]
    return KernelLog(
        read_nvrm(ours),
        read_pci(of_pci),
        tuple(dict.fromkeys(message[:300] for message in said if _REJECTED.search(message))),
        tuple(dict.fromkeys(found for message in said for found in _TAINT.findall(message))),
        _domain(said),
        _secure_boot(said),
        _last(_LOCKED, said, "the log does not speak of a lockdown"),
        first,
        last,
        text.count("\n") >= MOST_LINES - 1
        or (re.fullmatch(r"\d{1,9}\.\d+", first) is not None and float(first) > _BOOT_S),
    )


def _is_wanted(line: str) -> bool:
    return is_ours(line) or is_of_pci(line) or _is_of_boot(line)


def _is_of_boot(line: str) -> bool:
    return (
        "rejected" in line
        or "verification failed" in line
        or "ecure boot" in line
        or "ecure Boot" in line
        or "Default domain" in line
        or "locked down" in line
        or "is restricted" in line
        or "ey not available" in line
    )


def _domain(said: Sequence[str]) -> Word:
    found = _last(_DOMAIN, said, "the log does not tell the IOMMU's default domain")
    return found if isinstance(found, Unknown) else found.lower()


def _secure_boot(said: Sequence[str]) -> Flag:
    found = _last(_SECURE_BOOT, said, "the log does not speak of Secure Boot")
    return found if isinstance(found, Unknown) else found.lower().endswith("enabled")


def _last(pattern: re.Pattern[str], said: Sequence[str], otherwise: str) -> Word:
    found = [match.group(1).strip() for match in map(pattern.search, said) if match]
    return found[-1] if found else Unknown("not there: %s" % otherwise)


def _complaint(text: str) -> Optional[Unknown]:
    head = text[:400].strip().lower()
    if not head or head.startswith(("-- no entries", "no journal files")):
        return Unknown("not there: the log is empty")
    if "operation not permitted" in head[:200] or "insufficient permissions" in head:
        return Unknown("not permitted: %s" % text.strip()[:200])
    return None


def _is_empty(result: Result) -> bool:
    return bool(result.unknown) or not result.stdout.strip() or result.stdout.startswith("-- No entries")


def _otherwise(host: Host, journal: Result) -> Result:
    spellings = [["dmesg"]] if host.is_live else [*_SPELLINGS, ["dmesg"]]
    for argv in spellings:
        result = host.run(argv, DEADLINE_S)
        if not _is_empty(result):
            return result
    for path in () if host.is_live else _FILES:
        text = host.read(path)
        if isinstance(text, str):
            return Result(0, text, "")
    return result if journal.unknown else journal
