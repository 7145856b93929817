# Copyright: (c) 2026, gpufleet.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Why a host could not be reached or entered, in plain words, and what to type next.

The patterns are of what OpenSSH 9.2, sudo and ansible-core 2.18 to 2.21 say; tests/unit/cases/unreachable.yml holds the
messages.  The first row that fits speaks.  No row names an address, so that hosts that ail from the same are told once.
"""

from __future__ import annotations

import re
from typing import Any, Mapping, NamedTuple, Optional, Tuple


class Cause(NamedTuple):
    """A row: a pattern of the message, the cause, and what to type."""

    pattern: str
    why: str
    fix: str


_SSH = "ssh USER@ADDRESS, as whom and where the inventory says"
_SUDO = "run again with --ask-become-pass, or give the user NOPASSWD in sudoers"
_PYTHON = "install Python 3.8 or newer there, and name it with ansible_python_interpreter if it is not found by itself"

CAUSES: Tuple[Cause, ...] = (
    Cause(
        r"Could not resolve hostname|Name or service not known|nodename nor servname",
        "its name does not resolve",
        "correct the name or set ansible_host to an address; see: getent hosts ADDRESS",
    ),
    Cause(
        r"REMOTE HOST IDENTIFICATION HAS CHANGED",
        "its host key is another one than before: it was installed anew, or another machine answers at its address",
        "if it was installed anew: ssh-keygen -R ADDRESS, then ssh ADDRESS once and compare the fingerprint",
    ),
    Cause(
        r"host key is known for .* strict checking|Host key verification failed",
        "its host key is not known here, and nobody was there to accept it",
        "ssh ADDRESS once and compare the fingerprint, or: ssh-keyscan ADDRESS >> ~/.ssh/known_hosts",
    ),
    Cause(
        r"no such identity|Load key .*(?:invalid format|error in libcrypto)|UNPROTECTED PRIVATE KEY",
        "the private key of the inventory cannot be used here: it is not there, not readable, or open to others",
        "see ansible_ssh_private_key_file: ls -l that file, which only its owner may read (chmod 600)",
    ),
    Cause(
        r"Permission denied \([\w,. -]+\)|Too many authentication failures|Invalid/incorrect password",
        "it does not let this user in with this key or password: wrong user, or the key is not in authorized_keys",
        "see that ansible_user is a user there, then: ssh-copy-id USER@ADDRESS",
    ),
    Cause(
        r"Connection refused",
        "it is up and nothing listens at its ssh port",
        "see ansible_port; on its console: systemctl status ssh sshd",
    ),
    Cause(
        r"No route to host|Network is unreachable",
        "there is no way to its address in the network",
        "see ansible_host and whether it is powered: ping ADDRESS; ip route get ADDRESS",
    ),
    Cause(
        r"timed out|Operation timed out|Connection timeout",
        "nothing answers at its address: it is off, hangs, or a firewall drops what is sent",
        "see that it is powered (its BMC), then: ping ADDRESS; nc -vz ADDRESS 22",
    ),
    Cause(
        r"Connection (?:reset|closed) by|kex_exchange_identification|Broken pipe|closed by remote host",
        "it cut the connection off: sshd there is starting, overloaded (MaxStartups), or bans this address",
        "wait and run again with fewer forks (-f 5); on its console: journalctl -u ssh -u sshd",
    ),
)
# A task that failed, where Ansible could not even begin its work.
ENTRY_CAUSES: Tuple[Cause, ...] = (
    Cause(
        r"Missing \w+ password|\w+: a password is required|Timeout .* privilege escalation prompt|"
        r"(?:Premature end of stream|Timed out) waiting for become|no tty present and no askpass",
        "sudo there asks for a password, and none was given",
        _SUDO,
    ),
    Cause(
        r"Incorrect \w+ password|\d incorrect password attempt|Duplicate become password prompt",
        "the sudo password is not the right one",
        "run again with --ask-become-pass and the password of this user on the host",
    ),
    Cause(
        r"is not in the sudoers file|is not allowed to (?:execute|run sudo)|may not run sudo",
        "this user may not use sudo there",
        "let root add it there: usermod -aG sudo USER (wheel on EL), or a file in /etc/sudoers.d",
    ),
    Cause(
        r"sudo: (?:command )?not found|sudo: No such file",
        "there is no sudo on the host",
        "connect as root (ansible_user: root, no ansible_become), or install sudo there",
    ),
    Cause(
        r"module interpreter '.*' was not found|/python[\d.]*'?: (?:not found|No such file)|"
        r"No python interpreters found|[Ii]nterpreter .* not found|python[\d.]*: command not found",
        "there is no Python on the host where Ansible looks for it",
        _PYTHON,
    ),
    Cause(
        r"future feature annotations is not defined|SyntaxError: invalid syntax|"
        r"requires a minimum of Python|The module interpreter .* is too old",
        "its Python is too old: the roles need 3.8 or newer there, ansible-core 2.20 and newer 3.9",
        _PYTHON,
    ),
)


def cause_of(text: str, rows: Tuple[Cause, ...]) -> Optional[Cause]:
    """The first row that a message fits."""
    return next((row for row in rows if re.search(row.pattern, text)), None)


def unreachable(message: str) -> Mapping[str, Any]:
    """The finding about a host that did not answer."""
    cause = cause_of(message, CAUSES) or cause_of(message, ENTRY_CAUSES)
    return {
        "id": "fleet.unreachable",
        "level": "fail",
        "subject": "connection",
        "expected": "an answer",
        "observed": {"unknown": message or "no answer"},
        "why": cause.why if cause else "it did not answer" + (": " + message if message else ""),
        "fix": cause.fix if cause else "see that it is powered and that this works: %s" % _SSH,
        "source": "ansible-core",
    }


def task_failed(task: str, message: str, action: str, is_input: bool, output: str = "") -> Mapping[str, Any]:
    """The finding about a task that failed without a report of its own.

    :param output: what the host printed in place of a result.
    """
    found = {"level": "fail", "subject": task, "expected": "no error", "source": action}
    if is_input:
        why = "a variable is not as its role wants it, so nothing was changed by this role"
        fix = "correct the variable in the inventory; the README of the role lists what is allowed"
        return dict(found, id="fleet.bad-input", observed=message, why=why, fix=fix)
    cause = cause_of("%s\n%s" % (message, output), ENTRY_CAUSES)
    if cause:
        return dict(found, id="fleet.no-entry", subject="host", observed=message, why=cause.why, fix=cause.fix)
    why = "the run ended for this host at this task"
    fix = "mend what the message names and run again; with -vvv Ansible tells more"
    observed = message or "an error without a message"
    return dict(found, id="fleet.task-failed", observed=observed, why=why, fix=fix)
