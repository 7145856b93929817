# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""PCIe generations: transfer rate and what a link carries in one direction.

GB/s = GT/s x lanes / 8 x the share of the line code: 8b/10b up to generation 2, 128b/130b from 3 to 5.
"""

from __future__ import annotations

from typing import NamedTuple, Optional, Sequence, Tuple

from .rows import SOURCE, UNVERIFIED, Column, Table

SOURCES = {"arithmetic": "GT/s x lanes / 8 x share of the line code"}


class Rate(NamedTuple):
    gen: int
    gts: float
    x16_gbs: Optional[float]
    x8_gbs: Optional[float]
    unverified: Tuple[str, ...]
    source: str


ROWS: Tuple[Rate, ...] = (
    Rate(1, 2.5, 4.0, 2.0, (), "arithmetic"),
    Rate(2, 5, 8.0, 4.0, (), "arithmetic"),
    Rate(3, 8, 15.75, 7.88, (), "arithmetic"),
    Rate(4, 16, 31.51, 15.75, (), "arithmetic"),
    Rate(5, 32, 63.02, 31.51, (), "arithmetic"),
    Rate(6, 64, 121, None, ("x16_gbs", "x8_gbs"), "about, in FLIT mode; no source was found"),
)
_LINE_CODE = {1: 8 / 10, 2: 8 / 10, 3: 128 / 130, 4: 128 / 130, 5: 128 / 130}


def gen_of(gts: Optional[float], rows: Sequence[Rate] = ROWS) -> Optional[int]:
    """The generation of a transfer rate, as sysfs and lspci print it."""
    return next((row.gen for row in rows if gts is not None and row.gts == gts), None)


def gts_of(gen: Optional[int], rows: Sequence[Rate] = ROWS) -> Optional[float]:
    """The transfer rate of a generation, as nvidia-smi counts them."""
    return next((row.gts for row in rows if row.gen == gen), None)


def gbs_of(gts: Optional[float], width: Optional[int]) -> Optional[float]:
    """GB/s of a link in one direction; None above generation 5, where the line code is another."""
    gen = gen_of(gts)
    if gts is None or not width or gen not in _LINE_CODE:
        return None
    return round(gts * width / 8 * _LINE_CODE[gen], 2)


COLUMNS = {
    "gen": Column("int", "PCIe generation", True, 1, 9),
    "gts": Column("number", "GT/s of a lane", True, 2, 1000),
    "x16_gbs": Column("number", "GB/s in one direction, 16 lanes", False, 1, 2000),
    "x8_gbs": Column("number", "GB/s in one direction, 8 lanes", False, 1, 1000),
    "unverified": UNVERIFIED,
    "source": SOURCE,
}
TABLE = Table("pcie", "PCIe rates", Rate, COLUMNS, ("gen",), ROWS, SOURCES)
