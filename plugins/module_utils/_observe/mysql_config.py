# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Option files of MySQL, MariaDB and Percona: what a server will be started with.

The format is the one of https://dev.mysql.com/doc/refman/8.4/en/option-files.html and
https://mariadb.com/kb/en/configuring-mariadb-with-option-files/: of all groups that a server reads
the last line wins, dashes and underscores in names are one, and a ``#`` may stand behind a value.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Dict, FrozenSet, List, Sequence, Set, Tuple

from .._engine.host import Host
from .._engine.values import Unknown

# Where both families look first; what SYSCONFDIR adds is one of these two on all distributions.
OPTION_FILES = ("/etc/my.cnf", "/etc/mysql/my.cnf")

# An include that includes itself ends here.
_DEEPEST_INCLUDE = 10
_MOST_FILES = 200

_GROUP = re.compile(r"\[([^\]]+)\]")
_INCLUDE = re.compile(r"!(include|includedir)\s+(\S.*)")


@dataclass(frozen=True)
class Line:
    """One line of an option file: ``group`` is ``!include`` or ``!includedir`` for these two."""

    number: int
    group: str
    name: str
    value: str


@dataclass(frozen=True)
class Setting:
    """A value and the place that it comes from."""

    value: str
    place: str


@dataclass(frozen=True)
class Config:
    """What the option files say for one server; ``unread`` names files that could not be read."""

    settings: Dict[str, Setting]
    unread: Tuple[str, ...] = ()

    def values(self) -> Dict[str, str]:
        return {name: setting.value for name, setting in self.settings.items()}


def parse_options(text: str) -> List[Line]:
    """The lines of an option file that say something, in order.  Others are ignored."""
    found: List[Line] = []
    group = ""
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        include = _INCLUDE.match(line)
        header = _GROUP.match(line)
        if include:
            found.append(Line(number, "!" + include.group(1), include.group(2).strip(), ""))
        elif header:
            group = header.group(1).strip()
        elif line and line[0] not in "#;!" and group:
            name, has_value, value = line.partition("=")
            bare = _bare_value(value) if has_value else "ON"
            found.append(Line(number, group, option_name(name.split("#")[0]), bare))
    return found


def option_name(name: str) -> str:
    """The variable that an option sets: ``loose-innodb-buffer-pool-size`` is innodb_buffer_pool_size."""
    plain = name.strip().lower().replace("-", "_")
    return plain[len("loose_") :] if plain.startswith("loose_") else plain


def parse_arguments(words: Sequence[str]) -> Dict[str, str]:
    """The long options of a command line, by variable name; a value stands behind "=" or is the next word."""
    found: Dict[str, str] = {}
    for place, word in enumerate(words):
        if word.startswith("--") and len(word) > 2:
            name, has_value, value = word[2:].partition("=")
            behind = words[place + 1] if place + 1 < len(words) else "-"
            # A server takes no words but options, so one that is none belongs to the option before it.
            bare = _bare_value(value) if has_value else "ON" if behind.startswith("-") else _bare_value(behind)
            found[option_name(name)] = bare
    return found


def parse_persisted(text: str) -> Dict[str, str]:
    """Variables of mysqld-auto.cnf, the JSON file of SET PERSIST (MySQL 8.0 and later), any version of it."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    found: Dict[str, str] = {}
    _collect(data, found, 0)
    return found


def groups_for(flavour: str, version: str, suffixes: Sequence[str]) -> FrozenSet[str]:
    """The groups that a server reads; ``suffixes`` are those of --defaults-group-suffix."""
    series = ".".join(version.split("-")[0].split(".")[:2])
    names = ["mysqld", "server"]
    if flavour == "mariadb":
        names += ["mariadb", "mariadbd", "client-server", "galera"]
    names += ["%s-%s" % (name, series) for name in ("mysqld", "mariadb", "mariadbd") if series]
    return frozenset([name + suffix for name in names for suffix in ("", *suffixes)])


def read_options(host: Host, files: Sequence[str], groups: FrozenSet[str]) -> Config:
    """What the files say to a server that reads these groups, includes followed, the last line wins."""
    settings: Dict[str, Setting] = {}
    unread: List[str] = []
    seen: Set[str] = set()
    for path in files:
        _read_into(host, path, groups, settings, unread, seen, 0)
    return Config(settings, tuple(unread))


def _read_into(
    host: Host,
    path: str,
    groups: FrozenSet[str],
    settings: Dict[str, Setting],
    unread: List[str],
    seen: Set[str],
    depth: int,
) -> None:
    if depth > _DEEPEST_INCLUDE or len(seen) > _MOST_FILES:
        unread.append("%s: includes are too deep" % path)
        return
    seen.add(path)
    # What an option file says is obeyed as root: it names further files, and the socket that root's client connects to.
    text = host.read_own(path)
    if isinstance(text, Unknown):
        unread.append("%s: %s" % (path, text.reason))
    for line in parse_options(text) if isinstance(text, str) else []:
        if line.group == "!include":
            _read_into(host, line.name, groups, settings, unread, seen, depth + 1)
        elif line.group == "!includedir":
            for name in host.listdir(line.name):
                # On Unix only these are read (option-files page, "Option File Inclusions").
                if name.endswith(".cnf"):
                    child = line.name.rstrip("/") + "/" + name
                    _read_into(host, child, groups, settings, unread, seen, depth + 1)
        elif line.group in groups:
            settings[line.name] = Setting(line.value, "%s:%d" % (path, line.number))


def _bare_value(value: str) -> str:
    """A value without its quotes, or without the comment behind it."""
    text = value.strip()
    if text[:1] in ("'", '"') and text.find(text[0], 1) > 0:
        return text[1 : text.find(text[0], 1)]
    return text.split("#")[0].strip()


def _collect(data: Any, found: Dict[str, str], depth: int) -> None:
    """Pairs ``name: {"Value": …}`` at any depth: the layout has changed three times."""
    if not isinstance(data, dict) or depth > 6:
        return
    for name, item in data.items():
        if isinstance(item, dict) and isinstance(item.get("Value"), str):
            found[option_name(str(name))] = item["Value"]
        else:
            _collect(item, found, depth + 1)
