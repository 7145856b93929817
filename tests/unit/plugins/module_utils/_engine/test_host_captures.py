# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Captures: what was read live replays the same, and a broken or hostile one harms nobody."""

from __future__ import annotations

import errno
import gzip
import io
import json
import os
import tarfile
import time
from pathlib import Path
from typing import Any, Callable

import pytest

from ansible_collections.gpufleet.host.plugins.module_utils._engine import archive
from ansible_collections.gpufleet.host.plugins.module_utils._engine import host as host_module
from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import (
    CaptureError,
    CaptureHost,
    LiveHost,
    RecordingHost,
    Result,
    open_capture,
)
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import Unknown

ABOUT = json.dumps({"format": 1, "hostname": "gpu01", "taken": "2026-01-31T12:00:00Z"})


def capture(folder: Path, *, about: str = ABOUT, **commands: str) -> Path:
    (folder / "files").mkdir(parents=True)
    (folder / "commands").mkdir()
    (folder / "capture.json").write_text(about)
    for name, text in commands.items():
        (folder / "commands" / (name + ".json")).write_text(text)
    return folder


# Replaying


def test_a_sparse_capture_of_one_command_works(tmp_path: Path) -> None:
    (tmp_path / "capture.json").write_text(ABOUT)
    (tmp_path / "commands").mkdir()
    (tmp_path / "commands/0000.json").write_text(json.dumps({"argv": ["nvidia-smi"], "rc": 0, "stdout": "x"}))
    host = CaptureHost(str(tmp_path))
    assert host.run(["nvidia-smi"]) == Result(0, "x", "")
    assert "was not recorded" in str(host.run(["nvidia-smi", "-q"]).text())
    assert host.read("/etc/hostname") is None
    assert host.listdir("/sys") == []
    assert not host.exists("/")
    assert host.readlink("/sys/class/net/eth0") is None


def test_links_are_followed_as_on_the_captured_host(tmp_path: Path) -> None:
    files = capture(tmp_path) / "files"
    (files / "sys/devices/pci0/nvme0").mkdir(parents=True)
    (files / "sys/devices/pci0/nvme0/model").write_text("FAST\n")
    (files / "sys/class/nvme").mkdir(parents=True)
    (files / "sys/class/nvme/nvme0").symlink_to("../../devices/pci0/nvme0")
    (files / "etc").mkdir()
    (files / "etc/model").symlink_to("/sys/class/nvme/nvme0/model")
    host = CaptureHost(str(tmp_path))
    for path in ("/sys/class/nvme/nvme0/model", "/etc/model", "/sys/class/nvme/nvme0/../nvme0/model", "//etc/./model"):
        assert host.read(path) == "FAST\n", path
    assert host.exists("/etc/model")
    assert host.listdir("/sys/class/nvme/nvme0") == ["model"]
    assert host.readlink("/sys/class/nvme/nvme0") == "../../devices/pci0/nvme0"
    assert host.readlink("/etc/model") == "/sys/class/nvme/nvme0/model"


@pytest.mark.parametrize("target", ["SECRET", "../../../../../../../../../../../../SECRET", "up", "/a/up/SECRET"])
def test_no_link_leads_out_of_a_capture(tmp_path: Path, target: str) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of the machine that replays")
    files = capture(tmp_path / "capture") / "files"
    (files / "a").mkdir()
    (files / "a/up").symlink_to("../../../..")
    (files / "a/x").symlink_to(target.replace("SECRET", str(secret).lstrip("/")))
    (files / "a/y").symlink_to(str(secret))
    host = CaptureHost(str(tmp_path / "capture"))
    for path in ("/a/x", "/a/y", "/../../secret", "/a/up/secret", "/a/up/../secret"):
        answer = host.read(path)
        assert answer is None or isinstance(answer, Unknown), path
        assert host.listdir(path) in ([], ["a"]), path


@pytest.mark.parametrize("name", ["files", "commands", "capture.json"])
def test_a_capture_whose_parts_are_links_is_refused(tmp_path: Path, name: str) -> None:
    inside, outside = capture(tmp_path / "capture"), capture(tmp_path / "outside")
    if name == "capture.json":
        (inside / name).unlink()
    else:
        (inside / name).rmdir()
    (inside / name).symlink_to(outside / name)
    with pytest.raises(CaptureError, match="symbolic link"):
        CaptureHost(str(inside))


