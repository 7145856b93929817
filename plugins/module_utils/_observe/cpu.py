# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Processors: which are online, and which threads share a core and a package."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Dict, FrozenSet, Iterator, List, Optional, Set, Tuple, Union

from .._engine.cpuset import parse_cpulist
from .._engine.host import Host
from .._engine.values import Text, Unknown, lines
from .cut_json import json_object
from .lscpu_labels import LABELS
from .lscpu_table import Table, table_of
from .tool_text import clean, without_labels

CPU_FOLDER = "/sys/devices/system/cpu"

Ids = Union[FrozenSet[int], Unknown]
Number = Union[int, Unknown]

# Whatever the language, the label of a node's row has NUMA and the number of the node in it.
_NODE_LABEL = re.compile(r"(?=.*NUMA)\D*(\d{1,5})\D*", re.ASCII)
_MASK = re.compile(r"(?:0x)?[0-9a-fA-F]{1,8}(?:,?[0-9a-fA-F]{1,8}){0,2047}")
# What stands behind the names of hosts, where those stand before all lines.
_SIGN = re.compile(r"Architecture|CPU")
# A colon, plain or full-width (U+FF1A); a translated label may be glued to its value.
_COLON = re.compile("[:：]")


@dataclass(frozen=True)
class Lscpu:
    """What lscpu says.  A row that is missing or no number is unknown; 0 threads a core is no fact."""

    cpus: Number
    online: Ids
    offline: Ids
    sockets: Number
    cores_per_socket: Number
    threads_per_core: Number
    nodes: Number
    node_cpus: Dict[int, Ids]
    models: Tuple[str, ...]
    vendor: Union[str, Unknown]
    hypervisor: Union[str, Unknown]


@dataclass(frozen=True)
class Cpus:
    """The processors of a host.  ``cores`` are the online threads of each core, in ascending order."""

    online: Ids
    offline: Ids
    possible: Ids
    cores: Union[Tuple[FrozenSet[int], ...], Unknown]
    package_of: Dict[int, int]


def parse_lscpu(text: Text) -> Lscpu:
    """The output of ``lscpu``: plain, ``-J`` (flat or nested), ``-x``, or the table of ``-e`` and ``-p``; never fails."""
    plain = clean(without_labels(text, _SIGN)) if isinstance(text, str) else ""
    data, _is_cut = json_object(plain, "lscpu")
    rows = list(_text_rows(plain) if data is None else _json_rows(data))
    said: Dict[str, List[str]] = {}
    for label, value in rows:
        said.setdefault(label, []).append(value)
    read = mask_of if _values(said, "masks") else ids_of
    node_cpus: Dict[int, Ids] = {}
    for label, value in rows:
        node = _NODE_LABEL.fullmatch(label)
        if node:
            node_cpus.setdefault(int(node.group(1)), read(value))
    table = Unknown("") if _values(said, "cpus") else table_of(data, plain.splitlines())
    return _of_table(table) if isinstance(table, Table) else _of_rows(said, node_cpus)


def _of_rows(said: Dict[str, List[str]], node_cpus: Dict[int, Ids]) -> Lscpu:
    masks = _values(said, "masks")
    return Lscpu(
        cpus=_number(said, "cpus"),
        online=mask_of(masks[0]) if masks else _list(said, "online"),
        offline=_list(said, "offline"),
        sockets=_number(said, "sockets"),
        cores_per_socket=_number(said, "cores"),
        threads_per_core=_number(said, "threads"),
        nodes=_number(said, "nodes"),
        node_cpus=node_cpus,
        models=tuple(value for value in _values(said, "model") if value not in ("", "-")),
        vendor=_word(said, "vendor"),
        hypervisor=_word(said, "hypervisor"),
    )


def _of_table(table: Table) -> Lscpu:
    unseen = Unknown("the table of lscpu does not tell it")
    offline = table.cpus - table.online
    return Lscpu(
        cpus=len(table.cpus),
        online=table.online,
        offline=offline if table.tells_offline else unseen,
        sockets=table.sockets or unseen,
        cores_per_socket=table.cores_per_socket or unseen,
        threads_per_core=table.threads_per_core or unseen,
        nodes=len(table.nodes) or unseen,
        node_cpus=dict(table.nodes),
        models=(),
        vendor=unseen,
        hypervisor=unseen,
    )


def observe(host: Host) -> Cpus:
    """Processors from sysfs; on a capture without it, from a recorded lscpu."""
    online = ids_of(host.read(CPU_FOLDER + "/online"))
    if isinstance(online, Unknown):
        return _from_lscpu(recorded_lscpu(host), online)
    cores, package_of = _cores(host, online)
    return Cpus(
        online,
        ids_of(host.read(CPU_FOLDER + "/offline")),
        ids_of(host.read(CPU_FOLDER + "/possible")),
        cores,
        package_of,
    )


