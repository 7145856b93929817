# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVSwitches, Fabric Manager and the services beside it: real outputs with their reading, and hosts in each state."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Sequence

import pytest
import yaml
from fakes import FakeHost

from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import CaptureHost, Result
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import Unknown
from ansible_collections.gpufleet.host.plugins.module_utils._observe import fabric, fabric_manager
from ansible_collections.gpufleet.host.plugins.module_utils._observe.driver_module import parse_module_version

ROOT = Path(__file__).resolve().parents[5]
CORPUS = ROOT / "tests/corpus/fabric"


def rows() -> list[Any]:
    cases = yaml.safe_load((ROOT / "tests/unit/cases/corpus/fabric.yml").read_text(encoding="utf-8"))
    assert sorted(row["file"] for row in cases) == sorted(path.name for path in CORPUS.iterdir())
    return [pytest.param(row, id=row["file"]) for row in cases]


def kind(value: Any) -> Any:
    return value.reason.split(":")[0] if isinstance(value, Unknown) else value


def states(text: Any) -> tuple[fabric_manager.FabricState, ...]:
    found = fabric_manager.parse_fabric_states(text)
    assert isinstance(found, tuple), found
    return found


def read_states(text: str) -> list[dict[str, Any]]:
    return [
        {
            "gpu": one.gpu,
            "state": one.state,
            "status": one.status,
            "clique": one.clique,
            "health": {name: kind(value) for name, value in one.health.items()},
        }
        for one in states(text)
    ]


def read_log(text: str) -> dict[str, Any]:
    log = fabric_manager.parse_fm_log(text)
    assert log.mismatch is None and log.missing == () and log.bridges == ()
    switch_errors = [
        [one.address, one.code, one.is_fatal, one.physical_id, one.port, one.count] for one in log.switch_errors
    ]
    said = {"errors": list(log.errors), "switch_errors": switch_errors, "has_started": log.has_started}
    return {name: value for name, value in said.items() if value not in ([], None)}


@pytest.mark.parametrize("row", rows())
def test_fabric_of_the_corpus(row: dict[str, Any]) -> None:
    text = (CORPUS / row["file"]).read_text(encoding="utf-8")
    if "states" in row:
        assert read_states(text) == row["states"]
    if "log" in row:
        assert read_log(text) == row["log"]
    if "module_version" in row:
        assert parse_module_version(text) == row["module_version"]
    if "functions" in row:
        found = fabric.parse_lspci_functions(text)
        assert list(found.gpus) == row["functions"]["gpus"]
        assert list(found.switches) == row["functions"]["switches"]
        assert len(found.bridges) == row["functions"]["bridges"]


# The log


@pytest.mark.parametrize("words", ["don't match", "doesn't match"])
def test_another_version_than_the_driver(words: str) -> None:
    log = fabric_manager.parse_fm_log(
        "Nov 05 13:55:26 node1 systemd[1]: Starting NVIDIA fabric manager service...\n"
        "Nov 05 13:55:26 node1 nv-fabricmanager[104230]: fabric manager NVIDIA GPU driver interface version 550.127.05 "
        + words + " with driver version 550.120. Please update with matching NVIDIA driver package.\n"
        "Nov 05 13:55:26 node1 systemd[1]: nvidia-fabricmanager.service: Control process exited, code=exited, status=1/FAILURE\n"
    )  # fmt: skip
    assert log.mismatch == ("550.127.05", "550.120")
    assert log.has_started is False


def test_parts_that_boards_of_nvlink_5_need() -> None:
    log = fabric_manager.parse_fm_log(
        "x nvidia-fabricmanager-start.sh[1]: Detected NVL5+ system\n"
        'x nvidia-fabricmanager-start.sh[1]: Kernel module "ib_umad" has not been loaded, fabric manager cannot start\n'
        'x nvidia-fabricmanager-start.sh[1]: "/opt/nvidia/nvlsm/sbin/nvlsm" does not exist. Please install it\n'
        "x nvidia-fabricmanager-wrapper: found NVSwitch LPF: device=mlx5_10 guid=0xcc40f3030027f630\n"
        "x nvidia-fabricmanager-wrapper: infiniband: found NVSwitch LPF device: mlx5_8\n"
        "x nvidia-fabricmanager-wrapper: using NVSwitch management port GUID: 0xcc40f3030027f630\n"
        "nvlsm: OpenSM 2025.06.5_eb3b4ba_df9bb3c_ae214d2\n"
    )
    assert log.missing == ("ib_umad", "nvlsm")
    assert log.bridges == ("mlx5_10", "mlx5_8")
    assert (log.generation, log.management_guid, log.nvlsm) == ("NVLink 5", "0xcc40f3030027f630", "2025.06.5")
    assert log.has_started is None
    umad = fabric_manager.parse_fm_log("nvlsm: ibwarn: [15] umad_init: can't read: is ib_umad module loaded?\n")
    assert umad.missing == ("ib_umad",)
    assert fabric_manager.parse_fm_log("fabric manager: NV_WARN_NOTHING_TO_DO\n").missing == ("nvswitch",)


