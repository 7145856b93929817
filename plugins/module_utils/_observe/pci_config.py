# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""PCI configuration space: what the registers of a function say, and where a masked write would go.

Register layout: PCI Express base specification, chapter 7, as linux/include/uapi/linux/pci_regs.h names it.
Without root the kernel gives 64 bytes only, and without a memory-mapped window 256; what lies behind is unknown,
never "not there".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, Iterator, Mapping, Optional, Tuple, Union

from .._engine.values import Text, Unknown
from .pci_registers import (
    ACS_BITS,
    CORRECTABLE_BITS,
    NO_LINK,
    PORTS,
    UNCORRECTABLE_BITS,
    WITHOUT_LINK,
    Acs,
    Aer,
    Config,
    Express,
    LinkEnd,
    ResizableBar,
    SeenAcs,
    SeenAer,
    SeenBars,
    SeenExpress,
    SeenNumber,
    size_of,
    speed_of,
    width_of,
)

# Capabilities of PCI (one byte) and of PCI Express (two bytes, above 0x100).
CAP_EXPRESS = 0x10
ECAP_AER, ECAP_ACS, ECAP_SRIOV, ECAP_REBAR = 0x0001, 0x000D, 0x0010, 0x0015
_HEADER_BYTES, _PLAIN_BYTES, _EXTENDED = 0x40, 0x100, 0x100
# Chains of capabilities are no longer than the space has room for them.
_LONGEST_CHAIN, _LONGEST_EXTENDED_CHAIN = 48, 480

# Stand in for a capability where the chain cannot be followed any further.
_CUT, _LOOPS = -1, -2


@dataclass(frozen=True)
class MaskedWrite:
    """A change of some bits of one 16-bit register, in the words of setpci(8) and as numbers.

    The other bits of the word stay: bit 15 of the Device Control register resets the function.
    """

    register: str
    offset: int
    mask: int
    value: int
    before: int

    @property
    def after(self) -> int:
        return (self.before & ~self.mask & 0xFFFF) | (self.value & self.mask)

    @property
    def changes(self) -> bool:
        return self.after != self.before

    def setpci(self) -> str:
        """The argument of setpci: ``CAP_EXP+8.w=5000:7000``, its figures hexadecimal."""
        return "%s=%x:%x" % (self.register, self.value & self.mask, self.mask)

    def undo(self) -> MaskedWrite:
        return MaskedWrite(self.register, self.offset, self.mask, self.before & self.mask, self.after)


