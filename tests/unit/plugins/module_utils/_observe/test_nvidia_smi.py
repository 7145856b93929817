# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each form of nvidia-smi's output: real ones with their reading, troubled ones, and asking a host for it."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any, Sequence

import pytest
import yaml
from fakes import FakeHost

from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import LiveHost, Result
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import Unknown
from ansible_collections.gpufleet.host.plugins.module_utils._observe import nvidia_smi, nvidia_words
from ansible_collections.gpufleet.host.plugins.module_utils._observe.nvidia_csv import (
    parse_nvidia_smi_version,
    parse_query_gpu,
)
from ansible_collections.gpufleet.host.plugins.module_utils._observe.nvidia_smi import parse_nvidia_smi
from ansible_collections.gpufleet.host.plugins.module_utils._observe.nvidia_table import (
    parse_dmon,
    parse_gpu_list,
    parse_nvidia_smi_table,
)
from ansible_collections.gpufleet.host.plugins.module_utils._observe.nvidia_text import parse_nvidia_smi_text
from ansible_collections.gpufleet.host.plugins.module_utils._observe.nvidia_values import (
    ABSENT,
    EVENT_REASONS,
    FABRIC_HEALTH,
    Gpu,
    Log,
)
from ansible_collections.gpufleet.host.plugins.module_utils._observe.nvidia_xml import parse_nvidia_smi_xml

ROOT = Path(__file__).resolve().parents[5]
CORPUS = ROOT / "tests/corpus"


def text_of(name: str) -> str:
    return (CORPUS / name).read_bytes().decode("utf-8", "surrogateescape")


def cases(kind: str, key: str = "file") -> list[Any]:
    rows = yaml.safe_load((ROOT / "tests/unit/cases/corpus" / (kind + ".yml")).read_text())
    assert sorted(row["file"] for row in rows) == sorted(path.name for path in (CORPUS / kind).iterdir())
    return [pytest.param(row, text_of(kind + "/" + row["file"]), id=row["file"]) for row in rows if key in row]


def assert_says(found: Any, wanted: Any, where: object) -> None:
    """A text beginning with "?" stands for Unknown with that reason."""
    if isinstance(wanted, str) and wanted.startswith("?"):
        assert isinstance(found, Unknown) and found.reason.startswith(wanted[1:]), (where, found)
    else:
        assert found == wanted and type(found) is type(wanted), (where, found, wanted)


def field(gpu: Gpu, name: str) -> Any:
    if name == "active":
        return [reason for reason, state in gpu.event_reasons.items() if state is True]
    if name == "mig_devices":
        return [[mig.index, mig.gpu_instance, mig.compute_instance, mig.memory_total_mib] for mig in gpu.mig_devices]
    outer, _dot, inner = name.partition(".")
    value = getattr(gpu, outer)
    if not inner:
        return value
    return value[inner] if isinstance(value, dict) else getattr(value, inner)


def assert_gpus(row: dict[str, Any], gpus: Sequence[Gpu]) -> None:
    for gpu in gpus:
        assert set(gpu.event_reasons) >= set(EVENT_REASONS) and set(gpu.fabric_health) == set(FABRIC_HEALTH)
        for name, wanted in row.get("all", {}).items():
            assert_says(field(gpu, name), wanted, (gpu.address, name))
        if "errors" in row:
            assert list(gpu.errors()) == row["errors"]
    by_address = {gpu.address: gpu for gpu in gpus}
    for address, says in row.get("gpu", {}).items():
        for name, wanted in says.items():
            assert_says(field(by_address[address], name), wanted, (address, name))
    for name, addresses in row.get("only", {}).items():
        assert [gpu.address for gpu in gpus if field(gpu, name) is True] == addresses, name


def assert_log(row: dict[str, Any], log: Log) -> None:
    for name, wanted in row["log"].items():
        assert_says(len(log.gpus) if name == "gpus" else getattr(log, name), wanted, name)
    assert_says(log.is_complete, row["complete"], "complete")
    assert log.complaints == () and log.lost == ()
    assert_gpus(row, log.gpus)


# The corpus


@pytest.mark.parametrize(("row", "text"), cases("nvidia-smi-xml"))
def test_xml_of_the_corpus(row: dict[str, Any], text: str) -> None:
    assert_log(row, parse_nvidia_smi_xml(text))
    assert parse_nvidia_smi(text) == parse_nvidia_smi_xml(text)


@pytest.mark.parametrize(("row", "text"), cases("nvidia-smi-q"))
def test_text_of_the_corpus(row: dict[str, Any], text: str) -> None:
    assert_log(row, parse_nvidia_smi_text(text))
    assert parse_nvidia_smi(text) == parse_nvidia_smi_text(text)


