# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the Molecule scenarios one after the other, or those named on the command line."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from tools.parts import COLLECTIONS, ROOT, close


def run_scenario(name: str, env: dict[str, str]) -> int:
    """From a fresh start to the end; what failed is left standing, so that one can look at it."""

    def molecule(*words: str) -> int:
        return subprocess.run(["molecule", *words, "-s", name], cwd=ROOT, env=env).returncode

    return molecule("destroy") or molecule("test", "--destroy=never") or molecule("destroy")


def main(names: list[str]) -> int:
    folder = ROOT / "molecule"
    scenarios = names or sorted(path.parent.name for path in folder.glob("*/molecule.yml"))
    env = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS)}
    if scenarios and subprocess.run(["tools/lab.sh", "image"], cwd=ROOT).returncode != 0:
        return close(passed=0, failed=len(scenarios))
    failed = []
    for name in scenarios:
        started = time.monotonic()
        print(f"\nscenario {name}", flush=True)
        rc = run_scenario(name, env)
        minutes = (time.monotonic() - started) / 60
        print(f"scenario {name}: {'ok' if rc == 0 else 'FAILED'}, {minutes:.1f} min", flush=True)
        if rc != 0:
            failed.append(name)
    for name in failed:
        print(
            f"What to do: `molecule converge -s {name}` and `molecule verify -s {name}` repeat one "
            "step on the lab host that is still there; `make lab-down lab` gives a fresh one."
        )
    if not scenarios:
        print("There is no scenario in molecule/.")
    return close(passed=len(scenarios) - len(failed), failed=len(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
