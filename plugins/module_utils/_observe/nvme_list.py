# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What nvme(1) lists, as a table or as JSON in any of its schemas."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, fields
from typing import Any, Dict, Iterator, List, Mapping, Sequence, Tuple, Union

from .._engine.values import Text, Unknown, lines
from .cpu import Number
from .tool_text import clean, find_json, without_labels

Word = Union[str, Unknown]
Figure = Union[float, Unknown]

_PATH = re.compile(r"nvme\d{1,4}c\d{1,4}n\d{1,6}$", re.ASCII)
_NAMESPACE = re.compile(r"(?:/dev/)?(nvme\d{1,4})(?:c\d{1,4})?n\d{1,6}", re.ASCII)
# A row may be quoted in a mail or a note.
_RULE = re.compile(r"[\s>#|]*-{2,}(\s+-{2,})*\s*")
_SIGN = re.compile(r"Node +|Device +|Subsystem +|\{|Smart Log for|critical_warning")
_ROW = re.compile(r"[\s>#|]*(?:/dev/|nvme)")
# A row of the short table by its forms: blanks that a web page has joined leave no columns.
_LOOSE = re.compile(
    r"[\s>#|]*((?:/dev/)?nvme\d{1,4}n\d{1,6})\s+(?:/dev/ng\S{1,20}\s+)?(\S{1,40})\s+(\S.{0,60}?)\s+"
    r"(0x[0-9a-fA-F]{1,8}|\d{1,10})\s+([\d.,]{1,12}\s*[kKMGTPE]?B\s*/\s*[\d.,]{1,12}\s*[kKMGTPE]?B)\s+"
    r"([\d.]{1,6}\s*[kKM]?i?B\s*\+\s*\d{1,6}\s*B)(?:\s+(\S{1,16}))?\s*",
    re.ASCII,
)
_LOOSE_NAMES = ("Node", "SN", "Model", "Namespace", "Usage", "Format", "FW Rev")
_NAMES = {
    *_LOOSE_NAMES, "Generic", "Device", "Cntlid", "MN", "FR", "TxPort", "Address", "Asdress", "Slot", "Subsystem",
    "Namespaces", "Subsystem-NQN", "Controllers", "NSID", "PCI Address", "",
}  # fmt: skip
_PART = "[.,'\u2019\u00a0\u202f ]"
_GROUPED = re.compile(r"(\d{1,3}(?:%s\d{3}){1,12})(?![\d.,])" % _PART, re.ASCII)
_PLAIN = re.compile(r"(0x[0-9a-fA-F]{1,16}|\d[\d,.']{0,40})", re.ASCII)
_AMOUNT = re.compile(r"(\d{1,9}(?:[.,]\d{1,3})?)\s*([kKMGTPE]?i?)B", re.ASCII)
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}


@dataclass(frozen=True)
class Namespace:
    """A namespace as nvme(1) lists it.  Sizes from its table are rounded to three digits."""

    name: str
    controller: str
    number: Number
    model: Word
    serial: Word
    firmware: Word
    size_bytes: Number
    used_bytes: Number
    sector_bytes: Number
    transport: Word
    address: Word


def parse_nvme_list(text: Text) -> Union[Tuple[Namespace, ...], Unknown]:
    """``nvme list``, plain, -v or -o json, in any of its schemas; no devices is an empty answer, no error."""
    if not isinstance(text, str):
        return text if isinstance(text, Unknown) else Unknown("nvme was not run")
    text = plain(text)
    data = json_object(text)
    if data is not None:
        if isinstance(data, Unknown):
            return data
        if not isinstance(data.get("Devices"), list):
            return Unknown("nvme list gives no devices")
        return tuple(_namespaces(data["Devices"]))
    tables = _tables(text)
    if not tables:
        return () if not text.strip() else Unknown("nvme list says %r" % text.strip()[:80])
    found: Dict[Tuple[str, Word], Namespace] = {}
    for one in _of_tables(tables):
        # The short table and the long one may stand in one text.
        key = (one.name, one.serial)
        found[key] = _joined(found[key], one) if key in found else one
    return tuple(found.values())


def _joined(one: Namespace, other: Namespace) -> Namespace:
    """What one of two rows does not tell, the other may."""
    pairs = [(getattr(one, field.name), getattr(other, field.name)) for field in fields(Namespace)]
    return Namespace(*[theirs if isinstance(mine, Unknown) else mine for mine, theirs in pairs])


