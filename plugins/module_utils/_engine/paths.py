# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Paths as root may use them on a host where other users own folders too.

A user who may write a folder may put a link there, a pipe, or a program.  So a link is followed only when it is root's,
what is no regular file is never opened, and what nobody but root can change is told apart from the rest.  Each part of a
path is opened below the one before it: nothing can be exchanged between the look and the use.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import List, Tuple

# Where a command is looked for, as root's own shell does.
FOLDERS = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
# As the kernel's own limit (path_resolution(7)).
_MOST_LINKS = 40
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_KINDS = (
    (stat.S_ISDIR, "is a directory"),
    (stat.S_ISFIFO, "is a named pipe"),
    (stat.S_ISSOCK, "is a socket"),
    (stat.S_ISCHR, "is a device"),
    (stat.S_ISBLK, "is a device"),
)


class Refused(Exception):
    """What a path leads to is not opened; the text is the reason."""


def open_file(root: str, path: str, is_ours_alone: bool = False) -> int:
    """A descriptor for reading a regular file, or /dev/null, by which a file is masked.

    :param is_ours_alone: only what nobody but root can change: the file, its folders, the links on the way.
    :raises Refused: for another kind of file, or one behind a link of another user.
    """
    fd, folder, name = _walk(root, path, True, is_ours_alone)
    try:
        found = os.fstat(fd)
        if stat.S_ISCHR(found.st_mode) and found.st_rdev == os.makedev(1, 3):
            return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        if not stat.S_ISREG(found.st_mode):
            raise Refused(next((word for is_kind, word in _KINDS if is_kind(found.st_mode)), "is no regular file"))
        return _opened(folder, name, found)
    finally:
        os.close(fd)
        os.close(folder)


def listing(root: str, path: str) -> List[str]:
    """The names in a folder."""
    fd, folder, _name = _walk(root, path, True, False)
    os.close(folder)
    try:
        inside = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=fd)
    finally:
        os.close(fd)
    try:
        return sorted(os.listdir(inside))
    finally:
        os.close(inside)


def target_of(root: str, path: str) -> str:
    """Where a link leads, when it is root's."""
    fd, folder, _name = _walk(root, path, False, False)
    os.close(folder)
    try:
        return _target(fd, os.fstat(fd), path)
    finally:
        os.close(fd)


def why_not_ours(path: str) -> str:
    """What keeps a program from being root's alone; empty when nobody else can change it."""
    try:
        for fd in _walk("", path, True, True)[:2]:
            os.close(fd)
    except Refused as error:
        return str(error)
    except OSError as error:
        return os.strerror(error.errno or 0)
    return ""


def find_program(name: str) -> Tuple[str, str]:
    """The path of a command that nobody but root can change, or an empty one and the reason."""
    reason = ""
    for path in [name] if "/" in name else ["%s/%s" % (folder, name) for folder in FOLDERS]:
        if not os.path.isfile(path) or not os.access(path, os.X_OK):
            continue
        trouble = why_not_ours(path)
        if not trouble:
            return path, ""
        reason = reason or "%s is not started as root: %s" % (path, trouble)
    return "", reason or "%s is not installed" % name


def own_folders() -> str:
    """PATH for what a command starts in its turn, without the folders that others can write."""
    return ":".join(folder for folder in FOLDERS if not why_not_ours(folder))


def make_folders(folder: str, mode: int = 0o755) -> None:
    """Make a folder and those above it that are missing, with this mode whatever the umask is."""
    above = os.path.dirname(folder)
    if not os.path.isdir(folder):
        if above != folder:
            make_folders(above, mode)
        try:
            os.mkdir(folder, mode)
        except FileExistsError:
            if os.path.isdir(folder):
                return
            raise
        os.chmod(folder, mode)


def _walk(root: str, path: str, follows_last: bool, is_ours_alone: bool) -> Tuple[int, int, str]:
    """What a path leads to as a descriptor that opens nothing, the folder that it lies in, and its name there."""
    folder = os.open(root or "/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    name, fd = ".", os.open(".", os.O_PATH | os.O_CLOEXEC, dir_fd=folder)
    try:
        if is_ours_alone:
            _refuse_others(os.fstat(fd), root or "/")
        todo = [part for part in path.split("/") if part not in ("", ".")]
        links = 0
        while todo:
            name = todo.pop(0)
            os.close(folder)
            folder = fd
            fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            found = os.fstat(fd)
            if stat.S_ISLNK(found.st_mode) and (todo or follows_last):
                links += 1
                if links > _MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
                target = _target(fd, found, name)
                todo = [part for part in target.split("/") if part not in ("", ".")] + todo
                # Back to where the link lies, or to the top.
                onward = os.open("/" if target.startswith("/") else ".", os.O_PATH | os.O_CLOEXEC, dir_fd=folder)
                os.close(fd)
                fd, name = onward, "."
            elif is_ours_alone:
                _refuse_others(found, name)
        return fd, folder, name
    except BaseException:
        os.close(fd)
        if fd != folder:
            os.close(folder)
        raise


def _target(fd: int, found: os.stat_result, name: str) -> str:
    if not _is_ours(found):
        raise Refused("%s is a link of user %d, which is not followed" % (name, found.st_uid))
    return os.readlink("", dir_fd=fd)


def _is_ours(found: os.stat_result) -> bool:
    """Root's, or of the account we run as."""
    return found.st_uid in (0, os.geteuid())


def _refuse_others(found: os.stat_result, name: str) -> None:
    if not _is_ours(found):
        raise Refused("%s belongs to user %d" % (name, found.st_uid))
    if found.st_mode & _WRITABLE_BY_OTHERS:
        raise Refused("%s can be written by others than its owner" % name)


def _opened(folder: int, name: str, seen: os.stat_result) -> int:
    # Non-blocking, should a pipe have taken its place since.
    fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC, dir_fd=folder)
    found = os.fstat(fd)
    if (found.st_dev, found.st_ino) != (seen.st_dev, seen.st_ino):
        os.close(fd)
        raise Refused("was exchanged while it was opened")
    return fd
