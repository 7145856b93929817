# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The common form of what ``dcb`` prints, text or JSON: the words behind each key, and what is made of them."""

from __future__ import annotations

import re
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from .._engine.values import Unknown
from .tool_text import Number, clean, find_json, is_prompt, whole

Numbers = Union[Tuple[int, ...], Unknown]
Words = Union[Tuple[str, ...], Unknown]
Fields = Union[Dict[str, List[str]], Unknown]

# Priorities, traffic classes and buffers are eight each (IEEE_8021QAZ_MAX_TCS).
COUNT = 8


# The command itself, which names fields as well ("dcb ets show dev eth0 tc-tsa tc-bw"), and goes on behind a backslash.
_COMMAND = re.compile(r"(?:^|\s)dcb\s+(?:-\S{1,20}\s+)*(?:pfc|ets|app|buf|buffer|maxrate|dcbx|apptrust|rewr)\s")
_PAIR = re.compile(r"[0-9A-Za-z-]{1,20}:[0-9A-Za-z.]{1,20}")
_COMPLAINT = re.compile(
    r"(?im)^.*(error|failed|not supported|usage:|unknown|cannot|no such|not found|invalid|denied).*$"
)


def fields_of(text: str, keys: Sequence[str]) -> Fields:
    """The words behind each key; JSON in the same form as text (``3:on``, ``26:3``)."""
    text = clean(text)
    data = find_json(text)
    if isinstance(data, (Mapping, list)):
        return _json_fields(data, keys)
    fields: Dict[str, List[str]] = {}
    lines = printed(text)
    current: Optional[List[str]] = None
    for line in lines:
        words = line.split()
        # A row that the terminal broke goes on with pairs; anything else is no part of it.
        current = current if words and all(_PAIR.fullmatch(word) for word in words) else None
        for word in words:
            name = word[:-1] if word.endswith(":") else word
            if name in keys:
                if name in fields:
                    return Unknown("printed twice: more than one interface")
                current = fields.setdefault(name, [])
            elif current is not None:
                current.append(word)
    if not fields and any(line.strip() for line in lines):
        complaint = _COMPLAINT.search("\n".join(lines)[:2000])
        return Unknown("error: %s" % complaint.group()[:80] if complaint else "not understood")
    return fields


def printed(text: str) -> List[str]:
    """The lines that dcb printed, without the commands that were typed."""
    lines: List[str] = []
    goes_on = False
    for line in clean(text).splitlines():
        is_command = goes_on or is_prompt(line) or _COMMAND.search(line[:300]) is not None
        goes_on = is_command and line.rstrip().endswith("\\")
        if not is_command:
            lines.append(line)
    return lines


def _json_fields(data: Any, keys: Sequence[str]) -> Fields:
    if isinstance(data, list) and len(data) == 1:
        data = data[0]
    if not isinstance(data, Mapping):
        return Unknown("not understood")
    fields: Dict[str, List[str]] = {}
    for key, value in data.items():
        name = str(key).replace("_", "-")
        if name in keys:
            fields[name] = _json_words(name, value)
    return fields


def _json_words(name: str, value: Any) -> List[str]:
    if not isinstance(value, list):
        return [_json_word(value)]
    if any(isinstance(item, list) for item in value):
        # A blank stands behind each pair in some versions.
        return [":".join(_json_word(part) for part in item[:2]) if isinstance(item, list) else "?" for item in value]
    if name in ("default-prio", "order"):
        return [_json_word(item) for item in value if _json_word(item).strip()]
    return ["%d:%s" % (number, _json_word(item)) for number, item in enumerate(value)]


def _json_word(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)[:40] if isinstance(value, (str, int, float)) else "?"


def indexes(text: str, keys: Sequence[str]) -> Union[List[str], Unknown, None]:
    fields = fields_of(text, keys)
    return fields if isinstance(fields, Unknown) else fields.get(keys[0])


def indexed(words: Union[Sequence[str], Unknown, None]) -> Words:
    """``0:a 1:b …`` or, in some versions, only ``a b …``: all eight, in order."""
    if isinstance(words, Unknown) or not words:
        return words if isinstance(words, Unknown) else Unknown("not printed")
    if not any(":" in word for word in words):
        words = ["%d:%s" % pair for pair in enumerate(words)]
    found = [word.partition(":") for word in words]
    if [key for key, _colon, _value in found] != [str(number) for number in range(COUNT)]:
        return Unknown("not all of 0 to 7 are printed")
    return tuple(value for _key, _colon, value in found)


def eight(words: Optional[Sequence[str]], names: Optional[Mapping[str, int]] = None) -> Numbers:
    values = indexed(words)
    if isinstance(values, Unknown):
        return values
    numbers = [names.get(value.lower(), -1) if names and value.lower() in names else whole(value) for value in values]
    unclear = [number for number in numbers if isinstance(number, Unknown)]
    if unclear:
        return unclear[0]
    return tuple(number for number in numbers if isinstance(number, int))


def single(fields: Mapping[str, List[str]], key: str) -> Number:
    return whole(fields[key][0]) if fields.get(key) else Unknown("not printed")


def measure(word: str, units: Mapping[str, int]) -> Number:
    found = re.fullmatch(r"([0-9]{1,20})(\.[0-9]{1,6})?([A-Za-z]{0,6})", word)
    if not found or found.group(3).lower() not in units:
        return Unknown("not understood: %r" % word[:40])
    unit = units[found.group(3).lower()]
    return round(float(found.group(1) + found.group(2)) * unit) if found.group(2) else int(found.group(1)) * unit


def measures(words: Sequence[str], units: Mapping[str, int]) -> Numbers:
    values = [measure(word, units) for word in words]
    unclear = [value for value in values if isinstance(value, Unknown)]
    return unclear[0] if unclear else tuple(value for value in values if isinstance(value, int))


def known_words(found: Sequence[str], words: Sequence[str]) -> Words:
    strange = [word for word in found if word not in words]
    return Unknown("not understood: %r" % " ".join(strange)[:80]) if strange else tuple(found)
