# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The management controller itself: which firmware it runs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Dict

from .._engine.host import Host
from .._engine.values import Text, Unknown, lines
from .ipmi_power import DEVICES
from .power import Power

INFO = ("ipmitool", "mc", "info")
# The same answer by its older name; a capture may hold either.
_OLD_NAME = ("ipmitool", "bmc", "info")
DEADLINE_S = 5.0
# Get Device ID has a major part of seven bits and a minor part of two decimal digits (IPMI 2.0, table 20-2).
_REVISION = re.compile(r"\d{1,3}\.\d{1,2}", re.ASCII)


@dataclass(frozen=True)
class Bmc:
    """``firmware`` has two parts, such as 1.74.  What vendors write behind these is not in it."""

    firmware: Text
    manufacturer: Text


def observe(host: Host, power: Power) -> Bmc:
    """One run of ipmitool, unless the run for the sensors, ``power``, told that there is none or that it hangs."""
    if host.is_live and not any(host.exists(path) for path in DEVICES):
        none = Unknown("no IPMI device: %s is not there" % DEVICES[0])
        return Bmc(none, none)
    if isinstance(power.supplies, Unknown) and power.supplies.reason.startswith("ipmitool"):
        return Bmc(power.supplies, power.supplies)
    text = host.run(list(INFO), DEADLINE_S).text()
    if isinstance(text, Unknown) and not host.is_live:
        text = host.run(list(_OLD_NAME)).text()
    return parse(text)


def parse(text: Text) -> Bmc:
    """What ``ipmitool mc info`` says."""
    if isinstance(text, Unknown):
        return Bmc(text, text)
    said: Dict[str, str] = {}
    for line in lines(text):
        name, colon, value = line.partition(":")
        if colon:
            said.setdefault(name.strip().lower(), value.strip())
    firmware = said.get("firmware revision", "")
    maker = said.get("manufacturer name", "")
    return Bmc(
        firmware if _REVISION.fullmatch(firmware) else Unknown("ipmitool names no firmware revision"),
        maker if maker and not maker.lower().startswith("unknown") else Unknown("ipmitool names no manufacturer"),
    )
