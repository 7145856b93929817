# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Parts by their names: what is sold as "H100 SXM 80 GB" is what nvidia-smi calls "NVIDIA H100 80GB HBM3".

Names are compared word by word, without makers' signs, since each source writes them in its own way.
"""

from __future__ import annotations

import difflib
import functools
import math
import re
from collections.abc import Sequence

from ..module_utils._tables import gpus as catalogue
from ..module_utils._tables.gpus import Gpu

# pci.ids of pciutils/pciids 006181e, vendor 15b3. The longer of two names comes first.
NIC_NAMES = {
    "15b3:1003": "ConnectX-3",
    "15b3:1007": "ConnectX-3 Pro",
    "15b3:1013": "ConnectX-4",
    "15b3:1015": "ConnectX-4 Lx",
    "15b3:1017": "ConnectX-5",
    "15b3:1019": "ConnectX-5 Ex",
    "15b3:101b": "ConnectX-6",
    "15b3:101d": "ConnectX-6 Dx",
    "15b3:101f": "ConnectX-6 Lx",
    "15b3:1021": "ConnectX-7",
    "15b3:1023": "ConnectX-8",
    "15b3:1025": "ConnectX-9",
    "15b3:a2d2": "BlueField",
    "15b3:a2d6": "BlueField-2",
    "15b3:a2d9": "BlueField-3 Lx",
    "15b3:a2dc": "BlueField-3",
    "15b3:a2df": "BlueField-4",
}
# Virtual functions of the same cards are no parts that anybody delivers (same source).
VIRTUAL_NICS = {
    "15b3:%s" % device for device in ("1004", "1012", "1014", "1016", "1018", "101a", "101c", "101e", "a2d3")
}
# Of GDDR memory with ECC on about 94 percent are left (A40 46068 of 49140 MiB, T4 15360 of 16384: gpus.yml, errata A4).
INLINE_ECC_LEAVES = 0.93
USUAL_SIZES_GB = (16, 24, 32, 48, 96)
# Boards of which several GPUs share one serial number (gpus.yml: A16 has four on a board).
SHARED_BOARDS = ("A16", "M10", "M60", "K80", "GB200", "GB300")

_SIGNS = re.compile(r"\((?:r|tm|c)\)|[®™©]", re.IGNORECASE)
_CAPACITY = re.compile(r"\b([0-9]+) *(?:gib|gb|g)\b", re.IGNORECASE)


# --- GPUs


@functools.lru_cache(maxsize=1000)
def gpu_words(name: str) -> frozenset[str]:
    """The words of a GPU's name that tell it from others."""
    text = _CAPACITY.sub(r" \1gb ", _SIGNS.sub(" ", name).casefold())
    return frozenset(re.findall(r"[a-z0-9]+", text)) - {"nvidia", "tesla", "gpu", "graphics", "card", "tensor", "core"}


def same_gpu_name(one: str, other: str) -> bool:
    """Whether two names are one part: drivers wrote A100-PCIE-80GB where later ones write A100 80GB PCIe."""
    return gpu_words(one) == gpu_words(other)


@functools.lru_cache(maxsize=1000)
def gpu_of_order(model: str | None) -> Gpu | None:
    """The row of the catalogue that an order means, None when it knows none (or several)."""
    rows = _rows_meant(model)
    return rows[0] if len(rows) == 1 else None


def several_gpus(model: str | None) -> Sequence[Gpu]:
    """The rows that an order could mean, where it does not tell which."""
    rows = _rows_meant(model)
    return rows if len(rows) > 1 else ()


def _rows_meant(model: str | None) -> Sequence[Gpu]:
    words = gpu_words(model or "")
    printed = [row for row in catalogue.GPUS if row.name.casefold() == (model or "").casefold()]
    if printed or not words:
        return printed
    # "H100" is the whole name of one model and the beginning of others: only "NVIDIA H100" means that one.
    longer = [row for row in catalogue.GPUS if words <= gpu_words(row.name)]
    if len(longer) == 1 and gpu_words(longer[0].name) == words:
        return longer
    return [row for row in catalogue.GPUS if all(_is_said_of(word, row) for word in words)]


def _is_said_of(word: str, row: Gpu) -> bool:
    """Whether a word of an order is true of a model; "SXM" of an SXM4 module as well."""
    return word in _names(row) or (word == "sxm" and any(name.startswith("sxm") for name in _names(row)))


@functools.cache
def _names(row: Gpu) -> frozenset[str]:
    """The words of a model's name, and what it is sold as besides: form, size of memory."""
    words = gpu_words(row.name)
    words |= {"%dgb" % size for mib in (row.memory_mib, *row.memory_alternates_mib) for size in _sold_sizes(mib)}
    if row.nvlink is not None and "switch" in row.nvlink.via.casefold():
        words |= {"sxm", "hgx"} | ({"sxm5"} if row.architecture == "Hopper" else set())
    else:
        words |= {"pcie"}
    return words


