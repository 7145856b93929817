# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Results of ``dcgmi diag``: the table, or JSON in the forms of DCGM 2 to 4.

A test that was skipped has not passed: on a GeForce nearly all are, and no GPU is called good for it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Dict, List, Mapping, Optional, Tuple, Union

from .._engine.values import Unknown
from .dcgmi import SIGN, json_within
from .pasted import plain_lines
from .tool_text import Word, clean, said

# Case differs between versions.
_STATUSES = {
    "pass": "Pass", "passed": "Pass", "fail": "Fail", "failed": "Fail", "warn": "Warn", "warning": "Warn",
    "skip": "Skip", "skipped": "Skip", "not run": "Skip", "notrun": "Skip",
}  # fmt: skip
_NAMES = ("DCGM GPU Diagnostic", "DCGM Diagnostic")
_ROW = re.compile(
    r"(Pass|Fail|Warn|Skip|Not Run)(?:\s+-\s+(All|(?:GPU|CPU|Switch)s?:\s*([0-9, ]{1,400})))?", re.IGNORECASE
)
_PER_ENTITY = re.compile(r"((?:GPU|CPU|Switch)\s?[0-9]{1,4}): (Pass|Fail|Warn|Skip|Not Run)", re.IGNORECASE)
_SECTION = re.compile(r"[|+]-{2,8}\s+([A-Za-z ]{1,30}?)\s+-{2,30}\+")
# From DCGM 4 on the label says which GPU it is about.
_NOTE = re.compile(r"(?:Warning|Error|Info)(?:\s*:\s*(?:GPU|CPU|Switch)?\s?([0-9]{1,4}))?", re.IGNORECASE)
_FACTS = ("DCGM Version", "Driver Version Detected", "GPU Device IDs Detected", "EUD Test Version")


@dataclass(frozen=True)
class Result:
    """Of one test: ``entities`` are the ids it is about, empty when it is about all of them or the host."""

    category: str
    test: str
    status: Word
    entities: Tuple[str, ...]
    messages: Tuple[str, ...] = ()


@dataclass(frozen=True)
class Diag:
    """``error`` is why the diagnostic did not run at all, None when it did."""

    results: Tuple[Result, ...]
    error: Optional[str]
    dcgm_version: Word
    driver_version: Word

    def with_status(self, status: str) -> Tuple[Result, ...]:
        """The results that are Pass, Fail, Warn or Skip."""
        return tuple(result for result in self.results if result.status == status)


def parse_dcgmi_diag(text: str) -> Diag:
    text = "\n".join(plain_lines(clean(text), SIGN))
    start = text.find("{")
    if start >= 0 and "+===" not in text:
        data = json_within(text)
        if isinstance(data, Mapping):
            diag = _json_diag(data)
            complaint = next((line.strip()[:300] for line in text[:start].split("\n") if line.startswith("Error")), "")
            return replace(diag, error=complaint) if complaint and not diag.results else diag
        return Diag((), "error: %s" % data, Unknown("not printed"), Unknown("not printed"))
    return _table_diag(text)


def _table_diag(text: str) -> Diag:
    table = _Table()
    for line in text.splitlines():
        table.hear(line.strip()[:500])
    table.end_note()
    results, facts = tuple(table.results), table.facts
    return Diag(
        results,
        None if results else (table.errors[0] if table.errors else "error: no result is printed"),
        said(facts.get("DCGM Version")),
        said(facts.get("Driver Version Detected")),
    )


