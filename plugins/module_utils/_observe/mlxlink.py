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
from .tool_text import Float, Number, Word, clean, load_json, no_value, real, said, whole

Values = Dict[str, Union[str, List[str]]]

# The exponent of a bit error rate that has not seen any error: "15E-255".
_NO_ERRORS = re.compile(r"[0-9]{1,3}E-25[0-9]", re.IGNORECASE)
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
    if text.lstrip()[:1] != "{":
        return _link(_text_values(text), Unknown("not printed"), _complaint(text))
    data = load_json(text)
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
        if colon and key:
            values.setdefault(key, value.split(",") if "Per Lane" in key else value)
    return values


def _complaint(text: str) -> Word:
    found = re.search(r"(?m)^-E-.{0,200}", text)
    return found.group() if found else Unknown("not printed")


def _link(values: Values, code: Number, message: Word) -> Mlxlink:
    speed = _word(values, "Speed")
    width = re.fullmatch(r"([0-9]{1,2})x", _text(values, "Width") or "")
    gbps = _SPEED.fullmatch(speed[:20]) if isinstance(speed, str) else None
    lanes = _list(values, "Raw Physical Errors Per Lane")
    return Mlxlink(
        code,
        message,
        _word(values, "State"),
        _word(values, "Physical state"),
        speed,
        real(gbps.group(1)) if gbps else speed if isinstance(speed, Unknown) else no_value(speed),
        int(width.group(1)) if width else _unknown(values, "Width"),
        _word(values, "FEC"),
        _number(values, "Status Opcode"),
        _word(values, "Recommendation"),
        _number(values, "Effective Physical Errors"),
        _rate(values, "Effective Physical BER"),
        _rate(values, "Raw Physical BER"),
        tuple(whole(item) for item in lanes),
        _number(values, "Link Down Counter"),
        _first(values, "Temperature [C]"),
        _word(values, "Vendor Name"),
        _word(values, "Vendor Part Number"),
        _word(values, "Vendor Serial Number"),
        _word(values, "Firmware Version"),
        _word(values, "MFT Version"),
    )


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
    """The value before its allowed range: ``61 [-10..80]``."""
    text = _text(values, key)
    return Unknown("not printed") if text is None else real(text.partition(" [")[0])
