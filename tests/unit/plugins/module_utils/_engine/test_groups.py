# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What goes with a step that fails: a table a rule."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gpufleet.host.plugins.module_utils._engine.groups import fail_with
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import Step


def step(name: str, kind: str = "run", part: str = "", target: str = "", **more: Any) -> Step:
    return Step(name, kind, target or name, "old", "new", "why", "source", part=part, **more)


# Two volumes whose mounts were lost, and which need nothing that they share.
VOLUMES = [step("a.mount", part="/a"), step("b.remount", part="/b"), step("b.grow", part="/b")]
# The same, with a line in a file that they share, and the reload that makes it known.
SHARED = [step("fstab", "file"), step("reload", requires=("fstab",)), *VOLUMES]
# Values of two topics, each with its file; one of the topics is read again by a command.
TOPICS = [
    step("sysctl.file", "file", "sysctl"), step("sysctl.x", "value", "sysctl"), step("sysctl.y", "value", "sysctl"),
    step("limits.file", "file", "limits"), step("limits.reload", part="limits", requires=("limits.file",)),
]  # fmt: skip
CHAIN = [
    step("mkfs", part="/a"), step("mount", part="/a", requires=("mkfs",)), step("grow", part="/b", requires=("mount",)),
    step("else", part="/c"),
]  # fmt: skip
SAME = [step("one", "value", "a", "/sys/x"), step("two", "value", "b", "/sys/x"), step("three", "value", "c", "/sys/y")]


def every(steps: list[Step]) -> set[str]:
    return {one.id for one in steps}


@pytest.mark.parametrize(
    ("steps", "refused", "set_back", "go"),
    [
        (VOLUMES, [], [], set()),
        (VOLUMES, ["b.remount"], [], {"b.remount", "b.grow"}),
        (VOLUMES, ["a.mount"], [], {"a.mount"}),
        (SHARED, ["b.remount"], [], every(SHARED)),
        (SHARED, ["fstab"], [], every(SHARED)),
        (TOPICS, ["sysctl.x"], [], {"sysctl.file", "sysctl.x", "sysctl.y"}),
        (TOPICS, ["limits.reload"], [], {"limits.file", "limits.reload"}),
        (TOPICS, [], ["sysctl.x"], {"sysctl.x"}),
        (TOPICS, ["limits.file"], ["sysctl.y"], {"limits.file", "limits.reload", "sysctl.y"}),
        (CHAIN, ["mkfs"], [], {"mkfs", "mount", "grow"}),
        (CHAIN, ["grow"], [], {"mkfs", "mount", "grow"}),
        (CHAIN, ["else"], [], {"else"}),
        (SAME, ["two"], [], {"one", "two"}),
        (SAME, [], ["one"], {"one", "two"}),
        ([step("x"), step("y"), step("z", part="p")], ["z"], [], {"x", "y", "z"}),
    ],
)
def test_what_goes_with_a_failure(steps: list[Step], refused: list[str], set_back: list[str], go: set[str]) -> None:
    by_id = {one.id: one for one in steps}
    assert fail_with(steps, [by_id[name] for name in refused], [by_id[name] for name in set_back]) == go
