# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""RDMA ports as they are: state, rate, MTU, GIDs, and the quality of service of RoCE.  Looking only.

Which ports carry the traffic of GPUs is for the operator to say (``rdma_devices``); a port that nobody named may be unused.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Sequence

from .._engine.values import Finding, Unknown
from .platform_common import known, number

Want = Mapping[str, Any]
Have = Mapping[str, Any]

_SYSFS = "Linux Documentation/ABI/stable/sysfs-class-infiniband"
_ROCE = "mlnx_qos and dcb(8) manuals"
# Counters that grow when a link fails or drops; the others only grow with traffic.
_FAULTS = ("link_downed", "symbol_error", "local_link_integrity_errors", "carrier_changes", "link_down_events_phy",
           "rx_discards_phy", "rx_crc_errors_phy", "local_ack_timeout_err", "packet_seq_err", "out_of_sequence")  # fmt: skip


def judge(want: Want, have: Have) -> List[Finding]:
    network = have["network"]
    findings: List[Finding] = []
    ports = list(network.ports)
    for port in ports:
        findings += _port(want, port)
    missing = [name for name in want["rdma_devices"] if not any(_is(name, port) for port in ports)]
    findings += [_absent(name, network.devices) for name in missing]
    findings += _rates(network) + _growth(have) + [_complaint(text) for text in network.complaints]
    findings += _gid_indexes(want, ports)
    return findings + _qos(want, network, ports)


def _is(name: str, port: Any) -> bool:
    return name in (port.device, port.name)


def _carries(want: Want, port: Any) -> bool:
    return any(_is(name, port) for name in want["rdma_devices"])


def _port(want: Want, port: Any) -> List[Finding]:
    carries = _carries(want, port)
    if known(port.state) and port.state != "ACTIVE":
        return [_unmanaged(port, carries) if port.state == "INIT" else _down(port, carries)]
    findings = [_unknown(port)] if carries and not known(port.state) else []
    # The MTU of a port that is down means nothing.
    if known(port.state) and known(port.active_mtu) and known(port.max_mtu) and port.active_mtu < port.max_mtu:
        findings.append(_mtu(port, carries))
    if port.link_layer == "Ethernet" and carries and port.gids and not _usable(port):
        findings.append(_gid(port))
    return findings


def _usable(port: Any) -> List[int]:
    """Places of RoCE v2 GIDs with an IPv4 address, found and not assumed: index 3 on many hosts, not on all."""
    return [gid.index for gid in port.gids if gid.version == 2 and gid.ipv4]


def _unknown(port: Any) -> Finding:
    return Finding(
        "platform.rdma-unknown", "warn", port.name, "ACTIVE", port.state,
        "this port carries the traffic of GPUs, and its state cannot be told",
        "rdma link; ibv_devinfo -d %s" % port.device, _SYSFS,
    )  # fmt: skip


def _absent(name: str, devices: Any) -> Finding:
    is_unseen = isinstance(devices, Unknown)
    return Finding(
        "platform.rdma-unknown" if is_unseen else "platform.rdma-absent", "warn" if is_unseen else "fail", name,
        "an RDMA device of this name", devices if is_unseen else "none",
        "platform_rdma_devices names it as one that carries the traffic of GPUs",
        "rdma link; lsmod | grep mlx5_ib; names move with udev's rdma-persistent-naming.rules", _SYSFS,
    )  # fmt: skip


def _down(port: Any, carries: bool) -> Finding:
    physical = ", %s" % port.physical_state if known(port.physical_state) else ""
    return Finding(
        "platform.rdma-down", "fail" if carries else "info", port.name, "ACTIVE", "%s%s" % (port.state, physical),
        "the port has no link, or no subnet manager gave it an address; jobs over it hang or take another way" if carries
        else "a port that nobody uses, as far as platform_rdma_devices says",
        "rdma link show %s; look at the cable and the switch; mlxlink -d %s" % (port.name, port.device), _SYSFS,
    )  # fmt: skip


def _unmanaged(port: Any, carries: bool) -> Finding:
    return Finding(
        "platform.rdma-down", "fail" if carries else "warn", port.name, "ACTIVE", "INIT: the link is up",
        "no subnet manager gave this port an address, so nothing can be sent over it",
        "sminfo; look for the subnet manager on the switch, or start opensm on one host of the fabric", _SYSFS,
    )  # fmt: skip


def _mtu(port: Any, carries: bool) -> Finding:
    return Finding(
        "platform.rdma-mtu", "warn" if carries else "info", port.name, port.max_mtu, port.active_mtu,
        "small packets cost rate and CPU; on Ethernet the interface's MTU sets it, end to end with the switches",
        "ip link set %s mtu 9000, and the same on the switch; then ibv_devinfo -d %s"
        % (port.netdev if known(port.netdev) else "INTERFACE", port.device), _SYSFS,
    )  # fmt: skip


def _gid(port: Any) -> Finding:
    return Finding(
        "platform.rdma-gid", "warn", port.name, "a RoCE v2 GID with an IPv4 address",
        "%d GIDs, none of them" % len(port.gids),
        "RoCE v2 over routers needs an address on the interface; with a link-local GID connections time out",
        "ip addr show %s; show_gids %s" % (port.netdev if known(port.netdev) else "INTERFACE", port.device), _SYSFS,
    )  # fmt: skip


