# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""gpu-run: start a command in the slice of one or more GPUs.

    gpu-run 0 -- python train.py      on GPU 0, its CPUs and its memory
    gpu-run 0-3 -- torchrun ...       on several
    gpu-run node1 -- numactl --show   on a NUMA node, without a GPU
    gpu-run --show                    the map of this host

The command takes the place of this process: terminal, directory, signals and exit status are its own.
It is a program of its own, installed by the role numa_slices: it imports nothing but the standard library.
"""

from __future__ import annotations

import base64
import ctypes
import json
import os
import pwd
import re
import subprocess
import sys
from typing import Any, Dict, FrozenSet, Iterable, List, NoReturn, Optional, Sequence, Tuple

MAP_FILE = "/etc/gpufleet/gpu-map.json"
CGROUP_FOLDER = "/sys/fs/cgroup"
TOP = "gpufleet.slice"
SYSTEMD_RUN = "/usr/bin/systemd-run"

USAGE = """usage: gpu-run [--as-me | --user NAME] WHICH -- COMMAND [ARGUMENT...]
       gpu-run --no-slice WHICH -- COMMAND [ARGUMENT...]
       gpu-run --show
       gpu-run --verify [SLICE...]

WHICH        a GPU (0), several (0-3 or 0,2), or a NUMA node (node1)
--as-me      run the command as the user who called sudo, and as nobody else; for a sudoers rule (the slice takes root)
--user NAME  run the command as this user; who may call gpu-run with this as root, without --as-me, is root
--no-slice   bind by CPU affinity and memory policy only; takes no root, and the command can undo it
--show       print which GPU has which CPUs, memory and slice
--verify     start a process in each slice, and see that it is confined as the map says
"""

# Exit statuses as env(1), nohup(1) and timeout(1) have them.
CANNOT, NOT_EXECUTABLE, NOT_FOUND = 125, 126, 127

# set_mempolicy(2): the number of the call by machine (arch/*/syscalls of the kernel), and MPOL_BIND.
_SET_MEMPOLICY = {"x86_64": 238, "aarch64": 237, "riscv64": 237, "ppc64le": 261, "ppc64": 261, "s390x": 270}
_MPOL_BIND = 2
_WORD_BITS = 8 * ctypes.sizeof(ctypes.c_ulong)


class Refused(Exception):
    """What was asked cannot be done; the text says why and what to type."""


def ids_of(text: str) -> FrozenSet[int]:
    """A list such as 0-3,8 as a set."""
    ids: List[int] = []
    for item in text.replace(",", " ").split():
        found = re.fullmatch(r"(\d{1,5})(?:-(\d{1,5}))?", item, re.ASCII)
        if not found:
            raise Refused("%r is no list such as 0-3,8" % text)
        ids += range(int(found.group(1)), int(found.group(2) or found.group(1)) + 1)
    return frozenset(ids)


def list_of(ids: Iterable[int]) -> str:
    """The shortest list of some ids."""
    ranges: List[List[int]] = []
    for number in sorted(set(ids)):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ",".join(str(a) if a == b else "%d-%d" % (a, b) for a, b in ranges)


def read_map(path: str = MAP_FILE) -> Dict[str, Any]:
    """The map that the role wrote."""
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except FileNotFoundError:
        raise Refused("%s is not there: run the role gpufleet.host.numa_slices on this host" % path) from None
    except (OSError, ValueError) as error:
        raise Refused("%s: %s: run the role gpufleet.host.numa_slices again" % (path, error)) from None
    if not isinstance(found, dict) or found.get("format") != 1:
        raise Refused("%s has another format: run the role gpufleet.host.numa_slices again" % path)
    return found


def choose(gpu_map: Dict[str, Any], which: str) -> Dict[str, Any]:
    """Where a command for some GPUs, or for a node, is to run: slice, CPUs, memory nodes, GPUs."""
    node = re.fullmatch(r"node(\d{1,5})", which, re.ASCII)
    if node:
        rows = [row for row in gpu_map["nodes"] if row["node"] == int(node.group(1))]
        if not rows:
            names = ", ".join("node%d" % row["node"] for row in gpu_map["nodes"]) or "none"
            raise Refused("%s has no slice on this host; there is: %s. Type: gpu-run --show" % (which, names))
        return _place(rows, [])
    indices = sorted(ids_of(which))
    known = {row["index"]: row for row in gpu_map["gpus"]}
    missing = [index for index in indices if index not in known]
    if missing or not indices:
        there = list_of(known) or "none"
        raise Refused("there is no GPU %s on this host; there is: %s. Type: gpu-run --show" % (list_of(missing), there))
    for index in indices:
        if not known[index]["slice"]:
            raise Refused(
                "GPU %d (%s) has no slice, since its NUMA node is not known or it was left out. "
                "Set numa_slices_gpus: [{index: %d, node: N}] and run the role numa_slices again"
                % (index, known[index]["address"], index)
            )
    return _place([known[index] for index in indices], indices)


def _place(rows: Sequence[Dict[str, Any]], indices: Sequence[int]) -> Dict[str, Any]:
    cpus = frozenset().union(*(ids_of(row["cpus"]) for row in rows))
    mems = frozenset().union(*(ids_of(row["memory_nodes"]) for row in rows))
    nodes = {row["node"] for row in rows}
    place = {"slice": rows[0]["slice"], "cpus": list_of(cpus), "mems": list_of(mems), "gpus": list(indices)}
    place["properties"] = []
    if len(rows) > 1:
        # Several GPUs: a scope of its own, below the slice that covers them, with the sum of their parts.
        place["slice"] = "gpufleet-node%d.slice" % rows[0]["node"] if len(nodes) == 1 else TOP
        place["properties"] = ["AllowedCPUs=" + place["cpus"], "AllowedMemoryNodes=" + place["mems"]]
        walls = [row.get("memory_max") for row in rows]
        if all(wall and wall != "infinity" for wall in walls):
            place["properties"].append("MemoryMax=%d" % sum(int(str(wall)) for wall in walls))
    return place


def show(gpu_map: Dict[str, Any]) -> str:
    """The map as a table."""
    rows = [("", "ADDRESS", "NODE", "CPUS", "MEMORY", "SLICE", "STATE")]
    rows += [_show_row("GPU %d" % row["index"], row) for row in gpu_map["gpus"]]
    rows += [_show_row("node %d" % row["node"], row) for row in gpu_map["nodes"]]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(word.ljust(width) for word, width in zip(row, widths)).rstrip() for row in rows]
    return "\n".join([*lines, "kept for the system: CPUs %s" % (gpu_map.get("housekeeping") or "none"), ""])


def _show_row(name: str, row: Dict[str, Any]) -> Tuple[str, str, str, str, str, str, str]:
    address = row.get("address", "")
    if not row["slice"]:
        return (name, address, "?", "?", "?", "none: its NUMA node is not known or it was left out", "")
    state = "active" if os.path.isdir(folder_of(row["slice"])) else "not active"
    return (name, address, str(row["node"]), row["cpus"], row["memory_nodes"], row["slice"], state)


def folder_of(unit: str) -> str:
    """The control group of a slice: its dashes are a hierarchy (systemd.slice(5))."""
    words = unit[: -len(".slice")].split("-")
    return "/".join([CGROUP_FOLDER] + ["-".join(words[: n + 1]) + ".slice" for n in range(len(words))])


def scope_command(place: Dict[str, Any], command: Sequence[str], user: Optional[str]) -> List[str]:
    """The systemd-run that puts this process into a scope of the slice and goes on with ``--inside``."""
    # Not from PATH, which may be a user's: this runs as root.
    argv = [SYSTEMD_RUN, "--scope", "--quiet", "--collect", "--slice=" + place["slice"]]
    argv += ["--description=gpu-run " + (list_of(place["gpus"]) or "node")]
    argv += ["--property=" + text for text in place["properties"]]
    return [*argv, "--", os.path.abspath(__file__), "--inside", pack(place, command, True, user)]


def pack(place: Dict[str, Any], command: Sequence[str], in_slice: bool, user: Optional[str] = None) -> str:
    """What goes on inside, as one word: systemd-run expands dollar signs in words of a command."""
    inside = {"cpus": place["cpus"], "mems": place["mems"], "gpus": place["gpus"], "slice": place["slice"]}
    inside.update({"command": list(command), "in_slice": in_slice, "user": user})
    return base64.b64encode(json.dumps(inside).encode("utf-8", "surrogateescape")).decode("ascii")


def unpack(word: str) -> Dict[str, Any]:
    found = json.loads(base64.b64decode(word).decode("utf-8"))
    if not isinstance(found, dict):
        raise Refused("--inside is for gpu-run itself")
    return found


def confinement(status: str) -> Tuple[FrozenSet[int], FrozenSet[int]]:
    """CPUs and memory nodes that /proc/self/status allows."""
    rows = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    return ids_of(rows.get("Cpus_allowed_list", "")), ids_of(rows.get("Mems_allowed_list", ""))


def own_status() -> str:
    with open("/proc/self/status", encoding="utf-8") as file:
        return file.read()


def check_confinement(inside: Dict[str, Any], status: str) -> None:
    """Refuse to start a command that would run anywhere but where the map says."""
    cpus, mems = confinement(status)
    if cpus != ids_of(inside["cpus"]) or mems != ids_of(inside["mems"]):
        raise Refused(
            "a process in %s may use CPUs %s and memory nodes %s, but the map says %s and %s. "
            "Run the role numa_slices again, or see who changed it: systemctl cat %s"
            % (inside["slice"], list_of(cpus), list_of(mems), inside["cpus"], inside["mems"], inside["slice"])
        )


def bind_memory(nodes: FrozenSet[int]) -> str:
    """Set the memory policy to these nodes, as numactl --membind; gives the reason when it did not."""
    number = _SET_MEMPOLICY.get(os.uname().machine)
    if number is None:
        return "the number of set_mempolicy on %s is not known" % os.uname().machine
    words = (ctypes.c_ulong * (max(nodes) // _WORD_BITS + 1))()
    for node in nodes:
        words[node // _WORD_BITS] |= 1 << (node % _WORD_BITS)
    libc = ctypes.CDLL(None, use_errno=True)
    # The kernel wants one bit more than there are (mm/mempolicy.c, get_nodes).
    if libc.syscall(ctypes.c_long(number), _MPOL_BIND, words, ctypes.c_ulong(len(words) * _WORD_BITS + 1)) != 0:
        return "set_mempolicy: %s" % os.strerror(ctypes.get_errno())
    return ""


def go_on_inside(inside: Dict[str, Any]) -> NoReturn:
    """In the slice: see that it confines, set the memory policy and CUDA's view, become the command."""
    if inside["in_slice"]:
        if confinement(own_status())[0] < ids_of(inside["cpus"]):
            # An affinity that the caller had is kept by kernels from 6.2 on (kernel/cgroup/cpuset.c).
            os.sched_setaffinity(0, ids_of(inside["cpus"]))
        check_confinement(inside, own_status())
    else:
        os.sched_setaffinity(0, ids_of(inside["cpus"]))
    trouble = bind_memory(ids_of(inside["mems"]))
    if trouble and not inside["in_slice"]:
        raise Refused("memory cannot be bound to nodes %s: %s" % (inside["mems"], trouble))
    environment = dict(os.environ)
    # Our indices are in the order of PCI addresses; CUDA's own default order is the fastest first.
    environment["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
    environment["CUDA_VISIBLE_DEVICES"] = ",".join(str(index) for index in inside["gpus"])
    if inside.get("user"):
        environment.update(switch_to(account(inside["user"])))
    become(inside["command"], environment)


def account(name: str) -> pwd.struct_passwd:
    """A user by name or number."""
    try:
        return pwd.getpwuid(int(name)) if re.fullmatch(r"\d{1,10}", name, re.ASCII) else pwd.getpwnam(name)
    except (KeyError, OverflowError):
        raise Refused("there is no user %s on this host" % name) from None


def switch_to(user: pwd.struct_passwd) -> Dict[str, str]:
    """Become a user for good, with the user's own groups; gives what a login would set.

    Here and not with systemd-run --uid, so that it is seen which groups are left: none of root's.
    """
    os.initgroups(user.pw_name, user.pw_gid)
    os.setresgid(user.pw_gid, user.pw_gid, user.pw_gid)
    os.setresuid(user.pw_uid, user.pw_uid, user.pw_uid)
    return {"HOME": user.pw_dir, "SHELL": user.pw_shell, "USER": user.pw_name, "LOGNAME": user.pw_name}


def become(command: Sequence[str], environment: Dict[str, str]) -> NoReturn:
    try:
        os.execvpe(command[0], list(command), environment)
    except FileNotFoundError:
        sys.stderr.write("gpu-run: %s: not found\n" % command[0])
        raise SystemExit(NOT_FOUND) from None
    except OSError as error:
        sys.stderr.write("gpu-run: %s: %s\n" % (command[0], os.strerror(error.errno or 0)))
        raise SystemExit(NOT_EXECUTABLE) from None


def start(which: str, command: Sequence[str], user: Optional[str], in_slice: bool) -> NoReturn:
    place = choose(read_map(), which)
    if not in_slice:
        go_on_inside(unpack(pack(place, command, False)))
    if os.geteuid() != 0:
        raise Refused(
            "a slice of the system takes root. Type: sudo gpu-run --as-me %s -- COMMAND, "
            "or bind without the slice: gpu-run --no-slice %s -- COMMAND" % (which, which)
        )
    if not os.path.isdir(folder_of(place["slice"])):
        raise Refused("%s is not active. Type: systemctl start %s" % (place["slice"], place["slice"]))
    become(scope_command(place, command, user), dict(os.environ))


def caller() -> str:
    """The user who called sudo: sudo sets this itself, whatever the user's environment says (sudo(8), ENVIRONMENT)."""
    uid = os.environ.get("SUDO_UID", "")
    if os.geteuid() != 0 or not re.fullmatch(r"\d{1,10}", uid, re.ASCII):
        raise Refused("--as-me is for sudo. Type: sudo gpu-run --as-me WHICH -- COMMAND")
    return uid


def verify(names: Sequence[str]) -> int:
    """Start a process in each slice of the map (or in the named ones); non-zero when one is not confined."""
    gpu_map = read_map()
    rows = [row for row in [*gpu_map["gpus"], *gpu_map["nodes"]] if row["slice"]]
    wrong = [name for name in names if name not in [row["slice"] for row in rows]]
    if wrong:
        raise Refused("%s is not in the map. Type: gpu-run --show" % ", ".join(wrong))
    failures = 0
    for row in rows:
        if not names or row["slice"] in names:
            argv = scope_command(_place([row], []), ["true"], None)
            failures += subprocess.call(argv, stdin=subprocess.DEVNULL) != 0
    return 1 if failures else 0


def main(words: Sequence[str]) -> int:
    try:
        return run(list(words))
    except Refused as error:
        sys.stderr.write("gpu-run: %s\n" % error)
        return CANNOT


def run(words: List[str]) -> int:
    if words[:1] == ["--show"] and len(words) == 1:
        sys.stdout.write(show(read_map()))
        return 0
    if words[:1] == ["--verify"]:
        return verify(words[1:])
    if words[:1] == ["--inside"] and len(words) == 2:
        go_on_inside(unpack(words[1]))
    if words in (["-h"], ["--help"]):
        sys.stdout.write(USAGE)
        return 0
    user: Optional[str] = None
    in_slice = True
    while words and words[0].startswith("--") and words[0] != "--":
        option = words.pop(0)
        if option == "--no-slice":
            in_slice = False
        elif option in ("--as-me", "--user") and user is not None:
            raise Refused("say once who is to run the command")
        elif option == "--as-me":
            user = account(caller()).pw_name
        elif option == "--user" and words:
            user = account(words.pop(0)).pw_name
        else:
            raise Refused("%s is no option.\n%s" % (option, USAGE))
    if len(words) < 3 or words[1] != "--":
        raise Refused("say which GPU and which command, with -- between them.\n%s" % USAGE)
    if user and not in_slice:
        raise Refused("--user is for a slice; without one, start gpu-run as that user")
    start(words[0], words[2:], user, in_slice)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
