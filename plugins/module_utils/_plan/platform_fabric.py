# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What makes a fabric of NVSwitches: Fabric Manager in the driver's version, on NVLink 5 boards the subnet manager too."""

from __future__ import annotations

from typing import Any, List, Mapping

from .._engine.values import Finding, Unknown
from .._engine.versions import agree, bare
from .platform_common import has_nvswitch, known
from .platform_driver import loaded_version

Want = Mapping[str, Any]
Have = Mapping[str, Any]

UNIT = "nvidia-fabricmanager.service"
_GUIDE = "NVIDIA Fabric Manager User Guide"


def judge(want: Want, have: Have) -> List[Finding]:
    fabric = have["fabric"]
    log = None if isinstance(fabric.log, Unknown) else fabric.log
    findings = _version(have, log)
    if has_nvswitch(have):
        findings += _service(fabric, log) + _subnet_manager(fabric)
    if log is not None:
        findings += [_switch_error(one) for one in log.switch_errors[:6]]
    return findings


def _version(have: Have, log: Any) -> List[Finding]:
    """As the packages have it, or as Fabric Manager itself complains."""
    loaded = loaded_version(have)
    packages = [] if isinstance(have["packages"], Unknown) else have["packages"]
    installed = {bare(one.version) for one in packages if one.component == "fabricmanager" and one.is_installed}
    wrong = sorted(version for version in installed if loaded and agree(version, loaded) is False)
    said = log.mismatch if log is not None else None
    is_incompatible = log is not None and log.is_incompatible
    if not wrong and not (said and agree(said[0], said[1]) is not True) and not is_incompatible:
        return []
    in_log = "Fabric Manager %s, driver %s, in its log" % said if said else "it writes that its version is incompatible"
    observed = ", ".join(wrong) if wrong else in_log
    return [
        Finding(
            "platform.fabric-manager-version", "fail", "nvidia-fabricmanager", loaded or "the driver's version", observed,
            "Fabric Manager refuses to start with another driver, and without it CUDA does not start (error 802)",
            "install both in one version, in one transaction, and hold them", _GUIDE,
        )
    ]  # fmt: skip


def _service(fabric: Any, log: Any) -> List[Finding]:
    if isinstance(fabric.services, Unknown):
        return []
    service = fabric.services.get(UNIT)
    if service is not None and service.is_there and service.state in ("active", "activating", "reloading"):
        return []
    is_there = service is not None and service.is_there
    errors = "; " + log.errors[-1][:160] if log is not None and log.errors else ""
    return [
        Finding(
            "platform.fabric-manager", "fail", "nvidia-fabricmanager", "running",
            (service.state if is_there and service is not None else "not installed") + errors,
            "this board has NVSwitches, and without Fabric Manager its GPUs cannot start CUDA (error 802)",
            "systemctl enable --now nvidia-fabricmanager; journalctl -u nvidia-fabricmanager -b" if is_there
            else "install nvidia-fabricmanager in the driver's version", _GUIDE,
        )
    ]  # fmt: skip


def _subnet_manager(fabric: Any) -> List[Finding]:
    if isinstance(fabric.bridges, Unknown) or not fabric.bridges:
        return []
    missing = [] if fabric.has_nvlsm else ["nvlsm is not installed"]
    missing += ["ib_umad is not loaded"] if fabric.has_ib_umad is False else []
    if not missing:
        return []
    return [
        Finding(
            "platform.nvlink-subnet-manager", "fail", "nvidia-fabricmanager", "nvlsm and ib_umad", ", ".join(missing),
            "the NVSwitches of this board are managed over %s, for which Fabric Manager needs both" % ", ".join(fabric.bridges[:4]),
            "install nvlsm and infiniband-diags; modprobe ib_umad, and name it in /etc/modules-load.d", _GUIDE,
        )
    ]  # fmt: skip


def _switch_error(one: Any) -> Finding:
    return Finding(
        "platform.nvswitch-error", "fail" if one.is_fatal else "warn", str(one.address) if known(one.address) else "nvswitch",
        "none since Fabric Manager was started", "SXid %d, %d times, last %s" % (one.code, one.count, one.last),
        "an NVSwitch reports errors; one that comes again and again ends in a link that is lost",
        "nvidia-smi nvlink -e; compare with the next audits", _GUIDE,
    )  # fmt: skip
