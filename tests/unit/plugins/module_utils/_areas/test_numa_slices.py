# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any, Mapping

import pytest
import yaml
from fakes_numa_slices import LAB, LOADED, SliceHost, make
from proof import Case, planned, prove_converges, prove_reverts, prove_rolls_back, prove_survives_kills

from ansible_collections.gpufleet.host.plugins.module_utils._areas.numa_slices import AREA, SPEC, observe
from ansible_collections.gpufleet.host.plugins.module_utils._engine import engine
from ansible_collections.gpufleet.host.plugins.module_utils._engine.cpuset import format_cpulist
from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import CaptureHost
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import BadWant, Unknown
from ansible_collections.gpufleet.host.plugins.module_utils._plan import numa_slices, numa_units
from ansible_collections.gpufleet.host.plugins.module_utils._plan.numa_units import GPU_RUN, MAP_FILE

FOLDER = Path(__file__).parents[3] / "cases/numa_slices"
LAYOUTS = yaml.safe_load((FOLDER / "layout.yml").read_text())
BAD = yaml.safe_load((FOLDER / "bad.yml").read_text())
SMALL = {"nodes": {0: {"cpus": "0-3", "memory_mib": 1000}}, "gpus": [0]}
CPUS_FILE = "/sys/fs/cgroup/gpufleet.slice/gpufleet-node0.slice/gpufleet-node0-gpu0.slice/cpuset.cpus"
UNIT = "/etc/systemd/system/gpufleet-node0-gpu0.slice"


def want(values: Mapping[str, Any]) -> dict[str, Any]:
    """The want as the argument spec fills it in, with slices unless others are asked for."""
    found = _filled(SPEC, {"state": "present", **values})
    for name in ("gpus", "nodes", "gpu_match"):
        found[name] = [_filled(SPEC[name]["options"], row) for row in found[name] or []]
    return found


