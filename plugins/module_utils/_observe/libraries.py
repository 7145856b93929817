# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Libraries of the driver, cuDNN, NCCL, CUDA toolkits and frameworks, where they lie on disk.

The version of a library is in the name of the file that its link leads to (libcuda.so.1 to libcuda.so.550.90.07).
Only known places are looked at, and no folder of libraries is listed: those have thousands of files.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from .._engine.host import Host
from .._engine.values import Text, Unknown
from . import frameworks
from .c_header import version_of
from .nvidia_values import Word
from .python_folders import python_folders

# Debian and Ubuntu, Red Hat and SUSE, Arch; then what Debian's alternatives and by hand installed ones use.
FOLDERS = (
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/lib",
    "/usr/local/lib64",
)
LOCAL = "/usr/local"
_DRIVER = ("libcuda.so.1", "libnvidia-ml.so.1", "libnvidia-nscq.so.2", "libnvsdm.so.1")
_CUDNN = tuple("libcudnn.so.%d" % major for major in range(7, 11))
_NCCL = ("libnccl.so.2",)
_HEADERS = (
    ("/libcudnn.so", "cudnn_version.h", ("CUDNN_MAJOR", "CUDNN_MINOR", "CUDNN_PATCHLEVEL")),
    ("/libnccl.so", "nccl.h", ("NCCL_MAJOR", "NCCL_MINOR", "NCCL_PATCH")),
)
_MOST_HOPS = 8
_MOST_TOOLKITS = 16

_SO_VERSION = re.compile(r".{1,100}\.so\.(\d{1,6}(?:\.\d{1,6}){1,4})", re.ASCII)
_TOOLKIT = re.compile(r"cuda(?:-(\d{1,3}(?:\.\d{1,3}){0,2}))?", re.ASCII)
_VERSION_TXT = re.compile(r"CUDA Version (\d{1,3}(?:\.\d{1,4}){1,2})", re.ASCII)


@dataclass(frozen=True)
class Library:
    """``path`` is where the link lies, ``version`` that of the file it leads to."""

    name: str
    path: str
    version: Word


@dataclass(frozen=True)
class Toolkit:
    """A CUDA toolkit.  ``is_default``: /usr/local/cuda leads to it.  ``driver`` is the one that it was released with."""

    path: str
    version: Word
    driver: Word
    is_default: bool


@dataclass(frozen=True)
class Libraries:
    """``driver`` by name of the library without its number (libcuda, libnvidia-ml, libnvidia-nscq, libnvsdm)."""

    driver: Mapping[str, Library]
    cudnn: Tuple[Library, ...]
    nccl: Tuple[Library, ...]
    toolkits: Tuple[Toolkit, ...]
    frameworks: Tuple[frameworks.Framework, ...]


def observe(host: Host) -> Union[Libraries, Unknown]:
    if not any(host.exists(folder) for folder in (*FOLDERS, LOCAL)):
        return Unknown("not there: no folder of libraries was seen")
    folders = [folder for folder in FOLDERS if host.exists(folder) and host.readlink(folder) is None]
    toolkits = _toolkits(host)
    of_python = python_folders(host)
    places = [*folders, *("%s/lib64" % toolkit.path for toolkit in toolkits)]
    driver: Dict[str, Library] = {}
    for library in _found(host, folders, _DRIVER):
        driver.setdefault(library.name, library)
    return Libraries(
        driver,
        tuple(_found(host, [*places, *(folder + "/nvidia/cudnn/lib" for folder in of_python)], _CUDNN)),
        tuple(_found(host, [*places, *(folder + "/nvidia/nccl/lib" for folder in of_python)], _NCCL)),
        toolkits,
        frameworks.observe(host, of_python),
    )


def parse_so_version(text: Text) -> Word:
    """The version in the name of a library's file; one number alone is its interface, not its version."""
    name = text.strip().rsplit("/", 1)[-1][:200] if isinstance(text, str) else ""
    found = _SO_VERSION.fullmatch(name)
    return found.group(1) if found else Unknown("not there: the name %r has no version" % name[:60])


def parse_toolkit_json(text: Text) -> Dict[str, str]:
    """The versions of a toolkit's ``version.json`` by part (cuda, cuda_nvcc, nvidia_driver, ...)."""
    try:
        data: Any = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return {}
    if not isinstance(data, dict):
        return {}
    parts = {str(name): part.get("version") for name, part in data.items() if isinstance(part, dict)}
    return {name: version for name, version in parts.items() if isinstance(version, str) and version}


def parse_toolkit_txt(text: Text) -> Word:
    """``version.txt`` of toolkits before 11.1: ``CUDA Version 10.2.89``."""
    found = _VERSION_TXT.search(text[:2000]) if isinstance(text, str) else None
    return found.group(1) if found else Unknown("not there: no CUDA Version")


def _found(host: Host, folders: Sequence[str], links: Sequence[str]) -> Iterator[Library]:
    for folder in folders:
        for link in links:
            path = "%s/%s" % (folder, link)
            end = _end(host, path)
            if end is not None:
                yield Library(link.split(".so")[0], path, _version(host, folder, end))


def _end(host: Host, path: str) -> Optional[str]:
    """The file that a path leads to, through its links; None when nothing is there.

    A name with a version is taken for granted: looking at the file itself would read megabytes into a capture.
    """
    for _hop in range(_MOST_HOPS):
        target = host.readlink(path)
        if target is None:
            return path if _SO_VERSION.fullmatch(path.rsplit("/", 1)[-1]) or host.exists(path) else None
        path = target if target.startswith("/") else "%s/%s" % (path.rsplit("/", 1)[0], target)
    return None


def _version(host: Host, folder: str, end: str) -> Word:
    """From the file's name; Python packages have files without a version, and the header beside them."""
    version = parse_so_version(end)
    if not isinstance(version, Unknown) or not folder.endswith("/lib"):
        return version
    above = folder.rsplit("/", 1)[0]
    for library, header, names in _HEADERS:
        told = version_of(host.read("%s/include/%s" % (above, header)), names) if library in end else None
        if told:
            return told
    return version


def _toolkits(host: Host) -> Tuple[Toolkit, ...]:
    """Folders cuda-12.4 and the like; cuda alone is a link to one, or a toolkit itself."""
    default = _end(host, LOCAL + "/cuda")
    found: List[Toolkit] = []
    for name in host.listdir(LOCAL):
        path = "%s/%s" % (LOCAL, name)
        row = _TOOLKIT.fullmatch(name)
        # cuda-12 and cuda are links to the folder with the whole version.
        if row and host.readlink(path) is None:
            parts = parse_toolkit_json(host.read(path + "/version.json"))
            named: Word = row.group(1) or Unknown("not there: nothing tells the version")
            old = parse_toolkit_txt(host.read(path + "/version.txt"))
            version: Word = parts.get("cuda", named if isinstance(old, Unknown) else old)
            driver: Word = parts.get("nvidia_driver", Unknown("not there: version.json names no driver"))
            found.append(Toolkit(path, version, driver, path == default))
    return tuple(found[:_MOST_TOOLKITS])
