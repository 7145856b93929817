# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Replaces what names one machine in the texts of a capture: by label (scrub_names.py), by form, and wherever it recurs."""

from __future__ import annotations

import ipaddress
import os
import re
from typing import Callable, Dict, Iterable, List, Tuple

from . import scrub_names
from .scrub_binary import vendor_words
from .scrub_secrets import without_secrets
from .stand_ins import StandIns

_HEX = "0-9A-Fa-f"
# A word begins; in names of units systemd writes a dash as \x2d.
_BEGINS = r"(?:(?<=\\x2d)|(?<![A-Za-z0-9]))"
# What a word is made of.
_PIECE = re.compile(r"(?<=\\)x2d|[A-Za-z0-9]+")
_GAP = re.compile(" +")
_SMALL = {ord(letter): letter.lower() for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}
_DASH = r"(?P<dash>-|\\x2d)"
_UUID = re.compile(
    r"(?:(?<=\\x2d)|(?<![%s]))[%s]{8}%s(?:[%s]{4}(?P=dash)){3}[%s]{12}(?![%s])" % (_HEX, _HEX, _DASH, _HEX, _HEX, _HEX)
)
_MD_UUID = re.compile(r"(?<![%s:])(?:[%s]{8}:){3}[%s]{8}(?![%s:])" % ((_HEX,) * 4))
_MAPPED = re.compile(_BEGINS + r"((?:LVM|mpath|CRYPT-[A-Z0-9]{2,8})(?:-|\\x2d))([A-Za-z0-9]{16,64})(?![A-Za-z0-9])")
_LVM = re.compile(_BEGINS + r"[A-Za-z0-9]{6}%s(?:[A-Za-z0-9]{4}(?P=dash)){5}[A-Za-z0-9]{6}(?![A-Za-z0-9])" % _DASH)
# A number by a registered scheme (NAA 1, 2, 3, 5, 6), or with the name of its scheme before it.
_WWN = re.compile(r"(?<![0-9A-Za-z])((?:eui|naa|nvme|uuid)\.(?:0x)?|0x(?=[1-356]))([%s]{16,64})(?![0-9A-Za-z])" % _HEX)
# Vendor, serial number, model: the latter two as the hexadecimal of their letters.
_NVME_WWID = re.compile(r"(?<![0-9A-Za-z])(nvme\.[0-9a-f]{4}-)([0-9a-f]{2,80})(?=-[0-9a-f]{2,80}-[0-9a-f]{8})")
# The kernel names a subsystem without a name of its own by its vendors, its serial number and its model.
_NQN = re.compile(r"(nqn\.\d{4}[.-]\d\d\.org\.nvmexpress:[0-9a-f]{8})([^\s\"]{5,20})")
_GUID = re.compile(
    r"((?:guid|\bpdi)\w{0,8}[\"']?>?[ \t]{0,60}[:=]?[ \t]{0,60}[\"']?(?:0x)?)([%s]{16}|[%s]{4}(?::[%s]{4}){3})(?![%s:])"
    % ((_HEX,) * 4),
    re.IGNORECASE,
)
_GUID_FILE = re.compile(r"(?:0x)?[%s]{16}|[%s]{4}(?::[%s]{4}){3}" % ((_HEX,) * 3))
# Two digits each, with colons or dashes: MACs, GUIDs, hardware addresses of InfiniBand.
_OCTETS = re.compile(
    r"(?<![%s:-])[%s]{2}(?P<mark>[:-])[%s]{2}(?:(?P=mark)[%s]{2}){4,18}(?![%s:-])" % ((_HEX,) * 5), re.ASCII
)
_IN_NAME = re.compile(r"(?<![A-Za-z0-9])((?:en|ib|ww|wl|roce|iw|opa)x)([0-9a-f]{16}|[0-9a-f]{12})(?![A-Za-z0-9])")
_QUAD = r"(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)"
# One address or a range of them; "9.1.0.70-1" and the like are versions.
_IPV4 = re.compile(
    r"(?<![0-9A-Za-z._+~-])(?<!::ffff:)(%s)(?:-(%s))?(?![0-9A-Za-z_+~]|\.\d|-\w)" % (_QUAD, _QUAD), re.ASCII
)
_OF_VERSION = re.compile(
    r"(?:version|firmware|bios|driver|fw[_ ]?ver|rev(?:ision)?)\W{0,4}(?:\w{1,8}\W{1,3})?$", re.IGNORECASE
)
_IPV6 = re.compile(r"(?<![\w:.])(?:[%s]{0,4}:){2,7}(?:%s|[%s]{0,4})(?![\w:]|\.\d)" % (_HEX, _QUAD, _HEX), re.ASCII)
_ALL_OCTETS = re.compile(r"[%s]{2}(?::[%s]{2}){7}" % (_HEX, _HEX))
# Vital product data as lspci prints it.
_VENDOR_FIELD = re.compile(r"(\[[VY][0-9A-Z]\] [^\n:]{1,40}: )(.{12,})")
# Places where four numbers with dots are a version: packages, modules, libraries, what the kernel tells of hardware.
_NO_ADDRESSES = (
    "/sys/",
    "/lib/",
    "/usr/include/",
    "/usr/lib/",
    "/usr/lib64/",
    "/usr/local/",
    "/opt/",
    "/var/lib/dkms/",
)
_VERSION_TOOLS = ("dpkg", "dpkg-query", "rpm", "apt", "dkms", "modinfo", "nvidia-smi", "lspci", "nvme")


