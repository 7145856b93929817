# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""InnoDB's own settings, as far as they matter to GPU jobs beside the server."""

from __future__ import annotations

import re
from typing import Any, Dict, List, Mapping

from .._engine.values import Finding
from .._tables.mysql_defaults import defaults, io_capacity, knows_dedicated_server, version_of
from .mysql_memory import DEDICATED, is_on
from .mysql_wall import ids

_DEDICATED_SOURCE = "https://dev.mysql.com/doc/en/innodb-dedicated-server.html"
_CAPACITY_SOURCE = "https://dev.mysql.com/doc/en/innodb-configuring-io-capacity.html"
_FLUSH_SOURCE = "https://dev.mysql.com/doc/refman/8.4/en/innodb-parameters.html#sysvar_innodb_flush_method"

# Methods that write data files through the page cache, which the server's own wall then pays for.
_BUFFERED = ("fsync", "littlesync", "nosync", "o_dsync")


def next_values(server: Mapping[str, Any]) -> Dict[str, str]:
    """Variables at the next start: option files over compiled-in defaults."""
    values = defaults(server["flavour"], version_of(server["version"]))
    values.update({name: row[0] for name, row in server["config"].items()})
    return values


def judge_settings(server: Mapping[str, Any], have: Mapping[str, Any], wall: Mapping[str, Any]) -> List[Finding]:
    """InnoDB's settings, of the running server where it can be asked, else of its files."""
    live = server["live"]
    values = live if isinstance(live, dict) else next_values(server)
    flavour, version, unit = server["flavour"], version_of(server["version"]), server["unit"]
    findings: List[Finding] = []
    if knows_dedicated_server(flavour) and any(is_on(v, DEDICATED) for v in (values, next_values(server))):
        findings.append(
            Finding(
                "mysql_isolation.dedicated-server", "fail", unit, DEDICATED + " OFF", "ON",
                "it sizes the buffer pool from the memory of the whole host, as if nothing else ran there",
                "set %s=OFF and innodb_buffer_pool_size in the option file, then restart" % DEDICATED,
                _DEDICATED_SOURCE,
            )
        )  # fmt: skip
    findings += _judge_capacity(unit, values, io_capacity(flavour, version) if version else None)
    findings += _judge_flush(server, values)
    if is_on(values, "innodb_numa_interleave") and wall and len(ids(wall["memory_nodes"])) == 1:
        findings.append(
            Finding(
                "mysql_isolation.numa-interleave", "info", unit, "innodb_numa_interleave OFF", "ON",
                "with one memory node allowed there is nothing to interleave over", "nothing to do",
                "https://dev.mysql.com/doc/refman/8.4/en/innodb-parameters.html#sysvar_innodb_numa_interleave",
            )
        )  # fmt: skip
    return findings


def _judge_capacity(unit: str, values: Mapping[str, str], usual: Any) -> List[Finding]:
    text = values.get("innodb_io_capacity", "")
    if not re.fullmatch(r"\d{1,12}", text, re.ASCII):
        return []
    is_raised = usual is not None and int(text) > usual
    return [
        Finding(
            "mysql_isolation.io-capacity", "warn" if is_raised else "info", unit,
            "innodb_io_capacity as low as practical" + (" (default %d)" % usual if usual else ""), text,
            "it bounds InnoDB's own background flushing and merging; it is no quality of service of the disk, "
            "and a higher value takes more of a disk that training reads from",
            "lower it in the option file" if is_raised else "nothing to do; limit the unit with mysql_isolation_io_limits",
            _CAPACITY_SOURCE,
        )
    ]  # fmt: skip


def _judge_flush(server: Mapping[str, Any], values: Mapping[str, str]) -> List[Finding]:
    method = values.get("innodb_flush_method", "")
    low, version = method.lower(), version_of(server["version"])
    is_buffered = low in _BUFFERED or is_on(values, "innodb_data_file_buffering")
    if is_buffered:
        why = "data pages go through the page cache as well: they are held twice, and both count against the wall"
    elif low == "o_direct_no_fsync" and (server["flavour"] == "percona" or (version and version < (8, 0, 14))):
        why = "without fsync the filesystem's metadata may be lost in a crash (XFS, ext4): before MySQL 8.0.14, Percona"
    else:
        return []
    return [
        Finding(
            "mysql_isolation.flush-method", "warn", server["unit"], "innodb_flush_method O_DIRECT",
            method or "innodb_data_file_buffering ON", why,
            "set innodb_flush_method=O_DIRECT (MariaDB 11 and later: innodb_data_file_buffering=OFF), then restart",
            _FLUSH_SOURCE,
        )
    ]  # fmt: skip
