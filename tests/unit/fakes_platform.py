# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bare-metal HGX hosts: PCI tree, NUMA nodes, driver, libraries and firmware as files, and what the tools say of them.

``make`` is a host of two rails (one GPU, NIC and NVMe below each PCIe switch), ``make_hgx`` the whole eight.  All is well
on them.  What nvidia-smi says are the lab's recordings (driver 590, H100) with the addresses and links of the tree;
other models are told by their PCI id, with figures of tests/corpus.
"""

from __future__ import annotations

import functools
import os
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Mapping, Sequence

import fakes_platform_texts as texts
from fakes import FakeHost, Program
from fakes_pci import BUS, DOWNSTREAM, ROOT_PORT, UPSTREAM, add, link, pair, setpci, space

from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import Result
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import Text
from lab.simulated.smi import answers, cards, slots
from lab.simulated.smi.recorded import DRIVER

KERNEL = "6.8.0-51-generic"
UNITS = "/etc/systemd/system/"
WANTS = UNITS + "multi-user.target.wants/"
BRIDGE = 0x060400
BROADCOM, INTEL = "1000:c030", "8086:352a"
ACS_CAPABILITY = 0x1F
GENERATIONS = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5}
PIECE = "pci/pci_gpu_link_info/"


@dataclass(frozen=True)
class Rail:
    """A root port and what hangs below its switch; each address is that of the root bus and the ones after it."""

    bus: int
    node: int

    def address(self, offset: int, device: int = 0) -> str:
        return "0000:%02x:%02x.0" % (self.bus + offset, device)

    @property
    def gpu(self) -> str:
        return self.address(4)

    @property
    def nic(self) -> str:
        return self.address(3)

    @property
    def nvme(self) -> str:
        return self.address(5)


# Root buses of a Dell XE9680 (tests/corpus/lspci/lspci-vvv-xe9680-one-gpu-path.txt).
RAILS = tuple(Rail(bus, int(bus >= 0x80)) for bus in (0x15, 0x37, 0x48, 0x59, 0x97, 0xB7, 0xC7, 0xD7))


@dataclass(frozen=True)
class Model:
    """A GPU: what its PCI functions are, and what nvidia-smi says of it otherwise than of an H100."""

    pci_id: str
    subsystem: str
    wire: str
    bar_mib: int
    links: int
    rate: str
    says: Mapping[str, str] = field(default_factory=dict)
    has_margins: bool = True
    # Links that the chip has and the product does not use.
    unused: tuple[int, ...] = ()


def _says(name: str, architecture: str, memory_mib: int, bar_mib: int, limit_w: float, **more: str) -> dict[str, str]:
    power = dict.fromkeys(("current", "requested", "default", "max"), "%.2f W" % limit_w)
    return {
        "product_name": name,
        "product_architecture": architecture,
        "fb_memory_usage/total": "%d MiB" % memory_mib,
        "bar1_memory_usage/total": "%d MiB" % bar_mib,
        **{"gpu_power_readings/%s_power_limit" % kind: limit for kind, limit in power.items()},
        **{name.replace("__", "/"): value for name, value in more.items()},
    }


_DEGREES = {
    "temperature/gpu_temp_tlimit": "N/A",
    "temperature/gpu_temp_max_tlimit_threshold": "92 C",
    "temperature/gpu_temp_slow_tlimit_threshold": "89 C",
    "temperature/gpu_temp_max_gpu_tlimit_threshold": "85 C",
    "temperature/gpu_temp_max_mem_tlimit_threshold": "95 C",
    "temperature/memory_temp": "44 C",
    "gsp_firmware_version": DRIVER,
}
_T4 = {**_DEGREES, "temperature/memory_temp": "N/A", "temperature/gpu_temp_max_mem_tlimit_threshold": "N/A"}
_NO_FABRIC = {"fabric/state": "N/A", "fabric/status": "N/A", "fabric/cliqueId": "N/A", "fabric/clusterUuid": "N/A"}
MODELS = {
    "h100": Model("10de:2330", "10de:16c1", "16@32.0", 131072, 18, "26.562 GB/s"),
    "h100-nvl": Model("10de:2321", "10de:1839", "16@32.0", 131072, 18, "26.562 GB/s", {**_says(
        "NVIDIA H100 NVL", "Hopper", 95830, 131072, 400), **_NO_FABRIC}, unused=(4, 5, 10, 11, 16, 17)),
    "a100": Model("10de:20b2", "10de:147f", "16@16.0", 131072, 12, "25 GB/s", {**_says(
        "NVIDIA A100-SXM4-80GB", "Ampere", 81920, 131072, 500), **_NO_FABRIC, **_DEGREES}, has_margins=False),
    "a100-pcie": Model("10de:20b5", "10de:1533", "16@16.0", 131072, 12, "25 GB/s", {**_says(
        "NVIDIA A100 80GB PCIe", "Ampere", 81920, 131072, 300), **_NO_FABRIC, **_DEGREES}, has_margins=False),
    "a800": Model("10de:20f3", "10de:147f", "16@16.0", 131072, 12, "25 GB/s", {**_says(
        "NVIDIA A800-SXM4-80GB", "Ampere", 81920, 131072, 400), **_NO_FABRIC, **_DEGREES}, has_margins=False,
        unused=(2, 5, 8, 11)),
    "t4": Model("10de:1eb8", "10de:12a2", "16@8.0", 256, 0, "", {**_says(
        "Tesla T4", "Turing", 15360, 256, 70), **_NO_FABRIC, **_T4, "persistence_mode": "Enabled"}, has_margins=False),
    "rtx4090": Model("10de:2684", "1458:40bf", "16@16.0", 256, 0, "", {**_says(
        "NVIDIA GeForce RTX 4090", "Ada Lovelace", 24564, 256, 450), **_NO_FABRIC, "ecc_mode/current_ecc": "Disabled",
        "ecc_mode/pending_ecc": "Disabled"}),
    "v100": Model("10de:1db6", "10de:124a", "16@8.0", 32768, 0, "", {**_says(
        "Tesla V100-PCIE-32GB", "Volta", 32768, 32768, 250), **_NO_FABRIC, **_DEGREES}, has_margins=False),
    "b200": Model("10de:2901", "10de:1999", "16@32.0", 262144, 18, "53.125 GB/s",
                  _says("NVIDIA B200", "Blackwell", 183359, 262144, 1000)),
    # No row of the catalogue has this id.
    "newer": Model("10de:3f00", "10de:0001", "16@32.0", 131072, 18, "53.125 GB/s",
                   _says("NVIDIA X900", "Vera", 294912, 524288, 1400)),
}  # fmt: skip
_IPMI = {"sdr": texts.SENSORS, "dcmi": texts.DCMI, "mc": texts.MC_INFO}
BARE_METAL = {"gpu_virtualization_mode/virtualization_mode": "None"}


class PlatformHost(FakeHost):
    """``asked`` are the commands that were run; the other attributes change what is said:

    * ``says``: of a GPU by index (or ``all``), element of the XML -> value
    * ``links``: of a GPU by index (or ``all``), numbers of its NVLinks that are inactive
    * ``silent``: indexes of GPUs that nvidia-smi does not list
    * ``answers``: the whole result of a command; ``edits``: texts that are replaced (once) in what it printed
    * ``later``: what a file holds from its second reading on
    """

    def __init__(self, root: Path, refuse: Sequence[str] = (), ignore: Sequence[str] = ()) -> None:
        super().__init__(root, refuse, ignore)
        self.asked: list[str] = []
        self.says: dict[Any, dict[str, str]] = {}
        self.links: dict[Any, list[int]] = {}
        self.silent: list[int] = []
        self.answers: dict[str, Result] = {}
        self.edits: dict[str, list[tuple[str, str]]] = {}
        self.later: dict[str, str] = {}
        self._read: set[str] = set()

    def commands(self) -> dict[str, Program]:
        return {
            "nvidia-smi": lambda argv, stdin: self._smi(list(argv[1:])),
            "systemctl": lambda argv, stdin: self._systemctl(list(argv[1:])),
            "setpci": lambda argv, stdin: self._setpci(argv),
            "journalctl": lambda argv, stdin: said(texts.KERNEL_LOG if "-k" in argv else texts.FABRIC_LOG),
            "dpkg-query": lambda argv, stdin: said(texts.packages(DRIVER)),
            "modinfo": lambda argv, stdin: said(texts.modinfo(DRIVER, KERNEL)),
            "dmidecode": lambda argv, stdin: said(texts.dmidecode()),
            "ipmitool": lambda argv, stdin: said(_IPMI[argv[1]]),
            "ibv_devinfo": lambda argv, stdin: said("".join(map(texts.devinfo, self.listdir("/sys/class/infiniband")))),
            "dcb": lambda argv, stdin: said(texts.DCB[argv[2]]),
            "ethtool": lambda argv, stdin: said(texts.PAUSE if argv[1] == "-a" else texts.STATISTICS),
        }

    def run(self, argv: Sequence[str], deadline_s: float = 10.0) -> Result:
        words = " ".join(argv)
        self.asked.append(words)
        # Changed as a whole or in part by the words that it begins with.
        whole = next((result for start, result in self.answers.items() if _begins(words, start)), None)
        result = whole if whole is not None else super().run(argv, deadline_s)
        for start, pairs in self.edits.items():
            for old, new in pairs if _begins(words, start) else ():
                assert old in result.stdout, (words, old)
                result = Result(result.rc, result.stdout.replace(old, new, 1), result.stderr, result.unknown)
        return result

    def read(self, path: str) -> Text:
        if path in self.later and path in self._read:
            return self.later[path]
        self._read.add(path)
        return super().read(path)

    # The tools

    def _smi(self, words: list[str]) -> Result:
        found = self.cards()
        told = {
            "-q -x": functools.partial(answers.xml, found, _NOW),
            "nvlink -s": functools.partial(answers.nvlink_status, found),
            "nvlink -e": functools.partial(answers.nvlink_errors, found),
            "topo -m": functools.partial(answers.topology, found),
        }.get(" ".join(words))
        return said(told()) if told else Result(2, "Invalid combination of input arguments.\n", "")

    def cards(self) -> list[cards.Card]:
        """The GPUs of the tree that have the driver, as nvidia-smi knows them."""
        bound = [name for name in self.listdir("/" + BUS) if self._driver(name) == "nvidia"]
        found = [name for name in bound if self._model(name) is not None]
        return [self._card(index, name) for index, name in enumerate(found) if index not in self.silent]

    def _driver(self, address: str) -> str:
        return os.path.basename(self.readlink("/%s/%s/driver" % (BUS, address)) or "")

    def _model(self, address: str) -> Model | None:
        pci_id = ":".join(self._line(address, name)[2:] for name in ("vendor", "device"))
        return next((model for model in MODELS.values() if model.pci_id == pci_id), None)

    def _line(self, address: str, name: str) -> str:
        text = super().read("/%s/%s/%s" % (BUS, address, name))
        return text.strip() if isinstance(text, str) else ""

    def _card(self, index: int, address: str) -> cards.Card:
        model = self._model(address)
        assert model is not None
        slot = self._slot(address)
        base = cards.card(index, slot, {})
        ids = ["0x%s%s" % (one[5:].upper(), one[:4].upper()) for one in (model.pci_id, model.subsystem)]
        values = {"pci/pci_device_id": ids[0], "pci/pci_sub_system_id": ids[1], **BARE_METAL, **model.says}
        values.update(self._link_values(slot, model))
        values.update({**self.says.get("all", {}), **self.says.get(index, {})})
        unknown = set(values) - {row.path for row in base.rows}
        assert not unknown, "nvidia-smi has no %s" % unknown
        rows = [row._replace(value=values.get(row.path, row.value)) for row in base.rows]
        if not model.has_margins:
            rows = [row._replace(shown=row.path.replace("_tlimit_", "_")) for row in rows]
        down = {*model.unused, *self.links.get("all", []), *self.links.get(index, [])}
        lanes = [number not in down for number in range(model.links)]
        smi_model = cards.Model({}, "", model.links, model.rate, model.has_margins)
        return cards.Card(slot, smi_model, rows, lanes)

    def _slot(self, address: str) -> slots.Slot:
        wire = {name: self._line(address, name).split(" ", 1)[0] for name in link("1@2.5", "1@2.5")}
        node = self._line(address, "numa_node")
        return slots.Slot(
            address, int(node) if node.isdigit() else None, self._line(address, "local_cpulist"), "",
            int(wire["current_link_width"]), int(wire["max_link_width"]),
            GENERATIONS[float(wire["current_link_speed"])], self._slot_gen(address),
        )  # fmt: skip

    def _slot_gen(self, address: str) -> int:
        above = (self.readlink("/%s/%s" % (BUS, address)) or "").split("/")[-2]
        return GENERATIONS[float(self._line(above, "max_link_speed").split(" ", 1)[0])]

    def _link_values(self, slot: slots.Slot, model: Model) -> dict[str, str]:
        own, width = GENERATIONS[pair(model.wire)[1]], pair(model.wire)[0]
        gens = {"max_device_link_gen": own, "max_link_gen": min(own, slot.max_gen or own),
                "current_link_gen": slot.gen, "device_current_link_gen": slot.gen}  # fmt: skip
        return {
            **{PIECE + "pcie_gen/" + name: str(gen) for name, gen in gens.items()},
            PIECE + "link_widths/max_link_width": "%dx" % width,
        }

    def _systemctl(self, words: list[str]) -> Result:
        if words[0] == "show":
            return said("\n".join(texts.unit(name) for name in words[words.index("--") + 1 :]))
        verb, unit = words
        if super().read(UNITS + unit) is None:
            return Result(1, "", "Failed to %s unit: Unit file %s does not exist." % (verb, unit))
        place = Path(self.root + WANTS + unit)
        place.unlink(missing_ok=True)
        if verb == "enable":
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(UNITS + unit)
        return said("")

    def _setpci(self, argv: Sequence[str]) -> Result:
        path = "/%s/%s/config" % (BUS, argv[2])
        if path in self.refuse:
            return Result(1, "", "setpci: %s: Operation not permitted" % path)
        # What the kernel refuses is only a warning of the real one: libpci's sysfs_write.
        return said("") if path in self.ignore else setpci(Path(self.root), argv)

    # Building

    def link_to(self, path: str, target: str) -> None:
        place = Path(self.root + path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)
        place.symlink_to(target)

    def remove(self, path: str) -> None:
        place = Path(self.root + path)
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        else:
            place.unlink()

    def config(self, address: str) -> bytes:
        return Path(self.root, BUS, address, "config").read_bytes()

    def set_config(self, address: str, data: bytes) -> None:
        Path(self.root, BUS, address, "config").write_bytes(data)

    def drive(self, address: str, driver: str) -> None:
        """Bind a function to a driver."""
        self.link_to("/%s/%s/driver" % (BUS, address), "../../../../bus/pci/drivers/" + driver)
        self.link_to("/sys/bus/pci/drivers/%s/%s" % (driver, address), "../../../../devices/" + address)


_NOW = time.struct_time((2026, 11, 30, 6, 0, 0, 0, 334, 0))


def said(text: str) -> Result:
    return Result(0, text, "")


def _begins(words: str, start: str) -> bool:
    return words == start or words.startswith(start + " ")


def make(root: Path) -> PlatformHost:
    """Two rails, one on each socket of one core: all that there is, and few files of each kind."""
    return build(root, (RAILS[0], RAILS[4]), threads=2)


def make_one(root: Path) -> PlatformHost:
    """One rail only: what takes many runs is proved on it."""
    return build(root, RAILS[:1], switches=0)


def make_hgx(root: Path) -> PlatformHost:
    """A whole board: 8 GPUs, 4 NVSwitches, 8 NICs; with fewer threads than real ones, of which each is many files."""
    return build(root, RAILS, threads=8, switches=4)


def build(root: Path, rails: Sequence[Rail], model: str = "h100", threads: int = 4, switches: int = 1) -> PlatformHost:
    host = PlatformHost(root)
    for place, rail in enumerate(rails):
        _rail(host, rail, place, MODELS[model], threads)
    for place in range(switches):
        _nvswitch(host, place, threads)
    _processors(host, sorted({rail.node for rail in rails}), threads)
    for path, text in texts.files(DRIVER, KERNEL).items():
        host.put(path, text)
    for path, target in texts.links(DRIVER, KERNEL).items():
        host.link_to(path, target)
    for number in range(2 * len(rails)):
        host.put("/sys/kernel/iommu_groups/%d/type" % number, "identity\n")
    return host


def _rail(host: PlatformHost, rail: Rail, place: int, model: Model, threads: int) -> None:
    """Root port, switch with a port up and three down, and what hangs below those."""
    root, full = Path(host.root), ("16@32.0", "16@32.0")
    top = "pci0000:%02x/%s" % (rail.bus, rail.address(0, 1))
    # As Linux leaves it where the IOMMU is on: redirection at the root ports.  Below, only SrcValid was left on.
    _bridge(host, top, INTEL, ROOT_PORT, rail.node, full, 0x1D)
    switch = "%s/%s" % (top, rail.address(1))
    _bridge(host, switch, BROADCOM, UPSTREAM, rail.node, full, None)
    below = {name: "%s/%s" % (switch, rail.address(2, device)) for device, name in enumerate(("nic", "gpu", "nvme"))}
    wires = {"nic": "16@32.0", "gpu": "16@32.0", "nvme": "4@32.0"}
    for name, path in below.items():
        _bridge(host, path, BROADCOM, DOWNSTREAM, rail.node, (wires[name], wires[name]), int(name != "nvme"))
    seat = _seat(rail.node, threads)
    gpu, bars = "%s/%s" % (below["gpu"], rail.gpu), ((model.bar_mib, model.bar_mib),)
    if pair(model.wire)[1] < 32.0:
        host.put("/%s/%s/max_link_speed" % (BUS, rail.address(2, 1)), "32.0 GT/s PCIe\n")
    config = space(model.pci_id, 0x030200, subsystem=model.subsystem, now=pair(model.wire), most=pair(model.wire),
                   aer=(0, 0), bars_mib=bars)  # fmt: skip
    add(root, gpu, config, {**link(model.wire, model.wire), **seat, **_ids(model.pci_id, 0x030200, "nvidia"), **_AER})
    host.drive(rail.gpu, "nvidia")
    nic = "%s/%s" % (below["nic"], rail.nic)
    add(root, nic, space("15b3:1021", 0x020000, subsystem="15b3:0041", aer=(0, 0), vfs=16),
        {**link(*full), **seat, **_ids("15b3:1021", 0x020000, "mlx5_core"), **_AER, "sriov_totalvfs": "16\n"})  # fmt: skip
    host.drive(rail.nic, "mlx5_core")
    _rdma(host, "mlx5_%d" % place, "ens%df0" % (place + 1), "/sys/devices/" + nic, place)
    add(root, "%s/%s" % (below["nvme"], rail.nvme), space("144d:a826", 0x010802, now=(4, 32.0), most=(4, 32.0), aer=(0, 0)),
        {**link("4@32.0", "4@32.0"), **seat, **_ids("144d:a826", 0x010802, "nvme"), **_AER})  # fmt: skip
    host.drive(rail.nvme, "nvme")
    for path, text in texts.gpu_files(rail.gpu, place, DRIVER).items():
        host.put(path, text)


_AER = {"aer_dev_" + kind: texts.counters(kind) for kind in ("correctable", "nonfatal", "fatal")}


def _ids(ids: str, class_code: int, driver: str) -> dict[str, str]:
    vendor, device = ids.split(":")
    uevent = "DRIVER=%s\nPCI_CLASS=%X\nPCI_ID=%s\n" % (driver, class_code, ids.upper())
    return {
        "vendor": "0x%s\n" % vendor,
        "device": "0x%s\n" % device,
        "class": "0x%06x\n" % class_code,
        "uevent": uevent,
    }


def _seat(node: int, threads: int) -> dict[str, str]:
    return {"numa_node": "%d\n" % node, "local_cpulist": "%d-%d\n" % (node * threads, node * threads + threads - 1)}


def _bridge(
    host: PlatformHost, path: str, ids: str, port: int, node: int, wire: tuple[str, str], acs: int | None
) -> None:
    config = space(
        ids, BRIDGE, port, pair(wire[0]), pair(wire[1]), None if acs is None else (ACS_CAPABILITY, acs), aer=(0, 0)
    )
    add(Path(host.root), path, config, {**link(*wire), **_ids(ids, BRIDGE, "pcieport"), "numa_node": "%d\n" % node})


def _nvswitch(host: PlatformHost, place: int, threads: int) -> None:
    """Two lanes to the management of each NVSwitch."""
    top = "pci0000:0%d/0000:0%d:01.0" % (place + 4, place + 4)
    _bridge(host, top, INTEL, ROOT_PORT, 0, ("2@5.0", "2@5.0"), 0)
    address = "0000:0%d:00.0" % (place + 5)
    config = space("10de:22a3", 0x068000, now=(2, 5.0), most=(2, 5.0), aer=(0, 0))
    add(Path(host.root), "%s/%s" % (top, address), config,
        {**link("2@5.0", "2@5.0"), **_seat(0, threads), **_ids("10de:22a3", 0x068000, "nvidia-nvswitch")})  # fmt: skip
    host.link_to("/%s/%s/driver" % (BUS, address), "../../../bus/pci/drivers/nvidia-nvswitch")


def _rdma(host: PlatformHost, name: str, interface: str, real: str, place: int) -> None:
    """An Ethernet port of 400 Gb/s with RoCE."""
    folder = "%s/infiniband/%s" % (real, name)
    for path, text in texts.rdma_files(name, interface, place).items():
        host.put("%s/%s" % (folder, path), text + "\n")
    host.link_to("/sys/class/infiniband/" + name, "../.." + folder[len("/sys") :])
    host.link_to(folder + "/device", "../../../" + real.rsplit("/", 1)[-1])
    for path, text in texts.NETDEV.items():
        host.put("%s/net/%s/%s" % (real, interface, path), text + "\n")
    host.link_to("/sys/class/net/" + interface, "../..%s/net/%s" % (real[len("/sys") :], interface))
    host.link_to("%s/net/%s/device" % (real, interface), "../../../" + real.rsplit("/", 1)[-1])


def _processors(host: PlatformHost, nodes: Sequence[int], threads: int) -> None:
    """Two threads a core; CPU n and its sister are next to each other."""
    folder, count = "/sys/devices/system/cpu/", threads * len(nodes)
    for name in ("online", "possible", "present"):
        host.put(folder + name, "0-%d\n" % (count - 1))
    host.put(folder + "offline", "\n")
    for cpu in range(count):
        host.put("%scpu%d/topology/thread_siblings_list" % (folder, cpu), "%d-%d\n" % (cpu & ~1, cpu | 1))
        host.put("%scpu%d/topology/physical_package_id" % (folder, cpu), "%d\n" % (cpu // threads))
        host.put("%scpufreq/policy%d/scaling_governor" % (folder, cpu), "performance\n")
        for state, (name, latency) in enumerate(texts.IDLE):
            place = "%scpu%d/cpuidle/state%d/" % (folder, cpu, state)
            host.put(place + "name", name + "\n")
            host.put(place + "latency", "%d\n" % latency)
            host.put(place + "disable", "%d\n" % (latency > 100))
    host.put("/proc/cpuinfo", "".join(texts.cpuinfo(cpu) for cpu in range(count)))
    for place, node in enumerate(nodes):
        base = "/sys/devices/system/node/node%d/" % node
        host.put(base + "cpulist", "%d-%d\n" % (place * threads, place * threads + threads - 1))
        host.put(base + "distance", " ".join("10" if one == node else "21" for one in nodes) + "\n")
        kib = texts.MODULES * 64 * 1024 * 1024 * 984 // 1000 // len(nodes)
        host.put(base + "meminfo", "Node %d MemTotal:       %d kB\n" % (node, kib))
