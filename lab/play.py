# Copyright: (c) 2026, gpufleet.host contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Playbooks run on the lab as people run them, and what they report."""

from __future__ import annotations

import json
import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.base import REPO
from lab.hosts import GPU_HOST

ARTIFACTS = REPO / "artifacts/molecule"
NAME = GPU_HOST.name


@dataclass(frozen=True)
class Run:
    """A run of a playbook: exit status, what it printed, the report of each host."""

    rc: int
    output: str
    reports: dict[str, dict[str, Any]]

    @property
    def report(self) -> dict[str, Any]:
        return self.reports[NAME]

    def not_as_wanted(self) -> set[tuple[str, str]]:
        """(area, target) of each step, and (area, id subject) of each finding above info, but for BUILT_IN."""
        found: set[tuple[str, str]] = set()
        for name, area in self.report["areas"].items():
            found.update((name, step["target"]) for step in area["steps"])
            found.update((name, "%(id)s %(subject)s" % f) for f in area["findings"] if f["level"] != "info")
        return found - BUILT_IN

    def subjects(self, finding_id: str) -> set[tuple[str, str]]:
        """(area, subject) of each finding of this kind."""
        areas = self.report["areas"].items()
        return {
            (name, finding["subject"])
            for name, area in areas
            for finding in area["findings"]
            if finding["id"] == finding_id
        }

    def interrupted(self) -> set[tuple[str, str]]:
        """(area, run) of each run that the report calls cut off."""
        return self.subjects("engine.interrupted-run")


# What the audit always says of the lab: it has a slot of eight lanes and one that tells no NUMA node, on purpose.
BUILT_IN = {
    ("platform", "platform.link-width 0000:61:00.0"),
    ("platform", "platform.numa-unknown 0000:01:00.0"),
}


def environment(run: str, artifacts: Path) -> dict[str, str]:
    """What a playbook is run with; ``run`` is what its artifacts are called."""
    return {
        **os.environ,
        "ANSIBLE_CONFIG": str(REPO / "ansible.cfg"),
        "ANSIBLE_COLLECTIONS_PATH": str(REPO / ".cache/collections"),
        "ANSIBLE_INVENTORY": str(REPO / "inventories/lab"),
        "GPUFLEET_ARTIFACTS": str(artifacts),
        "GPUFLEET_RUN": run,
    }


def play(playbook: str, name: str, *args: str, artifacts: Path = ARTIFACTS) -> Run:
    """Run a playbook on the lab; ``name`` and the time are what its artifacts are called."""
    run = "%s-%d" % (name, time.time())
    done = subprocess.run(
        ["ansible-playbook", playbook, *args],
        cwd=REPO,
        env=environment(run, artifacts),
        text=True,
        errors="replace",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    reports = [json.loads(file.read_text()) for file in (artifacts / run).glob("*.json") if file.name != "run.json"]
    return Run(done.returncode, done.stdout, {report["host"]: report for report in reports})
