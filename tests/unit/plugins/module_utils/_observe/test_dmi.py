# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from pathlib import Path
from typing import Any, Sequence

import pytest
import yaml

from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import LiveHost, Result
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import Unknown, known
from ansible_collections.gpufleet.host.plugins.module_utils._observe import dmi, dmi_text

ROOT = Path(__file__).resolve().parents[5]
CORPUS = ROOT / "tests/corpus/dmidecode"
ROWS = yaml.safe_load((ROOT / "tests/unit/cases/corpus/dmidecode.yml").read_text(encoding="utf-8"))


def text_of(name: str) -> str:
    return (CORPUS / name).read_text(encoding="utf-8")


def plain(value: Any) -> Any:
    return None if isinstance(value, Unknown) else value


def each(modules: Sequence[dmi.Module], name: str) -> list[Any]:
    """The different values, None for unknown."""
    return sorted({plain(getattr(module, name)) for module in modules}, key=str)


def test_every_sample_has_its_row() -> None:
    assert {row["file"] for row in ROWS} == {path.name for path in CORPUS.iterdir()}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["file"])
def test_tables_of_the_corpus(row: dict[str, Any]) -> None:
    found = dmi.parse_dmidecode(text_of(row["file"]))
    for part in ("bios", "system"):
        if part in row:
            assert {name: plain(getattr(getattr(found, part), name)) for name in row[part]} == row[part]
        else:
            assert isinstance(getattr(found, part), Unknown)
    if "modules" not in row:
        assert isinstance(found.modules, Unknown), "no modules are unknown, not a host without memory"
    else:
        assert isinstance(found.modules, tuple)
        populated = [module for module in found.modules if module.is_populated is True]
        empty = [module for module in found.modules if module.is_populated is False]
        assert len(populated) + len(empty) == len(found.modules)
        assert all(str(module.size_mib).startswith("unknown (not applicable") for module in empty)
        assert {
            "slots": len(found.modules),
            "populated": len(populated),
            "sizes": sorted(each(populated, "size_mib")),
            "speeds": each(populated, "speed_mts"),
            "configured": each(populated, "configured_mts"),
            "types": each(populated, "type"),
            "ecc": each(populated, "has_ecc"),
        } == row["modules"]
    if "unavailable" in row:
        assert str(found.modules) == "unknown (DMI is not available: %s)" % row["unavailable"]
    if "structures" in row:
        assert len(found.structures) == row["structures"]


def test_a_module_with_all_that_is_told() -> None:
    found = dmi.parse_dmidecode(text_of("dell-r640-8x32g-2933-memory.txt"))
    assert isinstance(found.modules, tuple)
    module = found.modules[0]
    assert (module.locator, module.rank, module.part) == ("A1", 2, "M393A4K40CB2-CVF")
    assert (module.total_width_bits, module.data_width_bits, module.use) == (72, 64, "System Memory")
    assert isinstance(found.arrays, tuple)
    assert (found.arrays[0].slots, found.arrays[0].max_capacity_mib) == (24, 7680 * 1024)


@pytest.mark.parametrize(
    ("size", "mib"),
    [
        ("32 GB", 32768),
        ("16384 MB", 16384),
        ("2 TB", 2 << 20),
        ("524288 kB", 512),
        ("64 GiB", 65536),
        ("No Module Installed", False),
        ("Not Installed", False),
        ("0 MB", False),
        ("Unknown", None),
        ("", None),
    ],
)
def test_sizes(size: str, mib: Any) -> None:
    text = "Handle 0x0011, DMI type 17, 92 bytes\nMemory Device\n\tSize: %s\n\tLocator: A1\n" % size
    found = dmi.parse_dmidecode(text)
    assert isinstance(found.modules, tuple)
    [module] = found.modules
    assert plain(module.size_mib) == (mib or None)
    assert plain(module.is_populated) == (None if mib is None else bool(mib))


