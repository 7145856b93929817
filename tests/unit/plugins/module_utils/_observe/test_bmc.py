# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The firmware of the management controller, as ipmitool tells it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fakes_platform import make
from fakes_platform_texts import MC_INFO

from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import Result
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import Unknown
from ansible_collections.gpufleet.host.plugins.module_utils._observe import bmc, ipmi_power

SENSORS = ipmi_power.power_of(())


def seen(text: str) -> tuple[Any, Any]:
    found = bmc.parse(text)
    return tuple(None if isinstance(one, Unknown) else one for one in (found.firmware, found.manufacturer))  # type: ignore[return-value]


def test_firmware_and_maker_are_told_from_the_specification_beside_them() -> None:
    assert seen(MC_INFO) == ("1.74", "Supermicro")


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        (("Supermicro", "Unknown (0x2A7C)"), ("1.74", None)),
        (("Firmware Revision         : 1.74", "Firmware Revision         : "), (None, "Supermicro")),
        (("1.74", "1.74\r"), ("1.74", "Supermicro")),
        (("1.74", "v1,74"), (None, "Supermicro")),
        ((MC_INFO, ""), (None, None)),
        ((MC_INFO, "Get Device ID command failed\n"), (None, None)),
    ],
)
def test_what_is_not_told_is_unknown(changed: tuple[str, str], told: tuple[Any, Any]) -> None:
    assert seen(MC_INFO.replace(*changed)) == told


def test_it_is_asked_where_there_is_a_controller(tmp_path: Path) -> None:
    host = make(tmp_path)
    assert bmc.observe(host, SENSORS).firmware == "1.74"
    assert host.asked == ["ipmitool mc info"]
    (tmp_path / "dev/ipmi0").unlink()
    host.asked.clear()
    assert bmc.observe(host, SENSORS).firmware == Unknown("no IPMI device: /dev/ipmi0 is not there")
    assert host.asked == []


def test_a_tool_that_did_not_answer_for_the_sensors_is_not_asked_again(tmp_path: Path) -> None:
    host = make(tmp_path)
    host.answers["ipmitool"] = Result(-1, "", "", "ipmitool hung: no answer in 20 s")
    sensors = ipmi_power.observe(host)
    host.asked.clear()
    assert bmc.observe(host, sensors).firmware == Unknown("ipmitool hung: no answer in 20 s")
    assert host.asked == []
