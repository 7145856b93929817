# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""memlock and nofile: for logins through PAM, for services through systemd's defaults.

They are two worlds: limits.d is read at each login and never by a service, DefaultLimit… is given
to each service that has no limit of its own and never to an ssh login.  Both are kept, or a job
would run in one of them only.  What runs already keeps the limits that it was started with.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Tuple

from .._engine.units import format_size, parse_size
from .._engine.values import BadWant, Finding, Step, Unknown
from .kernel_common import HEAD, file_steps, is_behind, knob, not_possible, overridden, unseen

PAM_FILE = "/etc/security/limits.d/90-gpufleet-kernel.conf"
MANAGER_FILE = "/etc/systemd/system.conf.d/90-gpufleet-kernel.conf"
PAM_SOURCE = "limits.conf(5), pam_limits(8)"
MANAGER_SOURCE = "systemd-system.conf(5)"
KEYS = {"memlock": "DefaultLimitMEMLOCK", "nofile": "DefaultLimitNOFILE"}
# The wildcard does not reach root (limits.conf(5) of Debian; harmless elsewhere), so it is named.
DOMAINS = ("*", "root")
UNLIMITED = -1
# 2^64-1 is how older systemd prints infinity.
_INFINITE = ("infinity", "unlimited", "18446744073709551615")
_WHY = "RDMA and pinned host memory fail, or fall back to slow copies, when memory may not be locked"

Limit = Tuple[int, int]
"""Soft and hard limit, in bytes or files; UNLIMITED for none."""


def parse_limit(name: str, text: str) -> Limit:
    """``unlimited``, ``64g``, ``1048576`` or ``soft:hard``.

    :raises ValueError: for anything else.
    """
    parts = text.split(":")
    if len(parts) > 2:
        raise ValueError("more than soft:hard")
    soft, hard = (_one(name, part.strip()) for part in (parts * 2)[:2])
    if hard != UNLIMITED and (soft == UNLIMITED or soft > hard):
        raise ValueError("the soft limit is above the hard one")
    return soft, hard


def check_want(want: Mapping[str, Any]) -> None:
    allowed = {
        "memlock": "unlimited, a size of whole KiB such as 64g, or soft:hard",
        "nofile": "a number of files from 1024 up such as 1048576, or soft:hard; unlimited is refused by the kernel",
    }
    for name in KEYS:
        text = knob(want, name)
        try:
            limit = parse_limit(name, text) if text is not None else (UNLIMITED, UNLIMITED)
        except ValueError:
            raise BadWant(name, want[name], allowed[name]) from None
        if text is not None and name == "nofile" and (UNLIMITED in limit or limit[0] < 1024):
            raise BadWant(name, want[name], allowed[name])
        if text is not None and name == "memlock" and any(part % 1024 for part in limit if part != UNLIMITED):
            raise BadWant(name, want[name], allowed[name])


def wanted(want: Mapping[str, Any]) -> Dict[str, Limit]:
    return {name: parse_limit(name, str(knob(want, name))) for name in KEYS if knob(want, name) is not None}


def render_pam(want: Mapping[str, Any]) -> Optional[str]:
    rows = []
    for name, (soft, hard) in wanted(want).items():
        for domain in DOMAINS:
            pairs = [("-", soft)] if soft == hard else [("soft", soft), ("hard", hard)]
            rows += ["%s %s %s %s\n" % (domain, kind, name, _pam_word(name, value)) for kind, value in pairs]
    return HEAD + "".join(rows) if rows else None


def render_manager(want: Mapping[str, Any]) -> Optional[str]:
    rows = []
    for name, (soft, hard) in wanted(want).items():
        words = [_manager_word(soft)] if soft == hard else [_manager_word(soft), _manager_word(hard)]
        rows.append("%s=%s\n" % (KEYS[name], ":".join(words)))
    return HEAD + "[Manager]\n" + "".join(rows) if rows else None


def plan(want: Mapping[str, Any], have: Mapping[str, Any]) -> List[Step]:
    if not wanted(want):
        return []
    steps = file_steps("kernel.limits.logins", PAM_FILE, have, render_pam(want), _WHY, PAM_SOURCE)
    steps += file_steps(
        "kernel.limits.services.file", MANAGER_FILE, have, render_manager(want), _WHY, MANAGER_SOURCE, "reload"
    )
    live = _live(have)
    if any(live.get(name) not in (None, limit) for name, limit in wanted(want).items()):
        steps.append(_reload(have, want))
    return steps


def judge(want: Mapping[str, Any], have: Mapping[str, Any]) -> List[Finding]:
    if not wanted(want):
        return []
    files = [(path, have["files"][path]) for path in (PAM_FILE, MANAGER_FILE)]
    findings = [unseen(path, text, "ls -l " + path, PAM_SOURCE) for path, text in files if isinstance(text, Unknown)]
    seen = have["limits"]
    if isinstance(seen["manager"], Unknown):
        findings.append(
            unseen("DefaultLimit…", seen["manager"], "systemctl show -p DefaultLimitMEMLOCK", MANAGER_SOURCE)
        )
    if isinstance(seen["pam_used"], Unknown):
        findings.append(unseen("pam_limits", seen["pam_used"], "grep pam_limits /etc/pam.d/*", PAM_SOURCE))
    elif not seen["pam_used"]:
        findings.append(_pam_unused())
    for name, limit in wanted(want).items():
        findings += _manager_overrides(name, limit, seen["manager_lines"])
        findings += _pam_overrides(name, limit, seen["pam_lines"])
    if "nofile" in wanted(want):
        findings += _above_nr_open(wanted(want)["nofile"][1], have)
    return findings


