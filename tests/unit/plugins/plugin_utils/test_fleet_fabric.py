# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How GPUs reach one another: switches, lines, a matrix, or words when nobody looked."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest

from ansible_collections.gpufleet.host.plugins.plugin_utils import fleet_drawing, fleet_fabric, fleet_hardware
from ansible_collections.gpufleet.host.plugins.plugin_utils import fleet_links as links
from tests import fleet_sample as sample
from tests.page import hosts

SVG = "{http://www.w3.org/2000/svg}"


def fabric(document: Any) -> fleet_fabric.Fabric:
    found = maybe(document)
    assert found is not None
    return found


def maybe(document: Any) -> fleet_fabric.Fabric | None:
    facts = document["host_facts"]
    return fleet_fabric.fabric(facts, fleet_hardware.devices(facts, links.judgements(document["areas"])))


def drawn(found: fleet_fabric.Fabric) -> ElementTree.Element:
    svg = str(fleet_drawing.joined(found)).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ')
    return ElementTree.fromstring(svg)


def words(drawing: ElementTree.Element) -> list[str]:
    return [element.text or "" for element in drawing.iter(SVG + "text")]


@pytest.mark.parametrize(
    "make, kind, has_matrix, sentence",
    [
        (hosts.hgx, "switch", True, "8 GPUs on 4 NVSwitches: NV18 and NV16 between them"),
        (hosts.workstation, "mesh", False, "2 GPUs joined by NVLink, without a switch: NV4 between both"),
        (hosts.four_mesh, "mesh", False, "4 GPUs joined by NVLink, without a switch: NV4 and NV2 between them"),
        (hosts.eight_mesh, "matrix", True, "8 GPUs joined by NVLink, without a switch: NV2, NV1 and SYS between them"),
        (
            hosts.b200_with_a_gpu_off_the_fabric,
            "switch",
            True,
            "8 GPUs on 2 NVSwitches: NV18, NODE and SYS between them",
        ),
        (hosts.lone_smi, "", False, "8 GPUs; what joins them was not seen (nvidia-smi topo -m tells)"),
    ],
)
def test_each_kind_of_host_has_its_drawing(make: Any, kind: str, has_matrix: bool, sentence: str) -> None:
    found = fabric(make())
    assert (found.kind, found.has_matrix, found.words) == (kind, has_matrix, sentence)


def test_there_is_nothing_to_draw_of_one_gpu_or_an_old_report() -> None:
    assert maybe(hosts.no_gpu()) is None
    assert maybe(sample.document("gpu01")) is None


def test_gpus_on_switches_show_their_links() -> None:
    drawing = drawn(fabric(hosts.hgx()))
    assert "4 NVSwitches" in words(drawing) and words(drawing).count("18 of 18") == 7 and "16 of 18" in words(drawing)
    assert "GPU 2: 16 of 18" in drawing.attrib["aria-label"]
    classes = [element.attrib.get("class", "") for element in drawing.iter()]
    assert classes.count("fwire s-compliant") == 7 and classes.count("fwire s-failed") == 1


def test_a_gpu_without_links_has_a_broken_wire() -> None:
    drawing = drawn(fabric(hosts.b200_with_a_gpu_off_the_fabric()))
    assert [e.attrib["class"] for e in drawing.iter(SVG + "path")].count("fwire s-failed w-unknown") == 1
    assert "0 of 18" in words(drawing)


def test_uniform_switches_need_no_matrix() -> None:
    document = hosts.hgx()
    for pair in document["host_facts"]["hardware"]["nvlink"]["pairs"]:
        pair["type"] = "NV18"
    found = fabric(document)
    assert (found.has_matrix, found.words) == (False, "8 GPUs on 4 NVSwitches: NV18 between all")


def test_whether_there_is_a_switch_may_be_unknown() -> None:
    document = hosts.hgx()
    joined = document["host_facts"]["hardware"]["nvlink"]
    joined["switches"] = None
    assert fabric(document).words == "8 GPUs joined by NVLink: NV18 and NV16 between them"
    for pair in joined["pairs"]:
        pair["type"] = "NV18"
    found = fabric(document)
    assert (found.kind, found.words) == ("", "8 GPUs joined by NVLink: NV18 between all")


@pytest.mark.parametrize("make, lines", [(hosts.workstation, 1), (hosts.four_mesh, 6)])
def test_lines_bear_their_number_of_links(make: Any, lines: int) -> None:
    drawing = drawn(fabric(make()))
    assert len(list(drawing.iter(SVG + "path"))) == lines
    assert sum(word.startswith("NV") for word in words(drawing)) == lines


def test_pairs_may_be_told_either_way_round_and_only_of_gpus_that_are_there() -> None:
    document = hosts.workstation()
    document["host_facts"]["hardware"]["nvlink"]["pairs"] = [
        {"a": "00000000:21:00.0", "b": "00000000:01:00.0", "type": "nv4"},
        {"a": "0000:01:00.0", "b": "0000:99:00.0", "type": "NV4"},
        {"a": "0000:01:00.0", "b": "0000:01:00.0", "type": "X"},
        {"a": "0000:01:00.0", "type": "<b>"},
    ]
    assert fabric(document).pairs == (((0, 1), "NV4"),)


def test_a_path_over_pcie_says_what_that_is() -> None:
    document = hosts.workstation()
    document["host_facts"]["hardware"]["nvlink"]["pairs"][0]["type"] = "PHB"
    found = fabric(document)
    assert found.words == "2 GPUs without NVLink between them: PHB between both (the CPU's host bridge)"
    assert found.legend == [("PHB", "the CPU's host bridge")]


def test_a_pair_that_was_not_seen_is_not_taken_for_none() -> None:
    document = hosts.four_mesh()
    document["host_facts"]["hardware"]["nvlink"]["pairs"].pop()
    found = fabric(document)
    assert "unknown" in found.words and ("?", "not seen") in found.legend and "?" in words(drawn(found))


@pytest.mark.parametrize("count", [2, 3, 5, 9, 16, 17, 80])
def test_any_number_of_gpus_is_drawn_or_told(count: int) -> None:
    addresses = ["%04x:00:00.0" % number for number in range(count)]
    gpus = [hosts.gpu(address, "NVIDIA B200", "10de:2901", 183359, nvlink_active=18) for address in addresses]
    for switches in (0, 6):
        joined = {"switches": switches, "pairs": hosts.pairs(addresses, "NV18")}
        found = fabric(hosts.document("x", hosts.facts("x", hardware=hosts.hardware(gpus=gpus, nvlink=joined))))
        is_drawn = switches or count <= fleet_fabric.MOST_LINES
        assert bool(found.kind) == bool(is_drawn and count <= fleet_fabric.MOST_GPUS)
        if found.kind in ("switch", "mesh"):
            boxes = [e for e in drawn(found).iter(SVG + "rect") if "fbox" in e.attrib["class"]]
            assert len(boxes) == count
            assert all(0 <= float(e.attrib["x"]) <= fleet_drawing.WIDTH for e in boxes)
