# SPDX-License-Identifier: GPL-3.0-or-later
"""A file of a zip is compiled once for a host, and the module is the same."""

from __future__ import annotations

import atexit
import importlib
import marshal
import sys
import zipfile
import zipimport
from pathlib import Path
from typing import Any, Callable, List, Optional

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


@pytest.mark.parametrize("junk", [b"", b"junk", marshal.dumps([1]), marshal.dumps({b"x": 1})[:-1], None])
def test_junk_is_written_anew(runs: Runs, junk: Optional[bytes]) -> None:
    runs.start("VALUE = 1")
    known = marshal.loads(runs.file.read_bytes())
    # None: all is as it should be, but what should be code is none.
    runs.file.write_bytes(marshal.dumps(dict.fromkeys(known, 1)) if junk is None else junk)
    assert (runs.start("VALUE = 1"), len(runs.compiled)) == (1, 1)
    assert (runs.start("VALUE = 1"), len(runs.compiled)) == (1, 0)


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
    assert len(marshal.loads(runs.file.read_bytes())) <= 2


def test_a_python_without_it_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(zipimport, "_compile_source", raising=False)
    once.compile_once()
    assert "_compile_source" not in vars(zipimport)
