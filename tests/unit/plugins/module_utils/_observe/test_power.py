# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Power and cooling from both of its sources: ipmi, ipmi_power, redfish_power, and what power makes of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Sequence

import pytest
import yaml

from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import LiveHost, Result
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import Unknown
from ansible_collections.gpufleet.host.plugins.module_utils._observe import ipmi, ipmi_power, power, redfish_power

ROOT = Path(__file__).resolve().parents[5]
CORPUS = ROOT / "tests/corpus/ipmi"
ROWS = yaml.safe_load((ROOT / "tests/unit/cases/corpus/ipmi.yml").read_text(encoding="utf-8"))


def text_of(name: str) -> str:
    return (CORPUS / name).read_text(encoding="utf-8")


def plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    return None if isinstance(value, Unknown) else value


def picked(value: Any, names: Any) -> dict[str, Any]:
    return {name: plain(getattr(value, name)) for name in names}


def test_every_sample_has_its_row() -> None:
    assert {row["file"] for row in ROWS} == {path.name for path in CORPUS.iterdir()}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["file"])
def test_samples_of_the_corpus(row: dict[str, Any]) -> None:
    text = text_of(row["file"])
    sensors, events = ipmi.parse_sdr(text), ipmi.parse_sel(text)
    assert (len(sensors), len(events)) == (row.get("sensors", 0), row.get("events", 0))
    by_name = {sensor.name: sensor for sensor in sensors}
    for name, expected in row.get("rows", {}).items():
        assert picked(by_name[name], expected) == expected
    found = ipmi_power.power_of(sensors)
    names = ("name", "is_present", "is_ok", "input_w")
    if "sensors" in row:
        supplies = found.supplies if isinstance(found.supplies, tuple) else ()
        assert [picked(supply, names) for supply in supplies] == row.get("supplies", [])
        assert len(found.fans if isinstance(found.fans, tuple) else ()) == row.get("fans", 0)
        assert found.inlet_c == row["inlet_c"]
        assert "draw_w" not in row or found.draw_w == row["draw_w"]
    asserted = ipmi.still_asserted(events)
    assert [picked(event, ("number", "sensor", "event")) for event in asserted] == row.get("asserted", [])


DELL = """SEL              | 72h | ns  |  7.1 | No Reading
Fan1             | 30h | ok  |  7.1 | 9600 RPM
Fan2             | 31h | ns  |  7.1 | No Reading
Fan Redundancy   | 75h | ok  |  7.1 | Fully Redundant
Inlet Temp       | 04h | ok  |  7.1 | 22 degrees C
Exhaust Temp     | 01h | ok  |  7.1 | 41 degrees C
PS1 Current 1    | 6Ah | ok  | 10.1 | 1.20 Amps
Voltage 1        | 6Ch | ok  | 10.1 | 228 Volts
Status           | 85h | ok  | 10.1 | Presence detected
Status           | 86h | ok  | 10.2 | Presence detected, Power Supply AC lost
Pwr Consumption  | 77h | ok  |  7.1 | 1596 Watts
PS Redundancy    | 77h | ok  |  7.1 | Redundancy Lost
"""


def test_a_lost_supply_of_a_dell() -> None:
    found = ipmi_power.power_of(ipmi.parse_sdr(DELL.replace("\n", "\r\n")))
    assert isinstance(found.supplies, tuple) and isinstance(found.redundancy, tuple) and isinstance(found.fans, tuple)
    assert [(one.is_present, one.is_ok) for one in found.supplies] == [(True, True), (True, False)]
    assert "Power Supply AC lost" in found.supplies[1].said
    assert [(one.name, one.state) for one in found.redundancy] == [("PS Redundancy", "lost")]
    assert power.redundancy_state(found) == "lost"
    assert [(fan.name, plain(fan.speed_rpm)) for fan in found.fans] == [("Fan1", 9600.0), ("Fan2", None)]
    assert (found.inlet_c, found.draw_w) == (22.0, 1596.0)


