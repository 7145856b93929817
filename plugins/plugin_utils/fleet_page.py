# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The page of a run: one HTML file that needs no network, from documents that nobody has to trust.

Every word from a host is escaped by the template engine, also within SVG; the page's policy allows
the one script and the one style sheet that are in it, by their digest, and nothing else.
"""

from __future__ import annotations

import base64
import difflib
import functools
import hashlib
import html
import json
import re
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, Sequence, Tuple

import jinja2
from markupsafe import Markup

from . import fleet_drawing as drawing
from . import fleet_fabric as fabric
from . import fleet_findings as findings_list
from . import fleet_hardware as hardware
from . import fleet_links as links
from . import fleet_topology as topology
from .fleet_facts import fact_rows
from .fleet_files import read_run, safe_name
from .fleet_report import (
    AHEAD,
    GOOD_STATES,
    Document,
    areas_by_urgency,
    by_urgency,
    count_done,
    headline,
    in_words,
    label,
    mode_words,
    next_step,
    one_line,
    open_points,
    summary,
    unknown_reason,
    visible,
)

# Fewer hosts than this are in the page as they are; more are kept folded, so that it opens at once.
LAZY_FROM = 40
# Characters: the details of all hosts, and their raw JSON; what is beyond is in the JSON files.
DETAILS_BUDGET = 10_000_000
RAW_BUDGET = 3_000_000
MAX_ROWS, MAX_VALUE, MAX_DIFF_LINES, MAX_FILE_LINES = 200, 600, 300, 2000
# An area with more findings than these is told in numbers first.
MANY_FINDINGS = 3

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
NEEDS_WORDS = {
    "reload": "needs a reload",
    "restart": "needs a restart",
    "remount": "needs a remount",
    "reboot": "needs a reboot",
    "drain": "needs the host drained",
}


def render(run: Mapping[str, Any], documents: Sequence[Document]) -> str:
    """The page of a run, from its summary and its documents."""
    files = {row["host"]: row["file"] for row in run["hosts"]}
    ordered = by_urgency(documents)
    env = _environment()
    css, script = _source("report.css"), _source("report.js")
    views = [host_view(document, number, files) for number, document in enumerate(ordered)]
    is_lazy = len(views) >= LAZY_FROM
    open_ones = [view for view in views if not view["is_good"]]
    for view in views:
        view["is_open"] = not is_lazy and (len(views) == 1 or (not view["is_good"] and len(open_ones) <= 3))
    _add_details(env, views, ordered, is_lazy)
    areas = sorted({name for document in ordered for name in document["areas"]})
    text = env.get_template("report.html.j2").render(
        run=run,
        hosts=views,
        areas=[(name, one_line(label(name), 40)) for name in areas],
        bar=_bar(run["counts"], len(views)),
        is_lazy=is_lazy,
        bad_count=len(open_ones),
        mode_words=run["did"],
        css=Markup(css),
        script=Markup(script),
        css_digest=_digest(css),
        script_digest=_digest(script),
    )
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def render_folder(folder: Path) -> str:
    """The page of a run from the JSON files in its folder."""
    run, documents, files = read_run(folder)
    return render(summary(run, documents, files), documents)


@functools.lru_cache(maxsize=1)
def _environment() -> jinja2.Environment:
    env = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.globals.update(cells=drawing.cells, share_bar=drawing.share_bar, lanes=drawing.lanes, joined=drawing.joined)
    env.globals.update(short=fabric.short, path_css=fabric.css)
    env.filters["value"] = value
    env.filters["label"] = label
    env.filters["time"] = time_words
    return env


def _shown(text: Any) -> Any:
    """What is printed: controls and bidirectional marks of a text are written out."""
    return visible(text) if isinstance(text, str) and not hasattr(text, "__html__") else text


def _source(name: str) -> str:
    return (Path(__file__).parent / "templates" / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def _add_details(
    env: jinja2.Environment, views: List[Dict[str, Any]], documents: Sequence[Document], is_lazy: bool
) -> None:
    """Details worst first, and raw JSON, each until its budget is used up."""
    template = env.get_template("host.html.j2")
    details_left, raw_left = DETAILS_BUDGET, RAW_BUDGET
    for view, document in zip(views, documents, strict=True):
        raw = json_for_script(document)
        view["raw"] = raw if len(raw) <= raw_left else None
        raw_left -= len(raw) if view["raw"] else 0
        details = template.render(host=view)
        folded = json_for_script(fold(details)) if is_lazy else Markup(details)
        view["details"] = folded if len(folded) <= details_left else None
        details_left -= len(folded) if view["details"] else 0


_TAG = re.compile(r"<(/?)([a-z][a-zA-Z0-9]*)([^<>]*?)(/?)>")
_ATTRIBUTE = re.compile(r'([a-zA-Z][a-zA-Z-]*)(?:="([^"]*)")?')
_VOID = ("br", "img", "hr", "input", "wbr")


def fold(text: str) -> List[Any]:
    """HTML of our own templates as nested lists of tag, attributes and children.

    A browser reads a fleet of them in a moment, and the page's script makes elements of those that
    are looked at, one by one: no text from a host is ever read as HTML.
    """
    root: List[Any] = []
    stack = [root]
    at = 0
    for match in _TAG.finditer(text):
        _add_text(stack[-1], text[at : match.start()])
        at = match.end()
        closing, tag, attributes, empty = match.groups()
        if closing:
            stack.pop()
            continue
        found = {name: html.unescape(content or "") for name, content in _ATTRIBUTE.findall(attributes)}
        element: List[Any] = [tag, found]
        stack[-1].append(element)
        if not empty and tag not in _VOID:
            stack.append(element)
    _add_text(root, text[at:])
    if len(stack) != 1:
        raise ValueError("the template leaves %d elements open" % (len(stack) - 1))
    return root


def _add_text(element: List[Any], text: str) -> None:
    if text.strip() or (text and element[:1] == ["pre"]):
        element.append(html.unescape(text))
    elif text and len(element) > 2:
        element.append(" ")


def json_for_script(data: Any) -> Markup:
    """JSON that cannot end the script element it stands in, nor open a comment there."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True)
    for char in "<>&":
        text = text.replace(char, "\\u%04x" % ord(char))
    return Markup(text)


