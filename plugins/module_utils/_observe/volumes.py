# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Volumes as they are now: their devices and who holds them, the array, the filesystem, the mount.

Plain dictionaries, since they go to the planner.  Commands run only where sysfs and the udev database do
not answer: nothing is probed on a device that is in use, and a mounted volume costs one command.
"""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

from .._engine.host import Host
from .._engine.values import Text, Unknown, as_unknown, lines
from . import blank, block, md, mounts, places, signatures, xfs

SECTOR_BYTES = block.SECTOR_BYTES
_BY_ID = "/dev/disk/by-id/"
# How fstab names a device, and the folder of udev's links for it.
_SPECS = {"UUID": "by-uuid", "LABEL": "by-label", "PARTUUID": "by-partuuid", "PARTLABEL": "by-partlabel", "ID": "by-id"}
_UNIT_FOLDERS = (
    "/etc/systemd/system/",
    "/run/systemd/system/",
    "/usr/local/lib/systemd/system/",
    "/usr/lib/systemd/system/",
)
_GENERATED = "/run/systemd/generator/"


def shared(host: Host) -> Dict[str, Any]:
    """What all volumes are judged by, each read once."""
    mounted = mounts.parse_mountinfo(host.read("/proc/self/mountinfo"))
    conf = "/etc/mdadm/mdadm.conf" if host.exists("/etc/mdadm") else "/etc/mdadm.conf"
    unseen = None if host.exists("/etc") else Unknown("/etc cannot be seen")
    return {
        "machine_id": _machine_id(host.read("/etc/machine-id")),
        "kernel": _release(host.read("/proc/sys/kernel/osrelease")),
        "mounts": mounted,
        "swaps": mounts.parse_swaps(host.read("/proc/swaps")),
        "root": _backing(host, mounted),
        "fstab": unseen or host.read("/etc/fstab"),
        "crypttab": host.read("/etc/crypttab"),
        "mdadm_conf": {"path": conf, "text": unseen or host.read(conf)},
        "has_systemd": host.exists("/run/systemd/system"),
        "has_mdadm": host.exists("/usr/sbin/mdadm") or host.exists("/sbin/mdadm"),
    }


def volume(host: Host, common: Mapping[str, Any], wanted: Mapping[str, Any], unit: str, uuid: Any) -> Dict[str, Any]:
    """One volume.  ``unit`` is the name of its mount unit, ``uuid`` the one that we would give it."""
    path = wanted["mount_point"]
    devices = [device(host, common, given) for given in wanted["devices"]]
    array = _array(host, devices) if wanted.get("raid") else None
    target = _node(array) if array else (devices[0] if not wanted.get("raid") and devices[0]["name"] else None)
    seen: Dict[str, Any] = {
        "name": wanted["name"],
        "devices": devices,
        "array": array,
        "target": {key: target[key] for key in ("name", "node", "path", "number", "size")} if target else None,
        "signatures": None,
        "content": None,
        "geometry": None,
        "cut_off": False,
        "uuid_holder": _name(host.readlink("/dev/disk/by-uuid/%s" % uuid)) if isinstance(uuid, str) else None,
        "unit": _unit(host, unit),
        "generated": _generated(host, unit),
        **places.place(host, _all(common), path),
        "openers": None,
        "dry_run": None,
    }
    seen.update(_mounted(common, path, seen["target"]))
    seen["fstab"] = _fstab_lines(host, common, path, seen["target"])
    _look_inside(host, seen, path)
    return seen


def device(host: Host, common: Mapping[str, Any], given: str) -> Dict[str, Any]:
    """A device by its stable id, and all that speaks against touching it."""
    names = _resolve(host, given)
    name = names[0] if len(names) == 1 else None
    base = "/sys/class/block/%s" % name
    text = host.read(base + "/dev") if name else None
    number = _word(text)
    seen: Dict[str, Any] = {
        "given": given,
        "candidates": names,
        "name": name if number else None,
        "node": "/dev/%s" % name,
        "path": _stable_path(host, given) or "/dev/%s" % name,
        "number": number,
        "unseen": text if isinstance(text, Unknown) else (_unresolved(host, given) if not names else None),
        "size": _bytes(host.read(base + "/size")) if number else None,
        "serials": _serials(host, number),
        "named_in": _named_in(host, common, name) if number and name else [],
        "signatures": None,
        "content": None,
    }
    seen.update(
        _uses(host, common, seen)
        if number
        else {"holders": [], "partitions": [], "mounted_at": [], "swap": [], "root": False}
    )
    return seen


def openers(host: Host, path: str) -> List[str]:
    """Processes that have something below a path open or as their folder: what keeps it from being unmounted."""
    found: List[str] = []
    for pid in host.listdir("/proc"):
        if not pid.isdigit():
            continue
        base = "/proc/%s/" % pid
        places = [host.readlink(base + name) for name in ("cwd", "root")]
        places += [host.readlink(base + "fd/" + name) for name in host.listdir(base + "fd")]
        inside = [place for place in places if place and (place == path or place.startswith(path + "/"))]
        if inside:
            found.append("%s (%s) has %s" % (_word(host.read(base + "comm")) or "?", pid, inside[0]))
    mounted = mounts.parse_mountinfo(host.read("/proc/self/mountinfo"))
    below = (
        [mount.mount_point for mount in mounted if mount.mount_point.startswith(path + "/")]
        if isinstance(mounted, list)
        else []
    )
    return found + ["%s is mounted below it" % place for place in below]


def unnamed(host: Host, common: Mapping[str, Any]) -> List[Dict[str, Any]]:
    """XFS filesystems that are mounted for data, as a want would name them: for the inventory of a hand-made host."""
    found: Dict[str, Dict[str, Any]] = {}
    for mount in _all(common):
        path = mount.mount_point
        if mount.fs_type != "xfs" or mount.root != "/" or mount.device in found or path.split("/")[1] in _SYSTEM:
            continue
        name = _name(host.readlink("/sys/dev/block/" + mount.device))
        members = host.listdir("/sys/block/%s/slaves" % name) if name.startswith("md") else [name]
        raid = md.array(host, name).level if name.startswith("md") else None
        words = re.sub("[^a-z0-9]+", "-", path.lower()).strip("-")[:32].strip("-")
        if name and words and (raid is None or raid[4:] in ("0", "1", "10")):
            devices = [_stable_id(host, member) for member in members]
            found[mount.device] = {
                "name": words,
                "devices": devices,
                "mount_point": path,
                "raid": {"level": raid} if raid else None,
            }
    return list(found.values())


# Filesystems there belong to the system.
_SYSTEM = ("", "boot", "etc", "proc", "root", "run", "sys", "usr", "var")
# Names below /dev/disk/by-id, the most telling kind first.
_KINDS_OF_ID = ("nvme-", "ata-", "scsi-", "wwn-", "virtio-", "dm-name-", "")


def _stable_id(host: Host, name: str) -> str:
    number = _word(host.read("/sys/class/block/%s/dev" % name))
    _properties, links = block.parse_udev_data(host.read("/run/udev/data/b" + number))
    ids = sorted(link[len("disk/by-id/") :] for link in links if link.startswith("disk/by-id/"))
    # nvme-eui.… and nvme-nvme.… tell people less than model and serial.
    ids.sort(key=lambda one: (re.match(r"nvme-(eui|nvme|uuid)\.", one) is not None, len(one)))
    best = [one for kind in _KINDS_OF_ID for one in ids if one.startswith(kind)]
    return _BY_ID + best[0] if best else name


def page_bytes(host: Host) -> Optional[int]:
    """The page size of the kernel."""
    text = host.read("/proc/self/smaps")
    for line in text.splitlines() if isinstance(text, str) else []:
        words = line.split()
        if words[:1] == ["KernelPageSize:"] and re.fullmatch("[0-9]{1,12}", "".join(words[1:2])):
            return int(words[1]) * 1024
    return None


def listed(found: Union[List[signatures.Signature], Unknown]) -> Any:
    return found if isinstance(found, Unknown) else [asdict(signature) for signature in found]


def _look_inside(host: Host, seen: Dict[str, Any], path: str) -> None:
    """The filesystem and its geometry: from udev and the mount where it is mounted, else from the device."""
    target, mount = seen["target"], seen["mount"]
    if target and mount and mount["number"] == target["number"]:
        properties, _links = block.parse_udev_data(host.read("/run/udev/data/b" + target["number"]))
        if properties.get("ID_FS_UUID"):
            uuid, label = properties["ID_FS_UUID"], properties.get("ID_FS_LABEL", "")
            seen["signatures"] = [{"kind": mount["fs_type"], "uuid": uuid, "label": label, "offset": ""}]
        else:
            seen["signatures"] = listed(signatures.signatures(host, target["node"]))
        if not seen["array"]:
            seen["devices"][0]["signatures"] = seen["signatures"]
        seen["geometry"] = _geometry(xfs.mounted_geometry(host, path)) if mount["fs_type"] == "xfs" else None
        return
    for one in seen["devices"]:
        if one["name"]:
            one["signatures"] = listed(signatures.signatures(host, one["node"]))
            is_used = any(one[use] for use in ("holders", "partitions", "mounted_at", "swap", "root"))
            one["content"] = None if is_used else _content(host, one["signatures"], one["node"])
    if not target:
        return
    if seen["array"]:
        seen["signatures"] = listed(signatures.signatures(host, target["node"]))
        seen["content"] = _content(host, seen["signatures"], target["node"])
    else:
        seen["signatures"] = seen["devices"][0]["signatures"]
    found = seen["signatures"]
    if isinstance(found, list) and [signature["kind"] for signature in found] == ["xfs"]:
        found_geometry = xfs.device_geometry(host, target["node"])
        seen["cut_off"] = found_geometry == Unknown(xfs.CUT_OFF)
        seen["geometry"] = _geometry(found_geometry)


def _content(host: Host, found: Any, node: str) -> Any:
    """What a device without a signature holds; one that has any is refused anyway."""
    return blank.content(host, node) if found == [] else None


def _serials(host: Host, number: str) -> List[str]:
    """What identifies a device itself, as udev has it of the device: its serial number in both forms, and its WWN."""
    properties, _links = block.parse_udev_data(host.read("/run/udev/data/b" + number) if number else None)
    found = [properties.get(key, "") for key in ("ID_SERIAL_SHORT", "ID_SERIAL", "ID_WWN_WITH_EXTENSION", "ID_WWN")]
    return [serial for number, serial in enumerate(found) if serial and serial not in found[:number]]


def _geometry(found: Union[xfs.Geometry, Unknown]) -> Any:
    return found if isinstance(found, Unknown) else dict(asdict(found), size_bytes=found.size_bytes)


def _resolve(host: Host, given: str) -> List[str]:
    """Kernel names that a stable id means: one, none, or several (such as the paths of a multipath device)."""
    bare = given[len(_BY_ID) :] if given.startswith(_BY_ID) else given
    linked = _name(host.readlink(_BY_ID + bare))
    if linked:
        return [linked]
    names = block.disk_names(host)
    disks = [block.disk(host, name) for name in names] if isinstance(names, list) else []
    return [disk.name for disk in disks if disk.is_named(given)]


def _unresolved(host: Host, given: str) -> Optional[Unknown]:
    """Why an id may mean a device all the same, where nothing was found: not all could be looked at."""
    link = _BY_ID + (given[len(_BY_ID) :] if given.startswith(_BY_ID) else given)
    for path in (link, "/sys/block"):
        if path in host.unseen:
            return Unknown("%s: %s" % (path, host.unseen[path]))
    names = block.disk_names(host)
    for name in names if isinstance(names, list) else []:
        number = host.read("/sys/block/%s/dev" % name)
        record = host.read("/run/udev/data/b" + number.strip()) if isinstance(number, str) else number
        if isinstance(record, Unknown):
            return Unknown("what %s is: %s" % (name, record.reason))
    return None


def _stable_path(host: Host, given: str) -> str:
    """The id as a path that a command can be given, where udev has made it."""
    path = given if given.startswith(_BY_ID) else _BY_ID + given
    return path if host.readlink(path) else ""


def _uses(host: Host, common: Mapping[str, Any], one: Mapping[str, Any]) -> Dict[str, Any]:
    base = "/sys/class/block/%s" % one["name"]
    children = [
        child
        for child in host.listdir(base)
        if child.startswith(one["name"]) and host.exists("%s/%s/partition" % (base, child))
    ]
    mine = [one["node"]] + ["/dev/" + child for child in children]
    swaps = common["swaps"]
    return {
        "holders": [_holder(host, name) for name in host.listdir(base + "/holders")],
        "partitions": children,
        "mounted_at": [
            mount.mount_point for mount in _all(common) if one["number"] == mount.device or mount.source in mine
        ],
        "swap": [swap for swap in swaps if swap in mine] if isinstance(swaps, list) else [],
        "root": bool({one["name"], *children} & set(common["root"])),
    }


def _holder(host: Host, name: str) -> Dict[str, str]:
    """Who holds a device, in words."""
    dm_name, dm_uuid = (
        _word(host.read("/sys/block/%s/dm/name" % name)),
        _word(host.read("/sys/block/%s/dm/uuid" % name)),
    )
    kinds = {"LVM": "LVM volume", "CRYPT": "encrypted volume", "mpath": "multipath device"}
    if dm_name:
        return {
            "name": name,
            "what": "%s %s (%s)" % (kinds.get(dm_uuid.split("-")[0], "device-mapper device"), dm_name, name),
        }
    return {"name": name, "what": ("md array " if name.startswith("md") else "") + name}


def _array(host: Host, devices: Sequence[Mapping[str, Any]]) -> Optional[Dict[str, Any]]:
    """The array that all devices which are there belong to, if there is one."""
    held = [sorted(holder["name"] for holder in one["holders"]) for one in devices if one["name"]]
    if not held or held[0] != held[-1] or any(names != held[0] for names in held) or len(held[0]) != 1:
        return None
    name = held[0][0]
    return dict(asdict(md.array(host, name)), node="/dev/" + name) if name.startswith("md") else None


def _node(array: Mapping[str, Any]) -> Dict[str, Any]:
    return {
        "name": array["name"],
        "node": array["node"],
        "path": array["node"],
        "number": array["number"],
        "size": array["size_bytes"],
    }


def _mounted(common: Mapping[str, Any], path: str, target: Optional[Mapping[str, Any]]) -> Dict[str, Any]:
    """What is mounted at the mount point (the topmost, so the last), and where else the volume is."""
    at_path = [mount for mount in _all(common) if mount.mount_point == path]
    own = [mount for mount in _all(common) if target and mount.device == target["number"]]
    return {
        "mount": _mount(at_path[-1]) if at_path else None,
        "elsewhere": sorted({mount.mount_point for mount in own if mount.mount_point != path}),
    }


def _mount(mount: mounts.Mount) -> Dict[str, Any]:
    return {
        "number": mount.device,
        "source": mount.source,
        "root": mount.root,
        "fs_type": mount.fs_type,
        "options": list(mount.options),
        "super_options": list(mount.super_options),
    }


def _fstab_lines(
    host: Host, common: Mapping[str, Any], path: str, target: Optional[Mapping[str, Any]]
) -> List[Dict[str, Any]]:
    """Lines of fstab for the mount point, and those that mount the same device elsewhere."""
    found: List[Dict[str, Any]] = []
    for line in mounts.parse_fstab(common["fstab"]):
        is_target = bool(line.spec and target and _spec_name(host, line.spec) == target["name"])
        if line.spec and (line.mount_point == path or is_target):
            about = asdict(line)
            found.append(dict(about, options=list(line.options), is_target=is_target))
    return found


def _named_in(host: Host, common: Mapping[str, Any], name: str) -> List[str]:
    """Lines of fstab and crypttab that mean a device: somebody uses it, though nothing may show it now."""
    rows = [("/etc/fstab:%d" % line.number, line.spec) for line in mounts.parse_fstab(common["fstab"]) if line.spec]
    if isinstance(common["crypttab"], Unknown):
        return ["/etc/crypttab, perhaps: %s" % common["crypttab"].reason]
    for number, text in enumerate(lines(common["crypttab"]), 1):
        words = text.split()
        rows += [("/etc/crypttab:%d" % number, words[1])] if len(words) > 1 and not words[0].startswith("#") else []
    return [place for place, spec in rows if _spec_name(host, spec) == name]


def _spec_name(host: Host, spec: str) -> str:
    """The kernel name of what the first field of fstab means."""
    tag, equals, value = spec.partition("=")
    if equals and tag.upper() in _SPECS:
        value = value.strip('"')
        spec = "/dev/disk/%s/%s" % (_SPECS[tag.upper()], value.lower() if tag.upper() == "UUID" else value)
    if not spec.startswith("/dev/"):
        return ""
    return _name(host.readlink(spec)) or spec.rsplit("/", 1)[1]


def _unit(host: Host, unit: str) -> Dict[str, Any]:
    paths = [folder + unit for folder in _UNIT_FOLDERS]
    links = ["/etc/systemd/system/local-fs.target.%s/%s" % (kind, unit) for kind in ("wants", "requires")]
    return {
        "name": unit,
        "text": host.read(paths[0]) if host.exists("/etc") else Unknown("/etc cannot be seen"),
        "foreign": [path for path in paths[1:] if host.exists(path)],
        "drop_ins": [
            folder + unit + ".d/" + name for folder in _UNIT_FOLDERS for name in host.listdir(folder + unit + ".d")
        ],
        "links": [link for link in links if host.readlink(link)],
        "shown": None,
    }


def _generated(host: Host, unit: str) -> Optional[Dict[str, str]]:
    """The unit that systemd made of fstab when it last looked; None where that cannot be seen."""
    if not host.exists(_GENERATED[:-1]):
        return None
    text = host.read(_GENERATED + unit)
    if isinstance(text, Unknown):
        return None
    rows = [line.partition("=") for line in text.splitlines()] if isinstance(text, str) else []
    return {key: value for key, equals, value in rows if equals}


def _backing(host: Host, mounted: Union[List[mounts.Mount], Unknown]) -> List[str]:
    """Kernel names of everything that the root filesystem stands on, through partitions, md and dm."""
    roots = [mount for mount in mounted if mount.mount_point == "/"] if isinstance(mounted, list) else []
    if not roots:
        return []
    # btrfs and overlay show a number of their own; then the source tells.
    source = roots[-1].source
    todo = [
        _name(host.readlink("/sys/dev/block/" + roots[-1].device)) or (_name(host.readlink(source)) or _name(source))
    ]
    found: List[str] = []
    while todo:
        name = todo.pop()
        if not name or name in found or len(found) > 1000:
            continue
        found.append(name)
        base = "/sys/class/block/" + name
        todo += host.listdir(base + "/slaves")
        if host.exists(base + "/partition"):
            parts = (host.readlink(base) or "").split("/")
            todo += parts[-2:-1]
    return found


def _all(common: Mapping[str, Any]) -> List[mounts.Mount]:
    return common["mounts"] if isinstance(common["mounts"], list) else []


def _machine_id(text: Text) -> Union[str, Unknown]:
    word = _word(text)
    if len(word) == 32 and word.strip("0123456789abcdef") == "":
        return word
    return text if isinstance(text, Unknown) else Unknown("/etc/machine-id has no machine id")


def _release(text: Text) -> Union[str, Unknown]:
    return text.strip() if isinstance(text, str) else as_unknown(text, "/proc/sys/kernel/osrelease cannot be seen")


def _name(path: Optional[str]) -> str:
    return path.rsplit("/", 1)[-1] if path else ""


def _word(text: Text) -> str:
    return text.strip() if isinstance(text, str) else ""


def _bytes(text: Text) -> Optional[int]:
    word = _word(text)
    return int(word) * SECTOR_BYTES if re.fullmatch("[0-9]{1,18}", word) else None
