# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NVMe controllers from sysfs, what nvme(1) lists and says of their health, and RAID controllers beside them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Dict, Mapping, Optional, Sequence, Tuple, Union

from .._engine.host import Host
from .._engine.values import Text, Unknown, lines
from .cpu import Number
from .nvme_list import Figure, Namespace, Word, figure, json_object, parse_nvme_list, plain
from .pci import Device, parse_numa_node

CLASS_FOLDER = "/sys/class/nvme"
SMART_DEADLINE_S = 5.0

# What a capture may hold instead: a listing in another form, or health logs that name their drive themselves.
LISTS = (("nvme", "list", "-o", "json"), ("nvme", "list", "-v", "-o", "json"), ("nvme", "list", "-v"), ("nvme", "list"))
LOGS = ("nvme", "smart-log")

_CONTROLLER = re.compile(r"nvme\d{1,4}", re.ASCII)
# The first line of a log in the plain form, or the command before it.
_LOG_OF = re.compile(
    r"Smart Log for NVME device: ?(?:/dev/)?(nvme\d{1,4})|\bsmart-log\b[^\n]{0,60}?/dev/(nvme\d{1,4})", re.ASCII
)
_NAMELESS = "nvme"
_MOST_LOGS = 1024
_ABSOLUTE_ZERO_C = -273.15
# PCI classes of RAID and SAS controllers (pci.ids), and whose they are by their driver.
_RAID_CLASSES = ("0104", "0107")
_RAID_NAMES: Mapping[str, str] = {
    "megaraid_sas": "Broadcom MegaRAID", "mpt3sas": "Broadcom SAS host adapter", "mpi3mr": "Broadcom SAS4 adapter",
    "smartpqi": "Microchip SmartRAID", "hpsa": "HPE Smart Array", "aacraid": "Adaptec RAID", "arcmsr": "Areca RAID",
    "vmd": "Intel Volume Management Device", "ahci": "SATA in RAID mode", "mvumi": "Marvell RAID",
    "mpt2sas": "LSI SAS2 host adapter", "isci": "Intel SAS", "pm80xx": "Microchip SAS host adapter",
}  # fmt: skip


@dataclass(frozen=True)
class Controller:
    """An NVMe controller as the kernel shows it.  ``address`` is its PCI function, or where a fabric leads."""

    name: str
    model: Word
    serial: Word
    firmware: Word
    state: Word
    transport: Word
    address: Word
    numa_node: Number
    temperature_c: Figure
    temperature_limit_c: Figure


@dataclass(frozen=True)
class Smart:
    """The SMART log.  ``critical_warning`` is a bit mask (NVMe base specification, SMART log page 02h)."""

    critical_warning: Number
    temperature_k: Figure
    spare_percent: Number
    spare_threshold_percent: Number
    used_percent: Number
    media_errors: Number
    error_log_entries: Number
    power_on_hours: Number
    power_cycles: Number
    unsafe_shutdowns: Number
    warning_temp_minutes: Number
    critical_temp_minutes: Number

    @property
    def temperature_c(self) -> Figure:
        kelvin = self.temperature_k
        return kelvin if isinstance(kelvin, Unknown) else round(kelvin - 273.15, 2)


@dataclass(frozen=True)
class RaidController:
    address: str
    name: str
    vendor_id: str
    device_id: str
    driver: Optional[str]


def observe(host: Host) -> Union[Tuple[Controller, ...], Unknown]:
    """The controllers from sysfs; in a capture without it, from a recorded ``nvme list``."""
    names = sorted((name for name in host.listdir(CLASS_FOLDER) if _CONTROLLER.fullmatch(name)), key=_number_in)
    if names or host.is_live or host.exists(CLASS_FOLDER):
        return tuple(_controller(host, name) for name in names)
    for argv in LISTS:
        text = host.run(argv).text()
        if isinstance(text, str):
            return controllers_of(parse_nvme_list(text))
    return Unknown("neither %s nor nvme list was captured" % CLASS_FOLDER)


