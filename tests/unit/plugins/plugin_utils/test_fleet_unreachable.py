# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each way in which a host cannot be reached or entered has its own cause and its own next command."""

from __future__ import annotations

from typing import Any, Mapping

import pytest
import yaml
from real_play import ROOT

from ansible_collections.gpufleet.host.plugins.plugin_utils import fleet_report as fleet
from ansible_collections.gpufleet.host.plugins.plugin_utils.cut_off import is_cut_off
from ansible_collections.gpufleet.host.plugins.plugin_utils.fleet_unreachable import (
    CAUSES,
    ENTRY_CAUSES,
    cause_of,
    task_failed,
    unreachable,
)
from tests import fleet_sample as sample

CASES: Mapping[str, Any] = yaml.safe_load((ROOT / "tests/unit/cases/unreachable.yml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES["unreachable"], ids=lambda case: case["said"][-40:])
def test_a_host_that_cannot_be_reached_says_why_and_what_to_type(case: Mapping[str, str]) -> None:
    document = sample.blank("gpu01", unreachable(case["said"]))
    assert document["state"] == "unknown"
    headline = fleet.headline(document)
    assert headline.startswith("unreachable: ") and case["why"] in headline and "@@@" not in headline
    assert case["fix"] in fleet.next_step(document)


@pytest.mark.parametrize("case", CASES["failed"], ids=lambda case: case["said"][-40:])
def test_a_host_that_cannot_be_entered_says_why_and_what_to_type(case: Mapping[str, str]) -> None:
    found = task_failed("Observe", case["said"], "gpufleet.host.node_audit", False, case.get("output", ""))
    document = sample.blank("gpu01", found)
    assert (document["state"], found["id"]) == ("failed", "fleet.no-entry")
    assert fleet.headline(document) == "no entry: " + found["why"]
    assert case["why"] in found["why"] and case["fix"] in fleet.next_step(document)


@pytest.mark.parametrize(
    "case", [case for case in CASES["failed"] if "output" in case], ids=lambda case: case["output"][-30:]
)
def test_a_module_that_could_not_start_is_not_cut_off(case: Mapping[str, str]) -> None:
    assert not is_cut_off({"failed": True, "rc": 1, "msg": case["said"], "module_stdout": case["output"]})


def test_every_row_has_a_message_and_hosts_that_ail_from_the_same_are_told_alike() -> None:
    said = [(row["said"] + "\n" + row.get("output", "")) for rows in CASES.values() for row in rows]
    for rows in (CAUSES, ENTRY_CAUSES):
        assert [row.pattern for row in rows if row not in [cause_of(text, rows) for text in said]] == []
    one, other = (unreachable("ssh: connect to host 192.0.2.%d port 22: Connection refused" % n) for n in (1, 2))
    assert fleet.cause(sample.blank("a", one)) == fleet.cause(sample.blank("b", other))


def test_a_task_that_fails_for_another_reason_keeps_its_own_words() -> None:
    found = task_failed("Install", "No package matching 'xfsprog' is available", "ansible.builtin.package", False)
    assert (found["id"], found["subject"]) == ("fleet.task-failed", "Install")
