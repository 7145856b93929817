# Copyright: (c) 2026, gpufleet.host contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hands change the host; the audit names exactly what they changed; a run puts it back, and no row is lost."""

from __future__ import annotations

import base64
import subprocess
import sys
from typing import Any

from disturbances import COMPANIONS, DISTURBANCES
from lab_host import BUILT_IN, NAME, ROOT, play

DISKS = {"$MODELS": "nvme-QEMU_NVMe_Ctrl_GPUFLEETNVME2", "$SCSI": "wwn-0x5000c50015ea71a0"}
LOAD = ROOT / "tests/lab/mysql_load.py"
ROWS = "/root/acknowledged-rows"


def shell(host: Any, script: str) -> str:
    packed = base64.b64encode(script.encode()).decode()
    return str(host.check_output("echo %s | base64 -d | bash -e" % packed))


def with_disks(host: Any, text: str) -> str:
    for word, link in DISKS.items():
        if word in text:
            text = text.replace(word, host.check_output("basename $(readlink -f /dev/disk/by-id/%s)" % link).strip())
    return text


def test_the_host_is_as_wanted_before_hands_touch_it() -> None:
    run = play("playbooks/audit.yml", "before")
    assert run.report["state"] in ("compliant", "pending_reboot"), run.output


def test_the_database_gets_a_load(gpu1: Any) -> None:
    packed = base64.b64encode(LOAD.read_bytes()).decode()
    gpu1.check_output("echo %s | base64 -d >/root/mysql_load.py" % packed)
    gpu1.check_output("python3 /root/mysql_load.py start %s" % ROWS)


def test_the_lab_has_what_it_was_built_with() -> None:
    """Or leaving that out of every comparison would hide something."""
    findings = play("playbooks/audit.yml", "built", "--tags", "platform").report["areas"]["platform"]["findings"]
    assert {("platform", "%(id)s %(subject)s" % f) for f in findings if f["level"] != "info"} == BUILT_IN


def test_the_audit_lists_exactly_the_disturbances(gpu1: Any) -> None:
    shell(gpu1, "\n".join(with_disks(gpu1, command) for _what, command, _area, _target in DISTURBANCES))
    run = play("playbooks/audit.yml", "disturbed")
    assert run.rc != 0
    assert run.report["state"] == "drifted", run.output
    expected = {(area, with_disks(gpu1, target)) for _what, _command, area, target in DISTURBANCES}
    found = run.not_as_wanted()
    assert expected - found == set(), "not noticed"
    extra = {(area, target) for area, target in found - expected if target not in COMPANIONS[area]}
    assert extra == set(), "nobody did that"


def own_steps(name: str, area: dict[str, Any], status: str) -> list[str]:
    """The steps of an area that no other area of the same run brings about or settles.

    A reload in one area makes systemd read all units and write all control groups anew, so these values, and whether a
    reload is still needed, depend on the areas before. tests/unit proves that each area alone is exact.
    """
    return [
        step["id"]
        for step in area["steps"]
        if step["status"] == status
        and not step["target"].startswith("/sys/fs/cgroup/")
        and step["target"] not in COMPANIONS[name]
    ]


def test_check_predicts_exactly_what_a_run_does() -> None:
    predicted = play("site.yml", "predicted", "--check")
    done = play("site.yml", "corrected")
    assert done.rc == 0, done.output
    for name, area in predicted.report["areas"].items():
        will = own_steps(name, area, "planned")
        assert will == own_steps(name, done.report["areas"][name], "applied"), name
        assert bool(will) == (name in {area for _what, _command, area, _target in DISTURBANCES}), name
    assert done.report["state"] in ("changed", "pending_reboot")


def test_a_later_file_of_others_is_named(gpu1: Any) -> None:
    gpu1.check_output("echo vm.swappiness=60 >/etc/sysctl.d/99-zz-vendor.conf")
    run = play("playbooks/audit.yml", "vendor", "--tags", "kernel")
    gpu1.check_output("rm /etc/sysctl.d/99-zz-vendor.conf")
    assert list(run.report["areas"]) == ["kernel_settings"]
    named = [f["observed"] for f in run.report["areas"]["kernel_settings"]["findings"] if f["level"] == "fail"]
    assert named == ["/etc/sysctl.d/99-zz-vendor.conf:1 sets 60"], run.output


def test_a_hot_plugged_disk_gets_its_queue(gpu1: Any) -> None:
    rules = (
        "[{class: nvme, scheduler: none, read_ahead_kb: 256},"
        "{id: wwn-0x5000c50015ea71a0, scheduler: none, read_ahead_kb: 4096},"
        "{id: '0x5000c50015ea71a1', scheduler: none, read_ahead_kb: 1024}]"
    )
    assert play("site.yml", "hotplug", "--tags", "io_scheduler", "-e", "{io_scheduler_rules: %s}" % rules).rc == 0
    lab("plug", NAME)
    try:
        gpu1.check_output("udevadm settle --timeout=60")
        disk = gpu1.check_output("basename $(readlink -f /dev/disk/by-id/wwn-0x5000c50015ea71a1)").strip()
        assert gpu1.check_output("cat /sys/block/%s/queue/read_ahead_kb" % disk).strip() == "1024"
        assert "[none]" in gpu1.check_output("cat /sys/block/%s/queue/scheduler" % disk)
    finally:
        lab("unplug", NAME)
    assert play("site.yml", "hotplug-over", "--tags", "io_scheduler").rc == 0


def test_no_acknowledged_row_is_lost(gpu1: Any) -> None:
    gpu1.check_output("python3 /root/mysql_load.py stop %s" % ROWS)
    print(gpu1.check_output("python3 /root/mysql_load.py check %s" % ROWS))


def lab(*words: str) -> None:
    subprocess.run([sys.executable, "lab/lab.py", *words], cwd=ROOT, check=True)
