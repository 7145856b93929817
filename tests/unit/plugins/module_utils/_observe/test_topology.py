# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Processors, nodes, PCI, processes and os-release: real outputs with their reading, and junk."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from fakes import FakeHost
from fakes_numa_slices import make
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansible_collections.gpufleet.host.plugins.module_utils._engine.cpuset import format_cpulist, parse_cpulist
from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import CaptureHost
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import Unknown
from ansible_collections.gpufleet.host.plugins.module_utils._observe import cgroup, numa, os_release, pci, topology
from ansible_collections.gpufleet.host.plugins.module_utils._observe.cpu import parse_lscpu
from ansible_collections.gpufleet.host.plugins.module_utils._observe.process import parse_proc_status

ROOT = Path(__file__).resolve().parents[5]
CORPUS = ROOT / "tests/corpus"


def cases(kind: str) -> list[Any]:
    rows = yaml.safe_load((ROOT / "tests/unit/cases/corpus" / (kind + ".yml")).read_text())
    assert sorted(row["file"] for row in rows) == sorted(path.name for path in (CORPUS / kind).iterdir())
    return [pytest.param(row, (CORPUS / kind / row["file"]).read_text(), id=row["file"]) for row in rows]


def plain(value: Any) -> Any:
    """Sets as lists, Unknown as the word."""
    if isinstance(value, Unknown):
        return "unknown"
    return format_cpulist(value) if isinstance(value, frozenset) else value


def listed(text: Any) -> Any:
    return format_cpulist(parse_cpulist(text)) if isinstance(text, str) and text != "unknown" else text


@pytest.mark.parametrize(("row", "text"), cases("lscpu"))
def test_lscpu_of_the_corpus(row: dict[str, Any], text: str) -> None:
    said = parse_lscpu(text)
    names = ("cpus", "online", "offline", "sockets", "cores_per_socket", "threads_per_core", "nodes")
    wanted = {name: row["says"].get(name, "unknown") for name in names}
    for name in ("online", "offline"):
        wanted[name] = listed(wanted[name])
    if row["file"] == "local-vm-epyc-2.38.1.json":
        names = ("cpus", "online", "sockets", "nodes")
    assert {name: plain(getattr(said, name)) for name in names} == {name: wanted[name] for name in names}
    for name in ("vendor", "hypervisor"):
        if name in row["says"]:
            assert getattr(said, name) == row["says"][name]
    found = {node: plain(cpus) for node, cpus in said.node_cpus.items()}
    assert {node: found.get(node) for node in row.get("node_cpus", {})} == {
        node: listed(cpus) for node, cpus in row.get("node_cpus", {}).items()
    }
    if "node_cpus" not in row:
        assert found == {}
    if "models" in row:
        assert list(said.models) == row["models"]


EIGHT = "CPU(s): 8\nOn-line CPU(s) list: 0-7\nSocket(s): 1\nNUMA node(s): 1\nNUMA node0 CPU(s): 0-7\n"
FORMS_OF_LSCPU = [
    "> CPU(s):              8\n> On-line CPU(s) list: 0-7\n> Socket(s): 1\n> NUMA node(s): 1\n> NUMA node0 CPU(s): 0-7\n",
    "CPU(s): 8\nOn-line CPU(s) mask: 0xff\nSocket(s): 1\nNUMA node(s): 1\nNUMA node0 CPU(s): ff\n",
    "Processeur(s) :                         8\nListe de processeur(s) en ligne :       0-7\nSocket(s) : 1\n"
    "Nœud(s) NUMA : 1\nNœud NUMA\xa00 de processeur(s) : 0-7\n",
    "Процесори: 8\nСписок робочих ЦП: 0-7\nСокети: 1\nВузли NUMA: 1\nПроцесори вузла0 NUMA: 0-7\n",
    "CPU(s): 8\nOn-line CPU(s) list: 0-7\nCPU socket(s): 1 # one\nNUMA node(s): 1\nNUMA node0 CPU(s): 0-7\n",
    "Architecture: x86_64\n" + EIGHT + "Architecture: x86_64\nCPU(s): 4\nNUMA node0 CPU(s): 0-3\nNUMA node1 CPU(s): \n",
    "# lscpu -J\n" + json.dumps({"lscpu": [dict(zip(("field", "data"), row.split(": "))) for row in EIGHT.splitlines()]}),
    '{"lscpu": [' + ",".join(
        json.dumps(dict(zip(("field", "data"), row.split(": ")))) for row in EIGHT.splitlines()
    ) + ', {"field": "Vulnera',
]  # fmt: skip


