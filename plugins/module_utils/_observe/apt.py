# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What apt says about versions and holds: candidates and their pins, refused runs, pending upgrades."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import List, Optional, Tuple

from .._engine.values import Text, Unknown, lines
from .._engine.versions import branch
from .nvidia_values import Number, Word

_NAME = r"[a-z0-9][a-z0-9.+-]{0,100}"
_PACKAGE = re.compile(r"(%s)(?::[a-z0-9]{1,10})?:\s{0,10}" % _NAME, re.ASCII)
_FIELD = re.compile(r"\s{1,10}(Installed|Candidate|Package pin):\s{1,10}(\S{1,100})", re.ASCII)
_VERSION = re.compile(r"\s{0,2}(\*\*\*|\s{3})\s{1,3}(\S{1,100})(?:\s{1,10}(-?\d{1,6}))?(?:\s.{0,100})?", re.ASCII)
_ORIGIN = re.compile(r"\s{6,20}(-?\d{1,6})\s{1,10}(\S.{0,400})", re.ASCII)
_UNMET = re.compile(
    r"\s{1,10}(%s)(?::[a-z0-9]{1,10})? : (Depends|PreDepends|Pre-Depends|Breaks|Conflicts|Recommends): (.{1,300})"
    % _NAME,
    re.ASCII,
)
_MORE_UNMET = re.compile(r"\s{6,100}(Depends|PreDepends|Pre-Depends|Breaks|Conflicts|Recommends): (.{1,300})", re.ASCII)
_UPGRADE = re.compile(
    r"(%s)/(\S{0,200}) (\S{1,100}) (\S{1,20}) \[(?:upgradable from|von): ?(\S{1,100})\]" % _NAME, re.ASCII
)
# "dpkg: error processing package nvidia-dkms-390 (--configure):", in any language.
_UNCONFIGURED = re.compile(r"dpkg: .{1,80}? (%s)(?::[a-z0-9]{1,10})? \(--(?:configure|unpack|install)\):" % _NAME)
_NAMED_BRANCH = re.compile(r"-(\d{3,4})(?=-|\Z)", re.ASCII)


@dataclass(frozen=True)
class Offer:
    """A version that apt knows; ``priority`` is its pin, ``origins`` where it comes from."""

    version: str
    priority: Number
    origins: Tuple[str, ...]


@dataclass(frozen=True)
class Policy:
    """``installed`` is Unknown when the package is not installed (``(none)``)."""

    package: str
    installed: Word
    candidate: Word
    offers: Tuple[Offer, ...]


@dataclass(frozen=True)
class Unmet:
    package: str
    relation: str
    wanted: str


@dataclass(frozen=True)
class Refusal:
    """Why apt refused: packages on hold that would have changed, or dependencies that cannot be met.

    ``is_conflict``: apt speaks of held broken packages, which need not be on hold at all.
    """

    held: Tuple[str, ...]
    unmet: Tuple[Unmet, ...]
    is_conflict: bool
    errors: Tuple[str, ...]


@dataclass(frozen=True)
class Upgrade:
    package: str
    installed: str
    candidate: str

    @property
    def leaves_branch(self) -> bool:
        """The candidate is of another driver branch than what is installed, whatever the name says."""
        return branch(self.installed) != branch(self.candidate)

    @property
    def named_branch(self) -> Optional[int]:
        """The branch in the package's name (470 of libnvidia-compute-470)."""
        found = _NAMED_BRANCH.search(self.package)
        return int(found.group(1)) if found else None


def parse_apt_policy(text: Text) -> Tuple[Policy, ...]:
    """``apt-cache policy`` of some packages."""
    found: List[Policy] = []
    for line in lines(text):
        row = line[:500].rstrip()
        name, field = _PACKAGE.fullmatch(row), _FIELD.fullmatch(row)
        if name:
            absent = Unknown("not there: apt policy has no such row")
            found.append(Policy(name.group(1), absent, absent, ()))
        elif found:
            found[-1] = _more_policy(found[-1], row, field)
    return tuple(found)


def parse_apt_refusal(text: Text) -> Optional[Refusal]:
    """Why ``apt-get install`` refused; None when it did not."""
    held: List[str] = []
    unmet: List[Unmet] = []
    errors: List[str] = []
    is_list = False
    for line in lines(text):
        row = line[:500].rstrip()
        first, more = _UNMET.fullmatch(row), _MORE_UNMET.fullmatch(row)
        if is_list and row.startswith("  "):
            held += row.split()
            continue
        is_list = row.startswith("The following held packages will be changed")
        if first:
            unmet.append(Unmet(first.group(1), first.group(2), first.group(3).strip()))
        elif more and unmet:
            unmet.append(Unmet(unmet[-1].package, more.group(1), more.group(2).strip()))
        elif row.startswith("E: "):
            errors.append(row[3:])
    if not errors and not held and not unmet:
        return None
    is_conflict = any("held broken packages" in error for error in errors)
    return Refusal(tuple(held), tuple(unmet), is_conflict, tuple(errors))


def parse_apt_upgradable(text: Text) -> Tuple[Upgrade, ...]:
    """``apt list --upgradable``."""
    rows = [_UPGRADE.fullmatch(line[:600].strip()) for line in lines(text)]
    return tuple(Upgrade(row.group(1), row.group(5), row.group(3)) for row in rows if row)


def parse_unconfigured(text: Text) -> Tuple[str, ...]:
    """Packages that dpkg could not unpack or configure, each once."""
    rows = [_UNCONFIGURED.fullmatch(line[:400].strip()) for line in lines(text)]
    return tuple(dict.fromkeys(row.group(1) for row in rows if row))


def parse_apt_holds(text: Text) -> Tuple[str, ...]:
    """``apt-mark showhold``: a name a line."""
    return tuple(line.strip() for line in lines(text) if re.fullmatch(_NAME, line.strip()[:200], re.ASCII))


def _more_policy(policy: Policy, row: str, field: Optional[re.Match[str]]) -> Policy:
    version, origin = _VERSION.fullmatch(row), _ORIGIN.fullmatch(row)
    offers = policy.offers
    installed, candidate = policy.installed, policy.candidate
    if field:
        said: Word = field.group(2)
        said = Unknown("not there: apt says %s" % said) if said == "(none)" else said
        installed = said if field.group(1) == "Installed" else installed
        candidate = said if field.group(1) == "Candidate" else candidate
    elif origin and offers:
        last = offers[-1]
        offers = (*offers[:-1], Offer(last.version, last.priority, (*last.origins, origin.group(2))))
    elif version and row.strip() != "Version table:":
        pin = version.group(3)
        offers = (*offers, Offer(version.group(2), int(pin) if pin else Unknown("not there: no pin is printed"), ()))
    return Policy(policy.package, installed, candidate, offers)
