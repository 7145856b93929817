# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The whole host in one call: each subject observed once, every area planned, one report."""

from __future__ import annotations

import copy
import traceback
from dataclasses import replace
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from .engine import Area, run_area, state_of
from .host import Host
from .journal import Journal
from .values import BadWant, Finding, Report, StepResult, is_unrecorded, readable
from .want_slips import refuse_slips


def asked(given: Mapping[str, Any]) -> Dict[str, Any]:
    """A want without what is null: that is not managed, or as the module has it by itself.

    An empty text is a null as well: a template of ansible-core before 2.19 makes one of it.
    """
    return {name: value for name, value in given.items() if value is not None and value != ""}


def valid_want(area: Area, given: Mapping[str, Any]) -> Dict[str, Any]:
    """The want with types and defaults filled in.

    :raises BadWant: naming the option, what was given and what is allowed.
    """
    given = asked(given)
    refuse_slips(area.spec, given, area.examples)
    # A copy, since the validator fills in what is missing in the defaults of the spec itself.
    checked = ArgumentSpecValidator(copy.deepcopy(dict(area.spec))).validate(given)
    if checked.error_messages:
        raise BadWant("want", sorted(given), "; ".join(checked.error_messages))
    want = {name: checked.validated_parameters[name] for name in area.spec}
    area.check_want(want)
    return want


def audit(
    areas: Iterable[Area],
    wants: Mapping[str, Mapping[str, Any]],
    host: Host,
    allow_risk: Mapping[str, str],
    journal: Optional[Journal],
) -> Dict[str, Report]:
    """A report for each area; an area that fails in itself says so and keeps no other from its report."""
    reports: Dict[str, Report] = {}
    for area in areas:
        try:
            reports[area.name] = run_area(
                area,
                wants[area.name],
                host,
                mode="audit",
                allow_risk=allow_risk.get(area.name) or "safe",
                journal=journal,
            )
        except Exception as error:
            reports[area.name] = Report("failed", findings=(_bug(area, error),))
    return reports


def as_told(report: Report) -> Report:
    """The report on the output of one command: what such an output cannot show is nothing to say of its host."""
    findings = tuple(finding for finding in report.findings if not is_unrecorded(finding.observed))
    state = report.state if report.state == "failed" else state_of(report.steps, findings, "audit")
    return replace(report, state=state, findings=findings)


def to_apply(areas: Iterable[Area], reports: Mapping[str, Report]) -> List[str]:
    """The areas with steps that may run now, that wait for a tool which their role installs, or whose last run was cut off.

    With them come those whose plan depends on what such an area leaves behind.
    """
    names: List[str] = []
    for area in areas:
        report = reports[area.name]
        has_steps = any(step.status == "planned" for step in report.steps)
        has_cure = any(finding.cured_by_role for finding in report.findings)
        # A run that was cut off is closed in the journal by the next one, also on a host that is in order.
        is_cut_off = any(finding.id == "engine.interrupted-run" for finding in report.findings)
        if has_steps or has_cure or is_cut_off or any(name in names for name in area.follows):
            names.append(area.name)
    return names


def summary(reports: Mapping[str, Report], findings: Sequence[Finding] = (), limit: int = 20) -> str:
    """What is not as wanted, a line each, for a terminal: causes first, and what follows from them counted.

    :param findings: those about the host as a whole.
    """
    rows = ["%s: %s; to do: %s" % (f.subject, f.why, f.fix) for f in findings]
    for name, report in reports.items():
        if report.state == "compliant":
            continue
        rows.append("%s is %s" % (name, report.state.replace("_", " ")))
        rows += ["  %s: %s; to do: %s" % (f.subject, f.why, f.fix) for f in report.findings if f.level != "info"]
        ids = [f.id + ": " for f in report.findings if f.level == "block"]
        held = [r for r in report.steps if r.status == "skipped" or r.detail.startswith(tuple(ids))]
        rows += ["  %s" % _in_words(r) for r in report.steps if r not in held]
        if held:
            rows.append("  %d %s for it" % (len(held), "step waits" if len(held) == 1 else "steps wait"))
    more = ["  and %d more lines in the report" % (len(rows) - limit)] if len(rows) > limit else []
    return str(readable("\n".join(rows[:limit] + more)))


def _in_words(result: StepResult) -> str:
    """A step as people say it: where it stands, and why where it was not done."""
    step = result.step
    if step.kind == "file":
        words = "is missing" if step.before is None else "is to go" if step.after is None else "differs"
    elif step.kind == "value":
        words = "is %s, wanted %s" % (_one_line(step.before), _one_line(step.after))
    else:
        return "%s: %s" % (step.target, result.detail or step.why)
    return "%s %s%s" % (step.target, words, ": " + result.detail if result.detail else "")


def _one_line(value: Any) -> str:
    if value is None:
        return "not there"
    text = " ".join(str(value).split())
    return text if len(text) <= 60 else text[:59] + "\u2026"


def _bug(area: Area, error: Exception) -> Finding:
    said = "%s: %s" % (type(error).__name__, error)
    return Finding(
        "engine.bug", "fail", area.name, "a report", said,
        "this area could not be judged: it met something on the host that it does not understand: %s (%s)"
        % (said, place_of(error)),
        "take a capture with playbooks/capture.yml and report it", "engine",
    )  # fmt: skip


def place_of(error: BaseException) -> str:
    """Where an error came from, for those who mend it: our own line, and the one of Python's below it."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "module_utils" in frame.filename]
    places = ["%s of %s, line %s" % (f.name, _module_of(f.filename), f.lineno) for f in [*ours[-1:], *frames[-1:]]]
    return ", ".join(dict.fromkeys(places))


def _module_of(filename: str) -> str:
    """The name of a file without the folders of the machine that it was sent to."""
    parts = filename.replace("\\", "/").split("/")
    return "/".join(parts[parts.index("module_utils") + 1 :] if "module_utils" in parts else parts[-1:])
