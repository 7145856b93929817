# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Results of ``dcgmi diag``: the table, or JSON in the forms of DCGM 2 to 4.

A test that was skipped has not passed: on a GeForce nearly all are, and no GPU is called good for it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, List, Mapping, Optional, Tuple, Union

from .._engine.values import Unknown
from .tool_text import Word, clean, load_json, said

# Case differs between versions.
_STATUSES = {"pass": "Pass", "fail": "Fail", "warn": "Warn", "skip": "Skip", "not run": "Skip", "notrun": "Skip"}
_NAMES = ("DCGM GPU Diagnostic", "DCGM Diagnostic")
_ROW = re.compile(
    r"(Pass|Fail|Warn|Skip|Not Run)(?:\s+-\s+(All|(?:GPU|CPU|Switch)s?:\s*([0-9, ]{1,400})))?", re.IGNORECASE
)
_PER_ENTITY = re.compile(r"((?:GPU|CPU|Switch)\s?[0-9]{1,4}): (Pass|Fail|Warn|Skip|Not Run)", re.IGNORECASE)
_SECTION = re.compile(r"[|+]-{2,8}\s+([A-Za-z ]{1,30}?)\s+-{2,30}\+")
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
    text = clean(text)
    start = text.find("{")
    if start >= 0 and "+===" not in text:
        data = load_json(text[start:])
        if isinstance(data, Unknown):
            data = load_json(text[start : text.rfind("}") + 1])
        if isinstance(data, Mapping):
            return _json_diag(data)
        return Diag((), "error: %s" % data, Unknown("not printed"), Unknown("not printed"))
    return _table_diag(text)


def _table_diag(text: str) -> Diag:
    results: List[Result] = []
    facts = {}
    errors: List[str] = []
    category = test = ""
    for line in text.splitlines():
        line = line.strip()[:500]
        section = _SECTION.match(line)
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if section:
            category = section.group(1).strip()
        elif len(cells) == 2 and line.startswith("|"):
            name, value = cells
            status, entity = _ROW.fullmatch(value), _PER_ENTITY.fullmatch(value)
            if name in _FACTS:
                facts[name] = value
            elif status and name not in ("Warning", "Error", "Info"):
                test = name or test
                results.append(Result(category, test, _status(status.group(1)), _ids(status.group(3) or "")))
            elif entity and test:
                results.append(Result(category, test, _status(entity.group(2)), _ids(entity.group(1))))
            elif results and not name and re.fullmatch("[0-9, ]{1,400}", value):
                # A long list of GPUs goes on in the next row.
                last = results.pop()
                every = (*last.entities, *_ids(value))
                results.append(Result(last.category, last.test, last.status, every, last.messages))
            elif results and value and name not in ("Result", "Diagnostic"):
                last = results.pop()
                every = (*last.messages, value)
                results.append(Result(last.category, last.test, last.status, last.entities, every))
        elif re.match(r"Error|.*\bcould not\b|.*\bUnable to\b", line):
            errors.append(line)
    return Diag(
        tuple(results),
        None if results else (errors[0] if errors else "error: no result is printed"),
        said(facts.get("DCGM Version")),
        said(facts.get("Driver Version Detected")),
    )


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
