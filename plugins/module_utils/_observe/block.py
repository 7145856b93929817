# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Block devices as sysfs and the udev database show them: names, stable ids, queue, holders."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Dict, FrozenSet, List, Optional, Sequence, Tuple, Union

from .._engine.host import Host
from .._engine.values import Text, Unknown, lines
from .tool_text import clean, is_prompt

# "/sys/block/sda/queue/scheduler:", as grep puts it before what the file holds.
_SCHEDULER_PATH = re.compile(r"\s{0,40}/sys/\S{0,200}?block/([^/\s]{1,80})/queue/scheduler:\s*")
_SCHEDULER_FILE = re.compile(r"/sys/[^\s*]{0,200}?block/([^/\s*]{1,80})/queue/scheduler\b")

SECTOR_BYTES = 512  # the unit of /sys/block/*/size whatever the logical block size is (Documentation/ABI)


@dataclass(frozen=True)
class Scheduler:
    """The active I/O scheduler and those the kernel offers for the device now."""

    active: str
    offered: Tuple[str, ...]


@dataclass(frozen=True)
class Disk:
    """A whole disk.  ``ids`` are the names below /dev/disk/by-id; ``size_bytes`` None is unknown."""

    name: str
    device: str
    size_bytes: Optional[int]
    rotational: Optional[bool]
    hidden: bool
    model: str
    wwn: str
    serial: str
    serial_short: str
    ids: Tuple[str, ...]
    holders: Tuple[str, ...]
    partitions: Tuple[str, ...]
    multipath_member: bool

    def is_named(self, name: str) -> bool:
        """Whether a stable name (WWN, serial, by-id name or path) means this disk."""
        bare = name[len("/dev/disk/by-id/") :] if name.startswith("/dev/disk/by-id/") else name
        return bare != "" and (bare in self.ids or bare in (self.wwn, self.serial, self.serial_short))


def parse_scheduler(text: Text) -> Union[Scheduler, Unknown]:
    """``/sys/block/*/queue/scheduler``: ``mq-deadline [none]``, or one bare word without a choice."""
    if not isinstance(text, str):
        return Unknown("the device shows no scheduler" if text is None else text.reason)
    rows = [row for row in clean(text).splitlines() if row.strip() and not is_prompt(row)]
    words = _SCHEDULER_PATH.sub("", rows[0]).split() if len(rows) == 1 else text.split()
    names = tuple(word.strip("[]") for word in words)
    if not names or len(rows) > 1 or not all(re.match(r"^[a-z][a-z0-9_-]*$", name) for name in names):
        return Unknown("not a list of schedulers: %r" % text[:80])
    active = [word[1:-1] for word in words if word.startswith("[") and word.endswith("]")]
    if len(active) == 1:
        return Scheduler(active[0], names)
    if not active and len(names) == 1:
        return Scheduler(names[0], names)
    return Unknown("no single active scheduler in %r" % text[:80])


def parse_schedulers(text: Text) -> Dict[str, Union[Scheduler, Unknown]]:
    """The schedulers by device, where several files were printed at once: by grep, head or one command each."""
    found: Dict[str, Union[Scheduler, Unknown]] = {}
    device = ""
    for row in clean(text).splitlines() if isinstance(text, str) else []:
        path = _SCHEDULER_PATH.match(row)
        asked = _SCHEDULER_FILE.findall(row)
        if path:
            found[path.group(1)] = parse_scheduler(row[path.end() :])
        elif asked:
            device = asked[0] if len(asked) == 1 else ""
        elif device and row.strip():
            found[device], device = parse_scheduler(row), ""
    return found


def parse_udev_data(text: Text) -> Tuple[Dict[str, str], List[str]]:
    """A file of /run/udev/data: its properties (``E:``) and the names of its links (``S:``)."""
    properties: Dict[str, str] = {}
    links: List[str] = []
    for line in lines(text):
        if line.startswith("E:") and "=" in line:
            key, _equals, value = line[2:].partition("=")
            properties[key] = value
        elif line.startswith("S:"):
            links.append(line[2:])
    return properties, links


def disk_names(host: Host) -> Union[List[str], Unknown]:
    """The whole disks of the host, or Unknown when sysfs is not there to be seen."""
    if not host.exists("/sys/block"):
        return Unknown("/sys/block cannot be seen")
    return host.listdir("/sys/block")


