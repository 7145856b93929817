# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpufleet.host.plugins.module_utils._observe import modules


def test_options_with_quotes_and_continued_lines() -> None:
    text = (
        "# options no this=1\nblacklist nouveau\n"
        'options nvidia NVreg_RegistryDwords="RMForceStaticBar1=1;RmForceDisableIomapWC=1;" \\\n  NVreg_EnableResizableBar=1\n'
        "options nvme-core multipath=N\noptions flagged flag\noptions lonely\n"
    )
    rows = [(row.number, row.module, row.name, row.value) for row in modules.parse_modprobe("f", text)]
    assert rows == [
        (3, "nvidia", "NVreg_RegistryDwords", "RMForceStaticBar1=1;RmForceDisableIomapWC=1;"),
        (3, "nvidia", "NVreg_EnableResizableBar", "1"),
        (5, "nvme_core", "multipath", "N"),
        (6, "flagged", "flag", "1"),
    ]


def test_parameters_of_the_nvidia_driver() -> None:
    shown = modules.parse_nvidia_params('ResmanDebugLevel: 4294967295\nRegistryDwords: "a=1"\nno row\n')
    assert shown == {"ResmanDebugLevel": "4294967295", "RegistryDwords": "a=1"}


@given(st.text())
def test_junk_never_raises(text: str) -> None:
    modules.parse_modprobe("f", text)
    modules.parse_nvidia_params(text)
