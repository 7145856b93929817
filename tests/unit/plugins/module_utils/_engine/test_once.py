# SPDX-License-Identifier: GPL-3.0-or-later
"""A file of a zip is compiled once, and the module is the same."""

from __future__ import annotations

import importlib
import sys
import zipfile
import zipimport
from pathlib import Path

import pytest

from ansible_collections.gpufleet.host.plugins.module_utils._engine import once


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that were compiled, in order."""
    seen: list[str] = []

    def compile_source(pathname: str, source: bytes) -> object:
        seen.append(pathname)
        return compile(source, pathname, "exec", dont_inherit=True)

    monkeypatch.setattr(zipimport, "_compile_source", compile_source, raising=False)
    return seen


def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    path = tmp_path / "code.zip"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("gpufleet_once_probe.py", "VALUE = 1\n")
    monkeypatch.syspath_prepend(str(path))
    monkeypatch.delitem(sys.modules, "gpufleet_once_probe", raising=False)
    return importlib.import_module("gpufleet_once_probe").VALUE


def test_each_file_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiled: list[str]) -> None:
    once.compile_once()
    assert load(tmp_path, monkeypatch) == 1
    assert len(compiled) == 1


def test_twice_is_as_once(monkeypatch: pytest.MonkeyPatch, compiled: list[str]) -> None:
    once.compile_once()
    first = vars(zipimport)["_compile_source"]
    once.compile_once()
    assert vars(zipimport)["_compile_source"] is first


def test_a_python_without_it_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(zipimport, "_compile_source", raising=False)
    once.compile_once()
    assert "_compile_source" not in vars(zipimport)
