# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How GPUs and NICs are connected: the matrix of ``nvidia-smi topo -m`` (and ``topo -p2p``).

A cell is the type of a connection, from near to far: NV# (bonded NVLinks), PIX, PXB, PHB, NODE, SYS
(SOC on drivers before R390).  The columns on affinity depend on the age of the driver, and tell what the
caller's cpuset allows, cut off where the list is long; sysfs (``pci``) tells the machine's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Dict, List, Mapping, Optional, Sequence, Tuple, Union

from .._engine.values import Text, Unknown
from .cpu import Ids, Number, ids_of
from .nvidia_words import clean, is_complaint, silence
from .pasted import plain_lines
from .topo_rows import NAMELESS, Matrix, matrices

# From near to far; PSB is a single bridge of old drivers' legends.
NEARNESS = ("PIX", "PSB", "PXB", "PHB", "NODE", "SYS", "SOC")
# Words of ``topo -p2p`` (its legend): OK; not supported by chipset, GPU, topology or at all; disabled.
PEER_WORDS = ("OK", "CNS", "GNS", "TNS", "NS", "DR", "U")

# A line of a matrix: its header, or the row of a GPU.
_SIGN = re.compile(r"\s*GPU\d{1,3}(?:\s{0,40}(?:GPU\d|NIC\d|mlx|CPU)|\s{1,40}(?:X|NV\d{1,3}|[A-Z]{3,4})\b)", re.ASCII)
# Where ids do not follow each other, six of them are printed and the others left out.
_LEFT_OUT = re.compile(r"\d{1,5}(?:,\d{1,5}){5}", re.ASCII)
_NVLINK = re.compile(r"NV(\d{1,3})", re.ASCII)
_LEGEND = re.compile(r"\s*(NIC\d{1,3})\s*:\s*(\S{1,64})\s*", re.ASCII)


@dataclass(frozen=True)
class Place:
    """Where a GPU is.  ``gpu_numa_node`` is the node of its own memory, on Grace; N/A elsewhere."""

    cpus: Ids
    numa_nodes: Ids
    gpu_numa_node: Number


@dataclass(frozen=True)
class Topo:
    """The matrix.

    ``gpus`` by name (GPU0) in the order of the columns; ``nics`` by name, with the RDMA device each is, which
    is unknown without a legend.  ``cells`` are the words as printed, by row and column.  ``missing`` are the
    columns without a row: the output was cut.
    """

    gpus: Mapping[str, Place]
    nics: Mapping[str, Union[str, Unknown]]
    cells: Mapping[str, Mapping[str, str]]
    missing: Tuple[str, ...]

    @property
    def is_complete(self) -> bool:
        """Whether every GPU has its row; rows of NICs add nothing that those do not say."""
        return not any(name in self.gpus or name.startswith(NAMELESS) for name in self.missing)

    def connection(self, one: str, other: str) -> Union[str, Unknown]:
        """The type between two devices, from either of their rows."""
        said = {self.cells.get(row, {}).get(column) for row, column in ((one, other), (other, one))} - {None}
        if not said:
            return Unknown("not there: no cell for %s and %s" % (one, other))
        if len(said) > 1:
            return Unknown(
                "not understood: %s is told for %s and %s" % (" and ".join(sorted(map(str, said))), one, other)
            )
        return _word(str(said.pop()))

    def nvlinks(self, one: str, other: str) -> Number:
        """How many NVLinks two GPUs are bonded with; 0 where they meet over PCIe only."""
        word = self.connection(one, other)
        return word if isinstance(word, Unknown) else nvlink_count(word)


def nvlink_count(word: str) -> int:
    found = _NVLINK.fullmatch(word)
    return int(found.group(1)) if found else 0


def peers(topo: Topo, gpu: str) -> Dict[str, Number]:
    """NVLinks of a GPU to each other GPU."""
    return {other: topo.nvlinks(gpu, other) for other in topo.gpus if other != gpu}


def nearest_nics(topo: Topo, gpu: str) -> Tuple[str, ...]:
    """The NICs that are as near as any, in the order of the columns."""
    far = {nic: _distance(topo.connection(gpu, nic)) for nic in topo.nics}
    least = min(far.values(), default=len(NEARNESS))
    return tuple(nic for nic, distance in far.items() if distance == least < len(NEARNESS))


def parse_topo(text: Text) -> Union[Topo, Unknown]:
    """The output of ``nvidia-smi topo -m``; Unknown with the tool's own word when there is no matrix."""
    if not isinstance(text, str):
        return text if isinstance(text, Unknown) else Unknown("not there")
    rows = plain_lines(clean(text), _SIGN)
    every = list(matrices(rows))
    found = [matrix for matrix in every if not _is_of_peers(matrix)]
    if not found:
        return Unknown("not understood: a matrix of peers, not of connections") if every else _no_matrix(rows)
    matrix = found[0]
    # Without the end of its line the last word may have been longer.
    cut_line = rows[-1]
    legend = {row.group(1): row.group(2) for row in map(_LEGEND.fullmatch, rows[:-1]) if row}
    legend.update(_whole_legend(cut_line, legend))
    matrix = _without_end(matrix, cut_line)
    gpus = {name: _place(matrix.tails.get(name)) for name in matrix.columns if name.startswith("GPU")}
    nics = {name: _device(name, legend) for name in matrix.columns if not name.startswith(("GPU", NAMELESS))}
    missing = tuple(name for name in matrix.columns if name not in matrix.cells)
    return Topo(gpus, nics, matrix.cells, missing)


