# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The BIOS checklist as it shows inside the operating system.

Above-4G and Resizable BAR, ACS, IOMMU, NUMA nodes per socket, SMT, idle states, governor, SR-IOV, boot mode, Secure Boot.
Links (and with them bifurcation) have a judge of their own.  Firmware is reported, and never changed from here.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional

from .._engine.values import Finding, Unknown
from .platform_common import cards, is_bare_metal, known, number

Want = Mapping[str, Any]
Have = Mapping[str, Any]

_BAR = "PCI Express Resizable BAR; nvidia-smi -q, BAR1 Memory Usage"
_ACS = "NCCL user guide, PCI Access Control Services"
_IOMMU = "GPUDirect Storage installation guide; kernel Documentation/admin-guide/kernel-parameters.txt"
_NPS = "AMD NPS, Intel SNC; sysfs: /sys/devices/system/node"
_SMT = "kernel Documentation/ABI/testing/sysfs-devices-system-cpu"
_IDLE = "kernel Documentation/admin-guide/pm/cpuidle.rst; public report of a fleet with C2 of 170 us"
_BOOT = "UEFI specification, global variables"


def judge(want: Want, have: Have) -> List[Finding]:
    findings = _bar1(want, have) + _acs(want, have) + _iommu(want, have)
    findings += _numa(want, have) + _smt(want, have) + _idle(want, have) + _governor(want, have)
    return findings + _boot_mode(want, have) + _secure_boot(want, have) + _sriov(want, have)


def adopt(have: Have) -> Dict[str, Any]:
    firmware = have["firmware"]
    about: Dict[str, Any] = {}
    if known(firmware.boot_mode):
        about["boot_mode"] = firmware.boot_mode
    if known(firmware.secure_boot.is_on):
        about["secure_boot"] = "on" if firmware.secure_boot.is_on else "off"
    if known(firmware.smt_active):
        about["smt"] = "on" if firmware.smt_active else "off"
    per_socket = nodes_per_socket(have)
    if per_socket is not None:
        about["numa_nodes_per_socket"] = per_socket
    return about


def _bar1(want: Want, have: Have) -> List[Finding]:
    """A BAR1 smaller than the GPU's memory: Resizable BAR or Above 4G Decoding is off, where the card can do it."""
    if want["resizable_bar"] != "on":
        return []
    findings: List[Finding] = []
    for card in cards(want, have):
        gpu = card.gpu
        if (
            gpu is None
            or not known(gpu.bar1_total_mib)
            or not known(gpu.memory_total_mib)
            or number(gpu.bar1_total_mib) <= 0
        ):
            continue
        able = _able(have, card.address)
        is_datacenter = card.model is not None and card.model.gpu_class == "datacenter"
        if gpu.bar1_total_mib < gpu.memory_total_mib * 0.9 and (able or is_datacenter):
            level = "warn" if able else "info"
            findings.append(
                Finding(
                    "platform.bar1-small", level, card.address, "%d MiB or more" % gpu.memory_total_mib, "%d MiB" % gpu.bar1_total_mib,
                    "NICs and other GPUs reach the GPU's memory through BAR1; what does not fit is copied in pieces",
                    "switch on Above 4G Decoding and Resizable BAR in the BIOS; some cards have a small BAR1 by design "
                    "(nvidia-smi -q -i %s -d MEMORY)" % card.address, _BAR,
                )
            )  # fmt: skip
    return findings


def _able(have: Have, address: str) -> bool:
    """Whether the card offers a BAR as large as 1 GiB and more than it has."""
    way = have["ways"].get(address)
    bars = None if way is None or isinstance(way, Unknown) else way.device.resizable_bars
    return known(bars) and any(max(one.supported_bytes, default=0) > one.size_bytes for one in bars or ())