SUPERMICRO = """CPU1 Temp        | 45.000     | degrees C  | ok    | 0.000  | 0.000  | 0.000  | 90.000 | 95.000 | 95.000
Inlet Temp       | 27.000     | degrees C  | ok    | na     | na     | na     | na     | na     | na
FAN1             | 8400.000   | RPM        | ok    | 420.0  | 560.0  | 700.0  | na     | na     | na
FANB             | na         |            | na    | na     | na     | na     | na     | na     | na
PS1 Status       | 0x1        | discrete   | 0x0180| na     | na     | na     | na     | na     | na
PS2 Status       | 0x9        | discrete   | 0x0980| na     | na     | na     | na     | na     | na
PS3 Status       | 0x0        | discrete   | 0x0000| na     | na     | na     | na     | na     | na
PSU_Redundant    | 0x0        | discrete   | 0x0280| na     | na     | na     | na     | na     | na
"""


def test_the_bits_of_the_table_with_thresholds() -> None:
    found = ipmi_power.power_of(ipmi.parse_sdr(SUPERMICRO))
    assert isinstance(found.supplies, tuple) and isinstance(found.redundancy, tuple) and isinstance(found.fans, tuple)
    assert [(one.name, plain(one.is_present), plain(one.is_ok)) for one in found.supplies] == [
        ("PS1 Status", True, True),
        ("PS2 Status", True, False),
        ("PS3 Status", None, None),
    ]
    assert found.redundancy[0].state == "lost"
    assert [plain(fan.speed_rpm) for fan in found.fans] == [8400.0, None]
    assert str(found.fans[1].speed_rpm).startswith("unknown (not applicable")
    assert found.inlet_c == 27.0


HPE = """Power Supply 1   | 52h | ok  | 10.1 | 345 Watts, Presence detected
Power Supply 2   | 53h | ok  | 10.2 | 330 Watts, Presence detected
Power Supplies   | 54h | ok  | 10.3 | Fully Redundant
01-Inlet Ambient | 60h | ok  | 64.1 | 21 degrees C
Fan 1            | 3Ah | ok  |  7.1 | 39.20 percent
Power Meter      | 70h | ok  |  7.1 | 675 Watts
"""


def test_supplies_of_an_hpe() -> None:
    found = ipmi_power.power_of(ipmi.parse_sdr(HPE))
    assert isinstance(found.supplies, tuple) and isinstance(found.fans, tuple)
    assert [(one.name, one.is_ok, one.input_w) for one in found.supplies] == [
        ("Power Supply 1", True, 345.0),
        ("Power Supply 2", True, 330.0),
    ]
    assert power.redundancy_state(found) == "redundant"
    assert (found.inlet_c, found.draw_w, found.fans[0].speed_percent) == (21.0, 675.0, 39.2)


def test_an_empty_bay_is_no_failure() -> None:
    text = "PSU1 | 52h | ok | 10.96 | Presence detected\nPSU2 | 53h | ok | 10.97 | Device Absent\nPSU1 Pin | 54h | ok | 10.96 | 90 Watts\n"
    found = ipmi_power.power_of(ipmi.parse_sdr(text))
    assert isinstance(found.supplies, tuple)
    assert [(one.name, one.is_present, plain(one.input_w)) for one in found.supplies] == [
        ("PSU1", True, 90.0),
        ("PSU2", False, None),
    ]
    assert str(found.supplies[1].is_ok).startswith("unknown (not applicable")


@pytest.mark.parametrize(
    ("word", "state"),
    [
        ("Fully Redundant", "redundant"),
        ("Redundancy Lost", "lost"),
        ("Redundancy Degraded", "degraded"),
        ("Redundancy Degraded from Fully Redundant", "degraded"),
        ("Non-Redundant: Sufficient from Redundant", "not redundant"),
        ("Non-Redundant: Insufficient Resources", "lost"),
        ("0x00", None),
        ("", None),
    ],
)
def test_words_for_redundancy(word: str, state: str | None) -> None:
    assert plain(ipmi_power.redundancy_of(word)) == state


