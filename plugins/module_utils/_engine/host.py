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
import re
import selectors
import signal
import stat
import subprocess
import tempfile
import time
from dataclasses import dataclass, replace
from functools import partial
from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    List,
    Mapping,
    Optional,
    Protocol,
    Sequence,
    Set,
    Tuple,
    TypeVar,
    Union,
)

from . import archive, lone_text, paths, samples
from .apart import apart
from .archive import CaptureError
from .values import ANSWERS, NOT_RECORDED, SAMPLES, Text, Unknown

# A file of /proc, /sys or /etc is far smaller; a larger one is not read into memory.
READ_LIMIT_BYTES = 4 * 1024 * 1024
# What the kernel shows of one thing is a page; a configuration space, vital product data or a variable of the firmware
# is a few.
SYS_LIMIT_BYTES = 128 * 1024
# nvidia-smi -q -x of 16 GPUs is 1 MB; a command that prints more than this runs wild.
OUTPUT_LIMIT_BYTES = 16 * 1024 * 1024
# Beside files/ and commands/ of a capture: a line for each path that could not be read, with the reason.
UNREAD = "unread.jsonl"
# A recorded command: what it may print, with room for JSON's backslashes.
COMMAND_LIMIT_BYTES = 24 * 1024 * 1024
# A file that was only looked for is recorded with what it holds up to this size.
_SMALL_BYTES = 1 << 16
# How long to wait for the rest of the output when a command ended and left something behind that holds its pipes.
_LINGER_S = 0.2

# How the files of captures end: what is before it names the host.
CAPTURE_ENDING = re.compile(r"(?:\.tar\.gz|\.tgz|\.xml|\.txt|\.json|\.csv|\.log)$", re.IGNORECASE)
# What the kernel says of a path where nothing is.  Any other error is none about what is there.
ABSENT = (errno.ENOENT, errno.ENOTDIR)
# Processes come and go, and what they have open is theirs: an error there is no news about the machine.
_OF_A_PROCESS = re.compile("/proc/[0-9]+/")

# A text in JSON without its escapes, or the rest where it has no end.
_JSON_TEXT = re.compile(r'"[^"]*(?:"|\Z)')

# What the kernel shows: no user puts a link or a file there.
_KERNEL = ("/proc/", "/sys/")

_Answer = TypeVar("_Answer")


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
    """The eyes.  Absent is None (or empty, or False); unreadable is Unknown with the reason.

    A list and the target of a link have no place for a reason: it stands in ``unseen``, by path, and the answer is the
    one of what is absent.  MemoHost collects these for the engine, which lets nothing be changed on such an answer.

    ``is_live``: what is not here is not there.  It is true of a machine, and of a capture that holds everything that
    the areas at hand ask a machine; any other capture may hold the same in another form, or not at all.
    """

    is_live: bool

    @property
    def unseen(self) -> Mapping[str, str]: ...

    def read(self, path: str) -> Text: ...

    def read_own(self, path: str) -> Text:
        """A file that nobody but root can change: what root is to believe, such as options that name further files."""

    def exists(self, path: str) -> Union[bool, Unknown]: ...

    def listdir(self, path: str) -> List[str]: ...

    def readlink(self, path: str) -> Optional[str]: ...

    def run(self, argv: Sequence[str], deadline_s: float = 10.0) -> Result: ...


class Hands(Host, Protocol):
    """Eyes and hands.  Every change raises OSError with the kernel's own word when it is refused."""

    def write(self, path: str, text: Optional[str], mode: int = 0o644) -> None: ...

    def set_value(self, path: str, text: str) -> None: ...

    def remove_folder(self, path: str) -> None: ...

    def execute(self, argv: Sequence[str], stdin: str, deadline_s: float) -> Result: ...


