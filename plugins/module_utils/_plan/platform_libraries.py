# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""CUDA toolkits, cuDNN, NCCL and frameworks against the driver and each other.

Two limits that are not one: the floor of a CUDA family, below which nothing built with it runs, fails; the driver that a
toolkit came with, below which its newest features do not work, warns.  A newer driver is never a mismatch.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping

from .._engine.values import Finding, Unknown
from .._engine.versions import is_at_least
from .._tables import cuda, cudnn, frameworks
from .platform_common import Card, cards, known, tables_of
from .platform_driver import loaded_version

Want = Mapping[str, Any]
Have = Mapping[str, Any]

_CUDA = "CUDA toolkit release notes; CUDA minor version compatibility"
_TORCH = "compatibility matrix of PyTorch's RELEASE.md"


def judge(want: Want, have: Have) -> List[Finding]:
    libraries = have["libraries"]
    if isinstance(libraries, Unknown):
        return []
    driver = loaded_version(have)
    findings: List[Finding] = []
    for toolkit in libraries.toolkits:
        if known(toolkit.version) and driver:
            findings += _toolkit(want, toolkit.path, str(toolkit.version), driver)
    default = next((one for one in libraries.toolkits if one.is_default and known(one.version)), None)
    findings += _several_cudnn(libraries.cudnn)
    if default is not None:
        findings += _cudnn(want, libraries.cudnn, str(default.version))
    for framework in libraries.frameworks:
        if known(framework.version):
            findings += _framework(want, framework, driver, cards(want, have), libraries.cudnn)
    return findings


def _toolkit(want: Want, path: str, version: str, driver: str) -> List[Finding]:
    tables = tables_of(want)
    floor = cuda.floor_of(version, tables.cuda_families)
    if floor and is_at_least(driver, floor) is False:
        return [
            Finding(
                "platform.cuda-floor", "fail", path, "driver %s or newer" % floor, "driver %s" % driver,
                "nothing that is built with CUDA %s runs on this driver" % version,
                "install a newer driver branch, or an older toolkit; docs/tables.md has the pairs", _CUDA,
            )
        ]  # fmt: skip
    came_with = cuda.toolkit_driver(version, tables.cuda_toolkits)
    if came_with and is_at_least(driver, came_with) is False:
        return [
            Finding(
                "platform.cuda-toolkit-driver", "warn", path, "driver %s or newer" % came_with, "driver %s" % driver,
                "programs built with CUDA %s run, but its new features and code that is compiled at run time (PTX) do not" % version,
                "install the driver that the toolkit came with, or build with -arch of the very GPU", _CUDA,
            )
        ]  # fmt: skip
    return []


def _several_cudnn(found: Any) -> List[Finding]:
    majors: Dict[str, List[str]] = {}
    for one in found:
        if known(one.version):
            majors.setdefault(str(one.version).split(".", 1)[0], []).append("%s (%s)" % (one.path, one.version))
    if len(majors) < 2:
        return []
    return [
        Finding(
            "platform.cudnn-several", "warn", "cudnn", "one major version", "; ".join(path for paths in majors.values() for path in paths[:2]),
            "which of them a program loads is a matter of search paths; the wrong one fails at run time",
            "ldconfig -p | grep cudnn; remove the ones that nothing needs, look at LD_LIBRARY_PATH", "cuDNN installation guide",
        )
    ]  # fmt: skip


def _cudnn(want: Want, found: Any, toolkit: str) -> List[Finding]:
    rows = tables_of(want).cudnn
    # What lies in a Python environment is the environment's own, with a CUDA of its own beside it.
    of_system = [one for one in found if known(one.version) and "-packages/" not in one.path]
    wrong = [one for one in of_system if cudnn.supports(str(one.version), toolkit, rows) is False]
    return [
        Finding(
            "platform.cudnn-cuda", "fail", one.path, "a cuDNN for CUDA %s" % toolkit, "cuDNN %s" % one.version,
            "this release has no build for the CUDA toolkit that /usr/local/cuda leads to",
            "install the cuDNN package of CUDA %s; docs/tables.md has the pairs" % toolkit.split(".")[0], "cuDNN support matrix",
        )
        for one in wrong
    ]  # fmt: skip


def _framework(want: Want, framework: Any, driver: str, found: List[Card], cudnns: Any) -> List[Finding]:
    findings: List[Finding] = []
    version = str(framework.version)
    built = str(framework.cuda) if known(framework.cuda) else (frameworks.torch_cuda(version) or "")
    floor = cuda.floor_of(built, tables_of(want).cuda_families) if built else None
    if floor and driver and is_at_least(driver, floor) is False:
        findings.append(
            Finding(
                "platform.framework-driver", "fail", framework.path, "driver %s or newer" % floor, "driver %s" % driver,
                "%s %s was built with CUDA %s, which this driver does not run" % (framework.name, version, built),
                "install a newer driver branch, or a build for an older CUDA", _CUDA,
            )
        )  # fmt: skip
    return findings + _capabilities(framework, version, built, found) + _older_cudnn(framework, cudnns)


def _capabilities(framework: Any, version: str, built: str, found: List[Card]) -> List[Finding]:
    """GPUs that the build has no code for."""
    able = frameworks.torch_capabilities(version, built) if framework.name == "torch" and built else ()
    if not able:
        return []
    plain = {word.split("+")[0] for word in able}
    newest = max((float(word) for word in plain), default=0.0)
    has_ptx = any("PTX" in word for word in able)
    missing = sorted(
        {
            card.model.compute_capability
            for card in found
            if card.model and not _runs(card.model.compute_capability, plain, newest, has_ptx)
        }
    )
    if not missing:
        return []
    return [
        Finding(
            "platform.framework-gpu", "fail", framework.path, "code for compute capability %s" % ", ".join(missing),
            "%s %s for CUDA %s has %s" % (framework.name, version, built, ", ".join(able)),
            "kernels for these GPUs are not in the build: it stops with 'no kernel image is available'",
            "install a build for another CUDA; docs/tables.md", _TORCH,
        )
    ]  # fmt: skip


def _runs(capability: str, plain: Any, newest: float, has_ptx: bool) -> bool:
    """Code runs on later GPUs of the same major capability; PTX of the newest is compiled for later ones."""
    try:
        wanted = float(capability)
    except ValueError:
        return True
    return any(int(float(word)) == int(wanted) and float(word) <= wanted for word in plain) or (
        has_ptx and wanted >= newest
    )


def _older_cudnn(framework: Any, cudnns: Any) -> List[Finding]:
    """A framework whose own environment holds an older cuDNN than it was built with."""
    if not known(framework.cudnn):
        return []
    folder = framework.path.rsplit("/", 1)[0]
    beside = [one for one in cudnns if one.path.startswith(folder) and known(one.version)]
    older = [one for one in beside if is_at_least(str(one.version), str(framework.cudnn)) is False]
    return [
        Finding(
            "platform.framework-cudnn", "fail", framework.path, "cuDNN %s or newer" % framework.cudnn, "%s at %s" % (one.version, one.path),
            "the cuDNN that is loaded is older than the one that %s was built with" % framework.name,
            "pip install the nvidia-cudnn wheel that it asks for; look at LD_LIBRARY_PATH for another one", "cuDNN release notes",
        )
        for one in older
    ]  # fmt: skip
