# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A filter that turns a report into a file of an inventory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError

from ansible_collections.gpufleet.host.plugins.plugin_utils.adopted import inventory

DOCUMENTATION = r"""
name: as_inventory
short_description: What a host has now, as a file for host_vars
version_added: "0.1.0"
description:
  - Takes the report of M(gpufleet.host.node_audit) and gives what was observed as variables of the roles, in YAML.
  - A text with Jinja in it is marked as C(!unsafe), so that Ansible never renders what a host said.
  - What a role would refuse stands in a comment with the reason.
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
- name: Write the variables of a host that was tuned by hand
  ansible.builtin.copy:
    dest: "inventory/host_vars/{{ inventory_hostname }}.yml"
    content: "{{ audit.report | gpufleet.host.as_inventory }}"
    mode: "0600"
  delegate_to: localhost
"""

RETURN = r"""
_value:
  description: Variables by name, as YAML.
  type: str
"""


def as_inventory(report: Any) -> str:
    """The observed state of each area, as YAML for host_vars."""
    try:
        return inventory(report)
    except ValueError as error:
        raise AnsibleFilterError("as_inventory: %s" % error) from error


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"as_inventory": as_inventory}
