# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""MySQL, MariaDB and Percona servers: their units, what they answer, what they will be started with."""

from __future__ import annotations

import re
from typing import Dict, List, Mapping, Sequence, Tuple, Union

from .._engine.host import Host
from .._engine.values import Unknown
from .mysql_config import OPTION_FILES, Config, Setting, groups_for, parse_arguments, parse_persisted, read_options
from .unit import parse_show

# mysql on Debian and Ubuntu, mysqld on EL (MySQL and Percona), mariadb everywhere; instances behind an @.
# Packages make some of these names aliases of one unit: its Id tells the real one.
BASE_NAMES = ("mysql", "mysqld", "mariadb")
SERVERS = ("mysqld", "mariadbd")

# In systemd's own order of search, and where a SysV script is turned into a unit.
UNIT_FOLDERS = (
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
    "/run/systemd/generator.late",
)
_WANTS = "/etc/systemd/system/multi-user.target.wants"
_INSTANCE = re.compile(r"(?:mysql|mysqld|mariadb)@[^/]+\.service")

PROPERTIES = (
    "Id",
    "Names",
    "LoadState",
    "ActiveState",
    "Result",
    "MainPID",
    "ControlGroup",
    "NeedDaemonReload",
    "DropInPaths",
    "ExecStart",
    "Environment",
    "DevicePolicy",
    "DeviceAllow",
    "AllowedCPUs",
    "AllowedMemoryNodes",
    "MemoryHigh",
    "MemoryMax",
    "IOWeight",
    "OOMScoreAdjust",
    "LimitNOFILE",
    "LimitMEMLOCK",
)

# What the memory arithmetic and the findings read; no secret is among them.
VARIABLES = (
    "version",
    "version_comment",
    "datadir",
    "innodb_buffer_pool_size",
    "innodb_log_buffer_size",
    "innodb_dedicated_server",
    "innodb_io_capacity",
    "innodb_io_capacity_max",
    "innodb_flush_method",
    "innodb_data_file_buffering",
    "innodb_numa_interleave",
    "key_buffer_size",
    "aria_pagecache_buffer_size",
    "query_cache_size",
    "temptable_max_ram",
    "max_connections",
    "sort_buffer_size",
    "join_buffer_size",
    "read_buffer_size",
    "read_rnd_buffer_size",
    "thread_stack",
    "binlog_cache_size",
    "net_buffer_length",
)
_QUERY = "SHOW GLOBAL VARIABLES WHERE Variable_name IN (%s)" % ",".join("'%s'" % name for name in VARIABLES)

_DEADLINE_S = 20.0
# Seconds for a server that does not answer; a healthy one under full load has been seen to take 5.
_CLIENT_DEADLINE_S = 20.0


def find(host: Host, more_units: Sequence[str]) -> Union[List[Dict[str, str]], Unknown]:
    """The properties of each database unit, each real unit once; no command on a host without any."""
    if not any(host.exists(folder) for folder in UNIT_FOLDERS):
        return Unknown("none of the folders of systemd's units can be seen")
    names = [name + ".service" for name in BASE_NAMES if _exists(host, name + ".service")]
    templates = [name for name in BASE_NAMES if _exists(host, name + "@.service")]
    # A pattern finds instances that are loaded, the wants folder those that start at boot.
    names += [name + "@*.service" for name in templates]
    names += [name for name in host.listdir(_WANTS) if templates and _INSTANCE.fullmatch(name)]
    names += [name for name in more_units if name not in names]
    if not names:
        return []
    argv = ["systemctl", "show", "-p", ",".join(PROPERTIES), "--", *names]
    text = host.run(argv, _DEADLINE_S).text()
    if isinstance(text, Unknown):
        return text
    found: Dict[str, Dict[str, str]] = {}
    for block in parse_show(text):
        if block.get("Id") and block.get("LoadState") not in ("not-found", "masked"):
            found.setdefault(block["Id"], block)
    return [found[name] for name in sorted(found)]


def parse_variables(text: str) -> Dict[str, str]:
    """``name<TAB>value`` rows of the client's batch mode; a header and other lines are ignored."""
    found: Dict[str, str] = {}
    for line in text.splitlines():
        name, tab, value = line.partition("\t")
        if tab and re.fullmatch(r"[a-z][a-z0-9_]*", name.strip()):
            found[name.strip()] = value.strip()
    return found


def parse_version(text: str) -> Tuple[str, str]:
    """Flavour and version from ``mysqld --version`` or from version and version_comment; empty when unknown."""
    found = re.search(r"(?:Ver\s+)?(\d{1,4}\.\d{1,4}(?:\.\d{1,4})?\S*)", text)
    if not found:
        return "", ""
    low = text.lower()
    return ("mariadb" if "mariadb" in low else "percona" if "percona" in low else "mysql"), found.group(1)


