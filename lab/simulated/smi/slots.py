# Copyright: (c) 2026, gpufleet.host contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the stand-in GPUs are and what their slots can do, from the kernel: this part is real."""

from __future__ import annotations

import os
from typing import NamedTuple

# QEMU's pci-testdev.
VENDOR, DEVICE = "0x1b36", "0x0005"
_GENERATIONS = {"2.5": 1, "5.0": 2, "8.0": 3, "16.0": 4, "32.0": 5, "64.0": 6}


class Slot(NamedTuple):
    """A stand-in and the port above it; None is what the kernel does not tell."""

    address: str
    numa_node: int | None
    cpus: str
    host_bridge: str
    width: int | None
    max_width: int | None
    gen: int | None
    max_gen: int | None


def read_slots(root: str = "") -> list[Slot]:
    """All stand-ins, by PCI address, which is the order of nvidia-smi."""
    devices = root + "/sys/bus/pci/devices"
    addresses = sorted(os.listdir(devices)) if os.path.isdir(devices) else []
    ids = (VENDOR, DEVICE)
    return [
        _slot(devices, address)
        for address in addresses
        if (_read(devices, address, "vendor"), _read(devices, address, "device")) == ids
    ]


def _slot(devices: str, address: str) -> Slot:
    # ../../../devices/pci0000:20/0000:20:00.0/0000:21:00.0: root bus, port, function.
    place = os.readlink(os.path.join(devices, address)).split("/")
    bridge = next((part for part in place if part.startswith("pci")), "")
    # The stand-in is no PCI Express function and has no link of its own: the port's is the one it would have.
    port = place[-2]
    node = _number(_read(devices, address, "numa_node"))
    return Slot(
        address,
        node if node is not None and node >= 0 else None,
        _read(devices, address, "local_cpulist"),
        bridge,
        _number(_read(devices, port, "current_link_width")),
        _number(_read(devices, port, "max_link_width")),
        _generation(_read(devices, port, "current_link_speed")),
        _generation(_read(devices, port, "max_link_speed")),
    )


def _read(devices: str, address: str, name: str) -> str:
    try:
        with open(os.path.join(devices, address, name), encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def _number(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def _generation(text: str) -> int | None:
    """``16.0 GT/s PCIe`` is generation 4."""
    return _GENERATIONS.get(text.split(" ")[0])
