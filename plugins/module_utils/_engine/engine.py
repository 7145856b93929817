# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The engine: observe, judge, plan, apply, observe again.

The only place that knows check mode, consent, the journal, rollback and verification.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from .deadline import within
from .groups import fail_with
from .host import Hands, Host, MemoHost
from .journal import Journal, JournalError
from .records import Entry, changes, originals
from .values import RISKS, SAMPLES_DEADLINE_S, Finding, Report, Step, StepResult, Text, Unknown, worst

# A whole observation: far more than the sum of sane probes, far less than an operator's patience.
OBSERVE_DEADLINE_S = 120.0
# Some values arrive a moment after the write (a udev event, a unit that starts): look again, then judge.
SETTLE_S = (0.0, 0.3, 1.0, 2.0)
_LOSSES_SHOWN = 20
_KEPT_SHOWN = 5

Want = Mapping[str, Any]
Have = Mapping[str, Any]


@dataclass(frozen=True)
class Area:
    """A subject that is kept as wanted: a name and its functions, nothing inherited.

    ``spec`` is the argument spec of the want; ``check_want`` raises BadWant for what no host could
    satisfy (pure, also run on the controller); ``observe`` looks at what the want is about; ``plan``
    and ``judge`` are pure; ``adopt`` turns what was observed into the want's own format.
    ``examples`` shows how an option is written whose spec does not tell, by its path without numbers.
    ``follows`` names areas on whose result this one's plan depends: it is run again when they change something.
    """

    name: str
    role: str
    spec: Mapping[str, Any]
    check_want: Callable[[Want], None]
    observe: Callable[[Host, Want], Have]
    plan: Callable[[Want, Have], List[Step]]
    judge: Callable[[Want, Have], List[Finding]]
    adopt: Callable[[Have], Dict[str, Any]]
    follows: Tuple[str, ...] = ()
    examples: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Look:
    """One observation and what follows from it."""

    have: Have
    steps: Tuple[Step, ...]
    findings: Tuple[Finding, ...]


def look(area: Area, want: Want, host: Host, deadline_s: float = OBSERVE_DEADLINE_S) -> Look:
    """Observe, plan and judge once, within a deadline."""
    watched = host if isinstance(host, MemoHost) else MemoHost(host)

    def work() -> Look:
        watched.unseen.clear()
        have = area.observe(watched, want)
        findings = tuple(area.judge(want, have))
        return Look(have, tuple(area.plan(want, have)), findings + _unseen(area, watched.unseen, findings))

    found = within(work, deadline_s)
    return Look({}, (), (_hung(area, found),)) if isinstance(found, Unknown) else found


def run_area(
    area: Area,
    want: Want,
    host: Any,
    *,
    mode: str,
    allow_risk: str = "safe",
    journal: Optional[Journal] = None,
    run: str = "",
    settle_s: Sequence[float] = SETTLE_S,
) -> Report:
    """Bring one area to its wanted state (``mode`` apply), or say what that would take (audit, check).

    The steps of check are the steps of apply.  ``host`` needs hands for apply only; the caller
    holds the lock.
    """
    seen = look(area, want, host if mode != "apply" else MemoHost(host))
    results = sort_out(area, seen, allow_risk)
    before = _adopt(area, seen)
    interrupted = _cut_off(area, journal, mode) if journal else []
    todo = [result.step for result in results if result.status == "planned"]
    if mode != "apply" or not todo or journal is None:
        findings = tuple(interrupted) + seen.findings
        if mode == "apply" and journal is not None:
            _close(journal, area, [finding.subject for finding in interrupted])
        return Report(state_of(results, seen.findings, mode), tuple(results), findings, before, before)

    journal.begin(run, area.name)
    _close(journal, area, [finding.subject for finding in interrupted])
    tried = _apply(todo, host, journal, run, area.name)
    again = _look_until_settled(area, want, host, allow_risk, settle_s, tried.refused)
    left = [result.step for result in sort_out(area, again, allow_risk) if result.status == "planned"]
    if not tried.refused and not left and again.have:
        results = [replace(r, status="applied") if r.status == "planned" else r for r in results]
        after_results = [r for r in sort_out(area, again, allow_risk) if r.status != "planned"]
        state = worst(["changed", state_of(after_results, again.findings, mode)])
        report = Report(
            state,
            tuple(_merge(results, after_results)),
            tuple(interrupted) + again.findings,
            before,
            _adopt(area, again),
        )
    else:
        report = _roll_back(area, want, host, journal, results, tried, left, seen, again)
    _note(lambda: journal.end(run, area.name, report.state))
    return report


