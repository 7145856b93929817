# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from ansible_collections.gpufleet.host.plugins.module_utils._engine.apart import apart
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import BadWant, Unknown


def test_what_it_gives_comes_back() -> None:
    assert apart(lambda: {"a": [1, Unknown("x")]}, 10.0) == {"a": [1, Unknown("x")]}
    assert len(apart(lambda: "x" * 5_000_000, 10.0)) == 5_000_000


def test_it_is_another_process() -> None:
    assert apart(os.getpid, 10.0) != os.getpid()


def test_what_it_raises_is_raised() -> None:
    def work() -> None:
        raise BadWant("a", 1, "b")

    with pytest.raises(BadWant, match="a: 1 is not possible: allowed is b"):
        apart(work, 10.0)


def test_an_error_that_does_not_travel_is_told() -> None:
    class Odd(Exception):
        def __init__(self, one: str, two: str) -> None:
            super().__init__("told")

    def work() -> None:
        raise Odd("a", "b")

    with pytest.raises(RuntimeError, match="Odd: told"):
        apart(work, 10.0)


def test_a_process_that_ends_by_itself_is_unknown() -> None:
    assert apart(lambda: os._exit(3), 10.0) == Unknown("its process ended without an answer")


def test_the_deadline_ends_what_never_gives_the_interpreter_back() -> None:
    """A sum over a range holds the interpreter's lock, as a regular expression does."""
    begin = time.monotonic()
    assert apart(lambda: sum(range(10**11)), 0.3) == Unknown("hung: no answer in 0.3 s")
    assert time.monotonic() - begin < 5


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    def work() -> None:
        (tmp_path / "pid").write_text(str(os.getpid()))
        threading.Event().wait()

    before = len(os.listdir("/proc/self/fd"))
    assert isinstance(apart(work, 0.5), Unknown)
    assert not os.path.exists("/proc/" + (tmp_path / "pid").read_text())
    assert len(os.listdir("/proc/self/fd")) == before
