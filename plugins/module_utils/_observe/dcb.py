# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What ``dcb … show dev`` prints (iproute2): JSON, text in its old and new forms, with numbers or with names of DSCPs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Dict, FrozenSet, Mapping, Sequence, Tuple, Union

from .._engine.values import Unknown
from .dcb_fields import (
    COUNT,
    Numbers,
    Words,
    eight,
    fields_of,
    indexed,
    indexes,
    known_words,
    measure,
    measures,
    printed,
    single,
)
from .tool_text import Flag, Number, clean, find_json, switch, whole

Priorities = Union[FrozenSet[int], Unknown]

_PFC_KEYS = ("pfc-cap", "macsec-bypass", "delay", "prio-pfc", "pg-pfc", "requests", "indications")
_APP_KEYS = (
    "ethtype-prio",
    "default-prio",
    "dscp-prio",
    "stream-port-prio",
    "dgram-port-prio",
    "port-prio",
    "pcp-prio",
)
_ETS_KEYS = (
    "willing",
    "ets-cap",
    "cbs",
    "tc-bw",
    "pg-bw",
    "tc-tsa",
    "prio-tc",
    "reco-tc-bw",
    "reco-tc-tsa",
    "reco-prio-tc",
)
_BUFFER_KEYS = ("prio-buffer", "buffer-size", "total-size")
_RATE_KEYS = ("tc-maxrate",)
_DCBX_WORDS = ("host", "lld-managed", "cee", "ieee", "static")
_ORDER_WORDS = ("ethtype", "stream-port", "dgram-port", "port", "dscp", "pcp")

