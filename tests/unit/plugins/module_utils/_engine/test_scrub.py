# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Scrubbing: what names one machine goes, and all that a judge reads stays."""

from __future__ import annotations

import dataclasses
import re
import time
from pathlib import Path
from typing import Any, Callable, Iterator, Mapping

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpufleet.host.plugins.module_utils._engine import scrub_names
from ansible_collections.gpufleet.host.plugins.module_utils._engine.scrub import Scrubber
from ansible_collections.gpufleet.host.plugins.module_utils._engine.stand_ins import StandIns
from ansible_collections.gpufleet.host.plugins.module_utils._observe import (
    cpu,
    dcb,
    dcgmi,
    dmi,
    driver_module,
    ethtool,
    fabric,
    fabric_manager,
    ibdev2netdev,
    ibstat,
    ibv_devinfo,
    ipmi,
    kernel_log,
    lsblk,
    lspci,
    md,
    mlnx_qos,
    mlxconfig,
    mlxlink,
    mounts,
    numa,
    nvidia_csv,
    nvidia_smi,
    nvlink,
    nvme,
    nvme_list,
    os_release,
    packages,
    rdma_link,
    redfish,
    redfish_power,
    secure_boot,
    show_gids,
    topo,
    unit,
    xfs,
)

CORPUS = Path(__file__).resolve().parents[5] / "tests/corpus"
CASES = yaml.safe_load((CORPUS.parent / "unit/cases/scrub.yml").read_text(encoding="utf-8"))
Parser = Callable[[str], Any]
KINDS: Mapping[str, tuple[str, tuple[Parser, ...]]] = {
    "cpupower": ("cpupower", ()),
    "dcb": ("dcb", (dcb.parse_dcb_pfc, dcb.parse_dcb_app, dcb.parse_dcb_ets, dcb.parse_dcb_buffer)),
    "dcgmi": ("dcgmi", (dcgmi.parse_dcgmi_health, dcgmi.parse_dcgmi_nvlink)),
    "dmidecode": ("dmidecode", (dmi.parse_dmidecode,)),
    "driver-version": (
        "modinfo",
        (driver_module.parse_proc_version, driver_module.parse_modinfo, driver_module.parse_gpu_information,
         packages.parse_dpkg, packages.parse_rpm, kernel_log.parse_kernel_log),
    ),
    "ethtool": ("ethtool", (ethtool.parse_ethtool_statistics, ethtool.parse_ethtool_driver, ethtool.parse_ethtool_module,
                            ethtool.parse_ethtool_settings)),
    "fabric": ("nvidia-smi", (fabric.parse_lspci_functions, fabric_manager.parse_fabric_states)),
    "findmnt": ("findmnt", (mounts.parse_findmnt, mounts.parse_mountinfo)),
    "ibdev2netdev": ("ibdev2netdev", (ibdev2netdev.parse_ibdev2netdev,)),
    "ibstat": ("ibstat", (ibstat.parse_ibstat,)),
    "ibv_devinfo": ("ibv_devinfo", (ibv_devinfo.parse_ibv_devinfo,)),
    "ipmi": ("ipmitool", (ipmi.parse_sdr, ipmi.parse_dcmi_power, ipmi.parse_sel)),
    "lsblk": ("lsblk", (lsblk.parse_lsblk,)),
    "lscpu": ("lscpu", (cpu.parse_lscpu,)),
    "lspci": ("lspci", (lspci.parse_lspci,)),
    "mdadm": ("mdadm", (md.parse_mdadm_detail, md.parse_mdadm_examine, md.parse_mdstat)),
    "mlnx_qos": ("mlnx_qos", (mlnx_qos.parse_mlnx_qos,)),
    "mlxconfig": ("mlxconfig", (mlxconfig.parse_mlxconfig,)),
    "mlxlink": ("mlxlink", (mlxlink.parse_mlxlink,)),
    "numactl": ("numactl", (numa.parse_numactl,)),
    "nvidia-smi-csv": ("nvidia-smi", (nvidia_csv.parse_query_gpu,)),
    "nvidia-smi-q": ("nvidia-smi", (nvidia_smi.parse_nvidia_smi,)),
    "nvidia-smi-table": ("nvidia-smi", (nvidia_smi.parse_nvidia_smi,)),
    "nvidia-smi-xml": ("nvidia-smi", (nvidia_smi.parse_nvidia_smi,)),
    "nvlink": ("nvidia-smi", (nvlink.parse_nvlink,)),
    "nvme": ("nvme", (nvme_list.parse_nvme_list, nvme.parse_smart_log, nvme.parse_smart_logs)),
    "os-release": ("cat", (os_release.parse_os_release,)),
    "rdma-link": ("rdma", (rdma_link.parse_rdma_link, rdma_link.parse_rdma_dev)),
    "redfish": ("redfish", (redfish.parse_system, redfish.parse_bios, redfish.parse_processors, redfish_power.parse_power,
                            redfish_power.parse_power_subsystem, redfish_power.parse_thermal)),
    "secureboot": ("mokutil", (secure_boot.parse_mokutil, secure_boot.parse_bootctl, secure_boot.parse_mok_keys)),
    "show_gids": ("show_gids", (show_gids.parse_show_gids,)),
    "systemd": ("systemctl", (unit.parse_show,)),
    "topo-m": ("nvidia-smi", (topo.parse_topo,)),
    "xfs_info": ("xfs_info", (xfs.parse_xfs_info,)),
}  # fmt: skip
# Leaves of a reading that are names of one machine, or texts in which such a name stands.
SCRUBBED = re.compile(
    r".*\.(?:serial|\w*uuid|\w*guid|gpu|wwn|ipv4|gids\.\d+\.address|mount_point|root|reason|Serial Number|UUID|Asset Tag|After|"
    r"Strings\.\d+|Header and Data\.\d+|attributes\.(?:SerialNumber|\d+)|lists\.\w[\w ]*\.\d+|\d+\.name)"
)
# What a name looks like: none of a sample may be left.
ORIGINALS = (
    re.compile(r"[0-9A-Fa-f]{8}(?:(?:-|\\x2d)[0-9A-Fa-f]{4}){3}(?:-|\\x2d)[0-9A-Fa-f]{12}"),
    re.compile(r"(?<=UUID : )(?:[0-9a-f]{8}:){3}[0-9a-f]{8}"),
    re.compile(r"(?i)(?<=guid)\W{1,5}\s*(?:0x)?((?:[0-9a-f]{4}:){3}[0-9a-f]{4}|[0-9a-f]{16})"),
    re.compile(r"(?i)pdi\W{1,3}\s*:? ?(0x[0-9a-f]{16})"),
    re.compile(r"Device Serial Number ([0-9a-f-]{23})"),
    re.compile(r"\b(?:[0-9a-f]{4}:){7}[0-9a-f]{4}\b|\bfe80::[0-9a-f:]+|\b192\.0\.2\.\d+|\b10\.20\.\d+\.\d+"),
    re.compile(r"(?:eui\.|0x6)[0-9a-f]{15,}"),
    re.compile(r"(?m)^\s*(?:GPU )?(?:Serial Number|Asset Tag)\s*: +(\S+)"),
    re.compile(r"(?i)<\w*serial\w*>([^<]+)<|\"\w*serial(?: ?number)?\" ?: ?\"([^\"]+)\"|\"assettag\" ?: ?\"([^\"]+)\""),
    re.compile(r"LVM(?:-|\\x2d)\w{30,}"),
    re.compile(r"\"HostName\": \"([^\"]+)\"|local to host (\w+)"),
)  # fmt: skip
# In samples, what stands where a number would be.
NOBODYS = re.compile(
    r"(?i)\W*(?:0x)?[0:.-]*\W*|.*0000000000000000|not|none|n/?a|unknown|redacted|no|\[?n/a\]?|\s*|.*_assettag|null|host|"
    r"(?:0000:){3}000[12]|.*(?:0000:){6}0001"
)
SAMPLES = [
    pytest.param(kind, path, id="%s/%s" % (kind, path.name))
    for kind in KINDS
    for path in sorted((CORPUS / kind).iterdir())
]


