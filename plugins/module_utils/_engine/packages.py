# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Packages with the tools that a role needs: which are missing, and how they come.

A host that was just installed has no package lists, and the lists of an old one name versions that its mirror no longer
has.  So lists are fetched where there are none, and once more where an installation failed with those that are there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Callable, List, Sequence, Tuple

from .host import Hands, Host, Result

APT_LISTS = "/var/lib/apt/lists"
# A mirror that does not answer costs apt half a minute for each try; packages of megabytes come in seconds.
REFRESH_DEADLINE_S = 300.0
# Never cut off in its work: dpkg and rpm must finish what they began, so this is only against a wait without an end.
INSTALL_DEADLINE_S = 1800.0

_APT = ("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", "-y")
# Waits for another apt or dpkg (unattended-upgrades runs for minutes after a first boot); APT::Periodic is not touched.
_APT_INSTALL = (*_APT, "-o", "DPkg::Lock::Timeout=120", "--no-install-recommends", "install")
_APT_REFRESH = (*_APT, "-o", "Acquire::Retries=1", "-o", "Acquire::http::Timeout=30", "update")

# What apt and dnf say of a place that did not give what was asked for; the address is the first group.
_UNREACHED = re.compile(
    r"^(?:[WE]: Failed to fetch (\S+) +(.*)|.*(Curl error \(\d+\): [^\[]*?) for (\S+)|.*(Status code: \d+) for (\S+).*)",
    re.MULTILINE,
)
_LONGEST_LINE = 500


class PackageError(Exception):
    """Packages that could not be installed, in words for the operator."""


@dataclass(frozen=True)
class Manager:
    """A package manager: how it is asked, and how it installs."""

    name: str
    install: Tuple[str, ...]
    refresh: Tuple[str, ...]
    has_lists: Callable[[Host], bool]
    by_hand: str


def manager_of(host: Host) -> Manager:
    """The manager of this host, by the database that its packages are in."""
    for path, manager in MANAGERS:
        if host.exists(path):
            return manager
    paths = ", ".join(path for path, _manager in MANAGERS)
    raise PackageError("no package manager is known here (looked for %s): install the packages by other means" % paths)


def install(hands: Hands, names: Sequence[str], missing: Callable[[Host, Sequence[str]], List[str]]) -> None:
    """Install packages; raises PackageError with the reason, and with the mirrors that did not answer.

    :param missing: tells which of some packages are not installed.
    """
    manager = manager_of(hands)
    refreshed: List[Result] = []
    if not manager.has_lists(hands):
        refreshed.append(_do(hands, manager.refresh, REFRESH_DEADLINE_S))
    done = _do(hands, (*manager.install, *names), INSTALL_DEADLINE_S)
    if not done.ok and not refreshed:
        refreshed.append(_do(hands, manager.refresh, REFRESH_DEADLINE_S))
        done = _do(hands, (*manager.install, *names), INSTALL_DEADLINE_S)
    left = missing(hands, names)
    if left:
        raise PackageError(_why(manager, left, [*refreshed, done]))


def unreached(text: str) -> List[Tuple[str, str]]:
    """Addresses that a package manager could not fetch, with its reason, each once."""
    found = []
    for line in text.splitlines():
        match = _UNREACHED.match(line[:_LONGEST_LINE])
        if match:
            address, reason = match[1] or match[4] or match[6], match[2] or match[3] or match[5]
            found.append((address, reason.strip()))
    return list(dict.fromkeys(found))


def _do(hands: Hands, argv: Sequence[str], deadline_s: float) -> Result:
    return hands.execute(argv, "", deadline_s)


def _why(manager: Manager, left: Sequence[str], results: Sequence[Result]) -> str:
    said = "\n".join(part for result in results for part in (result.stdout, result.stderr, result.unknown))
    places = unreached(said)
    if places:
        rows = "; ".join("%s (%s)" % place for place in places[:3])
        reason = "a mirror did not give what was asked for: %s" % rows
    else:
        complaints = [line for line in said.splitlines() if line.startswith(("E:", "Error", "No match"))]
        last = results[-1]
        words = complaints[-3:] or [last.unknown or "exit status %d" % last.rc]
        reason = "%s said: %s" % (manager.name, " ".join(line[:_LONGEST_LINE] for line in words))
    names = " ".join(left)
    return "%s could not be installed, since %s. To see it: %s" % (", ".join(left), reason, manager.by_hand % names)


def _apt_has_lists(host: Host) -> bool:
    return any("_Packages" in name for name in host.listdir(APT_LISTS))


def _fetches_by_itself(_host: Host) -> bool:
    return True


_RPM_DATABASES = ("/var/lib/rpm", "/usr/lib/sysimage/rpm")
_APT_MANAGER = Manager(
    "apt",
    _APT_INSTALL,
    _APT_REFRESH,
    _apt_has_lists,
    "sudo apt-get update && sudo apt-get install %s",
)
_DNF = Manager(
    "dnf",
    ("dnf", "-q", "-y", "install"),
    ("dnf", "-q", "-y", "makecache"),
    _fetches_by_itself,
    "sudo dnf install %s",
)
MANAGERS: Tuple[Tuple[str, Manager], ...] = (
    ("/var/lib/dpkg/status", _APT_MANAGER),
    *((path, _DNF) for path in _RPM_DATABASES),
)
