# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Devices: what kernel, tools and findings say of each, joined, whichever of the three is missing."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gpufleet.host.plugins.plugin_utils import fleet_hardware as hardware
from ansible_collections.gpufleet.host.plugins.plugin_utils import fleet_links as links
from ansible_collections.gpufleet.host.plugins.plugin_utils.fleet_links import Mark
from tests import fleet_sample as sample
from tests.page import hosts


def devices(document: Any) -> dict[str, hardware.Device]:
    found = hardware.devices(document["host_facts"], links.judgements(document["areas"]))
    return {device.address: device for device in found}


def of(facts: dict[str, Any]) -> list[hardware.Device]:
    return hardware.devices(facts, links.Judgements())


def test_a_gpu_has_its_model_memory_links_and_place() -> None:
    found = devices(hosts.hgx())["0000:4c:00.0"]
    assert (found.label, found.model, found.amount) == ("GPU 2", "H100 80GB HBM3", "80 GiB")
    assert (found.node, found.switch, found.path[0]) == (0, "0000:49:00.0", "0000:48:01.0")
    assert (found.link, found.lanes, found.verdict.word) == ("x16 · 32 GT/s (Gen5)", (16, 16), "ok")
    assert found.about == (Mark("failed", "NVLink 16 of 18 · inactive"),)
    assert found.marks == (Mark("drifted", "persistence"),)


def test_a_card_shows_the_worst_that_was_found_about_it_of_any_kind() -> None:
    """NVLinks that are down and memory that waits for a reset are no matter of the PCIe link, and mark the card."""
    found = devices(hosts.hgx())
    words = {device.label: device.worst.word for device in found.values()}
    gpus = ["warning", "warning", "fault", "warning", "warning", "fault", "warning", "fault"]
    assert [words["GPU %d" % number] for number in range(8)] == gpus
    assert words["NIC mlx5_0"] == words["NVMe nvme0n1"] == "ok" and words["NIC mlx5_6"] == "warning"
    assert found["0000:4c:00.0"].verdict.word == found["0000:db:00.0"].verdict.word == "ok"


@pytest.mark.parametrize(
    "subject, marked",
    [
        ("00000000:A1:00.0", "0000:a1:00.0"),
        ("0000:21:00.0, 0000:a1:00.0", "0000:a1:00.0"),
        ("GPU 2", "0000:a1:00.0"),
        ("nvme1", "0000:c1:00.0"),
        ("nvme1n1 scheduler", "0000:c1:00.0"),
        ("ens7f0", "0000:a3:00.0"),
        ("mlx5_0", "0000:a3:00.0"),
    ],
)
def test_a_finding_marks_the_card_that_it_names_and_no_other(subject: str, marked: str) -> None:
    facts = sample.host_facts("gpu01")
    facts["hardware"] = hosts.hardware(nics=[hosts.nic("0000:a3:00.0", "mlx5_0", "ens7f0")])
    fault = hosts.finding("aer", "fail", subject, "none", "many", "why", "fix")
    found = devices(hosts.document("gpu01", facts, (fault,)))
    states = {address: device.worst.state for address, device in found.items()}
    named = {marked, *(["0000:21:00.0"] if ", " in subject else [])}
    assert {address for address, state in states.items() if state == "failed"} == named
    assert {state for address, state in states.items() if address not in named} == {"compliant"}


def test_a_gpu_without_nvlink_is_not_unknown_for_that() -> None:
    facts = sample.host_facts("gpu01")
    assert {device.worst.word for device in devices(hosts.document("gpu01", facts)).values()} == {"ok"}


def test_a_nic_has_its_rdma_device_rate_and_state() -> None:
    found = devices(hosts.hgx())
    up, down, port = (found["0000:%s.%d" % one] for one in (("18:00", 0), ("ca:00", 0), ("a0:00", 1)))
    assert (up.label, up.model, up.amount) == ("NIC mlx5_0", "ConnectX-7", "400 Gb/s")
    assert up.about == (Mark("up", "ibs1 · InfiniBand · ACTIVE"),)
    assert down.about == (Mark("down", "ibs7 · InfiniBand · DOWN"),)
    assert down.marks == (Mark("drifted", "RDMA port down"),)
    assert (port.model, port.port, port.switch) == ("ConnectX-6 Dx", "0000:9f:01.0", "")


def test_a_drive_is_the_disk_that_is_on_it() -> None:
    found = devices(hosts.hgx())["0000:9d:00.0"]
    assert (found.label, found.amount, found.disks) == ("NVMe nvme4n1", "3.84 TB", ("→ md0",))
    assert (found.verdict.state, found.verdict.notes[0].words) == ("drifted", "link speed: 16 GT/s, expected 32 GT/s")


