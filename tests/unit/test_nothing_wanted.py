# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nothing is wanted, or that nothing is kept, where nothing of ours ever was: that is in order, without a word."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Mapping, Sequence

import pytest

from ansible_collections.gpufleet.host.plugins.module_utils._areas.all import AREAS
from ansible_collections.gpufleet.host.plugins.module_utils._engine import whole
from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import LiveHost, Result

# A small container: no boot loader, no disk, no GPU, no database, no tool.
FILES = {
    "/proc/cmdline": "BOOT_IMAGE=/vmlinuz ro\n",
    "/proc/self/mountinfo": "1 1 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
    "/proc/mounts": "",
    "/proc/1/comm": "systemd\n",
    "/etc/os-release": "ID=debian\n",
    "/etc/fstab": "",
    "/etc/udev/rules.d/80-own.rules": "",
    "/etc/systemd/system/own.service": "",
    "/sys/fs/cgroup/cgroup.controllers": "cpu memory pids\n",
    "/sys/devices/system/cpu/online": "0-3\n",
    "/sys/devices/system/node/online": "0\n",
    "/sys/devices/system/node/node0/cpulist": "0-3\n",
}
FOLDERS = ("/sys/block", "/sys/class/block", "/sys/bus/pci/devices")


class Bare(LiveHost):
    def __init__(self, root: Path) -> None:
        super().__init__(str(root))
        for path, text in FILES.items():
            (root / path[1:]).parent.mkdir(parents=True, exist_ok=True)
            (root / path[1:]).write_text(text, encoding="utf-8")
        for path in FOLDERS:
            (root / path[1:]).mkdir(parents=True, exist_ok=True)

    def run(self, argv: Sequence[str], deadline_s: float = 10.0) -> Result:
        return Result(-1, "", "", "%s is not installed" % argv[0])


@pytest.mark.parametrize(
    ("name", "want"),
    [
        ("block_queue", {"rules": []}),
        ("kernel_settings", {"sysctls": {}, "module_options": {}, "cmdline": []}),
        ("kernel_settings", {}),
        ("xfs_volumes", {"volumes": []}),
        ("mysql_isolation", {"units": []}),
        ("platform", {"acs": "any"}),
    ],
)
def test_keeping_nothing_where_nothing_is_is_compliant(name: str, want: Mapping[str, Any], tmp_path: Path) -> None:
    area = AREAS[name]
    report = whole.audit([area], {name: whole.valid_want(area, want)}, Bare(tmp_path), {}, None)[name]
    assert (report.state, report.steps) == ("compliant", ())
    assert [finding.id for finding in report.findings if finding.level != "info"] == []
