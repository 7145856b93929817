# Copyright: (c) 2026, gpufleet.host contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The quick target: a booted container at native speed, with real queues and a real XFS volume. See README.md.

What it changes of this machine's own kernel (sysctls, huge pages) is recorded before and put back after, also
when the run is cut short: the next one starts with it.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# The mirror that this machine's apt uses is found out in one place.
from lab import image as lab_image
from lab.base import REPO, LabError, run, say, tail_file

STATE = REPO / ".cache" / "bench"
BENCH = Path(__file__).resolve().parent
MACHINE = "gpufleet-bench"
ADDRESS = "127.77.0.1"
PORT = int(os.environ.get("GPUFLEET_BENCH_PORT", "22411"))
PACKAGES = (
    "systemd", "systemd-sysv", "dbus", "udev", "kmod", "procps", "util-linux", "iproute2", "openssh-server", "python3",
    "xfsprogs", "numactl", "tuned",
)  # fmt: skip
# Debian's packages that the machine needs, and a file of each.
REQUIREMENTS = {
    "systemd-container": "/usr/bin/systemd-nspawn",
    "mmdebstrap": "/usr/bin/mmdebstrap",
    "xfsprogs": "/usr/sbin/mkfs.xfs",
    "openssh-client": "/usr/bin/ssh",
}
# Units that would touch the machine's own devices, network or clock, or only take time.
MASKED = (
    "systemd-udev-trigger", "systemd-networkd", "systemd-resolved", "systemd-timesyncd", "systemd-modules-load",
    "systemd-sysctl", "systemd-random-seed", "systemd-tmpfiles-setup-dev", "console-getty", "kmod-static-nodes",
)  # fmt: skip
DISK_BYTES = 64 * 2**20
# 32 allocation groups of 160 MiB, so that a log of 128 MiB fits into one. The file is sparse.
VOLUME_BYTES = 5 * 2**30
THP = Path("/sys/kernel/mm/transparent_hugepage/enabled")
# What the first process of a booted systemd raises by itself.
RAISED = ("fs.nr_open", "fs.file-max", "net.unix.max_dgram_qlen", "kernel.pid_max")
# The role kernel sets it to 0 unless told otherwise.
BALANCING = "kernel.numa_balancing"
# Writing one zeroes the other (kernel Documentation/admin-guide/sysctl/vm.rst).
TWINS = {"vm.dirty_ratio": "vm.dirty_bytes", "vm.dirty_background_ratio": "vm.dirty_background_bytes"}

SSHD = """# Only on this machine's loopback.
Port {port}
ListenAddress {address}
PermitRootLogin prohibit-password
PasswordAuthentication no
UsePAM no
UseDNS no
MaxStartups 200
MaxSessions 100
Subsystem sftp /usr/lib/openssh/sftp-server
"""
# In a mount namespace of its own: cgroup v2 where the machine has none, a group for the container, then the container.
LAUNCH = """set -e
[ "$(stat -f -c %T /sys/fs/cgroup)" = cgroup2fs ] || mount -t cgroup2 none /sys/fs/cgroup
if [ ! -d /run/systemd/system ]; then
    mkdir -p "/sys/fs/cgroup/$1"
    echo $$ >"/sys/fs/cgroup/$1/cgroup.procs"
fi
shift
exec "$@"
"""
CLEAN_GROUP = """mount -t cgroup2 none "$1"
[ -d "$1/$2" ] || exit 0
echo 1 >"$1/$2/cgroup.kill" 2>/dev/null || true
sleep 0.3
find "$1/$2" -depth -type d -exec rmdir {} + 2>/dev/null || true
"""


@dataclass(frozen=True)
class Gpus:
    """Two PCI functions of this machine that stand in for GPUs, and the CPUs of their slices."""

    match: tuple[Mapping[str, str], ...]
    cpus: tuple[str, str]
    node_cpus: str


