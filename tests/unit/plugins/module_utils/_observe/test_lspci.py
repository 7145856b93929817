# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from pathlib import Path
from typing import Any, Sequence

import pytest
import yaml

from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import LiveHost, Result
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import Unknown
from ansible_collections.gpufleet.host.plugins.module_utils._observe import (
    lspci,
    lspci_tree,
    pci,
    pci_recorded,
    pci_tree,
)
from ansible_collections.gpufleet.host.plugins.module_utils._observe.pci_config import decode
from ansible_collections.gpufleet.host.plugins.module_utils._observe.pci_registers import (
    NO_LINK,
    Acs,
    Aer,
    Config,
    Express,
    LinkEnd,
)

ROOT = Path(__file__).resolve().parents[5]
CORPUS = ROOT / "tests/corpus/lspci"
ROWS = yaml.safe_load((ROOT / "tests/unit/cases/corpus/lspci.yml").read_text(encoding="utf-8"))


def text_of(name: str) -> str:
    return (CORPUS / name).read_text(encoding="utf-8")


def listing(name: str) -> tuple[lspci.Listed, ...]:
    return lspci.parse_lspci(text_of(name))


def link_of(link: LinkEnd) -> dict[str, Any]:
    return {name: getattr(link, name) for name in ("width", "speed_gts", "max_width", "max_speed_gts")}


def with_words(one: lspci.Listed) -> dict[str, Any]:
    return {**link_of(one.function.link), "words": [one.speed_word, one.width_word]}


def test_every_sample_has_its_row() -> None:
    assert {row["file"] for row in ROWS} == {path.name for path in CORPUS.iterdir()}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["file"])
def test_functions_of_the_corpus(row: dict[str, Any]) -> None:
    found = listing(row["file"])
    functions = [one.function for one in found]
    gpus = [
        function for function in functions if function.class_code.startswith("0302") and function.port == "endpoint"
    ]
    assert len(found) == row["devices"]
    for key in ("excerpt", "first"):
        if key in row:
            assert with_words(found[0]) == row[key]
    if "gpus" in row:
        assert [
            {"address": gpu.address, **link_of(gpu.link), "numa_node": gpu.numa_node, "driver": gpu.driver}
            for gpu in gpus
        ] == row["gpus"]
    if "modules" in row:
        assert [list(one.modules) for one in found if one.function in gpus] == [row["modules"]] * len(gpus)
    if "acs" in row:
        acs = [function.acs for function in functions if isinstance(function.acs, Acs)]
        assert {
            "ports": len(acs),
            "switched_on": sum("SrcValid" in one.control for one in acs),
            "redirecting": sum(one.redirects for one in acs),
        } == row["acs"]
    if "nvswitches" in row:
        assert sum(function.is_nvswitch for function in functions) == row["nvswitches"]
    if "regions" in row:
        assert isinstance(functions[0].bars, tuple)
        assert [vars(one) for one in functions[0].bars] == row["regions"]
    if "down" in row:
        assert sum(function.link.width is NO_LINK for function in functions) == row["down"]
    if "dumped" in row:
        assert sum(bool(function.vendor_id and function.device_id) for function in functions) == row["dumped"]
    assert [function.address for function in functions if function.is_dead] == row.get("dead", [])
    ways = lspci.ways(found)
    for address, expected in row.get("ways", {}).items():
        assert [function.address for function in ways[address].functions] == expected


@pytest.mark.parametrize("row", [row for row in ROWS if "tree" in row], ids=lambda row: row["file"])
def test_trees_of_the_corpus(row: dict[str, Any]) -> None:
    nodes = lspci_tree.parse_tree(text_of(row["file"]))
    gpus = [node for node in nodes if "NVIDIA" in node.name]
    assert [{**vars(node), "buses": list(node.buses)} for node in gpus] == row["tree"]


@pytest.mark.parametrize(
    "name", ["pciutils-cap-exp-lnkcap2.txt", "pciutils-cap-exp-dev2.txt", "pciutils-cap-flitmode.txt"]
)
def test_the_dump_says_what_lspci_makes_of_it(name: str) -> None:
    """Our own decoder against lspci's words on the same function."""
    for one, draft in zip(listing(name), lspci._drafts(text_of(name))):
        config = decode(bytes(draft.space))
        function = one.function
        assert isinstance(config, Config)
        assert isinstance(config.express, Express)
        assert config.express.port == function.port
        assert link_of(config.express.link) == link_of(function.link)
        assert config.express.max_payload_bytes == function.max_payload_bytes
        assert config.express.max_payload_supported_bytes == function.max_payload_supported_bytes
        assert config.express.max_read_request_bytes == function.max_read_request_bytes
        assert isinstance(config.aer, Aer) == isinstance(function.aer, Aer)
        if isinstance(function.aer, Aer):
            assert config.aer == function.aer
        if isinstance(function.acs, Acs):
            assert isinstance(config.acs, Acs)
            assert (config.acs.capability, config.acs.control) == (function.acs.capability, function.acs.control)
        assert (config.total_vfs, config.resizable_bars) == (function.total_vfs, function.resizable_bars)


