# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A module as Ansible starts it, without Ansible: options in, and a result that can be caught."""

from __future__ import annotations

import copy
from typing import Any

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator


class Ended(Exception):
    """What the module gave back; ``failed`` as Ansible sees it."""

    def __init__(self, failed: bool, result: dict[str, Any], warnings: list[str]) -> None:
        super().__init__(result)
        self.failed = failed
        self.result = result
        self.warnings = warnings


class Module:
    """As AnsibleModule, with the options already there and an end that can be caught."""

    params: dict[str, Any]
    check_mode = False

    def __init__(self, argument_spec: dict[str, Any], supports_check_mode: bool) -> None:
        assert supports_check_mode
        # A copy, since the validator fills in defaults in the spec itself.
        checked = ArgumentSpecValidator(copy.deepcopy(argument_spec)).validate(Module.params)
        assert not checked.error_messages, checked.error_messages
        self.params = checked.validated_parameters
        self.check_mode = Module.check_mode
        self.warnings: list[str] = []

    def warn(self, text: str) -> None:
        self.warnings.append(text)

    def fail_json(self, **result: Any) -> None:
        raise Ended(True, result, self.warnings)

    def exit_json(self, **result: Any) -> None:
        raise Ended(False, result, self.warnings)
