# Copyright: (c) 2026, gpufleet.host contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Disks that carry something are refused, each with its reason; only the blank one gets a filesystem."""

from __future__ import annotations

import base64
import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from lab_host import ARTIFACTS, KEY, ROOT, play

LINK = "/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_REFUSE-"
NAME = "lab-refuse1"
BLOCK = 4096
# What the refusal has to name: the signature, or who holds the disk.
REASONS = {
    "EXT4": "ext4",
    "XFS": "xfs",
    "BTRFS": "btrfs",
    "VFAT": "vfat",
    "SWAP": "swap",
    "LVM": "LVM2_member",
    "MD": "",
    "GPT": "gpt",
    "MBR": "dos",
    "LUKS": "crypto_LUKS",
    "BITLOCKER": "BitLocker",
    "ZFS": "zfs_member",
    "MOUNTED": "/mnt/refuse-mounted",
    "DMHELD": "dm-",
    # Without any signature, and yet not blank.
    "RANDOM": "at 0x0: ",
    "TAR": "looks like a tar archive",
    "SPDK": "looks like an SPDK blobstore",
    "WIPED": "reads as data at 0x",
    "SMALL": "",
}


def volume(kind: str) -> dict[str, Any]:
    size = {"min_size": "400m", "agcount": 4, "log_size": "64m"}
    return {"name": kind.lower(), "devices": [LINK + kind], "mount_point": "/srv/" + kind.lower(), **size}


def run_with(name: str, volumes: list[dict[str, Any]]) -> Any:
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    wants = ARTIFACTS / (name + "-wants.yml")
    wants.write_text(yaml.safe_dump({"xfs_storage_volumes": volumes, "xfs_storage_allow_risk": "destructive"}))
    return play("site.yml", name, "-e", "gpufleet_hosts=refusals", "--tags", "xfs_storage", "-e", "@%s" % wants)


def contents(host: Any) -> dict[str, str]:
    """A checksum of what each disk but the blank one holds, from the files behind them: the guest is too slow for it."""
    host.check_output("sync")
    return {kind: checksum(KEY.parent / NAME / ("refuse-%s.raw" % kind.lower())) for kind in REASONS}


def checksum(image: Path) -> str:
    """Of the blocks that are not zero, with their places: where a sparse file has its holes may change at any time."""
    found = hashlib.sha256()
    with image.open("rb") as file:
        end, place = image.stat().st_size, 0
        while place < end:
            try:
                start = os.lseek(file.fileno(), place, os.SEEK_DATA)
            except OSError:
                break
            place = os.lseek(file.fileno(), start, os.SEEK_HOLE)
            for block in range(start - start % BLOCK, place, BLOCK):
                file.seek(block)
                data = file.read(BLOCK)
                if data.strip(b"\0"):
                    found.update(b"%d " % block + data)
    return found.hexdigest()


@pytest.fixture(scope="module")
def refusals(refuse1: Any) -> Any:
    """One run over all disks: (report, checksums before, checksums after)."""
    subprocess.run([sys.executable, "lab/lab.py", "up", NAME], cwd=ROOT, check=True)
    packed = base64.b64encode((ROOT / "lab/make_signatures.sh").read_bytes()).decode()
    refuse1.check_output("echo %s | base64 -d | sh -s" % packed)
    before = contents(refuse1)
    run = run_with("refusals", [volume(kind) for kind in (*REASONS, "BLANK")])
    return run, before, contents(refuse1)


@pytest.mark.parametrize("kind", sorted(REASONS))
def test_a_disk_that_is_not_free_is_refused_with_the_reason(refusals: Any, kind: str) -> None:
    run, _before, _after = refusals
    area = run.reports[NAME]["areas"]["xfs_volumes"]
    mine = [f for f in area["findings"] if f["level"] == "block" and ("REFUSE-" + kind) in str(f)]
    assert mine, run.output
    assert any(REASONS[kind] in "%(observed)s %(why)s" % f for f in mine), mine


def test_no_refused_disk_was_written(refusals: Any) -> None:
    _run, before, after = refusals
    assert after == before


def test_the_blank_disk_got_its_filesystem_all_the_same(refusals: Any, refuse1: Any) -> None:
    run, _before, _after = refusals
    assert run.rc != 0, "a refusal has to show in the exit status"
    assert refuse1.check_output("findmnt -no FSTYPE /srv/blank").strip() == "xfs"
    mounted = refuse1.check_output("findmnt -rno TARGET").split()
    assert [path for path in mounted if path.startswith("/srv/")] == ["/srv/blank"]


def test_a_kernel_name_is_refused_before_any_host_is_touched() -> None:
    run = run_with("kernel-name", [dict(volume("BLANK"), devices=["/dev/sda"])])
    assert run.rc != 0
    assert "xfs_storage_volumes[0].devices[0]: '/dev/sda' is not possible" in run.output


def test_one_disk_named_twice_is_refused(refuse1: Any) -> None:
    other = LINK.replace("scsi-0", "scsi-S") + "EXT4"
    run = run_with("twice", [dict(volume("EXT4"), raid={"level": 0}, devices=[LINK + "EXT4", other])])
    assert run.rc != 0
    assert "twice" in run.output or "same disk" in run.output, run.output


def test_the_end(refuse1: Any) -> None:
    subprocess.run([sys.executable, "lab/lab.py", "down", NAME], cwd=ROOT, check=True)
