# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The catalogue of GPUs: what a model is, how it can be told, and what of it is cut by design.

* ``name`` is what nvidia-smi prints.  The prefix "NVIDIA " came with R470 to R495; Volta and Turing cards are
  still called "Tesla ..." (R, M), so :func:`by_name` passes over both words.
* ``memory_mib`` is memory.total of drivers from R510 on.  Older ones leave the reserve out of it, and ECC takes
  about 6 percent of GDDR memory and nothing of HBM: both are among the alternates.  Compare with the tolerance.
* ``tdp_w`` is one board's figure: the same name is sold with others, so the limit of a card is compared with the
  default limit that the card itself reports, never with this.
* One device id can be two products (25b6 is A16 and A2), which the subsystem id tells apart.
* ``nvlink.links`` of ``nvlink.links_on_chip`` are in use by design: the rest of an A800, H800 or a bridged H100 is
  printed as inactive, with gaps in the numbering.  Rates are per link and direction, as `nvidia-smi nvlink -s` prints.
"""

from __future__ import annotations

import re
from typing import NamedTuple, Optional, Sequence, Tuple

from .rows import NOTE, SOURCE, UNVERIFIED, Column, Table

SOURCES = {
    "R": "README of NVIDIA/open-gpu-kernel-modules 595.45.04",
    "P": "pci.ids of pciutils/pciids c1c1254",
    "D": "nvvs/diag-skus.yaml.in of NVIDIA/DCGM 72fa3fe (its target power is the TDP or 1 W less)",
    "M": "a probe of 12 GPU types on driver 580.95.05 (F71609078484)",
    "W": "gpu.json of voidful/gpu-info-api, from Wikipedia",
    "X": "test data of influxdata/telegraf, plugins/inputs/nvidia_smi",
    "L": "https://www.textbookofai.com/glossary/nvlink.html",
    "C": "https://developer.nvidia.com/cuda-gpus and https://developer.nvidia.com/cuda-legacy-gpus",
    "A": "https://aiwiki.ai/wiki/nvidia_a800",
    "H": "https://www.philisun.com/technical-analysis/"
    "nvidia-h800-vs-h100-a-technical-deep-dive-into-politically-defined-ai-chips",
}
"""What the letters in ``source`` stand for; F and a number is a public sample by its number in the index searched."""

MEMORY_TOLERANCE = 0.02
"""Share by which memory.total may differ from a row: the driver's reserve moves by as much (A100 81920 or 81251)."""

CLASSES = ("datacenter", "workstation", "consumer")
ECC_KINDS = {
    "hbm_ecc": "always there, and costs no capacity",
    "inline_ecc": "on by default in data-centre cards, and costs capacity while it is on",
    "optional": "can be turned on with some models and drivers: off and not available are both in order",
    "none": "nvidia-smi prints N/A",
}


class NvLink(NamedTuple):
    """NVLink of a model: ``links`` in use by design, of ``links_on_chip``."""

    gen: int
    links: int
    links_on_chip: int
    rate_gbs: float
    total_gbs: float
    via: str


class Temperature(NamedTuple):
    """Thresholds in degrees Celsius, or as signed margins (T.Limit, degrees left) of Hopper, Ada and later."""

    shutdown_c: int
    slowdown_c: int
    max_operating_c: int
    memory_max_c: Optional[int] = None
    is_margin: bool = False


class Gpu(NamedTuple):
    name: str
    pci_id: str
    memory_mib: int
    memory_alternates_mib: Tuple[int, ...]
    bandwidth_gbs: Optional[float]
    architecture: str
    compute_capability: str
    pcie_gen: int
    pcie_width: int
    nvlink: Optional[NvLink]
    tdp_w: Optional[int]
    ecc: str
    gpu_class: str
    fp64_tflops: Optional[float]
    temperature: Optional[Temperature]
    unverified: Tuple[str, ...]
    source: str
    note: str = ""
    pcie_width_min: Optional[int] = None
    subsystem_ids: Tuple[str, ...] = ()
    fp64_note: str = ""
    memory_tolerance: float = MEMORY_TOLERANCE


