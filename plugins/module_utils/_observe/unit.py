# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Units as systemd knows them now: the output of ``systemctl show``."""

from __future__ import annotations

import re
import textwrap
from typing import Dict, List, Sequence, Union

from .._engine.host import Host
from .._engine.values import Unknown
from .tool_text import is_prompt

# Property names are CamelCase; anything else before a "=" belongs to the value of the line above.
_PROPERTY = re.compile(r"([A-Z][A-Za-z0-9]*)=(.*)")

# How systemd writes "no value", by version and property; the last is 2^64-1.
_NOT_SET = ("", "[not set]", "[no data]", "infinity", "18446744073709551615")

_DEADLINE_S = 10.0


def parse_show(text: str) -> List[Dict[str, str]]:
    """One dictionary for each unit of ``systemctl show``; repeated keys are joined by a newline."""
    blocks: List[Dict[str, str]] = []
    block: Dict[str, str] = {}
    key = ""
    for line in [*_plain(text).splitlines(), ""]:
        match = _PROPERTY.match(line)
        if not line.strip() or (not match and _is_command(line)):
            if block:
                blocks.append(block)
            block, key = {}, ""
        elif match:
            key = match.group(1)
            value = match.group(2)
            block[key] = block[key] + "\n" + value if key in block else value
        elif key:
            block[key] += "\n" + line
    return blocks


def _plain(text: str) -> str:
    """A text that was indented as a whole, without its indentation."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    return textwrap.dedent(text) if first[:1].isspace() else text


def _is_command(line: str) -> bool:
    """A prompt with a next command; a value of several lines may hold a script, with comments of its own."""
    return is_prompt(line) and ("systemctl" in line or "@" in line or line.lstrip().startswith("```"))


def number(value: str) -> Union[int, Unknown, None]:
    """A numeric property: None when it is not set, Unknown when it is no number."""
    word = value.strip()
    if word in _NOT_SET:
        return None
    # Not str.isdigit: that also takes digits which int() refuses.
    if re.fullmatch("[0-9]{1,20}", word):
        return int(word)
    return Unknown("%r is no number" % word[:80])


def show(host: Host, units: Sequence[str], properties: Sequence[str]) -> Union[Dict[str, Dict[str, str]], Unknown]:
    """Properties of several units by the name that was asked for, with one command.

    A unit that does not exist is there with LoadState ``not-found`` when that was asked for.
    An alias (mysql.service) is found under the asked name, its ``Id`` tells the real one.
    """
    if not units:
        return {}
    wanted = ["Id", "Names", *[name for name in properties if name not in ("Id", "Names")]]
    argv = ["systemctl", "show", "-p", ",".join(wanted), "--", *units]
    text = host.run(argv, _DEADLINE_S).text()
    if isinstance(text, Unknown):
        return text
    return _by_name(parse_show(text), units)


def manager(host: Host, properties: Sequence[str]) -> Union[Dict[str, str], Unknown]:
    """Properties of the service manager itself, such as DefaultLimitNOFILE."""
    text = host.run(["systemctl", "show", "-p", ",".join(properties)], _DEADLINE_S).text()
    if isinstance(text, Unknown):
        return text
    blocks = parse_show(text)
    return blocks[0] if blocks else Unknown("systemctl show gave nothing")


def _by_name(blocks: Sequence[Dict[str, str]], units: Sequence[str]) -> Dict[str, Dict[str, str]]:
    found: Dict[str, Dict[str, str]] = {}
    for block in blocks:
        names = [block.get("Id", ""), *block.get("Names", "").split()]
        for unit in units:
            if unit in names:
                found[unit] = block
    return found
