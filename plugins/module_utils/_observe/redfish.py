# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Resources of a Redfish service as they were fetched: systems, BIOS attributes, processors.

iLO 4 has other names for some members, from before the first release of the schemas.
A member that is absent or null is unknown; so is a figure that no running machine can have.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Dict, Mapping, Optional, Tuple, Union

from .._engine.values import Text, Unknown
from .cpu import Number
from .redfish_json import (
    Figure,
    Word,
    count,
    dicts,
    expanded,
    first,
    flag,
    health,
    name_of,
    part,
    path_of,
    positive,
    presence,
    resource,
    schema_of,
    word,
)

_MEMBERS = ("AttributeRegistry", "Description", "Id", "Modified", "Name", "Type")


@dataclass(frozen=True)
class System:
    """A ComputerSystem.  A machine may show several, such as a GPU baseboard without a BIOS beside the host."""

    id: str
    name: Word
    schema: str
    manufacturer: Word
    model: Word
    sku: Word
    serial: Word
    part_number: Word
    bios_version: Word
    power_state: Word
    health: Word
    memory_gib: Figure
    processors: Number
    processor_model: Word
    cores: Number
    threads: Number
    bios_path: Word
    settings_path: Word
    boot_mode: Word


@dataclass(frozen=True)
class BiosAttributes:
    """The Bios resource, or the one that holds what waits for the next reset.

    ``settings_path`` is where changes wait (``@Redfish.Settings``), whose name differs by vendor; the waiting
    resource itself has none.
    """

    id: str
    name: Word
    schema: str
    registry: Word
    attributes: Mapping[str, Any]
    settings_path: Word
    apply_times: Tuple[str, ...] = ()
    messages: Tuple[str, ...] = ()


@dataclass(frozen=True)
class Processor:
    """A processor or a GPU."""

    id: str
    name: Word
    schema: str
    kind: Word
    manufacturer: Word
    model: Word
    socket: Word
    cores: Number
    threads: Number
    max_speed_mhz: Number
    is_present: Union[bool, Unknown]
    health: Word
    firmware: Word
    serial: Word
    part_number: Word
    has_ecc: Union[bool, Unknown]
    memory_mib: Number
    settings_path: Word


@dataclass(frozen=True)
class Header:
    """What a resource says of itself; ``members`` are the paths of a collection, which may hold several systems."""

    id: str
    name: Word
    schema: str
    path: Word
    members: Tuple[str, ...]


def parse_system(text: Text) -> Union[System, Unknown]:
    data = resource(text, "ComputerSystem")
    if isinstance(data, Unknown):
        return data
    memory, processors = part(data, "MemorySummary"), part(data, "ProcessorSummary")
    old_memory, old_processors = part(data, "Memory"), part(data, "Processors")
    return System(
        name_of(data),
        word(data, "Name"),
        schema_of(data),
        word(data, "Manufacturer"),
        word(data, "Model"),
        word(data, "SKU"),
        word(data, "SerialNumber"),
        word(data, "PartNumber"),
        first(word(data, "BiosVersion"), word(part(part(data, "Bios"), "Current"), "VersionString")),
        first(word(data, "PowerState"), word(data, "Power")),
        health(data),
        first(positive(memory, "TotalSystemMemoryGiB"), positive(old_memory, "TotalSystemMemoryGB")),
        first(count(processors, "Count"), count(old_processors, "Count")),
        first(word(processors, "Model"), word(old_processors, "ProcessorFamily")),
        count(processors, "CoreCount"),
        count(processors, "LogicalProcessorCount"),
        path_of(part(data, "Bios")),
        path_of(part(part(data, "@Redfish.Settings"), "SettingsObject")),
        word(part(data, "Boot"), "BootSourceOverrideMode"),
    )


