# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter that lays an operator's sysctls over those of a profile."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.gpufleet.host.plugins.module_utils._tables.sysctls import TWIN, key_path

DOCUMENTATION = r"""
name: over_sysctls
short_description: An operator's sysctls over those of a profile
version_added: "0.1.0"
description:
  - Adds the sysctls of a profile that the operator does not name. An operator's value wins, in whichever way its name is
    written, and so does the twin of one, such as C(vm.dirty_ratio) over C(vm.dirty_bytes).
  - A key that is null is left out, so that the host keeps its own value. Null instead of a mapping stays null.
positional: _input, profile
options:
  _input:
    description: The operator's sysctls.
    type: dict
    required: true
  profile:
    description: Those of the profile.
    type: dict
    required: true
author:
  - gpufleet.host contributors (@gpufleet)
"""

EXAMPLES = r"""
- name: Show what is wanted of sysctls
  ansible.builtin.debug:
    msg: "{{ {'net.core.somaxconn': 8192, 'vm.swappiness': none} | gpufleet.host.over_sysctls({'vm.swappiness': 10}) }}"
"""

RETURN = r"""
_value:
  description: Sysctls by name.
  type: dict
"""


def over_sysctls(own: Any, profile: Mapping[str, Any]) -> Any:
    """The operator's sysctls, and those of the profile that they leave open."""
    if not isinstance(own, Mapping):
        # Null, or a slip that the module tells.
        return own
    kept = {name: value for name, value in own.items() if value is not None}
    settled = {key_path(str(name)) for name in own} | {TWIN.get(key_path(str(name)), "") for name in kept}
    return {**{name: value for name, value in profile.items() if key_path(name) not in settled}, **kept}


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"over_sysctls": over_sysctls}
