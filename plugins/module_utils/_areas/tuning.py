# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The areas that tune a host by name, in the order in which it is brought to its state: all but platform."""

from __future__ import annotations

from typing import Dict

from .._engine.engine import Area
from . import block_queue, kernel_settings, mysql_isolation, numa_slices, xfs_volumes

AREAS: Dict[str, Area] = {
    area.name: area
    for area in (
        kernel_settings.AREA,
        block_queue.AREA,
        xfs_volumes.AREA,
        numa_slices.AREA,
        # After the slices, since a database is kept out of them.
        mysql_isolation.AREA,
    )
}
