# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The document of a host: checked at the door, merged over a run, and put into words.

A document is what ``docs/report.schema.json`` describes.  What a host sends is not trusted:
:func:`normalise` accepts anything and gives a document or None, and nothing after it has to check.
"""

from __future__ import annotations

import math
import re
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from ..module_utils._engine.values import LEVELS, NEEDS, RISKS, STATES, worst

Document = Dict[str, Any]

FORMAT = 1
# The finding about a module that gave no answer (plugin_utils/cut_off.py).
CUT_OFF = "engine.cut-off"
# From the mildest to the strongest: a run that applied anything to a host has applied.
MODES = ("audit", "check", "apply", "revert")
# What became of a step is history; what is still ahead of it is replaced by a later observation.
HAPPENED = ("applied", "undone", "failed", "stuck")
STEP_KINDS = ("file", "value", "run", "reboot")
AHEAD = ("planned", "blocked", "waits", "skipped")
GOOD_STATES = ("compliant", "changed")
# Areas as people read them: what was ordered, the machine with its GPUs, then in the order in which a host is brought
# to its state (_areas/all.py).
AREA_ORDER = (
    "acceptance",
    "platform",
    "kernel_settings",
    "block_queue",
    "xfs_volumes",
    "numa_slices",
    "mysql_isolation",
)
# Deeper than any report of ours; a hostile host must not exhaust the stack of those who read it.
MAX_DEPTH = 24

# Control characters would drive a terminal; bidirectional and invisible ones would make a name lie.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)

_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")


def visible(text: str) -> str:
    """A text in which characters that cannot be seen, or that move others, are written out."""
    return _INVISIBLE.sub(lambda match: "\\u%04x" % ord(match.group()), text)


def one_line(text: Any, limit: int = 200) -> str:
    """A text for one line of a terminal."""
    line = visible(" ".join(str(text).split()))
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def in_words(value: Any) -> str:
    """A value of a step or finding as people read it, on one line."""
    reason = unknown_reason(value)
    if reason is not None:
        return "unknown (%s)" % reason
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ", ".join(in_words(item) for item in value) or "none"
    if isinstance(value, Mapping):
        return ", ".join("%s=%s" % (key, in_words(item)) for key, item in value.items()) or "none"
    return str(value)


def unknown_reason(value: Any) -> Optional[str]:
    """The reason when a value is ``{"unknown": reason}``, else None."""
    if isinstance(value, Mapping) and len(value) == 1 and "unknown" in value:
        return str(value["unknown"])
    return None


def natural(name: str) -> List[Tuple[int, int, str]]:
    """A sort key by which gpu2 comes before gpu10."""
    parts = re.findall(r"[0-9]{1,18}|[^0-9]+|[0-9]+", name)
    return [(0, int(part), "") if part.isascii() and part.isdigit() else (1, 0, part) for part in parts]


# --- at the door


def new_document(host: str, run: str, taken: str, mode: str = "audit") -> Document:
    """A host of which nothing is known yet."""
    return {
        "format": FORMAT,
        "host": host,
        "run": run,
        "taken": taken,
        "mode": mode,
        "state": "unknown",
        "areas": {},
        "findings": [],
        "host_facts": {},
    }


def normalise(report: Any) -> Optional[Document]:
    """The document in what a task gave back, None when it holds no report of our format."""
    if not isinstance(report, Mapping) or not isinstance(report.get("areas"), Mapping):
        return None
    if report.get("format") != FORMAT or isinstance(report.get("format"), bool):
        return None
    document = new_document(*(_text(report.get(key)) for key in ("host", "run", "taken")))
    document["taken"] = document["taken"] if _TIME.fullmatch(document["taken"]) else ""
    document["mode"] = _one_of(MODES, report.get("mode"), "audit")
    document["areas"] = {
        _text(name) or "(no name)": _area(area) for name, area in report["areas"].items() if isinstance(area, Mapping)
    }
    document["findings"] = _findings(report.get("findings"))
    facts = plain(report.get("host_facts"))
    document["host_facts"] = facts if isinstance(facts, dict) else {}
    runs = report.get("journal_runs")
    if isinstance(runs, (list, tuple)) and runs:
        document["journal_runs"] = list(dict.fromkeys(_text(name) for name in runs))
    return settle(document, _one_of(STATES, report.get("state"), "unknown"))


def plain(value: Any, depth: int = 0) -> Any:
    """A value as JSON holds it, whatever it was."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(value)
    if depth >= MAX_DEPTH:
        return "…"
    if isinstance(value, Mapping):
        return {_text(key): plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item, depth + 1) for item in value]
    return _text(str(value))


