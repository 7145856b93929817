# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.gpufleet.host.plugins.plugin_utils.adopted import adopted


def test_options_become_variables_of_the_role_and_unknown_is_left_out() -> None:
    before = {
        "rules": [{"class": "nvme", "scheduler": "none", "nomerges": {"unknown": "hung"}}],
        "gone": {"unknown": "x"},
    }
    report = {"areas": {"block_queue": {"before": before}}}
    assert adopted(report)[0] == {"io_scheduler_rules": [{"class": "nvme", "scheduler": "none"}]}


@pytest.mark.parametrize("report", [None, "text", {}, {"areas": []}])
def test_anything_but_a_report_is_refused(report: object) -> None:
    with pytest.raises(ValueError, match="takes the report"):
        adopted(report)


def test_what_the_role_would_refuse_is_left_out() -> None:
    before = {"sysctls": {"vm.swappiness": "1"}, "cmdline": ['a="b'], "nodefault": 1}
    assert adopted({"areas": {"kernel_settings": {"before": before}}})[0] == {"kernel_sysctls": {"vm.swappiness": "1"}}


@pytest.mark.parametrize("areas", [{"nothing": {"before": {}}}, {"platform": []}, {"platform": {"before": []}}])
def test_what_is_no_area_is_refused(areas: object) -> None:
    with pytest.raises(ValueError, match="is no area"):
        adopted({"areas": areas})
