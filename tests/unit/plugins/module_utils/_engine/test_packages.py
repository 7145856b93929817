# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages with tools: what apt and dnf say, and when lists are fetched."""

from __future__ import annotations

from pathlib import Path
from typing import Sequence

import pytest
from fakes import FakeHost

from ansible_collections.gpufleet.host.plugins.module_utils._engine import packages
from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import Result
from ansible_collections.gpufleet.host.plugins.module_utils._engine.packages import PackageError, unreached
from ansible_collections.gpufleet.host.plugins.module_utils._observe.packages import missing

LIST = packages.APT_LISTS + "/mirror.example_debian_dists_bookworm_main_binary-amd64_Packages"
NO_SUCH = "E: Unable to locate package xfsprogs\n"
GONE = (
    "E: Failed to fetch http://mirror.example/pool/x/xfsprogs_6.1.0-1_amd64.deb  404  Not Found [IP: 192.0.2.9 80]\n"
    "E: Unable to fetch some archives, maybe run apt-get update or try with --fix-missing?\n"
)
DEAD = (
    "W: Failed to fetch http://mirror.example/debian/dists/bookworm/InRelease  Could not connect to mirror.example:80 "
    "(192.0.2.9). - connect (111: Connection refused)\n"
    "W: Some index files failed to download. They have been ignored, or old ones used instead.\n"
)


class AptHost(FakeHost):
    """A host with dpkg and apt, whose mirror is there, has moved on since the lists were fetched, or is dead."""

    def __init__(self, root: Path, mirror: str = "there", lists: bool = True) -> None:
        super().__init__(root)
        self.mirror, self.is_installed, self.did = mirror, False, []  # type: ignore[var-annotated]
        self.put("/var/lib/dpkg/status", "")
        if lists:
            self.put(LIST, "")

    def _do(self, argv: Sequence[str], stdin: str) -> Result:
        if argv[0] == "dpkg-query":
            found = "ii  xfsprogs 6.1.0-1 amd64\n" if self.is_installed else ""
            return Result(0 if self.is_installed else 1, found + "rc  mdadm 4.2-5 amd64\n", "")
        self.did.append("update" if argv[-1] == "update" else "install")
        if argv[-1] == "update":
            if self.mirror == "dead":
                return Result(0, "", DEAD)
            self.put(LIST, "")
            self.mirror = "there"
            return Result(0, "", "")
        if not self.listdir(packages.APT_LISTS):
            return Result(100, "", NO_SUCH)
        if self.mirror != "there":
            return Result(100, "", GONE)
        self.is_installed = True
        return Result(0, "", "")


def test_what_is_there_is_not_missing_and_what_was_removed_is(tmp_path: Path) -> None:
    host = AptHost(tmp_path)
    assert missing(host, ["xfsprogs", "mdadm"]) == ["xfsprogs", "mdadm"]
    host.is_installed = True
    assert missing(host, ["xfsprogs", "mdadm"]) == ["mdadm"]


@pytest.mark.parametrize(
    ("mirror", "lists", "did"),
    [
        pytest.param("there", True, ["install"], id="good lists are not fetched again"),
        pytest.param("there", False, ["update", "install"], id="a host that was just installed has none"),
        pytest.param("moved on", True, ["install", "update", "install"], id="old lists name what is gone"),
    ],
)
def test_lists_are_fetched_when_they_are_needed(tmp_path: Path, mirror: str, lists: bool, did: list[str]) -> None:
    host = AptHost(tmp_path, mirror, lists)
    packages.install(host, ["xfsprogs"], missing)
    assert host.is_installed and host.did == did


@pytest.mark.parametrize("lists", [True, False])
def test_a_mirror_that_does_not_answer_is_named(tmp_path: Path, lists: bool) -> None:
    with pytest.raises(PackageError) as error:
        packages.install(AptHost(tmp_path, "dead", lists), ["xfsprogs"], missing)
    said = str(error.value)
    assert "http://mirror.example/debian/dists/bookworm/InRelease (Could not connect to mirror.example:80" in said
    assert said.endswith("To see it: sudo apt-get update && sudo apt-get install xfsprogs")


def test_without_a_known_manager_it_says_what_it_looked_for(tmp_path: Path) -> None:
    with pytest.raises(PackageError, match="/var/lib/dpkg/status"):
        packages.install(FakeHost(tmp_path), ["xfsprogs"], missing)


def test_dnf_names_its_mirrors_too() -> None:
    text = (
        "Errors during downloading metadata for repository 'baseos':\n"
        "  - Curl error (6): Couldn't resolve host name for https://mirror.example/repodata/repomd.xml [Could not resolve]\n"
        "  - Status code: 404 for https://mirror.example/repodata/old.xml (IP: 192.0.2.9)\n"
    )
    assert unreached(text) == [
        ("https://mirror.example/repodata/repomd.xml", "Curl error (6): Couldn't resolve host name"),
        ("https://mirror.example/repodata/old.xml", "Status code: 404"),
    ]