def test_a_start_that_went_well_after_one_that_did_not() -> None:
    log = fabric_manager.parse_fm_log(
        "a systemd[1]: nvidia-fabricmanager.service: Failed with result 'exit-code'.\n"
        "b nv-fabricmanager[5946]: Successfully configured all the available NVSwitches to route GPU NVLink traffic.\n"
        'b nvidia-fabricmanager-start.sh[5942]: Started "Nvidia Fabric Manager"\n'
        "c nv-fabricmanager[5183]: detected NVSwitch non-fatal error 22013 on NodeId 0 on NVSwitch pci bus id "
        "00000000:08:00.0 physical id 3 port 60\n"
    )
    assert log.has_started is True
    (error,) = log.switch_errors
    assert (error.address, error.code, error.port, error.is_fatal) == ("0000:08:00.0", 22013, 60, False)


def test_the_configuration_and_the_version() -> None:
    said = fabric_manager.parse_fm_config("# FABRIC_MODE=0\nLOG_LEVEL=4\nFABRIC_MODE=1\nFABRIC_MODE_RESTART=0 # x\n")
    assert said == {"LOG_LEVEL": "4", "FABRIC_MODE": "1", "FABRIC_MODE_RESTART": "0"}
    assert fabric_manager.parse_fm_version("Fabric Manager version is : 450.102.04\n") == "450.102.04"
    assert isinstance(fabric_manager.parse_fm_version("bash: nv-fabricmanager: command not found"), Unknown)
    assert isinstance(fabric_manager.parse_fm_version(None), Unknown)


# The state


def test_states_in_csv() -> None:
    found = states(
        "index, name, fabric.state, fabric.status, memory.total [MiB]\n0, NVIDIA GB300, In Progress, N/A, 1\n"
        "1, NVIDIA GB300, Completed, Success, 1\n2, NVIDIA GB300, [Unknown Error], [Unknown Error], 1\n"
    )
    assert [(one.gpu, kind(one.state), kind(one.status)) for one in found] == [
        ("0", "In Progress", "not applicable"), ("1", "Completed", "Success"), ("2", "error", "error"),
    ]  # fmt: skip
    assert all(one.health == {} for one in found)


def test_states_in_csv_without_a_header() -> None:
    found = states("Completed, Success\nIn Progress, N/A\n[Not Supported], [N/A]\n")
    assert [(one.state, kind(one.status)) for one in found] == [
        ("Completed", "Success"), ("In Progress", "not applicable"), ("Not Supported", "not applicable"),
    ]  # fmt: skip


def test_states_in_sections() -> None:
    found = states(
        "GPU 00000000:19:00.0\n    Product Name                 : NVIDIA B200\n    Fabric\n"
        "        State                    : Completed\n        Status                   : Success\n"
        "        CliqueId                 : 0\n        ClusterUUID              : 00000000-0000-0000-0000-000000000000\n"
        "        Health\n            Bandwidth            : N/A\n            Route Unhealthy      : False\n"
        "    Processes                    : None\nGPU 00000000:2A:00.0\n    Fabric\n        State : N/A\n        Status : N/A\n"
    )
    assert [(one.gpu, kind(one.state), kind(one.status)) for one in found] == [
        ("00000000:19:00.0", "Completed", "Success"), ("00000000:2A:00.0", "not applicable", "not applicable"),
    ]  # fmt: skip
    assert {name: kind(value) for name, value in found[0].health.items()} == {
        "bandwidth": "not applicable", "routeunhealthy": "False",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not there"),
        (None, "not there"),
        ('Field "fabric.state" is not a valid field to query.\n', "error"),
        ("No devices were found\n", "error"),
        ("hello, world\n", "not understood"),
    ],
)
def test_no_state_is_unknown(text: Any, reason: str) -> None:
    found = fabric_manager.parse_fabric_states(text)
    assert isinstance(found, Unknown) and found.reason.startswith(reason)


