# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Callable, Iterator, Sequence

import pytest
import yaml
from fakes_mysql import DISK, DROP_IN, GROUP, NEIGHBOUR, OTHER_DISK, UNIT, VARIABLES, DatabaseHost, add_slices, make
from proof import Case, prove_converges, prove_reverts, prove_rolls_back, prove_survives_kills

from ansible_collections.gpufleet.host.plugins.module_utils._areas.mysql_isolation import AREA, SPEC
from ansible_collections.gpufleet.host.plugins.module_utils._engine import engine
from ansible_collections.gpufleet.host.plugins.module_utils._engine import host as host_module
from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import (
    CaptureHost,
    MemoHost,
    RecordingHost,
    Result,
)
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import BadWant

CASES = yaml.safe_load((Path(__file__).parents[3] / "cases/mysql_isolation/plan.yml").read_text())
WALL: dict[str, Any] = {
    "cpus": "0-1",
    "memory_nodes": "0",
    "memory_high": "900m",
    "memory_max": "1g",
    "io_limits": [{"device": DISK, "read_bandwidth": "104857600", "write_iops": 500}],
    "device_policy": "closed",
    "device_allow": ["/dev/hwrng r"],
    "oom_score_adjust": "-500",
    "limit_nofile": "40000",
}


def want(**given: Any) -> dict[str, Any]:
    full = {name: option.get("default") for name, option in SPEC.items()}
    # As the profile has it, unless the case says otherwise.
    full.update(cpus="auto", memory_nodes="auto", device_policy="closed")
    full.update(given)
    empty = dict.fromkeys(SPEC["overrides"]["options"])
    full["overrides"] = [dict(empty, **row) for row in full["overrides"]]
    limits = dict.fromkeys(SPEC["io_limits"]["options"])
    full["io_limits"] = [dict(limits, **row) for row in full["io_limits"]]
    return full


def case(setup: Any = make, **given: Any) -> Case:
    return Case(AREA, want(**(given or WALL)), setup, DatabaseHost)


def prepared(root: Path, row: dict[str, Any]) -> DatabaseHost:
    host = make(root)
    for path, text in row.get("set", {}).items():
        host.put(path, text)
    for path in row.get("remove", []):
        os.unlink(host.root + path)
    values = dict(VARIABLES, **row.get("variables", {}))
    host.put("/run/fake/variables", "".join("%s\t%s\n" % pair for pair in values.items()))
    if "config" in row:
        host.put("/etc/mysql/conf.d/50-server.cnf", row["config"])
    add_slices(host, {name: tuple(pair) for name, pair in row.get("slices", {}).items()})
    if row.get("reload"):
        host.reload()
    return host


@pytest.mark.parametrize("row", CASES, ids=[row["name"] for row in CASES])
def test_plan_and_judge(row: dict[str, Any], tmp_path: Path) -> None:
    seen = engine.look(AREA, want(**row["want"]), prepared(tmp_path, row))
    prefix = "mysql_isolation.mariadb.service."
    assert [step.id[len(prefix) :] for step in seen.steps] == row["steps"]
    told = [finding for finding in seen.findings if finding.level != "info"]
    assert ["%s %s" % (finding.id, finding.subject) for finding in told] == row.get("findings", [])
    for part in ("expected", "observed"):
        if part in row:
            assert getattr(told[0], part) == row[part]
    text = next((step.after for step in seen.steps if step.kind == "file"), "")
    assert all(line in text.splitlines() for line in row.get("drop_in", []))


def test_converges(tmp_path: Path) -> None:
    prove_converges(case(), tmp_path)


def test_what_is_observed_is_what_was_wanted(tmp_path: Path) -> None:
    report = case().apply(make(tmp_path))
    shown = dict(WALL, oom_score_adjust=-500, limit_nofile=40000, io_weight=None)
    shown["io_limits"] = [{"device": DISK, "read_bandwidth": 104857600, "write_iops": 500}]
    assert dict(report.after) == shown


