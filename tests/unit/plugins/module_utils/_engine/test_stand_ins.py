# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stand-ins: one for each thing, of the same kind, and none that two captures share."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpufleet.host.plugins.module_utils._engine.stand_ins import StandIns
from ansible_collections.gpufleet.host.plugins.module_utils._observe.show_gids import Gid

MAC = bytes.fromhex("b83fd2abcde0")


def test_a_mac_is_in_its_guid_and_in_its_gid() -> None:
    make = StandIns("salt")
    made = make.mac(MAC)
    assert make.guid(MAC[:3] + b"\x03\0" + MAC[3:]) == made[:3] + b"\x03\0" + made[3:]
    # RFC 4291 turns the bit for "locally administered".
    assert make.guid(bytes([MAC[0] ^ 2]) + MAC[1:3] + b"\xff\xfe" + MAC[3:]) == made[:3] + b"\xff\xfe" + made[3:]


@pytest.mark.parametrize("raw", ["000000000000", "ffffffffffff", "01005e000001", "333300000001"])
def test_macs_of_nobody_and_of_groups_stay(raw: str) -> None:
    assert StandIns("salt").mac(bytes.fromhex(raw)) == bytes.fromhex(raw)


@pytest.mark.parametrize("raw", ["0000000000000000", "0000000000000001", "ffffffffffffffff"])
def test_guids_that_were_counted_stay(raw: str) -> None:
    assert StandIns("salt").guid(bytes.fromhex(raw)) == bytes.fromhex(raw)


def test_no_two_addresses_become_one() -> None:
    make = StandIns("salt")
    made = {
        make.ipv4("10.%d.%d.%d" % (one, two, three)) for one in range(3) for two in range(9) for three in range(200)
    }
    assert len(made) == 3 * 9 * 200
    assert all(ipaddress.IPv4Address(address) in ipaddress.IPv4Network("198.18.0.0/15") for address in made)


@given(st.binary(min_size=16, max_size=16), st.sampled_from(["", "fe80000000000000", "00000000000000000000ffff"]))
def test_a_gid_stays_of_its_kind(raw: bytes, start: str) -> None:
    raw = (bytes.fromhex(start) + raw)[:16]
    made = StandIns("salt").ipv6(ipaddress.IPv6Address(raw))
    before, after = (Gid(0, address.exploded, 2, "") for address in (ipaddress.IPv6Address(raw), made))
    assert before.is_link_local == after.is_link_local
    assert (before.ipv4 is None) == (after.ipv4 is None)


def test_one_network_stays_one() -> None:
    make = StandIns("salt")
    made = [
        make.ipv6(ipaddress.IPv6Address("2a02:db8:%d::%s" % (net, host))) for net in (1, 2) for host in ("7", "a:bcde")
    ]
    networks = [address.packed[:8] for address in made]
    assert networks[0] == networks[1] != networks[2] == networks[3]


def test_another_capture_has_others() -> None:
    one, other = StandIns("salt"), StandIns("pepper")
    for verb, word in (
        ("serial", "S64H"),
        ("host", "gpu07"),
        ("like", "ab-cd"),
        ("ipv4", "10.0.0.1"),
        ("token", "S64H"),
    ):
        assert getattr(one, verb)(word) == getattr(one, verb)(word) != getattr(other, verb)(word)
    assert one.mac(MAC) != other.mac(MAC)


@given(st.text(max_size=80))
def test_any_text(text: str) -> None:
    make = StandIns("salt")
    assert len(make.token(text)) == len(text)
    assert len(make.like(text)) == len(text)
    assert make.serial(text).startswith("serial-")
    assert make.host(text).startswith("host-")
