# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import Result
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import Unknown
from ansible_collections.gpufleet.host.plugins.module_utils._observe import lsblk, md, mounts, signatures, xfs

ROOT = Path(__file__).resolve().parents[5]
CORPUS = ROOT / "tests/corpus"


def readings(kind: str) -> list[Any]:
    rows = yaml.safe_load((ROOT / "tests/unit/cases/corpus" / (kind + ".yml")).read_text())
    assert {row["file"] for row in rows} == {path.name for path in (CORPUS / kind).iterdir()}
    return [pytest.param(row, id=row["file"]) for row in rows]


def text_of(kind: str, row: dict[str, Any]) -> str:
    return (CORPUS / kind / row["file"]).read_text(encoding="utf-8")


def agrees(value: Any, expected: dict[str, Any]) -> bool:
    seen = {key: getattr(value, key) for key in expected}
    return {key: list(item) if isinstance(item, tuple) else item for key, item in seen.items()} == expected


@pytest.mark.parametrize("row", readings("xfs_info"))
def test_geometry_of_the_corpus(row: dict[str, Any]) -> None:
    geometry = xfs.parse_xfs_info(text_of("xfs_info", row))
    expected = {key: value for key, value in row.items() if key not in ("file", "features")}
    assert agrees(geometry, expected)
    assert isinstance(geometry, xfs.Geometry)
    assert geometry.features == row["features"]


@pytest.mark.parametrize("row", readings("mdadm"))
def test_arrays_of_the_corpus(row: dict[str, Any]) -> None:
    text = text_of("mdadm", row)
    if "mdstat" in row:
        arrays = md.parse_mdstat(text)
        assert len(arrays) == len(row["mdstat"])
        assert all(agrees(value, expected) for value, expected in zip(arrays, row["mdstat"]))
        return
    parse = md.parse_mdadm_examine if "-E" in row["file"] else md.parse_mdadm_detail
    details = parse(text)
    assert len(details) == len(row["arrays"])
    for value, expected in zip(details, row["arrays"]):
        assert agrees(value, expected)
    assert [len(detail.members) for detail in details] == row["members"]
    if "last_member" in row:
        assert agrees(details[-1].members[-1], row["last_member"])


@pytest.mark.parametrize("row", readings("lsblk"))
def test_devices_of_the_corpus(row: dict[str, Any]) -> None:
    listing = lsblk.parse_lsblk(text_of("lsblk", row))
    devices = {device.name: device for device in listing.devices}
    types = [device.values.get("type") for device in listing.devices]
    assert listing.rows == row["rows"]
    assert len(devices) == row.get("devices", len(devices))
    assert types.count("disk") == row.get("disks", types.count("disk"))
    assert sorted(set(filter(None, types))) == row.get("types", sorted(set(filter(None, types))))
    fstypes = sorted({device.values["fstype"] for device in listing.devices if "fstype" in device.values})
    assert fstypes == row.get("fstypes", fstypes)
    assert list(devices)[: len(row.get("names", []))] == row.get("names", [])
    if "columns" in row:
        assert list(listing.columns)[:10] == [name.lower() for name in row["columns"]]
    if "top" in row:
        assert [device.name for device in listing.devices if not device.parents] == row["top"]
    for name, parents in row.get("parents", {}).items():
        assert list(devices[name].parents) == parents
    for values in row.get("values", []):
        assert dict(devices[values["name"]].values, **values) == devices[values["name"]].values
    assert list(listing.complaints) == row.get("complaints", [])


@pytest.mark.parametrize("row", readings("findmnt"))
def test_mounts_of_the_corpus(row: dict[str, Any]) -> None:
    rows = getattr(mounts, row["parser"])(text_of("findmnt", row))
    assert len(rows) == row["rows"]
    assert "first" not in row or agrees(rows[0], row["first"])
    assert "last" not in row or agrees(rows[-1], row["last"])
    for fs_type, number in row.get("types", {}).items():
        assert sum(value.fs_type == fs_type for value in rows) == number


