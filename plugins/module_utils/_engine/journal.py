# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The journal on the host: what was about to be changed, from what, and whether it was done.

Each step is written with its ``before`` and synced *before* it is applied, so a run that was killed
at any moment is recognised by the next one, and the originals are never lost.  What the lines say is
in ``records``; here they are read and written, by files that are root's alone.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
import time
from typing import Any, Dict, List, Mapping, Optional, Tuple

from . import records as lines
from .records import Entry, Loss, Records
from .values import Step

FOLDER = "/var/lib/gpufleet"
# A journal is shortened when it is longer than this and half of it is settled: a second's reading at most.
SHORTEN_BYTES = 1024 * 1024

_NAME, _HEAD, _LOCK = "journal.jsonl", "journal.head", "lock"
# Where a file of these belongs something else lies, or something leads elsewhere.
_NOT_OURS = (errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENXIO)


class Locked(RuntimeError):
    """Another run holds the host."""


class JournalError(OSError):
    """The journal cannot be read or written: on a full or read-only /var no change is made."""


class Journal:
    """The journal of one host; ``root`` is there for tests on a tree of files."""

    def __init__(self, root: str = "", folder: str = FOLDER) -> None:
        self.folder = root.rstrip("/") + folder
        self.path = os.path.join(self.folder, _NAME)
        # What was read last, and of which state of the file.
        self._read: Tuple[Any, Records] = (None, Records())

    def begin(self, run: str, area: str) -> None:
        self._shorten()
        self._append({"event": "begin", "run": run, "area": area, "time": time.time()})
        self._note_head()

    def intend(self, run: str, area: str, step: Step, folders: Tuple[str, ...] = ()) -> int:
        """Note a step before it is applied; gives its number.

        :param folders: those that its file needs and that are not there, to be removed with it.
        """
        known = self._records()
        number = known.last_number + 1
        event = {"event": "intend", "number": number, "run": run, "area": area, "step": step.to_json()}
        self._append(dict(event, first=known.first_of(step), **({"folders": list(folders)} if folders else {})))
        return number

    def note_done(self, number: int) -> None:
        self._append({"event": "done", "number": number})

    def note_undone(self, number: int) -> None:
        self._append({"event": "undone", "number": number})

    def end(self, run: str, area: str, state: str) -> None:
        self._append({"event": "end", "run": run, "area": area, "state": state, "time": time.time()})
        self._note_head()

    def interrupted(self, area: str) -> List[str]:
        """Runs of an area that began and never ended, oldest first."""
        return [run for run, name in self._records().open_runs if name == area]

    def runs(self) -> List[str]:
        """The names of all runs that are on record here, undone ones too, newest first."""
        return list(reversed(self._records().runs))

    def standing(self, area: Optional[str] = None, run: Optional[str] = None) -> List[Entry]:
        """Steps begun and not undone, oldest first, of one area or run or of all."""
        return [
            entry
            for _number, entry in sorted(self._records().entries.items())
            if area in (None, entry.area) and run in (None, entry.run)
        ]

    def losses(self) -> List[Loss]:
        """What is lost of it, with as much as can still be told."""
        return list(self._records().losses)

    def doubt(self, entry: Entry) -> str:
        """Why what an entry remembers may not be the original; empty when it is."""
        return self._records().doubt(entry)

    def at_work(self) -> str:
        """The process that holds the lock now, empty when none does."""
        try:
            folder = _open_folder(self.folder, make=False)
        except OSError:
            return ""
        try:
            fd = _open_file(self.folder, folder, _LOCK, os.O_RDONLY)
        except OSError:
            return ""
        finally:
            os.close(folder)
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return _holder(fd)
        finally:
            os.close(fd)
        return ""

    def _records(self) -> Records:
        """What the journal says; it is read once, and again only when somebody else wrote to it."""
        try:
            folder = _open_folder(self.folder, make=False)
        except FileNotFoundError:
            return Records()
        try:
            text, mark = self._text(folder)
            if text is None and self._read[0] == mark:
                return self._read[1]
            known = lines.read(text or "", _noted(self.folder, folder))
        finally:
            os.close(folder)
        if text == "":
            known.losses.append(Loss("all of it", 1, "the file is empty, which it never is while it is in use"))
        self._read = (mark, known)
        return known

    def _text(self, folder: int) -> Tuple[Optional[str], Any]:
        """What is in the file, and the mark of this state of it; None when it was read before or is not there."""
        try:
            fd = _open_file(self.folder, folder, _NAME, os.O_RDONLY)
        except FileNotFoundError:
            return None, "missing"
        with os.fdopen(fd, encoding="utf-8", errors="replace", newline="\n") as file:
            mark = _mark(fd)
            return (None if mark == self._read[0] else file.read()), mark

    def _append(self, event: Dict[str, Any]) -> None:
        known = self._records()
        seq = known.last_seq + 1
        try:
            mark = self._write(lines.seal(event, seq) + "\n")
        except JournalError:
            raise
        except OSError as error:
            raise JournalError("the journal %s cannot be written: %s" % (self.path, _reason(error))) from error
        known.add(dict(event, seq=seq))
        self._read = (mark, known)

    def _write(self, line: str) -> Any:
        """Append a line and sync it; gives the mark of the file after it."""
        folder = _open_folder(self.folder, make=True)
        try:
            fd = _open_file(self.folder, folder, _NAME, os.O_RDWR | os.O_APPEND)
        except FileNotFoundError:
            # Not made empty and then written to: an empty journal is a damaged one.
            return self._replace(_NAME, line)
        finally:
            os.close(folder)
        try:
            size = os.fstat(fd).st_size
            torn = size > 0 and os.pread(fd, 1, size - 1) != b"\n"
            _write_all(fd, (("\n" if torn else "") + line).encode("utf-8"))
            os.fsync(fd)
            return _mark(fd)
        finally:
            os.close(fd)

    def _note_head(self) -> None:
        """Note beside the journal how far it goes, so that a cut end, or an empty file, is seen."""
        try:
            self._replace(_HEAD, json.dumps({"seq": self._records().last_seq}) + "\n")
        except OSError:
            pass  # a full disk: the note stays behind, which hides a loss but invents none

    def _shorten(self) -> None:
        """Rewrite a long journal without what is settled.  One with a loss is left as it is, for people to look at."""
        try:
            size = os.lstat(self.path).st_size
            known = self._records() if size > SHORTEN_BYTES else None
            text = lines.shortened(known) if known and not known.losses else ""
            if text and len(text) < size / 2:
                self._replace(_NAME, text)
        except OSError:
            pass  # it goes on as long as it is

    def _replace(self, name: str, text: str) -> Any:
        """Replace the journal, or a file beside it, in one instant; gives the mark of the new file."""
        folder = _open_folder(self.folder, make=False)
        try:
            new = name + ".new"
            try:
                os.unlink(new, dir_fd=folder)
            except FileNotFoundError:
                pass
            fd = _open_file(self.folder, folder, new, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            try:
                _write_all(fd, text.encode("utf-8"))
                os.fsync(fd)
                mark = _mark(fd)
            finally:
                os.close(fd)
            os.rename(new, name, src_dir_fd=folder, dst_dir_fd=folder)
            os.fsync(folder)
            return mark
        finally:
            os.close(folder)


class Lock:
    """One run a host at a time: held while the process lives, so a killed run leaves none behind."""

    def __init__(self, root: str = "", folder: str = FOLDER, wait_s: float = 30.0) -> None:
        self.folder = root.rstrip("/") + folder
        self.path = self.folder + "/" + _LOCK
        self.wait_s = wait_s
        self._fd = -1

    def __enter__(self) -> Lock:
        try:
            folder = _open_folder(self.folder, make=True)
            try:
                self._fd = _open_file(self.folder, folder, _LOCK, os.O_RDWR | os.O_CREAT)
            finally:
                os.close(folder)
        except JournalError:
            raise
        except OSError as error:
            raise JournalError("the lock %s cannot be taken: %s" % (self.path, _reason(error))) from error
        deadline = time.monotonic() + self.wait_s
        while True:
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if time.monotonic() > deadline:
                    holder = _holder(self._fd)
                    os.close(self._fd)
                    raise Locked(
                        "another run (process %s) holds %s for more than %g s: wait for it, or end it"
                        % (holder, self.path, self.wait_s)
                    ) from None
                time.sleep(0.1)
        try:
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, str(os.getpid()).encode("ascii"), 0)
        except OSError:
            pass  # on a full disk the message to others lacks this number
        return self

    def __exit__(self, *_exc: Any) -> None:
        os.close(self._fd)


