# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Kernel arguments: what the boot loader will give at the next boot, and what the kernel has now.

Debian and Ubuntu: a drop-in of /etc/default/grub.d and update-grub.  EL: grubby, which changes the
boot entries and what later kernels get.  What is pending but not current waits for a reboot.
"""

from __future__ import annotations

import re
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from .._engine.values import BadWant, Finding, Step, Unknown
from .kernel_common import HEAD, file_steps, is_behind, unseen

FILE = "/etc/default/grub.d/90-gpufleet-kernel.cfg"
VARIABLE = "GRUB_CMDLINE_LINUX_DEFAULT"
SOURCE = "kernel Documentation/admin-guide/kernel-parameters.rst"
GRUB_SOURCE = "GRUB manual, simple configuration; /usr/sbin/update-grub"
GRUBBY_SOURCE = "grubby(8)"
# grub-mkconfig looks for kernels and other systems; on slow disks that takes a while.
_DEADLINE_S = 300.0

# The boot loader's own; a wrong one leaves a host that does not boot.
_NEVER = ("root", "ro", "rw", "init", "rdinit", "initrd", "BOOT_IMAGE", "rootflags", "rootfstype")
# Given several times on purpose.
_REPEATED = ("console", "earlycon", "hugepagesz", "hugepages", "module_blacklist", "dyndbg", "systemd.setenv", "ip")
_ARGUMENT = re.compile(r"[A-Za-z0-9_.-]+(=[A-Za-z0-9_.,:;/@+%~^=*()|!-]*)?\Z")
_INTEL = ",ven0000"


def check_want(want: Mapping[str, Any]) -> None:
    seen: Dict[str, str] = {}
    for index, argument in enumerate(want.get("cmdline") or []):
        place = "cmdline[%d]" % index
        if not isinstance(argument, str) or (argument and not _ARGUMENT.match(argument)):
            raise BadWant(place, argument, "one argument as iommu=pt: no blanks, quotes, $ or backslashes")
        if key_of(argument) in (key_of(name) for name in _NEVER):
            raise BadWant(place, argument, "anything but %s, which are the boot loader's" % ", ".join(_NEVER))
        # Those that may repeat are told apart by their values.
        key = argument if _may_repeat(argument) else key_of(argument)
        if argument and key in seen:
            raise BadWant(place, argument, "each argument once; %s is there already" % seen[key])
        seen[key] = argument


def key_of(argument: str) -> str:
    """The kernel takes - and _ in names as one."""
    return argument.split("=", 1)[0].replace("-", "_")


def is_managed(want: Mapping[str, Any]) -> bool:
    return want.get("cmdline") is not None


def wanted(want: Mapping[str, Any]) -> List[str]:
    return [argument for argument in want.get("cmdline") or [] if argument]


def missing(wanted_args: Sequence[str], args: Sequence[str]) -> List[str]:
    """Wanted arguments that are not there, or that a later one of the same name overrides."""
    last = {key_of(argument): argument for argument in args}
    return [a for a in wanted_args if a not in args or (not _may_repeat(a) and last[key_of(a)] != a)]


def render(want: Mapping[str, Any]) -> Optional[str]:
    if not wanted(want):
        return None
    return HEAD + '%s="$%s %s"\n' % (VARIABLE, VARIABLE, " ".join(wanted(want)))


def plan(want: Mapping[str, Any], have: Mapping[str, Any]) -> List[Step]:
    if not is_managed(want):
        return []
    seen = have["cmdline"]
    steps: List[Step] = []
    if seen["loader"] == "grub":
        steps += _grub_steps(want, have)
    elif seen["loader"] == "bls":
        steps += _bls_steps(want, seen)
    current = seen["current"]
    lacking = [] if isinstance(current, Unknown) or not seen["loader"] else missing(wanted(want), current)
    if lacking:
        now = " ".join(a for a in current if key_of(a) in {key_of(b) for b in lacking}) or "without " + " ".join(
            lacking
        )
        why = "the kernel reads its command line only when it boots"
        steps.append(
            Step("kernel.cmdline.boot", "reboot", "/proc/cmdline", now, " ".join(lacking), why, SOURCE, needs="reboot")
        )
    return steps


def judge(want: Mapping[str, Any], have: Mapping[str, Any]) -> List[Finding]:
    if not is_managed(want):
        return []
    seen = have["cmdline"]
    findings: List[Finding] = []
    if isinstance(seen["current"], Unknown):
        findings.append(unseen("/proc/cmdline", seen["current"], "cat /proc/cmdline", SOURCE))
    elif not seen["loader"] and not seen.get("loader_seen", True):
        reason = Unknown("the files of a boot loader were not recorded")
        findings.append(unseen("boot loader", reason, "take a whole capture (playbooks/capture.yml)", GRUB_SOURCE))
    elif not seen["loader"]:
        findings += _no_loader(wanted(want), seen["current"])
    if seen["loader"] and isinstance(seen["entries"], Unknown):
        findings.append(unseen("boot entries", seen["entries"], "ls -l /boot/grub /boot/loader/entries", GRUB_SOURCE))
    if seen["loader"] == "grub":
        if isinstance(have["files"][FILE], Unknown):
            findings.append(unseen(FILE, have["files"][FILE], "ls -l /etc/default/grub.d", GRUB_SOURCE))
        findings += _grub_findings(wanted(want), seen)
    return findings + _iommu_off(wanted(want), have)


def adopt(have: Mapping[str, Any]) -> Dict[str, Any]:
    """The arguments of the boot entries (else of the running kernel) that are not the boot loader's own."""
    seen = have.get("cmdline")
    if not seen:
        return {}
    entries = seen["entries"]
    args = entries[0].args if entries and not isinstance(entries, Unknown) else seen["current"]
    if isinstance(args, Unknown):
        return {}
    ours = [key_of(name) for name in (*_NEVER, "console", "quiet", "splash", "resume", "crashkernel")]
    return {"cmdline": list(dict.fromkeys(a for a in args if key_of(a) not in ours and _ARGUMENT.match(a)))}


