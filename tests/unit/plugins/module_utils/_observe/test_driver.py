# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The driver in all its places: real outputs with their reading, and hosts that lack a part of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Callable, Sequence

import pytest
import yaml
from fakes import FakeHost, Program

from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import Result
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import Unknown
from ansible_collections.gpufleet.host.plugins.module_utils._observe import (
    apt,
    dkms,
    driver,
    driver_module,
    frameworks,
    kernel_log,
    libraries,
    packages,
    smi_errors,
)

ROOT = Path(__file__).resolve().parents[5]
CORPUS = ROOT / "tests/corpus/driver-version"


def rows() -> list[Any]:
    cases = yaml.safe_load((ROOT / "tests/unit/cases/corpus/driver-version.yml").read_text(encoding="utf-8"))
    assert sorted(row["file"] for row in cases) == sorted(path.name for path in CORPUS.iterdir())
    return [pytest.param(row, id=row["file"]) for row in cases]


def plain(value: Any) -> Any:
    return "unknown" if isinstance(value, Unknown) else list(value) if isinstance(value, tuple) else value


# Each reads a text into what the table says of it.


def read_kernel_log(text: str) -> dict[str, Any]:
    log = kernel_log.parse_kernel_log(text)
    assert not isinstance(log, Unknown)
    said = {
        "mismatches": [[found.client, found.module, found.program] for found in log.nvrm.mismatches],
        "init_failures": [[found.address, found.minor, found.code] for found in log.nvrm.init_failures],
        "lost": list(log.nvrm.lost),
        "missing_firmware": list(log.nvrm.missing_firmware),
        "failed_probes": log.nvrm.failed_probes,
        "loads": [[found.version, found.is_open] for found in log.nvrm.loads],
    }
    assert log.nvrm.xids == () and log.nvrm.sxids == ()
    return {"first": log.first, **{name: value for name, value in said.items() if value}}


def read_modinfo(text: str) -> dict[str, Any]:
    found = driver_module.parse_modinfo(text)
    names = ("filename", "version", "license", "is_open", "is_dkms_built", "signer", "firmware")
    return {name: plain(getattr(found, name)) for name in names}


def read_proc_version(text: str) -> dict[str, Any]:
    found = driver_module.parse_proc_version(text)
    return {name: getattr(found, name) for name in ("version", "is_open", "architecture")}


def read_found_modules(text: str) -> dict[str, Any]:
    return {kernel: list(paths) for kernel, paths in driver_module.parse_found_modules(text).items()}


def read_smi_error(text: str) -> dict[str, Any]:
    found = smi_errors.parse_smi_error(text)
    assert found is not None
    said = {"library": plain(found.library_version), "module": plain(found.module)}
    said["lost"] = [gpu.address for gpu in found.lost]
    return {"kind": found.kind, **{name: value for name, value in said.items() if value not in ("unknown", [])}}


def read_packages(found: Sequence[packages.Package], names: Sequence[str]) -> list[dict[str, Any]]:
    assert all(package.is_installed and not package.is_held for package in found)
    return [{name: getattr(package, name) for name in names} for package in found]


def read_dpkg(text: str) -> Any:
    return read_packages(packages.parse_dpkg(text), ("name", "version", "architecture", "state", "component"))


def read_rpm(text: str) -> Any:
    return read_packages(packages.parse_rpm(text), ("name", "version", "architecture", "component"))


def read_dkms(text: str) -> dict[str, Any]:
    found = dkms.parse_dkms(text)
    names = ("module", "version", "kernel", "architecture", "state", "note")
    said = {"broken": [list(place) for place in found.broken], "errors": len(found.errors)}
    entries = [[getattr(entry, name) for name in names] for entry in found.entries]
    return {"entries": entries, **{name: value for name, value in said.items() if value}}


def read_apt_refusal(text: str) -> dict[str, Any]:
    found = apt.parse_apt_refusal(text)
    assert found is not None
    said = {
        "held": list(found.held),
        "unmet": [[one.package, one.relation, one.wanted] for one in found.unmet],
        "is_conflict": found.is_conflict,
        "errors": list(found.errors),
    }
    return {name: value for name, value in said.items() if value}


def read_apt_policy(text: str) -> dict[str, Any]:
    (found,) = apt.parse_apt_policy(text)
    offers = [[offer.version, offer.priority] for offer in found.offers]
    return {"package": found.package, "installed": found.installed, "candidate": found.candidate, "offers": offers}


def read_apt_upgradable(text: str) -> dict[str, Any]:
    (found,) = apt.parse_apt_upgradable(text)
    names = ("package", "installed", "candidate", "leaves_branch", "named_branch")
    return {name: getattr(found, name) for name in names}


