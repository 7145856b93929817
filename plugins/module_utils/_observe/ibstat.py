# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Channel adapters as ``ibstat`` and ``ibstatus`` print them (infiniband-diags).

ibstat may stop in the middle (ibpanic).  ibstatus tells less: a block for each port, with the words of sysfs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Dict, List, Mapping, Match, Tuple

from .._engine.values import Unknown
from .rdma_states import parse_physical_state, parse_port_state, parse_rate
from .tool_text import Float, Number, Word, known_int, output_lines, said, whole, without_labels

_ADAPTER = re.compile(r"`{0,3}(?:CA|Switch|Router|iWARP RNIC|\?\?\?):? '([^']{1,64})'")
_STATUS = re.compile(r"Infiniband device '([^']{1,64})' port ([0-9]{1,5}) status:")
_SIGN = re.compile("%s|%s" % (_ADAPTER.pattern, _STATUS.pattern))
_PORT = re.compile(r"Port ([0-9]{1,5}):")
# The names that ibstatus has for the same; its numbers of LIDs are hexadecimal.
_AS_IN_IBSTAT = {
    "base lid": "Base lid",
    "sm lid": "SM lid",
    "state": "State",
    "phys state": "Physical state",
    "rate": "Rate",
    "link_layer": "Link layer",
}
_PORT_KEYS = ("State", "Physical state", "Rate", "Base lid", "SM lid", "Link layer")
_COMPLAINT = re.compile(r"(ibpanic|ibwarn|iberror|ibstat|sh|bash)\b.{0,5}:|.*: command not found|Failed to ")


@dataclass(frozen=True)
class Port:
    """The rate of a port that is down means nothing.  The number is unknown where its line was left out."""

    number: Number
    state: Word
    physical_state: Word
    rate_gbps: Float
    base_lid: Number
    sm_lid: Number
    port_guid: Word
    link_layer: Word


@dataclass(frozen=True)
class Adapter:
    name: str
    type: Word
    port_count: Number
    firmware: Word
    node_guid: Word
    system_image_guid: Word
    ports: Tuple[Port, ...]


@dataclass
class _Block:
    name: str
    values: Dict[str, str] = field(default_factory=dict)
    ports: List[Tuple[Number, Dict[str, str]]] = field(default_factory=list)


@dataclass(frozen=True)
class Ibstat:
    """``complaints`` are the tool's own messages; after an ibpanic the adapters that would follow are missing."""

    adapters: Tuple[Adapter, ...]
    complaints: Tuple[str, ...]

    @property
    def is_partial(self) -> bool:
        short = ((known_int(adapter.port_count) or 0) > len(adapter.ports) for adapter in self.adapters)
        return any(short) or any(line.startswith("ibpanic") for line in self.complaints)


def parse_ibstat(text: str) -> Ibstat:
    """All adapters, in the order printed; outputs of several hosts behind each other keep them all."""
    adapters: List[_Block] = []
    complaints: List[str] = []
    for line in output_lines(without_labels(text, _SIGN)):
        line = line.strip()
        adapter, port, status = _ADAPTER.match(line), _PORT.match(line), _STATUS.match(line)
        if _COMPLAINT.match(line[:300]):
            complaints.append(line[:300])
        elif adapter:
            adapters.append(_Block(adapter.group(1)))
        elif status:
            _add_status(adapters, status)
        elif port and adapters:
            adapters[-1].ports.append((int(port.group(1)), {}))
        elif adapters:
            _add_value(adapters[-1], line)
    return Ibstat(tuple(_adapter(block.name, block.values, block.ports) for block in adapters), tuple(complaints))


def _add_status(adapters: List[_Block], status: Match[str]) -> None:
    if not adapters or adapters[-1].name != status.group(1):
        adapters.append(_Block(status.group(1)))
    adapters[-1].ports.append((int(status.group(2)), {}))


def _add_value(block: _Block, line: str) -> None:
    key, _colon, value = line.partition(":")
    key = _AS_IN_IBSTAT.get(key, key)
    if not block.ports and key in _PORT_KEYS:
        block.ports.append((Unknown("not printed"), {}))
    values = block.ports[-1][1] if block.ports else block.values
    values.setdefault(key, value.strip())


def _adapter(name: str, values: Mapping[str, str], ports: List[Tuple[Number, Dict[str, str]]]) -> Adapter:
    kinds = [value for key, value in values.items() if key.endswith(" type")]
    return Adapter(
        name,
        said(kinds[0] if kinds else None),
        _number(values, "Number of ports"),
        said(values.get("Firmware version")),
        said(values.get("Node GUID")),
        said(values.get("System image GUID")),
        tuple(_port(number, rest) for number, rest in ports),
    )


def _port(number: Number, values: Mapping[str, str]) -> Port:
    state, physical, rate = (values.get(key) for key in ("State", "Physical state", "Rate"))
    return Port(
        number,
        parse_port_state(state) if state else Unknown("not printed"),
        parse_physical_state(physical) if physical else Unknown("not printed"),
        parse_rate(rate) if rate else Unknown("not printed"),
        _number(values, "Base lid"),
        _number(values, "SM lid"),
        said(values.get("Port GUID")),
        said(values.get("Link layer")),
    )


def _number(values: Mapping[str, str], key: str) -> Number:
    return whole(values[key]) if key in values else Unknown("not printed")