# Nothing but name and PCI id has a source; the class follows from the name.
_REST_BUT_CAPABILITY = (
    "memory_mib", "memory_alternates_mib", "bandwidth_gbs", "pcie_gen", "pcie_width", "nvlink", "tdp_w", "ecc",
    "fp64_tflops", "temperature",
)  # fmt: skip
_REST = (*_REST_BUT_CAPABILITY, "architecture", "compute_capability")

_P100 = NvLink(1, 4, 4, 20, 160, "mesh")
_V100 = NvLink(2, 6, 6, 25.781, 300, "mesh or NVSwitch")
_V100_SXM3 = NvLink(2, 6, 6, 25.781, 300, "NVSwitch")
_A100 = NvLink(3, 12, 12, 25, 600, "NVSwitch or 4-GPU mesh")
_A100_PCIE = NvLink(3, 12, 12, 25, 600, "bridge pair")
_A800 = NvLink(3, 8, 12, 25, 400, "NVSwitch")
_A800_PCIE = NvLink(3, 8, 12, 25, 400, "bridge pair")
_A30 = NvLink(3, 4, 12, 25, 200, "bridge pair")
_GA102 = NvLink(3, 4, 4, 14.062, 112.5, "bridge pair")
_H100 = NvLink(4, 18, 18, 26.562, 900, "NVSwitch or 4-GPU mesh")
_HOPPER = NvLink(4, 18, 18, 26.562, 900, "NVSwitch")
_H100_PCIE = NvLink(4, 12, 18, 26.562, 600, "bridge pair")
_H800 = NvLink(4, 8, 18, 26.562, 400, "NVSwitch")
_H800_PCIE = NvLink(4, 8, 18, 26.562, 400, "bridge pair")
_H200_NVL = NvLink(4, 18, 18, 26.562, 900, "2- or 4-way bridge")
_BLACKWELL = NvLink(5, 18, 18, 53.125, 1800, "NVSwitch")
_NVL72 = NvLink(5, 18, 18, 53.125, 1800, "NVL72 switches")
_TU102 = NvLink(2, 2, 2, 25.781, 100, "bridge pair")
_T4_C = Temperature(96, 93, 85)
_A100_C = Temperature(92, 89, 85, 95)
_MARGIN_5 = Temperature(-5, -2, 0, is_margin=True)
_MARGIN_8 = Temperature(-8, -2, 0, is_margin=True)

