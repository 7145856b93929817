# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""CPU governor, energy preference and deepest idle state, live on each CPU.

One step sets a knob on all CPUs that differ, and knows the original of each.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, List, Mapping, Tuple

from .._engine.values import BadWant, Finding, Step, Unknown
from .kernel_common import knob, no_such, not_possible, unseen

SOURCE = "kernel Documentation/admin-guide/pm/cpufreq.rst, intel_pstate.rst, amd-pstate.rst, cpuidle.rst"
CPUS = "/sys/devices/system/cpu/"
FILES = {"governor": "scaling_governor", "energy_preference": "energy_performance_preference"}
WHY = {
    "governor": "a CPU that clocks down between steps makes kernel launches and data loading late",
    "energy_preference": "in active mode the processor itself picks the clock, by this preference",
    "deepest_cstate": "waking up from a deep idle state costs latency on each interrupt",
}
# In these drivers' active mode the governor performance pins the preference: others give EBUSY
# (drivers/cpufreq/intel_pstate.c, amd-pstate.c).
_PINNING_DRIVERS = ("intel_pstate", "amd-pstate-epp", "amd_pstate_epp")

Write = Tuple[str, str, str]
"""Path, text before, text after."""


def check_want(want: Mapping[str, Any]) -> None:
    for name in ("governor", "energy_preference", "deepest_cstate"):
        value = knob(want, name)
        if value is not None and not all(letter.isalnum() or letter in "_-" for letter in value):
            raise BadWant(name, want[name], "one name as the kernel shows it: letters, digits, _ and -")


def lines(want: Mapping[str, Any], have: Mapping[str, Any]) -> List[Tuple[str, str, str]]:
    """Knob, glob and value for tmpfiles.d: globs, so that each CPU present at boot is covered."""
    found = [
        (name, CPUS + "cpufreq/policy*/" + FILES[name], str(knob(want, name)))
        for name in _order(want)
        if knob(want, name) is not None and _offers(have["cpufreq"], name)
    ]
    for state, value in sorted(_idle_wanted(want, have).items()):
        found.append(("deepest_cstate", CPUS + "cpu*/cpuidle/state%d/disable" % state, value))
    return found


def plan(want: Mapping[str, Any], have: Mapping[str, Any]) -> List[Step]:
    steps: List[Step] = []
    for name in _order(want):
        value = knob(want, name)
        if value is not None and _offers(have["cpufreq"], name):
            live = have["cpufreq"]["values"][name]
            writes = [
                (CPUS + "cpufreq/%s/%s" % (policy, FILES[name]), word, value)
                for policy, word in live.items()
                if not isinstance(word, Unknown) and word != value
            ]
            steps += _group("kernel.cpu." + name, writes, WHY[name])
    return steps + _group("kernel.cpu.deepest_cstate", _idle_writes(want, have), WHY["deepest_cstate"])


def judge(want: Mapping[str, Any], have: Mapping[str, Any]) -> List[Finding]:
    findings: List[Finding] = []
    for name in ("governor", "energy_preference"):
        value = knob(want, name)
        if value is not None:
            findings += _judge_knob(name, value, have["cpufreq"])
    if _is_pinned(want, have["cpufreq"]):
        findings.append(
            not_possible(
                "kernel.value-not-offered", "cpufreq energy_preference", str(knob(want, "energy_preference")),
                "offered with the governor performance: performance",
                "the driver %s refuses any other preference under this governor" % have["cpufreq"]["driver"],
                "set kernel_energy_preference: performance, or kernel_governor: powersave", SOURCE,
            )
        )  # fmt: skip
    if knob(want, "deepest_cstate") is not None:
        findings += _judge_idle(str(knob(want, "deepest_cstate")), have["cpuidle"])
    return findings


def adopt(have: Mapping[str, Any]) -> Dict[str, Any]:
    """What all CPUs agree on."""
    found: Dict[str, Any] = {}
    freq, idle = have.get("cpufreq"), have.get("cpuidle")
    if isinstance(freq, Mapping):
        for name, values in freq["values"].items():
            words = set(values.values())
            if len(words) == 1 and isinstance(next(iter(words)), str):
                found[name] = next(iter(words))
    if isinstance(idle, Mapping):
        rows = {tuple(row) for row in idle["disabled"].values()}
        allowed = [name for name, text in zip(idle["states"], next(iter(rows), ())) if text == "0"]
        if len(rows) == 1 and allowed:
            found["deepest_cstate"] = allowed[-1]
    return found


def _order(want: Mapping[str, Any]) -> Tuple[str, ...]:
    """The preference first when the governor then pins it, else the governor first to release it.

    The way back runs in reverse and is right for the same reason.
    """
    is_last = knob(want, "governor") == "performance"
    return ("energy_preference", "governor") if is_last else ("governor", "energy_preference")


