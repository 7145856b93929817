# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from pathlib import Path
from typing import Dict, List, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import Result
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import Unknown
from ansible_collections.gpufleet.host.plugins.module_utils._observe import service, unit

CORPUS = Path(__file__).resolve().parents[5] / "tests/corpus/systemd"


def corpus(name: str) -> List[Dict[str, str]]:
    return unit.parse_show((CORPUS / name).read_text(encoding="utf-8"))


class Systemctl:
    """A host of which only systemctl answers."""

    is_live = False

    def __init__(self, result: Result) -> None:
        self.result = result
        self.asked: List[Sequence[str]] = []

    def run(self, argv: Sequence[str], deadline_s: float = 10.0) -> Result:
        self.asked.append(list(argv))
        return self.result


def test_several_units_are_split_at_blank_lines() -> None:
    blocks = corpus("show-multi-units.txt")
    assert [block["Id"] for block in blocks[:3]] == [
        "postfix.service",
        "postgresql.service",
        "tuned.service",
    ]
    assert blocks[0]["LimitMEMLOCK"] == ""
    assert unit.number(blocks[0]["LimitLOCKS"]) is None
    assert unit.number(blocks[0]["LimitNOFILE"]) == 65536
    assert blocks[1]["ExecStart"].startswith("{ path=/usr/bin/pg_ctl ; argv[]=/usr/bin/pg_ctl start")
    assert blocks[2]["After"].split()[-2:] == ["basic.target", "dbus.service"]


def test_values_keep_their_equal_signs_and_may_be_empty() -> None:
    blocks = corpus("show-target.txt")
    assert blocks[0]["Id"] == "network.target"
    assert blocks[1]["Requires"] == "dev-mapper-rhel\\x2dswap.swap"


@pytest.mark.parametrize("name", ["show-service-memory-apache.txt", "show-unit-v1-allowedcpus-empty.txt"])
def test_every_way_to_say_not_set(name: str) -> None:
    (block,) = corpus(name)
    assert block["EffectiveCPUs"] == ""
    for key in ("CPUUsageNSec", "IPIngressBytes", "IOReadBytes", "CPUWeight", "EffectiveCPUs"):
        assert unit.number(block[key]) is None, key
    assert unit.number(block["MemoryCurrent"]) == 16412672


@pytest.mark.parametrize("name", ["status-line-allowedcpus.txt", "cgroup-subtree-control.txt"])
def test_other_text_is_not_taken_for_units(name: str) -> None:
    # Lines of another tool, and a shell prompt before one true property.
    assert [block for block in corpus(name) if set(block) - {"AllowedCPUs"}] == []


def test_repeated_keys_are_joined() -> None:
    assert unit.parse_show("Id=a.service\nExecStart=one\nExecStart=two\n") == [
        {"Id": "a.service", "ExecStart": "one\ntwo"}
    ]


def test_a_next_command_is_not_part_of_the_value_before_it() -> None:
    text = (
        "    Id=a.service\n    AllowedCPUs=0-3\n    [root@h ~]# systemctl show b.service -p Id -p ExecStart\n"
        "    Id=b.service\n    ExecStart={ argv[]=/bin/sh -c\n    # a comment of the script\n    X=1\n    }\n"
    )
    first, second = unit.parse_show(text)
    assert first == {"Id": "a.service", "AllowedCPUs": "0-3"}
    assert second["ExecStart"].splitlines()[1:] == ["# a comment of the script"]


def test_lines_of_a_unit_file_that_go_on() -> None:
    text = (
        "# /etc/systemd/system/a.slice\n[Slice]\nAllowedCPUs=0-3 \\\n; not now: 4-7 \\\n# nor this\n\t8-11\n"
        " MemoryMax = 4G\nnonsense\nExecStart=/bin/x \\\n"
    )
    assert service.parse_unit_file(text) == [
        (3, "AllowedCPUs", "0-3 8-11"),
        (7, "MemoryMax", "4G"),
        (9, "ExecStart", "/bin/x"),
    ]


@pytest.mark.parametrize("word", ["oui", "nicht gesetzt", "-1", "1e3", "²", "12 %"])
def test_a_word_is_no_number(word: str) -> None:
    assert isinstance(unit.number(word), Unknown)


def test_one_command_for_all_units_and_aliases_are_found() -> None:
    host = Systemctl(
        Result(
            0,
            "Id=mariadb.service\nNames=mariadb.service mysql.service\nLoadState=loaded\n\n"
            "Id=gone.service\nNames=gone.service\nLoadState=not-found\n",
            "",
        )
    )
    found = unit.show(host, ["mysql.service", "gone.service"], ["LoadState"])  # type: ignore[arg-type]
    assert not isinstance(found, Unknown)
    assert found["mysql.service"]["Id"] == "mariadb.service"
    assert found["gone.service"]["LoadState"] == "not-found"
    assert len(host.asked) == 1


def test_a_missing_systemctl_is_unknown_and_no_unit_asks_nothing() -> None:
    host = Systemctl(Result(-1, "", "", "systemctl is not installed"))
    assert unit.show(host, [], ["LoadState"]) == {}  # type: ignore[arg-type]
    assert host.asked == []
    assert isinstance(unit.show(host, ["a.service"], ["LoadState"]), Unknown)  # type: ignore[arg-type]
    assert isinstance(unit.manager(host, ["DefaultLimitNOFILE"]), Unknown)  # type: ignore[arg-type]


@given(st.text())
def test_junk_never_raises(text: str) -> None:
    for block in unit.parse_show(text):
        for value in block.values():
            unit.number(value)
