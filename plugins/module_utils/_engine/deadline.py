# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A deadline that really ends what it is set to.

What waits (for a device, a filesystem, a tool) is given up and left to a thread.  What never gives the interpreter back,
as a regular expression that runs wild does, leaves nobody to give it up: then the process is ended from outside of the
interpreter, and standard error tells the place.
"""

from __future__ import annotations

import faulthandler
import threading
from typing import Callable, List, TypeVar, Union

from .values import Unknown

# How long after its deadline a process is ended in which nobody could see the deadline.
GRACE_S = 10.0

_Answer = TypeVar("_Answer")


def within(work: Callable[[], _Answer], deadline_s: float, grace_s: float = GRACE_S) -> Union[_Answer, Unknown]:
    """What ``work`` gives or raises; Unknown when it does not come back by the deadline."""
    found: List[_Answer] = []
    failure: List[BaseException] = []

    def run() -> None:
        try:
            found.append(work())
        except BaseException as error:  # handed to the caller below
            failure.append(error)

    faulthandler.dump_traceback_later(deadline_s + grace_s, exit=True, file=2)
    try:
        worker = threading.Thread(target=run, daemon=True)
        worker.start()
        worker.join(deadline_s)
    finally:
        faulthandler.cancel_dump_traceback_later()
    if failure:
        raise failure[0]
    return found[0] if found else Unknown("hung for %g s" % deadline_s)
