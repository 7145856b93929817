# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every row of the collected facts (tests/facts) is in the tables, field by field, and unverified where it says so."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.gpufleet.host.plugins.module_utils._tables import (
    cuda,
    cudnn,
    driver_branches,
    frameworks,
    gpus,
    nccl,
    nvlink,
    nvswitch,
    pcie,
)
from ansible_collections.gpufleet.host.plugins.module_utils._tables.rows import is_verified

FACTS = Path(__file__).resolve().parents[5] / "tests/facts"
GPUS, CUDA, CUDNN, FRAMEWORKS = (
    yaml.safe_load((FACTS / (name + ".yml")).read_text(encoding="utf-8"))
    for name in ("gpus", "cuda_driver", "cudnn_cuda", "frameworks")
)
# What the tags of gpus.yml call a field.
TAGS = {
    "mib": ["memory_mib"],
    "bw": ["bandwidth_gbs"],
    "tdp": ["tdp_w"],
    "links": ["nvlink.links"],
    "fp64": ["fp64_tflops"],
    "pcie": ["pcie_gen", "pcie_width"],
    "pcie width": ["pcie_width"],
    "temp": ["temperature"],
}
MEASURED = {
    "memory_mib", "memory_alternates_mib", "bandwidth_gbs", "pcie_gen", "pcie_width", "nvlink", "tdp_w", "ecc",
    "fp64_tflops", "temperature",
}  # fmt: skip


def text(value: Any) -> Any:
    return None if value is None else str(value)


def texts(values: Any) -> tuple[str, ...]:
    return tuple(str(value) for value in values or ())


