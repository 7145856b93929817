# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""CUDA toolkits and the drivers they go with.  Two limits that are never one:

* the *floor* of a family (11, 12, 13): the lowest driver on which an application built with any toolkit of it may
  run, by minor-version compatibility, with a limited set of features.  Below it nothing starts.
* the *toolkit driver*: what that very release came with, needed for its new features and for its PTX.

A driver above either is no mismatch: drivers run what older toolkits built.
"""

from __future__ import annotations

from typing import NamedTuple, Optional, Sequence, Tuple

from .rows import NOTE, SOURCE, UNVERIFIED, Column, Table, same, version_of

SOURCES = {
    "rn_latest": "CUDA release notes (text of 13.4 Update 1), "
    "https://docs.nvidia.com/cuda/cuda-toolkit-release-notes/index.html",
    "rn_132": "CUDA release notes (text of 13.2 GA, tables 2 and 3), "
    "https://docs.nvidia.com/cuda/cuda-toolkit-release-notes/index.html",
    "rn_u2": "CUDA release notes, row of 13.2 Update 2 (F70889381901)",
    "rn_133": "CUDA release notes, table of 13.3 (F54526236190, F61920390501, F68834318179)",
    "rn_135": "CUDA release notes (title of 13.5), https://docs.nvidia.com/cuda/cuda-toolkit-release-notes/",
    "rn_1340": "https://docs.nvidia.com/cuda/archive/13.4.1/cuda-toolkit-release-notes/index.html",
    "mvc": "https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html",
    "dc_arch": "https://docs.nvidia.com/datacenter/tesla/drivers/cuda-toolkit-driver-and-architecture-matrix.html",
    "telegraf": "influxdata/telegraf, plugins/inputs/nvidia_smi",
    "container": "rhel9/install.sh and ubuntu24.04/install.sh of NVIDIA/gpu-driver-container 06a208c",
    "toolkits": "follows from the table of toolkits",
}


class Family(NamedTuple):
    """The toolkits of one major number.  ``upper`` is the branch where the next family's floor lies."""

    family: str
    floor: str
    branch: int
    upper: Optional[int]
    source: str
    note: str = ""
    unverified: Tuple[str, ...] = ()


class Toolkit(NamedTuple):
    """A release.  From 13.4 on only the branch of its driver is published; None is not published."""

    version: str
    release: str
    driver: Optional[str]
    branch: Optional[int]
    source: str
    note: str = ""
    unverified: Tuple[str, ...] = ()


class SmiCuda(NamedTuple):
    """What nvidia-smi prints as CUDA version for a branch: the highest that the driver knows, not what is installed.

    ``is_derived``: no output was seen, the number follows from the toolkits.  A container with a newer libcuda
    prints a higher one, so a branch is never told from it.
    """

    branch: int
    cuda: str
    is_derived: bool
    source: str
    note: str = ""


class Rule(NamedTuple):
    id: str
    rule: str
    source: str


FAMILIES: Tuple[Family, ...] = (
    Family("13", "580.65.06", 580, None, "mvc rn_latest"),
    Family("12", "525.60.13", 525, 580, "mvc rn_latest"),
    Family("11", "450.80.02", 450, 525, "mvc rn_latest", "the releases of 11.0 came with older drivers"),
)