def observe_smart(host: Host, names: Sequence[str]) -> Dict[str, Union[Smart, Unknown]]:
    """The health of each controller, one short run of nvme(1) for each, until it is missing or hangs on one of them.

    A capture may hold health logs without a listing of the controllers.
    """
    found: Dict[str, Union[Smart, Unknown]] = {}
    reason: Optional[Unknown] = None
    for name in names:
        if reason is not None:
            found[name] = reason
            continue
        text = host.run(["nvme", "smart-log", "-o", "json", "/dev/" + name], SMART_DEADLINE_S).text()
        if isinstance(text, Unknown) and "not recorded" in text.reason:
            plain_text = host.run(["nvme", "smart-log", "/dev/" + name]).text()
            text = plain_text if isinstance(plain_text, str) else text
        if isinstance(text, Unknown) and "is not installed" in text.reason:
            reason = text
        elif isinstance(text, Unknown) and "hung" in text.reason:
            # Each further drive could cost its deadline as well.
            reason = Unknown("not asked: nvme hung on %s" % name)
        found[name] = parse_smart_log(text)
    is_told = reason is not None or any(isinstance(one, Smart) for one in found.values())
    return found if host.is_live or is_told else {**found, **_lone_logs(host, names)}


def _lone_logs(host: Host, names: Sequence[str]) -> Dict[str, Union[Smart, Unknown]]:
    """Logs that were recorded without the name of a drive; beside a listing of one drive it is that one's."""
    logs = parse_smart_logs(host.run(LOGS).text())
    if list(logs) == [_NAMELESS] and len(names) == 1:
        return {names[0]: logs[_NAMELESS]}
    return logs


def parse_smart_logs(text: Text) -> Dict[str, Union[Smart, Unknown]]:
    """Logs of several drives in one text, by the controllers that they name; a log that names none is of "nvme"."""
    if not isinstance(text, str):
        return {}
    text = plain(text)
    heads = list(_LOG_OF.finditer(text))[:_MOST_LOGS]
    found: Dict[str, Union[Smart, Unknown]] = {}
    ends = [head.start() for head in heads[1:]] + [len(text)]
    for head, end in zip(heads, ends):
        log = parse_smart_log(text[head.end() : end])
        if not isinstance(log, Unknown):
            found[head.group(1) or head.group(2)] = log
    return found or {_NAMELESS: parse_smart_log(text)}


def raid_controllers(devices: Sequence[Device]) -> Tuple[RaidController, ...]:
    """Which of the PCI devices stand between the system and its disks."""
    return tuple(
        RaidController(
            device.address,
            _RAID_NAMES.get(
                device.driver or "", "RAID controller" if device.class_code[:4] == "0104" else "SAS controller"
            ),
            device.vendor_id,
            device.device_id,
            device.driver,
        )
        for device in devices
        if device.class_code.startswith(_RAID_CLASSES)
    )


def controllers_of(namespaces: Union[Tuple[Namespace, ...], Unknown]) -> Union[Tuple[Controller, ...], Unknown]:
    if isinstance(namespaces, Unknown):
        return namespaces
    unseen = Unknown("nvme list does not tell")
    found: Dict[str, Controller] = {}
    for one in namespaces:
        controller = Controller(
            one.controller, one.model, one.serial, one.firmware, unseen, one.transport, one.address, unseen, unseen, unseen
        )  # fmt: skip
        found.setdefault(one.controller, controller)
    return tuple(found.values())


