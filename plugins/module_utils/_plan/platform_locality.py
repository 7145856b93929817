# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a GPU, its NIC and its NVMe are near each other: on one NUMA node."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping

from .._engine.values import Finding, Unknown
from .platform_common import is_bare_metal, known

Want = Mapping[str, Any]
Have = Mapping[str, Any]

_SYSFS = "sysfs: /sys/bus/pci/devices/*/numa_node"
# Fewer cards on one node are no crowd: many servers have one socket with slots.
_CROWD = 4


def judge(want: Want, have: Have) -> List[Finding]:
    if isinstance(have["gpus"], Unknown) or not have["gpus"]:
        return []
    nodes = [] if isinstance(have["nodes"], Unknown) else [n.id for n in have["nodes"] if known(n.cpus) and n.cpus]
    nowhere = [gpu for gpu in have["gpus"] if isinstance(gpu.numa_node, Unknown)]
    findings = [_nowhere(have, gpu.address, "warn") for gpu in nowhere if len(nodes) > 1]
    if len(nodes) == 1 and len(nowhere) == len(have["gpus"]) > 1 and have["virtualization"] not in ("none", None):
        # One node of a guest may be several of its host.
        findings = [_nowhere(have, "host", "info")]
    placed: Dict[int, List[str]] = {}
    for gpu in have["gpus"]:
        if known(gpu.numa_node):
            placed.setdefault(gpu.numa_node, []).append(gpu.address)
    if len(nodes) > 1 and len(placed) == 1 and len(have["gpus"]) >= _CROWD and not findings:
        findings.append(_crowd(placed, nodes))
    if len(nodes) > 1:
        findings += _far(want, have, placed)
    return findings


def _nowhere(have: Have, subject: str, level: str) -> Finding:
    return Finding(
        "platform.numa-unknown", level, subject, "a NUMA node", "numa_node is -1",
        "the firmware does not say where this slot is, so jobs cannot be bound near it; that is not node 0"
        if is_bare_metal(have) else "the virtual machine hides where the GPU is; its host knows",
        "name the node in numa_slices_gpus; in a virtual machine pass NCCL a topology file (NCCL_TOPO_FILE)", _SYSFS,
    )  # fmt: skip


def _crowd(placed: Mapping[int, List[str]], nodes: List[int]) -> Finding:
    node, addresses = next(iter(placed.items()))
    return Finding(
        "platform.gpus-crowded", "warn", "host", "GPUs spread over nodes %s" % ", ".join(map(str, nodes)),
        "all %d on node %d" % (len(addresses), node),
        "one socket feeds all GPUs with data, and the memory and links of the other lie idle",
        "see the server's manual for slots of the other socket; bind jobs with gpu-run, so that they stay on this one", _SYSFS,
    )  # fmt: skip


def _far(want: Want, have: Have, placed: Mapping[int, List[str]]) -> List[Finding]:
    """Nodes with GPUs and without a NIC of GPU traffic, or without an NVMe, though the host has some elsewhere."""
    named = set(want["rdma_devices"])
    nics = [nic for nic in have["network"].nics if not named or named & {nic.name, *(port.name for port in nic.ports)}]
    nvme = [device for device in have["devices"] if device.kind == "nvme"]
    findings: List[Finding] = []
    for what, devices, level in (("RDMA NIC", nics, "warn" if named else "info"), ("NVMe", nvme, "info")):
        homes = {device.numa_node for device in devices if known(device.numa_node)}
        if not homes or any(isinstance(device.numa_node, Unknown) for device in devices):
            continue
        for node, addresses in sorted(placed.items()):
            if node not in homes:
                findings.append(_no_neighbour(what, level, node, addresses, homes))
    return findings


def _no_neighbour(what: str, level: str, node: int, addresses: List[str], homes: Any) -> Finding:
    return Finding(
        "platform.locality-%s" % ("nic" if what == "RDMA NIC" else "nvme"), level, "node%d" % node, "an %s on this node" % what,
        "all on node %s; GPUs here: %s" % (", ".join(map(str, sorted(homes))), ", ".join(addresses[:4])),
        "what these GPUs send or load crosses the link between the sockets",
        "move a card to a slot of node %d, or give jobs that need it the other GPUs" % node, _SYSFS,
    )  # fmt: skip
