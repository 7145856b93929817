# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from fakes_kernel import CPU, THP, KernelHost, make, make_el, make_guest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from proof import Case, prove_converges, prove_reverts, prove_rolls_back, prove_survives_kills

from ansible_collections.gpufleet.host.plugins.module_utils._areas.kernel_settings import AREA, SPEC
from ansible_collections.gpufleet.host.plugins.module_utils._engine import engine
from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import CaptureHost
from ansible_collections.gpufleet.host.plugins.module_utils._engine.journal import Journal
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import BadWant, Step
from ansible_collections.gpufleet.host.plugins.module_utils._plan import (
    kernel_boot,
    kernel_cmdline,
    kernel_limits,
    kernel_modules,
    kernel_sysctl,
)

CASES = yaml.safe_load((Path(__file__).parents[3] / "cases/kernel_settings/plan.yml").read_text())
ALL = {
    "sysctls": {"vm.swappiness": "10", "vm.dirty_bytes": "1073741824", "net.ipv4.tcp_rmem": "4096 87380 16777216"},
    "numa_balancing": "0",
    "transparent_hugepage": "madvise",
    "transparent_hugepage_defrag": "defer+madvise",
    "governor": "performance",
    "energy_preference": "performance",
    "deepest_cstate": "C1",
    "memlock": "unlimited",
    "nofile": "65536:1048576",
    "module_options": {"nvme_core": {"multipath": "N"}},
    "cmdline": ["iommu=pt", "pci=realloc"],
}


def want(given: dict[str, Any]) -> dict[str, Any]:
    return dict(dict.fromkeys(SPEC), **given)


def case(given: dict[str, Any] | None = None, setup: Any = make) -> Case:
    return Case(AREA, want(ALL if given is None else given), setup, KernelHost)


def shown(step: Step) -> str:
    return "%s=%s" % (step.id, step.after) if step.kind == "value" else step.id


def change(host: KernelHost, files: dict[str, Any]) -> None:
    for path, text in files.items():
        if text is None:
            os.unlink(host.root + path)
        else:
            host.put(path, text)


@pytest.mark.parametrize("row", CASES, ids=[row["name"] for row in CASES])
def test_plan_and_judge(row: dict[str, Any], tmp_path: Path) -> None:
    host = make(tmp_path)
    change(host, row.get("put", {}))
    AREA.check_want(want(row["want"]))
    seen = engine.look(AREA, want(row["want"]), host)
    assert [shown(step) for step in seen.steps] == row.get("steps", [])
    assert sorted("%s %s %s" % (f.level, f.id, f.subject) for f in seen.findings) == sorted(row.get("findings", []))
    said = json.dumps([finding.to_json() for finding in seen.findings])
    for word in row.get("says", []):
        assert word in said


def test_converges_and_is_compliant_after_the_boot(tmp_path: Path) -> None:
    report = prove_converges(case(), tmp_path)
    assert report.state == "pending_reboot"
    host = KernelHost(tmp_path)
    host.reboot()
    after = case().check(host)
    assert (after.state, after.steps) == ("compliant", ()), (after.steps, after.findings)


def test_what_is_observed_is_what_was_wanted(tmp_path: Path) -> None:
    host = make(tmp_path)
    case().apply(host)
    host.reboot()
    assert case().check(host).before == ALL


def test_reverts(tmp_path: Path) -> None:
    prove_reverts(case(), tmp_path)


@pytest.mark.parametrize(
    "names",
    [
        ("sysctls", "numa_balancing"),
        ("transparent_hugepage", "governor", "energy_preference", "deepest_cstate"),
        ("memlock", "nofile", "module_options"),
        ("cmdline",),
    ],
    ids=lambda names: names[0],
)
def test_survives_kills(tmp_path: Path, names: tuple[str, ...]) -> None:
    assert prove_survives_kills(case({name: ALL[name] for name in names}), tmp_path) >= 3 * 2


# What commands of the host make, and what the kernel sets with another value.
EFFECTS = {
    "kernel.unit.enable": ["/etc/systemd/system/multi-user.target.wants/gpufleet-kernel.service"],
    "kernel.limits.services.reload": ["/fake/manager"],
    "kernel.cmdline.update": ["/boot/grub/grub.cfg"],
    "kernel.sysctl.vm.dirty_bytes": ["/proc/sys/vm/dirty_ratio"],
}


@pytest.mark.parametrize("how", ["refuse", "ignore"])
@pytest.mark.parametrize(
    "what",
    [
        "/proc/sys/vm/swappiness",
        "/proc/sys/net/ipv4/tcp_rmem",
        THP + "defrag",
        CPU + "cpufreq/policy2/scaling_governor",
        CPU + "cpufreq/policy1/energy_performance_preference",
        CPU + "cpu2/cpuidle/state3/disable",
        "systemctl enable gpufleet-kernel.service",
        "systemctl daemon-reload",
        "/usr/sbin/update-grub",
        kernel_sysctl.FILE,
        kernel_boot.FILE,
        kernel_limits.PAM_FILE,
        kernel_modules.FILE,
        kernel_cmdline.FILE,
    ],
)
def test_rolls_back(tmp_path: Path, how: str, what: str) -> None:
    make(tmp_path)
    report = prove_rolls_back(case(), tmp_path, KernelHost(tmp_path, **{how: (what,)}), effects=EFFECTS)
    failed = {r.step.part for r in report.steps if r.status in ("failed", "undone")}
    assert len(failed) == 1, "each topic stands for itself"
    assert not failed & {r.step.part for r in report.steps if r.status == "applied"}


