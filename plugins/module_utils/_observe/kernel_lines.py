# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lines of the kernel log as journalctl, dmesg and syslog daemons write them: their time and their message."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Callable, Iterator, List, Tuple

# The longest message that is looked at; the kernel's own limit for a record is 1 KiB.
LONGEST = 2000
# How many lines of each end are looked at for the time that a log covers.
_END = 20

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


def entries(text: str, is_wanted: Callable[[str], bool]) -> Iterator[Entry]:
    """The messages whose first line is wanted.  One that has several lines keeps them, split by a newline."""
    time = ""
    parts: List[str] = []
    has_begun = False
    for line in _lines(text):
        is_indented = line[:1] in (" ", "\t")
        if is_indented and has_begun and not _STAMP.match(line.lstrip()[:LONGEST]):
            # dmesg and journalctl indent the further lines of a message.
            if parts:
                parts.append(line.strip())
            continue
        has_begun = has_begun or bool(line and not is_indented)
        if parts:
            yield Entry(time, "\n".join(parts)[:LONGEST])
            parts = []
        if is_wanted(line):
            time, message = _split(line)
            parts = [message]
    if parts:
        yield Entry(time, "\n".join(parts)[:LONGEST])


def span(text: str) -> Tuple[str, str]:
    """The times of the first and of the last line that have one; only a few lines of each end are looked at."""
    head = [_split(line)[0] for line in text[: _END * LONGEST].split("\n")[:_END]]
    tail = [_split(line)[0] for line in text[-_END * LONGEST :].split("\n")[-_END:]]
    return next((time for time in head if time), ""), next((time for time in reversed(tail) if time), "")


def _split(line: str) -> Tuple[str, str]:
    """Time and message of a line."""
    line = line.lstrip()[:LONGEST]
    stamp = _STAMP.match(line)
    if stamp is None:
        return "", line
    rest = line[stamp.end() :]
    inner = _INNER.match(rest)
    return next((value for value in stamp.groups() if value), ""), rest[inner.end() :] if inner else rest


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
