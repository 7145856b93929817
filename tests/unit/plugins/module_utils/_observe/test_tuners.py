# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

from fakes import FakeHost
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpufleet.host.plugins.module_utils._observe import tuners

# As tuned's throughput-performance profile.
PROFILE = """[main]
summary=Broadly applicable tuning
include=base

[cpu]
governor=performance
energy_perf_bias=performance

[vm]
transparent_hugepages=never

[sysctl]
# comment
vm.dirty_ratio = 40
net.ipv4.tcp_rmem="4096 87380 16777216"
"""


def test_what_a_profile_sets() -> None:
    rows = [(row.number, row.knob, row.value) for row in tuners.parse_profile("p", "f", PROFILE)]
    assert rows == [
        (3, "include", "base"),
        (6, "governor", "performance"),
        (10, "transparent_hugepage", "never"),
        (14, "sysctl:vm/dirty_ratio", "40"),
        (15, "sysctl:net/ipv4/tcp_rmem", "4096 87380 16777216"),
    ]


def test_services_that_are_not_enabled_set_nothing(tmp_path: Path) -> None:
    host = FakeHost(tmp_path)
    host.put("/etc/tuned/active_profile", "p\n")
    host.put("/usr/lib/tuned/p/tuned.conf", PROFILE)
    host.put("/etc/sysconfig/cpupower", 'CPUPOWER_START_OPTS="frequency-set -g ondemand"\n')
    assert tuners.observe(host) == []
    wants = tmp_path / "etc/systemd/system/multi-user.target.wants"
    wants.mkdir(parents=True)
    (wants / "cpupower.service").symlink_to("/usr/lib/systemd/system/cpupower.service")
    (wants / "tuned.service").symlink_to("/usr/lib/systemd/system/tuned.service")
    found = tuners.observe(host)
    assert {row.owner for row in found} == {"tuned profile p", "cpupower.service"}
    assert [(row.number, row.value) for row in found if row.owner == "cpupower.service"] == [(1, "ondemand")]


def test_cpufrequtils(tmp_path: Path) -> None:
    host = FakeHost(tmp_path)
    host.put("/etc/init.d/cpufrequtils", "#!/bin/sh\n")
    host.put("/etc/default/cpufrequtils", '# x\nGOVERNOR="powersave"\n')
    assert [(row.number, row.value) for row in tuners.observe(host)] == [(2, "powersave")]


@given(st.text())
def test_junk_never_raises(text: str) -> None:
    tuners.parse_profile("p", "f", text)
