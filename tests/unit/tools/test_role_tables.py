# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables in the roles' pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import role_tables


@pytest.mark.parametrize("words", [["--help"], ["--chek"], ["more"]])
def test_only_a_plain_call_writes(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    specs = tmp_path / "roles/one/meta/argument_specs.yml"
    specs.parent.mkdir(parents=True)
    specs.write_text("argument_specs: {main: {options: {one_size: {type: int, default: 3, description: Its size.}}}}")
    monkeypatch.setattr(role_tables, "ROOT", tmp_path)
    readme = tmp_path / "roles/one/README.md"
    with pytest.raises(SystemExit):
        role_tables.main(words)
    assert role_tables.main(["--check"]) == 1
    assert not readme.exists()
    assert role_tables.main([]) == 0
    assert "| `one_size` | int | `3` | Its size. |" in readme.read_text()
    assert role_tables.main(["--check"]) == 0


def test_every_page_has_one_table() -> None:
    for page in (role_tables.ROOT / "roles").glob("*/README.md"):
        text = page.read_text()
        assert (text.count(role_tables.BEGIN), text.count(role_tables.END), text.count("<!--")) == (1, 1, 2), page