def argv_of(block: Mapping[str, str]) -> List[str]:
    """The server's command line as its unit has it, which may start it from a shell; empty when that names no server.

    ``$VARIABLES`` in it are filled from Environment.  The command line of the process is not read: a process writes that
    itself, and root would open what the database's user names there.
    """
    found = re.search(r"argv\[\]=(.*?) ;", block.get("ExecStart", ""))
    environment = dict(
        pair.partition("=")[::2] for pair in re.findall(r'"[^"]*"|\S+', block.get("Environment", "")) if "=" in pair
    )
    words: List[str] = []
    for word in (found.group(1) if found else "").split():
        name = word.strip("${}") if word.startswith("$") else ""
        words += environment.get(name, "").strip('"').split() if name else [word]
    place = next((place for place, word in enumerate(words) if word.rsplit("/", 1)[-1] in SERVERS), len(words))
    return words[place:]


def program_of(host: Host, pid: int, argv: Sequence[str]) -> str:
    """The server's program: what its process runs, or what its unit starts.

    Never by what the process says of itself: that is the database's user talking.  Whether it is started is up to the
    host, which starts nothing that others than root can change.
    """
    running = host.readlink("/proc/%d/exe" % pid) if pid else None
    paths = [path for path in (running, *argv[:1]) if path and path.startswith("/")]
    return next((path for path in paths if path.rsplit("/", 1)[-1] in SERVERS), "")


def version_of_program(host: Host, program: str) -> Tuple[str, str]:
    """Flavour and version of a server that cannot be asked."""
    if not program:
        return "", ""
    text = host.run([program, "--version"], _CLIENT_DEADLINE_S).text()
    return ("", "") if isinstance(text, Unknown) else parse_version(text.partition("Ver")[2] or text)


def read_config(host: Host, unit: str, argv: Sequence[str], flavour: str, version: str) -> Config:
    """What the server will be started with: option files, SET PERSIST, command line, each over the one before."""
    options = parse_arguments(argv[1:])
    instance = unit.partition("@")[2].rsplit(".service", 1)[0]
    suffixes = ["@" + instance, "." + instance] if instance else []
    suffixes += [options["defaults_group_suffix"]] if "defaults_group_suffix" in options else []
    files = [options["defaults_file"]] if "defaults_file" in options else list(OPTION_FILES)
    files += [options["defaults_extra_file"]] if "defaults_extra_file" in options else []
    config = read_options(host, files, groups_for(flavour, version, suffixes))
    settings = dict(config.settings)
    if flavour in ("mysql", "percona"):
        folder = config.values().get("datadir", "/var/lib/mysql").rstrip("/")
        settings.update(_placed(_persisted(host, folder + "/mysqld-auto.cnf"), folder + "/mysqld-auto.cnf"))
    settings.update(_placed(options, "command line of " + unit))
    return Config(settings, config.unread)


def read_variables(host: Host, flavour: str, config: Config) -> Union[Dict[str, str], Unknown]:
    """Live variables, asked over the unix socket as root with the server's own client."""
    socket = config.values().get("socket")
    first, second = ("mariadb", "mysql") if flavour in ("mariadb", "") else ("mysql", "mariadb")
    # A server may ask a client for any file that it can read, and the client is root (LOAD DATA LOCAL; security page of
    # https://dev.mysql.com/doc/refman/8.4/en/load-data-local-security.html).
    options = ["--batch", "--skip-column-names", "--connect-timeout=10", "--local-infile=0"]
    options += ["--protocol=socket"] + (["--socket=" + socket] if socket else [])
    result = host.run([first, *options, "-e", _QUERY], _CLIENT_DEADLINE_S)
    if "not installed" in result.unknown or "not recorded" in result.unknown:
        result = host.run([second, *options, "-e", _QUERY], _CLIENT_DEADLINE_S)
    text = result.text()
    if isinstance(text, Unknown):
        return text
    return parse_variables(text) or Unknown("the client gave no variables")


def _exists(host: Host, name: str) -> bool:
    return any(host.exists("%s/%s" % (folder, name)) for folder in UNIT_FOLDERS)


def _persisted(host: Host, path: str) -> Dict[str, str]:
    text = host.read(path)
    return parse_persisted(text) if isinstance(text, str) else {}


def _placed(values: Mapping[str, str], place: str) -> Dict[str, Setting]:
    return {name: Setting(value, place) for name, value in values.items()}