def test_loops_of_links_end(tmp_path: Path) -> None:
    files = capture(tmp_path) / "files"
    (files / "self").symlink_to("self")
    (files / "a").symlink_to("b/x")
    (files / "b").symlink_to("a/x")
    (files / "grow").symlink_to("grow/grow")
    host = CaptureHost(str(tmp_path))
    for path in ("/self", "/self/x", "/a", "/b", "/grow"):
        assert host.read(path) is None
        assert not host.exists(path)
        assert host.listdir(path) == []


def test_what_is_no_file_in_a_capture_is_not_opened(tmp_path: Path) -> None:
    files = capture(tmp_path) / "files"
    os.mkfifo(files / "pipe")
    (files / "folder").mkdir()
    host = CaptureHost(str(tmp_path))
    assert isinstance(host.read("/pipe"), Unknown)
    assert isinstance(host.read("/folder"), Unknown)


@pytest.mark.parametrize(
    ("about", "reason"),
    [
        ("", "capture.json"),
        ("{", "capture.json"),
        ("[" * 200_000, "capture.json"),
        ("[1]", "format 1"),
        ("{}", "format 1"),
        ('{"format": 2}', "format 1"),
        ('{"format": "1"}', "format 1"),
        ("\0\1\2", "capture.json"),
    ],
)
def test_a_capture_that_says_nothing_of_itself_is_refused(tmp_path: Path, about: str, reason: str) -> None:
    with pytest.raises(CaptureError, match=reason):
        CaptureHost(str(capture(tmp_path / "c", about=about)))


def test_a_folder_that_is_no_capture_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match=r"capture\.json is missing"):
        CaptureHost(str(tmp_path))
    with pytest.raises(CaptureError, match="neither a folder nor a file"):
        open_capture(str(tmp_path / "nowhere"), str(tmp_path))


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "7", "null", '{"argv": ["a"]}', '{"argv": 5, "rc": 0, "stdout": ""}', "[" * 200_000,
     '{"argv": ["a"], "rc": "zero", "stdout": ""}', '{"argv": ["a"], "rc": 1e999, "stdout": ""}'],
)  # fmt: skip
def test_a_broken_command_is_named(tmp_path: Path, text: str) -> None:
    with pytest.raises(CaptureError, match=r"0007\.json: not a recorded command"):
        CaptureHost(str(capture(tmp_path / "c", **{"0007": text})))


def test_a_command_that_wants_our_memory_is_refused(tmp_path: Path) -> None:
    """Ten megabytes of one text are read, of lists in lists they are not."""
    head = '{"argv": ["a"], "rc": 0, "stdout": "'
    long = capture(tmp_path / "long", a=head + r"\\" * 4_000_000 + r"\"" + '"}')
    assert len(CaptureHost(str(long)).run(["a"]).stdout) == 4_000_001
    junks = ("[]," * 3_000_000 + "[]", "[" * 9_000_000, r'["\""],' * 2_000_000 + "[]", "9" * 9_000_000)
    for number, junk in enumerate(junks):
        folder = capture(tmp_path / str(number), a=head + '", "junk": [' + junk + "]}")
        started = time.process_time()
        with pytest.raises(CaptureError, match=r"a\.json: not a recorded command"):
            CaptureHost(str(folder))
        assert time.process_time() - started < 2


def test_what_commands_say_can_be_written_as_utf8(tmp_path: Path) -> None:
    text = '{"argv": ["a", "\\ud800"], "rc": 0, "stdout": "\\udfff", "stderr": null}'
    host = CaptureHost(str(capture(tmp_path / "c", **{"0": text})))
    assert host.run(["a", "?"]).stdout == "?"


def test_what_a_capture_says_of_itself_is_text(tmp_path: Path) -> None:
    about = '{"format": 1, "hostname": ["a", "\\ud800"], "taken": "\\ud800"}'
    host = CaptureHost(str(capture(tmp_path / "c", about=about)))
    assert (host.about["hostname"], host.about["taken"]) == ("['a', '\\ud800']", "?")


