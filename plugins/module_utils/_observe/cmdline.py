# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The kernel command line: the one in force, and the one that the boot loader will give."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Sequence, Tuple, Union

from .._engine.host import Host
from .._engine.values import Unknown
from . import confd

GRUB_DEFAULTS = "/etc/default/grub"
GRUB_FOLDER = "/etc/default/grub.d"
GRUB_CONFIGS = ("/boot/grub/grub.cfg", "/boot/grub2/grub.cfg")
GRUB_ENVS = ("/boot/grub2/grubenv", "/boot/grub/grubenv")
BLS_FOLDER = "/boot/loader/entries"
_UPDATE_GRUB = ("/usr/sbin/update-grub", "/sbin/update-grub")
_GRUBBY = ("/usr/sbin/grubby", "/sbin/grubby", "/usr/bin/grubby")

_WORD = re.compile(r'(?:[^\s"]|"[^"]*")+')
_ASSIGNMENT = re.compile(r"\s*(?:export\s+)?(GRUB_CMDLINE_LINUX(?:_DEFAULT)?)(\+?)=(.*)")
# A value goes over no more lines than these; where its quote does not end, the line is taken by itself.
_MOST_ROWS = 50
_SECTION = re.compile(r"### (BEGIN|END) /etc/grub\.d/(\S+) ###")


@dataclass(frozen=True)
class Entry:
    """What the boot loader starts: a kernel with its arguments."""

    kernel: str
    args: Tuple[str, ...]


@dataclass(frozen=True)
class Assignment:
    """A line of GRUB's defaults.  ``keeps`` is whether it carries on what the variable held before."""

    file: str
    number: int
    variable: str
    value: str
    keeps: bool


def parse_cmdline(text: str) -> Tuple[str, ...]:
    """The arguments of a command line; blanks inside double quotes do not split."""
    return tuple(_WORD.findall(text))


def parse_grub_defaults(file: str, text: str) -> List[Assignment]:
    """The assignments of a file of GRUB's defaults, which is a script of the shell."""
    found: List[Assignment] = []
    rows = text.splitlines()
    behind = 0
    for number, row in enumerate(rows, 1):
        match = _ASSIGNMENT.match(row) if number > behind else None
        if match:
            name, plus, start = match.groups()
            value, more = _shell_word([start, *rows[number : number + _MOST_ROWS]])
            behind = number + more
            keeps = bool(plus) or re.search(r"\$\{?%s\b" % name, value) is not None
            found.append(Assignment(file, number, name, value, keeps))
    return found


def _shell_word(rows: Sequence[str]) -> Tuple[str, int]:
    """The first word of some lines without its quotes, and how many further lines it goes over."""
    text = "\n".join(rows)
    word, end, quote = "", 0, ""
    while end < len(text):
        letter, pair = text[end], text[end : end + 2]
        if quote != "'" and letter == "\\" and len(pair) == 2:
            # Before the end of a line it joins the two; in double quotes it stays before most letters.
            word += "" if pair[1] == "\n" else pair[1] if not quote or pair[1] in '"\\$`' else pair
            end += 1
        elif letter in "\"'" and quote in ("", letter):
            quote = "" if quote else letter
        elif not quote and (letter.isspace() or letter == ";"):
            break
        else:
            word += " " if letter == "\n" else letter
        end += 1
    if quote:
        return rows[0].strip().strip("\"'"), 0
    return word, text[:end].count("\n")


def parse_grub_config(text: str) -> List[Entry]:
    """The kernels that GRUB's own script found, without the recovery entries."""
    has_sections = _SECTION.search(text) is not None
    inside = not has_sections
    found: List[Entry] = []
    for row in text.splitlines():
        mark = _SECTION.match(row)
        if mark:
            # Only what this system generated from its own defaults, not other systems or hand-made entries.
            inside = mark.group(1) == "BEGIN" and re.match(r"\d+_linux", mark.group(2)) is not None
        words = parse_cmdline(row)
        is_kernel = inside and len(words) > 1 and words[0] in ("linux", "linux16", "linuxefi")
        if is_kernel and "single" not in words and "recovery" not in words:
            found.append(Entry(words[1], words[2:]))
    return found


