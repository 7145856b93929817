# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Modules that DKMS builds on the host: the output of ``dkms status``, or the tree that it is made from.

A live host is read from the tree (/var/lib/dkms, laid out by dkms(8)): the command is a shell script that costs
more than all the rest of an observation.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import List, Optional, Tuple, Union

from .._engine.host import Host
from .._engine.values import Text, Unknown
from .nvidia_words import clean

TREE = "/var/lib/dkms"

# "nvidia/470.57.02, 5.4.0-77-generic, x86_64: installed" since dkms 3, "nvidia, 460.80, ..." before.
_STATUS = re.compile(
    r"\s*(?P<module>[A-Za-z][\w.+-]{0,80})(?:/|, )(?P<version>[\w.+~:-]{1,80}?)(?:, (?P<kernel>[^,:\s]{1,100}))?"
    r"(?:, (?P<arch>[\w-]{1,30}))?: (?P<state>added|built|installed-weak|installed|broken|[a-z-]{1,40})(?P<note>.{0,300})",
    re.ASCII,
)
_BUILD = re.compile(r"Bad return status for module build on kernel: (\S{1,100})", re.ASCII)
_PATCH = re.compile(r"Error! Application of patch \S{1,200} failed", re.ASCII)
_BUILDING = re.compile(r"Building (?:initial )?module(?: [\w.+-]{1,80}/[\w.+~:-]{1,80})? for (\S{1,100})", re.ASCII)
_NO_HEADERS = re.compile(
    r"Error! Your kernel headers for kernel (\S{1,100}) cannot be found"
    r"|ERROR: Missing (\S{1,100}) kernel headers for module ([\w.+-]{1,80})/([\w.+~:-]{1,80}?)\.?$",
    re.ASCII,
)
_LOG = re.compile(re.escape(TREE) + r"/([\w.+-]{1,80})/([\w.+~:-]{1,80})/build", re.ASCII)
_PLACE = re.compile(re.escape(TREE) + r"/([\w.+-]{1,80})/([\w.+~:-]{1,80})/", re.ASCII)
_VERSION = re.compile(r"\d[\w.+~:-]{0,80}", re.ASCII)


@dataclass(frozen=True)
class Entry:
    """``state`` is added (never built), built (not installed), installed, installed-weak, or broken.

    ``note`` is what stands behind the state: a difference between built and installed module, an original module.
    """

    module: str
    version: str
    kernel: str
    architecture: str
    state: str
    note: str

    @property
    def is_installed(self) -> bool:
        return self.state.startswith("installed")

    @property
    def differs(self) -> bool:
        """The module on disk is not the one that was built: somebody else put one in its place."""
        return "diff between built and installed" in self.note.lower()


@dataclass(frozen=True)
class BuildFailure:
    """A build that ended with an error; what it was for, as far as the message says."""

    kernel: str
    module: str
    version: str


@dataclass(frozen=True)
class Dkms:
    """``broken`` are (module, version) whose tree is damaged, ``errors`` what dkms said about them and others."""

    entries: Tuple[Entry, ...]
    broken: Tuple[Tuple[str, str], ...]
    failures: Tuple[BuildFailure, ...]
    errors: Tuple[str, ...]

    def of(self, kernel: str) -> Tuple[Entry, ...]:
        """The NVIDIA modules for a kernel."""
        return tuple(entry for entry in self.nvidia if entry.kernel == kernel)

    @property
    def nvidia(self) -> Tuple[Entry, ...]:
        return tuple(entry for entry in self.entries if is_nvidia(entry.module))


def is_nvidia(module: str) -> bool:
    """nvidia, nvidia-open, nvidia-current, nvidia-srv, nvidia-tesla-535, but not nvidia-fs (GPUDirect Storage)."""
    return module.startswith("nvidia") and not module.startswith(("nvidia-fs", "nvidia-peer", "nvidia-p2p"))