def devices_of(text: str) -> dict[str, dict[str, str]]:
    return {device.name: dict(device.values) for device in lsblk.parse_lsblk(text).devices}


STACKED = """admin@gpu-7:~> lsblk
NAME        MAJ:MIN RM   SIZE RO TYPE MOUNTPOINTS
sda           8:0    0 447,1G  0 disk
|-sda1        8:1    0   150G  0 part /var/lib/a
|                                     /var/lib/b
`-sda2        8:2    0   297G  0 part /data
nvme0n1     259:0    0   3.5T  0 disk

admin@gpu-7:~> df -h
Filesystem      Size  Used Avail Use% Mounted on
tmpfs           4.0M     0  4.0M   0% /dev
"""


def test_mount_points_below_each_other_belong_to_one_device_and_a_prompt_ends_the_table() -> None:
    listing = lsblk.parse_lsblk(STACKED)
    assert [device.name for device in listing.devices] == ["sda", "sda1", "sda2", "nvme0n1"]
    assert listing.rows == 4
    assert listing.devices[1].values["mountpoints"] == "/var/lib/a\n/var/lib/b"
    assert listing.devices[1].parents == ("sda",)


def test_what_is_no_row_of_the_table_is_no_device() -> None:
    text = "  NAME    MAJ:MIN RM SIZE RO TYPE MOUNTPOINT\n  sda       8:0    0  1T  0 disk\n\nThanks in advance,\nJo\n"
    assert devices_of(text) == {
        "sda": {"name": "sda", "maj:min": "8:0", "rm": "0", "size": "1T", "ro": "0", "type": "disk"}
    }


def test_a_tree_whose_blanks_were_joined_by_a_web_page() -> None:
    text = (
        "[root@c2 ~]# lsblk # all\nNAME MAJ:MIN RM SIZE RO TYPE MOUNTPOINT\nsda 8:0 0 20G 0 disk\n├─sda1 8:1 0 1G 0 part /boot\n"
        "└─sda2 8:2 0 19G 0 part\n├─vg-root 253:0 0 17G 0 lvm /\n└─vg-swap 253:1 0 2G 0 lvm [SWAP]\n"
    )
    listing = lsblk.parse_lsblk(text)
    assert [(device.name, device.parents, device.values.get("mountpoint")) for device in listing.devices] == [
        ("sda", (), None),
        ("sda1", ("sda",), "/boot"),
        ("sda2", ("sda",), None),
        ("vg-root", (), "/"),
        ("vg-swap", (), "[SWAP]"),
    ]
    assert listing.devices[3].values["size"] == "17G"


def test_a_name_that_was_blacked_out_moves_no_value() -> None:
    text = "NAME        MAJ:MIN RM  SIZE RO TYPE MOUNTPOINT\nxx 8:0    0  447G  0 disk\n└─xx2 8:2    0  440G  0 part /mnt/my data\n"
    assert devices_of(text)["xx2"] == {
        "name": "xx2", "maj:min": "8:2", "rm": "0", "size": "440G", "ro": "0", "type": "part", "mountpoint": "/mnt/my data",
    }  # fmt: skip


def test_a_word_below_a_table_of_filesystems_is_no_device() -> None:
    text = (
        "NAME     FSTYPE LABEL MOUNTPOINT\nnvme0n1\n└─data   xfs          /data\nsdz\n\nThanks\nBob B. said so\n"
        "bob@h:~> df\nFilesystem 1K-blocks Mounted\n/dev/sdq          9 /q\n"
    )
    assert list(devices_of(text)) == ["nvme0n1", "data", "sdz"]