def _gid_indexes(want: Want, ports: Sequence[Any]) -> List[Finding]:
    """One index for all ports is what NCCL_IB_GID_INDEX can say; where they differ it is wrong for some."""
    named = [port for port in ports if _carries(want, port)]
    found: Dict[int, List[str]] = {}
    for port in named or ports:
        usable = _usable(port) if port.link_layer == "Ethernet" else []
        if usable:
            found.setdefault(usable[0], []).append(port.name)
    if len(found) < 2:
        return []
    rows = ["index %d: %s" % (index, ", ".join(names[:8])) for index, names in sorted(found.items())]
    return [
        Finding(
            "platform.rdma-gid-index", "warn" if named else "info", "rdma", "RoCE v2 with IPv4 at one index", "; ".join(rows),
            "a GID index that is set for all ports is another kind of GID on some: connections over those time out",
            "leave NCCL_IB_GID_INDEX unset and set NCCL_IB_ADDR_FAMILY=AF_INET with NCCL_IB_ADDR_RANGE; show_gids", _SYSFS,
        )
    ]  # fmt: skip


def _rates(network: Any) -> List[Finding]:
    """Sisters of one board have one rate; a slower one has lost lanes or sits on the wrong switch port."""
    boards: Dict[str, List[Any]] = {}
    for device in network.nics:
        for port in device.ports:
            if port.state == "ACTIVE" and known(port.rate_gbps) and known(port.link_layer) and known(device.board_id):
                boards.setdefault("%s %s" % (port.link_layer, device.board_id), []).append(port)
    findings: List[Finding] = []
    for sisters in boards.values():
        best = max(number(port.rate_gbps) for port in sisters)
        findings += [
            Finding(
                "platform.rdma-rate", "warn", port.name, "%g Gb/s as its sisters" % best, "%g Gb/s" % port.rate_gbps,
                "one slow port sets the pace of every collective that stripes over all of them",
                "mlxlink -d %s -m; look at the cable and the speed of the switch port" % port.device, _SYSFS,
            )
            for port in sisters if number(port.rate_gbps) < best
        ]  # fmt: skip
    return findings


def _growth(have: Have) -> List[Finding]:
    grown = {name: count for name, count in have["network_growth"].items()
             if known(count) and count > 0 and name.rsplit(":", 1)[-1] in _FAULTS}  # fmt: skip
    return [
        Finding(
            "platform.rdma-errors", "warn", name.rsplit(":", 1)[0], "no new faults",
            "%s: %d more while it was looked at" % (name.rsplit(":", 1)[-1], count),
            "a port that drops its link or its packets again and again stalls every job that uses it",
            "rdma statistic show; look at the cable and the switch port", _SYSFS,
        )
        for name, count in sorted(grown.items())
    ]  # fmt: skip


def _complaint(text: str) -> Finding:
    if text.endswith("is not installed"):
        return Finding(
            "platform.rdma-complaint", "info", "rdma", "the tools of rdma-core", text[:300],
            "devices and states are seen without it; MTUs are not", "install ibverbs-utils (libibverbs-utils)", _SYSFS,
        )  # fmt: skip
    return Finding(
        "platform.rdma-complaint", "warn", "rdma", "no complaint", text[:300],
        "a tool could not tell all: adapters that it would have listed after this are not in the report",
        "run the tool by hand; lspci and dmesg | grep mlx5 show adapters without a driver", _SYSFS,
    )  # fmt: skip


def _qos(want: Want, network: Any, ports: Sequence[Any]) -> List[Finding]:
    """Quality of service as it is; for ports of GPU traffic, what contradicts itself or its sisters."""
    findings: List[Finding] = []
    kinds: Dict[str, List[str]] = {}
    for port in ports:
        qos = network.qos.get(port.netdev) if known(port.netdev) else None
        if qos is None:
            continue
        findings.append(_as_it_is(port, qos))
        if known(qos.pfc) and qos.pfc and (qos.pause_rx is True or qos.pause_tx is True):
            findings.append(_pause(port, qos))
        if _carries(want, port):
            kinds.setdefault(_words(qos), []).append(port.name)
    if len(kinds) > 1:
        findings.append(_unequal(kinds))
    return findings


def _words(qos: Any) -> str:
    pfc = "unknown" if isinstance(qos.pfc, Unknown) else ",".join(map(str, sorted(qos.pfc))) or "none"
    return "trust %s, PFC on %s" % (qos.trust if known(qos.trust) else "unknown", pfc)


def _as_it_is(port: Any, qos: Any) -> Finding:
    pause = ["%s %s" % (name, "on" if value else "off")
             for name, value in (("rx", qos.pause_rx), ("tx", qos.pause_tx)) if known(value)]  # fmt: skip
    ecn = [] if isinstance(qos.ecn_np, Unknown) else ["ECN on %s" % (",".join(map(str, sorted(qos.ecn_np))) or "none")]
    return Finding(
        "platform.rdma-qos", "info", port.name, "as the site wants it", "; ".join([_words(qos), *ecn, "pause %s" % (
            ", ".join(pause) or "unknown")]),
        "lossless RoCE needs trust dscp and PFC on its priority, on host and switch alike; both are gone after a boot unless "
        "something sets them", "mlnx_qos -i %s, or dcb pfc show dev %s" % (port.netdev, port.netdev), _ROCE,
    )  # fmt: skip


def _pause(port: Any, qos: Any) -> Finding:
    return Finding(
        "platform.rdma-pause", "warn", port.name, "pause off where PFC is on", _words(qos) + ", global pause on",
        "global pause stops all traffic of the port where PFC would stop one priority",
        "ethtool -A %s rx off tx off" % port.netdev, _ROCE,
    )  # fmt: skip


def _unequal(kinds: Mapping[str, Sequence[str]]) -> Finding:
    rows = ["%s: %s" % (words, ", ".join(names)) for words, names in sorted(kinds.items())]
    return Finding(
        "platform.rdma-uneven", "warn", "rdma", "one quality of service on all ports of GPU traffic", "; ".join(rows),
        "ports that differ lose packets on some of them, and a collective waits for those",
        "set them alike; mlnx_qos -i INTERFACE", _ROCE,
    )  # fmt: skip
