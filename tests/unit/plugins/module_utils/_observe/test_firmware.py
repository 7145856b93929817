# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Secure Boot, IOMMU, SMBIOS words, SMT and idle states: real outputs with their reading, and machines of each kind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Sequence

import pytest
import yaml
from fakes import FakeHost

from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import CaptureHost, Result
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import Unknown
from ansible_collections.gpufleet.host.plugins.module_utils._observe import firmware, secure_boot

ROOT = Path(__file__).resolve().parents[5]
CORPUS = ROOT / "tests/corpus/secureboot"
FLAGS = ("is_uefi", "is_on", "is_in_setup_mode", "validates", "enforces")


def rows() -> list[Any]:
    cases = yaml.safe_load((ROOT / "tests/unit/cases/corpus/secureboot.yml").read_text(encoding="utf-8"))
    assert sorted(row["file"] for row in cases) == sorted(path.name for path in CORPUS.iterdir())
    return [pytest.param(row, id=row["file"]) for row in cases]


def plain(value: Any) -> Any:
    return "unknown" if isinstance(value, Unknown) else value


def flags(found: Any) -> dict[str, Any]:
    assert isinstance(found, secure_boot.SecureBoot), found
    return {name: plain(getattr(found, name)) for name in FLAGS}


@pytest.mark.parametrize("row", rows())
def test_secure_boot_of_the_corpus(row: dict[str, Any]) -> None:
    text = (CORPUS / row["file"]).read_text(encoding="utf-8")
    for said in (text, text.replace("\n", "\r\n")):
        if "mokutil" in row:
            assert flags(secure_boot.parse_mokutil(said)) == row["mokutil"]
        if "bootctl" in row:
            found = secure_boot.parse_bootctl(said)
            assert isinstance(found, secure_boot.BootCtl)
            assert flags(found.secure_boot) == row["bootctl"]
            assert plain(found.firmware) == row["firmware"]
        if "keys" in row:
            assert [[key.fingerprint, key.name] for key in secure_boot.parse_mok_keys(said)] == row["keys"]
        if "rejected" in row:
            assert secure_boot.parse_rejected_module(said) == row["rejected"]


# Words of tools


@pytest.mark.parametrize(
    ("text", "is_on", "setup"),
    [
        ("SecureBoot disabled\n", False, "unknown"),
        ("SecureBoot disabled\nPlatform is in Setup Mode\n", False, True),
        ("This system doesn't support Secure Boot\n", False, "unknown"),
    ],
)
def test_words_of_mokutil(text: str, is_on: Any, setup: Any) -> None:
    found = flags(secure_boot.parse_mokutil(text))
    assert (found["is_on"], found["is_in_setup_mode"], found["enforces"]) == (is_on, setup, False)


@pytest.mark.parametrize(
    "text",
    ["", None, "Cannot determine secure boot state.\n", "bash: mokutil: command not found", "SecureBoot aktiviert\n"],
)
def test_what_mokutil_does_not_say(text: Any) -> None:
    assert isinstance(secure_boot.parse_mokutil(text), Unknown)


@pytest.mark.parametrize(
    ("text", "is_on", "setup"),
    [
        ("System:\n   Secure Boot: disabled (setup)\n", False, True),
        ("System:\n   Secure Boot: disabled (unsupported)\n", False, "unknown"),
        ("System:\n   Secure Boot: enabled (deployed)\n", True, False),
        ("System:\n  Secure Boot: enabled\n   Setup Mode: user\n\nAvailable\n  Secure Boot: disabled\n", True, False),
        ("System:\n     Firmware: UEFI 2.70 (EDK II 1.00)\n", "unknown", "unknown"),
    ],
)
def test_words_of_bootctl(text: str, is_on: Any, setup: Any) -> None:
    found = secure_boot.parse_bootctl(text)
    assert isinstance(found, secure_boot.BootCtl)
    assert (plain(found.secure_boot.is_on), plain(found.secure_boot.is_in_setup_mode)) == (is_on, setup)


def test_bootctl_without_efi() -> None:
    found = secure_boot.parse_bootctl("Not booted with EFI\n")
    assert isinstance(found, secure_boot.BootCtl) and found.secure_boot.is_uefi is False
    assert isinstance(secure_boot.parse_bootctl("bash: bootctl: command not found"), Unknown)


