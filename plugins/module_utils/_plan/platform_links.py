# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""PCIe links of GPUs, NICs and NVMe: width and speed against what card and slot can both do, and errors.

Width never changes to save power, so a lost lane is a fault at any time.  Speed does: an idle GPU runs at Gen1, which is
told apart by its performance state (P8 and lower, nvidia-smi) or its event reason gpu_idle.
"""

from __future__ import annotations

import re
from typing import Any, List, Mapping, Optional

from .._engine.values import Finding, Unknown
from .._tables import gpus as catalogue
from .platform_common import Card, cards, is_bare_metal, known, number

Want = Mapping[str, Any]
Have = Mapping[str, Any]

_SOURCE = "PCI Express base specification, link status register"
# What _observe/lspci.py writes where only LnkSta was shown.
_DOWNGRADED = "not shown: more"
_KINDS = {"gpu": "GPU", "nic": "NIC", "nvme": "NVMe"}
# From here on clocks are those of an idle card (nvidia-smi manual: P0 is the most, P12 the least performance).
_IDLE_FROM_P = 5
# GT/s of a PCIe generation (PCI Express base specifications 1.0 to 6.0).
_GTS = {1: 2.5, 2: 5.0, 3: 8.0, 4: 16.0, 5: 32.0, 6: 64.0}


def judge(want: Want, have: Have) -> List[Finding]:
    by_address = {card.address: card for card in cards(want, have)}
    findings: List[Finding] = []
    for device in have["devices"]:
        way = have["ways"].get(device.address)
        if device.kind in _KINDS and way is not None and not isinstance(way, Unknown):
            findings += _on_the_bus(want, have, device, way, by_address.get(device.address))
    for card in by_address.values():
        edge = _edge(have, card.address)
        if card.gpu is not None:
            findings += _told(want, card) if edge is None else _contradiction(card, edge)
    return findings + [finding for place, link in enumerate(have["excerpts"], 1) for finding in _excerpt(place, link)]


def _edge(have: Have, address: str) -> Any:
    """The link from the edge of a card up; None where the bus shows none (a capture without sysfs, a stand-in)."""
    way = have["ways"].get(address)
    wires = () if way is None or isinstance(way, Unknown) else way.card_wires
    return wires[0] if wires and known(wires[0].width) else None


def _contradiction(card: Card, edge: Any) -> List[Finding]:
    """Width never changes by itself, so two sources that were asked at one time have to agree."""
    told = card.gpu.pcie_width
    if not known(told) or told == edge.width:
        return []
    return [
        Finding(
            "platform.sources-contradict", "warn", card.address, "one width", "sysfs says x%d, nvidia-smi says x%d" % (edge.width, told),
            "two sources contradict each other; the link is judged by the bus", "lspci -vv -s %s | grep LnkSta" % card.address, _SOURCE,
        )
    ]  # fmt: skip


def _on_the_bus(want: Want, have: Have, device: Any, way: Any, card: Optional[Card]) -> List[Finding]:
    if way.device.is_dead:
        return [_dead(device)]
    findings = _errors(have, device)
    wires = way.card_wires
    if not wires:
        return findings + ([] if way.is_complete or (card and card.gpu) else _one_end(want, device, way, card))
    edge = wires[0]
    widest, fastest = _allowed(want, device, card, edge)
    if known(edge.width) and known(widest) and edge.width < widest:
        findings.append(_narrow(have, device, edge, widest))
    if known(edge.speed_gts) and known(fastest) and edge.speed_gts < fastest:
        findings += _slow(have, device, card, edge, fastest)
    return findings + _slot(want, device, way, card, edge) + _way(device, wires)


def _allowed(want: Want, device: Any, card: Optional[Card], edge: Any) -> Any:
    """Lanes and GT/s that are in order: what both ends can do, or what the operator says is by design."""
    row = _by_design(want, device.address, "%s:%s" % (device.vendor_id, device.device_id), card)
    width, speed = edge.max_width, edge.max_speed_gts
    if row is not None:
        width = row["width"] or width
        speed = _GTS.get(row["gen"] or 0, speed)
    return width, speed


def _by_design(want: Want, address: str, pci_id: str, card: Optional[Card]) -> Optional[Mapping[str, Any]]:
    names = {address, pci_id, catalogue.plain_name(card.model.name) if card and card.model else ""} - {""}
    for row in want["links"]:
        if row["device"].lower() in names or catalogue.plain_name(row["device"]) in names:
            return dict(row)
    return None


def _narrow(have: Have, device: Any, edge: Any, widest: int) -> Finding:
    is_ours = is_bare_metal(have)
    return Finding(
        "platform.link-width", "fail" if is_ours and _carries_work(have, device) else "warn", device.address, "x%d" % widest, "x%d" % edge.width,
        "lanes are lost between this %s and the port %s: every transfer is that much slower%s"
        % (_KINDS[device.kind], edge.upper, "" if is_ours else "; in a virtual machine the board may be wired so"),
        "reseat the card and its riser, look at the slot's bifurcation in the BIOS; lspci -vv -s %s | grep Lnk; "
        "by design? add it to platform_links" % device.address, _SOURCE,
    )  # fmt: skip


def _carries_work(have: Have, device: Any) -> bool:
    """A GPU, an NVMe, an RDMA NIC; the network chips of a board are often wired with fewer lanes than they have."""
    return device.kind != "nic" or device.address in [nic.address for nic in have["network"].nics]


def _slow(have: Have, device: Any, card: Optional[Card], edge: Any, fastest: float) -> List[Finding]:
    observed = "%g GT/s" % edge.speed_gts
    if device.kind == "gpu":
        idle = idle_sign(card.gpu if card else None)
        if idle is None:
            return [_speed_unjudged(device.address, fastest, observed)]
        if idle:
            return []
    return [
        Finding(
            "platform.link-speed", "fail" if is_bare_metal(have) and _carries_work(have, device) else "warn", device.address, "%g GT/s" % fastest, observed,
            "card and slot can both do more, and it is not idle: the link was trained down",
            "reseat the card; look at the slot's speed in the BIOS; lspci -vv -s %s | grep Lnk; dmesg | grep -i aer"
            % device.address, _SOURCE,
        )
    ]  # fmt: skip


def idle_sign(gpu: Any) -> Optional[str]:
    """What shows that a GPU is idle, empty when it is busy, None when nothing tells."""
    if gpu is None:
        return None
    state = re.fullmatch(r"P(\d{1,2})", str(gpu.pstate))
    if state and int(state.group(1)) >= _IDLE_FROM_P:
        return "performance state %s" % gpu.pstate
    if gpu.event_reasons.get("gpu_idle") is True:
        return "event reason gpu_idle"
    return "" if state else None


def _speed_unjudged(address: str, fastest: float, observed: str) -> Finding:
    return Finding(
        "platform.link-speed-idle", "info", address, "%g GT/s under load" % fastest, observed,
        "an idle GPU lowers its link speed, and without nvidia-smi nothing tells whether it is idle",
        "look again while it works: nvidia-smi -q -i %s -d PERFORMANCE; lspci -vv -s %s | grep LnkSta" % (address, address),
        _SOURCE,
    )  # fmt: skip


def _slot(want: Want, device: Any, way: Any, card: Optional[Card], edge: Any) -> List[Finding]:
    """A slot that gives less than the card can take: nothing is broken, and half of what was bought is not there."""
    able = next((one.link for one in way.functions if one.address == edge.lower), way.device.link)
    row = _by_design(want, device.address, "%s:%s" % (device.vendor_id, device.device_id), card) or {}
    enough = number(catalogue.narrowest_width(card.model)) if card and card.model else 99
    findings: List[Finding] = []
    is_narrow = known(able.max_width) and known(edge.max_width) and edge.max_width < min(able.max_width, enough)
    if is_narrow and not row.get("width"):
        findings.append(_small_slot(device, edge, "x%d" % able.max_width, "x%d" % edge.max_width))
    is_slow = known(able.max_speed_gts) and known(edge.max_speed_gts) and edge.max_speed_gts < able.max_speed_gts
    if is_slow and not row.get("gen") and device.kind == "gpu":
        findings.append(_small_slot(device, edge, "%g GT/s" % able.max_speed_gts, "%g GT/s" % edge.max_speed_gts))
    return findings


def _small_slot(device: Any, edge: Any, able: str, gives: str) -> Finding:
    return Finding(
        "platform.link-slot", "warn", device.address, able, "%s from port %s" % (gives, edge.upper),
        "the %s can do more than its slot gives: nothing is broken, and the rest of its bandwidth is not there"
        % _KINDS[device.kind],
        "move it to another slot, or look at the slot's bifurcation and speed in the BIOS; by design? add it to platform_links",
        _SOURCE,
    )  # fmt: skip


def _way(device: Any, wires: Any) -> List[Finding]:
    """A link further up that gives less than the card's own."""
    rates = [(_bandwidth(wire), wire) for wire in wires]
    own = rates[0][0]
    narrow = [(rate, wire) for rate, wire in rates[1:] if rate and own and rate < own]
    if not narrow:
        return []
    rate, wire = min(narrow, key=lambda pair: pair[0])
    return [
        Finding(
            "platform.link-path", "warn", device.address, "%.1f GB/s" % own,
            "%.1f GB/s between %s and %s" % (rate, wire.upper, wire.lower),
            "the narrowest link on the way to the CPU is not the card's own: what hangs below it shares that",
            "lspci -vv -s %s | grep Lnk; see the board's manual for what shares this switch" % wire.lower, _SOURCE,
        )
    ]  # fmt: skip


