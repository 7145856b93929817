# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""unattended-upgrades: on or off, and what it leaves alone, as apt's configuration has it."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes import FakeHost

from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import Unknown
from ansible_collections.gpufleet.host.plugins.module_utils._observe import unattended
from ansible_collections.gpufleet.host.plugins.module_utils._observe.unattended import Unattended, parse_apt_conf

UBUNTU = """\
Unattended-Upgrade::Allowed-Origins {
    "${distro_id}:${distro_codename}-security";
};
// Python regular expressions, matching packages to exclude from upgrading
Unattended-Upgrade::Package-Blacklist {
    // The following matches all packages starting with linux-
//  "linux-";
    "nvidia-";
    "libnvidia-"; // the driver
};
Unattended-Upgrade::DevRelease "auto";
"""


@pytest.mark.parametrize(
    ("text", "is_on", "left_alone"),
    [
        (UBUNTU, False, ("nvidia-", "libnvidia-")),
        ('APT::Periodic::Unattended-Upgrade "1";\n', True, ()),
        ('APT::Periodic::Unattended-Upgrade "1";\nAPT::Periodic::Unattended-Upgrade "0";\n', False, ()),
        ('//APT::Periodic::Unattended-Upgrade "1";\n# APT::Periodic::Unattended-Upgrade "1";\n', False, ()),
        ('Unattended-Upgrade::Package-Blacklist:: "nvidia-";\nOther "x";\n', False, ("nvidia-",)),
        ('Unattended-Upgrade::Package-Blacklist { "a"; "b"; };\nOther "x";\n', False, ("a", "b")),
        ('Unattended-Upgrade::Package-Blacklist\n{\n"a";\n};\nOther "x";\n', False, ("a",)),
        ("", False, ()),
    ],
)
def test_what_apt_does_by_itself(text: str, is_on: bool, left_alone: tuple[str, ...]) -> None:
    assert parse_apt_conf(text) == Unattended(is_on, left_alone)


def test_files_are_read_in_order_and_leftovers_are_not(tmp_path: Path) -> None:
    host = FakeHost(tmp_path)
    assert isinstance(unattended.observe(host).is_on, Unknown)
    host.put("/etc/apt/apt.conf.d/20auto-upgrades", 'APT::Periodic::Unattended-Upgrade "1";\n')
    host.put("/etc/apt/apt.conf.d/50unattended-upgrades", UBUNTU)
    host.put("/etc/apt/apt.conf.d/50unattended-upgrades.dpkg-old", UBUNTU.replace("nvidia-", "other-"))
    assert unattended.observe(host) == Unattended(True, ("nvidia-", "libnvidia-"))
    host.put("/etc/apt/apt.conf.d/90local.conf", 'APT::Periodic::Unattended-Upgrade "0";\n')
    assert unattended.observe(host).is_on is False
