# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every sample of the corpus that one command can show, as a capture of that command alone, against its verdict.

A healthy machine yields no ``fail``; what the index calls a fault is found, as far as that one output shows it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import story
import yaml
from test_stories import FAULTS, audited, key

ROWS = yaml.safe_load((Path(__file__).parent / "cases/corpus_verdicts.yml").read_text(encoding="utf-8"))
ARGV = {
    "dmidecode": "dmidecode",
    "ibdev2netdev": "ibdev2netdev",
    "ibstat": "ibstat",
    "ibv_devinfo": "ibv_devinfo",
    "ipmi": "ipmitool sdr elist",
    "lscpu": "lscpu",
    "lspci": "lspci -vvv",
    "numactl": "numactl -H",
    "nvidia-smi-csv": "nvidia-smi --query-gpu --format=csv",
    "nvidia-smi-q": "nvidia-smi -q",
    "nvidia-smi-table": "nvidia-smi",
    "nvidia-smi-xml": "nvidia-smi -q -x",
    "nvlink": "nvidia-smi nvlink -s",
    "rdma-link": "rdma link",
    "show_gids": "show_gids",
    "topo-m": "nvidia-smi topo -m",
}
JSON = {"lscpu": "lscpu -J", "rdma-link": "rdma -j link"}
# Outputs of options that the area does not ask for.
OTHERS = {"nvidia-smi-csv": ("version-",), "nvidia-smi-table": ("dmon-",)}


def argv(name: str) -> list[str]:
    kind, _slash, file = name.partition("/")
    words = "nvidia-smi -L" if file.startswith("list-L") else ARGV[kind]
    return (JSON.get(kind, words) if file.endswith(".json") else words).split()


def test_every_sample_has_its_row() -> None:
    files = [
        f"{kind}/{path.name}"
        for kind in ARGV
        for path in (story.CORPUS / kind).iterdir()
        if not path.name.startswith(OTHERS.get(kind, ()) or "\0")
    ]
    assert sorted(row["file"] for row in ROWS) == sorted(files)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["file"])
def test_the_verdict_on_a_sample(row: dict[str, Any], tmp_path: Path) -> None:
    commands = [{"argv": argv(row["file"]), "stdout": {"corpus": row["file"]}}]
    report = audited({"commands": commands, "want": row.get("want", {})}, tmp_path / "capture")
    found = {key(finding) for finding in report.findings}
    expected = {tuple(finding) for finding in row.get("finds", [])}
    assert expected <= found, report.findings
    assert {one for one in found if one[2] in FAULTS} == {one for one in expected if one[2] in FAULTS}, report.findings
    assert report.state != "failed"


def test_what_the_index_calls_a_fault_is_found_or_cannot_be_seen() -> None:
    faults = [row for row in ROWS if row["verdict"].startswith(("FAIL", "WARN", "Asserted"))]
    assert len(faults) > 20
    # A licence that has not expired warns of nothing yet.
    assert [row["file"] for row in faults if not row.get("finds") and "unseen" not in row] == [
        "nvidia-smi-q/q-vgpu-license-licensed.txt"
    ]
