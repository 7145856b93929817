# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A capture holds all that an audit asks: audited somewhere else, it gives the report of its host."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Callable

import every_area
import fakes_kernel
import fakes_platform
import pytest
import yaml
from fake_module import Ended, Module

from ansible_collections.gpufleet.host.plugins.module_utils._areas.all import AREAS
from ansible_collections.gpufleet.host.plugins.module_utils._engine import audit_door, engine, whole
from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import CaptureHost, Result, open_capture
from ansible_collections.gpufleet.host.plugins.module_utils._engine.journal import Journal
from ansible_collections.gpufleet.host.plugins.modules import node_audit, node_capture

WANTS: dict[str, dict[str, Any]] = {"platform": {}}


def ended(main: Callable[[], None], **options: Any) -> dict[str, Any]:
    Module.params, Module.check_mode = options, False
    with pytest.raises(Ended) as end:
        main()
    assert not end.value.failed, end.value.result
    return end.value.result


def report(**options: Any) -> dict[str, Any]:
    found = dict(ended(node_audit.main, run="r", **options)["report"])
    assert not [f for area in found["areas"].values() for f in area["findings"] if f["id"] == "engine.bug"]
    return {name: found[name] for name in ("state", "areas", "host_facts")}


@pytest.fixture
def use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], None]:
    def choose(host: Any) -> None:
        for module in (audit_door, node_capture):
            monkeypatch.setattr(module, "AnsibleModule", Module)
            monkeypatch.setattr(module, "LiveHost", lambda: host)
        monkeypatch.setattr(audit_door, "Journal", lambda: Journal(str(tmp_path / "world")))

    return choose


def healthy(host: Any) -> None:
    pass


def hung(host: Any) -> None:
    host.answers["nvidia-smi"] = Result(-1, "", "", "nvidia-smi hung: no answer in 60 s")


def no_driver(host: Any) -> None:
    host.answers["nvidia-smi"] = Result(-1, "", "", "nvidia-smi is not installed")
    host.answers["modinfo"] = Result(1, "", "modinfo: ERROR: Module nvidia not found.")
    host.answers["dpkg-query"] = Result(1, "", "dpkg-query: no packages found matching *nvidia*")


def links_hang(host: Any) -> None:
    host.answers["nvidia-smi nvlink"] = Result(-1, "", "", "nvidia-smi hung: no answer in 20 s")


def no_tools(host: Any) -> None:
    for tool in ("dmidecode", "ipmitool", "dcb", "ethtool", "ibv_devinfo", "journalctl", "dpkg-query", "modinfo"):
        host.answers[tool] = Result(-1, "", "", "%s is not installed" % tool)


def errors(host: Any) -> None:
    host.answers["dmidecode"] = Result(1, "# dmidecode 3.3\n# No SMBIOS nor DMI entry point found, sorry.\n", "")
    host.answers["ibv_devinfo"] = Result(255, "", "Failed to get IB devices list: Function not implemented\n")
    host.answers["journalctl"] = Result(1, "", "No journal files were found.\n")
    host.answers["nvidia-smi topo"] = Result(2, "Failed to run topology matrix\n", "")


def no_gpus(host: Any) -> None:
    for address in host.listdir("/sys/bus/pci/devices"):
        if str(host.read("/sys/bus/pci/devices/%s/class" % address)).startswith("0x0302"):
            host.remove("/sys/bus/pci/devices/" + address)


CHANGES = [healthy, hung, no_driver, links_hang, no_tools, errors, no_gpus]


@pytest.mark.parametrize("name", every_area.NAMES)
def test_every_area_is_captured_whole(use: Callable[[Any], None], name: str, tmp_path: Path) -> None:
    use(every_area.sample(name).make(tmp_path / "world"))
    wants = {name: every_area.ABOUT[name]["want"]}
    live = report(wants=wants)
    ended(node_capture.main, wants=wants, dest=str(tmp_path / "c.tar.gz"), scrub=False)
    replayed = report(wants=wants, capture=str(tmp_path / "c.tar.gz"))
    assert json.dumps(replayed, indent=1) == json.dumps(live, indent=1)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: str(change.__name__))
