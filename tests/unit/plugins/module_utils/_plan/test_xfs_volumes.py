# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import Unknown
from ansible_collections.gpufleet.host.plugins.module_utils._observe import mounts
from ansible_collections.gpufleet.host.plugins.module_utils._plan import xfs_commands, xfs_files, xfs_options, xfs_wants

VOLUME: dict[str, Any] = {
    "name": "data",
    "devices": ["a", "b"],
    "mount_point": "/data",
    "raid": {"level": 0, "chunk": "512k", "metadata": "1.2"},
    "noatime": True,
    "inode64": True,
    "allocsize": "64k",
    "options": [],
    "nofail": True,
    "agcount": 32,
    "log_size": "128m",
}


@pytest.mark.parametrize(
    ("path", "unit"),
    [
        ("/data", "data.mount"),
        ("/data/fast", "data-fast.mount"),
        ("/data-1/x", "data\\x2d1-x.mount"),
        ("/.hidden", "\\x2ehidden.mount"),
        ("/a.b_c:d", "a.b_c:d.mount"),
        ("/mnt/ä b", "mnt-\\xc3\\xa4\\x20b.mount"),
    ],
)
def test_unit_names_are_those_of_systemd_escape(path: str, unit: str) -> None:
    assert xfs_files.unit_name(path) == unit


@given(st.text(alphabet="ab \t\\#/-.", min_size=1).map(lambda text: "/x" + text + "y"))
def test_a_path_survives_fstab(path: str) -> None:
    line = xfs_files.fstab_line("0-1", path, ["noatime"])
    assert mounts.parse_fstab(line)[0].mount_point == path


@pytest.mark.parametrize(
    ("options", "is_right"),
    [
        (["noatime", "inode64", "allocsize=64k", "nofail"], True),
        (["nofail", "allocsize=65536", "noatime"], True),
        (["noatime", "allocsize=64k", "nofail", "nodev", "x-mine"], True),
        (["noatime", "allocsize=64k", "nofail", "inode32"], False),
        (["noatime", "relatime", "allocsize=64k", "nofail"], False),
        (["noatime", "allocsize=64k"], False),
        (["noatime", "allocsize=64k", "nofail", "noauto"], False),
        (["defaults"], False),
    ],
)
def test_which_fstab_options_are_right_and_how_they_are_mended(options: list[str], is_right: bool) -> None:
    wanted = xfs_options.wanted_options(VOLUME)
    line = {"spec": "UUID=0-A", "fs_type": "xfs", "options": options}
    assert xfs_files.line_is_right(line, "0-a", wanted) == is_right
    mended = dict(line, options=xfs_files.options_for(line, wanted))
    assert xfs_files.line_is_right(mended, "0-a", wanted)
    assert {"nodev", "x-mine"} & set(options) <= set(mended["options"])
    assert xfs_files.options_for(mended, wanted) == mended["options"]


def test_lines_are_replaced_in_place() -> None:
    assert xfs_files.replace_line("a\nb\nc\n", 2, "x") == "a\nx\nc\n"
    assert xfs_files.replace_line("a\nb", 2, "") == "a\n"
    assert xfs_files.append_line("a", "b") == "a\nb\n"
    assert xfs_files.append_line("", "b") == "b\n"


@pytest.mark.parametrize(
    ("text", "is_named"),
    [
        ("ARRAY /dev/md0 UUID=11111111:22222222:33333333:44444444\n", True),
        ("  array /dev/md0 metadata=1.2 uuid=11111111-2222-2222-3333-333344444444 name=x\n", True),
        ("# ARRAY /dev/md0 UUID=11111111:22222222:33333333:44444444\n", False),
        ("ARRAY /dev/md0 UUID=11111111:22222222:33333333:44444445\n", False),
        ("HOMEHOST <system>\n", False),
    ],
)
def test_an_array_is_found_in_mdadm_conf(text: str, is_named: bool) -> None:
    assert xfs_files.names_array(text, "11111111222222223333333344444444") == is_named


def test_uuids_are_the_same_on_each_run_and_differ_between_hosts_names_and_kinds() -> None:
    first = xfs_commands.uuid_of("0" * 32, "filesystem", VOLUME)
    assert first == xfs_commands.uuid_of("0" * 32, "filesystem", dict(VOLUME))
    others = [
        xfs_commands.uuid_of("1" * 32, "filesystem", VOLUME),
        xfs_commands.uuid_of("0" * 32, "array", VOLUME),
        xfs_commands.uuid_of("0" * 32, "filesystem", dict(VOLUME, name="other")),
    ]
    assert len({first, *others}) == 4
    assert first[14] == "8"
    assert first[19] in "89ab"


