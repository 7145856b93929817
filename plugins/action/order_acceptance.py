# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from ansible_collections.gpufleet.host.plugins.plugin_utils import order_door
from ansible_collections.gpufleet.host.plugins.plugin_utils.controller_door import refuse_slips


class ActionModule(ActionBase):  # type: ignore[misc] # Ansible publishes no types
    """All of it is on the controller: no host is connected to."""

    _requires_connection = False
    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        try:
            refuse_slips(task_vars or {})
            result.update(order_door.run(self._task.args, self._loader.get_basedir()))
        except ValueError as error:
            result.update(failed=True, msg=str(error))
        return result
