# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from fakes_block_queue import QueueHost, make
from proof import Case, prove_converges, prove_reverts, prove_rolls_back, prove_survives_kills

from ansible_collections.gpufleet.host.plugins.module_utils._areas.block_queue import AREA, SPEC
from ansible_collections.gpufleet.host.plugins.module_utils._engine import engine
from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import CaptureHost
from ansible_collections.gpufleet.host.plugins.module_utils._engine.journal import Journal
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import BadWant
from ansible_collections.gpufleet.host.plugins.module_utils._plan import block_queue

CASES = yaml.safe_load((Path(__file__).parents[3] / "cases/block_queue/plan.yml").read_text())
RULES = [
    {"class": "nvme", "scheduler": "none", "nr_requests": 512, "read_ahead_kb": 256},
    {"id": "0x5000c500a1b2c3d4", "read_ahead_kb": 4096, "rq_affinity": 2, "nomerges": 1},
]


def want(rules: list[dict[str, Any]]) -> dict[str, Any]:
    empty = dict.fromkeys(SPEC["rules"]["options"])
    return {"rules": [dict(empty, **rule) for rule in rules]}


def case(rules: list[dict[str, Any]] | None = None) -> Case:
    return Case(AREA, want(RULES if rules is None else rules), make, QueueHost)


@pytest.mark.parametrize("row", CASES, ids=[row["name"] for row in CASES])
def test_plan_and_judge(row: dict[str, Any], tmp_path: Path) -> None:
    seen = engine.look(AREA, want(row["rules"]), make(tmp_path))
    live = [
        "%s/%s=%s" % (s.target.split("/")[3], s.target.split("/")[5], s.after) for s in seen.steps if s.kind == "value"
    ]
    assert live == row["steps"]
    assert any(step.kind == "file" for step in seen.steps) == row.get("file", True)
    assert ["%s %s" % (f.id, f.subject) for f in seen.findings] == row.get("findings", [])


def test_a_scheduler_that_is_not_offered_holds_back_the_file_too(tmp_path: Path) -> None:
    host = make(tmp_path)
    before = host.tree()
    report = case([{"class": "nvme", "scheduler": "bfq"}]).apply(host)
    assert report.state == "blocked"
    assert "none, mq-deadline, kyber" in report.findings[0].observed
    assert host.tree() == before


def test_converges(tmp_path: Path) -> None:
    prove_converges(case(), tmp_path)


def test_what_is_observed_is_what_was_wanted(tmp_path: Path) -> None:
    report = case().apply(make(tmp_path))
    assert report.after == {"rules": RULES}


def test_reverts(tmp_path: Path) -> None:
    prove_reverts(case(), tmp_path)


@pytest.mark.parametrize("how", ["refuse", "ignore"])
@pytest.mark.parametrize(
    "path", ["/sys/block/nvme1n1/queue/scheduler", "/sys/block/sda/queue/nomerges", block_queue.RULES_FILE]
)
def test_rolls_back(tmp_path: Path, how: str, path: str) -> None:
    make(tmp_path)
    prove_rolls_back(case(), tmp_path, QueueHost(tmp_path, **{how: (path,)}))


def test_survives_kills(tmp_path: Path) -> None:
    assert prove_survives_kills(case(), tmp_path) > 20


def test_a_later_rule_of_others_is_named(tmp_path: Path) -> None:
    host = make(tmp_path)
    host.put("/etc/udev/rules.d/60-vendor.rules", 'ATTR{queue/scheduler}="kyber"\n')
    host.put("/usr/lib/udev/rules.d/99-vendor.rules", '# x\nKERNEL=="nvme*", ATTR{queue/scheduler}="kyber"\n')
    findings = engine.look(AREA, want([{"class": "nvme", "scheduler": "none"}]), host).findings
    assert [(f.id, f.subject) for f in findings] == [
        ("block_queue.foreign-owner", "/usr/lib/udev/rules.d/99-vendor.rules:2"),
    ]


def test_a_sparse_capture_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "capture.json").write_text(json.dumps({"format": 1, "hostname": "h", "taken": "t"}))
    report = engine.run_area(AREA, want(RULES), CaptureHost(str(tmp_path)), mode="audit")
    assert report.state == "unknown"
    assert report.steps == ()