def _area(area: Mapping[str, Any]) -> Document:
    steps = area.get("steps")
    before, after = plain(area.get("before")), plain(area.get("after"))
    return {
        "state": _one_of(STATES, area.get("state"), "unknown"),
        "steps": [_step(step) for step in steps if _is_step(step)] if isinstance(steps, (list, tuple)) else [],
        "findings": _findings(area.get("findings")),
        "before": before if isinstance(before, dict) else {},
        "after": after if isinstance(after, dict) else {},
    }


def _step(step: Mapping[str, Any], depth: int = 0) -> Document:
    data: Document = {key: _text(step.get(key)) for key in ("id", "kind", "target", "why", "source")}
    data["before"], data["after"] = plain(step.get("before")), plain(step.get("after"))
    data["needs"] = _one_of(NEEDS, step.get("needs"), "nothing")
    data["risk"] = _one_of(RISKS, step.get("risk"), "safe")
    data["mode"] = _permissions(step.get("mode"))
    data["requires"] = _texts(step.get("requires"))
    then = step.get("then")
    pairs = [_texts(pair) for pair in then if _is_pair(pair)] if isinstance(then, (list, tuple)) else []
    if pairs:
        data["then"] = pairs
    undo = step.get("undo")
    data["undo"] = _step(undo, depth + 1) if isinstance(undo, Mapping) and _is_step(undo) and depth < 3 else None
    if step.get("kind") == "run":
        data["argv"] = _texts(step.get("argv"))
        data["stdin"] = _text(step.get("stdin"))
        deadline = step.get("deadline_s")
        data["deadline_s"] = deadline if isinstance(deadline, (int, float)) and 0 < deadline < math.inf else 60.0
    if depth == 0:
        data["status"] = _one_of(HAPPENED + AHEAD, step.get("status"), "planned")
        data["detail"] = _text(step.get("detail"))
    return data


def _is_step(step: Any) -> bool:
    return isinstance(step, Mapping) and isinstance(step.get("kind"), str) and step["kind"] in STEP_KINDS


def _is_pair(pair: Any) -> bool:
    return isinstance(pair, (list, tuple)) and len(pair) == 2


def _permissions(mode: Any) -> int:
    return mode if isinstance(mode, int) and not isinstance(mode, bool) and 0 <= mode <= 0o7777 else 0o644


def _findings(findings: Any) -> List[Document]:
    rows = findings if isinstance(findings, (list, tuple)) else ()
    return [_finding(row) for row in rows if isinstance(row, Mapping)]


def _finding(finding: Mapping[str, Any]) -> Document:
    data: Document = {key: _text(finding.get(key)) for key in ("id", "subject", "why", "fix", "source")}
    data["level"] = _one_of(LEVELS, finding.get("level"), "warn")
    data["expected"], data["observed"] = plain(finding.get("expected")), plain(finding.get("observed"))
    return data


def _text(value: Any) -> str:
    """A text that can be encoded; what is missing is empty."""
    text = "" if value is None else str(value)
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _texts(value: Any) -> List[str]:
    return [_text(item) for item in value] if isinstance(value, (list, tuple)) else []


def _one_of(allowed: Sequence[str], value: Any, default: str) -> str:
    return str(value) if isinstance(value, str) and value in allowed else default


# --- over a run


