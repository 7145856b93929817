# Copyright: (c) 2026, gpufleet.host contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a host of the table to a QEMU command line. Nothing here touches the machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lab.hosts import Disk, Gpu, Host

QEMU = "qemu-system-x86_64"
FIRMWARE = Path("/usr/share/OVMF/OVMF_CODE_4M.fd")
FIRMWARE_VARS = Path("/usr/share/OVMF/OVMF_VARS_4M.fd")
SCSI_BUS = "scsi0.0"

# First bus number of the expander bridge of a NUMA node: 0x20 and 0x60.
_BRIDGE_BUS = {0: 32, 1: 96}
_LOCAL, _REMOTE = 10, 21


@dataclass(frozen=True)
class Accel:
    """How guest code is run: by KVM, or by translation (TCG)."""

    name: str
    cpu: str

    @property
    def option(self) -> str:
        return "tcg,thread=multi" if self.name == "tcg" else self.name


# A plain model boots faster under translation than `max`, whose features cost more than they
# give. Family 6 model 28 is an in-order Atom: the kernel knows that it does not speculate, so the
# guest pays for no mitigation; only with an Intel name does it see the threads of a core; and
# up to stepping 2 the kernel would not use huge pages (erratum AAE44).
TCG = Accel(
    "tcg",
    "qemu64,vendor=GenuineIntel,family=6,model=28,stepping=10,+pdpe1gb,+ssse3,+sse4.1,+sse4.2,+popcnt,+rdrand,-svm",
)


@dataclass(frozen=True)
class Paths:
    """The files of one host."""

    folder: Path

    @property
    def overlay(self) -> Path:
        return self.folder / "root.qcow2"

    @property
    def firmware_vars(self) -> Path:
        return self.folder / "vars.fd"

    @property
    def pid(self) -> Path:
        return self.folder / "qemu.pid"

    @property
    def qmp(self) -> Path:
        return self.folder / "qmp.sock"

    @property
    def serial_log(self) -> Path:
        return self.folder / "serial.log"

    @property
    def state(self) -> Path:
        return self.folder / "state.json"

    def disk(self, disk: Disk) -> Path:
        return self.folder / f"{disk.serial.lower()}.raw"


def command(host: Host, paths: Paths, accel: Accel, port: int) -> list[str]:
    """The whole command line of a host."""
    return [
        QEMU,
        "-name",
        host.name,
        "-nodefaults",
        "-no-user-config",
        "-display",
        "none",
        "-machine",
        "q35",
        "-accel",
        accel.option,
        "-cpu",
        accel.cpu,
        *_processors(host),
        *_memory(host),
        *_firmware(paths),
        *_root(paths),
        *_network(port),
        *_bridges(host),
        *_gpus(host),
        *_disks(host, paths),
        "-device",
        "virtio-rng-pci,bus=pcie.0",
        "-chardev",
        f"file,id=serial0,path={paths.serial_log},append=on",
        "-serial",
        "chardev:serial0",
        "-qmp",
        f"unix:{paths.qmp},server=on,wait=off",
        "-daemonize",
        "-pidfile",
        str(paths.pid),
    ]


def _processors(host: Host) -> list[str]:
    topology = f"sockets={host.sockets},cores={host.cores},threads={host.threads}"
    return ["-smp", f"{host.cpus},{topology}"]


def _memory(host: Host) -> list[str]:
    """Memory, in as many NUMA nodes as the host has."""
    nodes = range(len(host.node_memory_mib))
    words = ["-m", f"{host.memory_mib}M"]
    if len(nodes) == 1:
        return words
    share = host.cpus // len(nodes)
    for node in nodes:
        cpus = f"{node * share}-{node * share + share - 1}"
        words += ["-object", f"memory-backend-ram,id=mem{node},size={host.node_memory_mib[node]}M"]
        words += ["-numa", f"node,nodeid={node},cpus={cpus},memdev=mem{node}"]
    for here in nodes:
        for there in nodes:
            words += ["-numa", f"dist,src={here},dst={there},val={_LOCAL if here == there else _REMOTE}"]
    return words


