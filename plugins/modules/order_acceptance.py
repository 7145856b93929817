#!/usr/bin/python
# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: order_acceptance
short_description: Compare what was delivered with a purchase order
version_added: "0.1.0"
description:
  - Reads a purchase order, and compares hosts with it line by line, from their reports. Nothing is changed on any host.
  - Runs on the controller alone and never connects to a host. playbooks/accept.yml uses it, see docs/acceptance.md.
  - With O(order) alone the order is read and checked. With O(seen) and without O(pages) the first host of it is compared.
    With O(pages) the lot as a whole is judged, and a page and a JSON file are written for it and for each host.
options:
  order:
    description:
      - The purchase order, a YAML file on the controller, as docs/order.schema.json describes it.
    type: str
    required: true
  seen:
    description:
      - Hosts that were looked at. An entry without O(seen[].name) stands for a host that was not, and is passed over.
    type: list
    elements: dict
    suboptions:
      name:
        description: The name of the host, in the inventory or that of its capture.
        type: str
      report:
        description: The report of M(gpufleet.host.node_audit), with the area C(platform) and the facts of the host.
        type: dict
      why:
        description: Why there is no report.
        type: str
      source:
        description: The capture that was looked at, if it was one.
        type: str
  pages:
    description:
      - Whether the lot is judged and pages are written.
    type: bool
    default: false
  dest:
    description:
      - Folder for the pages. By default C(accept) in the folder of the run, beside the report.
    type: str
    default: ''
  capture:
    description:
      - What the report is of when it is not the host of the task, a capture or the lot. The report then goes by its own
        name, and not by that of the task's host.
    type: str
  find_captures:
    description:
      - A capture, a folder of captures, or a list of them. They are only listed, see RV(captures).
    type: raw
  unknown_is:
    description:
      - Whether a line counts as accepted when it could not be seen.
    type: str
    choices: [refuse, accept]
    default: refuse
  extra_is:
    description:
      - Whether a line counts as accepted when there is more than ordered.
    type: str
    choices: [refuse, accept]
    default: refuse
  unseen_is:
    description:
      - Whether the lot counts as accepted when hosts of the order were not looked at, or did not answer.
    type: str
    choices: [refuse, accept]
    default: refuse
  class_name:
    description:
      - The class of hosts whose name is not in the order.
    type: str
    default: ''
  findings:
    description:
      - Beginnings of the names of findings that count as lines when they are failures. By default faults of the hardware.
    type: list
    elements: str
requirements:
  - PyYAML and Jinja2 on the controller, which Ansible brings along
author:
  - gpufleet.host contributors (@gpufleet)
attributes:
  check_mode:
    description: Can run in C(check_mode) and return changed status prediction without modifying the target.
    support: full
    details: The module never changes a host. The pages on the controller are written in check mode, too.
  diff_mode:
    description: Will return details on what has changed (or possibly needs changing in C(check_mode)), when in diff mode.
    support: none
    details: There is nothing that it changes.
  idempotent:
    description: When run twice in a row outside check mode, with the same arguments, the second invocation indicates no change.
    support: full
    details: The module never changes anything.
seealso:
  - module: gpufleet.host.node_audit
"""

EXAMPLES = r"""
- name: Check a purchase order
  gpufleet.host.order_acceptance:
    order: orders/h100.yml

- name: Compare a host with it
  gpufleet.host.order_acceptance:
    order: orders/h100.yml
    seen:
      - name: "{{ inventory_hostname }}"
        report: "{{ audit.report }}"
  register: acceptance
"""

RETURN = r"""
state:
  description: V(read) when only the order was read, else V(accepted) or V(refused).
  returned: success
  type: str
  sample: refused
summary:
  description: What is not as ordered, a line each.
  returned: success
  type: str
report:
  description: The comparison as an area of the host's report, as docs/report.schema.json describes it.
  returned: when a host was compared, or when the lot lacks something or has too much
  type: dict
lot:
  description: State and summary of the lot as a whole, without those of its hosts.
  returned: when the lot was judged
  type: dict
hosts:
  description: For each host of O(seen) whether it was accepted, and why not.
  returned: when the lot was judged
  type: dict
pages:
  description: The files that were written; the first is the page of the lot.
  returned: when the lot was judged
  type: list
  elements: str
captures:
  description: Name and path of each capture that was found.
  returned: with O(find_captures)
  type: list
  elements: dict
"""
