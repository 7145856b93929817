# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tables as a whole: rows that name their source, look-ups, and rows of operators."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given as fed
from hypothesis import settings
from hypothesis import strategies as st

from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import BadWant
from ansible_collections.gpufleet.host.plugins.module_utils._tables import (
    catalogue,
    cpu_memory,
    cuda,
    cudnn,
    driver_branches,
    frameworks,
    gpus,
    nccl,
    nvlink,
    nvswitch,
    pcie,
    rows,
    xids,
)

CASES = Path(__file__).resolve().parents[3] / "cases/tables"
MODULES: dict[str, Any] = {
    module.__name__.rsplit(".", 1)[1]: module
    for module in (cpu_memory, cuda, cudnn, driver_branches, frameworks, gpus, nccl, nvlink, nvswitch, pcie, xids)
}
LOOKUPS = yaml.safe_load((CASES / "lookups.yml").read_text(encoding="utf-8"))
OPERATOR_ROWS = yaml.safe_load((CASES / "operator_rows.yml").read_text(encoding="utf-8"))
each_table = pytest.mark.parametrize("table", catalogue.TABLES.values(), ids=list(catalogue.TABLES))


def plain(value: Any) -> Any:
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value


# Rows


@each_table
def test_rows_are_unique(table: Any) -> None:
    keys = [rows.key_of(table, row) for row in table.rows]
    assert len(keys) == len(set(keys)) > 0


@each_table
def test_every_row_names_a_source_that_can_be_read(table: Any) -> None:
    for row in table.rows:
        assert row.source.strip(), row
        shown = rows.expand(row.source, table.sources)
        assert not re.search(r"\bF\d{6}", shown)
        for word in re.findall(r"\b[a-z]+_\w+\b", row.source):
            assert word in table.sources or "://" in row.source or word == "gpu_spec", word
    used = {word for row in table.rows for word in re.findall(r"\w+", row.source + " " + str(getattr(row, "note", "")))}
    assert used, table.name


@each_table
def test_columns_are_the_fields_of_a_row(table: Any) -> None:
    # Not for operators: what only the collected facts have.
    inner = {"min_capability", "driver_branches", "later"}
    assert set(table.columns) == set(table.row._fields) - inner
    assert {name for name, column in table.columns.items() if not column.about} == set()
    for name, column in table.columns.items():
        assert column.choices or column.kind.rstrip("s") not in ("int", "number") or column.high > column.low, name


@each_table
def test_what_is_unverified_is_a_field(table: Any) -> None:
    for row in table.rows:
        for name in row.unverified:
            field, _dot, part = name.partition(".")
            assert field in row._fields, (row, name)
            assert not part or getattr(row, field) is None or part in getattr(row, field)._fields, (row, name)


@each_table
def test_every_row_could_have_been_given_by_an_operator(table: Any) -> None:
    """So what is built in has the types and units that the columns promise."""
    empty = table._replace(rows=())
    given = [
        {name: as_given(getattr(row, name)) for name in table.columns if getattr(row, name) not in ("", (), None)}
        for row in table.rows
    ]
    left_out = {"min_capability": (), "driver_branches": (), "later": ()}
    fields = {name: value for name, value in left_out.items() if name in table.row._fields}
    assert rows.merged(empty, given, "x") == tuple(row._replace(**fields) for row in table.rows)


def as_given(value: Any) -> Any:
    if hasattr(value, "_asdict"):
        return {name: as_given(part) for name, part in value._asdict().items() if part is not None}
    return [as_given(item) for item in value] if isinstance(value, tuple) else value


def test_unverified_is_asked_for_by_field_and_part() -> None:
    gpu = gpus.by_name("NVIDIA H100 NVL")
    assert gpu is not None
    assert rows.is_verified(gpu, "memory_mib") and not rows.is_verified(gpu, "bandwidth_gbs")
    assert rows.is_verified(gpu, "nvlink.rate_gbs") and not rows.is_verified(gpu, "nvlink.links")
    rest = gpus.by_name("NVIDIA H200 NVL")
    assert rest is not None and not rows.is_verified(rest, "nvlink.links")


