# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The saved output of one command as a capture: what people send when they are asked for nvidia-smi or lspci."""

from __future__ import annotations

import json
import os
import re
import time
from typing import Optional, Sequence, Tuple

# The areas that such an output can speak of: all that are known here are of the hardware and its driver.
SPEAKS_OF = ("platform",)
LIMIT_BYTES = 16 * 1024 * 1024
_HEAD = 65536
_GZIP = b"\x1f\x8b"
# The header of a table of --query-gpu: names of columns and nothing else, of which one is NVIDIA's own.
_CSV_OWN = (
    r"(?:pci\.bus_id|gpu_bus_id|gpu_uuid|pcie\.link\.|compute_cap\b|temperature\.gpu\b|utilization\.gpu\b|ecc\.|"
    r"power\.(?:draw|limit)\b|driver_version\b|vbios_version\b|pstate\b|persistence_mode\b|mig\.mode|"
    r"memory\.(?:total|used|free) \[|clocks_(?:event|throttle)_reasons\.|clocks\.(?:gr|sm|mem)\b)"
)
_CSV_COLUMN = r"\"?[a-z][\w.]{1,90}(?: ?\[[^\[\],;\n]{1,12}\])?\"?"
_CSV_HEADER = r"(?m)^[ \t>]{0,12}(?=.{0,9000}?\b%s)(?!.{0,9000}?\bpid\b)%s(?:[ \t]?[,;\t] ?%s){1,400}[ \t\r]{0,20}$" % (
    _CSV_OWN, _CSV_COLUMN, _CSV_COLUMN,
)  # fmt: skip
# A row of ipmitool's three tables of sensors, by its status and its unit.
_STATUS = r"(?:ok|ns|na|us|nc|cr|nr|lnc|lcr|lnr|unc|ucr|unr)"
_UNIT = r"(?:degrees [CF]|RPM|Watts|Volts|Amps|percent|CFM)"
_SENSOR = r"(?m)^[ \t>#|]{0,12}\w[^|\n]{0,40}\|"
_NUMBER = r" {0,12}-?\d{1,9}(?:[.,]\d{1,6})?"

# Words that an output has in its first lines, all of a row; the first row that fits is taken.  No pattern spans lines.
_KINDS: Tuple[Tuple[Sequence[str], Tuple[str, ...]], ...] = (
    (("nvidia-smi", "-q", "-x"), (r"<nvidia_smi_log>|<gpu id=\"[0-9A-Fa-f]{4,8}:",)),
    (("nvidia-smi", "-q"), (r"(?m)^ {0,8}={3,30}NVSMI LOG=",)),
    (("nvidia-smi", "topo", "-m"), (r"(?m)^.{0,60}\bGPU0\b", r"(?m)^.{0,12}Legend:|\bGPU0\b.{0,2000}CPU[ \t]{0,3}Affinity\b")),
    (("nvidia-smi", "nvlink", "-s"), (r"(?m)^.{0,60}GPU \d{1,3}: ", r"(?m)^.{0,60}\bLink \d{1,3}[:,] |[aA]ll links are in[aA]ctive")),
    (("nvidia-smi", "nvlink", "-s"), (r"have or support N[vV][lL]ink|N[vV][lL]ink (?:queries|information) |(?m:^\s{1,20}NVLE: )",)),
    (("nvidia-smi",), (r"(?m)^[ \t>]{0,12}\| NVIDIA-SMI |^[ \t>]{0,12}\| {1,4}\d{1,3}\.? .{4,60}\| {1,4}[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:",)),
    (("nvidia-smi", "--query-gpu", "--format=csv"), (_CSV_HEADER,)),
    (("nvidia-smi", "-q"), (r"(?m)^[ \t>]{0,12}GPU [0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d[ \t\r]{0,20}$",)),
    (("nvidia-smi", "-L"), (r"(?m)^[ \t>]{0,12}GPU \d{1,3}: .{1,80}\(UUID: ",)),
    (("dmidecode",), (r"(?m)^# dmidecode |^Handle 0x[0-9A-Fa-f]{4}, DMI type \d",)),
    (("ipmitool", "sdr", "elist"), (_SENSOR + r" ?[0-9A-F]{1,3}h \| %s {0,3}\| {0,3}\d{1,3}\.\d{1,3} {0,3}\|" % _STATUS,)),
    (("ipmitool", "sdr"), (_SENSOR + r"%s %s(?:, [^|\n]{1,80})? {0,20}\| {0,3}%s[ \t|\r]{0,12}$" % (_NUMBER, _UNIT, _STATUS),)),
    (("ipmitool", "sensor"), (_SENSOR + r"(?:%s| na) {0,12}\| %s {0,12}\| {0,3}%s {0,6}\|" % (_NUMBER, _UNIT, _STATUS),)),
    (("nvme", "smart-log"), (r"(?m)^[ \t>]{0,12}Smart Log for NVME device:|^[ \t>]{0,12}critical_warning[ \t]{1,60}: ?(?:0x)?[0-9a-fA-F]",)),
    (("nvme", "smart-log"), (r'"critical_warning" ?:', r'"avail_spare" ?:', r'"percent_used" ?:')),
    (("nvme", "list"), (r"(?m)^[ \t>]{0,12}Node {2,30}(?:Generic {2,30})?SN {2,30}Model {2,60}|^[ \t>]{0,12}Subsystem {2,20}Subsystem-NQN ",)),
    (("nvme", "list", "-o", "json"), (r'"Devices" ?: ?\[', r'"DevicePath" ?: ?"/dev/nvme|"SubsystemNQN" ?:|"Subsystems" ?: ?\[')),
    (("lspci", "-vvv"), (r"(?m)^.{0,60}\b[0-9a-f]{2}:[0-9a-f]{2}\.[0-7] ", r"(?m)^.{1,60}Capabilities: |LnkSta:")),
    (
        ("lspci", "-nn"),
        (
            r"(?m)^.{0,60}\b[0-9a-f]{2}:[0-9a-f]{2}\.[0-7] (?:[\w /-]{0,40}(?:controller|[bB]ridge|peripheral|accelerators|interface|"
            r"device)(?: \[[0-9a-f]{4}\])?: |[0-9a-f]{4}: [0-9a-f]{4}:)",
        ),
    ),
    (("ibv_devinfo", "-v"), (r"(?m)^hca_id:[ \t]",)),
    (("ibstat",), (r"(?m)^CA '[^'\n]{1,64}'", r"(?m)^[ \t]{0,20}Port \d{1,3}:")),
    (("ibdev2netdev", "-v"), (r"(?m)^\S.{0,300} port {1,8}\d{1,3} {1,8}(?:\([A-Z]{1,10} {0,6}\) {1,8})?==> {1,8}\S",)),
    (("rdma", "link"), (r"(?m)^link \S{1,64}/\d{1,3}:? .{0,200}\bphysical_state ",)),
    (("rdma", "-j", "link"), (r'"ifname":', r'"physical_state":')),
    (("show_gids",), (r"(?m)^n_gids_found=\d",)),
    (
        ("journalctl", "-u", "nvidia-fabricmanager.service", "-b", "-o", "short-iso", "--no-pager", "-n", "400"),
        (r"(?m)\bnv(?:idia)?-fabricmanager[\w.-]{0,20}\[\d{1,9}\]: |^\[\w{3} {1,2}\d{1,2} \d{4} [\d:]{8}\] \[[A-Z]{1,10}\] \[tid ",),
    ),
    (("journalctl", "-k", "-b", "--no-pager"), (r"NVRM: |\bSXid \(PCI:",)),
    (("mokutil", "--sb-state"), (r"(?m)^SecureBoot (?:en|dis)abled",)),
    (("nvidia-smi",), (r"NVIDIA-SMI has failed|Failed to initialize NVML|No devices were found|Unable to determine the device handle",)),
)  # fmt: skip

