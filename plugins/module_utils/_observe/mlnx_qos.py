# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Quality of service of a port as ``mlnx_qos -i`` prints it (mlnx-tools), and the vendor driver's files beside it.

A text whose lines have run together (copied from a web page) is unreadable: a wrong PFC is never made of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Dict, FrozenSet, List, Mapping, Optional, Tuple, Union

from .._engine.values import Text, Unknown
from .tool_text import Float, Number, Word, clean, output_lines, real, whole

Priorities = Union[FrozenSet[int], Unknown]
Numbers = Union[Tuple[int, ...], Unknown]
DscpMap = Union[Mapping[int, int], Unknown]

PRIORITIES = range(8)

_LABELS = (
    "DCBX mode:",
    "Priority trust state:",
    "dscp2prio mapping:",
    "default priority:",
    "Receive buffer size (bytes):",
    "Cable len:",
    "PFC configuration:",
)
_DCBX = {"OS controlled": "os", "Firmware controlled": "firmware"}
_EIGHT = re.compile(r"(priority|enabled|buffer):?((?:\s+[0-9]{1,3}){8})")
_DSCP = re.compile(r"prio:([0-7]) dscp:((?:[0-9]{1,2},){1,64})")
_CLASS = re.compile(r"tc: ([0-9]{1,2}) ratelimit: ([^,]{1,30}), tsa: ([a-z]{1,10})(?:, bw: ([0-9]{1,3})%)?")
# "up" in the first versions.
_MEMBER = re.compile(r"(?:priority|up):\s+([0-7])")


@dataclass(frozen=True)
class TrafficClass:
    """``ratelimit_gbps`` and ``bandwidth_percent`` are None where there is no limit or share."""

    number: int
    ratelimit_gbps: Union[float, Unknown, None]
    algorithm: str
    bandwidth_percent: Optional[int]
    priorities: Tuple[int, ...]


@dataclass(frozen=True)
class MlnxQos:
    """``dcbx`` is os or firmware: with the latter the switch (or the firmware's LLDP) has the say."""

    dcbx: Word
    trust: Word
    pfc: Priorities
    priority_of_dscp: DscpMap
    buffer_of_priority: Numbers
    buffer_bytes: Numbers
    buffer_total_bytes: Number
    cable_m: Number
    classes: Tuple[TrafficClass, ...]
    warnings: Tuple[str, ...] = ()


def parse_mlnx_qos(text: str) -> MlnxQos:
    rows = [line.strip() for line in output_lines(text)]
    if any(_is_glued(row) for row in rows):
        return _unreadable("unreadable: lines have run together")
    values = {label: _last(rows, label) for label in _LABELS}
    table = _table(rows)
    buffers = values["Receive buffer size (bytes):"]
    trust = values["Priority trust state:"]
    return MlnxQos(
        _one_of(values["DCBX mode:"], _DCBX),
        _trust(rows, trust),
        _pfc(rows, table),
        _dscp_map(rows, trust),
        table["buffer"],
        _buffer_sizes(buffers),
        _buffer_total(buffers),
        whole(values["Cable len:"]) if values["Cable len:"] else Unknown("not printed"),
        _classes(rows),
        tuple(row for row in rows if "WARNING" in row or "not supported" in row),
    )


def parse_trust(text: Text) -> Word:
    """``/sys/class/net/IF/qos/trust`` of the vendor driver."""
    word = text.strip() if isinstance(text, str) else ""
    if word in ("dscp", "pcp"):
        return word
    return text if isinstance(text, Unknown) else Unknown("not understood: %r" % word[:40] if word else "no such file")


def parse_traffic_class(text: Text) -> Union[int, Unknown, None]:
    """The ToS byte of ``tc/N/traffic_class`` below an RDMA device (vendor driver), None when unset (an empty file).

    Of a pasted session the last value counts.
    """
    if not isinstance(text, str):
        return Unknown("no traffic_class file: the kernel's own driver has none") if text is None else text
    found = re.findall(r"tclass\s*=\s*([0-9]{1,4})\b", clean(text)) or re.findall(r"\A\s*([0-9]{1,3})\s*\Z", text)
    if not found:
        return None if not re.sub(r"(?m)^[#$].*$", "", clean(text)).strip() else Unknown("not understood")
    return int(found[-1]) if int(found[-1]) < 256 else Unknown("not a ToS byte: %s" % found[-1])


def dscp_of(tos: int) -> int:
    """The DSCP in a ToS byte; the low two bits are ECN (RFC 2474, RFC 3168)."""
    return tos >> 2


