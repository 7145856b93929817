# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which devices may be taken for a volume, and which are refused: holder or signature named.

The law: nothing is made on a device that carries any signature, is mounted, is swap, is held by
anything, backs the root, is not the one that was meant, or cannot be seen clearly.  What we made
ourselves is known by the UUID that we give, so that a run that was killed goes on where it stopped.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence

from .._engine.units import format_size_for_people, parse_size
from .._engine.values import Finding, Unknown
from . import xfs_commands, xfs_options, xfs_wants

MADE, FORMAT, CREATE, REFUSED = "made", "format", "create", "refused"
SOURCE = "the role's safety rules, docs/areas/xfs_volumes.md"


def stage(volume: Mapping[str, Any], seen: Mapping[str, Any], have: Mapping[str, Any]) -> str:
    """How far a volume is: there already, to be formatted, its array to be created first, or refused."""
    if refusals(volume, seen, have):
        return REFUSED
    if is_made(volume, seen, have):
        return MADE
    return CREATE if volume.get("raid") and not seen["array"] else FORMAT


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


def refusals(volume: Mapping[str, Any], seen: Mapping[str, Any], have: Mapping[str, Any]) -> List[Finding]:
    """All that keeps a volume from being touched; empty when it may be."""
    findings = [_device_finding(volume, one, *row) for one in seen["devices"] for row in _absence(one)]
    findings += _twice(volume, have)
    if findings:
        return findings
    if is_made(volume, seen, have):
        return _misplaced(volume, seen) + _cut_off(volume, seen)
    for number, one in enumerate(seen["devices"]):
        own_array = bool(seen["array"]) and _is_our_array(volume, seen, have)
        findings += [_device_finding(volume, one, *row) for row in _speaks_against(volume, one, own_array, have)[:1]]
        findings += _too_small(volume, one, number)
    if findings:
        return findings
    return (
        _target_refusals(volume, seen, have)
        + _misplaced(volume, seen)
        + _unfit(volume, seen, have)
        + _no_tools(volume, seen, have)
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
        unseen = found or Unknown("it was not probed")
        why = "it cannot be told whether the device is blank, and unknown is not blank"
        return [
            (
                "device-unknown",
                "a blank device",
                unseen,
                why,
                "blkid -p %s; wipefs --no-act %s" % (one["node"], one["node"]),
            )
        ]
    if not reasons:
        return []
    observed = "%s %s" % (one["node"], "; ".join(text for _id, text in reasons))
    fix = "name another device, or if nothing on it is needed any more: make it blank by hand with wipefs"
    if volume.get("raid") and _are_members_of_ours(volume, found, have):
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


_STOPPED = (
    "the device is a member of the array that we made for this volume, but the array does not run; "
    "if its creation was cut off and /proc/mdstat shows nothing, mdadm --zero-superblock on the members starts afresh"
)


def _are_members_of_ours(volume: Mapping[str, Any], found: Any, have: Mapping[str, Any]) -> bool:
    ours = expected_uuid(volume, have, "array")
    kinds = [(signature["kind"], signature["uuid"].lower()) for signature in found] if isinstance(found, list) else []
    return ours is not None and kinds == [("linux_raid_member", ours)]


def describe(signature: Mapping[str, Any]) -> str:
    """A signature in words: ``ext4 (label "data", UUID 1234)``."""
    about = ['label "%s"' % signature["label"]] if signature["label"] else []
    about += ["UUID " + signature["uuid"]] if signature["uuid"] else []
    return str(signature["kind"]) + (" (%s)" % ", ".join(about) if about else "")


def _is_our_array(volume: Mapping[str, Any], seen: Mapping[str, Any], have: Mapping[str, Any]) -> bool:
    ours = expected_uuid(volume, have, "array")
    return ours is not None and seen["array"]["uuid"] == ours.replace("-", "")


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
                found or Unknown("not probed"),
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
    return findings


def _misplaced(volume: Mapping[str, Any], seen: Mapping[str, Any]) -> List[Finding]:
    """Reasons in the mount point: something else is there, or the volume is elsewhere."""
    path, mount, target = volume["mount_point"], seen["mount"], seen["target"]
    findings: List[Finding] = []
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
    foreign = [line for line in lines if not line["is_target"] and not _is_ours(line, seen)]
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


def _cut_off(volume: Mapping[str, Any], seen: Mapping[str, Any]) -> List[Finding]:
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
            "wipefs --all %s, then run again" % node,
        )
    ]


def _is_ours(line: Mapping[str, Any], seen: Mapping[str, Any]) -> bool:
    """A line that names the UUID which we give, though no such filesystem is there (yet, or any more)."""
    return bool(seen["uuid"]) and line["spec"].lower() == "uuid=" + seen["uuid"]