@pytest.mark.parametrize(("row", "text"), cases("nvidia-smi-csv", "columns"))
def test_csv_of_the_corpus(row: dict[str, Any], text: str) -> None:
    query = parse_query_gpu(text)
    assert (len(query.columns), len(query.rows)) == (row["columns"], row["rows"])
    assert len(query.units) == len(query.columns)
    assert_log(row, query.log)


@pytest.mark.parametrize(("row", "text"), cases("nvidia-smi-csv", "version"))
def test_version_of_the_corpus(row: dict[str, Any], text: str) -> None:
    assert vars(parse_nvidia_smi_version(text)) == row["version"]


@pytest.mark.parametrize(("row", "text"), [*cases("nvidia-smi-csv", "list"), *cases("nvidia-smi-table", "list")])
def test_list_of_the_corpus(row: dict[str, Any], text: str) -> None:
    gpus = parse_gpu_list(text).gpus
    assert [[gpu.index, gpu.name, gpu.uuid] for gpu in gpus] == row["list"]


@pytest.mark.parametrize(("row", "text"), cases("nvidia-smi-table", "banner"))
def test_table_of_the_corpus(row: dict[str, Any], text: str) -> None:
    table = parse_nvidia_smi_table(text)
    for name, wanted in zip(("smi_version", "banner_driver_version", "banner_cuda_version"), row["banner"]):
        assert_says(getattr(table, name), wanted, name)
    assert isinstance(table.log.driver_version, Unknown), "no verdict goes by the banner"
    assert len(table.log.gpus) == row["gpus"]
    assert_gpus(row, table.log.gpus)


@pytest.mark.parametrize(("row", "text"), cases("nvidia-smi-table", "dmon"))
def test_dmon_of_the_corpus(row: dict[str, Any], text: str) -> None:
    monitor = parse_dmon(text)
    assert list(monitor.columns) == row["dmon"]["columns"]
    assert len(monitor.rows) == row["dmon"]["rows"]
    for name, wanted in row["dmon"]["first"].items():
        assert_says(monitor.rows[0][name], float(wanted) if isinstance(wanted, int) else wanted, name)


def test_every_kind_of_row_is_read() -> None:
    """No file of the folders is left without one of the tests above."""
    for kind, keys in (
        ("nvidia-smi-csv", ("columns", "version", "list")),
        ("nvidia-smi-table", ("banner", "list", "dmon")),
    ):
        assert sum(len(cases(kind, key)) for key in keys) == len(cases(kind))


def test_the_forms_agree() -> None:
    """The same machine in the same state, as text and as csv."""
    [text] = parse_nvidia_smi_text(text_of("nvidia-smi-q/q-rtx2080s-610-idle.txt")).gpus
    [csv] = parse_query_gpu(text_of("nvidia-smi-csv/csv-all-rtx2080s-610-idle.csv")).log.gpus
    moving = {"clock_graphics_mhz", "clock_sm_mhz", "clock_memory_mhz", "power_draw_w"}
    different = {
        name
        for name in (about.name for about in fields(Gpu))
        if getattr(text, name) != getattr(csv, name)
        and not isinstance(getattr(text, name), Unknown)
        and not isinstance(getattr(csv, name), Unknown)
    }
    assert different <= moving


# Words


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ("N/A", "not applicable: N/A"),
        ("[N/A]", "not applicable: N/A"),
        ("[Not Supported]", "not applicable: Not Supported"),
        ("Requested functionality has been deprecated", "not applicable: Requested"),
        ("ERR!", "error: ERR!"),
        ("[Unknown Error]", "error: Unknown Error"),
        ("[GPU requires reset]", "error: GPU requires reset"),
        ("GPU is lost", "error: GPU is lost"),
        ("Insufficient Permissions", "not permitted: Insufficient Permissions"),
        ("[Not Found]", "not there: Not Found"),
        ("", "not there"),
        ("Nicht verfügbar", "not understood: 'Nicht verfügbar'"),
        ("9" * 40, "not understood"),
        ("٣", "not understood"),
    ],
)
def test_what_is_no_value_is_told_apart(cell: str, reason: str) -> None:
    for read in (nvidia_words.number, nvidia_words.real, nvidia_words.mebibytes, nvidia_words.flag):
        found = read(cell)
        assert isinstance(found, Unknown) and found.reason.startswith(reason)


@pytest.mark.parametrize(
    ("read", "cell", "value"),
    [
        (nvidia_words.number, "16x", 16),
        (nvidia_words.number, " 40 % ", 40),
        (nvidia_words.number, "-8 C", -8),
        (nvidia_words.number, "2560 bank(s)", 2560),
        (nvidia_words.real, "67.74 W", 67.74),
        (nvidia_words.mebibytes, "81559MiB", 81559),
        (nvidia_words.mebibytes, "6143 MB", 6143),
        (nvidia_words.mebibytes, "80 GiB", 81920),
        (nvidia_words.mebibytes, "81559", 81559),
        (nvidia_words.mode, "On", "Enabled"),
        (nvidia_words.mode, "Disabled", "Disabled"),
        (nvidia_words.flag, "Not Active", False),
        (nvidia_words.address, "00000000:3B:00.0", "0000:3b:00.0"),
        (nvidia_words.address, "0009:01:00.0", "0009:01:00.0"),
        (nvidia_words.address, "00010000:01:00.0", "10000:01:00.0"),
        (nvidia_words.pci_id, "0x233010DE", "10de:2330"),
        (nvidia_words.version, "610.57.04 [Deprecated; use another]", "610.57.04"),
        (nvidia_words.word, "None", "None"),
    ],
)
def test_words_are_values(read: Any, cell: str, value: Any) -> None:
    assert read(cell) == value and type(read(cell)) is type(value)


