# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The area as a whole: its two kinds of steps with their proofs, what it asks of a host, and what little it can do with.

The judges have their case tables in tests/unit/cases/platform.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any, Mapping

import fakes_platform
import platform_cases
import pytest
import yaml
from fakes_pci import set_acs, word
from fakes_platform import RAILS, PlatformHost, build, make, make_hgx, make_one
from platform_cases import ROOT, capture, short, want_of
from proof import Case, planned, prove_converges, prove_reverts, prove_rolls_back, prove_survives_kills

from ansible_collections.gpufleet.host.plugins.module_utils._areas.platform import AREA
from ansible_collections.gpufleet.host.plugins.module_utils._engine import engine
from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import (
    CaptureHost,
    MemoHost,
    RecordingHost,
    Result,
)
from ansible_collections.gpufleet.host.plugins.module_utils._engine.journal import Journal
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import BadWant
from ansible_collections.gpufleet.host.plugins.module_utils._plan.platform_steps import UNIT_FILE, UNIT_LINK

BOTH: Mapping[str, Any] = {"acs": "off", "max_read_request_bytes": 4096}
GPU, NIC, NVME = RAILS[0].gpu, RAILS[0].nic, RAILS[0].nvme
PORT = RAILS[0].address(2, 1)
REFUSED = yaml.safe_load((platform_cases.FOLDER / "wants/refused.yml").read_text(encoding="utf-8"))


def case(setup: Any = make_one, allow_risk: str = "disruptive", **given: Any) -> Case:
    return Case(AREA, want_of(given or BOTH), setup, PlatformHost, allow_risk)


# The steps


@pytest.mark.parametrize("setup", [make_one, make, make_hgx])
def test_converges(setup: Any, tmp_path: Path) -> None:
    prove_converges(case(setup), tmp_path)


def test_the_default_want_changes_nothing(tmp_path: Path) -> None:
    host = make_hgx(tmp_path)
    before = host.tree()
    report = Case(AREA, want_of(), make_hgx, PlatformHost).apply(host)
    assert (report.state, planned(report)) == ("compliant", [])
    assert host.tree() == before


def test_steps_are_disruptive(tmp_path: Path) -> None:
    host = make_one(tmp_path)
    before = host.tree()
    report = case(allow_risk="safe").apply(host)
    assert report.state == "blocked"
    assert {result.step.risk for result in report.steps} == {"disruptive"}
    assert host.tree() == before


def test_only_the_masked_bits_are_written(tmp_path: Path) -> None:
    host = make_one(tmp_path)
    host.set_config(PORT, set_acs(host.config(PORT), 0x801D))
    before = {address: host.config(address) for address in (GPU, NIC, NVME, PORT)}
    assert case().apply(host).state == "changed"
    assert word(host.config(PORT), "ECAP_ACS", 6) == 0x8000
    assert [word(host.config(one), "CAP_EXP", 8) for one in (GPU, NIC, NVME)] == [0x5930, 0x5930, 0x2930]
    for address, data in before.items():
        changed = [place for place, (old, new) in enumerate(zip(data, host.config(address))) if old != new]
        assert len(changed) <= 2, (address, changed)


def test_ports_that_no_gpu_uses_are_left_alone(tmp_path: Path) -> None:
    host = make_one(tmp_path)
    port = RAILS[0].address(2, 2)
    host.set_config(port, set_acs(host.config(port), 0x1D))
    case(acs="off").apply(host)
    assert word(host.config(port), "ECAP_ACS", 6) == 0x1D


def test_one_kind_without_the_other(tmp_path: Path) -> None:
    host = make_one(tmp_path)
    report = case(max_read_request_bytes=1024).apply(host)
    assert [step.target for step in planned(report)][2:] == ["0000:18:00.0 CAP_EXP+8.w", "0000:19:00.0 CAP_EXP+8.w"]
    assert "ECAP_ACS" not in str(host.read(UNIT_FILE))


def test_the_unit_does_at_each_boot_what_was_done_now(tmp_path: Path) -> None:
    host = make_one(tmp_path)
    case().apply(host)
    text = str(host.read(UNIT_FILE))
    commands = [line.partition("=")[2].split(" ") for line in text.splitlines() if line.startswith("ExecStart=")]
    other = make_one(tmp_path / "after-boot")
    for argv in commands:
        assert other.execute(argv, "", 10.0).ok, argv
    assert [other.config(one) for one in (GPU, NIC, PORT)] == [host.config(one) for one in (GPU, NIC, PORT)]
    assert "ConditionVirtualization=no" in text
    assert host.readlink(UNIT_LINK) == UNIT_FILE


