# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the lines of a journal say, and which of them are missing: pure, so that every kind of damage can be tried.

A line of format 2 carries its place in a chain of numbers (``seq``) and a checksum (``sum``); a line of format 1 has
neither, and only its steps are numbered.  A line that was cut short by a kill or a power cut is followed by one with
the number that it had: nothing is lost then, since a step is applied only after its line is on disk.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field, replace
from typing import Any, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from .values import Step

FORMAT = 2
# Where a record's first original lies: itself, not to be told from a damaged journal, or from before this was noted.
FIRST, UNSURE, NOT_NOTED = None, 0, -1
# Of a subject that was changed again and again, the newest records that are kept beside the first.
KEEP_NEWEST = 10
# Names of runs, undone ones too, that are known after the journal was shortened.
KEEP_RUNS = 50

_EVENTS = ("begin", "intend", "done", "undone", "end", "shortened")
_SAVED = {
    "event": re.compile(r'"event": "([a-z]{1,20})"'),
    "number": re.compile(r'"number": ([0-9]{1,12})[,}]'),
    "area": re.compile(r'"area": "([^"\\]{1,100})"'),
    "run": re.compile(r'"run": "([^"\\]{1,100})"'),
    "target": re.compile(r'"target": "([^"\\]{1,300})"'),
}
# A text in JSON, or the rest of a line in which it has no end.
_TEXT = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)')
_NAMED_DISK = re.compile("^/sys/block/[^/]+/")


@dataclass(frozen=True)
class Entry:
    """A step that was begun: ``done`` when it is known to have been applied.

    ``first`` is the number of the first record of the same thing that stood when this one was written; ``folders``
    those that its file needs and that were not there.
    """

    number: int
    run: str
    area: str
    step: Step
    done: bool
    first: Optional[int] = NOT_NOTED
    folders: Tuple[str, ...] = ()


@dataclass(frozen=True)
class Loss:
    """Lines of which nothing, or not enough, can be read; what is still known of them is given."""

    where: str
    count: int
    why: str
    numbers: Tuple[int, ...] = ()
    area: str = ""
    run: str = ""
    target: str = ""
    is_step: bool = True

    def place(self) -> str:
        """Where it is, and of what, as far as that is known."""
        numbers = "record %s" % " to ".join(str(n) for n in sorted({*self.numbers[:1], *self.numbers[-1:]}))
        of = [numbers] if self.numbers and self.is_step else []
        of += ["area " + self.area] if self.area else []
        of += ["run " + self.run] if self.run else []
        of += [self.target] if self.target else []
        return self.where + (": " + ", ".join(of) if of else "")

    def hides(self, entry: Entry) -> bool:
        """Whether an earlier change of the same thing may be among what is lost."""
        is_older = not self.numbers or min(self.numbers) < entry.number
        return self.is_step and is_older and self.target in ("", entry.step.target)


