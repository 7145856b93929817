# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Installed packages of the driver set and what lies on top of it, from dpkg or rpm, with their holds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import List, Optional, Sequence, Tuple, Union

from .._engine.host import Host
from .._engine.values import Text, Unknown, lines
from .nvidia_words import clean

# What is asked for: names differ by distribution, by NVIDIA's repository and by the age of both.
PATTERNS = (
    "*nvidia*",
    "*cuda*",
    "*cudnn*",
    "*nccl*",
    "*nvsdm*",
    "*nscq*",
    "nvlsm",
    "infiniband-diags",
    "datacenter-gpu-manager*",
)
VERSION_LOCKS = ("/etc/dnf/plugins/versionlock.list", "/etc/yum/pluginconf.d/versionlock.list")

_DPKG = ["dpkg-query", "-W", "-f", "${db:Status-Abbrev} ${Package} ${Version} ${Architecture}\\n"]
_RPM = ["rpm", "-qa", "--qf", "%{NAME} %{EPOCHNUM}:%{VERSION}-%{RELEASE} %{ARCH}\\n"]
_DEADLINE_S = 20.0

# The part a package plays, the first match wins.  Sources: facts on packages in docs (names of Debian, Ubuntu,
# Fedora, RHEL and of NVIDIA's own repositories, R390 to R620).
_COMPONENTS: Tuple[Tuple[str, str], ...] = (
    (r".*-(dev|devel|doc|debuginfo|dbgsym|dbg)", ""),
    (r"nvidia-driver-pinning-.*", "pinning"),
    (r"(cuda-drivers-)?(nvidia-)?fabric-?manager(-[\d.]+)?", "fabricmanager"),
    (r"libnvidia-nscq(-\d+)?", "nscq"),
    (r"libnvsdm(-\d+)?", "nvsdm"),
    (r"nvidia-imex(-\d+)?", "imex"),
    (r"nvlsm", "nvlsm"),
    (r"infiniband-diags", "infiniband-diags"),
    (r"nvidia-persistenced(-latest)?(-[\d.]+)?", "persistenced"),
    (r"nvidia-modprobe(-[\d.]+)?", "modprobe"),
    (r"(nvidia-container-.*|libnvidia-container.*|nvidia-docker2?)", "container"),
    (r"(nvidia-fs.*|nvidia-gds.*)", "gds"),
    (r"datacenter-gpu-manager.*", "dcgm"),
    (r"(nvidia-)?(lib)?cudnn.*", "cudnn"),
    (r"(lib)?nccl.*", "nccl"),
    (r"(linux-(modules|objects|signatures)-nvidia-.*|.*nvidia.*dkms.*|dkms-nvidia.*|a?kmod-nvidia.*)", "module"),
    (r"(nvidia-kernel-(open|source|support).*|nvidia-.*-kmp(-.*)?|xorg-x11-drv-nvidia-.*kmodsrc)", "module"),
    (
        r"(.*nvidia.*firmware.*|(kernel-)?firmware-nvidia-.*|nvidia-kernel-common.*|.*nvidia.*kernel-common.*)",
        "firmware",
    ),
    (r"nvidia-kmod-common", "firmware"),
    (r"(nvidia-)?cuda(-toolkit)?(-\d+(-\d+)?)?(-config-common)?", "cuda"),
    (
        r"(nvidia-(tesla-)?(\d+-)?smi|nvidia-(compute-)?utils.*|(nvidia-driver|xorg-x11-drv-nvidia(-\d+xx)?)-cuda"
        r"|nvidia-settings.*)",
        "tool",
    ),
    (
        r"(libnvidia-.*|libcuda1.*|libcudadebugger.*|nvidia-.*-?libs?(-.*)?|nvidia-driver-NVML|nvidia-libXNVCtrl"
        r"|xorg-x11-drv-nvidia-.*libs|nvidia-(compute|gl|video)-G\d\d.*)",
        "library",
    ),
    (
        r"(cuda-drivers.*|nvidia-(driver|open|headless|tesla|current|legacy|server-driver).*|nvidia-\d+.*"
        r"|xorg-x11-drv-nvidia(-\d+xx)?|x11-video-nvidiaG\d\d|nvidia-common-G\d\d)",
        "driver",
    ),
)
_RULES = tuple((re.compile(pattern), component) for pattern, component in _COMPONENTS)