def test_what_is_not_asked_for_any_more_stays_until_revert(tmp_path: Path) -> None:
    host = make_one(tmp_path)
    case().apply(host)
    report = case(acs="report").apply(host, "r2")
    assert (planned(report), report.state) == ([], "compliant")
    assert host.readlink(UNIT_LINK) == UNIT_FILE


def test_a_unit_that_somebody_changed_is_put_right(tmp_path: Path) -> None:
    host = make_one(tmp_path)
    case().apply(host)
    text = str(host.read(UNIT_FILE))
    host.put(UNIT_FILE, text.replace("7000", "7fff"))
    assert [step.id for step in planned(case().apply(host, "r2"))] == ["platform.unit"]
    assert host.read(UNIT_FILE) == text


def test_a_register_that_a_boot_reset_is_written_again(tmp_path: Path) -> None:
    host = make_one(tmp_path)
    case().apply(host)
    host.set_config(PORT, set_acs(host.config(PORT), 0x1D))
    assert [step.id for step in planned(case().apply(host, "r2"))] == ["platform.acs." + PORT]


def test_reverts(tmp_path: Path) -> None:
    prove_reverts(case(), tmp_path)


def test_a_unit_that_was_there_before_comes_back(tmp_path: Path) -> None:
    def setup(root: Path) -> PlatformHost:
        host = make_one(root)
        host.put(UNIT_FILE, "[Service]\nExecStart=/bin/true\n")
        return host

    prove_reverts(case(setup), tmp_path)


@pytest.mark.parametrize("how", ["refuse", "ignore"])
@pytest.mark.parametrize(
    "what",
    [
        UNIT_FILE,
        "systemctl enable gpufleet-pci.service",
        "/sys/bus/pci/devices/%s/config" % GPU,
        "/sys/bus/pci/devices/%s/config" % PORT,
        "sys/bus/pci/devices/%s/config" % NIC,
        "/usr/bin/setpci",
        "/usr/bin/setpci -s %s CAP_EXP+8.w=5000:7000" % NIC,
    ],
)
def test_rolls_back(tmp_path: Path, how: str, what: str) -> None:
    make_one(tmp_path)
    prove_rolls_back(case(), tmp_path, PlatformHost(tmp_path, **{how: (what, "/" + what)}))


def test_survives_kills(tmp_path: Path) -> None:
    assert prove_survives_kills(case(), tmp_path) > 12


REASONS = {
    "a virtual machine": {"vm": True},
    "beside a guest's device": {"drivers": {NVME: "vfio-pci"}},
    "without setpci": {"files": {"/usr/bin/setpci": None}},
    "locked down": {"files": {"/sys/kernel/security/lockdown": "none integrity [confidentiality]\n"}},
}


@pytest.mark.parametrize("reason", list(REASONS))
@pytest.mark.parametrize("given", [{"acs": "off"}, {"max_read_request_bytes": 4096}], ids=["acs", "reads"])
def test_steps_are_refused(reason: str, given: Mapping[str, Any], tmp_path: Path) -> None:
    host = platform_cases.host_of(REASONS[reason], tmp_path)
    assert isinstance(host, PlatformHost)
    before = host.tree()
    report = case(allow_risk="destructive", **given).apply(host)
    assert report.state == "blocked"
    assert {result.status for result in report.steps} == {"blocked"}
    assert [finding.id for finding in report.findings if finding.level == "block"] == ["platform.pci-refused"]
    assert host.tree() == before


def test_an_accepted_refusal_stays_a_refusal(tmp_path: Path) -> None:
    host = platform_cases.host_of({"vm": True}, tmp_path)
    given = {"acs": "off", "accepted": [{"id": "platform.pci-refused", "reason": "we know"}]}
    assert case(**given).apply(host).state == "blocked"  # type: ignore[arg-type]


# What is wanted


@pytest.mark.parametrize("row", REFUSED, ids=[str(row["want"]) for row in REFUSED])
def test_impossible_wants_are_refused(row: Mapping[str, Any]) -> None:
    with pytest.raises(BadWant) as error:
        want_of(row["want"])
    assert error.value.variable == row["variable"]
    told = " ".join(str(part) for part in error.value.args)
    assert row["allowed"] in told, told