@pytest.mark.parametrize("text", FORMS_OF_LSCPU)
def test_forms_of_lscpu(text: str) -> None:
    said = parse_lscpu(text)
    assert (said.cpus, said.online, said.sockets, said.nodes) == (8, frozenset(range(8)), 1, 1)
    assert said.node_cpus == {0: frozenset(range(8))}


TABLES_OF_LSCPU = [
    "# lscpu -e\nCPU NODE SOCKET CORE L1d:L1i:L2:L3 ONLINE    MAXMHZ\n"
    "  0    0      0    0 0:0:0:0          да 3100.0000\n  1    0      0    0 0:0:0:0          да 3100.0000\n"
    "  2    1      1    1 1:1:1:1          да 3100.0000\n  3    1      1    1 1:1:1:1          да 3100.0000\n"
    "  4    -      -    - -               нет        -\n# exit\n",
    json.dumps({"cpus": [
        {"cpu": cpu, "node": cpu // 2, "socket": cpu // 2, "core": cpu // 2, "online": True} for cpu in range(4)
    ] + [{"cpu": 4, "node": None, "socket": None, "core": None, "online": False}]}),
]  # fmt: skip


@pytest.mark.parametrize("text", TABLES_OF_LSCPU)
def test_the_table_of_lscpu(text: str) -> None:
    said = parse_lscpu(text)
    assert (said.cpus, said.online, said.offline) == (5, frozenset(range(4)), frozenset([4]))
    assert (said.sockets, said.cores_per_socket, said.threads_per_core, said.nodes) == (2, 1, 2, 2)
    assert said.node_cpus == {0: frozenset([0, 1]), 1: frozenset([2, 3])}


def test_the_list_of_lscpu_for_programs_does_not_tell_what_is_offline() -> None:
    said = parse_lscpu("# one item a column\n# CPU,Core,Socket,Node,,L1d,L1i,L2\n0,0,0,,,0,0,0\n2,1,0,,,1,1,0\n")
    assert (said.cpus, said.online, said.sockets, said.cores_per_socket) == (2, frozenset([0, 2]), 1, 2)
    assert isinstance(said.offline, Unknown) and isinstance(said.nodes, Unknown)


def test_the_nodes_of_a_second_machine_are_not_those_of_the_first() -> None:
    text = "available: %d nodes (0-1)\nnode 0 cpus: 0 1\nnode 0 size: 1024 MB\n"
    more = "node 1 cpus: 2 3\nnode 1 size: 512 MB\n"
    nodes = numa.parse_numactl(
        "> # numactl -H\n" + text % 1 + "$ ssh b numactl -H\n" + (text % 2).replace("1024", "9") + more
    )
    assert [(node.id, node.memory_mib) for node in nodes] == [(0, 1024)]


@pytest.mark.parametrize(("row", "text"), cases("numactl"))
def test_numactl_of_the_corpus(row: dict[str, Any], text: str) -> None:
    nodes = {node.id: node for node in numa.parse_numactl(text)}
    assert {key: plain(node.cpus) for key, node in nodes.items()} == {k: listed(v) for k, v in row["cpus"].items()}
    assert {key: node.memory_mib for key, node in nodes.items()} == row["memory_mib"]
    assert {key: list(nodes[key].distances) for key in row["distances"]} == row["distances"]


@pytest.mark.parametrize(("row", "text"), cases("proc-status"))
def test_proc_status_of_the_corpus(row: dict[str, Any], text: str) -> None:
    status = parse_proc_status(text)
    assert (plain(status.cpus_allowed), plain(status.mems_allowed)) == (row["cpus"], row["mems"])
    assert status.name == row.get("name", status.name)


@pytest.mark.parametrize(("row", "text"), cases("os-release"))
def test_os_release_of_the_corpus(row: dict[str, Any], text: str) -> None:
    values = os_release.parse_os_release(text)
    for name in ("id", "version_id", "id_like", "pretty_name"):
        assert values.get(name.upper()) == row[name]


def test_a_status_without_lists_is_unknown_and_not_all() -> None:
    status = parse_proc_status("Name:\tx\nCpus_allowed_list:\t\n")
    assert isinstance(status.cpus_allowed, Unknown) and isinstance(status.mems_allowed, Unknown)


@pytest.mark.parametrize(
    "text",
    [
        "Name:\tx\nCpus_allowed:\t0000,00400008\nMems_allowed:\t00000000,00000002\n",
        "/proc/7/status:Cpus_allowed_list:\t3,22\n/proc/7/status:Mems_allowed_list:\t1\n",
    ],
)
def test_a_status_that_has_masks_alone_or_a_path_in_front(text: str) -> None:
    status = parse_proc_status(text)
    assert (status.cpus_allowed, status.mems_allowed) == (frozenset([3, 22]), frozenset([1]))


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0\n", 0), ("3\n", 3), ("-1\n", None), ("", None), ("x", None), (None, None), ("٣", None), ("-2", None)],
)
def test_numa_node_of_minus_one_is_unknown(text: Any, expected: Any) -> None:
    found = pci.parse_numa_node(text)
    assert found == expected if expected is not None else isinstance(found, Unknown)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("16.0 GT/s PCIe\n", 16.0), ("8 GT/s", 8.0), ("2.5 GT/s PCIe", 2.5), ("Unknown", None), ("", None), (None, None)],
)
def test_link_speed(text: Any, expected: Any) -> None:
    assert pci.parse_speed(text) == expected