def disk(host: Host, name: str) -> Disk:
    """One whole disk, from sysfs and the udev database, without any command."""
    base = "/sys/block/" + name
    number = _word(host.read(base + "/dev"))
    properties, links = parse_udev_data(host.read("/run/udev/data/b" + number))
    holders = tuple(host.listdir(base + "/holders"))
    return Disk(
        name=name,
        device=number,
        size_bytes=_scaled(host.read(base + "/size"), SECTOR_BYTES),
        rotational={"0": False, "1": True}.get(_word(host.read(base + "/queue/rotational"))),
        hidden=_word(host.read(base + "/hidden")) == "1",
        model=properties.get("ID_MODEL", "") or _word(host.read(base + "/device/model")),
        wwn=properties.get("ID_WWN", ""),
        serial=properties.get("ID_SERIAL", ""),
        serial_short=properties.get("ID_SERIAL_SHORT", ""),
        ids=tuple(sorted(link[len("disk/by-id/") :] for link in links if link.startswith("disk/by-id/"))),
        holders=holders,
        partitions=tuple(child for child in host.listdir(base) if _is_partition(name, child)),
        multipath_member=any(_is_multipath(host, holder) for holder in holders),
    )


def queue_values(host: Host, name: str, settings: Sequence[str]) -> Dict[str, Union[str, Scheduler, Unknown]]:
    """The queue attributes asked for; a scheduler with what the kernel offers."""
    values: Dict[str, Union[str, Scheduler, Unknown]] = {}
    for setting in settings:
        text = host.read("/sys/block/%s/queue/%s" % (name, setting))
        if setting == "scheduler":
            values[setting] = parse_scheduler(text)
        elif isinstance(text, str) and text.isascii() and text.strip().isdigit():
            values[setting] = text.strip()
        else:
            values[setting] = text if isinstance(text, Unknown) else Unknown("%s shows %r" % (setting, text))
    return values


def udev_rule_lines(host: Host, attributes: FrozenSet[str]) -> List[Tuple[str, int, str]]:
    """Lines of udev rules that set one of some queue attributes: file, line number, line.

    Of files with one name the one in /etc hides the others, then /run, then /usr/lib (udev(7)).
    """
    chosen: Dict[str, str] = {}
    for folder in ("/etc/udev/rules.d", "/run/udev/rules.d", "/usr/local/lib/udev/rules.d", "/usr/lib/udev/rules.d"):
        for name in host.listdir(folder):
            if name.endswith(".rules"):
                chosen.setdefault(name, folder + "/" + name)
    found: List[Tuple[str, int, str]] = []
    for _name, path in sorted(chosen.items()):
        text = host.read(path)
        # Most rule files do not speak of queues at all: look once before looking at lines.
        if isinstance(text, str) and any(mark in text for mark in ("queue/", "bdi/")):
            found += [(path, number, line) for number, line in rules_that_set(text, attributes)]
    return found


def rules_that_set(text: str, attributes: FrozenSet[str]) -> List[Tuple[int, str]]:
    """The rules of a file that set one of some queue attributes, themselves or by a program: line number, rule."""
    found: List[Tuple[int, str]] = []
    rule, first = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        # A comment ends no rule that goes on behind it (udev(7)).
        if line.lstrip().startswith("#"):
            continue
        rule, first = (rule + line.strip(), first) if rule else (line.strip(), number)
        if rule.endswith("\\"):
            rule = rule[:-1]
            continue
        if attributes.intersection(name for names in _SETS_QUEUE.findall(rule) for name in names if name):
            found.append((first, rule))
        rule = ""
    return found


# ATTR{…} with any sign but those of a comparison; bdi/read_ahead_kb is the same value as queue/read_ahead_kb; and
# a shell that writes into the file, as RUN and PROGRAM start one.
_SETS_QUEUE = re.compile(
    r'ATTR\{(?:queue|bdi)/([a-z_]+)\}\s{0,40}[:+]?=\s{0,40}e?"|(?:>\s{0,40}|\btee (?:-a )?)[^\s"\'|;&>]{0,400}/(?:queue|bdi)/([a-z_]+)'
)


def _word(text: Text) -> str:
    return text.strip() if isinstance(text, str) else ""


def _scaled(text: Text, unit: int) -> Optional[int]:
    word = _word(text)
    return int(word) * unit if re.fullmatch("[0-9]{1,18}", word) else None


def _is_partition(disk_name: str, child: str) -> bool:
    return re.match("^%sp?[0-9]+$" % re.escape(disk_name), child) is not None


def _is_multipath(host: Host, holder: str) -> bool:
    text = host.read("/sys/block/%s/dm/uuid" % holder)
    # What cannot be told is left alone, as the paths of a multipath device are.
    return isinstance(text, Unknown) or _word(text).startswith("mpath-")
