# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the network tools print, made ready for their parsers: colours, line ends, JSON, numbers and words for nothing."""

from __future__ import annotations

import json
import re
from typing import Any, Optional, Union

from .._engine.values import Unknown

Number = Union[int, Unknown]
Float = Union[float, Unknown]
Word = Union[str, Unknown]
Flag = Union[bool, Unknown]

# Colours (CSI), titles (OSC) and what `tput sgr0` adds.
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]*\x07?|\x1b\([A-Z0-9]|\x0f")
_NOTHING = ("n/a", "na", "[n/a]", "not applicable", "not supported", "[not supported]", "unsupported", "none", "-")
_ERROR = re.compile(r"err(or)?\b|fail|invalid|cannot|denied|unknown error", re.IGNORECASE)


def clean(text: str) -> str:
    """A text without colours and with plain line ends."""
    return _ANSI.sub("", text).replace("\r\n", "\n").replace("\r", "\n").replace("\ufeff", "")


def load_json(text: str) -> Any:
    """The value that a JSON text holds; Unknown when it is none (cut off, mixed with messages, hostile)."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        return Unknown("no JSON: %s" % str(error)[:80])


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
