# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Outputs of network tools as people pass them on: below prompts, quoted, with host names in front, masked, cut off."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import open_capture
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import Unknown
from ansible_collections.gpufleet.host.plugins.module_utils._observe import (
    dcb,
    ethtool,
    ibdev2netdev,
    ibstat,
    ibv_devinfo,
    mlnx_qos,
    mlxconfig,
    mlxlink,
    rdma_link,
    show_gids,
    tool_text,
)
from ansible_collections.gpufleet.host.plugins.module_utils._observe.rdma_recorded import recorded_devices


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("[root@gpu1 ~]# ethtool -i eth0", True),
        ("root@gpu1:~#", True),
        ("admin@leaf-3:/var/log$ dcb pfc show dev x", True),
        ("(base) user@gpu1:~$ ibstat", True),
        ("bash-5.1# mlxconfig q", True),
        ("# show_gids", True),
        ("```console", True),
        ("\tSpeed: 1000Mb/s", False),
        ("Settings for eth0:", False),
        ("Device #1:", False),
        ("     [0]: rx_ucast_packets: 5", False),
        ("tc: 0 ratelimit: unlimited, tsa: vendor", False),
    ],
)
def test_a_prompt_is_no_output(line: str, expected: bool) -> None:
    assert tool_text.is_prompt(line) == expected


def test_marks_of_quotations_and_times_of_logs_are_cleaned_away() -> None:
    text = "> > a: 1\n>\tb: 2\n2026-03-04T05:06:07.123+01:00 c: 3\n[2026-03-04 05:06:07] d: 4\n"
    assert tool_text.clean(text) == "a: 1\n\tb: 2\nc: 3\nd: 4\n"


def test_json_is_found_below_a_prompt() -> None:
    assert tool_text.find_json('$ x -j\n  [ {\n"a": 1, "b": 2, "a": {"limit": 9}} ]\n$') == [{"a": 1, "b": 2}]
    assert tool_text.find_json("[root@gpu1 ~]# x\nno JSON here\n[  1.5] nor here\n") is None
    for broken in ('{"a": [1', "[" * 5000, '{"a":' * 5000):
        assert isinstance(tool_text.find_json(broken), Unknown)


# rdma link


def test_rdma_link_with_things_in_front() -> None:
    text = (
        "node1: link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev eth0\n"
        "> link mlx5_1/1 subnet_prefix fe80:0000:0000:0000 lid 7 sm_lid 1 lmc 0 state DOWN physical_state POLLING\n"
        "4/1: mlx5_bond_0/1: state ACTIVE physical_state LINK_UP netdev bond0\n"
        "the link mlx5_9/1 is of no interest\n"
    )
    links = rdma_link.parse_rdma_link(text)
    assert [(link.device, link.state, link.netdev) for link in links] == [
        ("mlx5_0", "ACTIVE", "eth0"),
        ("mlx5_1", "DOWN", None),
        ("mlx5_bond_0", "ACTIVE", "bond0"),
    ]


def test_what_stands_below_rdma_link_is_not_joined_to_it() -> None:
    text = (
        "link mlx5_0/1 state ACTIVE physical_state LINK_UP\n$ ip a\n    link/ether 00:00 state UP netdev other\n"
        "link mlx5_1/1 state ACTIVE physical_state LINK_UP\n\n    netdev other\n"
    )
    assert [link.netdev for link in rdma_link.parse_rdma_link(text)] == [None, None]
    counters = rdma_link.parse_rdma_statistic("link mlx5_0/1 rx_bytes 1\n$ ip a\n    mtu 9000\n")
    assert counters == {"mlx5_0/1": {"rx_bytes": 1}}


def test_rdma_link_json_below_its_prompt() -> None:
    text = '$ rdma -jp link\n[ {\n  "ifindex": 0,\n  "ifname": "mlx5_0",\n  "port": 1,\n  "state": "ACTIVE" } ]\n$ '
    (link,) = rdma_link.parse_rdma_link(text)
    assert (link.device, link.port, link.state) == ("mlx5_0", 1, "ACTIVE")


# ibv_devinfo, ibstat, ibdev2netdev, show_gids


