# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which roles a run of the whole host has to run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.gpufleet.host.plugins.module_utils._areas.all import AREAS
from ansible_collections.gpufleet.host.plugins.module_utils._engine import whole
from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import LiveHost
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import (
    Finding,
    Report,
    Step,
    StepResult,
    Unknown,
)

STEP = Step(
    "volume.data.mkfs", "run", "/dev/nvme0n1", "blank", "xfs", "it is wanted", "mkfs.xfs(8)", argv=("mkfs.xfs",)
)
NO_TOOL = Finding("xfs.no-mkfs", "block", "data", "an answer", Unknown("mkfs.xfs is not installed"), "w", "f", "s")
CUT_OFF = Finding("engine.interrupted-run", "info", "r1", "a run that ended", "killed", "w", "f", "engine")


def applied(**reports: Report) -> list[str]:
    calm = {area.name: Report("compliant") for area in AREAS.values()}
    return whole.to_apply(AREAS.values(), {**calm, **reports})


@pytest.mark.parametrize(
    ("report", "names"),
    [
        (Report("compliant"), []),
        (Report("compliant", (), (CUT_OFF,)), ["xfs_volumes"]),
        (Report("drifted", (StepResult(STEP, "planned"),)), ["xfs_volumes"]),
        (Report("blocked", (StepResult(STEP, "blocked"),), (NO_TOOL,)), []),
        (Report("blocked", (StepResult(STEP, "blocked"),), (replace(NO_TOOL, cured_by_role=True),)), ["xfs_volumes"]),
    ],
    ids=[
        "in order",
        "in order, and its last run was cut off",
        "drifted",
        "blocked",
        "blocked by a tool that the role installs",
    ],
)
def test_a_role_runs_where_it_has_something_to_do(report: Report, names: list[str]) -> None:
    assert applied(xfs_volumes=report) == names


def test_an_area_that_depends_on_another_runs_with_it() -> None:
    assert applied(numa_slices=Report("drifted", (StepResult(STEP, "planned"),))) == ["numa_slices", "mysql_isolation"]


def test_an_area_that_fails_in_itself_says_what_and_where_and_shows_no_source(tmp_path: Any) -> None:
    def observe(_host: Any, _want: Any) -> Any:
        raise PermissionError(13, "Permission denied", "/var/lib/gpufleet/journal.jsonl")

    area = replace(AREAS["kernel_settings"], observe=observe)
    [finding] = whole.audit([area], {area.name: {}}, LiveHost(str(tmp_path)), {area.name: None}, None)[
        area.name
    ].findings
    said = "PermissionError: [Errno 13] Permission denied: '/var/lib/gpufleet/journal.jsonl'"
    assert finding.observed == said
    assert "%s (" % said in finding.why
    assert "(observe of _engine/test_whole.py, line " in finding.why
    assert "raise " not in finding.why and "/unit/" not in finding.why


def test_the_summary_tells_a_cause_once_and_counts_what_follows() -> None:
    file = Step("f", "file", "/etc/x", None, "a\nb\n", "w", "s")
    value = Step("v", "value", "/sys/x", None, "none", "w", "s")
    run = Step("r", "run", "udev rules", "old", "new", "udev reads its rules again", "s", argv=("udevadm",))
    cause = Finding(
        "x.no-cpuset", "block", "/sys/fs/cgroup", "cpuset", "", "no slice can be bound", "boot with cgroup v2", "s"
    )
    held = [
        StepResult(file, "blocked", "x.no-cpuset: no slice can be bound"),
        StepResult(run, "skipped", "needs step f"),
    ]
    free = [StepResult(value, "planned"), StepResult(run, "planned"), StepResult(file, "planned")]
    text = whole.summary({"a": Report("blocked", tuple(held), (cause,)), "b": Report("drifted", tuple(free))})
    assert text.splitlines() == [
        "a is blocked",
        "  /sys/fs/cgroup: no slice can be bound; to do: boot with cgroup v2",
        "  2 steps wait for it",
        "b is drifted",
        "  /sys/x is not there, wanted none",
        "  udev rules: udev reads its rules again",
        "  /etc/x is missing",
    ]
