# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""RDMA devices and their ports, from sysfs alone: state, rate, GIDs, interfaces, place and counters.

Files: Documentation/ABI/stable/sysfs-class-infiniband of the kernel.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Dict, List, Mapping, Optional, Tuple, Union

from .._engine.host import Host
from .._engine.values import Text, Unknown
from .cpu import Number
from .mlnx_qos import parse_traffic_class
from .netdev import NETDEV_FOLDER, parse_count
from .pci import DEVICE_FOLDER, parse_numa_node
from .rdma_states import is_software_name, parse_physical_state, parse_port_state, parse_rate
from .show_gids import Gid, parse_gid, parse_gid_type
from .tool_text import Flag, Float, Word

RDMA_FOLDER = "/sys/class/infiniband"

_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_NAME = re.compile(r"[A-Za-z0-9_.+@-]{1,64}")
# A table has up to 256 places, nearly all empty: after so many empty ones behind each other the rest is taken as empty.
_MOST_GIDS = 256
_EMPTY_GIDS = 24
_MOST_PORTS = 16
_MOST_COUNTERS = 200
_MELLANOX = "0x15b3"
# On HGX B200 and B300 the NVSwitches are behind ConnectX-7 functions that belong to Fabric Manager; their vital product
# data says so (NVIDIA Fabric Manager User Guide, "NVLink Subnet Manager").
_NVSWITCH_MARK = "SMDL=SW_MNG"
_INFINIBAND_CLASS = "0x0207"
# No counters, though they lie beside them: how long values are kept.
_NO_COUNTERS = ("lifespan",)
_NOT_ASKED = Unknown("ibv_devinfo was not asked")


@dataclass(frozen=True)
class Port:
    """``netdev`` is the interface of the port, a bond where there is one; ``interfaces`` are the physical ones below.

    The rate of a port that is down means nothing, and so does its ``active_mtu``.  MTUs are told by ibv_devinfo only.
    ``default_tos`` is None where it is not set (vendor driver).
    """

    device: str
    number: int
    state: Word
    physical_state: Word
    rate_gbps: Float
    link_layer: Word
    lid: Number
    sm_lid: Number
    gids: Tuple[Gid, ...]
    netdev: Word
    interfaces: Tuple[str, ...]
    counters: Mapping[str, Number]
    default_tos: Union[int, Unknown, None] = None
    max_mtu: Number = _NOT_ASKED
    active_mtu: Number = _NOT_ASKED

    @property
    def name(self) -> str:
        return "%s/%d" % (self.device, self.number)


@dataclass(frozen=True)
class Device:
    """An RDMA device.  Those of one card have the same ``sys_image_guid``.

    ``is_software`` is soft RoCE or soft iWARP: no NIC.  ``is_nvswitch_bridge`` is the way to the NVSwitches: no NIC of
    the cluster either; unknown where the vital product data cannot be read (without root).
    """

    name: str
    address: Optional[str]
    numa_node: Number
    vendor_id: Word
    hca_type: Word
    board_id: Word
    firmware: Word
    node_guid: Word
    sys_image_guid: Word
    is_software: bool
    is_nvswitch_bridge: Flag
    is_virtual_function: bool
    driver: Optional[str]
    ports: Tuple[Port, ...]


def observe_devices(host: Host) -> Union[Tuple[Device, ...], Unknown]:
    """All devices; none is no fault, but a sysfs that cannot be seen is unknown."""
    if not host.exists(RDMA_FOLDER):
        if host.exists("/sys/class/net"):
            return ()
        return Unknown("%s cannot be seen" % RDMA_FOLDER)
    names = [name for name in host.listdir(RDMA_FOLDER) if _NAME.fullmatch(name)]
    return tuple(_device(host, name) for name in sorted(names, key=_natural))


def read_counters(host: Host, device: str, port: int) -> Dict[str, Number]:
    """All counters of a port by name: ``link_downed``, ``out_of_sequence``, ``np_cnp_sent``, …"""
    counters: Dict[str, Number] = {}
    for kind in ("counters", "hw_counters"):
        folder = "%s/%s/ports/%d/%s" % (RDMA_FOLDER, device, port, kind)
        for name in host.listdir(folder)[:_MOST_COUNTERS]:
            if name not in _NO_COUNTERS and re.fullmatch("[A-Za-z0-9_]{1,64}", name):
                counters[name] = parse_count(host.read("%s/%s" % (folder, name)))
    return counters


def parse_lid(text: Text) -> Number:
    """``0x1a``; 0 means that no subnet manager gave one."""
    return parse_count(text)


def parse_vital_product_data(text: Text) -> Flag:
    """Whether a ConnectX says of itself that it manages NVSwitches."""
    if not isinstance(text, str):
        return Unknown("no vpd") if text is None else text
    return _NVSWITCH_MARK in text


def _device(host: Host, name: str) -> Device:
    folder = "%s/%s" % (RDMA_FOLDER, name)
    target = host.readlink(folder + "/device") or ""
    address = next(iter(re.findall(_ADDRESS, target)[-1:]), None) or _address_above(host.readlink(folder) or "")
    place = "%s/%s" % (DEVICE_FOLDER, address) if address else folder + "/device"
    driver = host.readlink(place + "/driver")
    ports = [int(number) for number in host.listdir(folder + "/ports") if re.fullmatch("[0-9]{1,3}", number)]
    return Device(
        name,
        address,
        parse_numa_node(host.read(place + "/numa_node")),
        _word(host.read(place + "/vendor")),
        _word(host.read(folder + "/hca_type")),
        _word(host.read(folder + "/board_id")),
        _word(host.read(folder + "/fw_ver")),
        _word(host.read(folder + "/node_guid")),
        _word(host.read(folder + "/sys_image_guid")),
        _is_software(host, name, address),
        _is_bridge(host, place) if address else False,
        host.readlink(place + "/physfn") is not None,
        driver.rsplit("/", 1)[-1] if driver else None,
        tuple(_port(host, name, place, number) for number in sorted(ports)[:_MOST_PORTS]),
    )


