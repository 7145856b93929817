# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Versions of drivers, toolkits and libraries: numbers between dots, two to four of them.

Driver releases have two or three numbers (595.80, 580.126.18), and NVML names its own with two of
three (580.126 for 580.126.18), so versions are compared by number and never as texts.
"""

from __future__ import annotations

import re
from typing import Optional, Tuple

# An epoch before it and a packaging revision behind it belong to the package, not to the version.
_VERSION = re.compile(r"\s*(?:\d{1,6}:)?[vVrR]?(\d{1,6}(?:\.\d{1,6}){0,5})(?![\w.])", re.ASCII)


def bare(text: str) -> str:
    """``3:580.126.18-1ubuntu1`` as ``580.126.18``; empty when no version stands at the front."""
    found = _VERSION.match(text)
    return found.group(1) if found else ""


def numbers(text: str) -> Tuple[int, ...]:
    """The numbers of a version, none when it is no version."""
    return tuple(int(word) for word in bare(text).split(".") if word)


def branch(text: str) -> Optional[int]:
    """The release branch of a driver: 580 of 580.126.18."""
    found = numbers(text)
    return found[0] if found else None


def compare(one: str, other: str) -> Optional[int]:
    """-1, 0 or 1 as one is older, equal or newer; a number that is missing counts as 0.

    None when one of them is no version.
    """
    first, second = numbers(one), numbers(other)
    if not first or not second:
        return None
    length = max(len(first), len(second))
    first += (0,) * (length - len(first))
    second += (0,) * (length - len(second))
    return (first > second) - (first < second)


def is_at_least(version: str, floor: str) -> Optional[bool]:
    """None when that cannot be told: one is no version, or is cut short of where they differ."""
    first, second = numbers(version), numbers(floor)
    if not first or not second:
        return None
    shared = min(len(first), len(second))
    if first[:shared] != second[:shared]:
        return first[:shared] > second[:shared]
    return True if len(first) >= len(second) or not any(second[shared:]) else None


def agree(one: str, other: str) -> Optional[bool]:
    """Whether two names of a version may mean one release.

    None when one is no version, or is the beginning of the other (580.126 and 580.126.18): then the
    short one may be that release, cut, or another.
    """
    first, second = numbers(one), numbers(other)
    if not first or not second:
        return None
    shared = min(len(first), len(second))
    if first[:shared] != second[:shared]:
        return False
    return True if len(first) == len(second) or not any(first[shared:] + second[shared:]) else None
