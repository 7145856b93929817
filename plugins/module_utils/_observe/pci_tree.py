# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The way from a device up to its root port: each link on it, and where the ways of two devices meet.

``pci_walk`` reads it from sysfs, ``lspci`` from text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import List, Mapping, Optional, Sequence, Tuple, Union

from .._engine.values import Unknown
from .cpu import Number
from .pci_attributes import Bar, ErrorCounts
from .pci_registers import (
    NO_LINK,
    LinkEnd,
    Rate,
    SeenAcs,
    SeenAer,
    SeenBars,
    SeenNumber,
)

_BRIDGE_CLASS = "0604"
_NVIDIA = "10de"
# NVSwitches are other bridges (0680) of NVIDIA: 1af1 on A100 boards, 22a3 on H100 boards (lspci of such hosts).
# Below 1a00 lie chipsets of old desktop boards, whose parts bear the same class.
_SWITCH_CLASS, _FIRST_SWITCH_ID = "0680", 0x1A00
# Makers of cards with a PCIe switch of their own on them, by the classes of the endpoints behind it: Intel and AMD
# display and accelerator cards, NVIDIA networking cards (BlueField).
_CARD_SWITCHES: Mapping[str, Tuple[str, ...]] = {"8086": ("03", "12"), "1002": ("03", "12"), "15b3": ("02",)}
_FACING_UP = ("endpoint", "legacy endpoint", "upstream port", "PCI bridge")
_FACING_DOWN = ("root port", "downstream port")
_NOT_APPLICABLE = "not applicable"
# What such an endpoint says of its link is a made-up 2.5 GT/s x1.
_FAKE_LINK = (1, 2.5)


@dataclass(frozen=True)
class Function:
    """A PCI function.  ``port`` says what it is on PCI Express: endpoint, root port, upstream port, …

    ``acs``, ``aer`` and ``total_vfs`` are None for a function that does not have them.  ``name`` is lspci's; sysfs
    has none.  A function that is dead answers nothing but ones.
    """

    address: str
    vendor_id: str
    device_id: str
    class_code: str
    subsystem: str
    name: str
    driver: Optional[str]
    slot: Optional[str]
    numa_node: Number
    port: Union[str, Unknown]
    link: LinkEnd
    acs: SeenAcs
    max_payload_supported_bytes: Number
    max_payload_bytes: Number
    max_read_request_bytes: Number
    aer: SeenAer
    errors: ErrorCounts
    bars: Union[Tuple[Bar, ...], Unknown]
    resizable_bars: SeenBars
    total_vfs: SeenNumber
    is_dead: bool

    @property
    def is_bridge(self) -> bool:
        return self.class_code.startswith(_BRIDGE_CLASS)

    @property
    def is_nvswitch(self) -> bool:
        is_other_bridge = self.vendor_id == _NVIDIA and self.class_code.startswith(_SWITCH_CLASS)
        return is_other_bridge and (int_of(self.device_id) >= _FIRST_SWITCH_ID or "NVSwitch" in self.name)


@dataclass(frozen=True)
class Wire:
    """A physical link between a port above and a function below; it can do what its weaker end can."""

    upper: str
    lower: str
    width: Number
    speed_gts: Rate
    max_width: Number
    max_speed_gts: Rate


@dataclass(frozen=True)
class Way:
    """From a device (first) up to its root port (last).  ``host_bridge`` is the root bus: ``pci0000:15``.

    ``is_complete`` is False when a function on the way could not be found.
    """

    functions: Tuple[Function, ...]
    host_bridge: str
    is_complete: bool = True

    @property
    def device(self) -> Function:
        return self.functions[0]

    @property
    def wires(self) -> Tuple[Wire, ...]:
        """The links on the way, from the device up; what lies inside of a switch is none."""
        pairs = enumerate(zip(self.functions, self.functions[1:]))
        return tuple(_wire(upper, lower) for place, (lower, upper) in pairs if self._has_wire(place, lower))

    def _has_wire(self, place: int, lower: Function) -> bool:
        """Whether a link leads up from a function: not from a port that faces down, nor from conventional PCI."""
        if isinstance(lower.port, str):
            return lower.port in _FACING_UP
        # Without the configuration space: above a device come a downstream and an upstream port in turn, then the root
        # port, so an odd number of bridges.
        bridges = len(self.functions) - 1
        is_in_turn = bridges % 2 == 0 or place % 2 == 0
        has_link = lower.is_dead or not _has_no_link(lower.link)
        return is_in_turn and has_link and not lower.port.reason.startswith(_NOT_APPLICABLE)

    @property
    def card_wires(self) -> Tuple[Wire, ...]:
        """The links from the edge of the card up: those inside of a card with a switch of its own say nothing."""
        edge = card_edge(self)
        inside = {function.address for function in self.functions[:edge]}
        return tuple(wire for wire in self.wires if wire.lower not in inside)


@dataclass(frozen=True)
class Meeting:
    """Where the ways of two devices meet: ``card``, ``switch``, ``root port``, ``host bridge``, ``numa node``, ``system``.

    ``at`` is the function, root bus or node; ``ports`` are the ports on both ways that traffic between them passes.
    """

    kind: str
    at: str
    ports: Tuple[str, ...]


