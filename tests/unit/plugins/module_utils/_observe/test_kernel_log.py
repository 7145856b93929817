# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel log: XIDs, SXids, links, memory windows, the IOMMU and signatures, in each form that logs have.

Real outputs with their reading are in test_driver and test_firmware, by their kind.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Sequence

import pytest
from fakes import FakeHost

from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import CaptureHost, Result
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import Unknown
from ansible_collections.gpufleet.host.plugins.module_utils._observe import kernel_log
from ansible_collections.gpufleet.host.plugins.module_utils._observe.kernel_lines import entries
from ansible_collections.gpufleet.host.plugins.module_utils._observe.kernel_log import KernelLog, parse_kernel_log


def some(text: str) -> KernelLog:
    found = parse_kernel_log(text)
    assert isinstance(found, KernelLog), found
    return found


MESSAGE = "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."


@pytest.mark.parametrize(
    ("stamp", "time"),
    [
        ("", ""),
        ("kernel: ", ""),
        ("[ 1843.308145] ", "1843.308145"),
        ("[    0.035500][    T1] ", "0.035500"),
        ("[   12.345678] [  C3] ", None),
        ("<4>[   12.345678] ", "12.345678"),
        ("[Fri Aug 30 11:11:22 2024] ", "Fri Aug 30 11:11:22 2024"),
        ("2026-11-30T05:27:58+0000 gpu-0 kernel: ", "2026-11-30T05:27:58+0000"),
        ("2026-11-30T05:27:58+01:00 gpu-0.example.org kernel: [   12.345678] ", "2026-11-30T05:27:58+01:00"),
        ("2026-11-30T05:27:58,123456+00:00 ", "2026-11-30T05:27:58,123456+00:00"),
        ("Jun 30 11:07:05 gpu-0 kernel: ", "Jun 30 11:07:05"),
        ("Jun  3 11:07:05 gpu-0 kernel: [ 1843.308145] ", "Jun  3 11:07:05"),
        ("> [ 1843.308145] ", "1843.308145"),
        ("kern  :err   : [ 1843.308145] ", "1843.308145"),
        ("10.5.0.3: kern: warning: [2026-04-22T21:30:51.870495804Z]: ", "2026-04-22T21:30:51.870495804Z"),
        ("[Jun 3 11:07] ", "Jun 3 11:07"),
        ("[  +0.000005] ", ""),
        ("kernel: [ 1843.308145] ", "1843.308145"),
        ("Fri 2024-08-30 11:11:22 UTC gpu-0 kernel: ", "2024-08-30 11:11:22"),
        ("1725016282.123456 gpu-0 kernel: ", "1725016282.123456"),
        ("Jun  3 11:07:05 kernel: ", "Jun  3 11:07:05"),
        ("M\xe4r 03 11:07:05 gpu-0 kernel: ", "M\xe4r 03 11:07:05"),
        ("\u0441\u0435\u043d 09 01:57:57 gpu-0 kernel: ", "\u0441\u0435\u043d 09 01:57:57"),
        ("9\u6708 09 01:57:57 gpu-0 kernel: ", "9\u6708 09 01:57:57"),
    ],
)
def test_the_time_of_a_line(stamp: str, time: str | None) -> None:
    (xid,) = some(stamp + MESSAGE + "\n").nvrm.xids
    assert (xid.address, xid.code, xid.count) == ("0000:3b:00.0", 79, 1)
    if time is not None:
        assert (xid.first, xid.last) == (time, time)
        (entry,) = entries(stamp + MESSAGE, lambda line: True)
        assert entry.message == MESSAGE


def test_an_address_before_a_message_is_no_stamp() -> None:
    (entry,) = entries(
        "2026-11-30T05:27:58,123456+00:00 pci 0000:3b:00.0: BAR 1: failed to assign [mem size 0x1]",
        lambda line: "BAR" in line,
    )
    assert entry.message.startswith("pci 0000:3b:00.0: BAR 1")


