# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What ``ethtool`` prints of an interface: driver (-i), counters (-S), pause (-a), link, module (-m), rings, coalescing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Tuple

from .._engine.values import Unknown
from .tool_text import (
    Flag,
    Float,
    Number,
    Word,
    clean,
    find_json,
    no_value,
    output_lines,
    real,
    said,
    switch,
    whole,
)

_HEADING = re.compile(
    r"(?:.{1,60} for ([^\s:]{1,64})|NIC statistics|Statistics|Pre-set maximums|Current hardware settings"
    r"|Port [0-9]{1,3} (?:hw|cm) counters|Standard stats for [^\s:]{1,64})",
)
_COMPLAINT = re.compile(
    r"cannot |no stat|no data|netlink error|operation not|no such device|invalid|error|usage|failed|bad command"
    r"|\S{1,20}: command not found",
    re.IGNORECASE,
)
_PSID = re.compile(r"(\S{1,40}) \(([A-Z0-9_]{4,40})\)")


@dataclass(frozen=True)
class Output:
    """Any output of ethtool: rows of (heading, key, value), and its messages."""

    interface: Optional[str]
    headings: Tuple[str, ...]
    rows: Tuple[Tuple[str, str, str], ...]
    complaints: Tuple[str, ...]

    def value(self, key: str, heading: str = "") -> Optional[str]:
        """The first value of a key (below a heading, if one is given), in whatever case it is written."""
        wanted = key.lower()
        found = (v for h, k, v in self.rows if k.lower() == wanted and heading in ("", h))
        return next(found, None)


@dataclass(frozen=True)
class Driver:
    """``psid`` is the board id that Mellanox firmware shows behind its version."""

    driver: Word
    version: Word
    firmware: Word
    psid: Word
    address: Word


@dataclass(frozen=True)
class Pause:
    """Global pause as configured; it excludes priority flow control."""

    autonegotiate: Flag
    rx: Flag
    tx: Flag


@dataclass(frozen=True)
class Settings:
    speed_mbps: Number
    duplex: Word
    port: Word
    autonegotiation: Flag
    has_link: Flag


@dataclass(frozen=True)
class Module:
    """The transceiver or cable.  ``alarms`` are the alarms and warnings that are on."""

    identifier: Word
    vendor: Word
    part_number: Word
    serial: Word
    temperature_c: Float
    alarms: Tuple[str, ...]


@dataclass(frozen=True)
class Rings:
    rx: Number
    tx: Number
    rx_max: Number
    tx_max: Number


@dataclass(frozen=True)
class Coalescing:
    adaptive_rx: Flag
    adaptive_tx: Flag
    values: Mapping[str, Number]


def parse_ethtool(text: str, about: str = "") -> Output:
    """The rows of any form; an indented line without a colon goes on with the value above it.

    With ``about`` only what stands below the first heading that begins so, where there is one.
    """
    output = _Rows()
    for line in output_lines(text):
        key, colon, value = (part.strip() for part in line[:2000].partition(":"))
        heading = _HEADING.fullmatch(key) if colon and not value and line[:1].strip() else None
        if heading:
            output.head(key, heading.group(1))
        elif _COMPLAINT.match(line[:300]) and not re.fullmatch("[0-9]{1,20}", value):
            output.complaints.append(line.strip()[:300])
        elif colon and key:
            output.rows.append((output.headings[-1] if output.headings else "", key, value))
        elif key.strip(".[]…") and output.rows:
            output.go_on(key, line[:1] in (" ", "\t"))
    return output.of(about)


