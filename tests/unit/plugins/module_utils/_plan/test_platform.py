# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every judge of the area platform by its case table, and that no finding is without a case and a word in the docs."""

from __future__ import annotations

import ast
import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Iterator, Mapping

import platform_cases
import pytest
from platform_cases import FOLDER, ROOT

PLAN = ROOT / "plugins/module_utils/_plan"
ROWS = [(topic, row) for topic in platform_cases.topics() for row in platform_cases.table(topic)]


@pytest.mark.parametrize(
    ("topic", "row"), ROWS, ids=["%s: %s" % (topic, row["name"]) for topic, row in ROWS]
)
def test_a_change_makes_exactly_these_findings(topic: str, row: Mapping[str, Any], tmp_path: Path) -> None:
    platform_cases.check(row, tmp_path)
