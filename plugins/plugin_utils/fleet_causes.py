# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What ails the hosts of a fleet, by cause: one row for a finding or for steps that many hosts have alike."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Dict, List, Sequence, Tuple

from .fleet_findings import kind_of, sign_of
from .fleet_links import subject_matter
from .fleet_report import Document, area_place, label, open_points, step_sentence

# What became of a step, with the sign of the state that it stands for, and words.
STATUS = {
    "planned": ("drifted", "to do"),
    "applied": ("changed", "done"),
    "undone": ("rolled_back", "put back"),
    "blocked": ("blocked", "held back"),
    "waits": ("pending_reboot", "after a reboot"),
    "skipped": ("unknown", "skipped"),
    "failed": ("failed", "failed"),
    "stuck": ("failed", "could not be put back"),
}
# The gravest first: kinds of findings, and what is ahead of a step.
GRAVITY = ("block", "fail", "blocked", "unknown", "warn", "planned", "waits", "skipped")

Point = Tuple[str, Document]


@dataclass(frozen=True)
class Cause:
    """What hosts have in common; ``key`` is what the page's filter finds them by."""

    key: str
    icon: str
    words: str
    area: str
    matter: str
    why: str
    hosts: Tuple[str, ...]


def key_of(area: str, point: Document) -> str:
    """The cause of a finding or step: findings by id and kind, steps by area and what became of them."""
    return '"%s:%s"' % ((area, point["status"]) if "status" in point else (point["id"], kind_of(point)))


def causes(documents: Sequence[Document]) -> List[Cause]:
    """What several hosts have in common, the gravest first, then what most of them have."""
    points: Dict[str, List[Point]] = {}
    hosts: Dict[str, Dict[str, None]] = {}
    for document in documents:
        for area, point in open_points(document):
            key = key_of(area, point)
            points.setdefault(key, []).append((area, point))
            hosts.setdefault(key, {})[document["host"]] = None
    common = [key for key, names in hosts.items() if len(names) > 1]
    common.sort(key=lambda key: (_gravity(points[key][0][1]), -len(hosts[key]), area_place(points[key][0][0]), key))
    return [_cause(key, points[key], tuple(hosts[key])) for key in common]


def _gravity(point: Document) -> int:
    return GRAVITY.index(point["status"] if "status" in point else kind_of(point))


def _cause(key: str, points: Sequence[Point], hosts: Tuple[str, ...]) -> Cause:
    area, point = points[0]
    is_step = "status" in point
    icon, words = STATUS[point["status"]] if is_step else sign_of(point)
    said = Counter(step_sentence(row) if is_step else row["why"] for _area, row in points).most_common(1)[0][0]
    matter = "steps" if is_step else subject_matter(point["id"])
    return Cause(key, icon, words, label(area), matter, said, hosts)
