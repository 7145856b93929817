# Copyright: (c) 2026, gpufleet.host contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A power cut at a chosen line of what a host writes while a playbook runs on it.

QEMU is ended by SIGKILL. What the guest had flushed is in the files of its disks; what it only held in its own memory
is gone, as with a real cut. Kinder than a real one: a write to a data disk that QEMU had answered and the guest had not
flushed stays, since it is in this machine's memory. (On the root disk, a qcow2 file, it is lost where its cluster was
new: QEMU holds the table that leads to it until the guest flushes.)
"""

from __future__ import annotations

import json
import os
import queue
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from lab import machine as machines
from lab import qmp
from lab.base import LabError
from lab.machine import Machine

JOURNAL = "/var/lib/gpufleet/journal.jsonl"
DPKG_LOG = "/var/log/dpkg.log"
# A step of a run writes a line, changes a file and writes another line within some milliseconds; a line takes longer
# than that to get here. With a slow disk (each line is four writes of ext4) it is seen before the next one is written.
SLOW_WRITES_S = 20
# A playbook whose host is gone ends by itself; one that does not must not hold the trial.
_LEFT_BEHIND_S = 120.0
_PLAYBOOK_S = 3600.0

# Follows both files from their present end on. The journal may not be there yet.
_FOLLOW = f"""
j={JOURNAL} d={DPKG_LOG}
start() {{ [ -e "$1" ] && echo $(($(wc -c <"$1") + 1)) || echo 1; }}
from=$(start $j)
tail -c +$(start $d) -F $d 2>/dev/null | sed -u 's/^/dpkg /' &
echo following
until [ -e $j ]; do sleep 0.1; done
tail -c +$from -F $j 2>/dev/null | sed -u 's/^/journal /'
"""


@dataclass(frozen=True)
class Line:
    """A line that the host wrote: the ``number``-th one of its source since the playbook began."""

    source: str
    number: int
    text: str

    @property
    def name(self) -> str:
        return f"{self.source}:{self.number}"


class Lines:
    """Numbers the lines of each source, and gives them their words."""

    def __init__(self) -> None:
        self._counts = {"journal": 0, "dpkg": 0}
        self._steps: dict[int, str] = {}

    def read(self, row: str) -> Line | None:
        source, _blank, rest = row.strip().partition(" ")
        if source not in self._counts or not rest:
            return None
        self._counts[source] += 1
        words = self._of_journal(rest) if source == "journal" else re.sub(r"^\S+ \S+ ", "", rest)
        return Line(source, self._counts[source], words)

    def _of_journal(self, row: str) -> str:
        try:
            event = json.loads(row)
        except ValueError:
            return "a line that cannot be read"
        number = event.get("number")
        if event["event"] == "intend":
            self._steps[number] = event["step"]["id"]
        what = self._steps.get(number, "an older step") if number else event.get("area", "")
        return f"{event['event']} {what}"


@dataclass(frozen=True)
class Remains:
    """What a journal tells after a cut, read as lines and not by the code that is under test."""

    open_runs: set[tuple[str, str]]
    intended: int
    last: str
    unfinished: str

    @classmethod
    def of(cls, text: str) -> Remains:
        """Only the last line may be torn; ValueError for any other that is no JSON."""
        open_runs: dict[str, str] = {}
        steps: dict[int, str] = {}
        unfinished = last = ""
        rows = text.splitlines()
        for place, row in enumerate(rows, 1):
            try:
                event = json.loads(row)
            except ValueError:
                if place == len(rows):
                    break
                raise ValueError(f"line {place} of {len(rows)}: {row[:80]!r}") from None
            kind = event["event"]
            if kind == "intend":
                steps[event["number"]] = unfinished = event["step"]["id"]
            elif kind == "done":
                unfinished = ""
            elif kind == "begin":
                open_runs[event["area"]] = event["run"]
            elif kind == "end":
                open_runs.pop(event["area"], None)
            last = f"{kind} {steps.get(event.get('number'), event.get('area', ''))}"
        return cls(set(open_runs.items()), len(steps), last, unfinished)


def slow_down(machine: Machine, writes_s: int = SLOW_WRITES_S) -> None:
    """Let the root disk take so many writes a second, 0 for as many as it can; until the host is started anew."""
    limits = dict.fromkeys(("bps", "bps_rd", "bps_wr", "iops", "iops_rd"), 0)
    with qmp.connect(machine.paths.qmp) as control:
        control.execute("block_set_io_throttle", device="root", iops_wr=writes_s, **limits)


def play_until(
    machine: Machine,
    argv: Sequence[str],
    log: Path,
    is_moment: Callable[[Line], bool],
    *,
    delay_s: float = 0.0,
    cwd: Path,
    env: Mapping[str, str],
) -> tuple[Line | None, list[tuple[float, Line]]]:
    """Run a playbook and cut the power at the line that is the moment, or ``delay_s`` after it.

    Gives that line, or None when the playbook ended before it came; and every line with its time since the start.
    """
    seen: list[tuple[float, Line]] = []
    with _following(machine) as rows, log.open("wb") as out:
        started = time.monotonic()
        with subprocess.Popen(
            argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT
        ) as play:
            try:
                cut_at = _wait_for(rows, play, is_moment, seen, started)
                if cut_at:
                    time.sleep(delay_s)
                    machines.cut(machine)
                _end(play)
            finally:
                play.kill()
    return cut_at, seen


def _wait_for(
    rows: queue.Queue[str],
    play: subprocess.Popen[bytes],
    is_moment: Callable[[Line], bool],
    seen: list[tuple[float, Line]],
    started: float,
) -> Line | None:
    lines = Lines()
    while True:
        has_ended = play.poll() is not None
        try:
            line = lines.read(rows.get(timeout=2.0 if has_ended else 0.5))
        except queue.Empty:
            if has_ended:
                return None
            if time.monotonic() - started > _PLAYBOOK_S:
                raise LabError("the playbook does not end", hint="look at the host with lab/lab.py ssh") from None
            continue
        if line:
            seen.append((time.monotonic() - started, line))
            if is_moment(line):
                return line


def _end(play: subprocess.Popen[bytes]) -> None:
    try:
        play.wait(_LEFT_BEHIND_S)
    except subprocess.TimeoutExpired:
        play.terminate()


@contextmanager
def _following(machine: Machine) -> Iterator[queue.Queue[str]]:
    """What the host writes from now on, line by line."""
    rows: queue.Queue[str] = queue.Queue()
    with subprocess.Popen(
        machines.ssh_argv(machine, _FOLLOW),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as follow:
        assert follow.stdout is not None
        if follow.stdout.readline().strip() != "following":
            raise LabError(f"{machine.host.name} does not show its journal", hint="run: lab/lab.py status")
        reader = threading.Thread(target=_pass_on, args=(follow.stdout, rows), daemon=True)
        reader.start()
        try:
            yield rows
        finally:
            # With all that it started: a reader that still waits would keep the pipe from being closed.
            os.killpg(follow.pid, signal.SIGKILL)
            reader.join()


def _pass_on(stream: IO[str], rows: queue.Queue[str]) -> None:
    for row in stream:
        rows.put(row)
