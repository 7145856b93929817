# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Health of each GPU: errors, repairs that wait, what holds its clocks down, heat, power limit, modes.

A row a condition.  What the card does not have (N/A) is no fault; what it answers with an error word is one of its own
(``platform.gpu-error``), and hides no other row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, List, Mapping, Optional

from .._engine.values import Finding
from .platform_common import Card, cards, known, number

Want = Mapping[str, Any]
# Gives what was observed where it is a fault, else None.
Look = Callable[[Any, Want], Optional[str]]

_RESET = (
    "drain the GPU, stop what holds it open (nvidia-persistenced, dcgm), then nvidia-smi --gpu-reset -i %s; else reboot"
)
_MANUAL = "nvidia-smi manual"
_OPTIONAL = ("platform.ecc-off",)
_MEMORY = "NVIDIA GPU Memory Error Management guide"


@dataclass(frozen=True)
class Check:
    """A condition of a GPU; %s in ``fix`` stands for its PCI address."""

    id: str
    level: str
    look: Look
    expected: str
    why: str
    fix: str
    source: str


def judge(want: Want, have: Mapping[str, Any]) -> List[Finding]:
    findings: List[Finding] = []
    for card in cards(want, have):
        for check in CHECKS if card.gpu is not None else ():
            observed = check.look(card.gpu, want) if card.gpu is not None else None
            if observed is not None:
                fix = check.fix.replace("%s", card.address)
                level = "info" if check.id in _OPTIONAL and _has_optional_ecc(card) else check.level
                findings.append(
                    Finding(check.id, level, card.address, check.expected, observed, check.why, fix, check.source)
                )
    return findings


def _has_optional_ecc(card: Card) -> bool:
    """A card that is sold without ECC and may turn it on: off is in order there."""
    return card.model is not None and card.model.ecc == "optional"


# A card that tells none of these does not answer at all: the table of older versions has no better word for it.
_SENSORS = {"temperature_c", "pstate", "power_draw_w", "utilization_gpu_percent"}


def _reset(gpu: Any, _want: Want) -> Optional[str]:
    action = gpu.recovery_action
    if known(action) and str(action).lower() != "none":
        return "recovery action: %s" % action
    if gpu.reset_required is True:
        return "reset required"
    errors = gpu.errors()
    asks = [field for field, words in errors.items() if "reset" in words.lower()]
    if asks:
        return "%s: GPU requires reset" % ", ".join(asks[:3])
    return "it answers all questions with %s" % errors["pstate"].partition(": ")[2] if set(errors) >= _SENSORS else None


def _errors(gpu: Any, want: Want) -> Optional[str]:
    if _reset(gpu, want):
        return None
    found = gpu.errors()
    rows = ["%s: %s" % (field, words.partition(": ")[2] or words) for field, words in found.items()]
    return "; ".join(rows[:4] + (["%d more" % (len(rows) - 4)] if len(rows) > 4 else [])) or None


def _uncorrectable(counts: Any) -> Optional[str]:
    count = number(counts.uncorrectable)
    return "%d uncorrectable" % count if count > 0 else None


def _ecc_off(gpu: Any, want: Want) -> Optional[str]:
    return "off" if want["ecc"] == "on" and gpu.ecc_mode == "Disabled" else None


def _ecc_on(gpu: Any, want: Want) -> Optional[str]:
    return "on" if want["ecc"] == "off" and gpu.ecc_mode == "Enabled" else None


def _pending(name: str) -> Look:
    def look(gpu: Any, _want: Want) -> Optional[str]:
        now, then = getattr(gpu, name), getattr(gpu, name + "_pending")
        return "%s now, %s after a reset" % (now, then) if known(now) and known(then) and now != then else None

    return look


def _reason(name: str, *unless: str) -> Look:
    """Clocks held down for a reason that no more exact one explains."""

    def look(gpu: Any, _want: Want) -> Optional[str]:
        is_active = gpu.event_reasons.get(name) is True
        return "active" if is_active and not any(gpu.event_reasons.get(other) is True for other in unless) else None

    return look


def _hot(limit: str, margin: str) -> Look:
    """At or above a threshold of the card itself, which is in degrees or a margin (Hopper, Ada and later)."""

    def look(gpu: Any, _want: Want) -> Optional[str]:
        limit_c, now = getattr(gpu, limit), gpu.temperature_c
        if known(limit_c) and known(now) and number(limit_c) > 0 and number(now) >= number(limit_c):
            return "%s C, its limit is %s C" % (now, limit_c)
        margin_c, left = getattr(gpu, margin), gpu.margin_c
        if known(margin_c) and known(left) and number(left) <= number(margin_c):
            return "%s C left, its limit is %s C" % (left, margin_c)
        return None

    return look


