# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The operating system's name, from os-release(5)."""

from __future__ import annotations

import re
import shlex
from typing import Dict, Optional

from .._engine.host import Host
from .._engine.values import Text
from .tool_text import clean

_KEY = re.compile(r"[A-Z][A-Z0-9_]*")


def parse_os_release(text: Text) -> Dict[str, str]:
    """The assignments of an os-release file, quotes and escapes taken off; other lines are ignored."""
    values: Dict[str, str] = {}
    for line in clean(text).splitlines() if isinstance(text, str) else []:
        key, equals, value = line.strip().partition("=")
        if equals and _KEY.fullmatch(key):
            values[key] = _unquote(value)
    return values


def observe(host: Host) -> Dict[str, Optional[str]]:
    """Id, version and pretty name; None for what the file does not say."""
    text = host.read("/etc/os-release")
    values = parse_os_release(text if isinstance(text, str) else host.read("/usr/lib/os-release"))
    return {name: values.get(name.upper()) or None for name in ("id", "version_id", "pretty_name")}


def _unquote(value: str) -> str:
    try:
        words = shlex.split(value)
    except ValueError:
        words = []
    # An unquoted value with blanks breaks the format's rule; what was meant is plain.
    return words[0] if len(words) == 1 else value.strip().strip("\"'")
