# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""PCIe links in a drawing: their words, and what the findings of the host say about them.

The drawing judges nothing that a finding judges.  Only where no area looked at links (an older
report) it says itself which of them are narrower than their card and slot.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from .fleet_report import in_words, unknown_reason

# The area that judges links, and how the ids of its findings about them start.
AREA, LINK, NVLINK = "platform", "platform.link", "platform.nvlink"

# Transfer rate of each generation (PCI Express base specification).
GENERATIONS = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6}
RATES = {generation: rate for rate, generation in GENERATIONS.items()}

# A verdict is shown with the icon and colour of a state, and always with a word.
WORDS = {"compliant": "ok", "none": "not judged", "unknown": "unknown", "drifted": "warning", "failed": "fault"}
ORDER = ("none", "compliant", "unknown", "drifted", "failed")
_STATE_OF = {"info": "compliant", "warn": "drifted", "fail": "failed", "block": "failed"}

MAX_NOTES, MAX_NOTE, MAX_SUBJECTS = 4, 140, 64

# Words of stable names as people spell them.
SPELT = {
    **{
        word: word.upper() for word in ("acs", "aer", "bar", "bar1", "bios", "bmc", "cpu", "cuda", "dimm", "ecc", "ecn")
    },
    **{
        word: word.upper()
        for word in ("dkms", "gid", "gpu", "gsp", "iommu", "mig", "mtu", "nccl", "nic", "numa", "pci", "pfc")
    },
    **{word: word.upper() for word in ("psu", "rdma", "smt", "uefi", "vbios", "xid")},
    **{word: word[:-1].upper() + "s" for word in ("dimms", "gpus", "nics", "psus", "xids")},
    "cudnn": "cuDNN",
    "nvlink": "NVLink",
    "nvme": "NVMe",
    "nvswitch": "NVSwitch",
    "pcie": "PCIe",
    "sriov": "SR-IOV",
}

_ADDRESS = re.compile(r"([0-9a-f]{4,8}):([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])")


@dataclass(frozen=True)
class Mark:
    """A line of a drawing with the icon of a state."""

    state: str
    words: str


@dataclass(frozen=True)
class Verdict:
    """What is known of a link: a state, its word, and what there is to say about it."""

    state: str
    notes: Tuple[Mark, ...] = ()

    @property
    def word(self) -> str:
        return WORDS[self.state]


@dataclass(frozen=True)
class Judgements:
    """The findings of a host by what they are about, and whether an area judged its links at all."""

    about: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    is_judged: bool = False


def judgements(areas: Mapping[str, Any]) -> Judgements:
    """The findings of all areas, by what they are about; addresses as the kernel writes them."""
    about: Dict[str, List[Mapping[str, Any]]] = {}
    for area in areas.values():
        for row in area.get("findings") or () if isinstance(area, Mapping) else ():
            for name in subjects_of(row.get("subject")):
                about.setdefault(name, []).append(row)
    return Judgements(about, AREA in areas)


def subjects_of(text: Any) -> List[str]:
    """The names in a subject: of ``0000:19:00.0, 0000:3b:00.0`` both, of ``nvme0n1 scheduler`` the disk, too."""
    parts = text.split(", ")[:MAX_SUBJECTS] if isinstance(text, str) else []
    names = [name for part in parts for name in (part, part.partition(" ")[0])]
    return list(dict.fromkeys(address_of(name) for name in names))


def address_of(text: Any) -> str:
    """A PCI address as the kernel writes it; nvidia-smi has capitals and a domain of eight digits."""
    return _address(text) if isinstance(text, str) else ""


# A host has some fifty, and each of its tools, findings and disks names them again.
@functools.lru_cache(maxsize=4096)
def _address(text: str) -> str:
    word = text.strip()
    match = _ADDRESS.fullmatch(word.lower())
    return "%04x:%s:%s.%s" % (int(match[1], 16), match[2], match[3], match[4]) if match else word


