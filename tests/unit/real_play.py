# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Playbooks run by Ansible itself, as people type them, on hosts that are this machine under other names."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
INVENTORY = """
gpu_hosts: {hosts: {gpu01: , gpu02: }}
web: {hosts: {web01: }}
all:
  vars:
    ansible_connection: local
    ansible_python_interpreter: %s
"""


def environment(**more: str) -> dict[str, str]:
    """This process's own, with Ansible's settings out of the way."""
    return {**{key: text for key, text in os.environ.items() if not key.startswith(("ANSIBLE_", "GPUFLEET_"))}, **more}


def python_of(place: Path, uid: int) -> Path:
    """A Python that takes itself for one of this user, so that no test depends on who runs it."""
    (place / "site").mkdir(exist_ok=True)
    (place / "site/sitecustomize.py").write_text("import os\nos.geteuid = lambda: %d\n" % uid, encoding="utf-8")
    python = place / "python"
    python.write_text('#!/bin/sh\nPYTHONPATH=%s exec %s "$@"\n' % (place / "site", sys.executable), encoding="utf-8")
    python.chmod(0o755)
    return python


def play(place: Path, *words: str, uid: int = 0, inventory: str = INVENTORY) -> subprocess.CompletedProcess[str]:
    """``ansible-playbook`` with these words in an empty folder, without any ansible.cfg."""
    (place / "hosts.yml").write_text(inventory % python_of(place, uid), encoding="utf-8")
    env = environment(ANSIBLE_COLLECTIONS_PATH=str(ROOT / ".cache/collections"))
    argv = [BIN / "ansible-playbook", "-i", "hosts.yml", *words]
    return subprocess.run(argv, cwd=place, env=env, capture_output=True, text=True, check=False)
