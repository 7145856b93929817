# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the firmware set up, as far as Linux shows it: its version, boot mode, Secure Boot, IOMMU, SMT, idle states.

NUMA nodes per socket are told by ``numa`` and ``cpu``, governors by ``cpufreq``, memory windows by ``kernel_log``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Dict, Mapping, Optional, Tuple, Union

from .._engine.host import Host
from .._engine.values import Text, Unknown
from . import cpufreq, secure_boot
from .nvidia_values import Flag, Number, Word

DMI = "/sys/class/dmi/id"
DMI_NAMES = (
    "bios_vendor",
    "bios_version",
    "bios_date",
    "bios_release",
    "sys_vendor",
    "product_name",
    "product_version",
    "board_vendor",
    "board_name",
    "board_version",
    "chassis_vendor",
    "chassis_type",
)
IOMMU_UNITS = "/sys/class/iommu"
IOMMU_GROUPS = "/sys/kernel/iommu_groups"
SMT = "/sys/devices/system/cpu/smt"
CPUIDLE = "/sys/devices/system/cpu/cpuidle"
# What boards carry that nobody filled in.
_PLACEHOLDERS = re.compile(
    r"|to be filled by o\.?e\.?m\.?|default string|system (product name|version|manufacturer)|not (specified|applicable)|"
    r"none|n/a|unknown|0+|x+|empty",
    re.IGNORECASE,
)
# The type of a group's domain (kernel: Documentation/ABI/testing/sysfs-kernel-iommu_groups).
_DOMAINS = {"identity": "passthrough", "DMA": "translated", "DMA-FQ": "translated", "auto": "", "blocked": ""}
# Groups of one host have a few types; a thousand groups are no reason to read all.
_MOST_GROUPS = 512


@dataclass(frozen=True)
class Iommu:
    """``units`` are the kernel's (dmar0, ivhd0, smmu3.0...); ``domains`` counts groups by the type of their domain.

    ``mode`` is off, passthrough, translated or mixed.
    """

    units: Tuple[str, ...]
    groups: int
    domains: Mapping[str, int]
    mode: Word


@dataclass(frozen=True)
class IdleState:
    """``cpus`` may use it, out of all that are online."""

    name: str
    latency_us: Number
    cpus: Number
    all_cpus: Number


@dataclass(frozen=True)
class Firmware:
    """``dmi`` by the names of DMI_NAMES.  ``boot_mode`` is uefi or bios.  ``smt_control`` is the kernel's word (on, off,
    forceoff, notsupported, notimplemented).  ``idle``: None without cpuidle, as in most virtual machines."""

    dmi: Mapping[str, Word]
    boot_mode: Word
    secure_boot: secure_boot.SecureBoot
    lockdown: Word
    iommu: Union[Iommu, Unknown]
    smt_active: Flag
    smt_control: Word
    idle: Union[Tuple[IdleState, ...], Unknown, None]
    idle_driver: Word

    @property
    def deepest_idle(self) -> Union[IdleState, Unknown, None]:
        """The deepest state that any CPU may use; None when none may use one."""
        if isinstance(self.idle, Unknown) or self.idle is None:
            return self.idle
        usable = [state for state in self.idle if isinstance(state.cpus, Unknown) or state.cpus]
        return usable[-1] if usable else None


def observe(host: Host) -> Firmware:
    boot = secure_boot.observe(host)
    mode: Word = boot.is_uefi if isinstance(boot.is_uefi, Unknown) else "uefi" if boot.is_uefi else "bios"
    return Firmware(
        {name: parse_dmi_word(host.read("%s/%s" % (DMI, name))) for name in DMI_NAMES},
        mode,
        boot,
        secure_boot.observe_lockdown(host),
        observe_iommu(host),
        _flag(host.read(SMT + "/active")),
        _plain(host.read(SMT + "/control"), SMT),
        observe_idle(host),
        _plain(host.read(CPUIDLE + "/current_driver"), CPUIDLE),
    )


def observe_iommu(host: Host) -> Union[Iommu, Unknown]:
    """A folder without units is an IOMMU that is off, or none at all."""
    if not host.exists("/sys/class"):
        return Unknown("not there: /sys/class")
    units = tuple(name for name in host.listdir(IOMMU_UNITS) if re.fullmatch(r"[\w.:-]{1,60}", name, re.ASCII))
    groups = [name for name in host.listdir(IOMMU_GROUPS) if re.fullmatch(r"\d{1,6}", name, re.ASCII)]
    domains: Dict[str, int] = {}
    for group in groups[:_MOST_GROUPS]:
        kind = host.read("%s/%s/type" % (IOMMU_GROUPS, group))
        if isinstance(kind, str) and kind.strip():
            domains[kind.strip()[:20]] = domains.get(kind.strip()[:20], 0) + 1
    return Iommu(units, len(groups), domains, _iommu_mode(bool(units or groups), domains))


def observe_idle(host: Host) -> Union[Tuple[IdleState, ...], Unknown, None]:
    """Idle states by depth, with the time that waking takes on the first CPU."""
    seen: Union[Dict[str, Any], Unknown, None] = cpufreq.idle(host)
    if seen is None or isinstance(seen, Unknown):
        return seen
    first = next(iter(seen["disabled"]))
    found = []
    for number, name in enumerate(seen["states"]):
        folder = "%s/%s/cpuidle/state%d" % (cpufreq.CPUS, first, number)
        flags = [states[number] for states in seen["disabled"].values() if number < len(states)]
        found.append(IdleState(name, _number(host.read(folder + "/latency")), _usable(flags), len(seen["disabled"])))
    return tuple(found)


def parse_dmi_word(text: Text) -> Word:
    """A word of the SMBIOS tables; what nobody filled in is no word."""
    if not isinstance(text, str):
        return text if isinstance(text, Unknown) else Unknown("not there: no such word in the SMBIOS tables")
    said = " ".join(text.encode("utf-8", "surrogateescape").decode("utf-8", "replace").split())[:200]
    return Unknown("not there: %r was never filled in" % said[:40]) if _PLACEHOLDERS.fullmatch(said) else said


def _iommu_mode(is_there: bool, domains: Mapping[str, int]) -> Word:
    if not is_there:
        return "off"
    modes = {_DOMAINS.get(kind, "") for kind in domains} - {""}
    if not modes:
        return Unknown("not there: no group tells the type of its domain")
    return "mixed" if len(modes) > 1 else modes.pop()


def _usable(flags: Any) -> Number:
    """How many CPUs may use a state; a flag that cannot be read makes that unknown."""
    unread: Optional[Unknown] = next((flag for flag in flags if isinstance(flag, Unknown)), None)
    return unread if unread is not None else sum(flag == "0" for flag in flags)


def _flag(text: Text) -> Flag:
    said = _plain(text, SMT)
    if isinstance(said, Unknown):
        return said
    return said == "1" if said in ("0", "1") else Unknown("not understood: %r" % said[:20])


def _number(text: Text) -> Number:
    said = text.strip() if isinstance(text, str) else ""
    return int(said) if re.fullmatch(r"\d{1,9}", said, re.ASCII) else Unknown("not there: no latency")


def _plain(text: Text, where: str) -> Word:
    if isinstance(text, str) and text.strip():
        return text.strip()[:80]
    return text if isinstance(text, Unknown) else Unknown("not there: %s" % where)
