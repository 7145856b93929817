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
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import Unknown, known
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


NUMBERED_FROM_0 = """PSU0_Status      | 80h | ok  |  0.1 | Presence detected
PSU0_Pin         | 85h | ok  |  0.1 | 109.76 Watts
PSU0_Pout        | 86h | ok  |  0.1 | 98 Watts
PSU1_Status      | 90h | ok  |  0.1 | Presence detected
PSU1_Pin         | 95h | ok  |  0.1 | 113.68 Watts
Inlet1_Temp      | 38h | ok  |  0.1 | 28.11 degrees C
"""


def test_supplies_numbered_from_0_of_one_entity() -> None:
    found = ipmi_power.power_of(ipmi.parse_sdr(NUMBERED_FROM_0))
    assert isinstance(found.supplies, tuple)
    assert [(one.name, one.is_ok, one.input_w) for one in found.supplies] == [
        ("PSU0_Status", True, 109.76),
        ("PSU1_Status", True, 113.68),
    ]
    assert (found.inlet_c, found.draw_w) == (28.11, 223.44)


@pytest.mark.parametrize("mark", ["node-01: ", "> ", "2024-05-11T22:02:35Z ", "\x1b[1m"])
def test_what_stands_before_each_row_is_no_part_of_it(mark: str) -> None:
    def marked(text: str) -> str:
        return "".join(mark + row + "\r\n" for row in text.splitlines())

    for text in (DELL, SUPERMICRO, LONG):
        assert ipmi.parse_sdr(marked(text)) == ipmi.parse_sdr(text) != ()
    reading = READING % ("220", "activated")
    assert ipmi.parse_dcmi_power(marked(reading)) == ipmi.parse_dcmi_power(reading)


def test_a_number_that_does_not_lead_the_name() -> None:
    text = (
        "STATUS_PSU0 | 80h | ok | 10.1 | Presence detected\nCUR_IN | 82h | ok | 10.1 | 1.5 Amps\n"
        "PWR_PSU0 | 85h | ok | 10.1 | 109 Watts\n"
        "STATUS_PSU1 | 81h | ok | 10.2 | Presence detected, Power Supply AC lost\n"
        "PS 3 | 00h | ns | 10.3 | Logical FRU @02h\niDRAC | 00h | ok | 7.1 | Dynamic MC @ 20h\n"
        "Temp_PSU0_Inlet | C4h | ok | 10.1 | 30 degrees C\n"
    )
    found = ipmi_power.power_of(ipmi.parse_sdr(text))
    assert isinstance(found.supplies, tuple)
    assert [(one.name, one.is_ok, plain(one.input_w)) for one in found.supplies] == [
        ("STATUS_PSU0", True, 109.0),
        ("STATUS_PSU1", False, None),
    ]
    assert isinstance(found.inlet_c, Unknown), "the inlet of a supply is not that of the host"


def test_rows_that_were_bent_on_the_way() -> None:
    found = ipmi.parse_sdr(
        "root@n1:~# ipmitool sdr elist\n"
        "> # Fan 1   | 30h | ok  |  7.1 | 5040 RPM\n"
        "12V         | 06h | ok  | 10.1 | 11,50 Volts\n"
        "PSU0_Status | C0h | ok  |  8.1 | Presence detected | AC OK\n"
        "Status         63h | ok | 10.2 | Presence detected, Power Supply AC lost\n"
        "Total_Power | 760 Watts         | ok    # what the host draws\n"
        "PS2 Status  | C9h | ok  | 10.2 | Presence detected, Failure detected     <= NOT OK !!\n"
        "\x1b[32mFP Temp     | 01h | ok  | 12.1 | 77 degrees F\x1b[0m\n"
    )
    assert [(one.name, one.id, plain(one.value), one.states) for one in found] == [
        ("Fan 1", "30h", 5040.0, ()),
        ("12V", "06h", 11.5, ()),
        ("PSU0_Status", "C0h", None, ("Presence detected", "AC OK")),
        ("Status", "63h", None, ("Presence detected", "Power Supply AC lost")),
        ("Total_Power", "", 760.0, ()),
        ("PS2 Status", "C9h", None, ("Presence detected", "Failure detected")),
        ("FP Temp", "01h", 77.0, ()),
    ]
    assert ipmi_power.power_of(found).inlet_c == 25.0


