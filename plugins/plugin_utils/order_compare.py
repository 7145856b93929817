# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One host: what was ordered of it against what an observation shows, line by line.

Pure: an order, the hardware facts of a report, and its findings go in, lines come out.  Unknown is never ok.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import order_gpus
from .fleet_report import in_words, unknown_reason
from .order import Bios, Cpus, Dimms, Nics, Nvme, OrderedHost, Psus, System
from .order_lines import (
    NOT_SEEN,
    Device,
    Judged,
    Line,
    Row,
    at_least,
    count_line,
    counted,
    devices,
    disk_words,
    figure,
    following,
    line_of,
    memory_words,
    not_below,
    number,
    one_line,
    part,
    rows,
    shared_out,
    size,
    text,
    titles,
)
from .order_parts import VIRTUAL_NICS, is_at_least, is_cpu, iso_date, nic_ids, nic_name
from .order_serials import SCRUBBED, is_scrubbed, serial_lines

DMI, DMIDECODE, SYSFS, IPMI, CPUINFO = "DMI", "dmidecode", "sysfs", "IPMI or Redfish", "CPU"
# Faults of the hardware itself, by the beginnings of their names; all other findings are notes.
COUNTED_FINDINGS = (
    "platform.link-",
    "platform.nvlink-",
    "platform.nvswitch-",
    "platform.gpu-missing",
    "platform.gpu-lost",
    "platform.gpu-error",
    "platform.device-dead",
    "platform.ecc-uncorrectable",
    "platform.row-remap-failure",
    "platform.unrepairable-memory",
    "platform.memory-missing",
    "platform.supply-lost",
    "platform.sources-contradict",
)

# What another model has of its own.
WITH_THE_MODEL = ("cores", "size", "ports", "firmware")


def compare_host(
    wanted: OrderedHost,
    hardware: Row,
    findings: Sequence[Mapping[str, Any]] = (),
    counted_findings: Sequence[str] = COUNTED_FINDINGS,
) -> list[Line]:
    """The lines of a host: each item of its order, its serial numbers, and findings about what was ordered."""
    machine = wanted.machine
    lines = _system(machine.system, wanted.serial, part(hardware, "system"))
    for kind, compare in _KINDS.items():
        ordered = getattr(machine, kind)
        if ordered is not None:
            lines += compare(ordered, hardware)
    lines += serial_lines(wanted.serials, hardware)
    return lines + _from_findings(findings, counted_findings)


def notes_of(
    findings: Sequence[Mapping[str, Any]], counted_findings: Sequence[str] = COUNTED_FINDINGS
) -> list[Mapping[str, Any]]:
    """Findings that say something about a host without being lines of its order."""
    return [row for row in findings if row["level"] != "info" and not _counts(row, counted_findings)]


# --- findings


def _counts(finding: Mapping[str, Any], counted_findings: Sequence[str]) -> bool:
    return finding["level"] in ("fail", "block") and finding["id"].startswith(tuple(counted_findings))


def _from_findings(findings: Sequence[Mapping[str, Any]], counted_findings: Sequence[str]) -> list[Line]:
    return [_of_finding(row) for row in findings if _counts(row, counted_findings)]


def _of_finding(row: Mapping[str, Any]) -> Line:
    verdict = "unknown" if unknown_reason(row["observed"]) is not None else "different"
    words = "%s. What to do: %s" % (row["why"], row["fix"]) if row["fix"] else row["why"]
    item, evidence, devices_ = "Check of %s" % (row["subject"] or "the host"), (row["id"],), (row["subject"],)
    expected, observed = in_words(row["expected"]), in_words(row["observed"])
    return Line(item, expected, observed, verdict, evidence, words, "findings", devices_)


# --- kinds with several groups


def _groups(
    title: str,
    groups: Sequence[Any],
    found: list[Device] | None,
    judges: Callable[[Any], Mapping[str, tuple[str, Callable[[Row], Judged]]]],
    kind: str,
    source: str,
    what: Callable[[Row], str],
) -> list[Line]:
    """Lines for each group of an order: how many, and each aspect of them; then what is left over."""

    def fit(at: int, row: Row) -> int:
        # An aspect that agrees counts twice as much as one that cannot be seen.
        return sum(
            {"ok": 2, "extra": 1, "unknown": 1}.get(judge(row).verdict, 0) for _o, judge in judges(groups[at]).values()
        )

    shared, left = shared_out([g.count for g in groups], found, fit) if found is not None else (None, [])
    lines = []
    names = titles(title, [getattr(group, "model", None) or getattr(group, "pci_id", None) or "" for group in groups])
    for at, group in enumerate(groups):
        name = names[at]
        mine = shared[at] if shared is not None else None
        lines.append(count_line(name, group.count, mine, kind, source))
        aspects = judges(group)
        is_other = _is_other(aspects)
        for aspect, (ordered, judge) in aspects.items():
            item = "%s: %s" % (name, aspect)
            if mine is None:
                lines.append(Line(item, ordered, "not seen", "unknown", (source,), "they could not be seen", kind))
            elif mine:
                follows = following(judge, is_other) if aspect in WITH_THE_MODEL else judge
                lines.append(line_of(item, ordered, mine, follows, kind))
    if left:
        words = "%d more than ordered" % len(left) if groups else "none was ordered"
        others = counted(what(device.row) for device in left)
        labels = tuple(device.label for device in left)
        lines.append(Line("%s beyond the order" % title, "none", others, "extra", (source,), words, kind, labels))
    return lines


