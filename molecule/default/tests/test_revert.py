# Copyright: (c) 2026, gpufleet.host contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Everything goes back to what it was: files byte for byte, and live values."""

from __future__ import annotations

import re
from typing import Any

import yaml
from lab_host import ARTIFACTS, NAME, ROOT, play
from snapshot import snapshot


def test_what_was_adopted_describes_the_host(gpu1: Any) -> None:
    """An audit with the variables that adopt wrote finds nothing to do."""
    folder = ARTIFACTS / "adopted"
    assert play("playbooks/adopt.yml", "adopt", "-e", "gpufleet_adopted=%s" % folder).rc == 0
    adopted = folder / (NAME + ".yml")
    assert yaml.safe_load(adopted.read_text())["kernel_sysctls"]["vm.swappiness"]
    run = play("playbooks/audit.yml", "adopted", "-e", "@%s" % adopted)
    assert run.report["state"] == "compliant", run.output


def test_a_capture_gives_the_same_report(gpu1: Any) -> None:
    """What was recorded, audited without the host, is judged as the host was; and it names nobody's serials."""
    folder = ARTIFACTS / "captures"
    assert (
        play("playbooks/capture.yml", "capture", "-e", "gpufleet_captures=%s" % folder, "-e", "gpufleet_scrub=false").rc
        == 0
    )
    wants = ["-e", "@%s" % (ROOT / "inventories/lab/group_vars/gpu_hosts.yml")]
    run = play("playbooks/audit.yml", "offline", "-e", "capture=%s" % (folder / (NAME + ".tar.gz")), *wants)
    assert run.report["state"] == "compliant", run.output


def test_revert_puts_the_originals_back(gpu1: Any) -> None:
    run = play("playbooks/revert.yml", "revert", "-e", "gpufleet_allow_risk=destructive")
    assert run.rc == 0, run.output
    before = (ARTIFACTS / "baseline.txt").read_text().splitlines()
    now = snapshot(gpu1)
    assert sorted(set(before) - set(now)) == []
    assert sorted(map(kind, set(now) - set(before))) == []


def test_what_was_made_keeps_its_data(gpu1: Any) -> None:
    """Nothing that may hold data is undone: the array runs, and both filesystems are still there."""
    disk = "/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_GPUFLEETNVME2"
    assert gpu1.check_output("blkid -p -s TYPE -o value %s" % disk).strip() == "xfs"
    assert "active raid0" in gpu1.check_output("cat /proc/mdstat")


def kind(line: str) -> str:
    return re.sub(r"[0-9a-f]{64}", "…", line)


def test_a_second_revert_has_nothing_to_do() -> None:
    run = play("playbooks/revert.yml", "revert-again", "-e", "gpufleet_allow_risk=destructive")
    assert run.rc == 0
    assert "changed=0" in run.output
