# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NVLinks: what ``nvidia-smi nvlink`` says of each GPU and link, whichever of its options were given.

``-s`` tells the rate of a link or that it is inactive, ``-e`` its error counters, ``-c`` what it can do, ``-R``
and ``-p`` what is at its other end, ``-info`` its firmware.  Instead of links a GPU may have one message.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Dict, List, Mapping, Optional, Tuple, Union

from .._engine.values import Text, Unknown
from .nvidia_values import Flag, Number, Real, Word
from .nvidia_words import address, clean, is_complaint, not_understood, silence
from .pasted import plain_lines

# What a GPU may have instead of links, by a part of its message in lower case.
_MESSAGES = (
    ("all links are inactive", "all inactive"),
    ("in mig mode", "mig"),
    ("mig is enabled", "mig"),
    ("does not have or support nvlink", "no nvlink"),
    ("nvlink is not supported", "no nvlink"),
    ("not supported", "no nvlink"),
)
_INACTIVE = ("inactive", "disabled", "down", "off")

# Counters that are zero on a healthy link: the first three up to NVLink 4, the others from NVLink 5 on.  FEC bins,
# raw errors and bit error rates are not among them: those are never zero (B300, driver 595.91.07).
_ERROR = re.compile(
    r"(replay|recovery|crc|crc_flit|crc_data|malformed_packet|buffer_overrun|rx|rx_remote|rx_general|"
    r"local_link_integrity|effective|symbol)_errors?(_count)?(_lane_\d{1,2})?|"
    r"tx_discards|link_recovery_successful_events|link_recovery_failed_events",
    re.ASCII,
)
_GPU = re.compile(r"\s*GPU\s{1,3}(\d{1,4})\s*:\s*(.{0,200}?)\s*(?:\(UUID:\s*([^)]{0,80})\)(.{0,200}))?\s*", re.ASCII)
# The command itself, in a text that has several of them; drivers before R450 name no GPU when one is asked for.
_COMMAND = re.compile(r".{0,200}nvidia-smi\b.{0,20}\bnvlink\b(?:.{0,80}?\s(?:-i|--id)[ =](\d{1,4})\b)?", re.ASCII)
# A comma stands behind the link in -c; some tools write the GPU before it.
_LINK = re.compile(r"\s*(?:GPU\s{1,3}(\d{1,4})\s*,\s*)?Link\s{1,3}(\d{1,3})\s*[:,]\s*(.{0,400})", re.ASCII)
_SIGN = re.compile(r"\s*(?:GPU\s{1,3}\d{1,4}\s*[:,]|Link\s{1,3}\d{1,3}\s*[:,])", re.ASCII)
_RATE = re.compile(r"(\d{1,5}(?:\.\d{1,6})?)\s*GB/s.{0,20}", re.ASCII | re.IGNORECASE)
_REMOTE = re.compile(
    r"(?:Remote Device\s*)?([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])(?::\s*Link\s*(\d{1,3}))?", re.ASCII
)
_PAIR = re.compile(r"\s{0,40}([A-Za-z][^:,]{1,60}?)\s{0,40}:\s{0,40}([^,:]{1,60})")
_ROW = re.compile(r"(\s{0,200})([A-Za-z][A-Za-z0-9 _-]{0,40}?)\s*:\s*(.{0,100})")

_NOT_ASKED = Unknown("not there: no row of this output tells it")


@dataclass(frozen=True)
class Link:
    """``rate_gb_s`` is per direction, as printed (26.562 carries 25); ``counters`` and ``abilities`` go by their
    printed names in lower case with underscores (``replay_errors``, ``fec_errors_0``, ``p2p_is_supported``)."""

    is_active: Flag = _NOT_ASKED
    rate_gb_s: Real = _NOT_ASKED
    counters: Mapping[str, Real] = field(default_factory=dict)
    abilities: Mapping[str, bool] = field(default_factory=dict)
    remote_address: Word = _NOT_ASKED
    remote_link: Number = _NOT_ASKED


