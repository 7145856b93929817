# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Sequence

import pytest
import yaml

from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import LiveHost, Result
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import Unknown
from ansible_collections.gpufleet.host.plugins.module_utils._observe import nvme, nvme_identify, nvme_list, pci

ROOT = Path(__file__).resolve().parents[5]
CORPUS = ROOT / "tests/corpus/nvme"
ROWS = yaml.safe_load((ROOT / "tests/unit/cases/corpus/nvme.yml").read_text(encoding="utf-8"))


def plain(value: Any) -> Any:
    return None if isinstance(value, Unknown) else value


def test_every_sample_has_its_row() -> None:
    assert {row["file"] for row in ROWS} == {path.name for path in CORPUS.iterdir()}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["file"])
def test_samples_of_the_corpus(row: dict[str, Any]) -> None:
    text = (CORPUS / row["file"]).read_text(encoding="utf-8")
    listed, smart = nvme_list.parse_nvme_list(text), nvme.parse_smart_log(text)
    if "namespaces" in row:
        assert isinstance(listed, tuple)
        names = ("name", "controller", "address", "serial", "sector_bytes", "size_bytes")
        assert [{name: plain(getattr(one, name)) for name in names} for one in listed] == row["namespaces"]
    else:
        assert isinstance(listed, Unknown)
    if "smart" in row:
        assert {name: plain(getattr(smart, name)) for name in row["smart"]} == row["smart"]
    else:
        assert isinstance(smart, Unknown)


NEW_TABLE = (Path(__file__).parents[3] / "cases/nvme/list-wide.txt").read_text(encoding="utf-8")
OLD_TABLE = """Node             SN                   Model                                    Namespace Usage                      Format           FW Rev
---------------- -------------------- ---------------------------------------- --------- -------------------------- ---------------- --------
/dev/nvme0n1     BTLJ92030G1X2P0BGN   INTEL SSDPE2KX020T8                      1           2.00  TB /   2.00  TB    512   B +  0 B   VDV10131
"""
VERBOSE = """Subsystem        Subsystem-NQN                                        Controllers
---------------- ---------------------------------------------------- ----------------
nvme-subsys0     nqn.1994-11.com.samsung:nvme:PM1733:2.5-inch:S4YN    nvme0

Device   SN                   MN                               FR       TxPort Asdress        Slot   Subsystem    Namespaces
-------- -------------------- -------------------------------- -------- ------ -------------- ------ ------------ ----------
nvme0    S4YNNE0N801290       SAMSUNG MZWLJ3T8HBLS-00007       EPK9CB5Q pcie   0000:41:00.0          nvme-subsys0 nvme0n1

Device       Generic      NSID       Usage                      Format           Controllers
------------ ------------ ---------- -------------------------- ---------------- ----------------
/dev/nvme0n1 /dev/ng0n1   0x1          3.84  TB /   3.84  TB    512   B +  0 B   nvme0
"""


def test_tables_of_old_and_new_versions() -> None:
    new, old = nvme_list.parse_nvme_list(NEW_TABLE), nvme_list.parse_nvme_list(OLD_TABLE.replace("\n", "\r\n"))
    assert isinstance(new, tuple) and isinstance(old, tuple)
    assert [(one.name, one.controller, one.model, one.serial, one.firmware) for one in (*new, *old)] == [
        ("nvme0n1", "nvme0", "KIOXIA-EXCERIA with Heatsink SSD", "Z4HF716NF88S", "AJRA4101"),
        ("nvme11n1", "nvme11", "PM991a NVMe Samsung 128GB", "S65YNE0T207365", "26304039"),
        ("nvme0n1", "nvme0", "INTEL SSDPE2KX020T8", "BTLJ92030G1X2P0BGN", "VDV10131"),
    ]
    assert [(one.used_bytes, one.size_bytes, one.sector_bytes, one.number) for one in new] == [
        (1_020_000_000_000, 3_840_000_000_000, 4096, 1),
        (2_280_000_000, 128_040_000_000, 512, 1),
    ]


def test_the_verbose_table_gives_the_address() -> None:
    found = nvme_list.parse_nvme_list(VERBOSE)
    assert isinstance(found, tuple)
    [one] = found
    assert (one.name, one.controller, one.size_bytes) == ("nvme0n1", "nvme0", 3_840_000_000_000)
    assert (one.address, one.transport, one.serial) == ("0000:41:00.0", "pcie", "S4YNNE0N801290")


