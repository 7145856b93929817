# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What stands between Ansible and an acceptance: files are read, hosts are judged, pages are written.

All of it on the controller. What is not possible is one message, before any host is touched.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible import constants as C
from ansible.errors import AnsibleError

from ..module_utils._engine.host import CAPTURE_ENDING
from . import fleet_files, order_page
from . import fleet_report as fleet
from .order import Order, ordered_hosts, read_order
from .order_compare import COUNTED_FINDINGS
from .order_fields import BadOrder, nearest
from .order_lines import Line
from .order_lot import LotResult, Rules, Seen, judge_host, judge_lot, match, refused, why_refused

AREA = "acceptance"
FOLDER = "accept"
CHOICES = ("refuse", "accept")
OPTIONS = (
    "order", "seen", "pages", "dest", "capture", "find_captures", "unknown_is", "extra_is", "unseen_is", "class_name",
    "findings",
)  # fmt: skip
# What tells a capture that is a folder from a folder of captures (_engine/host.py).
_INSIDE = ("capture.json", "files", "commands")
MAX_CAPTURES = 10_000
# Ansible keeps the options of a plugin by its name, or by that of its Python module.
CALLBACK_NAMES = ("gpufleet.host.report", "ansible_collections.gpufleet.host.plugins.callback.report")


def run(args: Mapping[str, Any], start: str = "") -> dict[str, Any]:
    """The result of the task.

    :param start: the folder that relative paths may start from, besides the working directory.
    :raises ValueError: with the one message about what is not possible.
    """
    for name in args:
        if name not in OPTIONS:
            raise _impossible("order_acceptance", name, "the options %s" % ", ".join(OPTIONS), nearest(name, OPTIONS))
    file = _path_of(args.get("order"), start)
    order = read_file(file, str(args["order"]))
    rules = rules_of(args, order)
    result: dict[str, Any] = {"state": "read", "summary": "the order can be read", "changed": False}
    if args.get("find_captures"):
        result["captures"] = find_captures(args["find_captures"], start)
    seen = seen_of(args.get("seen") or [], start)
    if _flag(args.get("pages")):
        result.update(_lot(judge_lot(order, seen, rules), rules, file, str(args.get("dest") or "")))
    elif seen:
        result.update(_host(seen[0], order, rules))
    return result


def read_file(file: Path, given: str) -> Order:
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        words = "%s (%s)" % (given, error.strerror or error)
        raise _impossible(
            "acceptance_order", words, "a purchase order that can be read, see docs/acceptance.md"
        ) from error
    except UnicodeDecodeError as error:
        raise BadOrder("%s: this is no text in UTF-8. No host was touched." % given) from error
    return read_order(text, given)


def rules_of(args: Mapping[str, Any], order: Order) -> Rules:
    choices = {}
    for name in ("unknown_is", "extra_is", "unseen_is"):
        choices[name] = str(args.get(name) or "refuse")
        if choices[name] not in CHOICES:
            meant = nearest(choices[name], CHOICES)
            raise _impossible("acceptance_" + name, choices[name], ", ".join(CHOICES), meant)
    class_name = str(args.get("class_name") or "")
    classes = order.classes or {}
    if class_name and class_name not in classes:
        allowed = ", ".join(classes) or "none, since the order has no classes"
        raise _impossible("acceptance_class", class_name, allowed, nearest(class_name, classes))
    findings = args.get("findings")
    counted = COUNTED_FINDINGS if findings is None else tuple(str(name) for name in findings)
    return Rules(class_name=class_name, counted_findings=counted, **choices)


def _impossible(variable: str, given: Any, allowed: str, meant: str = "") -> ValueError:
    hint = ". Did you mean %s?" % meant if meant else "."
    shown = fleet.one_line(given, 300)
    return ValueError("%s: %r is not possible; allowed: %s%s No host was touched." % (variable, shown, allowed, hint))


def _path_of(given: Any, start: str) -> Path:
    if not isinstance(given, str) or not given.strip():
        raise _impossible("acceptance_order", given or "", "the path of a purchase order, see docs/acceptance.md")
    return _found(given, start)