# fmt: off
GPUS: Tuple[Gpu, ...] = (
    Gpu("Tesla P100-PCIE-16GB", "10de:15f8", 16384, (16280,), 732, "Pascal", "6.0", 3, 16, None, 250, "hbm_ecc", "datacenter", 4.67, None,
        ("memory_mib",), "P D W"),
    Gpu("Tesla P100-SXM2-16GB", "10de:15f9", 16384, (16280,), 732, "Pascal", "6.0", 3, 16, _P100, 300, "hbm_ecc", "datacenter", 5.3, None,
        ("memory_mib", "nvlink.rate_gbs"), "P D W L"),
    Gpu("Tesla P40", "10de:1b38", 24576, (22919, 24451), 346, "Pascal", "6.1", 3, 16, None, 250, "inline_ecc", "datacenter", 0.37, None,
        ("memory_mib",), "P D W"),
    Gpu("Tesla V100-SXM2-16GB", "10de:1db1", 16384, (16160, 16280), 900, "Volta", "7.0", 3, 16, _V100, 300, "hbm_ecc", "datacenter", 7.45, None,
        ("memory_mib",), "P D W; NVLink F35181931224"),
    Gpu("Tesla V100-SXM2-32GB", "10de:1db5", 32768, (32510,), 900, "Volta", "7.0", 3, 16, _V100, 300, "hbm_ecc", "datacenter", 7.45, None, (),
        "P D W; memory F70663680882; NVLink F20044510323"),
    Gpu("Tesla V100-SXM3-32GB", "10de:1db8", 32768, (), 981, "Volta", "7.0", 3, 16, _V100_SXM3, 350, "hbm_ecc", "datacenter", 7.8, None,
        _REST_BUT_CAPABILITY, "P D; capability C"),
    Gpu("Tesla V100-PCIE-16GB", "10de:1db4", 16384, (16160,), 900, "Volta", "7.0", 3, 16, None, 250, "hbm_ecc", "datacenter", 7.0, None,
        ("memory_mib",), "P D W"),
    Gpu("Tesla V100-PCIE-32GB", "10de:1db6", 32768, (32510,), 900, "Volta", "7.0", 3, 16, None, 250, "hbm_ecc", "datacenter", 7.0, None,
        ("memory_mib",), "P D W"),
    Gpu("Tesla V100S-PCIE-32GB", "10de:1df6", 32768, (), 1134, "Volta", "7.0", 3, 16, None, 250, "hbm_ecc", "datacenter", 8.2, None,
        ("bandwidth_gbs",), "P D"),
    Gpu("Tesla T4", "10de:1eb8", 15360, (15109,), 320, "Turing", "7.5", 3, 16, None, 70, "inline_ecc", "datacenter", 0.25, _T4_C, ("temperature",
        "tdp_w"), "R P W; memory M; temperature F22551222574 (the card was told by its idle draw of 14 W); D has a target of 65 W",
        note="many cloud boards wire the slot x8, and DCGM accepts that (D; aws/aws-k8s-tester#806)", pcie_width_min=8),
    Gpu("NVIDIA A100-SXM4-40GB", "10de:20b0", 40960, (40536, 40537), 1555, "Ampere", "8.0", 4, 16, _A100, 400, "hbm_ecc", "datacenter", 9.7, _A100_C,
        (), "R P D; memory M; bandwidth W; NVLink F60287269632; temperature F61411729947"),
    Gpu("NVIDIA A100-SXM4-80GB", "10de:20b2", 81920, (81251,), 2039, "Ampere", "8.0", 4, 16, _A100, 400, "hbm_ecc", "datacenter", 9.7, _A100_C, (),
        "R P D; memory M; NVLink F60287269632; temperature X a100-sxm4-v12.xml and F47337582899; bandwidth: cloud-atlas",
        note="subsystem 147F has a limit of 500 W (X)"),
    Gpu("NVIDIA A100-PCIE-40GB", "10de:20f1", 40960, (40536,), 1555, "Ampere", "8.0", 4, 16, _A100_PCIE, 250, "hbm_ecc", "datacenter", 9.7, _A100_C,
        ("nvlink.links", "nvlink.total_gbs", "tdp_w", "temperature"), "R P; bandwidth W; temperature by family",
        note="D has a target of 299 W for this id, reports from the field say 250 W"),
    Gpu("NVIDIA A100 80GB PCIe", "10de:20b5", 81920, (81251,), 1935, "Ampere", "8.0", 4, 16, _A100_PCIE, 300, "hbm_ecc", "datacenter", 9.7, _A100_C,
        ("bandwidth_gbs", "nvlink.links", "nvlink.total_gbs"), "R P D; memory F68922542039; temperature F30247287864"),
    Gpu("NVIDIA A800-SXM4-80GB", "10de:20f3", 81920, (81251,), 2039, "Ampere", "8.0", 4, 16, _A800, 400, "hbm_ecc", "datacenter", 9.7, _A100_C,
        ("temperature",), "R P D; memory F17388466366; links NV8 F59889546879; A; temperature by family",
        fp64_note="as fast as an A100: only NVLink is cut"),
    Gpu("NVIDIA A800-SXM4-40GB", "10de:20bd", 40960, (), 1555, "Ampere", "8.0", 4, 16, _A800, 400, "hbm_ecc", "datacenter", 9.7, _A100_C,
        ("memory_mib",), "R P D", fp64_note="as fast as an A100: only NVLink is cut"),
    Gpu("NVIDIA A800 80GB PCIe", "10de:20f5", 81920, (), 1935, "Ampere", "8.0", 4, 16, _A800_PCIE, 300, "hbm_ecc", "datacenter", 9.7, _A100_C,
        ("memory_mib", "nvlink.links", "nvlink.total_gbs"), "R P D", note="D accepts x8", pcie_width_min=8,
        fp64_note="as fast as an A100: only NVLink is cut"),
    Gpu("NVIDIA A800 40GB Active", "10de:20f6", 40960, (), 1555, "Ampere", "8.0", 4, 16, _A800_PCIE, 240, "hbm_ecc", "workstation", 9.7, None, _REST,
        "R P", fp64_note="as fast as an A100: only NVLink is cut"),
    Gpu("NVIDIA A30", "10de:20b7", 24576, (24258,), 933, "Ampere", "8.0", 4, 16, _A30, 165, "hbm_ecc", "datacenter", 5.2, None, ("nvlink.links",
        "nvlink.total_gbs"), "R P W; memory F48650967295; power D (20b7:1804 is 164)"),
    Gpu("NVIDIA A40", "10de:2235", 46068, (49140, 45634), 696, "Ampere", "8.6", 4, 16, _GA102, 300, "inline_ecc", "datacenter", 0.58, None, (),
        "R P D W; memory F66190976560; links by family"),
    Gpu("NVIDIA A10", "10de:2236", 23028, (22731, 24564), 600, "Ampere", "8.6", 4, 16, None, 150, "inline_ecc", "datacenter", 0.49, None, (),
        "R P D W; memory M"),
    Gpu("NVIDIA A10G", "10de:2237", 23028, (22731,), 600, "Ampere", "8.6", 4, 16, None, 300, "inline_ecc", "datacenter", 0.5, None, ("memory_mib",),
        "R P D", note="the card of AWS G5, where it is often wired x8", pcie_width_min=8),
    Gpu("NVIDIA A16", "10de:25b6", 15356, (), 200, "Ampere", "8.6", 4, 8, None, 62, "inline_ecc", "datacenter", 0.1, None, ("pcie_width",),
        "R P D W; memory F66582771166", note="four GPUs on one board of 250 W; D accepts x4", pcie_width_min=4, subsystem_ids=("10de:14a9",)),
    Gpu("NVIDIA A2", "10de:25b6", 15356, (), 200, "Ampere", "8.6", 4, 8, None, 60, "inline_ecc", "datacenter", 0.14, None, ("memory_mib",), "R P W",
        note="D has a target of 70 W and accepts x4", pcie_width_min=4, subsystem_ids=("10de:157e",)),
    Gpu("NVIDIA RTX A6000", "10de:2230", 49140, (48685, 46068), 768, "Ampere", "8.6", 4, 16, _GA102, 300, "inline_ecc", "workstation", 0.6, None,
        ("bandwidth_gbs",), "R P D; memory F62617535755; NVLink F39458001138"),
    Gpu("NVIDIA GeForce RTX 3090", "10de:2204", 24576, (24268,), 936, "Ampere", "8.6", 4, 16, _GA102, 350, "none", "consumer", 0.56, None,
        ("memory_mib", "bandwidth_gbs"), "R P; NVLink F2434274566"),
    Gpu("NVIDIA GeForce RTX 3080", "10de:2206", 10240, (10018,), 760, "Ampere", "8.6", 4, 16, None, 320, "none", "consumer", 0.46, None, _REST, "R P",
        note="device ids 220A and 2216 bear the same name"),
    Gpu("NVIDIA L40S", "10de:26b9", 46068, (49140,), 864, "Ada", "8.9", 4, 16, None, 350, "inline_ecc", "datacenter", 1.4, _MARGIN_5,
        ("bandwidth_gbs", "temperature"), "R P D; memory M"),
    Gpu("NVIDIA L40", "10de:26b5", 46068, (49140,), 864, "Ada", "8.9", 4, 16, None, 300, "inline_ecc", "datacenter", 1.4, None, ("memory_mib",),
        "R P D W"),
    Gpu("NVIDIA L20", "10de:26ba", 46068, (49140,), 864, "Ada", "8.9", 4, 16, None, 275, "inline_ecc", "datacenter", 0.9, None, ("bandwidth_gbs",),
        "R P; memory F67224533507; power D (26b7 is 275)"),
    Gpu("NVIDIA L4", "10de:27b8", 23034, (24564,), 300, "Ada", "8.9", 4, 16, None, 72, "inline_ecc", "datacenter", 0.49, None, ("tdp_w",),
        "R P W; memory M; D has a target of 75 W"),
    Gpu("NVIDIA L2", "10de:27b6", 24564, (), 300, "Ada", "8.9", 4, 16, None, 72, "inline_ecc", "datacenter", 0.4, None, ("memory_mib",
        "bandwidth_gbs"), "R P D"),
    Gpu("NVIDIA RTX 6000 Ada Generation", "10de:26b1", 49140, (46068,), 960, "Ada", "8.9", 4, 16, None, 300, "inline_ecc", "workstation", 1.4, None,
        ("bandwidth_gbs",), "R P; memory F52071799677; power: gpu_spec of ohdoking"),
    Gpu("NVIDIA GeForce RTX 4090", "10de:2684", 24564, (24080,), 1008, "Ada", "8.9", 4, 16, None, 450, "optional", "consumer", 1.3, None,
        ("bandwidth_gbs",), "R P; memory F71189052105; power and ECC state F42655319586, F16231259554",
        note="ECC is off when new; a 3090 prints N/A (F32453356199)"),
    Gpu("NVIDIA GeForce RTX 4090 D", "10de:2685", 24564, (), 1008, "Ada", "8.9", 4, 16, None, 425, "optional", "consumer", 1.1, None, _REST, "R P"),
    Gpu("NVIDIA GeForce RTX 4080 SUPER", "10de:2702", 16376, (), 736, "Ada", "8.9", 4, 16, None, 320, "none", "consumer", 0.8, None, _REST, "R P"),
    Gpu("NVIDIA H100 80GB HBM3", "10de:2330", 81559, (), 3350, "Hopper", "9.0", 5, 16, _H100, 700, "hbm_ecc", "datacenter", 34, _MARGIN_8, (),
        "R P D W; memory M; NVLink F1844595288; temperature F32796783472 (H100 class)"),
    Gpu("NVIDIA H100", "10de:2339", 95830, (), 2400, "Hopper", "9.0", 5, 16, _HOPPER, 700, "hbm_ecc", "datacenter", 34, None, _REST_BUT_CAPABILITY,
        "R P D; capability C", note="SXM5 with 94 GB of HBM2e"),
    Gpu("NVIDIA H100 PCIe", "10de:2331", 81559, (), 2039, "Hopper", "9.0", 5, 16, _H100_PCIE, 350, "hbm_ecc", "datacenter", 26, _MARGIN_8,
        ("temperature",), "R P D W; memory F56186888337; NVLink F18246131129; temperature by family", note="no link is active without bridges"),
    Gpu("NVIDIA H100 NVL", "10de:2321", 95830, (), 3938, "Hopper", "9.0", 5, 16, _H100_PCIE, 400, "hbm_ecc", "datacenter", 30, None, ("bandwidth_gbs",
        "nvlink.links", "nvlink.total_gbs"), "R P D; memory F5717978066"),
    Gpu("NVIDIA H800", "10de:2324", 81559, (), 3350, "Hopper", "9.0", 5, 16, _H800, 700, "hbm_ecc", "datacenter", 1, _MARGIN_8, (),
        "R P D W; memory F69541153581; links F19133948926; FP64 H", note="W still lists 29.65 TFLOPS of FP64",
        fp64_note="cut to about 1 TFLOPS, besides NVLink"),
    Gpu("NVIDIA H800 PCIe", "10de:2322", 81559, (), 2039, "Hopper", "9.0", 5, 16, _H800_PCIE, 350, "hbm_ecc", "datacenter", 1, None, ("nvlink.links",
        "nvlink.total_gbs", "memory_mib"), "R P", note="D has a target of 310 W", fp64_note="cut to about 1 TFLOPS, besides NVLink"),
    Gpu("NVIDIA H20", "10de:2329", 97871, (), 4000, "Hopper", "9.0", 5, 16, _HOPPER, 500, "hbm_ecc", "datacenter", 1, None, (),
        "R P D; memory and power F69432946739; NVLink F66467778056; bandwidth and FP64: a page of zangshuxian", fp64_note="cut to about 1 TFLOPS"),
    Gpu("NVIDIA H20-3e", "10de:232c", 143771, (), 4800, "Hopper", "9.0", 5, 16, _HOPPER, 500, "hbm_ecc", "datacenter", 1, None, ("bandwidth_gbs",),
        "R P D; memory F60976242793", fp64_note="cut to about 1 TFLOPS"),
    Gpu("NVIDIA H200", "10de:2335", 143771, (), 4800, "Hopper", "9.0", 5, 16, _HOPPER, 700, "hbm_ecc", "datacenter", 34, _MARGIN_8, ("bandwidth_gbs",
        "temperature"), "R P D; memory M; NVLink, PCIe and power: MLCommons system H200-SXM-141GBx8; temperature by family"),
    Gpu("NVIDIA H200 NVL", "10de:233b", 143771, (), 4800, "Hopper", "9.0", 5, 16, _H200_NVL, 600, "hbm_ecc", "datacenter", 30, None,
        _REST_BUT_CAPABILITY, "R P D; capability C"),
    Gpu("NVIDIA GH200 480GB", "10de:2342", 97871, (), 4000, "Hopper", "9.0", 5, 16, None, 900, "hbm_ecc", "datacenter", 34, None, (),
        "R P D; memory F25155291802", note="the CPU is reached over NVLink-C2C, so the PCIe width says little; D accepts x1", pcie_width_min=1,
        subsystem_ids=("10de:1809",)),
    Gpu("NVIDIA GH200 144G HBM3e", "10de:2348", 147456, (), 4900, "Hopper", "9.0", 5, 16, None, 900, "hbm_ecc", "datacenter", 34, None, ("memory_mib",
        "bandwidth_gbs"), "R P D"),
    Gpu("NVIDIA B200", "10de:2901", 183359, (182642,), 8000, "Blackwell", "10.0", 5, 16, _BLACKWELL, 1000, "hbm_ecc", "datacenter", 37, None,
        ("bandwidth_gbs",), "R P D; memory M; power F9174932594 (F56852142179 has 750 W)", note="device id 2909 is the HGX B200 with 168 GB"),
    Gpu("NVIDIA B300 SXM6 AC", "10de:3182", 275040, (), 8000, "Blackwell", "10.3", 6, 16, _BLACKWELL, 1100, "hbm_ecc", "datacenter", 1.2, None,
        ("pcie_gen", "pcie_width", "bandwidth_gbs", "fp64_tflops"), "R P D; memory M; NVLink F63125688786"),
    Gpu("NVIDIA GB200", "10de:2941", 189471, (188416,), 8000, "Blackwell", "10.0", 5, 16, _NVL72, 1200, "hbm_ecc", "datacenter", 40, None,
        ("bandwidth_gbs",), "R P D; memory F66353498064; NVLink F60966048525"),
    Gpu("NVIDIA GB300", "10de:31c2", 284208, (), 8000, "Blackwell", "10.3", 6, 16, _NVL72, 1400, "hbm_ecc", "datacenter", 1.3, None, ("pcie_gen",
        "pcie_width", "bandwidth_gbs"), "R P D; memory F65728986470"),
    Gpu("NVIDIA RTX PRO 6000 Blackwell Server Edition", "10de:2bb5", 97887, (97249,), 1597, "Blackwell", "12.0", 5, 16, None, 600, "inline_ecc",
        "datacenter", 2, _MARGIN_5, ("bandwidth_gbs", "temperature"), "R P D; memory M; temperature by X Max-Q sibling"),
    Gpu("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "10de:2bb1", 97887, (), 1792, "Blackwell", "12.0", 5, 16, None, 600, "inline_ecc",
        "workstation", 2, _MARGIN_5, ("memory_mib", "bandwidth_gbs", "tdp_w"), "R P; memory by sibling (X)"),
    Gpu("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "10de:2bb4", 97887, (), 1792, "Blackwell", "12.0", 5, 16, None, 300, "inline_ecc",
        "workstation", 2, _MARGIN_5, ("bandwidth_gbs",), "X pro-6000-maxq-blackwell-v13.xml; D", note="the limit can be set from 250 to 325 W (X)"),
    Gpu("NVIDIA GeForce RTX 5090", "10de:2b85", 32607, (), 1792, "Blackwell", "12.0", 5, 16, None, 575, "optional", "consumer", 1.6, _MARGIN_5,
        ("bandwidth_gbs", "tdp_w"), "R P; memory F55859864597"),
    Gpu("NVIDIA GeForce RTX 5090 D", "10de:2b87", 32607, (), 1792, "Blackwell", "12.0", 5, 16, None, 575, "optional", "consumer", 1.6, None, _REST,
        "R P"),
    Gpu("NVIDIA GeForce RTX 5080", "10de:2c02", 16303, (), 960, "Blackwell", "12.0", 5, 16, None, 360, "none", "consumer", 0.9, None,
        _REST_BUT_CAPABILITY, "R P; capability C"),
    Gpu("NVIDIA GeForce RTX 2080 Ti", "10de:1e07", 11264, (11019,), 616, "Turing", "7.5", 3, 16, _TU102, 250, "none", "consumer", 0.4, None, _REST,
        "R P; NVLink total: aliyun article 1642215"),
    Gpu("NVIDIA GeForce GTX 1080 Ti", "10de:1b06", 11264, (11178,), 484, "Pascal", "6.1", 3, 16, None, 250, "none", "consumer", 0.35, None,
        _REST_BUT_CAPABILITY, "P; capability C"),
)
# fmt: on


