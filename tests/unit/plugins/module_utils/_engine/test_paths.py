# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What other users put in root's way: links, pipes, devices, programs and folders."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Any, Iterator

import every_area
import pytest

from ansible_collections.gpufleet.host.plugins.module_utils._engine import paths
from ansible_collections.gpufleet.host.plugins.module_utils._engine.engine import run_area
from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import LiveHost, RecordingHost
from ansible_collections.gpufleet.host.plugins.module_utils._engine.journal import Journal
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import Unknown

NOBODY = 65534
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")


def reason(answer: object) -> str:
    assert isinstance(answer, Unknown), answer
    return answer.reason


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """A secret of root's, an environment of a user's, and one of root's."""
    (tmp_path / "root").mkdir()
    (tmp_path / "root/key").write_text("SECRET\n", encoding="utf-8")
    for name in ("theirs", "ours"):
        folder = tmp_path / "opt" / name
        folder.mkdir(parents=True)
        (folder / "plain.py").write_text("version = '1'\n", encoding="utf-8")
        (folder / "key.py").symlink_to("../../root/key")
        (folder / "all").symlink_to("../../root")
        os.mkfifo(folder / "pipe.py")
        os.mknod(folder / "device.py", stat.S_IFCHR | 0o600, os.makedev(1, 5))
    for place in [tmp_path / "opt/theirs", *(tmp_path / "opt/theirs").iterdir()]:
        os.lchown(place, NOBODY, NOBODY)
    return tmp_path


def test_a_link_of_another_user_is_not_followed(world: Path) -> None:
    host = LiveHost(str(world))
    assert host.read("/opt/theirs/plain.py") == host.read("/opt/ours/plain.py") == "version = '1'\n"
    assert host.read("/opt/ours/key.py") == host.read("/opt/ours/all/key") == "SECRET\n"
    for path in ("/opt/theirs/key.py", "/opt/theirs/all/key", "/opt/ours/../theirs/all/../all/key"):
        assert "link of user 65534, which is not followed" in reason(host.read(path)), path
    assert (host.listdir("/opt/ours/all"), host.listdir("/opt/theirs/all")) == (["key"], [])
    assert (host.readlink("/opt/ours/all"), host.readlink("/opt/theirs/all")) == ("../../root", None)


def test_a_link_of_another_user_brings_nothing_into_a_capture(world: Path, tmp_path: Path) -> None:
    host = RecordingHost(str(tmp_path / "capture"), "h", "t", LiveHost(str(world)))
    for path in ("key.py", "all", "all/key"):
        for ask in (host.exists, host.read, host.listdir, host.readlink):
            ask("/opt/theirs/" + path)
    files = [place for place in (tmp_path / "capture").rglob("*") if place.is_file()]
    assert not [place for place in files if "SECRET" in place.read_text(encoding="utf-8")]
    assert not [place for place in (tmp_path / "capture").rglob("*") if place.is_symlink()]


