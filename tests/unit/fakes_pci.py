# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PCI as sysfs shows it: configuration spaces byte for byte, functions below each other, and setpci's masked writes.

Layout of registers: linux/include/uapi/linux/pci_regs.h.
"""

from __future__ import annotations

import os
import re
import struct
from pathlib import Path
from typing import Sequence

from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import Result

BUS = "sys/bus/pci/devices"
ENDPOINT, ROOT_PORT, UPSTREAM, DOWNSTREAM = 0x0, 0x4, 0x5, 0x6
CODES = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5}
EXPRESS = 0x60
# MaxReadReq 512 bytes, MaxPayload 256 bytes, NoSnoop, RlxdOrd.
CONTROL = 0x2930
AER, ACS, SRIOV, REBAR = 0x0001, 0x000D, 0x0010, 0x0015


def space(
    ids: str = "10de:2330",
    class_code: int = 0x030200,
    port: int = ENDPOINT,
    now: tuple[int, float] = (16, 32.0),
    most: tuple[int, float] = (16, 32.0),
    acs: tuple[int, int] | None = None,
    size: int = 4096,
    aer: tuple[int, int] = (1 << 20, 1 << 0 | 1 << 12),
    subsystem: str = "",
    vfs: int | None = None,
    bars_mib: Sequence[tuple[int, int]] = (),
) -> bytes:
    """A configuration space with PCI Express at 0x60 and AER at 0x100; ``acs`` is its capability and control word.

    ``bars_mib`` are BARs that can be resized: (size now, largest size), in MiB.
    """
    data = bytearray(4096)
    vendor, device = (int(word, 16) for word in ids.split(":"))
    struct.pack_into("<HHHH", data, 0, vendor, device, 0x0406, 0x0010)
    data[0x09:0x0C] = class_code.to_bytes(3, "little")
    data[0x0E] = 1 if class_code >> 8 == 0x0604 else 0
    if not data[0x0E]:
        words = [int(word, 16) for word in (subsystem or "%04x:16c1" % vendor).split(":")]
        struct.pack_into("<HH", data, 0x2C, *words)
    data[0x34] = 0x40
    data[0x40:0x42] = bytes((0x01, EXPRESS))
    lnkcap, lnksta = CODES[most[1]] | most[0] << 4, CODES[now[1]] | now[0] << 4
    struct.pack_into("<BBHIHH", data, EXPRESS, 0x10, 0, 2 | port << 4, 0x1, CONTROL, 0)
    struct.pack_into("<IHH", data, EXPRESS + 0xC, lnkcap, 0, lnksta)
    found = [(AER, 2, struct.pack("<IIIIII", aer[0], 0, 0, aer[1], 0, 0) + bytes(0x2C))]
    if acs:
        found.append((ACS, 1, struct.pack("<HH", *acs)))
    if vfs is not None:
        found.append((SRIOV, 1, struct.pack("<IHHHH", 0, 0, 0, vfs, vfs) + bytes(0x30)))
    if bars_mib:
        found.append((REBAR, 1, b"".join(_bar(place, bars_mib) for place in range(len(bars_mib)))))
    _chain(data, found)
    return bytes(data[:size])


def _bar(place: int, bars_mib: Sequence[tuple[int, int]]) -> bytes:
    """Bit 4 of the first word stands for 1 MiB; the second holds the number of BARs, which BAR, and its size."""
    now, most = bars_mib[place]
    sizes = sum(1 << (4 + bit) for bit in range(min(most, 1 << 27).bit_length()))
    control = place | len(bars_mib) << 5 | (now.bit_length() - 1) << 8
    return struct.pack("<II", sizes & 0xFFFFFFF0, control)


def _chain(data: bytearray, found: Sequence[tuple[int, int, bytes]]) -> None:
    place = 0x100
    for number, (capability, version, body) in enumerate(found):
        after = place + (4 + len(body) + 7) // 8 * 8
        following = after if number + 1 < len(found) else 0
        struct.pack_into("<I", data, place, capability | version << 16 | following << 20)
        data[place + 4 : place + 4 + len(body)] = body
        place = after


def link(now: str, most: str) -> dict[str, str]:
    """Attributes of a link: ``8@32.0`` are 8 lanes at 32 GT/s."""
    width, speed = now.split("@")
    max_width, max_speed = most.split("@")
    return {
        "current_link_width": width + "\n",
        "current_link_speed": speed + " GT/s PCIe\n",
        "max_link_width": max_width + "\n",
        "max_link_speed": max_speed + " GT/s PCIe\n",
    }


def pair(text: str) -> tuple[int, float]:
    width, speed = text.split("@")
    return int(width), float(speed)


def add(root: Path, path: str, config: bytes, attributes: dict[str, str] | None = None) -> str:
    """A function below another one: ``pci0000:15/0000:15:01.0/0000:16:00.0``."""
    address = path.rsplit("/", 1)[-1]
    folder = root / "sys/devices" / path
    folder.mkdir(parents=True)
    (folder / "config").write_bytes(config)
    for name, text in (attributes or {}).items():
        (folder / name).write_text(text, encoding="utf-8")
    (root / BUS).mkdir(parents=True, exist_ok=True)
    os.symlink("../../../devices/" + path, root / BUS / address)
    return address


# setpci


_SETPCI = re.compile(r"(CAP_EXP|ECAP_ACS)\+([0-9a-f]+)\.w=([0-9a-f]+):([0-9a-f]+)")


def setpci(root: Path, argv: Sequence[str]) -> Result:
    """``setpci -s ADDRESS REGISTER=VALUE:MASK``: bits outside of the mask stay, as in the real one."""
    found = _SETPCI.fullmatch(argv[3]) if len(argv) == 4 and argv[1] == "-s" else None
    if found is None:
        return Result(1, "", "setpci: Unable to parse %s" % " ".join(argv[1:]))
    place = root / BUS / argv[2] / "config"
    if not place.is_file():
        return Result(1, "", "setpci: Warning: No devices selected for %s" % argv[3])
    data = bytearray(place.read_bytes())
    start = capability(data, found.group(1))
    if start is None:
        return Result(1, "", "setpci: %s: Instance #0 of %s not found" % (argv[2], found.group(1)))
    offset, value, mask = start + int(found.group(2), 16), int(found.group(3), 16), int(found.group(4), 16)
    before = int.from_bytes(data[offset : offset + 2], "little")
    data[offset : offset + 2] = (before & ~mask | value & mask).to_bytes(2, "little")
    place.write_bytes(bytes(data))
    return Result(0, "", "")


def capability(data: bytes, name: str) -> int | None:
    """Offset of a capability by its name in setpci."""
    is_plain = name == "CAP_EXP"
    wanted = {"CAP_EXP": 0x10, "ECAP_ACS": ACS, "ECAP_REBAR": REBAR}[name]
    place = data[0x34] if is_plain else 0x100
    while place:
        head = int.from_bytes(data[place : place + 4], "little")
        if head & (0xFF if is_plain else 0xFFFF) == wanted:
            return place
        place = head >> 8 & 0xFF if is_plain else head >> 20
    return None


def word(data: bytes, name: str, offset: int) -> int | None:
    start = capability(data, name)
    return None if start is None else int.from_bytes(data[start + offset : start + offset + 2], "little")


def set_acs(data: bytes, control: int) -> bytes:
    """A configuration space with another control word of ACS, as firmware or the kernel left it."""
    start = capability(data, "ECAP_ACS")
    assert start is not None, "a function without ACS"
    return data[: start + 6] + control.to_bytes(2, "little") + data[start + 8 :]


def set_bar(data: bytes, now_mib: int, most_mib: int) -> bytes:
    """A configuration space whose (one) BAR that can be resized has other sizes."""
    start = capability(data, "ECAP_REBAR")
    assert start is not None, "a function without BARs that can be resized"
    return data[: start + 4] + _bar(0, [(now_mib, most_mib)]) + data[start + 12 :]
