# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Memory channels of processors, and how fast they run them with one or two modules on each.

Speeds are what the fastest models of a family reach: some models of it are slower, and so is a board that wires a
channel for less.  Bandwidth = channels x MT/s x 8 bytes.
"""

from __future__ import annotations

import re
from typing import NamedTuple, Optional, Sequence, Tuple

from .rows import NOTE, SOURCE, UNVERIFIED, Column, Table

SOURCES = {
    "toms": "https://www.tomshardware.com/news/amd-confirms-12-ddr5-memory-channels-on-genoa",
    "toms_fr": "https://www.tomshardware.fr/epyc-genoa-la-prise-en-charge-de-12-canaux-de-memoire-ddr5-confirmee/",
    "hothardware": "https://hothardware.com/news/zen5-epyc-turin-ddr5-leak",
    "krenn": "https://www.thomas-krenn.com/en/wiki/"
    "Optimization_of_AMD_EPYC_7002_Rome_and_7003_Milan_working_memory_performance",
    "denneman": "https://frankdenneman.nl/2023/02/28/sapphire-rapids-memory-configuration/",
    "dell": "Dell white paper on balanced memory with 2nd generation Xeon Scalable processors, page 4 and 7 (2019)",
    "wwt": "https://www.wwt.com/article/memory-population-guidelines-for-intel-4th-gen-xeon-scalable-processors",
    "edac": "https://github.com/ctrliq/kernel-src-tree/commit/e4b2bc6616e21f4a7ce4e7452f716e3db8fe66b6",
    "tweakers": "https://tweakers.net/nieuws/222630/nieuwe-intel-xeon-6-processors-krijgen-tot-288-e-cores-of-128-p-cores.html",
    "sstc": "https://sstc.co.jp/products/Book/Intel_Xeon_W/files/basic-html/page8.html",
    "arithmetic": "channels x MT/s x 8 bytes",
}


class CpuMemory(NamedTuple):
    """``pattern`` finds the family in the model name that lscpu and /proc/cpuinfo print."""

    family: str
    pattern: str
    channels: int
    dimms_per_channel: Optional[int]
    memory: str
    speed_mts: Optional[int]
    speed_2_mts: Optional[int]
    unverified: Tuple[str, ...]
    source: str
    note: str = ""


_XEON = r"Xeon\(R\) (?:Platinum|Gold|Silver|Bronze) "

# fmt: off
ROWS: Tuple[CpuMemory, ...] = (
    CpuMemory("EPYC 7001", r"EPYC 7\w\d1", 8, 2, "DDR4", 2666, None, ("dimms_per_channel",), "toms_fr"),
    CpuMemory("EPYC 7002", r"EPYC 7\w\d2", 8, 2, "DDR4", 3200, 2933, ("speed_2_mts",), "krenn; toms_fr"),
    CpuMemory("EPYC 7003", r"EPYC 7\w\d3", 8, 2, "DDR4", 3200, 2933, ("speed_2_mts",), "krenn; toms"),
    CpuMemory("EPYC 9004", r"EPYC 9\w\d4", 12, 2, "DDR5", 4800, 3600, ("dimms_per_channel", "speed_2_mts"), "toms; hothardware"),
    CpuMemory("EPYC 9005", r"EPYC 9\w\d5", 12, 2, "DDR5", 6000, None, ("channels", "dimms_per_channel", "speed_mts"), "hothardware"),
    CpuMemory("Xeon Scalable 1st generation", _XEON + r"\d1\d\d", 6, 2, "DDR4", None, None, (), "denneman"),
    CpuMemory("Xeon Scalable 2nd generation", _XEON + r"\d2\d\d", 6, 2, "DDR4", 2933, None, ("speed_mts",), "dell"),
    CpuMemory("Xeon Scalable 3rd generation", _XEON + r"\d3\d\d(?!H)", 8, 2, "DDR4", 3200, 3200, (), "wwt",
              "models ending in H are of another design"),
    CpuMemory("Xeon Scalable 4th generation", _XEON + r"\d4\d\d", 8, 2, "DDR5", 4800, 4400, (), "wwt", "some models end at 4400 or 4000 MT/s"),
    CpuMemory("Xeon Max", r"Xeon\(R\) CPU Max 94\d\d", 8, 2, "DDR5", 4800, 4400, ("speed_mts", "speed_2_mts", "channels", "dimms_per_channel"), "wwt",
              "besides the HBM of its package"),
    CpuMemory("Xeon Scalable 5th generation", _XEON + r"\d5\d\d", 8, 2, "DDR5", 5600, 4400, ("dimms_per_channel", "speed_mts", "speed_2_mts"),
              "edac"),
    CpuMemory("Xeon 6700 and 6500", r"Xeon\(R\) 6[57]\d\d[PE]", 8, None, "DDR5", 6400, None, (), "tweakers", "faster with multiplexed modules"),
    CpuMemory("Xeon 6900", r"Xeon\(R\) 69\d\d[PE]", 12, None, "DDR5", 6400, None, ("speed_mts",), "tweakers",
              "up to 8800 MT/s with multiplexed modules"),
    CpuMemory("Xeon W-3400", r"Xeon\(R\) w\d-34\d\d", 8, None, "DDR5", 4800, None, (), "sstc"),
    CpuMemory("Core 13th generation desktop", r"Core\(TM\) i\d-13\d00K", 2, None, "DDR5", 5600, None, (), "arithmetic"),
)
# fmt: on


def by_model(model: Optional[str], rows: Sequence[CpuMemory] = ROWS) -> Optional[CpuMemory]:
    """The family of a processor by its model name, which some processors write in capitals."""
    name = " ".join((model or "").split())
    return next((row for row in rows if name and re.search(row.pattern, name, re.IGNORECASE)), None)


def speed_of(row: CpuMemory, dimms_per_channel: int) -> Optional[int]:
    """MT/s with so many modules on the fullest channel; None where no figure is known."""
    return {1: row.speed_mts, 2: row.speed_2_mts}.get(dimms_per_channel)


def bandwidth_gbs(channels: int, speed_mts: int) -> float:
    """GB/s that some channels can carry."""
    return round(channels * speed_mts * 8 / 1000, 1)


COLUMNS = {
    "family": Column("text", "family of processors", True),
    "pattern": Column("pattern", "regular expression for the model name", True),
    "channels": Column("int", "memory channels of a socket", True, 1, 64),
    "dimms_per_channel": Column("int", "modules that a channel takes", False, 1, 4),
    "memory": Column("text", "DDR4, DDR5", True),
    "speed_mts": Column("int", "MT/s with one module on a channel", False, 800, 20000),
    "speed_2_mts": Column("int", "MT/s with two modules on a channel", False, 800, 20000),
    "note": NOTE,
    "unverified": UNVERIFIED,
    "source": SOURCE,
}
TABLE = Table("cpu_memory", "Memory of processors", CpuMemory, COLUMNS, ("family",), ROWS, SOURCES)