def test_xids_are_counted_by_gpu_and_code() -> None:
    log = some(
        "2026-01-01T00:00:01+0000 h kernel: NVRM: Xid (PCI:0000:01:00): 31, pid=9, name=python3, Ch 00000008, MMU Fault\n"
        "2026-01-01T00:00:02+0000 h kernel: NVRM: Xid (PCI:0000:01:00): 31, pid=9, name=python3, Ch 00000009, MMU Fault\n"
        "2026-01-01T00:00:03+0000 h kernel: NVRM: Xid (PCI:0000:02:00 GPU-I:05): 94, pid=7194, Contained: CE User Channel\n"
        "2026-01-01T00:00:04+0000 h kernel: NVRM: Xid (0000:03:00): 13, 0001 00000000 0000a297\n"
        "2026-01-01T00:00:05+0000 h kernel: NVRM: Xid (PCI:0000:02:00 GPU-I:05 GPU-CI:02): 94, pid=1, Contained\n"
        "2026-01-01T00:00:06+0000 h kernel: NVRM: Xid (PCI:0000:dc:00): 45, pid=1, name=p, Ch 1 caused by previous Xid 149\n"
    )
    assert [(xid.address, xid.code, xid.count, xid.first[11:19], xid.last[11:19]) for xid in log.nvrm.xids] == [
        ("0000:01:00.0", 31, 2, "00:00:01", "00:00:02"),
        ("0000:02:00.0", 94, 2, "00:00:03", "00:00:05"),
        ("0000:03:00.0", 13, 1, "00:00:04", "00:00:04"),
        ("0000:dc:00.0", 45, 1, "00:00:06", "00:00:06"),
    ]
    assert log.nvrm.xids[0].text == "pid=9, name=python3, Ch 00000008, MMU Fault"
    assert log.nvrm.xids[3].cause == 149
    assert log.first == "2026-01-01T00:00:01+0000" and log.last == "2026-01-01T00:00:06+0000"


def test_links_of_nvlink_5_xids() -> None:
    log = some(
        "NVRM: Xid (PCI:0018:01:00): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0409a0c2 0x00000008)\n"
        "NVRM: Xid (PCI:0018:01:00): 145, RLW_RXPIPE Fatal XC0 i0 Link 05 (0x0409a0c2 0x00000008)\n"
        "NVRM: Xid (PCI:0019:01:00): 149, NETIR Fatal XC0 i0 Link -1 (0x000fe406)\n"
    )
    first, second = log.nvrm.xids
    assert (first.address, first.links, first.is_fatal, first.count) == ("0018:01:00.0", (5, 13), True, 2)
    assert (second.links, second.is_fatal) == ((-1,), True)
    assert log.nvrm.lost == ()


def test_sxids_are_counted_by_link_and_their_details_are_not() -> None:
    log = some(
        "[  117.9] nvidia-nvswitch3: SXid (PCI:0000:08:00.0): 22013, Non-fatal, Link 60 Minion Link DLREQ interrupt\n"
        "[  117.9] nvidia-nvswitch3: SXid (PCI:0000:08:00.0): 22013, Severity 0 Engine instance 60 Sub-engine instance 00\n"
        "[  117.9] nvidia-nvswitch3: SXid (PCI:0000:08:00.0): 22013, Data {0x0000003c, 0x0000003c}\n"
        "[  118.0] nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): 24007, Fatal, Link 28 sourcetrack timeout error (First)\n"
        "[  119.0] nvidia-nvswitch0: SXid (PCI:0000:07:00.0): 10001, Non-fatal, PRI WRITE SYSB error, instance=3\n"
    )
    assert [(one.address, one.code, one.is_fatal, one.link, one.count) for one in log.nvrm.sxids] == [
        ("0000:08:00.0", 22013, False, 60, 1),
        ("0000:c3:00.0", 24007, True, 28, 1),
        ("0000:07:00.0", 10001, False, None, 1),
    ]
    assert log.nvrm.xids == ()


def test_a_mismatch_whose_lines_have_a_stamp_each() -> None:
    stamp = "Aug 11 06:47:54 h kernel: NVRM: "
    text = (
        "API mismatch: the client has the version 535.54.03, but|this kernel module has the version 530.30.02.  Please|"
        "make sure that this kernel module and all NVIDIA driver|components have the same version.|"
        "GPU 0000:07:00.0: RmInitAdapter failed! (0x61:0x56:1770)|GPU 0000:07:00.0: rm_init_adapter failed, device minor number 0"
    )
    log = some("".join("%s%s\n" % (stamp, row) for row in text.split("|")))
    (found,) = log.nvrm.mismatches
    assert (found.client, found.module, found.count) == ("535.54.03", "530.30.02", 1)
    (failure,) = log.nvrm.init_failures
    assert (failure.address, failure.minor, failure.count) == ("0000:07:00.0", 0, 1)


