# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Members of Redfish resources, whatever a service makes of them.

A member that is absent or null is unknown; so is a figure that no running machine can have.
"""

from __future__ import annotations

import math
import re
from typing import Any, Dict, Iterator, List, Mapping, Optional, TypeVar, Union

from .._engine.values import Text, Unknown
from .cpu import Number
from .tool_text import clean, find_json, without_labels

Word = Union[str, Unknown]
_T = TypeVar("_T")
Figure = Union[float, Unknown]

# A resource nests a few levels; a text that nests deeper is no resource.
_DEEPEST = 40
_LONGEST_WORD = 400
_SIGN = re.compile(r"\{")
# What iLO 4 calls them.
_OLD_NAMES = {"Bios": "HpBios", "Power": "PowerMetrics", "Memory": "HpMemory"}
# What firmware writes where nobody entered anything.
_EMPTY_WORDS = ("", "to be filled by o.e.m.", "not specified", "unknown", "n/a", "none", "default string", "null")


def resource(text: Text, schema: str) -> Union[Dict[str, Any], Unknown]:
    """The JSON object of a text, if it is of that schema (an empty one takes any) and no error message."""
    if not isinstance(text, str):
        return text if isinstance(text, Unknown) else Unknown("not fetched")
    # A prompt with curl, or the head of the answer, may stand before it; the fence of Markdown even on its line.
    data = find_json(re.sub(r"(?m)^```\w{0,8}[ \t]?(?=\{)", "", clean(without_labels(text, _SIGN))))
    if data is None or isinstance(data, Unknown):
        return Unknown("no JSON") if data is None else data
    if not isinstance(data, dict) or _depth(data) > _DEEPEST:
        return Unknown("not a Redfish resource")
    if isinstance(data.get("error"), dict) and "@odata.type" not in data:
        return Unknown("error: the service says %s" % str(part(data, "error").get("message"))[:120])
    kind = schema_of(data).lstrip("#").split(".")[0]
    if schema and kind and kind not in (schema, _OLD_NAMES.get(schema)):
        return Unknown("a %s, not a %s" % (kind[:40], schema))
    return data


def expanded(text: Text, schema: str) -> Union[List[Mapping[str, Any]], Unknown]:
    """The members of a collection that hold more than a link, or the resource itself."""
    data = resource(text, "")
    if isinstance(data, Unknown):
        return data
    if isinstance(data.get("Members"), list):
        members = [member for member in dicts(data["Members"]) if len(member) > 1]
        is_linked = bool(data["Members"]) and not members
        return Unknown("the members are links only") if is_linked else members
    names = schema_of(data).lstrip("#").split(".")
    kind = names[0]
    # In the old model a supply alone is "#Power.v1_0_2.PowerSupply".
    return [data] if kind in ("", schema) or names[-1] == schema else Unknown("a %s, not a %s" % (kind[:40], schema))


def part(data: Any, name: str) -> Mapping[str, Any]:
    """A member that is an object; an empty one when it is absent, null or something else."""
    value = data.get(name) if isinstance(data, dict) else None
    return value if isinstance(value, dict) else {}


def parts(data: Any, name: str) -> Optional[List[Mapping[str, Any]]]:
    """The objects of a list; None when there is no such list."""
    value = data.get(name) if isinstance(data, dict) else None
    return list(dicts(value)) if isinstance(value, list) else None


def word(data: Mapping[str, Any], name: str) -> Word:
    value = data.get(name)
    if isinstance(value, str) and value.strip().lower() not in _EMPTY_WORDS:
        return value.strip()[:_LONGEST_WORD]
    return _missing(data, name)


def first(*values: Union[_T, Unknown]) -> Union[_T, Unknown]:
    """The first that is known, or else what the first one says: older services have other names for the same."""
    return next((value for value in values if not isinstance(value, Unknown)), values[0])


def figure(data: Mapping[str, Any], name: str) -> Figure:
    """A number, also one in quotes."""
    value = data.get(name)
    if isinstance(value, dict):
        value = value.get("Reading")  # an excerpt of a sensor
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return _missing(data, name)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return _missing(data, name)
    try:
        number = float(value)
    except OverflowError:
        return Unknown("%s is too large" % name)
    return number if math.isfinite(number) else Unknown("%s is not finite" % name)


def positive(data: Mapping[str, Any], name: str) -> Figure:
    """A figure of which 0 means that the service does not know."""
    value = figure(data, name)
    return Unknown("%s is 0" % name) if not isinstance(value, Unknown) and value <= 0 else value


def count(data: Mapping[str, Any], name: str) -> Number:
    value = positive(data, name)
    return value if isinstance(value, Unknown) else int(value)


def flag(data: Mapping[str, Any], name: str) -> Union[bool, Unknown]:
    value = data.get(name)
    return value if isinstance(value, bool) else _missing(data, name)


def presence(data: Mapping[str, Any]) -> Union[bool, Unknown]:
    """From Status.State; a resource with any other state than Absent is there."""
    state = word(part(data, "Status"), "State")
    return state if isinstance(state, Unknown) else state.lower() != "absent"


def path_of(data: Mapping[str, Any]) -> Word:
    return word(data, "@odata.id")


def name_of(data: Mapping[str, Any]) -> str:
    for name in ("Id", "MemberId", "Name"):
        if isinstance(data.get(name), (str, int)):
            return str(data[name])[:_LONGEST_WORD]
    return ""


def schema_of(data: Mapping[str, Any]) -> str:
    kind = data.get("@odata.type")
    return kind if isinstance(kind, str) else ""


def health(data: Mapping[str, Any]) -> Word:
    """HealthRollup counts what lies below."""
    status = part(data, "Status")
    rolled_up = word(status, "HealthRollup")
    return word(status, "Health") if isinstance(rolled_up, Unknown) else rolled_up


def _missing(data: Mapping[str, Any], name: str) -> Unknown:
    if name not in data:
        return Unknown("no member %s" % name)
    return Unknown("%s is null" % name if data[name] is None else "%s is %s" % (name, repr(data[name])[:40]))


def dicts(value: Any) -> Iterator[Mapping[str, Any]]:
    return (item for item in value if isinstance(item, dict)) if isinstance(value, list) else iter(())


def _depth(value: Any) -> int:
    """How deep a value nests, counted without recursion."""
    depth, level = 0, [value]
    while level and depth <= _DEEPEST:
        depth += 1
        level = [
            child
            for item in level
            for child in (item.values() if isinstance(item, dict) else item if isinstance(item, list) else ())
        ]
    return depth
