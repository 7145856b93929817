# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Quality of service of the Ethernet interfaces behind RDMA ports: PFC, trust, DCBX, ECN and pause, as they are.

ECN is in files of the vendor driver only; PFC, trust and DCBX come from dcb, or from mlnx_qos where only that is there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Dict, FrozenSet, List, Mapping, Optional, Sequence, Tuple, Union

from .._engine.host import Host
from .._engine.values import Unknown
from .dcb import parse_dcb_app, parse_dcb_apptrust, parse_dcb_dcbx, parse_dcb_pfc
from .ethtool import parse_ethtool_pause, parse_ethtool_statistics
from .mlnx_qos import parse_mlnx_qos, parse_trust
from .netdev import NETDEV_FOLDER, parse_count
from .tool_text import Flag, Number, Word

Priorities = Union[FrozenSet[int], Unknown]

DEADLINE_S = 5.0
# Drivers whose app table is their trust state: mapped DSCPs are trusted, none mapped means pcp (mlnx_qos does the same).
_TRUST_IS_THE_TABLE = ("mlx5_core",)
# Of the hundreds of counters of ethtool -S those that tell of loss, pause and a bad link.
_TELLING = re.compile(
    r"(rx|tx)_(pause|pause_ctrl_phy|pause_duration|global_pause|global_pause_duration|pause_storm_(warning|error)_events)"
    r"|(rx|tx)_prio[0-7]_(pause|pause_duration|pause_transition|discards|buf_discard|cong_discard|marked)"
    r"|(rx|tx)_(discards_phy|errors_phy|crc_errors_phy|symbol_err_phy|pcs_symbol_err_phy|corrected_bits_phy)"
    r"|link_down_events_phy|rx_out_of_buffer|out_of_buffer|rx_crc_errors|rx_errors|tx_errors|outbound_pci_stalled_(rd|wr)"
)


@dataclass(frozen=True)
class Qos:
    """``source`` is the tool that told of PFC; ``dcbx`` is os or firmware: with the latter the switch has the say.

    ``ecn_np`` and ``ecn_rp`` are the priorities with ECN on the receiving (notification) and sending (reaction) side.
    """

    interface: str
    source: str
    pfc: Priorities
    pfc_capacity: Number
    trust: Word
    priority_of_dscp: Union[Mapping[int, int], Unknown]
    dcbx: Word
    pause_rx: Flag
    pause_tx: Flag
    ecn_np: Priorities
    ecn_rp: Priorities
    cnp_dscp: Number
    counters: Mapping[str, Number]


