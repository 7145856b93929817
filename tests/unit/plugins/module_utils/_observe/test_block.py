# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import LiveHost
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import Unknown
from ansible_collections.gpufleet.host.plugins.module_utils._observe import block
from ansible_collections.gpufleet.host.plugins.module_utils._plan.block_queue import OLD_NAMES

ROOT = Path(__file__).resolve().parents[5]
CORPUS = ROOT / "tests/corpus/scheduler"
READINGS = yaml.safe_load((ROOT / "tests/unit/cases/corpus/scheduler.yml").read_text())


def test_every_file_of_the_corpus_has_its_reading() -> None:
    assert {row["file"] for row in READINGS} == {path.name for path in CORPUS.iterdir()}


@pytest.mark.parametrize("row", READINGS, ids=[row["file"] for row in READINGS])
def test_schedulers_of_the_corpus(row: dict[str, Any]) -> None:
    text = (CORPUS / row["file"]).read_text()
    found = block.parse_scheduler(text)
    if row["active"] is None:
        assert isinstance(found, Unknown)
    else:
        assert found == block.Scheduler(row["active"], tuple(row["offered"]))
    if "refused" in row:
        assert row["refused"] in text
        assert OLD_NAMES[row["refused"]] == "none"


@pytest.mark.parametrize(
    ("text", "active", "offered"),
    [
        ("[none] mq-deadline\n", "none", "none mq-deadline"),
        ("mq-deadline kyber [bfq] none\n", "bfq", "mq-deadline kyber bfq none"),
        ("noop deadline [cfq]\n", "cfq", "noop deadline cfq"),
        ("[mq-deadline]\n", "mq-deadline", "mq-deadline"),
        ("none\n", "none", "none"),
    ],
)
def test_schedulers_as_kernels_show_them(text: str, active: str, offered: str) -> None:
    assert block.parse_scheduler(text) == block.Scheduler(active, tuple(offered.split()))


@pytest.mark.parametrize(
    "text",
    [None, Unknown("Input/output error"), "", "\n", "none mq-deadline\n", "[none] [kyber]\n", "none [mq-dead", "N/A",
     "[none] größe", "\0\0", "[] none"],
)  # fmt: skip
def test_what_is_no_list_of_schedulers_is_unknown(text: Any) -> None:
    found = block.parse_scheduler(text)
    assert isinstance(found, Unknown)
    assert found.reason


@pytest.mark.parametrize(
    "text",
    [
        "# cat /sys/block/sda/queue/scheduler\nnone [bfq_x]\n",
        "/sys/block/sda/queue/scheduler:none [bfq_x] \n",
        "\x1b[32mnone [bfq_x]\x1b[0m\r\n",
    ],
)
def test_a_scheduler_as_it_is_pasted(text: str) -> None:
    assert block.parse_scheduler(text) == block.Scheduler("bfq_x", ("none", "bfq_x"))


@pytest.mark.parametrize(
    "text",
    [
        "/sys/block/sda/queue/scheduler:[a] none\n/sys/devices/pci0/x/block/nvme0n1/queue/scheduler:none\n",
        "==> /sys/block/sda/queue/scheduler <==\n[a] none\n\n==> /sys/block/nvme0n1/queue/scheduler <==\nnone\n",
        "$ cat /sys/block/sda/queue/scheduler\n[a] none\n$ cat /sys/block/nvme0n1/queue/scheduler\nnone\n$ exit\n",
    ],
)
def test_schedulers_of_several_disks(text: str) -> None:
    both = {"sda": block.Scheduler("a", ("a", "none")), "nvme0n1": block.Scheduler("none", ("none",))}
    assert block.parse_schedulers(text) == both
    assert isinstance(block.parse_scheduler(text), Unknown)


def test_schedulers_of_files_that_are_not_named_are_nobodys() -> None:
    assert block.parse_schedulers("$ cat /sys/block/*/queue/scheduler\n[none]\n[none]\n") == {}
    assert block.parse_schedulers(None) == {}


def test_the_udev_database() -> None:
    text = "S:disk/by-id/wwn-0x5000\nL:0\nI:123\nE:ID_WWN=0x5000\nE:DEVLINKS=a=b c\nE:broken\njunk\nS:disk/by-path/p\n"
    properties, links = block.parse_udev_data(text)
    assert properties == {"ID_WWN": "0x5000", "DEVLINKS": "a=b c"}
    assert links == ["disk/by-id/wwn-0x5000", "disk/by-path/p"]
    assert block.parse_udev_data(None) == block.parse_udev_data(Unknown("x")) == ({}, [])


