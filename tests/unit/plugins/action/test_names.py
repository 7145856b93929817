# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

from ansible_collections.gpufleet.host.plugins.module_utils._areas.all import AREAS

PLUGINS = Path(__file__).resolve().parents[4] / "plugins"


def test_each_module_that_takes_wants_goes_through_the_door() -> None:
    doors = {file.stem for file in (PLUGINS / "action").glob("*.py")}
    # order_acceptance takes no wants, and is on the controller alone.
    assert doors == {
        *AREAS, "node_audit", "node_audit_tuning", "node_capture", "node_revert", "order_acceptance",
    }  # fmt: skip
