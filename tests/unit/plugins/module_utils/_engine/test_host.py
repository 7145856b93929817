# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import errno
import os
import shlex
import signal
import socket
import stat
import sys
import threading
import time
from pathlib import Path
from typing import Iterator

import pytest

from ansible_collections.gpufleet.host.plugins.module_utils._engine import host as host_module
from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import LiveHost, MemoHost, Result
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import ANSWERS, Unknown

is_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")


@pytest.fixture
def live(tmp_path: Path) -> LiveHost:
    return LiveHost(str(tmp_path))


def reason(answer: object) -> str:
    assert isinstance(answer, Unknown), answer
    return answer.reason


# Reading


def test_a_file_is_read_as_it_is(live: LiveHost, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes("größe\r\n\tend".encode())
    assert live.read("/x") == "größe\r\n\tend"


def test_what_is_not_there_is_none(live: LiveHost, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "dangling").symlink_to("nowhere")
    for path in ("/x", "/file/below", "/dangling", "/nul\0l"):
        assert live.read(path) is None, path
        assert not live.exists(path)
        assert live.listdir(path) == []
        assert live.readlink(path) == ("nowhere" if path == "/dangling" else None)


def test_what_is_no_file_is_unknown(live: LiveHost, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(tmp_path / "socket"))
        assert reason(live.read("/folder")) == "is a directory"
        assert reason(live.read("/pipe")) == "is a named pipe"
        assert reason(live.read("/loop")) == os.strerror(errno.ELOOP)
        assert reason(live.read("/socket")) == "is a socket"
        assert reason(live.read("/" + "long" * 100)) == os.strerror(errno.ENAMETOOLONG)


def test_a_pipe_with_a_writer_does_not_hang(live: LiveHost, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    fd = os.open(tmp_path / "pipe", os.O_RDWR)
    try:
        assert reason(live.read("/pipe"))
    finally:
        os.close(fd)


def test_a_file_masked_by_dev_null_is_empty(live: LiveHost, tmp_path: Path) -> None:
    (tmp_path / "masked.rules").symlink_to(os.devnull)
    assert live.read("/masked.rules") == ""


def test_a_huge_file_is_not_read_into_memory(live: LiveHost, tmp_path: Path) -> None:
    with open(tmp_path / "x", "wb") as file:
        file.truncate(host_module.READ_LIMIT_BYTES)
        assert len(str(live.read("/x"))) == host_module.READ_LIMIT_BYTES
        file.truncate(1 << 40)
    assert "larger than" in reason(live.read("/x"))


def test_a_file_that_may_not_be_read_is_unknown(
    live: LiveHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x").write_text("secret")

    def refuse(*_args: object) -> int:
        raise PermissionError(errno.EACCES, "x")

    monkeypatch.setattr(os, "open", refuse)
    assert reason(live.read("/x")) == os.strerror(errno.EACCES)


def test_a_file_whose_read_fails_is_unknown(live: LiveHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As /sys/class/net/*/speed of an interface that is down."""
    (tmp_path / "x").write_text("1")

    def refuse(*_args: object) -> bytes:
        raise OSError(errno.EINVAL, "x")

    monkeypatch.setattr(os, "read", refuse)
    assert reason(live.read("/x")) == os.strerror(errno.EINVAL)


def test_listing_is_sorted(live: LiveHost, tmp_path: Path) -> None:
    for name in ("b", "a", "c"):
        (tmp_path / name).write_text("")
    assert live.listdir("/") == ["a", "b", "c"]


# Writing


def test_new_file_in_new_folders(live: LiveHost, tmp_path: Path) -> None:
    live.write("/etc/x.d/y.conf", "text\n", 0o640)
    assert (tmp_path / "etc/x.d/y.conf").read_text() == "text\n"
    assert stat.S_IMODE((tmp_path / "etc/x.d/y.conf").stat().st_mode) == 0o640
    assert os.listdir(tmp_path / "etc/x.d") == ["y.conf"]


def test_the_mode_does_not_hang_on_the_umask(live: LiveHost, tmp_path: Path) -> None:
    was = os.umask(0o077)
    try:
        live.write("/x", "")
    finally:
        os.umask(was)
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o644


def test_a_kept_file_keeps_its_mode(live: LiveHost, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("old")
    (tmp_path / "x").chmod(0o604)
    live.write("/x", "new", 0o644)
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o604


@is_root
def test_a_kept_file_keeps_its_owner_and_attributes(live: LiveHost, tmp_path: Path) -> None:
    place = tmp_path / "x"
    place.write_text("old")
    os.chown(place, 12345, 54321)
    try:
        os.setxattr(place, "user.note", b"kept")
        attributes = ["user.note"]
    except OSError:
        attributes = []  # this filesystem has none
    live.write("/x", "new")
    assert (place.stat().st_uid, place.stat().st_gid) == (12345, 54321)
    assert [name for name in os.listxattr(place) if name.startswith("user.")] == attributes


def test_a_link_stays_and_its_file_is_replaced(live: LiveHost, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real/file").write_text("old")
    (tmp_path / "link").symlink_to("real/file")
    live.write("/link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real/file").read_text() == "new"
    live.write("/link", None)
    assert (tmp_path / "link").is_symlink()
    assert live.read("/link") is None
    live.write("/link", "again")
    assert (tmp_path / "real/file").read_text() == "again"


@pytest.mark.parametrize("text", ["new", None])
def test_what_is_no_file_is_never_replaced(live: LiveHost, tmp_path: Path, text: str | None) -> None:
    """A file masked by a link to /dev/null above all: replacing /dev/null would break the host."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "masked").symlink_to("pipe")
    for path in ("/pipe", "/folder", "/masked"):
        with pytest.raises(OSError, match="not a regular file"):
            live.write(path, text)
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_removing_what_is_gone_is_fine(live: LiveHost) -> None:
    live.write("/x", None)


def test_bytes_that_are_no_utf8_are_written_as_they_were_read(live: LiveHost, tmp_path: Path) -> None:
    original = b"# caf\xe9 \xc4\xe3\xba\xc3\r\n" + bytes(range(256))
    (tmp_path / "x").write_bytes(original)
    text = live.read("/x")
    assert isinstance(text, str)
    live.write("/x", text + "ours\n")
    assert (tmp_path / "x").read_bytes() == original + b"ours\n"
    live.write("/x", text)
    assert (tmp_path / "x").read_bytes() == original


def test_leftovers_of_a_killed_run_are_removed_and_nothing_else(live: LiveHost, tmp_path: Path) -> None:
    for name in (
        ".x.conf.abc123_z.new",
        ".x.conf.new",
        ".x.conf.mine.new",
        ".y.conf.abc12345.new",
        "x.conf.abc12345.new",
    ):
        (tmp_path / name).write_text("half")
    live.write("/x.conf", "whole")
    left = [".x.conf.mine.new", ".x.conf.new", ".y.conf.abc12345.new", "x.conf", "x.conf.abc12345.new"]
    assert live.listdir("/") == left


@pytest.mark.parametrize("verb", ["fsync", "rename", "fchmod"])
def test_a_failed_write_leaves_the_old_file_and_no_leftover(
    live: LiveHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    (tmp_path / "x").write_text("old")

    def fail(*_args: object) -> None:
        raise OSError(errno.EIO, "broken disk")

    monkeypatch.setattr(os, verb, fail)
    with pytest.raises(OSError, match="broken disk"):
        live.write("/x", "new")
    assert os.listdir(tmp_path) == ["x"]
    assert (tmp_path / "x").read_text() == "old"


def test_the_data_is_on_disk_before_the_name_is(
    live: LiveHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    for verb in ("fsync", "rename"):
        real = getattr(os, verb)
        monkeypatch.setattr(os, verb, lambda *args, real=real, verb=verb: (calls.append(verb), real(*args))[1])
    live.write("/x", "new")
    assert calls == ["fsync", "rename", "fsync"]


def test_no_reader_ever_sees_half_a_file(live: LiveHost, tmp_path: Path) -> None:
    texts = {letter * 300_000 for letter in "ab"}
    live.write("/x", "a" * 300_000)
    seen: set[str | None] = set()
    stop = threading.Event()

    def watch() -> None:
        while not stop.is_set():
            try:
                seen.add((tmp_path / "x").read_text())
            except FileNotFoundError:
                seen.add(None)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        for _round in range(15):
            for text in sorted(texts):
                live.write("/x", text)
    finally:
        stop.set()
        watcher.join()
    assert seen <= texts
    assert seen


def test_a_value_is_one_write(live: LiveHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x").write_text("0")
    real = os.write
    calls: list[bytes] = []
    monkeypatch.setattr(os, "write", lambda fd, data: (calls.append(data), real(fd, data))[1])
    live.set_value("/x", "madvise")
    assert calls == [b"madvise"]


def test_a_value_never_makes_a_file(live: LiveHost, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        live.set_value("/x", "1")
    assert os.listdir(tmp_path) == []


# Running


def test_a_command_is_answered(live: LiveHost) -> None:
    result = live.run(["sh", "-c", "echo out; echo err >&2; exit 3"])
    assert result == Result(3, "out\n", "err\n")
    assert not result.ok
    assert reason(result.text()) == "exit 3: err"
    assert live.run(["echo", "hi"]).text() == "hi\n"


def test_commands_speak_english_and_get_no_input(live: LiveHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.setenv("LD_PRELOAD", "evil.so")
    assert live.run(["sh", "-c", "echo $LC_ALL$LD_PRELOAD; cat"]).stdout == "C\n"


@pytest.mark.parametrize("argv", [["no-such-tool"], ["/etc/hostname-not-there"], ["/etc"], ["echo", "a\0b"]])
def test_what_cannot_be_run_is_unknown(live: LiveHost, argv: list[str]) -> None:
    result = live.run(argv)
    assert not result.ok
    assert argv[0] in reason(result.text())


def test_input_reaches_the_command_and_may_be_left_unread(live: LiveHost) -> None:
    assert live.execute(["cat"], "größe\udce9", 10).stdout == "größe\ufffd"
    assert live.execute(["true"], "y" * 1_000_000, 10).ok


def test_much_output_is_taken_in_full(live: LiveHost) -> None:
    code = "import sys; sys.stdout.write('o' * 700000); sys.stderr.write('e' * 700000)"
    result = live.run([sys.executable, "-S", "-c", code], 30)
    assert (len(result.stdout), len(result.stderr)) == (700_000, 700_000)


def test_endless_output_is_cut_off(live: LiveHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_module, "OUTPUT_LIMIT_BYTES", 200_000)
    started = time.monotonic()
    assert "printed more than 200000 bytes" in reason(live.run(["yes"], 30).text())
    assert time.monotonic() - started < 10


@pytest.fixture
def pids(tmp_path: Path) -> Iterator[Path]:
    """A file to which test commands write the ids of processes that may stay behind."""
    place = tmp_path / "pids"
    yield place
    for word in place.read_text().split() if place.exists() else []:
        try:
            os.kill(int(word), signal.SIGKILL)
        except ProcessLookupError:
            continue


HANGING = {
    "sleeps": "sleep 100",
    "ignores SIGTERM": "trap '' TERM; while :; do sleep 1; done",
    "a grandchild holds the pipes": "sleep 100 & exec sleep 100",
    "closes its output and stays": "exec >&- 2>&-; sleep 100",
    "hides a grandchild in another session": "setsid sleep 100 & echo $! > PIDS; sleep 100",
    "reads its input": "cat; sleep 100",
}


@pytest.mark.parametrize("script", HANGING.values(), ids=HANGING.keys())
def test_a_hanging_command_costs_its_deadline(live: LiveHost, pids: Path, script: str) -> None:
    started = time.monotonic()
    result = live.run(["sh", "-c", script.replace("PIDS", shlex.quote(str(pids)))], 0.5)
    assert 0.4 < time.monotonic() - started < 5
    assert "hung: no answer in 0.5 s" in reason(result.text())


def test_a_hanging_command_is_killed_with_its_children(live: LiveHost, pids: Path) -> None:
    script = "sleep 100 & echo $! $$ > %s; wait" % shlex.quote(str(pids))
    live.run(["sh", "-c", script], 0.5)
    for word in pids.read_text().split():
        assert wait_until_gone(int(word)), word


def test_a_command_that_leaves_a_daemon_behind_is_done_when_it_ends(live: LiveHost, pids: Path) -> None:
    script = "sleep 100 & echo $! > %s; echo started; exit 4" % shlex.quote(str(pids))
    started = time.monotonic()
    assert live.run(["sh", "-c", script], 30) == Result(4, "started\n", "")
    assert time.monotonic() - started < 5
    os.kill(int(pids.read_text()), 0)  # it lives on


def wait_until_gone(pid: int) -> bool:
    for _round in range(50):
        try:
            with open("/proc/%d/stat" % pid) as file:
                if file.read().rsplit(")", 1)[1].split()[0] == "Z":
                    return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.1)
    return False


# Remembering


def test_nothing_is_asked_twice(tmp_path: Path) -> None:
    class Counting(LiveHost):
        calls = 0

        def read(self, path: str) -> str | Unknown | None:
            Counting.calls += 1
            return super().read(path)

        def run(self, argv: object, deadline_s: float = 10.0) -> Result:
            Counting.calls += 1
            return Result(0, "x", "")

    memo = MemoHost(Counting(str(tmp_path)))
    assert memo.read("/x") is memo.read("/x") is None
    assert memo.run(["a", "b"]) == memo.run(("a", "b"))
    (tmp_path / "x").write_text("later")
    assert memo.read("/x") is None
    assert not memo.exists("/y")
    assert Counting.calls == 2


# Errors that are no absence


def test_an_error_is_no_absence(live: LiveHost, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    assert reason(live.exists("/loop/x")) == os.strerror(errno.ELOOP)
    assert live.listdir("/loop/x") == []
    assert live.readlink("/loop/x") is None
    assert live.unseen == {"/loop/x": os.strerror(errno.ELOOP)}
    (tmp_path / "loop").unlink()
    assert live.exists("/loop/x") is False
    assert live.unseen == {}


def test_what_is_no_link_is_seen(live: LiveHost, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert live.readlink("/file") is None
    assert live.readlink("/gone") is None
    assert live.unseen == {}
    assert LiveHost().readlink("/proc/self/status") is None


def test_what_could_not_be_seen_is_known_to_whoever_asks_again(live: LiveHost, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    memo = MemoHost(live)
    told = {"/loop": os.strerror(errno.ELOOP)}
    assert host_module.remembered(memo, "made", 1, lambda: memo.listdir("/loop")) == []
    assert memo.unseen == told
    memo.unseen.clear()
    assert memo.listdir("/") == ["loop"]
    assert memo.unseen == {}
    assert host_module.remembered(memo, "made", 1, lambda: ["never"]) == []
    assert memo.unseen == told


def test_a_filesystem_answers_or_says_why_not(live: LiveHost, tmp_path: Path) -> None:
    assert live.run([ANSWERS, str(tmp_path)]).ok
    gone = live.run([ANSWERS, str(tmp_path / "gone")])
    assert (gone.rc, gone.stderr) == (1, "No such file or directory")


def test_a_filesystem_that_never_answers_is_given_up(live: LiveHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "statvfs", lambda _path: time.sleep(60))
    begin = time.monotonic()
    assert live.run([ANSWERS, "/"], 0.3).unknown == "gpufleet-answers hung: no answer in 0.3 s"
    assert time.monotonic() - begin < 5
