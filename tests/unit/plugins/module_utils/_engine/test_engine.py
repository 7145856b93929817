# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The engine on a made-up area: knobs of a kernel, the file that keeps them, a daemon that reads the file."""

from __future__ import annotations

import json
import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Mapping, Sequence

import pytest
from fakes import FakeHost, Program
from proof import Case, prove_converges, prove_reverts, prove_rolls_back, prove_survives_kills

from ansible_collections.gpufleet.host.plugins.module_utils._engine import engine
from ansible_collections.gpufleet.host.plugins.module_utils._engine.engine import Area, look, run_area, sort_out
from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import Host, MemoHost, Result
from ansible_collections.gpufleet.host.plugins.module_utils._engine.journal import Journal, Lock
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import Finding, Report, Step, Unknown

FILE = "/etc/knobs.conf"
DAEMON = "/run/knobd"
START = Step("undo.knobs.daemon", "run", "knobd", "new", "old", "why", "knobd(8)", argv=("knobd", "reload"))


class KnobHost(FakeHost):
    """Files below /sys/knobs are knobs; knobd reads the file when it is told to."""

    def commands(self) -> dict[str, Program]:
        return {"knobd": self.knobd}

    def knobd(self, argv: Sequence[str], stdin: str) -> Result:
        text = self.read(FILE)
        self.put(DAEMON, text if isinstance(text, str) else "")
        return Result(0, "", "")


def observe(host: Host, want: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "knobs": {name: host.read("/sys/knobs/" + name) for name in want["knobs"]},
        "file": host.read(FILE),
        "daemon": host.read(DAEMON),
        "now": host.read("/proc/cmdline"),
    }


def plan(want: Mapping[str, Any], have: Mapping[str, Any]) -> list[Step]:
    steps: list[Step] = []
    text = "".join("%s=%s\n" % row for row in want["knobs"].items()) or None
    if have["file"] != text:
        steps.append(Step("knobs.file", "file", FILE, have["file"], text, "why", "knobs(5)"))
    if (have["daemon"] or None) != text:
        argv = ("knobd", "reload")
        steps.append(
            Step(
                "knobs.daemon", "run", "knobd", "old", "new", "why", "knobd(8)", "reload", want["risk"], argv,
                undo=START, requires=("knobs.file",),
            )
        )  # fmt: skip
    for name, value in want["knobs"].items():
        live = have["knobs"][name]
        if isinstance(live, str) and live.strip() != value:
            steps.append(
                Step("knobs.set." + name, "value", "/sys/knobs/" + name, live.strip(), value, "why", "knobs(5)")
            )
    if want.get("boot") and have["now"] != want["boot"]:
        steps.append(Step("knobs.boot", "reboot", "boot", have["now"], want["boot"], "why", "boot(7)", "reboot"))
    return steps


def judge(want: Mapping[str, Any], have: Mapping[str, Any]) -> list[Finding]:
    found = [
        Finding("knobs.unseen", "warn", name, want["knobs"][name], value or Unknown("is not there"), "w", "f", "s")
        for name, value in have["knobs"].items()
        if not isinstance(value, str)
    ]
    return found + list(want.get("findings", ()))


def adopt(have: Mapping[str, Any]) -> dict[str, Any]:
    return {"knobs": {name: value.strip() for name, value in have["knobs"].items() if isinstance(value, str)}}


AREA = Area("knobs", "turn", {}, lambda want: None, observe, plan, judge, adopt)
KNOBS = {"a": "1", "b": "2", "c": "3"}


def want(risk: str = "safe", **more: Any) -> dict[str, Any]:
    return dict({"knobs": KNOBS, "risk": risk}, **more)


def make(root: Path) -> KnobHost:
    host = KnobHost(root)
    for name in KNOBS:
        host.put("/sys/knobs/" + name, "0\n")
    host.put(FILE, "a=0\n")
    host.put(DAEMON, "a=0\n")
    host.put("/proc/cmdline", "quiet")
    return host


def case(**more: Any) -> Case:
    return Case(AREA, want(**more), make, KnobHost, allow_risk=more.pop("allow_risk", "destructive"))


def apply(host: FakeHost, area: Area = AREA, wanted: Mapping[str, Any] | None = None, **options: Any) -> Report:
    options = dict({"journal": Journal(host.root), "run": "r1", "settle_s": (0.0,)}, **options)
    return run_area(area, wanted or want(), host, mode="apply", **options)


def statuses(report: Report) -> dict[str, str]:
    return {result.step.id: result.status for result in report.steps}


# The good case


def test_converges(tmp_path: Path) -> None:
    report = prove_converges(case(), tmp_path)
    assert report.before == {"knobs": {"a": "0", "b": "0", "c": "0"}}
    assert report.after == {"knobs": KNOBS}
    assert list(statuses(report)) == ["knobs.file", "knobs.daemon", "knobs.set.a", "knobs.set.b", "knobs.set.c"]


def test_reverts(tmp_path: Path) -> None:
    prove_reverts(case(), tmp_path)


def test_survives_kills(tmp_path: Path) -> None:
    assert prove_survives_kills(case(), tmp_path) >= 11


