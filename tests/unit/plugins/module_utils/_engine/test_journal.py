# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any, Iterator

import pytest

from ansible_collections.gpufleet.host.plugins.module_utils._engine import journal as module
from ansible_collections.gpufleet.host.plugins.module_utils._engine import records
from ansible_collections.gpufleet.host.plugins.module_utils._engine.journal import (
    Journal,
    JournalError,
    Lock,
    Locked,
)
from ansible_collections.gpufleet.host.plugins.module_utils._engine.records import originals
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import Step


def value(target: str, before: str, after: str) -> Step:
    return Step("s." + target, "value", target, before, after, "why", "source")


def command(target: str, *undo: str) -> Step:
    back = Step("undo", "run", target, "new", "old", "why", "source", argv=undo) if undo else None
    return Step("s." + target, "run", target, "old", "new", "why", "source", argv=("do",), undo=back)


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(str(tmp_path))


def reopened(journal: Journal) -> Journal:
    return Journal(folder=journal.folder)


def test_nothing_stands_where_nothing_was_done(journal: Journal) -> None:
    assert journal.standing() == []
    assert journal.interrupted("a") == []
    assert not os.path.exists(journal.path), "reading the journal must not make it"


def test_a_step_is_on_disk_before_it_is_applied(journal: Journal) -> None:
    journal.begin("r1", "a")
    number = journal.intend("r1", "a", value("/sys/x", "1", "2"))
    [entry] = reopened(journal).standing()
    assert (entry.number, entry.run, entry.area, entry.step.before, entry.done) == (number, "r1", "a", "1", False)
    journal.note_done(number)
    assert reopened(journal).standing()[0].done
    journal.note_undone(number)
    assert reopened(journal).standing() == []


def test_numbers_rise_over_runs_and_are_never_used_twice(journal: Journal) -> None:
    first = journal.intend("r1", "a", value("/sys/x", "1", "2"))
    journal.note_undone(first)
    second = reopened(journal).intend("r2", "a", value("/sys/x", "1", "2"))
    assert second == first + 1


def test_standing_is_asked_by_area_and_by_run(journal: Journal) -> None:
    for run, area in (("r1", "a"), ("r1", "b"), ("r2", "a")):
        journal.intend(run, area, value("/sys/" + area, "1", "2"))
    assert [(e.run, e.area) for e in journal.standing(area="a")] == [("r1", "a"), ("r2", "a")]
    assert [(e.run, e.area) for e in journal.standing(run="r1")] == [("r1", "a"), ("r1", "b")]
    assert [(e.run, e.area) for e in journal.standing("b", "r2")] == []


def test_a_run_that_never_ended_was_interrupted(journal: Journal) -> None:
    journal.begin("r1", "a")
    journal.begin("r2", "b")
    journal.end("r2", "b", "changed")
    assert journal.interrupted("a") == ["r1"]
    assert journal.interrupted("b") == []
    journal.end("r1", "a", "interrupted")
    assert journal.interrupted("a") == []


def test_a_run_name_may_be_used_again(journal: Journal) -> None:
    journal.begin("nightly", "a")
    journal.begin("nightly", "a")
    journal.end("nightly", "a", "interrupted")
    assert journal.interrupted("a") == ["nightly"]
    journal.end("nightly", "a", "changed")
    assert journal.interrupted("a") == []


def test_killed_at_any_byte_the_journal_keeps_what_was_complete(journal: Journal) -> None:
    journal.begin("r1", "a")
    journal.intend("r1", "a", value("/etc/x", "größe\n", "2"))
    with open(journal.path, "rb") as file:
        complete = file.read()
    journal.intend("r1", "a", value("/etc/y", "mal\udce9\n", "ü"))
    with open(journal.path, "rb") as file:
        longer = file.read()
    for size in range(len(complete), len(longer) + 1):
        with open(journal.path, "wb") as file:
            file.write(longer[:size])
        # The note of how far it goes is of a later time than this kill.
        os.unlink(os.path.join(journal.folder, "journal.head"))
        is_whole = size >= len(longer) - 1
        assert [e.number for e in journal.standing()] == ([1, 2] if is_whole else [1]), size
        # The next run writes on, and loses neither its own line nor an old one.
        assert journal.intend("r2", "a", value("/etc/z", "1", "2")) == (3 if is_whole else 2), size
        journal.begin("r3", "a")
        assert [e.step.target for e in journal.standing()][-1] == "/etc/z"
        assert journal.interrupted("a") == ["r1", "r3"]
        assert journal.standing()[0].step.before == "größe\n"