def read_cudnn(text: str) -> Any:
    found = frameworks.parse_cudnn_mismatch(text)
    assert found is not None
    return [found.runtime, found.compiled]


READERS: dict[str, Callable[[str], Any]] = {
    name[len("read_") :]: value for name, value in list(globals().items()) if name.startswith("read_")
}


@pytest.mark.parametrize("row", rows())
def test_driver_versions_of_the_corpus(row: dict[str, Any]) -> None:
    text = (CORPUS / row["file"]).read_text(encoding="utf-8")
    (name,) = set(row) - {"file"}
    assert READERS[name](text) == row[name]
    assert READERS[name](text.replace("\n", "\r\n")) == row[name]


# The module


@pytest.mark.parametrize(
    ("text", "version", "is_open", "architecture"),
    [
        (
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  520.56.06  Thu Oct  6 21:38:55 UTC 2022\n"
            "GCC version:  gcc version 10.2.1 20210110 (Debian 10.2.1-6)\n",
            "520.56.06", False, "x86_64",
        ),
        (
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.144  Release Build  (root@)  \n",
            "570.144", True, "x86_64",
        ),
        # Of NVIDIA's boards for robots and cars.
        ("NVRM version: NVIDIA UNIX Kernel Module for aarch64  34.1.1  Release Build\n", "34.1.1", False, "aarch64"),
        ("NVRM version: NVIDIA UNIX Module for aarch64  560.35.03\n", None, None, None),
    ],
)  # fmt: skip
def test_the_loaded_module(text: str, version: str | None, is_open: bool, architecture: str) -> None:
    found = driver_module.parse_proc_version(text)
    if version is None:
        assert isinstance(found, Unknown)
    else:
        assert found == driver_module.ModuleVersion(version, is_open, architecture)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("550.90.07\n", "550.90.07"),
        ("[root@node1 ~]# modinfo -F version nvidia\n510.47.03\n", "510.47.03"),
        ("modinfo: ERROR: Module nvidia not found.\n", "error: modinfo: ERROR: Module nvidia not found."),
        ("", "not there"),
        (None, "not there: the module is not loaded"),
        ("595.80", "595.80"),
        ("12.4", "12.4"),
    ],
)
def test_a_version_alone(text: Any, expected: str) -> None:
    found = driver_module.parse_module_version(text)
    assert (found.reason if isinstance(found, Unknown) else found) == expected


MODINFO = """\
filename:       /lib/modules/5.15.0-91-generic/kernel/nvidia-550/nvidia.ko
firmware:       nvidia/550.90.07/gsp_tu10x.bin
version:        550.90.07
supported:      external
license:        NVIDIA
vermagic:       5.15.0-91-generic SMP mod_unload modversions
"""


def test_a_module_without_signature() -> None:
    found = driver_module.parse_modinfo(MODINFO)
    assert isinstance(found, driver_module.Modinfo)
    assert (found.signer, found.kernel, found.is_open, found.is_dkms_built) == ("", "5.15.0-91-generic", False, False)
    signed = driver_module.parse_modinfo(MODINFO + "sig_id:         PKCS#7\nsigner:         Canonical Ltd.\n")
    assert isinstance(signed, driver_module.Modinfo) and signed.signer == "Canonical Ltd."


def test_a_module_in_an_indented_report() -> None:
    text = "modinfo nvidia:\n    filename:       /lib/modules/6.8.0-90-generic/updates/dkms/nvidia.ko\n    version:        590.44.01\n"
    found = driver_module.parse_modinfo(text)
    assert isinstance(found, driver_module.Modinfo) and (found.version, found.is_dkms_built) == ("590.44.01", True)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("modinfo: ERROR: Module nvidia not found.\n", "not there: modinfo: ERROR: Module nvidia not found."),
        ("", "not there"),
        (None, "not there"),
        ("bash: modinfo: command not found\n", "not there: bash"),
    ],
)
def test_no_module_for_this_kernel(text: Any, reason: str) -> None:
    found = driver_module.parse_modinfo(text)
    assert isinstance(found, Unknown) and found.reason.startswith(reason)


def test_only_the_module_itself_counts_in_a_list() -> None:
    text = (
        "kernel/drivers/video/fbdev/nvidia/nvidiafb.ko: kernel/drivers/video/fbdev/core/svgalib.ko\n"
        "updates/dkms/nvidia-uvm.ko: updates/dkms/nvidia.ko\nupdates/dkms/nvidia.ko.zst:\n"
        "kernel/nvidia-550/nvidia.ko: kernel/drivers/acpi/video.ko\n"
    )
    assert driver_module.parse_modules_dep(text) == ("updates/dkms/nvidia.ko.zst", "kernel/nvidia-550/nvidia.ko")