def _namespaces(devices: Sequence[Any]) -> Iterator[Namespace]:
    """Flat before 2.11: a device is a namespace.  Nested since, and with -v: hosts, subsystems, controllers."""
    for device in _dicts(devices):
        if "DevicePath" in device or ("ModelNumber" in device and "Subsystems" not in device):
            yield _namespace(device, device)
            continue
        # In 1.x, nvme list -v gives subsystems without a host around them.
        for subsystem in _dicts(device.get("Subsystems")) if "Subsystems" in device else [device]:
            controllers = list(_dicts(subsystem.get("Controllers")))
            shared = list(_dicts(subsystem.get("Namespaces")))
            for controller in controllers:
                for namespace in _dicts(controller.get("Namespaces")):
                    # nvme0c0n1 is one path to a namespace, with a size of 0.
                    if not shared or not _PATH.search(str(namespace.get("NameSpace"))):
                        yield _namespace(namespace, controller)
            # With native multipath a namespace belongs to the subsystem, and each controller is a path to it.
            for namespace in shared:
                yield _namespace(namespace, controllers[0] if controllers else {})


def _namespace(data: Mapping[str, Any], controller: Mapping[str, Any]) -> Namespace:
    path = data.get("DevicePath") or data.get("NameSpace") or data.get("Namespace") or ""
    name = str(path).rsplit("/", 1)[-1]
    found = _NAMESPACE.fullmatch(name)
    owner = controller.get("Controller")
    number = figure(data.get("NSID", data.get("NameSpace", data.get("Namespace"))))
    return Namespace(
        name,
        owner if isinstance(owner, str) else found.group(1) if found else "",
        number if isinstance(number, Unknown) else int(number),
        _word(controller.get("ModelNumber")),
        _word(controller.get("SerialNumber")),
        _word(controller.get("Firmware")),
        _bytes(data.get("PhysicalSize")),
        _bytes(data.get("UsedBytes")),
        _bytes(data.get("SectorSize")),
        _word(controller.get("Transport")),
        _word(controller.get("Address")),
    )


def _tables(text: str) -> List[List[Dict[str, str]]]:
    """Tables whose header is underlined with dashes that show the width of each column."""
    rows = [line.rstrip() for line in lines(text)]
    tables: List[List[Dict[str, str]]] = []
    spans: List[Tuple[str, int, int]] = []
    rows = [row for row in rows if row]
    for before, row in zip([""] + rows, rows):
        if _RULE.fullmatch(row):
            spans = _spans(before, row)
            tables.append([])
        elif _ROW.match(row):
            cells = _aligned(row, spans) or _loose(row)
            if cells:
                tables = tables or [[]]
                tables[-1].append(cells)
    return [table for table in tables if table] or ([[]] if tables else [])


def _spans(header: str, rule: str) -> List[Tuple[str, int, int]]:
    """None where the header does not stand above its columns."""
    starts = [match.start() for match in re.finditer(r"-{2,}", rule)]
    # A column reaches to the next one: a value may be wider than its header.
    ends = [*starts[1:], 10_000]
    spans = [(header[start:end].strip(), start, end) for start, end in zip(starts, ends)]
    return spans if all(name in _NAMES for name, _start, _end in spans) else []


def _aligned(row: str, spans: Sequence[Tuple[str, int, int]]) -> Dict[str, str]:
    """The cells below their headers; none where a value reaches over the border of its column.

    Version 2.10 and later put the rows of controllers further left than their header: all but the first by as much.
    The address of a fabric may be wider than its column: then only what stands before it is below its header.
    """
    second = re.match(r"\S+\s+", row[spans[0][1] :]) if len(spans) > 1 else None
    shifts = (0, spans[1][1] - spans[0][1] - second.end()) if second else (0,)
    for shift in shifts:
        starts = [span[1] - (shift if number else 0) for number, span in enumerate(spans)]
        fits = [number == 0 or row[at - 1 : at] in ("", " ") for number, at in enumerate(starts)]
        wide = next((number for number, span in enumerate(spans) if span[0] in ("Address", "Asdress")), 0)
        count = len(spans) if all(fits) else wide + 1 if wide and all(fits[: wide + 1]) else 0
        if shift >= 0 and count:
            ends = [*starts[1:], 10_000]
            cells = {spans[number][0]: row[starts[number] : ends[number]].strip() for number in range(count)}
            if count <= wide + 1 and wide:
                cells[spans[wide][0]] = row[starts[wide] :].partition(" ")[0]
            return cells
    return {}


