# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NVSwitches of this machine and the services that make a fabric of them, with NVIDIA's other services beside."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Dict, List, Mapping, Optional, Tuple, Union

from .._engine.host import Host
from .._engine.values import Text, Unknown
from . import unit
from .fabric_manager import FmLog, parse_fm_config, parse_fm_log
from .nvidia_values import Flag, Number, Word
from .nvidia_words import clean
from .pasted import plain_lines
from .pci import DEVICE_FOLDER, sort_key

FM = "nvidia-fabricmanager.service"
PERSISTENCED = "nvidia-persistenced.service"
UNITS = (FM, PERSISTENCED, "nvidia-imex.service", "nvlsm.service", "nvidia-dcgm.service", "nvidia-powerd.service")
FM_CONFIG = "/usr/share/nvidia/nvswitch/fabricmanager.cfg"
FM_LOG = "/var/log/fabricmanager.log"
NVLSM = "/opt/nvidia/nvlsm/sbin/nvlsm"
INFINIBAND = "/sys/class/infiniband"

_NVIDIA = "10de"
# "Bridge, other": NVSwitches have it (1af1, 22a3 and their kin); bridges of Grace and of cards are 0604.
_SWITCH_CLASS = "0680"
_PROPERTIES = (
    "LoadState",
    "ActiveState",
    "SubState",
    "Result",
    "UnitFileState",
    "NRestarts",
    "ExecMainStatus",
    "ActiveEnterTimestamp",
)
_JOURNAL = ["journalctl", "-u", FM, "-b", "-o", "short-iso", "--no-pager", "-n", "400"]
_DEADLINE_S = 10.0
# In the VPD of ConnectX functions that lead to NVSwitches of NVLink 5 boards (NVIDIA's driver container looks for it).
_BRIDGE_MARK = "SW_MNG"

_LSPCI_SIGN = re.compile(r"\s*(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7] ", re.ASCII)
_LSPCI = re.compile(
    r"(?P<address>(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) (?P<kind>[^:\[]{1,60}?)(?: \[(?P<class>[0-9a-f]{4})\])?: "
    r"(?P<what>.{1,300})",
    re.ASCII,
)


@dataclass(frozen=True)
class Switch:
    """An NVSwitch on PCI."""

    address: str
    device_id: str
    driver: Word


@dataclass(frozen=True)
class Service:
    """A unit as systemd knows it.  ``is_there``: it is installed; ``starts``: enabled, disabled, static, masked."""

    name: str
    is_there: bool
    state: str
    result: str
    starts: str
    restarts: Number


@dataclass(frozen=True)
class Fabric:
    """``bridges`` are the RDMA devices that lead to NVSwitches of an NVLink 5 board, and no NICs of a cluster.

    ``mode`` is FABRIC_MODE: 0 the whole machine, 1 shared NVSwitch (a partition has to be activated), 2 vGPU.
    ``log`` was read only where Fabric Manager is installed and does not run, or from a capture.
    """

    switches: Union[Tuple[Switch, ...], Unknown]
    bridges: Union[Tuple[str, ...], Unknown]
    services: Union[Mapping[str, Service], Unknown]
    mode: Number
    has_nvlsm: bool
    has_ib_umad: Flag
    log: Union[FmLog, Unknown]

    @property
    def has_nvswitch(self) -> Flag:
        if isinstance(self.switches, Unknown):
            return self.switches
        return bool(self.switches) or (not isinstance(self.bridges, Unknown) and bool(self.bridges))


@dataclass(frozen=True)
class NvidiaFunctions:
    """Addresses of NVIDIA's own functions in a text of lspci."""

    gpus: Tuple[str, ...]
    switches: Tuple[str, ...]
    bridges: Tuple[str, ...]


def observe(host: Host, has_nvlink5: bool) -> Fabric:
    """One run of systemctl, and one of journalctl where Fabric Manager should run and does not.

    ``has_nvlink5``: there are GPUs whose switches are managed over InfiniBand (B200, B300), so look for those.
    """
    services = observe_services(host)
    config = host.read(FM_CONFIG)
    return Fabric(
        observe_switches(host),
        _bridges(host) if has_nvlink5 or not host.is_live else (),
        services,
        _mode(config),
        bool(host.exists(NVLSM)),
        host.exists("/sys/module/ib_umad") or _unseen(host, "/sys/module"),
        _log(host, services),
    )


