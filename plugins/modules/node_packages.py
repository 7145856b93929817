#!/usr/bin/python
# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_packages
short_description: Install the tools that a role needs
version_added: "0.1.0"
description:
  - Installs packages that are missing, with apt or dnf. Nothing is upgraded, and nothing runs where all are there.
  - Package lists are fetched where the host has none, and once more where an installation failed with those that it has.
  - A mirror that does not answer is named in the message.
options:
  names:
    description:
      - Names of the packages.
    type: list
    elements: str
    required: true
requirements:
  - Python 3.8 or newer on the host
author:
  - gpufleet.host contributors (@gpufleet)
attributes:
  check_mode:
    description: Can run in C(check_mode) and return changed status prediction without modifying the target.
    support: full
  diff_mode:
    description: Will return details on what has changed (or possibly needs changing in C(check_mode)), when in diff mode.
    support: none
  idempotent:
    description: When run twice in a row outside check mode, with the same arguments, the second invocation indicates no change.
    support: full
"""

EXAMPLES = r"""
- name: Install the tools of XFS
  gpufleet.host.node_packages:
    names:
      - xfsprogs
"""

RETURN = r"""
missing:
  description: Packages that were missing; they are installed now, unless in check mode.
  returned: success
  type: list
  elements: str
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpufleet.host.plugins.module_utils._engine.door import refuse_without_root
from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import LiveHost
from ansible_collections.gpufleet.host.plugins.module_utils._engine.packages import PackageError, install, manager_of
from ansible_collections.gpufleet.host.plugins.module_utils._observe.packages import missing


def main() -> None:
    module = AnsibleModule(
        argument_spec={"names": {"type": "list", "elements": "str", "required": True}}, supports_check_mode=True
    )
    host = LiveHost()
    refuse_without_root(module, host, "check" if module.check_mode else "apply")
    try:
        manager_of(host)
        lacking = missing(host, module.params["names"])
        if lacking and not module.check_mode:
            install(host, lacking, missing)
    except PackageError as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=bool(lacking), missing=lacking)


if __name__ == "__main__":
    main()
