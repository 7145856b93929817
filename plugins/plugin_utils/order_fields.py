# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The kinds of fields of a purchase order: each reads a YAML node strictly, and says the same as JSON schema.

Nodes and not values, since YAML takes a serial number such as 0324518 for an octal number, and 1.10 for 1.1:
here a text stays as it is written.  A node also knows its line.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import yaml

from .fleet_report import visible

MAX_DEPTH = 16
MAX_TEXT = 200
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")
_TAG = "tag:yaml.org,2002:"
# What YAML makes of a text without quotes, where a text is meant.
_TEXT_TAGS = {_TAG + kind for kind in ("str", "int", "float", "timestamp")}


class BadOrder(ValueError):
    """An order that cannot be meant, in one sentence: file, line, place, what was given, what is allowed."""


class Place(NamedTuple):
    """Where in an order something stands: ``hosts.gpu07.gpus[0].count``."""

    file: str
    path: str = ""
    depth: int = 0

    def key(self, name: str) -> Place:
        shown = visible(name)[:80]
        step = shown if _PLAIN_KEY.fullmatch(shown) else '["%s"]' % shown.replace('"', "'")
        dot = "." if self.path and not step.startswith("[") else ""
        return Place(self.file, self.path + dot + step, self.depth + 1)

    def item(self, number: int) -> Place:
        return Place(self.file, "%s[%d]" % (self.path, number), self.depth + 1)


def refuse(place: Place, node: yaml.Node | None, given: str, allowed: str, meant: str = "") -> BadOrder:
    """The one message about what is wrong with an order."""
    line = ", line %d" % (node.start_mark.line + 1) if node is not None else ""
    where = "%s: " % place.path if place.path else ""
    hint = ". Did you mean %s?" % meant if meant else "."
    return BadOrder(
        "%s%s: %s%s is not possible; allowed: %s%s No host was touched."
        % (visible(place.file), line, where, given, allowed, hint)
    )


def nearest(word: str, words: Iterable[str], cutoff: float = 0.6) -> str:
    """The allowed word that was most likely meant; empty when none is near."""
    allowed = list(words)
    by_small = {name.lower(): name for name in allowed}
    found = difflib.get_close_matches(word.lower(), list(by_small), n=1, cutoff=cutoff)
    return by_small[found[0]] if found else ""


def shown(node: yaml.Node) -> str:
    """What was given, for a message."""
    if isinstance(node, yaml.MappingNode):
        return "a mapping"
    if isinstance(node, yaml.SequenceNode):
        return "a list"
    if node.tag == _TAG + "null":
        return "nothing"
    text = visible(str(node.value))
    text = text if len(text) <= 80 else text[:79] + "…"
    return "'%s'" % text if node.tag == _TAG + "str" else text


def pairs(node: yaml.MappingNode, place: Place) -> Iterator[tuple[str, yaml.Node, yaml.Node]]:
    """Keys and values of a mapping; a key that stands there twice is refused, since YAML would take the last."""
    seen: dict[str, int] = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode) or key.tag == _TAG + "merge":
            raise refuse(place, key, "the key %s" % shown(key), "a plain word as key")
        name = str(key.value)
        if name in seen:
            given = "the key '%s' for a second time (first in line %d)" % (visible(name), seen[name])
            raise refuse(place.key(name), key, given, "each key once")
        seen[name] = key.start_mark.line + 1
        yield name, key, value


def too_deep(place: Place, node: yaml.Node) -> None:
    """An alias may lead back to where it stands."""
    if place.depth > MAX_DEPTH:
        raise refuse(place, node, "an entry %d levels deep" % place.depth, "at most %d levels" % MAX_DEPTH)


# --- kinds of single values