def test_a_capture_gives_the_report_of_its_host(
    use: Callable[[Any], None], change: Callable[[Any], None], tmp_path: Path
) -> None:
    host = fakes_platform.make(tmp_path / "world")
    change(host)
    use(host)
    live = report(wants=WANTS)
    asked = set(host.asked)
    ended(node_capture.main, wants=WANTS, dest=str(tmp_path / "c.tar.gz"), scrub=False)
    assert set(host.asked) == asked, "taking a capture asks what an audit asks"
    replayed = report(wants=WANTS, capture=str(tmp_path / "c.tar.gz"))
    assert json.dumps(replayed, indent=1) == json.dumps(live, indent=1)


# Scrubbing

# What is of one machine on the fake host, and the places that are given more of it.
HOSTNAME = "gpu01.cluster.example.net"
SECRETS = [
    "gpu01", "cluster.example.net", "A479911X3822143", "80CE012A4B1000", "GPU-1ab00000-0000-4000-8000-00000000000",
    "a088:c203:00b9:6e0", "a288:c2ff:fe49:", "0a14:000", "S64HNE0R60012", "MT2310X00ABC", "b8:3f:d2:ab:cd:e",
    "3f0b7a4e5cc8ed118000b83fd2abcdef", "b8-3f-d2-ab-cd-e", "c7c3a21e-9d2c-4f0e-8f0a-5e1f6f0c0d0e", "10.31.4.",
    "nfs7", "hunter2",
]  # fmt: skip
# Fields of a report that are names of one machine.
NAMES = {"serial", "uuid", "hostname", "host", "id", "cmdline"}
DSN = bytes.fromhex("563412ffff2db048")


def named(host: Any) -> None:
    """Names of this machine in every place where one was seen on real ones."""
    texts = {
        "/proc/sys/kernel/hostname": "gpu01\n",
        "/etc/hostname": HOSTNAME + "\n",
        "/proc/cmdline": "BOOT_IMAGE=/vmlinuz root=UUID=c7c3a21e-9d2c-4f0e-8f0a-5e1f6f0c0d0e ip=10.31.4.7::10.31.4.1:"
        "255.255.255.0:gpu01:ens1f0:off BOOTIF=01-b8-3f-d2-ab-cd-e0 iommu=pt\n",
        "/proc/self/mountinfo": "25 1 8:2 / / rw - ext4 /dev/sda2 rw\n30 25 0:40 / /data rw - nfs4 nfs7:/export rw,addr=10.31.4.9\n",
    }
    for path, text in texts.items():
        host.put(path, text)
    for rail in fakes_platform.RAILS[0], fakes_platform.RAILS[4]:
        number = str(rail.node)
        config = host.config(rail.gpu)
        # After the last capability, as the chain of the fake leaves room.
        place = len(config) - 64
        chain = next(at for at in range(0x100, place, 4) if is_last(config, at))
        changed = bytearray(config)
        changed[chain : chain + 4] = (int.from_bytes(config[chain : chain + 4], "little") | place << 20).to_bytes(
            4, "little"
        )
        changed[place : place + 12] = (0x00010003).to_bytes(4, "little") + DSN
        host.set_config(rail.gpu, bytes(changed))
        host.put("/sys/bus/pci/devices/%s/class" % rail.nic, "0x020700\n")
        vpd = b"\x82\x08\0ConnectX\x90" + bytes([len(FIELDS), 0]) + FIELDS + b"\x78"
        Path(host.root, "sys/bus/pci/devices", rail.nic, "vpd").write_bytes(vpd)
        controller = "/sys/devices/nvme%s/" % number
        for name, text in {
            "model": "SAMSUNG MZQL23T8",
            "serial": "S64HNE0R60012" + number,
            "firmware_rev": "GDC5602Q",
        }.items():
            host.put(controller + name, text + "\n")
        host.link_to("/sys/class/nvme/nvme" + number, "../.." + controller[4:-1])
        host.put("/sys/block/nvme%sn1/size" % number, "1000\n")
        host.put("/sys/block/nvme%sn1/dev" % number, "259:%s\n" % number)
        host.put(
            "/run/udev/data/b259:" + number,
            "S:disk/by-id/nvme-SAMSUNG_MZQL23T8_S64HNE0R60012{0}_1\nS:disk/by-id/nvme-eui.36344830526001200025384500000{0}99\n"
            "E:ID_SERIAL=SAMSUNG_MZQL23T8_S64HNE0R60012{0}_1\nE:ID_SERIAL_SHORT=S64HNE0R60012{0}\nE:ID_MODEL=SAMSUNG MZQL23T8\n"
            "E:ID_WWN=eui.36344830526001200025384500000{0}99\n".format(number),
        )
    host.edits["journalctl -k"] = [(
        "gpu01 kernel: nvidia-nvswitch0: using MSI\n",
        "gpu01 kernel: nvidia-nvswitch0: using MSI\n"
        "2026-11-29T22:10:21+00:00 gpu01 kernel: mlx5_core 0000:18:00.0 eth0: MAC b8:3f:d2:ab:cd:e0 password=hunter2\n"
        "2026-11-29T22:10:21+00:00 gpu01 systemd[1]: Hostname set to <gpu01.cluster.example.net>.\n"
        "2026-11-29T22:10:22+00:00 gpu01 kernel: nfs: server nfs7.cluster.example.net not responding, 10.31.4.9\n",
    )]  # fmt: skip