def _loose(row: str) -> Dict[str, str]:
    found = _LOOSE.fullmatch(row[:400])
    return {name: cell for name, cell in zip(_LOOSE_NAMES, found.groups()) if cell} if found else {}


def _of_tables(tables: Sequence[Sequence[Mapping[str, str]]]) -> Iterator[Namespace]:
    """The short table has all in one row; -v parts subsystems, controllers and namespaces into three."""
    controllers = {row["Device"]: row for table in tables for row in table if "Device" in row and "SN" in row}
    for table in tables:
        for row in table:
            if "Node" in row:
                yield _of_row(row["Node"], row, row)
            elif "NSID" in row and "Device" in row:
                names = re.split(r"[,\s]+", row.get("Controllers", ""))
                owner = next((controllers[name] for name in names if name in controllers), {})
                yield _of_row(row["Device"], row, owner)


def _of_row(path: str, row: Mapping[str, str], owner: Mapping[str, str]) -> Namespace:
    name = path.rsplit("/", 1)[-1]
    found = _NAMESPACE.fullmatch(name)
    used, _slash, size = row.get("Usage", "").partition("/")
    number = figure(row.get("Namespace", row.get("NSID")))
    return Namespace(
        name,
        owner.get("Device") or (found.group(1) if found else ""),
        number if isinstance(number, Unknown) else int(number),
        _word(owner.get("Model", owner.get("MN"))),
        _word(owner.get("SN")),
        _word(owner.get("FW Rev", owner.get("FR"))),
        _amount(size),
        _amount(used),
        _amount(row.get("Format", "").partition("+")[0]),
        _word(owner.get("TxPort")),
        # nvme 2.0 and 2.1 write "Asdress".
        _word(owner.get("Address", owner.get("Asdress"))),
    )


def _amount(text: str) -> Number:
    """``1.92  TB`` counts in thousands, ``4 KiB`` in 1024s."""
    found = _AMOUNT.match(re.sub(r"\s+", " ", text.strip()))
    if not found:
        return Unknown("nvme list says %r" % text.strip()[:40])
    unit = found.group(2)
    base = 1024 if unit.endswith("i") else 1000
    return round(float(found.group(1).replace(",", ".")) * float(base) ** _POWERS[unit.rstrip("i").upper()])


def json_object(text: str) -> Union[Dict[str, Any], Unknown, None]:
    """The object in a cleaned text, perhaps behind a prompt; None where none begins."""
    data = find_json(text)
    return data if data is None or isinstance(data, (dict, Unknown)) else Unknown("no JSON object")


def plain(text: str) -> str:
    """Without colours, what quotes it, and the names of hosts."""
    return clean(without_labels(text, _SIGN))


def figure(value: Any) -> Figure:
    """A number in any of its forms: 2, 2.0, "2", "2%", "9,898,518 (5.07 TB)", "0x2", {"value": 2}.

    What parts the thousands depends on the locale; a fraction never has three digits here.
    """
    if isinstance(value, dict):
        value = value.get("value")
    if isinstance(value, str):
        found = _GROUPED.match(value.strip()) or _PLAIN.match(value.strip())
        if not found:
            return Unknown("nvme says %r" % value[:40])
        word = re.sub(_PART, "", found.group(1)) if found.re is _GROUPED else re.sub(r"[,']", "", found.group(1))
        try:
            value = int(word, 16) if word.startswith("0x") else float(word)
        except ValueError:
            return Unknown("nvme says %r" % value[:40])
    if value is None:
        return Unknown("nvme does not tell")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return Unknown("nvme says %r" % str(value)[:40])
    try:
        number = float(value)
    except OverflowError:
        return Unknown("nvme gives a number too large")
    return number if math.isfinite(number) else Unknown("nvme gives no finite number")


def _bytes(value: Any) -> Number:
    number = figure(value)
    return number if isinstance(number, Unknown) else int(number)


def _word(value: Any) -> Word:
    return value.strip() if isinstance(value, str) and value.strip() else Unknown("nvme does not tell")


def _dicts(value: Any) -> Iterator[Mapping[str, Any]]:
    return (item for item in value if isinstance(item, dict)) if isinstance(value, list) else iter(())
