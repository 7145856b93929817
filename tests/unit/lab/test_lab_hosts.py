# Copyright: (c) 2026, gpufleet.host contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from lab.hosts import GPU_HOST, HOSTS, REFUSALS, REFUSE_HOST, Host, ssh_port

EVERY = pytest.mark.parametrize("host", HOSTS.values(), ids=str)


def test_each_host_has_a_port_of_its_own() -> None:
    assert len({host.ssh_port for host in HOSTS.values()}) == len(HOSTS)


@EVERY
def test_serials_are_unique_and_fit_a_device(host: Host) -> None:
    serials = [disk.serial for disk in host.disks]
    assert len(set(serials)) == len(serials)
    assert max(map(len, serials)) <= 20  # NVMe has room for 20 characters


@EVERY
def test_processors_can_be_shared_among_the_nodes(host: Host) -> None:
    assert host.cpus % len(host.node_memory_mib) == 0


def test_the_gpu_host_is_two_sockets_of_three_cores_of_two_threads() -> None:
    assert (GPU_HOST.cpus, GPU_HOST.memory_mib) == (12, 3072)


def test_one_slot_is_narrower_and_one_has_no_node() -> None:
    assert [(gpu.numa_node, gpu.lanes) for gpu in GPU_HOST.gpus] == [(0, 16), (0, 16), (1, 8), (None, 16)]


def test_only_the_gpu_host_has_a_disk_to_hot_plug() -> None:
    assert GPU_HOST.hotplug_disk is not None
    assert GPU_HOST.hotplug_disk.serial == "GPUFLEETHOT0"
    assert REFUSE_HOST.hotplug_disk is None


def test_a_disk_for_each_reason_to_refuse() -> None:
    assert [disk.serial for disk in REFUSE_HOST.disks] == [f"REFUSE-{kind}" for kind in REFUSALS]


def test_the_environment_moves_a_port() -> None:
    assert ssh_port(GPU_HOST, {}) == 22201
    assert ssh_port(GPU_HOST, {"GPUFLEET_LAB_PORT_LAB_GPU1": "2300"}) == 2300
    assert ssh_port(REFUSE_HOST, {"GPUFLEET_LAB_PORT_LAB_GPU1": "2300"}) == 22202
