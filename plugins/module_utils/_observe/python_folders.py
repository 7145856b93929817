# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Folders that Python packages lie in: of the system, and of the usual environments for machine learning."""

from __future__ import annotations

import re
from typing import List, Tuple

from .._engine.host import Host

_ROOTS = (
    "/usr",
    "/usr/local",
    "/opt/conda",
    "/opt/venv",
    "/opt/miniconda3",
    "/opt/miniforge3",
    "/opt/anaconda3",
    "/venv",
)
_ENVIRONMENTS = tuple("/opt/%s/envs" % name for name in ("conda", "miniconda3", "miniforge3", "anaconda3"))
# Python 3.6 to 3.15.
_VERSIONS = range(6, 16)
_NAMES = ("site-packages", "dist-packages")
# An environment more is not looked at, so that a host with hundreds costs no more.
_MOST_ENVIRONMENTS = 16


def python_folders(host: Host) -> Tuple[str, ...]:
    """The folders that are there."""
    roots = list(_ROOTS)
    for place in _ENVIRONMENTS:
        names = [name for name in host.listdir(place) if re.fullmatch(r"[\w.-]{1,80}", name, re.ASCII)]
        roots += ["%s/%s" % (place, name) for name in names[:_MOST_ENVIRONMENTS]]
    found: List[str] = ["/usr/lib/python3/dist-packages"] if host.exists("/usr/lib/python3/dist-packages") else []
    for root in roots:
        for lib in ("lib", "lib64"):
            folder = "%s/%s" % (root, lib)
            # On some systems one is a link to the other.
            if host.exists(folder) and host.readlink(folder) is None:
                found += _below(host, folder)
    return tuple(found)


def _below(host: Host, folder: str) -> List[str]:
    paths = ["%s/python3.%d" % (folder, version) for version in _VERSIONS]
    return [
        "%s/%s" % (path, name)
        for path in paths
        if host.exists(path)
        for name in _NAMES
        if host.exists("%s/%s" % (path, name))
    ]
