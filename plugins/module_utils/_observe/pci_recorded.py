# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""PCI devices and their ways from a recorded lspci(8): for a capture in which there is no sysfs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from .._engine.host import Host
from .._engine.values import Unknown
from .fabric import Switch
from .lspci import Listed, parse_lspci, ways
from .nvme import RaidController, raid_controllers
from .pci import NVIDIA_GPUS, Device, Link, kind_of, sort_key
from .pci_registers import LinkEnd
from .pci_tree import Way

# The forms that tell most first.
_COMMANDS = tuple(
    ("lspci", *options.split())
    for options in (
        *("-vvv", "-vvvnn", "-nnvvv", "-vvv -nn", "-nn -vvv", "-Dvvv", "-D -vvv", "-xxxvvv", "-vvvxxxx", "-xxxx -vvv"),
        *("-vvnn", "-nnvv", "-vv -nn", "-vv", "-nnv", "-vnn", "-nnk", "-v", "-Dnn", "-D -nn", "-nn", "-D", ""),
    )
)


@dataclass(frozen=True)
class Bus:
    """What is looked at on the PCI bus.  ``ways`` are by address.

    ``switches`` are the NVSwitches of a recorded lspci, None where that was not read.  ``excerpts`` are the links of
    functions without an address: a few rows that somebody copied.
    """

    gpus: Union[List[Device], Unknown]
    devices: Tuple[Device, ...] = ()
    ways: Mapping[str, Union[Way, Unknown]] = field(default_factory=dict)
    switches: Optional[Tuple[Switch, ...]] = None
    excerpts: Tuple[LinkEnd, ...] = ()
    raid: Tuple[RaidController, ...] = ()


def observe(host: Host, gpu_match: Sequence[Mapping[str, Any]], kinds: Sequence[str]) -> Bus:
    """What sysfs would tell, as far as lspci does."""
    found = listed(host)
    if isinstance(found, Unknown):
        return Bus(found)
    everything = devices(found, gpu_match)
    seen = tuple(device for device in everything if device.kind in kinds)
    gpus: Union[List[Device], Unknown] = [device for device in seen if device.kind == "gpu"]
    # The first function of a root bus is in every whole list; without it a device may just not have been copied.
    is_whole = any(one.function.address.endswith(":00:00.0") for one in found)
    if not gpus and not is_whole:
        gpus = Unknown("lspci shows a part of the bus, without a GPU")
    switches = [one.function for one in found if one.function.is_nvswitch and one.function.address]
    unbound = Unknown("not there: no driver is bound")
    return Bus(
        gpus,
        seen,
        dict(ways(found)),
        tuple(Switch(one.address, one.device_id, one.driver or unbound) for one in switches)
        if switches or is_whole
        else None,
        tuple(one.function.link for one in found if not one.function.address),
        raid_controllers(everything),
    )


def listed(host: Host) -> Union[Tuple[Listed, ...], Unknown]:
    """Every function that lspci listed."""
    texts = (host.run(list(argv)).text() for argv in _COMMANDS)
    text = next((text for text in texts if isinstance(text, str)), None)
    if text is None:
        return Unknown("neither sysfs nor lspci was captured")
    return parse_lspci(text) or Unknown("lspci lists no devices")


def devices(found: Sequence[Listed], gpu_match: Sequence[Mapping[str, Any]] = NVIDIA_GPUS) -> List[Device]:
    """Endpoints that matter, as ``pci.observe`` gives them from sysfs."""
    roads = ways(found)
    seen: Dict[str, Device] = {}
    for one in found:
        function = one.function
        kind = kind_of(function.vendor_id, function.device_id, function.class_code, gpu_match)
        if kind and function.address:
            seen[function.address] = _device(kind, roads[function.address])
    return sorted(seen.values(), key=lambda device: sort_key(device.address))


def _device(kind: str, way: Way) -> Device:
    function = way.device
    slot = way.functions[1].link if len(way.functions) > 1 else None
    return Device(
        function.address,
        function.vendor_id,
        function.device_id,
        function.class_code,
        kind,
        function.driver,
        function.numa_node,
        Unknown("lspci does not tell the CPUs that are near"),
        Link(
            _known(function.link.width),
            _known(function.link.max_width),
            _known(slot.max_width) if slot else None,
            _known(function.link.speed_gts),
            _known(function.link.max_speed_gts),
            _known(slot.max_speed_gts) if slot else None,
        ),
    )


def _known(value: Any) -> Any:
    return None if isinstance(value, Unknown) else value
