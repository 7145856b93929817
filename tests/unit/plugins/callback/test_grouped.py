# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ansible's output with equal hosts in one line, in real runs of ansible-playbook over local hosts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.gpufleet.host.plugins.callback.grouped import named

ROOT = Path(__file__).parents[4]
PLAYBOOK = """
- hosts: all
  gather_facts: false
  tasks:
    - name: Say the same
      ansible.builtin.debug:
        msg: equal
    - name: Differ in a file
      ansible.builtin.copy:
        content: new
        dest: "{{ playbook_dir }}/made/{{ inventory_hostname }}"
        mode: "0600"
      diff: true
    - name: Do it for two
      ansible.builtin.debug:
        msg: "{{ item }}"
      loop: [1, 2]
    - name: Leave those in order
      ansible.builtin.meta: end_host
      when: inventory_hostname == 'gpu1'
    - name: Fail alike
      ansible.builtin.fail:
        msg: "no cpuset controller on {{ inventory_hostname }}{{ place | default('') }}"
"""


def play(place: Path, hosts: int, *more: str) -> list[str]:
    (place / "made").mkdir(exist_ok=True)
    rows = [
        f"    gpu{n}: {{ansible_connection: local, ansible_python_interpreter: {sys.executable}}}" for n in range(hosts)
    ]
    (place / "hosts.yml").write_text("all:\n  hosts:\n" + "\n".join(rows) + "\n", encoding="utf-8")
    (place / "play.yml").write_text(PLAYBOOK, encoding="utf-8")
    env = {key: text for key, text in os.environ.items() if not key.startswith("ANSIBLE_")}
    env |= {
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".cache/collections"),
        "ANSIBLE_STDOUT_CALLBACK": "gpufleet.host.grouped",
        "ANSIBLE_FORKS": "2",
        "ANSIBLE_NOCOLOR": "1",
    }
    argv = [Path(sys.executable).parent / "ansible-playbook", "-i", "hosts.yml", "play.yml", *more]
    done = subprocess.run(argv, cwd=place, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stdout + done.stderr
    return (done.stdout + done.stderr).splitlines()


def test_more_equal_hosts_take_no_more_lines(tmp_path: Path) -> None:
    for name in ("few", "more"):
        (tmp_path / name).mkdir()
    few, more = play(tmp_path / "few", 4), play(tmp_path / "more", 12)
    assert len(more) == len(few) <= 60, "\n".join(more)
    text = "\n".join(more)
    # The failure is told once, and its reason in it; so is a diff that is equal but for the host's own path.
    assert text.count("no cpuset controller") == 1
    assert text.count("+new") == 1
    assert [line for line in more if line.startswith("ok:") and "and 9 more]" in line]
    assert [line for line in more if "failed=1" in line and "and 8 more" in line], text
    assert [line for line in more if line.startswith("gpu1 ") and "failed=0" in line], text


def test_what_differs_is_told_for_each(tmp_path: Path) -> None:
    lines = play(tmp_path, 3, "-e", "place={{ ' in rack %s' % inventory_hostname[-1] }}")
    for number in "02":
        told = f"no cpuset controller on gpu{number} in rack {number}"
        assert [line for line in lines if told in line], "\n".join(lines)


def test_a_value_of_each_host_is_no_name_of_it(tmp_path: Path) -> None:
    """An address that a task prints differs from host to host, and so does a number that ends a host's name."""
    lines = play(tmp_path, 3, "-e", "place={{ ' at 192.0.2.1%s' % inventory_hostname[-1] }}")
    for number in "02":
        assert [line for line in lines if f"at 192.0.2.1{number}" in line], "\n".join(lines)


@pytest.mark.parametrize(
    ("hosts", "words"),
    [(["a"], "a"), (["a", "b", "c"], "a, b, c"), (["a", "b", "c", "d"], "a, b, c and 1 more")],
)
def test_a_group_is_named(hosts: list[str], words: str) -> None:
    assert named(hosts) == words
