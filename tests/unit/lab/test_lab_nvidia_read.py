# Copyright: (c) 2026, gpufleet.host contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The collection reads the lab's nvidia-smi as it is meant, well or troubled, in every form."""

from __future__ import annotations

from typing import Any, Sequence

import pytest

from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import LiveHost, Result
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import Unknown
from ansible_collections.gpufleet.host.plugins.module_utils._observe import (
    interconnect,
    nvidia_csv,
    nvidia_smi,
    nvidia_table,
    nvlink,
    topo,
)
from ansible_collections.gpufleet.host.plugins.module_utils._observe.nvidia_values import Log

ADDRESSES = ["0000:01:00.0", "0000:21:00.0", "0000:22:00.0", "0000:61:00.0"]
QUERY = "--query-gpu=index,name,pci.bus_id,pci.device_id,memory.total,pcie.link.width.current,ecc.mode.current,count"
XML, TEXT, CSV = ["-q", "-x"], ["-q"], [QUERY, "--format=csv"]
each_form = pytest.mark.parametrize("form", [XML, TEXT, CSV], ids=["xml", "text", "csv"])


def read(nvidia: Any, form: Sequence[str] = XML, **gpus: dict[str, Any]) -> Log:
    """What the collection makes of it; ``_1={...}`` is the trouble of GPU 1."""
    said = nvidia.says(*form, troubles={"gpus": {name.lstrip("_"): wrong for name, wrong in gpus.items()}})
    return nvidia_csv.parse_query_gpu(said).log if form is CSV else nvidia_smi.parse_nvidia_smi(said)


def values(log: Log, field: str) -> list[Any]:
    return [getattr(gpu, field) for gpu in log.gpus]


@each_form
def test_a_healthy_host(nvidia: Any, form: Sequence[str]) -> None:
    log = read(nvidia, form)
    assert (log.attached_gpus, log.is_complete, log.complaints, log.lost) == (4, True, (), ())
    assert values(log, "address") == ADDRESSES
    assert values(log, "pci_id") == ["10de:2330"] * 4
    assert values(log, "memory_total_mib") == [81559] * 4
    assert values(log, "pcie_width") == [16, 16, 16, 8]
    assert values(log, "ecc_mode") == ["Enabled"] * 4
    assert [gpu.errors() for gpu in log.gpus] == [{}] * 4


def test_both_long_forms_say_the_same(nvidia: Any) -> None:
    one, other = read(nvidia, XML), read(nvidia, TEXT)
    assert one.driver_version == other.driver_version == "590.48.01"
    for mine, theirs in zip(one.gpus, other.gpus):
        differ = {name for name in vars(mine) if getattr(mine, name) != getattr(theirs, name)}
        # The text has no such line.
        assert differ <= {"retired_pending"}, {name: (getattr(mine, name), getattr(theirs, name)) for name in differ}


def test_versions_list_and_topology(nvidia: Any) -> None:
    versions = nvidia_csv.parse_nvidia_smi_version(nvidia.says("--version"))
    assert (versions.driver, versions.cuda) == ("590.48.01", "13.1")
    assert values(nvidia_table.parse_gpu_list(nvidia.says("-L")), "index") == [0, 1, 2, 3]
    matrix = topo.parse_topo(nvidia.says("topo", "-m"))
    assert isinstance(matrix, topo.Topo)
    assert topo.peers(matrix, "GPU0") == {"GPU1": 18, "GPU2": 18, "GPU3": 18}
    assert list(matrix.gpus["GPU1"].cpus) == list(range(6))
    assert [matrix.gpus[name].numa_nodes for name in ("GPU1", "GPU3")] == [{0}, {1}]
    assert isinstance(matrix.gpus["GPU0"].numa_nodes, Unknown)


@each_form
def test_a_lost_gpu(nvidia: Any, form: Sequence[str]) -> None:
    log = read(nvidia, form, _1={"lost": "missing"})
    assert (log.attached_gpus, values(log, "address")) == (3, [ADDRESSES[0], *ADDRESSES[2:]])


def test_a_fallen_gpu(nvidia: Any) -> None:
    rc, out = nvidia.ask("-q", "-x", troubles={"gpus": {"1": {"lost": "fallen"}}})
    log = nvidia_smi.read(Result(rc, out, ""))
    assert isinstance(log, Log)
    assert [lost.address for lost in log.lost] == [ADDRESSES[1]]
    assert log.is_complete is False


@pytest.mark.parametrize(("driver", "word"), [("mismatch", "mismatch"), ("not-loaded", "couldn't communicate")])
def test_a_driver_that_does_not_answer(nvidia: Any, driver: str, word: str) -> None:
    rc, out = nvidia.ask("-q", "-x", troubles={"driver": driver})
    log = nvidia_smi.read(Result(rc, out, ""))
    assert isinstance(log, Unknown)
    assert log.reason.startswith("error") and word in log.reason