def _warm(gpu: Any, want: Want) -> Optional[str]:
    """Too warm, and not yet so hot that the worse finding says it."""
    return None if _SLOWDOWN(gpu, want) else _OPERATING(gpu, want)


_SLOWDOWN = _hot("slowdown_c", "slowdown_margin_c")
_OPERATING = _hot("max_operating_c", "max_operating_margin_c")


def _policy_heat(gpu: Any, want: Want) -> Optional[str]:
    limit = want["temperature_max_c"]
    return (
        "%s C" % gpu.temperature_c if limit and known(gpu.temperature_c) and number(gpu.temperature_c) > limit else None
    )


def _memory_heat(gpu: Any, _want: Want) -> Optional[str]:
    limit, now = gpu.memory_max_operating_c, gpu.memory_temperature_c
    return (
        "%s C, its limit is %s C" % (now, limit)
        if known(limit) and known(now) and number(now) >= number(limit)
        else None
    )


def _power_limit(gpu: Any, _want: Want) -> Optional[str]:
    limit, default = gpu.power_limit_w, gpu.power_default_limit_w
    # A limit that is asked for in whole watts may read back a little off.
    return "%s W of %s W" % (limit, default) if known(limit) and number(limit) < number(default) - 1.0 else None


def _flag(name: str, words: str) -> Look:
    return lambda gpu, _want: words if getattr(gpu, name) is True else None


def _count(name: str, words: str) -> Look:
    def look(gpu: Any, _want: Want) -> Optional[str]:
        value = getattr(gpu, name)
        return words % value if known(value) and value > 0 else None

    return look


def _persistence(gpu: Any, want: Want) -> Optional[str]:
    return "off" if want["persistence"] and gpu.persistence_mode == "Disabled" else None


def _unlicensed(gpu: Any, _want: Want) -> Optional[str]:
    status = gpu.vgpu_license_status
    return str(status) if known(status) and not str(status).lower().startswith("licensed") else None


