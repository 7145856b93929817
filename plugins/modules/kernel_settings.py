#!/usr/bin/python
# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kernel_settings
short_description: Keep sysctls, huge pages, CPU power, limits, module options and the command line as wanted
version_added: "0.1.0"
description:
  - Sets kernel settings live and for good, each by the system's own means, and reads the live value back from the kernel.
    A value that the kernel refuses or ignores is rolled back.
  - What the kernel takes only at boot (module options of loaded modules, the command line) is set for good and reported as
    pending until the next boot. The module never reboots.
  - Another file or tool that sets the same value otherwise is named with its line; it is not changed.
  - An option that is not given is not managed.
extends_documentation_fragment:
  - gpufleet.host.area
options:
  sysctls:
    description:
      - Sysctls and their values. Kept in C(/etc/sysctl.d/90-gpufleet-kernel.conf) and live.
      - A sysctl that the kernel does not offer is refused, with the nearest names or the module that offers it.
      - An empty mapping removes the file.
    type: dict
  numa_balancing:
    description: Automatic NUMA balancing, V(0) off, V(1) on, V(2) tiering. A kernel built without it satisfies V(0).
    type: str
  transparent_hugepage:
    description: Transparent huge pages, V(always), V(madvise) or V(never). Kept by tmpfiles.d and live.
    type: str
  transparent_hugepage_defrag:
    description: Who waits for compaction, V(always), V(defer), V(defer+madvise), V(madvise) or V(never).
    type: str
  governor:
    description:
      - CPU frequency governor of all CPUs. Kept by tmpfiles.d with a oneshot unit, and live.
      - A governor that is not offered is refused with the list. A host without cpufreq says so and is not drifted.
    type: str
  energy_preference:
    description: Energy or performance preference of all CPUs, as the governor.
    type: str
  deepest_cstate:
    description: Deepest idle state that CPUs may enter, by the name that the kernel gives it. Deeper ones are disabled.
    type: str
  memlock:
    description:
      - How much memory may be locked, V(unlimited), a size such as V(64g), or C(soft:hard).
      - For logins through PAM, for services as systemd's default. What runs already keeps its limits.
    type: str
  nofile:
    description: Open files, a number such as V(1048576), or C(soft:hard). At most what C(fs.nr_open) allows.
    type: str
  module_options:
    description:
      - Options of kernel modules, a mapping of parameters to values for each module.
      - Kept in C(/etc/modprobe.d/90-gpufleet-kernel.conf). An empty mapping removes the file.
    type: dict
  cmdline:
    description:
      - Arguments of the kernel command line, added to those that are there.
      - Kept by a drop-in of C(/etc/default/grub.d) on Debian and Ubuntu, and by C(grubby) on EL. An empty list removes the drop-in.
    type: list
    elements: str
seealso:
  - module: gpufleet.host.node_audit
"""

EXAMPLES = r"""
- name: Settings of a host whose jobs are bound to NUMA nodes
  gpufleet.host.kernel_settings:
    sysctls:
      vm.swappiness: 10
    numa_balancing: 0
    transparent_hugepage: madvise
    governor: performance
    memlock: unlimited

- name: Arguments that wait for the next boot
  gpufleet.host.kernel_settings:
    cmdline:
      - iommu=pt
"""

RETURN = r"""
state:
  description: State of the area after the run.
  returned: always
  type: str
  sample: pending_reboot
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

from ansible_collections.gpufleet.host.plugins.module_utils._areas.kernel_settings import AREA
from ansible_collections.gpufleet.host.plugins.module_utils._engine.door import main as open_door


def main() -> None:
    open_door(AREA)


if __name__ == "__main__":
    main()
