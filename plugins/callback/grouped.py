# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: grouped
type: stdout
short_description: Ansible's own output, with equal hosts in one line
version_added: "0.1.0"
description:
  - Prints what P(ansible.builtin.default#callback) prints, but hosts of which a task tells the same are told once, and
    hosts that ended alike share a line of the recap. Forty equal hosts take as many lines as two.
  - A task's results are printed when all hosts have theirs; on a terminal, a line counts them until then.
requirements:
  - set as stdout in configuration
extends_documentation_fragment:
  - default_callback
  - result_format_callback
author:
  - gpufleet.host contributors (@gpufleet)
"""

import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

from ansible import constants as C
from ansible.plugins.callback.default import CallbackModule as Default
from ansible.utils.color import colorize

from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import readable

# So many hosts of a group are named, the others are counted.
NAMED = 3
_HOSTS = "\0hosts\0"
# ssh says to which address it could not connect.
_ADDRESS = re.compile(r"\b(?:\d{1,3}\.){3}\d{1,3}\b|\b[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){2,7}\b")
COUNTERS = (
    ("ok", "ok", C.COLOR_OK),
    ("changed", "changed", C.COLOR_CHANGED),
    ("unreachable", "unreachable", C.COLOR_UNREACHABLE),
    ("failed", "failures", C.COLOR_ERROR),
    ("skipped", "skipped", C.COLOR_SKIP),
    ("rescued", "rescued", C.COLOR_OK),
    ("ignored", "ignored", C.COLOR_WARN),
)

_COLOUR = re.compile(r"(\x1b\[[0-9;]{0,20}m)")

Line = tuple[str, dict[str, Any]]


class Recorder:
    """Stands in for Ansible's display while it tells of one host: lines are kept, everything else goes through."""

    def __init__(self, display: Any, flush: Callable[[], None]) -> None:
        self._real, self._flush = display, flush
        self.lines: list[Line] = []

    def display(self, msg: str, *_args: Any, **options: Any) -> None:
        self.lines.append((_still(msg), options))

    def banner(self, *args: Any, **options: Any) -> None:
        self._flush()
        self._real.banner(*args, **options)

    def error(self, *args: Any, **options: Any) -> None:
        """What ansible-core 2.19 and later say of a failure before its result says the same."""
        if self._real.verbosity:
            self._real.error(*args, **options)

    def _error(self, *args: Any, **options: Any) -> None:
        """The same of its internals: a summary of an error, where the public one takes a text."""
        if self._real.verbosity:
            self._real._error(*args, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


class CallbackModule(Default):
    """Ansible's default callback, with a buffer for the results of one task."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "gpufleet.host.grouped"

    _display: Any

    def __init__(self) -> None:
        super().__init__()
        self._screen: Any = self._display
        # Lines of hosts that are not done with the task, and groups of those that are.
        self._pending: dict[str, list[Line]] = {}
        self._groups: dict[tuple[str, ...], tuple[list[Line], list[str]]] = {}
        self._started: set[str] = set()
        self._counted = False

    # --- results of one host

    def v2_runner_on_ok(self, result: Any) -> None:
        self._record(super().v2_runner_on_ok, result, is_last=True)

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        self._record(lambda told: super(CallbackModule, self).v2_runner_on_failed(told, ignore_errors), result, True)

    def v2_runner_on_skipped(self, result: Any) -> None:
        self._record(super().v2_runner_on_skipped, result, is_last=True)

    def v2_runner_on_unreachable(self, result: Any) -> None:
        self._record(super().v2_runner_on_unreachable, result, is_last=True, is_of_address=True)

    def v2_on_file_diff(self, result: Any) -> None:
        self._record(super().v2_on_file_diff, result)

    def v2_runner_item_on_ok(self, result: Any) -> None:
        self._record(super().v2_runner_item_on_ok, result)

    def v2_runner_item_on_failed(self, result: Any) -> None:
        self._record(super().v2_runner_item_on_failed, result)

    def v2_runner_item_on_skipped(self, result: Any) -> None:
        self._record(super().v2_runner_item_on_skipped, result)

    def v2_runner_on_start(self, host: Any, task: Any) -> None:
        self._started.add(host.get_name())
        super().v2_runner_on_start(host, task)

    # --- what ends a group

    def v2_playbook_on_task_start(self, task: Any, is_conditional: bool) -> None:
        # A meta task that ends hosts starts anew for each of them.
        if task._uuid != self._last_task_banner:
            self._flush()
            super().v2_playbook_on_task_start(task, is_conditional)

    def v2_playbook_on_handler_task_start(self, task: Any) -> None:
        self._flush()
        super().v2_playbook_on_handler_task_start(task)

    def v2_playbook_on_play_start(self, play: Any) -> None:
        self._flush()
        super().v2_playbook_on_play_start(play)

    def v2_playbook_on_no_hosts_remaining(self) -> None:
        self._flush()
        super().v2_playbook_on_no_hosts_remaining()

    def v2_playbook_on_include(self, included_file: Any) -> None:
        self._flush()
        label = self._get_item_label(included_file._vars)
        words = "included: %s for %s" % (included_file._filename, named([h.name for h in included_file._hosts]))
        self._screen.display(words + (" => (item=%s)" % label if label else ""), color=C.COLOR_INCLUDED)

    def v2_playbook_on_stats(self, stats: Any) -> None:
        self._flush()
        groups: dict[tuple[int, ...], list[str]] = {}
        for host in sorted(stats.processed):
            counts = stats.summarize(host)
            groups.setdefault(tuple(counts[key] for _word, key, _color in COUNTERS), []).append(host)
        self._screen.banner("PLAY RECAP")
        for counts, hosts in sorted(groups.items(), key=lambda item: (-item[0][3], -item[0][2], item[1][0])):
            words = [colorize(word, count, color) for (word, _key, color), count in zip(COUNTERS, counts, strict=True)]
            self._screen.display("%-26s : %s" % (named(hosts), " ".join(words)))
        self._screen.display("")

    # --- the buffer

    def _record(
        self, tell: Callable[[Any], None], result: Any, is_last: bool = False, is_of_address: bool = False
    ) -> None:
        host = result._host.get_name()
        label = self.host_label(result)
        recorder = Recorder(self._screen, self._flush)
        self._display = recorder
        try:
            tell(result)
        finally:
            self._display = self._screen
        lines = self._pending.setdefault(host, [])
        lines += [(_without(text, label, host), options) for text, options in recorder.lines]
        if is_last:
            del self._pending[host]
            # Only its own name, and what ssh says of its own address, may differ: of all else each host has its line.
            name = re.compile(r"(?<![\w.-])%s(?![\w-])" % re.escape(host))
            key = tuple(name.sub("host", text) for text, _options in lines)
            if is_of_address:
                key = tuple(_ADDRESS.sub("address", text) for text in key)
            self._groups.setdefault(key, (lines, []))[1].append(label)
            self._count()

    def _flush(self) -> None:
        self._clear_count()
        groups, self._groups = self._groups, {}
        self._started = set()
        for lines, hosts in groups.values():
            for text, options in lines:
                self._screen.display(text.replace(_HOSTS, named(hosts)), **options)

    # --- progress

    def _count(self) -> None:
        if sys.stdout.isatty() and self._screen.verbosity == 0 and len(self._started) > 1:
            done = sum(len(hosts) for _lines, hosts in self._groups.values())
            sys.stdout.write("\r%d of %d hosts" % (done, max(done, len(self._started))))
            sys.stdout.flush()
            self._counted = True

    def _clear_count(self) -> None:
        if self._counted:
            sys.stdout.write("\r\033[K")
            self._counted = False


def _still(text: str) -> str:
    """A text of a host without what would drive a terminal; the colours of Ansible's own diffs stay."""
    return "".join(part if _COLOUR.fullmatch(part) else readable(part) for part in _COLOUR.split(text))


def _without(text: str, label: str, host: str) -> str:
    """A line with a mark where it names its host."""
    for name in (label, host):
        if "[%s]" % name in text:
            return text.replace("[%s]" % name, "[%s]" % _HOSTS, 1)
    return text


def named(hosts: Sequence[str]) -> str:
    """A group of hosts, the first by name."""
    shown = ", ".join(hosts[:NAMED])
    return shown if len(hosts) <= NAMED else "%s and %d more" % (shown, len(hosts) - NAMED)
