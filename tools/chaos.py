# SPDX-License-Identifier: GPL-3.0-or-later
"""`make chaos`: cut a lab host's power at every step of a whole site.yml, and see that nothing is lost.

A run without a cut tells which lines the host writes: of the journal, two for each step, and of dpkg's log. Each line is
a moment. For each, from the same disks: boot, site.yml, QEMU killed as the line comes, boot, audit, site.yml, revert, and
a comparison with the host before, by checksums and live values that none of our modules took.

The host is one of its own, in .cache/chaos; what was tried is kept there, so a broken-off run goes on where it was.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lab import image as images
from lab import machine as machines
from lab import power
from lab.base import LabError
from lab.hosts import GPU_HOST
from lab.machine import Machine
from lab.play import NAME, Run, environment, play
from lab.power import Line, Remains
from tools.parts import CACHE, ROOT, close, tracked_files

STATE = CACHE / "chaos"
BASE, CUT, KEPT, LOGS = STATE / "base", STATE / "cut", STATE / "kept", STATE / "logs"
RECORD, RESULTS = STATE / "record.json", STATE / "results.json"
ARTIFACTS = STATE / "artifacts"
SNAPSHOT = ROOT / "molecule/default/tests/snapshot.sh"
PORT = "22203"
# What the outcome depends on: when one of these changes, all is tried again.
SOURCES = (
    "plugins/**",
    "roles/**",
    "playbooks/**",
    "site.yml",
    "inventories/lab/**",
    "lab/**",
    "molecule/**/snapshot.sh",
)
# A step that takes longer than this is cut in its middle as well.
LONG_S = 5.0
# Cut within these, a disk holds half of a filesystem or an array. Nothing of ours may touch it then: an operator has to.
HALF_MADE = re.compile(r"^volume\..*\.(array|mkfs)$")
DISKS = [disk for disk in GPU_HOST.disks if disk.bus == "nvme"]
CLEAR_DISKS = (
    "for array in /dev/md[0-9]*; do [ -b $array ] && mdadm --stop $array; done; "
    f"for disk in {' '.join('/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_' + disk.serial for disk in DISKS)}; "
    "do wipefs --all --quiet $disk && blkdiscard --force $disk; done; udevadm settle"
)
SETTLED = ("compliant", "changed", "pending_reboot")


class Fault(Exception):
    """Something that may not be after a power cut."""


@dataclass(frozen=True)
class Moment:
    """When the power is cut: ``delay_s`` after a line came."""

    number: int
    line: Line
    delay_s: float = 0.0

    @property
    def key(self) -> str:
        return f"{self.line.name}+{self.delay_s:.0f}"

    @property
    def text(self) -> str:
        return self.line.text + (f", {self.delay_s:.0f} s later" if self.delay_s else "")

    @property
    def is_in_package(self) -> bool:
        return self.line.source == "dpkg"


@dataclass(frozen=True)
class Record:
    """What a run without a cut showed, and the host before it and after it."""

    digest: str
    lines: tuple[tuple[float, Line], ...]
    before: tuple[str, ...]
    converged: tuple[str, ...]

    @property
    def steps(self) -> int:
        return sum(line.text.startswith("intend ") for _at, line in self.lines)


@dataclass(frozen=True)
class Result:
    state: str
    seconds: float
    words: str


def main(argv: Sequence[str] | None = None) -> int:
    words = parser().parse_args(argv)
    os.environ["GPUFLEET_LAB_DIR"] = str(STATE)
    os.environ.setdefault("GPUFLEET_LAB_PORT_LAB_GPU1", PORT)
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    machine = Machine(GPU_HOST)
    try:
        link_image()
        record = recorded(machine, fresh=words.fresh)
        moments = moments_of(record.lines)
        if words.list:
            print("\n".join(f"{moment.number:4} {moment.line.source:8} {moment.text}" for moment in moments))
            return 0
        return try_all(machine, record, chosen(moments, words.moments), again=bool(words.moments))
    except LabError as error:
        print(f"{error}\nWhat to do: {error.hint}")
        return close(passed=0, failed=1)
    except KeyboardInterrupt:
        print("\nBroken off; `make chaos` goes on with the moments that were not tried yet.")
        return 130
    finally:
        # Its disks are not needed any more, so it need not be shut down.
        if machine.pid:
            with quiet("end"):
                machines.cut(machine)


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    top.add_argument("--moments", default="", metavar="3,17-20,30-90/10", help="try these, also when they were tried")
    top.add_argument("--list", action="store_true", help="list the moments with their numbers")
    top.add_argument("--fresh", action="store_true", help="forget what was tried and record a new run")
    return top


def link_image() -> None:
    """The image and the key of the lab: only the disks are of our own."""
    if subprocess.run(["tools/lab.sh", "image"], cwd=ROOT, env={**os.environ, "GPUFLEET_LAB_DIR": ""}).returncode != 0:
        raise LabError("there is no image to boot", hint="make lab")
    STATE.mkdir(parents=True, exist_ok=True)
    for name in ("image", "id_ed25519", "id_ed25519.pub"):
        link = STATE / name
        if not link.is_symlink():
            link.symlink_to(Path("..") / "lab" / name)


def digest_of_sources() -> str:
    found = hashlib.sha256()
    for name in tracked_files(*SOURCES):
        found.update(name.encode() + b"\0" + (ROOT / name).read_bytes() + b"\0")
    return found.hexdigest()[:16]


def recorded(machine: Machine, *, fresh: bool) -> Record:
    """The run without a cut, of now or of an earlier `make chaos` on the same sources."""
    digest = digest_of_sources()
    if RECORD.exists() and not fresh:
        known = json.loads(RECORD.read_text())
        if known["digest"] == digest:
            lines = tuple((at, Line(**line)) for at, line in known["lines"])
            return Record(digest, lines, tuple(known["before"]), tuple(known["converged"]))
    for path in (RECORD, RESULTS):
        path.unlink(missing_ok=True)
    print("Making the host, and recording one run without a cut (about 8 minutes)", flush=True)
    with quiet("record"):
        record = record_run(machine, digest)
    RECORD.write_text(json.dumps(asdict(record), indent=1))
    return record


def record_run(machine: Machine, digest: str) -> Record:
    machines.reset(machine, images.build())
    # Its boot menu is its own then: the image's was made without a disk.
    on_host(machine, "update-grub && apt-get -q update && sync")
    machines.down(machine)
    copy_disks(machine.paths.folder, BASE)
    boot(machine)
    before = snapshot(machine)
    on_host(machine, "apt-get -q remove -y xfsprogs")
    _never, lines = cut_site(machine, "record", None)
    report = json.loads((ARTIFACTS / "record" / f"{NAME}.json").read_text())
    if report["state"] not in SETTLED:
        raise LabError(f"the run without a cut ends {report['state']}", hint=f"read {LOGS / 'record-cut.log'}")
    converged = snapshot(machine)
    machines.down(machine)
    return Record(digest, tuple(lines), before, converged)


def moments_of(lines: Sequence[tuple[float, Line]]) -> list[Moment]:
    """Each line, and the middle of what takes long until the next one."""
    found: list[Moment] = []
    ends = [at for at, _line in lines[1:]] + [lines[-1][0]]
    for (at, line), end in zip(lines, ends, strict=True):
        found.append(Moment(len(found) + 1, line))
        # Between two areas Ansible works, and nothing is changed.
        if end - at > LONG_S and not line.text.startswith("end "):
            found.append(Moment(len(found) + 1, line, (end - at) / 2))
    return found


def chosen(moments: Sequence[Moment], words: str) -> list[Moment]:
    if not words:
        return list(moments)
    numbers: set[int] = set()
    for part in words.split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+)(?:/(\d+))?)?", part.strip())
        if not match:
            raise LabError(f"--moments {words}: {part!r} is no number and no range", hint="make chaos ARGS=--list")
        first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        numbers.update(range(first, last + 1, step))
    unknown = numbers - {moment.number for moment in moments}
    if unknown:
        raise LabError(f"there is no moment {min(unknown)}", hint="make chaos ARGS=--list")
    return [moment for moment in moments if moment.number in numbers]


def try_all(machine: Machine, record: Record, moments: Sequence[Moment], *, again: bool) -> int:
    results = {key: Result(**known) for key, known in read_results().items()}
    todo = [moment for moment in moments if again or moment.key not in results]
    if len(todo) < len(moments):
        print(f"{len(moments) - len(todo)} of {len(moments)} moments were tried before")
    taken: list[float] = []
    for moment in todo:
        left_s = (len(todo) - len(taken)) * (sum(taken) / len(taken) if taken else 360.0)
        print(
            f"[{len(taken) + 1}/{len(todo)}, {clock(left_s)} left] {moment.number}: {moment.text}", end="", flush=True
        )
        started = time.monotonic()
        state, words = try_one(machine, record, moment)
        taken.append(time.monotonic() - started)
        results[moment.key] = Result(state, taken[-1], words)
        RESULTS.write_text(json.dumps({key: asdict(result) for key, result in results.items()}, indent=1))
        print(f": {state}, {words} ({clock(taken[-1])})", flush=True)
    return summary(moments, results)


def read_results() -> dict[str, Any]:
    known: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    return known


def summary(moments: Sequence[Moment], results: dict[str, Result]) -> int:
    print("\nmoment  state    min  cut as the host wrote, and what was found")
    for moment in moments:
        result = results[moment.key]
        print(f"{moment.number:6}  {result.state:6} {clock(result.seconds):>5}  {moment.text}: {result.words}")
    bad = [moment for moment in moments if results[moment.key].state != "ok"]
    if bad:
        print(
            f"What to do: `make chaos ARGS='--moments {','.join(str(moment.number) for moment in bad)}'` repeats them. "
            f"The disks as the cut left them are in {KEPT.relative_to(ROOT)}/NUMBER: copy them to "
            f"{(STATE / NAME).relative_to(ROOT)}, then "
            f"GPUFLEET_LAB_DIR={STATE.relative_to(ROOT)} lab/lab.py up {NAME}."
        )
    return close(passed=len(moments) - len(bad), failed=len(bad))


def clock(seconds: float) -> str:
    minutes = int(seconds) // 60
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"{minutes}:{int(seconds) % 60:02d}"


def try_one(machine: Machine, record: Record, moment: Moment) -> tuple[str, str]:
    """Whether a moment is survived, and what was found or where it failed."""
    kept = KEPT / str(moment.number)
    shutil.rmtree(kept, ignore_errors=True)
    with quiet(f"moment-{moment.number}"):
        try:
            return "ok", trial(machine, record, moment)
        except (Fault, LabError) as error:
            if CUT.exists():
                kept.parent.mkdir(exist_ok=True)
                CUT.rename(kept)
            return "FAILED", str(error)


def trial(machine: Machine, record: Record, moment: Moment) -> str:
    cut_there(machine, moment)
    boot(machine)
    found = read_journal(machine)
    audited = run("playbooks/audit.yml", moment, "audit")
    check_audit(audited, found, record)
    is_held = converge(machine, moment, found)
    compare(record.converged, snapshot(machine), "the host is not as after a run without a cut")
    reverted = run("playbooks/revert.yml", moment, "revert", "-e", "gpufleet_allow_risk=destructive")
    if reverted.rc != 0:
        raise Fault(f"revert fails: {last_words(reverted)}")
    compare(record.before, snapshot(machine), "after revert the host is not as before")
    last = found.last or "nothing"
    held = "; half made, held until it was cleared" if is_held else ""
    return f"the disk held: {last}; audit: {audited.report['state']}{held}"


def cut_there(machine: Machine, moment: Moment) -> None:
    """From fresh copies of the disks to disks that a cut has left."""
    shutil.rmtree(CUT, ignore_errors=True)
    if machine.pid:
        machines.cut(machine)
    copy_disks(BASE, machine.paths.folder)
    boot(machine)
    if moment.is_in_package:
        on_host(machine, "apt-get -q remove -y xfsprogs && sync")
    cut_at, seen = cut_site(machine, f"moment-{moment.number}", moment)
    if cut_at is None:
        raise Fault(f"the run ended after {len(seen)} lines, before this one came")
    copy_disks(machine.paths.folder, CUT)


def cut_site(machine: Machine, name: str, moment: Moment | None) -> tuple[Line | None, list[tuple[float, Line]]]:
    """site.yml on a host with a slow root disk, until the moment, or to its end."""
    shutil.rmtree(ARTIFACTS / name, ignore_errors=True)
    power.slow_down(machine)
    try:
        return power.play_until(
            machine,
            ["ansible-playbook", "site.yml"],
            LOGS / f"{name}-cut.log",
            lambda line: moment is not None and line.name == moment.line.name,
            delay_s=moment.delay_s if moment else 0.0,
            cwd=ROOT,
            env=environment(name, ARTIFACTS),
        )
    finally:
        if machine.pid:
            power.slow_down(machine, 0)


def read_journal(machine: Machine) -> Remains:
    try:
        return Remains.of(on_host(machine, f"cat {power.JOURNAL} 2>/dev/null || true"))
    except ValueError as error:
        raise Fault(f"the journal cannot be read: {error}") from None


def check_audit(audited: Run, found: Remains, record: Record) -> None:
    """An audit after the cut: it gives a report, names the runs cut off, and does not take half for whole."""
    if NAME not in audited.reports:
        raise Fault(f"the audit gives no report: {last_words(audited)}")
    report = audited.report
    if audited.interrupted() != found.open_runs:
        raise Fault(f"open in the journal: {found.open_runs}; named by the audit: {audited.interrupted()}")
    if audited.subjects("engine.journal-damaged"):
        raise Fault(f"the audit calls the journal damaged: {last_words(audited)}")
    if report["state"] in ("unknown", "failed", "rolled_back"):
        raise Fault(f"the audit ends {report['state']}: {last_words(audited)}")
    if found.intended < record.steps and report["state"] in SETTLED:
        raise Fault(f"{found.intended} of {record.steps} steps were begun, and the audit says {report['state']}")


def converge(machine: Machine, moment: Moment, found: Remains) -> bool:
    """site.yml brings the host there. True when disks were held as half made, and cleared by hand on the way."""
    done = run("site.yml", moment, "site")
    is_held = NAME in done.reports and done.report["state"] == "blocked" and bool(HALF_MADE.match(found.unfinished))
    if is_held:
        on_host(machine, CLEAR_DISKS)
        done = run("site.yml", moment, "site-again")
    if done.rc != 0 or done.report["state"] not in SETTLED:
        raise Fault(f"site.yml does not converge: {last_words(done)}")
    return is_held


def run(playbook: str, moment: Moment, name: str, *args: str) -> Run:
    label = f"moment-{moment.number}-{name}"
    done = play(playbook, label, *args, artifacts=ARTIFACTS)
    (LOGS / f"{label}.log").write_text(done.output)
    return done


def last_words(done: Run) -> str:
    """What the report says, without its frame; all of it is in the log."""
    text = done.output.partition("GPUFLEET REPORT")[2] or done.output
    rows = [row.strip() for row in text.splitlines()[1:] if row.strip() and not row.startswith("Report:")]
    return " / ".join(rows[:6])[:600]


def snapshot(machine: Machine) -> tuple[str, ...]:
    return tuple(sorted(on_host(machine, "bash -s", SNAPSHOT.read_text()).splitlines()))


def compare(wanted: Sequence[str], now: Sequence[str], what: str) -> None:
    before, after = set(wanted), set(now)
    rows = [f"- {row}" for row in sorted(before - after)] + [f"+ {row}" for row in sorted(after - before)]
    if rows:
        raise Fault(f"{what}: {'; '.join(rows[:8])}{f' and {len(rows) - 8} more' if len(rows) > 8 else ''}")


def on_host(machine: Machine, command: str, stdin: str = "") -> str:
    argv = machines.ssh_argv(machine, command)
    done = subprocess.run(argv, input=stdin, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode != 0:
        raise LabError(
            f"`{command[:60]}` ended with {done.returncode}: {(done.stderr or done.stdout).strip()[-300:]}",
            hint=f"read {machine.paths.serial_log}",
        )
    return done.stdout


def boot(machine: Machine) -> None:
    machines.up(machine, images.current())


def copy_disks(there: Path, here: Path) -> None:
    """Root overlay, firmware variables and data disks; they are sparse, and a blank one costs nothing."""
    shutil.rmtree(here, ignore_errors=True)
    here.mkdir(parents=True)
    files = [path for pattern in ("*.raw", "*.qcow2", "*.fd", "state.json") for path in there.glob(pattern)]
    subprocess.run(["cp", "--sparse=always", "--reflink=auto", *map(str, files), str(here)], check=True)


@contextmanager
def quiet(name: str) -> Iterator[None]:
    """What the lab says goes to a log."""
    LOGS.mkdir(parents=True, exist_ok=True)
    with (LOGS / f"{name}.log").open("a") as log, redirect_stdout(log):
        yield


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
