# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Everything that the area platform looks at, in one observation: what is asked for hangs on what is there.

nvidia-smi is run at most three times, and not again once it hung.  A host without a GPU is not asked about drivers.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from .._engine.host import Host, fresh
from .._engine.values import Unknown
from .._tables import gpus as catalogue
from . import (
    bmc,
    cpu,
    cpufreq,
    dmi,
    driver,
    fabric,
    firmware,
    interconnect,
    ipmi_power,
    kernel_log,
    libraries,
    network,
    numa,
    nvidia_smi,
    nvme,
    packages,
    pci,
    pci_recorded,
    pci_walk,
    redfish_recorded,
    topology,
    unattended,
)
from .pci_attributes import ErrorCounts, error_counts

_KINDS = ("gpu", "nic", "nvme")
# Each pair of them is looked at.  No machine has as many; their virtual functions count.
_MOST_GPUS, _MOST_OTHERS = 512, 1024
_NO_GPU = Unknown("not asked: there is no GPU")
_NO_DRIVER = driver.Driver(_NO_GPU, _NO_GPU, _NO_GPU, {}, _NO_GPU, _NO_GPU, _NO_GPU, _NO_GPU, _NO_GPU)


def observe(host: Host, gpu_match: Sequence[Mapping[str, Any]]) -> Dict[str, Any]:
    """Subjects by name, each as its own observer gives it."""
    bus = _bus(host, gpu_match)
    devices, ways = list(bus.devices), bus.ways
    have: Dict[str, Any] = {
        "gpus": bus.gpus,
        "devices": devices,
        "ways": ways,
        "excerpts": bus.excerpts,
        "today": time.strftime("%Y-%m-%d", time.gmtime()),
    }
    have["network"] = network.observe(host)
    have.update(_disks(host, bus))
    have.update(_gpu_side(host, bus))
    have.update(_machine(host))
    have.update(_growth(host, devices, ways, have["network"]))
    return have


def _bus(host: Host, gpu_match: Sequence[Mapping[str, Any]]) -> pci_recorded.Bus:
    gpus = pci.observe_gpus(host, gpu_match)
    if isinstance(gpus, Unknown):
        bus = pci_recorded.Bus(gpus) if host.is_live else pci_recorded.observe(host, gpu_match, _KINDS)
        known = bus.gpus if isinstance(bus.gpus, Unknown) else bus.gpus[:_MOST_GPUS]
        return replace(bus, gpus=known, devices=tuple(_kept(bus.devices)))
    everything = pci.observe(host, gpu_match)
    devices = _kept([one for one in everything if one.kind in _KINDS])
    # Configuration spaces are slow to read: those of GPUs and NICs are looked into.
    close = [one.address for one in devices if one.kind in ("gpu", "nic")]
    ways = pci_walk.observe(host, [one.address for one in devices], close)
    return pci_recorded.Bus(gpus[:_MOST_GPUS], tuple(devices), ways, raid=nvme.raid_controllers(everything))


def _kept(devices: Sequence[pci.Device]) -> List[pci.Device]:
    """In their order, as many as are looked at."""
    left = {"gpu": _MOST_GPUS, "nic": _MOST_OTHERS, "nvme": _MOST_OTHERS}
    found: List[pci.Device] = []
    for one in devices:
        left[one.kind] -= 1
        if left[one.kind] >= 0:
            found.append(one)
    return found


def _disks(host: Host, bus: pci_recorded.Bus) -> Dict[str, Any]:
    controllers = nvme.observe(host)
    names = [] if isinstance(controllers, Unknown) else [one.name for one in controllers]
    return {"nvme": controllers, "smart": nvme.observe_smart(host, names[:_MOST_OTHERS]), "raid": bus.raid}


def _gpu_side(host: Host, bus: pci_recorded.Bus) -> Dict[str, Any]:
    gpus = bus.gpus
    if host.is_live and not isinstance(gpus, Unknown) and not gpus:
        nothing = fabric.Fabric((), (), _NO_GPU, _NO_GPU, False, _NO_GPU, _NO_GPU)
        return {"smi": _NO_GPU, "nvlinks": _NO_GPU, "topo": _NO_GPU, "fabric": nothing, "driver": _NO_DRIVER,
                "packages": _NO_GPU, "unattended": _NO_GPU, "libraries": _NO_GPU, "kernel_log": _NO_GPU}  # fmt: skip
    smi = nvidia_smi.observe(host)
    models = _models(smi, gpus)
    has_nvlink5 = any(model.nvlink is not None and model.nvlink.gen >= 5 for model in models)
    seen = fabric.observe(host, has_nvlink5)
    if isinstance(seen.switches, Unknown) and bus.switches is not None:
        seen = replace(seen, switches=bus.switches)
    links = _links(host, smi, any(model.nvlink for model in models) or not models, seen.has_nvswitch is True)
    if isinstance(smi, Unknown) and not host.is_live:
        smi = nvidia_smi.named_by_nvlink(links.links, smi)
    return {
        "smi": smi,
        "nvlinks": links.links,
        "topo": links.topo,
        "fabric": seen,
        "driver": driver.observe(host),
        "packages": packages.observe(host),
        "unattended": unattended.observe(host),
        "libraries": libraries.observe(host),
        "kernel_log": kernel_log.observe(host),
    }


