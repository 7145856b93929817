# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The artifacts of a run on the controller: a folder a run, a JSON file a host, one page.

Files appear whole or not at all, so a run that is cut off leaves what it knew.  They hold serial numbers and addresses, so
they are readable by their owner alone, whatever the umask is.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any, Dict, Iterable, List, Tuple

from . import fleet_report as fleet

RUN_FILE = "run.json"
PAGE_FILE = "report.html"
# The pages of hosts, where they are too many for one.
HOSTS_FOLDER = "hosts"
LATEST = "latest"

# Lower case only: some file systems take GPU1 and gpu1 for the same.
_PLAIN_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")
_RESERVED = ("run", "report", "latest")


def safe_name(name: str) -> str:
    """A file name for a host or a run: the name itself where it is harmless, else with a digest.

    Two names never share one, since a plain name holds no ``~``.
    """
    if _PLAIN_NAME.fullmatch(name) and name not in _RESERVED:
        return name
    slug = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:40] or "host"
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return "%s~%s" % (slug, digest)


def open_run(artifacts: Path, run: str) -> Path:
    """Make the folder of a run; where it exists already, one beside it with a number."""
    make_folder(artifacts)
    name = run if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", run) and run != LATEST else safe_name(run)
    number = 1
    while True:
        folder = artifacts / (name if number == 1 else "%s-%d" % (name, number))
        try:
            folder.mkdir(0o700)
        except FileExistsError:
            number += 1
        else:
            return folder


def make_folder(folder: Path) -> None:
    """Make a folder that only its owner may enter; one that is there keeps its permissions."""
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(0o700, exist_ok=True)


def link_latest(folder: Path) -> None:
    """Let ``latest`` beside the folder point to it; something else of that name is left alone."""
    link = folder.parent / LATEST
    if link.exists() and not link.is_symlink():
        return
    beside = folder.parent / (".%s.%d" % (LATEST, os.getpid()))
    beside.unlink(missing_ok=True)
    beside.symlink_to(folder.name)
    os.replace(beside, link)


def write_text(path: Path, text: str) -> None:
    """Write beside, then rename; readable by the owner alone."""
    beside = path.parent / (".%s.%d" % (path.name, os.getpid()))
    try:
        fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(fd, "wb") as file:
            os.fchmod(fd, 0o600)
            file.write(text.encode("utf-8", "backslashreplace"))
        os.replace(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def write_json(path: Path, data: Any) -> None:
    write_text(path, json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def write_pages(folder: Path, pages: Iterable[Tuple[str, str]]) -> Path:
    """Write the pages of a run, each below its folder, and give back the last of them: that of the fleet."""
    path = folder
    for name, text in pages:
        path = folder / name
        make_folder(path.parent)
        write_text(path, text)
    return path


def read_run(folder: Path) -> Tuple[Dict[str, Any], List[fleet.Document], Dict[str, str]]:
    """A run from its files: what is known of the run, its documents, and the file of each host.

    A file that holds no report becomes a host of which nothing is known: it is not left out.
    """
    run = _load(folder / RUN_FILE)
    documents: List[fleet.Document] = []
    files: Dict[str, str] = {}
    for path in sorted(folder.glob("*.json")):
        if path.name == RUN_FILE:
            continue
        document = fleet.normalise(_load(path))
        if document is None:
            document = fleet.new_document(path.stem, folder.name, "")
            document = fleet.with_finding(document, fleet.bad_report("%s is not a report" % path.name))
        if document["host"] in files:
            continue
        documents.append(document)
        files[document["host"]] = path.name
    about = run if isinstance(run, dict) else {}
    known = {key: about[key] for key in ("started", "finished", "playbook") if isinstance(about.get(key), str)}
    return {"run": folder.resolve().name, **known}, documents, files


def _load(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
