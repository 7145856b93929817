# Copyright: (c) 2026, gpufleet.host contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs on the target: what the modules that a playbook left there cost by themselves.

    python3 payload.py FOLDER REPEATS

Prints JSON: for each AnsiballZ file its CPU seconds (user and system, with its children) and its largest memory in MB.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path


def spend(argv: list[str]) -> tuple[float, float]:
    pid = os.fork()
    if pid == 0:
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        os.execv(argv[0], argv)
    _pid, _status, usage = os.wait4(pid, 0)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main() -> None:
    files = sorted(Path(sys.argv[1]).glob("*/AnsiballZ_*.py"))
    rows = []
    for file in files:
        costs = [spend([sys.executable, str(file)]) for _number in range(int(sys.argv[2]))]
        name = file.stem[len("AnsiballZ_") :]
        rows.append({"module": name, "cpu_s": [cpu for cpu, _rss in costs], "rss_mb": max(rss for _cpu, rss in costs)})
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
