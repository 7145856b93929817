# Copyright: (c) 2026, gpufleet.host contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host loses its power in the middle of a run, twice; it comes back, a run ends the work, and all of it can go back.

Two moments, at which a boot is at stake. `make chaos` tries all.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from lab_host import ARTIFACTS, NAME, ROOT, play
from snapshot import snapshot

from lab import power
from lab.hosts import GPU_HOST
from lab.machine import Machine
from lab.play import environment

BEFORE = ARTIFACTS / "before-power-cut.txt"
CUTS = (
    ("while the menu of the boot loader is made", "intend kernel.cmdline.update", 3.0),
    ("while a volume is mounted", "intend volume.models.mount", 0.0),
)


def test_write_down_what_a_boot_leaves(gpu1: Any) -> None:
    """The scheduler that a hand had set before the first run is gone with a boot, whoever cuts the power."""
    disk = gpu1.check_output("basename $(readlink -f /dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_GPUFLEETNVME2)").strip()
    gpu1.check_output("echo none >/sys/block/%s/queue/scheduler" % disk)
    BEFORE.write_text("\n".join(snapshot(gpu1)))


@pytest.mark.parametrize(("name", "text", "delay_s"), CUTS, ids=[name for name, _text, _delay in CUTS])
def test_a_host_comes_back_from_a_cut(gpu1: Any, name: str, text: str, delay_s: float) -> None:
    machine = Machine(GPU_HOST)
    power.slow_down(machine)
    log = ARTIFACTS / "power-cut.log"
    cut_at, seen = power.play_until(
        machine,
        ["ansible-playbook", "site.yml"],
        log,
        lambda line: line.text == text,
        delay_s=delay_s,
        cwd=ROOT,
        env=environment("power-cut", ARTIFACTS),
    )
    assert cut_at, "the run ended before: %s\n%s" % ([line.text for _at, line in seen], log.read_text())
    subprocess.run([sys.executable, "lab/lab.py", "up", NAME], cwd=ROOT, check=True)
    remains = power.Remains.of(gpu1.check_output("cat %s" % power.JOURNAL))
    assert remains.open_runs, remains
    run = play("playbooks/audit.yml", "power-cut-audit")
    assert run.interrupted() == remains.open_runs, run.output
    assert not run.subjects("engine.journal-damaged"), run.output
    assert run.report["state"] == "drifted", run.output


def test_a_run_ends_the_work() -> None:
    run = play("site.yml", "power-cut-site")
    assert run.rc == 0, run.output
    assert run.report["state"] in ("changed", "pending_reboot")


def test_all_of_it_goes_back(gpu1: Any) -> None:
    run = play("playbooks/revert.yml", "power-cut-revert", "-e", "gpufleet_allow_risk=destructive")
    assert run.rc == 0, run.output
    before = set(BEFORE.read_text().splitlines())
    now = set(snapshot(gpu1))
    assert (sorted(before - now), sorted(now - before)) == ([], [])
