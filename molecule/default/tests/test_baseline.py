# Copyright: (c) 2026, gpufleet.host contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Before anything: write down what the host is, so that going back can be proved."""

from __future__ import annotations

from typing import Any

from lab_host import ARTIFACTS
from snapshot import snapshot


def test_the_host_is_one_that_hands_have_run(gpu1: Any) -> None:
    """Its boot menu is its own (the image's was made without a disk), and one disk has a scheduler that nobody wants."""
    gpu1.check_output("update-grub")
    disk = gpu1.check_output("basename $(readlink -f /dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_GPUFLEETNVME2)").strip()
    gpu1.check_output("echo mq-deadline >/sys/block/%s/queue/scheduler" % disk)


def test_the_host_has_no_tools_of_xfs_yet(gpu1: Any) -> None:
    """The role has to bring them: an image that has everything would hide it."""
    assert gpu1.run("command -v mkfs.xfs").rc != 0


def test_write_down_the_originals(gpu1: Any) -> None:
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    lines = snapshot(gpu1)
    assert len(lines) > 100
    (ARTIFACTS / "baseline.txt").write_text("\n".join(lines))