def test_reasons_of_unread_files_that_are_junk_are_passed_over(tmp_path: Path) -> None:
    folder = capture(tmp_path / "c")
    (folder / "files/sys/x").mkdir(parents=True)
    (folder / "unread.jsonl").write_bytes(
        b'\xff\n{\n[]\n7\n"path"\n{"path": "/sys/x"}\n'
        + b"[" * 100_000
        + b'\n{"path": "/sys/x", "reason": "EIO \\ud800"}\n'
    )
    assert CaptureHost(str(folder)).read("/sys/x") == Unknown("EIO ?")
    (folder / "unread.jsonl").unlink()
    (folder / "unread.jsonl").symlink_to(tmp_path / "elsewhere")
    assert "was not read" in str(CaptureHost(str(folder)).read("/sys/x"))


# Unpacking


def pack(path: Path, *members: tuple[str, Any], about: str | None = ABOUT) -> str:
    """A .tar.gz of (name, content) where the content is a text, or a function that changes the member."""
    with tarfile.open(path, "w:gz") as tar:
        for name, content in ((("capture.json", about),) if about is not None else ()) + members:
            member = tarfile.TarInfo(name)
            data = content.encode() if isinstance(content, str) else b""
            member.size = len(data)
            if callable(content):
                content(member)
            tar.addfile(member, io.BytesIO(data) if member.isreg() and member.size else None)
    return str(path)


def kind(letter: bytes, target: str = "") -> Callable[[tarfile.TarInfo], None]:
    def change(member: tarfile.TarInfo) -> None:
        member.type, member.linkname = letter, target

    return change


def tree(folder: Path) -> list[str]:
    return sorted(str(place.relative_to(folder)) for place in folder.rglob("*"))


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    (tmp_path / "outside/scratch").mkdir(parents=True)
    return tmp_path / "outside/scratch"


@pytest.mark.parametrize("prefix", ["", "./", "gpu01/", "./gpu01/"])
def test_an_archive_is_replayed_with_or_without_a_folder_on_top(tmp_path: Path, scratch: Path, prefix: str) -> None:
    path = pack(
        tmp_path / "c.tar.gz",
        (prefix + "capture.json", ABOUT),
        (prefix + "files/etc", kind(tarfile.DIRTYPE)),
        (prefix + "files/etc/hostname", "gpu01\n"),
        (prefix + "files/etc/name", kind(tarfile.SYMTYPE, "/etc/hostname")),
        (prefix + "commands/0000.json", '{"argv": ["true"], "rc": 0, "stdout": "", "stderr": ""}'),
        about=None,
    )
    host = open_capture(path, str(scratch))
    assert host.about["hostname"] == "gpu01"
    assert host.read("/etc/name") == "gpu01\n"
    assert host.run(["true"]).ok


HOSTILE: dict[str, tuple[list[tuple[str, Any]], str]] = {
    "a path upwards": ([("../evil", "x")], "leads out of the capture"),
    "a path upwards inside": ([("files/../../evil", "x")], "leads out of the capture"),
    "an absolute path": ([("/tmp/gpufleet-evil", "x")], "leads out of the capture"),
    "a file behind a link upwards": (
        [("files/out", kind(tarfile.SYMTYPE, "../..")), ("files/out/evil", "x")], "behind a symbolic link",
    ),
    "a file behind an absolute link": (
        [("files", kind(tarfile.SYMTYPE, "/tmp")), ("files/gpufleet-evil", "x")], "behind a symbolic link",
    ),
    "a folder behind a link": (
        [("files/out", kind(tarfile.SYMTYPE, "../..")), ("files/out/evil", kind(tarfile.DIRTYPE))],
        "behind a symbolic link",
    ),
    "a file in place of a link": (
        [("files/out", kind(tarfile.SYMTYPE, "../../evil")), ("files/out", "x")], "comes twice",
    ),
    "a file twice": ([("files/x", "x"), ("files/x", "y")], "comes twice"),
    "a link in place of a file": ([("files/x", "x"), ("files/x", kind(tarfile.SYMTYPE, "/"))], "comes twice"),
    "a hard link": ([("files/x", kind(tarfile.LNKTYPE, "/etc/shadow"))], "neither a file"),
    "a character device": ([("files/dev/null", kind(tarfile.CHRTYPE))], "neither a file"),
    "a block device": ([("files/dev/sda", kind(tarfile.BLKTYPE))], "neither a file"),
    "a named pipe": ([("files/pipe", kind(tarfile.FIFOTYPE))], "neither a file"),
    "a file below a file": ([("files/x", "x"), ("files/x/y", "x")], "cannot be unpacked"),
    "a name that is too long": ([("files/" + "x" * 5000, "x")], "cannot be unpacked"),
    "a very deep name": ([("files/" + "x/" * 20_000 + "x", "x")], "cannot be unpacked"),
    "a name with a NUL": ([("files/a\0b", "x"), ("files/a", "x")], "comes twice"),
}  # fmt: skip