class LiveHost:
    """This machine.  ``root`` is there for tests on a tree of files."""

    is_live = True

    def __init__(self, root: str = "") -> None:
        self.root = root.rstrip("/")
        self.unseen: Dict[str, str] = {}

    def is_open_to_us(self) -> bool:
        """Whether all of it may be read and set: that takes root, but for a tree of files."""
        return bool(self.root) or os.geteuid() == 0

    def read(self, path: str) -> Text:
        if path.startswith(_KERNEL):
            return _read_file(self.root + path, _limit_of(path))
        return self._opened(path, False)

    def read_own(self, path: str) -> Text:
        return self._opened(path, True)

    def exists(self, path: str) -> Union[bool, Unknown]:
        return self._seen(path, lambda: bool(os.stat(self.root + path)), False) or self._unseen(path)

    def listdir(self, path: str) -> List[str]:
        return self._seen(path, lambda: self._names(path), [])

    def readlink(self, path: str) -> Optional[str]:
        """Where a link leads; None for what is none, and for one that another user than root made."""
        return self._seen(path, lambda: self._target(path), None, errno.EINVAL)  # EINVAL: there, and no link

    def _names(self, path: str) -> List[str]:
        return sorted(os.listdir(self.root + path)) if path.startswith(_KERNEL) else paths.listing(self.root, path)

    def _target(self, path: str) -> Optional[str]:
        return os.readlink(self.root + path) if path.startswith(_KERNEL) else paths.target_of(self.root, path)

    def _seen(self, path: str, ask: Callable[[], _Answer], absent: _Answer, *not_so: int) -> _Answer:
        self.unseen.pop(path, None)
        try:
            return ask()
        except OSError as error:
            if error.errno not in (*ABSENT, *not_so) and not _OF_A_PROCESS.match(path):
                self.unseen[path] = os.strerror(error.errno or 0)
        except (ValueError, paths.Refused):
            pass  # a NUL in the path: no such thing can be; what users link to is not looked at
        return absent

    def _unseen(self, path: str) -> Union[bool, Unknown]:
        return Unknown(self.unseen[path]) if path in self.unseen else False

    def run(self, argv: Sequence[str], deadline_s: float = 10.0) -> Result:
        return _run(argv, "", deadline_s)

    def write(self, path: str, text: Optional[str], mode: int = 0o644) -> None:
        """Replace a file in one instant (or remove it): no reader ever sees half of it.

        A kept file keeps its owner, mode and extended attributes; folders are made as needed.
        """
        full = self.root + path
        # A file reached through a link is replaced where it lies, the link stays.
        full = os.path.realpath(full) if os.path.islink(full) else full
        if os.path.lexists(full) and not stat.S_ISREG(os.lstat(full).st_mode):
            # Such as a file that is masked by a link to /dev/null, which must not be replaced.
            raise OSError(errno.EINVAL, "not a regular file", full)
        if text is None:
            if os.path.lexists(full):
                os.unlink(full)
                _sync_folder(os.path.dirname(full))
            return
        folder = os.path.dirname(full)
        paths.make_folders(folder)
        _remove_leftovers(full)
        fd, beside = tempfile.mkstemp(prefix="." + os.path.basename(full) + ".", suffix=".new", dir=folder)
        try:
            with os.fdopen(fd, "w", encoding="utf-8", errors="surrogateescape", newline="") as new:
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

    def remove_folder(self, path: str) -> None:
        """Remove an empty folder; one with anything in it is refused."""
        os.rmdir(self.root + path)

    def execute(self, argv: Sequence[str], stdin: str, deadline_s: float) -> Result:
        return _run(argv, stdin, deadline_s)

    def _opened(self, path: str, is_ours_alone: bool) -> Text:
        try:
            return _text_of(paths.open_file(self.root, path, is_ours_alone), _limit_of(path))
        except paths.Refused as error:
            return Unknown(str(error))
        except OSError as error:
            return _absent_or_unknown(error)
        except ValueError:
            return None  # a NUL in the path: no such file can be


