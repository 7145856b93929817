# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What dmidecode(8) prints of the SMBIOS tables: memory modules and slots, processors, BIOS, system, power supplies.

The firmware writes these tables; on virtual machines they say little.  No table is unknown, never "no memory".
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Dict, List, Mapping, Optional, Tuple, Union

from .._engine.host import Host
from .._engine.values import Text, Unknown, known, lines
from .cpu import Number
from .dmi_text import ARRAY, BIOS, MODULE, PROCESSOR, SLOT, SUPPLY, SYSTEM, Structure, parse_structures
from .tool_text import clean

DEADLINE_S = 10.0
# One run tells all; a capture may hold only a part of it.
_COMMANDS = (
    ("dmidecode",),
    ("dmidecode", "-t", "memory"),
    ("dmidecode", "-t", "17"),
    ("dmidecode", "--type", "memory"),
    ("dmidecode", "-t", "bios"),
    ("dmidecode", "-t", "system"),
    ("dmidecode", "-t", "processor"),
    ("dmidecode", "-t", "slot"),
    ("dmidecode", "-t", "39"),
)

_COUNTED = re.compile(r"\s*(\d{1,4})\s+([A-Z][A-Za-z ]{1,40}):\s*(.*)", re.ASCII)
_PICKED = re.compile(
    r"\s+(Size|Locator|Bank Locator|Type|Speed|Configured (?:Memory |Clock )?Speed|Manufacturer|Part Number|Rank): (.*)"
)
_UNAVAILABLE = re.compile(
    r"No SMBIOS nor DMI entry point found|command not found|Permission denied|Operation not permitted|/dev/mem:|Can't read memory",
    re.I,
)
# What firmware writes where it has nothing to say.
_EMPTY_WORDS = (
    "", "unknown", "not specified", "none", "not provided", "<out of spec>", "<bad index>", "not available", "n/a",
    "to be filled by o.e.m.", "empty", "undefined", "no dimm", "not present", "default string", "not installed",
    "to be defined by o.e.m", "tbd by odm", "not applicable", "(none)", "null",
)  # fmt: skip
_NO_MODULE = ("no module installed", "not installed", "no module", "empty", "none")
_SIZE = re.compile(r"(\d{1,12})\s*([kKMGTP]?)i?[bB](?:ytes)?\b", re.ASCII)
_MIB = {"": 1 / 2**20, "K": 1 / 1024, "M": 1, "G": 1024, "T": 1024**2, "P": 1024**3}
_SPEED = re.compile(r"(\d{1,6})\s*(?:MT/s|MHz)", re.ASCII)
_COUNT = re.compile(r"(\d{1,6})\b", re.ASCII)


@dataclass(frozen=True)
class Module:
    """A slot for a memory module.  An empty slot has no size ("not applicable"); speeds are transfers per second.

    ``use`` is that of its array: some boards list the flash chip of the BIOS beside "System Memory".
    """

    locator: str
    bank: str
    is_populated: Union[bool, Unknown]
    size_mib: Number
    type: Union[str, Unknown]
    form_factor: Union[str, Unknown]
    speed_mts: Number
    configured_mts: Number
    manufacturer: Union[str, Unknown]
    part: Union[str, Unknown]
    serial: Union[str, Unknown]
    rank: Number
    total_width_bits: Number
    data_width_bits: Number
    technology: Union[str, Unknown]
    nonvolatile_mib: Number
    use: Union[str, Unknown]

    @property
    def has_ecc(self) -> Union[bool, Unknown]:
        """The bits of a word beyond its data are check bits."""
        if isinstance(self.total_width_bits, Unknown):
            return self.total_width_bits
        if isinstance(self.data_width_bits, Unknown):
            return self.data_width_bits
        return self.total_width_bits > self.data_width_bits


@dataclass(frozen=True)
class Array:
    """A group of slots on one board."""

    use: Union[str, Unknown]
    error_correction: Union[str, Unknown]
    slots: Number
    max_capacity_mib: Number


@dataclass(frozen=True)
class Processor:
    socket: str
    is_populated: Union[bool, Unknown]
    model: Union[str, Unknown]
    manufacturer: Union[str, Unknown]
    cores: Number
    enabled_cores: Number
    threads: Number
    max_speed_mhz: Number


@dataclass(frozen=True)
class Bios:
    vendor: Union[str, Unknown]
    version: Union[str, Unknown]
    date: Union[str, Unknown]
    rom_size_kib: Number
    revision: Union[str, Unknown]
    is_uefi: Union[bool, Unknown]
    is_virtual_machine: Union[bool, Unknown]


@dataclass(frozen=True)
class System:
    manufacturer: Union[str, Unknown]
    product: Union[str, Unknown]
    version: Union[str, Unknown]
    serial: Union[str, Unknown]
    uuid: Union[str, Unknown]
    sku: Union[str, Unknown]
    family: Union[str, Unknown]


