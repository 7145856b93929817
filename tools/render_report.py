# SPDX-License-Identifier: GPL-3.0-or-later
"""Make the page of a run again from its JSON files: python -m tools.render_report [FOLDER]

FOLDER is artifacts/latest by default. What a run that was cut off has left is enough.
"""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__" and __package__ in (None, ""):
    # Run by its path: the checkout's own modules are not on Python's path then.
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools.parts import COLLECTIONS, ROOT


def main(args: list[str]) -> int:
    link = COLLECTIONS / "ansible_collections/gpufleet/host"
    if not link.exists():
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(ROOT)
    sys.path.insert(0, str(COLLECTIONS))
    from ansible_collections.gpufleet.host.plugins.plugin_utils import fleet_files, fleet_page

    folder = Path(args[0] if args else "artifacts/latest")
    if not any(folder.glob("*.json")):
        print(f"There is no report in {folder}. Name the folder of a run: artifacts/RUN", file=sys.stderr)
        return 2
    page = fleet_files.write_pages(folder.resolve(), fleet_page.pages_of_folder(folder))
    print(f"Report: {page}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
