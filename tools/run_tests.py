# SPDX-License-Identifier: GPL-3.0-or-later
"""`make test`: the cheap parts first, while the lab host is built beside them.

Lint, unit and sanity always all run, since together they cost minutes. The scenarios on the lab
cost more, and only start when the others have passed.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass

from tools.parts import CACHE, ROOT, close

CLOSING = re.compile(r"^(\d+) passed, (\d+) failed$")
LAB_LOG = CACHE / "lab-for-test.log"


@dataclass(frozen=True)
class Part:
    """A make target of its own."""

    name: str
    module: str
    needs_lab: bool = False


@dataclass(frozen=True)
class Result:
    part: Part
    passed: int
    failed: int
    seconds: float


PARTS = (
    Part("lint", "tools.lint"),
    Part("unit", "tools.unit"),
    Part("sanity", "tools.sanity"),
    Part("molecule", "tools.scenarios", needs_lab=True),
)


def clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def run_part(part: Part) -> Result:
    """Show the part's output as it comes, and keep its closing count."""
    print(f"\n===== {part.name} =====", flush=True)
    started = time.monotonic()
    passed = failed = 0
    with subprocess.Popen(
        [sys.executable, "-u", "-m", part.module],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            count = CLOSING.match(line.strip())
            if count:
                passed, failed = int(count[1]), int(count[2])
    if process.returncode != 0:
        failed = max(failed, 1)
    seconds = time.monotonic() - started
    print(f"===== {part.name}: {clock(seconds)} min =====", flush=True)
    return Result(part, passed, failed, seconds)


def start_lab() -> subprocess.Popen[bytes]:
    """Build the lab's image beside the other parts, in a process group that can be stopped whole."""
    print(f"Building the lab host meanwhile; progress in {LAB_LOG.relative_to(ROOT)}", flush=True)
    LAB_LOG.parent.mkdir(parents=True, exist_ok=True)
    commands = "set -e; for step in 'requirements --install' build; do python lab/lab.py $step; done"
    with LAB_LOG.open("wb") as log:
        return subprocess.Popen(
            ["nice", "bash", "-c", commands],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def finish_lab(lab: subprocess.Popen[bytes]) -> bool:
    if lab.poll() is None:
        print("\nWaiting for the lab host's image", flush=True)
    if lab.wait() == 0:
        return True
    print("".join(LAB_LOG.read_text(errors="replace").splitlines(keepends=True)[-30:]))
    print("The lab host could not be built. `make lab` repeats it in the foreground.", flush=True)
    return False


def stop_lab(lab: subprocess.Popen[bytes]) -> None:
    if lab.poll() is None:
        os.killpg(lab.pid, signal.SIGTERM)
        lab.wait()


def main() -> int:
    started = time.monotonic()
    lab = start_lab()
    results: list[Result] = []
    try:
        for part in PARTS:
            if part.needs_lab and any(result.failed for result in results):
                print(f"\n===== {part.name}: not run, since a cheaper part failed =====")
                continue
            if part.needs_lab and not finish_lab(lab):
                results.append(Result(part, 0, 1, 0.0))
                continue
            results.append(run_part(part))
    finally:
        stop_lab(lab)

    print("\npart        passed  failed   min")
    for result in results:
        print(f"{result.part.name:<11} {result.passed:6} {result.failed:7} {clock(result.seconds):>6}")
    print(f"{'together':<27} {clock(time.monotonic() - started):>6}")
    bad = [result.part.name for result in results if result.failed]
    if bad:
        print(f"What to do: scroll up to the first failure, mend it, then `make {bad[0]}`.")
    return close(
        passed=sum(result.passed for result in results),
        failed=sum(result.failed for result in results),
    )


if __name__ == "__main__":
    sys.exit(main())