# --- what the templates show


def host_view(document: Document, number: int, files: Mapping[str, str]) -> Dict[str, Any]:
    """One host for the templates."""
    facts = document["host_facts"]
    hostname = facts.get("hostname")
    uid = "h%d" % number
    judged = links.judgements(document["areas"])
    devices = hardware.devices(facts, judged)
    names = names_of(devices)
    areas = [area_view(name, area, uid, names) for name, area in areas_by_urgency(document)]
    sockets = topology.sockets(facts, document["areas"], devices)
    return {
        "uid": uid,
        "anchor": "host-" + safe_name(document["host"]),
        "name": document["host"] or "(no name)",
        "hostname": hostname if isinstance(hostname, str) and hostname != document["host"] else "",
        "state": document["state"],
        "is_good": document["state"] in GOOD_STATES,
        "headline": headline(document),
        "next_on_top": "" if _is_shown_below(document, next_step(document)) else next_step(document),
        "mode_words": mode_words(document["mode"], count_done(document)),
        "taken": document["taken"],
        "runs": document.get("journal_runs", []),
        "facts": fact_rows(facts, devices),
        "findings": findings_list.rows(document["findings"], names),
        "areas": areas,
        "jumps": jumps(areas, uid, bool(sockets)),
        "cells": {name: cell_view(area) for name, area in document["areas"].items()},
        "sockets": sockets,
        "are_beside": topology.are_small(sockets),
        "nowhere": nowhere(facts, sockets),
        "fabric": fabric.fabric(facts, devices),
        "links": hardware.link_notes(devices, judged),
        "legend": legend(sockets, devices),
        "file": files.get(document["host"], ""),
        "search": search_text(document),
    }


def _is_shown_below(document: Document, sentence: str) -> bool:
    """Whether a card says it anyway."""
    cards = [*document["findings"], *(row for area in document["areas"].values() for row in area["findings"])]
    return any(row["fix"] == sentence for row in cards)