def _models(smi: Any, gpus: Union[List[pci.Device], Unknown]) -> List[catalogue.Gpu]:
    ids = [] if isinstance(gpus, Unknown) else ["%s:%s" % (gpu.vendor_id, gpu.device_id) for gpu in gpus]
    ids += [] if isinstance(smi, Unknown) else [str(gpu.pci_id) for gpu in smi.gpus]
    return [model for pci_id in ids for model in catalogue.all_by_pci_id(pci_id)]


def _links(host: Host, smi: Any, has_nvlink: bool, has_nvswitch: bool) -> interconnect.Interconnect:
    if host.is_live and isinstance(smi, Unknown):
        # It hung, or has no driver to ask: a second run would only cost its deadline as well.
        return interconnect.Interconnect(Unknown("not asked: %s" % smi.reason), Unknown("not asked: %s" % smi.reason))
    return interconnect.observe(host, has_nvlink, has_nvswitch)


def _machine(host: Host) -> Dict[str, Any]:
    cpus = cpu.observe(host)
    tables = dmi.observe(host)
    sockets, model = _processors(tables)
    said = None if host.exists(cpu.CPU_FOLDER) else cpu.recorded_lscpu(host)
    if said is not None and isinstance(said.sockets, int):
        sockets = said.sockets
    governors = cpufreq.policies(host, ["governor"])
    nodes = numa.observe(host)
    power = ipmi_power.observe(host)
    redfish = redfish_recorded.observe(host)
    return {
        "virtualization": topology.virtualization(host),
        "sockets": len(set(cpus.package_of.values())) or sockets,
        "cpu_model": cpu.model(host) or model,
        "nodes": nodes,
        "memory_total_mib": _total(nodes),
        "governors": _governors(governors),
        "firmware": firmware.observe(host),
        "dmi": tables,
        "power": redfish_recorded.joined(power, redfish),
        "redfish": redfish,
        "bmc": bmc.observe(host, power),
    }


def _processors(tables: dmi.Dmi) -> Tuple[int, Optional[str]]:
    """How many sockets the firmware's tables show as populated, and with which processor."""
    found = (
        [] if isinstance(tables.processors, Unknown) else [one for one in tables.processors if one.is_populated is True]
    )
    return len(found), next((one.model for one in found if isinstance(one.model, str)), None)


def _total(nodes: Union[List[numa.Node], Unknown]) -> Union[int, Unknown]:
    if isinstance(nodes, Unknown):
        return nodes
    sizes = [node.memory_mib for node in nodes]
    unknown = next((size for size in sizes if isinstance(size, Unknown)), None)
    return unknown if unknown is not None else sum(size for size in sizes if isinstance(size, int))


def _governors(policies: Any) -> Tuple[str, ...]:
    if not isinstance(policies, dict):
        return ()
    values = policies["values"]["governor"].values()
    return tuple(sorted({value for value in values if isinstance(value, str)}))


def _growth(host: Host, devices: Sequence[pci.Device], ways: Mapping[str, Any], net: network.Network) -> Dict[str, Any]:
    """What grew since it was first read: the runs of nvidia-smi and the like lie in between."""
    again = fresh(host)
    grown: Dict[str, Dict[str, int]] = {}
    for device in devices:
        way = ways.get(device.address)
        if way is not None and not isinstance(way, Unknown):
            grown[device.address] = _more(way.device.errors, _errors(again, device.address))
    return {
        "error_growth": grown,
        "network_growth": network.deltas(network.counters(net), network.read_counters_again(again, net)),
    }


def _errors(host: Host, address: str) -> ErrorCounts:
    folder = "%s/%s/aer_dev_" % (pci.DEVICE_FOLDER, address)
    return error_counts(*(host.read(folder + name) for name in ("correctable", "nonfatal", "fatal")))


def _more(before: ErrorCounts, after: ErrorCounts) -> Dict[str, int]:
    found: Dict[str, int] = {}
    for name in ("correctable", "nonfatal", "fatal"):
        first, second = getattr(before, name), getattr(after, name)
        if isinstance(first, int) and isinstance(second, int) and second > first:
            found[name] = second - first
    return found
