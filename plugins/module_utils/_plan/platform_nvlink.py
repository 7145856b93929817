# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NVLink and NVSwitch: links that are up against what the model has, equality among peers, errors, fabric.

Links out of use by design (H100 NVL: 12 of 18) are not counted; a PCIe card without a bridge has none, and that is no fault.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional

from .._engine.values import Finding, Unknown
from .._tables import rows
from .platform_common import Card, cards, known, number, smi_gpus

Want = Mapping[str, Any]
Have = Mapping[str, Any]

_MANUAL = "nvidia-smi manual, nvlink"
_FABRIC = "NVIDIA Fabric Manager User Guide"
# Printed rates are rounded; a link that trained down has half of its rate or less.
_SLOW_SHARE = 0.9
_ASK = "nvidia-smi nvlink -s; ps -eo pid,stat,wchan,args | grep nvidia; dmesg | grep -iE 'nvrm|xid'"


def judge(want: Want, have: Have) -> List[Finding]:
    found = cards(want, have)
    links = links_of(have, found)
    findings: List[Finding] = []
    for card in found:
        if card.address in links:
            findings += _links(card, links[card.address], links)
    findings += _uneven(found, links) + _silent(have, found)
    for card in found:
        if card.gpu is not None:
            findings += _fabric(have, card)
    return findings


def links_of(have: Have, found: List[Card]) -> Dict[str, Any]:
    """What nvidia-smi nvlink says of each card, by its address: it numbers GPUs as the rest of nvidia-smi does."""
    told = have["nvlinks"]
    if isinstance(told, Unknown):
        return {}
    gpus = smi_gpus(have)
    by_uuid = {str(gpu.uuid): gpu for gpu in gpus if known(gpu.uuid)}
    by_index = {gpu.index if known(gpu.index) else place: gpu for place, gpu in enumerate(gpus)}
    addresses = {id(card.gpu): card.address for card in found if card.gpu is not None}
    links: Dict[str, Any] = {}
    for one in told:
        gpu = by_uuid.get(one.uuid) or by_index.get(one.index)
        if id(gpu) in addresses:
            links[addresses[id(gpu)]] = one
    return links


def _silent(have: Have, found: List[Card]) -> List[Finding]:
    """A run that hung or failed, though the same tool told of GPUs that have NVLink.  Not asked is no silence."""
    reason = have["nvlinks"].reason if isinstance(have["nvlinks"], Unknown) else ""
    is_hung = "hung" in reason and not reason.startswith("not ")
    is_failed = reason.startswith(("error", "exit")) and isinstance(have["topo"], Unknown)
    if not (is_hung or is_failed) or not any(expected_links(card) for card in found):
        return []
    why = Unknown(reason)
    return [_hung(why) if is_hung else _unseen("host", why)]


def _unseen(subject: str, why: Unknown) -> Finding:
    return Finding(
        "platform.nvlink-unseen", "warn", subject, "an answer", why, "these GPUs have NVLink, and whether it is up cannot be told",
        _ASK, _MANUAL,
    )  # fmt: skip


def _hung(why: Unknown) -> Finding:
    return Finding(
        "platform.nvidia-smi-hung", "fail", "host", "an answer", why,
        "these GPUs have NVLink, and whether it is up cannot be told", _ASK, _MANUAL,
    )  # fmt: skip


def expected_links(card: Card) -> Optional[int]:
    return card.model.nvlink.links if card.model and card.model.nvlink else None


def is_bridged(card: Card) -> bool:
    """A card that is joined to its sisters by a bridge on top; the others stand on a board with its switches."""
    return card.model is not None and card.model.nvlink is not None and "bridge" in card.model.nvlink.via


def _links(card: Card, seen: Any, all_links: Mapping[str, Any]) -> List[Finding]:
    wanted = expected_links(card)
    findings = _errors(card, seen)
    if wanted is None or seen.state == "mig":
        return findings
    if not known(seen.active):
        return findings + ([_unseen(card.address, seen.active)] if seen.active.reason.startswith("error") else [])
    if seen.active == 0 and is_bridged(card):
        # A card without a bridge is one that was bought so, unless its sisters have theirs.
        has_sisters = any(known(other.active) and other.active for other in all_links.values())
        return findings + [_no_bridge(card, "warn" if has_sisters else "info")]
    if seen.active < wanted:
        findings.append(_inactive(card, seen, wanted))
    rate = card.model.nvlink.rate_gbs if card.model and card.model.nvlink else 0
    slow = [one for one in seen.rates_gb_s if one < rate * _SLOW_SHARE]
    if slow:
        findings.append(_slow(card, slow, rate))
    return findings


