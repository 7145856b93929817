# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What does not fit: a geometry the size, a mount option the kernel, a format the tools; told before any change."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, List, Mapping

from .._engine.units import format_size_for_people, parse_size
from .._engine.values import Finding, Unknown, as_unknown
from . import xfs_commands, xfs_options, xfs_wants
from .xfs_identity import block


def geometry_refusals(volume: Mapping[str, Any], seen: Mapping[str, Any], have: Mapping[str, Any]) -> List[Finding]:
    """Geometry that does not fit the real size, options that the kernel does not have, a page size above allocsize."""
    sizes = [one["size"] for one in seen["devices"]]
    findings: List[Finding] = []
    if all(size is not None for size in sizes):
        known = [size for size in sizes if size is not None]
        size = seen["target"]["size"] if seen["array"] else min(known) * xfs_commands.data_disks(volume)
        for key, value, allowed in xfs_wants.misfits(volume, size or 0):
            why = "the volume is %s large; mkfs.xfs cannot make this" % format_size_for_people(size or 0)
            findings.append(
                block(
                    volume,
                    "geometry-impossible",
                    key,
                    allowed,
                    value,
                    why,
                    "set %s of the volume to %s" % (key, allowed),
                )
            )
    return findings


def kernel_refusals(volume: Mapping[str, Any], have: Mapping[str, Any]) -> List[Finding]:
    """Mount options that this kernel does not have; told before anything is changed."""
    findings: List[Finding] = []
    for option, reason in xfs_options.unsupported(volume, have["kernel"]):
        why = "%s %s" % (option.partition("=")[0], reason)
        findings.append(
            block(
                volume,
                "option-unsupported",
                option,
                "an option of kernel %s" % have["kernel"],
                option,
                why,
                "leave it out of the volume's options",
            )
        )
    page = have["page_bytes"]
    if volume.get("allocsize") and page and parse_size(volume["allocsize"]) < page:
        allowed = "%d or more: the page size of this host" % page
        findings.append(
            block(
                volume,
                "option-unsupported",
                "allocsize",
                allowed,
                volume["allocsize"],
                "a mount with it fails",
                "raise allocsize",
            )
        )
    return findings


def tool_refusals(volume: Mapping[str, Any], seen: Mapping[str, Any], have: Mapping[str, Any]) -> List[Finding]:
    """What mkfs.xfs says to a dry run, and features that would make a filesystem which this kernel cannot mount."""
    findings: List[Finding] = []
    if volume.get("raid") and not seen["array"] and not have["has_mdadm"]:
        missing = as_unknown(have["has_mdadm"], "mdadm is not installed")
        findings.append(_no_tool(volume, "mdadm", "mdadm", "installed", missing, "it makes the array"))
    run = seen["dry_run"]
    if run is None or isinstance(run, Unknown):
        unseen = as_unknown(run, "mkfs.xfs was not asked")
        found = _no_tool(volume, "mkfs", "mkfs.xfs -N", "an answer", unseen, "it makes the filesystem")
        return [*findings, found]
    if run["rc"] != 0:
        why = "this xfsprogs cannot make what is wanted, and says so before anything is changed"
        findings.append(
            block(
                volume,
                "mkfs-refuses",
                "mkfs.xfs -N",
                "accepted",
                run["said"],
                why,
                "change the volume's settings, or install a newer xfsprogs",
            )
        )
    version = xfs_options.kernel_version(have["kernel"])
    for name in sorted(run["features"]) if version and ".el" not in str(have["kernel"]) else []:
        since = xfs_commands.FEATURES.get(name, ("", (0, 0)))[1]
        if run["features"][name] == 1 and version is not None and version < since:
            why = "mkfs.xfs would turn on %s, which Linux %d.%d brought: this kernel could not mount it" % (
                name,
                since[0],
                since[1],
            )
            findings.append(
                block(
                    volume,
                    "kernel-too-old",
                    name,
                    "features of kernel %s" % have["kernel"],
                    "%s=1" % name,
                    why,
                    "set mkfs_features: {%s: false}" % name,
                )
            )
    return findings


def _no_tool(volume: Mapping[str, Any], name: str, subject: str, expected: str, observed: Unknown, why: str) -> Finding:
    """A tool that did not answer; one that is not installed comes with the role, unless that may install nothing."""
    if not observed.reason.endswith("is not installed"):
        return block(volume, "no-" + name, subject, expected, observed, why, "run %s by hand and see" % subject)
    package = "xfsprogs" if name == "mkfs" else name
    fix = "site.yml and the role install %s, if xfs_storage_packages has xfsprogs; else install it" % package
    return replace(block(volume, "no-" + name, subject, expected, observed, why, fix), cured_by_role=True)
