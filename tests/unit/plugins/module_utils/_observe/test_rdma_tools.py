# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tools of RDMA and network: real outputs with their reading, other versions of them, and what is cut off."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import Unknown
from ansible_collections.gpufleet.host.plugins.module_utils._observe import (
    dcb,
    dcgmi,
    dcgmi_diag,
    ethtool,
    ibdev2netdev,
    ibstat,
    ibv_devinfo,
    mlnx_qos,
    mlxconfig,
    mlxlink,
    rdma_link,
    show_gids,
)

ROOT = Path(__file__).resolve().parents[5]
CORPUS = ROOT / "tests/corpus"


def cases(kind: str) -> Any:
    rows = yaml.safe_load((ROOT / "tests/unit/cases/corpus" / (kind + ".yml")).read_text())
    assert sorted(row["file"] for row in rows) == sorted(path.name for path in (CORPUS / kind).iterdir())
    found = [pytest.param(row, (CORPUS / kind / row["file"]).read_text(), id=row["file"]) for row in rows]
    return pytest.mark.parametrize(("row", "text"), found)


def plain(value: Any) -> Any:
    """Sets and tuples as lists, Unknown as the word."""
    if isinstance(value, Unknown):
        return "unknown"
    if isinstance(value, frozenset):
        return sorted(value)
    return [plain(item) for item in value] if isinstance(value, tuple) else value


# rdma


@cases("rdma-link")
def test_rdma_link_of_the_corpus(row: dict[str, Any], text: str) -> None:
    links = rdma_link.parse_rdma_link(text)
    found = {
        "%s/%s" % (link.device, link.port): [plain(link.state), plain(link.physical_state), link.netdev]
        for link in links
    }
    assert found == row.get("links", {})
    assert [link.device for link in links if link.is_software] == row.get("software", [])
    for link in links:
        assert plain(link.sm_lid) in (0, row.get("sm_lid", {}).get(link.device, "unknown"))
    if "devices" in row:
        assert {device.name: device.firmware for device in rdma_link.parse_rdma_dev(text)} == row["devices"]


def test_rdma_link_in_its_other_forms() -> None:
    old = "1/1: mlx5_0/1: subnet_prefix fe80:0000:0000:0000 lid 13399 sm_lid 49151 lmc 0 state INIT physical_state LINK_UP\n"
    details = (
        "link mlx5_bond_0/1 state ACTIVE physical_state LINK_UP netdev bond0 netdev_index 9\n    caps: <CM, IP_BASED>\n"
    )
    wrapped = "link mlx5_1/1 state ACTIVE\n    physical_state LINK_UP netdev\n"
    first, second, third = rdma_link.parse_rdma_link(old + details.replace("\n", "\r\n") + wrapped)
    assert (first.device, first.port, first.state, first.lid, first.netdev) == ("mlx5_0", 1, "INIT", 13399, None)
    assert (second.device, second.netdev, second.physical_state) == ("mlx5_bond_0", "bond0", "LINK_UP")
    assert (third.physical_state, third.netdev) == ("LINK_UP", None)
    (json_old,) = rdma_link.parse_rdma_link('[{"ifindex":1,"port":1,"ifname":"mlx5_0/1","lid":5,"state":"DOWN"}]')
    assert (json_old.device, json_old.port, json_old.lid, json_old.state) == ("mlx5_0", 1, 5, "DOWN")
    for nothing in ("", "Failed to open NETLINK_RDMA socket\n", "[]", '[{"ifname":7}]', "[" * 5000):
        assert rdma_link.parse_rdma_link(nothing) == ()


def test_a_translated_state_is_unknown() -> None:
    (link,) = rdma_link.parse_rdma_link("link mlx5_0/1 state AKTIV physical_state LINK_UP netdev eth0\n")
    assert isinstance(link.state, Unknown) and link.physical_state == "LINK_UP"


def test_rdma_dev_without_firmware_keeps_its_columns() -> None:
    text = "2: rxe0: node_type ca protocol roce fw  node_guid 0a00:27ff:fe11:2233 sys_image_guid 0a00:27ff:fe11:2233\n"
    (device,) = rdma_link.parse_rdma_dev(text)
    assert (device.node_guid, device.protocol) == ("0a00:27ff:fe11:2233", "roce")
    assert isinstance(device.firmware, Unknown)
    (device,) = rdma_link.parse_rdma_dev('[{"ifindex":0,"ifname":"mlx5_0","node_type":"ca","fw":"28.39.1002"}]')
    assert (device.name, device.firmware) == ("mlx5_0", "28.39.1002")


def test_rdma_statistic() -> None:
    text = "link mlx5_0/1 rx_write_requests 12 np_cnp_sent 5\nlink mlx5_1/1 np_cnp_sent N/A\n"
    found = rdma_link.parse_rdma_statistic(text)
    assert found["mlx5_0/1"] == {"rx_write_requests": 12, "np_cnp_sent": 5}
    assert isinstance(found["mlx5_1/1"]["np_cnp_sent"], Unknown)
    found = rdma_link.parse_rdma_statistic('[{"ifname":"mlx5_0","port":1,"np_cnp_sent":7}]')
    assert found["mlx5_0/1"]["np_cnp_sent"] == 7


