# Copyright: (c) 2026, gpufleet.host contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab host is what its inventory wants, as the kernel, systemd and the tools of others tell it.

Nothing here comes from our modules: expected values are written down, not computed by the code under test.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

SYSCTLS = {
    "vm/swappiness": "10",
    "vm/dirty_background_bytes": "268435456",
    "vm/dirty_bytes": "1073741824",
    "vm/max_map_count": "1048576",
    "net/core/rmem_max": "67108864",
    "net/core/wmem_max": "67108864",
    "kernel/numa_balancing": "0",
}
# (volume, options that must be live, geometry that xfs_info must show)
VOLUMES = {
    "/scratch": ({"noatime"}, {"agcount": "32", "sunit": "16", "swidth": "32"}),
    "/models": ({"noatime"}, {"agcount": "32"}),
}
LOG_BLOCKS = 128 * 1024 * 1024 // 4096
GPU_SLICES = ("gpufleet-node0-gpu1.slice", "gpufleet-node0-gpu2.slice", "gpufleet-node1-gpu3.slice")


def cpus(text: str) -> set[int]:
    found: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        first, _dash, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def read(host: Any, path: str) -> str:
    return str(host.check_output("cat %s" % path)).strip()


def group_of(host: Any, unit: str) -> str:
    return "/sys/fs/cgroup" + str(host.check_output("systemctl show -p ControlGroup --value %s" % unit)).strip()


def disk_of(host: Any, name: str) -> str:
    return str(host.check_output("basename $(readlink -f /dev/disk/by-id/%s)" % name)).strip()


@pytest.mark.parametrize("name", sorted(SYSCTLS))
def test_sysctl(gpu1: Any, name: str) -> None:
    assert read(gpu1, "/proc/sys/" + name) == SYSCTLS[name]


def test_huge_pages(gpu1: Any) -> None:
    assert "[madvise]" in read(gpu1, "/sys/kernel/mm/transparent_hugepage/enabled")


def test_limits_of_new_services(gpu1: Any) -> None:
    shown = gpu1.check_output("systemd-run --quiet --wait --pipe cat /proc/self/limits")
    assert re.search(r"Max locked memory +unlimited +unlimited", shown)
    assert re.search(r"Max open files +\d* *1048576", shown)


def test_limits_of_logins(gpu1: Any) -> None:
    assert gpu1.check_output("su -s /bin/sh -c 'ulimit -Hl' daemon").strip() == "unlimited"


def test_module_option_will_be_given(gpu1: Any) -> None:
    assert "options nvme_core io_timeout=30" in gpu1.check_output("modprobe --showconfig | grep nvme_core")


def test_kernel_command_line_of_the_next_boot(gpu1: Any) -> None:
    entries = gpu1.check_output(r"grep -E '^\s*linux\s' /boot/grub/grub.cfg").splitlines()
    assert entries
    assert all("iommu=pt" in entry.split() for entry in entries if "single" not in entry.split())


@pytest.mark.parametrize("number", [0, 1, 2])
def test_nvme_queue(gpu1: Any, number: int) -> None:
    queue = "/sys/block/%s/queue/" % disk_of(gpu1, "nvme-QEMU_NVMe_Ctrl_GPUFLEETNVME%d" % number)
    assert "[none]" in read(gpu1, queue + "scheduler")
    assert read(gpu1, queue + "read_ahead_kb") == "256"


def test_scsi_queue(gpu1: Any) -> None:
    queue = "/sys/block/%s/queue/" % disk_of(gpu1, "wwn-0x5000c50015ea71a0")
    assert "[none]" in read(gpu1, queue + "scheduler")
    assert read(gpu1, queue + "read_ahead_kb") == "4096"


def test_queues_hold_over_a_change_event(gpu1: Any) -> None:
    name = disk_of(gpu1, "nvme-QEMU_NVMe_Ctrl_GPUFLEETNVME2")
    queue = "/sys/block/%s/queue/" % name
    gpu1.check_output("echo mq-deadline > %sscheduler; echo 8 > %sread_ahead_kb" % (queue, queue))
    gpu1.check_output("udevadm trigger --action=change --settle /sys/block/%s" % name)
    assert "[none]" in read(gpu1, queue + "scheduler")
    assert read(gpu1, queue + "read_ahead_kb") == "256"


@pytest.mark.parametrize("path", sorted(VOLUMES))
def test_volume(gpu1: Any, path: str) -> None:
    options, geometry = VOLUMES[path]
    row = json.loads(gpu1.check_output("findmnt --json -o TARGET,FSTYPE,OPTIONS,SOURCE %s" % path))["filesystems"][0]
    assert row["fstype"] == "xfs"
    live = set(row["options"].split(","))
    assert options <= live
    assert live & {"allocsize=64k", "allocsize=64"}
    info = gpu1.check_output("xfs_info %s" % path)
    for key, value in geometry.items():
        assert re.search(r"\b%s=%s\b" % (key, value), info), info
    assert re.search(r"log\s+=internal.*blocks=%d\b" % LOG_BLOCKS, info), info


