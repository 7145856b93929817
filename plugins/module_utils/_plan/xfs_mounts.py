# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps around a filesystem that is there: its folder, unit and mount, lost options, growth."""

from __future__ import annotations

from typing import Any, List, Mapping, Optional, Sequence, Tuple

from .._engine.values import Step, Unknown
from . import xfs_files, xfs_options, xfs_wants
from .xfs_identity import expected_uuid

# A mount may replay a log first.
MOUNT_DEADLINE_S = 600.0
# mkfs.xfs leaves out a last group below 16 MiB, so less than this is no growth of the device.
GROWTH_MIN = xfs_wants.AG_MIN
# Undoing what a killed run may never have done: each of these does nothing where there is nothing to do.
# After a boot in the middle of a run the volume may be mounted by its line or unit, and no step ever mounted it. Another
# filesystem that is there by now stays, and keeps its folder.
RMDIR = 'test ! -d "$1" || { test "$(findmnt -rno UUID -M "$1")" != "$2" || umount "$1"; rmdir "$1"; }'
UMOUNT = '! mountpoint -q "$1" || umount "$1"'
MOUNT_AS_BEFORE = 'test ! -d "$1" || mountpoint -q "$1" || mount -t xfs -o "$2" "$3" "$1"'
REMOUNT = '! mountpoint -q "$1" || mount --options-source=disable -o "remount,$2" "$1"'


