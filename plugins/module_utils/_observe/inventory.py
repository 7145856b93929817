# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The parts of a host for its report and for acceptance: ``host_facts.hardware`` in docs/report.schema.json.

Null is unknown, and never 0.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any, Dict, List, Mapping, Optional, Sequence

from .._engine.host import Host, remembered
from .._engine.values import Unknown
from .._tables import gpus as catalogue
from . import hardware, nvme, pci, pci_tree
from .netdev import parse_count

_MEETINGS = {"switch": "PIX", "root port": "PIX", "host bridge": "PHB", "numa node": "NODE", "system": "SYS"}
_GEN = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6}


def observe(host: Host, gpu_match: Sequence[Mapping[str, Any]]) -> Dict[str, Any]:
    """From the observation that the area platform makes, if it is there; else from one of its own."""
    have = remembered(host, "hardware", gpu_match, lambda: hardware.observe(host, gpu_match))
    return {
        "gpus": _gpus(have),
        "nvlink": _nvlink(have),
        "cpus": _each(have["dmi"].processors, _cpu),
        "dimms": _each(have["dmi"].modules, _dimm),
        "nvme": _nvme(host),
        "nics": _nics(have),
        "psus": _each(have["power"].supplies, _supply),
        "bios": _bios(have),
        "bmc": {"firmware": _known(have["bmc"].firmware)},
        "system": _system(have),
    }


def _known(value: Any) -> Any:
    return None if isinstance(value, Unknown) else value


def _each(rows: Any, shape: Any) -> Optional[List[Dict[str, Any]]]:
    """None where nothing could be seen; rows that are no part (an empty slot) are left out."""
    if isinstance(rows, Unknown):
        return None
    return [about for about in map(shape, rows) if about is not None]


def _gpus(have: Mapping[str, Any]) -> Optional[List[Dict[str, Any]]]:
    smi, devices = have["smi"], have["gpus"]
    if isinstance(smi, Unknown) and isinstance(devices, Unknown):
        return None
    told = [] if isinstance(smi, Unknown) else list(smi.gpus)
    by_address = {str(gpu.address): gpu for gpu in told if not isinstance(gpu.address, Unknown)}
    on_bus = {} if isinstance(devices, Unknown) else {device.address: device for device in devices}
    links = _links(have, told)
    addresses = sorted({*by_address, *on_bus}, key=pci.sort_key)
    return [_gpu(address, on_bus.get(address), by_address.get(address), links.get(address)) for address in addresses]


def _links(have: Mapping[str, Any], told: Sequence[Any]) -> Dict[str, Any]:
    if isinstance(have["nvlinks"], Unknown):
        return {}
    found = {}
    for one in have["nvlinks"]:
        if one.index < len(told) and not isinstance(told[one.index].address, Unknown):
            found[str(told[one.index].address)] = one
    return found


def _gpu(address: str, device: Optional[pci.Device], gpu: Any, links: Any) -> Dict[str, Any]:
    def told(name: str) -> Any:
        return None if gpu is None else _known(getattr(gpu, name))

    is_nvidia = device is not None and device.vendor_id == "10de"
    pci_id = "%s:%s" % (device.vendor_id, device.device_id) if is_nvidia and device is not None else told("pci_id")
    row = catalogue.by_pci_id(pci_id or "", told("subsystem_id") or "")
    link = device.link if device is not None else None
    return {
        "address": address,
        "name": told("name"),
        "pci_id": pci_id,
        "subsystem_id": told("subsystem_id"),
        "model": row.name if row else None,
        "memory_mib": told("memory_total_mib"),
        "nvlink_active": None if links is None else _known(links.active),
        "nvlink_expected": row.nvlink.links if row and row.nvlink else 0 if row else None,
        "serial": told("serial"),
        "vbios": told("vbios"),
        "uuid": told("uuid"),
        # A stand-in has no link of its own on the bus.
        "width": link.width if link and link.width else told("pcie_width"),
        "max_width": link.max_width if link and link.max_width else told("pcie_width_max"),
        "gen": _GEN.get(link.speed_gts) if link and link.speed_gts else told("pcie_gen"),
        "max_gen": _GEN.get(link.max_speed_gts) if link and link.max_speed_gts else told("pcie_gen_device_max"),
        "numa_node": None if device is None else _known(device.numa_node),
    }


def _nvlink(have: Mapping[str, Any]) -> Dict[str, Any]:
    switches = have["fabric"].switches
    return {"switches": None if isinstance(switches, Unknown) else len(switches), "pairs": _pairs(have)}