def _found(given: str, start: str) -> Path:
    """A path from the working directory, else from where the playbook starts."""
    path = Path(given).expanduser()
    beside = Path(start) / path
    return beside if start and not path.exists() and beside.exists() else path


def _flag(value: Any) -> bool:
    return value is True or str(value).lower() in ("true", "yes", "1", "on")


# --- what was looked at


def seen_of(rows: Sequence[Any], start: str) -> list[Seen]:
    found = []
    for row in rows:
        if not isinstance(row, Mapping) or not row.get("name"):
            continue
        report = fleet.normalise(row["report"]) if row.get("report") else None
        source = str(row.get("source") or "")
        why = "" if report else str(row.get("why") or "what came back is no report").removeprefix("Task failed: ")
        digest = _digest(_found(source, start)) if source else ""
        found.append(Seen(str(row["name"]), report, fleet.one_line(why, 400), source, digest))
    return found


def _digest(file: Path) -> str:
    """Of the file, so that a page says what it rests on; a folder has none."""
    digest = hashlib.sha256()
    try:
        with open(file, "rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    except OSError:
        return ""
    return digest.hexdigest()


def find_captures(given: Any, start: str) -> list[dict[str, str]]:
    """Every capture in a file, a folder, or a list of them, each with a name of its own."""
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, Sequence) or not all(isinstance(text, str) and text.strip() for text in texts):
        raise _impossible("capture", given, "the path of a capture, of a folder of captures, or a list of paths")
    paths = []
    for text in texts:
        path = _found(text.strip(), start)
        found = _captures_at(path)
        if not found:
            reason = "no captures in it" if path.is_dir() else "there is no such file or folder"
            raise _impossible("capture", text, "the path of a capture or of a folder of captures (%s)" % reason)
        paths += found
    if len(paths) > MAX_CAPTURES:
        raise _impossible("capture", "%d captures" % len(paths), "at most %d" % MAX_CAPTURES)
    names: set[str] = set()
    captures = []
    for path in paths:
        stem = re.sub(r"[^A-Za-z0-9._-]+", "-", CAPTURE_ENDING.sub("", path.name)).strip("-.") or "capture"
        name, number = stem, 2
        while name.casefold() in names:
            name, number = "%s-%d" % (stem, number), number + 1
        names.add(name.casefold())
        # A module of a local connection does not start where people are.
        captures.append({"name": name, "path": str(path.absolute())})
    return captures


def _captures_at(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path] if path.exists() else []
    if _is_capture(path):
        return [path]
    inside = [entry for entry in path.iterdir() if not entry.name.startswith(".")]
    return sorted(entry for entry in inside if entry.is_file() or _is_capture(entry))


def _is_capture(folder: Path) -> bool:
    return any((folder / name).exists() for name in _INSIDE)


# --- judging


def _host(seen: Seen, order: Order, rules: Rules) -> dict[str, Any]:
    wanted, known_by, odd = match(seen, ordered_hosts(order), order, rules)
    result = judge_host(seen, wanted, known_by, odd, rules)
    name = str(seen.report["host"]) if seen.report else seen.name
    return {
        "state": "accepted" if result.is_accepted else "refused",
        "summary": "\n".join(why_refused(result, rules)) or "as ordered",
        "report": as_report(name, seen, result.lines, rules),
    }


def _lot(lot: LotResult, rules: Rules, file: Path, dest: str) -> dict[str, Any]:
    about = {"Order": str(file), "SHA-256 of the order": _digest(file)}
    folder = Path(dest).expanduser() if dest else run_folder() / FOLDER
    pages = write(lot, rules, about, folder)
    hosts = {host.seen.name: {"is_accepted": host.is_accepted, "why": why_refused(host, rules)} for host in lot.hosts}
    is_whole = all(rules.accepts(line) for line in lot.lines)
    result: dict[str, Any] = {
        "state": "accepted" if lot.is_accepted else "refused",
        "summary": summary(lot, rules),
        "lot": {"state": "accepted" if is_whole else "refused", "summary": "\n".join(why_refused(lot, rules, 20))},
        "hosts": hosts,
        "pages": pages,
    }
    if not is_whole:
        result["report"] = as_report("order %s" % lot.order.number, None, lot.lines, rules)
        result["report"]["host_facts"] = {"order": lot.order.number}
    return result


