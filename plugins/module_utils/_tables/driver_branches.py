# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Driver branches: kind, end of life, and which architectures and kernel modules they serve."""

from __future__ import annotations

from typing import NamedTuple, Optional, Sequence, Tuple

from .rows import NOTE, SOURCE, UNVERIFIED, Column, Table, version_of

SOURCES = {
    "dc_620": "https://docs.nvidia.com/datacenter/tesla/drivers/620/supported-drivers-and-cuda-toolkit-versions.html",
    "dc_615": "https://docs.nvidia.com/datacenter/tesla/drivers/615/supported-drivers-and-cuda-toolkit-versions.html",
    "dc_arch": "https://docs.nvidia.com/datacenter/tesla/drivers/cuda-toolkit-driver-and-architecture-matrix.html",
    "dc_2021": "https://docs.nvidia.com/datacenter/tesla/pdf/NVIDIA_CUDA_Drivers_Support.pdf",
    "rn_latest": "https://docs.nvidia.com/cuda/cuda-toolkit-release-notes/index.html",
    "eol": "products/nvidia-driver.md of endoflife-date/endoflife.date a70eca3 (2026-08-22)",
    "aks": "https://github.com/Azure/aks-gpu/pull/113",
    "kmod_610": "https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/610/kernel-modules.html",
    "kmod_620": "https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/620/kernel-modules.html",
    "open_readme": "README of NVIDIA/open-gpu-kernel-modules 595.45.04",
    "container": "rhel9/install.sh and ubuntu24.04/install.sh of NVIDIA/gpu-driver-container 06a208c",
    "glfs": "https://linuxfromscratch.org/glfs/view/12.4-systemd/shareddeps/nvidia.html",
}
KINDS = {
    "LTSB": "long term support, 3 years",
    "PB": "production, 1 year",
    "NFB": "new feature, no promise of support",
    "DEV": "came with a toolkit only",
}
LATEST_AS_OF = "2026-08-22"
"""Day of the list that ``latest`` was read from."""

OPEN_FIRST_BRANCH = 515
OPEN_DEFAULT_FROM = 560
PROPRIETARY_UNTIL = 615
OPEN_SOURCE = "kmod_610 kmod_620 open_readme"

MUST_EQUAL_DRIVER = (
    "nvidia-fabricmanager",
    "libnvidia-nscq",
    "libnvsdm",
    "nvidia-imex",
    "nvidia-persistenced",
    "nvidia-modprobe",
)
"""Packages of the very version of the running driver, as the kernel modules are; all else has minima."""
MUST_EQUAL_SOURCE = "container"


class Branch(NamedTuple):
    """A branch.  ``end_of_life`` is a month or a day, None when none was published."""

    branch: int
    kind: str
    first: Optional[str]
    latest: Optional[str]
    end_of_life: Optional[str]
    unverified: Tuple[str, ...]
    last_for: Tuple[str, ...]
    source: str
    note: str = ""
    max_cuda_native: Optional[str] = None


class Architecture(NamedTuple):
    """``open_modules``: never, supported or required.  ``later``: (capability, CUDA, driver) that came after the rest."""

    name: str
    compute_capabilities: Tuple[str, ...]
    first_cuda: Optional[str]
    last_cuda: Optional[str]
    min_driver: Optional[str]
    last_driver_branch: Optional[int]
    open_modules: str
    unverified: Tuple[str, ...]
    source: str
    note: str = ""
    full_cuda: Optional[str] = None
    full_driver: Optional[str] = None
    later: Tuple[Tuple[str, str, str], ...] = ()


