# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Failures from public reports, each as a capture of such a host: the area platform finds what it was, and the way out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import story

from ansible_collections.gpufleet.host.plugins.module_utils._areas.platform import AREA
from ansible_collections.gpufleet.host.plugins.module_utils._engine import whole
from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import CaptureHost, MemoHost
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import Finding, Report

PATHS = sorted(story.STORIES.glob("*.yml"))
FAULTS = ("fail", "block")


def audited(about: dict[str, Any], folder: Path) -> Report:
    story.write(about, folder)
    want = whole.valid_want(AREA, about.get("want", {}))
    host = story.Later(folder, about["later"]) if "later" in about else CaptureHost(str(folder))
    report: Report = whole.audit([AREA], {AREA.name: want}, MemoHost(host), {}, None)[AREA.name]
    return report


def key(finding: Finding) -> tuple[str, str, str]:
    return finding.id, finding.subject, finding.level


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_the_cause_and_the_way_out_are_named(path: Path, tmp_path: Path) -> None:
    about = story.load(path)
    report = audited(about, tmp_path / "capture")
    found = {key(finding): finding for finding in report.findings}
    told = "\n".join("  %s %s %s: %s" % (f.level, f.id, f.subject, f.observed) for f in report.findings)
    expected = [tuple(row[:3]) for row in about.get("expect", [])]
    assert [row for row in expected if row not in found] == [], told
    # What is no part of the story is no fault.
    assert {row for row in found if row[2] in FAULTS} == {row for row in expected if row[2] in FAULTS}, told
    assert not {finding.id for finding in report.findings} & set(about.get("never", [])), told
    for row in about.get("expect", []):
        for words in row[3:]:
            finding = found[tuple(row[:3])]
            assert words.lower() in finding.fix.lower(), finding
