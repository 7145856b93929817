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

# What stands before the time: the marks of a quotation, "<4>" of the raw log, "kern  :err   : " of dmesg -x, and the
# node with the same of talosctl.
_BEFORE = r"(?:>{1,3} ?)?(?:<\d{1,3}>)?(?:(?:[\w.-]{1,80}: {1,3})?[a-z\d]{2,8} {0,6}: {0,8}[a-z]{2,7} {0,6}: {1,4})?"
# [   12.345678], [   12.345678][    T1], [Fri Aug 30 11:11:22 2024], [Aug30 11:11] and [  +0.000005] of dmesg -H, and what
# journalctl and syslog put before it with the host and who says it, the names of months in any language.
_HOST = r"(?:\S{0,254}[^\s:] "
_STAMP = re.compile(
    _BEFORE + r"(?:\[\s{0,12}(?P<up>\d{1,10}\.\d{1,9})\](?:\[\s{0,8}[TC]?\d{1,8}\])?"
    r"|\[(?P<human>[^\s\[\]]{2,12} [^\s\[\]]{2,12} {1,2}\d{1,2} \d\d:\d\d:\d\d \d{4})\]"
    r"|\[(?P<short>[^\s\[\]\d]{2,12} {0,2}\d{1,2} \d\d:\d\d)\]|\[ {0,8}\+ {0,8}\d{1,8}\.\d{1,9}\]"
    r"|(?:[A-Z][a-z]{2} )?\[?(?P<iso>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[^\s\]]{0,20})(?:\]:?)?"
    r"(?: (?:[A-Z]{3,5} )?" + _HOST + r"(?:kernel|[\w.@/-]{1,60}\[\d{1,10}\])|kernel):)?"
    r"|(?P<sys>[^\s\[\]<>:]{2,12} {1,2}\d{1,2} \d\d:\d\d:\d\d(?:\.\d{1,6})?|\d{10}\.\d{1,9}) "
    + _HOST + r"[\w.@/-]{1,60}(?:\[\d{1,10}\])?|kernel):"
    r"|kernel:)(?: |$)?",
    re.ASCII,
)  # fmt: skip
_INNER = re.compile(r"\s{0,4}\[\s{0,12}(\d{1,10}\.\d{1,9})\] ?", re.ASCII)
# What is always a message of its own, however far it is indented.
_OWN = re.compile(r"\bS?X[Ii][Dd] \(", re.ASCII)


@dataclass(frozen=True)
class Entry:
    """``time`` as it was written (seconds since boot from dmesg), empty when the line has none."""

    time: str
    message: str


def entries(text: str, is_wanted: Callable[[str], bool]) -> Iterator[Entry]:
    """The messages whose first line is wanted.  One that has several lines keeps them, split by a newline."""
    time = ""
    parts: List[str] = []
    has_begun, above = False, ""
    for line in _lines(text):
        is_indented = line[:1] in (" ", "\t")
        if is_indented and has_begun and not _STAMP.match(line.lstrip()[:LONGEST]):
            # dmesg and journalctl indent the further lines of a message.
            if parts and not _OWN.search(line):
                parts.append(line.strip())
                continue
            if not parts and (_STAMP.match(above[:LONGEST]) or not is_wanted(line)):
                continue
        if line and not is_indented:
            has_begun, above = True, line
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
    time = next((value for value in stamp.groups() if value), inner.group(1) if inner else "")
    return time, rest[inner.end() :] if inner else rest


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