def test_ibv_devinfo_without_the_line_that_names_the_port() -> None:
    text = (
        "hca_id: irdma0\n  fw_ver: 1.5\n  state: PORT_ACTIVE (4)\n  active_mtu: 4096 (5)\nhca_id: mlx5_1\n"
        "  state: PORT_DOWN (1)\n"
    )
    first, second = ibv_devinfo.parse_ibv_devinfo(text).hcas
    assert (first.firmware, first.ports[0].state, first.ports[0].active_mtu) == ("1.5", "ACTIVE", 4096)
    assert isinstance(first.ports[0].number, Unknown) and second.ports[0].state == "DOWN"


def test_ibv_devinfo_and_ibstat_of_several_hosts_with_their_names() -> None:
    text = "gpu1: hca_id:\tmlx5_0\ngpu1: \t\tport:\t1\ngpu1: \t\t\tstate:\tPORT_INIT (2)\ngpu2: hca_id:\tmlx5_0\n"
    hcas = ibv_devinfo.parse_ibv_devinfo(text).hcas
    assert [(hca.name, len(hca.ports)) for hca in hcas] == [("mlx5_0", 1), ("mlx5_0", 0)]
    assert hcas[0].ports[0].state == "INIT"
    text = "gpu1: CA 'mlx5_0'\ngpu1: \tPort 1:\ngpu1: \t\tState: Active\ngpu2: CA 'mlx5_0'\ngpu2: \tPort 1:\ngpu2: \t\tState: Down\n"
    adapters = ibstat.parse_ibstat(text).adapters
    assert [adapter.ports[0].state for adapter in adapters] == ["ACTIVE", "DOWN"]
    rows = "state: PORT_ACTIVE (4)\nstate: PORT_DOWN (1)\nstate: PORT_DOWN (1)\n"
    orphan = ibv_devinfo.parse_ibv_devinfo(rows).orphan
    assert orphan and orphan.ports[0].state == "ACTIVE"


def test_ibstat_without_the_lines_of_ports_and_ibstatus() -> None:
    told = ibstat.parse_ibstat("`CA 'mlx5_0'\n\tCA type: MT4129\n\t\tState: Active\nCA 'mlx5_1'\n\t\tState: Down\n")
    assert [(adapter.name, adapter.ports[0].state) for adapter in told.adapters] == [
        ("mlx5_0", "ACTIVE"),
        ("mlx5_1", "DOWN"),
    ]
    block = "Infiniband device 'mlx4_0' port %d status:\n\tbase lid:\t 0x1a\n\tstate:\t\t %s\n\tphys state:\t %s\n\trate:\t\t 56 Gb/sec (4X FDR)\n"
    text = block % (1, "4: ACTIVE", "5: LinkUp") + "\n" + block % (2, "1: DOWN", "4: PortConfigurationTraining")
    (adapter,) = ibstat.parse_ibstat(text).adapters
    ports = [(port.number, port.state, port.physical_state, port.rate_gbps, port.base_lid) for port in adapter.ports]
    assert ports == [(1, "ACTIVE", "LINK_UP", 56.0, 26), (2, "DOWN", "TRAINING", 56.0, 26)]


@pytest.mark.parametrize(
    ("line", "device", "address"),
    [
        ("mlx5_0 port 1 ==> eth0 (Up)", "mlx5_0", None),
        ("gpu1: mlx5_0 port 1 ==> eth0 (Up)", "mlx5_0", None),
        ("> mlx5_0 port 1 ==> eth0 (Up)", "mlx5_0", None),
        ("mlx5_0 (0000:a3:00.0) port 1 ==> eth0 (Up)", "mlx5_0", "0000:a3:00.0"),
        ("> 0000:A3:00.0 mlx5_0 (MT1 - X) CX1 - 2 fw 1.2 port 1 (DOWN ) ==> eth0 (Up)", "mlx5_0", "0000:a3:00.0"),
        ("0000:a3:00.1 mlx5_2 (MT1 - NA)  fw 1.2 port 1 (ACTIVE) ==> eth0 (Up)", "mlx5_2", "0000:a3:00.1"),
        ("mlx4_0 (MT1 - X) CX1 - 2 fw 1.2 port 1 (INIT  ) ==> eth0 (Up)", "mlx4_0", None),
        ("mlx5_0   port  1  ==>  eth0            (Up)  # of column -t", "mlx5_0", None),
    ],
)
def test_the_device_of_ibdev2netdev(line: str, device: str, address: str | None) -> None:
    (pair,) = ibdev2netdev.parse_ibdev2netdev(line + "\n")
    assert (pair.device, pair.netdev, pair.has_carrier) == (device, "eth0", True)
    assert isinstance(pair.address, Unknown) if address is None else pair.address == address