@dataclass(frozen=True)
class Slot:
    """An expansion slot; ``address`` is that of the PCI function in it, where the firmware tells."""

    designation: str
    type: Union[str, Unknown]
    usage: Union[str, Unknown]
    address: Union[str, Unknown]


@dataclass(frozen=True)
class Supply:
    """A power supply as the firmware lists it, which on many boards is not kept up to date."""

    name: str
    is_present: Union[bool, Unknown]
    status: Union[str, Unknown]
    max_power_w: Number
    manufacturer: Union[str, Unknown]
    model: Union[str, Unknown]


@dataclass(frozen=True)
class Dmi:
    """Everything that was read; a part of which no entry was seen is Unknown."""

    bios: Union[Bios, Unknown]
    system: Union[System, Unknown]
    modules: Union[Tuple[Module, ...], Unknown]
    arrays: Union[Tuple[Array, ...], Unknown]
    processors: Union[Tuple[Processor, ...], Unknown]
    slots: Union[Tuple[Slot, ...], Unknown]
    supplies: Union[Tuple[Supply, ...], Unknown]
    structures: Tuple[Structure, ...] = field(default=(), repr=False)


def observe(host: Host) -> Dmi:
    """One run of dmidecode; in a capture, whichever parts were recorded."""
    if host.is_live:
        result = host.run(list(_COMMANDS[0]), DEADLINE_S)
        # Some versions tell "no table" on standard output and leave with 1.
        text = result.text()
        return parse_dmidecode(text if isinstance(text, str) or result.unknown else result.stdout or text)
    texts = [host.run(list(argv)).text() for argv in _COMMANDS]
    found = [text for text in texts if isinstance(text, str)]
    return parse_dmidecode("\n".join(found) if found else texts[0])


def parse_dmidecode(text: Text) -> Dmi:
    """Any part of the output of dmidecode, of version 2.2 and later, or counted rows of it; never fails."""
    structures = parse_structures(text)
    reason = _reason(text)
    if not structures and isinstance(text, str):
        modules = _counted(text) or _loose(text)
        if modules:
            return Dmi(reason, reason, modules, reason, reason, reason, reason)

    def each(number: int) -> List[Structure]:
        return [one for one in structures if one.type == number]

    def absent(what: str) -> Unknown:
        return Unknown("dmidecode lists no %s" % what) if structures else reason

    bios, system, devices, arrays = each(BIOS), each(SYSTEM), each(MODULE), each(ARRAY)
    processors, slots, supplies = each(PROCESSOR), each(SLOT), each(SUPPLY)
    uses = {one.handle: _word(one.values, "Use") for one in arrays}
    return Dmi(
        _bios(bios[0]) if bios else absent("BIOS"),
        _system(system[0]) if system else absent("system"),
        tuple(_module(one.values, uses) for one in devices) if devices else absent("memory module"),
        tuple(_array(one) for one in arrays) if arrays else absent("memory array"),
        tuple(_processor(one) for one in processors) if processors else absent("processor"),
        tuple(_slot(one) for one in slots) if slots else absent("slot"),
        tuple(_supply(one) for one in supplies) if supplies else absent("power supply"),
        structures,
    )


def _reason(text: Text) -> Unknown:
    if isinstance(text, Unknown):
        return text
    if text is None:
        return Unknown("dmidecode was not run")
    said = next((line.strip("#> \t") for line in lines(clean(text)) if _UNAVAILABLE.search(line)), None)
    return Unknown("DMI is not available: %s" % said[:120] if said else "dmidecode lists no tables")


def _module(values: Mapping[str, str], uses: Mapping[str, Union[str, Unknown]]) -> Module:
    size = values.get("Size")
    is_empty = size is not None and (size.strip().lower() in _NO_MODULE or mib_of(size) == 0)
    size_mib: Number = Unknown("not applicable: no module in the slot") if is_empty else mib_of(size)
    is_populated: Union[bool, Unknown] = False if is_empty else True if known(size_mib) else Unknown(str(size))
    configured = next((values[key] for key in values if re.fullmatch(r"Configured (Memory |Clock )?Speed", key)), None)
    return Module(
        values.get("Locator", ""),
        values.get("Bank Locator", ""),
        is_populated,
        size_mib,
        _word(values, "Type"),
        _word(values, "Form Factor"),
        _figure(_SPEED, values.get("Speed")),
        _figure(_SPEED, configured),
        _word(values, "Manufacturer"),
        _word(values, "Part Number"),
        _word(values, "Serial Number"),
        _figure(_COUNT, values.get("Rank")),
        _figure(_COUNT, values.get("Total Width")),
        _figure(_COUNT, values.get("Data Width")),
        _word(values, "Memory Technology"),
        mib_of(values.get("Non-Volatile Size")),
        uses.get(values.get("Array Handle", ""), Unknown("dmidecode lists no array of it")),
    )


