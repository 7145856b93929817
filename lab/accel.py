# Copyright: (c) 2026, gpufleet.host contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds out whether KVM really boots a guest here; the presence of /dev/kvm does not tell.

Some machines offer a /dev/kvm (a nested or paravirtual one) on which QEMU starts and no
firmware or standard kernel gets anywhere.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

from lab.base import LabError, say, state_dir
from lab.image import Image
from lab.qemu import FIRMWARE, QEMU, TCG, Accel

# The second spares a nested KVM a register that it may not set.
_KVM_MODELS = ("host", "host,-arch-capabilities")
_PROBE_S = 25.0
_USER_SPACE = b"Loading, please wait"
_FAILED = b"KVM internal error"


def choose(image: Image) -> Accel:
    """KVM where a guest boots on it, else TCG; GPUFLEET_LAB_ACCEL=tcg|kvm decides otherwise."""
    forced = os.environ.get("GPUFLEET_LAB_ACCEL", "")
    if forced == "tcg":
        return TCG
    if forced not in ("", "kvm"):
        raise LabError(f"GPUFLEET_LAB_ACCEL is '{forced}'", hint="set it to tcg or kvm, or unset it")
    accel, why = _remembered() or _probe(image)
    if forced == "kvm" and accel.name != "kvm":
        raise LabError(f"KVM does not boot a guest here: {why}", hint="unset GPUFLEET_LAB_ACCEL")
    return accel


def remember(accel: Accel, why: str) -> None:
    """Keep the answer until the machine is started anew."""
    _memory().write_text(json.dumps({"boot": _boot_id(), "name": accel.name, "cpu": accel.cpu, "why": why}))


def describe() -> str:
    """The remembered answer, for people."""
    known = _remembered()
    return f"{known[0].name} ({known[1]})" if known else "not tried yet"


def _memory() -> Path:
    return state_dir() / "accel.json"


def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _remembered() -> tuple[Accel, str] | None:
    if not _memory().exists():
        return None
    known = json.loads(_memory().read_text())
    if known["boot"] != _boot_id():
        return None
    accel = TCG if known["name"] == "tcg" else Accel(known["name"], known["cpu"])
    return accel, known["why"]


def _probe(image: Image) -> tuple[Accel, str]:
    accel, why = TCG, "no /dev/kvm that we may open"
    if os.access("/dev/kvm", os.R_OK | os.W_OK):
        for model in _KVM_MODELS:
            say(f"trying whether KVM boots a guest (-cpu {model})")
            why = _boot(image, Accel("kvm", model))
            if not why:
                accel, why = Accel("kvm", model), f"a guest boots with -cpu {model}"
                break
    say(f"acceleration: {accel.name} ({why})")
    remember(accel, why)
    return accel, why


def _boot(image: Image, accel: Accel) -> str:
    """Boot the image's kernel to its first program. Empty, or why that failed."""
    with tempfile.TemporaryDirectory(dir=state_dir(), prefix="kvm-") as folder:
        serial, errors = Path(folder, "serial.log"), Path(folder, "errors.log")
        argv = [
            QEMU,
            "-nodefaults",
            "-no-user-config",
            "-display",
            "none",
            "-machine",
            "q35",
            "-accel",
            accel.option,
            "-cpu",
            accel.cpu,
            "-smp",
            "2",
            "-m",
            "512",
            "-no-reboot",
            "-drive",
            f"if=pflash,format=raw,unit=0,readonly=on,file={FIRMWARE}",
            "-kernel",
            str(image.kernel),
            "-initrd",
            str(image.initrd),
            "-append",
            "console=ttyS0 panic=-1 break=top",
            "-serial",
            f"file:{serial}",
        ]
        with (
            errors.open("wb") as out,
            subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out) as process,
        ):
            try:
                return _watch(process, serial, errors)
            finally:
                process.kill()


def _watch(process: subprocess.Popen[bytes], serial: Path, errors: Path) -> str:
    deadline = time.monotonic() + _PROBE_S
    while time.monotonic() < deadline:
        if serial.exists() and _USER_SPACE in serial.read_bytes():
            return ""
        said = errors.read_bytes()
        if _FAILED in said:
            return "KVM cannot run the firmware: internal error"
        if process.poll() is not None:
            lines = said.decode(errors="replace").strip().splitlines() or ["no reason given"]
            return f"QEMU ended: {lines[-1]}"
        time.sleep(0.2)
    return f"the guest did not start a program within {_PROBE_S:.0f} s"
