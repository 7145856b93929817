# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One host against its order: tests/unit/cases/order/compare.yml, and what holds for any host."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.gpufleet.host.plugins.plugin_utils import fleet_report as fleet
from ansible_collections.gpufleet.host.plugins.plugin_utils.order import (
    Machine,
    Order,
    OrderedHost,
    ordered_hosts,
    read_order,
)
from ansible_collections.gpufleet.host.plugins.plugin_utils.order_compare import compare_host, notes_of
from ansible_collections.gpufleet.host.plugins.plugin_utils.order_lines import VERDICTS, Line
from tests import order_sample as sample

CASES = yaml.safe_load((Path(__file__).parents[2] / "cases/order/compare.yml").read_text(encoding="utf-8"))
EXAMPLE = sample.example()
HOST = "gpu-a01.example.com"


def ordered(case: dict[str, Any]) -> OrderedHost:
    """The host of the example with the parts that a case orders otherwise; null orders nothing of a part."""
    wanted = ordered_hosts(EXAMPLE)[HOST]
    mine = {key: value for key, value in case.get("order", {}).items() if value is not None}
    host = {key: case[key] for key in ("serial", "serials") if key in case}
    order = read_order(yaml.safe_dump({"order": 1, "hosts": {HOST: {**mine, **host}}}), "case.yml")
    own = ordered_hosts(order)[HOST]
    parts = {key: getattr(own.machine, key) for key in case.get("order", {})}
    return replace(own, machine=replace(wanted.machine, **parts))


def findings(case: dict[str, Any]) -> list[dict[str, Any]]:
    area = {"state": "blocked", "findings": case.get("findings", [])}
    document = fleet.normalise({"format": 1, "areas": {"platform": area}})
    assert document is not None
    found: list[dict[str, Any]] = document["areas"]["platform"]["findings"]
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_delivery_is_judged_line_by_line(case: dict[str, Any]) -> None:
    facts = sample.changed(sample.hardware(), case.get("change", {}))
    lines = compare_host(ordered(case), facts, findings(case))
    found = {line.item: line for line in lines if line.verdict != "ok"}
    assert {item: line.verdict for item, line in found.items()} == {
        item: about["verdict"] for item, about in case["lines"].items()
    }
    for item, about in case["lines"].items():
        shown = {key: getattr(found[item], key) for key in about}
        assert shown == about
    said = {line.item: line.words for line in lines if line.verdict == "ok" and line.words}
    assert said == case.get("also", {})
    assert all(line.ordered and line.delivered for line in lines)
    assert all(line.words for line in lines if line.verdict != "ok")


def test_names_of_cases_are_their_own() -> None:
    names = [case["name"] for case in CASES]
    assert len(names) == len(set(names))


def test_findings_that_are_no_lines_are_notes() -> None:
    [case] = [case for case in CASES if case["name"] == "a finding about what was ordered"]
    assert [row["id"] for row in notes_of(findings(case))] == ["platform.link-speed", "platform.secure-boot"]


def test_evidence_says_which_source_said_so() -> None:
    lines = {line.item: line for line in compare_host(ordered({}), sample.hardware())}
    assert lines["GPUs: model"].evidence == ("PCI id 10de:2330", "nvidia-smi: NVIDIA H100 80GB HBM3")
    assert all(line.evidence for line in lines.values())


# What holds for any host

