# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What MySQL, MariaDB and Percona take when no option file says otherwise.

Only what the memory arithmetic and the findings of mysql_isolation need, for servers that are down
and so cannot be asked.  Sources, by family:

* https://dev.mysql.com/doc/refman/8.4/en/server-system-variables.html and
  https://dev.mysql.com/doc/refman/8.4/en/innodb-parameters.html, and their 8.0 and 5.7 editions
* https://mariadb.com/kb/en/server-system-variables/, https://mariadb.com/kb/en/innodb-system-variables/
  and https://mariadb.com/kb/en/aria-system-variables/
"""

from __future__ import annotations

import re
from typing import Dict, Tuple

_KIB = 1024
_MIB = 1024 * 1024

_COMMON: Dict[str, int] = {
    "innodb_buffer_pool_size": 128 * _MIB,
    "innodb_log_buffer_size": 16 * _MIB,
    "max_connections": 151,
    "read_buffer_size": 128 * _KIB,
    "read_rnd_buffer_size": 256 * _KIB,
    "join_buffer_size": 256 * _KIB,
    "binlog_cache_size": 32 * _KIB,
    "net_buffer_length": 16 * _KIB,
}
_MYSQL: Dict[str, int] = {
    "sort_buffer_size": 256 * _KIB,
    "thread_stack": 1 * _MIB,
    "key_buffer_size": 8 * _MIB,
}
_MARIADB: Dict[str, int] = {
    "sort_buffer_size": 2 * _MIB,
    "thread_stack": 292 * _KIB,
    "key_buffer_size": 128 * _MIB,
    "aria_pagecache_buffer_size": 128 * _MIB,
    "query_cache_size": 1 * _MIB,
}


def version_of(text: str) -> Tuple[int, ...]:
    """``10.11.6-MariaDB-0+deb12u1`` as (10, 11, 6); empty when no version is in it."""
    found = re.match(r"(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?", text.strip(), re.ASCII)
    return tuple(int(part) for part in found.groups() if part) if found else ()


def defaults(flavour: str, version: Tuple[int, ...]) -> Dict[str, str]:
    """Compiled-in values as SHOW GLOBAL VARIABLES would give them."""
    figures = dict(_COMMON, **(_MARIADB if flavour == "mariadb" else _MYSQL))
    if flavour != "mariadb" and version >= (8, 4):
        figures["innodb_log_buffer_size"] = 64 * _MIB
    if flavour != "mariadb" and version >= (8, 0):
        figures["temptable_max_ram"] = 1024 * _MIB
    words = {name: str(figure) for name, figure in figures.items()}
    words["innodb_io_capacity"] = str(io_capacity(flavour, version))
    if version:
        words["innodb_flush_method"] = flush_method(flavour, version)
    return words


def io_capacity(flavour: str, version: Tuple[int, ...]) -> int:
    """200 for all but MySQL and Percona 8.4 and later."""
    return 10000 if flavour != "mariadb" and version >= (8, 4) else 200


def flush_method(flavour: str, version: Tuple[int, ...]) -> str:
    """O_DIRECT since MariaDB 10.6 (MDEV-24854) and MySQL 8.4, fsync before."""
    first_direct = (10, 6) if flavour == "mariadb" else (8, 4)
    return "O_DIRECT" if version >= first_direct else "fsync"


def knows_dedicated_server(flavour: str) -> bool:
    """innodb_dedicated_server is MySQL's and Percona's (8.0.3); MariaDB has no such variable."""
    return flavour != "mariadb"
