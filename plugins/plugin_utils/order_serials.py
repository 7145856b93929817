# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Serial numbers: those of an order that are missing or unexpected, and those that stand in two places."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import NamedTuple

from .order import LotSerials, Serials
from .order_lines import Line, Row, devices, named, part, several, text
from .order_parts import is_shared_board

TITLES = {"gpus": "GPUs", "nvme": "NVMe drives", "dimms": "memory modules", "systems": "systems"}
SOURCES = {"gpus": "nvidia-smi", "nvme": "sysfs", "dimms": "dmidecode", "systems": "DMI"}
LABELS = {"gpus": ("address", "uuid", "name"), "nvme": ("name", "address"), "dimms": ("locator",)}
SCRUBBED = "the capture is scrubbed, so it has made-up numbers: take it again with -e gpufleet_scrub=false"
# What scrubbing leaves (_engine/capture.py), and what firmware and drivers write where they have no number.
_MADE_UP = re.compile(r"serial-[0-9a-f]{10}")
_NONE = re.compile(
    r"0+|\[?n/?a\]?|none|unknown.*|no(?:t)?[ -](?:specified|available|supported|dimm|asserted).*|to be filled.*|"
    r"default string|system serial number|err!.*|\[.*\]|f{8,}|x+|\.*|123456789",
    re.IGNORECASE,
)


class Found(NamedTuple):
    """A serial number, and where it was found."""

    number: str
    host: str
    label: str
    name: str = ""


def is_scrubbed(number: str) -> bool:
    return _MADE_UP.fullmatch(number) is not None


def serials_of(hardware: Row, kind: str, host: str = "") -> list[Found] | None:
    """The serial numbers of a kind; an empty number is a part that does not tell its own. None: none could be seen."""
    if kind == "systems":
        return [Found(_clean(text(part(hardware, "system"), "serial")), host, "system")]
    found = devices(hardware, kind, *LABELS[kind])
    if found is None:
        return None
    parts = [device for device in found if kind != "dimms" or device.row.get("size_mib") != 0]
    return [Found(_clean(text(d.row, "serial")), host, d.label, text(d.row, "name")) for d in parts]


def _clean(number: str) -> str:
    return "" if _NONE.fullmatch(number) else number


def serial_lines(ordered: Serials, hardware: Row) -> list[Line]:
    """One host against the serial numbers that it was ordered with."""
    lines = []
    for about in fields(ordered):
        wanted = getattr(ordered, about.name)
        if wanted is not None:
            lines.append(_line(about.name, wanted, serials_of(hardware, about.name), ()))
    return lines


def lot_serial_lines(ordered: LotSerials | None, hosts: Mapping[str, Row]) -> list[Line]:
    """The whole lot against the serial numbers that it was ordered with, and numbers that are there twice."""
    lines = []
    for kind, title in TITLES.items():
        by_host = {name: serials_of(hardware, kind, name) for name, hardware in hosts.items()}
        found = [one for name in by_host for one in by_host[name] or ()]
        wanted = getattr(ordered, kind, None)
        if wanted is not None:
            blind = [name for name, rows in by_host.items() if rows is None]
            seen = None if blind and not found else found
            lines.append(_line(kind, wanted, seen, blind))
        lines += [
            Line(
                "Serial numbers of %s" % title,
                "each in one place",
                where,
                "different",
                (SOURCES[kind],),
                words,
                "serials",
                hosts_,
            )
            for where, words, hosts_ in doubled(found)
        ]
    return lines


def _line(kind: str, wanted: Sequence[str], found: Sequence[Found] | None, blind: Sequence[str]) -> Line:
    item, source = "Serial numbers of %s" % TITLES[kind], (SOURCES[kind],)
    ordered = several(len(wanted), "number")
    if found is None:
        return Line(item, ordered, "not seen", "unknown", source, "they could not be seen", "serials")
    if any(is_scrubbed(one.number) for one in found):
        return Line(item, ordered, "not seen", "unknown", source, SCRUBBED, "serials")
    have = {one.number: one for one in found if one.number}
    known = {number.casefold() for number in wanted}
    there = {number.casefold() for number in have}
    missing = [number for number in wanted if number.casefold() not in there]
    unexpected = [one for number, one in have.items() if number.casefold() not in known]
    silent = [one for one in found if not one.number]
    words = [
        "missing: %s" % named(missing) if missing else "",
        "not in the order: %s" % named([_where(one) for one in unexpected]) if unexpected else "",
        "%s without a number that can be read: %s" % (several(len(silent), "part"), named([_at(one) for one in silent]))
        if silent
        else "",
        "hosts that could not be seen: %s" % named(blind) if blind else "",
    ]
    verdict = "different" if unexpected else "short" if missing else "ok"
    if (silent or blind) and missing and not unexpected:
        # The missing ones may be those that do not tell.
        verdict = "unknown"
    delivered = "%d of %d" % (len(wanted) - len(missing), len(wanted))
    if unexpected:
        delivered += ", and %d other" % len(unexpected)
    labels = tuple(_at(one) for one in (*unexpected, *silent))
    return Line(item, ordered, delivered, verdict, source, "; ".join(filter(None, words)), "serials", labels)


def _where(one: Found) -> str:
    return "%s (%s)" % (one.number, _at(one))


def _at(one: Found) -> str:
    return "%s %s" % (one.host, one.label) if one.host else one.label


def doubled(found: Sequence[Found]) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Numbers that stand in two places, together where the places are the same hosts: where, why, hosts."""
    places: dict[str, list[Found]] = {}
    for one in found:
        if one.number and not is_scrubbed(one.number):
            places.setdefault(one.number.casefold(), []).append(one)
    together: dict[tuple[str, ...], list[Found]] = {}
    for ones in places.values():
        hosts = tuple(dict.fromkeys(one.host for one in ones))
        # Four GPUs of one board have one number.
        is_board = len(hosts) == 1 and all(is_shared_board(one.name) for one in ones)
        if len(ones) > 1 and not is_board:
            together.setdefault(hosts, []).append(ones[0])
    for hosts, ones in together.items():
        numbers = named([one.number for one in ones])
        if len(hosts) > 1:
            why = "the same part cannot be in two hosts: one of them was captured twice, or its parts were moved"
            yield "%s in %s" % (several(len(ones), "number"), named(hosts)), "%s; %s" % (numbers, why), hosts
        else:
            yield "%s twice in %s" % (several(len(ones), "number"), hosts[0]), numbers, hosts
