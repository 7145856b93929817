# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Secure Boot: the firmware's variables, shim's own switch, and what mokutil and bootctl print of both.

Whether the kernel enforces signatures of modules takes both: Secure Boot on, and validation not turned off in shim
(kernel: drivers/firmware/efi/libstub/secureboot.c reads MokSBStateRT).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import List, Optional, Tuple, Union

from .._engine.host import Host
from .._engine.values import Text, Unknown, lines
from .nvidia_values import Flag, Word
from .nvidia_words import clean

EFI = "/sys/firmware/efi"
EFIVARS = EFI + "/efivars"
LOCKDOWN = "/sys/kernel/security/lockdown"
_GLOBAL = "8be4df61-93ca-11d2-aa0d-00e098032b8c"
_SHIM = "605dab50-e046-4300-abb6-3dd810dd8b23"
# The variable itself (MokSBState) cannot be seen after boot; shim leaves this copy of it.
_VALIDATION_OFF = "MokSBStateRT-" + _SHIM

# A variable is four bytes of attributes and its value (kernel: Documentation/filesystems/efivarfs.rst).
_VARIABLE_BYTES = 5

_SHORT_KEY = re.compile(r"\s{0,20}([0-9a-f]{8,64})\s{1,4}(\S.{0,200})", re.ASCII)
_FINGERPRINT = re.compile(r"\s{0,20}SHA(?:1|256) Fingerprint[:=] ?([0-9a-fA-F:]{40,96})\s*", re.ASCII)
_SUBJECT = re.compile(r"\s{0,40}Subject: ?(.{0,400})")
_LABEL = re.compile(r"\s{0,40}(Firmware|Secure Boot|Setup Mode)\s{0,4}: ?(.{0,200})", re.ASCII)
# bootctl tells the mode of the firmware, sbctl whether it is the setup mode.
_MODES = (
    ("setup", True),
    ("user", False),
    ("deployed", False),
    ("audit", False),
    ("enabled", True),
    ("disabled", False),
)


@dataclass(frozen=True)
class SecureBoot:
    """``is_uefi``: booted by UEFI, without which there is none.  ``validates``: shim's own validation is not off.

    ``enforces``: the kernel refuses modules without a valid signature.
    """

    is_uefi: Flag
    is_on: Flag
    is_in_setup_mode: Flag
    validates: Flag

    @property
    def enforces(self) -> Flag:
        if isinstance(self.is_on, Unknown) or not self.is_on:
            return self.is_on
        return True if isinstance(self.validates, Unknown) else self.validates


@dataclass(frozen=True)
class MokKey:
    """A key that shim or the firmware knows; ``fingerprint`` may be its beginning only."""

    fingerprint: str
    name: str


@dataclass(frozen=True)
class BootCtl:
    """What ``bootctl`` says of the firmware (``UEFI 2.80 (American Megatrends 5.27)``) and of Secure Boot."""

    firmware: Word
    secure_boot: SecureBoot


def observe(host: Host) -> SecureBoot:
    """From the variables; where a kernel or a container hides those, from mokutil."""
    if not host.exists(EFI):
        return _recorded(host) or _without_uefi(host)
    is_on = _variable(host, "SecureBoot-" + _GLOBAL)
    setup = _variable(host, "SetupMode-" + _GLOBAL)
    if isinstance(is_on, Unknown):
        said = parse_mokutil(host.run(["mokutil", "--sb-state"]).stdout)
        if not isinstance(said, Unknown) and not isinstance(said.is_on, Unknown):
            return SecureBoot(True, said.is_on, said.is_in_setup_mode, said.validates)
    off = _variable(host, _VALIDATION_OFF)
    # Without the variable nobody turned it off, as long as variables can be seen at all.
    is_seen = not isinstance(is_on, Unknown)
    validates: Flag = (True if is_seen else off) if isinstance(off, Unknown) else not off
    return SecureBoot(True, is_on, setup, validates)


def observe_lockdown(host: Host) -> Word:
    """The kernel's lockdown: none, integrity or confidentiality."""
    return parse_lockdown(host.read(LOCKDOWN))


def parse_efi_flag(text: Text) -> Flag:
    """A variable of one byte, as efivarfs gives it: its last byte is 0 or 1."""
    if not isinstance(text, str):
        return text if isinstance(text, Unknown) else Unknown("not there: no such variable")
    data = text.encode("utf-8", "surrogateescape")
    if len(data) != _VARIABLE_BYTES or data[-1] not in (0, 1):
        return Unknown("not understood: a variable of %d bytes" % len(data))
    return data[-1] == 1


def parse_lockdown(text: Text) -> Word:
    """``none [integrity] confidentiality``: the word in brackets."""
    found = re.search(r"\[(\w{1,20})\]", text[:200], re.ASCII) if isinstance(text, str) else None
    if found:
        return found.group(1)
    return text if isinstance(text, Unknown) else Unknown("not there: the kernel has no lockdown")


