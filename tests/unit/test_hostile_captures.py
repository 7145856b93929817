# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Captures that mean harm: megabytes, depth without end and bytes where words belong cost seconds, and end in a report."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fakes_platform
import pytest

from ansible_collections.gpufleet.host.plugins.module_utils._areas.all import AREAS
from ansible_collections.gpufleet.host.plugins.module_utils._engine import whole
from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import (
    CaptureHost,
    MemoHost,
    RecordingHost,
    Result,
    write_command,
)
from ansible_collections.gpufleet.host.plugins.module_utils._observe import inventory, topology

AREA = AREAS["platform"]
WANT = whole.valid_want(AREA, {"acs": "off", "max_read_request_bytes": 4096})
MEGABYTE = 1_000_000
# Of CPU, for all that is done with one capture; the machine may be a slow one.
MOST_SECONDS = 15
MOST_REPORT_BYTES = 2 * MEGABYTE


def judged(host: CaptureHost) -> str:
    """All that node_audit does with a capture, in time; gives the state."""
    started = time.process_time()
    memo = MemoHost(host)
    report = whole.audit([AREA], {"platform": WANT}, memo, {}, None)["platform"]
    facts = [inventory.observe(memo, WANT["gpu_match"]), topology.host_facts(memo, [])]
    assert time.process_time() - started < MOST_SECONDS
    assert [(finding.observed, finding.why) for finding in report.findings if finding.id.startswith("engine.")] == []
    assert len(json.dumps([report.to_json(), facts])) < MOST_REPORT_BYTES
    return report.state