def _array(one: Structure) -> Array:
    most = mib_of(one.values.get("Maximum Capacity"))
    return Array(
        _word(one.values, "Use"),
        _word(one.values, "Error Correction Type"),
        _figure(_COUNT, one.values.get("Number Of Devices")),
        Unknown("the firmware says 0") if most == 0 else most,
    )


def _processor(one: Structure) -> Processor:
    status = one.values.get("Status", "")
    is_populated = Unknown("dmidecode shows no status") if not status else status.lower().startswith("populated")
    return Processor(
        one.values.get("Socket Designation", ""),
        is_populated,
        _word(one.values, "Version"),
        _word(one.values, "Manufacturer"),
        _figure(_COUNT, one.values.get("Core Count")),
        _figure(_COUNT, one.values.get("Core Enabled")),
        _figure(_COUNT, one.values.get("Thread Count")),
        _figure(_SPEED, one.values.get("Max Speed")),
    )


def _bios(one: Structure) -> Bios:
    traits = one.lists.get("Characteristics", ())
    unseen = Unknown("the BIOS lists no characteristics")
    rom = mib_of(one.values.get("ROM Size"), 1024)
    return Bios(
        _word(one.values, "Vendor"),
        _word(one.values, "Version"),
        _word(one.values, "Release Date"),
        rom,
        _word(one.values, "BIOS Revision"),
        "UEFI is supported" in traits if traits else unseen,
        "System is a virtual machine" in traits if traits else unseen,
    )


def _system(one: Structure) -> System:
    names = ("Manufacturer", "Product Name", "Version", "Serial Number", "UUID", "SKU Number", "Family")
    return System(*[_word(one.values, name) for name in names])


def _slot(one: Structure) -> Slot:
    return Slot(
        one.values.get("Designation", ""),
        _word(one.values, "Type"),
        _word(one.values, "Current Usage"),
        _word(one.values, "Bus Address"),
    )


def _supply(one: Structure) -> Supply:
    status = one.values.get("Status", "")
    is_present = Unknown("dmidecode shows no status") if not status else not re.match("Not Present", status, re.I)
    return Supply(
        one.values.get("Name") or one.values.get("Location", ""),
        is_present,
        _word(one.values, "Status"),
        _figure(re.compile(r"(\d{1,6})\s*W", re.ASCII), one.values.get("Max Power Capacity")),
        _word(one.values, "Manufacturer"),
        _word(one.values, "Model Part Number"),
    )


def _counted(text: str) -> Tuple[Module, ...]:
    """Modules from rows that ``sort | uniq -c`` has counted: ``32  Size: 64 GB``.

    Which of several values belongs to which module is lost; such a row is unknown.
    """
    tallies: Dict[str, List[Tuple[int, str]]] = {}
    for row in re.split(r"[\n;|]", text.replace("\r", "")):
        found = _COUNTED.fullmatch(row.rstrip())
        if found:
            tallies.setdefault(found.group(2).strip(), []).append((int(found.group(1)), found.group(3).strip()))
    leading = next((key for key in ("Size", "Locator", "Speed", "Configured Memory Speed") if key in tallies), None)
    if leading is None:
        return ()
    split = [key for key, rows in tallies.items() if len(rows) > 1 and key != leading]
    modules: List[Module] = []
    for count, value in tallies[leading]:
        values = {key: rows[0][1] for key, rows in tallies.items() if len(rows) == 1 and key != leading}
        values.update((key, "Unknown: the counts do not tell which module") for key in split)
        modules += [_module({**values, leading: value}, {})] * min(count, 4096)
    return tuple(modules)


def _loose(text: str) -> Tuple[Module, ...]:
    """Modules from rows that grep has picked, without titles: a row that comes again begins the next module."""
    found: List[Dict[str, str]] = []
    for row in lines(text):
        match = _PICKED.fullmatch(row.rstrip())
        if match is None:
            continue
        if not found or match.group(1) in found[-1]:
            found.append({})
        found[-1][match.group(1)] = match.group(2)
    return tuple(_module(values, {}) for values in found if "Size" in values and len(values) > 1)


def mib_of(text: Optional[str], scale: int = 1) -> Number:
    """MiB of a size (KiB with a scale of 1024): SMBIOS counts in powers of two, whatever the unit is called."""
    found = _SIZE.match((text or "").strip())
    if not found:
        return _missing(text)
    return int(int(found.group(1)) * _MIB[found.group(2).upper()] * scale)


def _figure(pattern: re.Pattern[str], text: Optional[str]) -> Number:
    found = pattern.match((text or "").strip())
    # No module has rank, width, speed or cores of 0: firmware writes it for "not known".
    return int(found.group(1)) if found and int(found.group(1)) else _missing(text)


def _word(values: Mapping[str, str], key: str) -> Union[str, Unknown]:
    text = values.get(key)
    return text if text is not None and text.lower() not in _EMPTY_WORDS else _missing(text)


def _missing(text: Optional[str]) -> Unknown:
    return Unknown("dmidecode shows no such row" if text is None else "the firmware says %r" % text[:60])
