# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The place of a mount: its folder, and whether the filesystems on the way to it answer.

A path is looked at only when the kernel's list of mounts shows that no filesystem on the way hangs: a FUSE or network
server that never answers holds whoever asks, and one that was shut down gives errors that are no absence.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Union

from .._engine.host import Host
from .._engine.values import ANSWERS, NOT_RECORDED, Unknown
from . import mounts

# A filesystem that works answers within milliseconds, a loaded server within a second.
DEADLINE_S = 3.0


def place(host: Host, mounted: Sequence[mounts.Mount], path: str) -> Dict[str, Any]:
    """``missing_folders`` topmost first, ``real_path`` without links, ``entries`` of the folder where nothing is mounted.

    ``unseen`` is the reason where that cannot be told.
    """
    found: Dict[str, Any] = {"missing_folders": [], "real_path": path, "entries": 0, "unseen": None}
    on_the_way = {mount.mount_point: mount for mount in mounted if _leads_to(mount.mount_point, path)}
    for mount in sorted(on_the_way.values(), key=lambda one: len(one.mount_point)):
        silence = _silence(host, mount)
        if silence:
            return dict(found, unseen=Unknown(silence))
    if path in on_the_way:
        return found
    missing = _missing_folders(host, path)
    if isinstance(missing, Unknown):
        return dict(found, unseen=missing)
    names = host.listdir(path) if not missing else []
    if not names and path in host.unseen:
        return dict(found, unseen=Unknown("%s: %s" % (path, host.unseen[path])))
    return dict(found, missing_folders=missing, real_path=_real_path(host, path), entries=len(names))


def _leads_to(mount_point: str, path: str) -> bool:
    return mount_point != "/" and (mount_point == path or path.startswith(mount_point + "/"))


def _silence(host: Host, mount: mounts.Mount) -> str:
    """Why a filesystem does not answer; empty where it does, and where a capture does not tell."""
    result = host.run([ANSWERS, mount.mount_point], DEADLINE_S)
    reason: Optional[str] = result.unknown or (result.stderr if result.rc else "")
    if not reason or result.unknown.endswith(NOT_RECORDED):
        return ""
    about = (mount.mount_point, mount.fs_type, mount.source, reason)
    return "the filesystem at %s (%s, %s, from /proc/self/mountinfo) does not answer: %s" % about


def _missing_folders(host: Host, path: str) -> Union[List[str], Unknown]:
    """The mount point and the folders above it that are not there, topmost first."""
    missing: List[str] = []
    while path not in ("", "/"):
        is_there = host.exists(path)
        if isinstance(is_there, Unknown):
            return Unknown("%s: %s" % (path, is_there.reason))
        if is_there:
            break
        missing.insert(0, path)
        path = path.rsplit("/", 1)[0]
    return missing


def _real_path(host: Host, path: str) -> str:
    """A path without symbolic links in it, as mountinfo would show it."""
    done: List[str] = []
    todo = path.split("/")[1:]
    for _hop in range(200):
        if not todo:
            break
        part = todo.pop(0)
        target = host.readlink("/" + "/".join([*done, part]))
        if target is None:
            done = done[:-1] if part == ".." else done + ([part] if part not in ("", ".") else [])
            continue
        done = [] if target.startswith("/") else done
        todo = target.split("/") + todo
    return "/" + "/".join(done)
