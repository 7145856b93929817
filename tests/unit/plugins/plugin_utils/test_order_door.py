# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The task of an acceptance without Ansible: its messages, captures, results and files."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from ansible_collections.gpufleet.host.plugins.plugin_utils import fleet_report as fleet
from ansible_collections.gpufleet.host.plugins.plugin_utils import order_door as door
from ansible_collections.gpufleet.host.plugins.plugin_utils.order_compare import COUNTED_FINDINGS
from tests import order_sample as sample

ORDER = str(sample.EXAMPLE)
REPORT_SCHEMA = json.loads((sample.ROOT / "docs/report.schema.json").read_text(encoding="utf-8"))


def seen(number: int = 1, **changes: Any) -> dict[str, Any]:
    name = "gpu-a%02d.example.com" % number
    return {"name": name, "report": sample.report(name, sample.changed(sample.hardware(number), changes))}


def refusal(**args: Any) -> str:
    with pytest.raises(ValueError) as refused:
        door.run({"order": ORDER, **args})
    return str(refused.value)


# What is not possible


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"order": ""}, "acceptance_order: '' is not possible; allowed: the path of a purchase order, see docs/acceptance.md."),
        (
            {"order": "/no/such.yml"},
            "acceptance_order: '/no/such.yml (No such file or directory)' is not possible; allowed: a purchase order that "
            "can be read, see docs/acceptance.md.",
        ),
        (
            {"unknown_is": "acept"},
            "acceptance_unknown_is: 'acept' is not possible; allowed: refuse, accept. Did you mean accept?",
        ),
        (
            {"class_name": "hgx_h10"},
            "acceptance_class: 'hgx_h10' is not possible; allowed: hgx_h100. Did you mean hgx_h100?",
        ),
        (
            {"find_captures": "/no/such"},
            "capture: '/no/such' is not possible; allowed: the path of a capture or of a folder of captures (there is no "
            "such file or folder).",
        ),
        ({"find_captures": [1]}, "capture: '[1]' is not possible; allowed: the path of a capture, of a folder of captures, or "
         "a list of paths."),
        ({"unknwon_is": "accept"}, "order_acceptance: 'unknwon_is' is not possible; allowed: the options order, seen, pages, dest, "
         "capture, find_captures, unknown_is, extra_is, unseen_is, class_name, findings. Did you mean unknown_is?"),
    ],
)  # fmt: skip
def test_what_is_not_possible_is_one_message(args: dict[str, Any], message: str) -> None:
    assert refusal(**args) == message + " No host was touched."


def test_a_bad_order_is_refused_by_its_name_and_line(tmp_path: Path) -> None:
    file = tmp_path / "po.yml"
    file.write_text("order: 1\nhosts: {a: {gpu: []}}\n")
    assert refusal(order=str(file)).startswith("%s, line 2: hosts.a.gpu: the key 'gpu' is not possible" % file)
    file.write_bytes(b"order: \xff\n")
    assert refusal(order=str(file)) == "%s: this is no text in UTF-8. No host was touched." % file


def test_relative_paths_start_where_people_are_or_at_the_playbook(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "po.yml").write_text("order: 1\nhosts: {a: {}}\n")
    monkeypatch.chdir(tmp_path)
    assert door.run({"order": "po.yml"})["state"] == "read"
    monkeypatch.chdir("/")
    assert door.run({"order": "po.yml"}, str(tmp_path))["state"] == "read"


# Captures


def test_captures_are_found_in_a_file_a_folder_or_a_list(tmp_path: Path) -> None:
    for name in ("gpu2.tar.gz", "gpu10.tgz", "smi.xml", ".hidden"):
        (tmp_path / name).write_text("x")
    (tmp_path / "gpu03" / "files").mkdir(parents=True)
    (tmp_path / "empty").mkdir()
    found = {row["name"]: row["path"] for row in door.find_captures(str(tmp_path), "")}
    assert found == {
        "gpu2": str(tmp_path / "gpu2.tar.gz"),
        "gpu10": str(tmp_path / "gpu10.tgz"),
        "smi": str(tmp_path / "smi.xml"),
        "gpu03": str(tmp_path / "gpu03"),
    }
    assert [row["name"] for row in door.find_captures(str(tmp_path / "gpu03"), "")] == ["gpu03"]
    both = door.find_captures([str(tmp_path / "smi.xml"), str(tmp_path / "smi.xml")], "")
    assert [row["name"] for row in both] == ["smi", "smi-2"]
    assert "no captures in it" in refusal(find_captures=str(tmp_path / "empty"))


def test_names_of_captures_can_be_names_of_hosts(tmp_path: Path) -> None:
    for name in ("a b[1]:2{{ x }}.tar.gz", "--.xml"):
        (tmp_path / name).write_text("x")
    assert sorted(row["name"] for row in door.find_captures(str(tmp_path), "")) == ["a-b-1-2-x", "capture"]


# A host


def test_a_host_as_ordered_is_accepted_with_a_report() -> None:
    result = door.run({"order": ORDER, "seen": [seen()]})
    assert (result["state"], result["summary"]) == ("accepted", "as ordered")
    assert result["report"]["areas"]["acceptance"]["state"] == "compliant"
    jsonschema.Draft202012Validator(REPORT_SCHEMA["$defs"]["area"] | {"$defs": REPORT_SCHEMA["$defs"]}).validate(
        result["report"]["areas"]["acceptance"]
    )


