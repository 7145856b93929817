# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where everything in a host is, who has which CPUs, and that any facts at all give a drawing."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.gpufleet.host.plugins.plugin_utils import (
    fleet_drawing,
    fleet_fabric,
    fleet_hardware,
    fleet_page,
)
from ansible_collections.gpufleet.host.plugins.plugin_utils import fleet_links as links
from ansible_collections.gpufleet.host.plugins.plugin_utils import fleet_topology as topology
from tests import fleet_sample as sample
from tests.page import hosts


def sockets(facts: dict[str, Any], areas: dict[str, Any] | None = None) -> list[topology.Socket]:
    judged = links.judgements(areas or {})
    return topology.sockets(facts, areas or {}, fleet_hardware.devices(facts, judged))


def nodes(facts: dict[str, Any], areas: dict[str, Any] | None = None) -> list[topology.Node]:
    return [node for socket in sockets(facts, areas) for node in socket.nodes]


def numa_area(**changes: Any) -> dict[str, Any]:
    return {"numa_slices": {"before": {}, "after": {**sample.numa(), **changes}}}


def addresses(node: topology.Node) -> list[str]:
    return [device.address for branch in node.branches for device in branch.devices]


def ranges(node: topology.Node) -> list[tuple[str, str, str]]:
    return [(cluster.name, cluster.kind, cluster.ranges) for cluster in node.clusters]


def test_each_node_has_what_hangs_on_it() -> None:
    first, second, loose = nodes(sample.host_facts("gpu01"), numa_area())
    assert (first.title, first.cpu_words, first.memory) == ("NUMA node 0", "16 CPUs", "252 GiB")
    assert ranges(first) == [("system", "system", "0-1"), ("gpu0", "slice", "2-7"), ("gpu1", "slice", "8-15")]
    assert addresses(first) == ["0000:21:00.0", "0000:22:00.0", "0000:23:00.0", "0000:41:00.0"]
    assert "0000:a1:00.0" in addresses(second)
    assert loose.disks == ("sda 480 GB → / /boot",)


def test_sockets_have_their_nodes_and_their_processor() -> None:
    found = sockets(sample.host_facts("gpu01"))
    assert [socket.title for socket in found] == ["Socket 0", "Socket 1", "Place not known"]
    first = sockets(hosts.hgx_facts())[0]
    assert (first.title, first.about) == ("Socket 0", "Intel(R) Xeon(R) Platinum 8480+ · 56 cores")


@pytest.mark.parametrize(
    "names, titles",
    [
        ([0, 1], ["Socket 0", "Socket 1"]),
        (["CPU1", "CPU2"], ["Socket 0", "Socket 1"]),
        (["P0 CPU", "P1 CPU"], ["Socket 0", "Socket 1"]),
        (["Proc 1"], ["Socket 0"]),
        (["SOCKET", None], []),
    ],
)
def test_firmware_may_count_sockets_from_one(names: list[Any], titles: list[str]) -> None:
    rows = [{"socket": name, "model": "Xeon %s" % place, "cores": 8} for place, name in enumerate(names)]
    found = topology._processors({"hardware": hosts.hardware(cpus=rows)})
    assert found == {title: "Xeon %d · 8 cores" % place for place, title in enumerate(titles)}


def test_devices_are_grouped_by_their_switch() -> None:
    first, second = nodes(hosts.hgx_facts())
    assert [branch.switch for branch in first.branches] == ["0000:%s:00.0" % bus for bus in ("16", "38", "49", "5a")]
    branch = first.branches[0]
    assert (branch.root, [device.kind for device in branch.devices]) == ("0000:15:01.0", ["gpu", "nic", "nvme"])
    assert second.branches[-1].switch == ""
    assert [device.port for device in second.branches[-1].devices] == ["0000:9f:01.0"] * 2 + ["0000:f0:05.0"]


def test_a_switch_below_a_switch_is_the_nearest_one() -> None:
    facts = sample.host_facts("gpu01")
    steps = ["0000:20:01.0", "0000:21:00.0", "0000:22:00.0", "0000:23:00.0", "0000:24:02.0"]
    facts["pci"][0]["path"] = steps
    (branch, rest) = nodes(facts)[0].branches
    assert (branch.switch, branch.root, len(rest.devices)) == ("0000:23:00.0", "0000:20:01.0", 3)


