# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An ordinary user sees a part of a host: no module makes a report of that."""

from __future__ import annotations

import json
import os
from typing import Any, Callable

import every_area
import jsonschema
import pytest
from fake_module import Ended, Module

from ansible_collections.gpufleet.host.plugins.module_utils._areas.all import AREAS
from ansible_collections.gpufleet.host.plugins.module_utils._engine import audit_door, door
from ansible_collections.gpufleet.host.plugins.modules import (
    node_audit,
    node_audit_tuning,
    node_capture,
    node_packages,
    node_revert,
)
from ansible_collections.gpufleet.host.plugins.plugin_utils import fleet_report

SCHEMA = json.loads((every_area.ROOT / "docs/report.schema.json").read_text(encoding="utf-8"))
SAID = "not root: set ansible_become: true for this host, or give --become"
WANTS = {"block_queue": {"rules": []}}


def ended(monkeypatch: pytest.MonkeyPatch, main: Callable[[], None], check: bool, options: dict[str, Any]) -> Ended:
    for module in (door, audit_door, node_capture, node_packages, node_revert):
        monkeypatch.setattr(module, "AnsibleModule", Module)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    Module.params, Module.check_mode = options, check
    with pytest.raises(Ended) as end:
        main()
    return end.value


@pytest.mark.parametrize("check", [False, True], ids=["run", "check"])
@pytest.mark.parametrize(
    ("main", "options"),
    [
        (lambda: door.main(AREAS["block_queue"]), {"rules": []}),
        (node_audit.main, {"wants": WANTS}),
        (node_audit_tuning.main, {"wants": WANTS}),
        (node_capture.main, {"wants": WANTS}),
        (node_packages.main, {"names": ["xfsprogs"]}),
        (node_revert.main, {}),
    ],
    ids=["an area", "node_audit", "node_audit_tuning", "node_capture", "node_packages", "node_revert"],
)
def test_without_root_it_is_said_what_to_set_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, main: Callable[[], None], options: dict[str, Any], check: bool
) -> None:
    end = ended(monkeypatch, main, check, options)
    assert end.failed and end.result["msg"] == SAID and not end.warnings
    report = json.loads(json.dumps(end.result["report"]))
    jsonschema.validate(report, SCHEMA)
    assert (report["state"], report["areas"]) == ("failed", {})
    assert [(row["id"], row["observed"]) for row in report["findings"]] == [("engine.not-root", "user 1000")]
    document = fleet_report.normalise(report)
    assert document is not None and fleet_report.headline(document) == SAID
    assert fleet_report.next_step(document).startswith("add ansible_become: true")


def test_a_capture_is_audited_by_anybody(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    (tmp_path / "capture.json").write_text('{"format": 1, "hostname": "gpu07", "taken": "2026-01-31T12:00:00Z"}')
    (tmp_path / "files").mkdir()
    end = ended(monkeypatch, node_audit.main, False, {"wants": WANTS, "capture": str(tmp_path)})
    assert not end.failed and "findings" not in end.result["report"]