# fmt: off
TOOLKITS: Tuple[Toolkit, ...] = (
    Toolkit("13.5.0", "13.5 GA", None, None, "rn_135", "its branch is named in no text seen; the documentation of R620 is of the same time"),
    Toolkit("13.4.2", "13.4 Update 1", None, 615, "rn_latest"),
    Toolkit("13.4.1", "13.4 GA", None, 615, "rn_latest"),
    Toolkit("13.3.1", "13.3 Update 1", "610.43.02", 610, "rn_133"),
    Toolkit("13.3.0", "13.3 GA", "610.43.02", 610, "rn_133"),
    Toolkit("13.2.2", "13.2 Update 2", "595.71.05", 595, "rn_u2"),
    Toolkit("13.2.1", "13.2 Update 1", "595.58.03", 595, "rn_132"),
    Toolkit("13.2.0", "13.2 GA", "595.45.04", 595, "rn_132"),
    Toolkit("13.1.1", "13.1 Update 1", "590.48.01", 590, "rn_132"),
    Toolkit("13.1.0", "13.1 GA", "590.44.01", 590, "rn_132"),
    Toolkit("13.0.2", "13.0 Update 2", "580.95.05", 580, "rn_132"),
    Toolkit("13.0.1", "13.0 Update 1", "580.82.07", 580, "rn_132"),
    Toolkit("13.0.0", "13.0 GA", "580.65.06", 580, "rn_132"),
    Toolkit("12.9.1", "12.9 Update 1", "575.57.08", 575, "rn_latest"),
    Toolkit("12.9.0", "12.9 GA", "575.51.03", 575, "rn_latest"),
    Toolkit("12.8.1", "12.8 Update 1", "570.124.06", 570, "rn_latest"),
    Toolkit("12.8.0", "12.8 GA", "570.26", 570, "rn_latest"),
    Toolkit("12.6.3", "12.6 Update 3", "560.35.05", 560, "rn_latest"),
    Toolkit("12.6.2", "12.6 Update 2", "560.35.03", 560, "rn_latest"),
    Toolkit("12.6.1", "12.6 Update 1", "560.35.03", 560, "rn_latest"),
    Toolkit("12.6.0", "12.6 GA", "560.28.03", 560, "rn_latest"),
    Toolkit("12.5.1", "12.5 Update 1", "555.42.06", 555, "rn_latest"),
    Toolkit("12.5.0", "12.5 GA", "555.42.02", 555, "rn_latest"),
    Toolkit("12.4.1", "12.4 Update 1", "550.54.15", 550, "rn_latest"),
    Toolkit("12.4.0", "12.4 GA", "550.54.14", 550, "rn_latest"),
    Toolkit("12.3.1", "12.3 Update 1", "545.23.08", 545, "rn_latest"),
    Toolkit("12.3.0", "12.3 GA", "545.23.06", 545, "rn_latest"),
    Toolkit("12.2.2", "12.2 Update 2", "535.104.05", 535, "rn_latest"),
    Toolkit("12.2.1", "12.2 Update 1", "535.86.09", 535, "rn_latest"),
    Toolkit("12.2.0", "12.2 GA", "535.54.03", 535, "rn_latest"),
    Toolkit("12.1.1", "12.1 Update 1", "530.30.02", 530, "rn_latest"),
    Toolkit("12.1.0", "12.1 GA", "530.30.02", 530, "rn_latest"),
    Toolkit("12.0.1", "12.0 Update 1", "525.85.12", 525, "rn_latest"),
    Toolkit("12.0.0", "12.0 GA", "525.60.13", 525, "rn_latest"),
    Toolkit("11.8.0", "11.8 GA", "520.61.05", 520, "rn_latest"),
    Toolkit("11.7.1", "11.7 Update 1", "515.48.07", 515, "rn_latest"),
    Toolkit("11.7.0", "11.7 GA", "515.43.04", 515, "rn_latest"),
    Toolkit("11.6.2", "11.6 Update 2", "510.47.03", 510, "rn_latest"),
    Toolkit("11.6.1", "11.6 Update 1", "510.47.03", 510, "rn_latest"),
    Toolkit("11.6.0", "11.6 GA", "510.39.01", 510, "rn_latest"),
    Toolkit("11.5.2", "11.5 Update 2", "495.29.05", 495, "rn_latest"),
    Toolkit("11.5.1", "11.5 Update 1", "495.29.05", 495, "rn_latest"),
    Toolkit("11.5.0", "11.5 GA", "495.29.05", 495, "rn_latest"),
    Toolkit("11.4.4", "11.4 Update 4", "470.82.01", 470, "rn_latest"),
    Toolkit("11.4.3", "11.4 Update 3", "470.82.01", 470, "rn_latest"),
    Toolkit("11.4.2", "11.4 Update 2", "470.57.02", 470, "rn_latest"),
    Toolkit("11.4.1", "11.4 Update 1", "470.57.02", 470, "rn_latest"),
    Toolkit("11.4.0", "11.4 GA", "470.42.01", 470, "rn_latest"),
    Toolkit("11.3.1", "11.3 Update 1", "465.19.01", 465, "rn_latest"),
    Toolkit("11.3.0", "11.3 GA", "465.19.01", 465, "rn_latest"),
    Toolkit("11.2.2", "11.2 Update 2", "460.32.03", 460, "rn_latest"),
    Toolkit("11.2.1", "11.2 Update 1", "460.32.03", 460, "rn_latest"),
    Toolkit("11.2.0", "11.2 GA", "460.27.03", 460, "rn_latest"),
    Toolkit("11.1.1", "11.1 Update 1", "455.32", 455, "rn_latest"),
    Toolkit("11.1.0", "11.1 GA", "455.23", 455, "rn_latest"),
    Toolkit("11.0.3", "11.0 Update 1", "450.51.06", 450, "rn_latest", "came with a driver below the floor of its own family"),
    Toolkit("11.0.2", "11.0 GA", "450.51.05", 450, "rn_latest", "came with a driver below the floor of its own family"),
    Toolkit("11.0.1", "11.0 RC", "450.36.06", 450, "rn_latest", "came with a driver below the floor of its own family"),
)