def folders(
    volume: Mapping[str, Any], seen: Mapping[str, Any], have: Mapping[str, Any], needed: Tuple[str, ...]
) -> List[Step]:
    steps: List[Step] = []
    for number, path in enumerate(seen["missing_folders"]):
        name = "mount-point" + (".%d" % number if number else "")
        undo = ["sh", "-c", RMDIR, "rmdir", path, uuid_now(volume, seen, have)]
        argv = ["mkdir", "-m", "0755", path]
        steps.append(
            run_step(
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


def unit_files(
    volume: Mapping[str, Any], seen: Mapping[str, Any], have: Mapping[str, Any], needed: Tuple[str, ...]
) -> List[Step]:
    """The mount unit as wanted; one of ours is taken away when fstab is to mount the volume."""
    unit, text = seen["unit"], seen["unit"]["text"]
    if isinstance(text, Unknown):
        return []
    path = xfs_files.UNIT_FOLDER + unit["name"]
    wanted: Optional[str] = None
    if volume["mount_by"] == "unit":
        options = xfs_options.wanted_options(volume)
        wanted = xfs_files.unit_text(volume["name"], uuid_now(volume, seen, have), volume["mount_point"], options)
    ours = text is None or text.startswith(xfs_files.MARK)
    if text == wanted or not ours:
        return []
    steps: List[Step] = []
    if wanted is None and unit["links"]:
        steps.append(_switch_unit(volume, unit["name"], "disable", needed))
    why = "systemd mounts the volume by this unit at each boot"
    name = "volume.%s.unit" % volume["name"]
    return [
        *steps,
        Step(
            name, "file", path, text, wanted, why, "systemd.mount(5)", needs="reload", requires=needed, part=volume["name"]
        ),
    ]  # fmt: skip


def unit_enabled(volume: Mapping[str, Any], seen: Mapping[str, Any], needed: Tuple[str, ...]) -> List[Step]:
    text = seen["unit"]["text"]
    foreign = isinstance(text, str) and not text.startswith(xfs_files.MARK)
    if volume["mount_by"] != "unit" or foreign:
        return []
    link = xfs_files.unit_link(seen["unit"]["name"], xfs_options.wanted_options(volume))
    return [] if seen["unit"]["links"] == [link] else [_switch_unit(volume, seen["unit"]["name"], "reenable", needed)]


def _switch_unit(volume: Mapping[str, Any], unit: str, verb: str, needed: Tuple[str, ...]) -> Step:
    reverse = {"reenable": "disable", "disable": "enable"}[verb]
    why = "an enabled unit is started at boot"
    argv, undo = ["systemctl", verb, unit], ["systemctl", reverse, unit]
    return run_step(
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


def is_stale(volume: Mapping[str, Any], seen: Mapping[str, Any], have: Mapping[str, Any]) -> bool:
    """Whether systemd goes by an older fstab or unit than the one on disk."""
    if volume["mount_by"] == "unit":
        return bool((seen["unit"]["shown"] or {}).get("NeedDaemonReload") == "yes")
    made, right = seen["generated"], lines_at(volume, seen)
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
        line, uuid_now(volume, seen, have), [o for o in options if o not in xfs_options.USER_SPACE]
    )


def daemon_reload(suffix: str, requires: Tuple[str, ...]) -> Step:
    argv = ("systemctl", "daemon-reload")
    why = "systemd makes its mount units of fstab and of unit files only when told"
    undo = Step(
        "undo.daemon-reload" + suffix, "run", "systemd", "read again", "as last read", why, "systemctl(1)", argv=argv
    )
    return Step(
        "daemon-reload" + suffix,
        "run",
        "systemd",
        "as last read",
        "read again",
        why,
        "systemctl(1)",
        "reload",
        argv=argv,
        undo=undo,
        requires=requires,
    )


def mounts(volume: Mapping[str, Any], seen: Mapping[str, Any], needed: Tuple[str, ...]) -> List[Step]:
    """Mount it, or bring back lost options, then grow into a device that grew."""
    mount = seen["mount"]
    flags, fresh = xfs_options.lost(volume, mount) if mount else ([], [])
    steps: List[Step] = []
    # A volume in use cannot be unmounted; what a remount can bring back is brought back all the same.
    if flags and (not fresh or seen["openers"]):
        steps.append(_remount_step(volume, mount, flags, needed))
    again: List[Step] = [_umount_step(volume, seen, fresh, needed)] if fresh else []
    if fresh or not mount:
        again.append(_mount_step(volume, seen, needed + tuple(step.id for step in again)))
    return steps + again + _growth(volume, seen, tuple(step.id for step in again))


def _remount_step(
    volume: Mapping[str, Any], mount: Mapping[str, Any], flags: List[str], needed: Tuple[str, ...]
) -> Step:
    path = volume["mount_point"]
    argv = _remount(path, xfs_options.remount_options(mount, flags))
    undo = ["sh", "-c", REMOUNT, "mount", path, xfs_options.remount_options(mount)]
    before, why = ",".join(mount["options"]), "the kernel has lost what was wanted"
    return run_step(
        volume, "remount", path, before, ",".join(flags), argv, why, xfs_options.SOURCE, "disruptive", needed, undo=undo
    )  # fmt: skip


def _umount_step(volume: Mapping[str, Any], seen: Mapping[str, Any], fresh: List[str], needed: Tuple[str, ...]) -> Step:
    path, names = volume["mount_point"], ", ".join(fresh)
    undo = [
        "sh",
        "-c",
        MOUNT_AS_BEFORE,
        "mount",
        path,
        xfs_options.mount_options(seen["mount"]),
        seen["target"]["node"],
    ]
    why = "XFS takes %s only at a mount: a remount accepts it and changes nothing" % names
    return run_step(
        volume, "umount", path, "mounted without " + names, "not mounted", ["umount", path], why, xfs_options.SOURCE,
        "disruptive", needed, MOUNT_DEADLINE_S, undo=undo,
    )  # fmt: skip


def _mount_step(volume: Mapping[str, Any], seen: Mapping[str, Any], required: Tuple[str, ...]) -> Step:
    path = volume["mount_point"]
    argv = ["systemctl", "start", seen["unit"]["name"]] if volume["mount_by"] == "unit" else ["mount", path]
    why, undo = "the volume is there and not mounted", ["sh", "-c", UMOUNT, "umount", path]
    return run_step(
        volume, "mount", path, "not mounted", "mounted", argv, why, "mount(8)", "safe", required, MOUNT_DEADLINE_S, undo=undo
    )  # fmt: skip


def _growth(volume: Mapping[str, Any], seen: Mapping[str, Any], required: Tuple[str, ...]) -> List[Step]:
    geometry, target = seen["geometry"], seen["target"]
    if not isinstance(geometry, Mapping) or not target or target["size"] is None:
        return []
    if target["size"] - geometry["size_bytes"] < GROWTH_MIN:
        return []
    path = volume["mount_point"]
    why = "the device is larger than its filesystem; growing is safe for the data, but XFS cannot shrink again"
    return [
        run_step(
            volume, "grow", path, geometry["size_bytes"], target["size"], ["xfs_growfs", "-d", path], why, "xfs_growfs(8)",
            "disruptive", required, MOUNT_DEADLINE_S, needs="nothing",
        )
    ]  # fmt: skip


def _remount(path: str, options: str) -> List[str]:
    # Nothing is read from fstab or mountinfo, so the options are exactly these.
    return ["mount", "--options-source=disable", "-o", "remount," + options, path]


def run_step(
    volume: Mapping[str, Any], name: str, target: str, before: Any, after: Any, argv: Sequence[str], why: str, source: str,
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
        part=volume["name"],
    )


def lines_at(volume: Mapping[str, Any], seen: Mapping[str, Any]) -> List[Mapping[str, Any]]:
    return [line for line in seen["fstab"] if line["mount_point"] == volume["mount_point"]]


def uuid_now(volume: Mapping[str, Any], seen: Mapping[str, Any], have: Mapping[str, Any]) -> str:
    """The UUID that the filesystem has, or the one that we are going to give it."""
    found = seen["signatures"]
    if isinstance(found, list) and found and found[0]["kind"] == "xfs":
        return str(found[0]["uuid"])
    return str(expected_uuid(volume, have, "filesystem"))