@pytest.fixture
def host(tmp_path: Path) -> LiveHost:
    files = {
        "sys/block/sda/dev": "8:0\n",
        "sys/block/sda/size": "2048\n",
        "sys/block/sda/queue/rotational": "1\n",
        "sys/block/sda/queue/nr_requests": "256\n",
        "sys/block/sda/queue/nomerges": "ERR!\n",
        "sys/block/sda/sda1/dev": "8:1\n",
        "sys/block/sda/slaves/x": "",
        "run/udev/data/b8:0": "S:disk/by-id/wwn-0x5000\nS:disk/by-path/x\nE:ID_WWN=0x5000\nE:ID_SERIAL_SHORT=S1\n",
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return LiveHost(str(tmp_path))


def test_a_disk(host: LiveHost) -> None:
    disk = block.disk(host, "sda")
    assert (disk.device, disk.size_bytes, disk.rotational, disk.partitions) == ("8:0", 1048576, True, ("sda1",))
    for name in ("0x5000", "S1", "wwn-0x5000", "/dev/disk/by-id/wwn-0x5000"):
        assert disk.is_named(name), name
    for name in ("", "sda", "/dev/sda", "/dev/disk/by-id/", "/dev/disk/by-path/x"):
        assert not disk.is_named(name), name


def test_a_disk_that_shows_nothing_is_unknown_and_not_zero(host: LiveHost) -> None:
    disk = block.disk(host, "nvme9n9")
    assert (disk.size_bytes, disk.rotational, disk.ids, disk.multipath_member) == (None, None, (), False)


def test_queue_values_are_numbers_or_unknown(host: LiveHost) -> None:
    values = block.queue_values(host, "sda", ["nr_requests", "nomerges", "scheduler", "read_ahead_kb"])
    assert values["nr_requests"] == "256"
    assert all(isinstance(values[name], Unknown) for name in ("nomerges", "scheduler", "read_ahead_kb"))


def test_no_sysfs_is_unknown_and_not_no_disks(tmp_path: Path) -> None:
    assert isinstance(block.disk_names(LiveHost(str(tmp_path))), Unknown)


def test_rules_of_one_name_hide_each_other(tmp_path: Path) -> None:
    line = 'ATTR{queue/scheduler}="%s"\n'
    for folder, text in (
        ("etc/udev/rules.d/60-a.rules", "# " + line % "no"),
        ("run/udev/rules.d/60-a.rules", line % "hidden"),
        ("usr/lib/udev/rules.d/60-b.rules", '\nATTR{queue/scheduler}=="x", ATTR{queue/nomerges}="2"\n'),
        ("usr/lib/udev/rules.d/70-c.rules", line % "kyber"),
        ("usr/lib/udev/rules.d/80-d.txt", line % "no"),
    ):
        (tmp_path / folder).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / folder).write_text(text)
    found = block.udev_rule_lines(LiveHost(str(tmp_path)), frozenset({"scheduler"}))
    assert found == [("/usr/lib/udev/rules.d/70-c.rules", 1, line.strip() % "kyber")]


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        (
            'ACTION=="add", \\\n# why\n  ATTR{queue/scheduler}="none"\n',
            [(1, 'ACTION=="add", ATTR{queue/scheduler}="none"')],
        ),
        (
            'ATTR{queue/scheduler}!="none", ATTR{queue/scheduler}:="bfq"',
            [(1, 'ATTR{queue/scheduler}!="none", ATTR{queue/scheduler}:="bfq"')],
        ),
        ('\nATTR{bdi/read_ahead_kb}="64"', [(2, 'ATTR{bdi/read_ahead_kb}="64"')]),
        (
            "RUN+=\"/bin/sh -c 'echo none > /sys/block/%k/queue/scheduler'\"",
            [(1, "RUN+=\"/bin/sh -c 'echo none > /sys/block/%k/queue/scheduler'\"")],
        ),
        (
            "RUN+=\"/bin/sh -c 'echo 1 | tee /sys$devpath/queue/read_ahead_kb'\"",
            [(1, "RUN+=\"/bin/sh -c 'echo 1 | tee /sys$devpath/queue/read_ahead_kb'\"")],
        ),
        ('ATTR{queue/scheduler}=="none", ATTR{queue/nomerges}="2"', []),
        ('#ATTR{queue/scheduler}="none"', []),
        ('PROGRAM="/bin/cat /sys/block/%k/queue/scheduler"', []),
    ],
)
def test_rules_that_set_an_attribute(text: str, rules: list[tuple[int, str]]) -> None:
    assert block.rules_that_set(text, frozenset({"scheduler", "read_ahead_kb"})) == rules