def test_information_on_a_gpu() -> None:
    found = driver_module.parse_gpu_information(
        "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 268\nGPU UUID: \t GPU-1\nVideo BIOS: \t 96.00.89.00.01\n"
        "Bus Type: \t PCIe\nDMA Size: \t 52 bits\nBus Location: \t 0000:19:00.0\nDevice Minor: \t 0\n"
        "GPU Firmware: \t 550.90.07\nGPU Excluded:\t No\n"
    )
    assert (found.model, found.address, found.minor, found.firmware, found.is_excluded) == (
        "NVIDIA H100 80GB HBM3", "0000:19:00.0", 0, "550.90.07", False,
    )  # fmt: skip
    asleep = driver_module.parse_gpu_information(
        "Model: \t\t Unknown\nVideo BIOS: \t ??.??.??.??.??\nGPU Firmware: N/A\n"
    )
    assert isinstance(asleep.vbios, Unknown) and isinstance(asleep.firmware, Unknown)
    assert asleep.firmware.reason.startswith("not applicable")


# DKMS


@pytest.mark.parametrize(
    ("line", "entry"),
    [
        (
            "nvidia/515.65.01, 5.18.15-200.fc36.x86_64, x86_64: installedDeprecated feature: REMAKE_INITRD",
            ("nvidia", "515.65.01", "5.18.15-200.fc36.x86_64", "x86_64", "installed"),
        ),
        ("nvidia, 470.57.02: added", ("nvidia", "470.57.02", "", "", "added")),
        (
            "nvidia, 430.40, 3.10.0-957.el7.x86_64, x86_64: installed-weak from 3.10.0-862.el7.x86_64",
            ("nvidia", "430.40", "3.10.0-957.el7.x86_64", "x86_64", "installed-weak"),
        ),
        (
            "nvidia-open/580.95.05, 6.12.0-55.el10.x86_64, x86_64: installed (Original modules exist)",
            ("nvidia-open", "580.95.05", "6.12.0-55.el10.x86_64", "x86_64", "installed"),
        ),
        ("nvidia/550.54.14: broken", ("nvidia", "550.54.14", "", "", "broken")),
        (
            "nvidia-current/535.183.01-1, 6.1.0-25-amd64: built",
            ("nvidia-current", "535.183.01-1", "6.1.0-25-amd64", "", "built"),
        ),
    ],
)
def test_forms_of_dkms_status(line: str, entry: tuple[str, ...]) -> None:
    (found,) = dkms.parse_dkms(line + "\n").entries
    assert (found.module, found.version, found.kernel, found.architecture, found.state) == entry


def test_good_lines_stand_beside_errors() -> None:
    found = dkms.parse_dkms(
        "Error! Could not locate dkms.conf file.\nFile: /var/lib/dkms/nvidia/390.48/source/dkms.conf does not exist.\n"
        "Deprecated feature: REMAKE_INITRD (/var/lib/dkms/nvidia/550.90.07/source/dkms.conf)\n"
        "nvidia/550.90.07, 6.8.0-40-generic, x86_64: installed\nrtl8812au/5.13.6: added\n"
    )
    assert found.broken == (("nvidia", "390.48"),)
    assert [entry.version for entry in found.of("6.8.0-40-generic")] == ["550.90.07"]
    assert len(found.entries) == 2


def test_a_build_that_failed_names_kernel_and_version() -> None:
    found = dkms.parse_dkms(
        "Building module:\nCleaning build area...\nError! Bad return status for module build on kernel: 6.1.0-13-amd64 (x86_64)\n"
        "Consult /var/lib/dkms/nvidia/470.57.02/build/make.log for more information.\n"
    )
    assert found.failures == (dkms.BuildFailure("6.1.0-13-amd64", "nvidia", "470.57.02"),)
    one_line = "Error! Bad return status for module build on kernel: 6.8.0 (x86_64)Consult /var/lib/dkms/nvidia/545.29.06/build/make.log"
    assert dkms.parse_dkms(one_line).failures == (dkms.BuildFailure("6.8.0", "nvidia", "545.29.06"),)


def test_a_patch_that_does_not_apply_is_a_build_that_failed() -> None:
    found = dkms.parse_dkms(
        "Building initial module for 7.0.9-76070009-generic\n"
        "ERROR (dkms apport): kernel package linux-headers-7.0.9-76070009-generic is not supported\n"
        "Error! Application of patch buildfix_kernel_6.19_part2.patch failed.\n"
        "Check /var/lib/dkms/nvidia/470.256.02/build for more information.\n"
    )
    assert found.failures == (dkms.BuildFailure("7.0.9-76070009-generic", "nvidia", "470.256.02"),)
    assert len(found.errors) == 2


