# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Main memory: modules that run below their speed, are mixed, or leave channels empty; less than is installed."""

from __future__ import annotations

from collections import Counter
from typing import Any, List, Mapping, Sequence

from .._engine.values import Finding, Unknown
from .._tables import cpu_memory
from .platform_common import known, number, tables_of

Want = Mapping[str, Any]
Have = Mapping[str, Any]

_SMBIOS = "SMBIOS specification (DMTF DSP0134), type 17"
# Makers of modules that no one can touch: hypervisors fill the table in as they like.
_HYPERVISORS = ("Microsoft Corporation", "VMware", "QEMU", "Red Hat", "Xen", "Google", "Amazon EC2", "innotek GmbH")
# Of those, and of others, the ones that make no computers themselves.
_VIRTUAL_MAKERS = ("VMware", "QEMU", "Xen", "innotek GmbH", "OpenStack", "oVirt", "RDO", "Parallels", "Bochs")
# What a module holds that keeps its content without power; firmware chips are listed in arrays of their own.
_PERSISTENT = ("Logical non-volatile device", "NVDIMM", "Intel Optane", "Intel persistent memory")
# The kernel keeps some for itself (page structures alone are 1.6 %), the firmware some more; what is missing beyond that
# is a module that was switched off.  Policy, no measured limit.
_USABLE_SHARE = 0.94
_FIX = "dmidecode -t memory; see the board's manual for which slots to fill"


def judge(want: Want, have: Have) -> List[Finding]:
    modules = have["dmi"].modules
    findings = _empty_nodes(have)
    if isinstance(modules, Unknown):
        return findings + _unseen(want, modules)
    populated = [one for one in modules if one.is_populated is True and number(one.size_mib) > 0 and _is_main(one)]
    installed_mib = int(sum(number(one.size_mib) for one in populated))
    if _is_real(have, populated):
        volatile = [one for one in populated if not _is_persistent(one)]
        findings += _speed(populated) + _mixed(volatile) + _channels(want, have, volatile)
        # How much persistent memory the kernel gets is set by its mode.
        findings += _missing(have, installed_mib) if not any(map(_is_persistent, populated)) else []
    return findings + _total(want, installed_mib)


def _is_real(have: Have, populated: Sequence[Any]) -> bool:
    bios, system = have["dmi"].bios, have["dmi"].system
    maker = "" if isinstance(system, Unknown) else str(system.manufacturer)
    if not isinstance(bios, Unknown) and bios.is_virtual_machine is True:
        return False
    is_host = have["virtualization"] in ("none", None) and not maker.startswith(_VIRTUAL_MAKERS)
    return is_host and not any(_is_virtual(one) for one in populated)


def _is_main(module: Any) -> bool:
    """Not the chip of the firmware or the memory of a graphics unit, which some boards list as well."""
    return not known(module.use) or module.use == "System Memory"


def _is_persistent(module: Any) -> bool:
    said = [module.type, module.technology]
    return any(known(word) and str(word).startswith(_PERSISTENT) for word in said) or number(module.nonvolatile_mib) > 0


def _is_virtual(module: Any) -> bool:
    return known(module.manufacturer) and str(module.manufacturer).startswith(_HYPERVISORS)


def _speed(populated: Sequence[Any]) -> List[Finding]:
    """Configured against rated speed; what BIOS, CPU and two modules on a channel allow may be less than the label."""
    slow = [one for one in populated
            if known(one.speed_mts) and known(one.configured_mts) and 0 < one.configured_mts < one.speed_mts]  # fmt: skip
    if not slow:
        return []
    first = slow[0]
    observed = "%d of %d modules at %d of %d MT/s: %s" % (
        len(slow), len(populated), first.configured_mts, first.speed_mts, _names(slow),
    )  # fmt: skip
    return [
        Finding(
            "platform.memory-speed", "warn", "memory", "rated speed", observed,
            "memory bandwidth feeds the GPUs; two modules on a channel or a slower CPU lower it by design, a BIOS setting by mistake",
            _FIX + "; look at the BIOS's memory speed", _SMBIOS,
        )
    ]  # fmt: skip