@pytest.mark.parametrize(("members", "reason"), HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_archives_are_refused(
    tmp_path: Path, scratch: Path, members: list[tuple[str, Any]], reason: str
) -> None:
    path = pack(tmp_path / "c.tar.gz", *members)
    with pytest.raises(CaptureError, match=reason):
        open_capture(path, str(scratch))
    assert tree(tmp_path / "outside")[0] == "scratch"
    assert not (tmp_path / "evil").exists()
    assert not (tmp_path / "outside/evil").exists()
    assert not Path("/tmp/gpufleet-evil").exists()


def test_links_of_an_archive_stay_inside(tmp_path: Path, scratch: Path) -> None:
    (tmp_path / "outside/secret").write_text("of the machine that replays")
    path = pack(
        tmp_path / "c.tar.gz",
        ("files/up", kind(tarfile.SYMTYPE, "../../secret")),
        ("files/shadow", kind(tarfile.SYMTYPE, "/etc/shadow")),
    )
    host = open_capture(path, str(scratch))
    assert host.read("/up") is None
    assert host.read("/shadow") is None


def test_an_archive_whose_top_is_a_link_is_refused(tmp_path: Path, scratch: Path) -> None:
    capture(tmp_path / "outside/other")
    path = pack(tmp_path / "c.tar.gz", ("gpu01", kind(tarfile.SYMTYPE, "../other")), about=None)
    with pytest.raises(CaptureError, match=r"capture\.json is missing"):
        open_capture(path, str(scratch))


def test_ten_gigabytes_of_zeros_are_refused_before_they_are_unpacked(tmp_path: Path, scratch: Path) -> None:
    header = tarfile.TarInfo("files/zeros")
    header.size = 10 * 1024**3
    with gzip.open(tmp_path / "c.tar.gz", "wb", compresslevel=1) as packed:
        packed.write(header.tobuf())
        packed.write(bytes(1 << 20))  # the rest need not be there: its size alone is too much
    started = time.monotonic()
    with pytest.raises(CaptureError, match="unpacks to more than"):
        open_capture(str(tmp_path / "c.tar.gz"), str(scratch))
    assert time.monotonic() - started < 2
    assert tree(scratch) == []


def test_many_files_that_are_too_much_together_are_refused(
    tmp_path: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "LIMIT_BYTES", 5000)
    path = pack(tmp_path / "c.tar.gz", *[("files/%d" % number, "x" * 1000) for number in range(10)])
    with pytest.raises(CaptureError, match="unpacks to more than"):
        open_capture(path, str(scratch))
    assert len(tree(scratch)) < 8


def test_too_many_members_are_refused(tmp_path: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "LIMIT_MEMBERS", 5)
    path = pack(tmp_path / "c.tar.gz", *[("files/%d" % number, "") for number in range(10)])
    with pytest.raises(CaptureError, match="more than 5 members"):
        open_capture(path, str(scratch))


@pytest.mark.parametrize(
    "letter", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK]
)
def test_a_header_that_wants_our_memory_is_refused(tmp_path: Path, scratch: Path, letter: bytes) -> None:
    header = tarfile.TarInfo("x")
    header.type, header.size = letter, 5 * 1024**3
    with gzip.open(tmp_path / "c.tar.gz", "wb", compresslevel=1) as packed:
        packed.write(header.tobuf())
        packed.write(bytes(1 << 20))
    with pytest.raises(CaptureError, match="a header of"):
        open_capture(str(tmp_path / "c.tar.gz"), str(scratch))


