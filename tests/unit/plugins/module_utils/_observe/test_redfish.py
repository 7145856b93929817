# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import Unknown
from ansible_collections.gpufleet.host.plugins.module_utils._observe import (
    redfish,
    redfish_json,
    redfish_memory,
    redfish_power,
)

ROOT = Path(__file__).resolve().parents[5]
CORPUS = ROOT / "tests/corpus/redfish"
ROWS = yaml.safe_load((ROOT / "tests/unit/cases/corpus/redfish.yml").read_text(encoding="utf-8"))
PARSERS = {
    "header": redfish.parse_header,
    "system": redfish.parse_system,
    "bios": redfish.parse_bios,
    "processor": redfish.parse_processor,
}


def text_of(name: str) -> str:
    return (CORPUS / name).read_text(encoding="utf-8")


def bios_of(name: str) -> redfish.BiosAttributes:
    found = redfish.parse_bios(text_of(name))
    assert isinstance(found, redfish.BiosAttributes)
    return found


def plain(value: Any) -> Any:
    return None if isinstance(value, Unknown) else value


def test_every_sample_has_its_row() -> None:
    assert {row["file"] for row in ROWS} == {path.name for path in CORPUS.iterdir()}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["file"])
def test_samples_of_the_corpus(row: dict[str, Any]) -> None:
    text = text_of(row["file"])
    for kind, parse in PARSERS.items():
        found = parse(text)
        if kind not in row:
            assert isinstance(found, Unknown), "a resource of another kind"
        elif kind == "bios":
            assert isinstance(found, redfish.BiosAttributes)
            expected = row["bios"]
            assert {name: found.attributes[name] for name in expected["sample"]} == expected["sample"]
            assert len(found.attributes) == expected["attributes"]
            assert plain(found.registry) == expected["registry"]
            assert plain(found.settings_path) == expected["settings_path"]
        else:
            assert {name: plain(getattr(found, name)) for name in row[kind]} == row[kind]
    if "power" in row:
        power, expected = redfish_power.parse_power(text), row["power"]
        supplies = power.supplies if isinstance(power.supplies, tuple) else None
        groups = power.redundancy if isinstance(power.redundancy, tuple) else ()
        assert (len(supplies) if supplies else None) == expected["supplies"]
        assert plain(power.draw_w) == expected["draw_w"]
        assert [plain(group.state) for group in groups] == expected["redundancy"]
        if supplies:
            assert sorted({plain(one.capacity_w) for one in supplies}) == expected["capacities"]
            assert list({plain(one.input_w) for one in supplies}) == expected["inputs"]
            assert all(one.is_present is True and one.is_ok is True for one in supplies)


def test_what_waits_for_the_next_reset() -> None:
    """Lenovo keeps it at .../Bios/Pending, which the resource itself says."""
    current, waiting = bios_of("lenovo-xcc-bios.json"), bios_of("lenovo-xcc-bios-pending.json")
    assert current.settings_path == "/redfish/v1/Systems/1/Bios/Pending"
    assert current.apply_times == ("OnReset",)
    changes = redfish.pending(current, waiting)
    assert list(changes) == ["DevicesandIOPorts_Device_Slot6"]
    assert isinstance(changes["DevicesandIOPorts_Device_Slot6"][0], Unknown)
    assert redfish.pending(current, current) == {}


def test_names_with_a_suffix_are_found() -> None:
    text = json.dumps({"@odata.type": "#Bios.v1_1_0.Bios", "Attributes": {"SR_IOVSupport_0A3F": "Enabled", "SR_x": 1}})
    bios = redfish.parse_bios(text)
    assert isinstance(bios, redfish.BiosAttributes)
    assert redfish.attribute(bios, "SR_IOVSupport") == "Enabled"
    assert isinstance(redfish.attribute(bios, "SR"), Unknown)
    assert redfish.attribute(bios_of("supermicro-gb300-bios.json"), "Above4GDecoding") == "Enabled"


def test_a_service_may_show_several_systems() -> None:
    paths = ["/redfish/v1/Systems/System_0", "/redfish/v1/Systems/HGX_Baseboard_0"]
    text = json.dumps({"@odata.type": "#C.C", "Members": [{"@odata.id": path} for path in paths] + [None, {}]})
    header = redfish.parse_header(text)
    assert isinstance(header, redfish.Header)
    assert header.members == tuple(paths)


def test_processors_of_a_collection() -> None:
    one = json.loads(text_of("lambda-processor.json"))
    absent = {"Id": "2", "Status": {"State": "Absent"}, "Model": None, "TotalCores": None}
    found = redfish.parse_processors(json.dumps({"Members": [one, absent]}))
    assert isinstance(found, tuple)
    assert [(plain(cpu.cores), cpu.is_present) for cpu in found] == [(20, True), (None, False)]
    alone = redfish.parse_processors(text_of("lambda-processor.json"))
    assert isinstance(alone, tuple) and len(alone) == 1


def test_an_error_of_the_service_is_named() -> None:
    text = json.dumps({"error": {"code": "Base.1.0.GeneralError", "message": "Session expired"}})
    for parse in PARSERS.values():
        found = parse(text)
        assert isinstance(found, Unknown)
        assert found.reason == "error: the service says Session expired"


@pytest.mark.parametrize(
    ("value", "number"),
    [(2, 2.0), ("2.5", 2.5), (None, None), (True, None), ("x", None), (10**400, None), (float("inf"), None), ({"Reading": 3}, 3.0)],
)  # fmt: skip
def test_figures(value: Any, number: float | None) -> None:
    assert plain(redfish_json.figure({"X": value}, "X")) == number


