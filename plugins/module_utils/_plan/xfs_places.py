# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What keeps a volume from its place: others at its mount point, lines and files of others, a mkfs that was cut off."""

from __future__ import annotations

from typing import Any, List, Mapping

from .._engine.values import Finding, Unknown
from . import xfs_files
from .xfs_identity import block, finding, is_our_line


def misplaced(volume: Mapping[str, Any], seen: Mapping[str, Any]) -> List[Finding]:
    """Reasons in the mount point: something else is there, or the volume is elsewhere."""
    path, mount, target = volume["mount_point"], seen["mount"], seen["target"]
    findings: List[Finding] = []
    if isinstance(seen["unseen"], Unknown):
        why = "an error or a silence is not absence: nothing of this volume is done until its place can be seen"
        fix = (
            "findmnt %s; dmesg | tail; if its server is gone: umount -l; if it was shut down: umount and mount again"
            % path
        )
        return [block(volume, "mount-point-unseen", path, "a place that can be looked at", seen["unseen"], why, fix)]
    if seen["real_path"] != path:
        why = "there is a symbolic link in the path, and the kernel tells mounts by their real place"
        fix = "set mount_point to %s" % seen["real_path"]
        findings.append(block(volume, "mount-point-link", path, "a path without links", seen["real_path"], why, fix))
    if mount and not (target and mount["number"] == target["number"]):
        observed = "%s (%s)" % (mount["source"], mount["fs_type"])
        why = "another filesystem is mounted here; a mount over it would hide its files"
        findings.append(
            block(
                volume,
                "mount-point-taken",
                path,
                "this volume or nothing",
                observed,
                why,
                "findmnt %s; choose another mount point" % path,
            )
        )
    if not mount and seen["elsewhere"]:
        why = "somebody uses the volume there; a second mount would not move it"
        findings.append(
            block(
                volume,
                "mounted-elsewhere",
                path,
                "mounted here",
                ", ".join(seen["elsewhere"]),
                why,
                "umount it there, or set mount_point to that place",
            )
        )
    lines = [line for line in seen["fstab"] if line["mount_point"] == path]
    foreign = [line for line in lines if not line["is_target"] and not is_our_line(line, seen)]
    if foreign and len(foreign) == len(lines):
        where = "/etc/fstab:%d" % foreign[0]["number"]
        why = "fstab has another device for this mount point; two lines for one place would leave the outcome to chance"
        findings.append(
            block(
                volume,
                "fstab-taken",
                where,
                "no line for another device",
                foreign[0]["text"],
                why,
                "take line %d out of /etc/fstab, or choose another mount point" % foreign[0]["number"],
            )
        )
    return findings


def cut_off(volume: Mapping[str, Any], seen: Mapping[str, Any]) -> List[Finding]:
    """A mkfs.xfs that did not end: it holds no files, but it is a signature, and those are never written over."""
    if not seen["cut_off"]:
        return []
    node = seen["target"]["node"]
    why = "mkfs.xfs was cut off (power, or its deadline); no file can be on it, but no signature is written over by us"
    return [
        block(
            volume,
            "mkfs-cut-off",
            node,
            "a whole filesystem",
            "inprogress = 1",
            why,
            "wipefs --all %s, then run again" % seen["target"]["path"],
        )
    ]


def other_lines(volume: Mapping[str, Any], seen: Mapping[str, Any]) -> List[Finding]:
    """More than one line of fstab for the mount point or the device."""
    path = volume["mount_point"]
    here = [line for line in seen["fstab"] if line["mount_point"] == path]
    own = [line for line in here if line["is_target"]][:1] or here[:1]
    findings: List[Finding] = []
    for line in seen["fstab"]:
        if line in own:
            continue
        where = "/etc/fstab:%d" % line["number"]
        why = "a second line for %s: which of them counts is left to chance" % (
            "this mount point" if line["mount_point"] == path else "this device"
        )
        fix = "take line %d out of /etc/fstab; line %s is the one that is kept" % (
            line["number"],
            own[0]["number"] if own else "of this volume",
        )
        findings.append(
            finding(
                volume,
                "duplicate-fstab",
                "fail" if line["mount_point"] == path else "warn",
                where,
                "one line",
                line["text"].strip(),
                why,
                fix,
                "fstab(5)",
            )
        )
    return findings


def other_units(volume: Mapping[str, Any], seen: Mapping[str, Any]) -> List[Finding]:
    """Mount units of others for the same path, and drop-ins that change ours."""
    unit = seen["unit"]
    foreign = list(unit["foreign"])
    if isinstance(unit["text"], str) and not unit["text"].startswith(xfs_files.MARK):
        foreign.insert(0, xfs_files.UNIT_FOLDER + unit["name"])
    why = "this file decides how systemd mounts the volume, whatever fstab or our unit says"
    return [
        finding(
            volume,
            "foreign-unit",
            "fail",
            path,
            "no unit of others",
            path,
            why,
            "remove the file, or leave the volume to its owner",
            "systemd.mount(5)",
        )
        for path in foreign + list(unit["drop_ins"])
    ]


def hidden_files(volume: Mapping[str, Any], seen: Mapping[str, Any], is_made: bool) -> List[Finding]:
    """Files in the folder that a mount would hide."""
    if not seen["entries"] or seen["mount"]:
        return []
    observed = "%d entries" % seen["entries"]
    fix = "look at them: ls -la %s; move them away" % volume["mount_point"]
    if is_made:
        why = "something wrote here while the volume was not mounted; the mount hides those files"
        return [
            finding(
                volume,
                "mount-hides-files",
                "warn",
                volume["mount_point"],
                "an empty folder",
                observed,
                why,
                fix,
                "mount(8)",
            )
        ]
    return [
        block(
            volume,
            "mount-hides-files",
            volume["mount_point"],
            "an empty folder",
            observed,
            "an empty new volume would hide these files from whoever uses them",
            fix,
        )
    ]
