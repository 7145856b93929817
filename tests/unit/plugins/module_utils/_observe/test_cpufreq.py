# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

from fakes import FakeHost
from fakes_kernel import CPU, make, make_guest

from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import Unknown
from ansible_collections.gpufleet.host.plugins.module_utils._observe import cpufreq


def test_offline_cpus_are_left_out(tmp_path: Path) -> None:
    host = make(tmp_path)
    seen = cpufreq.policies(host, ["governor"])
    assert isinstance(seen, dict)
    assert seen["driver"] == "intel_pstate"
    assert seen["values"] == {"governor": {"policy0": "performance", "policy1": "powersave", "policy2": "powersave"}}
    idle = cpufreq.idle(host)
    assert isinstance(idle, dict)
    assert idle["states"] == ["POLL", "C1", "C1E", "C6"]
    assert sorted(idle["disabled"]) == ["cpu0", "cpu1", "cpu2"]


def test_a_policy_whose_first_cpu_is_offline_lives_on_with_the_others(tmp_path: Path) -> None:
    host = make(tmp_path)
    host.put(CPU + "cpufreq/policy3/affected_cpus", "4 5\n")
    host.put(CPU + "cpufreq/policy3/scaling_governor", "ondemand\n")
    seen = cpufreq.policies(host, ["governor"])
    assert isinstance(seen, dict)
    assert seen["values"]["governor"]["policy3"] == "ondemand"


def test_a_guest_has_none_and_a_sparse_capture_is_unknown(tmp_path: Path) -> None:
    guest = make_guest(tmp_path / "guest")
    assert cpufreq.policies(guest, ["governor"]) is None
    assert cpufreq.idle(guest) is None
    empty = FakeHost(tmp_path / "empty")
    assert isinstance(cpufreq.policies(empty, ["governor"]), Unknown)
    assert isinstance(cpufreq.idle(empty), Unknown)


def test_a_driver_without_preferences(tmp_path: Path) -> None:
    host = make(tmp_path)
    for name in ("energy_performance_preference", "energy_performance_available_preferences"):
        (tmp_path / (CPU + "cpufreq/policy0/" + name)[1:]).unlink()
    seen = cpufreq.policies(host, ["energy_preference"])
    assert isinstance(seen, dict)
    assert seen["offered"] == {"energy_preference": None}
