# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``nvidia-smi topo``: real outputs with their reading, and what terminals and people make of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Iterator

import pytest
import yaml

from ansible_collections.gpufleet.host.plugins.module_utils._engine.cpuset import format_cpulist, parse_cpulist
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import Unknown
from ansible_collections.gpufleet.host.plugins.module_utils._observe import topo
from ansible_collections.gpufleet.host.plugins.module_utils._observe.topo import parse_topo, parse_topo_p2p

ROOT = Path(__file__).resolve().parents[5]
CORPUS = ROOT / "tests/corpus/topo-m"


def rows() -> list[Any]:
    cases = yaml.safe_load((ROOT / "tests/unit/cases/corpus/topo-m.yml").read_text(encoding="utf-8"))
    assert sorted(row["file"] for row in cases) == sorted(path.name for path in CORPUS.iterdir())
    return [pytest.param(row, id=row["file"]) for row in cases]


def each(table: dict[str, Any] | None) -> Iterator[tuple[str, Any]]:
    for numbers, value in (table or {}).items():
        yield from (("GPU%d" % number, value) for number in sorted(parse_cpulist(numbers)))


def said(value: Any) -> Any:
    """A list of ids as text, a silence as its kind."""
    if isinstance(value, Unknown):
        return value.reason.split(":")[0]
    return format_cpulist(value) if isinstance(value, frozenset) else value


def some(text: str) -> topo.Topo:
    found = parse_topo(text)
    assert isinstance(found, topo.Topo), found
    return found


@pytest.mark.parametrize("row", rows())
def test_topo_of_the_corpus(row: dict[str, Any]) -> None:
    text = (CORPUS / row["file"]).read_text(encoding="utf-8")
    if "peers" in row:
        assert parse_topo_p2p(text) == row["peers"]
    else:
        assert isinstance(parse_topo_p2p(text), Unknown)
    if "unknown" in row:
        found = parse_topo(text)
        assert isinstance(found, Unknown) and found.reason.startswith(row["unknown"])
        return
    matrix = some(text)
    assert list(matrix.gpus) == ["GPU%d" % number for number in range(row["gpus"])]
    assert [name for name in matrix.missing if name in matrix.gpus] == row.get("missing", [])
    assert matrix.is_complete == ("missing" not in row)
    assert topo.words_of(matrix) == row["words"]
    if "unnamed_nics" in row:
        assert list(matrix.nics) == ["NIC%d" % number for number in range(row["unnamed_nics"])]
        assert all(isinstance(device, Unknown) for device in matrix.nics.values())
    else:
        assert list(matrix.nics.values()) == row.get("nics", [])
    for field, column in (("cpus", "cpus"), ("numa", "numa_nodes")):
        expected = dict(each(row.get(field)))
        for name, place in matrix.gpus.items():
            assert said(getattr(place, column)) == str(expected.get(name, "not there")), (name, field)
    for name, place in matrix.gpus.items():
        is_there = "gpu_numa" in row and name not in row.get("missing", [])
        assert said(place.gpu_numa_node) == (row["gpu_numa"] if is_there else "not there")
    for name, links in each(row.get("links")):
        assert sum(known for known in topo.peers(matrix, name).values() if isinstance(known, int)) == links, name
    for name, count in each(row.get("nvlink_peers")):
        assert sum(bool(known) for known in topo.peers(matrix, name).values()) == count, name
    for name, nics in each(row.get("nearest")):
        assert list(topo.nearest_nics(matrix, name)) == nics, name
    for name, words in each(row.get("to_nic")):
        assert {nic: matrix.connection(name, nic) for nic in words} == words


TABBED = "\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"


def test_windows_line_ends_and_colours_change_nothing() -> None:
    text = (CORPUS / "topo-8gpu-nv18-10nic-ansi.txt").read_text(encoding="utf-8")
    assert parse_topo(text.replace("\n", "\r\n")) == parse_topo(text)
    assert parse_topo(text.replace("\x1b[4m", "").replace("\x1b[0m", "")) == parse_topo(text)


def test_tabs_that_became_blanks_change_nothing() -> None:
    text = (CORPUS / "topo-8gpu-nv18-10nic-ansi.txt").read_text(encoding="utf-8").replace("\x1b[4m", "")
    assert parse_topo(text.replace("\x1b[0m", "").expandtabs()) == parse_topo(text)


def test_lines_that_a_terminal_wrapped() -> None:
    text = (
        "        GPU0    GPU1    GPU2    GPU3    NIC0    NIC1\n    NIC2    CPU Affinity    NUMA Affinity\n"
        "GPU0     X      NV4     NV4     NV4     PIX     SYS\n    SYS     0-7     0\n"
        "GPU1    NV4      X      NV4     NV4     PIX     SYS\n    SYS     0-7     0\n"
        "GPU2    NV4     NV4      X      NV4     SYS     PIX\n    SYS     8-15    1\n"
        "GPU3    NV4     NV4     NV4      X      SYS     SYS\n    PIX     8-15    1\n"
    )
    matrix = some(text)
    assert list(matrix.nics) == ["NIC0", "NIC1", "NIC2"]
    assert topo.nearest_nics(matrix, "GPU3") == ("NIC2",)
    assert said(matrix.gpus["GPU2"].cpus) == "8-15" and said(matrix.gpus["GPU2"].numa_nodes) == "1"


