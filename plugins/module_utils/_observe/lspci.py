# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What lspci(8) prints with any of -v, -n, -D and -x, as the same values that sysfs gives.

For machines of which only this text is there.  Where it holds a hexadecimal dump, that is decoded as well.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Dict, Iterator, List, Mapping, Optional, Pattern, Sequence, Set, Tuple, Union

from .._engine.units import parse_size
from .._engine.values import Text, Unknown
from .cpu import Number
from .pasted import plain_lines
from .pci_attributes import Bar, ErrorCounts
from .pci_config import decode
from .pci_registers import NO_LINK, PORTS, Acs, Aer, Config, Express, LinkEnd, Rate, ResizableBar, width_of
from .pci_tree import Function, Way

_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
# With -vmm the address has a label, and what it is follows below.
_HEAD = re.compile(
    r"(?P<indent>\s{0,40})(?P<label>Slot:\s{1,8})?(?:(?P<domain>[0-9a-f]{4,8}):)?(?P<place>[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])"
    r"(?(label)\s*$| (?P<what>.*))"
)
_SIGN = re.compile(
    r"\s{0,40}(?:Slot:\s{1,8})?(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7](?:\s|$)|\s{0,40}(?:LnkCap|LnkSta|ACSCtl):"
)
_QUOTED = re.compile(r'"([^"]{0,200})"')
_CODE = re.compile(r"(?:^|.*\[)([0-9a-f]{4})\]?$")
_HEX = re.compile(r"([0-9a-f]{2,4}):((?: [0-9a-f]{2}){1,16})\s*")
_KEY = re.compile(r"([A-Za-z][A-Za-z0-9_ ]{0,30}):\s*(.*)")
_LABEL = re.compile(r"[A-Z][A-Za-z0-9_ ]{0,30}:(?:\s|$)")
_CAPABILITY = re.compile(r"Capabilities: \[([0-9a-f]{2,4})(?: v\d+)?\] (.*)")
_REVISION = re.compile(r"\s{0,40}\((?:rev|prog-if) (?:[^()]|\([^()]*\))*\)\s{0,40}$")
_ID_PAIR = re.compile(r"(?:\[|Device |^)([0-9a-f]{4}):([0-9a-f]{4})\]?$")
_DEVICE_ID = re.compile(r".*\bDevice ([0-9a-f]{4})")
_CLASS_CODE = re.compile(r"(?:(.{0,200}?)\s{0,40}\[|Class )?([0-9a-f]{4})\]?")
_SPEED = re.compile(r"Speed (?:([0-9.]{1,5})GT/s|(\w+))(?: \((\w+)\))?", re.ASCII)
_WIDTH = re.compile(r"Width x(\d{1,3})(?: \((\w+)\))?", re.ASCII)
_PAYLOAD = re.compile(r"MaxPayload (\d{1,5}) bytes(?:, MaxReadReq (\d{1,5}) bytes)?", re.ASCII)
_REGION = re.compile(r"Region (\d): (Memory|I/O ports) at (\S+)(.*)")
_SIZE = re.compile(r"\[size=(\w+)\]")
_REBAR = re.compile(r"BAR (\d): current size: (\w+), supported: (.*)")
_BUSES = re.compile(r"primary=([0-9a-f]{2}), secondary=([0-9a-f]{2}), subordinate=([0-9a-f]{2})")
_FLAG = re.compile(r"([A-Za-z][A-Za-z0-9/]*)([+-])")
# Rows that begin an excerpt without addresses.
_FLAGS_NODE = re.compile(r"\bNUMA node (\d{1,5})\b", re.ASCII)
_FLAGS_GROUP = re.compile(r"\bIOMMU group (\d{1,5})\b", re.ASCII)
_EXCERPT_KEYS = ("LnkCap", "LnkSta", "DevCap", "DevCtl", "SltCap", "ACSCap", "ACSCtl", "UESta", "CESta")
_FLAGS_KEYS = ("ACSCap", "ACSCtl", "UESta", "CESta")
# The narrowest terminal that cuts within words.
_TERMINAL = 80
# Longer than the flags of any register.
_LONGEST_FLAGS = 2000
# No machine has as many functions, or as many bridges behind each other.
_MOST_FUNCTIONS = 8192
_MOST_BRIDGES = 32
_DENIED = "<access denied>"
_NO_COUNTS = Unknown("not applicable: lspci shows no counters")
# How lspci calls the ports, with the longer names first.
_PORT_WORDS = (
    ("Root Complex Integrated Endpoint", PORTS[0x9]),
    ("Root Complex Event Collector", PORTS[0xA]),
    ("PCI/PCI-X to PCI-Express Bridge", PORTS[0x8]),
    ("to PCI/PCI-X Bridge", PORTS[0x7]),
    ("Legacy Endpoint", PORTS[0x1]),
    ("Root Port", PORTS[0x4]),
    ("Upstream Port", PORTS[0x5]),
    ("Downstream Port", PORTS[0x6]),
    ("Endpoint", PORTS[0x0]),
)
# Class and vendor names of pci.ids that matter here; another name has no code unless the text gives it.
_CLASSES: Mapping[str, str] = {
    "SCSI storage controller": "0100", "IDE interface": "0101", "RAID bus controller": "0104",
    "SATA controller": "0106", "Serial Attached SCSI controller": "0107", "Non-Volatile memory controller": "0108",
    "Mass storage controller": "0180", "Ethernet controller": "0200", "Infiniband controller": "0207",
    "Fabric controller": "0208", "Network controller": "0280", "VGA compatible controller": "0300",
    "3D controller": "0302", "Display controller": "0380", "Host bridge": "0600", "ISA bridge": "0601",
    "PCI bridge": "0604", "Bridge": "0680", "System peripheral": "0880", "Processing accelerators": "1200",
}  # fmt: skip
_VENDORS: Mapping[str, str] = {
    "NVIDIA Corporation": "10de", "nVidia Corporation": "10de", "Mellanox Technologies": "15b3",
    "Intel Corporation": "8086", "Advanced Micro Devices, Inc. [AMD/ATI]": "1002",
    "Advanced Micro Devices, Inc. [AMD]": "1022", "Broadcom / LSI": "1000", "LSI Logic / Symbios Logic": "1000",
    "Broadcom Inc. and subsidiaries": "14e4", "PLX Technology, Inc.": "10b5", "Samsung Electronics Co Ltd": "144d",
    "ASPEED Technology, Inc.": "1a03", "Dell": "1028", "Lenovo": "17aa", "Super Micro Computer Inc": "15d9",
    "Hewlett Packard Enterprise": "1590", "KIOXIA Corporation": "1e0f", "Micron Technology Inc": "1344",
    "Solidigm": "025e",
}  # fmt: skip


