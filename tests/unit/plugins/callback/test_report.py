# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The callback: what it keeps of a run as Ansible tells it, and a real run of ansible-playbook."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.gpufleet.host.plugins.callback.report import CallbackModule
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import Report
from ansible_collections.gpufleet.host.plugins.plugin_utils import fleet_report as fleet
from tests import fleet_sample as sample

ROOT = Path(__file__).parents[4]
AUDIT, QUEUE, OTHER = "gpufleet.host.node_audit", "gpufleet.host.block_queue", "ansible.builtin.package"
DRIFTED = Report("drifted", sample.done(sample.SCHEDULER, status="planned"), (), sample.QUEUE_OFF, sample.QUEUE_OFF)
CHANGED = Report("changed", sample.done(sample.RULES, sample.SCHEDULER), (), sample.QUEUE_OFF, sample.QUEUE)
GOOD = Report("compliant", (), (), sample.QUEUE, sample.QUEUE)


class Screen:
    """Stands in for Ansible's display."""

    verbosity = 0

    def __init__(self) -> None:
        self.lines: list[str] = []

    def display(self, text: str, **_options: Any) -> None:
        self.lines.append(text)

    banner = warning = display


def reported(area: Report, mode: str = "audit", **more: Any) -> dict[str, Any]:
    return {"report": sample.report({"block_queue": area}, "own-name", mode, {}), **more}


class Run:
    """A run as Ansible tells it, on the hosts gpu01 to gpu03."""

    def __init__(self, artifacts: Path, **options: Any) -> None:
        self.screen = Screen()
        self.callback = CallbackModule(display=self.screen)
        self.callback._plugin_options = {
            "artifacts": str(artifacts),
            "run": sample.RUN,
            "summary_hosts": 20,
            **options,
        }
        hosts = [SimpleNamespace(get_name=lambda name=name: name) for name in ("gpu01", "gpu02", "gpu03")]
        inventory = SimpleNamespace(get_hosts=lambda _pattern: hosts)
        self.artifacts = artifacts
        self.folder = artifacts / sample.RUN
        self.failures: dict[str, int] = {}
        self.callback.v2_playbook_on_start(SimpleNamespace(_file_name="/x/site.yml"))
        self.callback.v2_playbook_on_play_start(
            SimpleNamespace(hosts="all", get_variable_manager=lambda: SimpleNamespace(_inventory=inventory))
        )

    def tell(self, kind: str, host: str, result: dict[str, Any], action: str = AUDIT, **options: Any) -> None:
        task = SimpleNamespace(action=action, _role=None, get_name=lambda: "Do something")
        self.callback.v2_playbook_on_task_start(task, False)
        fields = {"args": options.pop("args", {})}
        told = SimpleNamespace(
            _host=SimpleNamespace(get_name=lambda: host), _task=task, _result=result, _task_fields=fields
        )
        if kind == "failed":
            self.failures[host] = 1
        getattr(self.callback, "v2_runner_on_" + kind)(told, **options)

    def end(self) -> None:
        self.callback.v2_playbook_on_stats(SimpleNamespace(failures=self.failures))

    def document(self, host: str) -> fleet.Document:
        found: fleet.Document = json.loads((self.folder / (host + ".json")).read_text())
        return found


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path / "artifacts")


def test_a_run_is_kept_while_it_goes_on_and_told_at_its_end(run: Run) -> None:
    run.tell("ok", "gpu01", reported(DRIFTED))
    assert run.document("gpu01")["state"] == "drifted"
    run.tell("ok", "gpu01", reported(CHANGED, "apply"), QUEUE)
    run.tell("ok", "gpu01", reported(GOOD))
    assert not (run.folder / "report.html").exists()
    for host in ("gpu02", "gpu03"):
        run.tell("ok", host, reported(GOOD))
    run.end()
    document = run.document("gpu01")
    assert (document["state"], document["mode"], document["run"]) == ("changed", "apply", sample.RUN)
    assert [step["status"] for step in document["areas"]["block_queue"]["steps"]] == ["applied", "applied"]
    assert document["journal_runs"] == [sample.RUN]
    about = json.loads((run.folder / "run.json").read_text())
    assert about["counts"] == {"changed": 1, "compliant": 2} and about["finished"] and about["playbook"] == "site.yml"
    assert (run.artifacts / "latest" / "report.html").read_text().startswith("<!doctype html>")
    assert run.screen.lines[-1] == "\nReport: %s" % (run.folder / "report.html")


