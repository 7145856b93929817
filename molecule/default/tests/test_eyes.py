# Copyright: (c) 2026, gpufleet.host contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each trouble that the simulated nvidia-smi can have is found for what it is, on the GPU that has it, and nothing else."""

from __future__ import annotations

import base64
import json
from typing import Any, Iterator

import pytest
from lab_host import play

from lab.simulated.smi.troubles import FILE

# What a finding is about: GPUs by their PCI address, in the order of nvidia-smi.
GPU0, GPU1, GPU2, GPU3 = "0000:01:00.0", "0000:21:00.0", "0000:22:00.0", "0000:61:00.0"
HOST = "host"

# (name, what the simulation is told, what the audit has to say of it)
TROUBLES: tuple[tuple[str, dict[str, Any], set[tuple[str, str]]], ...] = (
    ("lost", {"gpus": {"1": {"lost": "missing"}}}, {("platform.gpu-missing", GPU1)}),
    ("hung", {"hang": "deaf"}, {("platform.nvidia-smi-hung", HOST)}),
    ("model", {"gpus": {"1": {"model": "A800-SXM4-80GB"}}}, {("platform.gpu-model", GPU1)}),
    ("link", {"gpus": {"2": {"inactive_links": [4]}}}, {("platform.nvlink-inactive", GPU2)}),
    ("width", {"gpus": {"1": {"width": 8}}}, {("platform.link-width", GPU1)}),
    ("driver", {"driver": "mismatch"}, {("platform.driver-mismatch", "driver"), ("platform.nvidia-smi-unseen", HOST)}),
    ("error", {"gpus": {"2": {"error": "Unknown Error"}}}, {("platform.gpu-reset", GPU2)}),
    ("reset", {"gpus": {"0": {"error": "GPU requires reset"}}}, {("platform.gpu-reset", GPU0)}),
    ("ecc", {"gpus": {"3": {"ecc": "off"}}}, {("platform.ecc-off", GPU3)}),
    ("fabric", {"gpus": {"2": {"fabric": "In Progress"}}}, {("platform.nvlink-fabric", GPU2)}),
    # One in error hides none of the others.
    (
        "several",
        {"gpus": {"0": {"error": "ERR!"}, "1": {"lost": "missing"}, "2": {"ecc": "off"}, "3": {"inactive_links": [0]}}},
        {
            ("platform.gpu-reset", GPU0),
            ("platform.gpu-missing", GPU1),
            ("platform.ecc-off", GPU2),
            ("platform.nvlink-inactive", GPU3),
        },
    ),
)


def findings(name: str) -> set[tuple[str, str]]:
    """(id, subject) of what the audit of this area holds against the host."""
    run = play("playbooks/audit.yml", "eyes-" + name, "--tags", "platform")
    assert list(run.report["areas"]) == ["platform"], run.output
    found = run.report["areas"]["platform"]["findings"]
    return {(finding["id"], finding["subject"]) for finding in found if finding["level"] != "info"}


@pytest.fixture(scope="module")
def healthy(gpu1: Any) -> Iterator[set[tuple[str, str]]]:
    """What is said of the host without any trouble: what the lab has not got, such as a driver's module."""
    gpu1.check_output("rm -rf %s" % FILE.rpartition("/")[0])
    yield findings("healthy")
    gpu1.check_output("rm -rf %s" % FILE.rpartition("/")[0])


@pytest.mark.parametrize(("name", "told", "expected"), TROUBLES, ids=[name for name, _told, _expected in TROUBLES])
def test_a_trouble_is_found(
    gpu1: Any, healthy: set[tuple[str, str]], name: str, told: dict[str, Any], expected: set[tuple[str, str]]
) -> None:
    packed = base64.b64encode(json.dumps(told).encode()).decode()
    gpu1.check_output("install -d $(dirname %s) && echo %s | base64 -d >%s" % (FILE, packed, FILE))
    assert findings(name) - healthy == expected


def test_a_hung_one_leaves_no_process_behind(gpu1: Any, healthy: set[tuple[str, str]]) -> None:
    gpu1.check_output("rm -f %s" % FILE)
    gpu1.check_output("for i in $(seq 10); do pgrep -x nvidia-smi >/dev/null || exit 0; sleep 1; done; exit 1")


def test_nothing_is_left_of_the_troubles(healthy: set[tuple[str, str]]) -> None:
    assert findings("over") == healthy