def test_attributes_of_ilo_4_stand_among_the_members() -> None:
    data = {
        "@odata.type": "#HpBios.1.1.0.HpBios", "Id": "bios", "Name": "BIOS Current Settings", "Type": "HpBios.1.1.0",
        "AttributeRegistry": "HpBiosAttributeRegistryP89.1.1.00", "Sriov": "Enabled", "ProcHyperthreading": "Enabled",
        "SettingsResult": {"Time": "x"}, "links": {"self": {}},
    }  # fmt: skip
    found = redfish.parse_bios(json.dumps(data))
    assert isinstance(found, redfish.BiosAttributes)
    assert found.attributes == {"Sriov": "Enabled", "ProcHyperthreading": "Enabled"}
    assert found.registry == "HpBiosAttributeRegistryP89.1.1.00"
    assert isinstance(redfish.parse_bios('{"@odata.type": "#Bios.v1_1_0.Bios", "Id": "BIOS"}'), Unknown)


def test_attributes_with_their_allowed_values() -> None:
    value = {"AllowableValues": ["Enabled", "Disabled"], "DataType": "string", "current_value": "Disabled"}
    data = {"@odata.type": "#Bios.v1_0_2.Bios", "Attributes": {"TPM Control": value, "SMT": True}}
    found = redfish.parse_bios(json.dumps(data))
    assert isinstance(found, redfish.BiosAttributes)
    assert found.attributes == {"TPM Control": "Disabled", "SMT": True}


def test_a_system_of_ilo_4() -> None:
    data = {
        "@odata.type": "#ComputerSystem.1.0.1.ComputerSystem", "Id": "1", "Power": "On",
        "Bios": {"Current": {"VersionString": "P89 v1.50 (09/03/2015)"}}, "Memory": {"TotalSystemMemoryGB": 64},
        "Processors": {"Count": 2, "ProcessorFamily": "Intel(R) Xeon(R) CPU E5-2620 v3 @ 2.40GHz"},
    }  # fmt: skip
    found = redfish.parse_system(json.dumps(data))
    assert isinstance(found, redfish.System)
    assert (found.bios_version, found.power_state, found.memory_gib) == ("P89 v1.50 (09/03/2015)", "On", 64.0)
    assert (found.processors, found.processor_model) == (2, "Intel(R) Xeon(R) CPU E5-2620 v3 @ 2.40GHz")


DIMM = {
    "@odata.type": "#Memory.v1_12_0.Memory", "Id": "Dimm1", "Name": "Dimm 1", "MemoryDeviceType": "DDR4",
    "CapacityMiB": 32768, "OperatingSpeedMhz": 2400, "AllowedSpeedsMHz": [2400, 2666], "PartNumber": "36ASF4G72PZ-2G6D1   ",
    "Location": {"PartLocation": {"ServiceLabel": "CPU0_DIMM_B1"}}, "Status": {"State": "Enabled", "Health": "OK"},
}  # fmt: skip


@pytest.mark.parametrize(
    "text", ["%s", "$ curl -sk https://bmc/x | jq\n%s\n$ ", "```%s\n```", "HTTP/1.1 200 OK\r\n\r\n%s"]
)
def test_a_memory_module(text: str) -> None:
    found = redfish_memory.parse_memory(text % json.dumps(DIMM, indent=1))
    assert isinstance(found, redfish_memory.Module)
    assert (found.id, found.locator, found.is_present, found.size_mib) == ("Dimm1", "CPU0_DIMM_B1", True, 32768)
    assert (found.type, found.speed_mts, found.rated_mts, found.part) == ("DDR4", 2400, 2666, "36ASF4G72PZ-2G6D1")


def test_a_module_of_ilo_4() -> None:
    data = {
        "@odata.type": "#HpMemory.1.0.0.HpMemory", "Id": "proc2dimm12", "Name": "proc2dimm12", "SizeMB": 32768, "Rank": 2,
        "DIMMStatus": "GoodInUse", "DIMMType": "DDR4", "MaximumFrequencyMHz": 2133, "SocketLocator": "PROC 2 DIMM 12",
    }  # fmt: skip
    found = redfish_memory.parse_memory(json.dumps(data))
    assert isinstance(found, redfish_memory.Module)
    assert (found.locator, found.is_present, found.size_mib, found.type) == ("PROC 2 DIMM 12", True, 32768, "DDR4")
    assert (found.rated_mts, found.rank, isinstance(found.speed_mts, Unknown)) == (2133, 2, True)
    gone = redfish_memory.parse_memory(json.dumps({**data, "SizeMB": 0, "DIMMStatus": "NotPresent"}))
    assert isinstance(gone, redfish_memory.Module) and gone.is_present is False


def test_an_empty_slot() -> None:
    empty = {"Id": "proc1dimm1", "DeviceLocator": "PROC 1 DIMM 1", "Oem": {"Hpe": {"DIMMStatus": "NotPresent"}}}
    absent = {"Id": "d2", "CapacityMiB": None, "Status": {"State": "Absent", "Health": None}}
    zero = {"Id": "d3", "CapacityMiB": 0, "Status": {"State": "Enabled"}}
    members = [{"@odata.type": "#Memory.v1_7_1.Memory", **one} for one in (empty, absent, zero)]
    found = redfish_memory.parse_memories(json.dumps({"Members": [DIMM, *members]}))
    assert isinstance(found, tuple)
    assert [one.is_present for one in found] == [True, False, False, False]
    assert all(isinstance(one.size_mib, Unknown) for one in found[1:])
    assert isinstance(redfish_memory.parse_memory("no JSON"), Unknown)
