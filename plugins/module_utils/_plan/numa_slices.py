# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Slices: unit files, what systemd has loaded, and what the kernel's control groups hold, kept as one.

The file makes it last, the unit's properties say what systemd means, the control group says what is
true.  All three are read and all three are kept.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from .._engine.cpuset import format_cpulist
from .._engine.values import Step, Unknown
from .numa_layout import TOP, Layout, layout
from .numa_limits import LIMITS
from .numa_steps import WIDEN_WHY, WRITE_IF_THERE, anchor, confine_values, proof, start_slice, stop_slice, value_steps
from .numa_texts import MARK, confine_drop_in, gpu_map, properties, slice_unit, target_drop_in
from .numa_units import (
    CGROUP_FOLDER,
    GPU_RUN,
    MAP_FILE,
    SOURCE,
    SYSTEM_UNITS,
    TARGET_DROP_IN,
    UNIT_FOLDER,
    confine_file,
    is_active,
    is_stale,
    unit_file,
    word,
)


def wanted_slices(want: Mapping[str, Any], have: Mapping[str, Any]) -> Layout:
    """What is to be there: nothing where slices are not wanted, or where kubelet or slurmd hands out the CPUs."""
    if want.get("state") != "present":
        return Layout()
    found = layout(want, have)
    return Layout((), found.housekeeping, found.findings) if have["managers"] else found


def confined_units(want: Mapping[str, Any], have: Mapping[str, Any]) -> Tuple[str, ...]:
    is_there = want.get("state") == "present" and not have["managers"]
    return SYSTEM_UNITS if want.get("confine_system") and is_there else ()


def plan(want: Mapping[str, Any], have: Mapping[str, Any]) -> List[Step]:
    """Files, then one reload, then starts, then values that someone wrote over systemd's, then a proof."""
    if want.get("state") is None or have["hierarchy"] != "unified" or isinstance(have["units"], Unknown):
        return []
    found = wanted_slices(want, have)
    if not found.is_decided:
        return []
    files = _file_steps(want, have, found)
    stops = [stop_slice(name) for name in _to_stop(found, have)]
    reload = _reload_steps(want, have, found, files)
    names = [TOP, *[one.name for one in found.slices]] if found.slices else []
    starts = [start_slice(name, have) for name in names if not is_active(name, have)]
    written = {step.target for step in files}
    values = [step for one in found.slices if unit_file(one.name) not in written for step in value_steps(one, have)]
    if not reload:
        values += confine_values(confined_units(want, have), found.housekeeping, have)
    proofs = [proof(found)] if found.slices and [*stops, *reload, *starts, *values] else []
    anchors = [*_reload_last(reload), *_widen_last(files, have)]
    return [*anchors, *stops, *_let_loose(want, have), *files, *reload, *starts, *values, *proofs]


def unwanted(found: Layout, have: Mapping[str, Any]) -> List[str]:
    """Slices that we wrote once and that are not wanted any more, children first."""
    wanted = {one.name for one in found.slices}
    return sorted((name for name in have["ours"] if name not in wanted), key=lambda name: (-name.count("-"), name))


def _to_stop(found: Layout, have: Mapping[str, Any]) -> List[str]:
    names = [name for name in unwanted(found, have) if is_active(name, have)]
    top = have["groups"].get(TOP)
    # Others may use the slice above ours; it is stopped when nothing is left in it.
    is_left = not found.slices and is_active(TOP, have) and top is not None and top.is_populated is False
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
        with_slice = {row["index"] for row in rows}
        rows += [{"index": i, "slice": False} for i in _indexes(have) if i not in with_slice]
        found["gpus"] = sorted(rows, key=lambda row: int(row["index"]))
    found["confine_system"] = all(isinstance(have["files"].get(confine_file(unit)), str) for unit in SYSTEM_UNITS)
    return found


def _indexes(have: Mapping[str, Any]) -> List[int]:
    return [] if isinstance(have["gpus"], Unknown) else list(range(len(have["gpus"])))


def _adopt_gpu(name: str, group: Any, have: Mapping[str, Any]) -> Dict[str, Any]:
    node, gpu = name[len("gpufleet-node") : -len(".slice")].split("-gpu")
    row: Dict[str, Any] = {"index": int(gpu), "node": int(node)}
    if not isinstance(group.cpus, Unknown):
        row["cpus"] = format_cpulist(group.cpus)
    if not isinstance(group.mems, Unknown):
        row["memory_nodes"] = format_cpulist(group.mems)
    unit = have["units"].get(name, {})
    for key, prop in LIMITS.items():
        value = word(unit.get(prop, ""))
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
    if not is_written and not any(is_stale(unit, keys, have) for unit, keys in _units(want, have, found)):
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
    return [anchor("numa_slices.reload-last", "gpufleet units restored", argv, why)] if reload else []


def _widen_last(files: Sequence[Step], have: Mapping[str, Any]) -> List[Step]:
    """Likewise, for the system's own slices: once their drop-in is gone again, they get their CPUs back."""
    targets = {confine_file(unit): unit for unit in SYSTEM_UNITS}
    steps: List[Step] = []
    for step in files:
        unit = targets.get(step.target)
        if unit is not None and step.before is None:
            path = "%s/%s/cpuset.cpus" % (CGROUP_FOLDER, unit)
            argv = ("sh", "-c", WRITE_IF_THERE, "sh", format_cpulist(have["online"]), path)
            steps.append(anchor("numa_slices.%s.widen-last" % unit, path, argv, WIDEN_WHY))
    return steps


def _units(want: Mapping[str, Any], have: Mapping[str, Any], found: Layout) -> List[Tuple[str, Dict[str, str]]]:
    """The units that our files are about, with the properties each should have."""
    rows = [(one.name, properties(one)) for one in found.slices]
    rows += [(unit, {"AllowedCPUs": format_cpulist(found.housekeeping)}) for unit in confined_units(want, have)]
    return [*rows, ("slices.target", {})] if found.slices else rows


def _let_loose(want: Mapping[str, Any], have: Mapping[str, Any]) -> List[Step]:
    """Before the drop-in goes: give the system its CPUs back where we had taken them."""
    confined = confined_units(want, have)
    is_ours = {unit: isinstance(have["files"].get(confine_file(unit)), str) for unit in SYSTEM_UNITS}
    units = [unit for unit in SYSTEM_UNITS if unit not in confined and is_ours[unit]]
    return confine_values(units, have["online"], have) if units else []
