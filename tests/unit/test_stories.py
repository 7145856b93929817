# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Failures from public reports, each as a capture of such a host: the area platform finds what it was, and the way out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import story
import yaml
from fake_module import Ended, Module

from ansible_collections.gpufleet.host.plugins.module_utils._areas.platform import AREA
from ansible_collections.gpufleet.host.plugins.module_utils._engine import audit_door, whole
from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import CaptureHost, MemoHost
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import Finding, Report
from ansible_collections.gpufleet.host.plugins.modules import node_audit
from tools import stories_page

ROWS = yaml.safe_load((Path(__file__).parent / "cases/stories.yml").read_text(encoding="utf-8"))
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


@pytest.mark.parametrize("name", ["01-api-mismatch-after-upgrade", "39-acs-and-iommu-between-gpu-and-nic"])
def test_an_audit_of_the_capture_reports_it(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As playbooks/audit.yml does with -e capture=…, with the drawing's facts."""
    about = story.load(story.STORIES / f"{name}.yml")
    folder = story.write(about, tmp_path / "capture")
    monkeypatch.setattr(audit_door, "AnsibleModule", Module)
    Module.params, Module.check_mode = {"wants": {"platform": about.get("want", {})}, "capture": str(folder)}, False
    with pytest.raises(Ended) as end:
        node_audit.main()
    report = end.value.result["report"]
    assert report["host"] == "story" and report["host_facts"]
    found = {(row["id"], row["subject"], row["level"]) for row in report["areas"]["platform"]["findings"]}
    assert {tuple(row[:3]) for row in about["expect"]} <= found
    assert report["state"] == ("blocked" if any(row[2] in FAULTS for row in about["expect"]) else "unknown")


# The list of stories


def test_every_story_is_a_capture_or_says_where_it_is_seen_or_why_not() -> None:
    by_number = {row["number"]: row for row in ROWS}
    assert len(by_number) == len(ROWS) and list(by_number) == sorted(by_number)
    told = {number for about in stories_page.captures().values() for number in stories_page.numbers(about)}
    assert told == {number for number, row in by_number.items() if "unseen" not in row and "tested" not in row}


@pytest.mark.parametrize("row", [row for row in ROWS if "tested" in row], ids=lambda row: row["number"])
def test_what_other_areas_see_is_tested_there(row: dict[str, Any]) -> None:
    assert row["tested"]["words"] in (stories_page.ROOT / row["tested"]["file"]).read_text(encoding="utf-8")


def test_the_page_is_true() -> None:
    assert stories_page.PAGE.read_text(encoding="utf-8") == stories_page.page(), "python3 -m tools.stories_page"


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_story_says_what_is_real(path: Path) -> None:
    about = story.load(path)
    assert about["description"].endswith(".") and about["real"].endswith(".") and about["made_up"].endswith(".")
    assert about.get("expect") or about.get("never")
    numbers = stories_page.numbers(about)
    assert not numbers or path.stem.split("-")[0] in [f"{number:02}" for number in numbers]