def test_the_inventory_names_a_host_and_not_the_host(run: Run) -> None:
    run.tell("ok", "gpu01", reported(GOOD))
    assert run.document("gpu01")["host"] == "gpu01"


def test_a_capture_has_the_name_of_the_host_it_was_taken_from(run: Run) -> None:
    for name in ("own-name", "other"):
        result = reported(GOOD)
        result["report"]["host"] = name
        run.tell("ok", "localhost", result, args={"capture": "x.tar.gz"})
    assert run.document("own-name")["host"] == "own-name" and run.document("other")["state"] == "compliant"


def test_two_captures_of_one_name_stay_two_hosts(run: Run) -> None:
    """Also at their second report, and where the folders differ and the files do not."""
    for _again in range(2):
        for path, area in (("a/x.tar.gz", DRIFTED), ("b/y.tar.gz", GOOD), ("c/y.tar.gz", GOOD)):
            run.tell("ok", "localhost", reported(area), args={"capture": path})
    run.end()
    names = ["own-name", "own-name (y.tar.gz)", "own-name (c/y.tar.gz)"]
    about = json.loads((run.folder / "run.json").read_text())
    assert {row["host"]: row["state"] for row in about["hosts"] if row["host"] in names} == {
        names[0]: "drifted", names[1]: "compliant", names[2]: "compliant",
    }  # fmt: skip
    for row in about["hosts"]:
        if row["host"] in names:
            findings = json.loads((run.folder / row["file"]).read_text())["findings"]
            assert {finding["id"] for finding in findings} == {"fleet.same-name"}, row


def test_an_order_is_no_host_and_no_host_can_say_so(run: Run) -> None:
    odd = Report("blocked", findings=(sample.HAS_SIGNATURE,))
    run.tell("ok", "gpu01", reported(GOOD))
    for host, action in (("order PO-1", "gpufleet.host.order_acceptance"), ("gpu02", AUDIT)):
        result = reported(odd)
        result["report"].update(host=host, host_facts={"order": "PO-1"})
        run.tell("ok", "gpu02", result, action, args={"capture": "lot"})
    run.end()
    told = json.loads((run.folder / "run.json").read_text())
    assert [row["host"] for row in told["hosts"]] == ["gpu02", "gpu03", "gpu01"]
    assert [row["host"] for row in told["others"]] == ["order PO-1"]
    assert told["counts"] == {"blocked": 1, "unknown": 1, "compliant": 1}
    summary = "\n".join(run.screen.lines)
    assert "3 hosts, " in summary and "order PO-1" in summary


def test_reports_in_a_loop_are_all_kept(run: Run) -> None:
    run.tell(
        "ok", "gpu01", {"results": [reported(DRIFTED), reported(CHANGED, "apply"), {"skipped": True}, "odd"]}, QUEUE
    )
    assert run.document("gpu01")["state"] == "changed"


def test_a_host_that_does_not_answer_is_unknown(run: Run) -> None:
    run.tell("unreachable", "gpu01", {"msg": "Task failed: No route to host", "unreachable": True})
    document = run.document("gpu01")
    assert (document["state"], document["findings"][0]["id"]) == ("unknown", "fleet.unreachable")
    assert document["findings"][0]["observed"] == {"unknown": "No route to host"}
    run.tell("ok", "gpu01", reported(GOOD))
    assert run.document("gpu01")["state"] == "compliant"


