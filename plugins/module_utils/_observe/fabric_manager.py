# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fabric Manager: its log or journal, its configuration, and the state that GPUs report of the fabric."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Dict, List, Mapping, Optional, Tuple, Union

from .._engine.values import Text, Unknown, lines
from .nvidia_values import Number, Word
from .nvidia_words import address, clean, is_complaint, word

# "[Feb 25 2025 13:59:45] [ERROR] [tid 12997] ..." in the log; the journal has a stamp of its own.
_RECORD = re.compile(
    r"\[([A-Z][a-z]{2} {1,2}\d{1,2} \d{4} \d\d:\d\d:\d\d)\] \[([A-Z]{1,10})\] (?:\[tid \d{1,10}\] )?(.{0,1500})"
)
# What it writes to the journal has no level.
_COMPLAINT = re.compile(
    r".{0,200}\bnv(?:idia)?-fabricmanager[\w.-]{0,20}\[\d{1,10}\]: (?=.{0,300}(?:fail|error|incompatible|match with|unable|invalid|abort))(.{1,500})"
    r"|.{0,200}\b(fabric manager (?:config file item\b|version is incompatible\b).{1,300})",
    re.ASCII | re.IGNORECASE,
)
_MISMATCH = re.compile(
    r"fabric manager NVIDIA GPU driver interface version (\d[\d.]{1,20}\d) (?:don't|doesn't|does not|do not) match with "
    r"driver version (\d[\d.]{1,20}\d)",
    re.IGNORECASE,
)
_VERSION = re.compile(r"Fabric ?Manager version(?: is)?\s{0,3}:?\s{0,3}(\d[\d.]{1,20}\d)", re.IGNORECASE)
_SXID = re.compile(
    r"detected NVSwitch (non-fatal|fatal) error (\d{1,6}) on (?:fid|NodeId) (\d{1,6}) on NVSwitch pci bus id "
    r"([0-9A-Fa-f:.]{8,20}) physical id (\d{1,6})(?: port (\d{1,4}))?",
    re.ASCII,
)
_BRIDGE = re.compile(r"found NVSwitch LPF(?: device)?: (?:device=)?(mlx5_\d{1,3})", re.ASCII)
_GUID = re.compile(r"NVSwitch management port GUID: (0x[0-9a-f]{8,16})", re.ASCII)
_OPENSM = re.compile(r"OpenSM (\d{4}\.\d{1,2}\.\d{1,4})", re.ASCII)
_STATE_WORDS = ("completed", "in progress", "not started", "not supported")
# Parts without which it does not start, by what it says.
_MISSING = (
    ("ib_umad", ('ib_umad" has not been loaded', "is ib_umad module loaded", "ib_umad module is not loaded")),
    ("nvlsm", ('nvlsm" does not exist', "nvlsm does not exist", "nvlsm: no such file")),
    ("nvswitch", ("nv_warn_nothing_to_do", "nothing to do", "no nvswitch", "nvswitch devices were not found")),
)
_STARTED = (
    "successfully configured all the available",
    'started "nvidia fabric manager"',
    "started nvidia fabric manager service",
    "started nvidia-fabricmanager.service",
    "active: active (running)",
)
_FAILED = (
    "control process exited with error code",
    "control process exited, code=exited, status=1",
    "main process exited, code=exited, status=1",
    "failed with result",
    "failed to start nvidia fabric manager",
    "failed to start nvidia-fabricmanager",
    "active: failed",
    "failed! exit code",
)


@dataclass(frozen=True)
class SwitchError:
    """An error of an NVSwitch, as Fabric Manager saw it; ``code`` is the SXid of the kernel log."""

    address: Word
    code: int
    is_fatal: bool
    physical_id: int
    port: Number
    count: int
    last: str


@dataclass(frozen=True)
class FmLog:
    """``missing``: what it did not start for (ib_umad, nvlsm, nvswitch).  ``bridges`` are ConnectX functions that lead
    to NVSwitches of NVLink 5 boards, ``management_guid`` the port that was chosen, ``nvlsm`` the version of the subnet
    manager that started.  ``errors`` are records above a warning.  ``has_started``: None when neither is said.
    ``is_incompatible``: it is of another version than the driver, and does not say which."""

    mismatch: Optional[Tuple[str, str]]
    missing: Tuple[str, ...]
    switch_errors: Tuple[SwitchError, ...]
    bridges: Tuple[str, ...]
    errors: Tuple[str, ...]
    warnings: int
    has_started: Optional[bool]
    generation: Word
    management_guid: Word
    nvlsm: Word
    is_incompatible: bool = False


