# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What ipmitool(1) prints: sensors in all its tables, the power reading of DCMI, the system event log.

FreeIPMI's tables of the same are read as well.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Dict, Iterator, List, Optional, Sequence, Tuple

from .._engine.values import Text, Unknown, lines
from .ipmi_records import readings, records
from .power import Figure, Flag
from .tool_text import clean, without_labels

_STATUS = ("ok", "ns", "nc", "cr", "nr", "lnc", "lcr", "lnr", "unc", "ucr", "unr", "na", "us")
_MEASURING, _RESTING = ("activated", "active"), ("deactivated", "not active", "inactive", "not available")
_ALARMS = ("cr", "nr", "lcr", "lnr", "ucr", "unr")
# In some locales the fraction stands behind a comma; states are parted by a comma and a blank.
_VALUE = re.compile(r"(-?\d{1,9}(?:[.,]\d{1,6})?)\s*%?\s*(.*)", re.ASCII)
RAW = re.compile(r"0x[0-9a-f]{1,8}", re.IGNORECASE)
_NO_READING = ("no reading", "not readable", "disabled", "unknown", "n/a", "na", "ns", "")
_UNITS = ("degrees c", "degrees f", "rpm", "watts", "volts", "amps", "percent", "feet", "unspecified", "cfm", "%")
# Some Lenovo boards mean Watts.
_SAME_UNIT = {"watts/hour": "Watts"}
# Bits of the state of a power supply and of a redundancy sensor (IPMI 2.0, tables 42-2 and 42-3).
_SUPPLY_BITS = (
    "Presence detected", "Failure detected", "Predictive failure", "Power Supply AC lost",
    "AC lost or out-of-range", "AC out-of-range, but present", "Config Error", "Power Supply Inactive",
)  # fmt: skip
_REDUNDANCY_BITS = (
    "Fully Redundant", "Redundancy Lost", "Redundancy Degraded", "Non-Redundant: Sufficient from Redundant",
    "Non-Redundant: Sufficient from Insufficient", "Non-Redundant: Insufficient Resources",
    "Redundancy Degraded from Full", "Redundancy Degraded from Non-Redundant",
)  # fmt: skip
SUPPLY_NAME = re.compile(
    r"(?:^(?:PSU?|PWR[ _]?SUPPLY|POWER[ _]SUPPLY|PDB)|[_ ]PSU)[ _-]?(\d{1,2})", re.IGNORECASE | re.ASCII
)
REDUNDANCY_NAME = re.compile(r"redun|^Power Supplies$|^PS_?RDNDNT", re.IGNORECASE)
_BITS = re.compile(r"0x([0-9a-f]{2})[0-9a-f]{2}", re.IGNORECASE)
# What stands behind the name of a host: the bar of a table, or the first words of the other outputs.
_SIGN = re.compile(r".{1,80}\||Sensor ID|SEL Record|Instantaneous|Current Power|[\w .+-]{1,40},")
# What somebody wrote behind a row.
_REMARK = re.compile(r"\s(?:#|<[-=]{1,8}|\u2190|//)\s.*$")
_ID = re.compile(r"[0-9A-F]{1,3}h", re.IGNORECASE)
_SEL_ROW = re.compile(r"[\s>#]*[0-9a-f]{1,6}\s*\|", re.IGNORECASE | re.ASCII)
_DATE = re.compile(r"\d{1,2}/\d{1,2}/\d{2,4}", re.ASCII)
_DIRECTIONS = {"asserted": True, "deasserted": False, "assertion": True, "deassertion": False}
# ipmimonitoring, as FreeIPMI called it before 1.0, has other names for its columns.
_OLD_COLUMNS = {
    "Record_ID": "ID", "Record ID": "ID", "Sensor Name": "Name", "Sensor Group": "Type", "Sensor Type": "Type",
    "Monitoring Status": "State", "Sensor Units": "Units", "Sensor Reading": "Reading",
}  # fmt: skip
# What FreeIPMI says of a sensor, in the words of ipmitool.
_QUOTES = " '\u2018\u2019"
_STATES = {"nominal": "ok", "warning": "nc", "critical": "cr"}


