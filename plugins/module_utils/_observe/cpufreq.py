# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""CPU frequency and idle states, from sysfs.

Only what is asked for is read: on a host with 288 CPUs one attribute is 288 files.
"""

from __future__ import annotations

import re
from typing import Any, Dict, FrozenSet, List, Sequence, Union

from .._engine.cpuset import parse_cpulist
from .._engine.host import Host
from .._engine.values import Text, Unknown

CPUS = "/sys/devices/system/cpu"
ATTRIBUTES = {"governor": "scaling_governor", "energy_preference": "energy_performance_preference"}
_OFFERED = {"governor": "scaling_available_governors", "energy_preference": "energy_performance_available_preferences"}


def policies(host: Host, knobs: Sequence[str]) -> Union[Dict[str, Any], Unknown, None]:
    """The wanted knobs of each frequency policy with what the kernel offers; None without cpufreq.

    ``{"driver": …, "offered": {knob: words or None}, "values": {knob: {policy: word}}}``.
    Policies whose CPUs are all offline answer EBUSY and are left out.
    """
    if not host.exists(CPUS):
        return Unknown("%s was not seen" % CPUS)
    names = [name for name in host.listdir(CPUS + "/cpufreq") if re.match(r"policy[0-9]+\Z", name)]
    if not names:
        return None
    names.sort(key=lambda name: int(name[6:]))
    offline = _offline(host)
    names = [name for name in names if int(name[6:]) not in offline or _is_active(host, name)] or names
    first = "%s/cpufreq/%s/" % (CPUS, names[0])
    return {
        "driver": _word(host.read(first + "scaling_driver")),
        "offered": {knob: _words(host.read(first + _OFFERED[knob])) for knob in knobs},
        "values": {
            knob: {name: _word(host.read("%s/cpufreq/%s/%s" % (CPUS, name, ATTRIBUTES[knob]))) for name in names}
            for knob in knobs
        },
    }


def idle(host: Host) -> Union[Dict[str, Any], Unknown, None]:
    """Idle states by depth and which CPU has which disabled; None without cpuidle.

    ``{"states": [name, …], "disabled": {cpu: [text, …]}}``.  Names are those of the first CPU.
    """
    if not host.exists(CPUS):
        return Unknown("%s was not seen" % CPUS)
    offline = _offline(host)
    cpus = [int(name[3:]) for name in host.listdir(CPUS) if re.match(r"cpu[0-9]+\Z", name)]
    cpus = sorted(cpu for cpu in cpus if cpu not in offline)
    if not cpus:
        return Unknown("no CPU was seen")
    folder = "%s/cpu%d/cpuidle" % (CPUS, cpus[0])
    states = sorted(
        (name for name in host.listdir(folder) if re.match(r"state[0-9]+\Z", name)), key=lambda name: int(name[5:])
    )
    if not states:
        return None
    names: List[Any] = [_word(host.read("%s/%s/name" % (folder, state))) for state in states]
    unknown = next((name for name in names if not isinstance(name, str)), None)
    if unknown is not None:
        return Unknown("the name of an idle state: %s" % unknown.reason)
    disabled = {
        "cpu%d" % cpu: [_word(host.read("%s/cpu%d/cpuidle/%s/disable" % (CPUS, cpu, state))) for state in states]
        for cpu in cpus
    }
    return {"states": names, "disabled": disabled}


def _is_active(host: Host, policy: str) -> bool:
    """A policy is called after its first CPU, which may be offline while others of it are not."""
    cpus = host.read("%s/cpufreq/%s/affected_cpus" % (CPUS, policy))
    return isinstance(cpus, str) and bool(cpus.strip())


def _offline(host: Host) -> FrozenSet[int]:
    text = host.read(CPUS + "/offline")
    try:
        return parse_cpulist(text) if isinstance(text, str) else frozenset()
    except ValueError:
        return frozenset()


def _word(text: Text) -> Union[str, Unknown]:
    if isinstance(text, str):
        return text.strip() or Unknown("empty")
    return text if isinstance(text, Unknown) else Unknown("not there")


def _words(text: Text) -> Union[List[str], Unknown, None]:
    return text.split() if isinstance(text, str) else text
