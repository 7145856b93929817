# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The states of an RDMA port, in one spelling for sysfs, rdma, ibstat and ibv_devinfo.

Words: ``ib_port_state`` and ``phys_state`` of the kernel (include/rdma/ib_verbs.h); each tool spells them in its way.
"""

from __future__ import annotations

import re
from typing import Mapping

from .._engine.values import Text, Unknown
from .tool_text import Float, Word, no_value, real

_STATES: Mapping[str, str] = {
    "active": "ACTIVE",
    "down": "DOWN",
    "init": "INIT",
    "initializing": "INIT",
    "armed": "ARMED",
    "activedefer": "ACTIVE_DEFER",
    "nop": "NOP",
}
_PHYSICAL: Mapping[str, str] = {
    "linkup": "LINK_UP",
    "disabled": "DISABLED",
    "polling": "POLLING",
    "sleep": "SLEEP",
    "portconfigurationtraining": "TRAINING",
    "portconfigurationtrainning": "TRAINING",
    # rdma(8) names the state 4 so; ARMED is no physical state.
    "armed": "TRAINING",
    "linkerrorrecovery": "ERROR_RECOVERY",
    "linkerrorrecover": "ERROR_RECOVERY",
    "phytest": "PHY_TEST",
    "nostatechange": "NOP",
    "nop": "NOP",
}
# Soft RoCE and soft iWARP (drivers/infiniband/sw): names they get by default, and what they describe themselves as.
_SOFTWARE_NAME = re.compile(r"(rxe|siw)[0-9_].*|(rxe|siw)_?[A-Za-z].*")


def parse_port_state(text: Text) -> Word:
    """``4: ACTIVE``, ``PORT_ACTIVE (4)``, ``Active`` and ``ACTIVE`` as ``ACTIVE``."""
    return _in_one_spelling(text, _STATES)


def parse_physical_state(text: Text) -> Word:
    """``5: LinkUp``, ``LINK_UP (5)`` and ``LinkUp`` as ``LINK_UP``."""
    return _in_one_spelling(text, _PHYSICAL)


def parse_rate(text: Text) -> Float:
    """``400 Gb/sec (4X NDR)`` or ``400`` as 400.0; a port that is down shows a rate too, which means nothing."""
    if not isinstance(text, str):
        return Unknown("no rate") if text is None else text
    found = re.match(r"\s*([0-9]{1,5}(?:\.[0-9]{1,2})?)(?=\s|$)", text)
    return real(found.group(1)) if found else no_value(text.strip())


def is_software_name(name: str) -> bool:
    """Whether a device is called as soft RoCE and soft iWARP devices are: no hardware NIC."""
    return _SOFTWARE_NAME.fullmatch(name[:64]) is not None


def _in_one_spelling(text: Text, words: Mapping[str, str]) -> Word:
    if not isinstance(text, str):
        return Unknown("no state") if text is None else text
    word = text.strip()[:80]
    bare = re.sub(r"\s{0,40}\([0-9]{1,3}\)$|^[0-9]{1,3}:\s{0,40}", "", word)
    key = re.sub(r"[^a-z]", "", bare.lower())
    key = key[4:] if key.startswith("port") and key[4:] in words else key
    return words[key] if key in words else no_value(word)
