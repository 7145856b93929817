# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The matrix of ``nvidia-smi topo -m``, for what was not seen in a better place: NVLinks, and NICs without sysfs.

A cell tells the type of a connection and no cause: link states and the bus are judged before it where they are there.
"""

from __future__ import annotations

from typing import Any, List, Mapping

from .._engine.values import Finding, Unknown
from .._tables import gpus as catalogue
from .platform_common import Card, cards, has_nvswitch, known, smi_gpus, tables_of
from .platform_nvlink import is_bridged

Want = Mapping[str, Any]
Have = Mapping[str, Any]

_MANUAL = "nvidia-smi manual, topo"
_FIX = (
    "nvidia-smi nvlink -s; systemctl status nvidia-fabricmanager; nvidia-smi -q | grep -A3 Fabric; "
    "dmesg | grep -iE 'nvlink|xid'; in a virtual machine ask its host"
)
# Bridges join two to four cards; three that are all joined to each other stand on a board that joins all of its GPUs.
_MESH = 3
# Boards without NVSwitches (DGX-1, DGX Station) bond at most four between two GPUs; with NVSwitches it is six or more.
_SWITCHED = 6
_FAR = ("SYS", "SOC")


def judge(want: Want, have: Have) -> List[Finding]:
    topo = have["topo"]
    if isinstance(topo, Unknown):
        return []
    findings = _nics(want, topo) if isinstance(have["gpus"], Unknown) else []
    return findings + (_nvlinks(want, have, topo) if isinstance(have["nvlinks"], Unknown) else [])


def _nvlinks(want: Want, have: Have, topo: Any) -> List[Finding]:
    names = list(topo.gpus)
    words = [topo.connection(one, other) for place, one in enumerate(names) for other in names[place + 1 :]]
    seen = {word for word in words if not isinstance(word, Unknown)}
    bonds = sorted({word for word in seen if word.startswith("NV")})
    found = cards(want, have)
    if seen and not bonds and _is_board(want, found):
        return [_down("host", "NV# between GPUs", "all pairs meet over PCIe: %s" % ", ".join(sorted(seen)))]
    # Some of several cards may have a bridge.
    outside = [] if any(is_bridged(card) for card in found) else _outside(topo, names)
    if outside:
        return [
            _down(_address(have, name), "NV# to its peers", "%s meets all others over PCIe, which are joined by %s"
                  % (name, ", ".join(bonds)))
            for name in outside
        ]  # fmt: skip
    if len(bonds) > 1 and has_nvswitch(have) and len({card.model for card in found}) == 1:
        return [_down("host", "one number of links between all GPUs", ", ".join(bonds))]
    return [] if found else _fewer(topo, names)


def _is_board(want: Want, found: List[Card]) -> bool:
    """Whether the model comes on boards that join all GPUs: as told, else as wanted."""
    models = [card.model for card in found] or [catalogue.by_name(want["gpu_model"], tables_of(want).gpus)]
    return any(model and model.nvlink and "bridge" not in model.nvlink.via for model in models)


def _fewer(topo: Any, names: List[str]) -> List[Finding]:
    """GPUs that are joined to all others by fewer links: over NVSwitches each pair has all links of the one and the other."""
    counts = [topo.nvlinks(one, other) for place, one in enumerate(names) for other in names[place + 1 :]]
    if len(names) < _MESH or not all(map(known, counts)):
        return []
    most = max(counts)
    if not 0 < min(counts) < most or most < _SWITCHED:
        return []
    low = [one for one in names if all(topo.nvlinks(one, other) < most for other in names if other != one)]
    return [
        _down(
            ", ".join(low) or "host",
            "NV%d between all GPUs" % most,
            ", ".join("NV%d" % count for count in sorted(set(counts))),
        )
    ]


def _outside(topo: Any, names: List[str]) -> List[str]:
    """GPUs without any NVLink, where all the others are joined to each other as far as the matrix tells."""
    links = {(one, other): topo.nvlinks(one, other) for one in names for other in names if one != other}
    joined = [one for one in names if any(known(links[pair]) and links[pair] for pair in links if pair[0] == one)]
    is_mesh = not any(links[pair] == 0 for pair in links if set(pair) <= set(joined))
    if len(joined) < _MESH or not is_mesh:
        return []
    return [name for name in names if name not in joined and name not in topo.missing]


def _address(have: Have, name: str) -> str:
    """The PCI address of GPU2, where nvidia-smi counts as many GPUs."""
    gpus, number = smi_gpus(have), name[len("GPU") :]
    gpu = gpus[int(number)] if number.isascii() and number.isdigit() and int(number) < len(gpus) else None
    return str(gpu.address) if gpu is not None and known(gpu.address) else name


def _down(subject: str, expected: str, observed: str) -> Finding:
    return Finding(
        "platform.nvlink-inactive", "fail", subject, expected, observed,
        "the fabric is not up, or links are lost: collectives run over PCIe, at the pace of the worst pair", _FIX, _MANUAL,
    )  # fmt: skip


def _nics(want: Want, topo: Any) -> List[Finding]:
    """GPUs that have all NICs on the other socket."""
    named = [
        name for name, device in topo.nics.items() if name in want["rdma_devices"] or device in want["rdma_devices"]
    ]
    nics = named or list(topo.nics)
    ways = {gpu: [topo.connection(gpu, nic) for nic in nics] for gpu in topo.gpus}
    far = [gpu for gpu, words in ways.items() if words and all(word in _FAR for word in words)]
    if not far:
        return []
    return [
        Finding(
            "platform.locality-nic", "warn" if named else "info", "host", "an RDMA NIC on the socket of each GPU",
            "%s: SYS to all of %s" % (", ".join(far[:8]), ", ".join(nics[:4])),
            "what these GPUs send crosses the link between the sockets",
            "move a card to a slot of the other socket, or give jobs that need it the other GPUs", _MANUAL,
        )
    ]  # fmt: skip
