# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fuzz for every area and every parser: hosts that answer with dropped, doubled, reordered, truncated, translated
lines and with junk.  Whatever a host says, it is judged without an exception, and unknown stays unknown.

The examples are the same in each run; another choice of them: pytest --hypothesis-seed=N after removing derandomize.
"""

from __future__ import annotations

import importlib
import inspect
import json
import random
import signal
import time
from functools import lru_cache
from pathlib import Path
from typing import Any, Callable, Iterator, Mapping, Sequence

import every_area
import pytest
from every_area import ROOT, UTILS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansible_collections.gpufleet.host.plugins.module_utils._engine import engine
from ansible_collections.gpufleet.host.plugins.module_utils._engine.engine import look, run_area
from ansible_collections.gpufleet.host.plugins.module_utils._engine.host import Host, MemoHost, Result
from ansible_collections.gpufleet.host.plugins.module_utils._engine.values import (
    STATES,
    Step,
    Text,
    Unknown,
    jsonable,
    readable,
)
from ansible_collections.gpufleet.host.plugins.module_utils._observe import topology

# No answer of a host is so long that a sound parser needs more; a pattern that runs wild needs far more.
SLOWEST_S = 2.0

JUNK = ("\0", "\ufffd", "\udcff\udc80", "\x1b[31m", "-1", "99999999999999999999", "N/A", "[N/A]", "ERR!", "=", ":", '"',
        "'", "\\", "{", "}", "[", "]", "\t", "\r", " ", "%s", "٣", "²", "1e999", "0x", "..", "/", "#", "null", "\u2028")  # fmt: skip
WORDS = {
    "yes": "oui", "no": "nein", "kB": "ko", "active": "aktiv", "total": "gesamt", "none": "keine", "size": "größe",
    "online": "ligne", "not": "nicht", "memory": "メモリ", "cpu": "処理装置", "loaded": "chargé", "Node": "Noeud",
}  # fmt: skip


def fuzz(examples: int, **strategies: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    options = settings(
        max_examples=examples, derandomize=True, deadline=None, database=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    return lambda test: options(given(**strategies)(test))


SEEDS = st.integers(0, 2**32 - 1)


# Garbling


def drop(text: str, dice: random.Random) -> str:
    rows = text.splitlines(keepends=True)
    return "".join(row for row in rows if dice.random() < 0.7)


def double(text: str, dice: random.Random) -> str:
    rows = text.splitlines(keepends=True)
    return "".join(row * dice.choice((1, 1, 2, 3)) for row in rows)


def reorder(text: str, dice: random.Random) -> str:
    rows = text.splitlines(keepends=True)
    dice.shuffle(rows)
    return "".join(rows)


def truncate(text: str, dice: random.Random) -> str:
    return text[: dice.randrange(len(text) + 1)]


def behead(text: str, dice: random.Random) -> str:
    return text[dice.randrange(len(text) + 1) :]


def translate(text: str, dice: random.Random) -> str:
    for word, other in WORDS.items():
        if dice.random() < 0.5:
            text = text.replace(word, other)
    return text


def put_junk(text: str, dice: random.Random) -> str:
    for _time in range(dice.randint(1, 4)):
        place = dice.randrange(len(text) + 1)
        text = text[:place] + dice.choice(JUNK) * dice.choice((1, 1, 1, 50)) + text[place + dice.randrange(4) :]
    return text


def change_numbers(text: str, dice: random.Random) -> str:
    return "".join(dice.choice(("0", "9", "-", "00", char, char, char)) if char.isdigit() else char for char in text)


def join_lines(text: str, dice: random.Random) -> str:
    return text.replace("\n", dice.choice((" ", "", "\r\n", "\n\n")))


def blank(text: str, dice: random.Random) -> str:
    return dice.choice(("", "\n", " ", "\0" * 64, bytes(dice.getrandbits(8) for _byte in range(200)).decode("latin-1")))


GARBLERS = (drop, double, reorder, truncate, behead, translate, put_junk, change_numbers, join_lines, blank)


def garble(text: str, dice: random.Random) -> str:
    for _time in range(dice.choice((1, 1, 2, 3))):
        text = dice.choice(GARBLERS)(text, dice)
    return text


class Garbled:
    """A host of whose answers a share is wrong, the same ones for the same seed."""

    is_live = True

    def __init__(self, host: Host, seed: int) -> None:
        self._host = host
        self._seed = seed
        self._share = random.Random(seed).choice((0.02, 0.1, 0.4, 1.0))

    def _dice(self, verb: str, what: object) -> random.Random | None:
        dice = random.Random("%d %s %a" % (self._seed, verb, what))
        return dice if dice.random() < self._share else None

    def read(self, path: str) -> Text:
        text, dice = self._host.read(path), self._dice("read", path)
        if dice is None:
            return text
        if dice.random() < 0.2:
            return dice.choice((None, Unknown("Input/output error")))
        return garble(text if isinstance(text, str) else "1\n", dice)

    @property
    def unseen(self) -> Mapping[str, str]:
        return self._host.unseen

    def read_own(self, path: str) -> Text:
        return self.read(path)

    def exists(self, path: str) -> bool | Unknown:
        found, dice = self._host.exists(path), self._dice("exists", path)
        return found if dice is None else dice.random() < 0.5

    def listdir(self, path: str) -> list[str]:
        names, dice = self._host.listdir(path), self._dice("listdir", path)
        if dice is None:
            return names
        kept = [name for name in names if dice.random() < 0.8]
        junk = [dice.choice(("x", "..", "a b", "node9999999999", "cpu-1", "\udcff", "%s", "-", "0"))]
        return sorted(kept + junk + [garble(name, dice).replace("/", "") or "x" for name in kept[:2]])

    def readlink(self, path: str) -> str | None:
        target, dice = self._host.readlink(path), self._dice("readlink", path)
        return target if dice is None else dice.choice((None, "", "..", "../x", garble(target or "../a/b", dice)))

    def run(self, argv: Sequence[str], deadline_s: float = 10.0) -> Result:
        result, dice = self._host.run(argv, deadline_s), self._dice("run", " ".join(argv))
        if dice is None:
            return result
        if dice.random() < 0.2:
            return Result(-1, "", "", "%s hung: no answer in %g s" % (argv[0], deadline_s))
        rc = dice.choice((result.rc, result.rc, 0, 1, 127))
        return Result(rc, garble(result.stdout, dice), garble(result.stderr, dice))


class Blind:
    """A host that exists and shows nothing."""

    is_live = True

    def __init__(self, is_there: bool) -> None:
        self._is_there = is_there
        self.unseen: Mapping[str, str] = {}

    def read_own(self, path: str) -> Text:
        return self.read(path)

    def read(self, path: str) -> Text:
        return Unknown("Input/output error") if self._is_there else None

    def exists(self, path: str) -> bool:
        return self._is_there

    def listdir(self, path: str) -> list[str]:
        return []

    def readlink(self, path: str) -> str | None:
        return None

    def run(self, argv: Sequence[str], deadline_s: float = 10.0) -> Result:
        return Result(-1, "", "", "%s hung: no answer in %g s" % (argv[0], deadline_s))


# Areas

areas = pytest.mark.parametrize("area", every_area.NAMES)


Hosts = Callable[[str, bool], Host]


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Hosts:
    """The fake host of an area, as it drifts or in order, each thing of it read from the disk once."""

    @lru_cache(maxsize=None)
    def host(area: str, is_tuned: bool) -> Host:
        sample = every_area.sample(area)
        made = sample.make(tmp_path_factory.mktemp(area))
        if is_tuned:
            for step in sample.area.plan(sample.want, sample.area.observe(made, sample.want)):
                if not step.waits_for_reboot:
                    engine.apply_step(step, made)
        return MemoHost(made)

    return host


@pytest.fixture(autouse=True)
def no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """An observation in a thread of its own is proved elsewhere; here it only costs time."""
    monkeypatch.setattr(engine, "look", look_here)


def look_here(area: engine.Area, want: Any, host: Host, deadline_s: float = 0) -> engine.Look:
    have = area.observe(host, want)
    return engine.Look(have, tuple(area.plan(want, have)), tuple(area.judge(want, have)))


def judged(sample: every_area.Sample, host: Any) -> engine.Report:
    """The report on a host, which has to be sound whatever the host says."""
    report = run_area(sample.area, sample.want, MemoHost(host), mode="audit")
    assert report.state in STATES
    json.dumps(report.to_json(), ensure_ascii=False, allow_nan=False).encode("utf-8")
    for result in report.steps:
        assert_can_be_done(result.step)
    for finding in report.findings:
        assert finding.subject and finding.why and finding.fix and finding.source, finding
    return report


def assert_can_be_done(step: Step) -> None:
    if step.kind == "value":
        assert isinstance(step.after, str), step
        assert step.before is None or isinstance(step.before, (str, Unknown)), step
    if step.kind == "file":
        assert step.after is None or isinstance(step.after, str), step
    if step.kind == "run":
        assert step.argv and all(isinstance(word, str) and "\0" not in word for word in step.argv), step


@areas
@pytest.mark.parametrize("is_tuned", [False, True], ids=["drifted", "tuned"])
def test_no_host_is_too_strange_to_be_judged(hosts: Hosts, area: str, is_tuned: bool) -> None:
    sample = every_area.sample(area)
    host = hosts(area, is_tuned)

    @fuzz(100, seed=SEEDS)
    def judge_garbled(seed: int) -> None:
        judged(sample, Garbled(host, seed))

    judge_garbled()


# Four parts, so that they can run beside each other: an area asks for up to some hundred texts.
@areas
@pytest.mark.parametrize("part", range(4))
def test_one_strange_answer_is_judged(hosts: Hosts, area: str, part: int) -> None:
    """Each thing that the area asks for, in turn, in each way of being wrong."""
    sample = every_area.sample(area)
    host = hosts(area, True)
    asked = Asked(host)
    judged(sample, asked)
    answers: list[Callable[[str], Any]] = [lambda _text: None, lambda _text: Unknown("Input/output error")]
    for number, garbler in enumerate(GARBLERS):
        answers.append(lambda text, garbler=garbler, number=number: garbler(text, random.Random(number)))
    for key in sorted(asked.texts)[part::4]:
        for answer in answers:
            judged(sample, Asked(host, key, answer))


class Asked:
    """A host that notes the texts that it is asked for, and answers one of them otherwise."""

    is_live = True

    def __init__(self, host: Host, key: str = "", answer: Callable[[str], Any] = str) -> None:
        self._host, self._key, self._answer = host, key, answer
        self.texts: set[str] = set()

    def read(self, path: str) -> Text:
        self.texts.add(path)
        text = self._host.read(path)
        other: Text = self._answer(text if isinstance(text, str) else "") if path == self._key else text
        return other

    def run(self, argv: Sequence[str], deadline_s: float = 10.0) -> Result:
        key = "run " + " ".join(argv)
        self.texts.add(key)
        result = self._host.run(argv, deadline_s)
        if key != self._key:
            return result
        text = self._answer(result.stdout)
        if not isinstance(text, str):
            return Result(-1, "", "", "%s is not installed" % argv[0])
        return Result(result.rc, text, result.stderr)

    @property
    def unseen(self) -> Mapping[str, str]:
        return self._host.unseen

    def read_own(self, path: str) -> Text:
        return self.read(path)

    def exists(self, path: str) -> bool | Unknown:
        return self._host.exists(path)

    def listdir(self, path: str) -> list[str]:
        return self._host.listdir(path)

    def readlink(self, path: str) -> str | None:
        return self._host.readlink(path)


@areas
@pytest.mark.parametrize("is_there", [True, False], ids=["unreadable", "absent"])
def test_a_host_that_shows_nothing_is_never_called_right(area: str, is_there: bool) -> None:
    report = judged(every_area.sample(area), Blind(is_there))
    assert report.state in ("unknown", "blocked"), report
    assert report.findings, "nobody is told why"


@areas
def test_the_host_in_order_is_in_order(hosts: Hosts, area: str) -> None:
    """The ground of all this: without garbling, the tuned host is as wanted."""
    report = judged(every_area.sample(area), hosts(area, True))
    assert report.state in ("compliant", "pending_reboot"), report


@areas
def test_the_drawing_of_a_host_takes_what_it_gets(hosts: Hosts, area: str) -> None:
    host = hosts(area, False)

    @fuzz(60, seed=SEEDS)
    def draw_garbled(seed: int) -> None:
        facts = topology.host_facts(MemoHost(Garbled(host, seed)))
        json.dumps(readable(jsonable(facts)), ensure_ascii=False, allow_nan=False).encode("utf-8")

    draw_garbled()


# Parsers


def parsers() -> Iterator[Any]:
    for path in sorted((ROOT / "plugins/module_utils/_observe").glob("*.py")):
        module = importlib.import_module("%s_observe.%s" % (UTILS, path.stem))
        for name, function in sorted(vars(module).items()):
            if name.startswith("parse_") and function.__module__ == module.__name__:
                yield pytest.param(function, id="%s.%s" % (path.stem, name))


every_parser = pytest.mark.parametrize("parse", list(parsers()))


@lru_cache(maxsize=None)
def corpus() -> tuple[str, ...]:
    """Real outputs, all of them for every parser: one may get the output of another version, or of another tool."""
    places = sorted(path for path in (ROOT / "tests/corpus").rglob("*") if path.is_file())
    return tuple(read(path) for path in places)


def read(path: Path) -> str:
    return path.read_bytes()[:100_000].decode("utf-8", "surrogateescape")


OTHER_ARGUMENTS: Mapping[str, Any] = {
    "file": "/etc/x.conf", "owner": "tuned", "nodes": ("/dev/nvidia0", "/dev/null"), "variables": {"x": "y"},
    "path": "/etc/x.conf", "section": "mysqld", "name": "x",
}  # fmt: skip


def call(parse: Callable[..., Any], text: Any) -> Any:
    """Call a parser with a text where it takes one."""
    arguments: list[Any] = []
    for name, parameter in inspect.signature(parse).parameters.items():
        if name in ("text", "words"):
            arguments.append(text.split() if name == "words" and isinstance(text, str) else text)
        elif parameter.default is inspect.Parameter.empty:
            arguments.append(OTHER_ARGUMENTS[name])
    # Time that this process itself worked, so a busy machine does not matter.
    before = signal.signal(signal.SIGVTALRM, too_slow)
    signal.setitimer(signal.ITIMER_VIRTUAL, SLOWEST_S)
    try:
        return parse(*arguments)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def too_slow(_signal: int, _frame: object) -> None:
    raise AssertionError("the parser works for more than %g s" % SLOWEST_S)


@every_parser
def test_a_parser_takes_any_real_output(parse: Callable[..., Any]) -> None:
    for text in corpus():
        call(parse, text)


@every_parser
def test_a_parser_takes_any_garbled_output(parse: Callable[..., Any]) -> None:
    @fuzz(150, seed=SEEDS)
    def parse_garbled(seed: int) -> None:
        dice = random.Random(seed)
        call(parse, garble(dice.choice(corpus()), dice))

    parse_garbled()


@every_parser
def test_a_parser_takes_any_text(parse: Callable[..., Any]) -> None:
    pieces = st.one_of(st.sampled_from(JUNK), st.sampled_from(sorted(WORDS)), st.text(max_size=8))

    @fuzz(60, words=st.lists(pieces, max_size=30), glue=st.sampled_from(("", " ", "\n", "=", ": ")))
    def parse_text(words: list[str], glue: str) -> None:
        call(parse, glue.join(words))

    parse_text()


@every_parser
def test_a_parser_is_not_slowed_by_repetition(parse: Callable[..., Any]) -> None:
    for piece in (
        "a",
        " ",
        "\t",
        "0",
        "[",
        "=",
        ",",
        "-",
        "\\",
        "a ",
        "a=",
        " \n",
        "a,",
        '"',
        "{",
        "(",
        "a-",
        "A=\n",
        '[{"a":',
    ):
        call(parse, piece * 20_000)


@every_parser
def test_a_parser_that_takes_what_is_missing_does_not_invent(parse: Callable[..., Any]) -> None:
    if inspect.signature(parse).parameters.get("text") is None:
        return
    if inspect.signature(parse).parameters["text"].annotation != "Text":
        return
    for nothing in (None, Unknown("Input/output error")):
        found = call(parse, nothing)
        assert (found is not True and found != 0) or found is None or found == (), found


def test_looking_in_a_thread_is_the_same(hosts: Hosts) -> None:
    """What these tests go around: the real look gives the same."""
    sample = every_area.sample(every_area.NAMES[0])
    host = hosts(every_area.NAMES[0], False)
    assert look(sample.area, sample.want, host) == look_here(sample.area, sample.want, host)


# What stands before the repetition: words by which a parser gets to where it looks further.
OPENINGS = ("", "oom-kill:constraint=", "/sys/block/", "ATTR{queue/x}", "C1", "data =bsize=", "Name:", "none ")
REPEATED = (" ", "a", "0", "/sys/", ">", "a=", "a-", "block/")


@every_parser
def test_a_parser_takes_time_in_proportion(parse: Callable[..., Any]) -> None:
    """Four times the text costs about four times the time; sixteen times is what a pattern costs that looks back."""
    for opening in OPENINGS:
        for piece in REPEATED:
            if seconds(parse, opening + piece * (24_000 // len(piece))) < 0.05:
                continue
            short, long = (
                min(seconds(parse, opening + piece * (size // len(piece))) for _time in range(3))
                for size in (6_000, 24_000)
            )
            assert long < 0.05 or long < 9 * short, (opening, piece, short, long)


def seconds(parse: Callable[..., Any], text: str) -> float:
    begin = time.process_time()
    call(parse, text)
    return time.process_time() - begin
