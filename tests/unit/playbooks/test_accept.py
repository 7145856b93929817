# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""playbooks/accept.yml on captures, with Ansible itself: exit status, pages, the report of the run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
A100 = ROOT / "tests/corpus/nvidia-smi-xml/x-a100-sxm4-mig-v12.xml"
ORDER = """
order: PO-7
classes:
  a100:
    hosts: [gpu01, gpu02]
    gpus: [{model: %s, count: 1, memory: 80 GB, pcie_width: 16}]
"""


def capture(folder: Path, name: str, serial: str) -> None:
    """A capture of a host that holds what nvidia-smi said, and nothing else."""
    (folder / name / "files").mkdir(parents=True)
    (folder / name / "commands").mkdir()
    about = {"format": 1, "hostname": name, "taken": "2026-01-31T12:00:00Z"}
    (folder / name / "capture.json").write_text(json.dumps(about), encoding="utf-8")
    text = A100.read_text(encoding="utf-8").replace("5277015004274", serial)
    said = {"argv": ["nvidia-smi", "-q", "-x"], "rc": 0, "stdout": text, "stderr": ""}
    (folder / name / "commands/1.json").write_text(json.dumps(said), encoding="utf-8")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "ansible.cfg").write_text(
        "[defaults]\ncallbacks_enabled = gpufleet.host.report\n[gpufleet]\nartifacts = out\n", encoding="utf-8"
    )
    capture(tmp_path / "captures", "gpu01", "5277015004271")
    (tmp_path / "po.yml").write_text(ORDER % "A100 SXM4 80GB", encoding="utf-8")
    return tmp_path


def accept(place: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """What a person types, with Ansible's own settings out of the way."""
    kept = {key: text for key, text in os.environ.items() if not key.startswith(("ANSIBLE_", "GPUFLEET_"))}
    env = {
        **kept,
        "ANSIBLE_CONFIG": str(place / "ansible.cfg"),
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".cache/collections"),
        "GPUFLEET_RUN": "my-run",
    }
    argv = [Path(sys.executable).parent / "ansible-playbook", "-i", "localhost,", "gpufleet.host.accept",
            "-e", "acceptance_order=po.yml", "-e", "capture=captures", *more]  # fmt: skip
    return subprocess.run(argv, cwd=place, env=env, capture_output=True, text=True, check=False)


def lot(place: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((place / "out/my-run/accept/lot.json").read_text(encoding="utf-8"))
    return found


def test_captures_as_ordered_are_accepted(place: Path) -> None:
    capture(place / "captures", "gpu02", "5277015004272")
    done = accept(place)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "out/my-run/accept/lot.html" in done.stdout
    assert lot(place)["is_accepted"] and lot(place)["counts"] == {"hosts": 2, "accepted": 2, "ordered": 2}
    names = {path.name for path in (place / "out/my-run/accept").iterdir()}
    assert names == {"lot.html", "lot.json", "gpu01.html", "gpu01.json", "gpu02.html", "gpu02.json"}
    run = json.loads((place / "out/my-run/run.json").read_text(encoding="utf-8"))
    assert {row["host"]: row["areas"]["acceptance"] for row in run["hosts"]} == {
        "gpu01": "compliant",
        "gpu02": "compliant",
    }


def test_another_part_a_missing_host_and_a_broken_capture_are_refused_with_pages(place: Path) -> None:
    (place / "po.yml").write_text(ORDER % "H100 SXM 80 GB", encoding="utf-8")
    (place / "captures/gpu03.tar.gz").write_bytes(b"\x1f\x8b\x08 this is no archive")
    done = accept(place)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "ordered H100 SXM 80 GB; PCI id says A100-SXM4-80GB: 12 of 12 links, memory equal" in done.stdout
    page = (place / "out/my-run/accept/gpu01.html").read_text(encoding="utf-8")
    assert "PCI id says A100-SXM4-80GB" in page and "Not as ordered" in page
    lines = {line["item"]: line["words"] for line in lot(place)["lines"]}  # type: ignore[attr-defined]
    assert lines["Hosts of class a100"] == "not seen: gpu02"
    assert lines["Hosts beyond the order"] == "seen, but not ordered: gpu03"
    assert "cannot be unpacked" in (place / "out/my-run/accept/gpu03.html").read_text(encoding="utf-8")
    run = json.loads((place / "out/my-run/run.json").read_text(encoding="utf-8"))
    # The order is none of the hosts.
    states = {row["host"]: row["areas"].get("acceptance") for row in [*run["hosts"], *run["others"]]}
    assert [row["host"] for row in run["others"]] == ["order PO-7"]
    assert states == {"gpu01": "blocked", "gpu03": "blocked", "order PO-7": "blocked"}


@pytest.mark.parametrize(
    ("order", "more", "message"),
    [
        (
            "order: 1\nhosts: {gpu01: {gpus: [{model: A40, count: 1, memroy_gib: 48}]}}\n",
            [],
            "po.yml, line 2: hosts.gpu01.gpus[0].memroy_gib: the key 'memroy_gib' is not possible",
        ),
        (
            "order: 1\nhosts: {gpu01: {}}\n",
            ["-e", "acceptence_class=x"],
            "acceptence_class: gpufleet.host has no such variable; did you mean acceptance_class?",
        ),
    ],
)
def test_a_bad_order_is_told_once_before_anything_is_looked_at(
    place: Path, order: str, more: list[str], message: str
) -> None:
    (place / "po.yml").write_text(order, encoding="utf-8")
    done = accept(place, *more)
    assert done.returncode != 0 and message in done.stdout
    assert "Look at the parts" not in done.stdout and "Traceback" not in done.stdout + done.stderr
    assert not (place / "out/my-run/accept").exists()