@dataclass(frozen=True)
class GpuLinks:
    """``state`` is ``links`` (there are rows of them), ``all inactive``, ``no nvlink``, ``mig`` (cannot be asked),
    ``error`` or ``silent``; ``message`` is what was printed instead of rows.  ``info`` are the rows of -info."""

    index: int
    name: str
    uuid: str
    state: str
    message: str
    links: Mapping[int, Link]
    info: Mapping[str, str]

    @property
    def active(self) -> Number:
        """How many links are up; unknown when none can be."""
        return 0 if self.state == "all inactive" else self._count(True)

    @property
    def inactive(self) -> Number:
        return self._count(False)

    @property
    def rates_gb_s(self) -> Tuple[float, ...]:
        """The rates of active links, each once, ascending."""
        rates = {link.rate_gb_s for link in self.links.values() if link.is_active is True}
        return tuple(sorted(rate for rate in rates if isinstance(rate, float)))

    @property
    def errors(self) -> Dict[int, Dict[str, float]]:
        """The counters of errors that are not zero, by link."""
        found: Dict[int, Dict[str, float]] = {}
        for number, link in self.links.items():
            counters = {name: count for name, count in link.counters.items() if is_error(name)}
            known = {name: count for name, count in counters.items() if not isinstance(count, Unknown) and count > 0}
            if known:
                found[number] = known
        return found

    def _count(self, wanted: bool) -> Number:
        if self.state != "links":
            kinds = {"no nvlink": "not applicable", "mig": "not applicable", "error": "error"}
            said = self.message or (
                "nothing was printed for it" if not self.info else "only its firmware was asked for"
            )
            return Unknown("%s: %s" % (kinds.get(self.state, "not there"), said))
        # Rows of counters alone tell nothing on the status of a link.
        states = [link.is_active for link in self.links.values() if link.is_active is not _NOT_ASKED] or [_NOT_ASKED]
        return next((state for state in states if isinstance(state, Unknown)), states.count(wanted))


def is_error(counter: str) -> bool:
    """Whether a counter counts errors that a healthy link does not have."""
    return _ERROR.fullmatch(counter) is not None


def parse_nvlink(text: Text) -> Union[Tuple[GpuLinks, ...], Unknown]:
    """The output of ``nvidia-smi nvlink``, of one or several of its options behind each other, by index.

    Unknown when no GPU is in it: an empty output (old drivers where nothing has NVLink) or a complaint.
    """
    if not isinstance(text, str):
        return text if isinstance(text, Unknown) else Unknown("not there")
    heard = _Heard()
    rows = [line[:600] for line in plain_lines(clean(text), _SIGN)]
    for line in rows:
        heard.hear(line)
    gpus = heard.gpus
    return tuple(gpus[number].told() for number in sorted(gpus)) or _nothing(rows)


class _Heard:
    """What was heard of all GPUs so far."""

    def __init__(self) -> None:
        self.gpus: Dict[int, _Said] = {}
        self._current: Optional[_Said] = None
        self._asked_for: Optional[int] = None

    def hear(self, line: str) -> None:
        head, link, command = _GPU.fullmatch(line), _LINK.fullmatch(line), _COMMAND.match(line)
        state = _state_of(line)
        if line.startswith("####") or command:
            # What follows is another output; in a collection, another tool's.
            self._current = None
            self._asked_for = int(command.group(1)) if command and command.group(1) else None
        elif link:
            number = int(link.group(1)) if link.group(1) else self._nameless()
            if number is not None:
                self._turn_to(number).hear_link(int(link.group(2)), link.group(3))
        elif head:
            gpu = self._turn_to(int(head.group(1)))
            gpu.hear_name(head.group(2), head.group(3) or "")
            if head.group(4) and _state_of(head.group(4)):
                gpu.hear_message(head.group(4).strip())
        elif self._current and state:
            self._current.hear_message(line.strip())
        elif state in ("all inactive", "mig") or "have or support nvlink" in line.lower():
            # A message that lost the line of its GPU is about the next one.
            number = len(self.gpus) if self._asked_for is None else self._asked_for
            self.gpus.setdefault(number, _Said(number)).hear_message(line.strip())
        elif self._current and line.strip():
            self._current.hear_row(line)

    def _turn_to(self, number: int) -> _Said:
        self._current = self.gpus.setdefault(number, _Said(number))
        return self._current

    def _nameless(self) -> Optional[int]:
        """The GPU of a link without a name above it: unknown when there are several."""
        if self._current:
            return self._current.index
        if self._asked_for is not None:
            return self._asked_for
        return next(iter(self.gpus), 0) if len(self.gpus) < 2 else None


