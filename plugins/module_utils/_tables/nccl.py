# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NCCL releases: what they were built with, and the speed that NCCL itself plans with.

A build carries the CUDA major number that it was compiled for; inside of it minor-version compatibility holds.
"""

from __future__ import annotations

from typing import Dict, NamedTuple, Optional, Sequence, Tuple

from .rows import NOTE, SOURCE, UNVERIFIED, Column, Table, same, version_of

SOURCES = {
    "nccl_2103": "https://docs.nvidia.com/deeplearning/nccl/release-notes/rel_2-10-3.html",
    "nccl_21210": "https://docs.nvidia.com/deeplearning/nccl/release-notes/rel_2-12-10.html",
    "nccl_redist212": "https://developer.nvidia.com/w/compute/redist/nccl/v2.12/",
    "nccl_rn_2326": "https://docs.nvidia.com/deeplearning/nccl/archives/nccl_2326/pdf/NCCL-Release-Notes.pdf",
    "nccl_conda": "package nccl of the conda channel anaconda",
    "nccl_src": "makefiles/version.mk and src/graph/topo.h of NVIDIA/nccl 5067397",
    "torchtrt": "https://github.com/pytorch/TensorRT/pull/3882",
    "piwheels_nccl": "release dates of nvidia-nccl-cu12 at piwheels",
}


class Nccl(NamedTuple):
    version: str
    cuda: Tuple[str, ...]
    source: str
    note: str = ""
    unverified: Tuple[str, ...] = ()


ROWS: Tuple[Nccl, ...] = (
    Nccl("2.10.3", ("10.2", "11.0", "11.4"), "nccl_2103"),
    Nccl("2.12.10", ("10.2", "11.0", "11.6"), "nccl_21210 nccl_redist212"),
    Nccl("2.21.5", ("12.4",), "nccl_conda", "this build asks for CUDA from 12.4 on, below 13"),
    Nccl("2.24.3", ("12.6",), "torchtrt", "what torch-tensorrt is built with"),
    Nccl("2.26.2", ("12.8",), "torchtrt", "what torch-tensorrt is built with"),
    Nccl("2.27.5", ("12.9",), "torchtrt", "what torch-tensorrt is built with"),
)
LATEST_SEEN = ("2.32.6", "nccl_rn_2326")
MAINLINE_SEEN = ("2.30.7", "nccl_src")
VERSION_FORM = "2.21.5-1+cuda12.4"
"""A version of the Debian package libnccl2: release, package revision, CUDA that it was built with."""

# Day of each release of the wheels [piwheels_nccl].
# fmt: off
RELEASED: Dict[str, str] = {
    "2.16.2": "2022-12-09", "2.16.5": "2023-02-02", "2.17.1": "2023-03-31", "2.18.1": "2023-05-04",
    "2.18.3": "2023-06-13", "2.19.3": "2023-10-24", "2.20.5": "2024-03-06", "2.21.5": "2024-04-03",
    "2.22.3": "2024-06-19", "2.23.4": "2024-09-11", "2.24.3": "2025-01-07", "2.25.1": "2025-01-24",
    "2.26.2": "2025-03-13", "2.26.5": "2025-05-02", "2.27.3": "2025-06-03", "2.27.5": "2025-06-26",
    "2.27.6": "2025-07-15", "2.27.7": "2025-08-04", "2.28.3": "2025-09-06", "2.28.7": "2025-10-21",
    "2.28.9": "2025-11-18", "2.29.2": "2026-01-07", "2.29.3": "2026-02-03", "2.29.7": "2026-03-03",
    "2.30.3": "2026-04-20", "2.30.4": "2026-04-23", "2.30.7": "2026-06-09",
}
# fmt: on

# GB/s of one NVLink and direction that NCCL plans with, by compute capability [nccl_src].
LINK_GBS: Dict[str, float] = {"7.0": 20.0, "8.0": 20.0, "8.6": 12.0, "9.0": 20.6, "10.0": 40.1}


def nccl(version: Optional[str], rows: Sequence[Nccl] = ROWS) -> Optional[Nccl]:
    """The row of a release, packaged (2.21.5-1+cuda12.4) or not."""
    number = version_of(version)[:3]
    return next((row for row in rows if number and same(version_of(row.version), number)), None)


def expected_bus_gbs(links: int, compute_capability: str) -> Optional[float]:
    """Bus bandwidth that all_reduce should come near, by the links in use; None for a GPU that NCCL has no figure of."""
    rate = LINK_GBS.get(compute_capability)
    return links * rate if rate is not None else None


COLUMNS = {
    "version": Column("version", "release", True),
    "cuda": Column("versions", "CUDA versions documented", True),
    "note": NOTE,
    "unverified": UNVERIFIED,
    "source": SOURCE,
}
TABLE = Table("nccl", "NCCL", Nccl, COLUMNS, ("version",), ROWS, SOURCES)
