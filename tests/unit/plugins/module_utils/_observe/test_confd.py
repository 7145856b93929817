# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

from fakes import FakeHost

from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import Unknown
from ansible_collections.gpufleet.host.plugins.module_utils._observe import confd


def test_the_nearer_folder_masks_and_names_decide_the_order(tmp_path: Path) -> None:
    host = FakeHost(tmp_path)
    host.put("/usr/lib/sysctl.d/50-b.conf", "far")
    host.put("/usr/lib/sysctl.d/10-a.conf", "masked")
    host.put("/etc/sysctl.d/10-a.conf", "near")
    host.put("/run/sysctl.d/99-c.conf", "")
    host.put("/etc/sysctl.d/README", "no configuration")
    assert confd.files(host, confd.roots("sysctl.d")) == [
        ("/etc/sysctl.d/10-a.conf", "near"),
        ("/usr/lib/sysctl.d/50-b.conf", "far"),
        ("/run/sysctl.d/99-c.conf", ""),
    ]


def test_a_file_of_ours_is_unknown_where_etc_was_not_seen(tmp_path: Path) -> None:
    host = FakeHost(tmp_path)
    assert isinstance(confd.own_file(host, "/etc/x.conf"), Unknown)
    host.put("/etc/hostname", "h")
    assert confd.own_file(host, "/etc/x.conf") is None