def _inactive(card: Card, seen: Any, wanted: int) -> Finding:
    is_sure = card.model is not None and rows.is_verified(card.model, "nvlink.links")
    down = sorted(index for index, link in seen.links.items() if link.is_active is False)
    numbers = ", ".join(map(str, down[:18]))
    return Finding(
        "platform.nvlink-inactive", "fail" if is_sure else "warn", card.address, "%d active links" % wanted,
        "%d active%s" % (seen.active, "; inactive: " + numbers if down else ""),
        "traffic between GPUs goes over the links that are left, or over PCIe: a collective runs at the pace of this GPU",
        "nvidia-smi nvlink -s; reseat the bridge; dmesg | grep -iE 'nvlink|xid'" if is_bridged(card)
        else "nvidia-smi nvlink -s; systemctl status nvidia-fabricmanager; dmesg | grep -iE 'nvlink|xid'; then reset all GPUs "
        "together (nvidia-smi --gpu-reset)",
        card.model.source if card.model else _MANUAL,
    )  # fmt: skip


def _no_bridge(card: Card, level: str) -> Finding:
    return Finding(
        "platform.nvlink-no-bridge", level, card.address, "a bridge, or none in the whole host", "no active link",
        "this card talks to its peers over PCIe" + ("; others of this host have a bridge" if level == "warn" else ""),
        "fit a bridge if one was ordered; nvidia-smi nvlink -s", _MANUAL,
    )  # fmt: skip


def _slow(card: Card, slow: List[float], rate: float) -> Finding:
    return Finding(
        "platform.nvlink-rate", "warn", card.address, "%g GB/s a link" % rate, ", ".join("%g GB/s" % one for one in slow),
        "links that trained down carry less; a module option may do it too (NVreg_RmNvlinkBandwidth)",
        "nvidia-smi nvlink -s; cat /proc/driver/nvidia/params", card.model.source if card.model else _MANUAL,
    )  # fmt: skip


def _errors(card: Card, seen: Any) -> List[Finding]:
    rows_of = ["link %d: %s %d" % (link, name, count) for link, counters in sorted(seen.errors.items())
               for name, count in sorted(counters.items())]  # fmt: skip
    if not rows_of:
        return []
    return [
        Finding(
            "platform.nvlink-errors", "warn", card.address, "no errors",
            "; ".join(rows_of[:6]) + ("; %d more" % (len(rows_of) - 6) if len(rows_of) > 6 else ""),
            "errors that the link recovers from cost time, and a link whose counters keep moving fails in the end",
            "compare with the next audits; nvidia-smi nvlink -e; reseat the GPU or its bridge when they grow", _MANUAL,
        )
    ]  # fmt: skip


def _uneven(found: List[Card], links: Mapping[str, Any]) -> List[Finding]:
    """Peers of one model have equal links; it is the only measure for a model that the catalogue does not know."""
    counts = {card.address: links[card.address].active for card in found
              if card.address in links and known(links[card.address].active)}  # fmt: skip
    names = {str(card.gpu.name) for card in found if card.address in counts and card.gpu is not None}
    if (
        len(set(counts.values())) < 2
        or len(names) > 1
        or all(expected_links(card) is not None for card in found if card.address in counts)
    ):
        return []
    most = max(counts.values())
    fewer = ["%s: %d" % (address, count) for address, count in counts.items() if count < most]
    return [
        Finding(
            "platform.nvlink-uneven", "warn", "host", "%d active links on each GPU" % most, "; ".join(fewer),
            "GPUs of one model have equal links; the ones with fewer slow all others down",
            "nvidia-smi nvlink -s; nvidia-smi topo -m; dmesg | grep -iE 'nvlink|xid'", _MANUAL,
        )
    ]  # fmt: skip


def _fabric(have: Have, card: Card) -> List[Finding]:
    state, status = card.gpu.fabric_state, card.gpu.fabric_status
    if not known(state):
        return []
    # The status is an error word of NVML where the fabric could not be joined.
    failed = (
        status.reason.partition(": ")[2] if isinstance(status, Unknown) and status.reason.startswith("error") else ""
    )
    said = failed or (str(status) if known(status) else "")
    is_done = str(state).lower() == "completed" and said.lower() in ("success", "")
    health = [name for name, word in card.gpu.fabric_health.items()
              if name not in ("summary", "partition_assigned") and str(word).lower() in ("true", "degraded", "yes")]  # fmt: skip
    if is_done and not health:
        return []
    waits = str(state).lower() in ("in progress", "not started") and have["fabric"].mode == 1
    observed = "; ".join([", ".join(word for word in (str(state), said) if word), *health])
    return [
        Finding(
            "platform.nvlink-fabric", "info" if waits else "fail", card.address, "Completed, Success", observed,
            "with FABRIC_MODE=1 a GPU waits until its partition is activated" if waits
            else "the GPU is not part of the NVLink fabric: CUDA does not start (error 802), or jobs run without NVLink",
            "systemctl status nvidia-fabricmanager; journalctl -u nvidia-fabricmanager -b; its version must equal the driver's",
            _FABRIC,
        )
    ]  # fmt: skip


def active_links(seen: Any) -> Optional[int]:
    return int(number(seen.active)) if seen is not None and known(seen.active) else None
