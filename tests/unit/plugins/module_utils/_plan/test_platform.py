# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every judge of the area platform by its case table; no finding is without a case and a word in the docs."""

from __future__ import annotations

import ast
import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Iterator, Mapping

import platform_cases
import pytest
from platform_cases import ROOT

from ansible_collections.gpufleet.host.plugins.module_utils._plan import platform_ids

ROWS = [(topic, row) for topic in platform_cases.topics() for row in platform_cases.table(topic)]
NAMES = ["%s: %s" % (topic, row["name"]) for topic, row in ROWS]


@pytest.mark.parametrize(("topic", "row"), ROWS, ids=NAMES)
def test_a_change_makes_exactly_these_findings(topic: str, row: Mapping[str, Any], tmp_path: Path) -> None:
    platform_cases.check(row, tmp_path)


def test_each_case_has_its_own_name() -> None:
    assert sorted(set(NAMES)) == sorted(NAMES)


# Ids


def ids_of_plan() -> set[str]:
    """Ids of findings in the source, those that are put together with a star for the part that varies."""
    found: set[str] = set()
    for path in sorted((ROOT / "plugins/module_utils/_plan").glob("platform*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        steps = set(_ids(call.args[0] for call in _calls(tree, "Step") if call.args))
        found |= set(_ids([tree])) - steps
    return found


def _calls(tree: ast.AST, name: str) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
            yield node


def _ids(trees: Any) -> Iterator[str]:
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                row = re.fullmatch(r"platform\.([a-z0-9-]+)(%[sd])?", node.value)
                if row:
                    yield row.group(1) + ("*" if row.group(2) else "")


def ids_of_docs() -> set[str]:
    """What the tables of docs/areas/platform.md name: ``row-remap-*`` is a group, ``xid-N`` any number."""
    text = (ROOT / "docs/areas/platform.md").read_text(encoding="utf-8")
    judged = text[text.index("## What is judged") :]
    rows = [line for line in judged.splitlines() if line.startswith("|")]
    cells = [cell for row in rows for cell in row.strip("|").split("|")[1:2]]
    words = {word for cell in cells for word in re.findall(r"`([a-z0-9*N-]+)`", cell)}
    return {re.sub(r"N\Z", "*", word) for word in words}


def ids_of_cases() -> set[str]:
    return {text.split(" ")[1] for _topic, row in ROWS for text in row["findings"]}


def is_one(one: str, other: str) -> bool:
    return fnmatchcase(one, other) or fnmatchcase(other, one)


def test_the_docs_name_every_finding_and_no_other() -> None:
    named, made = ids_of_docs(), ids_of_plan()
    assert len(made) > 100
    assert {one for one in made if not any(is_one(one, group) for group in named)} == set()
    assert {group for group in named if not any(is_one(one, group) for one in made)} == set()


def test_an_accepted_finding_may_be_any_of_them_and_no_other() -> None:
    in_full = {one for one in ids_of_plan() if not one.endswith("*")}
    assert in_full <= set(platform_ids.NAMES)
    assert {one for one in platform_ids.NAMES if not any(fnmatchcase(one, group) for group in ids_of_plan())} == set()
    assert platform_ids.is_known("platform.xid-79") and not platform_ids.is_known("platform.xid-N")


def test_every_finding_has_a_case() -> None:
    cases = ids_of_cases()
    assert {one for one in ids_of_plan() if not any(fnmatchcase(case, one) for case in cases)} == set()


def test_every_table_has_changes_that_are_no_fault() -> None:
    quiet = {topic for topic, row in ROWS if not [text for text in row["findings"] if not text.startswith("info ")]}
    assert set(platform_cases.topics()) - quiet == {"topo"}
