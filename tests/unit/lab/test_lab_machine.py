# Copyright: (c) 2026, gpufleet.host contributors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from lab import machine
from lab.base import LabError, tail, tail_file
from lab.hosts import GPU_HOST, REFUSE_HOST
from lab.image import Image
from lab.machine import Machine


@pytest.fixture
def one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setenv("GPUFLEET_LAB_DIR", str(tmp_path))
    monkeypatch.delenv("GPUFLEET_LAB_PORT_LAB_GPU1", raising=False)
    made = Machine(GPU_HOST)
    made.paths.folder.mkdir()
    return made


@pytest.mark.parametrize(
    "text", ["", "garbage", "999999999", str(os.getpid())], ids=["empty", "garbage", "gone", "other"]
)
def test_only_a_process_that_carries_our_pid_file_is_ours(one: Machine, text: str) -> None:
    """The last case: the number was given to another process since."""
    one.paths.pid.write_text(text)
    assert one.pid is None


def test_the_port_of_a_stopped_host_is_that_of_the_table(one: Machine) -> None:
    one.paths.state.write_text('{"port": 4711}')
    assert one.port == 22201


def test_a_stopped_host_is_left_alone(one: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    machine.down(one)
    assert "lab-gpu1 is not running" in capsys.readouterr().out


def test_plug_says_what_to_do_when_it_cannot(one: Machine) -> None:
    with pytest.raises(LabError) as stopped:
        machine.plug(one)
    assert stopped.value.hint == "run: lab/lab.py up lab-gpu1"
    with pytest.raises(LabError, match="no disk to hot-plug"):
        machine.plug(Machine(REFUSE_HOST))


def test_a_running_host_is_reused(
    one: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Machine, "pid", property(lambda _self: 4711))
    for name in ("wait", "_provision", "_simulate"):
        monkeypatch.setattr(machine, name, lambda _machine: None)
    monkeypatch.setattr(machine, "settle", lambda _machine: "running")
    machine.up(one, Image(Path("/nowhere"), "0123456789ab"))
    assert "lab-gpu1 is already running (pid 4711): reused" in capsys.readouterr().out


def test_a_host_with_gpus_is_given_the_simulated_nvidia_smi_once(
    one: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(machine, "ssh_argv", lambda _machine, *words: ["sh", "-c", *words])
    monkeypatch.setattr(machine, "_SIMULATED", str(tmp_path / "simulated"))
    monkeypatch.setattr(machine, "_NVIDIA_SMI", str(tmp_path / "nvidia-smi"))
    machine._simulate(one)
    assert "has the simulated nvidia-smi" in capsys.readouterr().out
    done = subprocess.run([str(tmp_path / "nvidia-smi"), "--version"], capture_output=True, text=True)
    assert done.stdout.startswith("NVIDIA-SMI version"), done.stderr
    before = (tmp_path / "simulated/digest").stat().st_mtime_ns
    machine._simulate(one)
    assert capsys.readouterr().out == ""
    assert (tmp_path / "simulated/digest").stat().st_mtime_ns == before
    (tmp_path / "simulated/digest").write_text("another\n")
    machine._simulate(one)
    assert "has the simulated nvidia-smi" in capsys.readouterr().out


def test_a_host_that_takes_no_files_is_named(one: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "ssh_argv", lambda _machine, *words: ["sh", "-c", "echo full disk >&2; exit 1"])
    with pytest.raises(LabError, match="full disk"):
        machine._simulate(one)


def test_a_failed_boot_shows_the_serial_line_and_the_log(one: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_answers", lambda _port: False)
    one.paths.serial_log.write_text("Booting\nKernel panic - not syncing\n")
    with pytest.raises(LabError, match="Kernel panic") as failed:
        machine.wait(one)
    assert str(one.paths.serial_log) in failed.value.hint


def test_the_tail_of_a_log_has_no_control_characters(tmp_path: Path) -> None:
    log = tmp_path / "serial.log"
    log.write_bytes(b"one\n\x1b[2Jtwo\n\n\n")
    assert tail_file(log, 1).strip() == "[2Jtwo"
    assert tail_file(tmp_path / "none") == ""
    assert tail("a\nb\nc\n", 2).split() == ["b", "c"]
