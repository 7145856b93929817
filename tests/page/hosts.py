# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reports of hosts with hardware, made by hand: what each kind of host looks like in a drawing.

Addresses, models and topologies are those of real machines in tests/corpus; serial numbers are made up.
"""

from __future__ import annotations

from typing import Any

from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import Finding, Report, Unknown
from ansible_collections.gpufleet.host.plugins.plugin_utils import fleet_report as fleet
from tests import fleet_sample as sample

# Two sockets with four GPUs each, every GPU below a switch of its own with its NIC and its NVMe: the bus of the GPU,
# of the NIC, of the NVMe, and of the switch (lspci-vvv-xe9680-one-gpu-path.txt has the first).
HGX_BUSES = (
    ("19", "18", "1b", "15"),
    ("3b", "3a", "3d", "37"),
    ("4c", "4b", "4e", "48"),
    ("5d", "5c", "5f", "59"),
    ("9b", "9a", "9d", "97"),
    ("bb", "ba", "bd", "b7"),
    ("cb", "ca", "cd", "c7"),
    ("db", "da", "dd", "d7"),
)


def link(width: int | None, most: int, speed: float | None, fastest: float, slot: int | None = None) -> dict[str, Any]:
    return {
        "width": width,
        "max_width": most,
        "slot_width": slot or most,
        "speed_gts": speed,
        "max_speed_gts": fastest,
        "slot_speed_gts": fastest,
    }


def pci(address: str, kind: str, node: int | None, its_link: dict[str, Any], **changes: Any) -> dict[str, Any]:
    ids = {
        "gpu": ("10de", "2330", "030200", "nvidia"),
        "nic": ("15b3", "1021", "020700", "mlx5_core"),
        "nvme": ("144d", "a80a", "010802", "nvme"),
    }
    vendor, device, pci_class, driver = ids[kind]
    row = {
        "address": address,
        "vendor_id": vendor,
        "device_id": device,
        "class": pci_class,
        "kind": kind,
        "driver": driver,
        "numa_node": node,
        "local_cpulist": None,
        "link": its_link,
    }
    return {**row, **changes}


def gpu(address: str, name: str, pci_id: str, memory_mib: int, **changes: Any) -> dict[str, Any]:
    """A GPU as nvidia-smi tells of it; a number that nobody told is None."""
    row = {
        "address": address,
        "name": name,
        "pci_id": pci_id,
        "subsystem_id": None,
        "model": name,
        "memory_mib": memory_mib,
        "nvlink_active": None,
        "nvlink_expected": None,
        "serial": None,
        "vbios": None,
        "uuid": None,
        "width": 16,
        "max_width": 16,
        "gen": 5,
        "max_gen": 5,
        "numa_node": None,
    }
    return {**row, **changes}


def hardware(**parts: Any) -> dict[str, Any]:
    """Hardware of which nothing is known but the parts."""
    blank = {
        "gpus": None,
        "nvlink": {"switches": None, "pairs": None},
        "cpus": None,
        "dimms": None,
        "nvme": None,
        "nics": None,
        "psus": None,
        "bios": {"vendor": None, "version": None, "date": None},
        "bmc": {"firmware": None},
        "system": {"manufacturer": None, "product": None, "serial": None},
    }
    return {**blank, **parts}


def disk(name: str, address: str | None, node: int | None, **changes: Any) -> dict[str, Any]:
    row = {
        "name": name,
        "id": None,
        "model": "SAMSUNG MZWLO3T8HCLS-00A07",
        "serial": "S7BXNE0",
        "size_bytes": 3840755982336,
        "rotational": False,
        "transport": "nvme",
        "pci": address,
        "numa_node": node,
        "scheduler": "none",
        "mounts": [],
        "holders": ["md0"],
    }
    return {**row, **changes}


def nic(address: str, name: str, netdev: str, **changes: Any) -> dict[str, Any]:
    row = {
        "address": address,
        "pci_id": "15b3:1021",
        "name": name,
        "netdevs": [netdev],
        "firmware": "28.39.2048",
        "rate_gbps": 400,
        "link_layer": "InfiniBand",
        "state": "ACTIVE",
        "ports": 1,
    }
    return {**row, **changes}


def pairs(addresses: list[str], kind: Any) -> list[dict[str, Any]]:
    """All pairs of GPUs; kind is a word or what joins the two of given places."""
    count = len(addresses)
    return [
        {"a": addresses[a], "b": addresses[b], "type": kind if isinstance(kind, str) else kind(a, b)}
        for a in range(count)
        for b in range(a + 1, count)
    ]


def finding(name: str, level: str, subject: str, expected: Any, observed: Any, why: str, fix: str) -> Finding:
    return Finding("platform." + name, level, subject, expected, observed, why, fix, "PCI Express base specification")


def facts(hostname: str | None, **changes: Any) -> dict[str, Any]:
    """Facts of which nothing is known but the changes."""
    blank: dict[str, Any] = {
        "hostname": hostname,
        "os": {"id": None, "version_id": None, "pretty_name": None},
        "kernel": None,
        "virtualization": None,
        "cmdline": None,
        "cpu": dict.fromkeys(("model", "sockets", "cores", "threads", "online", "offline", "smt")),
        "numa_nodes": [],
        "pci": [],
        "disks": [],
    }
    return {**blank, **changes}


def document(host: str, its_facts: dict[str, Any], findings: tuple[Finding, ...] = (), **areas: Report) -> Any:
    worst = "blocked" if any(row.level in ("fail", "block") for row in findings) else "compliant"
    found = fleet.normalise(
        sample.report({"platform": Report(worst, findings=findings), **areas}, host, "audit", its_facts)
    )
    assert found is not None
    return found


def cpu_facts(model: str, sockets: int, cores: int, threads: int) -> dict[str, Any]:
    return {
        "model": model,
        "sockets": sockets,
        "cores": cores,
        "threads": threads,
        "online": "0-%d" % (threads - 1),
        "offline": "",
        "smt": threads > cores,
    }


# --- eight GPUs on NVSwitches, ten NICs, eight NVMe


def hgx_slices() -> Report:
    """Slices of both nodes and all GPUs; the first core of each node is the system's."""
    rows = []
    for index in range(8):
        first = (0 if index < 4 else 56) + 2 + index % 4 * 13
        rows.append(
            {
                "index": index,
                "node": index // 4,
                "cpus": "%d-%d,%d-%d" % (first, first + 12, first + 112, first + 124),
                "memory_nodes": str(index // 4),
            }
        )
    values = {"state": "present", "housekeeping_cpus": "0,56,112,168", "gpus": rows, "confine_system": True}
    return Report("compliant", before=values, after=values)


def hgx_facts(hostname: str = "hgx-01") -> dict[str, Any]:
    gen5 = link(16, 16, 32.0, 32.0)
    rows, gpus, nics, disks, drives = [], [], [], [], []
    for place, (bus, nic_bus, nvme_bus, root) in enumerate(HGX_BUSES):
        node = place // 4
        switch = "0000:%02x:00.0" % (int(root, 16) + 1)
        below = ["0000:%02x:%02x.0" % (int(root, 16) + 2, port) for port in range(4)]
        path = ["0000:%s:01.0" % root, switch]
        address, card, drive = ("0000:%s:00.0" % one for one in (bus, nic_bus, nvme_bus))
        rows.append(pci(address, "gpu", node, link(8, 16, 32.0, 32.0) if place == 5 else gen5, path=[*path, below[1]]))
        rows.append(pci(card, "nic", node, gen5, path=[*path, below[0]]))
        rows.append(pci(drive, "nvme", node, link(4, 4, 16.0 if node else 32.0, 32.0), path=[*path, below[3]]))
        active = 16 if place == 2 else 18
        gpus.append(
            gpu(
                address,
                "NVIDIA H100 80GB HBM3",
                "10de:2330",
                81559,
                subsystem_id="10de:16c1",
                nvlink_active=active,
                nvlink_expected=18,
                serial="165232303%04d" % (7 * place + 11),
                vbios="96.00.74.00.01",
                numa_node=node,
            )
        )
        netdev = "ibs%d" % (place + 1)
        nics.append(nic(card, "mlx5_%d" % place, netdev, **({"state": "DOWN"} if place == 6 else {})))
        drives.append(
            {
                "name": "nvme%dn1" % place,
                "model": "SAMSUNG MZWLO3T8HCLS-00A07",
                "serial": "S7BXNE0%d" % place,
                "firmware": "OPPA4B5Q",
                "size_bytes": 3840755982336,
                "address": drive,
            }
        )
        disks.append(disk("nvme%dn1" % place, drive, node))
    # Two ports for storage and management, on root ports of their own.
    slow = link(16, 16, 16.0, 16.0)
    for place, address in enumerate(("0000:a0:00.0", "0000:a0:00.1")):
        rows.append(pci(address, "nic", 1, slow, device_id="101d", **{"class": "020000", "path": ["0000:9f:01.0"]}))
        changes = {"pci_id": "15b3:101d", "rate_gbps": 100, "link_layer": "Ethernet", "firmware": "22.39.2048"}
        nics.append(nic(address, "mlx5_%d" % (8 + place), "ens7f%dnp%d" % (place, place), **changes))
    # A pair of mirrored disks to boot from, behind a SATA controller.
    rows.append(
        {
            **pci("0000:f1:00.0", "nvme", 1, link(2, 2, 5.0, 5.0), path=["0000:f0:05.0"]),
            "kind": "storage",
            "vendor_id": "1b4b",
            "device_id": "2241",
            "class": "010601",
            "driver": "ahci",
        }
    )
    disks.append(
        disk("sda", "0000:f1:00.0", 1, transport="sata", size_bytes=480103981056, holders=[], mounts=["/", "/boot/efi"])
    )
    addresses = [row["address"] for row in gpus]
    modules = [
        {
            "locator": "%s%d" % (side, slot),
            "size_mib": 65536,
            "type": "DDR5",
            "rated_mts": 4800,
            "configured_mts": 4400,
            "manufacturer": "Hynix Semiconductor",
            "part": "HMCG94MEBRA109N",
            "serial": "8A%02X%s" % (slot, side),
        }
        for side in "AB"
        for slot in range(1, 17)
    ]
    return facts(
        hostname,
        os={"id": "ubuntu", "version_id": "22.04", "pretty_name": "Ubuntu 22.04.4 LTS"},
        kernel="5.15.0-105-generic",
        virtualization="none",
        cmdline="BOOT_IMAGE=/vmlinuz root=UUID=5f1c ro iommu=pt",
        cpu=cpu_facts("Intel(R) Xeon(R) Platinum 8480+", 2, 112, 224),
        numa_nodes=[
            {"id": 0, "socket": 0, "cpus": "0-55,112-167", "memory_mib": 1031822, "distances": [10, 21]},
            {"id": 1, "socket": 1, "cpus": "56-111,168-223", "memory_mib": 1032162, "distances": [21, 10]},
        ],
        pci=rows,
        disks=disks,
        hardware=hardware(
            gpus=gpus,
            nvlink={"switches": 4, "pairs": pairs(addresses, lambda a, b: "NV16" if 2 in (a, b) else "NV18")},
            cpus=[{"socket": n, "model": "Intel(R) Xeon(R) Platinum 8480+", "cores": 56} for n in (0, 1)],
            dimms=modules,
            nvme=drives,
            nics=nics,
            psus=[
                {"name": "PSU.Slot.%d" % slot, "present": True, "ok": slot != 4, "capacity_w": 2800}
                for slot in range(1, 7)
            ],
            bios={"vendor": "Dell Inc.", "version": "2.1.5", "date": "03/20/2024"},
            bmc={"firmware": "7.10.30.00"},
            system={"manufacturer": "Dell Inc.", "product": "PowerEdge XE9680", "serial": "7XK2Q04"},
        ),
    )


def hgx_findings() -> tuple[Finding, ...]:
    """What may be found on such a host: thirty in all, on single devices and on all alike."""
    buses = ["0000:%s:00.0" % row[0] for row in HGX_BUSES]
    slow_disks = ["0000:%s:00.0" % row[2] for row in HGX_BUSES[4:]]
    found = [
        finding(
            "persistence",
            "warn",
            address,
            "Enabled",
            "Disabled",
            "without persistence the driver forgets its settings, and the first CUDA program waits for seconds",
            "systemctl enable --now nvidia-persistenced",
        )
        for address in buses
    ]
    found += [
        finding(
            "link-speed",
            "warn",
            address,
            "32 GT/s",
            "16 GT/s",
            "the drive and its slot can do Gen5 and train at Gen4",
            "reseat the drive; see whether its backplane is one for Gen5",
        )
        for address in slow_disks
    ]
    found += [
        finding(
            "link-width",
            "fail",
            buses[5],
            "x16",
            "x8",
            "the GPU and its slot have sixteen lanes and half of them carry data, so copies to and from the host take "
            "twice as long",
            "reseat the GPU or its riser; if it stays at x8, swap it with a neighbour to see which of the two is bad",
        ),
        finding(
            "nvlink-inactive",
            "fail",
            buses[2],
            18,
            16,
            "two NVLinks of this GPU are down, and collectives run at the pace of the slowest",
            "nvidia-smi nvlink -s -i 2; look for Xid 74 in the log; reset the baseboard, else call the vendor",
        ),
        finding(
            "row-remap-pending",
            "fail",
            buses[7],
            "none pending",
            "1 row",
            "a bad row of memory is remapped only at the next reset, until then it may return wrong data",
            "drain the host and reset the GPU: nvidia-smi --gpu-reset -i 7",
        ),
        finding(
            "link-errors",
            "warn",
            "0000:4b:00.0",
            "no new errors",
            "217 replays since the last run",
            "a link that repeats packets is slow long before it fails",
            "reseat the card and clean the connector; see dmesg for AER",
        ),
        finding(
            "rdma-port-down",
            "warn",
            "mlx5_6",
            "ACTIVE",
            "DOWN",
            "the port has no link, so jobs over this rail hang",
            "see the cable and the switch port: mlxlink -d mlx5_6",
        ),
        finding(
            "psu-lost",
            "warn",
            "PSU.Slot.4",
            "ok",
            "input lost",
            "five supplies of six carry the load: there is no reserve for another to fail",
            "see the cable and the breaker of this supply",
        ),
        finding(
            "dimm-slow",
            "warn",
            "host",
            "4800 MT/s",
            "4400 MT/s",
            "two modules on a channel run slower than one",
            "by design with 32 modules; order 16 larger ones where bandwidth counts",
        ),
        finding(
            "acs",
            "warn",
            "host",
            "off on the paths between GPUs and NICs",
            Unknown("config space cannot be read without root"),
            "with redirection on, peer traffic makes a detour over the CPU",
            "run the audit as root",
        ),
        finding(
            "fabric-manager",
            "info",
            "host",
            "535.183.01",
            "535.183.01",
            "Fabric Manager has the version of the driver",
            "",
        ),
        finding(
            "resizable-bar",
            "info",
            "host",
            "covers the memory",
            "131072 MiB of 81559 MiB",
            "all memory of each GPU can be reached by its peers",
            "",
        ),
    ]
    return tuple(found)


def hgx(host: str = "hgx-01") -> Any:
    return document(host, hgx_facts(host), hgx_findings(), numa_slices=hgx_slices())


def hgx_fleet(count: int) -> list[Any]:
    """So many of them, one in ten with all of that, the others with notes and a warning on each GPU alone."""
    found = []
    for number in range(count):
        rows = (
            hgx_findings() if number % 10 == 3 else tuple(f for f in hgx_findings() if f.id == "platform.persistence")
        )
        name = "hgx-%03d" % number
        found.append(document(name, hgx_facts(name), rows, **{**sample.good_areas(), "numa_slices": hgx_slices()}))
    return found


# --- a workstation: two GPUs with a bridge


def workstation(host: str = "ws-07") -> Any:
    """Two RTX 3090 with a bridge (topo-2x3090-nv4.txt) on a board whose firmware names no node."""
    name, idle = "NVIDIA GeForce RTX 3090", link(16, 16, 2.5, 16.0)
    addresses = ["0000:01:00.0", "0000:21:00.0"]
    gpus = [
        gpu(
            address,
            name,
            "10de:2204",
            24576,
            nvlink_active=4,
            nvlink_expected=4,
            vbios="94.02.71.40.72",
            gen=1,
            max_gen=4,
        )
        for address in addresses
    ]
    rows = [
        pci(addresses[0], "gpu", 0, idle, device_id="2204", path=["0000:00:03.1"]),
        pci(addresses[1], "gpu", 0, idle, device_id="2204", path=["0000:20:03.1"]),
        pci("0000:46:00.0", "nic", 0, link(4, 4, 8.0, 8.0), vendor_id="8086", device_id="1563", driver="ixgbe"),
        pci("0000:41:00.0", "nvme", 0, link(4, 4, 16.0, 16.0), vendor_id="1bb1", device_id="5018"),
    ]
    found = facts(
        host,
        os={"id": "debian", "version_id": "12", "pretty_name": "Debian GNU/Linux 12 (bookworm)"},
        kernel="6.1.0-32-amd64",
        virtualization="none",
        cpu=cpu_facts("AMD Ryzen Threadripper PRO 3945WX 12-Cores", 1, 12, 24),
        numa_nodes=[{"id": 0, "socket": 0, "cpus": "0-23", "memory_mib": 128642, "distances": [10]}],
        pci=rows,
        disks=[
            disk(
                "nvme0n1",
                "0000:41:00.0",
                0,
                model="Seagate FireCuda 530 ZP4000GM30023",
                size_bytes=4000787030016,
                holders=[],
                mounts=["/", "/boot/efi", "/home"],
            )
        ],
        hardware=hardware(
            gpus=gpus,
            nvlink={"switches": 0, "pairs": pairs(addresses, "NV4")},
            cpus=[{"socket": 0, "model": "AMD Ryzen Threadripper PRO 3945WX 12-Cores", "cores": 12}],
            nics=[
                nic(
                    "0000:46:00.0",
                    "enp70s0f0",
                    "enp70s0f0",
                    pci_id="8086:1563",
                    rate_gbps=10,
                    link_layer="Ethernet",
                    state="up",
                )
            ],
            system={"manufacturer": "ASUS", "product": "Pro WS WRX80E-SAGE SE WIFI", "serial": None},
        ),
    )
    consumer = finding(
        "consumer-class",
        "info",
        "host",
        "a data-centre GPU",
        "GeForce RTX 3090",
        "a consumer card has no ECC, and its driver licence does not allow data centres",
        "",
    )
    return document(host, found, (consumer,))


# --- no GPU at all


def no_gpu(host: str = "store-02") -> Any:
    """A storage server: two sockets, one of its NICs on no known node."""
    rows = [
        pci("0000:3b:00.0", "nic", 0, link(16, 16, 8.0, 8.0), device_id="1017", path=["0000:3a:00.0"]),
        pci("0000:af:00.0", "nic", None, link(8, 16, 8.0, 8.0), device_id="1017"),
        *(
            pci(
                "0000:%s:00.0" % bus,
                "nvme",
                1,
                link(4, 4, 8.0, 8.0),
                vendor_id="8086",
                device_id="0a54",
                path=["0000:d7:0%d.0" % place],
            )
            for place, bus in enumerate(("d8", "d9", "da", "db"))
        ),
    ]
    found = facts(
        host,
        os={"id": "rocky", "version_id": "9.4", "pretty_name": "Rocky Linux 9.4 (Blue Onyx)"},
        kernel="5.14.0-427.13.1.el9_4.x86_64",
        virtualization="none",
        cpu=cpu_facts("Intel(R) Xeon(R) Gold 6230N CPU @ 2.30GHz", 2, 40, 80),
        numa_nodes=[
            {
                "id": 0,
                "socket": 0,
                "cpus": ",".join(map(str, range(0, 80, 2))),
                "memory_mib": 95192,
                "distances": [10, 21],
            },
            {
                "id": 1,
                "socket": 1,
                "cpus": ",".join(map(str, range(1, 80, 2))),
                "memory_mib": 96735,
                "distances": [21, 10],
            },
        ],
        pci=rows,
        disks=[
            disk("nvme%dn1" % place, "0000:%s:00.0" % bus, 1, model="INTEL SSDPE2KX040T8", size_bytes=4000787030016)
            for place, bus in enumerate(("d8", "d9", "da", "db"))
        ]
        + [disk("sda", None, None, transport="sata", size_bytes=240057409536, holders=[], mounts=["/"])],
        hardware=hardware(
            gpus=[], nics=[nic("0000:3b:00.0", "mlx5_0", "ens1f0np0", rate_gbps=100, link_layer="Ethernet")]
        ),
    )
    return document(host, found)


# --- a lone nvidia-smi -q -x


def lone_smi(host: str = "vendor-sample") -> Any:
    """Eight GPUs by address, one held back by its power brake (q-8xh100-535.161-hwslowdown-powerbrake.txt)."""
    addresses = ["0000:%s:00.0" % bus for bus in ("53", "64", "75", "86", "97", "a8", "b9", "ca")]
    gpus = [
        gpu(address, "NVIDIA H100 80GB HBM3", "10de:2330", 81559, vbios="96.00.74.00.01", nvlink_expected=18)
        for address in addresses
    ]
    gpus[3]["width"] = gpus[3]["gen"] = None
    brake = finding(
        "throttle",
        "fail",
        addresses[6],
        "no hardware slowdown",
        "HW Power Brake Slowdown",
        "a signal from outside (a power supply or the BMC) holds this GPU down",
        "see the supplies and the BMC's log, then the power budget of the rack",
    )
    unseen = [
        finding(name, "warn", "host", expected, Unknown("not in this capture"), why, "capture the host: capture.yml")
        for name, expected, why in (
            ("acs", "off on the paths between GPUs", "redirection makes peer traffic take a detour over the CPU"),
            ("memory-channels", "all populated", "an empty channel costs its share of the bandwidth"),
            ("nvlink-seen", "18 of 18", "whether all NVLinks are up is not in the XML"),
        )
    ]
    return document(host, facts(None, hardware=hardware(gpus=gpus)), (brake, *unseen))


# --- other meshes


def four_mesh(host: str = "a100-4") -> Any:
    """Four A100 that are joined without a switch (topo-4xa100-nv12-580.txt), one pair of them with fewer links."""
    addresses = ["0000:%s:00.0" % bus for bus in ("01", "41", "81", "c1")]
    gpus = [
        gpu(a, "NVIDIA A100-SXM4-40GB", "10de:20b0", 40960, nvlink_active=12, nvlink_expected=12, gen=4, max_gen=4)
        for a in addresses
    ]
    joined = pairs(addresses, lambda a, b: "NV2" if (a, b) == (1, 2) else "NV4")
    return document(host, facts(host, hardware=hardware(gpus=gpus, nvlink={"switches": 0, "pairs": joined})))


# topo-dgx1-v100.txt, above its diagonal.
DGX1 = (
    "NV1 NV1 NV2 NV2 SYS SYS SYS",
    "NV2 NV1 SYS NV2 SYS SYS",
    "NV2 SYS SYS NV1 SYS",
    "SYS SYS SYS NV1",
    "NV1 NV1 NV2",
    "NV2 NV1",
    "NV2",
)


def eight_mesh(host: str = "dgx1-03") -> Any:
    """A DGX-1: eight V100 in a cube of NVLinks."""
    addresses = ["0000:%s:00.0" % bus for bus in ("06", "07", "0a", "0b", "85", "86", "89", "8a")]
    gpus = [
        gpu(
            a,
            "Tesla V100-SXM2-16GB",
            "10de:1db1",
            16160,
            nvlink_active=6,
            nvlink_expected=6,
            gen=3,
            max_gen=3,
            numa_node=place // 4,
        )
        for place, a in enumerate(addresses)
    ]
    table = [row.split() for row in DGX1]
    joined = pairs(addresses, lambda a, b: table[a][b - a - 1])
    nodes = [
        {"id": 0, "socket": 0, "cpus": "0-19,40-59", "memory_mib": 257847, "distances": [10, 21]},
        {"id": 1, "socket": 1, "cpus": "20-39,60-79", "memory_mib": 258039, "distances": [21, 10]},
    ]
    found = facts(
        host,
        cpu=cpu_facts("Intel(R) Xeon(R) CPU E5-2698 v4 @ 2.20GHz", 2, 40, 80),
        numa_nodes=nodes,
        hardware=hardware(gpus=gpus, nvlink={"switches": 0, "pairs": joined}),
    )
    return document(host, found)


def b200_with_a_gpu_off_the_fabric(host: str = "b200-02") -> Any:
    """GPU 2 of eight B200 has no NVLink (topo-8xb200-gpu2-nvlink-down.txt)."""
    addresses = ["0000:%s:00.0" % bus for bus in ("1b", "43", "52", "61", "9d", "c3", "d1", "df")]
    gpus = [
        gpu(
            a,
            "NVIDIA B200",
            "10de:2901",
            183359,
            nvlink_active=0 if place == 2 else 18,
            nvlink_expected=18,
            numa_node=place // 4,
        )
        for place, a in enumerate(addresses)
    ]

    def kind(a: int, b: int) -> str:
        return "NV18" if 2 not in (a, b) else "NODE" if b < 4 else "SYS"

    joined = {"switches": 2, "pairs": pairs(addresses, kind)}
    down = finding(
        "nvlink-inactive",
        "fail",
        addresses[2],
        18,
        0,
        "no NVLink of this GPU is up, so it talks to the others over PCIe",
        "look for Xid 145 or 149 in the log; reset the GPU, else call the vendor",
    )
    return document(host, facts(host, hardware=hardware(gpus=gpus, nvlink=joined)), (down,))


ALL = (hgx, workstation, no_gpu, lone_smi, four_mesh, eight_mesh, b200_with_a_gpu_off_the_fabric)
