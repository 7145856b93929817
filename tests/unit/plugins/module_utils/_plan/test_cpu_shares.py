# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Invariants of the division on any machine: disjoint, whole cores, within the node, always the same."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import Unknown
from ansible_collections.gpufleet.host.plugins.module_utils._plan.cpu_shares import share, union
from ansible_collections.gpufleet.host.plugins.module_utils._plan.numa_layout import Layout, layout


@given(st.integers(1, 40), st.integers(1, 12), st.integers(1, 8))
def test_shares_are_even_in_whole_cores(cores: int, parts: int, threads: int) -> None:
    every = [frozenset(range(n * threads, (n + 1) * threads)) for n in range(cores)]
    if parts > cores:
        with pytest.raises(ValueError):
            share(every, parts)
        return
    shares = share(every, parts)
    assert union(shares) == union(every)
    sizes = [len(part) for part in shares]
    assert max(sizes) - min(sizes) <= threads
    assert sum(sizes) == cores * threads


@st.composite
def machines(draw: Any) -> dict[str, Any]:
    """CPUs in any order on any nodes; cores of one to four threads, some threads offline; GPUs anywhere."""
    threads = draw(st.integers(1, 4))
    count = draw(st.integers(1, 24))
    numbers = draw(st.permutations(range(count * threads)))
    offline = frozenset(draw(st.lists(st.sampled_from(numbers), max_size=6)))
    cores, placed = [], {}
    for start in range(0, len(numbers), threads):
        core = frozenset(numbers[start : start + threads]) - offline
        node = draw(st.integers(0, 5))
        placed.setdefault(node, set()).update(core)
        if core:
            cores.append(core)
    nodes = []
    for node in sorted({*placed, draw(st.integers(0, 9))}):
        memory = draw(st.sampled_from([0, 1000]))
        far = tuple(draw(st.lists(st.integers(10, 40), max_size=8)))
        cpus = frozenset(placed.get(node, ()))
        nodes.append(SimpleNamespace(id=node, cpus=cpus, memory_mib=memory, distances=far, has_memory=memory > 0))
    places = st.one_of(st.integers(0, 9), st.just(Unknown("-1")))
    gpus = [SimpleNamespace(address="g%d" % n, numa_node=draw(places)) for n in range(draw(st.integers(0, 8)))]
    online = frozenset(numbers) - offline
    return {"nodes": nodes, "cores": tuple(cores), "gpus": gpus, "online": online}


def want(cores: int) -> dict[str, Any]:
    return {"housekeeping_cores_per_node": cores, "gpus": [], "nodes": []}


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(machines(), st.integers(0, 2))
def test_invariants(machine: dict[str, Any], kept: int) -> None:
    found = layout(want(kept), machine)
    assert found == layout(want(kept), machine)
    if not found.is_decided:
        assert found.slices == ()
        return
    check(found, machine)


def check(found: Layout, machine: dict[str, Any]) -> None:
    gpus = [one for one in found.slices if one.gpu is not None]
    for number, one in enumerate(gpus):
        assert not any(one.cpus & other.cpus for other in gpus[number + 1 :]), "a CPU in two GPU slices"
        assert all(core <= one.cpus or not core & one.cpus for core in machine["cores"]), "a core is split"
        assert machine["gpus"][one.gpu].numa_node == one.node
    for one in found.slices:
        node = next(node for node in machine["nodes"] if node.id == one.node)
        assert one.cpus and one.cpus <= node.cpus - found.housekeeping
        assert one.cpus <= machine["online"]
        if node.has_memory:
            assert one.mems == {node.id}
        parent = next(other for other in found.slices if other.node == one.node and other.gpu is None)
        assert one.cpus <= parent.cpus and one.mems <= parent.mems
    placed = {one.gpu for one in gpus}
    unknown = [gpu for gpu in machine["gpus"] if isinstance(gpu.numa_node, Unknown)]
    assert len(placed) + len(unknown) <= len(machine["gpus"])
