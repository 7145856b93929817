# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The only hands and eyes: reading, running and, for the engine alone, writing.

``LiveHost`` is this machine, ``CaptureHost`` replays a capture, ``RecordingHost`` is live and
writes one, ``MemoHost`` remembers what it read so that nothing is observed twice for one decision.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import stat
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Protocol, Sequence, Set, Tuple, Union

from .values import Text, Unknown

# A file of /proc, /sys or /etc is far smaller; a larger one is not read into memory.
READ_LIMIT_BYTES = 4 * 1024 * 1024
# What a capture may hold in all, packed files unpacked: hostile ones are refused.
CAPTURE_LIMIT_BYTES = 256 * 1024 * 1024
CAPTURE_LIMIT_MEMBERS = 200_000

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Result:
    """What a command gave.  ``unknown`` is the reason when it gave no answer at all."""

    rc: int
    stdout: str
    stderr: str
    unknown: str = ""

    @property
    def ok(self) -> bool:
        return self.rc == 0 and not self.unknown

    def text(self) -> Union[str, Unknown]:
        """Standard output of a command that succeeded, else Unknown with the reason."""
        if self.unknown:
            return Unknown(self.unknown)
        if self.rc != 0:
            return Unknown("exit %d: %s" % (self.rc, (self.stderr or self.stdout).strip()[:200]))
        return self.stdout


class Host(Protocol):
    """The eyes.  Absent is None (or empty, or False); unreadable is Unknown with the reason."""

    is_live: bool

    def read(self, path: str) -> Text: ...

    def exists(self, path: str) -> bool: ...

    def listdir(self, path: str) -> List[str]: ...

    def readlink(self, path: str) -> Optional[str]: ...

    def run(self, argv: Sequence[str], deadline_s: float = 10.0) -> Result: ...


class Hands(Host, Protocol):
    """Eyes and hands.  Every change raises OSError with the kernel's own word when it is refused."""

    def write(self, path: str, text: Optional[str], mode: int = 0o644) -> None: ...

    def set_value(self, path: str, text: str) -> None: ...

    def execute(self, argv: Sequence[str], stdin: str, deadline_s: float) -> Result: ...


class CaptureError(ValueError):
    """A capture that is broken or hostile."""