def test_keys_in_the_long_form() -> None:
    found = secure_boot.parse_mok_keys(
        "[key 1]\nSHA1 Fingerprint: 76:A0:92:06:58:00:BF:37:69:01:C3:72:CD:55:A9:0E:1F:DE:D2:E0\nCertificate:\n"
        "    Data:\n        Issuer: C=GB, CN=Canonical Ltd. Master Certificate Authority\n"
        "        Subject: C=GB, ST=Isle of Man, O=Canonical Ltd., CN=Canonical Ltd. Secure Boot Signing\n"
        "[key 2]\nSHA1 Fingerprint: 00:A0:92:06:58:00:BF:37:69:01:C3:72:CD:55:A9:0E:1F:DE:D2:E0\n"
        "        Subject: CN = gpu-0 DKMS module signing key\n"
    )
    assert [(key.fingerprint[:4], key.name) for key in found] == [
        ("76a0", "Canonical Ltd. Secure Boot Signing"), ("00a0", "gpu-0 DKMS module signing key"),
    ]  # fmt: skip
    assert secure_boot.parse_mok_keys("MokListRT is empty\n") == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x06\0\0\0\x01", True),
        ("\x16\0\0\0\0", False),
        ("\x06\0\0\0\x02", "unknown"),
        ("\x01", "unknown"),
        ("", "unknown"),
        (None, "unknown"),
        ("\x06\0\0\0\udcff", "unknown"),
        (Unknown("Permission denied"), "unknown"),
    ],
)
def test_a_variable_of_the_firmware(text: Any, expected: Any) -> None:
    assert plain(secure_boot.parse_efi_flag(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("none [integrity] confidentiality\n", "integrity"),
        ("[none] integrity\n", "none"),
        ("", "unknown"),
        (None, "unknown"),
    ],
)
def test_lockdown(text: Any, expected: str) -> None:
    assert plain(secure_boot.parse_lockdown(text)) == expected


@pytest.mark.parametrize(
    ("text", "module"),
    [
        ("modprobe: ERROR: could not insert 'nvidia_uvm': Required key not available\n", "nvidia_uvm"),
        ("systemd-modules-load[411]: Failed to insert module 'nvidia': Key was rejected by service\n", "nvidia"),
        ("insmod: ERROR: could not insert module ./x.ko: Key was rejected by service\n", "x"),
        ("modprobe: FATAL: Module nvidia not found.\n", None),
        (None, None),
    ],
)
def test_modules_that_were_rejected(text: Any, module: str | None) -> None:
    assert secure_boot.parse_rejected_module(text) == module


@pytest.mark.parametrize("text", ["To Be Filled By O.E.M.\n", "Default string", "", " ", "Not Specified", "0000000"])
def test_words_that_nobody_filled_in(text: str) -> None:
    assert isinstance(firmware.parse_dmi_word(text), Unknown)


# Machines


class Machine(FakeHost):
    def __init__(self, root: Path, answers: dict[str, Result] | None = None) -> None:
        super().__init__(root)
        self.answers = answers or {}
        self.asked: list[str] = []

    def run(self, argv: Sequence[str], deadline_s: float = 10.0) -> Result:
        self.asked.append(argv[0])
        return self.answers.get(argv[0], Result(-1, "", "", "%s is not installed" % argv[0]))

    def variable(self, name: str, value: int) -> None:
        self.put("/sys/firmware/efi/efivars/" + name, "\x06\0\0\0" + chr(value))


GLOBAL = "-8be4df61-93ca-11d2-aa0d-00e098032b8c"
SHIM = "-605dab50-e046-4300-abb6-3dd810dd8b23"