def test_reverts(tmp_path: Path) -> None:
    prove_reverts(case(), tmp_path)


@pytest.mark.parametrize("how", ["refuse", "ignore"])
@pytest.mark.parametrize(
    "what", [DROP_IN, GROUP + "/memory.max", "systemctl daemon-reload", "systemctl restart mariadb.service"]
)
def test_rolls_back(tmp_path: Path, how: str, what: str) -> None:
    make(tmp_path)
    prove_rolls_back(case(), tmp_path, DatabaseHost(tmp_path, **{how: (what,)}))


def test_a_filter_that_lets_gpus_through_is_rolled_back(tmp_path: Path) -> None:
    class Leaky(DatabaseHost):
        """A kernel without BPF for control groups: systemd says closed, and everything can be opened."""

        def sh(self, argv: Any, _stdin: str) -> Any:
            self.put("/run/fake/filter", "auto")
            return super().sh(argv, _stdin)

    make(tmp_path)
    host = Leaky(tmp_path)
    report = case(device_policy="closed").apply(host)
    assert report.state == "rolled_back"
    assert host.read(DROP_IN) is None


def test_survives_kills(tmp_path: Path) -> None:
    assert prove_survives_kills(case(), tmp_path) > 10


def test_without_consent_the_restart_waits_and_the_rest_is_done(tmp_path: Path) -> None:
    safe = Case(AREA, want(**WALL), make, DatabaseHost, allow_risk="safe")
    host = make(tmp_path)
    report = safe.apply(host)
    waiting = [result for result in report.steps if result.status == "blocked"]
    assert [result.step.id for result in waiting] == ["mysql_isolation.mariadb.service.restart"]
    assert "mysql_isolation_allow_risk: disruptive" in waiting[0].detail
    assert report.state == "blocked"
    assert host.text(GROUP + "/cpuset.cpus") == "0-1\n"
    assert safe.check(host).state == "drifted"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("cpuset.cpus", "2-3\n"),
        ("cpuset.mems", "0-1\n"),
        ("memory.max", "max\n"),
        ("io.max", "254:0 rbps=max wbps=1 riops=max wiops=max\n"),
    ],
)
def test_what_is_changed_in_the_group_by_hand_is_put_back(tmp_path: Path, path: str, text: str) -> None:
    host = make(tmp_path)
    case().apply(host)
    before = host.tree()
    host.put(GROUP + "/" + path, text)
    report = case().apply(host, "r2")
    assert report.state == "changed"
    assert len(report.steps) == 1
    assert host.tree() == before


def test_a_server_that_was_moved_out_of_its_group_is_moved_back(tmp_path: Path) -> None:
    host = make(tmp_path)
    case().apply(host)
    before = host.tree()
    host.put("/proc/525/cgroup", "0::/user.slice\n")
    report = case().apply(host, "r2")
    assert [result.step.id for result in report.steps] == ["mysql_isolation.mariadb.service.process"]
    assert report.state == "changed"
    assert host.tree() == before


def test_set_property_at_run_time_is_put_back(tmp_path: Path) -> None:
    host = make(tmp_path)
    case().apply(host)
    host.put("/run/systemd/system.control/mariadb.service.d/50-AllowedCPUs.conf", "[Service]\nAllowedCPUs=6\n")
    host.put(GROUP + "/cpuset.cpus", "6\n")
    assert case().apply(host, "r2").state == "changed"
    assert host.text(GROUP + "/cpuset.cpus") == "0-1\n"


def test_what_is_no_longer_wanted_does_not_stay_in_the_group(tmp_path: Path) -> None:
    host = make(tmp_path)
    host.put(NEIGHBOUR, "")
    host.reload()
    case().apply(host)
    less = case(cpus="0-1", memory_nodes="", device_policy="")
    assert less.apply(host, "r2").state == "changed"
    assert host.text(GROUP + "/cpuset.mems") == "0-1\n"
    assert host.text(GROUP + "/io.max") == ""
    assert less.apply(host, "r3").state == "compliant"


