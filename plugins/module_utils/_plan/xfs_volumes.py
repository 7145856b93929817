# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""XFS volumes: from named devices to a mounted filesystem, and what keeps a mounted one as wanted.

Order: what cannot be undone first (after all checks), then what can.  A volume that is there already is
kept apart from one that is yet to be made, so that a missing consent to mkfs holds back no other volume.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from .._engine.units import format_size, parse_size
from .._engine.values import Finding, Step, Unknown
from . import xfs_commands, xfs_devices, xfs_files, xfs_findings, xfs_options, xfs_wants

check_want = xfs_wants.check_want

# mkfs.xfs discards the whole device first, which takes a slow disk minutes; a mount may replay a log.
MKFS_DEADLINE_S, MOUNT_DEADLINE_S = 1800.0, 600.0
# mkfs.xfs leaves out a last group below 16 MiB, so less than this is no growth of the device.
GROWTH_MIN = xfs_wants.AG_MIN

# Undoing what a killed run may never have done: each of these does nothing where there is nothing to do.
RMDIR = 'test ! -d "$1" || rmdir "$1"'
UMOUNT = '! mountpoint -q "$1" || umount "$1"'
MOUNT_AS_BEFORE = 'mountpoint -q "$1" || mount -t xfs -o "$2" "$3" "$1"'

Volume = Mapping[str, Any]
Pair = Tuple[Volume, Mapping[str, Any]]


def plan(want: Mapping[str, Any], have: Mapping[str, Any]) -> List[Step]:
    """All steps; none for a volume that is refused."""
    if isinstance(have["mounts"], Unknown) or isinstance(have["fstab"], Unknown):
        return []
    pairs = [(volume, _seen(volume, have)) for volume in want["volumes"]]
    pairs = [pair for pair in pairs if not xfs_devices.kernel_refusals(pair[0], have)]
    stages = {volume["name"]: xfs_devices.stage(volume, seen, have) for volume, seen in pairs}
    made = [pair for pair in pairs if stages[pair[0]["name"]] == xfs_devices.MADE]
    new = [pair for pair in pairs if stages[pair[0]["name"]] in (xfs_devices.FORMAT, xfs_devices.CREATE)]
    steps: List[Step] = []
    for volume, seen in new:
        steps += _make(volume, seen, have)
    needed = tuple(step.id for step in steps)
    files = {"fstab": have["fstab"], "mdadm-conf": have["mdadm_conf"]["text"]}
    steps += _keep(made, have, files, "", ())
    return steps + _keep(new, have, files, ".new", needed)


def judge(want: Mapping[str, Any], have: Mapping[str, Any]) -> List[Finding]:
    """Refusals, what cannot be changed any more, what is not seen, and who else has a hand in it."""
    findings: List[Finding] = []
    for volume in want["volumes"]:
        seen = _seen(volume, have)
        unseen = [value for value in (have["mounts"], have["fstab"]) if isinstance(value, Unknown)]
        if unseen:
            findings.append(xfs_findings.unseen(volume, unseen[0]))
            continue
        findings += xfs_devices.kernel_refusals(volume, have)
        findings += xfs_devices.refusals(volume, seen, have)
        findings += xfs_findings.of_volume(volume, seen, have, xfs_devices.is_made(volume, seen, have))
    return findings


def adopt(have: Mapping[str, Any]) -> Dict[str, Any]:
    """The volumes that are mounted, as they would be written in the inventory."""
    return {"volumes": [seen["live"] for seen in have["volumes"] if seen["live"]]}


