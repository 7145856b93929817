# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Slices: unit files, what systemd has loaded, and what the kernel's control groups hold, kept as one.

The file makes it last, the unit's properties say what systemd means, the control group says what is
true.  All three are read and all three are kept.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from .._engine.cpuset import format_cpulist, parse_cpulist
from .._engine.values import Step, Unknown
from .numa_layout import LIMITS, TOP, Layout, Slice, layout
from .numa_texts import MARK, confine_drop_in, gpu_map, properties, slice_unit, target_drop_in
from .numa_want import check_want

UNIT_FOLDER = "/etc/systemd/system"
TARGET_DROP_IN = UNIT_FOLDER + "/slices.target.d/50-gpufleet.conf"
GPU_RUN = "/usr/local/bin/gpu-run"
MAP_FILE = "/etc/gpufleet/gpu-map.json"

# Everything that systemd starts by itself lies below one of these (systemd.special(7)).
SYSTEM_UNITS = ("system.slice", "user.slice", "init.scope")

# Property of the unit -> file of its control group (systemd.resource-control(5)).
KERNEL_FILE = {
    "AllowedCPUs": "cpuset.cpus",
    "AllowedMemoryNodes": "cpuset.mems",
    "MemoryMax": "memory.max",
    "CPUWeight": "cpu.weight",
    "TasksMax": "pids.max",
}
CGROUP_FOLDER = "/sys/fs/cgroup"

# $1 is a slice, $2 its cgroup.events (without the file the slice is not active, and stopping it does nothing).
STOP_IF_EMPTY = (
    'if grep -qs "^populated 1" "$2"; then echo "something runs in $1: systemd-cgls -u $1" >&2; exit 1; fi; '
    'exec systemctl stop -- "$1"'
)
# $1 is a list of CPUs, $2 a file that is there only while the cpuset controller is on.
WRITE_IF_THERE = 'test ! -e "$2" || echo "$1" > "$2"'
_WIDEN_WHY = (
    "systemd narrows a list of CPUs when it reads it, but does not widen it again when the setting is gone "
    "(https://github.com/systemd/systemd/issues/43846)"
)
SOURCE = "systemd.slice(5), systemd.resource-control(5)"

__all__ = ["MARK", "adopt", "check_want", "confined_units", "plan", "wanted_slices"]


def wanted_slices(want: Mapping[str, Any], have: Mapping[str, Any]) -> Layout:
    """What is to be there: nothing where slices are not wanted, or where kubelet or slurmd hands out the CPUs."""
    if want.get("state") == "absent":
        return Layout()
    found = layout(want, have)
    return Layout((), found.housekeeping, found.findings) if have["managers"] else found


def confined_units(want: Mapping[str, Any], have: Mapping[str, Any]) -> Tuple[str, ...]:
    absent = want.get("state") == "absent" or have["managers"]
    return SYSTEM_UNITS if want.get("confine_system") and not absent else ()


def plan(want: Mapping[str, Any], have: Mapping[str, Any]) -> List[Step]:
    """Files, then one reload, then starts, then values that someone wrote over systemd's, then a proof."""
    found = wanted_slices(want, have)
    if have["hierarchy"] != "unified" or isinstance(have["units"], Unknown):
        return []
    if not found.is_decided:
        return []
    files = _file_steps(want, have, found)
    stops = [_stop(name) for name in _to_stop(found, have)]
    reload = _reload_steps(want, have, found, files)
    names = [TOP, *[one.name for one in found.slices]] if found.slices else []
    starts = [_start(name, have) for name in names if not _is_active(name, have)]
    written = {step.target for step in files}
    values = [step for one in found.slices if unit_file(one.name) not in written for step in _value_steps(one, have)]
    if not reload:
        values += _confine_values(confined_units(want, have), found.housekeeping, have)
    proof = [_proof(found)] if found.slices and [*stops, *reload, *starts, *values] else []
    anchors = [*_reload_last(reload), *_widen_last(files, have)]
    return [*anchors, *stops, *_let_loose(want, have), *files, *reload, *starts, *values, *proof]


def unwanted(found: Layout, have: Mapping[str, Any]) -> List[str]:
    """Slices that we wrote once and that are not wanted any more, children first."""
    wanted = {one.name for one in found.slices}
    return sorted((name for name in have["ours"] if name not in wanted), key=lambda name: (-name.count("-"), name))


def _to_stop(found: Layout, have: Mapping[str, Any]) -> List[str]:
    names = [name for name in unwanted(found, have) if _is_active(name, have)]
    top = have["groups"].get(TOP)
    # Others may use the slice above ours; it is stopped when nothing is left in it.
    is_left = not found.slices and _is_active(TOP, have) and top is not None and top.is_populated is False
    return [*names, TOP] if is_left else names