class Target:
    """The container, from build to stop."""

    def __init__(self, wanted: Mapping[str, Any]) -> None:
        self.wanted = wanted
        self.key = STATE / "id_ed25519"
        self.loops: list[str] = []
        self.process: subprocess.Popen[bytes] | None = None
        self.simulated: list[str] = []

    # --- life

    def start(self) -> None:
        STATE.mkdir(parents=True, exist_ok=True)
        _undo_leftovers()
        _check_requirements()
        _check_port()
        tree = build(self.key)
        self._record_originals()
        self.loops = [_loop(name, size) for name, size in _IMAGES]
        self._remember()
        self._boot(tree)
        self._set_up()

    def stop(self) -> None:
        """Everything that was started is stopped, and the kernel is as it was."""
        if self.process and self.process.poll() is None:
            say("stopping the target")
            _end(self.process)
        _undo_leftovers()

    def _record_originals(self) -> None:
        names = [*self.wanted["sysctls"], *TWINS.values(), *RAISED, BALANCING]
        values = {name: _sysctl_path(name).read_text().strip() for name in names if _sysctl_path(name).exists()}
        _write_json(_ORIGINALS, {"sysctls": values, "thp": chosen(THP.read_text())})

    def _remember(self) -> None:
        pid = self.process.pid if self.process else 0
        _write_json(_RUNNING, {"pid": pid, "loops": self.loops})

    def _boot(self, tree: Path) -> None:
        say("booting the target")
        (tree / "etc/ssh/sshd_config").write_text(SSHD.format(port=PORT, address=ADDRESS))
        has_systemd = Path("/run/systemd/system").exists()
        scope = ["--property=DeviceAllow=block-loop rwm"] if has_systemd else ["--register=no", "--keep-unit"]
        argv = ["systemd-nspawn", "--quiet", "--boot", "--volatile=overlay", f"--directory={tree}", f"--machine={MACHINE}",
                *scope, "--console=passive", "--capability=all", "--resolv-conf=off", "--timezone=off", "--link-journal=no",
                *(f"--bind={loop}" for loop in self.loops)]  # fmt: skip
        environment = dict(os.environ, SYSTEMD_NSPAWN_API_VFS_WRITABLE="yes", SYSTEMD_NSPAWN_UNIFIED_HIERARCHY="1")
        log = STATE / "console.log"
        with log.open("wb") as out:
            self.process = subprocess.Popen(
                ["unshare", "--mount", "--propagation", "private", "sh", "-c", LAUNCH, "sh", MACHINE, *argv],
                stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, env=environment, start_new_session=True,
            )  # fmt: skip
        self._remember()
        limit = time.monotonic() + 60
        while self.ssh("true", check=False).returncode != 0:
            if self.process.poll() is not None or time.monotonic() > limit:
                raise LabError(f"the target does not answer:{tail_file(log)}", hint=f"read {log}")
            time.sleep(0.3)

    def _set_up(self) -> None:
        names = [Path(loop).name for loop in self.loops]
        values = {
            "THP": self.wanted["transparent_hugepage"],
            "SCHEDULER": self.wanted["scheduler"],
            "SYSCTLS": "\n".join(f"{name}={value}" for name, value in self.wanted["sysctls"].items()),
        }
        exports = "".join(f"export {name}='{value}'\n" for name, value in values.items())
        script = exports + f"set -- {' '.join(names)}\n" + (BENCH / "guest.sh").read_text()
        done = self.ssh("bash -s", text=script)
        self.simulated = [line.split(": ", 1)[1] for line in done.stdout.splitlines() if line.startswith("simulated: ")]

    # --- use

    def ssh(self, command: str, *, text: str = "", check: bool = True) -> subprocess.CompletedProcess[str]:
        done = subprocess.run([*self.ssh_argv(), command], input=text, capture_output=True, text=True, check=False)
        if check and done.returncode != 0:
            raise LabError(f"on the target: {command.splitlines()[0][:200]}: {done.stderr.strip() or done.stdout.strip()}",
                           hint=f"read {STATE / 'console.log'}")  # fmt: skip
        return done

    def ssh_argv(self) -> list[str]:
        return ["ssh", "-q", "-i", str(self.key), "-p", str(PORT), *SSH_OPTIONS.split(), f"root@{ADDRESS}"]


