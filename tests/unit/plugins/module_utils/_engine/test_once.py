# SPDX-License-Identifier: GPL-3.0-or-later
"""A file of a zip is compiled once for a host, and the module is the same."""

from __future__ import annotations

import atexit
import importlib
import marshal
import os
import sys
import zipfile
import zipimport
from pathlib import Path
from types import CodeType
from typing import Any, Callable, List

import pytest

from ansible_collections.gpufleet.host.plugins.module_utils._engine import once

NAME = "gpufleet_once_probe"


class Runs:
    """Modules that start one after the other on one host."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.monkeypatch = monkeypatch
        self.cache = folder / "cache"
        self.compiled: List[str] = []

    def start(self, source: str) -> Any:
        """Import the source from a zip of its own, as a payload is; gives VALUE."""
        at_exit: List[Callable[[], None]] = []
        self.monkeypatch.setattr(atexit, "register", at_exit.append)
        self.monkeypatch.setattr(zipimport, "_compile_source", self._compile, raising=False)
        self.monkeypatch.delitem(sys.modules, NAME, raising=False)
        path = self.folder / ("%d.zip" % len(list(self.folder.glob("*.zip"))))
        with zipfile.ZipFile(path, "w") as file:
            file.writestr(NAME + ".py", source)
        self.monkeypatch.syspath_prepend(str(path))
        self.compiled.clear()
        once.compile_once(str(self.cache))
        value = importlib.import_module(NAME).VALUE
        for call in at_exit:
            call()
        return value

    def _compile(self, pathname: str, source: bytes) -> object:
        self.compiled.append(pathname)
        return compile(source, pathname, "exec", dont_inherit=True)

    @property
    def file(self) -> Path:
        (found,) = self.cache.glob("*")
        return found


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    return Runs(tmp_path, monkeypatch)


def test_the_first_run_compiles_once_and_the_second_not_at_all(runs: Runs) -> None:
    assert (runs.start("VALUE = 1"), len(runs.compiled)) == (1, 1)
    assert (runs.start("VALUE = 1"), len(runs.compiled)) == (1, 0)


def test_another_source_is_another_code(runs: Runs) -> None:
    runs.start("VALUE = 1")
    assert (runs.start("VALUE = 2"), len(runs.compiled)) == (2, 1)
    assert (runs.start("VALUE = 1"), len(runs.compiled)) == (1, 0)


@pytest.mark.parametrize("mode", [0o602, 0o620])
def test_a_file_that_others_may_write_is_not_taken(runs: Runs, mode: int) -> None:
    runs.start("VALUE = 1")
    runs.file.chmod(mode)
    assert (runs.start("VALUE = 1"), len(runs.compiled)) == (1, 1)


def test_a_folder_that_others_may_write_is_not_taken(runs: Runs) -> None:
    runs.start("VALUE = 1")
    runs.cache.chmod(0o777)
    assert (runs.start("VALUE = 1"), len(runs.compiled)) == (1, 1)


def test_a_link_is_not_followed(runs: Runs) -> None:
    runs.start("VALUE = 1")
    file = runs.file
    file.rename(runs.folder / "elsewhere")
    file.symlink_to(runs.folder / "elsewhere")
    assert (runs.start("VALUE = 1"), len(runs.compiled)) == (1, 1)


def sealed(kept: object) -> bytes:
    body = marshal.dumps(kept)
    return once._digest(body) + body


def codes(data: bytes) -> dict[bytes, CodeType]:
    return dict(marshal.loads(data[len(once._digest(b"")) :]))


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda good: b"",
    "one byte": lambda good: b"x",
    "junk": lambda good: b"junk" * 100,
    "zeros": lambda good: bytes(len(good)),
    "cut": lambda good: good[:-1],
    "a bit": lambda good: good[:-5] + bytes([good[-5] ^ 1]) + good[-4:],
    "its head": lambda good: b"x" + good[1:],
    "as the first version wrote it": lambda good: good[len(once._digest(b"")) :],
    "a loop": lambda good: good[: len(once._digest(b""))] + b"[" * 100000,
    "no mapping": lambda good: sealed([1]),
    "no code": lambda good: sealed(dict.fromkeys(codes(good), 1)),
}


@pytest.mark.parametrize("how", DAMAGE)
def test_what_is_damaged_is_not_used_and_written_anew(runs: Runs, how: str) -> None:
    runs.start("VALUE = 1")
    runs.file.write_bytes(DAMAGE[how](runs.file.read_bytes()))
    assert (runs.start("VALUE = 1"), len(runs.compiled)) == (1, 1)
    assert (runs.start("VALUE = 1"), len(runs.compiled)) == (1, 0)


def test_damage_never_reaches_what_reads_code(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    runs.start("VALUE = 1")
    good = runs.file.read_bytes()
    monkeypatch.setattr(marshal, "loads", lambda data: pytest.fail("damaged code was read"))
    for place in range(0, len(good), 7):
        runs.file.write_bytes(good[:place] + bytes([good[place] ^ 0xFF]) + good[place + 1 :])
        assert once._load(str(runs.file)) == {}


def test_a_file_too_large_is_not_read(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    runs.start("VALUE = 1")
    monkeypatch.setattr(once, "LIMIT_BYTES", 10)
    assert (runs.start("VALUE = 1"), len(runs.compiled)) == (1, 1)


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_what_is_no_file_is_left_alone(runs: Runs, make: Callable[[Path], None]) -> None:
    runs.start("VALUE = 1")
    file = runs.file
    file.unlink()
    make(file)
    assert (runs.start("VALUE = 1"), len(runs.compiled)) == (1, 1)
    assert len(list(runs.cache.glob("*"))) == 1, "nothing half-written is left"


@pytest.mark.parametrize("call", ["fsync", "rename", "open"])
def test_a_full_disk_costs_the_cache_and_nothing_else(runs: Runs, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    def full(*_args: object, **_options: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(once.os, call, full)
        assert runs.start("VALUE = 1") == 1
    assert list(runs.cache.glob("*")) == []


def test_only_its_owner_may_read_it(runs: Runs) -> None:
    runs.start("VALUE = 1")
    assert (runs.cache.stat().st_mode & 0o777, runs.file.stat().st_mode & 0o777) == (0o700, 0o600)


def test_a_file_of_another_account_is_not_taken(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    runs.start("VALUE = 1")
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert (runs.start("VALUE = 1"), len(runs.compiled)) == (1, 1)


def test_without_a_folder_all_goes_on(runs: Runs) -> None:
    runs.cache.write_text("a file is in the way")
    assert (runs.start("VALUE = 1"), len(runs.compiled)) == (1, 1)


def test_who_wants_no_bytecode_gets_none(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    runs.start("VALUE = 1")
    assert not runs.cache.exists()


def test_old_versions_do_not_pile_up(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(once, "LIMIT_FILES", 2)
    for number in range(4):
        runs.start("VALUE = %d" % number)
    assert len(codes(runs.file.read_bytes())) <= 2


def test_a_python_without_it_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(zipimport, "_compile_source", raising=False)
    once.compile_once()
    assert "_compile_source" not in vars(zipimport)
