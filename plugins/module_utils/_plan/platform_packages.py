# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Packages of the driver that a nightly upgrade may change under running jobs."""

from __future__ import annotations

import re
from typing import Any, List, Mapping

from .._engine.values import Finding, Unknown

Want = Mapping[str, Any]
Have = Mapping[str, Any]

# What has to be of one version with the loaded module.
_DRIVER = ("driver", "library", "module", "firmware", "tool", "fabricmanager", "nscq", "imex")
# The pattern of a blacklist is Python's regular expression; only those that are quick to try are tried.
_PLAIN = re.compile(r"\^?[\w.-]{1,100}\*?\$?", re.ASCII)
_SOURCE = "unattended-upgrades, README; apt-mark(8)"


def judge(want: Want, have: Have) -> List[Finding]:
    packages, unattended = have["packages"], have["unattended"]
    if isinstance(packages, Unknown) or isinstance(unattended, Unknown) or unattended.is_on is not True:
        return []
    loose = [
        one.name for one in packages
        if one.component in _DRIVER and one.is_installed and not one.is_held and not _is_left_alone(one.name, unattended)
    ]  # fmt: skip
    if not loose:
        return []
    return [
        Finding(
            "platform.driver-unheld", "warn", "packages", "held, or left alone by unattended-upgrades",
            ", ".join(loose[:4]) + ("; %d more" % (len(loose) - 4) if len(loose) > 4 else ""),
            "unattended-upgrades is on: a new library beside the loaded module stops every new program until the next boot",
            'apt-mark hold %s; or name "nvidia-", "libnvidia-", "cuda-" and "nvidia-fabricmanager" in '
            "Unattended-Upgrade::Package-Blacklist; then apt-config dump Unattended-Upgrade" % " ".join(loose[:4]), _SOURCE,
        )
    ]  # fmt: skip


def _is_left_alone(name: str, unattended: Any) -> bool:
    return any(_PLAIN.fullmatch(pattern) and re.match(pattern, name) for pattern in unattended.left_alone)
