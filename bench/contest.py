# Copyright: (c) 2026, gpufleet.host contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The contestants: their inventory, their variables, how a playbook is run and what one run costs."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.target import ADDRESS, BENCH, PORT, SSH_OPTIONS, STATE, Gpus, Target
from lab.base import REPO, LabError, tail_file

FORKS = 20
# The collection as it was when the run began, so that edits in between do not count as drift.
COLLECTIONS = STATE / "collections"
_COPY = COLLECTIONS / "ansible_collections/gpufleet/host"
_PARTS = ("galaxy.yml", "meta", "playbooks", "plugins", "roles", "site.yml", "bench/peer")
DISKS = ("nvme0n1", "nvme1n1")
SERIALS = ("BENCH_NVME_0", "BENCH_NVME_1")
DEVICE = "/dev/disk/by-id/virtio-BENCH_DATA"
_RECAP = re.compile(
    r"^\S+\s+: ok=(\d+)\s+changed=(\d+)\s+unreachable=(\d+)\s+failed=(\d+)\s+skipped=(\d+)", re.MULTILINE
)


@dataclass(frozen=True)
class Cost:
    """One run of ansible-playbook as a whole process."""

    wall_s: float
    controller_cpu_s: float
    hosts: int
    tasks: int
    changed: int
    failed: int
    rc: int
    log: Path


@dataclass(frozen=True)
class Contestant:
    """Who runs: a name, the playbooks for each mode, and settings beyond the common ones."""

    name: str
    top: str
    playbooks: Mapping[str, Sequence[str]]
    settings: Mapping[str, str]


# Only what the other side does as well: it knows nothing of hardware, firmware and databases.
_WORK = ("--tags", "kernel,io_scheduler,xfs_storage,numa_slices")
OURS = Contestant(
    "gpufleet.host", "gpufleet",
    {
        "verify": ["playbooks/audit.yml", *_WORK],
        "converge": ["site.yml", *_WORK],
    },
    {"ANSIBLE_CALLBACKS_ENABLED": "gpufleet.host.report", "GPUFLEET_ARTIFACTS": str(STATE / "artifacts")},
)  # fmt: skip
PEER = Contestant(
    "stock modules", "peer",
    {
        "verify": ["bench/peer/site.yml", "--check"],
        "converge": ["bench/peer/site.yml"],
        "habit": ["bench/peer/site.yml", "--check", "-e", '{"peer_read_back": false}'],
    },
    {},
)  # fmt: skip


def copy_collection() -> None:
    """Make the copy that both sides are run from."""
    shutil.rmtree(COLLECTIONS, ignore_errors=True)
    for part in _PARTS:
        (_COPY / part).parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (REPO / part).is_dir() else shutil.copyfile
        copy(REPO / part, _COPY / part)


def slices(top: str, gpus: Gpus) -> dict[str, tuple[str, str]]:
    """Unit -> CPUs and memory nodes: a slice for node 0 and one for each of its two GPUs."""
    return {
        f"{top}-node0.slice": (gpus.node_cpus, "0"),
        f"{top}-node0-gpu0.slice": (gpus.cpus[0], "0"),
        f"{top}-node0-gpu1.slice": (gpus.cpus[1], "0"),
    }


def variables(wanted: Mapping[str, Any], gpus: Gpus, uuid: str) -> dict[str, Any]:
    """The same wanted state in the words of each contestant."""
    match = [dict(row) for row in gpus.match]
    return {
        "kernel_sysctls": wanted["sysctls"],
        "kernel_transparent_hugepage": wanted["transparent_hugepage"],
        # Without a profile: only what the other side does as well.
        "kernel_module_options": {}, "kernel_cmdline": [], "kernel_numa_balancing": 0,
        "io_scheduler_rules": [{"id": serial, "scheduler": wanted["scheduler"]} for serial in SERIALS],
        "xfs_storage_packages": [],
        "xfs_storage_volumes": [
            {
                "name": "data", "devices": [DEVICE], "mount_point": wanted["mount_point"], "agcount": wanted["agcount"],
                "log_size": f"{wanted['log_mib']}m", "allocsize": wanted["allocsize"],
            }
        ],
        "numa_slices_state": "present", "numa_slices_gpu_match": match,
        "numa_slices_housekeeping_cores_per_node": 0,
        "numa_slices_gpus": [{"index": i, "node": 0, "cpus": cpus} for i, cpus in enumerate(gpus.cpus)],
        **{f"peer_{name}": wanted[name] for name in
           ("sysctls", "transparent_hugepage", "scheduler", "mount_point", "agcount", "log_mib", "allocsize")},
        "peer_disks": list(DISKS), "peer_serials": list(SERIALS), "peer_device": DEVICE, "peer_uuid": uuid,
        "peer_mount_options": f"noatime,inode64,allocsize={wanted['allocsize']},nofail",
        "peer_slices": [{"unit": unit, "group": _group(unit), "cpus": cpus, "mems": mems}
                        for unit, (cpus, mems) in slices("peer", gpus).items()],
    }  # fmt: skip


def _group(unit: str) -> str:
    """A slice's folder: its dashes are a hierarchy (systemd.slice(5))."""
    words = unit.removesuffix(".slice").split("-")
    return "/".join("-".join(words[: end + 1]) + ".slice" for end in range(len(words)))


