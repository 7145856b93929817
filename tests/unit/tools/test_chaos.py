# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lab.base import LabError
from lab.hosts import GPU_HOST
from lab.machine import Machine
from lab.play import NAME, Run
from lab.power import Line, Remains
from tools import chaos
from tools.chaos import Fault, Moment, Record

LINES = (
    (30.0, Line("journal", 1, "begin kernel_settings")),
    (30.1, Line("journal", 2, "intend kernel.cmdline.update")),
    (44.1, Line("journal", 3, "done kernel.cmdline.update")),
    (44.2, Line("journal", 4, "end kernel_settings")),
    (60.0, Line("dpkg", 1, "startup archives unpack")),
)
RECORD = Record("0" * 16, LINES, ("file a", "value b 1"), ("file c",))
MOMENTS = chaos.moments_of(LINES)


def test_each_line_is_a_moment_and_so_is_the_middle_of_a_long_step() -> None:
    assert [(moment.number, moment.key) for moment in MOMENTS] == [
        (1, "journal:1+0"),
        (2, "journal:2+0"),
        (3, "journal:2+7"),
        (4, "journal:3+0"),
        (5, "journal:4+0"),
        (6, "dpkg:1+0"),
    ]


@pytest.mark.parametrize(
    ("words", "numbers"),
    [("", [1, 2, 3, 4, 5, 6]), ("3", [3]), ("5,1-2", [1, 2, 5]), ("1-6/2", [1, 3, 5])],
)
def test_moments_are_chosen_by_number(words: str, numbers: list[int]) -> None:
    assert [moment.number for moment in chaos.chosen(MOMENTS, words)] == numbers


@pytest.mark.parametrize("words", ["x", "1-", "7", "0", "1,,2"])
def test_other_words_are_refused(words: str) -> None:
    with pytest.raises(LabError) as failed:
        chaos.chosen(MOMENTS, words)
    assert failed.value.hint == "make chaos ARGS=--list"


def audited(state: str, cut_off: str = "", damaged: str = "") -> Run:
    found = {"engine.interrupted-run": cut_off, "engine.journal-damaged": damaged}
    findings = [{"id": name, "subject": subject} for name, subject in found.items() if subject]
    report = {"state": state, "areas": {"kernel_settings": {"findings": findings, "steps": []}}}
    return Run(0, "GPUFLEET REPORT ***\n1 host, some words\n", {NAME: report})


OPEN = {("kernel_settings", "r1")}


@pytest.mark.parametrize(
    ("run", "remains", "fault"),
    [
        (audited("drifted", "r1"), Remains(OPEN, 0, "", ""), ""),
        (audited("pending_reboot", "r1"), Remains(OPEN, 1, "", ""), ""),
        (audited("compliant", "r1"), Remains(OPEN, 0, "", ""), "0 of 1 steps were begun, and the audit says compliant"),
        (audited("drifted"), Remains(OPEN, 1, "", ""), "named by the audit: set()"),
        (audited("drifted", "r1"), Remains(set(), 1, "", ""), "open in the journal: set()"),
        (audited("drifted", "r1", "journal"), Remains(OPEN, 1, "", ""), "the audit calls the journal damaged"),
        (audited("unknown", "r1"), Remains(OPEN, 1, "", ""), "the audit ends unknown: 1 host, some words"),
        (Run(2, "a traceback", {}), Remains(set(), 0, "", ""), "gives no report"),
    ],
    ids=[
        "in the middle",
        "at the end",
        "half for whole",
        "not named",
        "named for nothing",
        "damaged",
        "unknown",
        "crash",
    ],
)
def test_an_audit_after_a_cut_is_judged(run: Run, remains: Remains, fault: str) -> None:
    try:
        chaos.check_audit(run, remains, RECORD)
        said = ""
    except Fault as error:
        said = str(error)
    assert fault in said
    assert bool(fault) == bool(said)


def test_what_differs_is_told_both_ways() -> None:
    with pytest.raises(Fault, match=r"not as before: - file a 1; \+ file a 2$"):
        chaos.compare(["file a 1", "b"], ["file a 2", "b"], "not as before")
    chaos.compare(["a", "b"], ["b", "a"], "")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(chaos, "ROOT", tmp_path)
    for name, path in (("STATE", ""), ("CUT", "cut"), ("KEPT", "kept"), ("LOGS", "logs"), ("RESULTS", "results.json")):
        monkeypatch.setattr(chaos, name, tmp_path / "chaos" / path)
    (tmp_path / "chaos").mkdir()
    return tmp_path / "chaos"


def test_a_failure_keeps_its_disks_and_a_second_call_tries_only_the_rest(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tried: list[int] = []

    def trial(_machine: Any, _record: Record, moment: Moment) -> str:
        tried.append(moment.number)
        (folder / "cut").mkdir()
        (folder / "cut/root.qcow2").write_text(str(moment.number))
        if moment.number == 2:
            raise Fault("grub.cfg is empty")
        (folder / "cut/root.qcow2").unlink()
        (folder / "cut").rmdir()
        return "audit: drifted"

    monkeypatch.setattr(chaos, "trial", trial)
    machine = Machine(GPU_HOST)
    assert chaos.try_all(machine, RECORD, MOMENTS[:3], again=False) == 1
    out = capsys.readouterr().out
    assert "2: intend kernel.cmdline.update: FAILED, grub.cfg is empty" in out
    assert "make chaos ARGS='--moments 2'" in out
    assert "2 passed, 1 failed" in out
    assert (folder / "kept/2/root.qcow2").read_text() == "2"
    assert chaos.try_all(machine, RECORD, MOMENTS[:4], again=False) == 1
    assert tried == [1, 2, 3, 4]
    assert "3 of 4 moments were tried before" in capsys.readouterr().out
    chaos.try_all(machine, RECORD, MOMENTS[1:2], again=True)
    assert tried[-1] == 2


@pytest.mark.parametrize(
    ("unfinished", "is_cleared"), [("volume.scratch.mkfs", True), ("volume.scratch.mount", False), ("", False)]
)
def test_disks_are_cleared_by_hand_only_where_one_was_left_half_made(
    folder: Path, monkeypatch: pytest.MonkeyPatch, unfinished: str, is_cleared: bool
) -> None:
    (folder / "logs").mkdir()
    runs = iter([audited("blocked"), audited("changed")])
    done: list[str] = []
    monkeypatch.setattr(chaos, "play", lambda *_args, **_kw: next(runs))
    monkeypatch.setattr(chaos, "on_host", lambda _machine, command: done.append(command))
    remains = Remains(OPEN, 1, "", unfinished)
    if is_cleared:
        assert chaos.converge(Machine(GPU_HOST), MOMENTS[0], remains)
    else:
        with pytest.raises(Fault, match="does not converge"):
            chaos.converge(Machine(GPU_HOST), MOMENTS[0], remains)
    assert done == ([chaos.CLEAR_DISKS] if is_cleared else [])