class _Said:
    """What was heard of one GPU so far."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.name = ""
        self._uuid = ""
        self._message = ""
        self._links: Dict[int, Dict[str, Dict[str, str]]] = {}
        self._info: Dict[str, str] = {}
        self._section: List[Tuple[int, str]] = []

    def hear_name(self, name: str, uuid: str) -> None:
        self.name, self._uuid, self._section = name or self.name, uuid or self._uuid, []

    def hear_message(self, message: str) -> None:
        self._message = message

    def hear_link(self, number: int, said: str) -> None:
        link = self._links.setdefault(number, {"status": {}, "pairs": {}, "remote": {}})
        remote = _REMOTE.fullmatch(said.strip())
        pairs = _PAIR.findall(said)
        if remote:
            link["remote"] = {"address": remote.group(1), "link": remote.group(2) or ""}
        elif pairs:
            link["pairs"].update((_name(name), value.strip()) for name, value in pairs)
        else:
            link["status"] = {"": said.strip()}

    def hear_row(self, line: str) -> None:
        """A row of -info; one that stands further to the right belongs to the one above it."""
        row = _ROW.fullmatch(line.expandtabs())
        if row:
            depth = len(row.group(1))
            self._section = [(place, name) for place, name in self._section if place < depth]
            path = "/".join([*(name for _place, name in self._section), row.group(2)])
            self._section.append((depth, row.group(2)))
            if row.group(3).strip():
                self._info[path] = row.group(3).strip()

    def told(self) -> GpuLinks:
        state = "links" if self._links else _state_of(self._message) or "silent"
        links = {number: _link(self._links[number]) for number in sorted(self._links)}
        return GpuLinks(self.index, self.name, self._uuid, state, self._message, links, self._info)


def _state_of(line: str) -> str:
    """The state that a message stands for, nothing when it is none."""
    low = line.strip().lower()
    state = next((state for part, state in _MESSAGES if part in low), "")
    return state or ("error" if is_complaint(low) or low.startswith("nvml:") else "")


def _link(said: Mapping[str, Mapping[str, str]]) -> Link:
    is_active, rate = _status(said["status"].get("", ""))
    pairs, remote = said["pairs"], said["remote"]
    abilities = {name: value.lower() == "true" for name, value in pairs.items() if value.lower() in ("true", "false")}
    return Link(
        is_active,
        rate,
        {name: _count(value) for name, value in pairs.items() if name not in abilities},
        abilities,
        address(remote["address"]) if remote else _NOT_ASKED,
        int(remote["link"]) if remote.get("link") else _NOT_ASKED,
    )


def _status(word: str) -> Tuple[Flag, Real]:
    rate = _RATE.fullmatch(word)
    if rate:
        return True, float(rate.group(1))
    if word.strip("<>").lower() == "active":
        return True, Unknown("not there: no rate is printed")
    if word.strip("<>").lower() in _INACTIVE:
        return False, Unknown("not applicable: the link is inactive")
    reason = _silent(word) if word else _NOT_ASKED
    return reason, reason


def _count(word: str) -> Real:
    """Bit error rates are printed as 15e-255, which stands for none."""
    found = re.fullmatch(r"\d{1,20}(?:\.\d{1,10})?(?:e[-+]?\d{1,3})?", word, re.ASCII | re.IGNORECASE)
    value = float(word) if found else -1.0
    return value if 0 <= value < 1e30 else _silent(word)


def _silent(word: str) -> Unknown:
    quiet = silence(word)
    return not_understood(word) if quiet is None else quiet


def _name(printed: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", printed.lower()).strip("_")


def _nothing(rows: List[str]) -> Unknown:
    said = next((row.strip() for row in rows if row.strip()), "")
    if not said:
        return Unknown("not there: the tool printed nothing")
    return Unknown("error: %s" % said[:200]) if is_complaint(said) else _silent(said)