SMI_CUDA: Tuple[SmiCuda, ...] = (
    SmiCuda(450, "11.0", False, "https://github.com/rossumai/nvgpu/pull/15"),
    SmiCuda(470, "11.4", False, "F57465415229, F24159404894"),
    SmiCuda(510, "11.6", True, "toolkits"),
    SmiCuda(515, "11.7", True, "toolkits"),
    SmiCuda(520, "11.8", True, "toolkits"),
    SmiCuda(525, "12.0", True, "toolkits"),
    SmiCuda(530, "12.1", False, "F26685288220"),
    SmiCuda(535, "12.2", False, "telegraf, test data a100-sxm4-v12.xml"),
    SmiCuda(545, "12.3", False, "F68287099799, F49625423939"),
    SmiCuda(550, "12.4", True, "toolkits"),
    SmiCuda(555, "12.5", False, "F589543966"),
    SmiCuda(560, "12.6", False, "https://github.com/NordicHPC/sonar/issues/183"),
    SmiCuda(565, "12.7", False, "F2113039412", "no toolkit bears this number"),
    SmiCuda(570, "12.8", True, "toolkits"),
    SmiCuda(575, "12.9", False, "F57929024151"),
    SmiCuda(580, "13.0", False, "https://github.com/vast-ai/base-image/pull/244"),
    SmiCuda(590, "13.1", False, "telegraf, test data pro-6000-maxq-blackwell-v13.xml"),
    SmiCuda(595, "13.2", False, "F70775938448"),
    SmiCuda(610, "13.3", False, "https://github.com/sgl-project/sglang/issues/27487"),
    SmiCuda(615, "13.4", False, "F71546139908, F70638263240"),
)
# fmt: on

RULES: Tuple[Rule, ...] = (
    Rule("backward", "a newer driver runs what any older toolkit built: too new is no mismatch", "rn_latest dc_arch"),
    Rule("banner", "the CUDA version of nvidia-smi is the driver's highest, not the toolkit's", "dc_arch"),
    Rule("unbundled", "toolkit packages bring no driver from 13.4 on (on Windows from 13.1 on)", "rn_latest"),
    Rule("branch-only", "from 13.4 on the release notes name a driver branch, not a version", "rn_latest"),
    Rule("third-number", "13.4 GA is 13.4.1 and its Update 1 is 13.4.2: 13.4.0 was a preview", "rn_1340"),
    Rule(
        "minimum",
        "only the parts of the driver itself must be of one version; all other limits are minima",
        "container",
    ),
)
PATCH_RELEASES = ("12.8.2", "12.9.2", "13.0.3", "13.1.2")
"""Later builds that NVIDIA's conda channel lists (cuda-toolkit) and the driver table does not."""


def family_of(version: Optional[str], rows: Sequence[Family] = FAMILIES) -> Optional[Family]:
    number = version_of(version)
    return next((row for row in rows if number and version_of(row.family) == number[:1]), None)


def floor_of(version: Optional[str], rows: Sequence[Family] = FAMILIES) -> Optional[str]:
    """The lowest driver for what any toolkit of this one's major number built; None for an unknown major number."""
    family = family_of(version, rows)
    return family.floor if family else None


def toolkit(version: Optional[str], rows: Sequence[Toolkit] = TOOLKITS) -> Optional[Toolkit]:
    """The row of a release.  ``12.3`` without a third number is the first release of 12.3, which asks for least."""
    number = version_of(version)
    if len(number) == 2:
        line = [row for row in rows if version_of(row.version)[:2] == number and not row.release.endswith("RC")]
        return min(line, key=lambda row: version_of(row.version), default=None)
    return next((row for row in rows if number and same(version_of(row.version), number[:3])), None)


def toolkit_driver(version: Optional[str], rows: Sequence[Toolkit] = TOOLKITS) -> Optional[str]:
    """The driver that a release came with; None when the release is unknown or only its branch is published."""
    row = toolkit(version, rows)
    return row.driver if row else None


def nearest_toolkit(version: Optional[str], rows: Sequence[Toolkit] = TOOLKITS) -> Optional[Toolkit]:
    """The row of a release, or for an unknown third number (12.8.2) the newest of the line below it."""
    number = version_of(version)
    line = [row for row in rows if len(number) > 2 and version_of(row.version)[:2] == number[:2]]
    below = [row for row in line if version_of(row.version) <= number[:3]]
    return toolkit(version, rows) or max(below, key=lambda row: version_of(row.version), default=None)


def cuda_of_branch(branch: int, rows: Sequence[SmiCuda] = SMI_CUDA) -> Optional[SmiCuda]:
    """The highest CUDA version that drivers of a branch know."""
    return next((row for row in rows if row.branch == branch), None)


FAMILY_COLUMNS = {
    "family": Column("version", "major number", True),
    "floor": Column("version", "lowest driver of the family", True),
    "branch": Column("int", "branch of the floor", True, 300, 9999),
    "upper": Column("int", "branch where the next family begins", False, 300, 9999),
    "note": NOTE,
    "unverified": UNVERIFIED,
    "source": SOURCE,
}
TOOLKIT_COLUMNS = {
    "version": Column("version", "three numbers", True),
    "release": Column("text", "as the release notes call it", True),
    "driver": Column("version", "driver that came with it"),
    "branch": Column("int", "branch of that driver", False, 300, 9999),
    "note": NOTE,
    "unverified": UNVERIFIED,
    "source": SOURCE,
}
FAMILY_TABLE = Table("cuda_families", "CUDA families", Family, FAMILY_COLUMNS, ("family",), FAMILIES, SOURCES)
TOOLKIT_TABLE = Table("cuda_toolkits", "CUDA toolkits", Toolkit, TOOLKIT_COLUMNS, ("version",), TOOLKITS, SOURCES)