class MemoHost:
    """Any host, each thing read once.  Made anew for each observation."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.is_live = host.is_live
        self._memo: Dict[Tuple[str, Any], Any] = {}
        self._behind: Dict[Tuple[str, Any], Dict[str, str]] = {}
        # What could not be seen since somebody emptied it, though it may have been asked for before that.
        self.unseen: Dict[str, str] = {}

    def read(self, path: str) -> Text:
        return self._once("read", path, lambda: self._host.read(path))

    def read_own(self, path: str) -> Text:
        return self._once("read_own", path, lambda: self._host.read_own(path))

    def exists(self, path: str) -> Union[bool, Unknown]:
        return self._once("exists", path, lambda: self._path(path, self._host.exists))

    def listdir(self, path: str) -> List[str]:
        return self._once("listdir", path, lambda: self._path(path, self._host.listdir))

    def readlink(self, path: str) -> Optional[str]:
        return self._once("readlink", path, lambda: self._path(path, self._host.readlink))

    def run(self, argv: Sequence[str], deadline_s: float = 10.0) -> Result:
        return self._once("run", tuple(argv), lambda: self._host.run(argv, deadline_s))

    def _once(self, verb: str, key: Any, ask: Callable[[], _Answer]) -> _Answer:
        if (verb, key) not in self._memo:
            others, self.unseen = self.unseen, {}
            try:
                self._memo[(verb, key)] = ask()
            finally:
                mine, self.unseen = self.unseen, others
            if mine:
                self._behind[(verb, key)] = mine
        self.unseen.update(self._behind.get((verb, key), {}))
        answer: _Answer = self._memo[(verb, key)]
        return answer

    def _path(self, path: str, ask: Callable[[str], _Answer]) -> _Answer:
        answer = ask(path)
        if not answer and path in self._host.unseen:
            self.unseen[path] = self._host.unseen[path]
        return answer


def remembered(host: Host, name: str, key: Any, make: Callable[[], _Answer]) -> _Answer:
    """What was made of a host once, where it remembers: an observation that two readers share."""
    return host._once(name, repr(key), make) if isinstance(host, MemoHost) else make()


def fresh(host: Host) -> Host:
    """The host itself, where one remembers what it read: for counters, which are read twice."""
    return host._host if isinstance(host, MemoHost) else host


def recorded_with(host: Host, head: Sequence[str]) -> List[Tuple[str, ...]]:
    """The commands of a capture that begin with some words, for those whose arguments nobody can foresee."""
    capture = fresh(host)
    commands = capture._commands if isinstance(capture, CaptureHost) else {}
    return sorted(argv for argv in commands if argv[: len(head)] == tuple(head))


class CaptureHost:
    """A capture, replayed.  What is not in it does not exist; a command not in it is unknown."""

    def __init__(self, folder: str) -> None:
        self.is_live = False
        # The command of which it is the output, where it is nothing else.
        self.lone = ""
        self.folder = os.path.realpath(folder)
        for name in ("files", "commands"):
            if os.path.islink(os.path.join(self.folder, name)):
                raise CaptureError("%s: %s is a symbolic link" % (self.folder, name))
        self.about, self._areas = _read_about(self.folder)
        self._unread, self.unseen = _read_unread(os.path.join(self.folder, UNREAD))
        self._commands = _read_commands(os.path.join(self.folder, "commands"))

    def answers_for(self, areas: Iterable[str]) -> None:
        """From now on it is asked for these areas only; recorded for all of them, it answers as its machine did."""
        self.is_live = set(areas) <= self._areas

    def read(self, path: str) -> Text:
        full = self._resolve(path)
        if full is None:
            return None
        if os.path.exists(full) and not stat.S_ISREG(os.stat(full).st_mode):
            reason = self._unread.get(full[len(self.folder) + len("/files") :])
            return Unknown(reason or "was not read when the capture was taken, or is no file")
        return _read_file(full, _limit_of(path))

    def read_own(self, path: str) -> Text:
        """Whose it was is told by whether it was read when the capture was taken."""
        return self.read(path)

    def exists(self, path: str) -> Union[bool, Unknown]:
        full = self._resolve(path)
        is_there = full is not None and os.path.exists(full)
        return Unknown(self.unseen[path]) if not is_there and path in self.unseen else is_there

    def listdir(self, path: str) -> List[str]:
        full = self._resolve(path)
        return _names(full) if full is not None else []

    def readlink(self, path: str) -> Optional[str]:
        parent = self._resolve(os.path.dirname(path))
        return _target(os.path.join(parent, os.path.basename(path))) if parent else None

    def run(self, argv: Sequence[str], deadline_s: float = 10.0) -> Result:
        return self._commands.get(tuple(argv), Result(-1, "", "", " ".join(argv) + NOT_RECORDED))

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
    """A live host that writes down everything it is asked, as a capture.

    A name that was seen but not read, or could not be read, becomes an empty folder: it exists, and
    reading it is unknown, as it was here, for the reason that stands in UNREAD.
    """

    is_live = True

    def __init__(
        self,
        folder: str,
        hostname: str,
        taken: str,
        host: Optional[LiveHost] = None,
        areas: Sequence[str] = (),
        name: str = "",
    ) -> None:
        self.folder = folder
        self._host = host or LiveHost()
        self._commands: Set[Tuple[str, ...]] = set()
        self._copied: Set[str] = set()
        self._unseen: Set[str] = set()
        os.makedirs(os.path.join(folder, "files"), exist_ok=True)
        os.makedirs(os.path.join(folder, "commands"), exist_ok=True)
        about = {"format": 1, "hostname": hostname, "taken": taken, "areas": sorted(areas)}
        with open(os.path.join(folder, "capture.json"), "w", encoding="utf-8") as file:
            json.dump(dict(about, name=name) if name else about, file)

    @property
    def unseen(self) -> Mapping[str, str]:
        return self._host.unseen

    def read(self, path: str) -> Text:
        return self._record(path, self._host.read(path))

    def read_own(self, path: str) -> Text:
        return self._record(path, self._host.read_own(path))

    def _record(self, path: str, text: Text) -> Text:
        if isinstance(text, str):
            place = self._place(path)
            if place not in self._copied:
                self._copied.add(place)
                if os.path.isdir(place):
                    os.rmdir(place)
                with open(place, "w", encoding="utf-8", errors="surrogateescape", newline="") as copy:
                    copy.write(text)
        elif text is not None and self._host.exists(path):
            self._note_name(path)
            self._note_unread(self._place(path), text.reason)
        return text

    def exists(self, path: str) -> Union[bool, Unknown]:
        found = self._host.exists(path)
        self._note_unseen(path)
        full = self._host.root + path
        if found and os.path.isfile(full) and os.path.getsize(full) <= _SMALL_BYTES:
            self.read(path)
        elif found:
            # Not opened: that would wake a device, and a program is no news.
            self._note_name(path)
        return found

    def listdir(self, path: str) -> List[str]:
        names = self._host.listdir(path)
        self._note_unseen(path)
        if names or os.path.isdir(self._host.root + path):
            self._note_name(path)
        for name in names:
            child = os.path.join(path, name)
            if self.readlink(child) is None:
                self._note_name(child)
        return names

    def readlink(self, path: str) -> Optional[str]:
        target = self._host.readlink(path)
        self._note_unseen(path)
        if target is not None:
            place = os.path.join(self._place(os.path.dirname(path)), os.path.basename(path))
            os.makedirs(os.path.dirname(place), exist_ok=True)
            if not os.path.lexists(place):
                os.symlink(target, place)
        return target

    def run(self, argv: Sequence[str], deadline_s: float = 10.0) -> Result:
        result = self._host.run(argv, deadline_s)
        # As files: what changes is recorded as it was first.
        if tuple(argv) not in self._commands:
            place = os.path.join(self.folder, "commands", "%04d.json" % len(self._commands))
            shown = samples.without_bytes(result.stdout) if argv[0] == SAMPLES else result.stdout
            write_command(place, argv, replace(result, stdout=shown))
            self._commands.add(tuple(argv))
        return result

    def _note_unread(self, place: str, reason: str) -> None:
        if place not in self._copied:
            self._copied.add(place)
            self._note({"path": place[len(self.folder) + len("/files") :], "reason": reason})

    def _note_unseen(self, path: str) -> None:
        if path in self._host.unseen and path not in self._unseen:
            self._unseen.add(path)
            self._note({"path": path, "reason": self._host.unseen[path], "unseen": True})

    def _note(self, row: Mapping[str, Any]) -> None:
        with open(os.path.join(self.folder, UNREAD), "a", encoding="utf-8") as out:
            out.write(json.dumps(row) + "\n")

    def _note_name(self, path: str) -> None:
        place = self._place(path)
        if not os.path.lexists(place):
            os.makedirs(place)

    def _place(self, path: str) -> str:
        """Where a path that exists lies in the capture.  Links on the way are recorded as links."""
        top = os.path.join(self.folder, "files")
        done = ""
        todo = [part for part in path.split("/") if part not in ("", ".")]
        while todo:
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
        os.makedirs(os.path.dirname(top + done), exist_ok=True)
        return top + done


def name_of_capture(about: Mapping[str, Any], path: str) -> str:
    """What people know the host of a capture by: its name in the inventory, its own, else the name of the file.

    A made-up name of a scrubbed capture is known to nobody.
    """
    own = about.get("name") or ("" if "scrubbed" in about else about.get("hostname"))
    return str(own or CAPTURE_ENDING.sub("", os.path.basename(path.rstrip("/"))) or "unknown")


def open_capture(path: str, scratch: str) -> CaptureHost:
    """A capture from a folder or a ``.tar.gz``; the latter is unpacked below ``scratch``.

    The saved output of one command, such as ``nvidia-smi -q -x``, is one as well.

    :raises CaptureError: when it is broken, too large, or would reach outside of its folder.
    """
    if os.path.isdir(path):
        return CaptureHost(path)
    if not os.path.isfile(path):
        raise CaptureError("%s is neither a folder nor a file" % path)
    if lone_text.is_lone_text(path):
        if not lone_text.wrap(path, scratch):
            raise CaptureError(
                "%s is no archive, and not the output of one of: %s" % (path, lone_text.known_commands())
            )
        capture = CaptureHost(scratch)
        capture.lone = " ".join(next(iter(capture._commands)))
        return capture
    archive.unpack(path, scratch)
    return CaptureHost(_capture_top(scratch))


def _capture_top(scratch: str) -> str:
    """The folder with capture.json: the unpacked one or its single child."""
    if os.path.isfile(os.path.join(scratch, "capture.json")):
        return scratch
    children = [os.path.join(scratch, name) for name in sorted(os.listdir(scratch))]
    inside = [
        child for child in children if not os.path.islink(child) and os.path.isfile(os.path.join(child, "capture.json"))
    ]
    return inside[0] if len(inside) == 1 else scratch


def write_command(path: str, argv: Sequence[str], result: Result) -> None:
    """Record a command and what it gave; ``unknown`` is there when it gave no answer (missing, hung)."""
    data: Dict[str, Any] = {"argv": list(argv), "rc": result.rc, "stdout": result.stdout, "stderr": result.stderr}
    if result.unknown:
        data["unknown"] = result.unknown
    text = json.dumps(data, ensure_ascii=False)
    if len(text.encode("utf-8", "replace")) > COMMAND_LIMIT_BYTES:
        reason = "%s printed more than a capture holds" % argv[0]
        text = json.dumps({"argv": list(argv), "rc": -1, "stdout": "", "stderr": "", "unknown": reason})
    with open(path, "w", encoding="utf-8", errors="replace") as out:
        out.write(text)


def _read_about(folder: str) -> Tuple[Dict[str, Any], Set[str]]:
    """What a capture says of itself, and the areas that it was taken for."""
    path = os.path.join(folder, "capture.json")
    text = _read_file(path, READ_LIMIT_BYTES) if not os.path.islink(path) else Unknown("is a symbolic link")
    if not isinstance(text, str):
        raise CaptureError("%s: capture.json %s" % (folder, "is missing" if text is None else text.reason))
    try:
        about = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CaptureError("%s: capture.json: %s" % (folder, error)) from error
    if not isinstance(about, dict) or about.get("format") != 1:
        raise CaptureError("%s: capture.json: only format 1 is known" % folder)
    areas = about.get("areas")
    return (
        {key: _clean(value) for key, value in about.items()},
        {_clean(name) for name in areas} if isinstance(areas, list) else set(),
    )


def _read_unread(path: str) -> Tuple[Dict[str, str], Dict[str, str]]:
    """Why files could not be read, and why it could not be told whether paths are there, by path.

    Lines that do not tell that are passed over.
    """
    text = _read_file(path, READ_LIMIT_BYTES) if not os.path.islink(path) else None
    unread: Dict[str, str] = {}
    unseen: Dict[str, str] = {}
    for line in text.splitlines() if isinstance(text, str) else []:
        try:
            data = json.loads(line)
            (unseen if data.get("unseen") else unread)[str(data["path"])] = _clean(data["reason"])
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue
    return unread, unseen


def _read_commands(folder: str) -> Dict[Tuple[str, ...], Result]:
    commands: Dict[Tuple[str, ...], Result] = {}
    for name in _names(folder):
        path = os.path.join(folder, name)
        if not name.endswith(".json") or os.path.islink(path):
            continue
        try:
            data = json.loads(_command_text(path))
            key = tuple(_clean(word) for word in data["argv"])
            said = [_clean(data.get(name, "")) for name in ("stderr", "unknown")]
            commands[key] = Result(int(data["rc"]), _clean(data["stdout"]), *said)
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            raise CaptureError("%s: not a recorded command: %s" % (path, error)) from error
    return commands


def _command_text(path: str) -> str:
    """The JSON of one recorded command: one object of texts.  A long one with much else in it wants our memory."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            data = _read_up_to(fd, COMMAND_LIMIT_BYTES) if stat.S_ISREG(os.fstat(fd).st_mode) else b""
        finally:
            os.close(fd)
    except OSError:
        return ""
    text = (data or b"").decode("utf-8", "replace")
    if len(text) > READ_LIMIT_BYTES:
        outside = _JSON_TEXT.sub("", text.replace("\\\\", "").replace('\\"', ""))
        return text if len(outside) < READ_LIMIT_BYTES else ""
    return text


