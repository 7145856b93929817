# Copyright: (c) 2026, gpufleet.host contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small client of QEMU's control socket."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from lab.base import LabError


class Qmp:
    """One connection; commands answer in order, events are kept until asked for."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._events: list[dict[str, Any]] = []
        self._read()  # the greeting
        self.execute("qmp_capabilities")

    def execute(self, command: str, **arguments: Any) -> Any:
        self._stream.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self._stream.flush()
        while True:
            message = self._read()
            if "event" in message:
                self._events.append(message)
            elif "error" in message:
                reason = message["error"].get("desc", "no reason given")
                raise LabError(f"QEMU refused {command}: {reason}", hint="run: lab/lab.py status")
            else:
                return message["return"]

    def wait_event(self, name: str, **data: Any) -> None:
        """Return once an event with this name and these data has come."""
        while not any(_matches(event, name, data) for event in self._events):
            message = self._read()
            if "event" in message:
                self._events.append(message)

    def _read(self) -> dict[str, Any]:
        line = self._stream.readline()
        if not line:
            raise LabError("QEMU closed its control socket", hint="run: lab/lab.py status")
        message: dict[str, Any] = json.loads(line)
        return message


def _matches(event: dict[str, Any], name: str, data: dict[str, Any]) -> bool:
    found = event.get("data", {})
    return event["event"] == name and all(found.get(key) == value for key, value in data.items())


@contextmanager
def connect(path: Path, *, timeout_s: float = 30.0) -> Iterator[Qmp]:
    """Open the control socket of a running host."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
        link.settimeout(timeout_s)
        try:
            link.connect(str(path))
            with link.makefile("rw", encoding="utf-8") as stream:
                yield Qmp(stream)
        except (ConnectionError, FileNotFoundError, TimeoutError) as error:
            raise LabError(f"no answer on {path}: {error}", hint="run: lab/lab.py status") from error