SSH_OPTIONS = "-o IdentitiesOnly=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"
_ORIGINALS = STATE / "originals.json"
_RUNNING = STATE / "running.json"
_IMAGES = (("disk-a", DISK_BYTES), ("disk-b", DISK_BYTES), ("volume", VOLUME_BYTES))


def build(key: Path) -> Path:
    """The container's tree, or the one that was built from the same inputs."""
    if not key.exists():
        run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "bench", "-f", str(key)], hint=f"look at {key.parent}"
        )
    inputs = (PACKAGES, MASKED, key.with_suffix(".pub").read_text(), lab_image.RELEASE)
    tree = STATE / f"tree-{hashlib.sha256(repr(inputs).encode()).hexdigest()[:12]}"
    if tree.exists():
        say("reusing the target's files")
        return tree
    for old in STATE.glob("tree-*"):
        _remove_tree(old)
    say("building the target (2 to 3 minutes, once)")
    sources = STATE / "sources.list"
    sources.write_text("\n".join(lab_image._apt_sources()) + "\n")
    part = STATE / "tree.part"
    _remove_tree(part)
    argv = ["mmdebstrap", "--mode=root", "--variant=apt", "--format=directory", "--skip=cleanup/apt,check/empty",
            f"--include={','.join(PACKAGES)}", "--dpkgopt=force-unsafe-io", '--aptopt=Acquire::Languages "none"',
            *(f"--dpkgopt=path-exclude={path}" for path in lab_image._NEEDLESS),
            *(f"--aptopt={line}" for line in lab_image._apt_settings()),
            lab_image.RELEASE, str(part), str(sources)]  # fmt: skip
    log = STATE / "build.log"
    with log.open("w") as out:
        if lab_image._run_with_progress(argv, out, log) != 0:
            raise LabError(f"mmdebstrap failed:{tail_file(log)}", hint=f"read {log}")
    _prepare(part, key.with_suffix(".pub").read_text())
    part.rename(tree)
    return tree


def _prepare(tree: Path, public_key: str) -> None:
    (tree / "root/.ssh").mkdir(mode=0o700, exist_ok=True)
    (tree / "root/.ssh/authorized_keys").write_text(public_key)
    # No rule of the distribution may rename or load anything of the machine that this runs on.
    for rules in (tree / "usr/lib/udev/rules.d").iterdir():
        rules.unlink()
    units = tree / "etc/systemd/system"
    for name in MASKED:
        (units / f"{name}.service").unlink(missing_ok=True)
        (units / f"{name}.service").symlink_to("/dev/null")
    (units / "multi-user.target.wants/tuned.service").unlink(missing_ok=True)
    (tree / "etc/fstab").write_text("")
    (tree / "etc/machine-id").write_text("b" * 32 + "\n")


def find_gpus() -> Gpus:
    """Two functions that a match of vendor, device and class tells apart from all others; bridges are none."""
    kinds: dict[tuple[str, ...], int] = {}
    for folder in sorted(Path("/sys/bus/pci/devices").glob("*")):
        kind = tuple((folder / name).read_text().strip()[2:] for name in ("vendor", "device", "class"))
        if not kind[2].startswith("06"):
            kinds[kind] = kinds.get(kind, 0) + 1
    single = [kind for kind, number in kinds.items() if number == 1][-2:]
    cpus = _ids(Path("/sys/devices/system/node/node0/cpulist").read_text())
    if len(single) < 2 or len(cpus) < 2:
        raise LabError("the bench needs two PCI functions to stand in for GPUs and two CPUs on node 0",
                       hint="run it on another machine")  # fmt: skip
    match = tuple({"vendor": kind[0], "device": kind[1], "class": kind[2]} for kind in single)
    return Gpus(match, (str(cpus[0]), str(cpus[1])), Path("/sys/devices/system/node/node0/cpulist").read_text().strip())


