#!/usr/bin/python
# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_audit
short_description: Observe a whole GPU host and report where it differs from what is wanted
version_added: "0.1.0"
description:
  - Observes each subject of the host once, plans every area against its want, and returns one report. Changes nothing.
  - What Python compiled of the module is kept below C(/var/cache/gpufleet), as it does for installed programs, so that
    the next audit takes half of the CPU time. Set C(PYTHONDONTWRITEBYTECODE) on the host to keep nothing.
  - With O(capture) it does the same for a capture, without any host.
extends_documentation_fragment:
  - gpufleet.host.audit
seealso:
  - module: gpufleet.host.node_audit_tuning
  - module: gpufleet.host.block_queue
"""

EXAMPLES = r"""
- name: See whether the I/O schedulers are as wanted
  gpufleet.host.node_audit:
    wants:
      block_queue:
        rules:
          - class: nvme
            scheduler: none
    fail_on: [drifted, unknown, blocked]

- name: Audit a capture without any host
  gpufleet.host.node_audit:
    capture: gpu07.tar.gz
    wants:
      block_queue:
        rules:
          - class: nvme
            scheduler: none
  delegate_to: localhost
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

from ansible_collections.gpufleet.host.plugins.module_utils._areas.all import AREAS
from ansible_collections.gpufleet.host.plugins.module_utils._engine.audit_door import main as open_door
from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import Host
from ansible_collections.gpufleet.host.plugins.module_utils._observe import inventory, topology


def host_facts(host: Host, gpu_match: Sequence[Mapping[str, Any]], wants: Mapping[str, Any]) -> Mapping[str, Any]:
    """The topology; the parts too where they were looked at anyway, since asking nvidia-smi takes seconds."""
    facts = topology.host_facts(host, gpu_match)
    return (
        dict(facts, hardware=inventory.observe(host, wants["platform"]["gpu_match"])) if "platform" in wants else facts
    )


def main() -> None:
    open_door(AREAS, host_facts)


if __name__ == "__main__":
    main()