def _pairs(have: Mapping[str, Any]) -> Optional[List[Dict[str, Any]]]:
    """How each two GPUs meet: as nvidia-smi topo tells it, else over PCIe as the bus shows."""
    topo, smi = have["topo"], have["smi"]
    if not isinstance(topo, Unknown) and not isinstance(smi, Unknown):
        names = list(topo.gpus)
        addresses = [_known(gpu.address) for gpu in smi.gpus]
        if len(names) == len(addresses) and all(addresses):
            words = [
                (one, other, topo.connection(names[one], names[other]))
                for one, other in combinations(range(len(names)), 2)
            ]
            return [
                {"a": addresses[one], "b": addresses[other], "type": word}
                for one, other, word in words
                if isinstance(word, str)
            ]
    ways = [
        (gpu.address, have["ways"].get(gpu.address))
        for gpu in ([] if isinstance(have["gpus"], Unknown) else have["gpus"])
    ]
    seen = [(address, way) for address, way in ways if isinstance(way, pci_tree.Way)]
    if len(seen) < 2:
        return None
    found = []
    for (one, first), (other, second) in combinations(seen, 2):
        place = pci_tree.meeting(first, second)
        if not isinstance(place, Unknown) and place.kind in _MEETINGS:
            found.append({"a": one, "b": other, "type": _MEETINGS[place.kind]})
    return found


def _cpu(one: Any) -> Optional[Dict[str, Any]]:
    if one.is_populated is False:
        return None
    return {"socket": one.socket, "model": _known(one.model), "cores": _known(one.cores)}


def _dimm(one: Any) -> Optional[Dict[str, Any]]:
    if one.is_populated is False:
        return None
    return {
        "locator": one.locator, "size_mib": _known(one.size_mib), "type": _known(one.type),
        "rated_mts": _known(one.speed_mts), "configured_mts": _known(one.configured_mts),
        "manufacturer": _known(one.manufacturer), "part": _known(one.part), "serial": _known(one.serial),
    }  # fmt: skip


def _nvme(host: Host) -> Optional[List[Dict[str, Any]]]:
    controllers = nvme.observe(host)
    if isinstance(controllers, Unknown):
        return None
    return [
        {
            "name": one.name, "model": _known(one.model), "serial": _known(one.serial), "firmware": _known(one.firmware),
            "size_bytes": _size(host, one.name), "address": _known(one.address),
        }
        for one in controllers
    ]  # fmt: skip


def _size(host: Host, controller: str) -> Optional[int]:
    """Of its namespaces together, in the kernel's sectors of 512 bytes."""
    names = [name for name in host.listdir("/sys/block") if name.startswith(controller + "n")]
    sizes = [parse_count(host.read("/sys/block/%s/size" % name)) for name in names]
    known = [size for size in sizes if isinstance(size, int)]
    return sum(known) * 512 if known and len(known) == len(sizes) else None


def _nics(have: Mapping[str, Any]) -> Optional[List[Dict[str, Any]]]:
    devices = [device for device in have["devices"] if device.kind == "nic"]
    network = have["network"]
    by_address = {nic.address: nic for nic in network.nics if nic.address}
    if not devices and not by_address:
        return None if isinstance(have["gpus"], Unknown) and isinstance(network.devices, Unknown) else []
    found = [
        _nic(device.address, "%s:%s" % (device.vendor_id, device.device_id), by_address.get(device.address))
        for device in devices
    ]
    seen = {device.address for device in devices}
    return found + [_nic(address, None, nic) for address, nic in by_address.items() if address not in seen]


def _nic(address: str, pci_id: Optional[str], nic: Any) -> Dict[str, Any]:
    ports = list(nic.ports) if nic is not None else []
    states = [_known(port.state) for port in ports]
    return {
        "address": address,
        "pci_id": pci_id,
        "name": nic.name if nic is not None else None,
        "netdevs": [port.netdev for port in ports if isinstance(port.netdev, str)],
        "firmware": None if nic is None else _known(nic.firmware),
        "rate_gbps": max((port.rate_gbps for port in ports if isinstance(port.rate_gbps, float)), default=None),
        "link_layer": next((port.link_layer for port in ports if isinstance(port.link_layer, str)), None),
        "state": "ACTIVE" if "ACTIVE" in states else next((state for state in states if state), None),
        "ports": len(ports) or None,
    }


def _supply(one: Any) -> Dict[str, Any]:
    capacity = _known(one.capacity_w)
    return {"name": one.name, "present": _known(one.is_present), "ok": _known(one.is_ok), "capacity_w": capacity}


def _bios(have: Mapping[str, Any]) -> Dict[str, Any]:
    about = {name: _known(have["firmware"].dmi.get("bios_" + name)) for name in ("vendor", "version", "date")}
    system = have["redfish"].system
    if about["version"] is None and system is not None:
        about["version"] = _known(system.bios_version)
    return about


def _system(have: Mapping[str, Any]) -> Dict[str, Any]:
    seen, words, system = have["dmi"].system, have["firmware"].dmi, have["redfish"].system
    if not isinstance(seen, Unknown):
        return {name: _known(getattr(seen, name)) for name in ("manufacturer", "product", "serial")}
    if system is not None and _known(words.get("product_name")) is None:
        named = {"manufacturer": system.manufacturer, "product": system.model, "serial": system.serial}
        return {name: _known(word) for name, word in named.items()}
    return {
        "manufacturer": _known(words.get("sys_vendor")),
        "product": _known(words.get("product_name")),
        "serial": None,
    }
