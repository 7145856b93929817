# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gpufleet.host.plugins.module_utils._programs import gpu_run

MAP: dict[str, Any] = {
    "format": 1,
    "gpus": [
        {"index": 0, "address": "0000:21:00.0", "node": 0, "slice": "gpufleet-node0-gpu0.slice", "cpus": "0-1",
         "memory_nodes": "0", "memory_max": "1048576"},
        {"index": 1, "address": "0000:22:00.0", "node": 0, "slice": "gpufleet-node0-gpu1.slice", "cpus": "2-3",
         "memory_nodes": "0", "memory_max": "2097152"},
        {"index": 2, "address": "0000:61:00.0", "node": 1, "slice": "gpufleet-node1-gpu2.slice", "cpus": "4-5",
         "memory_nodes": "1", "memory_max": None},
        {"index": 3, "address": "0000:01:00.0", "node": None, "slice": None},
    ],
    "nodes": [
        {"node": 0, "slice": "gpufleet-node0.slice", "cpus": "0-3", "memory_nodes": "0", "memory_max": None},
        {"node": 1, "slice": "gpufleet-node1.slice", "cpus": "4-5", "memory_nodes": "1", "memory_max": None},
    ],
    "housekeeping": "6-7",
}  # fmt: skip


def test_one_gpu_has_its_slice() -> None:
    place = gpu_run.choose(MAP, "1")
    assert (place["slice"], place["cpus"], place["mems"], place["gpus"]) == (
        "gpufleet-node0-gpu1.slice",
        "2-3",
        "0",
        [1],
    )
    assert place["properties"] == []


def test_several_gpus_of_a_node_share_a_scope_below_the_nodes_slice() -> None:
    place = gpu_run.choose(MAP, "0-1")
    assert place["slice"] == "gpufleet-node0.slice"
    assert place["properties"] == ["AllowedCPUs=0-3", "AllowedMemoryNodes=0", "MemoryMax=3145728"]


def test_gpus_of_several_nodes_share_a_scope_below_the_top() -> None:
    place = gpu_run.choose(MAP, "0,2")
    assert place["slice"] == "gpufleet.slice"
    assert place["properties"] == ["AllowedCPUs=0-1,4-5", "AllowedMemoryNodes=0-1"]


def test_a_node_without_a_gpu() -> None:
    place = gpu_run.choose(MAP, "node1")
    assert (place["slice"], place["gpus"]) == ("gpufleet-node1.slice", [])


@pytest.mark.parametrize(
    ("which", "says"),
    [
        ("4", "there is no GPU 4 on this host; there is: 0-3"),
        ("0-9", "no GPU 4-9"),
        ("3", r"GPU 3 \(0000:01:00.0\) has no slice.*numa_slices_gpus: \[\{index: 3, node: N\}\]"),
        ("0-3", "GPU 3 .* has no slice"),
        ("node7", "there is: node0, node1"),
        ("one", "is no list"),
        ("", "there is no GPU"),
    ],
)
def test_what_cannot_be_is_refused_with_what_to_type(which: str, says: str) -> None:
    with pytest.raises(gpu_run.Refused, match=says):
        gpu_run.choose(MAP, which)


def test_the_table_shows_who_has_what() -> None:
    table = gpu_run.show(MAP).splitlines()
    assert table[1].split()[:6] == ["GPU", "0", "0000:21:00.0", "0", "0-1", "0"]
    assert "none: its NUMA node is not known" in table[4]
    assert table[-1] == "kept for the system: CPUs 6-7"


def test_the_control_group_of_a_slice() -> None:
    folder = "/sys/fs/cgroup/gpufleet.slice/gpufleet-node0.slice/gpufleet-node0-gpu1.slice"
    assert gpu_run.folder_of("gpufleet-node0-gpu1.slice") == folder


def test_a_process_that_is_elsewhere_is_refused() -> None:
    inside = gpu_run.unpack(gpu_run.pack(gpu_run.choose(MAP, "0"), ["true"], True))
    gpu_run.check_confinement(inside, "Cpus_allowed_list:\t0-1\nMems_allowed_list:\t0\n")
    for status in (
        "Cpus_allowed_list:\t0-7\nMems_allowed_list:\t0\n",
        "Cpus_allowed_list:\t0-1\nMems_allowed_list:\t0-1\n",
    ):
        with pytest.raises(gpu_run.Refused, match="but the map says 0-1 and 0"):
            gpu_run.check_confinement(inside, status)


def test_words_with_dollars_and_blanks_reach_the_command_as_they_are() -> None:
    words = ["sh", "-c", "echo $HOME 'a b' %i\n"]
    assert gpu_run.unpack(gpu_run.pack(gpu_run.choose(MAP, "0"), words, True))["command"] == words
    command = gpu_run.scope_command(gpu_run.choose(MAP, "0"), words, "alice")
    assert "--slice=gpufleet-node0-gpu0.slice" in command and gpu_run.unpack(command[-1])["user"] == "alice"
    assert command[0] == "/usr/bin/systemd-run", "root takes no program from a PATH"
    assert not [word for word in command if "$" in word]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "say which GPU"),
        (["0"], "say which GPU"),
        (["0", "true"], "say which GPU"),
        (["0", "--"], "say which GPU"),
        (["--nice", "0", "--", "true"], "--nice is no option"),
        (["--user", "root", "--no-slice", "0", "--", "true"], "--user is for a slice"),
        (["--user", "no-such-user", "0", "--", "true"], "there is no user no-such-user"),
        (["--as-me", "0", "--", "true"], "--as-me is for sudo"),
    ],
)
def test_a_wrong_command_line_says_how_it_goes(words: list[str], says: str, capsys: Any) -> None:
    assert gpu_run.main(words) == 125
    assert says in capsys.readouterr().err


