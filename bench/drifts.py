# Copyright: (c) 2026, gpufleet.host contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hand-made changes, how each is healed, and who notices it. Nothing here touches anything but the target."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import contest
from bench.contest import DEVICE, OURS, PEER
from bench.target import Target
from lab.base import LabError, say

NOTICED, MISSED = "noticed", "missed"
# Where guest.sh simulates the files of the cpuset controller.
TRIM = "; ! type bench-trim >/dev/null 2>&1 || bench-trim"


@dataclass(frozen=True)
class Drift:
    """What someone did, as shell commands on the target, and the commands that heal it."""

    name: str
    hurt: str
    heal: str
    is_sysctl: bool = False
    # Whether the running system differs, or only what will be at the next boot.
    is_live: bool = True


@dataclass(frozen=True)
class Noticed:
    """Who saw one drift, in the order of COLUMNS; ``what`` is how ours names it."""

    drift: str
    by: Mapping[str, str]
    what: str


OUR_COLUMN = "gpufleet.host"
PEER_COLUMN = "stock modules"
READ_BACK_COLUMN = "stock + hand-written read-back"
FILE_ONLY_COLUMN = "stock, sysctl reload: false"
COLUMNS = (OUR_COLUMN, PEER_COLUMN, FILE_ONLY_COLUMN, READ_BACK_COLUMN)


def all_drifts(wanted: Mapping[str, Any], uuid: str) -> Iterator[Drift]:
    """At least one for each subject; where it is about a file, both sides' own files are changed alike."""
    point, swappiness = wanted["mount_point"], wanted["sysctls"]["vm.swappiness"]
    thp, scheduler = "/sys/kernel/mm/transparent_hugepage/enabled", "/sys/block/nvme0n1/queue/scheduler"
    sysctl_files = "/etc/sysctl.d/90-gpufleet-kernel.conf /etc/sysctl.d/80-peer.conf"
    rules = "/etc/udev/rules.d/99-gpufleet-block-queue.rules /etc/udev/rules.d/60-peer-io-scheduler.rules"
    mkfs = f"umount {point} && mkfs.xfs -q -f -m uuid={uuid} %s {DEVICE} && mount {point}"
    first = [f"{top}-node0-gpu0.slice" for top in (OURS.top, PEER.top)]
    both = " ".join(first)
    save, back = "mkdir -p /run/bench/saved && cp -p %s /run/bench/saved", "cp -p /run/bench/saved/%s %s"

    yield Drift("nothing (control)", "true", "true", is_live=False)
    yield Drift("sysctl -w vm.swappiness=61 by hand", "sysctl -qw vm.swappiness=61", f"sysctl -qw vm.swappiness={swappiness}",
                is_sysctl=True)  # fmt: skip
    yield Drift("a line of the sysctl file edited",
                f"{save % sysctl_files}; sed -i 's/^vm.swappiness *=.*/vm.swappiness = 61/' {sysctl_files}",
                "; ".join(back % (Path(file).name, file) for file in sysctl_files.split()), is_sysctl=True, is_live=False)  # fmt: skip
    yield Drift("a later sysctl.d file that wins at the next boot",
                "echo vm.swappiness=61 >/etc/sysctl.d/99-vendor.conf", "rm /etc/sysctl.d/99-vendor.conf", is_sysctl=True, is_live=False)  # fmt: skip
    yield Drift("huge pages changed live", f"echo always >{thp}", f"echo {wanted['transparent_hugepage']} >{thp}")
    yield Drift("scheduler changed live", f"echo mq-deadline >{scheduler}", f"echo {wanted['scheduler']} >{scheduler}")
    yield Drift("udev rules deleted", f"{save % rules}; rm {rules}",
                "; ".join(back % (Path(file).name, file) for file in rules.split()), is_live=False)  # fmt: skip
    # With the device named, mount(8) does not add the options of fstab.
    yield Drift(
        "remounted without noatime", f"mount -o remount,relatime {DEVICE} {point}", f"mount -o remount,noatime {point}"
    )
    yield Drift("noatime taken out of fstab", f"{save % '/etc/fstab'}; sed -i 's/noatime,//' /etc/fstab",
                back % ("fstab", "/etc/fstab"), is_live=False)  # fmt: skip
    yield Drift("made anew with another geometry", mkfs % "-d agcount=4",
                mkfs % f"-d agcount={wanted['agcount']} -l size={wanted['log_mib']}m")  # fmt: skip
    yield Drift("systemctl set-property --runtime AllowedCPUs",
                "; ".join(f"systemctl set-property --runtime {unit} AllowedCPUs=1" for unit in first),
                f"systemctl revert {both}; {_again(first)}")  # fmt: skip
    yield Drift("a drop-in that changes AllowedCPUs",
                "; ".join(f"mkdir -p /etc/systemd/system/{unit}.d; printf '[Slice]\\nAllowedCPUs=1\\n' "
                          f">/etc/systemd/system/{unit}.d/override.conf" for unit in first) + "; systemctl daemon-reload",
                "; ".join(f"rm -r /etc/systemd/system/{unit}.d" for unit in first) + "; systemctl daemon-reload")  # fmt: skip
    yield Drift("a slice stopped", f"systemctl stop {both}", f"systemctl start {both}")