def test_two_disks_are_both_limited(tmp_path: Path) -> None:
    limits = [{"device": DISK, "read_iops": 5}, {"device": OTHER_DISK, "write_bandwidth": "1m"}]
    report = prove_converges(case(io_limits=limits, device_policy=""), tmp_path)
    assert {row["device"] for row in report.after["io_limits"]} == {DISK, OTHER_DISK}


def test_a_server_that_is_down_gets_its_wall_for_the_next_start(tmp_path: Path) -> None:
    def down(root: Path) -> DatabaseHost:
        host = make(root)
        os.unlink(host.root + "/run/fake/active")
        return host

    host = down(tmp_path)
    report = case(setup=down, cpus="0-1", memory_max="1g").apply(host)
    assert report.state == "changed"
    assert [f.id for f in report.findings if f.id.endswith("down")] == ["mysql_isolation.server-down"]
    assert case(setup=down, cpus="0-1", memory_max="1g").apply(host, "r2").state == "compliant"
    host.put("/etc/my.cnf", "[mariadb]\ninnodb_buffer_pool_size=8G\n")
    assert case(setup=down, cpus="0-1", memory_max="1g").check(host).state == "blocked"


def test_a_server_that_failed_for_its_pool_says_so(tmp_path: Path) -> None:
    host = make(tmp_path)
    os.unlink(host.root + "/run/fake/active")
    host.put("/run/fake/state", "failed")
    corpus = Path(__file__).parents[4] / "corpus/mysql-oom/mysqld-innodb-mmap-fail.log"
    host.put("/run/fake/journal", corpus.read_text())
    found = [f for f in engine.look(AREA, want(), host).findings if f.level == "fail"]
    assert [(f.id, f.observed) for f in found] == [
        ("mysql_isolation.pool-not-mapped", "mmap of 137428992 bytes failed")
    ]


def test_a_server_that_cannot_be_asked_is_unknown_when_its_memory_matters(tmp_path: Path) -> None:
    host = make(tmp_path)
    os.unlink(host.root + "/run/fake/variables")
    assert case(cpus="0-1").apply(host).state == "changed"
    report = case(cpus="0-1", memory_max="1g").check(host)
    assert "mysql_isolation.server-not-asked" in [f.id for f in report.findings]
    case(cpus="0-1", memory_max="1g").apply(host, "r2")
    assert case(cpus="0-1", memory_max="1g").check(host).state == "unknown"


def test_one_disk_under_two_names_is_refused(tmp_path: Path) -> None:
    host = make(tmp_path)
    other = Path(host.root + "/dev/disk/by-path/pci-0")
    other.parent.mkdir(parents=True)
    other.symlink_to("../../vda")
    limits = [{"device": DISK, "read_iops": 5}, {"device": "/dev/disk/by-path/pci-0", "write_iops": 5}]
    report = case(io_limits=limits).apply(host)
    assert report.state == "blocked"
    assert "mysql_isolation.device-twice" in [f.id for f in report.findings]


def test_no_database_is_compliant_and_costs_no_command(tmp_path: Path) -> None:
    host = make(tmp_path)
    os.unlink(host.root + "/usr/lib/systemd/system/mariadb.service")
    host.systemctl = None  # type: ignore[assignment]
    report = case().check(host)
    assert report.state == "compliant"
    assert [f.id for f in report.findings] == ["mysql_isolation.no-database"]


def test_a_sparse_capture_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "capture.json").write_text(json.dumps({"format": 1, "hostname": "h", "taken": "t"}))
    report = engine.run_area(AREA, want(**WALL), CaptureHost(str(tmp_path)), mode="audit")
    assert report.state == "unknown"
    assert report.steps == ()