def _address_above(target: str) -> Optional[str]:
    """The PCI function in the real path of the class folder's link."""
    found = re.findall(_ADDRESS, target)
    return found[-1] if found else None


def _is_software(host: Host, name: str, address: Optional[str]) -> bool:
    """Soft devices lie below /sys/devices/virtual, describe themselves (rxe, siw), or carry the default name."""
    folder = "%s/%s" % (RDMA_FOLDER, name)
    description = _word(host.read(folder + "/node_desc"))
    if "/virtual/" in (host.readlink(folder) or "") or host.exists(folder + "/parent"):
        return True
    if isinstance(description, str) and re.match(r"rxe|siw|Software iWARP", description):
        return True
    return address is None and is_software_name(name)


def _is_bridge(host: Host, place: str) -> Flag:
    """Only an InfiniBand function of Mellanox that is no virtual one can be; the data is not read of any other."""
    vendor, kind = host.read(place + "/vendor"), host.read(place + "/class")
    words = [text.strip() if isinstance(text, str) else "" for text in (vendor, kind)]
    if words[0] != _MELLANOX or not words[1].startswith(_INFINIBAND_CLASS):
        return False
    if host.readlink(place + "/physfn") is not None:
        return False
    return parse_vital_product_data(host.read(place + "/vpd"))


def _port(host: Host, device: str, place: str, number: int) -> Port:
    folder = "%s/%s/ports/%d" % (RDMA_FOLDER, device, number)
    link_layer = _word(host.read(folder + "/link_layer"))
    gids = _gids(host, folder)
    netdev = _netdev(host, gids, place, number, link_layer)
    return Port(
        device,
        number,
        parse_port_state(host.read(folder + "/state")),
        parse_physical_state(host.read(folder + "/phys_state")),
        parse_rate(host.read(folder + "/rate")),
        link_layer,
        parse_lid(host.read(folder + "/lid")),
        parse_lid(host.read(folder + "/sm_lid")),
        gids,
        netdev,
        _interfaces(host, netdev),
        read_counters(host, device, number),
        parse_traffic_class(host.read("%s/%s/tc/%d/traffic_class" % (RDMA_FOLDER, device, number))),
    )


def _gids(host: Host, folder: str) -> Tuple[Gid, ...]:
    """The entries that hold something; one that cannot be read (EINVAL) is as good as empty."""
    found: List[Gid] = []
    empty = 0
    for index in sorted(int(name) for name in host.listdir(folder + "/gids") if re.fullmatch("[0-9]{1,4}", name)):
        text = host.read("%s/gids/%d" % (folder, index))
        raw = parse_gid(text) if isinstance(text, str) else None
        # The link-local prefix alone is an empty place as well.
        if not isinstance(text, str) or raw is None or not any(raw[8:]):
            empty += 1
        else:
            empty = 0
            version = parse_gid_type(host.read("%s/gid_attrs/types/%d" % (folder, index)))
            netdev = _word(host.read("%s/gid_attrs/ndevs/%d" % (folder, index)))
            found.append(Gid(index, text.strip().lower(), version, netdev))
        if empty > _EMPTY_GIDS or index > _MOST_GIDS:
            break
    return tuple(found)


def _netdev(host: Host, gids: Tuple[Gid, ...], place: str, number: int, link_layer: Word) -> Word:
    """The kernel's own word (of the GIDs); else the interface of the same function whose dev_port fits."""
    named = [gid.netdev for gid in gids if isinstance(gid.netdev, str)]
    if named:
        # VLANs on top have GIDs of their own; the first GID is that of the interface itself.
        return named[0]
    names = [name for name in host.listdir(place + "/net") if _is_own_interface(host, name)]
    fitting = [name for name in names if parse_count(host.read("%s/%s/dev_port" % (NETDEV_FOLDER, name))) == number - 1]
    if len(fitting) == 1:
        return fitting[0]
    if len(names) == 1 and not fitting:
        return names[0]
    return Unknown("no interface" if not names else "several interfaces: %s" % " ".join(sorted(names)[:8]))


def _is_own_interface(host: Host, name: str) -> bool:
    """Neither the representor of a virtual function nor a child (IPoIB with a partition key)."""
    text = host.read("%s/%s/phys_port_name" % (NETDEV_FOLDER, name))
    is_representor = isinstance(text, str) and re.match(r"(c[0-9]{1,5})?pf[0-9]{1,5}(vf|sf)[0-9]", text) is not None
    return not is_representor and not host.exists("%s/%s/parent" % (NETDEV_FOLDER, name))


def _interfaces(host: Host, netdev: Word) -> Tuple[str, ...]:
    if not isinstance(netdev, str):
        return ()
    members = host.read("%s/%s/bonding/slaves" % (NETDEV_FOLDER, netdev))
    return tuple(members.split()[:64]) if isinstance(members, str) and members.split() else (netdev,)


def _word(text: Text) -> Word:
    if not isinstance(text, str):
        return Unknown("no such file") if text is None else text
    return text.strip() or Unknown("empty")


def _natural(name: str) -> List[Tuple[int, str]]:
    """mlx5_2 comes before mlx5_10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split("([0-9]{1,9})", name)]