def test_functions_with_codes_and_short_addresses() -> None:
    found = fabric.parse_lspci_functions(
        "07:00.0 Bridge [0680]: NVIDIA Corporation GH100 [H100 NVSwitch] [10de:22a3] (rev a1)\n"
        "19:00.0 3D controller [0302]: NVIDIA Corporation GH100 [H100 SXM5 80GB] [10de:2330] (rev a1)\n"
        "\tSubsystem: NVIDIA Corporation Device [10de:16c1]\n1a:00.0 Audio device [0403]: NVIDIA Corporation [10de:1]\n"
        "00:00.0 Host bridge [0600]: Intel Corporation Device [8086:09a2]\n"
    )
    assert found == fabric.NvidiaFunctions(("19:00.0",), ("07:00.0",), ())


# Observing


SHOWN = """\
Id=nvidia-fabricmanager.service
Names=nvidia-fabricmanager.service
LoadState=loaded
ActiveState=%s
SubState=running
Result=success
UnitFileState=enabled
NRestarts=2
ExecMainStatus=0

Id=nvidia-persistenced.service
Names=nvidia-persistenced.service
LoadState=not-found
ActiveState=inactive
UnitFileState=
"""


class Machine(FakeHost):
    def __init__(self, root: Path, answers: dict[str, Result]) -> None:
        super().__init__(root)
        self.answers = answers
        self.asked: list[str] = []

    def run(self, argv: Sequence[str], deadline_s: float = 10.0) -> Result:
        assert deadline_s <= 10
        self.asked.append(argv[0])
        return self.answers.get(argv[0], Result(-1, "", "", "%s is not installed" % argv[0]))

    def function(self, address: str, vendor: str, device: str, code: str) -> None:
        for name, text in (("vendor", vendor), ("device", device), ("class", code)):
            self.put("/sys/bus/pci/devices/%s/%s" % (address, name), text + "\n")


def hgx(root: Path, state: str, journal: str = "") -> Machine:
    answers = {"systemctl": Result(0, SHOWN % state, ""), "journalctl": Result(0, journal, "")}
    host = Machine(root, answers)
    host.function("0000:07:00.0", "0x10de", "0x22a3", "0x068000")
    host.function("0000:05:00.0", "0x10de", "0x22a3", "0x068000")
    host.function("0000:19:00.0", "0x10de", "0x2330", "0x030200")
    host.function("0000:00:00.0", "0x10de", "0x22b2", "0x060400")
    host.function("0000:01:00.0", "0x8086", "0x0000", "0x068000")
    host.put("/usr/share/nvidia/nvswitch/fabricmanager.cfg", "FABRIC_MODE=0\n")
    (root / "sys/module").mkdir(parents=True)
    return host


def test_a_board_in_order(tmp_path: Path) -> None:
    host = hgx(tmp_path, "active")
    seen = fabric.observe(host, has_nvlink5=False)
    assert isinstance(seen.switches, tuple)
    assert [(one.address, one.device_id) for one in seen.switches] == [
        ("0000:05:00.0", "22a3"),
        ("0000:07:00.0", "22a3"),
    ]
    assert seen.has_nvswitch is True and seen.mode == 0 and seen.has_ib_umad is False and not seen.has_nvlsm
    assert not isinstance(seen.services, Unknown)
    manager = seen.services[fabric.FM]
    assert (manager.is_there, manager.state, manager.starts, manager.restarts) == (True, "active", "enabled", 2)
    assert not seen.services[fabric.PERSISTENCED].is_there
    assert host.asked == ["systemctl"]
    assert isinstance(seen.log, Unknown)


def test_the_journal_is_asked_why_it_does_not_run(tmp_path: Path) -> None:
    said = (
        "fabric manager NVIDIA GPU driver interface version 595.71.05 don't match with driver version 590.48.01. Please"
    )
    host = hgx(tmp_path, "failed", "2026-08-11T06:47:54+0000 h nv-fabricmanager[1]: " + said)
    seen = fabric.observe(host, has_nvlink5=False)
    assert host.asked == ["systemctl", "journalctl"]
    assert not isinstance(seen.log, Unknown) and seen.log.mismatch == ("595.71.05", "590.48.01")


def test_switches_behind_infiniband(tmp_path: Path) -> None:
    host = hgx(tmp_path, "active")
    for name, vpd in (("mlx5_0", "\x82\x07\x00NVIDIA ConnectX-7"), ("mlx5_8", "\x82ConnectX-7\udcffV3 SW_MNG\x00")):
        host.put("/sys/class/infiniband/%s/device/vpd" % name, vpd)
    host.put("/sys/module/ib_umad/refcnt", "0\n")
    host.put("/opt/nvidia/nvlsm/sbin/nvlsm", "")
    seen = fabric.observe(host, has_nvlink5=True)
    assert (seen.bridges, seen.has_ib_umad, seen.has_nvlsm) == (("mlx5_8",), True, True)
    assert fabric.observe(host, has_nvlink5=False).bridges == ()