@dataclass(frozen=True)
class FabricState:
    """Of one GPU.  ``state`` is Completed, In Progress, Not Started or Not Supported; ``status`` counts only when it
    is completed; a cluster UUID of zeros is normal without NVLink between machines."""

    gpu: Word
    state: Word
    status: Word
    clique: Word
    cluster_uuid: Word
    health: Mapping[str, Word]


def parse_fm_log(text: Text) -> FmLog:
    """/var/log/fabricmanager.log, or the journal of the unit (with nvlsm's and its start script's lines in it)."""
    switch_errors: Dict[Tuple[str, str], SwitchError] = {}
    missing: Dict[str, None] = {}
    bridges: Dict[str, None] = {}
    errors: List[str] = []
    mismatch: Optional[Tuple[str, str]] = None
    has_started: Optional[bool] = None
    generation: Word = Unknown("not there: the log does not say which kind of board this is")
    guid: Word = Unknown("not there: the log names no management port")
    nvlsm: Word = Unknown("not there: the log has no line of nvlsm")
    warnings = 0
    for line in clean(text).split("\n") if isinstance(text, str) else []:
        line = line[:2000]
        low = line.lower()
        record = _RECORD.search(line)
        complaint = _COMPLAINT.match(line)
        if record and record.group(2) in ("ERROR", "CRITICAL", "FATAL", "ALERT", "EMERGENCY"):
            errors.append(record.group(3).strip())
        elif complaint:
            errors.append((complaint.group(1) or complaint.group(2)).strip())
        warnings += bool(record and record.group(2).startswith("WARN"))
        versions, sxid, bridge = _MISMATCH.search(line), _SXID.search(line), _BRIDGE.search(line)
        if versions:
            mismatch = (versions.group(1), versions.group(2))
        if sxid:
            _add(switch_errors, sxid, record.group(1) if record else line[:15])
        if bridge:
            bridges[bridge.group(1)] = None
        port, subnet_manager = _GUID.search(line), _OPENSM.search(line)
        guid = port.group(1) if port else guid
        nvlsm = subnet_manager.group(1) if subnet_manager else nvlsm
        missing.update((part, None) for part, words in _MISSING if any(said in low for said in words))
        if any(said in low for said in _STARTED):
            has_started = True
        elif any(said in low for said in _FAILED):
            has_started = False
        if "detected pre-nvl5 system" in low or "detected nvl5+ system" in low:
            generation = "NVLink 5" if "nvl5+" in low else "before NVLink 5"
    return FmLog(
        mismatch,
        tuple(missing),
        tuple(switch_errors.values()),
        tuple(bridges),
        tuple(dict.fromkeys(errors)),
        warnings,
        has_started,
        generation,
        guid,
        nvlsm,
        any("version is incompatible with" in error for error in errors),
    )


def parse_fm_config(text: Text) -> Dict[str, str]:
    """``fabricmanager.cfg``: NAME=value lines, the last of a name counts."""
    found: Dict[str, str] = {}
    for line in lines(text):
        name, equals, value = line.split("#")[0].partition("=")
        if equals and re.fullmatch(r"[A-Z][A-Z0-9_]{1,60}", name.strip()):
            found[name.strip()] = value.strip()
    return found


def parse_fm_version(text: Text) -> Word:
    """``nv-fabricmanager --version``."""
    found = _VERSION.search(text[:2000]) if isinstance(text, str) else None
    return found.group(1) if found else Unknown("not there: no version of Fabric Manager")


def parse_fabric_states(text: Text) -> Union[Tuple[FabricState, ...], Unknown]:
    """The fabric's state of each GPU: CSV of ``--query-gpu=...,fabric.state,fabric.status``, with its header or, of
    two columns, without; the box of a monitor; or the Fabric sections of ``nvidia-smi -q``."""
    if not isinstance(text, str):
        return text if isinstance(text, Unknown) else Unknown("not there")
    rows = [line[:1000] for line in clean(text).split("\n") if line.strip()]
    if not rows:
        return Unknown("not there: the tool printed nothing")
    found = _from_boxes(rows) or _from_sections(rows) or _from_csv(rows)
    if found:
        return tuple(found)
    said = rows[0].strip()[:200]
    return Unknown("%s: %s" % ("error" if is_complaint(said) else "not understood", said))


def _add(known: Dict[Tuple[str, str], SwitchError], found: re.Match[str], time: str) -> None:
    severity, code, _node, where, physical, port = found.groups()
    key = (where + "/" + (port or ""), code)
    count = known[key].count + 1 if key in known else 1
    number: Number = int(port) if port else Unknown("not there: no port is named")
    known[key] = SwitchError(address(where), int(code), severity == "fatal", int(physical), number, count, time)


