# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A purchase order: what was ordered, by class of hosts and by host, read strictly from YAML.

The dataclasses below are the format: :func:`read_order` reads them, and :func:`schema` says the same as JSON
schema, which is kept as ``docs/order.schema.json``.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from .order_fields import (
    DISK,
    MEMORY,
    POWER,
    RATE,
    TRANSFERS,
    BadOrder,
    Entry,
    Kind,
    ListOf,
    MapOf,
    Place,
    Text,
    Whole,
    Word,
    definitions,
    keys_of,
    may,
    nearest,
    need,
    refuse,
    shown,
)
from .order_parts import gpu_by_id, gpu_of_order, several_gpus

FORMAT = 1
MAX_BYTES = 4 * 1024 * 1024
MAX_HOSTS = 10_000

_COUNT = Whole("a whole number")
_TEXT = Text("a text")
_PATTERN = Text("a text, in which * and ? stand for anything and any one character")
_PCI_ID = Text(
    "vendor and device id as lspci -nn prints them, such as 10de:2330", "[0-9a-fA-F]{4}:[0-9a-fA-F]{4}", True
)
_DATE = Text("a date such as 2026-01-31", "[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])", True)
_VERSION = Text("a version as the part itself prints it", "(?=.*[0-9]).*")
_VBIOS = Text("a VBIOS version such as 96.00.89.00.01", "[0-9A-Fa-f]{2}(?:[.][0-9A-Fa-f]{2}){4}", True)
_SERIAL = Text("a serial number")
_SERIALS = ListOf("a list of serial numbers", _SERIAL, 100_000)
_HOST = Text("a name of a host, with ranges such as gpu-a[01:08]", r"[^\s\[\]]*(?:\[[0-9]+:[0-9]+\][^\s\[\]]*)*")


@dataclass(frozen=True)
class System:
    manufacturer: str | None = field(
        default=None, metadata=may(_PATTERN, "Maker of the system, as its firmware (DMI) says it.")
    )
    product: str | None = field(
        default=None, metadata=may(_PATTERN, "Product name of the system, as its firmware (DMI) says it.")
    )


@dataclass(frozen=True)
class Cpus:
    count: int = field(default=0, metadata=need(_COUNT, "How many processors (sockets)."))
    model: str | None = field(
        default=None,
        metadata=may(_TEXT, "Model, such as Xeon Platinum 8480+ or EPYC 9654; makers' signs do not count."),
    )
    cores: int | None = field(default=None, metadata=may(Whole("a whole number", 1, 1024), "Cores of each processor."))


@dataclass(frozen=True)
class Dimms:
    count: int = field(default=0, metadata=need(_COUNT, "How many modules."))
    size_mib: float | None = field(default=None, metadata=may(MEMORY, "Size of each module.", "size"))
    type: str | None = field(
        default=None, metadata=may(Word("a type", ("DDR3", "DDR4", "DDR5", "LPDDR5", "HBM")), "Type of memory.")
    )
    speed_mts: float | None = field(
        default=None, metadata=may(TRANSFERS, "Rated speed of each module, at least.", "speed")
    )
    runs_at_mts: float | None = field(
        default=None, metadata=may(TRANSFERS, "Speed at which each module runs in this host, at least.", "runs_at")
    )
    manufacturer: str | None = field(default=None, metadata=may(_PATTERN, "Maker of the modules."))
    part: str | None = field(default=None, metadata=may(_PATTERN, "Part number of the modules."))


