# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.gpufleet.host.plugins.plugin_utils.controller_door import (
    ActionModule,
    area_of,
    chosen_areas,
    playbook_variables,
    refuse_impossible,
    refuse_profile,
    refuse_risk,
    refuse_slips,
    refuse_states,
    role_variables,
    skipped_areas,
    smallest_form,
    want_of,
    where_people_are,
)

PLUGINS = Path(__file__).resolve().parents[4] / "plugins"
# No variables: a group that site.yml makes, and a callback.
INSIDE = {"gpufleet_drifted", "gpufleet_report"}


def test_a_want_that_cannot_be_names_variable_value_and_what_is_allowed() -> None:
    with pytest.raises(
        ValueError, match=r"io_scheduler_rules\[0\]\.nr_requests: 2 is not possible; allowed: a number from 4"
    ):
        refuse_impossible("block_queue", {"rules": [{"class": "nvme", "nr_requests": 2}]})


def test_types_and_choices_are_checked_before_any_host() -> None:
    with pytest.raises(ValueError, match="nvme, ssd, hdd, virtual"):
        refuse_impossible("block_queue", {"rules": [{"class": "floppy"}]})


def test_an_unknown_area_is_refused_with_the_list() -> None:
    with pytest.raises(ValueError, match=r"block_queu.*allowed: .*block_queue"):
        refuse_impossible("block_queu", {})


def test_a_want_that_can_be_passes() -> None:
    refuse_impossible("block_queue", {"rules": [{"class": "nvme", "scheduler": "none", "id": None}]})


@pytest.mark.parametrize("name", ["io_scheduler_rule", "io_schedular_rules", "io_scheduler_alow_risk"])
def test_a_misspelt_variable_is_named_with_what_was_meant(name: str) -> None:
    with pytest.raises(ValueError, match="%s: .*did you mean io_scheduler_" % name):
        refuse_slips({name: 1})


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("gpufleet_fail_state", "gpufleet_fail_states"),
        ("gpufleet_batchs", "gpufleet_batch"),
        ("gpufleet_host", "gpufleet_hosts"),
        ("gpufleet_revert_runs", "gpufleet_revert_run"),
    ],
)
def test_a_misspelt_variable_of_a_playbook_is_named_with_what_was_meant(name: str, meant: str) -> None:
    with pytest.raises(ValueError, match="%s: .*did you mean %s\\?" % (name, meant)):
        refuse_slips({name: 1})


def test_the_variables_of_playbooks_are_those_of_the_page() -> None:
    page = (PLUGINS.parent / "docs/operations.md").read_text(encoding="utf-8")
    assert [name for name in playbook_variables() if name not in page and name not in INSIDE] == []


def test_a_risk_that_there_is_not_is_refused_with_the_choices() -> None:
    with pytest.raises(ValueError, match="kernel_allow_risk: 'all' is not possible; allowed: safe, disruptive, destr"):
        refuse_risk("kernel_allow_risk", "all")
    for risk in (None, "safe", "destructive"):
        refuse_risk("kernel_allow_risk", risk)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["drifted", "faild"], "'faild' is not possible; did you mean failed? allowed: changed, pending_reboot"),
        (["compliant"], "'compliant' is not possible; allowed"),
        ("drifted", "given 'drifted'; allowed: a list such as [drifted, failed]"),
        (None, "given None; allowed: a list"),
    ],
)
def test_states_by_which_no_run_can_end_are_refused(given: Any, words: str) -> None:
    with pytest.raises(ValueError) as error:
        refuse_states(given)
    assert str(error.value).startswith("gpufleet_fail_states: " + words)
    refuse_states(["drifted", "rolled_back"])
    refuse_states([])


def test_an_area_to_revert_goes_by_its_role_too_and_a_slip_is_refused() -> None:
    assert (area_of("block_queue"), area_of("io_scheduler")) == ("block_queue", "block_queue")
    with pytest.raises(
        ValueError, match=r"gpufleet_revert_area: 'block_que' is not possible; did you mean block_queue?"
    ):
        area_of("block_que")