@dataclass(frozen=True)
class Sensor:
    """A row.  ``reading`` is what stands there; ``value`` with its ``unit`` is the figure in it, ``states`` the words."""

    name: str
    id: str
    status: str
    entity: str
    reading: str
    value: Figure
    unit: str
    states: Tuple[str, ...]

    @property
    def is_alarm(self) -> bool:
        return self.status in _ALARMS


@dataclass(frozen=True)
class Dcmi:
    """Power drawn by the whole host, as DCMI measures it."""

    now_w: Figure
    minimum_w: Figure
    maximum_w: Figure
    average_w: Figure
    is_active: Flag


@dataclass(frozen=True)
class Event:
    """A record of the event log.  ``is_asserted`` is False when it tells that a fault has gone."""

    number: str
    when: str
    sensor: str
    event: str
    is_asserted: Flag


def parse_sdr(text: Text) -> Tuple[Sensor, ...]:
    """The sensors of ``sdr``, ``sdr elist``, ``sdr type``, ``sensor``, ``sensor get``, with -c or -v or without, and
    of ipmi-sensors.
    """
    found: List[Sensor] = []
    columns: Dict[str, int] = {}
    rows = _rows(text)
    for line in rows:
        cells = _cells(line)
        names = [_OLD_COLUMNS.get(cell, cell) for cell in cells]
        if "Name" in names and "Reading" in names:
            columns = {name: place for place, name in enumerate(names)}
            continue
        if columns and len(cells) == len(columns):
            found.append(_sensor_of_columns(cells, columns))
            continue
        sensor = _row(cells) if len(cells) > 1 else _comma_row(line)
        if sensor is not None:
            found.append(sensor)
    return tuple(found) + tuple(_sensor(*one) for one in readings(rows))


def parse_dcmi_power(text: Text) -> Dcmi:
    """``dcmi power reading``, ipmi-dcmi of FreeIPMI, or ipmiutil; figures of a measurement that is not active are unknown."""
    reason = text if isinstance(text, Unknown) else Unknown("ipmitool shows no such row")
    said: Dict[str, str] = {}
    for line in _rows(text):
        key, _colon, value = line.partition(":")
        said.setdefault(key.strip(" \t>#").lower(), value.strip())
    state = said.get("power reading state is", said.get("power measurement", "")).lower()
    is_active: Flag = state in _MEASURING if state in (*_MEASURING, *_RESTING) else reason
    if is_active is False:
        reason = Unknown("the power measurement is not active")

    def watts(*rows: str) -> Figure:
        word = next((said[row] for row in rows if row in said), "")
        match = re.match(r"(\d{1,6})\s*Watts", word, re.ASCII | re.IGNORECASE)
        return float(match.group(1)) if match and is_active is not False else reason

    return Dcmi(
        watts("instantaneous power reading", "current power"),
        watts(
            "minimum during sampling period", "minimum power over sampling duration", "min power over sample duration"
        ),
        watts(
            "maximum during sampling period", "maximum power over sampling duration", "max power over sample duration"
        ),
        watts(
            "average power reading over sample period",
            "average power over sampling duration",
            "avg power over sample duration",
        ),
        is_active,
    )


def parse_sel(text: Text) -> Tuple[Event, ...]:
    """The records of ``sel list`` and ``sel elist``, with -c or -v or without, of ``sel get``, and of ipmi-sel."""
    found: List[Event] = []
    columns: Dict[str, int] = {}
    rows = _rows(text)
    for line in rows:
        cells = _cells(line)
        if "Date" in cells and "Event" in cells:
            columns = {name: place for place, name in enumerate(cells)}
        elif columns and len(cells) == len(columns):
            found.append(_event_of_columns(cells, columns))
        elif len(cells) >= 4 and _SEL_ROW.match(line):
            found.append(_event(cells))
        elif len(cells) == 1 and "," in line:
            found.extend(_comma_event(line))
    return tuple(found) + tuple(Event(*one[:4], _direction(one.direction)) for one in records(rows))