def test_a_device_without_a_node_is_not_put_on_node_0() -> None:
    facts = sample.host_facts("gpu01")
    facts["pci"][0]["numa_node"] = None
    first, _second, loose = nodes(facts)
    assert "0000:21:00.0" not in addresses(first) and "0000:21:00.0" in addresses(loose)


def test_the_node_of_a_gpu_may_come_from_nvidia_smi() -> None:
    facts = hosts.eight_mesh()["host_facts"]
    assert [len(addresses(node)) for node in nodes(facts)] == [4, 4]


def test_a_capture_without_sysfs_is_a_list_of_gpus() -> None:
    document = hosts.lone_smi()
    (socket,) = sockets(document["host_facts"], document["areas"])
    assert (socket.title, socket.nodes[0].is_place, len(addresses(socket.nodes[0]))) == ("Place not known", False, 8)
    view = fleet_page.host_view(document, 0)
    assert "was not captured" in view["nowhere"]
    assert fleet_page.host_view(hosts.hgx(), 0)["nowhere"] == ""


@pytest.mark.parametrize(
    "cpus, memory, words", [(None, None, ("CPUs unknown", "memory unknown")), ("", 0, ("no CPUs", "no memory"))]
)
def test_what_is_not_known_of_a_node_is_not_nothing(cpus: Any, memory: Any, words: tuple[str, str]) -> None:
    row = {"id": 0, "socket": None, "cpus": cpus, "memory_mib": memory, "distances": None}
    (node,) = nodes({"numa_nodes": [row]})
    assert (node.cpu_words, node.memory) == words
    assert (node.share is None) == (memory is None)


def test_small_sockets_stand_side_by_side() -> None:
    assert topology.are_small(sockets(hosts.eight_mesh()["host_facts"]))
    assert not topology.are_small(sockets(hosts.hgx_facts()))


# --- CPUs


def test_cpus_of_a_node_without_gpus_are_not_free() -> None:
    """A node's own slice has what is neither the system's nor a GPU's."""
    area = numa_area(gpus=[row for row in sample.numa()["gpus"] if row["node"] == 0])
    first, second, _loose = nodes(sample.host_facts("gpu01"), area)
    assert ranges(first)[1:] == [("gpu0", "slice", "2-7"), ("gpu1", "slice", "8-15")]
    assert ranges(second) == [("system", "system", "16-17"), ("node1", "slice", "18-31")]


def test_cpus_are_free_only_where_slices_are_known_to_be_off() -> None:
    facts = sample.host_facts("gpu01")
    for area, kinds in (
        (numa_area(housekeeping_cpus="", gpus=[]), [("node0", "slice", "0-15")]),
        ({"numa_slices": {"after": {"state": "absent"}}}, [("CPUs", "free", "0-15")]),
        ({}, [("CPUs", "free", "0-15")]),
        ({"numa_slices": {"after": {"state": "present"}}}, [("whose is unknown", "unknown", "0-15")]),
    ):
        assert ranges(nodes(facts, area)[0]) == kinds


def test_a_gpu_that_has_no_slice_has_no_cpus() -> None:
    area = numa_area(gpus=[{"index": 0, "slice": False, "cpus": "2-7"}])
    assert ranges(nodes(sample.host_facts("gpu01"), area)[0])[1] == ("node0", "slice", "2-15")


@pytest.mark.parametrize(
    "text, cpus",
    [
        ("0-3,8", [0, 1, 2, 3, 8]),
        ("0-6:2,1", [0, 1, 2, 4, 6]),
        ("", []),
        (None, []),
        ("a-b,-1,3", [3]),
        ("9-2", []),
        ("0-4:0", [0, 1, 2, 3, 4]),
    ],
)
def test_cpu_lists(text: str | None, cpus: list[int]) -> None:
    assert topology.cpu_list(text) == cpus


@pytest.mark.parametrize(
    "cpus, text",
    [
        ([0, 1, 2, 8], "0-2,8"),
        (list(range(0, 80, 2)), "0-78:2"),
        ([0, 112], "0,112"),
        ([1, 3, 5], "1,3,5"),
        ([*range(0, 8, 2), 20, 21, 22], "0-6:2,20-22"),
        ([], ""),
    ],
)
def test_ranges(cpus: list[int], text: str) -> None:
    assert topology.as_ranges(cpus) == text


