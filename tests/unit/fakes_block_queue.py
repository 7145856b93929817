# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host with two NVMe disks, a hard disk, a loop device and a multipath path, queues as Linux shows them."""

from __future__ import annotations

from pathlib import Path
from typing import Sequence

from fakes import FakeHost, Program

from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import Result

NVME_OFFERS = ("none", "mq-deadline", "kyber")


def brackets(active: str, offers: Sequence[str]) -> str:
    return " ".join("[%s]" % name if name == active else name for name in offers)


class QueueHost(FakeHost):
    def commands(self) -> dict[str, Program]:
        return {"udevadm": lambda argv, stdin: Result(0, "", "")}

    def kernel(self, path: str, text: str) -> str:
        if not path.endswith("/queue/scheduler"):
            return text + "\n"
        # As block/elevator.c: a switch gives the queue its default depth again.
        self.put(path.replace("scheduler", "nr_requests"), "1023\n" if text == "none" else "256\n")
        return brackets(text, NVME_OFFERS) + "\n"

    def add_disk(self, name: str, number: str, active: str = "none", rotational: str = "0", **ids: str) -> None:
        base = "/sys/block/%s/" % name
        values = {"scheduler": brackets(active, NVME_OFFERS), "nr_requests": "1023", "read_ahead_kb": "128"}
        values.update({"rq_affinity": "1", "nomerges": "0", "rotational": rotational})
        for key, value in values.items():
            self.put(base + "queue/" + key, value + "\n")
        self.put(base + "dev", number + "\n")
        self.put(base + "size", "4194304\n")
        rows = ["E:%s=%s" % (key, value) for key, value in ids.items()]
        rows += ["S:disk/by-id/%s" % value.lower() for value in ids.values()]
        self.put("/run/udev/data/b" + number, "\n".join(rows) + "\n")
        for value in ids.values():
            link = Path(self.root + "/dev/disk/by-id") / value.lower()
            link.parent.mkdir(parents=True, exist_ok=True)
            link.unlink(missing_ok=True)
            link.symlink_to("../../" + name)


def make(root: Path) -> QueueHost:
    host = QueueHost(root)
    host.put("/etc/hostname", "gpu01\n")
    host.add_disk("nvme0n1", "259:0", ID_WWN="eui.0001", ID_SERIAL="MODEL_S0", ID_SERIAL_SHORT="S0")
    host.add_disk("nvme1n1", "259:1", active="mq-deadline", ID_WWN="eui.0002", ID_SERIAL="MODEL_S1")
    host.add_disk("sda", "8:0", active="mq-deadline", rotational="1", ID_WWN="0x5000c500a1b2c3d4")
    host.add_disk("sdb", "8:16", active="mq-deadline", ID_WWN="0x5000c500ffffffff")
    host.put("/sys/block/sdb/holders/dm-0/dev", "253:0\n")
    host.put("/sys/block/dm-0/dm/uuid", "mpath-3600a0b80\n")
    host.put("/sys/block/loop0/queue/scheduler", "[none] mq-deadline\n")
    return host