def _is_other(aspects: Mapping[str, tuple[str, Callable[[Row], Judged]]]) -> Callable[[Row], bool]:
    """Whether a device is another model than was ordered."""
    if "model" not in aspects:
        return lambda row: False
    judge = aspects["model"][1]
    return lambda row: judge(row).verdict == "different"


def _like(pattern: str, have: str, source: str) -> Judged:
    """A text against a pattern of an order, without regard to case and spaces."""
    if not have:
        return NOT_SEEN._replace(evidence=(source,))
    is_like = fnmatch.fnmatchcase(have.casefold(), " ".join(pattern.split()).casefold())
    return (
        Judged("ok", have, "", (source,)) if is_like else Judged("different", have, "another than ordered", (source,))
    )


def _version(least: str, have: str, source: str) -> Judged:
    if not have:
        return NOT_SEEN._replace(evidence=(source,))
    is_new = is_at_least(have, least)
    if is_new is None:
        return Judged("unknown", have, "%s and %s cannot be compared" % (have, least), (source,))
    return Judged("ok", have, "", (source,)) if is_new else Judged("short", have, "older than ordered", (source,))


def _cpus(groups: Sequence[Cpus], hardware: Row) -> list[Line]:
    def judges(group: Cpus) -> Mapping[str, tuple[str, Callable[[Row], Judged]]]:
        found: dict[str, tuple[str, Callable[[Row], Judged]]] = {}
        if group.model:
            found["model"] = group.model, lambda row: _cpu_model(group.model or "", text(row, "model"))
        if group.cores:
            cores = group.cores
            found["cores"] = "%d each" % cores, lambda row: not_below(cores, figure, size(row, "cores"), CPUINFO)
        return found

    found = devices(hardware, "cpus", "label", "socket")
    if found is not None:
        found = [Device("socket %s" % _plain(row.get("socket"), at), row) for at, (_label, row) in enumerate(found)]
    return _groups(
        "Processors", groups, found, judges, "cpus", CPUINFO, lambda row: text(row, "model") or "a processor"
    )


def _plain(value: Any, at: int) -> str:
    return str(value)[:20] if isinstance(value, (int, str)) and not isinstance(value, bool) else str(at)


def _cpu_model(wanted: str, have: str) -> Judged:
    if not have:
        return NOT_SEEN._replace(evidence=(CPUINFO,))
    if is_cpu(wanted, have):
        return Judged("ok", have, "", (CPUINFO,))
    return Judged("different", have, "ordered %s; the processor says %s" % (wanted, have), (CPUINFO,))


def _dimms(groups: Sequence[Dimms], hardware: Row) -> list[Line]:
    def judges(group: Dimms) -> Mapping[str, tuple[str, Callable[[Row], Judged]]]:
        found: dict[str, tuple[str, Callable[[Row], Judged]]] = {}
        if group.size_mib:
            want = group.size_mib
            found["size"] = (
                memory_words(want),
                lambda row: at_least(want, memory_words, size(row, "size_mib"), DMIDECODE),
            )
        if group.type:
            found["type"] = group.type, lambda row: _like(group.type or "", text(row, "type"), DMIDECODE)
        if group.speed_mts:
            rated = group.speed_mts
            found["rated speed"] = _mts(rated), lambda row: not_below(rated, _mts, size(row, "rated_mts"), DMIDECODE)
        if group.runs_at_mts:
            runs = group.runs_at_mts
            why = "the firmware runs it slower: look at modules per channel, mixed modules and its memory speed"
            found["speed"] = _mts(runs), lambda row: not_below(runs, _mts, size(row, "configured_mts"), DMIDECODE, why)
        if group.manufacturer:
            maker = group.manufacturer
            found["maker"] = maker, lambda row: _like(maker, text(row, "manufacturer"), DMIDECODE)
        if group.part:
            number_of_part = group.part
            found["part"] = number_of_part, lambda row: _like(number_of_part, text(row, "part"), DMIDECODE)
        return found

    found = devices(hardware, "dimms", "locator")
    if found is not None:
        # An empty slot is no module.
        found = [device for device in found if number(device.row, "size_mib") != 0]
    return _groups("Memory modules", groups, found, judges, "dimms", DMIDECODE, _what_dimm)


