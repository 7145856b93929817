# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A lot: which of the hosts that were seen is which of the ordered, and what the lot as a whole lacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .fleet_report import Document, natural
from .order import Order, OrderedHost, ordered_hosts
from .order_compare import COUNTED_FINDINGS, compare_host, notes_of
from .order_lines import VERDICTS, Line, named, part, several, text
from .order_serials import is_scrubbed, lot_serial_lines

OBSERVATION = "Observation"


@dataclass(frozen=True)
class Rules:
    """What is accepted although it is not as ordered, and what counts."""

    unknown_is: str = "refuse"
    extra_is: str = "refuse"
    unseen_is: str = "refuse"
    # A class for hosts whose name is not in the order: a vendor's are not called yet what they will be.
    class_name: str = ""
    counted_findings: tuple[str, ...] = COUNTED_FINDINGS

    def accepts(self, line: Line) -> bool:
        if line.verdict == "ok":
            return True
        if line.kind in ("unseen", "observation"):
            return self.unseen_is == "accept"
        return {"unknown": self.unknown_is, "extra": self.extra_is}.get(line.verdict, "refuse") == "accept"


@dataclass(frozen=True)
class Seen:
    """A host that was looked at: its report, or why there is none."""

    name: str
    report: Document | None = None
    why: str = ""
    source: str = ""
    digest: str = ""

    @property
    def hardware(self) -> Mapping[str, Any]:
        """What is known of its parts; empty when that is nothing at all."""
        found = part(self.report["host_facts"], "hardware") if self.report else {}
        return found if _says_anything(found) else {}

    @property
    def findings(self) -> list[Document]:
        areas = self.report["areas"] if self.report else {}
        return [row for area in areas.values() for row in area["findings"]]

    @property
    def own_name(self) -> str:
        """What the host calls itself."""
        return text(self.report["host_facts"], "hostname") or str(self.report["host"]) if self.report else ""


@dataclass(frozen=True)
class HostResult:
    """One host with its lines and the judgement."""

    name: str
    seen: Seen
    ordered: OrderedHost | None
    lines: tuple[Line, ...] = ()
    notes: tuple[Mapping[str, Any], ...] = ()
    is_accepted: bool = False
    # Why it is taken for this host of the order.
    known_by: str = ""


@dataclass(frozen=True)
class LotResult:
    order: Order
    hosts: tuple[HostResult, ...] = ()
    lines: tuple[Line, ...] = ()
    is_accepted: bool = False
    counts: Mapping[str, int] = field(default_factory=dict)


def judge_lot(order: Order, seen: Sequence[Seen], rules: Rules) -> LotResult:
    """All hosts that were seen against the order, and the order against all hosts."""
    ordered = ordered_hosts(order)
    matches = [(one, *match(one, ordered, order, rules)) for one in seen]
    hosts = [judge_host(one, wanted, known_by, odd, rules) for one, wanted, known_by, odd in matches]
    hosts.sort(key=lambda host: natural(host.name))
    lines = [*_unseen(ordered, hosts, order), *_surplus(hosts), *_twice(hosts)]
    if not seen:
        lines.append(Line("Hosts", several(len(ordered), "host"), "none", "short", (), "no host was looked at"))
    lines += lot_serial_lines(order.serials, _hardware_by_name(hosts))
    is_accepted = all(host.is_accepted for host in hosts) and all(rules.accepts(line) for line in lines)
    counts = {"hosts": len(hosts), "accepted": sum(host.is_accepted for host in hosts), "ordered": len(ordered)}
    hosts.sort(key=lambda host: _urgency(host, rules))
    return LotResult(order, tuple(hosts), tuple(lines), is_accepted, counts)


def _urgency(host: HostResult, rules: Rules) -> tuple[int, int]:
    """The gravest verdict first, then the most lines; those that are equal stay as they are, by name."""
    bad = [line for line in host.lines if not rules.accepts(line)]
    return (-VERDICTS.index(worst_verdict(bad)), -len(refused(bad, rules)))