def test_a_port_that_flaps_is_in_another_state_the_second_time() -> None:
    texts = (
        "link mlx5_7/1 lid 1 sm_lid 1 lmc 0 state DOWN physical_state POLLING\nlink mlx5_0/1 state ACTIVE physical_state LINK_UP\n",
        "link mlx5_7/1 lid 1 sm_lid 1 lmc 0 state DOWN physical_state LINK_UP\nlink mlx5_0/1 state ACTIVE physical_state LINK_UP\n",
    )
    before, after = (rdma_link.parse_rdma_link(text) for text in texts)
    assert rdma_link.changed(before, after) == ["mlx5_7/1"]
    assert rdma_link.changed(after, after) == []


# GIDs


@cases("show_gids")
def test_show_gids_of_the_corpus(row: dict[str, Any], text: str) -> None:
    listing = show_gids.parse_show_gids(text)
    assert listing.rows == listing.announced == row["rows"]
    usable = {port.device: plain(show_gids.usable_index(port.gids)) for port in listing.ports}
    assert usable == {device: "unknown" if index is None else index for device, index in row["usable"].items()}
    netdevs = {port.device: plain(port.gids[0].netdev) for port in listing.ports}
    assert netdevs == {device: name or "unknown" for device, name in row["netdevs"].items()}


def test_show_gids_with_the_kernels_own_types() -> None:
    text = "mlx5_0 1 3 0000:0000:0000:0000:0000:ffff:0a14:0e42 10.20.14.66 RoCE v2 eth0\n"
    (port,) = show_gids.parse_show_gids(text).ports
    assert (port.gids[0].version, port.gids[0].netdev, show_gids.usable_index(port.gids)) == (2, "eth0", 3)


def test_show_gids_that_is_cut_off_is_told() -> None:
    text = (CORPUS / "show_gids/gids-bond.txt").read_text()
    listing = show_gids.parse_show_gids("\n".join(text.splitlines()[:4]))
    assert listing.rows == 2 and isinstance(listing.announced, Unknown)


def test_the_index_is_found_and_not_assumed() -> None:
    text = (
        "hrn5_0\t1\t0\tfe80:0000:0000:0000:0042:a1ff:fe53:a23f\t\t\tv2\teth1\n"
        "hrn5_0\t1\t1\t0000:0000:0000:0000:0000:ffff:0a0b:0c0d\t10.11.12.13  \tv2\teth1\n"
        "mlx5_1\t1\t0\t2001:0db8:0000:0000:0000:0000:0000:0001\t\t\tv1\teth2\n"
        "mlx5_1\t1\t4\t2001:0db8:0000:0000:0000:0000:0000:0001\t\t\tv2\teth2\n"
    )
    first, second = show_gids.parse_show_gids(text).ports
    assert (show_gids.usable_index(first.gids), first.gids[1].ipv4) == (1, "10.11.12.13")
    assert show_gids.usable_index(second.gids) == 4


@pytest.mark.parametrize(
    ("text", "ipv4"),
    [
        ("::ffff:192.0.2.106", "192.0.2.106"),
        ("0000:0000:0000:0000:0000:ffff:c000:026a", "192.0.2.106"),
        ("fe80::ac0:ebff:fe3e:6069", None),
        ("::", None),
        ("::ffff:999.0.2.1", None),
        ("1:2:3", None),
        ("1::2::3", None),
        ("0000:0000:0000:0000:0000:ffff:c000:026a:1", None),
        ("", None),
    ],
)
def test_both_notations_of_a_gid(text: str, ipv4: str | None) -> None:
    assert show_gids.Gid(0, text, 2, "eth0").ipv4 == ipv4


# ibv_devinfo, ibstat, ibdev2netdev


def port_rows(hcas: Any) -> dict[str, int]:
    rows = (
        "%s %s %s %s" % tuple(plain(v) for v in (port.link_layer, port.state, port.active_mtu, port.sm_lid))
        for hca in hcas
        for port in hca.ports
    )
    return dict(Counter(rows))


@cases("ibv_devinfo")
def test_ibv_devinfo_of_the_corpus(row: dict[str, Any], text: str) -> None:
    told = ibv_devinfo.parse_ibv_devinfo(text)
    assert len(told.hcas) == row["hcas"]
    assert port_rows(told.hcas) == row["ports"]
    assert port_rows([told.orphan] if told.orphan else []) == row.get("orphan", {})
    assert all(hca.port_count == len(hca.ports) for hca in told.hcas)
    if "front" in row:
        (hca,) = (hca for hca in told.hcas if hca.name == row["front"][0])
        assert [hca.name, hca.vendor_part_id, hca.sys_image_guid, hca.ports[0].active_mtu] == row["front"]
    if "cards" in row:
        assert len({hca.sys_image_guid for hca in told.hcas}) == row["cards"]
    if "usable" in row:
        assert told.orphan
        gids = told.orphan.ports[0].gids
        assert show_gids.usable_index(gids) == row["usable"]
        assert [gid.index for gid in gids if gid.is_link_local] == row["link_local"]
    for name in row.get("missing", []):
        assert isinstance(getattr(told.hcas[0], name), Unknown)


