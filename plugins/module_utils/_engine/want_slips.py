# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Slips in a want: a key that there is not, a list where a mapping belongs, at any depth.

Ansible's own messages on these name the inner class of a value, and print the whole of what surrounds it.
"""

from __future__ import annotations

import difflib
from typing import Any, Callable, Dict, Iterable, List, Mapping, Sequence

from ansible.module_utils.common.validation import (
    check_type_bool,
    check_type_dict,
    check_type_float,
    check_type_int,
    check_type_list,
)

from .values import BadWant

Spec = Mapping[str, Any]

SHOWN_ITEMS = 4
SHOWN_CHARACTERS = 60


def refuse_slips(spec: Spec, given: Mapping[Any, Any], examples: Mapping[str, str], path: str = "") -> None:
    """Raise BadWant for the first slip, with its place, what is there and what may be there.

    :param spec: an argument spec, with ``options`` for what is nested.
    :param examples: what to write, by the path of an option without its numbers, where the spec does not tell.
    """
    names = [str(name) for name in spec]
    for key in given:
        if key not in spec:
            says = "no such key%s" % did_you_mean(str(key), names)
            raise BadWant(path + str(key), given[key], ", ".join(names), says)
    for name, rule in spec.items():
        if given.get(name) is not None:
            _refuse_value(rule, given[name], examples, path + name)
        elif rule.get("required"):
            allowed = _shape(rule, examples, path + name)
            raise BadWant(path + name, None, allowed, "has to be there, and is not;")


def did_you_mean(word: str, words: Iterable[str]) -> str:
    """Between a wrong word and what is allowed: the word that is close to it, else one that it is a part of (mysql)."""
    known = list(words)
    near = difflib.get_close_matches(word.lower(), known, n=1, cutoff=0.6)
    near += [name for name in known if len(word) > 1 and word.lower() in name]
    return "; did you mean %s?" % near[0] if near else ";"


def _refuse_value(rule: Spec, given: Any, examples: Mapping[str, str], path: str) -> None:
    try:
        value = _TYPES[rule.get("type", "str")](given)
    except (TypeError, ValueError):
        says = "given %s," % described(given)
        raise BadWant(path, given, _shape(rule, examples, path), says) from None
    if isinstance(value, list):
        one = {key: rule[key] for key in ("options", "choices") if key in rule}
        for number, item in enumerate(value):
            _refuse_value(dict(one, type=rule.get("elements", "raw")), item, examples, "%s[%d]" % (path, number))
    elif "choices" in rule and not _is_choice(value, rule["choices"]):
        words = [str(word) for word in rule["choices"]]
        says = "%s is not possible%s" % (described(given), did_you_mean(str(given), words))
        raise BadWant(path, given, ", ".join(words), says)
    elif isinstance(value, dict) and "options" in rule:
        refuse_slips(rule["options"], value, examples, path + ".")


def _is_choice(value: Any, choices: Sequence[Any]) -> bool:
    # YAML reads on and off as true and false; Ansible takes them for the one choice that means the same.
    if str(value) in ("True", "False"):
        same = {"True": ("yes", "on", "true", "1", "y", "t"), "False": ("no", "off", "false", "0", "n", "f")}
        return value in choices or len([word for word in same[str(value)] if word in choices]) == 1
    return value in choices


def _text(value: Any) -> str:
    if isinstance(value, (list, tuple, Mapping)):
        raise TypeError("no text")
    return str(value)


def _any(value: Any) -> Any:
    return value


def _mapping(value: Any) -> Dict[Any, Any]:
    return dict(check_type_dict(value))


def _list(value: Any) -> List[Any]:
    return list(check_type_list(value))


_TYPES: Mapping[str, Callable[[Any], Any]] = {
    "bool": check_type_bool,
    "dict": _mapping,
    "float": check_type_float,
    "int": check_type_int,
    "list": _list,
    "raw": _any,
    "str": _text,
}
_WORDS = {"bool": "true or false", "float": "a number", "int": "a whole number", "str": "a text", "raw": "a value"}


def _shape(rule: Spec, examples: Mapping[str, str], path: str) -> str:
    """What an option may hold, in words."""
    example = examples.get("".join(part.split("]")[-1] for part in path.split("[")))
    if example:
        return "%s such as %s" % ({"dict": "a mapping", "list": "a list"}.get(rule["type"], "a text"), example)
    if rule.get("choices"):
        return ", ".join(str(word) for word in rule["choices"])
    kind = rule.get("type", "str")
    if kind == "list":
        inner = _shape(dict(rule, type=rule.get("elements", "raw")), {}, "")
        return "a list, each of it %s" % inner
    if kind == "dict":
        return "a mapping" + (" with " + ", ".join(rule["options"]) if "options" in rule else "")
    return _WORDS[kind]


def described(value: Any) -> str:
    """What was given: short, in words of YAML rather than of Python."""
    if value is None:
        return "nothing"
    if isinstance(value, Mapping):
        return "a mapping with %s" % _few([str(key) for key in value]) if value else "an empty mapping"
    if isinstance(value, (list, tuple)):
        return "a list [%s]" % _few([_item(item) for item in value]) if value else "an empty list"
    return _item(value)


def _item(value: Any) -> str:
    if value is None or isinstance(value, (Mapping, list, tuple)):
        return "nothing" if value is None else "a mapping" if isinstance(value, Mapping) else "a list"
    if isinstance(value, bool):
        return "true" if value else "false"
    text = repr(str(value)) if isinstance(value, str) else str(value)
    return text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "…"


def _few(words: Sequence[str]) -> str:
    more = len(words) - SHOWN_ITEMS
    cut = [word if len(word) <= SHOWN_CHARACTERS else word[:SHOWN_CHARACTERS] + "…" for word in words[:SHOWN_ITEMS]]
    return ", ".join(cut) + (" and %d more" % more if more > 0 else "")