@dataclass(frozen=True)
class Listed:
    """A function as it is listed.  Its address is empty in an excerpt that shows none.

    ``speed_word`` and ``width_word`` are lspci's own verdict: ok, downgraded, overdriven, strange, or empty.
    """

    function: Function
    class_name: str
    subsystem_name: str
    modules: Tuple[str, ...]
    iommu_group: Optional[int]
    speed_word: str
    width_word: str
    buses: Optional[Tuple[int, int]]


@dataclass
class _Draft:
    """What is gathered of one function, line by line."""

    address: str
    head: str = ""
    said: Dict[str, str] = field(default_factory=dict)
    flags: Dict[str, str] = field(default_factory=dict)
    capabilities: List[str] = field(default_factory=list)
    regions: List[Tuple[int, str, str, str]] = field(default_factory=list)
    rebars: List[ResizableBar] = field(default_factory=list)
    payloads: List[int] = field(default_factory=list)
    read_request: Optional[int] = None
    relaxed: bool = False
    space: bytearray = field(default_factory=bytearray)
    is_dead: bool = False
    is_denied: bool = False


def parse_lspci(text: Text) -> Tuple[Listed, ...]:
    """Every function of the text, in its order; never fails."""
    return tuple(_listed(draft) for draft in islice(_drafts(text), _MOST_FUNCTIONS))


