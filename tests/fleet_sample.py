# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A made-up fleet in every state, built from the real values, for tests of the report and its page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import (
    Finding,
    Report,
    Step,
    StepResult,
    Unknown,
    worst,
)
from ansible_collections.gpufleet.host.plugins.plugin_utils import fleet_report as fleet
from ansible_collections.gpufleet.host.plugins.plugin_utils.fleet_unreachable import task_failed, unreachable

RUN = "20260131T120000Z"
TAKEN = "2026-01-31T12:00:07Z"
HOSTILE = "<script>flag('name')</script>"
MARKUP = "\"'><img src=x onerror=flag('value')></script><svg onload=flag('svg')>\u202e"

SCHEDULER = Step(
    "block_queue.nvme1n1.scheduler",
    "value",
    "/sys/block/nvme1n1/queue/scheduler",
    "mq-deadline",
    "none",
    "NVMe has deep queues of its own; a scheduler in front of them only adds latency",
    "kernel Documentation/block/switching-sched",
)
RULES = Step(
    "block_queue.rules",
    "file",
    "/etc/udev/rules.d/99-gpufleet-block-queue.rules",
    'KERNEL=="nvme[0-9]*n[0-9]*", ATTR{queue/scheduler}="mq-deadline"\n',
    "# Managed by gpufleet.host.io_scheduler: changes made here are put back.\n"
    'KERNEL=="nvme[0-9]*n[0-9]*", ATTR{queue/scheduler}="none"\n',
    "settings written to sysfs are lost at the next boot, hotplug or change event",
    "udev(7)",
    needs="reload",
)
REMOUNT = Step(
    "xfs_volumes.data.remount",
    "run",
    "/data",
    "rw,relatime,inode64",
    "rw,noatime,inode64",
    "every read writes an access time without it",
    "mount(8)",
    needs="remount",
    risk="disruptive",
    argv=("mount", "-o", "remount,noatime", "/data"),
)
CMDLINE = Step(
    "kernel_settings.cmdline",
    "reboot",
    "kernel command line",
    "quiet",
    "quiet iommu=pt",
    "the IOMMU translates only what is passed through to a guest",
    "kernel Documentation/admin-guide/kernel-parameters",
    needs="reboot",
)
NO_NODE = Finding(
    "numa_slices.no-node",
    "warn",
    "0000:a1:00.0",
    "a NUMA node",
    Unknown("the firmware says numa_node = -1"),
    "the node of this GPU cannot be seen, so it gets no slice; it is not put on node 0 by guess",
    "switch on SRAT or NPS in the firmware, or name the node in numa_slices_gpu_nodes",
    "kernel Documentation/ABI/testing/sysfs-bus-pci",
)
HAS_SIGNATURE = Finding(
    "xfs_volumes.has-signature",
    "block",
    "/dev/disk/by-id/nvme-SAMSUNG_MZQL23T8_S64HNE0",
    "a blank device",
    "LVM2_member, volume group vg_old",
    "a device with a signature is never formatted, since somebody's data may be on it",
    "pvs /dev/disk/by-id/nvme-SAMSUNG_MZQL23T8_S64HNE0; if nobody needs it: vgremove vg_old, wipefs -a",
    "libblkid",
    ("xfs_volumes.scratch.",),
)
REFUSED = Finding(
    "engine.step-refused",
    "fail",
    "/sys/block/nvme1n1/queue/scheduler",
    "none",
    "[Errno 22] Invalid argument",
    "the host refused this step of block_queue, so what the run had changed was put back",
    "read the reason, correct the wanted value or the host, and run again",
    "engine",
)
NOOP = Finding(
    "block_queue.old-name",
    "info",
    "rules[0]",
    "noop",
    "none",
    "noop belonged to the single-queue block layer; none is what it is called now",
    "write scheduler: none",
    "kernel Documentation/block/switching-sched",
)

