# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How a volume is known as ours: by the UUIDs that we give, its label, or where it is mounted.

A UUID of ours is the same on each run, so a run that was killed finds its own work again.  A volume that
was made by hand is adopted where it already belongs at the wanted mount point.
"""

from __future__ import annotations

from typing import Any, Mapping, Optional, Tuple

from .._engine.values import Finding, Unknown
from . import xfs_commands

SOURCE = "the role's safety rules, docs/areas/xfs_volumes.md"


def is_made(volume: Mapping[str, Any], seen: Mapping[str, Any], have: Mapping[str, Any]) -> bool:
    """Whether the filesystem of the volume is there: made by us, or by hand and known by where it belongs."""
    found = seen["signatures"]
    if isinstance(found, Unknown) or not seen["target"] or [s["kind"] for s in found or []] != ["xfs"]:
        return False
    mount = seen["mount"]
    return (
        found[0]["uuid"].lower() == expected_uuid(volume, have, "filesystem")
        or found[0]["label"] == xfs_commands.label_of(volume)
        or bool(mount and mount["number"] == seen["target"]["number"])
        or any(line["is_target"] and line["mount_point"] == volume["mount_point"] for line in seen["fstab"])
        or _unit_names(seen, found[0]["uuid"])
    )


def expected_uuid(volume: Mapping[str, Any], have: Mapping[str, Any], kind: str) -> Optional[str]:
    machine = have["machine_id"]
    return None if isinstance(machine, Unknown) else xfs_commands.uuid_of(machine, kind, volume)


def is_our_array(volume: Mapping[str, Any], seen: Mapping[str, Any], have: Mapping[str, Any]) -> bool:
    ours = expected_uuid(volume, have, "array")
    return ours is not None and seen["array"]["uuid"] == ours.replace("-", "")


def are_members_of_ours(volume: Mapping[str, Any], found: Any, have: Mapping[str, Any]) -> bool:
    ours = expected_uuid(volume, have, "array")
    kinds = [(signature["kind"], signature["uuid"].lower()) for signature in found] if isinstance(found, list) else []
    return ours is not None and kinds == [("linux_raid_member", ours)]


def is_our_line(line: Mapping[str, Any], seen: Mapping[str, Any]) -> bool:
    """A line that names the UUID which we give, though no such filesystem is there (yet, or any more)."""
    return bool(seen["uuid"]) and line["spec"].lower() == "uuid=" + seen["uuid"]


def _unit_names(seen: Mapping[str, Any], uuid: str) -> bool:
    text = seen["unit"]["text"]
    return isinstance(text, str) and ("by-uuid/" + uuid) in text


def block(
    volume: Mapping[str, Any], name: str, subject: str, expected: Any, observed: Any, why: str, fix: str
) -> Finding:
    """A finding that holds back this volume, and this one only."""
    blocks = ("volume.%s." % volume["name"],)
    return Finding(
        "xfs." + name, "block", "%s: %s" % (volume["name"], subject), expected, observed, why, fix, SOURCE, blocks
    )


def finding(
    volume: Mapping[str, Any], name: str, level: str, subject: str, expected: Any, observed: Any, why: str, fix: str, source: str,
    blocks: Tuple[str, ...] = (),
) -> Finding:  # fmt: skip
    return Finding(
        "xfs." + name, level, "%s: %s" % (volume["name"], subject), expected, observed, why, fix, source, blocks
    )
