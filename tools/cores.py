# SPDX-License-Identifier: GPL-3.0-or-later
"""The ansible-cores that the collection is tried on beside its own, each in a virtual environment that is kept."""

from __future__ import annotations

import sys
from pathlib import Path

from tools.parts import CACHE, ROOT
from tools.pythons import Version, environment, interpreters

# Each core with the Pythons that it runs on (its own setup.cfg).
CORES: dict[str, tuple[Version, Version]] = {"2.18": ((3, 11), (3, 13)), "2.21": ((3, 12), (3, 14))}


def playbook_of(core: str) -> Path:
    """Its ansible-playbook, whether it is there or not."""
    return CACHE / "cores" / core / "bin/ansible-playbook"


def python_for(core: str, found: dict[Version, Path]) -> Path | None:
    """The oldest Python that a core runs on."""
    oldest, newest = CORES[core]
    fitting = sorted(version for version in found if oldest <= version <= newest)
    return found[fitting[0]] if fitting else None


def make() -> None:
    """Make what is missing; a core without a Python is said, and its tests are skipped."""
    found = {**interpreters(), sys.version_info[:2]: Path(sys.executable)}
    for core, (oldest, newest) in CORES.items():
        python = python_for(core, found)
        if python is None:
            print("No Python %d.%d to %d.%d is installed: ansible-core %s is not tried." % (*oldest, *newest, core))
            continue
        environment(CACHE / "cores" / core, python, ROOT / f"requirements-core-{core}.txt")


if __name__ == "__main__":
    make()
