# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The NVIDIA kernel module: the one that is loaded, and those that lie on disk for each kernel."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Dict, List, Mapping, Tuple, Union

from .._engine.values import Text, Unknown, lines
from .nvidia_values import Flag, Number, Word
from .nvidia_words import address, is_complaint, word

# "NVIDIA UNIX x86_64 Kernel Module  520.56.06  Thu Oct ..." and, of the open module,
# "NVIDIA UNIX Open Kernel Module for aarch64  595.58.03  Release Build ...".
_MODULE = re.compile(
    r"NVIDIA UNIX (?:(?P<open>Open )?Kernel Module for (?P<arch>\w{1,20})|(?P<old>\w{1,20}) Kernel Module)\s{1,20}"
    r"(?P<version>\d{2,4}\.\d{1,4}(?:\.\d{1,4})?)(?![\w.])",
    re.ASCII,
)
_VERSION = re.compile(r"\d{2,4}(?:\.\d{1,4}){1,2}", re.ASCII)
_ROW = re.compile(r"([a-z_]{1,30}):\s{1,20}(.{0,2000})", re.ASCII)
_FOUND = re.compile(r"(?:.{0,200}?/)?lib/modules/([^/\s]{1,100})/(\S{0,300}/)?nvidia\.ko(?:\.\w{1,4})?\s*", re.ASCII)
_DEPENDENCY = re.compile(r"((?:\S{0,300}/)?nvidia\.ko(?:\.\w{1,4})?):", re.ASCII)


@dataclass(frozen=True)
class ModuleVersion:
    version: str
    is_open: bool
    architecture: str


@dataclass(frozen=True)
class Modinfo:
    """The module that modprobe would load.  An unsigned module has an empty ``signer``."""

    filename: Word
    version: Word
    license: Word
    kernel: Word
    signer: Word
    firmware: Tuple[str, ...]

    @property
    def is_open(self) -> Flag:
        """The open flavour is under a licence that the kernel knows."""
        if isinstance(self.license, Unknown):
            return self.license
        return "GPL" in self.license or "MIT" in self.license

    @property
    def is_dkms_built(self) -> Flag:
        """Whether DKMS built it on this host (its default folders), rather than a package bringing it."""
        if isinstance(self.filename, Unknown):
            return self.filename
        return "/dkms/" in self.filename or re.search(r"/(extra|weak-updates)/nvidia\.ko", self.filename) is not None


@dataclass(frozen=True)
class GpuInformation:
    """A GPU as the kernel module knows it.  ``uuid`` and ``vbios`` are question marks until it was initialised."""

    model: Word
    uuid: Word
    vbios: Word
    address: Word
    minor: Number
    firmware: Word
    is_excluded: Flag


def module_version(text: str) -> Union[ModuleVersion, Unknown]:
    """The version in a line of the module's own."""
    found = _MODULE.search(text)
    if not found:
        return Unknown("not understood: %r" % text.strip()[:60])
    return ModuleVersion(found.group("version"), bool(found.group("open")), found.group("arch") or found.group("old"))


def parse_proc_version(text: Text) -> Union[ModuleVersion, Unknown]:
    """``/proc/driver/nvidia/version``: the module that is loaded."""
    if not isinstance(text, str):
        return text if isinstance(text, Unknown) else Unknown("not there: the module is not loaded")
    row = next((line for line in text.splitlines() if "NVRM" in line or "NVIDIA UNIX" in line), text)
    return module_version(row[:1000])


def parse_module_version(text: Text) -> Word:
    """``/sys/module/nvidia/version`` or ``modinfo -F version``: the first line that is a version and nothing else."""
    if not isinstance(text, str):
        return text if isinstance(text, Unknown) else Unknown("not there: the module is not loaded")
    rows = [line.strip() for line in text.splitlines() if line.strip()]
    found = next((row for row in rows if _VERSION.fullmatch(row)), None)
    if found is not None:
        return found
    said = next(iter(rows), "")
    return Unknown("%s: %s" % ("error" if _is_error(said) else "not understood", said[:200]) if said else "not there")