@pytest.mark.parametrize(
    ("name", "args", "words"),
    [
        ("node_revert", {"allow_risk": "al"}, "gpufleet_allow_risk: 'al' is not possible; allowed: safe"),
        ("node_revert", {"area": "kernl"}, "gpufleet_revert_area: 'kernl' is not possible; did you mean kernel?"),
        ("block_queue", {"rules": [], "allow_risk": "saf"}, "io_scheduler_allow_risk: 'saf' .* did you mean safe?"),
        (
            "node_audit",
            {"wants": {"block_queue": {"rules": []}}, "allow_risk": {"block_queue": "all"}},
            "io_scheduler_al",
        ),
        ("node_capture", {"wants": {"block_queue": {"rules": [{"class": "nvm"}]}}}, "io_scheduler_"),
    ],
)
def test_each_task_is_checked_for_what_it_takes(name: str, args: dict[str, Any], words: str) -> None:
    action = SimpleNamespace(_of_roles=lambda *_given: {}, _templar=None)
    with pytest.raises(ValueError, match=words):
        ActionModule._checked(action, name, args, {})


def test_variables_of_others_are_left_alone() -> None:
    others = {
        "kernel_version": 1,
        "gpufleet_site_name": 1,
        "gpufleet_hostname": 1,
        "ansible_kernel": 1,
        "io": 1,
        "__io_scheduler_want": 1,
        "item": 1,
    }
    refuse_slips(dict(others, **dict.fromkeys(role_variables())))


def test_what_is_not_an_option_is_no_want() -> None:
    assert want_of({"rules": [], "allow_risk": "safe", "run": "x", "_ansible_check_mode": True}) == {"rules": []}


@pytest.mark.parametrize(
    ("run", "skip", "of_task", "areas"),
    [
        (["all"], [], ["always"], ["block_queue", "kernel_settings"]),
        (["tagged"], [], ["always"], ["block_queue", "kernel_settings"]),
        (["io_scheduler"], [], ["always"], ["block_queue"]),
        (["kernel_settings"], [], ["always"], ["kernel_settings"]),
        (["all"], ["io_scheduler"], ["always"], ["kernel_settings"]),
        (["all"], ["all"], ["always"], []),
        # Of plays of others in the same run, or nothing at all: what is tagged always runs, and must not do everything.
        (["web"], [], ["always"], []),
        (["untagged"], [], ["always"], []),
        (["always"], [], ["always"], []),
        # Put on the import of a playbook of ours, or on the task itself.
        (["tune"], [], ["always", "tune"], ["block_queue", "kernel_settings"]),
        (["tune", "kernel"], [], ["always", "tune"], ["kernel_settings"]),
    ],
)
def test_tags_choose_areas(run: list[str], skip: list[str], of_task: list[str], areas: list[str]) -> None:
    assert chosen_areas(["block_queue", "kernel_settings"], run, skip, of_task) == areas


@pytest.mark.parametrize(
    ("name", "areas", "sent"),
    [
        ("node_audit", ["kernel_settings", "xfs_volumes"], "node_audit_tuning"),
        ("node_audit", ["platform", "kernel_settings"], "node_audit"),
        ("node_audit_tuning", ["kernel_settings"], "node_audit_tuning"),
        ("block_queue", [], "block_queue"),
    ],
)
def test_the_smallest_form_is_sent(name: str, areas: list[str], sent: str) -> None:
    assert smallest_form(name, areas, "gpufleet.host." + name) == "gpufleet.host." + sent


def test_a_capture_is_looked_for_where_people_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gpu07.tar.gz").touch()
    assert where_people_are("gpu07.tar.gz") == str(tmp_path / "gpu07.tar.gz")
    assert where_people_are("/on/the/host") == "/on/the/host"


