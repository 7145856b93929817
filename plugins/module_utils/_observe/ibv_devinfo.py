# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""HCAs and ports as ``ibv_devinfo`` prints them, short or with ``-v`` (rdma-core)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Dict, List, Mapping, Optional, Tuple

from .._engine.values import Unknown
from .rdma_states import parse_physical_state, parse_port_state
from .show_gids import Gid, parse_gid, parse_gid_type
from .tool_text import Number, Word, output_lines, said, whole, without_labels

# No machine has as many; functions of SR-IOV count.
_MOST_HCAS = 1024
_SIGN = re.compile(r"hca_id:\s")
_GID = re.compile(r"GID\[\s{0,6}([0-9]{1,5})\]:\s*([0-9a-fA-F:.]{2,64})(?:,\s*(.{1,40}))?")


@dataclass(frozen=True)
class Port:
    """``active_mtu`` means something on an active port only."""

    number: Number
    state: Word
    physical_state: Word
    max_mtu: Number
    active_mtu: Number
    lid: Number
    sm_lid: Number
    link_layer: Word
    gids: Tuple[Gid, ...] = ()


@dataclass(frozen=True)
class Hca:
    """An adapter's function: one card may show several, with the same ``sys_image_guid``."""

    name: str
    transport: Word
    firmware: Word
    node_guid: Word
    sys_image_guid: Word
    vendor_id: Number
    vendor_part_id: Number
    board_id: Word
    port_count: Number
    ports: Tuple[Port, ...]


@dataclass(frozen=True)
class Devinfo:
    """``orphan`` holds the lines before the first ``hca_id``: of which HCA they are is not told."""

    hcas: Tuple[Hca, ...]
    orphan: Optional[Hca]


@dataclass
class _Block:
    name: str
    values: Dict[str, str] = field(default_factory=dict)
    ports: List[Tuple[str, Dict[str, str], List[Gid]]] = field(default_factory=list)

    def values_here(self) -> Dict[str, str]:
        return self.ports[-1][1] if self.ports else self.values


_HCA_KEYS = ("transport", "fw_ver", "node_guid", "sys_image_guid", "vendor_part_id", "board_id", "phys_port_cnt")
_PORT_KEYS = ("state", "phys_state", "max_mtu", "active_mtu", "sm_lid", "port_lid", "link_layer")


def parse_ibv_devinfo(text: str) -> Devinfo:
    """What is there; lines that are not understood (capabilities, messages) are left out."""
    blocks = [_Block("")]
    for line in output_lines(without_labels(text, _SIGN)):
        if len(blocks) > _MOST_HCAS:
            break
        gid = _GID.match(line.strip())
        key, colon, value = line.strip().partition(":")
        if gid:
            _add_gid(blocks[-1], gid)
        elif colon and key == "hca_id" and value.strip():
            blocks.append(_Block(value.strip()))
        elif colon and key == "port" and re.fullmatch("[0-9]{1,5}", value.strip()):
            blocks[-1].ports.append((value.strip(), {}, []))
        elif colon:
            _add_value(blocks[-1], key, value.strip())
    # Warnings of libibverbs stand there as well.
    orphan = _hca(blocks[0]) if blocks[0].ports or any(key in blocks[0].values for key in _HCA_KEYS) else None
    return Devinfo(tuple(_hca(block) for block in blocks[1:]), orphan)


def _add_gid(block: _Block, found: re.Match[str]) -> None:
    if parse_gid(found.group(2)) is None:
        return
    if not block.ports:
        block.ports.append(("", {}, []))
    version = parse_gid_type(found.group(3))
    block.ports[-1][2].append(Gid(int(found.group(1)), found.group(2).lower(), version, Unknown("not printed")))


def _add_value(block: _Block, key: str, value: str) -> None:
    if not block.ports and key in _PORT_KEYS:
        # The text begins inside of a port, or somebody left out the line that names it.
        block.ports.append(("", {}, []))
    block.values_here().setdefault(key, value)


def _hca(block: _Block) -> Hca:
    values = block.values
    return Hca(
        block.name,
        said(re.sub(r"\s*\([0-9]{1,5}\)$", "", values["transport"][:80]) if "transport" in values else None),
        said(values.get("fw_ver")),
        said(values.get("node_guid")),
        said(values.get("sys_image_guid")),
        _number(values, "vendor_id"),
        _number(values, "vendor_part_id"),
        said(values.get("board_id")),
        _number(values, "phys_port_cnt"),
        tuple(_port(*port) for port in block.ports),
    )


def _port(number: str, values: Mapping[str, str], gids: List[Gid]) -> Port:
    state, physical = values.get("state"), values.get("phys_state")
    return Port(
        whole(number) if number else Unknown("not printed"),
        parse_port_state(state) if state else Unknown("not printed"),
        parse_physical_state(physical) if physical else Unknown("not printed without -v"),
        _number(values, "max_mtu"),
        _number(values, "active_mtu"),
        _number(values, "port_lid"),
        _number(values, "sm_lid"),
        said(values.get("link_layer")),
        tuple(gids),
    )


def _number(values: Mapping[str, str], key: str) -> Number:
    """``4096 (5)`` as 4096; ``invalid MTU (0)`` is no number."""
    return whole(values[key].partition(" (")[0]) if key in values else Unknown("not printed")
