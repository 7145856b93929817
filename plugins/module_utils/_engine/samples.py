# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a block device reads as zeros: its head, its tail, and samples between.

A device without a known signature is not blank: plain dm-crypt, LUKS with its header elsewhere, a raw archive and what
is left of a filesystem whose superblock was wiped have none.

How sure the samples are.  Head and tail are read whole.  The rest is cut into SPREAD equal parts, and each is looked at
in one place that is chosen anew each time.  Data in one piece that is longer than two parts (0.4 % of the device) is
found always.  Data that is scattered over a share f of the device is missed with (1 - f) ** SPREAD: 0.6 % for a share
of 1 %, one in 30,000 for 2 %.  The device is looked at twice, when it is planned and right before it is written to.
"""

from __future__ import annotations

import json
import math
import mmap
import os
import random
import stat
from typing import Any, Dict, List, Optional, Tuple

HEAD_BYTES = 16 << 20
# GPT's copy, md 1.0, DDF and ZFS keep what they know within the last 512 KiB; this is more.
TAIL_BYTES = 4 << 20
# A disk with heads takes about 10 ms for each place, so half a thousand take some seconds.
SPREAD = 512
SAMPLE_BYTES = 64 << 10
# O_DIRECT wants its places and sizes in whole logical blocks, of 512 bytes or 4 KiB.
ALIGNMENT = 4096
_BLOCK_BYTES = 1 << 20
_ZEROS = bytes(_BLOCK_BYTES)
# LUKS begins its data at 16 MiB; btrfs keeps copies at 64 MiB and 256 GiB, ext4 (sparse_super) in groups of 128 MiB.
_COPIES = tuple(1 << power for power in range(24, 46)) + tuple(group << 27 for group in (3, 5, 7, 9, 25, 27, 49))

# What blkid does not know or does not tell: place in the data, bytes, name.
_MAGIC = (
    (257, b"ustar", "a tar archive"),
    (0, b"SPDKBLOB", "an SPDK blobstore"),
    (0, b"\x1f\x8b", "gzip data"),
    (0, b"\x28\xb5\x2f\xfd", "zstd data"),
    (0, b"\xfd7zXZ\0", "xz data"),
    (0, b"PK\x03\x04", "a zip archive"),
    (0, b"QFI\xfb", "a qcow2 image"),
    (0, b"\x7fELF", "a program"),
)  # fmt: skip
# Bits a byte of 64 KiB that are random come to 7.997; text, tables and machine code stay far below this.
_RANDOM_BITS = 7.9


def run(device: str) -> Tuple[int, str, str]:
    """Exit status, standard output and error: 0 blank, 1 not blank, 2 cannot be told."""
    try:
        fd, size = _open(device)
        try:
            found = look_at(fd, size)
        finally:
            os.close(fd)
    except OSError as error:
        return 2, "", "%s: %s" % (device, error.strerror or error)
    what = "" if found["blank"] else "%s reads as data at 0x%x: %s" % (device, found["at"], found["like"])
    return int(not found["blank"]), json.dumps(found), what


def without_bytes(said: str) -> str:
    """What :func:`run` says, for a capture: the verdict, and nothing of what lies on the device."""
    try:
        found = json.loads(said)
        found.pop("bytes", None)
    except (ValueError, AttributeError):
        return ""
    return json.dumps(found)


def look_at(fd: int, size: int, chance: Optional[random.Random] = None) -> Dict[str, Any]:
    """Read the head, the tail and the samples, up to the first that is not zero."""
    buffer = mmap.mmap(-1, _BLOCK_BYTES)  # its memory begins at a page, as O_DIRECT wants it
    read_bytes = 0
    wanted = places(size, chance or random.SystemRandom())
    for count, (start, length) in enumerate(wanted):
        for place in range(start, start + length, _BLOCK_BYTES):
            data = _read(fd, buffer, place, min(_BLOCK_BYTES, start + length - place))
            read_bytes += len(data)
            if data != _ZEROS[: len(data)]:
                return dict(_described(data, place), size=size, read_bytes=read_bytes, samples=count + 1)
    return {"blank": True, "size": size, "read_bytes": read_bytes, "samples": len(wanted)}


def places(size: int, chance: random.Random) -> List[Tuple[int, int]]:
    """Where to look: (start, length) in rising order."""
    middle = size - HEAD_BYTES - TAIL_BYTES
    if middle <= SPREAD * SAMPLE_BYTES:
        return [(0, size)]
    tail = (size - TAIL_BYTES) // ALIGNMENT * ALIGNMENT
    part = (tail - HEAD_BYTES) // SPREAD
    starts = {HEAD_BYTES + number * part + chance.randrange(part - SAMPLE_BYTES + 1) for number in range(SPREAD)}
    starts.update(copy for copy in _COPIES if copy + SAMPLE_BYTES <= tail)
    rows = sorted((start // ALIGNMENT * ALIGNMENT, SAMPLE_BYTES) for start in starts)
    return [(0, HEAD_BYTES), *rows, (tail, size - tail)]


def _open(device: str) -> Tuple[int, int]:
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        fd = os.open(device, flags | os.O_DIRECT)
    except OSError:
        fd = os.open(device, flags)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)  # what the cache remembers may not be on the disk any more
    if not stat.S_ISBLK(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(None, "is no block device")
    size = os.lseek(fd, 0, os.SEEK_END)
    if not size:
        os.close(fd)
        raise OSError(None, "has no size")
    return fd, size


def _read(fd: int, buffer: mmap.mmap, place: int, length: int) -> bytes:
    with memoryview(buffer) as view:
        done = os.preadv(fd, [view[:length]], place)
        if done != length:
            raise OSError(None, "reads %d of %d bytes at 0x%x" % (done, length, place))
        return bytes(view[:length])


def _described(data: bytes, place: int) -> Dict[str, Any]:
    """What was seen first that is not zero, in words and some bytes."""
    first = len(data) - len(data.lstrip(b"\0"))
    start = first // 512 * 512  # magic numbers are counted from the start of a sector
    shown = data[first : first + 16]
    return {
        "blank": False,
        "at": place + first,
        "bytes": " ".join("%02x" % byte for byte in shown),
        "like": _likeness(data[start : start + SAMPLE_BYTES]),
    }


def _likeness(data: bytes) -> str:
    for place, magic, name in _MAGIC:
        if data[place : place + len(magic)] == magic:
            return "looks like " + name
    if data.strip(b"\xff") == b"":
        return "reads as 0xff throughout, as some disks do after a discard or an erase"
    if len(data) >= ALIGNMENT and _bits_a_byte(data) >= _RANDOM_BITS * _of_random(len(data)):
        return "looks random, so it may be encrypted or compressed"
    if not data.strip(b"\0").translate(None, _TEXT):
        return "looks like text"
    return "is nothing that is known here"


_TEXT = bytes([9, 10, 13, *range(32, 127)])


def _of_random(length: int) -> float:
    """A short text cannot show all bytes alike: what part of eight bits random bytes of this length come to."""
    return 1 - 255 / (2 * math.log(2) * length * 8)


def _bits_a_byte(data: bytes) -> float:
    counts = [data.count(bytes([value])) for value in range(256)]
    return -sum(count / len(data) * math.log2(count / len(data)) for count in counts if count)
