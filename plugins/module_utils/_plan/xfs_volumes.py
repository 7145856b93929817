# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""XFS volumes: from named devices to a mounted filesystem, and what keeps a mounted one as wanted.

Order: what cannot be undone first (after all checks), then what can.  A volume that is there already is
kept apart from one that is yet to be made, so that a missing consent to mkfs holds back no other volume.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from .._engine.units import format_size
from .._engine.values import Finding, Step, Unknown, nothing_wanted
from . import xfs_blank, xfs_commands, xfs_devices, xfs_files, xfs_findings, xfs_mounts, xfs_options, xfs_wants
from .xfs_identity import expected_uuid, is_made
from .xfs_limits import kernel_refusals

check_want = xfs_wants.check_want

# mkfs.xfs discards the whole device first, which takes a slow disk minutes.
MKFS_DEADLINE_S = 1800.0

Volume = Mapping[str, Any]
Pair = Tuple[Volume, Mapping[str, Any]]


def plan(want: Mapping[str, Any], have: Mapping[str, Any]) -> List[Step]:
    """All steps; none for a volume that is refused."""
    if isinstance(have["mounts"], Unknown) or isinstance(have["fstab"], Unknown):
        return []
    pairs = [(volume, _seen(volume, have)) for volume in want["volumes"]]
    pairs = [pair for pair in pairs if not kernel_refusals(pair[0], have)]
    stages = {volume["name"]: xfs_devices.stage(volume, seen, have) for volume, seen in pairs}
    made = [pair for pair in pairs if stages[pair[0]["name"]] == xfs_devices.MADE]
    new = [pair for pair in pairs if stages[pair[0]["name"]] in (xfs_devices.FORMAT, xfs_devices.CREATE)]
    steps: List[Step] = []
    for volume, seen in new:
        steps += _make(volume, seen, have)
    needed = tuple(step.id for step in steps)
    files = {"fstab": have["fstab"], "mdadm-conf": have["mdadm_conf"]["text"]}
    steps += _keep(made, have, files, "", ()) + _keep(new, have, files, ".new", needed)
    parts = {volume["name"]: _outermost(volume, want["volumes"]) for volume in want["volumes"]}
    return [replace(step, part=parts.get(step.part, "")) for step in steps]


def _outermost(volume: Volume, volumes: Sequence[Volume]) -> str:
    """The mount point that a volume hangs on: one that is mounted below another stays or goes with it."""
    points = sorted((other["mount_point"] for other in volumes), key=len)
    return str(next(point for point in points if (volume["mount_point"] + "/").startswith(point.rstrip("/") + "/")))


def judge(want: Mapping[str, Any], have: Mapping[str, Any]) -> List[Finding]:
    """Refusals, what cannot be changed any more, what is not seen, and who else has a hand in it."""
    if not want["volumes"]:
        return [nothing_wanted("xfs_volumes", "xfs_storage")]
    findings: List[Finding] = []
    for volume in want["volumes"]:
        seen = _seen(volume, have)
        unseen = [value for value in (have["mounts"], have["fstab"]) if isinstance(value, Unknown)]
        if unseen:
            findings.append(xfs_findings.unseen(volume, unseen[0]))
            continue
        findings += kernel_refusals(volume, have)
        findings += xfs_devices.refusals(volume, seen, have)
        findings += xfs_findings.of_volume(volume, seen, have, is_made(volume, seen, have))
    return findings


def adopt(have: Mapping[str, Any]) -> Dict[str, Any]:
    """The volumes that are mounted, as they would be written in the inventory; all of the host's where none is wanted."""
    return {"volumes": [about for about in [seen["live"] for seen in have["volumes"]] + have["others"] if about]}


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
    size = xfs_options.size_or_none(sizes[0]) if sizes else None
    about["allocsize"] = None if size is None else format_size(size)
    lines = xfs_mounts.lines_at(volume, seen)
    about["mount_by"] = "unit" if isinstance(seen["unit"]["text"], str) else ("fstab" if lines else None)
    for line in lines[:1]:
        about["options"] = xfs_options.further(about, line["options"])
        about["nofail"] = "nofail" in line["options"]
    return about


