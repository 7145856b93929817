# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from pathlib import Path
from typing import Sequence

import pytest
from fakes import FakeHost
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import LiveHost, Result
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import Unknown
from ansible_collections.gpufleet.host.plugins.module_utils._observe import (
    device_nodes,
    mysql,
    mysql_config,
    oom,
    service,
)

CORPUS = Path(__file__).parents[4] / "corpus/mysql-oom"
JUNK = st.lists(
    st.one_of(
        st.sampled_from(
            [
                "[mysqld]", "[mariadb-10.11]", "innodb_buffer_pool_size = 4G", "!includedir /etc/x", "!include /etc/my.cnf",
                "Killed process 1 (mysqld) total-vm:1kB", "oom-kill:constraint=CONSTRAINT_MEMCG,task=m,pid=1,uid=2",
                "InnoDB: mmap(1 bytes) failed; errno 12", "254:0 rbps=max wbps=5", "Max open files  1  2  files", "anon 5",
                "sh: 1: cannot open /dev/nvidia0: Operation not permitted", "version\t10.11", "MemTotal:  5 kB",
            ]
        ),
        st.text(),
    )
).map("\n".join)  # fmt: skip


def test_an_old_kill_line_of_the_corpus() -> None:
    assert oom.parse_oom((CORPUS / "dmesg-oom-mysqld.log").read_text()) == [
        oom.OomKill(19445, "mysqld", anon_rss_kib=83580, file_rss_kib=0, total_vm_kib=973984)
    ]


def test_a_pool_that_could_not_be_mapped_of_the_corpus() -> None:
    text = (CORPUS / "mysqld-innodb-mmap-fail.log").read_text()
    assert oom.parse_pool_failures(text) == [oom.PoolFailure(137428992, 12)]


def test_a_new_kill_in_a_control_group() -> None:
    text = (
        "[1.1] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=mariadb.service,mems_allowed=0,"
        "oom_memcg=/system.slice/mariadb.service,task_memcg=/system.slice/mariadb.service,task=mariadbd,pid=812,uid=105\n"
        "[1.2] Memory cgroup out of memory: Killed process 812 (mariadbd) total-vm:9kB, anon-rss:8kB, file-rss:7kB, "
        "shmem-rss:6kB, UID:105 pgtables:5kB oom_score_adj:0\n"
    )
    assert oom.parse_oom(text) == [oom.OomKill(812, "mariadbd", 8, 7, 6, 9, True, "/system.slice/mariadb.service")]


def test_a_kill_in_two_lines_is_one() -> None:
    text = (
        "Out of memory: Kill process 5 (mysqld) score 900 or sacrifice child\n"
        "Killed process 5, UID 27, (mysqld) total-vm:3kB, anon-rss:2kB, file-rss:1kB, shmem-rss:0kB\n"
    )
    assert [kill.pid for kill in oom.parse_oom(text)] == [5]


def test_the_group_of_an_old_kill_is_told_in_a_line_before_it() -> None:
    text = (
        "[1.0] Task in /lxc/db1 killed as a result of limit of /lxc\n"
        "[1.1] Memory cgroup out of memory: Kill process 71 (mysqld) score 854 or sacrifice child\n"
        "[1.2] Killed process 71, UID 27, (mysqld) total-vm:9kB, anon-rss:8kB, file-rss:7kB\n"
    )
    assert oom.parse_oom(text) == [oom.OomKill(71, "mysqld", 8, 7, None, 9, True, "/lxc/db1")]


def test_announcements_are_no_kills_of_their_own_but_count_when_nothing_follows() -> None:
    text = (
        "Out of memory: kill process 5 (qemu) score 78 or a child\nKilled process 6 (qemu)\n"
        "Out of memory: Kill process 7 (mysqld) score 900 or sacrifice child\n"
        "Out of memory: Kill process 8 (mysqld) score 800 or sacrifice child\n"
        "Killed process 9 ((sd-pam)) total-vm:1kB\n"
    )
    found = [(kill.pid, kill.name, kill.is_cgroup) for kill in oom.parse_oom(text + "Killed process 10 (a) x\n")]
    assert found == [(6, "qemu", False), (7, "mysqld", False), (9, "(sd-pam)", False), (10, "a", None)]
    assert [
        kill.pid for kill in oom.parse_oom("Out of memory: Kill process 7 (mysqld) score 9 or sacrifice child")
    ] == [7]


