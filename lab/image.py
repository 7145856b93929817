# Copyright: (c) 2026, gpufleet.host contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Builds the disk image that all hosts share. No loop device and no mount is needed."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from lab.base import LAB, LabError, run, say, state_dir, tail_file

RELEASE = "bookworm"
INPUTS = ("packages.txt", "customize.sh", "customize_early.sh", "image.py")
DISK_MIB = 8192
ESP_MIB = 64
ROOT_UUID = "6a0e1a2b-0000-4000-8000-67707566a001"
_ESP_START_MIB = 1
_ROOT_START_MIB = _ESP_START_MIB + ESP_MIB
_NEEDLESS = ("/usr/share/man/*", "/usr/share/doc/*", "/usr/share/locale/*", "/usr/share/info/*")
_APT_SETTINGS = ("Acquire::http", "Acquire::https", "Acquire::Check-", "Acquire::Retries")
_QUIET_S = 20.0


@dataclass(frozen=True)
class Image:
    """A built image, and the kernel in it (for the trial of KVM)."""

    folder: Path
    digest: str

    @property
    def disk(self) -> Path:
        return self.folder / f"base-{self.digest}.raw"

    @property
    def kernel(self) -> Path:
        return self.folder / f"kernel-{self.digest}"

    @property
    def initrd(self) -> Path:
        return self.folder / f"initrd-{self.digest}"

    @property
    def is_built(self) -> bool:
        return self.disk.exists()


def packages(text: str) -> list[str]:
    """The names in packages.txt."""
    words = (line.split("#", 1)[0].strip() for line in text.splitlines())
    return [word for word in words if word]


def ssh_key() -> Path:
    """The private key that opens every host; made once."""
    key = state_dir() / "id_ed25519"
    if not key.exists():
        key.parent.mkdir(parents=True, exist_ok=True)
        run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "lab", "-f", str(key)],
            hint=f"look at the rights of {key.parent}",
        )
    return key


def current() -> Image:
    """The image that belongs to the inputs as they are now."""
    digest = hashlib.sha256()
    for name in INPUTS:
        digest.update((LAB / name).read_bytes())
    digest.update(_public_key().read_bytes())
    return Image(state_dir() / "image", digest.hexdigest()[:12])


def build(*, force: bool = False) -> Image:
    """Build the image, or reuse the one that was built from the same inputs."""
    image = current()
    if image.is_built and not force:
        say(f"image {image.digest} is up to date: reused")
        return image
    image.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=image.folder, prefix="build-") as folder:
        tree = Path(folder) / "tree"
        try:
            _unpack(tree, Path(folder))
            _assemble(image, tree)
        finally:
            run(_as_root(["rm", "-rf", "--one-file-system", str(tree)]), hint=f"remove {tree} by hand")
    say(f"image {image.digest} is built: {image.disk.stat().st_blocks * 512 // 2**20} MiB on disk")
    return image


def prune(keep: set[str]) -> None:
    """Remove the images that no host stands on, and what broken builds left."""
    for path in (state_dir() / "image").glob("*-*"):
        if path.is_file() and path.name.split("-")[1].split(".")[0] not in keep:
            path.unlink()


def _public_key() -> Path:
    return ssh_key().with_suffix(".pub")


def _as_root(argv: Sequence[str]) -> list[str]:
    return list(argv) if os.geteuid() == 0 else ["sudo", *argv]


def _unpack(tree: Path, folder: Path) -> None:
    """Install the packages into a folder."""
    sources = folder / "sources.list"
    sources.write_text("\n".join(_apt_sources()) + "\n")
    names = packages((LAB / "packages.txt").read_text())
    say(f"installing {len(names)} packages and what they need (about 2 minutes)")
    argv = [
        "mmdebstrap",
        "--mode=root",
        "--variant=apt",
        "--format=directory",
        "--skip=cleanup/apt,check/empty",
        f"--include={','.join(names)}",
        "--dpkgopt=force-unsafe-io",
        '--aptopt=Acquire::Languages "none"',
        *(f"--dpkgopt=path-exclude={path}" for path in _NEEDLESS),
        *(f"--aptopt={line}" for line in _apt_settings()),
        f'--essential-hook={LAB / "customize_early.sh"} "$1"',
        f'--customize-hook={LAB / "customize.sh"} "$1" {_public_key()}',
        RELEASE,
        str(tree),
        str(sources),
    ]
    log = state_dir() / "build.log"
    with log.open("w") as out:
        code = _run_with_progress(_as_root(argv), out, log)
    if code != 0:
        raise LabError(f"mmdebstrap ended with {code}:{tail_file(log)}", hint=f"read {log}")