def test_a_capture_tells_what_the_host_told(tmp_path: Path) -> None:
    host = make(tmp_path / "host")
    case().apply(host)
    host.put(GROUP + "/memory.max", "max\n")
    live = engine.look(AREA, want(**WALL), MemoHost(host))
    engine.look(AREA, want(**WALL), RecordingHost(str(tmp_path / "capture"), "h", "t", host))
    replayed = engine.look(AREA, want(**WALL), CaptureHost(str(tmp_path / "capture")))
    assert replayed.steps == live.steps
    assert replayed.findings == live.findings


@pytest.mark.parametrize(
    ("given", "variable"),
    [
        ({"cpus": "3-1"}, "cpus"),
        ({"cpus": "all"}, "cpus"),
        ({"memory_nodes": "0,,1"}, "memory_nodes"),
        ({"memory_max": "much"}, "memory_max"),
        ({"memory_max": "1m"}, "memory_max"),
        ({"memory_high": "2g", "memory_max": "1g"}, "memory_high"),
        ({"io_weight": "0"}, "io_weight"),
        ({"oom_score_adjust": "-1001"}, "oom_score_adjust"),
        ({"limit_nofile": "many"}, "limit_nofile"),
        ({"device_allow": ["/dev/nvidia0 rw"]}, "device_allow[0]"),
        ({"device_allow": ["char-* rw"]}, "device_allow[0]"),
        ({"device_allow": ["/dev/x\nMemoryMax=1"]}, "device_allow[0]"),
        ({"io_limits": [{"device": "/dev/sda", "read_iops": 1}]}, "io_limits[0].device"),
        ({"io_limits": [{"device": DISK, "read_iops": 1}, {"device": DISK, "write_iops": 1}]}, "io_limits[1].device"),
        ({"io_limits": [{"device": DISK}]}, "io_limits[0]"),
        ({"io_limits": [{"device": DISK, "read_iops": -1}]}, "io_limits[0].read_iops"),
        ({"units": ["orders"]}, "units[0]"),
        ({"units": ["../x.service"]}, "units[0]"),
        ({"overrides": [{"unit": "a.service"}, {"unit": "a.service"}]}, "overrides[1].unit"),
        ({"memory_max": "1g", "overrides": [{"unit": "a.service", "memory_high": "2g"}]}, "overrides[0].memory_high"),
        ({"gpu_match": [{}]}, "gpu_match[0]"),
    ],
)
def test_impossible_wants_are_refused(given: dict[str, Any], variable: str) -> None:
    with pytest.raises(BadWant) as error:
        AREA.check_want(want(**given))
    assert error.value.variable == variable


# What the database's user says of itself

NOBODY = 65534
SYSTEMD = "/usr/lib/systemd/system/mariadb.service"


class TheirDatabase(RecordingHost):
    """This machine, but for systemd: it has a database whose main process is a user's, with the words that the user wants."""

    def __init__(self, folder: Path, pid: int, command: str) -> None:
        super().__init__(str(folder), "h", "t")
        self.pid, self.command = pid, command

    def exists(self, path: str) -> bool:
        return path in (SYSTEMD, os.path.dirname(SYSTEMD)) or super().exists(path)

    def run(self, argv: Sequence[str], deadline_s: float = 10.0) -> Result:
        if argv[0] != "systemctl":
            return super().run(argv, deadline_s)
        rows = {
            "Id": UNIT, "LoadState": "loaded", "ActiveState": "active", "MainPID": str(self.pid),
            "ExecStart": "{ path=/bin/sh ; argv[]=%s ; x }" % self.command,
        }  # fmt: skip
        return Result(0, "".join("%s=%s\n" % row for row in rows.items()), "")


