#!/usr/bin/python
# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: xfs_volumes
short_description: Keep XFS volumes on named disks mounted as wanted
version_added: "0.1.0"
description:
  - Takes disks that are named by a stable id to a mounted XFS filesystem, with an md RAID below it where that is wanted,
    and keeps the mount options both live and in fstab or in a mount unit.
  - Nothing is ever made on a device that carries a signature, is mounted, is swap, is held by anything, backs the root,
    or cannot be seen clearly, nor on one that reads as data where O(volumes[].overwrite_serials) does not name it. C(mkfs.xfs) and C(mdadm) are never forced.
  - A geometry that is not as wanted is reported and never changed. A missing disk blocks its own volume only.
extends_documentation_fragment:
  - gpufleet.host.area
options:
  volumes:
    description: The volumes. What is not named here is left alone.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description:
          - A name of up to 32 lower-case letters, digits and hyphens. The filesystem's label is C(gf-) and its first 9 letters.
          - The UUIDs that are given to new arrays and filesystems come from this name and the host's machine id.
        type: str
        required: true
      devices:
        description: Stable ids of the disks, each a path below C(/dev/disk/by-id), a WWN or a serial. Kernel names are refused.
        type: list
        elements: str
        required: true
      mount_point:
        description: Absolute path of the folder to mount at, neither above nor below another volume.
        type: str
        required: true
      raid:
        description: The md array over the disks; needed when there are several.
        type: dict
        suboptions:
          level:
            description: RAID level.
            type: int
            choices: [0, 1, 10]
            required: true
          chunk:
            description: Chunk size such as V(512k), a power of two. By default mdadm's own. Not for RAID 1.
            type: str
          metadata:
            description: Version of the metadata.
            type: str
            choices: ['1.0', '1.1', '1.2']
            default: '1.2'
      overwrite_serials:
        description:
          - Serial number or WWN of each of the disks, exactly as the live disk has it, of a volume whose disks carry no known
            signature and read as data all the same. It says that this data may be overwritten. For an array all members are named.
          - It never counts for a disk that carries a signature, is mounted, is swap, is held by anything, or backs the root.
        type: list
        elements: str
        default: []
      min_size:
        description: The least size of each of the disks, such as V(3t); a smaller one is probably not the one that was meant.
        type: str
      log_size:
        description: Size of the XFS log, V(64m) to V(2038m), within one allocation group. Empty leaves it to mkfs.xfs.
        type: str
        default: 128m
      agcount:
        description: Number of allocation groups of 16 MiB to 1 TiB. Null leaves it to mkfs.xfs.
        type: int
        default: 32
      stripe_unit:
        description: Stripe unit of a hardware RAID, such as V(256k). With O(volumes[].raid) it comes from the array.
        type: str
      stripe_width:
        description: Number of data disks of a hardware RAID, together with O(volumes[].stripe_unit).
        type: int
      mkfs_features:
        description:
          - Features of the format to turn on or off, such as C(nrext64=false) for an older kernel. Others are as mkfs.xfs has them.
        type: dict
        default: {}
      noatime:
        description: Whether reads leave the access time alone. False is not managed.
        type: bool
        default: true
      inode64:
        description: Whether inodes may lie anywhere, which is the default since Linux 3.7. False is not managed.
        type: bool
        default: true
      allocsize:
        description: Preallocation of buffered writes at the end of a file, a power of two from V(4k) to V(1g). Empty is not managed.
        type: str
        default: 64k
      options:
        description: Further mount options, one an item, such as V(nodev).
        type: list
        elements: str
        default: []
      nofail:
        description: Whether a boot goes on when the volume is missing. False is not managed.
        type: bool
        default: true
      mount_by:
        description: What mounts the volume at boot, a line of C(/etc/fstab) or a systemd mount unit.
        type: str
        choices: [fstab, unit]
        default: fstab
seealso:
  - module: gpufleet.host.node_audit
  - module: gpufleet.host.block_queue
"""

EXAMPLES = r"""
- name: Keep a stripe over two NVMe disks for scratch data, and make it on blank disks
  gpufleet.host.xfs_volumes:
    volumes:
      - name: scratch
        devices:
          - /dev/disk/by-id/nvme-SAMSUNG_MZWLR7T6HALA-00007_S6EVNE0R100001
          - /dev/disk/by-id/nvme-SAMSUNG_MZWLR7T6HALA-00007_S6EVNE0R100002
        raid:
          level: 0
          chunk: 512k
        min_size: 7t
        mount_point: /scratch
    allow_risk: destructive

- name: Keep the options of a volume that was made by hand, by its WWN
  gpufleet.host.xfs_volumes:
    volumes:
      - name: models
        devices: ["wwn-0x5000c500a1b2c3d4"]
        mount_point: /models
        mount_by: unit
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

from ansible_collections.gpufleet.host.plugins.module_utils._areas.xfs_volumes import AREA
from ansible_collections.gpufleet.host.plugins.module_utils._engine.door import main as open_door


def main() -> None:
    open_door(AREA)


if __name__ == "__main__":
    main()
