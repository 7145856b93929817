# Copyright: (c) 2026, gpufleet.host contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest

from lab import base, image

TARGETS = """\
Debian|bookworm|main|http://mirror.example/debian/|bookworm
Debian|bookworm|contrib|http://mirror.example/debian/|bookworm
Debian|bookworm-updates|main|http://mirror.example/debian/|bookworm-updates
Debian|bookworm-security|main|http://mirror.example/debian-security/|bookworm-security
Debian|trixie|main|http://mirror.example/debian/|trixie
Somebody|bookworm|main|http://other.example/apt/|bookworm
Debian|bookworm|main|http://mirror.example/debian/|bookworm
"""


def test_the_sources_are_debians_main_of_our_release() -> None:
    assert image.select_sources(TARGETS) == [
        "deb http://mirror.example/debian/ bookworm main",
        "deb http://mirror.example/debian/ bookworm-updates main",
        "deb http://mirror.example/debian-security/ bookworm-security main",
    ]


def test_no_source_is_no_line() -> None:
    assert image.select_sources("") == []


def test_packages_are_read_without_comments() -> None:
    assert image.packages("# why\nxfsprogs\n\nlvm2 # and why\n") == ["xfsprogs", "lvm2"]


def test_the_package_list_names_none_twice() -> None:
    names = image.packages((base.LAB / "packages.txt").read_text())
    assert len(set(names)) == len(names)
    assert "linux-image-amd64" in names


def test_the_image_changes_with_its_inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = tmp_path / "key.pub"
    key.write_text("ssh-ed25519 AAAA one\n")
    monkeypatch.setenv("GPUFLEET_LAB_DIR", str(tmp_path))
    monkeypatch.setattr(image, "_public_key", lambda: key)
    first = image.current()
    assert image.current() == first
    assert first.folder == tmp_path / "image"
    key.write_text("ssh-ed25519 BBBB two\n")
    assert image.current().digest != first.digest


def test_an_image_that_is_there_is_reused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    built = image.Image(tmp_path, "0123456789ab")
    built.disk.touch()
    monkeypatch.setattr(image, "current", lambda: built)
    assert image.build() == built
    assert "image 0123456789ab is up to date: reused" in capsys.readouterr().out


def test_only_images_that_hosts_stand_on_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUFLEET_LAB_DIR", str(tmp_path))
    folder = tmp_path / "image"
    folder.mkdir()
    for name in ("base-aaa.raw", "kernel-aaa", "base-bbb.raw", "base-ccc.part"):
        (folder / name).touch()
    image.prune({"aaa"})
    assert sorted(path.name for path in folder.iterdir()) == ["base-aaa.raw", "kernel-aaa"]