@pytest.mark.parametrize("owner", ["ours", "theirs"])
def test_what_is_no_file_is_never_opened(world: Path, owner: str, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    real = os.open

    def note(path: Any, flags: int, *more: Any, **options: Any) -> int:
        if not flags & os.O_PATH:
            opened.append(str(path))
        return real(path, flags, *more, **options)

    monkeypatch.setattr(os, "open", note)
    host = LiveHost(str(world))
    assert reason(host.read("/opt/%s/pipe.py" % owner)) == "is a named pipe"
    assert reason(host.read("/opt/%s/device.py" % owner)) == "is a device", "to open a device may do something"
    assert opened == []
    assert host.read("/opt/%s/plain.py" % owner)
    assert opened == ["plain.py"]


def test_what_is_exchanged_between_look_and_open_is_not_read(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a user does in a loop: a file when it is looked at, a pipe or a link when it is opened."""
    real = paths._opened

    def exchange(folder: int, name: str, seen: os.stat_result) -> int:
        os.unlink(world / "opt/theirs/plain.py")
        os.symlink("/etc/shadow", world / "opt/theirs/plain.py")
        return real(folder, name, seen)

    monkeypatch.setattr(paths, "_opened", exchange)
    assert reason(LiveHost(str(world)).read("/opt/theirs/plain.py")) == os.strerror(errno.ELOOP)

    def replace(folder: int, name: str, seen: os.stat_result) -> int:
        os.rename(world / "opt/ours/plain.py", world / "opt/ours/old.py")
        (world / "opt/ours/plain.py").write_text("another\n", encoding="utf-8")
        return real(folder, name, seen)

    monkeypatch.setattr(paths, "_opened", replace)
    assert "exchanged" in reason(LiveHost(str(world)).read("/opt/ours/plain.py"))


def test_root_believes_only_files_that_nobody_else_can_change(world: Path) -> None:
    host = LiveHost(str(world))
    world.chmod(0o755)
    assert host.read_own("/opt/ours/plain.py") == host.read_own("/opt/ours/all/../opt/ours/plain.py")
    assert reason(host.read_own("/opt/theirs/plain.py")) == "theirs belongs to user 65534"
    os.chown(world / "opt/ours/plain.py", NOBODY, NOBODY)
    assert reason(host.read_own("/opt/ours/plain.py")) == "plain.py belongs to user 65534"
    os.chown(world / "opt/ours/plain.py", 0, 0)
    for mode in (0o775, 0o757, 0o1777):
        (world / "opt").chmod(mode)
        assert reason(host.read_own("/opt/ours/plain.py")) == "opt can be written by others than its owner"
    assert host.read_own("/opt/none") is None or reason(host.read_own("/opt/none"))


# Programs


@pytest.fixture
def folders(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, Path]]:
    """Two folders of a PATH, below folders that are root's alone as /tmp is not."""
    top = Path("/run/gpufleet-test-%d" % os.getpid())
    first, second = top / "first", top / "second"
    for folder in (first, second):
        folder.mkdir(parents=True)
        (folder / "tool").write_text("#!/bin/sh\necho %s\n" % folder.name, encoding="utf-8")
        (folder / "tool").chmod(0o755)
    monkeypatch.setattr(paths, "FOLDERS", (str(first), str(second)))
    yield first, second
    for place in sorted(top.rglob("*"), reverse=True):
        place.rmdir() if place.is_dir() and not place.is_symlink() else place.unlink()
    top.rmdir()


def test_a_command_is_the_first_that_only_root_can_change(folders: tuple[Path, Path]) -> None:
    first, second = folders
    host = LiveHost()
    assert host.run(["tool"]).stdout == "first\n"
    os.chown(first / "tool", NOBODY, NOBODY)
    assert host.run(["tool"]).stdout == "second\n"
    os.chown(first / "tool", 0, 0)
    first.chmod(0o775)
    assert host.run(["tool"]).stdout == "second\n"
    assert paths.own_folders() == str(second), "nor do its own commands come from there"
    (second / "tool").chmod(0o757)
    refused = "%s/tool is not started as root: first can be written by others than its owner" % first
    assert host.run(["tool"]).unknown == host.execute(["tool"], "", 5).unknown == refused
    assert host.run(["none"]).unknown == "none is not installed"


def test_a_program_that_another_user_made_or_links_to_is_not_started(folders: tuple[Path, Path]) -> None:
    first, second = folders
    host = LiveHost()
    (first / "link").symlink_to(second / "tool")
    assert host.run([str(first / "link")]).stdout == "second\n"
    os.lchown(first / "link", NOBODY, NOBODY)
    assert "link of user 65534" in host.run([str(first / "link")]).unknown
    os.chown(second, NOBODY, NOBODY)
    assert "second belongs to user 65534" in host.run([str(second / "tool")]).unknown


def test_a_command_starts_at_the_top_and_not_where_somebody_stands(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first, _second = folders
    (first / "where").write_text("#!/bin/sh\npwd\n", encoding="utf-8")
    (first / "where").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    assert LiveHost().run(["where"]).stdout == "/\n"


# Folders that are made


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_what_is_written_has_its_mode_whatever_the_umask(mask: int, tmp_path: Path) -> None:
    host = LiveHost(str(tmp_path))
    before = os.umask(mask)
    try:
        host.write("/etc/a/b/map.json", "{}\n")
        host.write("/etc/a/secret", "x\n", 0o600)
    finally:
        os.umask(before)
    modes = {str(place.relative_to(tmp_path)): stat.S_IMODE(place.stat().st_mode) for place in tmp_path.rglob("*")}
    assert modes == {"etc": 0o755, "etc/a": 0o755, "etc/a/b": 0o755, "etc/a/b/map.json": 0o644, "etc/a/secret": 0o600}


@pytest.mark.parametrize("mask", [0o000, 0o077])
def test_what_a_command_makes_does_not_follow_the_umask_either(mask: int) -> None:
    before = os.umask(mask)
    try:
        assert LiveHost().run(["sh", "-c", "umask"]).stdout == "0022\n"
        assert os.umask(mask) == mask
    finally:
        os.umask(before)


@pytest.mark.parametrize("mask", [0o000, 0o077])
@pytest.mark.parametrize("name", every_area.NAMES)
def test_all_that_an_area_leaves_has_its_mode(name: str, mask: int, tmp_path: Path) -> None:
    sample = every_area.sample(name)
    host = sample.make(tmp_path / "world")
    there = set(Path(host.root).rglob("*"))
    before = os.umask(mask)
    try:
        report = run_area(
            sample.area, sample.want, host, mode="apply", allow_risk="destructive", journal=Journal(host.root), run="r",
            settle_s=(0.0,),
        )  # fmt: skip
    finally:
        os.umask(before)
    targets = [Path(host.root + row.step.target) for row in report.steps if row.step.kind == "file"]
    ours = {place for target in targets for place in (target, *target.parents) if place not in there}
    ours = {place for place in ours if place.exists() and Path(host.root) in place.parents}
    for place in ours:
        wanted = 0o755 if place.is_dir() or place.name == "gpu-run" else 0o644
        assert stat.S_IMODE(place.stat().st_mode) == wanted, place
    journal = Path(host.root + "/var/lib/gpufleet")
    assert name == "platform" or journal.is_dir()
    for place in [journal, *journal.glob("*")] if journal.is_dir() else []:
        assert stat.S_IMODE(place.stat().st_mode) == (0o700 if place.is_dir() else 0o600), place


def test_a_file_where_a_folder_belongs_is_told(tmp_path: Path) -> None:
    (tmp_path / "etc").write_text("", encoding="utf-8")
    with pytest.raises(OSError):
        LiveHost(str(tmp_path)).write("/etc/a/x", "")