MISPLACED = """Device           Cntlid SN                   MN                                       FR       TxPort Address        Slot   \
Subsystem    Namespaces
---------------- ------ -------------------- ---------------------------------------- -------- ------ -------------- ------ ------------ ----------------
nvme0    0      VMware NVME_0002     VMware Virtual NVMe Disk                 1.3      pcie   0000:04:00.0   161    nvme-subsys0 nvme0n1

Device            Generic              NSID       Usage                                             Format           Controllers
----------------- -------------------- ---------- ------------------------------------------------- ---------------- ----------------
/dev/nvme0n1      /dev/ng0n1           0x1          1.91 TB /   1.91 TB (   1.74 TiB /    1.74 TiB) 512   B +  0 B   nvme0
"""


def test_controllers_that_do_not_stand_below_their_header() -> None:
    found = nvme_list.parse_nvme_list(MISPLACED)
    assert isinstance(found, tuple)
    [one] = found
    assert (one.serial, one.model, one.firmware) == ("VMware NVME_0002", "VMware Virtual NVMe Disk", "1.3")
    assert (one.transport, one.address, one.size_bytes) == ("pcie", "0000:04:00.0", 1_910_000_000_000)


FABRIC = """Device   SN                   MN                                       FR       TxPort Address        Subsystem    Namespaces
-------- -------------------- ---------------------------------------- -------- ------ -------------- ------------ ----------------
nvme1    85JZX23              dellemc-powerstore                       2.1.0.0  tcp    traddr=10.162.198.45,trsvcid=4420 nvme-subsys0 nvme0n9

Device       Generic      NSID       Usage                      Format           Controllers
------------ ------------ ---------- -------------------------- ---------------- ----------------
/dev/nvme0n9 /dev/ng0n9   0x9          3.84  TB /   3.84  TB    512   B +  0 B   nvme1
"""


def test_the_address_of_a_fabric_is_wider_than_its_column() -> None:
    found = nvme_list.parse_nvme_list(FABRIC)
    assert isinstance(found, tuple)
    [one] = found
    assert (one.serial, one.model, one.firmware) == ("85JZX23", "dellemc-powerstore", "2.1.0.0")
    assert (one.controller, one.transport, one.address) == ("nvme1", "tcp", "traddr=10.162.198.45,trsvcid=4420")


def test_the_short_table_and_the_long_one_in_one_text() -> None:
    short = OLD_TABLE.replace("BTLJ92030G1X2P0BGN", "S4YNNE0N801290    ")
    found = nvme_list.parse_nvme_list("$ nvme list\n%s\n$ nvme list -v\n%s" % (short, VERBOSE))
    assert isinstance(found, tuple)
    [one] = found
    assert (one.name, one.serial, one.address) == ("nvme0n1", "S4YNNE0N801290", "0000:41:00.0")
    other = nvme_list.parse_nvme_list(OLD_TABLE + VERBOSE)
    assert isinstance(other, tuple) and len(other) == 2, "those of two machines stay apart"


ROW = "/dev/nvme0n1     S3ESNX0J917822J      Samsung SSD 960 EVO 250GB                1        250.06  GB / 250.06  GB    512   B +  0 B   2B7QCXE7"
RULE = "---------------- -------------------- ---------------------------------------- --------- -------------------------- ---------------"


@pytest.mark.parametrize(
    "text",
    [
        ROW,
        " ".join(ROW.split()),
        "$ nvme list\nNode SN Model Namespace Usage Format FW Rev\n%s\n%s\n" % (RULE, " ".join(ROW.split())),
        "%-27s %-20s %-40s %-28s %-26s %-27s FW Rev\n%s\n%s\n" % ("Node", "SN", "Model", "Namespace", "Usage", "Format", RULE, ROW),
        "#" + "\n#".join((OLD_TABLE.splitlines()[0], OLD_TABLE.splitlines()[1], ROW)),
    ],
    ids=["a row alone", "blanks joined", "a table with blanks joined", "a header that was torn", "a comment"],
)  # fmt: skip
def test_a_table_that_was_bent_on_the_way(text: str) -> None:
    found = nvme_list.parse_nvme_list(text)
    assert isinstance(found, tuple)
    [one] = found
    assert (one.name, one.number, one.model, one.serial) == (
        "nvme0n1", 1, "Samsung SSD 960 EVO 250GB", "S3ESNX0J917822J",
    )  # fmt: skip
    assert (one.firmware, one.size_bytes, one.sector_bytes) == ("2B7QCXE7", 250_060_000_000, 512)