def test_ports_of_a_capture_that_holds_excerpts(tmp_path: Path) -> None:
    (tmp_path / "said.txt").write_text(
        "hca_id:\tmlx5_0\n\t\t\tstate:\t\tPORT_DOWN (1)\n\t\t\tphys_state:\tLINK_UP (5)\n"
    )
    host = open_capture(str(tmp_path / "said.txt"), str(tmp_path / "scratch"))
    devices = recorded_devices(host)
    assert not isinstance(devices, Unknown)
    assert [(port.name, port.state, port.physical_state) for port in devices[0].ports] == [
        ("mlx5_0/1", "DOWN", "LINK_UP")
    ]


def test_a_port_with_an_address_in_a_subnet_is_infiniband(tmp_path: Path) -> None:
    (tmp_path / "said.txt").write_text(
        "link mlx5_0/1 subnet_prefix fe80:0000:0000:0000 lid 2 sm_lid 1 lmc 0 state ACTIVE physical_state LINK_UP netdev ib0\n"
        "link mlx5_1/1 state ACTIVE physical_state LINK_UP netdev eth1\n"
    )
    devices = recorded_devices(open_capture(str(tmp_path / "said.txt"), str(tmp_path / "scratch")))
    assert not isinstance(devices, Unknown)
    first, second = (device.ports[0].link_layer for device in devices)
    assert first == "InfiniBand" and isinstance(second, Unknown)


def test_a_warning_is_no_part_of_a_device() -> None:
    text = "libibverbs: Warning: couldn't open config directory '/etc/libibverbs.d'.\nNo IB devices found\n"
    assert ibv_devinfo.parse_ibv_devinfo(text) == ibv_devinfo.Devinfo((), None)


def test_a_pair_without_an_interface_is_none() -> None:
    assert ibdev2netdev.parse_ibdev2netdev("mlx5_0 port 1 ==> (Down)\nmlx5_1 port 1 ==>\n") == ()


def test_masked_gids_are_counted_and_still_tell_what_they_are() -> None:
    text = (
        "    rocep1s0f0  1  1  fe80:0000:0000:0000:xxxx:xxxx:xxxx:xxxx               v2  eth0\n"
        "    rocep1s0f0  1  3  0000:0000:0000:0000:0000:ffff:xxxx:xxxx  10.x.x.x     v2  eth0\n    n_gids_found=2\n"
    )
    listing = show_gids.parse_show_gids(text)
    assert listing.rows == listing.announced == 2
    first, second = listing.ports[0].gids
    assert (first.is_link_local, first.ipv4, second.is_link_local) == (True, None, False)
    assert second.ipv4 and show_gids.usable_index(listing.ports[0].gids) == 3
    assert show_gids.usable_indexes([show_gids.Gid(0, "", 2, "eth0")]) == ()


def test_the_listings_of_several_hosts_are_counted_together() -> None:
    row = "gpu%d: mlx5_0  1  0  fe80:0000:0000:0000:0001:02ff:fe03:0405      v1  eth0\n"
    listing = show_gids.parse_show_gids(row % 1 + "n_gids_found=1\n" + row % 2 + "n_gids_found=1\n")
    assert listing.rows == listing.announced == 2


# Quality of service


