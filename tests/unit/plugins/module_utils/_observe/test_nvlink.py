# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``nvidia-smi nvlink``: real outputs with their reading, counters of each generation, and how few runs it takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Sequence

import pytest
import yaml
from fakes import FakeHost

from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import CaptureHost, Result
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import Unknown
from ansible_collections.gpufleet.host.plugins.module_utils._observe import interconnect
from ansible_collections.gpufleet.host.plugins.module_utils._observe.nvlink import GpuLinks, is_error, parse_nvlink

ROOT = Path(__file__).resolve().parents[5]
CORPUS = ROOT / "tests/corpus/nvlink"


def rows() -> list[Any]:
    cases = yaml.safe_load((ROOT / "tests/unit/cases/corpus/nvlink.yml").read_text(encoding="utf-8"))
    assert sorted(row["file"] for row in cases) == sorted(path.name for path in CORPUS.iterdir())
    return [pytest.param(row, id=row["file"]) for row in cases]


def gpus(text: Any) -> tuple[GpuLinks, ...]:
    found = parse_nvlink(text)
    assert isinstance(found, tuple), found
    return found


@pytest.mark.parametrize("row", rows())
def test_nvlink_of_the_corpus(row: dict[str, Any]) -> None:
    found = gpus((CORPUS / row["file"]).read_text(encoding="utf-8"))
    assert len(found) == len(row["gpus"])
    for gpu, expected in zip(found, row["gpus"]):
        assert [getattr(gpu, key) for key in ("index", "name", "state")] == [
            expected[key] for key in ("index", "name", "state")
        ]
        assert gpu.info == expected.get("info", {})
        if "unknown" in expected:
            assert isinstance(gpu.active, Unknown) and gpu.active.reason.startswith(expected["unknown"])
            assert gpu.links == {}
            continue
        assert gpu.active == expected["active"]
        assert list(gpu.rates_gb_s) == expected.get("rates", [])
        if "inactive" in expected:
            assert gpu.inactive == expected["inactive"]
        down = [number for number, link in gpu.links.items() if link.is_active is False]
        assert down == expected.get("down", [])


OLD_ERRORS = """\
GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-0)
\t Link 0: Replay Errors: 0
\t Link 0: Recovery Errors: 0
\t Link 0: CRC Errors: 0

\t Link 1: Replay Errors: 142
\t Link 1: Recovery Errors: 3
\t Link 1: CRC Errors: 891
GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-1)
\t Link 0: Replay Errors: N/A
"""
NEW_ERRORS = """\
GPU 0: NVIDIA B300 SXM6 AC (UUID: GPU-0)
\t Link 0: Malformed packet Errors: 0
\t Link 0: Rx Errors: 50
\t Link 0: Link recovery failed events: 1
\t Link 0: Total link recovery events: 1
\t Link 0: Effective BER: 15e-255
\t Link 0: Symbol BER: 15e-255
\t Link 0: FEC Errors - 0: 36140749276
\t Link 0: FEC Errors - 1: 12
\t Link 0: Raw Errors Lane 0: 82
\t Link 0: Raw BER Total: 1037
\t Link 0: Tx packets: 12345
"""


def test_counters_of_each_link() -> None:
    first, second = gpus(OLD_ERRORS)
    assert first.errors == {1: {"replay_errors": 142, "recovery_errors": 3, "crc_errors": 891}}
    assert first.links[0].counters == {"replay_errors": 0, "recovery_errors": 0, "crc_errors": 0}
    assert second.errors == {}
    quiet = second.links[0].counters["replay_errors"]
    assert isinstance(quiet, Unknown) and quiet.reason.startswith("not applicable")
    assert isinstance(first.active, Unknown), "error counters do not tell which links are up"


def test_what_a_healthy_link_counts_is_no_error() -> None:
    (gpu,) = gpus(NEW_ERRORS)
    assert gpu.errors == {0: {"rx_errors": 50, "link_recovery_failed_events": 1}}
    assert gpu.links[0].counters["fec_errors_0"] == 36140749276
    assert gpu.links[0].counters["effective_ber"] == pytest.approx(0)


@pytest.mark.parametrize("name", ["crc_flit_error_count", "crc_errors_lane_3", "symbol_errors", "tx_discards"])
def test_names_of_errors(name: str) -> None:
    assert is_error(name)


@pytest.mark.parametrize("name", ["fec_errors_0", "fec_errors_15", "raw_errors_lane_0", "symbol_ber", "rx_packets"])
def test_names_of_what_is_no_error(name: str) -> None:
    assert not is_error(name)


def test_counters_on_one_line() -> None:
    (gpu,) = gpus("GPU 0: x\n   Link 1: Replay Errors: 142, Recovery Errors: 3, CRC Errors: 891\n")
    assert gpu.errors == {1: {"replay_errors": 142, "recovery_errors": 3, "crc_errors": 891}}


