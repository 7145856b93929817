# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Power supplies, fans and the inlet of a host: one value, whether IPMI or Redfish tells it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, List, Sequence, Tuple, Union

from .._engine.values import Unknown
from .cpu import Number

Figure = Union[float, Unknown]
Flag = Union[bool, Unknown]

NOT_HERE = Unknown("not part of this resource")
# Words for how redundant the supplies are, from best to worst.
REDUNDANT, DEGRADED, NOT_REDUNDANT, LOST = "redundant", "degraded", "not redundant", "lost"


@dataclass(frozen=True)
class Supply:
    """A power supply.  ``said`` holds the controller's own words."""

    name: str
    is_present: Flag
    is_ok: Flag
    capacity_w: Figure
    input_w: Figure
    model: Union[str, Unknown]
    said: Tuple[str, ...] = ()


@dataclass(frozen=True)
class Redundancy:
    """A group of supplies: ``state`` is one of the four words above."""

    name: str
    state: Union[str, Unknown]
    needed: Number
    supplies: Number
    said: str = ""


@dataclass(frozen=True)
class Fan:
    name: str
    is_present: Flag
    is_ok: Flag
    speed_rpm: Figure
    speed_percent: Figure


@dataclass(frozen=True)
class Power:
    """What one source says, or several together.  ``contradictions`` name where those do not agree."""

    source: str
    supplies: Union[Tuple[Supply, ...], Unknown]
    redundancy: Union[Tuple[Redundancy, ...], Unknown]
    fans: Union[Tuple[Fan, ...], Unknown]
    inlet_c: Figure
    draw_w: Figure
    contradictions: Tuple[str, ...] = ()


def merge(parts: Sequence[Power]) -> Power:
    """The first that knows a thing tells it; where a later one says otherwise, that is noted."""
    if not parts:
        none = Unknown("nothing tells of power supplies")
        return Power("", none, none, none, none, none)
    notes = [note for part in parts for note in part.contradictions]
    notes += _contradictions(parts)
    return Power(
        ", ".join(part.source for part in parts if part.source),
        _first([part.supplies for part in parts]),
        _first([part.redundancy for part in parts]),
        _first([part.fans for part in parts]),
        _first([part.inlet_c for part in parts]),
        _first([part.draw_w for part in parts]),
        tuple(notes),
    )


def redundancy_state(power: Power) -> Union[str, Unknown]:
    """The worst of all groups."""
    if isinstance(power.redundancy, Unknown):
        return power.redundancy
    order = (REDUNDANT, DEGRADED, NOT_REDUNDANT, LOST)
    states = [group.state for group in power.redundancy]
    known = [state for state in states if isinstance(state, str)]
    unknown = next((state for state in states if isinstance(state, Unknown)), Unknown("no group is listed"))
    return max(known, key=order.index) if known else unknown


def _first(values: Sequence[Any]) -> Any:
    """The first that is known, else the reason of a source that should have told."""
    known = [value for value in values if not isinstance(value, Unknown)]
    asked = [value for value in values if value is not NOT_HERE]
    return (known or asked or values)[0]


def _contradictions(parts: Sequence[Power]) -> List[str]:
    notes: List[str] = []
    seen = [(part.source, part.supplies) for part in parts if not isinstance(part.supplies, Unknown)]
    for (one, mine), (other, theirs) in zip(seen, seen[1:]):
        for what, name in (("present", "is_present"), ("in order", "is_ok")):
            counts = [_count(supplies, name) for supplies in (mine, theirs)]
            if not any(isinstance(count, Unknown) for count in counts) and counts[0] != counts[1]:
                notes.append("%s says that %s supplies are %s, %s says %s" % (one, counts[0], what, other, counts[1]))
    return notes


def _count(supplies: Any, name: str) -> Number:
    """How many supplies have a flag; Unknown when it is not known of all of them."""
    flags = [getattr(supply, name) for supply in supplies if supply.is_present is not False or name == "is_present"]
    unknown = next((flag for flag in flags if isinstance(flag, Unknown)), None)
    return sum(flags) if unknown is None else unknown