def _acs(want: Want, have: Have) -> List[Finding]:
    if want["acs"] == "any":
        return []
    ports = [port for port in have["acs_ports"] if known(port["acs"]) and port["acs"].redirects]
    below_switch = [port for port in ports if port["kind"] == "switch"]
    if not ports:
        return []
    named = below_switch or ports
    # Of pasted text nothing tells whether it is of a virtual machine; those rarely show a switch.
    is_ours = is_bare_metal(have) or have["virtualization"] is None
    return [
        Finding(
            "platform.acs-redirect", "warn" if below_switch and is_ours else "info", "host", "no redirection between GPUs and NICs",
            ", ".join("%s (%s)" % (port["address"], port["why"]) for port in named[:4])
            + ("; %d more" % (len(named) - 4) if len(named) > 4 else ""),
            "traffic between devices below a switch is sent up to the CPU and back" if is_ours
            else "inside a virtual machine ACS has to stay on",
            "switch ACS off in the BIOS, or set platform_acs: \"off\" (bare metal without VFIO guests)" if is_ours
            else "nothing to do here; it is the business of the machine's host", _ACS,
        )
    ]  # fmt: skip


def _iommu(want: Want, have: Have) -> List[Finding]:
    seen = have["firmware"].iommu
    mode = seen.mode if known(seen) else seen
    wanted = want["iommu"]
    if wanted == "any" or not known(mode) or not have["gpus"] or isinstance(have["gpus"], Unknown):
        return []
    if (mode in ("translated", "mixed")) == (wanted == "translated"):
        return []
    return [
        Finding(
            "platform.iommu", "warn" if is_bare_metal(have) else "info", "host", wanted, mode,
            "with translated DMA, direct transfers between GPUs, NICs and NVMe are slow or not possible" if wanted == "untranslated"
            else "the fleet wants devices kept apart by the IOMMU",
            "kernel_cmdline: [iommu=pt] (role kernel), or the IOMMU off in the BIOS of hosts without guests" if wanted == "untranslated"
            else "intel_iommu=on or the BIOS's IOMMU setting, without iommu=pt", _IOMMU,
        )
    ]  # fmt: skip


def nodes_per_socket(have: Have) -> Optional[int]:
    nodes, sockets = have["nodes"], have["sockets"]
    if isinstance(nodes, Unknown) or not sockets:
        return None
    # Nodes without CPUs are memory of GPUs (Grace) or of CXL devices.
    with_cpus = [node for node in nodes if known(node.cpus) and node.cpus]
    return len(with_cpus) // sockets if with_cpus and len(with_cpus) % sockets == 0 else None


def _numa(want: Want, have: Have) -> List[Finding]:
    wanted, seen = want["numa_nodes_per_socket"], nodes_per_socket(have)
    if wanted is None or seen == wanted:
        return []
    return [
        Finding(
            "platform.numa-per-socket", "warn", "host", wanted, Unknown("sockets or nodes cannot be told") if seen is None else seen,
            "how memory is divided decides what is near a GPU, and its bandwidth",
            "BIOS: NUMA Nodes Per Socket (AMD), Sub-NUMA Clustering (Intel)", _NPS,
        )
    ]  # fmt: skip


def _smt(want: Want, have: Have) -> List[Finding]:
    wanted, seen = want["smt"], have["firmware"].smt_active
    if wanted == "any" or seen == (wanted == "on"):
        return []
    observed = seen if isinstance(seen, Unknown) else "on" if seen else "off"
    return [
        Finding(
            "platform.smt", "warn", "host", wanted, observed, "the fleet wants simultaneous multithreading %s" % wanted,
            "BIOS: SMT or Hyper-Threading; until the next boot: echo %s > /sys/devices/system/cpu/smt/control" % wanted, _SMT,
        )
    ]  # fmt: skip


def _idle(want: Want, have: Have) -> List[Finding]:
    limit, deepest = want["idle_latency_max_us"], have["firmware"].deepest_idle
    if limit is None or not known(deepest) or not known(deepest.latency_us) or deepest.latency_us <= limit:
        return []
    return [
        Finding(
            "platform.idle-states", "warn", "host", "states of at most %d us" % limit, "%s: %d us" % (deepest.name, deepest.latency_us),
            "a CPU that sleeps deeply answers late: interrupts of NICs and NVMe, and kernel launches, wait for it",
            "kernel_deepest_cstate (role kernel), or C-states in the BIOS; the governor says nothing about them", _IDLE,
        )
    ]  # fmt: skip


