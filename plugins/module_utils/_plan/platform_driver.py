# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The NVIDIA driver: one version on disk, loaded, in user space and in the services that must equal it.

Versions are read from /proc, module files and the names of libraries, never from a banner of nvidia-smi.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional

from .._engine.values import Finding, Unknown
from .._engine.versions import agree, bare
from .._tables import driver_branches
from .platform_common import PASSED_THROUGH, Card, cards, known, tables_of

Want = Mapping[str, Any]
Have = Mapping[str, Any]

_GUIDE = "NVIDIA driver installation guide"
_MOST = 4
_EQUAL = "packages of NVIDIA's driver containers"
# Parts that are of the driver's very version; Fabric Manager has a judge of its own.
_COMPONENTS = {"nscq": "warn", "persistenced": "warn", "imex": "warn", "nvsdm": "warn", "modprobe": "info"}


def judge(want: Want, have: Have) -> List[Finding]:
    driver = have["driver"]
    loaded = loaded_version(have)
    disk = str(driver.modinfo.version) if known(driver.modinfo) and known(driver.modinfo.version) else ""
    user = user_version(have)
    found = cards(want, have)
    if not found and not loaded:
        # Of a host that is not seen otherwise, nvidia-smi's own words count.
        return _agreement(have, loaded, disk, user) if _refusal(have) else []
    findings = _agreement(have, loaded, disk, user)
    findings += _components(have, loaded)
    findings += _dkms(have, loaded) + _next_kernel(have) + _rejected(have) + _packages(have)
    if loaded:
        findings += _branch(want, have, loaded) + _architectures(want, have, loaded, found) + _firmware(have, loaded)
    return findings


def loaded_version(have: Have) -> str:
    """Of the loaded module, from /proc or sysfs, else as nvidia-smi -q tells it; empty when none is loaded."""
    driver, smi = have["driver"], have["smi"]
    if known(driver.loaded):
        return str(driver.loaded.version)
    if known(driver.loaded_version):
        return str(driver.loaded_version)
    return "" if isinstance(smi, Unknown) or not known(smi.driver_version) else str(smi.driver_version)


def user_version(have: Have) -> str:
    """Of libcuda or libnvidia-ml, which programs load."""
    libraries = {} if isinstance(have["libraries"], Unknown) else have["libraries"].driver
    for name in ("libnvidia-ml", "libcuda"):
        if name in libraries and known(libraries[name].version):
            return str(libraries[name].version)
    return ""


def _agreement(have: Have, loaded: str, disk: str, user: str) -> List[Finding]:
    parts = {"loaded": loaded, "on disk": disk, "user space": user}
    told = ", ".join("%s %s" % (name, version) for name, version in parts.items() if version)
    log = have["kernel_log"]
    said = _refusal(have)
    mismatches = () if isinstance(log, Unknown) else log.nvrm.mismatches
    differs = bool(loaded and user) and agree(loaded, user) is False
    # What the log tells may be over: it counts where nothing newer contradicts it.
    is_past = bool(loaded and user) and agree(loaded, user) is True and not said
    if differs or said or (mismatches and not is_past):
        last = mismatches[-1] if mismatches else None
        words = ["the kernel log says: client %s, module %s" % (last.client, last.module)] if last else []
        return [_mismatch("; ".join([part for part in (told, said) if part] + words), _cure(loaded, disk, user))]
    if loaded and disk and agree(loaded, disk) is False:
        return [_pending(told)]
    return []


def _refusal(have: Have) -> str:
    """What nvidia-smi says when its library is of another version than the module."""
    smi = have["smi"]
    return smi.reason if isinstance(smi, Unknown) and "mismatch" in smi.reason.lower() else ""


def _cure(loaded: str, disk: str, user: str) -> str:
    if disk and user and agree(disk, user) is True:
        return "the new version is installed as a whole: reboot, or unload all nvidia modules and load them again"
    if disk and user and agree(disk, user) is False:
        return ("module and libraries on disk are of two versions: install one (apt install --reinstall the driver's packages, "
                "dkms status), then reboot; hold the packages against unattended upgrades")  # fmt: skip
    return "compare cat /proc/driver/nvidia/version, modinfo -F version nvidia and ls -l libnvidia-ml.so.1; then reboot"