@pytest.mark.parametrize(
    ("line", "lost"),
    [
        ("Unable to determine the device handle for GPU 0000:02:00.0: GPU is lost.  Reboot", ("0000:02:00.0", ABSENT)),
        ("Unable to determine the device handle for GPU3: 0000:5F:00.0: Unknown Error", ("0000:5f:00.0", 3)),
        ("Unable to determine the device handle for GPU0000:25:00.0: Unknown Error", ("0000:25:00.0", ABSENT)),
        ("Unable to determine the device handle for GPU2: Unknown Error", (ABSENT, 2)),
        ("Unable to determine the device handle for gpu 00000000:02:00.0: Not Found", ("0000:02:00.0", ABSENT)),
    ],
)
def test_a_lost_gpu_is_named(line: str, lost: Any) -> None:
    [found] = nvidia_words.lost_gpus((line,))
    assert (found.address, found.index) == lost
    assert found.reason.startswith("error: ") and len(found.reason) > len("error: ")


# XML


def xml(*gpus: str, attached: int = 1) -> str:
    return (
        "<nvidia_smi_log><driver_version>1.2</driver_version><attached_gpus>%d</attached_gpus>%s</nvidia_smi_log>"
        % (
            attached,
            "".join('<gpu id="00000000:%02X:00.0">%s</gpu>' % (place, gpu) for place, gpu in enumerate(gpus)),
        )
    )


def test_one_gpu_in_error_hides_no_other() -> None:
    good = "<product_name>A</product_name><temperature><gpu_temp>30 C</gpu_temp></temperature>"
    bad = "<product_name>ERR!</product_name><temperature><gpu_temp>GPU requires reset</gpu_temp></temperature>"
    log = parse_nvidia_smi_xml(xml(good, bad, good, attached=3))
    assert [gpu.temperature_c for gpu in log.gpus] == [30, Unknown("error: GPU requires reset"), 30]
    assert log.gpus[1].errors() == {"name": "error: ERR!", "temperature_c": "error: GPU requires reset"}
    assert log.is_complete is True and [gpu.index for gpu in log.gpus] == [0, 1, 2]


def test_a_name_that_breaks_the_document_breaks_only_itself() -> None:
    broken = "<processes><process_info><pid>1</pid><process_name>a<b & </x>c</process_name></process_info></processes>"
    log = parse_nvidia_smi_xml(xml(broken + "<fan_speed>30 %</fan_speed>", "<fan_speed>40 %</fan_speed>", attached=2))
    assert [(gpu.fan_percent, gpu.processes) for gpu in log.gpus] == [(30, 1), (40, ABSENT)]
    assert log.complaints == ("the document is broken",)


def test_a_document_cut_off_is_not_complete() -> None:
    text = text_of("nvidia-smi-xml/x-rtx4090-535.xml")
    log = parse_nvidia_smi_xml(text[: text.index("<fb_memory_usage>")])
    assert log.is_complete is False and log.complaints == ("the document has no end",)
    assert log.gpus[0].name == "NVIDIA GeForce RTX 4090" and log.gpus[0].memory_total_mib == ABSENT


def test_entities_are_not_read() -> None:
    text = '<!DOCTYPE nvidia_smi_log [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>' + xml(
        "<product_name>&b;</product_name>"
    )
    log = parse_nvidia_smi_xml(text)
    assert log.gpus == () and log.is_complete is False and "entities" in log.complaints[0]


def test_some_of_the_gpus_were_asked_for() -> None:
    text = text_of("nvidia-smi-xml/x-a100-sxm4-mig-v12.xml")
    assert parse_nvidia_smi_xml(text, is_selected=True).is_complete is True
    assert parse_nvidia_smi_xml(text).is_complete is False
    assert parse_nvidia_smi_xml(text).gpus[0].index == ABSENT, "of four GPUs nobody knows which this is"


def test_of_several_documents_the_last_whole_one_counts() -> None:
    one, two = (xml("<fan_speed>%d %%</fan_speed>" % percent) for percent in (30, 40))
    for text in (one + two, one + two + one[:150]):
        assert [gpu.fan_percent for gpu in parse_nvidia_smi_xml(text).gpus] == [40]
    assert parse_nvidia_smi_xml(one + two).is_complete is True


