# Copyright: (c) 2026, gpufleet.host contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The hosts of the lab, as a table."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal, Mapping

Bus = Literal["nvme", "scsi"]


@dataclass(frozen=True)
class Disk:
    """A data disk: a sparse raw file behind an NVMe or a SCSI device."""

    serial: str
    size_mib: int
    bus: Bus
    numa_node: int | None = None
    wwn: int | None = None
    is_hotplug: bool = False


@dataclass(frozen=True)
class Gpu:
    """A stand-in GPU: an idle PCI function with a 64-bit BAR behind a real slot."""

    name: str
    numa_node: int | None
    lanes: int
    bar_mib: int = 256


@dataclass(frozen=True)
class Host:
    """A virtual machine of the lab."""

    name: str
    ssh_port: int
    sockets: int
    cores: int
    threads: int
    node_memory_mib: tuple[int, ...]
    disks: tuple[Disk, ...]
    gpus: tuple[Gpu, ...] = ()
    has_database: bool = False

    @property
    def cpus(self) -> int:
        return self.sockets * self.cores * self.threads

    @property
    def memory_mib(self) -> int:
        return sum(self.node_memory_mib)

    @property
    def hotplug_disk(self) -> Disk | None:
        return next((disk for disk in self.disks if disk.is_hotplug), None)


# Kind -> size. 512 MiB is above the 300 MB below which mkfs.xfs refuses.
REFUSALS: Mapping[str, int] = {
    "EXT4": 512,
    "XFS": 512,
    "BTRFS": 512,
    "VFAT": 512,
    "SWAP": 512,
    "LVM": 512,
    "MD": 512,
    "GPT": 512,
    "MBR": 512,
    "LUKS": 512,
    "BITLOCKER": 512,
    "ZFS": 512,
    "MOUNTED": 512,
    "DMHELD": 512,
    "RANDOM": 512,
    "TAR": 512,
    "SPDK": 512,
    "WIPED": 512,
    "BLANK": 1024,
    "SMALL": 64,
}

GPU_HOST = Host(
    name="lab-gpu1",
    ssh_port=22201,
    # Three cores a node: one for the system, one for each of the two GPUs of node 0.
    sockets=2,
    cores=3,
    threads=2,
    node_memory_mib=(1536, 1536),
    disks=(
        # A log lies within one allocation group, so 32 groups with a 128 MiB log need more than 4 GiB:
        # the first two as a stripe, the third alone. The files are sparse.
        Disk("GPUFLEETNVME0", 2560, "nvme", numa_node=0),
        Disk("GPUFLEETNVME1", 2560, "nvme", numa_node=0),
        Disk("GPUFLEETNVME2", 6144, "nvme", numa_node=1),
        Disk("GPUFLEETSCSI0", 1024, "scsi", wwn=0x5000C50015EA71A0),
        Disk("GPUFLEETHOT0", 1024, "scsi", wwn=0x5000C50015EA71A1, is_hotplug=True),
    ),
    gpus=(
        Gpu("gpu0", numa_node=0, lanes=16),
        Gpu("gpu1", numa_node=0, lanes=16),
        Gpu("gpu2", numa_node=1, lanes=8),
        Gpu("gpu3", numa_node=None, lanes=16),
    ),
    has_database=True,
)

REFUSE_HOST = Host(
    name="lab-refuse1",
    ssh_port=22202,
    sockets=1,
    cores=2,
    threads=1,
    node_memory_mib=(1024,),
    disks=tuple(Disk(f"REFUSE-{kind}", size, "scsi") for kind, size in REFUSALS.items()),
)

HOSTS: Mapping[str, Host] = {host.name: host for host in (GPU_HOST, REFUSE_HOST)}


def ssh_port(host: Host, env: Mapping[str, str] = os.environ) -> int:
    """The port on 127.0.0.1: GPUFLEET_LAB_PORT_LAB_GPU1 overrides the table."""
    name = "GPUFLEET_LAB_PORT_" + host.name.upper().replace("-", "_")
    return int(env.get(name, host.ssh_port))
