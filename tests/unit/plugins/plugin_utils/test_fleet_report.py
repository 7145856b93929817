# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Documents: the schema, what is let in, and how reports of a run become one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import STATES, Finding, Report, Unknown
from ansible_collections.gpufleet.host.plugins.plugin_utils import fleet_report as fleet
from ansible_collections.gpufleet.host.plugins.plugin_utils.fleet_unreachable import task_failed, unreachable
from tests import fleet_sample as sample
from tests.page import hosts

SCHEMA = json.loads((Path(__file__).parents[4] / "docs/report.schema.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["failed", "applied", "run"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["id", "state", "steps", "findings", "level", "unknown", "status", "kind", "undo"])
            | st.text(max_size=4),
            inner,
            max_size=6,
        )
    ),
    max_leaves=25,
)


def errors(document: Any) -> list[str]:
    return ["%s: %s" % (error.json_path, error.message) for error in VALIDATOR.iter_errors(document)]


def doc(mode: str = "audit", facts: dict[str, Any] | None = None, **areas: Report) -> fleet.Document:
    found = fleet.normalise(sample.report(areas, "gpu01", mode, {} if facts is None else facts))
    assert found is not None
    return found


def run(*documents: fleet.Document) -> fleet.Document:
    merged = None
    for document in documents:
        merged = fleet.merge(merged, document)
    assert merged is not None
    return merged


DRIFTED = Report("drifted", sample.done(sample.SCHEDULER, status="planned"), (), sample.QUEUE_OFF, sample.QUEUE_OFF)
CHANGED = Report("changed", sample.done(sample.RULES, sample.SCHEDULER), (), sample.QUEUE_OFF, sample.QUEUE)
GOOD = Report("compliant", (), (), sample.QUEUE, sample.QUEUE)


# --- schema


def test_the_headline_is_the_worst_finding() -> None:
    document = hosts.lone_smi()
    document["areas"]["platform"]["findings"].sort(key=lambda row: fleet.LEVELS.index(row["level"]))
    assert "holds this GPU down" in fleet.headline(document)
    document = hosts.hgx()
    document["areas"]["platform"]["findings"].insert(
        0, {**hosts.hgx()["areas"]["platform"]["findings"][0], "fix": "later"}
    )
    assert fleet.next_step(document).startswith("reseat the GPU")


def test_warnings_of_a_host_that_is_as_wanted_are_not_hidden() -> None:
    warning = hosts.finding("persistence", "warn", "0000:01:00.0", "on", "off", "why", "fix")
    document = hosts.document("x", hosts.facts("x"), (warning, warning))
    assert document["state"] == "compliant"
    assert fleet.headline(document) == "as wanted, with 2 warnings: platform: 0000:01:00.0: why"


def test_schema_is_sound() -> None:
    VALIDATOR.check_schema(SCHEMA)


def test_what_modules_give_back_is_as_the_schema_says() -> None:
    areas = {"block_queue": CHANGED, "kernel_settings": DRIFTED}
    assert errors(sample.report(areas, "gpu01")) == []
    assert errors(sample.report(areas, "gpu01", facts={})) == []


def test_every_document_of_the_sample_is_as_the_schema_says() -> None:
    # A hostile host may put anything into its facts: that is kept, and shown, and is not valid.
    assert [errors(document) for document in sample.sample()[:-1]] == [[]] * 9
    assert [errors(make()) for make in hosts.ALL] == [[]] * len(hosts.ALL)


@pytest.mark.parametrize(
    "part, value",
    [
        ("gpus", [{}]),
        ("nvlink", {"switches": -1, "pairs": []}),
        ("nvlink", {"switches": 0, "pairs": [{"a": "0000:01:00.0", "b": "0000:02:00.0", "type": "X"}]}),
        ("psus", [{"name": "1", "present": 1, "ok": True, "capacity_w": 800}]),
        ("system", {"manufacturer": "ASUS"}),
    ],
)
def test_hardware_that_is_not_as_agreed_is_named(part: str, value: Any) -> None:
    document = hosts.workstation()
    document["host_facts"]["hardware"][part] = value
    assert errors(document)
    del document["host_facts"]["hardware"]
    assert errors(document) == []


@pytest.mark.parametrize(
    "path, wrong",
    [
        (("format",), 2),
        (("state",), "fine"),
        (("taken",), "yesterday"),
        (("surplus",), 1),
        (("areas", "block_queue", "steps", 0, "status"), "maybe"),
        (("areas", "block_queue", "steps", 0, "argv"), ["true"]),
        (("areas", "block_queue", "steps", 0, "kind"), "run"),
        (("host_facts", "pci", 0, "link", "width"), 0),
        (("host_facts", "pci", 0, "numa_node"), -1),
        (("host_facts", "numa_nodes", 0, "memory_mib"), {"unknown": "x"}),
    ],
)
def test_schema_refuses(path: tuple[Any, ...], wrong: Any) -> None:
    document = doc(facts=sample.host_facts("gpu01"), block_queue=CHANGED)
    place: Any = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = wrong
    assert errors(document)