@pytest.mark.parametrize(("text", "expected"), [("16\n", 16), ("0\n", None), ("255", None), ("x", None), (None, None)])
def test_link_width(text: Any, expected: Any) -> None:
    assert pci.parse_width(text) == expected


@pytest.mark.parametrize(
    ("ids", "match", "kind"),
    [
        (("10de", "2330", "030200"), pci.NVIDIA_GPUS, "gpu"),
        (("10de", "2330", "068000"), pci.NVIDIA_GPUS, ""),
        (("1b36", "0005", "00ff00"), pci.NVIDIA_GPUS, ""),
        (("1b36", "0005", "00ff00"), [{"vendor": "0x1B36", "device": "0005"}], "gpu"),
        (("1a03", "2000", "030000"), pci.NVIDIA_GPUS, "other"),
        (("15b3", "1021", "020000"), pci.NVIDIA_GPUS, "nic"),
        (("144d", "a824", "010802"), pci.NVIDIA_GPUS, "nvme"),
        (("1000", "00e6", "010400"), pci.NVIDIA_GPUS, "storage"),
        (("8086", "3456", "060400"), pci.NVIDIA_GPUS, ""),
        (("10de", "2330", "030200"), [{}], "other"),
    ],
)
def test_kind_of_a_function(ids: Any, match: Any, kind: str) -> None:
    assert pci.kind_of(*ids, match) == kind


def test_gpus_come_in_the_order_of_their_address() -> None:
    rows = ["0001:01:00.0", "0000:f0:00.0", "0000:0a:00.0", "0000:0a:00.1"]
    assert sorted(rows, key=pci.sort_key) == ["0000:0a:00.0", "0000:0a:00.1", "0000:f0:00.0", "0001:01:00.0"]


def test_the_minor_number_of_a_gpu() -> None:
    assert pci.parse_minor("Model: \t\t NVIDIA H100\nDevice Minor: \t 3\n") == 3
    assert pci.parse_minor(None) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [("populated 1\nfrozen 0\n", True), ("populated 0\n", False), ("", "unknown"), (None, "unknown")],
)
def test_cgroup_events(text: Any, expected: Any) -> None:
    assert plain(cgroup.parse_events(text)) == expected


def test_slot_width_and_speed_are_those_of_the_port_above(tmp_path: Path) -> None:
    host = FakeHost(tmp_path)
    real = "/sys/devices/pci0000:20/0000:20:00.0/"
    for name, text in (("vendor", "0x1b36"), ("device", "0x000c"), ("class", "0x060400"), ("max_link_width", "8")):
        host.put(real + name, text + "\n")
    host.put(real + "max_link_speed", "32.0 GT/s PCIe\n")
    rows = {"vendor": "0x10de", "device": "0x2330", "class": "0x030200", "numa_node": "-1", "current_link_width": "8"}
    for name, text in {**rows, "max_link_width": "16", "max_link_speed": "Unknown", "local_cpulist": "0-7"}.items():
        host.put(real + "0000:21:00.0/" + name, text + "\n")
    (tmp_path / "sys/bus/pci/devices").mkdir(parents=True)
    for address, target in (("0000:20:00.0", ""), ("0000:21:00.0", "/0000:21:00.0")):
        os.symlink("../../../devices/pci0000:20/0000:20:00.0" + target, tmp_path / "sys/bus/pci/devices" / address)
    (facts,) = topology.host_facts(host)["pci"]
    assert facts["link"] == {
        "width": 8, "max_width": 16, "slot_width": 8, "speed_gts": None, "max_speed_gts": None, "slot_speed_gts": 32.0,
    }  # fmt: skip
    assert facts["numa_node"] is None
    assert facts["driver"] is None


