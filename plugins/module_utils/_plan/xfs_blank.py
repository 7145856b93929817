# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A device without a known signature is not blank: what reads as data is overwritten only by its serial number.

The acknowledgement is whole or it is none: for an array it names the serial number of every member.  It is asked only
about devices that nothing else speaks against, so it never lifts a signature, a mount or a holder.
"""

from __future__ import annotations

from typing import Any, List, Mapping, Tuple

from .._engine.values import SAMPLES, as_unknown

Row = Tuple[str, str, Any, str, str]


def is_acknowledged(volume: Mapping[str, Any], seen: Mapping[str, Any]) -> bool:
    """Whether the volume says, by the serial number of each device, that what is on them may go."""
    return not _lacking(volume, seen)


def refusals(volume: Mapping[str, Any], seen: Mapping[str, Any], one: Mapping[str, Any]) -> List[Row]:
    """Of a device (or an array) that carries no signature: id, expected, observed, why and what to do."""
    content = one["content"]
    if not isinstance(content, Mapping):
        why = "it cannot be told whether the device is blank, and unknown is not blank"
        unseen = as_unknown(content, "it was not read")
        return [
            ("device-unknown", "a blank device", unseen, why, "dd if=%s iflag=direct bs=1M count=16 | od" % one["path"])
        ]
    if content["blank"]:
        return []
    named_in = [place for device in seen["devices"] for place in device["named_in"]]
    if named_in:
        why = "it may hold data, and somebody means to use it: overwrite_serials does not count for it"
        observed = "%s; it is named in %s" % (describe(one), ", ".join(named_in))
        return [("device-data", "a device that reads as zeros", observed, why, "see whose it is; name another device")]
    if is_acknowledged(volume, seen):
        return []
    why = "no known signature is on it, but it may hold data: of an encryption without a header, an archive, a database"
    return [("device-data", "a device that reads as zeros", describe(one), why, _way_out(volume, seen, one))]


def describe(one: Mapping[str, Any]) -> str:
    content = one["content"]
    shown = " %s …," % content["bytes"] if content["bytes"] else ""
    return "%s reads as data at 0x%x:%s %s" % (one["node"], content["at"], shown, content["like"])


def state(volume: Mapping[str, Any], seen: Mapping[str, Any]) -> str:
    """What is on the devices of a volume that may be made, in words."""
    held = [one["content"] for one in [*seen["devices"], seen] if isinstance(one["content"], Mapping)]
    return "blank" if all(content["blank"] for content in held) else "given up by serial number"


def checks(volume: Mapping[str, Any], seen: Mapping[str, Any], paths: List[str]) -> Tuple[Tuple[str, ...], ...]:
    """What is to be seen once more right before something is made on these devices."""
    return () if is_acknowledged(volume, seen) else tuple((SAMPLES, path) for path in paths)


def _way_out(volume: Mapping[str, Any], seen: Mapping[str, Any], one: Mapping[str, Any]) -> str:
    lacking = _lacking(volume, seen)
    nameless = [device["node"] for device in lacking if not device["serials"]]
    fix = "if nothing on it is needed any more: blkdiscard --zeroout %s" % one["path"]
    if nameless:
        return "%s (%s shows no serial number to acknowledge it by)" % (fix, ", ".join(nameless))
    serials = [device["serials"][0] for device in seen["devices"]]
    named = volume.get("overwrite_serials") or []
    but = " (it names %s, not %s)" % (", ".join(named), ", ".join(d["serials"][0] for d in lacking)) if named else ""
    return "%s; or name it in this volume, overwrite_serials: [%s]%s" % (fix, ", ".join(serials), but)


def _lacking(volume: Mapping[str, Any], seen: Mapping[str, Any]) -> List[Mapping[str, Any]]:
    named = volume.get("overwrite_serials") or []
    return [device for device in seen["devices"] if not set(named) & set(device["serials"])]
