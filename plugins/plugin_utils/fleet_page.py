# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The pages of a run: HTML that needs no network, from documents that nobody has to trust.

The hosts of a small fleet stand in the one page with all that is known of them, so that it can be mailed. Of a larger
fleet the page has the table, and each host a page of its own beside it (docs/decisions/0011).

Every word from a host is escaped by the template engine, also within SVG; a page's policy allows the one script and the
one style sheet that are in it, by their digest, and nothing else.
"""

from __future__ import annotations

import base64
import difflib
import functools
import hashlib
import json
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Sequence, Tuple, Union

import jinja2
from markupsafe import Markup

from . import fleet_drawing as drawing
from . import fleet_fabric as fabric
from . import fleet_findings as findings_list
from . import fleet_hardware as hardware
from . import fleet_icons as icons
from . import fleet_links as links
from . import fleet_topology as topology
from .fleet_causes import STATUS, Cause, causes, key_of
from .fleet_facts import fact_rows
from .fleet_files import HOSTS_FOLDER, PAGE_FILE, read_run, safe_name
from .fleet_report import (
    AHEAD,
    GOOD_STATES,
    Document,
    area_place,
    areas_by_urgency,
    by_urgency,
    count_done,
    headline,
    in_words,
    is_all_known,
    is_host,
    label,
    mode_words,
    next_step,
    one_line,
    open_points,
    summary,
    unknown_reason,
    visible,
)

# Characters of hosts' details with their JSON: with this much in it, a page stays below 3 MB. It is some 25 hosts with
# eight GPUs each, or a hundred small ones.
ONE_PAGE = 2_300_000
MAX_ROWS, MAX_VALUE, MAX_DIFF_LINES, MAX_FILE_LINES = 200, 600, 300, 2000
# Areas that have a column; there are seven of ours.
MAX_COLUMNS = 9
# Causes above the table, and hosts that are named with each.
MAX_CAUSES, MAX_NAMED = 6, 4
# Characters of a host that the filter looks through, and of its sentence in the table.
MAX_SEARCH, MAX_SENTENCE = 1500, 240
# What so many hosts have alike is made once.
SAME = 256
# An area with more findings than these is told in numbers first.
MANY_FINDINGS = 3
# What the page of a fleet needs to know of a host, besides its details.
ROW = ("anchor", "name", "state", "is_good", "headline", "what", "cells", "search", "uid", "is_host")

NEEDS_WORDS = {
    "reload": "needs a reload",
    "restart": "needs a restart",
    "remount": "needs a remount",
    "reboot": "needs a reboot",
    "drain": "needs the host drained",
}


def pages(run: Mapping[str, Any], documents: Sequence[Document]) -> Iterator[Tuple[str, str]]:
    """The pages of a run, each with its path below the run's folder, from its summary and its documents.

    The page of the fleet is the last: what it leads to is there by then.
    """
    files = {row["host"]: row["file"] for row in (*run["hosts"], *run["others"])}
    ordered = by_urgency(documents)
    rows: List[Dict[str, Any]] = []
    size, is_apart = 0, False
    for number, document in enumerate(ordered):
        rows.append(_row(document, number, files))
        # A host's own page leads to its file.
        rows[-1]["raw"] = "" if is_apart else json_for_script(document)
        size += len(rows[-1]["details"]) + len(rows[-1]["raw"])
        if not is_apart and size > ONE_PAGE and len(ordered) > 1:
            is_apart = True
            yield from (_apart(run, row) for row in rows)
        elif is_apart:
            yield _apart(run, rows[-1])
    open_ones = [row for row in rows if not row["is_good"]]
    for row in rows:
        row["is_open"] = len(rows) == 1 or (not row["is_good"] and len(open_ones) <= 3)
    yield PAGE_FILE, _page(run, rows, ordered)


def _row(document: Document, number: int, files: Mapping[str, str]) -> Dict[str, Any]:
    """What the page of the fleet needs to know of a host, and its details."""
    view = host_view(document, number)
    return {
        **{key: view[key] for key in ROW},
        "file": files.get(document["host"], ""),
        "details": Markup(_environment().get_template("host.html.j2").render(host=view)),
        "link": "",
    }


def _apart(run: Mapping[str, Any], row: Dict[str, Any]) -> Tuple[str, str]:
    """The page of one host of a fleet; its row keeps the link to it alone."""
    row["link"] = "%s/%s.html" % (HOSTS_FOLDER, safe_name(row["name"]))
    page = _page(run, [{**row, "raw": "", "is_open": True}], [], above="../")
    row["details"] = row["raw"] = ""
    return row["link"], page


def pages_of_folder(folder: Path) -> Iterator[Tuple[str, str]]:
    """The pages of a run from the JSON files in its folder."""
    run, documents, files = read_run(folder)
    return pages(summary(run, documents, files), documents)


def _page(
    run: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], documents: Sequence[Document], above: str = ""
) -> str:
    """A page; with the way to the folder above it, that of one host of a fleet."""
    own = [document for document in documents if is_host(document)]
    names = sorted({name for document in own for name in document["areas"]}, key=area_place)
    found = causes(own)
    css = _source("report.css") + ("" if above else icons.masks())
    script = "" if above else _source("report.js")
    text = _environment().get_template("report.html.j2").render(
        run=run,
        rows=rows,
        hosts=[row for row in rows if row["is_host"]],
        above=above,
        fleet_page=PAGE_FILE,
        areas=[(name, one_line(label(name), 40)) for name in names[:MAX_COLUMNS]],
        causes=[cause_view(cause, rows) for cause in found[:MAX_CAUSES]],
        more_causes=len(found) - MAX_CAUSES,
        bar=_bar(run["counts"]),
        bad_count=sum(count for state, count in run["counts"].items() if state not in GOOD_STATES),
        mode_words=run["did"],
        symbols=icons.symbols(),
        css=Markup(css),
        script=Markup(script),
        css_digest=_digest(css),
        script_digest=_digest(script),
    )  # fmt: skip
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


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


@functools.cache
def _source(name: str) -> str:
    return (Path(__file__).parent / "templates" / name).read_text(encoding="utf-8")


@functools.lru_cache(maxsize=8)
def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def json_for_script(data: Any) -> Markup:
    """JSON that cannot end the script element it stands in, nor open a comment there."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True)
    for char in "<>&":
        text = text.replace(char, "\\u%04x" % ord(char))
    return Markup(text)


