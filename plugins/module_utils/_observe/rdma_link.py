# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Links and devices as ``rdma link``, ``rdma dev`` and ``rdma statistic`` print them, as text or JSON (iproute2)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from .._engine.values import Unknown
from .rdma_states import is_software_name, parse_physical_state, parse_port_state
from .tool_text import Number, Word, clean, find_json, is_prompt, said, whole

# "link mlx5_0/1 …", in the first versions "1/1: mlx5_0/1: …".  The name of a host may stand in front.
_LINK = re.compile(
    r"(?:\S{1,64}\s{1,4}(?=.{1,100}\sstate\s))?"
    r"(?:link\s+|[0-9]{1,9}/[0-9]{1,5}:\s*)([^\s/:]{1,64})/([0-9]{1,5}):?(?:\s|$)"
)
_DEVICE = re.compile(r"(?:\S{1,64}:\s{1,4}(?=.{1,100}\snode_type\s))?[0-9]{1,9}:\s*([^\s/:]{1,64}):(?:\s|$)")
_LINK_KEYS = ("subnet_prefix", "lid", "sm_lid", "lmc", "state", "physical_state", "netdev", "netdev_index")
_DEVICE_KEYS = ("node_type", "protocol", "fw", "node_guid", "sys_image_guid", "adaptive-moderation")


@dataclass(frozen=True)
class Link:
    """A port.  ``netdev`` is None where none belongs to it (InfiniBand without IPoIB); an IB link has lids."""

    device: str
    port: Number
    state: Word
    physical_state: Word
    netdev: Optional[str]
    lid: Number
    sm_lid: Number

    @property
    def is_software(self) -> bool:
        """Called as soft RoCE and soft iWARP devices are; ``rdma link`` tells no more."""
        return is_software_name(self.device)


@dataclass(frozen=True)
class Device:
    name: str
    node_type: Word
    firmware: Word
    node_guid: Word
    sys_image_guid: Word
    protocol: Word


def parse_rdma_link(text: str) -> Tuple[Link, ...]:
    """Each port that is listed; messages and what is cut off are left out."""
    return tuple(_link(name, port, values) for name, port, values in _rows(text, _LINK, _LINK_KEYS))


def parse_rdma_dev(text: str) -> Tuple[Device, ...]:
    rows = _rows(text, _DEVICE, _DEVICE_KEYS)
    names = ("node_type", "fw", "node_guid", "sys_image_guid", "protocol")
    return tuple(Device(name, *(said(values.get(key)) for key in names)) for name, _port, values in rows)


def parse_rdma_statistic(text: str) -> Dict[str, Dict[str, Number]]:
    """The counters of each link (``mlx5_0/1``)."""
    found: Dict[str, Dict[str, Number]] = {}
    for name, port, values in _rows(text, _LINK, ()):
        counters = {key: whole(value) for key, value in values.items() if re.match("[a-z]", key)}
        found.setdefault("%s/%s" % (name, port), {}).update(counters)
    return found


def changed(before: Sequence[Link], after: Sequence[Link]) -> List[str]:
    """The links (``mlx5_7/1``) that were in another state the second time: a port that flaps."""
    first = {(link.device, str(link.port)): (link.state, link.physical_state) for link in before}
    second = {(link.device, str(link.port)): (link.state, link.physical_state) for link in after}
    return ["%s/%s" % key for key in sorted(first) if key in second and first[key] != second[key]]


def _rows(text: str, start: Any, keys: Sequence[str]) -> List[Tuple[str, str, Mapping[str, str]]]:
    data = find_json(clean(text))
    if isinstance(data, (list, Mapping)):
        return _json_rows(data if isinstance(data, list) else [data])
    found: List[Tuple[str, str, Dict[str, str]]] = []
    goes_on = False
    for line in clean(text).splitlines():
        head = None if is_prompt(line) else start.match(line.strip())
        # A line that a narrow terminal broke goes on indented.
        goes_on = bool(head) or (goes_on and line[:1] in (" ", "\t") and bool(line.strip()))
        if head:
            found.append((head.group(1), head.group(2) if start.groups > 1 else "", {}))
        if goes_on:
            rest = line.strip()[head.end() :] if head else line
            found[-1][2].update(_pairs(rest.split(), keys))
    return list(found)


def _pairs(words: Sequence[str], keys: Sequence[str]) -> Dict[str, str]:
    """Name and value in turn; with keys given, only those, so that an empty value does not shift the rest."""
    if not keys:
        return dict(zip(words[::2], words[1::2]))
    pairs: Dict[str, str] = {}
    for number, word in enumerate(words):
        if word in keys:
            following = words[number + 1 : number + 2]
            pairs.setdefault(word, "" if not following or following[0] in keys else following[0])
    return pairs


def _json_rows(rows: Sequence[Any]) -> List[Tuple[str, str, Mapping[str, str]]]:
    found: List[Tuple[str, str, Mapping[str, str]]] = []
    for row in rows:
        if not isinstance(row, Mapping) or not isinstance(row.get("ifname"), str):
            continue
        # The first versions write the port into the name.
        name, _slash, port = row["ifname"].partition("/")
        port = port or str(row.get("port", ""))[:20]
        values = {str(key): str(value)[:80] for key, value in row.items() if not isinstance(value, (list, Mapping))}
        found.append((name, port, values))
    return found


def _link(name: str, port: str, values: Mapping[str, str]) -> Link:
    state, physical = values.get("state"), values.get("physical_state")
    return Link(
        name,
        whole(port),
        parse_port_state(state) if state else Unknown("not printed"),
        parse_physical_state(physical) if physical else Unknown("not printed"),
        values.get("netdev") or None,
        whole(values["lid"]) if "lid" in values else Unknown("not printed"),
        whole(values["sm_lid"]) if "sm_lid" in values else Unknown("not printed"),
    )
