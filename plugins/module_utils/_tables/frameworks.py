# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""PyTorch and TensorFlow: the CUDA, cuDNN and NCCL that their builds go with.

Wheels bring CUDA, cuDNN and NCCL along, so the host has to offer the driver alone: at least the floor of the build's
CUDA family (see cuda.floor_of), and for a new architecture a driver that knows it.
"""

from __future__ import annotations

import re
from typing import NamedTuple, Optional, Sequence, Tuple

from .rows import NOTE, SOURCE, UNVERIFIED, Column, Table, minor_of, version_of

SOURCES = {
    "torch_release": "RELEASE.md of pytorch/pytorch, rows up to 2.14 (F66643764700, F52513411808, F60320071455)",
    "tf_source": "site/en/install/source.md of tensorflow/docs 7c36502 (2026-03-11)",
}


class Torch(NamedTuple):
    """One build of a release.  ``status`` is stable or experimental."""

    version: str
    cuda: str
    cudnn: str
    nccl: Optional[str]
    status: str
    source: str = "torch_release"
    note: str = ""
    unverified: Tuple[str, ...] = ()


class TorchBuild(NamedTuple):
    """Compute capabilities in the builds of 2.12 to 2.14, by the CUDA release that they are made with."""

    cuda: str
    machine: str
    compute_capabilities: Tuple[str, ...]
    source: str = "torch_release"


class TensorFlow(NamedTuple):
    version: str
    cuda: str
    cudnn: str
    python: str
    source: str = "tf_source"
    note: str = ""
    unverified: Tuple[str, ...] = ()


TORCH: Tuple[Torch, ...] = (
    Torch("2.14", "12.6", "9.10.2.21", "2.29.3", "stable"),
    Torch("2.14", "13.0", "9.24.0.43", "2.30.7", "stable"),
    Torch("2.14", "13.2", "9.24.0.43", "2.30.7", "stable"),
    Torch("2.13", "12.6", "9.10.2.21", "2.29.3", "stable"),
    Torch("2.13", "13.0", "9.20.0.48", "2.29.7", "stable"),
    Torch("2.13", "13.2", "9.20.0.48", "2.29.7", "experimental"),
    Torch("2.12", "12.6", "9.10.2.21", "2.29.3", "stable"),
    Torch("2.12", "13.0", "9.20.0.48", "2.29.7", "stable"),
    Torch("2.12", "13.2", "9.20.0.48", "2.29.7", "experimental"),
    Torch("2.11", "12.6", "9.10.2.21", "2.28.9", "stable"),
    Torch("2.11", "12.8", "9.17.1.4", "2.28.9", "stable"),
    Torch("2.11", "13.0", "9.17.1.4", "2.28.9", "stable"),
    Torch("2.10", "12.6", "9.10.2.21", "2.27.5", "stable"),
    Torch("2.10", "12.8", "9.10.2.21", "2.27.5", "stable"),
    Torch("2.10", "13.0", "9.15.1.9", "2.28.9", "experimental"),
    Torch("2.9", "12.6", "9.10.2.21", None, "stable"),
    Torch("2.9", "12.8", "9.10.2.21", None, "stable"),
    Torch("2.9", "13.0", "9.13.0.50", None, "experimental"),
    Torch("2.8", "12.6", "9.10.2.21", None, "stable"),
    Torch("2.8", "12.8", "9.10.2.21", None, "stable"),
    Torch("2.8", "12.9", "9.10.2.21", None, "experimental"),
    Torch("2.7", "11.8", "9.1.0.70", None, "stable"),
    Torch("2.7", "12.6", "9.5.1.17", None, "stable"),
    Torch("2.7", "12.8", "9.7.1.26", None, "experimental"),
    Torch("2.6", "11.8", "9.1.0.70", None, "stable"),
    Torch("2.6", "12.4", "9.1.0.70", None, "stable"),
    Torch("2.6", "12.6", "9.5.1.17", None, "experimental"),
    Torch("2.5", "11.8", "9.1.0.70", None, "stable"),
    Torch("2.5", "12.1", "9.1.0.70", None, "stable"),
    Torch("2.5", "12.4", "9.1.0.70", None, "stable"),
    Torch("2.4", "11.8", "9.1.0.70", None, "stable"),
    Torch("2.4", "12.1", "9.1.0.70", None, "stable"),
    Torch("2.4", "12.4", "9.1.0.70", None, "experimental"),
    Torch("2.3", "11.8", "8.7.0.84", None, "stable"),
    Torch("2.3", "12.1", "8.9.2.26", None, "experimental"),
    Torch("2.2", "11.8", "8.7.0.84", None, "stable"),
    Torch("2.2", "12.1", "8.9.2.26", None, "experimental"),
    Torch("2.1", "11.8", "8.7.0.84", None, "stable"),
    Torch("2.1", "12.1", "8.9.2.26", None, "experimental"),
    Torch("2.0", "11.7", "8.5.0.96", None, "stable"),
    Torch("2.0", "11.8", "8.7.0.84", None, "experimental"),
    Torch("1.13", "11.6", "8.3.2.44", None, "stable"),
    Torch("1.13", "11.7", "8.5.0.96", None, "experimental"),
    Torch("1.12", "11.3", "8.3.2.44", None, "stable"),
    Torch("1.12", "11.6", "8.3.2.44", None, "experimental"),
)
TORCH_BUILDS_OF = ("2.12", "2.13", "2.14")
TORCH_BUILDS: Tuple[TorchBuild, ...] = (
    TorchBuild("12.6.3", "x86_64", ("5.0", "6.0", "7.0", "7.5", "8.0", "8.6", "9.0")),
    TorchBuild("13.0.2", "x86_64", ("7.5", "8.0", "8.6", "9.0", "10.0", "12.0+PTX")),
    TorchBuild("13.2.1", "x86_64", ("7.5", "8.0", "8.6", "9.0", "10.0", "12.0+PTX")),
    TorchBuild("12.6.3", "aarch64", ("8.0", "9.0")),
    TorchBuild("13.0.2", "aarch64", ("8.0", "9.0", "10.0", "11.0", "12.0+PTX")),
    TorchBuild("13.2.1", "aarch64", ("8.0", "9.0", "10.0", "11.0", "12.0+PTX")),
)
TENSORFLOW: Tuple[TensorFlow, ...] = (
    TensorFlow("2.21.0", "12.5", "9.3", "3.10-3.13"),
    TensorFlow("2.20.0", "12.5", "9.3", "3.9-3.13"),
    TensorFlow("2.19.0", "12.5", "9.3", "3.9-3.12"),
    TensorFlow("2.18.0", "12.5", "9.3", "3.9-3.12"),
    TensorFlow("2.17.0", "12.3", "8.9", "3.9-3.12"),
    TensorFlow("2.16.1", "12.3", "8.9", "3.9-3.12"),
    TensorFlow("2.15.0", "12.2", "8.9", "3.9-3.11"),
    TensorFlow("2.14.0", "11.8", "8.7", "3.9-3.11"),
    TensorFlow("2.13.0", "11.8", "8.6", "3.8-3.11"),
    TensorFlow("2.12.0", "11.8", "8.6", "3.8-3.11"),
    TensorFlow("2.11.0", "11.2", "8.1", "3.7-3.10"),
    TensorFlow("2.10.0", "11.2", "8.1", "3.7-3.10"),
    TensorFlow("2.9.0", "11.2", "8.1", "3.7-3.10"),
    TensorFlow("2.8.0", "11.2", "8.1", "3.7-3.10"),
    TensorFlow("2.7.0", "11.2", "8.1", "3.7-3.9"),
    TensorFlow("2.6.0", "11.2", "8.1", "3.6-3.9"),
    TensorFlow("2.5.0", "11.2", "8.1", "3.6-3.9"),
    TensorFlow("2.4.0", "11.0", "8.0", "3.6-3.8"),
    TensorFlow("2.3.0", "10.1", "7.6", "3.5-3.8"),
    TensorFlow("2.2.0", "10.1", "7.6", "3.5-3.8"),
    TensorFlow("2.1.0", "10.1", "7.6", "2.7, 3.5-3.7"),
    TensorFlow("2.0.0", "10.0", "7.4", "2.7, 3.3-3.7"),
)

_LOCAL_CUDA = re.compile(r"\+cu(\d{2})(\d)$", re.ASCII)


def torch(version: Optional[str], rows: Sequence[Torch] = TORCH) -> Tuple[Torch, ...]:
    """The builds of a release such as 2.4.1 or 2.4.1+cu121; none when it is unknown."""
    minor = minor_of(version)
    return tuple(row for row in rows if minor and minor_of(row.version) == minor)


def torch_cuda(version: Optional[str]) -> Optional[str]:
    """12.1 of 2.4.1+cu121; None when the version does not say it."""
    found = _LOCAL_CUDA.search((version or "").strip())
    return "%s.%s" % found.groups() if found else None


def torch_build(version: Optional[str], cuda: Optional[str], rows: Sequence[Torch] = TORCH) -> Optional[Torch]:
    """The build of a release for the minor version of a CUDA version."""
    minor = minor_of(cuda)
    return next((row for row in torch(version, rows) if minor and row.cuda == minor), None)


def torch_capabilities(version: Optional[str], cuda: Optional[str], machine: str = "x86_64") -> Tuple[str, ...]:
    """The compute capabilities that a build has code for; empty when that is not known."""
    if minor_of(version) not in TORCH_BUILDS_OF:
        return ()
    fit = [row for row in TORCH_BUILDS if row.machine == machine and minor_of(row.cuda) == minor_of(cuda)]
    return fit[0].compute_capabilities if fit else ()


def tensorflow(version: Optional[str], rows: Sequence[TensorFlow] = TENSORFLOW) -> Optional[TensorFlow]:
    """The row of a release, by its first two numbers."""
    number = version_of(version)[:2]
    return next((row for row in rows if len(number) == 2 and version_of(row.version)[:2] == number), None)


TORCH_COLUMNS = {
    "version": Column("version", "release, two numbers", True),
    "cuda": Column("version", "CUDA of the build", True),
    "cudnn": Column("version", "cuDNN inside", True),
    "nccl": Column("version", "NCCL inside"),
    "status": Column("text", "how the project calls the build", True, choices=("stable", "experimental")),
    "note": NOTE,
    "unverified": UNVERIFIED,
    "source": SOURCE,
}
TENSORFLOW_COLUMNS = {
    "version": Column("version", "release", True),
    "cuda": Column("version", "CUDA tested with it", True),
    "cudnn": Column("version", "cuDNN tested with it", True),
    "python": Column("text", "Python versions", True),
    "note": NOTE,
    "unverified": UNVERIFIED,
    "source": SOURCE,
}
TORCH_TABLE = Table("torch", "PyTorch", Torch, TORCH_COLUMNS, ("version", "cuda"), TORCH, SOURCES)
TENSORFLOW_TABLE = Table("tensorflow", "TensorFlow", TensorFlow, TENSORFLOW_COLUMNS, ("version",), TENSORFLOW, SOURCES)
