# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The journal on the host: what was about to be changed, from what, and whether it was done.

Each step is written with its ``before`` and synced *before* it is applied, so a run that was killed
at any moment is recognised by the next one, and the originals are never lost.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import time
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Optional, Tuple

from .values import Step

FOLDER = "/var/lib/gpufleet"


class Locked(RuntimeError):
    """Another run holds the host."""


class JournalError(OSError):
    """The journal cannot be written: on a full or read-only /var no change is made."""


@dataclass(frozen=True)
class Entry:
    """A step that was begun: ``done`` when it is known to have been applied."""

    number: int
    run: str
    area: str
    step: Step
    done: bool


class Journal:
    """The journal of one host; ``root`` is there for tests on a tree of files."""

    def __init__(self, root: str = "", folder: str = FOLDER) -> None:
        self.folder = root.rstrip("/") + folder
        self.path = os.path.join(self.folder, "journal.jsonl")

    def begin(self, run: str, area: str) -> None:
        self._append({"event": "begin", "run": run, "area": area, "time": time.time()})

    def intend(self, run: str, area: str, step: Step) -> int:
        """Note a step before it is applied; gives its number."""
        number = self._next_number()
        self._append({"event": "intend", "number": number, "run": run, "area": area, "step": step.to_json()})
        return number

    def note_done(self, number: int) -> None:
        self._append({"event": "done", "number": number})

    def note_undone(self, number: int) -> None:
        self._append({"event": "undone", "number": number})

    def end(self, run: str, area: str, state: str) -> None:
        self._append({"event": "end", "run": run, "area": area, "state": state, "time": time.time()})

    def interrupted(self, area: str) -> List[str]:
        """Runs of an area that began and never ended, oldest first."""
        open_runs: List[str] = []
        for event in self._events():
            if event.get("area") != area:
                continue
            if event["event"] == "begin":
                open_runs.append(event["run"])
            elif event["event"] == "end" and event["run"] in open_runs:
                open_runs.remove(event["run"])
        return open_runs

    def runs(self) -> List[str]:
        """The names of all runs that are on record here, undone ones too, newest first."""
        names = [event["run"] for event in self._events() if event["event"] == "intend" and "run" in event]
        return list(dict.fromkeys(reversed(names)))

    def standing(self, area: Optional[str] = None, run: Optional[str] = None) -> List[Entry]:
        """Steps begun and not undone, oldest first, of one area or run or of all."""
        entries: Dict[int, Entry] = {}
        for event in self._events():
            if event["event"] == "intend":
                step = Step.from_json(event["step"])
                entries[event["number"]] = Entry(event["number"], event["run"], event["area"], step, False)
            elif event["event"] == "done" and event["number"] in entries:
                was = entries[event["number"]]
                entries[was.number] = Entry(was.number, was.run, was.area, was.step, True)
            elif event["event"] == "undone":
                entries.pop(event["number"], None)
        return [
            entry
            for _number, entry in sorted(entries.items())
            if area in (None, entry.area) and run in (None, entry.run)
        ]

    def _next_number(self) -> int:
        return 1 + max((event["number"] for event in self._events() if event["event"] == "intend"), default=0)

    def _events(self) -> Iterator[Dict[str, Any]]:
        try:
            with open(self.path, encoding="utf-8", errors="replace") as file:
                rows = file.read().split("\n")
        except FileNotFoundError:
            return
        for row in rows:
            try:
                event = json.loads(row)
            except ValueError:
                # The last line of a run that was killed while it wrote: the step was not applied yet.
                continue
            if isinstance(event, dict) and "event" in event:
                yield event

    def _append(self, event: Dict[str, Any]) -> None:
        try:
            self._write(event)
        except OSError as error:
            raise JournalError("the journal %s cannot be written: %s" % (self.path, error.strerror)) from error

    def _write(self, event: Dict[str, Any]) -> None:
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        is_new = not os.path.exists(self.path)
        fd = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            size = os.fstat(fd).st_size
            torn = size > 0 and os.pread(fd, 1, size - 1) != b"\n"
            data = (("\n" if torn else "") + json.dumps(event, sort_keys=True) + "\n").encode("utf-8")
            if os.write(fd, data) != len(data):
                # A full disk takes a part without an error; a change without its original noted must not be made.
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.path)
            os.fsync(fd)
        finally:
            os.close(fd)
        if is_new:
            _sync(self.folder)


class Lock:
    """One run a host at a time: held while the process lives, so a killed run leaves none behind."""

    def __init__(self, root: str = "", folder: str = FOLDER, wait_s: float = 30.0) -> None:
        self.path = root.rstrip("/") + folder + "/lock"
        self.wait_s = wait_s
        self._fd = -1

    def __enter__(self) -> Lock:
        try:
            os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
            self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise JournalError("the lock %s cannot be taken: %s" % (self.path, error.strerror)) from error
        deadline = time.monotonic() + self.wait_s
        while True:
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if time.monotonic() > deadline:
                    holder = os.pread(self._fd, 64, 0).decode("ascii", "replace").strip()
                    os.close(self._fd)
                    raise Locked(
                        "another run (process %s) holds %s for more than %g s: wait for it, or end it"
                        % (holder or "unknown", self.path, self.wait_s)
                    ) from None
                time.sleep(0.1)
        try:
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, str(os.getpid()).encode("ascii"), 0)
        except OSError:
            pass  # on a full disk the message to others lacks this number
        return self

    def __exit__(self, *_exc: Any) -> None:
        os.close(self._fd)


def changes(step: Step) -> Tuple[str, str, Tuple[str, ...]]:
    """What a step changes: steps with the same answer are undone by the undo of the first of them."""
    return step.kind, step.target, step.undo.argv if step.undo else ()


def originals(entries: List[Entry]) -> List[Tuple[Entry, List[int]]]:
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


def _sync(folder: str) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