@pytest.mark.parametrize("how", ["refuse", "ignore"])
@pytest.mark.parametrize("what", [FILE, "knobd reload", "/sys/knobs/a", "/sys/knobs/c"])
def test_rolls_back(tmp_path: Path, how: str, what: str) -> None:
    make(tmp_path)
    report = prove_rolls_back(case(), tmp_path, KnobHost(tmp_path, **{how: (what,)}))
    expected = "engine.step-refused" if how == "refuse" else "engine.not-confirmed"
    assert report.findings[0].id == expected
    assert Journal(str(tmp_path)).standing() == []
    assert Journal(str(tmp_path)).interrupted("knobs") == []
    # Both observations: before the run, and after what the host made of it.
    assert report.before == {"knobs": {"a": "0", "b": "0", "c": "0"}}


@pytest.mark.parametrize("mode", ["audit", "check"])
def test_looking_changes_nothing(tmp_path: Path, mode: str) -> None:
    host = make(tmp_path)
    before = host.tree()
    report = run_area(AREA, want(), MemoHost(host), mode=mode, journal=Journal(host.root), run="r1")
    assert report.state == "drifted"
    assert set(statuses(report).values()) == {"planned"}
    assert host.tree() == before
    assert not os.path.exists(Journal(host.root).path)


def test_a_run_without_anything_to_do_leaves_no_trace(tmp_path: Path) -> None:
    host = make(tmp_path)
    apply(host)
    lines = Path(Journal(host.root).path).read_text()
    assert apply(host, run="r2").state == "compliant"
    assert Path(Journal(host.root).path).read_text() == lines


# Consent, findings that block, steps that need others


def test_consent(tmp_path: Path) -> None:
    host = make(tmp_path)
    report = apply(host, wanted=want("disruptive"))
    held = [result for result in report.steps if result.step.id == "knobs.daemon"]
    assert [(r.status, r.detail) for r in held] == [
        ("blocked", "disruptive step: allow it with turn_allow_risk: disruptive"),
    ]
    assert report.state == "blocked"
    assert host.read("/sys/knobs/c") == "3\n", "steps that need no consent are done"
    assert apply(host, wanted=want("disruptive"), run="r2").state == "blocked"
    assert apply(host, wanted=want("disruptive"), run="r3", allow_risk="disruptive").state == "changed"


@pytest.mark.parametrize(
    ("risk", "allowed", "status"),
    [
        ("safe", "safe", "planned"),
        ("disruptive", "safe", "blocked"),
        ("disruptive", "destructive", "planned"),
        ("destructive", "disruptive", "blocked"),
        ("destructive", "destructive", "planned"),
    ],
)
def test_a_risk_needs_consent_of_its_own_height(tmp_path: Path, risk: str, allowed: str, status: str) -> None:
    results = sort_out(AREA, look(AREA, want(risk), make(tmp_path)), allowed)
    assert {r.step.id: r.status for r in results}["knobs.daemon"] == status


def test_what_consent_holds_back_is_drift_to_an_audit(tmp_path: Path) -> None:
    report = run_area(AREA, want("destructive"), make(tmp_path), mode="audit")
    assert (report.state, statuses(report)["knobs.daemon"]) == ("drifted", "blocked")


def block(*prefixes: str, level: str = "block", observed: Any = "bad") -> Finding:
    return Finding("knobs.stop", level, "x", "good", observed, "it is bad", "mend it", "source", prefixes)


def test_a_finding_that_blocks_holds_back_all_steps(tmp_path: Path) -> None:
    host = make(tmp_path)
    before = host.tree()
    report = apply(host, wanted=want(findings=[block()]))
    assert (report.state, set(statuses(report).values())) == ("blocked", {"blocked"})
    assert report.steps[0].detail == "knobs.stop: it is bad"
    assert host.tree() == before


def test_a_finding_blocks_the_steps_it_names_and_those_that_need_them(tmp_path: Path) -> None:
    host = make(tmp_path)
    report = apply(host, wanted=want(findings=[block("knobs.file", "knobs.set.b")]))
    assert statuses(report) == {
        "knobs.file": "blocked",
        "knobs.daemon": "skipped",
        "knobs.set.a": "applied",
        "knobs.set.b": "blocked",
        "knobs.set.c": "applied",
    }
    assert report.steps[1].detail == "needs step knobs.file first"
    assert report.state == "blocked"
    assert apply(host, wanted=want(findings=[block("knobs.file", "knobs.set.b")]), run="r2").state == "blocked"


def test_a_step_needs_another_only_where_that_one_is_planned(tmp_path: Path) -> None:
    host = make(tmp_path)
    apply(host)
    host.put(DAEMON, "lost\n")
    assert statuses(apply(host, run="r2")) == {"knobs.daemon": "applied"}


@pytest.mark.parametrize(
    ("level", "observed", "state"),
    [
        ("info", "bad", "compliant"),
        ("info", Unknown("x"), "compliant"),
        ("warn", "bad", "compliant"),
        ("warn", Unknown("x"), "unknown"),
        ("fail", "bad", "blocked"),
        ("fail", Unknown("x"), "unknown"),
        ("block", "bad", "blocked"),
        ("block", Unknown("x"), "unknown"),
    ],
)
def test_findings_make_the_state(tmp_path: Path, level: str, observed: Any, state: str) -> None:
    host = make(tmp_path)
    apply(host)
    assert apply(host, wanted=want(findings=[block(level=level, observed=observed)]), run="r2").state == state