def test_links_out_of_use_by_design() -> None:
    wanted = {
        "NVIDIA A800-SXM4-80GB": (8, 4), "NVIDIA H800": (8, 10), "NVIDIA H100 NVL": (12, 6), "NVIDIA H100 PCIe": (12, 6),
        "NVIDIA H100 80GB HBM3": (18, 0), "Tesla T4": (None, 0),
    }  # fmt: skip
    for name, (links, inactive) in wanted.items():
        gpu = gpus.by_name(name)
        assert gpu is not None
        assert (gpu.nvlink.links if gpu.nvlink else None, gpus.inactive_links(gpu)) == (links, inactive)


@pytest.mark.parametrize(
    ("name", "memory_mib", "fits"),
    [
        ("NVIDIA A100-SXM4-80GB", 81920, True),
        ("NVIDIA A100-SXM4-80GB", 81251, True),
        # 76 GB: a story of a refurbished card.
        ("NVIDIA A100-SXM4-80GB", 77800, False),
        ("NVIDIA A100-SXM4-80GB", 40960, False),
        # With and without inline ECC.
        ("NVIDIA A40", 46068, True),
        ("NVIDIA A40", 49140, True),
        ("NVIDIA A40", 43000, False),
    ],
)
def test_memory_of_a_model(name: str, memory_mib: int, fits: bool) -> None:
    gpu = gpus.by_name(name)
    assert gpu is not None and gpus.memory_fits(gpu, memory_mib) == fits


def test_widths_by_design() -> None:
    wide, narrow = gpus.by_name("NVIDIA L40S"), gpus.by_name("Tesla T4")
    assert wide is not None and narrow is not None
    assert (gpus.narrowest_width(wide), gpus.narrowest_width(narrow)) == (16, 8)


def test_vbios_of_another_chip_has_no_family_here() -> None:
    assert gpus.vbios_family("92.00.36.00.02") is not None
    assert gpus.vbios_family("95.00") is None and gpus.vbios_family(None) is None


@pytest.mark.parametrize(
    ("code", "text", "level"),
    [
        (79, "", "fail"),
        (13, "", "info"),
        (149, "NETIR_LINK_EVT Nonfatal XC0 i0 Link 08", "warn"),
        (149, "NETIR_LINK_EVT Fatal XC0 i0 Link 08", "fail"),
        (154, "", "warn"),
        (154, "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)", "info"),
        (154, "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)", "fail"),
        (154, "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)", "fail"),
        (154, "GPU recovery action changed from 0x0 (None) to 0x3 (Drain P2P)", "warn"),
        (154, "GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)", "fail"),
    ],
)
def test_level_of_an_xid(code: int, text: str, level: str) -> None:
    row = xids.xid(code)
    assert row is not None and xids.level_of(row, text) == level


def test_every_xid_says_what_to_do() -> None:
    for row in xids.ROWS:
        assert row.action in xids.ACTIONS, row.code
        assert len(xids.advice(row)) > len("nothing"), row.code
        assert row.level != "fail" or row.action != "none", row.code


def test_speeds_of_memory() -> None:
    row = cpu_memory.by_model("Intel(R) Xeon(R) Platinum 8480+")
    assert row is not None
    assert [cpu_memory.speed_of(row, count) for count in (1, 2, 3)] == [4800, 4400, None]
    # errata B18 and B19
    assert cpu_memory.bandwidth_gbs(12, 4800) == 460.8
    assert cpu_memory.bandwidth_gbs(8, 3200) == 204.8
    assert cpu_memory.bandwidth_gbs(2, 5600) == 89.6


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("535.54.03", (535, 54, 3)), ("9.1.0.70-1", (9, 1, 0, 70)), (" 12.4", (12, 4)), ("v12", ()), ("", ()),
        (None, ()), (12.4, ()), ("١٢.٤", ()), ("1" * 5000, (111111,)), ("1." * 5000, (1, 1, 1, 1, 1)),
    ],
    ids=repr,
)  # fmt: skip
def test_versions(text: Any, version: tuple[int, ...]) -> None:
    assert rows.version_of(text) == version


def test_versions_that_are_one() -> None:
    assert rows.same((12, 2), (12, 2, 0)) and not rows.same((12, 2), (12, 2, 1))
    assert rows.minor_of("12.10.3") == "12.10" and rows.minor_of("12") == ""


# Look-ups


