# Copyright: (c) 2026, gpufleet.host contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the simulation was told to suffer from.  Without the file all is well."""

from __future__ import annotations

import json
from typing import Any, Mapping, NamedTuple

FILE = "/etc/gpufleet-lab/nvidia.json"

HANGS = ("sleep", "deaf")
DRIVERS = ("mismatch", "not-loaded")
ERRORS = ("ERR!", "Unknown Error", "GPU requires reset", "GPU is lost")
# Of a GPU: what may be said of it, and a test of the value.
_GPU = {
    "lost": lambda value: value in ("missing", "fallen"),
    "model": lambda value: value in ("A800-SXM4-80GB",),
    "name": lambda value: isinstance(value, str),
    "inactive_links": lambda value: isinstance(value, list) and all(type(link) is int for link in value),
    "nvlink_errors": lambda value: type(value) is int,
    "width": lambda value: type(value) is int,
    "gen": lambda value: type(value) is int,
    "error": lambda value: value in ERRORS,
    "ecc": lambda value: value in ("off", "off-pending"),
    "uncorrectable": lambda value: type(value) is int,
    "fabric": lambda value: value in ("In Progress", "Not Started", "Not Supported"),
}
_ALL = "all"


class BadTrouble(Exception):
    """The file holds something that cannot be simulated."""


class Troubles(NamedTuple):
    """``gpus``: index of a healthy host, or ``all`` -> what is wrong with it."""

    hang: str = ""
    driver: str = ""
    gpus: Mapping[str, Mapping[str, Any]] = {}

    def of(self, index: int) -> dict[str, Any]:
        return {**self.gpus.get(_ALL, {}), **self.gpus.get(str(index), {})}


def read_troubles(root: str = "") -> Troubles:
    try:
        with open(root + FILE, encoding="utf-8") as file:
            return parse_troubles(file.read())
    except FileNotFoundError:
        return Troubles()


def parse_troubles(text: str) -> Troubles:
    """Strict: a misspelt trouble would be a test of nothing."""
    try:
        given = json.loads(text)
    except ValueError as error:
        raise BadTrouble(f"not JSON: {error}") from error
    _need(isinstance(given, dict), "not an object")
    _need(set(given) <= set(Troubles._fields), f"only {', '.join(Troubles._fields)} are known, not {', '.join(given)}")
    hang, driver, gpus = given.get("hang", ""), given.get("driver", ""), given.get("gpus", {})
    _need(hang in ("", *HANGS), f"hang is one of {', '.join(HANGS)}")
    _need(driver in ("", *DRIVERS), f"driver is one of {', '.join(DRIVERS)}")
    _need(isinstance(gpus, dict), "gpus is an object")
    for index, troubles in gpus.items():
        _need(index == _ALL or index.isdigit(), f"gpus: {index} is neither an index nor {_ALL}")
        _need(isinstance(troubles, dict), f"gpus: {index}: not an object")
        for name, value in troubles.items():
            _need(name in _GPU, f"gpus: {index}: only {', '.join(_GPU)} are known, not {name}")
            _need(_GPU[name](value), f"gpus: {index}: {name} cannot be {value!r}")
    return Troubles(hang, driver, gpus)


def _need(is_so: bool, why: str) -> None:
    if not is_so:
        raise BadTrouble(why)