def test_commas_and_free_ipmi() -> None:
    comma = ipmi.parse_sdr("Inlet Temp,24,degrees C,ok,7.1,System Board\nFAN2,,,ns\nPS1 Input,110,Watts,ok\n")
    assert [(one.name, plain(one.value), one.unit) for one in comma] == [
        ("Inlet Temp", 24.0, "degrees C"),
        ("FAN2", None, ""),
        ("PS1 Input", 110.0, "Watts"),
    ]
    free = ipmi.parse_sdr(
        "ID   | Name            | Type              | Reading    | Units | Event\n"
        "4    | System Temp     | Temperature       | 28.00      | C     | 'OK'\n"
        "272  | FAN 2           | Fan               | N/A        | RPM   | N/A\n"
        "607  | PS Status       | Power Supply      | N/A        | N/A   | 'Presence detected' 'Power Supply input lost (AC/DC)'\n"
    )
    assert [(one.name, plain(one.value), one.unit, one.states) for one in free] == [
        ("System Temp", 28.0, "degrees C", ()),
        ("FAN 2", None, "", ()),
        ("PS Status", None, "", ("Presence detected", "Power Supply input lost (AC/DC)")),
    ]


READING = """
    Instantaneous power reading:                   %s Watts
    Minimum during sampling period:                  4 Watts
    Maximum during sampling period:                506 Watts
    Average power reading over sample period:      220 Watts
    IPMI timestamp:                           Thu Jan  1 00:00:00 1970
    Sampling period:                          00000005 Seconds.
    Power reading state is:                   %s

"""


def test_the_power_reading() -> None:
    reading = ipmi.parse_dcmi_power(READING % ("220", "activated"))
    assert vars(reading) == {
        "now_w": 220.0, "minimum_w": 4.0, "maximum_w": 506.0, "average_w": 220.0, "is_active": True,
    }  # fmt: skip
    off = ipmi.parse_dcmi_power(READING % ("0", "deactivated"))
    assert (plain(off.now_w), off.is_active) == (None, False)
    failed = ipmi.parse_dcmi_power("DCMI request failed because: Invalid command (c1)\n")
    assert isinstance(failed.now_w, Unknown) and isinstance(failed.is_active, Unknown)


def test_the_power_reading_of_free_ipmi() -> None:
    text = (
        "Current Power                        : 332 Watts\nMinimum Power over sampling duration : 68 watts\n"
        "Maximum Power over sampling duration : 504 watts\nAverage Power over sampling duration : 348 watts\n"
        "Power Measurement                    : Active\n"
    )
    reading = ipmi.parse_dcmi_power(text)
    assert (reading.now_w, reading.minimum_w, reading.average_w, reading.is_active) == (332.0, 68.0, 348.0, True)


def test_a_unit_that_is_cut_short() -> None:
    [fan] = ipmi.parse_sdr("Virtual Fan      | 37.24 unspecifi   | nc\n")
    assert (fan.value, fan.unit, fan.states) == (37.24, "unspecifi", ())


def test_records_of_the_event_log() -> None:
    text = (
        "   1 | Pre-Init  |0000000003| Event Logging Disabled #0x01 | Log area reset/cleared | Asserted\n"
        "   a | 01/18/2023 | 14:49:30 | Power Supply #0x52 | Power Supply AC lost | Asserted\n"
        "   b | 01/18/2023 | 14:59:30 | Power Supply #0x52 | Power Supply AC lost | Deasserted\n"
        "   c | 01/18/2023 | 15:00:00 | Power Supply #0x53 | Failure detected\n"
        "SEL has no entries\n"
    )
    events = ipmi.parse_sel(text)
    assert [(one.number, one.when, one.sensor, plain(one.is_asserted)) for one in events] == [
        ("1", "Pre-Init", "Event Logging Disabled #0x01", True),
        ("a", "01/18/2023 14:49:30", "Power Supply #0x52", True),
        ("b", "01/18/2023 14:59:30", "Power Supply #0x52", False),
        ("c", "01/18/2023 15:00:00", "Power Supply #0x53", None),
    ]
    assert [one.number for one in ipmi.still_asserted(events)] == ["1"]


