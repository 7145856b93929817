#!/usr/bin/python
# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: numa_slices
short_description: Keep a systemd slice for each GPU and NUMA node, with the CPUs and memory of that node
version_added: "0.1.0"
description:
  - Reads the topology from sysfs and divides the CPUs. Each NUMA node has a slice with its CPUs without the housekeeping ones,
    and the GPUs of a node divide its whole cores. The threads of a core stay together.
  - The slices confine by C(AllowedCPUs) and C(AllowedMemoryNodes), and optionally by memory, weight and number of tasks.
    They are started at boot and stay active, so that what the kernel makes of them can be read at any time.
  - What holds is read from the control groups and, after a change, from a process that is started in each slice.
  - A GPU whose NUMA node the firmware does not name (C(numa_node) is -1) is unknown and gets no slice until the operator names the node.
  - On a host with a kubelet or slurmd nothing is written. The division is reported as lines for their configuration.
  - Installs C(gpu-run), which starts a command in the slice of a GPU.
extends_documentation_fragment:
  - gpufleet.host.area
options:
  state:
    description:
      - V(present) keeps the slices, V(absent) takes them away again, if nothing runs in them.
      - Nothing is managed when it is left out.
    type: str
    choices: [present, absent]
  gpu_match:
    description:
      - Which PCI functions are GPUs. Each entry has at least one part, and all its parts have to match.
      - The GPUs are numbered by their PCI address, as CUDA does with C(CUDA_DEVICE_ORDER=PCI_BUS_ID).
        Those given to a virtual machine (driver C(vfio-pci)) are left out.
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
  housekeeping_cores_per_node:
    description: How many whole cores of each NUMA node, the first ones, are kept for the system and out of the slices.
    type: int
    default: 1
  housekeeping_cpus:
    description: The CPUs that are kept for the system, instead of O(housekeeping_cores_per_node). Whole cores, such as V(0-3,64-67).
    type: str
  confine_system:
    description:
      - Whether C(system.slice), C(user.slice) and C(init.scope) may use the housekeeping CPUs only.
      - Everything that is started outside of the slices is then confined to them, including databases and login sessions.
    type: bool
    default: false
  memory_max:
    description:
      - Hard limit of memory of each GPU's slice. A size such as V(400G), or a percentage of the slice's own memory nodes.
      - Not managed when it is left out.
    type: str
  cpu_weight:
    description: CPU weight of each GPU's slice, 1 to 10000. Not managed when it is left out.
    type: str
  tasks_max:
    description: How many tasks each GPU's slice may have, or V(infinity). Not managed when it is left out.
    type: str
  gpus:
    description: Exceptions for single GPUs.
    type: list
    elements: dict
    default: []
    suboptions:
      index:
        description: Number of the GPU by PCI address, from 0.
        type: int
        required: true
      node:
        description: Its NUMA node, where the firmware does not name it or names a wrong one.
        type: int
      cpus:
        description: Its CPUs, whole cores of its node. The other GPUs of the node divide the rest.
        type: str
      memory_nodes:
        description: The NUMA nodes that it may take memory from.
        type: str
      slice:
        description: V(false) accepts that this GPU has no slice.
        type: bool
        default: true
      memory_max:
        description: As O(memory_max), for this GPU.
        type: str
      cpu_weight:
        description: As O(cpu_weight), for this GPU.
        type: str
      tasks_max:
        description: As O(tasks_max), for this GPU.
        type: str
  nodes:
    description: Limits of the slices of NUMA nodes, which hold for all GPUs of the node together.
    type: list
    elements: dict
    default: []
    suboptions:
      id:
        description: Number of the NUMA node.
        type: int
        required: true
      memory_max:
        description: As O(memory_max), for the node.
        type: str
      cpu_weight:
        description: As O(cpu_weight), for the node.
        type: str
      tasks_max:
        description: As O(tasks_max), for the node.
        type: str
seealso:
  - module: gpufleet.host.node_audit
"""

EXAMPLES = r"""
- name: A slice for each GPU, two cores of each node for the system
  gpufleet.host.numa_slices:
    housekeeping_cores_per_node: 2

- name: The board does not say where GPU 3 is, its manual says next to the second socket
  gpufleet.host.numa_slices:
    memory_max: 90%
    gpus:
      - index: 3
        node: 1
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

from ansible_collections.gpufleet.host.plugins.module_utils._areas.numa_slices import AREA
from ansible_collections.gpufleet.host.plugins.module_utils._engine.door import main as open_door


def main() -> None:
    open_door(AREA)


if __name__ == "__main__":
    main()
