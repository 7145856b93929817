#!/usr/bin/env python3
# Copyright: (c) 2026, gpufleet.host contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Builds and runs the test hosts: real virtual machines, no hardware needed. See README.md."""

from __future__ import annotations

import argparse
import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

# As a program this file is started from anywhere; its neighbours are `lab.<name>`.
sys.path[0] = str(Path(__file__).resolve().parent.parent)

from lab import accel, image, machine
from lab.base import LabError, say, state_dir
from lab.hosts import HOSTS
from lab.machine import Machine

# Debian's packages that the lab needs on the machine it runs on, and a file of each.
REQUIREMENTS = {
    "qemu-system-x86": "/usr/bin/qemu-system-x86_64",
    "qemu-utils": "/usr/bin/qemu-img",
    "ovmf": "/usr/share/OVMF/OVMF_CODE_4M.fd",
    "mmdebstrap": "/usr/bin/mmdebstrap",
    "debian-archive-keyring": "/usr/share/keyrings/debian-archive-keyring.gpg",
    "dosfstools": "/usr/sbin/mkfs.vfat",
    "mtools": "/usr/bin/mcopy",
    "gdisk": "/usr/sbin/sgdisk",
    "e2fsprogs": "/usr/sbin/mke2fs",
    "openssh-client": "/usr/bin/ssh",
}
DEFAULT_HOST = "lab-gpu1"


def main(argv: Sequence[str] | None = None) -> int:
    words = parser().parse_args(argv)
    # mke2fs and its like are not on the path of every account.
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    try:
        return int(words.run(words) or 0)
    except LabError as error:
        print(f"lab: {error}\nnext: {error.hint}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # `status | head`: nobody reads on, which is no fault.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="lab.py", description=__doc__)
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    names = [*HOSTS, "all"]

    one = commands.add_parser("requirements", help="tell, or install, the Debian packages needed here")
    one.add_argument("--install", action="store_true", help="install what is missing with apt-get")
    one.set_defaults(run=_requirements)

    one = commands.add_parser("build", help="build the image, if its inputs changed")
    one.add_argument("--force", action="store_true", help="build it in any case")
    one.set_defaults(run=_build)

    one = commands.add_parser("up", help=f"start hosts (default: {DEFAULT_HOST})")
    one.add_argument("hosts", nargs="*", metavar="HOST", choices=[*names, []])
    one.set_defaults(run=_up)

    one = commands.add_parser("down", help="stop hosts (default: all)")
    one.add_argument("hosts", nargs="*", metavar="HOST", choices=[*names, []])
    one.set_defaults(run=_down)

    one = commands.add_parser("wait", help="wait until hosts are up, after a reboot say (default: all that run)")
    one.add_argument("hosts", nargs="*", metavar="HOST", choices=[*names, []])
    one.set_defaults(run=_wait)

    commands.add_parser("status", help="show what there is").set_defaults(run=_status)

    one = commands.add_parser("ssh", help="log in as root, or run a command")
    one.add_argument("host", choices=HOSTS)
    one.add_argument("words", nargs=argparse.REMAINDER, metavar="CMD")
    one.set_defaults(run=_ssh)

    for name, text, call in (
        ("reset", "fresh root and data disks, and a fresh boot", _reset),
        ("plug", "put the hot-plug disk in", _plug),
        ("unplug", "pull the hot-plug disk out", _unplug),
        ("cut", "cut the power: QEMU is killed, and what the guest had not flushed is lost", _cut),
    ):
        one = commands.add_parser(name, help=text)
        one.add_argument("host", choices=HOSTS)
        one.set_defaults(run=call)
    return top


def _requirements(words: argparse.Namespace) -> int:
    missing = [name for name, path in REQUIREMENTS.items() if not Path(path).exists()]
    if not missing:
        say("all packages that the lab needs are installed")
        return 0
    if not words.install:
        print("\n".join(missing))
        return 1
    say(f"installing {' '.join(missing)}")
    for step in (["update"], ["install", "--yes", "--no-install-recommends", *missing]):
        _apt_get(step)
    say("installed")
    return 0


def _apt_get(step: list[str]) -> None:
    sudo = [] if os.geteuid() == 0 else ["sudo"]
    log = state_dir() / "apt.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a") as out:
        code = subprocess.run(
            [*sudo, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", *step],
            stdout=out,
            stderr=subprocess.STDOUT,
            check=False,
        ).returncode
    if code != 0:
        raise LabError(f"apt-get {step[0]} ended with {code}", hint=f"read {log}")


def _build(words: argparse.Namespace) -> None:
    with _alone():
        built = image.build(force=words.force)
        image.prune({built.digest, *(one.state.get("image", "") for one in _machines(["all"]))})


def _up(words: argparse.Namespace) -> None:
    with _alone():
        built = image.build()
        for one in _machines(words.hosts or [DEFAULT_HOST]):
            machine.up(one, built)


def _down(words: argparse.Namespace) -> None:
    with _alone():
        for one in _machines(words.hosts or ["all"]):
            machine.down(one)


def _wait(words: argparse.Namespace) -> None:
    machines = _machines(words.hosts or ["all"])
    for one in machines if words.hosts else [each for each in machines if each.pid]:
        machine.wait(one)
        say(f"{one.host.name} is {machine.settle(one)}")


def _reset(words: argparse.Namespace) -> None:
    with _alone():
        machine.reset(Machine(HOSTS[words.host]), image.build())


def _plug(words: argparse.Namespace) -> None:
    with _alone():
        machine.plug(Machine(HOSTS[words.host]))


def _unplug(words: argparse.Namespace) -> None:
    with _alone():
        machine.unplug(Machine(HOSTS[words.host]))


def _cut(words: argparse.Namespace) -> None:
    with _alone():
        machine.cut(Machine(HOSTS[words.host]))


def _ssh(words: argparse.Namespace) -> None:
    one = Machine(HOSTS[words.host])
    if not one.pid:
        raise LabError(f"{words.host} is not running", hint=f"run: lab/lab.py up {words.host}")
    argv = machine.ssh_argv(one, *words.words)
    os.execvp(argv[0], argv)


def _status(_words: argparse.Namespace) -> None:
    built = image.current()
    print(f"state         {state_dir()}")
    print(f"image         {built.digest} {'built' if built.is_built else 'not built'}")
    print(f"acceleration  {accel.describe()}")
    for one in _machines(["all"]):
        known = one.state
        if one.pid:
            how = f"running: pid {one.pid}, {known.get('accel')}, ssh port {one.port}, image {known.get('image')}"
            print(f"{one.host.name:13} {how}{', hot-plug disk in' if known.get('plugged') else ''}")
        else:
            print(f"{one.host.name:13} {'stopped' if known else 'not made yet'}")


def _machines(names: Sequence[str]) -> list[Machine]:
    return [Machine(host) for name, host in HOSTS.items() if name in names or "all" in names]


@contextmanager
def _alone() -> Iterator[None]:
    """One command at a time changes the lab; others wait."""
    state_dir().mkdir(parents=True, exist_ok=True)
    with (state_dir() / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another lab command to end")
            fcntl.flock(lock, fcntl.LOCK_EX)
        if shutil.disk_usage(state_dir()).free < 3 * 2**30:
            say(f"warning: less than 3 GiB are free in {state_dir()}")
        yield


if __name__ == "__main__":
    sys.exit(main())