class Host(LiveHost):
    def __init__(self, root: Path, answers: dict[str, Result], is_live: bool = True) -> None:
        super().__init__(str(root))
        self.answers, self.is_live = answers, is_live
        self.asked: list[str] = []

    def run(self, argv: Sequence[str], deadline_s: float = 10.0) -> Result:
        self.asked.append(" ".join(argv))
        return self.answers.get(" ".join(argv), Result(-1, "", "", "%s was not recorded" % " ".join(argv)))


@pytest.fixture
def with_device(tmp_path: Path) -> Path:
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/ipmi0").touch()
    return tmp_path


def test_two_runs_tell_all(with_device: Path) -> None:
    host = Host(
        with_device,
        {"ipmitool sdr elist": Result(0, DELL, ""), "ipmitool dcmi power reading": Result(0, READING % ("1600", "activated"), "")},
    )  # fmt: skip
    found = ipmi_power.observe(host)
    assert isinstance(found.supplies, tuple)
    assert found.draw_w == 1600.0
    assert host.asked == ["ipmitool sdr elist", "ipmitool dcmi power reading"]


def test_without_a_controller_nothing_is_run(tmp_path: Path) -> None:
    host = Host(tmp_path, {})
    found = ipmi_power.observe(host)
    assert isinstance(found.supplies, Unknown) and isinstance(found.inlet_c, Unknown)
    assert host.asked == []


@pytest.mark.parametrize("reason", ["ipmitool is not installed", "ipmitool hung: no answer in 20 s"])
def test_a_tool_that_is_missing_or_hangs_is_asked_once(with_device: Path, reason: str) -> None:
    host = Host(with_device, {"ipmitool sdr elist": Result(-1, "", "", reason)})
    found = ipmi_power.observe(host)
    assert {plain(found.supplies), plain(found.fans), plain(found.draw_w)} == {None}
    assert found.supplies == Unknown(reason)
    assert len(host.asked) == 1


def test_a_meter_that_shows_0_is_no_meter(with_device: Path) -> None:
    host = Host(
        with_device,
        {"ipmitool sdr elist": Result(0, HPE, ""), "ipmitool dcmi power reading": Result(0, READING % ("0", "activated"), "")},
    )  # fmt: skip
    assert ipmi_power.observe(host).draw_w == 675.0


def test_a_capture_may_hold_another_table(tmp_path: Path) -> None:
    found = ipmi_power.observe(Host(tmp_path, {"ipmitool sensor": Result(0, SUPERMICRO, "")}, is_live=False))
    assert isinstance(found.supplies, tuple)
    parts = {"ipmitool sdr type Power Supply": Result(0, HPE, "")}
    found = ipmi_power.observe(Host(tmp_path, parts, is_live=False))
    assert isinstance(found.supplies, tuple) and len(found.supplies) == 2


# Redfish


def supply(name: str, state: str = "Enabled", health: str | None = "OK", **more: Any) -> dict[str, Any]:
    return {"MemberId": name[-1], "Name": name, "Status": {"State": state, "Health": health}, **more}


