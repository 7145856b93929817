# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which devices may be taken for a volume, and which are refused: holder or signature named.

The law: nothing is made on a device that carries any signature, is mounted, is swap, is held by
anything, backs the root, is not the one that was meant, or cannot be seen clearly.  What we made
ourselves is known by the UUID that we give, so that a run that was killed goes on where it stopped.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Sequence

from .._engine.units import format_size_for_people, parse_size
from .._engine.values import Finding, Unknown, as_unknown
from . import xfs_blank
from .xfs_identity import are_members_of_ours, block, is_made, is_our_array
from .xfs_limits import geometry_refusals, tool_refusals
from .xfs_places import cut_off, misplaced

MADE, FORMAT, CREATE, REFUSED = "made", "format", "create", "refused"

_STOPPED = (
    "the device is a member of the array that we made for this volume, but the array does not run; "
    "if its creation was cut off and /proc/mdstat shows nothing, mdadm --zero-superblock on the members starts afresh"
)


def stage(volume: Mapping[str, Any], seen: Mapping[str, Any], have: Mapping[str, Any]) -> str:
    """How far a volume is: there already, to be formatted, its array to be created first, or refused."""
    if refusals(volume, seen, have):
        return REFUSED
    if is_made(volume, seen, have):
        return MADE
    return CREATE if volume.get("raid") and not seen["array"] else FORMAT


def refusals(volume: Mapping[str, Any], seen: Mapping[str, Any], have: Mapping[str, Any]) -> List[Finding]:
    """All that keeps a volume from being touched; empty when it may be."""
    findings = [_device_finding(volume, one, *row) for one in seen["devices"] for row in _absence(one)]
    findings += _twice(volume, have)
    if findings:
        return findings
    if is_made(volume, seen, have):
        return misplaced(volume, seen) + cut_off(volume, seen)
    for number, one in enumerate(seen["devices"]):
        own_array = bool(seen["array"]) and is_our_array(volume, seen, have)
        rows = _speaks_against(volume, one, own_array, have)[:1]
        if not rows and not own_array:
            rows = xfs_blank.refusals(volume, seen, one)
        findings += [_device_finding(volume, one, *row) for row in rows]
        findings += _too_small(volume, one, number)
    if findings:
        return findings
    return (
        _target_refusals(volume, seen, have)
        + misplaced(volume, seen)
        + geometry_refusals(volume, seen, have)
        + tool_refusals(volume, seen, have)
    )


def _absence(one: Mapping[str, Any]) -> List[Any]:
    if len(one["candidates"]) > 1:
        why = "this id means several devices, so it cannot be said which of them is meant"
        return [
            (
                "device-ambiguous",
                "one device",
                ", ".join(one["candidates"]),
                why,
                "name one of them by its own id below /dev/disk/by-id",
            )
        ]
    if isinstance(one["unseen"], Unknown):
        why = "it cannot be told which device this is, or whether it is there"
        fix = "ls -l /dev/disk/by-id /sys/block; dmesg | tail"
        return [("device-unknown", "a device of this id", one["unseen"], why, fix)]
    if one["name"] is None:
        why = "the device is not there, so its volume waits; other volumes go on"
        return [
            (
                "device-missing",
                "a device of this id",
                "no such device",
                why,
                "ls -l /dev/disk/by-id; look for the disk in dmesg and nvme list",
            )
        ]
    return []


def _twice(volume: Mapping[str, Any], have: Mapping[str, Any]) -> List[Finding]:
    """The same disk behind two ids, in this volume or another."""
    named: Dict[str, List[str]] = {}
    for other in have["volumes"]:
        for number, one in enumerate(other["devices"]):
            if one["name"]:
                named.setdefault(one["name"], []).append("%s.devices[%d] (%s)" % (other["name"], number, one["given"]))
    findings: List[Finding] = []
    for one in _of(volume, have)["devices"]:
        places = named.get(one["name"] or "", [])
        if len(places) > 1:
            why = "%s is one disk and is named more than once: %s" % (one["node"], ", ".join(places))
            findings.append(
                _device_finding(
                    volume, one, "device-twice", "each disk once", ", ".join(places), why, "name another disk"
                )
            )
    return findings


