# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The drawing of ``lspci -t`` (-tv, -tnn): which function hangs below which bus."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import List, Tuple

from .._engine.values import Text
from .nvidia_words import clean
from .pasted import plain_lines

_SIGN = re.compile(r"[\s|+\\`-]{1,80}(?:\[[0-9a-f]{2,8}[:\]-]|[0-9a-f]{2}\.[0-7])")
_TOKEN = re.compile(
    r"[\s|+\\`-]*?(?:(?P<slot>[0-9a-f]{2}\.[0-7])"
    r"|\[(?:(?P<domain>[0-9a-f]{4,8}):)?(?P<bus>[0-9a-f]{2})(?:-(?P<last>[0-9a-f]{2}))?\])"
)


@dataclass(frozen=True)
class Node:
    """A function.  ``buses`` are the ranges above it, from the root on (``5c-5f``); ``address`` is empty where an
    excerpt does not show the bus that it is on."""

    slot: str
    address: str
    buses: Tuple[str, ...]
    name: str


def parse_tree(text: Text) -> Tuple[Node, ...]:
    """The functions of a tree or of a part of one, in their order; never fails."""
    nodes: List[Node] = []
    # What is drawn so far on the way to where we are: column, domain, first bus (empty for a function), range.
    trail: List[Tuple[int, str, str, str]] = []
    for line in plain_lines(clean(text), _SIGN) if isinstance(text, str) else ():
        place = 0
        found = _TOKEN.match(line, place)
        while found:
            start = found.start("slot") if found.group("slot") else found.start("bus")
            trail = [item for item in trail if item[0] < start]
            if found.group("slot"):
                nodes.append(_node(found.group("slot"), trail, line[found.end() :]))
                trail.append((start, "", "", ""))
                if line[found.end() : found.end() + 2] == "  ":
                    break
            else:
                bus, last = found.group("bus"), found.group("last")
                domain = found.group("domain") or next((item[1] for item in reversed(trail) if item[1]), "")
                trail.append((start, domain, bus, "%s-%s" % (bus, last) if last else bus))
            place = found.end()
            found = _TOKEN.match(line, place)
    return tuple(nodes)


def _node(slot: str, trail: List[Tuple[int, str, str, str]], rest: str) -> Node:
    buses = [item for item in trail if item[2]]
    domain = buses[-1][1] or "0000" if buses else ""
    address = "%s:%s:%s" % (domain, buses[-1][2], slot) if buses else ""
    # The name stands after two spaces, unless further bridges are drawn first.
    name = rest[2:].strip() if rest.startswith("  ") else ""
    return Node(slot, address, tuple(item[3] for item in buses), name)
