# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tmpfiles.d file that writes /sys values at boot, and the unit that runs it once more for CPUs.

tmpfiles.d is the system's own way to write a file at boot: no process of ours, and its globs cover
all CPUs.  It runs early, and a cpufreq driver that is a module (acpi-cpufreq on most
distributions) is loaded by udev at about the same time; so where CPU values are kept a oneshot unit
writes the same file again once udev has settled, and ends.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any, List, Mapping, Optional, Tuple

from .._engine.values import Finding, Step, Unknown
from . import kernel_cpu, kernel_thp
from .kernel_common import HEAD, file_steps, knob, overridden, unseen

FILE = "/etc/tmpfiles.d/90-gpufleet-kernel.conf"
UNIT = "gpufleet-kernel.service"
UNIT_FILE = "/etc/systemd/system/" + UNIT
SOURCE = "tmpfiles.d(5)"

UNIT_TEXT = (
    HEAD
    + """[Unit]
Description=CPU settings once the cpufreq driver is loaded
Documentation=man:tmpfiles.d(5)
ConditionPathExists=%s

[Service]
Type=oneshot
ExecStart=/usr/bin/udevadm settle --timeout=30
ExecStart=/usr/bin/systemd-tmpfiles --create %s

[Install]
WantedBy=multi-user.target
"""
    % (FILE, FILE)
)

KNOBS = ("transparent_hugepage", "transparent_hugepage_defrag", "governor", "energy_preference", "deepest_cstate")


def is_managed(want: Mapping[str, Any]) -> bool:
    return any(knob(want, name) is not None for name in KNOBS)


def lines(want: Mapping[str, Any], have: Mapping[str, Any]) -> List[Tuple[str, str, str]]:
    return kernel_thp.lines(want, have) + kernel_cpu.lines(want, have)


def render(want: Mapping[str, Any], have: Mapping[str, Any]) -> Optional[str]:
    rows = ["w %s - - - - %s\n" % (path, value) for _knob, path, value in lines(want, have)]
    return HEAD + "".join(rows) if rows else None


def plan(want: Mapping[str, Any], have: Mapping[str, Any]) -> List[Step]:
    """The file first, then the unit: what they say is true as soon as the live values follow."""
    if not is_managed(want) or _is_blind(have):
        return []
    why = "values written to /sys are lost at the next boot"
    steps = file_steps("kernel.tmpfiles", FILE, have, render(want, have), why, SOURCE)
    if kernel_cpu.lines(want, have):
        why = "cpufreq drivers that udev loads come after systemd-tmpfiles-setup"
        steps += file_steps("kernel.unit.file", UNIT_FILE, have, UNIT_TEXT, why, "systemd.service(5)")
        if not have["unit_enabled"]:
            steps.append(_enable(why))
    return steps


def judge(want: Mapping[str, Any], have: Mapping[str, Any]) -> List[Finding]:
    if not is_managed(want):
        return []
    findings: List[Finding] = []
    if isinstance(have["files"][FILE], Unknown):
        findings.append(unseen(FILE, have["files"][FILE], "ls -l /etc/tmpfiles.d", SOURCE))
    for name, path, value in lines(want, have):
        for line in have["writes"]:
            is_same = fnmatchcase(path, line.path) or fnmatchcase(line.path, path)
            if line.file != FILE and is_same and line.value != value:
                why = "systemd-tmpfiles writes both at boot, and which one stays is not ours to decide"
                findings.append(
                    overridden(path, value, line.file, line.number, line.value, why, "kernel_" + name, SOURCE)
                )
    return findings


def _is_blind(have: Mapping[str, Any]) -> bool:
    """Without a sight of /sys it cannot be told which lines the host needs."""
    return any(isinstance(have[name], Unknown) for name in ("cpufreq", "cpuidle")) or any(
        isinstance(value, Unknown) for value in have["thp"].values()
    )


def _enable(why: str) -> Step:
    source = "systemctl(1)"
    undo = Step(
        "undo.kernel.unit.enable", "run", UNIT, "enabled", "disabled", why, source, argv=("systemctl", "disable", UNIT)
    )
    return Step(
        "kernel.unit.enable", "run", UNIT, "disabled", "enabled", why, source,
        argv=("systemctl", "enable", UNIT), undo=undo, requires=("kernel.unit.file",),
    )  # fmt: skip