def parse_bls(text: str, variables: Mapping[str, str]) -> Union[Entry, None]:
    """One Boot Loader Specification entry; $kernelopts and the like come from grubenv."""
    kernel, args = "", ""
    for row in text.splitlines():
        key, value = [*row.strip().split(None, 1), "", ""][:2]
        if key == "linux":
            kernel = value.strip()
        elif key == "options":
            args += " " + value.strip()
    args = re.sub(r"\$\{?(\w+)\}?", lambda match: variables.get(match.group(1), ""), args)
    return Entry(kernel, parse_cmdline(args)) if kernel else None


def parse_grubenv(text: str) -> Dict[str, str]:
    pairs = (row.partition("=") for row in text.splitlines() if not row.startswith("#"))
    return {key: value for key, equals, value in pairs if equals}


def current(host: Host) -> Union[Tuple[str, ...], Unknown]:
    text = host.read("/proc/cmdline")
    if isinstance(text, str):
        return parse_cmdline(text)
    return text if isinstance(text, Unknown) else Unknown("/proc/cmdline was not seen")


def observe(host: Host) -> Dict[str, Any]:
    """The current arguments, the boot loader and its entries, and GRUB's defaults by line.

    ``loader`` is ``grub`` (Debian, Ubuntu), ``bls`` (EL) or None for one we do not know; ``tool`` is
    the command that changes its entries; ``loader_seen`` is whether None means that there is none of them.
    """
    grubby, update_grub = _there(host, _GRUBBY), _there(host, _UPDATE_GRUB)
    names = [name for name in host.listdir(BLS_FOLDER) if name.endswith(".conf") and "rescue" not in name]
    entries: Union[List[Entry], Unknown]
    if names and grubby:
        loader, tool, entries = "bls", grubby, _bls_entries(host, names)
    elif update_grub:
        loader, tool, entries = "grub", update_grub, _grub_entries(host)
    else:
        loader, tool, entries = "", "", Unknown("no boot loader that is known here")
    return {
        "current": current(host),
        "loader": loader or None,
        # Of a capture that is not whole, nobody knows what was not recorded.
        "loader_seen": bool(loader) or host.is_live,
        "tool": tool,
        "entries": entries,
        "assignments": _assignments(host) if loader == "grub" else [],
    }


def _assignments(host: Host) -> List[Assignment]:
    text = host.read(GRUB_DEFAULTS)
    first = [(GRUB_DEFAULTS, text)] if isinstance(text, str) else []
    rows = first + confd.files(host, [GRUB_FOLDER], ".cfg")
    return [assignment for path, content in rows for assignment in parse_grub_defaults(path, content)]


def _grub_entries(host: Host) -> Union[List[Entry], Unknown]:
    reason = Unknown("no grub.cfg was seen below /boot")
    for path in GRUB_CONFIGS:
        text = host.read(path)
        if isinstance(text, str):
            return parse_grub_config(text)
        reason = text if isinstance(text, Unknown) else reason
    return reason


def _bls_entries(host: Host, names: List[str]) -> Union[List[Entry], Unknown]:
    variables: Dict[str, str] = {}
    for path in GRUB_ENVS:
        text = host.read(path)
        if isinstance(text, str):
            variables = parse_grubenv(text)
            break
    found: List[Entry] = []
    for name in names:
        text = host.read("%s/%s" % (BLS_FOLDER, name))
        if not isinstance(text, str):
            return text if isinstance(text, Unknown) else Unknown("%s is gone" % name)
        entry = parse_bls(text, variables)
        if entry:
            found.append(entry)
    return found


def _there(host: Host, paths: Tuple[str, ...]) -> str:
    return next((path for path in paths if host.exists(path)), "")
