# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host that answers in escapes: none of them reaches the operator's terminal, however much is shown."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
PYTHON = """#!/bin/sh
for word in "$@"; do case "$word" in *node_audit*) cat %s; exit 0;; esac; done
exec %s "$@"
"""
EVIL = "a\x1b\x1b[0m]0;PWNED\x07b\x9b31mc\x1bcd\x1bP1$r\x1b\\e\u202ef\x7fg\rh"
FORBIDDEN = {chr(code) for code in (*range(9), *range(11, 32), *range(127, 160))} | {"\u202e"}


def play(place: Path, *argv: str, **more: str) -> str:
    kept = {key: text for key, text in os.environ.items() if not key.startswith(("ANSIBLE_", "GPUFLEET_"))}
    path = str(ROOT / ".cache/collections")
    env = {
        **kept,
        "ANSIBLE_COLLECTIONS_PATH": path,
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_CONFIG": str(place / "ansible.cfg"),
        **more,
    }
    program = os.environ.get("TEST_ANSIBLE_PLAYBOOK") or str(Path(sys.executable).parent / "ansible-playbook")
    done = subprocess.run([program, "-i", "inventory.yml", *argv], cwd=place, env=env, capture_output=True, check=False)
    return (done.stdout + done.stderr).decode()


@pytest.mark.parametrize("stdout", ["default", "gpufleet.host.grouped"])
def test_no_escape_of_a_host_reaches_the_terminal(stdout: str, tmp_path: Path) -> None:
    finding: dict[str, Any] = dict.fromkeys(("subject", "expected", "observed", "why", "fix", "source"), EVIL)
    finding.update(id="platform." + EVIL, level="fail")
    step = {"id": EVIL, "kind": "file", "target": EVIL, "before": EVIL, "after": EVIL + "\n" + EVIL, "status": "planned",
            "detail": EVIL, "why": EVIL, "source": EVIL, "risk": "safe", "needs": "nothing"}  # fmt: skip
    area = {"state": "drifted", "steps": [step], "findings": [finding], "before": {}, "after": {}}
    report = {"format": 1, "host": EVIL, "run": EVIL, "taken": EVIL, "mode": "audit", "state": "drifted",
              "areas": {"platform": area}, "host_facts": {"hostname": EVIL}}  # fmt: skip
    diff = [{"before_header": EVIL, "after_header": EVIL, "before": EVIL, "after": EVIL + "x\n"}]
    answer = {"changed": False, "state": "drifted", "to_apply": [], "summary": EVIL, "report": report, "diff": diff, EVIL: EVIL,
              "warnings": [EVIL], "deprecations": [{"msg": EVIL, "version": "9.9"}]}  # fmt: skip
    (tmp_path / "answer.json").write_text(json.dumps(answer))
    (tmp_path / "python").write_text(PYTHON % (tmp_path / "answer.json", sys.executable))
    (tmp_path / "python").chmod(0o755)
    (tmp_path / "inventory.yml").write_text(
        "gpu_hosts: {hosts: {gpu01: {ansible_connection: local, ansible_python_interpreter: %s/python}}}\n" % tmp_path
    )
    (tmp_path / "ansible.cfg").write_text("[defaults]\ncallbacks_enabled = gpufleet.host.report\n")
    said = play(tmp_path, "gpufleet.host.audit", "-v", "--diff", ANSIBLE_STDOUT_CALLBACK=stdout)
    assert "PWNED" in said and "The host is drifted" in said, said
    assert [line for line in said.splitlines() if set(line) & FORBIDDEN] == []


def test_an_answer_of_depths_is_a_failure_of_its_host(tmp_path: Path) -> None:
    (tmp_path / "answer.json").write_text('{"changed": false, "state": ' + '{"a":' * 600 + "1" + "}" * 601)
    (tmp_path / "python").write_text(PYTHON % (tmp_path / "answer.json", sys.executable))
    (tmp_path / "python").chmod(0o755)
    (tmp_path / "inventory.yml").write_text(
        "gpu_hosts: {hosts: {gpu01: {ansible_connection: local, ansible_python_interpreter: %s/python}}}\n" % tmp_path
    )
    (tmp_path / "ansible.cfg").write_text("")
    said = play(tmp_path, "gpufleet.host.audit")
    assert "failed=1" in said and "Traceback" not in said, said