def test_the_way_back_from_bytes_is_the_ratio(tmp_path: Path) -> None:
    """The kernel takes no 0 for dirty_bytes: only its ratio brings the original state back."""
    only = case({"sysctls": {"vm.dirty_bytes": 1073741824, "vm.dirty_background_bytes": 268435456}})
    prove_reverts(only, tmp_path)


def test_on_a_guest_what_is_not_there_is_not_drift(tmp_path: Path) -> None:
    only = case({"governor": "performance", "energy_preference": "performance", "deepest_cstate": "C1"}, make_guest)
    report = only.check(make_guest(tmp_path))
    assert (report.state, report.steps) == ("compliant", ())
    assert [f.id for f in report.findings] == ["kernel.not-offered"] * 3


class TestEl:
    def test_grubby_gets_all_entries_at_once(self, tmp_path: Path) -> None:
        report = prove_converges(case({"cmdline": ["iommu=pt"]}, make_el), tmp_path)
        assert [r.step.argv for r in report.steps if r.step.kind == "run"] == [
            ("/usr/sbin/grubby", "--update-kernel=ALL", "--args=iommu=pt")
        ]
        entries = "/boot/loader/entries/abc-"
        host = KernelHost(tmp_path)
        assert "iommu=pt" in str(host.read(entries + "5.14.0-2.conf"))
        assert "iommu=pt" not in str(host.read(entries + "0-rescue.conf"))

    def test_reverts(self, tmp_path: Path) -> None:
        prove_reverts(case({"cmdline": ["iommu=pt"]}, make_el), tmp_path)

    def test_an_entry_that_has_it_keeps_it_on_the_way_back(self, tmp_path: Path) -> None:
        def setup(root: Path) -> KernelHost:
            host = make_el(root)
            path = "/boot/loader/entries/abc-5.14.0-1.conf"
            host.put(path, str(host.read(path)).replace(" ro\n", " ro iommu=pt\n"))
            path = "/boot/loader/entries/abc-5.14.0-2.conf"
            host.put(path, str(host.read(path)).replace(" ro\n", " ro iommu=off\n"))
            return host

        prove_reverts(case({"cmdline": ["iommu=pt"]}, setup), tmp_path)

    def test_survives_kills(self, tmp_path: Path) -> None:
        assert prove_survives_kills(case({"cmdline": ["iommu=pt"]}, make_el), tmp_path) > 0


def test_blocked_means_nothing_is_changed(tmp_path: Path) -> None:
    host = make(tmp_path)
    before = host.tree()
    report = case(dict(ALL, sysctls={"vm.swapiness": 1})).apply(host)
    assert report.state == "blocked"
    assert host.tree() == before


def test_a_file_of_ours_goes_when_nothing_is_wanted_of_it(tmp_path: Path) -> None:
    host = make(tmp_path)
    before = host.tree()
    case({"sysctls": {"vm.swappiness": 60}, "module_options": {"nouveau": {"modeset": 0}}, "cmdline": ["a=b"]}).apply(
        host
    )
    report = case({"sysctls": {}, "module_options": {}, "cmdline": []}).apply(host, "r2")
    assert report.state == "changed"
    assert host.tree() == before


def test_a_value_changed_by_hand_is_exactly_one_step(tmp_path: Path) -> None:
    host = make(tmp_path)
    case().apply(host)
    host.reboot()
    host.put("/proc/sys/vm/swappiness", "60\n")
    assert [shown(r.step) for r in case().check(host).steps] == ["kernel.sysctl.vm.swappiness=10"]


def test_a_sparse_capture_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "capture.json").write_text(json.dumps({"format": 1, "hostname": "h", "taken": "t"}))
    report = engine.run_area(AREA, want(ALL), CaptureHost(str(tmp_path)), mode="audit")
    assert (report.state, report.steps) == ("unknown", ())