def live(volume: Volume, seen: Mapping[str, Any]) -> Optional[Dict[str, Any]]:
    """A mounted volume in the want's own format; None for one that is not mounted."""
    mount, geometry = seen["mount"], seen["geometry"]
    if not mount or not seen["target"] or mount["number"] != seen["target"]["number"]:
        return None
    about: Dict[str, Any] = {
        "name": volume["name"],
        "devices": list(volume["devices"]),
        "mount_point": volume["mount_point"],
    }
    array = seen["array"]
    if array:
        about["raid"] = {"level": _digits(array["level"]), "metadata": array["metadata"]}
        about["raid"].update({"chunk": format_size(array["chunk_bytes"])} if array["chunk_bytes"] else {})
    if isinstance(geometry, Mapping):
        about["agcount"] = geometry["agcount"]
        about["log_size"] = format_size(geometry["log_bytes"])
    options = list(mount["options"]) + list(mount["super_options"])
    about["noatime"] = "noatime" in options
    about["inode64"] = "inode32" not in options
    sizes = [option.partition("=")[2] for option in options if option.startswith("allocsize=")]
    about["allocsize"] = format_size(parse_size(sizes[0])) if sizes else None
    lines = _lines_at(volume, seen)
    about["mount_by"] = "unit" if isinstance(seen["unit"]["text"], str) else ("fstab" if lines else None)
    for line in lines[:1]:
        own = ("noatime", "inode64", "allocsize", "nofail", "defaults")
        about["options"] = [option for option in line["options"] if xfs_options.name_of(option) not in own]
        about["nofail"] = "nofail" in line["options"]
    return about


def needs_fresh_mount(volume: Volume, seen: Mapping[str, Any]) -> bool:
    """Whether a wanted option is lost that no remount brings back."""
    mount = seen["mount"]
    own = bool(mount and seen["target"] and mount["number"] == seen["target"]["number"])
    return own and bool(xfs_options.lost(volume, mount)[1])


def _make(volume: Volume, seen: Mapping[str, Any], have: Mapping[str, Any]) -> List[Step]:
    """The array and the filesystem.  They have no undo: what they made stays, and the next run goes on from it."""
    uuid = str(xfs_devices.expected_uuid(volume, have, "filesystem"))
    steps: List[Step] = []
    node = seen["target"]["path"] if seen["target"] else xfs_commands.array_node(volume)
    if volume.get("raid") and not seen["array"]:
        argv = xfs_commands.mdadm_argv(
            volume, _array_digits(volume, have, mdadm=True), [one["path"] for one in seen["devices"]]
        )
        why = "RAID %d over %d devices that are all blank and unused" % (volume["raid"]["level"], len(seen["devices"]))
        steps.append(_run(volume, "array", node, "no array", " ".join(argv[3:5]), argv, why, "mdadm(8)", "destructive"))
    argv = xfs_commands.mkfs_argv(volume, uuid, node, seen["array"])
    why = "the device is blank; the geometry cannot be changed later"
    required = tuple(step.id for step in steps)
    deadline = MKFS_DEADLINE_S
    return [
        *steps,
        _run(
            volume, "mkfs", node, "blank", "xfs " + uuid, argv, why, xfs_wants.MKFS, "destructive", required, deadline
        ),
    ]


def _keep(
    pairs: Sequence[Pair], have: Mapping[str, Any], files: Dict[str, Any], suffix: str, needed: Tuple[str, ...]
) -> List[Step]:
    """What can be undone, for some volumes: mdadm.conf, mount points, fstab or units, mounts.

    ``files`` has the texts as the steps before leave them.
    """
    steps = _arrays_file(pairs, have, files, suffix, needed)
    for volume, seen in pairs:
        steps += _folders(volume, seen, needed)
    text = files["fstab"] or ""
    for volume, seen in pairs:
        text = _fstab_for(volume, seen, have, text)
    why = "without its line a volume is gone after the next boot, and a wrong one mounts it otherwise"
    steps += _file("fstab", xfs_files.FSTAB, text, files, suffix, why, "fstab(5)", needed)
    for volume, seen in pairs:
        steps += _unit_files(volume, seen, have, needed)
    reload_for = tuple(step.id for step in steps if step.kind == "file" and not step.id.startswith("mdadm-conf"))
    if have["has_systemd"] and (reload_for or any(_is_stale(volume, seen, have) for volume, seen in pairs)):
        steps.append(_daemon_reload(suffix, reload_for))
    for volume, seen in pairs:
        steps += _unit_enabled(volume, seen, needed) + _mounts(volume, seen, needed)
    return steps


