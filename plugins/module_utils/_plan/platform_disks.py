# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NVMe drives by their state and SMART log, and RAID controllers, whose caches only their own tools show."""

from __future__ import annotations

from typing import Any, List, Mapping, Optional

from .._engine.values import Finding, Unknown
from .platform_common import number

Want = Mapping[str, Any]
Have = Mapping[str, Any]

_SPEC = "NVMe base specification, SMART / health information (log page 02h); libnvme, enum nvme_smart_crit"
_STATE = "/sys/class/nvme/*/state; linux/drivers/nvme/host/core.c, nvme_change_ctrl_state"
# Bits of the critical warning, from the lowest; bit 1 is about temperature alone.
_WARNINGS = (
    "spare blocks are below their threshold", "too hot or too cold", "media errors make it unreliable",
    "it is read-only", "its backup of volatile memory failed", "its persistent memory is unreliable",
)  # fmt: skip
_HOT = 0x02
# The other states are live, or on their way there, or away because somebody removes the drive.
_DEAD = "dead"
_WORN_PERCENT = 100
# Drivers of controllers with a cache and a battery; behind the others, drives are seen one by one.
_CACHED = ("megaraid_sas", "smartpqi", "hpsa", "aacraid", "arcmsr")
_TOOLS = {"megaraid_sas": "storcli64 /cALL show all (perccli64 on Dell)", "smartpqi": "ssacli ctrl all show config detail",
          "hpsa": "ssacli ctrl all show config detail", "aacraid": "arcconf getconfig 1", "arcmsr": "cli64 sys info"}  # fmt: skip


def judge(want: Want, have: Have) -> List[Finding]:
    drives = () if isinstance(have["nvme"], Unknown) else have["nvme"]
    judged = [_state(one) for one in drives]
    for name, smart in sorted(have["smart"].items()):
        if isinstance(smart, Unknown):
            judged += [_hung(name, smart)]
        else:
            judged += [_warning(name, smart), _worn(name, smart), _errors(name, smart)]
    judged += [_cache(one) for one in have["raid"]]
    return [finding for finding in judged if finding is not None]


def _state(drive: Any) -> Optional[Finding]:
    if drive.state != _DEAD:
        return None
    return Finding(
        "platform.nvme-state", "fail", drive.name, "live", drive.state,
        "the kernel gave this drive up: what is on it cannot be read, and writes were lost",
        "dmesg | grep %s; power the host off and on; replace the drive if it comes back like this" % drive.name, _STATE,
    )  # fmt: skip


def _hung(name: str, reason: Unknown) -> Optional[Finding]:
    """Health that cannot be told is no fault; a drive that does not answer is named, those not asked after it are not."""
    if "hung" not in reason.reason or reason.reason.startswith("not asked"):
        return None
    return Finding(
        "platform.nvme-health", "warn", name, "an answer", reason, "a drive that does not answer stops what reads from it; its "
        "health, and that of the drives after it, cannot be told", "dmesg | grep %s; nvme smart-log /dev/%s" % (name, name), _SPEC,
    )  # fmt: skip


def _warning(name: str, smart: Any) -> Optional[Finding]:
    bits = int(number(smart.critical_warning))
    said = [word for place, word in enumerate(_WARNINGS) if bits >> place & 1]
    if not bits:
        return None
    return Finding(
        "platform.nvme-health", "warn" if bits == _HOT else "fail", name, "no critical warning",
        "0x%02x: %s" % (bits, ", ".join(said) or "a bit that is not known"),
        "the drive itself says that it needs attention: it slows down, or will lose data",
        "nvme smart-log /dev/%s; copy away what it holds and replace it; if it is too hot, look at the fans" % name, _SPEC,
    )  # fmt: skip


def _worn(name: str, smart: Any) -> Optional[Finding]:
    if number(smart.used_percent) < _WORN_PERCENT:
        return None
    return Finding(
        "platform.nvme-worn", "warn", name, "below %d %% of its rated writes" % _WORN_PERCENT,
        "%d %%" % number(smart.used_percent), "it has been written as often as its maker warrants",
        "nvme smart-log /dev/%s; plan its replacement" % name, _SPEC,
    )  # fmt: skip


def _errors(name: str, smart: Any) -> Optional[Finding]:
    if not number(smart.media_errors):
        return None
    return Finding(
        "platform.nvme-errors", "warn", name, "no media errors", "%d media errors" % number(smart.media_errors),
        "data could not be read or written as it was, at least once in the drive's life",
        "nvme smart-log /dev/%s; replace it if the number grows; scrub what it holds" % name, _SPEC,
    )  # fmt: skip


def _cache(controller: Any) -> Optional[Finding]:
    if controller.driver not in _CACHED:
        return None
    return Finding(
        "platform.raid-cache", "info", controller.address, "write-back with a battery that is in order",
        Unknown("%s: only its own tool tells" % controller.name),
        "a controller whose battery failed goes to write-through, and writes take many times as long",
        _TOOLS[controller.driver], "tuning guide 2.3 (R22); linux/drivers/scsi/%s" % controller.driver,
    )  # fmt: skip
