# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How the GPUs of a host reach one another: over NVSwitches, over NVLinks of their own, or over PCIe."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from .fleet_hardware import Device, hardware, rows_of, text
from .fleet_links import address_of, number

# More GPUs than this are a matrix: lines between all of them could not be followed.
MOST_LINES = 4
# More than in any host; a drawing has to end.
MOST_GPUS = 16
# nvidia-smi topo -m, from the nearest to the farthest; SOC is what old drivers call SYS.
PATHS = {
    "PIX": "one PCIe switch",
    "PXB": "several PCIe switches",
    "PHB": "the CPU's host bridge",
    "NODE": "host bridges of one NUMA node",
    "SYS": "between NUMA nodes",
    "SOC": "between NUMA nodes",
}

Pair = Tuple[int, int]


@dataclass(frozen=True)
class Fabric:
    """The GPUs, what joins each two of them (by place in ``gpus``), and the number of switches if known."""

    gpus: Tuple[Device, ...]
    pairs: Tuple[Tuple[Pair, str], ...]
    switches: Optional[int]

    @property
    def kind(self) -> str:
        """What is drawn: ``switch``, ``mesh`` (lines), ``matrix``, or nothing but words."""
        if len(self.gpus) > MOST_GPUS or len(self.gpus) < 2:
            return ""
        if self.switches:
            return "switch"
        if not self.pairs:
            return ""
        if len(self.gpus) <= MOST_LINES:
            return "mesh"
        return "matrix" if self.has_types else ""

    @property
    def has_types(self) -> bool:
        """Whether pairs differ: where all are alike, a sentence says as much as a table."""
        return bool(self.pairs) and len(self.types) > 1

    @property
    def has_matrix(self) -> bool:
        return self.kind in ("matrix", "switch") and self.has_types

    @functools.cached_property
    def types(self) -> List[str]:
        """The kinds of paths between GPUs, the fastest first; an unknown one is empty."""
        count = len(self.gpus)
        found = {self.between(a, b) for a in range(count) for b in range(a + 1, count)}
        return sorted(found, key=_rank)

    def between(self, a: int, b: int) -> str:
        return self._kinds.get((min(a, b), max(a, b)), "")

    @functools.cached_property
    def _kinds(self) -> Dict[Pair, str]:
        return dict(self.pairs)

    @property
    def words(self) -> str:
        """The whole of it in a sentence."""
        count = "%d GPUs" % len(self.gpus)
        if self.switches:
            joined = "%s on %s" % (count, _many(self.switches, "NVSwitch", "NVSwitches"))
        elif not self.pairs:
            return "%s; what joins them was not seen (nvidia-smi topo -m tells)" % count
        elif any(links_of(kind) for kind in self.types):
            joined = "%s joined by NVLink" % count + (", without a switch" if self.switches == 0 else "")
        else:
            joined = "%s without NVLink between them" % count
        types = [kind or "unknown" for kind in self.types] if self.pairs else []
        if len(types) == 1:
            joined += ": %s between %s" % (types[0], "both" if len(self.gpus) == 2 else "all")
            joined += " (%s)" % PATHS[types[0]] if types[0] in PATHS else ""
        elif types:
            joined += ": %s and %s between them" % (", ".join(types[:-1]), types[-1])
        return joined

    @property
    def legend(self) -> List[Tuple[str, str]]:
        """What the words in it mean, as far as they occur."""
        found = [(kind, PATHS[kind]) for kind in self.types if kind in PATHS]
        if any(links_of(kind) for kind in self.types):
            found.insert(0, ("NV#", "so many NVLinks"))
        return found + ([("?", "not seen")] if "" in self.types and self.pairs else [])

    @property
    def spoken(self) -> str:
        """The drawing for those who cannot see it."""
        said = ["%s %s" % (gpu.label, gpu.address) for gpu in self.gpus]
        if self.kind == "switch":
            said = ["%s: %s" % (gpu.label, wire_words(gpu)) for gpu in self.gpus]
        count = len(self.gpus)
        if self.kind == "mesh":
            said += [
                "%s to %s: %s" % (self.gpus[a].label, self.gpus[b].label, self.between(a, b) or "not seen")
                for a in range(count)
                for b in range(a + 1, count)
            ]
        return "%s. %s" % (self.words, "; ".join(said))


def fabric(facts: Mapping[str, Any], devices: Sequence[Device]) -> Optional[Fabric]:
    """How the GPUs are joined; None when there are not two of them, or nobody asked."""
    gpus = tuple(device for device in devices if device.kind == "gpu")
    seen = hardware(facts)
    if len(gpus) < 2 or not seen:
        return None
    told = seen.get("nvlink")
    told = told if isinstance(told, Mapping) else {}
    place = {gpu.address: number for number, gpu in enumerate(gpus)}
    pairs: Dict[Pair, str] = {}
    for row in rows_of(told.get("pairs")):
        ends = sorted(place[end] for end in (address_of(row.get("a")), address_of(row.get("b"))) if end in place)
        kind = text(row.get("type")).upper()
        if len(ends) == 2 and ends[0] != ends[1] and re.fullmatch(r"NV[0-9]{1,3}|[A-Z]{3,4}", kind):
            pairs[(ends[0], ends[1])] = kind
    return Fabric(gpus, tuple(pairs.items()), number(told.get("switches")))


def links_of(kind: str) -> int:
    """How many NVLinks a path of this kind has."""
    match = re.fullmatch(r"NV([0-9]{1,3})", kind)
    return int(match[1]) if match else 0


def wire_words(gpu: Device) -> str:
    """The links of a GPU to the switches, in short."""
    active, expected = gpu.nvlink
    if active is None:
        return "? of %d" % expected if expected else "unknown"
    return "%d of %d" % (active, expected) if expected else "%d" % active


def short(address: str) -> str:
    """An address without its domain and function, where those are what they always are."""
    match = re.fullmatch(r"0000:(..:..)\.0", address)
    return match[1] if match else address


def css(kind: str) -> str:
    """How near a path is: the class of a cell of the matrix or of a line."""
    if links_of(kind):
        return "p-nv"
    return {"PIX": "p-near", "PXB": "p-near", "PHB": "p-mid", "NODE": "p-mid"}.get(kind, "p-far" if kind else "p-none")


def _rank(kind: str) -> Tuple[int, int]:
    order = list(PATHS)
    return (-links_of(kind), order.index(kind) if kind in order else 0 if links_of(kind) else 9)


def _many(count: int, one: str, more: str) -> str:
    return "%d %s" % (count, one if count == 1 else more)
