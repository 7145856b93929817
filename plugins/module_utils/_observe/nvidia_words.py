# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Single words of nvidia-smi as values: numbers with units, modes, addresses, and its kinds of silence."""

from __future__ import annotations

import re
from typing import Dict, Optional, Tuple

from .._engine.values import Unknown
from . import tool_text
from .nvidia_values import ABSENT, Flag, LostGpu, Number, Real, Word

# What stands in the place of a value, in lower case and without brackets, by how it begins
# (seen in -q, -q -x, --query-gpu and the default table from R340 to R615).
_SILENCE: Tuple[Tuple[str, Tuple[str, ...]], ...] = (
    (
        "error",
        (
            "err!",
            "unknown error",
            "gpu requires reset",
            "requires reset",
            "reset required",
            "gpu is lost",
            "error",
            "lost",
        ),
    ),
    (
        "not applicable",
        ("n/a", "not supported", "not available", "requested functionality", "deprecated", "function not found"),
    ),
    ("not permitted", ("insufficient permissions", "no permission")),
    ("not there", ("not found",)),
    ("not understood", ("unknown", "invalid argument", "uninitialized", "undefined", "insufficient size")),
)
_NUMBER = re.compile(r"([-+]?\d{1,18})(?:\.\d{1,18})?\s*(x|%|[A-Za-z/]{1,6}(?:\(s\))?)?", re.ASCII)
_REAL = re.compile(r"([-+]?\d{1,15}(?:\.\d{1,15})?)\s*(?:%|[A-Za-z/]{1,6})?", re.ASCII)
_ADDRESS = re.compile(r"(?:([0-9a-f]{1,8}):)?([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])", re.ASCII | re.IGNORECASE)
_PCI_ID = re.compile(r"(?:0x)?([0-9a-f]{4})([0-9a-f]{4})", re.ASCII | re.IGNORECASE)
_MODES = {"on": "Enabled", "off": "Disabled", "enabled": "Enabled", "disabled": "Disabled"}
_FLAGS = {
    "yes": True, "no": False, "active": True, "not active": False, "true": True, "false": False,
    "enabled": True, "disabled": False,
}  # fmt: skip
_KIB = {"kib": 1 / 1024, "kb": 1 / 1024, "mib": 1.0, "mb": 1.0, "gib": 1024.0, "gb": 1024.0, "tib": 1048576.0}
# "Unable to determine the device handle for GPU3: 0000:04:00.0: Unknown Error", with or without the number.
_LOST = re.compile(
    r"unable to (?:determine|detect) the device handle for gpu\s{0,3}(\d{1,4}\b(?!:[0-9a-f]{2}:))?[\s:]{0,4}"
    r"([0-9a-f]{1,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])?[\s:]{0,4}(.{0,200})",
    re.ASCII | re.IGNORECASE,
)
# A line that is a complaint whatever form the output has.
_COMPLAINT = re.compile(
    r"(unable to |failed to |nvidia-smi has failed|no devices were|warning|error\b|unknown error|killed|terminated|"
    r"timeout|segmentation fault|couldn't |could not |field \"|make sure |please also try |gpu is lost|"
    r"nvml library version|.{0,40}inforom is corrupted|.{0,60}command not found|not recognized as)",
    re.IGNORECASE,
)
# Colours, titles, and what `tput sgr0` adds.
_ESCAPES = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]|\x1b\][^\x07\x1b]{0,200}\x07?|\x1b\([A-Z0-9]|\x0f")
# What pdsh, clush and the like put in front of each line.
_HOST = re.compile(r"[A-Za-z0-9][\w.-]{0,63}:")


def silence(raw: str) -> Optional[Unknown]:
    """Unknown with its kind when a cell holds no value, else None."""
    said = raw.strip().strip("[]").strip()
    if not said:
        return ABSENT
    low = said.lower()
    for kind, beginnings in _SILENCE:
        if low.startswith(beginnings):
            return Unknown("%s: %s" % (kind, said[:80]))
    return Unknown("not applicable: -") if said == "-" else None


def number(raw: str) -> Number:
    """``8``, ``16x``, ``38 %``, ``-8 C``, ``2560 bank(s)``."""
    found = _NUMBER.fullmatch(raw.strip())
    return int(found.group(1)) if found else no_value(raw)


def mebibytes(raw: str) -> Number:
    """``81559 MiB``; drivers before R346 write MB and mean the same."""
    found = _NUMBER.fullmatch(raw.strip())
    if not found:
        return no_value(raw)
    factor = _KIB.get((found.group(2) or "mib").lower())
    return int(int(found.group(1)) * factor) if factor else not_understood(raw)


def real(raw: str) -> Real:
    """``67.74 W``."""
    found = _REAL.fullmatch(raw.strip())
    return float(found.group(1)) if found else no_value(raw)


def word(raw: str) -> Word:
    """Anything that is not one of the silences; ``None`` is a word (no virtualisation, no action)."""
    silent = silence(raw)
    return " ".join(raw.split())[:200] if silent is None else silent


def mode(raw: str) -> Word:
    """``Enabled`` or ``Disabled``, also for the table's On and Off; any other word as it is."""
    return _MODES.get(raw.strip().lower()) or word(raw)


def flag(raw: str) -> Flag:
    said = _FLAGS.get(raw.strip().lower())
    return said if said is not None else no_value(raw)


def address(raw: str) -> Word:
    """``00000000:19:00.0`` as sysfs has it: ``0000:19:00.0``."""
    found = _ADDRESS.fullmatch(raw.strip())
    if not found:
        return no_value(raw)
    domain, bus, device, function = found.groups()
    return "%04x:%s:%s.%s" % (int(domain or "0", 16), bus.lower(), device.lower(), function)


def pci_id(raw: str) -> Word:
    """``0x233010DE`` (device, then vendor) as ``10de:2330``."""
    found = _PCI_ID.fullmatch(raw.strip())
    return "%s:%s" % (found.group(2).lower(), found.group(1).lower()) if found else no_value(raw)


def version(raw: str) -> Word:
    """The first word alone: R610 glues a note behind it, or has a note in its place."""
    said = raw.strip().split(" ")[0]
    return said if re.fullmatch(r"\d{1,4}(\.\d{1,4}){1,3}", said, re.ASCII) else no_value(raw)


def no_value(raw: str) -> Unknown:
    """Why a cell has no value of the kind that belongs there."""
    silent = silence(raw)
    return not_understood(raw) if silent is None else silent


def not_understood(raw: str) -> Unknown:
    return Unknown("not understood: %r" % raw.strip()[:40])


def is_complaint(line: str) -> bool:
    return _COMPLAINT.match(line.strip()) is not None


def complaints_of(text: str) -> Tuple[str, ...]:
    """The lines that complain, each once."""
    found = (" ".join(line.split())[:300] for line in text.split("\n") if is_complaint(line))
    return tuple(dict.fromkeys(found))[:100]


def lost_gpus(complaints: Tuple[str, ...]) -> Tuple[LostGpu, ...]:
    """The GPUs that complaints name as not answering, each once."""
    lost: Dict[Tuple[Word, Number], LostGpu] = {}
    for line in complaints:
        found = _LOST.search(line)
        if found:
            where = address(found.group(2) or "")
            which: Number = int(found.group(1)) if found.group(1) else ABSENT
            lost.setdefault((where, which), LostGpu(where, which, "error: %s" % found.group(3).strip()))
    return tuple(lost.values())


def plain(text: str) -> str:
    """Without colours and byte order mark; nvidia-smi of Windows ends its lines with CR LF."""
    return _ESCAPES.sub("", text).lstrip("\ufeff").replace("\xa0", " ").replace("\r\n", "\n").replace("\r", "\n")


def clean(text: str) -> str:
    """As it was printed: also without what stands in front of its lines where somebody passed it on."""
    return _without_host(tool_text.clean(plain(text)))


def _without_host(text: str) -> str:
    """Only where all lines are of one host: those of several would become one machine."""
    host = _HOST.match(text.lstrip()[:80])
    rows = [line for line in text.split("\n") if line.strip()] if host else []
    if not host or len(rows) < 3 or not all(line.startswith(host.group()) for line in rows):
        return text
    return "\n".join(re.sub("^ ", "", line[host.end() :]) for line in rows)