# A resource of Redfish, by its type; these are read.  A resource has some dozens of kilobytes.
_REDFISH = re.compile(
    r"#?(?:Power|PowerMetrics|PowerSubsystem|PowerSupply|PowerSupplyCollection|Thermal|ThermalMetrics|ThermalSubsystem|"
    r"Fan|FanCollection|ComputerSystem)(?:\.[\w.]{1,80})?",
    re.ASCII,
)
_REDFISH_LIMIT = 2 * 1024 * 1024
_PATH = re.compile(r"/redfish/v1/[\w./#:@%+-]{1,200}", re.ASCII)


def is_lone_text(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(2) != _GZIP


def command_of(text: str) -> Optional[Sequence[str]]:
    """The command that printed a text; None when none of those that are known did."""
    head = text[:_HEAD]
    found = next((argv for argv, signs in _KINDS if all(re.search(sign, head) for sign in signs)), None)
    return _redfish(text) if found is None else found


def _redfish(text: str) -> Optional[Sequence[str]]:
    """``redfish get`` with the resource's own path, if the text is such a resource, perhaps behind a prompt."""
    start = re.search(r"(?m)^\ufeff?\s{0,20}\{", text[:_HEAD])
    if start is None or len(text) > _REDFISH_LIMIT or '"@odata.' not in text:
        return None
    try:
        data = json.JSONDecoder().raw_decode(text[start.end() - 1 :])[0]
    except (ValueError, RecursionError):
        return None
    kind, path = data.get("@odata.type"), data.get("@odata.id")
    if not isinstance(kind, str) or not isinstance(path, str) or not _REDFISH.fullmatch(kind):
        return None
    return ("redfish", "get", path) if _PATH.fullmatch(path) else None


def known_commands() -> str:
    return ", ".join(
        dict.fromkeys([" ".join(argv) for argv, _signs in _KINDS] + ["a Redfish resource of power or system"])
    )


def wrap(path: str, folder: str) -> bool:
    """Write a capture with the output of one command into a folder; False when it is no output that is known."""
    with open(path, "rb") as file:
        text = file.read(LIMIT_BYTES + 1).decode("utf-8", "replace")
    argv = command_of(text) if len(text) <= LIMIT_BYTES else None
    if argv is None:
        return False
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", os.path.basename(path)).split(".")[0] or "unknown"
    taken = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(os.stat(path).st_mtime))
    os.makedirs(os.path.join(folder, "commands"), exist_ok=True)
    os.makedirs(os.path.join(folder, "files"), exist_ok=True)
    about = {"format": 1, "hostname": name, "taken": taken}
    said = {"argv": list(argv), "rc": 0, "stdout": text, "stderr": ""}
    for file_name, data in (("capture.json", about), ("commands/0001.json", said)):
        with open(os.path.join(folder, file_name), "w", encoding="utf-8") as out:
            json.dump(data, out)
    return True
