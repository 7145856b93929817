# Copyright: (c) 2026, gpufleet.host contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import io
import json
from typing import Any

import pytest

from lab.base import LabError
from lab.qmp import Qmp

GREETING = {"QMP": {"version": {}}}
DONE: dict[str, Any] = {"return": {}}


class Stream(io.StringIO):
    """Answers that were written down before; what is written goes to `sent`."""

    def __init__(self, *answers: dict[str, Any]) -> None:
        super().__init__("".join(json.dumps(answer) + "\n" for answer in answers))
        self.sent: list[dict[str, Any]] = []

    def write(self, text: str) -> int:
        self.sent.append(json.loads(text))
        return len(text)


def test_a_command_gets_its_answer_past_events() -> None:
    stream = Stream(GREETING, DONE, {"event": "RESUME"}, {"return": {"status": "running"}})
    assert Qmp(stream).execute("query-status") == {"status": "running"}
    assert [message["execute"] for message in stream.sent] == ["qmp_capabilities", "query-status"]


def test_an_error_becomes_one_of_ours() -> None:
    stream = Stream(GREETING, DONE, {"error": {"class": "GenericError", "desc": "Duplicate ID"}})
    with pytest.raises(LabError, match="refused device_add: Duplicate ID"):
        Qmp(stream).execute("device_add", driver="scsi-hd")


@pytest.mark.parametrize("is_early", [True, False], ids=["before the answer", "after the answer"])
def test_an_event_is_found_wherever_it_comes(is_early: bool) -> None:
    event = {"event": "DEVICE_DELETED", "data": {"device": "hot", "path": "/x"}}
    other = {"event": "DEVICE_DELETED", "data": {"device": "cold", "path": "/y"}}
    answers = [event, DONE] if is_early else [DONE, other, event]
    client = Qmp(Stream(GREETING, DONE, *answers))
    client.execute("device_del", id="hot")
    client.wait_event("DEVICE_DELETED", device="hot")


def test_the_end_of_the_stream_is_told() -> None:
    client = Qmp(Stream(GREETING, DONE))
    with pytest.raises(LabError, match="closed its control socket"):
        client.execute("query-status")