def server(root: Path) -> Machine:
    host = Machine(root)
    host.variable("SecureBoot" + GLOBAL, 1)
    host.variable("SetupMode" + GLOBAL, 0)
    for name, text in {"bios_vendor": "Dell Inc.", "bios_version": "1.6.2", "bios_date": "08/11/2023", "sys_vendor": "Dell Inc.",
                       "product_name": "PowerEdge XE9680", "board_name": "0CN9TF", "chassis_type": "23"}.items():  # fmt: skip
        host.put("/sys/class/dmi/id/" + name, text + "\n")
    host.put("/sys/kernel/security/lockdown", "none [integrity] confidentiality\n")
    for unit in ("dmar0", "dmar1"):
        (root / "sys/class/iommu" / unit).mkdir(parents=True)
    for number, kind in enumerate(("DMA-FQ", "DMA", "DMA-FQ")):
        host.put("/sys/kernel/iommu_groups/%d/type" % number, kind + "\n")
    host.put("/sys/devices/system/cpu/smt/active", "1\n")
    host.put("/sys/devices/system/cpu/smt/control", "on\n")
    host.put("/sys/devices/system/cpu/cpuidle/current_driver", "intel_idle\n")
    for cpu in range(2):
        for state, (name, latency) in enumerate((("POLL", 0), ("C1", 2), ("C6", 170))):
            folder = "/sys/devices/system/cpu/cpu%d/cpuidle/state%d/" % (cpu, state)
            host.put(folder + "name", name + "\n")
            host.put(folder + "latency", "%d\n" % latency)
            host.put(folder + "disable", "%d\n" % (name == "C6" and cpu == 0))
    return host


def test_a_server(tmp_path: Path) -> None:
    host = server(tmp_path)
    seen = firmware.observe(host)
    assert seen.boot_mode == "uefi" and seen.lockdown == "integrity"
    assert flags(seen.secure_boot) == {
        "is_uefi": True, "is_on": True, "is_in_setup_mode": False, "validates": True, "enforces": True,
    }  # fmt: skip
    assert (seen.dmi["bios_version"], seen.dmi["product_name"]) == ("1.6.2", "PowerEdge XE9680")
    assert isinstance(seen.dmi["chassis_vendor"], Unknown)
    assert isinstance(seen.iommu, firmware.Iommu)
    assert (seen.iommu.units, seen.iommu.groups, seen.iommu.mode) == (("dmar0", "dmar1"), 3, "translated")
    assert seen.iommu.domains == {"DMA-FQ": 2, "DMA": 1}
    assert (seen.smt_active, seen.smt_control, seen.idle_driver) == (True, "on", "intel_idle")
    assert seen.deepest_idle == firmware.IdleState("C6", 170, 1, 2)
    assert host.asked == []


def test_states_that_no_cpu_may_use_do_not_count(tmp_path: Path) -> None:
    host = server(tmp_path)
    host.put("/sys/devices/system/cpu/cpu1/cpuidle/state2/disable", "1\n")
    deepest = firmware.observe(host).deepest_idle
    assert isinstance(deepest, firmware.IdleState) and deepest.name == "C1"


@pytest.mark.parametrize(
    ("kinds", "mode"),
    [(["identity"], "passthrough"), (["identity", "DMA"], "mixed"), (["auto"], "unknown"), ([], "unknown")],
)
def test_modes_of_the_iommu(tmp_path: Path, kinds: list[str], mode: str) -> None:
    host = Machine(tmp_path)
    (tmp_path / "sys/class/iommu/ivhd0").mkdir(parents=True)
    for number, kind in enumerate(kinds):
        host.put("/sys/kernel/iommu_groups/%d/type" % number, kind + "\n")
    seen = firmware.observe_iommu(host)
    assert isinstance(seen, firmware.Iommu) and plain(seen.mode) == mode


def test_an_iommu_that_is_off(tmp_path: Path) -> None:
    (tmp_path / "sys/class/iommu").mkdir(parents=True)
    seen = firmware.observe_iommu(Machine(tmp_path))
    assert isinstance(seen, firmware.Iommu) and seen.mode == "off" and seen.groups == 0


def test_validation_that_was_turned_off_in_shim(tmp_path: Path) -> None:
    host = server(tmp_path)
    host.variable("MokSBStateRT" + SHIM, 1)
    seen = secure_boot.observe(host)
    assert (seen.is_on, seen.validates, seen.enforces) == (True, False, False)


def test_variables_that_are_hidden_are_asked_of_mokutil(tmp_path: Path) -> None:
    (tmp_path / "sys/firmware/efi").mkdir(parents=True)
    host = Machine(
        tmp_path, {"mokutil": Result(0, "SecureBoot enabled\nSecureBoot validation is disabled in shim\n", "")}
    )
    seen = secure_boot.observe(host)
    assert (seen.is_on, seen.validates) == (True, False) and host.asked == ["mokutil"]
    silent = secure_boot.observe(Machine(tmp_path))
    assert isinstance(silent.is_on, Unknown) and isinstance(silent.validates, Unknown) and silent.is_uefi is True