def test_facts_of_a_host_on_sysfs(tmp_path: Path) -> None:
    host = make(tmp_path)
    host.put("/etc/os-release", 'ID=debian\nVERSION_ID="12"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n')
    host.put("/sys/class/dmi/id/sys_vendor", "QEMU\n")
    host.put("/proc/cpuinfo", "processor\t: 0\nmodel name\t: Some CPU\n")
    facts = topology.host_facts(host)
    cpu = {"model": "Some CPU", "sockets": 2, "cores": 4, "threads": 8, "online": "0-7", "offline": "", "smt": True}
    assert facts["cpu"] == cpu
    assert facts["numa_nodes"][1] == {"id": 1, "socket": 1, "cpus": "4-7", "memory_mib": 1500, "distances": [21, 10]}
    assert [device["numa_node"] for device in facts["pci"]] == [0, 0, 1, None]
    assert facts["virtualization"] == "qemu"
    assert facts["os"]["version_id"] == "12"


def capture(folder: Path, *commands: tuple[list[str], str]) -> CaptureHost:
    (folder / "commands").mkdir(parents=True)
    (folder / "capture.json").write_text('{"format": 1, "hostname": "h", "taken": ""}')
    for number, (argv, text) in enumerate(commands):
        row = {"argv": argv, "rc": 0, "stdout": text, "stderr": ""}
        (folder / "commands" / ("%04d.json" % number)).write_text(json.dumps(row))
    return CaptureHost(str(folder))


def test_a_capture_of_lscpu_and_numactl_alone_still_gives_facts(tmp_path: Path) -> None:
    lscpu = (CORPUS / "lscpu/dcgm-lscpuSkinnyJoeFullJson.json").read_text()
    numactl = (CORPUS / "numactl/c5n-18xlarge.txt").read_text()
    facts = topology.host_facts(capture(tmp_path / "a", (["lscpu", "-J"], lscpu)))
    assert (facts["cpu"]["sockets"], facts["cpu"]["cores"], facts["cpu"]["smt"]) == (4, 288, False)
    assert len(facts["numa_nodes"]) == 36
    assert facts["numa_nodes"][5]["cpus"] == "" and facts["numa_nodes"][5]["memory_mib"] is None
    facts = topology.host_facts(capture(tmp_path / "b", (["numactl", "-H"], numactl)))
    assert [node["memory_mib"] for node in facts["numa_nodes"]] == [94590, 94710]
    assert facts["cpu"]["threads"] is None


def test_an_empty_capture_is_all_unknown(tmp_path: Path) -> None:
    facts = topology.host_facts(capture(tmp_path))
    assert set(facts["cpu"].values()) == {None}
    assert (facts["numa_nodes"], facts["pci"], facts["disks"]) == ([], [], [])
    assert facts["virtualization"] is None


SEEDS = [
    path for kind in ("lscpu", "numactl", "proc-status", "os-release") for path in sorted((CORPUS / kind).iterdir())
]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_parsers_never_fail_on_junk(data: Any) -> None:
    rows = data.draw(st.sampled_from(SEEDS)).read_text().splitlines()
    rows = data.draw(st.permutations(rows)) if len(rows) < 40 and data.draw(st.booleans()) else rows
    cut = data.draw(st.integers(0, max(len(rows) - 1, 0)))
    rows = rows[:cut] + [data.draw(st.text(max_size=30))] + rows[cut : cut + data.draw(st.integers(0, 60))] * 2
    text = "\n".join(rows)[: data.draw(st.integers(0, 4000))]
    parse_lscpu(text)
    numa.parse_numactl(text)
    numa.parse_node_meminfo(text)
    parse_proc_status(text)
    os_release.parse_os_release(text)
    pci.parse_minor(text)
    cgroup.parse_events(text)
