#!/usr/bin/python
# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: mysql_isolation
short_description: Wall MySQL, MariaDB or Percona off from the GPU jobs beside it
version_added: "0.1.0"
description:
  - Finds the database servers of a host by their systemd units (mysql, mysqld, mariadb, instances with an @), each real unit once.
  - Keeps a drop-in for each that confines its CPUs, memory nodes, memory, I/O and devices, and the same limits live in its control group.
  - Reads what holds from the control group of the running unit, and proves that no GPU can be opened by opening device nodes from within it.
  - Compares the buffer pool and the memory of all connections with the wall, asked over the server's unix socket as root,
    and read from its option files for the next start.
  - Judges C(innodb_dedicated_server), C(innodb_io_capacity) and C(innodb_flush_method). Never writes an option file of the server.
extends_documentation_fragment:
  - gpufleet.host.area
options:
  policy:
    description:
      - V(isolate) walls each database. V(refuse) makes any database on a host with GPUs a blocking finding.
      - V(report) only reports.
    type: str
    choices: [isolate, refuse, report]
    default: isolate
  units:
    description:
      - Units with other names that are databases too, such as V(orders-db.service).
      - Found by themselves are mysql, mysqld and mariadb, and their instances.
    type: list
    elements: str
    default: []
  cpus:
    description:
      - CPUs that the server may run on, as a list such as V(0-3,8).
      - V(auto) takes all online CPUs that no GPU's slice (M(gpufleet.host.numa_slices)) uses. Empty is not managed.
    type: str
  memory_nodes:
    description:
      - Memory nodes that the server may allocate on, as a list such as V(0).
      - V(auto) takes the nodes that no GPU's slice uses, else those of the CPUs that are left. Empty is not managed.
    type: str
  memory_high:
    description: Memory above which the server is slowed, such as V(24g), or V(infinity). Empty is not managed.
    type: str
  memory_max:
    description:
      - Memory above which the server is killed, such as V(28g), or V(infinity). Empty is not managed.
      - Refused when it is below the buffer pool, or below what the running server holds.
    type: str
  io_limits:
    description: Limits of reads and writes, one entry a disk. They hold with every scheduler.
    type: list
    elements: dict
    default: []
    suboptions:
      device:
        description: Path of the disk below /dev/disk. Kernel names are refused, as they move.
        type: str
        required: true
      read_bandwidth:
        description: Bytes a second that may be read, such as V(500m) (powers of two).
        type: str
      write_bandwidth:
        description: Bytes a second that may be written.
        type: str
      read_iops:
        description: Reads a second.
        type: int
      write_iops:
        description: Writes a second.
        type: int
  io_weight:
    description: Weight of the unit on contended disks, 1 to 10000. It does nothing without bfq or io.cost. Empty is not managed.
    type: str
  device_policy:
    description:
      - V(closed) leaves the server the harmless pseudo devices only, V(strict) only what O(device_allow) lists.
      - V(auto) takes the wall away, empty is not managed.
    type: str
    choices: [closed, strict, auto, '']
  device_allow:
    description: Device nodes or groups that the server needs, with their access, such as V(/dev/hwrng r). No device of a GPU.
    type: list
    elements: str
    default: []
  oom_score_adjust:
    description: Who is killed first when memory runs out, -1000 (never) to 1000. Empty is not managed.
    type: str
  limit_nofile:
    description: Open files of the server, soft and hard. Changing it needs a restart (disruptive). Empty is not managed.
    type: str
  limit_memlock:
    description:
      - Locked memory of the server, such as V(8g) or V(infinity), for large pages. Changing it needs a restart (disruptive).
      - Empty is not managed.
    type: str
  overrides:
    description: Walls of single units where they differ. What an entry leaves out is as for all.
    type: list
    elements: dict
    default: []
    suboptions:
      unit:
        description: Name of the unit, such as V(mysqld@shard1.service).
        type: str
        required: true
      cpus:
        description:
          - CPUs that the server may run on, as a list such as V(0-3,8).
          - V(auto) takes all online CPUs that no GPU's slice (M(gpufleet.host.numa_slices)) uses. Empty is not managed.
        type: str
      memory_nodes:
        description:
          - Memory nodes that the server may allocate on, as a list such as V(0).
          - V(auto) takes the nodes that no GPU's slice uses, else those of the CPUs that are left. Empty is not managed.
        type: str
      memory_high:
        description: Memory above which the server is slowed, such as V(24g), or V(infinity). Empty is not managed.
        type: str
      memory_max:
        description:
          - Memory above which the server is killed, such as V(28g), or V(infinity). Empty is not managed.
          - Refused when it is below the buffer pool, or below what the running server holds.
        type: str
      io_limits:
        description: Limits of reads and writes, one entry a disk. They hold with every scheduler.
        type: list
        elements: dict
        suboptions:
          device:
            description: Path of the disk below /dev/disk. Kernel names are refused, as they move.
            type: str
            required: true
          read_bandwidth:
            description: Bytes a second that may be read, such as V(500m) (powers of two).
            type: str
          write_bandwidth:
            description: Bytes a second that may be written.
            type: str
          read_iops:
            description: Reads a second.
            type: int
          write_iops:
            description: Writes a second.
            type: int
      io_weight:
        description: Weight of the unit on contended disks, 1 to 10000. It does nothing without bfq or io.cost. Empty is not managed.
        type: str
      device_policy:
        description:
          - V(closed) leaves the server the harmless pseudo devices only, V(strict) only what O(device_allow) lists.
          - V(auto) takes the wall away, empty is not managed.
        type: str
        choices: [closed, strict, auto, '']
      device_allow:
        description: Device nodes or groups that the server needs, with their access, such as V(/dev/hwrng r). No device of a GPU.
        type: list
        elements: str
      oom_score_adjust:
        description: Who is killed first when memory runs out, -1000 (never) to 1000. Empty is not managed.
        type: str
      limit_nofile:
        description: Open files of the server, soft and hard. Changing it needs a restart (disruptive). Empty is not managed.
        type: str
      limit_memlock:
        description:
          - Locked memory of the server, such as V(8g) or V(infinity), for large pages. Changing it needs a restart (disruptive).
          - Empty is not managed.
        type: str
  gpu_match:
    description: Which PCI functions are GPUs, for the policies V(refuse) and V(report). All parts of an entry have to match.
    type: list
    elements: dict
    default:
      - vendor: 10de
        class: "0302"
      - vendor: 10de
        class: "0300"
    suboptions:
      vendor:
        description: Vendor id, such as V(10de).
        type: str
      device:
        description: Device id, such as V(2330).
        type: str
      class:
        description: Class code, or the first digits of it, such as V(0302).
        type: str
seealso:
  - module: gpufleet.host.numa_slices
  - module: gpufleet.host.node_audit
"""

EXAMPLES = r"""
- name: Wall the databases of a GPU host
  gpufleet.host.mysql_isolation:
    memory_high: 24g
    memory_max: 28g
    io_limits:
      - device: /dev/disk/by-id/nvme-eui.0025388b81b2c3d4
        write_bandwidth: 500m

- name: One of two instances gets more memory
  gpufleet.host.mysql_isolation:
    memory_max: 8g
    overrides:
      - unit: mysqld@orders.service
        memory_max: 32g

- name: No database may run beside a GPU
  gpufleet.host.mysql_isolation:
    policy: refuse
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

from ansible_collections.gpufleet.host.plugins.module_utils._areas.mysql_isolation import AREA
from ansible_collections.gpufleet.host.plugins.module_utils._engine.door import main as open_door


def main() -> None:
    open_door(AREA)


if __name__ == "__main__":
    main()
