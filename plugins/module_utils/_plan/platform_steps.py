# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The only two things that the area platform changes, when asked to: ACS control bits and the size of read requests.

Both are masked writes to the configuration space, lost at each boot, so one unit writes them again.  Inside a virtual
machine, and beside guests that own devices (VFIO), ACS is what keeps them apart: nothing is written there.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, List, Mapping

from .._engine.values import Finding, Step, Unknown
from .platform_common import is_bare_metal, known

Want = Mapping[str, Any]
Have = Mapping[str, Any]

UNIT = "gpufleet-pci.service"
UNIT_FILE = "/etc/systemd/system/" + UNIT
UNIT_LINK = "/etc/systemd/system/multi-user.target.wants/" + UNIT

_ACS = "NCCL user guide, PCI Access Control Services; setpci(8)"
_READS = "PCI Express base specification, Device Control register; setpci(8)"


def is_asked(want: Want) -> bool:
    return bool(want["acs"] == "off" or want["max_read_request_bytes"])


def plan(want: Want, have: Have) -> List[Step]:
    """The unit first, so that what is written lives over a boot that comes in between; then each register."""
    if not is_asked(want):
        return []
    steps = _unit(want, have)
    for port in have["acs_ports"] if want["acs"] == "off" else ():
        steps += _register("acs", port["address"], port["write"], port["why"], _ACS, have)
    for address, write in sorted(have["read_requests"].items()) if want["max_read_request_bytes"] else ():
        steps += _register(
            "max_read_request", address, write, "larger reads need fewer requests on the link", _READS, have
        )
    return steps


def render_unit(want: Want, have: Have) -> str:
    """The unit's text; empty when nothing is wanted of it."""
    writes: Dict[str, Any] = {}
    if want["acs"] == "off":
        writes.update(
            {"%s %s" % (port["address"], "acs"): (port["address"], port["write"]) for port in have["acs_ports"]}
        )
    if want["max_read_request_bytes"]:
        writes.update({"%s reads" % address: (address, write) for address, write in have["read_requests"].items()})
    lines = [
        "ExecStart=%s -s %s %s" % (have["setpci"], address, write.setpci())
        for _key, (address, write) in sorted(writes.items()) if known(write)
    ]  # fmt: skip
    if not lines or not is_asked(want):
        return ""
    head = [
        "# Managed by gpufleet.host.platform: changes made here are put back.",
        "[Unit]",
        "Description=ACS control bits and read requests of GPUs, as gpufleet.host keeps them",
        # A disk may be booted in a virtual machine, where ACS has to stay on.
        "ConditionVirtualization=no",
        "After=systemd-modules-load.service",
        "Before=nvidia-persistenced.service nvidia-fabricmanager.service",
        "",
        "[Service]",
        "Type=oneshot",
        "RemainAfterExit=yes",
    ]
    return "\n".join([*head, *lines, "", "[Install]", "WantedBy=multi-user.target", ""])


def judge(want: Want, have: Have) -> List[Finding]:
    if not is_asked(want):
        return []
    if not is_bare_metal(have):
        where = "unknown" if have["virtualization"] is None else "a virtual machine (%s)" % have["virtualization"]
        return [
            _refused("bare metal", where, "inside a guest ACS has to stay on; what the bus shows is not the hardware")
        ]
    if have["passed_through"]:
        return [
            _refused("no device given to a guest", ", ".join(have["passed_through"][:4]),
                     "without ACS a guest could reach the memory of devices that are not its own")
        ]  # fmt: skip
    if not have["setpci"]:
        why = "the registers are written with setpci of pciutils"
        fix = "site.yml and the role install it, if platform_packages has pciutils; else install pciutils"
        return [replace(_refused("setpci", "not installed", why, fix), cured_by_role=True)]
    lockdown = have["firmware"].lockdown
    if known(lockdown) and lockdown != "none":
        return [
            _refused("a kernel that is not locked down", lockdown, "a locked-down kernel takes no writes to the configuration "
                     "space, and setpci does not say so", "switch ACS off in the BIOS; lockdown comes with Secure Boot")
        ]  # fmt: skip
    unseen = _unreadable(want, have)
    return [_unseen(unseen)] if unseen else []


def _unreadable(want: Want, have: Have) -> List[str]:
    """The functions whose registers are asked for and cannot be read."""
    ports = have["acs_ports"] if want["acs"] == "off" else []
    reads = have["read_requests"] if want["max_read_request_bytes"] else {}
    unseen = [port["address"] for port in ports if isinstance(port["write"], Unknown)]
    return unseen + [address for address, write in reads.items() if isinstance(write, Unknown)]


def _unit(want: Want, have: Have) -> List[Step]:
    text, wanted = have["unit_file"], render_unit(want, have) or None
    if isinstance(text, str) and _unreadable(want, have):
        # A device that does not answer now is not one that is gone: what the unit says of it stays.
        wanted = text
    steps: List[Step] = []
    why = "the registers are reset at each boot"
    if wanted is None and have["unit_link"]:
        steps.append(_enable("disable", "enable", why))
    if text != wanted and not isinstance(text, Unknown):
        steps.append(
            Step("platform.unit", "file", UNIT_FILE, text, wanted, why, "systemd.service(5)", risk="disruptive")
        )
    if wanted is not None and not have["unit_link"]:
        steps.append(_enable("enable", "disable", why))
    return steps


def _enable(verb: str, back: str, why: str) -> Step:
    states = {"enable": ("disabled", "enabled"), "disable": ("enabled", "disabled")}
    before, after = states[verb]

    def argv(word: str) -> Any:
        return ("systemctl", word, UNIT)

    undo = Step(
        "undo.platform.%s" % verb, "run", UNIT, after, before, why, "systemctl(1)", risk="disruptive", argv=argv(back)
    )
    return Step(
        "platform.%s" % verb,
        "run",
        UNIT,
        before,
        after,
        why,
        "systemctl(1)",
        risk="disruptive",
        argv=argv(verb),
        undo=undo,
    )


def _register(name: str, address: str, write: Any, why: str, source: str, have: Have) -> List[Step]:
    if not known(write) or not write.changes:
        return []

    def step(id_: str, one: Any) -> Step:
        return Step(
            id_, "run", "%s %s" % (address, one.register), "0x%04x" % one.before, "0x%04x" % one.after, why, source,
            risk="disruptive", argv=(have["setpci"] or "setpci", "-s", address, one.setpci()),
        )  # fmt: skip

    forward = step("platform.%s.%s" % (name, address), write)
    return [Step(**dict(vars(forward), undo=step("undo.platform.%s.%s" % (name, address), write.undo())))]


def _refused(expected: str, observed: str, why: str, fix: str = "leave platform_acs at report and "
             "platform_max_read_request_bytes empty here") -> Finding:  # fmt: skip
    return Finding("platform.pci-refused", "block", "host", expected, observed, why, fix, _ACS, ("platform.",))


def _unseen(addresses: List[str]) -> Finding:
    return Finding(
        "platform.pci-unseen", "warn", ", ".join(addresses[:4]), "a readable configuration space",
        Unknown("the configuration space is cut off"), "registers that cannot be read are not written",
        "run as root; lspci -vvv -s %s" % addresses[0], _ACS,
    )  # fmt: skip