def sort_out(area: Area, seen: Look, allow_risk: str) -> List[StepResult]:
    """Which of the planned steps may run: by consent, by blocking findings, by what they require."""
    blocking = [finding for finding in seen.findings if finding.level == "block"]
    results: List[StepResult] = []
    not_run: Dict[str, str] = {}
    for step in seen.steps:
        held = [f for f in blocking if not f.blocks or step.id.startswith(f.blocks)]
        lacking = [name for name in step.requires if name in not_run]
        if held:
            result = StepResult(step, "blocked", "%s: %s" % (held[0].id, held[0].why))
        elif lacking:
            result = StepResult(step, "skipped", "needs step %s first" % lacking[0])
        elif step.waits_for_reboot:
            result = StepResult(step, "waits", "true after the next boot")
        elif RISKS.index(step.risk) > RISKS.index(allow_risk):
            detail = "%s step: allow it with %s_allow_risk: %s" % (step.risk, area.role, step.risk)
            result = StepResult(step, "blocked", detail)
        else:
            result = StepResult(step, "planned")
        if result.status in ("blocked", "skipped"):
            not_run[step.id] = result.detail
        results.append(result)
    return results


def state_of(results: Sequence[StepResult], findings: Sequence[Finding], mode: str) -> str:
    """The state that an observation stands for.  Drift that consent holds back is drift to an audit."""
    states = ["compliant"]
    for finding in findings:
        if finding.level in ("fail", "block"):
            states.append("unknown" if isinstance(finding.observed, Unknown) else "blocked")
        elif finding.level == "warn" and isinstance(finding.observed, Unknown):
            states.append("unknown")
    for result in results:
        if result.status in ("blocked", "skipped"):
            states.append("blocked" if mode == "apply" else "drifted")
        elif result.status == "planned":
            states.append("drifted")
        elif result.status == "waits":
            states.append("pending_reboot")
    return worst(states)


def revert(
    host: Any,
    journal: Journal,
    *,
    apply: bool,
    area: Optional[str] = None,
    run: Optional[str] = None,
    allow_risk: str = "disruptive",
    settle_s: Sequence[float] = SETTLE_S,
) -> Dict[str, Report]:
    """Undo an area, a run or everything, back to the recorded originals; a report for each area."""
    rows: List[Tuple[Entry, Sequence[int], StepResult]] = []
    made = {entry.number: entry.folders for entry in journal.standing()}
    last = {changes(entry.step): entry for entry in _by_disk(journal.standing(), host)}
    for entry, numbers in originals(_by_disk(journal.standing(area, run), host)):
        newest = last[changes(entry.step)]
        # What a command undoes does not hang on its first record, and one run is not asked for the first original.
        doubt = journal.doubt(entry) if run is None and entry.step.kind != "run" else ""
        if run is not None and newest.run != run:
            # Its own original lies beneath a later change; undoing it would lose the way back to it.
            detail = "changed again by run %s: undo that one first, or the whole area" % newest.run
            result = StepResult(entry.step, "blocked", detail)
        elif doubt:
            detail = "%s, so this would not go back to what the host had: put it back by hand" % doubt
            result = StepResult(entry.step, "blocked", detail)
        else:
            result = _revert_entry(entry, numbers, host, journal, apply, allow_risk)
        rows.append((entry, numbers, result))
    reports: Dict[str, List[StepResult]] = {}
    emptied: List[str] = []
    for (_entry, settled, _result), (entry, result) in zip(rows, _confirmed(rows, host, journal, settle_s)):
        reports.setdefault(entry.area, []).append(result)
        if result.status == "applied":
            emptied += [folder for number in settled for folder in made[number]]
    _remove_folders(emptied, host)
    return {name: Report(_reverted_state(results), tuple(results)) for name, results in reports.items()}


