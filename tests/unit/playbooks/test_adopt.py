# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host that answers in Jinja: what it says is adopted, printed and used as host_vars, and never runs on the controller."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
# The host's Python is the host's to choose: this one answers for our module, and is a Python for Ansible's own.
PYTHON = """#!/bin/sh
for word in "$@"; do case "$word" in *node_audit*) cat %s; exit 0;; esac; done
exec %s "$@"
"""


def evil(place: Path, name: str) -> str:
    return "{{ lookup('pipe', 'touch %s/ran-%s') }}" % (place, name)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    before: dict[str, Any] = {
        "sysctls": {
            "kernel.core_pattern": evil(tmp_path, "value"),
            "vm.swappiness": "1{% set x = lookup('pipe', 'touch " + str(tmp_path) + "/ran-block') %}",
            "vm.max_map_count": "{# " + evil(tmp_path, "comment"),
        },
        "cmdline": ['x="\n%s' % evil(tmp_path, "refused")],
        "numa_balancing": "0",
        "ansible_connection": evil(tmp_path, "option"),
        "module_options": {evil(tmp_path, "key"): {"a": "b"}},
    }
    area = {"state": "drifted", "steps": [], "findings": [], "before": before, "after": {}}
    report = {
        "format": 1, "host": evil(tmp_path, "host"), "run": "r", "taken": "2026-01-31T12:00:00Z", "mode": "audit",
        "state": "drifted", "areas": {"kernel_settings": area}, "host_facts": {},
    }  # fmt: skip
    summary = "kernel_settings is drifted\n  " + evil(tmp_path, "summary")
    result = {"changed": False, "state": "drifted", "to_apply": [], "summary": summary, "report": report, "diff": []}
    (tmp_path / "answer.json").write_text(json.dumps(dict(result, warnings=[evil(tmp_path, "warning")])))
    (tmp_path / "python").write_text(PYTHON % (tmp_path / "answer.json", sys.executable))
    (tmp_path / "python").chmod(0o755)
    (tmp_path / "inventory.yml").write_text(
        "gpu_hosts: {hosts: {gpu01: {ansible_connection: local, ansible_python_interpreter: %s/python}}}\n" % tmp_path
    )
    (tmp_path / "ansible.cfg").write_text("[defaults]\ncallbacks_enabled = gpufleet.host.report\n")
    return tmp_path


def play(place: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    kept = {key: text for key, text in os.environ.items() if not key.startswith(("ANSIBLE_", "GPUFLEET_"))}
    path = str(ROOT / ".cache/collections")
    env = {**kept, "ANSIBLE_CONFIG": str(place / "ansible.cfg"), "ANSIBLE_COLLECTIONS_PATH": path}
    # Another core, such as the oldest that is supported, is tried with the same test.
    program = os.environ.get("TEST_ANSIBLE_PLAYBOOK") or str(Path(sys.executable).parent / "ansible-playbook")
    return subprocess.run(
        [program, "-i", "inventory.yml", *argv], cwd=place, env=env, capture_output=True, text=True, check=False
    )


def ran(place: Path) -> list[str]:
    return [path.name for path in place.glob("ran-*")]


def test_what_a_host_says_is_never_rendered(place: Path) -> None:
    done = play(place, "gpufleet.host.adopt", "-e", "gpufleet_adopted=host_vars")
    assert done.returncode == 0, done.stdout + done.stderr
    assert ran(place) == []
    file = place / "host_vars/gpu01.yml"
    text = file.read_text(encoding="utf-8")
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert '!unsafe "{{ lookup' in text
    assert [line.split(":")[1] for line in text.splitlines() if line.startswith("# Left out")] == [
        " 'kernel_ansible_connection'", " 'kernel_module_options'", " 'kernel_cmdline'",
    ]  # fmt: skip
    loader = type("Loader", (yaml.SafeLoader,), {})
    loader.add_constructor("!unsafe", lambda self, node: node.value)  # type: ignore[attr-defined]
    values = yaml.load(text, loader)
    assert sorted(values) == ["kernel_numa_balancing", "kernel_sysctls"]
    assert values["kernel_sysctls"]["kernel.core_pattern"] == evil(place, "value"), "kept to the letter"

    # As host_vars, in runs that hand them to a module and print them.
    (place / "show.yml").write_text(
        "- {hosts: gpu_hosts, gather_facts: false, tasks: [{debug: {msg: '{{ kernel_sysctls }}'}}]}\n"
    )
    shown = play(place, "show.yml")
    assert "lookup" in shown.stdout and shown.returncode == 0, shown.stdout + shown.stderr
    audited = play(place, "gpufleet.host.audit")
    assert "The host is drifted" in audited.stdout, audited.stdout + audited.stderr
    assert "lookup" in (place / "artifacts/latest/gpu01.json").read_text(encoding="utf-8"), (
        "kept in the report as words"
    )
    assert ran(place) == []


def test_the_trap_is_one(place: Path) -> None:
    """The same words as trusted host_vars do run: without that the proof above would be none."""
    (place / "host_vars").mkdir()
    (place / "host_vars/gpu01.yml").write_text(yaml.safe_dump({"kernel_sysctls": {"a": evil(place, "trusted")}}))
    (place / "show.yml").write_text(
        "- {hosts: gpu_hosts, gather_facts: false, tasks: [{debug: {msg: '{{ kernel_sysctls }}'}}]}\n"
    )
    play(place, "show.yml")
    assert ran(place) == ["ran-trusted"]