def parse_bios(text: Text) -> Union[BiosAttributes, Unknown]:
    data = resource(text, "Bios")
    if isinstance(data, Unknown):
        return data
    attributes = _old_attributes(data) if "Attributes" not in data else data["Attributes"]
    if not isinstance(attributes, dict):
        return Unknown("the Bios resource has no attributes")
    settings = part(data, "@Redfish.Settings")
    times = settings.get("SupportedApplyTimes")
    messages = [message.get("MessageId") for message in dicts(settings.get("Messages"))]
    return BiosAttributes(
        name_of(data),
        word(data, "Name"),
        schema_of(data),
        word(data, "AttributeRegistry"),
        {str(key): _value(value) for key, value in attributes.items()},
        path_of(part(settings, "SettingsObject")),
        tuple(time for time in times if isinstance(time, str)) if isinstance(times, list) else (),
        tuple(message for message in messages if isinstance(message, str)),
    )


def _old_attributes(data: Mapping[str, Any]) -> Optional[Dict[str, Any]]:
    """HpBios of iLO 4: the attributes stand among the members of the resource."""
    if not schema_of(data).startswith("#HpBios."):
        return None
    return {
        key: value
        for key, value in data.items()
        if not key.startswith("@") and key not in _MEMBERS and not isinstance(value, (dict, list))
    }


def _value(value: Any) -> Any:
    """Cray gives an object with the allowed values beside the current one."""
    return value["current_value"] if isinstance(value, dict) and "current_value" in value else value


def attribute(bios: BiosAttributes, name: str) -> Any:
    """The value of an attribute; Supermicro appends a mark and four hexadecimal digits to the names."""
    if name in bios.attributes:
        return bios.attributes[name]
    suffixed = re.compile(re.escape(name) + r"[_#][0-9a-fA-F]{4}")
    found = next((key for key in bios.attributes if suffixed.fullmatch(key)), None)
    return bios.attributes[found] if found is not None else Unknown("the BIOS has no attribute %s" % name)


def pending(current: BiosAttributes, waiting: BiosAttributes) -> Dict[str, Tuple[Any, Any]]:
    """The attributes that change with the next reset: their value now and then."""
    now = current.attributes
    return {
        name: (now.get(name, Unknown("not among the current attributes")), value)
        for name, value in waiting.attributes.items()
        if name not in now or now[name] != value
    }


def parse_processor(text: Text) -> Union[Processor, Unknown]:
    data = resource(text, "Processor")
    return data if isinstance(data, Unknown) else _processor(data)


def parse_processors(text: Text) -> Union[Tuple[Processor, ...], Unknown]:
    """A collection of processors whose members are expanded, or a single one."""
    members = expanded(text, "Processor")
    return members if isinstance(members, Unknown) else tuple(_processor(member) for member in members)


def parse_header(text: Text) -> Union[Header, Unknown]:
    """Of any resource, such as a collection: which member is the host is not told by its name."""
    data = resource(text, "")
    if isinstance(data, Unknown):
        return data
    paths = [path_of(member) for member in dicts(data.get("Members"))]
    members = tuple(path for path in paths if isinstance(path, str))
    return Header(name_of(data), word(data, "Name"), schema_of(data), path_of(data), members)


def _processor(data: Mapping[str, Any]) -> Processor:
    memory = part(data, "MemorySummary")
    return Processor(
        name_of(data),
        word(data, "Name"),
        schema_of(data),
        word(data, "ProcessorType"),
        word(data, "Manufacturer"),
        word(data, "Model"),
        word(data, "Socket"),
        count(data, "TotalCores"),
        count(data, "TotalThreads"),
        count(data, "MaxSpeedMHz"),
        presence(data),
        health(data),
        word(data, "FirmwareVersion"),
        word(data, "SerialNumber"),
        word(data, "PartNumber"),
        flag(memory, "ECCModeEnabled"),
        count(memory, "TotalMemorySizeMiB"),
        path_of(part(part(data, "@Redfish.Settings"), "SettingsObject")),
    )
