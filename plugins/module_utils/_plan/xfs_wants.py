# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is wanted of XFS volumes: what no host could satisfy is refused with the place of the mistake."""

from __future__ import annotations

import re
from typing import Any, Dict, List, Mapping, Tuple

from .._engine.units import format_size, parse_size
from .._engine.values import BadWant
from . import xfs_options
from .xfs_commands import FEATURES, bare_id, data_disks

MKFS = "mkfs.xfs(8)"
# The limits of mkfs.xfs: XFS_MIN_LOG and XFS_MAX_LOG_BYTES, XFS_AG_MIN_BYTES and XFS_AG_MAX_BYTES.
LOG_MIN, LOG_MAX = 64 * 2**20, 2**31 - 10 * 2**20
AG_MIN, AG_MAX = 16 * 2**20, 2**40
# What mkfs.xfs 6.1 keeps free beside the log in its group: 11 blocks.
LOG_NEIGHBOURS = 64 * 1024
# Below this mkfs.xfs refuses since xfsprogs 5.19.
VOLUME_MIN = 300 * 2**20
CHUNK_MIN, CHUNK_MAX = 4096, 2**30
LEAST_DEVICES = {0: 2, 1: 2, 10: 2}

_NAME = re.compile(r"^[a-z0-9][a-z0-9-]{0,31}$")
_KERNEL_NAME = re.compile(
    r"^(/dev/)?([shv]d[a-z]+\d*|xvd[a-z]+\d*|nvme\d+n\d+(p\d+)?|(md|dm-|loop|zram|sr|mmcblk)\d+(p\d+)?)$"
)
_ID = re.compile(r"^[A-Za-z0-9_.:+@=-]+$")
_SYSTEM_FOLDERS = (
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/lib",
    "/lib64",
    "/proc",
    "/root",
    "/run",
    "/sbin",
    "/sys",
    "/usr",
    "/var",
)
_NO_VOLUME_BELOW = ("/boot", "/dev", "/etc", "/proc", "/run", "/sys", "/usr")


def check_want(want: Mapping[str, Any]) -> None:
    """Refuse what no host could satisfy, with the place of the mistake."""
    names: Dict[str, int] = {}
    devices: Dict[str, str] = {}
    for index, volume in enumerate(want["volumes"]):
        place = "volumes[%d]" % index
        if not _NAME.match(volume["name"]):
            raise BadWant(place + ".name", volume["name"], "1 to 32 lower-case letters, digits and hyphens")
        if volume["name"] in names:
            raise BadWant(
                place + ".name", volume["name"], "a name once (it is that of volumes[%d] too)" % names[volume["name"]]
            )
        names[volume["name"]] = index
        _check_devices(place, volume, devices)
        _check_serials(place, volume)
        _check_mount_point(place, volume, want["volumes"][:index])
        _check_raid(place, volume)
        _check_geometry(place, volume)
        xfs_options.check_options(place, volume)


def _check_devices(place: str, volume: Mapping[str, Any], taken: Dict[str, str]) -> None:
    if not volume["devices"]:
        raise BadWant(place + ".devices", volume["devices"], "at least one device")
    for number, device in enumerate(volume["devices"]):
        where = "%s.devices[%d]" % (place, number)
        if _KERNEL_NAME.match(device):
            raise BadWant(
                where, device, "a stable id (/dev/disk/by-id/…, WWN or serial): kernel names move between boots"
            )
        if not _ID.match(bare_id(device)):
            raise BadWant(where, device, "a path below /dev/disk/by-id, a WWN or a serial")
        if bare_id(device) in taken:
            raise BadWant(where, device, "a device once (it is %s too)" % taken[bare_id(device)])
        taken[bare_id(device)] = where


def _check_serials(place: str, volume: Mapping[str, Any]) -> None:
    for number, serial in enumerate(volume.get("overwrite_serials") or []):
        if not serial.strip() or "/" in serial or _KERNEL_NAME.match(serial):
            allowed = "the serial number or WWN of a disk as udevadm info shows it (ID_SERIAL_SHORT, ID_SERIAL, ID_WWN)"
            raise BadWant("%s.overwrite_serials[%d]" % (place, number), serial, allowed)


def _check_mount_point(place: str, volume: Mapping[str, Any], others: List[Mapping[str, Any]]) -> None:
    path = volume["mount_point"]
    parts = path.split("/")
    if not path.startswith("/") or "" in parts[1:] or "." in parts or ".." in parts or re.search(r"[\x00-\x1f]", path):
        raise BadWant(place + ".mount_point", path, "an absolute path without // or .. and without a slash at its end")
    if path in _SYSTEM_FOLDERS or any(path.startswith(folder + "/") for folder in _NO_VOLUME_BELOW):
        raise BadWant(place + ".mount_point", path, "a folder of its own for data, not one of the system's")
    for index, other in enumerate(others):
        if path == other["mount_point"] or is_below(path, other["mount_point"]) or is_below(other["mount_point"], path):
            allowed = "neither the same as, nor above or below volumes[%d].mount_point (%s)" % (
                index,
                other["mount_point"],
            )
            raise BadWant(place + ".mount_point", path, allowed)


