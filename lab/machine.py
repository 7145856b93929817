# Copyright: (c) 2026, gpufleet.host contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The life of one host: made, started, reached, stopped, wiped."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import shutil
import signal
import socket
import subprocess
import tarfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab import accel as acceleration
from lab import qmp
from lab.base import LAB, LabError, run, say, state_dir, tail_file
from lab.hosts import Disk, Host, ssh_port
from lab.image import Image, ssh_key
from lab.qemu import FIRMWARE_VARS, TCG, Accel, Paths, command, node_name, scsi_device

BOOT_S = {"kvm": 120.0, "tcg": 600.0}
_STOP_S = 90.0
_SETTLE_S = 180
_HEARTBEAT_S = 10.0
# On the host: the programs that stand in for hardware that is not there.
_SIMULATED = "/usr/local/lib/gpufleet-lab"
_NVIDIA_SMI = "/usr/local/bin/nvidia-smi"
# sockaddr_un holds 108 bytes with the closing zero.
_SOCKET_PATH_MAX = 107


@dataclass(frozen=True)
class Machine:
    """A host of the table and its files."""

    host: Host

    @property
    def paths(self) -> Paths:
        return Paths(state_dir() / self.host.name)

    @property
    def pid(self) -> int | None:
        """The process id of its QEMU, if that is alive and really this host's."""
        try:
            pid = int(self.paths.pid.read_text())
            argv = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except (OSError, ValueError):
            return None
        return pid if os.fsencode(self.paths.pid) in argv else None

    @property
    def state(self) -> dict[str, Any]:
        """How it was started: image, accelerator, port."""
        try:
            known: dict[str, Any] = json.loads(self.paths.state.read_text())
        except (OSError, ValueError):
            return {}
        return known

    @property
    def port(self) -> int:
        """The port of the running QEMU, else the one it would get."""
        running = self.state.get("port") if self.pid else None
        return int(running or ssh_port(self.host))


def up(machine: Machine, image: Image) -> None:
    """Start a host and return once it has settled."""
    if machine.pid:
        say(f"{machine.host.name} is already running (pid {machine.pid}): reused")
    else:
        _make_disks(machine, image)
        _start_somehow(machine, image)
    wait(machine)
    _provision(machine)
    if machine.host.gpus:
        _simulate(machine)
    say(f"{machine.host.name} is {settle(machine)}: ssh port {machine.port}, {machine.state.get('accel')}")


def _start_somehow(machine: Machine, image: Image) -> None:
    """Start with the chosen accelerator; a KVM that was not asked for may fail once."""
    accel = acceleration.choose(image)
    _start(machine, image, accel)
    if accel.name == "tcg" or os.environ.get("GPUFLEET_LAB_ACCEL") == "kvm":
        return
    try:
        wait(machine)
    except LabError as error:
        say(f"{machine.host.name} does not come up with KVM: using TCG from now on ({error})")
        _end(machine)
        acceleration.remember(TCG, "KVM passed its trial, but the host did not come up")
        _start(machine, image, TCG)


def _make_disks(machine: Machine, image: Image) -> None:
    """What is not there yet of overlay, firmware variables and data disks."""
    paths = machine.paths
    paths.folder.mkdir(parents=True, exist_ok=True)
    if len(os.fsencode(paths.qmp)) > _SOCKET_PATH_MAX:
        raise LabError(f"the path {paths.qmp} is too long for a socket", hint="set GPUFLEET_LAB_DIR to a shorter one")
    if not paths.overlay.exists():
        run(
            ["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", str(image.disk), str(paths.overlay)],
            hint=f"check the free space of {paths.folder}",
        )
        paths.state.write_text(json.dumps({"image": image.digest}))
    elif machine.state.get("image") != image.digest:
        say(f"{machine.host.name} keeps its older image {machine.state.get('image')}; `reset` gives it the new one")
    if not paths.firmware_vars.exists():
        shutil.copyfile(FIRMWARE_VARS, paths.firmware_vars)
    for disk in machine.host.disks:
        if not paths.disk(disk).exists():
            with paths.disk(disk).open("wb") as raw:
                raw.truncate(disk.size_mib * 2**20)