def test_values_of_a_command_line_may_stand_behind_a_blank() -> None:
    words = ["--innodb-buffer-pool-size", "1G", "--skip-name-resolve", "--port=3306", "--user", "mysql"]
    assert mysql_config.parse_arguments(words) == {
        "innodb_buffer_pool_size": "1G", "skip_name_resolve": "ON", "port": "3306", "user": "mysql",
    }  # fmt: skip


def test_option_files_follow_includes_and_the_last_line_wins(tmp_path: Path) -> None:
    host = FakeHost(tmp_path)
    host.put(
        "/etc/mysql/my.cnf", "[mysqld]\nsort_buffer_size=1M\n!includedir /etc/mysql/conf.d\n!include /etc/mysql/x\n"
    )
    host.put("/etc/mysql/conf.d/a.cnf", "[mysqld]\ninnodb-buffer-pool-size = 1G # small\nskip-name-resolve\n")
    host.put("/etc/mysql/conf.d/b.cnf", "[server]\ninnodb_buffer_pool_size='2G'\n[client]\nsocket=/x\n")
    host.put("/etc/mysql/conf.d/c.txt", "[mysqld]\ninnodb_buffer_pool_size=3G\n")
    host.put("/etc/mysql/x", "!include /etc/mysql/x\n")
    config = mysql_config.read_options(
        host, mysql_config.OPTION_FILES, mysql_config.groups_for("mariadb", "10.11.6", [])
    )
    assert config.settings["innodb_buffer_pool_size"] == mysql_config.Setting("2G", "/etc/mysql/conf.d/b.cnf:2")
    assert config.values()["sort_buffer_size"] == "1M"
    assert config.values()["skip_name_resolve"] == "ON"
    assert "socket" not in config.values()
    assert len(config.unread) == 1


@pytest.mark.parametrize(
    ("flavour", "version", "group", "reads"),
    [
        ("mariadb", "10.11.6-MariaDB", "mariadb-10.11", True),
        ("mariadb", "10.11.6-MariaDB", "mysqld-10.11", True),
        ("mariadb", "10.11.6-MariaDB", "mysqld-8.4", False),
        ("mariadb", "10.11.6-MariaDB", "client-server", True),
        ("mysql", "8.4.3", "mariadb", False),
        ("mysql", "8.4.3", "mysqld-8.4", True),
        ("mysql", "8.4.3", "mysqld@shard1", True),
        ("percona", "8.0.35-27", "server", True),
    ],
)
def test_groups(flavour: str, version: str, group: str, reads: bool) -> None:
    assert (group in mysql_config.groups_for(flavour, version, ["@shard1"])) == reads


def test_persisted_variables_of_two_versions() -> None:
    first = {"Version": 1, "mysql_server": {"max_connections": {"Value": "9", "Metadata": {"Timestamp": 1}}}}
    second = {"Version": 2, "mysql_static_variables": {"innodb_buffer_pool_size": {"Value": "5", "Metadata": {}}}}
    assert mysql_config.parse_persisted(json.dumps(first)) == {"max_connections": "9"}
    assert mysql_config.parse_persisted(json.dumps(second)) == {"innodb_buffer_pool_size": "5"}
    assert mysql_config.parse_persisted("{") == {}