@pytest.mark.parametrize(
    ("rule", "variable"),
    [
        ({"scheduler": "none"}, "rules[0]"),
        ({"class": "nvme", "id": "x"}, "rules[0]"),
        ({"id": "/dev/nvme0n1", "scheduler": "none"}, "rules[0].id"),
        ({"id": 'x", RUN+="/bin/sh', "scheduler": "none"}, "rules[0].id"),
        ({"class": "nvme", "scheduler": "no op"}, "rules[0].scheduler"),
        ({"class": "nvme", "nr_requests": 1}, "rules[0].nr_requests"),
        ({"class": "nvme", "read_ahead_kb": 130}, "rules[0].read_ahead_kb"),
        ({"class": "nvme", "rq_affinity": 3}, "rules[0].rq_affinity"),
        ({"class": "nvme", "nomerges": -1}, "rules[0].nomerges"),
    ],
)
def test_impossible_rules_are_refused(rule: dict[str, Any], variable: str) -> None:
    with pytest.raises(BadWant) as error:
        AREA.check_want(want([rule]))
    assert error.value.variable == variable


def test_journal_keeps_originals_over_runs(tmp_path: Path) -> None:
    host = make(tmp_path)
    before = host.tree()
    case().apply(host)
    host.put("/sys/block/sda/queue/nomerges", "2\n")
    case([{"class": "hdd", "nomerges": 0}]).apply(host, "r2")
    engine.revert(host, Journal(host.root), apply=True)
    assert host.tree() == before


def test_revert_after_a_boot_that_swapped_the_kernel_names(tmp_path: Path) -> None:
    host = make(tmp_path)
    host.add_disk("nvme1n1", "259:1", active="kyber", ID_WWN="eui.0002", ID_SERIAL="MODEL_S1")
    case([{"class": "nvme", "scheduler": "mq-deadline"}]).apply(host)
    host.add_disk("nvme0n1", "259:0", active="mq-deadline", ID_WWN="eui.0002", ID_SERIAL="MODEL_S1")
    host.add_disk("nvme1n1", "259:1", active="mq-deadline", ID_WWN="eui.0001", ID_SERIAL="MODEL_S0")
    engine.revert(host, Journal(host.root), apply=True)
    active = [host.read("/sys/block/nvme%dn1/queue/scheduler" % number) for number in (0, 1)]
    assert active == ["none mq-deadline [kyber]\n", "[none] mq-deadline kyber\n"]


def test_revert_leaves_the_disk_alone_that_took_the_name_of_one_that_is_gone(tmp_path: Path) -> None:
    host = make(tmp_path)
    only = [{"id": "0x5000c500a1b2c3d4", "nomerges": 1}]
    case(only).apply(host)
    (tmp_path / "dev/disk/by-id/0x5000c500a1b2c3d4").unlink()
    host.add_disk("sda", "8:0", rotational="1", ID_WWN="0x5000c500dddddddd")
    host.put("/sys/block/sda/queue/nomerges", "2\n")
    reports = engine.revert(host, Journal(host.root), apply=True)
    assert host.read("/sys/block/sda/queue/nomerges") == "2\n"
    assert [r.detail for r in reports["block_queue"].steps if r.status == "skipped"] == [
        "/sys/block/0x5000c500a1b2c3d4/queue/nomerges is gone"
    ]
    assert Journal(host.root).standing() == []


def test_two_paths_to_one_disk_are_told_apart_by_their_kernel_names(tmp_path: Path) -> None:
    host = make(tmp_path)
    host.add_disk("sdc", "8:32", active="kyber", rotational="1", ID_WWN="0x5000c500a1b2c3d4")
    case([{"class": "hdd", "scheduler": "none"}]).apply(host)
    engine.revert(host, Journal(host.root), apply=True)
    active = [host.read("/sys/block/%s/queue/scheduler" % name) for name in ("sda", "sdc")]
    assert active == ["none [mq-deadline] kyber\n", "none mq-deadline [kyber]\n"]


@pytest.mark.parametrize(
    ("line", "level", "state"),
    [
        ('KERNEL=="nvme*", ATTR{queue/scheduler}="kyber"', "fail", "blocked"),
        ('ACTION=="add", ATTR{queue/scheduler} := "kyber"', "fail", "blocked"),
        ('KERNEL=="nvme*", RUN+="/bin/sh -c \'echo kyber > /sys/block/%k/queue/scheduler\'"', "fail", "blocked"),
        # Of other disks, or as wanted: it is named, and nothing is lost by it.
        ('KERNEL=="sr*|loop*", ATTR{queue/scheduler}="kyber"', "warn", "drifted"),
        ('KERNEL=="nvme*", ATTR{queue/scheduler}="none"', "warn", "drifted"),
    ],
)
def test_a_later_rule_that_wins_at_each_boot_is_not_compliant(
    tmp_path: Path, line: str, level: str, state: str
) -> None:
    host = make(tmp_path)
    host.put("/etc/udev/rules.d/99-z.rules", line + "\n")
    seen = engine.look(AREA, want([{"class": "nvme", "scheduler": "none"}]), host)
    [finding] = [one for one in seen.findings if one.id == "block_queue.foreign-owner"]
    assert finding.level == level
    assert engine.state_of(engine.sort_out(AREA, seen, "safe"), seen.findings, "audit") == state
