# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The area kernel_settings: joins what is read of the kernel with what is decided about it."""

from __future__ import annotations

from typing import Any, Dict, Mapping

from .._engine.engine import Area
from .._engine.host import Host
from .._observe import cmdline, confd, cpufreq, limits, modules, sysctl, thp, tmpfiles, tuners
from .._plan import (
    kernel_boot,
    kernel_cmdline,
    kernel_limits,
    kernel_modules,
    kernel_settings,
    kernel_sysctl,
    kernel_thp,
)
from .._plan.kernel_common import knob
from .._tables.sysctls import TWIN, key_path

SPEC: Dict[str, Any] = {
    "sysctls": {"type": "dict"},
    "numa_balancing": {"type": "str"},
    "transparent_hugepage": {"type": "str"},
    "transparent_hugepage_defrag": {"type": "str"},
    "governor": {"type": "str"},
    "energy_preference": {"type": "str"},
    "deepest_cstate": {"type": "str"},
    "memlock": {"type": "str"},
    "nofile": {"type": "str"},
    "module_options": {"type": "dict"},
    "cmdline": {"type": "list", "elements": "str"},
}

_FILES = (
    kernel_sysctl.FILE,
    kernel_boot.FILE,
    kernel_boot.UNIT_FILE,
    kernel_limits.PAM_FILE,
    kernel_limits.MANAGER_FILE,
    kernel_modules.FILE,
    kernel_cmdline.FILE,
)
_UNIT_LINK = "/etc/systemd/system/multi-user.target.wants/" + kernel_boot.UNIT


def observe(host: Host, want: Mapping[str, Any]) -> Dict[str, Any]:
    """Our files, and of the kernel what the want is about."""
    have: Dict[str, Any] = {"files": {path: confd.own_file(host, path) for path in _FILES}}
    have["sysctl"] = _sysctl(host, want)
    have.update(_sys(host, want))
    have["limits"] = _limits(host, want)
    wanted_modules = kernel_modules.wanted(want)
    have["modules"] = modules.observe(host, {module: list(names) for module, names in wanted_modules.items()})
    have["modprobe"] = modules.options(host) if wanted_modules else []
    args = cmdline.current(host) if wanted_modules else ()
    have["boot_args"] = args if isinstance(args, tuple) else ()
    have["cmdline"], have["iommu"] = None, {"modalias": "", "units": []}
    if kernel_cmdline.is_managed(want):
        have["cmdline"] = cmdline.observe(host)
        modalias = host.read(cpufreq.CPUS + "/modalias")
        have["iommu"] = {
            "modalias": modalias if isinstance(modalias, str) else "",
            "units": host.listdir("/sys/class/iommu"),
        }
    have["tuners"] = tuners.observe(host)
    return have


def _sysctl(host: Host, want: Mapping[str, Any]) -> Dict[str, Any]:
    if not kernel_sysctl.is_managed(want):
        return {"live": {}, "names": {}, "later": {}, "procps": {}}
    paths = list(kernel_sysctl.wanted(want))
    twins = [TWIN[path] for path in paths if path in TWIN]
    name_of_ours = kernel_sysctl.FILE.rsplit("/", 1)[-1]
    return {
        "live": sysctl.live(host, paths + twins),
        "names": {key_path(str(name)): str(name) for name in want.get("sysctls") or {}},
        "later": sysctl.later(sysctl.lines(host), name_of_ours),
        "procps": {line.key: line for line in sysctl.procps_lines(host)},
    }


def _sys(host: Host, want: Mapping[str, Any]) -> Dict[str, Any]:
    """What tmpfiles.d writes: huge pages, frequency and idle states."""
    pages = [file for name, file in kernel_thp.FILES.items() if knob(want, name) is not None]
    knobs = [name for name in ("governor", "energy_preference") if knob(want, name) is not None]
    return {
        "thp": thp.observe(host, pages),
        "cpufreq": cpufreq.policies(host, knobs) if knobs else None,
        "cpuidle": cpufreq.idle(host) if knob(want, "deepest_cstate") is not None else None,
        "writes": tmpfiles.writes(host) if kernel_boot.is_managed(want) else [],
        "unit_enabled": host.readlink(_UNIT_LINK) is not None,
    }


def _limits(host: Host, want: Mapping[str, Any]) -> Dict[str, Any]:
    asked = sorted(kernel_limits.wanted(want))
    return dict(limits.observe(host), asked=asked) if asked else {"asked": []}


AREA = Area(
    name="kernel_settings",
    role="kernel",
    spec=SPEC,
    check_want=kernel_settings.check_want,
    observe=observe,
    plan=kernel_settings.plan,
    judge=kernel_settings.judge,
    adopt=kernel_settings.adopt,
    examples={"sysctls": "{vm.swappiness: 10}", "module_options": "{nvme_core: {multipath: N}}"},
)