def _unit_names(seen: Mapping[str, Any], uuid: str) -> bool:
    text = seen["unit"]["text"]
    return isinstance(text, str) and ("by-uuid/" + uuid) in text


def _unfit(volume: Mapping[str, Any], seen: Mapping[str, Any], have: Mapping[str, Any]) -> List[Finding]:
    """Geometry that does not fit the real size, options that the kernel does not have, a page size above allocsize."""
    sizes = [one["size"] for one in seen["devices"]]
    findings: List[Finding] = []
    if all(size is not None for size in sizes):
        known = [size for size in sizes if size is not None]
        size = seen["target"]["size"] if seen["array"] else min(known) * xfs_commands.data_disks(volume)
        for key, value, allowed in xfs_wants.misfits(volume, size or 0):
            why = "the volume is %s large; mkfs.xfs cannot make this" % format_size_for_people(size or 0)
            findings.append(
                block(
                    volume,
                    "geometry-impossible",
                    key,
                    allowed,
                    value,
                    why,
                    "set %s of the volume to %s" % (key, allowed),
                )
            )
    return findings


def kernel_refusals(volume: Mapping[str, Any], have: Mapping[str, Any]) -> List[Finding]:
    """Mount options that this kernel does not have; told before anything is changed."""
    findings: List[Finding] = []
    for option, reason in xfs_options.unsupported(volume, have["kernel"]):
        why = "%s %s" % (option.partition("=")[0], reason)
        findings.append(
            block(
                volume,
                "option-unsupported",
                option,
                "an option of kernel %s" % have["kernel"],
                option,
                why,
                "leave it out of the volume's options",
            )
        )
    page = have["page_bytes"]
    if volume.get("allocsize") and page and parse_size(volume["allocsize"]) < page:
        allowed = "%d or more: the page size of this host" % page
        findings.append(
            block(
                volume,
                "option-unsupported",
                "allocsize",
                allowed,
                volume["allocsize"],
                "a mount with it fails",
                "raise allocsize",
            )
        )
    return findings


def _no_tools(volume: Mapping[str, Any], seen: Mapping[str, Any], have: Mapping[str, Any]) -> List[Finding]:
    """What mkfs.xfs says to a dry run, and features that would make a filesystem which this kernel cannot mount."""
    findings: List[Finding] = []
    if volume.get("raid") and not seen["array"] and not have["has_mdadm"]:
        findings.append(
            block(
                volume,
                "no-mdadm",
                "mdadm",
                "installed",
                Unknown("mdadm is not installed"),
                "it makes the array",
                "install the package mdadm",
            )
        )
    run = seen["dry_run"]
    if run is None or isinstance(run, Unknown):
        unseen = run or Unknown("mkfs.xfs was not asked")
        return [
            *findings,
            block(
                volume,
                "no-mkfs",
                "mkfs.xfs -N",
                "an answer",
                unseen,
                "it makes the filesystem",
                "install the package xfsprogs",
            ),
        ]
    if run["rc"] != 0:
        why = "this xfsprogs cannot make what is wanted, and says so before anything is changed"
        findings.append(
            block(
                volume,
                "mkfs-refuses",
                "mkfs.xfs -N",
                "accepted",
                run["said"],
                why,
                "change the volume's settings, or install a newer xfsprogs",
            )
        )
    version = xfs_options.kernel_version(have["kernel"])
    for name in sorted(run["features"]) if version and ".el" not in str(have["kernel"]) else []:
        since = xfs_commands.FEATURES.get(name, ("", (0, 0)))[1]
        if run["features"][name] == 1 and version is not None and version < since:
            why = "mkfs.xfs would turn on %s, which Linux %d.%d brought: this kernel could not mount it" % (
                name,
                since[0],
                since[1],
            )
            findings.append(
                block(
                    volume,
                    "kernel-too-old",
                    name,
                    "features of kernel %s" % have["kernel"],
                    "%s=1" % name,
                    why,
                    "set mkfs_features: {%s: false}" % name,
                )
            )
    return findings


def block(
    volume: Mapping[str, Any], name: str, subject: str, expected: Any, observed: Any, why: str, fix: str
) -> Finding:
    """A finding that holds back this volume, and this one only."""
    blocks = ("volume.%s." % volume["name"],)
    return Finding(
        "xfs." + name, "block", "%s: %s" % (volume["name"], subject), expected, observed, why, fix, SOURCE, blocks
    )


def _device_finding(
    volume: Mapping[str, Any], one: Mapping[str, Any], name: str, expected: Any, observed: Any, why: str, fix: str
) -> Finding:
    return block(volume, name, one["given"], expected, observed, why, fix)


def _of(volume: Mapping[str, Any], have: Mapping[str, Any]) -> Mapping[str, Any]:
    rows: Sequence[Mapping[str, Any]] = [seen for seen in have["volumes"] if seen["name"] == volume["name"]]
    return rows[0]
