# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What DCGM's ``dcgmi`` prints while it watches: ``dmon``, ``health -c``, ``nvlink -s`` and ``-e``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Sequence, Tuple, Union

from .._engine.values import Unknown
from .pasted import plain_lines
from .tool_text import Number, Word, clean, load_json, no_value, real, whole

Value = Union[int, float, str, Unknown]

_ENTITY = re.compile(r"(GPU|GPU-I|GPU-CI|vGPU|Switch|Link|CPU|Core)\s{1,12}([0-9]{1,6}(?:/[0-9]{1,6}){0,2})(\s.*|$)")
# What the health report says (HelperHealthToString in DCGM's dcgmi/Health.cpp).
_HEALTH = ("Healthy", "Warning", "Failure", "Internal error")
# Before DCGM 2: "GPU ID: 0", and "PCIe system: Warning - Detected more than 8 PCIe" in one cell.
_OLD_ENTITY = re.compile(r"(?:[A-Za-z]{1,20} ID:\s*)?([0-9]{1,6})")
_OLD_SYSTEM = re.compile(r"([A-Za-z][A-Za-z ]{1,40}?):\s*(Healthy|Warning|Failure)\s*-\s*(.{1,300})")
_LINK_LETTERS = {"U": "up", "D": "down", "X": "disabled", "_": "not supported"}


# How the lines of its outputs begin.
SIGN = re.compile(r"\s*(?:[|+][-=]|\| |# ?Entity|\{|GPUs:|gpuId )")


@dataclass(frozen=True)
class Sample:
    """A row of ``dmon``: its values in the order of the fields asked for.

    N/A is unknown: a profiling field's first sample, or no XID recorded.
    """

    entity: str
    id: str
    values: Tuple[Value, ...]


@dataclass(frozen=True)
class Dmon:
    """The short names of columns depend on the version; go by the numbers that were asked for (:func:`by_field`)."""

    columns: Tuple[str, ...]
    samples: Tuple[Sample, ...]


@dataclass(frozen=True)
class Health:
    """``systems`` are (entity, system, state) of what is not healthy; ``messages`` are DCGM's own words."""

    overall: Word
    systems: Tuple[Tuple[str, str, str], ...]
    messages: Tuple[str, ...]


def parse_dcgmi_dmon(text: str) -> Dmon:
    """The heading has one or two lines and comes again on a long run."""
    columns: Tuple[str, ...] = ()
    samples: List[Sample] = []
    for line in plain_lines(clean(text), SIGN):
        row = _ENTITY.fullmatch(line.strip()[:4000])
        if line.lstrip().startswith("#"):
            words = line.lstrip()[1:].split()
            columns = tuple(words[1:]) or columns
        elif row:
            words = row.group(3).split()
            values: List[Value] = [_value(word) for word in words]
            missing = len(columns) - len(values)
            values += [Unknown("not printed")] * max(missing, 0)
            samples.append(Sample(row.group(1), row.group(2), tuple(values)))
    return Dmon(columns, tuple(samples))


def by_field(dmon: Dmon, fields: Sequence[int]) -> Dict[Tuple[str, str], Dict[int, Value]]:
    """The last sample of each entity, by the field numbers that were asked for (``dmon -e``)."""
    return {(sample.entity, sample.id): dict(zip(fields, sample.values)) for sample in dmon.samples}


def parse_dcgmi_health(text: str) -> Health:
    """The table, or JSON (``-j``)."""
    rows = plain_lines(clean(text), SIGN)
    data = json_within("\n".join(rows))
    if isinstance(data, Mapping):
        return _json_health(data)
    overall: Word = Unknown("not printed")
    systems: List[Tuple[str, str, str]] = []
    messages: List[str] = []
    entity = ""
    for line in rows:
        cells = [cell.strip() for cell in line[:500].strip().strip("|").split("|")]
        if len(cells) != 2:
            messages += [line.strip()[:300]] if re.match(r"Error", line) else []
            continue
        name, said = re.sub(r"^->\s*", "", cells[0]), cells[1]
        named, inline = _OLD_ENTITY.fullmatch(name), _OLD_SYSTEM.fullmatch(said)
        if name == "Overall Health" or said.startswith("Overall Health:"):
            overall = _state(said.split(":")[-1].strip())
        elif named:
            entity = named.group(1)
        elif name and said in _HEALTH:
            systems.append((entity, name, said))
        elif not name and inline:
            systems.append((entity, inline.group(1), inline.group(2)))
            messages.append(inline.group(3))
        elif not name and said:
            messages.append(said)
    return Health(overall, tuple(systems), tuple(messages))