def _bandwidth(wire: Any) -> float:
    """GB/s of one direction with the lanes of now at full speed: 8b/10b up to 5 GT/s, 128b/130b above."""
    width, speed = number(wire.width) or number(wire.max_width), number(wire.max_speed_gts)
    return width * speed / 8 * (0.8 if speed <= 5 else 128 / 130)


def _errors(have: Have, device: Any) -> List[Finding]:
    findings: List[Finding] = []
    for name, level in (("fatal", "fail"), ("nonfatal", "fail"), ("correctable", "warn")):
        grown = have["error_growth"].get(device.address, {}).get(name, 0)
        if grown > 0:
            findings.append(
                Finding(
                    "platform.link-errors", level, device.address, "no new errors",
                    "%d more %s errors while it was looked at" % (grown, name),
                    "a link that keeps failing repeats its packets, loses lanes, and one day falls off the bus",
                    "reseat the card and its riser; cat /sys/bus/pci/devices/%s/aer_dev_%s" % (device.address, name),
                    "Linux Documentation/PCI/pcieaer-howto.rst",
                )
            )  # fmt: skip
    way = have["ways"][device.address]
    total = sum(number(getattr(way.device.errors, name)) for name in ("fatal", "nonfatal"))
    if total > 0 and not findings:
        findings.append(
            Finding(
                "platform.link-errors", "warn", device.address, "none since boot",
                "%d uncorrectable errors since boot" % total, "the link has lost or broken packets since the host was started",
                "dmesg | grep -i aer; compare with the next audits", "Linux Documentation/PCI/pcieaer-howto.rst",
            )
        )  # fmt: skip
    return findings


