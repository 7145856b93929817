# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.gpufleet.host.plugins.module_utils._engine.versions import (
    agree,
    bare,
    branch,
    compare,
    is_at_least,
    numbers,
)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("580.126.18", "580.126.18"),
        ("595.80", "595.80"),
        ("3:550.90.07-1.el9", "550.90.07"),
        ("580.159.03-0ubuntu0.26.04.1", "580.159.03"),
        ("8.9.2.26-1+cuda12.1", "8.9.2.26"),
        ("v12.4.1", "12.4.1"),
        ("R580", "580"),
        (" 470.57.02\n", "470.57.02"),
        ("2.1.0+cu121", "2.1.0"),
        ("580", "580"),
        ("", ""),
        ("N/A", ""),
        ("<none>", ""),
        ("12.4.1rc1", ""),
        ("٣.١", ""),
    ],
)
def test_what_belongs_to_the_version(text: str, version: str) -> None:
    assert bare(text) == version


def test_a_branch_is_the_first_number() -> None:
    assert branch("580.126.18") == 580
    assert branch("unknown") is None
    assert numbers("535.54.03") == (535, 54, 3)


@pytest.mark.parametrize(
    ("one", "other", "order"),
    [
        ("550.90.07", "550.107.02", -1),
        ("595.84", "595.80", 1),
        ("570.26", "570.26.00", 0),
        ("12.10", "12.9", 1),
        ("580", "580.65.06", -1),
        ("535.54.03", "535.054.3", 0),
        ("N/A", "580.65.06", None),
    ],
)
def test_versions_are_compared_by_number(one: str, other: str, order: int | None) -> None:
    assert compare(one, other) == order
    assert compare(*reversed([one, other])) == (None if order is None else -order)


@pytest.mark.parametrize(
    ("version", "floor", "expected"),
    [
        ("580.65.06", "580.65.06", True),
        ("580.126", "580.65.06", True),
        ("580.65", "580.65.06", None),
        ("580.65", "580", True),
        ("470.256.02", "525.60.13", False),
        ("525.60.13", "525.60.13", True),
        ("", "525.60.13", None),
        ("580", "580.00.00", True),
    ],
)
def test_a_floor(version: str, floor: str, expected: bool | None) -> None:
    assert is_at_least(version, floor) is expected


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("580.126.18", "3:580.126.18-1", True),
        ("580.126", "580.126.18", None),
        ("580.178", "580.173.02", False),
        ("550.107.02", "550.90.07", False),
        ("595.80", "595.80", True),
        ("570.144", "570.144.00", True),
        ("", "570.144", None),
    ],
)
def test_a_shortened_version_may_be_the_same(one: str, other: str, expected: bool | None) -> None:
    assert agree(one, other) is expected
    assert agree(*reversed([one, other])) is expected