def test_names_of_hosts_before_all_lines() -> None:
    def labelled(text: str) -> str:
        return "".join("gpu-1: %s\n" % line for line in text.splitlines())

    assert list(devices_of(labelled("NAME MAJ:MIN TYPE\nsda      8:0 disk\nsdb     8:16 disk\n"))) == ["sda", "sdb"]
    assert [row.target for row in mounts.parse_findmnt(labelled("TARGET SOURCE\n/a     b\n/c     d\n"))] == ["/a", "/c"]
    assert [
        array.name
        for array in md.parse_mdstat(labelled("Personalities :\nmd0 : active raid1 a[0]\n  1 blocks [2/1] [U_]\n"))
    ] == ["md0"]
    assert xfs.parse_xfs_info(labelled(GEOMETRY)) == xfs.parse_xfs_info(GEOMETRY)


def test_two_listings_of_one_machine_are_one() -> None:
    text = (
        "NAME MAJ:MIN SIZE TYPE MOUNTPOINT\nsda      8:0   1T disk \n\n"
        "NAME ROTA TRAN MODEL\nsda     1 sata A B 7K2\nsdb     1 sata C\n"
    )
    assert devices_of(text)["sda"] == {
        "name": "sda", "maj:min": "8:0", "size": "1T", "type": "disk", "rota": "1", "tran": "sata", "model": "A B 7K2",
    }  # fmt: skip
    assert set(devices_of(text)) == {"sda", "sdb"}


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ('NAME="sda" MAJ_MIN="8:0" FSUSE_PCT="7%" LABEL="a\\x20b"', {"maj:min": "8:0", "fsuse%": "7%", "label": "a b"}),
        ("NAME FSTYPE LABEL MOUNTPOINT\nsda   \nsdb xfs  /mnt/a\\x20b", {}),
        ("SIZE NAME   TYPE\n  1T sda    disk\n512G ├─sda1 part", {"size": "1T", "type": "disk"}),
        (
            "NAME FSTYPE FSUSE% MOUNTPOINTS\nsda  xfs        7%  /srv/x",
            {"fstype": "xfs", "fsuse%": "7%", "mountpoints": "/srv/x"},
        ),
        ("# lsblk -J\n" + '{"blockdevices": [{"name": "sda", "size": "1T"}]}' + "\n# exit", {"size": "1T"}),
    ],
)
def test_forms_of_lsblk(text: str, values: dict[str, str]) -> None:
    found = devices_of(text)
    assert {key: value for key, value in found["sda"].items() if key != "name"} == values
    if "sdb" in found:
        assert found["sdb"] == {"name": "sdb", "fstype": "xfs", "mountpoint": "/mnt/a b"}
    if "sda1" in found:
        assert found["sda1"]["size"] == "512G"


def test_json_without_its_end_tells_what_is_whole() -> None:
    text = '# lsblk -J | head\n{\n "blockdevices": [\n  {"name": "sda", "size": "1T", "children": [\n   {"name": "sda1", "size": "7'
    listing = lsblk.parse_lsblk(text)
    assert [(device.name, dict(device.values)) for device in listing.devices] == [
        ("sda", {"name": "sda", "size": "1T"}),
        ("sda1", {"name": "sda1"}),
    ]
    assert listing.complaints == ("the end of the output is missing",)
    rows = mounts.parse_findmnt(
        '{"filesystems": [{"target": "/a", "source": "b", "fstype": "xfs", "options": "rw"}, {"tar'
    )
    assert rows == [mounts.Row("/a", "b", "", "xfs", ("rw",))]


def test_a_shell_that_has_no_lsblk_is_a_complaint() -> None:
    assert lsblk.parse_lsblk("bash: lsblk: command not found\n").complaints == ("bash: lsblk: command not found",)


@pytest.mark.parametrize(
    "text",
    [
        "# findmnt /data\n  TARGET SOURCE                FSTYPE OPTIONS\n  /data  /dev/md0[/sub] xfs    rw,noatime\n#\n",
        'TARGET="/data" SOURCE="/dev/md0[/sub]" FSTYPE="xfs" OPTIONS="rw,noatime"\n',
        "TARGET SOURCE FSTYPE OPTIONS\n/data /dev/md0[/sub] xfs rw,noatime\n",
        "SOURCE   FSTYPE SIZE USED USE% OPTIONS    FSROOT TARGET\n/dev/md0 xfs      1T   7G   1% rw,noatime /sub   /data\n",
        '$ findmnt -J\n{"filesystems": [{"target": "/data", "source": "/dev/md0", "fsroot": "/sub", "fstype": "xfs", '
        '"options": "rw,noatime"}]}\n',
    ],
)
def test_forms_of_findmnt(text: str) -> None:
    assert mounts.parse_findmnt(text) == [mounts.Row("/data", "/dev/md0", "/sub", "xfs", ("rw", "noatime"))]


