# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The geometry of an XFS filesystem, as xfs_info(8), xfs_spaceman(8), xfs_growfs(8) and mkfs.xfs(8) print it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Dict, Mapping, Optional, Union

from .._engine.host import Host
from .._engine.values import Unknown
from .tool_text import clean, without_labels

_SECTION = re.compile(r"^\s*(meta-data|data|naming|log|realtime)\s*=(.*)$")
_MORE = re.compile(r"^\s*=(.*)$")
_PAIR = re.compile(r"(?<![a-z0-9-])([a-z][a-z0-9-]*)=\s{0,40}([0-9]{1,18})(?![0-9])", re.ASCII)
_SECTION_VALUE = re.compile(r"^(\S.*?)(?:\s{2,}|\s+[a-z]+=|$)")
# Words that are sizes or counts; what is left over on the meta-data lines are on-disk features.
_NO_FEATURES = ("isize", "agcount", "agsize", "sectsz", "attr", "projid32bit", "rgcount", "rgsize", "zoned", "start")
_OLD_NAMES = {"spinodes": "sparse"}

DEADLINE_S = 20.0


@dataclass(frozen=True)
class Geometry:
    """Counts are in filesystem blocks of ``block_bytes``; None is what an old tool does not print."""

    device: str
    agcount: int
    ag_blocks: int
    block_bytes: int
    blocks: int
    inode_bytes: Optional[int]
    stripe_unit_blocks: int
    stripe_width_blocks: int
    log: str
    log_bytes: int
    features: Mapping[str, int] = field(default_factory=dict)

    @property
    def size_bytes(self) -> int:
        return self.blocks * self.block_bytes


def parse_xfs_info(text: str) -> Union[Geometry, Unknown]:
    """The geometry, Unknown when a figure that nothing can be judged without is missing."""
    names: Dict[str, str] = {}
    values: Dict[str, Dict[str, int]] = {"meta-data": {}, "data": {}, "naming": {}, "log": {}, "realtime": {}}
    section = ""
    for line in clean(without_labels(text, _SECTION)).splitlines():
        start, more = _SECTION.match(line), _MORE.match(line)
        if start:
            section = start.group(1)
            if section == "meta-data" and values["meta-data"]:
                # Here another filesystem begins; what this one does not say is not to come from that.
                break
            name = _SECTION_VALUE.match(start.group(2))
            names.setdefault(section, name.group(1).strip() if name else "")
        if section and (start or more):
            rest = (start.group(2) if start else more.group(1)) if start or more else ""  # type: ignore[union-attr]
            for key, number in _PAIR.findall(rest):
                values[section].setdefault(key, int(number))
    return _geometry(names, values)


def _geometry(names: Mapping[str, str], values: Mapping[str, Mapping[str, int]]) -> Union[Geometry, Unknown]:
    meta, data, log = values["meta-data"], values["data"], values["log"]
    if not all(key in meta for key in ("agcount", "agsize")) or not all(key in data for key in ("bsize", "blocks")):
        return Unknown("not the geometry of an XFS filesystem")
    if "bsize" not in log or "blocks" not in log:
        return Unknown("the geometry has no complete log line")
    features = {_OLD_NAMES.get(key, key): value for key, value in meta.items() if key not in _NO_FEATURES}
    features.update({key: values["naming"][key] for key in ("ftype", "ascii-ci", "parent") if key in values["naming"]})
    return Geometry(
        device=names.get("meta-data", ""),
        agcount=meta["agcount"],
        ag_blocks=meta["agsize"],
        block_bytes=data["bsize"],
        blocks=data["blocks"],
        inode_bytes=meta.get("isize"),
        stripe_unit_blocks=data.get("sunit", 0),
        stripe_width_blocks=data.get("swidth", 0),
        log=names.get("log", ""),
        log_bytes=log["bsize"] * log["blocks"],
        features=features,
    )


def mounted_geometry(host: Host, mount_point: str) -> Union[Geometry, Unknown]:
    """Of a mounted filesystem, with one command: what the xfs_info script itself calls.

    Before xfsprogs 4.20 xfs_spaceman does not know ``info``; then the script is asked.
    """
    result = host.run(["xfs_spaceman", "-c", "info", mount_point], DEADLINE_S)
    geometry = parse_xfs_info(result.stdout) if result.ok else Unknown("no answer")
    if isinstance(geometry, Geometry):
        return geometry
    text = host.run(["xfs_info", mount_point], DEADLINE_S).text()
    return text if isinstance(text, Unknown) else parse_xfs_info(text)


def device_geometry(host: Host, node: str) -> Union[Geometry, Unknown]:
    """Of a filesystem that is not mounted, read only.  A mkfs.xfs that was cut off is told as Unknown."""
    argv = ["xfs_db", "-r", "-c", "info", "-c", "sb 0", "-c", "p inprogress", node]
    text = host.run(argv, DEADLINE_S).text()
    if isinstance(text, Unknown):
        return text
    if re.search(r"^inprogress = [1-9]", text, re.MULTILINE):
        return Unknown(CUT_OFF)
    return parse_xfs_info(text)


CUT_OFF = "its superblock says that mkfs.xfs has not ended"