def chosen(text: str) -> str:
    return text.split("[", 1)[1].split("]", 1)[0]


def _check_requirements() -> None:
    missing = [name for name, path in REQUIREMENTS.items() if not Path(path).exists()]
    if missing:
        say(f"installing {' '.join(missing)}")
        run(["apt-get", "update"], hint="look at this machine's apt sources")
        run(["apt-get", "install", "--yes", "--no-install-recommends", *missing], hint=f"install {' '.join(missing)}")


def _check_port() -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((ADDRESS, PORT))
        except OSError as error:
            raise LabError(f"port {PORT} is taken ({error})", hint="choose another: GPUFLEET_BENCH_PORT=22412 make bench"
                           ) from error  # fmt: skip


def _loop(name: str, size: int) -> str:
    """A fresh sparse file behind a loop device that was free."""
    path = STATE / f"{name}.img"
    path.unlink(missing_ok=True)
    with path.open("wb") as file:
        file.truncate(size)
    return run(["losetup", "--find", "--show", str(path)], hint="see losetup --list").strip()


def _undo_leftovers() -> None:
    """Stop what this or an earlier run left, detach its loop devices, and put the kernel's values back."""
    known = _read_json(_RUNNING)
    if known.get("pid") and _is_ours(known["pid"]):
        os.kill(known["pid"], signal.SIGTERM)
        limit = time.monotonic() + 30
        while _is_ours(known["pid"]) and time.monotonic() < limit:
            time.sleep(0.2)
    if known:
        with tempfile.TemporaryDirectory(dir=STATE) as folder:
            subprocess.run(["unshare", "--mount", "--propagation", "private", "sh", "-c", CLEAN_GROUP, "sh", folder, MACHINE],
                           check=False)  # fmt: skip
    for loop in known.get("loops", []):
        backing = Path("/sys/block") / Path(loop).name / "loop/backing_file"
        if backing.exists() and backing.read_text().startswith(str(STATE)):
            subprocess.run(["losetup", "--detach", loop], check=False)
    _restore(_read_json(_ORIGINALS))
    for path in (_RUNNING, _ORIGINALS, *(STATE / f"{name}.img" for name, _size in _IMAGES)):
        path.unlink(missing_ok=True)


def _restore(originals: Mapping[str, Any]) -> None:
    values = dict(originals.get("sysctls", {}))
    for ratio, size in TWINS.items():
        if ratio in values and values.get(size, "0") != "0":
            del values[ratio]
        else:
            values.pop(size, None)
    for name, value in values.items():
        path = _sysctl_path(name)
        if path.read_text().strip() != value:
            path.write_text(value)
    if originals and chosen(THP.read_text()) != originals["thp"]:
        THP.write_text(originals["thp"])


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _is_ours(pid: int) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return MACHINE.encode() in words and str(STATE).encode() in words


def _remove_tree(path: Path) -> None:
    if path.exists():
        run(["rm", "-rf", "--one-file-system", str(path)], hint=f"remove {path} by hand")


def _sysctl_path(name: str) -> Path:
    return Path("/proc/sys") / name.replace(".", "/")


def _ids(text: str) -> list[int]:
    ids: list[int] = []
    for part in text.strip().split(","):
        low, _dash, high = part.partition("-")
        ids += range(int(low), int(high or low) + 1)
    return ids


def _write_json(path: Path, data: object) -> None:
    path.write_text(json.dumps(data))


def _read_json(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text()))
    except (OSError, ValueError):
        return {}