def test_vfs_and_resizable_bars_of_a_dump() -> None:
    draft = next(lspci._drafts(text_of("pciutils-cap-dvsec-cxl.txt")))
    config = decode(bytes(draft.space))
    listed = listing("pciutils-cap-dvsec-cxl.txt")[0].function
    assert isinstance(config, Config)
    assert (config.total_vfs, config.resizable_bars) == (6, listed.resizable_bars)
    assert isinstance(listed.resizable_bars, tuple)
    assert listed.resizable_bars[0].size_bytes == 16 << 20


def test_the_gpu_of_the_xe9680() -> None:
    found = {one.function.address: one for one in listing("lspci-vvv-xe9680-one-gpu-path.txt")}
    gpu = found["0000:19:00.0"].function
    assert (gpu.vendor_id, gpu.device_id, gpu.subsystem) == ("10de", "2330", "10de:16c1")
    assert (gpu.max_read_request_bytes, gpu.max_payload_bytes, gpu.total_vfs) == (4096, 256, 32)
    assert isinstance(gpu.bars, tuple)
    assert [(one.index, one.size_bytes) for one in gpu.bars] == [(0, 16 << 20), (2, 128 << 30), (4, 32 << 20)]
    assert gpu.aer == Aer((), ("RxErr", "BadTLP", "Timeout"))
    assert found["0000:17:01.0"].function.slot == "28"
    way = lspci.ways(tuple(found.values()))["0000:19:00.0"]
    assert way.host_bridge == "pci0000:15"
    assert [(wire.upper, wire.lower) for wire in way.wires] == [
        ("0000:17:01.0", "0000:19:00.0"),
        ("0000:15:01.0", "0000:16:00.0"),
    ]
    slot = lspci.ways(tuple(found.values()))["0000:17:03.0"]
    assert pci_tree.meeting(way, slot) == pci_tree.Meeting("switch", "0000:16:00.0", ("0000:17:01.0",))


def test_what_root_alone_may_see_is_unknown() -> None:
    text = "01:00.0 3D controller: NVIDIA Corporation Device 2330 (rev a1)\n\tCapabilities: <access denied>\n"
    function = lspci.parse_lspci(text)[0].function
    for value in (function.acs, function.port, function.link.width, function.max_read_request_bytes, function.aer):
        assert isinstance(value, Unknown)
        assert value.reason.startswith("access denied")


@pytest.mark.parametrize(
    ("head", "ids"),
    [
        (
            "0000:21:00.0 3D controller [0302]: NVIDIA Corporation GH100 [H100 SXM5 80GB] [10de:2330] (rev a1)",
            ("0302", "10de", "2330", "NVIDIA Corporation GH100 [H100 SXM5 80GB]"),
        ),
        ("21:00.0 0302: 10de:2330 (rev a1)", ("0302", "10de", "2330", "")),
        ("21:00.0 Class 0604: Device 8086:9d10 (rev f1)", ("0604", "8086", "9d10", "")),
        (
            "21:00.0 Infiniband controller: Mellanox Technologies MT2910 Family [ConnectX-7]",
            ("0207", "15b3", "", "Mellanox Technologies MT2910 Family [ConnectX-7]"),
        ),
        (
            "21:00.0 Memory controller [0502]: Xilinx Device [10ee:c084] (rev 70) (prog-if 10 [CXL Device (CXL 2.x)])",
            ("0502", "10ee", "c084", "Xilinx Device"),
        ),
    ],
)
def test_names_and_ids(head: str, ids: tuple[str, str, str, str]) -> None:
    function = lspci.parse_lspci(head + "\r\n")[0].function
    assert (function.class_code, function.vendor_id, function.device_id, function.name) == ids
    assert function.address == "0000:21:00.0"


def test_rows_picked_by_grep_are_functions_each() -> None:
    text = "\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+\n" * 2 + "\t\tACSCtl:\tSrcValid- ReqRedir-\n"
    acs = [one.function.acs for one in lspci.parse_lspci("$ lspci -vvv | grep ACSCtl\n" + text)]
    assert [one.redirects for one in acs if isinstance(one, Acs)] == [True, True, False]


def test_a_long_row_of_flags_goes_on() -> None:
    text = (
        "01:00.0 Bridge: NVIDIA Corporation GH100 [H100 NVSwitch] (rev a1)\n"
        "\tCapabilities: [100 v2] Advanced Error Reporting\n"
        "\t\tUESta:\tDLP+ SDES- TLP-\n\t\t\tECRC- UnsupReq+ ACSViol-\n\t\tUEMsk:\tDLP+ SDES+\n"
    )
    function = lspci.parse_lspci(text)[0].function
    assert function.aer == Aer(("DLP", "UnsupReq"), ())
    assert function.is_nvswitch