def wanted_files(want: Mapping[str, Any], have: Mapping[str, Any], found: Layout) -> Dict[str, Optional[str]]:
    """Every file of ours with its text, None for one that is to go."""
    files: Dict[str, Optional[str]] = {
        GPU_RUN: have["program"] if found.slices else None,
        MAP_FILE: gpu_map(found, have["gpus"]) if found.slices else None,
    }
    files.update((unit_file(name), None) for name in unwanted(found, have))
    files.update((unit_file(one.name), slice_unit(one)) for one in found.slices)
    files[TARGET_DROP_IN] = target_drop_in(found.slices) if found.slices else None
    confined = confined_units(want, have)
    for unit in SYSTEM_UNITS:
        files[confine_file(unit)] = confine_drop_in(unit, sorted(found.housekeeping)) if unit in confined else None
    return files


def unit_file(name: str) -> str:
    return "%s/%s" % (UNIT_FOLDER, name)


def confine_file(unit: str) -> str:
    return "%s/%s.d/50-gpufleet-housekeeping.conf" % (UNIT_FOLDER, unit)


def overrides_of(unit: str, have: Mapping[str, Any], keys: Iterable[str]) -> List[Tuple[str, int, str]]:
    """Lines of others' drop-ins that set one of the properties: file, line number, line."""
    rows: List[Tuple[str, int, str]] = []
    for path, text in have["drop_ins"].get(unit, {}).items():
        if isinstance(text, str) and MARK not in text:
            for number, line in enumerate(text.splitlines(), 1):
                if line.partition("=")[0].strip() in keys:
                    rows.append((path, number, line.strip()))
    return rows


def same(key: str, wanted: str, live: str) -> bool:
    """Whether two spellings of a property mean the same ("0-1 3" and "0,1,3")."""
    if key not in ("AllowedCPUs", "AllowedMemoryNodes"):
        return _word(wanted) == _word(live)
    try:
        return parse_cpulist(wanted) == parse_cpulist(live)
    except ValueError:
        return False


def adopt(have: Mapping[str, Any]) -> Dict[str, Any]:
    """The slices that hold now, as the role's variables would ask for them."""
    if isinstance(have["units"], Unknown) or isinstance(have["nodes"], Unknown):
        return {}
    active = {name: have["groups"][name] for name in have["ours"] if have["groups"].get(name)}
    rows = [_adopt_gpu(name, group, have) for name, group in sorted(active.items()) if "-gpu" in name]
    found: Dict[str, Any] = {"state": "present" if active else "absent"}
    nodes = [group for name, group in active.items() if "-gpu" not in name]
    if (
        nodes
        and not any(isinstance(group.cpus, Unknown) for group in nodes)
        and not isinstance(have["online"], Unknown)
    ):
        given = frozenset().union(*(group.cpus for group in nodes))
        found["housekeeping_cpus"] = format_cpulist(have["online"] - given)
        if not found["housekeeping_cpus"]:
            found.update({"housekeeping_cpus": "", "housekeeping_cores_per_node": 0})
    if rows:
        found["gpus"] = sorted(rows, key=lambda row: int(row["index"]))
    found["confine_system"] = all(isinstance(have["files"].get(confine_file(unit)), str) for unit in SYSTEM_UNITS)
    return found


def _adopt_gpu(name: str, group: Any, have: Mapping[str, Any]) -> Dict[str, Any]:
    node, gpu = name[len("gpufleet-node") : -len(".slice")].split("-gpu")
    row: Dict[str, Any] = {"index": int(gpu), "node": int(node)}
    if not isinstance(group.cpus, Unknown):
        row["cpus"] = format_cpulist(group.cpus)
    if not isinstance(group.mems, Unknown):
        row["memory_nodes"] = format_cpulist(group.mems)
    unit = have["units"].get(name, {})
    for key, prop in LIMITS.items():
        value = _word(unit.get(prop, ""))
        if value not in ("", "infinity"):
            row[key] = value
    return row


def _file_steps(want: Mapping[str, Any], have: Mapping[str, Any], found: Layout) -> List[Step]:
    steps: List[Step] = []
    for path, text in wanted_files(want, have, found).items():
        before = have["files"].get(path)
        if before == text or isinstance(before, Unknown):
            continue
        if text is None and not (isinstance(before, str) and _is_ours(path, before)):
            continue
        mode = 0o755 if path == GPU_RUN else 0o644
        steps.append(Step(_file_id(path), "file", path, before, text, _why(path), SOURCE, "reload", mode=mode))
    return steps