def _mts(value: float) -> str:
    return "%s MT/s" % figure(value)


def _what_dimm(row: Row) -> str:
    have = size(row, "size_mib")
    return (
        " ".join(filter(None, (memory_words(have) if have else "", text(row, "type"), text(row, "part")))) or "a module"
    )


def _nvme(groups: Sequence[Nvme], hardware: Row) -> list[Line]:
    def judges(group: Nvme) -> Mapping[str, tuple[str, Callable[[Row], Judged]]]:
        found: dict[str, tuple[str, Callable[[Row], Judged]]] = {}
        if group.model:
            found["model"] = group.model, lambda row: _like(group.model or "", text(row, "model"), SYSFS)
        if group.size_bytes:
            want = group.size_bytes
            found["size"] = disk_words(want), lambda row: at_least(want, disk_words, size(row, "size_bytes"), SYSFS)
        if group.firmware_min:
            least = group.firmware_min
            found["firmware"] = "%s or newer" % least, lambda row: _version(least, text(row, "firmware"), SYSFS)
        return found

    found = devices(hardware, "nvme", "name", "address")
    return _groups("NVMe drives", groups, found, judges, "nvme", SYSFS, _what_nvme)


def _what_nvme(row: Row) -> str:
    have = size(row, "size_bytes")
    return " ".join(filter(None, (disk_words(have) if have else "", text(row, "model")))) or "a drive"


# --- network cards: several functions of one slot are one card


def _nics(groups: Sequence[Nics], hardware: Row) -> list[Line]:
    def judges(group: Nics) -> Mapping[str, tuple[str, Callable[[Row], Judged]]]:
        found: dict[str, tuple[str, Callable[[Row], Judged]]] = {
            "model": (group.model or group.pci_id or "", lambda row: _nic_model(group, row))
        }
        if group.ports:
            want = group.ports
            found["ports"] = "%d each" % want, lambda row: not_below(want, figure, _ports(row), SYSFS)
        if group.link_layer:
            layer = group.link_layer
            found["link layer"] = (
                layer,
                lambda row: _each_port(row, lambda port: _like(layer, text(port, "link_layer"), SYSFS)),
            )
        if group.rate_gbps:
            rate = group.rate_gbps
            found["rate"] = _gbps(rate), lambda row: _each_port(row, lambda port: _rate(rate, port))
        if group.firmware_min:
            least = group.firmware_min
            found["firmware"] = "%s or newer" % least, lambda row: _version(least, text(row, "firmware"), SYSFS)
        return found

    return _groups("Network cards", groups, _cards(hardware), judges, "nics", "PCI id", _what_nic)


def _cards(hardware: Row) -> list[Device] | None:
    found = rows(hardware, "nics")
    if found is None:
        return None
    cards: dict[str, list[Row]] = {}
    for at, row in enumerate(found):
        if text(row, "pci_id").lower() not in VIRTUAL_NICS:
            slot = text(row, "address").rpartition(".")[0]
            cards.setdefault(slot or "card %d" % at, []).append(row)
    return [Device(slot, dict(ports[0], functions=ports)) for slot, ports in cards.items()]


def _nic_model(group: Nics, row: Row) -> Judged:
    pci_id = text(row, "pci_id").lower()
    if not pci_id:
        return NOT_SEEN
    shown = nic_name(pci_id) or pci_id
    evidence = ("PCI id %s" % pci_id,)
    ids = {group.pci_id.lower()} if group.pci_id else nic_ids(group.model or "")
    if not ids:
        words = "no PCI id of %s is known here: give it as pci_id in the order" % group.model
        return Judged("unknown", shown, words, evidence)
    if pci_id in ids:
        return Judged("ok", shown, "", evidence)
    words = "ordered %s; PCI id says %s" % (group.model or group.pci_id, shown)
    return Judged("different", shown, words, evidence)


def _ports(row: Row) -> float | None:
    counts = [size(port, "ports") for port in row["functions"]]
    return None if None in counts else sum(count for count in counts if count)


def _each_port(row: Row, judge: Callable[[Row], Judged]) -> Judged:
    """The gravest that is said of a port of the card."""
    found = [judge(port) for port in row["functions"]]
    order = ("ok", "extra", "unknown", "short", "different")
    return max(found, key=lambda one: order.index(one.verdict))