# --- what the templates show


def host_view(document: Document, number: int) -> Dict[str, Any]:
    """One host for the templates."""
    facts = document["host_facts"]
    hostname = facts.get("hostname")
    uid = "h%d" % number
    judged = links.judgements(document["areas"])
    devices = hardware.devices(facts, judged)
    names = names_of(devices)
    areas = [_area_row(name, area, uid, names) for name, area in areas_by_urgency(document)]
    sockets = topology.sockets(facts, document["areas"], devices)
    odd_links = hardware.link_notes(devices, judged)
    joined = fabric.fabric(facts, devices)
    return {
        "uid": uid,
        "anchor": "host-" + safe_name(document["host"]),
        "name": document["host"] or "(no name)",
        "hostname": hostname if isinstance(hostname, str) and hostname != document["host"] else "",
        "state": document["state"],
        "is_good": document["state"] in GOOD_STATES,
        "is_host": is_host(document),
        "headline": headline(document),
        "what": what_words(document),
        "next_on_top": "" if _is_shown_below(document, next_step(document)) else next_step(document),
        "mode_words": mode_words(document["mode"], count_done(document), is_all_known(document)),
        "taken": document["taken"],
        "runs": document.get("journal_runs", []),
        "facts": fact_rows(facts, devices),
        "findings": findings_list.rows(document["findings"], names),
        "areas": areas,
        "jumps": jumps(areas, uid, bool(sockets)),
        "cells": {name: cell_view(area) for name, area in document["areas"].items()},
        "sockets": [drawn(socket) for socket in sockets],
        "are_beside": topology.are_small(sockets),
        "nowhere": nowhere(facts, sockets),
        "fabric": drawn(joined) if joined else "",
        "links": odd_links,
        "legend": legend(sockets, devices),
        "search": search_text(document, bool(odd_links)),
    }


def _is_shown_below(document: Document, sentence: str) -> bool:
    """Whether a card says it anyway."""
    cards = [*document["findings"], *(row for area in document["areas"].values() for row in area["findings"])]
    return any(row["fix"] == sentence for row in cards)


def what_words(document: Document) -> str:
    """What the table says of a host beside its state; one in order has nothing to tell but its warnings."""
    if document["state"] == "compliant" and document["areas"]:
        warnings = len(open_points(document))
        return _many(warnings, "warning") if warnings else ""
    return one_line(headline(document), MAX_SENTENCE)


def cell_view(area: Document) -> Dict[str, str]:
    """A cell of the matrix: the state, and how much is behind it."""
    done = sum(step["status"] == "applied" for step in area["steps"])
    ahead = sum(step["status"] in AHEAD for step in area["steps"])
    findings = sum(row["level"] != "info" for row in area["findings"])
    words = [_many(ahead, "step")] if ahead else []
    words += [_many(findings, "warning" if area["state"] in GOOD_STATES else "finding")] if findings else []
    if done and not words:
        words = ["%d done" % done]
    return {"state": area["state"], "note": ", ".join(words)}