QUEUE = {"rules": [{"class": "nvme", "scheduler": "none", "read_ahead_kb": 128}]}
QUEUE_OFF = {"rules": [{"class": "nvme", "scheduler": "mq-deadline", "read_ahead_kb": 128}]}
KERNEL = {
    "sysctl": {"vm.swappiness": 10, "kernel.numa_balancing": 0, "vm.dirty_ratio": 10},
    "transparent_hugepage": "madvise",
    "energy_preference": Unknown("the driver offers none"),
}
XFS = {"volumes": [{"mount": "/data", "options": "rw,noatime,inode64,allocsize=64k", "agcount": 32}]}
XFS_OFF = {"volumes": [{"mount": "/data", "options": "rw,relatime,inode64,allocsize=64k", "agcount": 32}]}
MYSQL = {"units": ["mariadb.service"], "memory_max": "16G", "cpus": "0-1"}


def numa(cpus: int = 32) -> dict[str, Any]:
    """What the slices of a host with two nodes and four GPUs are."""
    half, quarter = cpus // 2, cpus // 4
    firsts_and_lasts = [(2, quarter), (quarter, half), (half + 2, half + quarter), (half + quarter, cpus)]
    return {
        "state": "present",
        "housekeeping_cpus": "0-1,%d-%d" % (half, half + 1),
        "gpus": [
            {"index": index, "node": index // 2, "cpus": "%d-%d" % (first, end - 1), "memory_nodes": str(index // 2)}
            for index, (first, end) in enumerate(firsts_and_lasts)
        ],
        "confine_system": True,
    }


def link(width: int | None = 16, card: int = 16, slot: int = 16, speed: float | None = 16.0) -> dict[str, Any]:
    return {
        "width": width,
        "max_width": card,
        "slot_width": slot,
        "speed_gts": speed,
        "max_speed_gts": 16.0,
        "slot_speed_gts": 16.0,
    }


def device(address: str, kind: str, node: int | None, **changes: Any) -> dict[str, Any]:
    ids = {"gpu": ("10de", "20b5", "030200", "nvidia"), "nic": ("15b3", "101b", "020000", "mlx5_core")}
    vendor, number, pci_class, driver = ids.get(kind, ("144d", "a80a", "010802", "nvme"))
    x4 = link(4, 4, 4) if kind == "nvme" else link()
    return {
        "address": address,
        "vendor_id": vendor,
        "device_id": number,
        "class": pci_class,
        "kind": kind,
        "driver": driver,
        "numa_node": node,
        "local_cpulist": None if node is None else "0-15",
        "link": x4,
        **changes,
    }


def disk(name: str, pci: str | None, node: int | None, **changes: Any) -> dict[str, Any]:
    return {
        "name": name,
        "id": "/dev/disk/by-id/nvme-SAMSUNG_MZQL23T8_%s" % name,
        "model": "SAMSUNG MZQL23T8HCLS",
        "serial": "S64HNE0",
        "size_bytes": 3840755982336,
        "rotational": False,
        "transport": "nvme",
        "pci": pci,
        "numa_node": node,
        "scheduler": "none",
        "mounts": [],
        "holders": ["md0"],
        **changes,
    }


def host_facts(hostname: str, cpus: int = 32) -> dict[str, Any]:
    """The facts of a server with two sockets, four GPUs, two NICs and three disks."""
    half = cpus // 2
    return {
        "hostname": hostname,
        "os": {"id": "debian", "version_id": "12", "pretty_name": "Debian GNU/Linux 12 (bookworm)"},
        "kernel": "6.1.0-32-amd64",
        "virtualization": "none",
        "cmdline": "BOOT_IMAGE=/vmlinuz root=UUID=5f1c ro quiet",
        "cpu": {
            "model": "AMD EPYC 7543 32-Core Processor",
            "sockets": 2,
            "cores": cpus,
            "threads": cpus,
            "online": "0-%d" % (cpus - 1),
            "offline": "",
            "smt": False,
        },
        "numa_nodes": [
            {"id": 0, "socket": 0, "cpus": "0-%d" % (half - 1), "memory_mib": 257654, "distances": [10, 32]},
            {"id": 1, "socket": 1, "cpus": "%d-%d" % (half, cpus - 1), "memory_mib": 193500, "distances": [32, 10]},
        ],
        "pci": [
            device("0000:21:00.0", "gpu", 0),
            device("0000:22:00.0", "gpu", 0),
            device("0000:a1:00.0", "gpu", 1),
            device("0000:a2:00.0", "gpu", 1, link=link(speed=2.5)),
            device("0000:23:00.0", "nic", 0),
            device("0000:a3:00.0", "nic", 1),
            device("0000:41:00.0", "nvme", 0),
            device("0000:c1:00.0", "nvme", 1),
        ],
        "disks": [
            disk("nvme0n1", "0000:41:00.0", 0),
            disk("nvme1n1", "0000:c1:00.0", 1),
            disk("sda", None, None, transport="sata", holders=[], mounts=["/", "/boot"], size_bytes=480103981056),
        ],
    }


def done(*steps: Step, status: str = "applied", detail: str = "") -> tuple[StepResult, ...]:
    return tuple(StepResult(step, status, detail) for step in steps)


def report(
    areas: dict[str, Report], host: str, mode: str = "apply", facts: dict[str, Any] | None = None
) -> dict[str, Any]:
    """What a module gives back."""
    return {
        "format": 1,
        "host": host,
        "run": RUN,
        "taken": TAKEN,
        "mode": mode,
        "state": worst([area.state for area in areas.values()]),
        "areas": {name: area.to_json() for name, area in areas.items()},
        "host_facts": host_facts(host) if facts is None else facts,
    }


def good_areas() -> dict[str, Report]:
    wanted: dict[str, dict[str, Any]] = {
        "kernel_settings": KERNEL,
        "block_queue": QUEUE,
        "xfs_volumes": XFS,
        "numa_slices": numa(),
        "mysql_isolation": MYSQL,
    }
    return {name: Report("compliant", before=value, after=value) for name, value in wanted.items()}


def document(host: str, mode: str = "apply", facts: dict[str, Any] | None = None, **areas: Report) -> fleet.Document:
    """A host that is as wanted but for the areas given."""
    found = fleet.normalise(report({**good_areas(), **areas}, host, mode, facts))
    assert found is not None
    return found


def blank(host: str, finding: Mapping[str, Any]) -> fleet.Document:
    return fleet.with_finding(fleet.new_document(host, RUN, TAKEN), finding)


def narrow_slot(host: str) -> fleet.Document:
    facts = host_facts(host)
    facts["pci"][1]["link"] = link(8, 16, 16)
    facts["pci"][3]["link"] = link(8, 16, 8)
    facts["pci"].append(device("0000:e1:00.0", "gpu", None, link=link(None, 16, 16, None)))
    return document(host, facts=facts, numa_slices=Report("unknown", findings=(NO_NODE,), before=numa(), after=numa()))


def hostile_hardware() -> dict[str, Any]:
    words = dict.fromkeys(
        ("name", "model", "serial", "pci_id", "state", "link_layer", "firmware", "manufacturer"), MARKUP
    )
    ends = ("0000:22:00.0", "0000:a1:00.0")
    return {
        "gpus": [{**words, "address": address, "nvlink_active": 4, "memory_mib": 1} for address in (*ends, MARKUP)],
        "nvlink": {"switches": 0, "pairs": [{"a": ends[0], "b": ends[1], "type": "NV4"}, dict.fromkeys("ab", MARKUP)]},
        "cpus": [{**words, "socket": 0}],
        "dimms": [{**words, "size_mib": 1024, "type": MARKUP}],
        "nvme": [{**words, "address": None}],
        "nics": [{**words, "address": "0000:23:00.0", "netdevs": [MARKUP]}],
        "bios": {"version": MARKUP, "date": MARKUP},
        "bmc": words,
        "system": {**words, "product": MARKUP},
    }


def hostile(name: str = HOSTILE) -> fleet.Document:
    """A host that puts markup wherever it can."""
    facts = host_facts(MARKUP)
    facts["cpu"]["model"] = facts["kernel"] = MARKUP
    facts["pci"][0].update(address=MARKUP, driver=MARKUP, device_id=MARKUP, vendor_id=MARKUP)
    facts["pci"][1]["path"] = [MARKUP, MARKUP, MARKUP]
    facts["disks"][0].update(name=MARKUP, mounts=[MARKUP], holders=[MARKUP])
    facts["hardware"] = hostile_hardware()
    step = Step(MARKUP, "file", MARKUP, MARKUP, "new\n" + MARKUP, MARKUP, MARKUP)
    run = Step(MARKUP, "run", MARKUP, MARKUP, MARKUP, MARKUP, MARKUP, argv=("echo", MARKUP))
    finding = Finding(MARKUP, "fail", MARKUP, MARKUP, Unknown(MARKUP), MARKUP, MARKUP, MARKUP)
    values = {MARKUP: MARKUP, "housekeeping_cpus": "0-1", "gpus": [{"index": MARKUP, "cpus": "2-7"}]}
    area = Report("drifted", done(step, run, status="planned", detail=MARKUP), (finding,), {MARKUP: 1}, values)
    found = fleet.normalise(report({MARKUP: area, "numa_slices": area}, name, facts=facts))
    assert found is not None
    return found


def sample() -> list[fleet.Document]:
    """One host in each state, and those that a page is judged by."""
    lost = document(
        "gpu-a03", mode="audit", xfs_volumes=Report("drifted", done(REMOUNT, status="planned"), (), XFS_OFF, XFS_OFF)
    )
    held = "disruptive step: allow it with xfs_storage_allow_risk: disruptive"
    return [
        document("gpu-a01"),
        document("gpu-a02", block_queue=Report("changed", done(RULES, SCHEDULER), (NOOP,), QUEUE_OFF, QUEUE)),
        lost,
        narrow_slot("gpu-a04"),
        document(
            "gpu-a05",
            xfs_volumes=Report(
                "blocked", done(REMOUNT, status="blocked", detail=held), (HAS_SIGNATURE,), XFS_OFF, XFS_OFF
            ),
        ),
        document(
            "gpu-a06",
            block_queue=Report(
                "rolled_back",
                done(RULES, status="undone") + done(SCHEDULER, status="failed", detail="[Errno 22] Invalid argument"),
                (REFUSED,),
                QUEUE_OFF,
                QUEUE_OFF,
            ),
        ),
        document(
            "gpu-a07",
            kernel_settings=Report(
                "pending_reboot", done(CMDLINE, status="waits", detail="true after the next boot"), (), KERNEL, KERNEL
            ),
        ),
        blank(
            "gpu-b01",
            unreachable("Failed to connect to the host via ssh: connect to host gpu-b01 port 22: No route to host"),
        ),
        blank(
            "gpu-b02",
            task_failed(
                "gpufleet.host.mysql_isolation : Wall the database",
                "mysql_isolation_memory_max: '12Q' is not possible; allowed: a size such as 16G",
                "gpufleet.host.mysql_isolation",
                False,
            ),
        ),
        hostile(),
    ]


def fleet_of(count: int) -> list[fleet.Document]:
    """A fleet of so many hosts, one in ten of them in trouble."""
    odd = sample()[1:9]
    documents = []
    for number in range(count):
        name = "gpu-%03d" % number
        if number % 10 == 3:
            documents.append({**odd[number // 10 % len(odd)], "host": name})
        else:
            documents.append(document(name, facts=host_facts(name, 128)))
    return documents


def run_of(documents: list[fleet.Document], finished: str | None = "2026-01-31T12:04:10Z") -> fleet.Document:
    about = {"run": RUN, "started": "2026-01-31T12:00:00Z", "finished": finished, "playbook": "site.yml"}
    return fleet.summary(about, documents, {d["host"]: "%d.json" % n for n, d in enumerate(documents)})
