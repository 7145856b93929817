# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The kernel's words since boot: XIDs with what to do, NVSwitch errors, GPUs that do not start, BARs without room."""

from __future__ import annotations

from typing import Any, List, Mapping, Optional, Tuple

from .._engine.values import Finding, Unknown
from .._tables import xids
from .platform_common import PASSED_THROUGH, tables_of

Want = Mapping[str, Any]
Have = Mapping[str, Any]

_LOG = "kernel log"
# As many XIDs of one GPU are named; a flood says no more.
_MOST = 6


def judge(want: Want, have: Have) -> List[Finding]:
    log = have["kernel_log"]
    if isinstance(log, Unknown):
        return [_unseen(log)] if have["gpus"] and not isinstance(have["gpus"], Unknown) else []
    nvrm = log.nvrm
    findings = [_xid(want, one) for one in nvrm.xids[: _MOST * 8]]
    findings += [_sxid(one) for one in nvrm.sxids[:_MOST]]
    findings += [_init(have, one) for one in nvrm.init_failures[:_MOST]]
    findings += [_lost(address) for address in nvrm.lost]
    findings += [_unsupported(address, words) for address, words in nvrm.unsupported.items()]
    findings += [_bar(one) for one in log.pci.bars if not one.is_virtual and _is_gpu(have, one)]
    findings += [_firmware(path) for path in nvrm.missing_firmware[:2]]
    named = nvrm.init_failures or nvrm.lost or nvrm.unsupported or log.pci.bars
    if nvrm.gave_up and (nvrm.unclaimed or (nvrm.failed_probes and not named)) and _are_ours(have):
        findings.append(_gave_up(nvrm))
    return findings


def _is_gpu(have: Have, window: Any) -> bool:
    """The driver speaks of windows of GPUs only; the kernel of those of any device."""
    if "NVRM" in window.text:
        return True
    return not isinstance(have["gpus"], Unknown) and any(gpu.address == window.address for gpu in have["gpus"])


def _are_ours(have: Have) -> bool:
    """Not where all GPUs are given to virtual machines, or there are none."""
    if isinstance(have["gpus"], Unknown):
        return True
    return any(gpu.driver not in PASSED_THROUGH for gpu in have["gpus"])


def _unseen(reason: Unknown) -> Finding:
    return Finding(
        "platform.kernel-log-unseen", "info", "host", "to be readable", reason,
        "XIDs and other errors since boot cannot be told", "journalctl -k -b | grep -iE 'xid|nvrm'; run as root", _LOG,
    )  # fmt: skip


def _when(one: Any) -> str:
    if not one.first:
        return "%d times" % one.count if one.count > 1 else "once"
    return "%d times, %s to %s" % (one.count, one.first, one.last) if one.count > 1 else "once, %s" % one.first


def _xid(want: Want, one: Any) -> Finding:
    row = xids.xid(one.code, tables_of(want).xids)
    level, meaning, advice = _meaning(row, one.text)
    return Finding(
        "platform.xid-%d" % one.code, level, one.address or "host", "none since boot",
        "%s (%s)" % (one.text[:160] or "XID %d" % one.code, _when(one)), meaning, advice,
        row.source if row else "NVIDIA XID errors guide",
    )  # fmt: skip


def _meaning(row: Optional[xids.Xid], text: str) -> Tuple[str, str, str]:
    if row is None:
        return (
            "warn",
            "an error of the GPU that the tables do not know",
            "look it up in NVIDIA's XID guide; nvidia-bug-report.sh",
        )
    return xids.level_of(row, text), row.meaning, xids.advice(row)


def _sxid(one: Any) -> Finding:
    link = "" if one.link is None else ", link %d" % one.link
    return Finding(
        "platform.nvswitch-error", "fail" if one.is_fatal else "warn", one.address, "none since boot",
        "SXid %d%s: %s (%s)" % (one.code, link, one.text[:120], _when(one)),
        "the NVSwitch reports an error; one that it recovers from and that comes again and again ends in a link that is lost",
        "nvidia-smi nvlink -e; journalctl -u nvidia-fabricmanager -b; compare with the next audits",
        "NVIDIA Fabric Manager User Guide, SXid errors",
    )  # fmt: skip


def _init(have: Have, one: Any) -> Finding:
    """Old drivers name a GPU by its minor number, which /proc maps to an address."""
    minors = {about.minor: address for address, about in have["driver"].gpus.items() if isinstance(about.minor, int)}
    device = "host" if one.minor is None else "/dev/nvidia%d" % one.minor
    which = one.address or minors.get(one.minor) or device
    return Finding(
        "platform.gpu-init", "fail", which, "started", "RmInitAdapter failed %s (%d times)" % (one.code, one.count),
        "the driver cannot start this GPU: firmware of another version, no power, a broken card, or a BIOS without room for it",
        "dmesg | grep -i nvrm; power-cycle the host; compare the versions of module and firmware: nvidia-smi -q | grep -i gsp",
        _LOG,
    )  # fmt: skip


def _gave_up(nvrm: Any) -> Finding:
    held = "%d GPUs are held by another driver" % nvrm.unclaimed if nvrm.unclaimed else "its probe of them failed"
    return Finding(
        "platform.gpu-init", "fail", "host", "started", "%s: %s" % (nvrm.gave_up, held),
        "the NVIDIA module did not load; a driver such as nouveau, or one for virtual machines, may have been there first",
        "lspci -nnk -d 10de: shows who holds them; keep nouveau away in modprobe.d and in the initramfs, then reboot", _LOG,
    )  # fmt: skip


def _lost(address: str) -> Finding:
    return Finding(
        "platform.gpu-lost", "fail", address, "on the bus", "fell off the bus",
        "the GPU does not answer any more; what ran on it is lost",
        "power-cycle the host; reseat the card, look at its power cable; nvidia-bug-report.sh when it comes again", _LOG,
    )  # fmt: skip


def _unsupported(address: str, words: str) -> Finding:
    return Finding(
        "platform.gpu-unsupported", "fail", address, "supported by the driver", words[:200],
        "the installed kernel module does not serve this GPU: open modules need Turing or newer, new cards a newer driver",
        "see docs/tables.md for the branches of its architecture; modinfo nvidia | grep -E 'version|license'", _LOG,
    )  # fmt: skip


def _bar(one: Any) -> Finding:
    return Finding(
        "platform.bar-no-space", "fail", one.address, "room for every BAR", one.text[:200],
        "the BIOS gave the GPU's memory window no address, so the driver cannot use the card",
        "switch on Above 4G Decoding (and a large MMIO window) in the BIOS; kernel argument pci=realloc is the last resort",
        "Linux Documentation/PCI; " + _LOG,
    )  # fmt: skip


def _firmware(path: str) -> Finding:
    return Finding(
        "platform.gsp-firmware", "fail", "host", "the firmware of the loaded module", "%s is missing" % path[:160],
        "the packages on disk are of another version than the loaded module: an upgrade without a reboot",
        "reboot; then compare nvidia-smi, modinfo -F version nvidia and /proc/driver/nvidia/version", _LOG,
    )  # fmt: skip
