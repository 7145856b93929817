# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Device nodes, and whether a process of a control group may open them.

The device filter of cgroup v2 is a BPF program that no file shows, so the only proof is to open a
node from within the group.  A shell of our own joins the group for that moment, opens and is gone;
no process of the unit is touched.
"""

from __future__ import annotations

import re
from typing import Dict, List, Sequence, Union

from .._engine.host import Host
from .._engine.values import Unknown
from .cgroup import CGROUP_FOLDER

# GPU nodes of the NVIDIA driver, and of any driver in DRM (https://docs.kernel.org/gpu/drm-uapi.html).
_GPU_NODE = re.compile(r"nvidia(\d{1,3}|ctl|-uvm|-uvm-tools|-modeset)")
_DRM_NODE = re.compile(r"renderD\d{1,3}")
# Always there, open to root, and not among the nodes that DevicePolicy=closed lets through.
CONTROL_NODE = "/dev/kmsg"

_DEADLINE_S = 20.0
_SCRIPT = 'echo $$ > "$1" || exit 9; shift; for node; do (: < "$node") 2>&1 && echo "opened $node"; done; exit 0'
_DENIED = re.compile(r"Operation not permitted|Permission denied")
_ABSENT = re.compile(r"No such file|nonexistent")


def gpu_nodes(host: Host) -> List[str]:
    """The device nodes of GPUs that are there."""
    nodes = ["/dev/" + name for name in host.listdir("/dev") if _GPU_NODE.fullmatch(name)]
    return nodes + ["/dev/dri/" + name for name in host.listdir("/dev/dri") if _DRM_NODE.fullmatch(name)]


def parse_reach(text: str, nodes: Sequence[str]) -> Dict[str, str]:
    """``denied``, ``reachable`` or ``absent`` for each node that the shell said something about.

    An error other than EPERM comes from the driver, behind the filter: the node is reachable.
    """
    found: Dict[str, str] = {}
    for line in text.splitlines():
        for node in nodes:
            if node not in re.split(r"[\s:]+", line):
                continue
            found[node] = "denied" if _DENIED.search(line) else "absent" if _ABSENT.search(line) else "reachable"
    return found


def reach(host: Host, control_group: str, nodes: Sequence[str]) -> Union[Dict[str, str], Unknown]:
    """Whether a process in a unit's group may open the nodes, tried by opening them for reading."""
    procs = CGROUP_FOLDER + control_group + "/cgroup.procs"
    text = host.run(["sh", "-c", _SCRIPT, "sh", procs, *nodes], _DEADLINE_S).text()
    if isinstance(text, Unknown):
        return Unknown("no process could be put into the unit's control group: %s" % text.reason)
    return parse_reach(text, nodes)
