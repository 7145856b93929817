# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lines of an output without what a mail, a log or a parallel shell put in front of each of them."""

from __future__ import annotations

import re
from typing import List, Pattern, Sequence, Tuple

# In front of the lines of several machines at once: the beginning that comes first is the one that is read.
_NAMES: Tuple[Pattern[str], ...] = (
    # pdsh, clush, ansible -o; then mpirun --tag-output, srun -l, kubectl logs --prefix.
    re.compile(r"[A-Za-z0-9][\w.@/-]{0,100}:"),
    re.compile(r"\[[\w,./ -]{1,100}\](?:<\w{1,10}>)?:?"),
)
# In front of every line, and another one each time.
_MARKS: Tuple[Pattern[str], ...] = (
    re.compile(r" {0,3}> ?"),
    re.compile(r"\[?(?:\d{4}-\d\d-\d\d[T ])?\d\d:\d\d:\d\d[^\s\]]{0,20}\]? ?", re.ASCII),
    re.compile(r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d [\w.-]{1,80} [^\s:]{1,80}: ?", re.ASCII),
)
_LONGEST = 4000


def plain_lines(text: str, sign: Pattern[str]) -> List[str]:
    """The lines as they were printed, going by the first one that fits ``sign`` with or without a beginning."""
    lines = [line[:_LONGEST] for line in re.split("\r\n|\r|\n", text.lstrip("\ufeff").replace("\xa0", " "))]
    if any(sign.match(line) for line in lines):
        return lines
    for mark in _MARKS:
        if _fits(lines, mark, sign):
            return [mark.sub("", line, count=1) if mark.match(line) else line for line in lines]
    for name in _NAMES:
        fitting = _fits(lines, name, sign)
        if fitting:
            return [line[len(fitting) :] for line in lines if line.startswith(fitting)]
    cells = ["\t".join(line.strip().strip("|").split("|")) for line in lines if line.lstrip().startswith("|")]
    return cells if any(sign.match(line) for line in cells) else lines


def _fits(lines: Sequence[str], front: Pattern[str], sign: Pattern[str]) -> str:
    """What stands in front of the first line that has the sign behind it."""
    for line in lines:
        found = front.match(line)
        if found and found.end() and sign.match(line, found.end()):
            return found.group()
    return ""
