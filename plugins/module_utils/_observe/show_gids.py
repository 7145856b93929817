# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""GID tables, and what ``show_gids`` prints of them (mlnx-tools).

RDMA over routed Ethernet needs a GID of RoCE v2 with an address: which index that is, is found and never assumed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Iterable, List, Optional, Tuple

from .._engine.values import Text, Unknown
from .tool_text import Number, Word, output_lines, whole

_IPV4_PREFIX = bytes(10) + b"\xff\xff"
# People mask addresses before they pass them on ("fe80:0000:0000:0000:xxxx:xxxx:xxxx:xxxx").
_MASKED = re.compile(r"(?=[^*x]{0,60}[*x])[0-9a-f*x:.]{2,64}")
_MASKED_IPV4 = re.compile(r"(?:(?:0{1,4}:){5}|::)ffff:")


@dataclass(frozen=True)
class Gid:
    """An entry of the table.  ``version`` is that of RoCE; on an InfiniBand port it says nothing."""

    index: int
    address: str
    version: Number
    netdev: Word

    @property
    def ipv4(self) -> Optional[str]:
        """The IPv4 address inside, None where there is none; of a masked address what is left of it."""
        raw = parse_gid(self.address)
        if raw is None:
            return self.address if _is_masked(self.address) and _MASKED_IPV4.match(self.address) else None
        return "%d.%d.%d.%d" % tuple(raw[12:]) if raw.startswith(_IPV4_PREFIX) else None

    @property
    def is_link_local(self) -> bool:
        raw = parse_gid(self.address)
        if raw is None:
            return re.match("fe[89ab]", self.address) is not None
        return raw[0] == 0xFE and raw[1] & 0xC0 == 0x80


@dataclass(frozen=True)
class PortGids:
    """The GIDs of one port as listed."""

    device: str
    port: int
    gids: Tuple[Gid, ...]


@dataclass(frozen=True)
class Listing:
    """``announced`` is the count that show_gids prints last: missing when the output was cut off."""

    ports: Tuple[PortGids, ...]
    announced: Number

    @property
    def rows(self) -> int:
        return sum(len(port.gids) for port in self.ports)


def parse_show_gids(text: str) -> Listing:
    """Columns may be empty in the middle (IPv4) and at the end (netdev), so each word is told by its form."""
    found: List[Tuple[str, int, Gid]] = []
    counts: List[Number] = []
    for line in output_lines(text):
        words = line.split()
        if line.strip().startswith("n_gids_found="):
            counts.append(whole(line.partition("=")[2]))
            continue
        words = words[1:] if words and words[0].endswith(":") else words
        if len(words) > 3 and _is_address(words[3]) and re.fullmatch(r"[0-9]{1,5} [0-9]{1,5}", " ".join(words[1:3])):
            found.append((words[0], int(words[1]), _gid(int(words[2]), words[3], words[4:])))
    places = dict.fromkeys((device, port) for device, port, _gid in found)
    ports = (PortGids(*place, tuple(gid for device, port, gid in found if (device, port) == place)) for place in places)
    return Listing(tuple(ports), _announced(counts))


def _announced(counts: List[Number]) -> Number:
    """The sum of all listings in a text, each of another host."""
    known = [count for count in counts if isinstance(count, int)]
    if len(known) < len(counts) or not counts:
        return next(iter(counts), Unknown("not printed: the listing may be cut off"))
    return sum(known)


def _is_something(address: str) -> bool:
    raw = parse_gid(address)
    return any(raw) if raw is not None else _is_address(address)


def _is_address(word: str) -> bool:
    return parse_gid(word) is not None or _is_masked(word)


def _is_masked(word: str) -> bool:
    return word.count(":") > 2 and _MASKED.fullmatch(word.lower()) is not None


def parse_gid(text: str) -> Optional[bytes]:
    """The 16 bytes of a GID in full (``fe80:0000:…``) or short notation (``::ffff:192.0.2.1``)."""
    word = text.strip().lower()[:64]
    tail = re.fullmatch(r"([0-9a-f:]*:)([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,3})", word)
    if tail:
        numbers = [int(part) for part in tail.groups()[1:]]
        if max(numbers) > 255:
            return None
        word = tail.group(1) + bytes(numbers).hex(":", 2)
    left, gap, right = word.partition("::")
    groups = [part.split(":") if part else [] for part in (left, right)]
    missing = 8 - len(groups[0]) - len(groups[1])
    if (missing < 1) if gap else (missing != 0):
        return None
    every = [*groups[0], *(["0"] * missing), *groups[1]]
    if not all(re.fullmatch("[0-9a-f]{1,4}", group) for group in every):
        return None
    return b"".join(int(group, 16).to_bytes(2, "big") for group in every)


def parse_gid_type(text: Text) -> Number:
    """``IB/RoCE v1``, ``RoCE v2`` and ``v2`` as the version of RoCE."""
    if not isinstance(text, str):
        return Unknown("no type") if text is None else text
    found = re.fullmatch(r"(?:.{0,20}\s)?v([12])", text.strip(), re.IGNORECASE)
    return int(found.group(1)) if found else Unknown("not understood: %r" % text.strip()[:40])


def usable_indexes(gids: Iterable[Gid]) -> Tuple[int, ...]:
    """Where RoCE v2 with a routable address is: those with IPv4 first, then those with a global IPv6 address."""
    routable = [gid for gid in gids if gid.version == 2 and not gid.is_link_local and _is_something(gid.address)]
    return tuple(gid.index for gid in sorted(routable, key=lambda gid: (gid.ipv4 is None, gid.index)))


def usable_index(gids: Iterable[Gid]) -> Number:
    """The GID index to use for RoCE v2."""
    found = usable_indexes(gids)
    return found[0] if found else Unknown("no RoCE v2 GID with a routable address: the interface has none")


def _gid(index: int, address: str, rest: List[str]) -> Gid:
    rest = rest[1:] if rest and re.fullmatch(r"[0-9x*]{1,4}(\.[0-9x*]{1,4}){3}", rest[0]) else rest
    version: Number = Unknown("no type")
    # The kernel's own spelling, where a script prints that: "RoCE v2".
    rest = rest[1:] if rest and rest[0] in ("RoCE", "IB/RoCE") else rest
    if rest and re.fullmatch("v[12]", rest[0], re.IGNORECASE):
        version, rest = int(rest[0][1]), rest[1:]
    return Gid(index, address.lower(), version, rest[0] if rest else Unknown("not printed"))