# Desired, status, error as dpkg prints them ("ii ", "hi ", "iF ", "rc ").
_DPKG_ROW = re.compile(
    r"(?P<state>[uihrp][nicuUhHFWt][ R]?)\s{1,4}(?P<name>[a-z0-9][a-z0-9.+-]{0,100})(?::(?P<of>[a-z0-9-]{1,20}))?"
    r"\s{1,200}(?P<version>\S{1,100})(?:\s{1,200}(?P<arch>[a-z][a-z0-9-]{1,20}))?(?:\s.*)?",
    re.ASCII,
)
# How apt says "installed" in other languages, by its beginning.
_INSTALLED = (
    "installed", "installiert", "installé", "instalado", "instalat", "instal·lat", "installato", "installerat", "installeret",
    "installert", "geïnstalleerd", "zainstalowany", "nainstalován", "asennettu", "telepítve", "kurulu",
    "установлен", "встановлено",
    "已安装", "已安裝", "インストール済み", "설치됨",
)  # fmt: skip
_APT_ROW = re.compile(
    r"(?P<name>[a-z0-9][a-z0-9.+-]{0,100})/(?P<from>\S{0,200}) (?P<version>\S{1,100}) (?P<arch>[a-z0-9-]{1,20})"
    r" \[(?P<note>[^\]]{1,200})\]",
    re.ASCII,
)
_ARCH = r"(?P<arch>noarch|x86_64|i[3-6]86|aarch64|ppc64le|s390x|armv7hl)"
_RPM_ROW = re.compile(r"(?P<name>\S{1,120})-(?P<version>\d[^\s-]{0,80}-[^\s-]{1,80}?)\." + _ARCH, re.ASCII)
_QUERY_ROW = re.compile(r"(?P<name>\S{1,120}) (?P<version>\d{1,6}:[^\s-]{1,80}-[^\s-]{1,80}) " + _ARCH, re.ASCII)
_DNF_ROW = re.compile(
    r"(?P<name>\S{1,120})\." + _ARCH + r"\s{1,200}(?P<version>\d\S{0,80}-\S{1,80})\s{1,200}(?P<from>@?\S{1,80})",
    re.ASCII,
)
# A name that is too long for its column stands on a line of its own.
_WRAPPED = re.compile(r"\S{1,120}\." + _ARCH, re.ASCII)
# Of dnf 5, which marks the rows below it no further; dnf 4 writes "Installed Packages" and an @ in each row.
_BELOW_INSTALLED = "Installed packages"


@dataclass(frozen=True)
class Package:
    """``version`` as the package manager has it, with epoch and revision.  ``state`` are dpkg's two letters;
    only ``ii`` and ``hi`` are whole.  ``is_held``: kept by dpkg's hold or by dnf's versionlock."""

    name: str
    version: str
    architecture: str
    state: str
    is_held: bool

    @property
    def is_installed(self) -> bool:
        return self.state[1:2] == "i"

    @property
    def is_broken(self) -> bool:
        """Unpacked or half configured: an installation that did not end."""
        return self.state[1:2] in ("U", "F", "H", "h", "W", "t")

    @property
    def component(self) -> str:
        return component(self.name)

    @property
    def is_open(self) -> bool:
        """Belongs to the open kernel modules."""
        return "-open" in self.name


def component(name: str) -> str:
    """The part that a package plays: driver, module, firmware, library, tool, fabricmanager, nscq, nvsdm, imex, nvlsm,
    persistenced, modprobe, cuda (a toolkit), cudnn, nccl, container, dcgm, gds, pinning; empty for others."""
    return next((part for pattern, part in _RULES if pattern.fullmatch(name)), "")


def parse_dpkg(text: Text) -> Tuple[Package, ...]:
    """``dpkg -l``, ``dpkg-query -W`` in our format, or ``apt list --installed``; headers and other lines are ignored."""
    found: List[Package] = []
    for line in _rows(text):
        row, apt = _DPKG_ROW.fullmatch(line), _APT_ROW.fullmatch(line)
        if row and row.group("version") != "<none>":
            state = row.group("state")[:2]
            arch = row.group("of") or row.group("arch") or ""
            found.append(Package(row.group("name"), row.group("version"), arch, state, state[0] == "h"))
        elif apt and apt.group("note").lower().startswith(_INSTALLED):
            found.append(Package(apt.group("name"), apt.group("version"), apt.group("arch"), "ii", False))
    return tuple(found)


