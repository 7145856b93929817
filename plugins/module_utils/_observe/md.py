# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""md arrays: from sysfs, and as mdadm(8) and /proc/mdstat print them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import takewhile
from typing import Dict, List, Optional, Tuple, Union

from .._engine.host import Host
from .._engine.units import parse_size
from .._engine.values import Text
from .block import SECTOR_BYTES, parse_udev_data
from .tool_text import clean, is_prompt, without_labels

# People set lines in bold when they show them.
_FIELD = re.compile(r"^[\s*]*([A-Z][A-Za-z ]{0,60}?) : (.*?)[\s*]{0,60}$")
_DEVICE = re.compile(r"^\s*(/\S+):\s*$")
# The table of metadata 0.90 in --examine has a further column in front, and repeats the member itself as "this".
_MEMBER = re.compile(r"^\s*(?:(this|\d+)\s+)?(\d+|-)\s+(\d+)\s+(\d+)\s+(\d+|-)(?:\s+(.*))?$", re.ASCII)
# Firmware metadata (IMSM, DDF) goes on with the disks and the volumes, each with fields of the same names.
_PARTS = re.compile(r"^\s*(Disk\d+ Serial : |\[.*\]:\s*$|Container GUID : )")
# The fields without one of which a block is no output of mdadm: hdparm writes such headings as well.
_KNOWN = ("Version", "Raid Level", "State", "Magic", "UUID", "Array UUID")
# "broken" since kernel 5.19: a member of an array without redundancy is gone (md_seq_show, drivers/md/md.c).
_MDSTAT = re.compile(r"^\s*(md\S*) : (active|inactive|broken)(?: \(([a-z-]+)\))?(.*)$")
_MDSTAT_END = re.compile(r"\s*(unused devices|Personalities) ?:")
_SIGN = re.compile(r"/dev/\S+:|Personalities|md\S* : ")
_MDSTAT_MEMBER = re.compile(r"^([^\s\[]+)\[(\d+)\]((?:\([A-Z]\))*)$", re.ASCII)
_ACTION = re.compile(r"\b(recovery|resync|reshape|check|repair)\s*=\s*(\S+)")


@dataclass(frozen=True)
class Member:
    device: str
    role: Optional[int]
    state: str


@dataclass(frozen=True)
class Detail:
    """An array as ``mdadm --detail`` or a member as ``mdadm --examine`` tells it; None is not told."""

    device: str
    level: Optional[str]
    state: Optional[str]
    metadata: Optional[str]
    uuid: Optional[str]
    name: Optional[str]
    raid_devices: Optional[int]
    active_devices: Optional[int]
    failed_devices: Optional[int]
    chunk_bytes: Optional[int]
    members: Tuple[Member, ...] = ()


@dataclass(frozen=True)
class MdStat:
    """An array of /proc/mdstat.  ``members``: device to its flags, such as F (failed) and S (spare).

    ``access`` is read-only, auto-read-only, broken (it has lost a member that it cannot do without) or empty.
    """

    name: str
    is_active: bool
    access: str
    level: Optional[str]
    members: Tuple[Tuple[str, str], ...]
    slots: str
    action: str
    progress: str

    @property
    def is_degraded(self) -> bool:
        return "_" in self.slots


@dataclass(frozen=True)
class Array:
    """An array that runs, from sysfs; None is what this level or kernel does not show."""

    name: str
    number: str
    level: Optional[str]
    chunk_bytes: Optional[int]
    raid_disks: Optional[int]
    degraded: Optional[int]
    metadata: Optional[str]
    layout: Optional[str]
    state: Optional[str]
    action: Optional[str]
    size_bytes: Optional[int]
    uuid: Optional[str]
    label: Optional[str]
    members: Tuple[str, ...]


def parse_mdadm_detail(text: str) -> List[Detail]:
    """``mdadm --detail`` of one or several arrays; complaints between them are left out."""
    return [_detail(device, body) for device, body in _blocks(text)]


def parse_mdadm_examine(text: str) -> List[Detail]:
    """``mdadm --examine``: the same fields, told by each member."""
    return [_detail(device, body) for device, body in _blocks(text)]


def parse_mdstat(text: Text) -> List[MdStat]:
    """``/proc/mdstat``, in its order."""
    arrays: List[Tuple[re.Match[str], List[str]]] = []
    is_inside = False
    for line in clean(without_labels(text, _SIGN)).splitlines() if isinstance(text, str) else []:
        head = _MDSTAT.match(line)
        if head:
            arrays.append((head, []))
        elif is_inside and line.strip():
            arrays[-1][1].append(line)
        # In a paste the lines of an array may have lost their indentation; what ends them are these.
        is_inside = head is not None or (is_inside and not _MDSTAT_END.match(line) and not is_prompt(line))
    return [_mdstat(head, "\n".join(rest)) for head, rest in arrays]