def test_a_piece_of_a_document() -> None:
    log = parse_nvidia_smi('  <gpu id="00000000:01:00.0">\n    <fan_speed>30 %</fan_speed>\n  </gpu>')
    assert [(gpu.address, gpu.fan_percent) for gpu in log.gpus] == [("0000:01:00.0", 30)] and log.is_complete is False


def test_the_third_level_of_r610_in_xml() -> None:
    limits = "<gpu_ceiling_power_limit><current_power_limit>200 W</current_power_limit></gpu_ceiling_power_limit>"
    log = parse_nvidia_smi_xml(xml("<gpu_power_readings>%s</gpu_power_readings>" % limits))
    assert log.gpus[0].power_limit_w == 200.0


def test_the_license_of_a_vgpu_in_xml() -> None:
    product = "<licensed_product_name>NVIDIA RTX Virtual Workstation</licensed_product_name>"
    status = "<license_status>Licensed (Expiry: 2026-7-7 16:1:44 GMT)</license_status>"
    log = parse_nvidia_smi_xml(
        xml("<vgpu_software_licensed_product>%s%s</vgpu_software_licensed_product>" % (product, status))
    )
    [gpu] = log.gpus
    assert (gpu.vgpu_license_status, gpu.vgpu_license_expiry) == ("Licensed", "2026-07-07 16:01:44")


# Text


def test_old_counts_of_bits() -> None:
    text = """GPU 0000:05:00.0
    Product Name                    : Tesla K80
    GPU Virtualization Mode
        Virtualization mode         : None
    Ecc Errors
        Volatile
            Single Bit
                Device Memory       : 3
                Total               : 4
            Double Bit
                Device Memory       : 0
                Total               : 1
    Compute Processes               : None
"""
    [gpu] = parse_nvidia_smi_text("Attached GPUs : 1\n" + text).gpus
    assert (gpu.address, gpu.virtualization_mode, gpu.processes) == ("0000:05:00.0", "None", 0)
    counts = gpu.ecc_volatile
    assert (counts.correctable, counts.uncorrectable, counts.dram_correctable) == (4, 1, 3)
    assert counts.sram_correctable == ABSENT


def test_an_error_word_in_a_sum_makes_it_unknown() -> None:
    volatile = "<dram_correctable>0</dram_correctable><sram_correctable>ERR!</sram_correctable>"
    [gpu] = parse_nvidia_smi_xml(xml("<ecc_errors><volatile>%s</volatile></ecc_errors>" % volatile)).gpus
    assert gpu.ecc_volatile.correctable == Unknown("error: ERR!") and gpu.ecc_volatile.dram_correctable == 0
    assert set(gpu.errors()) == {"ecc_volatile.correctable", "ecc_volatile.sram_correctable"}


@pytest.mark.parametrize("word", ["Specification", ""])
def test_margins_under_their_newer_names(word: str) -> None:
    text = """GPU 00000000:01:00.0
    Temperature
        GPU Current Temp                         : 66 C
        GPU Current T.Limit Temp                 : 9 C
        GPU Shutdown T.Limit Temp %(word)s       : -5 C
        GPU Max Operating T.Limit Temp %(word)s  : 0 C
""" % {"word": word}
    [gpu] = parse_nvidia_smi_text(text).gpus
    assert (gpu.temperature_c, gpu.margin_c, gpu.shutdown_margin_c, gpu.max_operating_margin_c) == (66, 9, -5, 0)


def test_text_with_carriage_returns_and_colours_is_the_same() -> None:
    text = text_of("nvidia-smi-q/q-h100-mig-590-load.txt")
    strange = "\ufeff" + text.replace("\n", "\r\n").replace("GPU 0000", "\x1b[1mGPU 0000").replace(
        "09.0", "09.0\x1b[0m", 1
    )
    assert parse_nvidia_smi_text(strange) == parse_nvidia_smi_text(text)


def test_a_report_without_its_indentation() -> None:
    text = text_of("nvidia-smi-q/q-8xh100-535.161-hwslowdown-powerbrake.txt")
    flat = parse_nvidia_smi_text("\n".join(line.strip() for line in text.splitlines()))
    assert len(flat.gpus) == 8 and flat.driver_version == "535.161.08"
    for gpu, whole in zip(flat.gpus, parse_nvidia_smi_text(text).gpus):
        for name in (
            "name", "serial", "pcie_gen", "pcie_width", "pcie_replays", "event_reasons", "memory_total_mib", "ecc_mode",
            "remapped_pending", "temperature_c", "shutdown_margin_c", "power_limit_w", "fabric_state", "pstate",
        ):  # fmt: skip
            assert getattr(gpu, name) == getattr(whole, name), name