def test_headers_without_end_are_refused(tmp_path: Path, scratch: Path) -> None:
    header = tarfile.TarInfo("././@LongLink")
    header.type, header.size = tarfile.GNUTYPE_LONGNAME, 4
    with gzip.open(tmp_path / "c.tar.gz", "wb", compresslevel=1) as packed:
        packed.write((header.tobuf() + b"abc\0" + bytes(508)) * 3000)
    with pytest.raises(CaptureError):
        open_capture(str(tmp_path / "c.tar.gz"), str(scratch))


def test_an_archive_cut_off_anywhere_is_refused(tmp_path: Path, scratch: Path) -> None:
    whole = Path(pack(tmp_path / "c.tar.gz", ("files/x", "x" * 3000), ("files/y", "y"))).read_bytes()
    for size in [*range(0, len(whole), 7), len(whole) - 1]:
        (tmp_path / "cut.tar.gz").write_bytes(whole[:size])
        place = scratch / str(size)
        place.mkdir()
        with pytest.raises(CaptureError):
            open_capture(str(tmp_path / "cut.tar.gz"), str(place))


def test_an_archive_with_flipped_bits_is_refused(tmp_path: Path, scratch: Path) -> None:
    whole = Path(pack(tmp_path / "c.tar.gz", ("files/x", "x" * 3000), ("files/y", "y"))).read_bytes()
    # The header of gzip (time, system, "c.tar") carries no checksum.
    for place in range(16, len(whole)):
        (tmp_path / "bad.tar.gz").write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        folder = scratch / str(place)
        folder.mkdir()
        with pytest.raises(CaptureError):
            open_capture(str(tmp_path / "bad.tar.gz"), str(folder))


@pytest.mark.parametrize(
    "data",
    [b"", b"PK\3\4zip", b"\x1f\x8b", gzip.compress(b""), gzip.compress(b"no tar" * 200)],
    ids=["empty", "zip", "cut", "nothing packed", "no tar packed"],
)
def test_what_is_no_archive_is_refused(tmp_path: Path, scratch: Path, data: bytes) -> None:
    (tmp_path / "c.tar.gz").write_bytes(data)
    with pytest.raises(CaptureError, match=r"c\.tar\.gz|capture\.json is missing"):
        open_capture(str(tmp_path / "c.tar.gz"), str(scratch))


# Recording


@pytest.fixture
def world(tmp_path: Path) -> LiveHost:
    """A small host as sysfs and /etc look: folders full of links, files that cannot be read, other encodings."""
    root = tmp_path / "world"
    pci = root / "sys/devices/pci0000:00/0000:00:01.0"
    (pci / "nvme/nvme0").mkdir(parents=True)
    (pci / "numa_node").write_text("0\n")
    (pci / "nvme/nvme0/model").write_text("FAST\n")
    (pci / "nvme/nvme0/device").symlink_to("../..")
    (pci / "empty").mkdir()
    (root / "sys/class/nvme").mkdir(parents=True)
    (root / "sys/class/nvme/nvme0").symlink_to("../../devices/pci0000:00/0000:00:01.0/nvme/nvme0")
    (root / "etc/sysctl.d").mkdir(parents=True)
    (root / "etc/sysctl.conf").write_bytes(b"# caf\xe9\r\nvm.swappiness = 1\n")
    (root / "etc/sysctl.d/99-sysctl.conf").symlink_to("../sysctl.conf")
    (root / "etc/empty").write_text("")
    (root / "etc/dangling").symlink_to("nowhere")
    (root / "etc/loop").symlink_to("loop")
    os.mkfifo(root / "etc/pipe")
    return LiveHost(str(root))


