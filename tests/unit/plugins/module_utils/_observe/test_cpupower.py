# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from pathlib import Path
from typing import Any, Sequence

import pytest
import yaml

from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import LiveHost, Result
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import Unknown
from ansible_collections.gpufleet.host.plugins.module_utils._observe import cpupower, numastat

ROOT = Path(__file__).resolve().parents[5]
CORPUS = ROOT / "tests/corpus/cpupower"
ROWS = yaml.safe_load((ROOT / "tests/unit/cases/corpus/cpupower.yml").read_text(encoding="utf-8"))


def test_every_sample_has_its_row() -> None:
    assert {row["file"] for row in ROWS} == {path.name for path in CORPUS.iterdir()}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["file"])
def test_samples_of_the_corpus(row: dict[str, Any]) -> None:
    text = (CORPUS / row["file"]).read_text(encoding="utf-8")
    frequency, stat = cpupower.parse_frequency_info(text), numastat.parse_numastat(text)
    if "frequency" in row:
        [one] = frequency
        assert {**vars(one), "governors": list(one.governors)} == row["frequency"]
    else:
        assert frequency == ()
    if "numastat" in row:
        expected = row["numastat"]
        assert isinstance(stat, numastat.NumaStat)
        share = stat.share(0)
        assert isinstance(share, float)
        assert (stat.pid, stat.name, stat.totals["Total"]) == (expected["pid"], expected["name"], expected["total"])
        assert stat.rows["Total"] == expected["nodes"]
        assert round(share, 2) == expected["share_of_node_0"]
    else:
        assert isinstance(stat, Unknown)


def test_all_cpus() -> None:
    one = (CORPUS / "frequency-info-intel-pstate.txt").read_text(encoding="utf-8")
    two = one.replace("CPU 0", "CPU 1").replace('governor "performance"', 'governor "powersave"')
    found = cpupower.parse_frequency_info(one + two)
    assert [(info.cpu, info.governor) for info in found] == [(0, "performance"), (1, "powersave")]


def test_a_cpu_without_a_driver_is_unknown() -> None:
    text = "analyzing CPU 3:\n  no or unknown cpufreq driver is active on this CPU\n  driver: none\n"
    [info] = cpupower.parse_frequency_info(text)
    assert info.cpu == 3
    for value in (info.driver, info.governor, info.current_mhz, info.has_boost):
        assert isinstance(value, Unknown)


OLD_FREQUENCY = """root@n1:~# cpupower frequency-info
analyzing CPU 0:
  driver: acpi-cpufreq
  hardware limits: 2.27 GHz - 3.02 GHz
  available frequency steps: 3.02 GHz, 2.27 GHz
  available cpufreq governors: conservative, ondemand, performance
  current policy: frequency should be within 2.27 GHz and 3.02 GHz.
                  The governor "ondemand" may decide which speed to use
                  within this range.
  current CPU frequency is 2.27 GHz.
  cpufreq stats: 3.02 GHz:28.29%, 2.27 GHz:71.71%  (104907)
  boost state support:
    Supported: no
    Active: no
root@n1:~#
"""


@pytest.mark.parametrize("mark", ["", "> ", "node-01: "])
def test_an_old_version_with_its_prompt(mark: str) -> None:
    [info] = cpupower.parse_frequency_info("".join(mark + row + "\n" for row in OLD_FREQUENCY.splitlines()))
    assert (info.cpu, info.driver, info.governor, info.current_mhz) == (0, "acpi-cpufreq", "ondemand", 2270)
    assert info.governors == ("conservative", "ondemand", "performance")
    assert (info.hardware_min_mhz, info.hardware_max_mhz, info.has_boost) == (2270, 3020, False)


IDLE = """CPUidle driver: intel_idle
CPUidle governor: menu
analyzing CPU 0:

Number of idle states: 3
Available idle states: POLL C1 C6
POLL:
Flags/Description: CPUIDLE CORE POLL IDLE
Latency: 0
Usage: 12
Duration: 34
C1 (DISABLED) :
Flags/Description: MWAIT 0x00
Latency: 2
Usage: 1
Duration: 1
C6:
Flags/Description: MWAIT 0x20
Latency: 170
Usage: 1
Duration: 1
"""


