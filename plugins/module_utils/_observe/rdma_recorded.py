# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""RDMA devices of a capture that holds no sysfs, only what tools printed.

Where two tools contradict each other, neither is believed: the value is unknown, and both are named.
"""

from __future__ import annotations

from typing import Dict, List, Mapping, Optional, Tuple, Union

from .._engine.host import Host
from .._engine.values import Unknown
from .ibdev2netdev import Pair, parse_ibdev2netdev
from .ibstat import Adapter, Ibstat, parse_ibstat
from .ibstat import Port as IbstatPort
from .ibv_devinfo import Hca, parse_ibv_devinfo
from .ibv_devinfo import Port as HcaPort
from .netdev import Netdev
from .rdma import Device, Port
from .rdma_link import Link, parse_rdma_link
from .rdma_states import is_software_name
from .show_gids import Gid, parse_show_gids
from .tool_text import Number, Word

Key = Tuple[str, int]

_NOT_RECORDED = Unknown("not recorded")
_IBV = (("ibv_devinfo", "-v"), ("ibv_devinfo",))
_IBSTAT = (("ibstat",),)
_PAIRS = (("ibdev2netdev", "-v"), ("ibdev2netdev",))
_GIDS = (("show_gids",),)
_LINKS = (
    ("rdma", "-j", "link"),
    ("rdma", "-j", "link", "show"),
    ("rdma", "link", "-j"),
    ("rdma", "link"),
    ("rdma", "link", "show"),
    ("rdma", "-d", "link"),
)


class Recorded:
    """What the tools said, by port.  Empty where nothing of a tool is recorded."""

    def __init__(self, host: Host) -> None:
        texts = [_text(host, argvs) for argvs in (_IBV, _IBSTAT, _PAIRS, _GIDS, _LINKS)]
        self.is_empty = all(text is None for text in texts)
        ibv, ibstat, pairs, gids, links = (text or "" for text in texts)
        self.hcas: Dict[str, Hca] = {hca.name: hca for hca in parse_ibv_devinfo(ibv).hcas}
        self.ibstat: Ibstat = parse_ibstat(ibstat)
        self.adapters: Dict[str, Adapter] = {adapter.name: adapter for adapter in self.ibstat.adapters}
        self.pairs: Dict[Key, Pair] = {(pair.device, pair.port): pair for pair in parse_ibdev2netdev(pairs)}
        self.links: Dict[Key, Link] = {}
        for link in parse_rdma_link(links):
            if isinstance(link.port, int):
                self.links[link.device, link.port] = link
        self.gids: Dict[Key, Tuple[Gid, ...]] = {(p.device, p.port): p.gids for p in parse_show_gids(gids).ports}
        self.hca_ports: Dict[Key, HcaPort] = {}
        for hca in self.hcas.values():
            for hca_port in hca.ports:
                number = _place(hca_port.number, len(hca.ports))
                if number:
                    self.hca_ports[hca.name, number] = hca_port
        self.adapter_ports: Dict[Key, IbstatPort] = {}
        for adapter in self.adapters.values():
            for port in adapter.ports:
                number = _place(port.number, len(adapter.ports))
                if number:
                    self.adapter_ports[adapter.name, number] = port

    def keys(self) -> List[Key]:
        every = [*self.hca_ports, *self.adapter_ports, *self.links, *self.pairs, *self.gids]
        return list(dict.fromkeys(every))


def recorded_devices(host: Host) -> Union[Tuple[Device, ...], Unknown]:
    """The devices that any of the tools named; Unknown where no tool was recorded."""
    said = Recorded(host)
    if said.is_empty:
        return Unknown("/sys/class/infiniband cannot be seen, and no tool's output is recorded")
    keys = said.keys()
    names = dict.fromkeys([*said.hcas, *said.adapters, *(name for name, _port in keys)])
    return tuple(_device(said, name, [key for key in keys if key[0] == name]) for name in names)


def recorded_complaints(host: Host) -> Tuple[str, ...]:
    """What ibstat complained of: after an ibpanic the adapters that would follow are missing."""
    for argv in _IBSTAT:
        result = host.run(argv)
        if not result.unknown:
            return tuple(parse_ibstat(result.stdout + "\n" + result.stderr).complaints)
    return ()


def recorded_netdevs(host: Host) -> Dict[str, Netdev]:
    """What ibdev2netdev tells of network interfaces: whether they have a carrier, nothing else."""
    nothing = _NOT_RECORDED
    return {
        pair.netdev: Netdev(
            pair.netdev, nothing, pair.has_carrier, nothing, nothing, nothing, nothing, None, None, None, (), {}
        )
        for pair in Recorded(host).pairs.values()
    }


def agreed(told: Mapping[str, Word]) -> Word:
    """The value that all sources agree on; Unknown with the words of each where they do not."""
    known = {source: value for source, value in told.items() if not isinstance(value, Unknown)}
    if len(set(known.values())) > 1:
        words = ("%s says %s" % (source, value) for source, value in known.items())
        return Unknown("contradiction: %s" % ", ".join(words))
    return next(iter(known.values()), next(iter(told.values()), _NOT_RECORDED))


def _place(number: Number, ports: int) -> int:
    """The number of a port; where the line that tells it was left out, the only port is the first.  0 is none."""
    return number if isinstance(number, int) else 1 if ports == 1 else 0


def _text(host: Host, argvs: Tuple[Tuple[str, ...], ...]) -> Optional[str]:
    """What was printed, also by a command that failed half-way."""
    for argv in argvs:
        result = host.run(argv)
        if not result.unknown and (result.rc == 0 or result.stdout.strip()):
            return result.stdout
    return None


def _device(said: Recorded, name: str, keys: List[Key]) -> Device:
    hca, adapter = said.hcas.get(name), said.adapters.get(name)
    firmware: Dict[str, Word] = {}
    if hca:
        firmware["ibv_devinfo"] = hca.firmware
    if adapter:
        firmware["ibstat"] = adapter.firmware
    pairs = [said.pairs[key] for key in keys if key in said.pairs]
    addresses = [pair.address for pair in pairs if isinstance(pair.address, str)]
    vendor: Word = _NOT_RECORDED
    if hca:
        # ibv_devinfo shows the vendor by its IEEE number, which is 0x02c9 for Mellanox, and not by its PCI number.
        is_mellanox = hca.vendor_id == 0x2C9
        vendor = "0x15b3" if is_mellanox else Unknown("not a PCI vendor id: %s" % hca.vendor_id)
    return Device(
        name,
        addresses[0] if addresses else None,
        _NOT_RECORDED,
        vendor,
        adapter.type if adapter else _NOT_RECORDED,
        hca.board_id if hca else _NOT_RECORDED,
        agreed(firmware),
        hca.node_guid if hca else adapter.node_guid if adapter else _NOT_RECORDED,
        hca.sys_image_guid if hca else adapter.system_image_guid if adapter else _NOT_RECORDED,
        is_software_name(name),
        _NOT_RECORDED,
        False,
        None,
        tuple(_port(said, key) for key in sorted(keys, key=lambda key: key[1])),
    )


def _port(said: Recorded, key: Key) -> Port:
    hca, adapter = said.hca_ports.get(key), said.adapter_ports.get(key)
    link, pair = said.links.get(key), said.pairs.get(key)
    states: Dict[str, Word] = {}
    physical: Dict[str, Word] = {}
    layers: Dict[str, Word] = {}
    if link:
        states["rdma"], physical["rdma"] = link.state, link.physical_state
        if isinstance(link.lid, int):
            # The kernel tells the addresses of a subnet of InfiniBand ports only (fill_port_info of nldev.c).
            layers["rdma"] = "InfiniBand"
    if hca:
        states["ibv_devinfo"], physical["ibv_devinfo"] = hca.state, hca.physical_state
        layers["ibv_devinfo"] = hca.link_layer
    if adapter:
        states["ibstat"], physical["ibstat"] = adapter.state, adapter.physical_state
        layers["ibstat"] = adapter.link_layer
    if pair:
        states["ibdev2netdev"] = pair.port_state
    gids = said.gids.get(key) or (hca.gids if hca else ())
    if any(gid.version == 2 for gid in gids):
        layers["show_gids"] = "Ethernet"
    names = [gid.netdev for gid in gids if isinstance(gid.netdev, str)]
    netdevs: Dict[str, Word] = {"show_gids": names[0]} if names else {}
    if link and link.netdev:
        netdevs["rdma"] = link.netdev
    if pair:
        netdevs["ibdev2netdev"] = pair.netdev
    netdev = agreed(netdevs)
    return Port(
        key[0],
        key[1],
        agreed(states),
        agreed(physical),
        adapter.rate_gbps if adapter else _NOT_RECORDED,
        agreed(layers),
        _lid([hca.lid if hca else None, adapter.base_lid if adapter else None, link.lid if link else None]),
        _lid([hca.sm_lid if hca else None, adapter.sm_lid if adapter else None, link.sm_lid if link else None]),
        gids,
        netdev,
        (netdev,) if isinstance(netdev, str) else (),
        {},
        _NOT_RECORDED,
        hca.max_mtu if hca else _NOT_RECORDED,
        hca.active_mtu if hca else _NOT_RECORDED,
    )


def _lid(values: List[Optional[Number]]) -> Number:
    return next((value for value in values if isinstance(value, int)), _NOT_RECORDED)
