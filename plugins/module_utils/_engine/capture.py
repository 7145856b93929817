# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Taking a capture: recording what the areas ask of a host, scrubbed and packed."""

from __future__ import annotations

import hashlib
import os
import re
import tarfile
from typing import Callable, Dict, List, Set

_MAC = re.compile(r"(?<![0-9A-Fa-f:])(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}(?![0-9A-Fa-f:])")
_UUID = re.compile(r"(?<![0-9A-Fa-f])[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}(?![0-9A-Fa-f])")
_MD_UUID = re.compile(r"(?<![0-9A-Fa-f:])(?:[0-9A-Fa-f]{8}:){3}[0-9A-Fa-f]{8}(?![0-9A-Fa-f:])")
_WWN = re.compile(r"(?<![0-9A-Za-z])(0x|(?:eui|naa|nvme|uuid)\.)([0-9A-Fa-f]{16,})")
_IPV4 = re.compile(
    r"(?<![0-9A-Za-z.])(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)(?![0-9A-Za-z.])"
)
_IPV6 = re.compile(r"(?<![0-9A-Fa-f:.])(?:[0-9A-Fa-f]{1,4}:){2,7}(?::?[0-9A-Fa-f]{1,4})(?![0-9A-Fa-f:.])")
_SERIAL_PROPERTY = re.compile(r"^E:(?:ID_SERIAL|ID_SERIAL_SHORT|ID_SCSI_SERIAL|SCSI_IDENT_SERIAL)=(.+)$", re.MULTILINE)
_HARMLESS_ADDRESSES = {"127.0.0.1", "0.0.0.0", "::1"}
_SHORTEST_SERIAL = 5


class Scrubber:
    """Replaces what names one machine by made-up words; the same thing gets the same word throughout."""

    def __init__(self, salt: str, serials: Set[str]) -> None:
        self.salt = salt
        # The longest first, since a short serial is often part of a long one.
        self.serials = sorted(serials, key=lambda word: (-len(word), word))

    def __call__(self, text: str) -> str:
        for serial in self.serials:
            text = text.replace(serial, "serial-" + self._word(serial, 10))
        for pattern, make in self._rules().items():
            text = pattern.sub(lambda match, make=make: make(match), text)  # type: ignore[misc]
        return text

    def _rules(self) -> Dict[re.Pattern[str], Callable[[re.Match[str]], str]]:
        return {
            _UUID: lambda match: self._like(match.group(0)),
            _MD_UUID: lambda match: self._like(match.group(0)),
            _WWN: lambda match: match.group(1) + self._like(match.group(2)),
            _MAC: lambda match: "02:" + self._like(match.group(0))[3:],
            _IPV4: self._ipv4,
            _IPV6: self._ipv6,
        }

    def _word(self, text: str, length: int) -> str:
        return hashlib.sha256((self.salt + text.lower()).encode("utf-8")).hexdigest()[:length]

    def _like(self, text: str) -> str:
        """Other hexadecimal digits in the same form."""
        digits = iter(self._word(text, 64) * 2)
        return "".join(char if char in "-:" else next(digits) for char in text)

    def _ipv4(self, match: re.Match[str]) -> str:
        number = int(self._word(match.group(0), 4), 16)
        # 198.18.0.0/15 is set aside for tests (RFC 2544).
        return match.group(0) if match.group(0) in _HARMLESS_ADDRESSES else "198.18.%d.%d" % divmod(number, 256)

    def _ipv6(self, match: re.Match[str]) -> str:
        # 2001:db8::/32 is set aside for documentation (RFC 3849).
        text = match.group(0)
        return text if "::" not in text and text.count(":") < 7 else "2001:db8::" + self._word(text, 4)


def serials_in(folder: str) -> Set[str]:
    """Serial numbers that a capture shows: udev properties and files named serial."""
    found: Set[str] = set()
    for path in _files(folder):
        text = _read(path)
        if os.path.basename(path) in ("serial", "product_serial", "chassis_serial", "board_serial"):
            found.add(text.strip())
        if "/run/udev/data/" in path:
            found.update(_SERIAL_PROPERTY.findall(text))
    return {word.strip() for word in found if len(word.strip()) >= _SHORTEST_SERIAL}


def scrub_folder(folder: str, salt: str) -> None:
    """Scrub all files, their names and the targets of links of a capture."""
    scrub = Scrubber(salt, serials_in(folder))
    for path in _files(folder):
        text = _read(path)
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(scrub(text))
    for here, folders, names in os.walk(folder, topdown=False):
        for name in folders + names:
            path = os.path.join(here, name)
            if os.path.islink(path):
                target = scrub(os.readlink(path))
                os.unlink(path)
                os.symlink(target, os.path.join(here, scrub(name)))
            elif scrub(name) != name:
                os.rename(path, os.path.join(here, scrub(name)))


def pack(folder: str, dest: str) -> None:
    """Pack a capture as .tar.gz, readable by its owner only."""
    fd = os.open(dest, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(fd, "wb") as file, tarfile.open(fileobj=file, mode="w:gz") as tar:
        tar.add(folder, arcname=".")


def _files(folder: str) -> List[str]:
    paths = [os.path.join(here, name) for here, _folders, names in os.walk(folder) for name in names]
    return [path for path in paths if not os.path.islink(path)]


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace", newline="") as file:
        return file.read()