def parse_dkms(text: Text) -> Dkms:
    """The output of ``dkms status``, both streams together: good lines count, whatever stands beside them."""
    found: List[Entry] = []
    broken: List[Tuple[str, str]] = []
    failures: List[BuildFailure] = []
    errors: List[str] = []
    building = ""
    for line in clean(text).split("\n") if isinstance(text, str) else []:
        line = line[:1000]
        row, build, begun = _STATUS.fullmatch(line), _BUILD.search(line), _BUILDING.match(line.strip())
        # Hooks of Arch put an arrow before what they say.
        said = re.sub(r"^==> ", "", line.strip())
        no_headers = _NO_HEADERS.match(said)
        is_error = said.lower().startswith(("error!", "warning!", "error:", "error ("))
        building = begun.group(1) if begun else building
        if row and not is_error:
            found.append(_entry(row))
        elif no_headers:
            kernel, kernel_of_arch, module, version = no_headers.groups(default="")
            failures.append(BuildFailure(kernel or kernel_of_arch, module, version))
            errors.append(said)
        elif build or _PATCH.search(line):
            failures.append(BuildFailure(build.group(1) if build else building, "", ""))
            errors.append(said)
        elif is_error:
            errors.append(said)
        if not row:
            _note_places(said, broken, failures)
    broken += [(entry.module, entry.version) for entry in found if entry.state == "broken"]
    return Dkms(tuple(found), tuple(dict.fromkeys(broken)), tuple(failures), tuple(errors))


def observe(host: Host) -> Union[Dkms, Unknown]:
    """The NVIDIA modules in the tree; a capture may hold the command instead."""
    if not host.is_live:
        result = host.run(["dkms", "status"])
        if not result.unknown:
            return parse_dkms(result.stdout + "\n" + result.stderr)
    if not host.exists(TREE):
        return Unknown("not there: %s" % TREE)
    found: List[Entry] = []
    broken: List[Tuple[str, str]] = []
    for module in host.listdir(TREE):
        if is_nvidia(module):
            for version in host.listdir("%s/%s" % (TREE, module)):
                if _VERSION.fullmatch(version):
                    found += _of_version(host, module, version, broken)
    return Dkms(tuple(found), tuple(broken), (), ())


def _of_version(host: Host, module: str, version: str, broken: List[Tuple[str, str]]) -> List[Entry]:
    """``<version>/<kernel>/<architecture>/module``; an installed one has a link ``kernel-<kernel>-<architecture>``."""
    folder = "%s/%s/%s" % (TREE, module, version)
    if not host.exists(folder + "/source/dkms.conf"):
        # The sources are gone and the tree stayed: dkms fails on it, for every module.
        broken.append((module, version))
        return [Entry(module, version, "", "", "broken", "")]
    found: List[Entry] = []
    for kernel in host.listdir(folder):
        if kernel in ("source", "build"):
            continue
        for architecture in host.listdir("%s/%s" % (folder, kernel)):
            if host.exists("%s/%s/%s/module" % (folder, kernel, architecture)):
                target = host.readlink("%s/%s/kernel-%s-%s" % (TREE, module, kernel, architecture))
                # The link names the version that is installed; another may only be built for the same kernel.
                is_here = target is not None and target.strip("/").split("/")[:1] == [version]
                found.append(Entry(module, version, kernel, architecture, "installed" if is_here else "built", ""))
    return found or [Entry(module, version, "", "", "added", "")]


def _entry(row: re.Match[str]) -> Entry:
    parts = row.groupdict(default="")
    return Entry(
        parts["module"], parts["version"], parts["kernel"], parts["arch"], parts["state"], parts["note"].strip(" ()")
    )


def _note_places(said: str, broken: List[Tuple[str, str]], failures: List[BuildFailure]) -> None:
    """Paths in messages tell which tree they are about; of a failed build the line below names its log."""
    log: Optional[re.Match[str]] = _LOG.search(said)
    place = _PLACE.search(said)
    if log and failures and not failures[-1].module:
        failures[-1] = BuildFailure(failures[-1].kernel, log.group(1), log.group(2))
    elif place and ("does not exist" in said or "is missing" in said or "broken" in said.lower()):
        broken.append((place.group(1), place.group(2)))
