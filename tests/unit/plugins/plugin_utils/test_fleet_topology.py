# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Drawings: what is on them, what stands out, and that no word of a host becomes markup."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpufleet.host.plugins.plugin_utils import fleet_topology as topology
from tests import fleet_sample as sample

SVG = "{http://www.w3.org/2000/svg}"


def drawn(facts: dict[str, Any], areas: dict[str, Any] | None = None) -> list[ElementTree.Element]:
    found = topology.sockets(facts, areas or {}, "h0")
    texts = [str(drawing) for _name, drawings in found for drawing in drawings]
    return [ElementTree.fromstring(text.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ')) for text in texts]


def words(drawing: ElementTree.Element) -> str:
    return " | ".join(element.text or "" for element in drawing.iter(SVG + "text"))


def numa_area() -> dict[str, Any]:
    return {"numa_slices": {"before": {}, "after": sample.numa()}}


def test_each_node_is_drawn_with_what_hangs_on_it() -> None:
    first, second, loose = drawn(sample.host_facts("gpu01"), numa_area())
    assert "NUMA node 0 | 16 CPUs | system | 0-1 | gpu0 | 2-7 | gpu1 | 8-15" in words(first)
    assert "0000:21:00.0" in words(first) and "0000:a1:00.0" not in words(first)
    assert "nvme1n1 3.84 TB → md0" in words(second)
    assert "sda 480 GB → / /boot" in words(loose)


def test_sockets_group_their_nodes() -> None:
    names = [name for name, _drawings in topology.sockets(sample.host_facts("gpu01"), {}, "h0")]
    assert names == ["Socket 0", "Socket 1", "Elsewhere"]


def test_a_device_without_a_node_is_not_put_on_node_0() -> None:
    facts = sample.host_facts("gpu01")
    facts["pci"][0]["numa_node"] = None
    first, _second, loose = drawn(facts)
    assert "0000:21:00.0" not in words(first) and "0000:21:00.0" in words(loose)


def test_the_drawing_is_there_in_words_too() -> None:
    description = drawn(sample.host_facts("gpu01"), numa_area())[0].find(SVG + "desc")
    assert description is not None and description.text is not None
    assert "gpu1: CPUs 8-15; 252 GiB; GPU 0000:21:00.0, x16 · 16 GT/s (Gen4)" in description.text


@pytest.mark.parametrize(
    "kind, link, note",
    [
        ("gpu", sample.link(16, 16, 16), None),
        ("gpu", sample.link(8, 16, 16), ("narrow", "runs x8: card x16, slot x16")),
        ("gpu", sample.link(8, 16, 8), ("narrow", "x16 card in a x8 slot")),
        ("gpu", sample.link(8, 8, 16), ("limit", "x8 card in a x16 slot")),
        ("nvme", sample.link(4, 4, 16), None),
        ("nvme", sample.link(2, 4, 4), ("narrow", "runs x2: card x4, slot x4")),
        ("gpu", {"width": 8, "max_width": 16}, ("narrow", "runs x8, the card has x16")),
        ("gpu", sample.link(None, 16, 16), None),
        ("gpu", {}, None),
    ],
)
def test_a_narrow_link_stands_out(kind: str, link: dict[str, Any], note: tuple[str, str] | None) -> None:
    found = topology.link_note(kind, link)
    assert (found and (found.kind, found.text)) == note


def test_a_narrow_link_is_drawn_and_listed() -> None:
    facts = sample.host_facts("gpu01")
    facts["pci"][1]["link"] = sample.link(8, 16, 16)
    assert "runs x8: card x16, slot x16" in words(drawn(facts)[0])
    assert topology.link_notes(facts) == ["GPU 0000:22:00.0: runs x8: card x16, slot x16"]


@pytest.mark.parametrize(
    "link, text",
    [
        (sample.link(), "x16 · 16 GT/s (Gen4)"),
        (sample.link(speed=2.5), "x16 · 2.5 GT/s (Gen1) of 16"),
        (sample.link(None, speed=None), "link unknown"),
        (sample.link(speed=None), "x16 · speed unknown"),
        ({"width": "x16", "speed_gts": True}, "link unknown"),
    ],
)
def test_links_in_words(link: dict[str, Any], text: str) -> None:
    assert topology.link_words(link) == text


@pytest.mark.parametrize(
    "mib, text", [(None, "memory unknown"), (0, "no memory"), (1500, "1500 MiB"), (262144, "256 GiB")]
)
def test_unknown_memory_is_not_none(mib: int | None, text: str) -> None:
    assert topology.memory_words(mib) == text


@pytest.mark.parametrize(
    "text, cpus", [("0-3,8", [0, 1, 2, 3, 8]), ("", []), (None, []), ("a-b,-1,3", [3]), ("9-2", [])]
)
def test_cpu_lists(text: str | None, cpus: list[int]) -> None:
    assert topology.cpu_list(text) == cpus


def test_a_list_that_never_ends_does() -> None:
    assert len(topology.cpu_list("0-999999")) == topology.MAX_CPUS


@given(st.sets(st.integers(0, 1000)))
def test_ranges_are_the_reverse(cpus: set[int]) -> None:
    assert topology.cpu_list(topology.as_ranges(sorted(cpus))) == sorted(cpus)


def test_words_of_a_host_stay_words() -> None:
    document = sample.hostile()
    for drawing in drawn(document["host_facts"], document["areas"]):
        tags = {element.tag.removeprefix(SVG) for element in drawing.iter()}
        assert tags <= {"svg", "title", "desc", "rect", "text", "path", "use"}
        assert not any(name.startswith("on") for element in drawing.iter() for name in element.attrib)
        assert "\u202e" not in ElementTree.tostring(drawing, "unicode")


LEAF = st.none() | st.booleans() | st.integers(-5, 10**12) | st.floats() | st.text(max_size=5) | st.just("0-3")
ROW = st.dictionaries(
    st.sampled_from(
        [
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
        ]
    ),
    LEAF | st.lists(LEAF, max_size=3) | st.dictionaries(st.sampled_from(["width", "max_width", "speed_gts"]), LEAF),
)


@given(
    st.fixed_dictionaries(
        {}, optional={key: LEAF | st.lists(ROW | LEAF, max_size=4) for key in ("numa_nodes", "pci", "disks")}
    )
)
def test_any_facts_are_drawn(facts: dict[str, Any]) -> None:
    for _name, drawings in topology.sockets(facts, {"numa_slices": {"after": facts}}, "h0"):
        assert all(str(drawing).startswith("<svg") for drawing in drawings)
    topology.link_notes(facts)