def expected_state(top: str, wanted: Mapping[str, Any], gpus: Gpus) -> dict[str, Any]:
    """What bench/check_state.py is asked for."""
    return {
        "sysctls": wanted["sysctls"], "thp": wanted["transparent_hugepage"], "disks": list(DISKS),
        "scheduler": wanted["scheduler"], "mount_point": wanted["mount_point"], "agcount": wanted["agcount"],
        "log_mib": wanted["log_mib"], "options": ["noatime", f"allocsize={wanted['allocsize']}"],
        "slices": slices(top, gpus),
    }  # fmt: skip


def write_inventory(hosts: int, common: Mapping[str, Any], target: Target) -> Path:
    """Aliases of the target, each with a connection of its own."""
    path = STATE / f"inventory-{hosts}.json"
    connection = {
        "ansible_host": ADDRESS,
        "ansible_port": PORT,
        "ansible_user": "root",
        "ansible_python_interpreter": "/usr/bin/python3",
        "ansible_ssh_private_key_file": str(target.key),
        "ansible_ssh_common_args": SSH_OPTIONS,
        "ansible_control_path": "{{ lookup('ansible.builtin.env', 'BENCH_SOCKETS') }}/{{ inventory_hostname }}",
    }
    names: dict[str, Any] = {f"gpu{number:02}": {} for number in range(1, hosts + 1)}
    path.write_text(
        json.dumps({"all": {"children": {"gpu_hosts": {"hosts": names}}, "vars": {**connection, **common}}})
    )
    return path


def run(who: Contestant, mode: str, inventory: Path, *extra: str, settings: Mapping[str, str] | None = None) -> Cost:
    """One playbook run, its connections cold; raises when a host was not reached."""
    return run_playbook(
        who.playbooks[mode], inventory, *extra, settings={**who.settings, **(settings or {})}, name=who.top
    )


def run_playbook(
    playbook: Sequence[str],
    inventory: Path,
    *extra: str,
    settings: Mapping[str, str],
    name: str = "peer",
    is_json: bool = False,
) -> Cost:
    log = STATE / "logs" / f"{name}-{Path(playbook[0]).stem}.log"
    log.parent.mkdir(exist_ok=True)
    argv = [str(Path(sys.prefix) / "bin/ansible-playbook"), "-i", str(inventory), *playbook, *extra]
    # The path of a socket is short by law (unix(7)), so it is not below the checkout.
    with tempfile.TemporaryDirectory(prefix="gpb-") as sockets, log.open("wb") as out:
        try:
            wall, usage, code = _spend(argv, dict(_environment(sockets), **settings), out.fileno())
        finally:
            _close_connections(Path(sockets))
    text = log.read_text(errors="replace")
    rows = [[int(word) for word in row] for row in _RECAP.findall(text)]
    if is_json and '"stats"' in text:
        return Cost(wall, usage, 0, 0, 0, 0, code, log)
    if not rows or any(row[2] for row in rows):
        raise LabError(f"{' '.join(playbook)} reached no host or not all:{tail_file(log, 12)}", hint=f"read {log}")
    tasks = max(row[0] + row[3] for row in rows)
    changed, failed = sum(row[1] for row in rows), sum(row[3] for row in rows)
    return Cost(wall, usage, len(rows), tasks, changed, failed, code, log)


def _spend(argv: Sequence[str], environment: Mapping[str, str], out: int) -> tuple[float, float, int]:
    """Wall seconds, CPU seconds (user and system, with all children) and exit status of a process."""
    started = time.monotonic()
    process = subprocess.Popen(argv, cwd=_COPY, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    try:
        _pid, status, usage = os.wait4(process.pid, 0)
    except BaseException:
        process.kill()
        process.wait()
        raise
    process.returncode = os.waitstatus_to_exitcode(status)
    return time.monotonic() - started, usage.ru_utime + usage.ru_stime, process.returncode


def _environment(sockets: str) -> dict[str, str]:
    """The same for both sides: forks, pipelining, kept connections, no colours."""
    # Python may keep its bytecode, as it does for those who run playbooks.
    own = ("ANSIBLE_", "GPUFLEET_", "PYTHON")
    keep = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    config = STATE / "ansible.cfg"
    config.write_text("[defaults]\n")
    return {
        **keep,
        "ANSIBLE_CONFIG": str(config),
        "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS),
        "ANSIBLE_FORKS": str(FORKS),
        "ANSIBLE_PIPELINING": "1",
        "ANSIBLE_SSH_ARGS": "-o ControlMaster=auto -o ControlPersist=60s",
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_RETRY_FILES_ENABLED": "0",
        "ANSIBLE_GATHERING": "explicit",
        "BENCH_SOCKETS": sockets,
        "LC_ALL": "C.UTF-8",
    }


def _close_connections(sockets: Path) -> None:
    for socket in sockets.iterdir():
        subprocess.run(["ssh", "-O", "exit", "-o", f"ControlPath={socket}", ADDRESS], stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=False)  # fmt: skip


def newest_report(host: str = "gpu01") -> dict[str, Any]:
    """The JSON that the last run of ours left."""
    return dict(json.loads((STATE / "artifacts" / "latest" / f"{host}.json").read_text()))


def check_state(target: Target, top: str, wanted: Mapping[str, Any], gpus: Gpus) -> list[str]:
    """The differences that the independent script sees on the target."""
    words = json.dumps(expected_state(top, wanted, gpus)).replace("'", "'\\''")
    done = target.ssh(f"python3 - '{words}'", text=(BENCH / "check_state.py").read_text(), check=False)
    if done.returncode not in (0, 1) or "Traceback" in done.stderr:
        raise LabError(f"bench/check_state.py failed: {done.stderr}", hint="run it on the target by hand")
    return done.stdout.splitlines()
