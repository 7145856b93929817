# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Mounts: what the kernel has mounted, what fstab wants, what is swap; and what tools print of it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple, Union

from .._engine.values import Text, Unknown, lines
from .columns import Column, cells, columns_of, is_end, raw_cells, without_tree
from .columns import unescape as unescape_hex
from .cut_json import json_object
from .tool_text import clean, without_labels

_OCTAL = re.compile(r"\\([0-7]{3})")
# A comma inside of quotes (SELinux contexts) separates nothing.
_OPTION = re.compile(r'(?:[^,"]|"[^"]*"?)+')
_MOUNT_TYPE = re.compile(r" type (\S+) \(")
_FINDMNT_HEADER = re.compile(r"^\s*[A-Z][A-Z:%-]*(\s+[A-Z][A-Z:%-]*)*\s*$")
_PAIR = re.compile(r'([A-Z][A-Z0-9:%_-]{0,60})="((?:[^"\\]|\\.)*)"')
# A target is a path; swap, and a line of fstab that mounts nothing, have a word.
_TARGET = re.compile(r"/|none$|swap$")
_BIND = re.compile(r"^([^[]*(?:\[(?!/)[^[]*)*)\[(/.*)\]$")


@dataclass(frozen=True)
class Mount:
    """A line of mountinfo: ``options`` belong to the mount point, ``super_options`` to the filesystem."""

    mount_id: int
    parent_id: int
    device: str
    root: str
    mount_point: str
    options: Tuple[str, ...]
    fs_type: str
    source: str
    super_options: Tuple[str, ...]


@dataclass(frozen=True)
class Row:
    """A mount as findmnt(8), mount(8) or /proc/mounts print it; ``subdir`` is the part that a bind shows."""

    target: str
    source: str
    subdir: str
    fs_type: str
    options: Tuple[str, ...]


@dataclass(frozen=True)
class FstabLine:
    """A line of fstab with its number; a comment or a line that says nothing has an empty ``spec``."""

    number: int
    text: str
    spec: str = ""
    mount_point: str = ""
    fs_type: str = ""
    options: Tuple[str, ...] = ()
    dump: str = "0"
    passno: str = "0"


def parse_mountinfo(text: Text) -> Union[List[Mount], Unknown]:
    """``/proc/PID/mountinfo``, in the order of mounting; lines that are none are left out."""
    if not isinstance(text, str):
        return text if isinstance(text, Unknown) else Unknown("no mountinfo")
    mounts = [_mountinfo_line(line.strip()) for line in text.splitlines()]
    return [mount for mount in mounts if mount is not None]


def _mountinfo_line(line: str) -> Optional[Mount]:
    # Optional fields stand before the lone "-", their number varies (proc_pid_mountinfo(5)).
    left, dash, right = line.partition(" - ")
    fields, tail = left.split(" "), right.split(" ")
    if (
        not dash
        or len(fields) < 6
        or len(tail) < 3
        or not re.match(r"^\d{1,10} \d{1,10} \d{1,7}:\d{1,7} ", left, re.ASCII)
    ):
        return None
    return Mount(
        mount_id=int(fields[0]),
        parent_id=int(fields[1]),
        device=fields[2],
        root=unescape(fields[3]),
        mount_point=unescape(fields[4]),
        options=split_options(fields[5]),
        fs_type=tail[0],
        source=unescape(tail[1]),
        super_options=split_options(" ".join(tail[2:])),
    )


def parse_fstab(text: Text) -> List[FstabLine]:
    """All lines of fstab, comments included, so that a line can be named by its number."""
    return [_fstab_line(number, line) for number, line in enumerate(lines(text), 1)]


def _fstab_line(number: int, line: str) -> FstabLine:
    fields = line.split()
    if len(fields) < 3 or fields[0].startswith("#"):
        return FstabLine(number, line)
    more = [field for field in fields[3:] if not field.startswith("#")]
    return FstabLine(
        number=number,
        text=line,
        spec=unescape(fields[0].replace('"', "")),
        mount_point=_bare_path(unescape(fields[1])),
        fs_type=fields[2],
        options=split_options(more[0]) if more else ("defaults",),
        dump=more[1] if len(more) > 1 else "0",
        passno=more[2] if len(more) > 2 else "0",
    )


def parse_swaps(text: Text) -> Union[List[str], Unknown]:
    """``/proc/swaps``: the devices and files that are swap now."""
    if not isinstance(text, str):
        return text if isinstance(text, Unknown) else []
    return [unescape(line.split()[0]) for line in text.splitlines() if line.startswith("/")]


