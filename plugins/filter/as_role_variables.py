# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters that turn a report into an inventory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError

from ansible_collections.gpufleet.host.plugins.module_utils._areas.all import AREAS

DOCUMENTATION = r"""
name: as_role_variables
short_description: The variables of the roles that describe what a host has now
version_added: "0.1.0"
description:
  - Takes the report of M(gpufleet.host.node_audit) and gives what was observed as variables of the roles.
  - What is unknown is left out, so that nobody takes it for a wish.
positional: _input
options:
  _input:
    description: The report.
    type: dict
    required: true
author:
  - gpufleet.host contributors (@gpufleet)
"""

EXAMPLES = r"""
- name: Show the variables of a host that was tuned by hand
  ansible.builtin.debug:
    msg: "{{ audit.report | gpufleet.host.as_role_variables }}"
"""

RETURN = r"""
_value:
  description: Variables by name.
  type: dict
"""


def as_role_variables(report: Any) -> dict[str, Any]:
    """The observed state of each area, as variables of its role."""
    if not isinstance(report, Mapping) or not isinstance(report.get("areas"), Mapping):
        raise AnsibleFilterError("as_role_variables takes the report of gpufleet.host.node_audit, not %r" % (report,))
    found: dict[str, Any] = {}
    for name, area in report["areas"].items():
        for option, value in area["before"].items():
            clean = _without_unknown(value)
            if clean is not None:
                found["%s_%s" % (AREAS[name].role, option)] = clean
    return found


def _without_unknown(value: Any) -> Any:
    if isinstance(value, Mapping):
        if set(value) == {"unknown"}:
            return None
        cleaned = {key: _without_unknown(item) for key, item in value.items()}
        return {key: item for key, item in cleaned.items() if item is not None}
    if isinstance(value, list):
        return [item for item in map(_without_unknown, value) if item is not None]
    return value


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"as_role_variables": as_role_variables}