def test_mismatches_are_counted_by_program() -> None:
    row = (
        "[    9.4] NVRM: API mismatch: the client '%s' (pid 10)\n               NVRM: has the version 595.84, but this"
        " kernel module has\n               NVRM: the version 595.80.  Please make sure\n"
    )
    log = some(row % "kwin" + row % "Xorg" + row % "kwin")
    assert {found.program: found.count for found in log.nvrm.mismatches} == {"kwin": 2, "Xorg": 1}


def test_failures_are_grouped_by_gpu() -> None:
    pair = "NVRM: RmInitAdapter failed! (0x26:0xffff:1127)\nNVRM: rm_init_adapter failed for device bearing minor number %d\n"
    log = some(pair % 0 + pair % 1 + pair % 0)
    assert [(one.minor, one.code, one.count) for one in log.nvrm.init_failures] == [
        (0, "0x26:0xffff:1127", 2), (1, "0x26:0xffff:1127", 1),
    ]  # fmt: skip


def test_gpus_that_the_driver_does_not_take() -> None:
    log = some(
        "[ 1.0] NVRM: The NVIDIA GPU 0000:01:00.0 (PCI ID: 10de:1b80)\n"
        "       NVRM: installed in this system is not supported by open\n"
        "       NVRM: nvidia.ko because it does not include the required GPU\n"
        "[ 2.0] NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.\n"
    )
    assert log.nvrm.unsupported["0000:01:00.0"].startswith("is not supported by open nvidia.ko")
    assert log.nvrm.lost == ("0000:3b:00.0",)


def test_windows_that_found_no_place() -> None:
    log = some(
        "[ 0.5] pci 0000:3b:00.0: BAR 1: no space for [mem size 0x2000000000 64bit pref]\n"
        "[ 0.5] pci 0000:3b:00.0: BAR 1: failed to assign [mem size 0x2000000000 64bit pref]\n"
        "[ 0.5] pci 0000:5e:00.0: BAR 1 [mem size 0x400000000 64bit pref]: can't assign; no space\n"
        "[ 0.5] pci 0000:5e:00.0: BAR 5 [io  size 0x0080]: failed to assign\n"
        "[ 0.5] pci 0000:86:00.0: BAR 1: no space for [mem size 0x2000000000 64bit pref]\n"
        "[ 0.6] pci 0000:86:00.0: BAR 1: assigned [mem 0x20000000000-0x21fffffffff 64bit pref]\n"
        "[ 0.5] pci 0000:af:00.0: VF BAR 0 [mem size 0x02000000 64bit pref]: can't assign; no space\n"
        "[ 0.5] pci 0000:b0:00.0: BAR 7: no space for [mem size 0x02000000 64bit pref]\n"
        "[ 0.7] pci 0000:b1:00.0: not enough MMIO resources for SR-IOV\n"
        "[ 9.0] NVRM: This PCI I/O region assigned to your NVIDIA device is invalid:\n"
        "       NVRM: BAR1 is 0M @ 0x0 (PCI:0000:d8:00.0)\n"
        "[ 9.0] pci 0000:93:00.0: bridge window [mem size 0x3018000000 64bit pref]: can't assign; no space\n"
    )
    assert [(one.address, one.index, one.kind, one.is_virtual) for one in log.pci.bars] == [
        ("0000:3b:00.0", 1, "mem", False),
        ("0000:5e:00.0", 1, "mem", False),
        ("0000:5e:00.0", 5, "io", False),
        ("0000:af:00.0", 0, "mem", True),
        ("0000:b0:00.0", 7, "mem", True),
        ("0000:d8:00.0", 1, "mem", False),
    ]
    assert log.pci.without_sriov_room == ("0000:b1:00.0",)


def test_errors_of_links_by_kind() -> None:
    log = some(
        "[ 1.0] pcieport 0000:00:1c.7: AER: Corrected error received: 0000:01:00.0\n"
        "[ 1.0] nvme 0000:01:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)\n"
        "[ 1.0] nvme 0000:01:00.0:   device [144d:a80a] error status/mask=00000001/0000e000\n"
        "[ 2.0] nvme 0000:01:00.0: AER: PCIe Bus Error: severity=Correctable, type=Physical Layer, (Receiver ID)\n"
        "[ 3.0] pcieport 0000:00:01.0: PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=Transaction Layer, (Requester ID)\n"
        "[ 4.0] pcieport 0000:00:01.0: PCIe Bus Error: severity=Uncorrectable (Fatal), type=Data Link Layer, (Receiver ID)\n"
        "[ 5.0] pcieport 0000:00:03.0: AER: Multiple Correctable error message received from 0000:41:00.0\n"
    )
    assert [(one.address, one.severity, one.layer, one.count, one.first, one.last) for one in log.pci.aer] == [
        ("0000:01:00.0", "corrected", "Physical Layer", 2, "1.0", "2.0"),
        ("0000:00:01.0", "non-fatal", "Transaction Layer", 1, "3.0", "3.0"),
        ("0000:00:01.0", "fatal", "Data Link Layer", 1, "4.0", "4.0"),
        ("0000:41:00.0", "corrected", "", 1, "5.0", "5.0"),
    ]