class Tools:
    """Runs commands with a deadline.  One that is missing or hung is not asked again on a live host."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._gone: Dict[str, Unknown] = {}

    def ask(self, *argvs: Sequence[str], partial: bool = False) -> Union[str, Unknown]:
        """What a command says; the further argvs are other forms in which it may have been recorded.

        With ``partial`` also what it printed before it failed.
        """
        first: Optional[Unknown] = None
        for argv in argvs[:1] if self._host.is_live else argvs:
            if argv[0] in self._gone:
                return self._gone[argv[0]]
            result = self._host.run(argv, DEADLINE_S)
            text = result.text()
            if isinstance(text, Unknown) and partial and not result.unknown and result.stdout.strip():
                text = result.stdout
            if isinstance(text, str):
                return text
            first = text if first is None else first
            if self._host.is_live and result.unknown:
                self._gone[argv[0]] = Unknown(result.unknown)
        return Unknown("nothing to ask") if first is None else first


def observe_qos(host: Host, tools: Tools, interface: str, driver: Optional[str]) -> Qos:
    pause = tools.ask(["ethtool", "-a", interface], ["ethtool", "--show-pause", interface])
    paused = parse_ethtool_pause(pause) if isinstance(pause, str) else None
    ecn = "%s/%s/ecn/" % (NETDEV_FOLDER, interface)
    source, pfc, capacity, trust, mapping, dcbx = _dcb(tools, interface, driver)
    if isinstance(pfc, Unknown) and source != "dcb":
        source, pfc, capacity, trust, mapping, dcbx = _mlnx_qos(tools, interface, pfc)
    own = parse_trust(host.read("%s/%s/qos/trust" % (NETDEV_FOLDER, interface)))
    return Qos(
        interface,
        source,
        pfc,
        capacity,
        own if isinstance(own, str) else trust,
        mapping,
        dcbx,
        paused.rx if paused else _reason(pause),
        paused.tx if paused else _reason(pause),
        _ecn(host, ecn + "roce_np/enable"),
        _ecn(host, ecn + "roce_rp/enable"),
        parse_count(host.read(ecn + "roce_np/cnp_dscp")),
        interface_counters(tools, interface),
    )


def interface_counters(tools: Tools, interface: str) -> Dict[str, Number]:
    """The telling counters of ``ethtool -S``; nothing where it does not answer."""
    text = tools.ask(["ethtool", "-S", interface])
    counters = parse_ethtool_statistics(text) if isinstance(text, str) else {}
    return {name: value for name, value in counters.items() if _TELLING.fullmatch(name)}


_Told = Tuple[str, Priorities, Number, Word, Union[Mapping[int, int], Unknown], Word]


def _dcb(tools: Tools, interface: str, driver: Optional[str]) -> _Told:
    said = {name: _show(tools, name, interface) for name in ("pfc", "app", "dcbx")}
    pfc, app, dcbx = said["pfc"], said["app"], said["dcbx"]
    if isinstance(pfc, Unknown):
        return "", pfc, pfc, pfc, pfc, pfc
    control = parse_dcb_pfc(pfc)
    mapping = parse_dcb_app(app).priority_of_dscp if isinstance(app, str) else app
    mode = parse_dcb_dcbx(dcbx) if isinstance(dcbx, str) else dcbx
    by: Word = mode if isinstance(mode, Unknown) else "os" if "host" in mode else "firmware"
    return "dcb", control.enabled, control.capacity, _trust(tools, interface, driver, mapping), mapping, by


def _show(tools: Tools, what: str, interface: str) -> Union[str, Unknown]:
    rest = [what, "show", "dev", interface]
    return tools.ask(["dcb", "-j", *rest], ["dcb", *rest], ["dcb", "-N", *rest], ["dcb", "-s", *rest])


def _trust(tools: Tools, interface: str, driver: Optional[str], mapping: Union[Mapping[int, int], Unknown]) -> Word:
    if isinstance(mapping, Unknown):
        return mapping
    if driver in _TRUST_IS_THE_TABLE:
        return "dscp" if mapping else "pcp"
    order = _show(tools, "apptrust", interface)
    first = parse_dcb_apptrust(order) if isinstance(order, str) else order
    if isinstance(first, Unknown):
        return Unknown("the driver %s does not tell what it trusts: %s" % (driver or "?", first.reason))
    return next((word for word in first if word in ("dscp", "pcp")), Unknown("trusts neither dscp nor pcp"))


def _mlnx_qos(tools: Tools, interface: str, before: Unknown) -> _Told:
    text = tools.ask(["mlnx_qos", "-i", interface])
    if isinstance(text, Unknown):
        why = Unknown("%s; %s" % (before.reason, text.reason))
        return "", why, why, why, why, why
    told = parse_mlnx_qos(text)
    return "mlnx_qos", told.pfc, Unknown("not told by mlnx_qos"), told.trust, told.priority_of_dscp, told.dcbx


def _ecn(host: Host, folder: str) -> Priorities:
    """One file a priority, 0 or 1."""
    names: List[str] = [name for name in host.listdir(folder) if re.fullmatch("[0-7]", name)]
    values = {name: parse_count(host.read("%s/%s" % (folder, name))) for name in names}
    unclear = [value for value in values.values() if isinstance(value, Unknown)]
    if unclear or not values:
        return unclear[0] if unclear else Unknown("no %s: the kernel's own driver has none" % folder)
    return frozenset(int(name) for name, value in values.items() if value)


def _reason(answer: Union[str, Unknown]) -> Unknown:
    """ethtool says of an interface that has no pause that it is not supported, with exit status 76."""
    if isinstance(answer, Unknown) and "not supported" in answer.reason:
        return Unknown("not applicable: %s" % answer.reason)
    return answer if isinstance(answer, Unknown) else Unknown("not printed")