def undo_of(step: Step) -> Optional[Step]:
    """The reverse step, or None where there is none."""
    if step.undo is not None:
        return step.undo
    if step.kind in ("file", "value") and not isinstance(step.before, Unknown):
        if step.kind == "value" and step.before is None:
            return None
        return replace(step, id="undo." + step.id, before=step.after, after=step.before, requires=())
    return None


def journal_findings(journal: Journal, level: str) -> Tuple[Finding, ...]:
    """What the journal has lost, as a finding about the host."""
    losses = journal.losses()
    if not losses:
        return ()
    observed = ["%s (%s)" % (loss.place(), loss.why) for loss in losses[:_LOSSES_SHOWN]]
    if len(losses) > _LOSSES_SHOWN:
        observed.append("and %d more" % (len(losses) - _LOSSES_SHOWN))
    fix = (
        "put back by hand what these changed, or from a backup of the journal; then revert the rest, and put the journal "
        "aside: mv %s %s.bad" % (journal.folder, journal.folder)
    )
    if any("newer version" in loss.why for loss in losses):
        fix = "bring the collection on the controller to the version that wrote it, and run this again; else " + fix
    why = (
        "the journal is damaged: revert puts back what the other records know, "
        "and refuses what may have had another original"
    )
    return (Finding("engine.journal-damaged", level, journal.path, "all its records", observed, why, fix, "engine"),)


def usable_journal(journal: Journal) -> Tuple[Optional[Journal], Tuple[Finding, ...]]:
    """The journal for an audit, None where it cannot be used, and what there is to say about it."""
    try:
        return journal, journal_findings(journal, "warn")
    except JournalError as error:
        why = "whether a run was cut off here, and what revert could put back, is not known"
        fix = "see what the message says, before anything is changed on this host"
        found = Finding(
            "engine.journal-unusable", "warn", journal.path, "a journal", Unknown(str(error)), why, fix, "engine"
        )
        return None, (found,)


def _by_disk(entries: Sequence[Entry], host: Host) -> List[Entry]:
    """Journal entries with the kernel names that their disks have now: those of another boot may be other disks'."""
    return [replace(entry, step=_renamed(entry.step, host)) for entry in entries]


def _renamed(step: Step, host: Host) -> Step:
    if not step.disk:
        return step
    link = host.readlink("/dev/disk/by-id/" + step.disk)
    # A disk that is gone keeps its stable name: no file is there, and the message names it.
    name = link.rsplit("/", 1)[-1] if link else step.disk

    def now(path: str) -> str:
        return re.sub("^/sys/block/[^/]+/", lambda _match: "/sys/block/%s/" % name, path)

    return replace(
        step,
        target=now(step.target),
        then=tuple((now(path), text) for path, text in step.then),
        undo=_renamed(step.undo, host) if step.undo else None,
    )


def apply_step(step: Step, hands: Hands) -> None:
    """Do one step.  Raises OSError with the reason when the host refuses it."""
    if step.kind == "file":
        hands.write(step.target, step.after, step.mode)
    elif step.kind == "value":
        hands.set_value(step.target, step.after)
        for path, text in step.then:
            hands.set_value(path, text)
    elif step.kind == "run":
        for check in step.checks:
            _execute(hands, check, "", SAMPLES_DEADLINE_S)
        _execute(hands, step.argv, step.stdin, step.deadline_s)


def _execute(hands: Hands, argv: Sequence[str], stdin: str, deadline_s: float) -> None:
    result = hands.execute(argv, stdin, deadline_s)
    if not result.ok:
        said = (result.stderr or result.stdout).strip().splitlines()
        raise OSError("%s: %s" % (" ".join(argv), result.unknown or " ".join(said[-3:]) or result.rc))


@dataclass
class Tried:
    """What became of the steps that were to be done: those that were begun with their numbers, and what was refused why."""

    done: List[Tuple[int, Step]] = field(default_factory=list)
    refused: Dict[str, str] = field(default_factory=dict)
    # Values that read as they were written, right after it.
    taken: Set[str] = field(default_factory=set)