def merge(old: Optional[Document], new: Document) -> Document:
    """What is known of a host after one more report.

    What was found first, what was done, and what is now: steps that were taken stay, steps that
    were still ahead give way to the newer plan, and the state is that of the newest observation.
    """
    if old is None:
        return settle(dict(new), new["state"])
    document = dict(new)
    areas = dict(old["areas"])
    for name, area in new["areas"].items():
        areas[name] = merge_area(areas[name], area, new["mode"]) if name in areas else area
    document["areas"] = areas
    document["mode"] = max(old["mode"], new["mode"], key=MODES.index)
    # A host that reports has answered.
    document["findings"] = [row for row in old["findings"] if row["id"] not in ("fleet.unreachable", CUT_OFF)]
    document["findings"] += [row for row in new["findings"] if row not in document["findings"]]
    document["host_facts"] = new["host_facts"] or old["host_facts"]
    runs = old.get("journal_runs", []) + new.get("journal_runs", [])
    if runs:
        document["journal_runs"] = list(dict.fromkeys(runs))
    return settle(document, new["state"])


def merge_area(old: Document, new: Document, mode: str) -> Document:
    """An area after one more report, whose mode is given."""
    done = [step for step in old["steps"] if step["status"] in HAPPENED and step not in new["steps"]]
    kept = [row for row in old["findings"] if _outlives(row, new) and row not in new["findings"]]
    return {
        "state": _state_after(old, new, mode, done),
        "steps": done + new["steps"],
        "findings": kept + new["findings"],
        "before": old["before"] or new["before"],
        "after": new["after"],
    }


def _outlives(finding: Mapping[str, Any], new: Document) -> bool:
    """Whether a finding about the run itself still holds; an observation cannot repeat it."""
    if not finding["id"].startswith("engine."):
        return False
    return finding["level"] == "info" or new["state"] not in GOOD_STATES


def _state_after(old: Document, new: Document, mode: str, done: Sequence[Document]) -> str:
    state: str = new["state"]
    if state == "compliant":
        return "changed" if any(step["status"] == "applied" for step in done) else "compliant"
    if mode in ("apply", "revert") or state == "changed":
        return state
    # An audit calls it drift when a change was put back, or is held back; the run knows better.
    held = not any(step["status"] == "planned" for step in new["steps"])
    if old["state"] in ("rolled_back", "failed") or (old["state"] == "blocked" and held):
        return worst([old["state"], state])
    return state


def with_finding(document: Document, finding: Mapping[str, Any]) -> Document:
    """The document with one more finding about the host as a whole; a same one is replaced."""
    row = _finding(finding)
    others = [old for old in document["findings"] if (old["id"], old["subject"]) != (row["id"], row["subject"])]
    return settle(dict(document, findings=[*others, row]), document["state"])


def without_findings(document: Document, names: Sequence[str]) -> Document:
    """The document without findings of these ids about the host as a whole."""
    kept = [row for row in document["findings"] if row["id"] not in names]
    if len(kept) == len(document["findings"]):
        return document
    return settle(dict(document, findings=kept), "unknown")


def settle(document: Document, given: str) -> Document:
    """The document with the state of its worst part; a host without any part keeps what is given."""
    states = [area["state"] for area in document["areas"].values()]
    states += [_state_of_host_finding(row) for row in document["findings"]]
    document["state"] = worst(states) if states else given
    return document


def _state_of_host_finding(finding: Mapping[str, Any]) -> str:
    if finding["level"] == "info":
        return "compliant"
    if unknown_reason(finding["observed"]) is not None:
        return "unknown"
    return {"warn": "compliant", "fail": "failed", "block": "blocked"}[finding["level"]]


# --- hosts without a report


def not_reached() -> Document:
    """The finding about a host that the run ended before."""
    return {
        "id": "fleet.not-reached",
        "level": "warn",
        "subject": "run",
        "expected": "a report",
        "observed": {"unknown": "the run ended before this host's turn"},
        "why": "too many hosts failed before it, or the run was cut off",
        "fix": "mend the failed hosts and run again, with --limit for these",
        "source": "ansible-core",
    }


def same_name(other: str) -> Document:
    """The finding about a capture that has the name of another."""
    return {
        "id": "fleet.same-name",
        "level": "info",
        "subject": other,
        "expected": "a name for each capture",
        "observed": "another capture of this run calls itself the same",
        "why": "they are kept apart by the names of their files; they may be of two hosts, or of one at two times",
        "fix": "take captures with playbooks/capture.yml, which gives them the names of the inventory",
        "source": "capture.json",
    }


