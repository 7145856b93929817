# Copyright: (c) 2026, gpufleet.host contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's nvidia-smi says what the real one said, with the lab's addresses and links in it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from lab.base import LAB, REPO
from lab.simulated.smi import answers, main
from lab.simulated.smi.cards import H100, Card
from lab.simulated.smi.recorded import rows
from lab.simulated.smi.slots import Slot
from lab.simulated.smi.troubles import FILE, BadTrouble, parse_troubles

CORPUS = REPO / "tests/corpus"
NOW = time.strptime("2026-07-14 08:12:38", "%Y-%m-%d %H:%M:%S")
ADDRESSES = ["00000000:01:00.0", "00000000:21:00.0", "00000000:22:00.0", "00000000:61:00.0"]


def corpus(name: str) -> str:
    return (CORPUS / name).read_text().rstrip("\n")


@pytest.fixture
def recorded() -> list[Card]:
    """The one GPU of the recordings."""
    return [Card(Slot("0000:00:09.0", 0, "0-23", "pci0000:00", None, None, None, None), H100, rows(), [True] * 18)]


# As recorded


def test_q_is_the_recording_letter_by_letter(recorded: list[Card]) -> None:
    assert answers.text(recorded, NOW).rstrip("\n") == corpus("nvidia-smi-q/q-h100-590-idle.txt")


def test_a_query_for_everything_is_the_recording_letter_by_letter(recorded: list[Card]) -> None:
    wanted = corpus("nvidia-smi-csv/csv-all-h100-590-idle.csv")
    names = [title.split(" ")[0] for title in wanted.splitlines()[0].split(", ")]
    said = answers.query(recorded, names, ["csv"], NOW).rstrip("\n")
    assert said == wanted.replace("08:12:38.696", "08:12:38.000")


def test_other_words_are_the_recordings_letter_by_letter(recorded: list[Card]) -> None:
    assert answers.nvlink_status(recorded).rstrip("\n") == corpus("nvlink/nvlink-s-h100-590.txt")
    assert answers.listing(recorded).rstrip("\n") == corpus("nvidia-smi-table/list-L-h100-590.txt")
    assert answers.version().rstrip("\n") == corpus("nvidia-smi-csv/version-h100-mig-590.txt")
    assert answers.topology(recorded).rstrip("\n") == corpus("topo-m/topo-1gpu-rtx2080s-595.txt")


def elements(node: ElementTree.Element, path: str = "") -> list[str]:
    own = [path] if path and not len(node) else []
    return own + [name for child in node for name in elements(child, path + "/" + child.tag)]


def test_the_xml_has_the_elements_of_a_recorded_one_in_its_order(recorded: list[Card]) -> None:
    [mine] = ElementTree.fromstring(answers.xml(recorded, NOW)).findall("gpu")
    [theirs] = ElementTree.fromstring(corpus("nvidia-smi-xml/x-rtx4000sff-595-v13.xml")).findall("gpu")
    # Driver 595 has three values more; processes and clocks are lists there.
    newer = ("_inactive", "/partition_assigned")
    wanted = [name for name in elements(theirs) if not name.endswith(newer)]
    lists = ("/supported_clocks/", "/processes/")
    assert [name for name in elements(mine) if name not in ("/supported_clocks", "/processes")] == [
        name for name in wanted if not name.startswith(lists)
    ]


# In the lab


