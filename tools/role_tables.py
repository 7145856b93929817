# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the variable table of each role's README from its argument specs, its defaults and its profiles.

Variables of a role have their defaults in defaults/main.yml alone: Ansible refuses a null where the spec has one.
"""

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


def cell(values: Options, name: str) -> str:
    """A value as JSON, empty for null: then the host keeps its own."""
    if values.get(name) is None:
        return ""
    value = json.dumps(values[name], ensure_ascii=False).replace("|", "\\|")
    return f"`{value}`"


def default_of(option: Options) -> str:
    return "required" if option.get("required") else cell(option, "default")


def with_defaults(options: dict[str, Options], defaults: Options) -> dict[str, Options]:
    return {name: {**option, "default": defaults.get(name, option.get("default"))} for name, option in options.items()}


def profiles_of(role: Path) -> dict[str, Options]:
    """What each profile sets, by the name of the role's variable."""
    variables = read(role / "vars/main.yml")
    profiles: dict[str, Options] = variables.get(f"__{role.name}_profiles") or {}
    return {
        profile: {f"{role.name}_{option}": value for option, value in values.items()}
        for profile, values in profiles.items()
    }


def read(file: Path) -> Options:
    found: Options = (yaml.safe_load(file.read_text()) if file.exists() else None) or {}
    return found


def rows(options: dict[str, Options], prefix: str = "", profiles: dict[str, Options] | None = None) -> Iterator[str]:
    """One row an option, the options inside it right below."""
    for name, option in options.items():
        own = [cell(values, prefix + name) for values in (profiles or {}).values()]
        text = as_text(option.get("description"))
        if option.get("choices"):
            text += " One of " + ", ".join(f"`{choice}`" for choice in option["choices"]) + "."
        yield "| " + " | ".join([f"`{prefix}{name}`", type_of(option), default_of(option), *own, text]) + " |"
        inner = f"{prefix}{name}[]." if option.get("type") == "list" else f"{prefix}{name}."
        yield from rows(option.get("options") or {}, inner, profiles)


def table(specs: dict[str, Any], profiles: dict[str, Options] | None = None) -> str:
    lines: list[str] = []
    heads = ["variable", "type", "default", *[f"`{name}`" for name in profiles or {}], "meaning"]
    for entry, spec in specs.items():
        if entry != "main":
            lines += ["", f"With `tasks_from: {entry}`:"]
        options = spec.get("options") or {}
        if options:
            lines += ["", "| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
            lines += rows(options, profiles=profiles)
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
        specs = read(spec_file).get("argument_specs") or {}
        defaults = read(role / "defaults/main.yml")
        for spec in specs.values():
            spec["options"] = with_defaults(spec.get("options") or {}, defaults)
        readme = role / "README.md"
        old = readme.read_text() if readme.exists() else ""
        new = renewed(old or heading(role.name, specs), table(specs, profiles_of(role)))
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
