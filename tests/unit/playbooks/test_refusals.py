# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is asked for by mistake is refused before any host is touched, in every playbook, however it is called."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from real_play import ROOT, play

PLAYBOOKS = sorted((ROOT / "playbooks").glob("*.yml"))
OWN = """
- name: A play of their own
  hosts: web
  gather_facts: false
  tasks:
    - {name: Say something, ansible.builtin.debug: {msg: a page}, tags: pages}

- name: Ours, with a tag of theirs
  ansible.builtin.import_playbook: gpufleet.host.audit
  tags: gpu
"""


def refused(place: Path, *words: str) -> str:
    """What a run says that touches no host."""
    done = play(place, *words)
    assert done.returncode != 0, done.stdout
    assert "TASK [" not in done.stdout
    return " ".join(done.stderr.split())


def test_every_play_on_hosts_goes_through_the_same_refusals() -> None:
    plays = [play for path in PLAYBOOKS for play in yaml.safe_load(path.read_text(encoding="utf-8"))]
    assert len(plays) > len(PLAYBOOKS)
    for one in plays:
        assert one["hosts"] == "localhost" or "lookup('gpufleet.host.targets', " in one["hosts"], one["name"]


@pytest.mark.parametrize(
    ("name", "tag", "words"),
    [
        ("site", "kernal", "no area or role of gpufleet.host; did you mean kernel? allowed: platform, kernel or"),
        ("revert", "kernel", "this playbook has no tags for areas; allowed: -e gpufleet_revert_area=AREA"),
        ("accept", "kernal", "this playbook has no tags for areas; allowed: none"),
    ],
)
def test_a_tag_that_chooses_nothing_is_refused_under_a_limit_too(
    name: str, tag: str, words: str, tmp_path: Path
) -> None:
    assert "--tags %s: %s" % (tag, words) in refused(
        tmp_path, "gpufleet.host." + name, "--limit", "gpu01", "--tags", tag
    )


def test_a_playbook_of_the_checkout_refuses_it_too(tmp_path: Path) -> None:
    said = refused(tmp_path, str(ROOT / "site.yml"), "--skip-tags", "mysql")
    assert "--skip-tags mysql: no area or role of gpufleet.host; did you mean mysql_isolation?" in said


def test_a_group_that_the_inventory_has_not_is_refused_with_those_that_it_has(tmp_path: Path) -> None:
    said = refused(tmp_path, "gpufleet.host.site", "-e", "gpufleet_hosts=gpu_host")
    assert (
        "gpu_host matches no host of the inventory; did you mean gpu_hosts? allowed: its groups gpu_hosts, web" in said
    )


def test_a_limit_that_leaves_nobody_is_refused(tmp_path: Path) -> None:
    said = refused(tmp_path, "gpufleet.host.audit", "--limit", "web")
    assert "--limit web: names none of the hosts of gpu_hosts, which are 2" in said


def test_a_capture_needs_no_inventory_at_all(tmp_path: Path) -> None:
    done = play(tmp_path, "gpufleet.host.audit", "--list-hosts", "-e", "capture=gpu07.tar.gz", inventory="# %s\n{}")
    assert done.returncode == 0, done.stderr
    assert "localhost" in done.stdout


@pytest.mark.parametrize(("tag", "is_audited"), [("pages", False), ("gpu", True), ("io_scheduler", True)])
def test_tags_of_a_playbook_of_their_own_choose_what_they_are_on(tag: str, is_audited: bool, tmp_path: Path) -> None:
    (tmp_path / "own.yml").write_text(OWN, encoding="utf-8")
    done = play(tmp_path, "own.yml", "--limit", "web,gpu01", "--tags", tag, "-e", '{"gpufleet_fail_states": []}')
    assert done.returncode == 0, done.stdout + done.stderr
    assert ("a page" in done.stdout) == (tag == "pages")
    assert ("1 host, audited" in done.stdout) == is_audited


@pytest.mark.parametrize(("states", "rc"), [(None, 2), ([], 0)])
def test_a_dry_run_ends_by_the_same_rule_as_an_audit(states: list[str] | None, rc: int, tmp_path: Path) -> None:
    variables = {
        "kernel_sysctls": {"vm.swappiness": 77},
        **({} if states is None else {"gpufleet_fail_states": states}),
    }
    words = ["--check", "--limit", "gpu01", "--tags", "kernel", "-e", json.dumps(variables)]
    done = play(tmp_path, "gpufleet.host.site", *words)
    assert done.returncode == rc, done.stdout + done.stderr
    assert ("The host is " in done.stdout) == (rc == 2)


def test_a_revert_of_a_run_that_never_was_fails_and_says_so(tmp_path: Path) -> None:
    done = play(tmp_path, "gpufleet.host.revert", "--check", "-e", "gpufleet_revert_run=20990101T000000Z")
    assert done.returncode == 2, done.stdout + done.stderr
    assert "run 20990101T000000Z is not in the journal of this host; " in done.stdout


@pytest.mark.parametrize(
    ("name", "variables", "words"),
    [
        ("audit", {"kernel_allow_risk": "all"}, "kernel_allow_risk: 'all' is not possible; allowed: safe, disruptive"),
        ("revert", {"gpufleet_allow_risk": "all"}, "gpufleet_allow_risk: 'all' is not possible; allowed: safe, disrup"),
        (
            "audit",
            {"gpufleet_fail_states": ["drift"]},
            "gpufleet_fail_states: 'drift' is not possible; did you mean dr",
        ),
    ],
)
def test_what_cannot_be_is_refused_on_the_controller(
    name: str, variables: dict[str, object], words: str, tmp_path: Path
) -> None:
    # Nobody answers at this address, so that a host that is touched shows.
    unreachable = "gpu_hosts: {hosts: {gpu01: {ansible_host: 127.0.0.1, ansible_port: 1}}} # %s"
    done = play(tmp_path, "gpufleet.host." + name, "-e", json.dumps(variables), inventory=unreachable)
    assert done.returncode == 2, done.stdout + done.stderr
    assert words in " ".join(done.stdout.split())
    assert "UNREACHABLE" not in done.stdout


@pytest.mark.parametrize("name", ["site", "audit", "capture", "adopt", "revert"])
def test_without_root_every_playbook_says_what_to_set(name: str, tmp_path: Path) -> None:
    words = ["--limit", "gpu01", "--check"] if name == "revert" else ["--limit", "gpu01"]
    done = play(tmp_path, "gpufleet.host." + name, *words, uid=1000)
    assert done.returncode == 2, done.stdout + done.stderr
    [row] = json.loads((tmp_path / "artifacts/latest/run.json").read_text(encoding="utf-8"))["hosts"]
    assert (row["state"], row["headline"]) == (
        "failed",
        "not root: set ansible_become: true for this host, or give --become",
    )
    assert done.stdout.count("fatal: [gpu01]") + done.stdout.count("does not understand") == 1
