# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The host's topology for the report: sockets, NUMA nodes, PCI devices with their links, disks.

One shape for people and programs (``host_facts`` in docs/report.schema.json): null is unknown.
"""

from __future__ import annotations

import re
from typing import Any, Dict, List, Mapping, Optional, Sequence, Set, Tuple, Union

from .._engine.cpuset import format_cpulist
from .._engine.host import Host
from .._engine.values import Unknown, lines
from . import block, cpu, numa, os_release, pci

# What the firmware calls the machine (DMI sys_vendor and product_name), the first match wins.
_MACHINES = (
    ("QEMU", "qemu"),
    ("KVM", "kvm"),
    ("VMware", "vmware"),
    ("VirtualBox", "oracle"),
    ("Microsoft Corporation Virtual Machine", "microsoft"),
    ("Xen", "xen"),
    ("Amazon EC2", "amazon"),
    ("Google Compute Engine", "google"),
    ("Bochs", "bochs"),
)
_TRANSPORTS = (("nvme", r"nvme\d+n\d+"), ("virtio", r"vd[a-z]+"), ("xen", r"xvd[a-z]+"), ("mmc", r"mmcblk\d+"))
_ADDRESS = r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
# COMMAND_LINE_SIZE is 4096 at most (arch/*/include/asm/setup.h).
_LONGEST = 4096
_DISK_NAME = r"(sd[a-z]+|(vd|xvd)[a-z]+|nvme\d+n\d+|mmcblk\d+|pmem\d+|dasd[a-z]+)"


def host_facts(host: Host, gpu_match: Sequence[Mapping[str, Any]] = pci.NVIDIA_GPUS) -> Dict[str, Any]:
    """Everything the drawing of a host needs, read without any command on a live host."""
    cpus = cpu.observe(host)
    nodes = numa.observe(host)
    return {
        "hostname": _line(host, "/proc/sys/kernel/hostname") or _line(host, "/etc/hostname"),
        "os": os_release.observe(host),
        "kernel": _line(host, "/proc/sys/kernel/osrelease"),
        "virtualization": virtualization(host),
        "cmdline": _line(host, "/proc/cmdline"),
        "cpu": _cpu(host, cpus),
        "numa_nodes": [] if isinstance(nodes, Unknown) else [_node(node, cpus) for node in nodes],
        "pci": [_device(host, device) for device in pci.observe(host, gpu_match)],
        "disks": _disks(host),
    }


def virtualization(host: Host) -> Optional[str]:
    """The kind of virtual machine, ``none`` on bare metal, None when the firmware tells nothing."""
    words = " ".join(_line(host, "/sys/class/dmi/id/" + name) or "" for name in ("sys_vendor", "product_name")).strip()
    for pattern, name in _MACHINES:
        if pattern in words:
            return name
    if "hypervisor" in _flags(host):
        return "other"
    return "none" if words else None


def _flags(host: Host) -> Set[str]:
    for line in lines(host.read("/proc/cpuinfo")):
        if line.startswith("flags"):
            return set(line.partition(":")[2].split())
    return set()


def _cpu(host: Host, cpus: cpu.Cpus) -> Dict[str, Any]:
    said = None if host.exists(cpu.CPU_FOLDER) else cpu.recorded_lscpu(host)
    cores = None if isinstance(cpus.cores, Unknown) else len(cpus.cores)
    sockets: Optional[int] = len(set(cpus.package_of.values())) or None
    threads = None if isinstance(cpus.online, Unknown) else len(cpus.online)
    has_smt = None if isinstance(cpus.cores, Unknown) else any(len(core) > 1 for core in cpus.cores)
    if said is not None:
        sockets = _known(said.sockets)
        threads = threads if threads is not None else _known(said.cpus)
        per_core = _known(said.threads_per_core)
        has_smt = None if per_core is None else per_core > 1
        if cores is None and threads and per_core and threads % per_core == 0:
            cores = threads // per_core
    return {
        "model": cpu.model(host),
        "sockets": sockets,
        "cores": cores,
        "threads": threads,
        "online": _list(cpus.online),
        "offline": _list(cpus.offline),
        "smt": has_smt,
    }


def _node(node: numa.Node, cpus: cpu.Cpus) -> Dict[str, Any]:
    packages = set() if isinstance(node.cpus, Unknown) else {cpus.package_of.get(number) for number in node.cpus}
    return {
        "id": node.id,
        "socket": packages.pop() if len(packages) == 1 else None,
        "cpus": _list(node.cpus),
        "memory_mib": _known(node.memory_mib),
        "distances": list(node.distances),
    }


def _device(host: Host, device: pci.Device) -> Dict[str, Any]:
    link = device.link
    target = host.readlink(pci.DEVICE_FOLDER + "/" + device.address)
    return {
        "address": device.address,
        "vendor_id": device.vendor_id,
        "device_id": device.device_id,
        "class": device.class_code,
        "kind": device.kind,
        "driver": device.driver,
        "numa_node": _known(device.numa_node),
        "local_cpulist": _list(device.local_cpus),
        # The bridges above it, from the root port down.
        "path": re.findall(_ADDRESS, target)[:-1] if target else None,
        "link": {
            "width": link.width,
            "max_width": link.max_width,
            "slot_width": link.slot_width,
            "speed_gts": link.speed_gts,
            "max_speed_gts": link.max_speed_gts,
            "slot_speed_gts": link.slot_speed_gts,
        },
    }


def _disks(host: Host) -> List[Dict[str, Any]]:
    names = block.disk_names(host)
    if isinstance(names, Unknown):
        return []
    mounts = _mounts_by_number(host)
    return [_disk(host, name, mounts) for name in names if re.fullmatch(_DISK_NAME, name, re.ASCII)]


def _disk(host: Host, name: str, mounts: Mapping[str, List[str]]) -> Dict[str, Any]:
    disk = block.disk(host, name)
    folder = "/sys/block/" + name
    numbers = [_line(host, folder + "/dev")]
    numbers += [_line(host, "%s/%s/dev" % (folder, part)) for part in disk.partitions]
    held = sorted({holder for part in disk.partitions for holder in host.listdir("%s/%s/holders" % (folder, part))})
    scheduler = block.parse_scheduler(host.read(folder + "/queue/scheduler"))
    address, node = _place(host, name)
    return {
        "name": name,
        "id": "/dev/disk/by-id/" + disk.ids[0] if disk.ids else None,
        "model": disk.model or None,
        "serial": disk.serial_short or disk.serial or None,
        "size_bytes": disk.size_bytes,
        "rotational": disk.rotational,
        "transport": _transport(host, name),
        "pci": address,
        "numa_node": node,
        "scheduler": None if isinstance(scheduler, Unknown) else scheduler.active,
        "mounts": sorted({place for number in numbers if number for place in mounts.get(number, [])}),
        "holders": [*disk.holders, *(holder for holder in held if holder not in disk.holders)],
    }


def _transport(host: Host, name: str) -> Optional[str]:
    for transport, pattern in _TRANSPORTS:
        if re.fullmatch(pattern, name):
            return transport
    target = host.readlink("/sys/block/" + name) or ""
    for transport, sign in (("sata", "/ata"), ("usb", "/usb"), ("sas", "/end_device-"), ("virtio", "/virtio")):
        if sign in target:
            return transport
    return "scsi" if "/host" in target else None


def _place(host: Host, name: str) -> Tuple[Optional[str], Optional[int]]:
    """The PCI function that a disk hangs on, the nearest above it, and its NUMA node."""
    target = host.readlink("/sys/block/" + name) or ""
    if "/virtual/" in target and name.startswith("nvme"):
        # With NVMe multipath the disk is virtual; its controller knows the place.
        controller = "/sys/class/nvme/" + re.sub(r"n\d+$", "", name)
        target = host.readlink(controller) or host.readlink(controller + "/device") or ""
    found = re.findall(_ADDRESS, target)
    if not found:
        return None, None
    return found[-1], _known(pci.parse_numa_node(host.read("%s/%s/numa_node" % (pci.DEVICE_FOLDER, found[-1]))))


def _mounts_by_number(host: Host) -> Dict[str, List[str]]:
    """Where each device (major:minor) is mounted, from proc(5) mountinfo; octal escapes undone."""
    mounts: Dict[str, List[str]] = {}
    for line in lines(host.read("/proc/self/mountinfo")):
        words = line.split(" ")
        if len(words) > 4:
            place = re.sub(r"\\([0-7]{3})", lambda found: chr(int(found.group(1), 8)), words[4])
            mounts.setdefault(words[2], []).append(place)
    return mounts


def _line(host: Host, path: str) -> Optional[str]:
    text = host.read(path)
    return (text[:_LONGEST].strip() or None) if isinstance(text, str) else None


def _known(value: Union[int, Unknown]) -> Optional[int]:
    return None if isinstance(value, Unknown) else value


def _list(ids: cpu.Ids) -> Optional[str]:
    return None if isinstance(ids, Unknown) else format_cpulist(ids)