def _apply(steps: Sequence[Step], hands: Hands, journal: Journal, run: str, area: str) -> Tried:
    """Apply steps in order; after a refusal only those that do not belong to what was refused."""
    tried = Tried()
    for step in steps:
        bad = [one for one in steps if one.id in tried.refused]
        if step.id in fail_with(steps, bad):
            continue
        try:
            number = journal.intend(run, area, step, _lacking_folders(step, hands))
        except OSError as error:
            # Without its original on record a step must not be done, nor any after it.
            tried.refused[step.id] = str(error)
            break
        tried.done.append((number, step))
        try:
            apply_step(step, hands)
        except Exception as error:  # whatever it is, what belongs to it must be put back
            # A refused command may have done half of its work, so it is undone like the others.
            tried.refused[step.id] = (
                str(error) if isinstance(error, OSError) else "%s: %s" % (type(error).__name__, error)
            )
            continue
        if step.kind == "value" and _is_taken(step, hands):
            tried.taken.add(step.id)
        _note(partial(journal.note_done, number))
    return tried


def _is_taken(step: Step, host: Host) -> bool:
    """Whether all that a step writes reads as it was written."""
    written = [(step.target, step.after), *step.then]
    return all(_shows(host.read(path), replace(step, after=text)) for path, text in written)


def _look_until_settled(
    area: Area, want: Want, host: Host, allow_risk: str, settle_s: Sequence[float], refused: Mapping[str, str]
) -> Look:
    """Look until nothing is left to do, or what is left was refused, or patience ends."""
    again = Look({}, (), ())
    for pause in settle_s:
        time.sleep(pause)
        again = _look_again(area, want, host)
        left = [result.step for result in sort_out(area, again, allow_risk) if result.status == "planned"]
        if not again.have or set(refused) >= {step.id for step in left}:
            break
        # What was not done for a refusal does not come by itself.
        if refused and all(step.id in fail_with(left, [s for s in left if s.id in refused]) for step in left):
            break
    return again


def _look_again(area: Area, want: Want, host: Host) -> Look:
    """An observation after changes.  When it fails, the changes are not confirmed: that must not end the run."""
    try:
        return look(area, want, MemoHost(host))
    except Exception as error:
        return Look({}, (), (_failed_to_look(area, error),))


def _adopt(area: Area, seen: Look) -> Mapping[str, Any]:
    return area.adopt(seen.have) if seen.have else {}


def _roll_back(
    area: Area,
    want: Want,
    host: Any,
    journal: Journal,
    results: Sequence[StepResult],
    tried: Tried,
    left: Sequence[Step],
    seen: Look,
    again: Look,
) -> Report:
    """Undo what failed and what belongs to it, newest first and reloads last, and say why, with both observations.

    What does not belong to it and is confirmed by the observation stays.
    """
    todo = [result.step for result in results if result.status == "planned"]
    refused = [step for step in todo if step.id in tried.refused]
    lost = _lost(todo, refused, tried, left)
    # Where the host could not be observed, nothing is confirmed.
    set_back = [step for step in lost if step.id in tried.taken]
    failed = [*refused, *(step for step in lost if step.id not in tried.taken)]
    gone = fail_with(todo, failed, set_back) if again.have else {step.id for step in todo}
    undone = [pair for pair in tried.done if pair[1].id in gone]
    outcome: Dict[str, Tuple[str, str]] = {}
    made = {entry.number: entry.folders for entry in journal.standing(area.name)}
    rereads = [pair for pair in undone if pair[1].is_reread]
    for number, step in [pair for pair in reversed(undone) if not pair[1].is_reread] + rereads:
        outcome[step.id] = _undo(number, step, host, journal, refused=step.id in tried.refused)
    _remove_folders([folder for number, _step in undone for folder in made[number]], host)
    outcome.update({name: ("failed", reason) for name, reason in tried.refused.items()})
    kept = [step for _number, step in tried.done if step.id not in gone]
    final = _look_again(area, want, host)
    results = [StepResult(r.step, *_became(outcome, kept, r.step)) if r.status == "planned" else r for r in results]
    findings = [_refusal(area, step, tried.refused[step.id], kept) for step in refused]
    known = [*again.findings, *seen.findings]
    findings += [_ignored(area, step, step.id in tried.taken, _actor(step, known), kept) for step in lost]
    return Report(
        "rolled_back" if _is_back(area, seen, final, undone, kept, outcome) else "failed",
        tuple(results),
        tuple(findings) + (again.findings if not again.have else ()) + final.findings,
        _adopt(area, seen),
        _adopt(area, again),
    )


