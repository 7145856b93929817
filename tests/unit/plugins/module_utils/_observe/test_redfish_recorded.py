# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import platform_cases

from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import LiveHost, MemoHost, open_capture
from ansible_collections.gpufleet.host.plugins.module_utils._observe import (
    inventory,
    ipmi,
    ipmi_power,
    redfish_recorded,
)

IPMI = """PS1 Status | 85h | ok | 10.1 | Presence detected
PS2 Status | 86h | ok | 10.2 | Presence detected%s
"""


def supply(name: str, health: str = "OK", **more: Any) -> dict[str, Any]:
    return {"Name": name, "Status": {"State": "Enabled", "Health": health}, "PowerCapacityWatts": 2000, **more}


def document(kind: str, path: str, **members: Any) -> tuple[str, str]:
    about = {"@odata.type": "#%s.v1_5_0.%s" % (kind, kind), "@odata.id": "/redfish/v1/" + path, **members}
    return "redfish get /redfish/v1/" + path, json.dumps(about)


def power_of(root: Path, *documents: tuple[str, str], sensors: str = "") -> Any:
    found = redfish_recorded.observe(MemoHost(platform_cases.capture(root, dict(documents))))
    return redfish_recorded.joined(ipmi_power.power_of(ipmi.parse_sdr(sensors)), found)


def names(power: Any) -> list[tuple[str, Any]]:
    return [(one.name, one.is_ok) for one in power.supplies]


def test_a_live_host_has_no_such_resource() -> None:
    assert redfish_recorded.observe(LiveHost("/nonexistent")) == redfish_recorded.Recorded()


def test_two_sources_that_agree(tmp_path: Path) -> None:
    both = document("Power", "Chassis/1/Power", PowerSupplies=[supply("PSU1"), supply("PSU2")])
    power = power_of(tmp_path, both, sensors=IPMI % "")
    assert (power.source, power.contradictions) == ("redfish, ipmi", ())
    assert [one.capacity_w for one in power.supplies] == [2000.0, 2000.0]


def test_the_source_that_names_a_fault_is_believed(tmp_path: Path) -> None:
    healthy = document("Power", "Chassis/1/Power", PowerSupplies=[supply("PSU1"), supply("PSU2")])
    power = power_of(tmp_path / "a", healthy, sensors=IPMI % ", Power Supply AC lost")
    assert names(power) == [("PS1 Status", True), ("PS2 Status", False)]
    assert power.contradictions == ("ipmi says that 1 supplies are in order, redfish says 2",)
    sick = document("Power", "Chassis/1/Power", PowerSupplies=[supply("PSU1"), supply("PSU2", "Critical")])
    assert names(power_of(tmp_path / "b", sick, sensors=IPMI % "")) == [("PSU1", True), ("PSU2", False)]


def test_a_single_supply_is_not_counted_against_the_sensors(tmp_path: Path) -> None:
    path = "Chassis/1/PowerSubsystem/PowerSupplies/"
    power = power_of(tmp_path / "a", document("PowerSupply", path + "0", **supply("PSU1")), sensors=IPMI % "")
    assert (len(power.supplies), power.contradictions) == (2, ())
    sick = document("PowerSupply", path + "1", **supply("PSU2", "Critical"))
    assert names(power_of(tmp_path / "b", sick, sensors=IPMI % "")) == [("PSU2", False)]


def test_enclosures_do_not_contradict_each_other(tmp_path: Path) -> None:
    one = document("Power", "Chassis/1/Power", PowerSupplies=[supply("PSU1"), supply("PSU2")])
    other = document("Power", "Chassis/GPU_Tray/Power", PowerSupplies=[supply("PSU3")])
    power = power_of(tmp_path, one, other, sensors=IPMI % "")
    assert power.contradictions == ()
    found = redfish_recorded.observe(platform_cases.capture(tmp_path / "again", dict([one, other]))).power
    assert found is not None and [name for name, _is_ok in names(found)] == ["PSU1", "PSU2", "PSU3"]


def test_the_new_model_comes_in_parts(tmp_path: Path) -> None:
    group = {"Name": "PSUs", "RedundancyType": "NPlusM", "Status": {"State": "Enabled", "Health": "OK"},
             "RedundancyGroup": [{}, {}]}  # fmt: skip
    top = "Chassis/1/PowerSubsystem"
    power = power_of(
        tmp_path,
        document("PowerSubsystem", top, PowerSupplyRedundancy=[group], PowerSupplies={"@odata.id": "x"}),
        document("PowerSupplyCollection", top + "/PowerSupplies", Members=[supply("PSU1"), supply("PSU2", "Warning")]),
        document(
            "Thermal",
            "Chassis/1/Thermal",
            Fans=[{"Name": "Fan1", "Status": {"State": "Enabled", "Health": "Critical"}}],
        ),
    )
    assert names(power) == [("PSU1", True), ("PSU2", False)]
    assert [one.state for one in power.redundancy] == ["redundant"]
    assert [one.is_ok for one in power.fans] == [False]


def test_a_system_names_the_machine_and_its_bios(tmp_path: Path) -> None:
    path = platform_cases.ROOT / "tests/corpus/redfish/hpe-ilo-system.json"
    facts = inventory.observe(MemoHost(open_capture(str(path), str(tmp_path))), [])
    assert facts["system"] == {
        "manufacturer": "HPE", "product": "ProLiant DL380a Gen11 -- SIMULATED", "serial": "4G0Q8J69B0"
    }  # fmt: skip
    assert facts["bios"] == {"vendor": None, "version": "U58 v2.44 (01/17/2025)", "date": None}


def test_of_several_systems_the_one_with_a_bios_is_the_host(tmp_path: Path) -> None:
    board = document("ComputerSystem", "Systems/HGX_Baseboard_0", Model="HGX", BiosVersion="")
    host = document("ComputerSystem", "Systems/System_0", Model="GB NVL", BiosVersion="1.2")
    found = redfish_recorded.observe(platform_cases.capture(tmp_path, dict([board, host])))
    assert found.system is not None and found.system.model == "GB NVL"


def test_what_is_no_such_resource_tells_nothing(tmp_path: Path) -> None:
    commands = {"redfish get /%d" % place: text for place, text in enumerate(
        ["", "{", "[1]", "{}", '{"@odata.type": 7}', '{"error": {"message": "no"}}', '{"@odata.type": "#Power.v1_0_0.Power"}',
         '{"a":' * 5000, '{"@odata.type": "#Bios.v1_0_0.Bios"}']
    )}  # fmt: skip
    found = redfish_recorded.observe(platform_cases.capture(tmp_path, commands))
    assert found.system is None
    assert found.power is not None and "unknown" in str(found.power.supplies)