def of_roles(name: str, args: dict[str, Any], **variables: Any) -> dict[str, Any]:
    """What the action adds to a task's options, where templates are already texts."""
    templated: list[Any] = []
    action = SimpleNamespace(
        _templar=SimpleNamespace(template=lambda value: templated.append(value) or value),
        _task=SimpleNamespace(tags=["always"]),
        _given=lambda name, variables: variables.get(name),
    )
    shown = {
        "__io_scheduler_want": {"rules": [], "gone": "OMIT"}, "io_scheduler_allow_risk": "safe",
        "__kernel_want": {"swap": 1}, "kernel_allow_risk": "disruptive", "omit": "OMIT",
        "ansible_run_tags": ["all"], "ansible_skip_tags": [],
    }  # fmt: skip
    found = ActionModule._of_roles(action, name, args, {**shown, **variables})
    return {**found, "templated": len(templated)}


def test_wants_and_risks_are_those_of_the_roles_that_the_play_shows() -> None:
    assert of_roles("node_audit", {}) == {
        "areas": ["kernel_settings", "block_queue"],
        "wants": {"kernel_settings": {"swap": 1}, "block_queue": {"rules": []}},
        "allow_risk": {"kernel_settings": "disruptive", "block_queue": "safe"},
        "templated": 4,
    }


def test_what_tags_leave_out_is_not_templated() -> None:
    found = of_roles("node_audit", {}, ansible_skip_tags=["kernel"])
    assert (found["areas"], list(found["wants"]), found["templated"]) == (["block_queue"], ["block_queue"], 2)


def test_a_capture_takes_all_of_them() -> None:
    found = of_roles("node_capture", {}, ansible_skip_tags=["kernel"])
    assert list(found["wants"]) == ["kernel_settings", "block_queue"]
    assert not {"areas", "allow_risk"} & set(found)


def test_wants_that_are_given_are_taken_as_they_are() -> None:
    assert of_roles("node_audit", {"wants": {"block_queue": {}}}) == {"areas": ["block_queue"], "templated": 0}


def test_without_wants_and_roles_it_is_said_what_to_do() -> None:
    action = SimpleNamespace(_given=lambda name, variables: None, _templar=None, _task=SimpleNamespace(tags=[]))
    with pytest.raises(ValueError, match=r"wants: not given.*tasks_from: wants"):
        ActionModule._of_roles(action, "node_audit", {}, {})


@pytest.mark.parametrize("name", [None, "", "training"])
def test_a_profile_may_be_left_out(name: Any) -> None:
    refuse_profile(name)


@pytest.mark.parametrize("name", ["trainning", "inference", ["training"], True])
def test_a_profile_that_there_is_not_is_refused_with_those_that_there_are(name: Any) -> None:
    with pytest.raises(ValueError, match=r"gpufleet_profile: .*allowed: training"):
        refuse_profile(name)


def test_a_null_is_left_out_of_wants_and_risks() -> None:
    found = of_roles("node_audit", {}, __kernel_want={"swap": None, "pages": ""}, kernel_allow_risk=None)
    assert (found["wants"]["kernel_settings"], found["allow_risk"]) == ({}, {"block_queue": "safe"})


@pytest.mark.parametrize(
    ("given", "areas"),
    [
        (None, set()),
        ([], set()),
        ("", set()),
        (["numa_slices", "kernel"], {"numa_slices", "kernel_settings"}),
        # As -e on a command line gives it.
        ("io_scheduler, platform", {"block_queue", "platform"}),
    ],
)
def test_areas_are_left_out_by_their_name_or_their_roles(given: Any, areas: set[str]) -> None:
    assert skipped_areas(given) == areas


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["numa_slice"], "'numa_slice' is not possible; did you mean numa_slices"),
        (["kernal"], "'kernal' is not possible; did you mean kernel"),
        ({"numa_slices": True}, "a list such as"),
    ],
)
def test_an_area_that_there_is_not_cannot_be_left_out(given: Any, words: str) -> None:
    with pytest.raises(ValueError, match="gpufleet_skip_areas: .*" + words):
        skipped_areas(given)


def test_what_the_inventory_leaves_out_is_not_looked_at_whatever_the_tags_say() -> None:
    for tags in (["all"], ["kernel"]):
        found = of_roles("node_audit", {}, gpufleet_skip_areas=["kernel_settings"], ansible_run_tags=tags)
        assert "kernel_settings" not in [*found["areas"], *found["wants"]]