@pytest.mark.parametrize(
    "result, action, name, observed",
    [
        ({"msg": "no such package"}, OTHER, "fleet.task-failed", "no such package"),
        ({"msg": "x: 7 is not possible; allowed: 8"}, QUEUE, "fleet.bad-input", "x: 7 is not possible; allowed: 8"),
        ({"msg": "x: given a list [1], allowed: 8"}, QUEUE, "fleet.bad-input", "x: given a list [1], allowed: 8"),
        ({"msg": "bad", "argument_errors": ["x"]}, OTHER, "fleet.bad-input", "bad"),
        # As ansible-core 2.19 words it.
        (
            {
                "msg": "x: <class 'ansible.module_utils._internal._datatag._AnsibleTaggedList'> cannot be converted",
                "argument_errors": ["x"],
            },
            OTHER,
            "fleet.bad-input",
            "x: a list cannot be converted",
        ),
        ({"module_stderr": "Traceback"}, QUEUE, "fleet.task-failed", "Traceback"),
        ({"results": [{"failed": True, "msg": "third"}]}, OTHER, "fleet.task-failed", "third"),
        ({}, OTHER, "fleet.task-failed", "an error without a message"),
    ],
)
def test_a_failed_task_fails_its_host_in_its_own_words(
    run: Run, result: dict[str, Any], action: str, name: str, observed: str
) -> None:
    run.tell("ok", "gpu02", reported(GOOD))
    run.tell("failed", "gpu01", result, action)
    run.end()
    document = run.document("gpu01")
    assert document["state"] == "failed"
    assert [(row["id"], row["observed"]) for row in document["findings"]] == [(name, observed)]


def test_a_module_that_fails_with_a_report_has_said_it_all(run: Run) -> None:
    back = Report("rolled_back", sample.done(sample.SCHEDULER, status="undone"), (sample.REFUSED,))
    run.tell("failed", "gpu01", reported(back, "apply", msg="put back"), QUEUE)
    document = run.document("gpu01")
    assert (document["state"], document["findings"]) == ("rolled_back", [])


def test_a_task_that_only_turns_the_state_into_a_failure_is_no_fault(run: Run) -> None:
    run.tell("ok", "gpu01", reported(DRIFTED))
    run.tell("failed", "gpu01", {"msg": "drifted"}, "ansible.builtin.fail")
    assert run.document("gpu01")["state"] == "drifted"
    run.tell("ok", "gpu02", reported(GOOD))
    run.tell("failed", "gpu02", {"msg": "no"}, "ansible.builtin.assert")
    assert run.document("gpu02")["state"] == "failed"


def test_a_failure_that_was_ignored_or_rescued_does_not_count(run: Run) -> None:
    run.tell("ok", "gpu01", reported(GOOD))
    run.tell("failed", "gpu01", {"msg": "no"}, OTHER, ignore_errors=True)
    assert run.document("gpu01")["state"] == "compliant"
    run.tell("failed", "gpu01", {"msg": "no"}, OTHER)
    assert run.document("gpu01")["state"] == "failed"
    run.failures.clear()
    run.end()
    assert run.document("gpu01")["state"] == "compliant"


def test_hosts_that_the_run_never_got_to_are_in_the_report(run: Run) -> None:
    run.tell("ok", "gpu01", reported(GOOD))
    run.tell("skipped", "gpu02", {})
    run.end()
    assert run.document("gpu03")["findings"][0]["id"] == "fleet.not-reached"
    assert not (run.folder / "gpu02.json").exists()


def test_what_must_not_be_logged_is_not(run: Run) -> None:
    run.tell("ok", "gpu01", reported(CHANGED, _ansible_no_log=True))
    run.tell("ok", "gpu02", {"censored": "the output has been hidden", "report": reported(CHANGED)["report"]})
    run.tell("ok", "gpu03", {"results": [reported(CHANGED, _ansible_no_log=True)]})
    assert [path.name for path in run.folder.iterdir()] == ["run.json"]


@pytest.mark.parametrize("report", ["text", {"areas": 1}, {"format": 2, "areas": {}}, [1]])
def test_a_report_that_is_none_is_said_to_be_so(run: Run, report: Any) -> None:
    run.tell("ok", "gpu01", {"report": report})
    assert run.document("gpu01")["findings"][0]["id"] == "fleet.bad-report"
    run.tell("ok", "gpu02", {"report": report}, OTHER)
    assert not (run.folder / "gpu02.json").exists()