@pytest.mark.parametrize(
    "junk", [b"\0" * 600, b"\xff\xfe\x80", b"17", b"null", b'"event"', b'{"no": "event"}'],
    ids=["zeros", "no-utf8", "number", "null", "string", "other"],
)  # fmt: skip
def test_junk_left_by_a_power_cut_is_passed_over(journal: Journal, junk: bytes) -> None:
    journal.intend("r1", "a", value("/sys/x", "1", "2"))
    with open(journal.path, "ab") as file:
        file.write(junk)
    journal.begin("r2", "a")
    assert [e.number for e in journal.standing()] == [1]
    assert journal.interrupted("a") == ["r2"]


def test_bytes_that_are_no_utf8_come_back_as_they_were(journal: Journal) -> None:
    original = b"# caf\xe9\r\n\tx".decode("utf-8", "surrogateescape")
    journal.intend("r1", "a", value("/etc/x", original, "2"))
    assert reopened(journal).standing()[0].step.before == original


def test_only_root_may_read_the_journal(journal: Journal) -> None:
    journal.begin("r1", "a")
    assert os.stat(journal.path).st_mode & 0o777 == 0o600
    assert os.stat(journal.folder).st_mode & 0o777 == 0o700


def test_a_full_disk_is_no_record(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[: len(data) // 2]))
    with pytest.raises(JournalError, match="No space left"):
        journal.intend("r1", "a", value("/sys/x", "1", "2"))
    monkeypatch.setattr(os, "write", real)
    assert journal.standing() == []
    assert journal.intend("r1", "a", value("/sys/x", "1", "2")) == 1


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "var").write_text("a file where a folder belongs")
    with pytest.raises(JournalError, match="/var/lib/gpufleet"):
        Journal(str(tmp_path)).begin("r1", "a")
    with pytest.raises(JournalError, match="/var/lib/gpufleet"):
        Lock(str(tmp_path)).__enter__()


def test_a_filesystem_gone_read_only_is_named_with_the_next_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.open

    def read_only(path: Any, flags: int, *args: Any, **options: Any) -> int:
        if flags & os.O_ACCMODE != os.O_RDONLY:
            raise OSError(30, "Read-only file system", path)
        return real(path, flags, *args, **options)

    Journal(str(tmp_path)).begin("r0", "a")
    monkeypatch.setattr(os, "open", read_only)
    with pytest.raises(JournalError, match=r"Read-only file system .see findmnt -no OPTIONS"):
        Lock(str(tmp_path)).__enter__()
    with pytest.raises(JournalError, match=r"Read-only file system .see findmnt -no OPTIONS"):
        Journal(str(tmp_path)).begin("r1", "a")


def test_originals_are_the_first_of_each_target_newest_first(journal: Journal) -> None:
    for target, before, after in (("/x", "1", "2"), ("/y", "a", "b"), ("/x", "2", "3"), ("/x", "3", "4")):
        journal.intend("r", "a", value(target, before, after))
    back = originals(journal.standing())
    assert [(e.step.target, e.step.before, numbers) for e, numbers in back] == [
        ("/y", "a", [2]),
        ("/x", "1", [1, 3, 4]),
    ]


def test_a_command_is_undone_once_and_others_on_the_same_target_too(journal: Journal) -> None:
    for step in (command("md0", "stop"), command("md0", "stop"), command("md0", "forget"), command("md0")):
        journal.intend("r", "a", step)
    assert [(e.number, numbers) for e, numbers in originals(journal.standing())] == [(4, [4]), (3, [3]), (1, [1, 2])]


class Holder:
    """Another process that holds the lock until it is told to let go."""

    def __init__(self, root: str) -> None:
        ready_read, ready_write = os.pipe()
        free_read, self._free = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.close(self._free)
                with Lock(root):
                    os.write(ready_write, b"x")
                    os.read(free_read, 1)
            finally:
                os._exit(0)
        os.close(ready_write)
        os.close(free_read)
        assert os.read(ready_read, 1) == b"x"
        os.close(ready_read)

    def let_go(self) -> None:
        if self._free >= 0:
            os.close(self._free)
            os.waitpid(self.pid, 0)
            self._free = -1


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[Holder]:
    process = Holder(str(tmp_path))
    yield process
    process.let_go()


def test_a_second_run_waits_and_fails_with_the_holder(holder: Holder, tmp_path: Path) -> None:
    started = time.monotonic()
    with pytest.raises(Locked, match="process %d" % holder.pid), Lock(str(tmp_path), wait_s=0.3):
        raise AssertionError("the lock was given twice")
    assert 0.3 <= time.monotonic() - started < 5


def test_a_second_run_gets_the_lock_when_the_first_ends(holder: Holder, tmp_path: Path) -> None:
    holder.let_go()
    with Lock(str(tmp_path), wait_s=20) as lock:
        assert Path(lock.path).read_text() == str(os.getpid())


def test_a_killed_holder_frees_the_lock(holder: Holder, tmp_path: Path) -> None:
    os.kill(holder.pid, signal.SIGKILL)
    holder.let_go()
    with Lock(str(tmp_path), wait_s=0.5):
        pass


def test_what_a_run_starts_does_not_keep_its_lock(tmp_path: Path) -> None:
    with Lock(str(tmp_path)) as lock:
        assert not os.get_inheritable(lock._fd)
    with Lock(str(tmp_path), wait_s=0):
        pass


def test_the_journal_is_lines_of_json(journal: Journal) -> None:
    journal.begin("r1", "a")
    journal.intend("r1", "a", value("/sys/x", "1\n2", "2"))
    journal.end("r1", "a", "changed")
    with open(journal.path, encoding="utf-8") as file:
        assert [json.loads(row)["event"] for row in file] == ["begin", "intend", "end"]


# What is not root's alone, or no journal at all


def spoil(journal: Journal, how: str) -> None:
    journal.intend("r1", "a", value("/sys/x", "1", "2"))
    path, folder = Path(journal.path), Path(journal.folder)
    if how == "a folder in its place":
        path.unlink()
        path.mkdir()
    elif how == "a pipe in its place":
        path.unlink()
        os.mkfifo(path, 0o600)
    elif how == "a link in its place":
        path.rename(folder / "elsewhere")
        path.symlink_to("elsewhere")
    elif how == "a folder that is a link":
        folder.rename(folder.parent / "elsewhere")
        folder.symlink_to("elsewhere")
    elif how == "a folder of everybody":
        folder.chmod(0o777)
    elif how == "a file of everybody":
        path.chmod(0o666)
    elif how == "a file of somebody":
        os.chown(path, 12345, 12345)


PLACES = [
    ("a folder in its place", "is a folder"),
    ("a pipe in its place", "is no file"),
    ("a link in its place", "is a link"),
    ("a folder that is a link", "is a link"),
    ("a folder of everybody", r"written by others \(mode 0777\).*chown -R root:root"),
    ("a file of everybody", r"written by others \(mode 0666\)"),
    ("a file of somebody", "belongs to the user with the number 12345"),
]


@pytest.mark.parametrize(("how", "said"), PLACES, ids=[how for how, _said in PLACES])
def test_what_is_not_ours_is_neither_read_nor_written(journal: Journal, how: str, said: str) -> None:
    if how == "a file of somebody" and os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    spoil(journal, how)
    for use in (
        reopened(journal).standing,
        lambda: reopened(journal).interrupted("a"),
        lambda: reopened(journal).begin("r2", "a"),
        lambda: reopened(journal).intend("r2", "a", value("/sys/y", "1", "2")),
    ):
        with pytest.raises(JournalError, match=said):
            use()


@pytest.mark.parametrize("how", ["a link in its place", "a folder of everybody"])
def test_a_lock_follows_no_link_and_trusts_no_folder_of_others(tmp_path: Path, how: str) -> None:
    folder = tmp_path / "var/lib/gpufleet"
    folder.mkdir(parents=True, mode=0o700)
    victim = tmp_path / "victim"
    victim.write_text("precious")
    if how == "a link in its place":
        (folder / "lock").symlink_to(victim)
    else:
        folder.chmod(0o777)
    with pytest.raises(JournalError), Lock(str(tmp_path), wait_s=0):
        raise AssertionError("the lock was given")
    assert victim.read_text() == "precious"


def test_an_empty_or_missing_journal_of_a_host_with_runs_is_a_loss(journal: Journal) -> None:
    journal.begin("r1", "a")
    journal.intend("r1", "a", value("/sys/x", "1", "2"))
    journal.end("r1", "a", "changed")
    assert reopened(journal).losses() == []
    Path(journal.path).write_text("")
    assert [loss.count for loss in reopened(journal).losses()] == [3, 1]
    Path(journal.path).unlink()
    assert [loss.count for loss in reopened(journal).losses()] == [3]
    Path(journal.folder, "journal.head").write_text("garbage")
    assert reopened(journal).losses() == [], "a note that cannot be read invents no loss"


def test_a_run_killed_at_its_first_line_leaves_no_empty_journal(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda fd, data: 0)
        with pytest.raises(JournalError):
            journal.begin("r1", "a")
    assert not os.path.exists(journal.path)
    journal.begin("r1", "a")
    assert reopened(journal).losses() == []


# Read once, and kept short


def test_it_is_read_once_a_run(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        journal.intend("r1", "a", value("/sys/%d" % number, "1", "2"))
    reads: list[str] = []
    real = records.read

    def read(text: str, noted: int) -> records.Records:
        reads.append(text)
        return real(text, noted)

    monkeypatch.setattr(records, "read", read)
    again = reopened(journal)
    again.begin("r2", "a")
    for number in range(10):
        again.note_done(again.intend("r2", "a", value("/sys/%d" % number, "1", "2")))
    assert (len(again.standing()), again.interrupted("a"), len(reads)) == (13, ["r2"], 1)
    # What another process writes is seen.
    journal.intend("r3", "a", value("/sys/y", "1", "2"))
    assert again.standing()[-1].run == "r3"


def settled(journal: Journal, count: int) -> None:
    kept = journal.intend("r0", "a", value("/sys/kept", "1", "2"))
    journal.note_done(kept)
    for number in range(count):
        done = journal.intend("r1", "a", value("/sys/%d" % number, "1", "2"))
        journal.note_undone(done)
    journal.begin("r2", "other")


def test_it_is_shortened_when_it_is_long_and_settled(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    settled(journal, 20)
    size = os.stat(journal.path).st_size
    reopened(journal).begin("r3", "a")
    assert os.stat(journal.path).st_size > size, "a short one is left alone"
    monkeypatch.setattr(module, "SHORTEN_BYTES", 1000)
    again = reopened(journal)
    again.begin("r4", "a")
    assert os.stat(journal.path).st_size < size / 3
    assert [entry.step.target for entry in again.standing()] == ["/sys/kept"]
    assert again.interrupted("other") == ["r2"]
    assert again.interrupted("a") == ["r3", "r4"]
    assert again.intend("r4", "a", value("/sys/new", "1", "2")) == 22
    assert reopened(journal).losses() == []
    assert os.stat(journal.path).st_mode & 0o777 == 0o600


def test_one_that_was_damaged_is_kept_for_people(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    settled(journal, 20)
    rows = Path(journal.path).read_text().splitlines()
    Path(journal.path).write_text("\n".join([*rows[:1], "garbage", *rows[2:]]) + "\n")
    monkeypatch.setattr(module, "SHORTEN_BYTES", 1000)
    reopened(journal).begin("r4", "a")
    assert "garbage" in Path(journal.path).read_text()


class Killed(BaseException):
    """The end of the process."""


def test_a_run_killed_while_it_shortens_has_lost_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SHORTEN_BYTES", 1000)
    killed = 0
    for number in range(1, 40):
        journal = Journal(str(tmp_path / str(number)))
        settled(journal, 20)
        expected = (journal.standing(), journal.interrupted("other"))
        count = [0]
        with monkeypatch.context() as patch:
            for name in ("write", "fsync", "rename", "unlink", "open"):
                patch.setattr(os, name, _dying(getattr(os, name), number, count))
            try:
                reopened(journal).begin("r3", "a")
            except Killed:
                killed += 1
        again = reopened(journal)
        assert (again.standing(), again.interrupted("other"), again.losses()) == (*expected, []), number
        again.begin("r4", "a")
        assert (again.standing(), again.losses()) == (expected[0], []), number
    assert killed > 15


def _dying(real: Any, when: int, count: list[int]) -> Any:
    def call(*args: Any, **options: Any) -> Any:
        count[0] += 1
        if count[0] == when:
            if real.__name__ == "write":
                # Half of it arrives.
                real(args[0], args[1][: len(args[1]) // 2])
            raise Killed
        return real(*args, **options)

    return call


def test_a_held_lock_is_seen_without_taking_it(holder: Holder, tmp_path: Path) -> None:
    assert Journal(str(tmp_path)).at_work() == str(holder.pid)
    holder.let_go()
    assert Journal(str(tmp_path)).at_work() == ""
    assert Journal(str(tmp_path / "nothing")).at_work() == ""
