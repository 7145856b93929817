# SPDX-License-Identifier: GPL-3.0-or-later
"""What the pages for people name is there: files, pictures, headings, make targets, tools."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from tools.parts import ROOT, tracked_files

PAGES = tracked_files("*.md")
LINK = re.compile(r"\]\(<?([^)<>\s]+)>?(?:\s+\"[^\"]*\")?\)")
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
MAKE = re.compile(r"(?:^ {4}|^|`)make ((?:[a-z][a-z-]*(?: |$|`))+)", re.MULTILINE)
TOOL = re.compile(r"python3? (-m )?((?:tools|lab|bench)[./][\w./]+)")
# Beyond the checkout: of these only the form could be checked.
ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
TARGETS = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def anchors(page: Path) -> set[str]:
    """The names that headings get: small letters, spaces to dashes, no punctuation."""
    titles = re.findall(r"^#+ +(.+?) *#*$", re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def faults(page: Path) -> list[str]:
    found = []
    for link in LINK.findall(CODE.sub("", page.read_text(encoding="utf-8"))):
        path, _hash, anchor = unquote(link).partition("#")
        if ELSEWHERE.match(link):
            continue
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or ROOT not in [target, *target.parents]:
            found.append(f"{link}: there is no such file")
        elif anchor and target.suffix == ".md" and anchor not in anchors(target):
            found.append(f"{link}: {target.name} has no such heading")
    return found


def test_there_are_pages() -> None:
    assert {"README.md", "docs/README.md"} <= set(PAGES)


@pytest.mark.parametrize("name", PAGES)
def test_every_relative_link_leads_somewhere(name: str) -> None:
    assert faults(ROOT / name) == []


@pytest.mark.parametrize("name", PAGES)
def test_every_make_target_and_tool_that_is_named_is_there(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    for words in MAKE.findall(text):
        assert set(words.replace("`", "").split()) <= TARGETS, words
    for is_module, place in TOOL.findall(text):
        path = ROOT / (place.replace(".", "/") + ".py" if is_module else place)
        assert path.exists(), place


def test_a_dead_link_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    page = tmp_path / "a.md"
    page.write_text(
        "# One & two\n[a](b.md) [c](#one--two) [d](#three) [e](../a.md) `[f](g.md)` [h](urn:x) ![i](j.png)\n"
    )
    assert [fault.split(":")[0] for fault in faults(page)] == ["b.md", "#three", "../a.md", "j.png"]
