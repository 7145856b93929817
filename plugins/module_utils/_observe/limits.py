# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Resource limits: what PAM gives to logins and what systemd gives to services by default."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Union

from .._engine.host import Host
from .._engine.values import Unknown
from . import confd, unit

PAM_FOLDER = "/etc/security/limits.d"
PAM_FIRST = "/etc/security/limits.conf"
MANAGER_FIRST = "/etc/systemd/system.conf"
# Where a login asks for pam_limits: Debian names it in each service, EL in the stacks that services include.
PAM_STACKS = ("sshd", "login", "common-session", "system-auth", "password-auth")
PROPERTIES = ("DefaultLimitMEMLOCK", "DefaultLimitMEMLOCKSoft", "DefaultLimitNOFILE", "DefaultLimitNOFILESoft")


@dataclass(frozen=True)
class PamLine:
    file: str
    number: int
    domain: str
    kind: str
    item: str
    value: str


@dataclass(frozen=True)
class ManagerLine:
    file: str
    number: int
    key: str
    value: str


def parse_pam(file: str, text: str) -> List[PamLine]:
    """The lines of a limits.conf(5) file."""
    found: List[PamLine] = []
    for number, row in enumerate(text.splitlines(), 1):
        fields = row.split("#", 1)[0].split()
        # pam_limits takes the first four words of a line, and all but the domain in any case.
        kind, item, value = [word.lower() for word in (*fields, "", "", "", "")[1:4]]
        if value and kind in ("soft", "hard", "-"):
            found.append(PamLine(file, number, fields[0], kind, item, value))
    return found


def parse_manager(file: str, text: str) -> List[ManagerLine]:
    """The DefaultLimit… lines of a systemd-system.conf(5) file."""
    found: List[ManagerLine] = []
    for number, row in enumerate(text.splitlines(), 1):
        key, equals, value = row.strip().partition("=")
        if equals and key.strip().startswith("DefaultLimit"):
            found.append(ManagerLine(file, number, key.strip(), value.strip()))
    return found


def observe(host: Host) -> Dict[str, Any]:
    """The manager's live defaults, and the lines of all files in the order they are read."""
    pam = _first(host, PAM_FIRST) + confd.files(host, [PAM_FOLDER])
    manager = _first(host, MANAGER_FIRST) + confd.files(host, confd.roots("systemd/system.conf.d"))
    return {
        "manager": unit.manager(host, PROPERTIES),
        "manager_lines": [line for path, text in manager for line in parse_manager(path, text)],
        "pam_lines": [line for path, text in pam for line in parse_pam(path, text)],
        "pam_used": _pam_used(host),
        "nr_open": _nr_open(host),
    }


def _first(host: Host, path: str) -> List[confd.ConfFile]:
    text = host.read(path)
    return [(path, text)] if isinstance(text, str) else []


def _pam_used(host: Host) -> Union[bool, Unknown]:
    """Whether a login stack asks for pam_limits."""
    texts = [host.read("/etc/pam.d/" + name) for name in PAM_STACKS]
    seen = [text for text in texts if isinstance(text, str)]
    if not seen:
        return Unknown("no login stack was seen in /etc/pam.d")
    return any("pam_limits.so" in row.split("#", 1)[0] for text in seen for row in text.splitlines())


def _nr_open(host: Host) -> Union[int, Unknown]:
    text = host.read("/proc/sys/fs/nr_open")
    value = unit.number(text) if isinstance(text, str) else Unknown("not there")
    return value if isinstance(value, int) else Unknown("/proc/sys/fs/nr_open shows no number")