class _Rows:
    def __init__(self) -> None:
        self.rows: List[Tuple[str, str, str]] = []
        self.headings: List[str] = []
        self.complaints: List[str] = []
        # Where each form begins: the number of its first row, its heading and the interface that it names.
        self.parts: List[Tuple[int, str, str]] = []

    def head(self, key: str, interface: Optional[str]) -> None:
        self.headings.append(key)
        if interface:
            self.parts.append((len(self.rows), key, interface))

    def go_on(self, words: str, is_indented: bool) -> None:
        heading, key, value = self.rows[-1]
        # A terminal breaks a line without an indent, as in the middle of a bracket.
        if is_indented or value.count("(") > value.count(")"):
            self.rows[-1] = (heading, key, (value + " " + words).strip()[:4000])

    def of(self, about: str) -> Output:
        parts = [part for part in self.parts if part[1].startswith(about)]
        start, end = 0, len(self.rows)
        if about and parts:
            start = parts[0][0]
            # Another interface may follow, or another form.
            end = next((number for number, key, _name in self.parts if number > start), end)
        interface = parts[0][2] if parts else None
        return Output(interface, tuple(self.headings), tuple(self.rows[start:end]), tuple(self.complaints))


def parse_ethtool_statistics(text: str) -> Dict[str, int]:
    """The counters of ``-S``; a key may hold a colon itself (``rxq0: rx_pkts``)."""
    counters: Dict[str, int] = {}
    for line in output_lines(text):
        key, colon, value = line.strip().rpartition(":")
        if colon and key and re.fullmatch(r"[0-9]{1,20}", value.strip()):
            counters[key.strip()] = int(value)
    return counters


def parse_show_counters(text: str) -> Dict[int, Dict[str, int]]:
    """The hardware counters of each port of an RDMA device, as mlnx-tools' show_counters prints them."""
    ports: Dict[int, Dict[str, int]] = {}
    current: Dict[str, int] = {}
    for line in clean(text).splitlines():
        head = re.match(r"Port ([0-9]{1,5}) (?:hw|cm) counters:", line.strip())
        key, colon, value = line.strip().partition(":")
        if head:
            current = ports.setdefault(int(head.group(1)), {})
        elif colon and re.fullmatch(r"[0-9]{1,20}", value.strip()):
            current[key.strip()] = int(value)
    return ports


def parse_ethtool_driver(text: str) -> Driver:
    output = parse_ethtool(text)
    firmware = output.value("firmware-version")
    with_psid = _PSID.fullmatch(firmware) if firmware else None
    return Driver(
        _told(output, "driver"),
        _told(output, "version"),
        with_psid.group(1) if with_psid else _told(output, "firmware-version"),
        with_psid.group(2) if with_psid else Unknown("not printed"),
        _told(output, "bus-info"),
    )


def parse_ethtool_pause(text: str) -> Pause:
    """Text or JSON."""
    data = _json_object(text)
    if data is not None:
        return Pause(*(_json_switch(data, key) for key in ("autonegotiate", "rx", "tx")))
    output = parse_ethtool(text, "Pause parameters")
    return Pause(*(_switched(output, key) for key in ("Autonegotiate", "RX", "TX")))


def parse_ethtool_settings(text: str) -> Settings:
    """Plain ``ethtool IF``, text or JSON; a speed that is ``Unknown!`` (the link is down) is no 0."""
    data = _json_object(text)
    if data is not None:
        return _json_settings(data)
    output = parse_ethtool(text, "Settings for")
    speed, link = _told(output, "Speed"), _told(output, "Link detected")
    found = re.fullmatch(r"([1-9][0-9]{0,7})\s?Mb/s", speed) if isinstance(speed, str) else None
    return Settings(
        int(found.group(1))
        if found
        else speed
        if isinstance(speed, Unknown)
        else Unknown("not known: %s" % speed[:40]),
        _not_the_word_unknown(_told(output, "Duplex")),
        _told(output, "Port"),
        _switched(output, "Auto-negotiation"),
        link if isinstance(link, Unknown) else switch(link.partition(" ")[0]),
    )


def parse_ethtool_module(text: str) -> Module:
    """Text or JSON."""
    data = _json_object(text)
    if data is not None:
        return _json_module(data)
    output = parse_ethtool(text)
    temperature, voltage = _told(output, "Module temperature"), _told(output, "Module voltage")
    on = (key for _heading, key, value in output.rows if re.search("alarm|warning", key) and value.lower() == "on")
    return Module(
        _told(output, "Identifier"),
        _told(output, "Vendor name"),
        _told(output, "Vendor PN"),
        _told(output, "Vendor SN"),
        _temperature(*(_first_number(word) for word in (temperature, voltage))),
        tuple(on),
    )


