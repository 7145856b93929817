# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Archives that want memory, time or folders without end are refused before they get them; those that tar makes are read."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Callable

import pytest
from every_area import ROOT

from ansible_collections.gpufleet.host.plugins.module_utils._engine import archive
from ansible_collections.gpufleet.host.plugins.module_utils._engine.archive import CaptureError

MOST_MEGABYTES = 60
# Of CPU; the machine may be a slow one.
MOST_SECONDS = 5
# Unpacks in a process of its own, and tells what that took beyond what the process had before.
MEASURED = """
import json, resource, sys, time
sys.path.insert(0, sys.argv[3])
from ansible_collections.gpufleet.host.plugins.module_utils._engine import archive
said = ""
before = resource.getrusage(resource.RUSAGE_SELF)
try:
    archive.unpack(sys.argv[1], sys.argv[2])
except archive.CaptureError as error:
    said = str(error)
after = resource.getrusage(resource.RUSAGE_SELF)
seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
print(json.dumps([said, (after.ru_maxrss - before.ru_maxrss) / 1024, seconds]))
"""


def header(name: str, kind: bytes = tarfile.REGTYPE, size: int = 0) -> bytes:
    member = tarfile.TarInfo(name)
    member.type, member.size = kind, size
    return member.tobuf(tarfile.GNU_FORMAT)


def extended(text: bytes, kind: bytes = tarfile.XHDTYPE) -> bytes:
    return header("x", kind, len(text)) + text + bytes(-len(text) % 512)


def record(key: str, value: bytes) -> bytes:
    body = b" %s=%s\n" % (key.encode(), value)
    size = next(size for size in range(len(body), len(body) + 9) if len(b"%d" % size) + len(body) == size)
    return b"%d" % size + body


def packed(data: bytes) -> bytes:
    return gzip.compress(data + bytes(1024), 9)


def named_gzip() -> bytes:
    """A name of 50 MB in the header of gzip, which Python reads byte by byte."""
    body = packed(header("a"))
    return body[:3] + b"\x08" + body[4:10] + b"n" * 50_000_000 + b"\0" + body[10:]


BOMBS: dict[str, tuple[Callable[[], bytes], str]] = {
    "records that claim the same": (lambda: packed(extended(b"5 aaa" * 50_000)), "a header of 250000 bytes"),
    "small ones of the same": (lambda: packed(extended(b"5 aaa" * 3200) + header("a")), "header is damaged"),
    "digits without end": (lambda: packed(extended(b"9" * 65_536)), "a header of 65536 bytes"),
    "fewer digits, often": (lambda: packed((extended(b"9" * 16_000) + header("a")) * 500), "header is damaged"),
    "a length with a thousand noughts": (lambda: packed(extended(b"0" * 9000 + b"12 path=abc\n")), "header is damaged"),
    "a size of digits": (lambda: packed(extended(record("size", b"9" * 9000)) + header("a")), "has no size"),
    "a size of another script": (lambda: packed(extended(record("size", "٣".encode())) + header("a")), "has no size"),
    "headers of headers": (lambda: packed(extended(record("path", b"a")) * 100_000), "headers without a member"),
    "global headers": (lambda: packed(extended(record("path", b"a"), b"g") * 100_000), "headers without a member"),
    "headers that are large together": (
        lambda: packed(b"".join(extended(record("comment", b"c" * 16_000)) + header("f/%d" % n) for n in range(2500))),
        "headers of more than",
    ),
    "a path of folders": (lambda: packed(extended(record("path", b"a/" * 7000 + b"x")) + header("a")), "has a path of more"),
    "a long name of folders": (
        lambda: packed(extended(b"a/" * 7000 + b"\0", b"L") + header("a")), "has a path of more",
    ),
    "a name of gzip": (named_gzip, ""),
    "pieces of nothing": (lambda: gzip.compress(b"") * 150_000, "more than 100000 pieces"),
    "files of nothing": (lambda: packed(header("f/x") * 300_000), "comes twice"),
    "a negative size": (lambda: packed(header("a")[:124] + b"\xff" * 12 + header("a")[136:]), "header is damaged"),
    "sparse": (lambda: packed(extended(record("GNU.sparse.realsize", b"9")) + header("a")), "neither a file"),
}  # fmt: skip


