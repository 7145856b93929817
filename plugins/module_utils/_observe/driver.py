# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The NVIDIA driver in all its places: loaded, on disk for each kernel, built by DKMS, its firmware and parameters.

Its libraries are told by ``libraries``, its packages by ``packages``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Dict, List, Mapping, Tuple, Union

from .._engine.host import Host
from .._engine.values import Text, Unknown
from . import dkms
from .driver_module import (
    GpuInformation,
    Modinfo,
    ModuleVersion,
    parse_gpu_information,
    parse_modinfo,
    parse_module_version,
    parse_modules_dep,
    parse_proc_version,
)
from .modules import NVIDIA_PARAMS, parse_nvidia_params
from .nvidia_values import Word

PROC = "/proc/driver/nvidia"
MODULES = "/lib/modules"
FIRMWARE = "/lib/firmware/nvidia"

_VERSION = re.compile(r"\d{3,4}(?:\.\d{1,4}){1,2}", re.ASCII)
# Kernels whose modules are looked at, the newest and the running one: each list of modules is a megabyte.
_MOST_KERNELS = 6


@dataclass(frozen=True)
class Driver:
    """``loaded`` from the module's own words in /proc, ``loaded_version`` from sysfs, which root is not needed for.

    ``modules`` are the places of nvidia.ko by kernel, none where a kernel has no such module.  ``firmware`` are the
    GSP images by driver version.  ``gpus`` by PCI address.
    """

    loaded: Union[ModuleVersion, Unknown]
    loaded_version: Word
    params: Union[Mapping[str, str], Unknown]
    gpus: Mapping[str, GpuInformation]
    modinfo: Union[Modinfo, Unknown]
    kernel: Word
    modules: Union[Mapping[str, Tuple[str, ...]], Unknown]
    dkms: Union[dkms.Dkms, Unknown]
    firmware: Union[Mapping[str, Tuple[str, ...]], Unknown]


def observe(host: Host) -> Driver:
    kernel = _line(host.read("/proc/sys/kernel/osrelease"))
    params = host.read(NVIDIA_PARAMS)
    return Driver(
        parse_proc_version(host.read(PROC + "/version")),
        parse_module_version(host.read("/sys/module/nvidia/version")),
        parse_nvidia_params(params) if isinstance(params, str) else _absent(params, "the module is not loaded"),
        {
            address: parse_gpu_information(host.read("%s/gpus/%s/information" % (PROC, address)))
            for address in _gpus(host)
        },
        _modinfo(host),
        kernel,
        _modules(host, kernel),
        dkms.observe(host),
        _firmware(host),
    )


def kernels_by_age(kernels: List[str]) -> List[str]:
    """Kernel releases, the newest first, by the numbers in them."""
    return sorted(
        kernels, key=lambda name: [int(word) for word in re.findall(r"\d{1,9}", name, re.ASCII)], reverse=True
    )


def _modinfo(host: Host) -> Union[Modinfo, Unknown]:
    result = host.run(["modinfo", "nvidia"])
    if result.unknown:
        # Captures may hold only the one row that is asked for most.
        version = host.run(["modinfo", "-F", "version", "nvidia"])
        if version.unknown or host.is_live:
            return Unknown(result.unknown)
        absent = Unknown("not there: only the version was asked for")
        return Modinfo(absent, parse_module_version(version.stdout), absent, absent, absent, ())
    return parse_modinfo(result.stdout if result.stdout.strip() else result.stderr)


def _modules(host: Host, kernel: Word) -> Union[Dict[str, Tuple[str, ...]], Unknown]:
    names = [name for name in host.listdir(MODULES) if re.fullmatch(r"\d[\w.+~-]{0,100}", name, re.ASCII)]
    if not names:
        return Unknown("not there: %s" % MODULES)
    chosen = kernels_by_age(names)[:_MOST_KERNELS]
    if isinstance(kernel, str) and kernel in names and kernel not in chosen:
        chosen.append(kernel)
    found: Dict[str, Tuple[str, ...]] = {}
    for name in chosen:
        text = host.read("%s/%s/modules.dep" % (MODULES, name))
        # A folder without the list is what a removed kernel left behind.
        if isinstance(text, str):
            found[name] = parse_modules_dep(text)
    return found


def _firmware(host: Host) -> Union[Dict[str, Tuple[str, ...]], Unknown]:
    """In-tree firmware lies beside, in folders by chip."""
    if not host.exists(FIRMWARE):
        return Unknown("not there: %s" % FIRMWARE)
    versions = [name for name in host.listdir(FIRMWARE) if _VERSION.fullmatch(name)]
    return {version: tuple(host.listdir("%s/%s" % (FIRMWARE, version))) for version in versions}


def _gpus(host: Host) -> List[str]:
    names = host.listdir(PROC + "/gpus")
    return [name for name in names if re.fullmatch(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", name)]


def _line(text: Text) -> Word:
    if isinstance(text, str) and text.strip():
        return text.strip()
    return _absent(text, "no kernel release")


def _absent(text: Text, why: str) -> Unknown:
    return text if isinstance(text, Unknown) else Unknown("not there: %s" % why)
