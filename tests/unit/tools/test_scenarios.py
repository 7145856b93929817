# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tools import scenarios


def test_a_step_that_was_passed_over_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenarios, "ROOT", tmp_path)
    monkeypatch.setattr(scenarios, "RESULTS", tmp_path / "results")
    for path in ("molecule/x/tests/test_a.py", "molecule/x/tests/test_b.py", "molecule/x/tests/test_c.py"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    (tmp_path / "results/x").mkdir(parents=True)
    for name, count in (("test_a", 3), ("test_b", 0)):
        text = f'<testsuites><testsuite name="pytest" tests="{count}"/></testsuites>'
        (tmp_path / "results/x" / f"{name}.xml").write_text(text)
    assert scenarios.count_tests("x") == (3, ["test_b.py", "test_c.py"])


@pytest.mark.parametrize("path", sorted(scenarios.ROOT.glob("molecule/*/molecule.yml")), ids=str)
def test_every_test_file_of_a_scenario_is_a_step_of_it(path: Path) -> None:
    scenario = yaml.safe_load(path.read_text())
    steps = [step.split()[1] for step in scenario["scenario"]["test_sequence"] if step.startswith("side_effect ")]
    assert (path.parent / scenario["provisioner"]["playbooks"]["side_effect"]).exists()
    called = "".join((path.parent / name).read_text() for name in [*steps, "prepare.yml", "verify.yml"])
    for test in (path.parent / "tests").glob("test_*.py"):
        assert f"step: {test.stem[len('test_') :]}\n" in called, f"no step runs {test.name}"
