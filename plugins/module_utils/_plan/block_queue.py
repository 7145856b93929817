# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Block queues: which value each disk should have, and what keeps it from having it.

A setting is wanted live (in /sys/block/*/queue) and for good (in one udev rules file, so that it
holds over reboots, hotplug and ``change`` events).  Both are read and both are kept.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Dict, List, Mapping, Tuple

from .._engine.values import BadWant, Step, Unknown

RULES_FILE = "/etc/udev/rules.d/99-gpufleet-block-queue.rules"
SOURCE = "kernel Documentation/block/switching-sched and Documentation/ABI/stable/sysfs-block"

# Order matters: switching the scheduler resets nr_requests (block/elevator.c, block/blk-mq-sched.c).
SETTINGS = ("scheduler", "nr_requests", "read_ahead_kb", "rq_affinity", "nomerges")

WHY = {
    "scheduler": "NVMe has deep queues of its own; a scheduler in front of them only adds latency",
    "nr_requests": "how many requests the queue takes before a writer waits",
    "read_ahead_kb": "sequential readers of training data gain from read-ahead, random readers lose",
    "rq_affinity": "which CPU completes a request",
    "nomerges": "how much work the kernel spends on looking for merges",
}

# How udev recognises a class.  Partitions, loop, zram, dm, md and CD drives match none of them.
CLASS_MATCH = {
    "nvme": 'KERNEL=="nvme[0-9]*n[0-9]*"',
    "ssd": 'KERNEL=="sd*[!0-9]", ATTR{queue/rotational}=="0"',
    "hdd": 'KERNEL=="sd*[!0-9]", ATTR{queue/rotational}=="1"',
    "virtual": 'KERNEL=="vd*[!0-9]|xvd*[!0-9]"',
}
_CLASS_NAME = {"nvme": r"^nvme\d+n\d+$", "sd": r"^sd[a-z]+$", "virtual": r"^(vd|xvd)[a-z]+$"}

# ``noop`` belonged to the single-queue layer, gone since kernel 5.0; none is its successor.
OLD_NAMES = {"noop": "none"}

_LIMITS: Dict[str, Tuple[int, int, str]] = {
    "nr_requests": (4, 65536, "a number from 4 (BLKDEV_MIN_RQ, block/blk.h) to 65536"),
    "read_ahead_kb": (0, 1048576, "a number of KiB from 0 to 1048576, a multiple of 4 (pages)"),
    "rq_affinity": (0, 2, "0, 1 or 2"),
    "nomerges": (0, 2, "0, 1 or 2"),
}


def class_of(name: str, rotational: Any) -> str:
    """The device class of a disk by its kernel name, empty for what we never touch."""
    if re.match(_CLASS_NAME["nvme"], name):
        return "nvme"
    if re.match(_CLASS_NAME["virtual"], name):
        return "virtual"
    if re.match(_CLASS_NAME["sd"], name) and rotational is not None:
        return "hdd" if rotational else "ssd"
    return ""


def check_want(want: Mapping[str, Any]) -> None:
    """Refuse what no host could satisfy."""
    for index, rule in enumerate(want["rules"] or []):
        place = "rules[%d]" % index
        if bool(rule.get("class")) == bool(rule.get("id")):
            raise BadWant(place, {key: rule.get(key) for key in ("class", "id")}, "exactly one of class and id")
        if rule.get("id") and re.match(r"^(/dev/)?(sd[a-z]+|nvme\d+n\d+|vd[a-z]+)$", rule["id"]):
            raise BadWant(place + ".id", rule["id"], "a stable id (WWN, serial or by-id name), since kernel names move")
        if rule.get("id") and not re.match(r"^[\w.:+/@-]+$", rule["id"]):
            raise BadWant(place + ".id", rule["id"], "letters, digits and _ . : + / @ -")
        scheduler = rule.get("scheduler")
        if scheduler is not None and not re.match(r"^[a-z][a-z0-9-]*$", scheduler):
            raise BadWant(place + ".scheduler", scheduler, "a scheduler name such as none, mq-deadline, kyber or bfq")
        for setting, (low, high, allowed) in _LIMITS.items():
            value = rule.get(setting)
            if value is not None and not (low <= value <= high and (setting != "read_ahead_kb" or value % 4 == 0)):
                raise BadWant("%s.%s" % (place, setting), value, allowed)


def wanted_for(want: Mapping[str, Any], disk: Mapping[str, Any]) -> Dict[str, str]:
    """What is wanted of one disk: its class's rules first, then those that name it; the later wins."""
    values: Dict[str, str] = {}
    if not disk["class"] or disk["multipath_member"] or disk["hidden"]:
        return values
    for by in ("class", "id"):
        for rule in want["rules"] or []:
            if by == "class" and rule.get("class") != disk["class"]:
                continue
            if by == "id" and not (rule.get("id") and bare_id(rule["id"]) in disk["ids"]):
                continue
            for setting in SETTINGS:
                if rule.get(setting) is not None:
                    values[setting] = OLD_NAMES.get(rule[setting], str(rule[setting]))
    return values


def render_rules(want: Mapping[str, Any]) -> str:
    """The udev rules file, empty when nothing is wanted."""
    rules: List[str] = []
    for by in ("class", "id"):
        for rule in want["rules"] or []:
            sets = [
                'ATTR{queue/%s}="%s"' % (setting, OLD_NAMES.get(rule[setting], rule[setting]))
                for setting in SETTINGS
                if rule.get(setting) is not None
            ]
            if rule.get(by) and sets:
                matches = [CLASS_MATCH[rule["class"]]] if by == "class" else _id_matches(rule["id"])
                rules += [", ".join([match] + sets) for match in matches]
    if not rules:
        return ""
    head = [
        "# Managed by gpufleet.host.io_scheduler: changes made here are put back.",
        'ACTION!="add|change", GOTO="gpufleet_block_queue_end"',
        'SUBSYSTEM!="block", GOTO="gpufleet_block_queue_end"',
        'ENV{DEVTYPE}!="disk", GOTO="gpufleet_block_queue_end"',
        'ENV{DM_MULTIPATH_DEVICE_PATH}=="1", GOTO="gpufleet_block_queue_end"',
    ]
    return "\n".join(head + rules + ['LABEL="gpufleet_block_queue_end"', ""])


def plan(want: Mapping[str, Any], have: Mapping[str, Any]) -> List[Step]:
    """The rules file first, so that no event in between undoes the live values; then each disk."""
    if want["rules"] is None:
        return []
    steps: List[Step] = []
    wanted_text = render_rules(want) or None
    text = have["rules_file"]
    if not isinstance(text, Unknown) and text != wanted_text:
        why = "settings written to sysfs are lost at the next boot, hotplug or change event"
        steps.append(Step("block_queue.rules", "file", RULES_FILE, text, wanted_text, why, "udev(7)", needs="reload"))
        steps.append(_reload())
    for disk in disks(have):
        for setting, value in wanted_for(want, disk).items():
            if _differs(disk, setting, value, steps):
                steps.append(_queue_step(disk, _own_link(disk, have), setting, value))
    return steps


def adopt(have: Mapping[str, Any]) -> Dict[str, Any]:
    """Rules that describe what the disks have now: by id where the want names the disk or its class
    does not agree, else by class."""
    by_class: List[Dict[str, Any]] = []
    by_id: Dict[str, Dict[str, Any]] = {}
    for name in CLASS_MATCH:
        members = [disk for disk in disks(have) if disk["class"] == name]
        shared = _shared([_live(disk, named=False) for disk in members])
        if shared:
            by_class.append(dict({"class": name}, **shared))
        for disk in members:
            for setting, value in _live(disk, named=True).items():
                by_id.setdefault(disk["named"][setting], {})[setting] = value
            for setting, value in _live(disk, named=False).items():
                if setting not in shared:
                    by_id.setdefault(disk["id"], {})[setting] = value
    return {"rules": by_class + [dict({"id": name}, **values) for name, values in by_id.items()]}


def named_by(want: Mapping[str, Any], disk: Mapping[str, Any]) -> Dict[str, str]:
    """For each setting of a disk that a rule wants by id: that id."""
    named: Dict[str, str] = {}
    for rule in want["rules"] or []:
        if rule.get("id") and bare_id(rule["id"]) in disk["ids"]:
            named.update({setting: rule["id"] for setting in SETTINGS if rule.get(setting) is not None})
    return named


def _shared(values: List[Dict[str, Any]]) -> Dict[str, Any]:
    """What all of some disks have in common."""
    first = values[0] if values else {}
    return {key: value for key, value in first.items() if all(other.get(key) == value for other in values)}


def _live(disk: Mapping[str, Any], named: bool) -> Dict[str, Any]:
    return {
        setting: value.active if setting == "scheduler" else int(value)
        for setting, value in disk["queue"].items()
        if not isinstance(value, Unknown) and (setting in disk["named"]) == named
    }


def disks(have: Mapping[str, Any]) -> List[Mapping[str, Any]]:
    """The disks that were seen, none where they could not be."""
    return [] if isinstance(have["disks"], Unknown) else list(have["disks"])


def bare_id(name: str) -> str:
    """A stable name without its folder."""
    return name[len("/dev/disk/by-id/") :] if name.startswith("/dev/disk/by-id/") else name


def _id_matches(name: str) -> List[str]:
    """Udev matches for a WWN, a serial or a by-id name; rules know no "or", so a bare word takes a line for each."""
    word = bare_id(name)
    if re.match(r"^(0x[0-9a-f]+|eui\.[0-9a-f]+|nvme\.[\w.-]+|naa\.[0-9a-f]+|uuid\.[\w-]+)$", word):
        return ['ENV{ID_WWN}=="%s"' % word]
    link = "/dev/disk/by-id/" + word
    by_link = 'ENV{DEVLINKS}=="%s|%s *|* %s|* %s *"' % ((link,) * 4)
    return [by_link] if name == link else ['ENV{ID_SERIAL}=="%s"' % word, 'ENV{ID_SERIAL_SHORT}=="%s"' % word, by_link]


def _differs(disk: Mapping[str, Any], setting: str, value: str, steps: List[Step]) -> bool:
    live = disk["queue"].get(setting)
    if live is None or isinstance(live, Unknown):
        return False
    if setting == "nr_requests" and any(step.id == "block_queue.%s.scheduler" % disk["name"] for step in steps):
        return True
    return bool((live.active if setting == "scheduler" else live) != value)


def _own_link(disk: Mapping[str, Any], have: Mapping[str, Any]) -> str:
    """The first by-id name that is this disk's alone: two paths to one disk share theirs."""
    others = {name for other in disks(have) if other is not disk for name in other["links"]}
    return next((name for name in disk["links"] if name not in others), "")


def _queue_step(disk: Mapping[str, Any], link: str, setting: str, value: str) -> Step:
    live = disk["queue"][setting]
    step = Step(
        "block_queue.%s.%s" % (disk["name"], setting),
        "value",
        "/sys/block/%s/queue/%s" % (disk["name"], setting),
        live.active if setting == "scheduler" else live,
        value,
        WHY[setting],
        SOURCE,
        disk=link,
        part=disk["name"],
    )
    depth = disk["nr_requests"]
    if setting != "scheduler" or isinstance(depth, Unknown):
        return step
    # Switching back resets nr_requests as well, so the way back sets it again.
    then = (("/sys/block/%s/queue/nr_requests" % disk["name"], depth),)
    return replace(step, undo=replace(step, id="undo." + step.id, before=step.after, after=step.before, then=then))


def _reload() -> Step:
    argv = ("udevadm", "control", "--reload")
    why = "udev reads changed rules by itself only after some seconds"
    undo = Step(
        "undo.block_queue.reload", "run", "udev rules", "read again", "as last read", why, "udevadm(8)", argv=argv
    )
    return Step(
        "block_queue.reload",
        "run",
        "udev rules",
        "as last read",
        "read again",
        why,
        "udevadm(8)",
        "reload",
        argv=argv,
        undo=undo,
    )