def test_ibv_devinfo_of_an_mtu_that_is_none() -> None:
    text = "hca_id: mlx5_0\n\t\tport:\t1\n\t\t\tactive_mtu:\t\tinvalid MTU (0)\n\t\t\tmax_vl_num:\tinvalid value (0)\n"
    (hca,) = ibv_devinfo.parse_ibv_devinfo(text).hcas
    assert isinstance(hca.ports[0].active_mtu, Unknown)
    assert ibv_devinfo.parse_ibv_devinfo("No IB devices found\n") == ibv_devinfo.Devinfo((), None)


@cases("ibstat")
def test_ibstat_of_the_corpus(row: dict[str, Any], text: str) -> None:
    told = ibstat.parse_ibstat(text)
    assert len(told.adapters) == row["adapters"]
    ports = [
        "%s:%s:%s:%g:%s" % (adapter.name, port.state, port.physical_state, port.rate_gbps, port.link_layer)
        for adapter in told.adapters
        for port in adapter.ports
    ]
    assert ports == row["ports"].split()
    assert (told.complaints, told.is_partial) == ((), False)
    if "lids" in row:
        port = told.adapters[0].ports[0]
        assert [port.base_lid, port.sm_lid] == row["lids"]


def test_ibstat_that_stops_keeps_what_it_printed() -> None:
    text = (CORPUS / "ibstat/ibstat-a100-all-active-0.txt").read_text()
    cut = (
        text[: text.index("CA 'mlx5_8'")]
        + "ibpanic: [1234] main: stat of IB device 'mlx5_8' failed: Invalid argument\n"
    )
    told = ibstat.parse_ibstat(cut)
    assert (len(told.adapters), told.is_partial, len(told.complaints)) == (8, True, 1)
    short = ibstat.parse_ibstat(text[: text.index("\tPort 1:")])
    assert short.is_partial
    nothing = ibstat.parse_ibstat("ibpanic: [9] main: can't list IB device names: No such file or directory\n")
    assert (nothing.adapters, nothing.is_partial) == ((), True)


def test_ibstat_of_several_hosts_and_kinds() -> None:
    text = "RNIC 'x'\niWARP RNIC 'siw0'\n\tPort 1:\n\t\tState: Active\n\t\tRate: 40 (FDR10)\nCA 'mlx4_0'\n\tPort 1:\n\t\tRate: 2.5\n"
    told = ibstat.parse_ibstat(text + text)
    assert [adapter.name for adapter in told.adapters] == ["siw0", "mlx4_0"] * 2
    assert [adapter.ports[0].rate_gbps for adapter in told.adapters[:2]] == [40.0, 2.5]


@cases("ibdev2netdev")
def test_ibdev2netdev_of_the_corpus(row: dict[str, Any], text: str) -> None:
    pairs = ibdev2netdev.parse_ibdev2netdev(text)
    found = ["%s %s %s" % (pair.device, pair.netdev, "up" if pair.has_carrier else "down") for pair in pairs]
    assert found == row["pairs"]
    if "address" in row:
        assert pairs[0].address == row["address"]


def test_ibdev2netdev_tells_the_port_and_the_interface_apart() -> None:
    text = (
        "0000:05:00.0 mlx5_0 (MT4119 - MCX556A-ECAT) CX556A - ConnectX-5 QSFP28 fw 16.25.1020 port 1 (ACTIVE) ==> ib0 (Down)\n"
        "mlx5_1 port 1 <===> eth2\nmlx5_2 port 1 ==> eth3 (NA)\n"
    )
    first, second, third = ibdev2netdev.parse_ibdev2netdev(text)
    assert (first.device, first.port_state, first.has_carrier, first.address) == (
        "mlx5_0",
        "ACTIVE",
        False,
        "0000:05:00.0",
    )
    assert (second.netdev, plain(second.has_carrier), plain(third.has_carrier)) == ("eth2", "unknown", "unknown")


# Quality of service


