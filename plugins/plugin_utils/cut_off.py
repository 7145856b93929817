# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A module that gives no answer: its host froze, or it was killed, or could not even start.

What it did is known to the journal on the host and not here, so the report says unknown, and what to do.
"""

from __future__ import annotations

import contextlib
import re
import signal
import time
from collections.abc import Iterator, Mapping
from typing import Any

from ansible_collections.gpufleet.host.plugins.plugin_utils.fleet_unreachable import ENTRY_CAUSES
from ansible_collections.gpufleet.host.plugins.plugin_utils.fleet_unreachable import cause_of as no_entry

# How long a module may take before its host is taken for frozen.  All areas together have 720 s for their observations
# (120 s each) and a host's facts some more; what changes a host may make filesystems, each within half an hour.
DEADLINE_S = {"looks": 1800, "changes": 14400}
VARIABLE = "gpufleet_deadline_s"

_LOOKS = ("node_audit", "node_audit_tuning", "node_capture")
_FULL = r"No space left on device|Disk quota exceeded"
# Words in what came back, why there is no answer, and the next command.
_CAUSES = (
    (
        r"Read-only file system",
        "a filesystem that it needs is read-only, most often the root filesystem after an error of its disk",
        "findmnt -no OPTIONS / (is it ro?), then dmesg --level=err,warn | tail",
    ),
    (_FULL, "a filesystem that it needs is full", "df -h / /tmp /var/tmp; df -i / /tmp /var/tmp"),
    (
        r"No usable temporary directory|[Ff]ailed to create temporary directory|temporary directory.* empty string",
        "nothing can be written to its temporary folder: the root filesystem is read-only or full, or the folder is not the "
        "user's",
        "findmnt -no OPTIONS / (is it ro?), df -h / /tmp, then dmesg --level=err,warn | tail",
    ),
    (r"MemoryError|Cannot allocate memory", "the host had no memory left", "free -m; dmesg | grep -i 'out of memory'"),
    (
        r"\bKilled\b|^rc (?:-9|137)$",
        "its Python was killed: by hand, or by the kernel for want of memory",
        "dmesg | grep -i 'killed process'",
    ),
)
# The shell found no Python, or may not run it; who may not become root is told so by sudo: nothing was started then.
_NOT_STARTED = (126, 127)
_REFUSED = r"^(?:sudo|su|doas|pmrun|dzdo): |^Sorry, try again"
_OTHER = (
    "its Python ended without an answer",
    "see what -vvv shows of it, and dmesg --level=err,warn | tail on the host",
)


class Overdue(BaseException):
    """The deadline is over; no ``except Exception`` on the way may take it for its own."""


@contextlib.contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Raise Overdue when the body takes longer; 0 is no deadline.  Ansible runs an action in a process of its own."""

    def ring(_number: int, _frame: Any) -> None:
        raise Overdue

    try:
        before = signal.signal(signal.SIGALRM, ring) if seconds else None
    except ValueError:  # not the main thread: Ansible's timeout of tasks does not work there either
        seconds = 0
    if seconds:
        signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        if seconds:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)


def seconds_for(name: str, is_check: bool, given: Any) -> float:
    """The deadline of a module; ValueError for one that cannot be meant."""
    if given is None:
        return DEADLINE_S["looks" if is_check or name in _LOOKS else "changes"]
    try:
        seconds = float(given)
    except (TypeError, ValueError):
        seconds = -1.0
    if not 0 <= seconds < 1e9:
        raise ValueError(
            "%s: %r is not possible; allowed: a number of seconds, 0 for no deadline. Nothing was changed."
            % (VARIABLE, given)
        )
    return seconds


def is_cut_off(result: Mapping[str, Any]) -> bool:
    """Whether a module was started and gave no answer; Ansible keeps what it printed instead of JSON in this key."""
    if not result.get("failed") or "module_stdout" not in result or result.get("rc") in _NOT_STARTED:
        return False
    said = "%s\n%s" % (result.get("module_stderr") or "", result["module_stdout"])
    # A Python that is too old starts nothing of ours either.
    return not (re.search(_REFUSED, said, re.MULTILINE) or no_entry(said, ENTRY_CAUSES))


def cause_of(result: Mapping[str, Any]) -> tuple[str, str]:
    """Why there was no answer, and the next command on the host."""
    said = "\n".join(str(result.get(key) or "") for key in ("module_stderr", "module_stdout", "msg"))
    text = "%s\nrc %s" % (said, result.get("rc", ""))
    for words, why, command in _CAUSES:
        if re.search(words, text, re.MULTILINE):
            return why, command
    last = [line.strip() for line in str(result.get("module_stderr") or "").splitlines() if line.strip()][-1:]
    return _OTHER[0] + "".join(": " + line[:200] for line in last), _OTHER[1]


def overdue(seconds: float) -> tuple[str, str]:
    """The same for a host that did not answer in time."""
    return (
        "no answer in %g s (%s): the host or a device of it hangs" % (seconds, VARIABLE),
        "ps -eo pid,stat,wchan:32,args | grep ' D', on its console where ssh does not answer",
    )


def answer(name: str, is_check: bool, run: str, cause: tuple[str, str], is_sent: bool = True) -> dict[str, Any]:
    """The result of a module that gave none: unknown, with the reason and what to do next."""
    mode = "audit" if name in _LOOKS else "check" if is_check else "revert" if name == "node_revert" else "apply"
    finding = {
        "id": "engine.cut-off", "level": "fail", "subject": name, "expected": "an answer",
        "observed": {"unknown": cause[0]}, "why": _WHY[mode] if is_sent else _NOT_SENT,
        "fix": "%s; %s" % (cause[1], _NEXT[mode if is_sent else "audit"] % {"run": run}),
        "source": "gpufleet.host." + name,
    }  # fmt: skip
    is_area = mode in ("apply", "check") and name != "node_revert"
    area = {"state": "unknown", "steps": [], "findings": [finding], "before": {}, "after": {}}
    report = {
        "format": 1, "host": "", "run": run, "taken": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "mode": mode,
        "state": "unknown", "areas": {name: area} if is_area else {}, "findings": [] if is_area else [finding],
        "host_facts": {},
    }  # fmt: skip
    if mode == "apply" and is_sent:
        report["journal_runs"] = [run]
    msg = "%s: %s. %s. To do: %s" % (name, cause[0], finding["why"], finding["fix"])
    return {"failed": True, "changed": False, "state": "unknown", "msg": msg, "report": report}


_CHANGED = (
    "The run was cut off on the host, so what it had done there is not known here; each change was written to the "
    "journal on the host before it was made"
)
_NOT_SENT = "Ansible could not send the module to the host, so nothing was changed"
_WHY = {
    "audit": "The host could not be observed; an audit changes nothing",
    "check": "The host could not be observed; a dry run changes nothing",
    "apply": _CHANGED,
    "revert": _CHANGED,
}
_NEXT = {
    "audit": "then run it again",
    "check": "then run it again",
    "apply": "then playbooks/audit.yml shows what the host has now, and playbooks/revert.yml -e gpufleet_revert_run=%(run)s "
    "undoes what this run did",
    "revert": "then run it again: what is back already is noted, the rest is still on record",
}
