# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Planted secrets, one for each form that docs/security.md promises to take out."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpufleet.host.plugins.module_utils._engine.scrub_secrets import without_secrets

CASES = yaml.safe_load(
    (Path(__file__).resolve().parents[5] / "tests/unit/cases/secrets.yml").read_text(encoding="utf-8")
)
PLANTED = [case for case in CASES if not case.get("same")]
# What begins a text that would cost a pattern of another kind the square of its length.
STARTS = (
    "password=",
    "--password ",
    "://",
    "mysql ",
    "authorization: basic ",
    "$6$",
    "-----BEGIN PRIVATE KEY-----",
    "pass",
)


@pytest.mark.parametrize("case", PLANTED, ids=[case["text"][:50] for case in PLANTED])
def test_a_planted_secret_is_gone(case: dict[str, Any]) -> None:
    secret, after = str(case.get("secret", "S3cret")), without_secrets(case["text"], case.get("path", ""))
    assert secret in case["text"]
    assert secret not in after and secret[:5] not in after, after
    assert case.get("kept", "") in after, after
    assert without_secrets(after, case.get("path", "")) == after


@pytest.mark.parametrize("case", [case for case in CASES if case.get("same")], ids=lambda case: case["text"][:50])
def test_what_is_no_secret_stays(case: dict[str, Any]) -> None:
    assert without_secrets(case["text"], case.get("path", "")) == case["text"]


def test_there_are_as_many_as_were_planted() -> None:
    assert len(PLANTED) >= 77


@given(st.text(alphabet="pasword=:'\"-, \n\0@/{}S", max_size=120))
def test_any_text_comes_out_and_comes_out_the_same_again(text: str) -> None:
    once = without_secrets(text)
    assert without_secrets(once) == once


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("filler", ["a", "password", "password=", "://a:", " -p", "\0", "'", "$6$", "mysql "])
def test_long_lines_cost_what_they_are_long(start: str, filler: str) -> None:
    text = start + filler * (200_000 // len(filler))
    began = time.process_time()
    without_secrets(text)
    assert time.process_time() - began < 4.0
