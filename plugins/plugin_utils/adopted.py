# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host has now, as an inventory: words of the host, which the controller keeps and must never run.

Ansible renders what it finds in host_vars, so a text with Jinja in it becomes a text that is never rendered, and a value
that the role would refuse is not taken over.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import yaml

from ansible_collections.gpufleet.host.plugins.module_utils._areas.all import AREAS
from ansible_collections.gpufleet.host.plugins.module_utils._engine.engine import Area
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import BadWant
from ansible_collections.gpufleet.host.plugins.module_utils._engine.whole import valid_want

# How Jinja starts an expression, a statement and a comment.
JINJA = re.compile(r"\{[{%#]")
LONGEST_REASON = 200


def adopted(report: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """The variables of the roles that describe a host, and those that a role would refuse, with the reason.

    :raises ValueError: for what is no report.
    """
    areas = report.get("areas") if isinstance(report, Mapping) else None
    if not isinstance(areas, Mapping):
        raise ValueError("it takes the report of gpufleet.host.node_audit, not %r" % (report,))
    found: dict[str, Any] = {}
    refused: dict[str, str] = {}
    for name, seen in areas.items():
        before = seen.get("before") if isinstance(seen, Mapping) else None
        if name not in AREAS or not isinstance(before, Mapping):
            raise ValueError("%r is no area of this collection with what it has" % (name,))
        area = AREAS[name]
        # Plain values of Python: what comes from a module carries marks of Ansible's own, on each core other ones.
        before = json.loads(json.dumps(before))
        have = {option: value for option, given in before.items() if (value := _without_unknown(given)) is not None}
        for option, reason in _refusals(area, have):
            refused["%s_%s" % (area.role, option)] = reason
            have.pop(option)
        found.update({"%s_%s" % (area.role, option): value for option, value in have.items()})
    return found, refused


def inventory(report: Mapping[str, Any]) -> str:
    """The same as a file for host_vars; what was refused stands in comments."""
    found, refused = adopted(report)
    text = yaml.dump(found, Dumper=_Dumper, default_flow_style=False, allow_unicode=True, indent=2, width=1000)
    # %r, so that no line of the host's ends the comment.
    notes = ["# Left out, since its role refuses it: %r: %r\n" % (name, reason) for name, reason in refused.items()]
    return (text if found else "{}\n") + "".join(notes)


def _refusals(area: Area, given: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The options that do not fit the area's spec, with what is allowed."""
    have = dict(given)
    found = [(name, "no option of this role") for name in have if name not in area.spec]
    found += [(name, "Jinja in a key") for name in have if name in area.spec and _has_jinja_key(have[name])]
    for name, _reason in found:
        have.pop(name)
    while have:
        try:
            valid_want(area, have)
            return found
        except BadWant as error:
            named = re.match(r"\w*", error.variable)
            option = named.group() if named else ""
            # An area whose fault has no place of its own is left out as a whole.
            faulty = [option] if option in have else list(have)
            found += [(name, str(error.allowed)[:LONGEST_REASON]) for name in faulty]
            for name in faulty:
                have.pop(name)
    return found


def _has_jinja_key(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(JINJA.search(str(key)) or _has_jinja_key(item) for key, item in value.items())
    return isinstance(value, list) and any(map(_has_jinja_key, value))


def _without_unknown(value: Any) -> Any:
    if isinstance(value, Mapping):
        if set(value) == {"unknown"}:
            return None
        cleaned = {key: _without_unknown(item) for key, item in value.items()}
        return {key: item for key, item in cleaned.items() if item is not None}
    if isinstance(value, list):
        return [item for item in map(_without_unknown, value) if item is not None]
    return value


class _Dumper(yaml.SafeDumper):
    """Lists stand indented below their key, as ansible-lint wants them, and Jinja is never rendered."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    tag = "!unsafe" if JINJA.search(text) else "tag:yaml.org,2002:str"
    return dumper.represent_scalar(tag, text, style='"' if tag == "!unsafe" else None)


_Dumper.add_representer(str, _text)
