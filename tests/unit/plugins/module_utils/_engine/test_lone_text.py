# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import time
from pathlib import Path

import pytest

from ansible_collections.gpufleet.host.plugins.module_utils._engine import lone_text
from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import CaptureError, open_capture

CORPUS = Path(__file__).resolve().parents[5] / "tests/corpus"


@pytest.mark.parametrize(
    ("sample", "argv"),
    [
        ("nvidia-smi-xml/x-a100-sxm4-mig-v12.xml", "nvidia-smi -q -x"),
        ("nvidia-smi-q/q-8xh100-535.183-oneslow.txt", "nvidia-smi -q"),
        ("nvidia-smi-table/table-h100-590.txt", "nvidia-smi"),
        ("nvidia-smi-table/list-L-h100-590.txt", "nvidia-smi -L"),
        ("nvidia-smi-csv/csv-4xa100-80g-580.csv", "nvidia-smi --query-gpu --format=csv"),
        ("nvidia-smi-csv/csv-all-rtx2080s-win-591-idle.csv", "nvidia-smi --query-gpu --format=csv"),
        ("nvlink/nvlink-s-v100-two-inactive.txt", "nvidia-smi nvlink -s"),
        ("topo-m/topo-8x-sys-2socket.txt", "nvidia-smi topo -m"),
        ("dmidecode/dell-r640-12x8g-3200-at-2400-bios.txt", "dmidecode"),
        ("ipmi/sdr-elist-v2-short.txt", "ipmitool sdr elist"),
        ("ipmi/sdr-ibm-x.txt", "ipmitool sdr"),
        ("redfish/hpe-ilo-power.json", "redfish get /redfish/v1/Chassis/1/Power"),
        ("redfish/lambda-system.json", "redfish get /redfish/v1/Systems/1/"),
        ("nvme/nvme-list-v2.3.json", "nvme list -o json"),
        ("nvme/nvme-list-v2.11.json", "nvme list -o json"),
        ("nvme/nvme-smart-float.json", "nvme smart-log"),
        ("nvme/nvme-smart-v2.11.json", "nvme smart-log"),
        ("lspci/lspci-vvv-xe9680-one-gpu-path.txt", "lspci -vvv"),
        ("ibv_devinfo/ibv-ib-2ports-cx3.txt", "ibv_devinfo -v"),
        ("ibstat/ibstat-some-down-0.txt", "ibstat"),
        ("ibdev2netdev/ib2net-2up-2down.txt", "ibdev2netdev -v"),
        ("rdma-link/rdma-link-text-ib-2ports.txt", "rdma link"),
        ("rdma-link/rdma-link-2.json", "rdma -j link"),
        ("show_gids/gids-pod.txt", "show_gids"),
        ("driver-version/dmesg-fallen-off-bus-570-open.log", "journalctl -k -b --no-pager"),
    ],
)
def test_the_saved_output_of_one_command_is_a_capture(sample: str, argv: str, tmp_path: Path) -> None:
    host = open_capture(str(CORPUS / sample), str(tmp_path))
    assert host.run(argv.split()).stdout == (CORPUS / sample).read_bytes().decode("utf-8", "replace")
    assert host.about["hostname"] == Path(sample).name.split(".")[0]


