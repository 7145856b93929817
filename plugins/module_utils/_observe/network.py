# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The network side of a host for RDMA: devices, ports, interfaces and quality of service, each told apart.

sysfs first.  One run of ibv_devinfo (MTUs are nowhere else), and a few of dcb and ethtool for the Ethernet interfaces
of hardware ports.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Dict, List, Mapping, Optional, Tuple, Union

from .._engine.host import Host
from .._engine.values import Unknown
from . import rdma
from .ibv_devinfo import Port as HcaPort
from .ibv_devinfo import parse_ibv_devinfo
from .netdev import Netdev, observe_netdev, read_link_counters
from .qos import Qos, Tools, interface_counters, observe_qos
from .rdma import RDMA_FOLDER, Device, Port, observe_devices
from .rdma_recorded import agreed, recorded_complaints, recorded_devices, recorded_netdevs
from .tool_text import Number

# A host has one interface a GPU and some more; what is beyond is named and not asked.
MOST_INTERFACES = 24


@dataclass(frozen=True)
class Network:
    """``netdevs`` and ``qos`` are by the name of the interface; ``complaints`` are what tools said went wrong."""

    devices: Union[Tuple[Device, ...], Unknown]
    netdevs: Mapping[str, Netdev]
    qos: Mapping[str, Qos]
    complaints: Tuple[str, ...] = ()

    @property
    def nics(self) -> Tuple[Device, ...]:
        """The devices that are adapters: neither software nor the way to the NVSwitches."""
        found = () if isinstance(self.devices, Unknown) else self.devices
        return tuple(device for device in found if not device.is_software and device.is_nvswitch_bridge is not True)

    @property
    def ports(self) -> Tuple[Port, ...]:
        """The ports of :attr:`nics`."""
        return tuple(port for device in self.nics for port in device.ports)


def observe(host: Host) -> Network:
    is_recorded = not host.is_live and not host.exists(RDMA_FOLDER)
    devices = recorded_devices(host) if is_recorded else observe_devices(host)
    tools = Tools(host)
    complaints: List[str] = list(recorded_complaints(host)) if is_recorded else []
    if not is_recorded and not isinstance(devices, Unknown) and any(not device.is_software for device in devices):
        devices = _with_mtus(tools, devices, complaints)
    network = Network(devices, {}, {}, tuple(complaints))
    netdevs = recorded_netdevs(host) if is_recorded else _netdevs(host, network)
    interfaces = _ethernet_interfaces(network)
    left = interfaces[MOST_INTERFACES:]
    if left:
        complaints.append("not asked for their quality of service: %s" % " ".join(left))
    drivers = {name: _driver(network, netdevs, name) for name in interfaces}
    qos = {name: observe_qos(host, tools, name, drivers[name]) for name in interfaces[:MOST_INTERFACES]}
    return Network(devices, netdevs, qos, tuple(complaints))


def counters(network: Network) -> Dict[str, Number]:
    """Every counter by a name of its own: ``mlx5_0/1:link_downed``, ``ens1:carrier_changes``, ``ens1:rx_prio3_pause``."""
    found = {"%s:%s" % (port.name, name): value for port in network.ports for name, value in port.counters.items()}
    for places in (network.netdevs, network.qos):
        for place, about in places.items():
            found.update(("%s:%s" % (place, name), value) for name, value in about.counters.items())
    return found


def read_counters_again(host: Host, network: Network) -> Dict[str, Number]:
    """The same counters once more, for :func:`deltas`.  The host must be one that does not remember what it read."""
    tools = Tools(host)
    found: Dict[str, Number] = {}
    for port in network.ports:
        again = rdma.read_counters(host, port.device, port.number)
        found.update(("%s:%s" % (port.name, name), value) for name, value in again.items())
    for place, netdev in network.netdevs.items():
        again = read_link_counters(host, place) if netdev.counters else {}
        found.update(("%s:%s" % (place, name), value) for name, value in again.items())
    for place, qos in network.qos.items():
        again = interface_counters(tools, place) if qos.counters else {}
        found.update(("%s:%s" % (place, name), value) for name, value in again.items())
    return found


def deltas(before: Mapping[str, Number], after: Mapping[str, Number]) -> Dict[str, Number]:
    """How far each counter moved; unknown where it was read once only, or went back (reset or full)."""
    found: Dict[str, Number] = {}
    for name in [*before, *(name for name in after if name not in before)]:
        first, second = before.get(name), after.get(name)
        if isinstance(first, int) and isinstance(second, int):
            back = Unknown("went back from %d to %d: reset or overflowed" % (first, second))
            found[name] = second - first if second >= first else back
        else:
            found[name] = next((value for value in (first, second) if isinstance(value, Unknown)), _ONCE)
    return found


_ONCE = Unknown("read once only")


def _with_mtus(tools: Tools, devices: Tuple[Device, ...], complaints: List[str]) -> Tuple[Device, ...]:
    """MTUs from ibv_devinfo; where it contradicts sysfs on the state of a port, neither is believed."""
    text = tools.ask(["ibv_devinfo"], ["ibv_devinfo", "-v"], partial=True)
    if isinstance(text, Unknown):
        complaints.append("ibv_devinfo: %s" % text.reason)
        return tuple(replace(device, ports=_without_mtu(device.ports, text)) for device in devices)
    told: Dict[Tuple[str, int], HcaPort] = {}
    for hca in parse_ibv_devinfo(text).hcas:
        told.update(((hca.name, port.number), port) for port in hca.ports if isinstance(port.number, int))
    return tuple(replace(device, ports=tuple(_joined(port, told) for port in device.ports)) for device in devices)


def _without_mtu(ports: Tuple[Port, ...], why: Unknown) -> Tuple[Port, ...]:
    return tuple(replace(port, max_mtu=why, active_mtu=why) for port in ports)


def _joined(port: Port, told: Mapping[Tuple[str, int], HcaPort]) -> Port:
    found = told.get((port.device, port.number))
    if found is None:
        why = Unknown("ibv_devinfo does not list %s" % port.name)
        return replace(port, max_mtu=why, active_mtu=why)
    state = agreed({"sysfs": port.state, "ibv_devinfo": found.state})
    return replace(port, state=state, max_mtu=found.max_mtu, active_mtu=found.active_mtu)


def _netdevs(host: Host, network: Network) -> Dict[str, Netdev]:
    names: Dict[str, None] = {}
    for port in network.ports:
        names.update(dict.fromkeys([*([port.netdev] if isinstance(port.netdev, str) else []), *port.interfaces]))
    found = {name: observe_netdev(host, name) for name in names}
    return {name: netdev for name, netdev in found.items() if netdev is not None}


def _ethernet_interfaces(network: Network) -> List[str]:
    names: Dict[str, None] = {}
    for port in network.ports:
        if port.link_layer == "Ethernet" or (isinstance(port.link_layer, Unknown) and port.interfaces):
            names.update(dict.fromkeys(port.interfaces))
    return list(names)


def _driver(network: Network, netdevs: Mapping[str, Netdev], interface: str) -> Optional[str]:
    own = netdevs[interface].driver if interface in netdevs else None
    behind = (device.driver for device in network.nics for port in device.ports if interface in port.interfaces)
    return own or next((driver for driver in behind if driver), None) or _recorded_driver(network, interface)


def _recorded_driver(network: Network, interface: str) -> Optional[str]:
    """Without sysfs the name of the device is all there is: mlx5_0 is of mlx5_core."""
    names = (device.name for device in network.nics for port in device.ports if interface in port.interfaces)
    return "mlx5_core" if any(name.startswith("mlx5_") for name in names) else None