# --- at the door


@given(JUNK)
def test_anything_is_taken_or_left(junk: Any) -> None:
    assert fleet.normalise(junk) is None or errors(fleet.normalise(junk)) == []


@given(JUNK, JUNK, JUNK)
def test_junk_in_a_report_becomes_a_document_that_can_be_told(area: Any, facts: Any, more: Any) -> None:
    report = {"format": 1, "areas": {"a": area, "b": {"steps": [area], "findings": [more]}}, "host_facts": facts}
    document = fleet.normalise(report)
    assert document is not None
    json.dumps(document, allow_nan=False)
    document["host_facts"] = {}
    assert errors(document) == []
    fleet.headline(run(document, document))
    fleet.next_step(document)


def test_a_report_of_another_format_is_none_of_ours() -> None:
    assert fleet.normalise(dict(sample.report({}, "x"), format=2)) is None
    assert fleet.normalise({"results": []}) is None


def test_deep_nesting_is_cut() -> None:
    deep: Any = 1
    for _level in range(500):
        deep = [deep]
    document = fleet.normalise(dict(sample.report({}, "x"), host_facts={"deep": deep}))
    assert len(json.dumps(document)) < 1000


# --- over a run


def test_audit_role_audit_tells_what_was_found_done_and_is_now() -> None:
    area = run(doc(block_queue=DRIFTED), doc("apply", block_queue=CHANGED), doc(block_queue=GOOD))["areas"][
        "block_queue"
    ]
    assert area["state"] == "changed"
    assert [(step["id"], step["status"]) for step in area["steps"]] == [
        ("block_queue.rules", "applied"),
        ("block_queue.nvme1n1.scheduler", "applied"),
    ]
    assert area["before"] == sample.QUEUE_OFF
    assert area["after"] == sample.QUEUE


def test_areas_of_other_reports_stay() -> None:
    facts = sample.host_facts("gpu01")
    merged = run(doc(facts=facts, block_queue=DRIFTED, kernel_settings=GOOD), doc("apply", block_queue=CHANGED))
    assert {name: area["state"] for name, area in merged["areas"].items()} == {
        "block_queue": "changed",
        "kernel_settings": "compliant",
    }
    assert (merged["mode"], merged["state"], merged["host_facts"]) == ("apply", "changed", facts)


def test_an_audit_only_run_keeps_the_newest_plan() -> None:
    merged = run(doc(block_queue=DRIFTED), doc(block_queue=GOOD))
    assert merged["state"] == "compliant"
    assert merged["areas"]["block_queue"]["steps"] == []


def test_a_change_that_was_lost_again_within_the_run_is_drift_with_its_history() -> None:
    area = run(doc("apply", block_queue=CHANGED), doc(block_queue=DRIFTED))["areas"]["block_queue"]
    assert area["state"] == "drifted"
    assert [step["status"] for step in area["steps"]] == ["applied", "applied", "planned"]


def test_rolled_back_stays_so_though_the_audit_after_it_sees_drift() -> None:
    back = Report("rolled_back", sample.done(sample.SCHEDULER, status="undone"), (sample.REFUSED,))
    merged = run(doc(block_queue=DRIFTED), doc("apply", block_queue=back), doc(block_queue=DRIFTED))
    area = merged["areas"]["block_queue"]
    assert merged["state"] == "rolled_back"
    assert [row["id"] for row in area["findings"]] == ["engine.step-refused"]
    assert [step["status"] for step in area["steps"]] == ["undone", "planned"]


def test_a_second_try_that_works_ends_the_story_of_the_first() -> None:
    back = Report("rolled_back", sample.done(sample.SCHEDULER, status="undone"), (sample.REFUSED,))
    merged = run(doc("apply", block_queue=back), doc("apply", block_queue=CHANGED), doc(block_queue=GOOD))
    area = merged["areas"]["block_queue"]
    assert (area["state"], area["findings"]) == ("changed", [])
    assert [step["status"] for step in area["steps"]] == ["undone", "applied", "applied"]


