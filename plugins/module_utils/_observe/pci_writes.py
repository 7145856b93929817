# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the two kinds of writes to configuration spaces would change: ports with ACS, and read requests."""

from __future__ import annotations

from itertools import combinations
from typing import Any, Dict, List, Mapping, Optional

from .._engine.host import Host
from .._engine.values import Unknown
from . import pci, pci_config, pci_tree

SETPCI = ("/usr/bin/setpci", "/usr/sbin/setpci", "/sbin/setpci")
VFIO = "/sys/bus/pci/drivers/vfio-pci"
_MELLANOX = "15b3"


def observe(host: Host, have: Mapping[str, Any], read_request_bytes: Optional[int]) -> Dict[str, Any]:
    """``have`` as ``hardware`` gives it.  ``passed_through`` are the devices that are given to guests."""
    return {
        "passed_through": [name for name in host.listdir(VFIO) if name.count(":") == 2],
        "acs_ports": _acs_ports(host, have),
        "read_requests": _read_requests(host, read_request_bytes, have),
        "setpci": next((path for path in SETPCI if host.exists(path)), ""),
    }


def _acs_ports(host: Host, have: Mapping[str, Any]) -> List[Dict[str, Any]]:
    """Ports that traffic between GPUs, and between GPUs and RDMA NICs, passes: each with a pair that passes it."""
    gpus = [] if isinstance(have["gpus"], Unknown) else [gpu.address for gpu in have["gpus"]]
    nics = [nic.address for nic in have["network"].nics if nic.address]
    if isinstance(have["network"].devices, Unknown):
        # A recorded lspci does not tell which NICs do RDMA; those of Mellanox all do.
        nics = [one.address for one in have["devices"] if one.kind == "nic" and one.vendor_id == _MELLANOX]
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


def _read_requests(host: Host, size: Optional[int], have: Mapping[str, Any]) -> Dict[str, Any]:
    if not size or isinstance(have["gpus"], Unknown):
        return {}
    addresses = [gpu.address for gpu in have["gpus"]] + [nic.address for nic in have["network"].nics if nic.address]
    writes = {one: _write(host, one, lambda config: pci_config.max_read_request(config, size)) for one in addresses}
    return {address: write for address, write in writes.items() if write is not None}


def _write(host: Host, address: str, what: Any) -> Any:
    config = pci_config.parse_config(host.read("%s/%s/config" % (pci.DEVICE_FOLDER, address)))
    return config if isinstance(config, Unknown) else what(config)