class _Table:
    """What was heard of a table so far; ``first`` is the place of the first result of the test that we are in."""

    def __init__(self) -> None:
        self.results: List[Result] = []
        self.facts: Dict[str, str] = {}
        self.errors: List[str] = []
        self._category = self._test = self._note = self._about = ""
        self._first = 0

    def hear(self, line: str) -> None:
        section = _SECTION.match(line)
        name, pipe, rest = line.strip("|").partition("|")
        if section:
            self.end_note()
            self._category = section.group(1).strip()
        elif pipe and "|" not in rest and line.startswith("|"):
            self._hear_row(name.strip(), rest)
        elif re.match(r"Error|.*\bcould not\b|.*\bUnable to\b", line):
            self.errors.append(line)

    def _hear_row(self, name: str, rest: str) -> None:
        value, note = rest.strip(), _NOTE.fullmatch(name)
        status, entity = _ROW.fullmatch(value), _PER_ENTITY.fullmatch(value)
        if name or status or entity:
            self.end_note()
        if name in _FACTS:
            self.facts[name] = value
        elif status and not note:
            self._first = len(self.results) if name else self._first
            self._test = name or self._test
            ids = _ids(status.group(3) or "")
            self.results.append(Result(self._category, self._test, _status(status.group(1)), ids))
        elif entity and self._test:
            found = Result(self._category, self._test, _status(entity.group(2)), _ids(entity.group(1)))
            self.results.append(found)
        elif self.results and not name and not self._note and re.fullmatch("[0-9, ]{1,400}", value):
            # A long list of GPUs goes on in the next row.
            last = self.results.pop()
            self.results.append(replace(last, entities=(*last.entities, *_ids(value))))
        elif self.results and value and (note or not name):
            # Words are cut where the row is full; a blank stands before and two behind it.
            self._note += rest[1:-2] if len(rest) > 3 else value
            self._about = (note.group(1) or "") if note else self._about

    def end_note(self) -> None:
        """A note is about the GPU that it names, in its label or in its first words, else about the last result."""
        note, self._note = " ".join(self._note.split()), ""
        if note:
            begins = re.match("GPU ?([0-9]{1,4})\\b", note)
            about = self._about or (begins.group(1) if begins else "")
            here = range(self._first, len(self.results))
            place = next((number for number in here if about in self.results[number].entities), len(self.results) - 1)
            found = self.results[place]
            self.results[place] = replace(found, messages=(*found.messages, note))
        self._about = ""


def _json_diag(data: Mapping[str, Any]) -> Diag:
    found = [data[name] for name in _NAMES if isinstance(data.get(name), Mapping)]
    iterations = data.get("iterations")
    if not found and isinstance(iterations, list) and iterations and isinstance(iterations[-1], Mapping):
        return _json_diag(iterations[-1])
    root: Mapping[str, Any] = found[0] if found else {}
    meta = [place for place in (root, root.get("metadata"), data, data.get("metadata")) if isinstance(place, Mapping)]
    results: List[Result] = []
    for category in _maps(root.get("test_categories")):
        for test in _maps(category.get("tests")):
            rows = [(row, _entities(row)) for row in _maps(test.get("results"))]
            summary = test.get("test_summary")
            rows += [(summary, ())] if not rows and isinstance(summary, Mapping) else []
            names = (str(category.get("category", ""))[:80], str(test.get("name", ""))[:80])
            results += [Result(*names, _status(row.get("status")), ids, _messages(row)) for row, ids in rows]
    runtime = next((str(place[key])[:300] for place in meta for key in _ERRORS if place.get(key)), None)
    error = runtime or (None if results else "error: no result is given")
    return Diag(tuple(results), error, _fact(meta, ("version", "DCGM Version")), _fact(meta, _DRIVER))


_ERRORS = ("runtime_error", "Runtime Error", "System_Error")
_DRIVER = ("Driver Version Detected", "driver_version")


def _fact(places: List[Mapping[str, Any]], keys: Tuple[str, ...]) -> Word:
    return said(next((str(place[key])[:80] for place in places for key in keys if place.get(key)), None))


def _maps(items: Any) -> List[Mapping[str, Any]]:
    return [item for item in items if isinstance(item, Mapping)] if isinstance(items, list) else []


def _entities(row: Mapping[str, Any]) -> Tuple[str, ...]:
    """The ids, which are called gpu_id, gpu_ids or entity_id, as a number, a text or a list."""
    for key in ("gpu_ids", "gpu_id", "entity_id"):
        value = row.get(key)
        if isinstance(value, list):
            return tuple(str(item)[:20] for item in value[:256])
        if isinstance(value, (str, int)) and not isinstance(value, bool):
            return _ids(str(value)[:400])
    return ()


def _ids(words: str) -> Tuple[str, ...]:
    return tuple(re.findall("[0-9]{1,6}", words))


def _messages(row: Mapping[str, Any]) -> Tuple[str, ...]:
    found: List[str] = []
    for key in ("warnings", "warning", "info"):
        items: Union[Any, List[Any]] = row.get(key, [])
        for item in items if isinstance(items, list) else [items]:
            word = item.get("warning") or item.get("warnings") if isinstance(item, Mapping) else item
            found += [str(word)[:500]] if word else []
    return tuple(found)


def _status(word: Any) -> Word:
    text = str(word).strip()[:40]
    return _STATUSES[text.lower()] if text.lower() in _STATUSES else Unknown("not understood: %r" % text)
