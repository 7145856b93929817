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
  - What Python compiled of the module is kept in C(/var/cache/gpufleet), which may be removed at any time.
  - What Python compiled of the module is kept below C(/var/cache/gpufleet), as it does for installed programs, so that
    the next audit takes half of the CPU time. Set C(PYTHONDONTWRITEBYTECODE) on the host to keep nothing.
  - With O(capture) it does the same for a capture, without any host.
options:
  wants:
    description:
      - What is wanted of each area, by the name of its module, with that module's options.
    type: dict
    required: true
  allow_risk:
    description:
      - The risk that each area may take, by the name of its module, so that the report tells what a run would do.
    type: dict
    default: {}
  areas:
    description:
      - Look at these areas only. All of O(wants) by default.
    type: list
    elements: str
  capture:
    description:
      - Folder or C(.tar.gz) of a capture, on the machine where the module runs. It is audited instead of the machine.
    type: path
  fail_on:
    description:
      - States of the host that make the task fail, after the report was made.
    type: list
    elements: str
    choices: [changed, pending_reboot, drifted, unknown, blocked, rolled_back, failed]
    default: []
  facts:
    description:
      - Whether the report holds the topology of the host (CPU, NUMA nodes, PCI devices, disks) for its drawing.
    type: bool
    default: true
  gpu_match:
    description:
      - PCI devices that are drawn as GPUs, by C(vendor), C(device) and C(class) in hexadecimal. NVIDIA's by default.
    type: list
    elements: dict
    default: []
  run:
    description:
      - A name for the run, the time by default.
    type: str
    default: ''
requirements:
  - Python 3.8 or newer on the host
author:
  - gpufleet.host contributors (@gpufleet)
attributes:
  check_mode:
    description: Can run in C(check_mode) and return changed status prediction without modifying the target.
    support: full
    details: The module never changes anything.
  diff_mode:
    description: Will return details on what has changed (or possibly needs changing in C(check_mode)), when in diff mode.
    support: full
    details: The difference is what a run of the roles would change.
  idempotent:
    description: When run twice in a row outside check mode, with the same arguments, the second invocation indicates no change.
    support: full
    details: The module never changes anything.
seealso:
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

import shutil
import tempfile
from typing import Any, Mapping, Sequence

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpufleet.host.plugins.module_utils._engine.once import compile_once

# Before the imports that it is for.
compile_once()

from ansible_collections.gpufleet.host.plugins.module_utils._areas.all import AREAS
from ansible_collections.gpufleet.host.plugins.module_utils._engine import whole
from ansible_collections.gpufleet.host.plugins.module_utils._engine.door import (
    bad_want_message,
    diff_of,
    host_report,
    new_run_id,
)
from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import (
    CaptureError,
    CaptureHost,
    Host,
    LiveHost,
    MemoHost,
    open_capture,
)
from ansible_collections.gpufleet.host.plugins.module_utils._engine.journal import Journal
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import BadWant, jsonable, readable
from ansible_collections.gpufleet.host.plugins.module_utils._observe import topology


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "wants": {"type": "dict", "required": True},
            "allow_risk": {"type": "dict", "default": {}},
            "areas": {"type": "list", "elements": "str"},
            "capture": {"type": "path"},
            "fail_on": {
                "type": "list",
                "elements": "str",
                "choices": ["changed", "pending_reboot", "drifted", "unknown", "blocked", "rolled_back", "failed"],
                "default": [],
            },
            "facts": {"type": "bool", "default": True},
            "gpu_match": {"type": "list", "elements": "dict", "default": []},
            "run": {"type": "str", "default": ""},
        },
        supports_check_mode=True,
    )
    scratch = tempfile.mkdtemp(prefix="gpufleet-") if module.params["capture"] else ""
    try:
        host: Host = _opened(module, scratch) if scratch else LiveHost()
        audit(module, MemoHost(host), getattr(host, "about", {}))
    except CaptureError as error:
        module.fail_json(msg="capture: %s. Allowed: a folder or .tar.gz made by playbooks/capture.yml." % error)
    finally:
        if scratch:
            shutil.rmtree(scratch, ignore_errors=True)


def _opened(module: AnsibleModule, scratch: str) -> CaptureHost:
    capture = open_capture(module.params["capture"], scratch)
    areas = module.params["areas"]
    capture.answers_for(module.params["wants"] if areas is None else areas)
    return capture


def audit(module: AnsibleModule, host: MemoHost, about: Mapping[str, Any]) -> None:
    wants = {}
    names = module.params["areas"] if module.params["areas"] is not None else list(module.params["wants"])
    for name in names:
        if name not in AREAS or name not in module.params["wants"]:
            module.fail_json(msg="areas: %r is not possible; allowed: %s" % (name, ", ".join(module.params["wants"])))
        try:
            wants[name] = whole.valid_want(AREAS[name], module.params["wants"][name])
        except BadWant as error:
            module.fail_json(msg=bad_want_message(AREAS[name], error))
    areas = [AREAS[name] for name in AREAS if name in wants]
    journal = None if module.params["capture"] else Journal()
    reports = whole.audit(areas, wants, host, module.params["allow_risk"], journal)
    report = host_report(reports, module.params["run"] or new_run_id(), "audit")
    report["host"] = about.get("hostname", report["host"])
    report["taken"] = about.get("taken", report["taken"])
    if module.params["facts"]:
        report["host_facts"] = readable(jsonable(host_facts(host, module.params["gpu_match"], wants)))
    result = {
        "changed": False,
        "state": report["state"],
        "to_apply": whole.to_apply(areas, reports),
        "summary": whole.summary(reports),
        "report": report,
        "diff": diff_of([step for area in report["areas"].values() for step in area["steps"]]),
    }
    if report["state"] in module.params["fail_on"]:
        module.fail_json(msg="the host is %s\n%s" % (report["state"], result["summary"]), **result)
    module.exit_json(**result)


def host_facts(host: MemoHost, gpu_match: Sequence[Mapping[str, Any]], wants: Mapping[str, Any]) -> Mapping[str, Any]:
    """The topology; the parts too where they were looked at anyway, since asking nvidia-smi takes seconds."""
    facts = topology.host_facts(host, gpu_match)
    if "platform" not in wants:
        return facts
    # As the area itself, only where it is wanted (docs/decisions/0006).
    from ansible_collections.gpufleet.host.plugins.module_utils._observe import inventory

    return dict(facts, hardware=inventory.observe(host, wants["platform"]["gpu_match"]))


if __name__ == "__main__":
    main()
