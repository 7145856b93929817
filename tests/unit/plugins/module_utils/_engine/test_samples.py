# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What lies on real files and, where this machine lets us make them, on real loop devices."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpufleet.host.plugins.module_utils._engine import samples
from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import LiveHost, RecordingHost
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import SAMPLES

MIB = 1 << 20
SIZE = 512 * MIB
LUKS2 = b"LUKS\xba\xbe\x00\x02" + b"\0" * 504


def put(image: Path, place: int, data: bytes) -> None:
    with image.open("r+b") as file:
        file.seek(place)
        file.write(data)


def ext4(image: Path) -> None:
    subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=True)


def wiped_ext4(image: Path) -> None:
    ext4(image)
    put(image, 0, bytes(4096))


def wiped_further(image: Path) -> None:
    """As many do by hand: the first 16 MiB are zeros."""
    ext4(image)
    put(image, 0, bytes(16 * MIB))


def tar(image: Path) -> None:
    inner = image.with_suffix(".tar")
    with tarfile.open(inner, "w") as archive:
        archive.add(__file__, arcname="data")
    put(image, 0, inner.read_bytes())


NOISE = random.Random(1).getrandbits(8 * 4 * MIB).to_bytes(4 * MIB, "little")
# How it is made, and what is said of it.
NOT_BLANK: dict[str, tuple[Callable[[Path], None], str]] = {
    "random": (lambda image: put(image, 0, NOISE), "at 0x0: looks random, so it may be encrypted or compressed"),
    "random behind a header elsewhere": (lambda image: put(image, 16 * MIB, NOISE), "at 0x1000000: looks random"),
    "tar": (tar, "at 0x0: looks like a tar archive"),
    "SPDK": (lambda image: put(image, 0, b"SPDKBLOB" + NOISE[:99]), "at 0x0: looks like an SPDK blobstore"),
    "gzip": (lambda image: put(image, 0, b"\x1f\x8b\x08" + NOISE), "looks like gzip data"),
    "text": (lambda image: put(image, 0, b"hello\n" * 500), "at 0x0: looks like text"),
    "ones": (lambda image: put(image, 0, b"\xff" * 16 * MIB), "at 0x0: reads as 0xff throughout"),
    "ext4": (ext4, ""),
    "ext4 without its first 4 KiB": (wiped_ext4, ""),
    "ext4 without its first 16 MiB": (wiped_further, ""),
    "LUKS": (lambda image: put(image, 0, LUKS2), ""),
    "one byte at the end of the head": (lambda image: put(image, 16 * MIB - 1, b"x"), "at 0xffffff: "),
    "one byte at the end": (lambda image: put(image, SIZE - 1, b"x"), "at 0x1fffffff: "),
    "a copy of btrfs": (lambda image: put(image, 64 * MIB, b"_BHRfS_M"), "at 0x4000000: "),
    # Longer than two of the 512 parts, so it is found wherever the samples lie.
    "a hundredth in one piece": (lambda image: put(image, 333 * MIB + 17, NOISE), ""),
}


@pytest.fixture
def image(tmp_path: Path) -> Path:
    made = tmp_path / "disk"
    with made.open("wb") as file:
        file.truncate(SIZE)
    return made


def look(image: Path) -> dict[str, Any]:
    fd = os.open(image, os.O_RDONLY)
    try:
        return samples.look_at(fd, os.lseek(fd, 0, os.SEEK_END))
    finally:
        os.close(fd)


def test_a_fresh_sparse_file_is_blank(image: Path) -> None:
    found = look(image)
    assert found["blank"]
    assert found["read_bytes"] < 60 * MIB
    assert found["samples"] > 512


@pytest.mark.parametrize("kind", NOT_BLANK)
def test_what_holds_anything_is_not_blank(image: Path, kind: str) -> None:
    make, said = NOT_BLANK[kind]
    make(image)
    found = look(image)
    assert not found["blank"]
    assert said in "at 0x%x: %s" % (found["at"], found["like"])


def test_the_bytes_are_those_that_lie_there(image: Path) -> None:
    put(image, 257, b"ustar")
    assert look(image)["bytes"].startswith("75 73 74 61 72 00")


