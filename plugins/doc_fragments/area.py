# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Documentation that all area modules share."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  allow_risk:
    description:
      - The riskiest kind of step that may be done. Others are reported as blocked.
      - V(disruptive) allows steps that interrupt something, such as the restart of a service or a remount.
      - V(destructive) allows what cannot be undone, such as making a filesystem on a blank device.
    type: str
    choices: [safe, disruptive, destructive]
    default: safe
  run:
    description:
      - A name for this run in the journal on the host, by which M(gpufleet.host.node_revert) can undo it.
      - The time of the run by default.
    type: str
    default: ''
requirements:
  - Linux with systemd
  - Python 3.8 or newer on the host
notes:
  - The host keeps a journal of each change with the original value in C(/var/lib/gpufleet).
  - One run at a time works on a host. A second one waits 30 seconds for the lock, then fails.
author:
  - gpufleet.host contributors (@gpufleet)
attributes:
  check_mode:
    description: Can run in C(check_mode) and return changed status prediction without modifying the target.
    support: full
    details: The steps that check mode shows are the steps that the run does.
  diff_mode:
    description: Will return details on what has changed (or possibly needs changing in C(check_mode)), when in diff mode.
    support: full
  idempotent:
    description: When run twice in a row outside check mode, with the same arguments, the second invocation indicates no change.
    support: full
    details: The second run observes the host anew and finds nothing to do.
"""