def _file(
    name: str, path: str, text: str, files: Dict[str, Any], suffix: str, why: str, source: str, needed: Tuple[str, ...]
) -> List[Step]:  # fmt: skip
    """A step to a new text of a file that several volumes share; none when it is right."""
    before = files[name]
    if text == (before or ""):
        return []
    files[name] = text
    needs = "reload" if name == "fstab" else "nothing"
    return [Step(name + suffix, "file", path, before, text, why, source, needs=needs, requires=needed)]


def _arrays_file(
    pairs: Sequence[Pair], have: Mapping[str, Any], files: Dict[str, Any], suffix: str, needed: Tuple[str, ...]
) -> List[Step]:  # fmt: skip
    if isinstance(files["mdadm-conf"], Unknown):
        return []
    text = files["mdadm-conf"] or ""
    for volume, seen in pairs:
        if volume.get("raid"):
            digits = seen["array"]["uuid"] if seen["array"] else _array_digits(volume, have)
            text = _with_array(text, seen["array"], digits, xfs_commands.array_node(volume), volume["raid"]["metadata"])
    why = "an array that is named here gets the same name at each boot"
    return _file("mdadm-conf", have["mdadm_conf"]["path"], text, files, suffix, why, "mdadm.conf(5)", needed)


def _with_array(
    text: str, array: Optional[Mapping[str, Any]], digits: Optional[str], node: str, metadata: str = "1.2"
) -> str:
    if not digits or xfs_files.names_array(text, digits):
        return text
    if array:
        node = "/dev/md/" + array["label"] if array["label"] else array["node"]
        metadata = array["metadata"] or metadata
    return xfs_files.append_line(text, xfs_files.mdadm_line(node, metadata, digits))


def _folders(volume: Volume, seen: Mapping[str, Any], needed: Tuple[str, ...]) -> List[Step]:
    steps: List[Step] = []
    for number, path in enumerate(seen["missing_folders"]):
        name = "mount-point" + (".%d" % number if number else "")
        undo = ["sh", "-c", RMDIR, "rmdir", path]
        argv = ["mkdir", "-m", "0755", path]
        steps.append(
            _run(
                volume,
                name,
                path,
                "missing",
                "a folder",
                argv,
                "a mount needs its folder",
                "mkdir(1)",
                requires=needed,
                undo=undo,
            )
        )
    return steps


def _fstab_for(volume: Volume, seen: Mapping[str, Any], have: Mapping[str, Any], text: str) -> str:
    """fstab with the volume's line as wanted (or without it, where a unit mounts the volume)."""
    uuid = _uuid(volume, seen, have)
    options = xfs_options.wanted_options(volume)
    own = [
        line for line in _lines_at(volume, seen) if line["is_target"] or line["spec"].lower() == "uuid=" + uuid.lower()
    ]
    if volume["mount_by"] == "unit":
        return _without(text, own[0]["text"]) if own else text
    if not own:
        return xfs_files.append_line(text, xfs_files.fstab_line(uuid, volume["mount_point"], options))
    line = own[0]
    if xfs_files.line_is_right(line, uuid, options):
        return text
    new = xfs_files.fstab_line(
        uuid, volume["mount_point"], xfs_files.options_for(line, options), line["dump"], line["passno"]
    )
    return xfs_files.replace_line(text, _place(text, line["text"]), new)


def _place(text: str, line: str) -> int:
    return text.splitlines().index(line) + 1


def _without(text: str, line: str) -> str:
    return xfs_files.replace_line(text, _place(text, line), "") if line in text.splitlines() else text


def _unit_files(
    volume: Volume, seen: Mapping[str, Any], have: Mapping[str, Any], needed: Tuple[str, ...]
) -> List[Step]:
    """The mount unit as wanted; one of ours is taken away when fstab is to mount the volume."""
    unit, text = seen["unit"], seen["unit"]["text"]
    if isinstance(text, Unknown):
        return []
    path = xfs_files.UNIT_FOLDER + unit["name"]
    wanted: Optional[str] = None
    if volume["mount_by"] == "unit":
        options = xfs_options.wanted_options(volume)
        wanted = xfs_files.unit_text(volume["name"], _uuid(volume, seen, have), volume["mount_point"], options)
    ours = text is None or text.startswith(xfs_files.MARK)
    if text == wanted or not ours:
        return []
    steps: List[Step] = []
    if wanted is None and unit["links"]:
        steps.append(_switch_unit(volume, unit["name"], "disable", needed))
    why = "systemd mounts the volume by this unit at each boot"
    name = "volume.%s.unit" % volume["name"]
    return [*steps, Step(name, "file", path, text, wanted, why, "systemd.mount(5)", needs="reload", requires=needed)]