@pytest.mark.parametrize("key", ["Configured Memory Speed", "Configured Clock Speed", "Configured Speed"])
@pytest.mark.parametrize(("word", "mts"), [("4400 MT/s", 4400), ("1333 MHz", 1333), ("Unknown", None), ("0 MHz", None)])
def test_configured_speed_of_all_versions(key: str, word: str, mts: int | None) -> None:
    text = "Handle 0x1, DMI type 17, 92 bytes\r\nMemory Device\r\n\tSize: 8 GB\r\n\t%s: %s\r\n" % (key, word)
    found = dmi.parse_dmidecode(text)
    assert isinstance(found.modules, tuple)
    assert plain(found.modules[0].configured_mts) == mts


def test_processors_slots_and_supplies() -> None:
    found = dmi.parse_dmidecode(
        "Handle 0x0400, DMI type 4, 48 bytes\nProcessor Information\n\tSocket Designation: CPU1\n"
        "\tVersion: Intel(R) Xeon(R) Platinum 8480+\n\tStatus: Populated, Enabled\n\tCore Count: 56\n"
        "\tThread Count: 112\n\tMax Speed: 4000 MHz\n\n"
        "Handle 0x0401, DMI type 4, 48 bytes\nProcessor Information\n\tSocket Designation: CPU2\n"
        "\tStatus: Unpopulated\n\n"
        "Handle 0x0900, DMI type 9, 24 bytes\nSystem Slot Information\n\tDesignation: PCIe Slot 31\n"
        "\tType: x16 PCI Express 5 x16\n\tCurrent Usage: In Use\n\tBus Address: 0000:19:00.0\n\n"
        "Handle 0x2700, DMI type 39, 22 bytes\nSystem Power Supply\n\tLocation: PSU1.1\n\tName: PWR SPLY,2800W\n"
        "\tMax Power Capacity: 2800 W\n\tStatus: Present, OK\n\n"
        "Handle 0x2701, DMI type 39, 22 bytes\nSystem Power Supply\n\tName: PSU2\n\tStatus: Not Present\n"
    )
    assert isinstance(found.processors, tuple) and isinstance(found.slots, tuple) and isinstance(found.supplies, tuple)
    one, two = found.processors
    assert (one.model, one.cores, one.threads, one.is_populated) == ("Intel(R) Xeon(R) Platinum 8480+", 56, 112, True)
    assert two.is_populated is False
    assert (found.slots[0].usage, found.slots[0].address) == ("In Use", "0000:19:00.0")
    assert [(supply.name, plain(supply.max_power_w), supply.is_present) for supply in found.supplies] == [
        ("PWR SPLY,2800W", 2800, True),
        ("PSU2", None, False),
    ]


def test_counted_rows_are_modules() -> None:
    text = "     32 \tConfigured Memory Speed: 4400 MT/s\n     32 \tSize: 64 GB\n     16 \tRank: 2\n     16 \tRank: 1\n"
    found = dmi.parse_dmidecode(text)
    assert isinstance(found.modules, tuple)
    assert len(found.modules) == 32
    assert each(found.modules, "size_mib") == [65536]
    assert each(found.modules, "configured_mts") == [4400]
    assert each(found.modules, "rank") == [None], "which has which is lost"


def test_picked_rows_are_modules() -> None:
    text = (
        "\tSize: 64 GB\n\tLocator: A1\n\tSpeed: 4800 MT/s\n\tConfigured Memory Speed: 4400 MT/s\n"
        "\tSize: No Module Installed\n\tLocator: A2\n\tSpeed: Unknown\n"
    )
    found = dmi.parse_dmidecode(text)
    assert isinstance(found.modules, tuple)
    assert [(module.locator, module.is_populated) for module in found.modules] == [("A1", True), ("A2", False)]
    assert (found.modules[0].speed_mts, found.modules[0].configured_mts) == (4800, 4400)


def test_entries_without_handles_are_known_by_their_title() -> None:
    text = "Memory Device\n\tSize: 64 GB\n\tLocator: DIMM_A0\nMemory Device\n\tSize: 32 GB\n\tLocator: DIMM_B0\n"
    assert [one.type for one in dmi_text.parse_structures(text)] == [17, 17]
    found = dmi.parse_dmidecode(text)
    assert isinstance(found.modules, tuple)
    assert [module.size_mib for module in found.modules] == [65536, 32768]