def _is_ours(path: str, text: str) -> bool:
    return (path == GPU_RUN and "gpufleet" in text) or MARK[2:] in text


def _file_id(path: str) -> str:
    name = path.rsplit("/", 1)[1]
    if path.startswith(UNIT_FOLDER) and name.endswith(".conf"):
        name = path.split("/")[-2][: -len(".d")]
    return "numa_slices.%s.file" % name


def _why(path: str) -> str:
    if path == GPU_RUN:
        return "starts a command in the slice of a GPU"
    if path == MAP_FILE:
        return "tells gpu-run which GPU has which slice, CPUs and memory"
    return "a limit that is in no file is lost at the next boot"


def _reload_steps(want: Mapping[str, Any], have: Mapping[str, Any], found: Layout, files: Sequence[Step]) -> List[Step]:
    """One reload when systemd has not read the files as they are, or will be."""
    is_written = any(step.target.startswith(UNIT_FOLDER) for step in files)
    if not is_written and not any(_is_stale(unit, keys, have) for unit, keys in _units(want, have, found)):
        return []
    why = "systemd goes by what it has read, and writes it to the control groups when it reads anew"
    # The reverse is numa_slices.reload-last: it has to come after the files are back.
    undo = Step("undo.numa_slices.reload", "run", "gpufleet slices", None, None, why, "systemctl(1)", argv=("true",))
    return [
        Step(
            "numa_slices.reload", "run", "gpufleet units", "as read before", "as the files are", why, "systemctl(1)",
            "reload", argv=("systemctl", "daemon-reload"), deadline_s=120.0, undo=undo,
        )
    ]  # fmt: skip


def _reload_last(reload: Sequence[Step]) -> List[Step]:
    """A step that does nothing but has a reverse: undoing goes backwards, so this reloads after all files are back."""
    argv = ("systemctl", "daemon-reload")
    why = "when the run is undone, systemd reads the restored files here"
    return [_anchor("numa_slices.reload-last", "gpufleet units restored", argv, why)] if reload else []


def _widen_last(files: Sequence[Step], have: Mapping[str, Any]) -> List[Step]:
    """Likewise, for the system's own slices: once their drop-in is gone again, they get their CPUs back."""
    targets = {confine_file(unit): unit for unit in SYSTEM_UNITS}
    steps: List[Step] = []
    for step in files:
        unit = targets.get(step.target)
        if unit is not None and step.before is None:
            path = "%s/%s/cpuset.cpus" % (CGROUP_FOLDER, unit)
            argv = ("sh", "-c", WRITE_IF_THERE, "sh", format_cpulist(have["online"]), path)
            steps.append(_anchor("numa_slices.%s.widen-last" % unit, path, argv, _WIDEN_WHY))
    return steps


def _anchor(name: str, target: str, argv: Tuple[str, ...], why: str) -> Step:
    why = "does nothing now; " + why
    undo = Step("undo." + name, "run", target, None, None, why, SOURCE, argv=argv, deadline_s=120.0)
    return Step(name, "run", target, None, None, why, SOURCE, argv=("true",), undo=undo)


def _units(want: Mapping[str, Any], have: Mapping[str, Any], found: Layout) -> List[Tuple[str, Dict[str, str]]]:
    """The units that our files are about, with the properties each should have."""
    rows = [(one.name, properties(one)) for one in found.slices]
    rows += [(unit, {"AllowedCPUs": format_cpulist(found.housekeeping)}) for unit in confined_units(want, have)]
    return [*rows, ("slices.target", {})] if found.slices else rows


def _is_stale(name: str, keys: Mapping[str, str], have: Mapping[str, Any]) -> bool:
    unit = have["units"].get(name, {})
    if unit.get("NeedDaemonReload") == "yes":
        return True
    if overrides_of(name, have, keys):
        return False
    return any(not same(key, value, unit.get(key, "")) for key, value in keys.items())


def _is_active(name: str, have: Mapping[str, Any]) -> bool:
    return bool(have["units"].get(name, {}).get("ActiveState") == "active")


def _start(name: str, have: Mapping[str, Any]) -> Step:
    before = have["units"].get(name, {}).get("ActiveState") or "unknown"
    why = "an active slice shows in its control group that it confines, before any job is in it"
    undo = Step(
        "undo.numa_slices.%s.start" % name, "run", name, "active", "inactive when nothing runs in it",
        "only an empty slice is stopped: an undo never kills a running job", SOURCE,
        argv=("sh", "-c", STOP_IF_EMPTY, "sh", name, group_folder(name) + "/cgroup.events"),
    )  # fmt: skip
    argv = ("systemctl", "start", "--", name)
    return Step("numa_slices.%s.start" % name, "run", name, before, "active", why, SOURCE, argv=argv, undo=undo)


