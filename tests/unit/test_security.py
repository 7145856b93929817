# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/security.md names every command that an audit runs as root, and no other."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any, Iterator, Sequence

import every_area
import pytest
from every_area import ROOT

from ansible_collections.gpufleet.host.plugins.module_utils._engine import whole
from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import MemoHost

UTILS = ROOT / "plugins/module_utils"
PAGE = (ROOT / "docs/security.md").read_text(encoding="utf-8")
NAMED = {
    name
    for row in re.findall(r"^\| (`.*?) \|", PAGE.split("| command | for |")[1].split("\n\n")[0], re.MULTILINE)
    for name in re.findall("`([^`]+)`", row)
}
# "redfish get PATH" is how a capture names the answer of a BMC.
NO_PROGRAMS = {"redfish"}
ASKING = ("run", "ask")


def heads(node: ast.AST) -> Iterator[str]:
    """The first words of the lists of words in an expression."""
    if isinstance(node, (ast.List, ast.Tuple)) and node.elts:
        first = node.elts[0]
        if isinstance(first, ast.Constant):
            yield str(first.value)
        else:
            for part in node.elts:
                yield from heads(part)


def commands(path: Path) -> set[str]:
    """What a file hands to ``run``, directly or by a name for a list of words, such as QUERY."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    words = {word for call in calls(tree) for argument in call.args for word in heads(argument)}
    for node in ast.walk(tree):
        value = node.value if isinstance(node, (ast.Assign, ast.AnnAssign)) else None
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if value is not None and any(isinstance(target, ast.Name) and target.id in used(tree) for target in targets):
            words |= set(heads(value))
    return {word for word in words if re.fullmatch(r"[a-z][a-z0-9_.-]+", word)}


def calls(tree: ast.AST) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ASKING:
            yield node


def used(tree: ast.AST) -> set[str]:
    """Names in the arguments of ``run``, and those that loops around them go through."""
    names = {part.id for call in calls(tree) for a in call.args for part in ast.walk(a) if isinstance(part, ast.Name)}
    for node in ast.walk(tree):
        if isinstance(node, (ast.For, ast.comprehension)):
            loop = {part.id for part in ast.walk(node.target) if isinstance(part, ast.Name)}
            if loop & names:
                names |= {part.id for part in ast.walk(node.iter) if isinstance(part, ast.Name)}
    return names


def test_every_command_in_the_code_is_named() -> None:
    found = {word for room in ("_observe", "_areas") for path in (UTILS / room).glob("*.py") for word in commands(path)}
    assert {"nvidia-smi", "dmidecode", "ethtool", "wipefs", "systemctl"} <= found, "or the proof would be none"
    assert found - NO_PROGRAMS - NAMED == set()


@pytest.mark.parametrize("name", every_area.NAMES)
def test_every_command_that_is_run_is_named(name: str, tmp_path: Path) -> None:
    asked: set[str] = set()

    class Spy(MemoHost):
        def run(self, argv: Sequence[str], deadline_s: float = 10.0) -> Any:
            asked.add(argv[0].rsplit("/", 1)[-1])
            return super().run(argv, deadline_s)

    sample = every_area.sample(name)
    whole.audit([sample.area], {name: sample.want}, Spy(sample.make(tmp_path)), {}, None)
    assert {word for word in asked if not word.startswith("gpufleet-")} <= NAMED


def test_no_command_is_named_that_the_code_does_not_know() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in UTILS.rglob("*.py"))
    assert [name for name in sorted(NAMED) if '"%s"' % name not in text] == []
