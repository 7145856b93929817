# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""PCI functions: what they are, where they are (NUMA node), and how wide and fast their link is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

from .._engine.host import Host
from .._engine.values import Text, Unknown
from .cpu import Ids, Number, ids_of

DEVICE_FOLDER = "/sys/bus/pci/devices"

# Vendors and classes: pci.ids; 0302 is a 3D controller (data-centre GPUs), 0300 a VGA controller.
NVIDIA_GPUS: Sequence[Mapping[str, Any]] = (
    {"vendor": "10de", "class": "0302"},
    {"vendor": "10de", "class": "0300"},
)
# First digits of the class code, the longest first: NVMe, other storage, network, display, accelerator.
_KINDS = (("0108", "nvme"), ("01", "storage"), ("02", "nic"), ("03", "other"), ("12", "other"))

_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_SPEED = re.compile(r"(\d{1,3}(?:\.\d)?) GT/s.*")
# A link that is down shows width 0; 255 is what a config space that reads as all ones gives.
_NO_WIDTH = (0, 255)


@dataclass(frozen=True)
class Link:
    """Of a function: its link now, what the card can do, and what the slot (the port above) can do."""

    width: Optional[int]
    max_width: Optional[int]
    slot_width: Optional[int]
    speed_gts: Optional[float]
    max_speed_gts: Optional[float]
    slot_speed_gts: Optional[float]


@dataclass(frozen=True)
class Device:
    """An endpoint.  ``numa_node`` is Unknown where the firmware names none (sysfs shows -1)."""

    address: str
    vendor_id: str
    device_id: str
    class_code: str
    kind: str
    driver: Optional[str]
    numa_node: Number
    local_cpus: Ids
    link: Link


def observe(host: Host, gpu_match: Sequence[Mapping[str, Any]] = NVIDIA_GPUS) -> List[Device]:
    """Endpoints that matter, by address: GPUs (as matched), network, storage, other accelerators."""
    found: List[Device] = []
    for address in host.listdir(DEVICE_FOLDER):
        if not _ADDRESS.fullmatch(address):
            continue
        names = [_hex(host.read("%s/%s/%s" % (DEVICE_FOLDER, address, name))) for name in ("vendor", "device", "class")]
        kind = kind_of(names[0], names[1], names[2], gpu_match)
        if kind:
            found.append(_device(host, address, names, kind))
    return sorted(found, key=lambda device: sort_key(device.address))


def observe_gpus(host: Host, gpu_match: Sequence[Mapping[str, Any]]) -> Union[List[Device], Unknown]:
    """Only the GPUs, by address; Unknown when the bus cannot be seen."""
    if not host.exists(DEVICE_FOLDER):
        return Unknown("%s cannot be seen" % DEVICE_FOLDER)
    return [device for device in observe(host, gpu_match) if device.kind == "gpu"]


def kind_of(vendor: str, device: str, class_code: str, gpu_match: Sequence[Mapping[str, Any]]) -> str:
    """gpu, nic, nvme, storage or other; empty for bridges and what else is not looked at."""
    if any(_matches(pattern, vendor, device, class_code) for pattern in gpu_match):
        return "gpu"
    return next((kind for digits, kind in _KINDS if class_code.startswith(digits)), "")


def sort_key(address: str) -> List[int]:
    """Order of CUDA_DEVICE_ORDER=PCI_BUS_ID: domain, bus, device, function as numbers."""
    return [int(word, 16) for word in re.split(r"[:.]", address)]


def parse_numa_node(text: Text) -> Number:
    """``numa_node``: -1 means that the firmware gives none, which is not node 0."""
    word = text.strip() if isinstance(text, str) else ""
    if re.fullmatch(r"\d{1,5}", word, re.ASCII):
        return int(word)
    if word == "-1":
        return Unknown("numa_node is -1: the firmware does not say where the slot is")
    return text if isinstance(text, Unknown) else Unknown("numa_node is %r" % word[:40] if word else "no numa_node")


def parse_speed(text: Text) -> Optional[float]:
    """``16.0 GT/s PCIe`` as 16.0; None for ``Unknown`` and anything else."""
    found = _SPEED.fullmatch(text.strip()) if isinstance(text, str) else None
    return float(found.group(1)) if found else None


def parse_width(text: Text) -> Optional[int]:
    word = text.strip() if isinstance(text, str) else ""
    if not re.fullmatch(r"\d{1,3}", word, re.ASCII) or int(word) in _NO_WIDTH:
        return None
    return int(word)


def parse_minor(text: Text) -> Optional[int]:
    """The N of /dev/nvidiaN in ``/proc/driver/nvidia/gpus/*/information``."""
    found = (
        re.search(r"^Device Minor:\s*(\d{1,3})\s*$", text, re.MULTILINE | re.ASCII) if isinstance(text, str) else None
    )
    return int(found.group(1)) if found else None


def _device(host: Host, address: str, names: Sequence[str], kind: str) -> Device:
    folder = "%s/%s/" % (DEVICE_FOLDER, address)
    target = host.readlink(DEVICE_FOLDER + "/" + address) or ""
    driver = host.readlink(folder + "driver")
    return Device(
        address,
        names[0],
        names[1],
        names[2],
        kind,
        driver.rsplit("/", 1)[-1] if driver else None,
        parse_numa_node(host.read(folder + "numa_node")),
        ids_of(host.read(folder + "local_cpulist")),
        _link(host, folder, target),
    )


def _link(host: Host, folder: str, target: str) -> Link:
    """The port above is the folder above in /sys/devices; a root bus has no link of its own."""
    above = target.rstrip("/").split("/")[-2:-1]
    port = "%s/%s/" % (DEVICE_FOLDER, above[0]) if above and _ADDRESS.fullmatch(above[0]) else ""
    return Link(
        parse_width(host.read(folder + "current_link_width")),
        parse_width(host.read(folder + "max_link_width")),
        parse_width(host.read(port + "max_link_width")) if port else None,
        parse_speed(host.read(folder + "current_link_speed")),
        parse_speed(host.read(folder + "max_link_speed")),
        parse_speed(host.read(port + "max_link_speed")) if port else None,
    )


def _matches(pattern: Mapping[str, Any], vendor: str, device: str, class_code: str) -> bool:
    """Each part that is given has to match; a class matches by its first digits."""
    wanted: Dict[str, str] = {key: _hex(pattern.get(key)) for key in ("vendor", "device", "class")}
    return (
        any(wanted.values())
        and wanted["vendor"] in ("", vendor)
        and wanted["device"] in ("", device)
        and class_code.startswith(wanted["class"])
    )


def _hex(text: Any) -> str:
    """Digits of a PCI id without 0x, in lower case; empty when it is none."""
    word = text.strip().lower() if isinstance(text, str) else ""
    word = word[2:] if word.startswith("0x") else word
    return word if re.fullmatch(r"[0-9a-f]{1,6}", word) else ""