def summary(lot: LotResult, rules: Rules) -> str:
    """The lot for a terminal: what is wrong with it, then with each host."""
    lines = why_refused(lot, rules, 20)
    for host in lot.hosts:
        if not host.is_accepted:
            lines.append("%s: %s" % (host.name, "; ".join(why_refused(host, rules, 3))))
    return "\n".join(fleet.one_line(line, 500) for line in lines) or "all is as ordered"


def as_report(name: str, seen: Seen | None, lines: Sequence[Line], rules: Rules) -> fleet.Document:
    """A comparison as an area of a report: what is not accepted are its findings."""
    taken = seen.report["taken"] if seen and seen.report else time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    document = fleet.new_document(name, "", taken)
    findings = [_finding(line, count) for line, count in refused(lines, rules)]
    findings.sort(key=lambda row: row["level"] == "warn")
    state = "compliant" if not findings else "unknown" if all(row["level"] == "warn" for row in findings) else "blocked"
    document["areas"][AREA] = {"state": state, "steps": [], "findings": findings, "before": {}, "after": {}}
    document["state"] = state
    if seen and seen.report:
        document["host_facts"] = seen.report["host_facts"]
    return document


def _finding(line: Line, count: int) -> dict[str, Any]:
    is_unknown = line.verdict == "unknown"
    more = " (and %d more)" % (count - 1) if count > 1 else ""
    return {
        "id": "acceptance.%s" % line.verdict,
        "level": "warn" if is_unknown else "fail",
        "subject": line.item + more,
        "expected": line.ordered,
        "observed": {"unknown": line.words or "not seen"} if is_unknown else line.delivered,
        "why": line.words or "not as ordered",
        "fix": _FIXES.get(line.kind, _FIXES[line.verdict]),
        "source": "purchase order; %s" % (", ".join(line.evidence) or "nothing that was seen"),
    }


_FIXES = {
    "observation": "see that it answers, or take a new capture; acceptance_unseen_is=accept does without it",
    "unseen": "look at these, too, or accept a part of the lot with acceptance_unseen_is=accept",
    "unknown": "make it visible and look again, or accept it with acceptance_unknown_is=accept",
    "extra": "name it in the order, or accept it with acceptance_extra_is=accept",
    "short": "claim it from the vendor, with the page of this host",
    "different": "claim it from the vendor, with the page of this host",
}


# --- files


def run_folder() -> Path:
    """The folder of this run: that of the report, when its callback is there, else one of its own."""
    base = artifacts()
    name = os.environ.get("GPUFLEET_JOURNAL_RUN", "")
    if name and (base / name).is_dir():
        return base / name
    return fleet_files.open_run(base, time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()))


def artifacts() -> Path:
    """Where the callback of the report keeps its runs."""
    for name in CALLBACK_NAMES:
        try:
            return Path(C.config.get_config_value("artifacts", plugin_type="callback", plugin_name=name))
        except AnsibleError:
            continue
    return Path(os.environ.get("GPUFLEET_ARTIFACTS") or "artifacts")


def write(lot: LotResult, rules: Rules, about: Mapping[str, str], folder: Path) -> list[str]:
    """Write all pages and their JSON; the page of the lot is the first of the names."""
    try:
        fleet_files.make_folder(folder)
        for name, data in order_page.as_json(lot, rules, about).items():
            fleet_files.write_json(folder / name, data)
        pages = order_page.render(lot, rules, about)
        for name, text in pages.items():
            fleet_files.write_text(folder / name, text)
    except OSError as error:
        raise ValueError("acceptance_pages: %s cannot be written: %s" % (folder, error.strerror or error)) from error
    first = order_page.LOT_FILE + ".html"
    return [str(folder / name) for name in [first, *(name for name in pages if name != first)]]
