# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sysctls: live values from /proc/sys, and what the sysctl.d files will set at the next boot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Iterable, List, Optional, Union

from .._engine.host import Host
from .._engine.values import Text, Unknown
from .._tables.sysctls import key_path
from . import confd

TOP = "/proc/sys"
# systemd-sysctl does not read it (distributions link it as 99-sysctl.conf); `sysctl --system` reads it last.
PROCPS_FILE = "/etc/sysctl.conf"


@dataclass(frozen=True)
class Line:
    """One assignment.  ``value`` None is "-key" alone: the key is kept out of the reach of globs."""

    file: str
    number: int
    key: str
    value: Optional[str]

    @property
    def is_glob(self) -> bool:
        return any(letter in self.key for letter in "*?[")


def parse_lines(file: str, text: str) -> List[Line]:
    """The assignments of one sysctl.d file; comments and what is no assignment are ignored."""
    found: List[Line] = []
    for number, row in enumerate(text.splitlines(), 1):
        row = row.strip()
        if not row or row[0] in "#;":
            continue
        key, equals, value = row.partition("=")
        if not equals and not row.startswith("-"):
            continue
        key = key_path(key.strip().lstrip("-"))
        if key:
            found.append(Line(file, number, key, " ".join(value.split()) if equals else None))
    return found


def lines(host: Host) -> List[Line]:
    """All assignments in the order that systemd-sysctl reads them."""
    return [line for path, text in confd.files(host, confd.roots("sysctl.d")) for line in parse_lines(path, text)]


def procps_lines(host: Host) -> List[Line]:
    text = host.read(PROCPS_FILE)
    return parse_lines(PROCPS_FILE, text) if isinstance(text, str) else []


def later(found: Iterable[Line], name: str) -> Dict[str, Line]:
    """By key the line that overrides what the file called ``name`` sets: the last explicit one behind it.

    A glob never overrides a key that is set explicitly (sysctl.d(5)); "-key" alone takes it out.
    """
    return {line.key: line for line in found if not line.is_glob and line.file.rsplit("/", 1)[-1] > name}


def live(host: Host, keys: Iterable[str]) -> Dict[str, Dict[str, Any]]:
    """For each key its value (None: the kernel has none) and, for a missing one, the names around it."""
    asked = list(keys)
    return {key: _live_one(host, key, asked) for key in asked}


def _live_one(host: Host, key: str, asked: List[str]) -> Dict[str, Any]:
    value: Union[Text, Unknown] = host.read("%s/%s" % (TOP, key))
    if isinstance(value, str):
        return {"value": value.rstrip("\n"), "near": []}
    if isinstance(value, Unknown):
        return {"value": value, "near": []}
    folder = key.rsplit("/", 1)[0] if "/" in key else ""
    while folder and not host.exists("%s/%s" % (TOP, folder)):
        folder = folder.rsplit("/", 1)[0] if "/" in folder else ""
    near = [("%s/%s" % (folder, name)).lstrip("/") for name in host.listdir(("%s/%s" % (TOP, folder)).rstrip("/"))]
    # Only a host, or a whole capture, holds what nobody asked for; a folder seen in full has such names.
    is_seen = host.is_live and any(
        name not in asked and not any(key.startswith(name + "/") for key in asked) for name in near
    )
    return {"value": None if is_seen else Unknown("%s/%s was not seen" % (TOP, folder)), "near": near}
