#!/usr/bin/python
# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_audit_tuning
short_description: Observe a GPU host as node_audit does, without its hardware, firmware and driver
version_added: "0.1.0"
description:
  - The module M(gpufleet.host.node_audit) for every area but C(platform), at half of its size. A host pays for what is sent.
  - There is no need to call it. M(gpufleet.host.node_audit) sends it by itself where tags leave C(platform) out.
extends_documentation_fragment:
  - gpufleet.host.audit
seealso:
  - module: gpufleet.host.node_audit
"""

EXAMPLES = r"""
- name: See whether the I/O schedulers are as wanted
  gpufleet.host.node_audit_tuning:
    wants:
      block_queue:
        rules:
          - class: nvme
            scheduler: none
"""

RETURN = r"""
state:
  description: The worst state of all areas.
  returned: always
  type: str
  sample: drifted
to_apply:
  description: The areas with steps that may run now, by the name of their module.
  returned: always
  type: list
  elements: str
  sample: [block_queue]
summary:
  description: What is not as wanted, a line each.
  returned: always
  type: str
report:
  description: The report of the host, as docs/report.schema.json describes it.
  returned: always
  type: dict
"""

from typing import Any, Mapping, Sequence

from ansible_collections.gpufleet.host.plugins.module_utils._engine.once import compile_once

# Before the imports that it is for.
compile_once()

from ansible_collections.gpufleet.host.plugins.module_utils._areas.tuning import AREAS
from ansible_collections.gpufleet.host.plugins.module_utils._engine.audit_door import main as open_door
from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import Host
from ansible_collections.gpufleet.host.plugins.module_utils._observe import topology


def host_facts(host: Host, gpu_match: Sequence[Mapping[str, Any]], _wants: Mapping[str, Any]) -> Mapping[str, Any]:
    return topology.host_facts(host, gpu_match)


def main() -> None:
    open_door(AREAS, host_facts)


if __name__ == "__main__":
    main()