def test_scratch_is_a_stripe_over_the_two_named_disks(gpu1: Any) -> None:
    source = gpu1.check_output("findmnt -no SOURCE /scratch").strip()
    detail = gpu1.check_output("mdadm --detail %s" % source)
    assert re.search(r"Raid Level : raid0", detail)
    assert re.search(r"Chunk Size : 64K", detail)
    for number in (0, 1):
        assert "/dev/" + disk_of(gpu1, "nvme-QEMU_NVMe_Ctrl_GPUFLEETNVME%d" % number) in detail


def test_volumes_are_mounted_by_uuid_at_boot(gpu1: Any) -> None:
    fstab = gpu1.check_output("cat /etc/fstab")
    assert re.search(r"^UUID=\S+\s+/scratch\s+xfs\s+\S*noatime", fstab, re.MULTILINE)
    assert "/models" not in fstab
    assert gpu1.check_output("systemctl is-enabled models.mount").strip() == "enabled"
    assert "uuid" in gpu1.check_output("systemctl cat models.mount").lower()


def test_slices_split_the_nodes_without_sharing(gpu1: Any) -> None:
    seen: set[int] = set()
    for name in GPU_SLICES:
        group = group_of(gpu1, name)
        mine = cpus(read(gpu1, group + "/cpuset.cpus.effective"))
        node = re.findall(r"node(\d)", name)[0]
        assert mine
        assert mine <= cpus(read(gpu1, "/sys/devices/system/node/node%s/cpulist" % node))
        assert read(gpu1, group + "/cpuset.mems.effective") == node
        assert not mine & seen
        for cpu in mine:
            siblings = cpus(read(gpu1, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list" % cpu))
            assert siblings <= mine
        seen |= mine
    online = cpus(read(gpu1, "/sys/devices/system/cpu/online"))
    assert online - seen, "no CPU is left for the system"


def test_gpu_run_starts_a_process_in_its_slice(gpu1: Any) -> None:
    group = group_of(gpu1, "gpufleet-node1-gpu3.slice")
    shown = gpu1.check_output(
        "/usr/local/bin/gpu-run 3 -- sh -c 'grep _allowed_list /proc/self/status; cat /proc/self/cgroup; env'"
    )
    assert re.search(r"Cpus_allowed_list:\s+%s\n" % read(gpu1, group + "/cpuset.cpus.effective"), shown)
    assert re.search(r"Mems_allowed_list:\s+1\n", shown)
    assert "gpufleet-node1-gpu3.slice" in shown
    assert "CUDA_VISIBLE_DEVICES=3" in shown
    assert "CUDA_DEVICE_ORDER=PCI_BUS_ID" in shown


def test_gpu_run_passes_the_exit_status(gpu1: Any) -> None:
    assert gpu1.run("/usr/local/bin/gpu-run 1 -- sh -c 'exit 7'").rc == 7


def test_gpu_run_refuses_a_gpu_without_a_slice(gpu1: Any) -> None:
    said = gpu1.run("/usr/local/bin/gpu-run 0 -- true")
    assert said.rc != 0
    assert said.stderr.strip()


def test_database_is_walled(gpu1: Any) -> None:
    group = group_of(gpu1, "mariadb.service")
    assert read(gpu1, group + "/memory.high") == str(896 * 1024 * 1024)
    assert read(gpu1, group + "/memory.max") == str(1024 * 1024 * 1024)
    mine = cpus(read(gpu1, group + "/cpuset.cpus.effective"))
    assert mine
    for name in GPU_SLICES:
        assert not mine & cpus(read(gpu1, group_of(gpu1, name) + "/cpuset.cpus.effective"))


def test_database_cannot_open_a_gpu(gpu1: Any) -> None:
    group = group_of(gpu1, "mariadb.service")
    probe = "echo $$ > %s/cgroup.procs; exec 3</dev/nvidia0" % group
    said = gpu1.run("LC_ALL=C bash -c '%s'" % probe)
    assert "Operation not permitted" in said.stderr
    # Outside of the wall the stand-in answers that no driver is behind it.
    assert "No such device" in gpu1.run("LC_ALL=C bash -c 'exec 3</dev/nvidia0'").stderr


def test_database_serves(gpu1: Any) -> None:
    assert gpu1.check_output("mariadb -Nse 'select 41+1'").strip() == "42"
