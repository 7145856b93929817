# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a damaged journal still tells: each kind of damage on a file that was changed twice, between two others."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.gpufleet.host.plugins.module_utils._engine import records
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import Step


def value(target: str, before: str, after: str, **more: Any) -> Step:
    return Step("s." + target, "value", target, before, after, "why", "source", **more)


STEPS = [value("/a", "0", "1"), value("/x", "ORIGINAL", "T1"), value("/x", "T1", "T2"), value("/b", "0", "1")]


def events(firsts: bool = True) -> list[dict[str, Any]]:
    known = records.Records()
    rows: list[dict[str, Any]] = [{"event": "begin", "run": "r1", "area": "knobs", "time": 1.5}]
    for number, step in enumerate(STEPS, 1):
        intend = {"event": "intend", "number": number, "run": "r1", "area": "knobs", "step": step.to_json()}
        rows.append(dict(intend, first=known.first_of(step)) if firsts else intend)
        known.add(rows[-1])
        rows.append({"event": "done", "number": number})
    return [*rows, {"event": "end", "run": "r1", "area": "knobs", "state": "changed", "time": 2.5}]


def old() -> list[str]:
    """As the first version wrote it."""
    return [json.dumps(event, sort_keys=True) for event in events(firsts=False)]


def new() -> list[str]:
    return [records.seal(event, seq) for seq, event in enumerate(events(), 1)]


def read(rows: list[str], noted: int = 0) -> records.Records:
    return records.read("".join(row + "\n" for row in rows), noted)


def trusted(known: records.Records) -> dict[str, str]:
    """What a revert would go back to."""
    return {
        entry.step.target: entry.step.before
        for entry, _numbers in records.originals(list(known.entries.values()))
        if not known.doubt(entry)
    }


WHOLE = {"/a": "0", "/x": "ORIGINAL", "/b": "0"}
FIRST_OF_X = 3  # the line's place in the list


@pytest.mark.parametrize("rows", [old(), new(), old() + new()[:0]])
def test_a_whole_journal_has_lost_nothing(rows: list[str]) -> None:
    known = read(rows)
    assert (known.losses, trusted(known), known.last_number) == ([], WHOLE, 4)
    assert known.open_runs == []


def test_a_new_version_goes_on_with_a_journal_of_the_first() -> None:
    rows = [*old(), records.seal({"event": "begin", "run": "r2", "area": "knobs"}, 1)]
    assert read(rows).losses == []
    assert read(rows).last_seq == 1


@pytest.mark.parametrize("made", [old, new])
@pytest.mark.parametrize("damage", ["garbage \x00", None, "{", '{"event": "intend"}'])
def test_a_lost_original_is_known_and_what_hangs_on_it_is_not_trusted(made: Any, damage: str | None) -> None:
    rows = made()
    rows[FIRST_OF_X : FIRST_OF_X + 1] = [] if damage is None else [damage]
    known = read(rows)
    assert [(loss.numbers, loss.is_step) for loss in known.losses] == [((2,), True)]
    assert known.losses[0].area == "knobs" or damage == '{"event": "intend"}'
    back = trusted(known)
    assert "/x" not in back
    # With the first original noted in each record, all others are known to be true.
    assert back == ({"/a": "0", "/b": "0"} if made is new else {"/a": "0"})


def test_what_can_still_be_read_of_a_damaged_line_is_told() -> None:
    rows = new()
    rows[FIRST_OF_X] = rows[FIRST_OF_X].replace("ORIGINAL", "ORIGINAX")
    [loss] = read(rows).losses
    assert loss.place() == "line 4: record 2, area knobs, run r1, /x"
    assert "checksum" in loss.why
    assert trusted(read(rows)) == {"/a": "0", "/b": "0"}


@pytest.mark.parametrize("form", [3, 99, "x"])
def test_a_record_of_a_newer_version_is_named_and_the_rest_is_known(form: Any) -> None:
    rows = new()
    rows[FIRST_OF_X] = json.dumps(dict(json.loads(rows[FIRST_OF_X]), format=form), sort_keys=True)
    known = read(rows)
    assert [loss.where for loss in known.losses] == ["line 4"]
    assert trusted(known) == {"/a": "0", "/b": "0"} or form == "x"


@pytest.mark.parametrize("key", ["number", "run", "area", "step"])
def test_a_record_without_a_key_is_named_and_the_rest_is_known(key: str) -> None:
    rows = old()
    event = json.loads(rows[FIRST_OF_X])
    del event[key]
    rows[FIRST_OF_X] = json.dumps(event, sort_keys=True)
    known = read(rows)
    assert [loss.why for loss in known.losses] == ["lacks '%s'" % key]
    assert "/x" not in trusted(known)
    assert trusted(known)["/a"] == "0"


def test_a_step_of_a_kind_that_is_not_known_is_no_traceback() -> None:
    event = dict(events()[3], step=dict(STEPS[1].to_json(), kind="teleport"))
    rows = new()
    rows[FIRST_OF_X] = records.seal(event, 4)
    assert "kind 'teleport'" in read(rows).losses[0].why


@pytest.mark.parametrize("made", [old, new])
def test_a_lost_note_that_a_step_was_done_hides_no_original(made: Any) -> None:
    rows = made()
    rows[2] = "\x00\x00"
    known = read(rows)
    assert [loss.is_step for loss in known.losses] == [False]
    assert trusted(known) == WHOLE


