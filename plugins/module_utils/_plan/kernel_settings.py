# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Kernel settings: what the host should have, topic by topic; each topic has a file of its own.

Whatever is not named in the want is not managed.  Values that the kernel takes live are set live and
for good; what it takes only at boot is set for good and waits.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, List, Mapping

from .._engine.values import Finding, Step, nothing_wanted
from . import kernel_boot, kernel_cmdline, kernel_cpu, kernel_limits, kernel_modules, kernel_sysctl, kernel_thp
from .kernel_common import knob, overridden

_TOPICS = (kernel_sysctl, kernel_thp, kernel_cpu, kernel_limits, kernel_modules, kernel_cmdline)


def check_want(want: Mapping[str, Any]) -> None:
    """Refuse what no host could satisfy."""
    for topic in _TOPICS:
        topic.check_want(want)


def plan(want: Mapping[str, Any], have: Mapping[str, Any]) -> List[Step]:
    """Files before live values, safe topics before those that wait for a boot.

    A topic that the host refuses keeps no other from its values; the unit writes those of two topics at boot.
    """
    parts = (
        ("sysctl", kernel_sysctl), ("boot", kernel_boot), ("boot", kernel_thp), ("boot", kernel_cpu),
        ("limits", kernel_limits), ("modules", kernel_modules), ("cmdline", kernel_cmdline),
    )  # fmt: skip
    return [replace(step, part=part) for part, topic in parts for step in topic.plan(want, have)]


def judge(want: Mapping[str, Any], have: Mapping[str, Any]) -> List[Finding]:
    if all(value in (None, "") for value in want.values()):
        return [nothing_wanted("kernel_settings", "kernel")]
    findings = kernel_boot.judge(want, have)
    for topic in _TOPICS:
        findings += topic.judge(want, have)
    return findings + _tuners(want, have)


def adopt(have: Mapping[str, Any]) -> Dict[str, Any]:
    """What was observed, as the want would have it."""
    found: Dict[str, Any] = {}
    for topic in _TOPICS:
        found.update(topic.adopt(have))
    return found


def _tuners(want: Mapping[str, Any], have: Mapping[str, Any]) -> List[Finding]:
    """tuned and cpupower set the same values at each start of theirs."""
    wanted = {"sysctl:" + path: value for path, value in kernel_sysctl.wanted(want).items()}
    wanted.update({name: str(knob(want, name)) for name in kernel_boot.KNOBS if knob(want, name) is not None})
    findings: List[Finding] = []
    for row in have["tuners"]:
        value = wanted.get(row.knob)
        # tuned takes alternatives, as performance|schedutil.
        if value is None or value.split() == row.value.split() or value in row.value.split("|"):
            continue
        why = "%s sets it whenever it starts" % row.owner
        subject = row.knob.replace("sysctl:", "").replace("/", ".")
        variable = "kernel_sysctls" if row.knob.startswith("sysctl:") else "kernel_" + row.knob
        findings.append(overridden(subject, value, row.file, row.number, row.value, why, variable, "tuned.conf(5)"))
    return findings
