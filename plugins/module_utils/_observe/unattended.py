# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether apt upgrades packages by itself (unattended-upgrades), and which it leaves alone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import List, Tuple

from .._engine.host import Host
from .._engine.values import Text, Unknown
from .nvidia_values import Flag

FOLDER = "/etc/apt/apt.conf.d"
_MOST_FILES = 100

# What does not end in .conf, or has no ending, is not read by apt (apt.conf(5)).
_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}(?:\.conf)?", re.ASCII)
_COMMENT = re.compile(r"(?:^|(?<=[\s;{}]))(?://|#(?!clear)).*")
_PERIODIC = re.compile(r'APT::Periodic::Unattended-Upgrade\s{1,20}"?(\w{1,20})"?\s{0,20};', re.ASCII)
_BLACKLIST = re.compile(r"Unattended-Upgrade::Package-Blacklist(?:::)?", re.ASCII)
_QUOTED = re.compile(r'"([^"]{1,200})"')


@dataclass(frozen=True)
class Unattended:
    """``left_alone`` are the patterns of the blacklist, which stand at the beginning of a package's name."""

    is_on: Flag
    left_alone: Tuple[str, ...]


def observe(host: Host) -> Unattended:
    if not host.exists(FOLDER):
        return Unattended(Unknown("not there: %s" % FOLDER), ())
    names = [name for name in host.listdir(FOLDER) if _NAME.fullmatch(name)]
    texts = [host.read("%s/%s" % (FOLDER, name)) for name in names[:_MOST_FILES]]
    # A later file wins, and apt reads them in the order of their names.
    return parse_apt_conf("\n".join(text for text in texts if isinstance(text, str)))


def parse_apt_conf(text: Text) -> Unattended:
    """Files of apt.conf.d behind each other."""
    if not isinstance(text, str):
        return Unattended(text if isinstance(text, Unknown) else Unknown("not there"), ())
    is_on = is_list = False
    left_alone: List[str] = []
    for line in text.splitlines():
        said = _COMMENT.sub("", line[:1000])
        period = _PERIODIC.search(said)
        is_on = period.group(1) != "0" if period else is_on
        is_list = is_list or _BLACKLIST.search(said) is not None
        if is_list:
            left_alone += _QUOTED.findall(said)
            is_list = "}" not in said and not _is_single(said)
    return Unattended(is_on, tuple(dict.fromkeys(left_alone)))


def _is_single(said: str) -> bool:
    """``Unattended-Upgrade::Package-Blacklist:: "nvidia-";``, which opens no list."""
    return _BLACKLIST.search(said) is not None and ";" in said and "{" not in said
