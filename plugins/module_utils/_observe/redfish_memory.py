# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Memory modules as Redfish tells them: one resource for each slot, also for an empty one.

iLO 4 has other names for most members.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Mapping, Tuple, Union

from .._engine.values import Text, Unknown
from .cpu import Number
from .redfish_json import Word, count, expanded, first, health, name_of, part, presence, resource, schema_of, word

# HPE's own words for a slot; of these only the first two say that nothing is in it.
_EMPTY = ("notpresent", "absent")


@dataclass(frozen=True)
class Module:
    """A slot for a memory module; ``speed_mts`` is the one it runs at, ``rated_mts`` the fastest it allows."""

    id: str
    schema: str
    locator: Word
    is_present: Union[bool, Unknown]
    size_mib: Number
    type: Word
    speed_mts: Number
    rated_mts: Number
    rank: Number
    manufacturer: Word
    part: Word
    serial: Word
    error_correction: Word
    health: Word


def parse_memory(text: Text) -> Union[Module, Unknown]:
    data = resource(text, "Memory")
    return data if isinstance(data, Unknown) else _module(data)


def parse_memories(text: Text) -> Union[Tuple[Module, ...], Unknown]:
    """A collection whose members are expanded, or a single module."""
    members = expanded(text, "Memory")
    return members if isinstance(members, Unknown) else tuple(_module(member) for member in members)


def _module(data: Mapping[str, Any]) -> Module:
    is_present = _is_present(data)
    absent = Unknown("not applicable: no module in the slot")
    label = word(part(part(data, "Location"), "PartLocation"), "ServiceLabel")
    return Module(
        name_of(data),
        schema_of(data),
        first(word(data, "DeviceLocator"), word(data, "SocketLocator"), label, word(data, "Name")),
        is_present,
        absent if is_present is False else _size(data),
        first(word(data, "MemoryDeviceType"), word(data, "DIMMType"), word(data, "MemoryType")),
        absent if is_present is False else count(data, "OperatingSpeedMhz"),
        _rated(data),
        first(count(data, "RankCount"), count(data, "Rank")),
        word(data, "Manufacturer"),
        word(data, "PartNumber"),
        word(data, "SerialNumber"),
        word(data, "ErrorCorrection"),
        health(data),
    )


def _is_present(data: Mapping[str, Any]) -> Union[bool, Unknown]:
    """By the state, by what HPE says beside it, or by the size: an empty slot has one of 0."""
    said = first(word(part(part(data, "Oem"), "Hpe"), "DIMMStatus"), word(data, "DIMMStatus"))
    if isinstance(said, str) and said.lower() in _EMPTY:
        return False
    if 0 in (data.get("CapacityMiB"), data.get("SizeMB")):
        return False
    return first(presence(data), True if isinstance(_size(data), int) else Unknown("no state"))


def _size(data: Mapping[str, Any]) -> Number:
    return first(count(data, "CapacityMiB"), count(data, "SizeMB"))


def _rated(data: Mapping[str, Any]) -> Number:
    speeds = data.get("AllowedSpeedsMHz")
    allowed = [speed for speed in speeds if isinstance(speed, int) and speed > 0] if isinstance(speeds, list) else []
    told = first(count(part(part(data, "Oem"), "Hpe"), "MaxOperatingSpeedMTs"), count(data, "MaximumFrequencyMHz"))
    return max(allowed) if allowed else told
