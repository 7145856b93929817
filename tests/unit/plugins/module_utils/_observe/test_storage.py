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