# Names of DSCPs: RFC 2474 (class selectors), 2597 (AF), 3246 (EF), 8622 (LE), 5865 (voice admit); the last row has the
# old names of ToS values that iproute2 puts into /etc/iproute2/rt_dsfield.
_DSCPS: Dict[str, int] = {
    **{"cs%d" % number: 8 * number for number in range(8)},
    **{"af%d%d" % (kind, drop): 8 * kind + 2 * drop for kind in range(1, 5) for drop in range(1, 4)},
    "ef": 46,
    "le": 1,
    "va": 44,
    "voice-admit": 44,
    "default": 0,
    "df": 0,
    "lowdelay": 4,
    "throughput": 2,
    "reliability": 1,
}
_SIZES = {"": 1, "b": 1, "kb": 1024, "mb": 1024**2, "gb": 1024**3}
_RATES = {"bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9, "tbit": 10**12}
_RATES_IEC = {"kibit": 2**10, "mibit": 2**20, "gibit": 2**30, "tibit": 2**40}


@dataclass(frozen=True)
class Pfc:
    """``enabled`` is what the driver says back, which may differ from what was set.

    ``requests`` and ``indications`` (frames sent and received, per priority) are printed with ``-s``.
    """

    capacity: Number
    enabled: Priorities
    delay: Number
    macsec_bypass: Flag
    requests: Numbers
    indications: Numbers


@dataclass(frozen=True)
class App:
    """Which priority a packet gets.  Nothing is printed where nothing is mapped: empty is no mapping."""

    priority_of_dscp: Union[Mapping[int, int], Unknown]
    default_priorities: Numbers
    others: Mapping[str, Tuple[str, ...]]


@dataclass(frozen=True)
class Ets:
    willing: Flag
    capacity: Number
    algorithm_of_class: Words
    bandwidth_percent_of_class: Numbers
    class_of_priority: Numbers


@dataclass(frozen=True)
class Buffer:
    buffer_of_priority: Numbers
    size_bytes: Numbers
    total_bytes: Number


def parse_dcb_pfc(text: str) -> Pfc:
    fields = fields_of(text, _PFC_KEYS)
    if isinstance(fields, Unknown):
        return Pfc(fields, fields, fields, fields, fields, fields)
    flags = eight(fields.get("prio-pfc") or fields.get("pg-pfc"), {"on": 1, "off": 0, "true": 1, "false": 0})
    return Pfc(
        single(fields, "pfc-cap"),
        flags if isinstance(flags, Unknown) else frozenset(number for number in range(COUNT) if flags[number]),
        single(fields, "delay"),
        switch(fields["macsec-bypass"][0]) if fields.get("macsec-bypass") else Unknown("not printed"),
        eight(fields.get("requests")),
        eight(fields.get("indications")),
    )


def parse_dcb_app(text: str) -> App:
    fields = fields_of(text, _APP_KEYS)
    if isinstance(fields, Unknown):
        return App(fields, fields, {})
    defaults = [whole(word) for word in fields.get("default-prio", ())]
    unclear = [value for value in defaults if isinstance(value, Unknown)]
    others = {key: tuple(words) for key, words in fields.items() if key not in ("dscp-prio", "default-prio")}
    return App(
        _dscp_map(fields.get("dscp-prio", ())),
        unclear[0] if unclear else tuple(value for value in defaults if isinstance(value, int)),
        others,
    )


def parse_dcb_ets(text: str) -> Ets:
    fields = fields_of(text, _ETS_KEYS)
    if isinstance(fields, Unknown):
        return Ets(fields, fields, fields, fields, fields)
    algorithms = indexed(fields.get("tc-tsa"))
    return Ets(
        switch(fields["willing"][0]) if fields.get("willing") else Unknown("not printed"),
        single(fields, "ets-cap"),
        algorithms,
        eight(fields.get("tc-bw")),
        eight(fields.get("prio-tc")),
    )


def parse_dcb_buffer(text: str) -> Buffer:
    fields = fields_of(text, _BUFFER_KEYS)
    if isinstance(fields, Unknown):
        return Buffer(fields, fields, fields)
    sizes = indexed(fields.get("buffer-size"))
    total = fields.get("total-size")
    return Buffer(
        eight(fields.get("prio-buffer")),
        sizes if isinstance(sizes, Unknown) else measures(sizes, _SIZES),
        measure(total[0], _SIZES) if total else Unknown("not printed"),
    )


def parse_dcb_dcbx(text: str) -> Words:
    """Who decides (host or lld-managed) and by which protocol (ieee, cee); empty: the firmware does."""
    return _listed(text, _DCBX_WORDS)


def parse_dcb_apptrust(text: str) -> Words:
    """What is trusted for the priority of a packet, the first that applies (dscp, pcp, …)."""
    fields = fields_of(text, ("order",))
    if isinstance(fields, Unknown):
        return fields
    return known_words(fields["order"], _ORDER_WORDS) if "order" in fields else Unknown("not printed")


def parse_dcb_maxrate(text: str) -> Numbers:
    """The limit of each traffic class in bits a second; 0 is none."""
    rates = indexed(indexes(text, _RATE_KEYS))
    if isinstance(rates, Unknown):
        return rates
    # In JSON the plain number is bytes a second.
    return measures(rates, {**_RATES, **_RATES_IEC, "": 8})


def _dscp_map(words: Sequence[str]) -> Union[Mapping[int, int], Unknown]:
    mapping: Dict[int, int] = {}
    for word in words:
        name, _colon, priority = word.partition(":")
        number = _DSCPS[name.lower()] if name.lower() in _DSCPS else whole(name)
        if isinstance(number, Unknown) or number > 63 or not re.fullmatch("[0-7]", priority):
            return Unknown("not understood: %r" % word[:40])
        # Several entries for one DSCP: the highest priority is kept.
        mapping[number] = max(int(priority), mapping.get(number, 0))
    return mapping


def _listed(text: str, words: Sequence[str]) -> Words:
    data = find_json(clean(text))
    if data is not None:
        if not isinstance(data, Mapping):
            return data if isinstance(data, Unknown) else Unknown("not understood")
        return known_words([str(key).replace("_", "-") for key, value in data.items() if value is True], words)
    return known_words(" ".join(printed(text)).split(), words)