def card_edge(way: Way) -> int:
    """Place in ``functions`` of the one whose link upward leads out of the card; 0 for a card without a switch."""
    functions = way.functions
    edge = 0
    while edge + 3 <= len(functions) - 1:
        device, port, switch = functions[edge], functions[edge + 1], functions[edge + 2]
        if not (_is(port, "downstream port") and _is(switch, "upstream port")):
            break
        if port.vendor_id != functions[0].vendor_id or switch.vendor_id != functions[0].vendor_id:
            break
        kinds = _CARD_SWITCHES.get(functions[0].vendor_id, ())
        if not (functions[0].class_code.startswith(kinds) if kinds else False) and not _is_fake(device.link, switch):
            break
        edge += 2
    return edge


def narrowest(wires: Sequence[Wire]) -> Optional[Wire]:
    """The link that gives least at full speed with the lanes it has now; an idle card's slow clock does not count."""
    rated = [(bandwidth_gbs(first(wire.width, wire.max_width), wire.max_speed_gts), wire) for wire in wires]
    known = [(rate, wire) for rate, wire in rated if not isinstance(rate, Unknown)]
    return min(known, key=lambda pair: pair[0])[1] if known else None


def bandwidth_gbs(width: Number, speed_gts: Rate) -> Rate:
    """GB/s of one direction after line coding: 8b/10b up to 5 GT/s, 128b/130b above (PCI Express base specification)."""
    if isinstance(width, Unknown):
        return width
    if isinstance(speed_gts, Unknown):
        return speed_gts
    return round(width * speed_gts / 8 * (0.8 if speed_gts <= 5 else 128 / 130), 3)


def meeting(one: Way, other: Way) -> Union[Meeting, Unknown]:
    """Where the ways of two devices meet, the nearest place first."""
    if one.device.address.rsplit(".", 1)[0] == other.device.address.rsplit(".", 1)[0]:
        return Meeting("card", one.device.address.rsplit(".", 1)[0], ())
    above = {function.address for function in other.functions[1:]}
    shared = next((function for function in one.functions[1:] if function.address in above), None)
    if shared is not None:
        is_last = one.is_complete and shared.address == one.functions[-1].address
        is_root = shared.port == "root port" if isinstance(shared.port, str) else is_last
        kind = "root port" if is_root else "switch"
        return Meeting(kind, shared.address, _ports(one, shared.address) + _ports(other, shared.address))
    if not (one.is_complete and other.is_complete):
        return Unknown("the way of %s or %s to its root port is not known" % (one.device.address, other.device.address))
    ports = _ports(one, "") + _ports(other, "")
    if one.host_bridge and one.host_bridge == other.host_bridge:
        return Meeting("host bridge", one.host_bridge, ports)
    nodes = one.device.numa_node, other.device.numa_node
    unknown = next((node for node in nodes if isinstance(node, Unknown)), None)
    if unknown is not None:
        return unknown
    return Meeting("numa node", "node%s" % nodes[0], ports) if nodes[0] == nodes[1] else Meeting("system", "", ports)


def _ports(way: Way, shared: str) -> Tuple[str, ...]:
    """The bridges of a way below where it meets the other, from the device up."""
    found: List[str] = []
    for function in way.functions[1:]:
        if function.address == shared:
            break
        found.append(function.address)
    return tuple(found)


def _wire(upper: Function, lower: Function) -> Wire:
    """Both ends tell the same state; a port's word is taken where the device is silent."""
    is_port = upper.port in _FACING_DOWN if isinstance(upper.port, str) else upper.is_bridge
    ends = (lower.link, upper.link if is_port else lower.link)
    return Wire(
        upper.address,
        lower.address,
        first(ends[0].width, ends[1].width),
        first_rate(ends[0].speed_gts, ends[1].speed_gts),
        _least([end.max_width for end in ends]),
        _least_rate([end.max_speed_gts for end in ends]),
    )


def _is(function: Function, port: str) -> bool:
    """What a function is, or, where that cannot be seen, at least a bridge."""
    return function.port == port if isinstance(function.port, str) else function.is_bridge


def _has_no_link(link: LinkEnd) -> bool:
    values = (link.width, link.max_width)
    return all(isinstance(value, Unknown) and value is not NO_LINK for value in values)


def _is_fake(link: LinkEnd, switch: Function) -> bool:
    is_wider = not isinstance(switch.link.max_width, Unknown) and switch.link.max_width > 1
    return (link.max_width, link.max_speed_gts) == _FAKE_LINK and is_wider


def first(value: Union[int, Unknown, None], spare: Number) -> Number:
    return spare if value is None or isinstance(value, Unknown) else value


def first_rate(value: Union[float, Unknown, None], spare: Rate) -> Rate:
    return spare if value is None or isinstance(value, Unknown) else value


def _least(values: Sequence[Number]) -> Number:
    known = [value for value in values if not isinstance(value, Unknown)]
    return min(known) if known else values[0]


def _least_rate(values: Sequence[Rate]) -> Rate:
    known = [value for value in values if not isinstance(value, Unknown)]
    return min(known) if known else values[0]


def int_of(text: str) -> int:
    return int(text, 16) if re.fullmatch(r"[0-9a-f]{1,8}", text, re.ASCII) else 0