def parse_mokutil(text: Text) -> Union[SecureBoot, Unknown]:
    """``mokutil --sb-state``."""
    if not isinstance(text, str):
        return text if isinstance(text, Unknown) else Unknown("not there")
    # The kernel writes it in two words: "secureboot: Secure boot enabled".
    said = " ".join(clean(text).lower().split())[:1000].replace("secure boot ", "secureboot ")
    if "efi variables are not supported" in said:
        none = Unknown("not applicable: EFI variables are not supported on this system")
        return SecureBoot(False, none, none, none)
    silent = Unknown("not there: mokutil does not say")
    setup: Flag = True if "setup mode" in said else silent
    if "secureboot validation is disabled in shim" in said:
        is_on = _word_of(said, "secureboot enabled", "secureboot disabled")
        return SecureBoot(True, True if isinstance(is_on, Unknown) else is_on, setup, False)
    is_on = _word_of(said, "secureboot enabled", "secureboot disabled")
    if not isinstance(is_on, Unknown):
        return SecureBoot(True, is_on, setup, True if is_on else silent)
    if re.search("(?:doesn't|does not) support secure ?boot", said):
        return SecureBoot(True, False, setup, silent)
    return Unknown("not understood: %s" % text.strip()[:100] if said else "not there: mokutil printed nothing")


def parse_mok_keys(text: Text) -> Tuple[MokKey, ...]:
    """``mokutil --list-enrolled``, ``--db`` and the like, with or without --short."""
    keys: List[MokKey] = []
    for line in lines(clean(text) if isinstance(text, str) else text):
        row = line[:500].rstrip()
        short, finger, subject = _SHORT_KEY.fullmatch(row), _FINGERPRINT.fullmatch(row), _SUBJECT.fullmatch(row)
        if short:
            keys.append(MokKey(short.group(1), short.group(2)))
        elif finger:
            keys.append(MokKey(finger.group(1).replace(":", "").lower(), ""))
        elif subject and keys and not keys[-1].name:
            name = re.search(r"CN ?= ?([^,/]{1,200})", subject.group(1))
            keys[-1] = MokKey(keys[-1].fingerprint, (name.group(1) if name else subject.group(1)).strip())
    return tuple(keys)


def parse_bootctl(text: Text) -> Union[BootCtl, Unknown]:
    """The System part of ``bootctl``; before systemd 249 Setup Mode has a line of its own."""
    if not isinstance(text, str):
        return text if isinstance(text, Unknown) else Unknown("not there")
    rows = [_LABEL.fullmatch(line[:300].rstrip()) for line in clean(text).splitlines()]
    said = {row.group(1): row.group(2).strip() for row in reversed(rows) if row}
    if not said:
        if "not booted with efi" in text[:1000].lower():
            none = Unknown("not applicable: not booted with EFI")
            return BootCtl(none, SecureBoot(False, none, none, none))
        return Unknown(
            "not understood: %s" % text.strip()[:100] if text.strip() else "not there: bootctl printed nothing"
        )
    silent = Unknown("not there: bootctl does not say")
    boot = said.get("Secure Boot", "").lower()
    is_on = _word_of(boot, "enabled", "disabled")
    mode = said.get("Setup Mode", "").lower() or ((re.search(r"\((\w{1,20})\)", boot) or [""])[0]).strip("()")
    setup: Flag = next((is_setup for word, is_setup in _MODES if word in mode), silent)
    firmware = said.get("Firmware", "")
    told: Word = Unknown("not applicable: %s" % firmware) if firmware.startswith("n/a") else firmware or silent
    return BootCtl(told, SecureBoot(True, is_on, setup, silent))


def parse_rejected_module(text: Text) -> Optional[str]:
    """The module that was refused for its signature; empty when it is not named, None when none was."""
    for line in lines(text):
        row = line[:1000]
        if re.search(r"Key was rejected by service|Required key not available|Loading of .{1,40} is rejected", row):
            found = re.search(r"'([\w-]{1,60})'|([\w-]{1,60})\.ko\b", row, re.ASCII)
            return (found.group(1) or found.group(2)) if found else ""
    return None


def _word_of(said: str, yes: str, no: str) -> Flag:
    if said.startswith(yes) or yes + " " in said + " ":
        return True
    return (
        False
        if no in said
        else Unknown("not understood: %r" % said[:60] if said else "not there: nothing is said of it")
    )


def _variable(host: Host, name: str) -> Flag:
    path = "%s/%s" % (EFIVARS, name)
    if not host.is_live and not host.exists(path):
        # In a scrubbed capture the GUID is another one.
        beginning = name.split("-")[0] + "-"
        path = next(("%s/%s" % (EFIVARS, one) for one in host.listdir(EFIVARS) if one.startswith(beginning)), path)
    return parse_efi_flag(host.read(path))


def _recorded(host: Host) -> Optional[SecureBoot]:
    """A capture may hold only what a tool printed."""
    if host.is_live:
        return None
    result = host.run(["mokutil", "--sb-state"])
    said = parse_mokutil(result.stdout + result.stderr if not result.unknown else None)
    if not isinstance(said, Unknown):
        return said
    told = parse_bootctl(host.run(["bootctl"]).text())
    return None if isinstance(told, Unknown) else told.secure_boot


def _without_uefi(host: Host) -> SecureBoot:
    if not host.exists("/sys/firmware"):
        unseen = Unknown("not there: /sys/firmware")
        return SecureBoot(unseen, unseen, unseen, unseen)
    none = Unknown("not applicable: not booted by UEFI")
    return SecureBoot(False, False, none, none)
