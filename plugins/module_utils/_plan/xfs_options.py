# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""XFS mount options: which there are, what of them shows in mountinfo, and how a lost one comes back.

Tried on kernels 6.1 and 6.18: a remount changes the flags of the mount (noatime, nodev, …), ro/rw and
inode32/inode64.  It takes allocsize, logbsize and the others without an error and without any effect
(fs/xfs/xfs_super.c, xfs_fs_reconfigure), so those need an unmount.
"""

from __future__ import annotations

import re
from typing import Any, List, Mapping, Optional, Sequence, Tuple

from .._engine.units import parse_size
from .._engine.values import BadWant, Unknown

SOURCE = "kernel Documentation/admin-guide/xfs and mount(8)"

# Flags of the mount point: a remount sets them.
FLAGS = (
    "noatime", "relatime", "strictatime", "nodiratime", "nodev", "nosuid", "noexec", "nosymfollow", "ro", "rw",
    "sync", "dirsync", "lazytime",
)  # fmt: skip
# Read by mount(8), systemd and the like; the kernel never shows them.
USER_SPACE = ("nofail", "_netdev", "defaults", "auto", "noauto", "user", "nouser", "users", "owner", "group")
# Options of XFS itself which mountinfo shows under the same name.
_XFS = (
    "allocsize", "discard", "nodiscard", "filestreams", "grpid", "nogrpid", "inode32", "inode64", "largeio", "nolargeio",
    "logbsize", "logbufs", "logdev", "max_atomic_write", "noalign", "norecovery", "nouuid", "rtdev", "sunit", "swalloc",
    "swidth", "wsync", "dax", "attr2", "noattr2", "ikeep", "noikeep", "lifetime", "nolifetime",
    "usrquota", "uqnoenforce", "grpquota", "gqnoenforce", "prjquota", "pqnoenforce", "noquota",
)  # fmt: skip
_OLD_QUOTA = {
    "quota": "usrquota",
    "uquota": "usrquota",
    "gquota": "grpquota",
    "pquota": "prjquota",
    "qnoenforce": "uqnoenforce",
}
# Not shown when they are set, since they are what the kernel does anyway.
_NOT_SHOWN = (
    "attr2",
    "noikeep",
    "nodiscard",
    "nogrpid",
    "nolargeio",
    "rw",
    "lifetime",
    "nolifetime",
    "ikeep",
    "noattr2",
)

# Kernel that took an option away (Documentation/admin-guide/xfs, "Removed Mount Options").
REMOVED = {
    "delaylog": (4, 0), "nodelaylog": (4, 0), "ihashsize": (4, 0), "irixsgid": (4, 0),
    "osyncisdsync": (4, 0), "osyncisosync": (4, 0), "barrier": (4, 19), "nobarrier": (4, 19),
}  # fmt: skip
# Kernel that brought an option.
ADDED = {"nosymfollow": (5, 10), "max_atomic_write": (6, 16)}

# What cannot stand beside a wanted option, in fstab and live.
CONFLICTS = {
    "noatime": ("atime", "relatime", "strictatime", "norelatime", "nostrictatime"),
    "inode64": ("inode32",),
    "nofail": ("fail",),
}

ALLOCSIZE_MIN, ALLOCSIZE_MAX = 4096, 2**30
ALLOCSIZE_ALLOWED = (
    "a power of two from 4k (and not below the page size of the host) to 1g (kernel Documentation/admin-guide/xfs)"
)


def check_options(place: str, volume: Mapping[str, Any]) -> None:
    """Refuse options that no kernel knows, or that say a thing twice."""
    allocsize = volume.get("allocsize")
    if allocsize:
        size = size_or_none(allocsize)
        if size is None or not ALLOCSIZE_MIN <= size <= ALLOCSIZE_MAX or size & (size - 1):
            raise BadWant(place + ".allocsize", allocsize, ALLOCSIZE_ALLOWED)
    own = {"noatime": "noatime", "inode64": "inode64", "allocsize": "allocsize", "nofail": "nofail"}
    seen: List[str] = []
    for index, option in enumerate(volume.get("options") or []):
        where = "%s.options[%d]" % (place, index)
        name = name_of(option)
        if name in own or name in seen:
            raise BadWant(where, option, "each option once (%s has a variable of its own)" % ", ".join(own))
        if name not in FLAGS + USER_SPACE + _XFS and name not in REMOVED and not name.startswith("x-"):
            raise BadWant(
                where, option, "an option of XFS or mount(8): " + ", ".join(sorted(FLAGS + _XFS + USER_SPACE))
            )
        if not re.match(r"^[A-Za-z0-9_.=:@/+-]+$", option):
            raise BadWant(where, option, "one option without spaces, commas or quotes")
        for wanted in ("noatime", "inode64"):
            if volume.get(wanted) and name in CONFLICTS[wanted]:
                raise BadWant(where, option, "nothing that contradicts %s: %s" % (wanted, "set one of them"))
        seen.append(name)


def wanted_options(volume: Mapping[str, Any]) -> List[str]:
    """The options for fstab or the unit, in a fixed order."""
    options = [name for name in ("noatime", "inode64") if volume.get(name)]
    if volume.get("allocsize"):
        options.append("allocsize=%s" % volume["allocsize"])
    options += [canonical(option) for option in volume.get("options") or []]
    return options + (["nofail"] if volume.get("nofail") else [])


def further(volume: Mapping[str, Any], options: Sequence[str]) -> List[str]:
    """What an fstab line says beyond a volume's own variables; the live mount is right where the line contradicts it."""
    own = ["noatime", "inode64", "allocsize", "nofail", "defaults"]
    own += [name for wanted in ("noatime", "inode64") if volume.get(wanted) for name in CONFLICTS[wanted]]
    # Of an option that is given twice the last counts.
    last = {name_of(option): option for option in options}
    return [option for name, option in last.items() if name not in own]