def _mismatch(observed: str, cure: str) -> Finding:
    return Finding(
        "platform.driver-mismatch", "fail", "driver", "one version loaded, on disk and in user space", observed,
        "no new program can use the GPUs until module and libraries are of one version", cure, _GUIDE,
    )  # fmt: skip


def _pending(told: str) -> Finding:
    return Finding(
        "platform.driver-reboot", "warn", "driver", "the version on disk is loaded", told,
        "an upgrade waits for a reboot; programs started now may load the new libraries and fail",
        "drain the host and reboot it", _GUIDE,
    )  # fmt: skip


def _components(have: Have, loaded: str) -> List[Finding]:
    packages = [] if isinstance(have["packages"], Unknown) else have["packages"]
    findings: List[Finding] = []
    for package in packages:
        level = _COMPONENTS.get(package.component)
        if level and package.is_installed and loaded and agree(bare(package.version), loaded) is False:
            findings.append(
                Finding(
                    "platform.driver-component", level, package.name, loaded, bare(package.version),
                    "this part of the driver has to be of its very version", "install %s in version %s and hold it"
                    % (package.name, loaded), _EQUAL,
                )
            )  # fmt: skip
    return findings


def _dkms(have: Have, loaded: str) -> List[Finding]:
    told = have["driver"].dkms
    kernel = str(have["driver"].kernel) if known(have["driver"].kernel) else ""
    if isinstance(told, Unknown):
        return []
    running = list(told.of(kernel))
    # "installed-weak from …" is how RHEL uses a module of another kernel of the same interface.
    findings = [
        Finding(
            "platform.dkms-note", "warn", "dkms %s/%s" % (entry.module, entry.version), "installed", entry.note[:160],
            "another module of this name exists or differs from the built one, so which of them is loaded is a matter of order",
            "modinfo -F filename nvidia shows which; remove the package of the other", "dkms(8)",
        )
        for entry in running if entry.note and not entry.note.startswith("from ")
    ]  # fmt: skip
    unbuilt = running if not any(entry.is_installed for entry in running) else []
    if not running and not loaded and _is_needed(have, kernel):
        unbuilt = [entry for entry in told.nvidia if entry.state != "broken"][:_MOST]
    if unbuilt:
        # The kernel is said where it is another than the running one.
        states = [
            "%s %s" % (one.version, one.state) + (" for " + one.kernel if one.kernel not in ("", kernel) else "")
            for one in unbuilt
        ]
        said = [error for error in told.errors if kernel and kernel in error][-1:]
        findings.append(
            Finding(
                "platform.dkms-not-installed", "fail", "dkms", "installed for %s" % (kernel or "the running kernel"),
                "; ".join([", ".join(states)] + said)[:300],
                "the module is not built for the running kernel: it will not be there after the next boot",
                "dkms autoinstall; read /var/lib/dkms/nvidia/*/build/make.log when it fails", "dkms(8)",
            )
        )  # fmt: skip
    findings += [
        Finding(
            "platform.dkms-broken", "warn", "dkms %s/%s" % (module, version), "an entry that can be read",
            told.errors[0][:160] if told.errors else "its dkms.conf is missing",
            "a left-over folder makes dkms end with an error, and scripts that ask it stop there",
            "rm -r /var/lib/dkms/%s/%s, when nothing of it is installed; then dkms status" % (module, version), "dkms(8)",
        )
        for module, version in told.broken[:4]
    ]  # fmt: skip
    return findings


def _is_needed(have: Have, kernel: str) -> bool:
    """Whether GPUs are seen to wait for a driver, and no module of another origin is there."""
    driver, smi = have["driver"], have["smi"]
    devices = [] if isinstance(have["gpus"], Unknown) else have["gpus"]
    drivers = {device.driver for device in devices}
    waits = "nouveau" in drivers or (
        isinstance(smi, Unknown) and "communicate with the nvidia driver" in smi.reason.lower()
    )
    is_there = known(driver.modinfo) or (not isinstance(driver.modules, Unknown) and bool(driver.modules.get(kernel)))
    return bool(kernel) and waits and not is_there and not drivers & {"nvidia", *PASSED_THROUGH}