class Recorded(LiveHost):
    """A capture that holds one command."""

    is_live = False

    def __init__(self, argv: list[str], text: str) -> None:
        super().__init__("/nonexistent")
        self.argv, self.text = argv, text

    def run(self, argv: Sequence[str], deadline_s: float = 10.0) -> Result:
        return Result(0, self.text, "") if list(argv) == self.argv else Result(-1, "", "", "lspci was not recorded")


def test_devices_of_a_capture_that_holds_lspci_alone() -> None:
    host = Recorded(["lspci", "-vvv"], text_of("lspci-vvv-p100-cisco.txt"))
    found = pci_recorded.listed(host)
    assert isinstance(found, tuple)
    devices = pci_recorded.devices(found)
    gpus = [device for device in devices if device.kind == "gpu"]
    assert [(gpu.address, gpu.driver, gpu.numa_node) for gpu in gpus] == [
        ("0000:04:00.0", "nvidia", 0),
        ("0000:82:00.0", "nvidia", 1),
    ]
    assert gpus[0].link == pci.Link(16, 16, 16, 8.0, 8.0, 8.0)
    assert {device.kind for device in devices} >= {"gpu", "nic", "storage"}


def test_a_capture_without_lspci_is_unknown() -> None:
    assert isinstance(pci_recorded.listed(Recorded([], "")), Unknown)
    assert isinstance(pci_recorded.listed(Recorded(["lspci"], "lspci: Cannot open /proc/bus/pci\n")), Unknown)


def test_a_whole_tree() -> None:
    text = (
        "-+-[0000:85]-+-00.0-[86-8a]----00.0-[87-8a]--+-08.0-[88]----00.0  NVIDIA Corporation GV100GL\n"
        " |           |                               \\-10.0-[89]----00.0  Mellanox Technologies MT27800\n"
        " |           \\-05.0  Intel Corporation Sky Lake-E MM/Vt-d\n"
        " \\-[0000:00]-+-00.0  Intel Corporation Sky Lake-E DMI3 Registers\n"
        "             \\-1f.4  Intel Corporation SMBus\n"
    )
    named = {node.address: node.buses for node in lspci_tree.parse_tree(text) if node.name}
    assert named == {
        "0000:88:00.0": ("85", "86-8a", "87-8a", "88"),
        "0000:89:00.0": ("85", "86-8a", "87-8a", "89"),
        "0000:85:05.0": ("85",),
        "0000:00:00.0": ("00",),
        "0000:00:1f.4": ("00",),
    }


MAIL = (
    "  03:00.0 Network controller: Qualcomm Technologies, Inc (rev ff) (prog-if ff)\n"
    "      !!! Unknown header type 7f\n"
    "  04:00.0 3D controller: NVIDIA Corporation GH100 [H100 SXM5 80GB] (rev a1)\n"
    "      LnkSta: Speed 16GT/s (downgraded), Width x16\n"
    "      Kernel driver in use: nvidia\n"
)


@pytest.mark.parametrize("front", ["", "> ", "node-1: ", "[12:00:01] "])
def test_a_list_that_is_shifted_or_quoted(front: str) -> None:
    dead, gpu = lspci.parse_lspci("".join(front + line + "\n" for line in MAIL.splitlines()))
    assert (dead.function.address, dead.function.is_dead, dead.function.driver) == ("0000:03:00.0", True, None)
    assert (gpu.function.address, gpu.function.is_dead, gpu.function.driver) == ("0000:04:00.0", False, "nvidia")
    assert (gpu.function.link.speed_gts, gpu.speed_word) == (16.0, "downgraded")


def test_parts_in_quotes_and_with_labels() -> None:
    (quoted,) = lspci.parse_lspci(
        '01:00.0 "3D controller [0302]" "NVIDIA Corporation [10de]" "GH100 [H100] [2330]" -ra1 "" ""\n'
    )
    (labelled,) = lspci.parse_lspci(
        "Slot:\t0000:01:00.0\nClass:\t3D controller [0302]\nVendor:\tNVIDIA Corporation [10de]\nDevice:\tGH100 [H100] [2330]\n"
        "SVendor:\tNVIDIA Corporation [10de]\nSDevice:\tDevice [16c1]\nDriver:\tnvidia\nModule:\tnvidia\nNUMANode:\t1\n"
    )
    for one in (quoted, labelled):
        found = one.function
        assert (found.address, found.class_code, found.vendor_id, found.device_id) == (
            "0000:01:00.0",
            "0302",
            "10de",
            "2330",
        )
        assert (one.class_name, found.name) == ("3D controller", "NVIDIA Corporation GH100 [H100]")
    function = labelled.function
    assert (function.subsystem, function.driver, function.numa_node) == ("10de:16c1", "nvidia", 1)


