# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A recorded capture as a whole: scrubbed in its files, names, links and commands, and packed for its owner only."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from ansible_collections.gpufleet.host.plugins.module_utils._engine import capture
from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import (
    CaptureHost,
    LiveHost,
    RecordingHost,
    Result,
    open_capture,
)

DISK = "nvme-SAMSUNG_MZQL23T8_S64HNE0R600123"
UUID = "c7c3a21e-9d2c-4f0e-8f0a-5e1f6f0c0d0e"


class Said(LiveHost):
    def run(self, argv: object, deadline_s: float = 10.0) -> Result:
        return Result(0, "serial S64HNE0R600123 of gpu07, UUID %s\n" % UUID, "gpu07: no S64HNE0R600123\n")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    world = tmp_path / "world"
    files: dict[str, bytes] = {
        "/sys/class/nvme/nvme0/serial": b"S64HNE0R600123      \n",
        "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c": b"\x06\0\0\0\x01",
        "/sys/bus/pci/devices/0000:19:00.0/config": bytes(range(256)),
        "/etc/notes": b"caf\xe9 S64HNE0R600123 gpu07\r\n\xff\n",
        "/etc/fstab": b"UUID=%s /data xfs defaults 0 0\n" % UUID.encode(),
    }
    for path, data in files.items():
        (world / path[1:]).parent.mkdir(parents=True, exist_ok=True)
        (world / path[1:]).write_bytes(data)
    for path, target in {"/dev/disk/by-id/" + DISK: "../../nvme0n1", "/dev/disk/by-uuid/" + UUID: "../../nvme0n1",
                         "/dev/mine": "/dev/disk/by-id/" + DISK}.items():  # fmt: skip
        (world / path[1:]).parent.mkdir(parents=True, exist_ok=True)
        (world / path[1:]).symlink_to(target)
    recording = RecordingHost(
        str(tmp_path / "capture"), "gpu07", "2026-01-31T12:00:00Z", Said(str(world)), ["platform"]
    )
    for path in files:
        recording.read(path)
    (world / "sys/S64HNE0R600123").mkdir()
    recording.read("/sys/S64HNE0R600123")
    for place in ("/dev/disk/by-id", "/dev/disk/by-uuid", "/dev"):
        recording.listdir(place)
    recording.readlink("/dev/mine")
    recording.run(["blkid", "/dev/disk/by-id/" + DISK])
    return tmp_path / "capture"


def test_files_names_links_and_commands_go_together(folder: Path) -> None:
    capture.scrub_folder(str(folder), "salt")
    host = CaptureHost(str(folder))
    serial = str(host.read("/sys/class/nvme/nvme0/serial")).strip()
    disk = DISK.replace("S64HNE0R600123", serial)
    uuid = str(host.read("/etc/fstab")).split(" ", 1)[0][5:]
    assert host.listdir("/dev/disk/by-id") == [disk]
    assert host.listdir("/dev/disk/by-uuid") == [uuid]
    assert host.readlink("/dev/disk/by-id/" + disk) == "../../nvme0n1"
    assert host.readlink("/dev/mine") == "/dev/disk/by-id/" + disk
    name = host.about["hostname"]
    assert host.read("/etc/notes") == "caf\udce9 %s %s\r\n\udcff\n" % (serial, name)
    said = host.run(["blkid", "/dev/disk/by-id/" + disk])
    assert (said.stdout, said.stderr) == (
        "serial %s of %s, UUID %s\n" % (serial, name, uuid),
        "%s: no %s\n" % (name, serial),
    )
    assert str(host.read("/sys/" + serial)) == "unknown (is a directory)"
    assert host.about["taken"] == "2026-01-31T12:00:00Z"
    host.answers_for(["platform"])
    assert host.is_live


def test_bytes_stay_bytes(folder: Path) -> None:
    capture.scrub_folder(str(folder), "salt")
    files = folder / "files/sys"
    assert (files / "bus/pci/devices/0000:19:00.0/config").read_bytes() == bytes(range(256))
    variable = files / "firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
    assert variable.read_bytes() == b"\x06\0\0\0\x01"


def test_nothing_of_a_host_is_left_anywhere(folder: Path) -> None:
    capture.scrub_folder(str(folder), "salt")
    for place in folder.rglob("*"):
        texts = [
            place.name,
            os.readlink(place) if place.is_symlink() else place.read_text("latin-1") if place.is_file() else "",
        ]
        for word in ("S64HNE0R600123", "gpu07", UUID):
            assert not any(word in text for text in texts), place


def test_a_packed_capture_is_its_owners_and_replays(folder: Path, tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        capture.pack(str(folder), str(tmp_path / "c.tar.gz"))
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "c.tar.gz").stat().st_mode) == 0o600
    (tmp_path / "scratch").mkdir()
    assert open_capture(str(tmp_path / "c.tar.gz"), str(tmp_path / "scratch")).about["hostname"] == "gpu07"


def test_a_flood_in_the_log_takes_seconds_not_hours(tmp_path: Path) -> None:
    """Ten thousand lines with a serial number and a MAC each."""
    RecordingHost(str(tmp_path), "gpu07", "t")
    log = "".join(
        "2026-11-30T06:00:00+0000 gpu07 kernel: usb 1-1: SerialNumber: AB%06dX at 00:11:22:33:%02x:%02x\n"
        % (number, number % 256, number // 256)
        for number in range(10_000)
    )
    command = {"argv": ["journalctl", "-k"], "rc": 0, "stdout": log, "stderr": ""}
    (tmp_path / "commands/0000.json").write_text(json.dumps(command))
    started = time.process_time()
    capture.scrub_folder(str(tmp_path), "salt")
    assert time.process_time() - started < 10
    after = json.loads((tmp_path / "commands/0000.json").read_text())["stdout"]
    assert "AB00" not in after
    assert "00:11:22:33" not in after
    assert len(after.splitlines()) == 10_000


LEAVE = """
import os, signal, sys, tempfile
sys.path.insert(0, %r)
tempfile.tempdir = %r
from ansible_collections.gpufleet.host.plugins.module_utils._engine.capture import recording_folder
with recording_folder() as folder:
    open(os.path.join(folder, "secret"), "w").close()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_capture_left_is_removed_by_the_next_and_one_at_work_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    top = next(path for path in sys.path if (Path(path) / "ansible_collections/gpufleet/host").exists())
    subprocess.run([sys.executable, "-c", LEAVE % (top, str(tmp_path))], check=False)
    [left] = tmp_path.iterdir()
    assert (left / "secret").exists(), "the trap is one"
    (tmp_path / "gpufleet-recording-link").symlink_to(tmp_path / "elsewhere")
    with capture.recording_folder() as at_work, capture.recording_folder() as other:
        assert Path(at_work).exists() and at_work != other
        assert not left.exists()
        assert Path(at_work).stat().st_mode & 0o777 == 0o700
    assert [path.name for path in tmp_path.iterdir()] == ["gpufleet-recording-link"]
