# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.gpufleet.host.plugins.module_utils._tables.sysctls import TWIN, dotted, key_path, module_of


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("vm.swappiness", "vm/swappiness"),
        ("vm/swappiness", "vm/swappiness"),
        ("net.ipv4.conf.eth0/1.rp_filter", "net/ipv4/conf/eth0.1/rp_filter"),
        ("net/ipv4/conf/eth0.1/rp_filter", "net/ipv4/conf/eth0.1/rp_filter"),
        ("", ""),
    ],
)
def test_names_follow_sysctl_d(name: str, path: str) -> None:
    assert key_path(name) == path
    assert key_path(dotted(path)) == path


def test_twins_are_pairs_and_modules_are_found_by_prefix() -> None:
    assert all(TWIN[TWIN[path]] == path for path in TWIN)
    assert module_of("net/bridge/bridge-nf-call-iptables") == "br_netfilter"
    assert module_of("vm/swappiness") == ""
