# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the NVIDIA driver writes into the kernel log: XIDs of GPUs, SXids of NVSwitches, and why it failed."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Dict, List, Optional, Sequence, Tuple, Union

from .driver_module import ModuleVersion, module_version
from .kernel_lines import Entry

# Drivers before R180 left out the device as well: (0000:05).
_PCI = r"(?:PCI:)?([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}(?:\.[0-7])?)?)"
# With MIG the parenthesis holds the instances as well: (PCI:0000:01:00 GPU-I:05).
_XID = re.compile(r"(?<!\w)X[Ii][Dd] \(" + _PCI + r"[^)]{0,40}\): (\d{1,5})(?:, ?(.{0,400}))?", re.ASCII | re.DOTALL)
_SXID = re.compile(
    r"SXid \(" + _PCI + r"\): (\d{1,6}), (Fatal|Non-fatal), (?:Link (\d{1,3}) )?(.{0,300})", re.ASCII | re.DOTALL
)
# Older drivers, then R595 with the program's name; the words are broken into lines at other places in each.
_MISMATCH = re.compile(
    r"API mismatch: the client (?:'([^']{0,64})' \(pid \d{1,10}\) )?has the version (\d[\d.]{2,20}\d),? but "
    r"this kernel module has the version (\d[\d.]{2,20}\d)",
    re.ASCII,
)
_INIT = re.compile(r"(?:GPU " + _PCI + r": )?RmInitAdapter failed! ?\(([^)]{0,60})\)", re.ASCII)
_INIT_MINOR = re.compile(r"(?:GPU " + _PCI + r": )?rm_init_adapter failed\D{1,60}(\d{1,4})", re.ASCII)
_LOST = re.compile(r"GPU (?:at )?" + _PCI + r"\b.{0,200}fallen off the bus", re.ASCII | re.DOTALL)
_UNSUPPORTED = re.compile(
    r"The NVIDIA GPU " + _PCI + r".{0,100}installed in this system (is not supported.{0,200})", re.ASCII
)
_LEGACY = re.compile(
    r"The NVIDIA (\S.{0,80}?) GPU installed in this system (is supported through the NVIDIA .{0,200})", re.ASCII
)
_FIRMWARE = re.compile(r"[Ff]irmware load for (nvidia/[\w./-]{1,100}) failed", re.ASCII)
_PROBES = re.compile(r"NVIDIA probe routine failed for (\d{1,4}) device", re.ASCII)
# A driver such as nouveau or vfio-pci holds them.
_UNCLAIMED = re.compile(r"NVIDIA probe routine was not called for (\d{1,4}) device", re.ASCII)
_GAVE_UP = re.compile(
    r"No NVIDIA (?:GPU found|graphics adapter probed|devices? probed)"
    r"|None of the NVIDIA (?:graphics adapters|devices) were initialized",
    re.ASCII,
)
_LINK = re.compile(r"\bLink (-?\d{1,3})\b", re.ASCII)
_CAUSE = re.compile(r"caused by previous Xid (\d{1,5})", re.ASCII)
# Beginnings of messages whose further lines may be entries of their own.
_LONG = ("API mismatch", "The NVIDIA GPU ", " GPU installed in this system")
_MOST_LINES = 6


@dataclass(frozen=True)
class Xid:
    """All XIDs of one code of one GPU.  ``text`` is the first one's; ``cause`` the XID that it names as its cause.

    ``links`` and ``is_fatal`` are told by the codes of NVLink 5 (144 to 150) only.
    """

    address: str
    code: int
    text: str
    count: int
    first: str
    last: str
    cause: Optional[int] = None
    links: Tuple[int, ...] = ()
    is_fatal: Optional[bool] = None


@dataclass(frozen=True)
class SXid:
    """All errors of one code of one link of an NVSwitch."""

    address: str
    code: int
    is_fatal: bool
    link: Optional[int]
    text: str
    count: int
    first: str
    last: str


@dataclass(frozen=True)
class ApiMismatch:
    """Programs whose libraries are of another version than the loaded module; ``program`` where it is named."""

    client: str
    module: str
    program: str
    count: int
    first: str
    last: str


@dataclass(frozen=True)
class InitFailure:
    """A GPU that the driver could not start; old drivers name its minor number only (/dev/nvidiaN)."""

    address: Optional[str]
    minor: Optional[int]
    code: str
    count: int


@dataclass(frozen=True)
class Nvrm:
    """``lost`` and ``unsupported`` by address, the latter with its reason and by name where the driver tells no address;
    ``loads`` are the loaded modules in turn.  ``gave_up`` are the module's last words when it did not load in the end,
    ``unclaimed`` the GPUs that it then found in the hands of another driver."""

    xids: Tuple[Xid, ...]
    sxids: Tuple[SXid, ...]
    mismatches: Tuple[ApiMismatch, ...]
    init_failures: Tuple[InitFailure, ...]
    lost: Tuple[str, ...]
    unsupported: Dict[str, str]
    missing_firmware: Tuple[str, ...]
    failed_probes: int
    loads: Tuple[ModuleVersion, ...]
    gave_up: str = ""
    unclaimed: int = 0


def is_ours(message: str) -> bool:
    return "NVRM" in message or "SXid" in message or "load for nvidia/" in message


