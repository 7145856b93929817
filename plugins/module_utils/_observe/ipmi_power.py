# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Power supplies, redundancy, fans and the inlet as the sensors of a management controller tell them."""

from __future__ import annotations

import re
from typing import Dict, List, Optional, Sequence, Tuple, Union

from .._engine.host import Host
from .._engine.values import Unknown
from .ipmi import RAW, REDUNDANCY_NAME, SUPPLY_NAME, Dcmi, Sensor, parse_dcmi_power, parse_sdr
from .power import DEGRADED, LOST, NOT_REDUNDANT, REDUNDANT, Fan, Figure, Flag, Power, Redundancy, Supply

SENSORS = ("ipmitool", "sdr", "elist")
DCMI = ("ipmitool", "dcmi", "power", "reading")
# A capture may hold another table of the same sensors.
_TABLES = (SENSORS, ("ipmitool", "sdr", "elist", "all"), ("ipmitool", "sensor", "list"), ("ipmitool", "sensor"),
           ("ipmitool", "sdr", "list"), ("ipmitool", "sdr"))  # fmt: skip
_PARTS = tuple(("ipmitool", "sdr", "type", kind) for kind in ("Power Supply", "Fan", "Temperature"))
# A controller answers slowly, some dozens of sensors a second; one that answers no more is given up.
SENSORS_DEADLINE_S, DCMI_DEADLINE_S = 20.0, 5.0
DEVICES = ("/dev/ipmi0", "/dev/ipmi/0", "/dev/ipmidev/0")
# Entity 10 is "power supply" (IPMI 2.0, table 43-13).
_SUPPLY_ENTITY = re.compile(r"10\.(\d{1,3})", re.ASCII)
_BAD = re.compile(r"fail|lost|out-of-range|config|error|fault|critical|mismatch", re.IGNORECASE)
_ABSENT = re.compile(r"absent|not present|removed", re.IGNORECASE)
_PRESENT = re.compile(r"presence detected|^present$|device (present|inserted)", re.IGNORECASE)
_FAN_NAME = re.compile(r"fan|tach|blower", re.IGNORECASE)
_INLET_NAMES = (r"inlet", r"ambient", r"front panel|^FP ", r"intake")
_NO_INLET = re.compile(r"outlet|exhaust|gpu|nvme|\bps|psu|cpu|dimm|hdd", re.IGNORECASE)
_DRAW_NAMES = (r"^pwr consumption", r"^(sys|system|total|avg|node|chassis|server)[ _]?(input )?(power|pwr)",
               r"^power[ _](meter|usage|reading)", r"^system level", r"^(total|sys)_?pow",
               r"pw ?consumption")  # fmt: skip
# Controllers and boards that ``sdr elist all`` lists among the sensors.
_LOCATOR = re.compile(r"(?:Dynamic MC|Static MC|Logical FRU|Physical FRU)\s?@", re.IGNORECASE)


def observe(host: Host) -> Power:
    """Two runs of ipmitool, if this host has a controller that it can speak to."""
    if host.is_live and not any(host.exists(path) for path in DEVICES):
        none = Unknown("no IPMI device: %s is not there" % DEVICES[0])
        return Power("ipmi", none, none, none, none, none)
    text = host.run(list(SENSORS), SENSORS_DEADLINE_S).text()
    for argv in () if host.is_live else _TABLES[1:]:
        text = text if isinstance(text, str) else host.run(list(argv)).text()
    if isinstance(text, Unknown) and not host.is_live:
        parts = [host.run(list(argv)).text() for argv in _PARTS]
        text = "\n".join(part for part in parts if isinstance(part, str)) or text
    if isinstance(text, Unknown) and text.reason.startswith("ipmitool"):
        # Not installed, or hung: a second question would only wait as long.
        return Power("ipmi", text, text, text, text, text)
    dcmi = parse_dcmi_power(host.run(list(DCMI), DCMI_DEADLINE_S).text())
    return power_of(parse_sdr(text), dcmi, text if isinstance(text, Unknown) else None)


def power_of(sensors: Sequence[Sensor], dcmi: Optional[Dcmi] = None, reason: Optional[Unknown] = None) -> Power:
    """What the sensors tell of power and cooling."""
    unseen = Unknown("the controller lists no such sensor") if reason is None else reason
    sensors = [sensor for sensor in sensors if not _LOCATOR.match(sensor.reading)]
    supplies, groups, fans = _supplies(sensors), _redundancy(sensors), _fans(sensors)
    draw = dcmi.now_w if dcmi is not None else unseen
    if isinstance(draw, Unknown) or draw == 0:
        # Controllers without a meter answer 0 W.
        draw = _draw(sensors, supplies, unseen)
    return Power("ipmi", supplies or unseen, groups or unseen, fans or unseen, _inlet(sensors, unseen), draw)


def _supplies(sensors: Sequence[Sensor]) -> Tuple[Supply, ...]:
    mine = [
        sensor
        for sensor in sensors
        if not REDUNDANCY_NAME.search(sensor.name)
        and not any("edundan" in state for state in sensor.states)
        and not re.match(_DRAW_NAMES[0], sensor.name, re.IGNORECASE)
    ]
    # Names count better than entities, which some controllers number from 96 on.
    numbers = [(sensor.entity, _number_of(sensor)) for sensor in mine if sensor.entity]
    named = {entity: number for entity, number in numbers if number is not None}
    groups: Dict[int, List[Sensor]] = {}
    for sensor in mine:
        entity = _SUPPLY_ENTITY.fullmatch(sensor.entity)
        number = _number_of(sensor)
        if number is None and entity:
            number = named.get(sensor.entity, int(entity.group(1)))
        if number is not None:
            groups.setdefault(number, []).append(sensor)
    return tuple(_supply(number, groups[number]) for number in sorted(groups))