def _mixed(populated: Sequence[Any]) -> List[Finding]:
    kinds = Counter(
        "%s %s, %d GiB, %s MT/s" % (
            one.manufacturer if known(one.manufacturer) else "?", one.part if known(one.part) else "?",
            number(one.size_mib) // 1024, one.speed_mts if known(one.speed_mts) else "?",
        )
        for one in populated
    )  # fmt: skip
    if len(kinds) < 2:
        return []
    rows = ["%dx %s" % (count, kind) for kind, count in kinds.most_common(4)]
    return [
        Finding(
            "platform.memory-mixed", "warn", "memory", "modules of one kind", "; ".join(rows),
            "mixed modules run at the pace of the slowest, and uneven sizes break the interleaving over channels",
            _FIX, _SMBIOS,
        )
    ]  # fmt: skip


def _channels(want: Want, have: Have, populated: Sequence[Any]) -> List[Finding]:
    """Modules that do not fill the memory channels of all sockets evenly."""
    sockets = have["sockets"]
    row = cpu_memory.by_model(have["cpu_model"], tables_of(want).cpu_memory)
    if not sockets or not populated:
        return []
    if row is None:
        if len(populated) % sockets == 0:
            return []
        observed, expected = "%d modules on %d sockets" % (len(populated), sockets), "as many on each socket"
    else:
        wanted = row.channels * sockets
        if len(populated) % wanted == 0:
            return []
        observed = "%d modules for %d channels (%d sockets x %d)" % (len(populated), wanted, sockets, row.channels)
        expected = "%d modules, or twice as many" % wanted
    return [
        Finding(
            "platform.memory-channels", "warn", "memory", expected, observed,
            "an empty channel is bandwidth that is not there, and unevenly filled ones lose more than their share",
            _FIX, row.source if row else _SMBIOS,
        )
    ]  # fmt: skip


def _total(want: Want, installed_mib: int) -> List[Finding]:
    wanted = want["memory_gib"]
    if not wanted or installed_mib // 1024 == wanted:
        return []
    return [
        Finding(
            "platform.memory-installed", "fail" if installed_mib // 1024 < wanted else "warn", "memory",
            "%d GiB" % wanted, "%d GiB" % (installed_mib // 1024),
            "the modules that the firmware sees are not what this host should have",
            "dmidecode -t memory; reseat the modules that are missing; ipmitool sel elist", _SMBIOS,
        )
    ]  # fmt: skip


def _missing(have: Have, installed_mib: int) -> List[Finding]:
    usable = have["memory_total_mib"]
    if not known(usable) or not installed_mib or usable >= installed_mib * _USABLE_SHARE:
        return []
    return [
        Finding(
            "platform.memory-missing", "warn", "memory", "about %d MiB" % installed_mib, "%d MiB usable" % usable,
            "the kernel has clearly less than the modules hold: mirroring, a disabled module, or memory given away at boot",
            "dmesg | grep -i memory; cat /proc/cmdline; look at the BIOS for mirroring and disabled modules", _SMBIOS,
        )
    ]  # fmt: skip


def _unseen(want: Want, reason: Unknown) -> List[Finding]:
    if not want["memory_gib"]:
        return []
    return [
        Finding(
            "platform.memory-installed", "warn", "memory", "%d GiB" % want["memory_gib"], reason,
            "the modules cannot be seen, so whether all of them are there is unknown",
            "dmidecode -t memory as root; install dmidecode", _SMBIOS,
        )
    ]  # fmt: skip


def _empty_nodes(have: Have) -> List[Finding]:
    if isinstance(have["nodes"], Unknown):
        return []
    empty = [node.id for node in have["nodes"] if node.memory_mib == 0 and known(node.cpus) and node.cpus]
    if not empty:
        return []
    return [
        Finding(
            "platform.memory-node-empty", "warn", "host", "memory on each NUMA node with CPUs",
            "none on node %s" % ", ".join(map(str, empty)),
            "CPUs of these nodes reach all their memory over another node, and binding memory to them fails",
            "fill the slots of these dies; see the board's manual", "sysfs: /sys/devices/system/node",
        )
    ]  # fmt: skip


def _names(modules: Sequence[Any]) -> str:
    names = [one.locator for one in modules]
    return ", ".join(names[:4]) + (", …" if len(names) > 4 else "")
