# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Versions that C headers of libraries define."""

from __future__ import annotations

import re
from typing import Dict, Optional, Sequence

from .._engine.values import Text, lines

_DEFINE = re.compile(r"\s{0,20}#\s{0,10}define\s{1,20}([A-Z][A-Z0-9_]{1,60})\s{1,20}(\d{1,9})\b.{0,200}", re.ASCII)


def parse_defines(text: Text) -> Dict[str, int]:
    """The numbers that a C header defines (CUDNN_MAJOR, NCCL_MINOR, TF_PATCH_VERSION)."""
    rows = [_DEFINE.fullmatch(line[:400]) for line in lines(text)]
    found: Dict[str, int] = {}
    for row in rows:
        if row:
            found.setdefault(row.group(1), int(row.group(2)))
    return found


def version_of(text: Text, names: Sequence[str]) -> Optional[str]:
    """The version whose numbers have these names; None when one of them is not defined."""
    told = parse_defines(text)
    return ".".join(str(told[name]) for name in names) if all(name in told for name in names) else None
