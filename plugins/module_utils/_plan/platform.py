# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The area platform: what no host can be, all judges together, and which findings the operator has accepted."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from difflib import SequenceMatcher
from typing import Any, Dict, List, Mapping

from .._engine.values import BadWant, Finding, Unknown
from .._tables import gpus as catalogue
from . import (
    platform_bios,
    platform_disks,
    platform_driver,
    platform_fabric,
    platform_gpus,
    platform_health,
    platform_ids,
    platform_libraries,
    platform_links,
    platform_locality,
    platform_log,
    platform_memory,
    platform_nvlink,
    platform_packages,
    platform_power,
    platform_rdma,
    platform_steps,
    platform_topo,
)
from .platform_common import cards, tables_of

Want = Mapping[str, Any]
Have = Mapping[str, Any]

JUDGES = (
    platform_gpus, platform_health, platform_log, platform_links, platform_nvlink, platform_topo, platform_fabric,
    platform_driver, platform_packages, platform_libraries, platform_bios, platform_memory, platform_power,
    platform_disks, platform_locality, platform_rdma, platform_steps,
)  # fmt: skip
plan = platform_steps.plan

_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_PCI_ID = re.compile(r"[0-9a-f]{4}:[0-9a-f]{4}")
_HEX = re.compile(r"(?:0[xX])?[0-9a-fA-F]{2,6}")
# What numbers may be: (lowest, highest).
_RANGES = {
    "gpu_count": (0, 64), "temperature_max_c": (30, 120), "numa_nodes_per_socket": (1, 8),
    "idle_latency_max_us": (0, 10000), "memory_gib": (1, 65536), "supplies": (1, 16), "supply_capacity_w": (100, 20000),
    "cpu_tdp_w": (10, 2000), "gpu_power_factor": (1, 5), "cpu_power_factor": (1, 5), "power_reserve_factor": (1, 5),
}  # fmt: skip
# From here on two names are near each other (difflib's ratio).
_ALIKE = 0.5
_READ_REQUESTS = (128, 256, 512, 1024, 2048, 4096)


def check_want(want: Want) -> None:
    """Refuse what no host could satisfy.

    :raises BadWant: naming the option, what was given and what is allowed.
    """
    tables = tables_of(want)
    for name, (low, high) in _RANGES.items():
        value = want[name]
        if value is not None and not low <= value <= high:
            raise BadWant(name, value, "%g to %g" % (low, high))
    size = want["max_read_request_bytes"]
    if size is not None and size not in _READ_REQUESTS:
        raise BadWant("max_read_request_bytes", size, "one of " + ", ".join(map(str, _READ_REQUESTS)))
    model = want["gpu_model"]
    if model and catalogue.by_name(model, tables.gpus) is None:
        raise BadWant(
            "gpu_model", model, "a model of docs/tables.md or of platform_tables.gpus%s" % _near(model, tables)
        )
    for index, row in enumerate(want["links"]):
        _check_link("links[%d]" % index, row, tables)
    for index, row in enumerate(want["gpu_match"]):
        _check_match("gpu_match[%d]" % index, row)
    for index, row in enumerate(want["accepted"]):
        if not platform_ids.is_known(row["id"]):
            raise BadWant("accepted[%d].id" % index, row["id"], platform_ids.allowed(row["id"]))


def judge(want: Want, have: Have) -> List[Finding]:
    findings = [finding for one in JUDGES for finding in one.judge(want, have)]
    return [_accepted(want, finding) for finding in findings]


def adopt(have: Have) -> Dict[str, Any]:
    """What is there, as it would be wanted: number and model of the GPUs, and what the firmware has set."""
    found = cards({"tables": {}}, have)
    names = Counter(card.model.name for card in found if card.model)
    about: Dict[str, Any] = {}
    if not isinstance(have["gpus"], Unknown):
        about["gpu_count"] = len(found)
    if len(names) == 1 and sum(names.values()) == len(found):
        about["gpu_model"] = next(iter(names))
    return {**about, **platform_bios.adopt(have)}


def _accepted(want: Want, finding: Finding) -> Finding:
    """A finding that the operator knows stays in the report, as information.  What blocks a change stays a block."""
    for row in want["accepted"]:
        if row["id"] == finding.id and row.get("subject") in (None, "", finding.subject) and finding.level != "block":
            return replace(finding, level="info", why="%s (accepted: %s)" % (finding.why, row["reason"]))
    return finding


def _check_match(place: str, row: Mapping[str, Any]) -> None:
    """A word that is no number would match nothing, and no GPU be missed."""
    given = {key: str(row[key]) for key in ("vendor", "device", "class") if row.get(key)}
    if not given:
        raise BadWant(place, row, "at least one of vendor, device and class")
    for key, word in given.items():
        if not _HEX.fullmatch(word):
            raise BadWant("%s.%s" % (place, key), word, "hexadecimal digits as lspci -nn shows them: 10de, 2330, 0302")


def _check_link(place: str, row: Mapping[str, Any], tables: Any) -> None:
    name = row["device"]
    if not (
        _ADDRESS.fullmatch(name.lower()) or _PCI_ID.fullmatch(name.lower()) or catalogue.by_name(name, tables.gpus)
    ):
        allowed = "a PCI address (0000:41:00.0), a PCI id (10de:1eb8) or a model of docs/tables.md%s" % _near(
            name, tables
        )
        raise BadWant(place + ".device", name, allowed)
    if row.get("width") not in (None, 1, 2, 4, 8, 16):
        raise BadWant(place + ".width", row["width"], "1, 2, 4, 8 or 16 lanes")
    if row.get("gen") is not None and not 1 <= row["gen"] <= 6:
        raise BadWant(place + ".gen", row["gen"], "1 to 6")
    if row.get("width") is None and row.get("gen") is None:
        raise BadWant(place, dict(row), "width, gen or both")


def _near(name: str, tables: Any) -> str:
    """The models whose names have most words in common with a name, and then most letters."""
    given = catalogue.plain_name(name).replace("-", " ")
    scores: Dict[str, float] = {}
    for row in tables.gpus:
        plain = catalogue.plain_name(row.name).replace("-", " ")
        shared = len(set(given.split()) & set(plain.split()))
        alike = SequenceMatcher(None, given, plain).ratio()
        if shared or alike >= _ALIKE:
            scores[row.name] = shared + alike
    near = sorted(scores, key=lambda found: -scores[found])[:3]
    return "; nearest: %s" % ", ".join(near) if near else ""
