# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""GPUs: ordered against delivered, with the real part named by its PCI id.

Two sources say what a GPU is: its PCI id, and the name that nvidia-smi prints.  Where they contradict each
other both are named, and neither is believed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from ..module_utils._tables.gpus import Gpu, all_by_pci_id, memory_fits
from ..module_utils._tables.rows import is_verified
from .order import Gpus
from .order_lines import (
    NOT_SEEN,
    TOLERANCE,
    Device,
    Judged,
    Line,
    Row,
    at_least,
    count_line,
    counted,
    devices,
    figure,
    following,
    line_of,
    memory_words,
    mib_words,
    not_below,
    number,
    part,
    rows,
    shared_out,
    size,
    text,
    titles,
)
from .order_parts import (
    gpu_by_id,
    gpu_by_name,
    gpu_of_order,
    gpu_words,
    is_vbios_at_least,
    nearest_gpu,
    same_gpu_name,
    short_gpu_name,
)

SMI = "nvidia-smi"
# An order rounds as makers do: T4 is sold as 16 GB and has 15360 MiB, B200 as 192 GB and has 183359.
MAKERS_ROUNDING = 0.10
# What old drivers print for a model that came after them says nothing.
_NO_NAME = re.compile(r"(?:NVIDIA )?Graphics Device|\[?(?:N/A|Unknown.*|ERR!.*)\]?", re.IGNORECASE)


def compare(groups: Sequence[Gpus], hardware: Row) -> list[Line]:
    found = devices(hardware, "gpus", "address", "uuid", "name")
    if found is None:
        shared: list[list[Device]] | None = None
        left: list[Device] = []
    else:
        shared, left = shared_out([g.count for g in groups], found, lambda at, row: _fit(groups[at], row))
    lines: list[Line] = []
    names = titles("GPUs", [group.model or group.pci_id or "" for group in groups])
    for at, group in enumerate(groups):
        lines += _group(group, shared[at] if shared is not None else None, hardware, names[at])
    if left:
        words = "%d more than ordered" % len(left) if groups else "no GPU was ordered"
        what = counted(_what(device.row) for device in left)
        labels = tuple(device.label for device in left)
        lines.append(Line("GPUs beyond the order", "none", what, "extra", ("PCI id",), words, "gpus", labels))
    return lines


def _fit(group: Gpus, row: Row) -> int:
    return {"ok": 2, "unknown": 1}.get(model(group, row).verdict, 0)


def _group(group: Gpus, found: list[Device] | None, hardware: Row, title: str) -> list[Line]:
    lines = [count_line(title, group.count, found, "gpus", "PCI and " + SMI)]
    if not found:
        return lines + [
            Line("%s: %s" % (title, item), ordered, "not seen", "unknown", (), "they could not be seen", "gpus")
            for item, ordered in _aspects(group).items()
            if found is None
        ]
    judges = {
        "model": lambda row: model(group, row),
        "memory": lambda row: memory(group, row),
        "NVLinks": lambda row: _links(group, row),
        "NVLink generation": lambda row: _generation(group, row),
        "PCIe generation": lambda row: not_below(
            group.pcie_gen or 0, lambda gen: "Gen%d" % gen, size(row, "max_gen"), "PCIe link, at most"
        ),
        "PCIe lanes": lambda row: _width(group, row),
        "VBIOS": lambda row: _vbios(group, row),
    }
    for item, ordered in _aspects(group).items():
        name = "%s: %s" % (title, item)
        if item in judges:
            judge = following(judges[item], _by_design(group, item))
            lines.append(line_of(name, ordered, found, judge, "gpus"))
        else:
            lines.append(_bridges(name, group, found, hardware))
    return lines


