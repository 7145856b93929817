# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Takes secrets out of the texts of a capture: passwords, tokens, keys and hashes, wherever they stand.

A capture holds what an audit reads, and that is more than settings: configuration of others, command lines of processes,
environments, logs.  Rather too much goes than too little: none of what follows a word for a secret is read by a judge.
"""

from __future__ import annotations

import re
from typing import Tuple

GONE = "scrubbed"

# Words for a secret: the long ones wherever they stand in a name (dbPassword, wsrep_sst_auth), short ones as a part of it.
_WORD = (
    r"(?:password|passwd|passphrase|secret|token|credential|sst[_-]auth|"
    r"(?<![A-Za-z])(?:pass|pwd|psk|community|userpw)(?![A-Za-z])|"
    r"(?:api|access|private|auth|account|encryption|shared|signing|license)[_-]?key)"
)
# The name may go on: password2, secret_access_key, AccessKeyId.
_KEY = re.compile(
    r"(?i:%s)[\w-]{0,24}(?P<quote>[\"']?)(?P<mark>[ \t]{0,20}(?:=>|:=|[=:])[ \t]{0,20})(?P<open>[\"']?)" % _WORD,
    re.ASCII,
)
# An option and its value as two words; process command lines have a NUL between them.
_OPTION = re.compile(
    r"(?<![\w-])(--?[\w-]{0,24}(?i:%s)[\w-]{0,24}(?:[ \t]{1,8}|\0)[\"']?)(?![-\"'])([^\s\0]{1,400})" % _WORD, re.ASCII
)
# What a text says of a secret without any mark of an assignment; all of group 2 goes.
_ROWS: Tuple[Tuple[str, str], ...] = (
    # MariaDB and MySQL, in the server's log of its first start, in SQL, and on the command line
    (r"(?i)(temporary password [^\n]{0,80}?: {0,4})(\S{1,200})", r"\1"),
    (r"(?i)(identified (?:by|with [\w'\"]{1,40} (?:by|as)) (?:password )?)('[^'\n]{1,200}'|\"[^\"\n]{1,200}\")", r"\1"),
    (r"((?:^|[\s/\0])(?:mysql|mariadb)[\w-]{0,24}(?=[\s\0])[^\n]{0,400}?[\s\0]-p)([^\s\0-][^\s\0]{0,200})", r"\1"),
    # Tools with a short option for it
    (r"((?:^|[\s/\0])(?:ipmitool|sshpass|redis-cli|smbclient)(?=[\s\0])[^\n]{0,400}?[\s\0]-[Ppa][ \t\0]?)"
     r"([^\s\0-][^\s\0]{0,200})", r"\1"),
    (r"((?:^|[\s/\0])(?:curl|wget)(?=[\s\0])[^\n]{0,400}?[\s\0](?:-u|--user)[ \t\0=]?[^\s\0:]{0,80}:)([^\s\0]{1,200})", r"\1"),
    # HTTP; a file of logins (netrc); SNMP
    (r"(?i)(authorization[\"']?[ \t]{0,8}[:=][ \t]{0,8}[\"']?(?:(?:basic|bearer|digest|token)[ \t]{1,8})?)([^\s\"']{1,400})",
     r"\1"),
    (r"(?i)(\blogin[ \t]{1,20}\S{1,80}[ \t]{1,20}password[ \t]{1,20})(\S{1,200})", r"\1"),
    (r"(?i)(\br[ow]community6?[ \t]{1,20})(\S{1,80})", r"\1"),
    # A user and his secret in an address: proxies, repositories, shares, iSCSI targets of dracut
    (r"(://)((?:[^\s/:\"'<>]{0,80}:[^\s\"'<>]{1,200}|[^\s/\"'<>@]{1,200})@)", r"\1@"),
    (r"(?i)(\biscsi:)([^\s/\"'<>@]{1,200}@)", r"\1@"),
    # Hashes: crypt(5), GRUB, LDAP, MySQL's native ones
    (r"()(\$(?:\d{1,2}[abxy]?|y|gy|argon2\w{0,2}|pbkdf2[\w-]{0,12}|scrypt|sha\d{1,3}|md5)\$[\w./+=,$-]{8,300})", r"\1"),
    (r"(grub\.pbkdf2\.)([\w.]{20,})", r"\1"),
    (r"(\{(?:S?SHA\d{0,3}|S?MD5|CRYPT)\})([\w./+=$-]{8,300})", r"\1"),
    (r"(?<![\w*])(\*)([0-9A-F]{40})(?![0-9A-F])", r"\1"),
)  # fmt: skip
_PATTERNS = tuple((re.compile(pattern, re.ASCII | re.MULTILINE), kept) for pattern, kept in _ROWS)
_BLOCK = re.compile(r"(-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,20}-----)")
_BLOCK_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,20}-----")
# What stands there where no secret does: states of a password in firmware, switches.
_NO_SECRET = re.compile(r"(?i)disabled|enabled|unknown|not implemented|none|null|yes|no|true|false|on|off|scrubbed|\W*")
# Files whose rows are words: a secret ends with its word, in options of mounts (that mount(8) splits at commas) before it.
_OF_WORDS = ("cmdline", "grub.cfg", "grub")
_OF_OPTIONS = ("fstab", "mounts", "mountinfo", "mtab")


def without_secrets(text: str, path: str = "") -> str:
    """A text without its secrets; ``path`` is the file that it is in, or empty for what a command printed."""
    text = _without_blocks(text)
    for pattern, kept in _PATTERNS:
        if kept == r"\1@":
            text = pattern.sub(lambda match: match.group(1) + GONE + "@", text)
        else:
            text = pattern.sub(_second_gone, text)
    text = _OPTION.sub(lambda match: match.group(1) + GONE, text)
    return _without_values(text, path.rpartition("/")[2])


def _second_gone(match: re.Match[str]) -> str:
    value = match.group(2)
    return match.group(1) + (value[0] + GONE + value[0] if value[:1] in "'\"" else GONE)


def _without_blocks(text: str) -> str:
    """Key blocks, also one whose end was cut off."""
    head = _BLOCK.search(text)
    while head:
        end = _BLOCK_END.search(text, head.end())
        text = text[: head.end()] + "\n" + GONE + "\n" + (text[end.start() :] if end else "")
        head = _BLOCK.search(text, head.end())
    return text


def _without_values(text: str, name: str) -> str:
    """What is assigned to a name with a word for a secret in it; ``name`` is that of the file."""
    parts = []
    done = 0
    for match in _KEY.finditer(text):
        start = match.end()
        if start < done:
            continue
        end = _end_of_value(text, match, name)
        if _NO_SECRET.fullmatch(text[start:end]):
            continue
        parts += [text[done:start], GONE]
        done = end
    return "".join(parts) + text[done:] if parts else text


def _end_of_value(text: str, match: re.Match[str], name: str) -> int:
    start, quote = match.end(), match.group("open")
    line_end = min(_find(text, mark, start) for mark in "\n\0")
    if quote:
        place = start
        while place < line_end and text[place] != quote:
            place += 2 if text[place] == "\\" else 1
        return min(place, line_end)
    marks = ""
    if match.group("quote"):
        # A number or a word of JSON.
        marks = ",}]"
    elif name in _OF_OPTIONS:
        marks = " \t,"
    elif _quote_before(text, match.start()):
        # All of the assignment is quoted, as systemd writes it.
        marks = _quote_before(text, match.start())
    elif name in _OF_WORDS or not _begins_line(text, match.start()):
        marks = " \t\"'"
    return min([_find(text, mark, start, line_end) for mark in marks] + [line_end])


def _quote_before(text: str, start: int) -> str:
    """The quotation mark before the name that has a word for a secret at ``start``, or nothing."""
    before = re.sub(r"[\w.-]*\Z", "", text[max(0, start - 80) : start], flags=re.ASCII)[-1:]
    return before if before in ("'", '"') else ""


def _begins_line(text: str, start: int) -> bool:
    """Whether a name begins its line, or its word of an environment: then all that follows is its value."""
    before = re.split("[\n\0]", text[max(0, start - 80) : start])[-1].lstrip(" \t\"'-#;")
    return re.fullmatch(r"(?:export )?[\w.-]*", before, re.ASCII) is not None


def _find(text: str, mark: str, start: int, end: int = -1) -> int:
    limit = len(text) if end < 0 else end
    place = text.find(mark, start, limit)
    return limit if place < 0 else place
