# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reading a purchase order: what is refused with which message, and that the JSON schema says the same."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.gpufleet.host.plugins.plugin_utils.order import (
    BadOrder,
    Order,
    expand,
    ordered_hosts,
    read_order,
    schema,
)
from tests import order_sample as sample

CASES = yaml.safe_load((Path(__file__).parents[2] / "cases/order/bad.yml").read_text(encoding="utf-8"))
SCHEMA = sample.ROOT / "docs/order.schema.json"


class Plain(yaml.SafeLoader):
    """What an editor loads before it looks at the schema: YAML 1.2 has no dates."""


Plain.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in rules if not tag.endswith(":timestamp")]
    for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def by_schema(text: str) -> bool:
    """Whether the JSON schema accepts an order."""
    try:
        data = yaml.load(text, Loader=Plain)
    except yaml.YAMLError:
        return False
    return bool(jsonschema.Draft202012Validator(schema()).is_valid(data))


def refusal(text: str) -> str:
    with pytest.raises(BadOrder) as refused:
        read_order(text, "po.yml")
    return str(refused.value)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_bad_order_gets_one_clear_message(case: dict[str, Any]) -> None:
    assert refusal(case["order"]) == case["message"] + " No host was touched."


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_the_schema_refuses_what_reading_refuses(case: dict[str, Any]) -> None:
    """Where it can: it does not see keys that stand there twice, nor what has to do with other parts."""
    assert by_schema(case["order"]) == (case.get("schema") == "cannot tell")


def test_the_schema_in_docs_is_the_one_of_the_code() -> None:
    assert json.loads(SCHEMA.read_text(encoding="utf-8")) == schema(), "run: python -m tools.order_schema"
    jsonschema.Draft202012Validator.check_schema(schema())


def test_the_example_is_an_order() -> None:
    order = sample.example()
    hosts = ordered_hosts(order)
    assert len(hosts) == 8 and order.number == "PO-2026-0117"
    assert by_schema(sample.EXAMPLE.read_text(encoding="utf-8"))
    [exception] = [host for host in hosts.values() if host.machine != order.classes["hgx_h100"]]  # type: ignore[index]
    assert (
        exception.name == "gpu-a08.example.com" and exception.machine.gpus == hosts["gpu-a01.example.com"].machine.gpus
    )


GOOD = [
    ("order: 4711\nhosts: {gpu01: {}}", "a number may be digits"),
    ("order: PO-1\nclasses: {a: {hosts: [gpu01, 7]}}", "a host may be digits"),
    ("order: PO-1\nhosts: {a: {gpus: []}}", "none"),
    ("order: PO-1\nhosts: {a: {gpus: [{model: X, count: 1, memory: 80GiB}]}}", "no space before a unit"),
    ("order: PO-1\nhosts: {a: {gpus: [{model: X, count: 1, memory_gib: 79.6}]}}", "a part of a unit"),
    ("order: PO-1\nhosts: {a: {bios: {version_min: 2.1}, bmc: {firmware_min: 3}}}", "versions that look like numbers"),
    (
        "order: PO-1\ndate: 2026-01-31\nhosts: {a: {serials: {gpus: [0324018045678, 1.10]}}}",
        "serials that look like numbers",
    ),
    ("order: PO-1\nclasses: {a: {gpus: &g [{model: X, count: 1}]}}\nhosts: {b: {gpus: *g}}", "an alias"),
    ('{"order": "PO-1", "hosts": {"a": {"psus": [{"count": 2, "capacity": "3 kW"}]}}}', "JSON"),
    ("order: PO-1\nhosts: {a: {nics: [{pci_id: 8086:1563, count: 1, rate: 10 Gb/s}]}}", "a PCI id of digits"),
]


@pytest.mark.parametrize(("text", "why"), GOOD)
def test_a_good_order_is_read_and_fits_the_schema(text: str, why: str) -> None:
    assert isinstance(read_order(text, "po.yml"), Order), why
    assert by_schema(text), why


def test_texts_stay_as_they_are_written() -> None:
    order = read_order("order: 0815\ndate: 2026-01-31\nhosts: {a: {serial: 0017, bios: {version_min: 2.10}}}", "po.yml")
    host = ordered_hosts(order)["a"]
    assert (order.number, order.date, host.serial) == ("0815", "2026-01-31", "0017")
    assert host.machine.bios and host.machine.bios.version_min == "2.10"