def sources(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else value


def named(rows: Any, key: str = "name") -> Any:
    return [pytest.param(row, id=str(row[key])) for row in rows]


# GPUs


@pytest.mark.parametrize("fact", named(GPUS["gpus"]))
def test_a_gpu_has_the_figures_of_the_facts(fact: Any) -> None:
    gpu = gpus.by_name(fact["name"])
    assert gpu is not None and gpu.name == fact["name"]
    assert gpu.pci_id == fact["pci_id"]
    assert (gpu.memory_mib, gpu.memory_alternates_mib) == (fact["mib"], tuple(fact["mib_alt"] or ()))
    assert gpu.bandwidth_gbs == fact["bw"]
    assert (gpu.architecture, gpu.compute_capability) == (fact["arch"], fact["cc"])
    assert [gpu.pcie_gen, gpu.pcie_width] == fact["pcie"]
    assert (gpu.tdp_w, gpu.ecc, gpu.gpu_class, gpu.fp64_tflops) == tuple(
        fact[name] for name in ("tdp", "ecc", "class", "fp64_tflops")
    )
    if fact["nvlink"] is None:
        assert gpu.nvlink is None
    else:
        link = gpu.nvlink
        assert link is not None
        given = {"gen": link.gen, "links": link.links, "printed": link.rate_gbs, "total": link.total_gbs}
        assert {**given, "via": link.via} == fact["nvlink"]
        assert link.links <= link.links_on_chip


@pytest.mark.parametrize("fact", named(GPUS["gpus"]))
def test_a_gpu_has_the_thresholds_of_the_facts(fact: Any) -> None:
    gpu = gpus.by_name(fact["name"])
    assert gpu is not None
    wanted, heat = fact["temp"], gpu.temperature
    if wanted is None:
        assert heat is None
        return
    assert heat is not None and heat.is_margin == ("tlimit" in wanted)
    limits = [heat.shutdown_c, heat.slowdown_c, heat.max_operating_c]
    assert limits == wanted.get("tlimit", [wanted.get(name) for name in ("shutdown", "slowdown", "max_op")])
    assert heat.memory_max_c == wanted.get("mem_max")


@pytest.mark.parametrize("fact", named(GPUS["gpus"]))
def test_what_the_facts_call_unverified_is(fact: Any) -> None:
    gpu = gpus.by_name(fact["name"])
    assert gpu is not None
    unverified: set[str] = set()
    for part in fact["source"].split(";"):
        tagged = re.fullmatch(r"(.*?) U(?: \(.*\))?", part.strip())
        if tagged and tagged.group(1) == "rest":
            unverified |= MEASURED
        elif tagged:
            unverified |= {field for tag in tagged.group(1).split(", ") for field in TAGS[tag]}
        elif re.match("temp by|mib by|temp .*inferred", part.strip()):
            unverified |= set(TAGS[part.split()[0]])
    assert {field for field in unverified if is_verified(gpu, field)} == set()
    # Nothing else is: but for what follows from these fields, and the capability where no page lists the model.
    more = {field for field in gpu.unverified if field.split(".")[0] not in {name.split(".")[0] for name in unverified}}
    assert more <= ({"architecture", "compute_capability"} if unverified >= MEASURED else {"nvlink.rate_gbs"})


def test_widths_by_design_are_those_of_the_notes() -> None:
    narrow = {gpu.name: gpu.pcie_width_min for gpu in gpus.GPUS if gpu.pcie_width_min}
    noted = {}
    for fact in GPUS["gpus"]:
        found = re.search(r"min width (\d+)|accepts x(\d+)|often x(\d+)", fact.get("note", ""))
        if found:
            noted[fact["name"]] = int(found.group(1) or found.group(2) or found.group(3))
    assert narrow == noted


def test_no_gpu_is_left_out_and_none_invented() -> None:
    assert [gpu.name for gpu in gpus.GPUS] == [fact["name"] for fact in GPUS["gpus"]]
    assert set(gpus.ECC_KINDS) == set(GPUS["ecc_values"])


@pytest.mark.parametrize("fact", named(GPUS["vbios_families"], "prefix"))
def test_vbios_families(fact: Any) -> None:
    family = gpus.vbios_family(fact["prefix"] + ".36.00.02")
    assert family is not None and family.chips == tuple(fact["chips"])
    assert is_verified(family, "prefix") == (fact["source"] != "unverified")


def test_nvlink_generations() -> None:
    assert len(nvlink.ROWS) == len(GPUS["nvlink_generations"])
    for row, fact in zip(nvlink.ROWS, GPUS["nvlink_generations"]):
        assert (row.gen, row.gpus, row.links_max) == (fact["gen"], tuple(fact["gpus"]), fact["links_max"])
        printed = str(fact["printed"])
        assert row.rate_gbs == float(printed.split()[0])
        assert is_verified(row, "rate_gbs") == ("U" not in printed)
        assert (row.payload_gbs, row.total_gbs) == (fact["payload_per_dir"], fact["total"])
        assert nvlink.total_gbs(row.links_max, row) == row.total_gbs


def test_gpus_agree_with_the_generations() -> None:
    for gpu in gpus.GPUS:
        if gpu.nvlink and gpu.architecture != "Turing":
            assert any(
                (row.rate_gbs, row.links_max) == (gpu.nvlink.rate_gbs, gpu.nvlink.links_on_chip)
                for row in nvlink.generations(gpu.nvlink.gen)
            ), gpu.name


def test_nvswitch_systems() -> None:
    assert len(nvswitch.ROWS) == len(GPUS["nvswitch_systems"])
    for row, fact in zip(nvswitch.ROWS, GPUS["nvswitch_systems"]):
        assert row.system == fact["system"]
        assert row.switches == int(str(fact["switches"]).split()[0])
        assert row.gen == int(str(fact["gen"]).split()[0])
        assert row.pci_id == fact.get("switch_pci_id")
        assert is_verified(row, "switches") == ("switch count U" not in fact["source"])
        assert [name for name in row.needs if name not in fact["needs"]] == []


def test_pcie_rates() -> None:
    rates = {row.gen: row for row in pcie.ROWS}
    for fact in GPUS["pcie_bandwidth"]:
        row = rates[fact["gen"]]
        assert row.gts == fact["gts"]
        if isinstance(fact["x16"], float):
            assert (row.x16_gbs, row.x8_gbs, row.unverified) == (fact["x16"], fact["x8"], ())
            assert pcie.gbs_of(row.gts, 16) == pytest.approx(fact["x16"], abs=0.01)
            assert pcie.gbs_of(row.gts, 8) == pytest.approx(fact["x8"], abs=0.01)
        else:
            assert str(row.x16_gbs) in fact["x16"] and row.x8_gbs is None
            assert row.unverified == ("x16_gbs", "x8_gbs")


# CUDA and drivers


@pytest.mark.parametrize("fact", named(CUDA["toolkits"], "version"))
def test_a_toolkit(fact: Any) -> None:
    row = cuda.toolkit(fact["version"])
    assert row is not None
    assert (row.version, row.release, row.driver) == (fact["version"], fact["release"], fact["toolkit_driver_linux"])
    assert row.branch == (int(fact["branch"][1:]) if fact["branch"] else None)
    assert cuda.floor_of(fact["version"]) == fact["min_driver_linux"]
    assert row.source == fact["source"]


def test_families_of_cuda() -> None:
    assert len(cuda.FAMILIES) == len(CUDA["minor_version_compatibility"])
    for row, fact in zip(cuda.FAMILIES, CUDA["minor_version_compatibility"]):
        assert (row.family, row.floor, row.branch) == (
            fact["family"],
            fact["exact_first"],
            int(fact["min_driver_linux"]),
        )
        assert text(row.upper) == fact["upper"]
        assert row.source.split() == fact["source"]


def test_toolkits_are_complete() -> None:
    assert [row.version for row in cuda.TOOLKITS] == [fact["version"] for fact in CUDA["toolkits"]]
    assert list(cuda.PATCH_RELEASES) == CUDA["patch_releases_seen"][0]["versions"]
    assert len(cuda.RULES) == len(CUDA["rules"])


def test_cuda_version_of_a_branch() -> None:
    facts = CUDA["nvidia_smi_cuda_version"]["rows"]
    assert [(row.branch, row.cuda, row.is_derived) for row in cuda.SMI_CUDA] == [
        (fact["branch"], fact["cuda"], fact["status"] == "derived") for fact in facts
    ]


@pytest.mark.parametrize("fact", named(CUDA["branches"], "branch"))
def test_a_branch(fact: Any) -> None:
    row = driver_branches.of("%d.10.01" % fact["branch"])
    assert row is not None
    assert (row.kind, row.first, row.latest) == (fact["kind"], text(fact.get("first")), text(fact.get("latest")))
    assert row.end_of_life == text(fact["eol"])
    assert row.last_for == texts(fact.get("last_for"))
    assert row.max_cuda_native == fact.get("max_cuda_native")
    assert row.source.split() == sources(fact["source"])
    if "unverified" in fact.get("note", ""):
        assert not is_verified(row, "first") and not is_verified(row, "end_of_life")


@pytest.mark.parametrize("fact", named(CUDA["architectures"], "arch"))
def test_an_architecture(fact: Any) -> None:
    row = driver_branches.architecture(fact["arch"])
    assert row is not None
    assert (row.compute_capabilities, row.open_modules) == (tuple(fact["cc"]), fact["open_modules"])
    assert row.last_driver_branch == fact.get("last_driver_branch")
    assert (row.min_driver, row.full_driver) == (fact.get("min_driver"), fact.get("recommended_min_driver"))
    assert (row.first_cuda or "") == fact.get("first_cuda", "").split(" ")[0]
    assert (row.last_cuda or "") == fact.get("last_cuda", "").split(".")[0]
    if "min_driver_cc86" in fact:
        assert row.later == (("8.6", "11.1", fact["min_driver_cc86"]),)
    if "unverified" in fact.get("note", ""):
        assert not is_verified(row, "later")


def test_open_kernel_modules() -> None:
    fact = CUDA["open_kernel_modules"]
    assert fact["first_branch"] == driver_branches.OPEN_FIRST_BRANCH
    assert fact["default_from_branch"] == driver_branches.OPEN_DEFAULT_FROM
    assert fact["proprietary_documented_until_branch"] == driver_branches.PROPRIETARY_UNTIL
    assert driver_branches.OPEN_SOURCE.split() == fact["source"]


def test_branches_and_architectures_are_complete() -> None:
    assert [row.branch for row in driver_branches.BRANCHES] == [fact["branch"] for fact in CUDA["branches"]]
    assert [row.name for row in driver_branches.ARCHITECTURES] == [fact["arch"] for fact in CUDA["architectures"]]


def test_every_gpu_is_of_a_known_architecture() -> None:
    for gpu in gpus.GPUS:
        row = driver_branches.architecture(gpu.architecture)
        assert row is not None and gpu.compute_capability in row.compute_capabilities, gpu.name


# cuDNN, NCCL, frameworks


def test_rows_of_cudnn() -> None:
    assert len(cudnn.ROWS) == len(CUDNN["releases"])
    for row, fact in zip(cudnn.ROWS, CUDNN["releases"]):
        first, _dash, last = str(fact["cudnn"]).partition("-")
        assert (row.first, row.last, row.package) == (first, last or first, fact.get("package"))
        assert row.cuda == texts(fact["cuda"])
        assert row.min_driver == text(fact.get("min_driver_linux"))
        assert row.static_link == texts(fact.get("static_link"))
        assert row.compute_capabilities == texts(fact.get("cc"))
        assert dict(row.driver_branches) == {key: str(value) for key, value in fact.get("driver_branches", {}).items()}
        least = fact.get("min_cc")
        assert dict(row.min_capability) == (least if isinstance(least, dict) else {row.package: least} if least else {})
        assert row.source == fact["source"]


def test_packages_of_cudnn() -> None:
    facts = CUDNN["packaging"]["debian"]
    assert [(row.cudnn_major, row.cuda_major, row.runtime, row.dev, row.version_form) for row in cudnn.PACKAGING] == [
        (fact["cudnn_major"], fact.get("cuda_major"), fact["runtime"], fact["dev"], fact["version_form"])
        for fact in facts
    ]
    assert list(cudnn.WHEELS) == CUDNN["packaging"]["pip"]["names"]


def test_builds_of_torch() -> None:
    facts = [
        (fact["version"], version, variant["cudnn"], variant.get("nccl"), variant["status"], fact["source"])
        for fact in FRAMEWORKS["pytorch"]
        for version, variant in fact["variants"].items()
    ]
    assert [(row.version, row.cuda, row.cudnn, row.nccl, row.status, row.source) for row in frameworks.TORCH] == facts


def test_capabilities_of_torch_builds() -> None:
    fact = FRAMEWORKS["pytorch_arch_by_build"]
    for machine in ("x86_64", "aarch64"):
        rows = {row.cuda: list(row.compute_capabilities) for row in frameworks.TORCH_BUILDS if row.machine == machine}
        assert rows == fact["linux_" + machine]


def test_drivers_of_torch() -> None:
    for name, floor in FRAMEWORKS["pytorch_min_driver"].items():
        if name != "source":
            assert cuda.floor_of(name.split(".")[0] + ".0") == str(floor)


def test_rows_of_tensorflow() -> None:
    facts = [
        tuple(str(fact[key]) for key in ("version", "cuda", "cudnn", "python")) for fact in FRAMEWORKS["tensorflow"]
    ]
    assert [(row.version, row.cuda, row.cudnn, row.python) for row in frameworks.TENSORFLOW] == facts


def test_rows_of_nccl() -> None:
    fact = FRAMEWORKS["nccl"]
    rows = fact["cuda_support_documented"]
    assert [(row.version, row.cuda, row.source.split()) for row in nccl.ROWS] == [
        (row["nccl"], tuple(row["cuda"]), sources(row["source"])) for row in rows
    ]
    assert nccl.LATEST_SEEN[0] == fact["latest_seen"]["version"]
    assert nccl.MAINLINE_SEEN[0] == fact["version_in_mainline_snapshot"]["version"]
    assert {key: str(day) for key, day in fact["pip_release_dates"]["rows"].items()} == nccl.RELEASED
    assert nccl.VERSION_FORM in fact["package_version_form"]