@dataclass
class Records:
    """All that a journal says; :meth:`add` follows what is appended to it."""

    entries: Dict[int, Entry] = field(default_factory=dict)
    events: Dict[int, Dict[str, Any]] = field(default_factory=dict)
    undone: Set[int] = field(default_factory=set)
    open_runs: List[Tuple[str, str]] = field(default_factory=list)
    runs: List[str] = field(default_factory=list)
    losses: List[Loss] = field(default_factory=list)
    last_seq: int = 0
    last_number: int = 0

    def add(self, event: Mapping[str, Any]) -> None:
        """Take in one event.  Raises KeyError, TypeError or ValueError for one that we do not understand."""
        name = event["event"]
        if name == "intend":
            entry = _entry(event)
            self.entries[entry.number] = entry
            self.events[entry.number] = {k: v for k, v in event.items() if k not in ("seq", "sum", "format")}
            # A shortened journal has the names already, in their order.
            if entry.number > self.last_number or entry.run not in self.runs:
                self.runs = [other for other in self.runs if other != entry.run] + [entry.run]
            self.last_number = max(self.last_number, entry.number)
        elif name in ("done", "undone"):
            self.settle(name, int(event["number"]))
        elif name == "begin":
            self.open_runs.append((str(event["run"]), str(event["area"])))
        elif name == "end":
            pair = (str(event["run"]), str(event["area"]))
            if pair in self.open_runs:
                self.open_runs.remove(pair)
        elif name == "shortened":
            self.last_number = max(self.last_number, int(event["number"]))
            self.runs = [str(run) for run in event["runs"]]
        else:
            raise ValueError("an event %r that this version does not know" % (name,))
        self.last_seq = max(self.last_seq, int(event.get("seq", 0)))

    def settle(self, name: str, number: int) -> None:
        if name == "undone":
            self.entries.pop(number, None)
            self.events.pop(number, None)
            self.undone.add(number)
        elif number in self.entries:
            self.entries[number] = replace(self.entries[number], done=True)
            self.events[number] = dict(self.events[number], done=True)

    def first_of(self, step: Step) -> Optional[int]:
        """What a new record of this step says of its first original."""
        standing = [number for number, entry in sorted(self.entries.items()) if subject(entry.step) == subject(step)]
        new = Entry(self.last_number + 1, "", "", step, False)
        if standing and not self.doubt(self.entries[standing[0]]):
            return standing[0]
        return UNSURE if standing or any(loss.hides(new) for loss in self.losses) else FIRST

    def doubt(self, entry: Entry) -> str:
        """Why what an entry remembers may not be what the host had before the first change; empty when it is."""
        if entry.first is None:
            return ""
        if entry.first > UNSURE:
            is_there = entry.first in self.entries or entry.first in self.undone
            return "" if is_there else "record %d, which holds its original, is lost" % entry.first
        hidden = [loss for loss in self.losses if loss.hides(entry)]
        if hidden:
            return "its original may be among what is lost (%s)" % hidden[0].place()
        return "the journal was damaged when this was written" if entry.first == UNSURE else ""


def seal(event: Mapping[str, Any], seq: int) -> str:
    """An event as a line of the journal."""
    body = dict(event, format=FORMAT, seq=seq)
    return json.dumps(dict(body, sum=_digest(body)), sort_keys=True)


def read(text: str, noted: int = 0) -> Records:
    """The records of a journal; ``noted`` is how far it is known to have been written."""
    records = Records()
    bad: List[Tuple[int, str, str]] = []
    # The last line that was read, with the names of area and run that were read last.
    before: Dict[str, Any] = {}
    # Losses from here on came after the last step that was read.
    since = 0
    line = 0
    for line, row in enumerate(text.split("\n"), 1):
        if not row:
            continue
        event, why = _opened(row)
        if event is not None and not _is_chained(event):
            why = _taken(records, event, try_only=True)
        if event is None or (why and not _is_chained(event)):
            bad.append((line, row, why))
            continue
        records.losses += _lost(bad, _missing(records, event, since), line, before, event)
        last = records.last_number
        why = _taken(records, event)
        if why:
            _note_unusable(records, event, line, why)
        elif event["event"] == "intend":
            records.losses[since:] = [_numbered(loss, last, records.last_number) for loss in records.losses[since:]]
            since = len(records.losses)
        bad = []
        before.update({name: event[name] for name in ("area", "run") if name in event})
        before["seq"] = event.get("seq")
    records.losses += _lost(bad, max(0, noted - records.last_seq), line, before, {})
    records.last_seq = max(records.last_seq, noted)
    _close_gaps(records, since)
    return records


def shortened(records: Records) -> str:
    """The same journal without what is settled: all that revert and the next run can ask for."""
    kept = _kept(records)
    named = {records.entries[number].run for number in kept} | set(records.runs[-KEEP_RUNS:])
    runs = [run for run in records.runs if run in named]
    events: List[Mapping[str, Any]] = [{"event": "shortened", "number": records.last_number, "runs": runs}]
    events += [records.events[number] for number in kept]
    events += [{"event": "begin", "run": run, "area": area} for run, area in records.open_runs]
    first = records.last_seq + 1
    return "".join(seal(event, seq) + "\n" for seq, event in enumerate(events, first))