class VbiosFamily(NamedTuple):
    """First fields of vbios_version of some chips: tells a demand that no card of the model can meet."""

    prefix: str
    chips: Tuple[str, ...]
    example: str
    unverified: Tuple[str, ...]
    source: str


VBIOS_FAMILIES: Tuple[VbiosFamily, ...] = (
    VbiosFamily("92.00", ("GA100",), "92.00.36.00.02 of an A100-SXM4-80GB", (), "X a100-sxm4-v12.xml"),
    VbiosFamily(
        "98.02", ("GB202",), "98.02.6A.00.03 of an RTX PRO 6000 Max-Q", (), "X pro-6000-maxq-blackwell-v13.xml"
    ),
    VbiosFamily("94.02", ("GA102",), "RTX 3090, A40, A10", ("prefix", "chips"), "none found"),
    VbiosFamily("96.00", ("GH100",), "H100", ("prefix", "chips"), "none found"),
)

_ID = re.compile(r"(?:0x)?([0-9a-f]{4})(?:[: ]([0-9a-f]{4}))?")
_ID_OF_SMI = re.compile(r"(?:0x)?([0-9a-f]{4})([0-9a-f]{4})")
_FIRST_WORD = re.compile(r"(?:nvidia|tesla) +")


def normal_id(text: Optional[str]) -> str:
    """``10de:2330`` of 2330, 0x2330, 10DE:2330, or 0x233010DE as nvidia-smi prints it; empty for anything else."""
    word = (text or "").strip().lower()
    found = _ID.fullmatch(word)
    if found:
        return "%s:%s" % (found.group(1), found.group(2)) if found.group(2) else "10de:%s" % found.group(1)
    found = _ID_OF_SMI.fullmatch(word)
    return "%s:%s" % (found.group(2), found.group(1)) if found else ""


