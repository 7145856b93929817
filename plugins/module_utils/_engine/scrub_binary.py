# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Serial numbers inside of bytes: the configuration space of a PCI function and its vital product data."""

from __future__ import annotations

import re
from typing import Callable, Iterator, Tuple

# PCI Express base specification: extended capabilities begin at 100h, this one is a header and eight bytes.
_EXTENDED, _DEVICE_SERIAL_NUMBER = 0x100, 0x0003
_MOST_CAPABILITIES = 96

# PCI local bus specification 2.2, appendix I: resources, of which two hold fields with a keyword each.
_END, _READ_ONLY, _WRITABLE = 0x0F, 0x10, 0x11
# Part number, engineering changes, checksum, room left: no one machine's.
_SHARED_FIELDS = (b"PN", b"EC", b"RV", b"RW")
# A word as long as a serial number, with digits enough to be one.
_LONG_WORD = re.compile(r"(?<![0-9A-Za-z])(?=(?:[A-Za-z]*[0-9]){5})[0-9A-Za-z]{12,}")


def without_device_serial(config: bytes) -> bytes:
    """A configuration space whose serial number is zeros; its list of capabilities stays as it is."""
    data = bytearray(config)
    place = _EXTENDED
    for _hop in range(_MOST_CAPABILITIES):
        head = int.from_bytes(data[place : place + 4], "little")
        if place < _EXTENDED or place + 4 > len(data) or head in (0, 0xFFFFFFFF):
            break
        if head & 0xFFFF == _DEVICE_SERIAL_NUMBER:
            room = data[place + 4 : place + 12]
            data[place + 4 : place + 12] = bytes(len(room))
        place = head >> 20 & 0xFFC
    return bytes(data)


def scrubbed_vpd(vpd: bytes, token: Callable[[str], str]) -> bytes:
    """Vital product data whose serial numbers are others of the same length, with its checksum put right."""
    data = bytearray(vpd)
    checksum = -1
    done = 0
    for keyword, start, end in _fields(vpd):
        done = end
        if keyword == b"RV":
            checksum = start
        if keyword not in _SHARED_FIELDS:
            data[start:end] = _scrubbed(vpd[start:end], keyword == b"SN", token)
    # What is no field: the name of the product in front, or something that is no such data at all.
    data[done:] = _scrubbed(bytes(data[done:]), False, token)
    if 0 <= checksum < len(data):
        data[checksum] = -sum(data[:checksum]) & 0xFF
    return bytes(data)


def vendor_words(text: str, token: Callable[[str], str]) -> str:
    """A field that a vendor fills as he likes: it may hold the serial number once more, or a UUID."""
    return _LONG_WORD.sub(lambda match: _made(match.group(), token), text)


def _scrubbed(field: bytes, is_serial: bool, token: Callable[[str], str]) -> bytes:
    text = field.decode("latin-1")
    if not is_serial:
        return vendor_words(text, token).encode("latin-1")
    word = text.rstrip("\0 ")
    return (_made(word, token) + text[len(word) :]).encode("latin-1")


def _made(word: str, token: Callable[[str], str]) -> str:
    return token(word) if set(word) - {"0"} else word


def _fields(vpd: bytes) -> Iterator[Tuple[bytes, int, int]]:
    """Keyword, beginning and end of each field, as far as the data is what it should be."""
    place = 0
    while place < len(vpd):
        tag = vpd[place]
        if tag & 0x80:
            name, size, start = tag & 0x7F, int.from_bytes(vpd[place + 1 : place + 3], "little"), place + 3
        else:
            name, size, start = tag >> 3, tag & 7, place + 1
        end = start + size
        if name == _END or end > len(vpd):
            return
        while name in (_READ_ONLY, _WRITABLE) and start + 3 <= end:
            stop = start + 3 + vpd[start + 2]
            if stop > end:
                return
            yield vpd[start : start + 2], start + 3, stop
            start = stop
        place = end