@pytest.mark.parametrize("data", [b"", b"hello\n", b"\0" * 100, b"<nvidia_smi_log>" + b"x" * lone_text.LIMIT_BYTES])
def test_what_is_no_output_is_refused_with_what_is(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(data)
    with pytest.raises(CaptureError, match="is no archive, and not the output of one of: nvidia-smi -q -x, "):
        open_capture(str(tmp_path / "file"), str(tmp_path / "scratch"))


@pytest.mark.parametrize(
    ("text", "argv"),
    [
        ("\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV4\t0-31\nGPU1\tNV4\t X \t0-31\n", "nvidia-smi topo -m"),
        ("n1: \tGPU0\tCPU Affinity\nn1: GPU0\t X \t0-31\n", "nvidia-smi topo -m"),
        (
            "GPU 0: A (UUID: GPU-0)\nNVML: Unable to retrieve NVLink information as all links are inActive\n",
            "nvidia-smi nvlink -s",
        ),
        ("GPU 0: NVIDIA L4 (UUID: GPU-0)\nDevice does not have or support Nvlink\n", "nvidia-smi nvlink -s"),
        ("    |   0  Tesla T4            Off  | 00000000:00:1E.0 Off |                    0 |\n", "nvidia-smi"),
        ("> GPU 0: Tesla T4 (UUID: GPU-0)\n", "nvidia-smi -L"),
        ("GPU 00000000:00:1E.0\n    Fan Speed : N/A\n", "nvidia-smi -q"),
        ('<gpu id="00000000:00:1E.0"><serial>1</serial></gpu>\n', "nvidia-smi -q -x"),
        ("nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): 20009, Non-fatal, Link 28 x\n", "journalctl -k -b --no-pager"),
        ("$ nvidia-smi\nFailed to initialize NVML: Driver/library version mismatch\n", "nvidia-smi"),
        ("> 01:00.0 VGA compatible controller: NVIDIA\n>  LnkSta: Speed 8GT/s, Width x16\n", "lspci -vvv"),
        (
            "Jan 05 14:45:26 node nv-fabricmanager[1120]: Connected to 1 node.\n",
            "journalctl -u nvidia-fabricmanager.service -b -o short-iso --no-pager -n 400",
        ),
        (
            "[Jul 23 2024 07:53:55] [INFO] [tid 841] multicast group 0 is freed.\n",
            "journalctl -u nvidia-fabricmanager.service -b -o short-iso --no-pager -n 400",
        ),
        ("$ mokutil --sb-state\nSecureBoot enabled\n", "mokutil --sb-state"),
        ("17:00.0 3D controller [0302]: NVIDIA Corporation GH100 [10de:2330] (rev a1)\n", "lspci -nn"),
        ("0000:c2:00.0 0680: 10de:22a3 (rev a1)\n", "lspci -nn"),
        (
            "$ nvidia-smi --query-gpu=name,pci.bus_id --format=csv\r\nname, pci.bus_id\r\nTesla T4, 00000000:00:1E.0\r\n",
            "nvidia-smi --query-gpu --format=csv",
        ),
        ("PS1 Status       | C8h | cr  | 10.1 | Presence detected, Failure detected\r\n", "ipmitool sdr elist"),
        ("PSU1 Status      | 0x01              | ok\nFAN1             | 0 RPM             | lnr\n", "ipmitool sdr"),
        (
            "FAN1             | 8400.000   | RPM        | ok    | 420.0     | 560.0     | 700.0     | na        | na        | na\n",
            "ipmitool sensor",
        ),
        ("$ nvme list\nNode                  SN                   Model                Namespace Usage\n", "nvme list"),
        ("Node             Generic     SN                   Model        \n", "nvme list"),
        (
            '$ curl -k https://bmc/redfish/v1/Chassis/1/Thermal\n{"@odata.type": "#Thermal.v1_6_0.Thermal", '
            '"@odata.id": "/redfish/v1/Chassis/1/Thermal"}\n',
            "redfish get /redfish/v1/Chassis/1/Thermal",
        ),
        ("Smart Log for NVME device:nvme0n1 namespace-id:ffffffff\n", "nvme smart-log"),
        ("critical_warning			: 0\ntemperature				: 38 C\n", "nvme smart-log"),
        (
            "index;name;memory.total [MiB]\n0;Tesla T4;15360\n",
            "nvidia-smi --query-gpu --format=csv",
        ),
    ],
)
def test_what_people_cut_out_of_a_terminal(text: str, argv: str) -> None:
    assert lone_text.command_of(text) == tuple(argv.split())


@pytest.mark.parametrize(
    "text",
    [
        # Processes are no GPUs, and other tables have a name as well.
        "gpu_uuid, pid, used_gpu_memory [MiB]\nGPU-0, 1, 2 MiB\n",
        "name, index, memory.used\nnode1, 1, 2\n",
        # What smartctl says has other names, and other tools list devices and nodes.
        '{"nvme_smart_health_information_log": {"critical_warning": 0, "available_spare": 100, "percentage_used": 1}}\n',
        '{"Devices": [{"Name": "sda"}]}\n',
        "Node  Status  Model\nn1  ready  x\n",
        # Resources that are not read, and what names a resource without being one.
        '{"@odata.type": "#Bios.v1_0_0.Bios", "@odata.id": "/redfish/v1/Systems/1/Bios"}\n',
        '{"@odata.type": "#Power.v1_0_0.Power", "@odata.id": "/etc/passwd"}\n',
        '{"a": {"@odata.type": "#Power.v1_0_0.Power", "@odata.id": "/redfish/v1/Chassis/1/Power"}}\n',
        '{"@odata.type": "#Power.v1_0_0.Power", "@odata.id": "/redfish/v1/Chassis/1/Power", "b":' + '{"a":' * 100_000,
        '{"@odata.type": ["#Power"], "@odata.id": 1}\n',
        # Records of events are not read, and tables of anything have bars.
        " 1 | 12/24/2022 | 13:58:36 | Voltage #0x4d | Upper Non-critical going high | Asserted\n",
        "| step | 1 | ok |\n| build | 20 s | ok |\n",
        "The columns are pci.bus_id, name and driver_version.\n",
    ],
)
def test_what_only_looks_like_one(text: str) -> None:
    assert lone_text.command_of(text) is None


@pytest.mark.parametrize(
    "piece",
    ["a, ", "pci.bus_id, ", "ecc.mode.current\t", "name | 20 degrees C ", "a|", "| ", "critical_warning", '{"a":', '{"@odata.id":1}',
     "Node  ", "\n", "\n ", "\0", "9"],
)  # fmt: skip
def test_megabytes_of_junk_are_looked_at_quickly(piece: str) -> None:
    started = time.process_time()
    assert lone_text.command_of(piece * (10_000_000 // len(piece))) is None
    assert lone_text.command_of('{"@odata.id": ' + piece * (1_000_000 // len(piece))) is None
    assert time.process_time() - started < 5