LONG = """Running Get VSO Capabilities my_addr 0x20, transit 0, target 0x20
Sensor ID              : CPU1 Status (0x1)
 Entity ID             : 3.1 (Processor)
 Sensor Type (Discrete): Processor (0x07)
 Sensor Reading        : 0h
 States Asserted       : Processor
                         [Presence detected]
 Assertions Enabled    : Processor
                         [Thermal Trip]

Sensor ID              : PSU1 Status (0x31)
 Entity ID             : 10.1 (Power Supply)
 Sensor Type (Discrete): Power Supply (0x08)
 States Asserted       : Power Supply
                         [Presence detected]
                         [Power Supply AC lost]

Locating sensor record...
Sensor ID              : FAN2 (0x42)
 Entity ID             : 29.2
 Sensor Type (Threshold)  : Fan
 Sensor Reading        : 500 (+/- 0) RPM
 Status                : Lower Critical
 Lower Critical        : 500.000
Sensor ID              : PS2 Status (0x3)
 Entity ID             : 10.2
 Sensor Type (Discrete): Power Supply
 Unable to read sensor: Device Not Present
"""


def test_the_long_form_of_sensors() -> None:
    sensors = ipmi.parse_sdr(LONG)
    assert [(one.name, one.id, one.status, one.entity, plain(one.value), one.states) for one in sensors] == [
        ("CPU1 Status", "01h", "ok", "3.1", None, ("Presence detected",)),
        ("PSU1 Status", "31h", "ok", "10.1", None, ("Presence detected", "Power Supply AC lost")),
        ("FAN2", "42h", "lcr", "29.2", 500.0, ()),
        ("PS2 Status", "03h", "ns", "10.2", None, ()),
    ]
    found = ipmi_power.power_of(sensors)
    assert isinstance(found.supplies, tuple) and isinstance(found.fans, tuple)
    assert [plain(one.is_ok) for one in found.supplies] == [False, None]
    assert found.fans[0].is_ok is False


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


def test_columns_that_were_cut_or_framed() -> None:
    cut = ipmi.parse_sdr(
        "CPU1 Temp        | 58.000     | degrees C  | ok\n"
        "PS1 Status       | 0xb        | discrete   | 0x0b00| na\n"
        "FAN2             | na         |            | na\n"
    )
    assert [(one.name, one.status, plain(one.value)) for one in cut] == [
        ("CPU1 Temp", "ok", 58.0),
        ("PS1 Status", "ok", None),
        ("FAN2", "na", None),
    ]
    assert cut[1].states == ("Presence detected", "Failure detected", "Power Supply AC lost")
    framed = ipmi.parse_sdr("| Name | Id | |\n|---|---|---|\n| Fan1 | 30h | ok | 7.1 | 5040 RPM |\n")
    assert [(one.name, one.value) for one in framed] == [("Fan1", 5040.0)]


def test_the_columns_of_ipmimonitoring() -> None:
    old = ipmi.parse_sdr(
        "Record_ID | Sensor Name | Sensor Group | Monitoring Status | Sensor Units | Sensor Reading\n"
        "12 | Ambient Temp | Temperature | Nominal | C | 25.000000\n"
        "22 | CMOS Battery | Battery | Nominal | N/A | \u2018OK\u2019\n"
        "30 | PS 1 Status | Power Supply | Critical | N/A | 'Presence detected' 'Power Supply AC lost'\n"
    )
    assert [(one.name, one.status, plain(one.value), one.states) for one in old] == [
        ("Ambient Temp", "ok", 25.0, ()),
        ("CMOS Battery", "ok", None, ()),
        ("PS 1 Status", "cr", None, ("Presence detected", "Power Supply AC lost")),
    ]


