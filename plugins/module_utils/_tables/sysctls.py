# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Facts about sysctls: how they are named, which come from a module, which exclude each other."""

from __future__ import annotations

from typing import Dict

# Setting one zeroes the other (kernel mm/page-writeback.c and mm/util.c), and 0 cannot be written to
# the dirty ones to bring the other back.
TWIN: Dict[str, str] = {
    "vm/dirty_bytes": "vm/dirty_ratio",
    "vm/dirty_background_bytes": "vm/dirty_background_ratio",
    "vm/overcommit_kbytes": "vm/overcommit_ratio",
}
TWIN.update({ratio: other for other, ratio in list(TWIN.items())})

# Sysctls that are there only while a module is loaded (the module's own register_*_sysctl calls).
MODULE_OF: Dict[str, str] = {
    "net/bridge": "br_netfilter",
    "net/netfilter/nf_conntrack": "nf_conntrack",
    "net/nf_conntrack_max": "nf_conntrack",
    "net/rds": "rds",
    "fs/xfs": "xfs",
    "fs/nfs": "nfs",
    "fs/lustre": "lustre",
    "sunrpc": "sunrpc",
    "dev/raid": "md_mod",
}


def key_path(name: str) -> str:
    """A sysctl name as a path below /proc/sys, by the rule of sysctl.d(5).

    When the first separator is a dot, dots and slashes change places: net.ipv4.conf.eth0/1.x is
    net/ipv4/conf/eth0.1/x.  When it is a slash, the name is a path already.
    """
    name = name.strip().strip("/")
    first = min((name.find(sign) for sign in "./" if sign in name), default=-1)
    return _swap(name) if first >= 0 and name[first] == "." else name


def dotted(path: str) -> str:
    """The reverse: a path below /proc/sys as people write it."""
    return _swap(path)


def module_of(path: str) -> str:
    """The module that offers a sysctl, empty when none is known to."""
    return next((module for prefix, module in MODULE_OF.items() if path.startswith(prefix)), "")


def _swap(name: str) -> str:
    return name.translate(str.maketrans("./", "/."))