def still_asserted(events: Sequence[Event]) -> Tuple[Event, ...]:
    """The events that were asserted and not deasserted after it, in the order of the log."""
    last: Dict[Tuple[str, str], Event] = {}
    for event in events:
        last.pop((event.sensor, event.event), None)
        last[(event.sensor, event.event)] = event
    return tuple(event for event in last.values() if event.is_asserted is True)


def _rows(text: Text) -> List[str]:
    return lines(clean(without_labels(text, _SIGN))) if isinstance(text, str) else []


def _cells(line: str) -> List[str]:
    """The cells of a row; what quotes it in a mail or a note, or frames it in a table of Markdown, is no part of it."""
    line = _REMARK.sub("", re.sub(r"^[\s>#]+", "", line)).rstrip()
    if line.startswith("|"):
        line = line[1:-1] if line.endswith("|") else line[1:]
    return [] if re.fullmatch(r"[-|:+ ]{2,500}", line) else [cell.strip() for cell in line.split("|")]


def _direction(word: str) -> Flag:
    return _DIRECTIONS.get(word.lower().partition(" ")[0], Unknown("no direction"))


def _event(cells: Sequence[str]) -> Event:
    # A record from before the clock was set has "Pre-Init" and one column less.
    has_date = _DATE.fullmatch(cells[1]) is not None
    when = " ".join(cells[1:3]) if has_date else cells[1]
    rest = [*(cells[3:] if has_date or len(cells) > 5 else cells[2:]), "", ""]
    return Event(cells[0], when, rest[0], rest[1], _direction(rest[2]))


def _event_of_columns(cells: Sequence[str], columns: Dict[str, int]) -> Event:
    """ipmi-sel of FreeIPMI: ID, date, time, name, type, perhaps the direction, event."""

    def cell(name: str) -> str:
        return cells[columns[name]] if name in columns else ""

    sensor = " ".join(part for part in (cell("Type"), cell("Name")) if part)
    when = " ".join(part for part in (cell("Date"), cell("Time")) if part)
    return Event(cell("ID"), when, sensor, cell("Event"), _direction(cell("Event Direction")))


def _comma_event(line: str) -> Iterator[Event]:
    cells = [cell.strip() for cell in line.split(",")]
    is_record = len(cells) >= 5 and re.fullmatch(r"[0-9a-f]{1,6}", cells[0], re.ASCII) and _DATE.fullmatch(cells[1])
    if is_record:
        has_direction = cells[-1].lower() in _DIRECTIONS
        event = ", ".join(cells[4:-1] if has_direction else cells[4:])
        yield Event(cells[0], " ".join(cells[1:3]), cells[3], event, _direction(cells[-1] if has_direction else ""))


def _row(cells: Sequence[str]) -> Optional[Sensor]:
    if len(cells) == 3 and cells[2].lower() in _STATUS:
        return _sensor(cells[0], "", cells[2], "", cells[1])
    if len(cells) >= 5 and cells[2].lower() in _STATUS and (len(cells) == 5 or _ID.fullmatch(cells[1])):
        # Some firmware has a bar among its words.
        return _sensor(cells[0], cells[1], cells[2], cells[3], ", ".join(cell for cell in cells[4:] if cell))
    has_unit = len(cells) >= 4 and cells[2].lower() in (*_UNITS, "discrete", "")
    if has_unit and (cells[3].lower() in _STATUS or _BITS.fullmatch(cells[3])) and cells[0]:
        # Often without the columns of thresholds.
        return _sensor_of_thresholds(cells)
    if len(cells) == 4 and cells[1].lower() in _STATUS:
        # Where the first bar was lost, the number stands behind the name.
        name, _blank, number = cells[0].rpartition(" ")
        return _sensor(name.strip(), number, cells[1], cells[2], cells[3]) if _ID.fullmatch(number) else None
    if len(cells) >= 9 and cells[0]:
        return _sensor_of_thresholds(cells)
    return None