def _first_number(word: Word) -> Float:
    return word if isinstance(word, Unknown) else real(word.partition(" ")[0])


def _temperature(temperature_c: Float, voltage_v: Float) -> Float:
    """A cable that measures nothing shows 0 for all of it, its supply voltage among it."""
    if temperature_c == 0 and voltage_v == 0:
        return Unknown("not applicable: the module measures nothing")
    return temperature_c


def parse_ethtool_rings(text: str) -> Rings:
    output = parse_ethtool(text, "Ring parameters")
    sizes = [
        output.value(key, heading)
        for heading in ("Current hardware settings", "Pre-set maximums")
        for key in ("RX", "TX")
    ]
    return Rings(*(_missing(output) if size is None else whole(size) for size in sizes))


def parse_ethtool_coalescing(text: str) -> Coalescing:
    output = parse_ethtool(text, "Coalesce parameters")
    adaptive = re.fullmatch(r"(\S{1,10})\s{1,8}TX:\s{0,8}(\S{1,10})", output.value("Adaptive RX") or "")
    values = {key: whole(value) for _heading, key, value in output.rows if re.fullmatch(r"[a-z-]{1,40}", key)}
    if adaptive is None:
        why = _missing(output)
        return Coalescing(why, why, values)
    return Coalescing(switch(adaptive.group(1)), switch(adaptive.group(2)), values)


def _told(output: Output, key: str) -> Word:
    value = output.value(key)
    return _missing(output) if value is None else said(value)


def _switched(output: Output, key: str) -> Flag:
    value = output.value(key)
    if value is None:
        return _missing(output)
    # Where lines are missing in between, a foreign one may have been joined to the value.
    return switch(value.split()[0] if value.lower().startswith(("on ", "off ")) else value)


def _missing(output: Output) -> Unknown:
    """ethtool's own word on why a row is not there."""
    if not output.complaints:
        return Unknown("not printed")
    words = output.complaints[0]
    is_unsupported = re.search("not supported", words, re.IGNORECASE) is not None
    return Unknown(("not applicable: %s" if is_unsupported else "error: %s") % words[:80])


def _json_object(text: str) -> Optional[Mapping[str, Any]]:
    """The one object in a list that ``--json`` prints; None where it is no JSON, or of several interfaces."""
    data = find_json(clean(text))
    return data[0] if isinstance(data, list) and len(data) == 1 and isinstance(data[0], Mapping) else None


def _json_settings(data: Mapping[str, Any]) -> Settings:
    speed = data.get("speed")
    return Settings(
        speed if isinstance(speed, int) and 0 < speed < 2**31 else Unknown("not known: %s" % str(speed)[:40]),
        _not_the_word_unknown(_json_word(data, "duplex")),
        _json_word(data, "port"),
        _json_switch(data, "auto-negotiation"),
        _json_switch(data, "link-detected"),
    )


def _json_module(data: Mapping[str, Any]) -> Module:
    kind, name = data.get("identifier"), _json_word(data, "identifier_description")
    temperature, voltage = (real(data.get(key, "")) for key in ("module_temperature", "module_voltage"))
    on = (key for key, value in data.items() if re.search("alarm$|warning$", key) and _is_on(value))
    return Module(
        "0x%02x (%s)" % (kind, name) if isinstance(kind, int) and isinstance(name, str) else name,
        _json_word(data, "vendor_name"),
        _json_word(data, "vendor_pn"),
        _json_word(data, "vendor_sn"),
        _temperature(temperature, voltage),
        tuple(key.replace("_", " ").capitalize() for key in on),
    )


def _is_on(value: Any) -> bool:
    return value is True or (isinstance(value, list) and any(item is True for item in value))


def _json_word(data: Mapping[str, Any], key: str) -> Word:
    value = data.get(key)
    return said(value[:200] if isinstance(value, str) else None)


def _json_switch(data: Mapping[str, Any], key: str) -> Flag:
    return switch(data[key]) if key in data else Unknown("not printed")


def _not_the_word_unknown(word: Word) -> Word:
    return no_value(word) if isinstance(word, str) and word.startswith("Unknown") else word
