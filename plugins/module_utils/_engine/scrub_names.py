# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where a capture says a serial number, an asset tag or the name of a host: by label, column, property or file."""

from __future__ import annotations

import os
import re
from itertools import islice
from typing import Callable, Iterator, List, Set

# What firmware, drivers and tools write where they have no number: nobody's.
_NOBODYS = re.compile(
    r"0*|(?:0x)?0+|\[.*\]|<.*>|\(none\)|n/?a|none|null|nil|true|false|un(?:known|defined|specified).*|"
    r"no[t]?[ -](?:\w+).*|to be filled.*|default(?: string)?|(?:system|chassis|base ?board|board)? ?serial ?(?:number|no\.?)|"
    r"asset[- _]?tag|.*_assettag|err!.*|f{8,}|x{2,}|[-.\s]*|0?123456789\w?|1234567890|redacted|empty|insufficient .*|"
    r"serial-[0-9a-f]{10}",
    re.IGNORECASE,
)
# Told by their form wherever they stand (scrub.py): UUIDs, MACs and GUIDs with separators, world wide names.
_BY_FORM = re.compile(
    r"(?:[A-Za-z]{3}-)?[0-9A-Fa-f]{2,8}(?:[:-][0-9A-Fa-f]{2,12}){3,19}|0x[1-356][0-9A-Fa-f]{15,}|(?:eui|naa|nvme|uuid)\..*"
)

_WORD = (
    r"(?:(?<!ID_)(?<!IDENT_)serial(?:[ _-]?(?:number|num|nr|no)\.?)?|asset[ _-]?tag|service[ _-]?tag|(?<![A-Za-z])S/?N)"
)
_LABELLED = re.compile(
    r"(?P<label>%s[\"'}\]]{0,2}[ \t]{0,60}(?:[:=]{1,2}|>)[ \t]{0,60}[\"']?)(?P<value>[^\s\"'<>,}][^\"'<>,}\n\r]{0,79})"
    % _WORD,
    re.IGNORECASE,
)
_PROPERTIES = re.compile(
    r"^E:(?:ID_SERIAL|ID_SERIAL_SHORT|ID_SCSI_SERIAL|SCSI_IDENT_SERIAL|ID_WWN|ID_WWN_WITH_EXTENSION|ID_UUID|"
    r"ID_FS_UUID|ID_FS_UUID_ENC|ID_FS_UUID_SUB|ID_PART_TABLE_UUID|ID_PART_ENTRY_UUID)=(\S{4,120})$",
    re.MULTILINE,
)
_SERIAL_FILES = (
    "serial", "serial_number", "product_serial", "chassis_serial", "board_serial", "chassis_asset_tag",
    "board_asset_tag", "machine-id",
)  # fmt: skip
# A table whose header has a column of serial numbers (nvme list, lsblk).
_MOST_TABLES = 8
_HEADER = re.compile(r"^(?:Node|NAME|Device)\b.*?\s(SN|SERIAL)(?:\s.*)?$", re.MULTILINE)

_JOURNAL = re.compile(
    r"^(?P<time>(?:\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S{0,20}|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d{1,9})?) )"
    r"(?P<host>[A-Za-z0-9][\w.-]{0,252})(?P<rest> [\w./@-]{1,80}(?:\[\d{1,10}\])?:)",
    re.MULTILINE | re.ASCII,
)
_HOST_SPEECH = re.compile(
    r"(?P<before>ostname (?:set )?to <|local to host |\"(?:HostName|FQDN)\"\s{0,9}:\s{0,9}\"|"
    r"Redfish Service Hostname: |^ {0,40}Name : (?=[^\s:]{1,250}:)|^E:MD_NAME=|\bARRAY\s[^\n]{0,200}?\bname=)(?P<host>[A-Za-z0-9][\w.-]{0,252})",
    re.MULTILINE | re.ASCII,
)
# Network file systems: "server:/export" and "//server/share" in tables of mounts, addresses with a scheme, domains of CIFS.
_SERVERS = re.compile(
    r"(?P<before>^|[\s,=])(?:(?P<host>[A-Za-z0-9][\w.-]{0,252})(?=:/(?!/))|//(?P<share>[A-Za-z0-9][\w.-]{0,252})(?=/)|"
    r"[A-Za-z][A-Za-z0-9+-]{0,20}://(?:[^\s/@]{0,80}@)?(?P<url>[A-Za-z0-9][\w.-]{0,252})|"
    r"(?:domain|dom|workgroup)=(?P<domain>[A-Za-z0-9][\w.-]{0,252}))",
    re.MULTILINE | re.ASCII,
)
# Lustre names its servers with their network, also in the kernel's log.
_LUSTRE = re.compile(
    r"(?P<before>)(?<![\w.-])(?P<host>[A-Za-z0-9][\w.-]{0,252})(?=@(?:tcp|o2ib|kfi|gni)\d{0,3}\b)", re.ASCII
)
_NAMED_BY = ("host", "share", "url", "domain")
_MOUNT_TABLES = ("fstab", "mountinfo", "mounts", "mtab", "cmdline")
# Everybody's, or an address.
_NO_NAME = re.compile(r"localhost.*|systemd-1|[\d.]+", re.ASCII)
# Names that the kernel gives to its own things, and words that stand for others as well.
_COMMON_NAME = re.compile(
    r"(?:node|cpu|gpu|nvme|eth|ib|net|md|sd|dm|card|port|slot|bus|pci|root|numa|nvidia|mlx\d?|host|disk|ram|tty|lo|bond|"
    r"br|vlan|memory|policy|state|index|queue|hwmon|loop)-?(?:0|[1-9]\d{0,2})?|localhost.*|systemd-1|[^\d.-]{0,63}|\d[\d.-]*|.{0,3}",
    re.ASCII,
)