def needs_fresh_mount(volume: Volume, seen: Mapping[str, Any]) -> bool:
    """Whether a wanted option is lost that no remount brings back."""
    mount = seen["mount"]
    own = bool(mount and seen["target"] and mount["number"] == seen["target"]["number"])
    return own and bool(xfs_options.lost(volume, mount)[1])


def _make(volume: Volume, seen: Mapping[str, Any], have: Mapping[str, Any]) -> List[Step]:
    """The array and the filesystem.  They have no undo: what they made stays, and the next run goes on from it."""
    uuid = str(expected_uuid(volume, have, "filesystem"))
    steps: List[Step] = []
    held = xfs_blank.state(volume, seen)
    node = seen["target"]["path"] if seen["target"] else xfs_commands.array_node(volume)
    if volume.get("raid") and not seen["array"]:
        paths = [one["path"] for one in seen["devices"]]
        argv = xfs_commands.mdadm_argv(volume, _array_digits(volume, have, mdadm=True), paths)
        why = "RAID %d over %d devices, unused and %s" % (volume["raid"]["level"], len(paths), held)
        step = xfs_mounts.run_step(
            volume, "array", node, "no array", " ".join(argv[3:5]), argv, why, "mdadm(8)", "destructive"
        )
        steps.append(replace(step, checks=xfs_blank.checks(volume, seen, paths)))
    argv = xfs_commands.mkfs_argv(volume, uuid, node, seen["array"])
    why = "the device is %s; the geometry cannot be changed later" % held
    required = tuple(step.id for step in steps)
    deadline = MKFS_DEADLINE_S
    step = xfs_mounts.run_step(
        volume, "mkfs", node, held, "xfs " + uuid, argv, why, xfs_wants.MKFS, "destructive", required, deadline
    )
    return [*steps, replace(step, checks=xfs_blank.checks(volume, seen, [node]))]


def _keep(
    pairs: Sequence[Pair], have: Mapping[str, Any], files: Dict[str, Any], suffix: str, needed: Tuple[str, ...]
) -> List[Step]:
    """What can be undone, for some volumes: mdadm.conf, mount points, fstab or units, mounts.

    ``files`` has the texts as the steps before leave them.
    """
    steps = _arrays_file(pairs, have, files, suffix, needed)
    for volume, seen in pairs:
        steps += xfs_mounts.folders(volume, seen, have, needed)
    text = files["fstab"] or ""
    for volume, seen in pairs:
        text = _fstab_for(volume, seen, have, text)
    why = "without its line a volume is gone after the next boot, and a wrong one mounts it otherwise"
    steps += _file("fstab", xfs_files.FSTAB, text, files, suffix, why, "fstab(5)", needed)
    for volume, seen in pairs:
        steps += xfs_mounts.unit_files(volume, seen, have, needed)
    reload_for = tuple(step.id for step in steps if step.kind == "file" and not step.id.startswith("mdadm-conf"))
    if have["has_systemd"] and (reload_for or any(xfs_mounts.is_stale(volume, seen, have) for volume, seen in pairs)):
        steps.append(xfs_mounts.daemon_reload(suffix, reload_for))
    for volume, seen in pairs:
        steps += xfs_mounts.unit_enabled(volume, seen, needed) + xfs_mounts.mounts(volume, seen, needed)
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


def _fstab_for(volume: Volume, seen: Mapping[str, Any], have: Mapping[str, Any], text: str) -> str:
    """fstab with the volume's line as wanted (or without it, where a unit mounts the volume)."""
    uuid = xfs_mounts.uuid_now(volume, seen, have)
    options = xfs_options.wanted_options(volume)
    own = [
        line
        for line in xfs_mounts.lines_at(volume, seen)
        if line["is_target"] or line["spec"].lower() == "uuid=" + uuid.lower()
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


def _array_digits(volume: Volume, have: Mapping[str, Any], mdadm: bool = False) -> str:
    digits = str(expected_uuid(volume, have, "array")).replace("-", "")
    return ":".join(digits[start : start + 8] for start in range(0, 32, 8)) if mdadm else digits


def _digits(text: Optional[str]) -> Any:
    digits = (text or "").replace("raid", "")
    return int(digits) if digits.isascii() and digits.isdigit() else text


def _seen(volume: Volume, have: Mapping[str, Any]) -> Mapping[str, Any]:
    return next(seen for seen in have["volumes"] if seen["name"] == volume["name"])
