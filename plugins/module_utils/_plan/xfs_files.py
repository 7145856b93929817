# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The small files that make an XFS volume last: lines of fstab, a mount unit, a line of mdadm.conf."""

from __future__ import annotations

import re
from typing import Any, List, Mapping, Sequence

from . import xfs_options

FSTAB = "/etc/fstab"
UNIT_FOLDER = "/etc/systemd/system/"
MARK = "# Managed by gpufleet.host.xfs_storage: changes made here are put back.\n"


def unit_name(path: str) -> str:
    """The mount unit of a path, escaped as systemd-escape --path does it."""
    escaped: List[str] = []
    for index, byte in enumerate(path.strip("/").encode("utf-8")):
        letter = chr(byte)
        if letter == "/":
            escaped.append("-")
        elif re.match(r"[A-Za-z0-9:_]", letter) or (letter == "." and index):
            escaped.append(letter)
        else:
            escaped.append("\\x%02x" % byte)
    return "".join(escaped) + ".mount"


def escape(path: str) -> str:
    """A path as a field of fstab (fstab(5))."""
    return re.sub(r"[\s\\#]", lambda match: "\\%03o" % ord(match.group()), path, flags=re.ASCII)


def fstab_line(uuid: str, mount_point: str, options: Sequence[str], dump: str = "0", passno: str = "0") -> str:
    # XFS is never checked at boot, so its pass is 0 (fsck.xfs(8)).
    fields = ["UUID=" + uuid, escape(mount_point), "xfs", ",".join(options) or "defaults", dump, passno]
    return " ".join(fields)


def options_for(line: Mapping[str, Any], wanted: Sequence[str]) -> List[str]:
    """Options of a line with what is wanted in it; what an operator added stays."""
    names = [xfs_options.name_of(option) for option in wanted]
    banned = [name for option in names for name in xfs_options.CONFLICTS.get(option, ())] + ["noauto", "defaults"]
    kept: List[str] = []
    for option in line["options"]:
        name = xfs_options.name_of(option)
        replaced = name in names and not any(xfs_options.same(option, other) for other in wanted)
        if name not in banned and not replaced:
            kept.append(option)
    missing = [option for option in wanted if not any(xfs_options.same(option, other) for other in kept)]
    return kept + missing


def line_is_right(line: Mapping[str, Any], uuid: str, wanted: Sequence[str]) -> bool:
    """Whether a line mounts this filesystem with what is wanted; inode64 is the default and may be left out."""
    needed = [option for option in wanted if option != "inode64"]
    names = [xfs_options.name_of(option) for option in line["options"]]
    banned = [name for option in wanted for name in xfs_options.CONFLICTS.get(option, ())] + ["noauto"]
    return (
        line["spec"].lower() == "uuid=" + uuid.lower()
        and line["fs_type"] == "xfs"
        and all(any(xfs_options.same(option, other) for other in line["options"]) for option in needed)
        and not any(name in banned for name in names)
    )


def replace_line(text: str, number: int, new: str) -> str:
    """A text with one of its lines replaced; an empty new line takes it out."""
    rows = text.splitlines(keepends=True)
    rows[number - 1] = new + "\n" if new else ""
    return "".join(rows)


def append_line(text: str, new: str) -> str:
    return text + ("\n" if text and not text.endswith("\n") else "") + new + "\n"


def unit_text(name: str, uuid: str, mount_point: str, options: Sequence[str]) -> str:
    """A native mount unit.  Wanted, not required: a missing disk must not stop the boot, unless asked for."""
    is_wanted = "nofail" in options
    rest = [option for option in options if option not in ("nofail", "_netdev", "auto")]
    return MARK + (
        "[Unit]\nDescription=XFS volume %s\nDocumentation=man:xfs(5)\n\n"
        "[Mount]\nWhat=/dev/disk/by-uuid/%s\nWhere=%s\nType=xfs\nOptions=%s\n\n"
        "[Install]\n%s=local-fs.target\n"
    ) % (
        name,
        uuid,
        mount_point.replace("%", "%%"),
        ",".join(rest) or "defaults",
        "WantedBy" if is_wanted else "RequiredBy",
    )


def unit_link(unit: str, options: Sequence[str]) -> str:
    kind = "wants" if "nofail" in options else "requires"
    return "%slocal-fs.target.%s/%s" % (UNIT_FOLDER, kind, unit)


def mdadm_line(node: str, metadata: str, digits: str) -> str:
    uuid = ":".join(digits[start : start + 8] for start in range(0, 32, 8))
    return "ARRAY %s metadata=%s UUID=%s" % (node, metadata, uuid)


def names_array(text: str, digits: str) -> bool:
    """Whether mdadm.conf has a line for an array, however it writes the UUID."""
    for line in text.splitlines():
        found = re.search(r"^\s*array\s.*\buuid=([0-9a-f:.-]+)", line, re.IGNORECASE)
        if found and re.sub(r"[^0-9a-f]", "", found.group(1).lower()) == digits:
            return True
    return False
