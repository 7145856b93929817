# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpufleet.host.plugins.module_utils._observe import cmdline

# As grub-mkconfig 2.06 of Debian 12 and 2.12 of Ubuntu 24.04 lay it out.
GRUB = """
### BEGIN /etc/grub.d/00_header ###
  linux not_in_this_section
### END /etc/grub.d/00_header ###
### BEGIN /etc/grub.d/10_linux ###
menuentry 'Ubuntu' {
\tlinux\t/boot/vmlinuz-6.8 root=UUID=1 ro console=ttyS0 quiet dyndbg="file drivers/x +p" $vt_handoff
}
submenu 'Advanced' {
\tmenuentry 'recovery' {
\t\tlinux\t/boot/vmlinuz-6.8 root=UUID=1 ro recovery nomodeset
\t}
\tmenuentry 'recovery' {
\t\tlinux\t/boot/vmlinuz-6.8 root=UUID=1 ro single
\t}
}
### END /etc/grub.d/10_linux ###
### BEGIN /etc/grub.d/30_os-prober ###
\tlinux /vmlinuz root=/dev/sda9
### END /etc/grub.d/30_os-prober ###
"""


def test_only_this_systems_own_entries_count() -> None:
    (entry,) = cmdline.parse_grub_config(GRUB)
    assert entry.kernel == "/boot/vmlinuz-6.8"
    assert entry.args[2:5] == ("console=ttyS0", "quiet", 'dyndbg="file drivers/x +p"')


def test_a_bls_entry_with_variables() -> None:
    text = "title Red Hat\nversion 4.18\nlinux /vmlinuz-4.18\noptions $kernelopts $tuned_params\n"
    env = cmdline.parse_grubenv("# GRUB Environment Block\nkernelopts=root=/dev/mapper/rhel-root ro iommu=pt\n########")
    entry = cmdline.parse_bls(text, env)
    assert entry is not None
    assert entry.args == ("root=/dev/mapper/rhel-root", "ro", "iommu=pt")
    assert cmdline.parse_bls("title no kernel\n", env) is None


def test_defaults_that_carry_on_and_that_do_not() -> None:
    text = (
        '# GRUB_CMDLINE_LINUX="x"\nGRUB_CMDLINE_LINUX_DEFAULT="quiet"\n'
        'GRUB_CMDLINE_LINUX_DEFAULT="${GRUB_CMDLINE_LINUX_DEFAULT} a=b"\nexport GRUB_CMDLINE_LINUX+=" c"\n'
    )
    rows = [(row.number, row.variable, row.keeps) for row in cmdline.parse_grub_defaults("f", text)]
    assert rows == [
        (2, "GRUB_CMDLINE_LINUX_DEFAULT", False),
        (3, "GRUB_CMDLINE_LINUX_DEFAULT", True),
        (4, "GRUB_CMDLINE_LINUX", True),
    ]


def test_defaults_are_words_of_a_shell() -> None:
    text = (
        'GRUB_CMDLINE_LINUX="a=1 \\\nb=2\n c=3"\n'
        "GRUB_CMDLINE_LINUX_DEFAULT='quiet x=\"y z\"' # as it came\n"
        'GRUB_CMDLINE_LINUX+=" dyndbg=\\"file a +p\\""; export GRUB_CMDLINE_LINUX\n'
        'GRUB_CMDLINE_LINUX=iommu=pt\nGRUB_CMDLINE_LINUX_DEFAULT="no end\n'
    )
    rows = [(row.number, row.value.split(), row.keeps) for row in cmdline.parse_grub_defaults("f", text)]
    assert rows == [
        (1, ["a=1", "b=2", "c=3"], False),
        (4, ["quiet", 'x="y', 'z"'], False),
        (5, ['dyndbg="file', "a", '+p"'], True),
        (6, ["iommu=pt"], False),
        (7, ["no", "end"], False),
    ]


def test_a_bls_entry_with_tabs() -> None:
    entry = cmdline.parse_bls("linux\t/vmlinuz-6\noptions\t\troot=/dev/sda1 ro\noptions quiet\n", {})
    assert entry == cmdline.Entry("/vmlinuz-6", ("root=/dev/sda1", "ro", "quiet"))


@given(st.text())
def test_junk_never_raises(text: str) -> None:
    cmdline.parse_cmdline(text)
    cmdline.parse_grub_config(text)
    cmdline.parse_grub_defaults("f", text)
    cmdline.parse_bls(text, cmdline.parse_grubenv(text))
