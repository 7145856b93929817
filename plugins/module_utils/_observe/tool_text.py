# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the network tools print, made ready for their parsers: colours, line ends, JSON, numbers and words for nothing."""

from __future__ import annotations

import json
import re
from typing import Any, Dict, List, Optional, Pattern, Tuple, Union

from .._engine.values import Unknown

Number = Union[int, Unknown]
Float = Union[float, Unknown]
Word = Union[str, Unknown]
Flag = Union[bool, Unknown]

# Colours (CSI), titles (OSC) and what `tput sgr0` adds.
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]*\x07?|\x1b\([A-Z0-9]|\x0f")
# What people put in front of the lines that they pass on: marks of a quotation, and the time at which a line was logged.
_QUOTED = re.compile(r"(?m)^(?:>[ ]?){1,8}")
_LOGGED = re.compile(
    r"(?m)^\[?[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]{1,9})?(?:Z|[+-][0-9]{2}:?[0-9]{2})?\]?[ ]"
)
# A shell's prompt with the command behind it, and the fences of Markdown: they belong to no output.
_PROMPT = re.compile(
    r"\s{0,8}(?:\([\w.-]{1,40}\) ?)?"
    r"(?:\[[^\]]{1,80}\] ?|[\w.-]{1,64}@[\w.-]{1,64}[: ][^#$]{0,80}|[\w.-]{1,64}:[^\s#$]{0,80}|[a-z]{2,5}-[0-9.]{1,6}|~ ?)?"
    r"[#$](?:\s|$)"
)
_FENCE = re.compile(r"\s{0,8}(?:```|~~~)[\w+-]{0,20}\s*$")
# What pdsh, clush and the like put in front of each line.
_LABEL = re.compile(r"([A-Za-z0-9][\w.-]{0,63}):(?: |$)")
_JSON_START = re.compile(r"(?m)^[ \t]{0,40}(?:\{[ \t]{0,8}(?:[\"}]|$)|\[[ \t]{0,8}(?:[\[{\"\]]|$))")
_NOTHING = ("n/a", "na", "[n/a]", "not applicable", "not supported", "[not supported]", "unsupported", "none", "-")
_ERROR = re.compile(r"err(or)?\b|fail|invalid|cannot|denied|unknown error", re.IGNORECASE)


def clean(text: str) -> str:
    """A text without colours, quotation marks and times of a log in front, and with plain line ends."""
    # What is left of ESC would make a sequence with what stood around another one.
    text = (
        _ANSI.sub("", text)
        .replace("\x1b", "")
        .replace("\r\n", "\n")
        .replace("\r", "\n")
        .replace("\ufeff", "")
        .replace("\xa0", " ")
    )
    return _LOGGED.sub("", _QUOTED.sub("", text))


def is_prompt(line: str) -> bool:
    """Whether a line is a shell's prompt (with a command, or without) or a fence, and so no output of the tool."""
    return _PROMPT.match(line[:400]) is not None or _FENCE.match(line[:60]) is not None


def output_lines(text: str) -> List[str]:
    """The lines of a cleaned text that a tool printed."""
    return [line for line in clean(text).splitlines() if not is_prompt(line)]


def without_labels(text: str, sign: Pattern[str]) -> str:
    """A text without the names of hosts that stand in front of all its lines; the sign is what must stand behind one."""
    lines = [line for line in clean(text).splitlines() if line.strip()]
    labels = [_LABEL.match(line) for line in lines]
    if len(lines) < 3 or not all(labels):
        return text
    plain = [line[label.end() :] for line, label in zip(lines, labels) if label]
    return "\n".join(plain) if any(sign.match(line.strip()) for line in plain) else text


def load_json(text: str) -> Any:
    """The value that a JSON text holds; Unknown when it is none (cut off, mixed with messages, hostile)."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        return Unknown("no JSON: %s" % str(error)[:80])


def find_json(text: str) -> Any:
    """The JSON value in a text, also behind a prompt or messages; None where no line begins as one.

    Of a key that stands twice the first value counts: ethtool prints a reading, and below it the limits, by one name.
    """
    start = _JSON_START.search(text)
    if start is None:
        return None
    try:
        return json.JSONDecoder(object_pairs_hook=_first_of_each).raw_decode(text[start.start() :].lstrip())[0]
    except (ValueError, RecursionError) as error:
        return Unknown("no JSON: %s" % str(error)[:80])


def _first_of_each(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    found: Dict[str, Any] = {}
    for key, value in pairs:
        found.setdefault(key, value)
    return found


def no_value(word: str) -> Unknown:
    """Why a word is no value: not applicable here, an error, or something that is not understood."""
    if word.lower() in _NOTHING:
        return Unknown("not applicable: %s" % word)
    if _ERROR.search(word[:200]):
        return Unknown("error: %s" % word[:80])
    return Unknown("not understood: %r" % word[:80] if word else "empty")


def whole(word: Any) -> Number:
    """A count, in decimal or 0x notation or as a JSON number."""
    if isinstance(word, int) and not isinstance(word, bool) and 0 <= word < 2**64:
        return word
    text = str(word).strip() if isinstance(word, str) else ""
    if re.fullmatch(r"[0-9]{1,20}", text):
        return int(text)
    if re.fullmatch(r"0[xX][0-9a-fA-F]{1,16}", text):
        return int(text, 16)
    return no_value(text if isinstance(word, str) else str(word)[:40])


def real(word: Any) -> Float:
    """A number with a fraction or an exponent; a value that is not finite is none."""
    if isinstance(word, (int, float)) and not isinstance(word, bool):
        word = str(word)[:40]
    text = word.strip() if isinstance(word, str) else ""
    if re.fullmatch(r"[+-]?[0-9]{1,25}(\.[0-9]{0,25})?([eE][+-]?[0-9]{1,3})?", text):
        number = float(text)
        if number - number == 0:
            return number
    return no_value(text)


def switch(word: Any) -> Flag:
    """on and off in the ways that tools write them."""
    if isinstance(word, bool):
        return word
    text = str(word).strip() if isinstance(word, (str, int)) else ""
    if text.lower() in ("on", "yes", "1", "true", "enabled"):
        return True
    if text.lower() in ("off", "no", "0", "false", "disabled"):
        return False
    return no_value(text)


def said(word: Optional[str]) -> Word:
    """A text as it stands, unless it says that there is none."""
    if word is None:
        return Unknown("not printed")
    text = word.strip()
    return text if text and text.lower() not in _NOTHING else no_value(text)


def known_int(value: Any) -> Optional[int]:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
