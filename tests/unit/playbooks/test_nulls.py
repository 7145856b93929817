# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is null, or not set, is not managed: every variable of every role, in every playbook, on each ansible-core.

One run of ansible-playbook for each core, on this machine and in check mode.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.gpufleet.host.plugins.module_utils._areas.all import AREAS
from ansible_collections.gpufleet.host.plugins.module_utils._engine.whole import valid_want
from tools import cores

ROOT = Path(__file__).resolve().parents[3]
CORES = {
    "own": Path(sys.executable).parent / "ansible-playbook",
    **{name: cores.playbook_of(name) for name in cores.CORES},
}
SPECS = {
    area.role: yaml.safe_load((ROOT / "roles" / area.role / "meta/argument_specs.yml").read_text())["argument_specs"][
        "main"
    ]
    for area in AREAS.values()
}
NULLS = {name: None for specs in SPECS.values() for name in specs["options"]}
# Where the module judges by itself, null is the word for not judging.
NOT_JUDGED = {
    "platform_consumer_gpus": "allow", "platform_persistence": False,
    **dict.fromkeys(["platform_" + name for name in ("ecc", "iommu", "acs", "boot_mode", "resizable_bar", "governor")], "any"),
}  # fmt: skip
TUNED = [name for name in AREAS if name != "platform"]

PLAY = """
- hosts: whole
  gather_facts: false
  roles: %s
  post_tasks:
    - name: Show what is wanted
      ansible.builtin.debug:
        msg: "{{ lookup('ansible.builtin.vars', '__' ~ item ~ '_want') }}"
      loop: %s
"""
CALLBACK = """
import json, os
from ansible.plugins.callback import CallbackBase

class CallbackModule(CallbackBase):
    CALLBACK_VERSION, CALLBACK_TYPE, CALLBACK_NAME = 2.0, "aggregate", "told"

    def v2_playbook_on_start(self, playbook):
        self.playbook = os.path.basename(playbook._file_name)

    def v2_runner_on_ok(self, result, **more):
        task = getattr(result, "_task", None) or result.task
        host = getattr(result, "_host", None) or result.host
        said = getattr(result, "_result", None) or result.result
        row = {"playbook": self.playbook, "host": host.get_name(), "action": task.action.split(".")[-1], "said": said}
        with open(os.environ["TOLD"], "a", encoding="utf-8") as out:
            out.write(json.dumps(row, default=str) + "\\n")

    def v2_runner_on_failed(self, result, ignore_errors=False):
        self.v2_runner_on_ok(result)
"""
Row = Mapping[str, Any]


@pytest.mark.parametrize("core", list(CORES))
def test_what_is_null_or_not_set_is_not_managed(core: str, tmp_path: Path) -> None:
    """The roles alone are run as well, so Ansible's own check of each role has taken every null."""
    told = run(core, tmp_path)
    [said] = [
        row["said"]["results"]
        for row in told
        if row["host"] == "nulls" and row["action"] == "debug" and "results" in row["said"]
    ]
    check_wants({row["item"]: row["msg"] for row in said})
    for host in ("unset", "nulls"):
        check_reports(host, [row for row in told if row["host"] == host and "report" in row["said"]])
    looked = [
        (row["playbook"], *row["said"]["report"]["areas"])
        for row in told
        if row["host"] == "one_area" and "report" in row["said"]
    ]
    assert looked == [(name, "xfs_volumes") for name in ("audit.yml", "adopt.yml", "site.yml")]


def run(core: str, place: Path) -> list[Row]:
    """What each task of the playbooks said of each host."""
    playbook = CORES[core]
    if not playbook.exists():
        pytest.skip("ansible-core %s is not there: python -m tools.cores" % core)
    inventory = {
        "whole": {"hosts": {"unset": {}, "nulls": {**NULLS, "gpufleet_profile": "training"}}},
        "skipping": {"hosts": {"one_area": {"gpufleet_skip_areas": [name for name in AREAS if name != "xfs_volumes"]}}},
        "all": {"vars": {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}},
    }
    (place / "hosts.yml").write_text(yaml.safe_dump(inventory), encoding="utf-8")
    roles = ["gpufleet.host." + role for role in SPECS]
    (place / "alone.yml").write_text(PLAY % (json.dumps(roles), json.dumps(list(SPECS))), encoding="utf-8")
    (place / "told").mkdir()
    (place / "told/told.py").write_text(CALLBACK, encoding="utf-8")
    kept = {key: text for key, text in os.environ.items() if not key.startswith(("ANSIBLE_", "GPUFLEET_"))}
    env = {
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".cache/collections"), "ANSIBLE_CALLBACK_PLUGINS": str(place / "told"),
        "GPUFLEET_ARTIFACTS": str(place / "artifacts"), "TOLD": str(place / "told.jsonl"), "LC_ALL": "C.UTF-8",
        "ANSIBLE_LOCAL_TEMP": str(place / "tmp"),
    }  # fmt: skip
    playbooks = ["alone.yml", *[str(ROOT / "playbooks" / name) for name in ("audit.yml", "adopt.yml", "site.yml")]]
    argv = [
        playbook,
        "-i",
        "hosts.yml",
        "--check",
        "-e",
        json.dumps({"gpufleet_hosts": "whole:skipping", "gpufleet_fail_states": []}),
    ]
    done = subprocess.run(
        [*argv, *playbooks], cwd=place, env={**kept, **env}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return [json.loads(row) for row in (place / "told.jsonl").read_text(encoding="utf-8").splitlines()]


def check_wants(wants: Mapping[str, Mapping[str, Any]]) -> None:
    """Each null leaves its option out, or says that it is not judged."""
    for area in AREAS.values():
        nothing, want = valid_want(area, {}), valid_want(area, wants[area.role])
        for option in area.spec:
            name = "%s_%s" % (area.role, option)
            assert want[option] == NOT_JUDGED.get(name, nothing[option]), name


def check_reports(host: str, rows: Sequence[Row]) -> None:
    """In each playbook, and by each role alone: no step, and no tuned area that is other than compliant."""
    assert Counter(row["playbook"] for row in rows) == {
        "alone.yml": len(AREAS),
        "audit.yml": 1,
        "adopt.yml": 1,
        "site.yml": 1,
    }
    for row in rows:
        if (row["playbook"], host) == ("adopt.yml", "unset"):
            # It asks with the profile, to have something to write down.
            continue
        areas = row["said"]["report"]["areas"]
        assert {name for name, area in areas.items() if area["steps"]} == set(), row["playbook"]
        for name in set(TUNED) & set(areas):
            ids = [finding["id"] for finding in areas[name]["findings"]]
            assert (areas[name]["state"], name + ".nothing-wanted" in ids) == ("compliant", True), (
                row["playbook"],
                ids,
            )
