#!/usr/bin/python
# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: platform
short_description: Look at hardware, firmware and driver of a GPU host and judge them per model
version_added: "0.1.0"
description:
  - Reads the PCI bus, C(nvidia-smi), the driver and its packages, the firmware, the kernel log, DIMMs, power supplies and
    RDMA devices as they are, and judges them against the catalogue of docs/tables.md and the policies given here.
  - Each judgement is a finding with what was expected, what was observed, why it matters, what to do, and its source.
    What cannot be seen is unknown, and never called right.
  - C(nvidia-smi) is run at most three times, each with a deadline. One that hangs is named and leaves the rest in place.
  - Changes nothing but ACS control bits and the size of PCIe read requests, and those only when asked to.
extends_documentation_fragment:
  - gpufleet.host.area
options:
  gpu_match:
    description: Which PCI functions are GPUs. Each entry has at least one part, and all its parts have to match.
    type: list
    elements: dict
    default:
      - vendor: 10de
        class: "0302"
      - vendor: 10de
        class: "0300"
    suboptions:
      vendor:
        description: Vendor id, such as 10de.
        type: str
      device:
        description: Device id, such as 2330.
        type: str
      class:
        description: Class code, or the first digits of it, such as 0302.
        type: str
  gpu_count:
    description: How many GPUs the host has. Not judged when left out.
    type: int
  gpu_model:
    description: Which model all its GPUs are, a name of docs/tables.md. Not judged when left out.
    type: str
  consumer_gpus:
    description: What a consumer card (GeForce) is, refuse makes it a failure.
    type: str
    choices: [allow, warn, refuse]
    default: warn
  ecc:
    description: ECC of GPU memory, on cards that can.
    type: str
    choices: ["on", "off", any]
    default: "on"
  persistence:
    description: Whether the driver has to keep the GPUs initialised between jobs.
    type: bool
    default: true
  temperature_max_c:
    description: "A GPU hotter than this many degrees Celsius is a warning. The card's own thresholds are judged in any case."
    type: int
  tables:
    description: Rows that the built-in tables lack or have otherwise, by the name of the table, in the schema of docs/tables.md.
    type: dict
    default: {}
  links:
    description: Links that are narrower or slower by design.
    type: list
    elements: dict
    default: []
    suboptions:
      device:
        description: "PCI address, PCI id (10de:1eb8) or model."
        type: str
        required: true
      width:
        description: Lanes that are in order.
        type: int
      gen:
        description: PCIe generation that is in order.
        type: int
      reason:
        description: Why, for those who read it next.
        type: str
  iommu:
    description: Mode of the IOMMU. GPUDirect wants it passed through or off.
    type: str
    choices: [untranslated, translated, any]
    default: untranslated
  acs:
    description: ACS redirection on ports between GPUs and between GPUs and NICs. report names them, off clears it now and at each boot.
    type: str
    choices: [report, "off", any]
    default: report
  max_read_request_bytes:
    description: Largest read request of GPUs and RDMA NICs, a power of two from 128 to 4096. Left as it is when left out.
    type: int
  smt:
    description: Simultaneous multithreading.
    type: str
    choices: ["on", "off", any]
    default: any
  numa_nodes_per_socket:
    description: NUMA nodes of each socket that have CPUs (NPS, SNC). Not judged when left out.
    type: int
  boot_mode:
    description: How the firmware starts the system.
    type: str
    choices: [uefi, bios, any]
    default: uefi
  secure_boot:
    description: Secure Boot. It is only reported, never changed.
    type: str
    choices: ["on", "off", any]
    default: any
  sriov:
    description: Whether NICs offer virtual functions.
    type: str
    choices: ["on", "off", any]
    default: any
  resizable_bar:
    description: "Whether BAR1 has to be as large as the GPU's memory, where the card can."
    type: str
    choices: ["on", any]
    default: "on"
  governor:
    description: CPU frequency governor.
    type: str
    choices: [performance, any]
    default: performance
  idle_latency_max_us:
    description: Longest exit latency, in microseconds, of an idle state that CPUs may enter. Not judged when left out.
    type: int
  memory_gib:
    description: Main memory that is installed, in GiB. What the DIMMs say when left out.
    type: int
  supplies:
    description: How many power supplies there are. Not judged when left out.
    type: int
  supply_capacity_w:
    description: What one power supply gives, in watts. What the BMC says when left out.
    type: int
  cpu_tdp_w:
    description: Thermal design power of one CPU in watts, for the sizing of power supplies. Sizing is not judged when left out.
    type: int
  gpu_power_factor:
    description: Factor on the power limits of GPUs in the sizing formula.
    type: float
    default: 1.8
  cpu_power_factor:
    description: Factor on the power of CPUs in the sizing formula.
    type: float
    default: 1.5
  power_reserve_factor:
    description: Factor on the sum of both in the sizing formula.
    type: float
    default: 1.3
  rdma_devices:
    description: RDMA devices that carry the traffic of GPUs. Theirs have to be up, at their full rate and MTU.
    type: list
    elements: str
    default: []
  accepted:
    description: Findings that are known and accepted. They stay in the report, as information.
    type: list
    elements: dict
    default: []
    suboptions:
      id:
        description: Id of the finding.
        type: str
        required: true
      subject:
        description: What it is about. All subjects when left out.
        type: str
      reason:
        description: Why it is accepted.
        type: str
        required: true
seealso:
  - module: gpufleet.host.node_audit
"""

EXAMPLES = r"""
- name: Judge a host that was sold with eight H100
  gpufleet.host.platform:
    gpu_count: 8
    gpu_model: NVIDIA H100 80GB HBM3

- name: The third slot of this server is x8, and we know it
  gpufleet.host.platform:
    accepted:
      - id: platform.link-slot
        subject: "0000:41:00.0"
        reason: the board has no other slot

- name: Let GPUs and NICs below one switch talk directly
  gpufleet.host.platform:
    acs: "off"
    allow_risk: disruptive
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

from ansible_collections.gpufleet.host.plugins.module_utils._areas.platform import AREA
from ansible_collections.gpufleet.host.plugins.module_utils._engine.door import main as open_door


def main() -> None:
    open_door(AREA)


if __name__ == "__main__":
    main()