def test_a_machine_of_the_old_kind(tmp_path: Path) -> None:
    (tmp_path / "sys/firmware/acpi").mkdir(parents=True)
    seen = firmware.observe(Machine(tmp_path))
    assert seen.boot_mode == "bios" and seen.secure_boot.is_on is False and seen.secure_boot.enforces is False


def test_a_host_that_shows_nothing(tmp_path: Path) -> None:
    seen = firmware.observe(Machine(tmp_path))
    for part in (
        seen.boot_mode,
        seen.lockdown,
        seen.iommu,
        seen.smt_active,
        seen.smt_control,
        seen.idle,
        seen.idle_driver,
    ):
        assert isinstance(part, Unknown)
    for name in FLAGS:
        assert isinstance(getattr(seen.secure_boot, name), Unknown)
    assert all(isinstance(word, Unknown) for word in seen.dmi.values())
    assert isinstance(seen.deepest_idle, Unknown)


def capture(folder: Path, argv: list[str], result: dict[str, Any]) -> CaptureHost:
    (folder / "commands").mkdir(parents=True)
    (folder / "capture.json").write_text('{"format": 1, "hostname": "h", "taken": ""}', encoding="utf-8")
    (folder / "commands/0000.json").write_text(
        json.dumps({"argv": argv, "rc": 0, "stderr": "", **result}), encoding="utf-8"
    )
    return CaptureHost(str(folder))


def test_captures_of_one_tool(tmp_path: Path) -> None:
    seen = secure_boot.observe(capture(tmp_path / "a", ["mokutil", "--sb-state"], {"stdout": "SecureBoot enabled\n"}))
    assert seen.is_on is True
    text = (CORPUS / "bootctl-head-ami.txt").read_text(encoding="utf-8")
    assert secure_boot.observe(capture(tmp_path / "b", ["bootctl"], {"stdout": text})).is_on is True
    none = {"rc": 255, "stdout": "", "stderr": "EFI variables are not supported on this system\n"}
    seen = secure_boot.observe(capture(tmp_path / "c", ["mokutil", "--sb-state"], none))
    assert seen.is_uefi is False and isinstance(seen.is_on, Unknown)


def test_variables_of_a_scrubbed_capture(tmp_path: Path) -> None:
    host = capture(tmp_path, ["true"], {"stdout": ""})
    folder = tmp_path / "files/sys/firmware/efi/efivars"
    folder.mkdir(parents=True)
    (folder / "SecureBoot-01234567-89ab-cdef-0123-456789abcdef").write_bytes(b"\x06\0\0\0\x01")
    seen = secure_boot.observe(host)
    assert seen.is_on is True and seen.enforces is True


def test_the_words_of_other_tools_on_secure_boot() -> None:
    kernel = "[    0.000000] secureboot: Secure boot enabled\n"
    assert flags(secure_boot.parse_mokutil(kernel))["enforces"] is True
    assert flags(secure_boot.parse_mokutil("\x1b[32mSecureBoot enabled\x1b[0m\r\n"))["is_on"] is True
    sbctl = secure_boot.parse_bootctl("Setup Mode:\t\u2717 Enabled\nSecure Boot:\t\u2717 Disabled\n")
    assert isinstance(sbctl, secure_boot.BootCtl)
    assert (sbctl.secure_boot.is_on, sbctl.secure_boot.is_in_setup_mode) == (False, True)
    coloured = secure_boot.parse_bootctl("  Secure Boot: \x1b[0;1;32menabled\x1b[0m (deployed)\n")
    assert isinstance(coloured, secure_boot.BootCtl)
    assert (coloured.secure_boot.is_on, coloured.secure_boot.is_in_setup_mode) == (True, False)


def test_a_rejected_module_by_its_file_or_by_the_kernel() -> None:
    insmod = "insmod: ERROR: could not insert module /lib/modules/6.8.0/nvidia.ko: Key was rejected by service\n"
    assert secure_boot.parse_rejected_module(insmod) == "nvidia"
    assert secure_boot.parse_rejected_module("[ 12.3] Loading of unsigned module is rejected\n") == ""


def test_keys_with_a_longer_fingerprint() -> None:
    (key,) = secure_boot.parse_mok_keys("SHA256 Fingerprint=%s\n        Subject: CN=Own key\n" % ":".join(["ab"] * 32))
    assert (key.fingerprint, key.name) == ("ab" * 32, "Own key")
