# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gpufleet.host.plugins.filter.over_sysctls import FilterModule, over_sysctls

PROFILE = {"vm.swappiness": 10, "vm.dirty_bytes": 1073741824}


@pytest.mark.parametrize(
    ("own", "wanted"),
    [
        ({}, PROFILE),
        ({"net.core.somaxconn": 8192}, {**PROFILE, "net.core.somaxconn": 8192}),
        ({"vm.swappiness": 1}, {**PROFILE, "vm.swappiness": 1}),
        # In the other way of writing a name, too.
        ({"vm/swappiness": 1}, {"vm.dirty_bytes": 1073741824, "vm/swappiness": 1}),
        ({"vm.swappiness": None}, {"vm.dirty_bytes": 1073741824}),
        # The kernel sets one of the two to 0 when the other is set, so both together cannot be.
        ({"vm.dirty_ratio": 15}, {"vm.swappiness": 10, "vm.dirty_ratio": 15}),
        ({"vm.dirty_ratio": None}, PROFILE),
        (None, None),
        # The module tells what is wrong with it.
        (["vm.swappiness=10"], ["vm.swappiness=10"]),
    ],
)
def test_own_sysctls_win_key_by_key(own: Any, wanted: Any) -> None:
    assert over_sysctls(own, PROFILE) == wanted


def test_without_a_profile_they_stand_alone() -> None:
    assert FilterModule().filters()["over_sysctls"]({"vm.swappiness": 1, "vm.dirty_bytes": None}, {}) == {
        "vm.swappiness": 1
    }
    assert over_sysctls({}, {}) == {}
