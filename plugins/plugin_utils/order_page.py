# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The pages of an acceptance: one for each host, one for the lot, and the same as JSON.

They are to be printed and kept: each is one file that fetches nothing and runs nothing, says on what it rests,
and escapes every word of an order and of a host.
"""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from .fleet_files import safe_name
from .fleet_page import time_words
from .fleet_report import visible
from .order import Order
from .order_lines import VERDICTS, Line, Row, mib_words, part, rows, several, size, text
from .order_lot import HostResult, LotResult, Rules, reason, refused, worst_verdict

LOT_FILE = "lot"
MAX_PARTS = 256
# Hosts that are told of above the table; all of them are in it.
MAX_WORST = 3
TEMPLATES = Path(__file__).parent / "templates"
VERDICT_WORDS = {
    "ok": "as ordered",
    "extra": "extra",
    "unknown": "unknown",
    "short": "short",
    "different": "different",
}
# Titles and columns of what was seen: a column is its name and the key in the facts.
PARTS = (
    ("GPUs", "gpus", ("Address", "address"), ("PCI id", "pci_id"), ("Name", "name"), ("Memory", "memory_mib"),
     ("NVLinks", "nvlink_active"), ("Lanes", "width"), ("VBIOS", "vbios"), ("Serial number", "serial")),
    ("Memory modules", "dimms", ("Slot", "locator"), ("Size", "size_mib"), ("Type", "type"), ("Rated", "rated_mts"),
     ("Runs at", "configured_mts"), ("Maker", "manufacturer"), ("Part", "part"), ("Serial number", "serial")),
    ("NVMe drives", "nvme", ("Name", "name"), ("Model", "model"), ("Bytes", "size_bytes"), ("Firmware", "firmware"),
     ("Address", "address"), ("Serial number", "serial")),
    ("Network cards", "nics", ("Address", "address"), ("PCI id", "pci_id"), ("Name", "name"), ("Firmware", "firmware"),
     ("Gb/s", "rate_gbps"), ("Link layer", "link_layer"), ("State", "state")),
    ("Power supplies", "psus", ("Name", "name"), ("Watts", "capacity_w")),
)  # fmt: skip


def files_of(lot: LotResult) -> dict[int, str]:
    """The file of each host's page, without its ending; two hosts never share one."""
    found: dict[int, str] = {}
    taken = {LOT_FILE}
    for at, host in enumerate(lot.hosts):
        name, number = host.name, 2
        while safe_name(name) in taken:
            name, number = "%s (%d)" % (host.name, number), number + 1
        taken.add(safe_name(name))
        found[at] = safe_name(name)
    return found


def render(lot: LotResult, rules: Rules, about: Mapping[str, str]) -> dict[str, str]:
    """All pages by file name.

    :param about: what the whole run rests on, by words: the order's file, its digest.
    """
    files = files_of(lot)
    views = [host_view(host, files[at], rules, lot.order, about) for at, host in enumerate(lot.hosts)]
    pages = {
        view["stem"] + ".html": _page("accept_host.html.j2", order=lot.order, host=view, lot_file=LOT_FILE + ".html")
        for view in views
    }
    pages[LOT_FILE + ".html"] = _page(
        "accept_lot.html.j2", order=lot.order, hosts=views, lot=lot_view(lot, rules, about), worst=worst_hosts(views)
    )
    return pages


