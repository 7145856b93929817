# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Findings in a list: worst first, alike ones in one row, none lost."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpufleet.host.plugins.plugin_utils import fleet_findings as findings
from tests.page import hosts

NAMES = {"0000:%s:00.0" % row[0]: "GPU %d" % place for place, row in enumerate(hosts.HGX_BUSES)}


def of(document: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = document["areas"]["platform"]["findings"]
    return rows


def row(name: str, level: str, subject: str, **changes: Any) -> dict[str, Any]:
    return {
        "id": "platform." + name,
        "level": level,
        "subject": subject,
        "expected": "a",
        "observed": "b",
        "why": "because",
        "fix": "do it",
        "source": "book",
        **changes,
    }


def test_the_same_of_several_gpus_is_one_row_with_the_worst_first() -> None:
    found = findings.rows(of(hosts.hgx()), NAMES)
    assert [(one.words, one.matter, one.count) for one in found] == [
        ("fault", "link width", 1),
        ("fault", "NVLink inactive", 1),
        ("fault", "row remap pending", 1),
        ("warning", "persistence", 8),
        ("warning", "link speed", 4),
        ("warning", "link errors", 1),
        ("warning", "RDMA port down", 1),
        ("warning", "PSU lost", 1),
        ("warning", "DIMM slow", 1),
        ("cannot be seen", "ACS", 1),
        ("note", "fabric manager", 1),
        ("note", "resizable BAR", 1),
    ]
    persistence = found[3]
    assert persistence.counted == "8 GPUs" and len(persistence.cases) == 1
    assert persistence.cases[0].subjects[0] == ("0000:19:00.0", "GPU 0")
    assert [name for _subject, name in persistence.cases[0].subjects] == ["GPU %d" % n for n in range(8)]


def test_different_values_stay_apart_in_their_row() -> None:
    rows = [
        row("temp", "warn", "0000:3b:00.0", observed="91 °C"),
        row("temp", "warn", "0000:19:00.0", observed="88 °C"),
    ]
    (found,) = findings.rows(rows, NAMES)
    assert [(case.subjects[0][1], case.observed) for case in found.cases] == [("GPU 0", "88 °C"), ("GPU 1", "91 °C")]


def test_one_that_cannot_be_seen_is_not_mixed_with_one_that_was() -> None:
    rows = [row("x", "warn", "a"), row("x", "warn", "b", observed={"unknown": "hung"}), row("x", "fail", "c")]
    assert [one.words for one in findings.rows(rows, {})] == ["fault", "warning", "cannot be seen"]


def test_of_many_different_texts_one_is_shown() -> None:
    rows = [row("x", "warn", "g%d" % n, fix="reset -i %d" % n) for n in range(8)]
    (found,) = findings.rows(rows, {})
    assert found.fix == ("reset -i 0",) and found.has_more_fixes
    assert found.why == ("because",) and found.counted == "8 in all"
    (found,) = findings.rows(rows[:2], {})
    assert found.fix == ("reset -i 0", "reset -i 1") and not found.has_more_fixes


def test_counts_are_worst_first_and_of_findings() -> None:
    assert findings.counts(of(hosts.hgx())) == [
        ("failed", "3 faults"),
        ("drifted", "16 warnings"),
        ("unknown", "1 that cannot be seen"),
        ("info", "2 notes"),
    ]


@given(
    st.lists(
        st.builds(
            row,
            st.sampled_from(["a", "b"]),
            st.sampled_from(["info", "warn", "fail", "block"]),
            st.text(max_size=4),
            observed=st.none() | st.text(max_size=3) | st.just({"unknown": "x"}) | st.lists(st.integers(), max_size=2),
        ),
        max_size=30,
    )
)
def test_no_subject_is_lost(rows: list[dict[str, Any]]) -> None:
    found = findings.rows(rows, {})
    shown = {(one.id, subject) for one in found for case in one.cases for subject, _name in case.subjects}
    assert shown == {(one["id"], one["subject"]) for one in rows if one["subject"]} or any(
        one.left_out for one in found
    )
    assert [findings.ORDER.index("unknown" if one.icon == "unknown" else one.level) for one in found] == sorted(
        findings.ORDER.index("unknown" if one.icon == "unknown" else one.level) for one in found
    )