@dataclasses.dataclass(frozen=True)
class Kind:
    """What a value may be. ``read`` gives the value or raises BadOrder."""

    allowed: str

    def read(self, node: yaml.Node, place: Place) -> Any:
        raise NotImplementedError

    def schema(self) -> dict[str, Any]:
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class Text(Kind):
    """A text as it is written, with or without quotes."""

    pattern: str = ""
    # Without quotes YAML takes a serial of digits for a number.
    is_never_number: bool = False

    def read(self, node: yaml.Node, place: Place) -> str:
        if not isinstance(node, yaml.ScalarNode) or node.tag not in _TEXT_TAGS:
            raise refuse(place, node, shown(node), self.allowed)
        text = " ".join(str(node.value).split())
        if not text or len(text) > MAX_TEXT or (self.pattern and not re.fullmatch(self.pattern, text)):
            raise refuse(place, node, shown(node), self.allowed)
        return text

    def schema(self) -> dict[str, Any]:
        found: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": MAX_TEXT}
        if self.pattern:
            found["pattern"] = "^(?:%s)$" % self.pattern
        return found if self.is_never_number else dict(found, type=["string", "number"])


@dataclasses.dataclass(frozen=True)
class Word(Kind):
    """One of some words."""

    words: tuple[str, ...] = ()

    def read(self, node: yaml.Node, place: Place) -> str:
        given = str(node.value) if isinstance(node, yaml.ScalarNode) else ""
        if given not in self.words:
            raise refuse(place, node, shown(node), ", ".join(self.words), nearest(given, self.words))
        return given

    def schema(self) -> dict[str, Any]:
        return {"enum": list(self.words)}


@dataclasses.dataclass(frozen=True)
class Whole(Kind):
    """A whole number."""

    low: int = 1
    high: int = 10_000

    def read(self, node: yaml.Node, place: Place) -> int:
        text = str(node.value) if isinstance(node, yaml.ScalarNode) and node.tag == _TAG + "int" else ""
        # Not 0x10, 1_000 or 010, which YAML takes for 8.
        if not re.fullmatch(r"0|[1-9][0-9]{0,8}", text) or not self.low <= int(text) <= self.high:
            raise refuse(place, node, shown(node), "%s from %d to %d" % (self.allowed, self.low, self.high))
        return int(text)

    def schema(self) -> dict[str, Any]:
        return {"type": "integer", "minimum": self.low, "maximum": self.high}


@dataclasses.dataclass(frozen=True)
class Number(Kind):
    """A number above 0, without a unit of its own: that is in the key."""

    factor: float = 1

    def read(self, node: yaml.Node, place: Place) -> float:
        is_number = isinstance(node, yaml.ScalarNode) and node.tag in (_TAG + "int", _TAG + "float")
        text = str(node.value) if is_number else ""
        if not re.fullmatch(r"(?:0|[1-9][0-9]{0,8})(?:\.[0-9]{1,6})?", text) or float(text) <= 0:
            raise refuse(place, node, shown(node), self.allowed)
        return float(text) * self.factor

    def schema(self) -> dict[str, Any]:
        return {"type": "number", "exclusiveMinimum": 0}


@dataclasses.dataclass(frozen=True)
class Measure(Kind):
    """A number with its unit: ``80 GiB``."""

    units: Mapping[str, float] = dataclasses.field(default_factory=dict)

    def read(self, node: yaml.Node, place: Place) -> float:
        text = str(node.value) if isinstance(node, yaml.ScalarNode) and node.tag in _TEXT_TAGS else ""
        found = re.fullmatch(r"\s*((?:0|[1-9][0-9]{0,8})(?:\.[0-9]{1,6})?)\s*(\S*)\s*", text)
        unit = found[2] if found else ""
        if not found or unit not in self.units or float(found[1]) <= 0:
            raise refuse(place, node, shown(node), self.allowed, self._meant(found[1] if found else "", unit))
        return float(found[1]) * self.units[unit]

    def _meant(self, figure: str, unit: str) -> str:
        meant = nearest(unit, self.units, 0.5)
        return "%s %s" % (figure, meant) if figure and unit and meant else ""

    def schema(self) -> dict[str, Any]:
        units = "|".join(re.escape(unit) for unit in self.units)
        return {"type": "string", "pattern": r"^\s*(?:0|[1-9][0-9]{0,8})(?:\.[0-9]{1,6})?\s*(?:%s)\s*$" % units}