def _sold_sizes(memory_mib: int) -> set[int]:
    """The round sizes in GB that a card may be sold with: 81559 MiB as 80, 143771 as 141, 183359 as 180 or 192."""
    gib = memory_mib / 1024
    usual = {size for size in USUAL_SIZES_GB if INLINE_ECC_LEAVES * size < gib <= size}
    return {round(gib), math.ceil(gib), round(memory_mib * 2**20 / 1e9)} | usual


def gpu_by_id(pci_id: str, subsystem_id: str = "") -> Gpu | None:
    return catalogue.by_pci_id(pci_id, subsystem_id or None)


def gpu_by_name(name: str) -> Gpu | None:
    """The row whose name a driver prints."""
    found = catalogue.by_name(name)
    if found is None:
        rows = [row for row in catalogue.GPUS if same_gpu_name(row.name, name)]
        found = rows[0] if len(rows) == 1 else None
    return found


def short_gpu_name(row: Gpu) -> str:
    return row.name.removeprefix("NVIDIA ")


def nearest_gpu(name: str) -> str:
    """The model of the catalogue whose name is nearest, for a hint."""
    names = {" ".join(sorted(gpu_words(row.name))): row.name for row in catalogue.GPUS}
    found = difflib.get_close_matches(" ".join(sorted(gpu_words(name))), list(names), 1, 0.7)
    return names[found[0]] if found else ""


def is_shared_board(name: str) -> bool:
    return any(board.casefold() in gpu_words(name) for board in SHARED_BOARDS)


# --- processors


def cpu_words(name: str) -> set[str]:
    """The words of a processor's name that tell it from others: the makers of both sides sign it differently."""
    text = re.sub(r"@.*|[0-9]+-core\b", " ", _SIGNS.sub(" ", name).casefold())
    return set(re.findall(r"[a-z0-9+-]+", text)) - {"cpu", "processor", "intel", "amd", "with"}


def is_cpu(ordered: str, delivered: str) -> bool:
    words = cpu_words(ordered)
    return bool(words) and words <= cpu_words(delivered)


# --- network cards


def nic_name(pci_id: str) -> str:
    """The name of a card by its PCI id, empty when it is not known."""
    return NIC_NAMES.get(pci_id.lower(), "")


def nic_ids(model: str) -> set[str]:
    """The PCI ids of a card by its model; of two names that fit ("ConnectX-6", "ConnectX-6 Dx") the longer."""
    text = " %s " % re.sub(r"[^a-z0-9-]+", " ", model.casefold())
    fitting = [name for name in NIC_NAMES.values() if " %s " % name.casefold() in text]
    longest = max(fitting, key=len, default="")
    return {pci_id for pci_id, name in NIC_NAMES.items() if name == longest}


# --- versions


def is_at_least(have: str, least: str) -> bool | None:
    """Whether a version is as new as another; None where the two cannot be compared.

    Numbers are compared as numbers, words have to be the same, and a letter after a number is newer than none
    (Supermicro's 1.6a follows 1.6).
    """
    mine, other = (_version_parts(text) for text in (have, least))
    if not mine or not other:
        return None
    for at, (one, two) in enumerate(zip(mine, other, strict=False)):
        if one.isdigit() and two.isdigit():
            if int(one) != int(two):
                return int(one) > int(two)
        elif one != two:
            # The first word is the family: U54 and T24 are BIOSes of different machines.
            is_letter = one.isalpha() and two.isalpha() and len(one) == len(two) == 1 and at > 0
            return one > two if is_letter else None
    return len(mine) >= len(other)


def _version_parts(text: str) -> list[str]:
    # NICs add their board in brackets: 28.39.1002 (MT_0000000838).
    text = re.sub(r"\(.*?\)", " ", text).casefold()
    return re.findall(r"[0-9]+|[a-z]+", re.sub(r"^\s*v(?:er(?:sion)?)?[. ]*(?=[0-9])", "", text))


def is_vbios_at_least(have: str, least: str) -> bool | None:
    """The same for VBIOS versions: five hexadecimal fields, of which the first two are the chip's."""
    if not re.fullmatch(r"[0-9A-Fa-f]{2}(?:\.[0-9A-Fa-f]{2}){4}", have):
        return None
    mine, other = ([int(field, 16) for field in text.split(".")] for text in (have, least))
    return mine >= other if mine[:1] == other[:1] else None


def iso_date(text: str) -> str:
    """A date of the firmware (08/25/2025) as 2025-08-25; empty for anything else."""
    found = re.fullmatch(r"([0-9]{2})/([0-9]{2})/([0-9]{4})", text.strip())
    if found:
        return "%s-%s-%s" % (found[3], found[1], found[2])
    return text.strip() if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text.strip()) else ""
