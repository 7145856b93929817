# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How GPUs of the bus and of nvidia-smi are joined, and small questions that several judges ask."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import platform_cases
import pytest

from ansible_collections.gpufleet.host.plugins.module_utils._areas.platform import AREA
from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import MemoHost
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import Unknown
from ansible_collections.gpufleet.host.plugins.module_utils._observe.nvidia_values import Gpu
from ansible_collections.gpufleet.host.plugins.module_utils._plan import platform_bios, platform_links
from ansible_collections.gpufleet.host.plugins.module_utils._plan.platform_common import (
    address_key,
    cards,
    is_bare_metal,
    number,
)


@pytest.fixture
def have(tmp_path: Path) -> dict[str, Any]:
    host = platform_cases.host_of({}, tmp_path)
    return dict(AREA.observe(MemoHost(host), platform_cases.want_of()))


def told(have: dict[str, Any]) -> list[tuple[str, bool, bool, str]]:
    found = cards({"tables": {}}, have)
    return [
        (card.address, card.device is not None, card.gpu is not None, card.model.name if card.model else "")
        for card in found
    ]


H100 = "NVIDIA H100 80GB HBM3"


def test_both_sources_make_one_card(have: dict[str, Any]) -> None:
    assert told(have) == [("0000:19:00.0", True, True, H100), ("0000:9b:00.0", True, True, H100)]


def test_either_source_alone_makes_cards(have: dict[str, Any]) -> None:
    assert told({**have, "smi": Unknown("hung")}) == [
        ("0000:19:00.0", True, False, H100), ("0000:9b:00.0", True, False, H100),
    ]  # fmt: skip
    assert told({**have, "gpus": Unknown("unseen")}) == [
        ("0000:19:00.0", False, True, H100), ("0000:9b:00.0", False, True, H100),
    ]  # fmt: skip
    assert told({**have, "smi": Unknown("hung"), "gpus": Unknown("unseen")}) == []


def test_gpus_without_an_address_are_counted(have: dict[str, Any]) -> None:
    nameless = tuple(replace(gpu, address=Unknown("not there"), index=Unknown("not there")) for gpu in have["smi"].gpus)
    seen = {**have, "gpus": Unknown("unseen"), "smi": replace(have["smi"], gpus=nameless)}
    assert [row[0] for row in told(seen)] == ["GPU 0", "GPU 1"]


def test_a_stand_in_is_what_nvidia_smi_calls_it(have: dict[str, Any]) -> None:
    """A function of another vendor that is matched as a GPU."""
    devices = [replace(device, vendor_id="1b36", device_id="0005") for device in have["gpus"]]
    assert [row[3] for row in told({**have, "gpus": devices})] == [H100, H100]


def test_the_order_is_that_of_cuda() -> None:
    addresses = ["GPU 0", "0000:9b:00.0", "0001:01:00.0", "0000:19:00.0", "10000:01:00.0", "0000:19:00.1"]
    assert sorted(addresses, key=address_key) == [
        "0000:19:00.0", "0000:19:00.1", "0000:9b:00.0", "0001:01:00.0", "10000:01:00.0", "GPU 0",
    ]  # fmt: skip


def test_only_a_word_of_the_firmware_makes_bare_metal() -> None:
    assert [is_bare_metal({"virtualization": word}) for word in ("none", "kvm", None)] == [True, False, False]
    assert [number(value) for value in (3, 2.5, None, Unknown("x"))] == [3.0, 2.5, 0.0, 0.0]


@pytest.mark.parametrize(
    ("pstate", "idle", "sign"),
    [
        ("P0", False, ""),
        ("P2", None, ""),
        ("P8", False, "performance state P8"),
        ("P5", None, "performance state P5"),
        ("P0", True, "event reason gpu_idle"),
        (Unknown("not there"), True, "event reason gpu_idle"),
        (Unknown("not there"), False, None),
        (Unknown("not there"), None, None),
        ("P99x", None, None),
    ],
)
def test_signs_of_an_idle_gpu(pstate: Any, idle: Any, sign: Any) -> None:
    gpu = Gpu(pstate=pstate, event_reasons={"gpu_idle": Unknown("not there") if idle is None else idle})
    assert platform_links.idle_sign(gpu) == sign


def test_without_nvidia_smi_there_is_no_sign() -> None:
    assert platform_links.idle_sign(None) is None


@pytest.mark.parametrize(
    ("cpus", "sockets", "count"),
    [
        ([{0, 1}, {2, 3}], 2, 1),
        ([{0}, {1}, {2}, {3}], 1, 4),
        ([{0}, {1}, {2}], 2, None),
        ([{0}, set(), set()], 1, 1),
        ([{0}, Unknown("unseen")], 1, 1),
        ([{0}], 0, None),
        ([], 1, None),
    ],
)
def test_nodes_per_socket(cpus: list[Any], sockets: int, count: Any) -> None:
    nodes = [SimpleNamespace(cpus=frozenset(one) if isinstance(one, set) else one) for one in cpus]
    assert platform_bios.nodes_per_socket({"nodes": nodes, "sockets": sockets}) == count