def test_a_reboot_waits_and_is_said_so(tmp_path: Path) -> None:
    host = make(tmp_path)
    report = apply(host, wanted=want(boot="iommu=pt"))
    assert (report.state, statuses(report)["knobs.boot"]) == ("pending_reboot", "waits")
    assert [e.step.kind for e in Journal(host.root).standing()].count("reboot") == 0
    assert apply(host, wanted=want(boot="iommu=pt"), run="r2").state == "pending_reboot"
    host.put("/proc/cmdline", "iommu=pt")
    assert apply(host, wanted=want(boot="iommu=pt"), run="r3").state == "compliant"


def test_what_cannot_be_seen_is_unknown_and_not_changed(tmp_path: Path) -> None:
    host = make(tmp_path)
    os.unlink(host.root + "/sys/knobs/b")
    report = apply(host)
    assert "knobs.set.b" not in statuses(report)
    assert report.state == "unknown"
    assert apply(host, run="r2").state == "unknown"


# Settling


def test_a_value_that_arrives_late_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = make(tmp_path)
    host.ignore = ("/sys/knobs/c",)
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            host.put("/sys/knobs/c", "3\n")

    monkeypatch.setattr(engine.time, "sleep", sleep)
    assert apply(host, settle_s=engine.SETTLE_S).state == "changed"
    assert waits == list(engine.SETTLE_S[:3])


# What goes wrong after a change


def worse(**functions: Callable[..., Any]) -> Area:
    return replace(AREA, **functions)


def turned(host: Host) -> bool:
    return host.read("/sys/knobs/a") == "1\n"


def values_alone(wanted: Mapping[str, Any], have: Mapping[str, Any]) -> list[Step]:
    """Each knob for itself, without a file that keeps them."""
    return [replace(step, part=step.target) for step in plan(wanted, have) if step.kind == "value"]


def test_what_does_not_depend_on_a_refused_step_is_done_and_stays(tmp_path: Path) -> None:
    make(tmp_path)
    host = KnobHost(tmp_path, refuse=("/sys/knobs/b",))
    report = apply(host, worse(plan=values_alone))
    assert report.state == "rolled_back"
    assert statuses(report) == {"knobs.set.a": "applied", "knobs.set.b": "failed", "knobs.set.c": "applied"}
    assert [host.read("/sys/knobs/" + name) for name in "abc"] == ["1\n", "0\n", "3\n"]
    assert "what does not depend on it stays: /sys/knobs/a, /sys/knobs/c" in report.findings[0].why
    assert [e.step.id for e in Journal(host.root).standing()] == ["knobs.set.a", "knobs.set.c"]
    # The next run tries what was refused, and nothing else.
    assert statuses(apply(host, worse(plan=values_alone), run="r2")) == {"knobs.set.b": "failed"}
    engine.revert(host, Journal(host.root), apply=True, settle_s=(0.0,))
    assert [host.read("/sys/knobs/" + name) for name in "abc"] == ["0\n", "0\n", "0\n"]


class Contested(KnobHost):
    """Somebody sets knob b back, a moment after each change of it."""

    def set_value(self, path: str, text: str) -> None:
        super().set_value(path, text)
        if path == "/sys/knobs/c":
            self.put("/sys/knobs/b", "0\n")


def test_a_value_that_another_sets_back_costs_no_other_its_own(tmp_path: Path) -> None:
    make(tmp_path)
    host = Contested(tmp_path)
    report = apply(host)
    assert report.state == "rolled_back"
    assert {name: status for name, status in statuses(report).items() if status != "applied"} == {
        "knobs.set.b": "undone"
    }
    assert [host.read("/sys/knobs/" + name) for name in "abc"] == ["1\n", "0\n", "3\n"]
    assert host.read(FILE) == host.read(DAEMON) == "a=1\nb=2\nc=3\n", "the file is as wanted, and so is all else in it"
    [finding] = [f for f in report.findings if f.id == "engine.not-confirmed"]
    assert finding.subject == "/sys/knobs/b"
    assert "something on the host sets it back" in finding.why
    assert "tuned" in finding.fix


def test_who_sets_a_value_back_is_named_where_it_is_known(tmp_path: Path) -> None:
    other = Finding(
        "knobs.foreign-owner", "warn", "knobs/b", "one owner", "/etc/tuned/x/tuned.conf:3 sets 0", "w", "f", "s"
    )
    make(tmp_path)
    report = apply(Contested(tmp_path), wanted=want(findings=[other]))
    [finding] = [f for f in report.findings if f.id == "engine.not-confirmed"]
    assert "/etc/tuned/x/tuned.conf:3 sets 0 (knobs/b) sets it back" in finding.why


def test_a_value_that_the_kernel_never_took_takes_its_file_along(tmp_path: Path) -> None:
    host = make(tmp_path)
    before = host.tree()
    report = apply(KnobHost(tmp_path, ignore=("/sys/knobs/b",)))
    assert (report.state, host.tree()) == ("rolled_back", before)


