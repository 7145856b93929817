# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the judges of the area platform share: GPUs as the bus and nvidia-smi show them, joined by PCI address."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, List, Mapping, Optional, Tuple

from .._engine.values import Unknown
from .._tables import gpus
from .._tables.catalogue import Catalogue, catalogue

# Given to virtual machines: none of this host's CUDA devices, and nvidia-smi does not know them.
PASSED_THROUGH = ("vfio-pci", "pci-stub", "xen-pciback")
NVIDIA = "10de"


@dataclass(frozen=True)
class Card:
    """A GPU: on the bus (``device``), in nvidia-smi (``gpu``) or in both; ``model`` is its row in the catalogue.

    The row is found by PCI id, which no seller relabels; ``name`` is what nvidia-smi or lspci calls it.
    """

    address: str
    device: Any
    gpu: Any
    model: Optional[gpus.Gpu]
    name: str = ""


def cards(want: Mapping[str, Any], have: Mapping[str, Any]) -> List[Card]:
    """All GPUs by address."""
    models = tables_of(want).gpus
    devices = {} if isinstance(have["gpus"], Unknown) else {device.address: device for device in have["gpus"]}
    told = {str(gpu.address): gpu for gpu in smi_gpus(have) if known(gpu.address)}
    addresses = sorted({*devices, *told}, key=address_key)
    found = [_card(have, address, devices.get(address), told.get(address), models) for address in addresses]
    nameless = [gpu for gpu in smi_gpus(have) if not known(gpu.address)]
    indexes = [gpu.index if known(gpu.index) else count for count, gpu in enumerate(nameless)]
    if len(set(indexes)) < len(indexes):
        indexes = list(range(len(indexes)))
    return found + [_card(have, "GPU %d" % index, None, gpu, models) for index, gpu in zip(indexes, nameless)]


def _card(have: Mapping[str, Any], address: str, device: Any, gpu: Any, models: Tuple[gpus.Gpu, ...]) -> Card:
    name = str(gpu.name) if gpu is not None and known(gpu.name) else _name_on_bus(have, address)
    return Card(address, device, gpu, model_of(device, gpu, models, name), name)


def tables_of(want: Mapping[str, Any]) -> Catalogue:
    """The built-in tables with the rows of the operator."""
    return catalogue(want["tables"] or None, "tables")


def model_of(device: Any, gpu: Any, models: Tuple[gpus.Gpu, ...], name: str) -> Optional[gpus.Gpu]:
    """By PCI id; a model whose id is not told, or not in the catalogue, is taken at its word."""
    subsystem = gpu.subsystem_id if gpu is not None and known(gpu.subsystem_id) else ""
    by_id = gpus.all_by_pci_id(id_of(device, gpu), models)
    return gpus.by_pci_id(id_of(device, gpu), subsystem, models) if by_id else gpus.by_name(name, models)


def _name_on_bus(have: Mapping[str, Any], address: str) -> str:
    """The product's name in brackets, as lspci has it (GA102 [GeForce RTX 3090]); sysfs has no names."""
    way = have["ways"].get(address)
    found = None if way is None or isinstance(way, Unknown) else re.search(r"\[([^\[\]]+)\]", way.device.name)
    return found.group(1) if found else ""


def id_of(device: Any, gpu: Any) -> str:
    """The PCI id: the bus's own where it is NVIDIA's, else nvidia-smi's (a capture without sysfs, a stand-in)."""
    if device is not None and device.vendor_id == NVIDIA and device.device_id:
        return "%s:%s" % (device.vendor_id, device.device_id)
    return str(gpu.pci_id) if gpu is not None and known(gpu.pci_id) else ""


def smi_gpus(have: Mapping[str, Any]) -> List[Any]:
    return [] if isinstance(have["smi"], Unknown) else list(have["smi"].gpus)


def address_key(address: str) -> List[int]:
    """Order of CUDA_DEVICE_ORDER=PCI_BUS_ID: domain, bus, device, function as numbers; what is no address comes last."""
    words = re.split(r"[:.]", address)
    if len(words) != 4 or not all(re.fullmatch("[0-9a-f]{1,8}", word) for word in words):
        return [1 << 32]
    return [int(word, 16) for word in words]


def known(value: Any) -> bool:
    return value is not None and not isinstance(value, Unknown)


def number(value: Any) -> float:
    """A known number; 0 for an unknown one, so ask :func:`known` where 0 would say something."""
    return float(value) if known(value) else 0.0


def has_nvswitch(have: Mapping[str, Any]) -> bool:
    return have["fabric"].has_nvswitch is True


def is_bare_metal(have: Mapping[str, Any]) -> bool:
    """What a guest sees of links, IOMMU and ACS is its host's business."""
    return bool(have["virtualization"] == "none")
