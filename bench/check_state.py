# Copyright: (c) 2026, gpufleet.host contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs on the target: is the end state there? Shares no code with the collection and asks nobody but the kernel.

    python3 check_state.py '{"sysctls": {...}, "thp": "madvise", ...}'

Prints one line for each difference; the exit status is 1 when there is any.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def chosen(path: str) -> str:
    """The word in brackets."""
    found = re.search(r"\[(\S+)\]", Path(path).read_text())
    return found.group(1) if found else ""


def output(*argv: str) -> str:
    return subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=False).stdout


def mount_options(point: str) -> set[str]:
    """Of the last mount there; mountinfo has the mount's options in field 6 and the superblock's at the end."""
    rows = [line.split(" - ") for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    at = [(left.split(), right.split()) for left, right in rows if left.split()[4] == point]
    if not at or at[-1][1][0] != "xfs":
        return set()
    return set(at[-1][0][5].split(",")) | set(at[-1][1][2].split(","))


def geometry(point: str) -> tuple[int, int]:
    """Allocation groups, and MiB of log."""
    text = output("xfs_info", point)
    groups = re.search(r"agcount=(\d+)", text)
    log = re.search(r"^log\b.*bsize=(\d+)\s+blocks=(\d+)", text, re.MULTILINE)
    if not groups or not log:
        return 0, 0
    return int(groups.group(1)), int(log.group(1)) * int(log.group(2)) >> 20


def slice_state(unit: str) -> dict[str, str]:
    names = "ActiveState,AllowedCPUs,AllowedMemoryNodes,ControlGroup,NeedDaemonReload"
    shown = dict(row.split("=", 1) for row in output("systemctl", "show", f"--property={names}", unit).splitlines())
    folder = Path("/sys/fs/cgroup" + shown.pop("ControlGroup", ""))
    for name in ("cpuset.cpus.effective", "cpuset.mems.effective"):
        shown[name] = (folder / name).read_text().strip() if (folder / name).exists() else "none"
    return shown


def compare(wanted: dict[str, Any]) -> Iterator[tuple[str, object, object]]:
    for name, value in wanted["sysctls"].items():
        live = Path("/proc/sys/" + name.replace(".", "/")).read_text().split()
        yield name, str(value).split(), live
    yield "huge pages", wanted["thp"], chosen("/sys/kernel/mm/transparent_hugepage/enabled")
    for disk in wanted["disks"]:
        yield f"scheduler of {disk}", wanted["scheduler"], chosen(f"/sys/block/{disk}/queue/scheduler")
    options = mount_options(wanted["mount_point"])
    for option in wanted["options"]:
        yield f"{option} of {wanted['mount_point']}", True, option in options
    yield "agcount, log MiB", (wanted["agcount"], wanted["log_mib"]), geometry(wanted["mount_point"])
    for unit, (cpus, mems) in wanted["slices"].items():
        expected = {"ActiveState": "active", "AllowedCPUs": cpus, "AllowedMemoryNodes": mems, "NeedDaemonReload": "no"}
        expected |= {"cpuset.cpus.effective": cpus, "cpuset.mems.effective": mems}
        yield unit, expected, slice_state(unit)


def main() -> int:
    rows = [row for row in compare(json.loads(sys.argv[1])) if row[1] != row[2]]
    for name, expected, observed in rows:
        print(f"{name}: expected {expected}, observed {observed}")
    return 1 if rows else 0


if __name__ == "__main__":
    sys.exit(main())
