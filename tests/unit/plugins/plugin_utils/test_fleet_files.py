# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Artifacts: harmless names, whole files, folders that belong to one run."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpufleet.host.plugins.plugin_utils import fleet_files
from tests import fleet_sample as sample

HARMFUL = ["", ".", "..", "../../x", "/etc/passwd", "a/b", "a\x00b", "<script>", "run", "report", "-rf", "x" * 300]


@pytest.mark.parametrize("name", ["gpu01", "gpu-01.rack2.example", "10.0.0.7"])
def test_plain_names_are_themselves(name: str) -> None:
    assert fleet_files.safe_name(name) == name


@given(st.one_of(st.text(), st.sampled_from(HARMFUL)))
def test_any_name_is_a_file_in_the_folder(name: str) -> None:
    safe = fleet_files.safe_name(name) + ".json"
    assert os.path.normpath(os.path.join("/folder", safe)) == "/folder/" + safe
    assert len(safe) < 128 and safe.isascii() and safe.isprintable()
    assert safe not in ("run.json", "report.html", "latest") and not safe.startswith((".", "-"))


@given(st.lists(st.text("aA./~-x", max_size=4), unique_by=str.lower))
def test_two_names_never_share_a_file(names: list[str]) -> None:
    assert len({fleet_files.safe_name(name).lower() for name in names}) == len(names)


def test_names_that_differ_by_case_alone_have_two_files() -> None:
    assert fleet_files.safe_name("GPU1").lower() != fleet_files.safe_name("gpu1").lower()


def test_a_run_never_writes_into_the_folder_of_another(tmp_path: Path) -> None:
    names = [fleet_files.open_run(tmp_path / "artifacts", sample.RUN).name for _run in range(3)]
    assert names == [sample.RUN, sample.RUN + "-2", sample.RUN + "-3"]


@pytest.mark.parametrize("run", ["../evil", "latest", "a/b", "", ".hidden"])
def test_a_run_of_any_name_stays_in_the_artifacts(tmp_path: Path, run: str) -> None:
    folder = fleet_files.open_run(tmp_path, run)
    assert folder.parent == tmp_path and folder.name != "latest" and not folder.name.startswith(".")


def test_latest_follows_and_leaves_a_real_folder_alone(tmp_path: Path) -> None:
    for run in ("a", "b"):
        fleet_files.link_latest(fleet_files.open_run(tmp_path, run))
    assert os.readlink(tmp_path / "latest") == "b"
    (tmp_path / "latest").unlink()
    (tmp_path / "latest").mkdir()
    fleet_files.link_latest(fleet_files.open_run(tmp_path, "c"))
    assert not (tmp_path / "latest").is_symlink()


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "host.json"
    fleet_files.write_json(path, {"a": 1})
    with pytest.raises(ValueError):
        fleet_files.write_json(path, {"a": float("nan")})
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError):
        fleet_files.write_text(tmp_path / "folder", "text")
    assert json.loads(path.read_text()) == {"a": 1}
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["folder", "host.json"]


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_artifacts_are_their_owners_alone_whatever_the_umask(mask: int, tmp_path: Path) -> None:
    """They hold serial numbers and addresses."""
    before = os.umask(mask)
    try:
        run = fleet_files.open_run(tmp_path / "artifacts", "r")
        fleet_files.write_json(run / "gpu01.json", {})
        fleet_files.write_pages(run, [("hosts/gpu01.html", "x"), ("report.html", "x")])
        (run / "gpu01.json").chmod(0o644)
        fleet_files.write_json(run / "gpu01.json", {"again": 1})
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "artifacts").rglob("*")}
    assert (tmp_path / "artifacts").stat().st_mode & 0o777 == 0o700
    assert modes == {
        "r": 0o700, "hosts": 0o700, "gpu01.json": 0o600, "gpu01.html": 0o600, "report.html": 0o600,
    }  # fmt: skip


def test_a_folder_that_is_there_keeps_its_permissions(tmp_path: Path) -> None:
    (tmp_path / "artifacts").mkdir(mode=0o755)
    fleet_files.open_run(tmp_path / "artifacts", "r")
    assert (tmp_path / "artifacts").stat().st_mode & 0o777 == 0o755


def test_a_run_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    documents = sample.sample()
    for document in documents:
        fleet_files.write_json(tmp_path / (fleet_files.safe_name(document["host"]) + ".json"), document)
    fleet_files.write_json(tmp_path / "run.json", sample.run_of(documents))
    run, found, files = fleet_files.read_run(tmp_path)
    assert sorted(found, key=lambda d: str(d["host"])) == sorted(documents, key=lambda d: str(d["host"]))
    assert files["gpu-a01"] == "gpu-a01.json"
    assert (run["playbook"], run["run"]) == ("site.yml", tmp_path.name)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 99, "areas": {}}', "[" * 100000])
def test_a_broken_file_is_a_host_of_which_nothing_is_known(tmp_path: Path, text: str) -> None:
    (tmp_path / "gpu01.json").write_text(text)
    _run, documents, _files = fleet_files.read_run(tmp_path)
    assert [(d["host"], d["state"], d["findings"][0]["id"]) for d in documents] == [
        ("gpu01", "unknown", "fleet.bad-report")
    ]
