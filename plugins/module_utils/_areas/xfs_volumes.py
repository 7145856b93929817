# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The area xfs_volumes: joins what is read of devices, arrays and mounts with what is decided about them."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Union

from .._engine.engine import Area
from .._engine.host import Host
from .._engine.values import Unknown
from .._observe import unit, volumes, xfs
from .._plan import xfs_commands, xfs_files, xfs_identity, xfs_volumes

SPEC: Dict[str, Any] = {
    "volumes": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "name": {"type": "str", "required": True},
            "devices": {"type": "list", "elements": "str", "required": True},
            "mount_point": {"type": "str", "required": True},
            "raid": {
                "type": "dict",
                "options": {
                    "level": {"type": "int", "choices": [0, 1, 10], "required": True},
                    "chunk": {"type": "str"},
                    "metadata": {"type": "str", "choices": ["1.0", "1.1", "1.2"], "default": "1.2"},
                },
            },
            "overwrite_serials": {"type": "list", "elements": "str", "default": []},
            "min_size": {"type": "str"},
            "log_size": {"type": "str", "default": "128m"},
            "agcount": {"type": "int", "default": 32},
            "stripe_unit": {"type": "str"},
            "stripe_width": {"type": "int"},
            "mkfs_features": {"type": "dict", "default": {}},
            "noatime": {"type": "bool", "default": True},
            "inode64": {"type": "bool", "default": True},
            "allocsize": {"type": "str", "default": "64k"},
            "options": {"type": "list", "elements": "str", "default": []},
            "nofail": {"type": "bool", "default": True},
            "mount_by": {"type": "str", "choices": ["fstab", "unit"], "default": "fstab"},
        },
    },
}

_SHOWN = ("LoadState", "ActiveState", "NeedDaemonReload")


def observe(host: Host, want: Mapping[str, Any]) -> Dict[str, Any]:
    """The wanted volumes, with mkfs.xfs asked only where it would run, and openers only before an unmount."""
    have = volumes.shared(host)
    have["page_bytes"] = volumes.page_bytes(host) if _asks_for_small_pages(want) else None
    have["volumes"] = [_volume(host, have, volume) for volume in want["volumes"]]
    # Only where nothing is wanted yet: the inventory of a host that was tuned by hand.
    have["others"] = (
        [_unnamed(host, have, volume) for volume in volumes.unnamed(host, have)] if not want["volumes"] else []
    )
    shown = unit.show(host, [seen["unit"]["name"] for seen in have["volumes"] if _has_unit(seen)], _SHOWN)
    for volume, seen in zip(want["volumes"], have["volumes"]):
        seen["unit"]["shown"] = shown.get(seen["unit"]["name"]) if isinstance(shown, dict) else None
        seen["live"] = xfs_volumes.live(volume, seen)
        seen["kept"] = False
    for volume, seen in zip(want["volumes"], have["volumes"]):
        seen["kept"] = xfs_identity.is_made(volume, seen, have)
        if xfs_volumes.needs_fresh_mount(volume, seen):
            seen["openers"] = volumes.openers(host, volume["mount_point"])
        if _is_blank(seen) and not seen["kept"]:
            seen["dry_run"] = _dry_run(host, volume, seen)
    return have


def _volume(host: Host, have: Mapping[str, Any], volume: Mapping[str, Any]) -> Dict[str, Any]:
    uuid = xfs_identity.expected_uuid(volume, have, "filesystem")
    seen = volumes.volume(host, have, volume, xfs_files.unit_name(volume["mount_point"]), uuid)
    seen["uuid"] = uuid
    return seen


def _unnamed(host: Host, have: Mapping[str, Any], volume: Mapping[str, Any]) -> Any:
    seen = volumes.volume(host, have, volume, xfs_files.unit_name(volume["mount_point"]), None)
    return xfs_volumes.live(volume, seen)


def _has_unit(seen: Mapping[str, Any]) -> bool:
    return isinstance(seen["unit"]["text"], str)


def _asks_for_small_pages(want: Mapping[str, Any]) -> bool:
    # Pages of 64 KiB are the largest that Linux has, on arm64 and ppc64.
    return any(volume.get("allocsize") in ("4k", "8k", "16k", "32k") for volume in want["volumes"])


def _is_blank(seen: Mapping[str, Any]) -> bool:
    if seen["target"]:
        return bool(seen["signatures"] == [])
    return all(one["name"] and one["signatures"] == [] for one in seen["devices"])


def _dry_run(host: Host, volume: Mapping[str, Any], seen: Mapping[str, Any]) -> Union[Dict[str, Any], Unknown]:
    """mkfs.xfs -N on the blank device: whether it would do as told, and the features that it would turn on."""
    if not seen["uuid"]:
        return Unknown("there is no machine id")
    node = (seen["target"] or seen["devices"][0])["path"]
    argv = xfs_commands.dry_run_argv(volume, seen["uuid"], node, seen["array"], seen["target"] is not None)
    result = host.run(argv, xfs.DEADLINE_S)
    if result.unknown:
        return Unknown(result.unknown)
    geometry = xfs.parse_xfs_info(result.stdout)
    said: List[str] = [line for line in (result.stderr or result.stdout).splitlines() if line.strip()]
    features = {} if isinstance(geometry, Unknown) else dict(geometry.features)
    return {"rc": result.rc, "said": said[0] if said else "", "features": features}


AREA = Area(
    name="xfs_volumes",
    role="xfs_storage",
    spec=SPEC,
    check_want=xfs_volumes.check_want,
    observe=observe,
    plan=xfs_volumes.plan,
    judge=xfs_volumes.judge,
    adopt=xfs_volumes.adopt,
    examples={"volumes.mkfs_features": "{reflink: false}"},
)
