# Copyright: (c) 2026, gpufleet.host contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The PCI tree of lab-gpu1 as its kernel shows it, and the simulated nvidia-smi asked there."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lab.simulated.smi.main import answer
from lab.simulated.smi.slots import read_slots
from lab.simulated.smi.troubles import parse_troubles

NOW = time.strptime("2026-07-14 08:12:38", "%Y-%m-%d %H:%M:%S")
# address, port, host bridge, NUMA node, CPUs, lanes, device id: four stand-ins and a disk, which is none.
DEVICES = (
    ("0000:01:00.0", "0000:00:03.0", "pci0000:00", "-1", "0-11", "16", "0x0005"),
    ("0000:21:00.0", "0000:20:00.0", "pci0000:20", "0", "0-5", "16", "0x0005"),
    ("0000:22:00.0", "0000:20:01.0", "pci0000:20", "0", "0-5", "16", "0x0005"),
    ("0000:23:00.0", "0000:20:02.0", "pci0000:20", "0", "0-5", "4", "0x0010"),
    ("0000:61:00.0", "0000:60:00.0", "pci0000:60", "1", "6-11", "8", "0x0005"),
)


@dataclass(frozen=True)
class SimulatedNvidia:
    root: Path

    def ask(self, *argv: str, troubles: dict[str, Any] | None = None) -> tuple[int, str]:
        """Exit status and what it prints."""
        return answer(argv, read_slots(str(self.root)), parse_troubles(json.dumps(troubles or {})), NOW)

    def says(self, *argv: str, troubles: dict[str, Any] | None = None) -> str:
        rc, out = self.ask(*argv, troubles=troubles)
        assert rc == 0, out
        return out


@pytest.fixture
def nvidia(tmp_path: Path) -> SimulatedNvidia:
    devices = tmp_path / "sys/bus/pci/devices"
    devices.mkdir(parents=True)
    for address, port, bridge, node, cpus, lanes, device in DEVICES:
        place = tmp_path / "sys/devices" / bridge / port / address
        place.mkdir(parents=True)
        about = {"vendor": "0x1b36", "device": device, "numa_node": node, "local_cpulist": cpus}
        link = {"current_link_width": lanes, "current_link_speed": "16.0 GT/s PCIe"}
        most = {"max_link_width": lanes, "max_link_speed": "16.0 GT/s PCIe"}
        for folder, values in ((place, about), (place.parent, {**link, **most})):
            for name, value in values.items():
                (folder / name).write_text(value + "\n")
            (devices / folder.name).symlink_to("../../../devices/%s" % folder.relative_to(tmp_path / "sys/devices"))
    return SimulatedNvidia(tmp_path)
