# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""CPU frequency and idle states as cpupower(1) prints them, and idle states with their latency from sysfs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Dict, Iterator, List, Mapping, Optional, Tuple, Union

from .._engine.host import Host
from .._engine.values import Text, Unknown, lines
from .cpu import Number
from .tool_text import clean, without_labels

CPU_FOLDER = "/sys/devices/system/cpu"

Word = Union[str, Unknown]

_FREQUENCY = re.compile(r"(\d{1,5}(?:\.\d{1,6})?)\s*(k|M|G)Hz", re.ASCII)
_MHZ = {"k": 0.001, "M": 1.0, "G": 1000.0}
_ANALYZING = re.compile(r"analyzing CPU (\d{1,5})", re.ASCII)
_GOVERNOR = re.compile(r'The governor "([^"]{1,40})"')
# Some states have names of two words.
_STATE = re.compile(r"([A-Za-z0-9_+.-]{1,30}(?: [A-Za-z0-9_+.-]{1,30}){0,3}?)\s{0,40}(\(DISABLED\))?\s{0,40}:")
_USUAL = re.compile(r"POLL|C\d\w{0,8}|WFI|LPI-?\d{1,2}|snooze|CEDE", re.IGNORECASE | re.ASCII)
# Versions before 4.7 write it without a colon.
_CURRENT = re.compile(r"(current CPU frequency) is ")
_FREQUENCY_ROWS = (
    "driver:", "no or unknown cpufreq driver", "hardware limits:", "available cpufreq governors:", "current policy:",
    "current CPU frequency:",
)  # fmt: skip
_SIGN = re.compile(r"analyzing CPU|CPUidle driver:")
_KEYS = ("Latency", "Usage", "Duration", "Residency")


@dataclass(frozen=True)
class FrequencyInfo:
    """``cpupower frequency-info`` of one CPU; frequencies in MHz."""

    cpu: Number
    driver: Word
    governors: Tuple[str, ...]
    governor: Word
    hardware_min_mhz: Number
    hardware_max_mhz: Number
    policy_min_mhz: Number
    policy_max_mhz: Number
    current_mhz: Number
    has_boost: Union[bool, Unknown]
    is_boosting: Union[bool, Unknown]


@dataclass(frozen=True)
class IdleState:
    """An idle state: how long it takes to leave, and whether it is switched off."""

    name: str
    description: str
    latency_us: Number
    is_disabled: Union[bool, Unknown]


@dataclass(frozen=True)
class Idle:
    """The idle states of one CPU, from the shallowest on."""

    driver: Word
    governor: Word
    cpu: Number
    states: Tuple[IdleState, ...]

    @property
    def deepest(self) -> Union[IdleState, Unknown]:
        """The deepest state that is in use."""
        unknown = next((one.is_disabled for one in self.states if isinstance(one.is_disabled, Unknown)), None)
        if unknown is not None:
            return unknown
        used = [state for state in self.states if state.is_disabled is False]
        return used[-1] if used else Unknown("no idle state is in use")


def observe_idle(host: Host) -> Union[Idle, Unknown, None]:
    """The idle states of the first CPU that is online, from sysfs; None where the kernel manages none.

    That others may have other states disabled is what ``cpufreq.idle`` reads, at the cost of all CPUs.
    """
    if not host.exists(CPU_FOLDER):
        text = host.run(["cpupower", "idle-info"]).text() if not host.is_live else None
        return parse_idle_info(text) if isinstance(text, str) else Unknown("%s was not seen" % CPU_FOLDER)
    driver, governor = (_said(host, "/cpuidle/" + name) for name in ("current_driver", "current_governor"))
    if isinstance(governor, Unknown):
        governor = _said(host, "/cpuidle/current_governor_ro")
    for cpu in _cpus(host):
        folder = "/cpu%d/cpuidle" % cpu
        names = [name for name in host.listdir(CPU_FOLDER + folder) if re.fullmatch(r"state\d{1,2}", name, re.ASCII)]
        names.sort(key=lambda name: int(name[5:]))
        if names:
            return Idle(driver, governor, cpu, tuple(_state(host, "%s/%s/" % (folder, name)) for name in names))
    return None


def parse_frequency_info(text: Text) -> Tuple[FrequencyInfo, ...]:
    """``cpupower frequency-info``, of one CPU or of all (-c all); never fails."""
    return tuple(_frequency(cpu, rows) for cpu, rows in _by_cpu(text))


def parse_idle_info(text: Text) -> Union[Idle, Unknown]:
    """``cpupower idle-info``; of several CPUs the first."""
    if not isinstance(text, str):
        return text if isinstance(text, Unknown) else Unknown("cpupower was not run")
    said: Dict[str, str] = {}
    states: List[IdleState] = []
    cpu: Number = Unknown("cpupower names no CPU")
    for line in _rows(text):
        analyzing = _ANALYZING.match(line)
        if analyzing:
            if states:
                break
            cpu = int(analyzing.group(1))
            continue
        key, colon, value = line.partition(":")
        key, value = key.strip(), value.strip()
        state = _STATE.fullmatch(line)
        if state and not value and key not in _KEYS and _is_listed(state.group(1), said):
            states.append(IdleState(state.group(1), "", Unknown("cpupower shows no latency"), bool(state.group(2))))
        elif states and colon:
            states[-1] = _with(states[-1], key, value)
        elif colon:
            said.setdefault(key, value)
    if not states and "CPUidle driver" not in said:
        return Unknown("cpupower says %r" % text.strip()[:80])
    return Idle(_word(said.get("CPUidle driver")), _word(said.get("CPUidle governor")), cpu, tuple(states))


