# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How much memory a server takes, from its own variables.

* The buffer pool with its control structures: about 10 % more than its size
  (https://dev.mysql.com/doc/refman/8.4/en/innodb-parameters.html#sysvar_innodb_buffer_pool_size).
* What all connections share, and what each connection may take
  (https://dev.mysql.com/doc/refman/8.4/en/memory-use.html, https://mariadb.com/kb/en/mariadb-memory-allocation/).

Not counted, as no variable bounds them: temporary tables of one connection, table caches, performance_schema.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Mapping, Tuple, Union

from .._engine.units import parse_size
from .._engine.values import Unknown

SOURCE = "https://dev.mysql.com/doc/refman/8.4/en/memory-use.html"
SHARED = (
    "innodb_log_buffer_size",
    "key_buffer_size",
    "aria_pagecache_buffer_size",
    "query_cache_size",
    "temptable_max_ram",
)
PER_CONNECTION = (
    "sort_buffer_size",
    "join_buffer_size",
    "read_buffer_size",
    "read_rnd_buffer_size",
    "thread_stack",
    "binlog_cache_size",
    "net_buffer_length",
)
POOL = "innodb_buffer_pool_size"
DEDICATED = "innodb_dedicated_server"

_GIB = 1024**3


@dataclass(frozen=True)
class Memory:
    """Bytes that a server may take; ``place`` tells where the figures are from."""

    place: str
    pool: int
    shared: int
    per_connection: int
    connections: int

    @property
    def floor(self) -> int:
        """What it takes in any case, once its buffer pool is full."""
        return self.pool + self.pool // 10

    @property
    def peak(self) -> int:
        """What it may take with every connection in use."""
        return self.floor + self.shared + self.connections * self.per_connection


def memory_of(values: Mapping[str, str], place: str) -> Union[Memory, Unknown]:
    """The memory of a server with these variables; Unknown when the buffer pool or the connections are."""
    pool, connections = _bytes(values, POOL), _bytes(values, "max_connections")
    if isinstance(pool, Unknown) or isinstance(connections, Unknown):
        return Unknown("%s: %s" % (place, pool.reason if isinstance(pool, Unknown) else str(connections)))
    return Memory(place, pool, _sum(values, SHARED), _sum(values, PER_CONNECTION), connections)


def dedicated_pool(memory_total: int) -> int:
    """The pool that innodb_dedicated_server takes (https://dev.mysql.com/doc/en/innodb-dedicated-server.html)."""
    if memory_total < 1 * _GIB:
        return 128 * 1024**2
    return memory_total // 2 if memory_total <= 4 * _GIB else memory_total * 3 // 4


def is_on(values: Mapping[str, str], name: str) -> bool:
    return values.get(name, "").strip().upper() in ("ON", "1", "TRUE", "YES")


def _bytes(values: Mapping[str, str], name: str) -> Union[int, Unknown]:
    if name not in values:
        return Unknown("%s is not shown" % name)
    try:
        return parse_size(values[name])
    except ValueError as error:
        return Unknown("%s: %s" % (name, error))


def _sum(values: Mapping[str, str], names: Tuple[str, ...]) -> int:
    sizes = [_bytes(values, name) for name in names]
    return sum(size for size in sizes if not isinstance(size, Unknown))
