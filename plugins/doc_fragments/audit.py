# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Documentation that both forms of the audit share."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  wants:
    description:
      - What is wanted of each area, by the name of its module, with that module's options.
      - When left out, what the variables of the roles say that the play shows, such as by an imported role.
    type: dict
  allow_risk:
    description:
      - The risk that each area may take, by the name of its module, so that the report tells what a run would do.
      - When O(wants) is left out, what the variables of the roles say.
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
      - The saved output of one command is a capture too, such as that of C(nvidia-smi -q -x) or C(lspci -vvv).
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
"""