def all_by_pci_id(pci_id: Optional[str], rows: Sequence[Gpu] = GPUS) -> Tuple[Gpu, ...]:
    """Every product that bears this PCI id."""
    wanted = normal_id(pci_id)
    return tuple(gpu for gpu in rows if gpu.pci_id == wanted)


def by_pci_id(pci_id: Optional[str], subsystem_id: Optional[str] = None, rows: Sequence[Gpu] = GPUS) -> Optional[Gpu]:
    """The product of a PCI id; None when it is unknown, or could be several and the subsystem id does not tell."""
    found = all_by_pci_id(pci_id, rows)
    wanted = normal_id(subsystem_id)
    if wanted:
        exact = [gpu for gpu in found if wanted in gpu.subsystem_ids]
        found = tuple(exact or [gpu for gpu in found if not gpu.subsystem_ids])
    return found[0] if len(found) == 1 else None


def by_name(name: Optional[str], rows: Sequence[Gpu] = GPUS) -> Optional[Gpu]:
    """The model of a name as nvidia-smi prints it, with or without its first word."""
    wanted = plain_name(name)
    return next((gpu for gpu in rows if plain_name(gpu.name) == wanted), None) if wanted else None


def plain_name(name: Optional[str]) -> str:
    """A name without "NVIDIA" and "Tesla", in small letters."""
    words = " ".join((name or "").lower().split())
    return _FIRST_WORD.sub("", _FIRST_WORD.sub("", words + " ", 1), 1).strip()


