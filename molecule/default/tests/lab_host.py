# Copyright: (c) 2026, gpufleet.host contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab host as testinfra sees it, and playbooks run on it as people run them."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import testinfra

from lab.hosts import HOSTS, ssh_port

ROOT = Path(__file__).resolve().parents[3]
ARTIFACTS = ROOT / "artifacts/molecule"
NAME = "lab-gpu1"
KEY = Path(os.environ.get("GPUFLEET_LAB_DIR", ROOT / ".cache/lab")) / "id_ed25519"


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


# What the audit always says of the lab: it has a slot of eight lanes and one that tells no NUMA node, on purpose.
BUILT_IN = {
    ("platform", "platform.link-width 0000:61:00.0"),
    ("platform", "platform.numa-unknown 0000:01:00.0"),
}


def play(playbook: str, name: str, *args: str) -> Run:
    """Run a playbook on the lab; ``name`` is what its artifacts are called."""
    run = "%s-%d" % (name, time.time())
    env = {
        **os.environ,
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".cache/collections"),
        "ANSIBLE_INVENTORY": str(ROOT / "inventories/lab"),
        "GPUFLEET_ARTIFACTS": str(ARTIFACTS),
        "GPUFLEET_RUN": run,
    }
    done = subprocess.run(
        ["ansible-playbook", playbook, *args],
        cwd=ROOT,
        env=env,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    folder = ARTIFACTS / run
    reports = [json.loads(file.read_text()) for file in folder.glob("*.json") if file.name != "run.json"]
    return Run(done.returncode, done.stdout, {report["host"]: report for report in reports})


def connect(name: str) -> Any:
    """One connection is kept for all commands: a login costs an emulated host seconds."""
    options = {
        "ControlPath": os.path.join(tempfile.gettempdir(), "gpufleet-%C"),
        "ServerAliveInterval": "20",
        "StrictHostKeyChecking": "no",
        "UserKnownHostsFile": "/dev/null",
        "LogLevel": "ERROR",
    }
    return testinfra.get_host(
        "ssh://root@127.0.0.1:%d?ssh_identity_file=%s&controlpersist=600&timeout=120" % (ssh_port(HOSTS[name]), KEY),
        ssh_extra_args=" ".join("-o %s=%s" % pair for pair in options.items()),
    )