def _filled(spec: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    assert set(values) <= set(spec)
    return {name: values.get(name, option.get("default")) for name, option in spec.items()}


def case(values: Mapping[str, Any], machine: Mapping[str, Any] | None = None) -> Case:
    return Case(AREA, want(values), partial(make, machine=machine or SMALL), SliceHost)


@pytest.mark.parametrize("row", LAYOUTS, ids=[row["name"] for row in LAYOUTS])
def test_layout(row: dict[str, Any], tmp_path: Path) -> None:
    wanted = want(row.get("want", {}))
    AREA.check_want(wanted)
    have = observe(make(tmp_path, row.get("machine", LAB)), wanted)
    found = numa_slices.wanted_slices(wanted, have)
    if "slices" in row:
        assert [
            "%s: %s | %s" % (one.name[: -len(".slice")], format_cpulist(one.cpus), format_cpulist(one.mems))
            for one in found.slices
        ] == row["slices"]
    assert ["%s %s" % (f.id, f.subject) for f in AREA.judge(wanted, have)] == row.get("findings", [])


@pytest.mark.parametrize("row", BAD, ids=[str(row["want"]) for row in BAD])
def test_bad_wants_name_the_variable_and_what_is_allowed(row: dict[str, Any]) -> None:
    with pytest.raises(BadWant) as caught:
        AREA.check_want(want(row["want"]))
    assert caught.value.variable == row["variable"]
    assert caught.value.allowed


@pytest.mark.parametrize(
    "row", [row for row in LAYOUTS if "impossible" in str(row.get("findings"))], ids=lambda r: r["name"]
)
def test_what_this_host_cannot_have_changes_nothing(row: dict[str, Any], tmp_path: Path) -> None:
    host = make(tmp_path, row.get("machine", LAB))
    before = host.tree()
    report = case(row["want"], row.get("machine", LAB)).apply(host)
    assert report.state == "blocked"
    assert host.tree() == before


CONVERGING = [
    ({}, SMALL),
    ({"housekeeping_cpus": "6-7", "gpus": [{"index": 3, "slice": False}]}, LAB),
    (
        {"memory_max": "80%", "cpu_weight": "200", "tasks_max": "4096", "nodes": [{"id": 0, "memory_max": "900M"}]},
        SMALL,
    ),
    ({"confine_system": True}, SMALL),
]


@pytest.mark.parametrize(("values", "machine"), CONVERGING)
def test_converges(values: Mapping[str, Any], machine: Mapping[str, Any], tmp_path: Path) -> None:
    report = prove_converges(case(values, machine), tmp_path)
    assert [step.id for step in planned(report)][-1] == "numa_slices.proof"


@pytest.mark.parametrize(("values", "machine"), CONVERGING)
def test_what_is_observed_is_what_was_wanted(values: Mapping[str, Any], machine: Any, tmp_path: Path) -> None:
    host = make(tmp_path, machine)
    report = case(values, machine).apply(host)
    adopted = {**values, **report.after}
    assert planned(case(adopted, machine).check(host)) == []
    assert report.after["state"] == "present"


@pytest.mark.parametrize(("values", "machine"), CONVERGING)
def test_reverts(values: Mapping[str, Any], machine: Mapping[str, Any], tmp_path: Path) -> None:
    confined = ["/sys/fs/cgroup/%s/cpuset.cpus" % unit for unit in numa_units.SYSTEM_UNITS]
    prove_reverts(case(values, machine), tmp_path, stays=confined if values.get("confine_system") else ())


@pytest.mark.parametrize("how", ["refuse", "ignore"])
@pytest.mark.parametrize(
    "what",
    [UNIT, MAP_FILE, GPU_RUN, "systemctl start -- gpufleet-node0-gpu0.slice"],
)
def test_rolls_back(what: str, how: str, tmp_path: Path) -> None:
    make(tmp_path, SMALL)
    prove_rolls_back(case({}), tmp_path, SliceHost(tmp_path, **{how: (what,)}))


def test_a_systemd_that_does_not_reload_is_a_failure_with_the_files_back(tmp_path: Path) -> None:
    before = make(tmp_path, SMALL).tree()
    host = SliceHost(tmp_path, refuse=("systemctl daemon-reload",))
    report = case({}).apply(host)
    assert report.state == "failed"
    assert host.tree() == before


def test_a_changed_division_rolls_back_when_the_reload_is_ignored(tmp_path: Path) -> None:
    case({}).apply(make(tmp_path, SMALL))
    host = SliceHost(tmp_path, ignore=("systemctl daemon-reload",))
    prove_rolls_back(case({"housekeeping_cores_per_node": 2}), tmp_path, host)


def test_a_slice_that_does_not_confine_is_rolled_back_by_the_proof(tmp_path: Path) -> None:
    make(tmp_path, SMALL)
    names = "gpufleet-node0.slice gpufleet-node0-gpu0.slice"
    report = prove_rolls_back(case({}), tmp_path, SliceHost(tmp_path, refuse=("%s --verify %s" % (GPU_RUN, names),)))
    assert "numa_slices.proof" in [r.step.id for r in report.steps if r.status == "failed"]


def test_survives_kills(tmp_path: Path) -> None:
    """With the whole system confined: the steps of all other wants are among its steps."""
    values, machine = CONVERGING[3]
    confined = ["/sys/fs/cgroup/%s/cpuset.cpus" % unit for unit in numa_units.SYSTEM_UNITS]
    assert prove_survives_kills(case(values, machine), tmp_path, stays=confined) > 20


def applied(tmp_path: Path, values: Mapping[str, Any] | None = None) -> SliceHost:
    host = make(tmp_path, SMALL)
    assert case(values or {}).apply(host).state == "changed"
    return host


def test_a_value_written_over_systemds_is_written_back(tmp_path: Path) -> None:
    host = applied(tmp_path)
    host.set_value(CPUS_FILE, "0")
    report = case({}).apply(host, "r2")
    ids = [step.id for step in planned(report)]
    assert ids == ["numa_slices.gpufleet-node0-gpu0.slice.cpuset.cpus", "numa_slices.proof"]
    assert report.state == "changed"
    assert host.read(CPUS_FILE) == "1-3\n"


def test_each_of_several_disturbances_is_a_step_of_its_own(tmp_path: Path) -> None:
    host = applied(tmp_path)
    host.set_value(CPUS_FILE, "0")
    host.put(UNIT.replace("-gpu0", ""), "[Slice]\n")
    host.put(numa_units.TARGET_DROP_IN, "")
    report = case({}).check(host)
    assert [step.id for step in planned(report)] == [
        "numa_slices.reload-last",
        "numa_slices.gpufleet-node0.slice.file",
        "numa_slices.slices.target.file",
        "numa_slices.reload",
        "numa_slices.gpufleet-node0-gpu0.slice.cpuset.cpus",
        "numa_slices.proof",
    ]
    assert case({}).apply(host, "r2").state == "changed"


def test_an_edited_unit_file_is_drift_of_the_file_and_a_reload(tmp_path: Path) -> None:
    host = applied(tmp_path)
    host.put(UNIT, str(host.read(UNIT)).replace("AllowedCPUs=1-3", "AllowedCPUs=0-3"))
    ids = [step.id for step in planned(case({}).check(host))]
    assert ids == [
        "numa_slices.reload-last",
        "numa_slices.gpufleet-node0-gpu0.slice.file",
        "numa_slices.reload",
        "numa_slices.proof",
    ]


def test_a_stopped_slice_is_started(tmp_path: Path) -> None:
    host = applied(tmp_path)
    host.stop("gpufleet-node0-gpu0.slice")
    ids = [step.id for step in planned(case({}).check(host))]
    assert ids == ["numa_slices.gpufleet-node0-gpu0.slice.start", "numa_slices.proof"]


def test_a_drop_in_of_others_is_named_and_not_fought(tmp_path: Path) -> None:
    host = applied(tmp_path)
    place = "/run/systemd/system.control/gpufleet-node0-gpu0.slice.d/50-AllowedCPUs.conf"
    host.put(place, "[Slice]\nAllowedCPUs=0\n")
    host.load("gpufleet-node0-gpu0.slice")
    report = case({}).check(host)
    assert planned(report) == []
    assert [(f.level, f.subject) for f in report.findings] == [("fail", place + ":2")]
    assert report.state == "blocked"


def test_a_group_above_that_is_narrower_is_a_failure_not_a_fight(tmp_path: Path) -> None:
    host = applied(tmp_path)
    host.put("/sys/fs/cgroup/gpufleet.slice/cpuset.cpus", "0-1\n")
    host.settle()
    report = case({}).check(host)
    assert planned(report) == []
    assert {f.id for f in report.findings} == {"numa_slices.effective-differs"}


def test_a_process_that_the_kernel_allows_more_is_found(tmp_path: Path) -> None:
    host = applied(tmp_path)
    folder = CPUS_FILE.rsplit("/", 1)[0]
    host.put(folder + "/cgroup.events", "populated 1\n")
    host.put(folder + "/run-1.scope/cgroup.procs", "42\n43\n44\n")
    host.put("/proc/42/status", "Name:\ttrain\nCpus_allowed_list:\t1-3\nMems_allowed_list:\t0\n")
    host.put("/proc/43/status", "Name:\tstray\nCpus_allowed_list:\t0-3\nMems_allowed_list:\t0\n")
    report = case({}).check(host)
    assert [f.subject for f in report.findings] == ["process 43 (stray) in gpufleet-node0-gpu0.slice"]


def test_slices_that_are_not_wanted_go_and_come_back_with_revert(tmp_path: Path) -> None:
    host = applied(tmp_path, {"confine_system": True})
    before = host.tree()
    report = case({"state": "absent"}).apply(host, "r2")
    assert report.state == "changed"
    assert (
        not host.exists(GPU_RUN)
        and not host.exists(UNIT)
        and not host.exists("/sys/fs/cgroup/gpufleet.slice/gpufleet-node0.slice")
    )
    assert host.read("/sys/fs/cgroup/system.slice/cpuset.cpus") == "0-3\n"
    engine.revert(host, engine.Journal(host.root), apply=True, run="r2", allow_risk="destructive")
    assert host.tree() == before


def test_a_slice_in_use_is_not_taken_away(tmp_path: Path) -> None:
    host = applied(tmp_path)
    host.put(CPUS_FILE.rsplit("/", 1)[0] + "/cgroup.events", "populated 1\n")
    before = host.tree()
    report = case({"state": "absent"}).apply(host, "r2")
    assert report.state == "blocked"
    assert [f.subject for f in report.findings] == ["gpufleet-node0-gpu0.slice"]
    assert host.tree() == before


def test_undo_never_stops_a_slice_in_which_a_job_runs(tmp_path: Path) -> None:
    host = applied(tmp_path)
    for folder in (CPUS_FILE.rsplit("/", count)[0] for count in (1, 2, 3)):
        host.put(folder + "/cgroup.events", "populated 1\n")
    reports = engine.revert(host, engine.Journal(host.root), apply=True, allow_risk="destructive")
    assert reports["numa_slices"].state == "failed"
    assert host.exists(CPUS_FILE)


def test_lines_for_slurm_count_cores_and_those_for_a_kubelet_count_cpus(tmp_path: Path) -> None:
    machine = {**LAB, "services": ["slurmd.service", "kubelet.service"], "gpus": [0, 1]}
    have = observe(make(tmp_path, machine), want({}))
    texts = {f.subject: f.expected for f in AREA.judge(want({}), have) if f.id == "numa_slices.managed-host"}
    assert 'reservedSystemCPUs: "0-1,4-5"' in texts["kubelet.service"]
    assert "Cores=1  # GPU 0" in texts["slurmd.service"] and "Cores=3  # GPU 1" in texts["slurmd.service"]
    assert planned(case({}, machine).check(make(tmp_path / "again", machine))) == []


def test_the_map_says_which_gpu_has_no_slice(tmp_path: Path) -> None:
    host = make(tmp_path)
    report = case({"housekeeping_cpus": "6-7"}, LAB).apply(host)
    assert report.state == "unknown"
    rows = json.loads(str(host.read(MAP_FILE)))["gpus"]
    assert [row["slice"] for row in rows] == [
        "gpufleet-node0-gpu0.slice", "gpufleet-node0-gpu1.slice", "gpufleet-node1-gpu2.slice", None,
    ]  # fmt: skip


@pytest.mark.parametrize(
    "machine",
    [{"command": ["lscpu"], "stdout": "CPU(s): 8\n"}, {"command": ["numactl", "-H"], "stdout": "node 0 cpus: 0\n"}, {}],
)
def test_a_sparse_capture_is_unknown(machine: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "capture.json").write_text('{"format": 1, "hostname": "h", "taken": ""}')
    (tmp_path / "commands").mkdir()
    if machine:
        row = {"argv": machine["command"], "rc": 0, "stdout": machine["stdout"], "stderr": ""}
        (tmp_path / "commands/0000.json").write_text(json.dumps(row))
    report = engine.run_area(AREA, want({}), CaptureHost(str(tmp_path)), mode="audit")
    assert report.state == "unknown"
    assert report.steps == ()
    assert any(isinstance(f.observed, Unknown) for f in report.findings)


def test_nothing_is_loaded_or_started_by_a_look(tmp_path: Path) -> None:
    host = make(tmp_path)
    before = host.listdir(LOADED.rstrip("/"))
    case({}, LAB).check(host)
    assert host.listdir(LOADED.rstrip("/")) == before