def test_what_consent_holds_back_is_blocked_though_an_audit_calls_it_drift() -> None:
    held = sample.done(sample.REMOUNT, status="blocked", detail="disruptive step")
    merged = run(
        doc(xfs_volumes=Report("drifted", held)),
        doc("apply", xfs_volumes=Report("blocked", held)),
        doc(xfs_volumes=Report("drifted", held)),
    )
    assert merged["state"] == "blocked"
    assert len(merged["areas"]["xfs_volumes"]["steps"]) == 1


def test_waiting_for_a_reboot_is_told_beside_what_was_done_and_ends_with_it() -> None:
    waits = sample.done(sample.CMDLINE, status="waits")
    applied = Report("pending_reboot", sample.done(sample.RULES) + waits)
    merged = run(doc("apply", kernel_settings=applied), doc(kernel_settings=Report("pending_reboot", waits)))
    assert [step["status"] for step in merged["areas"]["kernel_settings"]["steps"]] == ["applied", "waits"]
    assert merged["state"] == "pending_reboot"
    assert fleet.merge(merged, doc(kernel_settings=GOOD))["state"] == "changed"


def test_unknown_after_a_change_is_unknown() -> None:
    lost = Report("unknown", findings=(Finding("x", "warn", "s", 1, Unknown("hung"), "w", "f", "s"),))
    assert run(doc("apply", block_queue=CHANGED), doc(block_queue=lost))["state"] == "unknown"


def test_an_interrupted_run_is_told_to_the_end() -> None:
    cut = Finding("engine.interrupted-run", "info", "r1", "a run that ended", "killed", "w", "f", "engine")
    first = Report("changed", CHANGED.steps, (cut,), sample.QUEUE_OFF, sample.QUEUE)
    area = run(doc("apply", block_queue=first), doc(block_queue=GOOD))["areas"]["block_queue"]
    assert [row["id"] for row in area["findings"]] == ["engine.interrupted-run"]


@given(st.lists(st.tuples(st.sampled_from(fleet.MODES), st.sampled_from([DRIFTED, CHANGED, GOOD])), min_size=1))
def test_nothing_done_is_ever_lost_and_the_result_is_valid(reports: list[tuple[str, Report]]) -> None:
    merged = run(*(doc(mode, block_queue=report) for mode, report in reports))
    was_applied = any(report is CHANGED for _mode, report in reports)
    assert was_applied == any(step["status"] == "applied" for step in merged["areas"]["block_queue"]["steps"])
    assert merged["mode"] == max((mode for mode, _report in reports), key=fleet.MODES.index)
    assert errors(merged) == []


def test_a_host_that_answers_again_is_not_unreachable() -> None:
    gone = sample.blank("gpu01", unreachable("No route to host"))
    assert gone["state"] == "unknown"
    assert run(gone, doc(block_queue=GOOD))["state"] == "compliant"


def test_a_host_that_went_away_after_its_audit_is_unknown() -> None:
    assert fleet.with_finding(doc(block_queue=GOOD), unreachable(""))["state"] == "unknown"


def test_a_host_of_which_nothing_was_looked_at_keeps_its_state() -> None:
    assert fleet.normalise(dict(sample.report({}, "x"), state="unknown"))["state"] == "unknown"  # type: ignore[index]


# --- in words


def test_names_sort_as_people_count() -> None:
    names = ["gpu10", "gpu2", "a", "gpu2b", "10", "9", "²"]
    assert sorted(names, key=fleet.natural) == ["9", "10", "a", "gpu2", "gpu2b", "gpu10", "²"]


def test_worst_first_and_counted() -> None:
    documents = sample.sample()
    states = [document["state"] for document in fleet.by_urgency(documents)]
    assert states == sorted(states, key=STATES.index, reverse=True)
    assert list(fleet.count_states(documents)) == sorted(set(states), key=STATES.index, reverse=True)


def test_every_host_that_is_not_as_wanted_is_told_what_to_do() -> None:
    for document in sample.sample():
        assert bool(fleet.next_step(document)) == (document["state"] not in fleet.GOOD_STATES), document["host"]
        assert fleet.headline(document)


@pytest.mark.parametrize("number, words", [(1, "1 setting becomes true"), (2, "2 settings become true")])
def test_waiting_settings_are_counted(number: int, words: str) -> None:
    waits = Report("pending_reboot", sample.done(sample.CMDLINE, status="waits") * number)
    assert words in fleet.next_step(doc(kernel_settings=waits))


def test_what_is_wrong_with_a_variable_is_said_before_a_line_ends() -> None:
    said = "io_scheduler_rules[0].schedular: no such key; did you mean scheduler? allowed: class, id"
    task = "Observe the host and plan every area of it, with a long name"
    document = sample.blank("gpu01", task_failed(task, said, "gpufleet.host.node_audit", is_input=True))
    assert fleet.headline(document) == said
