# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Folders of drop-in files as systemd, kmod and PAM read them: by name, the nearer folder masks."""

from __future__ import annotations

from typing import Dict, List, Sequence, Tuple

from .._engine.host import Host
from .._engine.values import Text, Unknown

ConfFile = Tuple[str, str]
"""Path and text of one file."""


def roots(name: str) -> Tuple[str, ...]:
    """Where systemd looks for ``name`` (sysctl.d, tmpfiles.d, …), from the nearest (systemd-sysctl(8))."""
    return tuple("%s/%s" % (root, name) for root in ("/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib"))


def files(host: Host, folders: Sequence[str], suffix: str = ".conf") -> List[ConfFile]:
    """The files that count, in the order they are read: sorted by name over all folders.

    Of files with the same name only that of the first folder counts; a link to /dev/null is empty.
    """
    place: Dict[str, str] = {}
    for folder in folders:
        for name in host.listdir(folder):
            if name.endswith(suffix):
                place.setdefault(name, "%s/%s" % (folder, name))
    found: List[ConfFile] = []
    for name in sorted(place):
        text = host.read(place[name])
        if isinstance(text, str):
            found.append((place[name], text))
    return found


def own_file(host: Host, path: str) -> Text:
    """A file of ours; Unknown where /etc itself was not seen, as in a sparse capture."""
    text = host.read(path)
    if text is None and not host.exists("/etc"):
        return Unknown("/etc was not seen")
    return text
