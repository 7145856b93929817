# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What database units have now, in the format of the wants."""

from __future__ import annotations

import re
from typing import Any, Dict, Mapping, Optional

from .._engine.units import format_size
from .._engine.values import Unknown
from .mysql_wall import DIRECTIVES, IO_LIMITS, KEYS, LIMIT_ROWS, PARENT, ids, managed_by


def adopt(have: Mapping[str, Any]) -> Dict[str, Any]:
    """What the units have now: common values, and overrides for a unit that differs from the first."""
    servers = [] if isinstance(have["servers"], Unknown) else list(have["servers"])
    if not servers:
        return {}
    first = _adopt_server(servers[0], have)
    others = []
    for server in servers[1:]:
        now = _adopt_server(server, have)
        own = {key: value for key, value in now.items() if value != first.get(key)}
        if own:
            others.append(dict({"unit": server["unit"]}, **own))
    return dict(first, overrides=others) if others else first


def _adopt_server(server: Mapping[str, Any], have: Mapping[str, Any]) -> Dict[str, Any]:
    group = server["group"] if isinstance(server["group"], dict) else {}
    shown = server["shown"]
    paths = {number: path for path, number in have["devices"].items() if number}
    adopted: Dict[str, Any] = {
        "cpus": _adopt_list(server, "cpus", group.get("cpuset.cpus")),
        "memory_nodes": _adopt_list(server, "memory_nodes", group.get("cpuset.mems")),
        "memory_high": _adopt_size(group.get("memory.high") or shown.get("MemoryHigh", "")),
        "memory_max": _adopt_size(group.get("memory.max") or shown.get("MemoryMax", "")),
        "io_limits": [
            _adopt_io(paths.get(number, "/dev/block/" + number), row) for number, row in server["io_max"].items()
        ],
        "io_weight": int(shown["IOWeight"]) if re.fullmatch(r"\d{1,5}", shown.get("IOWeight", ""), re.ASCII) else None,
        "device_policy": shown.get("DevicePolicy", ""),
        "device_allow": [row for row in shown.get("DeviceAllow", "").splitlines() if row],
    }
    own = managed_by(server["drop_in"])
    limits = server["process_limits"] if isinstance(server["process_limits"], dict) else {}
    if "oom_score_adjust" in own and re.fullmatch(r"-?\d{1,4}", str(server["oom_score_adj"]), re.ASCII):
        adopted["oom_score_adjust"] = int(server["oom_score_adj"])
    for key, row in LIMIT_ROWS.items():
        if key in own and row in limits:
            soft = limits[row][0]
            is_number = key == "limit_nofile" and re.fullmatch(r"\d{1,12}", soft, re.ASCII)
            adopted[key] = "infinity" if soft == "unlimited" else int(soft) if is_number else soft
    return {key: adopted[key] for key in KEYS if key in adopted}


def _adopt_list(server: Mapping[str, Any], key: str, now: Any) -> str:
    """A list that leaves nothing out of what the group above has is none."""
    if not isinstance(now, str):
        return server["shown"].get(DIRECTIVES[key][0], "") if not server["active"] else ""
    return "" if ids(now) == ids(server[PARENT[key]]) else now


def _adopt_size(text: Any) -> str:
    word = text if isinstance(text, str) else ""
    return format_size(int(word)) if re.fullmatch(r"\d{1,19}", word, re.ASCII) else ""


def _adopt_io(path: str, row: Mapping[str, Optional[int]]) -> Dict[str, Any]:
    found: Dict[str, Any] = {"device": path}
    for option, (_directive, word) in IO_LIMITS.items():
        if row.get(word) is not None:
            found[option] = row[word]
    return found