def test_signatures_secure_boot_and_the_iommu() -> None:
    log = some(
        "[    0.000000] secureboot: Secure boot enabled\n"
        "[    0.000000] Kernel is locked down from EFI Secure Boot mode; see man kernel_lockdown.7\n"
        "[    0.330654] iommu: Default domain type: Passthrough (set via kernel command line)\n"
        "[   11.0] Loading of unsigned module is rejected\n"
        "[   11.1] Lockdown: modprobe: unsigned module loading is restricted; see man kernel_lockdown.7\n"
        "[   11.1] Lockdown: modprobe: unsigned module loading is restricted; see man kernel_lockdown.7\n"
        "[   12.0] Lockdown: systemd-logind: hibernation is restricted; see man kernel_lockdown.7\n"
        "[   13.0] nvidia: module verification failed: signature and/or required key missing - tainting kernel\n"
    )
    assert (log.secure_boot, log.locked_down_by, log.iommu_domain) == (True, "EFI Secure Boot mode", "passthrough")
    assert len(log.rejected) == 2
    assert log.unsigned == ("nvidia",)
    assert not log.is_cut


def test_what_a_log_does_not_say_is_unknown() -> None:
    log = some("[    0.000000] Linux version 6.8.0\n[    0.1] Secure boot could not be determined (mode 0)\n")
    for silent in (log.secure_boot, log.locked_down_by, log.iommu_domain):
        assert isinstance(silent, Unknown)
    assert log.nvrm.xids == () and log.pci.bars == () and log.rejected == ()


def test_lines_of_a_message_stay_together() -> None:
    text = "[ 1.0] NVRM: a\n       NVRM: b\n[ 2.0] other\n       NVRM: of the other\n[ 3.0] NVRM: c\n"
    found = [entry.message for entry in entries(text, lambda line: "NVRM" in line)]
    assert found == ["NVRM: a\nNVRM: b", "NVRM: c"]


@pytest.mark.parametrize("stamp", ["", "[ 1.0] "])
def test_lines_that_were_all_indented_by_a_report(stamp: str) -> None:
    text = "    %sNVRM: a\n    %sNVRM: b\n" % (stamp, stamp)
    assert [entry.message for entry in entries(text, lambda line: True)] == ["NVRM: a", "NVRM: b"]


def test_lines_that_a_report_indents_below_its_command() -> None:
    log = some(
        "$ sudo dmesg | grep NVRM\n    NVRM: GPU at PCI:0000:01:00: GPU-1e61ad7a\n"
        "    NVRM: Xid (PCI:0000:01:00): 31, pid=1, name=a, MMU Fault\n    NVRM: Xid (PCI:0000:02:00): 79, pid=1, lost\n"
    )
    assert [(xid.address, xid.code) for xid in log.nvrm.xids] == [("0000:01:00.0", 31), ("0000:02:00.0", 79)]


def test_addresses_of_old_drivers() -> None:
    log = some("NVRM: Xid (0000:05): 6, PE0002 0184\nNVRM: XID (PCI:0000:06:00): 46\n")
    assert [(xid.address, xid.code) for xid in log.nvrm.xids] == [("0000:05:00.0", 6), ("0000:06:00.0", 46)]


def test_a_gpu_that_needs_a_driver_of_an_older_branch() -> None:
    log = some(
        "[ 5.0] NVRM: The NVIDIA NVIDIA GeForce GTX 1050 GPU installed in this system is\n"
        "       NVRM:  supported through the NVIDIA 580.xx Legacy drivers. Please\n"
        "       NVRM:  visit the page of drivers.  The 595.71.05 NVIDIA driver will ignore\n       NVRM:  this GPU.\n"
        "[ 5.1] NVRM: No NVIDIA GPU found.\n"
    )
    [(name, reason)] = log.nvrm.unsupported.items()
    assert name == "NVIDIA GeForce GTX 1050"
    assert reason.startswith("is supported through the NVIDIA 580.xx Legacy drivers.")
    assert log.nvrm.gave_up == "No NVIDIA GPU found"