@pytest.mark.parametrize(
    "before",
    [
        "$ nvidia-smi -q | grep -A1 License\n",
        "root@node1:~# nvidia-smi -q\n",
        "nvidia-smi -q\n",
        'Defaulted container "driver" out of: driver, manager (init)\n',
    ],
)
def test_what_stands_before_a_piece_is_no_part_of_it(before: str) -> None:
    status = "Licensed (Expiry: Permanent)"
    text = (
        before
        + "    vGPU Software Licensed Product\n        License Status       : %s\n    Fan Speed : 30 %%\n" % status
    )
    [gpu] = parse_nvidia_smi_text(text).gpus
    assert (gpu.vgpu_license_status, gpu.vgpu_license_expiry, gpu.fan_percent) == ("Licensed", "Permanent", 30)


def test_a_display_cut_off_is_not_complete() -> None:
    text = text_of("nvidia-smi-q/q-ecc-only-8gpu-535.86-bad.txt")
    assert parse_nvidia_smi_text(text[: text.rindex("Retired Pages")]).is_complete is False
    whole = text_of("nvidia-smi-q/q-8x4090-535.154-unknown-error.txt")
    assert parse_nvidia_smi_text(whole[: whole.rindex("Fabric")]).is_complete is False


def test_a_pasted_command_tells_which_gpus_were_asked_for() -> None:
    text = text_of("nvidia-smi-q/q-a10-535.129.txt").replace(
        "Attached GPUs                             : 1", "Attached GPUs : 8"
    )
    assert parse_nvidia_smi_text(text).is_complete is False
    assert parse_nvidia_smi_text("$ nvidia-smi -q -i 3\n" + text).is_complete is True


def test_of_several_logs_the_last_whole_one_counts() -> None:
    one = text_of("nvidia-smi-q/q-rtx2080s-595-idle.txt")
    two = text_of("nvidia-smi-q/q-rtx2080s-595-load.txt")
    assert parse_nvidia_smi_text(one + two) == parse_nvidia_smi_text(two)
    assert parse_nvidia_smi_text(one + two[:300]).gpus == parse_nvidia_smi_text(one).gpus


def test_complaints_are_kept_beside_the_gpus() -> None:
    text = text_of("nvidia-smi-q/q-a10-535.129.txt")
    line = "WARNING: infoROM is corrupted at gpu 0000:04:00.0"
    log = parse_nvidia_smi_text(text + line + "\n")
    assert log.complaints == (line,) and len(log.gpus) == 1


# csv


def test_csv_without_header_and_units() -> None:
    text = "0, NVIDIA H100 80GB HBM3, 81559, 00000000:19:00.0\n1, NVIDIA H100 80GB HBM3, 81559, 00000000:3B:00.0\n"
    known = parse_query_gpu(text, "index,name,memory.total,pci.bus_id").log
    assert [(gpu.index, gpu.memory_total_mib, gpu.address) for gpu in known.gpus] == [
        (0, 81559, "0000:19:00.0"),
        (1, 81559, "0000:3b:00.0"),
    ]
    guessed = parse_query_gpu(text).log
    assert [(gpu.index, gpu.name, gpu.address) for gpu in guessed.gpus] == [
        (0, "NVIDIA H100 80GB HBM3", "0000:19:00.0"),
        (1, "NVIDIA H100 80GB HBM3", "0000:3b:00.0"),
    ]
    assert guessed.gpus[0].memory_total_mib == ABSENT


def test_a_gpu_that_requires_a_reset_in_csv() -> None:
    text = (
        "index, name, temperature.gpu, utilization.gpu [%], memory.used [MiB]\n"
        "0, NVIDIA H100 PCIe, [GPU requires reset], [GPU requires reset], 0 MiB\n"
        "1, NVIDIA H100 PCIe, 74, 100 %, 80620 MiB\n"
    )
    one, two = parse_query_gpu(text).log.gpus
    assert one.errors() == {
        "temperature_c": "error: GPU requires reset",
        "utilization_gpu_percent": "error: GPU requires reset",
    }
    assert two.errors() == {} and two.temperature_c == 74


def test_a_lost_gpu_in_csv() -> None:
    text = (
        "Unable to determine the device handle for GPU1: 0000:04:00.0: Unknown Error\n"
        "index, pci.bus_id, count\n0, 00000000:01:00.0, 3\n2, 00000000:05:00.0, 3\n"
    )
    log = parse_query_gpu(text).log
    assert [gpu.index for gpu in log.gpus] == [0, 2]
    assert [(lost.index, lost.address) for lost in log.lost] == [(1, "0000:04:00.0")]
    assert log.is_complete is False


def test_reasons_from_their_mask() -> None:
    text = "index, clocks_throttle_reasons.active\n0, 0x0000000000000088\n1, [N/A]\n"
    one, two = parse_query_gpu(text).log.gpus
    assert [name for name, state in one.event_reasons.items() if state] == ["hw_slowdown", "hw_power_brake"]
    assert all(isinstance(state, Unknown) for state in two.event_reasons.values())


