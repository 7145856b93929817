# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The end of a run on a terminal: one cause is told once."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import Finding, Report, StepResult, Unknown
from ansible_collections.gpufleet.host.plugins.plugin_utils import fleet_report as fleet
from ansible_collections.gpufleet.host.plugins.plugin_utils.fleet_console import console_lines
from tests import fleet_sample as sample

NO_CPUSET = Finding(
    "numa_slices.no-cpuset-controller", "block", "/sys/fs/cgroup", "cpuset", Unknown("no such controller"),
    "a slice cannot be bound to CPUs without it", "boot with cgroup v2", "systemd",
)  # fmt: skip


def lines_of(documents: list[fleet.Document], limit: int = 20, **about: Any) -> list[str]:
    run = fleet.summary({"playbook": "site.yml", **about}, documents, {})
    return [line for _state, line in console_lines(run, limit)]


def ailing(number: int, steps: int = 9) -> list[fleet.Document]:
    held = tuple(
        StepResult(sample.SCHEDULER, "blocked", "numa_slices.no-cpuset-controller: %s" % NO_CPUSET.why)
        for _n in range(steps)
    )
    area = Report("blocked", held, (NO_CPUSET,), {}, {})
    found = [sample.report({"numa_slices": area}, "gpu%02d" % n, "apply", {}) for n in range(1, number + 1)]
    return [document for document in map(fleet.normalise, found) if document is not None]


def test_forty_equal_hosts_are_one_entry() -> None:
    lines = lines_of(ailing(40))
    assert lines[0] == "40 hosts, applied, nothing changed: 40 blocked"
    assert len(lines) == 4
    assert "40 hosts" in lines[1] and "a slice cannot be bound to CPUs without it" in lines[1]
    assert lines[2].strip() == "on: gpu01, gpu02, gpu03 and 37 more"
    assert lines[3].strip() == "to do: boot with cgroup v2"


def test_steps_that_a_finding_holds_back_are_no_points_of_their_own() -> None:
    [document] = ailing(1)
    assert len(fleet.open_points(document)) == 1
    assert "more)" not in fleet.headline(document)


def test_what_the_host_said_is_in_the_headline_of_a_run_that_was_put_back() -> None:
    refused = Finding(
        "engine.step-refused", "fail", "/sys/x", "none", "write: Invalid argument", "put back", "mend", "engine"
    )
    report = Report("rolled_back", sample.done(sample.SCHEDULER, status="failed"), (refused,), {}, {})
    document = fleet.normalise(sample.report({"block_queue": report}, "gpu01", "apply", {}))
    assert document is not None
    assert fleet.headline(document).startswith("block queue: /sys/x: the host refused it: write: Invalid argument")


@pytest.mark.parametrize(
    ("playbook", "check", "words"),
    [
        ("site.yml", False, "applied, nothing changed"),
        ("site.yml", True, "dry run, nothing changed"),
        ("audit.yml", False, "audited, nothing changed"),
        ("adopt.yml", False, "written down, nothing changed"),
        ("accept.yml", False, "compared with the order, nothing changed"),
        ("revert.yml", True, "dry run of a revert, nothing changed"),
        ("mine.yml", False, "audited, nothing changed"),
        ("mine.yml", True, "dry run, nothing changed"),
    ],
)
def test_the_mode_is_the_one_that_people_started(playbook: str, check: bool, words: str) -> None:
    assert fleet.run_words(playbook, check, "audit", 0) == words


def test_changes_are_counted() -> None:
    assert fleet.run_words("site.yml", False, "apply", 12) == "applied, 12 changes"


def test_hosts_in_order_with_warnings_are_told() -> None:
    warning = Finding(
        "platform.persistence", "warn", "GPU 0", "on", "off", "each start costs seconds", "switch it on", "x"
    )
    report = Report("compliant", (), (warning,), {}, {})
    document = fleet.normalise(sample.report({"platform": report}, "gpu01", "audit", {}))
    assert document is not None
    lines = lines_of([document])
    assert lines[0].endswith("1 compliant")
    assert "warning" in lines[1] and "each start costs seconds" in lines[1]


def test_terminal_gets_no_control_characters() -> None:
    lines = lines_of([sample.hostile("\x1b[31mred\u202e\n\x00")])
    assert all(text.isprintable() for text in lines)
    assert "\\u001b[31mred\\u202e" in lines[1]


def test_long_fleets_are_cut_with_what_is_left() -> None:
    lines = lines_of(sample.fleet_of(300), limit=5)
    assert len(lines) <= 2 + 3 * 5
    assert "the page has them all" in lines[-1] or len(lines) < 2 + 3 * 5


def test_a_fleet_in_order_takes_one_line() -> None:
    lines = lines_of([sample.document("a"), sample.document("b")])
    assert lines == ["2 hosts, applied, nothing changed: 2 compliant"]


def test_hosts_that_were_changed_and_have_the_same_warning_are_one_entry() -> None:
    warning = Finding(
        "platform.persistence", "warn", "GPU 0", "on", "off", "each start costs seconds", "switch it on", "x"
    )
    documents = []
    for name, count in (("gpu01", 2), ("gpu02", 1)):
        areas = {
            "block_queue": Report("changed", sample.done(*[sample.SCHEDULER] * count, status="applied")),
            "platform": Report("compliant", (), (warning,), {}, {}),
        }
        document = fleet.normalise(sample.report(areas, name, "apply", {}))
        assert document is not None
        documents.append(document)
    lines = lines_of(documents)
    assert lines[0] == "2 hosts, applied, 3 changes: 2 changed"
    assert "changed, and as wanted now, with 1 warning: platform: GPU 0" in lines[1]
    assert fleet.headline(documents[0]).startswith("2 changes done, and as wanted now, with 1 warning")