def test_a_module_that_gave_up_until_it_loaded() -> None:
    refused = (
        "[ 9.0] NVRM: The NVIDIA probe routine was not called for 3 device(s).\n"
        "[ 9.0] NVRM: This can occur when a driver such as:\nNVRM: nouveau, rivafb, nvidiafb or rivatv\n"
        "[ 9.1] NVRM: No NVIDIA devices probed.\n"
    )
    nvrm = some(refused).nvrm
    assert (nvrm.gave_up, nvrm.unclaimed) == ("No NVIDIA devices probed", 3)
    nvrm = some(refused + "[ 90.0] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue\n").nvrm
    assert (nvrm.gave_up, nvrm.unclaimed) == ("", 0)


def test_a_log_that_lost_its_beginning() -> None:
    assert some("[ 1843.308145] NVRM: x\n").is_cut
    assert not some("[    0.000000] Linux version 6.8.0\n").is_cut
    assert not some("1725016282.123456 gpu-0 kernel: Linux version 6.8.0\n").is_cut
    assert some("Jun 30 11:07:05 h kernel: x\n" * kernel_log.MOST_LINES).is_cut


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "not there"),
        ("", "not there: the log is empty"),
        ("-- No entries --\n", "not there: the log is empty"),
        ("dmesg: read kernel buffer failed: Operation not permitted\n", "not permitted"),
        ("No journal files were opened due to insufficient permissions.\n", "not permitted"),
        (Unknown("journalctl hung: no answer in 15 s"), "journalctl hung"),
    ],
)
def test_no_log_is_unknown(text: Any, reason: str) -> None:
    found = parse_kernel_log(text)
    if text == "No journal files were opened due to insufficient permissions.\n":
        assert isinstance(found, Unknown)
        return
    assert isinstance(found, Unknown) and found.reason.startswith(reason)


# Observing


class Machine(FakeHost):
    def __init__(self, root: Path, answers: dict[str, Result]) -> None:
        super().__init__(root)
        self.answers = answers
        self.asked: list[str] = []

    def run(self, argv: Sequence[str], deadline_s: float = 10.0) -> Result:
        assert deadline_s <= 20
        self.asked.append(argv[0])
        return self.answers.get(argv[0], Result(-1, "", "", "%s is not installed" % argv[0]))


def test_the_journal_is_one_run(tmp_path: Path) -> None:
    host = Machine(tmp_path, {"journalctl": Result(0, "2026-01-01T00:00:01+0000 h kernel: " + MESSAGE, "")})
    log = kernel_log.observe(host)
    assert isinstance(log, KernelLog) and log.nvrm.lost == ("0000:3b:00.0",)
    assert host.asked == ["journalctl"]


@pytest.mark.parametrize(
    "journal", [None, Result(0, "-- No entries --\n", ""), Result(1, "", "No journal files were found.\n")]
)
def test_without_a_journal_dmesg_tells(tmp_path: Path, journal: Result | None) -> None:
    answers = {"dmesg": Result(0, "[   12.3] " + MESSAGE, "")}
    host = Machine(tmp_path, {**answers, **({"journalctl": journal} if journal else {})})
    log = kernel_log.observe(host)
    assert isinstance(log, KernelLog) and log.nvrm.xids[0].first == "12.3"
    assert host.asked == ["journalctl", "dmesg"]


def test_a_journal_that_hangs_is_not_asked_twice(tmp_path: Path) -> None:
    host = Machine(tmp_path, {"journalctl": Result(-1, "", "", "journalctl hung: no answer in 15 s")})
    log = kernel_log.observe(host)
    assert isinstance(log, Unknown) and "hung" in log.reason and host.asked == ["journalctl"]


def test_neither_of_them(tmp_path: Path) -> None:
    log = kernel_log.observe(Machine(tmp_path, {}))
    assert isinstance(log, Unknown) and "not installed" in log.reason


def test_a_capture_with_dmesg_alone(tmp_path: Path) -> None:
    (tmp_path / "commands").mkdir()
    (tmp_path / "capture.json").write_text('{"format": 1, "hostname": "h", "taken": ""}', encoding="utf-8")
    row = {"argv": ["dmesg", "-T"], "rc": 0, "stdout": "[Fri Aug 30 11:11:22 2024] " + MESSAGE, "stderr": ""}
    (tmp_path / "commands/0000.json").write_text(json.dumps(row), encoding="utf-8")
    log = kernel_log.observe(CaptureHost(str(tmp_path)))
    assert isinstance(log, KernelLog) and log.nvrm.lost == ("0000:3b:00.0",)
