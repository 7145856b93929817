# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All areas that there are, found by their files, each with its fake host and a want for it.

What is proved for every area takes its areas from here, so that a new one cannot be forgotten.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Mapping

import yaml
from fakes import FakeHost

from ansible_collections.gpufleet.host.plugins.module_utils._engine import whole
from ansible_collections.gpufleet.host.plugins.module_utils._engine.engine import Area

ROOT = Path(__file__).resolve().parents[2]
UTILS = "ansible_collections.gpufleet.host.plugins.module_utils."
# They list areas.
NO_AREAS = ("all", "tuning")
NAMES = sorted(path.stem for path in (ROOT / "plugins/module_utils/_areas").glob("*.py") if path.stem not in NO_AREAS)
ABOUT: Mapping[str, Any] = yaml.safe_load((ROOT / "tests/unit/cases/every_area.yml").read_text())


@dataclass(frozen=True)
class Sample:
    """An area and what to try it on."""

    area: Area
    spec: Mapping[str, Any]
    want: Mapping[str, Any]
    fake: Any

    def make(self, root: Path) -> FakeHost:
        host: FakeHost = self.fake.make(root)
        return host


def sample(name: str) -> Sample:
    module = importlib.import_module(UTILS + "_areas." + name)
    return Sample(
        area=module.AREA,
        spec=module.SPEC,
        want=whole.valid_want(module.AREA, ABOUT[name]["want"]),
        fake=importlib.import_module(ABOUT[name]["fake"]),
    )
