# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The network side of hosts: RoCE, InfiniBand, a bond, soft RoCE, the way to NVSwitches; and tools that fail."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any, Sequence

import pytest
from fakes import FakeHost, Program
from test_fuzz import Blind, Garbled

from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import CaptureHost, MemoHost, Result
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import Unknown, jsonable, readable
from ansible_collections.gpufleet.host.plugins.module_utils._observe import mlnx_qos, netdev, network, rdma, show_gids
from ansible_collections.gpufleet.host.plugins.module_utils._observe.rdma_recorded import agreed
from ansible_collections.gpufleet.host.plugins.module_utils._observe.rdma_states import (
    is_software_name,
    parse_physical_state,
    parse_port_state,
    parse_rate,
)

CORPUS = Path(__file__).resolve().parents[5] / "tests/corpus"

PFC_3 = json.dumps({"pfc_cap": 8, "prio_pfc": [number == 3 for number in range(8)]})
DSCP = json.dumps({"dscp_prio": [[26, 3, " "], [48, 6, " "]]})
PAUSE = "Pause parameters for X:\nAutonegotiate:\toff\nRX:\t\toff\nTX:\t\ton\n"
STATISTICS = "NIC statistics:\n     rx_prio3_pause: 1523\n     rx_packets: 9\n     rx_discards_phy: 0\n"