RICH = """
order: 1
hosts:
  h:
    serial: A1
    serials: {gpus: ["1"], nvme: ["2"], dimms: ["3"]}
    system: {manufacturer: Supermicro, product: "*"}
    cpus: [{count: 2, model: Xeon Platinum 8480+, cores: 56}]
    dimms: [{count: 32, size: 64 GB, type: DDR5, speed_mts: 4800, runs_at_mts: 4400, manufacturer: Samsung, part: "M321*"}]
    gpus:
      - {count: 8, model: H100 SXM 80 GB, memory: 80 GB, nvlink_links: 18, nvlink_gen: 4, nvlink_bridged_pairs: 28,
         pcie_gen: 5, pcie_width: 16, vbios_min: 96.00.00.00.00}
    nvswitches: 4
    nvme:
      - {count: 2, model: SAMSUNG MZ1L2*, size: 960 GB, firmware_min: GDC5602Q}
      - {count: 8, model: SAMSUNG MZQL2*, size: 3.84 TB, firmware_min: GDC5602Q}
    nics:
      - {count: 8, model: ConnectX-7, ports: 1, rate: 400 Gb/s, link_layer: InfiniBand, firmware_min: 28.39.1002}
      - {count: 1, model: ConnectX-6 Dx}
      - {count: 1, pci_id: "8086:1563"}
    psus: [{count: 6, capacity_w: 3000}]
    bios: {vendor: American*, version_min: "2.1", date_min: 2023-10-01}
    bmc: {firmware_min: "1"}
"""
WANTED = ordered_hosts(read_order(RICH, "rich.yml"))["h"]
# What is asked of a list, and what of each of its rows.
ASKED = {
    "gpus": ("pci_id", "memory_mib", "nvlink_active", "max_gen", "width", "vbios"),
    "cpus": ("model", "cores"),
    "dimms": ("size_mib", "type", "rated_mts", "configured_mts", "manufacturer", "part"),
    "nvme": ("model", "size_bytes", "firmware"),
    "nics": ("pci_id", "ports", "rate_gbps", "link_layer", "firmware"),
    "psus": ("present", "ok", "capacity_w"),
}  # fmt: skip
FIELDS = [(key, field) for key, fields in ASKED.items() for field in fields]


def graver(lines: list[Line], than: list[Line]) -> bool:
    """Whether some line became worse."""
    before = {line.item: VERDICTS.index(line.verdict) for line in than}
    return any(VERDICTS.index(line.verdict) > before.get(line.item, 0) for line in lines)


@pytest.mark.parametrize(("key", "field"), FIELDS)
@pytest.mark.parametrize("unknown", [None, "", {"unknown": "hung"}, [], "[N/A]"])
def test_unknown_is_never_ok(key: str, field: str, unknown: Any) -> None:
    good = compare_host(WANTED, sample.hardware())
    facts = sample.changed(sample.hardware(), {"%s[0].%s" % (key, field): unknown})
    assert graver(compare_host(WANTED, facts), good)


@pytest.mark.parametrize("key", sample.hardware())
def test_a_part_that_was_not_seen_is_never_ok(key: str) -> None:
    good = compare_host(WANTED, sample.hardware())
    for facts in (dict(sample.hardware(), **{key: None}), {k: v for k, v in sample.hardware().items() if k != key}):
        lines = compare_host(WANTED, facts)
        assert graver(lines, good)
        assert {line.verdict for line in lines} <= {"ok", "unknown", "different"}


def test_of_a_host_that_was_not_seen_nothing_is_ok() -> None:
    assert {line.verdict for line in compare_host(WANTED, {})} == {"unknown"}


JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=12)
    | st.sampled_from(["10de:2330", "DDR5"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
PLACES = [*sample.hardware(), *("%s[0].%s" % (key, field) for key, field in FIELDS), "gpus[0].name", "gpus[0].address",
          "nvlink.pairs", "nvlink.pairs[0].a", "nics[0].address", "system.serial", "gpus[0].subsystem_id"]  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from(PLACES), JUNK, max_size=4))
def test_whatever_a_host_says_lines_come_out(changes: dict[str, Any]) -> None:
    facts = sample.hardware()
    for path, value in changes.items():
        try:
            facts = sample.changed(facts, {path: value})
        except (KeyError, IndexError, TypeError):
            continue
    kept = copy.deepcopy(facts)
    lines = compare_host(WANTED, facts)
    assert lines == compare_host(WANTED, facts)
    assert str(facts) == str(kept)
    assert all(line.verdict in VERDICTS for line in lines)


@settings(max_examples=50, deadline=None)
@given(st.dictionaries(st.sampled_from(list(sample.hardware())), JUNK))
def test_junk_is_no_delivery(facts: dict[str, Any]) -> None:
    assert any(line.verdict != "ok" for line in compare_host(WANTED, facts))


def test_an_empty_order_of_a_host_says_nothing() -> None:
    assert compare_host(OrderedHost("h", "", Machine()), sample.hardware()) == []
    assert Order("1").classes is None