def test_fans_that_tell_their_state_beside_their_speed() -> None:
    found = ipmi_power.power_of(
        ipmi.parse_sdr(
            "Fan Block 1      | 09h | ok  |  7.1 | 21.56 percent, Transition to Running\n"
            "Fan Block 2      | 0Ah | ok  |  7.2 | 0 percent, Failure detected\n"
            "Fans             | 0Dh | ok  |  7.5 | 0 percent, Fully Redundant\n"
        )
    )
    assert isinstance(found.fans, tuple)
    assert [(one.name, one.speed_percent, one.is_ok) for one in found.fans] == [
        ("Fan Block 1", 21.56, True),
        ("Fan Block 2", 0.0, False),
    ]


def test_watts_by_another_name() -> None:
    found = ipmi_power.power_of(ipmi.parse_sdr("Power Reading    | 228 Watts/hour    | ok\n"))
    assert found.draw_w == 228.0
    dell = ipmi_power.power_of(ipmi.parse_sdr("Pwr Consumption  | 77h | ok  | 10.1 | 168 Watts\n"))
    assert (dell.draw_w, known(dell.supplies)) == (168.0, False)


def test_the_power_reading() -> None:
    reading = ipmi.parse_dcmi_power(READING % ("220", "activated"))
    assert vars(reading) == {
        "now_w": 220.0, "minimum_w": 4.0, "maximum_w": 506.0, "average_w": 220.0, "is_active": True,
    }  # fmt: skip
    off = ipmi.parse_dcmi_power(READING % ("0", "deactivated"))
    assert (plain(off.now_w), off.is_active) == (None, False)
    failed = ipmi.parse_dcmi_power("DCMI request failed because: Invalid command (c1)\n")
    assert isinstance(failed.now_w, Unknown) and isinstance(failed.is_active, Unknown)


def test_what_free_ipmi_thinks_of_a_sensor() -> None:
    [volts, _supply] = ipmi.parse_sdr(
        "ID | Name  | Type    | State    | Reading | Units | Event\n"
        "80 | +12 V | Voltage | Critical | 10.19   | V     | 'At or Below (<=) Lower Critical Threshold'\n"
        "90 | PSU1  | Power Supply | Nominal | N/A | N/A | 'Presence detected'\n"
    )
    assert (volts.is_alarm, volts.value) == (True, 10.19)


def test_the_power_reading_of_ipmiutil() -> None:
    text = (
        "ipmiutil dcmi ver 3.17\n  Current Power:                   304 Watts\n"
        "  Min Power over sample duration:  6 Watts\n  Max Power over sample duration:  404 Watts\n"
        "  Avg Power over sample duration:  49 Watts\n  Power reading state is:          active\n"
        "  Power Limit:       896 Watts (inactive)\n"
    )
    reading = ipmi.parse_dcmi_power(text)
    assert vars(reading) == {
        "now_w": 304.0, "minimum_w": 6.0, "maximum_w": 404.0, "average_w": 49.0, "is_active": True,
    }  # fmt: skip


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