def ways(listed: Sequence[Listed]) -> Dict[str, Way]:
    """The way of each function to its root port, by the bus numbers of the bridges that are listed."""
    bridges = {(_domain(one), one.buses[0]): one.function for one in listed if one.buses and one.function.address}
    return {one.function.address: _way(one.function, bridges) for one in listed if one.function.address}


def _way(device: Function, bridges: Mapping[Tuple[str, int], Function]) -> Way:
    chain = [device]
    seen: Set[str] = {device.address}
    while len(chain) <= _MOST_BRIDGES:
        domain, bus = chain[-1].address.split(":")[:2]
        above = bridges.get((domain, int(bus, 16)))
        if above is None or above.address in seen:
            break
        seen.add(above.address)
        chain.append(above)
    is_top = chain[-1].port in (PORTS[0x4], PORTS[0x9], PORTS[0xA]) or int(bus, 16) == 0
    return Way(tuple(chain), "pci%s:%s" % (domain, bus) if is_top else "", is_top)


def _domain(one: Listed) -> str:
    return one.function.address.split(":")[0]


def _drafts(text: Text) -> Iterator[_Draft]:
    draft: Optional[_Draft] = None
    context, key = "", ""
    indent: Optional[str] = None
    # Of the line before this one, while that is a first line.
    width = 0
    for raw in plain_lines(_ANSI.sub("", text), _SIGN) if isinstance(text, str) else ():
        line = raw.rstrip()
        head = _HEAD.match(line)
        # In a text that is shifted to the right all of them are.
        if head and head.group("indent") == (head.group("indent") if indent is None else indent):
            indent = head.group("indent")
            if draft is not None:
                yield draft
            address = "%s:%s" % (head.group("domain") or "0000", head.group("place"))
            draft, context, key = _Draft(address, head.group("what") or ""), "", ""
            # The programming interface is shown with -v only.
            draft.is_dead = "(rev ff)" in line and ("(prog-if" not in line or "(prog-if ff)" in line)
            width = len(raw) if line == raw else 1
            continue
        if draft is not None and width and _is_rest(draft.head, width, line):
            # Terminals cut at their width, mails between words.
            draft.head = draft.head[:_LONGEST_FLAGS]
            draft.head += line if width >= _TERMINAL else " " + line.strip()
            width = len(raw) if line == raw else 1
            continue
        width = 0
        said = _KEY.match(line.strip())
        if draft is None or (not draft.address and said and said.group(1) in draft.said):
            # An excerpt without addresses: a row that comes again belongs to the next function.
            if said is None or said.group(1) not in _EXCERPT_KEYS:
                continue
            if draft is not None:
                yield draft
            draft, context, key = _Draft(""), "", ""
        context, key = _take(draft, line, context, key)
    if draft is not None:
        yield draft