def adopt(have: Mapping[str, Any]) -> Dict[str, Any]:
    return {
        name: _text(name, limit)
        for name, limit in _live(have).items()
        if limit is not None and name in have["limits"]["asked"]
    }


def _one(name: str, word: str) -> int:
    if word in _INFINITE:
        return UNLIMITED
    if name == "nofile" and not (word.isascii() and word.isdigit()):
        raise ValueError("%r is no number of files" % word)
    return parse_size(word)


def _text(name: str, limit: Limit) -> str:
    words = [
        "unlimited" if part == UNLIMITED else format_size(part) if name == "memlock" else str(part) for part in limit
    ]
    return words[0] if words[0] == words[1] else ":".join(words)


def _pam_word(name: str, value: int) -> str:
    if value == UNLIMITED:
        return "unlimited"
    return str(value // 1024 if name == "memlock" else value)


def _manager_word(value: int) -> str:
    return "infinity" if value == UNLIMITED else str(value)


def _live(have: Mapping[str, Any]) -> Dict[str, Optional[Limit]]:
    """The manager's defaults, None for one that it does not show."""
    shown = have["limits"].get("manager")
    if not isinstance(shown, Mapping):
        return {}
    found: Dict[str, Optional[Limit]] = {}
    for name, key in KEYS.items():
        hard = shown.get(key, "")
        try:
            found[name] = parse_limit(name, "%s:%s" % (shown.get(key + "Soft") or hard, hard))
        except ValueError:
            found[name] = None
    return found


def _reload(have: Mapping[str, Any], want: Mapping[str, Any]) -> Step:
    live = _live(have)
    before = ", ".join("%s %s" % (KEYS[name], _text(name, limit)) for name, limit in sorted(live.items()) if limit)
    after = ", ".join("%s %s" % (KEYS[name], _text(name, limit)) for name, limit in sorted(wanted(want).items()))
    argv = ("systemctl", "daemon-reload")
    why = "systemd takes in its own configuration at a reload; services started from then on get the new limits"
    undo = Step(
        "undo.kernel.limits.services.reload", "run", "systemd manager", after, before, why, MANAGER_SOURCE, argv=argv
    )
    return Step(
        "kernel.limits.services.reload", "run", "systemd manager", before, after, why, MANAGER_SOURCE, "reload",
        argv=argv, undo=undo, requires=("kernel.limits.services.file",),
    )  # fmt: skip


def _manager_overrides(name: str, limit: Limit, lines: List[Any]) -> List[Finding]:
    rows = [
        line
        for line in lines
        if line.key == KEYS[name] and is_behind(line.file, MANAGER_FILE) and "/system.conf.d/" in line.file
    ]
    if not rows or _reads_as(name, rows[-1].value) == limit:
        return []
    last = rows[-1]
    why = "systemd reads this file after ours, so a reload would not bring the wanted limit"
    found = overridden(
        KEYS[name], _text(name, limit), last.file, last.number, last.value, why, "kernel_" + name, MANAGER_SOURCE
    )
    return [
        not_possible(
            found.id,
            found.subject,
            found.expected,
            found.observed,
            why,
            found.fix,
            found.source,
            ("kernel.limits.services",),
        )
    ]


def _pam_overrides(name: str, limit: Limit, lines: List[Any]) -> List[Finding]:
    findings: List[Finding] = []
    for line in lines:
        kinds = {"soft": limit[:1], "hard": limit[1:], "-": limit}[line.kind]
        if line.item != name or line.file == PAM_FILE or all(_pam_word(name, part) == line.value for part in kinds):
            continue
        subject = "%s of %s" % (name, line.domain)
        if line.domain in DOMAINS and "/limits.d/" in line.file and is_behind(line.file, PAM_FILE):
            why = "pam_limits reads this file after ours, so it wins at each login"
            findings.append(
                overridden(
                    subject, _text(name, limit), line.file, line.number, line.value, why, "kernel_" + name, PAM_SOURCE
                )
            )
        elif line.domain not in DOMAINS:
            findings.append(
                Finding(
                    "kernel.limit-of-its-own", "info", subject, _text(name, limit),
                    "%s:%d sets %s" % (line.file, line.number, line.value),
                    "a line for one user or group goes before the line for all", "nothing to do if it is meant so", PAM_SOURCE,
                )
            )  # fmt: skip
    return findings


def _reads_as(name: str, text: str) -> Optional[Limit]:
    try:
        return parse_limit(name, text)
    except ValueError:
        return None


def _pam_unused() -> Finding:
    return Finding(
        "kernel.pam-limits-unused", "fail", "/etc/pam.d", "pam_limits.so in the session stack", "no login stack asks for it",
        "without pam_limits no login gets what limits.d says",
        "add 'session required pam_limits.so' to the stack that sshd and login include", PAM_SOURCE,
    )  # fmt: skip


def _above_nr_open(hard: int, have: Mapping[str, Any]) -> List[Finding]:
    ceiling = have["limits"]["nr_open"]
    if not isinstance(ceiling, int) or hard <= ceiling:
        return []
    why = "setrlimit fails above fs.nr_open: services would not start and logins would be refused"
    fix = "lower kernel_nofile, or raise fs.nr_open in kernel_sysctls in a run before this one"
    observed = "fs.nr_open = %d" % ceiling
    return [not_possible("kernel.nofile-above-nr-open", "nofile", str(hard), observed, why, fix, "setrlimit(2)")]