@pytest.mark.parametrize(
    ("given", "variable"),
    [
        ({"sysctls": {"vm.swappiness": True}}, "sysctls[vm.swappiness]"),
        ({"sysctls": {"vm.swappiness": "1\n2"}}, "sysctls[vm.swappiness]"),
        ({"sysctls": {"vm.swappiness": " "}}, "sysctls[vm.swappiness]"),
        ({"sysctls": {"vm.swappiness": "\x1b"}}, "sysctls[vm.swappiness]"),
        ({"sysctls": {"vm.swappiness": None}}, "sysctls[vm.swappiness]"),
        ({"sysctls": {"net.ipv4.conf.*.rp_filter": 1}}, "sysctls[net.ipv4.conf.*.rp_filter]"),
        ({"sysctls": {"vm/../../etc/shadow": 1}}, "sysctls[vm/../../etc/shadow]"),
        ({"sysctls": {"vm..swappiness": 1}}, "sysctls[vm..swappiness]"),
        ({"sysctls": {"-vm.swappiness": 1}}, "sysctls[-vm.swappiness]"),
        ({"sysctls": {"": 2}}, "sysctls[]"),
        ({"sysctls": {"vm.swappiness": 1, "vm/swappiness": 2}}, "sysctls[vm/swappiness]"),
        ({"sysctls": {"vm.dirty_bytes": 1, "vm.dirty_ratio": 2}}, "sysctls[vm.dirty_bytes]"),
        ({"numa_balancing": "yes"}, "numa_balancing"),
        ({"numa_balancing": "0", "sysctls": {"kernel.numa_balancing": 0}}, "sysctls[kernel.numa_balancing]"),
        ({"transparent_hugepage": "sometimes"}, "transparent_hugepage"),
        ({"transparent_hugepage_defrag": "on"}, "transparent_hugepage_defrag"),
        ({"governor": "a b"}, "governor"),
        ({"energy_preference": "../x"}, "energy_preference"),
        ({"deepest_cstate": "C6\n"}, None),
        ({"memlock": "lots"}, "memlock"),
        ({"memlock": "1025"}, "memlock"),
        ({"memlock": "2g:1g"}, "memlock"),
        ({"nofile": "unlimited"}, "nofile"),
        ({"nofile": "1023"}, "nofile"),
        ({"nofile": "64k"}, "nofile"),
        ({"nofile": "1:2:3"}, "nofile"),
        ({"module_options": {"a b": {}}}, "module_options.a b"),
        ({"module_options": {"nvme": "x"}}, "module_options.nvme"),
        ({"module_options": {"nvme": {"x y": 1}}}, "module_options.nvme.x y"),
        ({"module_options": {"nvme": {"x": '"\nblacklist nvme'}}}, "module_options.nvme.x"),
        ({"module_options": {"nvme-core": {}, "nvme_core": {}}}, "module_options.nvme_core"),
        ({"cmdline": ['iommu=pt"; reboot']}, "cmdline[0]"),
        ({"cmdline": ["a=$(reboot)"]}, "cmdline[0]"),
        ({"cmdline": ["root=/dev/sda1"]}, "cmdline[0]"),
        ({"cmdline": ["iommu=pt", "iommu=off"]}, "cmdline[1]"),
        ({"cmdline": ["console=tty0", "console=ttyS0", "console=tty0"]}, "cmdline[2]"),
    ],
)
def test_impossible_wants_are_refused(given: dict[str, Any], variable: str | None) -> None:
    if variable is None:
        AREA.check_want(want(given))
        return
    with pytest.raises(BadWant) as error:
        AREA.check_want(want(given))
    assert error.value.variable == variable


def test_null_handed_over_as_an_empty_text_is_not_managed(tmp_path: Path) -> None:
    empty = {name: "" for name, spec in SPEC.items() if spec["type"] == "str"}
    AREA.check_want(want(empty))
    assert case(empty).check(make(tmp_path)).state == "compliant"


def test_journal_keeps_originals_over_runs(tmp_path: Path) -> None:
    host = make(tmp_path)
    before = host.tree()
    case().apply(host)
    host.put("/proc/sys/vm/swappiness", "33\n")
    case(dict(ALL, sysctls={"vm.swappiness": 1, "vm.dirty_bytes": 536870912})).apply(host, "r2")
    engine.revert(host, Journal(host.root), apply=True)
    assert host.tree() == before


JUNK = st.dictionaries(
    st.sampled_from(
        [
            "/proc/sys/vm/swappiness", THP + "enabled", THP + "defrag", "/proc/cmdline", "/boot/grub/grub.cfg",
            "/etc/default/grub", "/etc/default/grub.d/95-x.cfg", "/etc/sysctl.d/99-x.conf", "/etc/tmpfiles.d/x.conf",
            "/etc/modprobe.d/z.conf", "/etc/security/limits.d/z.conf", "/etc/systemd/system.conf.d/z.conf",
            "/fake/manager", "/proc/sys/fs/nr_open", CPU + "offline", CPU + "cpu0/cpuidle/state1/name",
            CPU + "cpufreq/policy0/scaling_available_governors", CPU + "cpufreq/policy1/scaling_governor",
            "/etc/tuned/active_profile", "/run/tuned/tuned.pid", "/sys/module/nvme_core/parameters/multipath",
            "/boot/loader/entries/x.conf", "/usr/sbin/grubby", "/boot/grub2/grubenv", kernel_sysctl.FILE,
        ]
    ),
    st.one_of(st.none(), st.text(max_size=60), st.binary(max_size=40).map(lambda b: b.decode("latin-1"))),
)  # fmt: skip


@given(junk=JUNK)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_junk_is_never_a_crash(junk: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> None:
    host = make(tmp_path_factory.mktemp("junk"))
    for path, text in junk.items():
        if text is not None:
            host.put(path, text.encode("utf-8", "replace").decode("utf-8"))
        elif os.path.exists(host.root + path):
            os.unlink(host.root + path)
    case().check(host)