def test_supplies_of_the_old_model() -> None:
    data = {
        "@odata.type": "#Power.v1_5_0.Power",
        "PowerControl": [{"PowerConsumedWatts": None}, {"PowerConsumedWatts": 2380}],
        "PowerSupplies": [
            supply("PSU1", PowerCapacityWatts=2400, PowerInputWatts=410.5, LineInputVoltage=230),
            supply("PSU2", health="Critical", PowerCapacityWatts=2400, PowerInputWatts=0),
            supply("PSU3", state="Absent", health=None, PowerCapacityWatts=None),
            supply("PSU4", state="UnavailableOffline"),
            None,
        ],
        "Redundancy": [
            {"Name": "R", "Mode": "N+m", "MinNumNeeded": 2, "RedundancySet": [{}, {}], "Status": {"Health": "Warning"}}
        ],
    }
    found = redfish_power.parse_power(json.dumps(data))
    assert isinstance(found.supplies, tuple) and isinstance(found.redundancy, tuple)
    assert [(one.name, one.is_present, plain(one.is_ok), plain(one.capacity_w), plain(one.input_w)) for one in found.supplies] == [
        ("PSU1", True, True, 2400.0, 410.5),
        ("PSU2", True, False, 2400.0, 0.0),
        ("PSU3", False, None, None, None),
        ("PSU4", True, False, None, None),
    ]  # fmt: skip
    assert str(found.supplies[2].is_ok).startswith("unknown (not applicable")
    assert [(one.state, one.needed, one.supplies) for one in found.redundancy] == [("degraded", 2, 2)]
    assert found.draw_w == 2380.0


def test_supplies_of_the_new_model() -> None:
    members = [
        supply("PSU 0", **{"@odata.type": "#PowerSupply.v1_5_0.PowerSupply", "PowerCapacityWatts": 3300}),
        supply("PSU 1", state="Absent", health=None),
    ]
    collection = {"@odata.type": "#PowerSupplyCollection.PowerSupplyCollection", "Members": members}
    subsystem = {
        "@odata.type": "#PowerSubsystem.v1_1_0.PowerSubsystem",
        "CapacityWatts": 6600,
        "Allocation": {"RequestedWatts": 0},
        "PowerSupplies": {"@odata.id": "/redfish/v1/Chassis/1/PowerSubsystem/PowerSupplies"},
        "PowerSupplyRedundancy": [
            {
                "RedundancyType": "NPlusM", "MinNeededInGroup": 1, "MaxSupportedInGroup": 2,
                "RedundancyGroup": [{}, {}], "Status": {"State": "Enabled", "Health": "OK"},
            }
        ],
    }  # fmt: skip
    path = "/redfish/v1/Chassis/1/"
    texts = {
        path + "PowerSubsystem": json.dumps(subsystem),
        path + "PowerSubsystem/PowerSupplies": json.dumps(collection),
        path + "ThermalSubsystem/ThermalMetrics": json.dumps(
            {"@odata.type": "#ThermalMetrics.v1_0_1.ThermalMetrics", "TemperatureSummaryCelsius": {"Intake": {"Reading": 24.5}}}
        ),
        path + "ThermalSubsystem/Fans/FAN0": json.dumps(
            {
                "@odata.type": "#Fan.v1_3_0.Fan", "Name": "Fan 0", "SpeedPercent": {"Reading": 40, "SpeedRPM": 9000},
                "Status": {"State": "Enabled", "Health": "OK"},
            }
        ),
    }  # fmt: skip
    found = power.merge(redfish_power.power_of(texts))
    assert isinstance(found.supplies, tuple) and isinstance(found.fans, tuple)
    assert [(one.name, one.is_present, plain(one.capacity_w)) for one in found.supplies] == [
        ("PSU 0", True, 3300.0),
        ("PSU 1", False, None),
    ]
    assert power.redundancy_state(found) == "redundant"
    assert (found.inlet_c, found.fans[0].speed_rpm, found.fans[0].speed_percent) == (24.5, 9000.0, 40.0)
    singles = {
        path + "PowerSubsystem/PowerSupplies/" + str(number): json.dumps(one) for number, one in enumerate(members)
    }
    apart = power.merge(redfish_power.power_of(singles))
    assert isinstance(apart.supplies, tuple) and len(apart.supplies) == 2


def test_links_alone_are_unknown() -> None:
    text = json.dumps({"Members": [{"@odata.id": "/redfish/v1/Chassis/1/PowerSubsystem/PowerSupplies/0"}]})
    found = redfish_power.parse_power_supplies(text)
    assert found.supplies == Unknown("the members are links only")


