# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
from fakes_pci import BUS, DOWNSTREAM, ROOT_PORT, UPSTREAM, add, link, space

from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import LiveHost, MemoHost
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import Unknown
from ansible_collections.gpufleet.host.plugins.module_utils._observe import (
    pci_attributes,
    pci_config,
    pci_tree,
    pci_walk,
)
from ansible_collections.gpufleet.host.plugins.module_utils._observe.pci_registers import (
    NO_LINK,
    Acs,
    Aer,
    Config,
    Express,
)


def read(data: bytes) -> Config:
    config = pci_config.parse_config(data.decode("utf-8", "surrogateescape"))
    assert isinstance(config, Config)
    return config


class Machine:
    """A tree of /sys: functions are put below each other as the kernel does."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / BUS).mkdir(parents=True)

    def host(self) -> MemoHost:
        return MemoHost(LiveHost(str(self.root)))

    def add(self, path: str, config: bytes, attributes: dict[str, str] | None = None) -> str:
        return add(self.root, path, config, attributes)


ROOT_BUS = "pci0000:15/0000:15:01.0"
SWITCH = ROOT_BUS + "/0000:16:00.0"
BOUND = {"uevent": "DRIVER=nvidia\nPCI_CLASS=30200\nPCI_ID=10DE:2330\nPCI_SUBSYS_ID=10DE:16C1\n", "numa_node": "0\n"}
FULL = "16@32.0", "16@32.0"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Root port, switch, and below it a GPU, a network card and a narrow slot; a second root bus with a disk."""
    made = Machine(tmp_path)
    bridge = {"class_code": 0x060400, "ids": "1000:c030"}
    made.add(ROOT_BUS, space(port=ROOT_PORT, acs=(0x1F, 0), class_code=0x060400, ids="8086:352a"), link(*FULL))
    made.add(SWITCH, space(port=UPSTREAM, **bridge), link(*FULL))
    made.add(SWITCH + "/0000:17:01.0", space(port=DOWNSTREAM, acs=(0x5F, 0x1D), **bridge), link(*FULL))
    made.add(SWITCH + "/0000:17:02.0", space(port=DOWNSTREAM, acs=(0x5F, 0), **bridge), link("8@32.0", "16@32.0"))
    made.add(SWITCH + "/0000:17:01.0/0000:19:00.0", space(), {**BOUND, **link("16@2.5", "16@32.0")})
    nic = {"numa_node": "0\n", **link("8@32.0", "16@32.0")}
    made.add(SWITCH + "/0000:17:02.0/0000:1a:00.0", space("15b3:1021", 0x020700), nic)
    disk = "pci0000:97/0000:97:01.0/0000:98:00.0"
    made.add("pci0000:97/0000:97:01.0", space(port=ROOT_PORT, class_code=0x060400, ids="8086:352a"), link(*FULL))
    made.add(disk, space("144d:a80a", 0x010802), {"numa_node": "1\n", **link("4@16.0", "4@16.0")})
    return made


GPU, NIC, DISK = "0000:19:00.0", "0000:1a:00.0", "0000:98:00.0"


def ways(machine: Machine) -> dict[str, pci_tree.Way]:
    found = pci_walk.observe(machine.host(), [GPU, NIC, DISK])
    assert all(isinstance(way, pci_tree.Way) for way in found.values())
    return found  # type: ignore[return-value]


def test_the_way_of_a_gpu(machine: Machine) -> None:
    way = ways(machine)[GPU]
    assert [function.address for function in way.functions] == [GPU, "0000:17:01.0", "0000:16:00.0", "0000:15:01.0"]
    assert [function.port for function in way.functions] == [
        "endpoint",
        "downstream port",
        "upstream port",
        "root port",
    ]
    assert way.host_bridge == "pci0000:15"
    gpu = way.device
    assert (gpu.vendor_id, gpu.device_id, gpu.class_code, gpu.subsystem) == ("10de", "2330", "030200", "10de:16c1")
    assert (gpu.driver, gpu.numa_node, gpu.max_read_request_bytes, gpu.max_payload_bytes) == ("nvidia", 0, 512, 256)
    assert gpu.aer == Aer(("UnsupReq",), ("RxErr", "Timeout"))
    assert gpu.acs is None