def test_other_forms_of_the_event_log() -> None:
    comma = ipmi.parse_sel(
        "1,09/07/2021,12:12:35,Drive Slot / Bay #0x42,Drive Present,Deasserted\n"
        "2,09/07/2021,12:12:36,Power Supply #0x51,AC out-of-range, but present,Asserted\n"
    )
    assert [(one.sensor, one.event, one.is_asserted) for one in comma] == [
        ("Drive Slot / Bay #0x42", "Drive Present", False),
        ("Power Supply #0x51", "AC out-of-range, but present", True),
    ]
    [free] = ipmi.parse_sel(
        "ID  | Date        | Time     | Name       | Type         | Event\n"
        "2   | Jul-06-2015 | 09:15:50 | PS2 Status | Power Supply | Power Supply input lost (AC/DC)\n"
    )
    assert (free.when, free.sensor) == ("Jul-06-2015 09:15:50", "Power Supply PS2 Status")
    assert (free.event, plain(free.is_asserted)) == ("Power Supply input lost (AC/DC)", None)
    long = ipmi.parse_sel(
        "SEL Record ID          : 000a\n Record Type           : 02\n Timestamp             : 08/08/2019 10:10:10\n"
        " Sensor Type           : Power Supply\n Sensor Number         : 72\n"
        " Event Direction       : Assertion Event\n Description           : Power Supply AC lost\n\n"
        "SEL Record ID          : 000b\n Sensor Type           : Power Supply\n Sensor Number         : 72\n"
        " Event Direction       : Deassertion Event\n Description           : Power Supply AC lost\n"
    )
    assert [(one.number, one.sensor, one.is_asserted) for one in long] == [
        ("a", "Power Supply #0x72", True),
        ("b", "Power Supply #0x72", False),
    ]
    assert ipmi.still_asserted(long) == ()


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


def test_the_line_and_the_capacity_of_a_supply() -> None:
    ranges = [{"NominalVoltageType": "AC200To240V", "CapacityWatts": 2400}]
    one = supply("PSU1", **{"@odata.type": "#PowerSupply.v1_5_1.PowerSupply"}, InputRanges=ranges)
    for line, is_ok in (("Normal", True), ("LossOfInput", False), (None, True)):
        found = redfish_power.parse_power_supplies(json.dumps({**one, "LineInputStatus": line})).supplies
        assert isinstance(found, tuple)
        assert (found[0].is_ok, found[0].capacity_w) == (is_ok, 2400.0)
    two = {**one, "InputRanges": [*ranges, {"NominalVoltageType": "AC120V", "CapacityWatts": 1200}]}
    found = redfish_power.parse_power_supplies(json.dumps(two)).supplies
    assert isinstance(found, tuple)
    assert isinstance(found[0].capacity_w, Unknown), "which of the two holds is not told"


def test_a_supply_alone_in_the_old_model() -> None:
    data = {
        "@odata.type": "#Power.v1_0_2.PowerSupply",
        "MemberID": "PSU.Slot.2",
        "Name": "PS2 Status",
        "PowerCapacityWatts": 495,
    }
    found = redfish_power.parse_power_supplies(json.dumps(data)).supplies
    assert isinstance(found, tuple)
    assert [(one.name, one.capacity_w) for one in found] == [("PS2 Status", 495.0)]


def test_power_and_cooling_of_ilo_4() -> None:
    text = "HTTP/1.1 200 OK\r\nServer: HP-iLO-Server\r\n\r\n" + json.dumps(
        {
            "@odata.type": "#PowerMetrics.0.11.0.PowerMetrics",
            "PowerConsumedWatts": 73,
            "PowerSupplies": [{"Model": "720478-B21", "PowerCapacityWatts": 500, "Status": {"Health": "OK", "State": "Enabled"}}],
        }
    )  # fmt: skip
    found = redfish_power.parse_power(text)
    assert isinstance(found.supplies, tuple)
    assert (found.draw_w, found.supplies[0].name, found.supplies[0].is_ok) == (73.0, "PSU 1", True)
    thermal = {
        "@odata.type": "#Thermal.1.1.0.Thermal",
        "Fans": [{"CurrentReading": 81, "FanName": "Fan 1", "Units": "Percent", "Status": {"Health": "OK", "State": "Enabled"}}],
        "Temperatures": [{"CurrentReading": 18, "Name": "01-Inlet Ambient", "PhysicalContext": "Intake"}],
    }  # fmt: skip
    cool = redfish_power.parse_thermal(json.dumps(thermal))
    assert isinstance(cool.fans, tuple)
    assert (cool.fans[0].name, cool.fans[0].speed_percent, cool.inlet_c) == ("Fan 1", 81.0, 18.0)


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
