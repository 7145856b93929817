# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Debian host with four CPUs (one offline), cpufreq, cpuidle, huge pages, GRUB, PAM and a systemd manager."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path
from typing import Sequence

from fakes import FakeHost, Program

from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import Result

CPU = "/sys/devices/system/cpu/"
THP = "/sys/kernel/mm/transparent_hugepage/"
WANTS = "/etc/systemd/system/multi-user.target.wants/"
TWINS = (
    ("vm/dirty_bytes", "vm/dirty_ratio"),
    ("vm/dirty_background_bytes", "vm/dirty_background_ratio"),
    ("vm/overcommit_kbytes", "vm/overcommit_ratio"),
)
SYSCTLS = {
    "kernel/numa_balancing": "1",
    "kernel/osrelease": "6.1.0-1-amd64",
    "vm/swappiness": "60",
    "vm/dirty_bytes": "0",
    "vm/dirty_ratio": "20",
    "vm/dirty_background_bytes": "0",
    "vm/dirty_background_ratio": "10",
    "vm/min_free_kbytes": "67584",
    "net/ipv4/tcp_rmem": "4096\t131072\t6291456",
    "net/ipv4/conf/eth0.1/rp_filter": "2",
    "net/core/rmem_max": "212992",
    "fs/nr_open": "1048576",
}
MANAGER = {"DefaultLimitMEMLOCK": "8388608", "DefaultLimitNOFILE": "1024:524288"}
# Parameters of a module that is there but not loaded, and of one that hides them.
MODINFO = {"nvme_core": ["multipath", "io_timeout"], "nouveau": ["modeset"], "secretive": ["hidden"]}


class KernelHost(FakeHost):
    def commands(self) -> dict[str, Program]:
        return {
            "systemctl": lambda argv, stdin: self._systemctl(argv),
            "update-grub": lambda argv, stdin: self._update_grub(),
            "grubby": lambda argv, stdin: self._grubby(argv),
            "modinfo": lambda argv, stdin: self._modinfo(argv),
        }

    def kernel(self, path: str, text: str) -> str:
        if path.startswith(THP):
            words = re.sub(r"[][]", "", self._text(path)).split()
            return " ".join("[%s]" % word if word == text else word for word in words) + "\n"
        for pair in TWINS:
            for mine, other in (pair, pair[::-1]):
                if path == "/proc/sys/" + mine:
                    self.put("/proc/sys/" + other, "0\n")
        if "\t" in self._text(path):
            return "\t".join(text.split()) + "\n"
        return text + "\n"

    def set_value(self, path: str, text: str) -> None:
        # As mm/page-writeback.c and drivers/cpufreq/intel_pstate.c.
        if path.endswith(("dirty_bytes", "dirty_background_bytes")) and text == "0":
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)
        governor = path.replace("energy_performance_preference", "scaling_governor")
        if governor != path and text != "performance" and self._text(governor) == "performance\n":
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), path)
        super().set_value(path, text)

    def _text(self, path: str) -> str:
        text = self.read(path)
        return text if isinstance(text, str) else ""

    def _systemctl(self, argv: Sequence[str]) -> Result:
        link = self.root + WANTS + argv[-1]
        if argv[1] == "show":
            rows = [row for row in self._text("/fake/manager").splitlines() if row.split("=")[0] in argv[3].split(",")]
            return Result(0, "\n".join(rows) + "\n", "")
        if argv[1] == "enable":
            os.makedirs(os.path.dirname(link), exist_ok=True)
            if not os.path.islink(link):
                os.symlink("/etc/systemd/system/" + argv[-1], link)
        elif argv[1] == "disable" and os.path.islink(link):
            os.unlink(link)
        elif argv[1] == "daemon-reload":
            self.load_manager()
        return Result(0, "", "")

    def load_manager(self) -> None:
        values = dict(MANAGER)
        folder = "/etc/systemd/system.conf.d"
        for path in ["/etc/systemd/system.conf"] + ["%s/%s" % (folder, name) for name in self.listdir(folder)]:
            values.update(row.split("=", 1) for row in self._text(path).splitlines() if row.startswith("DefaultLimit"))
        rows = []
        for key, value in values.items():
            soft, _colon, hard = value.partition(":")
            rows += ["%sSoft=%s" % (key, soft), "%s=%s" % (key, hard or soft)]
        self.put("/fake/manager", "\n".join(rows) + "\n")

    def _update_grub(self) -> Result:
        values = {"GRUB_CMDLINE_LINUX": "", "GRUB_CMDLINE_LINUX_DEFAULT": ""}
        folder = "/etc/default/grub.d"
        for path in ["/etc/default/grub"] + ["%s/%s" % (folder, name) for name in self.listdir(folder)]:
            for row in self._text(path).splitlines():
                name, equals, value = row.partition("=")
                if equals and name in values:
                    value = value.strip('"')
                    for other in sorted(values, key=len, reverse=True):
                        value = value.replace("$" + other, values[other])
                    values[name] = value
        args = "root=/dev/vda2 ro %s" % values["GRUB_CMDLINE_LINUX"]
        normal = "%s %s" % (args, values["GRUB_CMDLINE_LINUX_DEFAULT"])
        self.put(
            "/boot/grub/grub.cfg",
            "### BEGIN /etc/grub.d/10_linux ###\nmenuentry 'Debian' {\n\tlinux\t/boot/vmlinuz-6.1 %s\n}\n"
            "menuentry 'Debian (recovery mode)' {\n\tlinux\t/boot/vmlinuz-6.1 %s single\n}\n"
            "### END /etc/grub.d/10_linux ###\n### BEGIN /etc/grub.d/40_custom ###\n"
            "\tlinux /other/kernel root=/dev/sdz\n### END /etc/grub.d/40_custom ###\n" % (normal, args),
        )
        return Result(0, "", "")

    def _grubby(self, argv: Sequence[str]) -> Result:
        options = dict(word[2:].split("=", 1) for word in argv[1:])
        for name in self.listdir("/boot/loader/entries"):
            path = "/boot/loader/entries/" + name
            rows = []
            for row in self._text(path).splitlines():
                key, _blank, rest = row.partition(" ")
                if key == "options" and ("rescue" not in name):
                    args = [a for a in rest.split() if a not in options.get("remove-args", "").split()]
                    for new in options.get("args", "").split():
                        args = [a for a in args if a.split("=")[0] != new.split("=")[0]] + [new]
                    row = "options " + " ".join(args)
                rows.append(row)
            if options["update-kernel"] in ("ALL", "/boot" + rows[1].split()[1]):
                self.put(path, "\n".join(rows) + "\n")
        return Result(0, "", "")

    def _modinfo(self, argv: Sequence[str]) -> Result:
        if argv[-1] not in MODINFO:
            return Result(1, "", "modinfo: ERROR: Module %s not found." % argv[-1])
        return Result(0, "".join("%s:text (int)\n" % name for name in MODINFO[argv[-1]]), "")

    def reboot(self) -> None:
        """The next boot: arguments of the first entry, options of modprobe.d."""
        first = next(row for row in self._text("/boot/grub/grub.cfg").splitlines() if "\tlinux" in row)
        self.put("/proc/cmdline", "BOOT_IMAGE=" + " ".join(first.split()[1:]) + "\n")
        for name in self.listdir("/etc/modprobe.d"):
            for row in self._text("/etc/modprobe.d/" + name).splitlines():
                words = row.split()
                if words[:1] == ["options"]:
                    for key, value in (word.split("=", 1) for word in words[2:]):
                        path = "/sys/module/%s/parameters/%s" % (words[1], key)
                        if self.exists(path):
                            self.put(path, value + "\n")


