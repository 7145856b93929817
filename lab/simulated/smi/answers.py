# Copyright: (c) 2026, gpufleet.host contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The outputs of nvidia-smi, letter by letter as driver 590 writes them.  Pure."""

from __future__ import annotations

import time
from typing import Sequence

from .cards import Card
from .recorded import ALIASES, COLUMNS, CUDA, DRIVER, HEX, Row, columns, rows
from .troubles import ERRORS

NVML = DRIVER.rsplit(".", 1)[0]
_COLON_AT = 55

_LEGEND = """
Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)
  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host Bridges within a NUMA node
  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)
  PXB  = Connection traversing multiple PCIe bridges (without traversing the PCIe Host Bridge)
  PIX  = Connection traversing at most a single PCIe bridge
  NV#  = Connection traversing a bonded set of # NVLinks
"""


class BadColumn(Exception):
    """A column that --query-gpu does not know."""


def version() -> str:
    return (
        f"NVIDIA-SMI version  : {DRIVER}\nNVML version        : {NVML}\n"
        f"DRIVER version      : {DRIVER}\nCUDA Version        : {CUDA}\n"
    )


def listing(cards: Sequence[Card]) -> str:
    """-L"""
    return "".join(_head(index, card) for index, card in enumerate(cards))


def text(cards: Sequence[Card], now: time.struct_time) -> str:
    """-q"""
    lines = [
        "",
        "==============NVSMI LOG==============",
        "",
        _line("Timestamp", time.strftime("%a %b %e %H:%M:%S %Y", now), 0),
        _line("Driver Version", DRIVER, 0),
        _line("CUDA Version", CUDA, 0),
        "",
        _line("Attached GPUs", str(len(cards)), 0),
    ]
    for number, card in enumerate(cards):
        lines += ["", *_text_of(card)] if number else _text_of(card)
    return "\n".join(lines) + "\n"


def xml(cards: Sequence[Card], now: time.struct_time) -> str:
    """-q -x"""
    lines = [
        '<?xml version="1.0" ?>',
        '<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v13.dtd">',
        "<nvidia_smi_log>",
        f"\t<timestamp>{time.strftime('%a %b %e %H:%M:%S %Y', now)}</timestamp>",
        f"\t<driver_version>{DRIVER}</driver_version>",
        f"\t<cuda_version>{CUDA}</cuda_version>",
        f"\t<attached_gpus>{len(cards)}</attached_gpus>",
    ]
    for card in cards:
        lines += [f'\t<gpu id="{card.value("pci/pci_bus_id")}">', *_xml_of(card), "\t</gpu>", ""]
    return "\n".join([*lines, "</nvidia_smi_log>", ""])


def query(cards: Sequence[Card], names: Sequence[str], layout: Sequence[str], now: time.struct_time) -> str:
    """--query-gpu=NAMES --format=csv[,noheader][,nounits]"""
    recorded = columns()
    titles = {title.split(" ")[0]: title for title in recorded}
    wanted = [ALIASES.get(name, name.replace("clocks_throttle_", "clocks_event_")) for name in names]
    for name in wanted:
        if name not in titles:
            raise BadColumn(name)
    lines = [] if "noheader" in layout else [", ".join(titles[name] for name in wanted)]
    known = {row.path: row.value for row in rows()}
    for index, card in enumerate(cards):
        own = {
            "timestamp": time.strftime("%Y/%m/%d %H:%M:%S.000", now),
            "count": str(len(cards)),
            "index": str(index),
            "compute_cap": card.model.compute_cap,
        }
        cells = [own.get(name) or _cell(card, name, recorded[titles[name]], known) for name in wanted]
        if "nounits" in layout:
            cells = [_without_unit(cell, titles[name]) for name, cell in zip(wanted, cells)]
        lines.append(", ".join(cells))
    return "\n".join(lines) + "\n"


def nvlink_status(cards: Sequence[Card]) -> str:
    """nvlink -s"""
    out = ""
    for index, card in enumerate(cards):
        out += _head(index, card)
        if not any(card.links):
            out += "NVML: Unable to retrieve NVLink information as all links are inActive\n"
            continue
        for link, is_active in enumerate(card.links):
            out += f"\t Link {link}: {card.model.link_rate if is_active else '<inactive>'}\n"
    return out