def _may_repeat(argument: str) -> bool:
    return key_of(argument) in _REPEATED


def _grub_steps(want: Mapping[str, Any], have: Mapping[str, Any]) -> List[Step]:
    seen = have["cmdline"]
    why = "grub-mkconfig adds this to the arguments of each kernel, those installed later as well"
    steps = file_steps("kernel.cmdline.file", FILE, have, render(want), why, GRUB_SOURCE, "reboot")
    if isinstance(seen["entries"], Unknown):
        return steps
    lacking = sorted({a for entry in seen["entries"] for a in missing(wanted(want), entry.args)})
    if steps or lacking:
        argv = (seen["tool"],)
        after = "with " + " ".join(wanted(want)) if wanted(want) else "without our arguments"
        before = "without " + " ".join(lacking) if lacking else "as before"
        why = "GRUB boots by its grub.cfg, which update-grub makes from the defaults"
        target = "boot entries"
        undo = Step(
            "undo.kernel.cmdline.update",
            "run",
            target,
            after,
            before,
            why,
            GRUB_SOURCE,
            argv=argv,
            deadline_s=_DEADLINE_S,
        )
        steps.append(
            Step(
                "kernel.cmdline.update", "run", target, before, after, why, GRUB_SOURCE, "reboot", argv=argv, undo=undo,
                deadline_s=_DEADLINE_S, requires=("kernel.cmdline.file",),
            )
        )  # fmt: skip
    return steps


def _bls_steps(want: Mapping[str, Any], seen: Mapping[str, Any]) -> List[Step]:
    """One grubby call when all entries lack the same, else one for each entry that lacks something."""
    entries = [] if isinstance(seen["entries"], Unknown) else list(seen["entries"])
    lacks = [
        (entry, tuple(missing(wanted(want), entry.args)), _replaced(wanted(want), entry.args)) for entry in entries
    ]
    if lacks and lacks[0][1] and len({row[1:] for row in lacks}) == 1:
        return [_grubby(seen["tool"], "ALL", lacks[0][1], lacks[0][2])]
    return [_grubby(seen["tool"], _boot_path(entry.kernel), new, old) for entry, new, old in lacks if new]


def _replaced(wanted_args: Sequence[str], args: Sequence[str]) -> Tuple[str, ...]:
    """Arguments that grubby replaces, since it knows one value a name."""
    keys = {key_of(a) for a in missing(wanted_args, args) if not _may_repeat(a)}
    return tuple(a for a in args if key_of(a) in keys)


def _grubby(tool: str, kernel: str, new: Tuple[str, ...], old: Tuple[str, ...]) -> Step:
    why = "grubby changes the boot entries, and with ALL what kernels installed later get"
    before, after = " ".join(old) or "without " + " ".join(new), " ".join(new)
    where = "--update-kernel=" + kernel
    back = (tool, where, "--remove-args=" + " ".join(new)) + (("--args=" + " ".join(old),) if old else ())
    undo = Step("undo.kernel.cmdline." + kernel, "run", kernel, after, before, why, GRUBBY_SOURCE, argv=back)
    return Step(
        "kernel.cmdline." + kernel, "run", kernel, before, after, why, GRUBBY_SOURCE, "reboot",
        argv=(tool, where, "--args=" + " ".join(new)), undo=undo,
    )  # fmt: skip


