#!/usr/bin/python
# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_capture
short_description: Record everything that an audit reads from a host
version_added: "0.1.0"
description:
  - Audits the host once and writes down all that was read, as a C(.tar.gz) that M(gpufleet.host.node_audit) can replay.
options:
  wants:
    description:
      - What is wanted of each area, by the name of its module. It decides what is looked at.
      - When left out, what the variables of the roles say that the play shows, such as by an imported role.
    type: dict
  dest:
    description:
      - The file to write on the host. One that is there is replaced, and a link in its place is not followed.
      - When left out, a file in a new folder that only the account of the module may enter. Who called removes that folder.
    type: path
  scrub:
    description:
      - Whether serial numbers, asset tags, UUIDs, WWNs, MACs, GUIDs, addresses and names of hosts are replaced by made-up
        ones. Equal ones stay equal within the capture, and what a judge needs of them stays. See docs/operations.md.
    type: bool
    default: true
  name:
    description:
      - What the host is called in the inventory. The capture keeps it, so that reports call the host by it.
      - Without it, a scrubbed capture goes by the name of its file.
    type: str
    default: ''
  gpu_match:
    description:
      - PCI devices that are drawn as GPUs, as for M(gpufleet.host.node_audit).
    type: list
    elements: dict
    default: []
requirements:
  - Python 3.8 or newer on the host
author:
  - gpufleet.host contributors (@gpufleet)
attributes:
  check_mode:
    description: Can run in C(check_mode) and return changed status prediction without modifying the target.
    support: full
    details: In check mode the capture is not written.
  diff_mode:
    description: Will return details on what has changed (or possibly needs changing in C(check_mode)), when in diff mode.
    support: none
  idempotent:
    description: When run twice in a row outside check mode, with the same arguments, the second invocation indicates no change.
    support: none
    details: A capture holds the time it was taken, so each run writes a new one.
"""

EXAMPLES = r"""
- name: Record the host
  gpufleet.host.node_capture:
    dest: /root/gpu07.tar.gz
    wants:
      block_queue:
        rules:
          - class: nvme
            scheduler: none
"""

RETURN = r"""
dest:
  description: The file that was written; empty in check mode when none was named.
  returned: always
  type: str
"""

import os
import shutil
import socket
import tempfile
import time
from typing import Any, Mapping

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpufleet.host.plugins.module_utils._areas.all import AREAS
from ansible_collections.gpufleet.host.plugins.module_utils._engine import capture, whole
from ansible_collections.gpufleet.host.plugins.module_utils._engine.door import bad_want_message, refuse_without_root
from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import LiveHost, MemoHost, RecordingHost
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import BadWant
from ansible_collections.gpufleet.host.plugins.module_utils._observe import everything, inventory, topology

NAME = "capture.tar.gz"


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "wants": {"type": "dict"},
            "dest": {"type": "path"},
            "scrub": {"type": "bool", "default": True},
            "name": {"type": "str", "default": ""},
            "gpu_match": {"type": "list", "elements": "dict", "default": []},
        },
        supports_check_mode=True,
    )
    dest = module.params["dest"]
    if dest and not os.path.isdir(os.path.dirname(dest) or "."):
        module.fail_json(msg="dest: %r is not possible; allowed: a file in a folder that exists" % dest)
    if module.params["wants"] is None:
        module.fail_json(msg="wants: not given; the action of this module takes them from the roles' variables")
    wants = {}
    for name, given in module.params["wants"].items():
        if name not in AREAS:
            module.fail_json(msg="wants: %r is not possible; allowed: %s" % (name, ", ".join(AREAS)))
        try:
            wants[name] = whole.valid_want(AREAS[name], given)
        except BadWant as error:
            module.fail_json(msg=bad_want_message(AREAS[name], error))
    refuse_without_root(module, LiveHost(), "audit")
    if not module.check_mode:
        dest = recorded(wants, module.params)
    module.exit_json(changed=True, dest=dest or "")


def recorded(wants: Mapping[str, Any], options: Mapping[str, Any]) -> str:
    """Where the capture was written: as named, or in a folder that nobody else may enter."""
    if options["dest"]:
        record(wants, options, options["dest"])
        return str(options["dest"])
    folder = tempfile.mkdtemp(prefix="gpufleet-capture-")
    try:
        record(wants, options, os.path.join(folder, NAME))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return os.path.join(folder, NAME)


def record(wants: Mapping[str, Any], options: Mapping[str, Any], dest: str) -> None:
    with capture.recording_folder() as folder:
        taken = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        host = MemoHost(RecordingHost(folder, socket.gethostname(), taken, LiveHost(), list(wants), options["name"]))
        # All that node_audit does with a host.
        whole.audit([area for name, area in AREAS.items() if name in wants], wants, host, {}, None)
        topology.host_facts(host, options["gpu_match"])
        if "platform" in wants:
            inventory.observe(host, wants["platform"]["gpu_match"])
        everything.observe(host)
        if options["scrub"]:
            capture.scrub_folder(folder, salt=os.urandom(16).hex())
        capture.pack(folder, dest)


if __name__ == "__main__":
    main()