def bad_report(message: str) -> Document:
    """The finding about a report that cannot be read."""
    return {
        "id": "fleet.bad-report",
        "level": "fail",
        "subject": "report",
        "expected": "a report of format %d" % FORMAT,
        "observed": {"unknown": message},
        "why": "what came back is not a report that this version reads, so nothing is known of the host",
        "fix": "use the same version of the collection everywhere; run again with -vvv to see what came back",
        "source": "docs/report.schema.json",
    }


# --- in words


def by_urgency(documents: Iterable[Document]) -> List[Document]:
    """Documents with the worst first; equal ones by how much is left to do, then by name."""
    return sorted(documents, key=lambda d: (-STATES.index(d["state"]), -len(open_points(d)), natural(d["host"])))


def open_points(document: Document) -> List[Tuple[str, Document]]:
    """Steps still ahead and findings that ask for something, each with its area.

    A step that a finding holds back, or that waits for such a step, follows from the finding and is no point of its own.
    """
    points = [("", row) for row in document["findings"] if row["level"] != "info"]
    for name, area in areas_by_urgency(document):
        points += [(name, row) for row in area["findings"] if row["level"] != "info"]
        points += [(name, step) for step in area["steps"] if step["status"] in AHEAD and not _follows(step, area)]
    return points


def _follows(step: Mapping[str, Any], area: Mapping[str, Any]) -> bool:
    """Whether a step is not done for the sake of a finding beside it (engine.sort_out begins its reason with the id)."""
    held = step["status"] == "blocked" and any(
        step["detail"].startswith(row["id"] + ": ") for row in area["findings"] if row["level"] == "block"
    )
    return held or step["status"] == "skipped"


def areas_by_urgency(document: Document) -> List[Tuple[str, Document]]:
    areas: Dict[str, Document] = document["areas"]
    return sorted(areas.items(), key=lambda item: (-STATES.index(item[1]["state"]), area_place(item[0])))


def area_place(name: str) -> Tuple[int, str]:
    """Where an area stands among others; those of others' making come last, by name."""
    return (AREA_ORDER.index(name) if name in AREA_ORDER else len(AREA_ORDER), name)


def count_states(documents: Iterable[Document]) -> Dict[str, int]:
    """How many hosts are in each state, worst first, without those that nobody is in."""
    counts = dict.fromkeys(reversed(STATES), 0)
    for document in documents:
        counts[document["state"]] += 1
    return {state: count for state, count in counts.items() if count}


def label(name: str) -> str:
    """A state or an area as people read it."""
    return name.replace("_", " ")


def headline(document: Document) -> str:
    """What is the matter with a host, in one sentence, and how much more there is."""
    words = cause(document, "%s done" % _many(count_done(document), "change"))
    more = len(open_points(document)) - 1
    if document["state"] in GOOD_STATES or more <= 0 or any(map(_is_of_host, document["findings"])):
        return words
    return "%s (and %d more)" % (words, more)


def _is_of_host(finding: Mapping[str, Any]) -> bool:
    return bool(finding["level"] != "info")


def cause(document: Document, changed: str = "changed") -> str:
    """What is the matter with a host, in one sentence: equal for hosts that ail from the same.

    :param changed: how a host is called on which something was done.
    """
    for finding in document["findings"]:
        if _is_of_host(finding) and _state_of_host_finding(finding) == document["state"]:
            return _sentence("", finding)
    state = document["state"]
    worst_areas = [(name, area) for name, area in areas_by_urgency(document) if area["state"] == state]
    if state in GOOD_STATES:
        warnings = open_points(document)
        words = "as wanted" if state == "compliant" else "%s, and as wanted now" % changed
        if warnings:
            words += ", with %s: %s" % (_many(len(warnings), "warning"), _sentence(*warnings[0]))
        return words if document["areas"] else "nothing was looked at"
    for name, area in worst_areas:
        rows = _reasons(area, state)
        rows += [step for step in area["steps"] if step["status"] in AHEAD + ("failed", "stuck")]
        if rows:
            return _sentence(name, rows[0])
    return ", ".join(label(name) for name, _area in worst_areas)


