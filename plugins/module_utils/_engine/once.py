# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A module travels as a zip of sources: compile each of them once for this host, as Python does for installed ones.

``zipimport`` keeps no bytecode, and compiles twice: to answer ``get_filename`` while a module is found, and for
``get_code`` when it is loaded.  For all areas that is nearly half of the CPU time of an audit.

The code is kept below /var/cache by the hash of its source, with a checksum over all of it.  It is taken only from a
whole file that nobody but the account we run as can write, in a folder of which the same is true.  Where that cannot be,
or with PYTHONDONTWRITEBYTECODE, all goes on without.
"""

from __future__ import annotations

import atexit
import hashlib
import marshal
import os
import stat
import sys
import zipimport
from types import CodeType
from typing import Any, Callable, Dict

FOLDER = "/var/cache/gpufleet"
# All areas have some hundred files; more than this are those of older versions.
LIMIT_FILES = 500
# All of them together take under 2 MB.
LIMIT_BYTES = 32 * 1024 * 1024

_READ_ONLY = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC

Compiler = Callable[[str, bytes], Any]


class Kept:
    """A compiler that remembers."""

    def __init__(self, compiler: Compiler, folder: str) -> None:
        self.compiler = compiler
        self.path = "%s/%s-%x-%d.code" % (folder, sys.implementation.cache_tag, sys.hexversion, sys.flags.optimize)
        self.known = _load(self.path)
        self.used: Dict[bytes, CodeType] = {}
        self.is_new = False

    def __call__(self, pathname: str, source: bytes) -> Any:
        key = hashlib.sha256(source).digest()
        code = self.used.get(key) or self.known.get(key)
        if not isinstance(code, CodeType):
            code = self.compiler(pathname, source)
            self.is_new = True
        self.used[key] = code
        return code

    def save(self) -> None:
        if not self.is_new or sys.dont_write_bytecode:
            return
        everything = {**self.known, **self.used}
        _save(self.path, everything if len(everything) <= LIMIT_FILES else self.used)


def compile_once(folder: str = FOLDER) -> None:
    """Call it before the imports that it is for; a Python whose zipimport is another is left alone."""
    compiler = getattr(zipimport, "_compile_source", None)
    if callable(compiler) and not isinstance(compiler, Kept):
        kept = Kept(compiler, folder)
        setattr(zipimport, "_compile_source", kept)  # noqa: B010
        atexit.register(kept.save)


def _load(path: str) -> Dict[bytes, CodeType]:
    """What is kept, or nothing where the file is damaged, or could have been written by others."""
    try:
        folder = _open_folder(path)
        try:
            fd = os.open(os.path.basename(path), _READ_ONLY | os.O_NONBLOCK, dir_fd=folder)
        finally:
            os.close(folder)
        with os.fdopen(fd, "rb") as file:
            found = os.fstat(fd)
            is_good = _is_ours_alone(found) and stat.S_ISREG(found.st_mode) and found.st_size <= LIMIT_BYTES
            data = file.read() if is_good else b""
        sum_, body = data[: len(_digest(b""))], data[len(_digest(b"")) :]
        # Not a byte that has changed is read as code: this runs as root.
        known = marshal.loads(body) if sum_ == _digest(body) else {}
    except Exception:  # whatever is wrong with it: it is only a cache
        return {}
    return known if isinstance(known, dict) else {}


def _save(path: str, codes: Dict[bytes, CodeType]) -> None:
    """Keep them for the next run: in one instant, and synced, so that no half of a file is ever found."""
    name = os.path.basename(path)
    part = "%s.%d" % (name, os.getpid())
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        folder = _open_folder(path)
    except OSError:
        return
    try:
        fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder)
        try:
            with os.fdopen(fd, "wb") as file:
                body = marshal.dumps(codes)
                file.write(_digest(body) + body)
                file.flush()
                os.fsync(fd)
            os.rename(part, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            os.unlink(part, dir_fd=folder)
            raise
    except (OSError, ValueError):
        return
    finally:
        os.close(folder)


def _open_folder(path: str) -> int:
    """The folder of a file, opened where it is ours alone."""
    fd = os.open(os.path.dirname(path), _READ_ONLY | os.O_DIRECTORY)
    if not _is_ours_alone(os.fstat(fd)):
        os.close(fd)
        raise OSError("%s can be written by others" % os.path.dirname(path))
    return fd


def _digest(body: bytes) -> bytes:
    return hashlib.sha256(b"gpufleet.code 1\n" + body).digest()


def _is_ours_alone(found: os.stat_result) -> bool:
    return found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