@pytest.mark.parametrize("setup", [make_one, make, make_hgx])
def test_what_is_adopted_is_a_want_without_faults(setup: Any, tmp_path: Path) -> None:
    host = setup(tmp_path)
    found = AREA.adopt(AREA.observe(MemoHost(host), want_of()))
    assert found["gpu_model"] == "NVIDIA H100 80GB HBM3"
    assert found["gpu_count"] == len([name for name in RAILS if host.exists("/sys/bus/pci/devices/" + name.gpu)])
    report = engine.run_area(AREA, want_of(found), host, mode="audit")
    assert report.state == "compliant"
    assert {finding.level for finding in report.findings} <= {"info"}


# What is asked


def test_a_host_with_eight_gpus_is_asked_little(tmp_path: Path) -> None:
    host = make_hgx(tmp_path)
    AREA.observe(MemoHost(host), want_of())
    runs = [words for words in host.asked if words.startswith("nvidia-smi")]
    assert runs == ["nvidia-smi -q -x", "nvidia-smi nvlink -s", "nvidia-smi nvlink -e"]
    # Counters are read twice; nothing else is asked again.
    again = {words for words in host.asked if host.asked.count(words) > 1}
    assert {words.rpartition(" ")[0] for words in again} <= {"ethtool -S"}


def test_a_hung_nvidia_smi_is_asked_once(tmp_path: Path) -> None:
    host = make(tmp_path)
    host.answers["nvidia-smi"] = Result(-1, "", "", "nvidia-smi hung: no answer in 20 s")
    findings = platform_cases.judge(host, want_of())
    assert [words for words in host.asked if words.startswith("nvidia-smi")] == ["nvidia-smi -q -x"]
    assert [short(finding) for finding in findings if finding.level != "info"] == ["fail nvidia-smi-hung host"]


def test_a_host_without_gpus_is_not_asked_about_them(tmp_path: Path) -> None:
    host = make(tmp_path)
    findings = platform_cases.judge(host, want_of({"gpu_match": [{"vendor": "1002"}]}))
    tools = {words.split(" ")[0] for words in host.asked}
    assert tools == {"ibv_devinfo", "ethtool", "dcb", "dmidecode", "ipmitool"}
    assert [short(finding) for finding in findings if not finding.id.startswith("platform.rdma")] == [
        "info no-gpu host"
    ]


WORK = """
import json, sys, time
sys.path[:0] = [sys.argv[1]]
from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import LiveHost, MemoHost, Result
from ansible_collections.gpufleet.host.plugins.module_utils._areas.platform import AREA

answers, want = json.load(open(sys.argv[3])), json.load(open(sys.argv[4]))

class Answering(LiveHost):
    def run(self, argv, deadline_s=10.0):
        return Result(**answers[" ".join(argv)])

host = MemoHost(Answering(sys.argv[2]))
before = time.process_time()
have = AREA.observe(host, want)
seen = time.process_time() - before
findings = AREA.judge(want, have)
rows = dict(line.split(":") for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps({
    "observed_s": round(seen, 3), "judged_s": round(time.process_time() - before - seen, 3),
    "process_s": round(time.process_time(), 3), "memory_mib": round(int(rows["VmHWM"].split()[0]) / 1024, 1),
    "findings": len(findings),
}))
"""
MOST_CPU_S, MOST_MEMORY_MIB = 0.5, 60.0


def test_eight_gpus_cost_little(tmp_path: Path, record_property: Any) -> None:
    """In a process of its own, with the answers of the tools at hand: their time and memory are theirs."""
    host = build(tmp_path / "host", RAILS, threads=96, switches=4)
    recorded = Recorder(host)
    AREA.observe(recorded, want_of())
    (tmp_path / "answers.json").write_text(
        json.dumps({words: asdict(result) for words, result in recorded.said.items()})
    )
    (tmp_path / "want.json").write_text(json.dumps(want_of()))
    argv = [sys.executable, "-c", WORK, str(ROOT / ".cache/collections"), host.root]
    argv += [str(tmp_path / "answers.json"), str(tmp_path / "want.json")]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    spent = json.loads(done.stdout)
    print(spent)
    record_property("spent", spent)
    assert spent["findings"] >= 8
    assert spent["observed_s"] + spent["judged_s"] < MOST_CPU_S, spent
    assert spent["memory_mib"] < MOST_MEMORY_MIB, spent


class Recorder(MemoHost):
    """Remembers what each command said."""

    def __init__(self, host: PlatformHost) -> None:
        super().__init__(host)
        self.said: dict[str, Result] = {}

    def run(self, argv: Any, deadline_s: float = 10.0) -> Result:
        result = super().run(argv, deadline_s)
        self.said[" ".join(argv)] = result
        return result