def scrubbed(tool: str, text: str, salt: str = "salt") -> str:
    scrub = Scrubber(StandIns(salt), scrub_names.serials_in("", text), scrub_names.hosts_in("", text))
    return scrub.command(tool, text)


def flat(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """The leaves of a reading, each with the names that lead to it."""
    if dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from flat(getattr(value, field.name), "%s.%s" % (place, field.name))
    elif isinstance(value, Mapping):
        for number, (key, item) in enumerate(value.items()):
            yield "%s.key" % place, key
            yield from flat(item, "%s.%s" % (place, key if re.fullmatch(r"[A-Za-z_ ]{1,40}", str(key)) else number))
    elif isinstance(value, (list, tuple)):
        for number, item in enumerate(value):
            yield from flat(item, "%s.%d" % (place, number))
        yield "%s.length" % place, len(value)
    else:
        yield place, value


def differences(before: Any, after: Any) -> list[tuple[str, Any, Any]]:
    first, second = list(flat(before)), list(flat(after))
    assert [place for place, _value in first] == [place for place, _value in second]
    return [(place, was, now) for (place, was), (_place, now) in zip(first, second) if was != now]


@pytest.mark.parametrize(("kind", "path"), SAMPLES)
def test_a_sample_reads_the_same_and_no_name_is_left(kind: str, path: Path) -> None:
    tool, parsers = KINDS[kind]
    text = path.read_bytes().decode("utf-8", "surrogateescape")
    after = scrubbed(tool, text)
    for parser in parsers if after != text else ():
        found = differences(parser(text), parser(after))
        assert [row for row in found if not SCRUBBED.fullmatch(row[0])] == [], parser.__name__
    for pattern in ORIGINALS:
        for match in pattern.finditer(text):
            word = next((group for group in match.groups() if group), match.group())
            assert NOBODYS.fullmatch(word) or word.lower() not in after.lower(), word


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_a_text_is_scrubbed(case: dict[str, Any]) -> None:
    text, path = case["text"].replace("BYTE_E9", "\udce9"), case.get("path", "")
    hosts = scrub_names.hosts_in(path, text) | set(case.get("hosts", []))
    scrub = Scrubber(StandIns("salt"), scrub_names.serials_in(path, text), hosts)
    after = scrub.file(path, text) if path else scrub.command(case["tool"], text)
    if "after" not in case:
        assert after == text
    else:
        assert re.fullmatch(case["after"].replace("BYTE_E9", "\udce9"), after), after
    assert [word for word in case.get("gone", []) if word.lower() in after.lower()] == []


@given(
    st.text(alphabet='09afZ:.-=/ \\x2d\n\t"<>[]{}é\udce9', max_size=200),
    st.sampled_from(["", "/etc/fstab", "/sys/x/serial"]),
)
def test_any_text_is_scrubbed(text: str, path: str) -> None:
    scrub = Scrubber(StandIns("salt"), scrub_names.serials_in(path, text), scrub_names.hosts_in(path, text))
    assert isinstance(scrub.file(path, text), str)
    assert isinstance(scrub.command("dmidecode", text), str)
    assert isinstance(scrub.name(text), str)


LONG = (
    "a:", "aa-", "abcd:", "serial ", 'serial=" ', "1.1.1.1-", "1.1.1.1 ", "guid", "guid ", "ARRAY ", "ARRAY name=", "A", "0",
    "password=", "NAME SN\n", "Handle x\nOEM-specific Type\n\t", "AA ", "\tString 1: ", "LVM-", "\\x2d", "fe80::", "a.b.",
    "Jan  1 00:00:00 a", "deadbeef-", "abcdef-", "aaaaaaaa-aaaa-", "00:00:00:00:00:00:", "e.com:", "[V1] x: " + "A1" * 50,
    "E:ID_SERIAL=x\n", " ", "\n", "nvme.144d-", "nqn.2014-08.org.nvmexpress:",
)  # fmt: skip


@pytest.mark.parametrize("piece", LONG)
def test_a_text_without_end_is_scrubbed_in_time(piece: str) -> None:
    text = (piece * 100_000)[:200_000]
    started = time.process_time()
    scrub = Scrubber(
        StandIns("salt"), scrub_names.serials_in("", text), {*scrub_names.hosts_in("", text), "gpu7.a.e.com"}
    )
    scrub.command("dmidecode", text)
    scrub.file("/etc/fstab", text)
    assert time.process_time() - started < 5


def test_samples_have_names() -> None:
    """Or the proof above would be none."""
    texts = [path.read_bytes().decode("utf-8", "replace") for kind in KINDS for path in (CORPUS / kind).iterdir()]
    missing = [pattern.pattern for pattern in ORIGINALS if not any(pattern.search(text) for text in texts)]
    assert missing == []