def test_two_namespaces_of_a_drive_are_told_apart() -> None:
    facts = sample.host_facts("gpu01")
    facts["disks"].append(sample.disk("nvme0n2", "0000:41:00.0", 0))
    found = {device.address: device for device in of(facts)}["0000:41:00.0"]
    assert (found.label, found.disks) == ("NVMe", ("nvme0n1 3.84 TB → md0", "nvme0n2 3.84 TB → md0"))


def test_gpus_are_known_from_nvidia_smi_alone() -> None:
    found = list(devices(hosts.lone_smi()).values())
    assert [device.label for device in found] == ["GPU %d" % number for number in range(8)]
    assert {device.node for device in found} == {None}
    assert [device.verdict.word for device in found] == ["ok"] * 3 + ["unknown"] + ["ok"] * 4
    assert found[6].marks == (Mark("failed", "throttle"),)
    assert found[0].about == (Mark("unknown", "NVLink unknown"),)


def test_an_old_report_has_what_the_kernel_says() -> None:
    found = {device.address: device for device in of(sample.host_facts("gpu01"))}
    assert (found["0000:21:00.0"].label, found["0000:21:00.0"].model) == ("GPU 0", "NVIDIA 20b5")
    assert found["0000:23:00.0"].model == "ConnectX-6"
    assert found["0000:21:00.0"].verdict.word == "not judged" and found["0000:23:00.0"].about == ()


def test_a_gpu_that_says_to_be_another_one_is_shown_as_both() -> None:
    gpu = hosts.gpu("0000:19:00.0", "NVIDIA H100 80GB HBM3", "10de:20f3", 81559, model="NVIDIA A800-SXM4-80GB")
    found = of(hosts.facts("x", hardware=hosts.hardware(gpus=[gpu])))[0]
    assert found.model == "H100 80GB HBM3" and Mark("info", "its PCI id says A800-SXM4-80GB") in found.about


def test_gpus_of_guests_are_not_counted() -> None:
    facts = sample.host_facts("gpu01")
    facts["pci"][1]["driver"] = "vfio-pci"
    assert [device.label for device in of(facts)][:4] == ["GPU 0", "GPU", "GPU 1", "GPU 2"]


def test_addresses_of_nvidia_smi_meet_those_of_the_kernel() -> None:
    facts = sample.host_facts("gpu01")
    facts["hardware"] = hosts.hardware(
        gpus=[hosts.gpu("00000000:A1:00.0", "NVIDIA A100 80GB PCIe", "10de:20b5", 81920)]
    )
    found = [device for device in of(facts) if device.model == "A100 80GB PCIe"]
    assert [(device.address, device.node) for device in found] == [("0000:a1:00.0", 1)]


def test_drives_without_an_address_are_disks_without_a_place() -> None:
    drive = {"name": "nvme3n1", "model": "X", "serial": None, "firmware": None, "size_bytes": 10**12, "address": None}
    facts = hosts.facts("x", hardware=hosts.hardware(nvme=[drive]))
    assert [hardware.disk_words(disk) for disk in hardware.loose_disks(facts, of(facts))] == ["nvme3n1 1 TB"]
    facts["disks"] = [hosts.disk("nvme3n1", None, 0)]
    assert len(hardware.loose_disks(facts, of(facts))) == 1
    drive["name"] = "nvme3"
    assert len(hardware.loose_disks(facts, of(facts))) == 1


def test_a_narrow_link_is_listed_where_no_finding_tells_it() -> None:
    facts = sample.host_facts("gpu01")
    facts["pci"][1]["link"] = sample.link(8, 16, 16)
    expected = ["GPU 1 0000:22:00.0: runs x8: card x16, slot x16"]
    assert hardware.link_notes(of(facts), links.Judgements()) == expected
    judged = links.judgements({"platform": {"findings": []}})
    assert hardware.link_notes(hardware.devices(facts, judged), judged) == []


@pytest.mark.parametrize(
    "active, expected, words",
    [
        (18, 18, "NVLink 18 of 18"),
        (0, 18, "NVLink 0 of 18"),
        (4, None, "4 NVLinks"),
        (0, None, "no NVLink"),
        (None, 18, "NVLink unknown"),
        (None, None, ""),
    ],
)
def test_nvlinks_in_words(active: int | None, expected: int | None, words: str) -> None:
    assert hardware.nvlink_words(active, expected) == words


@pytest.mark.parametrize(
    "mib, text", [(None, "memory unknown"), (0, "no memory"), (1500, "1500 MiB"), (262144, "256 GiB")]
)
def test_unknown_memory_is_not_none(mib: int | None, text: str) -> None:
    assert hardware.memory_words(mib) == text


@pytest.mark.parametrize(
    "state, icon",
    [("ACTIVE", "up"), ("4: ACTIVE", "up"), ("up", "up"), ("DOWN", "down"), ("INACTIVE", "down"), ("", "unknown")],
)
def test_ports_that_are_up(state: str, icon: str) -> None:
    assert hardware._port_icon(state) == icon
