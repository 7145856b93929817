# Copyright: (c) 2026, gpufleet.host contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab host as testinfra sees it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import testinfra

from lab.base import REPO as ROOT
from lab.hosts import HOSTS, ssh_port
from lab.play import ARTIFACTS, BUILT_IN, NAME, Run, play

__all__ = ["ARTIFACTS", "BUILT_IN", "KEY", "NAME", "ROOT", "Run", "connect", "play"]

KEY = Path(os.environ.get("GPUFLEET_LAB_DIR", ROOT / ".cache/lab")) / "id_ed25519"


def connect(name: str) -> Any:
    """One connection is kept for all commands: a login costs an emulated host seconds."""
    options = {
        "ControlPath": os.path.join(tempfile.gettempdir(), "gpufleet-%C"),
        "ServerAliveInterval": "20",
        "StrictHostKeyChecking": "no",
        "UserKnownHostsFile": "/dev/null",
        "LogLevel": "ERROR",
    }
    return testinfra.get_host(
        "ssh://root@127.0.0.1:%d?ssh_identity_file=%s&controlpersist=600&timeout=120" % (ssh_port(HOSTS[name]), KEY),
        ssh_extra_args=" ".join("-o %s=%s" % pair for pair in options.items()),
    )
