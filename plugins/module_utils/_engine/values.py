# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The frozen values that everything else is built from: Step, Finding, Report, Unknown.

They hold data only.  What is decided about them is in ``_plan``; what is done with them is in
``engine``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

RISKS = ("safe", "disruptive", "destructive")
NEEDS = ("nothing", "reload", "restart", "remount", "reboot", "drain")
LEVELS = ("info", "warn", "fail", "block")

# Programs of our own that a host runs like any other, each in a process that can be given up: whether a device reads as
# zeros (samples.py), and whether the filesystem at a path answers.
SAMPLES, ANSWERS = "gpufleet-samples", "gpufleet-answers"
SAMPLES_DEADLINE_S = 30.0

# From best to worst: the state of a host is the worst of its areas.
STATES = (
    "compliant",
    "changed",
    "pending_reboot",
    "drifted",
    "unknown",
    "blocked",
    "rolled_back",
    "failed",
)


# Sequences of ECMA-48 (colours, titles, device control), in both of its codings, as far as they are whole; texts in them end
# at the next control character, so that one without an end takes nothing away and costs nothing.
_SEQUENCE = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]"
    "|(?:\x1b[\\]PX^_]|[\x90\x98\x9d\x9e\x9f])[^\x00-\x1f\x7f-\x9f]*(?:\x07|\x1b\\\\|\x9c)"
    "|\x1b[ -/]*[0-~]"
)
# Control characters, and those that are not seen or move others.
_DRIVING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")


@dataclass(frozen=True)
class Unknown:
    """An observation that could not be made, with the reason.  False in a condition, never a 0."""

    reason: str

    def __bool__(self) -> bool:
        return False

    def __str__(self) -> str:
        return "unknown (%s)" % self.reason


# How the reason ends for what a capture does not hold.
NOT_RECORDED = " was not recorded"


def is_unrecorded(value: Any) -> bool:
    """Whether all that is known of a thing is that a capture does not hold it."""
    return isinstance(value, Unknown) and NOT_RECORDED in value.reason


def as_unknown(value: Any, reason: str) -> Unknown:
    """The value itself where it says why it is unknown, else Unknown with this reason."""
    return value if isinstance(value, Unknown) else Unknown(reason)


Text = Union[str, None, Unknown]
"""What reading a file gives: its text, None when it does not exist, or Unknown with the reason."""


class BadWant(ValueError):
    """A wanted value that cannot be meant: raised before any change, with what is allowed.

    :param variable: name of the module option, with its path (``volumes[0].allocsize``).
    :param given: the value as the user wrote it.
    :param allowed: a sentence on what is allowed.
    :param says: what is the matter with it, before ``allowed``, where it is more than a value that is not possible.
    """

    def __init__(self, variable: str, given: Any, allowed: str, says: str = "") -> None:
        super().__init__(variable, given, allowed)
        self.variable = variable
        self.given = given
        self.allowed = allowed
        self.says = says

    def __str__(self) -> str:
        return "%s: %r is not possible: allowed is %s" % (self.variable, self.given, self.allowed)