def test_mounts_that_are_indented_or_have_brackets_in_their_options() -> None:
    assert mounts.parse_proc_mounts("  /dev/md0 /data xfs rw,noatime 0 0\n one two three four 0 0\n") == [
        mounts.Row("/data", "/dev/md0", "", "xfs", ("rw", "noatime"))
    ]
    (row,) = mounts.parse_mount("   a b on /x type fuse.y (rw,fsname=a(b)c) [label]\n")
    assert (row.source, row.target, row.options) == ("a b", "/x", ("rw", "fsname=a(b)c"))


OLD_DETAIL = """$ sudo mdadm -D /dev/md0
    /dev/md0:
            Version : 0.90
         Raid Level : raid5
              State : clean, degraded, recovering
               UUID : 0a0a0a0a:11111111:22222222:33333333 (local to host cafe)
    Number   Major   Minor   RaidDevice State
       0       8        1        0      active sync   /dev/sda1   # the old one
       3       8       49        1      spare rebuilding   /dev/sdd1
       -       0        0        2      removed
$ sudo hdparm -t /dev/sdb

/dev/sdb:
 Timing buffered disk reads: 356 MB in  3.01 seconds = 118.26 MB/sec
"""


def test_an_array_between_other_outputs() -> None:
    (array,) = md.parse_mdadm_detail(OLD_DETAIL)
    assert (array.device, array.state) == ("/dev/md0", "clean, degraded, recovering")
    assert array.uuid == "0a0a0a0a111111112222222233333333"
    assert [(member.device, member.role, member.state) for member in array.members] == [
        ("/dev/sda1", 0, "active sync"),
        ("/dev/sdd1", 1, "spare rebuilding"),
        ("", 2, "removed"),
    ]


def test_the_table_of_an_old_superblock_has_one_more_column() -> None:
    text = (
        "/dev/sdb1:\n          Magic : a92b4efc\n        Version : 0.90.00\n          State : clean\n"
        "      Number   Major   Minor   RaidDevice State\nthis     1       8       17        1      active sync   /dev/sdb1\n\n"
        "   0     0       8        1        0      active sync   /dev/sda1\n"
        "   1     1       8       17        1      active sync   /dev/sdb1\n"
    )
    (member,) = md.parse_mdadm_examine(text)
    assert [(row.device, row.role, row.state) for row in member.members] == [
        ("/dev/sda1", 0, "active sync"),
        ("/dev/sdb1", 1, "active sync"),
    ]


def test_the_state_of_a_disk_of_firmware_raid_is_not_that_of_an_array() -> None:
    text = (
        "/dev/nvme0n1:\n          Magic : Intel Raid ISM Cfg Sig.\n        Version : 1.3.00\n   RAID Devices : 2\n\n"
        "  Disk00 Serial : ABC\n          State : active\n\n[Volume0]:\n     RAID Level : 1\n"
    )
    (member,) = md.parse_mdadm_examine(text)
    assert (member.state, member.level, member.raid_devices) == (None, None, 2)


def test_mdstat_without_its_indentation_and_with_a_broken_array() -> None:
    text = (
        "Personalities : [raid0] [raid1]\nmd1 : active raid1 sdb1[1](W)(J) sda1[0]\n1024 blocks super 1.2 [2/1] [U_]\n"
        "   md2 : broken raid0 nvme1n1[1](F) nvme0n1[0]\n      2048 blocks super 1.2 512k chunks\n\nunused devices: <none>\n"
    )
    first, second = md.parse_mdstat(text)
    assert (first.is_degraded, first.members) == (True, (("sdb1", "WJ"), ("sda1", "")))
    assert (second.is_active, second.access, second.level) == (False, "broken", "raid0")


