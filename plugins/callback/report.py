# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: report
type: aggregate
short_description: Keep the reports of a run as JSON and as one page
version_added: "0.1.0"
description:
  - Collects the RV(gpufleet.host.node_audit#module:report) of each task of this collection, per host,
    and merges them to what was found, what was done, and what is now.
  - Writes C(ARTIFACTS/RUN/HOST.json) while the run goes on, so that a run that is cut off leaves what it knew,
    and C(report.html) and C(run.json) at its end. C(ARTIFACTS/latest) is a link to the newest run.
  - Hosts that do not answer, hosts whose tasks fail, and hosts that the run never got to are in the report, too.
  - Writes nothing in a run without any task of this collection. Results under C(no_log) are left out.
requirements:
  - enable in configuration
options:
  artifacts:
    description:
      - Folder for the artifacts of runs. It is made when it is missing.
    type: path
    default: ./artifacts
    env:
      - name: GPUFLEET_ARTIFACTS
    ini:
      - section: gpufleet
        key: artifacts
  run:
    description:
      - A name for this run. A number is added when the artifacts hold a run of that name.
      - The time of its start in UTC by default, as V(20260131T120000Z).
    type: str
    default: ''
    env:
      - name: GPUFLEET_RUN
  summary_hosts:
    description:
      - How many hosts the summary on the terminal names at most. The page names all of them.
    type: int
    default: 20
    env:
      - name: GPUFLEET_SUMMARY_HOSTS
    ini:
      - section: gpufleet
        key: summary_hosts
author:
  - gpufleet.host contributors (@gpufleet)
"""

import os
import re
import time
from pathlib import Path
from typing import Any

from ansible import constants as C
from ansible import context
from ansible.plugins.callback import CallbackBase

from ansible_collections.gpufleet.host.plugins.plugin_utils import fleet_console, fleet_files, fleet_page
from ansible_collections.gpufleet.host.plugins.plugin_utils import fleet_report as fleet
from ansible_collections.gpufleet.host.plugins.plugin_utils.fleet_unreachable import task_failed, unreachable

COLLECTION = "gpufleet.host."
# The one action that reports what is no host: a lot of them.
ORDER_ACTION = "gpufleet.host.order_acceptance"
# Tasks by which a playbook turns a report that is there already into an exit status.
VERDICTS = ("fail", "assert", "ansible.builtin.fail", "ansible.builtin.assert")
# What a block that rescues a host makes good.
RESCUED = ("fleet.task-failed", "fleet.bad-input", "fleet.no-entry", fleet.CUT_OFF)
MESSAGE_LIMIT = 4000
# How Ansible's own validation of a role's variables names what was given: the class inside of it.
_PYTHON_CLASS = re.compile(r"<class '(?:\w+\.)*(?:_AnsibleTagged)?(\w+)'>")
COLORS = {
    "failed": C.COLOR_ERROR,
    "rolled_back": C.COLOR_ERROR,
    "blocked": C.COLOR_ERROR,
    "unknown": C.COLOR_UNREACHABLE,
    "drifted": C.COLOR_CHANGED,
    "pending_reboot": C.COLOR_CHANGED,
}


class CallbackModule(CallbackBase):
    """Listens to a run, and keeps what its hosts report."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "gpufleet.host.report"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.documents: dict[str, fleet.Document] = {}
        self.folder: Path | None = None
        self.is_ours = False
        self.is_broken = False
        self.playbook = ""
        self.started = _now()
        self.play: Any = None
        self.expected: set[str] = set()
        self.heard: set[str] = set()
        # The host that a capture is of, by the host that audited it.
        self.captured: dict[str, str] = {}
        # What each capture is called here, by its path and its own name.
        self.called: dict[tuple[str, str], str] = {}

    # --- what Ansible calls

    def v2_playbook_on_start(self, playbook: Any) -> None:
        self.playbook = os.path.basename(str(getattr(playbook, "_file_name", "") or ""))

    def v2_playbook_on_play_start(self, play: Any) -> None:
        self.play = play

    def v2_playbook_on_task_start(self, task: Any, is_conditional: bool) -> None:
        if _is_of_collection(task) and self.play is not None:
            self.expected |= _hosts_of(self.play)
            # Asked once a play is enough, and free for the tasks after it.
            self.play = None
            self._start()

    def v2_runner_on_ok(self, result: Any) -> None:
        self._take(result)

    def v2_runner_on_skipped(self, result: Any) -> None:
        self.heard.add(result._host.get_name())

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        if self._take(result) or ignore_errors:
            return
        name = result._host.get_name()
        name = self.captured.get(name, name)
        document = self.documents.get(name)
        has_verdict = document is not None and document["state"] not in fleet.GOOD_STATES
        if has_verdict and result._task.action in VERDICTS:
            return
        message = _message(result._result)
        # Argument specs of roles say it with a key, our modules in words (_engine/door.py).
        is_input = "argument_errors" in result._result or (_is_of_collection(result._task) and " allowed: " in message)
        output = "\n".join(str(result._result.get(key) or "") for key in ("module_stdout", "module_stderr"))
        found = task_failed(result._task.get_name(), message, result._task.action, is_input, output)
        self._keep(name, fleet.with_finding(document or self._blank(name), found))

    def v2_runner_on_unreachable(self, result: Any) -> None:
        name = result._host.get_name()
        self.heard.add(name)
        found = unreachable(_message(result._result))
        self._keep(name, fleet.with_finding(self.documents.get(name) or self._blank(name), found))

    def v2_playbook_on_stats(self, stats: Any) -> None:
        if not self.is_ours or self.is_broken:
            return
        for name, document in list(self.documents.items()):
            # A block rescued it: what counts is what was reported since.
            if not stats.failures.get(name):
                self._keep(name, fleet.without_findings(document, RESCUED))
        for name in sorted(self.expected - self.heard - set(self.documents)):
            self._keep(name, fleet.with_finding(self._blank(name), fleet.not_reached()))
        if self.documents:
            self._finish()

    # --- what is kept

    def _take(self, result: Any) -> bool:
        """Keep the reports in a result; says whether there was any."""
        name = result._host.get_name()
        self.heard.add(name)
        data = result._result
        if data.get("_ansible_no_log") or "censored" in data:
            return False
        results = [data, *(row for row in data.get("results") or () if isinstance(row, dict))]
        found = False
        for row in results:
            report = row.get("report")
            if report is None or row.get("_ansible_no_log"):
                continue
            document = fleet.normalise(report)
            if document is not None:
                host = self._host_of(document, name, result)
                own_name = document["host"]
                stamped = self._stamped(document, host, result._task.action)
                self._keep(host, fleet.merge(self.documents.get(host), stamped))
                if host not in (name, own_name):
                    self._tell_apart(own_name, host)
                found = True
            elif _is_of_collection(result._task):
                odd = fleet.bad_report("task %s gave back something else" % result._task.get_name())
                self._keep(name, fleet.with_finding(self.documents.get(name) or self._blank(name), odd))
                found = True
        return found

    def _host_of(self, document: fleet.Document, name: str, result: Any) -> str:
        """The inventory's name of the host: it is not for the host to say who it is, but for a capture."""
        args = (getattr(result, "_task_fields", None) or {}).get("args") or {}
        if not (isinstance(args, dict) and args.get("capture")):
            return name
        self.captured[name] = self._name_apart(document["host"] or name, str(args["capture"]), name)
        return self.captured[name]

    def _name_apart(self, host: str, capture: str, auditor: str) -> str:
        """What the host of a capture is called: two captures that call themselves alike stay two, by their files.

        :param auditor: the host that looks at the capture; what is kept of it, such as a task that failed, is kept of
            the capture.
        """
        if (capture, host) not in self.called:
            names = [host, "%s (%s)" % (host, os.path.basename(capture.rstrip("/"))), "%s (%s)" % (host, capture)]
            taken = (set(self.documents) - {auditor}) | set(self.called.values())
            self.called[capture, host] = next((name for name in names if name not in taken), names[-1])
        return self.called[capture, host]

    def _tell_apart(self, *names: str) -> None:
        for name, other in (names, names[::-1]):
            if name in self.documents:
                self._keep(name, fleet.with_finding(self.documents[name], fleet.same_name(other)))

    def _stamped(self, document: fleet.Document, host: str, action: str) -> fleet.Document:
        if action != ORDER_ACTION:
            # No host leaves the counts by saying that it is none.
            document["host_facts"].pop("order", None)
        if document["mode"] == "apply" and document["run"] and fleet.count_done(document):
            document["journal_runs"] = [document["run"]]
        self._start()
        document["host"], document["run"] = host, self._run_name()
        return document

    def _blank(self, name: str) -> fleet.Document:
        return fleet.new_document(name, self._run_name(), _now())

    def _keep(self, name: str, document: fleet.Document) -> None:
        self.documents[name] = document
        if self.is_ours:
            self._write(name)

    def _write(self, name: str) -> None:
        if self.folder is None or self.is_broken:
            return
        try:
            fleet_files.write_json(self.folder / (fleet_files.safe_name(name) + ".json"), self.documents[name])
        except OSError as error:
            self._give_up(error)

    def _start(self) -> None:
        """Open the folder at the first task of ours, with what was heard before it."""
        if self.is_ours:
            return
        self.is_ours = True
        wanted = self.get_option("run") or time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        try:
            self.folder = fleet_files.open_run(Path(self.get_option("artifacts")), wanted)
            # Workers, forked after this, give it to the modules, so that the hosts' journals call the run the same.
            os.environ["GPUFLEET_JOURNAL_RUN"] = self.folder.name
            fleet_files.write_json(self.folder / fleet_files.RUN_FILE, self._summary(None))
            fleet_files.link_latest(self.folder)
        except OSError as error:
            self._give_up(error)
        for name, document in self.documents.items():
            document["run"] = self._run_name()
            self._write(name)

    def _run_name(self) -> str:
        return self.folder.name if self.folder else ""

    def _summary(self, finished: str | None) -> fleet.Document:
        files = {name: fleet_files.safe_name(name) + ".json" for name in self.documents}
        run = {
            "run": self._run_name(),
            "started": self.started,
            "finished": finished,
            "playbook": self.playbook,
            "check": bool(context.CLIARGS.get("check")),
        }
        return fleet.summary(run, list(self.documents.values()), files)

    def _finish(self) -> None:
        run = self._summary(_now())
        self._display.banner("GPUFLEET REPORT")
        for state, line in fleet_console.console_lines(run, self.get_option("summary_hosts")):
            self._display.display(line, color=COLORS.get(state))
        if self.folder is None:
            return
        try:
            fleet_files.write_json(self.folder / fleet_files.RUN_FILE, run)
            page = fleet_files.write_pages(self.folder, fleet_page.pages(run, list(self.documents.values())))
        except OSError as error:
            self._give_up(error)
            return
        self._display.display("\nReport: %s" % page)

    def _give_up(self, error: OSError) -> None:
        self.is_broken = True
        self._display.warning(
            "gpufleet.host.report cannot write its artifacts (%s): the run goes on without them. "
            "GPUFLEET_ARTIFACTS names another folder." % error
        )


def _hosts_of(play: Any) -> set[str]:
    """The hosts that a play is for, of all its batches."""
    try:
        inventory = play.get_variable_manager()._inventory
        return {host.get_name() for host in inventory.get_hosts(play.hosts)}
    except (AttributeError, TypeError):
        return set()


def _is_of_collection(task: Any) -> bool:
    role = getattr(task, "_role", None)
    name = str(role.get_name()) if role is not None else ""
    return str(task.action).startswith(COLLECTION) or name.startswith(COLLECTION)


def _message(result: Any) -> str:
    """Why a task failed, in its own words."""
    for key in ("msg", "message", "module_stderr", "stderr", "exception", "censored"):
        text = str(result.get(key) or "").strip()
        if text:
            text = _PYTHON_CLASS.sub(_plain_name, text.removeprefix("Task failed: "))
            return text if len(text) <= MESSAGE_LIMIT else text[:MESSAGE_LIMIT] + " …"
    failed = [row for row in result.get("results") or () if isinstance(row, dict) and row.get("failed")]
    return _message(failed[0]) if failed else ""


def _plain_name(found: re.Match[str]) -> str:
    return "nothing" if found.group(1) == "NoneType" else "a " + found.group(1).lower()


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
