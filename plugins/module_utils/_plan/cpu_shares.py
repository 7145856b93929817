# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Dividing processors: whole cores only, kept together, in one order that never changes.

A core is the set of its online threads.  Two jobs on two threads of one core share its execution
units and caches, so a core is the smallest thing that is given to anyone.
"""

from __future__ import annotations

from typing import FrozenSet, Iterable, List, Sequence, Tuple

Core = FrozenSet[int]


def cores_within(cores: Iterable[Core], cpus: FrozenSet[int]) -> List[Core]:
    """The cores that lie wholly within some CPUs, by their first thread."""
    return sorted((core for core in cores if core and core <= cpus), key=min)


def split_cores(cores: Iterable[Core], cpus: FrozenSet[int]) -> List[Core]:
    """The cores of which some threads are within the CPUs and some are not."""
    return sorted((core for core in cores if core & cpus and not core <= cpus), key=min)


def union(cores: Iterable[Core]) -> FrozenSet[int]:
    return frozenset(cpu for core in cores for cpu in core)


def first_cores(cores: Sequence[Core], count: int) -> FrozenSet[int]:
    """The threads of the first cores: CPU 0 serves more interrupts than any other, so it stays out of slices."""
    return union(sorted(cores, key=min)[:count])


def share(cores: Sequence[Core], parts: int) -> Tuple[FrozenSet[int], ...]:
    """Cores in runs of neighbours, as even as whole cores allow; the first parts take what is over.

    :raises ValueError: when there are fewer cores than parts.
    """
    if parts > len(cores):
        raise ValueError("%d cores for %d" % (len(cores), parts))
    ordered = sorted(cores, key=min)
    size, over = divmod(len(ordered), parts) if parts else (0, 0)
    shares: List[FrozenSet[int]] = []
    start = 0
    for part in range(parts):
        end = start + size + (1 if part < over else 0)
        shares.append(union(ordered[start:end]))
        start = end
    return tuple(shares)