@cases("mlnx_qos")
def test_mlnx_qos_of_the_corpus(row: dict[str, Any], text: str) -> None:
    if "traffic_class" in row:
        tos = mlnx_qos.parse_traffic_class(text)
        assert tos == row["traffic_class"]
        assert isinstance(tos, int) and mlnx_qos.dscp_of(tos) == row["dscp_of_it"]
        return
    told = mlnx_qos.parse_mlnx_qos(text)
    for name in ("dcbx", "trust", "pfc", "cable_m", "buffer_of_priority", "buffer_total_bytes"):
        if name in row:
            assert plain(getattr(told, name)) == row[name], name
    if row.get("dscp") == "unknown":
        assert isinstance(told.priority_of_dscp, Unknown)
    elif "dscp" in row:
        assert not isinstance(told.priority_of_dscp, Unknown)
        for priority, dscps in row["dscp"].items():
            assert sorted(d for d, p in told.priority_of_dscp.items() if p == priority) == dscps
        assert sorted(told.priority_of_dscp) == list(range(64))
    shares = {
        c.number: c.algorithm + ("" if c.bandwidth_percent is None else " %d" % c.bandwidth_percent)
        for c in told.classes
    }
    assert shares == row.get("classes", shares)
    for number, priorities in row.get("priorities", {}).items():
        assert [list(c.priorities) for c in told.classes if c.number == number] == [priorities]


QOS = (CORPUS / "mlnx_qos/qos-pcp-pfc3.txt").read_text()


@pytest.mark.parametrize(
    "text",
    [
        QOS.replace("\n", " "),
        QOS.replace("\n", ""),
        QOS.replace("\n", "<br>\n"),
        QOS.replace("1   0   0   0   0   \n", "1   0   0\n"),
        QOS.replace("0   1   2   3   4", "0   1   3   2   4"),
        QOS.replace("enabled     0   0   0   1", "enabled     0   0   0   x"),
        QOS.replace("enabled", "aktiviert"),
        QOS[: QOS.index("enabled") + 30],
        QOS + QOS.replace("enabled     0   0   0   1", "enabled     0   0   0   0"),
        "",
        "Netlink error: Operation not supported\n",
    ],
)
def test_a_pfc_that_is_not_clear_is_unknown(text: str) -> None:
    assert isinstance(mlnx_qos.parse_mlnx_qos(text).pfc, Unknown)


def test_mlnx_qos_with_messages_colours_and_line_ends_of_dos() -> None:
    text = "****** WARNING: lldpad service is running and may overwrite your settings ******\r\n\r\n"
    told = mlnx_qos.parse_mlnx_qos(text + "\x1b[1m" + QOS.replace("\n", "\r\n"))
    assert (told.pfc, told.trust, len(told.warnings)) == (frozenset({3}), "pcp", 1)
    limited = mlnx_qos.parse_mlnx_qos("tc: 0 ratelimit: 10.0 Gbps, tsa: strict\n\t priority:  0\n").classes[0]
    assert (limited.ratelimit_gbps, limited.priorities, limited.bandwidth_percent) == (10.0, (0,), None)


def test_a_traffic_class_that_is_unset_differs_from_one_that_is_not_there() -> None:
    assert mlnx_qos.parse_traffic_class("") is None
    assert mlnx_qos.parse_traffic_class("\n") is None
    assert isinstance(mlnx_qos.parse_traffic_class(None), Unknown)
    assert isinstance(mlnx_qos.parse_traffic_class("Global tclass=999\n"), Unknown)
    assert isinstance(mlnx_qos.parse_traffic_class("cat: x: Invalid argument"), Unknown)
    assert mlnx_qos.parse_traffic_class("106\n") == 106


@cases("dcb")
def test_dcb_of_the_corpus(row: dict[str, Any], text: str) -> None:
    if "pfc" in row:
        pfc = dcb.parse_dcb_pfc(text)
        assert (plain(pfc.enabled), pfc.capacity) == (row["pfc"], row["capacity"])
        assert pfc.delay == row.get("delay", 0)
        for name in ("requests", "indications"):
            assert plain(getattr(pfc, name)) == row.get(name, "unknown")
    if "bandwidth" in row:
        ets = dcb.parse_dcb_ets(text)
        assert plain(ets.bandwidth_percent_of_class) == row["bandwidth"]
        assert plain(ets.algorithm_of_class) == row["algorithms"]
        assert isinstance(ets.class_of_priority, Unknown)
    if "dscp" in row:
        assert dcb.parse_dcb_app(text).priority_of_dscp == row["dscp"]


def test_dcb_json() -> None:
    pfc = dcb.parse_dcb_pfc(
        '{"pfc_cap":8,"macsec_bypass":false,"delay":0,"prio_pfc":[false,false,false,true,false,false,false,false],'
        '"requests":[0,0,0,9,0,0,0,0],"indications":[0,0,0,4,0,0,0,0]}'
    )
    assert (pfc.enabled, pfc.macsec_bypass, plain(pfc.requests)) == (frozenset({3}), False, [0, 0, 0, 9, 0, 0, 0, 0])
    words = dcb.parse_dcb_pfc('{"prio_pfc":["off","off","off","on","off","off","off","off"]}')
    assert words.enabled == frozenset({3})
    app = dcb.parse_dcb_app('{"dscp_prio":[[26,3," "],[48,6]],"default_prio":[0]}')
    assert (app.priority_of_dscp, app.default_priorities) == ({26: 3, 48: 6}, (0,))
    assert dcb.parse_dcb_app("{}").priority_of_dscp == {}
    assert dcb.parse_dcb_dcbx('{"host":true,"ieee":true}') == ("host", "ieee")
    assert dcb.parse_dcb_apptrust('{"order":["dscp","pcp"]}') == ("dscp", "pcp")
    buffer = dcb.parse_dcb_buffer(
        '{"prio_buffer":[0,0,0,1,0,0,0,0],"buffer_size":[100,200,0,0,0,0,0,0],"total_size":524288}'
    )
    assert (plain(buffer.buffer_of_priority)[3], plain(buffer.size_bytes)[:2], buffer.total_bytes) == (
        1,
        [100, 200],
        524288,
    )