def parse_modinfo(text: Text) -> Union[Modinfo, Unknown]:
    """The output of ``modinfo nvidia``; Unknown with its own word when there is no such module for this kernel."""
    if not isinstance(text, str):
        return text if isinstance(text, Unknown) else Unknown("not there")
    rows: Dict[str, List[str]] = {}
    for line in text.splitlines():
        row = _ROW.fullmatch(line.strip()[:2000])
        if row:
            rows.setdefault(row.group(1), []).append(row.group(2).strip())
    if not {"filename", "version"} & set(rows):
        return _no_modinfo(text)
    kernel = _row(rows, "vermagic")
    return Modinfo(
        _row(rows, "filename"),
        _row(rows, "version"),
        _row(rows, "license"),
        kernel if isinstance(kernel, Unknown) or not kernel else kernel.split()[0],
        # kmod prints no row at all for a module without a signature, but for a text that was cut that proves nothing.
        _row(rows, "signer") if "signer" in rows or "vermagic" not in rows else "",
        tuple(rows.get("firmware", ())),
    )


def parse_modules_dep(text: Text) -> Tuple[str, ...]:
    """Where nvidia.ko lies for one kernel, from its ``modules.dep``; there may be several."""
    if not isinstance(text, str):
        return ()
    # Found by name first: the file has thousands of lines.
    rows = [line[:400] for line in text.splitlines() if "nvidia.ko" in line[:400]]
    return tuple(found.group(1) for found in map(_DEPENDENCY.match, rows) if found)


def parse_found_modules(text: Text) -> Dict[str, Tuple[str, ...]]:
    """Paths as ``find`` lists them, by kernel: only nvidia.ko itself counts, not folders or drivers of that name."""
    kernels: Dict[str, Tuple[str, ...]] = {}
    for line in lines(text):
        found = _FOUND.fullmatch(line[:700])
        if found:
            kernels[found.group(1)] = (*kernels.get(found.group(1), ()), line.strip())
    return kernels


def parse_gpu_information(text: Text) -> GpuInformation:
    """``/proc/driver/nvidia/gpus/*/information``."""
    rows: Dict[str, str] = {}
    for line in lines(text):
        name, colon, value = line[:400].partition(":")
        if colon:
            rows.setdefault(" ".join(name.split()).lower(), value.strip())
    minor = rows.get("device minor", "")
    excluded = rows.get("gpu excluded", rows.get("blacklisted", "")).lower()
    return GpuInformation(
        _said(rows, "model"),
        _said(rows, "gpu uuid"),
        _said(rows, "video bios"),
        address(rows.get("bus location", "")),
        int(minor) if re.fullmatch(r"\d{1,4}", minor, re.ASCII) else Unknown("not there: no Device Minor"),
        _said(rows, "gpu firmware"),
        excluded == "yes" if excluded in ("yes", "no") else Unknown("not there: no GPU Excluded"),
    )


def _said(rows: Mapping[str, str], name: str) -> Word:
    said = rows.get(name, "")
    # A GPU that nobody opened yet answers with question marks.
    return Unknown("not there: the GPU was not initialised yet") if "??" in said else word(said)


def _row(rows: Mapping[str, List[str]], name: str) -> Word:
    return rows[name][0] if rows.get(name) else Unknown("not there: modinfo has no row %s" % name)


def _is_error(said: str) -> bool:
    return said.startswith(("modinfo:", "modprobe:")) or is_complaint(said)


def _no_modinfo(text: str) -> Unknown:
    said = next((line.strip() for line in text.splitlines() if line.strip()), "")
    if "not found" in said:
        return Unknown("not there: %s" % said[:200])
    return Unknown("%s: %s" % ("error" if _is_error(said) else "not understood", said[:200]) if said else "not there")