# --- kinds that hold others


@dataclasses.dataclass(frozen=True)
class ListOf(Kind):
    """A list of one kind."""

    of: Kind = dataclasses.field(default_factory=lambda: Text("a text"))
    high: int = 1000

    def read(self, node: yaml.Node, place: Place) -> tuple[Any, ...]:
        too_deep(place, node)
        if not isinstance(node, yaml.SequenceNode):
            raise refuse(place, node, shown(node), self.allowed)
        if len(node.value) > self.high:
            raise refuse(place, node, "a list of %d entries" % len(node.value), "at most %d" % self.high)
        return tuple(self.of.read(item, place.item(number)) for number, item in enumerate(node.value))

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": self.of.schema(), "maxItems": self.high}


@dataclasses.dataclass(frozen=True)
class MapOf(Kind):
    """A mapping from names to one kind."""

    of: Kind = dataclasses.field(default_factory=lambda: Text("a text"))

    def read(self, node: yaml.Node, place: Place) -> dict[str, Any]:
        too_deep(place, node)
        if not isinstance(node, yaml.MappingNode):
            raise refuse(place, node, shown(node), self.allowed)
        found = {}
        for name, key, value in pairs(node, place):
            if not name.strip() or len(name) > MAX_TEXT:
                raise refuse(place, key, "the key %s" % shown(key), "a name")
            found[name] = self.of.read(value, place.key(name))
        return found

    def schema(self) -> dict[str, Any]:
        return {"type": "object", "additionalProperties": self.of.schema(), "propertyNames": {"minLength": 1}}


@dataclasses.dataclass(frozen=True)
class Entry(Kind):
    """A mapping with the keys that the fields of a dataclass have in an order."""

    into: type = object
    one_of: tuple[str, ...] = ()

    def read(self, node: yaml.Node, place: Place) -> Any:
        too_deep(place, node)
        if not isinstance(node, yaml.MappingNode):
            raise refuse(place, node, shown(node), "a mapping with the keys %s" % ", ".join(keys_of(self.into)))
        keys = keys_of(self.into)
        values: dict[str, Any] = {}
        given: dict[str, str] = {}
        for name, key, value in pairs(node, place):
            if name not in keys:
                meant = nearest(name, keys)
                raise refuse(place.key(name), key, "the key '%s'" % visible(name), ", ".join(keys), meant)
            attribute, kind = keys[name]
            if attribute in given:
                other = "%s and %s" % (given[attribute], name)
                raise refuse(place.key(name), key, "the same thing twice, in %s," % other, "one of the two")
            given[attribute] = name
            values[attribute] = kind.read(value, place.key(name))
        self._refuse_missing(node, place, values)
        return self.into(**values)

    def _refuse_missing(self, node: yaml.Node, place: Place, values: Mapping[str, Any]) -> None:
        for about in fields_of(self.into):
            if about.metadata["needed"] and about.name not in values:
                raise refuse(place, node, "an entry without %s" % key_of(about), "one with it")
        if self.one_of and not any(name in values for name in self.one_of):
            raise refuse(place, node, "an entry without %s" % " or ".join(self.one_of), "one with it")

    def schema(self) -> dict[str, Any]:
        return {"$ref": "#/$defs/%s" % self.into.__name__.lower()}

    def definition(self) -> dict[str, Any]:
        """What the schema refers to."""
        found: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}
        twice = []
        for about in fields_of(self.into):
            names = [name for name, (attribute, _kind) in keys_of(self.into).items() if attribute == about.name]
            for name in names:
                schema = keys_of(self.into)[name][1].schema()
                found["properties"][name] = dict(schema, description=about.metadata["words"])
            twice += [{"not": {"required": [a, b]}} for at, a in enumerate(names) for b in names[at + 1 :]]
        needed = [key_of(about) for about in fields_of(self.into) if about.metadata["needed"]]
        if needed:
            found["required"] = needed
        if self.one_of:
            found["anyOf"] = [{"required": [name]} for name in self.one_of]
        if twice:
            found["allOf"] = twice
        return found


