# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

from fakes import FakeHost
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import Unknown
from ansible_collections.gpufleet.host.plugins.module_utils._observe import thp


def test_the_active_word_and_the_offer() -> None:
    assert thp.parse_choice("always [madvise] never\n") == ("madvise", ("always", "madvise", "never"))
    assert isinstance(thp.parse_choice("always madvise never"), Unknown)
    assert isinstance(thp.parse_choice(""), Unknown)


def test_absent_is_not_unseen(tmp_path: Path) -> None:
    host = FakeHost(tmp_path)
    assert isinstance(thp.observe(host, ["enabled"])["enabled"], Unknown)
    host.put("/sys/kernel/mm/ksm/run", "0\n")
    assert thp.observe(host, ["enabled"]) == {"enabled": None}


@given(st.text())
def test_junk_never_raises(text: str) -> None:
    thp.parse_choice(text)
