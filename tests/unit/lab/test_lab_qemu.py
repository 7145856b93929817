# Copyright: (c) 2026, gpufleet.host contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest

from lab.hosts import GPU_HOST, REFUSE_HOST, Host
from lab.qemu import TCG, Accel, Paths, command, scsi_device


def options(host: Host, name: str, accel: Accel = TCG) -> list[str]:
    """The values of an option on the host's command line."""
    words = command(host, Paths(Path("/lab") / host.name), accel, 22201)
    return [value for word, value in zip(words, words[1:], strict=False) if word == name]


def device(host: Host, start: str) -> str:
    found = [value for value in options(host, "-device") if value.startswith(start)]
    assert len(found) == 1, found
    return found[0]


def test_two_numa_nodes_with_half_of_the_processors_each() -> None:
    assert options(GPU_HOST, "-smp") == ["12,sockets=2,cores=3,threads=2"]
    assert options(GPU_HOST, "-m") == ["3072M"]
    assert options(GPU_HOST, "-numa") == [
        "node,nodeid=0,cpus=0-5,memdev=mem0",
        "node,nodeid=1,cpus=6-11,memdev=mem1",
        "dist,src=0,dst=0,val=10",
        "dist,src=0,dst=1,val=21",
        "dist,src=1,dst=0,val=21",
        "dist,src=1,dst=1,val=10",
    ]


def test_a_host_of_one_node_declares_none() -> None:
    assert options(REFUSE_HOST, "-numa") == []
    assert not any("pxb-pcie" in value for value in options(REFUSE_HOST, "-device"))


@pytest.mark.parametrize(
    ("gpu", "bus", "lanes"),
    [("gpu0", "node0", 16), ("gpu1", "node0", 16), ("gpu2", "node1", 8), ("gpu3", "pcie.0", 16)],
)
def test_a_gpu_is_behind_a_slot_of_its_node_and_width(gpu: str, bus: str, lanes: int) -> None:
    slot = device(GPU_HOST, f"pcie-root-port,id=slot-{gpu},")
    assert f",bus={bus}," in slot
    assert slot.endswith(f"x-width={lanes}")
    assert f"bus=slot-{gpu}," in device(GPU_HOST, f"pci-testdev,id={gpu},")


def test_slots_have_numbers_of_their_own() -> None:
    slots = [value for value in options(GPU_HOST, "-device") if value.startswith("pcie-root-port")]
    numbers = [part for value in slots for part in value.split(",") if part.startswith("slot=")]
    assert len(set(numbers)) == len(slots) == 7


def test_every_device_but_the_bridged_is_on_the_first_bus() -> None:
    """With expander bridges QEMU would put them anywhere."""
    assert all("bus=" in value for value in options(GPU_HOST, "-device"))


def test_the_hotplug_disk_is_not_there_at_boot() -> None:
    assert not any("hot" in value for value in options(GPU_HOST, "-blockdev") + options(GPU_HOST, "-device"))


def test_a_scsi_disk_has_its_wwn_when_it_has_one() -> None:
    disk = GPU_HOST.hotplug_disk
    assert disk is not None
    assert scsi_device(disk, 4) == {
        "driver": "scsi-hd",
        "id": "gpufleethot0",
        "bus": "scsi0.0",
        "scsi-id": 4,
        "drive": "gpufleethot0",
        "serial": "GPUFLEETHOT0",
        "wwn": 0x5000C50015EA71A1,
    }
    assert "wwn" not in scsi_device(REFUSE_HOST.disks[0], 0)


def test_the_guest_reaches_nothing_and_is_reached_by_loopback_alone() -> None:
    assert options(GPU_HOST, "-netdev") == ["user,id=net0,restrict=on,hostfwd=tcp:127.0.0.1:22201-:22"]


@pytest.mark.parametrize(
    ("accel", "expected"),
    [(TCG, "tcg,thread=multi"), (Accel("kvm", "host"), "kvm")],
)
def test_the_accelerator(accel: Accel, expected: str) -> None:
    assert options(GPU_HOST, "-accel", accel) == [expected]
    assert options(GPU_HOST, "-cpu", accel) == [accel.cpu]


def test_a_reboot_of_the_guest_keeps_qemu() -> None:
    assert "-no-reboot" not in command(GPU_HOST, Paths(Path("/lab")), TCG, 1)


def test_the_translated_processor_has_huge_pages() -> None:
    """Up to stepping 2 the kernel takes them away from this model."""
    assert "model=28,stepping=10,+pdpe1gb" in TCG.cpu
