# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The area platform: hardware, firmware and driver as they are, judged per model."""

from __future__ import annotations

from itertools import combinations
from typing import Any, Dict, List, Mapping

from .._engine.engine import Area
from .._engine.host import Host, remembered
from .._engine.values import Unknown
from .._observe import hardware, pci, pci_config, pci_tree
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
    """All subjects, then what the two kinds of steps are about: ports with ACS, and read requests."""
    match = want["gpu_match"] or []
    have = dict(remembered(host, "hardware", match, lambda: hardware.observe(host, match)))
    have["passed_through"] = [name for name in host.listdir("/sys/bus/pci/drivers/vfio-pci") if name.count(":") == 2]
    have["acs_ports"] = _acs_ports(host, have)
    have["read_requests"] = _read_requests(host, want, have)
    have["setpci"] = next((path for path in platform_steps.SETPCI if host.exists(path)), "")
    have["unit_file"] = host.read(platform_steps.UNIT_FILE)
    have["unit_link"] = host.readlink(platform_steps.UNIT_LINK) is not None
    return have


def _acs_ports(host: Host, have: Mapping[str, Any]) -> List[Dict[str, Any]]:
    """Ports that traffic between GPUs, and between GPUs and RDMA NICs, passes: each with a pair that passes it."""
    gpus = [] if isinstance(have["gpus"], Unknown) else [gpu.address for gpu in have["gpus"]]
    nics = [nic.address for nic in have["network"].nics if nic.address]
    pairs = [*combinations(gpus, 2), *((gpu, nic) for gpu in gpus for nic in nics)]
    found: Dict[str, Dict[str, Any]] = {}
    for one, other in pairs:
        ways = have["ways"].get(one), have["ways"].get(other)
        if any(way is None or isinstance(way, Unknown) for way in ways):
            continue
        meeting = pci_tree.meeting(*ways)
        if isinstance(meeting, Unknown) or meeting.kind not in ("switch", "root port", "host bridge", "numa node"):
            continue
        by_address = {function.address: function for way in ways for function in way.functions}
        for port in meeting.ports:
            acs = by_address[port].acs
            is_nearer = meeting.kind == "switch" and found.get(port, {}).get("kind") != "switch"
            if acs is not None and (port not in found or is_nearer):
                found[port] = {
                    "address": port,
                    "acs": acs,
                    "kind": meeting.kind,
                    "why": "between %s and %s" % (one, other),
                }
    for address, about in found.items():
        about["write"] = _write(host, address, pci_config.acs_off)
    return [found[port] for port in sorted(found, key=pci.sort_key)]


def _read_requests(host: Host, want: Mapping[str, Any], have: Mapping[str, Any]) -> Dict[str, Any]:
    size = want["max_read_request_bytes"]
    if not size or isinstance(have["gpus"], Unknown):
        return {}
    addresses = [gpu.address for gpu in have["gpus"]] + [nic.address for nic in have["network"].nics if nic.address]
    writes = {one: _write(host, one, lambda config: pci_config.max_read_request(config, size)) for one in addresses}
    return {address: write for address, write in writes.items() if write is not None}


def _write(host: Host, address: str, what: Any) -> Any:
    config = pci_config.parse_config(host.read("%s/%s/config" % (pci.DEVICE_FOLDER, address)))
    return config if isinstance(config, Unknown) else what(config)


AREA = Area(
    name="platform",
    role="platform",
    spec=SPEC,
    check_want=platform.check_want,
    observe=observe,
    plan=platform.plan,
    judge=platform.judge,
    adopt=platform.adopt,
)