def _clean(word: Any) -> str:
    """A text without the lone surrogates that JSON can hold and UTF-8 cannot."""
    return str(word).encode("utf-8", "replace").decode("utf-8")


def _run(argv: Sequence[str], stdin: str, deadline_s: float) -> Result:
    """Run a command in its own process group; at the deadline the group is killed and not waited for.

    A process in uninterruptible sleep does not die from a signal, so waiting for it would hang us.
    """
    own = {SAMPLES: samples.run, ANSWERS: _answers}.get(argv[0])
    if own:
        found = apart(partial(own, argv[1]), deadline_s)
        return Result(-1, "", "", "%s %s" % (argv[0], found.reason)) if isinstance(found, Unknown) else Result(*found)
    program, trouble = paths.find_program(argv[0])
    if not program:
        return Result(-1, "", "", trouble)
    environment = {"PATH": paths.own_folders(), "LC_ALL": "C", "LANGUAGE": "C", "HOME": "/root", "TERM": "dumb"}
    try:
        # A file as input, since a pipe would block us when the command does not read it.
        with tempfile.TemporaryFile() if stdin else open(os.devnull, "rb") as source:
            if stdin:
                source.write(stdin.encode("utf-8", "surrogateescape"))
                source.seek(0)
            # What a command makes is as readable as its author meant, whatever umask Ansible or a login left to us.
            before = os.umask(0o022)
            try:
                process = subprocess.Popen(
                    list(argv),
                    executable=program,
                    cwd="/",
                    stdin=source,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    env=environment,
                    start_new_session=True,
                    close_fds=True,
                )
            finally:
                os.umask(before)
    except OSError as error:
        return Result(-1, "", "", "%s: %s" % (argv[0], os.strerror(error.errno or 0)))
    except ValueError as error:
        return Result(-1, "", "", "%s: %s" % (argv[0], error))
    said: Dict[int, bytearray] = {}
    trouble = _listen(process, said, deadline_s)
    if trouble:
        _end_group(process)
        return Result(-1, "", "", "%s %s" % (argv[0], trouble))
    out, err = (said[number].decode("utf-8", "replace") for number in (1, 2))
    return Result(process.returncode, out, err)