def canonical(option: str) -> str:
    name, equals, value = option.partition("=")
    if option == "dax":
        return "dax=always"
    return _OLD_QUOTA.get(name, name) + equals + value


def name_of(option: str) -> str:
    return canonical(option).partition("=")[0]


def lost(volume: Mapping[str, Any], mount: Mapping[str, Any]) -> Tuple[List[str], List[str]]:
    """Wanted options that the kernel does not show: those for a remount, those for an unmount and mount."""
    live = [canonical(option) for option in list(mount["options"]) + list(mount["super_options"])]
    remount: List[str] = []
    fresh: List[str] = []
    for option in wanted_options(volume):
        name = name_of(option)
        if name in USER_SPACE or name.startswith("x-") or name in _NOT_SHOWN:
            continue
        if name == "inode64":
            # The default since kernel 3.7, so only its opposite means that it is not in force.
            remount += [option] if "inode32" in live else []
        elif name in FLAGS:
            remount += [option] if option not in live else []
        elif not any(same(option, other) for other in live):
            fresh.append(option)
    if "ro" not in [name_of(option) for option in volume.get("options") or []] and "ro" in live:
        remount.append("rw")
    return remount, fresh


def same(option: str, other: str) -> bool:
    """Whether two options say the same, sizes compared as sizes (64k, 65536)."""
    name, _equals, value = canonical(option).partition("=")
    other_name, _equals, other_value = canonical(other).partition("=")
    if name != other_name:
        return False
    return value == other_value or (
        size_or_none(value) is not None and size_or_none(value) == size_or_none(other_value)
    )


def remount_options(mount: Mapping[str, Any], changes: Sequence[str] = ()) -> str:
    """All options for a remount that reads none from elsewhere: what is live, with some changed."""
    dropped = [name for change in changes for name in CONFLICTS.get(change, ())] + (["ro"] if "rw" in changes else [])
    live = [*mount["options"], *mount["super_options"]]
    kept = [option for option in live if option in FLAGS and option not in dropped]
    # A remount that does not name inode32 again goes back to inode64.
    kept += [option for option in mount["super_options"] if option in ("inode32", "inode64") and option not in dropped]
    return ",".join(dict.fromkeys(kept + list(changes)))


def mount_options(mount: Mapping[str, Any]) -> str:
    """The options to mount a filesystem again just as it was."""
    live = [option for option in [*mount["options"], *mount["super_options"]] if option in FLAGS]
    live += [o for o in mount["super_options"] if name_of(o) in _XFS and name_of(o) not in ("noquota", "attr2")]
    return ",".join(dict.fromkeys(live)) or "rw"


def unsupported(volume: Mapping[str, Any], kernel: Any) -> List[Tuple[str, str]]:
    """Wanted options that the running kernel does not have, with the reason."""
    version = kernel_version(kernel)
    rows: List[Tuple[str, str]] = []
    for option in wanted_options(volume):
        name = name_of(option)
        if name in REMOVED and (version is None or version >= REMOVED[name]):
            rows.append((option, "was removed in Linux %d.%d: a mount with it fails" % REMOVED[name]))
        if name in ADDED and version is not None and version < ADDED[name]:
            rows.append((option, "came with Linux %d.%d: a mount with it fails" % ADDED[name]))
    return rows


def kernel_version(kernel: Any) -> Optional[Tuple[int, int]]:
    match = re.match(r"^(\d+)\.(\d+)", kernel) if not isinstance(kernel, Unknown) and kernel else None
    return (int(match.group(1)), int(match.group(2))) if match else None


def size_or_none(text: Any) -> Optional[int]:
    try:
        return parse_size(text)
    except ValueError:
        return None
