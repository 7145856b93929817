# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ids of all findings of the area platform, so that one which is misspelt in a variable is refused."""

from __future__ import annotations

import re
from difflib import get_close_matches

AREA = "platform."
# Without the area; docs/areas/platform.md says of each what it is.
NAMES = (
    "acs-redirect", "bar-no-space", "bar1-small", "boot-mode", "channel-repair-pending", "cuda-floor",
    "cuda-toolkit-driver", "cudnn-cuda", "cudnn-several", "device-dead", "dkms-broken", "dkms-not-installed",
    "dkms-note", "driver-architecture", "driver-component", "driver-end-of-life", "driver-mismatch",
    "driver-next-kernel", "driver-reboot", "driver-unheld", "ecc-off", "ecc-on", "ecc-pending",
    "ecc-uncorrectable", "ecc-uncorrectable-ever", "fabric-manager", "fabric-manager-version", "fan",
    "framework-cudnn", "framework-driver", "framework-gpu", "governor", "gpu-consumer", "gpu-count",
    "gpu-error", "gpu-init", "gpu-list-incomplete", "gpu-lost", "gpu-memory", "gpu-missing", "gpu-mixed",
    "gpu-model", "gpu-nameless", "gpu-reset", "gpu-unknown-model", "gpu-unsupported", "gpus-crowded",
    "gpus-unseen", "gsp-firmware", "hw-slowdown", "idle-states", "iommu", "kernel-log-unseen", "link-errors",
    "link-path", "link-slot", "link-speed", "link-speed-idle", "link-width", "locality-nic", "locality-nvme",
    "memory-channels", "memory-installed", "memory-missing", "memory-mixed", "memory-node-empty",
    "memory-speed", "mig-pending", "module-rejected", "module-unsigned", "no-gpu", "numa-per-socket",
    "numa-unknown", "nvidia-smi-hung", "nvidia-smi-unseen", "nvlink-errors", "nvlink-fabric", "nvlink-inactive",
    "nvlink-no-bridge", "nvlink-rate", "nvlink-subnet-manager", "nvlink-uneven", "nvlink-unseen", "nvme-errors",
    "nvme-health", "nvme-state", "nvme-worn", "nvswitch-error", "packages-broken", "pages-pending",
    "pages-retired", "pci-refused", "pci-unseen", "persistence-off", "power-brake", "power-limit", "raid-cache",
    "rdma-absent", "rdma-complaint", "rdma-down", "rdma-errors", "rdma-gid", "rdma-gid-index", "rdma-mtu",
    "rdma-pause", "rdma-qos", "rdma-rate", "rdma-uneven", "rdma-unknown", "row-remap-failure",
    "row-remap-pending", "row-remapped", "secure-boot", "shim-validation-off", "smt", "sources-contradict",
    "sram-threshold", "sriov", "supply-count", "supply-lost", "supply-redundancy", "supply-size",
    "temperature-memory", "temperature-operating", "temperature-policy", "temperature-slowdown",
    "thermal-slowdown", "thermal-sw", "tpc-repair-pending", "unrepairable-memory", "vgpu-license",
)  # fmt: skip
_XID = re.compile(r"xid-\d{1,4}", re.ASCII)


def is_known(finding_id: str) -> bool:
    """Whether a finding of this area may have that id; XIDs have one for each number."""
    name = finding_id[len(AREA) :]
    return finding_id.startswith(AREA) and (name in NAMES or _XID.fullmatch(name) is not None)


def allowed(finding_id: str) -> str:
    """What to write instead of an id that is none."""
    name = finding_id[len(AREA) :] if finding_id.startswith(AREA) else finding_id
    near = get_close_matches(name, NAMES, 1)
    hint = "; did you mean %s%s?" % (AREA, near[0]) if near else ""
    return "the id of a finding of docs/areas/platform.md, such as platform.link-slot or platform.xid-79" + hint