def test_a_label_has_at_most_the_12_bytes_of_xfs() -> None:
    assert xfs_commands.label_of({"name": "data"}) == "gf-data"
    assert xfs_commands.label_of({"name": "checkpoints-of-team"}) == "gf-checkpoin"


@pytest.mark.parametrize(
    ("level", "devices", "striped"),
    [(0, 4, (524288, 4)), (10, 4, (524288, 2)), (10, 3, None), (1, 2, None)],
)
def test_the_stripe_comes_from_the_array(level: int, devices: int, striped: Any) -> None:
    volume = dict(VOLUME, devices=["x"] * devices, raid=dict(VOLUME["raid"], level=level))
    assert xfs_commands.stripe(volume, None) == striped


def test_the_chunk_of_an_array_that_is_there_counts() -> None:
    volume = dict(VOLUME, raid={"level": 0, "chunk": None, "metadata": "1.2"})
    assert xfs_commands.stripe(volume, {"chunk_bytes": 65536}) == (65536, 2)
    assert xfs_commands.stripe(volume, None) is None


def test_mdadm_is_told_about_the_bitmap_so_that_it_asks_nothing() -> None:
    argv = xfs_commands.mdadm_argv(dict(VOLUME, raid={"level": 1, "metadata": "1.0"}), "u", ["/dev/a", "/dev/b"])
    assert "--bitmap=internal" in argv
    assert "--bitmap=internal" not in xfs_commands.mdadm_argv(VOLUME, "u", ["/dev/a", "/dev/b"])


def mount(options: str, super_options: str) -> dict[str, Any]:
    return {"options": options.split(","), "super_options": super_options.split(",")}


@pytest.mark.parametrize(
    ("live", "remount", "fresh"),
    [
        (mount("rw,noatime", "rw,attr2,inode64,allocsize=64k,logbufs=8"), [], []),
        (mount("rw,noatime", "rw,allocsize=64k"), [], []),
        (mount("rw,relatime", "rw,inode64,allocsize=64k"), ["noatime"], []),
        (mount("rw,noatime", "rw,inode32,allocsize=64k"), ["inode64"], []),
        (mount("rw,noatime", "rw,inode64"), [], ["allocsize=64k"]),
        (mount("rw,noatime", "rw,inode64,allocsize=128k"), [], ["allocsize=64k"]),
        (mount("rw", "rw,inode32"), ["noatime", "inode64"], ["allocsize=64k"]),
        (mount("ro,noatime", "ro,inode64,allocsize=64k"), ["rw"], []),
    ],
)
def test_lost_options_and_how_they_come_back(live: dict[str, Any], remount: list[str], fresh: list[str]) -> None:
    assert xfs_options.lost(VOLUME, live) == (remount, fresh)


def test_a_remount_keeps_all_that_is_live() -> None:
    live = mount("rw,nodev,relatime", "rw,lazytime,inode32,allocsize=64k,logbufs=8,noquota")
    assert xfs_options.remount_options(live, ["noatime"]) == "rw,nodev,lazytime,inode32,noatime"
    assert xfs_options.remount_options(live, ["inode64"]) == "rw,nodev,relatime,lazytime,inode64"
    assert xfs_options.remount_options(live) == "rw,nodev,relatime,lazytime,inode32"
    assert xfs_options.mount_options(live) == "rw,nodev,relatime,lazytime,inode32,allocsize=64k,logbufs=8"


@pytest.mark.parametrize(
    ("option", "kernel", "is_there"),
    [
        ("nobarrier", "4.18.0-553.el8.x86_64", True),
        ("nobarrier", "4.19.0-1", False),
        ("nobarrier", "6.1.0-18-amd64", False),
        ("nosymfollow", "5.4.0-1", False),
        ("nosymfollow", "5.15.0-1", True),
        ("nosymfollow", Unknown("x"), True),
        ("nobarrier", Unknown("x"), False),
    ],
)
def test_options_that_a_kernel_has(option: str, kernel: Any, is_there: bool) -> None:
    assert (xfs_options.unsupported(dict(VOLUME, options=[option]), kernel) == []) == is_there


@pytest.mark.parametrize(
    ("size", "agcount", "log", "variable"),
    [
        (2**40, 32, "128m", None),
        (32 * (128 * 2**20 + 65536), 32, "128m", None),
        (32 * 128 * 2**20, 32, "128m", "agcount"),
        (2**29, 32, None, None),
        (2**29 - 1, 32, None, "agcount"),
        (32 * 2**40 + 32, 32, "128m", "agcount"),
        (299 * 2**20, 4, None, "devices"),
        (2**40, None, "128m", None),
    ],
)
def test_geometry_that_fits_a_size(size: int, agcount: Any, log: Any, variable: Any) -> None:
    rows = xfs_wants.misfits(dict(VOLUME, agcount=agcount, log_size=log), size)
    assert [row[0] for row in rows] == ([variable] if variable else [])