def next_step(document: Document) -> str:
    """What to do about a host, in one sentence; empty when there is nothing."""
    state = document["state"]
    for finding in document["findings"]:
        if _state_of_host_finding(finding) == state and finding["fix"] and state not in GOOD_STATES:
            return str(finding["fix"])
    areas = [(name, area) for name, area in areas_by_urgency(document) if area["state"] == state]
    if state in GOOD_STATES:
        return ""
    if state == "drifted":
        return _correct_drift(document, areas)
    if state == "pending_reboot":
        count = sum(step["status"] == "waits" for _name, area in areas for step in area["steps"])
        return "reboot it when that suits: %s true after the next boot" % _many(
            count, "setting becomes", "settings become"
        )
    for _name, area in areas:
        for row in _reasons(area, state):
            if row["fix"]:
                return str(row["fix"])
        for step in area["steps"]:
            if step["status"] in ("blocked", "failed", "stuck") and step["detail"]:
                return str(step["detail"])
    return "see its page section"


def _reasons(area: Mapping[str, Any], state: str) -> List[Mapping[str, Any]]:
    """Findings that can be the reason for the state of an area, the worst first."""
    rows = _worst_first(area["findings"])
    # What holds steps back makes the area blocked, also where it is that something could not be seen.
    return [row for row in rows if _speaks_for(row, state) or (state == "blocked" and row["level"] == "block")]


def _worst_first(findings: Iterable[Mapping[str, Any]]) -> List[Mapping[str, Any]]:
    """Findings that ask for something, by their level."""
    rows = [row for row in findings if row["level"] != "info"]
    return sorted(rows, key=lambda row: -LEVELS.index(row["level"]))


def _speaks_for(finding: Mapping[str, Any], state: str) -> bool:
    """Whether a finding can be the reason for the state."""
    is_unknown = unknown_reason(finding["observed"]) is not None
    return is_unknown if state == "unknown" else not is_unknown


def _correct_drift(document: Document, areas: Sequence[Tuple[str, Document]]) -> str:
    names = ", ".join(label(name) for name, _area in areas)
    mode = document["mode"]
    if mode == "check":
        return "run again without --check to correct %s" % names
    if mode == "apply":
        return "run site.yml again for %s; if it drifts again, something else sets it" % names
    if mode == "revert":
        return "nothing, if the originals are what you want; site.yml tunes it again"
    return "run site.yml to correct %s" % names


def _sentence(area: str, row: Mapping[str, Any]) -> str:
    where = label(area) + ": " if area else ""
    if "status" in row:
        return where + step_sentence(row)
    if row["id"] == "fleet.bad-input":
        # It begins with the variable; a line of a terminal is not to end before the reason.
        return in_words(row["observed"])
    if row["id"] == "fleet.task-failed":
        return "%s: %s" % (row["subject"], in_words(row["observed"]))
    if row["id"] in ("fleet.unreachable", "fleet.no-entry"):
        # What ssh or sudo said is long and names addresses.
        return "%s: %s" % (row["id"].split(".", 1)[1].replace("-", " "), row["why"])
    if row["id"].startswith("fleet."):
        return "%s: %s" % (row["id"].split(".", 1)[1].replace("-", " "), unknown_reason(row["observed"]) or row["why"])
    if row["id"] in ("engine.step-refused", "engine.not-confirmed"):
        # What the host said is the reason; that the run put things back is the state's own word.
        verb = (
            "the host refused it" if row["id"] == "engine.step-refused" else "the host did not take it, it still shows"
        )
        return "%s%s: %s: %s" % (where, row["subject"], verb, in_words(row["observed"]))
    return "%s%s: %s" % (where, row["subject"], row["why"])


