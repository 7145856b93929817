# SPDX-License-Identifier: GPL-3.0-or-later
"""The Pythons of this machine, and virtual environments of them that are kept."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

OLDEST = (3, 8)
NEWEST_TRIED = 20
Version = tuple[int, int]


def interpreters() -> dict[Version, Path]:
    """Pythons that really start, by version; the controller's own is left out."""
    found: dict[Version, Path] = {}
    for path in candidates():
        probe = "import sys, venv; print(*sys.version_info[:2])"
        done = subprocess.run([path, "-c", probe], capture_output=True, text=True)
        if done.returncode == 0:
            major, minor = map(int, done.stdout.split())
            found.setdefault((major, minor), path)
    found.pop(sys.version_info[:2], None)
    return found


def candidates() -> Iterator[Path]:
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    # pyenv keeps versions off PATH until one is chosen.
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    folders += sorted(pyenv.glob("versions/3.*/bin"))
    for folder in folders:
        for minor in range(OLDEST[1], NEWEST_TRIED):
            path = folder / f"python3.{minor}"
            if path.exists():
                yield path


def environment(venv: Path, interpreter: Path, needs: Path) -> Path:
    """The Python of a virtual environment with the packages of a file, made anew when the file changes."""
    stamp = venv / ".stamp"
    want = hashlib.sha256(needs.read_bytes()).hexdigest()
    python = venv / "bin/python"
    if not (python.exists() and stamp.exists() and stamp.read_text() == want):
        subprocess.run([interpreter, "-m", "venv", "--clear", venv], check=True)
        pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", "-r", str(needs)]
        done = subprocess.run(pip, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            raise SystemExit(f"{done.stdout}\npip could not install {needs.name} for {python}")
        stamp.write_text(want)
    return python