def test_a_kept_step_that_is_not_confirmed_is_no_kept_step(tmp_path: Path) -> None:
    make(tmp_path)
    host = KnobHost(tmp_path, refuse=("/sys/knobs/b",), ignore=("/sys/knobs/c",))
    report = apply(host, worse(plan=values_alone))
    assert statuses(report) == {"knobs.set.a": "applied", "knobs.set.b": "failed", "knobs.set.c": "undone"}
    assert [f.id for f in report.findings] == ["engine.step-refused", "engine.not-confirmed"]


def test_an_undo_that_fails_is_a_failure_that_is_told(tmp_path: Path) -> None:
    class Stuck(KnobHost):
        def write(self, path: str, text: str | None, mode: int = 0o644) -> None:
            if path == FILE and text == "a=0\n":
                raise OSError(30, "Read-only file system")
            super().write(path, text, mode)

    make(tmp_path)
    host = Stuck(tmp_path, refuse=("/sys/knobs/c",))
    report = apply(host)
    assert report.state == "failed"
    assert statuses(report) == {
        "knobs.file": "stuck",
        "knobs.daemon": "undone",
        "knobs.set.a": "undone",
        "knobs.set.b": "undone",
        "knobs.set.c": "failed",
    }
    assert "Read-only" in report.steps[0].detail
    assert [e.step.id for e in Journal(host.root).standing()] == ["knobs.file"], "revert has to know what is left"


def test_an_undo_that_is_ignored_is_no_rollback(tmp_path: Path) -> None:
    class Forgetful(KnobHost):
        def write(self, path: str, text: str | None, mode: int = 0o644) -> None:
            if text != "a=0\n":
                super().write(path, text, mode)

    make(tmp_path)
    assert apply(Forgetful(tmp_path, refuse=("/sys/knobs/c",))).state == "failed"


def test_a_step_without_a_reverse_makes_a_rollback_fail(tmp_path: Path) -> None:
    def without_undo(wanted: Mapping[str, Any], have: Mapping[str, Any]) -> list[Step]:
        return [replace(step, undo=None) for step in plan(wanted, have)]

    make(tmp_path)
    report = apply(KnobHost(tmp_path, refuse=("/sys/knobs/c",)), worse(plan=without_undo))
    assert (report.state, statuses(report)["knobs.daemon"]) == ("failed", "stuck")


def test_a_refused_step_without_a_reverse_needs_none(tmp_path: Path) -> None:
    def without_undo(wanted: Mapping[str, Any], have: Mapping[str, Any]) -> list[Step]:
        return [replace(step, undo=None) for step in plan(wanted, have)]

    make(tmp_path)
    report = apply(KnobHost(tmp_path, refuse=("knobd",)), worse(plan=without_undo))
    assert (report.state, statuses(report)["knobs.daemon"]) == ("rolled_back", "failed")
    assert "refused by the test" in report.findings[0].observed


def test_a_command_that_hangs_is_refused_and_rolled_back(tmp_path: Path) -> None:
    class Hanging(KnobHost):
        def execute(self, argv: Sequence[str], stdin: str, deadline_s: float) -> Result:
            return Result(-1, "", "", "knobd hung: no answer in 60 s")

    make(tmp_path)
    report = apply(Hanging(tmp_path))
    assert report.state == "rolled_back"
    assert "hung" in report.findings[0].observed


@pytest.mark.parametrize(
    "error", [ValueError("embedded null byte"), UnicodeEncodeError("utf-8", "x", 0, 1, "no"), KeyError("x")]
)
def test_any_error_of_a_step_rolls_back(tmp_path: Path, error: Exception) -> None:
    class Broken(KnobHost):
        def set_value(self, path: str, text: str) -> None:
            if path.endswith("c") and text == "3":
                raise error
            super().set_value(path, text)

    host = make(tmp_path)
    before = host.tree()
    report = apply(Broken(tmp_path))
    assert report.state == "rolled_back"
    assert type(error).__name__ in report.findings[0].observed
    assert host.tree() == before


def test_a_change_that_cannot_be_recorded_is_not_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = make(tmp_path)
    before = host.tree()
    real = os.write

    def full(fd: int, data: bytes) -> int:
        return real(fd, data[:10]) if b"knobs.set.b" in data else real(fd, data)

    monkeypatch.setattr(os, "write", full)
    report = apply(host)
    assert report.state == "rolled_back"
    assert (statuses(report)["knobs.set.b"], statuses(report)["knobs.set.c"]) == ("failed", "skipped")
    assert "No space left" in report.findings[0].observed
    assert host.tree() == before


def test_a_disk_that_fills_up_while_undoing_keeps_nothing_from_being_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path)
    host = KnobHost(tmp_path, refuse=("/sys/knobs/c",))
    before = host.tree()
    monkeypatch.setattr(Journal, "note_undone", refuse_to_note)
    report = apply(host)
    assert report.state == "rolled_back"
    assert host.tree() == before
    # What stands is undone again by revert, which changes nothing then.
    monkeypatch.undo()
    engine.revert(host, Journal(host.root), apply=True)
    assert host.tree() == before


def refuse_to_note(self: Journal, number: int) -> None:
    raise OSError(28, "No space left on device")