def _answers(path: str) -> Tuple[int, str, str]:
    """Whether the filesystem at a path does what it is asked: exit status, standard output and error."""
    try:
        # XFS that was shut down still tells its size, and no longer what a file is.
        os.stat(path)
        os.statvfs(path)
    except OSError as error:
        return 1, "", os.strerror(error.errno or 0)
    return 0, "", ""


def _listen(process: subprocess.Popen[bytes], said: Dict[int, bytearray], deadline_s: float) -> str:
    """Collect what a command says until it ends; gives the reason when it does not end well.

    It ends when its process does: something that it left behind may hold its pipes for ever.
    """
    deadline = time.monotonic() + deadline_s
    said.update({1: bytearray(), 2: bytearray()})
    if process.stdout is None or process.stderr is None:
        return "was started without its output"
    with process.stdout, process.stderr, selectors.DefaultSelector() as selector:
        for number, pipe in ((1, process.stdout), (2, process.stderr)):
            selector.register(pipe, selectors.EVENT_READ, number)
        while selector.get_map():
            if process.poll() is not None:
                deadline = min(deadline, time.monotonic() + _LINGER_S)
            left = deadline - time.monotonic()
            if left <= 0:
                break
            for key, _events in selector.select(min(left, _LINGER_S)):
                block = os.read(key.fd, 1 << 16)
                if not block:
                    selector.unregister(key.fileobj)
                said[key.data] += block
                if len(said[key.data]) > OUTPUT_LIMIT_BYTES:
                    return "printed more than %d bytes" % OUTPUT_LIMIT_BYTES
    try:
        process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return "hung: no answer in %g s" % deadline_s
    return ""


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a command and its children, and take its exit status unless it sleeps in the kernel."""
    _kill_group(process.pid)
    try:
        process.wait(_LINGER_S)
    except subprocess.TimeoutExpired:
        pass


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except OSError:
        pass


def _absent_or_unknown(error: OSError) -> Text:
    if error.errno in ABSENT:
        return None
    return Unknown(os.strerror(error.errno or 0))


def _limit_of(path: str) -> int:
    return SYS_LIMIT_BYTES if path.startswith("/sys/") else READ_LIMIT_BYTES


def _read_file(full: str, limit: int) -> Text:
    try:
        # Non-blocking, since a named pipe put where a file belongs would hang the open.
        fd = os.open(full, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        return _absent_or_unknown(error)
    except ValueError:
        return None  # a NUL in the path: no such file can be
    return _text_of(fd, limit)


def _text_of(fd: int, limit: int) -> Text:
    """What is read from a descriptor, which is closed."""
    try:
        kind = os.fstat(fd).st_mode
        if stat.S_ISDIR(kind) or stat.S_ISFIFO(kind):
            return Unknown("is a directory" if stat.S_ISDIR(kind) else "is a named pipe")
        data = _read_up_to(fd, limit)
    except OSError as error:
        return Unknown(os.strerror(error.errno or 0))
    finally:
        os.close(fd)
    if data is None:
        return Unknown("larger than %d bytes" % limit)
    # Bytes that are no UTF-8 (a comment in another encoding) must come back as they were when we write.
    return data.decode("utf-8", "surrogateescape")


def _names(full: str) -> List[str]:
    try:
        return sorted(os.listdir(full))
    except (OSError, ValueError):
        return []


def _target(full: str) -> Optional[str]:
    try:
        return os.readlink(full)
    except (OSError, ValueError):
        return None


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
    """Give the new file the owner, mode and extended attributes of the one it replaces."""
    try:
        was = os.stat(old)
    except OSError:
        os.fchmod(fd, mode)
        return
    os.fchmod(fd, stat.S_IMODE(was.st_mode))
    os.fchown(fd, was.st_uid, was.st_gid)
    for name in _xattrs(old):
        try:
            os.setxattr(fd, name, os.getxattr(old, name))
        except OSError:
            continue


def _xattrs(path: str) -> List[str]:
    """Names of extended attributes: the security label, access lists, a user's own."""
    try:
        return os.listxattr(path)
    except OSError:
        return []


def _remove_leftovers(full: str) -> None:
    """Remove what a killed run left beside a file.  The lock is held, so nobody else is writing it."""
    folder, name = os.path.split(full)
    # As mkstemp names them in write(); a file of somebody else does not look like that.
    ours = re.compile(r"\.%s\.[a-z0-9_]{8}\.new" % re.escape(name))
    for other in os.listdir(folder):
        if ours.fullmatch(other):
            os.unlink(os.path.join(folder, other))


def _sync_folder(folder: str) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