def judge_host(seen: Seen, wanted: OrderedHost | None, known_by: str, odd: Sequence[Line], rules: Rules) -> HostResult:
    lines = list(odd)
    if wanted is None:
        words = "its name is not in the order: correct it there, or name its class in acceptance_class"
        lines.append(Line("Host", "not in the order", seen.own_name or seen.name, "extra", (), words, "surplus"))
    compared = []
    if wanted is not None:
        compared = compare_host(wanted, seen.hardware, seen.findings, rules.counted_findings)
    if not seen.hardware:
        words = seen.why or "nothing of its parts could be seen: the capture holds none of them"
        lines.append(Line(OBSERVATION, "a look at the host", "none", "unknown", (), words, "observation"))
        # All of this is unknown for that one reason.
        compared = [replace(line, kind="observation") if line.verdict == "unknown" else line for line in compared]
    lines += compared
    lines = lines or [Line("Order", "something of this host", "nothing", "unknown", (), "the order says nothing of it")]
    notes = notes_of(seen.findings, rules.counted_findings)
    name = wanted.name if wanted is not None and wanted.name else seen.name
    return HostResult(
        name, seen, wanted, tuple(lines), tuple(notes), all(rules.accepts(line) for line in lines), known_by
    )


# --- which host it is


def match(
    seen: Seen, ordered: Mapping[str, OrderedHost], order: Order, rules: Rules
) -> tuple[OrderedHost | None, str, list[Line]]:
    """The host of the order that this one is, how that is known, and a line when two signs contradict each other."""
    signs = _signs(seen, ordered)
    if signs:
        known_by, found = signs[0]
        others = [(how, host) for how, host in signs[1:] if host.name != found.name]
        odd = [_two_hosts(known_by, found, how, host) for how, host in others[:1]]
        return found, known_by, odd
    classes = order.classes or {}
    if rules.class_name in classes:
        return OrderedHost("", rules.class_name, classes[rules.class_name]), "acceptance_class", []
    return None, "", []


def _signs(seen: Seen, ordered: Mapping[str, OrderedHost]) -> list[tuple[str, OrderedHost]]:
    """What a host may be known by: the serial number of the system before any name."""
    found = []
    serial = text(part(seen.hardware, "system"), "serial")
    by_serial = {host.serial.casefold(): host for host in ordered.values() if host.serial}
    if serial.casefold() in by_serial and not is_scrubbed(serial):
        found.append(("serial number %s" % serial, by_serial[serial.casefold()]))
    for how, name in (("name %s" % seen.name, seen.name), ("name %s" % seen.own_name, seen.own_name)):
        host = _by_name(name, ordered)
        if host is not None:
            found.append((how, host))
    return found


def _by_name(name: str, ordered: Mapping[str, OrderedHost]) -> OrderedHost | None:
    """The host of that name; one may be written with its domain and the other without."""
    wanted = name.casefold()
    full = [host for host in ordered.values() if host.name.casefold() == wanted]
    short = [host for host in ordered.values() if _first_label(host.name) == _first_label(wanted)]
    # Both with a domain, and not the same one: not the same host.
    short = [host for host in short if "." not in host.name or "." not in wanted]
    return full[0] if full else short[0] if len(short) == 1 and wanted else None


def _first_label(name: str) -> str:
    return name.casefold().split(".")[0]


def _two_hosts(known_by: str, found: OrderedHost, how: str, other: OrderedHost) -> Line:
    words = "by its %s it is %s, by its %s it is %s: hosts or captures were mixed up" % (
        known_by, found.name, how, other.name,
    )  # fmt: skip
    return Line("Host", found.name, other.name, "different", (known_by, how), words, "host")


# --- the lot