def test_an_observation_that_hangs_is_unknown(tmp_path: Path) -> None:
    release = threading.Event()

    def hang(host: Host, wanted: Mapping[str, Any]) -> Mapping[str, Any]:
        release.wait(30)
        return observe(host, wanted)

    try:
        seen = look(worse(observe=hang), want(), make(tmp_path), deadline_s=0.2)
    finally:
        release.set()
    assert seen.steps == ()
    assert [(f.id, f.level) for f in seen.findings] == [("engine.observation-hung", "fail")]
    assert isinstance(seen.findings[0].observed, Unknown)


def test_a_host_that_hangs_is_unknown_to_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading.Thread, "start", lambda self: None)
    monkeypatch.setattr(threading.Thread, "join", lambda self, timeout: None)
    host = make(tmp_path)
    before = host.tree()
    for mode in ("audit", "check", "apply"):
        report = run_area(AREA, want(), host, mode=mode, journal=Journal(host.root), run="r1")
        assert (report.state, report.steps, report.before) == ("unknown", (), {})
    assert host.tree() == before


def test_a_host_that_hangs_after_the_change_is_put_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()

    def hang(host: Host, wanted: Mapping[str, Any]) -> Mapping[str, Any]:
        if turned(host):
            release.wait(30)
        return observe(host, wanted)

    monkeypatch.setattr(engine.look, "__defaults__", (0.2,))
    host = make(tmp_path)
    before = host.tree()
    try:
        report = apply(host, worse(observe=hang))
    finally:
        release.set()
    assert report.state == "rolled_back"
    assert "engine.observation-hung" in [f.id for f in report.findings]
    assert host.tree() == before


@pytest.mark.parametrize("function", ["observe", "plan", "judge"])
def test_a_bug_that_shows_after_the_change_is_put_back(tmp_path: Path, function: str) -> None:
    host = make(tmp_path)
    before = host.tree()
    real = getattr(AREA, function)

    def broken(*args: Any) -> Any:
        if turned(host):
            raise KeyError("a bug")
        return real(*args)

    report = apply(host, worse(**{function: broken}))
    assert report.state == "rolled_back"
    [finding] = [f for f in report.findings if f.id == "engine.observation-failed"]
    assert str(finding.observed) == "unknown (KeyError: 'a bug')"
    assert host.tree() == before
    assert Journal(host.root).interrupted("knobs") == []


def test_a_bug_that_shows_before_any_change_is_raised(tmp_path: Path) -> None:
    def broken(*_args: Any) -> Any:
        raise KeyError("a bug")

    with pytest.raises(KeyError, match="a bug"):
        apply(make(tmp_path), worse(plan=broken))


# Runs that were cut off


def test_a_cut_off_run_is_named_once_and_loses_nothing(tmp_path: Path) -> None:
    host = make(tmp_path)
    before = host.tree()
    journal = Journal(host.root)
    journal.begin("r0", "knobs")
    journal.intend("r0", "knobs", Step("knobs.set.a", "value", "/sys/knobs/a", "0", "1", "why", "source"))
    host.put("/sys/knobs/a", "1\n")
    audit = run_area(AREA, want(), host, mode="audit", journal=journal)
    assert [(f.id, f.subject) for f in audit.findings] == [("engine.interrupted-run", "r0")]
    assert journal.interrupted("knobs") == ["r0"], "an audit settles nothing"
    report = apply(host)
    assert (report.state, report.findings[0].subject) == ("changed", "r0")
    assert apply(host, run="r2").findings == ()
    engine.revert(host, journal, apply=True)
    assert host.tree() == before


def test_a_run_cut_off_at_its_end_is_closed_by_one_without_steps(tmp_path: Path) -> None:
    host = make(tmp_path)
    apply(host)
    journal = Journal(host.root)
    journal.begin("r2", "knobs")
    report = apply(host, run="r3")
    assert (report.state, [f.subject for f in report.findings]) == ("compliant", ["r2"])
    assert apply(host, run="r4").findings == ()


def test_a_run_that_is_at_work_is_not_called_cut_off(tmp_path: Path) -> None:
    host = make(tmp_path)
    journal = Journal(host.root)
    with Lock(host.root):
        journal.begin("r0", "knobs")
        audit = run_area(AREA, want(), host, mode="audit", journal=journal)
    assert [(f.id, f.subject, f.observed) for f in audit.findings] == [
        ("engine.run-at-work", "r0", "process %d" % os.getpid())
    ]
    audit = run_area(AREA, want(), host, mode="audit", journal=journal)
    assert [f.id for f in audit.findings] == ["engine.interrupted-run"]


# Folders that are made for a file

DEEP = "/etc/knobs.d/deep/knobs.conf"


def deep(wanted: Mapping[str, Any], have: Mapping[str, Any]) -> list[Step]:
    step = Step("knobs.deep", "file", DEEP, have["deep"], "deep", "why", "knobs(5)")
    knobs = [one for one in plan(wanted, have) if one.kind == "value"]
    return [step, *knobs] if have["deep"] != "deep" else knobs


def see_deep(host: Host, wanted: Mapping[str, Any]) -> dict[str, Any]:
    return dict(observe(host, wanted), deep=host.read(DEEP))


