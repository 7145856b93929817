# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Redfish resources in a capture, each under ``redfish get <its @odata.id>``: power, cooling and the system.

No service is asked: that takes a password, which a host does not have.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from .._engine.host import Host, recorded_with
from .._engine.values import Unknown
from .power import DEGRADED, LOST, NOT_HERE, NOT_REDUNDANT, Power, merge
from .redfish import System, parse_system
from .redfish_json import resource, schema_of
from .redfish_power import SOURCE, power_of

GET = ("redfish", "get")
# Of all resources together; one has some dozens of kilobytes.
_MOST_BYTES = 4 * 1024 * 1024
# What a resource is, by its type, as the end of a path that power_of knows.
_PLACES: Mapping[str, str] = {
    "Power": "/Power", "PowerMetrics": "/Power", "Thermal": "/Thermal", "PowerSubsystem": "/PowerSubsystem",
    "PowerSupplyCollection": "/PowerSupplies", "PowerSupply": "/PowerSupplies/1", "ThermalMetrics": "/ThermalMetrics",
    "ThermalSubsystem": "/ThermalSubsystem", "FanCollection": "/Fans", "Fan": "/Fans/1",
}  # fmt: skip
_SINGLE = ("/PowerSupplies/1", "/Fans/1")
_CHASSIS = re.compile(r"/Chassis/([^/]{1,80})")
_BAD = (DEGRADED, NOT_REDUNDANT, LOST)


@dataclass(frozen=True)
class Recorded:
    """``power`` is None where no resource tells of it; a machine may show several systems, of which the host has a BIOS.

    ``is_whole``: it can be counted against another source, as neither single supplies nor several enclosures can.
    """

    power: Optional[Power] = None
    system: Optional[System] = None
    is_whole: bool = True


def observe(host: Host) -> Recorded:
    """What all resources of a capture tell together."""
    chassis: Dict[str, Dict[str, str]] = {}
    systems: List[System] = []
    left = _MOST_BYTES
    for argv in recorded_with(host, GET):
        text = host.run(argv).text()
        left -= len(text) if isinstance(text, str) else 0
        if left < 0:
            break
        kind = kind_of(text) if isinstance(text, str) else ""
        path = " ".join(argv[len(GET) :])
        if isinstance(text, str) and kind in _PLACES:
            found = _CHASSIS.search(path)
            chassis.setdefault(found.group(1) if found else "", {})[path + _PLACES[kind]] = text
        elif kind == "ComputerSystem":
            system = parse_system(text)
            systems += [] if isinstance(system, Unknown) else [system]
    power, is_whole = _together([_of_chassis(texts) for texts in chassis.values()])
    with_bios = [one for one in systems if isinstance(one.bios_version, str)]
    return Recorded(power, next(iter(with_bios + systems), None), is_whole)


def kind_of(text: str) -> str:
    """The schema of a resource without its version; of a supply that was fetched alone in the old model PowerSupply."""
    data = resource(text, "")
    if isinstance(data, Unknown):
        return ""
    names = (schema_of(data) or str(data.get("Type", ""))[:80]).lstrip("#").split(".")
    return names[-1] if names[-1] in _PLACES else names[0]


def joined(ipmi: Power, recorded: Recorded) -> Power:
    """Both sources; the one that names more faults is believed, and where they differ both are named."""
    redfish = recorded.power
    if redfish is None:
        return ipmi
    # Without a fault Redfish comes first: it tells what a supply can give.
    order = [redfish, ipmi] if recorded.is_whole else [ipmi, redfish]
    power = merge(sorted(order, key=lambda one: -_faults(one)))
    return power if recorded.is_whole else replace(power, contradictions=redfish.contradictions)


def _of_chassis(texts: Mapping[str, str]) -> Tuple[Power, bool]:
    """What the resources of one enclosure tell, and whether they tell of all its parts."""
    power = merge(power_of(texts))
    is_whole = not any(path.endswith(_SINGLE) for path in texts)
    return power if is_whole else replace(power, contradictions=()), is_whole


def _faults(power: Power) -> int:
    states = [one.is_ok is False for one in (*_some(power.supplies), *_some(power.fans))]
    return sum(states) + sum(group.state in _BAD for group in _some(power.redundancy))


def _some(value: Any) -> Sequence[Any]:
    return () if isinstance(value, Unknown) else value


def _together(found: Sequence[Tuple[Power, bool]]) -> Tuple[Optional[Power], bool]:
    """Enclosures beside each other do not contradict each other: each has its own supplies and fans."""
    parts = [power for power, _is_whole in found]
    if len(parts) < 2:
        return (parts[0], found[0][1]) if parts else (None, True)
    first = merge([replace(one, supplies=NOT_HERE) for one in parts])

    def every(name: str) -> Any:
        told: Tuple[Any, ...] = tuple(item for one in parts for item in _some(getattr(one, name)))
        return told or getattr(parts[0], name)

    lists = {name: every(name) for name in ("supplies", "redundancy", "fans")}
    return replace(first, source=SOURCE, **lists), sum(bool(_some(one.supplies)) for one in parts) < 2