def parse_smart_log(text: Text) -> Union[Smart, Unknown]:
    """``nvme smart-log``, plain or -o json: numbers may be floats, texts, or objects with a ``value``."""
    if not isinstance(text, str):
        return text if isinstance(text, Unknown) else Unknown("nvme was not run")
    text = plain(text)
    found = json_object(text)
    said = _smart_rows(text) if found is None else found
    if isinstance(said, Unknown):
        return said
    known = {_plain_key(key): value for key, value in said.items()}
    if "critical_warning" not in known and "temperature" not in known:
        return Unknown("no SMART log: %r" % text.strip()[:80])

    def number(*names: str) -> Number:
        value = figure(next((known[name] for name in names if name in known), None))
        return value if isinstance(value, Unknown) else int(value)

    kelvin = figure(known.get("temperature"))
    if not isinstance(kelvin, Unknown) and kelvin <= 0:
        kelvin = Unknown("the controller measures no temperature")
    return Smart(
        number("critical_warning"),
        kelvin,
        number("avail_spare", "available_spare"),
        number("spare_thresh", "available_spare_threshold"),
        number("percent_used", "percentage_used"),
        number("media_errors"),
        number("num_err_log_entries"),
        number("power_on_hours"),
        number("power_cycles"),
        number("unsafe_shutdowns"),
        number("warning_temp_time", "warning_temperature_time"),
        number("critical_comp_time", "critical_composite_temperature_time"),
    )


def _controller(host: Host, name: str) -> Controller:
    folder = "%s/%s/" % (CLASS_FOLDER, name)

    def said(attribute: str) -> Word:
        text = host.read(folder + attribute)
        if isinstance(text, str):
            return text.strip() or Unknown("%s is empty" % attribute)
        return text if isinstance(text, Unknown) else Unknown("the kernel shows no %s" % attribute)

    address = said("address")
    if isinstance(address, Unknown):
        # Kernels before 4.5 have no such attribute: the device is the PCI function.
        target = (host.readlink(folder + "device") or "").rsplit("/", 1)[-1]
        address = target if re.fullmatch(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", target) else address
    sensor = _sensor(host, folder)
    return Controller(
        name,
        said("model"),
        said("serial"),
        said("firmware_rev"),
        said("state"),
        said("transport"),
        address,
        _node(host, folder),
        _milli(host, sensor, "temp1_input"),
        _milli(host, sensor, "temp1_crit"),
    )


def _node(host: Host, folder: str) -> Number:
    own = parse_numa_node(host.read(folder + "numa_node"))
    return own if not isinstance(own, Unknown) else parse_numa_node(host.read(folder + "device/numa_node"))


def _sensor(host: Host, folder: str) -> str:
    """The folder of its temperature: below the controller, or below its PCI function on kernels before 5.7."""
    for place in (folder, folder + "hwmon/", folder + "device/hwmon/"):
        for name in host.listdir(place):
            if re.fullmatch(r"hwmon\d{1,4}", name, re.ASCII):
                return place + name + "/"
    return ""


def _milli(host: Host, sensor: str, attribute: str) -> Figure:
    """hwmon counts in thousandths of a degree."""
    if not sensor:
        return Unknown("the kernel shows no temperature of it")
    text = host.read(sensor + attribute)
    found = re.fullmatch(r"(-?\d{1,9})\s*", text, re.ASCII) if isinstance(text, str) else None
    if not found:
        return text if isinstance(text, Unknown) else Unknown("the kernel shows no %s" % attribute)
    celsius = int(found.group(1)) / 1000
    return celsius if celsius > _ABSOLUTE_ZERO_C else Unknown("the controller measures no temperature")


def _smart_rows(text: str) -> Dict[str, Any]:
    found: Dict[str, Any] = {}
    for line in lines(text):
        key, colon, value = line.strip(" \t>#").partition(":")
        if colon and key.strip():
            value = value.strip()
            # "37 °C (310 K)" or "37°C (310 Kelvin)" or "37 C": the JSON form gives Kelvin.
            if key.strip() == "temperature":
                value = _kelvin(value)
            found.setdefault(key.strip(), value)
    return found


def _kelvin(text: str) -> str:
    kelvin = re.search(r"(\d{1,4}) ?K", text, re.ASCII)
    if kelvin:
        return kelvin.group(1)
    celsius = re.match(r"(-?\d{1,4})\s*\S?C", text, re.ASCII)
    # Controllers count in whole Kelvin, and nvme(1) subtracts 273.
    return str(int(celsius.group(1)) + 273) if celsius else text


def _plain_key(key: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", key.strip().lower()).strip("_")


def _number_in(name: str) -> int:
    return int(name[4:])