def filled(text: str, megabytes: float) -> str:
    size = int(megabytes * MEGABYTE)
    return (text * (size // len(text) + 1))[:size]


HEAD = '<?xml version="1.0"?><nvidia_smi_log>'
GPU = '<gpu id="00000000:19:00.0"><uuid>GPU-1</uuid></gpu>'
XID = (
    "2026-11-29T22:10:01+00:00 h kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid='1', name=x, GPU has fallen off the bus.\n"
)
FUNCTION = "%04x:%02x:00.0 3D controller [0302]: NVIDIA [10de:2330]\n\n%04x:%02x:01.0 Ethernet controller [0200]: x [15b3:1021]\n\n"
BRIDGE = "%02x:%02x.0 PCI bridge: x\n\tBus: primary=%02x, secondary=%02x, subordinate=ff, sec-latency=0\n\n"
REDFISH = '{"@odata.type": "#Power.v1_0_0.Power", "PowerSupplies": '
JOURNAL = "journalctl -k -b -o short-iso --no-pager -n 50000"
WILD: dict[str, tuple[str, str]] = {
    "depth without end": ("nvidia-smi -q -x", HEAD + '<gpu id="x">' + filled("<a>", 10)),
    "depth that is closed": ("nvidia-smi -q -x", HEAD + "<gpu>" + filled("<a>", 3) + filled("</a>", 4) + "</gpu></nvidia_smi_log>"),
    "ends of nothing": ("nvidia-smi -q -x", HEAD + filled("</a>", 2)),
    "ends of others": ("nvidia-smi -q -x", HEAD + filled("<a><b></c>", 10)),
    "GPUs without end": ("nvidia-smi -q -x", HEAD + filled(GPU, 10) + "</nvidia_smi_log>"),
    "MIG devices without end": ("nvidia-smi -q -x", HEAD + "<gpu>" + filled("<mig_device><a>1</a></mig_device>", 1)),
    "angle brackets": ("nvidia-smi -q -x", HEAD + filled("<", 1)),
    "documents without end": ("nvidia-smi -q -x", filled("<nvidia_smi_log>", 10)),
    "entities": ("nvidia-smi -q -x", HEAD + "<gpu><product_name>" + filled("&amp;lt;", 10)),
    "clocks without end": ("nvidia-smi -q -x", HEAD + filled("<supported_clocks>", 2)),
    "a text of GPUs": ("nvidia-smi -q", filled("GPU 00000000:19:00.0\n    Product Name : x\n", 2)),
    "a text of steps": ("nvidia-smi -q", "\n".join(" " * step + "A" for step in range(3000))),
    "a table of GPUs": ("nvidia-smi", filled("| 0  NVIDIA H100 | 00000000:19:00.0 | x |\n", 2)),
    "a table of columns": ("nvidia-smi --query-gpu --format=csv", "index, ecc.mode.current, ecc.mode.pending\n" + filled("7, Enabled, Disabled\n", 10)),
    "columns": ("nvidia-smi --query-gpu --format=csv", filled("pci.bus_id, name, ", 10) + "\n" + filled("00000000:19:00.0, ", 4)),
    "a matrix of rows": ("nvidia-smi topo -m", "\tGPU0\tGPU1\n" + filled("GPU0\t X \tNV18\n", 2)),
    "a matrix of columns": ("nvidia-smi topo -m", "\t".join("GPU%d" % column for column in range(100_000))),
    "links": ("nvidia-smi nvlink -s", filled("GPU 0: NVIDIA H100 (UUID: GPU-x)\n\t Link 0: 26.562 GB/s\n", 2)),
    "memory modules": ("dmidecode", filled("Handle 0x0001, DMI type 17, 92 bytes\nMemory Device\n\tSize: 64 GB\n\tLocator: A\n\n", 2)),
    "sensors": ("ipmitool sdr elist", filled("PS1 Status | C8h | ok  | 10.1 | Presence detected\n", 2)),
    "columns of a sensor": ("ipmitool sdr elist", filled("a | ", 2)),
    "health logs": ("nvme smart-log", filled("Smart Log for NVME device:nvme0 namespace-id:ffffffff\ncritical_warning : 1\n", 10)),
    "depth of a health log": ("nvme smart-log", filled('{"critical_warning":', 10)),
    "depth of Redfish": ("redfish get /redfish/v1/Chassis/1/Power", REDFISH + filled('[{"Status":', 4)),
    "words of Redfish": ("redfish get /redfish/v1/Chassis/1/Power", REDFISH + '[{"Status": {"Health": "Critical"}, "Name": "' + filled("x", 3) + '"}]}'),
    "supplies of Redfish": (
        "redfish get /redfish/v1/Chassis/1/Power",
        REDFISH + "[" + filled('{"Name":"a","Status":{"Health":"Critical"}},', 3.9).rpartition("{")[0] + "{}]}",
    ),
    "a log": (JOURNAL, filled(XID, 3)),
    "a line of a log": (JOURNAL, filled("NVRM: Xid (PCI:0000:3b:00): 79 ", 10)),
    "one function over and over": ("lspci -vvv", filled("19:00.0 3D controller: NVIDIA Corporation H100\n\n", 10)),
    "functions": ("lspci -vvv", "".join(FUNCTION % ((place >> 8, place & 255) * 2) for place in range(20_000))),
    "bridges": ("lspci -vvv", "".join(BRIDGE % (bus & 255, bus >> 8 & 31, bus & 255, bus + 1 & 255) for bus in range(20_000))),
    "adapters": ("ibv_devinfo", filled("hca_id:\tmlx5_0\n\t\tport:\t1\n\t\t\tstate: PORT_ACTIVE (4)\n", 10)),
    "links of RDMA": ("rdma link -j", "[" + filled("[", 10)),
    "CPUs": ("numactl -H", "node 0 cpus: " + filled("1 2 3\n", 10)),
    "depth of JSON": ("lscpu -J", '{"lscpu":[' + filled('{"field":"a","data":"b","children":[', 10)),
    "width of JSON": ("lscpu -J", '{"lscpu":[' + filled('{"field":"a:","data":"b"},', 4).rpartition("{")[0] + "{}]}"),
    "packages": ("dpkg -l", filled("ii  nvidia-driver-590  590.48.01-1  amd64  x\n", 2)),
    "modules": ("dkms status", filled("nvidia/590.48.01, 6.8.0, x86_64: installed\n", 2)),
}  # fmt: skip


@pytest.mark.parametrize(("command", "text"), WILD.values(), ids=WILD.keys())
def test_output_that_runs_wild(command: str, text: str, tmp_path: Path) -> None:
    RecordingHost(str(tmp_path), "h", "t")
    write_command(str(tmp_path / "commands/0000.json"), command.split(" "), Result(0, text, ""))
    assert judged(CaptureHost(str(tmp_path))) != "compliant" or command.startswith("lspci")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("hostile")
    host = fakes_platform.make(top / "world")
    memo = MemoHost(RecordingHost(str(top / "capture"), "h", "t", host, ["platform"]))
    assert whole.audit([AREA], {"platform": WANT}, memo, {}, None)["platform"].state == "drifted"
    return top / "capture"


def files(folder: Path) -> Iterator[Path]:
    return (place for place in (folder / "files").rglob("*") if place.is_file() and not place.is_symlink())


JUNK: dict[str, bytes] = {
    "nothing": b"", "zeros": bytes(4096), "ones": b"\xff" * 4096, "one figure": b"9" * 4_000_000,
    "a long figure": b"9" * 100_000, "negative": b"-1\n", "too much": b"x" * 5_000_000, "lines": b"1\n" * 2_000_000,
    "lines in a page or two": b"1\n" * 20_000, "ranges": b"0-8191," * 500_000, "ranges in a page or two": b"0-8191," * 17_000,
    "depth": b'{"a":' * 800_000, "rows of BARs": b"0x00000000f0000000 0x00000000f0ffffff 0x0000000000140204\n" * 2000,
    "a list of capabilities in a ring": bytes(0x34) + b"\x40" + bytes(11) + b"\x10\x40" * 96 + b"\x03\0\x01\x10" * 960,
}  # fmt: skip


@pytest.mark.parametrize("junk", JUNK.values(), ids=JUNK.keys())
def test_files_that_hold_something_else(junk: bytes, recorded: Path, tmp_path: Path) -> None:
    """The same in all of them at once, and in all that are not needed to see the devices."""
    (tmp_path / "junk").write_bytes(junk)
    for name, kept in (("all", ()), ("most", ("vendor", "device", "class"))):
        folder = tmp_path / name
        shutil.copytree(recorded, folder, symlinks=True)
        for place in files(folder):
            if place.name not in kept:
                place.unlink()
                os.link(tmp_path / "junk", place)
        host = CaptureHost(str(folder))
        host.answers_for(["platform"])
        assert judged(host)


def test_files_that_are_cut(recorded: Path, tmp_path: Path) -> None:
    shutil.copytree(recorded, tmp_path / "c", symlinks=True)
    for place in files(tmp_path / "c"):
        place.write_bytes(place.read_bytes()[: place.stat().st_size // 2])
    host: Any = CaptureHost(str(tmp_path / "c"))
    host.answers_for(["platform"])
    assert judged(host) != "compliant"
