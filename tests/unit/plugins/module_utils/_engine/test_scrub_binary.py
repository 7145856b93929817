# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Serial numbers inside of bytes are taken out, and nothing else is changed."""

from __future__ import annotations

import struct

import pytest
from fakes_pci import space
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpufleet.host.plugins.module_utils._engine.scrub_binary import (
    scrubbed_vpd,
    without_device_serial,
)
from ansible_collections.gpufleet.host.plugins.module_utils._engine.stand_ins import StandIns
from ansible_collections.gpufleet.host.plugins.module_utils._observe.pci_config import parse_config

SERIAL = bytes.fromhex("563412ffff2db048")


def with_serial(config: bytes, place: int) -> bytes:
    """The capability put in front of the others, at ``place``, as bridges and GPUs have it at different ones."""
    data = bytearray(config.ljust(4096, b"\0"))
    first = data[0x100:0x104]
    data[0x100:0x104] = struct.pack("<I", 0x000B | 1 << 16 | place << 20)  # one that the vendor made up
    data[place : place + 12] = struct.pack("<I", 0x0003 | 1 << 16 | 0x500 << 20) + SERIAL
    data[0x500:0x504] = first
    return bytes(data)


@pytest.mark.parametrize("place", [0x104, 0x150, 0x2F0, 0xFF4])
def test_the_serial_number_of_a_function_is_zeros(place: int) -> None:
    config = with_serial(space(acs=(0x1F, 0x1D), vfs=16), place)
    after = without_device_serial(config)
    assert after == config.replace(SERIAL, bytes(8))
    assert after != config


def test_a_configuration_space_reads_the_same() -> None:
    config = bytearray(space(acs=(0x1F, 0x1D), vfs=16, bars_mib=((64, 131072),)))
    last = max(at for at in range(0x100, 0x400, 4) if int.from_bytes(config[at : at + 4], "little") & 0xFFFF == 0x0015)
    config[last : last + 4] = (int.from_bytes(config[last : last + 4], "little") | 0x800 << 20).to_bytes(4, "little")
    config[0x800:0x80C] = struct.pack("<I", 0x00010003) + SERIAL
    before, after = (
        parse_config(data.decode("utf-8", "surrogateescape"))
        for data in (bytes(config), without_device_serial(bytes(config)))
    )
    assert before == after
    assert without_device_serial(bytes(config)).count(SERIAL) == 0


@pytest.mark.parametrize("size", [0, 1, 64, 255, 256, 259, 0x100, 0x106, 4096, 5000])
@pytest.mark.parametrize("fill", [b"\0", b"\xff", b"\x03\0\x01\x10", b"\x03\0\x01\0"])
def test_a_broken_space_ends(size: int, fill: bytes) -> None:
    data = (fill * size)[:size]
    assert len(without_device_serial(data)) == size


@given(st.binary(max_size=600))
def test_any_bytes(data: bytes) -> None:
    assert len(without_device_serial(bytes(0x100) + data)) == 0x100 + len(data)
    assert len(scrubbed_vpd(data, StandIns("s").token)) == len(data)
    field = b"SN" + bytes([min(len(data), 255)]) + data
    assert len(scrubbed_vpd(b"\x90" + struct.pack("<H", len(field)) + field, StandIns("s").token)) == 3 + len(field)


def vpd(**fields: bytes) -> bytes:
    """As ConnectX adapters have it; the checksum makes the sum of all bytes up to it zero."""
    body = b"".join(name.encode() + bytes([len(value)]) + value for name, value in fields.items())
    name = b"\x82\x10\0ConnectX-7 NDR  "
    head = name + b"\x90" + struct.pack("<H", len(body) + 3 + 1) + body + b"RV\x01"
    return head + bytes([-sum(head) & 0xFF]) + b"\x78"


CONNECTX = {
    "PN": b"MCX75310AAS-NEAT", "EC": b"A7", "SN": b"MT2310X00ABC        ", "V0": b"PCIeGen5 x16",
    "V2": b"MCX75310AAS-NEAT", "V3": b"3f0b7a4e5cc8ed118000b83fd2abcdef", "VU": b"MT2310X00ABCMLNXS0D0F0",
    "VA": b"MLX:MN=MLNX:CSKU=V2:UUID=V3:PCI=V0:MODL=CX75310A:SMDL=SW_MNG",
}  # fmt: skip


def test_vital_product_data_keeps_what_it_is_and_loses_which_one() -> None:
    before = vpd(**CONNECTX)
    after = scrubbed_vpd(before, StandIns("salt").token)
    assert len(after) == len(before)
    for gone in (b"MT2310X00ABC", b"3f0b7a4e", b"b83fd2abcdef"):
        assert gone in before
        assert gone not in after
    for kept in ("PN", "EC", "V0", "V2", "VA"):
        assert after.count(CONNECTX[kept]) == before.count(CONNECTX[kept])
    assert sum(after[: len(after) - 1]) & 0xFF == 0
    assert after == scrubbed_vpd(before, StandIns("salt").token)
    assert after != scrubbed_vpd(before, StandIns("pepper").token)


def test_vital_product_data_that_is_broken_is_scrubbed_as_a_text() -> None:
    for broken in (b"\x90\xff\xffSN", b"", b"\x82\x08\0ConnectX\x90\x03\0SN\xff", b"\0"):
        after = scrubbed_vpd(broken + b"MT2310X00ABC SMDL=SW_MNG", StandIns("salt").token)
        assert b"MT2310X00ABC" not in after
        assert b"SMDL=SW_MNG" in after


def test_a_serial_number_of_zeros_stays() -> None:
    data = vpd(SN=b"0000000000000000", PN=b"X")
    assert scrubbed_vpd(data, StandIns("salt").token) == data