def _offers(freq: Any, name: str) -> bool:
    """Whether the host has the knob at all."""
    return isinstance(freq, Mapping) and (name == "governor" or freq["offered"].get(name) is not None)


def _is_pinned(want: Mapping[str, Any], freq: Any) -> bool:
    return (
        _offers(freq, "energy_preference")
        and freq["driver"] in _PINNING_DRIVERS
        and knob(want, "governor") == "performance"
        and knob(want, "energy_preference") not in (None, "performance")
    )


def _group(step: str, writes: List[Write], why: str) -> List[Step]:
    """One step for all files of a knob that differ; its undo gives each its own text back."""
    if not writes:
        return []
    (path, before, after), rest = writes[0], writes[1:]
    made = Step(step, "value", path, before, after, why, SOURCE, then=tuple((p, new) for p, _old, new in rest))
    back = tuple((p, old) for p, old, _new in rest)
    return [replace(made, undo=replace(made, id="undo." + step, before=after, after=before, then=back))]


def _judge_knob(name: str, value: str, freq: Any) -> List[Finding]:
    subject = "cpufreq " + FILES[name]
    if isinstance(freq, Unknown):
        return [unseen(subject, freq, "ls %scpufreq" % CPUS, SOURCE)]
    if not _offers(freq, name):
        what = "cpufreq" if freq is None else "energy_performance_preference (driver %s)" % freq["driver"]
        return [no_such(subject, value, what, "kernel_" + name, SOURCE)]
    offered = freq["offered"][name]
    if isinstance(offered, list) and value not in offered and not value.isdigit():
        fix = "set kernel_%s to one that is offered, load its module, or set it to null" % name
        why = "the driver %s does not offer it, so it could not hold after a boot either" % freq["driver"]
        words = "offered: " + ", ".join(offered)
        return [not_possible("kernel.value-not-offered", subject, value, words, why, fix, SOURCE)]
    blind = [(policy, word) for policy, word in freq["values"][name].items() if isinstance(word, Unknown)]
    if blind:
        policy, reason = blind[0]
        where = "%s of %s (and %d more)" % (FILES[name], policy, len(blind) - 1)
        return [unseen(where, reason, "cat %scpufreq/%s/%s" % (CPUS, policy, FILES[name]), SOURCE)]
    return []


def _index(name: str, idle: Any) -> int:
    """The place of a named idle state, -1 when the host has no such state."""
    names = [state.lower() for state in idle["states"]] if isinstance(idle, Mapping) else []
    return names.index(name.lower()) if name.lower() in names else -1


def _idle_wanted(want: Mapping[str, Any], have: Mapping[str, Any]) -> Dict[int, str]:
    """The text for ``disable`` by state: the deepest is allowed, those behind it are not.

    Shallower states are left as they are, since firmware and drivers have their reasons there.
    """
    name = knob(want, "deepest_cstate")
    deepest = _index(name, have["cpuidle"]) if name is not None else -1
    if deepest < 0:
        return {}
    count = len(have["cpuidle"]["states"])
    return {state: "0" if state == deepest else "1" for state in range(deepest, count)}


def _idle_writes(want: Mapping[str, Any], have: Mapping[str, Any]) -> List[Write]:
    return [
        (CPUS + "%s/cpuidle/state%d/disable" % (cpu, state), texts[state], value)
        for state, value in sorted(_idle_wanted(want, have).items())
        for cpu, texts in have["cpuidle"]["disabled"].items()
        if not isinstance(texts[state], Unknown) and texts[state] != value
    ]


def _judge_idle(name: str, idle: Any) -> List[Finding]:
    if isinstance(idle, Unknown):
        return [unseen("cpuidle", idle, "ls %scpu0/cpuidle" % CPUS, SOURCE)]
    if idle is None:
        return [no_such("cpuidle", name, "cpuidle", "kernel_deepest_cstate", SOURCE)]
    deepest = _index(name, idle)
    if deepest < 0:
        offered = "offered: " + ", ".join(idle["states"])
        why = "the CPUs of this host have no idle state of that name"
        fix = "set kernel_deepest_cstate to one that is offered, or to null"
        return [not_possible("kernel.value-not-offered", "cpuidle", name, offered, why, fix, SOURCE)]
    blind = [
        (cpu, text) for cpu, row in idle["disabled"].items() for text in row[deepest:] if isinstance(text, Unknown)
    ]
    if blind:
        return [unseen("cpuidle of " + blind[0][0], blind[0][1], "ls %s%s/cpuidle" % (CPUS, blind[0][0]), SOURCE)]
    return []
