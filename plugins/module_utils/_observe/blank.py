# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a device without a signature reads as zeros, as our own program saw it (_engine/samples.py)."""

from __future__ import annotations

import json
from typing import Any, Dict, Union

from .._engine.host import Host
from .._engine.values import SAMPLES, SAMPLES_DEADLINE_S, Unknown

# What the program says, and of which kind each is; the rest is there when something was found.
_ALWAYS = {"blank": bool, "samples": int, "read_bytes": int}
_FOUND = {"at": int, "like": str}


def content(host: Host, node: str) -> Union[Dict[str, Any], Unknown]:
    """``blank``, and where it is false: ``at`` which place, ``like`` in words, and the first ``bytes`` where recorded."""
    result = host.run([SAMPLES, node], SAMPLES_DEADLINE_S)
    if result.unknown or result.rc not in (0, 1):
        return Unknown(result.unknown or result.stderr.strip()[:200] or "%s: exit %d" % (SAMPLES, result.rc))
    return parse_samples(result.stdout)


def parse_samples(text: str) -> Union[Dict[str, Any], Unknown]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not _has(found, _ALWAYS) or not (found["blank"] or _has(found, _FOUND)):
        return Unknown("%s gave no verdict" % SAMPLES)
    return dict({key: found[key] for key in (*_ALWAYS, *_FOUND) if key in found}, bytes=str(found.get("bytes", "")))


def _has(found: Dict[str, Any], kinds: Dict[str, type]) -> bool:
    return all(isinstance(found.get(key), kind) for key, kind in kinds.items())