def test_json_behind_a_prompt() -> None:
    text = (CORPUS / "nvme-list-v2.3.json").read_text(encoding="utf-8")
    found = nvme_list.parse_nvme_list("root@n1:~# nvme list -o json\n%s\nroot@n1:~# " % text)
    assert found == nvme_list.parse_nvme_list(text)
    smart = (CORPUS / "nvme-smart-v2.11.json").read_text(encoding="utf-8")
    assert nvme.parse_smart_log("root@n1:~# nvme smart-log -o json /dev/nvme0\r\n" + smart) == nvme.parse_smart_log(
        smart
    )


def test_native_multipath_lists_namespaces_of_the_subsystem() -> None:
    controllers = [
        {
            "Controller": name,
            "SerialNumber": "S1",
            "ModelNumber": "M",
            "Address": address,
            "Namespaces": [],
            "Paths": [],
        }
        for name, address in (("nvme0", "0000:01:00.0"), ("nvme1", "0000:02:00.0"))
    ]
    controllers[0]["Namespaces"] = [{"NameSpace": "nvme0c0n1", "NSID": 1, "PhysicalSize": 0, "SectorSize": 1}]
    subsystem = {"Controllers": controllers, "Namespaces": [{"NameSpace": "nvme0n1", "NSID": 1, "SectorSize": 4096}]}
    found = nvme_list.parse_nvme_list(json.dumps({"Devices": [{"HostNQN": "x", "Subsystems": [subsystem]}]}))
    assert isinstance(found, tuple)
    [one] = found
    assert (one.name, one.controller, one.address, one.sector_bytes) == ("nvme0n1", "nvme0", "0000:01:00.0", 4096)


@pytest.mark.parametrize("text", [None, Unknown("nvme is not installed"), "Failed to scan topology\n", "{}", "{"])
def test_no_list_is_unknown(text: Any) -> None:
    assert isinstance(nvme_list.parse_nvme_list(text), Unknown)


def test_an_empty_list_is_an_answer() -> None:
    assert nvme_list.parse_nvme_list("\n") == ()
    assert nvme_list.parse_nvme_list("\n".join(OLD_TABLE.splitlines()[:2])) == ()


SMART_TEXT = """Smart Log for NVME device:nvme0 namespace-id:ffffffff
critical_warning                        : %s
temperature                             : %s
available_spare                         : 100%%
available_spare_threshold               : 10%%
percentage_used                         : 27%%
Data Units Read                         : 7,871 (4.03 GB)
power_on_hours                          : 14,453
media_errors                            : 0
num_err_log_entries                     : 3
Warning Temperature Time                : 5
Critical Composite Temperature Time     : 1
Temperature Sensor 1           : 32\u00b0C (305 Kelvin)
"""


@pytest.mark.parametrize(
    ("warning", "temperature", "bits", "celsius"),
    [
        ("0", "38 C", 0, 37.85),
        ("0", "33\u00b0C (306 Kelvin)", 0, 32.85),
        ("0x9", "38 \u00b0C (311 K)", 9, 37.85),
        ("0", "33 \u00b0C (306 K, 91 \u00b0F)", 0, 32.85),
        ("0", "-273 \u00b0C (0 K, -459 \u00b0F)", 0, None),
    ],
)
def test_health_as_text(warning: str, temperature: str, bits: int, celsius: float | None) -> None:
    smart = nvme.parse_smart_log(SMART_TEXT % (warning, temperature))
    assert isinstance(smart, nvme.Smart)
    assert (smart.critical_warning, plain(smart.temperature_c)) == (bits, celsius)
    assert (smart.spare_percent, smart.spare_threshold_percent, smart.used_percent) == (100, 10, 27)
    assert (smart.power_on_hours, smart.warning_temp_minutes, smart.critical_temp_minutes) == (14453, 5, 1)


@pytest.mark.parametrize("word", ["14,453", "14.453", "14'453", "14\u2019453", "14\u202f453", "14 453", "14453"])
def test_what_parts_thousands_depends_on_the_locale(word: str) -> None:
    smart = nvme.parse_smart_log("> " + "\n> ".join((SMART_TEXT % ("0", "38 C")).replace("14,453", word).splitlines()))
    assert isinstance(smart, nvme.Smart)
    assert (smart.power_on_hours, smart.media_errors) == (14453, 0)


