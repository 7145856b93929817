# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

from fakes import FakeHost
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import Unknown
from ansible_collections.gpufleet.host.plugins.module_utils._observe import sysctl

TEXT = """# comment
; comment
vm.swappiness = 10
-net.ipv4.tcp_rmem=4096\t87380   6291456
net.ipv4.conf.*.rp_filter = 2
-net.ipv4.conf.all.rp_filter
net/ipv4/conf/eth0.1/rp_filter=1
nonsense
 = 5
"""


def test_lines_of_a_file() -> None:
    rows = [(row.number, row.key, row.value) for row in sysctl.parse_lines("f", TEXT)]
    assert rows == [
        (3, "vm/swappiness", "10"),
        (4, "net/ipv4/tcp_rmem", "4096 87380 6291456"),
        (5, "net/ipv4/conf/*/rp_filter", "2"),
        (6, "net/ipv4/conf/all/rp_filter", None),
        (7, "net/ipv4/conf/eth0.1/rp_filter", "1"),
    ]


def test_only_explicit_lines_of_later_files_override() -> None:
    rows = sysctl.parse_lines("/usr/lib/sysctl.d/10-early.conf", "vm.swappiness=1")
    rows += sysctl.parse_lines("/etc/sysctl.d/95-a.conf", "vm.swappiness=2\nnet.*.x=3")
    rows += sysctl.parse_lines("/etc/sysctl.d/99-b.conf", "vm.swappiness=4")
    later = sysctl.later(rows, "90-ours.conf")
    assert {key: row.value for key, row in later.items()} == {"vm/swappiness": "4"}


def test_a_missing_sysctl_is_known_to_be_missing_only_where_its_folder_was_seen(tmp_path: Path) -> None:
    host = FakeHost(tmp_path)
    assert isinstance(sysctl.live(host, ["vm/swappiness"])["vm/swappiness"]["value"], Unknown)
    host.put("/proc/sys/vm/swappiness", "60\n")
    # A capture that was asked for swappiness alone says nothing about its neighbours.
    row = sysctl.live(host, ["vm/swappiness", "vm/overcommit_memory"])["vm/overcommit_memory"]
    assert isinstance(row["value"], Unknown)
    host.put("/proc/sys/vm/dirty_ratio", "20\n")
    row = sysctl.live(host, ["vm/swapiness"])["vm/swapiness"]
    assert row["value"] is None
    assert "vm/swappiness" in row["near"]


@given(st.text())
def test_junk_never_raises(text: str) -> None:
    sysctl.parse_lines("f", text)