def test_dcb_below_a_prompt() -> None:
    text = "[root@gpu1 ~]# dcb pfc show dev ens1\n" + (CORPUS / "dcb/dcb-pfc-3on.txt").read_text()
    assert dcb.parse_dcb_pfc(text).enabled == frozenset({3})
    text = "[root@gpu1 ~]# rdma link\nlink mlx5_0/1 state ACTIVE physical_state LINK_UP\n"
    assert len(rdma_link.parse_rdma_link(text)) == 1


def test_dcb_text_with_names_and_units() -> None:
    app = dcb.parse_dcb_app("default-prio 0 \ndscp-prio default:0 CS3:3 AF31:3 EF:5 CS6:6 63:7 \n")
    assert app.priority_of_dscp == {0: 0, 24: 3, 26: 3, 46: 5, 48: 6, 63: 7}
    assert isinstance(dcb.parse_dcb_app("dscp-prio Gold:3\n").priority_of_dscp, Unknown)
    assert dcb.parse_dcb_dcbx("host ieee \n") == ("host", "ieee")
    assert dcb.parse_dcb_dcbx("\n") == ()
    assert isinstance(dcb.parse_dcb_dcbx("Attribute read: Operation not supported"), Unknown)
    assert dcb.parse_dcb_apptrust("order: dscp pcp \n\n") == ("dscp", "pcp")
    text = "prio-buffer 0:0 1:0 2:0 3:1 4:0 5:0 6:0 7:0 \nbuffer-size 0:87Kb 1:200b 2:0b 3:0b 4:0b 5:0b 6:0b 7:1.5Mb \n"
    buffer = dcb.parse_dcb_buffer(text + "total-size 512Kb \n")
    assert plain(buffer.size_bytes) == [87 * 1024, 200, 0, 0, 0, 0, 0, 1536 * 1024]
    assert buffer.total_bytes == 512 * 1024
    rates = dcb.parse_dcb_maxrate("tc-maxrate 0:25Gbit 1:0bit 2:0bit 3:0bit 4:0bit 5:0bit 6:0bit 7:100Mbit \n")
    assert plain(rates) == [25 * 10**9, 0, 0, 0, 0, 0, 0, 100 * 10**6]
    assert plain(dcb.parse_dcb_maxrate('{"tc_maxrate":[125,0,0,0,0,0,0,0]}'))[0] == 1000


@pytest.mark.parametrize(
    "text",
    [
        "pfc-cap 8 macsec-bypass off delay 0\nprio-pfc 0:off 1:off 2:off 3:o",
        "prio-pfc 0:off 1:off 2:off 3:on",
        "prio-pfc 0:off 1:off 2:off 3:an 4:off 5:off 6:off 7:off",
        "prio-pfc 0:off 1:off 2:off 4:on 3:off 5:off 6:off 7:off",
        '{"prio_pfc":[false,false,false,true]}',
        '{"prio_pfc":[false,false,',
        "Attribute read: Operation not supported\n",
        "",
        "[" * 3000,
    ],
)
def test_a_pfc_of_dcb_that_is_not_clear_is_unknown(text: str) -> None:
    assert isinstance(dcb.parse_dcb_pfc(text).enabled, Unknown)


# ethtool


@cases("ethtool")
def test_ethtool_of_the_corpus(row: dict[str, Any], text: str) -> None:
    output = ethtool.parse_ethtool(text)
    assert len(output.rows) + len(output.headings) + len(output.complaints) == row["pairs"]
    counters = ethtool.parse_ethtool_statistics(text)
    if "counters" in row:
        assert {name: counters[name] for name in row["counters"]} == row["counters"]
        assert len(counters) == len(output.rows)
    if "port" in row:
        assert {row["port"]: counters} == ethtool.parse_show_counters(text)
    if "rings" in row:
        rings = ethtool.parse_ethtool_rings(text)
        assert [rings.rx, rings.tx, rings.rx_max, rings.tx_max] == row["rings"]
    if "coalescing" in row:
        coalescing = ethtool.parse_ethtool_coalescing(text)
        assert [coalescing.adaptive_rx, coalescing.adaptive_tx] == row["adaptive"]
        assert {name: coalescing.values[name] for name in row["coalescing"]} == row["coalescing"]
    if "pause" in row:
        pause = ethtool.parse_ethtool_pause(text)
        assert plain((pause.autonegotiate, pause.rx, pause.tx)) == row["pause"]
        assert isinstance(pause.rx, Unknown) and pause.rx.reason.startswith("not applicable")
    if "driver" in row:
        driver = ethtool.parse_ethtool_driver(text)
        assert {name: plain(getattr(driver, name)) for name in row["driver"]} == row["driver"]


