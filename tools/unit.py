# SPDX-License-Identifier: GPL-3.0-or-later
"""Unit tests: all of them here, those of target-side code under other Pythons as well.

A target may run Python 3.8. There the collection sees only what Ansible ships with a module, so
the other interpreters get `ansible.module_utils` and nothing else of Ansible.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

from tools import cores
from tools.parts import CACHE, ROOT, close
from tools.pythons import OLDEST, Version, environment, interpreters

TARGET_TESTS = ("tests/unit/plugins/module_utils", "tests/unit/plugins/modules")


def run_pytest(python: Path, label: str, args: list[str], env: dict[str, str]) -> tuple[int, int]:
    """Run pytest and return the numbers of passed and failed tests."""
    junit = CACHE / f"unit-{label}.xml"
    junit.unlink(missing_ok=True)
    argv = [str(python), "-m", "pytest", "-q", "-n", "2", f"--junitxml={junit}", *args]
    rc = subprocess.run(argv, cwd=ROOT, env={**os.environ, **env}).returncode
    if not junit.exists():
        return 0, 1
    passed = failed = 0
    for suite in ElementTree.parse(junit).iter("testsuite"):
        bad = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
        failed += bad
        passed += int(suite.get("tests", 0)) - bad - int(suite.get("skipped", 0))
    # A collection error or an interrupt shows in the exit status alone.
    return passed, max(failed, 1) if rc not in (0, 5) else failed


def target_python(version: Version, interpreter: Path) -> Path:
    """A virtual environment of that interpreter with what the tests need."""
    return environment(CACHE / f"py{version[0]}.{version[1]}", interpreter, ROOT / "requirements-target.txt")


def shipped_ansible() -> Path:
    """A folder with the part of Ansible that travels to a target."""
    import ansible.module_utils
    import ansible.release

    folder = CACHE / "target-path"
    package = folder / "ansible"
    package.mkdir(parents=True, exist_ok=True)
    (package / "__init__.py").write_text(f"__version__ = {ansible.release.__version__!r}\n")
    link = package / "module_utils"
    link.unlink(missing_ok=True)
    link.symlink_to(Path(ansible.module_utils.__file__).parent)
    return folder


def chosen(found: dict[Version, Path]) -> list[Version]:
    """The oldest that targets may have, and the newest there is."""
    wanted = [OLDEST] if OLDEST in found else []
    newer = [version for version in found if version > sys.version_info[:2]]
    return wanted + ([max(newer)] if newer else [])


def main(args: list[str]) -> int:
    here = f"{sys.version_info[0]}.{sys.version_info[1]}"
    if not args:
        cores.make()
    print(f"Python {here}: all unit tests", flush=True)
    passed, failed = run_pytest(Path(sys.executable), here, args, {})
    if args:
        # A selection is for the one who edits; other interpreters are for the whole.
        return close(passed=passed, failed=failed)

    found = interpreters()
    if OLDEST not in found:
        print("Python 3.8 is not installed: the tests did not run under it.")
    if not any(version > sys.version_info[:2] for version in found):
        print(f"No Python newer than {here} is installed: the tests did not run under one.")
    folders = [folder for folder in TARGET_TESTS if (ROOT / folder).is_dir()]
    for version in chosen(found) if folders else []:
        label = f"{version[0]}.{version[1]}"
        print(f"\nPython {label}: tests of what runs on targets", flush=True)
        env = {"PYTHONPATH": str(shipped_ansible())}
        more_passed, more_failed = run_pytest(target_python(version, found[version]), label, folders, env)
        passed += more_passed
        failed += more_failed
    if failed:
        print("What to do: `make unit ARGS='-x -k NAME'` runs one test and stops at it.")
    return close(passed=passed, failed=failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
