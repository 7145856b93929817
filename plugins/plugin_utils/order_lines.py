# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lines of an acceptance: one thing that was ordered, what was delivered of it, and who says so.

What a host or a capture says is not trusted: whatever is not of the expected type counts as unknown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

# From the mildest to the gravest: a line has the gravest verdict of its parts.
VERDICTS = ("ok", "extra", "unknown", "short", "different")
# Share by which a size may be below what was ordered: drivers keep some for themselves (errata A4, R01).
TOLERANCE = 0.02
MAX_ROWS = 1000
MAX_TEXT = 200
MAX_NAMED = 8

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Line:
    """One line of an acceptance.

    ``evidence`` says which source said so, ``words`` what is not as ordered, ``devices`` where.
    """

    item: str
    ordered: str
    delivered: str
    verdict: str
    evidence: tuple[str, ...] = ()
    words: str = ""
    kind: str = ""
    devices: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise ValueError("line %s: verdict %r" % (self.item, self.verdict))


class Judged(NamedTuple):
    """What was found of one device: the verdict, what is there in words, and why it is not as ordered."""

    verdict: str
    shown: str
    words: str = ""
    evidence: tuple[str, ...] = ()


NOT_SEEN = Judged("unknown", "not seen", "it could not be seen")


class Device(NamedTuple):
    """A device with the name by which people find it."""

    label: str
    row: Row


# --- reading what a host says


def rows(hardware: Row, key: str) -> list[Row] | None:
    """The rows of a list; None when the host could not see them."""
    found = hardware.get(key)
    if not isinstance(found, (list, tuple)):
        return None
    return [row for row in found if isinstance(row, Mapping)][:MAX_ROWS]


def part(hardware: Row, key: str) -> Row:
    found = hardware.get(key)
    return found if isinstance(found, Mapping) else {}


def text(row: Row, key: str) -> str:
    """A text on one line, empty when it is not known."""
    found = row.get(key)
    return " ".join(found.split())[:MAX_TEXT] if isinstance(found, str) else ""


def number(row: Row, key: str) -> float | None:
    """A number that can be true; None when it is not known."""
    found = row.get(key)
    if isinstance(found, bool) or not isinstance(found, (int, float)):
        return None
    is_sane = (isinstance(found, int) or math.isfinite(found)) and 0 <= found < 2**63
    return float(found) if is_sane else None


def size(row: Row, key: str) -> float | None:
    """A number that is never 0 in truth."""
    return number(row, key) or None


def devices(hardware: Row, key: str, *labels: str) -> list[Device] | None:
    """The devices of a kind, each with the first of these labels that is known."""
    found = rows(hardware, key)
    if found is None:
        return None
    return [
        Device(next((text(row, label) for label in labels if text(row, label)), "%s %d" % (key, at)), row)
        for at, row in enumerate(found)
    ]


# --- words


def figure(value: float) -> str:
    return "%d" % value if value == int(value) else "%.6g" % value


def memory_words(mib: float) -> str:
    return "%s GiB" % figure(mib / 1024) if mib % 1024 == 0 else "%s MiB" % figure(mib)


def mib_words(mib: float) -> str:
    return "%s MiB" % figure(mib)


def disk_words(size_bytes: float) -> str:
    return "%.4g TB" % (size_bytes / 1e12) if size_bytes >= 1e12 else "%.4g GB" % (size_bytes / 1e9)


def counted(texts: Iterable[str]) -> str:
    """``7 × 81559 MiB, 1 × 77800 MiB``"""
    counts: dict[str, int] = {}
    for one in texts:
        counts[one] = counts.get(one, 0) + 1
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    shown = ["%d × %s" % (count, one) for one, count in ordered[:MAX_NAMED]]
    more = ["and %d other" % (len(ordered) - MAX_NAMED)] if len(ordered) > MAX_NAMED else []
    return ", ".join(shown + more) or "none"


def named(labels: Sequence[str], most: int = MAX_NAMED) -> str:
    more = " and %d more" % (len(labels) - most) if len(labels) > most else ""
    return ", ".join(labels[:most]) + more


def several(count: int, one: str, more: str = "") -> str:
    return "%d %s" % (count, one if count == 1 else more or one + "s")


def gravest(verdicts: Iterable[str]) -> str:
    return max(verdicts, key=VERDICTS.index, default="ok")