def test_the_settings_of_a_link() -> None:
    text = (
        "Settings for ens1f0np0:\n\tSupported ports: [ Backplane ]\n\tSupported link modes:   25000baseCR/Full\n"
        "\t                        100000baseCR4/Full\n\tSpeed: 200000Mb/s\n\tDuplex: Full\n\tAuto-negotiation: on\n"
        "\tPort: Direct Attach Copper\n\tLink detected: yes\n"
    )
    told = ethtool.parse_ethtool_settings(text)
    assert (told.speed_mbps, told.duplex, told.autonegotiation, told.has_link) == (200000, "Full", True, True)
    output = ethtool.parse_ethtool(text)
    assert output.interface == "ens1f0np0"
    assert output.value("supported link modes") == "25000baseCR/Full 100000baseCR4/Full"
    down = ethtool.parse_ethtool_settings(
        "Settings for eth0:\n\tSpeed: Unknown!\n\tDuplex: Unknown! (255)\n\tLink detected: no (No cable)\n"
    )
    assert plain((down.speed_mbps, down.duplex, down.has_link)) == ["unknown", "unknown", False]
    gone = ethtool.parse_ethtool_settings("netlink error: No such device\nNo data available\n")
    assert isinstance(gone.speed_mbps, Unknown) and gone.speed_mbps.reason.startswith("error")


def test_pause_and_module() -> None:
    pause = ethtool.parse_ethtool_pause("Pause parameters for eth0:\nAutonegotiate:\toff\nRX:\t\ton\nTX:\t\toff\n")
    assert (pause.autonegotiate, pause.rx, pause.tx) == (False, True, False)
    pause = ethtool.parse_ethtool_pause('[ {\n"ifname": "eth0",\n"autonegotiate": false,\n"rx": true,\n"tx": true\n} ]')
    assert (pause.rx, pause.tx) == (True, True)
    module = ethtool.parse_ethtool_module(
        "\tIdentifier                                : 0x11 (QSFP28)\n\tVendor name                               : EXAMPLE\n"
        "\tVendor PN                                 : X1\n\tVendor SN                                 : S1\n"
        "\tModule temperature                        : 45.23 degrees C / 113.41 degrees F\n"
        "\tLaser rx power high alarm                 : On\n\tModule temperature high alarm             : Off\n"
    )
    assert (module.vendor, module.temperature_c, module.alarms) == ("EXAMPLE", 45.23, ("Laser rx power high alarm",))
    assert isinstance(ethtool.parse_ethtool_module("netlink error: Invalid argument\n").temperature_c, Unknown)
    rings = ethtool.parse_ethtool_rings("Ring parameters for x:\nCurrent hardware settings:\nRX:\t\tn/a\nTX:\t\t512\n")
    assert plain((rings.rx, rings.tx, rings.rx_max)) == ["unknown", 512, "unknown"]


# Firmware


@cases("mlxconfig")
def test_mlxconfig_of_the_corpus(row: dict[str, Any], text: str) -> None:
    answer = mlxconfig.parse_mlxconfig(text)
    assert [plain(device.device_type) for device in answer.devices] == row["types"]
    (device,) = answer.devices
    assert len(device.parameters) == row["rows"]
    by_name = {parameter.name: parameter for parameter in device.parameters}
    for name, values in row.get("values", {}).items():
        assert [plain(v) for v in (by_name[name].default, by_name[name].current, by_name[name].next_boot)] == values
    waiting = [parameter.name for parameter in device.parameters if parameter.waits]
    assert waiting == row.get("waits", [])
    assert waiting == [parameter.name for parameter in device.parameters if parameter.is_marked]
    for name, number in row.get("numbers", {}).items():
        assert mlxconfig.number_of(device.value(name)) == number