def _aspects(group: Gpus) -> dict[str, str]:
    """What an order says of each GPU, in words."""
    said = {
        "model": group.model or group.pci_id,
        "memory": memory_words(group.memory_mib) if group.memory_mib else None,
        "NVLinks": "%d each" % group.nvlink_links if group.nvlink_links else None,
        "NVLink generation": str(group.nvlink_gen) if group.nvlink_gen else None,
        "bridged pairs": str(group.nvlink_bridged_pairs) if group.nvlink_bridged_pairs is not None else None,
        "PCIe generation": "Gen%d" % group.pcie_gen if group.pcie_gen else None,
        "PCIe lanes": "x%d" % group.pcie_width if group.pcie_width else None,
        "VBIOS": "%s or newer" % group.vbios_min if group.vbios_min else None,
    }
    return {item: words for item, words in said.items() if words is not None}


def _by_design(group: Gpus, item: str) -> Callable[[Row], bool]:
    """Whether a GPU is another model than ordered, of which nothing else is to be expected of this item."""
    rule = _OF_ANOTHER.get(item)
    return lambda row: rule is not None and model(group, row).verdict == "different" and rule(group, row)


def _has_its_memory(group: Gpus, row: Row) -> bool:
    have, real = size(row, "memory_mib"), row_of(row)
    return have is not None and (real is None or memory_fits(real, int(have)))


def _has_its_links(group: Gpus, row: Row) -> bool:
    return number(row, "nvlink_active") == number(row, "nvlink_expected")


def _has_its_lanes(group: Gpus, row: Row) -> bool:
    return size(row, "width") == size(row, "max_width")


_OF_ANOTHER: Mapping[str, Callable[[Gpus, Row], bool]] = {
    "memory": _has_its_memory,
    "NVLinks": _has_its_links,
    "NVLink generation": lambda _group, _row: True,
    "PCIe generation": lambda _group, _row: True,
    "PCIe lanes": _has_its_lanes,
    "VBIOS": lambda _group, _row: True,
}


# --- which model it is


def model(group: Gpus, row: Row) -> Judged:
    """Whether a GPU is the ordered model."""
    pci_id, name = text(row, "pci_id").lower(), printed_name(row)
    evidence = tuple(["PCI id %s" % pci_id] * bool(pci_id) + ["%s: %s" % (SMI, name)] * bool(name))
    real = row_of(row)
    shown = short_gpu_name(real) if real else name or pci_id or "not seen"
    doubt = contradiction(row)
    if doubt:
        return Judged("different", shown, doubt, evidence)
    if not pci_id and not name:
        return NOT_SEEN
    wanted = gpu_of_order(group.model) or (gpu_by_id(group.pci_id) if group.pci_id else None)
    if group.pci_id or wanted:
        return _by_id(group, wanted, real, pci_id, name, Judged("ok", shown, "", evidence))
    # The catalogue does not know what was ordered: its name is all there is to go by.
    if real is not None:
        return Judged("different", shown, _real_part(group, None, real, pci_id), evidence)
    near = nearest_gpu(group.model or "")
    unknown_model = "the catalogue knows no %s%s" % (group.model, " (nearest: %s)" % near if near else "")
    if name and same_gpu_name(name, group.model or ""):
        return Judged("ok", shown, unknown_model + "; it has the name that was ordered", evidence)
    words = "%s; delivered is %s" % (unknown_model, name or "a part that is not in the catalogue either")
    return Judged("different" if name else "unknown", shown, words, evidence)


def _by_id(group: Gpus, wanted: Gpu | None, real: Gpu | None, pci_id: str, name: str, good: Judged) -> Judged:
    wanted_id = group.pci_id.lower() if group.pci_id else wanted.pci_id if wanted else ""
    if pci_id == wanted_id and (real is None or wanted is None or real.name == wanted.name):
        products = all_by_pci_id(pci_id)
        if real is None and len(products) > 1 and wanted is not None:
            words = "PCI id %s is %s, and nothing else tells which" % (
                pci_id,
                " or ".join(gpu.name for gpu in products),
            )
            return good._replace(verdict="unknown", words=words)
        return good
    is_named_so = bool(name and wanted and same_gpu_name(name, wanted.name))
    if real is not None and (pci_id or not is_named_so):
        return good._replace(verdict="different", words=_real_part(group, wanted, real, pci_id))
    if pci_id:
        words = "ordered is PCI id %s, and the catalogue does not know %s" % (wanted_id, pci_id)
        if is_named_so:
            return good._replace(verdict="unknown", words="%s; only %s calls it %s" % (words, SMI, name))
        return good._replace(verdict="different", words=words)
    return good._replace(verdict="unknown", words="only %s says so: its PCI id was not seen" % SMI)