GEOMETRY = """meta-data=/dev/sdb isize=512 agcount=4, agsize=65536 blks
= sectsz=512 attr=2, projid32bit=1
= crc=1 finobt=1, sparse=1, rmapbt=0
data = bsize=4096 blocks=262144, imaxpct=25
= sunit=0 swidth=0 blks
naming =version 2 bsize=4096 ascii-ci=0, ftype=1, parent=1
log =internal log bsize=4096 blocks=2560, version=2
= sectsz=512 sunit=0 blks, lazy-count=1
realtime =none extsz=4096 blocks=0, rtextents=0
"""


def test_a_geometry_that_lost_its_blanks_and_another_behind_it() -> None:
    second = GEOMETRY.replace("sdb", "sdc").replace("rmapbt=0", "rmapbt=1 reflink=1")
    geometry = xfs.parse_xfs_info("# xfs_info /data\n" + GEOMETRY + second)
    assert isinstance(geometry, xfs.Geometry)
    assert (geometry.device, geometry.blocks, geometry.log_bytes) == ("/dev/sdb", 262144, 10485760)
    assert geometry.features == {
        "crc": 1, "finobt": 1, "sparse": 1, "rmapbt": 0, "ftype": 1, "ascii-ci": 0, "parent": 1,
    }  # fmt: skip
    indented = xfs.parse_xfs_info("".join("    %s\n" % line for line in GEOMETRY.splitlines()))
    assert indented == geometry


def test_mount_points_are_unescaped_and_a_bind_keeps_its_root() -> None:
    line = "42 27 7:0 /sub /mnt/a\\040b rw,noatime shared:1 master:2 - xfs /dev/loop0 rw,inode64,allocsize=64k\n"
    found = mounts.parse_mountinfo(line)
    assert not isinstance(found, Unknown)
    assert found[0].mount_point == "/mnt/a b"
    assert found[0].root == "/sub"
    assert found[0].super_options == ("rw", "inode64", "allocsize=64k")


def test_missing_mountinfo_is_unknown() -> None:
    assert isinstance(mounts.parse_mountinfo(None), Unknown)
    assert isinstance(mounts.parse_mountinfo(Unknown("Permission denied")), Unknown)


def test_fstab_keeps_comments_and_numbers() -> None:
    text = '# disks\n\nUUID="0a" /data/ xfs noatime,inode64 0 2 # mine\nLABEL=x /a\\040b ext4\nnonsense\n'
    rows = mounts.parse_fstab(text)
    assert [row.number for row in rows] == [1, 2, 3, 4, 5]
    assert [row.spec for row in rows] == ["", "", "UUID=0a", "LABEL=x", ""]
    assert rows[2].mount_point == "/data"
    assert rows[2].options == ("noatime", "inode64")
    assert (rows[2].dump, rows[2].passno) == ("0", "2")
    assert rows[3].mount_point == "/a b"
    assert "\n".join(row.text for row in rows) + "\n" == text


def test_swaps() -> None:
    text = "Filename\t\tType\t\tSize\n/dev/sda3  partition 1 0 -2\n/swap\\040file file 1 0 -3\n"
    assert mounts.parse_swaps(text) == ["/dev/sda3", "/swap file"]
    assert mounts.parse_swaps(None) == []
    assert isinstance(mounts.parse_swaps(Unknown("x")), Unknown)


class Probed:
    """A host on which blkid and wipefs give what the test says."""

    is_live = False

    def __init__(self, blkid: Result, wipefs: Result) -> None:
        self.answers = {"blkid": blkid, "wipefs": wipefs}

    def run(self, argv: Any, deadline_s: float = 10.0) -> Result:
        return self.answers[argv[0]]