def array(host: Host, name: str) -> Array:
    """A running array, from sysfs and the udev database, without any command."""
    base = "/sys/block/%s/" % name
    number = _word(host.read(base + "dev")) or ""
    udev, _links = parse_udev_data(host.read("/run/udev/data/b" + number))
    sectors = _number(host.read(base + "size"))
    return Array(
        name=name,
        number=number,
        level=_word(host.read(base + "md/level")),
        chunk_bytes=_number(host.read(base + "md/chunk_size")) or None,
        raid_disks=_number(host.read(base + "md/raid_disks")),
        degraded=_number(host.read(base + "md/degraded")),
        metadata=_word(host.read(base + "md/metadata_version")),
        layout=_word(host.read(base + "md/layout")),
        state=_word(host.read(base + "md/array_state")),
        action=_word(host.read(base + "md/sync_action")),
        size_bytes=sectors * SECTOR_BYTES if sectors is not None else None,
        # The attribute is there since kernel 6.0 or so; udev has it from mdadm --detail --export.
        uuid=bare_uuid(_word(host.read(base + "md/uuid")) or udev.get("MD_UUID")),
        label=udev.get("MD_DEVNAME") or None,
        members=tuple(host.listdir(base + "slaves")),
    )


def bare_uuid(text: Optional[str]) -> Optional[str]:
    """The 32 digits of a UUID, whether it is written in mdadm's or in the usual way."""
    # Behind the one of metadata 0.90 stands "(local to host NAME)".
    word = (text or "").strip().split(" ")[0]
    digits = re.sub(r"[^0-9a-f]", "", word.lower())
    return digits if len(digits) == 32 else None


def mdadm_uuid(digits: str) -> str:
    """A UUID in mdadm's way of writing: four groups of eight."""
    return ":".join(digits[start : start + 8] for start in range(0, 32, 8))


def _blocks(text: str) -> List[Tuple[str, List[str]]]:
    """The lines below each heading with a device, to the next prompt."""
    found: List[Tuple[str, List[str]]] = []
    is_inside = False
    for line in clean(without_labels(text, _SIGN)).splitlines():
        device = _DEVICE.match(line)
        if device:
            found.append((device.group(1), []))
        elif is_inside and not is_prompt(line) and not line.startswith("mdadm:"):
            found[-1][1].append(line)
        is_inside = device is not None or (is_inside and not is_prompt(line))
    return [(device, body) for device, body in found if any(_is_known(line) for line in body)]


def _is_known(line: str) -> bool:
    field = _FIELD.match(line)
    return field is not None and field.group(1) in _KNOWN


def _detail(device: str, body: List[str]) -> Detail:
    fields: Dict[str, str] = {}
    is_whole = True
    for line in body:
        is_whole = is_whole and not _PARTS.match(line)
        match = _FIELD.match(line) if is_whole else None
        if match:
            fields.setdefault(match.group(1), match.group(2).strip())
    return Detail(
        device=device,
        level=fields.get("Raid Level"),
        state=fields.get("State"),
        metadata=fields.get("Version"),
        uuid=bare_uuid(fields.get("UUID") or fields.get("Array UUID")),
        name=(fields.get("Name") or "").split(" ")[0] or None,
        raid_devices=_int(fields.get("Raid Devices") or fields.get("RAID Devices")),
        active_devices=_int(fields.get("Active Devices")),
        failed_devices=_int(fields.get("Failed Devices")),
        chunk_bytes=_size(fields.get("Chunk Size")),
        members=_members(body),
    )


def _members(body: List[str]) -> Tuple[Member, ...]:
    rows = [row for row in map(_MEMBER.match, body) if row and row.group(1) != "this"]
    words = [(row, (row.group(6) or "").split()) for row in rows]
    return tuple(
        Member(
            next((word for word in told if word.startswith("/")), ""),
            _int(row.group(5)),
            " ".join(takewhile(lambda word: not word.startswith("/"), told)),
        )
        for row, told in words
    )


def _mdstat(match: re.Match[str], body: str) -> MdStat:
    words = match.group(4).split()
    level = words.pop(0) if words and not _MDSTAT_MEMBER.match(words[0]) else None
    members = [_MDSTAT_MEMBER.match(word) for word in words]
    slots = re.search(r"\[([U_]+)\](?=\s|$)", body, re.MULTILINE)
    action = _ACTION.search(body)
    return MdStat(
        name=match.group(1),
        is_active=match.group(2) == "active",
        access="broken" if match.group(2) == "broken" else match.group(3) or "",
        level=level,
        members=tuple((m.group(1), re.sub(r"[()]", "", m.group(3))) for m in members if m),
        slots=slots.group(1) if slots else "",
        action=action.group(1) if action else "",
        progress=action.group(2) if action else "",
    )


def _word(text: Text) -> Optional[str]:
    return text.strip() or None if isinstance(text, str) else None


def _number(text: Text) -> Optional[int]:
    return _int(_word(text))


def _int(text: Optional[str]) -> Optional[int]:
    return int(text) if text and re.fullmatch("[0-9]{1,18}", text) else None


def _size(text: Optional[str]) -> Union[int, None]:
    try:
        return parse_size(text)
    except ValueError:
        return None