def _unit_enabled(volume: Volume, seen: Mapping[str, Any], needed: Tuple[str, ...]) -> List[Step]:
    text = seen["unit"]["text"]
    foreign = isinstance(text, str) and not text.startswith(xfs_files.MARK)
    if volume["mount_by"] != "unit" or foreign:
        return []
    link = xfs_files.unit_link(seen["unit"]["name"], xfs_options.wanted_options(volume))
    return [] if seen["unit"]["links"] == [link] else [_switch_unit(volume, seen["unit"]["name"], "reenable", needed)]


def _switch_unit(volume: Volume, unit: str, verb: str, needed: Tuple[str, ...]) -> Step:
    reverse = {"reenable": "disable", "disable": "enable"}[verb]
    why = "an enabled unit is started at boot"
    argv, undo = ["systemctl", verb, unit], ["systemctl", reverse, unit]
    return _run(
        volume,
        "enable" if verb != "disable" else "disable",
        unit,
        reverse + "d",
        verb + "d",
        argv,
        why,
        "systemctl(1)",
        requires=needed,
        undo=undo,
    )


def _is_stale(volume: Volume, seen: Mapping[str, Any], have: Mapping[str, Any]) -> bool:
    """Whether systemd goes by an older fstab or unit than the one on disk."""
    if volume["mount_by"] == "unit":
        return bool((seen["unit"]["shown"] or {}).get("NeedDaemonReload") == "yes")
    made, right = seen["generated"], _lines_at(volume, seen)
    if made is None or not right:
        return False
    options = xfs_options.wanted_options(volume)
    line = {
        "spec": "UUID=" + made.get("What", "").rsplit("/", 1)[-1],
        "fs_type": made.get("Type", ""),
        "options": made.get("Options", "").split(","),
    }
    # systemd keeps nofail for itself from version 254 on.
    return not xfs_files.line_is_right(
        line, _uuid(volume, seen, have), [o for o in options if o not in xfs_options.USER_SPACE]
    )


def _daemon_reload(suffix: str, requires: Tuple[str, ...]) -> Step:
    argv = ("systemctl", "daemon-reload")
    why = "systemd makes its mount units of fstab and of unit files only when told"
    undo = Step("undo.daemon-reload" + suffix, "run", "systemd", "new", "old", why, "systemctl(1)", argv=argv)
    return Step(
        "daemon-reload" + suffix,
        "run",
        "systemd",
        "old",
        "new",
        why,
        "systemctl(1)",
        "reload",
        argv=argv,
        undo=undo,
        requires=requires,
    )


def _mounts(volume: Volume, seen: Mapping[str, Any], needed: Tuple[str, ...]) -> List[Step]:
    """Mount it, or bring back lost options, then grow into a device that grew."""
    path, mount = volume["mount_point"], seen["mount"]
    steps: List[Step] = []
    remount, fresh = xfs_options.lost(volume, mount) if mount else ([], [])
    if fresh:
        old = ["sh", "-c", MOUNT_AS_BEFORE, "mount", path, xfs_options.mount_options(mount), seen["target"]["node"]]
        why = "XFS takes %s only at a mount: a remount accepts it and changes nothing" % ", ".join(fresh)
        steps.append(
            _run(
                volume,
                "umount",
                path,
                "mounted without " + ", ".join(fresh),
                "not mounted",
                ["umount", path],
                why,
                xfs_options.SOURCE,
                "disruptive",
                needed,
                MOUNT_DEADLINE_S,
                undo=old,
            )
        )
    elif remount:
        argv = _remount(path, xfs_options.remount_options(mount, remount))
        undo = _remount(path, xfs_options.remount_options(mount))
        before = ",".join(mount["options"])
        steps.append(
            _run(
                volume,
                "remount",
                path,
                before,
                ",".join(remount),
                argv,
                "the kernel has lost what was wanted",
                xfs_options.SOURCE,
                "disruptive",
                needed,
                undo=undo,
            )
        )
    if fresh or not mount:
        required = needed + tuple(step.id for step in steps)
        argv = ["systemctl", "start", seen["unit"]["name"]] if volume["mount_by"] == "unit" else ["mount", path]
        steps.append(
            _run(
                volume,
                "mount",
                path,
                "not mounted",
                "mounted",
                argv,
                "the volume is there and not mounted",
                "mount(8)",
                requires=required,
                deadline_s=MOUNT_DEADLINE_S,
                undo=["sh", "-c", UMOUNT, "umount", path],
                needs="nothing",
            )
        )
    return steps + _growth(volume, seen, tuple(step.id for step in steps if not step.id.endswith(".remount")))


