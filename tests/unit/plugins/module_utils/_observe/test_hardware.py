# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All of the hardware from captures that hold one pasted text: the bus from lspci, GPUs from nvlink, CPUs from dmidecode."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import story

from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import CaptureHost
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import Unknown
from ansible_collections.gpufleet.host.plugins.module_utils._observe import hardware, pci, pci_writes

HOST_BRIDGE = "00:00.0 Host bridge [0600]: Intel Corporation Ice Lake Memory Map/VT-d [8086:09a2] (rev 04)\n"
NIC = "17:00.0 Ethernet controller [0200]: Mellanox Technologies MT2892 Family [ConnectX-6 Dx] [15b3:101d]\n"
GPU = "3b:00.0 3D controller [0302]: NVIDIA Corporation GA100 [A100 PCIe 80GB] [10de:20b5] (rev a1)\n"


def seen(folder: Path, *commands: dict[str, Any], **more: Any) -> dict[str, Any]:
    story.write({"commands": list(commands), **more}, folder / "capture")
    return hardware.observe(CaptureHost(str(folder / "capture")), pci.NVIDIA_GPUS)


def lspci(text: Any, *options: str) -> dict[str, Any]:
    return {"argv": ["lspci", *(options or ["-vvv"])], "stdout": text}


def test_devices_ways_and_switches_of_lspci(tmp_path: Path) -> None:
    have = seen(tmp_path, lspci({"corpus": "lspci/lspci-vvv-xe9680-one-gpu-path.txt"}))
    assert [gpu.address for gpu in have["gpus"]] == ["0000:19:00.0"]
    way = have["ways"]["0000:19:00.0"]
    assert [wire.width for wire in way.card_wires] == [16, 16]
    assert have["fabric"].has_nvswitch is True
    assert [device.kind for device in have["devices"]] == ["gpu"]


@pytest.mark.parametrize("options", [("-vvv",), ("-vvvnn",), ("-nn",), ()])
def test_lspci_with_other_options(options: tuple[str, ...], tmp_path: Path) -> None:
    have = seen(tmp_path, {"argv": ["lspci", *options], "stdout": HOST_BRIDGE + GPU})
    assert [(gpu.address, gpu.device_id) for gpu in have["gpus"]] == [("0000:3b:00.0", "20b5")]
    assert have["fabric"].has_nvswitch is False


def test_a_whole_list_without_a_gpu_and_a_part_of_one(tmp_path: Path) -> None:
    assert seen(tmp_path / "whole", lspci(HOST_BRIDGE + NIC))["gpus"] == []
    assert isinstance(seen(tmp_path / "part", lspci(NIC))["gpus"], Unknown)
    assert isinstance(seen(tmp_path / "no", lspci("pcilib: Cannot open /proc/bus/pci\n"))["gpus"], Unknown)


def test_sysfs_goes_before_lspci(tmp_path: Path) -> None:
    device = {"at": "pci0000:85/0000:85:00.0", "id": "10de:2330", "class": "030200", "node": 1}
    have = seen(tmp_path, lspci(HOST_BRIDGE + GPU), pci=[device])
    assert [gpu.address for gpu in have["gpus"]] == ["0000:85:00.0"]


def test_rows_without_their_device_are_links(tmp_path: Path) -> None:
    have = seen(tmp_path, lspci({"corpus": "lspci/lnksta-3090-gen1-x8.txt"}))
    assert [(link.width, link.max_width, link.speed_gts) for link in have["excerpts"]] == [(8, 16, 2.5)]
    assert have["devices"] == [] and isinstance(have["gpus"], Unknown)


def test_ports_with_acs_between_gpu_and_nic_of_pasted_text(tmp_path: Path) -> None:
    about = story.load(story.STORIES / "39-acs-in-pasted-lspci.yml")
    story.write(about, tmp_path / "capture")
    host = CaptureHost(str(tmp_path / "capture"))
    ports = pci_writes.observe(host, hardware.observe(host, pci.NVIDIA_GPUS), None)["acs_ports"]
    assert [(port["address"], port["acs"].redirects, port["kind"]) for port in ports] == [
        ("0000:17:00.0", True, "switch"),
        ("0000:17:01.0", True, "switch"),
    ]
    # The registers are not in the text, so nothing of them could be written.
    assert all(isinstance(port["write"], Unknown) for port in ports)


def test_nvlink_by_itself_names_the_gpus(tmp_path: Path) -> None:
    links = {"argv": ["nvidia-smi", "nvlink", "-s"], "stdout": {"corpus": "nvlink/nvlink-s-v100-two-inactive.txt"}}
    [gpu] = seen(tmp_path / "alone", links)["smi"].gpus
    assert (gpu.index, gpu.name) == (3, "Tesla V100-SXM2-32GB")
    # What nvidia-smi says itself goes before it, even that it fails.
    failed = {"argv": ["nvidia-smi", "-q", "-x"], "rc": 9, "stdout": "NVIDIA-SMI has failed\n"}
    assert isinstance(seen(tmp_path / "failed", links, failed)["smi"], Unknown)


def test_sockets_and_processor_of_dmidecode(tmp_path: Path) -> None:
    block = (
        "Handle 0x0400, DMI type 4, 48 bytes\nProcessor Information\n\tSocket Designation: CPU%d\n"
        "\tVersion: Intel(R) Xeon(R) Gold 6230 CPU @ 2.10GHz\n\tStatus: %s\n\n"
    )
    text = block % (1, "Populated, Enabled") + block % (2, "Unpopulated")
    have = seen(tmp_path / "dmi", {"argv": ["dmidecode"], "stdout": text})
    assert (have["sockets"], have["cpu_model"]) == (1, "Intel(R) Xeon(R) Gold 6230 CPU @ 2.10GHz")
    said = {"argv": ["lscpu"], "stdout": "Socket(s): 2\nModel name: Other\n"}
    have = seen(tmp_path / "both", {"argv": ["dmidecode"], "stdout": text}, said)
    assert (have["sockets"], have["cpu_model"]) == (2, "Other")
