# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``dcgmi``: which GPU a note of the diagnostic is about, and the reports of other versions."""

from __future__ import annotations

from ansible_collections.gpufleet.host.plugins.module_utils._observe import dcgmi, dcgmi_diag


def table(*rows: tuple[str, str]) -> str:
    return "".join("| %-25s | %-45s  |\n" % row for row in rows)


def test_a_note_belongs_to_the_gpu_that_it_names() -> None:
    newer = dcgmi_diag.parse_dcgmi_diag(
        table(
            ("memory", "Fail"),
            ("", "GPU0: Fail"),
            ("", "GPU1: Pass"),
            ("Warning: GPU0", "A page could not be retired"),
            ("Info", "All is told"),
        )
    )
    assert [(result.entities, result.messages) for result in newer.results] == [
        ((), ()),
        (("0",), ("A page could not be retired",)),
        (("1",), ("All is told",)),
    ]
    older = dcgmi_diag.parse_dcgmi_diag(
        table(
            ("PCIe", "Fail - GPU: 0"),
            ("", "Pass - GPU: 1"),
            ("Warning", "GPU 0 has no stream"),
            ("Info", "GPU 1 is fast"),
            ("GPU Memory", "Pass - All"),
            ("Warning", "GPU 0 was warm"),
        )
    )
    assert [(result.status, result.messages) for result in older.results] == [
        ("Fail", ("GPU 0 has no stream",)),
        ("Pass", ("GPU 1 is fast",)),
        ("Pass", ("GPU 0 was warm",)),
    ]


def test_a_note_that_was_cut_within_its_words_is_one() -> None:
    diag = dcgmi_diag.parse_dcgmi_diag(
        table(
            ("Persistence Mode", "Fail"),
            ("Warning", "Persistence mode for GPU 0 is currently disab"),
            ("", "led. The DCGM diagnostic requires persistence"),
            ("", " mode to be enabled"),
        )
    )
    assert diag.results[0].messages == (
        "Persistence mode for GPU 0 is currently disabled. The DCGM diagnostic requires persistence mode to be enabled",
    )


def test_what_is_said_above_the_json_is_why_there_are_no_results() -> None:
    said = 'Error: Unable to run diagnostic on unsupported GPU 0.\n{"DCGM GPU Diagnostic": {"version": "4.2.3"}}\n'
    assert dcgmi_diag.parse_dcgmi_diag(said).error == "Error: Unable to run diagnostic on unsupported GPU 0."
    old = '{"DCGM GPU Diagnostic": {"test_categories": [{"category": "Deployment", "tests": [null, {"name": "PCIe",'
    old += '"results": [{"gpu_ids": "0", "status": "SKIPPED"}, {"gpu_ids": "1", "status": "FAIL"}]}]}]}}'
    assert [result.status for result in dcgmi_diag.parse_dcgmi_diag(old).results] == ["Skip", "Fail"]


def test_the_health_report_of_the_first_versions() -> None:
    text = (
        "    | Group 1          | Overall Health: Warning                                 |\n"
        "    +==================+=========================================================+\n"
        "    | GPU ID: 1        | Warning                                                 |\n"
        "    |                  | PCIe system: Warning - More than 8 replays per minute   |\n"
    )
    health = dcgmi.parse_dcgmi_health(text)
    assert (health.overall, health.systems) == ("Warning", (("1", "PCIe system", "Warning"),))
    assert health.messages == ("More than 8 replays per minute",)


def test_the_error_counts_of_nvlinks() -> None:
    text = (
        "$ dcgmi nvlink -e -g 3\n"
        "| NVLINK Error Counts                                                          |\n"
        "| GPU 3                                                                        |\n"
        "+=============================+================================================+\n"
        "| Link 0                      |                                                |\n"
        "| -> CRC FLIT Error           | 0                                              |\n"
        "| -> Replay Error             | 7                                              |\n"
        "| Link 1                      |                                                |\n"
        "| -> Replay Error             | Not Specified                                  |\n"
    )
    errors = dcgmi.parse_dcgmi_nvlink_errors(text)
    assert errors["3", "0"] == {"CRC FLIT Error": 0, "Replay Error": 7}
    assert not isinstance(errors["3", "1"]["Replay Error"], int)


def test_lines_with_a_machine_in_front_of_them() -> None:
    rows = table(("PCIe", "Pass - All"), ("Overall Health", "Healthy")) + "# Entity  GPUTL\nGPU 0  12\ngpuId 0:\n U D\n"
    text = "".join("node-1: %s\n" % line for line in rows.splitlines())
    assert [result.status for result in dcgmi_diag.parse_dcgmi_diag(text).results] == ["Pass"]
    assert dcgmi.parse_dcgmi_health(text).overall == "Healthy"
    assert dcgmi.parse_dcgmi_dmon(text).samples[0].values == (12,)
    assert dcgmi.parse_dcgmi_nvlink(text) == {"gpuId 0": ("up", "down")}
    said = '$ dcgmi health -c -j\n{"body": {"Overall Health": {"value": "Warning"}}}\n$ \n'
    assert dcgmi.parse_dcgmi_health(said).overall == "Warning"