@pytest.mark.parametrize(
    ("given_", "mib"),
    [("memory: 80 GiB", 81920), ("memory: 80 GB", 81920), ("memory_gib: 80", 81920), ("memory_mib: 81559", 81559),
     ("memory: 1.5 TiB", 1572864)],
)  # fmt: skip
def test_the_unit_stands_in_the_key_or_with_the_value(given_: str, mib: float) -> None:
    order = read_order("order: 1\nhosts: {a: {gpus: [{model: X, count: 1, %s}]}}" % given_, "po.yml")
    [gpus] = ordered_hosts(order)["a"].machine.gpus or ()
    assert gpus.memory_mib == mib


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("gpu", ["gpu"]),
        ("gpu[1:3]", ["gpu1", "gpu2", "gpu3"]),
        ("gpu[08:11].x", ["gpu08.x", "gpu09.x", "gpu10.x", "gpu11.x"]),
        ("r[1:2]-[1:2]", ["r1-1", "r1-2", "r2-1", "r2-2"]),
        ("gpu[0:1]", ["gpu0", "gpu1"]),
        ("gpu[9:10]", ["gpu9", "gpu10"]),
    ],
)
def test_ranges_are_those_of_inventories(text: str, names: list[str]) -> None:
    assert list(expand(text)) == names


def test_a_host_replaces_parts_of_its_class_and_keeps_the_others() -> None:
    order = read_order(
        "order: 1\nclasses: {c: {hosts: [a, b], gpus: [{model: X, count: 8}], psus: [{count: 4}]}}\n"
        "hosts: {B: {class: c, psus: [{count: 6}]}}",
        "po.yml",
    )
    hosts = ordered_hosts(order)
    assert list(hosts) == ["a", "B"]
    counts = {
        name: [(p.count) for p in (*(h.machine.gpus or ()), *(h.machine.psus or ()))] for name, h in hosts.items()
    }
    assert counts == {"a": [8, 4], "B": [8, 6]}


def test_nesting_without_end_is_refused() -> None:
    assert refusal("order: " + "[" * 5000 + "]" * 5000).startswith("po.yml")
    assert "at most" in refusal("order: 1\n" + "# x" * 2_000_000)


def test_hosts_are_bounded_over_all_ranges_together() -> None:
    ranges = ["'gpu%d-[0001:5000]'" % number for number in range(400)]
    started = time.process_time()
    said = refusal("order: PO-7\nclasses: {a: {hosts: [%s]}, b: {hosts: [%s]}}" % (ranges[0], ", ".join(ranges[1:])))
    assert "classes.b.hosts[1]" in said and "at most 10000 hosts in an order" in said
    assert time.process_time() - started < 5


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="order:hst{}[]&*!|>-\n \t'\"01agpun", max_size=80))
def test_any_text_is_an_order_or_is_refused(text: str) -> None:
    try:
        read_order(text, "po.yml")
    except BadOrder as refused:
        assert str(refused).endswith("No host was touched.") and "\n" not in str(refused)


# A value in the place of each value of the example: read as an order is read, or refused as the schema refuses.
ODD = st.sampled_from(["8", "-1", "0", "1.5", "true", "null", "[]", "{}", "x", "''", "80 GiB", "10de:2330", "2026-01-31",
                       "3.84 TB", "[a]", "{count: 1}", "1e3", "0x10", "96.00.00.00.00", "DDR5"])  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_the_schema_is_never_laxer_nor_stricter(data: st.DataObject) -> None:
    lines = RICH.splitlines()
    at = data.draw(st.sampled_from([n for n, line in enumerate(lines) if ": " in line]))
    lines[at] = lines[at].rpartition(": ")[0] + ": " + data.draw(ODD)
    text = "\n".join(lines)
    try:
        read_order(text, "po.yml")
        is_read = True
    except BadOrder:
        is_read = False
    # Forms of numbers that YAML turns into others before a schema sees them.
    if "1e3" not in text and "0x10" not in text:
        assert by_schema(text) == is_read, text


RICH = """\
order: 1
vendor: v
date: 2026-01-01
hosts:
  h:
    system:
      product: x
    cpus:
    - count: 2
      model: x
      cores: 56
    dimms:
    - count: 32
      size: 64 GB
      type: DDR5
      speed_mts: 4800
    gpus:
    - count: 8
      model: x
      pci_id: 10de:ffff
      memory_gib: 80
      nvlink_links: 18
      vbios_min: 96.00.00.00.00
    nvswitches: 4
    nvme:
    - count: 8
      size_tb: 3.84
    nics:
    - count: 8
      model: x
      rate: 400 Gb/s
      link_layer: Ethernet
    psus:
    - count: 6
      capacity_w: 3000
    bios:
      version_min: 2
    serial: 1
    serials:
      gpus: [1]
"""