def _lost(todo: Sequence[Step], refused: Sequence[Step], tried: Tried, left: Sequence[Step]) -> List[Step]:
    """What was done and shows something else, and what came up by it; what was not begun for a refusal is no loss."""
    begun = {step.id for _number, step in tried.done} - fail_with(todo, refused)
    return [step for step in left if step.id in begun or step.id not in {one.id for one in todo}]


def _is_back(
    area: Area,
    seen: Look,
    final: Look,
    undone: Sequence[Tuple[int, Step]],
    kept: Sequence[Step],
    outcome: Mapping[str, Tuple[str, str]],
) -> bool:
    """Whether what was undone is as it was: the plan is the judge of this too, it has to be planned again from the same value."""
    planned = {(step.id, str(step.before)) for step in final.steps}
    return (
        (bool(kept) or _adopt(area, final) == _adopt(area, seen))
        and all(status != "stuck" for status, _detail in outcome.values())
        and all((step.id, str(step.before)) in planned for _number, step in undone)
        and not {step.id for step in final.steps} & {step.id for step in kept}
    )


def _became(outcome: Mapping[str, Tuple[str, str]], kept: Sequence[Step], step: Step) -> Tuple[str, str]:
    if step.id in outcome:
        return outcome[step.id]
    return ("applied", "") if step in kept else ("skipped", "a step that it belongs to failed")


def _undo(number: int, step: Step, host: Any, journal: Journal, refused: bool) -> Tuple[str, str]:
    undo = undo_of(step)
    if undo is None:
        if refused:
            _note(lambda: journal.note_undone(number))
            return "failed", ""
        return "stuck", "this step has no reverse"
    try:
        apply_step(undo, host)
    except Exception as error:  # the other steps have to be undone as well
        if not refused:
            return "stuck", "could not be undone: %s" % error
    _note(lambda: journal.note_undone(number))
    return "undone", ""


def _note(write: Callable[[], None]) -> None:
    """Note in the journal what is true already; a full disk only means that it is done or undone once more."""
    try:
        write()
    except OSError:
        pass


def _revert_entry(
    entry: Entry, numbers: Sequence[int], host: Any, journal: Journal, apply: bool, allow_risk: str
) -> StepResult:
    undo = undo_of(entry.step)
    if undo is None:
        return StepResult(entry.step, "skipped", "this step has no reverse: what it made stays")
    if RISKS.index(undo.risk) > RISKS.index(allow_risk):
        return StepResult(undo, "blocked", "%s step: allow it with gpufleet_allow_risk: %s" % (undo.risk, undo.risk))
    if undo.kind in ("file", "value") and host.read(undo.target) is None and undo.kind == "value":
        if apply:
            _note_all(journal, numbers)
        return StepResult(undo, "skipped", "%s is gone" % undo.target)
    if not apply:
        return StepResult(undo, "planned")
    try:
        apply_step(undo, host)
    except Exception as error:  # the others have to be undone as well
        return StepResult(undo, "failed", str(error))
    if undo.kind == "run":
        # Not to be done twice; a file or a value is noted when it is seen to be back.
        _note_all(journal, numbers)
    return StepResult(undo, "applied")


