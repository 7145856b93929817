# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import time
from typing import Any

import jsonschema
import pytest
from every_area import ROOT

from ansible_collections.gpufleet.host.plugins.plugin_utils import cut_off
from ansible_collections.gpufleet.host.plugins.plugin_utils import fleet_report as fleet

NO_JSON = {
    "failed": True,
    "module_stdout": "",
    "module_stderr": "",
    "rc": -9,
    "msg": "Module result deserialization failed.",
}


@pytest.mark.parametrize(
    ("result", "is_cut"),
    [
        (NO_JSON, True),
        (dict(NO_JSON, rc=1, module_stderr="Traceback\nOSError: [Errno 30] Read-only file system"), True),
        ({"failed": True, "msg": "io_scheduler_rules: 1 is not possible"}, False),
        ({"failed": False, "report": {}}, False),
        # Nothing was started: no Python, or not root.
        (dict(NO_JSON, rc=127, module_stdout="/bin/sh: 1: /usr/bin/python9: not found"), False),
        (dict(NO_JSON, rc=1, module_stderr="sudo: a password is required\n"), False),
        (dict(NO_JSON, rc=1, module_stdout="Sorry, try again.\r\n"), False),
    ],
)
def test_a_module_without_an_answer_is_told_from_one_that_refuses(result: dict[str, Any], is_cut: bool) -> None:
    assert cut_off.is_cut_off(result) is is_cut


@pytest.mark.parametrize(
    ("result", "why", "command"),
    [
        ({"rc": -9}, "was killed", "killed process"),
        ({"rc": 137}, "was killed", "killed process"),
        ({"rc": 1, "module_stdout": "Killed"}, "was killed", "killed process"),
        ({"rc": 1, "module_stderr": "OSError: [Errno 30] Read-only file system: '/tmp/x'"}, "read-only", "findmnt -no OPTIONS /"),
        (
            {"rc": 1, "module_stderr": "FileNotFoundError: [Errno 2] No usable temporary directory found in ['/tmp']"},
            "root filesystem is read-only or full", "findmnt -no OPTIONS /",
        ),
        ({"msg": "Failed to create temporary directory. In some cases"}, "read-only or full", "findmnt -no OPTIONS /"),
        ({"rc": 1, "module_stderr": "OSError: [Errno 28] No space left on device"}, "is full", "df -h /"),
        ({"rc": 1, "module_stderr": "MemoryError"}, "no memory", "free -m"),
        ({"rc": 139, "module_stderr": "a\nSegmentation fault\n"}, "without an answer: Segmentation fault", "-vvv"),
        ({"rc": 1379}, "without an answer", "-vvv"),
    ],
)  # fmt: skip
def test_the_reason_and_the_next_command(result: dict[str, Any], why: str, command: str) -> None:
    said, to_do = cut_off.cause_of(result)
    assert why in said
    assert command in to_do


@pytest.mark.parametrize(
    ("name", "check", "mode"),
    [
        ("node_audit", False, "audit"),
        ("node_capture", False, "audit"),
        ("block_queue", True, "check"),
        ("block_queue", False, "apply"),
        ("node_revert", False, "revert"),
        ("node_revert", True, "check"),
    ],
)
def test_it_is_unknown_and_claims_nothing_that_nobody_saw(name: str, check: bool, mode: str) -> None:
    result = cut_off.answer(name, check, "r7", ("it was killed", "dmesg"))
    report = result["report"]
    schema = json.loads((ROOT / "docs/report.schema.json").read_text(encoding="utf-8"))
    assert list(jsonschema.Draft202012Validator(schema).iter_errors(report)) == []
    document = fleet.normalise(report)
    assert document is not None
    assert (document["mode"], document["state"], result["state"]) == (mode, "unknown", "unknown")
    changes = mode in ("apply", "revert")
    assert ("journal" in result["msg"], fleet.is_all_known(document)) == (changes, not changes)
    assert ("-e gpufleet_revert_run=r7" in result["msg"]) == (mode == "apply")
    did = fleet.summary({"playbook": "site.yml" if changes else "audit.yml"}, [document], {})["did"]
    assert ("nothing changed" in did) == (not changes), did


def test_a_later_report_of_the_host_settles_it() -> None:
    old = fleet.normalise(cut_off.answer("node_revert", False, "r7", ("it was killed", "dmesg"))["report"])
    audit = {"format": 1, "areas": {"block_queue": {"state": "compliant"}}, "mode": "audit", "state": "compliant"}
    new = fleet.normalise(audit)
    assert new is not None
    assert fleet.merge(old, new)["state"] == "compliant"


def test_what_was_never_sent_changed_nothing() -> None:
    result = cut_off.answer("block_queue", False, "r7", ("no temporary folder", "df"), is_sent=False)
    assert "nothing was changed" in result["msg"]
    assert "journal_runs" not in result["report"]


@pytest.mark.parametrize(
    ("name", "check", "given", "seconds"),
    [
        ("node_audit", False, None, 1800),
        ("kernel_settings", True, None, 1800),
        ("kernel_settings", False, None, 14400),
        ("node_revert", False, None, 14400),
        ("node_audit", False, "90", 90),
        ("kernel_settings", False, 0, 0),
    ],
)
def test_the_deadline_of_a_module(name: str, check: bool, given: Any, seconds: float) -> None:
    assert cut_off.seconds_for(name, check, given) == seconds


@pytest.mark.parametrize("given", ["soon", -1, [1], "nan"])
def test_a_deadline_that_cannot_be_meant(given: Any) -> None:
    with pytest.raises(ValueError, match=r"gpufleet_deadline_s: .*allowed: a number of seconds"):
        cut_off.seconds_for("node_audit", False, given)


def test_a_body_that_takes_too_long_is_ended() -> None:
    started = time.monotonic()
    with pytest.raises(cut_off.Overdue), cut_off.deadline(0.2):
        time.sleep(20)
    assert time.monotonic() - started < 10
    with cut_off.deadline(0.2):
        pass
    with cut_off.deadline(0):
        time.sleep(0.3)
    time.sleep(0.3)