def test_addresses_links_and_nodes_are_the_kernels(nvidia: Any) -> None:
    log = ElementTree.fromstring(nvidia.says("-q", "-x"))
    assert [gpu.get("id") for gpu in log.findall("gpu")] == ADDRESSES
    assert [gpu.findtext("pci/pci_bus") for gpu in log.findall("gpu")] == ["01", "21", "22", "61"]
    links = log.findall("gpu/pci/pci_gpu_link_info")
    assert [link.findtext("link_widths/current_link_width") for link in links] == ["16x", "16x", "16x", "8x"]
    assert {link.findtext("link_widths/max_link_width") for link in links} == {"16x"}
    for name, value in (("current_link_gen", "4"), ("max_device_link_gen", "5"), ("max_host_link_gen", "4")):
        assert {link.findtext("pcie_gen/" + name) for link in links} == {value}
    topology = nvidia.says("topo", "-m").splitlines()
    assert topology[1] == "GPU0\t X \tNV18\tNV18\tNV18\t0-11\tN/A\t\tN/A"
    assert topology[4] == "GPU3\tNV18\tNV18\tNV18\t X \t6-11\t1\t\tN/A"


def test_no_two_gpus_share_a_number(nvidia: Any) -> None:
    said = nvidia.says("--query-gpu=index,serial,uuid,pci.bus_id,platform.module_id", "--format=csv,noheader")
    for column in zip(*(line.split(", ") for line in said.splitlines())):
        assert len(set(column)) == 4, column


def test_a_query_without_header_and_units(nvidia: Any) -> None:
    words = ("--query-gpu=index,gpu_name,memory.total,pcie.link.width.current,compute_cap,driver_version", "--format=")
    said = nvidia.says(words[0], words[1] + "csv,noheader,nounits").splitlines()
    assert said[3] == "3, NVIDIA H100 80GB HBM3, 81559, 8, 9.0, 590.48.01"
    assert nvidia.says(words[0], words[1] + "csv").splitlines()[0].startswith("index, name, memory.total [MiB], ")


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--query-gpu=nonsense", "--format=csv"], 'Field "nonsense" is not a valid field to query.'),
        (["--query-gpu=name"], '"--query-gpu=" switch must be used'),
        (["--gpu-reset"], "Invalid combination of input arguments."),
        ([], "Invalid combination of input arguments."),
    ],
)
def test_what_it_does_not_know_it_refuses(nvidia: Any, argv: list[str], said: str) -> None:
    rc, out = nvidia.ask(*argv)
    assert rc == 2
    assert said in out


def test_long_words_are_the_short_ones(nvidia: Any) -> None:
    assert nvidia.says("--query", "--xml-format") == nvidia.says("-x", "-q")
    assert nvidia.says("nvlink", "--status") == nvidia.says("nvlink", "-s")


# Troubles


def test_a_lost_gpu_is_in_no_list(nvidia: Any) -> None:
    troubles = {"gpus": {"1": {"lost": "missing"}}}
    log = ElementTree.fromstring(nvidia.says("-q", "-x", troubles=troubles))
    assert log.findtext("attached_gpus") == "3"
    assert [gpu.get("id") for gpu in log.findall("gpu")] == [ADDRESSES[0], *ADDRESSES[2:]]
    assert [line[:6] for line in nvidia.says("-L", troubles=troubles).splitlines()] == ["GPU 0:", "GPU 1:", "GPU 2:"]
    assert nvidia.ask("-L", troubles={"gpus": {"all": {"lost": "missing"}}}) == (6, "No devices were found\n")


def test_a_gpu_that_fell_off_the_bus_hides_the_others(nvidia: Any) -> None:
    rc, out = nvidia.ask("-q", "-x", troubles={"gpus": {"3": {"lost": "fallen"}}})
    recorded = corpus("driver-version/nvidia-smi-device-handle-unknown-error.txt")
    assert (rc, out.rstrip()) == (255, recorded.replace("CB:00.0", "61:00.0"))


def test_the_driver_can_be_another_or_none(nvidia: Any) -> None:
    rc, out = nvidia.ask("-q", "-x", troubles={"driver": "mismatch"})
    assert (rc, out.rstrip()) == (18, corpus("driver-version/nvml-mismatch-580.txt").replace("580.178", "590.48"))
    rc, out = nvidia.ask("-L", troubles={"driver": "not-loaded"})
    assert (rc, out.strip()) == (9, corpus("driver-version/nvidia-smi-no-driver-modprobe.txt").splitlines()[1])


