# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Module options: one modprobe.d file for the next load, compared with what the module runs with.

A loaded module keeps its options until it is loaded again; for what a GPU host cares about that
means the next boot, so a difference waits for it.
"""

from __future__ import annotations

import re
from typing import Any, Dict, List, Mapping, Optional

from .._engine.values import BadWant, Finding, Step, Unknown
from .kernel_common import HEAD, file_steps, is_behind, not_possible, overridden, unseen

FILE = "/etc/modprobe.d/90-gpufleet-kernel.conf"
SOURCE = "modprobe.d(5)"
_NAME = re.compile(r"[A-Za-z0-9_-]+\Z")
_BOOLEAN = {"y": "1", "n": "0", "yes": "1", "no": "0", "on": "1", "off": "0", "true": "1", "false": "0"}
_INITRAMFS = "rebuild the initramfs first when the module is in it (update-initramfs -u, or dracut -f), then reboot"


def check_want(want: Mapping[str, Any]) -> None:
    seen: Dict[str, str] = {}
    for module, options in (want.get("module_options") or {}).items():
        place = "module_options.%s" % module
        if not _NAME.match(str(module)):
            raise BadWant(place, module, "a module name: letters, digits, _ and -")
        if plain(module) in seen:
            raise BadWant(place, module, "each module once; %s is the same one" % seen[plain(module)])
        seen[plain(module)] = str(module)
        if not isinstance(options, Mapping):
            raise BadWant(place, options, "a mapping of parameters to values, such as {multipath: N}")
        for name, value in options.items():
            if not _NAME.match(str(name)):
                raise BadWant("%s.%s" % (place, name), name, "a parameter name: letters, digits, _ and -")
            if not isinstance(value, (str, int)) or not str(value) or not re.match(r'[^"\\\r\n\0]+\Z', str(value)):
                raise BadWant("%s.%s" % (place, name), value, "a number, a switch or one line of text without quotes")


def plain(module: str) -> str:
    return str(module).replace("-", "_")


def wanted(want: Mapping[str, Any]) -> Dict[str, Dict[str, str]]:
    """Modules and their parameters as texts, a switch as Y or N."""
    return {
        plain(module): {str(name): _text(value) for name, value in sorted(options.items())}
        for module, options in sorted((want.get("module_options") or {}).items())
    }


def render(want: Mapping[str, Any]) -> Optional[str]:
    rows = [
        "options %s %s\n" % (module, " ".join("%s=%s" % (name, _quoted(value)) for name, value in options.items()))
        for module, options in wanted(want).items()
        if options
    ]
    return HEAD + "".join(rows) if rows else None


def plan(want: Mapping[str, Any], have: Mapping[str, Any]) -> List[Step]:
    if want.get("module_options") is None:
        return []
    why = "modprobe gives a module its options from here when it loads it"
    steps = file_steps("kernel.modules.file", FILE, have, render(want), why, SOURCE, "reboot")
    for module, options in wanted(want).items():
        for name, value in options.items():
            live = have["modules"][module]["values"].get(name)
            if isinstance(live, str) and not _is_same(live, value):
                steps.append(_wait(module, name, live, value))
    return steps


def judge(want: Mapping[str, Any], have: Mapping[str, Any]) -> List[Finding]:
    if want.get("module_options") is None:
        return []
    findings: List[Finding] = []
    if isinstance(have["files"][FILE], Unknown):
        findings.append(unseen(FILE, have["files"][FILE], "ls -l /etc/modprobe.d", SOURCE))
    for module, options in wanted(want).items():
        about = have["modules"][module]
        if isinstance(about["loaded"], Unknown):
            findings.append(unseen("module " + module, about["loaded"], "ls /sys/module", SOURCE))
        elif about["builtin"]:
            findings.append(_builtin(module, options))
        elif about["known"] is None and not about["loaded"]:
            findings.append(_not_installed(module))
        else:
            for name, value in options.items():
                findings += _judge_option(module, name, value, about)
        for name, value in options.items():
            findings += _overrides(module, name, value, have)
    return findings


def adopt(have: Mapping[str, Any]) -> Dict[str, Any]:
    """The options that wanted modules run with, where they show them."""
    found = {
        module: {name: value for name, value in about["values"].items() if isinstance(value, str)}
        for module, about in have.get("modules", {}).items()
    }
    found = {module: values for module, values in found.items() if values}
    return {"module_options": found} if found else {}


def _text(value: Any) -> str:
    return {True: "Y", False: "N"}[value] if isinstance(value, bool) else str(value)


def _quoted(value: str) -> str:
    return '"%s"' % value if re.search(r"[\s;#']", value) else value


def _is_same(live: str, value: str) -> bool:
    """The kernel prints a switch as Y or N and may print a number that was given in hex as decimal."""
    return _plain_value(live) == _plain_value(value)


def _plain_value(text: str) -> str:
    word = _BOOLEAN.get(text.lower(), text)
    try:
        return str(int(word, 0))
    except ValueError:
        return word


def _wait(module: str, name: str, live: str, value: str) -> Step:
    why = "a loaded module keeps its options; %s" % _INITRAMFS
    target = "%s.%s" % (module, name)
    return Step("kernel.modules." + target, "reboot", target, live, value, why, SOURCE, needs="reboot")


def _builtin(module: str, options: Mapping[str, str]) -> Finding:
    words = " ".join("%s.%s=%s" % (module, name, value) for name, value in options.items())
    why = "modprobe.d is not read for what is built into the kernel"
    fix = "name %s in kernel_cmdline instead of kernel_module_options" % words
    return not_possible("kernel.module-built-in", module, words, "built into this kernel", why, fix, SOURCE)


def _not_installed(module: str) -> Finding:
    return Finding(
        "kernel.module-not-installed", "info", module, "a module of this kernel", "no such module yet",
        "the option waits in %s until the module is installed and loaded; a wrong name would wait for ever" % FILE,
        "modinfo %s" % module, SOURCE,
    )  # fmt: skip


def _judge_option(module: str, name: str, value: str, about: Mapping[str, Any]) -> List[Finding]:
    subject = "%s.%s" % (module, name)
    if isinstance(about["values"].get(name), str):
        return []
    known = about["known"]
    if isinstance(known, list) and name not in known:
        import difflib

        near = difflib.get_close_matches(name, known, 3, 0.6) or known[:10]
        why = "the kernel ignores a parameter that the module does not have"
        fix = "correct kernel_module_options: did you mean %s?" % " or ".join(near)
        return [not_possible("kernel.module-parameter-unknown", subject, value, "no such parameter", why, fix, SOURCE)]
    if about["loaded"]:
        value_shown = about["values"].get(name)
        reason = Unknown("the module is loaded and does not show this parameter")
        reason = value_shown if isinstance(value_shown, Unknown) else reason
        return [unseen(subject, reason, "ls /sys/module/%s/parameters" % module, SOURCE)]
    return []


def _overrides(module: str, name: str, value: str, have: Mapping[str, Any]) -> List[Finding]:
    subject = "%s.%s" % (module, name)
    for word in have["boot_args"]:
        key, equals, given = word.partition("=")
        if equals and plain(key) == plain(subject) and not _is_same(given, value):
            why = "the kernel command line goes before modprobe.d"
            return [overridden(subject, value, "/proc/cmdline", 1, given, why, "kernel_module_options", SOURCE)]
    rows = [
        row
        for row in have["modprobe"]
        if row.module == module and row.name == plain(name) and is_behind(row.file, FILE)
    ]
    if rows and not _is_same(rows[-1].value, value):
        why = "modprobe gives the options of this file after ours, and the kernel takes the last"
        last = rows[-1]
        return [overridden(subject, value, last.file, last.number, last.value, why, "kernel_module_options", SOURCE)]
    return []
