# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Linux lists of CPUs and memory nodes ("0-3,8,10-11"), to sets and back.

The format is the kernel's (Documentation/admin-guide/kernel-parameters.rst, "cpu lists"), with its
stride form ``first-last:used/group``; systemd's AllowedCPUs= also takes spaces between the ranges.
"""

from __future__ import annotations

import re
from typing import FrozenSet, Iterable, List, Sequence, Set, Tuple

# More than any kernel's NR_CPUS (8192), and small enough that a hostile list costs nothing.
HIGHEST_ID = 65_535
# An id may come again, but not all of them over and over.
_MOST_NAMED = 4 * HIGHEST_ID

_ITEM = re.compile(r"(\d+)(?:-(\d+)(?::(\d+)/(\d+))?)?", re.ASCII)


def parse_cpulist(text: str) -> FrozenSet[int]:
    """The ids of a list; an empty text is an empty set.

    :raises ValueError: naming the item and its place (counted from 1) when it is not a list.
    """
    ids: Set[int] = set()
    stripped = text.strip()
    if not stripped:
        return frozenset()
    named = 0
    for place, item in _items(stripped):
        found = _item_ids(item, place)
        named += len(found)
        if named > _MOST_NAMED:
            raise ValueError("up to character %d the list names %d ids" % (place, named))
        ids.update(found)
    return frozenset(ids)


def format_cpulist(ids: Iterable[int]) -> str:
    """The shortest kernel list of some ids, ascending: "0-3,8,10-11"."""
    ranges: List[List[int]] = []
    for number in sorted(set(ids)):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ",".join("%d" % first if first == last else "%d-%d" % (first, last) for first, last in ranges)


def _items(text: str) -> Iterable[Tuple[int, str]]:
    """The items with their place.  Between two commas something must stand; spaces may repeat."""
    start = 0
    for part in text.split(","):
        if not part.strip():
            raise ValueError("nothing stands between two commas at character %d" % (start + 1))
        for found in re.finditer(r"\S+", part):
            yield start + found.start() + 1, found.group()
        start += len(part) + 1


def _item_ids(item: str, place: int) -> Sequence[int]:
    matched = _ITEM.fullmatch(item)
    if not matched:
        raise ValueError("%r at character %d is neither a number nor a range such as 0-3" % (item[:40], place))
    if any(len(digits) > len(str(HIGHEST_ID)) for digits in re.findall(r"\d+", item)):
        raise ValueError("%r at character %d is beyond %d" % (item[:40], place, HIGHEST_ID))
    first = int(matched.group(1))
    last = int(matched.group(2)) if matched.group(2) else first
    if last < first:
        raise ValueError("%r at character %d runs backwards" % (item, place))
    if last > HIGHEST_ID:
        raise ValueError("%r at character %d is beyond %d" % (item, place, HIGHEST_ID))
    if not matched.group(3):
        return range(first, last + 1)
    used, group = int(matched.group(3)), int(matched.group(4))
    if not 1 <= used <= group:
        raise ValueError("%r at character %d: a stride takes 1 to all of its group" % (item, place))
    return [number for number in range(first, last + 1) if (number - first) % group < used]