# fmt: off
BRANCHES: Tuple[Branch, ...] = (
    Branch(418, "LTSB", "2019-01-30", "418.197.02", "2022-03", (), (), "eol dc_2021"),
    Branch(440, "NFB", None, None, "2020-11", (), (), "dc_2021"),
    Branch(450, "LTSB", "2020-06-24", "450.248.02", "2023-07", (), (), "eol dc_2021 aks", max_cuda_native="11.0"),
    Branch(455, "DEV", None, None, None, (), (), "dc_2021"),
    Branch(460, "PB", "2021-01-07", "460.106.00", "2022-01", (), (), "eol dc_2021 aks"),
    Branch(465, "NFB", "2021-04-19", "465.24.02", "2022-04-19", (), (), "eol aks"),
    Branch(470, "LTSB", "2021-07-19", "470.256.02", "2024-07-20", (), ("Kepler",), "eol aks"),
    Branch(495, "NFB", "2021-10-26", "495.46", "2022-10-12", (), (), "eol aks"),
    Branch(510, "PB", "2022-01-14", "510.108.03", "2023-01", (), (), "eol aks"),
    Branch(515, "PB", "2022-05-11", "515.105.01", "2023-05", (), (), "eol aks", note="the first with open kernel modules"),
    Branch(520, "NFB", "2022-10-12", "520.56.06", "2023-10", (), (), "eol aks", note="the data-centre build is 520.61.05, of CUDA 11.8"),
    Branch(525, "PB", "2022-11-10", "525.147.05", "2023-12", (), (), "eol aks"),
    Branch(530, "NFB", "2023-03-23", "530.41.03", "2023-06-24", (), (), "eol"),
    Branch(535, "LTSB", "2023-06-14", "535.309.01", "2026-06", (), (), "eol dc_615 aks"),
    Branch(545, "NFB", "2023-10-31", "545.29.06", "2024-10", (), (), "eol"),
    Branch(550, "PB", "2024-02-23", "550.163.01", "2025-04-17", (), (), "eol aks"),
    Branch(555, "NFB", "2024-06-04", "555.58.02", "2025-06", (), (), "eol"),
    Branch(560, "NFB", "2024-08-22", "560.35.03", "2025-08-22", (), (), "aks eol",
           note="eol calls 560 and 565 production branches, aks new feature branches"),
    Branch(565, "NFB", "2024-10-29", "565.57.01", "2025-10", (), (), "aks eol"),
    Branch(570, "PB", "2025-01-27", "570.211.01", "2026-01-27", (), (), "eol aks", note="the first with Blackwell"),
    Branch(575, "NFB", "2025-06-03", "575.57.08", "2026-06-03", (), (), "eol aks"),
    Branch(580, "LTSB", "2025-08-04", "580.178.04", "2028-06", (), ("Maxwell", "Pascal", "Volta"), "dc_620 eol", note="eol derives 2028-08-04"),
    Branch(590, "NFB", "2025-12-22", "590.48.01", None, (), (), "eol", note="no end of life was promised; 595 took its place"),
    Branch(595, "PB", "2026-03-24", "595.91.07", "2027-03", (), (), "dc_620 eol"),
    Branch(610, "NFB", "2026-08-03", "610.57.04", "2026-08", ("first", "end_of_life"), (), "dc_615 eol",
           note="the dates of its sources contradict each other: 610.43.02 was in use by 2026-06-07 (sgl-project/sglang#27487)"),
    Branch(615, "NFB", None, None, None, ("kind",), (), "rn_latest dc_615", note="the branch of CUDA 13.4"),
    Branch(620, "LTSB", None, None, "2029-09", (), (), "dc_620", note="its documentation knows open kernel modules only (kmod_620)"),
)

ARCHITECTURES: Tuple[Architecture, ...] = (
    Architecture("Kepler", ("3.5", "3.7"), "6.0", "11", None, 470, "never", (), "dc_arch"),
    Architecture("Maxwell", ("5.0", "5.2", "5.3"), "6.5", "12", None, 580, "never", (), "dc_arch kmod_610"),
    Architecture("Pascal", ("6.0", "6.1"), "8.0", "12", None, 580, "never", (), "dc_arch kmod_610"),
    Architecture("Volta", ("7.0",), "9.0", "12", None, 580, "never", (), "dc_arch kmod_610"),
    Architecture("Turing", ("7.5",), "10.0", None, "410.48", None, "supported", (), "dc_arch open_readme"),
    Architecture("Ampere", ("8.0", "8.6"), "11.0", None, "450.51.05", None, "supported", ("later",), "dc_arch", later=(("8.6", "11.1", "455.23"),)),
    Architecture("Ada", ("8.9",), "11.8", None, "520.61.05", None, "supported", (), "dc_arch"),
    Architecture("Hopper", ("9.0",), "11.8", None, "520.61.05", None, "supported", (), "dc_arch", "CUDA 11.8 knows the basics, 12.0 all of it",
                 "12.0", "525.60.13"),
    Architecture("GraceHopper", ("9.0",), None, None, None, None, "required", (), "glfs"),
    Architecture("Blackwell", ("10.0", "10.3", "12.0"), "12.8", None, "570.26", None, "required", ("later",), "dc_arch glfs", later=(("10.3", "12.9",
                 "575"),)),
)
# fmt: on