def test_an_instance_reads_its_group_its_file_and_its_command_line(tmp_path: Path) -> None:
    host = FakeHost(tmp_path)
    host.put("/etc/my.cnf", "[mysqld]\nmax_connections=1\n[mysqld@a]\nmax_connections=2\nsort_buffer_size=2M\n")
    host.put("/var/lib/mysql/mysqld-auto.cnf", json.dumps({"x": {"sort_buffer_size": {"Value": "3M"}}}))
    argv = ["/usr/sbin/mysqld", "--join-buffer-size=4M", "--daemonize"]
    config = mysql.read_config(host, "mysqld@a.service", argv, "mysql", "8.0.35")
    assert config.values()["max_connections"] == "2"
    assert config.settings["sort_buffer_size"].place == "/var/lib/mysql/mysqld-auto.cnf"
    assert config.settings["join_buffer_size"].place == "command line of mysqld@a.service"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mariadbd  Ver 10.11.6-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)", ("mariadb", "10.11.6-MariaDB-0+deb12u1")),
        ("/usr/sbin/mysqld  Ver 8.0.36 for Linux on x86_64 (MySQL Community Server - GPL)", ("mysql", "8.0.36")),
        ("/usr/sbin/mysqld  Ver 8.0.35-27 for Linux on x86_64 (Percona Server (GPL), Release 27)", ("percona", "8.0.35-27")),
        ("no version", ("", "")),
    ],
)  # fmt: skip
def test_versions(text: str, expected: tuple[str, str]) -> None:
    assert mysql.parse_version(text) == expected


def test_the_other_client_is_asked_when_one_is_not_there(tmp_path: Path) -> None:
    class Client(FakeHost):
        def run(self, argv: Sequence[str], deadline_s: float = 10.0) -> Result:
            name = argv[0]
            if name == "mysql":
                return Result(0, "Variable_name\tValue\nversion\t8.4.3\nmax_connections\t151\n", "")
            return Result(-1, "", "", "%s is not installed" % name)

    values = mysql.read_variables(Client(tmp_path), "mariadb", mysql_config.Config({}))
    assert values == {"version": "8.4.3", "max_connections": "151"}
    refused = mysql.read_variables(FakeHost(tmp_path), "mysql", mysql_config.Config({}))
    assert isinstance(refused, Unknown)


def test_what_the_shell_says_of_device_nodes() -> None:
    text = (
        "sh: 1: cannot open /dev/nvidia0: Operation not permitted\n"
        "sh: 1: cannot open /dev/nvidia1: No such device or address\n"
        "bash: line 1: /dev/nvidia10: Operation not permitted\n"
        "sh: 1: cannot open /dev/gone: No such file\nopened /dev/kmsg\n"
    )
    nodes = ["/dev/nvidia0", "/dev/nvidia1", "/dev/nvidia10", "/dev/gone", "/dev/kmsg", "/dev/unsaid"]
    assert device_nodes.parse_reach(text, nodes) == {
        "/dev/nvidia0": "denied",
        "/dev/nvidia1": "reachable",
        "/dev/nvidia10": "denied",
        "/dev/gone": "absent",
        "/dev/kmsg": "reachable",
    }


def test_the_disk_behind_a_partition(tmp_path: Path) -> None:
    host = FakeHost(tmp_path)
    host.put("/sys/devices/pci/vda/dev", "254:0\n")
    host.put("/sys/devices/pci/vda/vda1/dev", "254:1\n")
    host.put("/sys/devices/pci/vda/vda1/partition", "1\n")
    for name, place in (("vda", "vda"), ("vda1", "vda/vda1")):
        link = Path(host.root + "/sys/class/block/" + name)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to("../../devices/pci/" + place)
    Path(host.root + "/dev/disk/by-id").mkdir(parents=True)
    Path(host.root + "/dev/disk/by-id/x-part1").symlink_to("../../vda1")
    assert service.device_number(host, "/dev/disk/by-id/x-part1") == "254:0"
    assert service.device_number(host, "/dev/disk/by-id/none") is None


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(JUNK)
def test_junk_never_raises(text: str) -> None:
    oom.parse_oom(text)
    oom.parse_pool_failures(text)
    mysql_config.parse_options(text)
    mysql_config.parse_persisted(text)
    mysql.parse_variables(text)
    mysql.parse_version(text)
    mysql.argv_of({"ExecStart": text, "Environment": text})
    service.parse_io_max(text)
    service.parse_limits(text)
    service.parse_flat(text)
    service.memory_total(text)
    device_nodes.parse_reach(text, ["/dev/nvidia0"])


def test_a_folder_of_units_is_all_that_is_looked_at_without_a_database(tmp_path: Path) -> None:
    host = LiveHost(str(tmp_path))
    assert isinstance(mysql.find(host, []), Unknown)
    (tmp_path / "usr/lib/systemd/system").mkdir(parents=True)
    assert mysql.find(host, []) == []