def test_abilities_and_the_other_end() -> None:
    (gpu,) = gpus(
        "GPU 0: NVIDIA H100 PCIe (UUID: GPU-6)\n\t Link 0, P2P is supported: true\n\t Link 0, SLI is supported: false\n"
        "GPU 0: NVIDIA H100 PCIe (UUID: GPU-6)\n\t Link 0: Remote Device 00000000:D5:00.0: Link 6\n\t Link 1: 00000008:00:00.0\n"
    )
    assert gpu.links[0].abilities == {"p2p_is_supported": True, "sli_is_supported": False}
    assert (gpu.links[0].remote_address, gpu.links[0].remote_link) == ("0000:d5:00.0", 6)
    assert gpu.links[1].remote_address == "0008:00:00.0" and isinstance(gpu.links[1].remote_link, Unknown)


def test_status_and_counters_behind_each_other_are_one_reading() -> None:
    status = (CORPUS / "nvlink-s-h100-590.txt").read_text(encoding="utf-8")
    (gpu,) = gpus(status + OLD_ERRORS.split("GPU 1", 1)[0])
    assert (gpu.active, gpu.errors[1]["crc_errors"]) == (18, 891)
    assert gpus(status.replace("\n", "\r\n")) == gpus(status)


@pytest.mark.parametrize(
    ("said", "state"),
    [
        ("<inactive>", False),
        ("Disabled", False),
        ("50 GB/s", True),
        ("<sleep>", None),
        ("Unknown Error", None),
        ("N/A", None),
    ],
)
def test_words_of_a_link(said: str, state: bool | None) -> None:
    (gpu,) = gpus("GPU 0: x\n\t Link 0: %s\n" % said)
    if state is None:
        assert isinstance(gpu.links[0].is_active, Unknown) and isinstance(gpu.active, Unknown)
    else:
        assert gpu.links[0].is_active is state and gpu.active == int(state)


def test_one_gpu_in_error_hides_no_other() -> None:
    found = gpus(
        "GPU 0: a (UUID: GPU-0)\n\t Link 0: 25 GB/s\nGPU 1: b (UUID: GPU-1)\nUnable to determine the device handle: "
        "Unknown Error\nGPU 2: c (UUID: GPU-2)\n\t Link 0: 25 GB/s\nGPU 3: d (UUID: GPU-3)\n"
    )
    assert [gpu.state for gpu in found] == ["links", "error", "links", "silent"]
    assert isinstance(found[1].active, Unknown) and found[1].active.reason.startswith("error")


def test_a_message_that_lost_its_gpu_still_counts() -> None:
    message = "NVML: Unable to retrieve NVLink information as all links are inActive\n"
    assert [(gpu.index, gpu.active) for gpu in gpus(message * 2)] == [(0, 0), (1, 0)]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not there: the tool printed nothing"),
        ("\n \n", "not there"),
        (None, "not there"),
        ("No devices were found\n", "error: No devices"),
        ("Failed to initialize NVML: Driver/library version mismatch\n", "error: Failed"),
        ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n", "error: NVIDIA-SMI"),
        ("Insufficient Permissions", "not permitted"),
        ("une phrase", "not understood"),
    ],
)
def test_no_gpu_is_unknown_with_the_tool_s_own_word(text: Any, reason: str) -> None:
    found = parse_nvlink(text)
    assert isinstance(found, Unknown) and found.reason.startswith(reason)


# Observing


class Machine(FakeHost):
    """A machine with nvidia-smi, which counts its runs."""

    def __init__(self, root: Path, answers: dict[str, Result]) -> None:
        super().__init__(root)
        self.answers = answers
        self.asked: list[str] = []

    def run(self, argv: Sequence[str], deadline_s: float = 10.0) -> Result:
        assert argv[0] == "nvidia-smi" and deadline_s <= 30
        self.asked.append(" ".join(argv[1:]))
        return self.answers.get(self.asked[-1], Result(-1, "", "", "nvidia-smi is not installed"))


STATUS = "GPU 0: a (UUID: GPU-0)\n\t Link 0: 26.562 GB/s\n"
MATRIX = "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV1\t0-7\nGPU1\tNV1\t X \t0-7\n"
ALL = {"nvlink -s": Result(0, STATUS, ""), "nvlink -e": Result(0, OLD_ERRORS, ""), "topo -m": Result(0, MATRIX, "")}


def test_behind_switches_the_counters_are_asked(tmp_path: Path) -> None:
    host = Machine(tmp_path, ALL)
    seen = interconnect.observe(host, has_nvlink=True, has_nvswitch=True)
    assert host.asked == ["nvlink -s", "nvlink -e"]
    assert isinstance(seen.links, tuple) and seen.links[0].active == 1 and 1 in seen.links[0].errors
    assert isinstance(seen.topo, Unknown) and seen.topo.reason.startswith("not there: not asked")


def test_where_gpus_are_wired_to_each_other_the_matrix_is_asked(tmp_path: Path) -> None:
    host = Machine(tmp_path, ALL)
    seen = interconnect.observe(host, has_nvlink=True, has_nvswitch=False)
    assert host.asked == ["nvlink -s", "topo -m"]
    assert not isinstance(seen.topo, Unknown) and seen.topo.nvlinks("GPU0", "GPU1") == 1


