# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A GPU made of the rows that a form of nvidia-smi's output was brought to (see ``nvidia_fields``)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

from .._engine.values import Unknown
from .nvidia_fields import CSV, ECC, ECC_BLOCKS, FIELDS, PLACES, TEXT, Reader
from .nvidia_values import ABSENT, EVENT_REASONS, FABRIC_HEALTH, EccCounts, Flag, Gpu, Log, MigDevice, Number, Word
from .nvidia_words import flag, mebibytes, number, silence, word

# No machine has as many; an output that runs wild ends here.
MOST_GPUS = 256
_LICENSE = (
    "vgpu_software_licensed_product/license_status|grid_licensed_product/license_status",
    "vgpu software licensed product/license status|grid licensed product/license status|license status",
    "",
)
_EXPIRY = re.compile(
    r"(.{1,60}?)\s{0,40}\(Expiry:\s{0,40}(?:(\d{4})-(\d{1,2})-(\d{1,2})(?:\s+(\d{1,2}):(\d{1,2}):(\d{1,2}))?[^)]*|([^)]*))\)",
    re.ASCII | re.IGNORECASE,
)
_REASON_BLOCK = re.compile(
    r"clocks[ _](event|throttle)[ _]reasons[/.](?:.*/)?(clocks_(?:event|throttle)_reason_)?([^/]+)"
)
# Labels that stand in several blocks, so they say nothing without theirs.
_COMMON = {
    "current",
    "pending",
    "max",
    "total",
    "used",
    "reserved",
    "graphics",
    "sm",
    "memory",
    "gpu",
    "state",
    "status",
}
# Other names of the reasons for lower clocks, over forms and versions.
_REASON_NAMES = {
    "idle": "gpu_idle",
    "applications_clocks_setting": "applications_clocks",
    "user_defined_clocks": "applications_clocks",
    "hw_power_brake_slowdown": "hw_power_brake",
    "display_clock_setting": "display_clocks",
    "display_clocks_setting": "display_clocks",
}
# The mask of --query-gpu=clocks_event_reasons.active (nvml.h, nvmlClocksEventReason*).
_REASON_BITS = {
    "gpu_idle": 0x1, "applications_clocks": 0x2, "sw_power_cap": 0x4, "hw_slowdown": 0x8, "sync_boost": 0x10,
    "sw_thermal_slowdown": 0x20, "hw_thermal_slowdown": 0x40, "hw_power_brake": 0x80, "display_clocks": 0x100,
}  # fmt: skip


@dataclass
class Section:
    """What a form says of one GPU, as rows."""

    rows: Dict[str, str] = field(default_factory=dict)
    migs: List[Dict[str, str]] = field(default_factory=list)
    processes: int = 0
    is_flat: bool = False


def gpu_of(section: Section, form: int) -> Gpu:
    """The GPU that a section is about."""
    look = Look(section.rows, section.is_flat)
    values: Dict[str, Any] = {
        name: look.value(PLACES[form][name], about[0]) for name, about in FIELDS.items() if PLACES[form][name]
    }
    status, expiry = _license(look.first(_LICENSE[form].split("|")))
    return Gpu(
        **values,
        vgpu_license_status=status,
        vgpu_license_expiry=expiry,
        ecc_volatile=_ecc(look, form, "volatile"),
        ecc_aggregate=_ecc(look, form, "aggregate"),
        event_reasons=_event_reasons(look),
        fabric_health=_fabric_health(look, form),
        processes=_processes(look, section),
        mig_devices=tuple(_mig(mig) for mig in section.migs),
    )


class Look:
    """Cells by their place.  A block that holds one word (``Remapped Rows : N/A``) says it for all below it.

    Rows that lost their levels have at most the last two of them, and often only the last.
    """

    def __init__(self, rows: Mapping[str, str], is_flat: bool = False) -> None:
        self.rows = rows
        self.is_flat = is_flat
        self._ends: Dict[str, str] = {}
        for path, cell in rows.items():
            parts = path.split("/")
            if len(parts) > 2:
                # R610 put a level between: "gpu power readings/gpu ceiling power limit/current power limit".
                self._ends.setdefault(parts[0] + "/" + parts[-1], cell)

    def cell(self, place: str) -> Optional[str]:
        if self.is_flat:
            parts = place.split("/")
            found = self.rows.get("/".join(parts[-2:]))
            return self.rows.get(parts[-1]) if found is None and parts[-1] not in _COMMON else found
        found = self.rows.get(place)
        if found is None and place.count("/") == 1:
            found = self._ends.get(place)
        while found is None and "/" in place:
            place = place.rpartition("/")[0]
            found = self.rows.get(place)
        return found

    def first(self, places: Sequence[str]) -> Optional[str]:
        """The cell of the first place that holds a value, else of the first that is there."""
        cells = [cell for cell in (self.cell(place) for place in places) if cell is not None]
        return next((cell for cell in cells if silence(cell) is None), cells[0] if cells else None)

    def value(self, places: Sequence[str], read: Reader) -> Any:
        cell = self.first(places)
        return ABSENT if cell is None else read(cell)

    def below(self, block: str) -> Iterator[Tuple[str, str]]:
        return ((path, cell) for path, cell in self.rows.items() if path.startswith(block))