def test_a_table_of_a_spreadsheet_and_a_row_cut_off() -> None:
    query = parse_query_gpu('"index";"name";"memory.total [MiB]"\n"0";"Tesla T4";"15360 MiB"\n"1";"Tesla')
    assert query.units == ("", "", "MiB")
    assert [gpu.memory_total_mib for gpu in query.log.gpus] == [15360, ABSENT]
    assert query.log.complaints == ("a row is cut off after 2 of 3 cells",)


def test_csv_between_prompts_and_fences() -> None:
    text = (
        "```\nroot@n1:~# nvidia-smi --query-gpu=index,power.limit --format=csv\nindex, power.limit [W]\n0, 400.00 W\n1, 400.00 W\n"
        "root@n1:~# nvidia-smi --query-gpu=index,temperature.gpu --format=csv\nindex, temperature.gpu\n0, 45\n1, 47\n"
        "root@n1:~#\n```\n"
    )
    query = parse_query_gpu(text)
    assert query.columns == ("index", "power.limit", "temperature.gpu") and query.units == ("", "W", "")
    assert [(gpu.index, gpu.power_limit_w, gpu.temperature_c) for gpu in query.log.gpus] == [
        (0, 400.0, 45),
        (1, 400.0, 47),
    ]
    assert query.log.complaints == () and len(query.rows) == 4


def test_tables_without_a_name_of_a_gpu_are_joined_by_their_order() -> None:
    first = "name, pci.bus_id\nNVIDIA A100, 00000000:07:00.0\nNVIDIA A100, 00000000:0B:00.0\n"
    log = parse_query_gpu(first + "power.draw [W]\n60.0 W\n61.0 W\n").log
    assert [(gpu.address, gpu.power_draw_w) for gpu in log.gpus] == [("0000:07:00.0", 60.0), ("0000:0b:00.0", 61.0)]
    log = parse_query_gpu(first + "power.draw [W]\n60.0 W\n").log
    assert [(gpu.address, gpu.power_draw_w) for gpu in log.gpus] == [("0000:07:00.0", ABSENT), ("0000:0b:00.0", ABSENT)]


def test_the_command_line_tells_the_columns_that_have_no_header() -> None:
    text = "$ nvidia-smi --query-gpu=index,name,memory.total --format=csv,noheader,nounits\n0, NVIDIA GB10, [N/A]\n"
    (gpu,) = parse_query_gpu(text).log.gpus
    assert (gpu.index, gpu.name, gpu.memory_total_mib) == (0, "NVIDIA GB10", Unknown("not applicable: N/A"))


def test_a_line_that_is_no_row() -> None:
    query = parse_query_gpu("index, name\n0, Tesla T4\nsome words\n1, Tesla T4\n")
    assert [gpu.index for gpu in query.log.gpus] == [0, 1]
    assert query.log.complaints == ("a row of 1 cells for 2 columns was left out",)


@pytest.mark.parametrize(
    "text",
    [
        "pid, process_name, used_gpu_memory [MiB], gpu_uuid\n4711, ./train, 1000 MiB, GPU-1\n",
        "memory [MHz], graphics [MHz]\n2619 MHz, 1980 MHz\n",
    ],
)
def test_rows_that_are_no_gpus(text: str) -> None:
    query = parse_query_gpu(text)
    assert len(query.rows) == 1 and query.log.gpus == ()


@pytest.mark.parametrize(
    "text",
    ["No devices were found\n", 'Field "gpu.speed" is not a valid field to query.\n', "", "NVIDIA-SMI has failed\n"],
)
def test_csv_that_is_none(text: str) -> None:
    query = parse_query_gpu(text)
    assert query.rows == () and query.log.gpus == () and bool(query.log.complaints) == bool(text)


# Tables


OLD_TABLE = """\
| NVIDIA-SMI 5.325.15   Driver Version: 325.15         |
|   0  GeForce GTX TITAN   Off  | 0000:03:00.0     N/A |                  N/A |
| 31%   44C  N/A     N/A /  N/A |       14MB /  6143MB |     N/A      Default |
+-------------------------------+----------------------+----------------------+
|   1  ERR!                On   | 00000000:19:00.0 Off |                 ERR! |
|ERR!  ERR! ERR!    ERR! / ERR! |      0MiB / 46068MiB |    ERR!      Default |
|                               |                      |                 ERR! |
+-------------------------------+----------------------+----------------------+
|   2  NVIDIA A40          On   | 00000000:1A:00.0 Off |                    2 |
|  0%   26C    P8    12W / 300W |      0MiB / 46068MiB |      0%   E. Process |
|                               |                      |            Disabled* |
+-------------------------------+----------------------+----------------------+
| Compute processes:                                               GPU Memory |
|  GPU       PID  Process name                                     Usage      |
|=============================================================================|
|    0            Not Supported                                               |
|    2      4711  ./train                                            1000MB   |
"""