def folders(host: FakeHost) -> list[str]:
    return sorted(str(place)[len(host.root) :] for place in Path(host.root).glob("etc/**/") if place.is_dir())


def test_folders_that_were_made_go_with_their_file(tmp_path: Path) -> None:
    area = worse(plan=deep, observe=see_deep)
    host = make(tmp_path)
    assert apply(host, area).state == "changed"
    assert "/etc/knobs.d/deep" in folders(host)
    engine.revert(host, Journal(host.root), apply=True)
    assert folders(host) == ["/etc"]
    # What somebody else has put there stays, with its folder.
    apply(host, area, run="r2")
    host.put("/etc/knobs.d/mine", "x")
    engine.revert(host, Journal(host.root), apply=True)
    assert folders(host) == ["/etc", "/etc/knobs.d"]


def test_folders_that_were_made_are_put_back_too(tmp_path: Path) -> None:
    make(tmp_path)
    host = KnobHost(tmp_path, refuse=("/sys/knobs/c",))
    assert apply(host, worse(plan=deep, observe=see_deep)).state == "rolled_back"
    assert folders(host) == ["/etc"]


# Revert


def damaged(host: FakeHost, change: Callable[[list[str]], None]) -> Journal:
    path = Path(Journal(host.root).path)
    rows = path.read_text().splitlines()
    change(rows)
    path.write_text("".join(row + "\n" for row in rows))
    return Journal(host.root)


def spoil_first_record_of(word: str) -> Callable[[list[str]], None]:
    def change(rows: list[str]) -> None:
        place = next(n for n, row in enumerate(rows) if '"intend"' in row and word in row)
        rows[place] = "garbage"

    return change


def test_a_lost_original_is_told_and_not_replaced_by_a_later_one(tmp_path: Path) -> None:
    host = make(tmp_path)
    apply(host, wanted=want(knobs={"a": "5", "b": "5"}), run="r1")
    apply(host, wanted=want(knobs={"a": "6", "b": "6"}), run="r2")
    journal = damaged(host, spoil_first_record_of('"/sys/knobs/a"'))
    [finding] = engine.journal_findings(journal, "fail")
    assert "record 3, area knobs, run r1" in finding.observed[0]
    reports = engine.revert(host, journal, apply=True, settle_s=(0.0,))
    held = {r.step.target: r.detail for r in reports["knobs"].steps if r.status == "blocked"}
    assert list(held) == ["/sys/knobs/a"]
    assert "record 3, which holds its original, is lost" in held["/sys/knobs/a"]
    assert (host.read("/sys/knobs/a"), host.read("/sys/knobs/b"), host.read(FILE)) == ("6\n", "0\n", "a=0\n")
    assert reports["knobs"].state == "blocked"
    assert engine.revert(host, Journal(host.root), apply=False)["knobs"].state == "blocked"


def test_what_is_written_to_a_damaged_journal_is_not_taken_for_an_original(tmp_path: Path) -> None:
    host = make(tmp_path)
    apply(host, wanted=want(knobs={"a": "5"}), run="r1")
    damaged(host, spoil_first_record_of('"/sys/knobs/a"'))
    apply(host, wanted=want(knobs={"a": "6"}), run="r2")
    reports = engine.revert(host, Journal(host.root), apply=True, settle_s=(0.0,))
    assert {r.step.target for r in reports["knobs"].steps if r.status == "blocked"} == {"/sys/knobs/a"}
    assert host.read("/sys/knobs/a") == "6\n"
    assert host.read(FILE) == "a=0\n"


def test_an_audit_goes_on_without_a_journal_that_cannot_be_used(tmp_path: Path) -> None:
    host = make(tmp_path)
    apply(host)
    assert engine.usable_journal(Journal(host.root))[1] == ()
    damaged(host, spoil_first_record_of('"/sys/knobs/a"'))
    journal, [finding] = engine.usable_journal(Journal(host.root))
    assert (finding.id, finding.level) == ("engine.journal-damaged", "warn")
    assert journal is not None
    os.chmod(journal.folder, 0o777)
    journal, [finding] = engine.usable_journal(Journal(host.root))
    assert journal is None
    assert (finding.id, "written by others" in str(finding.observed)) == ("engine.journal-unusable", True)
    assert isinstance(finding.observed, Unknown), "whether all is in order is not known then"


@pytest.mark.parametrize("row", ["garbage", "17", "[]", '{"event": 1}', '{"event": "intend", "step": 3}', "[" * 9999])
def test_no_line_of_a_journal_ends_revert_in_a_traceback(tmp_path: Path, row: str) -> None:
    host = make(tmp_path)
    apply(host)
    total = len(Path(Journal(host.root).path).read_text().splitlines())
    for place in range(total):
        journal = damaged(host, lambda rows, at=place: rows.__setitem__(at, row))
        engine.revert(host, journal, apply=False)
        assert engine.journal_findings(journal, "fail"), place
        apply(host)


def other(root: Path) -> tuple[KnobHost, Area]:
    """A second area on the same host."""
    host = make(root)
    host.put("/sys/other", "x\n")

    def plan_other(wanted: Mapping[str, Any], have: Mapping[str, Any]) -> list[Step]:
        live = have["value"].strip()
        return [Step("o", "value", "/sys/other", live, "y", "w", "s")] if live != "y" else []

    area = Area(
        "other", "other", {}, lambda wanted: None, lambda h, w: {"value": h.read("/sys/other")}, plan_other,
        lambda wanted, have: [], dict,
    )  # fmt: skip
    return host, area


