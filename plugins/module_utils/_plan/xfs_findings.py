# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is told about an XFS volume and not changed: geometry, array health, other hands on its mount."""

from __future__ import annotations

from typing import Any, List, Mapping, Tuple

from .._engine.units import format_size, parse_size
from .._engine.values import Finding, Unknown, as_unknown
from . import xfs_commands, xfs_options
from .xfs_identity import finding
from .xfs_places import hidden_files, other_lines, other_units

GEOMETRY_SOURCE = "mkfs.xfs(8), xfs(5)"


def of_volume(
    volume: Mapping[str, Any], seen: Mapping[str, Any], have: Mapping[str, Any], is_made: bool
) -> List[Finding]:
    """All findings that refuse nothing."""
    findings = _array(volume, seen) if seen["array"] else []
    if is_made:
        findings += _geometry(volume, seen) + _busy(volume, seen)
    return findings + other_lines(volume, seen) + other_units(volume, seen) + hidden_files(volume, seen, is_made)


def unseen(volume: Mapping[str, Any], reason: Unknown) -> Finding:
    why = "what is mounted or what fstab wants cannot be seen, so the volume can neither be called right nor wrong"
    return finding(
        volume,
        "unseen",
        "warn",
        volume["mount_point"],
        "to be readable",
        reason,
        why,
        "cat /proc/self/mountinfo /etc/fstab",
        "proc(5)",
    )


def _geometry(volume: Mapping[str, Any], seen: Mapping[str, Any]) -> List[Finding]:
    """The geometry against the wanted one: never a reason to format."""
    geometry, path = seen["geometry"], volume["mount_point"]
    if seen["cut_off"]:
        return []
    if not isinstance(geometry, Mapping):
        reason = as_unknown(geometry, "no geometry")
        why = "the geometry of the filesystem cannot be read"
        return [
            finding(
                volume, "geometry-unseen", "warn", path, "readable", reason, why, "xfs_info %s" % path, GEOMETRY_SOURCE
            )
        ]
    rows = _differences(volume, seen, geometry)
    why = "it was fixed when the filesystem was made, so it is told and never changed: a filesystem with data is not made anew"
    return [
        finding(
            volume, "mkfs-geometry", "warn", key, expected, observed, "%s; %s" % (about, why),
            "accept it by setting the variable to what is there, or move the data and make the volume anew by hand", GEOMETRY_SOURCE,
        )
        for key, expected, observed, about in rows
    ]  # fmt: skip


def _differences(
    volume: Mapping[str, Any], seen: Mapping[str, Any], geometry: Mapping[str, Any]
) -> List[Tuple[str, Any, Any, str]]:
    rows: List[Tuple[str, Any, Any, str]] = []
    agcount, log = volume.get("agcount"), volume.get("log_size")
    # mkfs.xfs rounds groups to the stripe and drops a last one below 16 MiB, so one fewer is as asked.
    if agcount and geometry["agcount"] not in (agcount, agcount - 1):
        about = "allocation groups bound how many threads allocate at once"
        if geometry["agcount"] > agcount:
            about += " (more than asked is also what a filesystem has that was grown)"
        rows.append(("agcount", agcount, geometry["agcount"], about))
    if log and abs(geometry["log_bytes"] - parse_size(log)) >= 2**20:
        rows.append(
            (
                "log_size",
                log,
                format_size(geometry["log_bytes"]),
                "the log bounds how many metadata changes are in flight",
            )
        )
    striped = xfs_commands.stripe(volume, seen["array"])
    unit = geometry["stripe_unit_blocks"] * geometry["block_bytes"]
    width = geometry["stripe_width_blocks"] * geometry["block_bytes"]
    if striped and (unit, width) != (striped[0], striped[0] * striped[1]):
        expected = "su=%s,sw=%d" % (format_size(striped[0]), striped[1])
        observed = "su=%s,sw=%d" % (format_size(unit), width // unit) if unit else "no stripe unit"
        rows.append(
            ("stripe", expected, observed, "writes that are not aligned to the stripe touch more disks than they need")
        )
    old = "this is the old format (V4), which kernels drop in 2030; overlay filesystems need ftype=1"
    rows += [(name, 1, 0, old) for name in ("crc", "ftype") if geometry["features"].get(name) == 0]
    for name, is_on in sorted((volume.get("mkfs_features") or {}).items()):
        found = geometry["features"].get(name)
        if found is not None and found != int(is_on) and name not in ("crc", "ftype"):
            rows.append((name, int(is_on), found, "a feature of the format"))
    return rows


def _array(volume: Mapping[str, Any], seen: Mapping[str, Any]) -> List[Finding]:
    """The array: another level or chunk than wanted, members missing or too many, a resync."""
    array, raid = seen["array"], volume["raid"]
    findings: List[Finding] = []
    wanted = {
        "level": "raid%d" % raid["level"],
        "raid_disks": len(volume["devices"]),
        "metadata": str(raid["metadata"]),
    }
    if raid.get("chunk"):
        wanted["chunk_bytes"] = parse_size(raid["chunk"])
    for key, expected in wanted.items():
        if array[key] is not None and array[key] != expected:
            why = "the array was made otherwise; it is told and never rebuilt by us"
            fix = "accept it by setting raid to what is there; mdadm --detail %s" % array["node"]
            findings.append(
                finding(
                    volume,
                    "array-geometry",
                    "warn",
                    "%s %s" % (array["node"], key),
                    expected,
                    array[key],
                    why,
                    fix,
                    "md(4)",
                )
            )
    strangers = sorted(set(array["members"]) - {one["name"] for one in seen["devices"]})
    if strangers and len(array["members"]) > len(seen["devices"]):
        why = "the array has members that the inventory does not name"
        findings.append(
            finding(
                volume,
                "array-geometry",
                "warn",
                array["node"] + " members",
                "only the named devices",
                ", ".join(strangers),
                why,
                "add them to devices",
                "md(4)",
            )
        )
    if array["degraded"]:
        why = "the array runs with %d member(s) missing: the next failure loses data" % array["degraded"]
        findings.append(
            finding(
                volume,
                "array-degraded",
                "fail",
                array["node"],
                "all members",
                "%d missing" % array["degraded"],
                why,
                "mdadm --detail %s; replace the disk, mdadm --add" % array["node"],
                "md(4)",
            )
        )
    if array["action"] not in (None, "idle", "frozen"):
        findings.append(
            finding(
                volume,
                "array-busy",
                "info",
                array["node"],
                "idle",
                array["action"],
                "the array is at work, so it is slower until it ends",
                "cat /proc/mdstat",
                "md(4)",
            )
        )
    return findings


def _busy(volume: Mapping[str, Any], seen: Mapping[str, Any]) -> List[Finding]:
    """Processes that keep the volume from being unmounted, which a lost allocsize needs."""
    if not seen["openers"]:
        return []
    fresh = xfs_options.lost(volume, seen["mount"])[1]
    why = "%s comes back only with an unmount, and the volume is in use" % ", ".join(fresh)
    blocks = tuple("volume.%s.%s" % (volume["name"], step) for step in ("umount", "mount"))
    shown = "; ".join(seen["openers"][:5]) + (
        " and %d more" % (len(seen["openers"]) - 5) if len(seen["openers"]) > 5 else ""
    )
    return [
        finding(
            volume,
            "busy",
            "block",
            volume["mount_point"],
            "not in use",
            shown,
            why,
            "stop them (or reboot: fstab is right), then run again",
            xfs_options.SOURCE,
            blocks,
        )
    ]
