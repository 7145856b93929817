# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Channel adapters as ``ibstat`` prints them (infiniband-diags): it may stop in the middle (ibpanic)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Dict, List, Mapping, Tuple

from .._engine.values import Unknown
from .rdma_states import parse_physical_state, parse_port_state, parse_rate
from .tool_text import Float, Number, Word, clean, known_int, said, whole

_ADAPTER = re.compile(r"(?:CA|Switch|Router|iWARP RNIC|\?\?\?):? '([^']{1,64})'")
_PORT = re.compile(r"Port ([0-9]{1,5}):")
_COMPLAINT = re.compile(r"(ibpanic|ibwarn|iberror|ibstat|sh|bash)\b.{0,5}:|.*: command not found|Failed to ")


@dataclass(frozen=True)
class Port:
    """The rate of a port that is down means nothing."""

    number: int
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
    adapters: List[Tuple[str, Dict[str, str], List[Tuple[int, Dict[str, str]]]]] = []
    complaints: List[str] = []
    for line in clean(text).splitlines():
        line = line.strip()
        adapter, port = _ADAPTER.match(line), _PORT.match(line)
        if _COMPLAINT.match(line[:300]):
            complaints.append(line[:300])
        elif adapter:
            adapters.append((adapter.group(1), {}, []))
        elif port and adapters:
            adapters[-1][2].append((int(port.group(1)), {}))
        elif adapters:
            key, _colon, value = line.partition(":")
            values = adapters[-1][2][-1][1] if adapters[-1][2] else adapters[-1][1]
            values.setdefault(key, value.strip())
    found = (_adapter(name, values, ports) for name, values, ports in adapters)
    return Ibstat(tuple(found), tuple(complaints))


def _adapter(name: str, values: Mapping[str, str], ports: List[Tuple[int, Dict[str, str]]]) -> Adapter:
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


def _port(number: int, values: Mapping[str, str]) -> Port:
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