def test_a_matrix_without_its_header_is_told_by_its_rows() -> None:
    matrix = some("GPU0\t X \tNV2\tPIX\t0-7\nGPU1\tNV2\t X \tSYS\t0-7\nmlx5_0\tPIX\tSYS\t X \n")
    assert list(matrix.gpus) == ["GPU0", "GPU1"] and list(matrix.nics) == ["mlx5_0"]
    assert matrix.nvlinks("GPU0", "GPU1") == 2


def test_rows_of_a_headerless_matrix_that_was_cut_are_missing() -> None:
    matrix = some("GPU0\t X \tNV2\tNV2\nGPU1\tNV2\t X \tNV2\n")
    assert list(matrix.gpus) == ["GPU0", "GPU1"]
    assert matrix.missing == ("column 3",) and not matrix.is_complete


def test_a_row_that_was_cut_tells_no_affinity() -> None:
    matrix = some(TABBED + "GPU0\t X \tNV2\tPIX\t0-7\t0\t\tN/A\nGPU1\tNV2\t X")
    assert said(matrix.gpus["GPU1"].cpus) == "not there"
    assert isinstance(matrix.connection("GPU1", "NIC0"), Unknown)
    assert matrix.nvlinks("GPU1", "GPU0") == 2


def test_two_rows_that_contradict_each_other_are_believed_neither() -> None:
    matrix = some(TABBED + "GPU0\t X \tNV2\tPIX\t0\t0\t\tN/A\nGPU1\tSYS\t X \tPIX\t0\t0\t\tN/A\n")
    word = matrix.connection("GPU0", "GPU1")
    assert isinstance(word, Unknown) and "NV2 and SYS" in word.reason


def test_memory_of_a_gpu_is_a_node_of_its_own_on_grace() -> None:
    text = "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \tNV18\t0-71\t0\t\t4\nGPU1\tNV18\t X \t72-143\t1\t\t12\n"
    matrix = some(text)
    assert [place.gpu_numa_node for place in matrix.gpus.values()] == [4, 12]
    assert parse_topo(text.expandtabs()) == matrix


def test_a_list_that_was_cut_off_is_no_list() -> None:
    matrix = some("\tGPU0\tCPU Affinity\nGPU0\t X \t0,2,4,6,8,10,\n")
    assert said(matrix.gpus["GPU0"].cpus) == "not understood"


def test_words_that_grew_together_behind_a_wrap() -> None:
    matrix = some(
        "        GPU0    GPU1    NIC0    NIC1       NIC2    CPU Affinity    NUMA Affinity   GPU NUMA ID\n"
        "GPU0     X      NV18    NODE    NODEPIX    0-55,112-167    0               N/A\n"
        "GPU1    NV18     X      NODENODE    NODE    0-55,112-167    0               N/A\n"
    )
    assert topo.nearest_nics(matrix, "GPU0") == ("NIC2",)
    assert [matrix.connection("GPU1", nic) for nic in matrix.nics] == ["NODE"] * 3
    assert said(matrix.gpus["GPU0"].numa_nodes) == "0"


@pytest.mark.parametrize(
    ("header", "cells", "expected"),
    [
        ("CPU Affinity\tNUMA Affinity\tGPU NUMA ID", "0-7\t\tN/A\t\tN/A", ["0-7", "not applicable", "not applicable"]),
        ("CPU Affinity\tNUMA Affinity", "0-31\t\tN/A", ["0-31", "not applicable", "not there"]),
        ("CPU Affinity\tNUMA Affinity\tGPU NUMA ID", "0-31\t0\tN/A", ["0-31", "0", "not applicable"]),
        ("CPU Affinity\tNUMA Affinity\tGPU NUMA ID", "0-31\t\t\tN/A", ["0-31", "not there", "not applicable"]),
        ("CPU Affinity\tNUMA Affinity", "0-31       \t 0", ["0-31", "0", "not there"]),
        ("CPU Affinity\tNUMA Affinity\tGPU NUMA ID", "0-71\t0-1\t\t2", ["0-71", "0-1", 2]),
    ],
)
def test_tabs_between_the_columns_on_affinity(header: str, cells: str, expected: list[Any]) -> None:
    place = some("\tGPU0\t%s\nGPU0\t X \t%s\n" % (header, cells)).gpus["GPU0"]
    assert [said(value) for value in (place.cpus, place.numa_nodes, place.gpu_numa_node)] == expected