class Wired(FakeHost):
    """A host with adapters; what its tools say is in ``answers``, and what was asked in ``asked``."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.asked: list[str] = []
        self.answers: dict[str, Result] = {
            "ibv_devinfo": Result(0, "", ""),
            "dcb -j pfc": Result(0, PFC_3, ""),
            "dcb -j app": Result(0, DSCP, ""),
            "dcb -j dcbx": Result(0, '{"host":true,"ieee":true}', ""),
            "ethtool -a": Result(0, PAUSE, ""),
            "ethtool -S": Result(0, STATISTICS, ""),
        }

    def commands(self) -> dict[str, Program]:
        return {}

    def run(self, argv: Sequence[str], deadline_s: float = 10.0) -> Result:
        words = " ".join(argv)
        self.asked.append(words)
        found = (result for start, result in self.answers.items() if words == start or words.startswith(start + " "))
        return next(found, Result(-1, "", "", "%s is not installed" % argv[0]))

    def link(self, path: str, target: str) -> None:
        place = Path(self.root + path)
        place.parent.mkdir(parents=True, exist_ok=True)
        os.symlink(target, place)

    def function(self, address: str, driver: str = "mlx5_core", **files: str) -> str:
        """A PCI function, and its folder."""
        real = "/sys/devices/pci0000:00/" + address
        every = {"vendor": "0x15b3", "device": "0x1021", "class": "0x020000", "numa_node": "1", **files}
        for name, text in every.items():
            self.put("%s/%s" % (real, name), text + "\n")
        self.link(real + "/driver", "../../../bus/pci/drivers/" + driver)
        self.link("/sys/bus/pci/devices/" + address, "../../../devices/pci0000:00/" + address)
        return real

    def device(self, name: str, real: str, **files: str) -> None:
        place = "%s/infiniband/%s" % (real, name)
        every = {"fw_ver": "28.39.1002", "hca_type": "MT4129", "board_id": "MT_0000000838", "node_desc": "host HCA",
                 "node_guid": "a088:c203:00b9:6e51", "sys_image_guid": "a088:c203:00b9:6e51", **files}  # fmt: skip
        for file, text in every.items():
            self.put("%s/%s" % (place, file), text + "\n")
        self.link("/sys/class/infiniband/" + name, "../../" + place[len("/sys/") :])
        if "/virtual" not in real:
            self.link(place + "/device", "../../../" + os.path.basename(real))

    def port(self, device: str, number: int, gids: Sequence[tuple[int, str, str, str]] = (), **files: str) -> None:
        folder = "/sys/class/infiniband/%s/ports/%d" % (device, number)
        every = {"state": "4: ACTIVE", "phys_state": "5: LinkUp", "rate": "400 Gb/sec (4X NDR)", "lid": "0x0",
                 "link_layer": "Ethernet", "sm_lid": "0x0", "counters/link_downed": "0",
                 "hw_counters/out_of_sequence": "5", "hw_counters/lifespan": "12", **files}  # fmt: skip
        for file, text in every.items():
            self.put("%s/%s" % (folder, file), text + "\n")
        for index in range(60):
            self.put("%s/gids/%d" % (folder, index), "0000:0000:0000:0000:0000:0000:0000:0000\n")
        for index, address, kind, name in gids:
            self.put("%s/gids/%d" % (folder, index), address + "\n")
            self.put("%s/gid_attrs/types/%d" % (folder, index), kind + "\n")
            if name:
                self.put("%s/gid_attrs/ndevs/%d" % (folder, index), name + "\n")

    def interface(self, name: str, real: str = "", **files: str) -> None:
        every = {"operstate": "up", "carrier": "1", "mtu": "9000", "speed": "400000", "duplex": "full", "dev_port": "0",
                 "carrier_changes": "3", "carrier_up_count": "2", "carrier_down_count": "1", **files}  # fmt: skip
        place = "%s/net/%s" % (real or "/sys/devices/virtual", name)
        for file, text in every.items():
            self.put("%s/%s" % (place, file.replace("bonding_", "bonding/")), text + "\n")
        if real:
            self.link(place + "/device", "../../../" + os.path.basename(real))
        self.link("/sys/class/net/" + name, "../../" + place[len("/sys/") :])


def table(interface: str) -> list[tuple[int, str, str, str]]:
    local, mapped = "fe80:0000:0000:0000:a288:c2ff:fe49:733a", "0000:0000:0000:0000:0000:ffff:0a14:0e42"
    return [
        (0, local, "IB/RoCE v1", interface),
        (1, local, "RoCE v2", interface),
        (2, mapped, "IB/RoCE v1", interface),
        (5, mapped, "RoCE v2", interface),
    ]


def devinfo(name: str, state: str = "PORT_ACTIVE (4)", mtu: str = "4096 (5)") -> str:
    rows = "hca_id:\t%s\n\tphys_port_cnt:\t1\n\t\tport:\t1\n\t\t\tstate:\t%s\n\t\t\tmax_mtu:\t4096 (5)\n\t\t\tactive_mtu:\t%s\n"
    return rows % (name, state, mtu)


@pytest.fixture
def host(tmp_path: Path) -> Wired:
    """Two RoCE ports, one of them not the first in the order of names."""
    made = Wired(tmp_path)
    for name, address, interface in (("mlx5_10", "0000:a0:00.0", "ens10"), ("mlx5_2", "0000:20:00.0", "ens2")):
        real = made.function(address)
        made.device(name, real)
        made.interface(interface, real)
        made.port(name, 1, table(interface))
    made.answers["ibv_devinfo"] = Result(0, devinfo("mlx5_2") + devinfo("mlx5_10", mtu="1024 (3)"), "")
    return made


def test_a_healthy_host(host: Wired) -> None:
    seen = network.observe(host)
    assert not isinstance(seen.devices, Unknown)
    assert [device.name for device in seen.devices] == ["mlx5_2", "mlx5_10"]
    device = seen.devices[0]
    assert (device.address, device.numa_node, device.driver) == ("0000:20:00.0", 1, "mlx5_core")
    assert (device.is_software, device.is_nvswitch_bridge, device.is_virtual_function) == (False, False, False)
    assert (device.hca_type, device.board_id, device.firmware) == ("MT4129", "MT_0000000838", "28.39.1002")
    (port,) = device.ports
    assert (port.state, port.physical_state, port.rate_gbps, port.link_layer) == (
        "ACTIVE",
        "LINK_UP",
        400.0,
        "Ethernet",
    )
    assert (port.netdev, port.interfaces, port.lid) == ("ens2", ("ens2",), 0)
    assert (show_gids.usable_index(port.gids), len(port.gids)) == (5, 4)
    assert (port.max_mtu, port.active_mtu, seen.ports[1].active_mtu) == (4096, 4096, 1024)
    assert port.counters == {"link_downed": 0, "out_of_sequence": 5}
    assert isinstance(port.default_tos, Unknown)
    assert (seen.netdevs["ens2"].operstate, seen.netdevs["ens2"].mtu, seen.netdevs["ens2"].speed_mbps) == (
        "up",
        9000,
        400000,
    )
    qos = seen.qos["ens2"]
    assert (qos.source, qos.pfc, qos.trust, qos.dcbx) == ("dcb", frozenset({3}), "dscp", "os")
    assert (qos.pause_rx, qos.pause_tx, qos.priority_of_dscp) == (False, True, {26: 3, 48: 6})
    assert isinstance(qos.ecn_np, Unknown)
    assert qos.counters == {"rx_prio3_pause": 1523, "rx_discards_phy": 0}
    assert seen.complaints == ()
    assert len(host.asked) == 1 + 2 * 5


def test_the_files_of_the_vendor_driver(host: Wired) -> None:
    folder = "/sys/class/net/ens2/"
    for priority in range(8):
        host.put(folder + "ecn/roce_np/enable/%d" % priority, "%d\n" % (priority == 3))
        host.put(folder + "ecn/roce_rp/enable/%d" % priority, "0\n")
    host.put(folder + "ecn/roce_np/cnp_dscp", "48\n")
    host.put(folder + "qos/trust", "pcp\n")
    host.put("/sys/class/infiniband/mlx5_2/tc/1/traffic_class", "Global tclass=106\n")
    host.put("/sys/class/infiniband/mlx5_10/tc/1/traffic_class", "")
    seen = network.observe(host)
    qos = seen.qos["ens2"]
    assert (qos.ecn_np, qos.ecn_rp, qos.cnp_dscp, qos.trust) == (frozenset({3}), frozenset(), 48, "pcp")
    assert [port.default_tos for port in seen.ports] == [106, None]


def test_what_moved_between_two_readings(host: Wired) -> None:
    seen = network.observe(host)
    before = network.counters(seen)
    assert before["mlx5_2/1:link_downed"] == 0 and before["ens2:carrier_changes"] == 3
    host.put("/sys/class/infiniband/mlx5_2/ports/1/counters/link_downed", "2\n")
    host.put("/sys/class/net/ens2/carrier_changes", "7\n")
    host.put("/sys/class/infiniband/mlx5_10/ports/1/hw_counters/out_of_sequence", "1\n")
    os.unlink(host.root + "/sys/class/infiniband/mlx5_10/ports/1/counters/link_downed")
    host.answers["ethtool -S"] = Result(0, STATISTICS.replace("1523", "1600"), "")
    moved = network.deltas(before, network.read_counters_again(host, seen))
    assert (moved["mlx5_2/1:link_downed"], moved["ens2:carrier_changes"], moved["ens2:rx_prio3_pause"]) == (2, 4, 77)
    assert moved["mlx5_2/1:out_of_sequence"] == 0
    for name in ("mlx5_10/1:out_of_sequence", "mlx5_10/1:link_downed"):
        assert isinstance(moved[name], Unknown)


def test_deltas_do_not_invent() -> None:
    assert network.deltas({"a": 1, "b": Unknown("x")}, {"a": 1, "b": 2, "c": 3}) == {
        "a": 0,
        "b": Unknown("x"),
        "c": Unknown("read once only"),
    }


def test_a_host_without_rdma_is_asked_for_nothing(tmp_path: Path) -> None:
    host = Wired(tmp_path)
    host.interface("eth0")
    seen = network.observe(host)
    assert (seen.devices, seen.nics, seen.qos, host.asked) == ((), (), {}, [])


def test_a_sysfs_that_cannot_be_seen_is_unknown(tmp_path: Path) -> None:
    seen = network.observe(Wired(tmp_path))
    assert isinstance(seen.devices, Unknown) and seen.ports == ()
    assert network.counters(seen) == {}


def test_soft_roce_is_no_nic(host: Wired) -> None:
    host.device("rxe0", "/sys/devices/virtual", node_desc="rxe", hca_type="")
    host.port("rxe0", 1, table("eth1"))
    host.interface("eth1")
    # An old kernel hangs a soft device, called anything, below the NIC of its interface.
    real = host.function("0000:01:00.0", driver="e1000e", vendor="0x8086")
    host.device("fast", real, node_desc="rxe", hca_type="")
    host.port("fast", 1, table("eth2"))
    seen = network.observe(host)
    assert not isinstance(seen.devices, Unknown)
    assert {device.name for device in seen.devices if device.is_software} == {"rxe0", "fast"}
    assert [device.name for device in seen.nics] == ["mlx5_2", "mlx5_10"]
    assert set(seen.qos) == {"ens2", "ens10"}


def test_the_way_to_the_nvswitches_is_no_nic(host: Wired) -> None:
    for number, data in ((4, "\x82\x10ConnectX-7\x90V0 SMDL=SW_MNG"), (5, "\x82\x10ConnectX-7\x90V0")):
        real = host.function("0000:0%d:00.0" % number, vpd=data, **{"class": "0x020700"})
        host.device("mlx5_%d" % number, real)
        host.port("mlx5_%d" % number, 1, link_layer="InfiniBand", lid="0x1a", sm_lid="0x1")
    real = host.function("0000:06:00.0", **{"class": "0x020700"})
    host.device("mlx5_6", real)
    os.mkdir(host.root + real + "/vpd")
    seen = network.observe(host)
    assert [device.name for device in seen.nics] == ["mlx5_2", "mlx5_5", "mlx5_6", "mlx5_10"]
    assert isinstance(seen.nics[2].is_nvswitch_bridge, Unknown), "without root it cannot be read"
    assert (seen.nics[1].ports[0].lid, seen.nics[1].ports[0].sm_lid) == (26, 1)


def test_a_bond_is_asked_by_its_members(host: Wired) -> None:
    one = host.function("0000:30:00.0")
    host.device("mlx5_bond_0", one)
    host.port("mlx5_bond_0", 1, table("bond0"))
    host.interface("p0", one)
    host.interface("p1", host.function("0000:30:00.1"), operstate="down", carrier="0", speed="-1")
    host.interface("bond0", bonding_slaves="p0 p1", bonding_mode="802.3ad 4")
    host.link("/sys/devices/pci0000:00/0000:30:00.0/net/p0/master", "../../../../virtual/net/bond0")
    seen = network.observe(host)
    (port,) = (port for port in seen.ports if port.device == "mlx5_bond_0")
    assert (port.netdev, port.interfaces) == ("bond0", ("p0", "p1"))
    assert {"p0", "p1"} <= set(seen.qos) and "bond0" not in seen.qos
    assert (seen.netdevs["bond0"].members, seen.netdevs["bond0"].bond_mode) == (("p0", "p1"), "802.3ad")
    assert (seen.netdevs["p0"].bond, seen.netdevs["p1"].has_carrier) == ("bond0", False)
    assert isinstance(seen.netdevs["p1"].speed_mbps, Unknown)


def test_two_ports_of_one_function_and_ipoib(tmp_path: Path) -> None:
    host = Wired(tmp_path)
    real = host.function("0000:05:00.0", driver="mlx4_core")
    host.device("mlx4_0", real, hca_type="MT4099")
    host.port("mlx4_0", 1, link_layer="InfiniBand", lid="0x4", sm_lid="0x4")
    host.port("mlx4_0", 2, link_layer="InfiniBand", state="1: DOWN", phys_state="2: Polling")
    host.interface("ib0", real, operstate="down", carrier="0")
    host.interface("ib1", real, dev_port="1")
    host.interface("ib0.8001", real)
    host.put("/sys/class/net/ib0.8001/parent", "ib0\n")
    first, second = network.observe(host).ports
    # The network interface is down while the port is active: both are told.
    assert (first.netdev, first.state, second.netdev, second.state) == ("ib0", "ACTIVE", "ib1", "DOWN")
    seen = network.observe(host)
    assert (seen.netdevs["ib0"].has_carrier, seen.qos) == (False, {})


def test_several_interfaces_of_which_none_fits(tmp_path: Path) -> None:
    host = Wired(tmp_path)
    real = host.function("0000:05:00.0")
    host.device("mlx5_0", real)
    host.port("mlx5_0", 1)
    host.interface("a", real)
    host.interface("b", real)
    host.interface("rep", real, phys_port_name="pf0vf1")
    (port,) = network.observe(host).ports
    assert isinstance(port.netdev, Unknown) and port.interfaces == ()
    os.unlink(tmp_path / "sys/class/net/b")
    for name in ("operstate", "dev_port"):
        os.unlink(tmp_path / ("sys/devices/pci0000:00/0000:05:00.0/net/b/" + name))
    (port,) = network.observe(host).ports
    assert port.netdev == "a"


def test_tools_that_are_missing(host: Wired) -> None:
    host.answers = {}
    seen = network.observe(host)
    assert seen.ports[0].state == "ACTIVE"
    assert isinstance(seen.ports[0].active_mtu, Unknown)
    qos = seen.qos["ens2"]
    for value in (qos.pfc, qos.trust, qos.priority_of_dscp, qos.dcbx, qos.pause_rx):
        assert isinstance(value, Unknown) and "not installed" in value.reason
    assert host.asked.count("dcb -j pfc show dev ens10") == 0, "a tool that is missing is asked for once"
    assert seen.complaints == ("ibv_devinfo: ibv_devinfo is not installed",)


def test_only_mlnx_qos_is_there(host: Wired) -> None:
    for name in list(host.answers):
        if name.startswith("dcb"):
            del host.answers[name]
    text = (CORPUS / "mlnx_qos/qos-dscp-pfc5-ets-default-priority.txt").read_text()
    host.answers["mlnx_qos"] = Result(0, text, "")
    qos = network.observe(host).qos["ens2"]
    assert (qos.source, qos.pfc, qos.trust, qos.dcbx) == ("mlnx_qos", frozenset({5}), "dscp", "os")


def test_tools_that_hang_are_named_and_left_alone(host: Wired) -> None:
    for name in ("ibv_devinfo", "dcb -j pfc", "ethtool -a"):
        host.answers[name] = Result(-1, "", "", "%s hung: no answer in 5 s" % name.split()[0])
    seen = network.observe(host)
    assert seen.ports[0].state == "ACTIVE" and seen.netdevs["ens10"].operstate == "up"
    assert isinstance(seen.ports[1].active_mtu, Unknown) and "hung" in seen.ports[1].active_mtu.reason
    for qos in seen.qos.values():
        assert isinstance(qos.pfc, Unknown) and "hung" in qos.pfc.reason
        assert isinstance(qos.pause_tx, Unknown) and "hung" in qos.pause_tx.reason
    assert len([words for words in host.asked if words.startswith(("dcb", "ethtool"))]) == 2


def test_a_driver_that_has_no_dcb_and_no_pause(host: Wired) -> None:
    refused = Result(1, "", "Attribute read: Operation not supported\n")
    host.answers = {"dcb": refused, "ethtool -a": Result(76, "", "netlink error: Operation not supported\n")}
    host.answers["ethtool -S"] = Result(0, "no stats available\n", "")
    qos = network.observe(host).qos["ens2"]
    assert isinstance(qos.pfc, Unknown) and "not supported" in qos.pfc.reason
    assert isinstance(qos.pause_rx, Unknown) and qos.pause_rx.reason.startswith("not applicable")
    assert qos.counters == {}


def test_trust_of_another_driver_is_what_it_says(tmp_path: Path) -> None:
    host = Wired(tmp_path)
    real = host.function("0000:05:00.0", driver="bnxt_en", vendor="0x14e4")
    host.device("bnxt_re0", real)
    host.interface("ens5", real)
    host.port("bnxt_re0", 1, table("ens5"))
    assert isinstance(network.observe(host).qos["ens5"].trust, Unknown)
    host.answers["dcb -j apptrust"] = Result(0, '{"order":["dscp","pcp"]}', "")
    assert network.observe(host).qos["ens5"].trust == "dscp"


def test_no_dscp_is_mapped_and_the_firmware_decides(host: Wired) -> None:
    host.answers["dcb -j app"] = Result(0, "", "")
    host.answers["dcb -j dcbx"] = Result(0, "{}", "")
    qos = network.observe(host).qos["ens2"]
    assert (qos.trust, qos.priority_of_dscp, qos.dcbx) == ("pcp", {}, "firmware")


def test_sources_that_contradict_each_other_are_named(host: Wired) -> None:
    host.answers["ibv_devinfo"] = Result(255, devinfo("mlx5_2", "PORT_DOWN (1)"), "Failed to open device\n")
    first, second = network.observe(host).ports
    assert first.state == Unknown("contradiction: sysfs says ACTIVE, ibv_devinfo says DOWN")
    assert second.state == "ACTIVE" and isinstance(second.active_mtu, Unknown)


def test_agreed() -> None:
    assert agreed({"a": "X", "b": Unknown("y"), "c": "X"}) == "X"
    assert agreed({"b": Unknown("y")}) == Unknown("y")
    assert isinstance(agreed({}), Unknown)


def test_a_gid_table_that_cannot_be_read_in_part(host: Wired) -> None:
    folder = host.root + "/sys/class/infiniband/mlx5_2/ports/1/"
    os.unlink(folder + "gids/0")
    os.mkdir(folder + "gids/0")
    os.unlink(folder + "gid_attrs/types/1")
    (Path(folder) / "gids/55").write_text("0000:0000:0000:0000:0000:ffff:0a14:0e42\n")
    (port, _other) = network.observe(host).ports
    assert [(gid.index, isinstance(gid.version, Unknown)) for gid in port.gids] == [(1, True), (2, False), (5, False)]


@pytest.mark.parametrize(
    ("parse", "text", "expected"),
    [
        (parse_port_state, "4: ACTIVE\n", "ACTIVE"),
        (parse_port_state, "PORT_ACTIVE (4)", "ACTIVE"),
        (parse_port_state, "5: ACTIVE_DEFER", "ACTIVE_DEFER"),
        (parse_port_state, "Initializing", "INIT"),
        (parse_port_state, "aktiv", "unknown"),
        (parse_port_state, None, "unknown"),
        (parse_physical_state, "5: LinkUp\n", "LINK_UP"),
        (parse_physical_state, "6: LinkErrorRecovery", "ERROR_RECOVERY"),
        (parse_physical_state, "4: PortConfigurationTraining", "TRAINING"),
        (parse_physical_state, "<unknown>", "unknown"),
        (parse_rate, "400 Gb/sec (4X NDR)\n", 400.0),
        (parse_rate, "2.5 Gb/sec (1X SDR)", 2.5),
        (parse_rate, "", "unknown"),
        (netdev.parse_speed_mbps, "-1\n", "unknown"),
        (netdev.parse_speed_mbps, "4294967295\n", "unknown"),
        (netdev.parse_speed_mbps, "400000\n", 400000),
        (netdev.parse_carrier, "0\n", False),
        (netdev.parse_carrier, Unknown("Invalid argument"), "unknown"),
        (netdev.parse_operstate, "lowerlayerdown\n", "lowerlayerdown"),
        (netdev.parse_operstate, "unknown\n", "unknown"),
        (netdev.parse_count, "N/A (no PMA)\n", "unknown"),
        (netdev.parse_count, "18446744073709551615\n", 2**64 - 1),
        (rdma.parse_lid, "0x1a\n", 26),
    ],
)
def test_values_of_sysfs(parse: Any, text: Any, expected: Any) -> None:
    found = parse(text)
    assert ("unknown" if isinstance(found, Unknown) else found) == expected


def test_a_counter_that_a_port_has_not_is_not_applicable() -> None:
    found = netdev.parse_count("N/A (no PMA)\n")
    assert isinstance(found, Unknown) and found.reason.startswith("not applicable")


@pytest.mark.parametrize(
    ("name", "expected"),
    [("rxe0", True), ("siw_eth0", True), ("rxe_eth0", True), ("siw0", True), ("mlx5_0", False), ("rxe", False)],
)
def test_names_of_soft_devices(name: str, expected: bool) -> None:
    assert is_software_name(name) is expected


# Captures


def capture(folder: Path, *commands: tuple[str, str, int]) -> CaptureHost:
    (folder / "commands").mkdir(parents=True)
    (folder / "capture.json").write_text('{"format": 1, "hostname": "h", "taken": ""}')
    for number, (words, text, rc) in enumerate(commands):
        row = {"argv": words.split(), "rc": rc, "stdout": text, "stderr": ""}
        (folder / "commands" / ("%04d.json" % number)).write_text(json.dumps(row))
    return CaptureHost(str(folder))


def corpus(path: str) -> str:
    return (CORPUS / path).read_text()


def test_an_empty_capture_is_unknown(tmp_path: Path) -> None:
    seen = network.observe(capture(tmp_path))
    assert isinstance(seen.devices, Unknown)
    assert (seen.netdevs, seen.qos) == ({}, {})


def test_a_capture_of_tools_alone(tmp_path: Path) -> None:
    host = capture(
        tmp_path,
        ("show_gids", corpus("show_gids/gids-8dev-mixed-nogid3.txt"), 0),
        ("ibdev2netdev", corpus("ibdev2netdev/ib2net-8ports-4up-mixed.txt"), 0),
        ("mlnx_qos -i ens6", corpus("mlnx_qos/qos-default-pcp-nopfc.txt"), 0),
        ("dcb pfc show dev ens14f0", corpus("dcb/dcb-pfc-3on.txt"), 0),
        ("dcb app show dev ens14f0", corpus("dcb/dcb-dscp-empty.txt"), 0),
    )
    seen = network.observe(host)
    assert [port.name for port in seen.ports] == ["mlx5_%d/1" % number for number in range(8)]
    usable = [port.device for port in seen.ports if show_gids.usable_indexes(port.gids)]
    assert usable == ["mlx5_2", "mlx5_3"]
    assert (seen.netdevs["ens6"].has_carrier, seen.netdevs["ens4f0"].has_carrier) == (True, False)
    assert (seen.qos["ens6"].source, seen.qos["ens6"].trust, seen.qos["ens6"].pfc) == ("mlnx_qos", "pcp", frozenset())
    assert (seen.qos["ens14f0"].pfc, seen.qos["ens14f0"].trust) == (frozenset({3}), "pcp")
    assert isinstance(seen.ports[0].state, Unknown)


def test_a_capture_of_an_ibstat_that_stopped(tmp_path: Path) -> None:
    text = corpus("ibstat/ibstat-a100-all-active-0.txt")
    cut = text[: text.index("CA 'mlx5_8'")] + "ibpanic: [7] main: stat of IB device 'mlx5_8' failed: Invalid argument\n"
    seen = network.observe(capture(tmp_path, ("ibstat", cut, 255)))
    assert len(seen.nics) == 8
    assert (seen.ports[1].state, seen.ports[1].rate_gbps, seen.ports[1].sm_lid) == ("ACTIVE", 200.0, 83)
    assert seen.complaints[0].startswith("ibpanic")


def test_a_capture_in_which_two_tools_disagree(tmp_path: Path) -> None:
    link = '[{"ifindex":0,"ifname":"mlx5_7","port":1,"state":"DOWN","physical_state":"POLLING"}]'
    ibstat = "CA 'mlx5_7'\n\tCA type: MT4129\n\tNumber of ports: 1\n\tPort 1:\n\t\tState: Active\n\t\tLink layer: InfiniBand\n"
    seen = network.observe(capture(tmp_path, ("rdma -j link", link, 0), ("ibstat", ibstat, 0)))
    assert seen.ports[0].state == Unknown("contradiction: rdma says DOWN, ibstat says ACTIVE")
    assert (seen.ports[0].physical_state, seen.ports[0].link_layer) == ("POLLING", "InfiniBand")


def test_a_capture_of_ibv_devinfo(tmp_path: Path) -> None:
    seen = network.observe(capture(tmp_path, ("ibv_devinfo", corpus("ibv_devinfo/ibv-azure-h100-8ib-1an.txt"), 0)))
    assert [port.active_mtu for port in seen.ports] == [4096] * 8 + [1024]
    assert {port.link_layer for port in seen.ports} == {"InfiniBand", "Ethernet"}
    assert seen.nics[0].vendor_id == "0x15b3" and seen.qos == {}


def test_a_capture_of_soft_roce(tmp_path: Path) -> None:
    text = corpus("rdma-link/rdma-link-text-rxe-active-polling.txt")
    seen = network.observe(capture(tmp_path, ("rdma link show", text, 0)))
    assert not isinstance(seen.devices, Unknown)
    assert ([device.name for device in seen.devices], seen.nics) == (["rxe0", "rxe1"], ())


@pytest.mark.parametrize(
    "parse",
    [
        parse_port_state,
        parse_physical_state,
        parse_rate,
        netdev.parse_speed_mbps,
        netdev.parse_carrier,
        netdev.parse_operstate,
        netdev.parse_count,
        show_gids.parse_gid_type,
        rdma.parse_vital_product_data,
        mlnx_qos.parse_traffic_class,
        mlnx_qos.parse_trust,
    ],
)
def test_the_reason_of_what_could_not_be_read_is_kept(parse: Any) -> None:
    assert parse(Unknown("Input/output error")) == Unknown("Input/output error")
    assert isinstance(parse(None), Unknown)


@pytest.mark.parametrize("seed", range(60))
def test_no_network_is_too_strange_to_be_seen(host: Wired, seed: int) -> None:
    host.device("rxe0", "/sys/devices/virtual", node_desc="rxe", hca_type="")
    seen = network.observe(MemoHost(Garbled(host, seed)))
    for device in seen.nics:
        json.dumps(readable(jsonable(asdict(device))), allow_nan=False).encode("utf-8")
    moved = network.deltas(network.counters(seen), network.read_counters_again(Garbled(host, seed + 1), seen))
    assert all(isinstance(value, Unknown) or value >= 0 for value in moved.values())


@pytest.mark.parametrize("is_there", [True, False])
def test_a_blind_host_shows_no_network(is_there: bool) -> None:
    seen = network.observe(Blind(is_there))
    assert seen.ports == () and seen.qos == {}
    assert is_there or isinstance(seen.devices, Unknown)