def subject(step: Step) -> Tuple[str, str, Tuple[str, ...]]:
    """What a step changes, whatever the kernel calls its disk at this boot."""
    kind, target, undo = changes(step)
    return kind, _NAMED_DISK.sub(lambda _match: "/sys/block/%s/" % step.disk, target) if step.disk else target, undo


def changes(step: Step) -> Tuple[str, str, Tuple[str, ...]]:
    """What a step changes: steps with the same answer are undone by the undo of the first of them."""
    return step.kind, step.target, step.undo.argv if step.undo else ()


def originals(entries: Sequence[Entry]) -> List[Tuple[Entry, List[int]]]:
    """What to undo, newest first: for each target its first entry, and the numbers that this settles.

    A file or a value that was changed many times goes back to what it was before the first change;
    a command is undone once.  Reloads come last, in the order they were done: by then the files are back.
    """
    first: Dict[Tuple[str, str, Tuple[str, ...]], Tuple[Entry, List[int]]] = {}
    for entry in entries:
        key = changes(entry.step)
        if key in first:
            first[key][1].append(entry.number)
        else:
            first[key] = (entry, [entry.number])
    newest_first = sorted(first.values(), key=lambda pair: -pair[0].number)
    rereads = [pair for pair in reversed(newest_first) if pair[0].step.is_reread]
    return [pair for pair in newest_first if not pair[0].step.is_reread] + rereads


def _kept(records: Records) -> List[int]:
    by_subject: Dict[Any, List[int]] = {}
    for number, entry in sorted(records.entries.items()):
        by_subject.setdefault(subject(entry.step), []).append(number)
    return sorted(
        number for numbers in by_subject.values() for number in set(numbers[:1]) | set(numbers[-KEEP_NEWEST:])
    )


def _digest(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode("ascii")).hexdigest()[:16]


def _opened(row: str) -> Tuple[Optional[Dict[str, Any]], str]:
    """The event of a line, or None and what is wrong with it."""
    try:
        event = json.loads(row)
        if not isinstance(event, dict) or not isinstance(event.get("event"), str):
            return None, "is no record"
        body = {key: value for key, value in event.items() if key != "sum"}
        is_right = event.get("sum") == _digest(body) and _is_chained(event)
    except (ValueError, RecursionError):
        return None, "is no record"
    if event.get("format") == FORMAT and not is_right:
        return None, "is not as it was written (its checksum differs)"
    return event, ""


def _is_chained(event: Mapping[str, Any]) -> bool:
    return isinstance(event.get("seq"), int)


def _missing(records: Records, event: Mapping[str, Any], since: int) -> int:
    """How many records are missing between what was read and this one."""
    if event["event"] == "shortened" and not records.last_seq:
        return 0
    if _is_chained(event):
        return int(event["seq"]) - records.last_seq - 1
    if event["event"] == "intend" and not records.last_seq:
        noted = sum(loss.count for loss in records.losses[since:] if loss.is_step)
        return int(event["number"]) - records.last_number - 1 - noted
    return 0


def _taken(records: Records, event: Mapping[str, Any], try_only: bool = False) -> str:
    """Take in an event, or say why it cannot be understood."""
    form = event.get("format", 1)
    try:
        if form not in (1, FORMAT):
            raise ValueError("it was written by a newer version of this collection (format %s)" % (form,))
        if _is_again(records, event):
            raise ValueError("its number %d was there before" % event["seq"])
        (Records() if try_only else records).add(event)
    except KeyError as error:
        return "lacks %s" % error
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        return "cannot be understood: %s" % error
    return ""


def _is_again(records: Records, event: Mapping[str, Any]) -> bool:
    return _is_chained(event) and int(event["seq"]) <= records.last_seq