FIELDS = b"PN\x10MCX75310AAS-NEATSN\x0cMT2310X00ABCV3\x203f0b7a4e5cc8ed118000b83fd2abcdefVA\x0bSMDL=SW_MNG"


def is_last(config: bytes, place: int) -> bool:
    head = int.from_bytes(config[place : place + 4], "little")
    return bool(head) and head >> 20 == 0 and head & 0xFFFF in (0x0001, 0x0015)


def everything(folder: Path) -> Iterator[tuple[str, bytes]]:
    """All names, targets and contents of a capture; texts of commands as they were printed."""
    for place in sorted(folder.rglob("*")):
        name = str(place.relative_to(folder))
        yield name, name.encode()
        if place.is_symlink():
            yield name, os.readlink(place).encode()
        elif place.is_file() and name.startswith("commands/"):
            yield name, "\n".join(map(str, json.loads(place.read_text()).values())).encode()
        elif place.is_file():
            yield name, place.read_bytes()


def unpacked(path: Path, to: Path) -> Path:
    to.mkdir()
    return Path(open_capture(str(path), str(to)).folder)


def hits(folder: Path, words: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, data in everything(folder):
        for word in words:
            if word.lower().encode() in data.lower():
                found.setdefault(word, []).append(name)
    return found


@pytest.fixture
def scrubbed(
    use: Callable[[Any], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., tuple[Path, dict[str, Any]]]:
    host = fakes_platform.make(tmp_path / "world")
    named(host)
    use(host)
    monkeypatch.setattr(node_capture.socket, "gethostname", lambda: HOSTNAME)

    def take(file: str, **options: Any) -> tuple[Path, dict[str, Any]]:
        ended(node_capture.main, wants=WANTS, dest=str(tmp_path / file), **options)
        return tmp_path / file, report(wants=WANTS)

    return take


def test_no_name_of_a_host_leaves_in_a_scrubbed_capture(scrubbed: Any, tmp_path: Path) -> None:
    whole, _live = scrubbed("whole.tar.gz", scrub=False)
    assert set(hits(unpacked(whole, tmp_path / "whole"), SECRETS)) == set(SECRETS), "or the proof would be none"
    clean, _live = scrubbed("clean.tar.gz")
    folder = unpacked(clean, tmp_path / "clean")
    assert hits(folder, SECRETS) == {}
    assert not any(DSN in data for _name, data in everything(folder))
    assert any(DSN in data for _name, data in everything(tmp_path / "whole"))
    about = json.loads((folder / "capture.json").read_text())
    assert about["scrubbed"] is True
    assert re.fullmatch(r"host-[0-9a-f]{8}\.example\.org", about["hostname"])


def test_a_scrubbed_capture_gives_the_report_of_its_host_but_for_names(scrubbed: Any, tmp_path: Path) -> None:
    clean, live = scrubbed("clean.tar.gz")
    replayed = report(wants=WANTS, capture=str(clean))
    assert replayed["host_facts"]["hardware"]["gpus"][0]["uuid"] != live["host_facts"]["hardware"]["gpus"][0]["uuid"]
    assert re.fullmatch("serial-[0-9a-f]{10}", replayed["host_facts"]["hardware"]["system"]["serial"])
    assert without_names(replayed) == without_names(live)
    text = json.dumps(replayed)
    assert [word for word in SECRETS if word in text] == []


def test_a_scrubbed_capture_keeps_the_name_that_its_inventory_gave(scrubbed: Any, tmp_path: Path) -> None:
    """Fifty captures have fifty names that people know; without a name it is the file's, not a made-up one."""
    for name, options, host in (
        ("a", {"name": "rack7-gpu01"}, "rack7-gpu01"),
        ("b", {}, "b"),
        ("c", {"scrub": False}, HOSTNAME),
    ):
        path, _live = scrubbed(name + ".tar.gz", **options)
        replayed = ended(node_audit.main, run="r", wants=WANTS, capture=str(path))["report"]
        assert replayed["host"] == host
    about = json.loads((unpacked(tmp_path / "a.tar.gz", tmp_path / "a") / "capture.json").read_text())
    assert about["name"] == "rack7-gpu01" and about["hostname"].startswith("host-")


def test_a_thing_has_one_stand_in_in_a_capture_and_another_in_the_next(scrubbed: Any, tmp_path: Path) -> None:
    names = []
    for number in "12":
        path, _live = scrubbed(number + ".tar.gz")
        facts = report(wants=WANTS, capture=str(path))["host_facts"]
        drives = [drive["serial"] for drive in facts["hardware"]["nvme"]]
        assert [disk["serial"] for disk in facts["disks"]] == drives
        assert facts["disks"][0]["id"].endswith("MZQL23T8_%s_1" % drives[0])
        folder = unpacked(path, tmp_path / number)
        uuids = {
            re.findall("GPU-[0-9a-f-]{36}", (folder / "files/proc/driver/nvidia/gpus" / gpu["address"] / "information").read_text())[0]
            for gpu in facts["hardware"]["gpus"]
        }  # fmt: skip
        assert len(uuids) == 2
        names.append({*drives, *uuids, facts["hostname"], *(dimm["serial"] for dimm in facts["hardware"]["dimms"])})
        assert len(names[-1]) == 2 + 2 + 1 + 16
    assert not names[0] & names[1]


def without_names(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: bool(item) if key in NAMES else without_names(item) for key, item in value.items()}
    return [without_names(item) for item in value] if isinstance(value, list) else value


# Where it is written

BLOCKS: dict[str, dict[str, Any]] = {"block_queue": {"rules": []}}


def test_without_a_place_it_is_written_where_nobody_else_may_enter(
    use: Callable[[Any], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(every_area.sample("block_queue").make(tmp_path / "world"))
    monkeypatch.setattr(node_capture.tempfile, "tempdir", str(tmp_path))
    places = [Path(ended(node_capture.main, wants=BLOCKS)["dest"]) for _time in "12"]
    assert places[0].parent != places[1].parent, "no name that somebody can know before"
    assert [stat.S_IMODE(path.stat().st_mode) for path in (places[0].parent, places[0])] == [0o700, 0o600]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["world", *(p.parent.name for p in places)])


def test_a_capture_that_fails_leaves_nothing(
    use: Callable[[Any], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(folder: str, dest: str) -> None:
        raise OSError(28, "No space left on device")

    use(every_area.sample("block_queue").make(tmp_path / "world"))
    monkeypatch.setattr(node_capture.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(node_capture.capture, "pack", full)
    with pytest.raises(OSError, match="No space"):
        ended(node_capture.main, wants=BLOCKS)
    assert [path.name for path in tmp_path.iterdir()] == ["world"]


def test_a_link_or_file_that_waits_at_its_place_is_not_written_through(
    use: Callable[[Any], None], tmp_path: Path
) -> None:
    use(every_area.sample("block_queue").make(tmp_path / "world"))
    (tmp_path / "theirs").write_text("kept\n", encoding="utf-8")
    (tmp_path / "link.tar.gz").symlink_to("theirs")
    os.link(tmp_path / "theirs", tmp_path / "name.tar.gz")
    for name in ("link.tar.gz", "name.tar.gz"):
        ended(node_capture.main, wants=BLOCKS, dest=str(tmp_path / name))
        assert not (tmp_path / name).is_symlink()
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "theirs").read_text(encoding="utf-8") == "kept\n"


def test_the_playbook_names_no_place_and_cleans_up_whatever_fails() -> None:
    (play,) = yaml.safe_load((every_area.ROOT / "playbooks/capture.yml").read_text(encoding="utf-8"))
    (block,) = [task for task in play["tasks"] if "block" in task]
    take = next(task for task in block["block"] if "gpufleet.host.node_capture" in task)
    assert "dest" not in take["gpufleet.host.node_capture"], "a name that can be known before is a trap for root"
    (remove,) = block["always"]
    assert remove["ansible.builtin.file"] == {"path": "{{ %s.dest | dirname }}" % take["register"], "state": "absent"}


def test_a_whole_capture_answers_for_sysctls_that_nobody_wanted_when_it_was_taken(
    tmp_path: Path, use: Callable[[Any], None]
) -> None:
    host = fakes_kernel.make(tmp_path / "host")
    host.put("/proc/sys/net/core/somaxconn", "4096\n")
    host.put("/proc/sys/net/ipv6/conf/all/stable_secret", "fe80::1\n")
    use(host)
    dest = str(tmp_path / "c.tar.gz")
    ended(node_capture.main, dest=dest, wants={"kernel_settings": {"sysctls": {"vm.swappiness": "10"}}}, scrub=False)

    def judged(sysctls: dict[str, str]) -> dict[str, Any]:
        found = report(capture=dest, wants={"kernel_settings": {"sysctls": sysctls}})
        return dict(found["areas"]["kernel_settings"])

    later = judged({"net.core.somaxconn": "8192"})
    assert [f["id"] for f in later["findings"] if f["level"] == "block"] == []
    assert "/proc/sys/net/core/somaxconn" in [step["target"] for step in later["steps"]]
    # It is whole, so what it does not hold is not there.
    assert "kernel.sysctl-unknown" in [f["id"] for f in judged({"net.core.nosuch": "1"})["findings"]]
    # The kernel's own secrets are no settings.
    (tmp_path / "scratch").mkdir()
    held = open_capture(dest, str(tmp_path / "scratch"))
    assert not isinstance(held.read("/proc/sys/net/ipv6/conf/all/stable_secret"), str)


def test_a_sparse_capture_knows_nothing_of_other_sysctls_nor_of_the_boot_loader(tmp_path: Path) -> None:
    (tmp_path / "files/proc/sys/vm").mkdir(parents=True)
    (tmp_path / "files/proc/sys/vm/swappiness").write_text("60\n")
    (tmp_path / "files/proc/sys/vm/dirty_ratio").write_text("20\n")
    (tmp_path / "files/proc/cmdline").write_text("root=/dev/sda1 ro\n")
    (tmp_path / "commands").mkdir()
    about = {"format": 1, "hostname": "h", "taken": "2026-01-31T12:00:00Z"}
    (tmp_path / "capture.json").write_text(json.dumps(about))
    want = whole.valid_want(AREAS["kernel_settings"], {"sysctls": {"vm.zone_reclaim_mode": 0}, "cmdline": ["iommu=pt"]})
    found = engine.run_area(AREAS["kernel_settings"], want, CaptureHost(str(tmp_path)), mode="audit")
    assert found.state == "unknown"
    assert {"kernel.sysctl-unknown", "kernel.no-boot-loader"} & {finding.id for finding in found.findings} == set()
    assert "files of a boot loader were not recorded" in str([finding.observed for finding in found.findings])