def test_mlnx_qos_of_other_versions() -> None:
    text = (
        "root@gpu1:~# mlnx_qos -i eth0\nPriority trust state: dscp\nPFC configuration:\n"
        "\tpriority:  0   1   2   3   4   5   6   7\n\tenabled:   0   0   0   1   0   0   0   0\n"
        "tc: 0 ratelimit: unlimited, tsa: ets, bw: 12%\n\t up:  0\n\t\tskprio: 0\n\t\tskprio: 2 (tos: 8)\n\t up:  1\n"
    )
    told = mlnx_qos.parse_mlnx_qos(text)
    assert (told.pfc, told.trust, told.classes[0].priorities) == (frozenset({3}), "dscp", (0, 1))
    assert told.priority_of_dscp == Unknown("not printed")
    refused = mlnx_qos.parse_mlnx_qos("Priority trust state is not supported on your system\n")
    assert isinstance(refused.trust, Unknown) and refused.trust.reason.startswith("not applicable")


def test_the_command_that_names_fields_is_no_output_of_dcb() -> None:
    text = (
        "# dcb ets set dev eth0 tc-tsa all:strict 0:ets \\\n       tc-bw all:0 0:100\n# dcb ets show dev eth0 tc-tsa tc-bw\n"
        "tc-tsa 0:ets 1:strict 2:strict 3:strict 4:strict 5:strict 6:strict 7:strict\n"
        "tc-bw 0:100 1:0 2:0 3:0 4:0 5:0\n 6:0 7:0\nroot@gpu1:~#\n"
    )
    ets = dcb.parse_dcb_ets(text)
    assert ets.bandwidth_percent_of_class == (100, 0, 0, 0, 0, 0, 0, 0)
    assert not isinstance(ets.algorithm_of_class, Unknown) and ets.algorithm_of_class[0] == "ets"
    assert dcb.parse_dcb_app("(5) $ dcb app show dev eth0 dscp-prio\ndscp-prio AF31:3\n").priority_of_dscp == {26: 3}
    assert dcb.parse_dcb_app("# dcb app show dev eth0 dscp-prio\n").priority_of_dscp == {}
    assert dcb.parse_dcb_dcbx("$ dcb dcbx show dev eth0\nhost ieee\n$ ") == ("host", "ieee")
    assert dcb.parse_dcb_apptrust("$ dcb apptrust show dev eth0\norder: dscp pcp\n\nroot@gpu1:~#") == ("dscp", "pcp")
    missing = dcb.parse_dcb_pfc("-bash: dcb: command not found\n").enabled
    assert isinstance(missing, Unknown) and missing.reason.startswith("error")


def test_dcb_json_below_its_prompt() -> None:
    flags = json.dumps({"pfc_cap": 8, "prio_pfc": [index == 3 for index in range(8)]})
    assert dcb.parse_dcb_pfc("$ dcb -j pfc show dev eth0\n%s\n$ " % flags).enabled == frozenset({3})
    assert dcb.parse_dcb_dcbx('$ dcb -j dcbx show dev eth0\n{"host":true,"lld_managed":false}\n') == ("host",)


# ethtool

SESSION = (
    "[root@gpu1 ~]# ethtool -g eth0\nRing parameters for eth0:\nPre-set maximums:\nRX:\t\t8192\nTX:\t\t8192\n"
    "Current hardware settings:\nRX:\t\t1024\nTX:\t\t512\n"
    "[root@gpu1 ~]# ethtool -a eth0\nPause parameters for eth0:\nAutonegotiate:\toff\nRX:\t\toff\nTX:\t\ton\n"
    "[root@gpu1 ~]# ethtool -a eth1\nPause parameters for eth1:\nAutonegotiate:\ton\nRX:\t\ton\nTX:\t\toff\n"
    "[root@gpu1 ~]# ethtool -i eth0\ndriver: mlx5_core\nversion: 6.8\nfirmware-version: 28.39.1002 (MT_0000000838)\n"
    "bus-info: 0000:e6:00.0\n[root@gpu1 ~]#\n"
)


def test_each_form_of_ethtool_is_read_from_its_own_part_of_a_session() -> None:
    pause, rings = ethtool.parse_ethtool_pause(SESSION), ethtool.parse_ethtool_rings(SESSION)
    assert (pause.autonegotiate, pause.rx, pause.tx) == (False, False, True)
    assert (rings.rx, rings.tx, rings.rx_max) == (1024, 512, 8192)
    driver = ethtool.parse_ethtool_driver(SESSION)
    assert (driver.driver, driver.firmware, driver.address) == ("mlx5_core", "28.39.1002", "0000:e6:00.0")