def _is_listed(name: str, said: Mapping[str, str]) -> bool:
    """What begins a block of rows is a state only if the row of all states has it, where that was seen."""
    # A CPU has some ten of them.
    available = said.get("Available idle states", "")[:2000] if "Available idle states" in said else None
    return _USUAL.fullmatch(name) is not None if available is None else name in available


def _with(state: IdleState, key: str, value: str) -> IdleState:
    if key == "Latency":
        latency: Number = int(value) if re.fullmatch(r"\d{1,9}", value, re.ASCII) else Unknown(value[:40])
        return IdleState(state.name, state.description, latency, state.is_disabled)
    if key == "Flags/Description":
        return IdleState(state.name, value, state.latency_us, state.is_disabled)
    return state


def _rows(text: Text) -> List[str]:
    """Without colours, the names of hosts, and what quotes a row in a mail or a note."""
    if not isinstance(text, str):
        return []
    return [line.strip(" \t>#") for line in lines(clean(without_labels(text, _SIGN)))]


def _by_cpu(text: Text) -> Iterator[Tuple[Number, List[str]]]:
    cpu: Number = Unknown("cpupower names no CPU")
    rows: List[str] = []
    for line in [*(_CURRENT.sub(r"\1: ", row) for row in _rows(text)), "analyzing CPU 0:"]:
        analyzing = _ANALYZING.match(line)
        if analyzing:
            # What stands before, such as the prompt with the command, is no answer.
            if any(row.startswith(_FREQUENCY_ROWS) for row in rows):
                yield cpu, rows
            cpu, rows = int(analyzing.group(1)), []
        elif ":" in line or _GOVERNOR.search(line):
            rows.append(line)


def _frequency(cpu: Number, rows: List[str]) -> FrequencyInfo:
    said: Dict[str, List[str]] = {}
    for row in rows:
        key, _colon, value = row.strip().partition(":")
        said.setdefault(key.strip(), []).append(value.strip())
    hardware = _mhz(said.get("hardware limits"))
    policy = _mhz(said.get("current policy"))
    # The row may be there twice: what the hardware says (often nothing), then what the kernel says.
    current = _mhz(said.get("current CPU frequency"))
    governor = next((match.group(1) for match in map(_GOVERNOR.search, rows) if match), None)
    unseen = Unknown("cpupower does not tell")
    governors = next(iter(said.get("available cpufreq governors", [])), "")
    return FrequencyInfo(
        cpu,
        _word(next(iter(said.get("driver", [])), None)),
        tuple(word for word in re.split(r"[,\s]+", governors) if re.fullmatch(r"[a-z_]{2,30}", word)),
        _word(governor),
        hardware[0] if len(hardware) == 2 else unseen,
        hardware[1] if len(hardware) == 2 else unseen,
        policy[0] if len(policy) == 2 else unseen,
        policy[1] if len(policy) == 2 else unseen,
        current[0] if current else unseen,
        _yes(said.get("Supported")),
        _yes(said.get("Active")),
    )


def _mhz(values: Optional[List[str]]) -> List[int]:
    """The frequencies of the first row that has any."""
    for value in values or []:
        found = [round(float(figure) * _MHZ[unit]) for figure, unit in _FREQUENCY.findall(value)]
        if found:
            return found
    return []


def _yes(values: Optional[List[str]]) -> Union[bool, Unknown]:
    word = values[0].lower() if values else ""
    return word == "yes" if word in ("yes", "no") else Unknown("cpupower does not tell")


def _word(text: Optional[str]) -> Word:
    is_told = text is not None and text and not re.match(r"no or unknown|unable|none\b", text, re.IGNORECASE)
    return text if text is not None and is_told else Unknown("cpupower does not tell")


def _cpus(host: Host) -> List[int]:
    """In their order; an offline one has no idle states any more."""
    names = [name for name in host.listdir(CPU_FOLDER) if re.fullmatch(r"cpu\d{1,5}", name, re.ASCII)]
    return sorted(int(name[3:]) for name in names)[:16]


def _state(host: Host, folder: str) -> IdleState:
    name, description = _said(host, folder + "name"), _said(host, folder + "desc")
    latency, disable = _said(host, folder + "latency"), _said(host, folder + "disable")
    is_figure = isinstance(latency, str) and re.fullmatch(r"\d{1,9}", latency, re.ASCII)
    return IdleState(
        name if isinstance(name, str) else folder.rstrip("/").rsplit("/", 1)[-1],
        description if isinstance(description, str) else "",
        int(latency) if isinstance(latency, str) and is_figure else Unknown("latency is %s" % latency),
        disable != "0" if isinstance(disable, str) else disable,
    )


def _said(host: Host, path: str) -> Word:
    text = host.read(CPU_FOLDER + path)
    if isinstance(text, str):
        return text.strip() or Unknown("empty")
    return text if isinstance(text, Unknown) else Unknown("not there")