def _confirmed(
    rows: Sequence[Tuple[Entry, Sequence[int], StepResult]], host: Host, journal: Journal, settle_s: Sequence[float]
) -> List[Tuple[Entry, StepResult]]:
    """Read back what a revert has written; what does not show its original is stuck and stays on record."""
    written = [row for row in rows if row[2].status == "applied" and row[2].step.kind != "run"]
    wrong: Dict[int, Text] = {}
    for pause in settle_s if written else ():
        time.sleep(pause)
        now = {entry.number: host.read(result.step.target) for entry, _numbers, result in written}
        wrong = {
            entry.number: now[entry.number]
            for entry, _numbers, result in written
            # An undo by way of another value (vm.dirty_bytes by its ratio) may be overtaken by that one's own.
            if result.step.target == entry.step.target and not _shows(now[entry.number], result.step)
        }
        if not wrong:
            break
    for entry, numbers, _result in written:
        if entry.number not in wrong:
            _note_all(journal, numbers)
    return [
        (entry, replace(result, status="stuck", detail=_still_shows(wrong[entry.number])))
        if entry.number in wrong
        else (entry, result)
        for entry, _numbers, result in rows
    ]


def _shows(now: Text, step: Step) -> bool:
    """Whether a file is as the step left it, or a value reads as what was written, as far as that can be told."""
    if step.kind == "file":
        return bool(now == step.after)
    if not isinstance(now, str):
        return True  # gone with its device or process, or only to be written
    wanted = str(step.after).split()
    choice = re.search(r"\[([^\]]*)\]", now)
    if choice is not None:
        return choice.group(1).split() == wanted
    rows = [row.split() for row in now.splitlines()]
    if any("=" in word for word in wanted):
        # io.max: a line a device, with more keys than were written, and none where there is no limit.
        return all(set(wanted) <= set(row) for row in rows if row[:1] == wanted[:1])
    return now.split() == wanted or wanted in rows


def _still_shows(now: Text) -> str:
    what = "nothing there" if now is None else str(now).strip()[:200]
    return "was written back without an error and still shows: %s; see who else sets it, then revert again" % what


def _note_all(journal: Journal, numbers: Sequence[int]) -> None:
    # The first record last: until it is noted, the original is known.
    for number in sorted(numbers, reverse=True):
        _note(partial(journal.note_undone, number))


def _lacking_folders(step: Step, host: Host) -> Tuple[str, ...]:
    """The folders that writing a file makes, outermost first."""
    if step.kind != "file" or step.after is None:
        return ()
    above = step.target.split("/")[1:-1]
    folders = ["/" + "/".join(above[:depth]) for depth in range(1, len(above) + 1)]
    return tuple(folder for folder in folders if not host.exists(folder))


def _remove_folders(folders: Sequence[str], hands: Hands) -> None:
    """Remove folders that we made, unless somebody has put something into them."""
    for folder in sorted(set(folders), reverse=True):
        try:
            hands.remove_folder(folder)
        except OSError:
            continue


def _reverted_state(results: Sequence[StepResult]) -> str:
    names = {"failed": "failed", "stuck": "failed", "blocked": "blocked", "planned": "drifted", "applied": "changed"}
    return worst([names.get(result.status, "compliant") for result in results])


def _merge(applied: Sequence[StepResult], after: Sequence[StepResult]) -> List[StepResult]:
    """The steps of the run, then those that only the observation after it brought up."""
    ids = {result.step.id for result in applied}
    return list(applied) + [result for result in after if result.step.id not in ids]


def _close(journal: Journal, area: Area, runs: Sequence[str]) -> None:
    for name in runs:
        journal.end(name, area.name, "interrupted")


def _cut_off(area: Area, journal: Journal, mode: str) -> List[Finding]:
    """Runs that began and did not end; while another one holds the lock, that one is at work."""
    runs = journal.interrupted(area.name)
    holder = journal.at_work() if runs and mode != "apply" else ""
    return [_interrupted(area, name) for name in runs] if not holder else [_at_work(area, runs[-1], holder)]


def _at_work(area: Area, run: str, holder: str) -> Finding:
    return Finding(
        "engine.run-at-work",
        "info",
        run,
        "no other run",
        "process %s" % holder,
        "run %s of %s is at work now, so this may show things half done" % (run, area.name),
        "look again when it has ended",
        "engine",
    )


def _interrupted(area: Area, run: str) -> Finding:
    return Finding(
        "engine.interrupted-run",
        "info",
        run,
        "a run that ended",
        "a run that was killed",
        "run %s of %s was cut off; this run starts from what the host shows now" % (run, area.name),
        "nothing to do: its originals are in the journal and revert still knows them",
        "engine",
    )