def test_idle_states_as_text() -> None:
    idle = cpupower.parse_idle_info(IDLE)
    assert isinstance(idle, cpupower.Idle)
    assert (idle.driver, idle.governor, idle.cpu) == ("intel_idle", "menu", 0)
    assert [(state.name, state.latency_us, state.is_disabled) for state in idle.states] == [
        ("POLL", 0, False),
        ("C1", 2, True),
        ("C6", 170, False),
    ]
    assert isinstance(idle.deepest, cpupower.IdleState)
    assert idle.deepest.name == "C6"
    assert isinstance(cpupower.parse_idle_info("junk"), Unknown)


def test_an_idle_state_with_a_name_of_two_words() -> None:
    idle = cpupower.parse_idle_info("Output:\n\n" + IDLE.replace("C6", "Shared Cede"))
    assert isinstance(idle, cpupower.Idle)
    assert [(state.name, state.latency_us) for state in idle.states] == [("POLL", 0), ("C1", 2), ("Shared Cede", 170)]
    quoted = cpupower.parse_idle_info("".join("> " + row + "\n" for row in IDLE.splitlines()))
    assert isinstance(quoted, cpupower.Idle)
    assert [state.name for state in quoted.states] == ["POLL", "C1", "C6"]


def put(root: Path, path: str, text: str) -> None:
    place = root / path.lstrip("/")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text + "\n", encoding="utf-8")


def test_idle_states_from_sysfs(tmp_path: Path) -> None:
    """Case 57: the governor is performance, and a state of 170 us is in use all the same."""
    put(tmp_path, cpupower.CPU_FOLDER + "/cpuidle/current_driver", "acpi_idle")
    put(tmp_path, cpupower.CPU_FOLDER + "/cpuidle/current_governor_ro", "menu")
    (tmp_path / "sys/devices/system/cpu/cpu0").mkdir()
    for number, (name, latency, disable) in enumerate((("POLL", 0, 0), ("C1_ACPI", 1, 0), ("C2_ACPI", 170, 0))):
        folder = cpupower.CPU_FOLDER + "/cpu1/cpuidle/state%d" % number
        for attribute, value in (("name", name), ("latency", latency), ("disable", disable)):
            put(tmp_path, folder + "/" + attribute, str(value))
    idle = cpupower.observe_idle(LiveHost(str(tmp_path)))
    assert isinstance(idle, cpupower.Idle)
    assert (idle.driver, idle.governor, idle.cpu) == ("acpi_idle", "menu", 1)
    assert isinstance(idle.deepest, cpupower.IdleState)
    assert (idle.deepest.name, idle.deepest.latency_us) == ("C2_ACPI", 170)


def test_no_idle_states(tmp_path: Path) -> None:
    assert isinstance(cpupower.observe_idle(LiveHost(str(tmp_path))), Unknown)
    (tmp_path / "sys/devices/system/cpu/cpu0").mkdir(parents=True)
    assert cpupower.observe_idle(LiveHost(str(tmp_path))) is None


class Recorded(LiveHost):
    is_live = False

    def run(self, argv: Sequence[str], deadline_s: float = 10.0) -> Result:
        return Result(0, IDLE, "") if list(argv) == ["cpupower", "idle-info"] else Result(-1, "", "", "not recorded")


def test_a_capture_may_hold_the_text_alone() -> None:
    assert isinstance(cpupower.observe_idle(Recorded("/nonexistent")), cpupower.Idle)


def test_a_wide_table_of_numastat_is_put_together() -> None:
    text = (
        "Per-node system memory usage (in MBs):\n"
        "                          Node 0          Node 1\n"
        "                 --------------- ---------------\n"
        "MemTotal                64215.10        64506.44\n"
        "\n"
        "                          Node 2           Total\n"
        "                 --------------- ---------------\n"
        "MemTotal                64506.44       193227.98\n"
    )
    stat = numastat.parse_numastat(text)
    assert isinstance(stat, numastat.NumaStat)
    assert stat.rows == {"MemTotal": {0: 64215.10, 1: 64506.44, 2: 64506.44}}
    assert stat.totals == {"MemTotal": 193227.98}
    assert (stat.pid, stat.name) == (None, "")


def test_counters_of_numastat() -> None:
    text = "                           node0           node1\nnuma_hit              1234567           89012\nnuma_miss 0 7\n"
    stat = numastat.parse_numastat(text)
    assert isinstance(stat, numastat.NumaStat)
    assert stat.rows["numa_miss"] == {0: 0.0, 1: 7.0}
    assert isinstance(stat.share(5), Unknown)
    assert isinstance(stat.share(0, "numa_foreign"), Unknown)