def one_gpu(nvidia: Any, path: str, **wrong: Any) -> list[str]:
    """An element of all four, where GPU 1 has a trouble."""
    log = ElementTree.fromstring(nvidia.says("-q", "-x", troubles={"gpus": {"1": wrong}}))
    return [gpu.findtext(path) or "" for gpu in log.findall("gpu")]


H100_NAME = "NVIDIA H100 80GB HBM3"


@pytest.mark.parametrize(
    ("wrong", "path", "healthy", "troubled"),
    [
        ({"model": "A800-SXM4-80GB"}, "product_name", H100_NAME, "NVIDIA A800-SXM4-80GB"),
        ({"model": "A800-SXM4-80GB"}, "pci/pci_device_id", "233010DE", "20F310DE"),
        ({"model": "A800-SXM4-80GB"}, "temperature/gpu_temp_slow_threshold", "", "89 C"),
        ({"model": "A800-SXM4-80GB"}, "pci/pci_gpu_link_info/pcie_gen/max_link_gen", "4", "4"),
        ({"model": "A800-SXM4-80GB", "name": H100_NAME}, "product_name", H100_NAME, H100_NAME),
        ({"model": "A800-SXM4-80GB", "name": H100_NAME}, "pci/pci_device_id", "233010DE", "20F310DE"),
        ({"width": 8}, "pci/pci_gpu_link_info/link_widths/max_link_width", "16x", "16x"),
        ({"gen": 1}, "pci/pci_gpu_link_info/pcie_gen/current_link_gen", "4", "1"),
        ({"error": "GPU requires reset"}, "temperature/gpu_temp", "41 C", "GPU requires reset"),
        ({"error": "GPU requires reset"}, "gpu_recovery_action", "None", "Reset"),
        ({"error": "ERR!"}, "gpu_power_readings/average_power_draw", "69.85 W", "ERR!"),
        ({"error": "ERR!"}, "product_name", H100_NAME, H100_NAME),
        ({"ecc": "off"}, "ecc_mode/current_ecc", "Enabled", "Disabled"),
        ({"ecc": "off"}, "ecc_errors/aggregate/dram_uncorrectable", "0", "N/A"),
        ({"ecc": "off-pending"}, "ecc_mode/current_ecc", "Enabled", "Enabled"),
        ({"ecc": "off-pending"}, "ecc_mode/pending_ecc", "Enabled", "Disabled"),
        ({"uncorrectable": 2}, "ecc_errors/volatile/dram_uncorrectable", "0", "2"),
        ({"fabric": "In Progress"}, "fabric/state", "Completed", "In Progress"),
        ({"fabric": "In Progress"}, "fabric/status", "Success", "N/A"),
    ],
)
def test_a_trouble_is_of_one_gpu(nvidia: Any, wrong: dict[str, Any], path: str, healthy: str, troubled: str) -> None:
    assert one_gpu(nvidia, path, **wrong) == [healthy, troubled, healthy, healthy]


def test_a_narrow_link_is_said_against_the_kernel(nvidia: Any) -> None:
    path = "pci/pci_gpu_link_info/link_widths/current_link_width"
    assert one_gpu(nvidia, path, width=8) == ["16x", "8x", "16x", "8x"]
    query = ("--query-gpu=pcie.link.width.current", "--format=csv,noheader")
    assert nvidia.says(*query, troubles={"gpus": {"all": {"width": 4}}}).split() == ["4"] * 4


def test_words_of_error_are_bracketed_in_a_query(nvidia: Any) -> None:
    query = ("--query-gpu=temperature.gpu,memory.total,ecc.errors.uncorrected.volatile.total", "--format=csv,noheader")
    said = nvidia.says(*query, troubles={"gpus": {"0": {"error": "Unknown Error"}, "1": {"error": "ERR!"}}})
    assert said.splitlines()[0] == "[Unknown Error], 81559 MiB, [Unknown Error]"
    assert said.splitlines()[1] == "ERR!, 81559 MiB, ERR!"
    assert said.splitlines()[2] == "41, 81559 MiB, 0"


