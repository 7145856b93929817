# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from fakes_xfs import MACHINE_ID, DiskHost, make, xfs_content
from hypothesis import given, settings
from hypothesis import strategies as st
from proof import Case, planned, prove_converges, prove_reverts, prove_rolls_back, prove_survives_kills

from ansible_collections.gpufleet.host.plugins.module_utils._areas.xfs_volumes import AREA, SPEC
from ansible_collections.gpufleet.host.plugins.module_utils._engine import engine
from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import CaptureHost, LiveHost, Result
from ansible_collections.gpufleet.host.plugins.module_utils._engine.journal import Journal
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import BadWant, Unknown
from ansible_collections.gpufleet.host.plugins.module_utils._plan import xfs_commands, xfs_limits

FOLDER = Path(__file__).parents[3] / "cases/xfs_volumes"
CASES = yaml.safe_load((FOLDER / "plan.yml").read_text())
BAD = yaml.safe_load((FOLDER / "bad_wants.yml").read_text())

SCRATCH = {"name": "scratch", "devices": ["/dev/disk/by-id/nvme-QEMU_S2"], "mount_point": "/scratch"}
DATA = {"name": "data", "devices": ["nvme-QEMU_S0"], "mount_point": "/data"}
STRIPED = dict(
    DATA, devices=["/dev/disk/by-id/nvme-QEMU_S0", "S1"], raid={"level": 0, "chunk": "512k"}, mount_point="/data/fast"
)


def volume(given: dict[str, Any]) -> dict[str, Any]:
    """A volume with the defaults that Ansible would fill in."""
    about = {name: option.get("default") for name, option in SPEC["volumes"]["options"].items()}
    about.update(SCRATCH if given.get("as") == "scratch" else DATA)
    about.update({name: value for name, value in given.items() if name != "as"})
    if about["raid"]:
        about["raid"] = dict({"chunk": None, "metadata": "1.2"}, **about["raid"])
    return about


def want(*given: dict[str, Any]) -> dict[str, Any]:
    return {"volumes": [volume(one) for one in given]}


def ours(kind: str, name: str = "data") -> str:
    return xfs_commands.uuid_of(MACHINE_ID, kind, {"name": name})


class Quiet(DiskHost):
    """Some of its programs give no answer."""

    silent: tuple[str, ...] = ()

    def run(self, argv: Any, deadline_s: float = 10.0) -> Result:
        if argv[0] in self.silent:
            return Result(-1, "", "", "%s hung: no answer in 20 s" % argv[0])
        return super().run(argv, deadline_s)