def parse_dcgmi_nvlink_errors(text: str) -> Dict[Tuple[str, str], Dict[str, Number]]:
    """``nvlink -e``: the counters of each link as they are named there (``Replay Error``), by GPU and link."""
    found: Dict[Tuple[str, str], Dict[str, Number]] = {}
    gpu = link = ""
    for line in plain_lines(clean(text), SIGN):
        cells = [cell.strip() for cell in line[:500].strip().strip("|").split("|")]
        head = re.fullmatch(r"GPU(?: ID:)?\s{1,4}([0-9]{1,4})", cells[0])
        place = re.fullmatch(r"Link\s{1,4}([0-9]{1,4})", cells[0])
        if head:
            gpu, link = head.group(1), ""
        elif place:
            link = place.group(1)
        elif link and len(cells) == 2 and cells[0].startswith("->"):
            found.setdefault((gpu, link), {})[cells[0][2:].strip()[:60]] = whole(cells[1])
    return found


def parse_dcgmi_nvlink(text: str) -> Dict[str, Tuple[str, ...]]:
    """``nvlink -s``: the state of each link, by ``gpuId 0`` or ``physicalId 8`` (a switch)."""
    links: Dict[str, Tuple[str, ...]] = {}
    current = ""
    for line in plain_lines(clean(text), SIGN):
        head = re.fullmatch(r"((?:gpuId|physicalId|switchId)\s[0-9]{1,4}):?", line.strip()[:40])
        letters = line.split()
        if head:
            current = head.group(1)
            links.setdefault(current, ())
        elif current and letters and all(letter in _LINK_LETTERS for letter in letters):
            links[current] += tuple(_LINK_LETTERS[letter] for letter in letters[:200])
    return links


def json_within(text: str) -> Any:
    """The JSON in a text, with whatever stands around it; None when there is no brace."""
    start = text.find("{")
    if start < 0:
        return None
    data = load_json(text[start:])
    return load_json(text[start : text.rfind("}") + 1]) if isinstance(data, Unknown) else data


def _value(word: str) -> Value:
    number = whole(word)
    if not isinstance(number, Unknown):
        return number
    fraction = real(word)
    if not isinstance(fraction, Unknown):
        return fraction
    return no_value(word) if re.fullmatch(r"\[?n/?a\]?", word, re.IGNORECASE) else word


def _state(word: str) -> Word:
    return word if word in _HEALTH else no_value(word)


def _json_health(data: Mapping[str, Any]) -> Health:
    systems: List[Tuple[str, str, str]] = []
    messages: List[str] = []
    body = data.get("body", data)
    overall: Word = Unknown("not printed")
    if isinstance(body, Mapping) and isinstance(body.get("Overall Health"), Mapping):
        overall = _state(str(body["Overall Health"].get("value", ""))[:40])
    _walk(body, "", 0, systems, messages)
    return Health(overall, tuple(systems), tuple(messages))


def _walk(node: Any, entity: str, depth: int, systems: List[Tuple[str, str, str]], messages: List[str]) -> None:
    for name, inner in node.items() if isinstance(node, Mapping) and depth < 12 else ():
        if not isinstance(inner, Mapping):
            continue
        state = str(inner.get("value", ""))[:40]
        is_system = not re.fullmatch("[0-9]{1,6}", str(name)) and name != "Overall Health"
        if is_system and state in _HEALTH:
            systems.append((entity, str(name)[:80], state))
            overflow = inner.get("overflow")
            messages += [str(item)[:300] for item in overflow] if isinstance(overflow, list) else []
        below = str(name) if re.fullmatch("[0-9]{1,6}", str(name)) else entity
        _walk(inner.get("children", inner), below, depth + 1, systems, messages)