def numbered(log: Log, has_end: bool, is_selected: bool) -> Log:
    """A log with ``is_complete`` told, and the index of each GPU where all of them are there."""
    complete: Flag = len(log.gpus) == log.attached_gpus
    if not has_end:
        complete = False
    elif is_selected:
        return replace(log, is_complete=bool(log.gpus))
    elif isinstance(log.attached_gpus, Unknown):
        complete = Unknown("not there: the output does not say how many GPUs are attached")
    gpus = tuple(replace(gpu, index=place) for place, gpu in enumerate(log.gpus)) if complete is True else log.gpus
    return replace(log, is_complete=complete, gpus=gpus)


def _license(cell: Optional[str]) -> Tuple[Word, Word]:
    """``Licensed (Expiry: 2023-1-31 11:32:22 GMT)`` as the word and a date that sorts."""
    if cell is None:
        return ABSENT, ABSENT
    found = _EXPIRY.fullmatch(cell.strip())
    if not found:
        return word(cell), ABSENT
    numbers = found.groups()[1:7]
    if numbers[0] is None:
        return word(found.group(1)), word(found.group(8))
    year, month, day, hour, minute, second = (int(digits or 0) for digits in numbers)
    return word(found.group(1)), "%04d-%02d-%02d %02d:%02d:%02d" % (year, month, day, hour, minute, second)


def _ecc(look: Look, form: int, scope: str) -> EccCounts:
    block = ECC_BLOCKS[form]
    count: Dict[str, Number] = {
        name: look.value([(block + places[form]) % scope], number) for name, places in ECC.items()
    }
    correctable = _or(count["dram correctable"], count["device correctable"])
    uncorrectable = _or(count["dram uncorrectable"], count["device uncorrectable"])
    sram = _or(count["sram uncorrectable"], added(count["sram parity"], count["sram secded"]))
    return EccCounts(
        correctable=_or(count["correctable"], added(count["sram correctable"], correctable)),
        uncorrectable=_or(count["uncorrectable"], added(sram, uncorrectable)),
        sram_correctable=count["sram correctable"],
        sram_uncorrectable=sram,
        dram_correctable=correctable,
        dram_uncorrectable=uncorrectable,
    )


def added(*counts: Number) -> Number:
    """The sum of what is known; an error word among them makes it unknown, since it may hide anything."""
    for count in counts:
        if isinstance(count, Unknown) and not count.reason.startswith(("not there", "not applicable")):
            return count
    known = [count for count in counts if not isinstance(count, Unknown)]
    silent = [count for count in counts if count != ABSENT]
    return sum(known) if known else (silent or [ABSENT])[0]


def _or(count: Number, other: Number) -> Number:
    """The first where it is known or the other tells nothing more."""
    return other if isinstance(count, Unknown) and (count == ABSENT or not isinstance(other, Unknown)) else count


def _event_reasons(look: Look) -> Dict[str, Flag]:
    reasons: Dict[str, Flag] = {}
    block = next((cell for path, cell in look.rows.items() if re.fullmatch(r"clocks[ _]\w+[ _]reasons", path)), None)
    for path, cell in look.below("clocks"):
        found = _REASON_BLOCK.fullmatch(path)
        if found:
            name = found.group(3).replace(" ", "_")
            reasons.setdefault(_REASON_NAMES.get(name, name), flag(cell))
    mask = reasons.pop("active", None)
    reasons.pop("supported", None)
    told = {name: reasons.get(name, flag(block) if block else ABSENT) for name in EVENT_REASONS}
    if mask is not None:
        told.update(_from_mask(look, {name for name, state in told.items() if state == ABSENT}))
    if look.is_flat:
        return told  # where the block ends is not known
    return {**told, **{name: state for name, state in reasons.items() if name not in told}}


def _from_mask(look: Look, missing: Set[str]) -> Dict[str, Flag]:
    raw = look.first(["clocks_event_reasons.active", "clocks_throttle_reasons.active"]) or ""
    if re.fullmatch(r"0x[0-9a-fA-F]{1,16}", raw):
        return {name: bool(int(raw, 16) & _REASON_BITS[name]) for name in missing}
    return {name: flag(raw) for name in missing}


def _fabric_health(look: Look, form: int) -> Dict[str, Word]:
    block = "fabric.health." if form == CSV else "fabric/health/"
    return {
        name: look.value([block + (name.replace("_", " ") if form == TEXT else name)], word) for name in FABRIC_HEALTH
    }


def _processes(look: Look, section: Section) -> Number:
    """How many processes are told.  A block that is empty or says None means none."""
    if section.processes:
        return section.processes
    cell = look.first(["processes", "compute processes", "compute_processes"])
    if cell is None:
        return ABSENT
    return 0 if cell.strip().lower() in ("", "none") else number(cell)


def _mig(rows: Dict[str, str]) -> MigDevice:
    look = Look(rows)
    return MigDevice(
        index=look.value(["index"], number),
        gpu_instance=look.value(["gpu_instance_id", "gpu instance id"], number),
        compute_instance=look.value(["compute_instance_id", "compute instance id"], number),
        memory_total_mib=look.value(
            ["fb_memory_usage/total", "shared fb memory usage/total", "fb memory usage/total"], mebibytes
        ),
    )