def test_a_host_that_shows_nothing(tmp_path: Path) -> None:
    seen = fabric.observe(Machine(tmp_path, {}), has_nvlink5=True)
    for part in (seen.switches, seen.bridges, seen.services, seen.mode, seen.has_ib_umad, seen.log, seen.has_nvswitch):
        assert isinstance(part, Unknown)


def test_a_systemctl_that_hangs_leaves_the_rest(tmp_path: Path) -> None:
    host = hgx(tmp_path, "active")
    host.answers["systemctl"] = Result(-1, "", "", "systemctl hung: no answer in 10 s")
    seen = fabric.observe(host, has_nvlink5=False)
    assert isinstance(seen.services, Unknown) and "hung" in seen.services.reason
    assert seen.has_nvswitch is True


def test_a_capture_of_the_log_alone(tmp_path: Path) -> None:
    (tmp_path / "capture.json").write_text('{"format": 1, "hostname": "h", "taken": ""}', encoding="utf-8")
    (tmp_path / "files/var/log").mkdir(parents=True)
    text = (CORPUS / "fabricmanager.log").read_text(encoding="utf-8")
    (tmp_path / "files/var/log/fabricmanager.log").write_text(text, encoding="utf-8")
    seen = fabric.observe(CaptureHost(str(tmp_path)), has_nvlink5=False)
    assert not isinstance(seen.log, Unknown) and seen.log.switch_errors[0].code == 12028
    assert json.loads((tmp_path / "capture.json").read_text(encoding="utf-8"))["format"] == 1


def test_what_fabric_manager_writes_to_the_journal_is_an_error_by_its_words() -> None:
    log = fabric_manager.parse_fm_log(
        "Jun 23 13:12:02 node nv-fabricmanager[9837]: Connected to 1 node.\n"
        "Jun 23 13:12:02 node nv-fabricmanager[9837]: fabric manager version is incompatible with NVSwitch driver.\n"
        "   Active: failed (Result: exit-code) since Tue 2020-06-23 13:12:02 CST; 3s ago\n"
    )
    assert log.errors == ("fabric manager version is incompatible with NVSwitch driver.",)
    assert log.has_started is False
    running = fabric_manager.parse_fm_log("Feb 05 09:28:36 node systemd[1]: Started NVIDIA fabric manager service.\n")
    assert running.has_started is True


def test_a_gpu_without_a_state_beside_others_that_have_one() -> None:
    found = states("0, GPU-a, Completed, Success\n1, GPU-b, [N/A], [N/A]\n")
    assert [(one.gpu, kind(one.state)) for one in found] == [("0", "Completed"), ("1", "not applicable")]


def test_functions_with_codes_alone() -> None:
    found = fabric.parse_lspci_functions("c1:00.0 0302: 10de:2330 (rev a1)\nc2:00.0 0680: 10de:22a3 (rev a1)\n")
    assert (found.gpus, found.switches) == (("c1:00.0",), ("c2:00.0",))


def test_sections_that_lost_their_indentation() -> None:
    text = "GPU 00000000:19:00.0\nFabric\nState : Completed\nStatus : Insufficient Resources\nCliqueId : 0\nProcesses : None\n"
    for said in (text, text.replace(" : ", "\xa0 : ")):
        (one,) = states(said)
        assert (one.gpu, one.state, one.status, one.clique) == (
            "00000000:19:00.0", "Completed", "Insufficient Resources", "0",
        )  # fmt: skip


def test_functions_in_a_list_that_is_shifted_or_quoted() -> None:
    for front in ("", "    ", "> ", "node-1: "):
        found = fabric.parse_lspci_functions(
            front + "c2:00.0 Bridge: NVIDIA Corporation GH100 [H100 NVSwitch] (rev a1)\n"
        )
        assert found.switches == ("c2:00.0",)


def test_states_alone_below_their_command() -> None:
    text = "root@gpu01:~# nvidia-smi --query-gpu fabric.state --format csv,noheader\nCompleted\nIn Progress\n[N/A]\nroot@gpu01:~#\n"
    for said in (text, text.replace("noheader\n", "\nfabric.state\n")):
        assert [kind(one.state) for one in states(said)] == ["Completed", "In Progress", "not applicable"]


def test_a_configuration_that_is_refused() -> None:
    log = fabric_manager.parse_fm_log("10.0.0.2: fabric manager config file item: DATABASE_PATH has an invalid value\n")
    assert log.errors == ("fabric manager config file item: DATABASE_PATH has an invalid value",)
