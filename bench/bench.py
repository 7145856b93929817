# Copyright: (c) 2026, gpufleet.host contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measures the collection against a playbook of stock modules, side by side. See README.md.

make bench                  all of it, in less than 20 minutes on two cores
make bench ARGS=--quick     1 and 10 hosts, fewer repeats
make bench ARGS=--pages     the pages of 1,000 hosts alone, in two minutes and without root
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml

from bench import contest, drifts, pages, result
from bench.contest import OURS, PEER, Cost
from bench.target import BENCH, STATE, Target, find_gpus
from lab.base import LabError, say

# Hosts -> repeats. Only those on the most hosts are fewer where the machine is slow; the table tells how many there were.
LARGEST = 50
PLAN = {1: 5, 10: 3, LARGEST: 3}
BUDGET_S = 19 * 60
QUICK = {1: 3, 10: 2}
MORE_REPEATS = 3
PAYLOAD_REPEATS = 9
PAYLOADS = "/root/.bench-payloads"
HURT = "sysctl -qw vm.swappiness=61"
# Both sides have to do something at their first run.
RESET = """echo always >/sys/kernel/mm/transparent_hugepage/enabled
for disk in nvme0n1 nvme1n1; do echo mq-deadline >/sys/block/$disk/queue/scheduler; done
mountpoint -q {point} && umount {point}
wipefs --quiet --all {device}; rm -rf {point}; udevadm trigger --action=change --settle $(readlink -f {device}) || true
"""
Run = Callable[[], Cost]


