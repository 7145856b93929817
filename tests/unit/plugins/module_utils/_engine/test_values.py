# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import (
    STATES,
    BadWant,
    Finding,
    Report,
    Step,
    StepResult,
    Unknown,
    from_jsonable,
    jsonable,
    known,
    lines,
    readable,
    worst,
)

UNDO = Step("undo.x", "run", "array", "made", "gone", "why", "mdadm(8)", argv=("mdadm", "--stop", "/dev/md0"))


def step(**changes: Any) -> Step:
    options: dict[str, Any] = {"id": "a.b", "kind": "value", "target": "/sys/x", "before": "1", "after": "2"}
    options.update({"why": "since", "source": "kernel docs"})
    options.update(changes)
    return Step(**options)


@pytest.mark.parametrize(
    "original",
    [
        step(),
        step(then=(("/sys/y", "3"), ("/sys/z", "4")), needs="reload"),
        step(kind="file", target="/etc/x", before=None, after="text\n", mode=0o600, requires=("a.a",)),
        step(kind="file", target="/etc/x", before="caf\udce9\r\n", after=None),
        step(kind="run", argv=("mdadm", "--create"), stdin="y\n", deadline_s=5.5, risk="destructive", undo=UNDO),
        step(kind="reboot", before=Unknown("no /proc/cmdline"), after="iommu=pt", needs="reboot"),
    ],
    ids=["value", "then", "new-file", "removed-file", "run", "reboot"],
)
def test_a_step_survives_json(original: Step) -> None:
    assert Step.from_json(json.loads(json.dumps(original.to_json()))) == original


@pytest.mark.parametrize("wrong", [{"kind": "magic"}, {"risk": "bold"}, {"needs": "luck"}])
def test_a_step_of_no_known_kind_cannot_be_made(wrong: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"step a\.b"):
        step(**wrong)


def test_other_values_of_no_known_kind_cannot_be_made() -> None:
    with pytest.raises(ValueError, match="level"):
        Finding("a.b", "panic", "x", 1, 2, "why", "fix", "source")
    with pytest.raises(ValueError, match="state"):
        Report("fine")


def test_only_a_reboot_step_waits() -> None:
    assert step(kind="reboot").waits_for_reboot
    assert not step().waits_for_reboot


def test_unknown_is_false_and_never_zero() -> None:
    unknown = Unknown("hung")
    assert not unknown
    assert unknown != 0
    assert str(unknown) == "unknown (hung)"
    assert not known(unknown)
    assert known(0)
    assert known(None)


def test_unknown_survives_json_inside_of_other_values() -> None:
    value = {"a": [Unknown("x"), 1], "b": {"c": Unknown("y")}}
    assert from_jsonable(json.loads(json.dumps(jsonable(value)))) == value


def test_sets_of_mixed_things_become_lists() -> None:
    assert jsonable({"a": frozenset({2, 1}), 3: (1, {"x", 2})}) == {"a": [1, 2], "3": [1, [2, "x"]]}


def test_what_a_report_shows_can_be_written_as_utf8() -> None:
    finding = Finding("a.b", "warn", "caf\udce9", ["\udcff"], Unknown("\udc80"), "why", "fix", "source")
    results = (StepResult(step(before="caf\udce9"), "planned"),)
    text = json.dumps(Report("drifted", results, (finding,), {"k\udce9": "v"}).to_json(), ensure_ascii=False)
    assert text.encode("utf-8").decode("utf-8").count("\ufffd") == 5


def test_text_that_is_utf8_is_shown_as_it_is() -> None:
    assert readable({"ü": ["漢", 1, None]}) == {"ü": ["漢", 1, None]}


def test_a_report_is_json() -> None:
    report = Report("blocked", (StepResult(step(), "blocked", "why"),), (), {"a": Unknown("x")})
    shown = json.loads(json.dumps(report.to_json()))
    assert shown["state"] == "blocked"
    assert (shown["steps"][0]["status"], shown["steps"][0]["detail"]) == ("blocked", "why")
    assert shown["before"] == {"a": {"unknown": "x"}}


def test_worst_follows_the_order_of_states() -> None:
    assert worst([]) == "compliant"
    assert worst(["changed", "compliant"]) == "changed"
    assert worst(["drifted", "unknown", "pending_reboot"]) == "unknown"
    assert [worst([state, "compliant"]) for state in STATES] == list(STATES)


def test_a_bad_want_says_what_is_allowed() -> None:
    assert str(BadWant("volumes[0].agcount", 0, "1 to 1000")) == (
        "volumes[0].agcount: 0 is not possible: allowed is 1 to 1000"
    )


def test_lines_of_what_is_not_there() -> None:
    assert lines(None) == lines(Unknown("x")) == []
    assert lines("a\nb") == ["a", "b"]


# What reaches a terminal

CONTROLS = (
    "".join(map(chr, [*range(9), *range(11, 32), *range(127, 160)])) + "\u061c\u200e\u202a\u202e\u2066\u2069\u2028"
)
PIECES = st.sampled_from([
    "\x1b", "\x1b[", "\x1b]", "\x1bP", "\x1bc", "\x1b\\", "\x9b", "\x9d", "\x90", "\x9c", "\x07", "[0m", "0;PWNED", "31", "m", "]", "\n",
    "\t", "\u202e", "\x7f", "a", "größe", "\udc9b",
])  # fmt: skip


@given(st.one_of(st.lists(PIECES, max_size=12).map("".join), st.text(alphabet=CONTROLS + "[]0;mPc\\a"), st.text()))
def test_nothing_that_drives_a_terminal_is_readable(text: str) -> None:
    shown = readable(text)
    assert not set(shown) & set(CONTROLS)
    assert readable(shown) == shown, "nothing comes together that was cut in two"
    assert "".join(c for c in shown if c in "\n\t") == "".join(c for c in text if c in "\n\t")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Maker0\x1b\x1b[0m]0;PWNED\x07", "Maker0]0;PWNED"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x9b31mred", "red"),
        ("a\x1b]0;title\x07b\x1b]8;;http://x\x1b\\link", "ablink"),
        ("a\x9d0;title\x9cb", "ab"),
        ("a\x1bP1$r\x1b\\b", "ab"),
        ("\x1bPno end", "no end"),
        ("\x1bcreset\x1b(B\r\n", "reset\n"),
        ("user\u202egpj.exe", "usergpj.exe"),
        ("plain\ttext\n", "plain\ttext\n"),
        ("größe 漢字", "größe 漢字"),
    ],
)
def test_sequences_are_taken_out_whole(text: str, shown: str) -> None:
    assert readable({"key": [text]}) == {"key": [shown]}


@pytest.mark.parametrize(
    "text", ["\x1b]" * 200_000, "\x9b0" * 200_000, "\x9d" * 400_000, "\x1b[" + "0" * 400_000, "\x1b " * 200_000]
)
def test_a_text_of_nothing_but_sequences_costs_little(text: str) -> None:
    started = time.process_time()
    readable(text)
    assert time.process_time() - started < 2