def test_a_value_of_another_interface_is_not_taken() -> None:
    text = (
        ">> Settings for eth0:\n>> \tSupported link modes:   1000baseX/Full\n>> \t                        10000baseSR/Full\n"
        ">> \tAuto-negotiation: off\n>> \t\t\t       drv probe link\n"
        "Settings for eth1:\n\tSpeed: 1000Mb/s\n\tLink detected: yes\n```\n"
    )
    told = ethtool.parse_ethtool_settings(text)
    assert isinstance(told.speed_mbps, Unknown) and isinstance(told.has_link, Unknown)
    assert told.autonegotiation is False
    assert ethtool.parse_ethtool(text).value("Supported link modes") == "1000baseX/Full 10000baseSR/Full"


MODULE = (
    "$ ethtool -m eth0\n\tIdentifier                : 0x03 (SFP)\n\tExtended identifier       : 0x04 (GBIC/SFP defined by\n"
    "2-wire interface ID)\n\tVendor SN                 : S1\n\tModule temperature        : %s degrees C / 0 degrees F\n"
    "\tModule voltage            : %s V\n```\n"
)


def test_a_cable_that_measures_nothing_has_no_temperature() -> None:
    told = ethtool.parse_ethtool_module(MODULE % ("0.00", "0.0000"))
    assert isinstance(told.temperature_c, Unknown) and told.serial == "S1"
    assert ethtool.parse_ethtool_module(MODULE % ("0.00", "3.2810")).temperature_c == 0.0


def test_the_json_of_ethtool() -> None:
    settings: dict[str, Any] = {"ifname": "eth0", "speed": 400000, "duplex": "Full", "auto-negotiation": False}
    told = ethtool.parse_ethtool_settings("$ ethtool --json eth0\n" + json.dumps([{**settings, "link-detected": True}]))
    assert (told.speed_mbps, told.duplex, told.autonegotiation, told.has_link) == (400000, "Full", False, True)
    assert isinstance(ethtool.parse_ethtool_settings('[{"speed": 4294967295}]').speed_mbps, Unknown)
    # The limits stand below the readings by the same name.
    module = ethtool.parse_ethtool_module(
        '[ {"identifier": 17, "identifier_description": "QSFP28", "vendor_name": "EXAMPLE", "vendor_sn": "S1",\n'
        '"module_temperature": 56.98, "module_voltage": 3.2, "laser_rx_power_low_alarm": [ true,true,false,true ],\n'
        '"module_temperature_high_alarm": false, "module_temperature": { "high_alarm_threshold": 80 } } ]'
    )
    assert (module.identifier, module.vendor, module.serial) == ("0x11 (QSFP28)", "EXAMPLE", "S1")
    assert (module.temperature_c, module.alarms) == (56.98, ("Laser rx power low alarm",))


# Firmware and link


def test_what_stands_before_mlxconfig_is_no_parameter() -> None:
    text = (
        "# mst status\nMST modules:\n------------\n    MST PCI module is not loaded\n\nMST devices:\n------------\n"
        "Device #1:\n----------\n\nDevice type:    ConnectX7\n\nConfigurations:      Next Boot\n"
        "         _INTERNAL_CPU_MODEL                 SEPARATED_HOST(0)\n"
        "         EXP_ROM_UEFI_x86_ENABLE             True(1)\n```\n"
    )
    (device,) = mlxconfig.parse_mlxconfig(text).devices
    assert [parameter.name for parameter in device.parameters] == ["_INTERNAL_CPU_MODEL", "EXP_ROM_UEFI_x86_ENABLE"]
    assert (device.device_type, device.value("EXP_ROM_UEFI_x86_ENABLE")) == ("ConnectX7", "True(1)")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("y\nApplying... Done!\n-I- Please reboot", "True(1)"),
        ("n\n", "False(0)"),
        ("y\nApplying... Failed!\n-E- x", "False(0)"),
    ],
)
def test_what_mlxconfig_set_has_written_is_what_the_next_boot_gets(answer: str, expected: str) -> None:
    text = "Device #1:\nConfigurations:      Next Boot       New\n         SRIOV_EN    False(0)    True(1)\n\n Apply new Configuration? (y/n) [n] : "
    (device,) = mlxconfig.parse_mlxconfig(text + answer).devices
    assert device.value("SRIOV_EN") == expected


