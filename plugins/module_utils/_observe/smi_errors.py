# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What nvidia-smi and modprobe say when the driver does not work: which part of it, and which GPU."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Optional, Tuple

from .._engine.values import Text, Unknown
from .nvidia_values import LostGpu, Word
from .nvidia_words import clean, lost_gpus

# By a part of the text in lower case, the most telling first.
_KINDS = (
    ("driver/library version mismatch", "mismatch"),
    ("key was rejected by service", "key rejected"),
    ("required key not available", "key rejected"),
    ("couldn't communicate with the nvidia driver", "no driver"),
    ("could not communicate with the nvidia driver", "no driver"),
    ("module nvidia not found", "no driver"),
    ("driver is not loaded", "no driver"),
    ("driver not loaded", "no driver"),
    ("libnvidia-ml.so", "no library"),
    ("nvml_library_not_found", "no library"),
    ("unable to determine the device handle", "lost gpu"),
    ("gpu is lost", "lost gpu"),
    ("no devices were found", "no gpu"),
    ("no devices found", "no gpu"),
    ("insufficient permissions", "no permission"),
    ("gpu access blocked by the operating system", "no permission"),
    ("failed to initialize nvml", "no answer"),
    ("command not found", "no tool"),
    ("command 'nvidia-smi' not found", "no tool"),
    ("nvidia-smi: not found", "no tool"),
    ("nvidia-smi: no such file", "no tool"),
    ("is not recognized as", "no tool"),
)
_LIBRARY = re.compile(r"NVML library version: (\d[\d.]{1,20}\d)", re.ASCII)
_MODULE = re.compile(
    r"could not insert '([\w-]{1,60})'|Failed to insert module '([\w-]{1,60})'|FATAL: Module ([\w-]{1,60}) not found"
)


@dataclass(frozen=True)
class SmiError:
    """``kind``: mismatch (of library and module), no driver, no library, key rejected (Secure Boot), lost gpu, no gpu,
    no permission, no answer (NVML does not start, as in a container that lost its devices) or no tool.

    ``library_version`` is NVML's, which may lack the third number; ``module`` is what modprobe failed on.
    """

    kind: str
    text: str
    library_version: Word
    module: Word
    lost: Tuple[LostGpu, ...]


def parse_smi_error(text: Text) -> Optional[SmiError]:
    """The complaint in an output (of any of its streams); None when there is none that is known."""
    if not isinstance(text, str):
        return None
    rows = [line.strip()[:500] for line in clean(text).split("\n") if line.strip()]
    low = [row.lower() for row in rows]
    found = [(kind, rows[place]) for part, kind in _KINDS for place, row in enumerate(low) if part in row]
    if not found:
        return None
    library = next((match for match in map(_LIBRARY.search, rows) if match), None)
    module = next((match for match in map(_MODULE.search, rows) if match), None)
    kind, said = found[0]
    return SmiError(
        kind,
        said,
        library.group(1) if library else Unknown("not there: NVML does not tell its version"),
        next(word for word in module.groups() if word) if module else Unknown("not there: no module is named"),
        lost_gpus(tuple(rows)),
    )
