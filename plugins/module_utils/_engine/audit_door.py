# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The door of the audit modules: their options, the report, the exit."""

from __future__ import annotations

import shutil
import tempfile
from typing import Any, Callable, Mapping, Sequence

from ansible.module_utils.basic import AnsibleModule

from . import lone_text, whole
from .archive import CaptureError
from .deadline import within
from .door import bad_want_message, diff_of, host_report, new_run_id, refuse_without_root
from .engine import OBSERVE_DEADLINE_S, Area, usable_journal
from .host import CaptureHost, Host, LiveHost, MemoHost, name_of_capture, open_capture
from .journal import Journal
from .values import BadWant, Finding, Unknown, jsonable, readable

Facts = Callable[[Host, Sequence[Mapping[str, Any]], Mapping[str, Any]], Mapping[str, Any]]


def main(areas: Mapping[str, Area], host_facts: Facts) -> None:
    """The whole life of an audit: exits the process.

    :param areas: those that this module carries.
    :param host_facts: makes what the report's drawing needs, of a host, the GPUs' match and the wants.
    """
    module = AnsibleModule(
        argument_spec={
            "wants": {"type": "dict"},
            "allow_risk": {"type": "dict", "default": {}},
            "areas": {"type": "list", "elements": "str"},
            "capture": {"type": "path"},
            "fail_on": {
                "type": "list",
                "elements": "str",
                "choices": ["changed", "pending_reboot", "drifted", "unknown", "blocked", "rolled_back", "failed"],
                "default": [],
            },
            "facts": {"type": "bool", "default": True},
            "gpu_match": {"type": "list", "elements": "dict", "default": []},
            "run": {"type": "str", "default": ""},
        },
        supports_check_mode=True,
    )
    if module.params["wants"] is None:
        module.fail_json(msg="wants: not given; the action of this module takes them from the roles' variables")
    if not module.params["capture"]:
        refuse_without_root(module, LiveHost(), "audit", module.params["run"])
    scratch = tempfile.mkdtemp(prefix="gpufleet-") if module.params["capture"] else ""
    try:
        host: Host = _opened(module, scratch) if scratch else LiveHost()
        audit(module, areas, host_facts, host)
    except CaptureError as error:
        told = readable("capture: %s. Allowed: a folder or .tar.gz made by playbooks/capture.yml." % error)
        module.fail_json(msg=told)
    finally:
        if scratch:
            shutil.rmtree(scratch, ignore_errors=True)


def _opened(module: AnsibleModule, scratch: str) -> CaptureHost:
    capture = open_capture(module.params["capture"], scratch)
    areas = module.params["areas"]
    capture.answers_for(module.params["wants"] if areas is None else areas)
    return capture


def audit(module: AnsibleModule, known: Mapping[str, Area], host_facts: Facts, source: Host) -> None:
    host, about, lone = MemoHost(source), getattr(source, "about", {}), getattr(source, "lone", "")
    wants = {}
    names = module.params["areas"] if module.params["areas"] is not None else list(module.params["wants"])
    for name in names:
        if name not in known or name not in module.params["wants"]:
            module.fail_json(msg="areas: %r is not possible; allowed: %s" % (name, ", ".join(module.params["wants"])))
        try:
            wants[name] = whole.valid_want(known[name], module.params["wants"][name])
        except BadWant as error:
            module.fail_json(msg=bad_want_message(known[name], error))
    mute = _mute(lone, names)
    areas = [known[name] for name in known if name in wants and name not in mute]
    journal, findings = (None, ()) if module.params["capture"] else usable_journal(Journal())
    reports = whole.audit(areas, wants, host, module.params["allow_risk"], journal)
    if lone:
        reports = {name: whole.as_told(report) for name, report in reports.items()}
        findings = (_lone(lone, mute),) if mute else ()
    report = host_report(reports, module.params["run"] or new_run_id(), "audit", findings)
    if module.params["capture"]:
        report["host"] = name_of_capture(about, module.params["capture"])
    report["taken"] = readable(about.get("taken", report["taken"]))
    if module.params["facts"]:
        facts = within(lambda: host_facts(host, module.params["gpu_match"], wants), OBSERVE_DEADLINE_S)
        if isinstance(facts, Unknown):
            module.warn("the facts of the host, from which it is drawn, are left out: %s" % facts)
        report["host_facts"] = {} if isinstance(facts, Unknown) else readable(jsonable(facts))
    result = {
        "changed": False,
        "state": report["state"],
        "to_apply": whole.to_apply(areas, reports),
        "summary": whole.summary(reports, findings),
        "report": report,
        "diff": diff_of([step for area in report["areas"].values() for step in area["steps"]]),
    }
    if report["state"] in module.params["fail_on"]:
        module.fail_json(msg="the host is %s\n%s" % (report["state"], result["summary"]), **result)
    module.exit_json(**result)


def _mute(lone: str, names: Sequence[str]) -> Sequence[str]:
    """The areas that the output of one command is not asked for, unless nothing else was asked for."""
    mute = [name for name in names if lone and name not in lone_text.SPEAKS_OF]
    return mute if len(mute) < len(names) else []


def _lone(lone: str, mute: Sequence[str]) -> Finding:
    return Finding(
        "capture.lone-text", "info", lone, "a whole capture", "the output of one command",
        "%s shows nothing of %s" % (lone, ", ".join(mute)), "take a whole capture: playbooks/capture.yml", "node_audit",
    )  # fmt: skip
