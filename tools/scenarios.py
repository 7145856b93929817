# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the Molecule scenarios one after the other, or those named on the command line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from xml.etree import ElementTree

from tools.parts import CACHE, COLLECTIONS, ROOT, close

RESULTS = CACHE / "molecule"


def run_scenario(name: str, env: dict[str, str]) -> int:
    """From a fresh start to the end; what failed is left standing, so that one can look at it."""
    shutil.rmtree(RESULTS / name, ignore_errors=True)

    def molecule(*words: str) -> int:
        return subprocess.run(["molecule", *words, "-s", name], cwd=ROOT, env=env).returncode

    return molecule("destroy") or molecule("test", "--destroy=never") or molecule("destroy")


def count_tests(name: str) -> tuple[int, list[str]]:
    """How many tests of a scenario ran, and its test files of which none did: a step may be passed over in silence."""
    count, missed = 0, []
    for path in sorted((ROOT / "molecule" / name / "tests").glob("test_*.py")):
        result = RESULTS / name / f"{path.stem}.xml"
        ran = int(ElementTree.parse(result).getroot()[0].get("tests", "0")) if result.exists() else 0
        count += ran
        if not ran:
            missed.append(path.name)
    return count, missed


def main(names: list[str]) -> int:
    folder = ROOT / "molecule"
    scenarios = names or sorted(path.parent.name for path in folder.glob("*/molecule.yml"))
    env = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS)}
    if scenarios and subprocess.run(["tools/lab.sh", "image"], cwd=ROOT).returncode != 0:
        return close(passed=0, failed=len(scenarios))
    failed = []
    passed = 0
    for name in scenarios:
        started = time.monotonic()
        print(f"\nscenario {name}", flush=True)
        rc = run_scenario(name, env)
        minutes = (time.monotonic() - started) / 60
        tests, missed = count_tests(name)
        is_ok = rc == 0 and not missed
        print(f"scenario {name}: {'ok' if is_ok else 'FAILED'}, {tests} tests, {minutes:.1f} min", flush=True)
        if rc == 0 and missed:
            print(f"Molecule ended well and yet none of these ran: {', '.join(missed)}. See its test_sequence.")
        if is_ok:
            passed += tests
        else:
            failed.append(name)
    for name in failed:
        print(
            f"What to do: `molecule converge -s {name}` and `molecule verify -s {name}` repeat one "
            "step on the lab host that is still there; `make lab-down lab` gives a fresh one."
        )
    if not scenarios:
        print("There is no scenario in molecule/.")
    return close(passed=passed, failed=len(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