def _governor(want: Want, have: Have) -> List[Finding]:
    seen = sorted(have["governors"])
    if want["governor"] == "any" or not seen or seen == [want["governor"]]:
        return []
    return [
        Finding(
            "platform.governor", "warn", "host", want["governor"], ", ".join(seen),
            "clocks follow the load with a delay, which short work of a GPU job pays each time",
            "kernel_governor: performance (role kernel); BIOS: power profile", "kernel Documentation/admin-guide/pm/cpufreq.rst",
        )
    ]  # fmt: skip


def _boot_mode(want: Want, have: Have) -> List[Finding]:
    mode = have["firmware"].boot_mode
    if want["boot_mode"] == "any" or not known(mode) or mode == want["boot_mode"]:
        return []
    return [
        Finding(
            "platform.boot-mode", "warn", "host", want["boot_mode"], mode,
            "in legacy mode the firmware places large BARs badly, and Secure Boot does not exist",
            "BIOS: boot mode; the disk needs an EFI system partition first", _BOOT,
        )
    ]  # fmt: skip


def _secure_boot(want: Want, have: Have) -> List[Finding]:
    boot = have["firmware"].secure_boot
    findings: List[Finding] = []
    state = boot.is_on
    if want["secure_boot"] != "any" and known(state) and state != (want["secure_boot"] == "on"):
        findings.append(
            Finding(
                "platform.secure-boot", "warn", "host", want["secure_boot"], "on" if state else "off",
                "the fleet wants Secure Boot %s; this collection reports it and never changes it" % want["secure_boot"],
                "BIOS: Secure Boot; before it goes on, see that the driver's modules are signed", _BOOT,
            )
        )  # fmt: skip
    if state is True and boot.validates is False:
        findings.append(
            Finding(
                "platform.shim-validation-off", "warn", "host", "validation in shim", "disabled",
                "Secure Boot is on in name, and the kernel loads modules that nobody signed",
                "mokutil --enable-validation, confirmed at the console at the next boot", "mokutil(1)",
            )
        )  # fmt: skip
    if state is True and boot.validates is not False:
        findings += _unsigned(have)
    return findings


def _unsigned(have: Have) -> List[Finding]:
    """A module that DKMS built is signed with a key of this machine, or not at all."""
    module = have["driver"].modinfo
    if not known(module) or (known(module.signer) and str(module.signer)):
        return []
    if isinstance(module.signer, Unknown) and not module.signer.reason.startswith("not there"):
        return []
    return [
        Finding(
            "platform.module-unsigned", "block", "nvidia", "a module signed with an enrolled key", "no signature: %s" % module.filename,
            "Secure Boot is on, so the kernel does not load this module at the next boot",
            "sign it with a Machine Owner Key and enrol that (mokutil --import, confirmed at the console at the next boot), "
            "or install the distribution's signed modules", "kernel Documentation/admin-guide/module-signing.rst", ("platform.",),
        )
    ]  # fmt: skip


def _sriov(want: Want, have: Have) -> List[Finding]:
    if want["sriov"] == "any":
        return []
    nics = [device for device in have["devices"] if device.kind == "nic"]
    ways = [have["ways"].get(device.address) for device in nics]
    offered = [
        way.device.address
        for way in ways
        if way is not None and not isinstance(way, Unknown) and number(way.device.total_vfs) > 0
    ]
    if not nics or bool(offered) == (want["sriov"] == "on"):
        return []
    return [
        Finding(
            "platform.sriov", "warn", "host", want["sriov"], "on: %s" % ", ".join(offered[:4]) if offered else "no NIC offers virtual functions",
            "virtual machines and containers get virtual functions of a NIC only where BIOS and NIC both allow it",
            "BIOS: SR-IOV; NIC firmware: mlxconfig SRIOV_EN", "sysfs: sriov_totalvfs",
        )
    ]  # fmt: skip