class LiveHost:
    """This machine.  ``root`` is there for tests on a tree of files."""

    is_live = True

    def __init__(self, root: str = "") -> None:
        self.root = root.rstrip("/")

    def read(self, path: str) -> Text:
        try:
            # Non-blocking, since a named pipe put where a file belongs would hang the open.
            fd = os.open(self.root + path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            return _absent_or_unknown(error)
        try:
            if stat.S_ISDIR(os.fstat(fd).st_mode):
                return Unknown("is a directory")
            data = _read_up_to(fd, READ_LIMIT_BYTES)
        except OSError as error:
            return Unknown(os.strerror(error.errno or 0))
        finally:
            os.close(fd)
        if data is None:
            return Unknown("larger than %d bytes" % READ_LIMIT_BYTES)
        return data.decode("utf-8", "replace")

    def exists(self, path: str) -> bool:
        return os.path.exists(self.root + path)

    def listdir(self, path: str) -> List[str]:
        try:
            return sorted(os.listdir(self.root + path))
        except OSError:
            return []

    def readlink(self, path: str) -> Optional[str]:
        try:
            return os.readlink(self.root + path)
        except OSError:
            return None

    def run(self, argv: Sequence[str], deadline_s: float = 10.0) -> Result:
        return _run(argv, "", deadline_s)

    def write(self, path: str, text: Optional[str], mode: int = 0o644) -> None:
        """Replace a file in one instant (or remove it): no reader ever sees half of it.

        A kept file keeps its owner, mode and security label; folders are made as needed.
        """
        full = self.root + path
        if text is None:
            if os.path.lexists(full):
                os.unlink(full)
                _sync_folder(os.path.dirname(full))
            return
        # A file reached through a link is replaced where it lies, the link stays.
        full = os.path.realpath(full) if os.path.islink(full) else full
        folder = os.path.dirname(full)
        os.makedirs(folder, exist_ok=True)
        _remove_leftovers(full)
        fd, beside = tempfile.mkstemp(prefix="." + os.path.basename(full) + ".", suffix=".new", dir=folder)
        try:
            with os.fdopen(fd, "w", encoding="utf-8", newline="") as new:
                new.write(text)
                new.flush()
                _take_over_attributes(full, new.fileno(), mode)
                os.fsync(new.fileno())
            os.rename(beside, full)
        except BaseException:
            os.unlink(beside)
            raise
        _sync_folder(folder)

    def set_value(self, path: str, text: str) -> None:
        """Write a value to the kernel in one write call, as sysfs and procfs want it."""
        fd = os.open(self.root + path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(fd, text.encode("utf-8"))
        finally:
            os.close(fd)

    def execute(self, argv: Sequence[str], stdin: str, deadline_s: float) -> Result:
        return _run(argv, stdin, deadline_s)


class MemoHost:
    """Any host, each thing read once.  Made anew for each observation."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.is_live = host.is_live
        self._memo: Dict[Tuple[str, Any], Any] = {}

    def read(self, path: str) -> Text:
        return self._once("read", path, lambda: self._host.read(path))

    def exists(self, path: str) -> bool:
        return self._once("exists", path, lambda: self._host.exists(path))

    def listdir(self, path: str) -> List[str]:
        return self._once("listdir", path, lambda: self._host.listdir(path))

    def readlink(self, path: str) -> Optional[str]:
        return self._once("readlink", path, lambda: self._host.readlink(path))

    def run(self, argv: Sequence[str], deadline_s: float = 10.0) -> Result:
        return self._once("run", tuple(argv), lambda: self._host.run(argv, deadline_s))

    def _once(self, verb: str, key: Any, ask: Any) -> Any:
        if (verb, key) not in self._memo:
            self._memo[(verb, key)] = ask()
        return self._memo[(verb, key)]


class CaptureHost:
    """A capture, replayed.  What is not in it does not exist; a command not in it is unknown."""

    is_live = False

    def __init__(self, folder: str) -> None:
        self.folder = os.path.realpath(folder)
        self.about = _read_about(self.folder)
        self._commands = _read_commands(os.path.join(self.folder, "commands"))
        self._files = LiveHost(os.path.join(self.folder, "files"))

    def read(self, path: str) -> Text:
        full = self._resolve(path)
        if full is None:
            return None
        if os.path.exists(full) and not stat.S_ISREG(os.stat(full).st_mode):
            return Unknown("is not a regular file in the capture")
        return LiveHost().read(full)

    def exists(self, path: str) -> bool:
        full = self._resolve(path)
        return full is not None and os.path.exists(full)

    def listdir(self, path: str) -> List[str]:
        full = self._resolve(path)
        return LiveHost().listdir(full) if full is not None else []

    def readlink(self, path: str) -> Optional[str]:
        parent = self._resolve(os.path.dirname(path))
        return LiveHost().readlink(os.path.join(parent, os.path.basename(path))) if parent else None

    def run(self, argv: Sequence[str], deadline_s: float = 10.0) -> Result:
        return self._commands.get(tuple(argv), Result(-1, "", "", "%s was not recorded" % " ".join(argv)))

    def _resolve(self, path: str) -> Optional[str]:
        """The place of a path inside the capture, its links followed as the captured host would.

        None when it does not exist; a link never leads out of the capture.
        """
        top = os.path.join(self.folder, "files")
        done: List[str] = []
        todo = [part for part in path.split("/") if part not in ("", ".")]
        for _hop in range(400):
            if not todo:
                return os.path.join(top, *done)
            part = todo.pop(0)
            if part == "..":
                done = done[:-1]
                continue
            here = os.path.join(top, *done, part)
            if os.path.islink(here):
                target = os.readlink(here)
                if target.startswith("/"):
                    done = []
                todo = [piece for piece in target.split("/") if piece not in ("", ".")] + todo
                continue
            if not os.path.lexists(here):
                return None
            done.append(part)
        return None


class RecordingHost:
    """A live host that writes down everything it is asked, as a capture."""

    is_live = True

    def __init__(self, folder: str, hostname: str, taken: str, host: Optional[LiveHost] = None) -> None:
        self.folder = folder
        self._host = host or LiveHost()
        self._commands: Dict[Tuple[str, ...], int] = {}
        self._copied: Set[str] = set()
        os.makedirs(os.path.join(folder, "files"), exist_ok=True)
        os.makedirs(os.path.join(folder, "commands"), exist_ok=True)
        with open(os.path.join(folder, "capture.json"), "w", encoding="utf-8") as about:
            json.dump({"format": 1, "hostname": hostname, "taken": taken}, about)

    def read(self, path: str) -> Text:
        text = self._host.read(path)
        if isinstance(text, str):
            place = self._place(path)
            if place not in self._copied and not os.path.islink(place):
                self._copied.add(place)
                with open(place, "w", encoding="utf-8", newline="") as copy:
                    copy.write(text)
        return text

    def exists(self, path: str) -> bool:
        found = self._host.exists(path)
        if found and os.path.isdir(self._host.root + path):
            os.makedirs(self._place(os.path.join(path, ".")), exist_ok=True)
        elif found:
            self.read(path)
        return found

    def listdir(self, path: str) -> List[str]:
        names = self._host.listdir(path)
        for name in names:
            child = os.path.join(path, name)
            if self.readlink(child) is not None:
                continue
            place = self._place(child)
            if os.path.isdir(self._host.root + child):
                os.makedirs(place, exist_ok=True)
            elif not os.path.lexists(place):
                # The name was seen; the content comes when it is asked for.
                open(place, "w", encoding="utf-8").close()
        return names

    def readlink(self, path: str) -> Optional[str]:
        target = self._host.readlink(path)
        if target is not None:
            place = self._place(path)
            if not os.path.lexists(place):
                os.symlink(target, place)
        return target

    def run(self, argv: Sequence[str], deadline_s: float = 10.0) -> Result:
        result = self._host.run(argv, deadline_s)
        if not result.unknown:
            number = self._commands.setdefault(tuple(argv), len(self._commands))
            with open(os.path.join(self.folder, "commands", "%04d.json" % number), "w", encoding="utf-8") as out:
                json.dump(
                    {"argv": list(argv), "rc": result.rc, "stdout": result.stdout, "stderr": result.stderr}, out
                )
        return result

    def _place(self, path: str) -> str:
        """Where a path lies in the capture.  Links on the way are recorded as links."""
        top = os.path.join(self.folder, "files")
        done = ""
        todo = [part for part in path.split("/") if part not in ("", ".")]
        hops = 0
        while len(todo) > 1 and hops < 400:
            hops += 1
            part = todo.pop(0)
            if part == "..":
                done = os.path.dirname(done)
                continue
            here = done + "/" + part
            target = self._host.readlink(here)
            if target is None:
                done = here
                continue
            if not os.path.lexists(top + here):
                os.makedirs(os.path.dirname(top + here), exist_ok=True)
                os.symlink(target, top + here)
            done = "" if target.startswith("/") else done
            todo = [piece for piece in target.split("/") if piece not in ("", ".")] + todo
        folder = top + done
        os.makedirs(folder, exist_ok=True)
        return os.path.join(folder, *todo)


def open_capture(path: str, scratch: str) -> CaptureHost:
    """A capture from a folder or a ``.tar.gz``; the latter is unpacked below ``scratch``.

    :raises CaptureError: when it is broken, too large, or would reach outside of its folder.
    """
    if os.path.isdir(path):
        return CaptureHost(path)
    if not os.path.isfile(path):
        raise CaptureError("%s is neither a folder nor a file" % path)
    total = 0
    try:
        with tarfile.open(path, "r:gz") as tar:
            for count, member in enumerate(tar):
                if count >= CAPTURE_LIMIT_MEMBERS:
                    raise CaptureError("%s holds more than %d members" % (path, CAPTURE_LIMIT_MEMBERS))
                total += max(member.size, 0)
                if total > CAPTURE_LIMIT_BYTES:
                    raise CaptureError("%s unpacks to more than %d bytes" % (path, CAPTURE_LIMIT_BYTES))
                _unpack_member(tar, member, scratch)
    except (tarfile.TarError, EOFError, OSError, ValueError) as error:
        if isinstance(error, CaptureError):
            raise
        raise CaptureError("%s cannot be unpacked: %s" % (path, error)) from error
    return CaptureHost(_capture_top(scratch))


def _unpack_member(tar: tarfile.TarFile, member: tarfile.TarInfo, scratch: str) -> None:
    """Unpack one member by hand: only files, folders and links, only below ``scratch``."""
    parts = [part for part in member.name.split("/") if part not in ("", ".")]
    if member.name.startswith("/") or ".." in parts:
        raise CaptureError("member %r leads out of the capture" % member.name)
    if not parts:
        return
    place = scratch
    for part in parts[:-1]:
        place = os.path.join(place, part)
        if os.path.islink(place):
            raise CaptureError("member %r is behind a symbolic link" % member.name)
    place = os.path.join(place, parts[-1])
    if member.isdir():
        os.makedirs(place, exist_ok=True)
        return
    os.makedirs(os.path.dirname(place), exist_ok=True)
    if os.path.lexists(place):
        raise CaptureError("member %r comes twice" % member.name)
    if member.issym():
        # Never followed by the system: CaptureHost resolves links inside the capture itself.
        os.symlink(member.linkname, place)
    elif member.isreg():
        source = tar.extractfile(member)
        with open(place, "wb") as copy:
            while source is not None:
                block = source.read(1 << 16)
                if not block:
                    break
                copy.write(block)
    else:
        raise CaptureError("member %r is neither a file, a folder nor a symbolic link" % member.name)


def _capture_top(scratch: str) -> str:
    """The folder with capture.json: the unpacked one or its single child."""
    if os.path.isfile(os.path.join(scratch, "capture.json")):
        return scratch
    children = [os.path.join(scratch, name) for name in sorted(os.listdir(scratch))]
    inside = [child for child in children if os.path.isfile(os.path.join(child, "capture.json"))]
    return inside[0] if len(inside) == 1 else scratch


def _read_about(folder: str) -> Dict[str, Any]:
    path = os.path.join(folder, "capture.json")
    text = LiveHost().read(path) if not os.path.islink(path) else Unknown("is a symbolic link")
    if not isinstance(text, str):
        raise CaptureError("%s: capture.json is %s" % (folder, text or "missing"))
    try:
        about = json.loads(text)
    except ValueError as error:
        raise CaptureError("%s: capture.json: %s" % (folder, error)) from error
    if not isinstance(about, dict) or about.get("format") != 1:
        raise CaptureError("%s: capture.json: only format 1 is known" % folder)
    return about


def _read_commands(folder: str) -> Dict[Tuple[str, ...], Result]:
    commands: Dict[Tuple[str, ...], Result] = {}
    for name in LiveHost().listdir(folder):
        path = os.path.join(folder, name)
        if not name.endswith(".json") or os.path.islink(path):
            continue
        text = LiveHost().read(path)
        try:
            data = json.loads(text if isinstance(text, str) else "")
            key = tuple(str(word) for word in data["argv"])
            commands[key] = Result(int(data["rc"]), str(data["stdout"]), str(data.get("stderr", "")))
        except (ValueError, KeyError, TypeError) as error:
            raise CaptureError("%s: not a recorded command: %s" % (path, error)) from error
    return commands


def _run(argv: Sequence[str], stdin: str, deadline_s: float) -> Result:
    """Run a command in its own process group; at the deadline the group is killed and not waited for.

    A process in uninterruptible sleep does not die from a signal, so waiting for it would hang us.
    """
    environment = {"PATH": _PATH, "LC_ALL": "C", "LANGUAGE": "C", "HOME": "/root", "TERM": "dumb"}
    try:
        process = subprocess.Popen(
            list(argv),
            stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            start_new_session=True,
            close_fds=True,
        )
    except FileNotFoundError:
        return Result(-1, "", "", "%s is not installed" % argv[0])
    except OSError as error:
        return Result(-1, "", "", "%s: %s" % (argv[0], os.strerror(error.errno or 0)))
    try:
        out, err = process.communicate(stdin.encode("utf-8") if stdin else None, timeout=deadline_s)
    except subprocess.TimeoutExpired:
        _kill_group(process.pid)
        return Result(-1, "", "", "%s hung: no answer in %g s" % (argv[0], deadline_s))
    return Result(process.returncode, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except OSError:
        pass


def _absent_or_unknown(error: OSError) -> Text:
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return None
    return Unknown(os.strerror(error.errno or 0))


def _read_up_to(fd: int, limit: int) -> Optional[bytes]:
    blocks: List[bytes] = []
    size = 0
    while True:
        block = os.read(fd, 1 << 16)
        if not block:
            return b"".join(blocks)
        size += len(block)
        if size > limit:
            return None
        blocks.append(block)


def _take_over_attributes(old: str, fd: int, mode: int) -> None:
    """Give the new file the owner, mode and security label of the one it replaces."""
    try:
        was = os.stat(old)
    except OSError:
        os.fchmod(fd, mode)
        return
    os.fchmod(fd, stat.S_IMODE(was.st_mode))
    os.fchown(fd, was.st_uid, was.st_gid)
    try:
        os.setxattr(fd, "security.selinux", os.getxattr(old, "security.selinux"))
    except OSError:
        pass


def _remove_leftovers(full: str) -> None:
    """Remove what a killed run left beside a file.  The lock is held, so nobody else is writing it."""
    folder, name = os.path.split(full)
    for other in os.listdir(folder):
        if other.startswith("." + name + ".") and other.endswith(".new"):
            os.unlink(os.path.join(folder, other))


def _sync_folder(folder: str) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)