def test_mlxconfig_of_two_devices_and_of_none() -> None:
    text = (
        "Device #1:\n----------\n\nDevice type:        ConnectX7\nName:               MCX75310AAS-NEA_Ax\n"
        "Device:             /dev/mst/mt4129_pciconf0\n\nConfigurations:                          Next Boot\n"
        "        LINK_TYPE_P1                                IB(1)\n"
        "RO      PF_NUM_OF_VF_VALID                          False(0)\n"
        "\nDevice #2:\n----------\n\nDevice type:        ConnectX6DX\nConfigurations:         Default   Current   Next Boot\n"
        "*       SRIOV_EN     False(0)    False(0)    True(1)\n"
    )
    first, second = mlxconfig.parse_mlxconfig(text).devices
    assert (first.device, plain(first.parameters[0].current)) == ("/dev/mst/mt4129_pciconf0", "unknown")
    assert (first.value("LINK_TYPE_P1"), first.value("PF_NUM_OF_VF_VALID")) == ("IB(1)", "False(0)")
    assert [(parameter.name, parameter.waits) for parameter in second.parameters] == [("SRIOV_EN", True)]
    answer = mlxconfig.parse_mlxconfig("-E- Failed to open device: /dev/mst/x. Cannot open /dev/mst/x\n")
    assert (answer.devices, len(answer.complaints)) == ((), 1)


@cases("mlxlink")
def test_mlxlink_of_the_corpus(row: dict[str, Any], text: str) -> None:
    link = mlxlink.parse_mlxlink(text)
    for name, value in row.items():
        if name != "file":
            assert plain(getattr(link, name)) == value, name
    assert link.is_trusted == (row["status_code"] != 1)


def test_mlxlink_text() -> None:
    text = (
        "\n\x1b[32mOperational Info\x1b[0m\n----------------\nState                              : \x1b[32mActive\x1b[0m \n"
        "Physical state                     : LinkUp \nSpeed                              : IB-NDR \n"
        "Width                              : 4x \nFEC                                : Standard_RS-FEC - (544,514) \n"
        "Effective Physical BER             : 15E-255 \nRaw Physical Errors Per Lane       : 3,0,1,N/A \n"
        "Temperature [C]                    : 52 [-10..75] \n"
    )
    link = mlxlink.parse_mlxlink(text)
    assert (link.state, link.speed, link.speed_gbps, link.lanes) == ("Active", "IB-NDR", 400.0, 4)
    assert (link.effective_ber, link.temperature_c) == (0.0, 52.0)
    assert plain(link.raw_errors_per_lane) == [3, 0, 1, "unknown"]
    failed = mlxlink.parse_mlxlink("-E- Failed to open device: mlx5_9\n")
    assert isinstance(failed.state, Unknown) and failed.message == "-E- Failed to open device: mlx5_9"
    assert not failed.is_trusted
    assert not mlxlink.parse_mlxlink('{"result": {"output": {"Operational Info": {"State": "Act').is_trusted


# DCGM


@cases("dcgmi")
def test_dcgmi_of_the_corpus(row: dict[str, Any], text: str) -> None:
    if "nvlink" in row:
        links = dcgmi.parse_dcgmi_nvlink(text)
        assert dict(Counter(state for states in links.values() for state in states)) == row["nvlink"]
    if "diag" in row:
        diag = dcgmi_diag.parse_dcgmi_diag(text)
        assert dict(Counter(result.status for result in diag.results)) == row["diag"]
        first = diag.results[0]
        assert [first.category, first.test, first.status, " ".join(first.entities)] == row["first"]
        assert diag.error is None
    if "health" in row:
        health = dcgmi.parse_dcgmi_health(text)
        assert (health.overall, [list(system) for system in health.systems]) == (row["health"], row["systems"])
        assert list(health.messages) == row["messages"]
    if "columns" in row:
        dmon = dcgmi.parse_dcgmi_dmon(text)
        assert (list(dmon.columns), len(dmon.samples)) == (row["columns"], row["rows"])
        assert len({sample.id for sample in dmon.samples}) == row["gpus"]
        values = [value for sample in dmon.samples for value in sample.values]
        assert sum(isinstance(value, Unknown) for value in values) == row.get("unknown_values", 0)
        found = dcgmi.by_field(dmon, row.get("fields", []))
        for gpu, wanted in row.get("last", {}).items():
            assert {field: found["GPU", gpu][field] for field in wanted} == wanted
        for name, wanted in row.get("by_name", {}).items():
            assert [sample.values[dmon.columns.index(name)] for sample in dmon.samples] == wanted


def test_the_health_table_of_newer_versions() -> None:
    rows = (
        ("Overall Health", "Warning"),
        ("GPU", ""),
        ("-> 3", "Warning"),
        ("   -> Errors", ""),
        ("      -> PCIe system", "Warning"),
        ("", "Detected more than 8 PCIe replays per minute for"),
    )
    text = "| Health Monitor Report                       |\n" + "".join("| %-25s | %-50s |\n" % row for row in rows)
    health = dcgmi.parse_dcgmi_health(text)
    assert (health.overall, health.systems) == ("Warning", (("3", "PCIe system", "Warning"),))
    assert len(health.messages) == 1