def memory_fits(gpu: Gpu, memory_mib: int) -> bool:
    """Whether a size that nvidia-smi reports is one of the model's, within the tolerance."""
    sizes = (gpu.memory_mib, *gpu.memory_alternates_mib)
    return any(abs(memory_mib - size) <= size * gpu.memory_tolerance for size in sizes)


def narrowest_width(gpu: Gpu) -> int:
    """The narrowest PCIe width that is no fault of a model by itself."""
    return gpu.pcie_width_min or gpu.pcie_width


def inactive_links(gpu: Gpu) -> int:
    """How many links of the chip are out of use by design; all that it has is in ``nvlink.links_on_chip``."""
    return gpu.nvlink.links_on_chip - gpu.nvlink.links if gpu.nvlink else 0


def vbios_family(version: Optional[str]) -> Optional[VbiosFamily]:
    """The family of a VBIOS version such as 92.00.36.00.02."""
    fields = (version or "").strip().split(".")[:2]
    return next((family for family in VBIOS_FAMILIES if family.prefix.split(".") == fields), None)


_NVLINK_COLUMNS = {
    "gen": Column("int", "NVLink generation", True, 1, 9),
    "links": Column("int", "links in use by design", True, 1, 64),
    "links_on_chip": Column("int", "links that the chip has", True, 1, 64),
    "rate_gbs": Column("number", "GB/s of one link and direction, as nvidia-smi nvlink -s prints", True, 5, 1000),
    "total_gbs": Column("number", "GB/s of all links in both directions", True, 10, 50000),
    "via": Column("text", "what joins the GPUs: NVSwitch, bridge pair, mesh", True),
}
_TEMPERATURE_COLUMNS = {
    "shutdown_c": Column("int", "degrees Celsius, or margin", True, -50, 150),
    "slowdown_c": Column("int", "degrees Celsius, or margin", True, -50, 150),
    "max_operating_c": Column("int", "degrees Celsius, or margin", True, -50, 150),
    "memory_max_c": Column("int", "degrees Celsius, or margin", False, -50, 150),
    "is_margin": Column("flag", "whether these are margins (T.Limit)"),
}
COLUMNS = {
    "name": Column("text", "as nvidia-smi prints it", True),
    "pci_id": Column("pci_id", "vendor and device", True),
    "subsystem_ids": Column("pci_ids", "where the device id alone does not tell"),
    "gpu_class": Column("text", "product line", True, choices=CLASSES),
    "architecture": Column("text", "architecture", True),
    "compute_capability": Column("version", "compute capability", True),
    "memory_mib": Column("int", "MiB, memory.total of nvidia-smi", True, 1024, 4194304),
    "memory_alternates_mib": Column("ints", "MiB, other sizes seen", False, 1024, 4194304),
    "memory_tolerance": Column("number", "share by which it may differ, 0.02 is 2 percent", False, 0, 0.2),
    "bandwidth_gbs": Column("number", "GB/s, peak of the memory", False, 50, 100000),
    "pcie_gen": Column("int", "PCIe generation", True, 1, 8),
    "pcie_width": Column("int", "PCIe lanes", True, choices=(1, 2, 4, 8, 16)),
    "pcie_width_min": Column("int", "PCIe lanes, the fewest that are no fault", False, choices=(1, 2, 4, 8, 16)),
    "nvlink": Column("row", "NVLink", inner=(NvLink, _NVLINK_COLUMNS)),
    "tdp_w": Column("int", "W, default limit of one board", False, 10, 5000),
    "ecc": Column("text", "kind of ECC", True, choices=tuple(ECC_KINDS)),
    "fp64_tflops": Column("number", "TFLOPS in double precision", False, 0.01, 1000),
    "fp64_note": Column("text", "whether double precision is cut"),
    "temperature": Column("row", "thresholds", inner=(Temperature, _TEMPERATURE_COLUMNS)),
    "note": NOTE,
    "unverified": UNVERIFIED,
    "source": SOURCE,
}
TABLE = Table("gpus", "GPUs", Gpu, COLUMNS, ("name",), GPUS, SOURCES)
