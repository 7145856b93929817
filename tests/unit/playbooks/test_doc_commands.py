# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What README and docs print is run as printed, by somebody who has the collection and nothing else."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import doc_commands
from tools.parts import ROOT, tracked_files

BIN = Path(sys.executable).parent
XML = ROOT / "tests/corpus/nvidia-smi-xml/x-a100-sxm4-mig-v12.xml"


def test_every_command_that_is_printed_has_its_row() -> None:
    rows = [row["command"] for row in doc_commands.rows()]
    printed = doc_commands.printed()
    assert {name: pages for name, pages in printed.items() if name not in rows} == {}
    assert [name for name in rows if name not in printed] == [], "rows of commands that nobody prints"
    assert len(rows) == len(set(rows))


def test_what_is_not_run_says_why() -> None:
    for row in doc_commands.rows():
        assert row["run"] in ("here", "lab", "no"), row
        assert (row["run"] == "no") == bool(row.get("because")), row


def test_commands_are_found_in_blocks_and_in_lines() -> None:
    text = """
    ansible-playbook x.yml     # does x
Type `make lint`, not `ansible-playbook … INVENTORY`, nor `make`.
> 1. so
>        ansible y
```yaml
make: no command
```
```
$ make help
```
"""
    assert sorted(doc_commands.commands_of(text)) == ["ansible y", "ansible-playbook x.yml", "make help", "make lint"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A reader's folder: a saved output, an order, captures, README's requirements.yml; and a checkout beside it."""
    top = tmp_path_factory.mktemp("reader")
    for name in tracked_files():
        (top / "checkout" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, top / "checkout" / name, follow_symlinks=False)
    folder = top / "mine"
    (folder / "captures").mkdir(parents=True)
    (folder / "orders").mkdir()
    (folder / "gpu08.xml").write_text(XML.read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "captures/gpu-a01.example.com.xml").write_text(XML.read_text(encoding="utf-8"), encoding="utf-8")
    shutil.copy(ROOT / "inventories/example/orders/h100.yml", folder / "orders")
    [requirements] = re.findall(r"```yaml\n(collections:.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    (folder / "requirements.yml").write_text(requirements, encoding="utf-8")
    return top


def test_commands_do_what_the_pages_say(place: Path) -> None:
    """In one test, since each stands on what the ones before it left."""
    kept = {key: text for key, text in os.environ.items() if not key.startswith(("ANSIBLE_", "GPUFLEET_", "MAKE"))}
    env = {**kept, "PATH": "%s:%s" % (BIN, os.environ["PATH"]), "HOME": str(place / "home")}
    for row in doc_commands.to_run("here"):
        cwd = place / ("checkout" if row.get("in") == "checkout" else "mine")
        done = subprocess.run(
            ["bash", "-c", row["command"]],
            cwd=cwd,
            env=env,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        said = "%s\n%s" % (row["command"], done.stdout)
        assert done.returncode == row.get("rc", 0), said
        assert row.get("prints", "") in done.stdout, said
        if "makes" in row:
            assert (cwd / row["makes"]).exists(), said
            if row["makes"].endswith(".tar.gz"):
                shutil.copy(cwd / row["makes"], place / "mine")