def _dead(device: Any) -> Finding:
    return Finding(
        "platform.device-dead", "fail", device.address, "an answer", "its configuration space reads as all ones",
        "the device fell off the bus: nothing can be asked of it until the host is power-cycled",
        "dmesg | grep -iE 'xid|fallen off|pcieport'; power-cycle the host, then reseat the card", _SOURCE,
    )  # fmt: skip


def _one_end(want: Want, device: Any, way: Any, card: Optional[Card]) -> List[Finding]:
    """A device of lspci whose port is not in the text (lspci -s, or what grep left of the list)."""
    link, row = way.device.link, _by_design(want, device.address, "%s:%s" % (device.vendor_id, device.device_id), card)
    able = (row and row["width"]) or link.max_width
    is_design = bool(card and card.model and known(link.width) and link.width >= catalogue.narrowest_width(card.model))
    return _lowered(device.address, link, able, "info" if is_design else "warn")


def _excerpt(place: int, link: Any) -> List[Finding]:
    """Rows of lspci that somebody copied without the line of the device: what it is cannot be told."""
    return _lowered("function %d of the text" % place, link, link.max_width, "warn")


def _lowered(subject: str, link: Any, able_width: Any, level_of_width: str) -> List[Finding]:
    rows = (
        ("platform.link-width", level_of_width, "x%d", link.width, able_width),
        ("platform.link-speed-idle", "info", "%g GT/s", link.speed_gts, link.max_speed_gts),
    )
    return [
        Finding(
            id_, level, subject, words % able if known(able) else "more: lspci says downgraded", words % now,
            "this end of the link can do more; the slot may not, and an idle GPU lowers its speed (never its width)",
            "take the whole text, with the lines of the devices and of the bridges: lspci -vvv", _SOURCE,
        )
        for id_, level, words, now, able in rows if known(now) and _is_more(able, now)
    ]  # fmt: skip


def _is_more(able: Any, now: float) -> bool:
    return bool(able > now if known(able) else able.reason.startswith(_DOWNGRADED))


def _told(want: Want, card: Card) -> List[Finding]:
    """A link that only nvidia-smi tells of (a capture without sysfs): what the slot can do is then not known."""
    gpu = card.gpu
    row = _by_design(want, card.address, "", card)
    findings: List[Finding] = []
    enough = (row and row["width"]) or gpu.pcie_width_max
    if known(gpu.pcie_width) and known(enough) and gpu.pcie_width < enough:
        is_design = card.model is not None and gpu.pcie_width >= catalogue.narrowest_width(card.model)
        findings.append(
            Finding(
                "platform.link-width", "info" if is_design else "warn", card.address, "x%d" % enough, "x%d" % gpu.pcie_width,
                "fewer lanes than the card has; only nvidia-smi was seen, so the board may be wired so (cloud servers often are)",
                "lspci -vv -s %s | grep Lnk shows card and slot; by design? add it to platform_links" % card.address, _SOURCE,
            )
        )  # fmt: skip
    ends = [end for end in (gpu.pcie_gen_device_max, gpu.pcie_gen_host_max, gpu.pcie_gen_max) if known(end)]
    if known(gpu.pcie_gen) and ends and gpu.pcie_gen < min(ends) and idle_sign(gpu) == "":
        findings.append(
            Finding(
                "platform.link-speed", "warn", card.address, "Gen%d" % min(ends), "Gen%d in %s" % (gpu.pcie_gen, gpu.pstate),
                "the link was trained down though the GPU is not idle", "lspci -vv -s %s | grep Lnk" % card.address, _SOURCE,
            )
        )  # fmt: skip
    return findings
