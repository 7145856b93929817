# SPDX-License-Identifier: GPL-3.0-or-later
"""Write docs/stories.md: which failures from public reports are found, by which finding, and which cannot be seen."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import yaml

from tools.parts import ROOT

PAGE = ROOT / "docs/stories.md"
ROWS = ROOT / "tests/unit/cases/stories.yml"
CAPTURES = ROOT / "tests/corpus/stories"
HEAD = """\
# Failure stories

Failures of GPU hosts from public reports, and what finds them here. Made by `python3 -m tools.stories_page` from
`tests/unit/cases/stories.yml` and the captures in `tests/corpus/stories`; a test keeps it true.

Each capture holds what the report shows, completed where a judge needs more of the machine, and says what of it is
real. The test audits it with the area [platform](areas/platform.md), wants the findings below with a way out that
names the cure, and no other failure.
"""


def captures() -> dict[str, dict[str, Any]]:
    return {path.stem: yaml.safe_load(path.read_text("utf-8")) for path in sorted(CAPTURES.glob("*.yml"))}


def numbers(about: dict[str, Any]) -> list[int]:
    said = about["story"]
    return said if isinstance(said, list) else [said]


def found(about: dict[str, Any]) -> str:
    levels: dict[str, list[str]] = {}
    for id_, _subject, level, *_words in about.get("expect", []):
        named = levels.setdefault(id_.removeprefix("platform."), [])
        named += [level] if level not in named else []
    return ", ".join(f"`{name}` ({', '.join(said)})" for name, said in levels.items()) or "nothing, as it is no fault"


def page() -> str:
    rows: list[dict[str, Any]] = yaml.safe_load(ROWS.read_text("utf-8"))
    told = captures()
    lines = [
        HEAD,
        "## Found in a capture",
        "",
        "| no. | story | report | capture | findings |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        for name, about in told.items():
            if row["number"] in numbers(about):
                lines.append(f"| {row['number']} | {row['title']} | {row['source']} | `{name}` | {found(about)} |")
    strange = {name: about for name, about in told.items() if not numbers(about)}
    lines += ["", "Strange outputs that are in no report:", ""]
    lines += [f"- `{name}`: {about['description']} Found: {found(about)}." for name, about in strange.items()]
    lines += ["", "## Found by other areas", "", "| no. | story | report | tested in |", "|---|---|---|---|"]
    for row in rows:
        if "tested" in row:
            place = Path(row["tested"]["file"])
            lines.append(f"| {row['number']} | {row['title']} | {row['source']} | [{place.name}](../{place}) |")
    lines += ["", "## Not to be seen", "", "| no. | story | report | why |", "|---|---|---|---|"]
    lines += [
        f"| {row['number']} | {row['title']} | {row['source']} | {row['unseen']} |" for row in rows if "unseen" in row
    ]
    return "\n".join(lines) + "\n"


def main(args: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.stories_page", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, and fail when the page would change")
    check = parser.parse_args(args).check
    is_true = PAGE.exists() and PAGE.read_text("utf-8") == page()
    if not is_true and not check:
        PAGE.write_text(page(), encoding="utf-8")
    return int(check and not is_true)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