def _unseen(ordered: Mapping[str, OrderedHost], hosts: Sequence[HostResult], order: Order) -> list[Line]:
    """Hosts of the order that nobody looked at, by class."""
    there = {host.ordered.name for host in hosts if host.ordered}
    # Hosts without a name in the order stand for any of their class.
    nameless: dict[str, int] = {}
    for host in hosts:
        if host.ordered and not host.ordered.name:
            nameless[host.ordered.class_name] = nameless.get(host.ordered.class_name, 0) + 1
    lines = []
    for class_name in [*(order.classes or {}), ""]:
        mine = [name for name, host in ordered.items() if host.class_name == class_name]
        missing = tuple(name for name in mine if name not in there)
        if mine:
            lines.append(_of_class(class_name, len(mine), missing, nameless.get(class_name, 0)))
    return lines


def _of_class(class_name: str, count: int, missing: tuple[str, ...], others: int) -> Line:
    title = "Hosts of class %s" % class_name if class_name else "Hosts without a class"
    delivered = count - len(missing) + others
    verdict, kind, words = "ok", "unseen", ""
    if delivered < count:
        verdict = "short"
        words = "not seen: %s" % named(missing, 40)
        if others:
            words = "%d of these were not seen: %s" % (count - delivered, named(missing, 40))
    elif delivered > count:
        verdict, kind, words = "extra", "surplus", "%d more than ordered" % (delivered - count)
    return Line(title, str(count), str(delivered), verdict, ("reports",), words, kind, missing)


def _surplus(hosts: Sequence[HostResult]) -> list[Line]:
    names = [host.name for host in hosts if host.ordered is None]
    if not names:
        return []
    words = "seen, but not ordered: %s" % named(names, 40)
    return [
        Line("Hosts beyond the order", "none", str(len(names)), "extra", ("reports",), words, "surplus", tuple(names))
    ]


def _twice(hosts: Sequence[HostResult]) -> list[Line]:
    """Two reports that claim to be one host."""
    by_name: dict[str, list[str]] = {}
    for host in hosts:
        if host.ordered and host.ordered.name:
            by_name.setdefault(host.ordered.name, []).append(host.seen.source or host.seen.name)
    return [
        Line("Host %s" % name, "1", str(len(claims)), "different", ("reports",), _claims(claims), "host", (name,))
        for name, claims in by_name.items()
        if len(claims) > 1
    ]


def _claims(claims: Sequence[str]) -> str:
    return "more than one claims to be this host: %s" % named(claims)


def _hardware_by_name(hosts: Sequence[HostResult]) -> dict[str, Mapping[str, Any]]:
    """What was seen of each host; two of one name are told apart."""
    found: dict[str, Mapping[str, Any]] = {}
    for host in hosts:
        name, number = host.name, 2
        while name in found:
            name, number = "%s (%d)" % (host.name, number), number + 1
        found[name] = host.seen.hardware
    return found


def worst_verdict(lines: Sequence[Line]) -> str:
    return max((line.verdict for line in lines), key=VERDICTS.index, default="ok")


def _says_anything(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(_says_anything(one) for one in value.values())
    # An empty list says that there is none.
    return value is not None


def refused(lines: Sequence[Line], rules: Rules) -> list[tuple[Line, int]]:
    """The lines that are not accepted, the gravest first; those that say the same are one, with their number."""
    found = [line for line in lines if not rules.accepts(line)]
    found = [line for line in found if line.kind != "observation" or line.item == OBSERVATION]
    together: dict[tuple[str, str, str], list[Line]] = {}
    for line in sorted(found, key=lambda line: -VERDICTS.index(line.verdict)):
        together.setdefault((line.verdict, line.kind, line.words or line.item), []).append(line)
    return [(same[0], len(same)) for same in together.values()]


def why_refused(result: HostResult | LotResult, rules: Rules, most: int = 6) -> list[str]:
    """What is not accepted, a sentence each, the gravest first."""
    said = [
        "%s%s: %s" % (line.item, " and %d more" % (count - 1) if count > 1 else "", reason(line))
        for line, count in refused(result.lines, rules)
    ]
    more = ["and %d more" % (len(said) - most)] if len(said) > most else []
    return said[:most] + more


def reason(line: Line) -> str:
    return line.words or "ordered %s, delivered %s" % (line.ordered, line.delivered)
