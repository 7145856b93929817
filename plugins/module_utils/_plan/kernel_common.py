# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the topics of kernel_settings share: our files, and the findings that all of them know."""

from __future__ import annotations

from typing import Any, List, Mapping, Optional, Tuple

from .._engine.values import Finding, Step, Unknown

HEAD = "# Managed by gpufleet.host.kernel: changes made here are put back.\n"


def knob(want: Mapping[str, Any], name: str) -> Optional[str]:
    """A wanted word, None when it is not managed (older Ansible hands null over as an empty string)."""
    value = want.get(name)
    return None if value is None or str(value).strip() == "" else str(value).strip()


def file_steps(
    step: str, path: str, have: Mapping[str, Any], text: Optional[str], why: str, source: str, needs: str = "nothing"
) -> List[Step]:
    """The step that makes a file of ours hold ``text`` (None: be gone), when it does not."""
    before = have["files"].get(path)
    if isinstance(before, Unknown) or before == text:
        return []
    return [Step(step, "file", path, before, text, why, source, needs=needs)]


def is_behind(file: str, ours: str) -> bool:
    """Whether a drop-in is read after ours."""
    return file.rsplit("/", 1)[-1] > ours.rsplit("/", 1)[-1]


def unseen(subject: str, reason: Unknown, look: str, source: str) -> Finding:
    return Finding(
        "kernel.unseen", "warn", subject, "to be readable", reason,
        "it cannot be seen, so it can neither be called right nor wrong", look, source,
    )  # fmt: skip


def no_such(subject: str, wanted: str, what: str, variable: str, source: str) -> Finding:
    """A host without the thing at all: known, and nothing to do, as on most virtual machines."""
    return Finding(
        "kernel.not-offered", "info", subject, wanted, "%s is not offered" % what,
        "on a virtual machine it is the hypervisor's to set; there is nothing to change here",
        "set %s: null for this host to leave it out" % variable, source,
    )  # fmt: skip


def not_possible(
    finding: str, subject: str, wanted: str, offered: str, why: str, fix: str, source: str, blocks: Tuple[str, ...] = ()
) -> Finding:
    return Finding(finding, "block", subject, wanted, offered, why, fix, source, blocks)


def overridden(
    subject: str, wanted: str, file: str, number: int, value: Any, why: str, variable: str, source: str
) -> Finding:
    """Another file or tool sets the same thing otherwise: it is named, and we do not fight."""
    return Finding(
        "kernel.foreign-owner", "fail", subject, wanted, "%s:%d sets %s" % (file, number, value), why,
        "remove or change line %d of %s, or leave it out of %s" % (number, file, variable), source,
    )  # fmt: skip
