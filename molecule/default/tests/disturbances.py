# Copyright: (c) 2026, gpufleet.host contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What hands do to a host between two runs, and what an audit has to say of each."""

from __future__ import annotations

# (what was done, by which command, area, target of the step that puts it right)
DISTURBANCES = (
    ("a sysctl set by hand", "sysctl -qw vm.swappiness=60", "kernel_settings", "/proc/sys/vm/swappiness"),
    (
        "huge pages set by hand",
        "echo always >/sys/kernel/mm/transparent_hugepage/enabled",
        "kernel_settings",
        "/sys/kernel/mm/transparent_hugepage/enabled",
    ),
    (
        "a sysctl file edited",
        "sed -i s/1048576/65530/ /etc/sysctl.d/90-gpufleet-kernel.conf",
        "kernel_settings",
        "/etc/sysctl.d/90-gpufleet-kernel.conf",
    ),
    (
        "the limits of logins deleted",
        "rm /etc/security/limits.d/90-gpufleet-kernel.conf",
        "kernel_settings",
        "/etc/security/limits.d/90-gpufleet-kernel.conf",
    ),
    (
        "a module option edited",
        "sed -i s/=30/=31/ /etc/modprobe.d/90-gpufleet-kernel.conf",
        "kernel_settings",
        "/etc/modprobe.d/90-gpufleet-kernel.conf",
    ),
    (
        "a scheduler set by hand",
        "echo mq-deadline >/sys/block/$MODELS/queue/scheduler",
        "block_queue",
        "/sys/block/$MODELS/queue/scheduler",
    ),
    (
        "read-ahead set by hand",
        "echo 8 >/sys/block/$SCSI/queue/read_ahead_kb",
        "block_queue",
        "/sys/block/$SCSI/queue/read_ahead_kb",
    ),
    (
        "the udev rules deleted",
        "rm /etc/udev/rules.d/99-gpufleet-block-queue.rules",
        "block_queue",
        "/etc/udev/rules.d/99-gpufleet-block-queue.rules",
    ),
    (
        "remounted without noatime",
        "mount --options-mode ignore -o remount,rw,relatime /models",
        "xfs_volumes",
        "/models",
    ),
    ("a line of fstab edited", r"sed -i '\,/scratch,s/noatime/relatime/' /etc/fstab", "xfs_volumes", "/etc/fstab"),
    (
        "a slice's unit edited",
        "echo TasksMax=10 >>/etc/systemd/system/gpufleet-node1-gpu3.slice",
        "numa_slices",
        "/etc/systemd/system/gpufleet-node1-gpu3.slice",
    ),
    (
        "a slice's CPUs set by hand",
        "echo 0-5 >/sys/fs/cgroup/gpufleet.slice/gpufleet-node0.slice/gpufleet-node0-gpu1.slice/cpuset.cpus",
        "numa_slices",
        "/sys/fs/cgroup/gpufleet.slice/gpufleet-node0.slice/gpufleet-node0-gpu1.slice/cpuset.cpus",
    ),
    ("the map of GPUs deleted", "rm /etc/gpufleet/gpu-map.json", "numa_slices", "/etc/gpufleet/gpu-map.json"),
    (
        "the database's drop-in edited",
        "sed -i s/^MemoryMax=.*/MemoryMax=2G/ /etc/systemd/system/mariadb.service.d/50-gpufleet.conf",
        "mysql_isolation",
        "/etc/systemd/system/mariadb.service.d/50-gpufleet.conf",
    ),
    (
        "the database's wall taken down by hand",
        "echo max >/sys/fs/cgroup/system.slice/mariadb.service/memory.high",
        "mysql_isolation",
        "/sys/fs/cgroup/system.slice/mariadb.service/memory.high",
    ),
    (
        "the database's process moved",
        "cat /sys/fs/cgroup/system.slice/mariadb.service/cgroup.procs >/sys/fs/cgroup/init.scope/cgroup.procs",
        "mysql_isolation",
        "/sys/fs/cgroup/system.slice/mariadb.service/cgroup.procs",
    ),
)

# Steps that only take in files that were put right, and the proof of a change: they come with the others of their area.
COMPANIONS = {
    "platform": set(),
    "kernel_settings": {"systemd manager", "boot entries", "/proc/cmdline"},
    "block_queue": {"udev rules"},
    "xfs_volumes": {"systemd"},
    "numa_slices": {"gpufleet units restored", "gpufleet units", "gpufleet slices"},
    "mysql_isolation": {"systemd's view of mariadb.service"},
}