def recorded_lscpu(host: Host) -> Lscpu:
    """What lscpu said, in whichever form it was recorded."""
    for argv in (["lscpu", "-J"], ["lscpu"]):
        text = host.run(argv).text()
        if isinstance(text, str):
            return parse_lscpu(text)
    return parse_lscpu(None)


def ids_of(text: Text) -> Ids:
    """A kernel list as a set; Unknown when it is missing or no list."""
    if not isinstance(text, str):
        return text if isinstance(text, Unknown) else Unknown("not there")
    try:
        return parse_cpulist(text)
    except ValueError as error:
        return Unknown(str(error))


def mask_of(text: str) -> Ids:
    """A mask in hexadecimal digits, as ``lscpu -x`` prints it, as a set."""
    word = text.strip()
    if not _MASK.fullmatch(word):
        return Unknown("%r is no mask" % word[:40])
    bits = int(word.replace(",", ""), 16)
    return frozenset(cpu for cpu in range(bits.bit_length()) if bits >> cpu & 1)


def _cores(host: Host, online: FrozenSet[int]) -> Tuple[Union[Tuple[FrozenSet[int], ...], Unknown], Dict[int, int]]:
    cores: List[FrozenSet[int]] = []
    seen: Set[int] = set()
    package_of: Dict[int, int] = {}
    for cpu in sorted(online):
        if cpu in seen:
            continue
        topology = "%s/cpu%d/topology/" % (CPU_FOLDER, cpu)
        siblings = ids_of(host.read(topology + "thread_siblings_list"))
        if isinstance(siblings, Unknown):
            return Unknown("the siblings of CPU %d cannot be seen: %s" % (cpu, siblings.reason)), {}
        core = (siblings & online) | {cpu}
        package = host.read(topology + "physical_package_id")
        if isinstance(package, str) and re.fullmatch(r"\s*[0-9]{1,9}\s*", package):
            package_of.update((thread, int(package)) for thread in core)
        seen |= core
        cores.append(core)
    return tuple(cores), package_of


def _from_lscpu(said: Lscpu, reason: Unknown) -> Cpus:
    """lscpu tells how many threads a core has, not which: only one thread a core says that."""
    cores: Union[Tuple[FrozenSet[int], ...], Unknown] = Unknown("lscpu does not say which threads share a core")
    if isinstance(said.online, frozenset) and said.threads_per_core == 1:
        cores = tuple(frozenset([cpu]) for cpu in sorted(said.online))
    return Cpus(said.online if isinstance(said.online, frozenset) else reason, said.offline, reason, cores, {})


def _json_rows(data: Dict[str, Any]) -> Iterator[Tuple[str, str]]:
    todo: List[Any] = [data.get("lscpu")]
    while todo:
        item = todo.pop()
        if isinstance(item, list):
            todo += reversed(item)
        elif isinstance(item, dict):
            if isinstance(item.get("field"), str):
                yield item["field"].strip().rstrip(":：").strip(), str(item.get("data") or "").strip()
            todo.append(item.get("children"))


def _text_rows(text: str) -> Iterator[Tuple[str, str]]:
    """The rows of the first machine: each begins with its architecture."""
    begun = False
    for line in text.splitlines():
        colon = _COLON.search(line)
        label = line[: colon.start()].strip() if colon else ""
        if begun and label in LABELS["architecture"]:
            return
        begun = begun or label in LABELS["architecture"]
        if colon and label:
            yield label, line[colon.end() :].strip()


def _values(said: Dict[str, List[str]], name: str) -> List[str]:
    return [value for label in LABELS[name] for value in said.get(label, [])]


def _word(said: Dict[str, List[str]], name: str) -> Union[str, Unknown]:
    return next((value for value in _values(said, name) if value not in ("", "-")), Unknown("lscpu has no such row"))


def _number(said: Dict[str, List[str]], name: str) -> Number:
    values = _values(said, name)
    if not values:
        return Unknown("lscpu has no such row")
    found = re.fullmatch(r"([1-9]\d{0,6})(?:\s+#.*)?", values[0], re.ASCII)
    return int(found.group(1)) if found else Unknown("lscpu says %r" % values[0][:40])


def _list(said: Dict[str, List[str]], name: str) -> Ids:
    values = _values(said, name)
    return ids_of(values[0]) if values else Unknown("lscpu has no such row")


def model(host: Host) -> Optional[str]:
    """The name of the processor, from /proc/cpuinfo or a recorded lscpu."""
    for line in lines(host.read("/proc/cpuinfo")):
        key, _colon, value = line.partition(":")
        if key.strip() in ("model name", "cpu model", "cpu"):
            return value.strip() or None
    models = () if host.is_live else recorded_lscpu(host).models
    return models[0] if models else None