def _boot_path(kernel: str) -> str:
    return kernel if kernel.startswith("/boot/") else "/boot" + kernel


def _grub_findings(args: Sequence[str], seen: Mapping[str, Any]) -> List[Finding]:
    findings: List[Finding] = []
    keys = {key_of(a): a for a in args if not _may_repeat(a)}
    for line in seen["assignments"]:
        if line.file == FILE:
            continue
        is_later = line.file != "/etc/default/grub" and is_behind(line.file, FILE)
        # GRUB_CMDLINE_LINUX comes before the variable that ours is in, whatever file sets it.
        is_later = is_later and line.variable == VARIABLE
        if args and is_later and not line.keeps:
            why = "this line is read after %s and throws away what it added" % FILE
            findings.append(_grub_conflict("block", line, " ".join(args), why))
            continue
        for word in line.value.split():
            if key_of(word) in keys and word != keys[key_of(word)]:
                why = "the kernel gets both; of most arguments it takes the last, " + (
                    "which is not ours" if is_later else "ours"
                )
                findings.append(_grub_conflict("block" if is_later else "warn", line, keys[key_of(word)], why))
    return findings + _stale(args, seen)


def _grub_conflict(level: str, line: Any, wanted_args: str, why: str) -> Finding:
    return Finding(
        "kernel.foreign-owner", level, "kernel command line", wanted_args,
        '%s:%d sets %s="%s"' % (line.file, line.number, line.variable, line.value), why,
        "remove or change line %d of %s, or leave the argument out of kernel_cmdline" % (line.number, line.file),
        GRUB_SOURCE, ("kernel.cmdline",),
    )  # fmt: skip


def _stale(args: Sequence[str], seen: Mapping[str, Any]) -> List[Finding]:
    """Arguments that grub.cfg still gives and no file asks for any more, as after an edit without update-grub."""
    lines = [line for line in seen["assignments"] if line.file != FILE]
    if isinstance(seen["entries"], Unknown) or any("`" in line.value or "$(" in line.value for line in lines):
        return []
    asked = {word for line in lines for word in line.value.split()} | set(args)
    if any(word.strip("\"'{}").startswith("$") and "CMDLINE" not in word for word in asked):
        return []
    known = {key_of(name) for name in _NEVER}
    extra = sorted(
        {a for entry in seen["entries"] for a in entry.args if a not in asked and key_of(a) not in known and "=" in a}
    )
    extra = [a for a in extra if not a.startswith("$")]
    if not extra:
        return []
    return [
        Finding(
            "kernel.grub-cfg-stale", "warn", "boot entries", "what /etc/default/grub and grub.d ask for", " ".join(extra),
            "grub.cfg gives arguments that no file asks for", "update-grub, when they are not meant to stay", GRUB_SOURCE,
        )
    ]  # fmt: skip


def _no_loader(args: Sequence[str], current: Sequence[str]) -> List[Finding]:
    lacking = missing(args, current)
    if not args:
        return []
    reason = "neither GRUB with update-grub nor boot entries with grubby"
    return [
        Finding(
            "kernel.no-boot-loader", "fail" if lacking else "warn", "kernel command line", " ".join(args),
            reason if lacking else Unknown(reason),
            "arguments can be kept only by a boot loader that is known here" if lacking
            else "the arguments are there now, but who gives them cannot be seen",
            "add them by hand where this host's boot loader takes them, or set kernel_cmdline: null", GRUB_SOURCE,
        )
    ]  # fmt: skip


def _iommu_off(args: Sequence[str], have: Mapping[str, Any]) -> List[Finding]:
    """iommu=pt alone does not switch an Intel IOMMU on where the kernel's default is off."""
    about = have["iommu"]
    current = have["cmdline"]["current"]
    is_asked = any(key_of(a) == "intel_iommu" for a in [*args, *([] if isinstance(current, Unknown) else current)])
    if "iommu=pt" not in args or _INTEL not in about["modalias"] or about["units"] or is_asked:
        return []
    return [
        Finding(
            "kernel.iommu-is-off", "info", "iommu=pt", "an IOMMU that it applies to", "none is on",
            "on Intel the kernel may be built with the IOMMU off (CONFIG_INTEL_IOMMU_DEFAULT_ON); then iommu=pt does nothing",
            "add intel_iommu=on to kernel_cmdline if SR-IOV or VFIO needs it, and VT-d in the firmware", SOURCE,
        )
    ]  # fmt: skip