def parse_config(text: Text) -> Union[Config, Unknown]:
    """``/sys/bus/pci/devices/*/config`` as Host.read gives it; never fails."""
    if not isinstance(text, str):
        return text if isinstance(text, Unknown) else Unknown("no configuration space")
    try:
        return decode(text.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:
        return Unknown("not the bytes of a configuration space")


def decode(data: bytes) -> Union[Config, Unknown]:
    if len(data) < _HEADER_BYTES:
        return Unknown("the configuration space has %d bytes" % len(data))
    if data[:4] in (b"\xff\xff\xff\xff", b"\0\0\0\0"):
        return Unknown("error: the configuration space reads as all %s: the device does not answer" % data[:1].hex())
    is_bridge = data[0x0E] & 0x7F == 1
    express = _express(data)
    extended = _extended(data, express)
    return Config(
        len(data),
        "%04x" % _word(data, 0),
        "%04x" % _word(data, 2),
        "%02x%02x%02x" % (data[0x0B], data[0x0A], data[0x09]),
        is_bridge,
        _subsystem(data) if not is_bridge else "",
        express,
        extended if isinstance(extended, Unknown) else _acs(data, extended),
        extended if isinstance(extended, Unknown) else _aer(data, extended),
        extended if isinstance(extended, Unknown) else _total_vfs(data, extended),
        extended if isinstance(extended, Unknown) else _resizable_bars(data, extended),
    )


def acs_off(config: Config) -> Union[MaskedWrite, Unknown, None]:
    """Clears the seven control bits of ACS; None for a function without ACS (NCCL user guide, "PCI Access Control")."""
    if not isinstance(config.acs, Acs):
        return config.acs
    if config.acs.offset is None or config.acs.control_word is None:
        return Unknown("only the words of lspci are known, not the register")
    mask = (1 << len(ACS_BITS)) - 1
    return MaskedWrite("ECAP_ACS+6.w", config.acs.offset + 6, mask, 0, config.acs.control_word)


def max_read_request(config: Config, size_bytes: int) -> Union[MaskedWrite, Unknown, None]:
    """Sets MaxReadReq, bits 14:12 of Device Control; None for a function without PCI Express."""
    if not isinstance(config.express, Express):
        return config.express
    codes = {128 << code: code for code in range(6)}
    if size_bytes not in codes:
        return Unknown("%d bytes is no size of a read request: 128, 256, 512, 1024, 2048 or 4096" % size_bytes)
    express = config.express
    return MaskedWrite("CAP_EXP+8.w", express.offset + 8, 0x7000, codes[size_bytes] << 12, express.device_control)


def _subsystem(data: bytes) -> str:
    vendor = _word(data, 0x2C)
    return "%04x:%04x" % (vendor, _word(data, 0x2E)) if vendor not in (0, 0xFFFF) else ""


def _word(data: bytes, offset: int) -> int:
    return int.from_bytes(data[offset : offset + 2], "little")


def _long(data: bytes, offset: int) -> int:
    return int.from_bytes(data[offset : offset + 4], "little")


def _capabilities(data: bytes) -> Iterator[Tuple[int, int]]:
    """(id, offset) of the plain chain, which ends with _CUT or _LOOPS where it cannot be followed."""
    if not _word(data, 6) & 0x10:
        return
    offset, seen = data[0x34] & 0xFC, 0
    while offset >= _HEADER_BYTES and seen < _LONGEST_CHAIN:
        if offset + 2 > len(data):
            yield _CUT, offset
            return
        if data[offset] == 0xFF:
            return
        yield data[offset], offset
        offset, seen = data[offset + 1] & 0xFC, seen + 1
    if offset >= _HEADER_BYTES:
        yield _LOOPS, offset


def _express(data: bytes) -> SeenExpress:
    for capability, offset in _capabilities(data):
        if capability == _CUT or (capability == CAP_EXPRESS and offset + 0x14 > len(data)):
            return Unknown("only %d bytes of the configuration space can be read (root reads all)" % len(data))
        if capability == _LOOPS:
            return Unknown("error: the list of capabilities runs in a circle")
        if capability == CAP_EXPRESS:
            return _decode_express(data, offset)
    return None


def _decode_express(data: bytes, offset: int) -> Express:
    flags, control = _word(data, offset + 2), _word(data, offset + 8)
    port: Union[str, Unknown] = PORTS.get(flags >> 4 & 0xF, Unknown("port type %d" % (flags >> 4 & 0xF)))
    # LnkSta2 stands only in version 2 of the capability.
    status2 = _word(data, offset + 0x32) if flags & 0xF >= 2 and offset + 0x34 <= len(data) else 0
    return Express(
        offset,
        port,
        bool(flags & 0x100),
        size_of(_long(data, offset + 4) & 7),
        size_of(control >> 5 & 7),
        size_of(control >> 12 & 7),
        bool(control & 0x10),
        bool(status2 & 0x400),
        _link(port, _long(data, offset + 0xC), _word(data, offset + 0x12)),
        control,
    )


def _link(port: Union[str, Unknown], capability: int, status: int) -> LinkEnd:
    if port in WITHOUT_LINK:
        none = Unknown("not applicable: a function of the root complex has no link")
        return LinkEnd(none, none, none, none)
    return LinkEnd(
        width_of(status >> 4 & 0x3F),
        speed_of(status & 0xF) if status >> 4 & 0x3F else NO_LINK,
        width_of(capability >> 4 & 0x3F),
        speed_of(capability & 0xF),
    )


def _extended(data: bytes, express: SeenExpress) -> Union[Dict[int, int], Unknown]:
    """Offset of the first of each extended capability; Unknown where that part cannot be read."""
    if isinstance(express, Unknown):
        return express
    if express is None:
        return {}  # conventional PCI has none
    if len(data) <= _PLAIN_BYTES + 4:
        return Unknown("only %d bytes of the configuration space can be read" % len(data))
    found: Dict[int, int] = {}
    offset, seen = _EXTENDED, 0
    while offset >= _EXTENDED and offset + 4 <= len(data) and seen < _LONGEST_EXTENDED_CHAIN:
        header = _long(data, offset)
        if header == 0xFFFFFFFF:
            return Unknown("error: the extended configuration space reads as all ones")
        if header & 0xFFFF and header & 0xFFFF != 0xFFFF:
            found.setdefault(header & 0xFFFF, offset)
        offset, seen = header >> 20 & 0xFFC, seen + 1
    if offset >= _EXTENDED:
        found[_CUT] = offset
    return found


def _absent(extended: Mapping[int, int]) -> Optional[Unknown]:
    """None only if the whole chain was seen, without the capability."""
    return Unknown("the list of extended capabilities cannot be read to its end") if _CUT in extended else None


def _acs(data: bytes, extended: Mapping[int, int]) -> SeenAcs:
    offset = extended.get(ECAP_ACS)
    if offset is None:
        return _absent(extended)
    if offset + 8 > len(data):
        return Unknown("the ACS registers could not be read")
    capability, control = _word(data, offset + 4), _word(data, offset + 6)
    return Acs(_names(capability, ACS_BITS), _names(control, ACS_BITS), offset, control)


def _aer(data: bytes, extended: Mapping[int, int]) -> SeenAer:
    offset = extended.get(ECAP_AER)
    if offset is None:
        return _absent(extended)
    if offset + 0x14 > len(data):
        return Unknown("the AER registers could not be read")
    uncorrectable, correctable = _long(data, offset + 4), _long(data, offset + 0x10)
    return Aer(
        tuple(name for bit, name in UNCORRECTABLE_BITS.items() if uncorrectable >> bit & 1),
        tuple(name for bit, name in CORRECTABLE_BITS.items() if correctable >> bit & 1),
    )


def _total_vfs(data: bytes, extended: Mapping[int, int]) -> SeenNumber:
    offset = extended.get(ECAP_SRIOV)
    if offset is None:
        return _absent(extended)
    return _word(data, offset + 0xE) if offset + 0x10 <= len(data) else Unknown("SR-IOV registers could not be read")


def _resizable_bars(data: bytes, extended: Mapping[int, int]) -> SeenBars:
    offset = extended.get(ECAP_REBAR)
    if offset is None:
        unseen = _absent(extended)
        return () if unseen is None else unseen
    if offset + 12 > len(data):
        return Unknown("the registers of resizable BARs could not be read")
    found = []
    for entry in range(min(_long(data, offset + 8) >> 5 & 7, 6)):
        place = offset + 4 + 8 * entry
        if place + 8 > len(data):
            break
        sizes, control = _long(data, place), _long(data, place + 4)
        # Bit 4 stands for 1 MB, each further one for twice as much; beyond 128 TB the control register goes on.
        supported = [1 << (bit + 16) for bit in range(4, 32) if sizes >> bit & 1]
        supported += [1 << (bit + 32) for bit in range(16, 32) if control >> bit & 1]
        found.append(ResizableBar(control & 7, 1 << ((control >> 8 & 0x3F) + 20), tuple(supported)))
    return tuple(found)


def _names(word: int, names: Tuple[str, ...]) -> Tuple[str, ...]:
    return tuple(name for bit, name in enumerate(names) if word >> bit & 1)
