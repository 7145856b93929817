# Copyright: (c) 2026, gpufleet.host contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lab.base import LAB


def lab(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """The program as a person runs it, from some other folder."""
    return subprocess.run(
        [sys.executable, str(LAB / "lab.py"), *words],
        cwd=folder,
        text=True,
        check=False,
        capture_output=True,
        env={"PATH": "/usr/bin:/bin", "GPUFLEET_LAB_DIR": str(folder)},
    )


@pytest.mark.parametrize("words", [["up", "lab-none"], ["ssh"], ["plug"], ["reset"], []], ids=str)
def test_wrong_words_are_refused(words: list[str], tmp_path: Path) -> None:
    done = lab(*words, folder=tmp_path)
    assert done.returncode == 2
    assert "usage: lab.py" in done.stderr


@pytest.mark.parametrize("words", [["ssh", "lab-gpu1", "true"], ["plug", "lab-gpu1"]], ids=str)
def test_a_failure_ends_with_what_to_do(words: list[str], tmp_path: Path) -> None:
    done = lab(*words, folder=tmp_path)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "next: run: lab/lab.py up lab-gpu1"


def test_down_of_nothing_is_fine(tmp_path: Path) -> None:
    assert lab("down", folder=tmp_path).returncode == 0