@dataclass(frozen=True)
class Gpus:
    count: int = field(default=0, metadata=need(_COUNT, "How many GPUs."))
    model: str | None = field(
        default=None,
        metadata=may(_TEXT, "Model as nvidia-smi prints it (NVIDIA H100 80GB HBM3) or as it is sold (H100 SXM 80 GB)."),
    )
    pci_id: str | None = field(
        default=None, metadata=may(_PCI_ID, "Vendor and device id, where the model does not tell or is not known yet.")
    )
    memory_mib: float | None = field(
        default=None, metadata=may(MEMORY, "Memory of each GPU; 2 percent less is in order.", "memory")
    )
    nvlink_links: int | None = field(
        default=None, metadata=may(Whole("a whole number", 1, 64), "Active NVLinks of each GPU.")
    )
    nvlink_gen: int | None = field(default=None, metadata=may(Whole("a whole number", 1, 9), "NVLink generation."))
    nvlink_bridged_pairs: int | None = field(
        default=None,
        metadata=may(Whole("a whole number", 0, 1000), "How many pairs of these GPUs are joined by NVLink bridges."),
    )
    pcie_gen: int | None = field(
        default=None, metadata=may(Whole("a whole number", 1, 9), "PCIe generation that GPU and slot can do, at least.")
    )
    pcie_width: int | None = field(
        default=None, metadata=may(Whole("a whole number", 1, 16), "PCIe lanes in use, at least.")
    )
    vbios_min: str | None = field(
        default=None, metadata=may(_VBIOS, "Oldest VBIOS that is accepted; only versions of one chip can be compared.")
    )


@dataclass(frozen=True)
class Nvme:
    count: int = field(default=0, metadata=need(_COUNT, "How many drives."))
    model: str | None = field(default=None, metadata=may(_PATTERN, "Model as the drive itself says it."))
    size_bytes: float | None = field(
        default=None, metadata=may(DISK, "Size of each drive; 2 percent less is in order.", "size")
    )
    firmware_min: str | None = field(default=None, metadata=may(_VERSION, "Oldest firmware that is accepted."))


@dataclass(frozen=True)
class Nics:
    count: int = field(default=0, metadata=need(_COUNT, "How many cards: one with two ports counts as one."))
    model: str | None = field(
        default=None,
        metadata=may(_TEXT, "Model, such as ConnectX-7 or BlueField-3; for others than NVIDIA's give pci_id."),
    )
    pci_id: str | None = field(default=None, metadata=may(_PCI_ID, "Vendor and device id."))
    ports: int | None = field(default=None, metadata=may(Whole("a whole number", 1, 16), "Ports of each card."))
    rate_gbps: float | None = field(
        default=None, metadata=may(RATE, "Rate of each port, at least; it shows only while the port is up.", "rate")
    )
    link_layer: str | None = field(
        default=None, metadata=may(Word("a link layer", ("InfiniBand", "Ethernet")), "Link layer of the ports.")
    )
    firmware_min: str | None = field(default=None, metadata=may(_VERSION, "Oldest firmware that is accepted."))


@dataclass(frozen=True)
class Psus:
    count: int = field(default=0, metadata=need(_COUNT, "How many power supplies."))
    capacity_w: float | None = field(default=None, metadata=may(POWER, "Capacity of each, at least.", "capacity"))


@dataclass(frozen=True)
class Bios:
    vendor: str | None = field(default=None, metadata=may(_PATTERN, "Vendor of the system firmware."))
    version_min: str | None = field(default=None, metadata=may(_VERSION, "Oldest version that is accepted."))
    date_min: str | None = field(default=None, metadata=may(_DATE, "Oldest date of release that is accepted."))


@dataclass(frozen=True)
class Bmc:
    firmware_min: str | None = field(
        default=None, metadata=may(_VERSION, "Oldest firmware of the BMC that is accepted.")
    )


@dataclass(frozen=True)
class Serials:
    """Serial numbers of parts that are to be delivered."""

    gpus: tuple[str, ...] | None = field(default=None, metadata=may(_SERIALS, "Of GPUs."))
    nvme: tuple[str, ...] | None = field(default=None, metadata=may(_SERIALS, "Of NVMe drives."))
    dimms: tuple[str, ...] | None = field(default=None, metadata=may(_SERIALS, "Of memory modules."))


@dataclass(frozen=True)
class LotSerials(Serials):
    systems: tuple[str, ...] | None = field(default=None, metadata=may(_SERIALS, "Of the systems."))


def _list(into: type, *one_of: str) -> Kind:
    return ListOf("a list of entries, each with %s" % ", ".join(keys_of(into)), Entry("an entry", into, one_of), 64)


