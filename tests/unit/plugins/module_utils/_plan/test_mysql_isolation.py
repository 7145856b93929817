# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansible_collections.gpufleet.host.plugins.module_utils._areas.mysql_isolation import SPEC
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import Unknown
from ansible_collections.gpufleet.host.plugins.module_utils._plan import (
    mysql_adopt,
    mysql_findings,
    mysql_isolation,
    mysql_memory,
    mysql_wall,
)
from ansible_collections.gpufleet.host.plugins.module_utils._tables import mysql_defaults

WANT = dict(
    {name: option.get("default") for name, option in SPEC.items()},
    cpus="0-1", memory_nodes="0", memory_high="1g", memory_max="2g", io_weight="50", oom_score_adjust="5", limit_nofile="2048",
    io_limits=[{"device": "/dev/disk/by-id/a", "read_bandwidth": "1m", "write_bandwidth": None, "read_iops": 5,
                "write_iops": None}],
)  # fmt: skip


def test_memory_counts_pool_shared_and_connections() -> None:
    values = dict.fromkeys(mysql_memory.SHARED[:4] + mysql_memory.PER_CONNECTION, "1048576")
    values.update(innodb_buffer_pool_size="1G", max_connections="100")
    need = mysql_memory.memory_of(values, "now")
    assert isinstance(need, mysql_memory.Memory)
    gib, mib = 1024**3, 1024**2
    assert need.floor == gib + gib // 10
    assert need.peak == need.floor + 4 * mib + 100 * 7 * mib


def test_memory_without_a_pool_is_unknown_and_not_0() -> None:
    assert isinstance(mysql_memory.memory_of({"max_connections": "5"}, "now"), Unknown)
    assert isinstance(mysql_memory.memory_of({"innodb_buffer_pool_size": "lots", "max_connections": "5"}, "x"), Unknown)


@pytest.mark.parametrize(("gib", "share"), [(64, 48), (4, 2), (2, 1)])
def test_a_dedicated_server_takes_its_share(gib: int, share: int) -> None:
    assert mysql_memory.dedicated_pool(gib * 1024**3) == share * 1024**3


@pytest.mark.parametrize(
    ("flavour", "version", "name", "value"),
    [
        ("mariadb", "10.11.6", "innodb_io_capacity", "200"),
        ("mysql", "8.0.36", "innodb_io_capacity", "200"),
        ("mysql", "8.4.0", "innodb_io_capacity", "10000"),
        ("percona", "8.4.2-2", "innodb_io_capacity", "10000"),
        ("mariadb", "10.5.1", "innodb_flush_method", "fsync"),
        ("mariadb", "10.6.0", "innodb_flush_method", "O_DIRECT"),
        ("mysql", "8.0.36", "innodb_flush_method", "fsync"),
        ("mysql", "8.4.0", "innodb_flush_method", "O_DIRECT"),
        ("mariadb", "11.4.2", "key_buffer_size", "134217728"),
        ("mysql", "8.0.36", "key_buffer_size", "8388608"),
    ],
)
def test_defaults_by_family_and_version(flavour: str, version: str, name: str, value: str) -> None:
    assert mysql_defaults.defaults(flavour, mysql_defaults.version_of(version))[name] == value


def test_two_servers_that_differ_are_adopted_with_an_override() -> None:
    one, two = server(unit="mysqld@a.service"), server(unit="mysqld@b.service")
    two["group"] = dict(one["group"], **{"memory.max": "1073741824"})
    adopted = mysql_adopt.adopt(have([one, two]))
    assert adopted["memory_max"] == ""
    assert adopted["overrides"] == [{"unit": "mysqld@b.service", "memory_max": "1g"}]


def test_an_override_walls_its_unit_only() -> None:
    want = dict(WANT, overrides=[dict(dict.fromkeys(mysql_wall.KEYS), unit="b.service", memory_max="4g")])
    seen = have([server(unit="a.service"), server(unit="b.service")])
    steps = {step.id: step.after for step in mysql_isolation.plan(want, seen) if step.id.endswith("memory.max")}
    assert steps == {
        "mysql_isolation.a.service.memory.max": str(2 * 1024**3),
        "mysql_isolation.b.service.memory.max": str(4 * 1024**3),
    }


