# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts whose Python is killed, freezes, or finds nothing that it could write to, in a run by Ansible itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from real_play import BIN, ROOT, environment

# Ansible's own modules find a Python; ours meet what the test is about.
PYTHON = """#!/bin/sh
for word in "$@"; do case "$word" in *block_queue*|*node_audit*) %s;; esac; done
exec %s "$@"
"""
PLAY = """
- hosts: all
  gather_facts: false
  tasks:
    - gpufleet.host.%s
"""
QUEUE = "block_queue: {rules: [{class: nvme, scheduler: none}]}"
AUDIT = "node_audit: {wants: {block_queue: {rules: [{class: nvme, scheduler: none}]}}, facts: false}"
READ_ONLY = "echo 'FileNotFoundError: [Errno 2] No usable temporary directory found in [/tmp, /var/tmp]' >&2; exit 1"


def run(place: Path, what: str, task: str, *words: str) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    (place / "python").write_text(PYTHON % (what, sys.executable), encoding="utf-8")
    (place / "python").chmod(0o755)
    (place / "play.yml").write_text(PLAY % task, encoding="utf-8")
    (place / "hosts.yml").write_text(
        "all: {hosts: {gpu01: {ansible_connection: local, ansible_python_interpreter: %s/python}}}\n" % place
    )
    env = environment(
        ANSIBLE_COLLECTIONS_PATH=str(ROOT / ".cache/collections"), ANSIBLE_CALLBACKS_ENABLED="gpufleet.host.report"
    )
    program = os.environ.get("TEST_ANSIBLE_PLAYBOOK") or BIN / "ansible-playbook"
    argv = [program, "-i", "hosts.yml", "play.yml", *words]
    done = subprocess.run(argv, cwd=place, env=env, capture_output=True, text=True, check=False, timeout=300)
    return done, json.loads((place / "artifacts/latest/gpu01.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("what", "task", "why"),
    [
        ("kill -9 $$", QUEUE, "was killed"),
        ("kill -9 $$", AUDIT, "was killed"),
        (READ_ONLY, QUEUE, "the root filesystem is read-only or full"),
    ],
    ids=["killed in an apply", "killed in an audit", "read-only root"],
)
def test_a_module_that_dies_is_unknown(tmp_path: Path, what: str, task: str, why: str) -> None:
    done, document = run(tmp_path, what, task)
    assert done.returncode != 0
    said = " ".join(done.stdout.split())
    assert why in said
    assert "start of json" not in said and "deserialization" not in said, said
    assert document["state"] == "unknown"
    if task is QUEUE:
        assert "nothing changed" not in said
        assert document["areas"]["block_queue"]["findings"][0]["id"] == "engine.cut-off"
        assert "gpufleet_revert_run=%s" % document["run"] in said
        assert document["journal_runs"] == [document["run"]]


def test_a_host_that_freezes_ends_at_its_deadline(tmp_path: Path) -> None:
    started = time.monotonic()
    done, document = run(tmp_path, "exec sleep 60", AUDIT, "-e", "gpufleet_deadline_s=3")
    assert time.monotonic() - started < 55
    assert done.returncode != 0
    assert document["state"] == "unknown"
    assert "no answer in 3 s" in " ".join(done.stdout.split())