def _holder(lock: int) -> str:
    return os.pread(lock, 64, 0).decode("ascii", "replace").strip() or "unknown"


def _open_folder(path: str, make: bool) -> int:
    """The journal's folder, opened once it is seen to be root's alone; links are not followed."""
    if make and not os.path.lexists(path):
        os.makedirs(path, mode=0o700, exist_ok=True)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _unusable(path, path, error) from error
    return _checked(path, path, fd)


def _open_file(folder: str, folder_fd: int, name: str, flags: int) -> int:
    """A file of the journal's folder, of which the same is true."""
    path = os.path.join(folder, name)
    try:
        # Non-blocking, since a named pipe would hang us.
        fd = os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600, dir_fd=folder_fd)
    except FileNotFoundError:
        raise
    except OSError as error:
        if error.errno in _NOT_OURS or flags & os.O_ACCMODE == os.O_RDONLY:
            raise _unusable(folder, path, error) from error
        raise
    return _checked(folder, path, fd)


def _checked(folder: str, path: str, fd: int) -> int:
    found = os.fstat(fd)
    odd = ""
    if path != folder and not stat.S_ISREG(found.st_mode):
        os.close(fd)
        raise _useless(folder, path, "is a folder" if stat.S_ISDIR(found.st_mode) else "is no file")
    if found.st_uid not in (0, os.geteuid()):
        odd = "belongs to the user with the number %d" % found.st_uid
    elif found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        odd = "can be written by others (mode %04o)" % stat.S_IMODE(found.st_mode)
    if not odd:
        return fd
    os.close(fd)
    raise JournalError(
        "the journal cannot be trusted: %s %s, so anybody may have written what root is to undo. "
        "See what is in it; then either make it root's alone (chown -R root:root %s; chmod -R go-w %s), "
        "or put it aside (mv %s %s.bad), after which what it knew cannot be reverted"
        % (path, odd, folder, folder, folder, folder)
    )