class Scrubber:
    """``serials`` and ``hosts`` are looked for everywhere."""

    def __init__(self, stand_ins: StandIns, serials: Iterable[str], hosts: Iterable[str]) -> None:
        self._make = stand_ins
        names = {form for name in hosts for form in (name, name.partition(".")[0])}
        self._words = _by_first_piece(serials, stand_ins.serial)
        for piece, words in _by_first_piece(filter(scrub_names.is_host, names), stand_ins.host).items():
            self._words.setdefault(piece, []).extend(words)
        domains = sorted({name.partition(".")[2].lower() for name in names if name.count(".") >= 2}, key=len)
        self._domains = [
            (domain, re.compile(r"(?<![\w.-])(?:[A-Za-z0-9][\w-]{0,62}\.){0,9}%s(?![\w-])" % re.escape(domain), re.I))
            for domain in domains
        ]

    def file(self, path: str, text: str) -> str:
        """A file by its path on the host."""
        name = os.path.basename(path)
        if name in ("hostname", "domainname", "machine-id") or name.endswith(("serial", "serial_number", "asset_tag")):
            word = text.strip()
            made = self._make.host(word) if name in ("hostname", "domainname") else self._make.serial(word)
            text = text if scrub_names.is_nobodys(word) or word == "localhost" else text.replace(word, made)
        if name.endswith("guid"):
            text = _GUID_FILE.sub(lambda match: self._guid(match.group()), text)
        if name == "node_desc":
            text = re.sub(r"^\S+(?= (?:mlx|HCA|hfi|bnxt|irdma))", lambda match: self._make.host(match.group()), text)
        text = self.text(text, path)
        return text if path.startswith(_NO_ADDRESSES) else self._addresses(text)

    def command(self, tool: str, text: str) -> str:
        """What a tool printed."""
        text = _without_oem_data(text) if tool == "dmidecode" else text
        text = self.text(text)
        return text if tool in _VERSION_TOOLS else self._addresses(text)

    def name(self, name: str) -> str:
        """A part of a path, or an argument of a command."""
        return self._by_form(self._recurring(name))

    def text(self, text: str, path: str = "") -> str:
        text = without_secrets(text, path)
        text = scrub_names.relabelled(text, self._make.serial)
        text = scrub_names.renamed(text, path, self._make.host)
        text = _VENDOR_FIELD.sub(lambda match: match.group(1) + vendor_words(match.group(2), self._make.token), text)
        return self._by_form(self._recurring(text))

    def _recurring(self, text: str) -> str:
        text = self._without_words(text)
        for domain, pattern in self._domains:
            if domain in _lower(text):
                text = pattern.sub(lambda match: self._make.host(match.group()), text)
        return text

    def _without_words(self, text: str) -> str:
        """In one pass, since a log may hold a megabyte and a thousand words."""
        parts: List[str] = []
        done = 0
        small = _lower(text)
        for piece in _PIECE.finditer(small):
            start = piece.start()
            for word, made in self._words.get(piece.group(), ()) if start >= done else ():
                end = start + len(word)
                if small.startswith(word, start) and not text[end : end + 1].isalnum():
                    gap = _GAP.match(text, end)
                    parts += [text[done:start], _in_column(made, len(word), gap.group() if gap else "")]
                    done = gap.end() if gap else end
                    break
        return "".join(parts) + text[done:] if parts else text

    def _by_form(self, text: str) -> str:
        like = self._make.like
        text = _UUID.sub(lambda match: _redashed(match, like), text)
        text = _MD_UUID.sub(lambda match: like(match.group()), text)
        text = _MAPPED.sub(lambda match: match.group(1) + self._make.token(match.group(2)), text)
        text = _LVM.sub(lambda match: _redashed(match, self._letters), text)
        text = _NVME_WWID.sub(lambda match: match.group(1) + like(match.group(2)), text)
        text = _NQN.sub(lambda match: match.group(1) + self._make.serial(match.group(2)), text)
        text = _GUID.sub(lambda match: match.group(1) + self._guid(match.group(2)), text)
        text = _WWN.sub(lambda match: match.group(1) + like(match.group(2)), text)
        text = _OCTETS.sub(self._octets, text)
        text = _IN_NAME.sub(lambda match: match.group(1) + self._digits(match.group(2)), text)
        return _IPV6.sub(self._ipv6, text)

    def _addresses(self, text: str) -> str:
        return _IPV4.sub(self._ipv4, text)

    def _letters(self, text: str) -> str:
        made = iter(self._make.token(text))
        return "".join(char if char == "-" else next(made) for char in text)

    def _guid(self, text: str) -> str:
        head, digits = ("0x", text[2:]) if text.lower().startswith("0x") else ("", text)
        made = self._digits(digits.replace(":", ""))
        return head + (":".join(made[place : place + 4] for place in range(0, 16, 4)) if ":" in digits else made)

    def _digits(self, text: str) -> str:
        raw = bytes.fromhex(text)
        made = self._make.mac(raw) if len(raw) == 6 else self._make.guid(raw)
        return made.hex() if text == text.lower() else made.hex().upper()

    def _octets(self, match: re.Match[str]) -> str:
        text, mark = match.group(), match.group("mark")
        raw = bytes.fromhex(text.replace(mark, ""))
        if len(raw) == 6:
            made = self._make.mac(raw)
        elif len(raw) == 7 and raw[0] == 1:  # behind the kind of hardware: client identifiers, BOOTIF=
            made = raw[:1] + self._make.mac(raw[1:])
        elif len(raw) == 8:
            made = self._make.guid(raw)
        elif len(raw) == 14:  # destination, source and type, as firewalls log them
            made = self._make.mac(raw[:6]) + self._make.mac(raw[6:12]) + raw[12:]
        elif len(raw) == 20 and raw[4:6] == b"\xfe\x80":  # InfiniBand: queue pair and GID
            made = raw[:12] + self._make.guid(raw[12:])
        else:
            return text
        digits = made.hex() if text == text.lower() else made.hex().upper()
        return mark.join(digits[place : place + 2] for place in range(0, len(digits), 2))

    def _ipv4(self, match: re.Match[str]) -> str:
        if _OF_VERSION.search(match.string[max(0, match.start() - 40) : match.start()].rpartition("\n")[2]):
            return match.group()
        return "-".join(self._make.ipv4(address) for address in match.groups() if address)

    def _ipv6(self, match: re.Match[str]) -> str:
        text = match.group()
        if _ALL_OCTETS.fullmatch(text):
            return text
        try:
            address = ipaddress.IPv6Address(text)
        except ValueError:
            return text
        made = self._make.ipv6(address)
        if made == address:
            return text
        if "." in text:
            return "::ffff:%s" % made.ipv4_mapped if made.ipv4_mapped else str(made)
        # Not by ipaddress: from Python 3.13 on it writes such an address with the IPv4 one in dots.
        groups = ["%02x%02x" % pair for pair in zip(made.packed[::2], made.packed[1::2])]
        if len(text) == 39:
            return ":".join(groups)
        return "::ffff:%x:%x" % (int(groups[6], 16), int(groups[7], 16)) if made.ipv4_mapped else made.compressed


