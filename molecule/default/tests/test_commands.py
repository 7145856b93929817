# Copyright: (c) 2026, gpufleet.host contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What README and docs print for own hosts is run as printed, on the lab host under README's own inventory."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from lab_host import KEY, ROOT

from lab.hosts import HOSTS, ssh_port
from tests import doc_commands

ROWS = doc_commands.to_run("lab")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A reader's folder with README's inventory; only the address is the lab's, and what the lab itself wants stays wanted."""
    folder = tmp_path_factory.mktemp("reader")
    inventory = yaml.safe_load(doc_commands.readme_inventory())
    group = inventory["gpu_hosts"]
    group["hosts"]["gpu01"] = {"ansible_host": "127.0.0.1", "ansible_port": ssh_port(HOSTS["lab-gpu1"])}
    lab = [yaml.safe_load(file.read_text()) for file in sorted((ROOT / "inventories/lab/group_vars").rglob("*.yml"))]
    group["vars"] = {**group["vars"], **{key: value for part in lab for key, value in (part or {}).items()}}
    group["vars"] |= {
        "ansible_user": "root",
        "ansible_ssh_private_key_file": str(KEY),
        "ansible_ssh_common_args": "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR",
    }
    (folder / "inventories/mine").mkdir(parents=True)
    (folder / "inventories/mine/hosts.yml").write_text(yaml.safe_dump(inventory))
    shutil.copytree(ROOT / "inventories/example/orders", folder / "orders")
    return folder


@pytest.mark.parametrize("row", ROWS, ids=[row["command"] for row in ROWS])
def test_a_printed_command_does_what_the_page_says(place: Path, row: dict[str, str]) -> None:
    env = {key: text for key, text in os.environ.items() if not key.startswith(("ANSIBLE_", "GPUFLEET_", "MAKE"))}
    env["ANSIBLE_COLLECTIONS_PATH"] = str(ROOT / ".cache/collections")
    cwd = ROOT if row.get("in") == "checkout" else place
    done = subprocess.run(
        ["bash", "-c", row["command"]], cwd=cwd, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    said = "%s\n%s" % (row["command"], done.stdout)
    # Drift, a pending reboot and an order for another machine are results, no faults of the command.
    assert (done.returncode in (0, 2) and "GPUFLEET REPORT" in done.stdout) or "makes" in row or "in" in row, said
    assert row.get("prints", "") in done.stdout, said
    if "makes" in row:
        assert (cwd / row["makes"]).exists(), said