def test_a_list_that_never_ends_does() -> None:
    assert len(topology.cpu_list("0-999999")) == topology.MAX_CPUS


@given(st.sets(st.integers(0, 1000)))
def test_ranges_are_the_reverse(cpus: set[int]) -> None:
    assert topology.cpu_list(topology.as_ranges(sorted(cpus))) == sorted(cpus)


@pytest.mark.parametrize("count, rows", [(1, 1), (32, 1), (33, 2), (1024, 32)])
def test_each_cpu_is_a_square(count: int, rows: int) -> None:
    hollow, filled = str(fleet_drawing.cells(count, "free")), str(fleet_drawing.cells(count, "slice", 7))
    assert hollow.count("h8v8h-8z") == count and 'class="c-slice1"' in filled
    assert hollow.count("M") == filled.count("M") == rows


# --- anything


LEAF = st.none() | st.booleans() | st.integers(-5, 10**12) | st.floats() | st.text(max_size=5) | st.just("0-3")
NAMES = [
    "id",
    "socket",
    "cpus",
    "memory_mib",
    "distances",
    "address",
    "kind",
    "numa_node",
    "link",
    "pci",
    "name",
    "holders",
    "mounts",
    "path",
    "a",
    "b",
    "type",
    "switches",
    "pairs",
    "nvlink_active",
    "nvlink_expected",
    "width",
    "gen",
    "netdevs",
    "rate_gbps",
    "state",
    "ports",
    "pci_id",
    "model",
    "size_bytes",
    "cores",
    "index",
    "slice",
]
WORDS = st.sampled_from(
    ["0000:19:00.0", "00000000:19:00.0", "0000:1a:00.0", "gpu", "nic", "nvme", "NV4", "SYS", "present"]
)
VALUE = LEAF | WORDS | st.lists(LEAF | WORDS, max_size=3)
ROW = st.dictionaries(st.sampled_from(NAMES), VALUE | st.dictionaries(st.sampled_from(NAMES), VALUE, max_size=3))
ROWS = LEAF | st.lists(ROW | LEAF, max_size=4)
PARTS = ("gpus", "nvlink", "cpus", "dimms", "nvme", "nics", "psus", "bios", "bmc", "system")
HARDWARE = ROWS | st.fixed_dictionaries({}, optional=dict.fromkeys(PARTS, ROWS | ROW))


@given(
    st.fixed_dictionaries({}, optional={"hardware": HARDWARE, **dict.fromkeys(("numa_nodes", "pci", "disks"), ROWS)}),
    ROW,
)
def test_any_facts_are_drawn(facts: dict[str, Any], observed: dict[str, Any]) -> None:
    areas = {"numa_slices": {"after": {**observed, "gpus": facts.get("pci"), "housekeeping_cpus": facts.get("disks")}}}
    judged = links.judgements(areas)
    devices = fleet_hardware.devices(facts, judged)
    for node in nodes(facts, areas):
        for cluster in node.clusters:
            assert "<svg" in fleet_drawing.cells(len(cluster.cpus), cluster.kind, cluster.colour)
        assert "<svg" in fleet_drawing.share_bar(node.share)
    fleet_hardware.link_notes(devices, judged)
    found = fleet_fabric.fabric(facts, devices)
    if found:
        fleet_drawing.joined(found)
        assert found.words and isinstance(found.legend, list)


class Nested(HTMLParser):
    """Elements that end where they should, as those of our templates do."""

    def check(self, text: str) -> None:
        self.open: list[str] = []
        self.feed(text)
        assert self.open == [] and text

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


# The first call compiles the templates.
@settings(deadline=None)
@given(
    st.fixed_dictionaries({}, optional={"hardware": HARDWARE, **dict.fromkeys(("numa_nodes", "pci", "disks"), ROWS)})
)
def test_any_facts_give_a_section_of_the_page(facts: dict[str, Any]) -> None:
    document = hosts.document("x", facts)
    Nested().check(str(fleet_page._row(document, 0, {})["details"]))