def _lower(text: str) -> str:
    """Small letters, of which there are as many: str.lower makes two of some."""
    return text.translate(_SMALL)


def _by_first_piece(words: Iterable[str], make: Callable[[str], str]) -> Dict[str, List[Tuple[str, str]]]:
    """Words in small letters with their stand-ins by what they begin with, the longest first: it may hold a short one."""
    found: Dict[str, List[Tuple[str, str]]] = {}
    for word in sorted(set(map(_lower, words)), key=lambda word: (-len(word), word)):
        piece = _PIECE.match(word)
        if piece:
            found.setdefault(piece.group(), []).append((word, make(word)))
    return found


def _in_column(made: str, width: int, gap: str) -> str:
    """Two spaces behind a word are the gap before the next column, which stays where it is if there is room."""
    return made + gap if len(gap) < 2 else made.ljust(width + len(gap) - 1) + " "


def _redashed(match: re.Match[str], make: Callable[[str], str]) -> str:
    dash = match.group("dash")
    return make(match.group().replace(dash, "-")).replace("-", dash)


_OEM_STRINGS = re.compile(r"^(\t(?:String|Option) \d{1,3}: ).+$", re.MULTILINE)
_OEM_STRUCTURE = re.compile(
    r"^(Handle .*\n(?:OEM-specific Type|Unknown Type|Inactive).*\n)((?:\t.*\n?)*)", re.MULTILINE
)
_BYTE = re.compile(r"(?<!\w)[0-9A-F]{2}(?!\w)")
_HEADER_BYTES = 4


def _without_oem_data(text: str) -> str:
    """dmidecode prints vendors' own structures as bytes and texts; what they hold only the vendor knows."""

    def other(match: re.Match[str]) -> str:
        data, heading, strings = match.group(2).partition("\tStrings:\n")
        place = iter(range(len(data)))
        data = _BYTE.sub(lambda byte: byte.group() if next(place) < _HEADER_BYTES else "00", data)
        return match.group(1) + data + heading + re.sub(r"(?m)^\t\t.+$", "\t\tscrubbed", strings)

    return _OEM_STRUCTURE.sub(other, _OEM_STRINGS.sub(r"\1scrubbed", text))
