# SPDX-License-Identifier: GPL-3.0-or-later
"""Write docs/order.schema.json from the dataclasses that are the format of a purchase order."""

from __future__ import annotations

import json
import sys

from tools.parts import COLLECTIONS, ROOT

FILE = ROOT / "docs/order.schema.json"


def main() -> int:
    sys.path.insert(0, str(COLLECTIONS))
    from ansible_collections.gpufleet.host.plugins.plugin_utils.order import schema

    FILE.write_text(json.dumps(schema(), indent=2) + "\n", encoding="utf-8")
    print(f"wrote {FILE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
