# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Power and cooling as Redfish tells it, in the old model and the new one.

Old: Power and Thermal of a chassis.  New (DMTF 2020.4 on): PowerSubsystem with PowerSupplies and their metrics,
ThermalSubsystem with Fans and ThermalMetrics.  Each parser gives a part; ``power.merge`` joins them.
"""

from __future__ import annotations

import re
from typing import Any, List, Mapping, Sequence, Set, Tuple, Union

from .._engine.values import Text, Unknown
from .power import (
    DEGRADED,
    LOST,
    NOT_HERE,
    NOT_REDUNDANT,
    REDUNDANT,
    Fan,
    Figure,
    Flag,
    Power,
    Redundancy,
    Supply,
)
from .redfish_json import count, expanded, figure, first, name_of, part, parts, positive, presence, resource, word

SOURCE = "redfish"
_GOOD, _BAD = ("ok",), ("warning", "critical")
_WORKING = ("enabled", "standbyspare", "standbyoffline", "standby", "quiesced", "qualified", "inrange")
_INLET = ("intake", "ambient", "room")
_INLET_NAME = re.compile(r"inlet|ambient|intake|front[ _]panel|temp[ _]front", re.IGNORECASE)
_NO_INLET = re.compile(r"outlet|exhaust|gpu|cpu|psu?\b|power supply", re.IGNORECASE)
# No enclosure has as many of anything.
_MOST_PARTS = 512
_BAD_INPUT = ("lossofinput", "outofrange")


def parse_power(text: Text) -> Power:
    """``/Chassis/<id>/Power``."""
    data = resource(text, "Power")
    if isinstance(data, Unknown):
        return _nothing(data)
    supplies, groups = parts(data, "PowerSupplies"), parts(data, "Redundancy")
    controls = parts(data, "PowerControl") or []
    return Power(
        SOURCE,
        _some([_supply(one, n + 1) for n, one in enumerate(supplies)] if supplies is not None else None, "supplies"),
        _some([_group(one) for one in groups] if groups is not None else None, "redundancy"),
        NOT_HERE,
        NOT_HERE,
        first(*(positive(one, "PowerConsumedWatts") for one in [*controls, data])),
    )


def parse_power_subsystem(text: Text) -> Power:
    """``/Chassis/<id>/PowerSubsystem``: redundancy; the supplies are a resource of their own."""
    data = resource(text, "PowerSubsystem")
    if isinstance(data, Unknown):
        return _nothing(data)
    groups = parts(data, "PowerSupplyRedundancy")
    supplies = parts(part(data, "PowerSupplies"), "Members")
    told = [one for one in supplies or [] if len(one) > 1]
    return Power(
        SOURCE,
        tuple(_supply(one) for one in told) if told else NOT_HERE,
        _some([_group(one) for one in groups] if groups is not None else None, "redundancy"),
        NOT_HERE,
        NOT_HERE,
        positive(part(data, "Allocation"), "ConsumedWatts"),
    )


def parse_power_supplies(text: Text) -> Power:
    """``…/PowerSubsystem/PowerSupplies`` with expanded members, or a single PowerSupply."""
    members = expanded(text, "PowerSupply")
    if isinstance(members, Unknown):
        return _nothing(members)
    supplies = _some([_supply(one) for one in members], "supplies")
    return Power(SOURCE, supplies, NOT_HERE, NOT_HERE, NOT_HERE, NOT_HERE)


def parse_power_supply_metrics(text: Text) -> Figure:
    """``…/PowerSupplies/<id>/Metrics``: watts drawn at the input."""
    data = resource(text, "PowerSupplyMetrics")
    return data if isinstance(data, Unknown) else figure(data, "InputPowerWatts")


def parse_thermal(text: Text) -> Power:
    """``/Chassis/<id>/Thermal``."""
    data = resource(text, "Thermal")
    if isinstance(data, Unknown):
        return _nothing(data)
    fans, temperatures = parts(data, "Fans"), parts(data, "Temperatures")
    return Power(
        SOURCE,
        NOT_HERE,
        NOT_HERE,
        _some([_fan(one) for one in fans] if fans is not None else None, "fans"),
        _inlet(temperatures or [], "ReadingCelsius"),
        NOT_HERE,
    )


def parse_thermal_metrics(text: Text) -> Power:
    """``/Chassis/<id>/ThermalSubsystem/ThermalMetrics``: the inlet."""
    data = resource(text, "ThermalMetrics")
    if isinstance(data, Unknown):
        return _nothing(data)
    summary = part(data, "TemperatureSummaryCelsius")
    told = [figure(summary, name) for name in ("Intake", "Ambient")]
    inlet = next((value for value in told if isinstance(value, float)), None)
    if inlet is None:
        inlet_c = _inlet(parts(data, "TemperatureReadingsCelsius") or [], "Reading")
        return Power(SOURCE, NOT_HERE, NOT_HERE, NOT_HERE, inlet_c, NOT_HERE)
    return Power(SOURCE, NOT_HERE, NOT_HERE, NOT_HERE, inlet, NOT_HERE)


def parse_fans(text: Text) -> Power:
    """``…/ThermalSubsystem/Fans`` with expanded members, a single Fan, or a ThermalSubsystem that holds them."""
    data = resource(text, "")
    if not isinstance(data, Unknown) and parts(part(data, "Fans"), "Members"):
        members: Union[Sequence[Mapping[str, Any]], Unknown] = parts(part(data, "Fans"), "Members") or []
    else:
        members = expanded(text, "Fan")
    if isinstance(members, Unknown):
        return _nothing(members)
    fans = _some([_fan(one) for one in members if len(one) > 1], "fans")
    return Power(SOURCE, NOT_HERE, NOT_HERE, fans, NOT_HERE, NOT_HERE)


def parse_environment_metrics(text: Text) -> Power:
    """``/Chassis/<id>/EnvironmentMetrics``: what the chassis draws."""
    data = resource(text, "EnvironmentMetrics")
    if isinstance(data, Unknown):
        return _nothing(data)
    return Power(SOURCE, NOT_HERE, NOT_HERE, NOT_HERE, NOT_HERE, positive(data, "PowerWatts"))


def _supply(data: Mapping[str, Any], place: int = 0) -> Supply:
    is_present = presence(data)
    told = [figure(data, name) for name in ("PowerInputWatts", "LastPowerInputWatts", "InputPowerWatts")]
    status = part(data, "Status")
    line = word(data, "LineInputStatus")
    said = [word(status, "State"), word(status, "Health"), line]
    has_input = not isinstance(line, str) or line.lower() not in _BAD_INPUT
    return Supply(
        _label(data) or ("PSU %d" % place if place else ""),
        is_present,
        _is_ok(data, is_present, "no supply in the bay") if has_input or is_present is False else False,
        first(positive(data, "PowerCapacityWatts"), _rated(data)),
        next((watts for watts in told if isinstance(watts, float)), told[0]),
        word(data, "Model"),
        tuple(one for one in said if isinstance(one, str)),
    )


def _rated(data: Mapping[str, Any]) -> Figure:
    """The capacity at any input; where that depends on the voltage of the line, it is not known."""
    ranges = parts(data, "InputRanges") or []
    told: Set[Figure] = {first(positive(one, "CapacityWatts"), positive(one, "OutputWattage")) for one in ranges}
    return told.pop() if len(told) == 1 else Unknown("no capacity that holds at each input")


def _label(data: Mapping[str, Any]) -> str:
    """The name of a supply with its number, where all of them bear the same name."""
    name, number = word(data, "Name"), name_of(data)
    if isinstance(name, Unknown):
        return number
    return name if re.search(r"\d", name) or not number or number == name else "%s %s" % (name, number)


def _is_ok(data: Mapping[str, Any], is_present: Flag, absent: str) -> Flag:
    """Health decides; where it is not told, a state of failure does."""
    if is_present is False:
        return Unknown("not applicable: %s" % absent)
    status = part(data, "Status")
    health, state = word(status, "Health"), word(status, "State")
    if isinstance(state, str) and state.lower() not in _WORKING:
        return False if state.lower() in ("unavailableoffline", "disabled", "degraded") else Unknown("state %s" % state)
    if isinstance(health, Unknown):
        return health
    return True if health.lower() in _GOOD else False if health.lower() in _BAD else Unknown("health %s" % health[:40])


def _group(data: Mapping[str, Any]) -> Redundancy:
    members = parts(data, "RedundancySet")
    members = parts(data, "RedundancyGroup") if members is None else members
    needed = count(data, "MinNumNeeded")
    needed = count(data, "MinNeededInGroup") if isinstance(needed, Unknown) else needed
    status = part(data, "Status")
    mode = word(data, "Mode")
    mode = word(data, "RedundancyType") if isinstance(mode, Unknown) else mode
    said = [mode, word(status, "State"), word(status, "Health")]
    size = len(members) if members is not None else count(data, "RedundancySet@odata.count")
    return Redundancy(
        _label(data),
        _redundancy_state(data, size),
        needed,
        size if size else Unknown("the group lists no supplies"),
        ", ".join(one for one in said if isinstance(one, str)),
    )


def _redundancy_state(data: Mapping[str, Any], size: Union[int, Unknown]) -> Union[str, Unknown]:
    """A group without supplies says "OK" as well, which tells nothing."""
    status = part(data, "Status")
    health, state = word(status, "Health"), word(status, "State")
    mode = [word(data, name) for name in ("Mode", "RedundancyType")]
    if "NotRedundant" in mode:
        return NOT_REDUNDANT
    if size == 0:
        return Unknown("the group lists no supplies")
    if isinstance(state, str) and state.lower() in ("disabled", "absent"):
        return NOT_REDUNDANT
    if isinstance(health, Unknown):
        return health
    states = {"ok": REDUNDANT, "warning": DEGRADED, "critical": LOST}
    return states.get(health.lower(), Unknown("health %s" % health[:40]))


def _fan(data: Mapping[str, Any]) -> Fan:
    is_present = presence(data)
    unit = data.get("ReadingUnits", data.get("Units"))
    reading = first(figure(data, "Reading"), figure(data, "CurrentReading"))
    speed = part(data, "SpeedPercent")
    rpm, percent = figure(speed, "SpeedRPM"), figure(speed, "Reading")
    if unit == "RPM":
        rpm = reading
    elif unit == "Percent" or (unit is None and not speed):
        percent = reading
    if isinstance(rpm, Unknown):
        told = figure(data, "ReadingRPM")
        rpm = rpm if isinstance(told, Unknown) else told
    name = word(data, "Name")
    old_name = word(data, "FanName")
    return Fan(
        name if isinstance(name, str) else old_name if isinstance(old_name, str) else name_of(data),
        is_present,
        _is_ok(data, is_present, "no fan in the bay"),
        rpm,
        percent,
    )


def _inlet(temperatures: Sequence[Mapping[str, Any]], reading: str) -> Figure:
    """The first sensor at the intake, by its place or by its name."""
    by_place, by_name = [], []
    for one in temperatures:
        value = first(figure(one, reading), figure(one, "CurrentReading"))
        place, name = word(one, "PhysicalContext"), word(one, "Name")
        name = name if isinstance(name, str) else str(one.get("DeviceName") or "")
        if isinstance(value, Unknown) or presence(one) is False or _NO_INLET.search(name):
            continue
        if isinstance(place, str) and place.lower() in _INLET:
            by_place.append(value)
        elif _INLET_NAME.search(name):
            by_name.append(value)
    return (by_place + by_name + [Unknown("no sensor at the inlet")])[0]


def _some(found: Any, what: str) -> Any:
    """A list that is absent or empty tells nothing: machines without any supply do not run."""
    if found is None:
        return Unknown("the resource has no %s" % what)
    return tuple(found[:_MOST_PARTS]) or Unknown("the resource lists no %s" % what)


def _nothing(reason: Unknown) -> Power:
    return Power(SOURCE, reason, reason, reason, reason, reason)


def power_of(texts: Mapping[str, Text]) -> Tuple[Power, ...]:
    """A part for each resource that was fetched, by its path; what is of no use here is left out."""
    parsers = (
        (r"/Power/?$", parse_power),
        (r"/Thermal/?$", parse_thermal),
        (r"/PowerSubsystem/?$", parse_power_subsystem),
        (r"/PowerSupplies/?$", parse_power_supplies),
        (r"/ThermalMetrics/?$", parse_thermal_metrics),
        (r"/Chassis/[^/]+/EnvironmentMetrics/?$", parse_environment_metrics),
        (r"/(Fans|ThermalSubsystem)/?$", parse_fans),
    )
    found: List[Power] = []
    for path in sorted(texts):
        found += [parse(texts[path]) for pattern, parse in parsers if re.search(pattern, path)]
    singles = [
        parse_power_supplies(texts[path]) for path in sorted(texts) if re.search(r"/PowerSupplies/[^/]+/?$", path)
    ]
    singles += [parse_fans(texts[path]) for path in sorted(texts) if re.search(r"/Fans/[^/]+/?$", path)]
    supplies = [one for part_ in singles if isinstance(part_.supplies, tuple) for one in part_.supplies]
    fans = [one for part_ in singles if isinstance(part_.fans, tuple) for one in part_.fans]
    if supplies or fans:
        found.append(Power(SOURCE, tuple(supplies) or NOT_HERE, NOT_HERE, tuple(fans) or NOT_HERE, NOT_HERE, NOT_HERE))
    return tuple(found)