def test_thermal_of_the_old_model() -> None:
    data = {
        "@odata.type": "#Thermal.v1_7_0.Thermal",
        "Temperatures": [
            {"Name": "CPU1 Inlet", "ReadingCelsius": 60, "PhysicalContext": "CPU"},
            {
                "Name": "02-System Inlet",
                "ReadingCelsius": 22,
                "PhysicalContext": "Intake",
                "Status": {"State": "Absent"},
            },
            {
                "Name": "01-Inlet Ambient",
                "ReadingCelsius": 21,
                "PhysicalContext": "Intake",
                "Status": {"State": "Enabled"},
            },
        ],
        "Fans": [
            {"Name": "Fan 1", "Reading": 34, "ReadingUnits": "Percent", "Status": {"Health": "OK", "State": "Enabled"}},
            {"FanName": "Fan 2", "ReadingRPM": 5400, "Status": {"Health": "OK"}},
            {"Name": "Fan 3", "Reading": None, "ReadingUnits": "RPM", "Status": {"State": "Absent"}},
        ],
    }
    found = redfish_power.parse_thermal(json.dumps(data))
    assert isinstance(found.fans, tuple)
    assert found.inlet_c == 21.0
    assert [(fan.name, plain(fan.speed_rpm), plain(fan.speed_percent), plain(fan.is_ok)) for fan in found.fans] == [
        ("Fan 1", None, 34.0, True),
        ("Fan 2", 5400.0, None, True),
        ("Fan 3", None, None, None),
    ]
    assert found.fans[2].is_present is False


@pytest.mark.parametrize(
    "text",
    [None, Unknown("HTTP 401"), "", "{", "[]", '{"@odata.type": "#Bios.v1_0_0.Bios"}', "[" * 5000, '{"a":' * 3000],
)
def test_what_is_no_power_is_unknown(text: Any) -> None:
    for parse in (redfish_power.parse_power, redfish_power.parse_thermal, redfish_power.parse_power_subsystem):
        found = parse(text)
        assert isinstance(found.supplies, Unknown) and isinstance(found.fans, Unknown)


def test_metrics_of_a_supply() -> None:
    data = {"@odata.type": "#PowerSupplyMetrics.v1_0_1.PowerSupplyMetrics", "InputPowerWatts": {"Reading": 937.4}}
    assert redfish_power.parse_power_supply_metrics(json.dumps(data)) == 937.4


def test_what_a_chassis_draws() -> None:
    data = {"@odata.type": "#EnvironmentMetrics.v1_3_0.EnvironmentMetrics", "PowerWatts": {"Reading": 1234.5}}
    texts = {"/redfish/v1/Chassis/Chassis_0/EnvironmentMetrics": json.dumps(data)}
    assert power.merge(redfish_power.power_of(texts)).draw_w == 1234.5


# Both together


def part(source: str, *flags: tuple[bool, bool], **more: Any) -> power.Power:
    none = Unknown("not told")
    supplies = tuple(power.Supply("PSU", present, ok, none, none, none) for present, ok in flags) or none
    said = {"redundancy": none, "fans": none, "inlet_c": none, "draw_w": none, **more}
    return power.Power(source, supplies, **said)


def test_sources_fill_each_other() -> None:
    found = power.merge([part("ipmi", inlet_c=22.0), part("redfish", (True, True), draw_w=800.0)])
    assert (found.source, found.inlet_c, found.draw_w) == ("ipmi, redfish", 22.0, 800.0)
    assert isinstance(found.supplies, tuple)
    assert found.contradictions == ()


def test_sources_that_contradict_each_other_are_named() -> None:
    found = power.merge([part("ipmi", (True, True), (True, True)), part("redfish", (True, True), (True, False))])
    assert found.contradictions == ("ipmi says that 2 supplies are in order, redfish says 1",)


def test_nothing_at_all_is_unknown() -> None:
    found = power.merge([])
    assert isinstance(found.supplies, Unknown)
    assert isinstance(power.redundancy_state(found), Unknown)