def cell_view(area: Document) -> Dict[str, str]:
    """A cell of the matrix: the state, and how much is behind it."""
    done = sum(step["status"] == "applied" for step in area["steps"])
    ahead = sum(step["status"] in AHEAD for step in area["steps"])
    findings = sum(row["level"] != "info" for row in area["findings"])
    words = [_many(ahead, "step")] if ahead else []
    words += [_many(findings, "finding")] if findings else []
    if done and not words:
        words = ["%d done" % done]
    return {"state": area["state"], "note": ", ".join(words)}


def names_of(devices: Sequence[hardware.Device]) -> Dict[str, str]:
    """What the drawing calls a device, by its address."""
    return {device.address: device.label for device in devices if device.label not in hardware.KINDS.values()}


def jumps(areas: Sequence[Mapping[str, Any]], uid: str, has_topology: bool) -> List[Tuple[str, str, str]]:
    """The parts of a host's section that need a look, and its topology: where, state and words."""
    found = [(area["id"], area["state"], area["label"]) for area in areas if not area["is_quiet"]]
    return found + ([("%s-topology" % uid, "", "topology")] if has_topology else [])


def nowhere(facts: Mapping[str, Any], sockets: Sequence[topology.Socket]) -> str:
    """A sentence where nothing is known of the places of devices."""
    if not sockets or any(node.is_place for socket in sockets for node in socket.nodes):
        return ""
    return (
        "Which socket, NUMA node or switch these hang on was not captured: that takes /sys of the host "
        "(playbooks/capture.yml collects it)."
    )


def legend(sockets: Sequence[topology.Socket], devices: Sequence[hardware.Device]) -> List[Tuple[str, str]]:
    """The keys of a drawing, as far as it needs them."""
    kinds = {cluster.kind for socket in sockets for node in socket.nodes for cluster in node.clusters}
    has_slices = bool(kinds & {"slice", "system"})
    rows = [("slice", "CPUs in a slice"), ("system", "kept for the system"), ("free", "free")]
    found = [(kind, words) for kind, words in rows if has_slices and kind in kinds]
    if any(device.lanes[1] for device in devices):
        found.append(("lanes", "lanes in use, and those besides"))
    states = {device.verdict.state for device in devices}
    return found + [(state, "link " + links.WORDS[state]) for state in links.ORDER if state in states]


def area_view(name: str, area: Document, uid: str, names: Mapping[str, str]) -> Dict[str, Any]:
    open_ones = [row for row in area["findings"] if row["level"] != "info"]
    notes = [row for row in area["findings"] if row["level"] == "info"]
    rows, note_rows = findings_list.rows(open_ones, names), findings_list.rows(notes, names)
    changed, same = compare(area["before"], area["after"])
    return {
        "name": name,
        "label": label(name),
        "id": "%s-%s" % (uid, safe_name(name)),
        "state": area["state"],
        "counts": findings_list.counts(area["findings"]) if len(open_ones) > MANY_FINDINGS else [],
        "findings": rows[:MAX_ROWS],
        "notes": note_rows[:MAX_ROWS],
        "steps": [step_view(step) for step in area["steps"][:MAX_ROWS]],
        "left_out": max(0, len(area["steps"]) - MAX_ROWS) + sum(max(0, len(r) - MAX_ROWS) for r in (rows, note_rows)),
        "changed": changed[:MAX_ROWS],
        "same": same[:MAX_ROWS],
        "is_quiet": area["state"] == "compliant" and not open_ones,
    }


def step_view(step: Document) -> Dict[str, Any]:
    icon, words = STATUS[step["status"]]
    costs = [NEEDS_WORDS[step["needs"]]] if step["needs"] in NEEDS_WORDS else []
    costs += [step["risk"]] if step["risk"] != "safe" else []
    return {
        "id": step["id"],
        "kind": step["kind"],
        "target": step["target"],
        "icon": icon,
        "words": words,
        "before": step["before"],
        "after": step["after"],
        "why": step["why"],
        "source": step["source"],
        "detail": step["detail"],
        "costs": costs,
        "command": " ".join(step.get("argv", ())),
        "diff": file_diff(step["before"], step["after"]) if step["kind"] == "file" else [],
        "file_note": {(True, False): "new file", (False, True): "removed"}.get(
            (step["before"] is None, step["after"] is None), ""
        ),
    }


