# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Transparent huge pages, and other kernel files that show a choice with the active one in brackets."""

from __future__ import annotations

import re
from typing import Dict, List, Optional, Sequence, Tuple, Union

from .._engine.host import Host
from .._engine.values import Unknown

FOLDER = "/sys/kernel/mm/transparent_hugepage"

Choice = Tuple[str, Tuple[str, ...]]
"""The active word and all words that are offered."""


def parse_choice(text: str) -> Union[Choice, Unknown]:
    """``always [madvise] never`` as its active word and all words."""
    words: List[str] = text.split()
    active: Optional[str] = None
    for word in words:
        match = re.match(r"\[(.+)\]\Z", word)
        if match:
            active = match.group(1)
    if active is None:
        return Unknown("%r shows no active word" % text.strip()[:80])
    return active, tuple(word.strip("[]") for word in words)


def observe(host: Host, names: Sequence[str]) -> Dict[str, Union[Choice, Unknown, None]]:
    """The named files (``enabled``, ``defrag``); None where this kernel is built without huge pages."""
    return {name: _read(host, name) for name in names}


def _read(host: Host, name: str) -> Union[Choice, Unknown, None]:
    text = host.read("%s/%s" % (FOLDER, name))
    if isinstance(text, str):
        return parse_choice(text)
    if isinstance(text, Unknown):
        return text
    return None if host.exists("/sys/kernel/mm") else Unknown("/sys/kernel/mm was not seen")