PATHS = [
    "/", "/sys", "/sys/class/nvme", "/sys/class/nvme/nvme0", "/sys/class/nvme/nvme0/model",
    "/sys/class/nvme/nvme0/device", "/sys/class/nvme/nvme0/device/numa_node", "/sys/class/nvme/nvme0/../nvme0/model",
    "/sys/devices/pci0000:00/0000:00:01.0", "/sys/devices/pci0000:00/0000:00:01.0/empty",
    "/sys/devices/pci0000:00/0000:00:01.0/nvme/nvme0/model", "/etc", "/etc/sysctl.d", "/etc/sysctl.conf",
    "/etc/sysctl.d/99-sysctl.conf", "/etc/empty", "/etc/dangling", "/etc/loop", "/etc/pipe", "/etc/pipe/x",
    "/etc/nothing", "/etc/sysctl.conf/x", "/nothing/at/all",
]  # fmt: skip


def ask(host: Any, verb: str, path: str) -> Any:
    return getattr(host, verb)(path)


ORDERS = [("read",), ("listdir", "read"), ("exists", "read"), ("read", "listdir", "exists", "readlink")]
ORDERS += [("exists", "listdir", "readlink", "read"), ("readlink", "exists", "listdir"), ("listdir",), ("exists",)]


@pytest.mark.parametrize("verbs", ORDERS, ids="-".join)
@pytest.mark.parametrize("backwards", [False, True])
def test_what_was_read_live_replays_the_same(
    world: LiveHost, tmp_path: Path, verbs: tuple[str, ...], backwards: bool
) -> None:
    recording = RecordingHost(str(tmp_path / "capture"), "gpu01", "2026-01-31T12:00:00Z", world)
    asked = [(verb, path) for verb in verbs for path in (reversed(PATHS) if backwards else PATHS)]
    live = {(verb, path): ask(recording, verb, path) for verb, path in asked}
    for verb, path in asked:
        assert live[verb, path] == ask(world, verb, path), "recording changed the answer"
    replay = CaptureHost(str(tmp_path / "capture"))
    for verb, path in asked:
        answer = ask(replay, verb, path)
        if (verb, path) == ("read", "/etc/loop"):
            # A loop ends nowhere, in a capture as well.
            assert answer is None
            continue
        assert answer == live[verb, path], (verb, path)


def test_a_name_that_was_only_seen_is_there_but_unknown(world: LiveHost, tmp_path: Path) -> None:
    recording = RecordingHost(str(tmp_path / "capture"), "h", "t", world)
    recording.listdir("/etc")
    replay = CaptureHost(str(tmp_path / "capture"))
    assert replay.exists("/etc/empty")
    assert isinstance(replay.read("/etc/empty"), Unknown)
    assert isinstance(replay.read("/etc/sysctl.conf"), Unknown)


def test_a_value_that_changes_is_recorded_as_it_was_first(world: LiveHost, tmp_path: Path) -> None:
    recording = RecordingHost(str(tmp_path / "capture"), "h", "t", world)
    recording.read("/etc/sysctl.conf")
    Path(world.root + "/etc/sysctl.conf").write_text("later")
    recording.read("/etc/sysctl.conf")
    assert "swappiness" in str(CaptureHost(str(tmp_path / "capture")).read("/etc/sysctl.conf"))


def test_commands_replay_the_same(tmp_path: Path) -> None:
    recording = RecordingHost(str(tmp_path), "h", "t")
    commands = [["sh", "-c", "echo größe; echo err >&2; exit 3"], ["true"], ["no-such-tool"], ["printf", r"\377"]]
    live = [recording.run(argv) for argv in commands]
    replay = CaptureHost(str(tmp_path))
    assert [replay.run(argv) for argv in commands] == live
    assert replay.run(["no-such-tool"]).unknown == "no-such-tool is not installed"


def test_a_command_that_hung_replays_as_hung(tmp_path: Path) -> None:
    recording = RecordingHost(str(tmp_path), "h", "t")
    assert recording.run(["sleep", "60"], deadline_s=0.1).unknown == "sleep hung: no answer in 0.1 s"
    assert CaptureHost(str(tmp_path)).run(["sleep", "60"]).unknown == "sleep hung: no answer in 0.1 s"


def test_a_command_that_is_run_again_is_recorded_as_it_was_first(tmp_path: Path) -> None:
    recording = RecordingHost(str(tmp_path / "capture"), "h", "t")
    count = ["sh", "-c", 'echo >>"$0"; wc -l <"$0"', str(tmp_path / "counter")]
    assert [recording.run(count).stdout.strip() for _time in range(2)] == ["1", "2"]
    assert CaptureHost(str(tmp_path / "capture")).run(count).stdout.strip() == "1"