EMPTY = Result(0, '{\n   "signatures": [\n\n   ]\n}\n', "")
NOTHING = Result(2, "", "")
GONE = Result(-1, "", "", "blkid is not installed")
XFS = Result(0, "DEVNAME=/dev/x\nUUID=aa\nLABEL=gf-data\nTYPE=xfs\nUSAGE=filesystem\n", "")
LISTED = Result(0, '{"signatures": [{"device": "x", "offset": "0x0", "type": "xfs", "uuid": "aa", "label": null}]}', "")


@pytest.mark.parametrize(
    ("blkid", "wipefs", "kinds"),
    [
        (NOTHING, EMPTY, []),
        (XFS, LISTED, ["xfs"]),
        (NOTHING, LISTED, ["xfs"]),
        (XFS, EMPTY, ["xfs"]),
        (Result(0, "DEVNAME=/dev/x\nPTTYPE=gpt\n", ""), EMPTY, ["gpt"]),
        (Result(0, "DEVNAME=/dev/x\nUSAGE=raid\n", ""), EMPTY, ["one that blkid gives no type"]),
        (Result(8, "", "ambivalent result"), EMPTY, ["several that contradict each other"]),
    ],
)
def test_what_lies_on_a_device(blkid: Result, wipefs: Result, kinds: list[str]) -> None:
    found = signatures.signatures(Probed(blkid, wipefs), "/dev/x")  # type: ignore[arg-type]
    assert not isinstance(found, Unknown)
    assert [signature.kind for signature in found] == kinds


@pytest.mark.parametrize(
    ("blkid", "wipefs"),
    [
        (NOTHING, Result(1, "", "wipefs: error: /dev/x: probing initialization failed: No such file or directory")),
        (NOTHING, GONE),
        (GONE, EMPTY),
        (NOTHING, Result(0, "", "")),
        (NOTHING, Result(0, '{"signatures": [{"offset": "0x0"}]}', "")),
        (NOTHING, Result(0, '{"signatures": {}}', "")),
        (Result(4, "", "usage"), EMPTY),
        (Result(0, "", ""), EMPTY),
        (Result(-1, "", "", "blkid hung: no answer in 20 s"), EMPTY),
    ],
)
def test_no_answer_is_never_blank(blkid: Result, wipefs: Result) -> None:
    assert isinstance(signatures.signatures(Probed(blkid, wipefs), "/dev/x"), Unknown)  # type: ignore[arg-type]


PARSERS = (
    mounts.parse_mountinfo,
    mounts.parse_fstab,
    mounts.parse_swaps,
    mounts.parse_findmnt,
    mounts.parse_mount,
    mounts.parse_proc_mounts,
    xfs.parse_xfs_info,
    md.parse_mdadm_detail,
    md.parse_mdadm_examine,
    md.parse_mdstat,
    lsblk.parse_lsblk,
    signatures.parse_blkid_export,
    signatures.parse_wipefs_json,
)
TEXTS = [
    path.read_text() for kind in ("xfs_info", "mdadm", "lsblk", "findmnt") for path in sorted((CORPUS / kind).iterdir())
]


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """A real output with lines dropped, doubled, reordered, cut and overwritten with junk."""
    rows = draw(st.sampled_from(TEXTS)).splitlines()[:40]
    picked = draw(st.lists(st.sampled_from(rows or [""]), max_size=20))
    junk = draw(st.lists(st.text(max_size=20), max_size=3))
    text = "\n".join(draw(st.permutations(picked + junk)))
    return text[: draw(st.integers(0, len(text)))]


@given(damaged() | st.text())
def test_no_parser_raises(text: str) -> None:
    for parse in PARSERS:
        parse(text)


@pytest.mark.parametrize(
    "text", ["{}", "[]", '{"filesystems": 1}', '{"blockdevices": [1, {"name": null}]}', "[" * 5000, "null"]
)
def test_odd_json_is_no_error(text: str) -> None:
    for parse in PARSERS:
        parse(text)