def test_revert_of_one_area_leaves_the_other(tmp_path: Path) -> None:
    host, area = other(tmp_path)
    before = host.tree()
    apply(host)
    run_area(area, {"x": 1}, host, mode="apply", journal=Journal(host.root), run="r1", settle_s=(0.0,))
    reports = engine.revert(host, Journal(host.root), apply=True, area="knobs")
    assert {name: report.state for name, report in reports.items()} == {"knobs": "changed"}
    assert host.read("/sys/other") == "y\n"
    reports = engine.revert(host, Journal(host.root), apply=True)
    assert list(reports) == ["other"]
    assert host.tree() == before
    assert engine.revert(host, Journal(host.root), apply=True) == {}


def test_revert_goes_back_to_the_first_original(tmp_path: Path) -> None:
    host = make(tmp_path)
    before = host.tree()
    for number, value in enumerate(("5", "6", "7")):
        apply(host, wanted=want(knobs={"a": value, "b": "0", "c": "0"}), run="r%d" % number)
    engine.revert(host, Journal(host.root), apply=True)
    assert host.tree() == before
    assert Journal(host.root).standing() == []


def test_revert_of_the_last_run_goes_back_one_run(tmp_path: Path) -> None:
    host = make(tmp_path)
    apply(host, wanted=want(knobs={"a": "5"}), run="r1")
    middle = host.tree()
    apply(host, wanted=want(knobs={"a": "6"}), run="r2")
    engine.revert(host, Journal(host.root), apply=True, run="r2")
    assert host.tree() == middle


def test_revert_of_a_run_beneath_another_is_refused_and_the_original_is_kept(tmp_path: Path) -> None:
    host = make(tmp_path)
    before = host.tree()
    apply(host, wanted=want(knobs={"a": "5"}), run="r1")
    apply(host, wanted=want(knobs={"a": "6"}), run="r2")
    later = host.tree()
    report = engine.revert(host, Journal(host.root), apply=True, run="r1")["knobs"]
    assert report.state == "blocked"
    assert "changed again by run r2" in report.steps[0].detail
    assert host.tree() == later
    engine.revert(host, Journal(host.root), apply=True)
    assert host.tree() == before


def test_revert_in_check_mode_only_tells(tmp_path: Path) -> None:
    host = make(tmp_path)
    apply(host)
    after = host.tree()
    reports = engine.revert(host, Journal(host.root), apply=False)
    assert reports["knobs"].state == "drifted"
    assert set(statuses(reports["knobs"]).values()) == {"planned"}
    assert host.tree() == after
    assert len(Journal(host.root).standing()) == 5


def test_revert_that_is_refused_keeps_its_record(tmp_path: Path) -> None:
    host = make(tmp_path)
    before = host.tree()
    apply(host)
    report = engine.revert(KnobHost(tmp_path, refuse=("/sys/knobs/b",)), Journal(host.root), apply=True)["knobs"]
    assert report.state == "failed"
    assert [e.step.id for e in Journal(host.root).standing()] == ["knobs.set.b"]
    engine.revert(host, Journal(host.root), apply=True)
    assert host.tree() == before


def test_revert_looks_whether_the_originals_are_back(tmp_path: Path) -> None:
    host = make(tmp_path)
    before = host.tree()
    apply(host)
    deaf = KnobHost(tmp_path, ignore=("/sys/knobs/b", FILE))
    report = engine.revert(deaf, Journal(host.root), apply=True, settle_s=(0.0,))["knobs"]
    assert report.state == "failed"
    stuck = {result.step.target: result.detail for result in report.steps if result.status == "stuck"}
    assert set(stuck) == {"/sys/knobs/b", FILE}
    assert "still shows: 2;" in stuck["/sys/knobs/b"]
    assert [e.step.id for e in Journal(host.root).standing()] == ["knobs.file", "knobs.set.b"], "to be reverted again"
    assert engine.revert(host, Journal(host.root), apply=True)["knobs"].state == "changed"
    assert {path: text for path, text in host.tree().items() if path != DAEMON} == {
        path: text for path, text in before.items() if path != DAEMON
    }


def test_revert_waits_for_an_original_that_comes_a_moment_later(tmp_path: Path) -> None:
    class Late(KnobHost):
        reads = 0

        def read(self, path: str) -> Any:
            if path == "/sys/knobs/b":
                self.reads += 1
                return "2\n" if self.reads <= 2 else super().read(path)
            return super().read(path)

    host = make(tmp_path)
    apply(host)
    report = engine.revert(Late(tmp_path), Journal(host.root), apply=True, settle_s=(0.0, 0.0))["knobs"]
    assert report.state == "changed"
    assert Journal(host.root).standing() == []