def _unusable(folder: str, path: str, error: OSError) -> JournalError:
    is_link = os.path.islink(path)
    return _useless(folder, path, "is a link, and none is followed here" if is_link else os.strerror(error.errno or 0))


def _useless(folder: str, path: str, odd: str) -> JournalError:
    return JournalError(
        "the journal cannot be read: %s: %s. See what is there; mv %s %s.bad puts it aside, "
        "after which what it knew cannot be reverted" % (path, odd, folder, folder)
    )


def _reason(error: OSError) -> str:
    """Why something cannot be written, with what to look at where the filesystem is at fault."""
    look = {
        errno.EROFS: " (see findmnt -no OPTIONS -T /var/lib, then dmesg --level=err,warn | tail)",
        errno.ENOSPC: " (see df -h /var/lib; df -i /var/lib)",
        errno.EIO: " (see dmesg --level=err,warn | tail)",
    }
    return os.strerror(error.errno or 0) + look.get(error.errno or 0, "")


def _noted(folder: str, folder_fd: int) -> int:
    """How far the journal is known to go; 0 where nobody noted it."""
    try:
        with os.fdopen(_open_file(folder, folder_fd, _HEAD, os.O_RDONLY), "rb") as file:
            noted: Mapping[str, Any] = json.loads(file.read(256))
        return max(0, int(noted["seq"]))
    except (OSError, ValueError, KeyError, TypeError):
        return 0


def _mark(fd: int) -> Tuple[int, int, int, int]:
    found = os.fstat(fd)
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _write_all(fd: int, data: bytes) -> None:
    if os.write(fd, data) != len(data):
        # A full disk takes a part without an error; a change without its original noted must not be made.
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
