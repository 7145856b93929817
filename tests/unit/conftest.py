# SPDX-License-Identifier: GPL-3.0-or-later
"""Make the collection importable under its own name, whatever the checkout's folder is called."""

from __future__ import annotations

from pathlib import Path

from hypothesis import settings

ROOT = Path(__file__).resolve().parents[2]
LINK = ROOT / ".cache/collections/ansible_collections/gpufleet/host"

if not LINK.exists():
    LINK.parent.mkdir(parents=True, exist_ok=True)
    LINK.symlink_to(ROOT)

# The same examples in each run, so that a change is judged by what it changed. Others: --hypothesis-profile=default.
settings.register_profile("same", derandomize=True, database=None)
settings.load_profile("same")
