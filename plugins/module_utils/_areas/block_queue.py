# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The area block_queue: joins what is read of disks with what is decided about them."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping

from .._engine.engine import Area
from .._engine.host import Host
from .._engine.values import Unknown
from .._observe import block
from .._plan import block_queue, block_queue_findings

SPEC: Dict[str, Any] = {
    "rules": {
        "type": "list",
        "elements": "dict",
        "options": {
            "class": {"type": "str", "choices": ["nvme", "ssd", "hdd", "virtual"]},
            "id": {"type": "str"},
            "scheduler": {"type": "str"},
            "nr_requests": {"type": "int"},
            "read_ahead_kb": {"type": "int"},
            "rq_affinity": {"type": "int"},
            "nomerges": {"type": "int"},
        },
    },
}


def observe(host: Host, want: Mapping[str, Any]) -> Dict[str, Any]:
    """The disks that rules can be about, our rules file, and the rules of others that come after it."""
    names = block.disk_names(host)
    name_of_ours = block_queue.RULES_FILE.rsplit("/", 1)[1]
    foreign = block.udev_rule_lines(host, frozenset(_settings(want)))
    return {
        "disks": names if isinstance(names, Unknown) else [_disk(host, want, n) for n in names if _may_be_ours(n)],
        "rules_file": host.read(block_queue.RULES_FILE) if host.exists("/etc") else Unknown("/etc cannot be seen"),
        "foreign": [row for row in foreign if row[0].rsplit("/", 1)[1] > name_of_ours],
    }


def _settings(want: Mapping[str, Any]) -> List[str]:
    return [s for s in block_queue.SETTINGS if any(rule.get(s) is not None for rule in want["rules"] or [])]


def _may_be_ours(name: str) -> bool:
    return block_queue.class_of(name, rotational=False) != ""


def _disk(host: Host, want: Mapping[str, Any], name: str) -> Dict[str, Any]:
    disk = block.disk(host, name)
    about: Dict[str, Any] = {
        "name": name,
        "class": block_queue.class_of(name, disk.rotational),
        "ids": [word for word in disk.ids + (disk.wwn, disk.serial, disk.serial_short) if word],
        "links": disk.ids,
        "id": (disk.ids or (disk.wwn or disk.serial or name,))[0],
        "multipath_member": disk.multipath_member,
        "hidden": disk.hidden,
        "queue": {},
    }
    about["named"] = block_queue.named_by(want, about)
    settings = [setting for setting in block_queue.SETTINGS if setting in block_queue.wanted_for(want, about)]
    about["nr_requests"] = block.queue_values(host, name, ["nr_requests"])["nr_requests"]
    about["queue"] = block.queue_values(host, name, settings)
    return about


AREA = Area(
    name="block_queue",
    role="io_scheduler",
    spec=SPEC,
    check_want=block_queue.check_want,
    observe=observe,
    plan=block_queue.plan,
    judge=block_queue_findings.judge,
    adopt=block_queue.adopt,
)
