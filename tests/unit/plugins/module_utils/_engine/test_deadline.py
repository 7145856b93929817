# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from ansible_collections.gpufleet.host.plugins.module_utils._engine.deadline import within
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import Unknown

COLLECTIONS = Path(__file__).resolve().parents[5] / ".cache/collections"


def test_what_comes_back_is_given() -> None:
    assert within(lambda: {"a": 1}, 10.0) == {"a": 1}


def test_what_it_raises_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        within(lambda: 1 // 0, 10.0)


def test_what_waits_is_given_up() -> None:
    assert within(lambda: threading.Event().wait(60), 0.2) == Unknown("hung for 0.2 s")


def test_what_never_gives_the_interpreter_back_ends_the_process_and_tells_the_place() -> None:
    """A sum over a range holds the interpreter's lock for as long as it takes, as a regular expression does."""
    program = """
import sys
sys.path.insert(0, %r)
from ansible_collections.gpufleet.host.plugins.module_utils._engine.deadline import within

def runs_wild():
    return sum(range(10**12))

print(within(runs_wild, 0.2, grace_s=0.5))
""" % str(COLLECTIONS)
    begin = time.monotonic()
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert time.monotonic() - begin < 30
    assert (done.returncode, done.stdout) == (1, "")
    assert "in runs_wild" in done.stderr