def server(**given: Any) -> dict[str, Any]:
    about: dict[str, Any] = {
        "unit": "mariadb.service", "active": True, "state": "active", "pid": 5, "control_group": "/system.slice/m.service",
        "shown": {"AllowedCPUs": "", "AllowedMemoryNodes": "", "DevicePolicy": "auto", "MemoryMax": "infinity"},
        "needs_reload": False, "drop_in": None, "foreign": [], "io_max": {}, "held_bytes": 5, "parent_cpus": "0-7",
        "group": {"memory.max": "max", "memory.high": "max", "cpuset.cpus": None, "io.max": None},
        "parent_memory_nodes": "0-1", "reach": None, "oom_score_adj": "0", "process_limits": {}, "process_group": None, "flavour": "mariadb",
        "version": "10.11.6", "live": {"innodb_buffer_pool_size": "1", "max_connections": "1"}, "config": {},
        "config_unread": [], "pool_failures": [],
    }  # fmt: skip
    about.update(given)
    return about


def have(servers: Any) -> dict[str, Any]:
    return {
        "servers": servers, "gpus": ["0000:21:00.0"], "hierarchy": "unified", "devices": {"/dev/disk/by-id/a": "8:0"},
        "slices": {"gpufleet-node0-gpu0.slice": {"cpus": "2-3", "memory_nodes": "0"}}, "cpus": "0-7",
        "nodes": [{"id": 0, "cpus": "0-3", "has_memory": True}, {"id": 1, "cpus": "4-7", "has_memory": True}],
        "memory_total": 2**34, "oom_kills": [], "weightless_disks": ["sda"], "missing_units": [],
    }  # fmt: skip


TEXT = st.one_of(st.text(max_size=20), st.sampled_from(["0-1", "max", "infinity", "closed", "5", "-1", "9" * 30]))
MAYBE = st.one_of(TEXT, st.none(), st.just(Unknown("junk")))
SERVER = st.fixed_dictionaries(
    {},
    optional={
        "active": st.booleans(),
        "shown": st.dictionaries(st.sampled_from(["AllowedCPUs", "MemoryMax", "DevicePolicy", "IOWeight", "DeviceAllow"]), TEXT),
        "drop_in": MAYBE,
        "group": st.one_of(
            st.dictionaries(st.sampled_from(["cpuset.cpus", "memory.max", "io.max", "io.weight"]), MAYBE),
            st.none(),
            st.just(Unknown("junk")),
        ),
        "io_max": st.dictionaries(st.sampled_from(["8:0", "9:9"]), st.just({"rbps": 5})),
        "held_bytes": st.one_of(st.integers(), st.none(), st.just(Unknown("junk"))),
        "parent_cpus": MAYBE,
        "reach": st.one_of(st.just({"/dev/kmsg": "reachable"}), st.none(), st.just(Unknown("junk"))),
        "oom_score_adj": MAYBE,
        "process_limits": st.just({"Max open files": ("1", "2")}),
        "flavour": st.sampled_from(["mariadb", "mysql", "percona", ""]),
        "version": st.text(max_size=10),
        "live": st.one_of(st.dictionaries(st.sampled_from(["innodb_buffer_pool_size", "max_connections"]), TEXT), st.none(),
                          st.just(Unknown("junk"))),
        "config": st.dictionaries(st.sampled_from(["innodb_buffer_pool_size", "innodb_io_capacity"]), st.tuples(TEXT, TEXT)),
        "foreign": st.just([("/x", 1, "MemoryMax", "5")]),
        "needs_reload": st.booleans(),
    },
)  # fmt: skip


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(SERVER, MAYBE, st.one_of(st.just([]), st.just([{"id": 0, "cpus": "", "has_memory": False}])), st.booleans())
def test_junk_never_raises(given: dict[str, Any], cpus: Any, nodes: Any, derives: bool) -> None:
    want = dict(WANT, cpus="auto", memory_nodes="auto") if derives else WANT
    seen = dict(have([server(**given)]), cpus=cpus, nodes=nodes)
    mysql_isolation.plan(want, seen)
    mysql_findings.judge(want, seen)
    mysql_adopt.adopt(seen)