@pytest.mark.parametrize(
    ("name", "case"),
    [pytest.param(name, case, id=f"{name} {case['args']}") for name in LOOKUPS for case in LOOKUPS[name]],
)
def test_a_lookup(name: str, case: dict[str, Any]) -> None:
    module, function = name.split(".")
    found = getattr(MODULES[module], function)(*case["args"])
    if "is" in case:
        assert plain(found) == case["is"]
        return
    [(field, wanted)] = [(key, value) for key, value in case.items() if key != "args"]
    assert (getattr(found, field) if found is not None else None) == wanted


words = st.one_of(
    st.none(), st.text(max_size=30), st.from_regex(r"\d{1,4}(\.\d{1,4}){0,3}[-+a-z0-9]{0,6}", fullmatch=True)
)


@settings(max_examples=60, deadline=None)
@fed(one=words, other=words)
def test_lookups_take_any_text(one: str | None, other: str | None) -> None:
    for look in (
        gpus.by_name, gpus.all_by_pci_id, gpus.by_pci_id, gpus.vbios_family, gpus.normal_id, cuda.floor_of, cuda.toolkit,
        cuda.toolkit_driver, cuda.nearest_toolkit, driver_branches.of, driver_branches.architecture, cudnn.rows_of,
        cudnn.line_of, nccl.nccl, frameworks.torch, frameworks.torch_cuda, frameworks.tensorflow, nvswitch.of_gpu,
        nvswitch.by_pci_id, cpu_memory.by_model,
    ):  # fmt: skip
        look(one)  # type: ignore[operator]
    for both in (gpus.by_pci_id, cudnn.supports, cudnn.floor_of, cudnn.built_for, frameworks.torch_build):
        both(one, other)  # type: ignore[operator]
    xids.level_of(xids.ROWS[0], one or "")


# Rows of operators


@pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in OPERATOR_ROWS])
def test_rows_of_operators(case: dict[str, Any]) -> None:
    refused = case.get("refused")
    if refused:
        with pytest.raises(BadWant) as caught:
            catalogue.catalogue(case["given"])
        assert caught.value.variable == refused["variable"]
        assert str(refused["allowed"]) in caught.value.allowed
        return
    found = catalogue.catalogue(case["given"])
    if "row" not in case:
        assert found == catalogue.Catalogue()
        return
    [(key, wanted)] = case["row"].items()
    [table] = case["given"]
    [row] = [row for row in getattr(found, table) if getattr(row, key) == wanted]
    assert {name: plain(getattr(row, name)) for name in case["fields"]} == case["fields"]
    assert isinstance(row, catalogue.TABLES[table].row)
    others = set(catalogue.TABLES) - {table}
    assert all(getattr(found, name) is getattr(catalogue.Catalogue(), name) for name in others)


def test_nothing_given_is_the_built_in_catalogue() -> None:
    assert catalogue.catalogue() == catalogue.catalogue({}) == catalogue.Catalogue()
    assert set(catalogue.Catalogue._fields) == set(catalogue.TABLES)
    assert catalogue.Catalogue()._asdict() == {name: table.rows for name, table in catalogue.TABLES.items()}


def test_lookups_see_the_rows_of_operators() -> None:
    new = catalogue.catalogue({"cuda_families": [{"family": "14", "floor": "640.10", "branch": 640}]})
    assert cuda.floor_of("14.1", new.cuda_families) == "640.10"
    assert cuda.floor_of("14.1") is None


def test_a_message_names_the_variable_of_the_role() -> None:
    with pytest.raises(BadWant, match=r"platform_tables\.gpus\[0\]\.memory_mib: 24 is not possible: allowed is .*MiB"):
        catalogue.catalogue({"gpus": [{"name": "NVIDIA A10", "memory_mib": 24}]}, "platform_tables")


junk = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)),
    max_leaves=8,
)
fields = st.sampled_from(sorted({name for table in catalogue.TABLES.values() for name in table.columns}))


@settings(max_examples=150, deadline=None)
@fed(
    table=st.sampled_from(list(catalogue.TABLES)), given=st.lists(st.dictionaries(fields, junk, max_size=6), max_size=3)
)
def test_junk_is_refused_and_nothing_else(table: str, given: Any) -> None:
    try:
        catalogue.catalogue({table: given})
    except BadWant as refused:
        assert refused.variable.startswith("tables") and refused.allowed


def test_no_number_is_beyond_its_range() -> None:
    for value in (math.nan, math.inf, -math.inf, 10**400):
        with pytest.raises(BadWant):
            catalogue.catalogue({"gpus": [{"name": "NVIDIA A10", "bandwidth_gbs": value}]})
