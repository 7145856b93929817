# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the registers of a PCI function mean: names of bits and codes, and the values that hold them.

Register layout: PCI Express base specification, chapter 7, as linux/include/uapi/linux/pci_regs.h names it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Mapping, Optional, Tuple, Union

from .._engine.values import Unknown
from .cpu import Number

Rate = Union[float, Unknown]

PORTS = {
    0x0: "endpoint",
    0x1: "legacy endpoint",
    0x4: "root port",
    0x5: "upstream port",
    0x6: "downstream port",
    0x7: "PCI bridge",
    0x8: "bridge from PCI",
    0x9: "integrated endpoint",
    0xA: "event collector",
}
# Functions inside the root complex have no link.
WITHOUT_LINK = ("integrated endpoint", "event collector")
SPEEDS_GTS: Mapping[int, float] = {1: 2.5, 2: 5.0, 3: 8.0, 4: 16.0, 5: 32.0, 6: 64.0, 7: 128.0}
NO_LINK = Unknown("not applicable: the link is down")
_WIDTHS = (1, 2, 4, 8, 12, 16, 32)

ACS_BITS = ("SrcValid", "TransBlk", "ReqRedir", "CmpltRedir", "UpstreamFwd", "EgressCtrl", "DirectTrans")
# The three that send traffic between peers up to the root (what the kernel's pci=disable_acs_redir= clears).
ACS_REDIRECTS = frozenset(("ReqRedir", "CmpltRedir", "EgressCtrl"))
UNCORRECTABLE_BITS: Mapping[int, str] = {
    4: "DLP", 5: "SDES", 12: "TLP", 13: "FCP", 14: "CmpltTO", 15: "CmpltAbrt", 16: "UnxCmplt", 17: "RxOF",
    18: "MalfTLP", 19: "ECRC", 20: "UnsupReq", 21: "ACSViol", 22: "UncorrIntErr", 23: "BlockedTLP",
    24: "AtomicOpBlocked", 25: "TLPBlockedErr", 26: "PoisonTLPBlocked",
}  # fmt: skip
CORRECTABLE_BITS: Mapping[int, str] = {
    0: "RxErr", 6: "BadTLP", 7: "BadDLLP", 8: "Rollover", 12: "Timeout", 13: "AdvNonFatalErr", 14: "CorrIntErr",
    15: "HeaderOF",
}  # fmt: skip


@dataclass(frozen=True)
class LinkEnd:
    """A link as one of its ends sees it: what it runs at, and what this end can do.

    A link that is down has no width ("not applicable"), which on an empty slot is no fault.
    """

    width: Number
    speed_gts: Rate
    max_width: Number
    max_speed_gts: Rate


@dataclass(frozen=True)
class Express:
    """The PCI Express capability.  ``port`` is one of PORTS; ``link`` is Unknown for functions without one."""

    offset: int
    port: Union[str, Unknown]
    has_slot: bool
    max_payload_supported_bytes: Number
    max_payload_bytes: Number
    max_read_request_bytes: Number
    is_relaxed_ordering: bool
    is_flit_mode: bool
    link: LinkEnd
    device_control: int


@dataclass(frozen=True)
class Acs:
    """Access Control Services: what the port can do and what is switched on.

    ``offset`` and ``control_word`` are None where only lspci's words are known.
    """

    capability: Tuple[str, ...]
    control: Tuple[str, ...]
    offset: Optional[int] = None
    control_word: Optional[int] = None

    @property
    def is_on(self) -> bool:
        return bool(self.control)

    @property
    def redirects(self) -> bool:
        """Traffic between two devices below is sent up to the root complex."""
        return bool(ACS_REDIRECTS & set(self.control))


@dataclass(frozen=True)
class Aer:
    """Advanced Error Reporting: the errors whose status bit is set, since it was last cleared."""

    uncorrectable: Tuple[str, ...]
    correctable: Tuple[str, ...]


@dataclass(frozen=True)
class ResizableBar:
    index: int
    size_bytes: int
    supported_bytes: Tuple[int, ...]


# None: the function does not have it.  Unknown: it could not be seen.
SeenAcs = Union[Acs, None, Unknown]
SeenAer = Union[Aer, None, Unknown]
SeenExpress = Union[Express, None, Unknown]
SeenNumber = Union[int, None, Unknown]
SeenBars = Union[Tuple[ResizableBar, ...], Unknown]


@dataclass(frozen=True)
class Config:
    """The configuration space of one function.  ``subsystem`` is empty for bridges."""

    size: int
    vendor_id: str
    device_id: str
    class_code: str
    is_bridge: bool
    subsystem: str
    express: SeenExpress
    acs: SeenAcs
    aer: SeenAer
    total_vfs: SeenNumber
    resizable_bars: SeenBars


def width_of(lanes: int) -> Number:
    if lanes == 0:
        return NO_LINK
    return lanes if lanes in _WIDTHS else Unknown("width x%d" % lanes)


def speed_of(code: int) -> Rate:
    return SPEEDS_GTS.get(code, Unknown("speed code %d" % code))


def size_of(code: int) -> Number:
    """Bytes of the three-bit codes of payloads and read requests."""
    return 128 << code if code < 6 else Unknown("reserved code %d" % code)
