# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compact descriptions of captures, written out as the folders that ``CaptureHost`` replays.

``files``     path to text or to ``{vpd: {name: …, V3: …}}`` (a card's vital product data); null is an empty folder
``links``     path to the target of a symbolic link
``pci``       devices in sysfs, the way from the root bus in ``at``: ``pci0000:15/0000:15:01.0/0000:19:00.0``;
              ``id`` vendor:device, ``class``, ``driver``, ``node``, ``link`` as [lanes, GT/s] now and at most
``units``     what ``systemctl show`` says of NVIDIA's units, by name
``commands``  ``argv``, ``rc``, ``stdout`` (a text) and ``stderr``
``later``     files as they read the second time, for counters that grow

A text is one, or ``{corpus: kind/file, replace: {old: new}, until: words}``, or ``{repeat: times, text: …, then: …}``.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any, Mapping

import yaml

from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import CaptureHost
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import Text
from ansible_collections.gpufleet.host.plugins.module_utils._observe import fabric

CORPUS = Path(__file__).resolve().parents[1] / "corpus"
STORIES = CORPUS / "stories"
KEYS = {
    "story", "description", "real", "made_up", "files", "links", "pci", "units", "commands", "later", "want", "expect",
    "never",
}  # fmt: skip


def load(path: Path) -> dict[str, Any]:
    about: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert set(about) <= KEYS, set(about) - KEYS
    return about


def write(about: Mapping[str, Any], folder: Path) -> Path:
    """The capture of a description."""
    (folder / "commands").mkdir(parents=True)
    (folder / "files").mkdir()
    (folder / "capture.json").write_text('{"format": 1, "hostname": "story", "taken": "2026-01-01T00:00:00Z"}')
    for device in about.get("pci", []):
        _put_device(folder, device)
    for path, said in about.get("files", {}).items():
        _put(folder, path, said)
    for path, target in about.get("links", {}).items():
        _link(folder, path, target)
    commands = list(about.get("commands", []))
    if "units" in about:
        commands.append({"argv": _show(), "stdout": _units(about["units"])})
    for number, command in enumerate(commands):
        recorded = {"rc": 0, "stderr": "", **command, "stdout": text_of(command.get("stdout", ""))}
        (folder / "commands" / f"{number:04}.json").write_text(json.dumps(recorded), encoding="utf-8")
    return folder


def text_of(said: Any) -> str:
    """A text, or a sample of the corpus with some words replaced, cut off or repeated."""
    if isinstance(said, str):
        return said
    if "repeat" in said:
        return str(said["text"]) * int(said["repeat"]) + str(said.get("then", ""))
    text = (CORPUS / said["corpus"]).read_text(encoding="utf-8", errors="replace")
    for old, new in said.get("replace", {}).items():
        assert old in text, (said["corpus"], old)
        text = text.replace(old, new)
    return text.partition(said["until"])[0] if "until" in said else text


class Later(CaptureHost):
    """A capture of which some files read otherwise the second time, as counters do on a live host."""

    def __init__(self, folder: Path, later: Mapping[str, str]) -> None:
        super().__init__(str(folder))
        self._later, self._read = later, set[str]()

    def read(self, path: str) -> Text:
        if path in self._read and path in self._later:
            return self._later[path]
        self._read.add(path)
        return super().read(path)


def _put(folder: Path, path: str, said: Any) -> None:
    place = folder / "files" / path.lstrip("/")
    if said is None:
        place.mkdir(parents=True, exist_ok=True)
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(_vpd(said["vpd"]) if not isinstance(said, str) and "vpd" in said else text_of(said).encode())


def _vpd(said: Mapping[str, str]) -> bytes:
    """As PCI Local Bus 3.0, appendix I, has it."""
    name = said["name"].encode()
    rows = b"".join(key.encode() + bytes([len(word)]) + word.encode() for key, word in said.items() if key != "name")
    return b"\x82" + struct.pack("<H", len(name)) + name + b"\x90" + struct.pack("<H", len(rows)) + rows + b"\x78"


def _link(folder: Path, path: str, target: str) -> None:
    place = folder / "files" / path.lstrip("/")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(target)


def _put_device(folder: Path, device: Mapping[str, Any]) -> None:
    at, address = device["at"], device["at"].rsplit("/", 1)[-1]
    vendor, number = device["id"].split(":")
    texts = {"vendor": "0x" + vendor, "device": "0x" + number, "class": "0x" + device["class"]}
    texts["numa_node"] = str(device.get("node", -1))
    if "link" in device:
        now, most = device["link"]
        texts["current_link_width"], texts["max_link_width"] = str(now[0]), str(most[0])
        texts["current_link_speed"], texts["max_link_speed"] = (f"{float(end[1])} GT/s PCIe" for end in (now, most))
    for name, text in texts.items():
        _put(folder, f"/sys/devices/{at}/{name}", text + "\n")
    _link(folder, f"/sys/bus/pci/devices/{address}", f"../../../devices/{at}")
    if "driver" in device:
        _link(folder, f"/sys/devices/{at}/driver", f"../../../../bus/pci/drivers/{device['driver']}")


def _show() -> list[str]:
    names = ["Id", "Names", *fabric._PROPERTIES]
    return ["systemctl", "show", "-p", ",".join(names), "--", *fabric.UNITS]


def _units(units: Mapping[str, Mapping[str, str]]) -> str:
    blocks = []
    for name in fabric.UNITS:
        rows = {"Id": name, "Names": name, "LoadState": "not-found", "ActiveState": "inactive", **units.get(name, {})}
        blocks.append("".join(f"{key}={value}\n" for key, value in rows.items()))
    return "\n".join(blocks)
