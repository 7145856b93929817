# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The area platform: hardware, firmware and driver as they are, judged per model."""

from __future__ import annotations

from typing import Any, Dict, Mapping

from .._engine.engine import Area
from .._engine.host import Host, remembered
from .._observe import hardware, pci, pci_writes
from .._plan import platform, platform_steps

SPEC: Dict[str, Any] = {
    "gpu_match": {
        "type": "list",
        "elements": "dict",
        "default": [dict(row) for row in pci.NVIDIA_GPUS],
        "options": {"vendor": {"type": "str"}, "device": {"type": "str"}, "class": {"type": "str"}},
    },
    "gpu_count": {"type": "int"},
    "gpu_model": {"type": "str"},
    "consumer_gpus": {"type": "str", "choices": ["allow", "warn", "refuse"], "default": "warn"},
    "ecc": {"type": "str", "choices": ["on", "off", "any"], "default": "on"},
    "persistence": {"type": "bool", "default": True},
    "temperature_max_c": {"type": "int"},
    "tables": {"type": "dict", "default": {}},
    "links": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "device": {"type": "str", "required": True},
            "width": {"type": "int"},
            "gen": {"type": "int"},
            "reason": {"type": "str"},
        },
    },
    "iommu": {"type": "str", "choices": ["untranslated", "translated", "any"], "default": "untranslated"},
    "acs": {"type": "str", "choices": ["report", "off", "any"], "default": "report"},
    "max_read_request_bytes": {"type": "int"},
    "smt": {"type": "str", "choices": ["on", "off", "any"], "default": "any"},
    "numa_nodes_per_socket": {"type": "int"},
    "boot_mode": {"type": "str", "choices": ["uefi", "bios", "any"], "default": "uefi"},
    "secure_boot": {"type": "str", "choices": ["on", "off", "any"], "default": "any"},
    "sriov": {"type": "str", "choices": ["on", "off", "any"], "default": "any"},
    "resizable_bar": {"type": "str", "choices": ["on", "any"], "default": "on"},
    "governor": {"type": "str", "choices": ["performance", "any"], "default": "performance"},
    "idle_latency_max_us": {"type": "int"},
    "memory_gib": {"type": "int"},
    "supplies": {"type": "int"},
    "supply_capacity_w": {"type": "int"},
    "cpu_tdp_w": {"type": "int"},
    "gpu_power_factor": {"type": "float", "default": 1.8},
    "cpu_power_factor": {"type": "float", "default": 1.5},
    "power_reserve_factor": {"type": "float", "default": 1.3},
    "rdma_devices": {"type": "list", "elements": "str", "default": []},
    "accepted": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "id": {"type": "str", "required": True},
            "subject": {"type": "str"},
            "reason": {"type": "str", "required": True},
        },
    },
}


def observe(host: Host, want: Mapping[str, Any]) -> Dict[str, Any]:
    """All subjects, what the two kinds of steps would change, and the unit that does it again at each boot."""
    match = want["gpu_match"] or []
    have = dict(remembered(host, "hardware", match, lambda: hardware.observe(host, match)))
    have.update(pci_writes.observe(host, have, want["max_read_request_bytes"]))
    have["unit_file"] = host.read(platform_steps.UNIT_FILE)
    have["unit_link"] = host.readlink(platform_steps.UNIT_LINK) is not None
    return have


AREA = Area(
    name="platform",
    role="platform",
    spec=SPEC,
    check_want=platform.check_want,
    observe=observe,
    plan=platform.plan,
    judge=platform.judge,
    adopt=platform.adopt,
    examples={"tables": "{gpus: [{name: NVIDIA X100, pci_id: 10de:9999}]}"},
)
