# SPDX-License-Identifier: GPL-3.0-or-later
"""Write docs/tables.md from the tables of facts that the collection judges by."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tools.parts import COLLECTIONS, ROOT

PAGE = ROOT / "docs/tables.md"
HEAD = """\
# Tables

<!-- written by `make docs` from plugins/module_utils/_tables -->

What the collection knows of hardware and software by itself, with the source of each row. A figure with a `?` has no
public source: it is shown where it helps, and nothing fails on it.

*Public sample* and *F* with a number name a public file by its number in the index that the figures were collected
from.

Rows are added or changed by a variable with the keys below. A row with the same key as a built-in one changes what
it names and keeps the rest. What an operator gives counts as verified; a misspelt key or a wrong unit is refused
before any host is touched.

```yaml
# the value of the variable: a table, and rows of it
gpus:
  - name: NVIDIA H20 NVL16
    pci_id: "10de:230e"
    gpu_class: datacenter
    architecture: Hopper
    compute_capability: "9.0"
    memory_mib: 143771
    pcie_gen: 5
    pcie_width: 16
    ecc: hbm_ecc
    source: data sheet of the vendor
  - name: NVIDIA A10G
    memory_mib: 23028
cuda_toolkits:
  - {version: "13.5.0", branch: 620}
```
"""


def tables() -> tuple[Mapping[str, Any], Any]:
    """The tables and the functions about rows, from this checkout."""
    link = COLLECTIONS / "ansible_collections/gpufleet/host"
    if not link.exists():
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(ROOT)
    sys.path.insert(0, str(COLLECTIONS))
    from ansible_collections.gpufleet.host.plugins.module_utils._tables import catalogue, rows

    return catalogue.TABLES, rows


def cell(value: Any) -> str:
    """A value as a cell: lists with commas, nothing for None."""
    if value is None or value == "" or value == ():
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if hasattr(value, "_fields"):
        parts = {name: cell(part) for name, part in value._asdict().items() if part is not False}
        return ", ".join(f"{name} {part}" for name, part in parts.items() if part)
    if isinstance(value, tuple):
        return ", ".join(cell(item) if not isinstance(item, tuple) else " ".join(map(str, item)) for item in value)
    return str(value).replace("|", "\\|")


def line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def body(table: Any, rows: Any) -> Iterator[str]:
    """The rows of a table; columns that no row uses are left out."""
    names = [name for name in table.columns if name not in ("unverified", "source")]
    used = [name for name in names if any(cell(getattr(row, name)) for row in table.rows)]
    yield line([*(name.replace("_", " ") for name in used), "source"])
    yield line(["---"] * (len(used) + 1))
    for row in table.rows:
        cells = []
        for name in used:
            text = cell(getattr(row, name))
            parts = [part.split(".")[1] for part in row.unverified if part.startswith(name + ".")]
            mark = "" if rows.is_verified(row, name) else " ?"
            cells.append(text + (f" ({', '.join(parts)} ?)" if parts and text else mark if text else ""))
        yield line([*cells, cell(row.source)])


def keys(columns: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for name, column in columns.items():
        kind = column.kind
        if column.choices:
            kind = ", ".join(f"`{choice}`" for choice in column.choices)
        elif column.low or column.high:
            kind = f"{kind}, {column.low:g} to {column.high:g}"
        yield line([f"`{prefix}{name}`", kind, "yes" if column.required else "", cell(column.about)])
        if column.inner:
            yield from keys(column.inner[1], f"{prefix}{name}.")


def section(table: Any, rows: Any) -> Iterator[str]:
    about = sys.modules[table.row.__module__].__doc__ or ""
    yield from ["", f"## {table.title}", "", " ".join(about.strip().split("\n\n")[0].split())]
    yield from ["", f"Table `{table.name}`, one row for each {' and '.join(table.key)}.", ""]
    yield from body(table, rows)
    named = [name for name in table.sources if any(name in words(row.source) for row in table.rows)]
    if named:
        yield from ["", "Sources:", "", *(f"- `{name}`: {table.sources[name]}" for name in named)]
    yield from ["", "<details><summary>Keys of a row</summary>", "", "| key | value | required | meaning |"]
    yield from ["|---|---|---|---|", *keys(table.columns), "", "</details>"]


def words(source: str) -> Sequence[str]:
    return source.replace(";", " ").replace(",", " ").replace("(", " ").replace(")", " ").split()


def page() -> str:
    known, rows = tables()
    lines = HEAD.rstrip("\n").split("\n")
    for table in known.values():
        lines += section(table, rows)
    return "\n".join(lines) + "\n"


def main(args: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.tables_page", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, and fail when the page would change")
    check = parser.parse_args(args).check
    old, new = PAGE.read_text() if PAGE.exists() else "", page()
    name = str(PAGE.relative_to(ROOT))
    if new == old:
        return 0
    if check:
        diff = difflib.unified_diff(old.splitlines(), new.splitlines(), name, "wanted", n=0)
        print("\n".join([*diff][:40]))
        return 1
    PAGE.write_text(new)
    print(f"wrote {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