def following(judge: Callable[[Row], Judged], is_other: Callable[[Row], bool]) -> Callable[[Row], Judged]:
    """The judge of what comes with a model: what is wrong since another one was delivered says so."""

    def judged(row: Row) -> Judged:
        found = judge(row)
        if found.verdict not in ("short", "different", "extra") or not is_other(row):
            return found
        return found._replace(words="%s (follows from the model line)" % found.words)

    return judged


# --- lines over several devices


def line_of(
    item: str, ordered: str, found: Sequence[Device], judge: Callable[[Row], Judged], kind: str, each: str = ""
) -> Line:
    """One line over devices that were ordered as the same: those that are not are named."""
    judged = [(device.label, judge(device.row)) for device in found]
    reasons: dict[str, list[str]] = {}
    for label, one in judged:
        if one.words:
            reasons.setdefault(one.words, []).append(label)
    evidence = list(dict.fromkeys(source for _label, one in judged for source in one.evidence))
    return Line(
        item,
        ordered + each,
        counted(one.shown for _label, one in judged),
        gravest(one.verdict for _label, one in judged),
        tuple(evidence[:4]) + (("and %d more" % (len(evidence) - 4),) if len(evidence) > 4 else ()),
        "; ".join(_reason(words, labels, len(judged)) for words, labels in list(reasons.items())[:MAX_NAMED]),
        kind,
        tuple(label for label, one in judged if one.verdict != "ok"),
    )


def _reason(words: str, labels: Sequence[str], of: int) -> str:
    if len(labels) == of and of > 1:
        return "all %d: %s" % (of, words)
    return "%s: %s" % (named(labels), words) if of > 1 else words


def count_line(item: str, ordered: int, found: Sequence[Device] | None, kind: str, source: str) -> Line:
    """How many there are of what was ordered."""
    if found is None:
        return Line(item, str(ordered), "not seen", "unknown", (source,), "they could not be seen", kind)
    missing = ordered - len(found)
    verdict = "short" if missing > 0 else "extra" if missing < 0 else "ok"
    words = "%d of %d %s missing" % (missing, ordered, "is" if missing == 1 else "are") if missing > 0 else ""
    return Line(item, str(ordered), str(len(found)), verdict, (source,), words, kind)


def titles(kind: str, names: Sequence[str]) -> list[str]:
    """What the groups of an order are called, each in its own way."""
    if len(names) == 1:
        return [kind]
    found = ["%s (%s)" % (kind, name) if names.count(name) == 1 and name else "" for name in names]
    return [title or "%s %d" % (kind, at + 1) for at, title in enumerate(found)]


def one_line(item: str, ordered: str, judged: Judged, kind: str) -> Line:
    return Line(item, ordered, judged.shown, judged.verdict, judged.evidence, judged.words, kind)


def at_least(
    want: float, words: Callable[[float], str], have: float | None, source: str, more_is: str = "extra"
) -> Judged:
    """A size that may be 2 percent less; ``more_is`` says what clearly more counts as."""
    if have is None:
        return NOT_SEEN._replace(evidence=(source,))
    if have < want * (1 - TOLERANCE):
        less = "%.2g percent less than ordered" % (100 * (1 - have / want))
        return Judged("short", words(have), less, (source,))
    if have > want * (1 + TOLERANCE) and more_is != "ok":
        return Judged(more_is, words(have), "more than ordered", (source,))
    return Judged("ok", words(have), "", (source,))


def not_below(want: float, words: Callable[[float], str], have: float | None, source: str, why: str = "") -> Judged:
    """A figure that must not be below what was ordered, without tolerance; more is in order."""
    if have is None:
        return NOT_SEEN._replace(evidence=(source,))
    if have < want:
        return Judged("short", words(have), why or "less than ordered", (source,))
    return Judged("ok", words(have), "", (source,))


# --- which of the delivered devices stand for which of the ordered


def shared_out(
    counts: Sequence[int], found: Sequence[Device], fit: Callable[[int, Row], int]
) -> tuple[list[list[Device]], list[Device]]:
    """The devices for each group of an order, and those left over.

    Each device goes to the group that it fits best and that still has room; one that fits none takes the
    place of what is missing, so that the page can name what came instead.
    """
    groups: list[list[int]] = [[] for _count in counts]
    fits = [[fit(group, device.row) for group in range(len(counts))] for device in found]
    left = list(range(len(found)))
    for level in sorted({score for scores in fits for score in scores}, reverse=True):
        for at in list(left):
            for group, count in enumerate(counts):
                if fits[at][group] >= level and len(groups[group]) < count:
                    groups[group].append(at)
                    left.remove(at)
                    break
    return [[found[at] for at in sorted(group)] for group in groups], [found[at] for at in left]
