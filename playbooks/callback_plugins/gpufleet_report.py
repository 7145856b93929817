# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The collection's report for its own playbooks, wherever they are installed and whatever ansible.cfg says.

Ansible loads callbacks from a folder beside the playbook that it runs, so nobody has to enable this one.  Playbooks of
others that use the roles enable C(gpufleet.host.report) in their ansible.cfg.
"""

from __future__ import annotations

from typing import Any

from ansible import constants as C

from ansible_collections.gpufleet.host.plugins.callback import report

# Its options are read from here.
DOCUMENTATION = report.DOCUMENTATION


class CallbackModule(report.CallbackModule):
    CALLBACK_NAME = "gpufleet_report"
    CALLBACK_NEEDS_ENABLED = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # One report a run, also where somebody enabled the plugin by its name.
        self.disabled = report.CallbackModule.CALLBACK_NAME in C.CALLBACKS_ENABLED