def _comma_row(line: str) -> Optional[Sensor]:
    cells = [cell.strip() for cell in line.split(",")]
    if len(cells) >= 4 and cells[3].lower() in _STATUS and cells[0]:
        entity = cells[4] if len(cells) > 4 else ""
        return _sensor(cells[0], "", cells[3], entity, _joined(cells[1], cells[2]))
    return None


def _joined(value: str, unit: str) -> str:
    """One reading of a value and its unit; a unit alone is none."""
    return value if value.lower() in _NO_READING or RAW.match(value) else "%s %s" % (value, unit)


def _sensor_of_thresholds(cells: Sequence[str]) -> Sensor:
    """``sensor``: name, value, unit, status, thresholds; of a discrete one the status holds its bits."""
    bits = _BITS.fullmatch(cells[3])
    if cells[2] != "discrete" or not bits:
        return _sensor(cells[0], "", cells[3], "", _joined(cells[1], cells[2]))
    names: Tuple[str, ...] = ()
    if REDUNDANCY_NAME.search(cells[0]):
        names = _REDUNDANCY_BITS
    elif SUPPLY_NAME.search(cells[0]):
        names = _SUPPLY_BITS
    states = [name for bit, name in enumerate(names) if int(bits.group(1), 16) >> bit & 1]
    return _sensor(cells[0], "", "ok" if names else "", "", ", ".join(states) if states else cells[1])


def _sensor_of_columns(cells: Sequence[str], columns: Dict[str, int]) -> Sensor:
    """ipmi-sensors of FreeIPMI: ID, name, type, perhaps its state, reading, units, event."""

    def cell(name: str) -> str:
        return cells[columns[name]] if name in columns else ""

    units = {"C": "degrees C", "F": "degrees F", "W": "Watts", "V": "Volts", "A": "Amps", "%": "percent"}
    reading, event = cell("Reading"), cell("Event").strip(_QUOTES)
    if reading[:1] in _QUOTES:
        reading, event = "", reading.strip(_QUOTES)
    events = ", ".join(word for word in event.split("' '") if word not in ("OK", "N/A", ""))
    text = "%s %s" % (reading, units.get(cell("Units"), cell("Units"))) if reading not in ("", "N/A") else ""
    status = _STATES.get(cell("State").lower(), "ok" if event not in ("N/A", "") or text else "ns")
    return _sensor(cell("Name"), cell("ID"), status, "", ", ".join(part for part in (text, events) if part))


def _sensor(name: str, number: str, status: str, entity: str, reading: str) -> Sensor:
    reading = reading.strip()
    status = status.lower()
    if RAW.match(reading):
        return Sensor(name, number, status, entity, reading, Unknown("%s is not decoded" % reading[:20]), "", ())
    if reading.lower() in _NO_READING:
        is_na = "na" in (reading.lower(), status)
        word = "not applicable: na" if is_na else "no reading (%s)" % (reading or status)
        return Sensor(name, number, status, entity, reading, Unknown(word), "", ())
    found = _VALUE.fullmatch(reading)
    words = [word.strip() for word in _whole_words(found.group(2) if found else reading).split("\0")]
    # A column of seventeen letters cuts "unspecified" short.
    words[0] = _SAME_UNIT.get(words[0].lower(), words[0])
    has_unit = found is not None and (words[0].lower() in _UNITS or words[0].lower().startswith("unspecif"))
    states = tuple(word for word in (words[1:] if has_unit else words) if word)
    value: Figure = float(found.group(1).replace(",", ".")) if found else Unknown("no figure")
    return Sensor(name, number, status, entity, reading, value, words[0] if has_unit else "", states)


def _whole_words(reading: str) -> str:
    """States are parted by commas, but one has a comma in its name."""
    return reading.replace(", but", "\1").replace(",", "\0").replace("\1", ", but")
