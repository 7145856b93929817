# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Others that set kernel values at boot: a tuned profile, the cpupower and cpufrequtils services."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import List, Sequence

from .._engine.host import Host
from .._tables.sysctls import key_path

_WANTS = "/etc/systemd/system/multi-user.target.wants/"
_PROFILES = ("/etc/tuned/profiles", "/etc/tuned", "/usr/lib/tuned/profiles", "/usr/lib/tuned")
# tuned.conf(5): section and key, and the knob of ours that it sets.
_TUNED = {
    ("cpu", "governor"): "governor",
    ("cpu", "energy_performance_preference"): "energy_preference",
    ("vm", "transparent_hugepages"): "transparent_hugepage",
    ("vm", "transparent_hugepage"): "transparent_hugepage",
    ("vm", "transparent_hugepage.defrag"): "transparent_hugepage_defrag",
}
_CPUPOWER_FILES = ("/etc/sysconfig/cpupower", "/etc/default/cpupower", "/etc/default/cpupower-service")


@dataclass(frozen=True)
class Foreign:
    """A line by which ``owner`` sets a knob of ours (``sysctl:<path>`` for sysctls)."""

    owner: str
    file: str
    number: int
    knob: str
    value: str


def parse_profile(owner: str, file: str, text: str) -> List[Foreign]:
    """What a tuned profile sets of what we may set; ``include`` is the knob for its parents."""
    found: List[Foreign] = []
    section = ""
    for number, row in enumerate(text.splitlines(), 1):
        row = row.split("#", 1)[0].strip()
        head = re.match(r"\[(.+)\]\Z", row)
        if head:
            section = head.group(1).strip()
        key, equals, value = (part.strip() for part in row.partition("="))
        if not equals:
            continue
        knob = _TUNED.get((section, key), "")
        if section == "sysctl":
            knob = "sysctl:" + key_path(key)
        elif section == "main" and key == "include":
            knob = "include"
        if knob:
            found.append(Foreign(owner, file, number, knob, " ".join(value.strip('"').lstrip(">").split())))
    return found


def observe(host: Host) -> List[Foreign]:
    """What services that are enabled or running set; nothing when there are none."""
    return _tuned(host) + _cpupower(host) + _cpufrequtils(host)


def _tuned(host: Host) -> List[Foreign]:
    names = host.read("/etc/tuned/active_profile")
    is_on = host.exists("/run/tuned/tuned.pid") or host.readlink(_WANTS + "tuned.service") is not None
    if not isinstance(names, str) or not is_on:
        return []
    found: List[Foreign] = []
    todo, done = names.split(), set()
    while todo:
        name = todo.pop(0)
        if name in done or not re.match(r"[\w.-]+\Z", name):
            continue
        done.add(name)
        for folder in _PROFILES:
            path = "%s/%s/tuned.conf" % (folder, name)
            text = host.read(path)
            if isinstance(text, str):
                rows = parse_profile("tuned profile " + name, path, text)
                todo += [word for row in rows if row.knob == "include" for word in re.split(r"[\s,:]+", row.value)]
                # A profile overrides those that it includes.
                set_already = {row.knob for row in found}
                found += [row for row in rows if row.knob not in set_already and row.knob != "include"]
                break
    return found


def _cpupower(host: Host) -> List[Foreign]:
    if not any(host.readlink(_WANTS + name) for name in ("cpupower.service", "cpupower-service.service")):
        return []
    return _search(host, "cpupower.service", _CPUPOWER_FILES, r"""[^#]*(?:-g\s*|GOVERNOR=["']?)(\w+)""")


def _cpufrequtils(host: Host) -> List[Foreign]:
    if not host.exists("/etc/init.d/cpufrequtils"):
        return []
    return _search(host, "cpufrequtils", ("/etc/default/cpufrequtils",), r"""\s*GOVERNOR=["']?(\w+)""")


def _search(host: Host, owner: str, paths: Sequence[str], pattern: str) -> List[Foreign]:
    found: List[Foreign] = []
    for path in paths:
        text = host.read(path)
        for number, row in enumerate(text.splitlines() if isinstance(text, str) else [], 1):
            match = re.match(pattern, row)
            if match:
                found.append(Foreign(owner, path, number, "governor", match.group(1)))
    return found