def _check_raid(place: str, volume: Mapping[str, Any]) -> None:
    raid, number = volume.get("raid"), len(volume["devices"])
    if not raid:
        if number > 1:
            raise BadWant(place + ".raid", raid, "a RAID level (0, 1 or 10) when there are %d devices" % number)
        return
    if number < LEAST_DEVICES[raid["level"]]:
        raise BadWant(place + ".devices", volume["devices"], "at least %d devices for RAID %d" % (2, raid["level"]))
    chunk = raid.get("chunk")
    if chunk:
        size = _size(place + ".raid.chunk", chunk, CHUNK_MIN, CHUNK_MAX)
        if size & (size - 1):
            raise BadWant(place + ".raid.chunk", chunk, "a power of two from 4k to 1g")
        if raid["level"] == 1:
            raise BadWant(place + ".raid.chunk", chunk, "nothing: RAID 1 has no chunks")


def _check_geometry(place: str, volume: Mapping[str, Any]) -> None:
    if volume.get("log_size"):
        _size(place + ".log_size", volume["log_size"], LOG_MIN, LOG_MAX)
    agcount = volume.get("agcount")
    if agcount is not None and agcount < 1:
        raise BadWant(place + ".agcount", agcount, "1 or more allocation groups")
    _check_stripe(place, volume)
    for name, is_on in (volume.get("mkfs_features") or {}).items():
        if is_on not in (True, False):
            raise BadWant("%s.mkfs_features.%s" % (place, name), is_on, "true or false")
        if name not in FEATURES:
            raise BadWant("%s.mkfs_features" % place, name, "features of mkfs.xfs: " + ", ".join(sorted(FEATURES)))
    if volume.get("min_size"):
        least = _size(place + ".min_size", volume["min_size"], 1, 2**63) * data_disks(volume)
        for key, value, problem in misfits(volume, least):
            raise BadWant("%s.%s" % (place, key), value, "%s (from min_size, %s)" % (problem, volume["min_size"]))


def _check_stripe(place: str, volume: Mapping[str, Any]) -> None:
    unit, width, raid = volume.get("stripe_unit"), volume.get("stripe_width"), volume.get("raid")
    if bool(unit) != bool(width):
        raise BadWant(place + ".stripe_unit", unit, "both or neither of stripe_unit and stripe_width")
    if not unit or not width:
        return
    size = _size(place + ".stripe_unit", unit, CHUNK_MIN, CHUNK_MAX)
    if size % CHUNK_MIN or width < 1:
        raise BadWant(place + ".stripe_unit", unit, "a multiple of 4k, with a stripe_width of 1 or more disks")
    if raid and raid["level"] == 1:
        raise BadWant(place + ".stripe_unit", unit, "nothing: RAID 1 has no stripes")
    if raid and raid.get("chunk") and size != parse_size(raid["chunk"]):
        raise BadWant(place + ".stripe_unit", unit, "the chunk of the array, %s, or nothing" % raid["chunk"])
    if raid and width != data_disks(volume):
        raise BadWant(
            place + ".stripe_width", width, "%d, the data disks of the array, or nothing" % data_disks(volume)
        )


def misfits(volume: Mapping[str, Any], size: int) -> List[Tuple[str, Any, str]]:
    """What of the wanted geometry does not fit a volume of some size: variable, value, what is allowed."""
    agcount = volume.get("agcount")
    log = parse_size(volume["log_size"]) if volume.get("log_size") else 0
    if size < VOLUME_MIN:
        return [("devices", volume["devices"], "devices that make a volume of at least 300m")]
    if not agcount:
        return []
    if size // agcount < AG_MIN:
        return [("agcount", agcount, "1 to %d: an allocation group has at least 16 MiB" % max(1, size // AG_MIN))]
    if size // agcount > AG_MAX:
        return [("agcount", agcount, "%d or more: an allocation group has at most 1 TiB" % -(-size // AG_MAX))]
    # The log lies within one group, together with that group's own headers.
    if log and size // agcount < log + LOG_NEIGHBOURS:
        largest = max(1, size // (log + LOG_NEIGHBOURS))
        return [
            (
                "agcount",
                agcount,
                "1 to %d: a log of %s has to fit into one allocation group" % (largest, format_size(log)),
            )
        ]
    return []


def is_below(path: str, other: str) -> bool:
    return path.startswith(other.rstrip("/") + "/")


def _size(where: str, text: Any, low: int, high: int) -> int:
    allowed = "a size from %s to %s" % (format_size(low), format_size(high) if high < 2**60 else "any size")
    try:
        size = parse_size(text)
    except ValueError:
        raise BadWant(where, text, allowed) from None
    if not low <= size <= high:
        raise BadWant(where, text, allowed)
    return size
