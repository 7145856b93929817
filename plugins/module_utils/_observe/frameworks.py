# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""PyTorch, TensorFlow and JAX as they lie on disk: their versions, and the CUDA and cuDNN they were built for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Dict, Iterator, Optional, Sequence, Tuple

from .._engine.host import Host
from .._engine.values import Text, Unknown, lines
from .c_header import version_of
from .nvidia_values import Word

_ASSIGNED = re.compile(r"(\w{1,40})\s{0,4}(?::[^=]{0,60})?=\s{0,4}['\"]([^'\"]{0,100})['\"]", re.ASCII)
_BUILD_INFO = re.compile(r"['\"](\w{1,40})['\"]\s{0,4}[:,]\s{0,4}['\"]?([\w.+-]{1,60})", re.ASCII)
_CUDNN_LOADED = re.compile(
    r"Loaded runtime CuDNN library: v?(\d[\d.]{0,20})(?: \(compatibility version \d{1,6}\))?,? but source was compiled with:?"
    r" v?(\d[\d.]{0,20})",
    re.ASCII | re.IGNORECASE,
)


@dataclass(frozen=True)
class Framework:
    """``cuda`` and ``cudnn`` are what it was built for, as it says itself."""

    name: str
    path: str
    version: Word
    cuda: Word
    cudnn: Word


@dataclass(frozen=True)
class CudnnMismatch:
    """A framework that loaded another cuDNN than it was built with."""

    runtime: str
    compiled: str


def observe(host: Host, folders: Sequence[str]) -> Tuple[Framework, ...]:
    """The frameworks in some folders of Python packages, without running any Python."""
    return tuple(_frameworks(host, folders))


def parse_assignments(text: Text) -> Dict[str, str]:
    """``name = 'value'`` lines of a Python file, such as torch/version.py; None and numbers are left out."""
    rows = [_ASSIGNED.match(line[:400].strip()) for line in lines(text)]
    return {row.group(1): row.group(2) for row in rows if row}


def parse_build_info(text: Text) -> Dict[str, str]:
    """TensorFlow's build_info.py: pairs of names and values, as a list of pairs or a dictionary."""
    head = text[:20_000] if isinstance(text, str) else ""
    return {found.group(1): found.group(2) for found in _BUILD_INFO.finditer(head)}


def parse_cudnn_mismatch(text: Text) -> Optional[CudnnMismatch]:
    """What frameworks log when the cuDNN that was found is older than the one they were built with."""
    for line in lines(text):
        found = _CUDNN_LOADED.search(line[:1000])
        if found:
            return CudnnMismatch(cudnn_version(found.group(1)), cudnn_version(found.group(2)))
    return None


def cudnn_version(printed: str) -> str:
    """``8902`` as 8.9.2 and ``90100`` as 9.1.0 (CUDNN_VERSION in cudnn_version.h); dotted ones stay."""
    bare = printed.rstrip(".")
    if not re.fullmatch(r"\d{4,6}", bare, re.ASCII):
        return bare
    number = int(bare)
    unit = 1000 if number < 10_000 else 10_000
    return "%d.%d.%d" % (number // unit, number % unit // 100, number % 100)


def _frameworks(host: Host, folders: Sequence[str]) -> Iterator[Framework]:
    for folder in folders:
        torch = host.read(folder + "/torch/version.py")
        if isinstance(torch, str):
            told = parse_assignments(torch)
            yield _framework("torch", folder, told.get("__version__"), told.get("cuda"), None)
        info = host.read(folder + "/tensorflow/python/platform/build_info.py")
        if isinstance(info, str):
            told = parse_build_info(info)
            version = _tensorflow_version(host, folder)
            yield _framework("tensorflow", folder, version, told.get("cuda_version"), told.get("cudnn_version"))
        jax = host.read(folder + "/jaxlib/version.py")
        if isinstance(jax, str):
            told = parse_assignments(jax)
            yield _framework("jaxlib", folder, told.get("__version__") or told.get("_version"), None, None)


def _framework(name: str, folder: str, version: Optional[str], cuda: Optional[str], cudnn: Optional[str]) -> Framework:
    silent = Unknown("not there: %s does not say" % name)
    return Framework(name, "%s/%s" % (folder, name), version or silent, cuda or silent, cudnn or silent)


def _tensorflow_version(host: Host, folder: str) -> Optional[str]:
    names = ("TF_MAJOR_VERSION", "TF_MINOR_VERSION", "TF_PATCH_VERSION")
    for header in ("release_version.h", "version.h"):
        version = version_of(host.read("%s/tensorflow/include/tensorflow/core/public/%s" % (folder, header)), names)
        if version:
            return version
    return None
