# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The door of the modules: options in, result out, on the area of block queues."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fake_module import Ended, Module
from fakes_block_queue import QueueHost, make

from ansible_collections.gpufleet.host.plugins.module_utils._areas.block_queue import AREA, SPEC
from ansible_collections.gpufleet.host.plugins.module_utils._engine import door
from ansible_collections.gpufleet.host.plugins.module_utils._engine.journal import Journal, Lock
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import Finding, Report, Step, StepResult

NVME = {"class": "nvme", "scheduler": "none"}


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> QueueHost:
    made = make(tmp_path)
    monkeypatch.setattr(door, "AnsibleModule", Module)
    monkeypatch.setattr(door, "LiveHost", lambda: made)
    monkeypatch.setattr(door, "Journal", lambda: Journal(str(tmp_path)))
    monkeypatch.setattr(door, "Lock", lambda: Lock(str(tmp_path), wait_s=0.0))
    return made


def call(check: bool = False, **options: Any) -> Ended:
    Module.params, Module.check_mode = options, check
    with pytest.raises(Ended) as ended:
        door.main(AREA)
    json.dumps(ended.value.result, ensure_ascii=False).encode("utf-8")
    return ended.value


def test_check_tells_what_the_run_does(host: QueueHost) -> None:
    before = host.tree()
    check = call(check=True, rules=[NVME])
    assert host.tree() == before
    assert (check.failed, check.result["changed"], check.result["state"]) == (False, True, "drifted")
    run = call(rules=[NVME])
    assert (run.failed, run.result["changed"], run.result["state"]) == (False, True, "changed")
    steps = [ended.result["report"]["areas"]["block_queue"]["steps"] for ended in (check, run)]
    for step in steps[0] + steps[1]:
        step.pop("status")
    assert steps[0] == steps[1] != []
    assert check.result["diff"] == run.result["diff"]
    again = call(rules=[NVME])
    assert (again.failed, again.result["changed"], again.result["state"]) == (False, False, "compliant")
    assert again.result["diff"] == []


def test_the_diff_shows_files_whole_and_values_as_lines(host: QueueHost) -> None:
    files, values = call(check=True, rules=[NVME]).result["diff"]
    assert files["before_header"] == files["after_header"] == "/etc/udev/rules.d/99-gpufleet-block-queue.rules"
    assert files["before"] == ""
    assert 'ATTR{queue/scheduler}="none"' in files["after"]
    assert "/sys/block/nvme1n1/queue/scheduler = mq-deadline\n" in values["before"]
    assert "/sys/block/nvme1n1/queue/scheduler = none\n" in values["after"]


def test_the_report_is_of_this_host_and_run(host: QueueHost) -> None:
    report = call(rules=[NVME], run="nightly").result["report"]
    assert (report["format"], report["run"], report["mode"], report["state"]) == (1, "nightly", "apply", "changed")
    assert set(report) == {"format", "host", "run", "taken", "mode", "state", "areas", "host_facts"}
    assert {e.run for e in Journal(host.root).standing()} == {"nightly"}


def test_a_run_without_a_name_gets_its_time(host: QueueHost) -> None:
    assert call(rules=[NVME]).result["report"]["run"][:2] == "20"


def test_an_impossible_want_is_one_clear_message_before_any_change(host: QueueHost) -> None:
    before = host.tree()
    ended = call(rules=[dict(NVME, nr_requests=1)])
    assert ended.failed
    assert ended.result["msg"] == (
        "io_scheduler_rules[0].nr_requests: 1 is not possible; allowed: a number from 4 (BLKDEV_MIN_RQ, block/blk.h) "
        "to 65536 (option rules[0].nr_requests of gpufleet.host.block_queue). Nothing was changed."
    )
    assert host.tree() == before


@pytest.mark.parametrize("check", [True, False])
def test_a_block_fails_with_what_to_do(host: QueueHost, check: bool) -> None:
    ended = call(check=check, rules=[{"class": "nvme", "scheduler": "bfq"}])
    assert (ended.failed, ended.result["changed"]) == (True, False)
    assert "offered: none, mq-deadline, kyber" in ended.result["msg"]
    assert "To do: set io_scheduler_rules" in ended.result["msg"]
    assert ended.result["report"]["areas"]["block_queue"]["findings"]


def test_a_rolled_back_run_fails_and_has_changed_nothing(host: QueueHost) -> None:
    host.refuse = ("/sys/block/nvme1n1/queue/scheduler",)
    before = host.tree()
    ended = call(rules=[NVME])
    assert (ended.failed, ended.result["state"], ended.result["changed"]) == (True, "rolled_back", False)
    assert "engine.step-refused" in ended.result["msg"]
    assert host.tree() == before


def test_a_warning_does_not_fail(host: QueueHost) -> None:
    ended = call(rules=[NVME, {"id": "0xdead", "scheduler": "none"}])
    assert not ended.failed
    assert [text.split(":")[0] for text in ended.warnings] == ["block_queue.no-such-disk"]


def test_a_second_run_at_the_same_time_fails(host: QueueHost) -> None:
    before = host.tree()
    with Lock(host.root):
        ended = call(rules=[NVME])
        assert not call(check=True, rules=[NVME]).failed, "looking needs no lock"
    assert ended.failed
    assert "another run" in ended.result["msg"]
    assert host.tree() == before


def test_a_host_without_room_for_a_journal_is_not_changed(host: QueueHost) -> None:
    host.put("/var/lib", "a file where a folder belongs")
    before = host.tree()
    ended = call(rules=[NVME])
    assert ended.failed
    assert "Nothing was changed" in ended.result["msg"]
    assert host.tree() == before


def result(status: str, state: str, *findings: Finding, detail: str = "") -> dict[str, Report]:
    step = Step("x.y", "value", "/sys/x", "1", "2", "why", "source")
    return {"x": Report(state, (StepResult(step, status, detail),), findings)}


def finish(reports: dict[str, Report]) -> Ended:
    module = Module({}, True)
    with pytest.raises(Ended) as ended:
        door.finish(module, door.result_of(door.host_report(reports, "r", "apply")), reports)
    return ended.value


def test_what_could_not_be_undone_has_changed_the_host(host: QueueHost) -> None:
    Module.params = {}
    ended = finish(result("stuck", "failed", detail="could not be undone: I/O error"))
    assert (ended.failed, ended.result["changed"]) == (True, True)
    assert ended.result["msg"] == "x.y: could not be undone: I/O error"


def test_a_step_without_consent_is_a_warning(host: QueueHost) -> None:
    Module.params = {}
    ended = finish(result("blocked", "blocked", detail="allow it with x_allow_risk: disruptive"))
    assert not ended.failed
    assert ended.warnings == ["x.y is held back: allow it with x_allow_risk: disruptive"]


def test_what_is_shown_on_a_terminal_can_be_written_as_utf8() -> None:
    finding = Finding("a.b", "warn", "caf\udce9", 1, "\udcff", "why", "fix", "source")
    assert "caf\ufffd" in door.sentence(finding)
    door.sentence(finding).encode("utf-8")


def test_the_worst_area_is_the_state_of_the_host() -> None:
    reports = {"a": Report("compliant"), "b": Report("unknown"), "c": Report("changed")}
    assert door.host_report(reports, "r", "audit")["state"] == "unknown"


def test_no_area_has_an_option_of_the_door() -> None:
    assert not set(SPEC) & set(door.COMMON_SPEC)
