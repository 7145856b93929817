# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NVSwitch systems: what joins the GPUs, how it is told by PCI id, and the software it cannot do without."""

from __future__ import annotations

from typing import NamedTuple, Optional, Sequence, Tuple

from .gpus import normal_id, plain_name
from .rows import NOTE, SOURCE, UNVERIFIED, Column, Table

SOURCES = {
    "P": "pci.ids of pciutils/pciids c1c1254",
    "glossary": "https://www.textbookofai.com/glossary/nvlink.html",
    "container": "rhel9/install.sh and rhel9/nvidia-driver of NVIDIA/gpu-driver-container 06a208c",
    "reg": "kernel-open/nvidia/nv-reg.h of NVIDIA/open-gpu-kernel-modules 595.45.04",
}


class System(NamedTuple):
    """``gpus`` are the first words of the names of its GPUs.  Beyond ``switches`` there is no other count."""

    system: str
    gpus: Tuple[str, ...]
    switches: int
    gen: int
    pci_id: Optional[str]
    topology: str
    needs: Tuple[str, ...]
    unverified: Tuple[str, ...]
    source: str
    note: str = ""


# fmt: off
ROWS: Tuple[System, ...] = (
    System("HGX/DGX A100 8-GPU", ("A100-SXM4", "A800-SXM4"), 6, 2, "10de:1af1", "NV12 between all (A800: NV8)", ("nvidia-fabricmanager",),
           ("switches",), "P; A800 F59889546879"),
    System("HGX/DGX H100/H200/H800/H20 8-GPU", ("H100 80GB HBM3", "H100", "H200", "H800", "H20", "H20-3e"), 4, 3, "10de:22a3",
           "NV18 between all (H800: NV8)", ("nvidia-fabricmanager",), (), "P; switches glossary; NV8 F19133948926"),
    System("HGX B200/B300 8-GPU", ("B200", "B300 SXM6 AC"), 2, 4, None, "NV18 between all", ("nvidia-fabricmanager", "nvlsm", "infiniband-diags"),
           ("switches",), "container", "its switches show as ConnectX bridges (mlx5), which are no NICs of the cluster (siderolabs/extensions#893)"),
    System("GB200/GB300 NVL72", ("GB200", "GB300"), 9, 5, None, "NV18 between all", ("nvidia-imex",), (), "glossary; IMEX reg",
           "nine trays of switches, and IMEX joins the nodes"),
)
# fmt: on


def by_pci_id(pci_id: Optional[str], rows: Sequence[System] = ROWS) -> Optional[System]:
    """The systems that a switch of this PCI id is built into."""
    wanted = normal_id(pci_id)
    return next((row for row in rows if wanted and row.pci_id == wanted), None)


def of_gpu(name: Optional[str], rows: Sequence[System] = ROWS) -> Optional[System]:
    """The system that a model is made for: SXM modules and NVL72 boards; None for cards."""
    words = plain_name(name)
    return next((row for row in rows if any(_is_one(words, gpu.lower()) for gpu in row.gpus)), None)


def _is_one(words: str, gpu: str) -> bool:
    return words == gpu or (gpu.endswith("sxm4") and words.startswith(gpu + "-"))


COLUMNS = {
    "system": Column("text", "system", True),
    "gpus": Column("texts", "its GPUs", True),
    "switches": Column("int", "switches, or trays of them", True, 1, 1000),
    "gen": Column("int", "NVSwitch generation (NVL72: of NVLink)", True, 1, 9),
    "pci_id": Column("pci_id", "PCI id of a switch"),
    "topology": Column("text", "what nvidia-smi topo -m shows", True),
    "needs": Column("texts", "packages that it needs", True),
    "note": NOTE,
    "unverified": UNVERIFIED,
    "source": SOURCE,
}
TABLE = Table("nvswitches", "NVSwitch systems", System, COLUMNS, ("system",), ROWS, SOURCES)