def test_a_long_log_of_the_kernel_replays_whole(tmp_path: Path) -> None:
    recording = RecordingHost(str(tmp_path), "h", "t")
    argv = ["sh", "-c", 'yes "é \\ "quoted" \t line of the kernel" | head -c 15000000']
    live = recording.run(argv)
    assert len(live.stdout) > 10_000_000
    assert CaptureHost(str(tmp_path)).run(argv) == live


def test_output_that_no_capture_holds_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_module, "COMMAND_LIMIT_BYTES", 1000)
    recording = RecordingHost(str(tmp_path), "h", "t")
    assert recording.run(["printf", "%2000d", "1"]).ok
    assert "more than a capture holds" in CaptureHost(str(tmp_path)).run(["printf", "%2000d", "1"]).unknown


def test_a_capture_answers_as_a_host_for_what_it_was_taken_for(tmp_path: Path) -> None:
    RecordingHost(str(tmp_path / "a"), "h", "t", areas=["block_queue", "platform"])
    host = CaptureHost(str(tmp_path / "a"))
    assert not host.is_live
    for areas, is_live in ((["platform"], True), (["platform", "xfs_volumes"], False), ([], True)):
        host.answers_for(areas)
        assert host.is_live is is_live
    for about in (ABOUT, '{"format": 1, "areas": "platform"}', '{"format": 1, "areas": {"platform": 1}}'):
        sparse = CaptureHost(str(capture(tmp_path / str(len(about)), about=about)))
        sparse.answers_for(["platform"])
        assert not sparse.is_live


def test_a_program_that_is_only_looked_for_is_not_copied(tmp_path: Path) -> None:
    (tmp_path / "world/sbin").mkdir(parents=True)
    (tmp_path / "world/sbin/tool").write_bytes(bytes(1 << 20))
    recording = RecordingHost(str(tmp_path / "capture"), "h", "t", LiveHost(str(tmp_path / "world")))
    assert recording.exists("/sbin/tool")
    replay = CaptureHost(str(tmp_path / "capture"))
    assert replay.exists("/sbin/tool")
    assert isinstance(replay.read("/sbin/tool"), Unknown)


def test_a_device_is_not_opened_to_record_that_it_exists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    real = LiveHost.read
    monkeypatch.setattr(LiveHost, "read", lambda self, path: (opened.append(path), real(self, path))[1])
    recording = RecordingHost(str(tmp_path / "capture"), "h", "t")
    assert recording.exists("/dev/null")
    assert opened == []
    assert CaptureHost(str(tmp_path / "capture")).exists("/dev/null")


def test_a_recorded_capture_can_be_packed_and_replayed(world: LiveHost, tmp_path: Path, scratch: Path) -> None:
    recording = RecordingHost(str(tmp_path / "capture"), "gpu01", "t", world)
    for path in PATHS:
        recording.listdir(path)
        recording.read(path)
    with tarfile.open(tmp_path / "c.tar.gz", "w:gz") as tar:
        tar.add(str(tmp_path / "capture"), arcname=".")
    replay = open_capture(str(tmp_path / "c.tar.gz"), str(scratch))
    assert replay.about["hostname"] == "gpu01"
    for path in PATHS:
        if path != "/etc/loop":
            assert ask(replay, "read", path) == ask(world, "read", path), path
        assert replay.listdir(path) == world.listdir(path)


def test_an_error_is_no_absence_in_a_capture_either(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root/loop").symlink_to("loop")
    recording = RecordingHost(str(tmp_path / "capture"), "x", "t", LiveHost(str(tmp_path / "root")))
    recording.exists("/loop/x")
    recording.listdir("/loop/y")
    replay = CaptureHost(str(tmp_path / "capture"))
    said = os.strerror(errno.ELOOP)
    assert replay.exists("/loop/x") == Unknown(said)
    assert replay.unseen == {"/loop/x": said, "/loop/y": said}
    assert replay.exists("/z") is False