def _next_kernel(have: Have) -> List[Finding]:
    """A newer kernel that is installed and has no module: the GPUs are gone after the next boot."""
    driver = have["driver"]
    if isinstance(driver.modules, Unknown) or not known(driver.kernel) or not driver.modules.get(driver.kernel):
        return []
    newest = next(iter(driver.modules), "")
    if not newest or newest == driver.kernel or driver.modules[newest]:
        return []
    return [
        Finding(
            "platform.driver-next-kernel", "warn", newest, "nvidia.ko for each installed kernel", "none for %s" % newest,
            "the newest installed kernel is what the next boot starts, and it has no driver for the GPUs",
            "dkms autoinstall -k %s, or install the module package for it; or hold the kernel" % newest, "dkms(8)",
        )
    ]  # fmt: skip


def _rejected(have: Have) -> List[Finding]:
    log = have["kernel_log"]
    if isinstance(log, Unknown) or not log.rejected:
        return []
    return [
        Finding(
            "platform.module-rejected", "fail", "kernel", "signed modules", log.rejected[0][:200],
            "Secure Boot is on and the kernel did not load a module without an enrolled key",
            "enrol the key that signs it (mokutil --import, confirmed at the console at the next boot), or use the distribution's "
            "signed modules; a reboot alone changes nothing", "mokutil(1); kernel Documentation/admin-guide/module-signing.rst",
        )
    ]  # fmt: skip


def _packages(have: Have) -> List[Finding]:
    packages = [] if isinstance(have["packages"], Unknown) else have["packages"]
    broken = [package.name for package in packages if package.is_broken]
    if not broken:
        return []
    return [
        Finding(
            "platform.packages-broken", "fail", "packages", "wholly installed", ", ".join(broken[:6]),
            "an installation that did not end: the parts of the driver do not fit each other",
            "dpkg --audit; dpkg --configure -a; read the build log of DKMS", "dpkg(1)",
        )
    ]  # fmt: skip


def _branch(want: Want, have: Have, loaded: str) -> List[Finding]:
    row = driver_branches.of(loaded, tables_of(want).driver_branches)
    if row is None or not driver_branches.is_past(row.end_of_life, have["today"]):
        return []
    return [
        Finding(
            "platform.driver-end-of-life", "warn", "driver", "a branch that is still served",
            "R%d ended in %s" % (row.branch, row.end_of_life),
            "no more fixes, security ones included, come for this branch", "plan the change to a newer branch; docs/tables.md lists "
            "them with the architectures they serve", driver_branches.SOURCES["eol"],
        )
    ]  # fmt: skip


def _architectures(want: Want, have: Have, loaded: str, found: List[Card]) -> List[Finding]:
    branch = driver_branches.branch_of(loaded)
    module = have["driver"].loaded
    flavour = None if not known(module) else "open" if module.is_open else "proprietary"
    rows = tables_of(want).architectures
    seen: Dict[str, List[str]] = {}
    for card in found:
        if card.model is not None:
            seen.setdefault(card.model.architecture, []).append(card.address)
    findings: List[Finding] = []
    for name, addresses in sorted(seen.items()):
        fit = driver_branches.flavours_for(branch, name, rows) if branch else ()
        if branch and (not fit or (flavour and flavour not in fit)):
            findings.append(_unfit(name, addresses, branch, flavour, fit))
    return findings


def _unfit(name: str, addresses: List[str], branch: int, flavour: Optional[str], fit: Any) -> Finding:
    return Finding(
        "platform.driver-architecture", "warn", ", ".join(addresses[:4]), "%s modules" % " or ".join(fit) if fit
        else "an older branch", "R%d%s" % (branch, ", %s modules" % flavour if flavour else ""),
        "this kernel module is not made for %s GPUs" % name, "see docs/tables.md for the branches and modules of %s" % name,
        driver_branches.OPEN_SOURCE,
    )  # fmt: skip


def _firmware(have: Have, loaded: str) -> List[Finding]:
    firmware = have["driver"].firmware
    if isinstance(firmware, Unknown) or not firmware or loaded in firmware:
        return []
    return [
        Finding(
            "platform.gsp-firmware", "warn", "driver", "/lib/firmware/nvidia/%s" % loaded, "only %s" % ", ".join(sorted(firmware)),
            "the firmware of the loaded module was removed by an upgrade: a GPU that is reset or opened anew does not start",
            "reboot; reloading the module alone does not help", _GUIDE,
        )
    ]  # fmt: skip