def parse_rpm(text: Text) -> Tuple[Package, ...]:
    """``rpm -qa``, as it prints by itself or in our format, or ``dnf list installed``."""
    found: List[Package] = []
    begun, is_below = "", False
    for line in _rows(text):
        if _WRAPPED.fullmatch(line) and not _RPM_ROW.fullmatch(line):
            begun = line + " "
            continue
        said, begun = begun + line, ""
        is_below = said == _BELOW_INSTALLED or (is_below and " packages" not in said and " upgrades" not in said)
        row = _QUERY_ROW.fullmatch(said) or _RPM_ROW.fullmatch(said) or _DNF_ROW.fullmatch(said)
        if row and (row.re is not _DNF_ROW or is_below or row.group("from").startswith("@")):
            version = row.group("version")
            version = version[2:] if version.startswith("0:") else version
            found.append(Package(row.group("name"), version, row.group("arch"), "ii", False))
    return tuple(found)


def _rows(text: Text) -> List[str]:
    """Lines without the colours of grep and the indentation of a report."""
    said = clean(text) if isinstance(text, str) and "\x1b" in text else text
    return [line.strip()[:800] for line in lines(said)]


def parse_versionlock(text: Text) -> Tuple[str, ...]:
    """The patterns of dnf's versionlock.list (name-epoch:version-release.arch); exclusions (!) lock nothing in place."""
    rows = [line.split("#")[0].strip() for line in lines(text)]
    return tuple(row for row in rows if row and not row.startswith("!"))


def missing(host: Host, names: Sequence[str]) -> List[str]:
    """Those of some packages that are not installed."""
    is_dpkg = host.exists("/var/lib/dpkg/status") is True
    # Both end with an error for a name that they do not know, and print the others all the same.
    said = host.run([*(_DPKG if is_dpkg else _RPM), *names], _DEADLINE_S).stdout
    there = {package.name for package in (parse_dpkg if is_dpkg else parse_rpm)(said) if package.is_installed}
    return [name for name in names if name not in there]


def observe(host: Host) -> Union[Tuple[Package, ...], Unknown]:
    """What of PATTERNS is installed, with one run of the package manager."""
    runs: List[Tuple[List[str], bool]] = []
    if host.exists("/var/lib/dpkg/status") or not host.is_live:
        runs.append(([*_DPKG, *PATTERNS], True))
    if not runs or not host.is_live:
        runs.append(([*_RPM, *PATTERNS], False))
    if not host.is_live:
        runs += [(["dpkg", "-l"], True), (["rpm", "-qa"], False)]
    reason = ""
    for argv, is_dpkg in runs:
        result = host.run(argv, _DEADLINE_S)
        # dpkg-query ends with 1 when one of the patterns matches nothing.
        if not result.unknown and result.rc in (0, 1):
            return _relevant(parse_dpkg(result.stdout)) if is_dpkg else _locked(host, parse_rpm(result.stdout))
        reason = reason or result.unknown or str(result.text())
    return Unknown(reason)


def versions_of(packages: Sequence[Package], wanted: str) -> Tuple[str, ...]:
    """The versions of a component that are installed, each once."""
    found = [package.version for package in packages if package.is_installed and package.component == wanted]
    return tuple(dict.fromkeys(found))


def _relevant(packages: Sequence[Package]) -> Tuple[Package, ...]:
    return tuple(package for package in packages if component(package.name) or package.is_broken)


def _locked(host: Host, packages: Sequence[Package]) -> Tuple[Package, ...]:
    locks = [lock for path in VERSION_LOCKS for lock in parse_versionlock(host.read(path))]
    names = [_lock_name(lock) for lock in locks]
    return tuple(
        Package(package.name, package.version, package.architecture, package.state, _is_locked(package.name, names))
        for package in _relevant(packages)
    )


def _lock_name(lock: str) -> Optional[re.Pattern[str]]:
    """The name in ``nvidia-driver-3:550.90.07-1.el9.*`` or ``nvidia-driver-0:550*``; it may have wildcards."""
    found = re.match(r"(.{1,100}?)-(?:\d{1,6}:)?\d", lock, re.ASCII)
    name = found.group(1) if found else lock
    return re.compile(re.escape(name).replace(r"\*", ".{0,100}").replace(r"\?", "."))


def _is_locked(name: str, names: Sequence[Optional[re.Pattern[str]]]) -> bool:
    return any(pattern is not None and pattern.fullmatch(name) for pattern in names)