def _again(units: list[str]) -> str:
    return f"systemctl daemon-reload; systemctl start {' '.join(units)}"


def who_notices(
    target: Target, inventory: Path, drifts: list[Drift], differences: Callable[[], list[str]]
) -> list[Noticed]:
    """Each drift in turn: done, looked at by all sides, healed."""
    rows: list[Noticed] = []
    for number, drift in enumerate(drifts):
        target.ssh(drift.hurt + TRIM)
        try:
            if bool(differences()) != drift.is_live:
                raise LabError(f"{drift.name}: the change did not come about as meant", hint="see bench/drifts.py")
            rows.append(_look(drift, inventory))
        finally:
            target.ssh(drift.heal + TRIM)
        say(f"  drift {number + 1}/{len(drifts)}: {drift.name}: "
            + ", ".join(f"{column} {rows[-1].by[column]}" for column in (OUR_COLUMN, PEER_COLUMN)))  # fmt: skip
    if any(rows[0].by[column] != MISSED for column in COLUMNS):
        raise LabError(f"a host in order is called drifted: {rows[0]}", hint="see .cache/bench/logs")
    return rows


def _look(drift: Drift, inventory: Path) -> Noticed:
    contest.run(OURS, "verify", inventory)
    ours = _ours(contest.newest_report())
    flagged = _flagged(PEER.playbooks["verify"], inventory)
    read_back = [name for name in flagged if name.endswith("was read back")]
    by = {
        OUR_COLUMN: _word(bool(ours)),
        PEER_COLUMN: _word(len(flagged) > len(read_back)),
        READ_BACK_COLUMN: _word(bool(flagged)),
    }
    by[FILE_ONLY_COLUMN] = by[PEER_COLUMN]
    if drift.is_sysctl:
        variants = _flagged(["bench/peer/sysctl_variants.yml", "--check"], inventory)
        by[FILE_ONLY_COLUMN] = _word("File only (reload false)" in variants)
    return Noticed(drift.name, {column: by[column] for column in COLUMNS}, ours)


def _ours(report: Mapping[str, Any]) -> str:
    """The first finding or step that says what is wrong, with the host's state; empty when there is none."""
    for area in report["areas"].values():
        ids = [finding["id"] for finding in area["findings"] if finding["level"] in ("warn", "fail", "block")]
        ids += [step["id"] for step in area["steps"]]
        if ids:
            return f"{ids[0]} ({'warning' if report['state'] == 'compliant' else report['state']})"
    return ""


def _flagged(playbook: Any, inventory: Path) -> list[str]:
    """Names of the tasks that report a change or a failure."""
    settings = {"ANSIBLE_STDOUT_CALLBACK": "ansible.posix.json", "ANSIBLE_DEPRECATION_WARNINGS": "0"}
    cost = contest.run_playbook(playbook, inventory, settings=settings, is_json=True)
    text = cost.log.read_text()
    plays = json.loads(text[text.index("{") : text.rindex("}") + 1])["plays"]
    return [
        task["task"]["name"]
        for play in plays
        for task in play["tasks"]
        if any(host.get("changed") or host.get("failed") for host in task["hosts"].values())
    ]


def _word(is_noticed: bool) -> str:
    return NOTICED if is_noticed else MISSED