def step_sentence(row: Mapping[str, Any]) -> str:
    """What a step is about: how the value differs, or what became of it."""
    if row["status"] in ("failed", "stuck") or row["kind"] == "file":
        verb = {"planned": "differs", "waits": "waits for a reboot"}.get(row["status"], row["status"])
        return "%s %s%s" % (row["target"], verb, ": " + row["detail"] if row["detail"] else "")
    if row["kind"] != "value":
        # Its before and after are names of states; the reason says what is to be done.
        return "%s: %s" % (row["target"], row["detail"] or row["why"])
    return "%s is %s, wanted %s" % (row["target"], in_words(row["before"]), in_words(row["after"]))


def _many(count: int, one: str, more: str = "") -> str:
    return "%d %s" % (count, one if count == 1 else more or one + "s")


# --- the run


def count_done(document: Document) -> int:
    """How many changes stand that this run made."""
    return sum(step["status"] == "applied" for area in document["areas"].values() for step in area["steps"])


def mode_words(mode: str, count: int, is_known: bool = True) -> str:
    """What a run did to a host, from its mode and the number of changes that it made; ``is_known``: these are all."""
    if mode in ("audit", "check"):
        return "audited, nothing changed" if mode == "audit" else "dry run, nothing changed"
    return "%s, %s" % ("applied" if mode == "apply" else "reverted", _changes(count, is_known))


def _changes(count: int, is_known: bool) -> str:
    if not is_known:
        return "cut off: what it changed is in the journal of the host"
    return _many(count, "change") if count else "nothing changed"


def is_all_known(document: Document) -> bool:
    """Whether each run that changes the host told what it did."""
    rows = document["findings"] + [row for area in document["areas"].values() for row in area["findings"]]
    return document["mode"] in ("audit", "check") or all(row["id"] != CUT_OFF for row in rows)


# What a playbook of ours is for: a host in order tells an apply from an audit by nothing.
PLAYBOOKS = {
    "site.yml": "applied",
    "audit.yml": "audited",
    "adopt.yml": "written down",
    "accept.yml": "compared with the order",
    "revert.yml": "reverted",
}


def run_words(playbook: str, is_check: bool, mode: str, count: int, is_known: bool = True) -> str:
    """What a run did, in the words of what people started."""
    verb = PLAYBOOKS.get(playbook)
    if verb is None:
        return mode_words("check" if is_check else mode, count, is_known)
    if is_check and verb in ("applied", "reverted"):
        return "dry run, nothing changed" if verb == "applied" else "dry run of a revert, nothing changed"
    return "%s, %s" % (verb, _changes(count, is_known))


def is_host(document: Document) -> bool:
    """Whether it is about a host: what a lot lacks as a whole is told as a report, too, and counts as none."""
    return "order" not in document["host_facts"]


def summary(run: Mapping[str, Any], documents: Sequence[Document], files: Mapping[str, str]) -> Document:
    """What ``run.json`` holds: the run, and each host in a line, worst first; ``others`` has what is no host."""
    ordered = by_urgency(documents)
    hosts = [document for document in ordered if is_host(document)]
    mode = max((d["mode"] for d in documents), key=MODES.index, default="audit")
    changes = sum(count_done(document) for document in documents)
    is_known = all(map(is_all_known, documents))
    return {
        "format": FORMAT,
        "run": run.get("run", ""),
        "started": run.get("started"),
        "finished": run.get("finished"),
        "playbook": run.get("playbook", ""),
        "mode": mode,
        "did": run_words(run.get("playbook", ""), bool(run.get("check")), mode, changes, is_known),
        "counts": count_states(hosts),
        "changes": changes,
        "hosts": [_in_a_line(document, files) for document in hosts],
        "others": [_in_a_line(document, files) for document in ordered if not is_host(document)],
    }


def _in_a_line(document: Document, files: Mapping[str, str]) -> Document:
    return {
        "host": document["host"],
        "file": files.get(document["host"], ""),
        "state": document["state"],
        "mode": document["mode"],
        "areas": {name: area["state"] for name, area in document["areas"].items()},
        "headline": one_line(headline(document), 400),
        "cause": one_line(cause(document), 400),
        "warnings": len(open_points(document)) if document["state"] in GOOD_STATES else 0,
        "next": one_line(next_step(document), 400),
    }
