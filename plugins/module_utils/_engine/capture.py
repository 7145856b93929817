# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Taking a capture: what was recorded is scrubbed and packed."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import tarfile
import tempfile
from typing import Iterator, List, Set, Tuple

from . import scrub_names
from .host import UNREAD, Result, write_command
from .scrub import Scrubber
from .scrub_binary import scrubbed_vpd, without_device_serial
from .stand_ins import StandIns

# Bytes in which a text would only be found by chance: variables of the firmware are flags.
_EFI_VARIABLES = "/sys/firmware/efi/efivars/"
# How the folders are called that captures are recorded in.
_RECORDING = "gpufleet-recording-"
# Names of modules and nothing else, a megabyte a kernel.
_HARMLESS = ("modules.dep",)


@contextlib.contextmanager
def recording_folder() -> Iterator[str]:
    """A folder for a recording that nobody else may enter, and that is gone afterwards.

    A killed capture leaves its own, and what is in it is not scrubbed yet: the next one removes it. Which ones are in use
    the kernel tells by their locks.
    """
    _remove_left_recordings()
    folder = tempfile.mkdtemp(prefix=_RECORDING)
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(fd)


def _remove_left_recordings() -> None:
    top = tempfile.gettempdir()
    for name in sorted(os.listdir(top)):
        if not name.startswith(_RECORDING):
            continue
        path = os.path.join(top, name)
        try:
            fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            # Others may make a folder of that name in /tmp: theirs are not ours to remove.
            if os.fstat(fd).st_uid == os.geteuid():
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
        except OSError:
            pass
        finally:
            os.close(fd)


def scrub_folder(folder: str, salt: str) -> None:
    """Scrub all files, commands, names and targets of links of a capture."""
    stand_ins = StandIns(salt)
    scrub = Scrubber(stand_ins, *_found_in(folder))
    for place, path in _files(folder):
        _write(place, _scrubbed(path, _read(place), scrub, stand_ins))
    for place in _commands(folder):
        _scrub_command(place, scrub)
    _scrub_about(os.path.join(folder, "capture.json"), stand_ins)
    _scrub_unread(os.path.join(folder, UNREAD), scrub)
    _rename(os.path.join(folder, "files"), scrub)


def pack(folder: str, dest: str) -> None:
    """Pack a capture as .tar.gz, readable by its owner only.

    It is written under a name that nobody knows before and then renamed, so that no link and no file which somebody put
    where it belongs is written through.
    """
    fd, beside = tempfile.mkstemp(prefix=".gpufleet-", suffix=".tar.gz", dir=os.path.dirname(dest) or ".")
    try:
        with os.fdopen(fd, "wb") as file, tarfile.open(fileobj=file, mode="w:gz") as tar:
            tar.add(folder, arcname=".")
        os.rename(beside, dest)
    except BaseException:
        os.unlink(beside)
        raise


def _found_in(folder: str) -> Tuple[Set[str], Set[str]]:
    """The serial numbers and the names of hosts that the whole capture shows."""
    serials: Set[str] = set()
    hosts = {json.loads(_read(os.path.join(folder, "capture.json")))["hostname"]}
    for path, text in _texts(folder):
        serials.update(scrub_names.serials_in(path, text))
        hosts.update(scrub_names.hosts_in(path, text))
    return serials, hosts


def _texts(folder: str) -> Iterator[Tuple[str, str]]:
    """Every text with its path on the host; what commands printed has none."""
    for place, path in _files(folder):
        if not _is_binary(path):
            yield path, _read(place)
    for place in _commands(folder):
        data = json.loads(_read(place))
        yield from (("", data[name]) for name in ("stdout", "stderr"))


def _is_binary(path: str) -> bool:
    name = os.path.basename(path)
    return (
        path.startswith(_EFI_VARIABLES) or name in _HARMLESS or (path.startswith("/sys/") and name in ("config", "vpd"))
    )


def _scrubbed(path: str, text: str, scrub: Scrubber, stand_ins: StandIns) -> str:
    if not _is_binary(path):
        return scrub.file(path, text)
    name, data = os.path.basename(path), text.encode("utf-8", "surrogateescape")
    if name == "config":
        data = without_device_serial(data)
    elif name == "vpd":
        data = scrubbed_vpd(data, stand_ins.token)
    return data.decode("utf-8", "surrogateescape")


def _scrub_command(place: str, scrub: Scrubber) -> None:
    data = json.loads(_read(place))
    tool = os.path.basename(data["argv"][0]) if data["argv"] else ""
    said = [scrub.command(tool, data.get(name, "")) for name in ("stdout", "stderr", "unknown")]
    write_command(place, [scrub.name(word) for word in data["argv"]], Result(data["rc"], *said))


def _scrub_about(place: str, stand_ins: StandIns) -> None:
    about = json.loads(_read(place))
    _write(place, json.dumps(dict(about, hostname=stand_ins.host(about["hostname"]), scrubbed=True)))


def _scrub_unread(place: str, scrub: Scrubber) -> None:
    rows = [json.loads(line) for line in _read(place).splitlines()] if os.path.exists(place) else []
    for row in rows:
        row["path"] = "/".join(scrub.name(part) for part in row["path"].split("/"))
    if rows:
        _write(place, "".join(json.dumps(row) + "\n" for row in rows))


def _rename(folder: str, scrub: Scrubber) -> None:
    for here, folders, names in os.walk(folder, topdown=False):
        for name in folders + names:
            path, new = os.path.join(here, name), os.path.join(here, scrub.name(name))
            if os.path.islink(path):
                target = "/".join(scrub.name(part) for part in os.readlink(path).split("/"))
                os.unlink(path)
                os.symlink(target, new)
            elif new != path:
                os.rename(path, new)


def _commands(folder: str) -> List[str]:
    top = os.path.join(folder, "commands")
    return [os.path.join(top, name) for name in sorted(os.listdir(top))]


def _files(folder: str) -> Iterator[Tuple[str, str]]:
    """The place of each recorded file, and its path on the host."""
    top = os.path.join(folder, "files")
    for here, _folders, names in os.walk(top):
        for name in sorted(names):
            place = os.path.join(here, name)
            if not os.path.islink(place):
                yield place, place[len(top) :]


def _read(place: str) -> str:
    """As it was recorded: bytes that are no UTF-8 come back as they are (_write)."""
    with open(place, encoding="utf-8", errors="surrogateescape", newline="") as file:
        return file.read()


def _write(place: str, text: str) -> None:
    with open(place, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
        file.write(text)