def test_old_tables_and_a_gpu_in_error() -> None:
    one, two, three = parse_nvidia_smi_table(OLD_TABLE).log.gpus
    assert (one.name, one.address, one.memory_total_mib, one.temperature_c) == (
        "GeForce GTX TITAN",
        "0000:03:00.0",
        6143,
        44,
    )
    assert set(two.errors()) >= {
        "name",
        "ecc_mode",
        "mig_mode",
        "temperature_c",
        "pstate",
        "power_draw_w",
        "power_limit_w",
    }
    assert (two.address, two.memory_total_mib) == ("0000:19:00.0", 46068)
    assert (three.ecc_volatile.uncorrectable, three.compute_mode, three.mig_mode) == (2, "E. Process", "Disabled")
    assert [one.processes, two.processes, three.processes] == [Unknown("not applicable: Not Supported"), 0, 1]


def test_gpus_that_are_part_of_a_chip() -> None:
    jetson, spark = parse_nvidia_smi_table(
        "|   0  Orin (nvgpu)                  N/A  | N/A              N/A |                  N/A |\n"
        "| N/A   N/A  N/A               N/A /  N/A | Not Supported        |     N/A          N/A |\n"
        "|   1  NVIDIA GB10                    On  |   0000000F:01:00.0 Off |                  N/A |\n"
        "| N/A   36C    P8              3W /  N/A  | Not Supported          |      0%      Default |\n"
    ).log.gpus
    assert (jetson.name, jetson.address) == ("Orin (nvgpu)", Unknown("not applicable: N/A"))
    assert (spark.address, spark.temperature_c, spark.power_draw_w) == ("000f:01:00.0", 36, 3.0)
    assert jetson.memory_total_mib == spark.memory_total_mib == Unknown("not applicable: Not Supported")


@pytest.mark.parametrize("mark", ["> ", "gpu-01: ", "\x1b(B\x1b[m"])
def test_an_output_that_somebody_passed_on(mark: str) -> None:
    table = text_of("nvidia-smi-table/table-h100-590.txt")
    log = text_of("nvidia-smi-q/q-a10-535.129.txt")
    marked = "".join(mark + line for line in table.splitlines(keepends=True))
    assert parse_nvidia_smi_table(marked) == parse_nvidia_smi_table(table)
    assert parse_nvidia_smi_text(
        "".join(mark + line for line in log.splitlines(keepends=True))
    ) == parse_nvidia_smi_text(log)


def test_two_hosts_are_not_one() -> None:
    table = text_of("nvidia-smi-table/table-h100-590.txt").splitlines(keepends=True)
    both = "".join("n%d: %s" % (host, line) for host in (1, 2) for line in table)
    assert parse_nvidia_smi_table(both).log.gpus == ()


def test_the_table_of_r290() -> None:
    one, two = parse_nvidia_smi_table(
        "| 0.  GeForce 8500 GT           | 0000:01:00.0  N/A    |       N/A        N/A |\n"
        "|  30%   62 C  N/A   N/A /  N/A |  17%   42MB /  255MB |  N/A      Default    |\n"
        "| 1.  Tesla M2090               | 0000:05:00.0  Off    |         1          2 |\n"
        "|  N/A    N/A  P0   75W / 225W  |   0%   10MB / 5375MB |   0%     Default     |\n"
        "| Compute processes:                                               GPU Memory |\n"
        "|  0.           ERROR: Not Supported                                          |\n"
    ).log.gpus
    assert (one.name, one.address, one.temperature_c, one.memory_total_mib) == (
        "GeForce 8500 GT",
        "0000:01:00.0",
        62,
        255,
    )
    assert (one.persistence_mode, one.processes) == (ABSENT, Unknown("not applicable: Not Supported"))
    assert (two.index, two.power_limit_w, two.ecc_mode) == (1, 225.0, "Enabled")
    assert (two.ecc_volatile.correctable, two.ecc_volatile.uncorrectable) == (1, 2)


def test_a_banner_of_r610() -> None:
    table = parse_nvidia_smi_table(
        "| NVIDIA-SMI 610.43.02       KMD Version: 610.43.02     CUDA UMD Version: 13.3     |"
    )
    assert (table.banner_driver_version, table.banner_cuda_version) == ("610.43.02", "13.3")
    assert table.log.driver_version == ABSENT


def test_mig_devices_are_no_gpus() -> None:
    text = (
        "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-1)\n"
        "  MIG 3g.20gb     Device  0: (UUID: MIG-GPU-1/1/0)\n"
        "  MIG 1g.10gb+me  Device  1: (UUID: MIG-2)\n"
        "GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-2)\n"
    )
    one, two = parse_gpu_list(text).gpus
    assert [(mig.index, mig.profile, mig.uuid) for mig in one.mig_devices] == [
        (0, "3g.20gb", "MIG-GPU-1/1/0"),
        (1, "1g.10gb+me", "MIG-2"),
    ]
    assert two.mig_devices == ()


