# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""XIDs, the driver's error numbers in the kernel log: what each means, and what to do.

The numbers and the first action are those of NVIDIA's catalogue for Ampere and newer; a number means the same in every
driver.  ``level`` is ours: fail when the GPU or the node has to be reset, warn for what hints at hardware, info for
faults of applications and for notices.  Which number came first matters: 45 follows nearly every other.
"""

from __future__ import annotations

from typing import NamedTuple, Optional, Sequence, Tuple

from .rows import NOTE, SOURCE, UNVERIFIED, Column, Table

SOURCES = {
    "catalog": "https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html",
    "retirement": "https://docs.nvidia.com/deploy/dynamic-page-retirement/visibility.html",
    "recovery": "https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html, Xid 154",
}
ACTIONS = {
    "none": "nothing to do by itself",
    "restart application": "restart what ran on the GPU; if it comes back, run it under compute-sanitizer or cuda-gdb",
    "reset GPU": "drain the GPU, stop what holds it (nvidia-persistenced, DCGM) and run nvidia-smi --gpu-reset -i GPU; "
    "reboot the node where a reset is not supported",
    "reboot node": "drain the node, reboot it or turn it off and on, and read the kernel's PCIe messages before the XID",
    "restart guest": "restart the virtual machine",
    "check power": "check the auxiliary power cables of the board",
    "update software": "bring host driver, guest driver and firmware to versions that go together",
    "watch": "keep the numbers, and ask the vendor when they go on growing",
    "look at NVLink": "compare nvidia-smi nvlink -s and -e of all GPUs, reset the GPUs or reboot; again afterwards: vendor",
    "see XID 154": "do what the text of XID 154 beside it says",
}


class Xid(NamedTuple):
    """``then`` is what follows when the action does not help."""

    code: int
    symbol: str
    meaning: str
    level: str
    action: str
    then: str
    source: str = "catalog"
    note: str = ""
    unverified: Tuple[str, ...] = ()


_VENDOR = "collect nvidia-bug-report.sh and ask the vendor"
_APPLICATION = "look into the application"
_SOFTWARE = "look into driver and firmware versions"


def _engines(symbol: str, meaning: str, *numbers: Tuple[int, str]) -> Tuple[Xid, ...]:
    """One row for each engine of a kind."""
    return tuple(
        Xid(code, "ROBUST_CHANNEL_%s%s_ERROR" % (symbol, which), meaning, "warn", "restart application", _VENDOR)
        for code, which in numbers
    )


# fmt: off
ROWS: Tuple[Xid, ...] = tuple(sorted((
    Xid(8, "ROBUST_CHANNEL_FIFO_ERROR_IDLE_TIMEOUT", "a channel stopped processing", "warn", "restart application", _VENDOR),
    Xid(11, "ROBUST_CHANNEL_GR_ERROR_MISSING_HW", "invalid or broken push buffer", "info", "restart application", _APPLICATION),
    Xid(13, "ROBUST_CHANNEL_GR_EXCEPTION", "exception of the graphics engine: mostly an access out of bounds by the application", "info",
        "restart application", _APPLICATION),
    Xid(14, "ROBUST_CHANNEL_FAKE_ERROR", "an error injected for a test", "info", "none", _VENDOR),
    Xid(25, "ROBUST_CHANNEL_GR_ILLEGAL_NOTIFY", "invalid push buffer", "info", "restart application", _APPLICATION),
    Xid(31, "ROBUST_CHANNEL_FIFO_ERROR_MMU_ERR_FLT", "page fault in GPU memory: mostly an illegal address of the application", "info",
        "restart application", _APPLICATION),
    Xid(32, "ROBUST_CHANNEL_PBDMA_ERROR", "broken push buffer at the DMA controller: mostly the quality of the PCIe link", "warn",
        "restart application", "check the PCIe link: width, replays, AER"),
    Xid(37, "ROBUST_CHANNEL_FECS_ERR_UNIMP_FIRMWARE_METHOD", "a call that the firmware does not know", "info", "none", _APPLICATION),
    Xid(38, "ROBUST_CHANNEL_FECS_ERR_WATCHDOG_TIMEOUT", "a watchdog of the firmware ran out", "info", "none", _VENDOR),
    *_engines("CE", "error of a copy engine", *((39 + n, str(n)) for n in range(3)), *((70 + n, str(3 + n)) for n in range(3)),
              *((75 + n, str(6 + n)) for n in range(3)), (85, "9"), *((126 + n, str(10 + n)) for n in range(10))),
    Xid(43, "ROBUST_CHANNEL_RESETCHANNEL_VERIF_ERROR", "the application hit a software fault and ended; the GPU is well", "info", "none",
        _APPLICATION),
    Xid(44, "ROBUST_CHANNEL_GR_FAULT_DURING_CTXSW", "a fault while switching contexts", "info", "none", _VENDOR),
    Xid(45, "ROBUST_CHANNEL_PREEMPTIVE_REMOVAL", "the driver tore down an application: aborted, killed, or after another error", "info", "none",
        "alone and again: restart nvidia-fabricmanager"),
    Xid(46, "ROBUST_CHANNEL_GPU_TIMEOUT_ERROR", "the GPU stopped processing", "fail", "reset GPU", _VENDOR),
    Xid(48, "ROBUST_CHANNEL_GPU_ECC_DBE", "uncorrectable (double bit) ECC error", "fail", "reset GPU",
        "nvidia-smi -q -d ECC: SRAM threshold exceeded means replace the GPU", "catalog; retirement"),
    Xid(54, "SILENT_RUNNING_PWR_REDUCED_CLOCKING", "the auxiliary power of the board is not connected", "fail", "check power", _VENDOR),
    Xid(60, "ROBUST_CHANNEL_SEC2_ERROR", "exception of the video processor", "warn", "restart application", _SOFTWARE),
    Xid(62, "PMU_HALT_ERROR", "the internal controller (PMU) halted", "fail", "reset GPU", _VENDOR),
    Xid(63, "INFOROM_DRAM_RETIREMENT_EVENT", "a memory row was remapped or a page retired, in force after the next reset", "warn", "watch",
        "reset the GPU when it is free, so that the repair takes effect", "catalog; retirement"),
    Xid(64, "INFOROM_DRAM_RETIREMENT_FAILURE", "a memory row could not be remapped or a page not be retired", "fail", "reset GPU", _VENDOR,
        "catalog; retirement"),
    Xid(66, "ROBUST_CHANNEL_FECS_ERR_REG_ACCESS_VIOLATION", "illegal access by the driver", "info", "none", _SOFTWARE),
    Xid(67, "ROBUST_CHANNEL_FECS_ERR_VERIF_VIOLATION", "illegal access by the driver", "info", "none", _VENDOR),
    Xid(69, "ROBUST_CHANNEL_GR_CLASS_ERROR", "class error of the graphics engine", "info", "restart application", _APPLICATION),
    Xid(74, "NVLINK_ERROR", "an NVLink to a peer or a switch failed, here or at its other end", "fail", "look at NVLink", _VENDOR),
    Xid(78, "VGPU_START_ERROR", "a vGPU did not start", "warn", "update software", _SOFTWARE),
    Xid(79, "ROBUST_CHANNEL_GPU_HAS_FALLEN_OFF_THE_BUS", "the GPU does not answer on PCIe any more", "fail", "reboot node",
        "check seat, riser and power of the card, then ask the vendor"),
    Xid(80, "PBDMA_PUSHBUFFER_CRC_MISMATCH", "broken data reached the GPU", "warn", "restart application", _APPLICATION),
    *_engines("NVDEC", "error of a video decoder", (68, "0"), (83, "1"), (84, "2"), (88, "3"), (89, "4"), (96, "5"), (97, "6"), (98, "7")),
    *_engines("NVJPG", "error of a JPEG decoder", (82, "0"), *((98 + n, str(n)) for n in range(1, 8))),
    *_engines("OFA", "error of the optical flow engine", (86, "0"), (139, "1")),
    Xid(92, "EXCESSIVE_SBE_INTERRUPTS", "many corrected ECC errors", "warn", "watch", _VENDOR),
    Xid(93, "INFOROM_ERASE_LIMIT_EXCEEDED", "the wear limit set for the InfoROM was reached", "info", "none", _VENDOR),
    Xid(94, "ROBUST_CHANNEL_CONTAINED_ERROR", "an uncorrectable memory error, contained to one application", "warn", "restart application",
        "reset the GPU when it is free"),
    Xid(95, "ROBUST_CHANNEL_UNCONTAINED_ERROR", "an uncorrectable memory error that several applications may have met", "fail", "reset GPU", _VENDOR),
    Xid(106, "SMBPBI_TEST_MESSAGE", "a test message", "info", "none", "none"),
    Xid(107, "SMBPBI_TEST_MESSAGE_SILENT", "a test message", "info", "none", "none"),
    Xid(109, "ROBUST_CHANNEL_CTXSW_TIMEOUT_ERROR", "switching contexts took too long", "fail", "reset GPU", _VENDOR),
    Xid(110, "SEC_FAULT_ERROR", "security fault", "fail", "reset GPU",
        "undo the last change of hardware and turn the node off and on; then ask the vendor"),
    Xid(119, "GSP_RPC_TIMEOUT", "the GPU's own processor (GSP) did not answer", "fail", "reset GPU", _SOFTWARE),
    Xid(120, "GSP_ERROR", "error on the GPU's own processor (GSP)", "fail", "reset GPU", _SOFTWARE),
    Xid(121, "C2C_ERROR", "corrected errors on the link to a Grace CPU", "warn", "watch",
        "reset the GPU when it is free, so that the link is trained again"),
    Xid(136, "ALI_TRAINING_FAIL", "an NVLink could not be trained", "fail", "reset GPU", "check the link: seat, cable, switch"),
    Xid(137, "NVLINK_PRIV_ERR", "an illegal access to a peer over NVLink: mostly the application", "info", "none", _APPLICATION),
    Xid(140, "UNRECOVERABLE_ECC_ERROR_ESCAPE", "uncorrectable errors that could not be repaired by remapping", "fail", "reset GPU", _VENDOR),
    Xid(141, "ROBUST_CHANNEL_FAST_PATH_ERROR", "error of CUDA's fast path", "info", "none", _VENDOR),
    Xid(142, "ROBUST_CHANNEL_NVENC3_ERROR", "error of a video encoder", "warn", "watch", _VENDOR),
    Xid(143, "GPU_INIT_ERROR", "the GPU did not start", "fail", "reset GPU", _VENDOR),
    *(Xid(144 + n, "NVLINK_%s_ERROR" % unit, "error of NVLink 5 (%s)" % unit, "fail", "look at NVLink", _VENDOR,
          note="warn when its text says Nonfatal") for n, unit in enumerate(("SAW", "RLW", "TLW", "TREX", "NVLPW_CTRL", "NETIR", "MSE"))),
    Xid(151, "ROBUST_CHANNEL_KEY_ROTATION_ERROR", "changing keys of confidential computing failed", "warn", "restart guest", _VENDOR),
    Xid(154, "GPU_RECOVERY_ACTION_CHANGED", "what the GPU needs to recover has changed, because of another XID", "warn", "see XID 154",
        "look at the XID before it", "recovery", "fail when a reset or a reboot is required"),
    Xid(155, "NVLINK_SW_DEFINED_ERROR", "an NVLink went down on purpose", "warn", "reset GPU", _SOFTWARE),
    Xid(156, "RESOURCE_RETIREMENT_EVENT", "a part of the GPU was retired, in force after the next reset", "warn", "reset GPU", "none"),
    Xid(157, "RESOURCE_RETIREMENT_FAILURE", "a part of the GPU could not be retired: no spare is left", "fail", "watch", _VENDOR),
    Xid(158, "GPU_FATAL_TIMEOUT", "fatal timeout of the GPU", "fail", "reset GPU", _VENDOR),
    Xid(159, "ROBUST_CHANNEL_CHI_NON_DATA_ERROR", "error on the link to the CPU (C2C)", "warn", "watch", _VENDOR),
    Xid(160, "CHANNEL_RETIREMENT_EVENT", "a memory channel was retired", "warn", "watch", _SOFTWARE),
    Xid(161, "CHANNEL_RETIREMENT_FAILURE", "a memory channel could not be retired", "warn", "watch", _SOFTWARE),
    Xid(162, "PSHC_REENGAGED", "power smoothing is back", "info", "none", "none"),
    Xid(163, "PSHC_DISENGAGED", "power smoothing is off, too hot or timed out", "warn", "watch",
        "mend the cooling; after a timeout reload the driver or reset the GPU"),
    Xid(164, "PSHC_LOW_LIFETIME", "power smoothing is near the end of its life", "warn", "watch",
        "plan to replace the GPU where swings of power matter"),
    Xid(165, "PSHC_ZERO_LIFETIME", "power smoothing is worn out", "warn", "watch", "replace the GPU where swings of power matter"),
    Xid(166, "NVLINK_SECURE_CRYPTO_ERR", "traffic before the encrypted link was ready (confidential computing)", "info", "none", _VENDOR),
    Xid(167, "PCIE_FATAL_TIMEOUT", "fatal timeout on PCIe", "fail", "reboot node", _VENDOR),
    Xid(168, "REDUCED_GPU_MEMORY_CAPACITY", "errors in protected memory, seen while ECC is off", "warn", "watch",
        "turn ECC on, so that rows can be remapped"),
    Xid(169, "SEC2_HALT_ERROR", "an internal controller (SEC2) halted", "warn", "watch", _VENDOR),
    Xid(170, "NVLINK_SECURE_OTHER", "an interrupt in confidential computing", "info", "none", _VENDOR),
    Xid(171, "UNCORRECTABLE_DRAM_ERROR", "tells that the XID 48 beside it is in the GPU's memory", "fail", "reset GPU",
        "follow the row remapping: pending, failed"),
    Xid(172, "UNCORRECTABLE_SRAM_ERROR", "tells that the XID 48 beside it is inside the chip", "fail", "reset GPU",
        "SRAM threshold exceeded means replace the GPU"),
), key=lambda row: row.code))
# fmt: on

# What XID 154 says, from worst to best.
_RECOVERY = (("reboot required", "fail"), ("reset", "fail"), ("drain", "warn"), ("(none)", "info"))


def xid(code: int, rows: Sequence[Xid] = ROWS) -> Optional[Xid]:
    return next((row for row in rows if row.code == code), None)


def level_of(row: Xid, text: str = "") -> str:
    """The level of a row, by the text of the message where that tells more."""
    words = text.lower()
    if row.code == 154:
        # "... changed from 0x0 (None) to 0x2 (Node Reboot Required)"
        words = words.rpartition(" to ")[2]
        return next((level for word, level in _RECOVERY if word in words), row.level)
    if 144 <= row.code <= 150 and ("nonfatal" in words or "non-fatal" in words):
        return "warn"
    return row.level


def advice(row: Xid) -> str:
    """What to do, in one sentence."""
    first = ACTIONS.get(row.action, row.action)
    return first if row.then in ("", "none") else "%s; then %s" % (first, row.then)


COLUMNS = {
    "code": Column("int", "number in the kernel log", True, 1, 9999),
    "symbol": Column("text", "NVIDIA's name", True),
    "meaning": Column("text", "what happened", True),
    "level": Column("text", "how bad it is", True, choices=("info", "warn", "fail")),
    "action": Column("text", "what to do", True),
    "then": Column("text", "what follows when it does not help", True),
    "note": NOTE,
    "unverified": UNVERIFIED,
    "source": SOURCE,
}
TABLE = Table("xids", "XIDs", Xid, COLUMNS, ("code",), ROWS, SOURCES)