class Machine(FakeHost):
    """Commands by their words, and how often each was run."""

    def __init__(self, root: Path, answers: dict[str, Result] | None = None) -> None:
        super().__init__(root)
        self.answers = answers or {}
        self.asked: list[str] = []

    def run(self, argv: Sequence[str], deadline_s: float = 10.0) -> Result:
        self.asked.append(" ".join(argv))
        return super().run(argv, deadline_s)

    def commands(self) -> dict[str, Program]:
        return {name: lambda argv, _stdin: self.answers[os.path.basename(argv[0])] for name in self.answers}

    def link(self, path: str, target: str) -> None:
        place = Path(self.root + path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(target)


def test_missing_headers_are_failures_of_builds() -> None:
    found = dkms.parse_dkms(
        "Building initial module nvidia/580.65.06 for 6.8.0-90-generic\n"
        "Error! Your kernel headers for kernel 6.8.0-90-generic cannot be found at /lib/modules/6.8.0-90-generic/build.\n"
        "==> ERROR: Missing 6.2.1-zen1-1-zen kernel headers for module nvidia/525.89.02.\n"
    )
    assert found.failures == (
        dkms.BuildFailure("6.8.0-90-generic", "", ""),
        dkms.BuildFailure("6.2.1-zen1-1-zen", "nvidia", "525.89.02"),
    )


def test_the_tree_of_dkms_is_read_without_running_it(tmp_path: Path) -> None:
    host = Machine(tmp_path)
    assert isinstance(dkms.observe(host), Unknown)
    tree = "/var/lib/dkms/nvidia/"
    host.put(tree + "550.90.07/source/dkms.conf", "")
    for kernel in ("6.8.0-40-generic", "6.8.0-45-generic"):
        host.put("%s550.90.07/%s/x86_64/module/nvidia.ko" % (tree, kernel), "")
    host.link(tree + "kernel-6.8.0-40-generic-x86_64", "550.90.07/6.8.0-40-generic/x86_64")
    host.put(tree + "535.183.01/source/dkms.conf", "")
    host.put(tree + "390.48/build/make.log", "")
    host.put("/var/lib/dkms/rtl8812au/5.13.6/source/dkms.conf", "")
    found = dkms.observe(host)
    assert isinstance(found, dkms.Dkms)
    states = {(entry.version, entry.kernel): entry.state for entry in found.entries}
    assert states == {
        ("390.48", ""): "broken",
        ("535.183.01", ""): "added",
        ("550.90.07", "6.8.0-40-generic"): "installed",
        ("550.90.07", "6.8.0-45-generic"): "built",
    }
    assert found.broken == (("nvidia", "390.48"),)
    assert host.asked == []


# Packages


def test_holds_and_half_installed_packages() -> None:
    found = packages.parse_dpkg(
        "hi  nvidia-fabricmanager-550 550.90.07-1 amd64\niF  nvidia-dkms-550 550.90.07-0ubuntu1 amd64\n"
        "rc  nvidia-driver-535 535.183.01-0ubuntu1 amd64\nun  nvidia-340 <none> <none> (no description available)\n"
        "ii  libcuda1:amd64                 550.90.07-1          amd64        NVIDIA CUDA Driver Library\n"
        "libnvidia-compute-470/impish,now 470.86-0ubuntu0.21.10.1 amd64 [installed,automatic]\nListing...\n"
    )
    assert [(one.name, one.is_installed, one.is_held, one.is_broken) for one in found] == [
        ("nvidia-fabricmanager-550", True, True, False),
        ("nvidia-dkms-550", False, False, True),
        ("nvidia-driver-535", False, False, False),
        ("libcuda1", True, False, False),
        ("libnvidia-compute-470", True, False, False),
    ]
    assert packages.versions_of(found, "fabricmanager") == ("550.90.07-1",)


@pytest.mark.parametrize(
    ("name", "component"),
    [
        ("nvidia-fabric-manager", "fabricmanager"),
        ("nvidia-fabricmanager", "fabricmanager"),
        ("cuda-drivers-fabricmanager-550", "fabricmanager"),
        ("nvidia-fabricmanager-dev-550", ""),
        ("libnvidia-nscq-550", "nscq"),
        ("libnvsdm", "nvsdm"),
        ("nvidia-imex-570", "imex"),
        ("nvlsm", "nvlsm"),
        ("nvidia-persistenced", "persistenced"),
        ("nvidia-driver-pinning-580", "pinning"),
        ("nvidia-dkms-580-server-open", "module"),
        ("nvidia-kernel-open-dkms", "module"),
        ("nvidia-open-kernel-dkms", "module"),
        ("kmod-nvidia-latest-dkms", "module"),
        ("linux-modules-nvidia-550-server-6.8.0-40-generic", "module"),
        ("nvidia-kernel-source-580", "module"),
        ("nvidia-kernel-common-580", "firmware"),
        ("nvidia-firmware-580-580.159.03", "firmware"),
        ("firmware-nvidia-gsp", "firmware"),
        ("libnvidia-compute-580-server", "library"),
        ("libcuda1", "library"),
        ("nvidia-driver-580-server-open", "driver"),
        ("nvidia-open", "driver"),
        ("cuda-drivers", "driver"),
        ("nvidia-headless-550", "driver"),
        ("nvidia-utils-580-server", "tool"),
        ("cuda-toolkit-12-4", "cuda"),
        ("cuda-12-4", "cuda"),
        ("nvidia-cuda-toolkit", "cuda"),
        ("cuda-cudart-12-4", ""),
        ("libcudnn9-cuda-12", "cudnn"),
        ("libcudnn8-dev", ""),
        ("libnccl2", "nccl"),
        ("nvidia-container-toolkit-base", "container"),
        ("libnvidia-container1", "container"),
        ("datacenter-gpu-manager-4-core", "dcgm"),
        ("nvidia-fs-dkms", "gds"),
        ("bash", ""),
        ("xorg-x11-drv-nvidia", "driver"),
        ("xorg-x11-drv-nvidia-470xx-cuda", "tool"),
        ("xorg-x11-drv-nvidia-cuda-libs", "library"),
        ("xorg-x11-drv-nvidia-kmodsrc", "module"),
        ("nvidia-open-driver-G06-signed-kmp-default", "module"),
        ("nvidia-compute-G06", "library"),
        ("nvidia-compute-utils-G06", "tool"),
        ("kernel-firmware-nvidia-gspx-G06", "firmware"),
        ("firmware-nvidia-tesla-535-gsp", "firmware"),
        ("nvidia-kmod-common", "firmware"),
    ],
)
def test_the_part_a_package_plays(name: str, component: str) -> None:
    assert packages.component(name) == component


def test_rows_of_rpm_and_dnf() -> None:
    found = packages.parse_rpm(
        "nvidia-fabric-manager 0:550.90.07-1 x86_64\nnvidia-driver 3:550.90.07-1.el9 x86_64\n"
        "nvidia-driver-3:550.90.07-1.el9.x86_64\nlibnccl.x86_64     2.21.5-1+cuda12.4     @cuda-rhel9-x86_64\n"
        "package nvidia-x is not installed\nUpdating Subscription Management repositories.\n"
    )
    assert [(one.name, one.version) for one in found] == [
        ("nvidia-fabric-manager", "550.90.07-1"),
        ("nvidia-driver", "3:550.90.07-1.el9"),
        ("nvidia-driver", "3:550.90.07-1.el9"),
        ("libnccl", "2.21.5-1+cuda12.4"),
    ]


def test_packages_as_people_paste_them() -> None:
    found = packages.parse_dpkg(
        "    ii  nvidia-dkms-460     460.32.03-0ubuntu1    amd64  NVIDIA DKMS package\n"
        "ii  \x1b[01;31m\x1b[Knvidia\x1b[m\x1b[K-driver-535  535.183.01-0ubuntu1   amd64  driver metapackage\r\n"
        "nvidia-utils-550/jammy,now 550.54-0ubuntu1 amd64 [Installiert,automatisch]\n"
        "nvidia-driver-550/jammy,now 550.54-0ubuntu1 amd64 [\u5df2\u5b89\u88c5\uff0c\u81ea\u52a8]\n"
        "nvidia-dkms-470/now 470.1-0ubuntu1 amd64 [residual-config]\n"
        "nvidia-driver-470/jammy-updates 510.60.02-0ubuntu1 amd64 [upgradable from: 470.103.01-0ubuntu1]\n"
    )
    assert [(one.name, one.version) for one in found] == [
        ("nvidia-dkms-460", "460.32.03-0ubuntu1"),
        ("nvidia-driver-535", "535.183.01-0ubuntu1"),
        ("nvidia-utils-550", "550.54-0ubuntu1"),
        ("nvidia-driver-550", "550.54-0ubuntu1"),
    ]


def test_lists_of_dnf_old_and_new() -> None:
    found = packages.parse_rpm(
        "Installed Packages\nnvidia-driver-cuda-libs.x86_64\n                     3:550.54.15-1.el9     @cuda-rhel9-x86_64\n"
        "Available Packages\nnvidia-driver.x86_64     3:560.28.03-1.el9     cuda-rhel9-x86_64\n"
    )
    assert [(one.name, one.version) for one in found] == [("nvidia-driver-cuda-libs", "3:550.54.15-1.el9")]
    found = packages.parse_rpm(
        "Installed packages\nakmod-nvidia.x86_64 3:560.35.03-1.fc41 rpmfusion-nonfree\n\n"
        "Available packages\nakmod-nvidia.x86_64 3:565.77-1.fc41 rpmfusion-nonfree\n"
    )
    assert [(one.name, one.version) for one in found] == [("akmod-nvidia", "3:560.35.03-1.fc41")]


def test_one_run_tells_the_packages_of_debian(tmp_path: Path) -> None:
    said = "hi  libnccl2 2.21.5-1+cuda12.4 amd64\nii  bash-cuda-x 1 all\nii  nvidia-smi 525.85.12-1 amd64\n"
    host = Machine(tmp_path, {"dpkg-query": Result(1, said, "dpkg-query: no packages found matching nvlsm\n")})
    host.put("/var/lib/dpkg/status", "")
    found = packages.observe(host)
    assert isinstance(found, tuple)
    assert [(one.name, one.is_held) for one in found] == [("libnccl2", True), ("nvidia-smi", False)]
    assert len(host.asked) == 1


def test_locks_of_dnf_are_holds(tmp_path: Path) -> None:
    said = "nvidia-driver 3:550.90.07-1.el9 x86_64\nnvidia-fabric-manager 0:550.90.07-1 x86_64\nlibnccl 0:2.21.5-1 x86_64\n"
    host = Machine(tmp_path, {"rpm": Result(0, said, "")})
    locks = "# Added lock on Mon\nnvidia-driver-3:550.90.07-1.el9.*\n!libnccl-0:2.21.5-1.*\nnvidia-fabric*-0:550*\n"
    host.put("/etc/dnf/plugins/versionlock.list", locks)
    found = packages.observe(host)
    assert isinstance(found, tuple)
    assert {one.name: one.is_held for one in found} == {
        "nvidia-driver": True, "nvidia-fabric-manager": True, "libnccl": False,
    }  # fmt: skip


@pytest.mark.parametrize(
    "answer", [None, Result(-1, "", "", "rpm hung: no answer in 20 s"), Result(2, "", "rpmdb open failed")]
)
def test_no_package_manager_that_answers(tmp_path: Path, answer: Result | None) -> None:
    found = packages.observe(Machine(tmp_path, {"rpm": answer} if answer else {}))
    assert isinstance(found, Unknown) and found.reason


# apt


def test_a_policy_with_pins_and_origins() -> None:
    (found,) = apt.parse_apt_policy(
        "nvidia-driver-550:\n  Installed: (none)\n  Candidate: 550.90.07-0ubuntu1\n  Version table:\n"
        "     550.90.07-0ubuntu1 1001\n       1001 https://example.org/repos/ubuntu2204/x86_64  Packages\n"
        "        500 http://archive.example.org/ubuntu jammy-updates/restricted amd64 Packages\n"
        " *** 550.54.15-0ubuntu1 100\n        100 /var/lib/dpkg/status\n"
    )
    assert isinstance(found.installed, Unknown)
    assert [(offer.version, offer.priority, len(offer.origins)) for offer in found.offers] == [
        ("550.90.07-0ubuntu1", 1001, 2), ("550.54.15-0ubuntu1", 100, 1),
    ]  # fmt: skip


def test_packages_that_were_left_half_configured() -> None:
    text = (
        "dpkg: error processing package nvidia-dkms-390 (--configure):\n installed nvidia-dkms-390 package failed\n"
        "dpkg: erro ao processar o pacote nvidia-driver-390:amd64 (--configure):\n"
        "dpkg: dependency problems prevent configuration of nvidia-driver-390:\n"
        "dpkg: error processing package nvidia-dkms-390 (--configure):\n"
    )
    assert apt.parse_unconfigured(text) == ("nvidia-dkms-390", "nvidia-driver-390")


def test_holds_a_name_a_line() -> None:
    assert apt.parse_apt_holds("nvidia-driver-550\nlibnccl2\n\n") == ("nvidia-driver-550", "libnccl2")
    assert apt.parse_apt_holds(None) == ()
    assert apt.parse_apt_refusal("Reading package lists... Done\n") is None


# Libraries, toolkits, frameworks


def machine_with_libraries(root: Path) -> Machine:
    host = Machine(root)
    folder = "/usr/lib/x86_64-linux-gnu/"
    host.link(folder + "libcuda.so.1", "libcuda.so.550.90.07")
    host.link(folder + "libnvidia-ml.so.1", "/etc/alternatives/glx--libnvidia-ml.so.1")
    host.link("/etc/alternatives/glx--libnvidia-ml.so.1", "/usr/lib/x86_64-linux-gnu/nvidia/current/libnvidia-ml.so.1")
    host.link(folder + "nvidia/current/libnvidia-ml.so.1", "libnvidia-ml.so.550.90.07")
    host.link(folder + "libcudnn.so.8", "libcudnn.so.8.9.2")
    host.link(folder + "libcudnn.so.9", "libcudnn.so.9.1.0")
    host.link(folder + "libnccl.so.2", "libnccl.so.2.21.5")
    host.put(
        "/usr/local/cuda-12.4/version.json",
        '{"cuda": {"version": "12.4.1"}, "nvidia_driver": {"version": "550.54.15"}}',
    )
    host.put("/usr/local/cuda-10.2/version.txt", "CUDA Version 10.2.89\n")
    (root / "usr/local/cuda-13.0").mkdir()
    host.link("/usr/local/cuda", "/etc/alternatives/cuda")
    host.link("/etc/alternatives/cuda", "/usr/local/cuda-12.4")
    host.link("/usr/local/cuda-12", "/usr/local/cuda-12.4")
    python = "/usr/local/lib/python3.10/dist-packages/"
    host.put(
        python + "torch/version.py",
        "from typing import Optional\n__version__ = '2.3.1+cu121'\ncuda: Optional[str] = '12.1'\nhip: Optional[str] = None\n",
    )
    host.put(python + "nvidia/cudnn/lib/libcudnn.so.8", "")
    host.put(
        python + "nvidia/cudnn/include/cudnn_version.h",
        "#define CUDNN_MAJOR 8\n#define CUDNN_MINOR 9\n#define CUDNN_PATCHLEVEL 2\n",
    )
    host.put("/opt/conda/envs/tf/lib/python3.11/site-packages/tensorflow/python/platform/build_info.py",
             "build_info = collections.OrderedDict([('cuda_version', '12.3'), ('cudnn_version', '8'), ('is_cuda_build', True)])\n")  # fmt: skip
    host.put("/opt/conda/envs/tf/lib/python3.11/site-packages/tensorflow/include/tensorflow/core/public/version.h",
             "#define TF_MAJOR_VERSION 2\n#define TF_MINOR_VERSION 16\n#define TF_PATCH_VERSION 1\n")  # fmt: skip
    return host


def test_libraries_of_a_host(tmp_path: Path) -> None:
    host = machine_with_libraries(tmp_path)
    found = libraries.observe(host)
    assert isinstance(found, libraries.Libraries)
    assert {name: library.version for name, library in found.driver.items()} == {
        "libcuda": "550.90.07", "libnvidia-ml": "550.90.07",
    }  # fmt: skip
    assert [(one.path.split("/")[-1], one.version) for one in found.cudnn] == [
        ("libcudnn.so.8", "8.9.2"), ("libcudnn.so.9", "9.1.0"), ("libcudnn.so.8", "8.9.2"),
    ]  # fmt: skip
    assert found.cudnn[2].path == "/usr/local/lib/python3.10/dist-packages/nvidia/cudnn/lib/libcudnn.so.8"
    assert [one.version for one in found.nccl] == ["2.21.5"]
    assert [(one.path, one.version, plain(one.driver), one.is_default) for one in found.toolkits] == [
        ("/usr/local/cuda-10.2", "10.2.89", "unknown", False),
        ("/usr/local/cuda-12.4", "12.4.1", "550.54.15", True),
        ("/usr/local/cuda-13.0", "13.0", "unknown", False),
    ]
    assert [(one.name, one.version, one.cuda, plain(one.cudnn)) for one in found.frameworks] == [
        ("torch", "2.3.1+cu121", "12.1", "unknown"), ("tensorflow", "2.16.1", "12.3", "8"),
    ]  # fmt: skip
    assert host.asked == []


def test_a_host_without_libraries_is_unknown_and_one_without_cuda_is_not(tmp_path: Path) -> None:
    host = Machine(tmp_path)
    assert isinstance(libraries.observe(host), Unknown)
    (tmp_path / "usr/lib").mkdir(parents=True)
    found = libraries.observe(host)
    assert isinstance(found, libraries.Libraries)
    assert (found.driver, found.cudnn, found.toolkits, found.frameworks) == ({}, (), (), ())


@pytest.mark.parametrize("text", ["", "[", "[]", '{"cuda": 1}', '{"cuda": {"version": 12}}', "[" * 100_000])
def test_a_version_file_that_says_nothing(text: str) -> None:
    assert libraries.parse_toolkit_json(text) == {}


def test_a_link_that_leads_nowhere_or_round_is_no_library(tmp_path: Path) -> None:
    host = Machine(tmp_path)
    host.link("/usr/lib64/libcuda.so.1", "libcuda.so")
    host.link("/usr/lib64/libcuda.so", "libcuda.so.1")
    host.link("/usr/lib64/libnvidia-ml.so.1", "gone.so.1")
    found = libraries.observe(host)
    assert isinstance(found, libraries.Libraries) and found.driver == {}


@pytest.mark.parametrize(
    ("printed", "version"),
    [("8902", "8.9.2"), ("90100", "9.1.0"), ("91002", "9.10.2"), ("9.13.1.", "9.13.1"), ("7605", "7.6.5")],
)
def test_numbers_of_cudnn(printed: str, version: str) -> None:
    assert frameworks.cudnn_version(printed) == version


# The whole driver


def machine_with_driver(root: Path) -> Machine:
    host = Machine(root, {"modinfo": Result(0, MODINFO, "")})
    host.put("/proc/sys/kernel/osrelease", "5.15.0-91-generic\n")
    host.put("/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue\n")
    host.put("/proc/driver/nvidia/params", "EnableGpuFirmware: 18\nNvLinkDisable: 0\n")
    host.put(
        "/proc/driver/nvidia/gpus/0000:19:00.0/information",
        "Model: H100\nBus Location: 0000:19:00.0\nDevice Minor: 0\n",
    )
    host.put("/sys/module/nvidia/version", "535.54.03\n")
    host.put("/lib/modules/5.15.0-91-generic/modules.dep", "kernel/nvidia-550/nvidia.ko:\n")
    host.put("/lib/modules/5.15.0-101-generic/modules.dep", "kernel/drivers/x.ko:\n")
    host.put("/lib/modules/5.4.0-1-generic/updates/left.ko", "")
    host.put("/lib/firmware/nvidia/550.90.07/gsp_ga10x.bin", "")
    host.put("/lib/firmware/nvidia/ga100/acr/bl.bin", "")
    return host


def test_a_driver_that_waits_for_a_reboot(tmp_path: Path) -> None:
    host = machine_with_driver(tmp_path)
    found = driver.observe(host)
    assert isinstance(found.loaded, driver_module.ModuleVersion) and found.loaded.version == "535.54.03"
    assert found.loaded_version == "535.54.03"
    assert isinstance(found.modinfo, driver_module.Modinfo) and found.modinfo.version == "550.90.07"
    assert found.firmware == {"550.90.07": ("gsp_ga10x.bin",)}
    assert found.modules == {"5.15.0-101-generic": (), "5.15.0-91-generic": ("kernel/nvidia-550/nvidia.ko",)}
    assert list(found.gpus) == ["0000:19:00.0"]
    assert not isinstance(found.params, Unknown) and found.params["NvLinkDisable"] == "0"
    assert isinstance(found.dkms, Unknown) and host.asked == ["modinfo nvidia"]


def test_a_host_without_driver_is_unknown_in_each_part(tmp_path: Path) -> None:
    found = driver.observe(Machine(tmp_path))
    for name in ("loaded", "loaded_version", "params", "modinfo", "kernel", "modules", "dkms", "firmware"):
        assert isinstance(getattr(found, name), Unknown), name
    assert found.gpus == {}


def test_a_modinfo_that_hangs_leaves_the_rest(tmp_path: Path) -> None:
    host = machine_with_driver(tmp_path)
    host.answers["modinfo"] = Result(-1, "", "", "modinfo hung: no answer in 10 s")
    found = driver.observe(host)
    assert isinstance(found.modinfo, Unknown) and "hung" in found.modinfo.reason
    assert found.loaded_version == "535.54.03"


def test_kernels_by_their_age() -> None:
    assert driver.kernels_by_age(["5.15.0-9-generic", "6.1.0", "5.15.0-101-generic"]) == [
        "6.1.0", "5.15.0-101-generic", "5.15.0-9-generic",
    ]  # fmt: skip


# nvidia-smi that does not work


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("modprobe: ERROR: could not insert 'nvidia': Key was rejected by service\n", "key rejected"),
        ("NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.\n", "no library"),
        ("bash: nvidia-smi: command not found\n", "no tool"),
        ("Command 'nvidia-smi' not found, but can be installed with:\nsudo apt install nvidia-utils-535\n", "no tool"),
        ("sh: 1: nvidia-smi: not found\n", "no tool"),
        ("Failed to initialize NVML: Unknown Error\n", "no answer"),
        ("Failed to initialize NVML: GPU access blocked by the operating system\n", "no permission"),
        ("No devices were found\n", "no gpu"),
        ("GPU 0: H100\n", None),
        ("", None),
        (None, None),
    ],
)
def test_kinds_of_complaints(text: Any, kind: str | None) -> None:
    found = smi_errors.parse_smi_error(text)
    assert (found.kind if found else None) == kind
