# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""cuDNN releases and the CUDA versions that their support matrices list.

A package is built for one CUDA *major* number, and the matrices list whole minor versions: no row tells 12.1.0 from
12.1.1.  Library and application need the same major number, the driver only the floor of it.  The exact minor
version matters for static linking alone.
"""

from __future__ import annotations

import re
from typing import NamedTuple, Optional, Sequence, Tuple

from .rows import NOTE, SOURCE, UNVERIFIED, Column, Table, minor_of, same, version_of

SOURCES = {
    "m803": "https://docs.nvidia.com/deeplearning/cudnn/archives/cudnn-803/support-matrix/index.html",
    "m822": "https://docs.nvidia.com/deeplearning/cudnn/archives/cudnn-822/support-matrix/index.html",
    "m840": "https://docs.nvidia.com/deeplearning/cudnn/archives/cudnn-840/support-matrix/index.html",
    "m850": "https://docs.nvidia.com/deeplearning/cudnn/archives/cudnn-850/pdf/cuDNN-Support-Matrix.pdf",
    "m895": "https://docs.nvidia.com/deeplearning/cudnn/archives/cudnn-895/pdf/cuDNN-Support-Matrix.pdf",
    "m896": "https://docs.nvidia.com/deeplearning/cudnn/archives/cudnn-896/support-matrix",
    "m900": "https://docs.nvidia.com/deeplearning/cudnn/backend/v9.0.0/reference/support-matrix.html",
    "m950": "https://docs.nvidia.com/deeplearning/cudnn/v9.5.0/reference/support-matrix.html",
    "m951": "https://docs.nvidia.com/deeplearning/cudnn/backend/v9.5.1/reference/support-matrix.html",
    "m9102": "https://docs.nvidia.com/deeplearning/cudnn/latest/support-matrix/index.html (text of 9.10.2)",
    "m9170": "https://docs.nvidia.com/deeplearning/sdk/cudnn-support-matrix/index.html (text of 9.17.0)",
    "pins": "metadata of PyTorch 2.1.0 to 2.2.1 (F19907561515, F43405187298, F113887168)",
}
_CUDA_11 = ("11.0", "11.1", "11.2", "11.3", "11.4", "11.5", "11.6", "11.7", "11.8")
_TO_HOPPER = ("5.0", "6.0", "6.1", "7.0", "7.5", "8.0", "8.6", "8.9", "9.0")
_FROM_TURING = ("7.5", "8.0", "8.6", "8.9", "9.0", "10.0", "12.0")


class Cudnn(NamedTuple):
    """A row of a matrix, for the releases from ``first`` to ``last``.  11.x in ``cuda`` is any minor version of 11."""

    first: str
    last: str
    package: Optional[str]
    cuda: Tuple[str, ...]
    min_driver: Optional[str]
    source: str
    static_link: Tuple[str, ...] = ()
    compute_capabilities: Tuple[str, ...] = ()
    min_capability: Tuple[Tuple[str, str], ...] = ()
    driver_branches: Tuple[Tuple[str, str], ...] = ()
    tuned_on: str = ""
    note: str = ""
    unverified: Tuple[str, ...] = ()


class Packaging(NamedTuple):
    """Debian packages of a major number; cuDNN 8 names the toolkit in its version, cuDNN 9 in its name."""

    cudnn_major: int
    cuda_major: Optional[int]
    runtime: str
    dev: str
    version_form: str
    source: str


# fmt: off
ROWS: Tuple[Cudnn, ...] = (
    Cudnn("8.0.0", "8.0.1", None, ("10.2", "11.0"), None, "m803", driver_branches=(("11.0", "r450"), ("10.2", "r440")), min_capability=(("11.0",
          "3.5"), ("10.2", "3.0"))),
    Cudnn("8.0.2", "8.0.3", None, ("10.1", "10.2", "11.0"), None, "m803", driver_branches=(("11.0", "r450"), ("10.2", "r440"), ("10.1", "r418.39")),
          min_capability=(("11.0", "3.5"), ("10.x", "3.0"))),
    Cudnn("8.2.0", "8.2.1", None, ("10.2", "11.0", "11.1", "11.2", "11.3"), None, "m822", driver_branches=(("11.3", "r465"), ("11.2",
          "r460/r455/r450"), ("11.1", "r450/r455"), ("11.0", "r450"), ("10.2", "r440")), min_capability=(("11.x", "3.5"), ("10.2", "3.0"))),
    Cudnn("8.2.2", "8.2.2", None, ("10.2", "11.0", "11.1", "11.2", "11.3", "11.4"), None, "m822", driver_branches=(("11.4", "r470"), ("11.3", "r465"),
          ("11.2", "r460/r455/r450"), ("11.0", "r450"), ("10.2", "r440")), min_capability=(("11.x", "3.5"), ("10.2", "3.0"))),
    Cudnn("8.4.0", "8.4.0", "11.x", ("11.0", "11.1", "11.2", "11.3", "11.4", "11.5", "11.6"), None, "m840", static_link=("11.3", "11.4", "11.5",
          "11.6"), min_capability=(("11.x", "3.5"),)),
    Cudnn("8.4.0", "8.4.0", "10.2", ("10.2",), None, "m840", min_capability=(("10.2", "3.0"),)),
    Cudnn("8.5.0", "8.5.0", "11.x", ("11.0", "11.1", "11.2", "11.3", "11.4", "11.5", "11.6", "11.7"), None, "m850", static_link=("11.3", "11.4",
          "11.5", "11.6", "11.7"), min_capability=(("11.x", "3.5"),)),
    Cudnn("8.9.5", "8.9.5", "12.x", ("12.0", "12.1", "12.2"), "525.60.13", "m895", static_link=("12.2",), compute_capabilities=_TO_HOPPER),
    Cudnn("8.9.5", "8.9.5", "11.x", _CUDA_11, "450.80.02", "m895", static_link=("11.8",)),
    Cudnn("8.9.6", "8.9.6", "12.x", ("12.0", "12.1", "12.2"), "525.60.13", "m896", static_link=("12.2",),
          tuned_on="CUDA 12.2 Update 1, for Maxwell and Pascal 11.8"),
    Cudnn("8.9.6", "8.9.6", "11.x", _CUDA_11, "450.80.02", "m896", static_link=("11.8",)),
    Cudnn("9.0.0", "9.0.0", "12.x", ("12.0", "12.1", "12.2", "12.3"), "525.60.13", "m900", static_link=("12.3",), compute_capabilities=_TO_HOPPER),
    Cudnn("9.0.0", "9.0.0", "11.x", _CUDA_11, "450.80.02", "m900", static_link=("11.8",)),
    Cudnn("9.5.0", "9.5.0", "12.x", ("12.0", "12.1", "12.2", "12.3", "12.4", "12.5", "12.6"), "525.60.13", "m950"),
    Cudnn("9.5.1", "9.5.1", "12.x", ("12.0", "12.1", "12.2", "12.3", "12.4", "12.5", "12.6"), "525.60.13", "m951"),
    Cudnn("9.5.1", "9.5.1", "11.x", ("11.x",), "450.80.02", "m951", static_link=("11.8",)),
    Cudnn("9.10.2", "9.10.2", "12.x", ("12.8", "12.9"), "570.26", "m9102", compute_capabilities=(*_TO_HOPPER, "10.0", "12.0"),
          note="the row that Blackwell needs"),
    Cudnn("9.10.2", "9.10.2", "12.x", ("12.0", "12.1", "12.2", "12.3", "12.4", "12.5", "12.6", "12.8", "12.9"), "525.60.13", "m9102",
          compute_capabilities=_TO_HOPPER),
    Cudnn("9.10.2", "9.10.2", "11.x", ("11.8",), "450.80.02", "m9102"),
    Cudnn("9.17.0", "9.17.0", "13.x", ("13.0", "13.1"), "580.65.06", "m9170", compute_capabilities=_FROM_TURING, tuned_on="CUDA 13.1"),
    Cudnn("9.17.0", "9.17.0", "12.x", ("12.0", "12.1", "12.2", "12.3", "12.4", "12.5", "12.6", "12.8", "12.9"), "525.60.13", "m9170",
          compute_capabilities=_FROM_TURING),
)

PACKAGING: Tuple[Packaging, ...] = (
    Packaging(8, None, "libcudnn8", "libcudnn8-dev", "8.9.2.26-1+cuda12.1", "F177122000, F66465459557, F29028456117"),
    Packaging(9, 13, "libcudnn9-cuda-13", "libcudnn9-dev-cuda-13", "9.20.0.48-1", "F52532805822, F25196275975"),
    Packaging(9, 12, "libcudnn9-cuda-12", "libcudnn9-dev-cuda-12", "9.1.0.70-1", "F27874711891, F35256993435, F70414472072"),
)
# fmt: on
WHEELS = ("nvidia-cudnn-cu11", "nvidia-cudnn-cu12", "nvidia-cudnn-cu13")
"""Names of the Python packages [pins]."""

_PACKAGE_CUDA = re.compile(r"-cu(?:da-)?(\d{2})$", re.ASCII)
_VERSION_CUDA = re.compile(r"\+cuda(\d{2}\.\d)", re.ASCII)


def rows_of(cudnn: Optional[str], rows: Sequence[Cudnn] = ROWS) -> Tuple[Cudnn, ...]:
    """The rows of a release, by its first three numbers (the fourth is a build)."""
    number = version_of(cudnn)[:3]
    if len(number) < 3:
        return ()
    return tuple(row for row in rows if version_of(row.first) <= number <= version_of(row.last))


def line_of(cudnn: Optional[str], rows: Sequence[Cudnn] = ROWS) -> Tuple[Cudnn, ...]:
    """The rows of a line such as 8.9, for releases whose own matrix was not seen."""
    number = version_of(cudnn)[:2]
    return tuple(row for row in rows if len(number) == 2 and version_of(row.first)[:2] == number)


def lists(row: Cudnn, cuda: Optional[str]) -> bool:
    """Whether a row lists the minor version of a CUDA version."""
    minor = minor_of(cuda)
    return bool(minor) and (minor in row.cuda or "%s.x" % minor.split(".")[0] in row.cuda)


def supports(cudnn: Optional[str], cuda: Optional[str], rows: Sequence[Cudnn] = ROWS) -> Optional[bool]:
    """Whether a release goes with a CUDA version.

    True when its matrix, or one of its line, lists the minor version.  False when its own matrix has no package for
    that *major* number.  None when neither is known: a minor version newer than the matrix is no mismatch.
    """
    if any(lists(row, cuda) for row in line_of(cudnn, rows)):
        return True
    major = version_of(cuda)[:1]
    own = rows_of(cudnn, rows)
    if not own or not major:
        return None
    return None if any(version_of(listed)[:1] == major for row in own for listed in row.cuda) else False


def floor_of(
    cudnn: Optional[str], cuda: Optional[str], compute_capability: str = "", rows: Sequence[Cudnn] = ROWS
) -> Optional[str]:
    """The lowest driver that the matrix names for a release, a CUDA version and a compute capability."""
    fit = [row for row in rows_of(cudnn, rows) or line_of(cudnn, rows) if lists(row, cuda) and row.min_driver]
    if compute_capability:
        fit = [row for row in fit if not row.compute_capabilities or compute_capability in row.compute_capabilities]
    floors = [row.min_driver or "" for row in fit]
    return min(floors, key=version_of, default=None)


def built_for(package: Optional[str], version: Optional[str] = None) -> Optional[str]:
    """The CUDA that a package of cuDNN or NCCL was built with: 12 of libcudnn9-cuda-12, 12.4 of 2.21.5-1+cuda12.4."""
    found = _VERSION_CUDA.search(version or "") or _PACKAGE_CUDA.search(package or "")
    return found.group(1) if found else None


def is_same_release(one: Optional[str], other: Optional[str]) -> bool:
    """Whether two versions are one release, builds apart."""
    return bool(version_of(one)) and same(version_of(one)[:3], version_of(other)[:3])


COLUMNS = {
    "first": Column("version", "first release of the row", True),
    "last": Column("version", "last release of the row", True),
    "package": Column("text", "CUDA major number of the package, as 12.x"),
    "cuda": Column("texts", "CUDA versions listed, 11.x for any", True),
    "static_link": Column("versions", "those that can be linked statically"),
    "min_driver": Column("version", "lowest driver"),
    "compute_capabilities": Column("versions", "compute capabilities"),
    "tuned_on": Column("text", "CUDA that it was tuned with"),
    "note": NOTE,
    "unverified": UNVERIFIED,
    "source": SOURCE,
}
TABLE = Table("cudnn", "cuDNN", Cudnn, COLUMNS, ("first", "package", "cuda"), ROWS, SOURCES)
