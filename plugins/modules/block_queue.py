#!/usr/bin/python
# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: block_queue
short_description: Keep I/O scheduler and queue settings of disks as wanted
version_added: "0.1.0"
description:
  - Sets the I/O scheduler, read-ahead and other queue attributes of whole disks, by device class or by stable id,
    both live and in one udev rules file, so that they hold over reboots, hotplug and C(change) events.
  - Reads the live value back from the kernel. A value that the kernel refuses or ignores is rolled back.
  - Never touches partitions, loop, zram, dm or md devices, hidden paths of NVMe multipath, or paths of a multipath device.
extends_documentation_fragment:
  - gpufleet.host.area
options:
  rules:
    description:
      - What is wanted, in order. Rules for a class come first, rules for a disk after them; the later one wins.
      - A setting that is left out is not managed. Nothing is managed without any list; an empty one keeps no rule.
    type: list
    elements: dict
    suboptions:
      class:
        description:
          - The class of disks that the rule is for. Exactly one of O(rules[].class) and O(rules[].id) is given.
          - V(ssd) and V(hdd) are SCSI, SAS and SATA disks; V(virtual) are virtio and Xen disks.
        type: str
        choices: [nvme, ssd, hdd, virtual]
      id:
        description: WWN, serial, or name below C(/dev/disk/by-id) of one disk.
        type: str
      scheduler:
        description:
          - The I/O scheduler. A name that the kernel does not offer for the disk is refused with the list it offers.
          - V(noop) is taken as V(none), with a note.
        type: str
      nr_requests:
        description: How many requests the queue takes.
        type: int
      read_ahead_kb:
        description: Read-ahead in KiB, a multiple of 4.
        type: int
      rq_affinity:
        description: Which CPU completes a request, V(0), V(1) (same group) or V(2) (same CPU).
        type: int
      nomerges:
        description: V(0) looks for all merges, V(1) for simple ones, V(2) for none.
        type: int
seealso:
  - module: gpufleet.host.node_audit
"""

EXAMPLES = r"""
- name: No scheduler in front of NVMe, more read-ahead on one SATA disk
  gpufleet.host.block_queue:
    rules:
      - class: nvme
        scheduler: none
        read_ahead_kb: 128
      - id: "0x5000c500a1b2c3d4"
        read_ahead_kb: 4096
"""

RETURN = r"""
state:
  description: State of the area after the run.
  returned: always
  type: str
  sample: compliant
report:
  description: What was found, planned, done and found again, as docs/report.schema.json describes it.
  returned: always
  type: dict
diff:
  description: The changes as Ansible shows them with C(--diff).
  returned: always
  type: list
  elements: dict
"""

from ansible_collections.gpufleet.host.plugins.module_utils._areas.block_queue import AREA
from ansible_collections.gpufleet.host.plugins.module_utils._engine.door import main as open_door


def main() -> None:
    open_door(AREA)


if __name__ == "__main__":
    main()
