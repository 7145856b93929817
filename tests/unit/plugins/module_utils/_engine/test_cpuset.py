# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpufleet.host.plugins.module_utils._engine.cpuset import format_cpulist, parse_cpulist


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("", []),
        ("\n", []),
        ("0\n", [0]),
        ("0-3,8,10-11", [0, 1, 2, 3, 8, 10, 11]),
        ("0-1 4", [0, 1, 4]),
        ("0-1, 4", [0, 1, 4]),
        ("0-15:2/8", [0, 1, 8, 9]),
        ("3,1,3", [1, 3]),
    ],
)
def test_parse(text: str, ids: list[int]) -> None:
    assert sorted(parse_cpulist(text)) == ids


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("0-", "character 1"),
        ("0,x", "character 3"),
        ("3-1", "character 1"),
        ("1,,2", "character 3"),
        ("1,", "character 3"),
        ("0 70000", "character 3"),
        ("99999999999999999999", "character 1"),
        ("0-7:0/2", "character 1"),
        ("0-7:3/2", "character 1"),
        ("-1", "character 1"),
        ("٣", "character 1"),
        ("0x3", "character 1"),
    ],
)
def test_a_mistake_is_named_with_its_place(text: str, place: str) -> None:
    with pytest.raises(ValueError, match=place):
        parse_cpulist(text)


def test_a_list_that_names_all_over_and_over_ends_early() -> None:
    with pytest.raises(ValueError, match="names 262144 ids"):
        parse_cpulist("0-8191," * 20_000 + "0")
    assert len(parse_cpulist("0-65535,0-65535:1/2,7")) == 65_536


@given(st.sets(st.integers(0, 300)))
def test_round_trip(ids: set[int]) -> None:
    assert parse_cpulist(format_cpulist(ids)) == ids


@given(st.text(alphabet="0123456789-,:/ x\n", max_size=20))
def test_anything_else_is_a_value_error(text: str) -> None:
    try:
        parse_cpulist(text)
    except ValueError:
        pass