# Hosts


class SmiHost(FakeHost):
    """Answers as told; ``asked`` are the commands with their deadlines."""

    def __init__(self, root: Path, answers: dict[str, Result], is_live: bool = True) -> None:
        super().__init__(root)
        self.is_live = is_live
        self.answers = answers
        self.asked: list[tuple[str, float]] = []

    def run(self, argv: Sequence[str], deadline_s: float = 10.0) -> Result:
        self.asked.append((" ".join(argv), deadline_s))
        return self.answers.get(" ".join(argv), Result(-1, "", "", "%s was not recorded" % " ".join(argv)))


def test_a_host_is_asked_once(tmp_path: Path) -> None:
    host = SmiHost(tmp_path, {"nvidia-smi -q -x": Result(0, text_of("nvidia-smi-xml/x-rtx4090-535.xml"), "")})
    log = nvidia_smi.observe(host)
    assert isinstance(log, Log) and log.is_complete is True
    assert host.asked == [("nvidia-smi -q -x", 60.0)]
    host.put("/run/nvidia-persistenced/socket", "")
    nvidia_smi.observe(host)
    assert host.asked[1:] == [("nvidia-smi -q -x", 20.0)]


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (Result(-1, "", "", "nvidia-smi hung: no answer in 60 s"), "hung: "),
        (Result(124, "", ""), "hung: "),
        (Result(-1, "", "", "nvidia-smi is not installed"), "nvidia-smi is not installed"),
        (Result(127, "", "sh: nvidia-smi: command not found"), "nvidia-smi is not installed"),
        (
            Result(
                9, "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that\n", ""
            ),
            "error: NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
        ),
        (
            Result(18, "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 580.1\n", ""),
            "error: Failed to initialize NVML: Driver/library version mismatch NVML library version: 580.1",
        ),
        (Result(0, "", ""), "error: it said nothing"),
        (Result(1, "", "Permission denied"), "error: Permission denied"),
    ],
)
def test_why_nothing_is_known(tmp_path: Path, result: Result, reason: str) -> None:
    found = nvidia_smi.observe(SmiHost(tmp_path, {"nvidia-smi -q -x": result}))
    assert isinstance(found, Unknown) and found.reason.startswith(reason), found


def test_no_device_is_known(tmp_path: Path) -> None:
    found = nvidia_smi.observe(SmiHost(tmp_path, {"nvidia-smi -q -x": Result(6, "No devices were found\n", "")}))
    assert isinstance(found, Log) and (found.attached_gpus, found.gpus, found.is_complete) == (0, (), True)


def test_a_lost_gpu_leaves_the_others(tmp_path: Path) -> None:
    text = xml("<product_name>A</product_name>", attached=2)
    said = "Unable to determine the device handle for GPU1: 0000:44:00.0: Unknown Error\n"
    found = nvidia_smi.observe(SmiHost(tmp_path, {"nvidia-smi -q -x": Result(15, text, said)}))
    assert isinstance(found, Log) and len(found.gpus) == 1 and found.is_complete is False
    assert [lost.address for lost in found.lost] == ["0000:44:00.0"]
    assert found.complaints == (said.strip(), "nvidia-smi ended with exit status 15")


def test_only_the_lost_gpu_is_told(tmp_path: Path) -> None:
    said = "Unable to determine the device handle for GPU 0000:02:00.0: GPU is lost.  Reboot the system to recover this GPU\n"
    found = nvidia_smi.observe(SmiHost(tmp_path, {"nvidia-smi -q -x": Result(15, said, "")}))
    assert isinstance(found, Log) and found.gpus == () and found.is_complete is False
    assert [lost.address for lost in found.lost] == ["0000:02:00.0"]


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("nvidia-smi -q", "nvidia-smi-q/q-h100-590-idle.txt"),
        ("nvidia-smi", "nvidia-smi-table/table-h100-590.txt"),
        ("nvidia-smi -L", "nvidia-smi-table/list-L-h100-590.txt"),
    ],
)
def test_a_capture_with_another_form(tmp_path: Path, command: str, name: str) -> None:
    found = nvidia_smi.observe(SmiHost(tmp_path, {command: Result(0, text_of(name), "")}, is_live=False))
    assert isinstance(found, Log) and [gpu.name for gpu in found.gpus] == ["NVIDIA H100 80GB HBM3"]


def test_a_capture_without_any(tmp_path: Path) -> None:
    found = nvidia_smi.observe(SmiHost(tmp_path, {}, is_live=False))
    assert isinstance(found, Unknown) and "was not recorded" in found.reason


def test_a_live_host_without_the_command(tmp_path: Path) -> None:
    found = nvidia_smi.observe(LiveHost(str(tmp_path)))
    assert found == Unknown("nvidia-smi is not installed")