def _growth(volume: Volume, seen: Mapping[str, Any], required: Tuple[str, ...]) -> List[Step]:
    geometry, target = seen["geometry"], seen["target"]
    if not isinstance(geometry, Mapping) or not target or target["size"] is None:
        return []
    if target["size"] - geometry["size_bytes"] < GROWTH_MIN:
        return []
    why = "the device is larger than its filesystem; growing is safe for the data, but XFS cannot shrink again"
    argv = ["xfs_growfs", "-d", volume["mount_point"]]
    return [
        _run(
            volume,
            "grow",
            volume["mount_point"],
            geometry["size_bytes"],
            target["size"],
            argv,
            why,
            "xfs_growfs(8)",
            "disruptive",
            required,
            MOUNT_DEADLINE_S,
            needs="nothing",
        )
    ]


def _remount(path: str, options: str) -> List[str]:
    # Nothing is read from fstab or mountinfo, so the options are exactly these.
    return ["mount", "--options-source=disable", "-o", "remount," + options, path]


def _run(
    volume: Volume, name: str, target: str, before: Any, after: Any, argv: Sequence[str], why: str, source: str,
    risk: str = "safe", requires: Tuple[str, ...] = (), deadline_s: float = 120.0, undo: Sequence[str] = (), needs: str = "",
) -> Step:  # fmt: skip
    full = "volume.%s.%s" % (volume["name"], name)
    needs = needs or ("remount" if risk == "disruptive" else "nothing")
    back: Optional[Step] = None
    if undo:
        back = Step(
            "undo." + full, "run", target, after, before, why, source, needs, risk, tuple(undo), deadline_s=deadline_s
        )
    return Step(
        full,
        "run",
        target,
        before,
        after,
        why,
        source,
        needs,
        risk,
        tuple(argv),
        deadline_s=deadline_s,
        undo=back,
        requires=requires,
    )


def _lines_at(volume: Volume, seen: Mapping[str, Any]) -> List[Mapping[str, Any]]:
    return [line for line in seen["fstab"] if line["mount_point"] == volume["mount_point"]]


def _uuid(volume: Volume, seen: Mapping[str, Any], have: Mapping[str, Any]) -> str:
    """The UUID that the filesystem has, or the one that we are going to give it."""
    found = seen["signatures"]
    if isinstance(found, list) and found and found[0]["kind"] == "xfs":
        return str(found[0]["uuid"])
    return str(xfs_devices.expected_uuid(volume, have, "filesystem"))


def _array_digits(volume: Volume, have: Mapping[str, Any], mdadm: bool = False) -> str:
    digits = str(xfs_devices.expected_uuid(volume, have, "array")).replace("-", "")
    return ":".join(digits[start : start + 8] for start in range(0, 32, 8)) if mdadm else digits


def _digits(text: Optional[str]) -> Any:
    digits = (text or "").replace("raid", "")
    return int(digits) if digits.isdigit() else text


def _seen(volume: Volume, have: Mapping[str, Any]) -> Mapping[str, Any]:
    return next(seen for seen in have["volumes"] if seen["name"] == volume["name"])
