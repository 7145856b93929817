#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Runs a playbook on an inventory: tools/site.sh INVENTORY PLAYBOOK [OPTION ...]
# The lab inventory gets its host built and booted first; no other inventory does.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

inventory=$1
playbook=$2
shift 2

if [[ ! -e $inventory ]]; then
    echo "There is no inventory '$inventory'. Name one: make site INVENTORY=inventories/mine" >&2
    exit 2
fi
if [[ ! -e $playbook ]]; then
    echo "There is no playbook '$playbook' in this checkout." >&2
    exit 2
fi
if [[ $(readlink -f "$inventory") == "$(readlink -f inventories/lab)" ]]; then
    tools/lab.sh up
fi
exec ansible-playbook -i "$inventory" "$playbook" "$@"
