# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NVLink and topology together, with few runs of nvidia-smi: each may take seconds, and hangs with the driver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import List, Sequence, Tuple, Union

from .._engine.host import Host
from .._engine.values import Text, Unknown
from .nvlink import GpuLinks, parse_nvlink
from .topo import Topo, parse_topo

# Seconds; nvidia-smi without persistence initialises each GPU anew for a run.
DEADLINE_S = 20.0

# The first is what we run; captures may hold the others.
_STATUS = (["nvidia-smi", "nvlink", "-s"], ["nvidia-smi", "nvlink", "--status"])
_ERRORS = (["nvidia-smi", "nvlink", "-e"], ["nvidia-smi", "nvlink", "--errorcounters"])
_REMOTE = (["nvidia-smi", "nvlink", "-R"], ["nvidia-smi", "nvlink", "--remotelinkinfo"])
_TOPO = (["nvidia-smi", "topo", "-m"], ["nvidia-smi", "topo", "--matrix"])

_NOT_ASKED = Unknown("not there: not asked, to keep to few runs of nvidia-smi")


@dataclass(frozen=True)
class Interconnect:
    links: Union[Tuple[GpuLinks, ...], Unknown]
    topo: Union[Topo, Unknown]


def observe(host: Host, has_nvlink: bool, has_nvswitch: bool) -> Interconnect:
    """At most two runs on a live host, none where no GPU can have NVLink (PCIe is told by sysfs).

    Besides the status of links, error counters tell more behind NVSwitches, where all pairs are alike, and the
    matrix tells more where GPUs are wired to each other.  A capture costs nothing and is asked for all.
    """
    if not has_nvlink and host.is_live:
        none = Unknown("not applicable: no GPU here has NVLink")
        return Interconnect(none, none)
    status = _run(host, _STATUS)
    if isinstance(status, Unknown) and "hung" in status.reason and host.is_live:
        # A second run would only cost its deadline as well.
        return Interconnect(status, Unknown("not there: not asked, %s" % status.reason))
    errors = _run(host, _ERRORS) if has_nvswitch or not host.is_live else _NOT_ASKED
    topo = _run(host, _TOPO) if not has_nvswitch or not host.is_live else _NOT_ASKED
    remote = _NOT_ASKED if host.is_live else _run(host, _REMOTE)
    return Interconnect(_together([status, errors, remote]), parse_topo(topo))


def _together(texts: Sequence[Text]) -> Union[Tuple[GpuLinks, ...], Unknown]:
    """Outputs of one tool behind each other are one output."""
    known = [text for text in texts if isinstance(text, str)]
    return parse_nvlink("\n".join(known) if known else texts[0])


def _run(host: Host, spellings: Sequence[List[str]]) -> Text:
    """What was printed, also when it ended with an error: it prints what it could read before."""
    results = [host.run(argv, DEADLINE_S) for argv in (spellings[:1] if host.is_live else spellings)]
    result = next((result for result in results if not result.unknown), results[0])
    if result.unknown:
        return Unknown(result.unknown)
    return result.stdout if result.stdout.strip() or result.ok else result.text()