def test_logs_of_several_drives_in_one_text() -> None:
    first, second = SMART_TEXT % ("0", "38 C"), (SMART_TEXT % ("0x4", "41 C")).replace("nvme0", "nvme1n1")
    for text in (
        first + second,
        "$ nvme smart-log /dev/nvme0\n" + first + "$ nvme smart-log /dev/nvme1n1\r\n" + second,
    ):
        logs = nvme.parse_smart_logs(text)
        assert {name: plain(getattr(one, "critical_warning", None)) for name, one in logs.items()} == {
            "nvme0": 0,
            "nvme1": 4,
        }
    json_text = '# nvme smart-log -o json /dev/nvme7n1\n{"critical_warning": 1, "temperature": 310}\n'
    assert list(nvme.parse_smart_logs(json_text)) == ["nvme7"]
    nameless = nvme.parse_smart_logs('{"critical_warning": 1, "temperature": 310}')
    assert list(nameless) == ["nvme"] and isinstance(nameless["nvme"], nvme.Smart)
    assert isinstance(nvme.parse_smart_logs("bash: nvme: command not found")["nvme"], Unknown)


def test_health_with_numbers_as_texts() -> None:
    smart = nvme.parse_smart_log(
        '{"critical_warning": "0", "temperature": "311", "percent_used": "2", "avail_spare": 1e999}'
    )
    assert isinstance(smart, nvme.Smart)
    assert (smart.critical_warning, smart.temperature_k, smart.used_percent) == (0, 311.0, 2)
    assert isinstance(smart.spare_percent, Unknown)


IDENTITY = """NVME Identify Controller:
vid       : 0x144d
ssvid     : 0x108e
sn        : S5RTNC0T104269
mn        : SAMSUNG MZWLJ7T6HALA-00AU3
fr        : EPK9CR5Q
rab       : 8
cmic      : 0
  [3:3] : 0    ANA not supported
cntlid    : 0x41
ver       : 0x10300
oaes      : 0x300
wctemp    : %s
cctemp    : 353
tnvmcap   : %s
unvmcap   : 0
nn        : 32
"""


@pytest.mark.parametrize(
    ("warning", "capacity"), [("343", "7681501126656"), ("70 \u00b0C (343 K)", "7,681,501,126,656"), ("343", "7.681.501.126.656")]
)  # fmt: skip
def test_the_identity_of_a_controller(warning: str, capacity: str) -> None:
    found = nvme_identify.parse_id_ctrl("# nvme id-ctrl /dev/nvme2\n" + IDENTITY % (warning, capacity))
    assert isinstance(found, nvme_identify.Identity)
    assert (found.model, found.serial, found.firmware) == ("SAMSUNG MZWLJ7T6HALA-00AU3", "S5RTNC0T104269", "EPK9CR5Q")
    assert (found.vendor_id, found.controller_id, found.version, found.namespaces) == ("144d", 65, "1.3", 32)
    assert (found.capacity_bytes, found.unallocated_bytes) == (7_681_501_126_656, 0)
    assert (found.warning_temp_k, found.critical_temp_k) == (343.0, 353.0)


def test_the_identity_as_json() -> None:
    data = {
        "vid": 32902,
        "sn": "PHLJ914500JE4P0DGN  ",
        "mn": "INTEL SSDPE2KX040T8   ",
        "fr": "VDV1DP21",
        "wctemp": 0,
        "ver": 66048,
    }
    found = nvme_identify.parse_id_ctrl("$ nvme id-ctrl -o json /dev/nvme0\n" + json.dumps(data, indent=2))
    assert isinstance(found, nvme_identify.Identity)
    assert (found.vendor_id, found.serial, found.version) == ("8086", "PHLJ914500JE4P0DGN", "1.2")
    assert isinstance(found.warning_temp_k, Unknown) and isinstance(found.namespaces, Unknown)
    for text in ("NVMe status: INVALID_FIELD\n", "{", "", None):
        assert isinstance(nvme_identify.parse_id_ctrl(text), Unknown)


def put(root: Path, folder: str, **attributes: str) -> None:
    for name, text in attributes.items():
        place = root / folder.lstrip("/") / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text + "\n", encoding="utf-8")


def test_controllers_from_sysfs(tmp_path: Path) -> None:
    put(tmp_path, "/sys/class/nvme/nvme10", model="SAMSUNG MZQL2", serial="S1", state="live", transport="pcie",
        address="0000:41:00.0", firmware_rev="GDC5902Q", numa_node="1")  # fmt: skip
    put(tmp_path, "/sys/class/nvme/nvme10/hwmon3", temp1_input="38850", temp1_crit="84850")
    put(tmp_path, "/sys/class/nvme/nvme2", model="OLD", state="dead", numa_node="-1")
    put(tmp_path, "/sys/class/nvme/nvme2/device/hwmon/hwmon1", temp1_input="-273150")
    (tmp_path / "sys/class/nvme/nvme-fabrics").mkdir()
    found = nvme.observe(LiveHost(str(tmp_path)))
    assert isinstance(found, tuple)
    old, new = found
    assert (new.name, new.model, new.firmware, new.address, new.numa_node) == (
        "nvme10", "SAMSUNG MZQL2", "GDC5902Q", "0000:41:00.0", 1,
    )  # fmt: skip
    assert (new.temperature_c, new.temperature_limit_c) == (38.85, 84.85)
    assert (old.name, old.state) == ("nvme2", "dead")
    for value in (old.serial, old.address, old.numa_node, old.temperature_c):
        assert isinstance(value, Unknown)