class Host(LiveHost):
    def __init__(self, result: Result, is_live: bool = True) -> None:
        super().__init__("/nonexistent")
        self.result, self.is_live, self.asked = result, is_live, []  # type: ignore[var-annotated]

    def run(self, argv: Sequence[str], deadline_s: float = 10.0) -> Result:
        self.asked.append(list(argv))
        return self.result if len(argv) == 1 or not self.is_live else Result(-1, "", "", "was not recorded")


def test_one_run_tells_all() -> None:
    host = Host(Result(0, text_of("dell-r640-8x32g-2933-memory.txt"), ""))
    assert known(dmi.observe(host).modules)
    assert host.asked == [["dmidecode"]]


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (Result(-1, "", "", "dmidecode is not installed"), "dmidecode is not installed"),
        (Result(-1, "", "", "dmidecode hung: no answer in 10 s"), "dmidecode hung: no answer in 10 s"),
        (Result(1, "", "/dev/mem: Permission denied"), "exit 1: /dev/mem: Permission denied"),
        (
            Result(1, "# dmidecode 3.3\n# No SMBIOS nor DMI entry point found, sorry.\n", ""),
            "DMI is not available: No SMBIOS nor DMI entry point found, sorry.",
        ),
    ],
)
def test_no_answer_is_unknown(result: Result, reason: str) -> None:
    found = dmi.observe(Host(result))
    for part in (found.modules, found.bios, found.system, found.processors, found.supplies):
        assert part == Unknown(reason)


def test_a_capture_may_hold_a_part() -> None:
    memory = Result(0, text_of("hyperv-2019-memory.txt"), "")
    found = dmi.observe(Host(memory, is_live=False))
    assert isinstance(found.modules, tuple)
    assert len(found.modules) == 2
    assert isinstance(found.bios, Unknown)


QUOTED = """Handle 0x0000, DMI type 0, 24 bytes.
BIOS Information
        Vendor: Dell Inc.
        ROM Size: 16 MB
        Characteristics:
                PCI is supported
                UEFI is supported

Handle 0x0004, DMI type 4, 48 bytes
Processor Information
        Socket Designation: CPU2
        Version: Not Installed
        Status: Unpopulated

Handle 0x1100, DMI type 17, 84 bytes
Memory Device
        Size: 64 GB
        Locator: A1
"""


@pytest.mark.parametrize("mark", ["", "> ", "dmidecode: ", "|  "])
def test_what_stands_before_each_row_is_taken_off(mark: str) -> None:
    found = dmi.parse_dmidecode("".join((mark + row).rstrip() + "\n" for row in QUOTED.splitlines()))
    assert isinstance(found.bios, dmi.Bios) and isinstance(found.modules, tuple)
    assert (found.bios.vendor, found.bios.rom_size_kib, found.bios.is_uefi) == ("Dell Inc.", 16384, True)
    assert [(one.locator, one.size_mib) for one in found.modules] == [("A1", 65536)]
    assert isinstance(found.processors, tuple)
    assert (found.processors[0].is_populated, known(found.processors[0].model)) == (False, False)


def test_tables_that_lost_their_indents() -> None:
    found = dmi.parse_dmidecode("\n".join(row.strip() for row in QUOTED.splitlines()) + "\nBIOS Revision: 5.6\n")
    assert isinstance(found.bios, dmi.Bios) and isinstance(found.modules, tuple)
    assert (found.bios.is_uefi, found.bios.is_virtual_machine) == (True, False)
    assert [(one.locator, one.size_mib) for one in found.modules] == [("A1", 65536)]


def test_counted_rows_in_a_table() -> None:
    row = "| DIMMs (dmidecode) | 32 \tSize: 64 GB; 32 \tConfigured Memory Speed: 4400 MT/s; 32 \tType: DDR5 |"
    found = dmi.parse_dmidecode("| item | value |\n|---|---|\n%s\n" % row)
    assert isinstance(found.modules, tuple)
    assert {(one.size_mib, one.configured_mts, one.type) for one in found.modules} == {(65536, 4400, "DDR5")}
    assert len(found.modules) == 32
