# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Case tables of the area platform: a change to a host that is well, and exactly the findings that it makes.

A row of tests/unit/cases/platform/*.yml has a ``name`` and

* ``host``: make (the default), make_one, make_hgx of fakes_platform; ``model``: one of its MODELS; ``want``
* ``vm``: the host is a virtual machine
* ``files``: path -> text, null to remove it; ``symlinks``: path -> target; ``bytes``: path -> numbers
* ``wires``: address -> the link now (``8@32.0``); ``able``: address -> what that end can do; ``acs``: address -> control word;
  ``bars``: address -> MiB now and at most of a BAR that can be resized
* ``drivers``: address -> driver; ``dead``: addresses whose configuration space reads as all ones; ``cut``: bytes of it that
  can be read
* ``says``, ``links``, ``silent``, ``later``: see fakes_platform.PlatformHost
* ``answers``: command -> stdout, stderr, rc, unknown (why there is none); ``edits``: command -> [[text, other text], …]
* ``log``: further messages of the kernel
* ``capture``: instead of a host, command -> file below tests/corpus, or the text itself; path -> text
* ``findings``: those that the change makes, as ``level id subject`` with, where it matters, ``| part of what was observed``;
  ``gone``: those that it takes away; ``whole``: the findings are all that there are

An id is written without ``platform.``.
"""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Mapping

import fakes_platform
import fakes_platform_texts
import yaml
from fakes_pci import BUS, link, pair, set_acs, set_bar
from fakes_platform import MODELS, PlatformHost

from ansible_collections.gpufleet.host.plugins.module_utils._areas.platform import AREA
from ansible_collections.gpufleet.host.plugins.module_utils._engine import whole
from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import CaptureHost, Host, MemoHost, Result
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import Finding
from ansible_collections.gpufleet.host.plugins.module_utils._tables import gpus

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests/unit/cases/platform"
HOSTS = {
    "make": (fakes_platform.RAILS[0], fakes_platform.RAILS[4]),
    "make_one": fakes_platform.RAILS[:1],
    "make_hgx": fakes_platform.RAILS,
}
KEYS = {
    "name", "host", "model", "want", "vm", "files", "symlinks", "bytes", "wires", "able", "acs", "bars", "drivers", "dead", "cut",
    "says", "links", "silent", "later", "answers", "edits", "log", "capture", "findings", "gone", "whole",
}  # fmt: skip
VM = {"/sys/class/dmi/id/sys_vendor": "QEMU\n", "/sys/class/dmi/id/product_name": "Standard PC (Q35 + ICH9, 2009)\n"}


def table(topic: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = yaml.safe_load((FOLDER / (topic + ".yml")).read_text(encoding="utf-8"))
    for row in rows:
        assert set(row) <= KEYS, (row["name"], set(row) - KEYS)
    return rows


def topics() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.yml"))


def want_of(given: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
    return whole.valid_want(AREA, dict(given or {}))


def host_of(row: Mapping[str, Any], root: Path) -> Host:
    """The host of a row, with all that the row changes."""
    if "capture" in row:
        return capture(root, row["capture"])
    host = fresh(row, root)
    if row.get("vm"):
        row = {**row, "files": {**VM, **row.get("files", {})}}
    _change_files(host, row)
    _change_bus(host, row)
    host.says = {key: {name: str(value) for name, value in rows.items()} for key, rows in row.get("says", {}).items()}
    host.links, host.silent = row.get("links", {}), row.get("silent", [])
    host.later = row.get("later", {})
    empty = {"stdout": "", "stderr": "", "rc": 0, "unknown": ""}
    host.answers = {words: Result(**{**empty, **about}) for words, about in row.get("answers", {}).items()}
    if "log" in row:
        stamp = "2026-11-29T23:%02d:00+00:00 gpu01 kernel: %s\n"
        more = "".join(stamp % (minute, message) for minute, message in enumerate(row["log"]))
        host.answers["journalctl -k"] = Result(0, fakes_platform_texts.KERNEL_LOG + more, "")
    host.edits = {words: [tuple(pair) for pair in pairs] for words, pairs in row.get("edits", {}).items()}
    return host


def fresh(row: Mapping[str, Any], root: Path) -> PlatformHost:
    kind, model = row.get("host", "make"), row.get("model", "h100")
    assert model in MODELS
    threads, switches = {"make": (2, 1), "make_one": (4, 0), "make_hgx": (8, 4)}[kind]
    has_switch = MODELS[model].links > 0 and model not in BRIDGED
    return fakes_platform.build(root, HOSTS[kind], model, threads, switches if has_switch else 0)


# Cards that bridges join, and no NVSwitch.
BRIDGED = ("h100-nvl", "a100-pcie")


def capture(root: Path, commands: Mapping[str, str]) -> CaptureHost:
    """A capture that holds some commands and nothing else; a text that names a file of the corpus is that file."""
    (root / "commands").mkdir(parents=True)
    (root / "capture.json").write_text(json.dumps({"format": 1, "hostname": "gpu01", "taken": "2026-11-30T06:00:00Z"}))
    for number, (words, text) in enumerate(commands.items()):
        if words.startswith("/"):
            (root / ("files" + words)).parent.mkdir(parents=True, exist_ok=True)
            (root / ("files" + words)).write_text(text)
            continue
        place = ROOT / "tests/corpus" / text if len(text) < 200 and "\n" not in text else None
        said = place.read_bytes().decode("utf-8", "replace") if place and place.is_file() else text
        about = {"argv": words.split(" "), "rc": 0, "stdout": said, "stderr": ""}
        (root / "commands" / ("%04d.json" % number)).write_text(json.dumps(about))
    return CaptureHost(str(root))


def judge(host: Host, want: Mapping[str, Any]) -> list[Finding]:
    have = AREA.observe(MemoHost(host), want)
    return AREA.judge(want, have)


def short(finding: Finding) -> str:
    return "%s %s %s" % (finding.level, finding.id.partition(".")[2], finding.subject)


@lru_cache(maxsize=None)
def _base(kind: str, model: str) -> tuple[str, ...]:
    """What is said of the host while nothing is changed on it."""
    with TemporaryDirectory(prefix="platform-") as root:
        host = fresh({"host": kind, "model": model}, Path(root))
        return tuple(short(finding) for finding in judge(host, want_of()))


def check(row: Mapping[str, Any], root: Path) -> list[Finding]:
    """The findings of a row, after they were compared."""
    found = judge(host_of(row, root), want_of(row.get("want")))
    is_whole = "capture" in row or row.get("whole")
    before = [] if is_whole else list(_base(row.get("host", "make"), row.get("model", "h100")))
    after = [short(finding) for finding in found]
    wanted = [text.partition(" | ")[0] for text in row["findings"]]
    new = sorted(text for text in after if text not in before)
    assert new == sorted(wanted), "\n".join(["", *(told(f) for f in found if short(f) in new)])
    assert sorted(text for text in before if text not in after) == sorted(row.get("gone", []))
    for text in row["findings"]:
        head, wanted, part = text.partition(" | ")
        seen = [str(finding.observed) for finding in found if short(finding) == head]
        assert not wanted or any(part in one for one in seen), (head, part, seen)
    for finding in found:
        assert finding.why and finding.fix and finding.source and finding.subject, finding
    return found


def told(finding: Finding) -> str:
    return '      - "%s | %s"' % (short(finding), finding.observed)


def _change_files(host: PlatformHost, row: Mapping[str, Any]) -> None:
    for path, text in row.get("files", {}).items():
        if text is None:
            host.remove(path)
        else:
            host.put(path, text)
    for path, numbers in row.get("bytes", {}).items():
        host.put(path, bytes(numbers).decode("utf-8", "surrogateescape"))
    for path, target in row.get("symlinks", {}).items():
        host.link_to(path, target)


def _change_bus(host: PlatformHost, row: Mapping[str, Any]) -> None:
    for address, wire in row.get("wires", {}).items():
        _attributes(
            host, address, {name: text for name, text in link(wire, wire).items() if name.startswith("current")}
        )
    for address, wire in row.get("able", {}).items():
        _attributes(host, address, {name: text for name, text in link(wire, wire).items() if name.startswith("max")})
        data = bytearray(host.config(address))
        # Link capabilities: the lanes and the speed that this end can do.
        width, speed = pair(wire)
        data[0x6C] = data[0x6C] & 0x00 | {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5}[speed] | (width << 4 & 0xF0)
        data[0x6D] = data[0x6D] & 0xFC | width >> 4
        host.set_config(address, bytes(data))
    for address, control in row.get("acs", {}).items():
        host.set_config(address, set_acs(host.config(address), control))
    for address, sizes in row.get("bars", {}).items():
        host.set_config(address, set_bar(host.config(address), *sizes))
    for address, driver in row.get("drivers", {}).items():
        host.drive(address, driver)
    for address in row.get("dead", []):
        host.set_config(address, b"\xff" * 4096)
    if "cut" in row:
        for place in Path(host.root, "sys/devices").rglob("config"):
            place.write_bytes(place.read_bytes()[: row["cut"]])


def _attributes(host: PlatformHost, address: str, texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        host.put("/%s/%s/%s" % (BUS, address, name), text)


def is_known(pci_id: str) -> bool:
    """Whether the catalogue has a GPU of this PCI id."""
    return bool(gpus.all_by_pci_id(pci_id))
