# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The output of one command as a capture: it is asked for what it can tell, and nothing else counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import every_area
import pytest
from fake_module import Ended, Module

from ansible_collections.gpufleet.host.plugins.module_utils._engine import audit_door
from ansible_collections.gpufleet.host.plugins.modules import node_audit

CORPUS = Path(__file__).resolve().parents[4] / "corpus"
WANTS = {name: every_area.ABOUT[name]["want"] for name in every_area.NAMES if name != "platform"}


def audited(monkeypatch: pytest.MonkeyPatch, text: str, areas: Any = None) -> dict[str, Any]:
    monkeypatch.setattr(audit_door, "AnsibleModule", Module)
    Module.params = {"wants": {"platform": {}, **WANTS}, "capture": str(CORPUS / text), "areas": areas}
    Module.check_mode = False
    with pytest.raises(Ended) as end:
        node_audit.main()
    assert not end.value.failed
    return dict(end.value.result["report"])


@pytest.mark.parametrize(
    ("text", "state", "warned"),
    [
        ("nvidia-smi-xml/x-t4-x8-gen3.xml", "compliant", "platform.driver-end-of-life"),
        ("dmidecode/dell-r640-8x32g-2933-memory.txt", "compliant", ""),
        ("nvidia-smi-xml/x-a100-sxm4-mig-v12.xml", "unknown", "platform.gpu-list-incomplete"),
    ],
)
def test_one_output_is_asked_for_what_it_can_tell(
    monkeypatch: pytest.MonkeyPatch, text: str, state: str, warned: str
) -> None:
    """What it lacks in itself, such as the end, is told; what such an output never shows is one note."""
    report = audited(monkeypatch, text)
    assert report["state"] == state and list(report["areas"]) == ["platform"]
    findings = report["areas"]["platform"]["findings"]
    assert not [finding for finding in findings if "was not recorded" in str(finding["observed"])]
    assert warned in ["", *(finding["id"] for finding in findings if finding["level"] == "warn")]
    (note,) = report["findings"]
    assert (note["id"], note["level"]) == ("capture.lone-text", "info")
    assert all(name in note["why"] for name in WANTS)


def test_an_area_that_was_asked_for_alone_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    report = audited(monkeypatch, "nvidia-smi-xml/x-t4-x8-gen3.xml", ["kernel_settings"])
    assert report["state"] == "unknown" and list(report["areas"]) == ["kernel_settings"] and not report.get("findings")