def _start(machine: Machine, image: Image, accel: Accel) -> None:
    paths, port = machine.paths, ssh_port(machine.host)
    for stale in (paths.pid, paths.qmp):
        stale.unlink(missing_ok=True)
    paths.serial_log.write_bytes(b"")
    say(f"starting {machine.host.name} with {accel.name} (-cpu {accel.cpu})")
    # The output goes to a file: the QEMU that stays behind would keep a pipe open.
    errors = paths.folder / "qemu.log"
    with errors.open("wb") as log:
        code = subprocess.run(
            command(machine.host, paths, accel, port), stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=False
        ).returncode
    if code != 0:
        raise LabError(
            f"QEMU ended with {code}:{tail_file(errors)}",
            hint=f"is port {port} of 127.0.0.1 free? all of its words are in {errors}",
        )
    known = {**machine.state, "accel": accel.name, "cpu": accel.cpu, "port": port, "plugged": False}
    paths.state.write_text(json.dumps(known))


def ssh_argv(machine: Machine, *words: str) -> list[str]:
    """ssh into a host as root."""
    return [
        "ssh",
        "-q",
        "-i",
        str(ssh_key()),
        "-p",
        str(machine.port),
        "-o",
        "IdentitiesOnly=yes",
        "-o",
        "BatchMode=yes",
        "-o",
        "StrictHostKeyChecking=no",
        "-o",
        "UserKnownHostsFile=/dev/null",
        "-o",
        # The exchange of keys counts in this, and takes an emulated host that has just booted its time.
        "ConnectTimeout=60",
        "-o",
        "ControlMaster=auto",
        "-o",
        "ControlPersist=60",
        # A login costs an emulated host seconds: the next command shares this one's.
        "-o",
        f"ControlPath={machine.paths.folder / 'ssh'}",
        "root@127.0.0.1",
        *words,
    ]


def wait(machine: Machine) -> None:
    """Return once ssh answers. Show the serial line meanwhile."""
    started = said = time.monotonic()
    limit = BOOT_S[machine.state.get("accel", "tcg")]
    while not _answers(machine.port):
        now = time.monotonic()
        if not machine.pid:
            raise _not_up(machine, "has ended")
        if now - started > limit:
            raise _not_up(machine, f"does not answer ssh after {limit:.0f} s")
        if now - said > _HEARTBEAT_S:
            say(f"  {machine.host.name} boots: {tail_file(machine.paths.serial_log, 1).strip()[:90]}")
            said = now
        time.sleep(0.5)
    say(f"{machine.host.name} answers ssh")


def _answers(port: int) -> bool:
    """Whether sshd greets. QEMU takes the connection itself, so a connect alone says nothing."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as link:
            return link.recv(4) == b"SSH-"
    except OSError:
        return False


def _not_up(machine: Machine, what: str) -> LabError:
    log = machine.paths.serial_log
    return LabError(
        f"{machine.host.name} {what}; it said last:{tail_file(log)}",
        hint=f"read {log}, then: lab/lab.py reset {machine.host.name}",
    )


def _provision(machine: Machine) -> None:
    """Give a fresh overlay its name and services."""
    script = (LAB / "provision.sh").read_text()
    database = "1" if machine.host.has_database else "0"
    words = f"test -e /var/lib/lab-provisioned || {{ echo new; sh -s {machine.host.name} {database}; }}"
    done = subprocess.run(ssh_argv(machine, words), input=script, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LabError(
            f"{machine.host.name} could not be set up: {(done.stdout + done.stderr).strip()}",
            hint=f"run: lab/lab.py reset {machine.host.name}",
        )
    if done.stdout.startswith("new"):
        say(f"{machine.host.name} is set up")


def _simulate(machine: Machine) -> None:
    """Give the host the nvidia-smi of its stand-in GPUs, unless it has this one."""
    packed = _pack(LAB / "simulated")
    digest = hashlib.sha256(packed).hexdigest()
    script = (
        f"grep -qsx {digest} {_SIMULATED}/digest && exit; rm -rf {_SIMULATED}; mkdir -p {_SIMULATED}; "
        f"tar -xzf - -C {_SIMULATED} && python3 -m compileall -q {_SIMULATED}/smi && "
        f"ln -sf {_SIMULATED}/nvidia-smi {_NVIDIA_SMI} && echo {digest} >{_SIMULATED}/digest && echo new"
    )
    done = subprocess.run(ssh_argv(machine, script), input=packed, capture_output=True, check=False)
    if done.returncode != 0:
        said = (done.stdout + done.stderr).decode(errors="replace").strip()
        raise LabError(
            f"{machine.host.name} does not take its nvidia-smi: {said}",
            hint=f"run: lab/lab.py reset {machine.host.name}",
        )
    if done.stdout.startswith(b"new"):
        say(f"{machine.host.name} has the simulated nvidia-smi")


def _pack(folder: Path) -> bytes:
    """A folder as a tar archive; the same bytes for the same files."""
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", mtime=0) as packed, tarfile.open(fileobj=packed, mode="w") as tar:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                member = tarfile.TarInfo(str(path.relative_to(folder)))
                member.size, member.mode = path.stat().st_size, 0o755 if os.access(path, os.X_OK) else 0o644
                with path.open("rb") as file:
                    tar.addfile(member, file)
    return out.getvalue()


def settle(machine: Machine) -> str:
    """Wait for systemd to end its jobs; its word on the whole: running, degraded, …"""
    words = ssh_argv(machine, "timeout", str(_SETTLE_S), "systemctl", "is-system-running", "--wait")
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "not answering"


def down(machine: Machine) -> None:
    """Shut a host down as a power button does; end its QEMU if that takes too long."""
    if not machine.pid:
        say(f"{machine.host.name} is not running")
        return
    say(f"stopping {machine.host.name}")
    try:
        with qmp.connect(machine.paths.qmp) as control:
            control.execute("system_powerdown")
    except LabError as error:
        say(f"  {error}")
    if not _is_gone(machine, _STOP_S):
        say(f"  it does not shut down within {_STOP_S:.0f} s: ending it")
        _end(machine)
    say(f"{machine.host.name} is stopped")


def cut(machine: Machine) -> None:
    """Cut a host's power: its QEMU gets no chance to write anything more."""
    pid = machine.pid
    if pid is None:
        raise LabError(f"{machine.host.name} is not running", hint=f"run: lab/lab.py up {machine.host.name}")
    os.kill(pid, signal.SIGKILL)
    if not _is_gone(machine, 10):
        raise LabError(f"QEMU of {machine.host.name} does not end", hint=f"look at process {pid}")
    say(f"{machine.host.name} has lost its power")


