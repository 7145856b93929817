# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Findings as the page lists them: the worst first, and what ails eight GPUs alike in one row."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from .fleet_links import address_of, subject_matter
from .fleet_report import natural, unknown_reason

LEVEL = {
    "info": ("info", "note"),
    "warn": ("drifted", "warning"),
    "fail": ("failed", "fault"),
    "block": ("blocked", "holds changes back"),
}
UNKNOWN = ("unknown", "cannot be seen")
ORDER = ("block", "fail", "warn", "unknown", "info")
COUNTED = {
    "block": ("that holds changes back", "that hold changes back"),
    "fail": ("fault", "faults"),
    "warn": ("warning", "warnings"),
    "unknown": ("that cannot be seen", "that cannot be seen"),
    "info": ("note", "notes"),
}
IS_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
# Of one kind: so many different values are told apart, and so many texts.
MAX_CASES, MAX_TEXTS = 24, 2


@dataclass(frozen=True)
class Case:
    """Subjects of which the same was expected and observed, each with what the drawing calls it."""

    subjects: Tuple[Tuple[str, str], ...]
    expected: Any
    observed: Any


@dataclass(frozen=True)
class Row:
    """Findings of one id and level."""

    id: str
    level: str
    icon: str
    words: str
    matter: str
    cases: Tuple[Case, ...]
    count: int
    counted: str
    why: Tuple[str, ...]
    fix: Tuple[str, ...]
    source: str
    has_more_fixes: bool = False
    left_out: int = 0


def kind_of(finding: Mapping[str, Any]) -> str:
    """Its level; ``unknown`` where it is that something could not be seen."""
    if finding["level"] != "info" and unknown_reason(finding["observed"]) is not None:
        return "unknown"
    return str(finding["level"])


def sign_of(finding: Mapping[str, Any]) -> Tuple[str, str]:
    """The sign and the word of its kind."""
    kind = kind_of(finding)
    return UNKNOWN if kind == "unknown" else LEVEL[kind]


def rows(findings: Sequence[Mapping[str, Any]], names: Mapping[str, str]) -> List[Row]:
    """The findings of an area, folded; ``names`` has what the drawing calls a subject."""
    groups: Dict[Tuple[str, str], List[Mapping[str, Any]]] = {}
    for finding in findings:
        groups.setdefault((kind_of(finding), finding["id"]), []).append(finding)
    ordered = sorted(groups.items(), key=lambda item: ORDER.index(item[0][0]))
    return [_row(found, names) for _key, found in ordered]


def _row(found: Sequence[Mapping[str, Any]], names: Mapping[str, str]) -> Row:
    cases: Dict[str, List[Mapping[str, Any]]] = {}
    for finding in found:
        cases.setdefault(json.dumps([finding["expected"], finding["observed"]], sort_keys=True), []).append(finding)
    icon, words = sign_of(found[0])
    made = [Case(_subjects(alike, names), alike[0]["expected"], alike[0]["observed"]) for alike in cases.values()]
    made.sort(key=lambda case: _place(case.subjects[0][0]) if case.subjects else (0, "", []))
    return Row(
        id=found[0]["id"],
        level=found[0]["level"],
        icon=icon,
        words=words,
        matter=subject_matter(found[0]["id"]),
        cases=tuple(made[:MAX_CASES]),
        count=len({finding["subject"] for finding in found}),
        counted=_counted([pair for case in made for pair in case.subjects]),
        why=_texts(found, "why"),
        fix=_texts(found, "fix"),
        source=found[0]["source"],
        has_more_fixes=len({finding["fix"] for finding in found}) > MAX_TEXTS,
        left_out=max(0, len(made) - MAX_CASES),
    )


def _subjects(found: Sequence[Mapping[str, Any]], names: Mapping[str, str]) -> Tuple[Tuple[str, str], ...]:
    subjects = dict.fromkeys(finding["subject"] for finding in found if finding["subject"])
    return tuple((subject, names.get(address_of(subject), "")) for subject in sorted(subjects, key=_place))


def _place(subject: str) -> Tuple[int, str, Any]:
    """Addresses by number (they are hexadecimal), names as people count."""
    address = address_of(subject)
    return (0, address, []) if IS_ADDRESS.fullmatch(address) else (1, "", natural(subject))


def _counted(subjects: Sequence[Tuple[str, str]]) -> str:
    """How many there are, and of what where that is known."""
    kinds, count = {name.split(" ")[0] for _subject, name in subjects}, len(set(subjects))
    if kinds == {"GPU"} or kinds == {"NIC"}:
        return "%d %ss" % (count, kinds.pop())
    return "%d %s" % (count, "in all" if "" in kinds else "devices")


def _texts(found: Sequence[Mapping[str, Any]], key: str) -> Tuple[str, ...]:
    """The different texts of findings that are alike; of many, the first."""
    texts = tuple(dict.fromkeys(finding[key] for finding in found if finding[key]))
    return texts if len(texts) <= MAX_TEXTS else texts[:1]


def counts(findings: Sequence[Mapping[str, Any]]) -> List[Tuple[str, str]]:
    """How many there are of each kind, worst first: the icon, and words."""
    found: Dict[str, int] = {}
    for finding in findings:
        found[kind_of(finding)] = found.get(kind_of(finding), 0) + 1
    rows_of_counts = []
    for kind in ORDER:
        if kind in found:
            icon = UNKNOWN[0] if kind == "unknown" else LEVEL[kind][0]
            rows_of_counts.append((icon, "%d %s" % (found[kind], COUNTED[kind][found[kind] != 1])))
    return rows_of_counts
