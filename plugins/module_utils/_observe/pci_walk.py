# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""PCI functions on the way of the devices that were asked for, read from sysfs, each once."""

from __future__ import annotations

import re
from typing import Dict, List, Mapping, Optional, Sequence, Tuple, Union

from .._engine.host import Host
from .._engine.values import Text, Unknown
from .cpu import Number
from .pci import DEVICE_FOLDER, parse_numa_node, parse_speed, parse_width
from .pci_attributes import error_counts, parse_resource, parse_uevent
from .pci_config import parse_config
from .pci_registers import NO_LINK, Config, Express, LinkEnd, SeenNumber, width_of
from .pci_tree import Function, Way, first, first_rate, int_of

SLOT_FOLDER = "/sys/bus/pci/slots"

_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_ROOT_BUS = re.compile(r"pci[0-9a-f]{4,8}:[0-9a-f]{2}")


def observe(
    host: Host, addresses: Sequence[str], config_for: Optional[Sequence[str]] = None
) -> Dict[str, Union[Way, Unknown]]:
    """The way of each device, by its address.

    ``config_for`` are the devices on whose way the configuration space is wanted, all by default: the kernel fetches
    its 4096 bytes from the device in a thousand reads, about a millisecond.
    """
    reader = _Reader(host, slots(host))
    wanted = set(addresses if config_for is None else config_for)
    in_turn = sorted(addresses, key=lambda address: address not in wanted)
    ways = {address: reader.way(address, address in wanted) for address in in_turn}
    return {address: ways[address] for address in addresses}


def slots(host: Host) -> Dict[str, str]:
    """Names of physical slots by the address of their device without the function."""
    found: Dict[str, str] = {}
    for name in host.listdir(SLOT_FOLDER):
        text = host.read("%s/%s/address" % (SLOT_FOLDER, name))
        if isinstance(text, str) and text.strip():
            found[text.strip()] = name
    return found