def _rate(want: float, port: Row) -> Judged:
    have, state = size(port, "rate_gbps"), text(port, "state").lower()
    is_down = bool(state) and not any(word in state for word in ("active", "up"))
    if have is None or (is_down and have < want):
        words = "it shows its rate only while the port is up" + (" (now: %s)" % state if state else "")
        return NOT_SEEN._replace(words=words, evidence=(SYSFS,))
    return not_below(want, _gbps, have, SYSFS, "look at cable, transceiver and the port of the switch")


def _gbps(value: float) -> str:
    return "%s Gb/s" % figure(value)


def _what_nic(row: Row) -> str:
    pci_id = text(row, "pci_id").lower()
    return nic_name(pci_id) or pci_id or "a card"


# --- power, firmware, system


def _psus(groups: Sequence[Psus], hardware: Row) -> list[Line]:
    def judges(group: Psus) -> Mapping[str, tuple[str, Callable[[Row], Judged]]]:
        found: dict[str, tuple[str, Callable[[Row], Judged]]] = {"state": ("in order", _psu_state)}
        if group.capacity_w:
            want = group.capacity_w
            found["capacity"] = _watts(want), lambda row: at_least(want, _watts, size(row, "capacity_w"), IPMI, "ok")
        return found

    found = devices(hardware, "psus", "name")
    if found is not None:
        found = [device for device in found if device.row.get("present") is not False]
    return _groups("Power supplies", groups, found, judges, "psus", IPMI, lambda row: text(row, "name") or "a supply")


def _watts(value: float) -> str:
    return "%s W" % figure(value)


def _psu_state(row: Row) -> Judged:
    present, is_ok = row.get("present"), row.get("ok")
    if is_ok is False:
        return Judged("short", "failed", "it reports a failure: input, fan or the supply itself", (IPMI,))
    if is_ok is True and present is True:
        return Judged("ok", "in order", "", (IPMI,))
    return NOT_SEEN._replace(evidence=(IPMI,))


def _nvswitches(ordered: int, hardware: Row) -> list[Line]:
    have = number(part(hardware, "nvlink"), "switches")
    if have is None:
        return [one_line("NVSwitches", str(ordered), NOT_SEEN._replace(evidence=("PCI id",)), "gpus")]
    verdict = "ok" if have == ordered else "short" if have < ordered else "extra"
    words = {"short": "%s of %d are on PCI" % (figure(have), ordered), "extra": "more than ordered"}.get(verdict, "")
    return [one_line("NVSwitches", str(ordered), Judged(verdict, figure(have), words, ("PCI id",)), "gpus")]


def _bios(ordered: Bios, hardware: Row) -> list[Line]:
    have = part(hardware, "bios")
    lines = []
    if ordered.vendor:
        lines.append(one_line("BIOS: vendor", ordered.vendor, _like(ordered.vendor, text(have, "vendor"), DMI), "bios"))
    if ordered.version_min:
        judged = _version(ordered.version_min, text(have, "version"), DMI)
        lines.append(one_line("BIOS: version", "%s or newer" % ordered.version_min, judged, "bios"))
    if ordered.date_min:
        date, shown = iso_date(text(have, "date")), text(have, "date")
        if not date:
            judged = NOT_SEEN._replace(shown=shown or "not seen", evidence=(DMI,))
        elif date < ordered.date_min:
            judged = Judged("short", date, "older than ordered", (DMI,))
        else:
            judged = Judged("ok", date, "", (DMI,))
        lines.append(one_line("BIOS: date", "%s or newer" % ordered.date_min, judged, "bios"))
    return lines


def _bmc(ordered: Any, hardware: Row) -> list[Line]:
    if not ordered.firmware_min:
        return []
    judged = _version(ordered.firmware_min, text(part(hardware, "bmc"), "firmware"), IPMI)
    return [one_line("BMC: firmware", "%s or newer" % ordered.firmware_min, judged, "bmc")]


def _system(ordered: System | None, serial: str, have: Row) -> list[Line]:
    lines = []
    for key, title in (("manufacturer", "System: maker"), ("product", "System: product")):
        wanted = getattr(ordered, key, None)
        if wanted:
            lines.append(one_line(title, wanted, _like(wanted, text(have, key), DMI), "system"))
    if serial:
        lines.append(one_line("System: serial number", serial, _serial(serial, text(have, "serial")), "system"))
    return lines


def _serial(wanted: str, have: str) -> Judged:
    if is_scrubbed(have):
        return Judged("unknown", have, SCRUBBED, (DMI,))
    return _like(re.sub(r"([*?[])", r"[\1]", wanted), have, DMI)


_KINDS: Mapping[str, Callable[[Any, Row], list[Line]]] = {
    "cpus": _cpus,
    "dimms": _dimms,
    "gpus": order_gpus.compare,
    "nvswitches": _nvswitches,
    "nvme": _nvme,
    "nics": _nics,
    "psus": _psus,
    "bios": _bios,
    "bmc": _bmc,
}