def nvlink_errors(cards: Sequence[Card]) -> str:
    """nvlink -e; only the first link of a GPU is ever told to have errors."""
    out = ""
    for index, card in enumerate(cards):
        out += _head(index, card)
        for link, is_active in enumerate(card.links):
            replays = card.link_errors if link == 0 else 0
            if is_active:
                out += f"\t Link {link}: Replay Errors: {replays}\n"
                out += f"\t Link {link}: Recovery Errors: 0\n\t Link {link}: CRC Errors: 0\n\n"
    return out


def topology(cards: Sequence[Card]) -> str:
    """topo -m; the underline codes come with and without a terminal."""
    head = [f"GPU{index}" for index in range(len(cards))] + ["CPU Affinity", "NUMA Affinity", "GPU NUMA ID"]
    out = "\t\x1b[4m" + "\t".join(head) + "\x1b[0m\n"
    for index, card in enumerate(cards):
        way = [" X " if other is card else _way(card, other) for other in cards]
        node = "N/A" if card.slot.numa_node is None else str(card.slot.numa_node)
        out += "\t".join([f"GPU{index}", *way, card.slot.cpus, node, "", "N/A"]) + "\n"
    return out + _LEGEND


def _way(one: Card, other: Card) -> str:
    """As behind switches: a pair has as many links as the poorer of the two."""
    links = min(sum(one.links), sum(other.links))
    if links:
        return f"NV{links}"
    if one.slot.host_bridge == other.slot.host_bridge:
        return "PHB"
    return "NODE" if one.slot.numa_node == other.slot.numa_node is not None else "SYS"


def _head(index: int, card: Card) -> str:
    return f"GPU {index}: {card.value('product_name')} (UUID: {card.value('uuid')})\n"


def _line(label: str, value: str, depth: int) -> str:
    return (" " * 4 * depth + label).ljust(_COLON_AT) + ": " + value


def _text_of(card: Card) -> list[str]:
    lines = ["GPU " + card.value("pci/pci_bus_id")]
    said: set[str] = set()
    for row in card.rows:
        if not row.label:
            continue
        parts = row.label.split("/")
        for depth in range(1, len(parts)):
            above = "/".join(parts[:depth])
            if above not in said:
                lines.append(" " * 4 * depth + parts[depth - 1])
                said.add(above)
        lines.append(_line(parts[-1], row.value, len(parts)))
        said.add(row.label)
    return lines


def _xml_of(card: Card) -> list[str]:
    lines: list[str] = []
    open_groups: list[str] = []
    for row in card.rows:
        *groups, name = row.shown.split("/")
        common = 0
        while common < min(len(groups), len(open_groups)) and groups[common] == open_groups[common]:
            common += 1
        lines += _closed(open_groups, common)
        for depth in range(common, len(groups)):
            lines.append("\t" * (depth + 2) + f"<{groups[depth]}>")
        open_groups = groups
        lines += _element(row, name, len(groups) + 2)
    return lines + _closed(open_groups, 0)


def _closed(groups: Sequence[str], keep: int) -> list[str]:
    return ["\t" * (depth + 2) + f"</{groups[depth]}>" for depth in reversed(range(keep, len(groups)))]


def _element(row: Row, name: str, depth: int) -> list[str]:
    tabs = "\t" * depth
    if row.path == "mig_devices":
        return [f"{tabs}<{name}>", f"{tabs}\t{row.value}", f"{tabs}</{name}>"]
    if row.path in ("processes", "accounted_processes"):
        return [f"{tabs}<{name}>", f"{tabs}</{name}>"]
    value = row.value[2:] if row.path in HEX else row.value
    return [f"{tabs}<{name}>{value}</{name}>"]


def _cell(card: Card, name: str, recorded: str, known: dict[str, str]) -> str:
    """The recorded cell, unless the element that it comes from says something else on this card."""
    path = COLUMNS.get(name, "")
    value = card.value(path) if path else ""
    if not path or value == known[path]:
        return recorded
    if value == "N/A" or value in ERRORS[1:]:
        return f"[{value}]"
    if path.endswith("_link_width"):
        return value.rstrip("x")
    return value[:-2] if value.endswith(" C") else value


def _without_unit(cell: str, title: str) -> str:
    _name, _bracket, unit = title.partition(" [")
    return cell[: -len(unit)].rstrip() if unit and cell.endswith(unit[:-1]) else cell
