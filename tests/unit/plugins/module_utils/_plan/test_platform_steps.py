# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of registers and their unit, from values alone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from platform_cases import want_of

from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import Step, Unknown
from ansible_collections.gpufleet.host.plugins.module_utils._observe.pci_config import MaskedWrite
from ansible_collections.gpufleet.host.plugins.module_utils._plan import platform_steps
from ansible_collections.gpufleet.host.plugins.module_utils._plan.platform_steps import UNIT_FILE

PORT, GPU = "0000:17:01.0", "0000:19:00.0"


def acs(before: int = 0x1D) -> dict[str, Any]:
    return {
        "address": PORT,
        "acs": None,
        "kind": "switch",
        "why": "x",
        "write": MaskedWrite("ECAP_ACS+6.w", 0x14E, 0x7F, 0, before),
    }


def reads(before: int = 0x2930) -> dict[str, Any]:
    return {GPU: MaskedWrite("CAP_EXP+8.w", 0x68, 0x7000, 0x5000, before)}


def have(**changes: Any) -> dict[str, Any]:
    seen: dict[str, Any] = {"acs_ports": [acs()], "read_requests": reads(), "setpci": "/usr/bin/setpci",
                            "unit_file": None, "unit_link": False}  # fmt: skip
    return {**seen, **changes}


BOTH = want_of({"acs": "off", "max_read_request_bytes": 4096})


def plan(want: Any, seen: dict[str, Any]) -> list[Step]:
    return platform_steps.plan(want, seen)


def test_the_unit_comes_first_and_then_each_register() -> None:
    steps = plan(BOTH, have())
    assert [(step.kind, step.id) for step in steps] == [
        ("file", "platform.unit"),
        ("run", "platform.enable"),
        ("run", "platform.acs." + PORT),
        ("run", "platform.max_read_request." + GPU),
    ]
    assert [step.argv[1:] for step in steps[2:]] == [
        ("-s", PORT, "ECAP_ACS+6.w=0:7f"),
        ("-s", GPU, "CAP_EXP+8.w=5000:7000"),
    ]
    assert [(step.before, step.after) for step in steps[2:]] == [("0x001d", "0x0000"), ("0x2930", "0x5930")]


def test_undo_writes_the_bits_that_were_there_and_no_others() -> None:
    undone = [step.undo for step in plan(BOTH, have())[2:]]
    assert [step.argv[-1] for step in undone if step] == ["ECAP_ACS+6.w=1d:7f", "CAP_EXP+8.w=2000:7000"]
    assert [(step.before, step.after) for step in undone if step] == [("0x0000", "0x001d"), ("0x5930", "0x2930")]


def test_what_is_as_wanted_stays_in_the_unit_and_is_no_step() -> None:
    seen = have(acs_ports=[acs(0)], read_requests=reads(0x5930))
    text = platform_steps.render_unit(BOTH, seen)
    assert "ECAP_ACS+6.w=0:7f" in text and "CAP_EXP+8.w=5000:7000" in text
    assert plan(BOTH, {**seen, "unit_file": text, "unit_link": True}) == []


def test_the_unit_is_the_same_before_and_after_the_writes() -> None:
    after = have(acs_ports=[acs(0)], read_requests=reads(0x5930))
    assert platform_steps.render_unit(BOTH, have()) == platform_steps.render_unit(BOTH, after)


@pytest.mark.parametrize("given", [{}, {"acs": "any"}, {"acs": "report"}])
def test_nothing_is_asked_for(given: dict[str, Any]) -> None:
    want = want_of(given)
    assert plan(want, have()) == []
    # What an earlier run wrote stays, as with everything that is not set: revert takes it away.
    assert plan(want, have(unit_file="[Unit]\n", unit_link=True)) == []


def test_a_register_that_cannot_be_read_is_in_no_step_and_not_in_the_unit() -> None:
    seen = have(read_requests={GPU: Unknown("cut off")}, acs_ports=[{**acs(), "write": Unknown("cut off")}])
    assert plan(BOTH, seen) == []


def test_a_device_that_does_not_answer_now_stays_in_the_unit() -> None:
    text = platform_steps.render_unit(BOTH, have())
    for seen in (
        have(read_requests={GPU: Unknown("all ones")}),
        have(acs_ports=[{**acs(), "write": Unknown("cut off")}]),
    ):
        steps = plan(BOTH, {**seen, "unit_file": text, "unit_link": True})
        assert [step.kind for step in steps] == ["run"]


def test_a_unit_that_cannot_be_read_is_not_overwritten() -> None:
    steps = plan(BOTH, have(unit_file=Unknown("Input/output error"), unit_link=True))
    assert UNIT_FILE not in [step.target for step in steps]


def test_a_missing_setpci_is_the_roles_to_install() -> None:
    seen = have(setpci="", virtualization="none", passed_through=[], firmware=SimpleNamespace(lockdown="none"))
    [finding] = platform_steps.judge(BOTH, seen)
    assert (finding.level, finding.observed, finding.cured_by_role) == ("block", "not installed", True)
