# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names of parts as orders, drivers and firmware write them."""

from __future__ import annotations

import pytest

from ansible_collections.gpufleet.host.plugins.module_utils._tables.gpus import GPUS
from ansible_collections.gpufleet.host.plugins.plugin_utils import order_parts as parts


@pytest.mark.parametrize("row", GPUS, ids=lambda row: row.name)
def test_the_name_that_nvidia_smi_prints_means_its_model(row: parts.Gpu) -> None:
    assert parts.gpu_of_order(row.name) == row
    assert parts.gpu_by_name(row.name) == row


@pytest.mark.parametrize(
    ("sold_as", "name"),
    [
        ("H100 SXM 80 GB", "NVIDIA H100 80GB HBM3"),
        ("H100 SXM5 80GB", "NVIDIA H100 80GB HBM3"),
        ("NVIDIA HGX H100 80 GiB", "NVIDIA H100 80GB HBM3"),
        ("H100 PCIe", "NVIDIA H100 PCIe"),
        ("H100 NVL 94 GB", "NVIDIA H100 NVL"),
        ("H200 SXM 141 GB", "NVIDIA H200"),
        ("A100 SXM 40 GB", "NVIDIA A100-SXM4-40GB"),
        ("A100-SXM4-80GB", "NVIDIA A100-SXM4-80GB"),
        ("A100 PCIe 80 GB", "NVIDIA A100 80GB PCIe"),
        ("A800 SXM4 80GB", "NVIDIA A800-SXM4-80GB"),
        ("V100 SXM2 32 GB", "Tesla V100-SXM2-32GB"),
        ("T4 16 GB", "Tesla T4"),
        ("A40 48GB", "NVIDIA A40"),
        ("L40S", "NVIDIA L40S"),
        ("B200 180 GB", "NVIDIA B200"),
        ("B200 192 GB", "NVIDIA B200"),
        ("RTX PRO 6000 Blackwell Server Edition", "NVIDIA RTX PRO 6000 Blackwell Server Edition"),
    ],
)
def test_the_name_that_a_model_is_sold_by_means_it(sold_as: str, name: str) -> None:
    found = parts.gpu_of_order(sold_as)
    assert found is not None and found.name == name
    assert parts.several_gpus(sold_as) == ()


@pytest.mark.parametrize("name", ["H100", "H800", "A100", "A100 80 GB", "V100 32GB", "H20", "RTX 4090"])
def test_a_name_of_several_models_means_none(name: str) -> None:
    assert parts.gpu_of_order(name) is None
    assert len(parts.several_gpus(name)) > 1


@pytest.mark.parametrize("name", ["", "X100", "NVIDIA", "H100 SXM 40 GB", None])
def test_a_name_of_nothing_means_nothing(name: str | None) -> None:
    assert parts.gpu_of_order(name) is None and parts.several_gpus(name) == ()


def test_a_name_nearly_right_has_a_nearest() -> None:
    assert parts.nearest_gpu("NVIDIA H100 80GB HMB3") == "NVIDIA H100 80GB HBM3"
    assert parts.nearest_gpu("something else") == ""


@pytest.mark.parametrize(
    ("ordered", "delivered", "same"),
    [
        ("Xeon Platinum 8480+", "Intel(R) Xeon(R) Platinum 8480+", True),
        ("Xeon Platinum 8480+", "INTEL(R) XEON(R) PLATINUM 8480C", False),
        ("Xeon Platinum 8480", "Intel(R) Xeon(R) Platinum 8480+", False),
        ("EPYC 9654", "AMD EPYC 9654 96-Core Processor", True),
        ("EPYC 9654", "AMD EPYC 9654P 96-Core Processor", False),
        ("AMD EPYC™ 7763", "AMD EPYC 7763 64-Core Processor                ", True),
        ("Intel Xeon Gold 6230N CPU @ 2.30GHz", "Intel(R) Xeon(R) Gold 6230N CPU @ 2.30GHz", True),
        ("Grace", "Neoverse-V2", False),
        ("Intel CPU", "Intel(R) Xeon(R) Gold 6230N CPU @ 2.30GHz", False),
    ],
)
def test_processors_are_compared_without_makers_signs(ordered: str, delivered: str, same: bool) -> None:
    assert parts.is_cpu(ordered, delivered) == same


@pytest.mark.parametrize(
    ("model", "ids"),
    [
        ("ConnectX-7", {"15b3:1021"}),
        ("NVIDIA ConnectX-7 NDR 400 Gb/s", {"15b3:1021"}),
        ("ConnectX-6", {"15b3:101b"}),
        ("Mellanox ConnectX-6 Dx 2x100GbE", {"15b3:101d"}),
        ("BlueField-3", {"15b3:a2dc"}),
        ("ConnectX", set()),
        ("ConnectX-70", set()),
        ("Intel X710", set()),
    ],
)
def test_the_longer_of_two_names_of_a_card_is_meant(model: str, ids: set[str]) -> None:
    assert parts.nic_ids(model) == ids


@pytest.mark.parametrize(
    ("have", "least", "answer"),
    [
        ("2.1", "2.1", True),
        ("2.14.2", "2.9.0", True),
        ("2.9.0", "2.14.2", False),
        ("1.10", "1.9", True),
        ("1.6a", "1.6", True),
        ("1.6", "1.6a", False),
        ("1.6b", "1.6a", True),
        ("01.03.18", "1.3.15", True),
        ("v2.3", "2.1", True),
        ("T24 v2.10", "T24 v2.9", True),
        ("U54 v2.10", "T24 v2.9", None),
        ("28.39.2048 (MT_0000000838)", "28.39.1002", True),
        ("GDC5602Q", "GDC5302Q", True),
        ("GDC5602Q", "EPK5302Q", None),
        ("unknown", "1.0", None),
        ("", "1.0", None),
    ],
)
def test_versions_are_compared_as_people_count_them(have: str, least: str, answer: bool | None) -> None:
    assert parts.is_at_least(have, least) is answer


@pytest.mark.parametrize(
    ("have", "answer"),
    [("96.00.89.00.01", True), ("96.00.A5.00.01", True), ("96.00.74.00.05", False), ("92.00.36.00.02", None),
     ("96.10.00.00.00", True), ("N/A", None)],
)  # fmt: skip
def test_vbios_versions_are_of_one_chip_and_hexadecimal(have: str, answer: bool | None) -> None:
    assert parts.is_vbios_at_least(have, "96.00.89.00.01") is answer


@pytest.mark.parametrize(
    ("text", "date"), [("08/25/2025", "2025-08-25"), ("2025-08-25", "2025-08-25"), ("25.08.2025", ""), ("", "")]
)
def test_dates_of_the_firmware(text: str, date: str) -> None:
    assert parts.iso_date(text) == date
