# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpufleet.host.plugins.module_utils._observe import tmpfiles


def test_only_lines_that_write() -> None:
    text = (
        "# w /x - - - - 1\nd /run/x 0755 root root -\nw! /sys/a - - - - never\n"
        'w+ "/sys/b c" - - - - 1\nw /sys/short - - -\nw /sys/*/d 0644 - - - two words\\n\n'
    )
    rows = [(row.number, row.path, row.value) for row in tmpfiles.parse_writes("f", text)]
    assert (3, "/sys/a", "never") in rows
    assert (6, "/sys/*/d", "two words") in rows
    assert all(number in (3, 4, 6) for number, _path, _value in rows)


@given(st.text())
def test_junk_never_raises(text: str) -> None:
    tmpfiles.parse_writes("f", text)