@pytest.fixture
def lair() -> Iterator[Path]:
    """A folder of an ordinary user with a program that tells who ran it, and an option file with a link to a secret."""
    folder = Path(tempfile.mkdtemp(prefix="their-"))
    (folder / "mariadbd").write_text("#!/bin/sh\nid > %s/marker\n" % folder, encoding="utf-8")
    (folder / "mariadbd").chmod(0o755)
    (folder / "secret").write_text("[mysqld]\ninnodb_buffer_pool_size = 12345678\n", encoding="utf-8")
    (folder / "my.cnf").symlink_to("secret")
    for place in [folder, *folder.iterdir()]:
        os.lchown(place, NOBODY, NOBODY)
    os.lchown(folder / "secret", 0, 0)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="takes two users")
@pytest.mark.parametrize("place", ["its command line", "its unit", "its program"])
def test_root_runs_and_opens_nothing_that_the_user_of_a_database_names(
    place: str, lair: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = str(lair / "mariadbd")
    started: list[str] = []
    real = host_module.subprocess.Popen

    def note(*args: Any, **options: Any) -> Any:
        started.append(str(options.get("executable") or args[0][0]))
        return real(*args, **options)

    program = lair / "real/mariadbd"
    program.parent.mkdir()
    shutil.copy("/bin/sh", program)
    for path in (program.parent, program):
        os.chown(path, NOBODY, NOBODY)
    words = [theirs, "--defaults-file=%s/my.cnf" % lair, "--socket=%s/socket" % lair]
    shell = str(program) if place == "its program" else "sh"
    script = 'exec -a "$0" %s -c "read forever" "$0" "$@"' % shell
    argv = ["setpriv", "--reuid=%d" % NOBODY, "--clear-groups", "--", "bash", "-c", script, *words]
    victim = subprocess.Popen(argv, stdin=subprocess.PIPE)
    try:
        wait_until(lambda: Path("/proc/%d/cmdline" % victim.pid).read_text().startswith(theirs))
        monkeypatch.setattr(host_module.subprocess, "Popen", note)
        command = " ".join(words) if place == "its unit" else "/bin/sh -c exec mysqld_safe"
        host = TheirDatabase(tmp_path / "capture", victim.pid, command)
        server = AREA.observe(host, want(**WALL))["servers"][0]
    finally:
        victim.communicate()
    assert not (lair / "marker").exists(), (lair / "marker").read_text()
    assert [path for path in started if path.startswith(str(lair))] == []
    assert "12345678" not in json.dumps([server["config"], server["live"] if isinstance(server["live"], dict) else ""])
    texts = [path.read_text() for path in (tmp_path / "capture").rglob("*") if is_recorded(path)]
    assert not [text for text in texts if "12345678" in text]
    assert server["version"] == ""
    assert place != "its unit" or [row.split(": ")[-1] for row in server["config_unread"]] == [
        "tmp can be written by others than its owner"
    ]


def is_recorded(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not is_so() and time.monotonic() < deadline:
        time.sleep(0.02)


def test_an_option_file_that_the_database_may_write_is_named_and_not_obeyed(tmp_path: Path) -> None:
    host = make(tmp_path)
    host.put("/etc/mysql/conf.d/pool.cnf", "[mariadb]\ninnodb_buffer_pool_size = 12g\n")
    named = engine.look(AREA, want(memory_max="1g"), host).have["servers"][0]
    assert named["config"]["innodb_buffer_pool_size"][0] == "12g"
    os.chmod(host.root + "/etc/mysql/conf.d", 0o777)
    server = engine.look(AREA, want(memory_max="1g"), host).have["servers"][0]
    assert "innodb_buffer_pool_size" not in server["config"]
    assert server["config_unread"] == ["/etc/mysql/conf.d/pool.cnf: conf.d can be written by others than its owner"]


def test_a_client_of_root_gives_no_file_to_a_server(tmp_path: Path) -> None:
    asked: list[Sequence[str]] = []

    class Asked(DatabaseHost):
        def client(self, argv: Sequence[str], stdin: str) -> Result:
            asked.append(argv)
            return super().client(argv, stdin)

    make(tmp_path)
    AREA.observe(Asked(tmp_path), want(**WALL))
    assert asked and all("--local-infile=0" in argv for argv in asked)
