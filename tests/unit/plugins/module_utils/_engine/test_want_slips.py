# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Slips planted in every option of every area, at each depth, and what the operator reads about them."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Mapping, Tuple

import every_area
import pytest

from ansible_collections.gpufleet.host.plugins.module_utils._areas.all import AREAS
from ansible_collections.gpufleet.host.plugins.module_utils._engine import whole
from ansible_collections.gpufleet.host.plugins.module_utils._engine.door import bad_want_message
from ansible_collections.gpufleet.host.plugins.module_utils._engine.engine import Area
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import BadWant

WRONG: Mapping[str, List[Any]] = {
    "dict": [["a=b"], 3], "list": [{"a": 1}], "int": ["many", [1], {"a": 1}], "float": ["many", [1]],
    "bool": ["perhaps", [1]], "str": [["a"], {"a": 1}],
}  # fmt: skip
SAMPLES: Mapping[str, Any] = {"str": "x", "int": 1, "float": 1.5, "bool": True, "raw": 1}
FREE: List[Any] = [
    {"a": None}, {"a": [1]}, {"a": {"b": [1]}}, {"a": {"b": None}}, {1: 1}, {"a": True}, {"gpus": 1}, {"gpus": [1]},
    {"gpus": [{"name": 3}]}, {"gpus": {"a": 1}}, {"nosuch": []}, {"a": "x" * 9000}, {"a": {"b": "\n"}}, {"": ""},
]  # fmt: skip


def sample(rule: Mapping[str, Any]) -> Any:
    if rule.get("choices"):
        return rule["choices"][0]
    if rule["type"] == "list":
        return [sample(dict(rule, type=rule["elements"]))]
    if rule["type"] == "dict":
        return required(rule.get("options", {}))
    return SAMPLES[rule["type"]]


def required(spec: Mapping[str, Any]) -> Dict[str, Any]:
    return {name: sample(rule) for name, rule in spec.items() if rule.get("required")}


def planted(spec: Mapping[str, Any], path: str = "") -> Iterator[Tuple[Dict[str, Any], str, str]]:
    """Wants with one slip each, the place of the slip, and how the message on it goes on."""
    first = min(spec)
    yield dict(required(spec), **{first[:-1]: 1}), path + first[:-1], "no such key"
    for name, rule in spec.items():
        for want, place, says in _in_value(rule, path + name):
            yield dict(required(spec), **{name: want}), place, says
        if rule.get("required"):
            without = {key: item for key, item in required(spec).items() if key != name}
            yield without, path + name, "has to be there, and is not; allowed: "


def _in_value(rule: Mapping[str, Any], path: str) -> Iterator[Tuple[Any, str, str]]:
    for wrong in WRONG[rule["type"]]:
        yield wrong, path, "given "
    if rule["type"] == "list":
        for want, place, says in _in_value(dict(rule, type=rule["elements"]), path + "[0]"):
            yield [want], place, says
    elif rule.get("choices") and rule["type"] == "str":
        yield "zzz", path, "'zzz' is not possible; allowed: "
    elif "options" in rule:
        yield from planted(rule["options"], path + ".")


def message_on(area: Area, want: Mapping[str, Any]) -> str:
    with pytest.raises(BadWant) as error:
        whole.valid_want(area, want)
    return bad_want_message(area, error.value)


@pytest.mark.parametrize("name", every_area.NAMES)
def test_a_slip_anywhere_names_the_variable_its_place_and_what_is_allowed(name: str) -> None:
    area = AREAS[name]
    rows = list(planted(area.spec))
    assert len(rows) >= 5
    for want, place, says in rows:
        said = message_on(area, want)
        # The reason comes first, so that no line is cut before it.
        assert said.startswith("%s_%s: %s" % (area.role, place, says)), (want, said)
        assert " allowed: " in said and len(said) < 600, said
        assert not [word for word in ("__", "<class", "NoneType", "_Ansible", "Supported") if word in said], said


@pytest.mark.parametrize("name", every_area.NAMES)
def test_a_mapping_without_a_spec_of_its_own_has_an_example(name: str) -> None:
    area = AREAS[name]
    free = dict(_free(area.spec))
    assert set(free) == set(area.examples)
    for option, nested in free.items():
        for odd in FREE:
            try:
                whole.valid_want(area, nested(odd))
            except BadWant as error:
                said = bad_want_message(area, error)
                assert said.startswith("%s_%s" % (area.role, option.split(".")[0])) and len(said) < 700, said


def _free(spec: Mapping[str, Any], path: str = "") -> Iterator[Tuple[str, Any]]:
    """Options that are mappings of the operator's own keys, each with what puts a value there."""
    for name, rule in spec.items():
        if "options" in rule and rule["type"] in ("list", "dict"):
            for inner, put in _free(rule["options"], path + name + "."):
                yield inner, lambda odd, name=name, rule=rule, put=put: {
                    **required(spec), name: [{**required(rule["options"]), **put(odd)}],
                }  # fmt: skip
        elif rule["type"] == "dict":
            yield path + name, lambda odd, name=name: {**required(spec), name: odd}


@pytest.mark.parametrize(
    ("name", "want", "said"),
    [
        (
            "block_queue",
            {"rules": [{"class": "nvme", "schedular": "none"}]},
            "io_scheduler_rules[0].schedular: no such key; did you mean scheduler? allowed: class, id, scheduler, "
            "nr_requests, read_ahead_kb, rq_affinity, nomerges (option rules[0].schedular",
        ),
        (
            "kernel_settings",
            {"sysctls": ["vm.swappiness=10"]},
            "kernel_sysctls: given a list ['vm.swappiness=10'], allowed: a mapping such as {vm.swappiness: 10} (option",
        ),
        (
            "block_queue",
            {"rules": {"class": "nvme", "scheduler": "none"}},
            "io_scheduler_rules: given a mapping with class, scheduler, allowed: a list, each of it a mapping with class",
        ),
        (
            "xfs_volumes",
            {"volumes": [{"name": "data", "mount_point": "/data"}]},
            "xfs_storage_volumes[0].devices: has to be there, and is not; allowed: a list, each of it a text (option",
        ),
        ("numa_slices", {"gpus": [None]}, "numa_slices_gpus[0]: given nothing, allowed: a mapping with index, node"),
        ("platform", {"tables": {"gpsu": []}}, "platform_tables"),
    ],
)
def test_what_an_operator_reads(name: str, want: Mapping[str, Any], said: str) -> None:
    assert message_on(AREAS[name], want).startswith(said)


def test_on_and_off_are_what_they_say_to_yaml() -> None:
    assert whole.valid_want(AREAS["platform"], {"ecc": False, "smt": True})["ecc"] == "off"
