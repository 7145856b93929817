# Copyright: (c) 2026, gpufleet.host contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Before anything: write down what the host is, so that going back can be proved."""

from __future__ import annotations

from typing import Any

from lab_host import ARTIFACTS
from snapshot import snapshot


def test_write_down_the_originals(gpu1: Any) -> None:
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    lines = snapshot(gpu1)
    assert len(lines) > 100
    (ARTIFACTS / "baseline.txt").write_text("\n".join(lines))
