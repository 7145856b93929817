# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``nvidia-smi -q -x``: the schemas nvsmi_device v10 to v13, whole, filtered, trimmed or broken.

It is read tag by tag: nvidia-smi does not escape all names of processes, and a file cut off in the middle still
tells of the GPUs before the cut.  No entity is ever expanded; a document that declares one is not read.
"""

from __future__ import annotations

import re
from typing import Dict, List, Tuple

from .nvidia_fields import XML
from .nvidia_gpu import MOST_GPUS, Section, gpu_of, numbered
from .nvidia_values import ABSENT, Log, Word
from .nvidia_words import clean, complaints_of, lost_gpus, number, version, word

_ROOT = "nvidia_smi_log"
_TOKEN = re.compile(r"<(/?)([A-Za-z_][\w.-]{0,80})([^<>]{0,200})>|<[^<>]{0,2000}>|[^<]+|<")
_SCHEMA = re.compile(r"<!DOCTYPE\s+nvidia_smi_log\s+SYSTEM\s+[\"']([^\"'<>]{1,60})[\"']")
_ID = re.compile(r"\bid\s*=\s*[\"']([^\"']{1,40})[\"']")
_ENTITIES = (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&apos;", "'"), ("&amp;", "&"))
# Real documents are nine elements deep.
_MOST_DEPTH = 40
_CLOCKS = ("<supported_clocks>", "</supported_clocks>")


class _Document:
    """What was read so far: the rows of the machine and a section a GPU."""

    def __init__(self) -> None:
        self.rows: Dict[str, str] = {}
        self.sections: List[Section] = []
        self.has_end = False
        self.is_broken = False
        # Deeper than any document: what follows is not read.
        self.is_wild = False
        self.outside: List[str] = []
        # Open elements: name, the text in it, whether it had children.
        self._open: List[Tuple[str, List[str], List[bool]]] = []

    def start(self, name: str, attributes: str) -> None:
        if len(self._open) == _MOST_DEPTH:
            self.is_broken = self.is_wild = True
            return
        if self._open:
            self._open[-1][2].append(True)
        self._open.append((name, [], []))
        if name == "gpu" and self._path() == _ROOT + "/gpu":
            found = _ID.search(attributes)
            self.sections.append(Section({"gpu": found.group(1)} if found else {}))
        elif name == "mig_device" and self.sections:
            self.sections[-1].migs.append({})
        elif name == "process_info" and self.sections and "mig_device" not in self._path():
            self.sections[-1].processes += 1

    def text(self, text: str) -> None:
        if self._open:
            self._open[-1][1].append(text)
        else:
            self.outside.append(text)

    def end(self, name: str) -> None:
        if not any(name == opened for opened, _text, _children in self._open):
            self.is_broken = True
            return
        while self._open[-1][0] != name:
            self.is_broken = True
            self._open.pop()
        path = self._path()
        _name, text, children = self._open.pop()
        self.has_end = self.has_end or path == _ROOT
        if not children:
            self._leaf(path, _unescaped("".join(text)).strip())

    def _path(self) -> str:
        return "/".join(name for name, _text, _children in self._open)

    def _leaf(self, path: str, cell: str) -> None:
        parts = path.split("/")
        if parts[:2] != [_ROOT, "gpu"] or len(parts) < 3 or not self.sections:
            self.rows.setdefault("/".join(parts[1:]), cell)
        elif "mig_device" in parts:
            below = parts[parts.index("mig_device") + 1 :]
            if self.sections[-1].migs:
                self.sections[-1].migs[-1].setdefault("/".join(below), cell)
        elif "process_info" not in parts:
            self.sections[-1].rows.setdefault("/".join(parts[2:]), cell)


def parse_nvidia_smi_xml(text: str, is_selected: bool = False) -> Log:
    """The log of ``nvidia-smi -q -x``.  ``is_selected``: it was asked for some of the GPUs only (-i)."""
    text = clean(text)
    if "<!entity" in text.lower():
        return Log("xml", is_complete=False, complaints=("the document declares entities, so it was not read",))
    if "<" + _ROOT not in text:
        if "<gpu " not in text:
            return _without_document(text)
        text = "<%s>%s" % (_ROOT, text)  # a piece of one
    document = _read(_without_clocks(_last(text)))
    complaints = complaints_of("\n".join(document.outside))
    if document.is_broken or not document.has_end:
        complaints = (*complaints, "the document is broken" if document.has_end else "the document has no end")
    gpus = tuple(gpu_of(section, XML) for section in document.sections[:MOST_GPUS])
    rows = document.rows
    attached = number(rows["attached_gpus"]) if "attached_gpus" in rows else ABSENT
    return numbered(
        Log(
            "xml",
            driver_version=version(rows.get("driver_version", rows.get("kmd_version", ""))),
            cuda_version=version(rows.get("cuda_version", rows.get("cuda_umd_version", ""))),
            attached_gpus=attached,
            gpus=gpus,
            complaints=complaints,
            lost=lost_gpus(complaints),
            timestamp=word(rows.get("timestamp", "")),
            schema=_schema(text),
        ),
        document.has_end,
        is_selected,
    )


def _last(text: str) -> str:
    """Of several documents in a row (-l) the last whole one."""
    before, *documents = text.split("<" + _ROOT)
    whole = [one for one in documents if "</" + _ROOT in one]
    return before + "<" + _ROOT + (whole or documents)[-1]


def _read(text: str) -> _Document:
    document = _Document()
    for token in _TOKEN.finditer(text):
        if document.is_wild or len(document.sections) > MOST_GPUS:
            break
        closing, name, rest = token.groups()
        if not name:
            if not token.group().startswith("<") or token.group() == "<":
                document.text(token.group())
        elif closing:
            document.end(name.lower())
        else:
            document.start(name.lower(), rest)
            if rest.endswith("/"):
                document.end(name.lower())
    return document


def _without_document(text: str) -> Log:
    complaints = complaints_of(text) or ("this is no output of nvidia-smi -q -x: %r" % text.strip()[:80],)
    return Log("xml", is_complete=False, complaints=complaints, lost=lost_gpus(complaints))


def _schema(text: str) -> Word:
    found = _SCHEMA.search(text)
    return found.group(1) if found else ABSENT


def _without_clocks(text: str) -> str:
    """The list of clocks is nine tenths of a document, and nothing is read from it."""
    parts: List[str] = []
    place = 0
    while True:
        start = text.find(_CLOCKS[0], place)
        end = text.find(_CLOCKS[1], start) if start >= 0 else -1
        if end < 0:
            return "".join(parts) + text[place:]
        parts.append(text[place:start])
        place = end + len(_CLOCKS[1])


def _unescaped(text: str) -> str:
    for entity, char in _ENTITIES:
        text = text.replace(entity, char)
    return text
