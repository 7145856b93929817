# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A filter that turns a report into variables of the roles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError

from ansible_collections.gpufleet.host.plugins.plugin_utils.adopted import adopted

DOCUMENTATION = r"""
name: as_role_variables
short_description: The variables of the roles that describe what a host has now
version_added: "0.1.0"
description:
  - Takes the report of M(gpufleet.host.node_audit) and gives what was observed as variables of the roles.
  - What is unknown is left out, so that nobody takes it for a wish, and so is what the role would refuse.
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
    try:
        return adopted(report)[0]
    except ValueError as error:
        raise AnsibleFilterError("as_role_variables: %s" % error) from error


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"as_role_variables": as_role_variables}