def test_wires_and_the_narrowest(machine: Machine) -> None:
    found = ways(machine)
    wires = [(wire.upper, wire.lower, wire.width, wire.speed_gts, wire.max_width) for wire in found[GPU].wires]
    assert wires == [("0000:17:01.0", GPU, 16, 2.5, 16), ("0000:15:01.0", "0000:16:00.0", 16, 32.0, 16)]
    narrow = pci_tree.narrowest(found[NIC].wires)
    assert narrow is not None
    assert (narrow.lower, narrow.width, narrow.max_width) == (NIC, 8, 16)


def test_without_root_the_links_are_seen_and_the_rest_is_unknown(machine: Machine) -> None:
    for place in (machine.root / "sys/devices").rglob("config"):
        place.write_bytes(place.read_bytes()[:64])
    way = ways(machine)[GPU]
    assert [wire.lower for wire in way.wires] == [GPU, "0000:16:00.0"]
    for function in way.functions:
        for value in (function.acs, function.port, function.max_read_request_bytes, function.aer):
            assert isinstance(value, Unknown)
            assert "64 bytes" in value.reason


def test_acs_that_redirects_is_seen_on_the_way(machine: Machine) -> None:
    found = ways(machine)
    meeting = pci_tree.meeting(found[GPU], found[NIC])
    assert meeting == pci_tree.Meeting("switch", "0000:16:00.0", ("0000:17:01.0", "0000:17:02.0"))
    acs = {function.address: function.acs for way in found.values() for function in way.functions}
    on = [port for port in meeting.ports if isinstance(acs[port], Acs) and acs[port].redirects]  # type: ignore[union-attr]
    assert on == ["0000:17:01.0"]


def test_where_ways_meet(machine: Machine) -> None:
    found = ways(machine)
    ports = ("0000:17:01.0", "0000:16:00.0", "0000:15:01.0", "0000:97:01.0")
    assert pci_tree.meeting(found[GPU], found[DISK]) == pci_tree.Meeting("system", "", ports)
    assert pci_tree.meeting(found[GPU], found[GPU]).kind == "card"  # type: ignore[union-attr]
    (machine.root / "sys/devices/pci0000:97/0000:97:01.0" / DISK / "numa_node").write_text("0\n")
    found = ways(machine)
    assert pci_tree.meeting(found[GPU], found[DISK]) == pci_tree.Meeting("numa node", "node0", ports)
    (machine.root / "sys/devices/pci0000:97/0000:97:01.0" / DISK / "numa_node").write_text("-1\n")
    found = ways(machine)
    assert isinstance(pci_tree.meeting(found[GPU], found[DISK]), Unknown)


