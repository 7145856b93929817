#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Runs the bench in a virtual environment of its own, which alone holds the stock collections.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

venv=.cache/bench-venv
want=$(cat constraints.txt requirements.txt requirements-bench.txt | sha256sum)
if [[ -e $venv/.stamp && $(<"$venv/.stamp") == "$want" ]]; then
    echo "Reusing $venv"
else
    echo "Making $venv with the stock collections (some 500 MB)"
    rm -rf "$venv"
    .venv/bin/python -m venv "$venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -c constraints.txt \
        -r requirements.txt -r requirements-bench.txt
    echo "$want" >"$venv/.stamp"
fi
PATH=$PWD/$venv/bin:$PATH exec "$venv/bin/python" -m bench.bench "$@"