def test_a_host_that_is_not_as_ordered_is_blocked_in_its_report() -> None:
    result = door.run({"order": ORDER, "seen": [seen(**{"gpus[0].pci_id": "10de:20f3", "psus": None})]})
    area = result["report"]["areas"]["acceptance"]
    assert (result["state"], area["state"]) == ("refused", "blocked")
    assert [row["id"] for row in area["findings"]] == ["acceptance.different", "acceptance.unknown"]
    assert area["findings"][0]["subject"] == "GPUs: model"
    document = fleet.normalise(result["report"])
    assert document is not None and document["state"] == "blocked"


def test_a_host_of_which_something_is_unknown_is_unknown_in_its_report() -> None:
    result = door.run({"order": ORDER, "seen": [seen(psus=None)]})
    document = fleet.normalise(result["report"])
    assert document is not None and (result["state"], document["state"]) == ("refused", "unknown")
    accepted = door.run({"order": ORDER, "seen": [seen(psus=None)], "unknown_is": "accept"})
    assert (accepted["state"], accepted["report"]["state"]) == ("accepted", "compliant")


@pytest.mark.parametrize("report", [None, {}, "text", {"format": 9}, {"areas": 1}])
def test_a_host_without_a_report_says_why(report: Any) -> None:
    result = door.run({"order": ORDER, "seen": [{"name": "gpu-a01", "report": report, "why": "No route\nto host"}]})
    assert result["state"] == "refused" and result["summary"].startswith("Observation: No route to host")


# The lot


def test_pages_are_written_for_each_host_and_the_lot(tmp_path: Path) -> None:
    capture = tmp_path / "gpu-a01.tar.gz"
    capture.write_bytes(b"capture")
    rows = [dict(seen(1), source=str(capture)), seen(2, **{"gpus[0].width": 8}), {}]
    result = door.run(
        {"order": ORDER, "seen": rows, "pages": True, "dest": str(tmp_path / "out"), "unseen_is": "accept"}
    )
    assert result["state"] == "refused" and "report" not in result
    assert result["lot"] == {"state": "accepted", "summary": ""}
    assert result["pages"][0] == str(tmp_path / "out/lot.html") and len(result["pages"]) == 3
    assert result["hosts"]["gpu-a01.example.com"] == {"is_accepted": True, "why": []}
    assert result["summary"].startswith("gpu-a02.example.com: GPUs: PCIe lanes: 0000:19:00.0: the card could do x16")
    lot = json.loads((tmp_path / "out/lot.json").read_text(encoding="utf-8"))
    assert lot["counts"] == {"hosts": 2, "accepted": 1, "ordered": 8} and not lot["is_accepted"]
    host = json.loads((tmp_path / "out" / lot["hosts"][-1]["file"]).read_text(encoding="utf-8"))
    assert host["host"] == "gpu-a01.example.com" and host["is_accepted"] and host["class"] == "hgx_h100"
    assert host["rests_on"]["SHA-256 of the capture"] == hashlib.sha256(b"capture").hexdigest()
    assert host["rests_on"]["SHA-256 of the order"] == hashlib.sha256(sample.EXAMPLE.read_bytes()).hexdigest()
    assert {line["verdict"] for line in host["lines"]} == {"ok"}


def test_a_lot_that_lacks_hosts_has_a_report_of_its_own(tmp_path: Path) -> None:
    result = door.run({"order": ORDER, "seen": [seen()], "pages": True, "dest": str(tmp_path)})
    document = fleet.normalise(result["report"])
    assert document is not None and document["state"] == "blocked"
    assert document["areas"]["acceptance"]["findings"][0]["subject"] == "Hosts of class hgx_h100"
    assert not fleet.is_host(document)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    message = refusal(seen=[seen()], pages=True, dest=str(tmp_path / "file"))
    assert message == "acceptance_pages: %s cannot be written: File exists" % (tmp_path / "file")


def test_pages_lie_beside_the_report_of_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUFLEET_ARTIFACTS", str(tmp_path))
    monkeypatch.setenv("GPUFLEET_JOURNAL_RUN", "my-run")
    (tmp_path / "my-run").mkdir()
    assert door.run_folder() == tmp_path / "my-run"
    monkeypatch.setenv("GPUFLEET_JOURNAL_RUN", "")
    assert door.run_folder().parent == tmp_path and door.run_folder() != tmp_path / "my-run"


# The role


def test_role_and_code_count_the_same_findings() -> None:
    defaults = yaml.safe_load((sample.ROOT / "roles/acceptance/defaults/main.yml").read_text(encoding="utf-8"))
    specs = yaml.safe_load((sample.ROOT / "roles/acceptance/meta/argument_specs.yml").read_text(encoding="utf-8"))
    options = specs["argument_specs"]["main"]["options"]
    assert tuple(defaults["acceptance_findings"]) == COUNTED_FINDINGS
    assert set(options) == set(defaults)
    for name in ("acceptance_unknown_is", "acceptance_extra_is", "acceptance_unseen_is"):
        assert defaults[name] in door.CHOICES
        # Words, and no choices: Ansible would refuse a null.
        assert all("V(%s)" % word in options[name]["description"] for word in door.CHOICES)


def test_the_documented_options_are_those_of_the_code() -> None:
    module = (sample.ROOT / "plugins/modules/order_acceptance.py").read_text(encoding="utf-8")
    documentation = yaml.safe_load(module.split('DOCUMENTATION = r"""')[1].split('"""')[0])
    assert set(documentation["options"]) == set(door.OPTIONS)
