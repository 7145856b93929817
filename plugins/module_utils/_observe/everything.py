# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a whole capture holds besides what today's wants ask: the settings that any want could ask for."""

from __future__ import annotations

import re
from typing import List

from .._engine.host import Host

# All sysctls, all queues, the parameters of all modules. Depth is that of /proc/sys/net/ipv4/conf/eth0/x.
_TREES = (("/proc/sys", 6), ("/sys/module", 3))
_QUEUES = "/sys/block"
# Never read: secrets of the kernel, what differs at each look, what has no value, and thousands of files of interfaces.
_LEFT_OUT = re.compile(
    r"/proc/sys/(?:kernel/random|fs/binfmt_misc|net/[^/]+/neigh)(?:/|$)|.*(?:secret|_key)$|"
    r"/sys/module/[^/]+/(?:sections|notes|holders|drivers)(?:/|$)"
)
# A host has some 2,000 sysctls, and 60 more for each network interface.
_MOST_FILES = 20000


def observe(host: Host) -> int:
    """Read them all; gives how many there were."""
    paths = [path for top, depth in _TREES for path in _below(host, top, depth)]
    for disk in host.listdir(_QUEUES):
        paths += _below(host, "%s/%s/queue" % (_QUEUES, disk), 2)
    # Settings of interfaces last, since a host with containers has tens of thousands.
    for path in sorted(paths, key=lambda path: path.startswith("/proc/sys/net/"))[:_MOST_FILES]:
        host.read(path)
    return min(len(paths), _MOST_FILES)


def _below(host: Host, path: str, depth: int) -> List[str]:
    """The files below a folder; what lists nothing is taken for a file."""
    if _LEFT_OUT.fullmatch(path) or depth < 0:
        return []
    names = host.listdir(path)
    if not names:
        return [path]
    return [file for name in names for file in _below(host, "%s/%s" % (path, name), depth - 1)]
