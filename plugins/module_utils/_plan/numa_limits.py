# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Limits of slices as unit properties: memory, weight, number of tasks."""

from __future__ import annotations

from typing import Any, Dict, FrozenSet, Mapping, Sequence

from .._engine.units import parse_size

# memory.max is rounded down to pages; 64 KiB is the largest page of the supported kernels (arm64, ppc64).
_PAGE_BYTES = 64 * 1024
# MemTotal moves a little from kernel to kernel, so that a share of it is rounded to this.
_SHARE_BYTES = 64 * 1024 * 1024

LIMITS = {"memory_max": "MemoryMax", "cpu_weight": "CPUWeight", "tasks_max": "TasksMax"}


def limits(knobs: Mapping[str, Any], nodes: Sequence[Any], mems: FrozenSet[int]) -> Dict[str, str]:
    """Unit properties of the limits that are wanted, as systemd shows them back."""
    found: Dict[str, str] = {}
    for name, key in LIMITS.items():
        value = knobs.get(name)
        if value is not None and value != "":
            found[key] = _memory_bytes(str(value), nodes, mems) if name == "memory_max" else str(value)
    return found


def _memory_bytes(value: str, nodes: Sequence[Any], mems: FrozenSet[int]) -> str:
    """Bytes of a size, or of a percentage of the slice's own memory nodes (systemd's % is of the whole host)."""
    if value == "infinity":
        return value
    if value.endswith("%"):
        total = sum(node.memory_mib for node in nodes if node.id in mems) * 1024 * 1024
        share_bytes = total * int(value[:-1]) // 100
        return str(max(share_bytes // _SHARE_BYTES, 1) * _SHARE_BYTES)
    return str(max(parse_size(value) // _PAGE_BYTES, 1) * _PAGE_BYTES)