def test_an_inactive_link_is_one_less_for_all_peers(nvidia: Any) -> None:
    troubles = {"gpus": {"2": {"inactive_links": [4], "nvlink_errors": 7}}}
    status = nvidia.says("nvlink", "-s", troubles=troubles).splitlines()
    assert status.count("\t Link 4: <inactive>") == 1
    assert len(status) == 4 * 19
    ways = nvidia.says("topo", "-m", troubles=troubles).splitlines()
    assert ways[1].split("\t")[1:5] == [" X ", "NV18", "NV17", "NV18"]
    errors = nvidia.says("nvlink", "-e", troubles=troubles)
    assert errors.count("Replay Errors: 0") == 4 * 18 - 2
    assert errors.count("\t Link 0: Replay Errors: 7\n") == 1


def test_gpus_without_links_meet_where_the_kernel_says(nvidia: Any) -> None:
    troubles = {"gpus": {"all": {"inactive_links": list(range(18))}}}
    assert "links are inActive" in nvidia.says("nvlink", "-s", troubles=troubles)
    ways = nvidia.says("topo", "-m", troubles=troubles).splitlines()
    assert ways[1].split("\t")[1:5] == [" X ", "SYS", "SYS", "SYS"]
    assert ways[2].split("\t")[1:5] == ["SYS", " X ", "PHB", "SYS"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"gpu": {}}',
        '{"hang": "yes"}',
        '{"gpus": {"one": {}}}',
        '{"gpus": {"1": {"lots": 1}}}',
        '{"gpus": {"1": {"error": "err"}}}',
        '{"gpus": {"1": {"inactive_links": 3}}}',
        '{"gpus": {"1": {"width": true}}}',
    ],
)
def test_a_trouble_that_is_none_is_refused(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(BadTrouble):
        parse_troubles(text)
    place = tmp_path / FILE.lstrip("/")
    place.parent.mkdir(parents=True)
    place.write_text(text)
    assert main.main(["-L"], str(tmp_path)) == 70
    assert FILE in capsys.readouterr().err


# As a program


def start(root: Path, hang: str) -> subprocess.Popen[str]:
    """As the host would run it, on a tree of files."""
    place = root / FILE.lstrip("/")
    place.parent.mkdir(parents=True)
    place.write_text('{"hang": "%s"}' % hang)
    code = "import sys; from smi.main import main; print('started', flush=True); sys.exit(main(['-L'], sys.argv[1]))"
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(root)], cwd=LAB / "simulated", stdout=subprocess.PIPE, text=True
    )
    assert process.stdout and process.stdout.readline() == "started\n"
    time.sleep(0.3)
    return process


def test_the_program_runs_where_it_is_put(tmp_path: Path) -> None:
    link = tmp_path / "nvidia-smi"
    link.symlink_to(LAB / "simulated/nvidia-smi")
    assert os.access(link, os.X_OK)
    done = subprocess.run([sys.executable, str(link), "-L"], capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (6, "No devices were found\n"), done.stderr


def test_a_sleeping_one_ends_at_a_signal(nvidia: Any) -> None:
    process = start(nvidia.root, "sleep")
    process.terminate()
    assert process.wait(10) == -15


def test_a_deaf_one_holds_its_pipe_beyond_its_death_until_all_is_well(nvidia: Any) -> None:
    process = start(nvidia.root, "deaf")
    process.terminate()
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.5)
    process.kill()
    assert process.wait(10) == -9
    said: list[str] = []
    reader = threading.Thread(target=lambda: said.append(process.stdout.read() if process.stdout else ""))
    reader.start()
    reader.join(0.5)
    assert reader.is_alive(), "the pipe should still be open"
    (nvidia.root / FILE.lstrip("/")).unlink()
    reader.join(10)
    assert said == [""]
    if process.stdout:
        process.stdout.close()
