# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Undoing as a module, on the area of block queues."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fake_module import Ended, Module
from fakes_block_queue import QueueHost, make

from ansible_collections.gpufleet.host.plugins.module_utils._areas.block_queue import AREA
from ansible_collections.gpufleet.host.plugins.module_utils._engine import engine
from ansible_collections.gpufleet.host.plugins.module_utils._engine.journal import Journal, Lock
from ansible_collections.gpufleet.host.plugins.module_utils._engine.whole import valid_want
from ansible_collections.gpufleet.host.plugins.modules import node_revert

SCHEDULER = "/sys/block/nvme1n1/queue/scheduler"


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> QueueHost:
    made = make(tmp_path)
    monkeypatch.setattr(node_revert, "AnsibleModule", Module)
    monkeypatch.setattr(node_revert, "LiveHost", lambda: made)
    monkeypatch.setattr(node_revert, "Journal", lambda: Journal(str(tmp_path)))
    monkeypatch.setattr(node_revert, "Lock", lambda: Lock(str(tmp_path), wait_s=0.0))
    monkeypatch.setattr(engine.time, "sleep", lambda _seconds: None)
    return made


def tune(host: QueueHost) -> None:
    want = valid_want(AREA, {"rules": [{"class": "nvme", "scheduler": "none"}]})
    report = engine.run_area(AREA, want, host, mode="apply", journal=Journal(host.root), run="r1", settle_s=(0.0,))
    assert report.state == "changed"


def call(check: bool = False, **options: Any) -> Ended:
    Module.params, Module.check_mode = options, check
    with pytest.raises(Ended) as ended:
        node_revert.main()
    return ended.value


def test_the_originals_come_back_and_a_second_time_changes_nothing(host: QueueHost) -> None:
    before = host.tree()
    tune(host)
    ended = call()
    assert (ended.failed, ended.result["changed"], ended.result["state"]) == (False, True, "changed")
    assert host.tree() == before
    again = call()
    assert (again.failed, again.result["changed"], again.result["state"]) == (False, False, "compliant")


def test_check_tells_what_would_be_undone_and_needs_no_lock(host: QueueHost) -> None:
    tune(host)
    after = host.tree()
    with Lock(host.root):
        ended = call(check=True)
    assert (ended.failed, ended.result["changed"], ended.result["state"]) == (False, True, "drifted")
    assert host.tree() == after


def test_check_leaves_nothing_on_a_host_that_was_never_changed(host: QueueHost) -> None:
    assert call(check=True).result["state"] == "compliant"
    assert not host.exists("/var/lib/gpufleet")


def test_a_second_run_at_the_same_time_fails(host: QueueHost) -> None:
    with Lock(host.root):
        ended = call()
    assert ended.failed
    assert "another run" in ended.result["msg"]


def test_a_host_without_room_for_a_lock_is_told_in_a_sentence(host: QueueHost) -> None:
    host.put("/var/lib", "a file where a folder belongs")
    ended = call()
    assert ended.failed
    assert ended.result["msg"].endswith("Nothing was undone.")


def test_a_value_that_does_not_come_back_fails_and_stays_on_record(host: QueueHost) -> None:
    tune(host)
    host.ignore = (SCHEDULER,)
    ended = call()
    assert (ended.failed, ended.result["changed"], ended.result["state"]) == (True, True, "failed")
    assert "still shows: [none]" in ended.result["msg"]
    assert {entry.step.target for entry in Journal(host.root).standing()} == {SCHEDULER}


def test_a_run_that_is_not_in_the_journal_is_told_with_those_that_are(host: QueueHost) -> None:
    tune(host)
    ended = call(undo_run="r2")
    assert not ended.result["changed"]
    said = "run r2 is not in the journal of this host; the newest are r1. Nothing was undone."
    assert ended.result["unknown_run"] == said
    assert "unknown_run" not in call(undo_run="r1").result
    # Undone, and still on record.
    assert "unknown_run" not in call(undo_run="r1").result


def test_the_runs_that_are_told_are_the_newest_ones() -> None:
    runs = ["r%d" % number for number in range(15, 0, -1)]
    said = node_revert.unknown_run("x", runs)
    assert "the newest are r15, r14," in said and "r6 and 5 older ones" in said
    assert "it holds none" in node_revert.unknown_run("x", [])


def damaged(host: QueueHost, how: str) -> None:
    path = Path(Journal(host.root).path)
    if how == "is a folder":
        path.unlink()
        path.mkdir()
    elif how == "is everybody's":
        path.parent.chmod(0o777)
    else:
        path.write_text({"is garbage": "garbage", "is empty": "", "lacks keys": '{"event": "intend"}\n'}[how])


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("how", ["is garbage", "is empty", "lacks keys"])
def test_a_lost_journal_is_not_in_order(host: QueueHost, how: str, check: bool) -> None:
    tune(host)
    damaged(host, how)
    ended = call(check=check)
    assert (ended.failed, ended.result["state"]) == (True, "failed")
    assert [row["id"] for row in ended.result["report"]["findings"]] == ["engine.journal-damaged"]
    assert "missing" in ended.result["msg"]
    assert "mv %s/var/lib/gpufleet" % host.root in ended.result["msg"]


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize(("how", "said"), [("is a folder", "is a folder"), ("is everybody's", "written by others")])
def test_what_cannot_be_trusted_is_not_undone(host: QueueHost, how: str, said: str, check: bool) -> None:
    tune(host)
    after = host.tree()
    damaged(host, how)
    ended = call(check=check)
    assert ended.failed
    assert said in ended.result["msg"]
    assert ended.result["msg"].endswith("Nothing was undone.")
    assert host.tree() == after


def test_one_damaged_line_keeps_the_rest_from_nothing(host: QueueHost) -> None:
    before = host.tree()
    tune(host)
    path = Path(Journal(host.root).path)
    rows = path.read_text().splitlines()
    place = next(n for n, row in enumerate(rows) if '"intend"' in row and SCHEDULER in row)
    rows[place] = "garbage"
    path.write_text("\n".join(rows) + "\n")
    ended = call()
    assert (ended.failed, ended.result["changed"]) == (True, True)
    after = host.tree()
    assert {name for name in after if after[name] != before.get(name)} == {SCHEDULER}
