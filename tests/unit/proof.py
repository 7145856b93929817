# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The proofs that every area has to pass, on a fake host that survives: each takes a way to set one up.

``setup(root)`` makes a fresh tree and gives its host; called again on the same root by ``reopen``.
"""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Collection, Mapping, Optional, Sequence

from fakes import FakeHost

from ansible_collections.gpufleet.host.plugins.module_utils._engine import engine
from ansible_collections.gpufleet.host.plugins.module_utils._engine.engine import Area, run_area
from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import LiveHost, MemoHost
from ansible_collections.gpufleet.host.plugins.module_utils._engine.journal import Journal
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import Report, Step


@dataclass(frozen=True)
class Case:
    """An area, what is wanted, and a host that drifts from it."""

    area: Area
    want: Mapping[str, Any]
    setup: Callable[[Path], FakeHost]
    reopen: Callable[[Path], FakeHost]
    allow_risk: str = "destructive"

    def apply(self, host: FakeHost, run: str = "r1") -> Report:
        return run_area(
            self.area, self.want, host, mode="apply", allow_risk=self.allow_risk,
            journal=Journal(host.root), run=run, settle_s=(0.0,),
        )  # fmt: skip

    def check(self, host: FakeHost) -> Report:
        return run_area(self.area, self.want, MemoHost(host), mode="check", allow_risk=self.allow_risk)


def planned(report: Report) -> list[Step]:
    return [result.step for result in report.steps if result.status in ("planned", "applied")]


def prove_converges(case: Case, root: Path, end: Sequence[str] = ("changed", "pending_reboot")) -> Report:
    """check's steps are apply's steps; the second run finds nothing to do; what was observed is what was wanted."""
    host = case.setup(root)
    before = host.tree()
    predicted = case.check(host)
    assert host.tree() == before, "check changed something"
    assert planned(predicted), "the case does not drift"
    report = case.apply(host)
    assert report.state in end, (report.state, [f.to_json() for f in report.findings], report.steps)
    assert planned(report) == planned(predicted)
    again = case.apply(host, "r2")
    assert planned(again) == []
    assert again.state in ("compliant", "pending_reboot"), again
    return report


def prove_reverts(case: Case, root: Path, stays: Sequence[str] = ()) -> None:
    """revert puts everything back, byte for byte (but for what has no reverse, named in ``stays``)."""
    host = case.setup(root)
    before = host.tree()
    assert case.apply(host).state in ("changed", "pending_reboot")
    engine.revert(host, Journal(host.root), apply=True, allow_risk="destructive")
    after = host.tree()
    assert {path: text for path, text in after.items() if path not in stays} == {
        path: text for path, text in before.items() if path not in stays
    }
    assert [e for e in Journal(host.root).standing() if engine.undo_of(e.step) is not None] == []


def prove_rolls_back(
    case: Case,
    root: Path,
    host: FakeHost,
    stays: Collection[str] = (),
    effects: Optional[Mapping[str, Sequence[str]]] = None,
) -> Report:
    """A host that refuses or ignores a step (set up by the caller) ends rolled_back, as it was before.

    :param effects: where the area has parts: what is of another part than the step is done and stays, and these steps
        change these paths beside their own.
    """
    before = host.tree()
    report = case.apply(host)
    assert report.state == "rolled_back", (report.state, report.steps, report.findings)
    kept = [result.step for result in report.steps if result.status == "applied"]
    assert effects is not None or kept == []
    paths = [[step.target, *(pair[0] for pair in step.then), *(effects or {}).get(step.id, ())] for step in kept]
    stays = {*stays, *(path for some in paths for path in some)}
    after = host.tree()
    assert {path: text for path, text in after.items() if path not in stays} == {
        path: text for path, text in before.items() if path not in stays
    }
    return report


def prove_survives_kills(case: Case, root: Path, stays: Sequence[str] = ()) -> int:
    """SIGKILL before, within and after each step in turn; gives the number of kills that were survived.

    After each kill no file is half-written, the next run ends as an undisturbed one does, and revert
    still knows the originals.
    """
    undisturbed = root / "undisturbed"
    undisturbed.mkdir(parents=True)
    host = case.setup(undisturbed)
    originals = host.tree()
    case.apply(host)
    final = host.tree()
    kills = 0
    for moment in ("before", "within", "after"):
        for number in range(1, 200):
            place = root / ("%s-%d" % (moment, number))
            place.mkdir()
            case.setup(place)
            if not _run_and_die(case, place, number, moment):
                break
            kills += 1
            _assert_whole(case.reopen(place), originals, final)
            report = case.apply(case.reopen(place), "r2")
            assert report.state in ("changed", "compliant", "pending_reboot"), (moment, number, report)
            survivor = case.reopen(place)
            assert survivor.tree() == final, (moment, number)
            engine.revert(survivor, Journal(survivor.root), apply=True, allow_risk="destructive")
            back = survivor.tree()
            for path in set(originals) | set(back):
                if path not in stays:
                    assert back.get(path) == originals.get(path), (moment, number, path)
    return kills


def _run_and_die(case: Case, place: Path, number: int, moment: str) -> bool:
    """Run in a process of its own which kills itself; True when it got that far."""
    pid = os.fork()
    if pid == 0:
        try:
            host = case.reopen(place)
            _arm(host, number, moment)
            case.apply(host)
        finally:
            os._exit(0)
    _pid, status = os.waitpid(pid, 0)
    return os.WIFSIGNALED(status)


def _arm(host: FakeHost, number: int, moment: str) -> None:
    """Let the host kill its process at the given change: before it, after it, or between write and rename."""
    count = [0]

    def armed(change: Callable[..., Any]) -> Callable[..., Any]:
        def changing(*args: Any, **options: Any) -> Any:
            count[0] += 1
            if count[0] == number and moment == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            if count[0] == number and moment == "within":
                os.rename = _die  # type: ignore[assignment]
            result = change(*args, **options)
            if count[0] == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return changing

    for name in ("write", "set_value", "execute"):
        setattr(host, name, armed(getattr(host, name)))


def _die(*_args: Any, **_options: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _assert_whole(host: LiveHost, originals: Mapping[str, str], final: Mapping[str, str]) -> None:
    """Each file of the tree is as before or as after, never in between."""
    for path, text in host.tree().items():  # type: ignore[attr-defined]
        if path.rsplit("/", 1)[-1].startswith(".") and path.endswith(".new"):
            continue
        assert text in (originals.get(path), final.get(path)), path