@dataclass(frozen=True)
class Step:
    """One change, as data.

    ``kind`` says which hand of the engine does it:

    ========  =========================================  ==========================================
    kind      target                                     after (None means "gone")
    ========  =========================================  ==========================================
    file      absolute path                              whole text, written atomically
    value     absolute path under /proc or /sys          text to write, read back by observation
    run       what the command acts on                   the state it leads to, for people
    reboot    what waits                                 the value after the next boot
    ========  =========================================  ==========================================

    ``argv`` is the command of a ``run`` step, with ``stdin`` as its input and ``deadline_s`` seconds.
    ``checks`` are commands that have to succeed right before it: what was seen must still be true.
    ``undo`` is the reverse step; for ``file`` and ``value`` the engine derives it from ``before``.
    ``then`` are further (path, text) values that a ``value`` step writes after its own: what the write resets.
    ``disk`` is the name below /dev/disk/by-id of the disk whose kernel name stands in ``target``, where there is
    one: kernel names move at a boot, so a revert goes by this name.
    ``part`` names what it is a part of: when a step is refused, steps of other parts stay (``groups``).  Empty is all of its area.
    ``requires`` names steps (by id) that must have been applied for this one to make sense.
    ``needs`` tells people what the change costs, ``risk`` is what consent is given for.
    """

    id: str
    kind: str
    target: str
    before: Any
    after: Any
    why: str
    source: str
    needs: str = "nothing"
    risk: str = "safe"
    argv: Tuple[str, ...] = ()
    stdin: str = ""
    deadline_s: float = 60.0
    mode: int = 0o644
    undo: Optional[Step] = None
    requires: Tuple[str, ...] = ()
    then: Tuple[Tuple[str, str], ...] = ()
    disk: str = ""
    part: str = ""
    checks: Tuple[Tuple[str, ...], ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in ("file", "value", "run", "reboot"):
            raise ValueError("step %s: kind %r" % (self.id, self.kind))
        if self.risk not in RISKS or self.needs not in NEEDS:
            raise ValueError("step %s: risk %r, needs %r" % (self.id, self.risk, self.needs))

    @property
    def waits_for_reboot(self) -> bool:
        return self.kind == "reboot"

    @property
    def is_reread(self) -> bool:
        """A command that makes the host take in its files (a reload): undone by itself, once those are back."""
        return self.kind == "run" and self.undo is not None and self.undo.argv == self.argv

    def to_json(self) -> Dict[str, Any]:
        data: Dict[str, Any] = {
            "id": self.id,
            "kind": self.kind,
            "target": self.target,
            "before": jsonable(self.before),
            "after": jsonable(self.after),
            "needs": self.needs,
            "risk": self.risk,
            "why": self.why,
            "source": self.source,
            "mode": self.mode,
            "requires": list(self.requires),
            "undo": self.undo.to_json() if self.undo else None,
        }
        if self.then:
            data["then"] = [list(pair) for pair in self.then]
        if self.disk:
            data["disk"] = self.disk
        if self.kind == "run":
            data["argv"] = list(self.argv)
            data["stdin"] = self.stdin
            data["deadline_s"] = self.deadline_s
        if self.checks:
            data["checks"] = [list(argv) for argv in self.checks]
        return data

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Step:
        return Step(
            id=data["id"],
            kind=data["kind"],
            target=data["target"],
            before=from_jsonable(data["before"]),
            after=from_jsonable(data["after"]),
            why=data["why"],
            source=data["source"],
            needs=data["needs"],
            risk=data["risk"],
            argv=tuple(data.get("argv", ())),
            stdin=data.get("stdin", ""),
            deadline_s=data.get("deadline_s", 60.0),
            mode=data.get("mode", 0o644),
            undo=Step.from_json(data["undo"]) if data.get("undo") else None,
            requires=tuple(data.get("requires", ())),
            then=tuple((path, text) for path, text in data.get("then", ())),
            disk=data.get("disk", ""),
            checks=tuple(tuple(argv) for argv in data.get("checks", ())),
        )


@dataclass(frozen=True)
class Finding:
    """One judgement on something we may not or cannot change, or that blocks a change.

    ``id`` is stable (``xfs.mkfs-geometry``); ``subject`` is the thing it is about.
    ``blocks`` names the steps (id prefixes) that a ``block`` finding holds back; empty means all
    steps of the area.  A finding above ``info`` whose ``observed`` is Unknown makes the area unknown.
    ``cured_by_role``: a tool is missing that the area's role installs, so the role has to run.
    """

    id: str
    level: str
    subject: str
    expected: Any
    observed: Any
    why: str
    fix: str
    source: str
    blocks: Tuple[str, ...] = ()
    cured_by_role: bool = False

    def __post_init__(self) -> None:
        if self.level not in LEVELS:
            raise ValueError("finding %s: level %r" % (self.id, self.level))

    def to_json(self) -> Dict[str, Any]:
        return {
            "id": self.id,
            "level": self.level,
            "subject": self.subject,
            "expected": jsonable(self.expected),
            "observed": jsonable(self.observed),
            "why": self.why,
            "fix": self.fix,
            "source": self.source,
        }


def nothing_wanted(area: str, role: str) -> Finding:
    """An area that nobody asked for: said, so that a host in order is not taken for a tuned one."""
    return Finding(
        area + ".nothing-wanted", "info", area, "variables of the role %s, or a profile" % role, "none is set",
        "nothing of this area is managed: the host keeps its own values",
        "nothing, if that is meant; else set gpufleet_profile: training, or variables of the README of role %s" % role,
        "docs/operations.md",
    )  # fmt: skip


@dataclass(frozen=True)
class StepResult:
    """A step and what became of it.

    ``status`` is planned, applied, blocked, waits (for a reboot), skipped (a required step was not
    applied), failed, undone or stuck (its original could not be put back); ``detail`` is the reason where there is one.
    """

    step: Step
    status: str
    detail: str = ""

    def to_json(self) -> Dict[str, Any]:
        data = self.step.to_json()
        data["status"] = self.status
        data["detail"] = self.detail
        return data


@dataclass(frozen=True)
class Report:
    """What one run found and did in one area.  ``before`` and ``after`` are in the wants' format."""

    state: str
    steps: Tuple[StepResult, ...] = ()
    findings: Tuple[Finding, ...] = ()
    before: Mapping[str, Any] = field(default_factory=dict)
    after: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.state not in STATES:
            raise ValueError("report state %r" % self.state)

    def to_json(self) -> Dict[str, Any]:
        data = {
            "state": self.state,
            "steps": [result.to_json() for result in self.steps],
            "findings": [finding.to_json() for finding in self.findings],
            "before": jsonable(self.before),
            "after": jsonable(self.after),
        }
        return dict(readable(data))


def worst(states: Sequence[str]) -> str:
    """The worst of some states; compliant when there are none."""
    return max(states, key=STATES.index, default="compliant")


def jsonable(value: Any) -> Any:
    """A value as JSON can hold it; Unknown becomes ``{"unknown": reason}``."""
    if isinstance(value, Unknown):
        return {"unknown": value.reason}
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [jsonable(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted((jsonable(item) for item in value), key=str)
    return value


def readable(value: Any) -> Any:
    """What :func:`jsonable` gave, for people and other programs.

    Bytes that were no UTF-8 become U+FFFD, and what would drive a terminal or make a name lie is left out.  Inside (in
    steps and in the journal) all of it is kept, so that a file comes back byte for byte.
    """
    if isinstance(value, str):
        if not value.isascii():
            value = value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        # No sequence is left that another one had cut in two: none begins without one of these characters.
        return _DRIVING.sub("", _SEQUENCE.sub("", value)) if _DRIVING.search(value) else value
    if isinstance(value, dict):
        return {readable(key): readable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [readable(item) for item in value]
    return value


def from_jsonable(value: Any) -> Any:
    """The reverse of :func:`jsonable` for what steps hold."""
    if isinstance(value, Mapping):
        if set(value) == {"unknown"}:
            return Unknown(value["unknown"])
        return {key: from_jsonable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [from_jsonable(item) for item in value]
    return value


def known(value: Any) -> bool:
    return not isinstance(value, Unknown)


def lines(text: Any) -> List[str]:
    """The lines of a text, none for what is missing or unknown."""
    return text.splitlines() if isinstance(text, str) else []