def test_a_mask_with_the_label_of_the_status_is_no_error() -> None:
    (one,) = lspci.parse_lspci(
        "00:01.0 Class 0604: Device 8086:3408 (rev 10)\n\tCapabilities: [100] Advanced Error Reporting\n"
        "\t\tUESta:\tDLP- SDES-\n\t\tCESta:\tRxErr- NonFatalErr-\n\t\tCESta:\tRxErr- NonFatalErr+\n"
    )
    assert not isinstance(one.function.aer, Unknown) and one.function.aer is not None
    assert one.function.aer.correctable == ()


def test_what_a_single_v_tells() -> None:
    (one,) = lspci.parse_lspci(
        "c1:00.0 Infiniband controller: Mellanox Technologies MT2910 Family [ConnectX-7]\n"
        "\tFlags: bus master, fast devsel, latency 0, IRQ 16, NUMA node 1, IOMMU group 3\n"
        "\tCapabilities: [60] Express Endpoint, MSI 00\n"
    )
    assert (one.function.numa_node, one.iommu_group, one.function.port) == (1, 3, "endpoint")
    assert one.function.link.width == Unknown("lspci was run without -vv")


def test_a_tree_in_a_quoted_mail() -> None:
    tree = "-+-[0000:00]-+-00.0  Host\n |           \\-01.0-[0d]----00.0  NVIDIA\n \\-[0000:0c]---00.0  Bridge\n"
    nodes = lspci_tree.parse_tree("".join("> %s\n" % line for line in tree.splitlines()))
    assert [node.address for node in nodes] == ["0000:00:00.0", "0000:00:01.0", "0000:0d:00.0", "0000:0c:00.0"]


def test_what_grep_left_of_a_link_that_was_trained_down() -> None:
    text = "01:00.0 VGA compatible controller: NVIDIA Corporation GA102 [GeForce RTX 3090] (rev a1)\n"
    (one,) = lspci.parse_lspci(text + "\t\tLnkSta: Speed 2.5GT/s (downgraded), Width x8 (ok)\n")
    link = one.function.link
    assert (link.width, link.speed_gts) == (8, 2.5)
    assert isinstance(link.max_speed_gts, Unknown) and link.max_speed_gts.reason.startswith("not shown: more")
    assert isinstance(link.max_width, Unknown) and "more" not in link.max_width.reason


def test_what_a_terminal_cut_within_its_words() -> None:
    text = (
        "0000:17:00.0 3D controller [0302]: NVIDIA Corporation GH100 [H100 SXM5 80GB] [10de:2330] (rev a1) (prog-if 00 [x])\n"
        "        Capabilities: [100 v1] Advanced Error Reporting\n"
        "                CESta:  RxErr- BadTLP- BadDLLP- Rollover- Timeout- AdvNonFatalErr- CorrIntErr+ HeaderOF-\n"
    )
    for width in (80, 84, 90, 96):
        lines = text.splitlines()
        cut = "\n".join(line[at : at + width] for line in lines for at in range(0, len(line), width))
        (one,) = lspci.parse_lspci("\ufeff" + cut + "\n")
        assert (one.function.device_id, one.function.name) == ("2330", "NVIDIA Corporation GH100 [H100 SXM5 80GB]")
        assert not isinstance(one.function.aer, Unknown) and one.function.aer is not None
        assert one.function.aer.correctable == ("CorrIntErr",)


def test_what_follows_a_list_is_no_part_of_its_last_line() -> None:
    for head in (
        "17:00.0 3D controller: NVIDIA Corporation Device 2330",
        "17:00.0 3D controller: NVIDIA Corporation H100 (rev a1)",
    ):
        for front in ("", "x" * 60 + " "):
            (one,) = lspci.parse_lspci(
                head.replace("Corporation", "Corporation " + front) + "\nroot@gpu01:~# nvidia-smi\n```\nthanks\n"
            )
            assert "root" not in one.function.name and "rev" not in one.function.name


@pytest.mark.parametrize(
    ("end", "is_dead"),
    [
        ("(rev ff)", True),
        ("(rev ff) (prog-if ff)", True),
        ("(rev ff) (prog-if 00 [VGA controller])", False),
        ("(rev a1)", False),
    ],
)
def test_a_revision_of_all_ones(end: str, is_dead: bool) -> None:
    (one,) = lspci.parse_lspci("01:00.0 3D controller [0302]: NVIDIA Corporation GP108BM [10de:1d52] %s\n" % end)
    assert one.function.is_dead is is_dead