@pytest.mark.parametrize(
    ("original", "now", "is_back"),
    [
        ("64", "64\n", True),
        ("64", "128\n", False),
        ("6", "64\n", False),
        ("mq-deadline", "none [mq-deadline] kyber\n", True),
        ("none", "none [mq-deadline] kyber\n", False),
        ("4096 131072 6291456", "4096\t131072\t6291456\n", True),
        ("\n", "\n", True),
        ("\n", "0-3\n", False),
        ("8:0 rbps=100 wbps=max", "8:0 rbps=100 wbps=max riops=max wiops=max\n8:16 rbps=5\n", True),
        ("8:0 rbps=100 wbps=max", "8:0 rbps=200 wbps=max riops=max wiops=max\n", False),
        ("8:0 rbps=max wbps=max", "", True),
        ("1", Unknown("Permission denied"), True),
        ("1", None, True),
    ],
)
def test_a_value_reads_as_what_was_written(original: str, now: Any, is_back: bool) -> None:
    assert engine._shows(now, Step("undo.a", "value", "/x", "?", original, "w", "s")) == is_back


def test_revert_needs_consent_for_an_undo_that_interrupts(tmp_path: Path) -> None:
    def harsh(wanted: Mapping[str, Any], have: Mapping[str, Any]) -> list[Step]:
        undo = replace(START, risk="destructive")
        return [replace(step, undo=undo) if step.kind == "run" else step for step in plan(wanted, have)]

    host = make(tmp_path)
    apply(host, worse(plan=harsh))
    report = engine.revert(host, Journal(host.root), apply=True)["knobs"]
    assert report.state == "blocked"
    assert "gpufleet_allow_risk: destructive" in next(r.detail for r in report.steps if r.status == "blocked")


def test_revert_passes_over_a_knob_that_is_gone(tmp_path: Path) -> None:
    host = make(tmp_path)
    apply(host)
    os.unlink(host.root + "/sys/knobs/b")
    report = engine.revert(host, Journal(host.root), apply=True)["knobs"]
    assert report.state == "changed"
    assert Journal(host.root).standing() == []


def test_what_has_no_reverse_stays_and_is_said_so(tmp_path: Path) -> None:
    def without_undo(wanted: Mapping[str, Any], have: Mapping[str, Any]) -> list[Step]:
        return [replace(step, undo=None) for step in plan(wanted, have)]

    host = make(tmp_path)
    apply(host, worse(plan=without_undo))
    report = engine.revert(host, Journal(host.root), apply=True)["knobs"]
    assert statuses(report)["knobs.daemon"] == "skipped"
    assert "no reverse" in next(r.detail for r in report.steps if r.status == "skipped")


@pytest.mark.parametrize(
    ("step", "undone"),
    [
        (Step("a", "file", "/x", None, "new", "w", "s"), ("file", "new", None)),
        (Step("a", "file", "/x", "old", None, "w", "s"), ("file", None, "old")),
        (Step("a", "file", "/x", Unknown("unreadable"), "new", "w", "s"), None),
        (Step("a", "value", "/x", "1", "2", "w", "s"), ("value", "2", "1")),
        (Step("a", "value", "/x", None, "2", "w", "s"), None),
        (Step("a", "run", "x", "1", "2", "w", "s", argv=("do",)), None),
        (Step("a", "reboot", "x", "1", "2", "w", "s"), None),
    ],
)
def test_the_reverse_of_a_step(step: Step, undone: tuple[str, Any, Any] | None) -> None:
    undo = engine.undo_of(step)
    assert (undo and (undo.kind, undo.before, undo.after)) == undone


def test_a_value_is_followed_by_what_its_write_resets(tmp_path: Path) -> None:
    host = make(tmp_path)
    step = Step("x", "value", "/sys/knobs/a", "0", "9", "w", "s", then=(("/sys/knobs/b", "8"),))
    engine.apply_step(step, host)
    assert (host.read("/sys/knobs/a"), host.read("/sys/knobs/b")) == ("9\n", "8\n")


def test_every_report_is_json(tmp_path: Path) -> None:
    host = make(tmp_path)
    host.put(FILE, "")
    Path(host.root + FILE).write_bytes(b"caf\xe9\n")
    for mode in ("audit", "check", "apply"):
        report = run_area(AREA, want(boot="x"), host, mode=mode, journal=Journal(host.root), run="r", settle_s=(0.0,))
        json.dumps(report.to_json(), ensure_ascii=False).encode("utf-8")
    engine.revert(host, Journal(host.root), apply=True)
    assert Path(host.root + FILE).read_bytes() == b"caf\xe9\n"


def test_nothing_is_changed_on_what_could_not_be_looked_at(tmp_path: Path) -> None:
    make(tmp_path)
    (tmp_path / "loop").symlink_to("loop")

    def observe_more(host: Host, want: Mapping[str, Any]) -> dict[str, Any]:
        host.exists("/loop/x")
        return observe(host, want)

    area = replace(AREA, observe=observe_more)
    report = run_area(
        area, want(), KnobHost(tmp_path), mode="apply", allow_risk="destructive", journal=Journal(str(tmp_path)),
        run="r1", settle_s=(0.0,),
    )  # fmt: skip
    [finding] = report.findings
    assert (finding.id, finding.level, finding.subject) == ("engine.unseen", "block", "/loop/x")
    assert finding.observed == Unknown("Too many levels of symbolic links")
    assert report.state == "blocked"
    assert {result.status for result in report.steps} <= {"blocked", "skipped"}
