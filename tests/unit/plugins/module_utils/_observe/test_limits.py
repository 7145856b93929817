# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpufleet.host.plugins.module_utils._observe import limits


def test_lines_of_limits_conf() -> None:
    text = "# * hard core 0\n*  soft nofile 1024 # few\n@gpu - memlock unlimited\nroot maybe nofile 1\nshort - nofile\n"
    rows = [(row.number, row.domain, row.kind, row.item, row.value) for row in limits.parse_pam("f", text)]
    assert rows == [(2, "*", "soft", "nofile", "1024"), (3, "@gpu", "-", "memlock", "unlimited")]


def test_pam_takes_the_first_four_words_in_any_case() -> None:
    text = "*\tHard\tMEMLOCK\tUnlimited for all\nBob - nofile -1\n@x soft nofile\n"
    rows = [(row.domain, row.kind, row.item, row.value) for row in limits.parse_pam("f", text)]
    assert rows == [("*", "hard", "memlock", "unlimited"), ("Bob", "-", "nofile", "-1")]


def test_lines_of_system_conf() -> None:
    text = "[Manager]\n#DefaultLimitNOFILE=1\nDefaultLimitMEMLOCK=64M\nDefaultTasksMax=15%\n"
    assert [(row.number, row.key, row.value) for row in limits.parse_manager("f", text)] == [
        (3, "DefaultLimitMEMLOCK", "64M")
    ]


@given(st.text())
def test_junk_never_raises(text: str) -> None:
    limits.parse_pam("f", text)
    limits.parse_manager("f", text)