def parse_topo_p2p(text: Text) -> Union[Dict[str, Dict[str, str]], Unknown]:
    """The output of ``nvidia-smi topo -p2p``: what each GPU can do with each other one, as printed."""
    if not isinstance(text, str):
        return text if isinstance(text, Unknown) else Unknown("not there")
    rows = plain_lines(clean(text), _SIGN)
    found = [matrix for matrix in matrices(rows) if _is_of_peers(matrix)]
    if not found:
        return _no_matrix(rows)
    return {
        row: {column: word for column, word in cells.items() if column != row} for row, cells in found[0].cells.items()
    }


def _is_of_peers(matrix: Matrix) -> bool:
    """Not a connection in it, and no column on affinity."""
    words = {word for row in matrix.cells.values() for word in row.values()} - {"X"}
    return not matrix.has_affinity and bool(words) and words <= set(PEER_WORDS)


def _no_matrix(rows: Sequence[str]) -> Unknown:
    """What the tool said instead."""
    said = next((row.strip() for row in rows if row.strip()), "")
    if not said:
        return Unknown("not there: the tool printed nothing")
    word = _word(said)
    if isinstance(word, Unknown):
        return word
    return Unknown("%s: %s" % ("error" if is_complaint(said) else "not understood", " ".join(said.split())[:200]))


def _word(said: str) -> Union[str, Unknown]:
    quiet = silence(said)
    return said if quiet is None else quiet


def _whole_legend(line: str, legend: Mapping[str, str]) -> Dict[str, str]:
    """What a line without an end tells of a NIC, if its name is built like those of the others."""
    row = _LEGEND.fullmatch(line)
    builds = {re.sub(r"\d+", "0", device) for device in legend.values()}
    is_whole = row is not None and re.sub(r"\d+", "0", row.group(2)) in builds
    return {row.group(1): row.group(2)} if row and is_whole else {}


def _without_end(matrix: Matrix, line: str) -> Matrix:
    """The matrix without the last word of a line that has no end, unless other rows have the same there."""
    name = next(iter(line.split()), "")
    cells, tail = dict(matrix.cells.get(name, {})), list(matrix.tails.get(name, ()))
    filled = [number for number, cell in enumerate(tail) if cell]
    if filled:
        place, word = filled[-1], tail[filled[-1]]
        others = [other[place] for one, other in matrix.tails.items() if one != name]
        tail[place] = word if word in (*others, "N/A") else "%s," % word
    elif nvlink_count(next(reversed(list(cells.values())), "")):
        # NV1 may have been NV18; the other words end where they end.
        cells.popitem()
    tails = {**matrix.tails, name: tuple(tail)} if filled else matrix.tails
    return Matrix(matrix.columns, {**matrix.cells, name: cells} if cells else matrix.cells, tails, matrix.has_affinity)


def _device(name: str, legend: Mapping[str, str]) -> Union[str, Unknown]:
    """Old drivers name the RDMA device in the header itself."""
    if not name.startswith("NIC"):
        return name
    return legend.get(name, Unknown("not there: no legend for %s" % name))


def _place(tail: Optional[Sequence[Optional[str]]]) -> Place:
    """The columns behind the connections; None is a column that this driver does not have."""
    if tail is None:
        cut = Unknown("not there: the row was cut")
        return Place(cut, cut, cut)
    node = _ids(tail[2])
    number: Number = node if isinstance(node, Unknown) else Unknown("not understood: %r" % tail[2])
    if isinstance(node, frozenset) and len(node) == 1:
        number = next(iter(node))
    return Place(_ids(tail[0]), _ids(tail[1]), number)


def _ids(word: Optional[str]) -> Ids:
    if word is None:
        return Unknown("not there: no such column")
    if not word:
        return Unknown("not there: the cell is empty")
    quiet = silence(word)
    if quiet is not None:
        return quiet
    if word.endswith((",", "-")) or _LEFT_OUT.fullmatch(word):
        return Unknown("not understood: %r is cut off" % word[:60])
    found = ids_of(word)
    return found if isinstance(found, frozenset) else Unknown("not understood: %s" % found.reason)


def _distance(word: Union[str, Unknown]) -> int:
    if isinstance(word, Unknown):
        return len(NEARNESS)
    if nvlink_count(word):
        return -1
    return NEARNESS.index(word) if word in NEARNESS else len(NEARNESS)


def words_of(topo: Topo) -> List[str]:
    """All words of connections between GPUs, each once, from near to far."""
    names = list(topo.gpus)
    said = {topo.connection(one, other) for place, one in enumerate(names) for other in names[place + 1 :]}
    return sorted((word for word in said if isinstance(word, str)), key=lambda word: (_distance(word), word))
