# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a host is made of in short rows; what is not known is left out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpufleet.host.plugins.plugin_utils import fleet_facts, fleet_hardware
from ansible_collections.gpufleet.host.plugins.plugin_utils import fleet_links as links
from tests import fleet_sample as sample
from tests.page import hosts


def rows(facts: dict[str, Any]) -> dict[str, str]:
    return dict(fleet_facts.fact_rows(facts, fleet_hardware.devices(facts, links.Judgements())))


def test_a_whole_machine_in_a_few_rows() -> None:
    assert rows(hosts.hgx_facts()) == {
        "Machine": "Dell Inc. PowerEdge XE9680 (7XK2Q04)",
        "System": "Ubuntu 22.04.4 LTS",
        "Kernel": "5.15.0-105-generic",
        "CPU": "Intel(R) Xeon(R) Platinum 8480+",
        "Cores": "2 sockets, 112 cores, 224 threads",
        "Memory": "2016 GiB: 32 × 64 GiB DDR5 at 4400 MT/s",
        "GPUs": "8 × H100 80GB HBM3",
        "NICs": "8 × ConnectX-7, 2 × ConnectX-6 Dx",
        "NVMe": "8 × 3.84 TB",
        "Power": "6 × 2800 W, 1 not ok",
        "Firmware": "BIOS 2.1.5 (03/20/2024), BMC 7.10.30.00",
    }


def test_no_gpu_is_told_apart_from_nobody_looked() -> None:
    assert rows(hosts.no_gpu()["host_facts"])["GPUs"] == "none"
    assert "GPUs" not in rows(hosts.facts("x"))
    assert rows(hosts.facts("x", hardware=hosts.hardware(gpus=[])))["GPUs"] == "none"


def test_an_old_report_keeps_its_rows() -> None:
    found = rows(sample.host_facts("gpu01"))
    assert found["Memory"] == "441 GiB" and found["GPUs"] == "4 × NVIDIA 20b5"
    assert "Virtual machine" not in found and "Machine" not in found


@pytest.mark.parametrize(
    "psus, words",
    [
        (None, None),
        ([], None),
        ([{"present": True, "ok": True, "capacity_w": None}], "1 × supply"),
        ([{"present": True, "ok": None, "capacity_w": 800}, {"present": False}], "1 × 800 W, 1 unknown"),
    ],
)
def test_supplies(psus: Any, words: str | None) -> None:
    assert rows(hosts.facts("x", hardware=hosts.hardware(psus=psus))).get("Power") == words


def test_memory_of_half_the_nodes_is_no_total() -> None:
    facts = sample.host_facts("gpu01")
    facts["numa_nodes"][1]["memory_mib"] = None
    assert "Memory" not in rows(facts)


LEAF = st.none() | st.booleans() | st.integers(-5, 10**12) | st.floats() | st.text(max_size=5)
JUNK = st.recursive(
    LEAF, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
)


@given(
    st.dictionaries(st.sampled_from(["os", "cpu", "kernel", "numa_nodes", "virtualization", "hardware", "pci"]), JUNK)
)
def test_any_facts_give_rows_of_text(facts: dict[str, Any]) -> None:
    assert all(name and words for name, words in rows(facts).items())