def _entry(into: type) -> Kind:
    return Entry("a mapping", into)


@dataclass(frozen=True)
class Machine:
    """What one host is made of. What is left out is not compared; an empty list means none."""

    system: System | None = field(default=None, metadata=may(_entry(System), "The system as a whole."))
    cpus: tuple[Cpus, ...] | None = field(default=None, metadata=may(_list(Cpus), "All processors."))
    dimms: tuple[Dimms, ...] | None = field(default=None, metadata=may(_list(Dimms), "All memory modules."))
    gpus: tuple[Gpus, ...] | None = field(default=None, metadata=may(_list(Gpus, "model", "pci_id"), "All GPUs."))
    nvswitches: int | None = field(default=None, metadata=may(Whole("a whole number", 0, 64), "How many NVSwitches."))
    nvme: tuple[Nvme, ...] | None = field(default=None, metadata=may(_list(Nvme), "All NVMe drives."))
    nics: tuple[Nics, ...] | None = field(
        default=None, metadata=may(_list(Nics, "model", "pci_id"), "All network cards, those on the board too.")
    )
    psus: tuple[Psus, ...] | None = field(default=None, metadata=may(_list(Psus), "All power supplies."))
    bios: Bios | None = field(default=None, metadata=may(_entry(Bios), "The system firmware."))
    bmc: Bmc | None = field(default=None, metadata=may(_entry(Bmc), "The management controller."))


@dataclass(frozen=True)
class HostClass(Machine):
    """Hosts that are all the same."""

    hosts: tuple[str, ...] | None = field(
        default=None,
        metadata=may(
            ListOf("a list of names of hosts, with ranges such as gpu-a[01:08]", _HOST),
            "The hosts of this class by name.",
        ),
    )


@dataclass(frozen=True)
class Host(Machine):
    """One host: what differs from its class, or all of it."""

    class_name: str | None = field(
        default=None, metadata=may(_TEXT, "The class that it is like, but for what is said here.", "class")
    )
    serial: str | None = field(
        default=None, metadata=may(_SERIAL, "Serial number of the system; the host is then known by it, too.")
    )
    serials: Serials | None = field(default=None, metadata=may(_entry(Serials), "Serial numbers of its parts."))


@dataclass(frozen=True)
class Order:
    """A purchase order."""

    number: str = field(default="", metadata=need(_TEXT, "Number of the order.", "order"))
    format: int | None = field(default=None, metadata=may(Whole("a whole number", 1, 1), "Format of this file."))
    vendor: str | None = field(default=None, metadata=may(_TEXT, "Who delivers."))
    date: str | None = field(default=None, metadata=may(_DATE, "When it was ordered."))
    note: str | None = field(default=None, metadata=may(_TEXT, "Anything for the page."))
    classes: Mapping[str, HostClass] | None = field(
        default=None,
        metadata=may(
            MapOf("a mapping from names to classes", _entry(HostClass)), "Classes of hosts that are all the same."
        ),
    )
    hosts: Mapping[str, Host] | None = field(
        default=None,
        metadata=may(
            MapOf("a mapping from names to hosts", _entry(Host)),
            "Single hosts, such as those that differ from a class.",
        ),
    )
    serials: LotSerials | None = field(
        default=None, metadata=may(_entry(LotSerials), "Serial numbers of the whole lot, wherever they are built in.")
    )


@dataclass(frozen=True)
class OrderedHost:
    """One host of an order, its class filled in."""

    name: str
    class_name: str
    machine: Machine
    serial: str = ""
    serials: Serials = Serials()


def ordered_hosts(order: Order) -> dict[str, OrderedHost]:
    """All hosts of an order by name."""
    classes = order.classes or {}
    found = {}
    for class_name, one in classes.items():
        for name in (name for text in one.hosts or () for name in expand(text)):
            found[name.casefold()] = OrderedHost(name, class_name, one)
    for name, host in (order.hosts or {}).items():
        base: Machine = classes[host.class_name] if host.class_name else Machine()
        own = {about.name: getattr(host, about.name) for about in dataclasses.fields(Machine)}
        machine = dataclasses.replace(base, **{key: value for key, value in own.items() if value is not None})
        found[name.casefold()] = OrderedHost(
            name, host.class_name or "", machine, host.serial or "", host.serials or Serials()
        )
    return {host.name: host for host in found.values()}