def test_without_nvlink_nothing_is_run(tmp_path: Path) -> None:
    host = Machine(tmp_path, ALL)
    seen = interconnect.observe(host, has_nvlink=False, has_nvswitch=False)
    assert host.asked == []
    assert isinstance(seen.links, Unknown) and seen.links.reason.startswith("not applicable")


def test_a_tool_that_hangs_is_asked_once(tmp_path: Path) -> None:
    host = Machine(tmp_path, {"nvlink -s": Result(-1, "", "", "nvidia-smi hung: no answer in 20 s")})
    seen = interconnect.observe(host, has_nvlink=True, has_nvswitch=True)
    assert host.asked == ["nvlink -s"]
    for part in (seen.links, seen.topo):
        assert isinstance(part, Unknown) and "hung" in part.reason


def test_a_tool_that_is_missing(tmp_path: Path) -> None:
    seen = interconnect.observe(Machine(tmp_path, {}), has_nvlink=True, has_nvswitch=False)
    assert isinstance(seen.links, Unknown) and "not installed" in seen.links.reason
    assert isinstance(seen.topo, Unknown)


def test_what_was_printed_before_an_error_is_kept(tmp_path: Path) -> None:
    answers = {
        "nvlink -s": Result(6, STATUS, "Unknown Error\n"),
        "nvlink -e": Result(9, "", "NVML: driver not loaded\n"),
    }
    seen = interconnect.observe(Machine(tmp_path, answers), has_nvlink=True, has_nvswitch=True)
    assert isinstance(seen.links, tuple) and seen.links[0].active == 1


def test_a_capture_is_asked_for_all_that_it_holds(tmp_path: Path) -> None:
    (tmp_path / "commands").mkdir()
    (tmp_path / "capture.json").write_text('{"format": 1, "hostname": "h", "taken": ""}', encoding="utf-8")
    recorded = {"nvlink --status": STATUS, "nvlink -e": OLD_ERRORS, "topo -m": MATRIX}
    for number, (words, text) in enumerate(recorded.items()):
        row = {"argv": ["nvidia-smi", *words.split()], "rc": 0, "stdout": text, "stderr": ""}
        (tmp_path / ("commands/%04d.json" % number)).write_text(json.dumps(row), encoding="utf-8")
    seen = interconnect.observe(CaptureHost(str(tmp_path)), has_nvlink=False, has_nvswitch=True)
    assert isinstance(seen.links, tuple) and seen.links[0].active == 1 and seen.links[0].errors
    assert not isinstance(seen.topo, Unknown)


def test_links_below_a_command_are_those_of_the_gpu_that_was_asked_for() -> None:
    (gpu,) = gpus("nvidia-smi nvlink --capabilities -i 5\nLink 0, P2P is supported: true\n")
    assert (gpu.index, gpu.links[0].abilities) == (5, {"p2p_is_supported": True})
    two = "GPU 0: A (UUID: GPU-0)\n\t Link 0: 25 GB/s\nGPU 1: A (UUID: GPU-1)\n\t Link 0: 25 GB/s\n"
    text = two + "$ nvidia-smi nvlink -e\n\t Link 0: Replay Errors: 5\n"
    assert [gpu.errors for gpu in gpus(text)] == [{}, {}]
    text = two + "$ nvidia-smi nvlink -e -i 0\n\t Link 0: Replay Errors: 5\n"
    assert [gpu.errors for gpu in gpus(text)] == [{0: {"replay_errors": 5.0}}, {}]


def test_a_message_may_stand_in_the_line_of_its_gpu() -> None:
    text = "GPU 0: NVIDIA RTX A4000 (UUID: GPU-a) Device does not have or support Nvlink\n"
    text += (
        "GPU 1: Quadro RTX 5000 (UUID: GPU-b) NVML: Unable to retrieve Nvlink information as all links are inActive\n"
    )
    found = gpus(text)
    assert [(gpu.name, gpu.uuid, gpu.state) for gpu in found] == [
        ("NVIDIA RTX A4000", "GPU-a", "no nvlink"),
        ("Quadro RTX 5000", "GPU-b", "all inactive"),
    ]
    (lone,) = gpus("Device does not have or support Nvlink\n")
    assert lone.state == "no nvlink"


def test_of_several_machines_the_first_is_read() -> None:
    text = "n1: GPU 0: A (UUID: GPU-1)\nn2: GPU 0: A (UUID: GPU-2)\nn1: \t Link 0: 25 GB/s\nn2: \t Link 0: <inactive>\n"
    (gpu,) = gpus(text)
    assert (gpu.uuid, gpu.active, gpu.inactive) == ("GPU-1", 1, 0)
    stamped = "Jan 05 14:44:41 node smi[7]: GPU 0: A (UUID: GPU-1)\nJan 05 14:44:41 node smi[7]:  Link 0: Active\n"
    (gpu,) = gpus(stamped)
    assert (gpu.active, gpu.rates_gb_s) == (1, ())