class Bench:
    """One measurement: everything is compared with what was measured beside it."""

    def __init__(self, words: argparse.Namespace) -> None:
        self.words = words
        self.plan = QUICK if words.quick else PLAN
        self.wanted = yaml.safe_load((BENCH / "wanted.yml").read_text())
        self.target = Target(self.wanted)
        self.gpus = find_gpus()
        self.uuid = ""
        self.times: dict[str, dict[str, list[Cost]]] = {}
        self.started = time.monotonic()
        self.pages: dict[str, Any] = {}

    def measure(self) -> dict[str, Any]:
        contest.copy_collection()
        self.target.start()
        for what in self.target.simulated:
            say(f"simulated on this machine: {what}")
        self._bring_to_state()
        payloads = self._payloads()
        self.pages = pages.measure()
        for hosts, repeats in self.plan.items():
            if hosts != LARGEST:
                self._measure_hosts(hosts, repeats)
        tuned = self._tuned()
        noticed = self._drifts()
        # The longest is last, and repeated as often as the time allows.
        if LARGEST in self.plan:
            self._measure_hosts(LARGEST, self.plan[LARGEST])
        self._assert_state("at the end")
        return {
            "format": 1,
            "quick": bool(self.words.quick),
            "simulated": self.target.simulated,
            "runs": {hosts: {name: [_plain(cost) for cost in costs] for name, costs in rows.items()}
                     for hosts, rows in self.times.items()},
            "payloads": payloads,
            "pages": self.pages,
            "tuned": tuned,
            "noticed": [asdict(row) for row in noticed],
        }  # fmt: skip

    def inventory(self, hosts: int) -> Path:
        return contest.write_inventory(hosts, contest.variables(self.wanted, self.gpus, self.uuid), self.target)

    # --- parts

    def _bring_to_state(self) -> None:
        """Each side brings a host that is far off to the end state, and the independent script agrees."""
        say("each side brings the target to the end state")
        reset = RESET.format(point=self.wanted["mount_point"], device=contest.DEVICE)
        self.target.ssh(reset)
        cost = contest.run(OURS, "converge", self.inventory(1), "-e", "xfs_storage_allow_risk=destructive")
        self._expect(cost, OURS.top, "after its first run")
        # The filesystem gets the same name from both, so that fstab says the same.
        self.uuid = self.target.ssh(f"blkid -s UUID -o value {contest.DEVICE}").stdout.strip()
        self.target.ssh(reset + "sed -i '/xfs/d' /etc/fstab; systemctl daemon-reload")
        cost = contest.run(PEER, "converge", self.inventory(1))
        self._expect(cost, PEER.top, "after its first run")
        contest.run(OURS, "converge", self.inventory(1))
        contest.run(PEER, "converge", self.inventory(1))
        for who in (OURS, PEER):
            cost = contest.run(who, "converge", self.inventory(1))
            if cost.changed or cost.rc:
                raise LabError(f"a second run of {who.name} still changes something", hint=f"read {cost.log}")
        self._assert_state("before measuring")

    def _measure_hosts(self, hosts: int, repeats: int) -> None:
        inventory = self.inventory(hosts)
        rows = self.times.setdefault(str(hosts), {})
        runs: dict[str, Run] = {
            "verify gpufleet.host": lambda: contest.run(OURS, "verify", inventory),
            "verify stock": lambda: contest.run(PEER, "verify", inventory),
            "converge gpufleet.host": lambda: contest.run(OURS, "converge", inventory),
        }
        # What is the same work for the stock side, and what aliases of one host cannot do at once, is measured on 1.
        more: dict[str, Run] = {
            "converge stock": lambda: contest.run(PEER, "converge", inventory),
            "verify stock, no read-back": lambda: contest.run(PEER, "habit", inventory),
            "repair gpufleet.host": lambda: self._repair(OURS, inventory),
            "repair stock": lambda: self._repair(PEER, inventory),
        }
        for repeat in range(repeats):
            for name, run in {**runs, **(more if hosts == 1 and repeat < MORE_REPEATS else {})}.items():
                cost = run()
                if not name.startswith("repair") and (cost.changed or cost.rc):
                    raise LabError(f"{name}: a host in order was changed or refused", hint=f"read {cost.log}")
                rows.setdefault(name, []).append(cost)
            say(
                f"  {hosts} hosts, {repeat + 1}/{repeats}: verify gpufleet.host "
                f"{rows['verify gpufleet.host'][-1].wall_s:.1f} s, stock {rows['verify stock'][-1].wall_s:.1f} s"
            )
            a_round = sum(costs[-1].wall_s for costs in rows.values())
            is_late = time.monotonic() - self.started + a_round > BUDGET_S
            if hosts == LARGEST and is_late and not self.words.full:
                break

    def _repair(self, who: contest.Contestant, inventory: Path) -> Cost:
        """One sysctl was changed by hand."""
        self.target.ssh(HURT)
        cost = contest.run(who, "converge", inventory)
        self._expect(cost, who.top, "after a repair")
        if not cost.changed:
            raise LabError(f"{who.name} did not repair the drift", hint=f"read {cost.log}")
        return cost

    def _payloads(self) -> dict[str, Any]:
        """The modules by themselves, as they were sent."""
        say("measuring the modules by themselves on the target")
        found: dict[str, Any] = {}
        for who in (OURS, PEER):
            self.target.ssh(f"rm -rf {PAYLOADS}")
            keep = {"ANSIBLE_KEEP_REMOTE_FILES": "1", "ANSIBLE_PIPELINING": "0", "ANSIBLE_REMOTE_TMP": PAYLOADS}
            contest.run(who, "verify", self.inventory(1), settings=keep)
            repeats = PAYLOAD_REPEATS if who is OURS else 1
            done = self.target.ssh(f"python3 - {PAYLOADS} {repeats}", text=(BENCH / "payload.py").read_text())
            found[who.top] = json.loads(done.stdout)
        self.target.ssh(f"rm -rf {PAYLOADS}")
        return found

    def _tuned(self) -> dict[str, Any]:
        """tuned-adm verify for the part it covers, beside an audit, with tuned's daemon running only for its turn."""
        say("measuring tuned-adm verify")
        inventory = self.inventory(1)
        start = "echo bench >/etc/tuned/active_profile; echo manual >/etc/tuned/profile_mode; systemctl start tuned"
        costs: dict[str, list[Cost]] = {"audit": [], "tuned": []}
        for _repeat in range(3):
            costs["audit"].append(contest.run(OURS, "verify", inventory))
            self.target.ssh(start)
            try:
                costs["tuned"].append(contest.run_playbook(["bench/peer/tuned.yml"], inventory, settings={}))
                if costs["tuned"][-1].rc:
                    raise LabError(
                        "tuned-adm verify calls a host in order wrong", hint=f"read {costs['tuned'][-1].log}"
                    )
            finally:
                self.target.ssh("systemctl stop tuned; rm -f /etc/tuned/active_profile /etc/tuned/profile_mode")
        return {name: [_plain(cost) for cost in rows] for name, rows in costs.items()}

    def _drifts(self) -> list[drifts.Noticed]:
        rows = list(drifts.all_drifts(self.wanted, self.uuid))
        say(f"{len(rows) - 1} hand-made changes: who notices?")
        return drifts.who_notices(self.target, self.inventory(1), rows, self._differences)

    # --- proof

    def _assert_state(self, when: str) -> None:
        for who in (OURS, PEER):
            self._compare(who.top, when)

    def _expect(self, cost: Cost, top: str, when: str) -> None:
        if cost.rc:
            raise LabError(f"{top} {when}: ansible-playbook ended with {cost.rc}", hint=f"read {cost.log}")
        self._compare(top, when)

    def _differences(self) -> list[str]:
        """Of either side's part of the end state."""
        return [
            row for who in (OURS, PEER) for row in contest.check_state(self.target, who.top, self.wanted, self.gpus)
        ]

    def _compare(self, top: str, when: str) -> None:
        differences = contest.check_state(self.target, top, self.wanted, self.gpus)
        if differences:
            raise LabError(f"{top} {when}: the end state is not there:\n    " + "\n    ".join(differences),
                           hint="see bench/check_state.py and .cache/bench/logs")  # fmt: skip


