# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the modules really give back, for every area, is as docs/report.schema.json says."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any, Callable

import every_area
import jsonschema
import pytest
from fake_module import Ended, Module

from ansible_collections.gpufleet.host.plugins.module_utils._engine import audit_door, door, engine
from ansible_collections.gpufleet.host.plugins.module_utils._engine.journal import Journal, Lock
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import Report, Step, StepResult
from ansible_collections.gpufleet.host.plugins.modules import node_audit, node_revert

SCHEMA = json.loads((every_area.ROOT / "docs/report.schema.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def ended(main: Callable[[], None], check: bool = False, **options: Any) -> Any:
    Module.params, Module.check_mode = options, check
    with pytest.raises(Ended) as end:
        main()
    assert "report" in end.value.result, end.value.result
    report = json.loads(json.dumps(end.value.result["report"]))
    assert ["%s: %s" % (error.json_path, error.message) for error in VALIDATOR.iter_errors(report)] == []
    return report


@pytest.mark.parametrize("name", every_area.NAMES)
def test_audit_check_apply_and_revert(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sample = every_area.sample(name)
    host = sample.make(tmp_path)
    for module in (door, audit_door, node_revert):
        monkeypatch.setattr(module, "AnsibleModule", Module)
        monkeypatch.setattr(module, "LiveHost", lambda: host)
        monkeypatch.setattr(module, "Journal", lambda: Journal(str(tmp_path)))
    for module in (door, node_revert):
        monkeypatch.setattr(module, "Lock", lambda: Lock(str(tmp_path), wait_s=0.0))
    monkeypatch.setattr(engine.time, "sleep", lambda _seconds: None)
    # As a playbook gives it.
    want = every_area.ABOUT[name]["want"]
    options = dict(want, allow_risk="destructive", run="r1")

    audit = ended(node_audit.main, wants={name: want})
    assert audit["areas"][name]["steps"], "the sample does not drift"
    assert audit["host_facts"]
    check = ended(lambda: door.main(sample.area), check=True, **options)
    apply = ended(lambda: door.main(sample.area), **options)
    assert [step["id"] for step in check["areas"][name]["steps"]] == [
        step["id"] for step in apply["areas"][name]["steps"]
    ]
    assert "applied" in {step["status"] for step in apply["areas"][name]["steps"]}
    revert = ended(node_revert.main, allow_risk="destructive")
    assert {step["status"] for step in revert["areas"][name]["steps"]} <= {"applied", "skipped"}


def test_every_status_of_a_step_is_in_the_schema() -> None:
    step = Step("x.y", "value", "/sys/x", "1", "2", "why", "source", then=(("/sys/y", "2"),))
    for status in ("planned", "applied", "blocked", "waits", "skipped", "failed", "undone", "stuck"):
        report = door.host_report({"x": Report("failed", (StepResult(step, status),))}, "r", "revert")
        VALIDATOR.validate(json.loads(json.dumps(report)))


def test_facts_that_do_not_come_cost_no_audit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sample = every_area.sample("block_queue")
    host = sample.make(tmp_path)
    monkeypatch.setattr(audit_door, "AnsibleModule", Module)
    monkeypatch.setattr(audit_door, "LiveHost", lambda: host)
    monkeypatch.setattr(audit_door, "Journal", lambda: Journal(str(tmp_path)))
    monkeypatch.setattr(audit_door, "OBSERVE_DEADLINE_S", 0.2)
    release = threading.Event()
    want = every_area.ABOUT["block_queue"]["want"]
    Module.params, Module.check_mode = {"wants": {"block_queue": want}}, False
    try:
        with pytest.raises(Ended) as end:
            audit_door.main({"block_queue": sample.area}, lambda _host, _match, _wants: {"late": release.wait(30)})
    finally:
        release.set()
    assert end.value.result["report"]["areas"]["block_queue"]["steps"]
    assert end.value.result["report"]["host_facts"] == {}
    assert end.value.warnings == [
        "the facts of the host, from which it is drawn, are left out: unknown (hung for 0.2 s)"
    ]