def branch_of(driver: Optional[str]) -> Optional[int]:
    """535 of 535.54.03."""
    number = version_of(driver)
    return number[0] if len(number) > 1 else None


def of(driver: Optional[str], rows: Sequence[Branch] = BRANCHES) -> Optional[Branch]:
    """The branch of a driver version."""
    number = branch_of(driver)
    return next((row for row in rows if row.branch == number), None)


def is_past(end: Optional[str], today: str) -> Optional[bool]:
    """Whether a month (2026-06) or a day (2026-06-30) is over on a day written alike; None when there is no end."""
    return today[: len(end)] > end if end else None


def architecture(name: Optional[str], rows: Sequence[Architecture] = ARCHITECTURES) -> Optional[Architecture]:
    wanted = (name or "").replace(" ", "").lower()
    return next((row for row in rows if row.name.lower() == wanted), None)


def flavours(branch: int) -> Tuple[str, ...]:
    """The kernel modules that a branch is documented with."""
    if branch < OPEN_FIRST_BRANCH:
        return ("proprietary",)
    return ("open", "proprietary") if branch <= PROPRIETARY_UNTIL else ("open",)


def flavours_for(branch: int, name: Optional[str], rows: Sequence[Architecture] = ARCHITECTURES) -> Tuple[str, ...]:
    """Those of them that drive an architecture; empty when the branch does not serve it any more."""
    row = architecture(name, rows)
    if row is None:
        return flavours(branch)
    if row.last_driver_branch is not None and branch > row.last_driver_branch:
        return ()
    unfit = {"never": "open", "required": "proprietary"}.get(row.open_modules)
    return tuple(flavour for flavour in flavours(branch) if flavour != unfit)


BRANCH_COLUMNS = {
    "branch": Column("int", "first number of its driver versions", True, 300, 9999),
    "kind": Column("text", "kind of branch", True, choices=tuple(KINDS)),
    "first": Column("date", "day of the first release"),
    "latest": Column("version", "newest version known on %s" % LATEST_AS_OF),
    "end_of_life": Column("date", "month or day of the end of support"),
    "max_cuda_native": Column("version", "newest CUDA without a compatibility package"),
    "last_for": Column("texts", "architectures that no later branch serves"),
    "note": NOTE,
    "unverified": UNVERIFIED,
    "source": SOURCE,
}
ARCHITECTURE_COLUMNS = {
    "name": Column("text", "architecture", True),
    "compute_capabilities": Column("versions", "compute capabilities", True),
    "first_cuda": Column("version", "first toolkit that knows it"),
    "last_cuda": Column("version", "last major number of toolkits that knows it"),
    "min_driver": Column("version", "driver of the first toolkit"),
    "full_cuda": Column("version", "first toolkit that knows all of it"),
    "full_driver": Column("version", "driver of that toolkit"),
    "last_driver_branch": Column("int", "last branch that serves it", False, 300, 9999),
    "open_modules": Column("text", "open kernel modules", True, choices=("never", "supported", "required")),
    "note": NOTE,
    "unverified": UNVERIFIED,
    "source": SOURCE,
}
BRANCH_TABLE = Table("driver_branches", "Driver branches", Branch, BRANCH_COLUMNS, ("branch",), BRANCHES, SOURCES)
ARCHITECTURE_TABLE = Table(
    "architectures", "Architectures", Architecture, ARCHITECTURE_COLUMNS, ("name",), ARCHITECTURES, SOURCES
)
