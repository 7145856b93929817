# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The end of a run for a terminal: hosts that ail from the same are one entry, the worst first."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Sequence, Tuple

from .fleet_report import GOOD_STATES, label, one_line

# So many hosts of a group are named, the others are counted.
NAMED = 3
WIDTH = 32

Host = Mapping[str, Any]


def console_lines(run: Mapping[str, Any], limit: int = 20) -> List[Tuple[str, str]]:
    """Pairs of a state ("" for plain) and a line, from the summary of a run; ``limit`` is the most groups of hosts."""
    hosts = run["hosts"]
    counts = ", ".join("%d %s" % (count, label(state)) for state, count in run["counts"].items())
    lines = [("", "%d %s, %s: %s" % (len(hosts), "host" if len(hosts) == 1 else "hosts", run["did"], counts or "none"))]
    groups = grouped(
        [host for host in (*run["others"], *hosts) if host["state"] not in GOOD_STATES or host["warnings"]]
    )
    width = min(max((len(_title(group)) for group in groups[:limit]), default=0), WIDTH)
    for group in groups[:limit]:
        lines += _entry(group, width)
    rest = [host for group in groups[limit:] for host in group]
    if rest:
        states: Dict[str, int] = {}
        for host in rest:
            states[_state(host)] = states.get(_state(host), 0) + 1
        words = ", ".join("%d %s" % (count, state) for state, count in states.items())
        lines.append(("", "  and %d more hosts (%s); the page has them all" % (len(rest), words)))
    return lines


def grouped(hosts: Sequence[Host]) -> List[List[Host]]:
    """Hosts of one state, one cause and one way out together, in the order of the first of each."""
    groups: Dict[Tuple[str, str, str], List[Host]] = {}
    for host in hosts:
        groups.setdefault((host["state"], host["cause"], host["next"]), []).append(host)
    return list(groups.values())


def _entry(group: Sequence[Host], width: int) -> List[Tuple[str, str]]:
    first = group[0]
    words = first["headline"] if len({host["headline"] for host in group}) == 1 else first["cause"]
    lines = [(first["state"], "  %-14s %s  %s" % (_state(first), _title(group).ljust(width), one_line(words, 160)))]
    indent = "  %-14s %s  " % ("", " " * width)
    if len(group) > 1:
        names = ", ".join(one_line(host["host"], WIDTH) for host in group[:NAMED])
        more = len(group) - NAMED
        lines.append(("", indent + "on: " + names + (" and %d more" % more if more > 0 else "")))
    if first["next"]:
        lines.append(("", indent + "to do: " + one_line(first["next"], 200)))
    return lines


def _state(host: Host) -> str:
    return "warning" if host["state"] in GOOD_STATES else label(host["state"])


def _title(group: Sequence[Host]) -> str:
    return one_line(group[0]["host"], WIDTH) if len(group) == 1 else "%d hosts" % len(group)
