# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What all area modules share as Ansible sees them: options, result, diff, messages."""

from __future__ import annotations

import os
import socket
import time
from typing import Any, Dict, List, Mapping, Sequence

from ansible.module_utils.basic import AnsibleModule

from .engine import Area, run_area
from .host import LiveHost, MemoHost
from .journal import Journal, JournalError, Lock, Locked
from .values import RISKS, BadWant, Finding, Report, StepResult, Unknown, readable, worst
from .want_slips import described

COMMON_SPEC: Dict[str, Any] = {
    "allow_risk": {"type": "str", "choices": list(RISKS), "default": "safe"},
    "run": {"type": "str", "default": ""},
}


def main(area: Area) -> None:
    """Bring one area of this host to its wanted state and tell what was found and done."""
    module = AnsibleModule(argument_spec=dict(area.spec, **COMMON_SPEC), supports_check_mode=True)
    want = {name: module.params[name] for name in area.spec}
    try:
        area.check_want(want)
    except BadWant as error:
        module.fail_json(msg=bad_want_message(area, error))
    mode = "check" if module.check_mode else "apply"
    run = module.params["run"] or new_run_id()
    host = LiveHost()
    refuse_without_root(module, host, mode, run)
    try:
        if mode == "check":
            report = run_area(area, want, MemoHost(host), mode=mode, allow_risk=module.params["allow_risk"])
        else:
            with Lock():
                report = run_area(
                    area,
                    want,
                    host,
                    mode=mode,
                    allow_risk=module.params["allow_risk"],
                    journal=Journal(),
                    run=run,
                )
    except Locked as error:
        module.fail_json(msg=str(error))
    except JournalError as error:
        module.fail_json(msg="%s. Nothing was changed." % error)
    result = result_of(host_report({area.name: report}, run, mode))
    finish(module, result, {area.name: report})


def refuse_without_root(module: Any, host: LiveHost, mode: str, run: str = "") -> None:
    """End the module where it is not root: what an ordinary user sees of a host would give a report that is not true."""
    if host.is_open_to_us():
        return
    finding = Finding(
        "engine.not-root", "fail", "not root", "root", "user %d" % os.geteuid(),
        "set ansible_become: true for this host, or give --become",
        "add ansible_become: true to the variables of the host, or run again with --become", "engine",
    )  # fmt: skip
    report = host_report({}, run or new_run_id(), mode, (finding,))
    module.fail_json(msg="%s: %s" % (finding.subject, finding.why), **result_of(report))


def host_report(reports: Mapping[str, Report], run: str, mode: str, findings: Sequence[Finding] = ()) -> Dict[str, Any]:
    """The report of a host as docs/report.schema.json has it; ``findings`` are those about the host as a whole."""
    return {
        "format": 1,
        "host": socket.gethostname(),
        "run": run,
        "taken": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "mode": mode,
        "state": worst([report.state for report in reports.values()] + [_state_of(finding) for finding in findings]),
        "areas": {name: report.to_json() for name, report in reports.items()},
        "host_facts": {},
        **({"findings": [readable(finding.to_json()) for finding in findings]} if findings else {}),
    }


def _state_of(finding: Finding) -> str:
    """What a finding about the host as a whole makes of it (as plugin_utils/fleet_report.py reads it)."""
    if finding.level == "info":
        return "compliant"
    if isinstance(finding.observed, Unknown):
        return "unknown"
    return {"warn": "compliant", "fail": "failed", "block": "blocked"}[finding.level]


def result_of(report: Mapping[str, Any]) -> Dict[str, Any]:
    """A module's result: the report, and what Ansible makes of it."""
    steps = [step for area in report["areas"].values() for step in area["steps"]]
    return {
        # What is stuck was applied and could not be undone.
        "changed": any(step["status"] in ("planned", "applied", "stuck") for step in steps),
        "state": report["state"],
        "report": report,
        "diff": diff_of(steps),
    }


def diff_of(steps: List[Mapping[str, Any]]) -> List[Dict[str, str]]:
    """Ansible's diff: files as they are, all other changes as ``target = value`` lines."""
    shown = [step for step in steps if step["status"] in ("planned", "applied", "undone")]
    diffs = [
        {
            "before_header": step["target"],
            "after_header": step["target"],
            "before": _text(step["before"]),
            "after": _text(step["after"]),
        }
        for step in shown
        if step["kind"] == "file"
    ]
    # A step without a before and an after only marks what its undo is to do.
    others = [step for step in shown if step["kind"] != "file" and (step["before"], step["after"]) != (None, None)]
    if others:
        diffs.append(
            {
                "before_header": "live values",
                "after_header": "live values",
                "before": "".join("%s = %s\n" % (step["target"], step["before"]) for step in others),
                "after": "".join("%s = %s\n" % (step["target"], step["after"]) for step in others),
            }
        )
    return diffs


def finish(
    module: Any, result: Dict[str, Any], reports: Mapping[str, Report], findings: Sequence[Finding] = ()
) -> None:
    """End the module: with a failure when an area failed, was put back, or refuses what was asked.

    :param findings: those about the host as a whole.
    """
    for report in reports.values():
        for finding in report.findings:
            if finding.level in ("warn", "fail"):
                module.warn(sentence(finding))
        for held in report.steps:
            if held.status == "blocked" and not any(f.level == "block" for f in report.findings):
                module.warn(str(readable("%s is held back: %s" % (held.step.id, held.detail))))
    bad = [finding for finding in findings if finding.level in ("fail", "block")]
    bad += [
        finding
        for report in reports.values()
        for finding in report.findings
        if finding.level == "block" or (report.state in ("failed", "rolled_back") and finding.level == "fail")
    ]
    if bad or result["state"] in ("failed", "rolled_back"):
        module.fail_json(msg="\n".join([sentence(f) for f in bad] or [_stuck(reports)]), **result)
    module.exit_json(**result)


def sentence(finding: Finding) -> str:
    """A finding for a terminal: what is wrong, where, why, and what to do."""
    seen = [
        "%s %s" % (word, value)
        for word, value in (("expected", finding.expected), ("observed", finding.observed))
        if isinstance(value, Unknown) or value not in (None, "", [], {})
    ]
    parts = [finding.id, finding.subject, ", ".join(seen), finding.why]
    text = "%s. To do: %s [%s]" % (": ".join(filter(None, parts)), finding.fix, finding.source)
    return str(readable(text))


def bad_want_message(area: Area, error: BadWant) -> str:
    """The message for a wanted value that cannot be: the role's variable, what was given, what is allowed."""
    says = error.says or "%s is not possible;" % described(error.given)
    return "%s_%s: %s allowed: %s (option %s of gpufleet.host.%s). Nothing was changed." % (
        area.role, error.variable, says, error.allowed, error.variable, area.name,
    )  # fmt: skip


def new_run_id() -> str:
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())


def _stuck(reports: Mapping[str, Report]) -> str:
    rows: List[StepResult] = [r for report in reports.values() for r in report.steps if r.status in ("failed", "stuck")]
    told = "; ".join("%s: %s" % (row.step.id, row.detail) for row in rows)
    return str(readable(told)) or "the area could not be brought to its state"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