def file_diff(before: Any, after: Any) -> List[Tuple[str, str]]:
    """The lines of a file that differ, each with "+", "-", " " or "@"."""
    old, new = (text.splitlines()[:MAX_FILE_LINES] if isinstance(text, str) else [] for text in (before, after))
    rows = list(difflib.unified_diff(old, new, n=2, lineterm=""))[2:]
    # A gap between two places is enough; their line numbers tell little.
    shown = [("@", "…") if row[0] == "@" else (row[0], row[1:][:MAX_VALUE]) for row in rows[1:MAX_DIFF_LINES]]
    if len(rows) > MAX_DIFF_LINES:
        shown.append(("@", "%d more lines are in the JSON" % (len(rows) - MAX_DIFF_LINES)))
    return shown


def compare(before: Mapping[str, Any], after: Mapping[str, Any]) -> Tuple[List[Any], List[Any]]:
    """Settings that differ between two observations, as rows of name, before and after; and the same."""
    old, new = dict(flatten(before)), dict(flatten(after))
    names = list(dict.fromkeys([*old, *new]))
    changed = [(name, old.get(name), new.get(name)) for name in names if old.get(name) != new.get(name)]
    same = [(name, new[name]) for name in names if name in new and old.get(name) == new[name]]
    return changed, same


def flatten(data: Any, path: str = "") -> Iterable[Tuple[str, Any]]:
    """Names and values of nested settings; members of a list are named by what tells them apart."""
    if isinstance(data, Mapping) and data and unknown_reason(data) is None:
        for key, item in data.items():
            yield from flatten(item, "%s.%s" % (path, key) if path else str(key))
    elif isinstance(data, list) and any(isinstance(item, (Mapping, list)) for item in data):
        for number, item in enumerate(data):
            yield from flatten(item, "%s[%s]" % (path, _name_of(item) or number))
    elif path:
        yield path, data


def _name_of(item: Any) -> str:
    names = (
        (item.get(key) for key in ("name", "id", "class", "mount", "path", "unit")) if isinstance(item, Mapping) else ()
    )
    return next((name for name in names if isinstance(name, str) and name), "")


def value(data: Any) -> Markup:
    """A value as the page shows it: what is unknown or not there is told apart from any text."""
    reason = unknown_reason(data)
    if reason is not None:
        return Markup('<span class="unk">unknown</span> <bdi>{}</bdi>').format(visible(_clip(reason)))
    if data is None:
        return Markup('<span class="nil">nothing</span>')
    if data == "":
        return Markup('<span class="nil">empty</span>')
    text = data if isinstance(data, str) else in_words(data)
    return Markup("<code><bdi>{}</bdi></code>").format(visible(_clip(text)))


def _clip(text: str) -> str:
    return text if len(text) <= MAX_VALUE else "%s … (%d more characters in the JSON)" % (
        text[:MAX_VALUE], len(text) - MAX_VALUE
    )  # fmt: skip


def search_text(document: Document) -> str:
    """What the filter looks through."""
    words = [document["host"], str(document["host_facts"].get("hostname") or ""), document["state"]]
    words += ["%s %s" % (name, area["state"]) for name, area in document["areas"].items()]
    words += ["%s %s" % (row["id"], row.get("subject", "")) for _area, row in open_points(document)]
    judged = links.judgements(document["areas"])
    words += ["narrow link"] if hardware.link_notes(hardware.devices(document["host_facts"], judged), judged) else []
    return visible(" ".join(words).replace("_", " ").lower())[:1000]


def time_words(text: Any) -> str:
    """A time in UTC as people write it; anything else as it is."""
    if not isinstance(text, str) or len(text) != 20 or text[10] != "T":
        return str(text or "")
    return "%s %s UTC" % (text[:10], text[11:16])


def _many(count: int, one: str) -> str:
    return "%d %s%s" % (count, one, "" if count == 1 else "s")


def _bar(counts: Mapping[str, int], total: int) -> List[Tuple[str, float, float]]:
    """The states as parts of a bar of width 100: state, start and width."""
    parts, x = [], 0.0
    for state, count in counts.items():
        width = 100.0 * count / total
        parts.append((state, round(x, 2), round(width, 2)))
        x += width
    return parts
