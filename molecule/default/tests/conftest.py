# Copyright: (c) 2026, gpufleet.host contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The hosts of the lab as testinfra sees them."""

from __future__ import annotations

from typing import Any

import pytest
from lab_host import NAME, connect


@pytest.fixture(scope="session")
def gpu1() -> Any:
    return connect(NAME)


@pytest.fixture(scope="session")
def refuse1() -> Any:
    return connect("lab-refuse1")
