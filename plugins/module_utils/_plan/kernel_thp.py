# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Transparent huge pages: the live choice, and its line for tmpfiles.d."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Tuple

from .._engine.values import BadWant, Finding, Step, Unknown
from .kernel_common import knob, no_such, not_possible, unseen

SOURCE = "kernel Documentation/admin-guide/mm/transhuge.rst"
FOLDER = "/sys/kernel/mm/transparent_hugepage/"
FILES = {"transparent_hugepage": "enabled", "transparent_hugepage_defrag": "defrag"}
CHOICES = {
    "transparent_hugepage": ("always", "madvise", "never"),
    "transparent_hugepage_defrag": ("always", "defer", "defer+madvise", "madvise", "never"),
}
WHY = {
    "transparent_hugepage": "databases stall and bloat when all of their memory is made huge behind their back; "
    "allocators that gain from it ask with madvise",
    "transparent_hugepage_defrag": "a page fault should not wait for memory to be compacted unless it asked to",
}


def check_want(want: Mapping[str, Any]) -> None:
    for name, choices in CHOICES.items():
        value = knob(want, name)
        if value is not None and value not in choices:
            raise BadWant(name, want[name], "one of " + ", ".join(choices))


def lines(want: Mapping[str, Any], have: Mapping[str, Any]) -> List[Tuple[str, str, str]]:
    """Knob, path and value for tmpfiles.d, of what this kernel has."""
    return [
        (name, FOLDER + file, str(knob(want, name)))
        for name, file in FILES.items()
        if knob(want, name) is not None and have["thp"][file] is not None
    ]


def plan(want: Mapping[str, Any], have: Mapping[str, Any]) -> List[Step]:
    steps: List[Step] = []
    for name, path, value in lines(want, have):
        live = have["thp"][FILES[name]]
        if not isinstance(live, Unknown) and live[0] != value:
            steps.append(Step("kernel." + name, "value", path, live[0], value, WHY[name], SOURCE))
    return steps


def judge(want: Mapping[str, Any], have: Mapping[str, Any]) -> List[Finding]:
    findings: List[Finding] = []
    for name, file in FILES.items():
        value = knob(want, name)
        if value is None:
            continue
        live = have["thp"][file]
        if isinstance(live, Unknown):
            findings.append(unseen(FOLDER + file, live, "cat " + FOLDER + file, SOURCE))
        elif live is None and value == "never":
            findings.append(no_such(FOLDER + file, value, "transparent huge pages", "kernel_" + name, SOURCE))
        elif live is None or value not in live[1]:
            offered = "offered: " + (", ".join(live[1]) if live else "nothing, it is built without huge pages")
            why = "this kernel does not offer the value"
            fix = "set kernel_%s to one that is offered, or to null" % name
            findings.append(not_possible("kernel.value-not-offered", FOLDER + file, value, offered, why, fix, SOURCE))
    return findings


def adopt(have: Mapping[str, Any]) -> Dict[str, Any]:
    return {
        name: have["thp"][file][0]
        for name, file in FILES.items()
        if have["thp"].get(file) and not isinstance(have["thp"][file], Unknown)
    }
