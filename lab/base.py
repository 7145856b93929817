# Copyright: (c) 2026, gpufleet.host contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What every part of the lab needs: its folder, its voice, its way to run a command."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import Mapping, Sequence

LAB = Path(__file__).resolve().parent
REPO = LAB.parent
_STARTED = time.monotonic()


class LabError(Exception):
    """A failure, and the one thing to do next."""

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


def state_dir(env: Mapping[str, str] = os.environ) -> Path:
    """Where images, disks, sockets, keys and logs live."""
    return Path(env.get("GPUFLEET_LAB_DIR") or REPO / ".cache" / "lab").absolute()


def say(text: str) -> None:
    """Print a line of progress with the time since the command began."""
    print(f"[{time.monotonic() - _STARTED:6.1f}s] {text}", flush=True)


def run(argv: Sequence[str], *, hint: str, cwd: Path | None = None) -> str:
    """Run a command and return its output; a failure shows what it said last."""
    try:
        done = subprocess.run(
            argv,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
    except FileNotFoundError as error:
        raise LabError(f"{argv[0]} is not installed", hint="run: lab/lab.py requirements --install") from error
    if done.returncode != 0:
        raise LabError(f"{argv[0]} ended with {done.returncode}: {tail(done.stdout)}", hint=hint)
    return done.stdout


def tail(text: str, lines: int = 5) -> str:
    """The last lines that say something."""
    return "\n    ".join([""] + [line for line in text.splitlines() if line.strip()][-lines:])


def tail_file(path: Path, lines: int = 5) -> str:
    """The last lines of a log; empty when there is none."""
    if not path.exists():
        return ""
    size = path.stat().st_size
    with path.open("rb") as log:
        log.seek(max(0, size - 8192))
        text = log.read().decode("utf-8", "replace")
    return tail("".join(c for c in text if c.isprintable() or c == "\n"), lines)