def test_a_run_of_others_leaves_no_trace(run: Run) -> None:
    run.tell("ok", "gpu01", {"msg": "ok"}, OTHER)
    run.tell("failed", "gpu02", {"msg": "no"}, OTHER)
    run.tell("unreachable", "gpu03", {"msg": "no"}, OTHER)
    run.end()
    assert not run.artifacts.exists() and run.screen.lines == []


def test_what_happened_before_the_first_task_of_ours_is_kept(run: Run) -> None:
    run.tell("unreachable", "gpu03", {"msg": "no"}, OTHER)
    run.tell("ok", "gpu01", reported(GOOD))
    assert run.document("gpu03")["run"] == sample.RUN


def test_artifacts_that_cannot_be_written_do_not_stop_a_run(tmp_path: Path) -> None:
    (tmp_path / "artifacts").write_text("a file")
    run = Run(tmp_path / "artifacts")
    run.tell("ok", "gpu01", reported(GOOD))
    run.tell("ok", "gpu02", reported(GOOD))
    run.end()
    assert len(run.screen.lines) == 1 and "GPUFLEET_ARTIFACTS" in run.screen.lines[0]


def test_names_of_hosts_cannot_leave_the_folder(run: Run) -> None:
    for name in ("../../evil", "<script>", "run"):
        run.tell("ok", name, reported(GOOD))
    run.end()
    assert {path.parent for path in run.artifacts.rglob("*")} <= {run.artifacts, run.folder}
    hosts = {row["host"] for row in json.loads((run.folder / "run.json").read_text())["hosts"]}
    assert {"../../evil", "<script>", "run"} <= hosts


EMIT = """
import json, sys
args = json.load(open(sys.argv[1]))
print(json.dumps({"changed": False, "report": json.loads(args["text"])}))
# WANT_JSON
"""
PLAY = """
- hosts: all
  gather_facts: false
  tasks:
    - emit: {text: "{{ lookup('file', playbook_dir ~ '/report.json') }}"}
      no_log: "{{ inventory_hostname == 'secret' }}"
    - command: "false"
      when: inventory_hostname == 'broken'
"""
INVENTORY = """
[all]
gpu01
secret
broken
"../x"
[all:vars]
ansible_connection=local
ansible_python_interpreter="{{ ansible_playbook_python }}"
"""


def test_ansible_itself_runs_it(tmp_path: Path) -> None:
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "emit").write_text("#!%s%s" % (sys.executable, EMIT))
    (tmp_path / "report.json").write_text(json.dumps(reported(DRIFTED)["report"]))
    (tmp_path / "play.yml").write_text(PLAY)
    (tmp_path / "inventory.ini").write_text(INVENTORY)
    (tmp_path / "ansible.cfg").write_text(
        "[defaults]\ncallbacks_enabled = gpufleet.host.report\n[gpufleet]\nartifacts = out\n"
    )
    env = {
        **{key: text for key, text in os.environ.items() if not key.startswith(("ANSIBLE_", "GPUFLEET_"))},
        "ANSIBLE_CONFIG": str(tmp_path / "ansible.cfg"),
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".cache/collections"),
        "GPUFLEET_RUN": "my-run",
    }
    argv = [Path(sys.executable).parent / "ansible-playbook", "-i", "inventory.ini", "play.yml"]
    done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert "GPUFLEET REPORT" in done.stdout, done.stdout + done.stderr
    assert "Traceback" not in done.stderr and "[WARNING]: Callback" not in done.stderr
    about = json.loads((tmp_path / "out/my-run/run.json").read_text())
    assert {row["host"]: row["state"] for row in about["hosts"]} == {
        "gpu01": "drifted",
        "../x": "drifted",
        "broken": "failed",
    }
    assert (tmp_path / "out/latest/report.html").exists()
