# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which network interface belongs to which RDMA port, as ``ibdev2netdev`` prints it, plain or with ``-v`` (mlnx-tools).

Its ``(Up)`` and ``(Down)`` are the carrier of the network interface, not the state of the RDMA port: an InfiniBand port
may be active while its IPoIB interface is down.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import List, Tuple

from .._engine.values import Unknown
from .rdma_states import parse_port_state
from .tool_text import Flag, Word, no_value, output_lines

_ARROW = re.compile(r"<?={2,5}>")
_PORT = re.compile(r"\bport\s{1,8}([0-9]{1,5})(?:\s{0,8}\(([A-Za-z_]{1,20})\s{0,8}\))?\s{0,4}$")
_PCI = re.compile(r"\b[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]\b")
_NETDEV = re.compile(r"([^\s(]\S{0,63})(?:\s{1,40}\((\w{1,10})\))?")


@dataclass(frozen=True)
class Pair:
    """``port_state`` and ``address`` are printed with ``-v`` only."""

    device: str
    port: int
    netdev: str
    has_carrier: Flag
    port_state: Word
    address: Word


def parse_ibdev2netdev(text: str) -> Tuple[Pair, ...]:
    """Nothing is printed, with exit status 0, where there is no RDMA device."""
    found: List[Pair] = []
    for line in output_lines(text):
        arrow = _ARROW.search(line)
        left = line[: arrow.start()].strip()[-300:] if arrow else ""
        right = _NETDEV.match(line[arrow.end() :].strip()) if arrow else None
        port = _PORT.search(left)
        device = _device(left[: port.start()]) if port else ""
        address = _PCI.search(left)
        if port and right and device:
            found.append(
                Pair(
                    device,
                    int(port.group(1)),
                    right.group(1),
                    _carrier(right.group(2) or ""),
                    parse_port_state(port.group(2)) if port.group(2) else Unknown("not printed without -v"),
                    address.group().lower() if address else Unknown("not printed without -v"),
                )
            )
    return tuple(found)


def _device(left: str) -> str:
    """The name of the device before ``port N``: alone, or with ``-v`` before the model and behind the address.

    The name of a host may stand in front of all.
    """
    about, bracket, _model = left.partition("(")
    words = (about if bracket else left).split()
    if not bracket and _PCI.search(left):
        words = words[:2]
    words = [word for word in words if not _PCI.fullmatch(word) and not word.endswith(":")]
    return words[-1] if words else ""


def _carrier(word: str) -> Flag:
    return {"up": True, "down": False}.get(word.lower(), no_value(word))