def test_the_diagnostic_table_of_newer_versions() -> None:
    rows = (
        ("software", "Pass"),
        ("", "GPU0: Pass"),
        ("", "GPU1: Skip"),
        ("Warning: GPU1", "Persistence mode is off"),
        ("memory", "Fail - GPUs: 0, 1, 2, 3, 4, 5, 6,"),
        ("", "7"),
    )
    diag = dcgmi_diag.parse_dcgmi_diag("".join("| %-25s | %-46s |\n" % row for row in rows))
    assert [(result.test, result.status, " ".join(result.entities)) for result in diag.results] == [
        ("software", "Pass", ""),
        ("software", "Pass", "0"),
        ("software", "Skip", "1"),
        ("memory", "Fail", "0 1 2 3 4 5 6 7"),
    ]
    assert diag.results[2].messages == ("Persistence mode is off",)


def test_a_skipped_test_has_not_passed() -> None:
    table = (
        "Successfully ran diagnostic for group.\n"
        "+---------------------------+------------------------------------------------+\n"
        "| Diagnostic                | Result                                         |\n"
        "+===========================+================================================+\n"
        "|-----  Metadata  ----------+------------------------------------------------|\n"
        "| DCGM Version              | 3.3.5                                          |\n"
        "| Driver Version Detected   | 535.129.03                                     |\n"
        "+-----  Integration  -------+------------------------------------------------+\n"
        "| PCIe                      | Pass - GPUs: 0, 1, 2                           |\n"
        "|                           | Fail - GPU: 3                                  |\n"
        "| Warning                   | GPU 3 has a problem that goes on in the next   |\n"
        "|                           | line                                           |\n"
        "+-----  Stress  ------------+------------------------------------------------+\n"
        "| Targeted Power            | Skip - All                                     |\n"
    )
    diag = dcgmi_diag.parse_dcgmi_diag(table)
    assert (diag.dcgm_version, diag.driver_version) == ("3.3.5", "535.129.03")
    assert [(result.test, result.status, result.entities) for result in diag.results] == [
        ("PCIe", "Pass", ("0", "1", "2")),
        ("PCIe", "Fail", ("3",)),
        ("Targeted Power", "Skip", ()),
    ]
    assert diag.results[1].messages == ("GPU 3 has a problem that goes on in the next line",)
    assert [result.test for result in diag.with_status("Pass")] == ["PCIe"]


def test_the_json_of_newer_versions_and_of_a_failed_run() -> None:
    text = (
        'noise\n{"DCGM Diagnostic": {"test_categories": [{"category": "Deployment", "tests": [{"name": "software",'
        '"results": [{"entity_group": "GPU", "entity_group_id": 1, "entity_id": 0, "status": "Pass"},'
        '{"entity_id": 1, "status": "Skip", "warnings": [{"error_id": 40, "warning": "not run"}]}]}]}]},'
        '"metadata": {"version": "4.2.0", "Driver Version Detected": "570.86.15"}}\ntrailing'
    )
    diag = dcgmi_diag.parse_dcgmi_diag(text)
    assert [(result.status, result.entities, result.messages) for result in diag.results] == [
        ("Pass", ("0",), ()),
        ("Skip", ("1",), ("not run",)),
    ]
    assert (diag.dcgm_version, diag.driver_version) == ("4.2.0", "570.86.15")
    failed = dcgmi_diag.parse_dcgmi_diag(
        '{"DCGM GPU Diagnostic": {"runtime_error": "Error: paused", "version": "3.3"}}'
    )
    assert (failed.results, failed.error) == ((), "Error: paused")
    for nothing in ("", "Error: Unable to connect to host engine.\n", "{", '{"a":1}', "[" * 3000 + "{"):
        diag = dcgmi_diag.parse_dcgmi_diag(nothing)
        assert diag.results == () and diag.error


def test_dcgmi_of_mig_and_of_switches() -> None:
    text = "# Entity    GRACT\n    ID\n    GPU 0     0.5\n    GPU-I 0/1 0.25\n    GPU-CI 0/1/0 N/A\nError setting watches\n"
    dmon = dcgmi.parse_dcgmi_dmon(text)
    assert [(sample.entity, sample.id) for sample in dmon.samples] == [
        ("GPU", "0"),
        ("GPU-I", "0/1"),
        ("GPU-CI", "0/1/0"),
    ]
    links = dcgmi.parse_dcgmi_nvlink("GPUs:\n    gpuId 0:\n        _ _\nNvSwitches:\n    physicalId 8:\n        X U\n")
    assert links == {"gpuId 0": ("not supported", "not supported"), "physicalId 8": ("disabled", "up")}
    health = dcgmi.parse_dcgmi_health(
        '{"header": ["Health Monitor Report"], "body": {"Overall Health": {"value": "Warning"}, "GPU": {"children":'
        ' {"0": {"value": "Warning", "children": {"Errors": {"children": {"PCIe system": {"value": "Warning",'
        ' "overflow": ["replays"]}}}}}}}}}'
    )
    assert (health.overall, health.systems, health.messages) == (
        "Warning",
        (("0", "PCIe system", "Warning"),),
        ("replays",),
    )
    assert isinstance(dcgmi.parse_dcgmi_health("Error: Health watches not enabled.\n").overall, Unknown)