@each_form
def test_another_card(nvidia: Any, form: Sequence[str]) -> None:
    log = read(nvidia, form, _2={"model": "A800-SXM4-80GB"})
    assert values(log, "name")[1:3] == ["NVIDIA H100 80GB HBM3", "NVIDIA A800-SXM4-80GB"]
    assert values(log, "pci_id")[1:3] == ["10de:2330", "10de:20f3"]
    log = read(nvidia, form, _2={"model": "A800-SXM4-80GB", "name": "NVIDIA H100 80GB HBM3"})
    assert (len(set(values(log, "name"))), values(log, "pci_id")[2]) == (1, "10de:20f3")


def test_limits_of_either_card(nvidia: Any) -> None:
    for form in (XML, TEXT):
        log = read(nvidia, form, _2={"model": "A800-SXM4-80GB"})
        assert values(log, "slowdown_margin_c")[1] == -2
        assert values(log, "slowdown_c")[2] == 89


@each_form
def test_a_narrow_link(nvidia: Any, form: Sequence[str]) -> None:
    assert values(read(nvidia, form, _0={"width": 8}), "pcie_width") == [8, 16, 16, 8]


@pytest.mark.parametrize("error", ["ERR!", "Unknown Error", "GPU requires reset", "GPU is lost"])
def test_an_error_of_one_gpu(nvidia: Any, error: str) -> None:
    for form in (XML, TEXT):
        log = read(nvidia, form, _3={"error": error})
        assert [sorted(gpu.errors())[:1] for gpu in log.gpus[:3]] == [[]] * 3
        assert {"temperature_c", "power_draw_w", "pstate"} <= set(log.gpus[3].errors())
        assert values(log, "address") == ADDRESSES
    query = nvidia.says("--query-gpu=index,temperature.gpu", "--format=csv", troubles={"gpus": {"3": {"error": error}}})
    assert set(nvidia_csv.parse_query_gpu(query).log.gpus[3].errors()) == {"temperature_c"}


@each_form
def test_ecc_off(nvidia: Any, form: Sequence[str]) -> None:
    log = read(nvidia, form, _1={"ecc": "off"})
    assert values(log, "ecc_mode") == ["Enabled", "Disabled", "Enabled", "Enabled"]


def test_uncorrectable_errors_and_the_fabric(nvidia: Any) -> None:
    for form in (XML, TEXT):
        log = read(nvidia, form, _1={"uncorrectable": 2}, _2={"fabric": "In Progress"})
        assert [gpu.ecc_volatile.uncorrectable for gpu in log.gpus] == [0, 2, 0, 0]
        assert values(log, "fabric_state") == ["Completed", "Completed", "In Progress", "Completed"]


class LabHost(LiveHost):
    """A live host on the tree, whose nvidia-smi is the lab's."""

    def __init__(self, nvidia: Any, troubles: dict[str, Any]) -> None:
        super().__init__(str(nvidia.root))
        self._nvidia, self._troubles = nvidia, troubles
        self.asked: list[list[str]] = []

    def run(self, argv: Sequence[str], deadline_s: float = 10.0) -> Result:
        self.asked.append(list(argv))
        assert argv[0] == "nvidia-smi"
        return Result(*self._nvidia.ask(*argv[1:], troubles=self._troubles), "")


def test_what_the_collection_asks_a_live_host_is_answered(nvidia: Any) -> None:
    host = LabHost(nvidia, {"gpus": {"1": {"inactive_links": [4]}}})
    log, wires = nvidia_smi.observe(host), interconnect.observe(host, has_nvlink=True, has_nvswitch=False)
    assert isinstance(log, Log) and isinstance(wires.topo, topo.Topo) and not isinstance(wires.links, Unknown)
    assert [gpu.active for gpu in wires.links] == [18, 17, 18, 18]
    assert topo.peers(wires.topo, "GPU1") == {"GPU0": 17, "GPU2": 17, "GPU3": 17}
    assert len(host.asked) <= 3


def test_links(nvidia: Any) -> None:
    troubles = {"gpus": {"1": {"inactive_links": [4]}, "2": {"nvlink_errors": 7}}}
    status = nvlink.parse_nvlink(nvidia.says("nvlink", "-s", troubles=troubles))
    errors = nvlink.parse_nvlink(nvidia.says("nvlink", "-e", troubles=troubles))
    assert not isinstance(status, Unknown) and not isinstance(errors, Unknown)
    assert [gpu.active for gpu in status] == [18, 17, 18, 18]
    assert {gpu.rates_gb_s for gpu in status} == {(26.562,)}
    assert [gpu.links[0].counters["replay_errors"] for gpu in errors] == [0, 0, 7, 0]
    assert {len(gpu.links) for gpu in errors} == {17, 18}
    all_down = nvlink.parse_nvlink(
        nvidia.says("nvlink", "-s", troubles={"gpus": {"1": {"inactive_links": list(range(18))}}})
    )
    assert not isinstance(all_down, Unknown)
    assert [gpu.active for gpu in all_down] == [18, 0, 18, 18]
