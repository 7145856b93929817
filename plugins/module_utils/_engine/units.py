# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sizes in bytes, as people write them and as tools of Linux print them."""

from __future__ import annotations

import re
from typing import Any

# All factors are powers of two, as XFS, LVM, md and systemd mean them: "k", "K", "KiB" and "KB" are
# one thing.  Only the decimal names of disk makers would differ, and no tool here takes those.
_FACTOR = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40, "p": 2**50, "e": 2**60}
_SIZE = re.compile(r"(\d+)(?:\.(\d{1,9}))?\s*([kmgtpe]?)(?:i?b)?", re.IGNORECASE | re.ASCII)


def parse_size(text: Any) -> int:
    """Bytes of ``64k``, ``128m``, ``1GiB``, ``1.5T`` or a plain number.

    :raises ValueError: for anything else, such as a negative number or half a byte.
    """
    if isinstance(text, int) and not isinstance(text, bool) and text >= 0:
        return text
    found = _SIZE.fullmatch(text.strip()) if isinstance(text, str) else None
    if found is None:
        raise ValueError("%r is not a size such as 64k, 128m or 1GiB" % (text,))
    whole, part, unit = found.groups()
    factor = _FACTOR[unit.lower()]
    size = int(whole) * factor
    if part:
        tail, rest = divmod(int(part) * factor, 10 ** len(part))
        # 20.37 TiB is a rounded figure and fine; 1.5 bytes is a mistake.
        if rest and factor == 1:
            raise ValueError("%r is not a whole number of bytes" % (text,))
        size += tail
    return size


def format_size(size: int) -> str:
    """The shortest exact way to write a size: ``64k``, ``128m``, ``1g``, or plain bytes."""
    for unit in ("e", "p", "t", "g", "m", "k"):
        if size and size % _FACTOR[unit] == 0:
            return "%d%s" % (size // _FACTOR[unit], unit)
    return str(size)


def format_size_for_people(size: int) -> str:
    """A size to read in a sentence: ``1.8 TiB``."""
    figure = float(size)
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if figure < 1024:
            return "%.4g %s" % (figure, unit)
        figure /= 1024
    return "%.4g PiB" % figure
