# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NVLink generations: how many links a chip has and what each carries.

``rate_gbs`` is the signalling rate that `nvidia-smi nvlink -s` prints for one link and direction; the total of a data
sheet is links x 2 x ``payload_gbs``.  So a total is never divided by a printed rate.
"""

from __future__ import annotations

from typing import NamedTuple, Optional, Sequence, Tuple

from .rows import SOURCE, UNVERIFIED, Column, Table

SOURCES = {
    "glossary": "https://www.textbookofai.com/glossary/nvlink.html",
    "wikimili": "https://wikimili.com/en/NVLink",
    "catalogone": "https://catalogone.com/data-center-and-cloud-computing-nvlink-nvswitch",
}


class Generation(NamedTuple):
    """``gpus`` are family names: A800 stands for every A800."""

    gen: int
    gpus: Tuple[str, ...]
    links_max: int
    rate_gbs: float
    payload_gbs: float
    total_gbs: float
    unverified: Tuple[str, ...]
    source: str


# fmt: off
ROWS: Tuple[Generation, ...] = (
    Generation(1, ("P100",), 4, 20, 20, 160, ("rate_gbs",), "glossary"),
    Generation(2, ("V100",), 6, 25.781, 25, 300, (), "wikimili; rate F35181931224, F20044510323"),
    Generation(3, ("A100", "A800", "A30"), 12, 25, 25, 600, (), "wikimili; rate F60287269632"),
    Generation(3, ("A40", "RTX A6000", "RTX 3090"), 4, 14.062, 14.0625, 112.5, (), "F39458001138, F2434274566"),
    Generation(4, ("H100", "H200", "H20", "H800"), 18, 26.562, 25, 900, (), "glossary; rate F1844595288, F66467778056"),
    Generation(5, ("B200", "B300", "GB200", "GB300"), 18, 53.125, 50, 1800, (), "catalogone; rate F63125688786 (B300)"),
)
# fmt: on

RATE_TOLERANCE = 0.01
"""Share by which a printed rate may differ: drivers round 26.5625 to 26.562 or 26.56."""


def generations(gen: int, rows: Sequence[Generation] = ROWS) -> Tuple[Generation, ...]:
    """The rows of a generation; the third has two, for HBM and for GDDR cards."""
    return tuple(row for row in rows if row.gen == gen)


def of_rate(rate_gbs: float, rows: Sequence[Generation] = ROWS) -> Optional[Generation]:
    """The row of a printed rate; None when it fits none, or two (25 and 25.781 are told apart)."""
    near = [row for row in rows if abs(row.rate_gbs - rate_gbs) <= row.rate_gbs * RATE_TOLERANCE]
    return near[0] if len(near) == 1 else None


def total_gbs(links: int, row: Generation) -> float:
    """Both directions of some links, as data sheets count."""
    return links * 2 * row.payload_gbs


COLUMNS = {
    "gen": Column("int", "NVLink generation", True, 1, 9),
    "gpus": Column("texts", "GPU families", True),
    "links_max": Column("int", "links of the chip", True, 1, 64),
    "rate_gbs": Column("number", "GB/s of one link and direction, as nvidia-smi prints", True, 5, 1000),
    "payload_gbs": Column("number", "GB/s of one link and direction, payload", True, 5, 1000),
    "total_gbs": Column("number", "GB/s of all links in both directions", True, 10, 50000),
    "unverified": UNVERIFIED,
    "source": SOURCE,
}
TABLE = Table("nvlinks", "NVLink generations", Generation, COLUMNS, ("gen", "gpus"), ROWS, SOURCES)