def test_the_address_of_an_old_kernel_is_that_of_the_device(tmp_path: Path) -> None:
    put(tmp_path, "/sys/class/nvme/nvme0", model="X")
    os.symlink("../../../0000:41:00.0", tmp_path / "sys/class/nvme/nvme0/device")
    found = nvme.observe(LiveHost(str(tmp_path)))
    assert isinstance(found, tuple)
    assert found[0].address == "0000:41:00.0"


class Recorded(LiveHost):
    """What commands gave; everything else was not recorded."""

    def __init__(self, answers: dict[str, Result], is_live: bool = False) -> None:
        super().__init__("/nonexistent")
        self.answers, self.is_live = answers, is_live
        self.asked: list[str] = []

    def run(self, argv: Sequence[str], deadline_s: float = 10.0) -> Result:
        self.asked.append(" ".join(argv))
        return self.answers.get(" ".join(argv), Result(-1, "", "", "%s was not recorded" % argv[0]))


def test_a_capture_with_the_list_alone() -> None:
    text = (CORPUS / "nvme-list-v2.11.json").read_text(encoding="utf-8")
    found = nvme.observe(Recorded({"nvme list -o json": Result(0, text, "")}))
    assert isinstance(found, tuple)
    assert (found[0].name, found[0].address) == ("nvme0", "0000:01:00.0")
    assert isinstance(nvme.observe(Recorded({})), Unknown)
    assert nvme.observe(Recorded({}, is_live=True)) == ()


def test_health_of_each_controller() -> None:
    text = (CORPUS / "nvme-smart-v2.11.json").read_text(encoding="utf-8")
    answers = {
        "nvme smart-log -o json /dev/nvme0": Result(0, text, ""),
        "nvme smart-log -o json /dev/nvme1": Result(-1, "", "", "nvme hung: no answer in 5 s"),
    }
    found = nvme.observe_smart(Recorded(answers), ["nvme0", "nvme1"])
    assert isinstance(found["nvme0"], nvme.Smart)
    assert found["nvme1"] == Unknown("nvme hung: no answer in 5 s")


def test_a_missing_tool_is_asked_once() -> None:
    missing = Result(-1, "", "", "nvme is not installed")
    host = Recorded({"nvme smart-log -o json /dev/nvme0": missing})
    found = nvme.observe_smart(host, ["nvme0", "nvme1"])
    assert found == {name: Unknown("nvme is not installed") for name in ("nvme0", "nvme1")}
    assert len(host.asked) == 1


def test_a_tool_that_hangs_is_asked_no_more() -> None:
    """A machine with many drives that hang would otherwise wait for each of them."""
    host = Recorded(
        {"nvme smart-log -o json /dev/nvme0": Result(-1, "", "", "nvme hung: no answer in 5 s")}, is_live=True
    )
    found = nvme.observe_smart(host, ["nvme0", "nvme1", "nvme2"])
    assert found["nvme0"] == Unknown("nvme hung: no answer in 5 s")
    assert found["nvme1"] == found["nvme2"] == Unknown("not asked: nvme hung on nvme0")
    assert len(host.asked) == 1


def test_raid_controllers(tmp_path: Path) -> None:
    base = "/sys/bus/pci/devices/0000:%s:00.0"
    put(tmp_path, base % "03", vendor="0x1000", device="0x10e2", **{"class": "0x010400"})
    put(tmp_path, base % "04", vendor="0x1000", device="0x00e6", **{"class": "0x010700"})
    put(tmp_path, base % "05", vendor="0x144d", device="0xa80a", **{"class": "0x010802"})
    os.symlink("../../../bus/pci/drivers/megaraid_sas", tmp_path / "sys/bus/pci/devices/0000:03:00.0/driver")
    found = nvme.raid_controllers(pci.observe(LiveHost(str(tmp_path))))
    assert [(one.address, one.name, one.driver) for one in found] == [
        ("0000:03:00.0", "Broadcom MegaRAID", "megaraid_sas"),
        ("0000:04:00.0", "SAS controller", None),
    ]
