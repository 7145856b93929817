# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All tables together, with the rows that operators add."""

from __future__ import annotations

from typing import Any, Dict, Mapping, NamedTuple, Tuple

from .._engine.values import BadWant
from .cpu_memory import TABLE as CPU_MEMORY
from .cpu_memory import CpuMemory
from .cuda import FAMILY_TABLE, TOOLKIT_TABLE, Family, Toolkit
from .cudnn import TABLE as CUDNN
from .cudnn import Cudnn
from .driver_branches import ARCHITECTURE_TABLE, BRANCH_TABLE, Architecture, Branch
from .frameworks import TENSORFLOW_TABLE, TORCH_TABLE, TensorFlow, Torch
from .gpus import TABLE as GPUS
from .gpus import Gpu
from .nccl import TABLE as NCCL
from .nccl import Nccl
from .nvlink import TABLE as NVLINKS
from .nvlink import Generation
from .nvswitch import TABLE as NVSWITCHES
from .nvswitch import System
from .pcie import TABLE as PCIE
from .pcie import Rate
from .rows import Table, merged
from .xids import TABLE as XIDS
from .xids import Xid


class Catalogue(NamedTuple):
    """The rows of every table: hand them to a look-up as ``rows``."""

    gpus: Tuple[Gpu, ...] = GPUS.rows
    nvswitches: Tuple[System, ...] = NVSWITCHES.rows
    nvlinks: Tuple[Generation, ...] = NVLINKS.rows
    cuda_families: Tuple[Family, ...] = FAMILY_TABLE.rows
    cuda_toolkits: Tuple[Toolkit, ...] = TOOLKIT_TABLE.rows
    driver_branches: Tuple[Branch, ...] = BRANCH_TABLE.rows
    architectures: Tuple[Architecture, ...] = ARCHITECTURE_TABLE.rows
    cudnn: Tuple[Cudnn, ...] = CUDNN.rows
    nccl: Tuple[Nccl, ...] = NCCL.rows
    torch: Tuple[Torch, ...] = TORCH_TABLE.rows
    tensorflow: Tuple[TensorFlow, ...] = TENSORFLOW_TABLE.rows
    cpu_memory: Tuple[CpuMemory, ...] = CPU_MEMORY.rows
    pcie: Tuple[Rate, ...] = PCIE.rows
    xids: Tuple[Xid, ...] = XIDS.rows


TABLES: Dict[str, Table] = {
    table.name: table
    for table in (
        GPUS, NVSWITCHES, NVLINKS, FAMILY_TABLE, TOOLKIT_TABLE, BRANCH_TABLE, ARCHITECTURE_TABLE, CUDNN, NCCL,
        TORCH_TABLE, TENSORFLOW_TABLE, CPU_MEMORY, PCIE, XIDS,
    )
}  # fmt: skip


def catalogue(given: Any = None, variable: str = "tables") -> Catalogue:
    """The built-in tables with an operator's rows: a mapping from the name of a table to a list of rows.

    :param variable: the option that holds them, for messages.
    :raises BadWant: for an unknown table, a misspelt key, a wrong type or unit, a missing or doubled key.
    """
    if given is None:
        return Catalogue()
    if not isinstance(given, Mapping):
        raise BadWant(variable, given, "a mapping with the keys %s" % ", ".join(TABLES))
    for name in given:
        if name not in TABLES:
            raise BadWant(variable, name, "the keys %s" % ", ".join(TABLES))
    new = {
        name: merged(TABLES[name], rows, "%s.%s" % (variable, name)) for name, rows in given.items() if rows is not None
    }
    return Catalogue()._replace(**new)