def parse_findmnt(text: str) -> List[Row]:
    """findmnt(8): JSON (flat or nested), pairs, a list, a raw list, or a tree."""
    text = clean(without_labels(text, _FINDMNT_HEADER))
    data, _is_cut = json_object(text, "filesystems")
    if data is not None:
        return list(_findmnt_nodes(data.get("filesystems"), depth=0))
    lines_ = text.splitlines()
    pairs = [dict(_PAIR.findall(line)) for line in lines_ if _PAIR.match(line.strip())]
    if pairs:
        cells_ = [{key.lower(): unescape_hex(value) for key, value in pair.items()} for pair in pairs]
        return [_findmnt_row(cell) for cell in cells_ if cell.get("target")]
    return _findmnt_table(lines_)


def _findmnt_nodes(nodes: Any, depth: int) -> Iterator[Row]:
    for node in nodes if isinstance(nodes, list) and depth < 100 else []:
        if isinstance(node, Mapping):
            if isinstance(node.get("target"), str):
                yield _findmnt_row({str(key).lower(): str(value or "") for key, value in node.items()})
            yield from _findmnt_nodes(node.get("children"), depth + 1)


def _findmnt_table(rows: List[str]) -> List[Row]:
    """Cells stand below their headings, which end at the next prompt."""
    found: List[Row] = []
    columns: List[Column] = []
    for row in rows:
        if _FINDMNT_HEADER.match(row) and "TARGET" in row.split():
            columns = columns_of(row)
        elif is_end(row):
            columns = []
        elif columns and row.strip():
            values = _findmnt_cells(row, columns)
            if _TARGET.match(values.get("target", "")):
                found.append(_findmnt_row(values))
    return found


def _findmnt_cells(row: str, columns: List[Column]) -> Dict[str, str]:
    raw = raw_cells(row, columns)
    plain = without_tree(row, columns, ("target",))[1]
    words, values = plain.split(), cells(plain, columns)
    # A name that was blacked out moves what stands behind it; findmnt leaves none of its usual cells empty.
    if len(words) == len(columns) and len(values) < len(columns):
        values = {column.name: word for column, word in zip(columns, words)}
    return values if raw is None else raw


def _findmnt_row(values: Mapping[str, str]) -> Row:
    row = _row(values["target"], values.get("source", ""), values.get("fstype", ""), values.get("options", ""))
    root = values.get("fsroot", "")
    return replace(row, subdir=root) if not row.subdir and root not in ("", "/") else row


def parse_mount(text: str) -> List[Row]:
    """mount(8) without arguments; a mount point may hold spaces and even " type "."""
    rows = [_mount_line(line.strip()) for line in clean(text).splitlines()]
    return [row for row in rows if row is not None]


def _mount_line(line: str) -> Optional[Row]:
    types = list(_MOUNT_TYPE.finditer(line))
    head, tail = (line[: types[-1].start()], line[types[-1].end() :]) if types else ("", "")
    source, is_on, target = head.partition(" on /")
    options, bracket, label = tail.rpartition(")")
    if not is_on or not bracket or label.strip()[:1] not in ("", "["):
        return None
    return _row("/" + target, source, types[-1].group(1), options)


def parse_proc_mounts(text: Text) -> List[Row]:
    """``/proc/mounts``: four fields and two numbers; options may hold quotes."""
    rows: List[Row] = []
    for line in lines(text):
        fields = line.strip().split(" ")
        if len(fields) >= 6 and fields[1].startswith("/") and fields[-1].isdigit() and fields[-2].isdigit():
            rows.append(_row(unescape(fields[1]), unescape(fields[0]), fields[2], " ".join(fields[3:-2])))
    return rows


def split_options(text: str) -> Tuple[str, ...]:
    return tuple(option for option in _OPTION.findall(text) if option)


def unescape(text: str) -> str:
    """Undo the octal escapes of space, tab, newline, backslash and # (getmntent(3))."""
    return _OCTAL.sub(lambda match: chr(int(match.group(1), 8)), text)


def escape(text: str) -> str:
    """A path as a field of fstab."""
    return re.sub(r"[\s\\#]", lambda match: "\\%03o" % ord(match.group()), text, flags=re.ASCII)


def _row(target: str, source: str, fs_type: str, options: str) -> Row:
    bind = _BIND.match(source)
    subdir = bind.group(2) if bind else ""
    return Row(target, bind.group(1) if bind else source, subdir, fs_type, split_options(options))


def _bare_path(path: str) -> str:
    return path.rstrip("/") or "/" if path.startswith("/") else path