def _firmware(paths: Paths) -> list[str]:
    return [
        "-drive",
        f"if=pflash,format=raw,unit=0,readonly=on,file={FIRMWARE}",
        "-drive",
        f"if=pflash,format=raw,unit=1,file={paths.firmware_vars}",
    ]


def _root(paths: Paths) -> list[str]:
    # The overlay is thrown away by `reset`: a lost write after a crash of the machine is no loss.
    return [
        "-drive",
        f"if=none,id=root,format=qcow2,cache=unsafe,discard=unmap,file={paths.overlay}",
        "-device",
        "virtio-blk-pci,bus=pcie.0,drive=root,serial=LABROOT,bootindex=0",
    ]


def _network(port: int) -> list[str]:
    # restrict=on: the guest reaches nothing; only ssh comes in.
    return [
        "-netdev",
        f"user,id=net0,restrict=on,hostfwd=tcp:127.0.0.1:{port}-:22",
        "-device",
        "virtio-net-pci,bus=pcie.0,netdev=net0,romfile=",
    ]


def _bridges(host: Host) -> Iterator[str]:
    """An expander bridge for each NUMA node that has devices: it gives them their locality."""
    devices: tuple[Disk | Gpu, ...] = (*host.disks, *host.gpus)
    for node in sorted({device.numa_node for device in devices if device.numa_node is not None}):
        yield "-device"
        yield f"pxb-pcie,id=node{node},bus=pcie.0,bus_nr={_BRIDGE_BUS[node]},numa_node={node}"


def _slot(name: str, node: int | None, number: int, lanes: int) -> list[str]:
    """A root port, which is a slot with a link width."""
    bus = "pcie.0" if node is None else f"node{node}"
    # Port numbers start above those that QEMU gives by itself.
    words = f"pcie-root-port,id=slot-{name},bus={bus},chassis={16 + number},slot={16 + number}"
    return ["-device", f"{words},x-speed=16,x-width={lanes}"]


def _gpus(host: Host) -> Iterator[str]:
    for number, gpu in enumerate(host.gpus):
        yield from _slot(gpu.name, gpu.numa_node, number, gpu.lanes)
        yield from ("-device", f"pci-testdev,id={gpu.name},bus=slot-{gpu.name},membar={gpu.bar_mib}M")


def _disks(host: Host, paths: Paths) -> Iterator[str]:
    if any(disk.bus == "scsi" for disk in host.disks):
        yield from ("-device", "virtio-scsi-pci,id=scsi0,bus=pcie.0")
    for number, disk in enumerate(host.disks):
        if disk.is_hotplug:
            continue
        node = node_name(disk)
        yield from (
            "-blockdev",
            f"driver=raw,node-name={node},discard=unmap,file.driver=file,file.filename={paths.disk(disk)}",
        )
        if disk.bus == "nvme":
            yield from _slot(node, disk.numa_node, len(host.gpus) + number, 4)
            yield from ("-device", f"nvme,id={node},bus=slot-{node},drive={node},serial={disk.serial}")
        else:
            yield from ("-device", ",".join(f"{key}={value}" for key, value in scsi_device(disk, number).items()))


def node_name(disk: Disk) -> str:
    """The name of a disk inside QEMU, of the device and of what is behind it."""
    return disk.serial.lower()


def scsi_device(disk: Disk, number: int) -> dict[str, str | int]:
    """A SCSI disk as QEMU's -device and device_add want it."""
    node = node_name(disk)
    device: dict[str, str | int] = {
        "driver": "scsi-hd",
        "id": node,
        "bus": SCSI_BUS,
        "scsi-id": number,
        "drive": node,
        "serial": disk.serial,
    }
    if disk.wwn is not None:
        device["wwn"] = disk.wwn
    return device