def cause_view(cause: Cause, rows: Sequence[Mapping[str, Any]]) -> Dict[str, Any]:
    """A cause above the table, with the rows of the first hosts that have it."""
    by_name = {row["name"]: row for row in rows}
    return {
        "cause": cause,
        "count": len(cause.hosts),
        "named": [by_name[name] for name in cause.hosts[:MAX_NAMED] if name in by_name],
        "more": max(0, len(cause.hosts) - MAX_NAMED),
    }


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
        found.append(("wire", "the wire: the PCIe link alone"))
    states = {device.worst.state for device in devices}
    return found + [(state, links.WORDS[state]) for state in links.ORDER if state in states]


def _area_row(name: str, area: Document, uid: str, names: Mapping[str, str]) -> Dict[str, Any]:
    """An area of a host, with what was found and done."""
    asks = any(row["level"] != "info" for row in area["findings"])
    # A host without findings has no subjects to call by other names.
    known = tuple(names.items()) if area["findings"] else ()
    return {
        "label": label(name),
        "id": "%s-%s" % (uid, safe_name(name)),
        "state": area["state"],
        "is_quiet": area["state"] == "compliant" and not asks,
        "body": _told(label(name), json.dumps(area, separators=(",", ":")), known),
    }


@functools.lru_cache(maxsize=SAME)
def _told(title: str, area: str, names: Tuple[Tuple[str, str], ...]) -> Markup:
    """What was found in an area, from its JSON: most hosts of a fleet tell the same."""
    made: Any = _environment().get_template("area.html.j2").module
    return Markup(made.area_body(area_view(title, json.loads(area), dict(names))))


@functools.lru_cache(maxsize=SAME)
def drawn(what: Union[topology.Socket, fabric.Fabric]) -> Markup:
    """A part of a drawing: most hosts of a fleet are built alike."""
    made: Any = _environment().get_template("topology.html.j2").module
    return Markup(made.socket(what) if isinstance(what, topology.Socket) else made.fabric(what))


def area_view(title: str, area: Document, names: Mapping[str, str]) -> Dict[str, Any]:
    """An area for its template."""
    open_ones = [row for row in area["findings"] if row["level"] != "info"]
    notes = [row for row in area["findings"] if row["level"] == "info"]
    rows, note_rows = findings_list.rows(open_ones, names), findings_list.rows(notes, names)
    changed, same = compare(area["before"], area["after"])
    return {
        "label": title,
        "counts": findings_list.counts(area["findings"]) if len(open_ones) > MANY_FINDINGS else [],
        "findings": rows[:MAX_ROWS],
        "notes": note_rows[:MAX_ROWS],
        "steps": [step_view(step) for step in area["steps"][:MAX_ROWS]],
        "left_out": max(0, len(area["steps"]) - MAX_ROWS) + sum(max(0, len(r) - MAX_ROWS) for r in (rows, note_rows)),
        "changed": changed[:MAX_ROWS],
        "same": same[:MAX_ROWS],
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


def search_text(document: Document, has_odd_links: bool) -> str:
    """What the filter looks through: names and states, then causes, then what they are about."""
    points = open_points(document)
    words = [document["host"], str(document["host_facts"].get("hostname") or ""), document["state"]]
    words += ["%s %s" % (name, area["state"]) for name, area in document["areas"].items()]
    words += ["narrow link"] if has_odd_links else []
    text = " ".join(words).replace("_", " ")
    keys = " ".join(dict.fromkeys(key_of(area, row) for area, row in points))
    about = " ".join(dict.fromkeys("%s %s" % (row["id"], row.get("subject", "")) for _area, row in points))
    return visible("%s %s %s" % (text, keys, about.replace("_", " "))).lower()[:MAX_SEARCH]


def time_words(text: Any) -> str:
    """A time in UTC as people write it; anything else as it is."""
    if not isinstance(text, str) or len(text) != 20 or text[10] != "T":
        return str(text or "")
    return "%s %s UTC" % (text[:10], text[11:16])


def _many(count: int, one: str) -> str:
    return "%d %s%s" % (count, one, "" if count == 1 else "s")


def _bar(counts: Mapping[str, int]) -> List[Tuple[str, float, float]]:
    """The states as parts of a bar of width 100: state, start and width."""
    total = sum(counts.values())
    parts, x = [], 0.0
    for state, count in counts.items():
        width = 100.0 * count / total
        parts.append((state, round(x, 2), round(width, 2)))
        x += width
    return parts
