# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lines of the kernel log as journalctl, dmesg and syslog daemons write them: their time and their message."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Iterator, List

# The longest message that is looked at; the kernel's own limit for a record is 1 KiB.
LONGEST = 2000

# [   12.345678], [   12.345678][    T1], [Fri Aug 30 11:11:22 2024], and what journalctl and syslog put before it.
_UPTIME = r"\[\s{0,12}(?P<up>\d{1,10}\.\d{1,9})\](?:\[\s{0,8}[TC]?\d{1,8}\])?"
_STAMP = re.compile(
    r"(?:<\d{1,3}>)?(?:" + _UPTIME + r"|\[(?P<human>[A-Z][a-z]{2} [A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d:\d\d \d{4})\]"
    r"|(?P<iso>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S{0,20})(?: \S{1,255} (?:kernel|[\w.@/-]{1,60}\[\d{1,10}\]):)?"
    r"|(?P<sys>[A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d:\d\d(?:\.\d{1,6})?) \S{1,255} (?:kernel|[\w.@/-]{1,60}(?:\[\d{1,10}\])?):"
    r"|kernel:)(?: |$)?",
    re.ASCII,
)
_INNER = re.compile(r"\s{0,4}\[\s{0,12}\d{1,10}\.\d{1,9}\] ?", re.ASCII)


@dataclass(frozen=True)
class Entry:
    """``time`` as it was written (seconds since boot from dmesg), empty when the line has none."""

    time: str
    message: str


def entries(text: str) -> Iterator[Entry]:
    """The messages of a log.  One that has several lines keeps them, split by a newline."""
    time = ""
    parts: List[str] = []
    for line in _lines(text):
        stamp = _STAMP.match(line)
        if stamp is None and parts and line[:1] in (" ", "\t"):
            # dmesg and journalctl indent the further lines of a message.
            parts.append(line.strip())
            continue
        if parts:
            yield Entry(time, "\n".join(parts)[:LONGEST])
        rest = line[stamp.end() :] if stamp else line
        inner = _INNER.match(rest) if stamp else None
        time = next((value for value in stamp.groups() if value), "") if stamp else ""
        parts = [rest[inner.end() :] if inner else rest]
    if parts:
        yield Entry(time, "\n".join(parts)[:LONGEST])


def _lines(text: str) -> Iterator[str]:
    """Lines one by one: a list of all of a long log would cost as much memory again."""
    place = 0
    while place < len(text):
        end = text.find("\n", place)
        end = len(text) if end < 0 else end
        line = text[place : min(end, place + LONGEST)].rstrip("\r")
        place = end + 1
        # rsyslog writes a newline inside of a message as #012, others as \x0a.
        if "#012" in line or "\\x0a" in line:
            pieces: List[str] = line.replace("\\x0a", "#012").split("#012")
            yield pieces[0]
            yield from (" " + piece for piece in pieces[1:])
        else:
            yield line