@pytest.mark.parametrize("empty_before", ["\t\t\t", "\t \t\t"])
def test_empty_cells_do_not_move_the_others(empty_before: str) -> None:
    place = some("\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \t" + empty_before + "N/A\n").gpus["GPU0"]
    assert [said(value) for value in (place.cpus, place.numa_nodes, place.gpu_numa_node)] == [
        "not there", "not there", "not applicable",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not there"),
        (None, "not there"),
        (Unknown("nvidia-smi hung: no answer in 10 s"), "nvidia-smi hung"),
        ("No devices were found\n", "error: No devices were found"),
        (
            "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 580.126\n",
            "error: Failed",
        ),
        ("bash: nvidia-smi: command not found\n", "error"),
        ("Insufficient Permissions\n", "not permitted"),
        ("Legend:\n  X    = Self\n", "not understood"),
    ],
)
def test_no_matrix_is_unknown_with_the_tool_s_own_word(text: Any, reason: str) -> None:
    for parse in (parse_topo, parse_topo_p2p):
        found = parse(text)
        assert isinstance(found, Unknown) and found.reason.startswith(reason), found


TWO = "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tNV4\t0-31\t0\nGPU1\tNV4\t X \t0-31\t0\n"


@pytest.mark.parametrize("front", ["> ", "node-01: ", "[1,0]<stdout>:", "2026-05-01T10:00:00.123Z ", "[10:00:00] "])
def test_what_stands_in_front_of_each_line_is_not_read(front: str) -> None:
    found = parse_topo("".join(front + line + "\n" for line in TWO.splitlines()))
    assert not isinstance(found, Unknown)
    assert (found.nvlinks("GPU0", "GPU1"), found.gpus["GPU1"].numa_nodes) == (4, frozenset({0}))


def test_of_several_machines_the_first_is_read() -> None:
    pairs = zip(TWO.splitlines(), TWO.replace("NV4", "PHB").splitlines())
    found = parse_topo("".join("a: %s\nb: %s\n" % pair for pair in pairs))
    assert not isinstance(found, Unknown) and found.connection("GPU0", "GPU1") == "NV4"


def test_a_table_of_markdown_and_blanks_that_do_not_break() -> None:
    table = "".join("| %s |\n" % line.strip("\n").replace("\t", " | ") for line in TWO.splitlines())
    for text in (table, TWO.replace("\t", "\xa0\xa0 ")):
        found = parse_topo(text)
        assert not isinstance(found, Unknown)
        assert (list(found.gpus), found.connection("GPU1", "GPU0")) == (["GPU0", "GPU1"], "NV4")


def test_six_ids_that_do_not_follow_each_other_are_the_beginning_of_a_list() -> None:
    found = parse_topo(TWO.replace("0-31", "0,2,4,6,8,10"))
    assert not isinstance(found, Unknown)
    assert isinstance(found.gpus["GPU0"].cpus, Unknown) and "cut off" in found.gpus["GPU0"].cpus.reason
    assert found.gpus["GPU0"].numa_nodes == frozenset({0})


def told(text: str) -> dict[Any, Any]:
    """All that a text tells, without what it leaves open."""
    found = parse_topo(text)
    if isinstance(found, Unknown):
        return {}
    names = [*found.gpus, *found.nics]
    values: dict[Any, Any] = {
        (one, other): found.connection(one, other) for one in names for other in names if one < other
    }
    values.update({(name, field): value for name, place in found.gpus.items() for field, value in vars(place).items()})
    values.update(found.nics)
    return {key: value for key, value in values.items() if not isinstance(value, Unknown)}


@pytest.mark.parametrize("path", sorted(CORPUS.iterdir()), ids=lambda path: path.name)
def test_a_text_that_was_cut_or_wrapped_tells_nothing_else(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    whole = told(text)
    for end in range(0, len(text), max(1, len(text) // 60)):
        cut = told(text[:end])
        assert {key: value for key, value in cut.items() if key in whole and whole[key] != value} == {}
    for width in (80, 120, 200):
        lines = [line.expandtabs(8) for line in text.split("\n")]
        pieces = [line[at : at + width] for line in lines for at in range(0, max(len(line), 1), width)]
        assert told("\n".join(pieces)) == whole


def test_a_row_without_its_last_columns_has_no_memory_of_its_own() -> None:
    found = parse_topo("\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \t0-31\t0\n")
    assert not isinstance(found, Unknown)
    place = found.gpus["GPU0"]
    assert place.numa_nodes == frozenset({0}) and isinstance(place.gpu_numa_node, Unknown)


@pytest.mark.parametrize("after", ["root@gpu01:~# ls", "thanks", "```", "-- ", "12:00"])
def test_what_follows_a_matrix_without_a_legend_is_no_part_of_its_last_row(after: str) -> None:
    for text in (TWO, TWO.replace("0-31", "0-63,128-191,256-319,384-447,512-575").replace("\t", "       ")):
        assert told(text + after + "\n") == told(text)