def test_without_a_map_it_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(gpu_run.Refused, match="run the role"):
        gpu_run.read_map(str(tmp_path / "none.json"))
    (tmp_path / "bad.json").write_text("[")
    with pytest.raises(gpu_run.Refused, match="again"):
        gpu_run.read_map(str(tmp_path / "bad.json"))
    (tmp_path / "other.json").write_text('{"format": 2}')
    with pytest.raises(gpu_run.Refused, match="another format"):
        gpu_run.read_map(str(tmp_path / "other.json"))


@pytest.fixture
def installed(tmp_path: Path) -> list[str]:
    """The program as the role installs it, with the map of a machine like this one."""
    cpu = min(os.sched_getaffinity(0))
    text = inspect.getsource(gpu_run).replace("/etc/gpufleet/gpu-map.json", str(tmp_path / "map.json"))
    (tmp_path / "gpu-run").write_text(text)
    row = '{"index": 0, "address": "x", "node": 0, "slice": "a.slice", "cpus": "%d", "memory_nodes": "0"}' % cpu
    (tmp_path / "map.json").write_text('{"format": 1, "gpus": [%s], "nodes": []}' % row)
    return [sys.executable, str(tmp_path / "gpu-run")]


def test_without_a_slice_it_binds_this_process_and_becomes_the_command(installed: list[str], tmp_path: Path) -> None:
    script = 'echo "$CUDA_DEVICE_ORDER $CUDA_VISIBLE_DEVICES $(pwd)"; grep Cpus_allowed_list /proc/self/status; exit 7'
    argv = [*installed, "--no-slice", "0", "--", "sh", "-c", script]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=tmp_path, check=False)
    if "memory cannot be bound" in done.stderr:
        pytest.skip("this machine's kernel has no memory policies: %s" % done.stderr)
    assert done.returncode == 7
    assert done.stdout.splitlines() == [
        "PCI_BUS_ID 0 %s" % tmp_path, "Cpus_allowed_list:\t%d" % min(os.sched_getaffinity(0)),
    ]  # fmt: skip


def test_a_command_that_is_not_there(installed: list[str]) -> None:
    done = subprocess.run(
        [*installed, "--no-slice", "0", "--", "no-such-command"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 127 or "memory cannot be bound" in done.stderr


def test_a_slice_that_is_not_active_says_what_to_type(installed: list[str]) -> None:
    done = subprocess.run([*installed, "0", "--", "true"], capture_output=True, text=True, check=False)
    assert done.returncode == 125
    assert "systemctl start a.slice" in done.stderr or "sudo gpu-run --user" in done.stderr


# sudo


@pytest.fixture
def as_root(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What would be started in the place of this process, called by sudo of user 65534."""
    started: list[list[str]] = []

    def note(command: Any, _environment: Any) -> None:
        started.append(list(command))
        raise SystemExit(0)

    monkeypatch.setattr(gpu_run.os, "geteuid", lambda: 0)
    monkeypatch.setattr(gpu_run, "read_map", lambda: MAP)
    monkeypatch.setattr(gpu_run, "become", note)
    monkeypatch.setattr(gpu_run.os.path, "isdir", lambda _path: True)
    monkeypatch.setenv("SUDO_UID", "65534")
    return started


@pytest.mark.parametrize("user", ["root", "0", "nobody"])
@pytest.mark.parametrize("order", [("--as-me", "--user"), ("--user", "--as-me")])
def test_a_rule_for_as_me_gives_nobody_else(
    as_root: list[list[str]], user: str, order: tuple[str, str], capsys: Any
) -> None:
    """A rule such as "gpu-run --as-me *" lets any words follow."""
    words = [word for option in order for word in ([option, user] if option == "--user" else [option])]
    assert gpu_run.main([*words, "0", "--", "id"]) == 125
    assert "say once who" in capsys.readouterr().err
    assert gpu_run.main(["--as-me", "--inside", gpu_run.pack(gpu_run.choose(MAP, "0"), ["id"], True)]) == 125
    assert as_root == []


def test_as_me_runs_the_command_as_the_caller_of_sudo(as_root: list[list[str]]) -> None:
    with pytest.raises(SystemExit):
        gpu_run.main(["--as-me", "0", "--", "id"])
    assert gpu_run.unpack(as_root[0][-1])["user"] == "nobody"


@pytest.mark.parametrize("uid", ["", "x", "-1", "4294967295", "99999999999", "1 0"])
def test_a_caller_that_is_none_is_refused(as_root: list[list[str]], uid: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_UID", uid)
    assert gpu_run.main(["--as-me", "0", "--", "id"]) == 125
    assert as_root == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
def test_a_user_has_no_group_of_root_and_no_way_back() -> None:
    script = (
        "import os, sys; sys.path.insert(0, sys.argv[1])\n"
        "import gpu_run; os.setgroups([0, 4, 27]); print(gpu_run.switch_to(gpu_run.account('nobody'))['USER'])\n"
        "print(os.getresuid(), os.getresgid(), [g for g in os.getgroups() if g in (0, 4, 27)])"
    )
    folder = os.path.dirname(inspect.getfile(gpu_run))
    done = subprocess.run([sys.executable, "-c", script, folder], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["nobody", "(65534, 65534, 65534) (65534, 65534, 65534) []"]