def _number_of(sensor: Sensor) -> Optional[int]:
    """The N of "PSU N" in the name, unless the sensor sits on something else than a supply."""
    found = SUPPLY_NAME.search(sensor.name)
    is_mine = (
        _SUPPLY_ENTITY.fullmatch(sensor.entity) or not sensor.entity or re.search(r"stat|supply|psu", sensor.name, re.I)
    )
    return int(found.group(1)) if found and is_mine else None


def _supply(number: int, group: Sequence[Sensor]) -> Supply:
    said = tuple(state for sensor in group for state in sensor.states)
    watts = [sensor for sensor in group if sensor.unit.lower() == "watts" and not isinstance(sensor.value, Unknown)]
    inputs = [sensor for sensor in watts if not re.search(r"out", sensor.name, re.IGNORECASE)]
    is_drawing = any(sensor.value for sensor in watts)
    is_present: Flag = Unknown("the controller does not say whether it is present")
    if any(_ABSENT.search(state) for state in said):
        is_present = False
    elif is_drawing or any(_PRESENT.search(state) for state in said):
        is_present = True
    is_bad = any(_BAD.search(state) for state in said) or any(sensor.is_alarm for sensor in group)
    is_ok: Flag = False if is_bad else True if is_present is True else Unknown("the controller does not tell its state")
    if is_present is False:
        is_ok = Unknown("not applicable: no supply in the bay")
    named = next((one for one in group if re.search(r"stat|supply", one.name, re.IGNORECASE)), group[0])
    return Supply(
        named.name if SUPPLY_NAME.search(named.name) else "PSU %d" % number,
        is_present,
        is_ok,
        Unknown("IPMI does not tell the capacity"),
        inputs[0].value if inputs else Unknown("the controller lists no such sensor"),
        Unknown("IPMI sensors do not tell the model"),
        said,
    )


def _redundancy(sensors: Sequence[Sensor]) -> Tuple[Redundancy, ...]:
    found = []
    for sensor in sensors:
        is_about_fans = re.search(r"fan|cool", sensor.name, re.IGNORECASE)
        said = next((state for state in sensor.states if "edundan" in state), "")
        if not is_about_fans and (said or REDUNDANCY_NAME.search(sensor.name)):
            unknown = Unknown("the controller does not tell the count")
            found.append(Redundancy(sensor.name, redundancy_of(said or sensor.reading), unknown, unknown, said))
    return tuple(found)


def redundancy_of(word: str) -> Union[str, Unknown]:
    """One of four words for what a controller says of redundancy (IPMI 2.0, table 42-2, and vendors' own)."""
    said = word.strip().lower()
    for words, state in (
        (("redundancy lost", "insufficient resources", "failed"), LOST),
        (("degraded",), DEGRADED),
        (("non-redundant", "nonredundant", "not redundant", "non redundant"), NOT_REDUNDANT),
        (("fully redundant", "full redundancy", "redundant"), REDUNDANT),
    ):
        if any(part in said for part in words):
            return state
    return Unknown("the controller says %r" % word[:60])


def _fans(sensors: Sequence[Sensor]) -> Tuple[Fan, ...]:
    found = []
    for sensor in sensors:
        unit = sensor.unit.lower()
        is_named = _FAN_NAME.search(sensor.name) is not None and not any("edundan" in state for state in sensor.states)
        is_silent = is_named and sensor.status in ("ns", "na") and not RAW.match(sensor.reading)
        if unit == "rpm" or (is_named and unit in ("percent", "%")) or is_silent:
            unseen = Unknown("the sensor tells no such figure")
            has_figure = not isinstance(sensor.value, Unknown)
            rpm = sensor.value if unit == "rpm" or not has_figure else unseen
            percent = sensor.value if unit in ("percent", "%") else unseen
            is_bad = sensor.is_alarm or any(_BAD.search(state) for state in sensor.states)
            is_ok: Flag = not is_bad if has_figure else Unknown("no reading")
            is_present: Flag = True if has_figure else Unknown("no reading")
            found.append(Fan(sensor.name, is_present, is_ok, rpm, percent))
    return tuple(found)


def _inlet(sensors: Sequence[Sensor], unseen: Unknown) -> Figure:
    for pattern in _INLET_NAMES:
        for sensor in sensors:
            unit = sensor.unit.lower() if sensor.unit.lower().startswith("degrees") else ""
            if unit and re.search(pattern, sensor.name, re.IGNORECASE) and not _NO_INLET.search(sensor.name):
                value = sensor.value
                return round((value - 32) / 1.8, 1) if isinstance(value, float) and unit.endswith("f") else value
    return unseen


def _draw(sensors: Sequence[Sensor], supplies: Sequence[Supply], unseen: Unknown) -> Figure:
    for pattern in _DRAW_NAMES:
        for sensor in sensors:
            is_power = sensor.unit.lower() == "watts" and not isinstance(sensor.value, Unknown) and sensor.value
            if is_power and re.search(pattern, sensor.name, re.IGNORECASE):
                return sensor.value
    inputs = [supply.input_w for supply in supplies if supply.is_present is not False]
    known = [watts for watts in inputs if not isinstance(watts, Unknown)]
    return sum(known) if known and len(known) == len(inputs) else unseen