def is_nobodys(word: str) -> bool:
    return _NOBODYS.fullmatch(word.strip()) is not None


def relabelled(text: str, stand_in: Callable[[str], str]) -> str:
    """A text whose labelled serial numbers and tags are others."""

    def other(match: re.Match[str]) -> str:
        value = _value(match)
        if is_nobodys(value) or _BY_FORM.fullmatch(value):
            return match.group()
        return match.group("label") + stand_in(value) + match.group("value")[len(value) :]

    return _LABELLED.sub(other, text)


def _value(match: re.Match[str]) -> str:
    """Of a row that is a label and its value all of it; within a line of a log the first word."""
    value = match.group("value").rstrip()
    before = match.string[max(0, match.start() - 200) : match.start()].rpartition("\n")[2]
    is_quoted = match.group("label").endswith(('"', "'", ">"))
    return value if is_quoted or not re.search(r"[:\d]", before) else value.split()[0]


def renamed(text: str, path: str, stand_in: Callable[[str], str]) -> str:
    """A text whose host names are others, where their place tells that they are some."""

    def other(match: re.Match[str]) -> str:
        groups = match.groupdict()
        name = next((groups[key] for key in _NAMED_BY if groups.get(key)), "")
        made = name if _NO_NAME.fullmatch(name.lower()) else stand_in(name)
        return match.group().replace(name, made) if "time" not in groups else groups["time"] + made + groups["rest"]

    text = _LUSTRE.sub(other, _HOST_SPEECH.sub(other, _JOURNAL.sub(other, text)))
    return _SERVERS.sub(other, text) if _is_table_of_mounts(path) else text


def serials_in(path: str, text: str) -> Iterator[str]:
    """Serial numbers and tags that a text shows, of which there are no others: they are looked for everywhere."""
    found: List[str] = [_value(match) for match in _LABELLED.finditer(text)]
    if os.path.basename(path) in _SERIAL_FILES:
        found.append(text)
    if "/run/udev/data/" in path:
        found += _of_disk(_PROPERTIES.findall(text))
    found += [word for header in islice(_HEADER.finditer(text), _MOST_TABLES) for word in _column(text, header)]
    found += _of_csv(text)
    yield from (word.strip() for word in found if is_telling(word.strip()))


def is_telling(word: str) -> bool:
    """Whether a word can only mean this one thing: a short number or a name could be something else elsewhere."""
    if is_nobodys(word) or _BY_FORM.fullmatch(word) or not re.fullmatch(r"[\w.:+-]{5,120}", word, re.ASCII):
        return False
    return any(char.isdigit() for char in word) and (len(word) >= 8 or (len(word) >= 6 and not word.isdigit()))


def hosts_in(path: str, text: str) -> Set[str]:
    """Names of this host and of others that it speaks of."""
    found = {match.group("host") for pattern in (_JOURNAL, _HOST_SPEECH, _LUSTRE) for match in pattern.finditer(text)}
    if _is_table_of_mounts(path):
        found |= {match.group(key) for match in _SERVERS.finditer(text) for key in _NAMED_BY if match.group(key)}
    if path.endswith(("/etc/hostname", "/proc/sys/kernel/hostname")):
        found.add(text.strip())
    return {name for name in found if not _NO_NAME.fullmatch(name.lower())}


def is_host(name: str) -> bool:
    """Whether a name is only that: "node1" is a folder of the kernel as well."""
    return _COMMON_NAME.fullmatch(name.lower()) is None and not is_nobodys(name)


def _is_table_of_mounts(path: str) -> bool:
    return os.path.basename(path) in _MOUNT_TABLES or path.endswith((".mount", ".automount"))


def _of_disk(properties: List[str]) -> List[str]:
    """ID_SERIAL is often the model and the serial number: the model stays."""
    parts = set(properties)
    return [
        word
        for word in parts
        if not any(re.search(r"_%s(?:_\d{1,3})?$" % re.escape(other), word) for other in parts if other != word)
    ]


def _column(text: str, header: re.Match[str]) -> Iterator[str]:
    start = header.start(1) - header.start()
    for line in text[header.end() + 1 : header.end() + 20000].splitlines():
        if not line.strip():
            break
        word = line[start:].split(" ")[0] if line[start - 1 : start] in ("", " ") else ""
        if word and not set(word) <= set("-"):
            yield word


def _of_csv(text: str) -> Iterator[str]:
    """``nvidia-smi --query-gpu=…,serial,… --format=csv``."""
    head = text[:2000].split("\n", 1)[0].lower()
    if "," not in head or "serial" not in head:
        return
    names = [name.strip() for name in head.split(",")]
    places = [place for place, name in enumerate(names) if name in ("serial", "gpu_serial")]
    for line in text.splitlines()[1:200]:
        row = line.split(",")
        yield from (row[place] for place in places if place < len(row))
