# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Power supplies: lost ones, redundancy, and the guide's sizing formula with its factors as variables."""

from __future__ import annotations

from typing import Any, List, Mapping, Sequence

from .._engine.values import Finding, Unknown
from .platform_common import cards, known, number

Want = Mapping[str, Any]
Have = Mapping[str, Any]

_IPMI = "IPMI specification 2.0, sensor type 08h; DMTF Redfish PowerSupply"
_FIX = "ipmitool sdr type 'Power Supply'; ipmitool sel elist; look at the supply's lamp and its cable"
_GUIDE = "sizing formula of the guide (R05): (GPU x 1.8 + CPU x 1.5) x 1.3; its factors are policy"


def judge(want: Want, have: Have) -> List[Finding]:
    power = have["power"]
    if isinstance(power.supplies, Unknown) and want["supplies"]:
        return [_unseen(want["supplies"], power.supplies)]
    supplies = [] if isinstance(power.supplies, Unknown) else list(power.supplies)
    findings = [_lost(one) for one in supplies if one.is_ok is False or (one.is_present is False and want["supplies"])]
    present = [one for one in supplies if one.is_present is not False]
    if want["supplies"] and supplies and len(present) < want["supplies"]:
        findings.append(_too_few(want["supplies"], len(present)))
    findings += _redundancy(power) + [_fan(one) for one in _fans(power) if one.is_ok is False]
    findings += [_contradiction(note) for note in power.contradictions]
    return findings + _size(want, have, present)


def _fans(power: Any) -> Sequence[Any]:
    return () if isinstance(power.fans, Unknown) else power.fans


def _lost(one: Any) -> Finding:
    return Finding(
        "platform.supply-lost", "fail", one.name, "present and in order", ", ".join(one.said) or "failed",
        "the other supplies carry the load; when one more fails, or the load peaks, the host goes down or brakes its GPUs",
        _FIX, _IPMI,
    )  # fmt: skip


def _too_few(wanted: int, present: int) -> Finding:
    return Finding(
        "platform.supply-count", "fail", "power", "%d supplies" % wanted, "%d supplies" % present,
        "fewer supplies than this host should have: it has less power and less redundancy", _FIX, "platform_supplies",
    )  # fmt: skip


def _unseen(wanted: int, reason: Unknown) -> Finding:
    return Finding(
        "platform.supply-count", "warn", "power", "%d supplies" % wanted, reason,
        "the supplies cannot be seen, so whether one is lost is unknown",
        "ipmitool sdr type 'Power Supply'; modprobe ipmi_si ipmi_devintf; install ipmitool", _IPMI,
    )  # fmt: skip


def _redundancy(power: Any) -> List[Finding]:
    if isinstance(power.redundancy, Unknown):
        return []
    bad = [group for group in power.redundancy if group.state in ("degraded", "not redundant", "lost")]
    return [
        Finding(
            "platform.supply-redundancy", "fail" if group.state == "lost" else "warn", group.name, "redundant",
            "%s%s" % (group.state, ": " + group.said if group.said else ""),
            "the next supply or feed that fails takes the host down", _FIX, _IPMI,
        )
        for group in bad
    ]  # fmt: skip


def _fan(one: Any) -> Finding:
    return Finding(
        "platform.fan", "fail", one.name, "in order", "failed", "a fan less heats the GPUs behind it, which lower their clocks",
        "ipmitool sdr type Fan; replace it", _IPMI,
    )  # fmt: skip


def _contradiction(note: str) -> Finding:
    return Finding(
        "platform.sources-contradict", "warn", "power", "one answer", note, "two sources contradict each other; both are named",
        _FIX, _IPMI,
    )  # fmt: skip


def _size(want: Want, have: Have, present: Sequence[Any]) -> List[Finding]:
    """Capacity of all supplies against the formula, as far as every part of it is known."""
    limits = [card.gpu.power_default_limit_w for card in cards(want, have) if card.gpu is not None]
    one_w = want["supply_capacity_w"] or min(
        (number(one.capacity_w) for one in present if known(one.capacity_w)), default=0
    )
    count = len(present) or want["supplies"] or 0
    if not want["cpu_tdp_w"] or not limits or not all(known(limit) for limit in limits) or not one_w or not count:
        return []
    gpus_w, cpus_w = sum(map(number, limits)), want["cpu_tdp_w"] * (have["sockets"] or 1)
    needed_w = (gpus_w * want["gpu_power_factor"] + cpus_w * want["cpu_power_factor"]) * want["power_reserve_factor"]
    if one_w * count >= needed_w:
        return []
    return [
        Finding(
            "platform.supply-size", "warn", "power",
            "%d W: (%d W of GPUs x %g + %d W of CPUs x %g) x %g" % (
                round(needed_w), gpus_w, want["gpu_power_factor"], cpus_w, want["cpu_power_factor"], want["power_reserve_factor"],
            ),
            "%d W: %d supplies of %d W" % (one_w * count, count, one_w),
            "GPUs draw peaks above their limit for milliseconds; supplies that cannot give them brake the GPUs or switch off",
            "lower the GPUs' power limit, fit larger supplies, or set the factors that the vendor states", _GUIDE,
        )
    ]  # fmt: skip