def observe_switches(host: Host) -> Union[Tuple[Switch, ...], Unknown]:
    if not host.exists(DEVICE_FOLDER):
        return Unknown("not there: %s" % DEVICE_FOLDER)
    found: List[Switch] = []
    for name in host.listdir(DEVICE_FOLDER):
        folder = "%s/%s/" % (DEVICE_FOLDER, name)
        is_address = re.fullmatch(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", name) is not None
        # The vendor first: most functions are somebody else's.
        if is_address and _hex(host.read(folder + "vendor")) == _NVIDIA and _is_switch(host.read(folder + "class")):
            driver = host.readlink(folder + "driver")
            bound: Word = driver.rsplit("/", 1)[-1] if driver else Unknown("not there: no driver is bound")
            found.append(Switch(name, _hex(host.read(folder + "device")), bound))
    return tuple(sorted(found, key=lambda switch: sort_key(switch.address)))


def observe_services(host: Host) -> Union[Dict[str, Service], Unknown]:
    shown = unit.show(host, UNITS, _PROPERTIES)
    return shown if isinstance(shown, Unknown) else {name: _service(name, rows) for name, rows in shown.items()}


def parse_lspci_functions(text: Text) -> NvidiaFunctions:
    """Functions of NVIDIA in ``lspci`` with or without -D, -n and -nn, one a line; indented lines are passed over."""
    gpus: List[str] = []
    switches: List[str] = []
    bridges: List[str] = []
    for line in plain_lines(clean(text), _LSPCI_SIGN) if isinstance(text, str) else ():
        row = _LSPCI.fullmatch(line[:500].strip())
        if not row or not re.search(r"NVIDIA|nVidia|\b10de:", row.group("what")):
            continue
        kind, code = row.group("kind"), row.group("class") or ""
        # With -n there is a code in the place of the name.
        code = kind if re.fullmatch("[0-9a-f]{4}", kind) else code
        if code[:2] == "03" or kind in ("3D controller", "VGA compatible controller", "Display controller"):
            gpus.append(row.group("address"))
        elif code == _SWITCH_CLASS or kind == "Bridge":
            switches.append(row.group("address"))
        elif code == "0604" or kind == "PCI bridge":
            bridges.append(row.group("address"))
    return NvidiaFunctions(tuple(gpus), tuple(switches), tuple(bridges))


def _service(name: str, rows: Mapping[str, str]) -> Service:
    restarts = unit.number(rows.get("NRestarts", ""))
    return Service(
        name,
        rows.get("LoadState") not in ("not-found", None),
        rows.get("ActiveState", ""),
        rows.get("Result", ""),
        rows.get("UnitFileState", ""),
        Unknown("not there: this systemd does not count restarts") if restarts is None else restarts,
    )


def _log(host: Host, services: Union[Mapping[str, Service], Unknown]) -> Union[FmLog, Unknown]:
    service: Optional[Service] = None if isinstance(services, Unknown) else services.get(FM)
    if host.is_live and (service is None or not service.is_there or service.state == "active"):
        return Unknown("not there: not read, since the service runs or is not installed")
    texts: List[Text] = [host.read(FM_LOG)] if not host.is_live else []
    result = host.run(_JOURNAL, _DEADLINE_S)
    texts.append(result.stdout if not result.unknown else Unknown(result.unknown))
    known = [text for text in texts if isinstance(text, str) and text.strip()]
    if known:
        return parse_fm_log("\n".join(known))
    return Unknown(result.unknown or "not there: the journal of %s is empty" % FM)


def _bridges(host: Host) -> Union[Tuple[str, ...], Unknown]:
    if not host.exists(INFINIBAND):
        return Unknown("not there: %s, so the switches' bridges have no driver" % INFINIBAND)
    names = [name for name in host.listdir(INFINIBAND) if re.fullmatch(r"[\w.-]{1,60}", name, re.ASCII)]
    found: List[str] = []
    for name in names:
        vpd = host.read("%s/%s/device/vpd" % (INFINIBAND, name))
        if isinstance(vpd, str) and _BRIDGE_MARK in vpd:
            found.append(name)
    return tuple(found)


def _mode(config: Text) -> Number:
    if not isinstance(config, str):
        return config if isinstance(config, Unknown) else Unknown("not there: %s" % FM_CONFIG)
    mode = parse_fm_config(config).get("FABRIC_MODE", "")
    return int(mode) if re.fullmatch(r"\d{1,2}", mode, re.ASCII) else Unknown("not there: no FABRIC_MODE")


def _unseen(host: Host, folder: str) -> Flag:
    return False if host.exists(folder) else Unknown("not there: %s" % folder)


def _is_switch(text: Text) -> bool:
    return _hex(text)[:4] == _SWITCH_CLASS


def _hex(text: Text) -> str:
    said = text.strip().lower() if isinstance(text, str) else ""
    return said[2:] if said.startswith("0x") else said
