# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands that README and docs print, and what is done with each of them.

``tests/unit/cases/doc_commands.yml`` has a row for each: run here, run on the lab, or not run, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tools.parts import ROOT, tracked_files

ROWS = ROOT / "tests/unit/cases/doc_commands.yml"
PAGES = [name for name in tracked_files("*.md") if not name.startswith(("changelogs/", "CHANGELOG"))]
PROGRAMS = (
    "ansible-playbook", "ansible-galaxy", "ansible-doc", "ansible", "make", "python", "python3", "sudo", "nvidia-smi", "git",
)  # fmt: skip
_FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"^(?:> ?)* {4,}(?:> )?([^\n]+)$", re.MULTILINE)
_INLINE = re.compile(r"`([^`\n]+)`")


def commands_of(text: str) -> Iterator[str]:
    """Commands in blocks, and whole ones within lines: a program alone, or with dots for the reader, is speech."""
    for language, body in _FENCE.findall(text):
        if language in ("", "sh", "console"):
            yield from filter(None, map(command_in, body.splitlines()))
    prose = _FENCE.sub("", text)
    yield from filter(None, map(command_in, _INDENTED.findall(prose)))
    for code in _INLINE.findall(prose):
        found = command_in(code)
        if found and " " in found and not re.search(r"…|\.\.\.|\b[A-Z]{3,}\b", found):
            yield found


def command_in(line: str) -> str:
    """The command of a line without its comment, or nothing."""
    words = re.split(r"\s{2,}#|\s#\s", line.strip().removeprefix("$ "))[0].split()
    return " ".join(words) if words and words[0] in PROGRAMS else ""


def printed() -> dict[str, list[str]]:
    """Each command with the pages that print it."""
    found: dict[str, list[str]] = {}
    for page in PAGES:
        for command in commands_of((ROOT / page).read_text(encoding="utf-8")):
            found.setdefault(command, []).append(page)
    return found


def rows() -> list[dict[str, Any]]:
    loaded: list[dict[str, Any]] = yaml.safe_load(ROWS.read_text(encoding="utf-8"))
    return loaded


def to_run(place: str) -> list[dict[str, Any]]:
    """The rows that are run in a place: here or lab."""
    return [row for row in rows() if row["run"] == place]


def readme_inventory() -> str:
    """The inventory that README prints."""
    blocks = re.findall(r"```yaml\n(gpu_hosts:.*?)```", Path(ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 1
    return str(blocks[0])
