# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The collection as people install it: from its tarball, in a folder of theirs, without any ansible.cfg."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from real_play import python_of

ROOT = Path(__file__).resolve().parents[3]
BIN = Path(sys.executable).parent
XML = ROOT / "tests/corpus/nvidia-smi-xml/x-a100-sxm4-mig-v12.xml"
INVENTORY = """
gpu_hosts:
  hosts:
    gpu01:
      ansible_connection: local
      ansible_python_interpreter: %s
"""


def environment(**more: str) -> dict[str, str]:
    """This process's own, with Ansible's settings out of the way."""
    return {**{key: text for key, text in os.environ.items() if not key.startswith(("ANSIBLE_", "GPUFLEET_"))}, **more}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder of collections that holds what the tarball holds."""
    place = tmp_path_factory.mktemp("installed")
    galaxy = [BIN / "ansible-galaxy", "collection"]
    for argv in ([*galaxy, "build", "--output-path", place, ROOT], [*galaxy, "install", "-p", place, "TARBALL"]):
        argv = [word if word != "TARBALL" else sorted(place.glob("*.tar.gz"))[0] for word in argv]
        subprocess.run(argv, cwd=place, env=environment(), capture_output=True, text=True, check=True)
    before = sorted(place.rglob("*"))
    yield place
    assert [path for path in sorted(place.rglob("*")) if path not in before and "__pycache__" not in str(path)] == []


def play(installed: Path, cwd: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = environment(ANSIBLE_COLLECTIONS_PATH=str(installed), PYTHONDONTWRITEBYTECODE="1")
    (cwd / "hosts.yml").write_text(INVENTORY % python_of(cwd, 0), encoding="utf-8")
    inventory = [] if "-i" in words else ["-i", "hosts.yml"]
    argv = [BIN / "ansible-playbook", *inventory, *words]
    return subprocess.run(argv, cwd=cwd, env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("enabled", [False, True], ids=["by-itself", "enabled-by-name-too"])
def test_a_run_reports_once_and_its_artifacts_are_where_the_operator_stands(
    installed: Path, tmp_path: Path, enabled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if enabled:
        (tmp_path / "ansible.cfg").write_text("[defaults]\ncallbacks_enabled = gpufleet.host.report\n")
    (tmp_path / "gpu08.xml").write_text(XML.read_text(encoding="utf-8"), encoding="utf-8")
    done = play(installed, tmp_path, "gpufleet.host.audit", "-e", "capture=gpu08.xml")
    assert done.stdout.count("GPUFLEET REPORT") == 1, done.stdout + done.stderr
    page = tmp_path / "artifacts/latest/report.html"
    assert page.exists() and f"Report: {page.parent.resolve()}" in done.stdout
    assert not [line for line in done.stderr.splitlines() if "callback" in line]


def test_captures_and_adopted_variables_land_where_the_operator_stands(installed: Path, tmp_path: Path) -> None:
    done = play(installed, tmp_path, "gpufleet.host.capture")
    assert done.returncode == 0, done.stdout + done.stderr
    capture = tmp_path / "artifacts/captures/gpu01.tar.gz"
    assert capture.exists() and str(capture) in done.stdout
    done = play(installed, tmp_path, "gpufleet.host.adopt")
    adopted = tmp_path / "artifacts/adopted"
    assert (adopted / "gpu01.yml").exists(), done.stdout + done.stderr
    assert str(adopted) in done.stdout


def test_a_capture_is_audited_here_whatever_the_inventory_says_of_localhost(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "gpu08.xml").write_text(XML.read_text(encoding="utf-8"), encoding="utf-8")
    # An inventory that names localhost sends Ansible there over ssh, and become would ask sudo for nothing.
    done = play(installed, tmp_path, "-i", "localhost,", "-b", "gpufleet.host.audit", "-e", "capture=gpu08.xml")
    assert "gpu08" in done.stdout and "UNREACHABLE" not in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["capture", "adopt"])
def test_nothing_becomes_another_user_on_the_controller(name: str) -> None:
    text = (ROOT / f"playbooks/{name}.yml").read_text(encoding="utf-8")
    assert text.count("delegate_to: localhost") == text.count("become: false") > 0
