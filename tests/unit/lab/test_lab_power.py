# Copyright: (c) 2026, gpufleet.host contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
import queue
from pathlib import Path
from typing import Any

import pytest

from lab import machine as machines
from lab import power
from lab.base import LabError
from lab.hosts import GPU_HOST
from lab.machine import Machine

EVENTS: tuple[dict[str, Any], ...] = (
    {"event": "begin", "run": "r1", "area": "kernel_settings"},
    {"event": "intend", "run": "r1", "area": "kernel_settings", "number": 1, "step": {"id": "kernel.file"}},
    {"event": "done", "number": 1},
    {"event": "end", "run": "r1", "area": "kernel_settings", "state": "changed"},
    {"event": "begin", "run": "r1", "area": "xfs_volumes"},
    {"event": "intend", "run": "r1", "area": "xfs_volumes", "number": 2, "step": {"id": "volume.a.mkfs"}},
)
ROWS = [json.dumps(event) for event in EVENTS]


def test_lines_are_numbered_by_source_and_tell_their_step() -> None:
    lines = power.Lines()
    read = [
        lines.read(row) for row in (f"journal {ROWS[1]}", "dpkg 2026-11-30 23:43:46 status unpacked x:amd64 1.0", "")
    ]
    read += [lines.read(f"journal {ROWS[2]}"), lines.read("journal {"), lines.read("==> a file of tail <==")]
    assert [(line.name, line.text) for line in read if line] == [
        ("journal:1", "intend kernel.file"),
        ("dpkg:1", "status unpacked x:amd64 1.0"),
        ("journal:2", "done kernel.file"),
        ("journal:3", "a line that cannot be read"),
    ]


def test_what_remains_of_a_run_that_was_cut_off() -> None:
    remains = power.Remains.of("\n".join(ROWS))
    assert remains.open_runs == {("xfs_volumes", "r1")}
    assert (remains.intended, remains.unfinished, remains.last) == (2, "volume.a.mkfs", "intend volume.a.mkfs")


def test_only_the_last_line_may_be_torn() -> None:
    assert power.Remains.of("\n".join([*ROWS[:3], '{"event": "e'])).open_runs == {("kernel_settings", "r1")}
    with pytest.raises(ValueError, match="line 2 of 4"):
        power.Remains.of("\n".join([ROWS[0], '{"event": "i', *ROWS[2:4]]))


def test_no_journal_is_no_run() -> None:
    assert power.Remains.of("") == power.Remains(set(), 0, "", "")


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A host that is this machine; what was done to it is noted."""
    monkeypatch.setattr(power, "_FOLLOW", power._FOLLOW.replace(power.JOURNAL, str(tmp_path / "journal")))
    monkeypatch.setattr(power, "_FOLLOW", power._FOLLOW.replace(power.DPKG_LOG, str(tmp_path / "dpkg")))
    monkeypatch.setattr(machines, "ssh_argv", lambda _machine, *words: ["sh", "-c", *words])
    done: list[str] = []
    monkeypatch.setattr(machines, "cut", lambda machine: done.append(f"cut {machine.host.name}"))
    return done


def play(tmp_path: Path, script: str, text: str) -> tuple[power.Line | None, list[str]]:
    cut_at, seen = power.play_until(
        Machine(GPU_HOST),
        ["sh", "-c", script],
        tmp_path / "log",
        lambda line: line.text == text,
        cwd=tmp_path,
        env=os.environ,
    )
    return cut_at, [line.text for _at, line in seen]


def test_the_power_is_cut_at_the_line_and_not_at_an_older_one(tmp_path: Path, host: list[str]) -> None:
    (tmp_path / "journal").write_text(ROWS[1] + "\n")
    rows = " ".join(f"'{row}'" for row in ROWS[:3])
    script = f'echo it runs; for row in {rows}; do echo "$row" >>journal; sleep 0.3; done'
    cut_at, seen = play(tmp_path, script, "intend kernel.file")
    assert cut_at and cut_at.name == "journal:2"
    assert seen == ["begin kernel_settings", "intend kernel.file"]
    assert host == ["cut lab-gpu1"]
    assert (tmp_path / "log").read_text() == "it runs\n"


def test_a_run_that_ends_before_its_moment_loses_no_power(tmp_path: Path, host: list[str]) -> None:
    cut_at, seen = play(tmp_path, f"sleep 0.3; echo '{ROWS[0]}' >journal", "intend kernel.file")
    assert (cut_at, seen, host) == (None, ["begin kernel_settings"], [])


def test_a_host_that_shows_nothing_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machines, "ssh_argv", lambda _machine, *_words: ["false"])
    with pytest.raises(LabError, match="does not show its journal"):
        play(tmp_path, "true", "")


def test_a_playbook_without_an_end_does_not_hold_the_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(power, "_PLAYBOOK_S", 0.0)

    class Endless:
        def poll(self) -> None:
            return None

    with pytest.raises(LabError, match="does not end"):
        power._wait_for(queue.Queue(), Endless(), lambda _line: False, [], 0.0)  # type: ignore[arg-type]


def test_a_stopped_host_has_no_power_to_lose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUFLEET_LAB_DIR", str(tmp_path))
    with pytest.raises(LabError, match="not running") as failed:
        machines.cut(Machine(GPU_HOST))
    assert failed.value.hint == "run: lab/lab.py up lab-gpu1"