def printed_name(row: Row) -> str:
    """The name that nvidia-smi prints, empty when that says nothing."""
    name = text(row, "name")
    return "" if _NO_NAME.fullmatch(name) else name


def row_of(row: Row) -> Gpu | None:
    """The row of the catalogue that a GPU is, by its PCI id; the name decides where one id is two products."""
    pci_id, name = text(row, "pci_id"), printed_name(row)
    if not pci_id:
        return gpu_by_name(name) if name else None
    found = gpu_by_id(pci_id, text(row, "subsystem_id"))
    if found is None and name:
        found = next((gpu for gpu in all_by_pci_id(pci_id) if same_gpu_name(gpu.name, name)), None)
    return found


def contradiction(row: Row) -> str:
    """What is wrong when PCI id and name are two different parts; empty when they are not."""
    pci_id, name = text(row, "pci_id").lower(), printed_name(row)
    by_id = gpu_by_id(pci_id, text(row, "subsystem_id")) if pci_id else None
    if not by_id or not name or same_gpu_name(by_id.name, name):
        return ""
    by_name = gpu_by_name(name)
    if by_name is not None and by_name.pci_id == by_id.pci_id:
        return ""
    # A shorter name of the same part (H100) contradicts nothing.
    if by_name is None and gpu_words(name) <= gpu_words(by_id.name):
        return ""
    return "%s calls it %s, but its PCI id %s is %s: neither is believed" % (SMI, name, pci_id, by_id.name)


def _real_part(group: Gpus, wanted: Gpu | None, real: Gpu, pci_id: str) -> str:
    """``ordered H100 SXM 80 GB; PCI id says A800-SXM4-80GB: 8 of 12 links, memory equal``"""
    facts = []
    if real.nvlink:
        facts.append("%d of %d links" % (real.nvlink.links, real.nvlink.links_on_chip))
    elif group.nvlink_links or (wanted and wanted.nvlink):
        facts.append("no NVLink")
    ordered_mib = group.memory_mib or (wanted.memory_mib if wanted else None)
    if ordered_mib:
        is_equal = memory_fits(real, int(ordered_mib))
        less = "memory %s of %s" % (memory_words(real.memory_mib), memory_words(ordered_mib))
        facts.append("memory equal" if is_equal else less)
    if wanted and wanted.architecture != real.architecture:
        facts.append("%s, not %s" % (real.architecture, wanted.architecture))
    if real.gpu_class != "datacenter" and (wanted is None or wanted.gpu_class != real.gpu_class):
        facts.append("a %s card" % real.gpu_class)
    ordered = group.model or "%s%s" % (group.pci_id, " (%s)" % short_gpu_name(wanted) if wanted else "")
    source = "PCI id" if pci_id else SMI
    return "ordered %s; %s says %s: %s" % (ordered, source, short_gpu_name(real), ", ".join(facts) or "another part")


# --- what it can do