def test_a_line_that_was_cut_short_is_no_loss() -> None:
    for made in (old, new):
        rows = made()
        for size in range(1, len(rows[FIRST_OF_X])):
            # The next run writes on after it: the step was not applied, so its number is used again.
            assert read([*rows[:FIRST_OF_X], rows[FIRST_OF_X][:size], *rows[FIRST_OF_X:]]).losses == [], (made, size)
            assert read([*rows[:FIRST_OF_X], rows[FIRST_OF_X][:size]]).losses == [], (made, size)


@pytest.mark.parametrize("junk", ["\x00" * 600, "\ufffd", "17", "null", '"event"', '{"no": "event"}'])
def test_junk_of_a_power_cut_between_chained_lines_is_no_loss(junk: str) -> None:
    rows = new()
    assert read([*rows[:4], junk, *rows[4:]]).losses == []


def test_an_end_that_is_lost_is_known_by_the_note_beside_the_journal() -> None:
    rows = new()
    known = read(rows[:5], noted=len(rows))
    assert [(loss.where, loss.count, loss.why) for loss in known.losses] == [("at the end", 5, "5 records are missing")]
    # What came before it is as true as it was; what is written after it may have been changed before.
    assert trusted(known) == {"/a": "0", "/x": "ORIGINAL"}
    assert known.first_of(value("/c", "1", "2")) == records.UNSURE
    assert known.last_seq == len(rows)
    later = [*rows[:5], records.seal({"event": "begin", "run": "r2", "area": "knobs"}, len(rows) + 1)]
    assert [loss.where for loss in read(later).losses] == ["before line 6"]


def test_everything_lost_is_known() -> None:
    for text in ("", "garbage", "\x00" * 4096, "{}\n{}\n"):
        assert sum(loss.count for loss in records.read(text, noted=10).losses) == 10
    assert records.read("garbage\n").losses
    assert records.read("").losses == []


def test_what_was_undone_is_no_loss() -> None:
    rows = events()
    rows += [{"event": "undone", "number": number} for number in (4, 3, 2, 1)]
    sealed = [records.seal(event, seq) for seq, event in enumerate(rows, 1)]
    sealed[FIRST_OF_X] = "garbage"
    known = read(sealed)
    assert (known.losses, known.entries) == ([], {})


def test_an_undone_note_that_is_lost_brings_no_old_original_back() -> None:
    rows = [*events(), {"event": "undone", "number": 3}, {"event": "undone", "number": 2}]
    known = read([records.seal(event, seq) for seq, event in enumerate(rows, 1)])
    later = {"event": "intend", "number": 5, "run": "r2", "area": "knobs", "step": value("/x", "ADMIN", "T3").to_json()}
    rows.append(dict(later, first=known.first_of(value("/x", "ADMIN", "T3"))))
    sealed = [records.seal(event, seq) for seq, event in enumerate(rows, 1)]
    del sealed[-2]
    del sealed[-2]
    damaged = read(sealed)
    assert damaged.losses
    assert trusted(damaged)["/x"] == "ADMIN"


def test_a_line_that_stands_there_twice_is_taken_once() -> None:
    rows = new()
    known = read([*rows, rows[2]])
    assert ["was there before" in loss.why for loss in known.losses] == [True]
    assert trusted(known) == WHOLE


def test_a_disk_keeps_its_original_under_another_kernel_name() -> None:
    known = records.Records()
    first = value("/sys/block/nvme0n1/queue/nr_requests", "32", "64", disk="nvme-eui.1")
    known.add({"event": "intend", "number": 1, "run": "r", "area": "a", "step": first.to_json(), "first": None})
    moved = value("/sys/block/nvme1n1/queue/nr_requests", "64", "128", disk="nvme-eui.1")
    other = value("/sys/block/nvme0n1/queue/nr_requests", "32", "64", disk="nvme-eui.2")
    assert (known.first_of(moved), known.first_of(other)) == (1, None)


# Shortening


def test_a_shortened_journal_says_the_same() -> None:
    rows = [*events(), {"event": "begin", "run": "r2", "area": "other"}, {"event": "undone", "number": 1}]
    known = read([records.seal(event, seq) for seq, event in enumerate(rows, 1)])
    text = records.shortened(known)
    again = records.read(text, noted=known.last_seq)
    assert (again.losses, again.entries, again.open_runs) == ([], known.entries, known.open_runs)
    assert (again.last_number, again.last_seq > known.last_seq) == (known.last_number, True)
    assert trusted(again) == {"/x": "ORIGINAL", "/b": "0"}


def test_the_first_and_the_newest_records_of_a_thing_are_kept() -> None:
    known = records.Records()
    for number in range(1, 101):
        step = value("/x", str(number - 1), str(number))
        event = {"event": "intend", "number": number, "run": "r%d" % number, "area": "a", "step": step.to_json()}
        known.add(dict(event, first=known.first_of(step)))
    again = records.read(records.shortened(known))
    assert sorted(again.entries) == [1, *range(91, 101)]
    assert again.runs == ["r1", *known.runs[-records.KEEP_RUNS :]]
    assert trusted(again) == {"/x": "0"}
