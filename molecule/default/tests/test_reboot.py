# Copyright: (c) 2026, gpufleet.host contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""After a boot the host is as wanted, without any change."""

from __future__ import annotations

import time
from typing import Any

from lab_host import play

BOOT_DEADLINE_S = 600


def said(host: Any, command: str) -> str:
    """What a command printed, empty while the host does not answer."""
    try:
        return str(host.run(command).stdout).strip()
    except RuntimeError:
        return ""


def boot_id(host: Any) -> str:
    return said(host, "cat /proc/sys/kernel/random/boot_id")


def test_reboot(gpu1: Any) -> None:
    before = boot_id(gpu1)
    assert before
    said(gpu1, "systemctl reboot")
    deadline = time.monotonic() + BOOT_DEADLINE_S
    while time.monotonic() < deadline:
        time.sleep(5)
        now = boot_id(gpu1)
        if now not in ("", before) and said(gpu1, "systemctl is-system-running --wait") == "running":
            return
    raise AssertionError("the host is not back after %d s" % BOOT_DEADLINE_S)


def test_the_kernel_command_line_is_true_now(gpu1: Any) -> None:
    assert "iommu=pt" in gpu1.check_output("cat /proc/cmdline").split()


def test_an_audit_finds_nothing() -> None:
    run = play("playbooks/audit.yml", "rebooted")
    assert run.rc == 0, run.output
    assert run.report["state"] == "compliant"
    assert run.not_as_wanted() == set()


def test_a_run_changes_nothing(gpu1: Any) -> None:
    journal = gpu1.check_output("sha256sum /var/lib/gpufleet/journal.jsonl")
    run = play("site.yml", "rebooted-site")
    assert run.rc == 0, run.output
    assert "changed=0" in run.output
    assert gpu1.check_output("sha256sum /var/lib/gpufleet/journal.jsonl") == journal