def read_nvrm(ours: Sequence[Entry]) -> Nvrm:
    """What the driver's entries say, in their order."""
    xids: Dict[Tuple[str, int], Xid] = {}
    sxids: Dict[Tuple[str, int, Optional[int]], SXid] = {}
    mismatches: Dict[Tuple[str, str, str], ApiMismatch] = {}
    failures: List[InitFailure] = []
    lost: Dict[str, None] = {}
    unsupported: Dict[str, str] = {}
    firmware: Dict[str, None] = {}
    loads: List[ModuleVersion] = []
    probes = 0
    for place, entry in enumerate(ours):
        time, said, whole = entry.time, _flat(entry.message), _flat(_whole(ours, place))
        xid, sxid, mismatch = _XID.search(said), _SXID.search(said), _MISMATCH.search(whole)
        if sxid:
            _add_sxid(sxids, time, sxid.groups())
        elif xid:
            _add_xid(xids, time, _address(xid.group(1)), int(xid.group(2)), xid.group(3) or "")
            if xid.group(2) == "79":
                lost[_address(xid.group(1))] = None
        if mismatch:
            key = (mismatch.group(2), mismatch.group(3), mismatch.group(1) or "")
            known = mismatches.get(key, ApiMismatch(*key, 0, time, time))
            mismatches[key] = replace(known, count=known.count + 1, last=time)
        failures += _failures(said, failures)
        lost.update((_address(found), None) for found in _LOST.findall(whole))
        unsupported.update((_address(found[0]), found[1].strip()) for found in _UNSUPPORTED.findall(whole))
        unsupported.update((name, reason.strip()) for name, reason in _LEGACY.findall(whole))
        firmware.update((found, None) for found in _FIRMWARE.findall(said))
        probes += sum(int(found) for found in _PROBES.findall(said))
        version = module_version(said) if "loading NVIDIA UNIX" in said else None
        if isinstance(version, ModuleVersion):
            loads.append(version)
    return Nvrm(
        tuple(xids.values()),
        tuple(sxids.values()),
        tuple(mismatches.values()),
        tuple(_grouped(failures)),
        tuple(lost),
        unsupported,
        tuple(firmware),
        probes,
        tuple(loads),
        *_end(ours),
    )


def _end(ours: Sequence[Entry]) -> Tuple[str, int]:
    """Whether the module gave up the last time it was loaded, and how many GPUs another driver had taken."""
    gave_up, unclaimed = "", 0
    for entry in ours:
        said = _flat(entry.message)
        if "loading NVIDIA UNIX" in said:
            gave_up, unclaimed = "", 0
        found, taken = _GAVE_UP.search(said), _UNCLAIMED.search(said)
        gave_up = found.group() if found else gave_up
        unclaimed = int(taken.group(1)) if taken else unclaimed
    return gave_up, unclaimed


def _whole(ours: Sequence[Entry], place: int) -> str:
    """A message with those behind it that may be its further lines."""
    said = ours[place].message
    if "\n" in said or not any(beginning in said for beginning in _LONG):
        return said
    return "\n".join(entry.message for entry in ours[place : place + _MOST_LINES])


def _flat(message: str) -> str:
    """On one line, wherever it was broken."""
    return " ".join(message.replace("NVRM:", " ").split())


def _add_xid(xids: Dict[Tuple[str, int], Xid], time: str, where: str, code: int, text: str) -> None:
    known = xids.get((where, code), Xid(where, code, text.strip(), 0, time, time))
    cause = _CAUSE.search(text)
    links = {int(found) for found in _LINK.findall(text)} if 144 <= code <= 150 else set()
    severity = re.search(r"\b(Fatal|Nonfatal)\b", text) if links else None
    xids[(where, code)] = replace(
        known,
        count=known.count + 1,
        last=time,
        cause=int(cause.group(1)) if cause and known.cause is None else known.cause,
        links=tuple(sorted(links | set(known.links))),
        is_fatal=severity.group(1) == "Fatal" or known.is_fatal is True if severity else known.is_fatal,
    )


def _add_sxid(sxids: Dict[Tuple[str, int, Optional[int]], SXid], time: str, said: Sequence[Union[str, None]]) -> None:
    where, code, severity, link, text = said
    key = (_address(where or ""), int(code or 0), int(link) if link else None)
    known = sxids.get(key, SXid(key[0], key[1], severity == "Fatal", key[2], (text or "").strip(), 0, time, time))
    sxids[key] = replace(known, count=known.count + 1, last=time)


def _failures(said: str, before: List[InitFailure]) -> List[InitFailure]:
    """A failure takes two lines: the code, then the minor number."""
    code, minor = _INIT.search(said), _INIT_MINOR.search(said)
    found = [InitFailure(_address(code.group(1)) if code.group(1) else None, None, code.group(2), 1)] if code else []
    if minor:
        where = _address(minor.group(1)) if minor.group(1) else None
        known = (found or before)[-1:]
        if known and known[0].minor is None and known[0].address == where:
            (found or before)[-1] = replace(known[0], minor=int(minor.group(2)))
        else:
            found.append(InitFailure(where, int(minor.group(2)), "", 1))
    return found


def _grouped(failures: Sequence[InitFailure]) -> List[InitFailure]:
    known: Dict[Tuple[Optional[str], Optional[int]], InitFailure] = {}
    for failure in failures:
        key = (failure.address, failure.minor)
        known[key] = replace(failure, count=known[key].count + 1) if key in known else failure
    return list(known.values())


def _address(printed: str) -> str:
    """As sysfs has it, with the function that XIDs leave out."""
    domain, rest = printed.lower().split(":", 1)
    rest = rest if ":" in rest else rest + ":00"
    return "%04x:%s%s" % (int(domain, 16), rest, "" if "." in rest else ".0")
