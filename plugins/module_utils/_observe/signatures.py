# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What lies on a block device: the signatures that blkid(8) and wipefs(8) find.

Two tools are asked since each misses something: ``blkid -p`` exits with 2 for a blank device and for
one that it cannot open, wipefs knows no difference between a filesystem and what merely looks like one.
Blank is only what both call blank; no answer is Unknown, which is never blank.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Union

from .._engine.host import Host, Result
from .._engine.values import Unknown

DEADLINE_S = 20.0
# blkid(8), low-level probing: 0 found, 2 nothing found, 8 several that contradict each other.
_BLKID_FOUND, _BLKID_NOTHING, _BLKID_AMBIVALENT = 0, 2, 8


@dataclass(frozen=True)
class Signature:
    """One signature.  ``kind`` is the name that libblkid has for it: xfs, LVM2_member, gpt, BitLocker, …"""

    kind: str
    uuid: str = ""
    label: str = ""
    offset: str = ""


def parse_blkid_export(text: str) -> Dict[str, str]:
    """``blkid -p -o export``: KEY=value lines."""
    values: Dict[str, str] = {}
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        if equals and key.replace("_", "").isalnum() and key.isupper():
            # The shell's way to write odd characters.
            values.setdefault(key, value.replace("\\", ""))
    return values


def parse_wipefs_json(text: str) -> Union[List[Signature], Unknown]:
    """``wipefs -J -n``: an empty list is the statement that there is none."""
    try:
        rows = json.loads(text)["signatures"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return Unknown("wipefs gave no list of signatures")
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) and row.get("type") for row in rows):
        return Unknown("wipefs gave a list that is not understood")
    return [_signature(row) for row in rows]


def signatures(host: Host, node: str) -> Union[List[Signature], Unknown]:
    """All signatures of a device, most telling first; Unknown when either tool gives no answer."""
    listed = _wipefs(host.run(["wipefs", "--json", "--no-act", node], DEADLINE_S))
    if isinstance(listed, Unknown):
        return listed
    probed = _blkid(host.run(["blkid", "-p", "-o", "export", node], DEADLINE_S))
    if isinstance(probed, Unknown):
        return probed
    seen = {signature.kind for signature in probed}
    return probed + [signature for signature in listed if signature.kind not in seen]


def _wipefs(result: Result) -> Union[List[Signature], Unknown]:
    text = result.text()
    return text if isinstance(text, Unknown) else parse_wipefs_json(text)


def _blkid(result: Result) -> Union[List[Signature], Unknown]:
    if result.unknown:
        return Unknown(result.unknown)
    if result.rc not in (_BLKID_FOUND, _BLKID_NOTHING, _BLKID_AMBIVALENT):
        return Unknown("blkid: exit %d: %s" % (result.rc, result.stderr.strip()[:200]))
    values = parse_blkid_export(result.stdout)
    kinds = [values[key] for key in ("TYPE", "PTTYPE") if values.get(key)]
    found = [Signature(kind, values.get("UUID", ""), values.get("LABEL", "")) for kind in kinds]
    if result.rc == _BLKID_AMBIVALENT:
        return [*found, Signature("several that contradict each other")]
    if result.rc == _BLKID_FOUND and not found:
        # Something was recognised that has no type, so the device is not blank.
        return (
            [Signature("one that blkid gives no type")]
            if set(values) - {"DEVNAME"}
            else Unknown("blkid gave no answer")
        )
    return found


def _signature(row: Mapping[str, Any]) -> Signature:
    return Signature(*[str(row.get(key) or "") for key in ("type", "uuid", "label", "offset")])
