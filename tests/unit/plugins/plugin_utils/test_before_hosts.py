# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest
from ansible.parsing.dataloader import DataLoader
from real_play import ROOT

from ansible_collections.gpufleet.host.plugins.plugin_utils.before_hosts import are_ours, refuse_nobody, refuse_tags

GROUPS = {"all": ["gpu01", "gpu02", "web01"], "gpu_hosts": ["gpu01", "gpu02"], "web": ["web01"], "ungrouped": []}


@pytest.mark.parametrize(
    ("playbooks", "ours"),
    [
        (["gpufleet.host.site"], True),
        ([str(ROOT / "site.yml")], True),
        ([str(ROOT / ".cache/collections/ansible_collections/gpufleet/host/playbooks/audit.yml")], True),
        # Files of their own, beside ours or not, may have tags of their own.
        ([str(ROOT / "molecule/default/verify.yml")], False),
        (["gpufleet.host.site", str(ROOT / "molecule/default/verify.yml")], False),
        (["other.host.site"], False),
    ],
)
def test_a_playbook_is_ours_by_its_name_or_its_file(playbooks: list[str], ours: bool) -> None:
    assert are_ours(playbooks) == ours


@pytest.mark.parametrize(
    ("tag", "meant"),
    [
        ("kernal", "did you mean kernel?"),
        ("block_que", "did you mean block_queue?"),
        ("mysql", "did you mean mysql_isolation?"),
        ("xfs", "did you mean xfs_storage?"),
        ("web", "gpufleet.host; allowed: platform"),
    ],
)
def test_a_tag_that_chooses_no_area_is_named_with_the_nearest(tag: str, meant: str) -> None:
    with pytest.raises(ValueError, match="--tags %s: no area" % tag) as error:
        refuse_tags([tag], [])
    assert meant in str(error.value)
    with pytest.raises(ValueError, match="--skip-tags %s: no area" % tag):
        refuse_tags(["all"], [tag])


def test_areas_roles_and_words_of_ansible_are_no_slips() -> None:
    refuse_tags(["kernel", "block_queue", "platform"], ["mysql_isolation"])
    refuse_tags(["tagged", "untagged", "always"], ["never", "all"], "none")


@pytest.mark.parametrize(
    ("pattern", "limit"),
    [
        ("gpu_hosts", None),
        ("gpu_hosts", "gpu01"),
        (["gpu01", "web"], "web01"),
        ("~gpu.*", "!gpu02"),
        ("localhost", None),
    ],
)
def test_patterns_are_those_of_ansible(pattern: str, limit: str | None) -> None:
    refuse_nobody(pattern, limit, GROUPS, DataLoader())


@pytest.mark.parametrize(
    ("pattern", "limit", "words"),
    [
        (
            "gpu_host",
            None,
            "gpufleet_hosts: gpu_host matches no host of the inventory; did you mean gpu_hosts? allowed: ",
        ),
        (["gpu_hosts", "!gpu_hosts"], None, "gpufleet_hosts: gpu_hosts:!gpu_hosts matches no host"),
        ("gpu_hosts", "web01", "--limit web01: names none of the hosts of gpu_hosts, which are 2"),
    ],
)
def test_a_pattern_or_a_limit_that_leaves_nobody_is_refused(pattern: str, limit: str | None, words: str) -> None:
    with pytest.raises(ValueError) as error:
        refuse_nobody(pattern, limit, GROUPS, DataLoader())
    assert words in str(error.value)


def test_an_empty_inventory_is_told_as_such(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="this one is empty: name yours with -i"):
        refuse_nobody("gpu_hosts", None, {"all": [], "ungrouped": []}, DataLoader())