def _take(draft: _Draft, line: str, context: str, key: str) -> Tuple[str, str]:
    """One line into the draft; gives the capability that we are in and the row that a next line may go on."""
    words = line.strip()
    dump = _HEX.fullmatch(words)
    if dump:
        if int(dump.group(1), 16) == len(draft.space) and len(draft.space) < 4096:
            draft.space += bytes.fromhex(dump.group(2))
        return context, ""
    capability = _CAPABILITY.match(words)
    if capability:
        draft.capabilities.append(capability.group(2))
        words = capability.group(2)
        if not words.startswith("Subsystem:"):
            return words, ""
    draft.is_denied = draft.is_denied or _DENIED in words
    draft.is_dead = draft.is_dead or words.startswith("!!! Unknown header type 7f")
    region, rebar = _REGION.match(words.replace("[virtual] ", "")), _REBAR.match(words)
    if region and not context:
        draft.regions.append((int(region.group(1)), region.group(2), region.group(3), region.group(4)))
    if rebar and context.startswith(("Physical Resizable", "Resizable")):
        sizes = [_bytes(word) for word in [rebar.group(2), *rebar.group(3).split()]]
        draft.rebars.append(ResizableBar(int(rebar.group(1)), sizes[0] or 0, tuple(filter(None, sizes[1:]))))
    payload = _PAYLOAD.search(words)
    if payload:
        draft.payloads.append(int(payload.group(1)))
        draft.read_request = int(payload.group(2)) if payload.group(2) else draft.read_request
    draft.relaxed = draft.relaxed or words.startswith("RlxdOrd+")
    said = _KEY.match(words)
    if said:
        # Before pciutils 3.1 the mask of CESta has the same label.
        key = "" if said.group(1) in _FLAGS_KEYS and said.group(1) in draft.said else said.group(1)
        draft.said.setdefault(said.group(1), said.group(2))
    if key in _FLAGS_KEYS:
        row = said.group(2) if said else words
        before = draft.flags.get(key, "")
        # A row without a sign at its end was cut by the terminal.
        draft.flags[key] = ((before if before[-1:].isalnum() else before + " ") + row)[:_LONGEST_FLAGS]
    return context, key


def _listed(draft: _Draft) -> Listed:
    said = draft.said
    # Only -vmm writes these; below another list the same words are another tool's.
    labels: Mapping[str, str] = {} if draft.head else said
    class_name, class_code, vendor, device, name = _names(
        _plain_head(draft.head) or _with_labels(labels, labels.get("Class", ""))
    )
    subsystem = said.get("Subsystem") or _with_labels(labels, "", "S")[2:]
    sub_vendor, sub_device = _names(": " + subsystem)[2:4]
    flags = said.get("Flags", "")
    function = Function(
        draft.address,
        vendor,
        device,
        class_code,
        "%s:%s" % (sub_vendor, sub_device) if sub_vendor and sub_device else "",
        name,
        said.get("Kernel driver in use") or labels.get("Driver") or None,
        said.get("Physical Slot") or labels.get("PhySlot") or None,
        _number(said.get("NUMA node") or labels.get("NUMANode") or _first(_FLAGS_NODE, flags)),
        _port(draft),
        _link(draft),
        _acs(draft),
        draft.payloads[0] if draft.payloads and "DevCap" in said else _unseen(draft),
        draft.payloads[-1] if draft.read_request is not None else _unseen(draft),
        draft.read_request if draft.read_request is not None else _unseen(draft),
        _aer(draft),
        ErrorCounts(_NO_COUNTS, _NO_COUNTS, _NO_COUNTS),
        tuple(_bar(region) for region in draft.regions),
        _unseen(draft) if draft.is_denied else tuple(draft.rebars),
        _total_vfs(draft),
        draft.is_dead,
    )
    space = decode(bytes(draft.space))
    speed, width = _SPEED.search(said.get("LnkSta", "")), _WIDTH.search(said.get("LnkSta", ""))
    group = _number(said.get("IOMMU group") or labels.get("IOMMUGroup") or _first(_FLAGS_GROUP, flags))
    return Listed(
        _filled(function, space) if isinstance(space, Config) else function,
        class_name,
        subsystem,
        tuple(word.strip() for word in said.get("Kernel modules", labels.get("Module", "")).split(",") if word.strip()),
        None if isinstance(group, Unknown) else group,
        (speed.group(3) or "") if speed else "",
        (width.group(2) or "") if width else "",
        _buses(draft, space),
    )


def _is_rest(head: str, width: int, line: str) -> bool:
    """The rest of a first line that was wrapped within its brackets, or before them by the terminal."""
    words = line.strip()
    if not line[:2].strip() or _LABEL.match(words) or _HEX.fullmatch(words):
        return False
    is_open = any(head.count(one) > head.count(other) for one, other in ("()", "[]"))
    return is_open or (width >= _TERMINAL and not head.endswith((")", "]")) and words.endswith((")", "]")))


