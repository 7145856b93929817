# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The GPUs of a host as nvidia-smi tells of them: one run of ``nvidia-smi -q -x``.

``observe`` gives a ``nvidia_values.Log`` (its GPUs are ``nvidia_values.Gpu``), or Unknown with one of:

* ``hung: …``                       no answer before the deadline, as of a process in uninterruptible sleep
* ``nvidia-smi is not installed``   the command is missing
* ``error: …``                      its own words, such as that it couldn't communicate with the NVIDIA driver
* ``… was not recorded``            a capture without it
"""

from __future__ import annotations

from dataclasses import replace
from typing import Callable, Optional, Sequence, Tuple, Union

from .._engine.host import Host, Result
from .._engine.values import Unknown
from .nvidia_csv import parse_query_gpu
from .nvidia_table import parse_gpu_list, parse_nvidia_smi_table
from .nvidia_text import parse_nvidia_smi_text
from .nvidia_values import ABSENT, Gpu, Log
from .nvidia_words import clean, complaints_of, lost_gpus
from .nvidia_xml import parse_nvidia_smi_xml
from .nvlink import GpuLinks

QUERY = ("nvidia-smi", "-q", "-x")
# A table with a header, whichever columns were asked for.
CSV = ("nvidia-smi", "--query-gpu", "--format=csv")
# What a capture may hold instead, the one that tells most first.
_RECORDED = (("nvidia-smi", "-x", "-q"), ("nvidia-smi", "-q"), CSV, ("nvidia-smi",), ("nvidia-smi", "-L"))
# Without anything that holds the GPUs open, each of them is brought up for the answer, which takes some seconds a
# GPU; eight of them must fit.  With the persistence daemon they are up already.  Both, together with the two other
# runs of nvidia-smi, stay below what an observation may take (engine.OBSERVE_DEADLINE_S).
DEADLINE_S = 60.0
DEADLINE_PERSISTENT_S = 20.0
_PERSISTENCED = "/run/nvidia-persistenced/socket"
# What timeout(1) and a shell give where a capture was taken with them.
_TIMED_OUT = (124, 137)
_NOT_FOUND = 127


def observe(host: Host) -> Union[Log, Unknown]:
    """What nvidia-smi says, with its complaints; Unknown when it says nothing of any GPU."""
    deadline_s = DEADLINE_PERSISTENT_S if host.exists(_PERSISTENCED) else DEADLINE_S
    result = host.run(QUERY, deadline_s=deadline_s)
    if not host.is_live and result.unknown:
        others = ((argv, host.run(argv, deadline_s=deadline_s)) for argv in _RECORDED)
        argv, result = next((one for one in others if not one[1].unknown), (QUERY, result))
        if argv == CSV:
            return read(result, lambda text: parse_query_gpu(text).log)
    return read(result)


def read(result: Result, parse: Optional[Callable[[str], Log]] = None) -> Union[Log, Unknown]:
    """The result of a run of nvidia-smi, in whichever form; ``parse`` is for one that cannot be told by its text."""
    if result.unknown:
        return Unknown("hung: %s" % result.unknown if "hung" in result.unknown else result.unknown)
    if result.rc in _TIMED_OUT and not result.stdout.strip():
        return Unknown("hung: it was ended with exit status %d before it answered" % result.rc)
    log = (parse or parse_nvidia_smi)(result.stdout)
    complaints = tuple(dict.fromkeys([*complaints_of(result.stdout), *complaints_of(clean(result.stderr))]))
    lost = lost_gpus(complaints)
    if any(line.lower().startswith("no devices were") for line in complaints):
        return replace(log, attached_gpus=0, gpus=(), is_complete=True, complaints=complaints)
    if log.gpus or lost:
        said = tuple(dict.fromkeys([*log.complaints, *complaints]))
        if result.rc != 0:
            said = (*said, "nvidia-smi ended with exit status %d" % result.rc)
        return replace(log, complaints=said, lost=lost, is_complete=False if lost else log.is_complete)
    return _without_gpus(result, complaints)


def named_by_nvlink(links: Union[Sequence[GpuLinks], Unknown], spare: Unknown) -> Union[Log, Unknown]:
    """The GPUs of a capture that holds ``nvidia-smi nvlink`` alone: their names are all that it tells of them."""
    named = () if isinstance(links, Unknown) else [one for one in links if one.name]
    gpus = tuple(Gpu(index=one.index, name=one.name, uuid=one.uuid or ABSENT) for one in named)
    return Log("list", gpus=gpus) if gpus and "not recorded" in spare.reason else spare


def parse_nvidia_smi(text: str) -> Log:
    """Any output of nvidia-smi on all GPUs: XML, text, the table or the list."""
    if any(sign in text for sign in ("<nvidia_smi_log", "<?xml", "<gpu ")):
        return parse_nvidia_smi_xml(text)
    log = parse_nvidia_smi_text(text)
    for other in (parse_nvidia_smi_table(text).log, parse_gpu_list(text)):
        log = other if len(other.gpus) > len(log.gpus) else log
    return log


def _without_gpus(result: Result, complaints: Tuple[str, ...]) -> Unknown:
    words = " ".join(complaints) or " ".join((result.stderr or result.stdout).split())
    if result.rc == _NOT_FOUND or "command not found" in words:
        return Unknown("nvidia-smi is not installed")
    if not words:
        return Unknown("error: it said nothing and ended with exit status %d" % result.rc)
    return Unknown("error: %s" % words[:300])