def test_two_functions_below_one_root_port_or_one_bus(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.add("pci0000:00/0000:00:01.0", space(port=ROOT_PORT, class_code=0x060400), link(*FULL))
    machine.add("pci0000:00/0000:00:01.0/0000:01:00.0", space(), link(*FULL))
    machine.add("pci0000:00/0000:00:01.0/0000:01:01.0", space(), link(*FULL))
    machine.add("pci0000:00/0000:00:02.0", space(port=ROOT_PORT, class_code=0x060400), link(*FULL))
    machine.add("pci0000:00/0000:00:02.0/0000:02:00.0", space(), link(*FULL))
    names = ["0000:01:00.0", "0000:01:01.0", "0000:02:00.0"]
    one, two, three = pci_walk.observe(machine.host(), names).values()
    assert isinstance(one, pci_tree.Way) and isinstance(two, pci_tree.Way) and isinstance(three, pci_tree.Way)
    assert pci_tree.meeting(one, two) == pci_tree.Meeting("root port", "0000:00:01.0", ())
    at_bridge = pci_tree.meeting(one, three)
    assert at_bridge == pci_tree.Meeting("host bridge", "pci0000:00", ("0000:00:01.0", "0000:00:02.0"))


@pytest.mark.parametrize("size", [64, 4096])
@pytest.mark.parametrize(
    ("switch", "endpoint", "edge"),
    [
        ("8086:4fa0", ("8086:56a0", 0x030000), 2),
        ("1002:1478", ("1002:744c", 0x030000), 2),
        ("10de:05b1", ("10de:1db6", 0x030200), 0),
        ("1000:c030", ("1000:10e2", 0x010400), 0),
        ("1000:c030", ("10de:2330", 0x030200), 0),
    ],
)
def test_a_switch_on_the_card_is_not_judged(
    tmp_path: Path, switch: str, endpoint: tuple[str, int], edge: int, size: int
) -> None:
    """Case 35: the endpoint shows 2.5 GT/s x1; the link of the card is that of its own switch."""
    machine = Machine(tmp_path)
    top = "pci0000:00/0000:00:01.0"
    port = {"ids": switch, "class_code": 0x060400, "size": size}
    machine.add(top, space("8086:352a", 0x060400, ROOT_PORT, size=size), {"class": "0x060400\n", **link(*FULL)})
    names = {"vendor": "0x%s\n" % switch[:4], "device": "0x%s\n" % switch[5:], "class": "0x060400\n"}
    machine.add(top + "/0000:01:00.0", space(port=UPSTREAM, **port), {**names, **link("16@16.0", "16@16.0")})
    below = top + "/0000:01:00.0/0000:02:01.0"
    machine.add(below, space(port=DOWNSTREAM, **port), {**names, **link("1@2.5", "1@2.5")})
    said = {
        "vendor": "0x%s\n" % endpoint[0][:4],
        "device": "0x%s\n" % endpoint[0][5:],
        "class": "0x%06x\n" % endpoint[1],
    }
    is_fake = "1@2.5" if edge else "8@8.0"
    machine.add(below + "/0000:03:00.0", space(*endpoint, size=size), {**said, **link(is_fake, is_fake)})
    way = pci_walk.observe(machine.host(), ["0000:03:00.0"])["0000:03:00.0"]
    assert isinstance(way, pci_tree.Way)
    assert pci_tree.card_edge(way) == edge
    assert [wire.lower for wire in way.card_wires] == ["0000:03:00.0", "0000:01:00.0"][1 if edge else 0 :]


def test_a_bus_that_hangs_on_a_device_has_its_own_root(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    top = "pci0000:97/0000:97:00.5/pci10001:00/10001:00:01.0"
    machine.add("pci0000:97/0000:97:00.5", space("8086:28c0", 0x010400))
    machine.add(top, space(port=ROOT_PORT, class_code=0x060400), link("4@32.0", "4@32.0"))
    machine.add(top + "/10001:01:00.0", space("144d:a80a", 0x010802), link("4@16.0", "4@16.0"))
    way = pci_walk.observe(machine.host(), ["10001:01:00.0"])["10001:01:00.0"]
    assert isinstance(way, pci_tree.Way)
    assert way.host_bridge == "pci10001:00"
    assert [(wire.upper, wire.max_speed_gts) for wire in way.wires] == [("10001:00:01.0", 16.0)]


def test_a_conventional_device_has_no_link(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    top = "pci0000:00/0000:00:1c.0"
    machine.add(top, space(port=ROOT_PORT, class_code=0x060400), link("1@5.0", "1@5.0"))
    machine.add(top + "/0000:03:00.0", space("1a03:1150", 0x060400, 0x7), link("1@5.0", "1@5.0"))
    plain = bytearray(256)
    plain[:4] = b"\x03\x1a\x00\x20"
    machine.add(top + "/0000:03:00.0/0000:04:00.0", bytes(plain), {"class": "0x030000\n"})
    way = pci_walk.observe(machine.host(), ["0000:04:00.0"])["0000:04:00.0"]
    assert isinstance(way, pci_tree.Way)
    assert [wire.lower for wire in way.wires] == ["0000:03:00.0"]
    assert isinstance(way.device.port, Unknown)
    assert way.device.acs is None


def test_a_dead_device_is_named(machine: Machine) -> None:
    folder = machine.root / "sys/devices" / SWITCH / "0000:17:01.0" / GPU
    (folder / "config").write_bytes(b"\xff" * 4096)
    (folder / "current_link_width").write_text("63\n")
    (folder / "max_link_width").write_text("63\n")
    (folder / "current_link_speed").write_text("Unknown\n")
    found = ways(machine)
    gpu = found[GPU].device
    assert gpu.is_dead
    assert isinstance(gpu.link.width, Unknown)
    assert isinstance(gpu.acs, Unknown) and gpu.acs.reason.startswith("error")
    # What the port above still tells.
    assert found[GPU].wires[0].width == 16
    assert not found[NIC].device.is_dead


def test_a_link_that_is_down(machine: Machine) -> None:
    folder = machine.root / "sys/devices" / SWITCH / "0000:17:02.0"
    (folder / "current_link_width").write_text("0\n")
    (folder / "current_link_speed").write_text("2.5 GT/s PCIe\n")
    port = pci_walk.observe(machine.host(), ["0000:17:02.0"])["0000:17:02.0"]
    assert isinstance(port, pci_tree.Way)
    assert port.device.link.width is NO_LINK
    assert port.device.link.speed_gts is NO_LINK


def test_what_is_not_there_is_unknown(machine: Machine) -> None:
    found = pci_walk.observe(machine.host(), ["0000:aa:00.0"])
    assert isinstance(found["0000:aa:00.0"], Unknown)


def test_the_configuration_space_is_read_where_it_is_asked_for(machine: Machine) -> None:
    found = pci_walk.observe(machine.host(), [DISK, GPU], config_for=[GPU])
    assert list(found) == [DISK, GPU]
    gpu, disk = found[GPU], found[DISK]
    assert isinstance(gpu, pci_tree.Way) and isinstance(disk, pci_tree.Way)
    assert isinstance(gpu.functions[1].acs, Acs)
    assert isinstance(disk.device.max_read_request_bytes, Unknown)


def test_slots_have_names(machine: Machine) -> None:
    folder = machine.root / "sys/bus/pci/slots/28"
    folder.mkdir(parents=True)
    (folder / "address").write_text("0000:19:00\n")
    assert ways(machine)[GPU].device.slot == "28"


def test_only_the_way_is_read(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    host = LiveHost(str(machine.root))
    asked: list[str] = []
    monkeypatch.setattr(host, "read", asked.append)
    pci_walk.observe(host, [GPU])
    assert not [path for path in asked if "0000:98:00.0" in path or "0000:17:02.0" in path]
    assert len(asked) == len(set(asked))


@pytest.mark.parametrize(
    ("ids", "class_code", "is_switch"),
    [("10de:22a3", 0x068000, True), ("10de:1af1", 0x068000, True), ("10de:2330", 0x030200, False),
     ("10de:0373", 0x068000, False), ("8086:22a3", 0x068000, False)],
)  # fmt: skip
def test_nvswitches_are_known_by_their_ids(tmp_path: Path, ids: str, class_code: int, is_switch: bool) -> None:
    machine = Machine(tmp_path)
    attributes = {"uevent": "PCI_CLASS=%X\nPCI_ID=%s\n" % (class_code, ids.upper())}
    machine.add("pci0000:80/0000:83:00.0", space(ids, class_code), attributes)
    way = pci_walk.observe(machine.host(), ["0000:83:00.0"])["0000:83:00.0"]
    assert isinstance(way, pci_tree.Way)
    assert way.device.is_nvswitch is is_switch


# Configuration space


def test_masked_writes_say_where_and_what() -> None:
    config = read(space(port=DOWNSTREAM, class_code=0x060400, acs=(0x5F, 0x021D)))
    off = pci_config.acs_off(config)
    assert isinstance(off, pci_config.MaskedWrite)
    assert (off.offset, off.mask, off.value, off.after) == (0x14E, 0x7F, 0, 0x0200)
    assert off.setpci() == "ECAP_ACS+6.w=0:7f"
    assert off.undo().setpci() == "ECAP_ACS+6.w=1d:7f"
    assert off.undo().after == off.before
    reads = pci_config.max_read_request(config, 4096)
    assert isinstance(reads, pci_config.MaskedWrite)
    assert (reads.offset, reads.before, reads.after, reads.setpci()) == (0x68, 0x2930, 0x5930, "CAP_EXP+8.w=5000:7000")
    assert reads.changes
    assert isinstance(pci_config.max_read_request(config, 1000), Unknown)
    same = pci_config.max_read_request(config, 512)
    assert isinstance(same, pci_config.MaskedWrite) and not same.changes


def test_nothing_to_write_without_the_capability() -> None:
    config = read(space())
    assert pci_config.acs_off(config) is None
    seen_less = read(space(acs=(0x5F, 0x1D), size=256))
    assert isinstance(pci_config.acs_off(seen_less), Unknown)
    plain = bytearray(256)
    plain[:4] = b"\x86\x80\x01\x00"
    assert pci_config.max_read_request(read(bytes(plain)), 4096) is None


@pytest.mark.parametrize("data", [b"", b"\xff" * 4096, b"\0" * 4096, b"\xff" * 64, b"\x86\x80"])
def test_what_is_no_configuration_space(data: bytes) -> None:
    assert isinstance(pci_config.parse_config(data.decode("utf-8", "surrogateescape")), Unknown)


def test_chains_that_loop_end() -> None:
    data = bytearray(space())
    data[0x40:0x42] = bytes((0x01, 0x40))
    assert isinstance(read(bytes(data)).express, Unknown)
    data = bytearray(space(acs=(0x5F, 0x1D)))
    struct.pack_into("<I", data, 0x148, 0x000D | 1 << 16 | 0x100 << 20)
    assert isinstance(read(bytes(data)).acs, Acs)


@pytest.mark.parametrize("size", range(64, 400, 7))
def test_a_space_that_is_cut_is_unknown_beyond(size: int) -> None:
    config = read(space(acs=(0x5F, 0x1D), size=size))
    assert config.acs is not None
    assert size > 0x14C or isinstance(config.resizable_bars, Unknown)
    assert isinstance(config.express, (Express, Unknown))


def test_extended_space_of_all_ones_is_unknown() -> None:
    config = read(space(size=256) + b"\xff" * 3840)
    assert isinstance(config.acs, Unknown) and config.acs.reason.startswith("error")
    assert isinstance(config.express, Express)


# Attributes


def test_bars_of_a_gpu() -> None:
    text = (
        "0x0000214042000000 0x0000214042ffffff 0x000000000014220c\n"
        "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
        "0x0000210000000000 0x000021ffffffffff 0x000000000014220c\n"
        "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
        "0x0000000000000000 0x0000000001ffffff 0x000000002014220c\n"
        "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
        "0x00000000fb000000 0x00000000fb07ffff 0x0000000000046200\n"
    )
    bars = pci_attributes.parse_resource(text)
    assert isinstance(bars, tuple)
    assert [(one.index, one.size_bytes, one.has_address) for one in bars] == [
        (0, 16 << 20, True),
        (2, 1 << 40, True),
        (4, 32 << 20, False),
    ]
    assert all(one.is_64bit and one.is_prefetchable and one.is_memory for one in bars)
    assert isinstance(pci_attributes.parse_resource("junk\n"), Unknown)
    assert isinstance(pci_attributes.parse_resource(None), Unknown)


def test_error_counters() -> None:
    correctable = "RxErr 7\nBadTLP 0\nBadDLLP 2\nTOTAL_ERR_COR 9\n"
    counts = pci_attributes.error_counts(correctable, "DLP 0\nTOTAL_ERR_NONFATAL 0\n", None)
    assert (counts.correctable, counts.nonfatal) == (9, 0)
    assert isinstance(counts.fatal, Unknown) and counts.fatal.reason.startswith("not applicable")
    assert counts.counts == {"correctable RxErr": 7, "correctable BadDLLP": 2}


def test_values_compare_and_show_as_data(machine: Machine) -> None:
    once: Any = ways(machine)[GPU]
    assert once == ways(machine)[GPU]