def changed(root: Path, to: dict[str, Any]) -> Quiet:
    """The host of fakes_xfs with what a case changes on it."""
    make(root)
    host = Quiet(root)
    host.silent = tuple(to.get("silent", ()))
    for name, content in to.get("content", {}).items():
        about = dict(xfs_content("") if content["kind"] == "xfs" else {}, **content)
        about["uuid"] = {"OUR_ARRAY": ours("array"), "OUR_FILESYSTEM": ours("filesystem")}.get(
            about.get("uuid"), about.get("uuid")
        )
        host.store(name, {key: value for key, value in about.items() if value is not None})
    for name, like in to.get("raw", {}).items():
        host.put("/fake/raw/" + name, like)
    for path, row in to.get("mounted", {}).items():
        host.mounted(path, row[0], row[1:])
    for path in to.get("unmounted", []):
        host._umount(["umount", path], "")
    for path, text in to.get("files", {}).items():
        host.put(path, text)
    for path, text in to.get("append", {}).items():
        host.put(path, str(host.read(path)) + text)
    for name, size in to.get("sizes", {}).items():
        host.put("/sys/block/%s/size" % name, str(size // 512))
    for name, holder in to.get("hold", {}).items():
        host.hold(name, holder)
    for path, process in to.get("open", {}).items():
        pid, name = process.split()
        host.put("/proc/%s/comm" % pid, name + "\n")
        host.link("/proc/%s/fd/7" % pid, path)
    for path, target in to.get("links", {}).items():
        host.link(path, target)
    for path in to.get("gone", []) + to.get("folder", []):
        place = Path(host.root + path)
        shutil.rmtree(place) if place.is_dir() else place.unlink()
    for path in to.get("folder", []):
        os.makedirs(host.root + path)
    return host


@pytest.mark.parametrize("row", CASES, ids=[row["name"] for row in CASES])
def test_plan_and_judge(row: dict[str, Any], tmp_path: Path) -> None:
    host = changed(tmp_path, row.get("set", {}))
    before = host.tree()
    wanted = want(*row["volumes"])
    AREA.check_want(wanted)
    seen = engine.look(AREA, wanted, host)
    assert [step.id for step in seen.steps] == row.get("steps", [])
    found = ["%s %s" % (finding.id, finding.subject.rpartition(": ")[2]) for finding in seen.findings]
    assert found == [text.replace('"', "") for text in row.get("findings", [])]
    for text in row.get("says", []):
        assert any(text in str(finding.observed) for finding in seen.findings), [f.observed for f in seen.findings]
    for text in row.get("fixes", []):
        assert any(text in finding.fix for finding in seen.findings), [f.fix for f in seen.findings]
    assert host.tree() == before


@pytest.mark.parametrize("row", BAD, ids=[row["name"] for row in BAD])
def test_impossible_wants_are_refused(row: dict[str, Any]) -> None:
    with pytest.raises(BadWant) as error:
        AREA.check_want(want(*row["volumes"]))
    assert error.value.variable == row["variable"]
    assert row["allowed"] in str(error.value)


BOTH = want(dict(SCRATCH), STRIPED)


def drifting(root: Path) -> DiskHost:
    host = make(root)
    host.mounted("/scratch", "nvme2n1", ["allocsize=64k"])
    return host


CASE = Case(AREA, BOTH, drifting, DiskHost)


class Made:
    """What stays after a revert: the array and the filesystem have no reverse."""

    def __contains__(self, path: object) -> bool:
        return str(path).startswith(("/fake/disk/", "/sys/block/md127/", "/run/udev/data/", "/dev/"))


MADE: Any = Made()


def test_converges(tmp_path: Path) -> None:
    report = prove_converges(CASE, tmp_path)
    assert [step.id for step in planned(report)][:2] == ["volume.data.array", "volume.data.mkfs"]


def test_converges_by_unit(tmp_path: Path) -> None:
    prove_converges(Case(AREA, want(dict(DATA, mount_by="unit")), make, DiskHost), tmp_path)


def test_a_volume_moves_between_fstab_and_unit(tmp_path: Path) -> None:
    host = make(tmp_path)
    fstab = host.read("/etc/fstab")
    by_unit = Case(AREA, want(dict(SCRATCH, mount_by="unit")), make, DiskHost)
    assert by_unit.apply(host, "r1").state == "changed"
    assert "scratch" not in str(host.read("/etc/fstab"))
    assert by_unit.apply(host, "r2").state == "compliant"
    by_fstab = Case(AREA, want(SCRATCH), make, DiskHost)
    assert by_fstab.apply(host, "r3").state == "changed"
    assert host.read("/etc/systemd/system/scratch.mount") is None
    assert "/scratch xfs" in str(host.read("/etc/fstab"))
    assert by_fstab.apply(host, "r4").state == "compliant"
    assert fstab != host.read("/etc/fstab")


@pytest.mark.parametrize("level", [0, 1, 10])
def test_what_is_observed_is_what_was_wanted(tmp_path: Path, level: int) -> None:
    raid: dict[str, Any] = {"level": level, "metadata": "1.2"}
    if level != 1:
        raid["chunk"] = "256k"
    about = dict(
        DATA, devices=["nvme-QEMU_S0", "nvme-QEMU_S1"], raid=raid, log_size="64m", agcount=16, options=["nodev"]
    )
    report = Case(AREA, want(about), make, DiskHost).apply(make(tmp_path))
    assert report.state == "changed"
    assert not report.findings
    defaults = {"noatime": True, "inode64": True, "allocsize": "64k", "nofail": True, "mount_by": "fstab"}
    assert report.after == {"volumes": [dict(about, **defaults)]}


def test_where_fstab_contradicts_the_mount_the_mount_is_adopted(tmp_path: Path) -> None:
    host = make(tmp_path)
    scratch = Case(AREA, want(SCRATCH), make, DiskHost)
    scratch.apply(host, "r1")
    host.put("/etc/fstab", "UUID=00000000-aaaa /scratch xfs nodev,relatime,inode32,nofail,x-mine=1,x-mine=2 0 0\n")
    adopted = scratch.check(host).before
    assert adopted["volumes"][0]["noatime"] is True
    assert adopted["volumes"][0]["options"] == ["nodev", "x-mine=2"]
    AREA.check_want(want(*adopted["volumes"]))


def test_growth_converges(tmp_path: Path) -> None:
    def grown(root: Path) -> DiskHost:
        host = make(root)
        host.put("/sys/block/nvme2n1/size", str(10 * 2**30 // 512))
        return host

    report = prove_converges(Case(AREA, want(SCRATCH), grown, DiskHost), tmp_path)
    assert [finding.id for finding in report.findings] == ["xfs.mkfs-geometry"]


def test_reverts(tmp_path: Path) -> None:
    prove_reverts(CASE, tmp_path, MADE)
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("how", ["refuse", "ignore"])
@pytest.mark.parametrize("step", ["/etc/fstab", "/etc/mdadm/mdadm.conf", "mkdir -m 0755 /data", "mount /data"])
def test_rolls_back(tmp_path: Path, how: str, step: str) -> None:
    """The filesystem is there already: what was made on a blank device cannot be unmade."""

    def prepared(root: Path) -> DiskHost:
        host = drifting(root)
        host._mdadm(
            xfs_commands.mdadm_argv(
                volume(STRIPED),
                ":".join([ours("array").replace("-", "")[n : n + 8] for n in (0, 8, 16, 24)]),
                ["/dev/nvme0n1", "/dev/nvme1n1"],
            ),
            "",
        )
        host.store("md127", xfs_content(ours("filesystem"), "gf-data", size=16 * 2**30, su=524288, sw=2))
        return host

    prepared(tmp_path)
    case = Case(AREA, want(dict(SCRATCH), dict(STRIPED, mount_point="/data")), prepared, DiskHost)
    prove_rolls_back(case, tmp_path, DiskHost(tmp_path, **{how: (step,)}))


@pytest.mark.parametrize("how", ["refuse", "ignore"])
@pytest.mark.parametrize("lost", [["allocsize=64k"], ["noatime"]], ids=["noatime", "allocsize"])
def test_a_refused_option_is_rolled_back(tmp_path: Path, how: str, lost: list[str]) -> None:
    host = make(tmp_path)
    host.mounted("/scratch", "nvme2n1", lost)
    case = Case(AREA, want(SCRATCH), make, DiskHost)
    step = "mount /scratch" if lost == ["noatime"] else planned(case.check(host))[0].argv
    words = step if isinstance(step, str) else " ".join(step)
    prove_rolls_back(case, tmp_path, DiskHost(tmp_path, **{how: (words,)}))


@pytest.mark.parametrize("inner", ["/data", "/scratch/data"])
def test_a_volume_that_refuses_keeps_no_other_from_its_mount(tmp_path: Path, inner: str) -> None:
    host = make(tmp_path)
    data = dict(DATA, mount_point=inner)
    case = Case(AREA, want(data, SCRATCH), make, DiskHost)
    assert case.apply(host).state == "changed"
    assert host.execute(["umount", inner], "", 60.0).ok
    host.mounted("/scratch", "nvme2n1", ["allocsize=64k"])
    steps = {step.id: step for step in planned(case.check(host))}
    assert set(steps) == {"volume.data.mount", "volume.scratch.remount"}
    stuck = DiskHost(tmp_path, refuse=(" ".join(steps["volume.scratch.remount"].argv),))
    report = case.apply(stuck, "r2")
    assert report.state == "rolled_back"
    became = {result.step.id: result.status for result in report.steps}
    # One that is mounted below the other hangs on it.
    expected = "applied" if inner == "/data" else "undone"
    assert became == {"volume.data.mount": expected, "volume.scratch.remount": "failed"}
    assert ("volume.data.mount" in [step.id for step in planned(case.check(stuck))]) == (expected == "undone")


@pytest.mark.parametrize("tool", ["mkfs.xfs", "mdadm"])
def test_a_tool_that_refuses_a_blank_device_leaves_it_blank(tmp_path: Path, tool: str) -> None:
    make(tmp_path)
    about = DATA if tool == "mkfs.xfs" else STRIPED
    report = prove_rolls_back(Case(AREA, want(about), make, DiskHost), tmp_path, DiskHost(tmp_path, refuse=(tool,)))
    assert report.findings[0].id == "engine.step-refused"


def test_a_missing_mdadm_is_the_roles_to_install(tmp_path: Path) -> None:
    host = make(tmp_path)
    (tmp_path / "usr/sbin/mdadm").unlink()
    report = Case(AREA, want(STRIPED), make, DiskHost).check(host)
    assert {finding.id: finding.cured_by_role for finding in report.findings}["xfs.no-mdadm"]


@pytest.mark.parametrize(
    ("reason", "is_cured"), [("mkfs.xfs is not installed", True), ("mkfs.xfs hung: no answer in 20 s", False)]
)
def test_a_missing_mkfs_is_the_roles_to_install(reason: str, is_cured: bool) -> None:
    seen = {"array": None, "dry_run": Unknown(reason)}
    [finding] = xfs_limits.tool_refusals({"name": "data"}, seen, {"has_mdadm": True, "kernel": "6.1.0"})
    assert (finding.id, finding.level, finding.cured_by_role) == ("xfs.no-mkfs", "block", is_cured)


def test_a_refused_mkfs_leaves_the_array_and_the_next_run_goes_on(tmp_path: Path) -> None:
    make(tmp_path)
    case = Case(AREA, want(STRIPED), make, DiskHost)
    assert case.apply(DiskHost(tmp_path, refuse=("mkfs.xfs",))).state == "failed"
    report = case.apply(DiskHost(tmp_path), "r2")
    assert report.state == "changed"
    assert "volume.data.array" not in [step.id for step in planned(report)]


def test_survives_kills(tmp_path: Path) -> None:
    assert prove_survives_kills(CASE, tmp_path, MADE) > 15


class PowerCut(BaseException):
    """Nothing of ours goes on after it."""


class CutBeforeMount(DiskHost):
    """Its line of fstab is there, and no step has mounted the volume yet."""

    def execute(self, argv: Any, stdin: str, deadline_s: float) -> Result:
        if list(argv[:2]) == ["mount", "/data"]:
            raise PowerCut
        return super().execute(argv, stdin, deadline_s)


@pytest.mark.parametrize("other", ["", "ffffffff-0000-4000-8000-000000000001"], ids=["ours", "another"])
def test_a_volume_that_a_boot_mounted_in_the_middle_of_a_run_is_unmounted_by_revert(tmp_path: Path, other: str) -> None:
    make(tmp_path)
    case = Case(AREA, want(dict(DATA)), make, DiskHost)
    with pytest.raises(PowerCut):
        case.apply(CutBeforeMount(tmp_path))
    journal = Journal(str(tmp_path))
    # The line of the step that was about to begin may be lost with the power.
    rows = Path(journal.path).read_text().splitlines(keepends=True)
    Path(journal.path).write_text("".join(rows[:-1]))
    host = DiskHost(tmp_path)
    assert host.execute(["mount", "/data"], "", 10.0).ok
    assert "volume.data.mount" not in [step.id for step in planned(case.apply(host, "r2"))]
    if other:
        name = dict(host.mounts())["/data"]["name"]
        host.store(name, dict(host.content(name) or {}, uuid=other))
    done = engine.revert(host, Journal(str(tmp_path)), apply=True, allow_risk="destructive")
    assert ("/data" in dict(host.mounts())) == bool(other)
    assert (done[AREA.name].state == "failed") == bool(other)


def test_survives_kills_between_unmount_and_mount(tmp_path: Path) -> None:
    def without(root: Path) -> DiskHost:
        host = make(root)
        host.mounted("/scratch", "nvme2n1", ["noatime"])
        return host

    assert prove_survives_kills(Case(AREA, want(SCRATCH), without, DiskHost), tmp_path) >= 4


def test_without_consent_nothing_is_made_and_others_go_on(tmp_path: Path) -> None:
    host = drifting(tmp_path)
    report = Case(AREA, BOTH, drifting, DiskHost, allow_risk="disruptive").apply(host)
    assert report.state == "blocked"
    assert {r.step.id: r.status for r in report.steps}["volume.scratch.remount"] == "applied"
    assert host.content("nvme0n1") is None
    assert "/data/fast" not in str(host.read("/etc/fstab"))
    blocked = next(r for r in report.steps if r.step.id == "volume.data.array")
    assert "xfs_storage_allow_risk: destructive" in blocked.detail


def test_without_consent_to_disrupt_fstab_is_still_mended(tmp_path: Path) -> None:
    host = drifting(tmp_path)
    host.put("/etc/fstab", "")
    report = Case(AREA, want(SCRATCH), drifting, DiskHost, allow_risk="safe").apply(host)
    assert report.state == "blocked"
    assert "UUID=00000000-aaaa /scratch xfs noatime,inode64,allocsize=64k,nofail 0 0" in str(host.read("/etc/fstab"))


def test_what_an_operator_added_to_fstab_stays(tmp_path: Path) -> None:
    host = make(tmp_path)
    host.put(
        "/etc/fstab",
        "# mine\nUUID=00000000-aaaa\t/scratch xfs defaults,relatime,x-mine,allocsize=1m 0 2\n/dev/vda2 / ext4\n",
    )
    Case(AREA, want(SCRATCH), make, DiskHost).apply(host)
    assert host.read("/etc/fstab") == (
        "# mine\nUUID=00000000-aaaa /scratch xfs x-mine,noatime,inode64,allocsize=64k,nofail 0 2\n/dev/vda2 / ext4\n"
    )


def test_mkfs_and_mdadm_are_never_forced(tmp_path: Path) -> None:
    steps = engine.look(AREA, want(STRIPED), make(tmp_path)).steps
    for step in steps:
        assert not {"-f", "--force", "--run", "-R", "--assume-clean", "-F"} & set(step.argv), step.argv
        assert step.risk == ("destructive" if step.id.endswith((".array", ".mkfs")) else "safe")
    mkfs = next(step for step in steps if step.id.endswith(".mkfs"))
    assert list(mkfs.argv[-2:]) == ["agcount=32,su=524288,sw=2", "/dev/md/gf-data"]
    assert "size=134217728" in mkfs.argv


def test_a_mounted_volume_costs_one_command_and_whether_it_answers(tmp_path: Path) -> None:
    asked: list[str] = []

    class Counting(DiskHost):
        def run(self, argv: Any, deadline_s: float = 10.0) -> Result:
            asked.append(" ".join(argv))
            return super().run(argv, deadline_s)

    make(tmp_path)
    assert engine.look(AREA, want(SCRATCH), Counting(tmp_path)).steps == ()
    assert asked == ["gpufleet-answers /scratch", "xfs_spaceman -c info /scratch"]


def test_a_hand_made_host_gives_its_inventory(tmp_path: Path) -> None:
    host = make(tmp_path)
    host.mounted("/srv/Db_1", "nvme0n1", ["noatime"])
    host.store("nvme0n1", xfs_content("0-1", "x", agcount=4))
    host.mounted("/var", "nvme1n1", [])
    report = Case(AREA, want(), make, DiskHost).check(host)
    first, second = report.after["volumes"]
    assert first["name"] == "scratch"
    assert first["devices"] == ["/dev/disk/by-id/nvme-QEMU_S2"]
    assert first["options"] == ["x-mine"]
    assert second["name"] == "srv-db-1"
    assert second["devices"] == ["/dev/disk/by-id/nvme-QEMU_S0"]
    assert (second["agcount"], second["allocsize"], second["mount_by"]) == (4, None, None)
    AREA.check_want(want(*[dict(about, mount_by="fstab") for about in (first, second)]))


def test_an_array_in_the_inventory_of_a_hand_made_host(tmp_path: Path) -> None:
    host = make(tmp_path)
    Case(AREA, want(STRIPED), make, DiskHost).apply(host)
    found = Case(AREA, want(), make, DiskHost).check(host).after["volumes"]
    second = next(about for about in found if "raid" in about)
    assert second["devices"] == ["/dev/disk/by-id/nvme-QEMU_S0", "/dev/disk/by-id/nvme-QEMU_S1"]
    assert second["raid"] == {"level": 0, "metadata": "1.2", "chunk": "512k"}


def test_a_sparse_capture_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "capture.json").write_text(json.dumps({"format": 1, "hostname": "h", "taken": "t"}))
    report = engine.run_area(AREA, BOTH, CaptureHost(str(tmp_path)), mode="audit")
    assert report.state == "unknown"
    assert report.steps == ()


def test_an_unreadable_geometry_is_unknown(tmp_path: Path) -> None:
    host = changed(tmp_path, {"silent": ["xfs_spaceman", "xfs_info"]})
    report = Case(AREA, want(SCRATCH), make, DiskHost).check(host)
    assert report.state == "unknown"
    assert isinstance(report.findings[0].observed, Unknown)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_no_junk_on_the_host_raises_or_formats(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    host = make(tmp_path_factory.mktemp("junk"))
    paths = ["/etc/fstab", "/etc/mdadm/mdadm.conf", "/etc/machine-id", "/proc/swaps", "/proc/sys/kernel/osrelease"]
    paths += ["/sys/block/nvme0n1/size", "/sys/block/nvme0n1/dev", "/run/udev/data/b259:2", "/sys/block/nvme2n1/size"]
    paths += ["/run/systemd/generator/scratch.mount", "/etc/systemd/system/scratch.mount"]
    for path in data.draw(st.lists(st.sampled_from(paths), max_size=3)):
        Path(host.root + path).parent.mkdir(parents=True, exist_ok=True)
        Path(host.root + path).write_bytes(data.draw(st.binary(max_size=60) | st.text(max_size=60).map(str.encode)))
    host.store("nvme0n1", {"kind": "zfs_member"})
    report = engine.run_area(AREA, want(SCRATCH, DATA), host, mode="audit")
    assert "volume.data.mkfs" not in [r.step.id for r in report.steps]


@pytest.mark.parametrize("junk", ["", "\0\0", "signatures", '{"signatures": [{}]}', "blkid: Fehler", "TYPE", "[]"])
@pytest.mark.parametrize("tool", ["blkid", "wipefs", "mkfs.xfs", "xfs_spaceman", "xfs_db"])
def test_no_junk_from_a_tool_formats_or_raises(tmp_path: Path, tool: str, junk: str) -> None:
    class Junk(DiskHost):
        def run(self, argv: Any, deadline_s: float = 10.0) -> Result:
            return Result(0, junk, junk) if argv[0] == tool else super().run(argv, deadline_s)

    make(tmp_path)
    host = Junk(tmp_path)
    host.store("nvme0n1", {"kind": "ext4"})
    report = engine.run_area(AREA, want(SCRATCH, DATA), host, mode="audit")
    assert "volume.data.mkfs" not in [r.step.id for r in report.steps]


# Data without a signature


def test_data_that_comes_after_the_plan_is_seen_right_before_mkfs(tmp_path: Path) -> None:
    host = changed(tmp_path, {})
    case = Case(AREA, want({}), lambda _root: host, DiskHost)
    kept = host.run

    def run(argv: Any, deadline_s: float = 10.0) -> Result:
        result = kept(argv, deadline_s)
        if argv[0] == "gpufleet-samples":
            host.put("/fake/raw/nvme0n1", "looks random")
        return result

    setattr(host, "run", run)  # noqa: B010
    report = case.apply(host)
    # Not rolled back, since what is there now is not what was there before.
    assert report.state == "failed"
    [finding] = [one for one in report.findings if one.id == "engine.step-refused"]
    assert "gpufleet-samples" in str(finding.observed)
    assert "reads as data: looks random" in str(finding.observed)
    assert host.content("nvme0n1") is None


@pytest.mark.parametrize("kind", ["array", "mkfs"])
def test_every_member_is_looked_at_right_before_it_is_written_to(tmp_path: Path, kind: str) -> None:
    report = Case(AREA, want(STRIPED), lambda _root: changed(tmp_path, {}), DiskHost).check(changed(tmp_path, {}))
    [step] = [step for step in planned(report) if step.id == "volume.data." + kind]
    members = ["/dev/disk/by-id/nvme-QEMU_S0", "/dev/nvme1n1"]
    assert step.checks == tuple(
        ("gpufleet-samples", path) for path in {"array": members, "mkfs": ["/dev/md/gf-data"]}[kind]
    )


def test_what_is_given_up_by_serial_number_is_overwritten(tmp_path: Path) -> None:
    raw = {"raw": {"nvme0n1": "looks random"}}

    def setup(root: Path) -> DiskHost:
        return changed(root, raw)

    case = Case(AREA, want({"overwrite_serials": ["S0"]}), setup, DiskHost)
    [step] = [step for step in planned(case.check(setup(tmp_path / "seen"))) if step.id == "volume.data.mkfs"]
    assert (step.before, step.checks) == ("given up by serial number", ())
    prove_converges(case, tmp_path / "run")


class RealTools(DiskHost):
    """Real devices behind fake sysfs: the tools that look are real, those that make are not."""

    def run(self, argv: Any, deadline_s: float = 10.0) -> Result:
        if argv[0] in ("wipefs", "blkid", "gpufleet-samples"):
            return LiveHost().run(argv, deadline_s)
        return super().run(argv, deadline_s)

    def execute(self, argv: Any, stdin: str, deadline_s: float) -> Result:
        return self.run(argv) if argv[0] == "gpufleet-samples" else super().execute(argv, stdin, deadline_s)


def fill(image: Path, kind: str) -> None:
    with image.open("wb") as file:
        file.truncate(512 << 20)
        if kind in ("random", "LUKS"):
            file.write({"random": os.urandom(4 << 20), "LUKS": b"LUKS\xba\xbe\x00\x02" + bytes(4088)}[kind])
    if kind == "tar":
        with image.open("r+b") as file, tarfile.open(fileobj=file, mode="w") as archive:
            archive.add(__file__, "data")
    if kind.startswith("ext4"):
        subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=True)
    if kind == "ext4, wiped":
        with image.open("r+b") as file:
            file.write(bytes(4096))


def head(image: Path) -> bytes:
    with image.open("rb") as file:
        return file.read(16 << 20)


@pytest.mark.parametrize(
    ("kind", "finding", "acknowledged"),
    [
        ("zeros", "", True),
        ("random", "xfs.device-data", True),
        ("tar", "xfs.device-data", True),
        ("ext4, wiped", "xfs.device-data", True),
        ("ext4", "xfs.device-signature", False),
        ("LUKS", "xfs.device-signature", False),
    ],
)
def test_on_real_devices(tmp_path: Path, kind: str, finding: str, acknowledged: bool) -> None:
    if os.geteuid() != 0 or not shutil.which("losetup"):
        pytest.skip("only root makes loop devices")
    image = tmp_path / "image"
    fill(image, kind)
    made = subprocess.run(["losetup", "--find", "--show", str(image)], capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip("no loop devices here: " + made.stderr)
    node = made.stdout.strip()
    try:
        host = RealTools(tmp_path / "root")
        make(tmp_path / "root")
        host.add_disk(node[5:], 512 << 20, ["scsi-LOOP_L0"], "7:7")
        os.unlink(host.root + "/dev/disk/by-id/scsi-LOOP_L0")  # so that the kernel name is what commands are given
        mine = {"devices": ["scsi-LOOP_L0"], "agcount": 4, "log_size": "64m"}
        before = head(image)
        plain, given_up = (
            engine.look(AREA, want(dict(mine, overwrite_serials=serials)), host) for serials in ([], ["L0"])
        )
        assert [one.id for one in plain.findings] == [finding] * bool(finding)
        assert any(step.id == "volume.data.mkfs" for step in plain.steps) == (not finding)
        assert any(step.id == "volume.data.mkfs" for step in given_up.steps) == acknowledged
        # The blank one is given data after the plan was made: its own step sees it.
        if kind == "zeros":
            Path(node).write_bytes(b"\x01\x02")
            report = Case(AREA, want(mine), lambda _root: host, RealTools).apply(host)
            assert [one.id for one in report.findings] == ["xfs.device-data"]
            [mkfs] = [step for step in plain.steps if step.id == "volume.data.mkfs"]
            with pytest.raises(OSError, match="reads as data at 0x0: is nothing that is known here"):
                engine.apply_step(mkfs, host)
        else:
            assert head(image) == before
    finally:
        subprocess.run(["losetup", "--detach", node], check=True)


def test_nothing_is_looked_at_behind_a_server_that_does_not_answer(tmp_path: Path) -> None:
    class Watched(DiskHost):
        def exists(self, path: str) -> bool | Unknown:
            assert not path.startswith("/data"), path
            return super().exists(path)

        def listdir(self, path: str) -> list[str]:
            assert not path.startswith("/data"), path
            return super().listdir(path)

        def readlink(self, path: str) -> str | None:
            assert not path.startswith("/data"), path
            return super().readlink(path)

    changed(tmp_path, {"mounted": {"/data": ["nvme1n1"]}, "files": {"/fake/silent/data": "hung: no answer in 3 s"}})
    seen = engine.look(AREA, want(dict(DATA, mount_point="/data/deep")), Watched(tmp_path))
    assert [finding.id for finding in seen.findings] == ["xfs.mount-point-unseen"]