def _speaks_against(
    volume: Mapping[str, Any], one: Mapping[str, Any], own_array: bool, have: Mapping[str, Any]
) -> List[Any]:
    """Reasons not to touch a device, the weightiest first; the first one carries all of them in its words."""
    found = one["signatures"]
    holders = [] if own_array else [holder["what"] for holder in one["holders"]]
    reasons: List[Any] = []
    if one["root"]:
        reasons.append(("device-root", "backs the root filesystem"))
    if one["mounted_at"]:
        reasons.append(("device-mounted", "is mounted at " + ", ".join(one["mounted_at"])))
    if one["swap"]:
        reasons.append(("device-swap", "is swap (%s)" % ", ".join(one["swap"])))
    if holders:
        reasons.append(("device-in-use", "is held by " + ", ".join(holders)))
    if one["partitions"]:
        reasons.append(("device-partitioned", "has partitions: " + ", ".join(one["partitions"])))
    if isinstance(found, list) and found and not own_array:
        reasons.append(("device-signature", "carries " + ", ".join(describe(signature) for signature in found)))
    if not reasons and not own_array and not isinstance(found, list):
        unseen = as_unknown(found, "it was not probed")
        why = "it cannot be told whether the device is blank, and unknown is not blank"
        return [
            (
                "device-unknown",
                "a blank device",
                unseen,
                why,
                "blkid -p %s; wipefs --no-act %s" % (one["path"], one["path"]),
            )
        ]
    if not reasons:
        return []
    observed = "%s %s" % (one["node"], "; ".join(text for _id, text in reasons))
    fix = "name another device, or if nothing on it is needed any more: make it blank by hand with wipefs"
    if volume.get("raid") and are_members_of_ours(volume, found, have):
        return [
            (
                "array-not-running",
                "the array of this volume, running",
                observed,
                _STOPPED,
                "mdadm --assemble --scan; cat /proc/mdstat",
            )
        ]
    return [
        (reasons[0][0], "a blank device that nothing uses", observed, "it may hold data, so nothing is made on it", fix)
    ]


def describe(signature: Mapping[str, Any]) -> str:
    """A signature in words: ``ext4 (label "data", UUID 1234)``."""
    about = ['label "%s"' % signature["label"]] if signature["label"] else []
    about += ["UUID " + signature["uuid"]] if signature["uuid"] else []
    return str(signature["kind"]) + (" (%s)" % ", ".join(about) if about else "")


def _too_small(volume: Mapping[str, Any], one: Mapping[str, Any], number: int) -> List[Finding]:
    if not volume.get("min_size"):
        return []
    least = parse_size(volume["min_size"])
    if one["size"] is not None and one["size"] >= least:
        return []
    is_seen = one["size"] is not None
    observed = format_size_for_people(one["size"]) if is_seen else Unknown("its size cannot be seen")
    why = "devices[%d] is smaller than min_size, so it is probably not the one that was meant" % number
    row = ("device-too-small", "at least " + format_size_for_people(least), observed, why, "lsblk")
    return [_device_finding(volume, one, *row)]


def _target_refusals(volume: Mapping[str, Any], seen: Mapping[str, Any], have: Mapping[str, Any]) -> List[Finding]:
    """Reasons in the array that is there, and in identities that are taken."""
    findings: List[Finding] = []
    machine, target = have["machine_id"], seen["target"]
    if isinstance(machine, Unknown):
        why = "the UUIDs of a new volume come from the machine id, so that a killed run finds its own work again"
        findings.append(
            block(volume, "no-machine-id", "/etc/machine-id", "a machine id", machine, why, "systemd-machine-id-setup")
        )
    if seen["uuid_holder"] and seen["uuid_holder"] != (target or {}).get("name"):
        why = (
            "the filesystem of this volume is on another device than the one named; two with one UUID cannot be mounted"
        )
        fix = "name that device, or give this volume another name"
        findings.append(
            block(
                volume,
                "uuid-taken",
                volume["name"],
                "no other filesystem of our UUID",
                "/dev/" + seen["uuid_holder"],
                why,
                fix,
            )
        )
    found = seen["signatures"] if seen["array"] else []
    if not isinstance(found, list):
        why = "it cannot be told whether the array is blank, and unknown is not blank"
        findings.append(
            block(
                volume,
                "device-unknown",
                target["node"],
                "a blank array",
                as_unknown(found, "not probed"),
                why,
                "blkid -p " + target["node"],
            )
        )
    elif found:
        observed = "%s carries %s" % (target["node"], ", ".join(describe(signature) for signature in found))
        why = "it may hold data, so nothing is made on it"
        findings.append(
            block(
                volume,
                "device-signature",
                target["node"],
                "a blank array",
                observed,
                why,
                "look at it with blkid -p " + target["node"],
            )
        )
    elif seen["array"]:
        rows = xfs_blank.refusals(volume, seen, {**target, "content": seen["content"]})
        findings += [block(volume, name, target["node"], *row) for name, *row in rows]
    return findings


def _device_finding(
    volume: Mapping[str, Any], one: Mapping[str, Any], name: str, expected: Any, observed: Any, why: str, fix: str
) -> Finding:
    return block(volume, name, one["given"], expected, observed, why, fix)


def _of(volume: Mapping[str, Any], have: Mapping[str, Any]) -> Mapping[str, Any]:
    rows: Sequence[Mapping[str, Any]] = [seen for seen in have["volumes"] if seen["name"] == volume["name"]]
    return rows[0]
