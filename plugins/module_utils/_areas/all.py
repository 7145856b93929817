# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All areas by name, in the order in which a host is brought to its state."""

from __future__ import annotations

from typing import Dict

from .._engine.engine import Area
from . import platform, tuning

# First what the machine is, since all else stands on it.
AREAS: Dict[str, Area] = {platform.AREA.name: platform.AREA, **tuning.AREAS}
