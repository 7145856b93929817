# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A capture holds all that an audit asks: audited somewhere else, it gives the report of its host."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable

import every_area
import fakes_platform
import pytest
from fake_module import Ended, Module

from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import Result
from ansible_collections.gpufleet.host.plugins.module_utils._engine.journal import Journal
from ansible_collections.gpufleet.host.plugins.modules import node_audit, node_capture

WANTS: dict[str, dict[str, Any]] = {"platform": {}}


def ended(main: Callable[[], None], **options: Any) -> dict[str, Any]:
    Module.params, Module.check_mode = options, False
    with pytest.raises(Ended) as end:
        main()
    assert not end.value.failed, end.value.result
    return end.value.result


def report(**options: Any) -> dict[str, Any]:
    found = dict(ended(node_audit.main, run="r", **options)["report"])
    assert not [f for area in found["areas"].values() for f in area["findings"] if f["id"] == "engine.bug"]
    return {name: found[name] for name in ("state", "areas", "host_facts")}


@pytest.fixture
def use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], None]:
    def choose(host: Any) -> None:
        for module in (node_audit, node_capture):
            monkeypatch.setattr(module, "AnsibleModule", Module)
            monkeypatch.setattr(module, "LiveHost", lambda: host)
        monkeypatch.setattr(node_audit, "Journal", lambda: Journal(str(tmp_path / "world")))

    return choose


def healthy(host: Any) -> None:
    pass


def hung(host: Any) -> None:
    host.answers["nvidia-smi"] = Result(-1, "", "", "nvidia-smi hung: no answer in 60 s")


def no_driver(host: Any) -> None:
    host.answers["nvidia-smi"] = Result(-1, "", "", "nvidia-smi is not installed")
    host.answers["modinfo"] = Result(1, "", "modinfo: ERROR: Module nvidia not found.")
    host.answers["dpkg-query"] = Result(1, "", "dpkg-query: no packages found matching *nvidia*")


def links_hang(host: Any) -> None:
    host.answers["nvidia-smi nvlink"] = Result(-1, "", "", "nvidia-smi hung: no answer in 20 s")


def no_tools(host: Any) -> None:
    for tool in ("dmidecode", "ipmitool", "dcb", "ethtool", "ibv_devinfo", "journalctl", "dpkg-query", "modinfo"):
        host.answers[tool] = Result(-1, "", "", "%s is not installed" % tool)


def errors(host: Any) -> None:
    host.answers["dmidecode"] = Result(1, "# dmidecode 3.3\n# No SMBIOS nor DMI entry point found, sorry.\n", "")
    host.answers["ibv_devinfo"] = Result(255, "", "Failed to get IB devices list: Function not implemented\n")
    host.answers["journalctl"] = Result(1, "", "No journal files were found.\n")
    host.answers["nvidia-smi topo"] = Result(2, "Failed to run topology matrix\n", "")


def no_gpus(host: Any) -> None:
    for address in host.listdir("/sys/bus/pci/devices"):
        if str(host.read("/sys/bus/pci/devices/%s/class" % address)).startswith("0x0302"):
            host.remove("/sys/bus/pci/devices/" + address)


CHANGES = [healthy, hung, no_driver, links_hang, no_tools, errors, no_gpus]


@pytest.mark.parametrize("name", every_area.NAMES)
def test_every_area_is_captured_whole(use: Callable[[Any], None], name: str, tmp_path: Path) -> None:
    use(every_area.sample(name).make(tmp_path / "world"))
    wants = {name: every_area.ABOUT[name]["want"]}
    live = report(wants=wants)
    ended(node_capture.main, wants=wants, dest=str(tmp_path / "c.tar.gz"), scrub=False)
    replayed = report(wants=wants, capture=str(tmp_path / "c.tar.gz"))
    assert json.dumps(replayed, indent=1) == json.dumps(live, indent=1)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: str(change.__name__))
def test_a_capture_gives_the_report_of_its_host(
    use: Callable[[Any], None], change: Callable[[Any], None], tmp_path: Path
) -> None:
    host = fakes_platform.make(tmp_path / "world")
    change(host)
    use(host)
    live = report(wants=WANTS)
    asked = set(host.asked)
    ended(node_capture.main, wants=WANTS, dest=str(tmp_path / "c.tar.gz"), scrub=False)
    assert set(host.asked) == asked, "taking a capture asks what an audit asks"
    replayed = report(wants=WANTS, capture=str(tmp_path / "c.tar.gz"))
    assert json.dumps(replayed, indent=1) == json.dumps(live, indent=1)