def memory(group: Gpus, row: Row) -> Judged:
    want, have = group.memory_mib or 0, size(row, "memory_mib")
    judged = at_least(want, mib_words, have, SMI)
    real = row_of(row)
    if model(group, row).verdict == "different" and _has_its_memory(group, row):
        # All that this card has: nothing of it is missing.
        return judged
    if judged.verdict != "short" or have is None or real is None or model(group, row).verdict != "ok":
        return judged if judged.verdict != "short" else judged._replace(words=judged.words + _SHORT_MEMORY)
    nominal = max(real.memory_mib, *real.memory_alternates_mib, 0)
    if not memory_fits(real, int(have)) or abs(want - nominal) > want * MAKERS_ROUNDING:
        return judged._replace(words=judged.words + _SHORT_MEMORY)
    words = "this is all that %s shows: the order rounds as makers do, or ECC takes its share" % short_gpu_name(real)
    if not is_verified(real, "memory_mib"):
        return judged._replace(verdict="unknown", words=words + " (a figure without a public source)")
    return judged._replace(verdict="ok", words=words)


_SHORT_MEMORY = "; drivers keep back at most %d, so look at ECC, retired pages, remapped rows and MIG" % (
    100 * TOLERANCE
)


def _links(group: Gpus, row: Row) -> Judged:
    want, have, by_design = group.nvlink_links or 0, number(row, "nvlink_active"), number(row, "nvlink_expected")
    if have is not None and have > want:
        return Judged("extra", figure(have), "more than ordered", (SMI + " nvlink",))
    why = "%d of %d are active" % (have or 0, want)
    if have is not None and have == by_design:
        why += ": this model has no more"
    return not_below(want, figure, have, SMI + " nvlink", why)


def _generation(group: Gpus, row: Row) -> Judged:
    real, want = row_of(row), group.nvlink_gen or 0
    if real is None:
        return NOT_SEEN._replace(words="the catalogue does not know this part")
    source = "catalogue, by PCI id" if text(row, "pci_id") else "catalogue, by name"
    if real.nvlink is None:
        return Judged("short", "no NVLink", "%s has no NVLink" % short_gpu_name(real), (source,))
    why = "%s has generation %d" % (short_gpu_name(real), real.nvlink.gen)
    return not_below(want, figure, real.nvlink.gen, source, why)


def _width(group: Gpus, row: Row) -> Judged:
    want, most = group.pcie_width or 0, size(row, "max_width")
    why = "the card itself has no more"
    if most is None or most >= want:
        why = "the card could do x%d: reseat it, look at riser, slot and bifurcation" % (most or want)
    return not_below(want, lambda width: "x%d" % width, size(row, "width"), "PCIe link", why)


def _vbios(group: Gpus, row: Row) -> Judged:
    have, want = text(row, "vbios"), group.vbios_min or ""
    if not have:
        return NOT_SEEN._replace(evidence=(SMI,))
    is_new = is_vbios_at_least(have, want)
    if is_new is None:
        return Judged("unknown", have, "it is of another chip than %s: the two cannot be compared" % want, (SMI,))
    return Judged("ok", have, "", (SMI,)) if is_new else Judged("short", have, "older than ordered", (SMI,))


def _bridges(item: str, group: Gpus, found: Sequence[Device], hardware: Row) -> Line:
    want = group.nvlink_bridged_pairs or 0
    pairs = rows(part(hardware, "nvlink"), "pairs")
    source = (SMI + " topo -m",)
    if pairs is None:
        return Line(item, str(want), "not seen", "unknown", source, "how the GPUs are joined could not be seen", "gpus")
    addresses = {text(device.row, "address") for device in found}
    joined = {
        frozenset((text(row, "a"), text(row, "b")))
        for row in pairs
        if text(row, "type").startswith("NV") and {text(row, "a"), text(row, "b")} <= addresses
    }
    verdict = "ok" if len(joined) == want else "short" if len(joined) < want else "extra"
    words = "%d of %d pairs are joined: bridges are missing or not seated" % (len(joined), want)
    return Line(item, str(want), str(len(joined)), verdict, source, words if verdict == "short" else "", "gpus")


def _what(row: Row) -> str:
    real = row_of(row)
    return short_gpu_name(real) if real else printed_name(row) or text(row, "pci_id") or "a GPU that says nothing"