def _plain_head(what: str) -> str:
    """The first line as it is without -mm, which puts its parts in quotes."""
    parts = _QUOTED.findall(what) if what.startswith('"') else []
    return _in_words(*parts[:3]) if len(parts) > 2 else what


def _in_words(kind: str, vendor: str, device: str) -> str:
    """``3D controller [0302]: NVIDIA Corporation GH100 [10de:2330]`` from the three parts of -mm and -vmm."""
    codes = [_CODE.match(vendor), _CODE.match(device)]
    if not all(codes):
        return "%s: %s %s" % (kind, vendor, device)
    names = [part[: part.rfind("[")].strip() if part.endswith("]") else "" for part in (vendor, device)]
    ids = ":".join(code.group(1) for code in codes if code)
    return "%s: %s" % (kind, " ".join([*filter(None, names), "[%s]" % ids]))


def _with_labels(said: Mapping[str, str], kind: str, beginning: str = "") -> str:
    """What -vmm tells in rows of their own."""
    vendor, device = said.get(beginning + "Vendor", ""), said.get(beginning + "Device", "")
    return _in_words(kind, vendor, device) if vendor and device else kind and kind + ": "


def _names(head: str) -> Tuple[str, str, str, str, str]:
    """Name and code of the class, ids of vendor and device, name of the function: what the first line tells."""
    before = None
    while before != head:
        before, head = head, _REVISION.sub("", head)
    kind, _colon, name = head.partition(": ")
    code = _CLASS_CODE.fullmatch(kind.strip())
    class_name = (code.group(1) or "") if code else kind.strip()
    class_code = code.group(2) if code else _CLASSES.get(class_name, "")
    ids = _ID_PAIR.search(name)
    if ids:
        return class_name, class_code, ids.group(1), ids.group(2), name[: ids.start()].strip()
    known = [word for word in _VENDORS if name.startswith(word)]
    device = _DEVICE_ID.fullmatch(name)
    return (
        class_name,
        class_code,
        _VENDORS[max(known, key=len)] if known else "",
        device.group(1) if device else "",
        name,
    )


def _filled(function: Function, space: Config) -> Function:
    """What the words do not tell, from the dump."""
    express = space.express if isinstance(space.express, Express) else None
    function = replace(
        function,
        vendor_id=space.vendor_id,
        device_id=space.device_id,
        class_code=space.class_code,
        subsystem=space.subsystem or function.subsystem,
        acs=space.acs if isinstance(function.acs, Unknown) else function.acs,
        aer=space.aer if isinstance(function.aer, Unknown) else function.aer,
    )
    if express is None or isinstance(function.port, str):
        return function
    return replace(
        function,
        port=express.port,
        link=express.link,
        max_payload_supported_bytes=express.max_payload_supported_bytes,
        max_payload_bytes=express.max_payload_bytes,
        max_read_request_bytes=express.max_read_request_bytes,
    )


def _buses(draft: _Draft, space: Union[Config, Unknown]) -> Optional[Tuple[int, int]]:
    """Of a bridge: the bus right behind it and the last one behind that."""
    found = _BUSES.search(draft.said.get("Bus", ""))
    if found:
        return int(found.group(2), 16), int(found.group(3), 16)
    is_bridge = isinstance(space, Config) and space.is_bridge
    return (draft.space[0x19], draft.space[0x1A]) if is_bridge else None


def _unseen(draft: _Draft) -> Unknown:
    return Unknown("access denied: lspci was not run by root" if draft.is_denied else "lspci shows no such row")


def _port(draft: _Draft) -> Union[str, Unknown]:
    express = next((name for name in draft.capabilities if name.startswith(("Express", "PCI/PCI-X to PCI-E"))), None)
    if express is not None:
        found = next((port for word, port in _PORT_WORDS if word in express), None)
        return found or Unknown("lspci says %r" % express[:60])
    if draft.capabilities and not draft.is_denied:
        return Unknown("not applicable: conventional PCI")
    return _unseen(draft)