def test_a_small_device_is_read_whole(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.write_bytes(bytes(20 * MIB + 512))
    assert look(small) == {"blank": True, "size": 20 * MIB + 512, "read_bytes": 20 * MIB + 512, "samples": 1}
    put(small, 18 * MIB, b"x")
    assert look(small)["at"] == 18 * MIB


@given(st.integers(min_value=512, max_value=1 << 46).map(lambda size: size // 512 * 512), st.integers())
def test_samples_lie_within_the_device_and_are_bounded(size: int, seed: int) -> None:
    rows = samples.places(size, random.Random(seed))
    assert rows[0][0] == 0
    assert sum(rows[-1]) == size
    assert rows == sorted(rows)
    assert all(start % samples.ALIGNMENT == 0 and length > 0 and start + length <= size for start, length in rows)
    assert sum(length for _start, length in rows) <= 64 * MIB


@given(st.integers(min_value=1 << 30, max_value=1 << 46), st.integers(), st.integers(min_value=0, max_value=10**6))
def test_data_longer_than_two_parts_is_always_found(size: int, seed: int, millionths: int) -> None:
    """As the module says of itself."""
    length = size * 2 // samples.SPREAD + 2 * samples.SAMPLE_BYTES
    start = (size - length) * millionths // 10**6
    assert any(
        place < start + length and start < place + part for place, part in samples.places(size, random.Random(seed))
    )


def test_each_look_is_at_other_places() -> None:
    one, other = (samples.places(1 << 40, random.SystemRandom()) for _look in range(2))
    assert len(set(one) & set(other)) < 60


def test_what_is_no_block_device_is_not_called_blank(image: Path) -> None:
    assert samples.run(str(image)) == (2, "", "%s: is no block device" % image)
    assert samples.run(str(image) + ".gone") == (2, "", "%s.gone: No such file or directory" % image)


def test_the_host_runs_it_like_a_command(image: Path) -> None:
    result = LiveHost().run([SAMPLES, str(image)])
    assert (result.rc, result.stderr, result.unknown) == (2, "%s: is no block device" % image, "")


def test_a_device_that_hangs_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples, "run", lambda _device: sum(range(10**11)))
    result = LiveHost().run([SAMPLES, "/dev/x"], 0.3)
    assert result.unknown == "gpufleet-samples hung: no answer in 0.3 s"


# Loop devices


@pytest.fixture
def loop(image: Path) -> Iterator[str]:
    if os.geteuid() != 0 or not shutil.which("losetup"):
        pytest.skip("only root makes loop devices")
    made = subprocess.run(["losetup", "--find", "--show", str(image)], capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip("no loop devices here: " + made.stderr)
    yield made.stdout.strip()
    subprocess.run(["losetup", "--detach", made.stdout.strip()], check=True)


def test_a_device_is_read_as_it_is_now(loop: str, image: Path) -> None:
    rc, out, err = samples.run(loop)
    assert (rc, json.loads(out)["blank"], err) == (0, True, "")
    with open(loop, "r+b") as device:
        device.seek(100 * MIB)
        device.write(NOISE)
        device.flush()
        os.fsync(device.fileno())
    rc, out, err = samples.run(loop)
    assert rc == 1
    assert json.loads(out)["at"] >= 100 * MIB
    assert err == "%s reads as data at 0x%x: looks random, so it may be encrypted or compressed" % (
        loop,
        json.loads(out)["at"],
    )


def test_a_capture_records_the_verdict_and_no_data(loop: str, image: Path, tmp_path: Path) -> None:
    put(image, 0, b"secret1234567890")
    host = RecordingHost(str(tmp_path / "capture"), "x", "t")
    assert "73 65 63 72 65 74" in host.run([SAMPLES, loop]).stdout
    [recorded] = (tmp_path / "capture/commands").iterdir()
    said = json.loads(json.loads(recorded.read_text())["stdout"])
    assert (said["blank"], said["at"], "bytes" in said) == (False, 0, False)
    assert "73 65 63" not in recorded.read_text()