# Captures


def test_a_whole_capture_is_judged_as_its_host(tmp_path: Path) -> None:
    row = {
        "wires": {GPU: "8@32.0"},
        "says": {1: {"remapped_rows/remapped_row_pending": "Yes"}},
        "links": {0: [3]},
        "log": ["NVRM: Xid (PCI:0000:9b:00): 48, pid='<unknown>', name=<unknown>, DBE"],
        "acs": {PORT: 0x1D},
    }
    host = platform_cases.host_of(row, tmp_path / "host")
    recording = RecordingHost(str(tmp_path / "capture"), "gpu01", "2026-11-30T06:00:00Z", host)  # type: ignore[arg-type]
    live = platform_cases.judge(recording, want_of())
    again = platform_cases.judge(CaptureHost(str(tmp_path / "capture")), want_of())
    assert [finding.to_json() for finding in again] == [finding.to_json() for finding in live]
    assert len([finding for finding in live if finding.level in ("warn", "fail")]) == 5


SPARSE: Mapping[str, tuple[Mapping[str, str], str, set[str]]] = {
    "nothing": ({}, "unknown", {"warn gpus-unseen host"}),
    "nvidia-smi -q -x": ({"nvidia-smi -q -x": "nvidia-smi-xml/x-a10g-x8.xml"}, "compliant", set()),
    "nvidia-smi -q -x that is cut off": (
        {"nvidia-smi -q -x": "nvidia-smi-xml/x-a100-sxm4-mig-v12.xml"}, "unknown", {"warn gpu-list-incomplete host"},
    ),
    "lspci -vvv": ({"lspci -vvv": "lspci/lspci-vvv-xe9680-one-gpu-path.txt"}, "unknown", {"warn nvidia-smi-unseen host"}),
    "dmidecode": ({"dmidecode -t memory": "dmidecode/dell-r640-8x32g-2933-memory.txt"}, "unknown", {"warn gpus-unseen host"}),
    "junk": (dict.fromkeys(("nvidia-smi -q -x", "lspci -vvv", "dmidecode", "ipmitool sdr elist", "journalctl -k"), "\0[]{}<a"),
             "unknown", {"warn gpus-unseen host"}),
}  # fmt: skip


@pytest.mark.parametrize("name", list(SPARSE))
@pytest.mark.parametrize(
    "given", [{}, BOTH, {"gpu_count": 8, "gpu_model": "H200", "memory_gib": 1024, "supplies": 6}], ids=str
)
def test_sparse_captures_are_unknown_where_it_matters(name: str, given: Mapping[str, Any], tmp_path: Path) -> None:
    commands, state, findings = SPARSE[name]
    report = engine.run_area(AREA, want_of(given), capture(tmp_path, commands), mode="audit")
    if not given:
        assert report.state == state
        assert findings <= {short(finding) for finding in report.findings}, report.findings
    else:
        # Neither steps nor peace on a host that cannot be seen.
        assert report.state in ("unknown", "blocked")
    assert [result for result in report.steps if result.status == "planned"] == []
    json.dumps(report.to_json(), allow_nan=False)


def test_two_sources_that_contradict_each_other_are_named(tmp_path: Path) -> None:
    row = {
        "files": {"/sys/bus/pci/devices/0000:9b:00.0/class": "0x0b4000\n"},
        "says": {0: {"pci/pci_gpu_link_info/link_widths/current_link_width": "8x"}},
    }
    findings = platform_cases.judge(platform_cases.host_of(row, tmp_path), want_of())
    assert [(short(finding), finding.observed) for finding in findings if finding.level != "info"] == [
        ("warn sources-contradict 0000:9b:00.0", "in nvidia-smi only"),
        ("warn sources-contradict 0000:19:00.0", "sysfs says x16, nvidia-smi says x8"),
    ]


def test_the_journal_keeps_originals_over_runs(tmp_path: Path) -> None:
    host = make_one(tmp_path)
    before = host.tree()
    case(max_read_request_bytes=1024).apply(host)
    case().apply(host, "r2")
    engine.revert(host, Journal(host.root), apply=True)
    assert host.tree() == before


def test_the_fake_host_is_like_the_real_ones() -> None:
    """Every GPU of the fake is one that the catalogue has, but for the one that it must not have."""
    names = {name for name, model in fakes_platform.MODELS.items() if not platform_cases.is_known(model.pci_id)}
    assert names == {"newer"}
