# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Network interfaces from sysfs: state, speed, MTU, how often the link went, and which bond they belong to.

The state here is that of the network interface; the state of an RDMA port is in :mod:`rdma`, and they may differ.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Dict, Optional, Tuple

from .._engine.host import Host
from .._engine.values import Text, Unknown
from .tool_text import Flag, Number, Word, no_value, whole

NETDEV_FOLDER = "/sys/class/net"

# Of an interface: how often its link went and came (Documentation/ABI/testing/sysfs-class-net).
_LINK_COUNTERS = ("carrier_changes", "carrier_up_count", "carrier_down_count")
_NAME = re.compile(r"[^\s/]{1,64}")


@dataclass(frozen=True)
class Netdev:
    """``speed_mbps`` is unknown while there is no link; ``bond`` is the bond it is a member of.

    ``members`` are those of a bond, ``dev_port`` is the port of the adapter behind it.
    """

    name: str
    operstate: Word
    has_carrier: Flag
    mtu: Number
    speed_mbps: Number
    duplex: Word
    dev_port: Number
    driver: Optional[str]
    bond: Optional[str]
    bond_mode: Optional[str]
    members: Tuple[str, ...]
    counters: Dict[str, Number]


def observe_netdev(host: Host, name: str) -> Optional[Netdev]:
    """An interface, None where there is none of that name (it may be in another network namespace)."""
    folder = "%s/%s" % (NETDEV_FOLDER, name)
    if not _NAME.fullmatch(name) or name in (".", "..") or not host.exists(folder):
        return None
    driver, bond = host.readlink(folder + "/device/driver"), host.readlink(folder + "/master")
    mode, members = host.read(folder + "/bonding/mode"), host.read(folder + "/bonding/slaves")
    return Netdev(
        name,
        parse_operstate(host.read(folder + "/operstate")),
        parse_carrier(host.read(folder + "/carrier")),
        parse_count(host.read(folder + "/mtu")),
        parse_speed_mbps(host.read(folder + "/speed")),
        _word(host.read(folder + "/duplex")),
        parse_count(host.read(folder + "/dev_port")),
        driver.rsplit("/", 1)[-1] if driver else None,
        bond.rsplit("/", 1)[-1] if bond else None,
        mode.split()[0] if isinstance(mode, str) and mode.strip() else None,
        tuple(members.split()[:64]) if isinstance(members, str) else (),
        read_link_counters(host, name),
    )


def read_link_counters(host: Host, name: str) -> Dict[str, Number]:
    """What moves when the link flaps."""
    return {key: parse_count(host.read("%s/%s/%s" % (NETDEV_FOLDER, name, key))) for key in _LINK_COUNTERS}


def parse_operstate(text: Text) -> Word:
    """up, down, dormant, lowerlayerdown, …; the kernel's own ``unknown`` is unknown (RFC 2863)."""
    word = text.strip() if isinstance(text, str) else ""
    if re.fullmatch("up|down|dormant|lowerlayerdown|testing|notpresent", word):
        return word
    return text if isinstance(text, Unknown) else Unknown("operstate is %r" % word[:40] if word else "no operstate")


def parse_carrier(text: Text) -> Flag:
    """0 or 1; reading fails (EINVAL) while the interface is switched off."""
    word = text.strip() if isinstance(text, str) else ""
    if word in ("0", "1"):
        return word == "1"
    return text if isinstance(text, Unknown) else Unknown("carrier is %r" % word[:40] if word else "no carrier file")


def parse_speed_mbps(text: Text) -> Number:
    """-1 (and on old kernels 4294967295 or 65535) means that there is no link to have a speed."""
    word = text.strip() if isinstance(text, str) else ""
    if re.fullmatch("[1-9][0-9]{0,7}", word) and word != "65535":
        return int(word)
    return text if isinstance(text, Unknown) else Unknown("speed is %r: no link" % word[:40] if word else "no speed")


def parse_count(text: Text) -> Number:
    """A counter or another whole number of sysfs; ``N/A (no PMA)`` where the port has no such counter."""
    if not isinstance(text, str):
        return Unknown("no such file") if text is None else text
    word = text.strip()
    return Unknown("not applicable: %s" % word[:40]) if word.startswith("N/A") else whole(word)


def _word(text: Text) -> Word:
    if not isinstance(text, str):
        return Unknown("no such file") if text is None else text
    return text.strip() if text.strip() not in ("", "unknown") else no_value(text.strip())
