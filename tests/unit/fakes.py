# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host on a tree of files: real reads and writes below a root, commands and kernel files simulated.

A subclass gives ``commands`` (what a program does to the tree) and ``kernel`` (how a kernel file
answers to a write).  All of its state lies in the tree, so it survives the death of a process.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Callable, Sequence

from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import LiveHost, Result

Program = Callable[[Sequence[str], str], Result]


class FakeHost(LiveHost):
    """``refuse``: paths or words of a command that the host refuses; ``ignore``: accepted, without effect."""

    def __init__(self, root: Path, refuse: Sequence[str] = (), ignore: Sequence[str] = ()) -> None:
        super().__init__(str(root))
        self.refuse = tuple(refuse)
        self.ignore = tuple(ignore)

    def commands(self) -> dict[str, Program]:
        return {}

    def kernel(self, path: str, text: str) -> str:
        """What a kernel file shows after ``text`` was written to it."""
        return text + "\n"

    def run(self, argv: Sequence[str], deadline_s: float = 10.0) -> Result:
        return self._do(argv, "")

    def execute(self, argv: Sequence[str], stdin: str, deadline_s: float) -> Result:
        if any(word in self.refuse for word in (" ".join(argv), argv[0])):
            return Result(1, "", "refused by the test")
        if any(word in self.ignore for word in (" ".join(argv), argv[0])):
            return Result(0, "", "")
        return self._do(argv, stdin)

    def write(self, path: str, text: str | None, mode: int = 0o644) -> None:
        if path in self.refuse:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)
        if path not in self.ignore:
            super().write(path, text, mode)

    def set_value(self, path: str, text: str) -> None:
        if path in self.refuse:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)
        if not os.path.exists(self.root + path):
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        if path not in self.ignore:
            self.put(path, self.kernel(path, text))

    def put(self, path: str, text: str) -> None:
        """Set up a file of the tree, as the world outside of the engine would."""
        place = Path(self.root + path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8", errors="surrogateescape")

    def tree(self) -> dict[str, str]:
        """All files of the tree but the journal's, for comparing byte for byte."""
        files = {}
        for folder, _folders, names in os.walk(self.root):
            for name in names:
                place = os.path.join(folder, name)
                path = place[len(self.root) :]
                if path.startswith("/var/lib/gpufleet/"):
                    continue
                files[path] = (
                    "-> " + os.readlink(place)
                    if os.path.islink(place)
                    else Path(place).read_text("utf-8", "surrogateescape")
                )
        return files

    def _do(self, argv: Sequence[str], stdin: str) -> Result:
        program = self.commands().get(os.path.basename(argv[0]))
        if program is None:
            return Result(-1, "", "", "%s is not installed" % argv[0])
        return program(argv, stdin)
