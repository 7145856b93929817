# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Block queues: what keeps a disk from having its wanted value, what cannot be seen, and who else sets it."""

from __future__ import annotations

import fnmatch
import re
from typing import Any, List, Mapping

from .._engine.values import Finding, Unknown, as_unknown, nothing_wanted
from .block_queue import OLD_NAMES, RULES_FILE, SOURCE, bare_id, disks, wanted_for


def judge(want: Mapping[str, Any], have: Mapping[str, Any]) -> List[Finding]:
    """What blocks a change, what cannot be seen, and who else sets the same values."""
    if want["rules"] is None:
        return [nothing_wanted("block_queue", "io_scheduler")]
    findings: List[Finding] = []
    if isinstance(have["disks"], Unknown):
        findings.append(_unseen("disks", "the list of disks", have["disks"]))
    if isinstance(have["rules_file"], Unknown):
        findings.append(_unseen(RULES_FILE, "the rules file", have["rules_file"]))
    for disk in disks(have):
        findings += _judge_disk(want, disk)
    findings += _judge_rules(want, have)
    findings += [_foreign(path, number, line, _wins(want, have, line)) for path, number, line in have["foreign"]]
    return findings


def _judge_disk(want: Mapping[str, Any], disk: Mapping[str, Any]) -> List[Finding]:
    findings: List[Finding] = []
    for setting, value in wanted_for(want, disk).items():
        live = disk["queue"].get(setting)
        subject = "%s %s" % (disk["name"], setting)
        if live is None or isinstance(live, Unknown):
            findings.append(_unseen(subject, setting, as_unknown(live, "not shown")))
        elif setting == "scheduler" and value not in live.offered:
            findings.append(
                Finding(
                    "block_queue.scheduler-not-offered", "block", subject, value, "offered: " + ", ".join(live.offered),
                    "the kernel does not offer this scheduler for the device, so it could not hold after a boot either",
                    "set io_scheduler_rules to one of %s, or load its module first" % ", ".join(live.offered),
                    SOURCE, ("block_queue.rules", "block_queue.reload", "block_queue.%s." % disk["name"]),
                )
            )  # fmt: skip
    return findings


def _judge_rules(want: Mapping[str, Any], have: Mapping[str, Any]) -> List[Finding]:
    findings: List[Finding] = []
    for index, rule in enumerate(want["rules"]):
        subject = "rules[%d]" % index
        if rule.get("scheduler") in OLD_NAMES:
            new = OLD_NAMES[rule["scheduler"]]
            findings.append(
                Finding(
                    "block_queue.old-name", "info", subject, rule["scheduler"], new,
                    "%s belonged to the single-queue block layer; %s is what it is called now"
                    % (rule["scheduler"], new),
                    "write scheduler: %s" % new, SOURCE,
                )
            )  # fmt: skip
        matching = [disk for disk in disks(have) if rule.get("id") and bare_id(rule["id"]) in disk["ids"]]
        if rule.get("id") and not matching and not isinstance(have["disks"], Unknown):
            findings.append(_no_such_disk(subject, rule["id"]))
        findings += [_multipath(subject, disk["name"]) for disk in matching if disk["multipath_member"]]
    return findings


def _no_such_disk(subject: str, name: str) -> Finding:
    return Finding(
        "block_queue.no-such-disk", "warn", subject, name, "no disk with this WWN, serial or by-id name",
        "the rule waits for the disk; if the id is wrong it will never apply",
        "ls -l /dev/disk/by-id; udevadm info /dev/DISK shows ID_WWN and ID_SERIAL", "udev(7)",
    )  # fmt: skip


def _multipath(subject: str, name: str) -> Finding:
    return Finding(
        "block_queue.multipath-member", "info", subject, "a disk of its own", "%s is a path of a multipath device" % name,
        "queue settings belong to the multipath device, not to its paths, so it is left alone",
        "name no path in io_scheduler_rules; set device options in /etc/multipath.conf", "multipath.conf(5)",
    )  # fmt: skip


def _unseen(subject: str, what: str, reason: Unknown) -> Finding:
    return Finding(
        "block_queue.unseen", "warn", subject, "to be readable", reason,
        "%s cannot be seen, so it can neither be called right nor wrong" % what,
        "ls -l /sys/block/*/queue /etc/udev/rules.d", SOURCE,
    )  # fmt: skip


def _wins(want: Mapping[str, Any], have: Mapping[str, Any], line: str) -> bool:
    """Whether a later rule gives one of our disks another value; what a program of it writes is not known."""
    patterns = [names.split("|") for names in _KERNEL.findall(line)]
    values = _SETS.findall(line)
    for disk in disks(have):
        wanted = wanted_for(want, disk)
        is_meant = all(any(fnmatch.fnmatchcase(disk["name"], name) for name in names) for names in patterns)
        if is_meant and (any(wanted.get(key, value) != value for key, value in values) or (wanted and not values)):
            return True
    return False


# As udev(7) writes them: a match on the kernel's name, and a value that is given ("=" and ":=", not "==").
_KERNEL = re.compile(r'\bKERNEL=="([^"]*)"')
_SETS = re.compile(r'ATTR\{(?:queue|bdi)/([a-z_]+)\}\s{0,40}:?=\s{0,40}"([^"]*)"')


def _foreign(path: str, number: int, line: str, wins: bool) -> Finding:
    return Finding(
        "block_queue.foreign-owner", "fail" if wins else "warn", "%s:%d" % (path, number), "one owner", line,
        "this rule is read after ours and sets the same attribute, so it wins at each boot and event",
        "remove the line, or leave the attribute out of io_scheduler_rules", "udev(7)",
    )  # fmt: skip