def expand(name: str) -> Iterator[str]:
    """``gpu-a[01:03]`` as gpu-a01, gpu-a02 and gpu-a03, as inventories have it."""
    found = re.search(r"\[([0-9]+):([0-9]+)\]", name)
    if not found:
        yield name
        return
    first, last = found.groups()
    width = len(first) if first.startswith("0") or len(first) == len(last) else 0
    for number in range(int(first), int(last) + 1):
        yield from expand("%s%0*d%s" % (name[: found.start()], width, number, name[found.end() :]))


# --- reading


def read_order(text: str, file: str) -> Order:
    """The order in a text.

    :param file: its name, for messages.
    :raises BadOrder: with one message, about the first thing that is wrong.
    """
    top = Place(file)
    if len(text) > MAX_BYTES:
        raise refuse(top, None, "a file of %d characters" % len(text), "at most %d" % MAX_BYTES)
    node = _compose(text, top)
    order: Order = Entry("an order", Order).read(node, top)
    _Checks(order, node, top).run()
    return order


def _compose(text: str, top: Place) -> yaml.Node:
    try:
        nodes = list(yaml.compose_all(text, Loader=yaml.SafeLoader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = ", line %d, column %d" % (mark.line + 1, mark.column + 1) if mark else ""
        words = " ".join(str(error.problem or error.context or "it cannot be read").split())
        raise BadOrder("%s%s: this is no YAML: %s. No host was touched." % (top.file, where, words)) from error
    except yaml.reader.ReaderError as error:
        words = "there is a character in it that none may have (position %d)" % error.position
        raise BadOrder("%s: this is no YAML: %s. No host was touched." % (top.file, words)) from error
    except (yaml.YAMLError, RecursionError) as error:
        raise BadOrder("%s: this is no YAML: it is nested too deeply. No host was touched." % top.file) from error
    if len(nodes) != 1:
        given = "%d documents" % len(nodes) if nodes else "an empty file"
        raise refuse(top, nodes[1] if nodes else None, given, "one order")
    return nodes[0]


class _Checks:
    """What the parts of an order have to do with each other."""

    def __init__(self, order: Order, node: yaml.Node, top: Place) -> None:
        self.order, self.node, self.top = order, node, top

    def run(self) -> None:
        if not self.order.classes and not self.order.hosts:
            raise refuse(self.top, self.node, "an order without classes and hosts", "one with any of them")
        self._classes_are_there()
        self._hosts_are_once()
        self._models_are_one()
        self._serials_are_once()

    def _bad(self, path: tuple[str | int, ...], allowed: str, meant: str = "", given: str = "") -> BadOrder:
        """The message about what stands at a path of the file."""
        node = self.node
        for step in path:
            found = [value for key, value in node.value if key.value == step] if isinstance(step, str) else node.value
            node = found[step if isinstance(step, int) else 0]
        return refuse(self._place(path), node, given or shown(node), allowed, meant)

    def _classes_are_there(self) -> None:
        classes = self.order.classes or {}
        for name, host in (self.order.hosts or {}).items():
            if host.class_name is not None and host.class_name not in classes:
                allowed = ", ".join(classes) or "none, since the order has no classes"
                raise self._bad(("hosts", name, "class"), allowed, nearest(host.class_name, classes))

    def _hosts_are_once(self) -> None:
        seen: dict[str, tuple[str, str]] = {}
        named = 0
        for class_name, one in (self.order.classes or {}).items():
            for at, text in enumerate(one.hosts or ()):
                path = ("classes", class_name, "hosts", at)
                # Before a range is expanded: all of them together are bounded.
                named += self._size_of_range(text, path)
                if named > MAX_HOSTS:
                    raise self._bad(path, "at most %d hosts in an order" % MAX_HOSTS)
                for name in expand(text):
                    if name.casefold() in seen:
                        given = "host %s for a second time (first in %s)" % (name, seen[name.casefold()][1])
                        raise self._bad(path, "each host in one class", given=given)
                    seen[name.casefold()] = class_name, self._place(path).path
        for name, host in (self.order.hosts or {}).items():
            class_name, where = seen.pop(name.casefold(), (host.class_name or "", ""))
            if class_name != (host.class_name or ""):
                given = "host %s, which is in %s," % (name, where)
                raise self._bad(("hosts", name), "one with class: %s" % class_name, given=given)

    def _size_of_range(self, text: str, path: tuple[str | int, ...]) -> int:
        size = 1
        for first, last in re.findall(r"\[([0-9]+):([0-9]+)\]", text):
            span = int(last[:9]) - int(first[:9]) + 1 if max(len(first), len(last)) < 10 else 0
            if span < 1:
                raise self._bad(path, "a range from a smaller to a larger number, such as gpu-a[01:08]")
            size *= span
        return size

    def _models_are_one(self) -> None:
        machines: list[tuple[str, str, Machine]] = [
            *(("classes", name, one) for name, one in (self.order.classes or {}).items()),
            *(("hosts", name, one) for name, one in (self.order.hosts or {}).items()),
        ]
        for where, name, machine in machines:
            for at, gpus in enumerate(machine.gpus or ()):
                rows = several_gpus(gpus.model) if gpus.pci_id is None else ()
                if rows:
                    names = ", ".join("%s (%s)" % (row.name, row.pci_id) for row in rows)
                    given = "'%s', which could be any of several models," % gpus.model
                    raise self._bad((where, name, "gpus", at, "model"), "one of them: %s" % names, given=given)
                meant, by_id = gpu_of_order(gpus.model), gpu_by_id(gpus.pci_id or "")
                if meant and by_id and meant.pci_id != by_id.pci_id:
                    given = "%s, which is %s and not %s," % (gpus.pci_id, by_id.name, meant.name)
                    raise self._bad((where, name, "gpus", at, "pci_id"), meant.pci_id, given=given)

    def _serials_are_once(self) -> None:
        """Within a list, and over the hosts; the list of the whole lot may name them again."""
        seen: dict[tuple[str, str], str] = {}
        for name, host in (self.order.hosts or {}).items():
            if host.serial:
                self._once("systems", host.serial, ("hosts", name, "serial"), seen)
            self._list_once(host.serials, ("hosts", name, "serials"), seen)
        self._list_once(self.order.serials, ("serials",), {})

    def _list_once(
        self, serials: Serials | None, path: tuple[str | int, ...], seen: dict[tuple[str, str], str]
    ) -> None:
        for about in dataclasses.fields(Serials):
            for at, serial in enumerate(getattr(serials, about.name, None) or ()):
                self._once(about.name, serial, (*path, about.name, at), seen)

    def _once(self, kind: str, serial: str, path: tuple[str | int, ...], seen: dict[tuple[str, str], str]) -> None:
        if (kind, serial) in seen:
            given = "serial number '%s' for a second time (first in %s)" % (serial, seen[kind, serial])
            raise self._bad(path, "each serial number once", given=given)
        seen[kind, serial] = self._place(path).path

    def _place(self, path: tuple[str | int, ...]) -> Place:
        place = self.top
        for step in path:
            place = place.item(step) if isinstance(step, int) else place.key(step)
        return place


# --- the same as JSON schema


def schema() -> dict[str, Any]:
    """The JSON schema of an order."""
    defs = definitions(Entry("an order", Order))
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:gpufleet:host:order:1",
        "title": "Purchase order",
        "description": "What was ordered, for playbooks/accept.yml. What is left out is not compared; an empty list means "
        "none. The playbook checks more than this schema can say: hosts, classes and serial numbers that are named "
        "twice or not at all, and names of GPUs that could mean several models.",
        **defs.pop("order"),
        "anyOf": [{"required": ["classes"]}, {"required": ["hosts"]}],
        "$defs": defs,
    }