def _run_with_progress(argv: Sequence[str], out: TextIO, log: Path) -> int:
    """Run a long command; say where it is, at least every 20 seconds."""
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT) as process:
        said, last = time.monotonic(), ""
        while process.poll() is None:
            time.sleep(0.2)
            steps = [line for line in log.read_text(errors="replace").splitlines() if line.startswith("I: ")]
            line = steps[-1][3:] if steps else last
            if line != last or time.monotonic() - said > _QUIET_S:
                say(f"  {line}")
                said, last = time.monotonic(), line
        return process.returncode


def _apt_sources() -> list[str]:
    """Debian's sources as this machine's apt knows them, so that its mirror is used."""
    wanted = "$(ORIGIN)|$(CODENAME)|$(COMPONENT)|$(REPO_URI)|$(RELEASE)"
    out = run(["apt-get", "indextargets", "--format", wanted, "Created-By: Packages"], hint="run: apt-get update")
    sources = select_sources(out)
    if not sources:
        raise LabError(
            f"this machine's apt has no source of Debian {RELEASE}",
            hint="add one to /etc/apt/sources.list, then: apt-get update",
        )
    return sources


def select_sources(targets: str) -> list[str]:
    """The lines of sources.list for Debian's main component among apt's index targets."""
    keep = []
    for line in targets.splitlines():
        origin, codename, component, uri, release = line.split("|")
        if origin == "Debian" and component == "main" and codename.split("-")[0] == RELEASE:
            keep.append(f"deb {uri} {release} main")
    return list(dict.fromkeys(keep))


def _apt_settings() -> list[str]:
    """How this machine's apt reaches its mirror: proxies, certificates, clock checks."""
    dump = run(["apt-config", "dump"], hint="look at /etc/apt/apt.conf.d")
    return [line for line in dump.splitlines() if line.startswith(_APT_SETTINGS) and not line.endswith('"";')]


def _assemble(image: Image, tree: Path) -> None:
    """Lay the folder out as a disk that EFI firmware boots."""
    say("making the disk image")
    part = image.disk.with_suffix(".part")
    hint = f"check the free space of {image.folder}"
    with part.open("wb") as disk:
        disk.truncate(DISK_MIB * 2**20)
    run(
        [
            "sgdisk",
            f"--new=1:{_ESP_START_MIB}M:+{ESP_MIB}M",
            "--typecode=1:ef00",
            f"--new=2:{_ROOT_START_MIB}M:-1M",
            "--typecode=2:8300",
            str(part),
        ],
        hint=hint,
    )
    _make_esp(part, tree, hint)
    size = DISK_MIB - _ROOT_START_MIB - 2
    options = f"offset={_ROOT_START_MIB * 2**20},assume_storage_prezeroed=1,root_owner=0:0"
    run(
        _as_root(
            [
                "mke2fs",
                "-q",
                "-F",
                "-t",
                "ext4",
                "-L",
                "lab-root",
                "-U",
                ROOT_UUID,
                "-E",
                options,
                "-d",
                str(tree),
                str(part),
                f"{size}M",
            ]
        ),
        hint=hint,
    )
    shutil.copyfile(next((tree / "boot").glob("vmlinuz-*")), image.kernel)
    shutil.copyfile(next((tree / "boot").glob("initrd.img-*")), image.initrd)
    part.rename(image.disk)


def _make_esp(part: Path, tree: Path, hint: str) -> None:
    """The EFI partition, with GRUB where firmware looks without being told."""
    at = f"{part}@@{_ESP_START_MIB}M"
    # Without -s it sizes clusters for the whole disk file.
    run(
        [
            "mkfs.vfat",
            "-F",
            "32",
            "-s",
            "1",
            "-n",
            "LAB-ESP",
            f"--offset={_ESP_START_MIB * 2048}",
            str(part),
            str(ESP_MIB * 1024),
        ],
        hint=hint,
    )
    run(["mmd", "-i", at, "::/EFI", "::/EFI/BOOT"], hint=hint)
    run(["mcopy", "-i", at, str(tree / "boot/grub/BOOTX64.EFI"), "::/EFI/BOOT/BOOTX64.EFI"], hint=hint)
