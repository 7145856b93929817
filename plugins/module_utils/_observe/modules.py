# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Kernel modules: what modprobe.d will give them, and the parameters they run with."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Sequence, Union

from .._engine.host import Host
from .._engine.values import Text, Unknown
from . import confd

# The NVIDIA driver shows its parameters here and not in /sys/module, without their prefix
# (kernel-open/nvidia/nv-reg.h); the one below has another name as well.
NVIDIA_PARAMS = "/proc/driver/nvidia/params"
_NVIDIA_NAMES = {"RestrictProfilingToAdminUsers": "RmProfilingAdminOnly"}

_WORD = re.compile(r'(?:[^\s"]|"[^"]*")+')


@dataclass(frozen=True)
class Option:
    """One parameter of one ``options`` line."""

    file: str
    number: int
    module: str
    name: str
    value: str


def plain(module: str) -> str:
    """The kernel and kmod take - and _ in module names as one."""
    return module.replace("-", "_")


def parse_modprobe(file: str, text: str) -> List[Option]:
    """The ``options`` of one modprobe.d(5) file."""
    found: List[Option] = []
    number, row, start = 0, "", 1
    for line in text.splitlines():
        number += 1
        start = start if row else number
        row += line
        if row.endswith("\\"):
            row = row[:-1] + " "
            continue
        words = _WORD.findall(row)
        if len(words) > 2 and words[0] == "options":
            for word in words[2:]:
                name, equals, value = word.partition("=")
                found.append(Option(file, start, plain(words[1]), plain(name), _unquote(value) if equals else "1"))
        row = ""
    return found


def options(host: Host) -> List[Option]:
    """All options in the order that modprobe gives them to a module: the later wins."""
    rows = confd.files(host, confd.roots("modprobe.d"))
    return [option for path, text in rows for option in parse_modprobe(path, text)]


def parse_nvidia_params(text: str) -> Dict[str, str]:
    """``EnableGpuFirmware: 18`` rows of the driver's own file."""
    found: Dict[str, str] = {}
    for row in text.splitlines():
        name, colon, value = row.partition(":")
        if colon and re.match(r"\w+\Z", name.strip()):
            found[name.strip()] = _unquote(value.strip())
    return found


def observe(host: Host, wanted: Mapping[str, Sequence[str]]) -> Dict[str, Dict[str, Any]]:
    """For each module: whether it is loaded or built in, the wanted parameters, and what it knows.

    ``values`` holds the text of each visible parameter; ``known`` the names that modinfo lists
    (None: there is no such module for this kernel), asked only when a parameter is not visible.
    """
    return {module: _module(host, module, names) for module, names in wanted.items()}


def _module(host: Host, module: str, names: Sequence[str]) -> Dict[str, Any]:
    folder = "/sys/module/" + plain(module)
    is_there: Union[bool, Unknown] = host.exists(folder)
    if not is_there and not host.exists("/sys/module"):
        is_there = Unknown("/sys/module was not seen")
    values = {name: _value(host, module, name) for name in names} if is_there is True else {}
    hidden = [name for name in names if not isinstance(values.get(name), str)]
    return {
        "loaded": is_there,
        "builtin": is_there is True and not host.exists(folder + "/initstate"),
        "values": values,
        "known": _known(host, module) if hidden else sorted(names),
    }


def _value(host: Host, module: str, name: str) -> Text:
    text = host.read("/sys/module/%s/parameters/%s" % (plain(module), plain(name)))
    if isinstance(text, str):
        return text.strip()
    if plain(module) == "nvidia" and name.startswith("NVreg_"):
        shown = host.read(NVIDIA_PARAMS)
        bare = name[len("NVreg_") :]
        if isinstance(shown, str):
            return parse_nvidia_params(shown).get(_NVIDIA_NAMES.get(bare, bare))
    return text


def _known(host: Host, module: str) -> Union[List[str], Unknown, None]:
    result = host.run(["modinfo", "-F", "parm", module])
    if result.unknown:
        return Unknown(result.unknown)
    if result.rc != 0:
        return None
    return sorted(line.split(":", 1)[0].strip() for line in result.stdout.splitlines() if ":" in line)


def _unquote(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] == '"' else value