def _unreadable(reason: str) -> MlnxQos:
    why = Unknown(reason)
    return MlnxQos(why, why, why, why, why, why, why, why, ())


def _is_glued(row: str) -> bool:
    """Whether a label stands behind something else on its line."""
    places = [row.find(label) for label in _LABELS]
    if any(place > 0 for place in places) or sum(place == 0 for place in places) > 1:
        return True
    return "<" in row or len(re.findall(r"\b(?:tc: \d|prio:\d|enabled  )", row)) > 1


def _last(rows: List[str], label: str) -> str:
    """The value behind a label, empty where it is missing; two that differ are two interfaces, so none is told."""
    found = {row[len(label) :].strip() for row in rows if row.startswith(label)}
    return found.pop() if len(found) == 1 else ""


def _one_of(word: str, words: Mapping[str, str]) -> Word:
    return words[word] if word in words else Unknown("not understood: %r" % word[:40] if word else "not printed")


def _table(rows: List[str]) -> Dict[str, Numbers]:
    """The rows of the PFC block, each eight numbers."""
    table: Dict[str, Numbers] = {name: Unknown("not printed") for name in ("priority", "enabled", "buffer")}
    for row in rows:
        found = _EIGHT.fullmatch(row)
        name = found.group(1) if found else row.partition(" ")[0].partition("\t")[0]
        if name not in table:
            continue
        numbers: Numbers = Unknown("not eight numbers: %r" % row[:60])
        if found:
            numbers = tuple(int(word) for word in found.group(2).split())
        if isinstance(table[name], tuple) and table[name] != numbers:
            numbers = Unknown("printed twice with different values")
        if not isinstance(table[name], Unknown) or table[name] == Unknown("not printed"):
            table[name] = numbers
    return table


def _pfc(rows: List[str], table: Mapping[str, Numbers]) -> Priorities:
    heads, enabled = table["priority"], table["enabled"]
    if "PFC configuration:" not in rows:
        return Unknown("no PFC block")
    if isinstance(enabled, Unknown):
        return enabled
    if heads != tuple(PRIORITIES) or not set(enabled) <= {0, 1}:
        return Unknown("the PFC block is not understood")
    return frozenset(priority for priority in PRIORITIES if enabled[priority])


def _trust(rows: List[str], word: str) -> Word:
    refused = [row for row in rows if row.startswith("Priority trust state is not supported")]
    return Unknown("not applicable: %s" % refused[0][:80]) if refused else _one_of(word, {"dscp": "dscp", "pcp": "pcp"})


def _dscp_map(rows: List[str], trust: str) -> DscpMap:
    """A priority with more than eight DSCPs goes on in a further line."""
    if "dscp2prio mapping:" not in rows:
        return Unknown("not printed: the port does not trust DSCP" if trust == "pcp" else "not printed")
    mapping: Dict[int, int] = {}
    for row in rows:
        found = _DSCP.fullmatch(row)
        if row.startswith("prio:") and not found:
            return Unknown("not understood: %r" % row[:60])
        for word in found.group(2).split(",")[:-1] if found else ():
            if mapping.setdefault(int(word), int(row[5])) != int(row[5]) or int(word) > 63:
                return Unknown("DSCP %s is not clear" % word)
    return mapping


def _buffer_sizes(row: str) -> Numbers:
    found = re.match(r"((?:[0-9]{1,10},){8})", row)
    return tuple(int(word) for word in found.group(1).split(",")[:-1]) if found else Unknown("not printed")


def _buffer_total(row: str) -> Number:
    found = re.search(r",(?:max_buffer_size|total_size)=([0-9]{1,12}),?$", row)
    return int(found.group(1)) if found else Unknown("not printed")


def _classes(rows: List[str]) -> Tuple[TrafficClass, ...]:
    classes: List[TrafficClass] = []
    for row in rows:
        head, member = _CLASS.fullmatch(row), _MEMBER.fullmatch(row)
        if head:
            share = int(head.group(4)) if head.group(4) else None
            classes.append(TrafficClass(int(head.group(1)), _limit(head.group(2)), head.group(3), share, ()))
        elif member and classes:
            last = classes.pop()
            every = (*last.priorities, int(member.group(1)))
            classes.append(
                TrafficClass(last.number, last.ratelimit_gbps, last.algorithm, last.bandwidth_percent, every)
            )
    return tuple(classes)


def _limit(words: str) -> Union[Float, None]:
    return None if words == "unlimited" else real(words.replace("Gbps", ""))
