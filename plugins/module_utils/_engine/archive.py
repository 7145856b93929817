# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Unpacking a ``.tar.gz`` that anybody may have made: nothing is read, kept or made without a bound.

The format is the one of https://pubs.opengroup.org/onlinepubs/9699919799/utilities/pax.html (ustar and its extended
headers) with GNU's long names.  It is read here and not by tarfile, which takes what a header says on trust: a header of
256 KiB costs Python 3.11.9 and 3.12.5 six gigabytes, one of 64 KiB of digits nine seconds.
"""

from __future__ import annotations

import os
import re
import zlib
from dataclasses import dataclass
from typing import BinaryIO, Dict, Iterator, Optional, Set, Tuple

# What a capture may hold in all, packed files unpacked.
LIMIT_BYTES = 256 * 1024 * 1024
# Files, links and folders, the folders above them too.
LIMIT_MEMBERS = 200_000
# An extended header holds a path and some numbers.
LIMIT_HEADER_BYTES = 16 * 1024
LIMIT_HEADERS_BYTES = 32 * 1024 * 1024
# A path and a link before the member that they belong to, and a global one.
LIMIT_HEADERS_IN_A_ROW = 4
# The deepest of sysfs have some 300 characters and 25 folders, on a machine with PCIe switches behind switches.
LIMIT_PATH_BYTES = 2048
LIMIT_DEPTH = 64
# pigz and bgzip pack in pieces.
LIMIT_PIECES = 100_000

_BLOCK = 512
_CHUNK = 1 << 16
_OCTAL = re.compile(rb"[ \0]*([0-7]*)[ \0]*")
_RECORD = re.compile(rb"([1-9][0-9]{0,4}) ([^=\n\0]{1,200})=")
_PAX, _PAX_GLOBAL, _LONG_NAME, _LONG_LINK = b"x", b"g", b"L", b"K"
_KINDS = {b"0": "file", b"\0": "file", b"7": "file", b"5": "folder", b"2": "link"}


class CaptureError(ValueError):
    """A capture that is broken or hostile."""


@dataclass(frozen=True)
class _Member:
    kind: str
    name: str
    target: str
    size: int


def unpack(path: str, folder: str) -> None:
    """Unpack files, folders and links below a folder, and nothing outside of it.

    :raises CaptureError: when it is broken, too large, or would reach outside.
    """
    with open(path, "rb") as packed:
        stream = _Stream(packed)
        place = _Place(folder)
        try:
            for member in _members(stream):
                place.put(member, stream)
            # The checksum stands at the end.
            while stream.read(_CHUNK):
                pass
        except (CaptureError, OSError, zlib.error, ValueError) as error:
            raise CaptureError("%s cannot be unpacked: %s" % (path, error)) from error


class _Stream:
    """What unpacks from a file, in small pieces, and no more than was agreed."""

    def __init__(self, packed: BinaryIO) -> None:
        self._packed = packed
        self._unpacker = zlib.decompressobj(31)
        self._buffer = bytearray()
        self._total = 0
        self._pieces = 1

    def read(self, size: int) -> bytes:
        """Up to ``size`` bytes; less at the end only."""
        while len(self._buffer) < size:
            block = self._next()
            if not block:
                break
            self._buffer += block
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        return data

    def exactly(self, size: int) -> bytes:
        data = self.read(size)
        if len(data) < size:
            raise CaptureError("it is cut off")
        return data

    def _next(self) -> bytes:
        while True:
            if self._unpacker.eof:
                left = (self._unpacker.unused_data or self._packed.read(_CHUNK)).lstrip(b"\0")
                if not left:
                    if self._packed.read(1):
                        raise CaptureError("something follows its end")
                    return b""
                self._pieces += 1
                if self._pieces > LIMIT_PIECES:
                    raise CaptureError("it is packed in more than %d pieces" % LIMIT_PIECES)
                self._unpacker = zlib.decompressobj(31)
            else:
                left = self._unpacker.unconsumed_tail or self._packed.read(_CHUNK)
                if not left:
                    raise CaptureError("it is cut off")
            block = self._unpacker.decompress(left, _CHUNK)
            self._total += len(block)
            # Headers and padding take up to three blocks a member.
            if self._total > LIMIT_BYTES + LIMIT_HEADERS_BYTES + 4 * _BLOCK * LIMIT_MEMBERS:
                raise CaptureError("it unpacks to more than %d bytes" % LIMIT_BYTES)
            if block:
                return block


class _Place:
    """The folder that is unpacked to."""

    def __init__(self, folder: str) -> None:
        self._top = folder
        self._folders: Set[str] = {""}
        self._count = 0

    def put(self, member: _Member, stream: _Stream) -> None:
        shown = member.name[:80]
        parts = [part for part in member.name.split("/") if part not in ("", ".")]
        if member.name.startswith("/") or ".." in parts:
            raise CaptureError("member %r leads out of the capture" % shown)
        if len(os.fsencode(member.name)) > LIMIT_PATH_BYTES or len(parts) > LIMIT_DEPTH:
            raise CaptureError("member %r has a path of more than %d bytes or %d folders" % (
                shown, LIMIT_PATH_BYTES, LIMIT_DEPTH,
            ))  # fmt: skip
        if not parts:
            return
        self._make("/".join(parts if member.kind == "folder" else parts[:-1]), shown)
        full = os.path.join(self._top, *parts)
        if member.kind == "folder":
            return
        self._note()
        if os.path.lexists(full):
            raise CaptureError("member %r comes twice" % shown)
        if member.kind == "link":
            # Never followed by the system: CaptureHost resolves links inside the capture itself.
            os.symlink(member.target, full)
            return
        with open(full, "xb") as copy:
            left = member.size
            while left:
                block = stream.exactly(min(left, _CHUNK))
                copy.write(block)
                left -= len(block)
        stream.exactly(-member.size % _BLOCK)

    def _make(self, path: str, shown: str) -> None:
        """Make a folder and those above it, none of which may be a link."""
        if path in self._folders:
            return
        self._make(path.rpartition("/")[0], shown)
        full = os.path.join(self._top, path)
        if os.path.islink(full):
            raise CaptureError("member %r is behind a symbolic link" % shown)
        self._note()
        os.mkdir(full)
        self._folders.add(path)

    def _note(self) -> None:
        self._count += 1
        if self._count > LIMIT_MEMBERS:
            raise CaptureError("it holds more than %d members" % LIMIT_MEMBERS)


def _members(stream: _Stream) -> Iterator[_Member]:
    """What an archive says that it holds; the content of a file has to be taken before the next is asked for."""
    total = headers = count = 0
    while True:
        found = _next_member(stream)
        if found is None:
            if not count:
                raise CaptureError("it is no archive")
            return
        member, of_headers = found
        headers += of_headers
        count += 1
        total += member.size
        if count > LIMIT_MEMBERS:
            raise CaptureError("it holds more than %d members" % LIMIT_MEMBERS)
        if total > LIMIT_BYTES:
            raise CaptureError("it unpacks to more than %d bytes" % LIMIT_BYTES)
        if headers > LIMIT_HEADERS_BYTES:
            raise CaptureError("it has headers of more than %d bytes" % LIMIT_HEADERS_BYTES)
        yield member


def _next_member(stream: _Stream) -> Optional[Tuple[_Member, int]]:
    """The next member with what its extended headers take; None at the end."""
    said: Dict[str, str] = {}
    headers = 0
    for _header in range(LIMIT_HEADERS_IN_A_ROW + 1):
        block = stream.read(_BLOCK)
        if not block.strip(b"\0") and not said:
            return None
        if len(block) < _BLOCK or _octal(block[148:156]) != sum(block) - sum(block[148:156]) + 8 * 32:
            raise CaptureError("a header is damaged")
        kind, size = block[156:157], _size(block[124:136])
        if kind not in (_PAX, _PAX_GLOBAL, _LONG_NAME, _LONG_LINK):
            return _member(block, kind, size, said), headers
        if size > LIMIT_HEADER_BYTES:
            raise CaptureError("it has a header of %d bytes" % size)
        text = stream.exactly(size + -size % _BLOCK)[:size]
        headers += size
        if kind == _LONG_NAME:
            said["path"] = _until_nul(text)
        elif kind == _LONG_LINK:
            said["linkpath"] = _until_nul(text)
        elif kind == _PAX:
            said.update(_records(text))
    raise CaptureError("it has headers without a member")


def _member(block: bytes, kind: bytes, size: int, said: Dict[str, str]) -> _Member:
    name = said.get("path") or _until_nul(block[:100])
    if "path" not in said and block[257:263] == b"ustar\0" and block[345]:
        name = "%s/%s" % (_until_nul(block[345:500]), name)
    if "size" in said:
        if not re.fullmatch("[0-9]{1,12}", said["size"]):
            raise CaptureError("member %r has no size" % name[:80])
        size = int(said["size"])
    what = _KINDS.get(kind)
    if what is None or any(key.startswith("GNU.sparse.") for key in said):
        raise CaptureError("member %r is neither a file, a folder nor a symbolic link" % name[:80])
    if what == "file" and kind == b"\0" and name.endswith("/"):
        what = "folder"  # as before ustar
    # Only a file has content: the size of others is of no meaning, and tools leave it at that of the inode.
    return _Member(what, name, said.get("linkpath") or _until_nul(block[157:257]), size if what == "file" else 0)


def _records(text: bytes) -> Dict[str, str]:
    """``LENGTH KEY=VALUE\\n`` records of an extended header."""
    found: Dict[str, str] = {}
    place = 0
    while place < len(text):
        head = _RECORD.match(text, place)
        end = place + int(head.group(1)) if head else 0
        if head is None or end > len(text) or end <= head.end() or text[end - 1 : end] != b"\n":
            raise CaptureError("an extended header is damaged")
        found[_decoded(head.group(2))] = _decoded(text[head.end() : end - 1])
        place = end
    return found


def _octal(field: bytes) -> int:
    found = _OCTAL.fullmatch(field)
    if found is None:
        raise CaptureError("a header is damaged")
    return int(found.group(1) or b"0", 8)


def _size(field: bytes) -> int:
    """Octal, or binary behind a first bit that is set, as GNU tar does it from 8 GiB on."""
    if field[0] & 0x80:
        return int.from_bytes(bytes([field[0] & 0x7F]) + field[1:], "big")
    return _octal(field)


def _until_nul(field: bytes) -> str:
    return _decoded(field.split(b"\0", 1)[0])


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")
