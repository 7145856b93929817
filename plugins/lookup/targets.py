# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: targets
author:
  - gpufleet.host contributors (@gpufleet)
short_description: The hosts that a playbook of this collection works on, or why it does not begin
version_added: "0.1.0"
description:
  - Gives back its host pattern, for C(hosts) of a play. What is asked for by mistake is refused there, before any host is
    touched and whatever C(--limit) says.
  - A tag of C(--tags) or C(--skip-tags) that is no area, no role and no word of Ansible's own is refused with the nearest,
    when the playbook on the command line is one of this collection. Other playbooks may have tags of their own.
  - A pattern that no host of the inventory matches is refused, also together with C(--limit).
  - A misspelt variable of C(--extra-vars) is refused with the nearest.
options:
  _terms:
    description:
      - The host pattern.
    type: str
    required: true
  instead:
    description:
      - What is used instead of tags, for a playbook that has none for areas.
    type: str
    default: ''
"""

EXAMPLES = r"""
- name: Work on the hosts of a group
  hosts: "{{ lookup('gpufleet.host.targets', 'gpu_hosts') }}"
  tasks: []
"""

RETURN = r"""
_raw:
  description: The host pattern that was given.
  type: list
  elements: str
"""

from collections.abc import Mapping
from typing import Any

from ansible import context
from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase

from ansible_collections.gpufleet.host.plugins.plugin_utils import before_hosts
from ansible_collections.gpufleet.host.plugins.plugin_utils.controller_door import refuse_slips


class LookupModule(LookupBase):  # type: ignore[misc] # Ansible publishes no types
    def run(self, terms: list[Any], variables: Mapping[str, Any] | None = None, **kwargs: Any) -> list[Any]:
        self.set_options(var_options=variables, direct=kwargs)
        known = variables or {}
        cli = context.CLIARGS
        try:
            if before_hosts.are_ours(cli.get("args") or ()):
                before_hosts.refuse_tags(
                    known.get("ansible_run_tags", ()), known.get("ansible_skip_tags", ()), self.get_option("instead")
                )
            refuse_slips(known)
            before_hosts.refuse_nobody(terms[0], cli.get("subset"), known.get("groups", {}), self._loader)
        except ValueError as error:
            raise AnsibleLookupError(str(error)) from None
        return terms
