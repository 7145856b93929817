#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The lab for those who only want it there or gone: tools/lab.sh up|down, or its image built: tools/lab.sh image
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python=.venv/bin/python
[[ -x $python ]] || python=python3

case ${1:-} in
up)
    if ! { "$python" lab/lab.py requirements --install && "$python" lab/lab.py build && "$python" lab/lab.py up; }; then
        echo "The lab host is not up. 'python3 lab/lab.py status' tells what there is; 'make lab-down lab' starts it afresh." >&2
        exit 1
    fi
    ;;
image)
    if ! { "$python" lab/lab.py requirements --install && "$python" lab/lab.py build; }; then
        echo "The lab's image is not built. 'make lab' repeats it." >&2
        exit 1
    fi
    ;;
down)
    # Nothing to stop where nothing was built.
    [[ -e lab/lab.py && -d .cache ]] || exit 0
    "$python" lab/lab.py down
    ;;
*)
    echo "usage: tools/lab.sh up|image|down" >&2
    exit 2
    ;;
esac