@pytest.mark.parametrize(("make", "reason"), BOMBS.values(), ids=BOMBS.keys())
def test_a_bomb_costs_little(make: Callable[[], bytes], reason: str, tmp_path: Path) -> None:
    (tmp_path / "c.tar.gz").write_bytes(make())
    (tmp_path / "out").mkdir()
    argv = [
        sys.executable,
        "-c",
        MEASURED,
        str(tmp_path / "c.tar.gz"),
        str(tmp_path / "out"),
        str(ROOT / ".cache/collections"),
    ]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    said, megabytes, seconds = json.loads(done.stdout)
    assert reason in said and len(said) < 1000
    assert megabytes < MOST_MEGABYTES
    assert seconds < MOST_SECONDS


def test_folders_count_as_members(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "LIMIT_MEMBERS", 1000)
    data = b"".join(header("%d/" % n + "a/" * 40, tarfile.DIRTYPE) for n in range(100))
    (tmp_path / "c.tar.gz").write_bytes(packed(data))
    with pytest.raises(CaptureError, match="more than 1000 members"):
        archive.unpack(str(tmp_path / "c.tar.gz"), str(tmp_path))
    assert len(list(tmp_path.rglob("*"))) <= 1001


def test_what_stands_behind_the_end_is_bounded_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, limit in (("LIMIT_BYTES", 1 << 20), ("LIMIT_HEADERS_BYTES", 1 << 10), ("LIMIT_MEMBERS", 10)):
        monkeypatch.setattr(archive, name, limit)
    (tmp_path / "c.tar.gz").write_bytes(packed(header("a") + bytes(2 << 20)))
    with pytest.raises(CaptureError, match="unpacks to more than"):
        archive.unpack(str(tmp_path / "c.tar.gz"), str(tmp_path))


# Made by tar


@pytest.mark.parametrize("format", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_what_tarfile_packs_is_unpacked(format: int, tmp_path: Path) -> None:
    long = "folder/" * 12 + "x" * 60 if format == tarfile.USTAR_FORMAT else "folder/" * 40 + "größe-%s" % ("x" * 150)
    texts = {"files/empty": b"", "files/block": b"b" * 512, "files/more": b"m" * 200_001, long: b"deep"}
    with tarfile.open(tmp_path / "c.tar.gz", "w:gz", format=format) as tar:
        for name, text in texts.items():
            member = tarfile.TarInfo(name)
            member.size, member.mtime = len(text), 1.5
            tar.addfile(member, io.BytesIO(text))
        link = tarfile.TarInfo("files/link")
        link.type, link.linkname = tarfile.SYMTYPE, "../" + "t" * (90 if format == tarfile.USTAR_FORMAT else 190)
        tar.addfile(link)
        folder = tarfile.TarInfo("files/folder")
        folder.type = tarfile.DIRTYPE
        tar.addfile(folder)
    (tmp_path / "out").mkdir()
    archive.unpack(str(tmp_path / "c.tar.gz"), str(tmp_path / "out"))
    assert {name: (tmp_path / "out" / name).read_bytes() for name in texts} == texts
    assert os.readlink(tmp_path / "out/files/link") == link.linkname
    assert (tmp_path / "out/files/folder").is_dir()


@pytest.mark.parametrize(
    "options", [[], ["--format=v7"], ["--format=pax"], ["--format=oldgnu"], ["--owner=%s:2097152" % ("o" * 40)]]
)
def test_what_tar_packs_is_unpacked(options: list[str], tmp_path: Path) -> None:
    (tmp_path / "in/files").mkdir(parents=True)
    (tmp_path / "in/files/x").write_bytes(b"x" * 1000)
    (tmp_path / "in/files/l").symlink_to("x")
    subprocess.run(["tar", *options, "-czf", tmp_path / "c.tar.gz", "-C", tmp_path / "in", "."], check=True)
    (tmp_path / "out").mkdir()
    archive.unpack(str(tmp_path / "c.tar.gz"), str(tmp_path / "out"))
    assert (tmp_path / "out/files/l").read_bytes() == b"x" * 1000


def test_an_archive_in_pieces_is_one(tmp_path: Path) -> None:
    data = header("files/x", size=700) + b"y" * 700 + bytes(324) + bytes(1024)
    (tmp_path / "c.tar.gz").write_bytes(
        b"".join(gzip.compress(data[at : at + 300]) for at in range(0, len(data), 300)) + bytes(99)
    )
    archive.unpack(str(tmp_path / "c.tar.gz"), str(tmp_path))
    assert (tmp_path / "files/x").read_bytes() == b"y" * 700


def test_what_follows_the_end_is_refused(tmp_path: Path) -> None:
    (tmp_path / "c.tar.gz").write_bytes(packed(header("files/x")) + b"more")
    with pytest.raises(CaptureError, match="cannot be unpacked"):
        archive.unpack(str(tmp_path / "c.tar.gz"), str(tmp_path))