def definitions(kind: Kind) -> dict[str, dict[str, Any]]:
    """What the schema of a kind refers to, and what that refers to."""
    if isinstance(kind, (ListOf, MapOf)):
        return definitions(kind.of)
    if not isinstance(kind, Entry):
        return {}
    found = {kind.into.__name__.lower(): kind.definition()}
    for _attribute, one in keys_of(kind.into).values():
        found.update(definitions(one))
    return found


# --- quantities: the unit stands in the key or with the value


class Quantity(NamedTuple):
    """How a quantity may be given: ``memory_gib: 80`` or ``memory: 80 GiB``."""

    units: Mapping[str, float]
    endings: Mapping[str, float]
    sample: str


MEMORY = Quantity(
    # Makers of memory write GB and mean 2^30 bytes (JEDEC JESD100B.01); a module of 64 GB has 65536 MiB.
    {"GiB": 1024, "MiB": 1, "TiB": 1024 * 1024, "GB": 1024},
    {"gib": 1024, "mib": 1},
    "80 GiB",
)
DISK = Quantity(
    # Makers of disks write TB and mean 10^12 bytes.
    {"TB": 1e12, "GB": 1e9, "TiB": 2.0**40, "GiB": 2.0**30},
    {"tb": 1e12, "gb": 1e9, "tib": 2.0**40, "gib": 2.0**30},
    "3.84 TB",
)
RATE = Quantity({"Gb/s": 1, "Gbit/s": 1, "Gbps": 1, "Mb/s": 1e-3, "Tb/s": 1e3}, {"gbps": 1}, "400 Gb/s")
TRANSFERS = Quantity({"MT/s": 1, "GT/s": 1e3}, {"mts": 1}, "4800 MT/s")
POWER = Quantity({"W": 1, "kW": 1e3}, {"w": 1, "kw": 1e3}, "3000 W")


def quantity_kinds(name: str, about: Quantity) -> dict[str, Kind]:
    """The keys by which a quantity may be given, each with what it takes."""
    units = ", ".join(about.units)
    named = ", ".join("%s_%s" % (name, ending) for ending in about.endings)
    kinds: dict[str, Kind] = {
        name: Measure(
            "a number with a unit, such as %s (%s), or the key %s" % (about.sample, units, named), about.units
        )
    }
    for ending, factor in about.endings.items():
        kinds["%s_%s" % (name, ending)] = Number("a number above 0, its unit is in the key", factor)
    return kinds


# --- fields of dataclasses


def may(kind: Kind | Quantity, words: str, key: str = "") -> dict[str, Any]:
    """About a field that may be left out: then it was not ordered in particular, and is not compared."""
    return {"kind": kind, "words": words, "key": key, "needed": False}


def need(kind: Kind, words: str, key: str = "") -> dict[str, Any]:
    """About a field that has to be there. Its default is never seen: an entry without it is refused."""
    return {"kind": kind, "words": words, "key": key, "needed": True}


def fields_of(into: Any) -> list[dataclasses.Field[Any]]:
    return [about for about in dataclasses.fields(into) if "kind" in about.metadata]


def key_of(about: dataclasses.Field[Any]) -> str:
    """The key of a field in an order: its name unless it says otherwise."""
    return about.metadata["key"] or about.name


def keys_of(into: type) -> dict[str, tuple[str, Kind]]:
    """The keys of an entry in an order: for each the attribute that it fills, and what it takes."""
    found: dict[str, tuple[str, Kind]] = {}
    for about in fields_of(into):
        kind, key = about.metadata["kind"], key_of(about)
        kinds = quantity_kinds(key, kind) if isinstance(kind, Quantity) else {key: kind}
        found.update({name: (about.name, one) for name, one in kinds.items()})
    return found
