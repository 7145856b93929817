# Copyright: (c) 2026, gpufleet.host contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the command line of nvidia-smi to what it prints and its exit status."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Sequence

from . import answers
from .cards import Card, bus_id, cards
from .slots import Slot, read_slots
from .troubles import FILE, BadTrouble, Troubles, read_troubles

# nvidia-smi(1), RETURN VALUE; 255 for a GPU that fell off the bus was seen in reports.
_BAD_ARGUMENT, _NO_DEVICES, _NO_DRIVER, _MISMATCH, _FALLEN = 2, 6, 9, 18, 255
_SIMULATION_FAULT = 70
_HANG_S = 3600
_SHORT = {
    "--query": "-q",
    "--xml-format": "-x",
    "--list-gpus": "-L",
    "--status": "-s",
    "--errorcounters": "-e",
    "--matrix": "-m",
}


def main(argv: Sequence[str], root: str = "") -> int:
    try:
        troubles = read_troubles(root)
        if troubles.hang:
            _hang(troubles.hang, root)
            troubles = read_troubles(root)
    except BadTrouble as error:
        print(f"simulated nvidia-smi: {FILE}: {error}", file=sys.stderr)
        return _SIMULATION_FAULT
    rc, out = answer(argv, read_slots(root), troubles, time.localtime())
    sys.stdout.write(out)
    return rc


def answer(argv: Sequence[str], slots: list[Slot], troubles: Troubles, now: time.struct_time) -> tuple[int, str]:
    """Exit status and standard output."""
    if troubles.driver == "mismatch":
        return _MISMATCH, (
            f"Failed to initialize NVML: Driver/library version mismatch\nNVML library version: {answers.NVML}\n"
        )
    if troubles.driver == "not-loaded":
        return _NO_DRIVER, (
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. "
            "Make sure that the latest NVIDIA driver is installed and running.\n\n"
        )
    if list(argv) == ["--version"]:
        return 0, answers.version()
    found = cards(slots, troubles)
    fallen = [card for card in found if card.is_fallen]
    if fallen:
        # Four digits of domain, no blank before them, and nothing else: the wording that was recorded.
        return _FALLEN, f"Unable to determine the device handle for GPU{bus_id(fallen[0].slot)[4:]}: Unknown Error\n"
    if not found:
        return _NO_DEVICES, "No devices were found\n"
    return _ask(list(argv), found, now)


def _ask(argv: list[str], found: list[Card], now: time.struct_time) -> tuple[int, str]:
    words = [_SHORT.get(word, word) for word in argv]
    if sorted(words) == ["-q", "-x"]:
        return 0, answers.xml(found, now)
    if words == ["-q"]:
        return 0, answers.text(found, now)
    if words == ["-L"]:
        return 0, answers.listing(found)
    if words == ["nvlink", "-s"]:
        return 0, answers.nvlink_status(found)
    if words == ["nvlink", "-e"]:
        return 0, answers.nvlink_errors(found)
    if words == ["topo", "-m"]:
        return 0, answers.topology(found)
    if words and words[0].startswith("--query-gpu="):
        return _query(words, found, now)
    print("simulated nvidia-smi: this one knows -q [-x], -L, nvlink -s|-e, topo -m, --query-gpu", file=sys.stderr)
    return _BAD_ARGUMENT, "Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n\n"


def _query(words: list[str], found: list[Card], now: time.struct_time) -> tuple[int, str]:
    names = words[0].partition("=")[2].split(",")
    layout = words[1].partition("=")[2].split(",") if len(words) == 2 and words[1].startswith("--format=") else []
    if "csv" not in layout:
        return _BAD_ARGUMENT, '"--query-gpu=" switch must be used with "--format=csv" switch.\n'
    try:
        return 0, answers.query(found, [name.strip() for name in names], layout, now)
    except answers.BadColumn as error:
        return _BAD_ARGUMENT, f'Field "{error}" is not a valid field to query.\n\n'


def _hang(how: str, root: str) -> None:
    """``sleep`` ends at the first signal.  ``deaf`` is as near as we get to a process stuck in the kernel.

    That one does not even die from SIGKILL, and holds its pipes: here a second process, in a session of its own, holds
    them on after the first was killed.  It ends as soon as the host is told to suffer from something else.
    """
    if how == "deaf":
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        if os.fork() == 0:
            os.setsid()
            _wait(how, root)
            os._exit(0)
    _wait(how, root)


def _wait(how: str, root: str) -> None:
    end = time.monotonic() + _HANG_S
    while time.monotonic() < end:
        time.sleep(1)
        try:
            if read_troubles(root).hang != how:
                return
        except BadTrouble:
            return