def _link(draft: _Draft) -> LinkEnd:
    can, now = draft.said.get("LnkCap"), draft.said.get("LnkSta")
    unseen = _unseen(draft)
    if can is None and now is None and draft.capabilities and not draft.is_denied:
        is_express = any(name.startswith("Express") for name in draft.capabilities)
        unseen = Unknown("lspci was run without -vv" if is_express else "not applicable: no PCI Express link")
    width, speed = _width(now, unseen), _speed(now, unseen)
    max_width, max_speed = _width(can, _unshown(_WIDTH, now, unseen)), _speed(can, _unshown(_SPEED, now, unseen))
    return LinkEnd(width, NO_LINK if width is NO_LINK else speed, max_width, max_speed)


def _unshown(pattern: Pattern[str], now: Optional[str], unseen: Unknown) -> Unknown:
    """Where grep left LnkSta alone, its own word tells that there was more."""
    found = pattern.search(now or "")
    is_lowered = found is not None and found.group(found.re.groups) == "downgraded"
    return Unknown("not shown: more than now, for lspci says downgraded") if is_lowered else unseen


def _width(row: Optional[str], unseen: Unknown) -> Number:
    found = _WIDTH.search(row or "")
    return width_of(int(found.group(1))) if found else unseen


def _speed(row: Optional[str], unseen: Unknown) -> Rate:
    found = _SPEED.search(row or "")
    if not found:
        return unseen
    word = found.group(1) or ""
    is_figure = re.fullmatch(r"\d{1,3}(\.\d)?", word, re.ASCII)
    return float(word) if is_figure else Unknown("lspci says Speed %s" % (word or found.group(2)))


def _acs(draft: _Draft) -> Union[Acs, Unknown, None]:
    if "ACSCtl" in draft.flags:
        return Acs(_on(draft, "ACSCap"), _on(draft, "ACSCtl"))
    return _absent(draft, "Access Control Services")


def _aer(draft: _Draft) -> Union[Aer, Unknown, None]:
    if "UESta" in draft.flags or "CESta" in draft.flags:
        return Aer(_on(draft, "UESta"), _on(draft, "CESta"))
    return _absent(draft, "Advanced Error Reporting")


def _absent(draft: _Draft, capability: str) -> Union[Unknown, None]:
    """None only where the capabilities are listed and this one is not among them."""
    if draft.is_denied or not draft.capabilities:
        return _unseen(draft)
    is_listed = any(name.startswith(capability) for name in draft.capabilities)
    return Unknown("lspci was run without -vv") if is_listed else None


def _on(draft: _Draft, key: str) -> Tuple[str, ...]:
    return tuple(name for name, sign in _FLAG.findall(draft.flags.get(key, "")) if sign == "+")


def _total_vfs(draft: _Draft) -> Union[int, Unknown, None]:
    found = re.search(r"Total VFs: (\d{1,5})", draft.said.get("Initial VFs", ""), re.ASCII)
    return int(found.group(1)) if found else _absent(draft, "Single Root I/O")


def _bar(region: Tuple[int, str, str, str]) -> Bar:
    index, kind, place, rest = region
    size = _SIZE.search(rest)
    figure = _bytes(size.group(1)) if size else None
    return Bar(
        index,
        Unknown("lspci shows no size") if figure is None else figure,
        kind == "Memory",
        "64-bit" in rest,
        "prefetchable" in rest and "non-prefetchable" not in rest,
        re.fullmatch(r"[0-9a-f]{1,16}", place) is not None,
    )


def _bytes(word: str) -> Optional[int]:
    try:
        return parse_size(word)
    except ValueError:
        return None


def _first(pattern: Pattern[str], text: str) -> Optional[str]:
    found = pattern.search(text)
    return found.group(1) if found else None


def _number(word: Optional[str]) -> Number:
    found = re.fullmatch(r"\d{1,5}", (word or "").strip(), re.ASCII)
    return int(found.group()) if found else Unknown("lspci shows no such row" if word is None else word[:40])