def as_json(lot: LotResult, rules: Rules, about: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """The same for programs, by file name."""
    files = files_of(lot)
    found: dict[str, dict[str, Any]] = {}
    order = {"order": lot.order.number, "vendor": lot.order.vendor, "date": lot.order.date}
    for at, host in enumerate(lot.hosts):
        found[files[at] + ".json"] = {
            "format": 1,
            **order,
            "host": host.name,
            "class": host.ordered.class_name if host.ordered else None,
            "known_by": host.known_by,
            "is_accepted": host.is_accepted,
            "verdict": worst_verdict(host.lines),
            "lines": [_line_json(line, rules) for line in host.lines],
            "notes": [dict(row) for row in host.notes],
            "rests_on": dict(_about_host(host, rules, about)),
        }
    found[LOT_FILE + ".json"] = {
        "format": 1,
        **order,
        "is_accepted": lot.is_accepted,
        "counts": dict(lot.counts),
        "hosts": [
            {"host": host.name, "file": files[at] + ".json", "is_accepted": host.is_accepted,
             "verdict": worst_verdict(host.lines)}
            for at, host in enumerate(lot.hosts)
        ],
        "lines": [_line_json(line, rules) for line in lot.lines],
        "rests_on": dict(_about_lot(lot, rules, about)),
    }  # fmt: skip
    return found


def _line_json(line: Line, rules: Rules) -> dict[str, Any]:
    return {
        "item": line.item,
        "ordered": line.ordered,
        "delivered": line.delivered,
        "verdict": line.verdict,
        "is_accepted": rules.accepts(line),
        "evidence": list(line.evidence),
        "words": line.words,
        "devices": list(line.devices),
    }


# --- what the templates show


def host_view(host: HostResult, stem: str, rules: Rules, order: Order, about: Mapping[str, str]) -> dict[str, Any]:
    reasons = reason_views(host.lines, rules)
    first = reasons[0] if reasons else None
    return {
        "name": host.name,
        "stem": stem,
        "file": stem + ".html",
        "class_name": host.ordered.class_name if host.ordered else "",
        "is_accepted": host.is_accepted,
        "worst": worst_of(host.lines, rules),
        "judgement": judgement(host.is_accepted, host.lines, rules),
        "counts": count_words(host.lines),
        "lines": line_views(host.lines, rules),
        "reasons": reasons,
        "first": first,
        "first_reason": "%s: %s" % (first["item"], first["reason"]) if first else "",
        "notes": list(host.notes),
        "parts": parts_seen(host.seen.hardware),
        "about": _about_host(host, rules, about),
    }


def lot_view(lot: LotResult, rules: Rules, about: Mapping[str, str]) -> dict[str, Any]:
    lines = [*lot.lines, *(line for host in lot.hosts for line in host.lines)]
    return {
        "is_accepted": lot.is_accepted,
        "worst": worst_of(lines, rules),
        "judgement": judgement(lot.is_accepted, lines, rules),
        "counts": "%d of %s looked at %s as ordered; the order has %d."
        % (
            lot.counts["accepted"],
            several(lot.counts["hosts"], "host"),
            "is" if lot.counts["accepted"] == 1 else "are",
            lot.counts["ordered"],
        ),
        "lines": line_views(lot.lines, rules),
        "reasons": reason_views(lot.lines, rules),
        "about": _about_lot(lot, rules, about),
    }


def worst_hosts(views: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The hosts that the page of a lot names before anything else: those with a wrong part, else the first."""
    refused_ones = [view for view in views if view["first"]]
    wrong = [view for view in refused_ones if view["first"]["verdict"] in ("short", "different")]
    return wrong[:MAX_WORST] or refused_ones[:1]


def line_views(lines: Sequence[Line], rules: Rules) -> list[dict[str, Any]]:
    """Lines of a table; those about an aspect of the line before them are shown below it."""
    views = []
    group = ""
    for line in lines:
        is_below = bool(group) and line.item.startswith(group + ": ")
        group = group if is_below else line.item
        views.append(dict(line_view(line, rules), group=group, aspect=line.item[len(group) + 2 :] if is_below else ""))
    return views


def line_view(line: Line, rules: Rules) -> dict[str, Any]:
    return {
        "item": line.item,
        "ordered": line.ordered,
        "delivered": line.delivered,
        "verdict": line.verdict,
        "verdict_words": VERDICT_WORDS[line.verdict],
        "is_excused": line.verdict != "ok" and rules.accepts(line),
        "evidence": list(line.evidence),
        "reason": reason(line),
    }


def reason_views(lines: Sequence[Line], rules: Rules) -> list[dict[str, Any]]:
    return [dict(line_view(line, rules), more=count - 1) for line, count in refused(lines, rules)]


def worst_of(lines: Sequence[Line], rules: Rules) -> str:
    """The gravest verdict that is not accepted; ok when all are."""
    return worst_verdict([line for line in lines if not rules.accepts(line)])


def judgement(is_accepted: bool, lines: Sequence[Line], rules: Rules) -> str:
    if is_accepted:
        excused = any(line.verdict != "ok" for line in lines)
        return "Accepted with exceptions" if excused else "As ordered"
    return "Not seen to be as ordered" if worst_of(lines, rules) == "unknown" else "Not as ordered"


def count_words(lines: Sequence[Line]) -> str:
    """``39 of 42 lines are as ordered, 2 short, 1 unknown.``"""
    counts = {verdict: sum(line.verdict == verdict for line in lines) for verdict in VERDICTS}
    others = [
        "%d %s" % (count, VERDICT_WORDS[name]) for name, count in reversed(counts.items()) if count and name != "ok"
    ]
    are = "is" if counts["ok"] == 1 else "are"
    return "%s." % ", ".join(["%d of %s %s as ordered" % (counts["ok"], several(len(lines), "line"), are), *others])


def parts_seen(hardware: Row) -> list[tuple[str, list[str], list[list[str | None]]]]:
    """Tables of the parts that were seen, with their serial numbers: the evidence itself."""
    found = []
    for title, key, *columns in PARTS:
        seen = rows(hardware, key)
        if seen:
            names = [name for name, _key in columns]
            found.append((title, names, [[_cell(row, key_) for _name, key_ in columns] for row in seen[:MAX_PARTS]]))
    return found


def _cell(row: Row, key: str) -> str | None:
    if key in ("memory_mib", "size_mib"):
        mib = size(row, key)
        return mib_words(mib) if mib is not None else None
    value = row.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float, str)) or value == "":
        return None
    return text(row, key) if isinstance(value, str) else "%.15g" % value


def _about_host(host: HostResult, rules: Rules, about: Mapping[str, str]) -> list[tuple[str, str]]:
    seen, report = host.seen, host.seen.report
    system = part(seen.hardware, "system")
    found = [
        ("Class", host.ordered.class_name if host.ordered else ""),
        ("Known by", host.known_by),
        ("Seen as", seen.own_name if seen.own_name != host.name else ""),
        ("Seen at", time_words(report["taken"]) if report else "never"),
        ("System", " ".join(filter(None, (text(system, "manufacturer"), text(system, "product"))))),
        ("Serial number of the system", text(system, "serial")),
        ("Capture", seen.source),
        ("SHA-256 of the capture", seen.digest),
    ]
    return [(name, words) for name, words in [*found, *about.items(), *_rule_words(rules)] if words]


def _about_lot(lot: LotResult, rules: Rules, about: Mapping[str, str]) -> list[tuple[str, str]]:
    order = lot.order
    found = [("Vendor", order.vendor or ""), ("Ordered", order.date or ""), ("Note", order.note or "")]
    return [(name, words) for name, words in [*found, *about.items(), *_rule_words(rules)] if words]


def _rule_words(rules: Rules) -> list[tuple[str, str]]:
    choices = {
        "what could not be seen": rules.unknown_is,
        "more than ordered": rules.extra_is,
        "hosts not looked at": rules.unseen_is,
    }
    accepted = [name for name, choice in choices.items() if choice == "accept"]
    return [("Accepted by choice", ", ".join(accepted) or "nothing")]


# --- the page


def _page(template: str, **values: Any) -> str:
    env = _environment()
    css = _source("report.css") + _source("accept.css")
    digest = base64.b64encode(hashlib.sha256(css.encode("utf-8")).digest()).decode("ascii")
    page = env.get_template(template).render(css=Markup(css), css_digest=digest, **values)
    return page.strip().encode("utf-8", "backslashreplace").decode("utf-8") + "\n"


@functools.lru_cache(maxsize=1)
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _shown(value: Any) -> Any:
    """What is printed: controls and bidirectional marks of a text are written out."""
    return visible(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def _source(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")
