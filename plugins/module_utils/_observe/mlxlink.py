# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The physical link as ``mlxlink`` prints it (MFT), JSON in its shapes or text.

All numbers are texts.  With a status other than 0 the values that are printed all the same are not believed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Tuple, Union

from .._engine.values import Unknown
from .tool_text import Float, Number, Word, clean, find_json, no_value, real, said, whole

# Of MFT and of mstflint.
_TOOLS = ("MFT Version", "mstflint Version", "MSTFLINT Version")
# One port has each of these once.
_ONCE = ("State", "FEC", "Raw Physical BER")

Values = Dict[str, Union[str, List[str]]]

# The exponent of a bit error rate that has not seen any error: "15E-255".
_NO_ERRORS = re.compile(r"[0-9]{1,3}E-25[0-9]", re.IGNORECASE)
# InfiniBand names the generation of a lane: Gb/s of one, as the tools round them for four.
_LANES = {
    "SDR": 2.5,
    "DDR": 5.0,
    "QDR": 10.0,
    "FDR10": 10.0,
    "FDR": 14.0,
    "EDR": 25.0,
    "HDR": 50.0,
    "NDR": 100.0,
    "XDR": 200.0,
}
_SPEED = re.compile(r"(?:BaseT-?|[A-Za-z]{0,4}-?)?([0-9]{1,4}(?:\.[0-9])?)G(?:bE|_[0-9]{1,2}X)?", re.IGNORECASE)


@dataclass(frozen=True)
class Mlxlink:
    """Rates are per bit; ``temperature_c`` is the module's.

    On Ethernet an active port shows a physical state like ETH_AN_FSM_ENABLE, which is no fault.
    """

    status_code: Number
    message: Word
    state: Word
    physical_state: Word
    speed: Word
    speed_gbps: Float
    lanes: Number
    fec: Word
    opcode: Number
    recommendation: Word
    effective_errors: Number
    effective_ber: Float
    raw_ber: Float
    raw_errors_per_lane: Tuple[Number, ...]
    link_down: Number
    temperature_c: Float
    vendor: Word
    part_number: Word
    serial: Word
    firmware: Word
    tool_version: Word

    @property
    def is_trusted(self) -> bool:
        return self.status_code == 0 or isinstance(self.state, str)


def parse_mlxlink(text: str) -> Mlxlink:
    text = clean(text)
    data = find_json(text)
    if data is None:
        return _link(_text_values(text), Unknown("not printed"), _complaint(text))
    status = data.get("status") if isinstance(data, Mapping) else None
    code: Number = Unknown("not printed")
    message: Word = Unknown("not printed")
    if isinstance(status, Mapping):
        code = whole(status.get("code", ""))
        message = said(str(status["message"])[:200]) if "message" in status else message
    values: Values = {}
    if isinstance(data, Mapping):
        _walk(data.get("result", data), 0, values)
    if isinstance(data, Unknown):
        return _nothing(data, code, message)
    if isinstance(status, Mapping) and code != 0:
        return _nothing(Unknown("error: mlxlink status %s: %s" % (code, message)), code, message)
    return _link(values, code, message)


def _walk(node: Any, depth: int, values: Values) -> None:
    """The leaves by name; a list stands plain or below "values"."""
    for key, value in node.items() if isinstance(node, Mapping) and depth < 8 else ():
        inner = value.get("values") if isinstance(value, Mapping) else value
        if isinstance(inner, list):
            values.setdefault(str(key), [str(item)[:80] for item in inner[:64]])
        elif isinstance(value, Mapping):
            _walk(value, depth + 1, values)
        elif value is not None:
            values.setdefault(str(key), str(value)[:300])


def _text_values(text: str) -> Values:
    values: Values = {}
    for line in text.splitlines():
        key, colon, value = (part.strip() for part in line[:500].partition(" :"))
        if key in _ONCE and key in values:
            # Another port.
            break
        if colon and key:
            values.setdefault(key, value.split(",") if "Per Lane" in key else value)
    return values


def _complaint(text: str) -> Word:
    found = re.search(r"(?m)^-E-.{0,200}", text)
    return found.group() if found else Unknown("not printed")


def _link(values: Values, code: Number, message: Word) -> Mlxlink:
    speed = _word(values, "Speed")
    width = re.fullmatch(r"([0-9]{1,2})x", _text(values, "Width") or "")
    lanes = int(width.group(1)) if width else _unknown(values, "Width")
    return Mlxlink(
        code,
        message,
        _word(values, "State"),
        _word(values, "Physical state"),
        speed,
        speed if isinstance(speed, Unknown) else _gbps(speed, lanes),
        lanes,
        _word(values, "FEC"),
        _number(values, "Status Opcode"),
        _word(values, "Recommendation"),
        _number(values, "Effective Physical Errors"),
        _rate(values, "Effective Physical BER"),
        _rate(values, "Raw Physical BER"),
        tuple(whole(item) for item in _list(values, "Raw Physical Errors Per Lane")),
        _number(values, "Link Down Counter"),
        _first(values, "Temperature [C]"),
        _word(values, "Vendor Name"),
        _word(values, "Vendor Part Number"),
        _word(values, "Vendor Serial Number"),
        _word(values, "Firmware Version"),
        next((_word(values, key) for key in _TOOLS if key in values), Unknown("not printed")),
    )


def _gbps(speed: str, lanes: Number) -> Float:
    """``400G_4X``, ``100GbE``, or ``IB-NDR`` with the number of lanes."""
    found = _SPEED.fullmatch(speed[:20])
    lane = _LANES.get(speed.upper()[3:] if speed.upper().startswith("IB-") else "")
    if lane is not None:
        return lanes if isinstance(lanes, Unknown) else lane * lanes
    return real(found.group(1)) if found else no_value(speed)


def _nothing(why: Unknown, code: Number, message: Word) -> Mlxlink:
    none: Tuple[Number, ...] = ()
    before = (why,) * 11
    return Mlxlink(code, message, *before, none, *((why,) * 7))


def _text(values: Values, key: str) -> Optional[str]:
    value = values.get(key)
    return value if isinstance(value, str) else None


def _list(values: Values, key: str) -> List[str]:
    value = values.get(key, [])
    return value if isinstance(value, list) else value.split(",")


def _word(values: Values, key: str) -> Word:
    return said(_text(values, key))


def _unknown(values: Values, key: str) -> Unknown:
    text = _text(values, key)
    return Unknown("not printed") if text is None else no_value(text)


def _number(values: Values, key: str) -> Number:
    text = _text(values, key)
    return Unknown("not printed") if text is None else whole(text)


def _rate(values: Values, key: str) -> Float:
    text = _text(values, key)
    if text is None:
        return Unknown("not printed")
    return 0.0 if _NO_ERRORS.fullmatch(text) else real(text)


def _first(values: Values, key: str) -> Float:
    """The value before its allowed range: ``61 [-10..80]``; a cable that measures nothing shows ``0 [0..0]``."""
    text = _text(values, key)
    if text and re.fullmatch(r"0(?:\.0{1,6})?\s{0,4}\[0(?:\.0{1,6})?\.\.0(?:\.0{1,6})?\]", text):
        return Unknown("not applicable: %s" % text[:40])
    return Unknown("not printed") if text is None else real(text.partition(" [")[0])
