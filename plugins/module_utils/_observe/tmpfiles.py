# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tmpfiles.d lines that write kernel files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import List

from .._engine.host import Host
from . import confd

_FIELD = re.compile(r'"((?:[^"\\]|\\.)*)"|(\S+)')


@dataclass(frozen=True)
class Write:
    """A ``w`` line: write ``value`` to the files that ``path`` (a glob) names."""

    file: str
    number: int
    path: str
    value: str


def parse_writes(file: str, text: str) -> List[Write]:
    """The ``w`` lines (with any modifier) of one tmpfiles.d file."""
    found: List[Write] = []
    for number, row in enumerate(text.splitlines(), 1):
        fields = row.split(None, 6)
        if len(fields) < 7 or not re.match(r"w[!+=~^$-]*\Z", fields[0]):
            continue
        path = _FIELD.match(fields[1])
        found.append(Write(file, number, (path.group(1) or path.group(2)) if path else fields[1], _value(fields[6])))
    return found


def writes(host: Host) -> List[Write]:
    """The ``w`` lines of all files, in the order systemd-tmpfiles reads them."""
    return [write for path, text in confd.files(host, confd.roots("tmpfiles.d")) for write in parse_writes(path, text)]


def _value(text: str) -> str:
    return text.strip().strip('"').replace("\\n", "").strip()