def test_columns_of_mlxconfig_that_a_long_value_leaves_one_blank() -> None:
    text = "Configurations:  Default   Current   Next Boot\n*  PORT_OWNER[1]   DEVICE_DEFAULT(0) HOST_0(1)   DEVICE_DEFAULT(0)\n"
    (device,) = mlxconfig.parse_mlxconfig(text).devices
    assert (device.parameters[0].current, device.parameters[0].waits) == ("HOST_0(1)", True)


def test_the_json_of_mlxconfig() -> None:
    row = {"default_value": "False(0)", "current_value": "False(0)", "next_value": "True(1)", "modified": True}
    device = {"device": "01:00.0", "device_type": "ConnectX7", "name": "X"}
    text = json.dumps(
        {"Device #1": {**device, "tlv_configuration": {"SRIOV_EN": row, "NUM_OF_VFS": {"next_value": 8}}}}
    )
    (told,) = mlxconfig.parse_mlxconfig(text).devices
    assert (told.device_type, told.name, told.device) == ("ConnectX7", "X", "01:00.0")
    assert [parameter.waits for parameter in told.parameters] == [True, False]
    assert mlxconfig.number_of(told.value("NUM_OF_VFS")) == 8
    for nothing in ("{}", '{"a": 1}', '{"Device #1": {"tlv_configuration": []}}'):
        assert mlxconfig.parse_mlxconfig(nothing).devices == ()


@pytest.mark.parametrize(
    ("speed", "width", "gbps"),
    [
        ("IB-NDR", "4x", 400.0),
        ("IB-HDR", "2x", 100.0),
        ("IB-FDR10", "4x", 40.0),
        ("IB-FDR", "4x", 56.0),
        ("200G", "4x", 200.0),
    ],
)
def test_the_speed_of_an_infiniband_link(speed: str, width: str, gbps: float) -> None:
    assert mlxlink.parse_mlxlink("Speed   : %s\nWidth   : %s\n" % (speed, width)).speed_gbps == gbps


def test_mlxlink_of_a_passive_cable_and_of_two_ports() -> None:
    text = (
        "State                   : Active\nSpeed                   : IB-NDR\nTemperature [C]         : 0 [0..0]\n"
        "mstflint Version        : 4.30\nState                   : Polling\nLink Down Counter       : 7\n"
    )
    told = mlxlink.parse_mlxlink(text)
    assert isinstance(told.temperature_c, Unknown) and isinstance(told.link_down, Unknown)
    assert isinstance(told.speed_gbps, Unknown)
    assert (told.state, told.tool_version) == ("Active", "4.30")
    data = {"result": {"output": {"Operational Info": {"State": "Active"}}}, "status": {"code": 0, "message": "ok"}}
    told = mlxlink.parse_mlxlink("# mlxlink -d mlx5_0 --json\n" + json.dumps(data, indent=2) + "\n#")
    assert (told.state, told.status_code) == ("Active", 0)


def test_a_setting_that_the_terminal_cut_is_unknown() -> None:
    text = "Configurations:   Default      Current      Next Boot\n   SRIOV_EN   True(1)    True(1)    True(\n1)\n"
    (parameter,) = mlxconfig.parse_mlxconfig(text).devices[0].parameters
    assert isinstance(parameter.next_boot, Unknown) and not parameter.waits


def test_the_counters_of_a_second_port_are_not_mixed_into_the_first() -> None:
    text = (
        "=== mlx5_0 ===\nFEC : No FEC\nRaw Physical BER : 1E-8\n=== mlx5_1 ===\nFEC : No FEC\nLink Down Counter : 3\n"
    )
    told = mlxlink.parse_mlxlink(text)
    assert told.raw_ber == 1e-8 and isinstance(told.link_down, Unknown)
