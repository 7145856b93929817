# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Work in a child process that can be given up: what sleeps in the kernel, or never gives the interpreter back.

A thread cannot do that: a regular expression holds the interpreter's lock, so nobody is left to see the deadline.
"""

from __future__ import annotations

import os
import pickle
import select
import signal
import time
from typing import Any, Callable, List, Optional

from .values import Unknown

# How long a killed child is waited for; one that sleeps in the kernel is left to itself.
_LINGER_S = 0.2


def apart(work: Callable[[], Any], deadline_s: float) -> Any:
    """What ``work`` gives or raises, else Unknown: at the deadline its process is killed and not waited for."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        _answer(writer, work)
    os.close(writer)
    try:
        data = _hear(reader, time.monotonic() + deadline_s)
    finally:
        os.close(reader)
        _end(pid)
    if data is None:
        return Unknown("hung: no answer in %g s" % deadline_s)
    if not data:
        return Unknown("its process ended without an answer")
    failure, found = pickle.loads(data)
    if failure is not None:
        raise failure
    return found


def _answer(writer: int, work: Callable[[], Any]) -> None:
    """The life of the child; nothing of the parent (buffers, handlers at exit) is run by it."""
    try:
        try:
            data = pickle.dumps((None, work()))
        except BaseException as error:
            data = _packed(error)
        with os.fdopen(writer, "wb") as out:
            out.write(data)
    finally:
        os._exit(0)


def _packed(error: BaseException) -> bytes:
    try:
        data = pickle.dumps((error, None))
        pickle.loads(data)
    except Exception:  # such as an exception whose arguments are not those of its class
        return pickle.dumps((RuntimeError("%s: %s" % (type(error).__name__, error)), None))
    return data


def _hear(reader: int, deadline: float) -> Optional[bytes]:
    """All that the child writes; None when it is not through by the deadline."""
    blocks: List[bytes] = []
    while True:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([reader], [], [], left)[0]:
            return None
        block = os.read(reader, 1 << 16)
        if not block:
            return b"".join(blocks)
        blocks.append(block)


def _end(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + _LINGER_S
    while os.waitpid(pid, os.WNOHANG)[0] == 0 and time.monotonic() < deadline:
        time.sleep(0.005)
