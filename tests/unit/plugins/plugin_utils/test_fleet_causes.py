# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What hosts have in common: one row a cause, the gravest first, then what most of them have."""

from __future__ import annotations

import dataclasses

from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import Finding, Report
from ansible_collections.gpufleet.host.plugins.plugin_utils.fleet_causes import causes
from ansible_collections.gpufleet.host.plugins.plugin_utils.fleet_report import Document, by_urgency
from tests import fleet_sample as sample

WARNING = Finding("platform.smt", "warn", "host", "off", "on", "why", "fix", "source")
FAULT = dataclasses.replace(WARNING, id="platform.gpu-lost", level="fail", subject="0000:21:00.0")


def fleet(*rows: tuple[int, Report]) -> list[Document]:
    """So many hosts with each report of the platform."""
    areas = [area for count, area in rows for _host in range(count)]
    return by_urgency([sample.document("gpu%d" % number, platform=area) for number, area in enumerate(areas)])


def test_the_gravest_comes_first_and_then_what_most_hosts_have() -> None:
    tuned = sample.document("gpu90", block_queue=Report("drifted", sample.done(sample.SCHEDULER, status="planned")))
    same = {**tuned, "host": "gpu91"}
    unseen = Report("unknown", findings=(sample.NO_NODE,))
    many = fleet(
        (5, Report("compliant", findings=(WARNING,))), (2, Report("blocked", findings=(FAULT, WARNING))), (3, unseen)
    )
    found = causes([*many, tuned, same])
    assert [(cause.words, cause.area, cause.matter, len(cause.hosts)) for cause in found] == [
        ("fault", "platform", "GPU lost", 2),
        ("cannot be seen", "platform", "no node", 3),
        ("warning", "platform", "SMT", 7),
        ("to do", "block queue", "steps", 2),
    ]
    assert found[-1].why == "/sys/block/nvme1n1/queue/scheduler is mq-deadline, wanted none"
    assert found[0].hosts == ("gpu5", "gpu6")


def test_several_findings_on_one_host_are_one_host() -> None:
    other = dataclasses.replace(FAULT, subject="0000:22:00.0")
    (cause,) = causes(fleet((2, Report("blocked", findings=(FAULT, other)))))
    assert len(cause.hosts) == 2


def test_what_one_host_has_alone_is_told_in_its_row() -> None:
    assert causes(fleet((1, Report("blocked", findings=(FAULT,))), (1, Report("compliant", findings=(WARNING,))))) == []
