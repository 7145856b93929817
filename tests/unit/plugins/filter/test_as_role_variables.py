# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.gpufleet.host.plugins.filter.as_role_variables import as_role_variables


def test_options_become_variables_of_the_role_and_unknown_is_left_out() -> None:
    before = {
        "rules": [{"class": "nvme", "scheduler": "none", "nomerges": {"unknown": "hung"}}],
        "gone": {"unknown": "x"},
    }
    report = {"areas": {"block_queue": {"before": before}}}
    assert as_role_variables(report) == {"io_scheduler_rules": [{"class": "nvme", "scheduler": "none"}]}


@pytest.mark.parametrize("report", [None, "text", {}, {"areas": []}])
def test_anything_but_a_report_is_refused(report: object) -> None:
    with pytest.raises(AnsibleFilterError, match="takes the report"):
        as_role_variables(report)


def test_what_the_role_would_refuse_is_left_out() -> None:
    before = {"sysctls": {"vm.swappiness": "1"}, "cmdline": ['a="b'], "nodefault": 1}
    assert as_role_variables({"areas": {"kernel_settings": {"before": before}}}) == {
        "kernel_sysctls": {"vm.swappiness": "1"}
    }


@pytest.mark.parametrize("areas", [{"nothing": {"before": {}}}, {"platform": []}, {"platform": {"before": []}}])
def test_what_is_no_area_is_refused(areas: object) -> None:
    with pytest.raises(AnsibleFilterError, match="is no area"):
        as_role_variables({"areas": areas})