def _end(machine: Machine) -> None:
    """End this host's QEMU, and nothing else, by its process id."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        pid = machine.pid
        if pid:
            os.kill(pid, number)
        if _is_gone(machine, 10):
            return
    raise LabError(f"QEMU of {machine.host.name} does not end", hint=f"look at process {machine.pid}")


def _is_gone(machine: Machine, limit_s: float) -> bool:
    return _until(lambda: machine.pid is None, limit_s)


def _until(condition: Callable[[], bool], limit_s: float) -> bool:
    deadline = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.2)
    return True


def reset(machine: Machine, image: Image) -> None:
    """Throw root overlay, firmware variables and data disks away, and start afresh."""
    if machine.pid:
        _end(machine)
    paths = machine.paths
    for path in (paths.overlay, paths.firmware_vars, paths.state, *map(paths.disk, machine.host.disks)):
        path.unlink(missing_ok=True)
    say(f"{machine.host.name} is wiped")
    up(machine, image)


def plug(machine: Machine) -> None:
    """Put the hot-plug disk in."""
    disk = _hotplug_disk(machine)
    if machine.state.get("plugged"):
        say(f"{disk.serial} is already in {machine.host.name}")
        return
    device = scsi_device(disk, machine.host.disks.index(disk))
    backing = {
        "driver": "raw",
        "node-name": node_name(disk),
        "discard": "unmap",
        "file": {"driver": "file", "filename": str(machine.paths.disk(disk))},
    }
    with qmp.connect(machine.paths.qmp) as control:
        control.execute("blockdev-add", **backing)
        control.execute("device_add", **device)
    _note_plugged(machine, plugged=True)
    say(f"{disk.serial} is in {machine.host.name}")


def unplug(machine: Machine) -> None:
    """Pull the hot-plug disk out; its data stay in its file."""
    disk = _hotplug_disk(machine)
    if not machine.state.get("plugged"):
        say(f"{disk.serial} is not in {machine.host.name}")
        return
    with qmp.connect(machine.paths.qmp) as control:
        control.execute("device_del", id=node_name(disk))
        control.wait_event("DEVICE_DELETED", device=node_name(disk))
        control.execute("blockdev-del", **{"node-name": node_name(disk)})
    _note_plugged(machine, plugged=False)
    say(f"{disk.serial} is out of {machine.host.name}")


def _hotplug_disk(machine: Machine) -> Disk:
    disk = machine.host.hotplug_disk
    if disk is None:
        raise LabError(f"{machine.host.name} has no disk to hot-plug", hint="use lab-gpu1")
    if not machine.pid:
        raise LabError(f"{machine.host.name} is not running", hint=f"run: lab/lab.py up {machine.host.name}")
    return disk


def _note_plugged(machine: Machine, *, plugged: bool) -> None:
    machine.paths.state.write_text(json.dumps({**machine.state, "plugged": plugged}))
