# SPDX-License-Identifier: GPL-3.0-or-later
"""Version, changelog and README speak of one release."""

from __future__ import annotations

import re

import yaml

from tools.parts import ROOT

GALAXY = yaml.safe_load((ROOT / "galaxy.yml").read_text(encoding="utf-8"))
RELEASES = yaml.safe_load((ROOT / "changelogs/changelog.yaml").read_text(encoding="utf-8"))["releases"]


def test_the_version_is_the_newest_that_the_changelog_tells_of() -> None:
    newest = max(RELEASES, key=lambda version: [int(part) for part in version.split(".")])
    assert GALAXY["version"] == newest
    assert RELEASES[newest]["changes"]["release_summary"]


def test_the_changelog_for_people_is_made_of_it() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## v([0-9.]+)$", text.replace("\\", ""), re.MULTILINE)
    assert versions[0] == GALAXY["version"] and set(versions) == set(RELEASES)


def test_pages_name_the_tarball_of_this_version() -> None:
    for name in ("README.md", "tests/unit/cases/doc_commands.yml"):
        found = set(re.findall(r"gpufleet-host-([0-9.]+)\.tar\.gz", (ROOT / name).read_text(encoding="utf-8")))
        assert found == {GALAXY["version"]}, name