def make(root: Path) -> KernelHost:
    host = KernelHost(root)
    for path, value in SYSCTLS.items():
        host.put("/proc/sys/" + path, value + "\n")
    host.put(THP + "enabled", "[always] madvise never\n")
    host.put(THP + "defrag", "always defer defer+madvise [madvise] never\n")
    add_cpus(host)
    host.put("/etc/hostname", "gpu01\n")
    host.put("/etc/pam.d/sshd", "session required pam_limits.so\n")
    host.put("/etc/security/limits.conf", "# <domain> <type> <item> <value>\n")
    host.load_manager()
    host.put("/sys/module/nvme_core/parameters/multipath", "Y\n")
    host.put("/sys/module/nvme_core/initstate", "live\n")
    host.put("/sys/module/secretive/initstate", "live\n")
    host.put("/sys/module/printk/parameters/time", "Y\n")
    add_grub(host)
    return host


def make_guest(root: Path) -> KernelHost:
    """A virtual machine: no cpufreq, no cpuidle."""
    host = KernelHost(root)
    host.put("/etc/hostname", "vm01\n")
    host.put(CPU + "online", "0-3\n")
    for cpu in range(4):
        host.put("%scpu%d/topology/core_id" % (CPU, cpu), "0\n")
    return host


def make_el(root: Path) -> KernelHost:
    """EL: boot entries of their own and grubby."""
    host = make(root)
    for path in ("/usr/sbin/update-grub", "/boot/grub/grub.cfg"):
        os.unlink(host.root + path)
    host.put("/usr/sbin/grubby", "#!/bin/bash\n")
    host.put("/boot/grub2/grubenv", "# GRUB Environment Block\nkernelopts=root=/dev/vda2 ro\n#####\n")
    for release, args in (("5.14.0-1", "root=/dev/vda2 ro"), ("5.14.0-2", "root=/dev/vda2 ro"), ("0-rescue", "root=x")):
        host.put(
            "/boot/loader/entries/abc-%s.conf" % release,
            "title EL %s\nlinux /vmlinuz-%s\noptions %s\n" % (release, release, args),
        )
    return host


def add_cpus(host: KernelHost) -> None:
    host.put(CPU + "online", "0-2\n")
    host.put(CPU + "offline", "3\n")
    host.put(CPU + "modalias", "cpu:type:x86,ven0002fam0019mod0011:feature:,0000\n")
    for cpu in range(4):
        policy = "%scpufreq/policy%d/" % (CPU, cpu)
        if cpu < 3:
            host.put(policy + "scaling_governor", "powersave\n" if cpu else "performance\n")
            preference = "balance_performance\n" if cpu else "performance\n"
            host.put(policy + "energy_performance_preference", preference)
            host.put(policy + "scaling_available_governors", "performance powersave\n")
            host.put(
                policy + "energy_performance_available_preferences",
                "default performance balance_performance balance_power power\n",
            )
            host.put(policy + "scaling_driver", "intel_pstate\n")
        else:
            os.makedirs(host.root + policy)
        for state, name in enumerate(("POLL", "C1", "C1E", "C6")):
            folder = "%scpu%d/cpuidle/state%d/" % (CPU, cpu, state)
            host.put(folder + "name", name + "\n")
            host.put(folder + "disable", "0\n")


def add_grub(host: KernelHost) -> None:
    host.put("/usr/sbin/update-grub", "#!/bin/sh\nexec grub-mkconfig -o /boot/grub/grub.cfg\n")
    host.put("/etc/default/grub", 'GRUB_CMDLINE_LINUX_DEFAULT="quiet"\nGRUB_CMDLINE_LINUX="console=ttyS0"\n')
    host.commands()["update-grub"](["update-grub"], "")
    host.reboot()
