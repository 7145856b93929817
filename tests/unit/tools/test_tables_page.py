# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of tables is made from them, and one that is old is noticed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.gpufleet.host.plugins.module_utils._tables import catalogue, cuda, gpus
from tools import tables_page


def test_the_page_is_up_to_date() -> None:
    assert tables_page.main(["--check"]) == 0


def test_the_page_has_every_row_and_marks_what_is_unverified() -> None:
    page = tables_page.page()
    for table in catalogue.TABLES.values():
        assert f"## {table.title}\n" in page
    for gpu in gpus.GPUS:
        assert f"| {gpu.name} |" in page
    [row] = [line for line in page.splitlines() if line.startswith("| NVIDIA B200 |")]
    assert "| 183359 |" in row and "| 8000 ? |" in row
    [row] = [line for line in page.splitlines() if line.startswith("| NVIDIA H100 NVL |")]
    assert "(links, total_gbs ?)" in row


def test_the_example_of_the_page_is_taken() -> None:
    text = tables_page.HEAD.split("```yaml\n")[1].split("```")[0]
    new = catalogue.catalogue(yaml.safe_load(text))
    assert gpus.by_name("H20 NVL16", new.gpus) is not None
    toolkit = cuda.toolkit("13.5.0", new.cuda_toolkits)
    assert toolkit is not None and toolkit.branch == 620


def test_a_page_that_is_old_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(tables_page, "ROOT", tmp_path)
    monkeypatch.setattr(tables_page, "PAGE", tmp_path / "tables.md")
    assert tables_page.main(["--check"]) == 1
    assert not (tmp_path / "tables.md").exists() and "tables.md" in capsys.readouterr().out
    assert tables_page.main([]) == 0
    assert tables_page.main(["--check"]) == 0