CHECKS = (
    Check("platform.gpu-reset", "fail", _reset, "no action", "the GPU runs no new work until it was reset",
          _RESET, _MANUAL),
    Check("platform.gpu-error", "warn", _errors, "values", "the card answers a question with an error; one that passes "
          "when asked again is noise, one that stays is a failing card", "nvidia-smi -q -i %s; dmesg | grep -i xid", _MANUAL),
    Check("platform.ecc-off", "warn", _ecc_off, "on", "without ECC a flipped bit in GPU memory is a wrong result that nobody "
          "sees", "nvidia-smi -i %s -e 1, then reset the GPU or reboot; or set platform_ecc: any", _MANUAL),
    Check("platform.ecc-on", "warn", _ecc_on, "off", "the fleet wants ECC off here, which gives GDDR cards their whole memory",
          "nvidia-smi -i %s -e 0, then reset the GPU or reboot; or set platform_ecc: any", _MANUAL),
    Check("platform.ecc-pending", "warn", _pending("ecc_mode"), "one mode", "a changed mode is in force only after a reset",
          _RESET, _MANUAL),
    Check("platform.mig-pending", "warn", _pending("mig_mode"), "one mode", "a changed mode is in force only after a reset",
          _RESET, _MANUAL),
    Check("platform.ecc-uncorrectable", "fail", lambda gpu, _w: _uncorrectable(gpu.ecc_volatile), "none since the driver "
          "was loaded", "work that used this memory is lost or wrong; the page or row is retired at the next reset",
          _RESET, _MEMORY),
    Check("platform.ecc-uncorrectable-ever", "warn", lambda gpu, _w: _uncorrectable(gpu.ecc_aggregate), "none in its life",
          "a card that had uncorrectable errors is the one to watch, and the one to leave out of a long run",
          "compare with the next audits; replace the card when it goes on", _MEMORY),
    Check("platform.sram-threshold", "fail", _flag("sram_threshold_exceeded", "exceeded"), "not exceeded",
          "too many uncorrectable errors of SRAM, which cannot be remapped", "return the card", _MEMORY),
    Check("platform.row-remap-failure", "fail", _flag("remapped_failure", "failed"), "no failure",
          "the card has no spare row left where one is needed", "return the card", _MEMORY),
    Check("platform.row-remap-pending", "fail", _flag("remapped_pending", "pending"), "nothing pending",
          "a faulty row stays in use until the next reset", _RESET, _MEMORY),
    Check("platform.row-remapped", "warn", _count("remapped_uncorrectable", "%d rows after uncorrectable errors"), "none",
          "spare rows are used up one by one", "compare with the next audits; replace the card when it goes on", _MEMORY),
    Check("platform.channel-repair-pending", "fail", _flag("channel_repair_pending", "pending"), "nothing pending",
          "a memory channel waits for its repair", _RESET, _MEMORY),
    Check("platform.tpc-repair-pending", "fail", _flag("tpc_repair_pending", "pending"), "nothing pending",
          "a processing cluster waits for its repair", _RESET, _MEMORY),
    Check("platform.unrepairable-memory", "fail", _flag("unrepairable_memory", "unrepairable"), "repairable",
          "memory that cannot be repaired", "return the card", _MEMORY),
    Check("platform.pages-pending", "fail", _flag("retired_pending", "pending"), "nothing pending",
          "a faulty page stays in use until the driver is loaded again", _RESET, "NVIDIA Dynamic Page Retirement guide"),
    Check("platform.pages-retired", "warn", _count("retired_double_bit", "%d pages after double-bit errors"), "none",
          "the card loses memory page by page", "NVIDIA replaces cards above its limit; see its RMA policy",
          "NVIDIA Dynamic Page Retirement guide"),
    Check("platform.power-brake", "fail", _reason("hw_power_brake"), "not active", "the board cuts the clocks because a signal "
          "from outside (a power supply, the rack's power unit or the BMC) asks for it; no setting of the host undoes that",
          "look at the power supplies and at the BMC's event log: ipmitool sdr type 'Power Supply'; ipmitool sel elist", _MANUAL),
    Check("platform.thermal-slowdown", "fail", _reason("hw_thermal_slowdown"), "not active", "the GPU is too hot and runs at "
          "half its clocks or less", "look at fans, air flow and inlet temperature: ipmitool sdr type Fan", _MANUAL),
    Check("platform.hw-slowdown", "fail", _reason("hw_slowdown", "hw_thermal_slowdown", "hw_power_brake"), "not active",
          "the hardware cuts the clocks for heat or power", "look at power supplies, fans and the BMC's event log", _MANUAL),
    Check("platform.thermal-sw", "warn", _reason("sw_thermal_slowdown", "hw_thermal_slowdown"), "not active",
          "the driver lowers the clocks to keep the GPU below its maximum operating temperature",
          "look at fans, air flow and inlet temperature: ipmitool sdr type Fan", _MANUAL),
    Check("platform.temperature-slowdown", "fail", _SLOWDOWN, "below its slowdown threshold",
          "from here on the hardware cuts the clocks; above it the card switches off",
          "look at fans, air flow and inlet temperature: ipmitool sdr type Fan", _MANUAL),
    Check("platform.temperature-operating", "warn", _warm,
          "below its maximum operating temperature", "from here on the driver lowers the clocks",
          "look at fans, air flow and inlet temperature: ipmitool sdr type Fan", _MANUAL),
    Check("platform.temperature-memory", "warn", _memory_heat, "below its maximum operating temperature",
          "hot memory is slower and has more errors", "look at fans and air flow; HBM sits beside the GPU", _MANUAL),
    Check("platform.temperature-policy", "warn", _policy_heat, "at most platform_temperature_max_c",
          "the fleet's own limit; the card's own thresholds are judged apart", "look at fans, air flow and inlet temperature",
          "policy (the guide's 85 C)"),
    Check("platform.power-limit", "warn", _power_limit, "its default limit", "a lower limit costs clocks under load and is often "
          "a leftover", "nvidia-smi -i %s -pl W sets it until the next boot; find who sets it, and the BMC's power policy", _MANUAL),
    Check("platform.persistence-off", "warn", _persistence, "on", "without it the driver lets go of the card between jobs: each "
          "start takes seconds, and what was set is lost", "systemctl enable --now nvidia-persistenced",
          "NVIDIA Driver Persistence guide"),
    Check("platform.vgpu-license", "fail", _unlicensed, "licensed", "a virtual GPU without a licence runs slower step by step",
          "check the licence server and the client's token", "NVIDIA vGPU client licensing guide"),
)  # fmt: skip
