# SPDX-License-Identifier: GPL-3.0-or-later
"""What the parts of `make test` share: running checks and closing with a count."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CACHE = ROOT / ".cache"
COLLECTIONS = CACHE / "collections"


@dataclass(frozen=True)
class Check:
    """One command that passes by exiting with 0, and what to do when it does not."""

    name: str
    argv: Sequence[str]
    hint: str
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    check: Check
    rc: int
    output: str
    seconds: float


def tracked_files(*patterns: str) -> list[str]:
    """Files that git knows or would add, so that build products are never checked."""
    argv = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *patterns]
    listing = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return sorted({name for name in listing.split("\0") if name and (ROOT / name).is_file()})


def run_check(check: Check) -> Outcome:
    started = time.monotonic()
    done = subprocess.run(
        check.argv,
        cwd=ROOT,
        env={**os.environ, **check.env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    return Outcome(check, done.returncode, done.stdout, time.monotonic() - started)


def run_checks(checks: Sequence[Check], *, workers: int) -> int:
    """Run all checks, a failed one stops no other; returns the exit status."""
    failed: list[Outcome] = []
    with ThreadPoolExecutor(max_workers=workers) as pool:
        for future in as_completed([pool.submit(run_check, check) for check in checks]):
            outcome = future.result()
            word = "ok    " if outcome.rc == 0 else "FAILED"
            print(f"{word} {outcome.check.name:<22} {outcome.seconds:6.1f} s", flush=True)
            if outcome.rc != 0:
                failed.append(outcome)
    for outcome in failed:
        print(f"\n--- {outcome.check.name}: {' '.join(outcome.check.argv)[:300]}")
        print(outcome.output.rstrip())
        print(f"What to do: {outcome.check.hint}", flush=True)
    return close(passed=len(checks) - len(failed), failed=len(failed))


def close(*, passed: int, failed: int) -> int:
    """The closing line of every part, which the whole run adds up."""
    print(f"\n{passed} passed, {failed} failed", flush=True)
    return 1 if failed else 0
