# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""JSON of which the end is missing, as a paste or `head` leaves it."""

from __future__ import annotations

import json
import re
from typing import Any, Dict, List, Optional, Tuple

from .._engine.values import Unknown
from .tool_text import find_json

_MARK = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],]', re.DOTALL)
_START = re.compile(r"^[ \t]{0,40}\{", re.MULTILINE)
_DEEPEST = 100
_CLOSING = {"{": "}", "[": "]"}


def json_object(text: str, key: str) -> Tuple[Optional[Dict[str, Any]], bool]:
    """The object with a key that a text holds, or what is left of it, and whether its end is missing."""
    data = find_json(text)
    if isinstance(data, dict):
        return data, False
    rest = _completed(text) if isinstance(data, Unknown) and '"%s"' % key in text else None
    return (rest, True) if isinstance(rest, dict) and key in rest else (None, False)


def _completed(text: str) -> Any:
    """The text up to the last value that is whole, with the brackets closed that are open there."""
    start = _START.search(text)
    text = text[start.end() - 1 :] if start else ""
    opened: List[str] = []
    end, open_there = 0, ""
    for mark in _MARK.finditer(text):
        letter = mark.group()
        if letter in "{[":
            opened.append(letter)
        elif letter in "}]" and opened:
            opened.pop()
        if len(opened) > _DEEPEST:
            break
        if letter in ("}", "]", ","):
            end, open_there = mark.start() if letter == "," else mark.end(), "".join(opened)
    try:
        return json.loads(text[:end] + "".join(_CLOSING[letter] for letter in reversed(open_there)))
    except (ValueError, RecursionError):
        return None
