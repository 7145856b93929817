# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The commands that make an XFS volume, and the identity that we give to what they make."""

from __future__ import annotations

import hashlib
from typing import Any, Dict, List, Mapping, Optional, Tuple

from .._engine.units import parse_size

# Which mkfs.xfs option sets a feature, and the kernel that first mounts it (mkfs.xfs(8), xfs(5)).
FEATURES: Dict[str, Tuple[str, Tuple[int, int]]] = {
    "crc": ("-m", (3, 15)),
    "finobt": ("-m", (3, 16)),
    "rmapbt": ("-m", (4, 8)),
    "reflink": ("-m", (4, 9)),
    "inobtcount": ("-m", (5, 10)),
    "bigtime": ("-m", (5, 10)),
    "sparse": ("-i", (4, 2)),
    "nrext64": ("-i", (5, 19)),
    "exchange": ("-i", (6, 10)),
    "parent": ("-n", (6, 10)),
    "metadir": ("-m", (6, 13)),
}


def bare_id(device: str) -> str:
    return device[len("/dev/disk/by-id/") :] if device.startswith("/dev/disk/by-id/") else device


def data_disks(volume: Mapping[str, Any]) -> int:
    """How many devices' worth of data the volume holds."""
    raid, number = volume.get("raid"), len(volume["devices"])
    if not raid or raid["level"] == 1:
        return 1
    return number if raid["level"] == 0 else max(1, number // 2)


def stripe(volume: Mapping[str, Any], array: Optional[Mapping[str, Any]]) -> Optional[Tuple[int, int]]:
    """Stripe unit in bytes and stripe width in disks; None leaves it to mkfs.xfs, which asks the device."""
    if volume.get("stripe_unit"):
        return parse_size(volume["stripe_unit"]), int(volume["stripe_width"])
    raid = volume.get("raid")
    if not raid or raid["level"] == 1 or (raid["level"] == 10 and len(volume["devices"]) % 2):
        return None
    chunk = (array or {}).get("chunk_bytes") or (parse_size(raid["chunk"]) if raid.get("chunk") else None)
    return (chunk, data_disks(volume)) if chunk else None


def label_of(volume: Mapping[str, Any]) -> str:
    return ("gf-" + str(volume["name"]))[:12]  # XFS takes 12 bytes


def uuid_of(machine_id: str, kind: str, volume: Mapping[str, Any]) -> str:
    """The UUID that we give: the same on each run, so that what a killed run made is known as ours."""
    text = "gpufleet.host xfs_volumes %s %s %s" % (machine_id, kind, volume["name"])
    digits = hashlib.sha256(text.encode("utf-8")).hexdigest()[:32]
    # Version 8 of RFC 9562: the bits are the application's own.
    digits = "%s8%s%s%s" % (digits[:12], digits[13:16], "89ab"[int(digits[16], 16) % 4], digits[17:])
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def array_node(volume: Mapping[str, Any]) -> str:
    return "/dev/md/gf-%s" % volume["name"]


def mkfs_argv(volume: Mapping[str, Any], uuid: str, node: str, array: Optional[Mapping[str, Any]]) -> List[str]:
    """mkfs.xfs, never with -f: it looks for signatures itself and is the second belt."""
    data = ["agcount=%d" % volume["agcount"]] if volume.get("agcount") else []
    striped = stripe(volume, array)
    if striped:
        data += ["su=%d" % striped[0], "sw=%d" % striped[1]]
    argv = ["mkfs.xfs", "-q", *feature_argv(volume, uuid), "-L", label_of(volume)]
    if volume.get("log_size"):
        argv += ["-l", "size=%d" % parse_size(volume["log_size"])]
    return [*argv, *(["-d", ",".join(data)] if data else []), node]


def feature_argv(volume: Mapping[str, Any], uuid: str) -> List[str]:
    groups: Dict[str, List[str]] = {"-m": ["uuid=" + uuid]}
    for name, is_on in sorted((volume.get("mkfs_features") or {}).items()):
        groups.setdefault(FEATURES[name][0], []).append("%s=%d" % (name, bool(is_on)))
    return [word for option, values in sorted(groups.items()) for word in (option, ",".join(values))]


def dry_run_argv(
    volume: Mapping[str, Any], uuid: str, node: str, array: Optional[Mapping[str, Any]], is_whole: bool
) -> List[str]:
    """mkfs.xfs -N, which writes nothing: does this xfsprogs know each option, which features would it make?

    On a member of an array that is yet to be made only the features are asked for, its size is another.
    """
    if is_whole:
        return ["mkfs.xfs", "-N", *mkfs_argv(volume, uuid, node, array)[2:]]
    return ["mkfs.xfs", "-N", *feature_argv(volume, uuid), "-L", label_of(volume), node]


def mdadm_argv(volume: Mapping[str, Any], uuid: str, nodes: List[str]) -> List[str]:
    """mdadm --create, never with --run or --force: a question that it asks is an answer to us."""
    raid = volume["raid"]
    argv = ["mdadm", "--create", array_node(volume), "--level=%d" % raid["level"], "--metadata=%s" % raid["metadata"]]
    if raid.get("chunk"):
        argv.append("--chunk=%d" % (parse_size(raid["chunk"]) // 1024))
    if raid["level"] != 0:
        # Without a word on it, mdadm 4.3 and later ask; a bitmap makes a resync after a crash short.
        argv.append("--bitmap=internal")
    argv += ["--name=gf-%s" % volume["name"], "--uuid=%s" % uuid, "--raid-devices=%d" % len(nodes)]
    return argv + nodes
