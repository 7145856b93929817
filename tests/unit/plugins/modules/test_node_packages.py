# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module around the installation of tools: check mode, and a failure in words."""

from __future__ import annotations

from typing import Any

import pytest
from fake_module import Ended, Module

from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import LiveHost
from ansible_collections.gpufleet.host.plugins.module_utils._engine.packages import PackageError
from ansible_collections.gpufleet.host.plugins.modules import node_packages


def call(monkeypatch: pytest.MonkeyPatch, lacking: list[str], check: bool = False, error: str = "") -> tuple[Any, ...]:
    did: list[str] = []

    def install(_host: object, names: list[str], _missing: object) -> None:
        if error:
            raise PackageError(error)
        did.extend(names)

    monkeypatch.setattr(node_packages, "AnsibleModule", Module)
    monkeypatch.setattr(node_packages, "LiveHost", lambda: LiveHost("/nowhere"))
    monkeypatch.setattr(node_packages, "manager_of", lambda _host: None)
    monkeypatch.setattr(node_packages, "missing", lambda _host, _names: lacking)
    monkeypatch.setattr(node_packages, "install", install)
    Module.params, Module.check_mode = {"names": ["xfsprogs", "mdadm"]}, check
    with pytest.raises(Ended) as ended:
        node_packages.main()
    return ended.value.failed, ended.value.result, did


def test_only_what_is_missing_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert call(monkeypatch, ["mdadm"]) == (False, {"changed": True, "missing": ["mdadm"]}, ["mdadm"])
    assert call(monkeypatch, []) == (False, {"changed": False, "missing": []}, [])


def test_check_mode_installs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert call(monkeypatch, ["mdadm"], check=True) == (False, {"changed": True, "missing": ["mdadm"]}, [])


def test_a_failure_is_told_in_its_own_words(monkeypatch: pytest.MonkeyPatch) -> None:
    failed, result, _did = call(monkeypatch, ["mdadm"], error="no mirror")
    assert failed and result["msg"] == "no mirror"
