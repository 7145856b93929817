# SPDX-License-Identifier: GPL-3.0-or-later
"""Sizes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpufleet.host.plugins.module_utils._engine.units import (
    format_size,
    format_size_for_people,
    parse_size,
)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("64k", 65536),
        ("64K", 65536),
        ("64KiB", 65536),
        ("64KB", 65536),
        ("128m", 134217728),
        ("1GiB", 2**30),
        ("1.5T", 3 * 2**39),
        (" 7 g ", 7 * 2**30),
        ("512", 512),
        ("512B", 512),
        (0, 0),
        (4096, 4096),
    ],
)
def test_sizes_that_people_write(text: object, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text", ["", "k", "-1", "64q", "1.5", "1e3", "64 k k", "٣k", None, True, -5, 1.5, ["1"], "0x10"]
)
def test_what_is_no_size_is_refused(text: object) -> None:
    with pytest.raises(ValueError):
        parse_size(text)


@given(st.integers(min_value=0, max_value=2**70))
def test_a_size_survives_its_writing(size: int) -> None:
    assert parse_size(format_size(size)) == size


@given(st.text())
def test_no_text_does_anything_but_fail_cleanly(text: str) -> None:
    try:
        assert parse_size(text) >= 0
    except ValueError:
        pass


def test_sizes_in_sentences() -> None:
    assert format_size_for_people(512) == "512 bytes"
    assert format_size_for_people(2 * 2**40) == "2 TiB"
    assert format_size_for_people(3 * 2**60) == "3072 PiB"