class _Reader:
    """Reads functions from sysfs, each once."""

    def __init__(self, host: Host, slot_names: Mapping[str, str]) -> None:
        self._host = host
        self._slots = slot_names
        self._seen: Dict[str, Function] = {}

    def way(self, address: str, with_config: bool) -> Union[Way, Unknown]:
        target = self._host.readlink("%s/%s" % (DEVICE_FOLDER, address))
        if target is None:
            return Unknown("%s is not on the PCI bus" % address)
        root = ""
        chain: List[str] = []
        for part in target.rstrip("/").split("/"):
            if _ROOT_BUS.fullmatch(part):
                # A bus of its own may hang on a device (Intel VMD): the way ends there.
                root, chain = part, []
            elif _ADDRESS.fullmatch(part):
                chain.append(part)
        if not chain or chain[-1] != address:
            root, chain = "", [address]
        functions = tuple(self.function(part, part == address, with_config) for part in reversed(chain))
        return Way(functions, root, bool(root))

    def function(self, address: str, is_device: bool, with_config: bool) -> Function:
        if address not in self._seen:
            self._seen[address] = self._read(address, is_device, with_config)
        return self._seen[address]

    def _read(self, address: str, is_device: bool, with_config: bool) -> Function:
        read, folder = self._host.read, "%s/%s/" % (DEVICE_FOLDER, address)
        config = parse_config(read(folder + "config")) if with_config else Unknown("not asked for")
        said = parse_uevent(read(folder + "uevent"))
        vendor, device = self._ids(folder, said)
        express = config.express if isinstance(config, Config) else config
        counts = [read("%saer_dev_%s" % (folder, kind)) for kind in ("correctable", "nonfatal", "fatal")]
        driver = said.get("DRIVER") or (self._host.readlink(folder + "driver") or "").rsplit("/", 1)[-1]
        return Function(
            address,
            vendor,
            device,
            _class_code(said.get("PCI_CLASS") or _text(read(folder + "class"))),
            self._subsystem(folder, said),
            "",
            driver or None,
            self._slots.get(address.rsplit(".", 1)[0]),
            parse_numa_node(read(folder + "numa_node")),
            _port(express),
            self._link(folder, express),
            config.acs if isinstance(config, Config) else config,
            _of(express, "max_payload_supported_bytes"),
            _of(express, "max_payload_bytes"),
            _of(express, "max_read_request_bytes"),
            config.aer if isinstance(config, Config) else config,
            error_counts(counts[0], counts[1], counts[2]),
            parse_resource(read(folder + "resource")) if is_device else Unknown("not asked for"),
            config.resizable_bars if isinstance(config, Config) else config,
            self._total_vfs(folder, config) if is_device else None,
            isinstance(config, Unknown) and config.reason.startswith("error"),
        )

    def _ids(self, folder: str, said: Mapping[str, str]) -> Tuple[str, str]:
        vendor, colon, device = said.get("PCI_ID", "").lower().partition(":")
        if colon:
            return _id(vendor.zfill(4)), _id(device.zfill(4))
        return _id(_text(self._host.read(folder + "vendor"))), _id(_text(self._host.read(folder + "device")))

    def _subsystem(self, folder: str, said: Mapping[str, str]) -> str:
        vendor, colon, device = said.get("PCI_SUBSYS_ID", "").lower().partition(":")
        if not colon:
            names = ("subsystem_vendor", "subsystem_device")
            vendor, device = (_id(_text(self._host.read(folder + name))) for name in names)
        vendor, device = _id(vendor.zfill(4)), _id(device.zfill(4))
        return "%s:%s" % (vendor, device) if int_of(vendor) and device else ""

    def _link(self, folder: str, express: Union[Express, Unknown, None]) -> LinkEnd:
        """From the attributes; what they do not tell, from the configuration space."""
        names = ("current_link_width", "current_link_speed", "max_link_width", "max_link_speed")
        texts = [self._host.read(folder + name) for name in names]
        unseen = Unknown("not applicable: no PCI Express link")
        spare = express.link if isinstance(express, Express) else LinkEnd(unseen, unseen, unseen, unseen)
        if isinstance(texts[0], str) and texts[0].strip() == "0":
            spare = LinkEnd(NO_LINK, NO_LINK, spare.max_width, spare.max_speed_gts)
            texts[1] = None
        return LinkEnd(
            first(_width(texts[0]), spare.width),
            first_rate(parse_speed(texts[1]), spare.speed_gts),
            first(_width(texts[2]), spare.max_width),
            first_rate(parse_speed(texts[3]), spare.max_speed_gts),
        )

    def _total_vfs(self, folder: str, config: Union[Config, Unknown]) -> SeenNumber:
        text = _text(self._host.read(folder + "sriov_totalvfs"))
        if re.fullmatch(r"\d{1,5}", text, re.ASCII):
            return int(text)
        return config.total_vfs if isinstance(config, Config) else None


def _port(express: Union[Express, Unknown, None]) -> Union[str, Unknown]:
    if isinstance(express, Express):
        return express.port
    return Unknown("not applicable: conventional PCI") if express is None else express


def _of(express: Union[Express, Unknown, None], name: str) -> Number:
    if isinstance(express, Express):
        value: Number = getattr(express, name)
        return value
    return Unknown("not applicable: conventional PCI") if express is None else express


def _width(text: Text) -> Union[int, Unknown, None]:
    """A device that answers nothing but ones shows x63."""
    width = parse_width(text)
    return None if width is None else width_of(width)


def _text(text: object) -> str:
    return text.strip() if isinstance(text, str) else ""


def _id(text: str) -> str:
    word = text.lower()
    word = word[2:] if word.startswith("0x") else word
    return word if re.fullmatch(r"[0-9a-f]{4}", word, re.ASCII) else ""


def _class_code(text: str) -> str:
    word = text.lower()
    word = word[2:] if word.startswith("0x") else word
    # uevent drops leading zeros: PCI_CLASS=10802.
    return word.zfill(6) if re.fullmatch(r"[0-9a-f]{1,6}", word, re.ASCII) else ""