def _plain(cost: Cost) -> dict[str, Any]:
    return {name: value for name, value in asdict(cost).items() if name != "log"}


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="bench.py", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="1 and 10 hosts, fewer repeats")
    size.add_argument("--full", action="store_true", help="50 hosts three times, however long that takes")
    size.add_argument("--pages", action="store_true", help="the pages of 1,000 hosts alone, without root")
    words = parser.parse_args()
    if words.pages:
        return _tell_pages()
    if os.geteuid() != 0:
        os.execvp("sudo", ["sudo", "--preserve-env", sys.executable, "-m", "bench.bench", *sys.argv[1:]])
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    signal.signal(signal.SIGTERM, _interrupt)
    bench: Bench | None = None
    try:
        bench = Bench(words)
        measured = bench.measure()
    except LabError as error:
        print(f"bench: {error}\nnext: {error.hint}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("bench: stopped", file=sys.stderr)
        return 130
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if bench:
            bench.target.stop()
    return _tell(measured)


def _tell(measured: Mapping[str, Any]) -> int:
    summed = result.summarise(measured)
    path = STATE / "results.json"
    path.write_text(json.dumps({**measured, "summary": summed}, indent=1) + "\n")
    text = result.table(measured, summed)
    (STATE / "results.md").write_text(text)
    print(text)
    print(f"JSON: {path}")
    return _tell_missed(summed)


def _tell_pages() -> int:
    try:
        figures = result.page_figures(pages.measure())
    except LabError as error:
        print(f"bench: {error}\nnext: {error.hint}", file=sys.stderr)
        return 1
    print(result.page_table(figures))
    return _tell_missed({"figures": figures})


def _tell_missed(summed: Mapping[str, Any]) -> int:
    missed = result.missed(summed)
    for line in missed:
        print(f"bench: not met: {line}", file=sys.stderr)
    return 1 if missed else 0


def _interrupt(_signal: int, _frame: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