def _unseen(area: Area, unseen: Mapping[str, str], findings: Sequence[Finding]) -> Tuple[Finding, ...]:
    """Paths of which it cannot be told whether anything is there, where no finding of the area speaks of it.

    An error is not absence: on such an answer nothing is made, mended or called right.
    """
    told = ["%s %s" % (f.subject, f.observed) for f in findings if isinstance(f.observed, Unknown)]
    paths: Dict[str, List[str]] = {}
    for path, reason in sorted(unseen.items()):
        if not any(path in text and reason in text for text in told):
            paths.setdefault(reason, []).append(path)
    return tuple(
        Finding(
            "engine.unseen",
            "block",
            ", ".join(names[:3]) + (" and %d more" % (len(names) - 3) if len(names) > 3 else ""),
            "to be there or not",
            Unknown(reason),
            "an error is not absence: it cannot be told what is there, so nothing of %s is changed" % area.name,
            "ls -ld %s; dmesg | tail" % names[0],
            "engine",
        )
        for reason, names in paths.items()
    )


def _hung(area: Area, reason: Unknown) -> Finding:
    return Finding(
        "engine.observation-hung",
        "fail",
        area.name,
        "an answer",
        reason,
        "a probe of this area did not come back; the host may have a device or a filesystem that hangs",
        "look for who waits: ps -eo pid,stat,wchan:32,args | grep -E ' D|fuse|nfs|rpc'; see which filesystems are mounted: "
        "cat /proc/self/mountinfo",
        "engine",
    )


def _failed_to_look(area: Area, error: Exception) -> Finding:
    reason = "%s: %s" % (type(error).__name__, error)
    return Finding(
        "engine.observation-failed",
        "fail",
        area.name,
        "an answer",
        Unknown(reason),
        "after the change this area could not be observed, so the change is not confirmed",
        "take a capture with playbooks/capture.yml and report it",
        "engine",
    )


def _refusal(area: Area, step: Step, reason: str, kept: Sequence[Step]) -> Finding:
    return Finding(
        "engine.step-refused",
        "fail",
        step.target,
        step.after,
        reason,
        "the host refused this step of %s, so what the run had changed was put back%s" % (area.name, _but(kept)),
        "read the reason, correct the wanted value or the host, and run again",
        "engine",
    )


def _ignored(area: Area, step: Step, is_taken: bool, actor: str, kept: Sequence[Step]) -> Finding:
    why = "the host took this step of %s without an error and still shows another value" % area.name
    fix = "see who else sets it, or whether the kernel supports it: %s" % step.why
    if actor or is_taken:
        why = "the host took this step of %s, and %s sets it back" % (area.name, actor or "something on the host")
        fix = (
            "end that one's hold on it, or leave it out of the wanted values"
            if actor
            else "find who writes it (tuned, irqbalance, a timer, another management tool), or leave it out of the wanted values"
        )
    return Finding(
        "engine.not-confirmed",
        "fail",
        step.target,
        step.after,
        step.before,
        "%s, so what the run had changed was put back%s" % (why, _but(kept)),
        fix,
        "engine",
    )


def _but(kept: Sequence[Step]) -> str:
    """What stays, as the end of a sentence."""
    if not kept:
        return ""
    names = ", ".join(step.target for step in kept[:_KEPT_SHOWN])
    more = " and %d more" % (len(kept) - _KEPT_SHOWN) if len(kept) > _KEPT_SHOWN else ""
    return "; what does not depend on it stays: %s%s" % (names, more)


def _actor(step: Step, findings: Sequence[Finding]) -> str:
    """Who else sets a value, where the area has found one; the thing is named as sysctl, or by the end of its path."""
    names = [step.target.replace("/proc/sys/", "").replace("/", "."), "/".join(step.target.split("/")[-2:])]
    for finding in findings:
        place = "%s %s" % (finding.subject, finding.observed)
        if ".foreign-" in finding.id and any(name in place for name in names):
            return "%s (%s)" % (finding.observed, finding.subject)
    return ""
