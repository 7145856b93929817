# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Made-up words for what names one machine: the same for the same thing throughout a capture, others in each capture.

What a judge needs of a thing stays: that a GID is link-local or holds an IPv4 address, that a MAC is in it, that
a number was never filled in (zeros).
"""

from __future__ import annotations

import hashlib
import ipaddress
from typing import Dict, Set

# EFI's global variables, shim, and the security database: names that all machines share (UEFI specification, shim).
_SHARED_UUIDS = (
    "8be4df61-93ca-11d2-aa0d-00e098032b8c",
    "605dab50-e046-4300-abb6-3dd810dd8b23",
    "d719b2cb-3d3a-4596-a3bc-dad00e67656f",
)
# 198.18.0.0/15 and 2001:db8::/32 are set aside for tests and documentation (RFC 2544, RFC 3849).
_TEST_NET = int(ipaddress.IPv4Address("198.18.0.0"))
_DOCUMENTATION = bytes.fromhex("20010db8")
# How a MAC becomes an EUI-64 (RFC 4291), and how Mellanox makes a GUID of it.
_MIDDLES = (b"\xff\xfe", b"\x03\x00")
# Interface identifiers and GUIDs of this size were counted by somebody.
_COUNTED = 1 << 16


class StandIns:
    """Made with a salt that nobody keeps."""

    def __init__(self, salt: str) -> None:
        self._salt = salt
        self._ipv4: Dict[str, str] = {}
        self._taken: Set[str] = set()

    def serial(self, word: str) -> str:
        return "serial-" + self._hash("serial", word.lower())[:10]

    def host(self, name: str) -> str:
        """The domain becomes one that nobody has (RFC 2606)."""
        short, dot, _domain = name.lower().partition(".")
        return "host-" + self._hash("host", short)[:8] + (".example.org" if dot else "")

    def like(self, text: str) -> str:
        """Other hexadecimal digits in the same form; zeros stay, and so do the names of EFI's own variables."""
        digits = [char for char in text.lower() if char in "0123456789abcdef"]
        if set(digits) <= {"0"} or text.lower() in _SHARED_UUIDS:
            return text
        made = iter(self._hash("like", "".join(digits)) * (1 + len(digits) // 64))
        return "".join(next(made) if char in "0123456789abcdefABCDEF" else char for char in text)

    def mac(self, raw: bytes) -> bytes:
        """Locally administered, so that it is nobody's; groups and zeros stay."""
        if not any(raw) or raw[0] & 1:
            return raw
        # With the bit for "locally administered" taken off, as an EUI-64 turns it.
        key = bytes([raw[0] & 0xFD]) + raw[1:]
        return b"\x02" + bytes.fromhex(self._hash("mac", key.hex())[:10])

    def guid(self, raw: bytes) -> bytes:
        """Eight bytes: a GUID, an EUI-64 or an interface identifier."""
        if int.from_bytes(raw, "big") < _COUNTED or raw == b"\xff" * 8:
            return raw
        if raw[3:5] in _MIDDLES:
            made = self.mac(bytes([raw[0] & 0xFE]) + raw[1:3] + raw[5:])
            return made[:3] + raw[3:5] + made[3:]
        return b"\x02" + bytes.fromhex(self._hash("guid", raw.hex())[:14])

    def ipv4(self, text: str) -> str:
        """Loopback, netmasks and multicast are nobody's; a link-local address stays one."""
        address = ipaddress.IPv4Address(text)
        number = int(address)
        if address.is_loopback or address.is_multicast or number < 1 << 24 or number >> 24 == 255:
            return text
        found = self._ipv4.get(text)
        for attempt in range(1 << 17 if found is None else 0):
            made = int(self._hash("ipv4", "%s %d" % (text, attempt))[:8], 16)
            base, size = (0xA9FE0000, 1 << 16) if address.is_link_local else (_TEST_NET, 1 << 17)
            found = str(ipaddress.IPv4Address(base + made % size))
            if found not in self._taken:
                break
        self._taken.add(found or text)
        self._ipv4[text] = found or text
        return self._ipv4[text]

    def ipv6(self, address: ipaddress.IPv6Address) -> ipaddress.IPv6Address:
        """A GID as well.  Addresses of one network stay in one network."""
        raw = address.packed
        if address.ipv4_mapped is not None:
            return ipaddress.IPv6Address(raw[:12] + ipaddress.IPv4Address(self.ipv4(str(address.ipv4_mapped))).packed)
        if address.is_multicast or address.is_link_local or not any(raw[:8]):
            return ipaddress.IPv6Address(raw[:8] + self.guid(raw[8:]))
        network = bytes.fromhex(self._hash("net", raw[:8].hex())[:8])
        return ipaddress.IPv6Address(_DOCUMENTATION + network + self.guid(raw[8:]))

    def token(self, word: str) -> str:
        """As long as the word was: for a place that has no room for another length."""
        return (self._hash("serial", word.lower()) * (1 + len(word) // 64))[: len(word)]

    def _hash(self, kind: str, text: str) -> str:
        return hashlib.sha256(("%s %s %s" % (self._salt, kind, text)).encode("utf-8", "surrogateescape")).hexdigest()