def _stop(name: str) -> Step:
    argv = ("systemctl", "start", "--", name)
    undo = Step("undo.numa_slices.%s.stop" % name, "run", name, "inactive", "active", "as it was", SOURCE, argv=argv)
    why = "the slice is not wanted any more and is empty"
    argv = ("systemctl", "stop", "--", name)
    return Step("numa_slices.%s.stop" % name, "run", name, "active", "inactive", why, SOURCE, argv=argv, undo=undo)


def group_folder(name: str) -> str:
    """The control group of a slice of ours: dashes are a hierarchy (systemd.slice(5))."""
    words = name[: -len(".slice")].split("-")
    return "/".join([CGROUP_FOLDER] + ["-".join(words[: count + 1]) + ".slice" for count in range(len(words))])


def _value_steps(one: Slice, have: Mapping[str, Any]) -> List[Step]:
    """Values that were written over systemd's: its properties are right, the control group is not."""
    group = have["groups"].get(one.name)
    if group is None or not _is_active(one.name, have) or _is_stale(one.name, properties(one), have):
        return []
    steps: List[Step] = []
    for key, value in properties(one).items():
        wanted, live = _kernel_word(key, value), group.values.get(KERNEL_FILE[key])
        if isinstance(live, str) and not _same_in_kernel(key, wanted, live):
            if overrides_of(one.name, have, [key]):
                continue
            path = "%s/%s" % (group.path, KERNEL_FILE[key])
            why = "someone wrote over what systemd had set, and systemd does not look again by itself"
            name = "numa_slices.%s.%s" % (one.name, KERNEL_FILE[key])
            steps.append(Step(name, "value", path, live.strip() or "\n", wanted, why, "cgroup-v2 document"))
    return steps


def _confine_values(units: Sequence[str], cpus: Iterable[int], have: Mapping[str, Any]) -> List[Step]:
    """The lists of CPUs of system.slice and the like, where they are not what they should be."""
    steps: List[Step] = []
    wanted = format_cpulist(cpus)
    for unit in units:
        group = have["groups"].get(unit)
        live = group.values.get("cpuset.cpus") if group is not None else None
        if not isinstance(live, str) or overrides_of(unit, have, ["AllowedCPUs"]) or same("AllowedCPUs", wanted, live):
            continue
        path = "%s/%s/cpuset.cpus" % (CGROUP_FOLDER, unit)
        before = live.strip() or format_cpulist(have["online"])
        name = "numa_slices.%s.cpuset.cpus" % unit
        steps.append(Step(name, "value", path, before, wanted, _WIDEN_WHY, SOURCE))
    return steps


def _let_loose(want: Mapping[str, Any], have: Mapping[str, Any]) -> List[Step]:
    """Before the drop-in goes: give the system its CPUs back where we had taken them."""
    confined = confined_units(want, have)
    is_ours = {unit: isinstance(have["files"].get(confine_file(unit)), str) for unit in SYSTEM_UNITS}
    units = [unit for unit in SYSTEM_UNITS if unit not in confined and is_ours[unit]]
    return _confine_values(units, have["online"], have) if units else []


def _proof(found: Layout) -> Step:
    """The last step: a process in each slice, and what the kernel allows it.  A slice that does not hold undoes all."""
    why = "starts a process in each slice and reads its Cpus_allowed_list and Mems_allowed_list"
    undo = Step(
        "undo.numa_slices.proof", "run", "gpufleet slices", None, None, "it left nothing behind", SOURCE, argv=("true",)
    )
    return Step(
        "numa_slices.proof", "run", "gpufleet slices", "not proved", "proved by a process in each", why, "proc(5)",
        argv=(GPU_RUN, "--verify", *[one.name for one in found.slices]), deadline_s=30.0 + 10.0 * len(found.slices),
        undo=undo,
    )  # fmt: skip


def _kernel_word(key: str, value: str) -> str:
    return "max" if value == "infinity" else value


def _same_in_kernel(key: str, wanted: str, live: str) -> bool:
    return same(key, wanted, live) if key in ("AllowedCPUs", "AllowedMemoryNodes") else wanted == live.strip()


def _word(value: str) -> str:
    """One word for "no value" in all its spellings."""
    return "infinity" if value in ("[not set]", "18446744073709551615") else value
