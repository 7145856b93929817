# SPDX-License-Identifier: GPL-3.0-or-later
"""Refuse names of package registries and mirrors: a site names its own, or its machines know them."""

from __future__ import annotations

import re
import sys

from tools.parts import ROOT, tracked_files

# Joined here, so that this file does not name them either.
REGISTRIES = re.compile(
    "|".join(
        re.escape(".".join(parts))
        for parts in (
            ("pypi", "org"),
            ("pythonhosted", "org"),
            ("npmjs", "org"),
            ("npmjs", "com"),
            ("deb", "debian", "org"),
            ("ftp", "debian", "org"),
            ("security", "debian", "org"),
            ("archive", "ubuntu", "com"),
            ("security", "ubuntu", "com"),
            ("conda", "anaconda", "org"),
            ("galaxy", "ansible", "com"),
            ("developer", "download", "nvidia", "com"),
            ("docker", "io"),
            ("quay", "io"),
            ("ghcr", "io"),
            ("nvcr", "io"),
        )
    )
)


def main() -> int:
    faults = 0
    for name in tracked_files():
        # Captures and command output of real hosts are kept as they were.
        if name.startswith("tests/corpus/"):
            continue
        text = (ROOT / name).read_text(encoding="utf-8", errors="replace")
        for number, line in enumerate(text.splitlines(), start=1):
            found = REGISTRIES.search(line)
            if found:
                print(f"{name}:{number}: names the registry host {found.group()}")
                faults += 1
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
