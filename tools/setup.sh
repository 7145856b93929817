#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Makes .venv with the pinned packages and the link under which Ansible finds this checkout.
#   tools/setup.sh run   what the playbooks need
#   tools/setup.sh dev   that, and what `make test` needs
# A second call reuses what is there, and says so.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

what=${1:-run}

link=.cache/collections/ansible_collections/gpufleet/host
if [[ $(readlink -f "$link" || true) != "$PWD" ]]; then
    mkdir -p "$(dirname "$link")"
    ln -sfnr . "$link"
fi

# ansible-core 2.19 runs on these.
find_python() {
    local name
    for name in ${PYTHON:-python3 python3.11 python3.12 python3.13}; do
        if "$name" -c 'import sys; raise SystemExit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then
            command -v "$name"
            return
        fi
    done
    echo "No Python 3.11, 3.12 or 3.13 found. Install one, or name it: make setup PYTHON=/path/to/python3.11" >&2
    return 1
}

files=(requirements.txt)
run_want=$(cat constraints.txt "${files[@]}" | sha256sum)
if [[ $what == dev ]]; then
    files+=(requirements-dev.txt)
    tools/apt_needs.sh shellcheck:shellcheck chromium:chromium git:git
fi

stamp=.venv/.stamp-$what
want=$(cat constraints.txt "${files[@]}" | sha256sum)
if [[ -x .venv/bin/python && -e $stamp && $(<"$stamp") == "$want" ]]; then
    echo "Reusing .venv ($(.venv/bin/python -V), ansible-core $(sed -n 's/^ansible-core==//p' requirements.txt))"
    exit 0
fi

# A virtual environment that was copied or moved does not work; neither does one whose Python has gone.
if ! .venv/bin/python -c 'import sys, pathlib; raise SystemExit(pathlib.Path(sys.prefix) != pathlib.Path(".venv").absolute())' 2>/dev/null; then
    python=$(find_python)
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        tools/apt_needs.sh "$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')"
    fi
    echo "Making .venv with $("$python" -V)"
    rm -rf .venv
    "$python" -m venv .venv
fi

echo "Installing the pinned packages of ${files[*]}"
if ! .venv/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt \
    "${files[@]/#/-r}" >.cache/pip.log 2>&1; then
    tail -n 20 .cache/pip.log >&2
    echo "pip could not install them; the whole output is in .cache/pip.log. Is a package index reachable (pip config list)?" >&2
    exit 1
fi
echo "$want" >"$stamp"
echo "$run_want" >.venv/.stamp-run