def _note_unusable(records: Records, event: Mapping[str, Any], line: int, why: str) -> None:
    """Note a line of the chain that is whole, and of no use to us."""
    loss = _loss(line, json.dumps(event, sort_keys=True), why, {}, {}, _is_again(records, event))
    records.losses.append(loss)
    records.last_number = max((records.last_number, *loss.numbers))
    records.last_seq = max(records.last_seq, int(event["seq"]))


def _lost(
    bad: Sequence[Tuple[int, str, str]], missing: int, line: int, before: Mapping[str, Any], after: Mapping[str, Any]
) -> List[Loss]:
    """What is missing before a line: the lines that cannot be read, and records that left none."""
    unchained = not _is_chained(before) and not _is_chained(after)
    unread = [one for one in bad if missing > 0 or (unchained and not _is_torn(one[1]))]
    losses = [_loss(place, row, why, before, after) for place, row, why in unread]
    gone = missing - len(unread)
    if gone > 0:
        why = "%d record%s missing" % (gone, " is" if gone == 1 else "s are")
        area, run = (_same(name, before, after) for name in ("area", "run"))
        losses.append(Loss("before line %d" % line if after else "at the end", gone, why, (), area, run))
    return losses


def _loss(
    line: int, row: str, why: str, before: Mapping[str, Any], after: Mapping[str, Any], is_again: bool = False
) -> Loss:
    """A line that is no use, with what can still be told of it."""
    found = {name: pattern.search(row) for name, pattern in _SAVED.items()}
    known = {name: match.group(1) if match else "" for name, match in found.items()}
    area, run = (known[name] or _same(name, before, after) for name in ("area", "run"))
    is_step = not is_again and (known["event"] not in _EVENTS or known["event"] == "intend")
    numbers = (int(known["number"]),) if known["number"] and is_step else ()
    return Loss("line %d" % line, 1, why, numbers, area, run, known["target"], is_step)


def _numbered(loss: Loss, last: int, number: int) -> Loss:
    """A loss between two steps of which the numbers are known: those between them, or no step at all."""
    if loss.numbers or not loss.is_step:
        return loss
    return replace(loss, numbers=tuple(range(last + 1, number)), is_step=number > last + 1)


def _close_gaps(records: Records, since: int) -> None:
    """What the whole journal tells of its losses."""
    # After the last step that was read, each of what is lost may be one more.
    for place, loss in enumerate(records.losses[since:], since):
        if loss.is_step and not loss.numbers:
            numbers = tuple(range(records.last_number + 1, records.last_number + 1 + loss.count))
            records.losses[place] = replace(loss, numbers=numbers)
            records.last_number = numbers[-1]
    # What is known to have been undone is no loss, whoever noted it.
    records.losses = [loss for loss in records.losses if not loss.numbers or set(loss.numbers) - records.undone]
    if not records.losses:
        return
    # A step that was the first of its kind when it was written: what is older was undone, and that note is lost.
    seen: Dict[Any, List[int]] = {}
    for number, entry in sorted(records.entries.items()):
        older = seen.setdefault(subject(entry.step), [])
        for one in older if entry.first is FIRST else ():
            records.settle("undone", one)
        older.append(number)


def _is_torn(row: str) -> bool:
    """The beginning of a line that a killed run was writing."""
    outside = _TEXT.sub("", row)
    return (row.startswith('{"') or row == "{") and outside.count("{") > outside.count("}")


def _same(name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """A name that the records on both sides of a gap share, or the one there is."""
    names = {str(event[name]) for event in (before, after) if event.get(name)}
    return names.pop() if len(names) == 1 else ""


def _first(value: Any) -> Optional[int]:
    return None if value is None else int(value)


def _entry(event: Mapping[str, Any]) -> Entry:
    return Entry(
        int(event["number"]),
        str(event["run"]),
        str(event["area"]),
        Step.from_json(event["step"]),
        bool(event.get("done", False)),
        _first(event.get("first", NOT_NOTED)),
        tuple(str(folder) for folder in event.get("folders", ())),
    )
