# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the variable table of each role's README from its argument specs."""

from __future__ import annotations

import argparse
import difflib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tools.parts import ROOT

BEGIN = "<!-- variables: written by `make docs` from meta/argument_specs.yml -->"
END = "<!-- end of variables -->"
Options = dict[str, Any]


def markdown(text: str) -> str:
    """Ansible's markup as Markdown that fits a table cell."""
    text = re.sub(r"\b(?:C|V|O|E|RV)\(([^)]*)\)", r"`\1`", text)
    text = re.sub(r"\bB\(([^)]*)\)", r"**\1**", text)
    text = re.sub(r"\bI\(([^)]*)\)", r"*\1*", text)
    text = re.sub(r"\b(?:M|P)\(([^)#]*)(?:#[a-z]*)?\)", r"`\1`", text)
    text = re.sub(r"\bL\(([^,)]*), *([^)]*)\)", r"[\1](\2)", text)
    text = re.sub(r"\bU\(([^)]*)\)", r"<\1>", text)
    return " ".join(text.split()).replace("|", "\\|")


def as_text(value: str | list[str] | None) -> str:
    paragraphs = value if isinstance(value, list) else [value or ""]
    return markdown(" ".join(str(paragraph) for paragraph in paragraphs))


def type_of(option: Options) -> str:
    kind = str(option.get("type", "str"))
    return f"list of {option['elements']}" if kind == "list" and "elements" in option else kind


def default_of(option: Options) -> str:
    if option.get("required"):
        return "required"
    if "default" not in option:
        return ""
    value = json.dumps(option["default"], ensure_ascii=False).replace("|", "\\|")
    return f"`{value}`"


def rows(options: dict[str, Options], prefix: str = "") -> Iterator[str]:
    """One row an option, the options inside it right below."""
    for name, option in options.items():
        text = as_text(option.get("description"))
        if option.get("choices"):
            text += " One of " + ", ".join(f"`{choice}`" for choice in option["choices"]) + "."
        yield f"| `{prefix}{name}` | {type_of(option)} | {default_of(option)} | {text} |"
        inner = f"{prefix}{name}[]." if option.get("type") == "list" else f"{prefix}{name}."
        yield from rows(option.get("options") or {}, inner)


def table(specs: dict[str, Any]) -> str:
    lines: list[str] = []
    for entry, spec in specs.items():
        if entry != "main":
            lines += ["", f"With `tasks_from: {entry}`:"]
        options = spec.get("options") or {}
        if options:
            lines += ["", "| variable | type | default | meaning |", "|---|---|---|---|"]
            lines += rows(options)
        else:
            lines += ["", "No variables."]
    return "\n".join(lines).strip()


def heading(role: str, specs: dict[str, Any]) -> str:
    main = specs.get("main", {})
    return f"# {role}\n\n{as_text(main.get('short_description'))}\n\n## Variables\n\n{BEGIN}\n{END}\n"


def renewed(readme: str, new_table: str) -> str:
    """The README with the text between the markers replaced."""
    if BEGIN not in readme or END not in readme:
        readme = f"{readme.rstrip()}\n\n## Variables\n\n{BEGIN}\n{END}\n"
    before, rest = readme.split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    return f"{before}{BEGIN}\n\n{new_table}\n\n{END}{after}"


def main(args: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.role_tables", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, and fail for a README that would change")
    check = parser.parse_args(args).check
    faults = 0
    for spec_file in sorted(Path(ROOT, "roles").glob("*/meta/argument_specs.yml")):
        role = spec_file.parents[1]
        specs = (yaml.safe_load(spec_file.read_text()) or {}).get("argument_specs") or {}
        readme = role / "README.md"
        old = readme.read_text() if readme.exists() else ""
        new = renewed(old or heading(role.name, specs), table(specs))
        if new == old:
            continue
        name = str(readme.relative_to(ROOT))
        if check:
            faults += 1
            diff = difflib.unified_diff(old.splitlines(), new.splitlines(), name, "wanted", n=0)
            print("\n".join([*diff][:40]))
        else:
            readme.write_text(new)
            print(f"wrote {name}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
