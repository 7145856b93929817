# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An error is not absence: whatever path of a host answers with an error, nothing is planned that was not before."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path
from typing import Any, Sequence

import every_area
import pytest

from ansible_collections.gpufleet.host.plugins.module_utils._engine.engine import look, sort_out
from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import Result
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import Text, Unknown

ERRORS = (errno.EIO, errno.EACCES, errno.ELOOP)
# Words that speak of absence.
ABSENT = re.compile(r"\bmissing\b|\bno such\b|not there\b|not installed|does not exist|is gone", re.IGNORECASE)


class Broken:
    """A host on which one path, and all below it, answers with an error."""

    is_live = True

    def __init__(self, host: Any) -> None:
        self.host = host
        self.unseen: dict[str, str] = {}
        self.asked: dict[str, None] = {}
        self.broken, self.reason = "", ""

    def _is_broken(self, path: str) -> bool:
        self.asked[path] = None
        is_broken = bool(self.broken) and (path == self.broken or path.startswith(self.broken + "/"))
        if is_broken:
            self.unseen[path] = self.reason
        return is_broken

    def read(self, path: str) -> Text:
        return Unknown(self.reason) if self._is_broken(path) else self.host.read(path)

    def read_own(self, path: str) -> Text:
        return Unknown(self.reason) if self._is_broken(path) else self.host.read_own(path)

    def exists(self, path: str) -> bool | Unknown:
        return Unknown(self.reason) if self._is_broken(path) else self.host.exists(path)

    def listdir(self, path: str) -> list[str]:
        return [] if self._is_broken(path) else self.host.listdir(path)

    def readlink(self, path: str) -> str | None:
        return None if self._is_broken(path) else self.host.readlink(path)

    def run(self, argv: Sequence[str], deadline_s: float = 10.0) -> Result:
        result: Result = self.host.run(argv, deadline_s)
        return result


@pytest.mark.parametrize("name", every_area.NAMES)
def test_an_error_is_not_absence(name: str, tmp_path: Path) -> None:
    sample = every_area.sample(name)
    host = Broken(sample.make(tmp_path))

    def planned() -> tuple[set[str], set[str]]:
        seen = look(sample.area, sample.want, host)
        steps = [one.step for one in sort_out(sample.area, seen, "destructive") if one.status in ("planned", "waits")]
        # The reason may stand beside it: what is there, and shows nothing, is "not there" to the next part of it.
        reasons = " ".join(str(f.observed) for f in seen.findings)
        said = {  # those that say "cannot be seen" say enough
            "%s %s %s %s (%s)" % (f.id, f.subject, f.observed, f.why, reasons)
            for f in seen.findings
            if f.level != "info" and not f.id.endswith("unseen")
        }
        # A value that was read to be another one was seen.
        return {step.id for step in steps if step.kind != "value" or step.before is None}, said

    steps, said = planned()
    assert steps
    wrong = []
    # All of them in the small areas; of the thousand paths of platform every few.
    paths = list(host.asked)
    for number, path in enumerate(paths[:: 1 + len(paths) // 150]):
        host.broken, host.reason = path, os.strerror(ERRORS[number % len(ERRORS)])
        host.unseen.clear()
        more, says = planned()
        wrong += ["%s: planned %s" % (path, step) for step in more - steps]
        wrong += ["%s: %s" % (path, text) for text in says - said if ABSENT.search(text) and host.reason not in text]
    assert not wrong, "\n".join(wrong)
