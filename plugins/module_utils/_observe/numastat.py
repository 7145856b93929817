# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What numastat(8) prints: on which node the memory of a process lies, or the counters of the system."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Dict, List, Mapping, Optional, Union

from .._engine.values import Text, Unknown, lines

_TITLE = re.compile(r"Per-node process memory usage \(in (\w+)\)(?: for PID (\d{1,10}) \((.*)\))?", re.ASCII)
_COLUMNS = re.compile(r"(Node \d{1,5}|node\d{1,5}|Total)", re.ASCII)
_FIGURE = re.compile(r"-?\d{1,15}(\.\d{1,6})?", re.ASCII)


@dataclass(frozen=True)
class NumaStat:
    """Rows by their name, each with its figure by node number; ``totals`` is the last column where there is one.

    Figures of a process are in MB.  They are rounded, and some rows are hidden, so they need not add up.
    """

    pid: Optional[int]
    name: str
    rows: Mapping[str, Mapping[int, float]]
    totals: Mapping[str, float]

    def share(self, node: int, row: str = "Total") -> Union[float, Unknown]:
        """The part of a row that lies on a node, from 0 to 1."""
        figures = self.rows.get(row, {})
        whole = sum(figures.values())
        if node not in figures or whole <= 0:
            return Unknown("numastat has no row %s with node %d" % (row, node))
        return figures[node] / whole


def parse_numastat(text: Text) -> Union[NumaStat, Unknown]:
    """``numastat``, -p, -m or -n; a table that is wrapped for want of width is put together again."""
    if not isinstance(text, str):
        return text if isinstance(text, Unknown) else Unknown("numastat was not run")
    pid: Optional[int] = None
    name = ""
    rows: Dict[str, Dict[int, float]] = {}
    totals: Dict[str, float] = {}
    columns: List[str] = []
    for line in lines(text):
        title = _TITLE.match(line.strip())
        if title:
            pid, name = int(title.group(2)) if title.group(2) else None, title.group(3) or ""
            continue
        heads = _COLUMNS.findall(line)
        if heads and _COLUMNS.sub("", line).strip() in ("", "PID"):
            columns = heads
            continue
        words = line.split()
        figures = words[len(words) - len(columns) :] if columns and len(words) > len(columns) else []
        if not figures or not all(_FIGURE.fullmatch(word) for word in figures):
            continue
        row = " ".join(words[: len(words) - len(columns)])
        for column, figure in zip(columns, figures):
            if column == "Total":
                totals[row] = float(figure)
            else:
                rows.setdefault(row, {})[int(re.sub(r"\D", "", column))] = float(figure)
    if not rows:
        return Unknown("numastat says %r" % text.strip()[:80])
    return NumaStat(pid, name, rows, totals)