def _name(label: str) -> str:
    """``fabric.cliqueId``, ``Clique ID`` and ``CliqueId`` as one name."""
    bare = re.sub(r"\s{0,3}\[.{0,20}\]", "", label).strip().lower()
    bare = bare[len("fabric.") :] if bare.startswith("fabric.") else bare
    plain = re.sub(r"[^a-z0-9]", "", bare)
    return plain[len("health") :] if plain.startswith("health") and plain != "health" else plain


def _state(said: Mapping[str, str]) -> FabricState:
    """``said`` by the names of :func:`_name`."""
    health = {name: word(value) for name, value in said.items() if name not in _PLAIN and name}
    gpu = next((said[name] for name in ("gpuuuid", "uuid", "pcibusid", "index", "gpu") if name in said), "")
    return FabricState(
        word(gpu),
        _state_word(said.get("state", "")),
        word(said.get("status", "")),
        word(said.get("cliqueid", "")),
        word(said.get("clusteruuid", "")),
        health,
    )


_OF_FABRIC = {"state", "status", "cliqueid", "clusteruuid", "health", "summary", "bandwidth"}
_PLAIN = (
    "gpuuuid", "uuid", "pcibusid", "index", "gpu", "name", "state", "status", "cliqueid", "clusteruuid", "gpuname",
    "pcibus", "serial", "timestamp", "health", "fabric", "gpufabricguid",
)  # fmt: skip


def _state_word(said: str) -> Word:
    """``Not Supported`` is a state here, not a silence."""
    bare = said.strip().strip("[]").strip()
    return bare if bare.lower() in _STATE_WORDS else word(said)


def _from_boxes(rows: List[str]) -> List[FabricState]:
    found: List[FabricState] = []
    said: Dict[str, str] = {}
    for row in [*rows, "+--"]:
        cells = [cell.strip() for cell in row.strip().strip("|").split("|")]
        if row.lstrip().startswith("|") and len(cells) == 2:
            said.setdefault(_name(cells[0]), cells[1])
        elif row.lstrip().startswith("+") and "state" in said:
            found.append(_state(said))
            said = {}
    return found


def _from_sections(rows: List[str]) -> List[FabricState]:
    """``GPU 00000000:19:00.0`` and, below it, ``Fabric`` with rows that stand further to the right."""
    found: List[FabricState] = []
    gpu = ""
    said: Optional[Dict[str, str]] = None
    depth = 0
    for row in [*rows, "end"]:
        indent = len(row) - len(row.lstrip())
        label, colon, value = row.partition(" :")
        # In a text that lost its indentation the labels tell where it ends.
        if said is not None and indent <= depth and not (colon and _name(label) in _OF_FABRIC - set(said)):
            if "state" in said:
                found.append(_state({**said, "gpu": gpu}))
            said = None
        if row.strip() == "Fabric":
            said, depth = {}, indent
        elif said is not None and colon:
            said.setdefault(_name(label), value.strip())
        elif re.match(r"\s*GPU [0-9A-Fa-f:.]{8,20}\s*\Z", row):
            gpu = row.strip()[4:]
    return found


def _from_csv(rows: List[str]) -> List[FabricState]:
    # No value of these columns has a comma in it.
    table = [[cell.strip().strip('"') for cell in row.split(",")] for row in rows]
    header = next((place for place, row in enumerate(table) if "state" in map(_name, row)), None)
    if header is not None:
        labels = table[header]
        names = [_name(cell) if _name(cell) in _PLAIN or cell.startswith("fabric.") else "" for cell in labels]
        place = names.index("state")
        below = [row for row in table[header + 1 :] if len(row) == len(names) and _can_be_state(row, place)]
        return [_state(dict(zip(names, row))) for row in below]
    # csv,noheader: the state is the word that can be one, in the same place of every row, and what follows the status.
    rows_of = [row for row in table if len(row) <= 12]
    first = next((row for row in rows_of if any(_is_state(cell) for cell in row)), None)
    if first is None:
        return []
    place = next(number for number, cell in enumerate(first) if _is_state(cell))
    fitting = [row for row in rows_of if len(row) == len(first) and _can_be_state(row, place)]
    return [_state(dict(zip(("gpu", "state", "status"), (row[0] if place else "", *row[place:])))) for row in fitting]


def _can_be_state(row: List[str], place: int) -> bool:
    """A word alone may be that of another line: a prompt, the command."""
    return len(row) > 1 or _is_state(row[place]) or isinstance(word(row[place]), Unknown)


def _is_state(cell: str) -> bool:
    return cell.strip("[]").lower() in _STATE_WORDS