def number(value: Any) -> Optional[int]:
    """A number that is known, not a truth value, and not -1, which is sysfs for "not known"."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53 else None


def rate(value: Any) -> Optional[float]:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < 1e6 else None


def link_of(device: Mapping[str, Any], gpu: Mapping[str, Any]) -> Dict[str, Any]:
    """The link that the kernel tells of a device; where it does not, what nvidia-smi tells of the GPU."""
    link = device.get("link")
    known = dict(link) if isinstance(link, Mapping) and unknown_reason(link) is None else {}
    told = {
        "width": number(gpu.get("width")),
        "max_width": number(gpu.get("max_width")),
        "speed_gts": RATES.get(number(gpu.get("gen")) or 0),
        "max_speed_gts": RATES.get(number(gpu.get("max_gen")) or 0),
    }
    return {**known, **{key: value for key, value in told.items() if value and known.get(key) is None}}


def words(link: Mapping[str, Any]) -> str:
    """Width and speed of a link."""
    width, speed = number(link.get("width")) or None, rate(link.get("speed_gts"))
    if width is None and speed is None:
        return "link unknown"
    width_words = "x%d" % width if width else "width unknown"
    if speed is None:
        return width_words + " · speed unknown"
    generation = GENERATIONS.get(speed)
    speed_words = "%g GT/s" % speed + (" (Gen%d)" % generation if generation else "")
    most = [n for n in (rate(link.get("max_speed_gts")), rate(link.get("slot_speed_gts"))) if n]
    if most and speed < min(most):
        speed_words += " of %g" % min(most)
    return "%s · %s" % (width_words, speed_words)


def lanes(link: Mapping[str, Any]) -> Tuple[int, int]:
    """Lanes in use, and how many card or slot have, as far as they can be drawn."""
    most = max(number(link.get(key)) or 0 for key in ("width", "max_width", "slot_width"))
    return min(number(link.get("width")) or 0, 16), min(most, 16)


def own_note(kind: str, link: Mapping[str, Any]) -> Optional[Mark]:
    """What stands out about a link's width.  Its speed does not: idle links slow down by design."""
    width, card, slot = (number(link.get(key)) or None for key in ("width", "max_width", "slot_width"))
    if width is None:
        return None
    if card and slot and width < min(card, slot):
        return Mark("drifted", "runs x%d: card x%d, slot x%d" % (width, card, slot))
    if card and not slot and width < card:
        return Mark("drifted", "runs x%d, the card has x%d" % (width, card))
    if card and slot and slot < card:
        return Mark("drifted", "x%d card in a x%d slot" % (card, slot))
    if card and slot and card < slot and kind == "gpu":
        return Mark("info", "x%d card in a x%d slot" % (card, slot))
    return None


def verdict(kind: str, address: str, link: Mapping[str, Any], judged: Judgements) -> Verdict:
    """The verdict on a device's link: its worst finding; without any, whether it was seen."""
    rows = [row for row in judged.about.get(address, ()) if row["id"].startswith(LINK)]
    own = own_note(kind, link)
    if rows:
        return _from_findings(rows)
    if number(link.get("width")) is None or rate(link.get("speed_gts")) is None:
        return Verdict("unknown", (own,) if own and not judged.is_judged else ())
    if judged.is_judged:
        # By design, or the area would have found it.
        return Verdict("compliant", (Mark("info", own.words),) if own else ())
    if own and own.state == "drifted":
        return Verdict("drifted", (own,))
    return Verdict("none", (own,) if own else ())


def nvlink_matters(address: str, judged: Judgements) -> List[str]:
    """What findings say of the NVLinks of a GPU, each in a word or two."""
    rows = [row for row in judged.about.get(address, ()) if row["id"].startswith(NVLINK)]
    words = [subject_matter(row["id"]) for row in rows]
    return list(dict.fromkeys(word[len("NVLink ") :] if word.startswith("NVLink ") else word for word in words))


def nvlink_verdict(address: str, active: Optional[int], judged: Judgements) -> Verdict:
    """The same for the NVLinks of a GPU."""
    rows = [row for row in judged.about.get(address, ()) if row["id"].startswith(NVLINK)]
    if rows:
        return _from_findings(rows)
    if active is None:
        return Verdict("unknown")
    return Verdict("compliant" if judged.is_judged else "none")


def _from_findings(rows: Sequence[Mapping[str, Any]]) -> Verdict:
    rows = sorted(rows, key=lambda row: -ORDER.index(state_of(row)))
    return Verdict(state_of(rows[0]), tuple(_said(row) for row in rows[:MAX_NOTES]))


def state_of(finding: Mapping[str, Any]) -> str:
    """The state that a finding puts its subject into."""
    if finding["level"] != "info" and unknown_reason(finding["observed"]) is not None:
        return "unknown"
    return _STATE_OF[finding["level"]]


def _said(finding: Mapping[str, Any]) -> Mark:
    reason = unknown_reason(finding["observed"])
    text = in_words(finding["observed"])
    if reason is not None:
        text = reason
    elif finding["level"] != "info":
        text = "%s, expected %s" % (text, in_words(finding["expected"]))
    state = "info" if finding["level"] == "info" else state_of(finding)
    return Mark(state, clip("%s: %s" % (subject_matter(finding["id"]), text)))


def other_marks(names: Sequence[str], judged: Judgements) -> Tuple[Mark, ...]:
    """What else is wrong with a device, by name: its findings tell the rest."""
    rows = [row for name in names if name for row in judged.about.get(name, ())]
    open_rows = [row for row in rows if row["level"] != "info" and not row["id"].startswith((LINK, NVLINK))]
    open_rows.sort(key=lambda row: -ORDER.index(state_of(row)))
    marks = list(dict.fromkeys(Mark(state_of(row), clip(subject_matter(row["id"]))) for row in open_rows))
    if len(marks) > MAX_NOTES:
        marks[MAX_NOTES:] = [Mark("info", "and %d more" % (len(marks) - MAX_NOTES))]
    return tuple(marks)


def subject_matter(name: str) -> str:
    """What a finding is about, from its stable name: ``platform.nvlink-width`` is "NVLink width"."""
    words = re.split("[-_]", name.partition(".")[2])
    return " ".join(SPELT.get(word, word) for word in words) or name


def clip(text: str, limit: int = MAX_NOTE) -> str:
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"
